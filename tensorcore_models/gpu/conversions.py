"""Converts operands on the device, for units that convert them before they multiply."""

from functools import lru_cache
from typing import Any

import numpy as np

from ..kernels.lowering import Lowered

_SIGNED = {1: np.int8, 2: np.int16, 4: np.int32}


def converted(low: Lowered, codes: Any, side: int) -> Any:
    """Return encodings of the converted operand, as signed integers of its format's size.

    Parameters
    ----------
    low : Lowered
        Unit that converts its operands.
    codes : Tensor
        Encodings of a (side 0) or b (side 1).
    side : int
    """
    import torch

    fmt = (low.a_format, low.b_format)[side]
    if fmt.container.itemsize <= 2:
        table = torch.from_numpy(_table(low, side)).to(codes.device)
        return table[codes.to(torch.int64) & ((1 << fmt.bits) - 1)]
    spec: Any = low.accumulator
    inner: Any = low.converted
    via = (inner.a_format, inner.b_format)[side]
    size, drop = codes.to(torch.int64) & 0x7FFFFFFF, 23 - via.fraction_bits
    special = size > 0x7F800000
    if drop:  # to nearest, ties to even
        size = (size + ((size >> drop) & 1) + ((1 << (drop - 1)) - 1)) >> drop << drop
    if spec.flush:
        size = torch.where(size < 1 << 23, 0, size)
    found = size.to(torch.int32) | (codes & torch.iinfo(torch.int32).min)
    return torch.where(special, via.nan_encoding(), found)


@lru_cache(maxsize=64)
def _table(low: Lowered, side: int) -> np.ndarray:
    """Return the converted encodings of all encodings of an operand of up to 16 bits."""
    fmt = (low.a_format, low.b_format)[side]
    assert low.convert is not None
    codes = low.convert(np.arange(1 << fmt.bits, dtype=fmt.container), side)
    return np.array(codes).view(_SIGNED[codes.itemsize])  # torch refuses arrays that cannot be written
