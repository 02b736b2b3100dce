"""What kind of bug would make a kernel's result look like this: each suspicion is tried on the elements that fail.

A suspicion is a statement with a prediction: it is reported only if the prediction is within the tolerance for every failing
element that is looked at (the two about the precision of sums: if the size of the errors agrees).
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

    def explained(self, prediction: np.ndarray, slack: float = 1.0) -> bool:
        """Whether a prediction is within the bound (times `slack`) of every element."""
        with np.errstate(invalid="ignore", over="ignore"):
            return bool(np.all(np.abs(self.got - prediction) <= slack * self.allowed))

    def products(self) -> np.ndarray:
        """Products of these elements along k, shape (elements, k)."""
        return self.tolerance.a[self.rows] * self.tolerance.b[:, self.columns].T


def suspicions(failure: Failure) -> list[str]:
    """Every suspicion that explains the failing elements, the most particular first.

    Parameters
    ----------
    failure : Failure
    """
    found: list[str] = []
    for test in _TESTS:
        text = test(failure)
        if text is not None:
            found.append(text)
    return found


def _not_finite(f: Failure) -> str | None:
    if np.isfinite(f.got).all():
        return None
    return "infinities or NaN where the exact result is finite: overflow of a sum, or memory that was never written"


def _zeros(f: Failure) -> str | None:
    return "0 everywhere: elements that the kernel never wrote, or a tile it skipped" if not f.got.any() else None


def _addend(f: Failure) -> str | None:
    c = f.tolerance.c
    if c is None:
        return None
    c = c[f.rows, f.columns]
    for times, text in ((-1, "C is left out"), (1, "C is added twice"), (-2, "C is subtracted")):
        if f.explained(f.true + times * c):
            return f"the addend: {text}"
    return None


def _scale(f: Failure) -> str | None:
    best = int(np.argmax(np.abs(f.true)))
    if f.true[best] == 0 or not np.isfinite(f.got).all():
        return None
    ratio = f.got[best] / f.true[best]
    if ratio == 0 or f.true.size < 2 or not f.explained(ratio * f.true, 2 * (1 + abs(ratio))):
        return None
    mantissa, exponent = math.frexp(abs(ratio))
    power = f" (2^{exponent - 1})" if abs(mantissa - 0.5) < 1e-3 else f" (2^{exponent})" if mantissa > 0.9995 else ""
    return f"a wrong scale: every result is {ratio:.6g}{power} times the exact one"


def _moved(f: Failure) -> str | None:
    """Elements that belong elsewhere: transposed tiles, exchanged tiles."""
    m, n = f.exact.shape
    for tile in (*TILES, max(m, n)):
        top, left = f.rows // tile * tile, f.columns // tile * tile
        places = {
            f"blocks of {tile} x {tile} are transposed": (top + f.columns - left, left + f.rows - top),
            f"neighbouring blocks of {tile} rows are exchanged": (f.rows ^ tile, f.columns),
            f"neighbouring blocks of {tile} columns are exchanged": (f.rows, f.columns ^ tile),
        }
        for text, (i, j) in places.items():
            inside = (i < m) & (j < n)
            same = (i == f.rows) & (j == f.columns)
            if not inside.all() or same.all() or (tile > max(m, n)):
                continue
            if np.all(np.abs(f.got - f.exact[i, j]) <= f.bound[i, j]):
                return text if tile < max(m, n) else "the result is transposed"
    return None


def _operand_transposed(f: Failure) -> str | None:
    a, b = f.tolerance.a, f.tolerance.b
    if f.tolerance.c is not None:
        return None
    if b.shape[0] == b.shape[1] and f.explained(np.einsum("ik,ik->i", a[f.rows], b[f.columns])):
        return "B is read transposed"
    if a.shape[0] == a.shape[1] and f.explained(np.einsum("ki,ki->i", a[:, f.rows], b[:, f.columns])):
        return "A is read transposed"
    return None


def _terms(f: Failure) -> str | None:
    """Products along k that are missing, or there twice: one, a block, the end or the beginning."""
    products = f.products()
    k = products.shape[1]
    if not k or not np.isfinite(f.got).all():
        return None
    sums = np.concatenate([np.zeros((len(products), 1)), np.cumsum(products, 1)], 1)
    difference = (f.got - f.true)[:, None]

    def first(candidates: np.ndarray, sign: int) -> int | None:
        fits = np.all(np.abs(difference + sign * candidates) <= f.allowed[:, None], axis=0)
        return int(np.argmax(fits)) if fits.any() else None

    for sign, what in ((1, "is missing"), (-1, "is there twice")):
        for length in (1, *(t for t in (2, 4, *TILES) if t < k)):
            starts = np.arange(0, k, length)
            blocks = sums[:, np.minimum(starts + length, k)] - sums[:, starts]
            where = first(blocks, sign)
            if where is not None:
                start, stop = starts[where], min(starts[where] + length, k)
                return f"a lost term: k = {start} {what}" if length == 1 else f"lost terms: k {start}:{stop} {what}"
    ends = first(sums[:, -1:] - sums[:, 1:-1], 1)
    if ends is not None:
        return f"lost terms: the sum ends at k = {ends + 1} of {k} (a tail that fills no tile)"
    begins = first(sums[:, 1:-1], 1)
    return None if begins is None else f"lost terms: the sum begins at k = {begins + 1}"


def _operands_rounded(f: Failure) -> str | None:
    """The product of operands in a narrower format."""
    formats = f.tolerance.engine.formats
    added = 0.0 if f.tolerance.c is None else f.tolerance.c[f.rows, f.columns]
    for name in ("tf32", "bf16", "fp16", "e4m3fn", "e5m2"):
        narrow = get_float_format(name)
        if not isinstance(formats[0], Format) or narrow.fraction_bits >= formats[0].fraction_bits:
            continue
        for rounding, how in (("rne", "rounded"), ("rz", "cut")):
            rounded = [
                round_to(x, narrow, rounding, saturate=True)
                for x in (f.tolerance.a[f.rows], f.tolerance.b[:, f.columns].T)
            ]
            if f.explained(np.einsum("ik,ik->i", *rounded) + added, 1 + 2.0**-6):
                return f"the operands were {how} to {name} first"
    return None


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


_TESTS: tuple[Callable[[Failure], str | None], ...] = (
    _not_finite, _zeros, _addend, _moved, _operand_transposed, _scale, _terms, _operands_rounded, _narrow_sums,
)  # fmt: skip
