"""`mpgemm distinguish`: an input on which two instructions give different results, or the proof that there is none."""

import argparse

import tensorcore_models as tcm
from mpgemm.commands.solver_options import add_limits, facts, limits_from, without_witness
from mpgemm.reporting import report
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal.witnesses import shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    parser.add_argument("first", metavar="SPEC_A", help="instruction: architecture:name, as `mpgemm models` lists them")
    parser.add_argument("second", metavar="SPEC_B", help="instruction of the same formats")
    parser.add_argument("--k", type=int, help="products of the dot product (default: whole steps of both)")
    parser.add_argument("--finite", action="store_true", help="leave infinities and NaNs out")
    add_limits(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises
    ------
    ValueError, TypeError
        On bad input, and where no solver is installed.
    """
    names = (args.first, args.second)
    engines = [tcm.get_instruction(name) for name in names]
    try:
        verdict = formal.distinguishing_input(
            *engines, k=args.k, inputs="finite" if args.finite else "all", **limits_from(args)
        )
    except formal.NoSolver as error:
        raise ValueError(str(error)) from None
    if args.json:
        print(report.json_text(facts(verdict, names)), end="")
        return 0
    if verdict.witness is None:
        report.say(without_witness(verdict, "no input tells them apart"))
        return 0
    report.say(str(verdict.witness))
    for name, bits in zip(names, verdict.results, strict=True):
        report.say(f"{name}: {shown(bits, verdict.witness.formats.d)}")
    report.say(
        f"run on the kernels and on the integer reference; found by {verdict.backend} in {verdict.seconds:.1f} s"
    )
    return 0
