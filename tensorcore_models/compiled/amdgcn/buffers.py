"""Builds buffer loads and stores, whose addresses a descriptor bounds (CDNA3 ISA, "Vector Memory Buffer Instructions").

Only plain descriptors are modelled, without swizzling and without the lane's number in the address. In a raw buffer, each
32-bit word is checked alone: it is out of range if its offset is not below the number of records minus the scalar offset. A
word out of range is read as 0 and is not written. Without an index, the records of a descriptor are bytes, whatever its stride
is.
"""

from collections.abc import Callable

import numpy as np

from ..errors import KernelFault, Refused
from ..isa.types import size_of
from .access import HINTS, LOADS, STORES, Access, fill, one_by_one, read_places, taken, vectors_of, write_places
from .counters import VECTOR_MEMORY
from .global_memory import ATOMICS
from .scalar_operands import Operation, ScalarSource, unknown
from .syntax import M0, AMDInstruction, Literal, RegisterRange, Word
from .vector_operands import active


class BufferAddress:
    """`BufferAddress` holds the address operands of a buffer instruction: registers of the lane, descriptor, scalar offset."""

    def __init__(self, ins: AMDInstruction, vector, descriptor, scalar):
        words = ins.modifiers
        if words.keys() - {"offset", "offen", "idxen", "lds", *HINTS}:
            raise unknown(ins, f"with {', '.join(sorted(words))} is not modelled")
        self.ins, self.offset = ins, int(words.get("offset", 0))
        if not 0 <= self.offset < 4096:
            raise unknown(ins, f"has the offset {self.offset}, expected 0 to 4095")
        self.indexed, self.moved = "idxen" in words, "offen" in words  # without an index the stride is not used
        if self.indexed:
            raise unknown(ins, "with idxen (a structured buffer) is not modelled")
        count = int(self.moved)
        if isinstance(vector, Word) and vector.name == "off" and not count:
            self.lane = range(0)
        else:
            self.lane = vectors_of(vector, count, ins)
        if not isinstance(descriptor, RegisterRange) or descriptor.vector or descriptor.count != 4:
            raise unknown(ins, "needs a descriptor of 4 scalar registers")
        self.words = [ScalarSource(RegisterRange(False, descriptor.first + i, 1), "u32", ins) for i in range(4)]
        if not isinstance(scalar, RegisterRange | Literal):
            raise unknown(ins, "needs a scalar register or a constant as its scalar offset")
        self.scalar = ScalarSource(scalar, "u32", ins)

    def read(self, machine, waves, lanes, form: Access) -> tuple[np.ndarray, np.ndarray]:
        """Return the address in each lane, and the number of bytes at its start that are in range."""
        base_low, second, records, flags = (
            np.asarray(machine.spread(word.read(machine, waves), waves, lanes)).astype(np.int64) for word in self.words
        )
        if (second >> 31).any() or (flags >> 23 & 1).any():
            raise Refused(
                f"{self.ins.opcode}: the descriptor swizzles or adds the lane's number, which is not modelled"
            )
        count = machine.threads.count if lanes is None else len(lanes)
        offset = np.full(count, self.offset, np.int64)
        if self.moved:
            offset = offset + machine.read_vector(self.lane[-1], waves, lanes).astype(np.int64)
        scalar = np.asarray(machine.spread(self.scalar.read(machine, waves), waves, lanes)).astype(np.int64)
        limit = records - scalar
        if (limit < 0).any():
            machine.assume("a scalar offset beyond a buffer's records makes every word out of range")
        inside = np.clip(limit - offset, 0, form.size)
        if (inside % min(form.width, 4)).any():
            raise Refused(
                f"{self.ins.opcode}: a word lies across the buffer's end, which is not modelled", self.ins.line
            )
        base = base_low | (second & 0xFFFF) << 32
        return (base + scalar + offset).astype(np.uint64), inside


def _of_lanes(machine, lanes, chosen: np.ndarray) -> np.ndarray:
    return machine.threads.all_lanes[chosen] if lanes is None else lanes[chosen]


def _parts(inside: np.ndarray, form: Access) -> list[tuple[int, np.ndarray]]:
    """Return the lanes grouped by the number of words in range, as (number of words, lanes).

    Lanes with no word are left out.
    """
    words = inside // form.width
    return [(int(n), np.flatnonzero(words == n)) for n in np.unique(words) if n]


def _places(machine, addresses, size: int, lanes, chosen, *, write: bool) -> np.ndarray:
    """Return the flat places of the accesses of chosen lanes."""
    try:
        return machine.memory.places(addresses[chosen], size, write=write, alignment=1)
    except KernelFault as fault:
        fault.lanes = _of_lanes(machine, lanes, chosen)
        raise


def _loaded(machine, where: BufferAddress, form: Access, waves, lanes) -> tuple[np.ndarray, np.ndarray | None]:
    addresses, inside = where.read(machine, waves, lanes, form)
    words = np.zeros((len(addresses), form.count), f"u{form.width}")
    owners = None if machine.trace is None else np.zeros((len(addresses), form.size), np.int64)
    for count, chosen in _parts(inside, form):
        part = Access(form.width, count)
        places = _places(machine, addresses, part.size, lanes, chosen, write=False)
        mine = _of_lanes(machine, lanes, chosen)
        found, own = read_places(machine, machine.memory.space, places, part, mine)
        words[chosen, :count] = found
        if owners is not None and own is not None:
            owners[chosen, : part.size] = own
    return words, owners if owners is not None and owners.any() else None


def _counted(run: Callable, targets: range = range(0)) -> Operation:
    operation = active(run)

    def counted(machine, waves):
        operation(machine, waves)
        machine.counters.issued(VECTOR_MEMORY, waves, targets)

    return counted


def build_load(ins: AMDInstruction) -> Operation:
    """Return a load to registers or, with `lds`, to neighbouring places of local memory that start at M0."""
    form = LOADS[ins.name.removeprefix("buffer_load_")]
    if ins.modifiers.get("lds"):
        return _to_local(ins, form)
    if len(ins.operands) != 4:
        raise unknown(ins, f"has {len(ins.operands)} operands, expected 4")
    targets = vectors_of(ins.operands[0], form.registers, ins)
    where = BufferAddress(ins, *ins.operands[1:])

    def run(machine, waves, lanes):
        words, owners = _loaded(machine, where, form, waves, lanes)
        fill(machine, targets, form, words, owners, waves, lanes)

    return _counted(run, targets)


def _to_local(ins: AMDInstruction, form: Access) -> Operation:
    if form.width != 4 or len(ins.operands) != 3:
        raise unknown(ins)
    where = BufferAddress(ins, *ins.operands)
    base = ScalarSource(RegisterRange(False, M0, 1), "b32", ins)

    def run(machine, waves, lanes):
        words, owners = _loaded(machine, where, form, waves, lanes)
        every = machine.threads.all_lanes if lanes is None else lanes
        start = np.asarray(machine.spread(base.read(machine, waves), waves, lanes)).astype(np.int64) & 0xFFFF
        addresses = np.broadcast_to(start, every.shape) + where.offset + every % 64 * form.size
        local, there = machine.local("lds", addresses, form.size, lanes, write=True)
        write_places(machine, local, there, words, lanes, owners, kind="copy")

    operation = _counted(run)

    def copied(machine, waves):
        operation(machine, waves)
        if machine.launch.checks:
            machine.counters.copied(waves)
            machine.checks.copy_issued(waves)

    return copied


def build_store(ins: AMDInstruction) -> Operation:
    """Return the operation of a buffer store."""
    form = STORES[ins.name.removeprefix("buffer_store_")]
    if len(ins.operands) != 4:
        raise unknown(ins, f"has {len(ins.operands)} operands, expected 4")
    sources, where = vectors_of(ins.operands[0], form.registers, ins), BufferAddress(ins, *ins.operands[1:])

    def run(machine, waves, lanes):
        addresses, inside = where.read(machine, waves, lanes, form)
        words, owners = taken(machine, sources, form, waves, lanes)
        for count, chosen in _parts(inside, form):
            places = _places(machine, addresses, count * form.width, lanes, chosen, write=True)
            own = None if owners is None else owners[chosen, : count * form.width]
            mine = _of_lanes(machine, lanes, chosen)
            write_places(machine, machine.memory.space, places, words[chosen, :count], mine, own)

    return _counted(run)


def build_atomic(ins: AMDInstruction) -> Operation:
    """Return an atomic operation, which a lane runs only if it is wholly in range; with sc0 it returns the earlier value."""
    m, count = ATOMICS[ins.name.removeprefix("buffer_atomic_")]
    form, returns = Access(size_of(m.result), count), "sc0" in ins.modifiers or "glc" in ins.modifiers
    if len(ins.operands) != 4:
        raise unknown(ins, f"has {len(ins.operands)} operands, expected 4")
    given = form.registers * (len(m.sources) - 1)
    sources, where = vectors_of(ins.operands[0], given, ins), BufferAddress(ins, *ins.operands[1:])
    registers = sources[: form.registers]

    def run(machine, waves, lanes):
        addresses, inside = where.read(machine, waves, lanes, form)
        words, owners = taken(machine, sources, Access(4, given), waves, lanes)
        chosen = np.flatnonzero(inside == form.size)
        places = _places(machine, addresses, form.size, lanes, chosen, write=True)
        shaped = np.ascontiguousarray(words[chosen]).view(f"u{form.width}")
        own = None if owners is None else owners[chosen]
        before, old = one_by_one(machine, machine.memory.space, places, shaped, own, m, ins.name, lanes)
        if returns:
            back = np.zeros((len(addresses), form.registers), np.uint32)
            back[chosen] = np.ascontiguousarray(before).view(np.uint32)
            ids = None
            if old is not None:
                ids = np.zeros((len(addresses), form.size), np.int64)
                ids[chosen] = old
            fill(machine, registers, Access(4, form.registers), back, ids, waves, lanes)

    return _counted(run, registers if returns else range(0))


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **{f"buffer_load_{name}": build_load for name in LOADS}, **{f"buffer_store_{name}": build_store for name in STORES},
    **{f"buffer_atomic_{name}": build_atomic for name in ATOMICS},
}  # fmt: skip
