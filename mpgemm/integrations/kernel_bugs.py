"""What kind of bug would make a kernel's result look like this: each suspicion is tried on the elements that fail.

A suspicion is a statement with a prediction. It is reported only if the prediction is within the tolerance for every failing
element that is looked at, and about as near as the nearest one: a certified bound is wide, so wrong predictions can lie inside
of it. Only where no prediction fits, the size of the errors is compared with what narrower sums make.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from mpgemm.integrations.kernel_tolerance import KernelTolerance
from mpgemm.recovery.engines import ieee_engine
from tensorcore_models.catalogue import get_instruction
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.formats.rounding import round_to

#: Failing elements that are looked at, spread over all of them.
SAMPLES = 64
#: Failing elements below which a prediction with a free parameter fits by chance.
FEWEST = 4
#: Predictions are reported up to this many times as far away as the nearest.
NEAR = 4.0
#: Tiles that kernels have.
TILES = (8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Failure:
    """Failing elements with what is needed to explain them.

    Attributes
    ----------
    tolerance : KernelTolerance
    out, exact, bound : ndarray of float64, shape (m, n)
    rows, columns : ndarray of int
        The failing elements that are looked at.
    """

    tolerance: KernelTolerance
    out: np.ndarray
    exact: np.ndarray
    bound: np.ndarray
    rows: np.ndarray
    columns: np.ndarray

    @property
    def got(self) -> np.ndarray:
        """The kernel's values of these elements."""
        return self.out[self.rows, self.columns]

    @property
    def true(self) -> np.ndarray:
        """Their exact values."""
        return self.exact[self.rows, self.columns]

    @property
    def allowed(self) -> np.ndarray:
        """Their bounds."""
        return self.bound[self.rows, self.columns]

    def residual(self, prediction: np.ndarray, slack: float | np.ndarray = 1.0) -> float:
        """The largest distance from a prediction in units of the bound (times `slack`); at most 1 where it explains all."""
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            distance = np.abs(self.got - prediction)
            units = np.where(distance == 0, 0.0, distance / (slack * self.allowed))
        return float(np.max(np.where(np.isnan(units), np.inf, units)))

    def products(self) -> np.ndarray:
        """Products of these elements along k, shape (elements, k)."""
        return self.tolerance.a[self.rows] * self.tolerance.b[:, self.columns].T


#: (residual, statement).
Finding = tuple[float, str]


def suspicions(failure: Failure) -> list[str]:
    """Statements that explain the failing elements, the nearest first.

    Parameters
    ----------
    failure : Failure
    """
    for certain in (_not_finite, _zeros):
        text = certain(failure)
        if text is not None:
            return [text]
    tests = _PREDICTIONS if failure.rows.size >= FEWEST else _WITHOUT_PARAMETERS
    found = [finding for test in tests for finding in test(failure) if finding[0] <= 1]
    if found:
        nearest = min(residual for residual, _ in found)
        return [text for residual, text in sorted(found) if residual <= NEAR * max(nearest, 1e-3)]
    hint = _narrow_sums(failure) if failure.rows.size >= FEWEST else None
    return [] if hint is None else [hint]


def _not_finite(f: Failure) -> str | None:
    if np.isfinite(f.got).all():
        return None
    return "infinities or NaN where the exact result is finite: overflow of a sum, or memory that was never written"


def _zeros(f: Failure) -> str | None:
    return "0 everywhere: elements that the kernel never wrote, or a tile it skipped" if not f.got.any() else None


def _addend(f: Failure) -> Iterator[Finding]:
    if f.tolerance.c is None:
        return
    c = f.tolerance.c[f.rows, f.columns]
    for times, text in ((-1, "left out"), (1, "added twice"), (-2, "subtracted")):
        yield f.residual(f.true + times * c), f"the addend: C is {text}"


def _scale(f: Failure) -> Iterator[Finding]:
    best = int(np.argmax(np.abs(f.true)))
    if f.true[best] == 0 or f.got[best] == 0:
        return
    ratio = f.got[best] / f.true[best]
    exponent = round(math.log2(abs(ratio)))
    power = f" (2^{exponent})" if abs(math.log2(abs(ratio)) - exponent) < 1e-3 else ""
    text = f"a wrong scale: every result is {ratio:.6g}{power} times the exact one"
    yield f.residual(ratio * f.true, 1 + abs(ratio)), text


def _moved(f: Failure) -> Iterator[Finding]:
    """Elements that belong elsewhere: transposed tiles, exchanged tiles. The smallest tile that explains them."""
    m, n = f.exact.shape
    whole = max(m, n)
    found: list[Finding] = []
    for tile in (*(t for t in TILES if t < whole), whole):
        top, left = f.rows // tile * tile, f.columns // tile * tile
        places = {
            f"blocks of {tile} x {tile} are transposed": (top + f.columns - left, left + f.rows - top),
            f"neighbouring blocks of {tile} rows are exchanged": (f.rows ^ tile, f.columns),
            f"neighbouring blocks of {tile} columns are exchanged": (f.rows, f.columns ^ tile),
        }
        for text, (i, j) in places.items():
            if (i < m).all() and (j < n).all():
                slack = np.maximum(f.bound[i, j] / f.allowed, 1.0)
                found.append((f.residual(f.exact[i, j], slack), text if tile < whole else "the result is transposed"))
    yield from sorted(found, key=lambda finding: finding[0])[:1]


def _operand_transposed(f: Failure) -> Iterator[Finding]:
    a, b = f.tolerance.a, f.tolerance.b
    added = 0.0 if f.tolerance.c is None else f.tolerance.c[f.rows, f.columns]
    if b.shape[0] == b.shape[1]:
        yield f.residual(np.einsum("ik,ik->i", a[f.rows], b[f.columns]) + added), "B is read transposed"
    if a.shape[0] == a.shape[1]:
        yield f.residual(np.einsum("ki,ki->i", a[:, f.rows], b[:, f.columns]) + added), "A is read transposed"


def _terms(f: Failure) -> Iterator[Finding]:
    """Products along k that are missing, or there twice: one, a block, the end or the beginning."""
    products = f.products()
    k = products.shape[1]
    if k < 2:
        return
    sums = np.concatenate([np.zeros((len(products), 1)), np.cumsum(products, 1)], 1)
    difference = (f.got - f.true)[:, None]

    def nearest(candidates: np.ndarray, sign: int) -> tuple[float, int]:
        with np.errstate(divide="ignore", invalid="ignore"):
            units = np.max(np.abs(difference + sign * candidates) / f.allowed[:, None], axis=0)
        best = int(np.argmin(units))
        return float(units[best]), best

    for sign, what in ((1, "is missing"), (-1, "is there twice")):
        for length in (1, *(t for t in (2, 4, *TILES) if t < k)):
            starts = np.arange(0, k, length)
            residual, where = nearest(sums[:, np.minimum(starts + length, k)] - sums[:, starts], sign)
            start, stop = starts[where], min(starts[where] + length, k)
            yield (
                residual,
                f"a lost term: k = {start} {what}" if stop - start == 1 else f"lost terms: k {start}:{stop} {what}",
            )
    residual, end = nearest(sums[:, -1:] - sums[:, 1:-1], 1)
    yield residual, f"lost terms: the sum ends at k = {end + 1} of {k} (a tail that fills no tile)"
    residual, begin = nearest(sums[:, 1:-1], 1)
    yield residual, f"lost terms: the sum begins at k = {begin + 1}"


def _operands_rounded(f: Failure) -> Iterator[Finding]:
    """The product of operands in a narrower format."""
    fmt = f.tolerance.engine.formats[0]
    added = 0.0 if f.tolerance.c is None else f.tolerance.c[f.rows, f.columns]
    a, b = f.tolerance.given
    for name in ("tf32", "bf16", "fp16", "e4m3fn", "e5m2"):
        narrow = get_float_format(name)
        if not isinstance(fmt, Format) or narrow.fraction_bits >= fmt.fraction_bits:
            continue
        for rounding, how in (("rne", "rounded"), ("rz", "cut")):
            rounded = [round_to(x, narrow, rounding, saturate=True) for x in (a[f.rows], b[:, f.columns].T)]
            yield (
                f.residual(np.einsum("ik,ik->i", *rounded) + added, 1 + 2.0**-6),
                f"the operands were {how} to {name} first",
            )


def _chains(f: Failure) -> Iterator[tuple[str, Engine]]:
    """Narrower sums to compare with."""
    name = f.tolerance.engine.formats[0].name
    yield "fp16 accumulation", ieee_engine(name, "fp16")
    yield "bf16 accumulation", ieee_engine(name, "bf16")
    if name in ("e4m3fn", "e5m2"):
        spelled = {"e4m3fn": "e4m3", "e5m2": "e5m2"}[name]
        hopper = get_instruction("hopper", f"wgmma.m64n8k32.f32.{spelled}.{spelled}")
        yield "sums with 13 fraction bits, as Hopper's FP8 units have (no promotion to FP32)", hopper


def _narrow_sums(f: Failure) -> str | None:
    """Errors of the size that a narrower accumulator makes on the same operands."""
    result = f.tolerance.engine.formats[3]
    if f.tolerance.engine.scale_format is not None or not isinstance(result, Format):
        return None
    rows, columns = np.unique(f.rows)[:16], np.unique(f.columns)[:16]
    grid = np.ix_(rows, columns)
    error = _rms(f.out[grid] - f.exact[grid])
    near: dict[str, float] = {}
    for text, engine in _chains(f):
        if isinstance(engine.formats[3], Format) and engine.formats[3].fraction_bits > result.fraction_bits:
            continue
        c = None if f.tolerance.c is None else round_to(f.tolerance.c[grid], engine.formats[2])
        with np.errstate(over="ignore", invalid="ignore"):
            sums = engine.gemm(f.tolerance.a[rows], f.tolerance.b[:, columns], c).astype(np.float64)
            typical = _rms(sums - f.exact[grid])
        if 0 < typical < math.inf and error > 0:
            near[text] = abs(math.log2(error / typical))
    best = min(near, key=lambda text: near[text], default=None)
    if best is None or near[best] > 1.5:
        return None
    return f"{best}: errors of the size that it makes on these operands (2^{near[best]:.1f} apart)"


def _rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(x)))) if np.isfinite(x).all() else math.inf


_Test = Callable[[Failure], Iterator[Finding]]
_WITHOUT_PARAMETERS: tuple[_Test, ...] = (_addend, _operand_transposed)
_PREDICTIONS: tuple[_Test, ...] = (*_WITHOUT_PARAMETERS, _moved, _scale, _terms, _operands_rounded)
