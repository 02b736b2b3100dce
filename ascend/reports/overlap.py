"""This module plans a product in parts of rows whose collective communication overlaps with the product of the next part.

In the model, communication takes a latency and a time for each byte (Hockney, Parallel Computing 20, 1994), fitted to
measured rows. Product and communication of a part follow one another; those of different parts run at the same time (a
flow shop of two machines, Johnson 1954), as in the vendor's fused operators, which cut along M (Huawei, AscendC, MC2
operators, atlas_ascendc_10_10034). Limits of the model: both run at full speed at the same time and share neither
memory nor cores; each part is a launch of its own; C of 16-bit operands is 16 bits wide. Format of the rows: HCCL
Performance Tester (CANN 8.5, HCCLpertest_16_0006).
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ascend.blocking import ACCUMULATOR_BYTES
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.operand_formats import ALIGNMENT, FORMATS
from ascend.planner.plan import plan
from ascend.reports.profile_table import text_of
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

#: all-reduce and reduce-scatter of C follow the product, all-gather of A precedes it.
Collective = Literal["all-reduce", "reduce-scatter", "all-gather"]
COLLECTIVES = ("all-reduce", "reduce-scatter", "all-gather")
EXPECTED = "the output of hccl_test, or lines of bytes and microseconds"
#: Relative error (rms) above which the rows do not follow one latency and one rate (chosen).
POOR = 0.2
#: Relative standard error above which the rows do not determine a number (chosen).
UNTOLD = 0.5
#: Largest number of parts that are tried.
MOST_PARTS = 16
MOST_WORDS = 12  #: most columns of a row of hccl_test, which has 4 or a few more


class MeasuredCollective(NamedTuple):
    """`MeasuredCollective` is a measured collective: bytes of one NPU, and seconds."""

    bytes: float
    seconds: float


class Link(NamedTuple):
    """`Link` holds the latency and rate of a collective, fitted to rows."""

    latency: float  #: latency in seconds
    rate: float  #: bytes per second; inf if the rows do not determine it
    rms: float  #: root mean square of the relative errors of the rows
    latency_error: float  #: standard errors of both; nan if there are no more rows than parameters
    rate_error: float
    sizes: tuple[float, float]  #: smallest and largest bytes of a row

    def seconds(self, size: float) -> float:
        """Return the time in seconds of a collective of so many bytes."""
        return self.latency + size / self.rate

    def sentences(self) -> list[str]:
        """Return sentences on the fitted numbers, and on those that the rows do not determine."""
        errors = [
            "" if math.isnan(error) else f" +- {error:.2g}"
            for error in (1e6 * self.latency_error, self.rate_error / 1e9)
        ]
        found = [
            f"communication: {1e6 * self.latency:.4g}{errors[0]} us and {self.rate / 1e9:.4g}{errors[1]} GB/s, {self.rms:.1%} "
            "rms error on the rows"
        ]
        if self.rms > POOR:
            found.append(
                "the rows do not follow one latency and one rate (HCCL changes its algorithm with the size): give rows of "
                "sizes near yours"
            )
        for name, value, error in (
            ("latency", self.latency, self.latency_error), ("rate", self.rate, self.rate_error),
        ):  # fmt: skip
            if value <= 0 or math.isinf(value) or error > UNTOLD * value:
                found.append(
                    f"the rows do not determine the {name}: add {'smaller' if name == 'latency' else 'larger'} sizes"
                )
        return found


class Cut(NamedTuple):
    """`Cut` is a product in so many parts: the time of all, and of products and communication alone."""

    parts: int
    seconds: float
    product: float
    communication: float

    @property
    def exposed(self) -> float:
        """Return the seconds of communication that no product hides."""
        return self.seconds - self.product


def read_collective(path: str | Path) -> list[MeasuredCollective]:
    """Return the rows of hccl_test's output (between "|"), or lines of bytes and microseconds, separated by commas or spaces.

    Raises
    ------
    ValueError
        If the file has no such lines, or a row whose check failed.
    OSError
        If it cannot be read.
    """
    path = Path(path)
    rows = []
    for number, line in enumerate(text_of(path, path.read_bytes(), EXPECTED).splitlines(), 1):
        words = [word for word in re.split(r"[|,;\s]+", line.strip()) if word]
        if len(words) < 2 or not re.fullmatch(r"[\d.]+(e[+-]?\d+)?", words[0], re.IGNORECASE):
            continue  # headings and other output of the tool
        given = repr(line.strip()[:60])
        try:
            size, microseconds = float(words[0]), float(words[1])
        except ValueError:
            raise ValueError(f"{path}, line {number}: expected bytes and microseconds, got {given}") from None
        if len(words) > MOST_WORDS:
            raise ValueError(f"{path}, line {number}: expected {EXPECTED}, got {len(words)} columns")
        if not (0 < size < math.inf and 0 < microseconds < math.inf):
            raise ValueError(f"{path}, line {number}: bytes and microseconds must be above 0, got {given}")
        if "failed" in (word.lower() for word in words[2:]):
            raise ValueError(
                f"{path}, line {number}: hccl_test's check of the result failed in this line: {given}; measure again or remove "
                "the line"
            )
        rows.append(MeasuredCollective(size, 1e-6 * microseconds))
    if not rows:
        raise ValueError(f"{path} holds no measurement: expected {EXPECTED}")
    return rows


def fit_link(rows: Sequence[MeasuredCollective]) -> Link:
    """Fit a latency and a rate, neither below 0, by least squares of the relative errors.

    Raises
    ------
    ValueError
        If all rows have one size, which does not determine two numbers.
    """
    sizes = [row.bytes for row in rows]
    if len(set(sizes)) < 2:
        raise ValueError(
            f"fitting a latency and a rate needs rows of at least two sizes, got {len(set(sizes))}: measure another size"
        )
    # For each row, 1 = (latency + bytes / rate) / seconds.
    ones, loads = [1 / row.seconds for row in rows], [row.bytes / row.seconds for row in rows]
    aa, bb = math.fsum(x * x for x in ones), math.fsum(x * x for x in loads)
    ab, a, b = math.fsum(map(float.__mul__, ones, loads)), math.fsum(ones), math.fsum(loads)
    determinant = aa * bb - ab * ab
    latency, per_byte = (a * bb - b * ab) / determinant, (b * aa - a * ab) / determinant
    if latency < 0:
        latency, per_byte = 0.0, b / bb
    elif per_byte <= 0:
        latency, per_byte = a / aa, 0.0
    errors = [(latency + per_byte * row.bytes) / row.seconds - 1 for row in rows]
    squares = math.fsum(x * x for x in errors)
    free = len(rows) - 2
    variance = squares / free if free > 0 else math.nan
    rate = 1 / per_byte if per_byte > 0 else math.inf
    return Link(
        latency, rate, math.sqrt(squares / len(rows)), math.sqrt(variance * bb / determinant),
        math.sqrt(variance * aa / determinant) * rate * rate if per_byte > 0 else math.inf, (min(sizes), max(sizes)),
    )  # fmt: skip


def makespan(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the time of jobs that pass two machines in order, each taking the next as soon as it is free."""
    one = both = 0.0
    for a, b in zip(first, second, strict=True):
        one += a
        both = max(one, both) + b
    return both


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class OverlapPlan(Result):
    """`OverlapPlan` holds the cuts of a product whose communication overlaps with it.

    Attributes
    ----------
    m, k, n : int
        Sizes on one NPU.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
        Collective: of C after the product, or of A before it.
    size : float
        Total bytes of one NPU that are communicated.
    link : Link
        Fitted latency and rate of the communication.
    cuts : tuple of Cut
        Cuts into 1, 2, ... parts.
    """

    m: int
    k: int
    n: int
    collective: Collective
    size: float
    link: Link
    cuts: tuple[Cut, ...]

    @property
    def best(self) -> Cut:
        """Return the fastest cut; of equally fast cuts, the one with the fewest parts."""
        return min(self.cuts, key=lambda cut: (cut.seconds, cut.parts))

    def to_rows(self) -> list[dict]:
        """Return one record for each number of parts."""
        return [cut._asdict() | {"exposed": cut.exposed} for cut in self.cuts]

    def sentences(self) -> list[str]:
        """Return sentences on the fastest cut, its gain, and the numbers that the rows do not determine."""
        one, best = self.cuts[0], self.best
        found = self.link.sentences()
        part = self.size / best.parts
        if not self.link.sizes[0] <= part <= self.link.sizes[1]:
            found.append(
                f"a part's {part:.4g} bytes lie outside the rows' range of {self.link.sizes[0]:.4g} to "
                f"{self.link.sizes[1]:.4g} bytes"
            )
        if best.parts == 1:
            return [*found, f"no cut is faster than one part: {1e6 * one.seconds:.4g} us"]
        return [
            *found,
            f"fastest in {best.parts} parts of {-(-self.m // best.parts)} rows: {1e6 * best.seconds:.4g} us, "
            f"{1e6 * one.seconds:.4g} in one part ({one.seconds / best.seconds - 1:+.0%} speed); {1e6 * best.exposed:.4g} of "
            f"{1e6 * best.communication:.4g} us of communication stay exposed",
        ]


@default_fp_state
def plan_overlap(
    m: int, k: int, n: int, chip: Chip | str, rows: Sequence[MeasuredCollective], collective: Collective = "all-reduce",
    ranks: int | None = None, most_parts: int = MOST_PARTS, progress: Callable[[int, int], None] | None = None, **options: Any,
) -> OverlapPlan:  # fmt: skip
    """Return the cuts of a product into 1 to `most_parts` parts of rows, each planned, with their communication.

    Parameters
    ----------
    m, k, n : int
        Sizes on one NPU; for an all-gather, those after A was gathered.
    chip : Chip or str
        Chip on which the products run.
    rows : sequence of MeasuredCollective
        Measured collectives of the same kind on the same NPUs: bytes of one NPU and seconds.
    collective : {"all-reduce", "reduce-scatter", "all-gather"}
        Collective: C is reduced after the product, or A gathered before it.
    ranks : int, optional
        Number of NPUs that A is gathered from, each of which sends its share.
    most_parts : int
        Largest number of parts; fewer if a part would have less than 16 rows.
    progress : callable, optional
        Function that is called with (planned cuts, all cuts).
    **options
        Options of :func:`ascend.plan`.

    Raises
    ------
    ValueError
        If the collective is unknown, `ranks` is missing for an all-gather, the rows have one size, or as for
        :func:`ascend.plan`.
    """
    if collective not in COLLECTIVES:
        raise ValueError(f"collective must be one of {', '.join(COLLECTIVES)}, got {collective!r}")
    gathers = collective == "all-gather"
    if gathers != (ranks is not None):
        raise ValueError(
            "an all-gather needs ranks, the number of NPUs: give at least 2"
            if gathers
            else "got ranks, which only an all-gather takes: leave ranks out"
        )
    if ranks is not None and ranks < 2:
        raise ValueError(f"ranks must be at least 2, got {ranks}")
    chip, link = get_chip(chip), fit_link(rows)
    options = {"terms": 1, "operand": "fp16", "error_of": lambda schedule: 0.0, **options}
    row_bytes = k * FORMATS[options["operand"]].bits / 8 / (ranks or 1) if gathers else n * _bytes_of_c(options)
    cuts = []
    counts = [parts for parts in range(1, most_parts + 1) if parts == 1 or m // parts >= ALIGNMENT]
    for parts in counts:
        heights = [m // parts + (part < m % parts) for part in range(parts)]
        times = {height: plan(height, k, n, chip, top=1, simulated=4, **options)[0].seconds for height in set(heights)}
        products = [times[height] for height in heights]
        moves = [link.seconds(height * row_bytes) for height in heights]
        seconds = makespan(moves, products) if gathers else makespan(products, moves)
        cuts.append(Cut(parts, seconds, math.fsum(products), math.fsum(moves)))
        if progress:
            progress(len(cuts), len(counts))
    return OverlapPlan(m, k, n, collective, m * row_bytes, link, tuple(cuts))


def _bytes_of_c(options: dict[str, Any]) -> int:
    """Return the bytes of an element of C: 2 for 16-bit operands of one term, else those of a sum."""
    short = FORMATS[options["operand"]].bits <= 16 and options["operand"] != "int8"
    return 2 if options["terms"] == 1 and short else ACCUMULATOR_BYTES
