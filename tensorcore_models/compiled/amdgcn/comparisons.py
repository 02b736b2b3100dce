"""Builds vector comparisons: v_cmp and v_cmpx write a mask of lanes (CDNA3 ISA, "V_CMP" and "V_CMPX")."""

from collections.abc import Callable

import numpy as np

from ..isa.meaning import Meaning
from ..isa.operations import function_of
from .scalar_operands import NUMBERS, Operation, type_of, unknown
from .syntax import EXEC, AMDInstruction
from .vector import mask_target, write_mask
from .vector_operands import active, vector_sources

_INTEGER = {"f": "false", "t": "true", **{name: name for name in ("lt", "eq", "le", "gt", "ne", "ge")}}
#: Comparisons of numbers by their PTX names; a name that ends in u holds if an operand is NaN.
_FLOATING = {
    "lt": "lt", "eq": "eq", "le": "le", "gt": "gt", "lg": "ne", "ge": "ge", "o": "num", "u": "nan", "nge": "ltu", "nlg": "equ",
    "ngt": "leu", "nle": "gtu", "neq": "neu", "nlt": "geu", "f": "false", "tru": "true",
}  # fmt: skip


def build(ins: AMDInstruction) -> Operation:
    """Return the operation of a comparison of lanes."""
    _, head, name, kind = ins.name.split("_", 3)[0], *ins.name.split("_")[1:4]
    own = type_of(kind)
    if name == "class":
        m = Meaning("class", "pred", (own, "u32"))
    else:
        m = Meaning("compare", "pred", (own, own), options=((_FLOATING if kind in NUMBERS else _INTEGER)[name],))
    out = mask_target(ins.operands[0], ins)
    if len(ins.operands) != 3 or ins.modifiers.get("clamp") or ins.encoding == "dpp":
        raise unknown(ins)
    sources = vector_sources(ins, ins.operands[1:], m.sources)

    def held_of(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        x, y = (np.asarray(value) for value, _ in read)
        settings = machine.mode_of(waves).under(m) if kind in NUMBERS and name != "class" else m
        held = function_of(settings)(x, y)
        if machine.trace is not None and any(owner is not None for _, owner in read):
            machine.trace.compared(ins, [x, y], [owner for _, owner in read], held)
        return held

    def run(machine, waves, lanes):
        held = held_of(machine, waves, lanes)
        write_mask(machine, out, held, waves, lanes)
        if head == "cmpx":
            write_mask(machine, EXEC, held, waves, lanes)

    runs = active(run)

    def also_of_none(machine, waves):
        """Run the comparison; without active lanes it writes the mask 0."""
        lanes = machine.lanes(waves)
        if lanes is not None and not len(lanes):
            write_mask(machine, out, False, waves, lanes)
            return None
        return runs(machine, waves)

    return also_of_none


_KINDS = ("i16", "u16", "i32", "u32", "i64", "u64")
BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = dict.fromkeys(
    (
        f"v_{head}_{name}_{kind}"
        for head in ("cmp", "cmpx")
        for kind in (*_KINDS, *NUMBERS)
        for name in ((*_FLOATING, "class") if kind in NUMBERS else _INTEGER)
    ),
    build,
)
