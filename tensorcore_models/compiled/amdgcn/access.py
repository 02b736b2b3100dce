"""Holds the parts that loads and stores share: forms of their data, registers that they fill, faults, checks, expressions."""

from dataclasses import dataclass

import numpy as np

from .. import floats
from ..errors import Refused
from ..isa.meaning import Meaning
from ..isa.operations import function_of
from ..isa.types import FORMATS, array_type
from .scalar_operands import unknown
from .syntax import AMDInstruction, RegisterRange
from .vector_operands import part_mask


@dataclass(frozen=True)
class Access:
    """`Access` is the form of the data of a load or store.

    Parameters
    ----------
    width, count : int
        Bytes of a word in memory, and number of words.
    signed : bool
        Whether a narrow word is sign-extended.
    half : int or None
        Half of the register that a 16-bit load or store uses (d16); None: the value is zero- or sign-extended to 32 bits.
    """

    width: int
    count: int = 1
    signed: bool = False
    half: int | None = None

    @property
    def size(self) -> int:
        """Return the number of bytes that each lane accesses."""
        return self.width * self.count

    @property
    def registers(self) -> int:
        """Return the number of registers that each lane uses."""
        return max(1, self.size // 4)


_DWORDS = {"dword": Access(4), **{f"dwordx{n}": Access(4, n) for n in (2, 3, 4, 8, 16)}}
#: Forms of loads, by the end of the instruction's name.
LOADS = {
    **_DWORDS, "ubyte": Access(1), "sbyte": Access(1, signed=True), "ushort": Access(2), "sshort": Access(2, signed=True),
    "short_d16": Access(2, half=0), "short_d16_hi": Access(2, half=1), "ubyte_d16": Access(1, half=0),
    "ubyte_d16_hi": Access(1, half=1), "sbyte_d16": Access(1, signed=True, half=0),
    "sbyte_d16_hi": Access(1, signed=True, half=1),
}  # fmt: skip
STORES = {
    **_DWORDS, "byte": Access(1), "short": Access(2), "byte_d16_hi": Access(1, half=1), "short_d16_hi": Access(2, half=1),
}  # fmt: skip
#: Cache modifiers, which change no values.
HINTS = {"sc0", "sc1", "nt", "glc", "slc", "dlc"}


def vectors_of(operand, count: int, ins: AMDInstruction) -> range:
    """Return the numbers of the `count` vector registers that an operand names."""
    if not isinstance(operand, RegisterRange) or not operand.vector or operand.count != count:
        raise unknown(ins, f"needs an operand of {count} vector register{'s' * (count > 1)}")
    return range(operand.first, operand.first + count)


def read_places(machine, memory, places: np.ndarray, form: Access, lanes, *, kind: str = "generic"):
    """Return the words at flat places, shape (lanes, count), and the expressions of their bytes (None if no byte depends on an
    input)."""
    if machine.launch.checks:
        machine.checks.watch_read(memory, places, form.size, lanes, kind)
    owners = memory.load_ids(places, form.size)
    return memory.load_anywhere(places, form.width, form.count), owners if owners is not None and owners.any() else None


def write_places(
    machine, memory, places: np.ndarray, words: np.ndarray, lanes, ids=None, *, kind: str = "generic"
) -> None:
    """Write words, shape (lanes, count), to flat places."""
    size = words.dtype.itemsize * words.shape[1]
    if machine.launch.checks:
        machine.checks.watch_write(memory, places, size, lanes, kind, words)
    memory.store_anywhere(places, words)
    memory.store_ids(places, ids, size)


def fill(machine, targets: range, form: Access, words: np.ndarray, owners, waves, lanes) -> None:
    """Write loaded words to the registers of the active lanes."""
    if form.width == 4:
        for place, number in enumerate(targets):
            own = None if owners is None else owners[:, 4 * place : 4 * place + 4]
            machine.write_vector(number, words[:, place], waves, lanes, own)
        return
    value = words[:, 0]
    if form.signed:
        value = value.view(f"i{form.width}").astype(np.int32).view(np.uint32)
    value = value.astype(np.uint32)
    own = None if owners is None else np.pad(owners, ((0, 0), (0, 4 - form.width)))
    if form.half is not None:
        machine.assume(
            "16-bit loads into a half of a register clear the other half (SRAM-ECC), as Tensile's kernels rely on"
        )
        value = (value & np.uint32(0xFFFF)) << np.uint32(16 * form.half)
        own = own if own is None or not form.half else np.roll(own, 2, 1)
    machine.write_vector(targets[0], value, waves, lanes, own)


def taken(machine, sources: range, form: Access, waves, lanes) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the words in registers of the lanes, shape (lanes, count), and the expressions of their bytes or None."""
    count = machine.threads.count if lanes is None else len(lanes)
    shift = 16 if form.half else 0
    used = part_mask(shift // 8, form.width) if form.width < 4 else -1
    words = np.stack([np.broadcast_to(machine.read_vector(n, waves, lanes, used), (count,)) for n in sources], 1)
    if form.width < 4:
        words = (words >> np.uint32(shift)).astype(f"u{form.width}")
    owners = None
    if machine.trace is not None:
        parts = [machine.vectors.read_ids(n, lanes) for n in sources]
        if any(part is not None for part in parts):
            whole = [np.zeros((count, 4), np.int64) if part is None else part for part in parts]
            first = shift // 8
            owners = np.concatenate(whole, 1)[:, first : first + form.size]
    return words, owners


# -- atomic operations -----------------------------------------------------------------------------------------------------
def one_by_one(machine, memory, places: np.ndarray, words: np.ndarray, owners, m: Meaning, name: str, lanes):
    """Read, change and write words, lanes at one address in turn; return the earlier words and the expressions of their
    bytes."""
    form = Access(words.dtype.itemsize, words.shape[1] // (len(m.sources) - 1))
    before = np.zeros((len(words), form.count), words.dtype)
    if memory is machine.memory.space:
        machine.checks.exchanged(lanes)
    before_owners = None if machine.trace is None else np.zeros((len(places), form.size), np.int64)
    order = np.argsort(places, kind="stable")
    _, first, counts = np.unique(places[order], return_index=True, return_counts=True)
    if (counts > 1).any() or machine.waves.count > 1:
        machine.assume(
            "atomic operations on one address run in the order of arrival of waves, and by number if waves arrive together"
        )
    for turn in range(int(counts.max(initial=0))):
        now = order[first[counts > turn] + turn]
        old = memory.load_anywhere(places[now], form.width, form.count)
        before[now] = old
        new = _changed(m, old, words[now])
        ids = None
        if before_owners is not None:
            own = memory.load_ids(places[now], form.size)
            before_owners[now] = own
            ids = machine.trace.atomic(name, m, old, own, words[now], None if owners is None else owners[now])
        memory.store_anywhere(places[now], np.ascontiguousarray(new))
        memory.store_ids(places[now], ids, form.size)
    return before, before_owners


def _changed(m: Meaning, old: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return the words that memory holds afterwards; for a compare-and-swap, the new word comes before the expected one."""
    parts = np.split(given, len(m.sources) - 1, axis=1)[::-1]
    kind = array_type(m.result)
    found = function_of(m)(*(np.ascontiguousarray(x).view(kind) for x in (old, *parts)))
    if m.floating and floats.is_nan(found, FORMATS[m.result]).any():
        raise Refused("an atomic addition gives NaN, whose payload is not published: use inputs without NaN")
    return found.view(old.dtype)
