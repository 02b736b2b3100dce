"""This module holds the shared parts of the fast kernels: formats, operands, order of k, slices, the generic kernel's redo."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from .._kernels.common.addends import any_marks, copy, prepare
from ..formats import FORMATS, Format
from ..formats.rounding import decode
from ..formats.sums import add_rounded
from ..machine.instruction_sets import isa_level
from ..machine.workspace import Scratch
from .generic import generic_bits
from .lowering import Lowered

#: Formats of a, b, c and d.
Formats = tuple[Format, Format, Format, Format]


def largest_significand(fmt: Format) -> float:
    return 2.0 - 2.0**-fmt.fraction_bits


@dataclass(frozen=True)
class KernelFormat:
    """`KernelFormat` holds the fields of a format that the kernels take (mpg_operand of lanes.h)."""

    size: int
    fraction_bits: int
    padding_bits: int
    bias: int
    sign_shift: int
    sign_mask: int
    fnuz: int
    emin: int
    magnitude_mask: int
    max_magnitude: int

    @classmethod
    def of(cls, fmt: Format, via: Format | None = None) -> "KernelFormat":
        """Return the fields of `fmt`, with the alignment exponents of the format `via` if operands are converted to it."""
        return cls(
            size=fmt.container.itemsize,
            fraction_bits=fmt.fraction_bits,
            padding_bits=fmt.padding_bits,
            bias=fmt.bias,
            sign_shift=fmt.bits - 1 - fmt.padding_bits,
            sign_mask=int(fmt.signed),
            fnuz=-int(fmt.specials == "fnuz"),
            emin=(via or fmt).emin,
            magnitude_mask=fmt.magnitude_mask >> fmt.padding_bits,
            max_magnitude=fmt.max_bits >> fmt.padding_bits,
        )

    @functools.lru_cache(maxsize=256)  # noqa: B019 - formats are few, and kept anyway
    def shifted(self, by: int) -> dict:
        """Return the fields of the format whose values are 2^-by times the values of this format."""
        return vars(replace(self, bias=self.bias + by, emin=self.emin - by))


@dataclass(eq=False, slots=True)
class Source:
    """`Source` gives the place and the format of an operand's encodings.

    Parameters
    ----------
    codes : ndarray of uint8
        Flat memory of the encodings.
    outer, inner : int
        Strides in elements along rows of A or columns of B, and along k.
    format : dict
        Fields of the operand's format (:class:`KernelFormat`).
    scales : ndarray of uint8 or None
        Flat memory of block scales, one for `block_size` products, with strides `scale_outer` and `scale_inner`.
    """

    codes: np.ndarray
    outer: int
    inner: int
    format: dict
    scales: np.ndarray | None = None
    scale_outer: int = 0
    scale_inner: int = 0
    block_size: int = 1

    @classmethod
    def of_a(
        cls, a: np.ndarray, fmt: dict, scales: np.ndarray | None = None, block_size: int | None = None
    ) -> "Source":
        """Return the source of the rows of A (..., m, k), with scales (..., m, blocks)."""
        if scales is None:
            return cls(flat(a), a.shape[-1], 1, fmt)
        return cls(flat(a), a.shape[-1], 1, fmt, flat(scales), scales.shape[-1], 1, block_size or 0)

    @classmethod
    def of_b(
        cls, b: np.ndarray, fmt: dict, scales: np.ndarray | None = None, block_size: int | None = None
    ) -> "Source":
        """Return the source of the columns of B (..., k, n), with scales (..., blocks, n)."""
        n = b.shape[-1]
        if scales is None:
            return cls(flat(b), 1, n, fmt)
        return cls(flat(b), 1, n, fmt, flat(scales), 1, n, block_size or 0)


@dataclass(eq=False, slots=True)
class RunningResult:
    """`RunningResult` is a running float32 result, with the elements, rows and columns that need the generic kernel."""

    d: np.ndarray
    redo: np.ndarray
    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def of(cls, d: np.ndarray, redo: np.ndarray) -> "RunningResult":
        """Return the running result of a C-contiguous `d` (m, n) whose elements `redo` marks."""
        return cls(d, redo, np.zeros(d.shape[0], np.uint8), np.zeros(d.shape[1], np.uint8))

    def transposed(self) -> "RunningResult":
        """Return the running result of D^T."""
        return RunningResult(np.ascontiguousarray(self.d.T), np.ascontiguousarray(self.redo.T), self.columns, self.rows)

    @property
    def marked(self) -> bool:
        """Return whether any element needs the generic kernel."""
        return any_marks(self.rows, self.columns, self.redo)


def flat(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x).reshape(-1).view(np.uint8)


def is_zero(c: np.ndarray) -> bool:
    """Return whether an addend is +0 everywhere; an addend that was not given is a single number with strides of 0."""
    if c.strides == (0, 0):
        c = c[:1, :1]
    return not (c.size and c[0, 0] or c.any())


def running_sum(c: np.ndarray, threads: int) -> np.ndarray:
    """Return a C-contiguous copy of an addend, which becomes the result."""
    if c.strides == (0, 0) and is_zero(c):
        return np.zeros(c.shape, c.dtype)
    if threads == 1 or not c.flags.c_contiguous:
        return np.array(c, order="C")
    d = np.empty(c.shape, c.dtype)
    copy(flat(c), flat(d), threads)
    return d


#: FP32 bits, without the sign, of infinity and of the smallest normal FP16 number.
INFINITE, _LEAST_FP16 = 0x7F800000, 113 << 23


def addends(
    c: np.ndarray,
    threads: int,
    *,
    least: int = 1,
    beyond: int = INFINITE,
    scale: float = 1.0,
    tiny: int = 1,
) -> tuple[np.ndarray, np.ndarray, int]:
    """Return c as float32 for the lanes, marks of addends that they cannot take (c is 0 there), and the OR of all marks.

    Parameters
    ----------
    c : ndarray
        FP32 encodings, or FP16 encodings as uint16, shape (m, n).
    threads : int
        Number of threads.
    least, beyond, scale, tiny
        Arguments of `_kernels.common.addends.prepare`.
    """
    if is_zero(c):  # a product without addend; the code below would read and write it several times
        return np.zeros(c.shape, np.float32), np.zeros(c.shape, np.uint8), 0
    if c.dtype == np.uint16:
        values = c.view(np.float16).astype(np.float32, order="C")
    else:
        values = np.array(c, np.uint32, order="C").view(np.float32)
    marks = np.empty(c.shape, np.uint8)
    return values, marks, prepare(values, marks, least, beyond, scale, tiny, isa_level(), threads)


def least_addend(c_format: str, d_format: str) -> int:
    """Return `least` for lanes that align c as a number of the output format."""
    return _LEAST_FP16 if (c_format, d_format) == ("fp16", "fp32") else 1


#: Largest number of bytes of the values that a kernel makes of its operands at a time.
_VALUES = 1 << 24


def value_slices(m: int, n: int, k: int, unit: int, bytes_each: int) -> list[slice]:
    """Return slices of k, multiples of `unit`, for which the values of both operands take a bounded amount of memory.

    Parameters
    ----------
    m, n, k : int
        Sizes of the product; k is positive.
    unit : int
        Number of products of one period of a chain.
    bytes_each : int
        Bytes of a value that is made of an encoding, 0 if the kernel reads the encodings.
    """
    most = max(1, _VALUES // ((m + n) * bytes_each or 1) // unit) * unit if bytes_each else k
    return [slice(start, min(start + most, k)) for start in range(0, k, most)]


def float_values(x: np.ndarray, fmt: Format, dtype: np.dtype) -> np.ndarray:
    """Return the values of encodings, C-contiguous, as float32 or float64, which can represent all of them."""
    if (fmt.name, dtype.itemsize) in (("fp32", 4), ("fp64", 8)):
        return np.ascontiguousarray(x).view(dtype)
    if (fmt.name, dtype.itemsize) == ("bf16", 4):
        bits = Scratch(4 * x.size).take(x.shape, np.uint32)  # fresh pages would cost more than the conversion
        bits[...] = x
        bits <<= np.uint32(16)
        return bits.view(dtype)
    return np.ascontiguousarray(decode(x, fmt, dtype))


def lanes_over_rows(m: int, n: int, lanes: int = 32) -> bool:
    """Return whether transposing pays, because panels of rows of A take much less work than panels of columns of B."""
    return 4 * n * -(-m // lanes) < 3 * m * -(-n // lanes)


@functools.lru_cache(maxsize=16)
def step_order(k: int, terms: int, padded: int, groups: tuple[tuple[int, ...], ...] | None = None) -> np.ndarray:
    """Return the position in k of each place of the padded steps, -1 for padding, as a read-only cached array.

    Parameters
    ----------
    k : int
        Number of products.
    terms : int
        Number of products of one pass.
    padded : int
        Number of places of one fused operation.
    groups : tuple of tuple of int, optional
        Products of a pass that each fused operation adds; by default one operation adds all in order.
    """
    members = (range(terms),) if groups is None else groups
    one = np.full((len(members), padded), -1, np.int64)
    for row, group in zip(one, members, strict=True):
        row[: len(group)] = group
    order = np.where(one >= 0, one + np.arange(0, k, terms)[:, None, None], -1)
    order = np.where(order < k, order, -1).astype(np.int32).reshape(-1)
    order.flags.writeable = False
    return order


def generic_promoted(low: Lowered, a, b, total, scale_a, scale_b, every: int) -> np.ndarray:
    """Compute `kernels.promoted_bits` by the generic kernel, one chain after another."""
    zero = np.zeros(total.shape, total.dtype)
    for start in range(0, a.shape[1], every):
        ks = slice(start, start + every)
        scales = (None, None)
        if scale_a is not None and low.block_size is not None:
            blocks = slice(start // low.block_size, -(-(start + every) // low.block_size))
            scales = (scale_a[:, blocks], scale_b[blocks])
        total = add_rounded(total, generic_bits(low, a[:, ks], b[ks], zero, *scales), FORMATS["fp32"])
    return total


def redo_elements(low: Lowered, d, marks: RunningResult, a, b, c, scale_a=None, scale_b=None, every=None) -> None:
    """Compute the marked rows, columns and elements of the encodings d again by the generic kernel.

    With `every`, c holds FP32 sums to which chains of `every` products are added (`kernels.promoted_bits`).
    """

    def part(i, j):
        scales = (None, None) if scale_a is None else (scale_a[i], scale_b[:, j])
        if every is not None:
            return generic_promoted(low, a[i], b[:, j], c[i][:, j], *scales, every)
        return generic_bits(low, a[i], b[:, j], c[i][:, j], *scales)

    everywhere, redo = slice(None), marks.redo
    if np.count_nonzero(redo) > redo.size // 4:  # row by row, B would be decoded many times
        d[...] = part(everywhere, everywhere)
        return
    marked_rows, marked_columns = np.flatnonzero(marks.rows), np.flatnonzero(marks.columns)
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
