"""Writes the cases of groups_selftest.c: operands and tasks of the fast paths, results of the generic kernel.

python tests/cross/make_group_cases.py FILE
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).parents[1] / "support"), str(Path(__file__).parents[1] / "tensorcore_models")]

from test_fast_groups import GROUPS, INTEGERS, MXFP4, NVFP4, integers_near_the_end, plan_of  # noqa: E402
from twins import operands  # noqa: E402

from tensorcore_models import kernels  # noqa: E402
from tensorcore_models.formats import get_format  # noqa: E402

SHAPES = ((3, 70, 37), (5, 17, 130), (1, 1, 33))


def words(*values) -> bytes:
    return np.array([int(x) for x in values], np.int32).tobytes()


def case(unit, m: int, n: int, k: int, rng) -> bytes:
    """One product with finite operands, scales and results."""
    plan, low = plan_of(unit), kernels.lowered(unit)
    a, b, c, *scales = operands(rng, unit, m, k, n, str(rng.choice(("normal", "clustered", "cancelling"))))
    header = np.array([unit.scale_format is not None, m, n, k, unit.block_size or 0], np.int64).tobytes()
    if unit.scale_format is None:
        a, b, c, *_ = integers_near_the_end(rng, (a, b, c))
        task = words(plan.task.terms, plan.task.clamp, plan.a.keep, plan.a.flip, plan.b.keep, plan.b.flip)
        parts = [a, b, c, kernels.generic_bits(low, a, b, c)]
        return header + task + b"".join(np.ascontiguousarray(x).tobytes() for x in parts)
    top = get_format(unit.scale_format).max_bits
    scales = [np.minimum(x, top) for x in scales]
    task = words(*dataclasses.astuple(plan.task))
    tables = [x for operand in (plan.a, plan.b) for x in vars(operand).values()]
    parts = [*tables, a, b, *scales, c, kernels.generic_bits(low, a, b, c, *scales)]
    return header + task + b"".join(np.ascontiguousarray(x).tobytes() for x in parts)


def main() -> None:
    rng = np.random.default_rng(6)
    with open(sys.argv[1], "wb") as file:
        for unit in (NVFP4, MXFP4, *GROUPS, *INTEGERS):
            for m, n, k in SHAPES:
                file.write(case(unit, m, n, k, rng))


if __name__ == "__main__":
    main()
