"""Carries expressions beside the values of a run: for each byte, the operations on inputs that made it.

An expression is a number. Each byte in a register or in memory carries the number of its byte: 8 times the number of its
expression plus its place in the value, or 0 if it depends on no input. Moving bytes (loads, shuffles, packing) moves these
numbers. An operation on values makes a new expression; the same operation on the same operands is the same expression. The
products of one matrix instruction are kept as one block: the numbers of A, B and C.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from . import moves
from .isa.meaning import Meaning
from .isa.types import array_type, size_of

#: The mark of a packed type in a name: f16x2, but not ex2.
_PAIR = re.compile(r"(?<=\d)x2\b")
#: Largest number of bytes of a value: a byte's number is this times its expression's number, plus its place.
PLACES = 8


@dataclass
class InputElements:
    """`InputElements` are the elements of an input array."""

    array: int
    name: str
    shape: tuple[int, ...]
    itemsize: int


@dataclass
class Operations:
    """`Operations` are expressions of one operation: a row of `operands` numbers each, and `constants` where the number is 0.

    `name` is as the text spells it. `meaning` is None for operations that are no row of the instruction table: bytes of several
    values, flags, signs of operands. The first two operands of a commutative operation are in the order of their first inputs.
    """

    name: str
    line: int
    operands: np.ndarray
    constants: np.ndarray
    meaning: Meaning | None = None


@dataclass
class Products:
    """`Products` are the elements of D of one matrix instruction, in the order (tile, row, col).

    `a` (tiles, m, k), `b` (tiles, k, n) and `c` (tiles, m, n) are numbers of expressions. The number 0 is a constant, whose
    encoding is in `values`.
    """

    row: object
    line: int
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    values: tuple[np.ndarray, np.ndarray, np.ndarray]
    signs: tuple[int, int] = (1, 1)


Block = InputElements | Operations | Products


@dataclass
class ExpressionTrace:
    """`ExpressionTrace` holds all expressions of a run, and the decisions that depended on data.

    Attributes
    ----------
    blocks : list
        Blocks of expressions.
    starts : list
        Number of the first expression of each block.
    decisions : dict
        Number of occurrences of each decision that a branch or selection took on data; its key is the expression's name, the
        line and the outcome.
    gathered : set of int
        Arrays whose elements were read or written at addresses that depend on inputs.
    """

    starts: list[int] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    decisions: dict[tuple[str, int, bool], int] = field(default_factory=dict)
    gathered: set[int] = field(default_factory=set)
    next: int = 1
    _known: dict[tuple, int] = field(default_factory=dict)
    _anchors: np.ndarray = field(default_factory=lambda: np.zeros(1 << 12, np.int64))

    def add(self, block: Block, count: int) -> int:
        """Add a block of `count` expressions and return the number of its first one."""
        first = self.next
        if first + count > len(self._anchors):
            self._anchors = np.concatenate([self._anchors, np.zeros(max(count, len(self._anchors)), np.int64)])
        self._anchors[first : first + count] = self._anchors_of(block, first, count)
        self.starts.append(first)
        self.blocks.append(block)
        self.next += count
        return first

    def _anchors_of(self, block: Block, first: int, count: int) -> np.ndarray:
        """Return the keys by which operands are ordered: the first inputs on which they depend (for products, those of both
        factors).

        Numbers of expressions give the order of computation, which masks change from one output to the next. An expression of
        constants only (-inf where something is masked) comes last.
        """
        if isinstance(block, InputElements):
            return np.arange(first, first + count)
        if isinstance(block, Operations):
            ordered = block.meaning is None or not block.meaning.commutes
            return self._least(block.operands[:, : 1 if ordered else 2], 1)
        sides = self._least(block.a, 2)[:, :, None] + self._least(block.b, 1)[:, None, :]
        return np.minimum(np.broadcast_to(sides, block.c.shape), 1 << 60).reshape(-1)

    def _least(self, numbers: np.ndarray, axis: int) -> np.ndarray:
        """Return the least keys of expressions along an axis, a large number if all are constants."""
        return np.where(numbers == 0, 1 << 60, self._anchors[numbers]).min(axis, initial=1 << 60)

    def block_of(self, number: int) -> tuple[Block, int]:
        """Return the block of an expression, and its place in the block."""
        at = bisect_right(self.starts, number) - 1
        return self.blocks[at], number - self.starts[at]

    def gather(self, memory, addresses: np.ndarray, owners: np.ndarray | None) -> None:
        """Note the arrays of global memory accessed at addresses that depend on inputs."""
        if owners is not None and (rests := owners.any(1)).any():
            flat = addresses[rests].astype(np.int64) - memory.address(0) + memory.starts[0]
            self.gathered.update((np.searchsorted(memory.starts, np.unique(flat), "right") - 1).tolist())

    def add_input(self, array: int, name: str, shape: tuple[int, ...], itemsize: int, size: int) -> np.ndarray:
        """Return the byte numbers of an input array."""
        first = self.add(InputElements(array, name, shape, itemsize), size)
        return bytes_of(np.arange(first, first + size), itemsize).reshape(-1)

    # -- operations --------------------------------------------------------------------------------------------------------
    def elementwise(self, name: str, line: int, m: Meaning, values: list, owners: list) -> np.ndarray | None:
        """Return the byte numbers of the results of an elementwise operation, shape (lanes, bytes); None if no result depends
        on an input."""
        if all(owner is None for owner in owners):
            return None
        if m.operation in ("min", "max") and m.nan == "quiet" and _same(owners) and not any(m.flush):
            return owners[0]  # max or min of a number with itself (compilers quiet NaN that way)
        count = next(len(owner) for owner in owners if owner is not None)
        size = size_of(m.result)
        if m.operation == "select":
            self.decided(owners[2], np.broadcast_to(values[2], (count,)), False)
        if m.operation in moves.RULES:
            sizes = [size_of(kind) for kind in m.sources]
            whole = [np.zeros((count, s), np.int64) if o is None else o for o, s in zip(owners, sizes, strict=True)]
            raw = [moves.as_bytes(value, count, s) for value, s in zip(values, sizes, strict=True)]
            moved = moves.moved(m, whole, raw, size)
            if moved is not None:
                return moved if moved.any() else None
        if m.packed:
            return self._in_halves(name, line, m, values, owners, count)
        return self.operation(name, line, values, owners, count, size, m)

    def _in_halves(self, name: str, line: int, m: Meaning, values: list, owners: list, count: int) -> np.ndarray:
        """Return the byte numbers of an operation on packed pairs, one on each half; of two numbers packed, the first is the
        upper half."""
        half, parts = m.half(), []
        size = size_of(half.result)
        for i in (0, 1):
            words, mine = values[1 - i : 2 - i], owners[1 - i : 2 - i]
            if m.sources[0] != half.sources[0]:
                words, mine = [], []
                for value, owner, kind in zip(values, owners, half.sources, strict=True):
                    part = slice(i * size_of(kind), (i + 1) * size_of(kind))
                    raw = moves.as_bytes(value, count, 2 * size_of(kind))[:, part]
                    words.append(np.ascontiguousarray(raw).view(array_type(kind))[:, 0])
                    mine.append(None if owner is None else owner[:, part])
            nothing = all(owner is None or not owner.any() for owner in mine)
            parts.append(
                np.zeros((count, size), np.int64)
                if nothing
                else self.operation(_PAIR.sub("", name), line, words, mine, count, size, half)
            )
        return np.concatenate(parts, 1)

    def atomic(
        self, name: str, m: Meaning | None, old: np.ndarray, old_owners: np.ndarray, added: np.ndarray, owners
    ) -> np.ndarray:
        """Return the byte numbers of memory after an atomic operation on words of shape (lanes, words)."""
        count, words = old.shape
        width, parts = old.dtype.itemsize, []
        if added.shape[1] > words:  # compare and swap: the new word, or the earlier one
            new = np.zeros_like(old_owners) if owners is None else owners[:, : old_owners.shape[1]]
            return np.where((old == added[:, words:]).all(1)[:, None], new, old_owners)
        for i in range(words):
            part = slice(i * width, (i + 1) * width)
            both = [None if each is None else each[:, part] for each in (old_owners, owners)]
            both = [each if each is not None and each.any() else None for each in both]
            if all(each is None for each in both):
                parts.append(np.zeros((count, width), np.int64))
            else:
                parts.append(self.operation(name, 0, [old[:, i], added[:, i]], both, count, width, m))
        return np.concatenate(parts, 1)

    def operation(
        self, name: str, line: int, values: list, owners: list, count: int, size: int, meaning: Meaning | None = None
    ) -> np.ndarray:
        """Return the byte numbers of new expressions, one for each lane: an operation on values of which some depend on inputs.

        The same operation on the same operands is the same expression. The first two operands of a commutative operation are
        sorted.
        """
        constants = np.stack([_as_integers(v, count) for v in values], 1)
        operands = np.stack(
            [
                np.zeros(count, np.int64) if o is None else self.values_of(o, line, constants[:, i])
                for i, o in enumerate(owners)
            ],
            1,
        )
        constants = np.where(operands == 0, constants, np.uint64(0))
        if meaning is not None and meaning.commutes:
            first, second = (self._anchors[operands[:, i]] for i in (0, 1))
            turned = (first > second) | (first == second) & (operands[:, 0] > operands[:, 1])
            for table in (operands, constants):
                table[:, :2] = np.where(turned[:, None], table[:, 1::-1], table[:, :2])
        key = np.concatenate([operands, constants.view(np.int64)], 1)
        distinct, places = np.unique(key, axis=0, return_inverse=True)
        numbers = np.empty(len(distinct), np.int64)
        new = []
        for i, row in enumerate(distinct.tolist()):
            known = self._known.get((name, size, *row))
            if known is None:
                new.append(i)
            else:
                numbers[i] = known
        if new:
            width = len(owners)
            block = Operations(name, line, distinct[new, :width], distinct[new, width:].view(np.uint64), meaning)
            first = self.add(block, len(new))
            for turn, i in enumerate(new):
                numbers[i] = self._known[(name, size, *distinct[i].tolist())] = first + turn
        result = numbers[places.reshape(-1)]
        return bytes_of(np.where((operands != 0).any(1), result, 0), size)

    def values_of(self, owners: np.ndarray, line: int = 0, values: np.ndarray | None = None) -> np.ndarray:
        """Return the numbers of the expressions that consist of these bytes.

        A mixture of bytes of several is an expression of its own.

        `values` are the values themselves, from which a mixture takes the bytes that depend on no input (zeros if not given).
        """
        size = owners.shape[-1]
        flat = owners.reshape(-1, size)
        found = flat[:, 0] // PLACES
        mixed = (flat != bytes_of(found, size)).any(1)
        if mixed.any():
            rows = flat[mixed]
            held = np.zeros(rows.shape, np.uint8)
            if values is not None:
                words = _as_integers(values.reshape(-1), len(flat))[mixed]
                held = np.where(rows == 0, words.view(np.uint8).reshape(-1, 8)[:, :size], 0)
            found = found.copy()
            found[mixed] = self._mixtures(rows, held, line)
        return found.reshape(owners.shape[:-1])

    def _mixtures(self, rows: np.ndarray, held: np.ndarray, line: int) -> np.ndarray:
        distinct, places = np.unique(np.concatenate([rows, held], 1), axis=0, return_inverse=True)
        size = rows.shape[1]
        numbers = np.array([self._mixture(row[:size], row[size:], line) for row in distinct.tolist()], np.int64)
        return numbers[places.reshape(-1)]

    def _mixture(self, row: list[int], held: list[int], line: int) -> int:
        """Return the expression of a value that consists of bytes of several expressions, or of moved bytes.

        Its name says which bytes.
        """
        places = "".join(str(n % PLACES) if n else "_" for n in row)
        return self.single(
            f"bytes.{places}", line, row, held, Meaning("bytes", f"b{8 * len(row)}", (), options=(places,))
        )

    def single(self, name: str, line: int, row: list[int], held: list[int], meaning: Meaning | None = None) -> int:
        """Return one expression of an operation on the expressions of `row`'s bytes.

        `held` are the values of bytes without expression.
        """
        key = (name, *row, *held)
        if key not in self._known:
            operands = np.array([row], np.int64) // PLACES
            self._known[key] = self.add(Operations(name, line, operands, np.array([held], np.uint64), meaning), 1)
        return self._known[key]

    def product(self, row, owners: list, values: list, line: int, signs: tuple[int, int] = (1, 1)) -> np.ndarray:
        """Return the byte numbers of the elements of D.

        `owners` and `values` are those of A, B, C, shapes (tiles, rows, cols[, bytes]).
        """
        numbers = [
            np.zeros(v.shape, np.int64) if o is None else self.values_of(o, line, v)
            for o, v in zip(owners, values, strict=True)
        ]
        shape, size = values[2].shape, row.formats[3].container.itemsize
        a, b, c = numbers
        first = self.add(Products(row, line, a, b, c, (values[0], values[1], values[2]), signs), values[2].size)
        return bytes_of(np.arange(first, first + values[2].size), size).reshape(*shape, size)

    def decided(self, owners: np.ndarray | None, held: np.ndarray, negated: bool) -> None:
        """Note that a branch or selection followed predicates of which some depend on inputs."""
        if owners is None:
            return
        numbers = (
            np.broadcast_to(owners[:, 0] // PLACES, held.reshape(-1).shape) if owners.ndim > 1 else owners // PLACES
        )
        some = np.flatnonzero(numbers)
        for number, outcome in {*zip(numbers[some].tolist(), held.reshape(-1)[some].tolist(), strict=True)}:
            block, _ = self.block_of(number)
            key = getattr(block, "name", "product"), getattr(block, "line", 0), bool(outcome)
            self.decisions[key] = self.decisions.get(key, 0) + 1

    def assumptions(self) -> tuple[str, ...]:
        """Return the decisions that data made, as text."""
        lines: dict[tuple[str, bool], list[int]] = {}
        for name, line, outcome in self.decisions:
            lines.setdefault((name, outcome), []).append(line)
        return tuple(
            f"{name} is {str(outcome).lower()} wherever it decides (line{'s' * (len(at) > 1)} {some(sorted(at))})"
            for (name, outcome), at in lines.items()
        )


def _same(owners: list) -> bool:
    """Return whether both operands are one number."""
    return len(owners) == 2 and all(owner is not None for owner in owners) and np.array_equal(*owners)


def some(lines: Sequence[int]) -> str:
    """Return numbers of lines as text, the first few and the last."""
    return ", ".join(map(str, lines)) if len(lines) < 5 else f"{lines[0]} to {lines[-1]}, {len(lines)} of them"


def bytes_of(numbers: np.ndarray, size: int) -> np.ndarray:
    """Return the number of each byte of whole values, shape (..., size); 0 for the expression 0."""
    flat = numbers[..., None]
    return np.where(flat == 0, 0, flat * PLACES + np.arange(size))


def _as_integers(values, count: int) -> np.ndarray:
    values = np.asarray(values)
    if values.dtype.kind == "i":
        values = values.view(f"u{values.dtype.itemsize}")
    return np.broadcast_to(values.astype(np.uint64), (count,))
