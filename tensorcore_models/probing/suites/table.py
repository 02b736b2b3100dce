"""Runs a suite against an engine and reads its verdicts."""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ...accumulators import Accumulator, as_parametric
from ...engines.engine import Engine
from ...formats import IntegerFormat
from ..dots import Dots, Unreachable
from .model import Input, PublishedTest, Setting, Truth
from .rows import SUITES

#: Verdict of a test that the formats or the length cannot express.
NOT_EXPRESSIBLE = "the formats cannot express it"


@dataclass(frozen=True)
class Row:
    """One test's outcome.

    Attributes
    ----------
    name, feature, source : str
        The test.
    evidence : tuple of str
        The results as hexadecimal numbers, "not finite" for infinities and NaN.
    verdict : str
        What the test makes of them.
    """

    name: str
    feature: str
    source: str
    evidence: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class Table:
    """A suite's outcome on one engine, as the papers print it."""

    suite: str
    engine: str
    rows: tuple[Row, ...]

    def __getitem__(self, name: str) -> Row:
        """The row of a test by its name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{self.suite} has no test {name!r}: {', '.join(row.name for row in self.rows)}")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        shown = [(row.name, row.feature, _short(row.evidence), row.verdict) for row in self.rows]
        widths = [max(len(line[i]) for line in shown) for i in range(3)]
        lines = ["  ".join([*(t.ljust(w) for t, w in zip(line, widths, strict=False)), line[3]]) for line in shown]
        return "\n".join([f"{self.suite} on {self.engine}", *lines])


def _short(evidence: tuple[str, ...]) -> str:
    text = " ".join(evidence[:4])
    return text if len(evidence) <= 4 else f"{text} ... ({len(evidence)})"


def _results(dots: Dots, inputs: list[Input]) -> list[Fraction | None]:
    """Results of dot products, each at a scale at which the formats have its addends.

    Raises
    ------
    Unreachable
        If there is none.
    """
    found: list[Fraction | None] = []
    for case in inputs:
        if case.scaled:
            addends = [p if isinstance(p, Fraction) else p[0] * p[1] for p in case.products.values()] + [case.c]
            smallest = min(abs(x) for x in addends if x)
            value = dots.run_any_scale(case.products, case.c, _visible(smallest))
            if value is None:  # no test is about overflow: at no scale does the range hold its numbers
                raise Unreachable("a result beyond the largest number")
            found.append(value)
        else:
            found.append(dots.run(case.products, case.c))
    return found


def _visible(smallest: Fraction) -> Fraction:
    """The lowest bit of the smallest addend: the result's format must reach so far down."""
    return Fraction(1, smallest.denominator)


def run(name: str, engine: Engine) -> Table:
    """Run a published suite against an engine.

    Parameters
    ----------
    name : str
        One of :data:`SUITES`.
    engine : Engine
        Any engine; dot products of two of its k steps are asked.

    Returns
    -------
    Table

    Raises
    ------
    ValueError
        If there is no such suite, or the engine multiplies integers.
    """
    if name not in SUITES:
        raise ValueError(f"there is no suite {name!r}: {', '.join(SUITES)}")
    if any(isinstance(f, IntegerFormat) for f in engine.formats):
        raise ValueError(f"{engine.label} multiplies integers; the suites are for floating-point engines")
    dots = Dots(engine, 2 * engine.k)
    rows: list[Row] = []
    for test in SUITES[name]:
        setting = _setting(engine, dots.length, rows)
        rows.append(_row(test, setting, dots))
    return Table(name, engine.label, tuple(rows))


def _setting(engine: Engine, length: int, rows: list[Row]) -> Setting:
    a, b, _, d = engine.formats
    found = {row.name: row.verdict for row in rows if row.verdict != NOT_EXPRESSIBLE}
    return Setting(d.precision, min(a.precision, b.precision), length, d.name, found)


def _row(test: PublishedTest, setting: Setting, dots: Dots) -> Row:
    try:
        if test.needs > setting.length:
            raise Unreachable(f"{test.needs} products")
        results = _results(dots, list(test.inputs(setting)))
    except Unreachable:
        return Row(test.name, test.feature, test.source, (), NOT_EXPRESSIBLE)
    evidence = tuple("not finite" if r is None else float(r).hex() for r in results)
    return Row(test.name, test.feature, test.source, evidence, test.verdict(setting, results))


def truth_of(spec: Accumulator, result_precision: int) -> Truth | None:
    """The parameters of a fused unit that the suites ask for, None for other units.

    Parameters
    ----------
    spec : Accumulator
    result_precision : int
        P.
    """
    try:
        unit = as_parametric(spec)
    except TypeError:
        return None
    plain = unit.alignment == "global" and not (unit.normalise_each_add or unit.sticky or unit.flush_inputs)
    if unit.fraction_bits is None or unit.c_position != "early" or not plain or unit.output_fraction_bits is not None:
        return None
    extra = unit.fraction_bits - (result_precision - 1)
    return Truth(extra, unit.terms, unit.output_rounding, unit.alignment_rounding, unit.normalised_products)


def misread(name: str, engine: Any) -> list[tuple[Row, str]]:
    """Tests of a suite whose verdict contradicts a modelled unit's specification, with the verdict that it deserves.

    Parameters
    ----------
    name : str
        The suite.
    engine : MatrixEngine
        A fused unit with one alignment.

    Raises
    ------
    ValueError
        If the unit is no such one.
    """
    a, b, _, d = engine.formats
    truth = truth_of(engine.accumulator, d.precision)
    if truth is None:
        raise ValueError(
            f"{engine.label} is no fused unit with one alignment, so the tests' features do not describe it"
        )
    table = run(name, engine)
    setting = Setting(d.precision, min(a.precision, b.precision), 2 * engine.k, d.name, {})
    pairs = zip(table.rows, SUITES[name], strict=True)
    return [
        (row, test.expected(setting, truth))
        for row, test in pairs
        if row.verdict not in (NOT_EXPRESSIBLE, test.expected(setting, truth))
    ]
