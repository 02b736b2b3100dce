"""Scalar loads of arguments and descriptors (CDNA3 ISA, "Scalar Memory Operations")."""

from collections.abc import Callable

import numpy as np

from .access import HINTS, Form
from .counters import SCALAR_MEMORY
from .decode import Operation, ScalarSource, unknown
from .syntax import AMDInstruction, Literal, Registers

_FORMS = {"dword": 1, "dwordx2": 2, "dwordx4": 4, "dwordx8": 8, "dwordx16": 16}


def build_load(ins: AMDInstruction) -> Operation:
    """s_load: neighbouring words at a base and an offset, to neighbouring scalar registers."""
    count = _FORMS[ins.name.removeprefix("s_load_")]
    if len(ins.operands) != 3 or ins.modifiers.keys() - {"offset", *HINTS}:
        raise unknown(ins, "has operands or modifiers that are not known here")
    target, base, offset = ins.operands
    if not isinstance(target, Registers) or target.vector or target.count != count:
        raise unknown(ins, f"gives {count} scalar registers")
    start = ScalarSource(base, "b64", ins)
    moved = ScalarSource(offset, "b32", ins) if isinstance(offset, Registers) else None
    step = int(offset.value) if isinstance(offset, Literal) else int(ins.modifiers.get("offset", 0))
    form, targets = Form(4, count), range(target.first, target.first + count)

    def run(machine, waves):
        number = machine.waves.count if waves is None else len(waves)
        address = np.broadcast_to(start.read(machine, waves), (number,)) + np.uint64(step % (1 << 64))
        if moved is not None:
            address = address + moved.read(machine, waves).astype(np.uint64)
        memory, places = machine.scalar_places(address & ~np.uint64(3), form.size, waves)
        words, owners = memory.load_anywhere(places, 4, count), memory.load_ids(places, form.size)
        for place, register in enumerate(targets):
            own = None if owners is None or not owners.any() else owners[:, 4 * place : 4 * place + 4]
            machine.write_scalar(register, words[:, place], waves, own)
        machine.counters.issued(SCALAR_MEMORY, waves, scalars=targets)

    return run


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {f"s_load_{name}": build_load for name in _FORMS}
