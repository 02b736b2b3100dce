"""This module holds integers of known range that record each operation on them, so that a pass leaves a straight-line program.

Equal operations are recorded once. Results that constants and ranges decide are computed while recording. Factors, addends and
signs of one operand are grouped, so that they can be prepared once (:mod:`tensorcore_models.arithmetic.program`).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import operations
from .nodes import Notes

#: Origin of a value: None for a constant, (side, term) if it depends on one operand only, else ANYWHERE.
Origin = Any
ANYWHERE = "anywhere"
#: Operations whose results are conditions.
CONDITIONS = ("truth", "less", "same", "both", "either", "differ")
#: Distance to an alignment exponent far below all others, which numbers that take no part get.
FAR = 1 << 20


class Unrecordable(TypeError):
    """`Unrecordable` is raised for a pass that cannot be recorded as one straight-line program."""


class RecordedOperation(NamedTuple):
    """`RecordedOperation` holds an operation's name, positions of its sources, its constant and the range of its result."""

    name: str
    sources: tuple[int, ...]
    constant: Any
    low: int
    high: int


class _Unknown:
    """`_Unknown` is a value that is unknown while recording; a Python `if` or `==` on it raises Unrecordable."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise Unrecordable("a Python `if` depends on a recorded value: use select")

    def __eq__(self, other: object) -> bool:
        raise Unrecordable("recorded values are compared with Python's ==: use same")


class Whole(_Unknown):
    """`Whole` is an integer of a recording, from `low` to `high`."""

    __slots__ = ("at", "high", "low", "recorder")

    def __init__(self, recorder: "PassRecorder", at: int, low: int, high: int):
        self.recorder, self.at, self.low, self.high = recorder, at, low, high

    def __add__(self, other: Any) -> Any:
        return self.recorder.add(self, other)

    def __sub__(self, other: Any) -> Any:
        return self.recorder.subtract(self, other)

    def __rsub__(self, other: Any) -> Any:
        return self.recorder.subtract(other, self)

    def __mul__(self, other: Any) -> Any:
        return self.recorder.multiply(self, other)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Any:
        return self.recorder.subtract(0, self)

    def __lshift__(self, places: int) -> Any:
        return self.recorder.shifted_left(self, places)

    def __rshift__(self, places: int) -> Any:
        return self.recorder.shifted_right(self, places, "rz", False, 0)

    def __and__(self, mask: int) -> Any:
        return self.recorder.masked(self, mask)

    def __lt__(self, other: Any) -> Any:
        return self.recorder.less(self, other)

    def __gt__(self, other: Any) -> Any:
        return self.recorder.less(other, self)

    def __le__(self, other: Any) -> Any:
        return operations.no(self.recorder.less(other, self))

    def __ge__(self, other: Any) -> Any:
        return operations.no(self.recorder.less(self, other))


class Flag(_Unknown):
    """`Flag` is a condition of a recording."""

    __slots__ = ("at", "recorder")
    #: The value is unknown (read by :func:`tensorcore_models.arithmetic.operations.never`).
    value = None

    def __init__(self, recorder: "PassRecorder", at: int):
        self.recorder, self.at = recorder, at

    def __and__(self, other: Any) -> Any:
        return self.recorder.joint("both", self, other)

    def __or__(self, other: Any) -> Any:
        return self.recorder.joint("either", self, other)

    def __xor__(self, other: Any) -> Any:
        return self.recorder.joint("differ", self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


class PassRecorder:
    """`PassRecorder` keeps the operations of one pass; equal operations are kept once.

    Parameters
    ----------
    regular : bool
        Whether conditions marked as seldom are taken to be false; their positions are then in `seldom`.
    """

    def __init__(self, regular: bool):
        self.regular = regular
        self.operations: list[RecordedOperation] = []
        self.origins: list[Origin] = []
        self.seldom: set[int] = set()
        self.notes = Notes(self)
        self._known: dict[tuple, int] = {}
        #: For each value, the values that it is never below, and the least difference to each.
        self._above: list[dict[int, int]] = []
        #: For each exponent of a product whose operands may take no part: the conditions that they do, and the exponent with
        #: -FAR in place of absent operands.
        self._absent: dict[int, tuple[tuple[Any, ...], Any]] = {}

    # -- recording ---------------------------------------------------------------------------------------------------------
    def _put(self, name: str, sources: tuple[int, ...], constant: Any, low: int, high: int, origin: Any = None) -> int:
        key = (name, sources, constant)
        if key in self._known:
            return self._known[key]
        for x in sources:
            theirs = self.origins[x]
            origin = theirs if origin is None or theirs == origin else origin if theirs is None else ANYWHERE
        self._known[key] = at = len(self.operations)
        self.operations.append(RecordedOperation(name, sources, constant, low, high))
        self.origins.append(origin)
        self._above.append({})
        return at

    def _whole(self, name: str, sources: Sequence[Any], low: int, high: int, constant: Any = None) -> Any:
        if low == high:
            return low
        at = self._put(name, tuple(self.place(x) for x in sources), constant, low, high)
        return Whole(self, at, *self.operations[at][3:])

    def _flag(self, name: str, sources: Sequence[Any]) -> Flag:
        return Flag(self, self._put(name, tuple(self.place(x) for x in sources), None, 0, 1))

    def place(self, x: Any) -> int:
        """Return the position of a value or of a constant."""
        if isinstance(x, Whole | Flag):
            return x.at
        return self._put("truth" if isinstance(x, bool) else "constant", (), x, int(x), int(x))

    def value(self, at: int) -> Any:
        """Return the value at a position."""
        found = self.operations[at]
        if found.name in ("constant", "truth"):
            return found.constant
        if found.name in CONDITIONS:
            return Flag(self, at)
        return Whole(self, at, found.low, found.high)

    def _parts(self, x: Any, name: str) -> tuple[Any, ...] | None:
        """Return the sources of a value if an operation called `name` computed it, else None."""
        if isinstance(x, Whole | Flag) and self.operations[x.at].name == name:
            return tuple(map(self.value, self.operations[x.at].sources))
        return None

    def _origin(self, x: Any) -> Origin:
        return self.origins[x.at] if isinstance(x, Whole | Flag) else None

    def input(self, side: str, term: int, bits: int) -> Whole:
        """Return an input code of `bits` bits of side "a" or "b", of its block scale "scale_a" or "scale_b", or of "c"."""
        at = self._put("input", (), (side, term), 0, (1 << bits) - 1, (side[-1], term))
        return Whole(self, at, 0, (1 << bits) - 1)

    def _gathered(self, combine: Any, name: str, x: Any, y: Any) -> Any:
        """Combine y first with the source of x that depends on the same operand; None if x has no such source."""
        for mixed, other in ((x, y), (y, x)):
            wanted, parts = self._origin(other), self._parts(mixed, name)
            if parts is None or wanted == ANYWHERE or self._origin(mixed) != ANYWHERE:
                continue
            for mine, rest in (parts, parts[::-1]):
                own = self._origin(mine)
                if own not in (None, ANYWHERE) and (wanted is None or own == wanted):
                    return combine(rest, combine(mine, other))
        return None

    # -- integers --------------------------------------------------------------------------------------------------------
    def add(self, x: Any, y: Any) -> Any:
        if type(x) is int:
            x, y = y, x
        if type(x) is int:
            return x + y
        if type(y) is int:
            if y == 0:
                return x
            if parts := self._parts(x, "subtract"):
                return self.subtract(self.add(parts[0], y), parts[1])
            if (parts := self._parts(x, "add")) and type(parts[1]) is int:
                return self.add(parts[0], parts[1] + y)
            if (parts := self._parts(x, "larger")) and type(parts[1]) is int:
                return self.larger(self.add(parts[0], y), parts[1] + y)
        elif (found := self._gathered(self.add, "add", x, y)) is not None:
            return found
        elif x.at > y.at:
            x, y = y, x
        found = self._whole("add", (x, y), x.low + operations.low(y), x.high + operations.high(y))
        above = self._above[found.at]
        for one, other in ((x, y), (y, x)):
            if type(one) is Whole:
                for at, least in ((one.at, 0), *self._above[one.at].items()):
                    more = least + operations.low(other)
                    above[at] = max(more, above.get(at, more))
        return found

    def subtract(self, x: Any, y: Any) -> Any:
        if type(y) is int:
            return self.add(x, -y)
        if type(x) is Whole and x.at == y.at:
            return 0
        low, high = operations.low(x) - y.high, operations.high(x) - y.low
        if type(x) is Whole:
            least = self._above[x.at].get(y.at)
            low = low if least is None else max(low, least)
        return self._whole("subtract", (x, y), low, high)

    def multiply(self, x: Any, y: Any) -> Any:
        if type(x) is int:
            x, y = y, x
        if _is(y, 0) or _is(y, 1):
            return x if y else 0
        if (found := self._gathered(self.multiply, "multiply", x, y)) is not None:
            return found
        if type(y) is Whole and x.at > y.at:
            x, y = y, x
        ends = [p * q for p in (x.low, x.high) for q in (operations.low(y), operations.high(y))]
        return self._whole("multiply", (x, y), min(ends), max(ends))

    def shifted_left(self, x: Any, places: Any, high: int | None = None) -> Any:
        if type(places) is int and places == 0:
            return x
        if type(places) is int and (parts := self._parts(x, "multiply")):
            for mine, rest in (parts, parts[::-1]):
                if self._origin(mine) != ANYWHERE:
                    return self.multiply(rest, self.shifted_left(mine, places))
        low, most = operations.low(x), operations.high(x)
        least, top = operations.low(places), operations.high(places)
        _natural(least)
        ends = [v << n for v in (low, most) for n in (least, top)]
        return self._whole("shl", (x, places), min(ends), max(ends) if high is None else high)

    def shifted_right(self, x: Any, places: Any, rounding: str, negative: Any, draw: int) -> Any:
        if operations.high(places) <= 0:
            return x
        _natural(operations.low(places), operations.low(x))
        if draw:
            raise Unrecordable("stochastic rounding draws for each element, which a recording cannot express")
        places = self._of_absent(x, places)
        most, sources = operations.high(x) >> operations.low(places), [x, places]
        if rounding in ("ru", "rd", "rnu", "rnd"):
            sources.append(negative)
        if rounding != "rz":
            most += 1
        return self._whole("shr", sources, 0, most, rounding)

    def _of_absent(self, x: Any, places: Any) -> Any:
        """Return a simpler shift for a product that is 0 where an operand takes no part, where any shift gives 0."""
        distance, factors = self._parts(places, "larger"), self._parts(x, "multiply")
        if not distance or not factors or not _is(distance[1], 0):
            return places
        exponents = self._parts(distance[0], "subtract")
        if not exponents or type(exponents[1]) is not Whole:
            return places
        present, exponent = self._absent.get(exponents[1].at, ((), None))
        if not present or not all(any(self._zero_without(y, p) for y in factors) for p in present):
            return places
        apart = self.subtract(exponents[0], exponent)
        return apart if operations.low(apart) >= 0 else places

    def _zero_without(self, x: Any, present: Any) -> bool:
        """Return whether x is known to be 0 where a condition does not hold."""
        if both := self._parts(present, "both"):
            return all(self._zero_without(x, part) for part in both)
        negated = self._parts(present, "differ")
        zero = self._parts(negated[0], "same") if negated and negated[1] is True else None
        if not zero or not _is(zero[1], 0) or type(x) is not Whole:
            return False
        if x.at == zero[0].at:
            return True
        factors = self._parts(x, "multiply") or (self._parts(x, "shl") or ())[:1]
        return any(self._zero_without(y, present) for y in factors)

    def masked(self, x: Any, mask: int) -> Any:
        _natural(mask)
        if x.low >= 0:
            mask &= (1 << x.high.bit_length()) - 1
            if mask + 1 == 1 << x.high.bit_length():
                return x
        return self._whole("mask", (x, mask), 0, mask)

    def larger(self, x: Any, y: Any) -> Any:
        for one, other in ((x, y), (y, x)):
            if operations.low(one) >= operations.high(other):
                return one
            if type(one) is Whole and type(other) is Whole and self._above[one.at].get(other.at, -1) >= 0:
                return one
        if type(x) is int:
            x, y = y, x
        if (apart := self._without_absent(x, y)) is not None:
            return self.larger(x, apart)
        low, high = max(x.low, operations.low(y)), max(x.high, operations.high(y))
        found = self._whole("larger", (x, y), low, high)
        above = self._above[found.at]
        for one in (x, y):
            if type(one) is Whole:
                for at, least in ((one.at, 0), *self._above[one.at].items()):
                    above[at] = max(least, above.get(at, least))
        return found

    def _without_absent(self, x: Any, y: Any) -> Any:
        """Return a product's exponent y with -FAR in place of operands that take no part, as a sum; None for other y."""
        parts = self._parts(y, "choose")
        if not parts or type(parts[2]) is not int or parts[2] > x.low:
            return None
        present, exponents = self._parts(parts[0], "both"), self._parts(parts[1], "add")
        if not present or not exponents:
            return None
        by_origin = {self._origin(value): value for value in exponents}
        if ANYWHERE in by_origin or {self._origin(value) for value in present} != set(by_origin):
            return None
        if max(map(operations.high, exponents)) - FAR > parts[2] - FAR // 2:
            return None
        exponent = self.add(*(self.select(value, by_origin[self._origin(value)], -FAR) for value in present))
        self._absent[parts[1].at] = present, exponent
        return exponent

    def magnitude(self, x: Any) -> Any:
        if x.low >= 0:
            return x
        return self._whole("magnitude", (x,), 0, max(x.high, -x.low))

    def with_leading_bit(self, x: Any) -> tuple[Any, int, Any]:
        top = max(x.high.bit_length() - 1, 0)
        if top == 0:
            return x, 0, 0
        places = self._whole("places", (x,), 0, top + 1, top)
        return self._whole("shl", (x, places), 0, (1 << top + 1) - 1), top, places

    # -- conditions ------------------------------------------------------------------------------------------------------
    def joint(self, name: str, x: Any, y: Any) -> Any:
        if type(y) is bool:
            if name == "differ":
                if not y:
                    return x
                if (parts := self._parts(x, "differ")) and parts[1] is True:
                    return parts[0]
                if parts := self._parts(x, "either"):
                    return operations.no(parts[0]) & operations.no(parts[1])
                return self._flag("differ", (x, True))
            return (x if y else False) if name == "both" else (True if y else x)
        if x.at == y.at:
            return x if name != "differ" else False
        if name == "either" and (found := self._at_least(x, y)) is not None:
            return found
        if name == "both":
            for one, other in ((x, y), (y, x)):
                parts = self._parts(other, name)
                mixed = self._origin(one) == self._origin(other) == ANYWHERE
                if parts and mixed and ANYWHERE not in map(self._origin, parts):
                    return self.joint(name, self.joint(name, one, parts[0]), parts[1])
            if (found := self._gathered(lambda u, v: self.joint(name, u, v), name, x, y)) is not None:
                return found
        if name == "differ":
            if (parts := self._parts(x, "differ")) and parts[1] is True:
                return operations.no(self.joint(name, parts[0], y))
            if (found := self._gathered(lambda u, v: self.joint("differ", u, v), name, x, y)) is not None:
                return found
        return self._flag(name, (x, y) if x.at < y.at else (y, x))

    def _at_least(self, x: Flag, y: Flag) -> Any:
        """Return t <= v for the conditions t < v and v = t with a constant t; None for other conditions."""
        for one, other in ((x, y), (y, x)):
            less, same = self._parts(one, "less"), self._parts(other, "same")
            if less and same and type(less[0]) is int and _is(same[1], less[0]) and less[1].at == same[0].at:
                return self.less(less[0] - 1, less[1])
        return None

    def less(self, x: Any, y: Any) -> Any:
        if operations.high(x) < operations.low(y):
            return True
        if operations.low(x) >= operations.high(y):
            return False
        if type(x) is Whole and type(y) is Whole and self._above[x.at].get(y.at, -1) >= 0:
            return False
        return self._flag("less", (x, y))

    def same(self, x: Any, y: Any) -> Any:
        if type(x) is int:
            x, y = y, x
        if type(x) is int:
            return x == y
        if x.high < operations.low(y) or operations.high(y) < x.low:
            return False
        if type(y) is Whole and x.at == y.at:
            return True
        if type(y) is int and y == 1 and (parts := self._parts(x, "shr")) and x.high == 1 and type(parts[1]) is int:
            return self.less((1 << parts[1]) - 1, parts[0])
        if type(y) is int and y == 0 and (factors := self._parts(x, "multiply")):
            return self.same(factors[0], 0) | self.same(factors[1], 0)
        return self._flag("same", (x, y))

    def select(self, condition: Flag, x: Any, y: Any) -> Any:
        if isinstance(x, bool | Flag):
            return (x & condition) | (y & operations.no(condition))
        if (parts := self._parts(condition, "differ")) and parts[1] is True:
            return operations.select(parts[0], y, x)
        if type(x) is int and type(y) is int and x == y:
            return x
        if type(x) is Whole and type(y) is Whole and x.at == y.at:
            return x
        if (whole := self._signed(condition, x, y)) is not None:
            return whole
        low = min(operations.low(x), operations.low(y))
        high = max(operations.high(x), operations.high(y))
        return self._whole("choose", (condition, x, y), low, high)

    def _signed(self, condition: Flag, x: Any, y: Any) -> Any:
        """Return t where x is -|t|, y is |t| and the condition is t < 0; None in other cases."""
        below, size, minus = self._parts(condition, "less"), self._parts(y, "magnitude"), self._parts(x, "subtract")
        if not (below and size and minus) or not _is(below[1], 0) or not _is(minus[0], 0):
            return None
        return size[0] if below[0].at == size[0].at and minus[1].at == y.at else None

    def set_apart(self, condition: Flag) -> Any:
        """Take a condition that seldom holds as false in a regular recording, and remember it in `seldom`."""
        if not self.regular:
            return condition
        limit, total = self._parts(condition, "less") or (None, None)
        terms = self._parts(total, "add")
        if type(limit) is int and terms and all(self._origin(x) not in (None, ANYWHERE) for x in terms):
            # A sum of two terms above a limit has a term above half the limit, which is found when that operand is prepared.
            found = [self.less(limit // 2, x) for x in terms]
            if True not in [x for x in found if type(x) is bool]:
                self.seldom |= {x.at for x in found if isinstance(x, Flag)}
                return False
        self.seldom.add(condition.at)
        return False


def _is(x: Any, value: int) -> bool:
    """Return whether x is a constant of that value."""
    return type(x) is int and x == value


def _natural(*least: int) -> None:
    if min(least) < 0:
        raise Unrecordable(
            f"expected a shift of a natural number by a natural number of places, got a value that can be {min(least)}"
        )
