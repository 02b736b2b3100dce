"""Vector comparisons: v_cmp and v_cmpx write a mask of lanes (CDNA3 ISA, "V_CMP" and "V_CMPX")."""

from collections.abc import Callable

import numpy as np

from ...formats import get_float_format
from .. import floats
from .decode import FORMATS, Operation, unknown
from .syntax import EXEC, AMDInstruction
from .vector import mask_target, write_mask
from .vector_operands import active, vector_sources

_INTEGER: dict[str, Callable] = {
    "lt": np.less, "eq": np.equal, "le": np.less_equal, "gt": np.greater, "ne": np.not_equal, "ge": np.greater_equal,
    "f": lambda x, y: np.zeros(np.broadcast(x, y).shape, bool), "t": lambda x, y: np.ones(np.broadcast(x, y).shape, bool),
}  # fmt: skip
#: Comparisons of numbers by those of PTX's names (u: true where one is NaN), and whether the result is reversed.
_FLOATING = {
    "lt": ("lt", False), "eq": ("eq", False), "le": ("le", False), "gt": ("gt", False), "lg": ("neu", False),
    "ge": ("ge", False), "o": ("num", False), "u": ("nan", False), "nge": ("ge", True), "nlg": ("lg", True),
    "ngt": ("gt", True), "nle": ("le", True), "neq": ("eq", True), "nlt": ("lt", True),
}  # fmt: skip


def _floating(name: str, fmt: str) -> Callable:
    if name in ("f", "tru"):
        return lambda x, y: np.full(np.broadcast(x, y).shape, name == "tru")
    plain, reverse = _FLOATING[name]
    if name in ("lg", "nlg"):  # less or greater: unequal, and neither is NaN

        def apart(x, y):
            held = floats.compare(x, y, fmt, "num") & ~floats.compare(x, y, fmt, "eq")
            return ~held if name == "nlg" else held

        return apart
    return lambda x, y: floats.compare(x, y, fmt, plain) ^ reverse


def _classes(bits: np.ndarray, fmt: str, wanted) -> np.ndarray:
    """v_cmp_class: which of ten classes of numbers are asked for by bits of `wanted`."""
    row = get_float_format(fmt)
    kind = bits.dtype.type
    sign = bits >> kind(row.bits - 1) != 0
    magnitude = bits & kind(row.magnitude_mask)
    infinity, hidden = kind(row.magnitude_mask - ((1 << row.fraction_bits) - 1)), kind(1 << row.fraction_bits)
    nan = magnitude > infinity
    quiet = nan & (magnitude & kind(1 << (row.fraction_bits - 1)) != 0)
    number = np.select([magnitude == infinity, magnitude >= hidden, magnitude > 0], [0, 1, 2], 3)  # from large to zero
    place = np.where(nan, np.where(quiet, 1, 0), np.where(sign, 2 + number, 9 - number))
    return wanted >> place.astype(np.uint32) & np.uint32(1) != 0


def build(ins: AMDInstruction) -> Operation:
    """The operation of a comparison of lanes."""
    _, head, name, kind = ins.name.split("_", 3)[0], *ins.name.split("_")[1:4]
    fmt = FORMATS.get(kind)
    kinds = (kind, "u32") if name == "class" else (kind, kind)
    if fmt is None:
        function = _INTEGER[name]
    elif name != "class":
        function = _floating(name, fmt)
    out = mask_target(ins.operands[0], ins)
    if len(ins.operands) != 3 or ins.modifiers.get("clamp") or ins.encoding == "dpp":
        raise unknown(ins)
    sources = vector_sources(ins, ins.operands[1:], kinds)

    def held_of(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        x, y = (np.asarray(value) for value, _ in read)
        if name == "class":
            held = _classes(x, str(fmt), y)
        else:
            if fmt is not None and machine.mode_of(waves).flushes(fmt)[0]:
                x, y = floats.flushed(x, fmt), floats.flushed(y, fmt)
            held = function(x, y)
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
        """Without active lanes the mask is 0."""
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
        for kind in (*_KINDS, *FORMATS)
        for name in ((*_FLOATING, "f", "tru", "class") if kind in FORMATS else _INTEGER)
    ),
    build,
)
