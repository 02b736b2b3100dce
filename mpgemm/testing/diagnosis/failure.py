"""Wrong elements of a kernel's result, and how well a prediction explains them and the right ones beside them."""

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

#: Elements that are looked at: so many wrong ones, and so many that pass at the same place.
SAMPLES = 256
#: Products along k on which suspicions are tried first, of the wrong elements and of the right ones each, about.
SCREENED = 1 << 17
#: Elements of each, at least.
LEAST = 16
#: What fits there is tried again on so many times as many elements.
CONFIRMED = 4
#: Elements at least, wrong or not, on which narrow sums are tried: their errors are compared by quantiles.
EVERYWHERE = 128
#: Rows and columns at most on which the engine's own errors are measured, and how many of them are evenly spread.
SIDE, EVEN = 64, 16
#: An element within its bound is at the place of the fault, too, from so many of a right kernel's own errors on.
UNLIKELY = 8.0
#: A prediction is right up to this many times a right kernel's own errors (root mean square; other orders of k double them),
GOOD = 5.0
#: if it explains this share of the squared differences,
EXPLAINED = 0.95
#: and one that is chosen out of many by chance would do so with this probability at most.
CHANCE = 1e-5
#: No element counts for less than this.
LUCK = 1e-3


class Finding(NamedTuple):
    """A statement and how well it explains the result; findings sort from the best."""

    fit: float  #: What is left over a right kernel's own errors: root mean square of wrong elements, or of right ones.
    units: float  #: The largest rest of a wrong element over its bound.
    text: str
    explained: float  #: Share of the squared differences of wrong elements.
    chance: float  #: Logarithm of the probability that one of so many candidates explains as much.
    tried: float = 0.0  #: Logarithm of how many predictions it is the best of.
    free: int = 0  #: Numbers chosen to fit.

    @property
    def fits(self) -> bool:
        """Whether the statement explains what is wrong, what is right beside it, and the size of the differences."""
        return self.fit <= GOOD and self.units <= 1 and self.explained >= EXPLAINED

    @property
    def good(self) -> bool:
        """Whether it fits, and would hardly do so by chance."""
        return self.fits and self.chance <= math.log(CHANCE)


@dataclass(frozen=True)
class Failure:
    """A wrong result with what is needed to explain it: sums before an epilogue, as far as the result tells them."""

    case: KernelCase
    #: out, exact, bound: float64, shape (m, n); out is NaN where the epilogue hides the sum.
    out: np.ndarray
    exact: np.ndarray
    bound: np.ndarray
    #: float64, shape (m, n): the errors that a right kernel has, about (root mean square).
    typical: np.ndarray
    #: bool, shape (m, n): elements outside of their bound, and those farther off than a right kernel's are.
    wrong: np.ndarray
    place: Place
    #: rows, columns: The elements that are looked at: wrong ones, and others of the same place.
    rows: np.ndarray
    columns: np.ndarray
    share: float = 0.0  #: What a right kernel's results of one sign lose, over themselves.
    unit: float = 0.0  #: What the rounding to a narrower output format loses, over the result.
    of_results: bool = False  #: Whether values are those behind an epilogue.

    @property
    def got(self) -> np.ndarray:
        """The kernel's values of these elements."""
        return self.out[self.rows, self.columns]

    @property
    def true(self) -> np.ndarray:
        """The results of a right kernel there, about: the exact values less its unit's loss on all of them."""
        return (1 + self.share) * self.exact[self.rows, self.columns]

    @property
    def added(self) -> np.ndarray | float:
        """C of these elements, 0 without."""
        return 0.0 if self.case.c is None else self.case.c[self.rows, self.columns]

    @property
    def usual(self) -> np.ndarray:
        """The errors that a right kernel has there."""
        return self.typical[self.rows, self.columns]

    def finding(
        self, prediction: np.ndarray, text: str, slack: float | np.ndarray = 1.0, tried: float = 1.0, free: int = 0
    ) -> Finding:
        """Return how well a prediction explains the elements; `slack` times as far may its errors be, `tried` is the logarithm
        of how many predictions it is the best of (1 at least, for the suspicions themselves)."""
        wrong = self.wrong[self.rows, self.columns]
        with np.errstate(all="ignore"):
            rest, difference = np.abs(self.got - prediction), np.abs(self.got - self.true)
            rounding = self.unit * np.abs(prediction)  # what is predicted is rounded, too, and may be larger
            scale = np.hypot(slack * self.usual, rounding / math.sqrt(3))
            units = np.where(rest == 0, 0.0, rest / (slack * self.bound[self.rows, self.columns] + rounding))
            fits, before = (np.where(x == 0, 0.0, x / scale) for x in (rest, difference))
        found = rated(text, fits, before, wrong, tried, free)
        return found._replace(units=max(found.units, float(np.max(units[wrong], initial=0.0))))

    @property
    def units(self) -> np.ndarray:
        """The errors that a right kernel has there, 1 where it has none: what differences are counted in."""
        return np.where(self.usual > 0, self.usual, 1.0)

    def nearest(self, changes: np.ndarray, signs: tuple[int, ...] = (1,)) -> list[int]:
        """Return for each sign which of the changes of the true values, shape (elements, candidates) and in :attr:`units`,
        explains the elements best."""
        with np.errstate(all="ignore"):
            difference = (self.got - self.true) / self.units
            squares, along = np.einsum("ec,ec->c", changes, changes), np.einsum("e,ec->c", difference, changes)
            distances = [squares - 2 * sign * along for sign in signs]
        return [int(np.argmin(np.where(np.isfinite(far), far, np.inf))) for far in distances]

    def best_of(
        self, changes: np.ndarray, text: Callable[[int], str], slack: float, tried: float, free: int = 1
    ) -> Finding:
        """Return the finding of the one of several changes of the true values, shape (elements, candidates), that explains the
        elements best; `tried` is the logarithm of how many times as many there are of its kind."""
        with np.errstate(all="ignore"):
            best = self.nearest(changes / self.units[:, None])[0]
        tried += math.log(changes.shape[1])
        return self.finding(self.true + changes[:, best], text(best), slack, tried, free)

    @cached_property
    def products(self) -> np.ndarray:
        """Products of these elements along k, shape (elements, k)."""
        return self.sides[0] * self.sides[1]

    @property
    def k(self) -> int:
        """Products of an element."""
        return self.case.operands[0].shape[1]

    @cached_property
    def stored(self) -> list[np.ndarray]:
        """Rows of A and columns of B of these elements as they are stored, without scales: (elements, k) each."""
        x, y = self.case.operands
        return [x[self.rows].astype(np.float64), y[:, self.columns].T.astype(np.float64)]

    @cached_property
    def given(self) -> list[np.ndarray]:
        """The same as they were given, before the unit's formats: (elements, k) each."""
        x, y = self.case.given
        return [x[self.rows].astype(np.float64), y[:, self.columns].T.astype(np.float64)]

    @cached_property
    def factors(self) -> list[np.ndarray] | list[float]:
        """The scales of these, 1 each without: (elements, k) each."""
        if self.case.scaling is None:
            return [1.0, 1.0]
        part = self.case.scaling.part(self.rows, self.columns)
        return [part.spread_a(), part.spread_b().T]

    @cached_property
    def sides(self) -> list[np.ndarray]:
        """Rows of A and columns of B of these elements, all scales multiplied in: (elements, k) each."""
        return [x * factor for x, factor in zip(self.stored, self.factors, strict=True)]

    @cached_property
    def unscaled(self) -> tuple[list[np.ndarray], np.ndarray | float]:
        """(rows of A and columns of B as they are stored, the factors of their products)."""
        return self.stored, self.factors[0] * self.factors[1]

    def moved(self, rows: np.ndarray | None = None, columns: np.ndarray | None = None) -> "Failure":
        """Return the same with other rows or columns."""
        return replace(
            self, rows=self.rows if rows is None else rows, columns=self.columns if columns is None else columns
        )

    def of_sums(self) -> "Failure":
        """Of the sums before the epilogue, as far as the results tell them; NaN where they do not."""
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
        """Wrong elements, and others, of which products are looked at first: fewer where k is long."""
        return min(max(SCREENED // max(self.k, 1), LEAST), SAMPLES)

    def few(self, times: int = 1) -> "Failure":
        """Return the same with so many times :attr:`screened` of the wrong elements and of the others."""
        wrong, most = self.wrong[self.rows, self.columns], times * self.screened
        parts = (np.flatnonzero(wrong), np.flatnonzero(~wrong))
        if max(part.size for part in parts) <= most:
            return self
        taken = np.concatenate([x[evenly(x.size, most)] for x in parts])
        return self.moved(self.rows[taken], self.columns[taken])

    def alone(self) -> "Failure":
        """Return the same with the wrong ones of these elements only."""
        wrong = self.wrong[self.rows, self.columns]
        return self.moved(self.rows[wrong], self.columns[wrong])

    def anywhere(self) -> "Failure":
        """Return the same with elements from everywhere, wrong or not."""
        rows, columns = spread(np.isfinite(self.out) & np.isfinite(self.exact), max(2 * self.screened, EVERYWHERE))
        return replace(self, rows=rows, columns=columns)

    def more(self, most: int) -> "Failure":
        """Return the same with up to `most` of the wrong elements."""
        rows, columns = spread(self.wrong & np.isfinite(self.out), most)
        return replace(self, rows=rows, columns=columns)


def rated(
    text: str, rest: np.ndarray, before: np.ndarray, wrong: np.ndarray, tried: float = 0.0, free: int = 0
) -> Finding:
    """Return a statement by what is left and by what the difference was before, over a right kernel's errors; of elements that
    are wrong, and of right ones."""
    if not np.isfinite(rest).all():
        return Finding(math.inf, math.inf, text, 0.0, 0.0, tried, free)
    rest, right, before = rest[wrong], rest[~wrong], before[wrong]
    with np.errstate(all="ignore"):
        squares, left = float(np.square(before).sum()), float(np.square(rest).sum())
        # an element is met as well by chance about as often as the rest is small beside the difference
        each = np.log(np.clip(1.5 * np.maximum(rest, 0.5) / np.maximum(before, 1e-9), LUCK, 1.0))
    explained = 1 - left / squares if squares > 0 else 0.0
    chance = tried + float(np.sort(each)[free:].sum())
    return Finding(max(_rms(rest), _rms(right)), 0.0, text, explained, chance, tried, free)


def ranges(text: str, length: int, *blocks: int) -> Callable[[int], str]:
    """Return words with the range of k of some blocks, which are counted from the one that is asked about."""
    return lambda at: text.format(*(f"{(at + block) * length}:{(at + block + 1) * length}" for block in blocks))


def _rms(x: np.ndarray) -> float:
    return math.sqrt(float(np.mean(np.square(x)))) if x.size else 0.0


def spread(where: np.ndarray, most: int = SAMPLES) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of at most `most` of the elements that are marked: half of them evenly spread, the others at
    random."""
    places = np.flatnonzero(where)
    if places.size > most:
        even = places[evenly(places.size, most // 2)]
        others = np.random.default_rng(0).choice(places, most // 2, replace=False)
        places = np.unique(np.concatenate([even, others]))
    rows, columns = np.divmod(places, where.shape[1])
    return rows, columns


def failure_of(out: np.ndarray, case: KernelCase, outside: np.ndarray) -> Failure:
    """Collect the facts that explain a result with elements `outside` the tolerance; those within it that a right kernel
    hardly has count, too. Behind an epilogue it is of the results, see :meth:`Failure.of_sums`."""
    typical, lost, unit = typical_errors(case, outside)
    exact = case.values
    if case.epilogue is not None:
        typical = np.hypot(typical, lost * np.abs(exact))  # what all sums lose is not told behind an epilogue
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
    """Return errors of sums behind the epilogue, about."""
    if case.epilogue is None or case.epilogue.function is not None:
        return typical
    with np.errstate(all="ignore"):
        return np.minimum(case.epilogue.bound(case.values, typical), np.inf)


def _placed(f: Failure) -> Failure:
    """With elements within their bounds that a right kernel hardly has, the place of all, and elements to look at."""
    with np.errstate(all="ignore"):
        usual = np.maximum(f.typical, f.unit * np.abs(f.exact))
        apart = np.minimum(
            np.abs(f.out - f.exact), np.abs(f.out - (1 + f.share) * f.exact)
        )  # losing less is right, too
        unlikely = apart > UNLIKELY * usual
    wrong = f.wrong | (unlikely & np.isfinite(f.out))
    silent = (f.out == 0) & (f.exact == 0)  # these would show nothing
    place = place_of(wrong, f.exact, f.case.lines, silent)
    if place.structured:  # one unlikely element elsewhere is an unlikely element
        wrong = f.wrong | (wrong & place.mask)
    known = np.isfinite(f.exact) & np.isfinite(f.out)
    inside = place.mask if place.structured else np.ones(wrong.shape, bool)
    failing, passing = spread(wrong & known), spread(~wrong & inside & known)
    rows, columns = (np.concatenate(pair) for pair in zip(failing, passing, strict=True))
    return replace(f, wrong=wrong, place=place, rows=rows, columns=columns)


def typical_errors(case: KernelCase, wrong: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return (root mean square errors of a right kernel's sums, what it loses of sums of one sign, what the output's rounding
    loses), measured on the model where elements are wrong."""
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
    """Estimate the share of themselves that results lose: units that cut lose it of every sum of one sign."""
    known = np.isfinite(error) & np.isfinite(exact)
    squares = float(np.sum(np.square(exact[known])))
    return float(np.sum(error[known] * exact[known])) / squares if squares > 0 else 0.0
