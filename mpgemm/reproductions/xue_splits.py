"""Computes figure 2 of Xue et al. (arXiv:2507.23387v4): the loss by splitting into two fp16 words, against the exponent.

Each figure shows the paper's formula and counts over all 2^23 fractions of an exponent, for words rounded to nearest and, for
comparison as in the paper, toward zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.tasks import Task, results_of
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table
from tensorcore_models.formats.split_analysis import (
    bits_retained,
    bits_retained_formula,
    count_residuals,
    underflow_probability,
)

_ROUNDINGS = {"rne": "rounding to nearest", "rz": "rounding toward zero"}


@dataclass(frozen=True)
class SplitCurve:
    """`SplitCurve` is one curve; its `kind` is "formula" (from the paper) or "counted" (here)."""

    label: str
    kind: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class SplitFigure:
    """`SplitFigure` holds the data of a figure, one value of every curve for each exponent."""

    name: str
    title: str
    y_label: str
    exponents: tuple[int, ...]
    curves: tuple[SplitCurve, ...]

    to_dict = asdict

    def outcome(self, stem: str) -> Outcome:
        """Return the figure as a table and a picture; `stem` is the stem of the files' names."""
        rows = [[e, *(curve.values[i] for curve in self.curves)] for i, e in enumerate(self.exponents)]
        table = Table(f"Figure {self.name}: {self.title}", ["exponent", *(curve.label for curve in self.curves)], rows)
        lines = [Curve(c.label, self.exponents, c.values, "-" if c.kind == "formula" else ":") for c in self.curves]
        panel = Panel(self.title, lines, "exponent of the number", self.y_label, log_x=False, log_y=False)
        return Outcome(stem, [table], {"figure": self.to_dict()}, [panel], 1)


#: Exponents of the number that is split, by figure; fig. 2(b) has fewer points where its curves are flat.
SPLIT_FIGURES: dict[str, tuple[int, ...]] = {
    "2a": tuple(range(-15, 3)),
    "2b": (-36, -32, -28, -25, -24, -20, -16, -14, -12, -8, -4, -3, -2, 0, 4, 8, 12, 14, 15, 16, 17),
}


def split_figure(
    name: str,
    exponents: Sequence[int] | None = None,
    context: Context | None = None,
) -> SplitFigure:
    """Return one of :data:`SPLIT_FIGURES`: "2a" (probability of underflow of the low word) or "2b" (bits kept)."""
    if name not in SPLIT_FIGURES:
        raise ValueError(f"unknown figure {name!r}; known: {', '.join(SPLIT_FIGURES)}")
    chosen = SPLIT_FIGURES[name] if exponents is None else tuple(exponents)
    counter = _Counter(context or Context())
    if name == "2a":
        return SplitFigure(
            "2a", "Underflow of the low word without scaling", "probability", chosen, _underflow_curves(chosen, counter)
        )
    return SplitFigure("2b", "Fraction bits that two fp16 words keep", "bits", chosen, _bits_curves(chosen, counter))


def figure(context: Context, name: str) -> Outcome:
    """Return one figure as a table and a picture."""
    return split_figure(name, context=context).outcome(f"xue{name}")


class _Counter:
    """`_Counter` runs counts, and takes finished counts from the journal."""

    def __init__(self, context: Context):
        self.context = context

    def run(self, what: Callable, arguments: Sequence[tuple[int, int, str]]) -> list[dict]:
        tasks = [
            Task(
                f"exponent {exponent}, s_b = {scale}, {rounding}",
                {"count": what.__name__, "arguments": [exponent, scale, rounding]},
                partial(_counted, what, exponent, scale, rounding),
            )
            for exponent, scale, rounding in arguments
        ]
        return results_of(tasks, self.context.journal, self.context.progress, self.context.executor)


def _counted(what: Callable, *arguments) -> dict:
    return asdict(what(*arguments))


def _underflow_curves(exponents: tuple[int, ...], counter: _Counter) -> tuple[SplitCurve, ...]:
    counted = {r: counter.run(count_residuals, [(e, 0, r) for e in exponents]) for r in _ROUNDINGS}

    def share(rounding: str, event: str) -> tuple[float, ...]:
        return tuple(row[event] / row["total"] for row in counted[rounding])

    return (
        SplitCurve("P(u+gu), eq. 5", "formula", tuple(underflow_probability(e, gradual=True) for e in exponents)),
        SplitCurve("P(u), eq. 5", "formula", tuple(underflow_probability(e) for e in exponents)),
        SplitCurve("paper's event u+gu counted", "counted", share("rne", "underflow_or_gradual")),
        SplitCurve("paper's event u counted", "counted", share("rne", "underflow")),
        SplitCurve("really flushed to 0, to nearest", "counted", share("rne", "flushed")),
        SplitCurve("really flushed to 0, toward zero", "counted", share("rz", "flushed")),
    )


def _bits_curves(exponents: tuple[int, ...], counter: _Counter) -> tuple[SplitCurve, ...]:
    curves = [
        SplitCurve(f"eq. 6, s_b = {s}", "formula", tuple(float(bits_retained_formula(e, s)) for e in exponents))
        for s in (0, 12)
    ]
    for rounding, words in _ROUNDINGS.items():
        for s in (0, 12):
            rows = counter.run(bits_retained, [(e, s, rounding) for e in exponents])
            curves.append(SplitCurve(f"worst, {words}, s_b = {s}", "counted", tuple(row["worst"] for row in rows)))
    return tuple(curves)
