"""Builds atomic operations: atom and red (PTX ISA 9.1, 9.7.13).

The hardware's order is not determined; here it is the order of blocks, then threads, then instructions as they run. If two
threads meet at an address with an operation that rounds or exchanges, the order is recorded as an assumption.
"""

from dataclasses import dataclass

import numpy as np

from ..isa.meaning import Meaning
from ..isa.operations import function_of
from ..isa.types import COMPUTED, TYPE_BITS, one
from ..memory import WORDS
from .decode import Operation, id_reader, reader, unknown
from .movement import address_reader, items, joined_ids, state_space, write_loaded
from .syntax import PTXInstruction, Sink

#: Operations whose names differ from the instruction's spelling.
_NAMES = {"exch": "exchange", "cas": "compare_swap", "inc": "increment", "dec": "decrement"}
_WORDS = {"noftz", "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys", "cluster", "L2::cache_hint"}
_ORDER = "atomic operations on one address run in the order of blocks and threads"


def _meaning(name: str, kind: str, flush: bool = False) -> Meaning | None:
    """Return the meaning of the new value, from old value and operands.

    `flush`: f32 additions in global memory flush (PTX ISA).
    """
    if one(kind) in COMPUTED and name not in ("add", "min", "max"):
        return None
    flush = flush and name == "add" and kind == "f32"
    return Meaning(
        _NAMES.get(name, name), kind, (kind,) * (3 if name == "cas" else 2), flush=(flush, flush), options=("atomic",)
    )


def build(ins: PTXInstruction) -> Operation:
    """Return the operation of atom, which gives the old value, or red, which gives nothing."""
    words, kind = ins.modifiers, ins.modifiers[-1]
    names = [w for w in words if w in ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")]
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    known = {*_WORDS, "global", "shared", "shared::cta", "shared::cluster", "v2", "v4", "v8", *names}
    if len(names) != 1 or set(words[:-1]) - known or TYPE_BITS.get(kind, 128) > 64:
        raise unknown(ins)
    plain, flushing = (_meaning(names[0], kind, flush) for flush in (False, True))
    if plain is None or flushing is None:
        raise unknown(ins)
    operands = list(ins.operands)
    targets = items(operands.pop(0)) if ins.name == "atom" else ()
    where = address_reader(operands[0], ins)
    sources = [items(operand) for operand in operands[1:]]
    reads = [[reader(value, kind, ins) for value in source] for source in sources]
    owners = [id_reader(value, kind) for value in sources[-1 if names[0] == "cas" else 0]]
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
        change = _Change(f"atom.{names[0]}.{kind}", flushing if memory is machine.memory.space else plain, width, count)
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
    """`_Change` is the change that an atomic operation makes to words of memory."""

    name: str
    meaning: Meaning
    width: int
    count: int

    def applied(self, machine, memory, places: np.ndarray, values: list, added: list | None):
        """Apply the change, accesses to one place in turn; return the earlier values and the expressions of their bytes or
        None."""
        width, size, function = self.width, self.width * self.count, function_of(self.meaning)
        before = np.zeros((len(places), self.count), WORDS[width])
        before_ids = None if added is None else np.zeros((len(places), size), np.int64)
        for turn in _rounds(places):
            here = places[turn]
            old = memory.load(here, width, self.count)
            before[turn] = old
            given = [[np.ascontiguousarray(word[turn]) for word in value] for value in values]
            new = [
                np.asarray(function(_as(old[:, i], given[0][i]), *(value[i] for value in given))).view(WORDS[width])
                for i in range(self.count)
            ]
            if added is not None and before_ids is not None:
                before_ids[turn] = memory.load_ids(here, size)
                own = [None if part is None else part[turn] for part in added]
                mine = [word.view(WORDS[width]) for value in given[::-1] for word in value]
                ids = machine.trace.atomic(
                    self.name, self.meaning, old, before_ids[turn], np.stack(mine, 1), joined_ids(own, len(here), width)
                )
                memory.store_ids(here, ids, size)
            memory.store(here, np.stack(new, 1))
        return before, before_ids


def _as(old: np.ndarray, like: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(old).view(like.dtype)


def _rounds(places: np.ndarray):
    """Yield turns of accesses, in order; no two accesses of a turn are to one place."""
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
