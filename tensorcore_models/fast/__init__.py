"""Fast kernels: accumulators whose range allows vector lanes, with the same bits as the generic kernels.

Importing this package registers them with :mod:`tensorcore_models.kernels`, which tries them in this order. A fast kernel
computes what its operand ranges allow and marks the elements for which it does not vouch (infinities, NaNs, overflow,
extreme addends); those go to the generic kernel. docs/kernels.md states each kernel's contract, docs/performance.md what
bounds its speed.
"""

from ..kernels import FastPath, add_fast_path
from ..kernels.chains import ChainsPlan
from ..kernels.groups import GroupsPlan
from ..kernels.integer import IntegerPlan
from ..kernels.narrow import NarrowPlan
from ..kernels.pairwise import PairwisePlan
from ..kernels.wide import WidePlan


def _run(plan, low, a, b, c, scale_a, scale_b):
    return plan.run(low, a, b, c, scale_a, scale_b)


def _run_batch(plan, low, a, b, c, scale_a, scale_b):
    return plan.run_batch(low, a, b, c, scale_a, scale_b)


def _run_promoted(plan, low, a, b, total, scale_a, scale_b, every):
    return plan.run(low, a, b, total, scale_a, scale_b, every) if plan.promotes(every) else None


#: Multiply-adds below which laying out the operands costs more than the generic kernel.
_SMALLEST = 1 << 14
_SMALLEST_BATCH = 1 << 9
_SMALLEST_BATCH_OF_BYTES = 1 << 13

add_fast_path(FastPath("lanes of 32 bits", NarrowPlan.of, _run, _SMALLEST, _run_batch, _SMALLEST_BATCH, _run_promoted))
add_fast_path(FastPath("lanes of 64 bits", WidePlan.of, _run, _SMALLEST, run_promoted=_run_promoted))
add_fast_path(FastPath("chains of multiply-adds", ChainsPlan.of, _run, _SMALLEST, run_promoted=_run_promoted))
add_fast_path(FastPath("pairwise sums", PairwisePlan.of, _run, _SMALLEST))
add_fast_path(FastPath("lanes of group sums", GroupsPlan.of, _run, _SMALLEST, _run_batch, _SMALLEST_BATCH_OF_BYTES))
add_fast_path(FastPath("integer lanes", IntegerPlan.of, _run, _SMALLEST, _run_batch, _SMALLEST_BATCH_OF_BYTES))

#: Names of the fast paths that this package registers.
PATHS = (
    "lanes of 32 bits", "lanes of 64 bits", "chains of multiply-adds", "pairwise sums", "lanes of group sums", "integer lanes",
)  # fmt: skip
