"""SGEMM-cube one number at a time: the slow truth that :mod:`ascend.cube` and its kernel are held to.

Every sum is a Python fraction rounded once by :mod:`tensorcore_models.formats.exact_rounding`; a number is a `Special`
or a fraction with the sign of its zero. Nothing is shared with the kernel: not the split, not the blocking, not
the rounding.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from ascend.tile_schedule import TileSchedule
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.formats.exact_rounding import round_to_bits

FP16, FP32 = get_float_format("fp16"), get_float_format("fp32")


@dataclass(frozen=True)
class ReferenceArithmetic:
    """Where sums are rounded to, and what overflow does."""

    fmt: Format  #: FP32 or FP16.
    saturate: bool  #: Overflow gives the largest finite number, NaN 0 (910A), instead of IEEE arithmetic.

    def number(self, x: float) -> float:
        """A float64 `x` that is a number of the format already, or special."""
        return self._special(x)

    def _special(self, x: float) -> float:
        if self.saturate and np.isnan(x):
            return 0.0
        if self.saturate and np.isinf(x):
            return float(np.copysign(self.fmt.max_finite, x))
        return x

    def rounded(self, x: Fraction, zero: float = 0.0) -> float:
        """x rounded to nearest even; `zero` gives the sign of an exact zero."""
        if x == 0:
            return zero
        exponent = -(x.denominator.bit_length() - 1)  # denominators are powers of two
        bits = round_to_bits(x < 0, abs(x.numerator), exponent, self.fmt, saturate=self.saturate)
        kind, negative, significand, quantum = self.fmt.decode_exact(bits)
        value = np.inf if kind == "inf" else float(np.ldexp(float(significand), quantum))
        return -value if negative else value

    def sum(self, *terms: float | Fraction) -> float:
        """The exact sum of the terms, rounded once; IEEE rules for specials and, with two terms, for zeros."""
        if any(isinstance(t, float) and not np.isfinite(t) for t in terms):
            with np.errstate(invalid="ignore"):
                return self._special(float(np.sum(np.array([float(t) for t in terms]))))
        zeros = [t for t in terms if isinstance(t, float) and t == 0 and np.signbit(t)]
        zero = -0.0 if len(zeros) == len(terms) else 0.0
        return self.rounded(sum((Fraction(t) for t in terms), Fraction(0)), zero)

    def scaled(self, x: float, exponent: int) -> float:
        """x * 2**exponent, rounded."""
        if not np.isfinite(x) or x == 0:
            return x
        return self.rounded(Fraction(x) * Fraction(2) ** exponent)


def split(x: float, scale_exponent: int, saturate: bool) -> tuple[float, float]:
    """Eq. 7: high and scaled low FP16 word of one FP32 number, as floats."""
    half, single = ReferenceArithmetic(FP16, saturate), ReferenceArithmetic(FP32, saturate)
    if np.isnan(x):
        return (0.0, 0.0) if saturate else (x, x)
    high = half._special(x) if np.isinf(x) else half.rounded(Fraction(x), x)
    residual = single.sum(x, -high)
    if not np.isfinite(residual) or residual == 0:
        return high, half._special(residual) if residual else 0.0
    return high, half.rounded(Fraction(residual) * Fraction(2) ** scale_exponent)


def product(x: float, y: float) -> float:
    """An exact product: 22 bits, far inside float64."""
    with np.errstate(invalid="ignore"):
        return float(np.float64(x) * np.float64(y))


def add_step(acc: float, products: list[float], step_order: str, arithmetic: ReferenceArithmetic) -> float:
    """The products of one cube step onto the sum in L0C."""
    if step_order == "sequential":
        for p in products:
            acc = arithmetic.sum(acc, p)
        return acc
    if step_order == "exact":
        total = arithmetic.sum(acc, *products)
        return total if total != 0 else abs(total)
    while len(products) > 1:
        pairs = [arithmetic.sum(x, y) for x, y in zip(products[0::2], products[1::2], strict=False)]
        products = pairs + products[2 * len(pairs) :]
    return arithmetic.sum(acc, products[0])


def _steps(start: int, stop: int, length: int) -> list[range]:
    return [range(k, min(k + length, stop)) for k in range(start, stop, length)]


def _chain(acc, x, y, group, step, step_order, arithmetic):
    for ks in _steps(*group, step):
        acc = add_step(acc, [product(x[k], y[k]) for k in ks], step_order, arithmetic)
    return acc


def _over_groups(seed, schedule, arithmetic, run):
    """L0C over the k groups: the first from the seed, later ones from 0 and added, or each from C."""
    total = seed
    for index, group in enumerate(schedule.groups_of((0, schedule.k))):
        runs_on = index == 0 or schedule.reseed_l0c
        total = run(total, group) if runs_on else arithmetic.sum(total, run(0.0, group))
    return total


def combined(
    hh: float, lh: float, hl: float, ll: float | None, scales: tuple[int, int], arithmetic: ReferenceArithmetic
) -> float:
    """Termwise reconstruction, see :func:`ascend.cube.reconstruct`."""
    common = max(scales)
    low = arithmetic.sum(arithmetic.scaled(lh, common - scales[0]), arithmetic.scaled(hl, common - scales[1]))
    if ll is not None:
        low = arithmetic.sum(low, arithmetic.scaled(ll, common - sum(scales)))
    return arithmetic.sum(hh, arithmetic.scaled(low, -common))


def dot(
    row: list[tuple[float, float]],
    column: list[tuple[float, float]],
    c: float,
    schedule: TileSchedule,
    *,
    order: str,
    scales: tuple[int, int],
    terms: int,
    step_order: str,
    group: int,
    arithmetic: ReferenceArithmetic,
) -> float:
    """One element: the (high, low) words of a row of A and of a column of B onto c."""
    step = schedule.cube_step[1]
    a = [[w[word] for w in row] for word in (0, 1)]
    b = [[w[word] for w in column] for word in (0, 1)]
    words = ((0, 0), (1, 0), (0, 1), (1, 1))[:terms]
    shifts = [u * scales[0] + v * scales[1] for u, v in words]
    if order == "elementwise":

        def run_all(acc, k_group):
            for ks in _steps(*k_group, group):
                for (u, v), shift in zip(words, shifts, strict=True):
                    scaled = [product(a[u][k], b[v][k]) * 2.0**-shift for k in ks]
                    acc = add_step(acc, scaled, step_order, arithmetic)
            return acc

        return _over_groups(c, schedule, arithmetic, run_all)
    if order == "termwise":
        sums = [
            _over_groups(
                c if i == 0 else 0.0,
                schedule,
                arithmetic,
                lambda acc, g, u=u, v=v: _chain(acc, a[u], b[v], g, step, step_order, arithmetic),
            )
            for i, (u, v) in enumerate(words)
        ]
        if terms == 1:
            return sums[0]
        return combined(sums[0], sums[1], sums[2], sums[3] if terms == 4 else None, scales, arithmetic)
    total, first = c, True
    for (u, v), shift in zip(words, shifts, strict=True):
        for k_group in schedule.groups_of((0, schedule.k)):
            seed = total if first else arithmetic.scaled(total, shift) if schedule.reseed_l0c else 0.0
            value = arithmetic.scaled(_chain(seed, a[u], b[v], k_group, step, step_order, arithmetic), -shift)
            total = value if first or schedule.reseed_l0c else arithmetic.sum(total, value)
            first = False
    return total


def cube_gemm_reference(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    schedule: TileSchedule,
    *,
    order: str = "termwise",
    scales: tuple[int, int] = (12, 12),
    terms: int = 3,
    step_order: str = "sequential",
    overflow: str = "saturate",
    group: int = 16,
    accumulate: str = "fp32",
) -> np.ndarray:
    """What :func:`ascend.cube_gemm` (terms 3 or 4) or :func:`ascend.cube_hgemm` (terms 1) must give, as float32.

    Of the schedule it reads k groups, cube step and re-seeding; the keywords are those functions', `scales` being (s_a, s_b).
    """
    saturate = overflow == "saturate"
    arithmetic = ReferenceArithmetic(FP16 if accumulate == "fp16" else FP32, saturate)
    rows = [[split(float(x), scales[0], saturate) for x in row] for row in a]
    columns = [[split(float(x), scales[1], saturate) for x in column] for column in b.T]
    out = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for i, row in enumerate(rows):
        for j, column in enumerate(columns):
            seed = 0.0 if c is None else float(c[i, j])
            if accumulate == "fp16" and np.isfinite(seed):
                seed = arithmetic.rounded(Fraction(seed), seed)
            if not row:
                out[i, j] = seed
                continue
            value: float | None = None
            for start, stop in schedule.k_slices:
                part = dot(
                    row[start:stop],
                    column[start:stop],
                    arithmetic.number(seed) if value is None else 0.0,
                    replace(schedule, k=stop - start, grid=replace(schedule.grid, k=1)),
                    order=order,
                    scales=scales,
                    terms=terms,
                    step_order=step_order,
                    group=group,
                    arithmetic=arithmetic,
                )
                value = part if value is None else arithmetic.sum(value, part)
            out[i, j] = np.nan if value is None or np.isnan(value) else value
    return out
