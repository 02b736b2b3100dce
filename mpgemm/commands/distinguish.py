"""`mpgemm distinguish`: an input on which two instructions give different results, or the proof that there is none."""

import argparse

import tensorcore_models as tcm
from mpgemm.commands.solver_options import answer
from tensorcore_models.probing import formal
from tensorcore_models.probing.formal.witnesses import shown


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises ValueError, TypeError on bad input, and where no solver is installed.
    """
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
