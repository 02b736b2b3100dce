"""This module holds a result's wrong elements, and rates how well a prediction explains them and the right ones beside them."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.case import KernelCase
from mpgemm.testing.diagnosis.places import Place, place_of
from tensorcore_models.formats import Format, get_format

#: Beginning of the statement that no fault explains a result.
NO_FAULT = "no known fault"
#: Number of wrong elements that are used, and of elements that pass at the same place.
SAMPLES = 256
#: Approximate number of products along k on which suspicions are tried first, of wrong and of right elements each.
SCREENED = 1 << 17
#: Least number of elements of each kind.
LEAST = 16
#: Factor by which more elements are used for a suspicion that fits the first ones.
CONFIRMED = 4
#: Least number of elements, wrong or not, for narrow sums, whose errors are compared by quantiles.
EVERYWHERE = 128
#: Largest number of rows and columns on which the engine's own errors are measured, and number that is evenly spread.
SIDE, EVEN = 64, 16
#: Ratio to a right kernel's own errors from which on an element within its bound counts to the place of the fault.
UNLIKELY = 8.0
#: Ratio to a right kernel's own errors up to which a prediction is right (root mean square; other orders of k double them),
GOOD = 5.0
#: share of the squared differences that it must explain,
EXPLAINED = 0.95
#: and largest probability that one chosen out of many would do so by chance.
CHANCE = 1e-5
#: Least probability of one element.
LUCK = 1e-3


class Finding(NamedTuple):
    """`Finding` is a statement with its quality as an explanation; findings sort from the best."""

    fit: float  #: rest over a right kernel's own errors: root mean square of wrong elements, or of right ones
    units: float  #: largest rest of a wrong element over its bound
    text: str
    explained: float  #: explained share of the squared differences of wrong elements
    chance: float  #: logarithm of the probability that one of so many candidates explains as much
    tried: float = 0.0  #: logarithm of the number of predictions of which this is the best
    free: int = 0  #: number of fitted numbers
    lossless: bool = False  #: whether the sums are taken as exact, without the unit's loss on sums of one sign

    @property
    def fits(self) -> bool:
        """Return whether the statement explains the wrong elements, the right ones beside them, and the size of the
        differences.
        """
        return self.fit <= GOOD and self.units <= 1 and self.explained >= EXPLAINED

    @property
    def perhaps(self) -> bool:
        """Return whether the statement fits with fewer fitted numbers than the elements determine."""
        return self.fits and (self.free <= 1 or self.chance < 0)

    @property
    def good(self) -> bool:
        """Return whether the statement fits, and is unlikely to do so by chance."""
        return self.fits and self.chance <= math.log(CHANCE)


@dataclass(frozen=True)
class Failure:
    """`Failure` is a wrong result with the data to explain it: sums before an epilogue, as far as the result determines
    them.
    """

    case: KernelCase
    #: out, exact, bound: float64, shape (m, n); out is NaN if the epilogue hides the sum.
    out: np.ndarray
    exact: np.ndarray
    bound: np.ndarray
    #: float64, shape (m, n): approximate errors of a right kernel (root mean square).
    typical: np.ndarray
    #: bool, shape (m, n): elements outside of their bound, and those with larger errors than a right kernel has.
    wrong: np.ndarray
    place: Place
    #: rows, columns: elements that are used, wrong ones and others of the same place.
    rows: np.ndarray
    columns: np.ndarray
    share: float = 0.0  #: relative loss of a right kernel's results of one sign
    unit: float = 0.0  #: relative loss by rounding to a narrower output format
    of_results: bool = False  #: whether values are those after an epilogue
    denied: float | None = None  #: the unit's relative loss, where sums are taken as exact

    @property
    def got(self) -> np.ndarray:
        """Return the kernel's values of these elements."""
        return self.out[self.rows, self.columns]

    @property
    def true(self) -> np.ndarray:
        """Return estimates of a right kernel's results: the exact values minus the unit's loss on all of them."""
        return (1 + self.share) * self.exact[self.rows, self.columns]

    @property
    def added(self) -> np.ndarray | float:
        """Return C of these elements, 0 without C."""
        return 0.0 if self.case.c is None else self.case.c[self.rows, self.columns]

    @property
    def usual(self) -> np.ndarray:
        """Return the errors that a right kernel has in these elements."""
        return self.typical[self.rows, self.columns]

    def finding(
        self, prediction: np.ndarray, text: str, slack: float | np.ndarray = 1.0, tried: float = 1.0, free: int = 0
    ) -> Finding:
        """Return how well a prediction explains the elements.

        `slack` is a factor on its allowed errors. `tried` is the logarithm of the number of predictions of which it is
        the best (at least 1, for the suspicions themselves).
        """
        wrong = self.wrong[self.rows, self.columns]
        with np.errstate(all="ignore"):
            rest, difference = np.abs(self.got - prediction), np.abs(self.got - self.true)
            if self.denied is not None:  # a statement does not explain the loss that it denies
                modelled = (1 + self.denied) * self.exact[self.rows, self.columns]
                difference = np.minimum(difference, np.abs(self.got - modelled))
            rounding = self.unit * np.abs(prediction)  # the prediction is rounded, too, and may be larger
            scale = np.hypot(slack * self.usual, rounding / math.sqrt(3))
            units = np.where(rest == 0, 0.0, rest / (slack * self.bound[self.rows, self.columns] + rounding))
            fits, before = (np.where(x == 0, 0.0, x / scale) for x in (rest, difference))
        found = rated(text, fits, before, wrong, tried, free)
        return found._replace(units=max(found.units, float(np.max(units[wrong], initial=0.0))))

    @property
    def units(self) -> np.ndarray:
        """Return the unit of differences: the errors of a right kernel, or 1 if it has none."""
        return np.where(self.usual > 0, self.usual, 1.0)

    def nearest(self, changes: np.ndarray, signs: tuple[int, ...] = (1,)) -> list[int]:
        """Return for each sign the change that explains the elements best.

        The changes of the true values have shape (elements, candidates), in :attr:`units`.
        """
        with np.errstate(all="ignore"):
            difference = (self.got - self.true) / self.units
            squares, along = np.einsum("ec,ec->c", changes, changes), np.einsum("e,ec->c", difference, changes)
            distances = [squares - 2 * sign * along for sign in signs]
        return [int(np.argmin(np.where(np.isfinite(far), far, np.inf))) for far in distances]

    def best_of(
        self, changes: np.ndarray, text: Callable[[int], str], slack: float, tried: float, free: int = 1
    ) -> Finding:
        """Return the finding of the best of several changes of the true values, shape (elements, candidates).

        `tried` is the logarithm of the factor by which more changes of this kind exist.
        """
        with np.errstate(all="ignore"):
            best = self.nearest(changes / self.units[:, None])[0]
        tried += math.log(changes.shape[1])
        return self.finding(self.true + changes[:, best], text(best), slack, tried, free)

    @cached_property
    def products(self) -> np.ndarray:
        """Return the products of these elements along k, shape (elements, k)."""
        return self.sides[0] * self.sides[1]

    @property
    def k(self) -> int:
        """Return the number of products of an element."""
        return self.case.operands[0].shape[1]

    @cached_property
    def stored(self) -> list[np.ndarray]:
        """Return the elements' rows of A and columns of B as stored, without scales: (elements, k) each."""
        x, y = self.case.operands
        return [x[self.rows].astype(np.float64), y[:, self.columns].T.astype(np.float64)]

    @cached_property
    def given(self) -> list[np.ndarray]:
        """Return the elements' rows of A and columns of B as given, before the unit's formats: (elements, k) each."""
        x, y = self.case.given
        return [x[self.rows].astype(np.float64), y[:, self.columns].T.astype(np.float64)]

    @cached_property
    def factors(self) -> list[np.ndarray] | list[float]:
        """Return the scales of these rows and columns: (elements, k) each, 1 without scales."""
        if self.case.scaling is None:
            return [1.0, 1.0]
        part = self.case.scaling.part(self.rows, self.columns)
        return [part.spread_a(), part.spread_b().T]

    @cached_property
    def sides(self) -> list[np.ndarray]:
        """Return the elements' rows of A and columns of B with all scales: (elements, k) each."""
        return [x * factor for x, factor in zip(self.stored, self.factors, strict=True)]

    @cached_property
    def unscaled(self) -> tuple[list[np.ndarray], np.ndarray | float]:
        """Return (rows of A and columns of B as stored, the factors of their products)."""
        return self.stored, self.factors[0] * self.factors[1]

    def moved(self, rows: np.ndarray | None = None, columns: np.ndarray | None = None) -> "Failure":
        """Return the failure with other rows or columns."""
        return replace(
            self, rows=self.rows if rows is None else rows, columns=self.columns if columns is None else columns
        )

    def of_sums(self) -> "Failure":
        """Return the failure of the sums before the epilogue, NaN where the results do not determine them."""
        case, done = self.case, self.case.epilogue
        assert done is not None
        typical, lost, _ = typical_errors(case, self.wrong)
        with np.errstate(all="ignore"):
            sums = done.inverse(self.out)
            slope = done.slope(sums)
            told = slope > 0.05
            rounding = self.unit * np.abs(self.out) / slope
            sums, typical = np.where(told, sums, np.nan), np.hypot(typical, rounding / math.sqrt(3))
        wrong = self.wrong & np.isfinite(sums)
        return _placed(
            replace(self, out=sums, exact=case.values, bound=np.full(sums.shape, np.inf), typical=typical, wrong=wrong,
                    share=lost, unit=0.0, of_results=False)
        ) if wrong.any() else self  # fmt: skip

    @property
    def screened(self) -> int:
        """Return the wrong elements, and others, whose products are used first; fewer if k is long."""
        return min(max(SCREENED // max(self.k, 1), LEAST), SAMPLES)

    def losses(self) -> list["Failure"]:
        """Return the failure with the unit's loss on sums of one sign, and without it if that differs: kernels that add
        outside of a unit that truncates lose hardly any of it.
        """
        exact = self.exact[self.rows, self.columns]
        same = abs(self.share) * _rms(exact) <= _rms(self.usual)
        return [self] if same or self.of_results else [self, replace(self, share=0.0, denied=self.share)]

    def few(self, times: int = 1) -> "Failure":
        """Return the failure with a multiple of :attr:`screened` of the wrong elements and of the others."""
        wrong, most = self.wrong[self.rows, self.columns], times * self.screened
        parts = (np.flatnonzero(wrong), np.flatnonzero(~wrong))
        if max(part.size for part in parts) <= most:
            return self
        taken = np.concatenate([x[evenly(x.size, most)] for x in parts])
        return self.moved(self.rows[taken], self.columns[taken])

    def alone(self) -> "Failure":
        """Return the failure with only the wrong ones of these elements."""
        wrong = self.wrong[self.rows, self.columns]
        return self.moved(self.rows[wrong], self.columns[wrong])

    def anywhere(self) -> "Failure":
        """Return the failure with elements from everywhere, wrong or not."""
        rows, columns = spread(np.isfinite(self.out) & np.isfinite(self.exact), max(2 * self.screened, EVERYWHERE))
        return replace(self, rows=rows, columns=columns)

    def more(self, most: int) -> "Failure":
        """Return the failure with up to `most` of the wrong elements."""
        rows, columns = spread(self.wrong & np.isfinite(self.out), most)
        return replace(self, rows=rows, columns=columns)


def rated(
    text: str, rest: np.ndarray, before: np.ndarray, wrong: np.ndarray, tried: float = 0.0, free: int = 0
) -> Finding:
    """Return a finding rated by the rest and by the difference before, over a right kernel's errors.

    `wrong` marks the wrong elements; the others are right.
    """
    if not np.isfinite(rest).all():
        return Finding(math.inf, math.inf, text, 0.0, 0.0, tried, free)
    rest, right, before = rest[wrong], rest[~wrong], before[wrong]
    with np.errstate(all="ignore"):
        squares, left = float(np.square(before).sum()), float(np.square(rest).sum())
        # an element agrees as well by chance about as often as its rest is small beside the difference
        each = np.log(np.clip(1.5 * np.maximum(rest, 0.5) / np.maximum(before, 1e-9), LUCK, 1.0))
    explained = 1 - left / squares if squares > 0 else 0.0
    chance = tried + float(np.sort(each)[free:].sum())
    return Finding(max(_rms(rest), _rms(right)), 0.0, text, explained, chance, tried, free)


def ranges(text: str, length: int, *blocks: int) -> Callable[[int], str]:
    """Return words with the range of k of some blocks, which are counted from the block in question."""
    return lambda at: text.format(*(f"{(at + block) * length}:{(at + block + 1) * length}" for block in blocks))


def _rms(x: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(x)))) if x.size else 0.0


def spread(where: np.ndarray, most: int = SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of at most `most` of the marked elements: half evenly spread, half at random."""
    places = np.flatnonzero(where)
    if places.size > most:
        even = places[evenly(places.size, most // 2)]
        others = np.random.default_rng(0).choice(places, most // 2, replace=False)
        places = np.unique(np.concatenate([even, others]))
    rows, columns = np.divmod(places, where.shape[1])
    return rows, columns


def failure_of(out: np.ndarray, case: KernelCase, outside: np.ndarray) -> Failure:
    """Return the failure of a result with elements `outside` the tolerance.

    Elements within it count, too, if a right kernel hardly has them. After an epilogue it is the failure of the
    results, see :meth:`Failure.of_sums`.
    """
    typical, lost, unit = typical_errors(case, outside)
    exact = case.values
    if case.epilogue is not None:
        typical = np.hypot(typical, lost * np.abs(exact))  # a loss of all sums is not known after an epilogue
        exact, lost = case.result, 0.0
        typical = np.hypot(_behind(case, typical), unit / math.sqrt(3) * np.abs(exact))
        fmt = get_format(case.out_format)
        if isinstance(fmt, Format):
            typical = np.hypot(typical, fmt.min_subnormal / math.sqrt(12))
    rows, columns = spread(outside)
    found = Failure(
        case, out, exact, case.finite_bound, typical, outside, Place("", outside, False), rows, columns, lost, unit,
        case.epilogue is not None,
    )  # fmt: skip
    return _placed(found)


def _behind(case: KernelCase, typical: np.ndarray) -> np.ndarray:
    """Return estimates of the errors of sums after the epilogue."""
    if case.epilogue is None or case.epilogue.function is not None:
        return typical
    with np.errstate(all="ignore"):
        return np.minimum(case.epilogue.bound(case.values, typical), np.inf)


def _placed(f: Failure) -> Failure:
    """Return the place of all wrong elements and of unlikely ones within their bounds, with elements to use."""
    with np.errstate(all="ignore"):
        usual = np.maximum(f.typical, f.unit * np.abs(f.exact))
        apart = np.minimum(
            np.abs(f.out - f.exact), np.abs(f.out - (1 + f.share) * f.exact)
        )  # a smaller loss is right, too
        unlikely = apart > UNLIKELY * usual
    wrong = f.wrong | (unlikely & np.isfinite(f.out))
    silent = (f.out == 0) & (f.exact == 0)  # these elements would show nothing
    place = place_of(wrong, f.exact, f.case.lines, silent)
    if place.structured:  # a single unlikely element elsewhere is chance
        wrong = f.wrong | (wrong & place.mask)
    known = np.isfinite(f.exact) & np.isfinite(f.out)
    inside = place.mask if place.structured else np.ones(wrong.shape, bool)
    failing, passing = spread(wrong & known), spread(~wrong & inside & known)
    rows, columns = (np.concatenate(pair) for pair in zip(failing, passing, strict=True))
    return replace(f, wrong=wrong, place=place, rows=rows, columns=columns)


def typical_errors(case: KernelCase, wrong: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return (errors of a right kernel's sums, its loss on sums of one sign, loss by the output's rounding).

    They are root mean squares, measured on the model where elements are wrong.
    """
    exact, m = case.values, case.values.shape[0]
    places = spread(wrong)
    rows, columns = (
        np.unique(np.append(np.unique(x)[: SIDE - EVEN], evenly(size, EVEN)))
        for x, size in zip(places, (m, case.result.shape[1]), strict=True)
    )
    at = rows, np.unique(case.sums_columns(columns))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sizes = case.used.sizes if case.c is None else case.used.sizes + np.abs(case.c)
        right, true = case.model(*at)[0], exact[np.ix_(*at)]
        lost = _lost_share(right - true, true)
        error = (right - (1 + lost) * true) / sizes[np.ix_(*at)]
        error = error[np.isfinite(error)]
        share = _rms(error)
        fmt = get_format(case.out_format)
        unit = fmt.unit_roundoff if isinstance(fmt, Format) and fmt.fraction_bits < 23 else 0.0
        own = unit if case.epilogue is None else 0.0
        typical = np.hypot(max(share, 2.0**-26) * sizes, own / math.sqrt(3) * np.abs(exact))
        if isinstance(fmt, Format) and case.epilogue is None:
            typical = np.hypot(typical, fmt.min_subnormal / math.sqrt(12))
    return typical, lost, unit


def _lost_share(error: np.ndarray, exact: np.ndarray) -> float:
    """Return an estimate of the relative loss of results: units that truncate lose it of every sum of one sign."""
    known = np.isfinite(error) & np.isfinite(exact)
    squares = float(np.sum(np.square(exact[known])))
    return float(np.sum(error[known] * exact[known])) / squares if squares > 0 else 0.0
