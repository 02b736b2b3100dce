"""This module finds the fastest plan of each way to compute a product, and the ways that reach a wanted accuracy.

The default accuracy is that of FP32 in chains of :data:`FP32_CHAIN` products, on the same data or sample as the plans;
it is the baseline of every verdict of mpgemm.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.numeric.baseline import FP32_CHAIN, MARGIN
from ascend.planner.accuracy import UNIT_ROUNDOFF
from ascend.planner.choice import Choice, check_matrices_fit
from ascend.planner.kinds import HOPELESS
from ascend.planner.plan import plan
from ascend.planner.result import Plan
from ascend.term_modes import Mode, combination
from ascend.tile_schedule import TileSchedule
from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result


class PlannedWay(NamedTuple):
    """`PlannedWay` is one way to compute an FP32 product on a chip.

    It holds the operand format, the number of terms, the mode that combines the terms (None: the planner chooses one), and
    whether vector units compute the product.
    """

    operand: str
    terms: int
    mode: Mode | None = None
    on_vector_units: bool = False

    def __str__(self) -> str:
        if self.on_vector_units:
            return f"{self.operand} on the vector units"
        if self.terms == 1:
            return self.operand
        return f"{self.terms} terms of {self.operand}" + (f", {self.mode}" if self.mode else "")


#: Ways that are compared. INT8 and MXFP8 are left out because they need scales of the user's own.
WAYS = (
    PlannedWay("fp16", 1), PlannedWay("bf16", 1), PlannedWay("hf32", 1), PlannedWay("fp32", 1), PlannedWay("fp16", 3),
    PlannedWay("fp16", 3, "elementwise"), PlannedWay("fp16", 3, "termwise_inplace"), PlannedWay("fp16", 4),
)  # fmt: skip
ON_VECTOR_UNITS = PlannedWay("fp32", 1, None, True)


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class Advice(Result):
    """`Advice` holds the fastest plan of each way to compute a product, fastest first.

    Attributes
    ----------
    plans : tuple of (PlannedWay, Plan)
        Fastest plan of each way that the chip supports. If this plan does not reach the accepted accuracy, a slower plan of
        the way is also listed if its shorter chains of sums reach the accuracy.
    wanted : float
        Wanted accuracy in bits.
    asked : bool
        Whether the caller gave `wanted`. If not, `wanted` is the accuracy of FP32, and plans with up to :data:`MARGIN` bits
        fewer are accepted.
    """

    plans: tuple[tuple[PlannedWay, Plan], ...]
    wanted: float
    asked: bool

    @property
    def least(self) -> float:
        """Return the smallest accepted accuracy in bits."""
        return self.wanted - (0.0 if self.asked else MARGIN)

    def reaches(self, candidate: Plan) -> bool:
        """Return whether a plan reaches the accepted accuracy."""
        return candidate.bits is not None and candidate.bits >= self.least

    def limit_of(self, way: PlannedWay) -> float | None:
        """Return the `max_error` with which :func:`ascend.plan` first returns the plan of `way` that reaches the accuracy.

        The result is None if no limit is needed, because the way's fastest plan reaches the accepted accuracy, or if no plan
        of the way reaches it.
        """
        reached = {self.reaches(found) for other, found in self.plans if other == way}
        return 2.0**-self.least if reached == {True, False} else None

    @property
    def best(self) -> tuple[PlannedWay, Plan] | None:
        """Return the way and the plan that reach the accuracy fastest; None if no plan reaches it."""
        return next(((way, found) for way, found in self.plans if self.reaches(found)), None)

    def to_rows(self) -> list[dict]:
        """Return one row for each plan, with its way, time and bits."""
        return [
            {"way": str(way), "operand": way.operand, "terms": way.terms, "seconds": found.seconds, "bits": found.bits,
             "reaches": self.reaches(found), "kernel": found.schedule.kernel, "block": str(found.blocking),
             "mode": found.schedule.mode}
            for way, found in self.plans
        ]  # fmt: skip

    def sentences(self) -> list[str]:
        """Return sentences on the recommended plan and its alternatives."""
        asked = (
            f"{self.wanted:.1f} bits" if self.asked else f"the {self.wanted:.1f} bits of FP32 in chains of {FP32_CHAIN}"
        )
        if self.best is None:
            way, found = max(self.plans, key=lambda pair: pair[1].bits or 0.0)
            return [f"no plan reaches {asked}: {way} has the most, {found.bits:.1f} bits in {_us(found)}"]
        best, chosen = self.best
        within = "" if self.asked else f" (within {MARGIN:g})"
        lines = [f"fastest plan that reaches {asked}{within}: {best}, {_us(chosen)}, {chosen.bits:.1f} bits"]
        for way, found in self.plans:
            if found is chosen or not self.reaches(found):
                continue
            lines.append(
                f"these bits are also reached by {way}, in {_us(found)} ({found.seconds / chosen.seconds:.2f} times as long)"
            )
        faster = [(way, found) for way, found in self.plans if found.seconds < chosen.seconds]
        if faster:
            way, found = max(faster, key=lambda pair: (round(pair[1].bits or 0.0, 1), -pair[1].seconds))
            lines.append(f"faster, with fewer bits: {way}, {_us(found)}, {found.bits:.1f} bits")
        return lines


def _us(found: Plan) -> str:
    return f"{1e6 * found.seconds:.4g} us"


@default_fp_state
@integer_arguments("m", "k", "n")
def advise(
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    *,
    bits: float | None = None,
    ways: tuple[PlannedWay, ...] = WAYS,
    best_only: bool = False,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Advice:
    """Compare the ways to compute C = A B (A m x k, B k x n) on a chip.

    Parameters
    ----------
    m, k, n : int
        Sizes.
    chip : Chip or str
        A chip or its name.
    bits : float, optional
        Wanted accuracy of the result in bits (-log2 of the relative error, eq. 13 of Xue et al.); by default the accuracy of
        FP32.
    ways : tuple of PlannedWay
        Ways that are compared; ways that the chip does not support are left out.
    best_only : bool
        Skip the simulation of ways that closed formulas show to be slower than the best way. The best plan is the same and
        is found sooner.
    progress : callable, optional
        Function that is called with the number of ways that are done and with their total number.
    **options
        Options of :func:`ascend.plan`, such as layout. Errors are measured on the option data, or else on a sample of the
        option distribution. The option presplit applies only to ways of several terms.

    Raises
    ------
    ValueError
        See :func:`ascend.plan`; also if the chip supports none of `ways`.
    """
    chip = get_chip(chip)
    check_matrices_fit(m, k, n)
    measured_on = Choice(**{name: options[name] for name in ("data", "distribution") if name in options})
    measured_on.check_data(m, k, n)
    error_of = measured_on.error
    presplit = options.pop("presplit", "")
    wanted = float(bits if bits is not None else -np.log2(fp32_error(m, k, n, error_of)))
    least = wanted - (0.0 if bits is not None else MARGIN)
    found: list[tuple[PlannedWay, Plan]] = []
    refused = "ways is empty: give at least one PlannedWay"
    for number, way in enumerate(ways):
        given = options | {"operand": way.operand, "mode": way.mode, "top": 1, "error_of": error_of}
        if way.terms > 1:
            given["presplit"] = presplit
        if way.mode and combination(way.mode).in_place and chip.fixpipe:
            refused = (
                f"{chip.name} cannot run the mode {way.mode!r}, because its FIXPIPE adds to C in memory, but does not "
                "scale the small terms: give another way"
            )
            continue
        try:
            if best_only and _is_hopeless(_sorted(found, wanted, bits is not None), m, k, n, chip, way, given):
                continue
            plans = [plan(m, k, n, chip, way.terms, **given)[0]]
            plans += _in_shorter_chains(plans[0], least, m, k, n, chip, way, given)
        except ValueError as error:
            refused = str(error)
        else:
            named = [(way if each.schedule.on_cube else ON_VECTOR_UNITS, each) for each in plans]
            known = {other for other, _ in found}
            found += [(name, each) for name, each in named if name not in known]
        if progress:
            progress(number + 1, len(ways))
    if not found:
        raise ValueError(refused)
    return _sorted(found, wanted, bits is not None)


def _sorted(found: list[tuple[PlannedWay, Plan]], wanted: float, asked: bool) -> Advice:
    return Advice(tuple(sorted(found, key=lambda pair: pair[1].seconds)), wanted, asked)


def _in_shorter_chains(
    fastest: Plan, least: float, m: int, k: int, n: int, chip: Chip, way: PlannedWay, options: dict
) -> list[Plan]:
    """Return the fastest plan of a way that reaches `least` bits, if its fastest plan lacks bits that shorter chains may give.

    Operands of one word whose rounding alone costs the bits reach them in no chain.
    """
    most = 2.0**-least
    rounds_too_much = way.terms == 1 and UNIT_ROUNDOFF[way.operand] > most
    if fastest.bits is None or fastest.bits >= least or rounds_too_much or options.get("max_error") is not None:
        return []
    try:
        return [plan(m, k, n, chip, way.terms, **options | {"max_error": most})[0]]
    except ValueError:  # no block has so small an error
        return []


def _is_hopeless(known: Advice, m: int, k: int, n: int, chip: Chip, way: PlannedWay, options: dict) -> bool:
    """Return whether a way, by the closed forms, is too slow to beat the best plan so far."""
    if known.best is None:
        return False
    first = plan(m, k, n, chip, way.terms, **options | {"rank": "analytic"})[0]
    return first.analytic_seconds > HOPELESS * known.best[1].seconds


def fp32_error(m: int, k: int, n: int, error_of: Callable[[TileSchedule], float]) -> float:
    """Return the error of the FP32 baseline, chains of :data:`FP32_CHAIN` products."""
    whole = TileSchedule.unblocked(m=m, k=k, n=n, terms=1)
    return error_of(replace(whole, operand="fp32", blocking=replace(whole.blocking, bk=FP32_CHAIN)))
