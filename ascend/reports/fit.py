"""This module fits a chip's rates to measured products by bounded least squares from many starts.

Parameters are added one at a time as long as they explain the rows better, and dropped if later ones make them
needless; the Jacobian of the kept parameters has full rank at the fit. The result names parameters that the rows do not
determine, which stay unchanged, and parameters that would explain the rows as well as a fitted one. The error on rows
left out, beside that of the fit, shows whether a fit is worth using. The fits without one row give each parameter's
standard error (jackknife).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ascend.chips.chip import Chip, Provenance
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.planner.plan import plan
from ascend.reports.profile import ProfileRow, together


class Free(NamedTuple):
    """`Free` is a parameter that may be fitted: the chip's numbers that it scales (or replaces), and its range.

    A number that may be 0 is fitted as a difference in units of `unit`, others as the logarithm of their ratio to the chip's.
    """

    name: str
    numbers: tuple[str, ...]
    low: float
    high: float
    unit: float = 0.0


#: Parameters that may be fitted. If several explain the rows equally well, the first one is taken, so that memory bandwidth,
#: which slows loads as other parameters do, is fitted only to rows that nothing else explains. Ranges of ratios are factors.
FREE = (
    Free("launch_us", ("launch_us",), 0.0, 60.0, 5.0),
    Free("l2_read_rate", ("l2_read_rate",), 0.2, 4.0),
    Free("l0_share", ("l1_to_l0a_rate", "l1_to_l0b_rate"), 0.2, 4.0),
    Free("mmad_head", ("mmad_head",), 0.0, 100.0, 10.0),
    Free("sync_cycles_per_block", ("sync_cycles_per_block",), 0.0, 1000.0, 50.0),
    Free("fixpipe_rate", ("fixpipe_rate",), 0.2, 4.0),
    Free("fixpipe_unaligned_cycles", ("fixpipe_unaligned_cycles",), 0.0, 200.0, 20.0),
    Free("memory_read_rate", ("memory_read_rate",), 0.2, 4.0),
    Free("hbm_bytes_per_second", ("hbm_bytes_per_second",), 0.2, 4.0),
)
#: Pipes whose busy ratios are fitted: the cube's data path, which is modelled for every kernel.
FITTED_PIPES = ("CUBE", "MTE1", "MTE2", "FIXP")
#: Least change of a residual that tells something about a parameter.
LEAST_EFFECT = 0.002
#: Largest ratio of the root mean squares after and before adding a parameter, and the value below which none is added.
LEAST_GAIN, GOOD_ENOUGH = 0.8, 0.002
#: Difference of Akaike's criteria (observations times the logarithm of the mean square) within which two fits with equally
#: many parameters explain the rows equally well.
ALIKE = 4.0
#: Smallest singular value of the Jacobian's unit columns from which on the rows distinguish its parameters.
LEAST_SINGULAR = 0.05
#: Gain on rows left out, in standard errors, from which on a fit is recommended even if it does not halve their errors.
SURE = 2.0
#: Starting points of each parameter: the chip's value, and shifts to either side (in its units, or as logarithms).
STARTS = (0.0, -0.7, 0.7)


class Residual(NamedTuple):
    """`Residual` holds the measured time and the predictions before, after and without the row in the fit, in seconds."""

    row: ProfileRow
    nominal: float
    calibrated: float
    left_out: float | None


class ProfileFit(NamedTuple):
    """`ProfileFit` is the result of a fit to a profile: the chip, its parameters, and the residuals."""

    chip: Chip  #: the chip with the fitted parameters in force, marked as calibrated
    parameters: dict[str, float]  #: fitted parameters of the chip
    residuals: list[Residual]  #: measured and predicted times
    untold: dict[str, str]  #: parameters that stay unchanged, and why
    alike: dict[str, tuple[str, ...]]  #: for a fitted parameter, the parameters that would explain the rows as well
    standard_errors: dict[
        str, float
    ]  #: standard errors of the fitted parameters, by leaving out one row at a time; empty below 3 rows

    @property
    def observed(self) -> int:
        """Return the number of times and busy ratios that were fitted to."""
        return sum(1 + len(r.row.busy) for r in self.residuals)

    at_edge: tuple[
        str, ...
    ] = ()  #: parameters fitted to an end of their range, where the value has no physical meaning

    @property
    def gain(self) -> float:
        """Return the mean gain in squared error of left-out rows, in standard errors; nan if fewer than two rows are left out.

        Scatter alone makes some gain, because the parameters were chosen with all rows in sight.
        """
        if any(r.left_out is None for r in self.residuals) or len(self.residuals) < 2:
            return math.nan
        gains = [
            math.log(r.nominal / r.row.seconds) ** 2 - math.log(r.left_out / r.row.seconds) ** 2
            for r in self.residuals
            if r.left_out is not None
        ]
        mean, error = float(np.mean(gains)), float(np.std(gains, ddof=1)) / math.sqrt(len(gains))
        return mean / error if error else math.copysign(math.inf, mean) if mean else 0.0

    @property
    def recommended(self) -> bool:
        """Return whether the fit reliably predicts left-out rows better, and no parameter is at an end of its range.

        A fit is reliable if it halves their errors, or if the gain is at least :data:`SURE` standard errors.
        """
        halved = self.spread("left_out") <= self.spread("nominal") / 2
        return bool(self.parameters) and (halved or self.gain >= SURE) and not self.at_edge

    def spread(self, which: str = "calibrated") -> float:
        """Return the root mean square of log(predicted / measured); 0.1 is about 10 %.

        `which` chooses the "nominal", "calibrated" or "left_out" times. The result is nan if no row could be left out.
        """
        times = [(getattr(r, which), r.row.seconds) for r in self.residuals]
        if any(time is None for time, _ in times):
            return math.nan
        return _rms([math.log(time / measured) for time, measured in times])


def _rms(values: Sequence[float]) -> float:
    return math.sqrt(sum(x * x for x in values) / len(values))


class _Rows:
    """`_Rows` computes residuals of rows from parameters: logarithms of times, and differences of busy ratios."""

    def __init__(self, chip: Chip, rows: Sequence[ProfileRow], schedules: Sequence[Kernel]):
        self.chip, self.rows, self.schedules = chip, rows, schedules

    def without(self, number: int) -> "_Rows":
        """Return all rows but one."""
        kept = [i for i in range(len(self.rows)) if i != number]
        return _Rows(self.chip, [self.rows[i] for i in kept], [self.schedules[i] for i in kept])

    def changed(self, free: Sequence[Free], x: Sequence[float]) -> Chip:
        """Return the chip with its parameters shifted by x, in their units."""
        changes: dict[str, Any] = {}
        for each, value in zip(free, x, strict=True):
            for number in each.numbers:
                now = getattr(self.chip, number)
                changes[number] = max(now + each.unit * value, 0.0) if each.unit else now * math.exp(value)
        return self.chip.replace(**changes) if changes else self.chip

    def bounds(self, free: Free) -> tuple[float, float]:
        """Return the range of a parameter as differences from the chip's value, in its units."""
        if not free.unit:
            return math.log(free.low), math.log(free.high)
        now = getattr(self.chip, free.numbers[0])
        return (free.low - now) / free.unit, (max(free.high, now) - now) / free.unit

    def residuals(self, free: Sequence[Free], x: Sequence[float]) -> np.ndarray:
        """Return one number for each time and each busy ratio."""
        chip, found = self.changed(free, x), []
        for schedule, row in zip(self.schedules, self.rows, strict=True):
            timeline = simulate(schedule.timed_by(chip))
            found.append(math.log(timeline.seconds / row.seconds))
            found += [timeline.counters[pipe] - ratio for pipe, ratio in row.busy]
        return np.array(found)

    def jacobian(self, free: Sequence[Free], x: Sequence[float]) -> np.ndarray:
        """Return the Jacobian of the residuals, by differences of a tenth of each parameter (or of its unit) to either side."""
        columns = []
        for number, each in enumerate(free):
            low, high = self.bounds(each)
            moved = [list(x), list(x)]
            moved[0][number], moved[1][number] = max(x[number] - 0.1, low), min(x[number] + 0.1, high)
            up, down = self.residuals(free, moved[1]), self.residuals(free, moved[0])
            columns.append((up - down) / (moved[1][number] - moved[0][number]))
        return np.stack(columns, axis=1)

    def effect(self, free: Free) -> float:
        """Return how far a start to either side moves a residual.

        A rate that limits nothing now may do so once it is slower.
        """
        now, (low, high) = self.residuals([], []), self.bounds(free)
        return max(
            float(np.abs(self.residuals([free], [float(np.clip(x, low, high))]) - now).max()) for x in STARTS[1:]
        )

    def fitted(
        self, free: Sequence[Free], starts: Sequence[Sequence[float]], enough: float = GOOD_ENOUGH / 4
    ) -> tuple[float, np.ndarray]:
        """Return (root mean square, parameters) of the best fit from several starts, or the first good `enough`."""
        from scipy.optimize import least_squares

        bounds = np.array([self.bounds(each) for each in free]).T
        best = (math.inf, np.zeros(len(free)))
        for start in starts:
            inside = np.clip(start, bounds[0] + 1e-6, bounds[1] - 1e-6)
            found = least_squares(
                lambda x: self.residuals(free, x), inside, bounds=tuple(bounds), diff_step=1e-3, x_scale=1.0, max_nfev=30,
                ftol=1e-6, xtol=1e-6, gtol=1e-8,
            )  # fmt: skip
            best = min(best, (_rms(found.fun.tolist()), found.x), key=lambda pair: pair[0])
            if best[0] <= enough:
                break
        return best


def _require_scipy() -> None:
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        raise ValueError("fitting a profile needs scipy: pip install mpgemm[fit]") from None


def fit_profile(
    chip: Chip, rows: list[ProfileRow], progress: Callable[[int, int], None] | None = None,
    schedule_of: Callable[[ProfileRow], Kernel] | None = None,
) -> ProfileFit:  # fmt: skip
    """Fit a chip's parameters by least squares of the logarithms of predicted over measured times.

    With busy ratios of :data:`FITTED_PIPES` the squares of their differences count, too. Rows of the same product are
    merged (the median of their times), because a left-out row would otherwise be predicted by its duplicates. A row's
    kernel is the best plan for its shapes unless `schedule_of` gives it. There are fewer parameters than observations,
    or one for one observation.

    Raises
    ------
    ValueError
        If there are no rows, or scipy is not installed.
    """
    _require_scipy()
    if not rows:
        raise ValueError("a fit needs at least one measured product, got no rows")
    rows = together(
        row._replace(busy=tuple((pipe, ratio) for pipe, ratio in row.busy if pipe in FITTED_PIPES)) for row in rows
    )
    schedules = [schedule_of(row) if schedule_of else _schedule(row, chip) for row in rows]
    data = _Rows(chip, rows, schedules)
    untold = {each.name: "no row depends on it" for each in FREE if data.effect(each) < LEAST_EFFECT}
    candidates = [each for each in FREE if each.name not in untold]
    chosen, x = _chosen(data, candidates, progress)
    alike = _alike(data, chosen, x, candidates)
    untold |= {each.name: _why_not(each, alike) for each in candidates if each not in chosen}
    fitted = data.changed(chosen, x)
    numbers = [number for each in chosen for number in each.numbers]
    source = f"fitted to {len(rows)} products of a profile"
    fitted = replace(
        fitted, provenance=dict(fitted.provenance) | dict.fromkeys(numbers, Provenance("calibrated", source))
    )
    without = [_fitted_to_others(data, number, chosen, x) for number in range(len(rows))]
    return ProfileFit(
        fitted, {name: getattr(fitted, name) for name in numbers}, _residuals(data, fitted, without), untold, alike,
        _standard_errors(numbers, without), _at_edge(data, chosen, x),
    )  # fmt: skip


def _at_edge(data: _Rows, chosen: Sequence[Free], x: Sequence[float]) -> tuple[str, ...]:
    """Return the parameters whose value lies at an end of their range, within a hundredth of it."""
    found = []
    for free, value in zip(chosen, x, strict=True):
        low, high = data.bounds(free)
        if min(value - low, high - value) < 0.01 * (high - low):
            found.append(free.name)
    return tuple(found)


def _chosen(
    data: _Rows, candidates: list[Free], progress: Callable[[int, int], None] | None
) -> tuple[list[Free], list[float]]:  # fmt: skip
    """Return the parameters that explain the rows, with their values.

    Each added parameter explains the rows better, and none can be dropped.
    """
    now = data.residuals([], [])
    chosen: list[Free] = []
    x: list[float] = []
    error, most = _rms(now.tolist()), max(len(now) - 1, 1)
    while len(chosen) < most and error > GOOD_ENOUGH:
        tried = []
        for each in [c for c in candidates if c not in chosen]:
            tried.append((*data.fitted([*chosen, each], [[*x, start] for start in STARTS]), each))
            if progress:
                progress(len(chosen) + 1, most)
        tried = [t for t in tried if _told_apart(data, [*chosen, t[2]], t[1])]
        if not tried:
            break
        least = min(t[0] for t in tried)
        best, values, added = next(t for t in tried if t[0] <= _as_good(least, len(now)))
        if best > LEAST_GAIN * error or (chosen and not _is_worth(best, error, len(now), len(chosen))):
            break
        chosen, x, error = [*chosen, added], values.tolist(), best
        chosen, x, error = _without_needless(data, chosen, x, error)
    return chosen, x


def _told_apart(data: _Rows, free: Sequence[Free], x: np.ndarray) -> bool:
    """Return whether the Jacobian of the parameters has full rank: no column is nearly a combination of the others."""
    jacobian = data.jacobian(free, x.tolist())
    lengths = np.linalg.norm(jacobian, axis=0)
    if (lengths * 0.1 < LEAST_EFFECT).any():
        return False
    return bool(np.linalg.svd(jacobian / lengths, compute_uv=False)[-1] > LEAST_SINGULAR)


def _without_needless(
    data: _Rows, chosen: list[Free], x: list[float], error: float
) -> tuple[list[Free], list[float], float]:
    """Return the parameters without those that later ones made needless."""
    for each in list(chosen[:-1]):
        kept = [c for c in chosen if c is not each]
        start = [value for c, value in zip(chosen, x, strict=True) if c is not each]
        without, values = data.fitted(kept, [start])
        if without < max(error / LEAST_GAIN, GOOD_ENOUGH):
            chosen, x, error = kept, values.tolist(), without
    return chosen, x, error


def _as_good(error: float, observations: int) -> float:
    """Return the root mean square up to which a fit to so many observations explains them as well as one with this error."""
    return max(error * math.exp(ALIKE / 2 / observations), GOOD_ENOUGH)


def _is_worth(best: float, error: float, observations: int, parameters: int) -> bool:
    """Return whether an added parameter, which reduces the root mean square from `error` to `best`, lowers Akaike's criterion.

    The criterion is the corrected one, because nearly as many parameters as observations would follow their scatter.
    """
    n, p = observations, parameters
    if n - p - 2 <= 0:
        return False
    penalties = [2 * x + 2 * x * (x + 1) / (n - x - 1) for x in (p, p + 1)]
    return 2 * n * math.log(max(best, 1e-12) / error) < penalties[0] - penalties[1]


def _alike(
    data: _Rows, chosen: Sequence[Free], x: Sequence[float], candidates: Sequence[Free]
) -> dict[str, tuple[str, ...]]:
    """Return for each fitted parameter the others that explain the rows as well in its place."""
    found = {}
    now = data.residuals(chosen, x)
    enough = _as_good(_rms(now.tolist()), len(now))
    for at, one in enumerate(chosen):
        others, start = [c for c in chosen if c is not one], [*x[:at], *x[at + 1 :]]
        names = []
        for each in [c for c in candidates if c not in chosen]:
            if data.fitted([*others, each], [[*start, moved] for moved in STARTS], enough)[0] <= enough:
                names.append(each.name)
        if names:
            found[one.name] = tuple(names)
    return found


def _why_not(free: Free, alike: dict[str, tuple[str, ...]]) -> str:
    """Return why a parameter on which rows depend was not fitted."""
    taken = [name for name, others in alike.items() if free.name in others]
    return f"the rows do not distinguish it from {' or '.join(taken)}" if taken else "the rows are explained without it"


def _fitted_to_others(data: _Rows, number: int, chosen: list[Free], x: list[float]) -> Chip | None:
    """Return the chip after a fit of the same parameters to all rows but one, or None if too few rows are left."""
    others = data.without(number)
    if sum(1 + len(r.busy) for r in others.rows) <= len(chosen):
        return None
    values = others.fitted(chosen, [x, [0.0] * len(x)])[1].tolist() if chosen else []
    return data.changed(chosen, values)


def _standard_errors(numbers: Sequence[str], without: Sequence[Chip | None]) -> dict[str, float]:
    """Return the jackknife errors: sqrt((n - 1) / n times the sum of squared deviations) over the fits without one row."""
    chips = [chip for chip in without if chip is not None]
    if len(chips) < max(len(without), 3):
        return {}
    share = (len(chips) - 1) / len(chips)
    return {name: math.sqrt(share * float(np.var([getattr(c, name) for c in chips])) * len(chips)) for name in numbers}


def _residuals(data: _Rows, fitted: Chip, without: Sequence[Chip | None]) -> list[Residual]:
    """Return each row's residual before and after the fit, and after a fit of the same parameters to the other rows."""
    found = []
    for row, schedule, other in zip(data.rows, data.schedules, without, strict=True):
        nominal, calibrated = (simulate(schedule.timed_by(chip)).seconds for chip in (data.chip, fitted))
        left_out = None if other is None else simulate(schedule.timed_by(other)).seconds
        found.append(Residual(row, nominal, calibrated, left_out))
    return found


def _schedule(row: ProfileRow, chip: Chip) -> Kernel:
    plans = plan(
        row.m, row.k, row.n, chip, terms=1, operand=row.operand, layout=row.layout or "nz", dequantize=row.dequantize,
        simulated=4, top=4, error_of=lambda s: 0.0,
    )  # fmt: skip
    return next((p.schedule for p in plans if p.schedule.on_cube), plans[0].schedule)
