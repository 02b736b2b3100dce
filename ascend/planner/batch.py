"""This module plans batches and grouped products: several products with one k and n, on groups of cores.

The products are dealt, longest first, to groups of equally many cores, each of which has its share of memory bandwidth
and of L2. One launch starts them all. The planner tries every number of cores per group that divides the chip's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.planner.plan import plan
from ascend.planner.result import Plan
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

#: Largest number of products in a batch.
MOST_PRODUCTS = 2**16


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class BatchPlan(Result):
    """`BatchPlan` is a plan of several products on groups of cores.

    Attributes
    ----------
    rows : tuple of int
        Rows m of each product.
    groups, cores : int
        Number of groups, and number of cores in each group.
    plans : dict of int to Plan
        Plan on one group for each m.
    seconds : float
        Time of all products together.
    """

    rows: tuple[int, ...]
    groups: int
    cores: int
    plans: dict[int, Plan]
    seconds: float

    @property
    def tflops(self) -> float:
        """Return FP32-equivalent TFLOP/s of all products."""
        one = next(iter(self.plans.values())).schedule
        return 2e-12 * sum(self.rows) * one.k * one.n / self.seconds

    def to_rows(self) -> list[dict]:
        """Return one row for each m: the number of products with this m, and their plan."""
        return [
            {"products": self.rows.count(m), "m": m, "groups": self.groups, "cores": self.cores} | found.to_dict()
            for m, found in self.plans.items()
        ]

    def sentences(self) -> list[str]:
        """Return sentences on how the products are divided among the cores, and their time."""
        return [
            f"{len(self.rows)} products on {self.groups} group(s) of {self.cores} cores: {1e6 * self.seconds:.4g} us, "
            f"{self.tflops:.4g} TFLOP/s"
        ]


@default_fp_state
def plan_batch(rows: Sequence[int], k: int, n: int, chip: Chip | str, **options: Any) -> list[BatchPlan]:
    """Return plans of several products that are dealt to groups of equally many cores, fastest first.

    There is one plan for each possible number of cores in a group.

    Parameters
    ----------
    rows : sequence of int
        Number of rows m of each product; the numbers may differ.
    k, n : int
        Sizes k and n of all products.
    chip : Chip or str
        A chip or its name.
    **options
        Options of :func:`ascend.plan`.

    Raises
    ------
    ValueError
        If there is no product or there are too many products; also in the cases of :func:`ascend.plan`.
    """
    chip = get_chip(chip)
    if not 1 <= len(rows) <= MOST_PRODUCTS:
        raise ValueError(f"a batch must have 1 to {MOST_PRODUCTS} products, got {len(rows)}")
    found = []
    for cores in (c for c in range(1, chip.cores + 1) if chip.cores % c == 0):
        groups = chip.cores // cores
        if groups > len(rows) and cores < chip.cores // max(len(rows), 1):
            continue  # with more groups than products, cores would be idle that larger groups use
        part = _part(chip, cores, min(groups, len(rows)))
        plans = {m: plan(m, k, n, part, top=1, simulated=4, **options)[0] for m in sorted(set(rows))}
        alone = {m: max(found.seconds - _launch(found), 0.0) for m, found in plans.items()}
        load, started = [0.0] * groups, [0] * groups
        for m in sorted(rows, key=lambda m: -alone[m]):
            least = load.index(min(load))
            load[least] += alone[m]
            started[least] = max(started[least], plans[m].schedule.used_cores)
        found.append(
            BatchPlan(
                tuple(rows),
                groups,
                cores,
                plans,
                max(load) + chip.launch_seconds(sum(started), bool(options.get("warm"))),
            )
        )
    return sorted(found, key=lambda each: each.seconds)


def _launch(found: Plan) -> float:
    """Return the seconds of a plan that its own launch takes."""
    s = found.schedule
    return s.launch_seconds if s.launches else 0.0


def _part(chip: Chip, cores: int, busy: int) -> Chip:
    """Return a group of cores with its share, among the busy groups, of the memory bandwidth and of L2."""
    return chip.replace(
        cores=cores, hbm_bytes_per_second=chip.hbm_bytes_per_second / busy, l2_usable_bytes=chip.l2_usable_bytes // busy
    )
