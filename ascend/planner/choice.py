"""This module defines which plans a caller wants: how they are ranked, how accurate they are, and how many there are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ascend.kernels.base import Kernel
from ascend.planner.accuracy import DISTRIBUTIONS, Distribution, data_error, sampled_error
from ascend.planner.kinds import PLAN_KERNELS, PLANNERS, Planner
from ascend.roofline import check_sizes
from ascend.schedule_options import describes_options, option
from ascend.tile_schedule import LARGEST_SIZE, TileSchedule
from tensorcore_models.integers import integer_fields

Rank = Literal["time", "traffic", "analytic"]
RANKS = ("time", "traffic", "analytic")
#: Kernels that a plan may use (:data:`PLAN_KERNELS`).
PlanKernel = Literal["grid", "paper"]
#: Limit on the FP32 elements of A, B and C together: 64 GiB, the largest memory of a chip here (910B).
MOST_ELEMENTS = 2**34


@describes_options
@dataclass(frozen=True, kw_only=True)
class Choice:
    """`Choice` lists the options of :func:`ascend.plan` that choose among plans."""

    rank: Rank = option(
        "time", "rank by simulated time (of the analytically best `simulated`), by traffic (eq. 9 for the paper's kernel, "
        "bytes from and to memory for grids), or by the closed forms alone", RANKS,
    )  # fmt: skip
    max_error: float | None = option(None, "leave out schedules whose relative error (eq. 13) is larger")
    data: tuple | None = option(
        None, "FP32 arrays (a, b), m x k and k x n: errors are measured on this product against "
        "FP64; without `data`, on a sample of `distribution`"
    )  # fmt: skip
    top: int = option(10, "number of plans that are returned")
    kernel: PlanKernel = option(
        "grid",
        "grid: grids of cores, and the vector units for few rows or columns; paper: the paper's kernel",
        PLAN_KERNELS,
    )
    split: int | None = option(None, "number of slices of k; the planner searches it if None")
    simulated: int | None = option(None, 'number of schedules that are simulated in each mode for rank "time"')
    distribution: Distribution = option(
        "normal", "distribution of the elements in the sampled error", tuple(DISTRIBUTIONS)
    )
    error_of: Callable[[Kernel], float] | None = option(
        None,
        "function that gives the error of a schedule, in place of `data` or a sample; it must depend on bk, n_fused and "
        "slices of k only",
    )
    progress: Callable[[int, int], None] | None = option(None, "function that is called with (done, total) simulations")

    def __post_init__(self):
        integer_fields(self, *(x for x in ("top", "split", "simulated") if getattr(self, x) is not None))
        for name, known in (("kernel", PLAN_KERNELS), ("rank", RANKS), ("distribution", tuple(DISTRIBUTIONS))):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {getattr(self, name)!r}")
        if self.top < 1 or (self.simulated is not None and self.simulated < 1):
            raise ValueError(f"top and simulated must be at least 1, got {self.top} and {self.simulated}")
        if self.max_error is not None and not self.max_error > 0:
            raise ValueError(f"max_error must be above 0, got {self.max_error}")

    def check_data(self, m: int, k: int, n: int) -> None:
        """Raise ValueError if the shapes of the data are not those of the product."""
        if self.data is not None:
            shapes = tuple(np.shape(x) for x in self.data)
            if shapes != ((m, k), (k, n)):
                raise ValueError(f"data must have the shapes {(m, k)} and {(k, n)}, got {shapes}")

    @cached_property
    def measured(self) -> tuple[Callable[[Any], float], str]:
        """Return the function for the error of a schedule, and the source of the error in words."""
        if self.error_of:
            return self.error_of, "given"
        if self.data is not None:
            return data_error(*self.data), "data"
        return sampled_error(self.distribution), f"sample of {self.distribution} elements"

    def error(self, schedule: TileSchedule) -> float:
        """Return the error of a schedule's product (eq. 13)."""
        return self.measured[0](schedule)

    @property
    def planner(self) -> Planner:
        """Return the planner of the kind of kernel."""
        return PLANNERS[self.kernel]

    @property
    def count(self) -> int:
        """Return the number of schedules that are considered in each mode."""
        return max(self.simulated or self.planner.simulated, self.top) if self.rank == "time" else self.top


def check_matrices_fit(m: int, k: int, n: int) -> None:
    """Raise ValueError for sizes below 1, and for matrices that exceed the memory of every chip."""
    check_sizes(m, k, n)
    if max(m, k, n) > LARGEST_SIZE or m * k + k * n + m * n > MOST_ELEMENTS:
        raise ValueError(
            f"{m} x {k} x {n} needs {4 * (m * k + k * n + m * n) / 2**30:.0f} GiB for A, B and C, which exceeds any "
            f"chip's memory: take a smaller size"
        )
