"""What commands that ask SMT solvers have in common: limits as options, and what is said without a witness."""

import argparse

from tensorcore_models.probing import formal
from tensorcore_models.probing.formal.limits import LimitOptions
from tensorcore_models.probing.formal.solvers import DEFAULT_MEMORY, DEFAULT_TIMEOUT

_SAID = {"timeout": "no answer in time", "memory": "the solvers ran out of memory"}


def add_limits(parser: argparse.ArgumentParser) -> None:
    """The options for limits of time and memory, and for the choice of solvers."""
    parser.add_argument("--timeout", type=float, default=DEFAULT_TIMEOUT, help="seconds (default %(default)s)")
    parser.add_argument("--memory", type=int, default=DEFAULT_MEMORY, help="MiB for each solver (default %(default)s)")
    parser.add_argument("--solver", action="append", choices=formal.BACKENDS, help="default: all that are installed")


def limits_from(args: argparse.Namespace) -> LimitOptions:
    """The limits that were given."""
    return {"timeout": args.timeout, "memory": args.memory, "backends": args.solver}


def without_witness(verdict: formal.Verdict, none: str) -> str:
    """One line on a verdict without a witness; `none` says what a proof means."""
    restricted = f" ({', '.join(verdict.assumptions)})" if verdict.assumptions else ""
    said = none if verdict.status == "none" else _SAID.get(verdict.status, "the solvers gave up")
    return f"{said}{restricted}; {verdict.seconds:.1f} s"


def facts(verdict: formal.Verdict, names: tuple[str, str]) -> dict:
    """A verdict on two named things as plain data."""
    found = verdict.witness
    inputs = {} if found is None else {"a": found.a, "b": found.b, "c": found.c}
    if found is not None and found.scale_a:
        inputs |= {"scale_a": found.scale_a, "scale_b": found.scale_b}
    return {
        "status": verdict.status,
        "inputs": inputs,
        "results": dict(zip(names, verdict.results, strict=False)),
        "assumptions": verdict.assumptions,
        "solver": verdict.backend,
        "seconds": verdict.seconds,
    }
