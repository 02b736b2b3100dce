"""Runs recovery methods on floating-point words: scaling of rows and columns, the split, and the product."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.recovery.arithmetic import EngineArithmetic, checked_addend, combine
from mpgemm.recovery.method import RecoveryMethod
from mpgemm.recovery.word_count import Count
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format

#: Engine on which results that are not finite are computed again.
_FP32 = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32", c_format="fp32", d_format="fp32")


@dataclass(frozen=True)
class RangeCounts:
    """`RangeCounts` counts the elements of an operand that left the range of the words."""

    overflow: int = (
        0  #: Number of finite elements with a word that overflowed (became infinite, NaN, or was saturated).
    )
    #: Number of elements with an inexact word below the word format's smallest normal number (IEEE 754's underflow).
    underflow: int = 0


@dataclass(eq=False)
class WordRun:
    """`WordRun` is a method on floating-point words, bound to an engine and operands."""

    row: RecoveryMethod
    engine: Engine
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None
    overflow: str = "inf"
    store: "WordStore | None" = None
    count: Count | None = None

    @property
    def word_format(self) -> Format:
        """Return the engine's operand format."""
        return self.engine.formats[0]

    @property
    def scale(self) -> int:
        """Return s, with which word j stands for 2^(-j s) times its value."""
        return self.row.word_scale(self.word_format)

    def counts(self) -> tuple[RangeCounts, RangeCounts]:
        """Return the numbers of elements of A and of B that left the range of the words."""
        (a, b), (words_a, words_b) = self.equilibrated()[:2], self.words()
        return (
            count_range(a, words_a, self.word_format, self.scale),
            count_range(b, words_b, self.word_format, self.scale),
        )

    def equilibrated(self):
        """Return (A, B, row exponents, column exponents) after scaling; the exponents are None if nothing is scaled."""
        if self.row.equilibrate == "none":
            return self.a, self.b, None, None
        theta = scaling_target(self.word_format, self.engine.formats[3], self.a.shape[1])
        rows, columns = equilibrating_exponents(self.a, 1, theta), equilibrating_exponents(self.b, 0, theta)
        return times_power(self.a, rows[:, None]), times_power(self.b, columns), rows, columns

    def words(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return the encodings of the words of A and of B, highest word first."""
        return self._split()[:2]

    def _split(self):
        """Return (words of A, words of B, row exponents, column exponents)."""
        if self.store is not None:
            return self.store.get(self)
        return self.split_now()

    def split_now(self):
        """Return (words of A, words of B, row exponents, column exponents), split now and not taken from a store."""
        a, b, rows, columns = self.equilibrated()
        words = (split_operand(x, self.row, self.word_format, self.overflow) for x in (a, b))
        return *words, rows, columns

    def product(self) -> np.ndarray:
        """Return the result of the method, shape (m, n)."""
        value = self.sums()
        if self.row.repair == "fp32" and not np.isfinite(value).all():
            self._repair(value)
        return value

    def _repair(self, value: np.ndarray) -> None:
        """Compute results that are not finite again in FP32, in place."""
        lost = ~np.isfinite(value)
        rows, columns = lost.any(axis=1), lost.any(axis=0)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            a, b = self.a[rows].astype(np.float32, copy=False), self.b[:, columns].astype(np.float32, copy=False)
            chains = _FP32.gemm(a, b)
            if self.c is not None:
                chains = chains + checked_addend(self.c, np.dtype(np.float32))[np.ix_(rows, columns)]
        value[lost] = chains[lost[np.ix_(rows, columns)]]

    def sums(self) -> np.ndarray:
        """Return the result before any repair."""
        arithmetic = EngineArithmetic(self.engine, self.row.order, (self.a.shape[0], self.b.shape[1]))
        words_a, words_b, rows, columns = self._split()
        c = None if self.c is None else arithmetic.operand(self.c)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            if self.a.shape[1] == 0:
                value = arithmetic.nothing() if c is None else c
            elif rows is None:
                value = combine(self.row, self.scale, words_a, words_b, c, arithmetic)
            else:
                value = combine(self.row, self.scale, words_a, words_b, None, arithmetic)
                value = np.ldexp(value, -(rows[:, None] + columns))
                value = value if c is None else arithmetic.add(value, c)
        return value.astype(self._result_dtype(arithmetic), copy=False)

    def _result_dtype(self, arithmetic: "EngineArithmetic"):
        if self.row.target == "engine":
            return self.engine.formats[3].dtype or np.dtype(np.float32)
        return arithmetic.dtype if arithmetic.dtype == np.float64 else np.dtype(np.float32)


class WordStore:
    """`WordStore` keeps the words of the last few operand pairs.

    Pairs are identified by the address of their memory, so matrices must not change while a store holds their words.
    """

    def __init__(self, pairs: int = 2):
        self._pairs = pairs
        self._found: list[tuple[tuple, tuple, tuple]] = []
        self._lock = threading.Lock()

    def __reduce__(self):
        return WordStore, (self._pairs,)

    def get(self, run: "WordRun"):
        """Return the words of a run; they are split now if the store does not hold them."""
        row = run.row
        facts = (
            *map(_place, (run.a, run.b)),
            run.word_format,
            row.words,
            run.scale,
            row.rounding,
            row.last_rounding,
            row.equilibrate,
            run.overflow,
            run.engine.formats[3].name,
        )
        with self._lock:
            for known, _, words in self._found:
                if known == facts:
                    return words
            words = run.split_now()
            # The matrices are kept, so that no other matrix can get their address.
            self._found = [*self._found[-(self._pairs - 1) :], (facts, (run.a, run.b), words)]
            return words


def _place(x: np.ndarray) -> tuple:
    return x.__array_interface__["data"][0], x.shape, x.strides, x.dtype.str


class CubeRun(WordRun):
    """`CubeRun` runs SGEMM-cube on the Ascend cube by :func:`ascend.cube_gemm`, in the schedule of the cube."""

    def sums(self) -> np.ndarray:
        if self.row.rounding != "rne" or self.row.equilibrate != "none" or self.row.parts != 1:
            return super().sums()
        import ascend  # imported here, because only this method needs it and it takes a third of a command's start time

        # The row's accumulation is termwise or elementwise, and `prepare` checked the overflow. The cube takes FP32 operands.
        with np.errstate(over="ignore", under="ignore"):
            a, b, c = (x if x is None else x.astype(np.float32, copy=False) for x in (self.a, self.b, self.c))
        return ascend.cube_gemm(
            a,
            b,
            c,
            order="elementwise" if self.row.accumulation == "elementwise" else "termwise",
            scale_exponent=self.scale,
            low_low=(1, 1) in self.row.products,
            overflow="saturate" if self.overflow == "saturate" else "inf",
        )


# -- splitting -----------------------------------------------------------------------------------------------------------
def scaling_target(word: Format, result: Format, k: int) -> float:
    """Return theta = min(f_max, sqrt(F_max / k)), the limit of equilibrated elements (Khattak and Mikaitis, section V-B)."""
    return min(word.max_finite, float(np.sqrt(result.max_finite / max(k, 1))))


def equilibrating_exponents(x: np.ndarray, axis: int, theta: float) -> np.ndarray:
    """Return the largest e of each row (axis 1) or column (axis 0) with max |x| 2^e <= theta over finite elements.

    The exponent of a row or column of zeros is 0.
    """
    largest = np.max(np.abs(x), axis=axis, initial=0.0, where=np.isfinite(x)).astype(np.float64)
    significand, exponent = np.frexp(largest)
    theta_significand, theta_exponent = np.frexp(theta)
    e = theta_exponent - exponent - (significand > theta_significand)
    return np.where(largest > 0, e, 0).astype(np.int32)


def times_power(x: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Return x 2^exponents exactly, in the type of x if that holds the result, otherwise in float64."""
    if x.dtype == np.float32 and np.abs(exponents).max(initial=0) <= 120:
        up, down = np.ldexp(np.float32(1), exponents), np.ldexp(np.float32(1), -exponents)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            scaled = x * up
            if ((scaled * down == x) | np.isnan(x)).all():
                return scaled
    return np.ldexp(x.astype(np.float64), exponents)


def split_operand(x: np.ndarray, row: RecoveryMethod, fmt: Format, overflow: str = "inf") -> tuple[np.ndarray, ...]:
    """Return the words of a matrix as encodings; `overflow` ("inf" or "saturate") is the rule for words that overflow."""
    if not row.last_rounding:
        return tcm.split(x, fmt, row.words, row.word_scale(fmt), row.rounding, overflow, bits=True)
    scale = row.word_scale(fmt)
    words = tcm.split(x, fmt, row.words - 1, scale, row.rounding, overflow, bits=True)
    rest = x.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        for j, word in enumerate(words):
            rest = rest - np.ldexp(tcm.decode(word, fmt).astype(np.float64), -j * scale)
        rest = np.where(np.isfinite(rest), rest, 0.0)
    return *words, np.asarray(tcm.encode(np.ldexp(rest, (row.words - 1) * scale), fmt, row.last_rounding))


def count_range(x: np.ndarray, words: Sequence[np.ndarray], fmt: Format, scale: int) -> RangeCounts:
    """Return the counts of elements of x that left the range of their encoded words."""
    residual = x.astype(np.float64)
    over, under = np.zeros(x.shape, bool), np.zeros(x.shape, bool)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for j, bits in enumerate(words):
            wanted, word = np.ldexp(residual, j * scale), tcm.decode(bits, fmt)
            beyond = np.abs(wanted) > fmt.max_finite * (1 + fmt.unit_roundoff)
            over |= np.isfinite(residual) & (~np.isfinite(word) | beyond)
            under |= (np.abs(word) < fmt.min_normal) & (word != wanted) & np.isfinite(wanted)
            residual = residual - np.ldexp(word, -j * scale)
    return RangeCounts(int(np.count_nonzero(over & np.isfinite(x))), int(np.count_nonzero(under)))
