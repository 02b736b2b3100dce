"""`mpgemm beats`: FP32 operands on which one recovery method is nearer to the exact product than another."""

import argparse

from mpgemm.bounds.beating import beating_operands
from mpgemm.commands.solver_options import add_options, answer
from tensorcore_models.probing.formal.methods import exact_dot
from tensorcore_models.probing.formal.witnesses import Witness, exact_value, shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument(
        "better", metavar="METHOD", help="the method that is to be nearer; NAME or NAME:OPTION=VALUE,..."
    )
    parser.add_argument("worse", metavar="OTHER", help="the method that is to be farther off")
    parser.add_argument("--engine", help="instruction or device that runs both (default: that of the first)")
    parser.add_argument("--k", type=int, help="products of the dot product (default: one k step of the engine)")
    parser.add_argument(
        "--exponents",
        nargs=2,
        type=int,
        default=(-14, 14),
        metavar=("LOW", "HIGH"),
        help="of operands (default -14 14)",
    )
    parser.add_argument(
        "--c-exponents", nargs=2, type=int, default=(-30, 14), metavar=("LOW", "HIGH"), help="of c (default -30 14)"
    )
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError, TypeError
        On bad input, and where no solver is installed.
    """
    return answer(
        args,
        (args.better, args.worse),
        lambda limits: beating_operands(
            args.better,
            args.worse,
            args.engine,
            k=args.k,
            exponents=tuple(args.exponents),
            c_exponents=tuple(args.c_exponents),
            **limits,
        ),
        f"{args.better} is nowhere nearer than {args.worse}",
        _with_error,
    )


def _with_error(witness: Witness, bits: int) -> str:
    fmt = witness.formats.d
    return f"{shown(bits, fmt)}, error {float(abs(exact_value(bits, fmt) - exact_dot(witness))):.3e}"
