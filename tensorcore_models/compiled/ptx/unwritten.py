"""Which bits of a result rest on bits that nobody wrote: exact where bits only move, all of a part that is computed with them.

Compilers pack a number beside nothing (``mov.b64 %rd1, {%r1, %r2}`` with %r2 never written) and use the one half. So a register
carries which of its bits nobody wrote, and these go where the instruction moves them; a use of one that counts (a store, an
address, a branch, a product) is the fault.
"""

from itertools import product

import numpy as np

from .syntax import TYPE_BITS, PTXInstruction

#: Instructions of whose results each bit comes from at most one bit of each operand: the operands that say from which.
_MOVES: dict[str, tuple[int, ...]] = {
    "mov": (), "and": (), "or": (), "xor": (), "not": (), "lop3": (), "brev": (), "copysign": (), "shl": (1,), "shr": (1,),
    "bfe": (1, 2), "bfi": (2, 3), "prmt": (2,), "shf": (2,), "selp": (2,), "slct": (2,),
}  # fmt: skip


def unwritten_bits(ins: PTXInstruction, row, values: list, holes: list) -> np.ndarray:
    """Bits of the results of an elementwise instruction that nobody determined.

    Parameters
    ----------
    ins : PTXInstruction
    row : Pure
        Its types and function.
    values : list
        Operands, as the function takes them.
    holes : list of ndarray or None
        Their bits that nobody wrote, unsigned, shape (lanes,); None: there are none.

    Returns
    -------
    ndarray
        Shape (lanes,), of the result's bits.
    """
    count = max(len(hole) for hole in holes if hole is not None)
    bits = TYPE_BITS.get(row.result, 1)
    every = np.bool_(True) if bits == 1 else np.dtype(f"u{bits // 8}").type((1 << bits) - 1)
    selectors = () if _resizes(ins) else _MOVES.get(ins.name)
    if selectors is not None:
        decided = [holes[place] for place in selectors if holes[place] is not None]
        moved = [None if place in selectors else hole for place, hole in enumerate(holes)]
        found = _moved(row.function, values, moved, every)
        lost = np.logical_or.reduce([hole != 0 for hole in decided]) if decided else np.bool_(False)
        return np.where(lost, every, np.broadcast_to(found, (count,)))
    parts = _parts(ins, row, holes)
    if parts is None:
        lost = np.logical_or.reduce([hole != 0 for hole in holes if hole is not None])
        return np.where(lost, every, every.dtype.type(0))
    half = bits // 2
    low, high = (np.where(part, every >> every.dtype.type(half), every.dtype.type(0)) for part in parts)
    return low | high << every.dtype.type(half)


def _resizes(ins: PTXInstruction) -> bool:
    """Whether it is a cvt between integers that cuts or extends."""
    return ins.name == "cvt" and len(ins.modifiers) == 2 and {kind[0] for kind in ins.modifiers} <= {"u", "s"}


def _moved(function, values: list, holes: list, every) -> np.ndarray:
    """Bits of the result that differ between ways to fill the holes of each operand, with zeros or with ones."""
    ways = [(value,) if hole is None else _filled(value, hole) for value, hole in zip(values, holes, strict=True)]
    results = [np.asarray(function(*each)) for each in product(*ways)]
    bits = [x if x.dtype == every.dtype else x.view(every.dtype) if x.dtype.kind in "iu" and x.itemsize == every.itemsize
            else x.astype(every.dtype) for x in results]  # fmt: skip
    found = np.zeros(np.shape(bits[0]), every.dtype)
    for other in bits[1:]:
        found = found | (bits[0] ^ other)
    return found


def _filled(value, hole: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """An operand with zeros and with ones in its holes."""
    hole = hole if np.asarray(value).dtype == hole.dtype else hole.view(np.asarray(value).dtype)
    return value & ~hole, value | hole


def _parts(ins: PTXInstruction, row, holes: list) -> tuple[np.ndarray, np.ndarray] | None:
    """(lanes whose lower half of the result rests on nothing, those of the upper half) of packed pairs; None for others."""
    target, source = ins.modifiers[-2:] if ins.name == "cvt" else ins.modifiers[-1:] * 2
    if not target.endswith("x2"):
        return None
    none = np.zeros(max(len(hole) for hole in holes if hole is not None), bool)
    if not source.endswith("x2"):  # two numbers become a pair, the first its upper half
        high, low = (none if hole is None else hole != 0 for hole in holes)
        return low, high
    found = []
    for upper in (0, 1):
        part = none
        for hole, kind in zip(holes, row.sources, strict=True):
            if hole is not None:
                half = TYPE_BITS[kind] // 2
                part = part | ((hole >> hole.dtype.type(half * upper) & hole.dtype.type((1 << half) - 1)) != 0)
        found.append(part)
    return found[0], found[1]
