"""Computes bounds to draw in error curves, probabilistic where known, otherwise certain, and says why a line stops."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mpgemm.bounds.probabilistic import PROBABILITY
from mpgemm.exact.errors import ErrorMeter
from mpgemm.experiments.cases import Case
from mpgemm.experiments.gemm_method import GemmMethod


@dataclass(frozen=True)
class BoundLine:
    """`BoundLine` is the bound of one method along the axis, on the first seed of each point."""

    method: str
    label: str  #: Label with the kind of bound and the reason why the line stops.
    values: tuple[float, ...]  #: Values of the bound, NaN from the point where the line stops.
    reason: str  #: Reason why the line stops or is missing; empty for a whole line.

    @property
    def drawn(self) -> bool:
        """Return whether the line has at least one value."""
        return not all(map(math.isnan, self.values))


def bound_lines(
    methods: Sequence[GemmMethod], places: Sequence[tuple[float, Case]], metric: str, axis: str
) -> list[BoundLine]:
    """Return a line for each method.

    places: points of the axis with the case of each point.
    metric: one of :data:`mpgemm.exact.errors.RELATIVE_METRICS`, computed for a product whose errors equal its bound everywhere.
    """
    found: dict[str, tuple[list[float], str, str]] = {method.name: ([], "", "") for method in methods}
    for x, case in places:
        a, b, _ = case.operands()
        meter = ErrorMeter(a, b)
        for method in methods:
            values, kind, reason = found[method.name]
            if reason:
                values.append(math.nan)
                continue
            bound, kind, reason = bound_of(method, a, b)
            value = math.nan if bound is None else meter.relative_metrics(bound)[metric]
            if value == math.inf:
                reason = f"stops at {axis} = {x:g} because a sum may overflow"
            elif value >= 1:
                reason = f"stops at {axis} = {x:g} because no digit is certain"
            values.append(math.nan if reason else value)
            found[method.name] = values, kind or found[method.name][1], reason
    lines = []
    for method in methods:
        values, kind, reason = found[method.name]
        label = f"bound ({kind}) of {method.label}" + (f", {reason}" if reason else "")
        lines.append(BoundLine(method.name, label, tuple(values), reason))
    return lines


def bound_of(method: GemmMethod, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray | None, str, str]:
    """Return (bound of each element or None, kind of bound, reason why there is none)."""
    kinds: tuple[tuple[str, Callable | None], ...] = (
        (f"{PROBABILITY:.0%}", method.likely_bound), ("certain", method.certain_bound or method.bound_by_norms),
    )  # fmt: skip
    reason = "no bound is known for it"
    for kind, bound in kinds:
        if bound is None:
            continue
        try:
            return bound(a, b), kind, ""
        except ValueError as error:
            reason = str(error)
    return None, "", reason
