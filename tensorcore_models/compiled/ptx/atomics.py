"""Atomic operations: atom and red (PTX ISA 9.1, 9.7.13).

The hardware's order is not determined; here it is that of blocks, then threads, then instructions as they run. What depends on
it is recorded as an assumption wherever two threads meet at an address with an operation that rounds or exchanges.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .. import floats
from ..memory import WORDS
from .arithmetic import extreme_of, finished, in_halves
from .decode import Operation, id_reader, reader, unknown
from .movement import address_reader, items, state_space, write_loaded
from .syntax import TYPE_BITS, PTXInstruction, Sink

_FLOAT = {"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}
_WORDS = {"noftz", "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "cluster", "L2::cache_hint"}
_ORDER = "atomic operations on one address run in the order of blocks and threads"


def _function(name: str, kind: str, flush: bool = False) -> Callable | None:
    """New value from old value and operands; `flush`: f32 additions in global memory flush subnormals (PTX ISA)."""
    packed = kind.removesuffix("x2")
    if packed in _FLOAT:
        fmt = _FLOAT[packed]
        if name == "add":
            function = finished(lambda x, y: floats.add(x, y, fmt), packed, flush=flush, saturate=False)
        elif name in ("min", "max"):
            function = finished(extreme_of(name, packed, set()), packed, flush=False, saturate=False)
        else:
            return None
        return function if kind == packed else in_halves(function, TYPE_BITS[kind])
    table: dict[str, Callable] = {
        "add": lambda x, y: x + y, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
        "xor": np.bitwise_xor, "exch": lambda x, y: np.asarray(y), "cas": lambda x, y, z: np.where(x == y, z, x),
        "inc": lambda x, y: np.where(x >= y, x.dtype.type(0), x + x.dtype.type(1)),
        "dec": lambda x, y: np.where((x == 0) | (x > y), y, x - x.dtype.type(1)),
    }  # fmt: skip
    return table.get(name)


def build(ins: PTXInstruction) -> Operation:
    """atom (with the old value as its result) and red (without)."""
    words, kind = ins.modifiers, ins.modifiers[-1]
    names = [w for w in words if w in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")]
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    known = {*_WORDS, "global", "shared", "shared::cta", "shared::cluster", "v2", "v4", "v8", *names}
    if len(names) != 1 or set(words[:-1]) - known or TYPE_BITS.get(kind, 128) > 64:
        raise unknown(ins)
    plain, flushing = _function(names[0], kind), _function(names[0], kind, kind == "f32")
    if plain is None or flushing is None:
        raise unknown(ins)
    operands = list(ins.operands)
    targets = items(operands.pop(0)) if ins.name == "atom" else ()
    where = address_reader(operands[0], ins)
    sources = [items(operand) for operand in operands[1:]]
    read_as = f"b{TYPE_BITS[kind]}" if kind.removesuffix("x2") in _FLOAT or kind[0] == "b" else kind
    reads = [[reader(value, read_as, ins) for value in source] for source in sources]
    owners = [id_reader(value, read_as) for value in sources[-1 if names[0] == "cas" else 0]]
    exact = names[0] in ("min", "max", "and", "or", "xor") or (names[0] == "add" and kind[0] in "us")
    space, width = state_space(ins), TYPE_BITS[kind] // 8

    def run(machine, lanes):
        memory, places = machine.located(space, where(machine, lanes), width * count, lanes, write=True)
        if machine.launch.checks and memory is machine.shared.space:
            machine.checks.watch_read(memory, places, width * count, lanes, "atomic")
        if memory is machine.memory.space:
            machine.checks.exchanged(lanes)
        if not exact:
            machine.assume(_ORDER)
        values = [[np.broadcast_to(read(machine, lanes), places.shape) for read in each] for each in reads]
        added = None if machine.trace is None else [own(machine, lanes) for own in owners]
        function = flushing if memory is machine.memory.space else plain
        change = _Change(names[0], kind, width, count, function)
        before, before_ids = change.applied(machine, memory, places, values, added)
        for place, register in enumerate(targets):
            if not isinstance(register, Sink):
                held = before_ids is not None and before_ids.any()
                ids = before_ids[:, place * width : (place + 1) * width] if held else None
                write_loaded(machine, register, before[:, place], lanes, ids)
        machine.events += 1

    return run


@dataclass(frozen=True)
class _Change:
    """The change that an atomic operation makes to words of memory."""

    name: str
    kind: str
    width: int
    count: int
    function: Callable

    def applied(self, machine, memory, places: np.ndarray, values: list, added: list | None):
        """(values before, whose bytes these were or None); accesses to one place follow each other."""
        width, size = self.width, self.width * self.count
        before = np.zeros((len(places), self.count), WORDS[width])
        before_ids = None if added is None else np.zeros((len(places), size), np.int64)
        for turn in _rounds(places):
            here = places[turn]
            old = memory.load(here, width, self.count)
            before[turn] = old
            new = [
                np.asarray(self.function(_as(old[:, i], values[0][i]), *(value[i][turn] for value in values)))
                for i in range(self.count)
            ]
            if added is not None and before_ids is not None:
                old_ids = memory.load_ids(here, size)
                before_ids[turn] = old_ids
                own = [None if part is None else part[turn] for part in added]
                mine = [v[turn] for v in values[0]]
                if self.name == "cas":  # the new word, or what was there
                    swapped = _as(old[:, 0], mine[0]) == mine[0]
                    ids = np.where(swapped[:, None], 0 if own[0] is None else own[0], old_ids)
                else:
                    ids = machine.trace.atomic(self.name, self.kind, old, old_ids, mine, own, width)
                memory.store_ids(here, ids, size)
            memory.store(here, np.stack([part.astype(part.dtype).view(WORDS[width]) for part in new], 1))
        return before, before_ids


def _as(old: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(old).view(like.dtype)


def _rounds(places: np.ndarray):
    """Turns in which no two accesses are to one place, in order."""
    if len(np.unique(places)) == len(places):
        yield np.arange(len(places))
        return
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]]
    starts = np.flatnonzero(first)
    rank = np.arange(len(places)) - np.repeat(starts, np.diff(np.r_[starts, len(places)]))
    for turn in range(int(rank.max()) + 1):
        yield np.sort(order[rank == turn])


BUILDERS = {"atom": build, "red": build}
