"""Exact products and errors in rational numbers, by NumPy's casts and Python's fractions alone."""

import math
import re
from fractions import Fraction

import numpy as np


def exact_product(a, b):
    """A B as rows of Fractions; None where an operand of the result is not finite."""
    left, right = ([[_fraction(x) for x in row] for row in matrix.tolist()] for matrix in (a, b.T))
    return [[_dot(row, column) for column in right] for row in left]


def _dot(row, column):
    return (
        None if None in row or None in column else sum((x * y for x, y in zip(row, column, strict=True)), Fraction(0))
    )


def _fraction(x):
    return Fraction(x) if math.isfinite(x) else None


def sizes_of(a, b):
    """|A||B| as rows of Fractions, of the finite elements."""
    return exact_product(*(np.where(np.isfinite(x), np.abs(x.astype(np.float64)), 0.0) for x in (a, b)))


def places_fit(text, a, b):
    """Whether "A holds 2 elements that are not finite, the first A[0, 3] = nan; B holds ..." is true and complete."""
    told = {}
    for name, count, again, i, j, value in re.findall(
        r"([AB]) holds (\d+) elements? that (?:is|are) not finite, (?:the first )?([AB])\[(\d+), (\d+)\] = (\S+?)(?:;|$)",
        text,
    ):
        told[name] = (int(count), int(i), int(j), value, name == again)
    true = {}
    for name, x in (("A", a), ("B", b)):
        places = np.argwhere(~np.isfinite(x.astype(np.float64)))
        if len(places):
            i, j = (int(place) for place in places[0])
            true[name] = (len(places), i, j, f"{float(x[i, j]):g}", True)
    return told == true


class Errors:
    """Errors of a computed product against an exact one, over |A||B|: what a sentence may say of it."""

    def __init__(self, exact, sizes, computed):
        values = np.asarray(computed).astype(np.float64).tolist()
        norm, total, size_norm, worst, wrong = Fraction(0), Fraction(0), Fraction(0), 0.0, 0
        self.elements = []
        for row, truth_row, size_row in zip(values, exact, sizes, strict=True):
            errors = []
            for value, truth, size in zip(row, truth_row, size_row, strict=True):
                if truth is None:
                    errors.append(None)
                elif not math.isfinite(value):
                    wrong += 1
                    errors.append(math.inf)
                else:
                    error = abs(Fraction(value) - truth)
                    norm += error * error
                    total += truth * truth
                    size_norm += size * size
                    share = math.inf if error and not size else float(error / size) if error else 0.0
                    worst = max(worst, share)
                    errors.append(share)
            self.elements.append(errors)
        self.frobenius = math.inf if wrong else _root_ratio(norm, total)
        self.normwise = math.inf if wrong else _root_ratio(norm, size_norm)
        self.componentwise = math.inf if wrong else worst
        self.bits = math.inf if self.frobenius == 0 else -math.log2(self.frobenius)


def _root_ratio(x, y):
    """sqrt(x / y) as a float, whatever the sizes; 0/0 is 0."""
    if x == 0:
        return 0.0
    if y == 0:
        return math.inf
    ratio = x / y
    shift = (ratio.numerator.bit_length() - ratio.denominator.bit_length()) // 2
    scaled = ratio / Fraction(4) ** shift
    return math.ldexp(math.sqrt(scaled.numerator / scaled.denominator), shift) if shift > -1070 else 5e-324
