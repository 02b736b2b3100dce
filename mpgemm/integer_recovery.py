"""Recovery methods on integer matrix engines: slices, residues, and repeated quantisation. See the rows for their formulas.

Every int8 product is exact: k is cut so that no int32 sum can overflow, and partial sums are added in int64 outside. Rows of A
and columns of B that hold infinities or NaN give NaN (such elements count as overflow).
"""

import math
from dataclasses import dataclass

import numpy as np

import tensorcore_models as tcm
from mpgemm.methods import RecoveryMethod
from mpgemm.recovery import RangeCounts
from tensorcore_models.combine import sum_to_odd
from tensorcore_models.engine import Engine
from tensorcore_models.formats import Format
from tensorcore_models.operands import operand_bits

INT32_MAX = (1 << 31) - 1
#: Mixed-radix digits in one limb: six moduli of 8 bits stay below 2^LIMB_BITS.
DIGITS_PER_LIMB = 6
LIMB_BITS = 48


@dataclass(eq=False)
class IntegerRun:
    """A method of integer or quantised words, bound to an engine and operands."""

    row: RecoveryMethod
    engine: Engine
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray | None

    def __post_init__(self):
        self.finite_rows = np.isfinite(self.a).all(axis=1)
        self.finite_columns = np.isfinite(self.b).all(axis=0)
        self.clean_a = np.where(np.isfinite(self.a), self.a, 0)
        self.clean_b = np.where(np.isfinite(self.b), self.b, 0)

    @property
    def word_format(self):
        """The engine's operand format."""
        return self.engine.formats[0]

    @property
    def dtype(self) -> np.dtype:
        """Type of the result."""
        wide = self.row.target == "fp64" or (self.row.target == "input" and np.float64 in (self.a.dtype, self.b.dtype))
        return np.dtype(np.float64 if wide else np.float32)

    def counts(self) -> tuple[RangeCounts, RangeCounts]:
        """Elements of A and of B that are not finite (overflow), or of which no word keeps anything (underflow)."""
        return self._counts(self.a, self.clean_a, 1), self._counts(self.b, self.clean_b, 0)

    def _counts(self, x: np.ndarray, clean: np.ndarray, axis: int) -> RangeCounts:
        return RangeCounts(
            int(np.count_nonzero(~np.isfinite(x))), int(np.count_nonzero((x != 0) & (self._kept(clean, axis) == 0)))
        )

    def _kept(self, x: np.ndarray, axis: int) -> np.ndarray:
        """x as the words hold it, up to positive factors: zero where nothing is left of an element."""
        if self.row.kind == "residues":
            return integers_below(x, axis, residue_bits(self.row.moduli, self.a.shape[1]))[0]
        if self.row.kind == "quantised":
            words = [word for word, _ in quantise(x, self.row.words, self.word_format)]
        else:
            words = slice_operand(x, axis, self.row)[0]
        return sum((np.abs(word.astype(np.float64)) for word in words), np.zeros(x.shape))

    def product(self) -> np.ndarray:
        """The result of the method, shape (m, n); rows and columns with operands that are not finite are NaN."""
        run = {"integer_slices": self._slices, "residues": self._residues, "quantised": self._quantised}[self.row.kind]
        shape = (self.a.shape[0], self.b.shape[1])
        value = run() if self.a.shape[1] else np.zeros(shape, self.dtype)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            value = value.astype(self.dtype)
            value[~self.finite_rows] = np.nan
            value[:, ~self.finite_columns] = np.nan
            return value if self.c is None else value + self._checked(self.c)

    def _checked(self, given: np.ndarray) -> np.ndarray:
        c = given.astype(self.dtype)
        if ((c != given) & ~np.isnan(given)).any():
            raise ValueError(f"c has values that {self.dtype.name}, in which it is added, lacks; round it first")
        return c

    # -- slices ----------------------------------------------------------------------------------------------------------
    def _slices(self) -> np.ndarray:
        words_a, rows = slice_operand(self.clean_a, 1, self.row)
        words_b, columns = slice_operand(self.clean_b, 0, self.row)
        bits, top = self.row.slice_bits, 2 * top_exponent(self.row)
        products = [exact_product(self.engine, words_a[i], words_b[j]) for i, j in self.row.products]  # smallest first
        levels = [i + j for i, j in self.row.products]
        total = np.empty(products[0].shape)
        for block in _row_blocks(total.shape):
            sums, before = products[0][block].astype(np.float64), levels[0]
            for part, level in zip(products[1:], levels[1:], strict=True):
                if before != level:
                    sums *= 2.0 ** (bits * (level - before))
                sums += part[block]
                before = level
            total[block] = sums
        return _times_powers(total, rows - top, columns)

    # -- residues --------------------------------------------------------------------------------------------------------
    def _residues(self) -> np.ndarray:
        moduli = ordered_moduli(self.row.moduli)
        bits = residue_bits(moduli, self.a.shape[1])
        whole_a, rows = integers_below(self.clean_a, 1, bits)
        whole_b, columns = integers_below(self.clean_b, 0, bits)
        words = zip(residue_words(whole_a, moduli), residue_words(whole_b, moduli), strict=True)
        products = [exact_product(self.engine, x, y) for x, y in words]
        value = np.empty(products[0].shape)
        for block in _row_blocks(value.shape):
            residues = [balanced(product[block], p) for product, p in zip(products, moduli, strict=True)]
            value[block] = integers_to_float(*mixed_radix(residues, moduli))
        return _times_powers(value, rows, columns)

    # -- quantised words -------------------------------------------------------------------------------------------------
    def _quantised(self) -> np.ndarray:
        words_a = quantise(self.clean_a, self.row.words, self.word_format)
        words_b = quantise(self.clean_b, self.row.words, self.word_format)
        total = np.zeros((self.a.shape[0], self.b.shape[1]), np.float32)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for i, j in self.row.products:
                (x, s), (y, t) = words_a[i], words_b[j]
                if isinstance(self.word_format, Format):
                    part = np.array(self.engine.gemm(x, y), np.float32)
                else:
                    part = exact_product(self.engine, x, y).astype(np.float32)
                part *= np.float32(s) * np.float32(t)
                total += part
        return total


def exact_product(engine: Engine, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of two int8 (int4) matrices on an engine with int32 sums, cut so that none can overflow.

    Parameters
    ----------
    engine : Engine
        With int32 results.
    a, b : ndarray of int, shapes (m, k) and (k, n)

    Returns
    -------
    ndarray, shape (m, n)
        int32 where one cut does, else int64.
    """
    formats = engine.formats
    largest = max(1, _largest_magnitude(a) * _largest_magnitude(b))
    length = max(engine.k, INT32_MAX // largest // engine.k * engine.k)
    parts = (
        engine.gemm_bits(
            operand_bits(a[:, start : start + length], formats[0], None, "a"),
            operand_bits(b[start : start + length], formats[1], None, "b"),
        ).view(np.int32)
        for start in range(0, max(1, a.shape[1]), length)
    )
    return next(parts) if a.shape[1] <= length else sum(parts, np.zeros((a.shape[0], b.shape[1]), np.int64))


def _largest_magnitude(x: np.ndarray) -> int:
    return max(int(x.max(initial=0)), -int(x.min(initial=0)))


# -- slices --------------------------------------------------------------------------------------------------------------
def top_exponent(row: RecoveryMethod) -> int:
    """Exponent of the first slice's unit below the common exponent: 7 for 7-bit slices, 6 for the four 8-bit segments."""
    return row.slice_bits if row.slice_bits == 7 else row.slice_bits - 2


def common_exponents(x: np.ndarray, axis: int) -> np.ndarray:
    """e for each row (axis 1) or column (axis 0) with max |x| < 2^e; 0 for zeros.

    Parameters
    ----------
    x : ndarray
    axis : int
        1: of each row; 0: of each column.
    """
    largest = np.max(np.abs(x), axis=axis, initial=0.0).astype(np.float64)
    return np.where(largest > 0, np.frexp(largest)[1], 0)


def slice_operand(x: np.ndarray, axis: int, row: RecoveryMethod) -> tuple[list[np.ndarray], np.ndarray]:
    """Slices of a matrix on common exponents.

    Parameters
    ----------
    x : ndarray
        Finite.
    axis : int
        1: rows share an exponent; 0: columns do.
    row : RecoveryMethod

    Returns
    -------
    slices : list of int8 arrays
        x ~ 2^e sum_j slice_j 2^-(top + bits j) with top of :func:`top_exponent`.
    exponents : ndarray of int
        e of each row or column.
    """
    exponents = common_exponents(x, axis)
    shift = exponents[:, None] if axis == 1 else exponents
    slices = [np.empty(x.shape, np.int8) for _ in range(row.words)]
    for block in _row_blocks(x.shape):
        scaled = np.ldexp(x[block].astype(np.float64), -shift[block] if axis == 1 else -shift)
        if row.slice_bits == 8:
            for word, digit in zip(slices, _balanced_digits(scaled, row.words), strict=True):
                word[block] = digit
            continue
        for word in slices:  # truncation: every slice has the sign of x and at most 7 bits
            scaled *= 2.0**row.slice_bits
            digit = np.trunc(scaled)
            scaled -= digit
            word[block] = digit
    return slices, exponents


def _balanced_digits(scaled: np.ndarray, words: int) -> list[np.ndarray]:
    """Digits in [-128, 127] of RN(scaled 2^(8 words - 2)), most significant first; |scaled| < 1."""
    whole = np.rint(np.ldexp(scaled, 8 * words - 2)).astype(np.int64)
    digits = []
    for _ in range(words - 1):
        digit = ((whole + 128) & 255) - 128
        digits.append(digit.astype(np.int8))
        whole = (whole - digit) >> 8
    return [whole.astype(np.int8), *digits[::-1]]


def _times_powers(x: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """x 2^(rows + columns), rounded where it leaves FP64's range; |x| is 0 or from 2^-220 to 2^200, x is overwritten."""
    if max(np.abs(rows).max(initial=0), np.abs(columns).max(initial=0)) <= 400:  # exact
        x *= np.ldexp(1.0, rows)[:, None]
        x *= np.ldexp(1.0, columns)
        return x
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(x, rows[:, None] + columns)


#: Elements that the steps of residue arithmetic take at a time: they stay in the second-level cache.
_BLOCK = 1 << 15


def _row_blocks(shape: tuple[int, ...]):
    """Slices of rows of about _BLOCK elements, for a matrix of that shape."""
    step = max(1, _BLOCK // max(shape[1], 1))
    return (slice(i, i + step) for i in range(0, shape[0], step))


# -- residues ------------------------------------------------------------------------------------------------------------
def residue_words(whole: np.ndarray, moduli: list[int]) -> list[np.ndarray]:
    """The balanced residues of a matrix of integers modulo each modulus, as int8."""
    words = [np.empty(whole.shape, np.int8) for _ in moduli]
    for block in _row_blocks(whole.shape):
        for word, p in zip(words, moduli, strict=True):
            word[block] = balanced(whole[block], p)
    return words


def ordered_moduli(moduli: tuple[int, ...]) -> list[int]:
    """The even modulus first: balanced mixed-radix digits then reach from -M/2 to M/2 - 1."""
    return sorted(moduli, key=lambda p: p % 2)


def residue_bits(moduli, k: int) -> int:
    """The largest beta (62 at most) with 2 k 2^(2 beta) < M: products of integers up to 2^beta stay below M/2.

    Raises
    ------
    ValueError
        If the moduli leave no bit.
    """
    product = math.prod(moduli)
    beta = min(62, ((product - 1) // (2 * max(k, 1))).bit_length() // 2)
    while beta >= 0 and 2 * max(k, 1) << (2 * beta) >= product:
        beta -= 1
    if beta < 1:
        raise ValueError(f"moduli {tuple(moduli)} (product {product}) are too few for k = {k}: take more")
    return beta


def integers_below(x: np.ndarray, axis: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """(RZ(x 2^(bits - e)), e - bits) with the common exponents e: integers up to 2^bits, and what their units stand for."""
    exponents = common_exponents(x, axis) - bits
    shift = exponents[:, None] if axis == 1 else exponents
    whole = np.trunc(np.ldexp(x.astype(np.float64), -shift))
    return whole.astype(np.int32 if bits <= 30 else np.int64), exponents


def balanced(x: np.ndarray, p: int) -> np.ndarray:
    """The residue of x modulo p that lies in [-p/2, p/2)."""
    residue = modulo(x, p)
    return residue - p * (residue > (p - 1) // 2).astype(residue.dtype)


def modulo(x: np.ndarray, p: int) -> np.ndarray:
    """x mod p in [0, p): NumPy divides by one number with vector instructions, but takes remainders one by one."""
    return x - p * (x // p)


def mixed_radix(residues: list[np.ndarray], moduli: list[int]) -> tuple[list[np.ndarray], list[int]]:
    """Garner's algorithm with balanced digits: the integer in [-M/2, M/2) with those residues.

    Returns
    -------
    limbs : list of int64 arrays
    radices : list of int
        The integer is limbs[0] + radices[0] (limbs[1] + radices[1] (...)).
    """
    digits: list[np.ndarray] = []
    for i, p in enumerate(moduli):
        rest = residues[i].astype(np.int32)  # below 20 * 2^15 in magnitude throughout
        for j, digit in enumerate(digits):
            rest -= digit * (math.prod(moduli[:j]) % p)
        inverse = pow(math.prod(moduli[:i]) % p, -1, p) if i else 1
        digits.append(balanced(modulo(rest, p) * inverse, p))
    limbs, radices = [], []
    for start in range(0, len(digits), DIGITS_PER_LIMB):
        stop = start + DIGITS_PER_LIMB
        limb = np.zeros(digits[0].shape, np.int64)
        for digit, q in zip(digits[start:stop][::-1], moduli[start:stop][::-1], strict=True):
            limb = limb * q + digit
        limbs.append(limb)
        radices.append(math.prod(moduli[start:stop]))
    return limbs, radices


def integers_to_float(limbs: list[np.ndarray], radices: list[int]) -> np.ndarray:
    """The integers of :func:`mixed_radix`, each rounded once to FP64."""
    digits = [limbs[-1]]
    for limb, radix in zip(limbs[-2::-1], radices[-2::-1], strict=True):
        digits = _times_plus(digits, radix, limb)
    return _rounded_digits(digits)


def _times_plus(digits: list[np.ndarray], factor: int, addend: np.ndarray) -> list[np.ndarray]:
    """digits * factor + addend for integers in digits of 2^LIMB_BITS, the lowest first, within half of that on either side.

    `factor` and the addends are below 2^LIMB_BITS; products are formed from halves, so that no int64 overflows.
    """
    half = LIMB_BITS // 2
    mask = (1 << half) - 1
    factor_high, factor_low = factor >> half, factor & mask
    found, carry = [], addend
    for digit in digits:
        high, low = digit >> half, digit & mask
        middle = high * factor_low + low * factor_high
        carry, rest = _carried(carry + low * factor_low + ((middle & mask) << half))
        found.append(rest)
        carry = carry + high * factor_high + (middle >> half)
    carry, rest = _carried(carry)
    found.append(rest)
    return [*found, carry] if carry.any() else found


def _carried(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(q, r) with x = q 2^LIMB_BITS + r and r within half of 2^LIMB_BITS on either side."""
    quotient = (x + (1 << (LIMB_BITS - 1))) >> LIMB_BITS
    return quotient, x - (quotient << LIMB_BITS)


def _rounded_digits(digits: list[np.ndarray]) -> np.ndarray:
    """Integers in digits of 2^LIMB_BITS, rounded once to FP64.

    Three digits: the two higher ones add up to a double and its exact error; that error with the lowest digit, rounded to odd,
    is far below the last place of the double, so that the last addition rounds correctly (Boldo and Melquiond 2008).
    """
    if len(digits) > 3:
        total = digits[-1].astype(object)
        for digit in digits[-2::-1]:
            total = (total << LIMB_BITS) + digit.astype(object)
        return total.astype(np.float64)
    parts = [np.ldexp(digit.astype(np.float64), LIMB_BITS * i) for i, digit in enumerate(digits)]
    if len(parts) < 3:
        return parts[0] if len(parts) == 1 else parts[1] + parts[0]
    total = parts[2] + parts[1]
    error = parts[1] - (total - parts[2])
    return total + sum_to_odd(error, parts[0])


# -- quantised words -----------------------------------------------------------------------------------------------------
def quantise(x: np.ndarray, words: int, fmt) -> list[tuple[np.ndarray, float]]:
    """Words and their FP32 scales: each word is the quantised residual of what the ones before it left.

    Residuals are formed in the type of x. Floating-point words lie in [-1, 1], integer ones in [-q_max, q_max].
    """
    floating = isinstance(fmt, Format)
    largest_word = 1 if floating else fmt.maximum
    found, residual = [], x.copy()
    for _ in range(words):
        largest = max(float(residual.max(initial=0.0)), -float(residual.min(initial=0.0)))
        scale = np.float32(largest / largest_word) or np.float32(1)
        factor = x.dtype.type(scale)
        word = np.empty(x.shape, np.float32 if floating else np.int8)
        for block in _row_blocks(x.shape):
            with np.errstate(over="ignore", under="ignore"):
                quotient = residual[block] / factor
            if floating:
                word[block] = tcm.decode(tcm.encode(quotient, fmt), fmt, np.float32)
            else:
                np.rint(quotient, out=quotient)
                word[block] = np.clip(quotient, -largest_word, largest_word, out=quotient)
            residual[block] -= factor * word[block].astype(x.dtype)
        found.append((word, float(scale)))
    return found
