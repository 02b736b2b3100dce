"""What a schedule computes, on whichever unit and operands it runs: numbers for any schedule."""

from dataclasses import replace
from typing import Any, cast

import numpy as np

from ascend.cube import cube_gemm, cube_hgemm
from ascend.cube_arguments import Order, checked_matrices
from ascend.operands import operand_product, operand_slices
from ascend.tile_schedule import TileSchedule
from ascend.vector import vector_product, vector_slices


def schedule_product(schedule: TileSchedule, a: Any, b: Any, c: Any = None, **options: Any) -> np.ndarray:
    """What a schedule computes: :func:`cube_gemm` in its order, :func:`cube_hgemm` for one FP16 term, or the vector units'
    or the other operands' product.

    Parameters
    ----------
    schedule : TileSchedule
        As :func:`ascend.build_schedule` builds it.
    a, b, c : array_like
        As for :func:`cube_gemm`.
    **options
        Other keywords of those functions.
    """
    if schedule.kernel == "vector":
        return vector_product(*checked_matrices(a, b, c), schedule)
    if schedule.operand != "fp16":
        return operand_product(schedule, *checked_matrices(a, b, c))
    if schedule.terms == 1:
        return cube_hgemm(a, b, c, schedule=schedule, **options)
    order = cast(Order, schedule.order)
    return cube_gemm(a, b, c, schedule=schedule, order=order, low_low=schedule.terms == 4, **options)


def slice_products(schedule: TileSchedule, a: Any, b: Any, c: Any = None, **options: Any) -> np.ndarray:
    """What the slices of k add up to, before they are merged.

    Parameters
    ----------
    schedule, a, b, c, **options
        As for :func:`schedule_product`; c is the seed of the first slice.

    Returns
    -------
    numpy.ndarray
        float32, shape (slices, m, n).
    """
    a, b, c = checked_matrices(a, b, c)
    if schedule.kernel == "vector":
        return vector_slices(a, b, c, schedule)
    if schedule.operand != "fp16":
        return operand_slices(schedule, a, b, c)
    found = []
    for number, (start, stop) in enumerate(schedule.k_slices):
        part = replace(schedule, k=stop - start, grid=replace(schedule.grid, k=1))
        found.append(schedule_product(part, a[:, start:stop], b[start:stop], c if number == 0 else None, **options))
    return np.stack(found)
