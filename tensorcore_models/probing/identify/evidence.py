"""Collects the evidence for a specification: the answers that exclude other values of its fields, and the values that
remain."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from ...accumulators import Accumulator
from ...aspects.values import decode_value, hex_text
from ...formats import Format
from ..interface import Dot, Interface
from .challenge import POOL, QUIET, Alternative
from .fields import Family
from .search import Log
from .solver import PROVED


def number_text(bits: int, fmt: Any) -> str:
    """Return an encoding and its value as text."""
    digits = -(-fmt.bits // 4)
    if not isinstance(fmt, Format):
        return f"{fmt.decode_integer(bits)}"
    value = decode_value(bits, fmt)
    kind = fmt.decode_exact(bits).kind
    shown = kind if value is None else hex_text(value) if value else "0"
    return f"{bits:#0{digits + 2}x} ({'-' if kind == 'inf' and bits & fmt.sign_bit else ''}{shown})"


def dot_text(interface: Interface, dot: Dot) -> str:
    """Return a dot product in one line: its products other than +0 times +0, c, and the block scales."""
    a_format, b_format, c_format, _ = interface.formats
    parts = [
        f"a[{i}] {number_text(int(dot.a[i]), a_format)} * b[{i}] {number_text(int(dot.b[i]), b_format)}"
        for i in dot.live
    ]
    parts.append(f"c {number_text(int(dot.c[()]), c_format)}")
    if dot.scale_a is not None and dot.scale_b is not None:
        parts.append(f"scales {' '.join(f'{int(s):#04x}' for s in (*dot.scale_a, *dot.scale_b))}")
    return "; ".join(parts)


@dataclass(frozen=True)
class Counterexample:
    """`Counterexample` is an input whose answer the nearest specification does not give, or on which the box is faulty.

    All numbers are encodings: `a` and `b` by position in k (all other positions are +0), c, block scales, and the results of
    the box and of the nearest specification (None if the box has no single answer). `text` is the same in one line.
    """

    a: dict[int, int]
    b: dict[int, int]
    c: int
    scale_a: tuple[int, ...]
    scale_b: tuple[int, ...]
    answer: int | None
    nearest: int | None
    text: str

    @classmethod
    def of(cls, interface: Interface, dot: Dot, answer: int | None, nearest: int | None) -> "Counterexample":
        """Return the counter-example of one dot product."""
        d = interface.formats[3]
        text = dot_text(interface, dot)
        if answer is not None and nearest is not None:
            text += f" -> {number_text(answer, d)}, not {number_text(nearest, d)}"
        first, second = (() if s is None else tuple(int(x) for x in s) for s in (dot.scale_a, dot.scale_b))
        a, b = ({int(i): int(x[i]) for i in dot.live} for x in (dot.a, dot.b))
        return cls(a, b, int(dot.c[()]), first, second, answer, nearest, text)


@dataclass(frozen=True)
class Evidence:
    """`Evidence` is one answer of the box to a dot product, with the values of fields that it excludes."""

    query: str
    answer: str
    excluded: dict[str, list[Any]]


@dataclass(frozen=True)
class OpenQuestion:
    """`OpenQuestion` is a field, or two, with several values that give all answers, and the reason: no separating input found,
    or none exists.
    """

    field: str
    value: Any
    alternatives: list[Any]
    reason: str

    def __str__(self) -> str:
        return f"{self.field} = {self.value}: {ranges(self.alternatives)} would do as well; {self.reason}"


def ranges(values: list[Any]) -> str:
    """Return the values as text; consecutive integers become a range."""
    numbers = sorted(v for v in values if isinstance(v, int) and not isinstance(v, bool))
    others = [str(v) for v in values if not isinstance(v, int) or isinstance(v, bool)]
    runs = [[v for _, v in run] for _, run in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0])]
    return ", ".join(others + [str(r[0]) if len(r) == 1 else f"{r[0]} to {r[-1]}" for r in runs])


def _plain(values: tuple) -> Any:
    return values[0] if len(values) == 1 else list(values)


def evidence_of(family: Family, log: Log, spec: Accumulator) -> tuple[Evidence, ...]:
    """Return for each excluded value one query whose answer excludes it: as few queries as possible, the short ones first."""
    order = np.argsort(log.batch.products, kind="stable")
    columns = log.part(order)
    excluded: dict[int, dict[str, list[Any]]] = {}
    used: list[int] = []
    for field, values, other in family.variants(log.interface, spec):
        known = np.array(used, int)
        if known.size and (hits := columns.differs(other, known)).any():
            where = int(known[hits.argmax()])
        else:
            found = _first_difference(columns, other)
            if found is None:
                continue
            where = found
            used.append(where)
        excluded.setdefault(where, {}).setdefault(field.name, []).append(_plain(values))
    fmt = log.interface.formats[3]
    return tuple(
        Evidence(dot_text(log.interface, columns.batch.dot(i)), number_text(int(columns.answers[i]), fmt), excluded[i])
        for i in sorted(excluded)
    )


def _first_difference(log: Log, spec: Accumulator) -> int | None:
    """Return the index of the first query whose answer the specification does not give."""
    for start in range(0, log.size, 400):
        apart = np.flatnonzero(log.differs(spec, slice(start, start + 400)))
        if apart.size:
            return start + int(apart[0])
    return None


def open_questions(
    log: Log,
    spec: Accumulator,
    rivals: list[Alternative],
    statement: Callable[[Accumulator, Accumulator], str] = lambda one, other: "",
) -> tuple[OpenQuestion, ...]:
    """Return one question for each field and reason; `statement` gives the sources' statement about two specifications."""
    tried = f"equal on {POOL * QUIET} inputs of all kinds and magnitudes for {log.interface}"

    def reason(rival: Alternative) -> str:
        said = statement(spec, rival.spec)
        return said if said.startswith(PROVED) else "; ".join(filter(None, (tried, said)))

    found = _questions(spec, [(rival, reason(rival)) for rival in rivals if not rival.equal])
    if log.any_nan:
        said = "the encodings of NaN follow none of the rules; any two NaN count as equal"
        found.append(OpenQuestion("nan", "any", [], said))
    return tuple(found)


def equal_values(spec: Accumulator, rivals: list[Alternative]) -> tuple[OpenQuestion, ...]:
    """Return the values that give the same result on every input of these formats, with the reason."""
    return tuple(_questions(spec, [(rival, rival.equal) for rival in rivals if rival.equal]))


def _questions(spec: Accumulator, reasons: list[tuple[Alternative, str]]) -> list[OpenQuestion]:
    """Return the rivals, grouped by field (or pair of fields) and reason."""
    groups: dict[tuple, list[Any]] = {}
    for rival, reason in reasons:
        present = _plain(tuple(value for field in rival.fields for value in field.get(spec)))
        groups.setdefault((rival.name, repr(present), reason), [present]).append(_plain(rival.values))
    return [OpenQuestion(name, present, others, why) for (name, _, why), (present, *others) in groups.items()]
