"""Judges recommendations and headlines of evaluate and compare on drawn inputs by integers alone.

Nothing of the package's arithmetic is used: operands become integers times a power of two, products of them are exact, and a
method's errors are fractions. What is judged is the conclusion, not the sentence: is what is recommended as accurate as FP32 on
each of the given products, and are there enough results to say so?
"""

import math
from fractions import Fraction

import numpy as np

#: What verdicts state (docs/answers.md): bits behind FP32 in the norm, in the largest error over |A||B|, and the unit roundoff.
NORM, LARGEST, FLOOR = 0.75, 1.5, Fraction(1, 2**24)


def integers(x):
    """(integer matrix as lists, exponent): every finite element is the integer times 2^exponent."""
    flat = [float(v).as_integer_ratio() for v in np.asarray(x, np.float64).ravel()]
    exponent = -max((den.bit_length() - 1 for _, den in flat), default=0)
    whole = [num * (2**-exponent // den) for num, den in flat]
    columns = x.shape[1]
    return [whole[i : i + columns] for i in range(0, len(whole), columns)], exponent


class Product:
    """The exact product of two matrices, and the errors of computed ones."""

    def __init__(self, a, b):
        (x, e), (y, f) = integers(a), integers(b)
        scale, columns = Fraction(2) ** (e + f), list(zip(*y, strict=True))
        self.exact = [[scale * sum(u * v for u, v in zip(row, column, strict=True)) for column in columns] for row in x]
        self.sizes = [
            [scale * sum(abs(u * v) for u, v in zip(row, column, strict=True)) for column in columns] for row in x
        ]
        self.results = len(x) * len(columns)

    def errors(self, computed):
        """(squared relative error in the Frobenius norm, largest error over |A||B|); None where they are infinite."""
        if not np.isfinite(np.asarray(computed, np.float64)).all():
            return None, None
        rows = [[Fraction(float(v)) for v in row] for row in computed]
        gaps = [[abs(c - x) for c, x in zip(*pair, strict=True)] for pair in zip(rows, self.exact, strict=True)]
        total = sum(x * x for row in self.exact for x in row)
        lost = sum(g * g for row in gaps for g in row)
        norm = None if lost and not total else lost / total if total else Fraction(0)
        shares = [g / s for pair in zip(gaps, self.sizes, strict=True) for g, s in zip(*pair, strict=True) if s]
        return norm, max(shares, default=Fraction(0))


def bits(fraction, squared=False):
    """-log2 of an error, at most 24; of an infinite one -inf."""
    if fraction is None:
        return -math.inf
    fraction = max(fraction, FLOOR**2 if squared else FLOOR)
    found = math.log2(fraction.denominator) - math.log2(fraction.numerator)
    return found / 2 if squared else found


def behind(product, computed, baseline):
    """(bits behind in the norm, in the largest error): of two FP32 products of one input up to 0.75 and 1.5."""
    mine, theirs = product.errors(computed), product.errors(baseline)
    return bits(theirs[0], True) - bits(mine[0], True), bits(theirs[1]) - bits(mine[1])


def worst_behind(products, computed, baselines):
    """The largest of several products, each by itself."""
    found = [behind(*each) for each in zip(products, computed, baselines, strict=True)]
    return max(norm for norm, _ in found), max(largest for _, largest in found)


def reaches(products, computed, baselines, slack=1e-6):
    """Whether a method is within what two FP32 products differ by, on every one of the products."""
    norm, largest = worst_behind(products, computed, baselines)
    return norm <= NORM + slack and largest <= LARGEST + slack
