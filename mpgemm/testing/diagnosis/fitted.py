"""This module fits factors and offsets to a wrong result: one for all of it, or one for each row or column."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.diagnosis.along_k import scope
from mpgemm.testing.diagnosis.failure import Failure, Finding

#: Number of rows (columns) with a fitted number, and elements of each.
LINES, OF_LINE = 12, 24
#: Relative difference up to which two factors, or a factor and 1, count as equal.
APART = 2.0**-6
#: Least number of elements of a line with its own fitted number.
FEWEST = 4


def whole(f: Failure) -> Iterator[Finding]:
    """Yield findings of one number for every wrong result and the right ones of their place: factor, offset, alpha and beta.

    The fit is by least squares over a right kernel's errors.
    """
    with np.errstate(all="ignore"):
        weight, true, got = 1 / np.square(f.usual), f.true, f.got
        ratio = float(np.sum(weight * true * got) / np.sum(weight * np.square(true)))
        offset = float(np.sum(weight * (got - true)) / np.sum(weight))
        error = 1 / math.sqrt(float(np.sum(weight * np.square(true))) or 1.0)
    if math.isfinite(ratio) and ratio != 0:
        exponent, power = round(math.log2(abs(ratio))), ""
        if abs(math.log2(abs(ratio)) - exponent) < 1e-3:
            ratio, power = math.copysign(2.0**exponent, ratio), f" (2^{exponent})"
        text = f"a wrong scale: every result is {_shown(ratio, error)}{power} times the exact one"
        yield f.finding(ratio * f.true, text, 1 + abs(ratio), 2.0, 1)
    if math.isfinite(offset) and offset != 0:
        text = (
            f"one offset: every wrong result is {abs(offset):.6g} {'more' if offset > 0 else 'less'} than the exact one"
        )
        yield f.finding(f.true + offset, text, 1.0, 2.0, 1)
    if f.case.c is not None and not f.of_results and isinstance(f.added, np.ndarray):
        yield from _alpha_and_beta(f)


def _shown(value: float, error: float) -> str:
    """Return a fitted number with the digits that its standard error allows."""
    digits = 6 if error <= 0 else int(-math.log10(4 * error / abs(value)))
    return f"{value:.{min(max(digits, 2), 6)}g}"


def _alpha_and_beta(f: Failure) -> Iterator[Finding]:
    """Yield the finding of out = alpha A B + beta C with both fitted."""
    product, added = f.true - f.added, np.broadcast_to(f.added, f.true.shape)
    columns = np.column_stack([product, added]) / f.usual[:, None]
    squares = columns.T @ columns
    if not np.isfinite(squares).all() or np.linalg.cond(squares) > 1e10:
        return
    alpha, beta = (float(x) for x in np.linalg.solve(squares, columns.T @ (f.got / f.usual)))
    if not (math.isfinite(alpha) and math.isfinite(beta)) or abs(alpha - beta) < APART * abs(alpha):
        return  # a common factor has its own statement
    if abs(alpha - 1) < APART:
        rest = (f.got - f.true) / f.usual
        factor = 1 + float(np.sum(columns[:, 1] * rest)) / float(squares[1, 1])
        beta_out = 1 / f.case.ends.beta if f.case.ends is not None and f.case.ends.beta else 0
        if any(abs(factor - known) < APART for known in (-1, 0, 2, f.case.splits, beta_out)):
            return  # C subtracted, left out, added twice, added by each part or without beta has its own statement
        text = f"a wrong factor of C: {factor:.3g} times the right addend"
        yield f.finding(product + factor * added, text, 2.0, 2.0, 1)
        return
    if abs(beta - 1) < APART:
        if scope(f):
            return  # a few rows or columns have their own statements
        text = f"a wrong scale of the product: {alpha:.6g} times the exact one, C is unchanged"
        yield f.finding(alpha * product + added, text, 1 + abs(alpha), 2.0, 1)
        return
    text = f"wrong factors of product and C: {alpha:.3g} times the right product, {beta:.3g} times the right addend"
    yield f.finding(alpha * product + beta * added, text, 1 + abs(alpha) + abs(beta), 2.0, 2)


def lines(f: Failure) -> Iterator[Finding]:
    """Yield the finding that every row, or every column, has its own factor or offset: scales or a bias unknown to the
    check.
    """
    for axis, name in ((0, "row"), (1, "column")):
        part = _some_lines(f, axis)
        if part is None:
            continue
        places = part.rows if axis == 0 else part.columns
        index = np.unique(places, return_inverse=True)[1]
        count = int(index.max()) + 1
        weight, base = 1 / np.square(part.usual), part.true - part.added
        with np.errstate(all="ignore"):
            squares = np.bincount(index, weight * base * base, count)
            factors = 1 + np.bincount(index, weight * base * (part.got - part.true), count) / squares
            offsets = np.bincount(index, weight * (part.got - part.true), count) / np.bincount(index, weight, count)
        known = np.unique(places)
        for numbers, values, what, slack in (
            (factors, part.true + (factors - 1)[index] * base, "factor", 1 + np.abs(factors)[index]),
            (offsets, part.true + offsets[index], "offset", 1.0),
        ):
            if not np.isfinite(numbers).all() or np.ptp(numbers) < 1e-3 * np.abs(numbers).max():
                continue
            some = ", ".join(f"{x:.4g}" for x in numbers[:3])
            where = ", ".join(map(str, known[:3]))
            text = (
                f"each {name} has {'a' if what == 'factor' else 'an'} {what} of its own: {some} at {name}s {where} ..."
            )
            yield part.finding(values, text, slack, 2.0, count)


def _some_lines(f: Failure, axis: int) -> Failure | None:
    """Return the failure for some elements of a few rows (columns), or None if most of the result is right, or lines are
    short.
    """
    wrong = f.wrong if axis == 0 else f.wrong.T
    finite = np.isfinite(f.out) & np.isfinite(f.exact) & (f.typical > 0)
    finite = finite if axis == 0 else finite.T
    hit = np.flatnonzero(wrong.any(1))
    if hit.size < 2 or 4 * hit.size < len(wrong):
        return None
    along, across = [], []
    for line in hit[evenly(hit.size, LINES)]:
        at = np.flatnonzero(finite[line])
        if at.size < FEWEST:
            return None
        taken = at[evenly(at.size, OF_LINE)]
        along.append(np.full(taken.size, line))
        across.append(taken)
    first, second = np.concatenate(along), np.concatenate(across)
    return f.moved(first, second) if axis == 0 else f.moved(second, first)
