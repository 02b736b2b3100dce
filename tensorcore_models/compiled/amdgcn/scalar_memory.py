"""Builds scalar loads, stores and counters (CDNA3 ISA, "Scalar Memory Operations")."""

from collections.abc import Callable

import numpy as np

from ..isa.meaning import Meaning
from ..isa.operations import function_of
from .access import HINTS, Access
from .counters import SCALAR_MEMORY
from .scalar_operands import Operation, ScalarSource, joined, unknown
from .syntax import AMDInstruction, Literal, RegisterRange

_FORMS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def _operands(ins: AMDInstruction, count: int) -> tuple[range, Callable]:
    """Return the scalar registers of the data, and a function that gives the address of each wave."""
    if len(ins.operands) != 3 or ins.modifiers.keys() - {"offset", *HINTS}:
        raise unknown(ins, "has operands or modifiers that are not modelled")
    data, base, offset = ins.operands
    if not isinstance(data, RegisterRange) or data.vector or data.count != count:
        raise unknown(ins, f"needs {count} scalar registers for its data")
    start = ScalarSource(base, "b64", ins)
    moved = ScalarSource(offset, "b32", ins) if isinstance(offset, RegisterRange) else None
    step = int(offset.value) if isinstance(offset, Literal) else int(ins.modifiers.get("offset", 0))

    def address(machine, waves):
        number = machine.waves.count if waves is None else len(waves)
        found = np.broadcast_to(start.read(machine, waves), (number,)) + np.uint64(step % (1 << 64))
        if moved is not None:
            found = found + moved.read(machine, waves).astype(np.uint64)
        return found & ~np.uint64(3)

    return range(data.first, data.first + count), address


def build_load(ins: AMDInstruction) -> Operation:
    """Return s_load, which loads neighbouring words at a base plus an offset to neighbouring scalar registers."""
    count = _FORMS[ins.name.removeprefix("s_load_")]
    targets, where = _operands(ins, count)
    form = Access(4, count)

    def run(machine, waves):
        memory, places = machine.scalar_places(where(machine, waves), form.size, waves)
        words, owners = memory.load_anywhere(places, 4, count), memory.load_ids(places, form.size)
        for place, register in enumerate(targets):
            own = None if owners is None or not owners.any() else owners[:, 4 * place : 4 * place + 4]
            machine.write_scalar(register, words[:, place], waves, own)
        machine.counters.issued(SCALAR_MEMORY, waves, scalars=targets)

    return run


def build_store(ins: AMDInstruction) -> Operation:
    """Return s_store, which stores scalar registers to memory."""
    count = _FORMS[ins.name.removeprefix("s_store_")]
    sources, where = _operands(ins, count)

    def run(machine, waves):
        memory, places = machine.scalar_places(where(machine, waves), 4 * count, waves, write=True)
        words = np.stack([np.broadcast_to(machine.read_scalar(n, waves), places.shape) for n in sources], 1)
        memory.store_anywhere(places, words)
        ids = [machine.scalars.read_ids(n, waves) for n in sources] if machine.trace is not None else []
        memory.store_ids(places, joined(ids, 4 * count) if ids else None, 4 * count)
        machine.counters.issued(SCALAR_MEMORY, waves)

    return run


#: Scalar atomic operations, which run one wave after another.
_COUNTERS = {"s_atomic_inc": "increment", "s_atomic_dec": "decrement", "s_atomic_add": "add", "s_atomic_sub": "sub"}


def build_counter(ins: AMDInstruction) -> Operation:
    """Return a scalar atomic operation on one word; with glc it returns the earlier value."""
    targets, where = _operands(ins, 1)
    change, returns = function_of(Meaning(_COUNTERS[ins.name], "u32", ("u32", "u32"))), "glc" in ins.modifiers

    def run(machine, waves):
        memory, places = machine.scalar_places(where(machine, waves), 4, waves, write=True)
        data = np.broadcast_to(machine.read_scalar(targets[0], waves), places.shape)
        before = np.zeros(places.shape, np.uint32)
        machine.assume(
            "atomic operations on one address run in the order of arrival of waves, and by number if waves arrive together"
        )
        for i, place in enumerate(places.tolist()):
            word = memory.data[place : place + 4].view(np.uint32)
            before[i] = word[0]
            word[:] = change(word, data[i : i + 1])
            memory.store_ids(places[i : i + 1], None, 4)
        machine.events += 1
        if returns:
            machine.write_scalar(targets[0], before, waves)
        machine.counters.issued(SCALAR_MEMORY, waves, scalars=targets if returns else range(0))

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **{f"s_load_{name}": build_load for name in _FORMS},
    **{f"s_store_{name}": build_store for name in ("dword", "dwordx2", "dwordx4")},
    **dict.fromkeys(_COUNTERS, build_counter),
}
