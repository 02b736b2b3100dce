"""Writes the cases of lanes_selftest.c: operands and tasks of the fast paths, results of the generic kernel.

python tests/cross/make_cases.py FILE
"""

import dataclasses
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from fast_units import NARROW, WIDE
from twins import operands

from tensorcore_models import kernels
from tensorcore_models.kernels import common, narrow, wide

SHAPES = ((3, 70, 37), (5, 17, 130), (1, 1, 33))


def words(record) -> bytes:
    """The fields of a task or an operand as the C structures have them: 32-bit integers, and floats."""
    values = dataclasses.astuple(record)
    return b"".join(
        np.float32(x).tobytes() if isinstance(x, float) else int(x).to_bytes(4, "little", signed=int(x) < 0)
        for x in values
    )


def case(unit, plan, m: int, n: int, k: int, rng) -> bytes:
    """One product with finite operands; elements that the lanes hand on are left out."""
    low = kernels.lowered(unit)
    a, b, c, *_ = operands(
        rng, unit, m, k, n, str(rng.choice(("normal", "clustered", "cancelling", "subnormal", "sparse")))
    )
    a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
    expected = kernels.generic_bits(low, a, b, c)
    is_wide = isinstance(plan, wide.WideKernel)
    if is_wide:
        d, left_out, _ = common.addends(c, 1, least=common.least_addend(low.c_format.name, low.d_format.name))
    else:
        d, left_out, tiny = plan._addends(c, plan.task.chain > 0, shift=0, threads=1)
        left_out |= np.uint8(0) if tiny is None else tiny
    each = plan.task.terms // max(1, plan.task.round_down) if is_wide else plan.task.terms
    order = common.step_order(k, plan.pass_terms, each, plan.groups)
    if expected.dtype == np.uint16:
        left_out |= ((expected & 0x7FFF) >= 0x7C00).astype(np.uint8)
        expected = expected.view(np.float16).astype(np.float32).view(np.uint32)
    left_out |= ((expected & 0x7FFFFFFF) >= 0x7F800000).astype(np.uint8)
    task = words(plan.task)
    header = np.array([is_wide, m, n, order.size, k, a.itemsize, len(task) // 4, 0], np.int64)
    parts = (words(plan.a_operand), words(plan.b_operand), task, order, a, b, d, expected, left_out)
    return header.tobytes() + b"".join(x if isinstance(x, bytes) else x.tobytes() for x in parts)


def main() -> None:
    rng = np.random.default_rng(5)
    with open(sys.argv[1], "wb") as file:
        for kind, units in ((narrow.NarrowKernel, NARROW), (wide.WideKernel, WIDE)):
            for unit in units:
                low = kernels.lowered(unit)
                if unit.scale_format is None and low.a_format.container == low.b_format.container:
                    for m, n, k in SHAPES:
                        file.write(case(unit, kind.of(low), m, n, k, rng))


if __name__ == "__main__":
    main()
