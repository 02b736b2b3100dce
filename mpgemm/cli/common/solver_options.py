"""Adds the options of commands that ask SMT solvers a question about two units or methods, and prints the answer."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from mpgemm.cli.common.option_values import SOLVER_MEGABYTES, SOLVER_SECONDS, SOLVERS
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import fitted
from tensorcore_models.probing import formal

if TYPE_CHECKING:
    from tensorcore_models.probing.formal.limits import LimitOptions
    from tensorcore_models.probing.formal.witnesses import Witness


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for limits of time and memory, the choice of solvers, and JSON."""
    add_limit_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def add_limit_arguments(parser: argparse._ActionsContainer) -> None:
    """Add the options for limits of time and memory, and the choice of solvers."""
    add = parser.add_argument
    add(
        "--timeout",
        type=float,
        default=SOLVER_SECONDS,
        help="time limit of each solver in seconds (default %(default)s)",
    )
    add("--memory", type=int, default=SOLVER_MEGABYTES, help="memory limit of each solver in MiB (default %(default)s)")
    add(
        "--solver", nargs="+", choices=SOLVERS, metavar="NAME",
        help=f"use only these solvers: {', '.join(SOLVERS)} (default: all that are installed)",
    )  # fmt: skip


_SAID = {"timeout": "no answer in time", "memory": "the solvers ran out of memory"}


def answer(
    args: argparse.Namespace,
    names: tuple[str, str],
    question: Callable[[LimitOptions], formal.FormalVerdict],
    none: str,
    result_text: Callable[[Witness, int], str],
) -> Output:
    """Ask `question` (limits -> verdict) and return the output; `none` is the sentence for a proof that no input exists."""
    if not args.json:
        most = f"{args.timeout:g} s, {args.memory} MiB"
        print(f"asking for at most {most} for each solver (--timeout, --memory)", flush=True)
    try:
        verdict = question({"timeout": args.timeout, "memory": args.memory, "backends": args.solver})
    except formal.NoSolver as error:
        raise ValueError(str(error)) from None
    limits = {"seconds": args.timeout, "memory_mib": args.memory}
    if verdict.witness is None:
        restricted = f" ({', '.join(verdict.assumptions)})" if verdict.assumptions else ""
        said = none if verdict.status == "none" else _SAID.get(verdict.status, "the solvers gave up")
        lines = [f"{said}{restricted}; {verdict.seconds:.1f} s"]
    else:
        shown = (
            f"{name}: {result_text(verdict.witness, bits)}" for name, bits in zip(names, verdict.results, strict=True)
        )
        how = f"run on the kernels and on the integer reference; found by {verdict.backend} in {verdict.seconds:.1f} s"
        lines = [str(verdict.witness), *shown, how]
    return Output({**facts(verdict, names), "limits": limits}, map(fitted, lines))


def facts(verdict: formal.FormalVerdict, names: tuple[str, str]) -> dict:
    """Return a verdict on two units or methods as plain data for JSON."""
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
