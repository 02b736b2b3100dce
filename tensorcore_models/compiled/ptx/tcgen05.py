"""tcgen05 (PTX ISA 9.1, 9.7.17): tensor memory and products of one CTA on it. Done at once; commits arrive at once.

Tensor memory has 128 lanes of 512 columns of 32 bits for each block; an address is lane << 16 | column.
"""

import re
from collections.abc import Callable

import numpy as np

from ...formats import get_format
from ..errors import KernelFault, Refused
from ..memory import Space
from .barriers import places_of, update
from .decode import Operation, id_reader, reader, unknown
from .machine import WARP
from .movement import address_reader, items, store
from .shared_tiles import load_tiles, signed, tcgen05_descriptor
from .syntax import Address, PTXInstruction, Register, Vector
from .warps import warp_lanes, whole_warps

LANES, COLUMNS = 128, 512
_ROW_BYTES = 4 * COLUMNS

#: Formats by their codes in the instruction descriptor (PTX ISA 9.1, 9.7.17.4.2): of A and B by kind, of D.
_OPERANDS = {
    "f16": {0: "fp16", 1: "bf16"},
    "tf32": {2: "tf32"},
    "f8f6f4": {0: "e4m3fn", 1: "e5m2"},
    "i8": {0: "u8", 1: "s8"},
}
_RESULTS = {0: "fp16", 1: "fp32", 2: "s32"}
_STEP = {"f16": 16, "tf32": 8, "f8f6f4": 32, "i8": 32}
_PTX = {"fp16": "f16", "fp32": "f32", "e4m3fn": "e4m3"}


class TensorMemory:
    """Tensor memory of all blocks, and which columns are taken."""

    def __init__(self, blocks: int, *, checks: bool, traced: bool):
        self.space = Space(blocks * LANES * _ROW_BYTES, checks=checks, traced=traced)
        self.taken = np.zeros((blocks, COLUMNS), bool)

    def places(self, rows: np.ndarray, lanes: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Flat places of 32-bit cells; KernelFault where there are none, or none allocated."""
        if (lanes < 0).any() or (lanes >= LANES).any() or (columns < 0).any() or (columns >= COLUMNS).any():
            raise KernelFault("an address beyond tensor memory, which has 128 lanes of 512 columns")
        if not self.taken[rows, columns].all():
            raise KernelFault("uses columns of tensor memory that are not allocated")
        return (rows * LANES + lanes) * _ROW_BYTES + 4 * columns


def tensor_memory(machine) -> TensorMemory:
    """The machine's tensor memory, made when it is first used."""
    if machine.tensor is None:
        machine.tensor = TensorMemory(
            machine.threads.blocks, checks=machine.launch.checks, traced=machine.trace is not None
        )
    return machine.tensor


def _allocate(ins: PTXInstruction) -> Operation:
    """tcgen05.alloc: the lowest free columns; their address goes to shared memory."""
    where, count = address_reader(ins.operands[0], ins), reader(ins.operands[1], "u32", ins)
    space = "shared" if {"shared::cta", "shared"} & set(ins.modifiers) else ""

    def run(machine, lanes):
        warps = warp_lanes(machine, lanes, ins)
        memory = tensor_memory(machine)
        addresses = where(machine, lanes).reshape(-1, WARP)[:, 0]
        wanted = np.broadcast_to(count(machine, lanes), (warps.size,)).reshape(-1, WARP)[:, 0]
        found = []
        for row, columns in zip(machine.threads.row[warps[:, 0]].tolist(), wanted.tolist(), strict=True):
            if columns < 32 or columns & (columns - 1) or columns > COLUMNS:
                raise KernelFault(
                    f"allocates {columns} columns of tensor memory; a power of two from 32 to 512 is allowed"
                )
            starts = [at for at in range(0, COLUMNS, columns) if not memory.taken[row, at : at + columns].any()]
            if not starts:
                raise KernelFault(
                    f"no {columns} neighbouring columns of tensor memory are free, the allocation waits for ever"
                )
            memory.taken[row, starts[0] : starts[0] + columns] = True
            found.append(starts[0])
        store(machine, space, addresses, np.array(found, np.uint32)[:, None], warps[:, 0])

    return whole_warps(run)


def _free(ins: PTXInstruction) -> Operation:
    where, count = reader(ins.operands[0], "u32", ins), reader(ins.operands[1], "u32", ins)

    def run(machine, lanes):
        warps = warp_lanes(machine, lanes, ins)
        start = np.broadcast_to(where(machine, lanes), (warps.size,)).reshape(-1, WARP)[:, 0].astype(np.int64)
        wanted = np.broadcast_to(count(machine, lanes), (warps.size,)).reshape(-1, WARP)[:, 0].astype(np.int64)
        for row, at, columns in zip(machine.threads.row[warps[:, 0]], start, wanted, strict=True):
            tensor_memory(machine).taken[row, at : at + columns] = False

    return whole_warps(run)


# -- loads and stores --------------------------------------------------------------------------------------------------------
def _cells(ins: PTXInstruction) -> tuple[np.ndarray, np.ndarray]:
    """(lane, column) relative to the address of each register of each thread of a warp: shape (32, registers)."""
    count = next((int(w[1:]) for w in ins.modifiers if re.fullmatch(r"x\d+", w)), 0)
    thread, register = np.arange(WARP)[:, None], np.arange(count)[None, :]
    if count and "32x32b" in ins.modifiers:
        return thread + 0 * register, register + 0 * thread
    if count and "16x32bx2" in ins.modifiers:
        # Threads 16 to 31 take the same 16 lanes, `offset` columns further (the halves of an accumulator with m = 64).
        offset = ins.operands[2 if ins.modifiers[0] == "ld" else 1].value
        return thread % 16 + 0 * register, register + thread // 16 * offset
    raise unknown(ins, "has a shape that is not known here")


def _tensor_places(machine, lanes, addresses: np.ndarray, cells, ins: PTXInstruction) -> np.ndarray:
    """Flat places of the cells that each lane accesses, shape (lanes, registers)."""
    warps = warp_lanes(machine, lanes, ins)
    base = addresses.reshape(-1, WARP)
    if (base != base[:, :1]).any():
        raise KernelFault(f"{ins.opcode}: the threads of a warp hold different addresses")
    start = base[:, :1, None].astype(np.int64)
    lane, column = (start >> 16) + cells[0][None], (start & 0xFFFF) + cells[1][None]
    quarter = machine.threads.in_block[warps[:, 0]] // WARP % 4
    if (lane // WARP != quarter[:, None, None]).any():
        raise KernelFault("a warp reaches only its own quarter of the lanes of tensor memory")
    rows = np.broadcast_to(machine.threads.row[warps[:, 0]][:, None, None], lane.shape)
    return tensor_memory(machine).places(rows, lane, column).reshape(-1, lane.shape[2])


def _load(ins: PTXInstruction) -> Operation:
    """tcgen05.ld."""
    cells, targets, where = _cells(ins), items(ins.operands[0]), address_reader(ins.operands[1], ins)
    if len(targets) != cells[0].shape[1] or "pack::16b" in ins.modifiers:
        raise unknown(ins)

    def run(machine, lanes):
        places = _tensor_places(machine, lanes, where(machine, lanes), cells, ins)
        space = machine.tensor.space
        if machine.launch.checks and (bad := space.unwritten(places.reshape(-1), 4)).any():
            raise KernelFault("reads tensor memory that nobody wrote", index=int(bad.argmax()) // len(targets))
        _watch(machine, places, lanes, "tensor load", machine.checks.watch_read)
        words = space.load(places.reshape(-1), 4, 1).reshape(places.shape)
        for turn, register in enumerate(targets):
            ids = space.load_ids(places[:, turn], 4)
            machine.registers.write(register.number, np.ascontiguousarray(words[:, turn]), lanes, ids)
        machine.pending.loaded(lanes, [register.number for register in targets])

    return whole_warps(run)


def _store(ins: PTXInstruction) -> Operation:
    """tcgen05.st."""
    cells, where, sources = _cells(ins), address_reader(ins.operands[0], ins), items(ins.operands[-1])
    reads, owners = [reader(s, "b32", ins) for s in sources], [id_reader(s, "b32") for s in sources]
    if len(sources) != cells[0].shape[1] or "unpack::16b" in ins.modifiers:
        raise unknown(ins)

    def run(machine, lanes):
        places = _tensor_places(machine, lanes, where(machine, lanes), cells, ins)
        _watch(machine, places, lanes, "tensor store", machine.checks.watch_write)
        for turn, read in enumerate(reads):
            words = np.broadcast_to(read(machine, lanes), places.shape[:1])[:, None]
            machine.tensor.space.store(places[:, turn], np.ascontiguousarray(words))
            if machine.trace is not None:
                machine.tensor.space.store_ids(places[:, turn], owners[turn](machine, lanes), 4)

    return whole_warps(run)


def _watch(machine, places: np.ndarray, lanes, kind: str, watch: Callable) -> None:
    """Tell the checks of accesses to the cells at `places`, whose first axis is that of the lanes (None: all)."""
    if machine.launch.checks:
        everyone = machine.threads.all_lanes if lanes is None else lanes
        watch(machine.tensor.space, places.reshape(-1), 4, np.repeat(everyone, places[0].size), kind)


def _wait(ins: PTXInstruction) -> Operation:
    """tcgen05.wait::ld and wait::st."""
    kind = {"wait::ld": "tensor load", "wait::st": "tensor store"}[ins.modifiers[0]]

    def run(machine, lanes):
        machine.checks.tensor_waited(lanes, kind)
        if kind == "tensor load":
            machine.pending.loads_waited(lanes)

    return run


# -- products ----------------------------------------------------------------------------------------------------------------
class _Description:
    """The instruction descriptor taken apart."""

    def __init__(self, word: int, kind: str, ins: PTXInstruction):
        codes = word >> 7 & 7, word >> 10 & 7
        if any(code not in _OPERANDS[kind] for code in codes) or (word >> 4 & 3) not in _RESULTS:
            raise unknown(ins, f"has the instruction descriptor {word:#010x}, whose formats are not known here")
        if word & 4 or word >> 30:
            raise unknown(ins, "is sparse or shifted, which is not known here")
        self.a, self.b = (_OPERANDS[kind][code] for code in codes)
        self.d, self.k = _RESULTS[word >> 4 & 3], _STEP[kind]
        self.signs = tuple(-1 if word >> bit & 1 else 1 for bit in (13, 14))
        self.turned = bool(word >> 15 & 1), bool(word >> 16 & 1)
        self.n, self.m = (word >> 17 & 63) << 3, (word >> 24 & 31) << 4
        types = ".".join(_PTX.get(f, f) for f in (self.d, self.a, self.b))
        self.name = f"tcgen05.mma.m64n8k{self.k}.{types}" + (".satfinite" if word & 8 else "")


def _lanes_of_rows(m: int) -> np.ndarray:
    """Lane of tensor memory that holds each row of D (data path layouts D and F)."""
    row = np.arange(m)
    return row if m == 128 else row // 16 * 32 + row % 16


def _product(ins: PTXInstruction) -> Operation:
    """tcgen05.mma with cta_group::1 and no block scales."""
    words = ins.modifiers
    kind = next((w[6:] for w in words if w.startswith("kind::")), "")
    known = {"mma", "cta_group::1", f"kind::{kind}", "collector::a::discard", "collector::a::fill"}  # a buffer's hints
    if kind not in _STEP or "cta_group::1" not in words or set(words) - known:
        raise unknown(ins)
    target, left, right, described, *more = ins.operands
    where, idesc = address_reader(target, ins), reader(described, "u32", ins)
    a_where = address_reader(left, ins) if isinstance(left, Address) else None
    a_word = None if a_where else reader(left, "b64", ins)
    b_word = reader(right, "b64", ins)
    more = [operand for operand in more if not isinstance(operand, Vector)]
    keep_reader = reader(more[0], "pred", ins) if more else None
    if len(more) > 1:
        raise unknown(ins, "scales its accumulator, which is not known here")

    def run(machine, lanes):
        issuers = machine.threads.all_lanes if lanes is None else lanes
        rows = machine.threads.row[issuers]
        if len(np.unique(rows)) != len(rows):
            raise Refused(f"{ins.opcode} issued by several threads of a block at once is not known here")
        count = len(issuers)
        one = np.unique(np.broadcast_to(idesc(machine, lanes), (count,)))
        if len(one) != 1:
            raise KernelFault("blocks use different instruction descriptors at one instruction")
        job = _Description(int(one[0]), kind, ins)
        row = machine.matrix_row(job.name, ins).with_shape(job.m, job.n)
        start = where(machine, lanes).astype(np.int64)
        size = get_format(job.a).bits // 8
        if a_where is None:
            a = _from_shared(machine, rows, a_word(machine, lanes), job.m, job.k, size, job.turned[0], issuers)
        else:
            a = _from_tensor(machine, rows, a_where(machine, lanes).astype(np.int64), job, ins, issuers)
        b = _from_shared(machine, rows, b_word(machine, lanes), job.n, job.k, size, job.turned[1], issuers)
        lane = (start >> 16)[:, None, None] + _lanes_of_rows(job.m)[None, :, None]
        column = (start & 0xFFFF)[:, None, None] + np.arange(job.n)[None, None, :]
        places = tensor_memory(machine).places(
            np.broadcast_to(rows[:, None, None], (count, job.m, job.n)), *np.broadcast_arrays(lane, column)
        )
        keep = np.ones(count, bool) if keep_reader is None else np.broadcast_to(keep_reader(machine, lanes), (count,))
        _watch(machine, places, issuers, "tcgen05", machine.checks.watch_write)
        _multiply(machine, row, job, a, b, places, keep, ins)

    return run


def _multiply(machine, row, job: _Description, a, b, places: np.ndarray, keep: np.ndarray, ins: PTXInstruction) -> None:
    """D = A B + D (or A B) in tensor memory; `places` are those of D's elements."""
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
    (a, a_ids), (b, b_ids) = a, b
    b, b_ids = b.swapaxes(1, 2), None if b_ids is None else b_ids.swapaxes(1, 2)
    a, b = signed(a, job.signs[0]), signed(b, job.signs[1])
    tiles = [np.ascontiguousarray(x) for x in (a, b, c)]
    result = row.mma_bits(*tiles)
    space.store(places.reshape(-1), np.ascontiguousarray(result.reshape(-1, 1)).astype(np.uint32))
    if machine.trace is not None:
        ids = machine.trace.product(row, [a_ids, b_ids, c_ids], tiles, ins.line, job.signs).reshape(places.size, -1)
        space.store_ids(places.reshape(-1), np.pad(ids, ((0, 0), (0, 4 - ids.shape[1]))), 4)


def _from_shared(machine, rows, words, height: int, k: int, size: int, turned: bool, issuers):
    descriptors = [tcgen05_descriptor(int(w)) for w in np.broadcast_to(words, (len(rows),))]
    return load_tiles(machine, rows, descriptors, height, k, size, turned, issuers, "tcgen05")


def _from_tensor(machine, rows, start: np.ndarray, job: _Description, ins: PTXInstruction, issuers):
    """A in tensor memory: a row to the lane that D's row has, elements packed along the columns."""
    size = get_format(job.a).bits // 8
    columns = job.k * size // 4
    lane = (start >> 16)[:, None, None] + _lanes_of_rows(job.m)[None, :, None]
    column = (start & 0xFFFF)[:, None, None] + np.arange(columns)[None, None, :]
    lane, column = np.broadcast_arrays(lane, column)
    places = tensor_memory(machine).places(np.broadcast_to(rows[:, None, None], lane.shape), lane, column)
    space = machine.tensor.space
    if machine.launch.checks and space.unwritten(places.reshape(-1), 4).any():
        raise KernelFault(f"{ins.opcode} reads tensor memory that nobody wrote")
    _watch(machine, places, issuers, "tcgen05", machine.checks.watch_read)
    raw = np.ascontiguousarray(space.load(places.reshape(-1), 4, 1)).view(np.uint8)
    ids = space.load_ids(places.reshape(-1), 4)
    values = raw.reshape(-1).view(get_format(job.a).container).reshape(len(rows), job.m, job.k)
    return values, None if ids is None else ids.reshape(len(rows), job.m, job.k, size)


def _commit(ins: PTXInstruction) -> Operation:
    """tcgen05.commit: an arrival on an mbarrier when the products before it are complete, here at once."""
    words = ins.modifiers
    if "cta_group::1" not in words or "multicast::cluster" in words:
        raise unknown(ins)
    where = address_reader(ins.operands[0], ins)
    space = "shared::cluster" if {"shared::cluster"} & set(words) else ""

    def run(machine, lanes):
        everyone = machine.threads.all_lanes if lanes is None else lanes
        for lane, place in zip(
            everyone.tolist(), places_of(machine, where(machine, lanes), lanes, space=space).tolist(), strict=True
        ):
            machine.checks.products_report_to(lane, place)
            update(machine, place, arrivals=1)

    return run


def build(ins: PTXInstruction) -> Operation:
    """The operations of tcgen05."""
    deed = ins.modifiers[0]
    table = {"alloc": _allocate, "dealloc": _free, "ld": _load, "st": _store, "mma": _product, "commit": _commit}
    if deed.startswith("wait"):
        return _wait(ins)
    if deed.startswith(("fence", "relinquish_alloc_permit")):
        return lambda machine, lanes: None
    if deed not in table or (isinstance(ins.operands[0], Register) and deed == "mma"):
        raise unknown(ins)
    if deed in ("alloc", "dealloc") and "cta_group::1" not in ins.modifiers:
        raise unknown(ins)
    return table[deed](ins)


BUILDERS = {"tcgen05": build}
