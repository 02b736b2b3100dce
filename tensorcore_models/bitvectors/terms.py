"""This module builds bit-vector terms in a hash-consed graph, simplifies them while building, prints and evaluates them.

A term has a width in bits; width 0 is a truth value. Equal terms are the same object, so that two specifications share their
common subterms, and a difference that simplifies to a constant needs no solver.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Union
from weakref import WeakValueDictionary

BOOL = 0
#: A truth value: a bool if it is known, else a term.
Condition = Union["Term", bool]

_known: "WeakValueDictionary[tuple, Term]" = WeakValueDictionary()
#: Time on the monotonic clock after which no more terms are built.
_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


class OutOfTime(Exception):
    """`OutOfTime` is raised when a term is built after the deadline of :func:`built_before`."""


@contextmanager
def built_before(deadline: float) -> Iterator[None]:
    """Let terms built inside the `with` block after `deadline`, in seconds of the monotonic clock, raise OutOfTime."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


class Term:
    """`Term` is one node: the SMT-LIB name of an operation (or "var", "const"), its indices or value, and its arguments.

    The functions of this module make terms. `width` is in bits, 0 for a truth value.
    """

    __slots__ = ("__weakref__", "args", "op", "params", "width")

    op: str
    args: tuple["Term", ...]
    params: tuple
    width: int

    @property
    def value(self) -> int | None:
        """Return the value of a constant (0 or 1 for a truth value), None for other terms."""
        return self.params[0] if self.op == "const" else None

    def __and__(self, other: "Condition") -> "Condition":
        return truth(both(self, other))

    def __or__(self, other: "Condition") -> "Condition":
        return truth(either(self, other))

    def __xor__(self, other: "Condition") -> "Condition":
        return truth(exclusive(self, condition(other)))

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __repr__(self) -> str:
        return f"Term({self.op}, width={self.width}, params={self.params}, args={len(self.args)})"


def _mask(width: int) -> int:
    return (1 << max(width, 1)) - 1


def _make(op: str, width: int, args: tuple[Term, ...] = (), params: tuple = ()) -> Term:
    if args and all(x.op == "const" for x in args):
        return constant(_OPERATIONS[op](width, params, *(x.params[0] for x in args)), width)
    key = (op, width, params, *map(id, args))  # ids stay valid: the term holds its arguments
    term = _known.get(key)
    if term is None:
        if time.monotonic() > _deadline.get():
            raise OutOfTime
        term = object.__new__(Term)
        term.op, term.args, term.params, term.width = op, args, params, width
        _known[key] = term
    return term


def constant(value: int, width: int) -> Term:
    """Return `value` modulo 2**width as a constant; for a truth value, `value` is 0 or 1."""
    return _make("const", width, (), (value & _mask(width),))


def variable(name: str, width: int) -> Term:
    """Return a free variable; equal names and widths give the same variable."""
    return _make("var", width, (), (name,))


TRUE, FALSE = constant(1, BOOL), constant(0, BOOL)


def signed(value: int, width: int) -> int:
    """Return the two's complement number that `value` encodes."""
    return value - (1 << width) if value >> (width - 1) else value


# -- values of operations ------------------------------------------------------------------------------------------------
def _shifted(width: int, x: int, y: int, right: bool) -> int:
    if y >= width:
        return 0
    return x >> y if right else (x << y) & _mask(width)


_OPERATIONS: dict[str, Callable[..., int]] = {
    "not": lambda w, p, x: 1 - x,
    "and": lambda w, p, x, y: x & y,
    "or": lambda w, p, x, y: x | y,
    "xor": lambda w, p, x, y: x ^ y,
    "=": lambda w, p, x, y: int(x == y),
    "ite": lambda w, p, x, y, z: y if x else z,
    "bvult": lambda w, p, x, y: int(x < y),
    "bvslt": lambda w, p, x, y: int(signed(x, p[0]) < signed(y, p[0])),
    "bvnot": lambda w, p, x: x ^ _mask(w),
    "bvneg": lambda w, p, x: -x,
    "bvand": lambda w, p, x, y: x & y,
    "bvor": lambda w, p, x, y: x | y,
    "bvxor": lambda w, p, x, y: x ^ y,
    "bvadd": lambda w, p, x, y: x + y,
    "bvmul": lambda w, p, x, y: x * y,
    "bvshl": lambda w, p, x, y: _shifted(w, x, y, right=False),
    "bvlshr": lambda w, p, x, y: _shifted(w, x, y, right=True),
    "concat": lambda w, p, x, y: x << p[0] | y,
    "extract": lambda w, p, x: x >> p[1],
    "zero_extend": lambda w, p, x: x,
    "sign_extend": lambda w, p, x: signed(x, w - p[0]),
}


def evaluate(terms: Iterable[Term], values: Mapping[str, int]) -> list[int]:
    """Return the values of `terms`, given the values of all of their variables."""
    terms = list(terms)
    known: dict[Term, int] = {}
    for term in in_order(terms):
        if term.op == "const":
            known[term] = term.params[0]
        elif term.op == "var":
            known[term] = values[term.params[0]] & _mask(term.width)
        else:
            result = _OPERATIONS[term.op](term.width, term.params, *(known[x] for x in term.args))
            known[term] = result & _mask(term.width)
    return [known[term] for term in terms]


def in_order(terms: Iterable[Term]) -> list[Term]:
    """Return all terms below `terms`, each after its arguments."""
    found: dict[Term, None] = {}
    stack = [(term, False) for term in reversed(list(terms))]
    while stack:
        term, ready = stack.pop()
        if term in found:
            continue
        if ready or not term.args:
            found[term] = None
        else:
            stack.append((term, True))
            stack.extend((x, False) for x in term.args)
    return list(found)


# -- truth values --------------------------------------------------------------------------------------------------------
def condition(x: Condition) -> Term:
    """Return a truth value as a term."""
    return x if isinstance(x, Term) else TRUE if x else FALSE


def truth(x: Term) -> Condition:
    """Return a truth value, as a bool where it is known."""
    return bool(x.params[0]) if x.op == "const" else x


def negation(x: Condition) -> Term:
    x = condition(x)
    return x.args[0] if x.op == "not" else _make("not", BOOL, (x,))


def both(*terms: Condition) -> Term:
    """Return the conjunction of truth values."""
    result = TRUE
    for x in map(condition, terms):
        if FALSE in (x, result) or x is negation(result):
            return FALSE
        if x is not TRUE and x is not result:
            result = x if result is TRUE else _make("and", BOOL, (result, x))
    return result


def either(*terms: Condition) -> Term:
    """Return the disjunction of truth values."""
    return negation(both(*map(negation, terms)))


def exclusive(x: Term, y: Term) -> Term:
    if x is y:
        return FALSE
    for left, right in ((x, y), (y, x)):
        if left.op == "const":
            return negation(right) if left is TRUE else right
    return _make("xor", BOOL, (x, y))


def equal(x: Term, y: Term) -> Term:
    if x.width != y.width:
        raise ValueError(f"cannot compare terms of {x.width} and {y.width} bits: extend one to the width of the other")
    if x.width == BOOL:
        return negation(exclusive(x, y))
    return TRUE if x is y else _make("=", BOOL, (x, y))


def choose(holds: Condition, x: Term, y: Term) -> Term:
    """Return `x` where the condition holds, else `y`."""
    holds = condition(holds)
    if holds is TRUE or x is y:
        return x
    if holds is FALSE:
        return y
    if x.width == BOOL:
        return either(both(holds, x), both(negation(holds), y))
    if holds.op == "not":
        return choose(holds.args[0], y, x)
    return _make("ite", x.width, (holds, x, y))


def below(x: Term, y: Term) -> Term:
    """Return whether x < y as unsigned numbers."""
    return FALSE if x is y else _make("bvult", BOOL, (x, y))


def below_signed(x: Term, y: Term) -> Term:
    """Return whether x < y as two's complement numbers."""
    return FALSE if x is y else _make("bvslt", BOOL, (x, y), (x.width,))


# -- bit-vectors ---------------------------------------------------------------------------------------------------------
def extract(x: Term, high: int, low: int) -> Term:
    """Return bits `high` to `low`, both included."""
    if low == 0 and high == x.width - 1:
        return x
    if x.op == "zero_extend":
        inner = x.args[0].width
        if low >= inner:
            return constant(0, high - low + 1)
        if high < inner:
            return extract(x.args[0], high, low)
    return _make("extract", high - low + 1, (x,), (high, low))


def zero_extended(x: Term, width: int) -> Term:
    if width == x.width:
        return x
    if x.op == "zero_extend":
        return zero_extended(x.args[0], width)
    return _make("zero_extend", width, (x,), (width - x.width,))


def sign_extended(x: Term, width: int) -> Term:
    if width == x.width:
        return x
    if x.op == "zero_extend":  # its highest bit is 0
        return zero_extended(x.args[0], width)
    return _make("sign_extend", width, (x,), (width - x.width,))


def joined(high: Term, low: Term) -> Term:
    """Return the concatenation with `high` in the upper bits and `low` in the lower bits."""
    if high.value == 0:
        return zero_extended(low, high.width + low.width)
    return _make("concat", high.width + low.width, (high, low), (low.width,))


def inverted(x: Term) -> Term:
    return _make("bvnot", x.width, (x,))


def negative(x: Term) -> Term:
    return _make("bvneg", x.width, (x,))


def _commuting(op: str, x: Term, y: Term, neutral: int) -> Term:
    if x.value == neutral:
        return y
    if y.value == neutral:
        return x
    if x.op == "const":
        x, y = y, x
    return _make(op, x.width, (x, y))


def added(x: Term, y: Term) -> Term:
    return _commuting("bvadd", x, y, 0)


def multiplied(x: Term, y: Term) -> Term:
    return constant(0, x.width) if 0 in (x.value, y.value) else _commuting("bvmul", x, y, 1)


def bits_and(x: Term, y: Term) -> Term:
    return constant(0, x.width) if 0 in (x.value, y.value) else _commuting("bvand", x, y, _mask(x.width))


def bits_or(x: Term, y: Term) -> Term:
    return _commuting("bvor", x, y, 0)


def bits_xor(x: Term, y: Term) -> Term:
    return _commuting("bvxor", x, y, 0)


def shifted_left(x: Term, y: Term) -> Term:
    """Return x << y; 0 where y is at least the width."""
    return x if 0 in (x.value, y.value) else _make("bvshl", x.width, (x, y))


def shifted_right(x: Term, y: Term) -> Term:
    """Return x >> y, unsigned; 0 where y is at least the width."""
    return x if 0 in (x.value, y.value) else _make("bvlshr", x.width, (x, y))


def any_bit(x: Term) -> Term:
    """Return whether any bit of x is 1."""
    return negation(equal(x, constant(0, x.width)))


def bit(x: Term, index: int) -> Term:
    """Return whether bit `index` of x is 1."""
    return equal(extract(x, index, index), constant(1, 1))


# -- SMT-LIB -------------------------------------------------------------------------------------------------------------
def _sort(width: int) -> str:
    return f"(_ BitVec {width})" if width else "Bool"


def _expression(term: Term, names: Mapping[Term, str]) -> str:
    if term.op == "const":
        return f"#b{term.params[0]:0{term.width}b}" if term.width else ("true" if term.params[0] else "false")
    op = term.op
    if op == "extract":
        op = f"(_ extract {term.params[0]} {term.params[1]})"
    elif op in ("zero_extend", "sign_extend"):
        op = f"(_ {op} {term.params[0]})"
    return f"({op} {' '.join(names[x] for x in term.args)})"


def smtlib(assertions: Iterable[Term], wanted: Iterable[Term] = ()) -> str:
    """Return an SMT-LIB 2 script (QF_BV) that asks whether all assertions can hold, and for the values of `wanted`."""
    assertions, wanted = list(assertions), list(wanted)
    names: dict[Term, str] = {}
    lines = ["(set-logic QF_BV)", "(set-option :produce-models true)"]
    for term in in_order([*assertions, *wanted]):
        if term.op == "var":
            names[term] = f"|{term.params[0]}|"
            lines.append(f"(declare-const {names[term]} {_sort(term.width)})")
        elif term.op == "const":
            names[term] = _expression(term, names)
        else:
            names[term] = f"t{len(names)}"
            lines.append(f"(define-fun {names[term]} () {_sort(term.width)} {_expression(term, names)})")
    lines += [f"(assert {names[x]})" for x in assertions]
    lines.append("(check-sat)")
    if wanted:
        lines.append(f"(get-value ({' '.join(names[x] for x in wanted)}))")
    return "\n".join(lines) + "\n"
