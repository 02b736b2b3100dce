"""`mpgemm beats`: FP32 operands on which one recovery method is nearer to the exact product than another."""

import argparse

from mpgemm.bounds.beating import beating_operands
from mpgemm.commands.solver_options import answer
from tensorcore_models.probing.formal.methods import exact_dot
from tensorcore_models.probing.formal.witnesses import Witness, exact_value, shown


def run(args: argparse.Namespace) -> int:
    """Carry out the command; the exit status.

    Raises ValueError, TypeError on bad input, and where no solver is installed.
    """
    return answer(
        args,
        (args.better, args.worse),
        lambda limits: beating_operands(
            args.better, args.worse, args.engine, k=args.k, exponents=tuple(args.exponents),
            c_exponents=tuple(args.c_exponents), **limits,
        ),
        f"{args.better} is nowhere nearer than {args.worse}",
        _with_error,
    )  # fmt: skip


def _with_error(witness: Witness, bits: int) -> str:
    fmt = witness.formats.d
    return f"{shown(bits, fmt)}, error {float(abs(exact_value(bits, fmt) - exact_dot(witness))):.3e}"
