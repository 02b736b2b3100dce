"""`mpgemm selftest` checks that the installed package computes the right bits on this machine."""

import argparse
import time
from dataclasses import asdict
from pathlib import Path

from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, fitted
from tensorcore_models.machine.instruction_sets import available_isas

QUESTION = "keep results, check the installation"
SUMMARY = "compare kernels with slow exact computations and with outputs of real GPUs, in about a minute"
EXAMPLES = (
    ("", "all checks, with half a minute of random comparisons"),
    ("--quick", "the same checks in less than ten seconds"),
    ("--seconds 120", "two minutes of random comparisons"),
)

#: Seconds of random comparisons without and with --quick; the other checks take a few seconds more.
SECONDS, QUICK_SECONDS = 30.0, 1.0


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add(
        "--seconds",
        type=float,
        default=SECONDS,
        metavar="S",
        help=f"time for random comparisons in seconds (default {SECONDS:g})",
    )
    add("--quick", action="store_true", help=f"take only {QUICK_SECONDS:g} s for random comparisons")
    add("--seed", type=int, default=0, help="seed of the random encodings (default 0)")
    add(
        "--rerun",
        type=Path,
        metavar="FILE",
        help="compute again the product in FILE. Another command wrote this file because a result was outside of "
        "its certified bound",
    )
    add("--json", action="store_true", help="print the result as JSON")
    parser.goes_without(("--seconds",), ("--quick",))
    parser.goes_without(("--seconds", "--quick", "--seed"), ("--rerun",))


def run(args: argparse.Namespace) -> Output:
    """Carry out the command; the exit status is 1 if a check differs, 3 if a file's product is outside of its bound again.

    Raises ValueError if --seconds is not above 0, the seed is negative, or a file holds no such product; OSError.
    """
    if args.rerun is not None:
        return _rerun(args)
    from mpgemm.selftest import checks

    seconds = QUICK_SECONDS if args.quick else args.seconds
    if not seconds > 0:
        raise ValueError(f"--seconds is {seconds:g}, expected more than 0")
    if args.seed < 0:
        raise ValueError(f"--seed is {args.seed}, expected 0 or more")
    start = time.monotonic()
    found = [
        checks.hardware_outputs(),
        checks.own_outputs(),
        checks.derived_vectors(),
        *checks.edge_products(seconds, args.seed),
        checks.twins(seconds, args.seed),
    ]
    wrong = [check for check in found if check.different]
    facts = {"passed": not wrong, "instruction_sets": available_isas(), "checks": [asdict(check) for check in found]}
    rows = [[check.name, check.compared, check.different] for check in found]
    result = "FAILED: do not trust results of this installation" if wrong else "passed"
    said = [f"{check.name}: the first that differs is {check.first}" for check in wrong]
    said.append(f"{result} ({time.monotonic() - start:.0f} s; instruction sets: {', '.join(available_isas())})")
    table = Table("Self-test", ["check", "dot products", "different"], rows)
    return Output(facts, [table, *map(fitted, said)], status=int(bool(wrong)))


def _rerun(args: argparse.Namespace) -> Output:
    from mpgemm.experiments.outside import rerun

    facts, found = rerun(args.rerun)
    said = [f"{facts['product']}, recorded with {facts['instruction_set']}, mpgemm {facts['environment']['mpgemm']}"]
    for row in found:
        bits = "the recorded bits" if row.same_bits else "other bits than recorded"
        said.append(f"{row.instruction_set}: {bits}, {row.outside or 'within the certified bound'}")
    status = 3 if any(row.outside for row in found) else 0
    return Output({"recorded": facts, "again": [asdict(row) for row in found]}, map(fitted, said), status=status)
