"""`mpgemm distinguish`: an input on which two instructions give different results, or the proof that there is none."""

import argparse

import tensorcore_models as tcm
from mpgemm.cli.common.solver_options import add_options, answer
from tensorcore_models.probing import formal

QUESTION = "look into a unit"
SUMMARY = "an input on which two instructions give different results, verified"
EXAMPLES = (
    ("ampere:mma.m16n8k16.f32.f16.f16.f32 hopper:mma.m16n8k16.f32.f16.f16.f32", "an input on which two units differ"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's options."""
    add = parser.add_argument
    add("first", metavar="SPEC_A", help="instruction: architecture:name, as `mpgemm models` lists them")
    add("second", metavar="SPEC_B", help="instruction of the same formats")
    add("--k", type=int, help="products of the dot product (default: whole steps of both)")
    add("--finite", action="store_true", help="leave infinities and NaNs out")
    add_options(parser)


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises ValueError, TypeError on bad input, and where no solver is installed.
    """
    from tensorcore_models.probing.formal.witnesses import shown

    names = (args.first, args.second)
    engines = [tcm.get_instruction(name) for name in names]
    return answer(
        args,
        names,
        lambda limits: formal.distinguishing_input(
            *engines, k=args.k, inputs="finite" if args.finite else "all", **limits
        ),
        "no input tells them apart",
        lambda witness, bits: shown(bits, witness.formats.d),
    )
