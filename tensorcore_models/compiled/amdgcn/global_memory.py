"""Builds global, flat and scratch loads, stores and atomic operations (CDNA3 ISA, "Flat Memory Instructions")."""

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from ..isa.meaning import Meaning
from ..isa.types import size_of
from .access import HINTS, LOADS, STORES, Access, fill, one_by_one, read_places, taken, vectors_of, write_places
from .counters import LOCAL, VECTOR_MEMORY
from .scalar_operands import Operation, ScalarSource, unknown
from .syntax import M0, AMDInstruction, RegisterRange, Word
from .vector_operands import active


def _is_off(operand) -> bool:
    return isinstance(operand, Word) and operand.name == "off"


def address_reader(ins: AMDInstruction, vector, scalar) -> Callable:
    """Return a function that gives each lane's address as uint64, from registers of the lane and of the wave, and the
    offset."""
    if ins.modifiers.keys() - {"offset", "lds", *HINTS}:
        raise unknown(ins, f"with {', '.join(sorted(ins.modifiers))} is not modelled")
    offset = ins.modifiers.get("offset", 0)
    if not isinstance(offset, int) or not -4096 <= offset < 4096:
        raise unknown(ins, f"has the offset {offset}, expected -4096 to 4095")
    step = np.uint64(offset % (1 << 64))
    scratch = ins.name.startswith("scratch")
    base = None
    if scalar is not None and not _is_off(scalar):
        base = ScalarSource(scalar, "b32" if scratch else "b64", ins)
    lane = None
    if not _is_off(vector):
        lane = vectors_of(vector, 2 if base is None and not scratch else 1, ins)
    elif base is None and not scratch:
        raise unknown(ins, "has no address operand")

    def read(machine, waves, lanes):
        count = machine.threads.count if lanes is None else len(lanes)
        address = np.full(count, step)
        if base is not None:
            address = address + np.asarray(machine.spread(base.read(machine, waves), waves, lanes)).astype(np.uint64)
        if lane is not None:
            address = address + machine.read_vector(lane[0], waves, lanes).astype(np.uint64)
            if len(lane) == 2:
                address = address + (machine.read_vector(lane[1], waves, lanes).astype(np.uint64) << np.uint64(32))
        return address & np.uint64(0xFFFFFFFF) if scratch else address

    return read


def _located(machine, ins: AMDInstruction, addresses, size: int, lanes, *, write: bool):
    if ins.name.startswith("scratch"):
        return machine.local("scratch", addresses, size, lanes, write=write)
    if ins.name.startswith("flat"):
        return machine.generic(addresses, size, lanes, write=write)
    return machine.memory.space, machine.memory.places(addresses, size, write=write, alignment=1)


def _issued(machine, ins: AMDInstruction, waves, targets: range = range(0)) -> None:
    machine.counters.issued(VECTOR_MEMORY, waves, targets)
    if ins.name.startswith("flat"):
        machine.counters.issued(LOCAL, waves)


def _strength(ins: AMDInstruction) -> str:
    """Return the kind of an access for the checks; with sc1 it reaches memory that all compute units share, as LLVM's atomics
    do."""
    return "strong" if "sc1" in ins.modifiers else "generic"


def _spills(ins: AMDInstruction, form: Access) -> bool:
    """Return whether an instruction may store a whole spilled register, of which a part was never written."""
    return ins.name.startswith("scratch") and form.width == 4


def _holes(memory, places: np.ndarray, form: Access) -> list[np.ndarray]:
    """Return, for each word of a spilled register, the bits that nobody wrote; an empty list if the words are narrow."""
    return [memory.holes(places + 4 * place) for place in range(form.count)] if form.width == 4 else []


def build_load(ins: AMDInstruction) -> Operation:
    """Return the operation of a load to registers."""
    form = LOADS[ins.name.split("_load_")[1]]
    targets = vectors_of(ins.operands[0], form.registers, ins)
    where = address_reader(ins, *_addresses(ins, 1))
    strength = _strength(ins)

    def run(machine, waves, lanes):
        memory, places = _located(machine, ins, where(machine, waves, lanes), form.size, lanes, write=False)
        holes = _holes(memory, places, form) if ins.name.startswith("scratch") else []
        if not any(hole.any() for hole in holes) or memory.missing(places, form.size):
            words, owners = read_places(machine, memory, places, form, lanes, kind=strength)
            fill(machine, targets, form, words, owners, waves, lanes)
            return
        fill(machine, targets, form, memory.load_anywhere(places, form.width, form.count), None, waves, lanes)
        for number, hole in zip(targets, holes, strict=True):
            machine.vectors.forget(number, lanes, hole)

    return _counted(ins, run, targets)


def _counted(ins: AMDInstruction, run: Callable, targets: range = range(0)) -> Operation:
    """Return the operation for active lanes; the access is counted even if no lane is active."""
    operation = active(run)

    def counted(machine, waves):
        operation(machine, waves)
        _issued(machine, ins, waves, targets)

    return counted


def _addresses(ins: AMDInstruction, first: int) -> tuple:
    """Return the address operands that start at place `first`: registers of the lane, and registers of the wave or None."""
    given = ins.operands[first:]
    if not 1 <= len(given) <= 2 or ins.name.startswith("flat") and len(given) != 1:
        raise unknown(ins, f"has {len(ins.operands)} operands")
    return given[0], given[1] if len(given) == 2 else None


def build_store(ins: AMDInstruction) -> Operation:
    """Return the operation of a store from registers."""
    form = STORES[ins.name.split("_store_")[1]]
    vector, data, *rest = ins.operands
    sources = vectors_of(data, form.registers, ins)
    if len(rest) != (not ins.name.startswith("flat")):
        raise unknown(ins, f"has {len(ins.operands)} operands")
    where = address_reader(ins, vector, rest[0] if rest else None)
    strength = _strength(ins)

    def run(machine, waves, lanes):
        memory, places = _located(machine, ins, where(machine, waves, lanes), form.size, lanes, write=True)
        absent = [machine.vectors.unwritten(n, lanes) for n in sources] if _spills(ins, form) else []
        with machine.vectors.unchecked() if any(hole is not None for hole in absent) else nullcontext():
            words, owners = taken(machine, sources, form, waves, lanes)
        write_places(machine, memory, places, words, lanes, owners, kind=strength)
        for place, hole in enumerate(absent):
            if hole is not None:
                memory.forget(places + 4 * place, hole)

    return _counted(ins, run)


def build_to_local(ins: AMDInstruction) -> Operation:
    """Return the operation of global_load_lds, which loads the lanes' words to neighbouring places of local memory that start
    at M0."""
    form = LOADS[ins.name.split("_lds_")[1]]
    if form.width != 4:
        raise unknown(ins)
    where = address_reader(ins, *_addresses(ins, 0))
    step = int(ins.modifiers.get("offset", 0))
    base = ScalarSource(RegisterRange(False, M0, 1), "b32", ins)

    def run(machine, waves, lanes):
        memory, places = _located(machine, ins, where(machine, waves, lanes), form.size, lanes, write=False)
        words, owners = read_places(machine, memory, places, form, lanes)
        every = machine.threads.all_lanes if lanes is None else lanes
        start = np.asarray(machine.spread(base.read(machine, waves), waves, lanes)).astype(np.int64) & 0xFFFF
        addresses = np.broadcast_to(start, every.shape) + step + every % 64 * form.size
        local, there = machine.local("lds", addresses, form.size, lanes, write=True)
        write_places(machine, local, there, words, lanes, owners, kind="copy")

    operation = _counted(ins, run)

    def copied(machine, waves):
        operation(machine, waves)
        if machine.launch.checks:
            machine.counters.copied(waves)
            machine.checks.copy_issued(waves)

    return copied


# -- atomic operations -----------------------------------------------------------------------------------------------------
def _of(operation: str, kind: str, operands: int = 2) -> Meaning:
    return Meaning(operation, kind, (kind,) * operands, options=("atomic",), nan="quiet")


#: Atomic operations: name -> (function of the old and the new value, words of an access).
ATOMICS: dict[str, tuple[Meaning, int]] = {
    **{name: (_of(name, "u32"), 1) for name in ("add", "sub", "and", "or", "xor")},
    **{f"{kind[0]}{name}": (_of(name, kind), 1) for name in ("min", "max") for kind in ("u32", "s32")},
    "swap": (_of("exchange", "u32"), 1), "swap_x2": (_of("exchange", "u64"), 1), "add_x2": (_of("add", "u64"), 1),
    "cmpswap": (_of("compare_swap", "u32", 3), 1), "cmpswap_x2": (_of("compare_swap", "u64", 3), 1),
    "add_f32": (_of("add", "f32"), 1), "add_f64": (_of("add", "f64"), 1),
    "pk_add_f16": (_of("add", "f16"), 2), "pk_add_bf16": (_of("add", "bf16"), 2),
}  # fmt: skip


def build_atomic(ins: AMDInstruction) -> Operation:
    """Return an atomic operation; with sc0 it returns the earlier value."""
    m, count = ATOMICS[ins.name.split("_atomic_")[1]]
    given = len(m.sources) - 1
    form, returns = Access(size_of(m.result), count), "sc0" in ins.modifiers or "glc" in ins.modifiers
    targets = vectors_of(ins.operands[0], form.registers, ins) if returns else range(0)
    vector, data, *rest = ins.operands[returns:]
    sources = vectors_of(data, given * form.registers, ins)
    where = address_reader(ins, vector, rest[0] if rest else None)

    def run(machine, waves, lanes):
        memory, places = _located(machine, ins, where(machine, waves, lanes), form.size, lanes, write=True)
        words, owners = taken(machine, sources, Access(4, len(sources)), waves, lanes)
        shaped = np.ascontiguousarray(words).view(f"u{form.width}")
        before, old = one_by_one(machine, memory, places, shaped, owners, m, ins.name, lanes)
        if returns:
            back = np.ascontiguousarray(before).view(np.uint32)
            fill(machine, targets, Access(4, form.registers), back, old, waves, lanes)

    return _counted(ins, run, targets)


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **{f"{space}_load_{name}": build_load for space in ("global", "flat", "scratch") for name in LOADS},
    **{f"{space}_store_{name}": build_store for space in ("global", "flat", "scratch") for name in STORES},
    **{f"global_load_lds_{name}": build_to_local for name in ("dword", "dwordx3", "dwordx4")},
    **{f"{space}_atomic_{name}": build_atomic for space in ("global", "flat") for name in ATOMICS},
}  # fmt: skip
