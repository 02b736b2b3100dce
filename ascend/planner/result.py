"""This module defines a plan: a schedule with its time, its bound and its error."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from ascend.blocking import Blocking
from ascend.kernels.base import Kernel
from ascend.operands import product_is_published
from ascend.pipes.simulate import Timeline, simulate
from ascend.planner.accuracy import error_bound, sampled_error
from ascend.roofline import RooflinePoint, Traffic
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

#: Share of the memory bandwidth from which on busy loads are taken to wait for memory and not for L2.
MEMORY_BOUND = 0.7
#: Share of idle turns of the cores from which on a plan prints a warning.
IDLE_SHARE = 0.1


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class Plan(Result):
    """`Plan` is a schedule with its predicted time, traffic and error.

    Attributes
    ----------
    schedule : Kernel
        The result of :func:`ascend.build_schedule`.
    timeline : Timeline or None
        Simulation of the schedule; None if ranking did not need it.
    analytic_seconds : float
        Time in seconds, computed with closed formulas.
    roofline : RooflinePoint
        Position in the roofline model, computed from the traffic of the schedule; for the kernel "paper" by eq. 11 of Xue et
        al.
    error : float or None
        Relative Frobenius error (eq. 13 of Xue et al., arXiv:2507.23387v4); None if it was not computed.
    error_source : str
        Source of the error, such as "data" or a sample with normally distributed elements.
    traffic : Traffic or None
        Elements moved between memory and L1 for one term (eq. 9 of Xue et al.); None unless the schedule's kernel is
        "paper".
    """

    schedule: Kernel
    timeline: Timeline | None
    analytic_seconds: float
    roofline: RooflinePoint
    error: float | None = None
    error_source: str = ""
    traffic: Traffic | None = None

    @property
    def blocking(self) -> Blocking:
        """Return the sizes of the blocks."""
        return self.schedule.blocking

    @property
    def n_fused(self) -> int:
        """Return N_fused, the number of k blocks whose products are added in L0C before the sum is written back."""
        return self.schedule.n_fused

    @property
    def fusion_efficiency(self) -> float:
        """Return f of eq. 8 of Xue et al., the fraction of L1 that as many A blocks as fit would fill.

        The words of each element and the number of B buffers are those of the plan's kernel.
        """
        s = self.schedule
        return s.blocking.fusion_efficiency(s.placed_on, s.buffering, s.words, s.operand)

    @property
    def seconds(self) -> float:
        """Return the simulated time in seconds, or `analytic_seconds` if nothing was simulated."""
        return self.timeline.seconds if self.timeline else self.analytic_seconds

    @property
    def tflops(self) -> float:
        """Return the speed in FP32-equivalent TFLOP/s, by the simulated time if there is one."""
        s = self.schedule
        return 2e-12 * s.m * s.n * s.k / self.seconds

    @property
    def error_bound(self) -> float | None:
        """Return a bound on the error of each element divided by the same element of |A| |B|.

        :func:`ascend.planner.accuracy.error_bound` derives the bound. The result is None if no publication says how the cube
        adds products of this operand format.
        """
        return error_bound(self.schedule) if product_is_published(self.schedule.operand) else None

    @property
    def bits(self) -> float | None:
        """Return the accuracy in bits, -log2 of the error; None if the error was not computed."""
        if self.error is None:
            return None
        return math.inf if self.error == 0 else -math.log2(self.error)

    @cached_property
    def bound(self) -> tuple[str, float]:
        """Return the unit or path that is busy most, and the share of the time that it is busy."""
        if self.timeline is None:
            return self.roofline.bound, math.nan
        s, chip = self.schedule, self.schedule.placed_on
        busy = self.timeline.utilization
        shares = {
            "cube": busy["CUBE"],
            "vector": busy["VECTOR"],
            "memory": float(s.memory_bytes()) / chip.hbm_bytes_per_second / self.seconds,
            "L1 to L0": busy["MTE1"],
            "launch": s.launch_seconds / self.seconds if s.launches else 0.0,
        }
        name = max(shares, key=lambda key: shares[key])
        if s.launches and busy["MTE2"] > shares[name] and shares["memory"] < MEMORY_BOUND:
            return "L2 loads", min(busy["MTE2"], 1.0)
        return name, min(shares[name], 1.0)

    @cached_property
    def warnings(self) -> list[str]:
        """Return sentences on idle cores and the reason for them."""
        return list(_warnings(self))

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [self.to_dict()]

    def sentences(self) -> list[str]:
        """Return sentences on the schedule, its speed and error, and warnings."""
        s = self.schedule
        speed = f"{self.tflops:.4g} TFLOP/s {'simulated' if self.timeline else 'by the closed forms'}"
        bits = "" if self.bits is None else f", {self.bits:.1f} bits"
        how = f"{s.kernel} kernel, block {self.blocking}, {s.mode}, grid {s.grid}"
        return [f"{s.m} x {s.k} x {s.n} on {s.placed_on.name}: {speed}{bits}; {how}", *self.warnings]

    def to_dict(self) -> dict:
        """Return the plan as a dict of plain data for JSON and CSV."""
        b, s, (bound, busy) = self.blocking, self.schedule, self.bound
        return {
            "kernel": s.kernel, "bm": b.bm, "bk": b.bk, "bn": b.bn, "n_fused": self.n_fused, "mode": s.mode,
            "grid_m": s.grid.m, "grid_k": s.grid.k, "grid_n": s.grid.n, "resident": s.resident,
            "swizzle_offset": s.swizzle.offset, "swizzle_direction": s.swizzle.direction, "merge": s.merge,
            "depth": s.depth, "cores": s.used_cores,
            "fusion_efficiency": self.fusion_efficiency if self.traffic else None,
            "tflops": self.tflops, "seconds": self.seconds, "simulated": self.timeline is not None,
            "analytic_seconds": self.analytic_seconds,
            "cube_efficiency": self.timeline.cube_efficiency if self.timeline else None,
            "traffic_elements": self.traffic.elements if self.traffic else None,
            "memory_bytes": s.memory_bytes(), "operational_intensity": self.roofline.operational_intensity,
            "bound": bound, "busy": busy if busy == busy else None, "waves": s.waves, "k_groups": s.groups,
            "l0c_slots": s.l0c_slots, "chain": s.chain, "bits": self.bits, "error": self.error,
            "error_source": self.error_source, "error_bound": self.error_bound, "warnings": self.warnings,
        }  # fmt: skip


def with_error(plan: Plan, error: float | None, source: str) -> Plan:
    """Return the plan with an error and where it comes from."""
    return Plan(plan.schedule, plan.timeline, plan.analytic_seconds, plan.roofline, error, source, plan.traffic)


@default_fp_state
def plan_of(schedule: Kernel, error: float | None = None, source: str = "given") -> Plan:
    """Return the plan of one schedule, simulated.

    Parameters
    ----------
    schedule : Kernel
        Schedule on a chip.
    error : float, optional
        Relative error (eq. 13 of Xue et al.) of the product; None stands for the error on a sample with normally distributed
        elements.
    source : str
        Source of the error.
    """
    timeline = simulate(schedule)
    seconds = schedule.estimated_seconds() or timeline.seconds
    if error is None:
        error, source = sampled_error()(schedule), "sample of normal elements"
    return with_error(bare_plan(schedule, timeline, seconds), error, source)


def bare_plan(s: Kernel, timeline: Timeline | None, seconds: float | None) -> Plan:
    """Return the plan of a schedule without its error; it is simulated if no closed form gives its seconds."""
    if seconds is None:
        timeline = timeline or simulate(s)
        seconds = timeline.seconds
    return Plan(s, timeline, seconds, s.roofline(), traffic=s.traffic())


def _warnings(p: Plan) -> Iterator[str]:
    s = p.schedule
    idle = s.cores - s.used_cores
    if idle > IDLE_SHARE * s.cores:
        name, share = p.bound
        reason = (
            f"there are only {s.tiles} tiles of C times slices of k"
            if s.tiles < s.cores
            else f"the fastest grid has {s.used_cores} cores"
        )
        why = f"; {name} is {share:.0%} busy, so that more cores would not help" if name == "memory" else ""
        yield f"{idle} of {s.cores} cores are idle: {reason}{why}"
    if s.resident == "none" and s.waves > 1:
        last = s.active_cores(s.waves - 1)
        lost = (s.cores - last) / (s.cores * s.waves)
        if lost > IDLE_SHARE:
            yield (
                f"the last of {s.waves} waves has work for {last} of {s.cores} cores, so {lost:.0%} of the cores' time is "
                "lost"
            )
