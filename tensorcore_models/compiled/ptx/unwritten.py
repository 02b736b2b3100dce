"""Finds the bits of a result that depend on unwritten bits: exact for moves of bits, the whole part for computed parts.

Compilers pack a number beside an unwritten one (``mov.b64 %rd1, {%r1, %r2}`` with %r2 never written) and use only the written
half. So a register carries a mask of its unwritten bits, and the mask moves with the bits. A use that matters (a store, an
address, a branch, a product) of an unwritten bit is a fault.
"""

from itertools import product

import numpy as np

from ..isa.meaning import Meaning
from ..isa.types import bits_of, one

#: Operations each of whose result bits comes from at most one bit of each operand -> the operands that select the bits.
_MOVES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("move", "pack", "and", "or", "xor", "not", "table", "reverse", "copysign", "resize"), ()),
    "shl": (1,), "shr": (1,), "field": (1, 2), "insert_field": (2, 3), "permute": (2,), "funnel": (2,), "select": (2,),
    "select_by_sign": (2,),
}  # fmt: skip


def unwritten_bits(m: Meaning, function, values: list, holes: list) -> np.ndarray:
    """Return the bits of an elementwise instruction's results that depend on unwritten bits.

    Parameters
    ----------
    m : Meaning
    function : callable
        Function of the instruction.
    values : list
        Operands, as the function takes them.
    holes : list of ndarray or None
        Unwritten bits of each operand, unsigned, shape (lanes,); None if there are none.

    Returns
    -------
    ndarray
        Unwritten bits of the result, shape (lanes,).
    """
    count = max(len(hole) for hole in holes if hole is not None)
    bits = bits_of(m.result)
    every = np.bool_(True) if bits == 1 else np.dtype(f"u{bits // 8}").type((1 << bits) - 1)
    selectors = None if m.saturate else _MOVES.get(m.operation)
    if selectors is not None:
        decided = [holes[place] for place in selectors if holes[place] is not None]
        moved = [None if place in selectors else hole for place, hole in enumerate(holes)]
        found = _moved(function, values, moved, every)
        lost = np.logical_or.reduce([hole != 0 for hole in decided]) if decided else np.bool_(False)
        return np.where(lost, every, np.broadcast_to(found, (count,)))
    parts = _parts(m, holes)
    if parts is None:
        lost = np.logical_or.reduce([hole != 0 for hole in holes if hole is not None])
        return np.where(lost, every, every.dtype.type(0))
    half = bits // 2
    low, high = (np.where(part, every >> every.dtype.type(half), every.dtype.type(0)) for part in parts)
    return low | high << every.dtype.type(half)


def _moved(function, values: list, holes: list, every) -> np.ndarray:
    """Return the result bits that differ when the unwritten bits of each operand are all zeros or all ones."""
    ways = [(value,) if hole is None else _filled(value, hole) for value, hole in zip(values, holes, strict=True)]
    results = [np.asarray(function(*each)) for each in product(*ways)]
    bits = [x if x.dtype == every.dtype else x.view(every.dtype) if x.dtype.kind in "iu" and x.itemsize == every.itemsize
            else x.astype(every.dtype) for x in results]  # fmt: skip
    found = np.zeros(np.shape(bits[0]), every.dtype)
    for other in bits[1:]:
        found = found | (bits[0] ^ other)
    return found


def _filled(value, hole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return an operand with zeros, and with ones, in its unwritten bits."""
    hole = hole if np.asarray(value).dtype == hole.dtype else hole.view(np.asarray(value).dtype)
    return value & ~hole, value | hole


def _parts(m: Meaning, holes: list) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the lanes whose lower half of the result depends on unwritten bits, and those of the upper half; None if it is no
    pair."""
    if m.result == one(m.result):
        return None
    none = np.zeros(max(len(hole) for hole in holes if hole is not None), bool)
    if m.sources[0] == one(m.sources[0]):  # two numbers become a pair, the first its upper half
        high, low = (none if hole is None else hole != 0 for hole in holes)
        return low, high
    found = []
    for upper in (0, 1):
        part = none
        for hole, kind in zip(holes, m.sources, strict=True):
            if hole is not None:
                half = bits_of(kind) // 2
                part = part | ((hole >> hole.dtype.type(half * upper) & hole.dtype.type((1 << half) - 1)) != 0)
        found.append(part)
    return found[0], found[1]
