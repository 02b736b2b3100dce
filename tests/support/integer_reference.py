"""The integer recovery methods in plain integers and fractions, one number at a time: slow, and what the kernels must equal.

Numbers are floats, Fractions or ints. A common exponent e of some numbers is the smallest with all |x| < 2^e (0 for zeros). x
is split relative to it; products of words are exact integers; only joining rounds, to nearest with ties to even.
"""

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

from tensorcore_models.formats import FORMATS


def common_exponent(numbers: Iterable[float]) -> int:
    """The smallest e with |x| < 2^e for all finite numbers, 0 if they are all 0."""
    return _exponent(max((abs(Fraction(x)) for x in numbers if math.isfinite(x)), default=Fraction(0)))


def _exponent(x: Fraction) -> int:
    """The smallest e with x < 2^e, for x not negative; 0 for 0."""
    if x == 0:
        return 0
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e + 1 if x >= _power(e) else e


def truncated_slices(x: float, exponent: int, slices: int, bits: int) -> list[int]:
    """Digits d_j with x ~ 2^e sum of d_j 2^(-bits (j + 1)), j from 0, each with the sign of x and at most `bits` bits."""
    left, digits = Fraction(x) / _power(exponent), []
    for _ in range(slices):
        left *= 1 << bits
        digits.append(math.trunc(left))
        left -= digits[-1]
    return digits


def balanced_slices(x: float, exponent: int, slices: int) -> list[int]:
    """Digits in [-128, 127], but for the first, of RN(x 2^(8 slices - 2 - e)) to the base 256, the most significant first."""
    whole = round(Fraction(x) * _power(8 * slices - 2 - exponent))
    digits = []
    for _ in range(slices - 1):
        digits.append(balanced_residue(whole, 256))
        whole = (whole - digits[-1]) // 256
    return [whole, *digits[::-1]]


def integer_below(x: float, exponent: int, bits: int) -> int:
    """RZ(x 2^(bits - e)), below 2^bits in magnitude."""
    return math.trunc(Fraction(x) * _power(bits - exponent))


def balanced_residue(n: int, p: int) -> int:
    """The integer in [-p/2, p/2) congruent to n modulo p."""
    residue = n % p
    return residue - p if 2 * residue >= p else residue


def chinese_remainder(residues: Sequence[int], moduli: Sequence[int]) -> int:
    """The integer in [-M/2, M/2) with those residues, M the product of the pairwise coprime moduli."""
    product = math.prod(moduli)
    total = sum(r * pow(product // p, -1, p) * (product // p) for r, p in zip(residues, moduli, strict=True))
    return balanced_residue(total, product)


def rounded(x: Fraction | int, fmt: str = "fp64") -> Fraction | float:
    """x rounded to nearest even in a format; an infinity where it is too large for that."""
    row, x = FORMATS[fmt], Fraction(x)
    unit = _power(max(_exponent(abs(x)) - row.precision, row.quantum_exponent))
    value = round(x / unit) * unit
    if abs(value) > Fraction(row.max_finite):
        return math.inf if value > 0 else -math.inf
    return value


def joined_slices(products: Sequence[int], exponents: Sequence[int], exponent: int) -> Fraction | float:
    """RN(2^exponent s) with s the sum of product_j 2^exponent_j, rounded to FP64 after each addition, in order."""
    total = Fraction(0)
    for product, e in zip(products, exponents, strict=True):
        total = Fraction(rounded(total + product * _power(e)))
    return rounded(total * _power(exponent))


def joined_residues(residues: Sequence[int], moduli: Sequence[int], exponent: int) -> Fraction | float:
    """The integer with those residues, rounded once to FP64; times 2^exponent, rounded where that leaves FP64's range."""
    return rounded(Fraction(rounded(chinese_remainder(residues, moduli))) * _power(exponent))


def quantised_words(numbers: Sequence[float], words: int, limit: int, fmt: str) -> list[tuple[list[int], Fraction]]:
    """Words of numbers of a format (fp32 or fp64) and their FP32 scales; each quantises what the ones before it left.

    s = RN32(max |r| / limit), or 1 where that is 0; word = clamp(RN(RN(r / s))); r becomes RN(r - RN(s word)).
    """
    left, found = [Fraction(x) for x in numbers], []
    for _ in range(words):
        largest = max(map(abs, left), default=Fraction(0))
        scale = Fraction(rounded(Fraction(rounded(largest / limit)), "fp32")) or Fraction(1)
        word = [max(-limit, min(limit, round(Fraction(rounded(r / scale, fmt))))) for r in left]
        left = [Fraction(rounded(r - Fraction(rounded(scale * w, fmt)), fmt)) for r, w in zip(left, word, strict=True)]
        found.append((word, scale))
    return found


def joined_quantised(products: Sequence[int], factors: Sequence[Fraction]) -> Fraction | float:
    """FP32 sum, from 0 and in order, of RN(RN(product) factor)."""
    total = Fraction(0)
    for product, factor in zip(products, factors, strict=True):
        part = Fraction(rounded(Fraction(rounded(product, "fp32")) * factor, "fp32"))
        total = Fraction(rounded(total + part, "fp32"))
    return total


def _power(exponent: int) -> Fraction:
    """2^exponent."""
    return Fraction(2) ** exponent
