"""This module compares a measured profile with the prediction, pipe by pipe, and names the pipe that differs.

Busy times are mean microseconds of a core. A pipe that the prediction does not model has no predicted time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ascend.pipes.simulate import Timeline
from ascend.reports.profile import PIPE_COLUMNS, ProfileRow
from tensorcore_models.results import Result

#: Parameters or causes to check if a pipe is busy for longer, or for less long, than predicted.
POINTS_TO = {
    "CUBE": "mmad_head, or the clock", "MTE1": "l1_to_l0a_rate and l1_to_l0b_rate",
    "MTE2": "l2_read_rate or the memory, or rows that are not aligned", "MTE3": "ub_to_l2_rate and ub_to_ddr_rate",
    "FIXP": "fixpipe_rate, or rows of C that are not aligned", "SCALAR": "small blocks, or the Matmul's template (--template)",
    "VECTOR": "vector_rate, or vector work besides the product",
}  # fmt: skip
#: Share of the measured time below which differences are not explained.
SMALL = 0.05


class PipeTimes(NamedTuple):
    """`PipeTimes` holds a pipe's measured and predicted busy time in seconds; None if one of them is unknown."""

    pipe: str
    measured: float | None
    predicted: float | None

    @property
    def more(self) -> float:
        """Return the seconds that the pipe was busy beyond the prediction, or 0 if one of the times is unknown."""
        return 0.0 if self.measured is None or self.predicted is None else self.measured - self.predicted


@dataclass(frozen=True, repr=False)
class Overlay(Result):
    """`Overlay` is a product of a profile beside its prediction.

    Attributes
    ----------
    row : ProfileRow
        Measured product.
    predicted : float
        Predicted time in seconds.
    pipes : tuple of PipeTimes
        Pipes with a measured or predicted time; empty for a batch, whose total time alone is predicted.
    """

    row: ProfileRow
    predicted: float
    pipes: tuple[PipeTimes, ...] = ()

    @property
    def differs(self) -> bool:
        """Return whether predicted and measured time differ by more than :data:`SMALL` leaves unexplained."""
        return abs(self.row.seconds - self.predicted) >= SMALL * self.row.seconds

    @property
    def off(self) -> list[PipeTimes]:
        """Return the pipes that explain the difference of the times, the largest contribution first."""
        gap = self.row.seconds - self.predicted
        found = [p for p in self.pipes if p.more * gap > 0 and abs(p.more) > SMALL * self.row.seconds]
        return sorted(found, key=lambda pipe: -abs(pipe.more)) if self.differs else []

    def to_rows(self) -> list[dict]:
        """Return one record for each pipe."""
        return [
            {"operator": self.row.name, "pipe": p.pipe, "measured": p.measured, "predicted": p.predicted}
            for p in self.pipes
        ]

    def sentences(self) -> list[str]:
        """Return sentences on the pipe that differs; none if the times agree or no pipe was measured."""
        if not self.differs or all(pipe.measured is None for pipe in self.pipes):
            return []
        gap = self.row.seconds - self.predicted
        if not self.off:
            return [
                f"{1e6 * abs(gap):.1f} us {'more' if gap > 0 else 'less'} than predicted, and no pipe's busy time explains it: "
                "launch_us, sync_cycles_per_block, or another kernel than the one assumed"
            ]
        most, *others = self.off
        also = "".join(f", {p.pipe} {1e6 * abs(p.more):.1f} us" for p in others)
        how = "longer" if gap > 0 else "less long"
        return [
            f"{most.pipe} is busy {1e6 * abs(most.more):.1f} us {how} than predicted ({POINTS_TO[most.pipe]}){also}"
        ]


def overlay(row: ProfileRow, timeline: Timeline) -> Overlay:
    """Compare a measured product with a simulated schedule of it."""
    busy, counters = dict(row.busy), timeline.counters
    # Scalar work is modelled for AscendC's templates only; for other kernels 0 is no prediction.
    modelled = {pipe for pipe in PIPE_COLUMNS if pipe != "SCALAR" or counters[pipe] > 0}
    pipes = tuple(
        PipeTimes(
            pipe, busy[pipe] * row.seconds if pipe in busy else None,
            counters[pipe] * timeline.seconds if pipe in modelled else None,
        )
        for pipe in PIPE_COLUMNS
        if max(busy.get(pipe, 0.0), counters[pipe]) > 0
    )  # fmt: skip
    return Overlay(row, timeline.seconds, pipes)


def whole(found: Sequence[Overlay]) -> list[str]:
    """Return sentences on the total time of a profile, measured and predicted, and on the pipe that differs most."""
    measured = sum(each.row.seconds * each.row.lines for each in found)
    predicted = sum(each.predicted * each.row.lines for each in found)
    lines = sum(each.row.lines for each in found)
    sentences = [
        f"{lines} line(s), {len(found)} different product(s): {1e6 * measured:.5g} us measured, {1e6 * predicted:.5g} us "
        f"predicted ({predicted / measured - 1:+.0%})"
    ]
    more = dict.fromkeys(PIPE_COLUMNS, 0.0)
    for each in found:
        for pipe in each.pipes:
            more[pipe.pipe] += pipe.more * each.row.lines
    most = max(more, key=lambda pipe: abs(more[pipe]))
    if abs(more[most]) > SMALL * measured:
        how = "longer" if more[most] > 0 else "less long"
        sentences.append(
            f"over all products {most} differs most: busy {1e6 * abs(more[most]):.5g} us {how} than predicted "
            f"({POINTS_TO[most]})"
        )
    return sentences


def overlays(
    rows: Sequence[ProfileRow], simulated: Callable[[ProfileRow], Timeline], batch_seconds: Callable[[ProfileRow], float],
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[Overlay], list[str]]:  # fmt: skip
    """Compare every product with its prediction, and name the products that cannot be predicted, with the reason.

    Parameters
    ----------
    rows : sequence of ProfileRow
        Products; merge equal ones first (:func:`ascend.reports.profile.together`).
    simulated : callable
        Function that returns the simulated schedule of a single product.
    batch_seconds : callable
        Function that returns the predicted seconds of a batch or of groups.
    progress : callable, optional
        Function that is called with (done, total) products.
    """
    found, skipped = [], []
    for number, row in enumerate(rows, 1):
        try:
            found.append(Overlay(row, batch_seconds(row)) if row.products else overlay(row, simulated(row)))
        except ValueError as error:
            skipped.append(f"{row.name}: {error}")
        if progress:
            progress(number, len(rows))
    return found, skipped
