"""Adds and reads the options that name a command's input matrices: several cases to measure, or one pair."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mpgemm.cli.common.parser import Parser

if TYPE_CHECKING:
    import numpy as np

    from mpgemm.experiments.cases import Case


def add_input_arguments(parser: Parser, default: str) -> None:
    """Add the group "input": files, shipped pairs, or generated matrices; `default` names the input without these options."""
    from mpgemm.inputs.matrices import SHIPPED  # its names are in the help of this command alone

    add = parser.add_argument_group(f"input (default: {default})").add_argument
    add(
        "files",
        nargs="*",
        metavar="FILE",
        help="files of A and B, each a matrix or a stack of matrices (three dimensions), or one file with "
        "--a-name and --b-name; .npy, .npz (also of sparse matrices), .mtx, .csv, .safetensors or .pt",
    )
    add(
        "--files",
        dest="more_files",
        nargs=2,
        default=[],
        metavar="FILE",
        help="files of A and B; means the same as the positional arguments",
    )
    add("--transpose-b", action="store_true", help="the second file holds the transpose of B, as W in x @ W.T")
    add("--a-name", help="name of A's array or tensor, needed if the first file holds several")
    add("--b-name", help="name of B's array or tensor, needed if the second file holds several")
    add(
        "--shipped",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"pairs of matrices that ship with the package: {', '.join(SHIPPED)}",
    )
    _add_generated(add)
    add(
        "--c",
        metavar="FILE|NAME",
        help="matrix C that is added to the product: a file, or the name of a distribution, from which C (M x N) "
        "is drawn with the seed of A and B (default: no C)",
    )
    add("--seed", type=int, help="first seed of generated matrices (default 0)")
    add("--repeats", type=int, help="number of seeds, from --seed on; each gives its own A and B (default 1)")
    files = ("files", "--files")
    parser.goes_with(("--a-name", "--b-name", "--transpose-b"), files, "two matrix files")
    drawn = ("--shape", "--seed", "--repeats", "--precision")
    parser.goes_without(drawn, (*files, "--shipped"), "matrices that are generated")
    parser.goes_with(("--param",), ("--distribution",))


def _add_parameters(add) -> None:
    """Add the option --param."""
    add(
        "--param",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="parameters of the distribution, such as exponent=-3 for uniform_symmetric (default: its own values)",
    )


def _add_generated(add: Callable[..., argparse.Action]) -> None:
    """Add the options that describe generated matrices."""
    from mpgemm.inputs.matrices import DISTRIBUTIONS

    add(
        "--distribution",
        "--distributions",
        nargs="+",
        default=[],
        metavar="NAME",
        help=f"distributions from which A and B are generated: {', '.join(DISTRIBUTIONS)}",
    )
    _add_parameters(add)
    add(
        "--shape",
        nargs=3,
        type=int,
        action="append",
        metavar=("M", "K", "N"),
        help="sizes of the product of generated matrices: A is M x K, B is K x N; several --shape give several "
        "products (with --distribution default 256 256 256)",
    )
    add("--precision", choices=("fp32", "fp64"), help="number format of generated matrices (default fp32)")


SHAPE = (256, 256, 256)


def check_files(args: argparse.Namespace) -> None:
    """Refuse several kinds of input, and a number of matrix files other than two; one file with two names counts as two."""
    kinds = (("two files", args.files), ("--shipped", args.shipped), ("--distribution", args.distribution))
    given = [name for name, value in kinds if value]
    if len(given) > 1:
        raise ValueError(f"got {' and '.join(given)}, expected one kind of input: keep one of these options")
    if len(args.files) == 1 and args.a_name and args.b_name:
        args.files = 2 * args.files
    if args.files and len(args.files) != 2:
        raise ValueError(
            f"got {len(args.files)} matrix file(s), expected two: give A and B, or one file with --a-name and --b-name"
        )


def check_inputs(args: argparse.Namespace) -> None:
    """Refuse inputs that contradict each other; one file with two names counts as two files."""
    args.files = [*args.files, *args.more_files]
    check_files(args)
    if args.param and len(args.distribution) != 1:
        raise ValueError(
            f"--param sets the parameters of one distribution, got {len(args.distribution)} "
            "distribution(s): give --distribution with one name"
        )


def cases_of(args: argparse.Namespace, default: Sequence[Case]) -> list[Case]:
    """Return the inputs that the options name, each with its C, or `default` if they name none."""
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
    cases = distinct_cases(cases)  # an input that is named twice is measured once
    return cases if args.c is None else [with_addend(case, args.c) for case in cases]


def seeds_of(args: argparse.Namespace, repeats: int) -> range:
    """Return the seeds from --seed on, as many as --repeats says, by default `repeats`."""
    first = args.seed or 0
    return range(first, first + (args.repeats or repeats))


# -- one pair ---------------------------------------------------------------------------------------------------------------
def add_matrix_arguments(parser: Parser, default: str, k: bool = False) -> argparse._ArgumentGroup:
    """Add the group "input" and return it; `default` names the input without these options, `k` adds --k beside --shape."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    source = parser.add_argument_group(f"input (default: {default})")
    add = source.add_argument
    add("files", nargs="*", metavar="FILE", help="files of A and B: .npy, .npz, .mtx, .csv, .safetensors or .pt")
    add("--a-name", help="name of A's array or tensor, needed if the first file holds several")
    add("--b-name", help="name of B's array or tensor, needed if the second file holds several")
    add(
        "--shipped", metavar="NAME", help=f"pair of matrices that ships with the package: {', '.join(matrices.SHIPPED)}"
    )
    names = ", ".join(matrices.DISTRIBUTIONS)
    add("--distribution", metavar="NAME", help=f"distribution from which A and B are drawn: {names}")
    _add_parameters(add)
    add(
        "--shape",
        nargs=3,
        type=int,
        metavar=("M", "K", "N"),
        help="sizes of the product of drawn matrices: A is M x K, B is K x N",
    )
    if k:
        add("--k", type=int, help="K of the product of drawn matrices, if --shape is not given (default 1024)")
    add("--precision", choices=("fp32", "fp64"), default="fp32", help="number format of drawn matrices (default fp32)")
    add("--seed", type=int, default=0, help="seed of the random draw (default 0)")
    parser.goes_with(("--a-name", "--b-name"), ("files",), "two matrix files")
    parser.goes_with(("--param",), ("--distribution",))
    parser.goes_without(("--shape", "--seed", "--precision"), ("files", "--shipped"), "matrices that are drawn")
    return source


class MatrixPair(NamedTuple):
    """`MatrixPair` holds A and B with a label for output."""

    a: np.ndarray
    b: np.ndarray
    label: str


def given_pair(args: argparse.Namespace) -> MatrixPair | None:
    """Return the pair of --files or --shipped, None if neither option is given."""
    from mpgemm.inputs import matrices
    from mpgemm.inputs.files import read_matrix

    check_files(args)
    if args.shape is not None and min(args.shape) < 1:
        raise ValueError(f"--shape is {' '.join(map(str, args.shape))}, expected three sizes of at least 1")
    if args.shipped:
        return MatrixPair(*matrices.load_shipped(args.shipped), args.shipped)
    if not args.files:
        return None
    a, b = read_matrix(args.files[0], args.a_name), read_matrix(args.files[1], args.b_name)
    if a.shape[1] != b.shape[0]:
        raise ValueError(
            f"A is {a.shape} and B is {b.shape}, expected as many columns of A as rows of B: check the files' order"
        )
    return MatrixPair(a, b, f"{args.files[0]} x {args.files[1]}")


def pair_of(args: argparse.Namespace, distribution: str, shape: tuple[int, int, int]) -> MatrixPair:
    """Return the pair that the options name, or a pair drawn from `distribution` in `shape` if they name none."""
    given = given_pair(args)
    return _drawn(args, distribution, shape, args.seed) if given is None else given


def seeded_pairs(args: argparse.Namespace, distribution: str, shape: tuple[int, int, int]) -> list[MatrixPair]:
    """Draw as many pairs as --repeats says, each with a seed of its own."""
    given_pair(args)
    return [_drawn(args, distribution, shape, seed) for seed in range(args.seed, args.seed + args.repeats)]


def _drawn(args: argparse.Namespace, distribution: str, shape: tuple[int, int, int], seed: int) -> MatrixPair:
    from mpgemm.inputs import matrices

    name, (m, k, n) = args.distribution or distribution, args.shape or shape
    parameters = numbers_of(args.param, "--param")
    drawn = matrices.generate(name, m, k, n, seed, precision=args.precision, **parameters)
    wide = "" if args.precision == "fp32" else f", {args.precision}"
    return MatrixPair(*drawn, f"{name} {m} x {k} x {n}{wide}, seed {seed}")


def numbers_of(texts: Sequence[str], option: str) -> dict[str, float]:
    """Return the numbers of KEY=NUMBER texts by their keys; messages name the option `option`."""
    found: dict[str, float] = {}
    for text in texts:
        key, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise ValueError(f"{option} got {text!r}, expected KEY=NUMBER") from None
        if key in found:
            raise ValueError(f"{option} gives {key} twice, {found[key]:g} and {number:g}: expected one value")
        found[key] = number
    return found
