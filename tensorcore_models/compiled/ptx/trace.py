"""Traces expressions through PTX instructions: which of them only move bytes."""

from collections.abc import Callable

import numpy as np

from .. import moves
from ..expressions import ExpressionTrace
from .syntax import TYPE_BITS, PTXInstruction


class PTXTrace(ExpressionTrace):
    """Expressions of a PTX run."""

    def elementwise(self, ins: PTXInstruction, row, values: list, owners: list, found: np.ndarray) -> np.ndarray | None:
        """Whose bytes the results of an elementwise instruction are, shape (lanes, bytes); None: nobody's."""
        if all(owner is None for owner in owners):
            return None
        count = next(len(owner) for owner in owners if owner is not None)
        sizes = [max(1, TYPE_BITS[kind] // 8) for kind in row.sources]
        size = max(1, TYPE_BITS[row.result] // 8)
        rule = _MOVES.get(ins.name)
        if rule is not None:
            whole = [np.zeros((count, s), np.int64) if o is None else o for o, s in zip(owners, sizes, strict=True)]
            if ins.name == "selp":
                self.decided(owners[2], np.broadcast_to(values[2], (count,)), False)
            moved = rule(ins, whole, [moves.as_bytes(v, count, s) for v, s in zip(values, sizes, strict=True)], size)
            if moved is not None:
                return moved if moved.any() else None
        kind = ins.modifiers[-1]
        if kind.endswith("x2") and kind[0] in "bf" and len(set(sizes)) == 1 and sizes[0] == size:
            return self._in_halves(ins, values, owners, count, size // 2)
        if ins.name == "cvt" and len(owners) == 2 and ins.modifiers[-2].endswith("x2"):
            name = _of_one(ins)
            halves = [self._one(name, ins, values[i : i + 1], owners[i : i + 1], count, size // 2) for i in (1, 0)]
            return np.concatenate(halves, 1)
        if ins.name == "cvt" and kind.endswith("x2") and ins.modifiers[-2].endswith("x2"):
            return self._in_halves(ins, values, owners, count, size // 2)
        return self.operation(ins.opcode, ins.line, values, owners, count, size, commutes=_commutes(ins))

    def _one(self, name: str, ins: PTXInstruction, values: list, owners: list, count: int, size: int) -> np.ndarray:
        """Bytes of one part of a packed result."""
        if all(owner is None or not owner.any() for owner in owners):
            return np.zeros((count, size), np.int64)
        return self.operation(name, ins.line, values, owners, count, size, commutes=_commutes(ins))

    def _in_halves(self, ins: PTXInstruction, values: list, owners: list, count: int, half: int) -> np.ndarray:
        """An operation on packed pairs: one on each half; `half` is the bytes of a half of the result."""
        name = _of_one(ins)
        widths = [np.asarray(v).dtype.itemsize // 2 for v in values]
        parts = []
        for i in (0, 1):
            words, mine = [], []
            for value, owner, width in zip(values, owners, widths, strict=True):
                part = slice(i * width, (i + 1) * width)
                words.append(
                    np.ascontiguousarray(moves.as_bytes(value, count, 2 * width)[:, part]).view(f"u{width}")[:, 0]
                )
                mine.append(None if owner is None else owner[:, part])
            parts.append(self._one(name, ins, words, mine, count, half))
        return np.concatenate(parts, 1)

    def atomic(self, name: str, kind: str, old, old_owners, added: list, owners: list, width: int) -> np.ndarray | None:
        """Whose bytes memory holds after an atomic operation on words of `width` bytes."""
        count, words = old.shape
        parts = []
        for i in range(words):
            before = old_owners[:, i * width : (i + 1) * width]
            both = [before if before.any() else None, owners[i]]
            if all(owner is None for owner in both):
                parts.append(np.zeros((count, width), np.int64))
            else:
                parts.append(self.operation(f"atom.{name}.{kind}", 0, [old[:, i], added[i]], both, count, width))
        return np.concatenate(parts, 1)


def _of_one(ins: PTXInstruction) -> str:
    """The name of what a packed instruction does to one of its numbers."""
    return ".".join((ins.name, *(word.removesuffix("x2") for word in ins.modifiers)))


def _commutes(ins: PTXInstruction) -> bool:
    """Whether the first two operands may be exchanged: results that are NaN do not depend on the operands' payloads."""
    return ins.name in ("add", "mul", "fma", "min", "max") and "f" in ins.modifiers[-1]


def _copied(ins: PTXInstruction, owners: list, values: list, size: int):
    return np.concatenate(owners, 1) if "pack" in ins.modifiers else moves.resized(owners[0], size)


def _chosen(ins: PTXInstruction, owners: list, values: list, size: int):
    return np.where(values[2] != 0, owners[0], owners[1])


def _masked(ins: PTXInstruction, owners: list, values: list, size: int):
    return moves.masked(owners, values)


def _merged(ins: PTXInstruction, owners: list, values: list, size: int):
    return moves.merged(owners, values)


def _shifted(ins: PTXInstruction, owners: list, values: list, size: int):
    if owners[1].any() or ins.modifiers[-1][0] == "s":
        return None
    return moves.shifted(owners[0], moves.numbers(values[1]), size, left=ins.name == "shl")


def _permuted(ins: PTXInstruction, owners: list, values: list, size: int):
    """prmt: bytes by constant selectors without signs."""
    selector = np.ascontiguousarray(values[2]).view(np.uint32).reshape(-1)
    nibbles = selector[:, None] >> np.arange(0, 16, 4, dtype=np.uint32) & np.uint32(15)
    if owners[2].any() or (nibbles & 8).any():
        return None
    return np.take_along_axis(np.concatenate(owners[:2], 1), nibbles.astype(np.int64), 1)


def _extracted(ins: PTXInstruction, owners: list, values: list, size: int):
    if ins.modifiers[-1][0] == "s":
        return None
    return moves.extracted(owners[0], moves.numbers(values[1]), moves.numbers(values[2]), size)


def _widened(ins: PTXInstruction, owners: list, values: list, size: int):
    """cvt between integers that cuts or fills with zeros."""
    target, source = ins.modifiers[-2:]
    if len(ins.modifiers) != 2 or {target[0], source[0]} - {"u", "s", "b"} or target.endswith("x2"):
        return None
    extends = TYPE_BITS[target] > TYPE_BITS[source]
    return None if extends and source[0] == "s" else moves.resized(owners[0], size)


_MOVES: dict[str, Callable] = {
    "mov": _copied, "selp": _chosen, "and": _masked, "or": _merged, "xor": _merged, "shl": _shifted, "shr": _shifted,
    "prmt": _permuted, "bfe": _extracted, "cvt": _widened,
}  # fmt: skip
