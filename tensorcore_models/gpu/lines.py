"""Turns the operations of a PassProgram into the steps that :mod:`.source_program` compiles: order, widths, masks.

Types follow from ranges: a step has 32 bits if its numbers and its result fit, else 64. A value that one cheap operation
computes from one operand of A and one of B is computed anew wherever it is used, because such values (the exponents of a pass),
kept for all outputs of a thread, would fill its registers.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..arithmetic.recorder import CONDITIONS, RecordedOperation
from ..kernels.programs import TooWide

#: Operations that cost less than the registers that hold their results.
_CHEAP = ("add", "both", "either", "differ")
_JOINTS = ("both", "either", "differ")
#: Roundings that depend on the sign.
_SIGNED = ("ru", "rd", "rnu", "rnd")


class LineStep(NamedTuple):
    """`LineStep` is an operation of a kernel: name, type ("bool", "int32", "uint32" or "int64"), constant, and source steps."""

    name: str
    type: str
    constant: Any
    sources: tuple[int, ...]


class ProgramLine:
    """`ProgramLine` is a straight line of steps, a constant of a Triton kernel.

    Parameters
    ----------
    steps : sequence of LineStep
    results : tuple of int
        Steps whose values are the results.
    seldom : tuple of int
        Steps of (rare) conditions under which results are wrong.
    """

    def __init__(self, steps: Sequence[LineStep], results: tuple[int, ...], seldom: tuple[int, ...] = ()):
        self.steps, self.results, self.seldom = tuple(steps), results, seldom

    @cached_property
    def cache_key(self) -> str:
        """Return the digest by which Triton distinguishes lines."""
        return hashlib.sha256(repr((self.steps, self.results, self.seldom)).encode()).hexdigest()

    def __repr__(self) -> str:
        return f"line_{self.cache_key[:32]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProgramLine) and self.cache_key == other.cache_key

    def __hash__(self) -> int:
        return hash(self.cache_key)


def _leaves(tree: Any) -> list[int]:
    return [tree] if type(tree) is int else [leaf for part in tree[2:] for leaf in _leaves(part)]


class LineBuilder:
    """`LineBuilder` makes a ProgramLine of recorded operations.

    Parameters
    ----------
    operations : sequence of RecordedOperation
    loads : mapping
        Constant of an input -> name and constant of the step that gives it.
    masks : container of inputs' constants
        Inputs that are conditions, with the values -1 or 0.
    """

    def __init__(
        self, operations: Sequence[RecordedOperation], loads: Mapping[tuple, tuple[str, Any]], masks: Any = ()
    ):
        self.operations, self.loads = operations, loads
        self.steps: list[LineStep] = []
        self.kept: dict[int, int] = {}
        self.masks: set[int] = set()
        self.repeated: set[int] = set()
        self.depth: list[int] = []
        for at, x in enumerate(operations):
            self.depth.append(1 + max((self.depth[s] for s in x.sources), default=0))
            joined = x.name in _JOINTS and all(s in self.masks or operations[s].name == "truth" for s in x.sources)
            if joined or x.constant in masks and x.name == "input":
                self.masks.add(at)
            leaves = all(operations[s].name in ("input", "constant", "truth") for s in x.sources)
            if not x.sources or x.name in _CHEAP and leaves:
                self.repeated.add(at)

    # -- types -----------------------------------------------------------------------------------------------------------
    def _type(self, *ats: int) -> str:
        low = min(self.operations[at].low for at in ats)
        high = max(self.operations[at].high for at in ats)
        if low >= -(1 << 31) and high < 1 << 31:
            return "int32"
        return "uint32" if low >= 0 and high < 1 << 32 else "int64"

    def _type_of_shift(self, at: int, places: int, rounding: str) -> str:
        """Return a type in which a number can be rounded: rounding to nearest needs one more bit, and one for the sign."""
        if rounding in ("rz", "ru", "rd", "ra", "ro"):
            all_gone = self.operations[places].high > 31  # of a 32-bit number, a shift by 31 places leaves one bit
            return "int64" if all_gone and self._type(at) == "uint32" else self._type(at)
        bits = self.operations[at].high.bit_length()
        if bits > 61:
            raise TooWide(f"a number of {bits} bits is rounded, but a GPU kernel rounds at most 61 bits")
        return "int32" if bits <= 29 else "int64"

    # -- steps -----------------------------------------------------------------------------------------------------------
    def _put(self, name: str, kind: str, constant: Any, *sources: int) -> int:
        self.steps.append(LineStep(name, kind, constant, sources))
        return len(self.steps) - 1

    def _whole(self, at: int) -> int:
        """Return the step of a number, or of a condition as a mask."""
        return self._emit(at) if at in self.repeated else self.kept[at]

    def _condition(self, at: int) -> int:
        found = self._whole(at)
        return self._put("true", "int32", None, found) if at in self.masks else found

    def _negated(self, at: int, of: int) -> bool:
        """Return whether a value is 0 - `of`."""
        x = self.operations[at]
        return x.name == "subtract" and x.sources[1] == of and self.operations[x.sources[0]].constant == 0

    def _rounded_down(self, at: int) -> bool:
        """Return whether a value is a magnitude that is rounded down together with the sign that it gets."""
        x = self.operations[at]
        if x.name != "choose" or not self._negated(*x.sources[1:]):
            return False
        size = self.operations[x.sources[2]]
        return size.name == "shr" and size.constant == "rd" and size.sources[2] == x.sources[0]

    def _signed(self, at: int, negative: int) -> Any:
        """Return a magnitude with its sign: an operation, or a step's name, type and sources, where each source has this form
        again.
        """
        x, sign = self.operations[at], self.operations[negative]
        if x.name == "shl":
            return "shl", self._type(at), self._signed(x.sources[0], negative), x.sources[1]
        below = sign.name == "less" and self.operations[sign.sources[1]].constant == 0
        if x.name == "magnitude" and below and x.sources[0] == sign.sources[0]:
            return x.sources[0]
        return "signed", self._type(at), negative, at

    def _step_of(self, tree: Any) -> int:
        """Return the step of a result of :meth:`_signed`."""
        if type(tree) is int:
            return self._condition(tree) if self.operations[tree].name in CONDITIONS else self._whole(tree)
        name, kind, *sources = tree
        return self._put(name, kind, None, *map(self._step_of, sources))

    def _needs(self, at: int) -> list[int]:
        """Return the operations whose values a step takes."""
        x = self.operations[at]
        if self._rounded_down(at):
            size = self.operations[x.sources[2]].sources
            return [*_leaves(self._signed(size[0], x.sources[0])), size[1]]
        if x.name == "choose" and x.sources[0] in self.masks and self._negated(*x.sources[1:]):
            return [x.sources[0], x.sources[2]]
        if x.name == "differ" and self.operations[x.sources[1]].name == "truth":
            return [x.sources[0]]
        return list(x.sources)

    def _emit(self, at: int) -> int:
        x, s = self.operations[at], self._needs(at)
        if x.name == "input":
            name, constant = self.loads[x.constant]
            return self._put(name, self._type(at), constant)
        if x.name in ("constant", "truth"):
            return self._put("constant", self._type(at), -int(x.constant) if x.name == "truth" else x.constant)
        if x.name in _JOINTS:
            if len(s) == 1:
                return self._put("no", "int32" if at in self.masks else "bool", None, self._whole(s[0]))
            give = self._whole if at in self.masks else self._condition
            return self._put(x.name, "int32" if at in self.masks else "bool", None, *map(give, s))
        if x.name == "choose":
            if self._rounded_down(at):
                size = self.operations[x.sources[2]].sources
                signed = self._step_of(self._signed(size[0], x.sources[0]))
                return self._put("floor", self._type(at, size[0]), None, signed, self._whole(size[1]))
            if len(s) == 2:
                return self._put("sign", self._type(at), None, self._whole(s[1]), self._whole(s[0]))
            return self._put(x.name, self._type(at), None, self._condition(s[0]), *map(self._whole, s[1:]))
        if x.name == "shr":
            kind = self._type_of_shift(s[0], s[1], x.constant)
            signs = [self._condition(s[2])] if x.constant in _SIGNED else []
            most = min(self.operations[s[0]].high.bit_length() + 1, 63 if kind == "int64" else 31)
            places = self.operations[s[1]]
            constant = x.constant, most if places.high > most else 0, places.low > 0
            return self._put(x.name, kind, constant, *map(self._whole, s[:2]), *signs)
        kind = self._type(at, *s) if x.name in ("larger", "less", "same", "magnitude", "places") else self._type(at)
        return self._put(x.name, kind, x.constant, *map(self._whole, s))

    def _order(self, wanted: Sequence[int]) -> list[int]:
        """Return operations in the order of steps: the longest path to a source first, so that few values wait."""
        found: list[int] = []
        begun: set[int] = set()
        stack = [(at, False) for at in reversed(wanted)]
        while stack:
            at, done = stack.pop()
            if done:
                found.append(at)
            elif at not in begun and at not in self.repeated:
                begun.add(at)
                stack.append((at, True))
                stack += [(s, False) for s in sorted(self._needs(at), key=self.depth.__getitem__)]
        return found

    def line(self, results: Sequence[int], seldom: Sequence[int] = ()) -> ProgramLine:
        """Return the ProgramLine of some values, and of conditions under which these values are wrong."""
        for at in self._order([*results, *seldom]):
            self.kept[at] = self._emit(at)
        return ProgramLine(self.steps, tuple(map(self._whole, results)), tuple(map(self._condition, seldom)))
