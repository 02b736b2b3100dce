"""Builds tcgen05.mma (PTX ISA 9.1, 9.7.17.10): products of one CTA on tensor memory, with and without block scales."""

import numpy as np

from ...formats import get_format
from .. import fragments
from ..errors import KernelFault, Refused
from .decode import Operation, reader, unknown
from .mma import ScaleVector, block_scales, refuse_scales_in_recipes
from .movement import address_reader
from .shared_tiles import load_tiles, signed, tcgen05_descriptor
from .syntax import Address, PTXInstruction, Vector
from .tensor_memory import tensor_memory, watch_cells

#: Formats by their codes in the instruction descriptor (PTX ISA 9.1, 9.7.17.4.2): those of A and B by kind, and those of D.
_OPERANDS = {
    "f16": {0: "fp16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": {0: "e4m3fn", 1: "e5m2"},
    "i8": {0: "u8", 1: "s8"},
    "mxf8f6f4": {0: "e4m3fn", 1: "e5m2"},
    "mxf4": {1: "e2m1"},
    "mxf4nvf4": {1: "e2m1"},
}
_RESULTS = {0: "fp16", 1: "fp32", 2: "s32"}
_STEP = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32, "mxf8f6f4": 32, "mxf4": 64, "mxf4nvf4": 64}
_PTX = {"fp16": "f16", "fp32": "f32", "e4m3fn": "e4m3"}


class _Description:
    """`_Description` holds the fields of the instruction descriptor; for block-scaled kinds D is FP32 and bits give the places
    of scales."""

    def __init__(self, word: int, kind: str, scales: ScaleVector | None, ins: PTXInstruction):
        codes = word >> 7 & 7, word >> 10 & 7
        known = all(code in _OPERANDS[kind] for code in codes) and (scales is not None or word >> 4 & 3 in _RESULTS)
        if not known:
            raise unknown(ins, f"has the instruction descriptor {word:#010x}, whose formats are not modelled")
        if word & 4 or word >> (30 if scales is None else 31):
            raise unknown(ins, "is sparse or shifted, which is not modelled")
        self.a, self.b = (_OPERANDS[kind][code] for code in codes)
        self.d, self.k = "fp32" if scales else _RESULTS[word >> 4 & 3], _STEP[kind]
        self.signs = tuple(-1 if word >> bit & 1 else 1 for bit in (13, 14))
        self.turned = bool(word >> 15 & 1), bool(word >> 16 & 1)
        self.n, self.m = (word >> 17 & 63) << 3, (word >> 24 & 31) << 4
        types = [_PTX.get(f, f) for f in (self.d, self.a, self.b)]
        self.name = ".".join((f"tcgen05.mma.m64n8k{self.k}", *types)) + (
            ".satfinite" if not scales and word & 8 else ""
        )
        if scales is not None:
            self.first_bytes = word >> 29 & 3, word >> 4 & 3
            types.append(("ue4m3", "ue8m0")[word >> 23 & 1])
            self.name = ".".join((f"tcgen05.mma.m128n8k{self.k}.block{scales.size}", *types))


def _lanes_of_rows(m: int) -> np.ndarray:
    """Return the lane of tensor memory that holds each row of D (data path layouts D and F)."""
    row = np.arange(m)
    return row if m == 128 else row // 16 * 32 + row % 16


#: Modifiers that change no values: hints for the buffer of A.
_HINTS = {"collector::a::discard", "collector::a::fill"}


class _Operands:
    """`_Operands` reads the operands of tcgen05.mma with cta_group::1."""

    def __init__(self, ins: PTXInstruction):
        words = ins.modifiers
        self.kind = next((w[6:] for w in words if w.startswith("kind::")), "")
        self.scales = block_scales(words, "", _STEP.get(self.kind, 0))
        scaled = {w for w in words if w.startswith(("scale_vec::", "block"))}
        known = {"mma", "cta_group::1", f"kind::{self.kind}", *_HINTS, *(scaled if self.scales else ())}
        if self.kind not in _STEP or "cta_group::1" not in words or set(words) - known:
            raise unknown(ins)
        if (self.scales is None) == self.kind.startswith("mx"):
            raise unknown(ins)
        target, left, right, described, *more = ins.operands
        self.where, self.description = address_reader(target, ins), reader(described, "u32", ins)
        self.a_where = address_reader(left, ins) if isinstance(left, Address) else None
        self.a_word = None if self.a_where else reader(left, "b64", ins)
        self.b_word = reader(right, "b64", ins)
        self.scale_where = [address_reader(more.pop(0), ins) for _ in range(2)] if self.scales else []
        more = [operand for operand in more if not isinstance(operand, Vector)]
        self.keep = reader(more[0], "pred", ins) if more else None
        if len(more) > 1:
            raise unknown(ins, "scales its accumulator, which is not modelled")


def build_product(ins: PTXInstruction) -> Operation:
    """Return tcgen05.mma with cta_group::1, with and without block scales."""
    given = _Operands(ins)

    def run(machine, lanes):
        issuers = machine.threads.all_lanes if lanes is None else lanes
        rows, count = machine.threads.row[issuers], len(issuers)
        if len(np.unique(rows)) != len(rows):
            raise Refused(f"{ins.opcode} issued by several threads of a block at once is not modelled")
        one = np.unique(np.broadcast_to(given.description(machine, lanes), (count,)))
        if len(one) != 1:
            raise KernelFault("blocks use different instruction descriptors at one instruction")
        job = _Description(int(one[0]), given.kind, given.scales, ins)
        row = machine.matrix_row(job.name, ins).with_shape(job.m, job.n)
        if given.a_where is None:
            a = _from_shared(machine, rows, given.a_word(machine, lanes), job, 0, issuers)
        else:
            a = _from_tensor(machine, rows, given.a_where(machine, lanes).astype(np.int64), job, ins, issuers)
        b = _from_shared(machine, rows, given.b_word(machine, lanes), job, 1, issuers)
        start = given.where(machine, lanes).astype(np.int64)
        places = _cells_of(machine, rows, start, _lanes_of_rows(job.m)[:, None], np.arange(job.n)[None, :])
        keep = np.ones(count, bool)
        if given.keep is not None:
            keep = np.broadcast_to(given.keep(machine, lanes), (count,))
        watch_cells(machine, places, issuers, "tcgen05", machine.checks.watch_write)
        scales = {}
        if given.scales is not None:
            for side, (name, where) in enumerate(zip(("scale_a", "scale_b"), given.scale_where, strict=True)):
                found = _scales(
                    machine, rows, where(machine, lanes).astype(np.int64), job, side, given.scales, ins, issuers
                )
                scales[name] = found.swapaxes(1, 2) if side else found
        _multiply(machine, row, job, (a, b), places, keep, scales, ins)

    return run


def _cells_of(machine, rows: np.ndarray, start: np.ndarray, lanes: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the flat places of cells of tensor memory at addresses, one address for each block."""
    lane, column = np.broadcast_arrays((start >> 16)[:, None, None] + lanes, (start & 0xFFFF)[:, None, None] + columns)
    return tensor_memory(machine).places(np.broadcast_to(rows[:, None, None], lane.shape), lane, column)


def _scales(
    machine, rows, start, job: _Description, side: int, scales: ScaleVector, ins: PTXInstruction, issuers
) -> np.ndarray:
    """Return the block scales in tensor memory, shape (blocks, rows of A or columns of B, scales along k).

    Each row has a word, whose bytes start at the descriptor's scale factor ID; a column holds 32 words (PTX ISA 9.1,
    9.7.17.10.7).
    """
    row, first = np.arange((job.m, job.n)[side]), job.first_bytes[side]
    if first % scales.count:
        raise unknown(ins, f"takes {scales.count} scales that start at byte {first}, which is not modelled")
    places = _cells_of(machine, rows, start, (row % 32)[:, None], (row // 32)[:, None])
    words = _read_cells(machine, places, ins, issuers)[0]
    return words.view(np.uint8).reshape(*places.shape[:2], 4)[:, :, first : first + scales.count]


def _read_cells(machine, places: np.ndarray, ins: PTXInstruction, issuers) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the words of cells that a product reads, and the expressions of their bytes."""
    space, flat = machine.tensor.space, places.reshape(-1)
    if machine.launch.checks and space.unwritten(flat, 4).any():
        raise KernelFault(f"{ins.opcode} reads tensor memory that nobody wrote")
    watch_cells(machine, places, issuers, "tcgen05", machine.checks.watch_read)
    return np.ascontiguousarray(space.load(flat, 4, 1)), space.load_ids(flat, 4)


def _multiply(
    machine, row, job: _Description, factors, places: np.ndarray, keep: np.ndarray, scales: dict, ins
) -> None:
    """Compute D = A B + D (or A B) in tensor memory; `places` are the places of D's elements."""
    space, shape = machine.tensor.space, places.shape
    container = get_format(job.d).container
    c, c_ids = np.zeros(shape, container), None
    if keep.any():
        flat = places[keep].reshape(-1)
        if machine.launch.checks and space.unwritten(flat, 4).any():
            raise KernelFault(f"{ins.opcode} adds to tensor memory that nobody wrote")
        c[keep] = space.load(flat, 4, 1).reshape(-1, *shape[1:]).astype(container)
        if machine.trace is not None:
            c_ids = np.zeros((*shape, 4), np.int64)
            c_ids[keep] = space.load_ids(flat, 4).reshape(-1, *shape[1:], 4)
            c_ids = c_ids[..., : container.itemsize]
    (a, a_ids), (b, b_ids) = factors
    b, b_ids = b.swapaxes(1, 2), None if b_ids is None else b_ids.swapaxes(1, 2)
    a, b = signed(a, job.signs[0]), signed(b, job.signs[1])
    tiles = [np.ascontiguousarray(x) for x in (a, b, c)]
    result = row.mma_bits(*tiles, **scales)
    space.store(places.reshape(-1), np.ascontiguousarray(result.reshape(-1, 1)).astype(np.uint32))
    if machine.trace is not None:
        refuse_scales_in_recipes(ins, bool(scales))
        ids = machine.trace.product(row, [a_ids, b_ids, c_ids], tiles, ins.line, job.signs).reshape(places.size, -1)
        space.store_ids(places.reshape(-1), np.pad(ids, ((0, 0), (0, 4 - ids.shape[1]))), 4)


def _from_shared(machine, rows, words, job: _Description, side: int, issuers):
    """Return A (side 0) or B transposed, read through a matrix descriptor; two 4-bit numbers share a byte."""
    descriptors = [tcgen05_descriptor(int(w)) for w in np.broadcast_to(words, (len(rows),))]
    bits = get_format((job.a, job.b)[side]).bits
    k, size = (job.k // 2, 1) if bits == 4 else (job.k, bits // 8)
    found, ids = load_tiles(
        machine, rows, descriptors, (job.m, job.n)[side], k, size, job.turned[side], issuers, "tcgen05"
    )
    return (fragments.unpacked(found, 4), None) if bits == 4 else (found, ids)


def _from_tensor(machine, rows, start: np.ndarray, job: _Description, ins: PTXInstruction, issuers):
    """Return A from tensor memory: each row is in the lane of the same row of D, its elements packed along the columns."""
    size = get_format(job.a).bits // 8
    if not size:
        raise unknown(ins, "takes numbers of 4 bits from tensor memory, which is not modelled")
    places = _cells_of(machine, rows, start, _lanes_of_rows(job.m)[:, None], np.arange(job.k * size // 4)[None, :])
    words, ids = _read_cells(machine, places, ins, issuers)
    values = words.view(np.uint8).reshape(-1).view(get_format(job.a).container).reshape(len(rows), job.m, job.k)
    return values, None if ids is None else ids.reshape(len(rows), job.m, job.k, size)
