"""Options of the commands that measure: where their matrices come from."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpgemm.cli.common.parameters import numbers_of
from mpgemm.cli.common.parser import Parser

if TYPE_CHECKING:
    from mpgemm.experiments.cases import Case


def add_input_arguments(parser: Parser, default: str) -> None:
    """The group "input": files, shipped pairs, or generated matrices; `default` says what is taken without any."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    add = parser.add_argument_group(f"input (default: {default})").add_argument
    add(
        "files",
        nargs="*",
        metavar="FILE",
        help="A and B (or one file and both names), or stacks of them: .npy, .npz (sparse, too), .mtx, .csv, .safetensors, .pt",
    )
    add("--files", dest="more_files", nargs=2, default=[], metavar="FILE", help="the same as an option")
    add("--transpose-b", action="store_true", help="the second file holds B transposed: x @ W.T")
    add("--a-name", help="array or tensor of the first file")
    add("--b-name", help="array or tensor of the second file")
    add("--shipped", nargs="+", default=[], metavar="NAME", help=f"shipped pairs: {', '.join(matrices.SHIPPED)}")
    add(
        "--distribution",
        "--distributions",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"generate: {', '.join(matrices.DISTRIBUTIONS)}",
    )
    add("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the distribution")
    add("--shape", nargs=3, type=int, action="append", metavar=("M", "K", "N"), help="sizes of generated matrices")
    add("--precision", choices=("fp32", "fp64"), help="of generated matrices (default fp32)")
    add(
        "--c",
        metavar="FILE|NAME",
        help="compute A B + C: C from a matrix file, or a distribution (m x n, the same seed)",
    )
    add("--seed", type=int, help="first seed (default 0)")
    add("--repeats", type=int, help="number of seeds (default 1)")
    files = ("files", "--files")
    parser.goes_with(("--a-name", "--b-name", "--transpose-b"), files, "two matrix files")
    drawn = ("--shape", "--seed", "--repeats", "--precision")
    parser.goes_without(drawn, (*files, "--shipped"), "matrices that are generated")
    parser.goes_with(("--param",), ("--distribution",))


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
    from mpgemm.experiments.cases import distinct_cases, file_cases, generated_cases, shipped_case, with_addend

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
    cases = distinct_cases(cases)  # what is asked for twice is measured once
    return cases if args.c is None else [with_addend(case, args.c) for case in cases]


def seeds_of(args: argparse.Namespace, repeats: int) -> range:
    """The seeds that were asked for, `repeats` of them by default."""
    first = args.seed or 0
    return range(first, first + (args.repeats or repeats))
