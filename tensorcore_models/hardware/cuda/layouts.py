"""Which thread and register hold which matrix element: the fragment layouts of NVIDIA's matrix instructions.

A fragment is data: two lists of :class:`Mode`, one that takes a thread's number apart and one that takes the number of an
element within a thread (its *slot*) apart, fastest digit first; each digit contributes its stride to a row, a column or a
block. The same lists give the index functions here and the offsets in the generated kernels, so the two cannot differ.

Elements fill 32-bit registers from the low bits up (fp64 has registers of its own): slot s lies in register
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
    """One digit of a thread or slot number: `extent` values, each `stride` apart along `axis`."""

    axis: Axis
    stride: int
    extent: int = 2


class ElementPlace(NamedTuple):
    """Where an element is: which of the instruction's blocks, row, column."""

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
    """How the elements of one matrix of shape (blocks, rows, cols) are spread over threads and their registers.

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
            raise ValueError(f"{held} slots cannot hold the {prod(self.shape)} elements of {self.shape}")
        for axis, extent in zip(AXES, self.shape, strict=True):
            reach = 1 + sum((m.extent - 1) * m.stride for m in (*self.threads, *self.slots) if m.axis == axis)
            if reach != extent:
                raise ValueError(f"the digits of axis {axis} reach {reach}, the matrix has {extent}")

    @property
    def thread_count(self) -> int:
        """Threads that hold the matrix together."""
        return prod(m.extent for m in self.threads)

    @property
    def slot_count(self) -> int:
        """Elements in one thread."""
        return prod(m.extent for m in self.slots)

    @property
    def register_bits(self) -> int:
        """Width of a register: 64 for fp64, else 32."""
        return max(32, self.bits)

    @property
    def per_register(self) -> int:
        """Elements in one register."""
        return self.register_bits // self.bits

    @property
    def registers(self) -> int:
        """Registers of one thread."""
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
        raise ValueError(f"{value} is not a power of two")
    return value.bit_length() - 1


#: Groups of four threads: the thread in its group walks along k (or n), the group along rows of A (columns of B).
def _group(along: Axis, step: int, across: Axis) -> tuple[Mode, ...]:
    return (*doubling(along, step, 2), *doubling(across, 1, 3))


def _operand_a(m: int, k: int, bits: int) -> Fragment:
    """Return A of mma.m8n8k* and mma.m16n8k*: each thread holds one register along k, then rows 8 apart, then the next part of
    k."""
    per = max(1, 32 // bits)
    slots = doubling("col", 1, exact_log2(per))
    if m == 16:
        slots += (Mode("row", 8),)
    slots += doubling("col", 4 * per, exact_log2(k // (4 * per)))
    return Fragment(_group("col", per, "row"), slots, bits, (1, m, k))


def _operand_b(n: int, k: int, bits: int) -> Fragment:
    """B of mma.m8n8k* and mma.m16n8k*: as A with rows and columns exchanged."""
    per = max(1, 32 // bits)
    slots = doubling("row", 1, exact_log2(per)) + doubling("row", 4 * per, exact_log2(k // (4 * per)))
    return Fragment(_group("row", per, "col"), slots, bits, (1, k, n))


def _accumulator(m: int, n: int, bits: int) -> Fragment:
    """Return C and D of mma.m8n8k* and mma.m16n8k*: pairs along n, then rows 8 apart."""
    slots = (Mode("col", 1),) + ((Mode("row", 8),) if m == 16 else ())
    return Fragment(_group("col", 2, "row"), slots, bits, (1, m, n))


#: mma.m8n8k4 with fp16: four multiplications at a time, each by a quad pair (threads 4q to 4q + 3 and 16 + 4q to 16 + 4q + 3).
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
    """Return D of wgmma.m64nNk*: warp w holds rows 16 w to 16 w + 15, columns eight at a time as an mma accumulator."""
    return Fragment(
        (*_group("col", 2, "row"), *doubling("row", 16, 2)),
        (Mode("col", 1), Mode("row", 8), Mode("col", 8, n // 8)),
        bits,
        (1, 64, n),
    )


def tensor_memory_accumulator(m: int, n: int) -> Fragment:
    """Return D of tcgen05.mma with one CTA as 128 threads read it: a thread holds one row, one 32-bit column for each element.

    With m = 64 the first 16 threads of each warp hold rows (data path layout F), with m = 128 all of them (layout D).
    """
    rows = doubling("row", 1, 4 if m == 64 else 5)
    return Fragment((*rows, *doubling("row", 16 if m == 64 else 32, 2)), (Mode("col", 1, n),), 32, (1, m, n))


class MmaLayout(NamedTuple):
    """The four fragments of an mma.sync instruction."""

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment


def register_width(fmt: str, *, packed: bool) -> int:
    """Return bits that one element takes in an mma.sync register: fp6 and, unless `packed`, fp4 have bytes of their own."""
    row = get_format(fmt)
    if row.bits in (4, 6):
        return 4 if packed else 8
    return row.bits


@cache
def mma_layout(
    shape: tuple[int, int, int], a_format: str, b_format: str, c_format: str, d_format: str, scaled: bool = False
) -> MmaLayout:
    """Return fragments of an mma.sync instruction of shape (m, n, k): (8, 8, 4), (8, 8, k) or (16, 8, k).

    fp4 with k = 64 is always packed, `scaled` or not.
    """
    m, n, k = shape
    if n != 8 or m not in (8, 16):
        raise ValueError(f"mma.sync has shapes m8n8k* and m16n8k*, got m{m}n{n}k{k}")
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


#: Bits by which an fp4 element is shifted in its byte of the f8f6f4 kinds of mma.sync; fp6 fills the low six bits.
FP4_BYTE_SHIFT = 2

# -- block scales ------------------------------------------------------------------------------------------------------------
#: Digits of a thread's number whose 32-bit register gives scales to mma.sync, with selectors 0 (PTX ISA 9.1, 9.7.14.3): of
#: each group of four threads, 0 and 1 give those of rows g and g + 8 of A, and 0 those of column g of B; the others (stride 0)
#: hold copies that are not read. One byte for each block of k, low first.
REGISTER_SCALES_A = (Mode("row", 8), Mode("row", 0), *doubling("row", 1, 3))
REGISTER_SCALES_B = (Mode("col", 0, 4), *doubling("col", 1, 3))

#: Scales of tcgen05.mma in tensor memory, with scale factor ID 0 (PTX ISA 9.1, 9.7.16.10.7): a 32-bit word for each row of A
#: (column of B), one byte for each block of k, low first; 32 words to a column of tensor memory, the next 32 rows in the next
#: column; a copy for each of the four warps.
SCALE_LANES = 32


def scale_columns(rows: int) -> int:
    """Return columns of tensor memory that the scales of `rows` rows of A (columns of B) take."""
    return -(-rows // SCALE_LANES)


# -- matrices in shared memory (wgmma, tcgen05) ------------------------------------------------------------------------------
#: A core matrix is 8 rows (of A, or columns of B) of 16 consecutive bytes along k; one instruction takes 32 bytes along k.
CORE_ROWS = 8
CORE_BYTES = 16
STEP_BYTES = 32
#: Distances between core matrices, in bytes: along k (leading dimension) and along m or n (stride dimension).
LEADING_BYTES = CORE_ROWS * CORE_BYTES
STRIDE_BYTES = LEADING_BYTES * (STEP_BYTES // CORE_BYTES)


def shared_descriptor(version: int = 0) -> int:
    """Return matrix descriptor without its start address: offsets in units of 16 bytes, no swizzle; bits 46-48 are 1 for
    tcgen05."""
    return LEADING_BYTES >> 4 << 16 | STRIDE_BYTES >> 4 << 32 | version << 46
