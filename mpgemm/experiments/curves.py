"""Computes errors of methods, with their spread, as curves against k, the operands' exponent, or the product's condition.

Against the condition, errors are relative to the result itself (unless another metric is asked for), so they grow with it.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby

import numpy as np

from mpgemm.exact.errors import RELATIVE_METRICS
from mpgemm.experiments.cases import Case, generated_cases
from mpgemm.experiments.curve_bounds import BoundLine, bound_lines
from mpgemm.experiments.evaluate import Record, evaluate
from mpgemm.experiments.fp64_judging import FP64_ROUNDOFF
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.methods import CubeOptions, build_methods
from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.experiments.recovery_methods import only_pair
from mpgemm.experiments.spread import METHOD, SeedSpread, interval_of
from mpgemm.experiments.standing import FP32_ROUNDOFF, differences_of, middle_of, standing
from mpgemm.inputs.matrices import get_distribution
from mpgemm.recovery.engines import UnsuitableEngine
from mpgemm.reporting.plots import Curve, Panel
from mpgemm.reporting.report import Table


@dataclass(frozen=True)
class Axis:
    """`Axis` is a quantity against which errors are drawn."""

    name: str
    label: str  #: Label of the figure's axis.
    distribution: str  #: Distribution of the operands if none is named.
    parameter: str = ""  #: Parameter of the distribution that varies; empty for k.
    logarithmic: bool = True  #: Whether points are spaced, and drawn, logarithmically.
    lowest: float = 1  #: Smallest allowed value.
    whole: bool = True  #: Whether values are integers.

    def points(self, low: float, high: float, count: int) -> list[float]:
        """Return about `count` values from low to high, including both; raise ValueError if the range is not valid."""
        if not (self.lowest <= low <= high and math.isfinite(high)) or count < 1:
            raise ValueError(
                f"--over {self.name} {low:g} {high:g} with {count} points: expected two numbers of at least "
                f"{self.lowest:g}, the smaller first, and at least 1 point"
            )
        if self.whole and (low != int(low) or high != int(high)):
            raise ValueError(f"--over {self.name} {low:g} {high:g}: expected two integers")
        if self.logarithmic:
            values = low * (high / low) ** (np.arange(count) / max(count - 1, 1))
        else:
            values = low + (high - low) * np.arange(count) / max(count - 1, 1)
        found = [int(round(x)) if self.whole else float(x) for x in values[: max(1, count - 1)]]
        return list(dict.fromkeys([*found, int(high) if self.whole else float(high)] if count > 1 else found))


AXES = {
    axis.name: axis
    for axis in (
        Axis("k", "k", "uniform_symmetric"),
        Axis("exponent", "exponent of the operands", "uniform_symmetric", "exponent", False, -1000),
        Axis("condition", "condition of the product, |A||B| / |AB|", "ill_conditioned", "condition", True, 1, False),
    )
}
#: Methods that others are compared with, by name: label, and floor of the errors. That of the operands' precision comes first.
BASELINES = {"fp32": ("FP32, chains of 256", FP32_ROUNDOFF), "fp64": ("FP64 (NumPy)", FP64_ROUNDOFF)}
#: Labels of the axis for distributions whose parameter has another meaning.
OTHER_LABELS = {"conditioned": "condition number of A"}
#: Default m, k and n.
SHAPE = (16, 1024, 16)


@dataclass(frozen=True)
class CurvePoint:
    """`CurvePoint` holds the median, smallest and largest error of one method over the seeds at one point of the axis."""

    method: str
    label: str
    x: float
    error: float
    low: float
    high: float
    seeds: int
    #: more, interval, status: comparison with a baseline (fp32, or fp64 without it): mean over the seeds of the bits more than
    #: the baseline, ends of its interval (None for too few seeds), and status (:data:`mpgemm.experiments.standing.STATUSES`).
    more: float | None = None
    interval: tuple[float, float] | None = None
    status: str | None = None


def error_curves(
    axis: Axis,
    points: Sequence[float],
    methods: Sequence[str],
    context: Context,
    *,
    distribution: str | None = None,
    shape: tuple[int, int, int] = SHAPE,
    metric: str = "relative_frobenius",
    precision: str = "fp32",
    parameters: dict | None = None,
    bounds: bool = True,
) -> Outcome:
    """Return errors of methods along an axis, as a table, a figure with bands, and data.

    axis: one of :data:`AXES`.
    points: values of the axis.
    methods: methods of `mpgemm evaluate`: METHOD@ENGINE, fp32, fp64, engine:ARCH:INSTRUCTION.
    context: seeds, journal, progress and executor.
    distribution: distribution of the operands, by default that of the axis.
    shape ((m, k, n)): shape of the products; k is ignored if the axis is k.
    metric: one of :data:`mpgemm.exact.errors.RELATIVE_METRICS`.
    precision, parameters: arguments of :func:`mpgemm.experiments.cases.generated_cases`.
    bounds: whether to draw bounds of the errors where they are known (:mod:`mpgemm.experiments.curve_bounds`).
    Raises ValueError if a name is unknown, or the distribution lacks the axis' parameter.
    """
    name = distribution or axis.distribution
    given = dict(parameters or {})
    _check_parameter(axis, name, given)
    m, k, n = shape
    cases: list[Case] = []
    places: dict[str, float] = {}
    for x in points:
        sizes = (m, int(x), n) if axis.name == "k" else (m, k, n)
        values = given if not axis.parameter else {**given, axis.parameter: x}
        found = generated_cases(name, sizes, context.seeds, values, precision)
        places |= {case.label: x for case in found}
        cases += found
    built, left_out = _built(methods)
    records = evaluate(cases, built, context.journal, context.progress, context.executor)
    preferred = sorted(BASELINES, key=lambda name: name != precision)
    baseline = next((method.name for name in preferred for method in built if method.name == name), "")
    found_points = []
    for method in built:
        for x in points:
            mine, others = (
                [r for r in records if r.method == name and places[r.case] == x] for name in (method.name, baseline)
            )
            point = _point(method, x, mine, metric)
            found_points.append(
                point if method.name == baseline or not others else _beside(point, mine, others, metric)
            )
    firsts = [(x, next(case for case in cases if places[case.label] == x)) for x in points]
    lines = bound_lines(built, firsts, metric, axis.name) if bounds else []
    if name in OTHER_LABELS:
        axis = replace(axis, label=OTHER_LABELS[name])
    what = f"{name}, {m} x {'k' if axis.name == 'k' else k} x {n}"
    outcome = _outcome(axis, points, found_points, metric, what, lines)
    remarks = [*outcome.remarks, *(f"Left out: {name}: {reason}" for name, reason in left_out.items())]
    return replace(outcome, data={**outcome.data, "left_out": left_out}, remarks=remarks)


def _check_parameter(axis: Axis, name: str, given: dict) -> None:
    """Check that the distribution has the parameter that the axis varies, and that it is not given."""
    row = get_distribution(name)
    if axis.parameter and axis.parameter not in row.parameters:
        raise ValueError(
            f"distribution {name!r} has no parameter {axis.parameter!r} for --over; take a distribution with this parameter, "
            f"such as {axis.distribution}"
        )
    if axis.parameter in given:
        raise ValueError(
            f"got --param {axis.parameter}, which --over {axis.name} varies; leave --param {axis.parameter} out"
        )


#: Line styles of the first, second, ... recovery method; engines differ in colour.
_STYLES = ("-", "--", "-.", ":")


def _built(names: Sequence[str]) -> tuple[list[GemmMethod], dict[str, str]]:
    """Return the methods, labelled as they were asked for, and the reasons why others are left out.

    A name that stands for several methods leaves their labels unchanged. Raises UnsuitableEngine if no engine runs its method.
    """
    found: dict[str, GemmMethod] = {}
    left_out: dict[str, str] = {}
    for name in names:
        try:
            methods = build_methods([name], CubeOptions())
        except UnsuitableEngine as error:
            left_out[name] = str(error)
            continue
        alone = replace(methods[0], label=_asked_for(name)) if len(methods) == 1 and "@" in name else None
        found |= {method.name: method for method in ([alone] if alone else methods) if method.name not in found}
    if not found:
        raise UnsuitableEngine("; ".join(left_out.values()))
    return list(found.values()), left_out


def _asked_for(name: str) -> str:
    """Return METHOD@ENGINE, with the path of a device where the method chooses it."""
    text = name.removeprefix("recovery:")
    return name if name.startswith("engine:") else f"{text.partition('@')[0]}@{only_pair(text).requested}"


def _point(method: GemmMethod, x: float, records: Sequence[Record], metric: str) -> CurvePoint:
    errors = SeedSpread.of([getattr(record.errors, metric) for record in records])
    return CurvePoint(method.name, method.label, x, errors.median, errors.low, errors.high, errors.seeds)


def _beside(point: CurvePoint, records: Sequence[Record], others: Sequence[Record], metric: str) -> CurvePoint:
    """Return the point with its comparison to the baseline, seed by seed."""
    base = "componentwise" if metric in ("componentwise", "rowwise") else "relative_frobenius"
    errors = records[0].errors
    differences = differences_of(records, others, metric, BASELINES[others[0].method][1])
    more, interval = middle_of(differences)
    exact = all(record.errors.componentwise == 0 for record in records)
    status = standing(more, interval, base, errors.m * errors.n * len(records), exact=exact)
    ends = None if interval is None else (interval.low, interval.high)
    return replace(point, more=more, interval=ends, status=status)


def _remarks(axis: Axis, lines: dict[str, list[CurvePoint]]) -> list[str]:
    """Return one sentence for each method: its status along the axis, and its difference to the baseline at the end."""
    found = []
    for label, line in lines.items():
        if line[0].status is None:
            continue
        parts = []
        for status, members in groupby(line, key=lambda point: point.status):
            ends = [f"{point.x:g}" for point in members]
            parts.append(f"{status} at {axis.name} = {ends[0]}{f' to {ends[-1]}' if len(ends) > 1 else ''}")
        last = line[-1]
        bits = (
            "" if last.more is None else f"; {abs(last.more):.1f} bits {'more' if last.more > 0 else 'less'} at the end"
        )
        ends_of = "" if last.interval is None else f" ({last.interval[0]:.2f} to {last.interval[1]:.2f})"
        found.append(f"{label}: {', '.join(parts)}{bits}{ends_of}.")
    if found:
        name = next(BASELINES[line[0].method][0] for line in lines.values() if line[0].status is None)
        seeds = next(iter(lines.values()))[0].seeds
        how = (
            f"{METHOD} ({seeds}), paired"
            if interval_of([0.0] * seeds)
            else f"{seeds} seed{'s' * (seeds > 1)}, no interval"
        )
        found.insert(0, f"Compared with {name}, in bits of the error shown ({how}):")
    return found


def _outcome(
    axis: Axis, points, found: Sequence[CurvePoint], metric: str, what: str, bounds: Sequence[BoundLine]
) -> Outcome:
    lines: dict[str, list[CurvePoint]] = {}
    for point in found:
        lines.setdefault(point.label, []).append(point)
    seeds = found[0].seeds
    title = f"{what}; {RELATIVE_METRICS[metric]}"
    title += f", median of {seeds} seeds, smallest and largest in brackets" if seeds > 1 else ""
    rows = [[x, *(_cell(line[i]) for line in lines.values())] for i, x in enumerate(points)]
    table = Table(title, [axis.name, *lines], rows)
    looks = _looks(list(lines))
    curves = []
    for label, line in lines.items():
        style, colour, marker = looks[label]
        errors, low, high = zip(*((p.error, p.low, p.high) for p in line), strict=True)
        curves.append(Curve(label, points, errors, style, low, high, colour, marker))
        curves += [
            Curve(line_of.label, points, line_of.values, ":", colour=colour, marker=marker)
            for line_of in bounds
            if line_of.method == line[0].method and line_of.drawn
        ]
    bands = f"; bands: smallest and largest of {seeds} seeds" if seeds > 1 else ""
    panel = Panel(f"{what}{bands}", curves, axis.label, RELATIVE_METRICS[metric], axis.logarithmic, True)
    data = {
        "over": axis.name, "metric": metric, "input": what, "seeds": seeds, "points": [asdict(p) for p in found],
        "bounds": [asdict(line) for line in bounds],
    }  # fmt: skip
    remarks = [*_remarks(axis, lines), *_of_bounds(bounds, lines)]
    return Outcome("curve", [table], data, [panel], 1, remarks)


def _of_bounds(bounds: Sequence[BoundLine], lines: dict[str, list[CurvePoint]]) -> list[str]:
    """Return sentences on the ratio of bounds to errors, and on methods without a bound."""
    found = []
    for bound in bounds:
        line = next(line for line in lines.values() if line[0].method == bound.method)
        pairs = [(value, p.error) for value, p in zip(bound.values, line, strict=True) if value > 0 and p.error > 0]
        label = bound.label if bound.drawn else f"no bound of {line[0].label} is drawn: {bound.reason}"
        above = (
            f": {min(v / e for v, e in pairs):.2g} to {max(v / e for v, e in pairs):.2g} times the error"
            if pairs
            else ""
        )
        found.append(f"{label[0].upper()}{label[1:]}{above}.")
    return found


def _looks(labels: Sequence[str]) -> dict[str, tuple[str, int, int]]:
    """Return the style, colour and marker of each line and its bound.

    With several engines, the method of METHOD@ENGINE gives the style and the marker, and the engine gives the colour.
    """
    parts = {label: label.partition("@") for label in labels}
    methods, engines = ([*dict.fromkeys(part[i] for part in parts.values() if part[1])] for i in (0, 2))
    if len(engines) < 2:
        return {label: ("-", number, number) for number, label in enumerate(labels)}
    others = [label for label in labels if not parts[label][1]]
    return {
        label: (_STYLES[methods.index(method) % len(_STYLES)], engines.index(engine), methods.index(method))
        if at
        else ("-", len(engines) + others.index(label), len(methods) + others.index(label))
        for label, (method, at, engine) in parts.items()
    }


def _cell(point: CurvePoint) -> str:
    spread = f" ({point.low:.1e} to {point.high:.1e})" if point.seeds > 1 else ""
    return f"{point.error:.2e}{spread}"


def points_table(outcome: Outcome) -> Table:
    """Return a table of the points of the curves."""
    return Table.of_rows("", outcome.data["points"])
