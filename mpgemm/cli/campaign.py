"""`mpgemm campaign` records what this machine's GPU computes and compares it with the models, within a budget of time."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mpgemm.cli.common.option_values import CAMPAIGN_PARTS
from mpgemm.cli.common.parser import Parser
from mpgemm.reporting.output import Output
from mpgemm.reporting.report import Table, fitted, say

if TYPE_CHECKING:
    from mpgemm.campaign.device import CampaignDevice
    from mpgemm.campaign.jobs import JobOutcome

QUESTION = "look into a unit"
SUMMARY = "compare this machine's GPU with the models: units, emulation, kernels, functions, libraries, times"
EXAMPLES = (
    ("--out campaign --budget 600", "all parts, within ten minutes; the same command continues what is not finished"),
    ("units functions --out campaign --budget 120", "two of its parts"),
)


def add_arguments(parser: Parser) -> None:
    """Add the command's options."""
    add = parser.add_argument
    add("parts", nargs="*", metavar="PART", help=f"parts to run: {', '.join(CAMPAIGN_PARTS)} (default: all)")
    add(
        "--out",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder for rows, vectors, tables and logs; results that it already holds are kept",
    )
    add(
        "--budget",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="time for all parts together, in seconds (default 600)",
    )
    add(
        "--processes",
        type=int,
        metavar="N",
        help="number of processes that run at the same time, except where times are measured (default: the number of cores)",
    )
    add(
        "--experiments",
        type=Path,
        metavar="FILE",
        help='JSON file of experiments that distinguish models, run by the part "units" (default: none)',
    )
    add("--json", action="store_true", help="print JSON instead of tables")
    parser.at_least(1, "--processes")


def run(args: Namespace) -> Output:
    """Carry out the command; the exit status is 1 if a result differs from its model or a part failed."""
    from mpgemm.campaign.device import this_gpu

    _check(args)
    try:
        device = this_gpu()
    except RuntimeError as error:
        raise ValueError(str(error)) from None
    return carried_out(args, device)


def _check(args: Namespace) -> None:
    unknown = [name for name in args.parts if name not in CAMPAIGN_PARTS]
    if unknown:
        raise ValueError(f"unknown part {unknown[0]!r}, expected one or more of {', '.join(CAMPAIGN_PARTS)}")
    if not args.budget > 0:
        raise ValueError(f"--budget is {args.budget}, expected seconds above 0")
    if args.experiments is not None:
        from tensorcore_models.hardware.campaign.decisive import load_experiments

        if args.parts and "units" not in args.parts:
            raise ValueError(
                f"--experiments has an effect only on the part units, got the parts {', '.join(args.parts)}: add "
                "units, or leave --experiments out"
            )
        load_experiments(args.experiments)


def carried_out(
    args: Namespace, device: CampaignDevice, worker: tuple[str, ...] | None = None, grace: float | None = None
) -> Output:
    """Run the parts on a device, each share of the work in a process of its own, and return the findings.

    Parameters
    ----------
    args : Namespace
        Arguments of the command.
    device : CampaignDevice
    worker : tuple of str, optional
        Command line of the process that is started for a share.
    grace : float, optional
        Seconds that a share may run beyond its time.
    """
    from mpgemm.campaign import jobs, summary
    from mpgemm.campaign.folder import claim
    from mpgemm.campaign.parts import PARTS

    claim(args.out, device.facts)
    summary.check(args.out)
    start, outcomes = time.monotonic(), []

    def ended(outcome: JobOutcome) -> None:
        outcomes.append(outcome)
        if not args.json:
            say(f"{outcome.job}: {outcome.said or 'done'} ({outcome.seconds:.0f} s)")

    processes = args.processes or os.cpu_count() or 1
    runner = jobs.Processes(
        args.out, args.experiments, processes, worker or jobs.WORKER, jobs.GRACE if grace is None else grace
    )
    try:
        for group in jobs.planned([PARTS[name] for name in args.parts or PARTS], args.budget, processes):
            if group:
                runner.run(group, ended)
    finally:  # after an interruption, too, the tables of finished work are written
        found = summary.summarise(args.out, outcomes, time.monotonic() - start)
    bad = any(row["differ"] or row["failed"] for row in found) or any(outcome.said for outcome in outcomes)
    return Output({"device": device.facts, "parts": found}, _lines(args, device, found), status=int(bad))


def _lines(args: Namespace, device: CampaignDevice, found: list[dict]) -> Iterator[str | Table]:
    yield Table.of_rows(f"{device.facts['gpu']}, {device.facts['driver']}", found)
    yield fitted(
        f"mpgemm report {args.out} --out campaign.html shows all rows; the same command runs again what failed or had no time"
    )
