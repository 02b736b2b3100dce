"""This module predicts unwanted functions of single results: zeros, relu, clip, magnitude, fixed-point grid."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import Failure, Finding

UNWRITTEN = "0 in all wrong elements: the kernel never wrote them, skipped a tile, or read zeros"
RELU = "0 in place of negative results: a relu that the test does not state"
#: Statements that only say that results are 0; other statements that predict zeros say less.
ZEROS = (UNWRITTEN, RELU)
#: Least width of a grid in units of a right kernel's errors; one result in about as many is that near to a tie.
COARSE = 64.0


def zeros(f: Failure) -> Iterator[Finding]:
    """Yield results that are 0 in all wrong elements, or in negative ones (a relu)."""
    wrong = f.wrong[f.rows, f.columns]
    if f.got[wrong].any():
        return
    negative = f.exact < 0
    relu = (
        not (f.wrong & ~negative).any()
        and not f.out[negative].any()
        and np.count_nonzero(f.out) > np.count_nonzero(negative) / 4
    )
    yield f.finding(np.where(wrong, 0.0, f.true), RELU if relu else UNWRITTEN)


def clipped(f: Failure) -> Iterator[Finding]:
    """Yield results of a clamp: all wrong elements have one value, or its negative."""
    got = np.abs(f.got[f.wrong[f.rows, f.columns]])
    limit = float(got.max(initial=0.0))
    if limit > 0 and np.mean(got == limit) > 0.9:
        yield f.finding(np.clip(f.true, -limit, limit), f"results are clipped at {limit:g}", 1.0, 2.0, 1)


def magnitudes(f: Failure) -> Iterator[Finding]:
    """Yield results without their sign."""
    yield f.finding(np.abs(f.true), "results are magnitudes: the sign of negative ones is lost")


def fixed_point(f: Failure) -> Iterator[Finding]:
    """Yield results that all are multiples of a power of two coarser than their format's own grid."""
    got = f.out[np.isfinite(f.out) & (f.out != 0)]
    if got.size == 0:
        return
    fraction, exponent = np.frexp(got)
    whole = np.abs(np.ldexp(fraction, 53)).astype(np.int64)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # place of the last bit that is 1
    unit = math.ldexp(1.0, int((exponent - 53 + last).min()))
    if unit <= COARSE * float(np.median(f.usual)):
        return
    name = "whole numbers" if unit == 1 else f"multiples of {unit:g}"
    for change, how in ((np.rint, "rounded to"), (np.trunc, "cut to"), (np.floor, "rounded down to")):
        yield f.finding(change(f.true / unit) * unit, f"results are {how} {name}", 1.0, 2.0, 1)
