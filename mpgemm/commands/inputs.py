"""What the commands that measure share: where their matrices come from."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mpgemm.commands.parameters import numbers_of
from mpgemm.experiments.cases import Case, file_cases, generated_cases, shipped_case, with_addend

SHAPE = (256, 256, 256)


def check_files(args: argparse.Namespace) -> None:
    """Refuse several kinds of input, and matrix files that are not two; one file with two names becomes two."""
    kinds = (("two files", args.files), ("--shipped", args.shipped), ("--distribution", args.distribution))
    given = [name for name, value in kinds if value]
    if len(given) > 1:
        raise ValueError(f"one kind of input at a time, got {' and '.join(given)}")
    if len(args.files) == 1 and args.a_name and args.b_name:
        args.files = 2 * args.files
    if args.files and len(args.files) != 2:
        raise ValueError(f"give two matrix files, A and B, or one with --a-name and --b-name; got {len(args.files)}")


def check_inputs(args: argparse.Namespace) -> None:
    """Refuse inputs that contradict each other; one file with two names becomes two."""
    args.files = [*args.files, *args.more_files]
    check_files(args)
    if args.param and len(args.distribution) != 1:
        raise ValueError("--param goes with --distribution and one name")


def cases_of(args: argparse.Namespace, default: Sequence[Case]) -> list[Case]:
    """The inputs that were asked for, each with its C; `default` where none was."""
    if args.files:
        a, b = map(Path, args.files)
        cases = file_cases(a, b, args.a_name, args.b_name, transpose_b=args.transpose_b)
    elif args.shipped:
        cases = [shipped_case(name) for name in args.shipped]
    elif args.distribution:
        parameters = numbers_of(args.param, "--param")
        cases = [
            case
            for name in args.distribution
            for shape in args.shape or [SHAPE]
            for case in generated_cases(name, shape, seeds_of(args, 1), parameters, args.precision or "fp32")
        ]
    else:
        cases = list(default)
    return cases if args.c is None else [with_addend(case, args.c) for case in cases]


def seeds_of(args: argparse.Namespace, repeats: int) -> range:
    """The seeds that were asked for, `repeats` of them by default."""
    first = args.seed or 0
    return range(first, first + (args.repeats or repeats))
