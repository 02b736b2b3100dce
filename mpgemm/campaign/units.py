"""This module compares single instructions with their models: every row of the architecture, and every kind of operands.

The first share runs the decisive experiments, if a file of them is given; the others compare rows
(:class:`tensorcore_models.hardware.campaign.run.Campaign`), each its own, and keep vectors that any machine can replay.
"""

from pathlib import Path

from mpgemm.campaign.work import Work
from tensorcore_models import list_instructions
from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.hardware.campaign.run import Campaign, Tally

#: Dot products of each instruction: more than any budget allows.
TARGET = 1 << 40


def rows_of(arch: str) -> list[Instruction]:
    """Return the instructions that are compared."""
    return [row for row in list_instructions(arch) if row.published]


def run(work: Work) -> None:
    """Run the share."""
    if work.share == 0:
        if work.experiments is not None:
            _campaign(work, work.folder / work.part, [], work.experiments).decide()
            work.say(f"{work.part}: decisive experiments in {work.part}/decisive.json")
        return
    rows = rows_of(work.device.arch)[work.share - 1 :: work.shares - 1]
    campaign = _campaign(work, work.folder / work.part / f"share-{work.share}", rows, None)
    try:
        campaign.compare_all()
    finally:
        held = [_row(row, campaign.tallies[row.name]) for row in rows]
        work.rows.rows[:] = [row for row in held if row["dots"] or "failed" in row]
        work.rows.write(sum(not row["dots"] and "failed" not in row for row in held))


def _campaign(work: Work, out: Path, rows: list[Instruction], experiments: Path | None) -> Campaign:
    return Campaign(work.device.units, out, work.seconds, experiments, TARGET, rows, clock=work.clock, say=work.say)


def _row(row: Instruction, tally: Tally) -> dict:
    found = {
        "instruction": row.name, "kinds": len(tally.dots), "dots": sum(tally.dots.values()),
        "differ": sum(tally.mismatches.values()),
        "where": ", ".join(f"{kind} {n}" for kind, n in tally.mismatches.items() if n),
    }  # fmt: skip
    return found | ({"failed": tally.error} if tally.error else {})
