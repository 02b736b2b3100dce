"""This module computes the Pareto front of time and accuracy, with the time of each additional correct bit.

The choices that change bits are varied one at a time from the fastest schedule of each kernel: terms, their
combination, s_b, the length of the chain in L0C (bk * N_fused), split-k, the operand's format, the vector units. Each
point is simulated and its error measured. A point is on the front if no other point is both faster and more accurate.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.kernels.base import Kernel
from ascend.planner.accuracy import Distribution, ErrorOf, data_error, sampled_error
from ascend.planner.plan import plan
from ascend.planner.result import Plan, plan_of, with_error
from ascend.schedule import variant
from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

#: (terms, mode) of kernels on FP16 words.
KERNELS = ((1, "termwise"), (3, "termwise"), (3, "elementwise"), (3, "termwise_inplace"), (4, "termwise"))
#: Values of s_b of eq. 7 that are tried; the time does not depend on s_b.
SCALE_EXPONENTS = (0, 6, 12)
#: Numbers of parts into which a chain is cut.
CHAIN_PARTS = (2, 4, 8, 16)
SPLITS = (2, 4, 8)
#: Least gain in bits of a point of the front over the faster one before it.
LEAST_GAIN = 0.1
#: Operand formats of one pass, if the chip has them.
OPERANDS = ("bf16", "hf32", "fp32")


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class Point(Result):
    """`Point` is a schedule with its time and its error.

    Attributes
    ----------
    plan : Plan
        A plan of :func:`ascend.plan`.
    scale_exponent : int or None
        Scale exponent s_b of the second words; None if operands are not split into words.
    on_front : bool
        Whether no other point is faster and at least as accurate.
    seconds_per_bit : float or None
        Additional time in seconds for each additional bit, compared with the next faster point of the front; None for the
        fastest point and for points that are not on the front.
    """

    plan: Plan
    scale_exponent: int | None
    on_front: bool = False
    seconds_per_bit: float | None = None

    @property
    def bits(self) -> float:
        """Return the accuracy in bits, -log2 of the error."""
        bits = self.plan.bits
        return math.inf if bits is None else bits

    def label(self) -> str:
        """Return a short label of the point."""
        s = self.plan.schedule
        if not s.on_cube:
            return f"vector units, {s.operand}" + (f", split {len(s.k_slices)}" if len(s.k_slices) > 1 else "")
        words = f"{s.operand}, 1 term" if s.terms == 1 else f"{s.terms} terms {s.mode}, s_b = {self.scale_exponent}"
        parts = [words, f"chain {s.chain}"]
        if len(s.k_slices) > 1:
            parts.append(f"split {len(s.k_slices)}")
        return ", ".join(parts)

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [self.to_dict()]

    def sentences(self) -> list[str]:
        """Return a sentence on the point, its speed and its accuracy in bits."""
        return [f"{self.label()}: {self.plan.tflops:.4g} TFLOP/s, {self.bits:.1f} bits"]

    def to_dict(self) -> dict:
        """Return the point as a dict of plain data for JSON and CSV."""
        return self.plan.to_dict() | {
            "label": self.label(), "terms": self.plan.schedule.terms, "operand": self.plan.schedule.operand,
            "scale_exponent": self.scale_exponent, "on_front": self.on_front, "seconds_per_bit": self.seconds_per_bit,
        }  # fmt: skip


@default_fp_state
@integer_arguments("m", "k", "n")
def pareto(
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    *,
    data: tuple | None = None,
    distribution: Distribution = "normal",
    progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """Return the points of all tried schedules for C = A B, fastest first, with the Pareto front marked.

    Parameters
    ----------
    m, k, n : int
        Sizes: A is m x k, B is k x n.
    chip : Chip or str
        A chip or its name.
    data : (a, b), optional
        FP32 arrays; the error is then measured on their product, else on a sample of `distribution`.
    distribution : {"normal", "uniform", "positive"}
        Distribution of the sample's elements.
    progress : callable, optional
        Function that is called with the number of schedules that are done and with their total number.

    Raises
    ------
    ValueError
        See :func:`ascend.plan`.
    """
    chip = get_chip(chip)
    error_of = data_error(*data) if data is not None else sampled_error(distribution)
    source = "data" if data is not None else f"sample of {distribution} elements"
    schedules = list(_schedules(m, k, n, chip))
    points: list[Point] = []
    for number, schedule in enumerate(schedules):
        points.extend(_points(schedule, error_of, source))
        if progress:
            progress(number + 1, len(schedules))
    return mark_front(points)


def _points(schedule: Kernel, error_of: ErrorOf, source: str) -> Iterator[Point]:
    timed = plan_of(schedule, 0.0)
    if schedule.terms == 1:
        yield Point(with_error(timed, error_of(schedule), source), None)
        return
    # FIXPIPE adds to C in memory and does not scale its summands.
    unscaled = schedule.combination.in_place and schedule.placed_on.fixpipe
    for exponent in (0,) if unscaled else SCALE_EXPONENTS:
        yield Point(with_error(timed, error_of(schedule, scale_exponent=exponent), source), exponent)


def _schedules(m: int, k: int, n: int, chip: Chip) -> Iterator[Kernel]:
    """Yield the fastest schedule of each kernel, and the same with other chains and slices."""
    seen = set()

    def fresh(schedule: Kernel) -> bool:
        key = (schedule.kernel, schedule.mode, schedule.blocking, schedule.grid, schedule.resident, schedule.sums)
        if key in seen:
            return False
        seen.add(key)
        return True

    options: list[dict] = [
        {"terms": terms, "mode": None if mode == "termwise" else mode} for terms, mode in KERNELS
    ] + [{"terms": 1, "operand": operand} for operand in OPERANDS if _takes(chip, operand)]
    for option in options:
        try:
            found = plan(m, k, n, chip, top=12, simulated=8, error_of=_no_error, **option)
        except ValueError:  # no block of this kernel fits
            continue
        best: dict[str, Kernel] = {}
        for p in found:
            best.setdefault(p.schedule.kernel, p.schedule)
        for schedule in best.values():
            if fresh(schedule):
                yield schedule
        cube = best.get("grid")
        if cube is None:
            continue
        for parts in CHAIN_PARTS:
            shorter = -(-cube.n_fused // parts)
            if shorter < cube.n_fused and cube.blocking.bk * cube.n_fused > cube.blocking.bk:
                changed = variant(cube, n_fused=shorter)
                if fresh(changed):
                    yield changed
        for split in SPLITS:
            if split > min(chip.cores, -(-k // cube.blocking.bk)):
                continue
            try:
                (halved,) = plan(m, k, n, chip, top=1, simulated=4, split=split, error_of=_no_error, **option)
            except ValueError:
                continue
            if halved.schedule.on_cube and fresh(halved.schedule):
                yield halved.schedule


def _takes(chip: Chip, operand: str) -> bool:
    try:
        chip.cube_step_k(operand)
    except ValueError:
        return False
    return True


def _no_error(schedule: Kernel) -> float:
    return 0.0


def mark_front(points: list[Point]) -> list[Point]:
    """Return the points, fastest first, with the front marked and the time of each additional bit."""
    ordered = sorted(points, key=lambda point: (point.plan.seconds, -point.bits))
    marked: list[Point] = []
    last: Point | None = None
    for point in ordered:
        if last is not None and point.bits < last.bits + LEAST_GAIN:
            marked.append(Point(point.plan, point.scale_exponent))
            continue
        cost = None
        if last is not None and math.isfinite(point.bits):
            cost = (point.plan.seconds - last.plan.seconds) / (point.bits - last.bits)
        last = Point(point.plan, point.scale_exponent, True, cost)
        marked.append(last)
    return marked
