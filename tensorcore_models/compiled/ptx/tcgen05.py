"""Builds tcgen05 (PTX ISA 9.1, 9.7.17): tensor memory, its loads and stores. They are done at once, and commits arrive at once.

Products are in :mod:`.tcgen05_products`.

Tensor memory has 128 lanes of 512 columns of 32 bits for each block; an address is lane << 16 | column.
"""

import re

import numpy as np

from ..errors import KernelFault
from .barriers import places_of, update
from .decode import Operation, id_reader, reader, unknown
from .machine import WARP
from .movement import address_reader, items, store
from .syntax import PTXInstruction, Register
from .tcgen05_products import build_product
from .tensor_memory import COLUMNS, tensor_memory, watch_cells
from .warps import warp_lanes, whole_warps


def _allocate(ins: PTXInstruction) -> Operation:
    """Return tcgen05.alloc, which allocates the lowest free columns and stores their address to shared memory."""
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
                    f"allocates {columns} columns of tensor memory, expected a power of two from 32 to 512"
                )
            starts = [at for at in range(0, COLUMNS, columns) if not memory.taken[row, at : at + columns].any()]
            if not starts:
                raise KernelFault(
                    f"no {columns} neighbouring columns of tensor memory are free, so that the allocation waits for ever"
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
    """Return the lane and the column, relative to the address, of each register of each thread of a warp: shape (32,
    registers)."""
    count = next((int(w[1:]) for w in ins.modifiers if re.fullmatch(r"x\d+", w)), 0)
    thread, register = np.arange(WARP)[:, None], np.arange(count)[None, :]
    if count and "32x32b" in ins.modifiers:
        return thread + 0 * register, register + 0 * thread
    if count and "16x32bx2" in ins.modifiers:
        # Threads 16 to 31 take the same 16 lanes, `offset` columns further (the halves of an accumulator with m = 64).
        offset = ins.operands[2 if ins.modifiers[0] == "ld" else 1].value
        return thread % 16 + 0 * register, register + thread // 16 * offset
    raise unknown(ins, "has a shape that is not modelled")


def _tensor_places(machine, lanes, addresses: np.ndarray, cells, ins: PTXInstruction) -> np.ndarray:
    """Return the flat places of the cells that each lane accesses, shape (lanes, registers)."""
    warps = warp_lanes(machine, lanes, ins)
    base = addresses.reshape(-1, WARP)
    if (base != base[:, :1]).any():
        raise KernelFault(f"{ins.opcode}: the threads of a warp hold different addresses")
    start = base[:, :1, None].astype(np.int64)
    lane, column = (start >> 16) + cells[0][None], (start & 0xFFFF) + cells[1][None]
    quarter = machine.threads.in_block[warps[:, 0]] // WARP % 4
    if (lane // WARP != quarter[:, None, None]).any():
        raise KernelFault("accesses lanes of tensor memory outside of the warp's own quarter")
    rows = np.broadcast_to(machine.threads.row[warps[:, 0]][:, None, None], lane.shape)
    return tensor_memory(machine).places(rows, lane, column).reshape(-1, lane.shape[2])


def _load(ins: PTXInstruction) -> Operation:
    """Return tcgen05.ld, which loads cells of tensor memory to registers."""
    cells, targets, where = _cells(ins), items(ins.operands[0]), address_reader(ins.operands[1], ins)
    if len(targets) != cells[0].shape[1] or "pack::16b" in ins.modifiers:
        raise unknown(ins)

    def run(machine, lanes):
        places = _tensor_places(machine, lanes, where(machine, lanes), cells, ins)
        space = machine.tensor.space
        if machine.launch.checks and (bad := space.unwritten(places.reshape(-1), 4)).any():
            raise KernelFault("reads tensor memory that nobody wrote", index=int(bad.argmax()) // len(targets))
        watch_cells(machine, places, lanes, "tensor load", machine.checks.watch_read)
        words = space.load(places.reshape(-1), 4, 1).reshape(places.shape)
        for turn, register in enumerate(targets):
            ids = space.load_ids(places[:, turn], 4)
            machine.registers.write(register.number, np.ascontiguousarray(words[:, turn]), lanes, ids)
        machine.pending.loaded(lanes, [register.number for register in targets])

    return whole_warps(run)


def _store(ins: PTXInstruction) -> Operation:
    """Return tcgen05.st, which stores registers to cells of tensor memory."""
    cells, where, sources = _cells(ins), address_reader(ins.operands[0], ins), items(ins.operands[-1])
    reads, owners = [reader(s, "b32", ins) for s in sources], [id_reader(s, "b32") for s in sources]
    if len(sources) != cells[0].shape[1] or "unpack::16b" in ins.modifiers:
        raise unknown(ins)

    def run(machine, lanes):
        places = _tensor_places(machine, lanes, where(machine, lanes), cells, ins)
        watch_cells(machine, places, lanes, "tensor store", machine.checks.watch_write)
        for turn, read in enumerate(reads):
            words = np.broadcast_to(read(machine, lanes), places.shape[:1])[:, None]
            machine.tensor.space.store(places[:, turn], np.ascontiguousarray(words))
            if machine.trace is not None:
                machine.tensor.space.store_ids(places[:, turn], owners[turn](machine, lanes), 4)

    return whole_warps(run)


def _wait(ins: PTXInstruction) -> Operation:
    """Return tcgen05.wait::ld or wait::st."""
    kind = {"wait::ld": "tensor load", "wait::st": "tensor store"}[ins.modifiers[0]]

    def run(machine, lanes):
        machine.checks.tensor_waited(lanes, kind)
        if kind == "tensor load":
            machine.pending.loads_waited(lanes)

    return run


def _commit(ins: PTXInstruction) -> Operation:
    """Return tcgen05.commit: an arrival on an mbarrier when the products before it are complete, which is at once here."""
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
    """Return the operation of a tcgen05 instruction."""
    deed = ins.modifiers[0]
    table = {"alloc": _allocate, "dealloc": _free, "ld": _load, "st": _store, "mma": build_product, "commit": _commit}
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
