"""Takes the error of one recovered dot product apart, in exact rational arithmetic.

The stages of a method replace their exact values one after the other, in this order:

1. exact: the exact value of ``sum a_k b_k + c``
2. split: the operands are replaced by the sums of their words; everything else is exact
3. terms: only the products of words that the method keeps are added; everything else is exact
4. alignment: the core truncates products and c at its alignment and does not round its results; the rest is exact
5. core: the core runs as it is; sums and scalings outside of it are exact
6. computed: the whole method runs as it is

The part of a stage is its value minus the value of the stage before, so the parts add up to the total error exactly; they
depend on this order. :func:`mpgemm.bounds.error_parts.error_parts`, which the verdict on whole products uses too, divides the
stages "split" and "terms" by cause. The stages alignment, core rounding and outside together are its cause *accumulation*.
Cores made of IEEE operations have no alignment, and nothing is known of the inside of a callable: the whole error of these
cores counts as core rounding.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

import tensorcore_models as tcm
from mpgemm.bounds.error_parts import CAUSES, SplitOperand, error_parts, full_bits, overflow_threshold
from mpgemm.bounds.operand_facts import accumulator_of
from mpgemm.recovery import integer_words
from mpgemm.recovery.arithmetic import Arithmetic, EngineArithmetic, combine
from mpgemm.recovery.run import prepare
from tensorcore_models.engines.engine import Engine
from tensorcore_models.engines.matrix_engine import MatrixEngine
from tensorcore_models.formats import Format
from tensorcore_models.formats.exact_rounding import round_to_bits
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: A format that holds every sum of a fused core before it is rounded: 49 significand bits and the exponents of binary128.
WIDE = Format("wide", 15, 48, 16383)
#: The stages of the sums: together the cause "accumulation".
ACCUMULATION = ("alignment", "core rounding", "outside")
PARTS = (*CAUSES[:-1], *ACCUMULATION)


@dataclass(frozen=True, repr=False)
class Attribution(Result):
    """`Attribution` holds the error of one dot product, divided into parts by their causes.

    Attributes
    ----------
    method, engine : str
        Names of the method and the engine.
    computed, exact : Fraction
        The result and the exact value.
    parts : dict of str to Fraction
        Parts of the error by name; their sum is exactly `total`. "overflow", "range" and "split" come from splitting the
        operands, "dropped term" from products of words that are left out, "alignment" and "core rounding" from the engine's
        sums, "outside" from additions and scalings outside the engine.
    ulp : Fraction
        Unit in the last place of the result format at the exact value.
    """

    method: str
    engine: str
    computed: Fraction
    exact: Fraction
    parts: dict[str, Fraction]
    ulp: Fraction

    @property
    def total(self) -> Fraction:
        """Return the error, computed - exact."""
        return self.computed - self.exact

    @property
    def causes(self) -> dict[str, Fraction]:
        """Return the error by cause: "overflow", "range", "split", "dropped term" and "accumulation".

        The error of "accumulation" is the sum of the parts "alignment", "core rounding" and "outside".
        """
        sums = sum((self.parts[stage] for stage in ACCUMULATION), Fraction(0))
        return {**{name: part for name, part in self.parts.items() if name not in ACCUMULATION}, CAUSES[-1]: sums}

    @property
    def cause(self) -> str:
        """Return the cause of the largest part of the error, "" if there is no error."""
        causes = self.causes
        return max(causes, key=lambda name: abs(causes[name])) if any(causes.values()) else ""

    def to_dict(self) -> dict:
        """Return the content as JSON-compatible values; exact numbers are fractions, written as text."""
        return {
            "method": self.method,
            "engine": self.engine,
            "computed": float(self.computed),
            "exact": str(self.exact),
            "total": str(self.total),
            "cause": self.cause,
            "parts": {stage: str(part) for stage, part in self.parts.items()},
            "parts_in_ulp": {stage: float(part / self.ulp) for stage, part in self.parts.items()},
            "total_in_ulp": float(self.total / self.ulp),
        }

    def to_rows(self) -> list[dict]:
        """Return one row for each part and one for the total."""
        parts = {**self.parts, "total": self.total}
        return [
            {"part": _spelled(name), "error": float(part), "ulps": float(part / self.ulp)}
            for name, part in parts.items()
        ]

    def __str__(self) -> str:
        width = max(len(_spelled(name)) for name in self.parts)
        lines = [
            f"error of {self.method} on {self.engine}: {_number(self.total)} = {float(self.total / self.ulp):+.4f} ulp",
            f"  computed {_number(self.computed)}, exact {_number(self.exact)}",
        ]
        lines += [
            f"  {_spelled(s):{width}}  {_number(p):>24}  {float(p / self.ulp):+10.4f} ulp"
            for s, p in self.parts.items()
        ]
        check = "exactly the total" if sum(self.parts.values()) == self.total else "NOT the total"
        lines.append(f"  sum of the parts: {check}" + (f"; the largest cause: {self.cause}" if self.cause else ""))
        return "\n".join(lines)


def _spelled(part: str) -> str:
    """Return a part's name after the cause that it belongs to."""
    return f"{CAUSES[-1]}: {part}" if part in ACCUMULATION else part


def _number(x: Fraction) -> str:
    value = float(x)
    return repr(value) if Fraction(value) == x else f"{value:.17g}"


@default_fp_state
def attribute(method, a, b, c=None, engine=None, *, overflow: str | None = None, **options) -> Attribution:
    """Return the error of one dot product of a recovery method, divided into one part for each cause.

    Parameters
    ----------
    method, engine, overflow, **options
        Arguments of :func:`mpgemm.recovered_gemm`.
    a, b : array_like, shape (k,)
        The vectors.
    c : float, optional
        The addend.

    Raises
    ------
    ValueError
        If an operand, a word or the result is not finite, because such an error cannot be divided.
    """
    run = dot_run(method, a, b, c, engine, overflow, options)
    computed = run.product()
    if not np.isfinite(computed.astype(np.float64)).all():
        raise ValueError(
            f"{run.row.name} gives {computed[0, 0]}, expected a finite result to attribute its error; scale the operands"
        )
    c_value = Fraction(0) if run.c is None else Fraction(float(run.c[0, 0]))
    exact = sum((Fraction(float(x)) * Fraction(float(y)) for x, y in zip(run.a[0], run.b[:, 0], strict=True)), c_value)
    hardware = Fraction(float(computed[0, 0]))
    x, y = _split_operand(run, run.a, 1), _split_operand(run, run.b, 0)
    matrices = error_parts(x, y, run.row.products, np.array([[hardware - exact]]))
    parts = {name: Fraction(matrix[0, 0]) for name, matrix in matrices.items() if name != CAUSES[-1]}
    terms = exact + sum(parts.values())
    values = (terms, *_core_stages(run, terms, c_value), hardware)
    parts |= zip(ACCUMULATION, (after - before for before, after in zip(values, values[1:], strict=False)), strict=True)
    ulp = ulp_at(exact, format_of(computed))
    return Attribution(run.row.name, run.engine.label, hardware, exact, parts, ulp)


def dot_run(method, a, b, c, engine, overflow, options):
    """Return the run of one dot product; raise ValueError if a and b are not finite vectors of the same length."""
    a, b = np.asarray(a), np.asarray(b)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"a and b have shapes {a.shape} and {b.shape}, expected two vectors of the same length")
    c = None if c is None else np.asarray(c).reshape(1, 1)
    run = prepare(a[None, :], b[:, None], c, method, engine, overflow, options)
    if getattr(getattr(run.engine, "accumulator", None), "key", None) is not None:
        raise ValueError(
            f"{run.engine.label} rounds stochastically, so its steps cannot be run one by one; take an engine with another "
            "rounding"
        )
    if run.row.kind == "own":
        raise ValueError(
            f"method {run.row.name!r} splits and joins by functions of its own, so its steps are unknown; take a method of "
            "mpgemm.list_methods()"
        )
    for x, name in ((run.a, "a"), (run.b, "b"), (run.c, "c")):
        if x is not None and not np.isfinite(x).all():
            raise ValueError(f"{name} holds infinities or NaN, expected finite values; give other values for {name}")
    return run


def format_of(x: np.ndarray) -> Format:
    """Return the floating-point format of an array's elements, fp32 for a dtype that is no known format."""
    return tcm.format_of_dtype(x.dtype) or tcm.FORMATS["fp32"]


def ulp_at(x: Fraction, fmt: Format) -> Fraction:
    """Return the unit in the last place of a format at x."""
    exponent = max(floor_log2(x), fmt.emin) if x else fmt.emin
    return Fraction(2) ** (exponent - fmt.fraction_bits)


def floor_log2(x: Fraction) -> int:
    """Return the exponent of the leading bit of x, which is not 0."""
    x = abs(x)
    guess = x.numerator.bit_length() - x.denominator.bit_length()
    return guess if Fraction(2) ** guess <= x else guess - 1


def _fractions(values: np.ndarray) -> list[Fraction]:
    if not np.isfinite(values).all():
        raise ValueError(
            "got a word that is infinite or NaN, expected finite words: an element of a or b is beyond the range of the word "
            "format; scale a or b"
        )
    return [Fraction(float(v)) for v in values.ravel()]


def _split_operand(run, operand: np.ndarray, axis: int) -> SplitOperand:
    """Return an operand with its words, in rational numbers."""
    value = np.array([Fraction(float(v)) for v in operand.ravel()], object).reshape(operand.shape)
    words = [np.array(word, object).reshape(operand.shape) for word in exact_words(run, operand, axis)]
    if run.row.kind != "words":
        return SplitOperand(value, words, np.zeros(operand.shape, bool), None)
    threshold = overflow_threshold(run.word_format)
    beyond = np.abs(run.equilibrated()[0 if axis == 1 else 1].astype(np.float64)) >= threshold
    return SplitOperand(value, words, beyond, full_bits(run.word_format, run.row.words, run.row.rounding))


def exact_words(run, operand: np.ndarray, axis: int) -> list[list[Fraction]]:
    """Return a vector's words as rational numbers in the operand's own units, indexed by word and element."""
    if run.row.kind != "words":
        return _integer_words(run, operand, axis)
    equilibrated = run.equilibrated()
    exponents = equilibrated[2 if axis == 1 else 3]
    undo = Fraction(1) if exponents is None else Fraction(2) ** -int(exponents[0])
    words = run.words()[0 if axis == 1 else 1]
    return [
        [w * undo * Fraction(2) ** (-j * run.scale) for w in _fractions(tcm.decode(bits, run.word_format))]
        for j, bits in enumerate(words)
    ]


def _integer_words(run, operand: np.ndarray, axis: int) -> list[list[Fraction]]:
    row = run.row
    if row.kind == "quantised":
        found = integer_words.quantise(operand, row.words, run.word_format)
        return [[Fraction(s) * w for w in _fractions(words.astype(np.float64))] for words, s in found]
    if row.modular:
        whole, exponents = integer_words.integers_below(
            operand, axis, integer_words.residue_bits(row.moduli, run.a.shape[1])
        )
        return [[Fraction(int(w)) * Fraction(2) ** int(exponents[0]) for w in whole.ravel()]]
    slices, exponents = integer_words.slice_operand(operand, axis, row)
    unit = int(exponents[0]) - integer_words.top_exponent(row)
    return [
        [w * Fraction(2) ** (unit - row.slice_bits * j) for w in _fractions(word.astype(np.float64))]
        for j, word in enumerate(slices)
    ]


# -- stages 4 and 5 ------------------------------------------------------------------------------------------------------
def _core_stages(run, terms: Fraction, c: Fraction) -> tuple[Fraction, Fraction]:
    """Return the values of the stages "alignment" and "core"."""
    if run.row.kind != "words":
        return _integer_core(run, terms, c)
    rows, columns = run.equilibrated()[2:]
    seed, last, undo = (c if run.c is not None else None), Fraction(0), Fraction(1)
    if rows is not None:
        seed, last, undo = None, c, Fraction(2) ** -int(rows[0] + columns[0])
    values = []
    for core in (unrounded_engine(run.engine), run.engine):
        if core is None or run.a.shape[1] == 0:
            values.append(terms)
            continue
        arithmetic = _ExactOutside(core, run.row.order)
        words_a, words_b = run.words()
        values.append(combine(run.row, run.scale, words_a, words_b, seed, arithmetic) * undo + last)
    return values[0], values[1]


def _integer_core(run, terms: Fraction, c: Fraction) -> tuple[Fraction, Fraction]:
    """Return both stages for integer cores, which are exact, or for quantised words on a floating-point core."""
    if not isinstance(run.word_format, Format):
        return terms, terms
    words_a, words_b = (integer_words.quantise(x, run.row.words, run.word_format) for x in (run.a, run.b))
    core = c
    for i, j in run.row.products:
        (x, s), (y, t) = words_a[i], words_b[j]
        core += Fraction(s) * Fraction(t) * Fraction(float(np.asarray(run.engine.gemm(x, y))[0, 0]))
    return terms, core


def unrounded_engine(engine: Engine) -> MatrixEngine | None:
    """Return the engine with results wide enough to hold every aligned sum, None if the core has no alignment."""
    spec = accumulator_of(engine)
    unrounded = None if spec is None else spec.unrounded()
    if unrounded is None:
        return None
    a, b = engine.formats[:2]
    return MatrixEngine(unrounded, a_format=a, b_format=b, c_format=WIDE, d_format=WIDE, k=engine.k)


class _ExactOutside(EngineArithmetic):
    """`_ExactOutside` runs chains on an engine and the rest in rational numbers; words are encodings, values fractions."""

    def __init__(self, engine: Engine, order: str | int):
        super().__init__(engine, order, (1, 1))

    def chain(self, pairs, seed):
        a, b = self._joined(pairs)
        bits = None
        if seed is not None:
            bits = np.array([[encode_fraction(seed, self.engine.formats[2])]], self.engine.formats[2].container)
        return self._value(self._run(a, b, bits))

    def _run(self, a, b, bits):
        if self.engine.formats[3] is not WIDE:
            return self.engine.gemm_bits(a, b, bits)
        pad = -a.shape[1] % self.engine.k
        zero = np.zeros((1, 1), WIDE.container) if bits is None else bits
        return tcm.reference.mma_bits(self.engine, np.pad(a, ((0, 0), (0, pad))), np.pad(b, ((0, pad), (0, 0))), zero)

    def elementwise(self, weighted):
        total, step = Fraction(0), self.engine.k
        for start in range(0, weighted[0][0][0].shape[1], step):
            for (a, b), exponent in weighted:
                part = self.chain([(a[:, start : start + step], b[start : start + step])], None)
                total += self.scale(part, exponent)
        return total

    banded, promoted = Arithmetic.banded, Arithmetic.promoted

    def scaled_input(self, value, scale):
        """Scale an addend: exactly for the format WIDE, otherwise truncated at the smallest number of the unit's format."""
        fmt = self.engine.formats[2]
        if fmt is WIDE:
            return self.scale(value, -scale)
        bits = np.array([encode_fraction(value, fmt)], fmt.container)
        return self._value_of(int(self.engine.scaled_input(bits, scale)[0]), fmt)

    def scale(self, value, exponent):
        return value * Fraction(2) ** exponent

    def add(self, x, y):
        return x + y

    def _value(self, bits: np.ndarray) -> Fraction:
        return self._value_of(int(bits[0, 0]), self.engine.formats[3])

    @staticmethod
    def _value_of(bits: int, fmt: Format) -> Fraction:
        decoded = fmt.decode_exact(bits)
        if decoded.kind != "finite":
            raise ValueError(
                "a sum of the engine overflows or is NaN, expected finite sums to attribute the error; scale a or b"
            )
        magnitude = decoded.significand * Fraction(2) ** decoded.exponent
        return -magnitude if decoded.negative else magnitude


def encode_fraction(x: Fraction, fmt: Format) -> int:
    """Return the encoding of a dyadic rational rounded to nearest, ties to even; raise ValueError for other numbers."""
    if x.denominator & (x.denominator - 1):
        raise ValueError(f"got {x}, expected a dyadic rational (an integer over a power of two)")
    return round_to_bits(x < 0, abs(x.numerator), -(x.denominator.bit_length() - 1), fmt)
