"""`mpgemm distinguish` finds an input on which two instructions give different results, or proves that none exists."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from mpgemm.cli.common.solver_options import add_options, answer
from mpgemm.reporting.output import Output
from tensorcore_models.probing import formal

if TYPE_CHECKING:
    from tensorcore_models.probing.formal.limits import LimitOptions

QUESTION = "look into a unit"
SUMMARY = "find an input on which two instructions give different results"
EXAMPLES = (
    ("ampere:mma.m16n8k16.f32.f16.f16.f32 hopper:mma.m16n8k16.f32.f16.f16.f32", "an input on which two units differ"),
    ("wormhole/hifi4 blackhole/hifi4", "units that solvers cannot encode: probe vectors and random operands are tried"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("first", metavar="SPEC_A", help="instruction (architecture:name, as `mpgemm models` lists it) or device")
    add("second", metavar="SPEC_B", help="instruction or device with the same formats as the first")
    add("--k", type=int, help="length of the dot product (default: a whole number of k steps of both instructions)")
    add("--finite", action="store_true", help="exclude infinities and NaNs from the inputs")
    add_options(parser)


def run(args: argparse.Namespace) -> Output:
    """Carry out the command. Raises ValueError, TypeError on bad input, and where no solver is installed."""
    from mpgemm.recovery.engines import plain_engine
    from tensorcore_models.probing.formal.witnesses import shown

    names = (args.first, args.second)
    engines = [plain_engine(name) for name in names]
    return answer(
        args,
        names,
        lambda limits: _asked(engines, args, limits),
        "proved: no input distinguishes the two",
        lambda witness, bits: shown(bits, witness.formats.d),
    )


def _asked(engines: list[Any], args: argparse.Namespace, limits: LimitOptions) -> formal.FormalVerdict:
    """Return the solvers' verdict, or if they cannot encode a unit, the verdict of probe vectors and random operands."""
    from tensorcore_models.atlas.witnesses import witness
    from tensorcore_models.probing.formal.witnesses import Witness, witness_formats

    try:
        return formal.distinguishing_input(*engines, k=args.k, inputs="finite" if args.finite else "all", **limits)
    except formal.Unencodable as error:
        if args.k is not None:
            raise ValueError(
                f"{error}; so no solver is called, and --k, which only solvers use, has no effect: leave --k out"
            ) from None
        formats, found = witness_formats(*engines), witness(*engines)
        if found is None or (args.finite and not _finite(found, formats)):
            raise ValueError(
                f"{error}; neither probe vectors nor random operands distinguish the two units: try other units"
            ) from None
    seen = Witness(found.a, found.b, found.c, formats)
    tried = "a search among probe vectors and random operands"
    return formal.FormalVerdict("witness", seen, results=tuple(seen.run(engine) for engine in engines), backend=tried)


def _finite(found: Any, formats: Any) -> bool:
    """Return whether an input has neither infinities nor NaNs."""
    used = [(formats.a, code) for code in found.a] + [(formats.b, code) for code in found.b] + [(formats.c, found.c)]
    return all(fmt.decode_exact(code).kind == "finite" for fmt, code in used)
