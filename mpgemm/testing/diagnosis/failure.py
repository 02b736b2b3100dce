"""Failing elements of a kernel's result, and how near a prediction of them is."""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mpgemm.testing.case import KernelTolerance
from tensorcore_models.formats import Format, get_format

#: Elements that are looked at, spread over all of them.
SAMPLES = 256
#: Rows and columns at most on which the engine's own errors are measured.
SIDE = 64
#: Rows and columns of a cell, share of failing elements from which a cell is wrong, and share of wrong cells
#: from which all are.
CELL, DENSE, SURE = 8, 0.1, 0.95
#: Products that are looked at, about.
LOOKED_AT = 1 << 21


class Finding(NamedTuple):
    """A statement, its distance over a right kernel's errors (rms) and over the bound (largest), and the numbers chosen
    to fit."""

    fit: float
    units: float
    text: str
    free: int = 0


@dataclass(frozen=True)
class Failure:
    """Failing elements with what is needed to explain them."""

    tolerance: KernelTolerance
    #: out, exact, bound: float64, shape (m, n).
    out: np.ndarray
    exact: np.ndarray
    bound: np.ndarray
    #: float64, shape (m, n): the errors that a right kernel has, about (root mean square).
    typical: np.ndarray
    wrong: np.ndarray  #: bool, shape (m, n): the failing elements.
    #: rows, columns: The failing elements that are looked at.
    rows: np.ndarray
    columns: np.ndarray
    share: float = 0.0  #: What a right kernel's results of one sign lose, over themselves.
    unit: float = 0.0  #: What the rounding to a narrower output format loses, over the result.

    @property
    def got(self) -> np.ndarray:
        """The kernel's values of these elements."""
        return self.out[self.rows, self.columns]

    @property
    def true(self) -> np.ndarray:
        """What a right kernel gives there, about: the exact values less what its unit loses of all of them."""
        return (1 + self.share) * self.exact[self.rows, self.columns]

    @property
    def added(self) -> np.ndarray | float:
        """C of these elements, 0 without."""
        return 0.0 if self.tolerance.c is None else self.tolerance.c[self.rows, self.columns]

    @property
    def allowed(self) -> np.ndarray:
        """Their bounds."""
        return self.bound[self.rows, self.columns]

    @property
    def usual(self) -> np.ndarray:
        """The errors that a right kernel has there."""
        return self.typical[self.rows, self.columns]

    def finding(self, prediction: np.ndarray, text: str, slack: float | np.ndarray = 1.0) -> Finding:
        """How near a prediction is; `slack` times as far may its errors be."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            distance = np.abs(self.got - prediction)
            distance = np.where(np.isnan(self.got) & np.isnan(prediction), 0.0, distance)
            rounding = self.unit * np.abs(prediction)  # what is predicted is rounded, too, and may be larger
            units = np.where(distance == 0, 0.0, distance / (slack * self.allowed + rounding))
            fits = np.where(distance == 0, 0.0, distance / np.hypot(slack * self.usual, rounding / math.sqrt(3)))
            fit = float(np.sqrt(np.mean(np.square(fits))))
        largest = float(np.max(np.where(np.isnan(units), np.inf, units)))
        return Finding(fit if math.isfinite(fit) else math.inf, largest, text)

    def products(self) -> np.ndarray:
        """Products of these elements along k, shape (elements, k)."""
        return self.tolerance.a[self.rows] * self.tolerance.b[:, self.columns].T

    def moved(self, rows: np.ndarray | None = None, columns: np.ndarray | None = None) -> "Failure":
        """The same with other rows or columns."""
        return replace(
            self, rows=self.rows if rows is None else rows, columns=self.columns if columns is None else columns
        )

    def everywhere(self) -> "Failure":
        """The same with right elements, too, where failing ones are all over the result: the largest errors alone would
        mislead."""
        m, n = self.wrong.shape
        rows, columns = (CELL, CELL) if min(m, n) >= CELL else (m, CELL * CELL) if m < n else (CELL * CELL, n)
        by_rows = np.add.reduceat(self.wrong.astype(float), np.arange(0, m, rows), 0)
        counts = np.add.reduceat(by_rows, np.arange(0, n, columns), 1)
        sizes = np.outer(*(np.diff(np.append(np.arange(0, x, y), x)) for x, y in ((m, rows), (n, columns))))
        if np.mean(counts >= DENSE * sizes) < SURE:
            return self
        most = min(4 * SAMPLES, max(SAMPLES, LOOKED_AT // max(1, self.tolerance.a.shape[1])))
        return self._of(np.isfinite(self.bound), most)

    def anywhere(self) -> "Failure":
        """The same with elements from everywhere, failing or not."""
        return self._of(np.ones(self.exact.shape, bool), SAMPLES)

    def more(self, most: int) -> "Failure":
        """The same with up to `most` of the failing elements."""
        return self._of(self.wrong, most)

    def _of(self, where: np.ndarray, most: int) -> "Failure":
        rows, columns = spread(where, most)
        return replace(self, rows=rows, columns=columns)


def spread(where: np.ndarray, most: int = SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of at most `most` of the elements that are marked: half of them evenly spread, the others at random."""
    places = np.flatnonzero(where)
    if places.size > most:
        even = places[np.linspace(0, places.size - 1, most // 2).astype(int)]
        others = np.random.default_rng(0).choice(places, most // 2, replace=False)
        places = np.unique(np.concatenate([even, others]))
    rows, columns = np.divmod(places, where.shape[1])
    return rows, columns


def failure_of(out: np.ndarray, tolerance: KernelTolerance, wrong: np.ndarray) -> Failure:
    """What is needed to explain elements that fail."""
    exact = tolerance.values
    rows, columns = spread(wrong)
    at = np.unique(rows)[:SIDE], np.unique(columns)[:SIDE]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sizes = np.abs(tolerance.a) @ np.abs(tolerance.b)
        sizes = sizes if tolerance.c is None else sizes + np.abs(tolerance.c)
        right, true = tolerance.model(*at)[0], exact[np.ix_(*at)]
        lost = _lost_share(right - true, true)
        error = (right - (1 + lost) * true) / sizes[np.ix_(*at)]
        error = error[np.isfinite(error)]
        share = math.sqrt(float(np.mean(np.square(error)))) if error.size else 0.0
        fmt = get_format(tolerance.out_format)
        unit = fmt.unit_roundoff if isinstance(fmt, Format) and fmt.fraction_bits < 23 else 0.0
        typical = np.hypot(max(share, 2.0**-26) * sizes, unit / math.sqrt(3) * np.abs(exact))
    return Failure(tolerance, out, exact, tolerance.finite_bound, typical, wrong, rows, columns, lost, unit)


def _lost_share(error: np.ndarray, exact: np.ndarray) -> float:
    """What results lose of themselves: units that cut lose it of every sum of one sign."""
    known = np.isfinite(error) & np.isfinite(exact)
    squares = float(np.sum(np.square(exact[known])))
    return float(np.sum(error[known] * exact[known])) / squares if squares > 0 else 0.0
