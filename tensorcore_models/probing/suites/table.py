"""Runs the published suites, by name, against an engine and reads their verdicts.

All suites are generalised from fp16 operands and fp32 results to any formats. P is the precision of the result, R = P - 1 its
fraction bits, p the smaller precision of the operands. All addends of a test may be scaled by one power of two, so that 8-bit
formats have them. Some published tests misread some units; `valid` tells for which units a test is right, while the sources
claim more.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from ...accumulators import Accumulator
from ...aspects.values import Unreachable, hex_text
from ...engines.engine import Engine
from ...families.base import SumAlgorithm
from ...formats import IntegerFormat
from ..dots import Dots
from .fasi import FASI
from .fttn import FTTN
from .gnft import GNFT
from .hawkeye import HAWKEYE
from .model import Input, PublishedTest, Setting, Truth
from .valpey import VALPEY

SUITES: dict[str, tuple[PublishedTest, ...]] = {
    "fasi": FASI, "gnft": GNFT, "fttn": FTTN, "valpey": VALPEY, "hawkeye": HAWKEYE,
}  # fmt: skip

#: Verdict of a test that the formats or the length cannot express.
NOT_EXPRESSIBLE = "the formats cannot express it"


@dataclass(frozen=True)
class SuiteRow:
    """`SuiteRow` is the outcome of one test: its results in hexadecimal ("not finite" for infinities and NaN), and the
    verdict."""

    name: str
    feature: str
    source: str
    evidence: tuple[str, ...]
    verdict: str


@dataclass(frozen=True)
class SuiteTable:
    """`SuiteTable` is a suite's outcome on one engine, as the papers print it."""

    suite: str
    engine: str
    rows: tuple[SuiteRow, ...]

    def __getitem__(self, name: str) -> SuiteRow:
        """Return the row of a test by its name."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(f"{self.suite} has no test {name!r}: {', '.join(row.name for row in self.rows)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the content as plain data for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        shown = [(row.name, row.feature, _short(row.evidence), row.verdict) for row in self.rows]
        widths = [max(len(line[i]) for line in shown) for i in range(3)]
        lines = ["  ".join([*(t.ljust(w) for t, w in zip(line, widths, strict=False)), line[3]]) for line in shown]
        return "\n".join([f"{self.suite} on {self.engine}", *lines])


def _short(evidence: tuple[str, ...]) -> str:
    text = " ".join(evidence[:4])
    return text if len(evidence) <= 4 else f"{text} ... ({len(evidence)})"


def _results(dots: Dots, inputs: Sequence[Input], ladder: bool) -> list[Fraction | None]:
    """Return results of dot products at scales at which the formats have the addends, else raise Unreachable.

    A ladder may end early.
    """
    encoded: list[tuple[int, tuple]] = []
    for case in inputs:
        try:
            encoded.append(_encoded(dots, case))
        except Unreachable:
            if not (ladder and encoded):
                raise
            break
    if not encoded:
        return []
    found = dots.run_many([operands for _, operands in encoded])
    results = [dots.value(int(bits), scale) for bits, (scale, _) in zip(found, encoded, strict=True)]
    # No scaled test is about overflow: at no scale does the range hold its numbers.
    if any(value is None and case.scaled for value, case in zip(results, inputs, strict=False)):
        raise Unreachable("a result is beyond the largest number")
    return results


def _encoded(dots: Dots, case: Input) -> tuple[int, tuple]:
    """Return the scale nearest to 1 at which the formats have the addends and the result their lowest bit, and the
    encodings."""
    if not case.scaled:
        return 0, dots.operands(case.products, case.c, 0)
    addends = {p if isinstance(p, Fraction) else p[0] * p[1] for p in case.products.values()} | {case.c}
    smallest = min(abs(x) for x in addends if x)
    return dots.operands_at_any_scale(case.products, case.c, Fraction(1, smallest.denominator))


def run(name: str, engine: Engine) -> SuiteTable:
    """Run a published suite against an engine.

    Parameters
    ----------
    name : str
        Name of a suite, one of :data:`SUITES`.
    engine : Engine
        Any engine; it is asked dot products of two of its k steps.

    Raises
    ------
    ValueError
        If the suite is unknown, or the engine multiplies integers.
    """
    if name not in SUITES:
        raise ValueError(f"unknown suite {name!r}; known: {', '.join(SUITES)}")
    if any(isinstance(f, IntegerFormat) for f in engine.formats):
        raise ValueError(f"{engine.label} multiplies integers, but the suites are for floating-point engines")
    dots = Dots(engine, 2 * engine.k)
    rows: list[SuiteRow] = []
    for test in SUITES[name]:
        setting = _setting(engine, dots.length, rows)
        rows.append(_row(test, setting, dots))
    return SuiteTable(name, engine.label, tuple(rows))


def _setting(engine: Engine, length: int, rows: list[SuiteRow]) -> Setting:
    return Setting(engine.formats, length, {row.name: row.verdict for row in rows if row.verdict != NOT_EXPRESSIBLE})


def _row(test: PublishedTest, setting: Setting, dots: Dots) -> SuiteRow:
    try:
        if test.needs > setting.length:
            raise Unreachable(f"the test needs {test.needs} products")
        results = _results(dots, test.inputs(setting), test.ladder)
    except Unreachable:
        return SuiteRow(test.name, test.feature, test.source, (), NOT_EXPRESSIBLE)
    evidence = tuple("not finite" if r is None else hex_text(r) for r in results)
    return SuiteRow(test.name, test.feature, test.source, evidence, test.verdict(setting, results))


def truth_of(spec: Accumulator, result_precision: int) -> Truth | None:
    """Return the parameters of a fused unit that the suites ask for, None for other units."""
    unit = spec.parametric()
    if unit is None:
        return None
    flushes = unit.flush_inputs or unit.flush_outputs
    one_alignment = (
        unit.alignment == "global" and unit.c_position == "early" and unit.zero_c == unit.zero_operand == "skip"
    )
    if unit.fraction_bits is None or unit.integer_bits is not None or not one_alignment:
        return None
    if unit.normalise_each_add or unit.sticky or flushes:
        return None
    kept = result_precision - 1
    return Truth(
        extra=unit.fraction_bits - kept,
        terms=unit.terms,
        rounding=unit.output_rounding,
        alignment=unit.alignment_rounding,
        normalised=unit.normalised_products,
        result_bits=kept if unit.output_fraction_bits is None else min(kept, unit.output_fraction_bits),
        floor=unit.exponent_floor,
        product_overflow=unit.product_overflow_exponent,
    )


def _truth_of_chain(spec: Accumulator, result_precision: int) -> Truth | None:
    """Return the parameters of a chain of IEEE multiply-adds, which takes one product at a time; None for other units."""
    algorithm, chain = spec.form()
    if algorithm is not SumAlgorithm.FMA_CHAIN or chain.flush_inputs or chain.flush_outputs or chain.saturate:
        return None
    kept = result_precision - 1
    return Truth(2 * result_precision, 1, chain.rounding, "rz", False, kept, None, None)


class Judged(NamedTuple):
    """`Judged` is a test's outcome on a modelled unit, the verdict that its specification deserves, and whether the test is
    valid there.
    """

    row: SuiteRow
    deserved: str
    valid: bool

    @property
    def wrong(self) -> bool:
        """Return whether the test gave another verdict than the unit deserves."""
        return self.row.verdict not in (NOT_EXPRESSIBLE, self.deserved)


def judged(name: str, engine: Any) -> list[Judged]:
    """Return a suite on a fused unit with one alignment, each verdict beside the one that the unit's specification deserves.

    Fasi's tests are also judged on chains of multiply-adds such as FP64 tensor cores, which the paper does not cover.

    Raises
    ------
    ValueError
        If the unit is neither fused with one alignment nor, for Fasi's tests, such a chain.
    """
    spec, precision = engine.accumulator, engine.formats[3].precision
    truth = truth_of(spec, precision) or (_truth_of_chain(spec, precision) if name == "fasi" else None)
    if truth is None:
        raise ValueError(
            f"{engine.label} is not a fused unit with a single alignment, which the suite needs: take another suite"
        )
    table = run(name, engine)
    setting = _setting(engine, 2 * engine.k, list(table.rows))
    return [
        Judged(row, test.expected(setting, truth), test.holds(setting, truth))
        for row, test in zip(table.rows, SUITES[name], strict=True)
    ]


def misread(name: str, engine: Any) -> list[tuple[SuiteRow, str]]:
    """Return the tests of :func:`judged` whose verdict contradicts a modelled specification, with the verdict that it
    deserves."""
    return [(x.row, x.deserved) for x in judged(name, engine) if x.wrong]
