"""`mpgemm explain`: one dot product of a recovery method step by step, and where its error comes from."""

import argparse
from pathlib import Path

import numpy as np

from mpgemm.bounds.describe import describe
from mpgemm.experiments.cases import file_case, generated_cases, with_addend
from mpgemm.experiments.valpey5 import VALPEY_A, VALPEY_B, VALPEY_C
from mpgemm.recovery.methods import get_method
from mpgemm.reporting import report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "method", nargs="?", default="ootomo", help="method, with options as in ootomo:terms=4 (default ootomo)"
    )
    parser.add_argument("--engine", help="arch:name, a device, or ieee (default: the method's)")
    source = parser.add_argument_group("dot product (default: Valpey et al., table 5)")
    source.add_argument("--a", nargs="+", type=float, metavar="X", help="elements of the row of A")
    source.add_argument("--b", nargs="+", type=float, metavar="X", help="elements of the column of B")
    source.add_argument(
        "--c",
        metavar="X|FILE|NAME",
        help="c: a number; with --files or --distribution also a matrix file or distribution",
    )
    source.add_argument("--files", nargs=2, metavar="FILE", help="A and B instead; see --element")
    source.add_argument("--distribution", metavar="NAME", help="generate A and B instead; see --element")
    source.add_argument("--k", type=int, default=8, help="length of a generated dot product (default 8)")
    source.add_argument("--seed", type=int, default=0, help="seed of a generated one")
    source.add_argument(
        "--element", nargs=2, type=int, default=[0, 0], metavar=("I", "J"), help="which element of the product"
    )
    parser.add_argument("--attribution-only", action="store_true", help="only where the error comes from")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status."""
    a, b, c = _operands(args)
    description = describe(get_method(args.method), a, b, c, args.engine)
    if args.json:
        whole = description.attribution.to_dict() if args.attribution_only else description.to_dict()
        print(report.json_text(whole), end="")
    else:
        print(description.attribution if args.attribution_only else description)
    return 0


def _operands(args):
    if args.k < 0:
        raise ValueError(f"--k must not be negative, got {args.k}")
    given = [name for name in ("a", "files", "distribution") if getattr(args, name)]
    if len(given) > 1:
        raise ValueError(f"one kind of input at a time, got --{' and --'.join(given)}")
    if (args.a is None) != (args.b is None):
        raise ValueError("--a and --b go together")
    c = _number(args.c)
    if args.c is not None and c is None and not (args.files or args.distribution):
        raise ValueError(f"--c {args.c!r} is not a number; a file or distribution goes with --files or --distribution")
    if args.a:
        return np.float32(args.a), np.float32(args.b), c
    if not given:
        return VALPEY_A, VALPEY_B, VALPEY_C if args.c is None else c
    if args.files:
        case = file_case(Path(args.files[0]), Path(args.files[1]))
    else:
        i, j = (max(0, index) for index in args.element)
        case = generated_cases(args.distribution, (i + 1, args.k, j + 1), [args.seed])[0]
    if args.c is not None and c is None:
        case = with_addend(case, args.c)
    matrix_a, matrix_b, matrix_c = case.operands()
    i, j = args.element
    if not (0 <= i < matrix_a.shape[0] and 0 <= j < matrix_b.shape[1]):
        raise ValueError(f"--element {i} {j} is outside the {matrix_a.shape[0]} x {matrix_b.shape[1]} product")
    return matrix_a[i], matrix_b[:, j], c if matrix_c is None else matrix_c[i, j]


def _number(text: str | None) -> np.float32 | None:
    """The number that a text is, None where it is none."""
    try:
        return None if text is None else np.float32(text)
    except ValueError:
        return None
