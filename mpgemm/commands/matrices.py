"""What the commands about one pair of matrices share: files, a shipped pair, or a distribution."""

import argparse
from typing import NamedTuple

import numpy as np

from mpgemm.commands.inputs import check_files
from mpgemm.commands.parameters import numbers_of
from mpgemm.inputs import matrices
from mpgemm.inputs.files import read_matrix


class MatrixPair(NamedTuple):
    """A and B with what to call them."""

    a: np.ndarray
    b: np.ndarray
    label: str


def given_pair(args: argparse.Namespace) -> MatrixPair | None:
    """The pair of files or the shipped pair, None where neither is given."""
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
    given, parameters = given_pair(args), numbers_of(args.param, "--param")
    if given is not None:
        return given
    name, (m, k, n) = args.distribution or distribution, args.shape or shape
    drawn = matrices.generate(name, m, k, n, args.seed, precision=args.precision, **parameters)
    wide = "" if args.precision == "fp32" else f", {args.precision}"
    return MatrixPair(*drawn, f"{name} {m} x {k} x {n}{wide}, seed {args.seed}")
