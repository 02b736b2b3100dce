"""Functions of bits that scalar and vector instructions share."""

import numpy as np


def first_bit(x, value: int) -> np.ndarray:
    """Place of the lowest bit that is `value`, -1 if there is none."""
    x = x if value else ~x
    lowest = x & (~x + x.dtype.type(1))
    place = np.bitwise_count(lowest - x.dtype.type(1)).astype(np.int32)
    return np.where(x == 0, np.int32(-1), place)


def leading_zeros(x) -> np.ndarray:
    """Zeros above the highest one, -1 if there is none."""
    x, bits = np.array(x), 8 * x.dtype.itemsize
    spread = x
    for step in (1, 2, 4, 8, 16, 32):
        if step < bits:
            spread = spread | spread >> x.dtype.type(step)
    return np.where(x == 0, -1, bits - np.bitwise_count(spread).astype(np.int32)).astype(np.int32)


def leading_signs(x) -> np.ndarray:
    """Bits equal to the sign below it, counted with it; -1 if all are."""
    unsigned = np.where(x < 0, ~x, x).view(x.dtype.str.replace("i", "u"))
    return leading_zeros(unsigned)


def reversed_bits(x) -> np.ndarray:
    """All bits in the opposite order."""
    raw = np.ascontiguousarray(np.atleast_1d(x)).view(np.uint8).reshape(-1, x.dtype.itemsize)
    turned = np.packbits(np.unpackbits(raw, axis=1, bitorder="little")[:, ::-1], axis=1, bitorder="little")
    return np.ascontiguousarray(turned).view(x.dtype).reshape(np.shape(x))
