"""This module holds the fragment layouts of NVIDIA's matrix instructions: the thread and register of each matrix element.

A fragment is two lists of :class:`Mode`. One splits a thread's number into digits, the other splits the number of an element
within a thread (its *slot*), fastest digit first; each digit contributes its stride to a row, a column or a block. The same
lists give the index functions of this module and the offsets in the generated kernels, so they cannot differ.

Elements fill 32-bit registers from the low bits up (fp64 has 64-bit registers): slot s lies in register
``s // (32 // bits)``.

Sources: PTX ISA, "Matrix Fragments for mma.*" (one table for each shape), "wgmma: Register Fragments and Shared Memory Matrix
Layouts", "tcgen05: Data Path Layout Organization". WMMA fragments are opaque: they are filled by ``wmma.load`` and read by
``wmma.store`` (PTX ISA, "Matrix Fragments for WMMA").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Literal, NamedTuple

from ...formats import get_format

Axis = Literal["block", "row", "col"]
AXES: tuple[Axis, ...] = ("block", "row", "col")
WARP = 32
WARPGROUP = 128


class Mode(NamedTuple):
    """`Mode` is one digit of a thread or slot number, with `extent` values that are `stride` apart along `axis`."""

    axis: Axis
    stride: int
    extent: int = 2


class ElementPlace(NamedTuple):
    """`ElementPlace` is the place of an element: its block of the instruction, its row and its column."""

    block: int
    row: int
    col: int


def _digits(number: int, modes: Sequence[Mode]) -> ElementPlace:
    place = dict.fromkeys(AXES, 0)
    for mode in modes:
        place[mode.axis] += number % mode.extent * mode.stride
        number //= mode.extent
    return ElementPlace(**place)


@dataclass(frozen=True)
class Fragment:
    """`Fragment` says how the elements of a matrix (blocks, rows, cols) are distributed over threads and registers.

    `threads` and `slots` are the digits of the thread number and of the slot number, fastest first; an element takes `bits` of
    a register. Raises ValueError if the digits do not reach every element exactly once.
    """

    threads: tuple[Mode, ...]
    slots: tuple[Mode, ...]
    bits: int
    shape: tuple[int, int, int]

    def __post_init__(self):
        held = self.thread_count * self.slot_count
        if held != prod(self.shape):
            raise ValueError(
                f"threads and slots hold {held} elements, expected {prod(self.shape)} for shape {self.shape}"
            )
        for axis, extent in zip(AXES, self.shape, strict=True):
            reach = 1 + sum((m.extent - 1) * m.stride for m in (*self.threads, *self.slots) if m.axis == axis)
            if reach != extent:
                raise ValueError(
                    f"threads and slots reach {reach} places of axis {axis}, expected {extent} as in the shape"
                )

    @property
    def thread_count(self) -> int:
        """Return the number of threads that hold the matrix."""
        return prod(m.extent for m in self.threads)

    @property
    def slot_count(self) -> int:
        """Return the number of elements in one thread."""
        return prod(m.extent for m in self.slots)

    @property
    def register_bits(self) -> int:
        """Return the width of a register: 64 for fp64, else 32."""
        return max(32, self.bits)

    @property
    def per_register(self) -> int:
        """Return the number of elements in one register."""
        return self.register_bits // self.bits

    @property
    def registers(self) -> int:
        """Return the number of registers of one thread."""
        return self.slot_count // self.per_register

    def origin(self, thread: int) -> ElementPlace:
        """Return the place of a thread's slot 0."""
        return _digits(thread, self.threads)

    def offset(self, slot: int) -> ElementPlace:
        """Return the place of a slot relative to slot 0."""
        return _digits(slot, self.slots)

    def place(self, thread: int, slot: int) -> ElementPlace:
        """Return the place of one slot of one thread."""
        base, step = self.origin(thread), self.offset(slot)
        return ElementPlace(*(x + y for x, y in zip(base, step, strict=True)))


def doubling(axis: Axis, stride: int, count: int) -> tuple[Mode, ...]:
    """Return `count` binary digits with strides stride, 2 stride, 4 stride, ..."""
    return tuple(Mode(axis, stride << i) for i in range(count))


def exact_log2(value: int) -> int:
    if value < 1 or value & (value - 1):
        raise ValueError(f"got {value}, expected a power of two")
    return value.bit_length() - 1


#: Digits of a thread number: its place in a group of four goes along k (or n), its group along rows of A (columns of B).
def _group(along: Axis, step: int, across: Axis) -> tuple[Mode, ...]:
    return (*doubling(along, step, 2), *doubling(across, 1, 3))


def _operand_a(m: int, k: int, bits: int) -> Fragment:
    """Return the fragment of A of mma.m8n8k* and mma.m16n8k*: a register along k, then rows 8 apart, then the next k."""
    per = max(1, 32 // bits)
    slots = doubling("col", 1, exact_log2(per))
    if m == 16:
        slots += (Mode("row", 8),)
    slots += doubling("col", 4 * per, exact_log2(k // (4 * per)))
    return Fragment(_group("col", per, "row"), slots, bits, (1, m, k))


def _operand_b(n: int, k: int, bits: int) -> Fragment:
    """Return the fragment of B of mma.m8n8k* and mma.m16n8k*: that of A with rows and columns exchanged."""
    per = max(1, 32 // bits)
    slots = doubling("row", 1, exact_log2(per)) + doubling("row", 4 * per, exact_log2(k // (4 * per)))
    return Fragment(_group("row", per, "col"), slots, bits, (1, k, n))


def _accumulator(m: int, n: int, bits: int) -> Fragment:
    """Return the fragment of C and D of mma.m8n8k* and mma.m16n8k*: pairs along n, then rows 8 apart."""
    slots = (Mode("col", 1),) + ((Mode("row", 8),) if m == 16 else ())
    return Fragment(_group("col", 2, "row"), slots, bits, (1, m, n))


#: Digits of mma.m8n8k4 with fp16: four multiplications, each by a quad pair (threads 4q to 4q + 3 and 16 + 4q to 16 + 4q + 3).
_QUAD_PAIRS = (Mode("block", 1), Mode("block", 2))
_VOLTA = {
    "a": Fragment((*doubling("row", 1, 2), *_QUAD_PAIRS, Mode("row", 4)), doubling("col", 1, 2), 16, (4, 8, 4)),
    "b": Fragment((*doubling("col", 1, 2), *_QUAD_PAIRS, Mode("col", 4)), doubling("row", 1, 2), 16, (4, 4, 8)),
    "fp16": Fragment((*doubling("row", 1, 2), *_QUAD_PAIRS, Mode("row", 4)), doubling("col", 1, 3), 16, (4, 8, 8)),
    "fp32": Fragment(
        (Mode("row", 1), Mode("col", 2), *_QUAD_PAIRS, Mode("row", 4)),
        (Mode("col", 1), Mode("row", 2), Mode("col", 4)),
        32,
        (4, 8, 8),
    ),
}


def warpgroup_accumulator(n: int, bits: int) -> Fragment:
    """Return the fragment of D of wgmma.m64nNk*: warp w holds rows 16 w to 16 w + 15, each 8 columns like mma's D."""
    return Fragment(
        (*_group("col", 2, "row"), *doubling("row", 16, 2)),
        (Mode("col", 1), Mode("row", 8), Mode("col", 8, n // 8)),
        bits,
        (1, 64, n),
    )


def tensor_memory_accumulator(m: int, n: int) -> Fragment:
    """Return the fragment of D of tcgen05.mma with one CTA of 128 threads: a thread reads one row, a 32-bit column an element.

    With m = 64 the first 16 threads of each warp hold rows (data path layout F), with m = 128 all threads (layout D).
    """
    rows = doubling("row", 1, 4 if m == 64 else 5)
    return Fragment((*rows, *doubling("row", 16 if m == 64 else 32, 2)), (Mode("col", 1, n),), 32, (1, m, n))


class MmaLayout(NamedTuple):
    """`MmaLayout` holds the four fragments of an mma.sync instruction."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment


def register_width(fmt: str, *, packed: bool) -> int:
    """Return the bits of one element in an mma.sync register; fp6 and, unless `packed`, fp4 take a byte."""
    row = get_format(fmt)
    if row.bits in (4, 6):
        return 4 if packed else 8
    return row.bits


@cache
def mma_layout(
    shape: tuple[int, int, int], a_format: str, b_format: str, c_format: str, d_format: str, scaled: bool = False
) -> MmaLayout:
    """Return the fragments of an mma.sync instruction of shape (m, n, k): (8, 8, 4), (8, 8, k) or (16, 8, k).

    fp4 with k = 64 is always packed. Raises ValueError for another shape.
    """
    m, n, k = shape
    if n != 8 or m not in (8, 16):
        raise ValueError(f"mma.sync has no shape m{m}n{n}k{k}, expected m8n8k* or m16n8k*")
    if shape == (8, 8, 4) and a_format == "fp16":
        return MmaLayout(_VOLTA["a"], _VOLTA["b"], _VOLTA[c_format], _VOLTA[d_format])
    packed = k == 64 or get_format(a_format).name in ("s4", "u4")
    widths = [register_width(f, packed=packed) for f in (a_format, b_format)]
    return MmaLayout(
        _operand_a(m, k, widths[0]),
        _operand_b(n, k, widths[1]),
        _accumulator(m, n, get_format(c_format).bits),
        _accumulator(m, n, get_format(d_format).bits),
    )


#: Left shift of an fp4 element in its byte in the f8f6f4 kinds of mma.sync; fp6 fills the low six bits.
FP4_BYTE_SHIFT = 2

# -- block scales ------------------------------------------------------------------------------------------------------------
#: Digits of the numbers of threads whose 32-bit registers give scales to mma.sync, with selectors 0 (PTX ISA 9.1, 9.7.14.3).
#: In each group of four threads, threads 0 and 1 give the scales of rows g and g + 8 of A, and thread 0 those of column g of
#: B; the other threads (stride 0) hold copies that are not read. A register holds a byte for each block of k, low byte first.
REGISTER_SCALES_A = (Mode("row", 8), Mode("row", 0), *doubling("row", 1, 3))
REGISTER_SCALES_B = (Mode("col", 0, 4), *doubling("col", 1, 3))

#: Number of scale words in a column of tensor memory. Scales of tcgen05.mma, with scale factor ID 0 (PTX ISA 9.1, 9.7.16.10.7),
#: are a 32-bit word for each row of A (column of B), with one byte for each block of k, low byte first. The next 32 rows are in
#: the next column. Each of the four warps has a copy.
SCALE_LANES = 32


def scale_columns(rows: int) -> int:
    """Return the number of columns of tensor memory for the scales of `rows` rows of A (columns of B)."""
    return -(-rows // SCALE_LANES)


# -- matrices in shared memory (wgmma, tcgen05) ------------------------------------------------------------------------------
#: A core matrix is 8 rows of A (or columns of B) of 16 consecutive bytes along k; one instruction takes 32 bytes along k.
CORE_ROWS = 8
CORE_BYTES = 16
STEP_BYTES = 32
#: Distances between core matrices, in bytes: along k (leading dimension) and along m or n (stride dimension).
LEADING_BYTES = CORE_ROWS * CORE_BYTES
STRIDE_BYTES = LEADING_BYTES * (STEP_BYTES // CORE_BYTES)


def shared_descriptor(version: int = 0) -> int:
    """Return a matrix descriptor without start address and swizzle, offsets in 16 bytes; `version` is 1 for tcgen05."""
    return LEADING_BYTES >> 4 << 16 | STRIDE_BYTES >> 4 << 32 | version << 46
