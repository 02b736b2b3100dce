"""This module defines how the products of an element are summed, and how slices of k are merged: in order or atomically."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ascend.grid import Range

Overflow = Literal["saturate", "inf"]
#: Largest number of slices whose orders are listed.
MOST_ORDERED_SLICES = 7
_FP32_MAX = np.finfo(np.float32).max


@dataclass(frozen=True)
class Sums:
    """`Sums` says how the products of one element of C are summed; it is all that a numeric interpreter needs of a schedule.

    Two schedules with equal sums give the same bits.
    """

    #: k groups of each slice of k, as half-open ranges; a group is one chain in L0C.
    slices: tuple[tuple[Range, ...], ...]
    order: str = "termwise"  #: Order of the terms, see :mod:`ascend.cube`.
    terms: int = 1  #: Number of products of words for each product.
    operand: str = "fp16"  #: Format of the operands.
    reseeded: bool = False  #: Whether L0C starts each k group after the first from C instead of 0.
    step: int = 16  #: Number of products of one cube step.
    lanes: str = ""  #: Operand that a vector kernel streams ("a", "b"); "" on the cube.
    #: Rounding of FP32 operands to HF32, as :attr:`ascend.Chip.hf32_rounding`; "" for other operands.
    hf32_rounding: str = ""


def each_slice(
    sums: Sums, a: np.ndarray, b: np.ndarray, c: np.ndarray | None
) -> Iterator[tuple[tuple[Range, ...], np.ndarray, np.ndarray, np.ndarray | None]]:
    """Yield for each slice of k its groups, counted from its start, its part of A and of B, and c for the first slice."""
    for number, groups in enumerate(sums.slices):
        start, stop = groups[0][0], groups[-1][1]
        own = tuple((first - start, last - start) for first, last in groups)
        yield own, a[:, start:stop], b[start:stop], None if number else c


def merge_slices(partial: np.ndarray, overflow: Overflow = "inf") -> np.ndarray:
    """Return the sum of slices of k (slices, m, n), added in order with RN in FP32; a NaN is the positive quiet NaN.

    int32 sums wrap round.
    """
    if partial.dtype == np.int32:
        return partial.sum(axis=0, dtype=np.int32)
    total = partial[0]
    with np.errstate(over="ignore", invalid="ignore"):
        for addend in partial[1:]:
            total = total + addend
            if overflow == "saturate":
                total = np.clip(total, -_FP32_MAX, _FP32_MAX)
    if overflow == "inf":
        total = np.where(np.isnan(total), np.float32(np.nan), total)
    return total


def atomic_results(partial: np.ndarray, overflow: Overflow = "inf") -> np.ndarray:
    """Return every product that atomic additions of slices can give: one for each order in which the cores may arrive.

    `partial`, shape (slices, m, n), has at most 7 slices (2520 orders; the first two commute); :func:`atomic_spread` bounds
    more. Returns float32, shape (orders, m, n); orders that give the same bits everywhere appear once.
    """
    slices = len(partial)
    if slices > MOST_ORDERED_SLICES:
        raise ValueError(
            f"{slices} slices have too many orders to list (at most {MOST_ORDERED_SLICES} slices): use "
            f"atomic_spread, which bounds the results of all orders"
        )
    orders = [order for order in itertools.permutations(range(slices)) if slices < 2 or order[0] < order[1]]
    found = [merge_slices(partial[list(order)], overflow) for order in orders]
    return np.stack(list({product.tobytes(): product for product in found}.values()))


def atomic_spread(partial: np.ndarray) -> np.ndarray:
    """Return a bound on how far two orders of atomic addition can differ, element by element: float64, shape (m, n).

    There are s - 1 additions, the first of which (to 0) is exact. Each is wrong by at most 2^-24 of a partial sum,
    which is at most the sum of the magnitudes grown by the errors before it. Two orders differ by at most twice (s - 1)
    u / (1 - (s - 1) u) times that sum (Higham, Accuracy and Stability, section 4.2). Subnormal sums are exact.
    """
    growth = (len(partial) - 1) * 2.0**-24
    return 2 * growth / (1 - growth) * np.abs(partial.astype(float)).sum(axis=0)
