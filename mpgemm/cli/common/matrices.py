"""Options of the commands about one pair of matrices: files, a shipped pair, or a distribution."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from mpgemm.cli.common.inputs import check_files
from mpgemm.cli.common.parameters import numbers_of
from mpgemm.cli.common.parser import Parser

if TYPE_CHECKING:
    import numpy as np


def add_matrix_arguments(parser: Parser, default: str, k: bool = False) -> argparse._ArgumentGroup:
    """The group "input"; `default` says what is taken without any, `k` adds --k beside --shape."""
    from mpgemm.inputs import matrices  # its names are in the help of this command alone

    source = parser.add_argument_group(f"input (default: {default})")
    add = source.add_argument
    add("files", nargs="*", metavar="FILE", help="A and B: .npy, .npz, .mtx or .safetensors")
    add("--a-name", help="array or tensor of the first file")
    add("--b-name", help="array or tensor of the second file")
    add("--shipped", metavar="NAME", help=f"a shipped pair: {', '.join(matrices.SHIPPED)}")
    add("--distribution", metavar="NAME", help=f"draw: {', '.join(matrices.DISTRIBUTIONS)}")
    add("--param", nargs="+", default=[], metavar="KEY=VALUE", help="parameters of the distribution")
    add("--shape", nargs=3, type=int, metavar=("M", "K", "N"), help="sizes of drawn matrices")
    if k:
        add("--k", type=int, help="length of the dot products, instead of --shape")
    add("--precision", choices=("fp32", "fp64"), default="fp32", help="of drawn matrices (default fp32)")
    add("--seed", type=int, default=0, help="seed of drawn matrices (default 0)")
    parser.goes_with(("--a-name", "--b-name"), ("files",), "two matrix files")
    parser.goes_with(("--param",), ("--distribution",))
    parser.goes_without(("--shape", "--seed", "--precision"), ("files", "--shipped"), "matrices that are drawn")
    return source


class MatrixPair(NamedTuple):
    """A and B with what to call them."""

    a: np.ndarray
    b: np.ndarray
    label: str


def given_pair(args: argparse.Namespace) -> MatrixPair | None:
    """The pair of files or the shipped pair, None where neither is given."""
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
        raise ValueError(f"A is {a.shape} and B is {b.shape}: the columns of A must be as many as the rows of B")
    return MatrixPair(a, b, f"{args.files[0]} x {args.files[1]}")


def pair_of(args: argparse.Namespace, distribution: str, shape: tuple[int, int, int]) -> MatrixPair:
    """The pair that is asked for; drawn from `distribution` in `shape` where nothing is."""
    given = given_pair(args)
    return _drawn(args, distribution, shape, args.seed) if given is None else given


def seeded_pairs(args: argparse.Namespace, distribution: str, shape: tuple[int, int, int]) -> list[MatrixPair]:
    """Draw as many pairs as --repeats says."""
    given_pair(args)
    return [_drawn(args, distribution, shape, seed) for seed in range(args.seed, args.seed + args.repeats)]


def _drawn(args: argparse.Namespace, distribution: str, shape: tuple[int, int, int], seed: int) -> MatrixPair:
    from mpgemm.inputs import matrices

    name, (m, k, n) = args.distribution or distribution, args.shape or shape
    parameters = numbers_of(args.param, "--param")
    drawn = matrices.generate(name, m, k, n, seed, precision=args.precision, **parameters)
    wide = "" if args.precision == "fp32" else f", {args.precision}"
    return MatrixPair(*drawn, f"{name} {m} x {k} x {n}{wide}, seed {seed}")
