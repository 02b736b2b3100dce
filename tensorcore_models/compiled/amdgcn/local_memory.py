"""Builds accesses to local memory (LDS) and permutations through it (CDNA3 ISA, "Data Share Operations")."""

from collections.abc import Callable

import numpy as np

from ..isa.types import size_of
from .access import Access, fill, one_by_one, read_places, taken, vectors_of, write_places
from .counters import LOCAL
from .global_memory import ATOMICS
from .scalar_operands import Operation, unknown
from .syntax import AMDInstruction
from .vector_operands import active

_LOADS = {
    "u8": Access(1), "i8": Access(1, signed=True), "u16": Access(2), "i16": Access(2, signed=True),
    "b32": Access(4), "b64": Access(4, 2),
    "b96": Access(4, 3), "b128": Access(4, 4), "u16_d16": Access(2, half=0), "u16_d16_hi": Access(2, half=1),
    "u8_d16": Access(1, half=0), "u8_d16_hi": Access(1, half=1), "i8_d16": Access(1, signed=True, half=0),
    "i8_d16_hi": Access(1, signed=True, half=1),
}  # fmt: skip
_STORES = {
    "b8": Access(1), "b16": Access(2), "b32": Access(4), "b64": Access(4, 2), "b96": Access(4, 3), "b128": Access(4, 4),
    "b8_d16_hi": Access(1, half=1), "b16_d16_hi": Access(2, half=1),
}  # fmt: skip


def _offsets(ins: AMDInstruction, form: Access) -> list[int]:
    """Return the offsets of an instruction's accesses from the lane's address: one, or two in units of their size (times
    64)."""
    words = ins.modifiers
    if "2" not in ins.name.split("_")[1]:
        if words.keys() - {"offset"}:
            raise unknown(ins, f"with {', '.join(sorted(words))} is not modelled")
        found = [words.get("offset", 0)]
    else:
        if words.keys() - {"offset0", "offset1"}:
            raise unknown(ins, f"with {', '.join(sorted(words))} is not modelled")
        unit = form.size * (64 if "st64" in ins.name else 1)
        found = [unit * words.get(f"offset{i}", 0) for i in (0, 1)]
    if not all(isinstance(step, int) and 0 <= step < 1 << 17 for step in found):
        raise unknown(ins, f"has the offsets {found}, expected 0 to 131071")
    return found


def _local(machine, address: np.ndarray, step: int, size: int, lanes, *, write: bool):
    """Return the memory and the flat places of accesses at an offset from 32-bit addresses."""
    return machine.local("lds", address.astype(np.int64) + step & 0xFFFFFFFF, size, lanes, write=write)


def _counted(run: Callable, targets: range = range(0)) -> Operation:
    """Return the operation for active lanes; the access is counted even if no lane is active."""
    operation = active(run)

    def counted(machine, waves):
        operation(machine, waves)
        machine.counters.issued(LOCAL, waves, targets)
        if machine.launch.checks:
            machine.checks.local_issued(waves)

    return counted


def build_read(ins: AMDInstruction) -> Operation:
    """Return the operation of ds_read or ds_read2, which loads words of local memory to registers."""
    form = _LOADS[ins.name.split("_", 2)[2]]
    steps = _offsets(ins, form)
    targets = vectors_of(ins.operands[0], form.registers * len(steps), ins)
    where = vectors_of(ins.operands[1], 1, ins)[0]
    if len(ins.operands) != 2:
        raise unknown(ins, f"has {len(ins.operands)} operands, expected 2")

    def run(machine, waves, lanes):
        address, found = machine.read_vector(where, waves, lanes), []
        for step in steps:
            memory, places = _local(machine, address, step, form.size, lanes, write=False)
            found.append(read_places(machine, memory, places, form, lanes))
        for turn, (words, owners) in enumerate(found):
            part = targets[turn * form.registers : (turn + 1) * form.registers]
            fill(machine, part, form, words, owners, waves, lanes)

    return _counted(run, targets)


def build_write(ins: AMDInstruction) -> Operation:
    """Return the operation of ds_write or ds_write2, which stores registers to local memory."""
    form = _STORES[ins.name.split("_", 2)[2]]
    steps = _offsets(ins, form)
    if len(ins.operands) != 1 + len(steps):
        raise unknown(ins, f"has {len(ins.operands)} operands, expected {1 + len(steps)}")
    where = vectors_of(ins.operands[0], 1, ins)[0]
    sources = [vectors_of(operand, form.registers, ins) for operand in ins.operands[1:]]

    def run(machine, waves, lanes):
        address = machine.read_vector(where, waves, lanes)
        for step, registers in zip(steps, sources, strict=True):
            words, owners = taken(machine, registers, form, waves, lanes)
            memory, places = _local(machine, address, step, form.size, lanes, write=True)
            write_places(machine, memory, places, words, lanes, owners)

    return _counted(run)


#: Atomic operations on local memory: name -> (name in global memory, bytes).
_ATOMICS = {
    "add_u32": "add", "sub_u32": "sub", "and_b32": "and", "or_b32": "or", "xor_b32": "xor", "min_u32": "umin",
    "max_u32": "umax", "min_i32": "smin", "max_i32": "smax", "add_u64": "add_x2", "add_f32": "add_f32", "add_f64": "add_f64",
    "pk_add_f16": "pk_add_f16", "pk_add_bf16": "pk_add_bf16",
}  # fmt: skip


def build_atomic(ins: AMDInstruction) -> Operation:
    """Return an atomic operation on local memory (ds_add, ...); with rtn it returns the earlier value."""
    name = ins.name.removeprefix("ds_")
    returns = "rtn_" in name
    m, count = ATOMICS[_ATOMICS[name.replace("rtn_", "")]]
    form, (step,) = Access(size_of(m.result), count), _offsets(ins, Access(4))
    if len(ins.operands) != 2 + returns:
        raise unknown(ins, f"has {len(ins.operands)} operands, expected {2 + returns}")
    targets = vectors_of(ins.operands[0], form.registers, ins) if returns else range(0)
    where = vectors_of(ins.operands[returns], 1, ins)[0]
    sources = vectors_of(ins.operands[returns + 1], form.registers, ins)

    def run(machine, waves, lanes):
        memory, places = _local(machine, machine.read_vector(where, waves, lanes), step, form.size, lanes, write=True)
        words, owners = taken(machine, sources, Access(4, form.registers), waves, lanes)
        if machine.launch.checks:
            machine.checks.watch_write(memory, places, form.size, lanes, "generic")
        shaped = np.ascontiguousarray(words).view(f"u{form.width}")
        before, old = one_by_one(machine, memory, places, shaped, owners, m, ins.name, lanes)
        if returns:
            back = np.ascontiguousarray(before).view(np.uint32)
            fill(machine, targets, Access(4, form.registers), back, old, waves, lanes)

    return _counted(run, targets)


# -- registers of other lanes ------------------------------------------------------------------------------------------------
def build_permute(ins: AMDInstruction) -> Operation:
    """Return ds_bpermute, which reads the lane that an address names (4 times its number), or ds_permute, which writes to it.

    An inactive lane gives 0. If several lanes write to one lane, the value of the highest lane stays.
    """
    step = _offsets(ins, Access(4))[0]
    if len(ins.operands) != 3:
        raise unknown(ins, f"has {len(ins.operands)} operands, expected 3")
    target, where, what = (vectors_of(operand, 1, ins)[0] for operand in ins.operands)
    pushes = ins.name == "ds_permute_b32"

    def run(machine, waves, lanes):
        every = machine.threads.all_lanes if lanes is None else lanes
        address = machine.read_vector(where, waves, lanes).astype(np.int64) + step
        other = every - every % 64 + (address >> 2 & 63)
        value = np.zeros(machine.threads.count, np.uint32)
        held = machine.vectors.read_ids(what, lanes) if machine.trace is not None else None
        owners = None if held is None else np.zeros((machine.threads.count, 4), np.int64)
        into = other if pushes else every
        value[into] = machine.read_vector(what, waves, lanes)
        if owners is not None:
            owners[into] = held
        back = every if pushes else other
        machine.write_vector(target, value[back], waves, lanes, None if owners is None else owners[back])

    return _counted(run, range(target, target + 1))


def build_swizzle(ins: AMDInstruction) -> Operation:
    """Return the operation of ds_swizzle_b32, which exchanges the lanes of each four (bit 15), or lanes of 32 by masks."""
    pattern = ins.modifiers.get("offset", 0)
    if len(ins.operands) != 2 or not isinstance(pattern, int) or ins.modifiers.keys() - {"offset"}:
        raise unknown(ins, "has a pattern that is not a number, which is not modelled")
    target, what = (vectors_of(operand, 1, ins)[0] for operand in ins.operands)
    lane = np.arange(64)
    if pattern >> 15:
        source = lane - lane % 4 + (pattern >> 2 * (lane % 4) & 3)
    else:
        source = lane - lane % 32 + (((lane % 32 & pattern & 31) | pattern >> 5 & 31) ^ pattern >> 10 & 31)

    def run(machine, waves, lanes):
        every = machine.threads.all_lanes if lanes is None else lanes
        value = np.zeros(machine.threads.count, np.uint32)
        value[every] = machine.read_vector(what, waves, lanes)
        held = machine.vectors.read_ids(what, lanes) if machine.trace is not None else None
        back, ids = every - every % 64 + source[every % 64], None
        if held is not None:
            owners = np.zeros((machine.threads.count, 4), np.int64)
            owners[every] = held
            ids = owners[back]
        machine.write_vector(target, value[back], waves, lanes, ids)

    return _counted(run, range(target, target + 1))


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **{f"ds_read_{name}": build_read for name in _LOADS}, **{f"ds_write_{name}": build_write for name in _STORES},
    **{f"ds_{head}_{kind}": build for head, build in (("read2", build_read), ("read2st64", build_read),
       ("write2", build_write), ("write2st64", build_write)) for kind in ("b32", "b64")},
    **{f"ds_{name}": build_atomic for name in _ATOMICS}, **{
        f"ds_{name.replace('_', '_rtn_', 1)}": build_atomic for name in _ATOMICS},
    "ds_bpermute_b32": build_permute, "ds_permute_b32": build_permute, "ds_swizzle_b32": build_swizzle,
}  # fmt: skip
