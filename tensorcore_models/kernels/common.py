"""What the fast kernels share: formats as they take them, the order of k, workspaces, the way back to the generic kernel."""

from dataclasses import dataclass

import numpy as np

from .._kernels import fda
from ..formats import FORMATS, Format
from ..formats.rounding import decode
from ..formats.sums import add_rounded
from .generic import generic_bits
from .lowering import Lowered

_WORKSPACE_WANTED = 1 << 23
_SHORTEST_SLICE = 256


@dataclass(frozen=True)
class Operand:
    """A format as the kernels take it (mpg_operand of lanes.h)."""

    size: int
    fraction_bits: int
    padding_bits: int
    bias: int
    sign_shift: int
    sign_mask: int
    fnuz: int
    emin: int
    zero_exponent: int
    magnitude_mask: int
    max_magnitude: int

    @classmethod
    def of(cls, fmt: Format, zero_rule: str, via: Format | None = None) -> "Operand":
        """`fmt` with the alignment exponents of `via`, to which it is converted first, and those of zeros by rule."""
        emin = (via or fmt).emin
        return cls(
            size=fmt.container.itemsize,
            fraction_bits=fmt.fraction_bits,
            padding_bits=fmt.padding_bits,
            bias=fmt.bias,
            sign_shift=fmt.bits - 1 - fmt.padding_bits,
            sign_mask=int(fmt.signed),
            fnuz=-int(fmt.specials == "fnuz"),
            emin=emin,
            zero_exponent={"minus126": -126, "format_minimum": emin, "skip": fda.SKIP}[zero_rule],
            magnitude_mask=fmt.magnitude_mask >> fmt.padding_bits,
            max_magnitude=fmt.max_bits >> fmt.padding_bits,
        )


def slice_length(total: int, group: int, bytes_per_position: int) -> int:
    """Positions of k that are packed at a time, a multiple of `group`."""
    positions = max(_SHORTEST_SLICE, _WORKSPACE_WANTED // bytes_per_position)
    wanted = max(1, positions // group) * group
    return min(total, wanted)


def flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def is_zero(c: np.ndarray) -> bool:
    """Whether an addend is +0 everywhere. One that was not given is a single number with strides of 0."""
    return not (c[:1, :1] if c.strides == (0, 0) else c).any()


def float_values(x: np.ndarray, fmt: Format, dtype: np.dtype) -> np.ndarray:
    """Values of encodings as float32 or float64, C-contiguous; `dtype` has all of them."""
    if (fmt.name, dtype.itemsize) in (("fp32", 4), ("fp64", 8)):
        return np.ascontiguousarray(x).view(dtype)
    if (fmt.name, dtype.itemsize) == ("bf16", 4):
        return (np.ascontiguousarray(x).astype(np.uint32) << np.uint32(16)).view(dtype)
    return np.ascontiguousarray(decode(x, fmt, dtype))


def lanes_over_rows(m: int, n: int, lanes: int = 32) -> bool:
    """Whether panels of `lanes` rows of A take so much less work than panels of columns of B that it pays to transpose."""
    return 4 * n * -(-m // lanes) < 3 * m * -(-n // lanes)


def step_order(k: int, terms: int, padded: int, groups: tuple[np.ndarray, ...] | None = None) -> np.ndarray:
    """Position in k of each place of the padded steps, -1 for padding.

    Parameters
    ----------
    k : int
        Products.
    terms : int
        Products that one pass takes from k.
    padded : int
        Places of one fused operation.
    groups : tuple of arrays, optional
        The members of a pass, one array for each fused operation; by default one operation takes all in order.
    """
    members = (np.arange(terms),) if groups is None else groups
    one = np.full((len(members), padded), -1, np.int64)
    for row, group in zip(one, members, strict=True):
        row[: len(group)] = group
    order = np.where(one >= 0, one + np.arange(0, k, terms)[:, None, None], -1)
    return np.where(order < k, order, -1).astype(np.int32).reshape(-1)


def generic_promoted(low: Lowered, a, b, total, scale_a, scale_b, every: int) -> np.ndarray:
    """As `kernels.promoted_bits` by the generic kernel, one chain after the other."""
    zero = np.zeros(total.shape, total.dtype)
    for start in range(0, a.shape[1], every):
        ks = slice(start, start + every)
        scales = (None, None)
        if scale_a is not None and low.block_size is not None:
            blocks = slice(start // low.block_size, -(-(start + every) // low.block_size))
            scales = (scale_a[:, blocks], scale_b[blocks])
        total = add_rounded(total, generic_bits(low, a[:, ks], b[ks], zero, *scales), FORMATS["fp32"])
    return total


def redo_elements(low: Lowered, d, redo, rows, columns, a, b, c, scale_a=None, scale_b=None, every=None) -> None:
    """Compute the marked rows, columns and elements of d again with the generic kernel.

    With `every`, c are FP32 sums to which the chains of that many products are added (`kernels.promoted_bits`).
    """

    def part(i, j):
        scales = (None, None) if scale_a is None else (scale_a[i], scale_b[:, j])
        if every is not None:
            return generic_promoted(low, a[i], b[:, j], c[i][:, j], *scales, every)
        return generic_bits(low, a[i], b[:, j], c[i][:, j], *scales)

    everywhere = slice(None)
    if np.count_nonzero(redo) > redo.size // 4:  # row by row, B would be taken apart again and again
        d[...] = part(everywhere, everywhere)
        return
    marked_rows, marked_columns = np.flatnonzero(rows), np.flatnonzero(columns)
    if marked_rows.size:
        d[marked_rows] = part(marked_rows, everywhere)
    if marked_columns.size:
        d[:, marked_columns] = part(everywhere, marked_columns)
    if redo.any():
        redo[marked_rows] = 0
        redo[:, marked_columns] = 0
        for i in np.flatnonzero(redo.any(axis=1)):
            j = np.flatnonzero(redo[i])
            d[i, j] = part(np.array([i]), j)[0]


def meets_product(a: np.ndarray, b: np.ndarray, lanes: np.ndarray, a_mask: int, b_mask: int) -> np.ndarray:
    """Which of the marked elements (i, j) have some k with a[i, k] and b[k, j] both nonzero."""
    rows, columns = np.flatnonzero(lanes.any(axis=1)), np.flatnonzero(lanes.any(axis=0))
    left, right = (a[rows] & a_mask) != 0, (b[:, columns] & b_mask) != 0
    met = np.zeros((rows.size, columns.size), bool)
    for k in range(min(16, a.shape[1])):
        met |= left[:, k, None] & right[k]
        if met.all():
            break
    else:
        met = left.astype(np.float32) @ right.astype(np.float32) > 0
    result = np.zeros_like(lanes)
    result[np.ix_(rows, columns)] = met
    return result & lanes
