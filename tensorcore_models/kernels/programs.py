"""This module compiles PassPrograms for the machine that runs them over lanes of columns (_kernels/programs).

Numbers of the machine have 64 bits; a PassProgram with numbers of more than 62 bits raises :class:`TooWide`. An operand of A is
one number for all lanes of a panel, an operand of B is a row of lanes.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._kernels.programs import programs
from ..arithmetic.program import PassProgram, Prepared
from ..arithmetic.recorder import RecordedOperation

#: Bound of the numbers that the machine can round without overflow.
LARGEST = 1 << 62
_SIGNED = ("ru", "rd", "rnu", "rnd")


class TooWide(TypeError):
    """`TooWide` is raised for a PassProgram with numbers of more than 62 bits."""


class _Link(NamedTuple):
    """`_Link` is an operation on a product: the value it continues, the values that links share, and its operand values."""

    rest: Any
    shared: tuple[Any, ...]
    taken: tuple[int, ...]


class _Line:
    """`_Line` translates a straight-line program into instructions of the machine.

    Parameters
    ----------
    operations : sequence of RecordedOperation
        Straight-line program.
    inputs : dict
        Memory and place of every input, by the input's constant.
    uniform : str
        Side whose inputs are one number for all lanes; "" if there is none.
    strides : tuple of int
        Distances in the memories of A and of B from the values of a product to those of the next product.
    """

    def __init__(
        self,
        operations: Sequence[RecordedOperation],
        inputs: dict[tuple, tuple[str, int]],
        uniform: str = "",
        strides: tuple[int, int] = (0, 0),
    ):
        self.operations, self.inputs, self.uniform, self.strides = operations, inputs, uniform, strides
        self.constants: dict[int, int] = {}
        self.chosen: dict[Any, tuple[str, list[Any]]] = {}
        self.uses = Counter(x for operation in operations for x in operation.sources)

    # -- single operations -------------------------------------------------------------------------------------------------
    def _is(self, at: Any, *names: str) -> bool:
        return type(at) is int and self.operations[at].name in names

    def _scalar(self, at: Any) -> bool:
        """Return whether a value is one number for all lanes."""
        if type(at) is tuple:
            return at[0] in ("number", "plain")
        x = self.operations[at]
        return x.name in ("constant", "truth") or x.name == "input" and x.constant[0] == self.uniform

    def _vector(self, at: Any) -> Any:
        return ("copy", at) if self._scalar(at) else at

    def _instruction(self, at: Any) -> tuple[str, list[Any]]:
        """Return the name and the sources of the instruction that computes a value."""
        if type(at) is tuple:
            return ("copy_s", [at[1]]) if at[0] == "copy" else ("leave_v", [at[1]])
        x = self.operations[at]
        found = self._cuts(at) or self._larger_sums(at)
        if found is not None:
            return found
        s: list[Any] = list(x.sources)
        if x.name == "choose":
            if self._is_negated(s[1], s[2]):
                return self._binary("sign", s[2], s[0])
            s[0] = self._vector(s[0])
            return f"choose_v{self._kinds(s[1:])}", s
        if x.name == "magnitude":
            return "magnitude_v", [self._vector(s[0])]
        if x.name == "places":
            return "places_vs", [self._vector(s[0]), ("number", x.constant)]
        if x.name == "shr":
            kinds = "v" + self._kinds(s[1:2]) + ("v" if x.constant in _SIGNED else "")
            return f"shr_{x.constant.upper()}_{kinds}", [self._vector(s[0]), s[1], *map(self._vector, s[2:])]
        if x.name == "differ" and self.operations[s[1]].name == "truth":
            return "no_v", [self._vector(s[0])]
        name = "mask" if x.name == "both" else x.name
        if name == "multiply" and not all(map(self._short, s)):
            name = "multiply_any"
        return self._binary(name, *s)

    def _short(self, at: int) -> bool:
        """Return whether a number has at most 32 bits and no sign."""
        return self.operations[at].low >= 0 and self.operations[at].high < 1 << 32

    def _binary(self, name: str, x: Any, y: Any) -> tuple[str, list[Any]]:
        if self._scalar(x) and self._scalar(y):
            x = ("copy", x)
        return f"{name}_{self._kinds((x, y))}", [x, y]

    def _kinds(self, sources: Sequence[Any]) -> str:
        return "".join("s" if self._scalar(x) else "v" for x in sources)

    def _is_negated(self, at: Any, of: Any) -> bool:
        """Return whether a value is 0 - `of`."""
        if not self._is(at, "subtract"):
            return False
        x, y = self.operations[at].sources
        return y == of and self._is(x, "constant") and self.operations[x].constant == 0

    # -- operations that are merged into one instruction -------------------------------------------------------------------
    def _of_operands(self, at: Any, name: str) -> tuple[int, int] | None:
        """Return the values of an operand of A and an operand of B that an operation combines, None for other operations."""
        if not self._is(at, name):
            return None
        pair = self.operations[at].sources
        sides = {self.operations[x].constant[0]: x for x in pair if self._is(x, "input")}
        return (sides["a"], sides["b"]) if set(sides) == {"a", "b"} and self.uniform == "a" else None

    def _run(self, at: Any, match: Callable[[Any], "_Link | None"]) -> "tuple[_Link, Any, int, int] | None":
        """Return a run of evenly spaced products: its last link, the value before it, their number and their distance."""
        found = link = match(at)
        if found is None or link is None:
            return None
        rest, count = link.rest, 1
        step: int | None = None
        while type(rest) is int and self.uses[rest] == 1:
            before = match(rest)
            if before is None or before.shared != link.shared:
                break
            between = self._distance(link.taken, before.taken)
            if between is None or step not in (None, between):
                break
            link, rest, step, count = before, before.rest, between, count + 1
        return found, rest, count, step or 0

    def _distance(self, x: Sequence[int], y: Sequence[int]) -> int | None:
        """Return the distance in k of two products whose values have the same meaning, None if they differ otherwise."""
        pairs = [(self.operations[p].constant, self.operations[q].constant) for p, q in zip(x, y, strict=True)]
        places = {q[1] - p[1] for p, q in pairs}
        return places.pop() if len(places) == 1 and all((p[0], p[2]) == (q[0], q[2]) for p, q in pairs) else None

    def _larger_sums(self, at: Any) -> tuple[str, list[Any]] | None:
        if (found := self._run(at, self._larger_sum)) is None:
            return None
        link, rest, count, step = found
        return "larger_sums", [self._vector(rest), *link.taken, ("plain", count), ("plain", step)]

    def _larger_sum(self, at: Any) -> "_Link | None":
        """Return the link of a maximum of a number and a product's exponent, None for other operations."""
        if self._is(at, "larger"):
            x, y = self.operations[at].sources
            for rest, other in ((x, y), (y, x)):
                if (exponents := self._of_operands(other, "add")) is not None:
                    return _Link(rest, (), exponents)
        return None

    def _cuts(self, at: Any) -> tuple[str, list[Any]] | None:
        if (found := self._run(at, self._cut)) is None:
            return None
        link, rest, count, step = found
        rounding, top = link.shared
        sources = [self._vector(rest), self._vector(top), *link.taken, ("plain", count), ("plain", step)]
        return f"cuts_{rounding.upper()}", sources

    def _cut(self, at: Any) -> "_Link | None":
        """Return the link of a product truncated at an aligned sum's exponent, alone or added to a number; else None."""
        if self._is(at, "add"):
            x, y = self.operations[at].sources
            for rest, other in ((x, y), (y, x)):
                if (product := self._cut(other)) is not None and product.rest == ("number", 0):
                    return product._replace(rest=rest)
            return None
        if not self._is(at, "choose"):
            return None
        negative, minus, size = self.operations[at].sources
        if not (self._is_negated(minus, size) and self._is(size, "shr")):
            return None
        product, distance, *_ = self.operations[size].sources
        signs, significands = self._of_operands(negative, "differ"), self._of_operands(product, "multiply")
        if signs is None or significands is None or not self._is(distance, "subtract"):
            return None
        top, exponent = self.operations[distance].sources
        exponents = self._of_operands(exponent, "add")
        if exponents is None or not all(map(self._short, significands)):
            return None
        a, b = zip(significands, exponents, signs, strict=True)
        return _Link(("number", 0), (self.operations[size].constant, top), (*a, *b))

    # -- instructions ----------------------------------------------------------------------------------------------------
    def _needed(self, results: Sequence[Any]) -> list[Any]:
        """Return the values that instructions compute, each after its sources."""
        found: list[Any] = []
        begun: set[Any] = set()
        stack: list[tuple[Any, bool]] = [(at, False) for at in reversed(results)]
        while stack:
            at, done = stack.pop()
            if done:
                found.append(at)
            elif at not in begun and self._computed(at):
                begun.add(at)
                self.chosen[at] = self._instruction(at)
                stack.append((at, True))
                stack.extend((x, False) for x in reversed(self.chosen[at][1]))
        return found

    def _computed(self, at: Any) -> bool:
        if type(at) is tuple:
            return at[0] in ("copy", "leave")
        return self.operations[at].name not in ("constant", "truth", "input")

    def _constant(self, value: Any) -> int:
        number = -int(value) if isinstance(value, bool) else value
        return _placed("constant", self.constants.setdefault(number, len(self.constants)))

    def _place(self, at: Any, registers: dict[Any, int]) -> int:
        if at in registers:
            return _placed("register", registers[at] * programs.LANES)
        if type(at) is tuple:
            return at[1] if at[0] == "plain" else self._constant(at[1])
        x = self.operations[at]
        if x.name == "input":
            return _placed(*self.inputs[x.constant])
        return self._constant(x.constant)

    def compiled(self, results: Sequence[tuple[int, tuple[str, int]]], seldom: Sequence[int] = ()) -> programs.Code:
        """Return instructions that store each result, and stop if one of the conditions `seldom` holds in a lane."""
        wanted: list[Any] = [("leave", at) for at in seldom]
        order = self._needed(wanted + [at for at, _ in results])
        for at in {*order, *(at for at, _ in results), *(x for y in order for x in self.chosen[y][1])}:
            if type(at) is int and max(self.operations[at].high, -self.operations[at].low) >= LARGEST:
                raise TooWide(f"numbers have {self.operations[at].high.bit_length()} bits, expected at most 62")
        last = {x: place for place, at in enumerate(order) for x in self.chosen[at][1]}
        last |= {at: len(order) for at, _ in results}
        registers: dict[Any, int] = {}
        free: list[int] = []
        count, lines = 0, []
        for place, at in enumerate(order):
            name, sources = self.chosen[at]
            places = [self._place(x, registers) for x in sources]
            free += [registers[x] for x in set(sources) if x in registers and last[x] == place]
            if not free:
                free.append(count)
                count += 1
            registers[at] = free.pop()
            lines.append(_line(name, _placed("register", registers[at] * programs.LANES), places))
        for at, destination in results:
            name = "copy_s" if self._scalar(at) else "copy_v"
            lines.append(_line(name, _placed(*destination), [self._place(at, registers)]))
        constants = np.array([*self.constants, 0], np.int64)
        return programs.Code(
            np.array(lines, np.int32).reshape(-1, programs.INSTRUCTION), constants, count, *self.strides
        )


def _placed(memory: str, place: int) -> int:
    return place * 8 + programs.MEMORIES[memory]


def _line(name: str, destination: int, sources: Sequence[int]) -> list[int]:
    number, count = programs.OPERATIONS[name]
    assert count == len(sources), name
    return [number, destination, *sources, *[0] * (programs.INSTRUCTION - 2 - count)]


# -- operands ------------------------------------------------------------------------------------------------------------
class TakenOperands:
    """`TakenOperands` gathers the values that the programs of a chain take of the operands of one side."""

    def __init__(self) -> None:
        self.line: list[RecordedOperation] = []
        self.known: dict[RecordedOperation, int] = {}
        self.outputs: list[int] = []
        self.seldom: int | None = None

    def add(self, prepared: Prepared) -> list[int]:
        """Add the preparation of one PassProgram, and return the places of its outputs."""
        at: list[int] = []
        for x in prepared.operations:
            own = x._replace(sources=tuple(at[s] for s in x.sources))
            if own not in self.known:
                self.known[own] = len(self.line)
                self.line.append(own)
            at.append(self.known[own])
        if prepared.seldom is not None:
            assert self.seldom in (None, at[prepared.seldom]), "the Programs of a chain leave the same operands out"
            self.seldom = at[prepared.seldom]
        self.outputs += [place for place in dict.fromkeys(at[x] for x in prepared.outputs) if place not in self.outputs]
        return [self.outputs.index(at[x]) for x in prepared.outputs]

    def compiled(self, side: str) -> programs.Packing:
        inputs = {(side, 0): ("code", 0), (f"scale_{side}", 0): ("scale", 0)}
        found = [*self.outputs, *([] if self.seldom is None else [self.seldom])]
        results = [(at, (side, place * programs.LANES)) for place, at in enumerate(found)]
        code = _Line(self.line, inputs).compiled(results)
        return programs.Packing(code, len(self.outputs), self.seldom is not None)


def passes(chain: Sequence[PassProgram]) -> programs.Passes:
    """Compile the four programs of a chain: for an inner pass, the first pass, the last pass, and a pass that is both.

    Raises
    ------
    TooWide
        If a number has more than 62 bits.
    """
    sides = {"a": TakenOperands(), "b": TakenOperands()}
    places = [[sides[side].add(x) for side, x in zip("ab", program.prepared, strict=True)] for program in chain]
    codes: dict[int, programs.Code] = {}
    for program, (a, b) in zip(chain, places, strict=True):
        if id(program) not in codes:
            codes[id(program)] = _compiled(program, a, len(sides["a"].outputs), b, len(sides["b"].outputs))
    return programs.Passes(
        sides["a"].compiled("a"), sides["b"].compiled("b"), tuple(codes[id(program)] for program in chain)
    )


def _compiled(program: PassProgram, a: list[int], a_count: int, b: list[int], b_count: int) -> programs.Code:
    inputs: dict[tuple, tuple[str, int]] = {("c", 0): ("code", 0)}
    for x in program.operations:
        if x.name == "input" and x.constant[0] == "a":
            _, term, place = x.constant
            inputs[x.constant] = ("a", term * a_count + a[place])
        elif x.name == "input" and x.constant[0] == "b":
            _, term, place = x.constant
            inputs[x.constant] = ("b", (term * b_count + b[place]) * programs.LANES)
    strides = a_count, b_count * programs.LANES
    return _Line(program.operations, inputs, "a", strides).compiled([(program.result, ("code", 0))], program.seldom)
