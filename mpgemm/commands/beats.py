"""`mpgemm beats`: FP32 operands on which one recovery method is nearer to the exact product than another."""

import argparse

from mpgemm.bounds.beating import beating_operands
from mpgemm.commands.solver_options import add_limits, facts, limits_from, without_witness
from mpgemm.reporting import report
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal.methods import exact_dot
from tensorcore_models.probing.formal.witnesses import exact_value, shown


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
    add_limits(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError, TypeError
        On bad input, and where no solver is installed.
    """
    names = (args.better, args.worse)
    try:
        verdict = beating_operands(
            *names,
            args.engine,
            k=args.k,
            exponents=tuple(args.exponents),
            c_exponents=tuple(args.c_exponents),
            **limits_from(args),
        )
    except formal.NoSolver as error:
        raise ValueError(str(error)) from None
    if args.json:
        print(report.json_text(facts(verdict, names)), end="")
        return 0
    if verdict.witness is None:
        report.say(without_witness(verdict, f"{args.better} is nowhere nearer than {args.worse}"))
        return 0
    report.say(str(verdict.witness))
    exact, fmt = exact_dot(verdict.witness), verdict.witness.formats.d
    for name, bits in zip(names, verdict.results, strict=True):
        report.say(f"{name}: {shown(bits, fmt)}, error {float(abs(exact_value(bits, fmt) - exact)):.3e}")
    report.say(
        f"run on the kernels and on the integer reference; found by {verdict.backend} in {verdict.seconds:.1f} s"
    )
    return 0
