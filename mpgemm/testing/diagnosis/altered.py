"""This module predicts results of altered operands: magnitudes, one triangle, or an added offset (a zero point)."""

from collections.abc import Iterator

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.diagnosis.failure import Failure, Finding

#: Rows (columns) whose own offsets are fitted, and elements of each for each offset.
LINES, OF_OFFSET = 8, 4
#: Difference up to which an offset counts as a whole number.
WHOLE = 2.0**-5


def magnitudes(f: Failure) -> Iterator[Finding]:
    """Yield results with the absolute values of A, of B, or of both."""
    for sides, words in (((0,), "A"), ((1,), "B"), ((0, 1), "A and B")):
        yield _with_sides(
            f, {side: np.abs(f.sides[side]) for side in sides}, f"the magnitudes of {words} are multiplied", 2.0
        )


def halves(f: Failure) -> Iterator[Finding]:
    """Yield results with one triangle of A or of B alone or mirrored, as in routines for triangular and symmetric matrices."""
    for side, name in enumerate("AB"):
        size = f.case.operands[side].shape[side]
        line, at = (f.rows if side == 0 else f.columns)[:, None], np.arange(f.k)[None]
        below, above = (at <= line, at >= line) if side == 0 else (at >= line, at <= line)
        for kept, half in ((below, "lower"), (above, "upper")):
            values = f.sides[side]
            yield _with_sides(
                f, {side: np.where(kept, values, 0.0)}, f"only the {half} triangle of {name} is read", 2.0
            )
            yield _with_sides(
                f, {side: np.where(kept & (at != line), values, 0.0)},
                f"only the {half} triangle of {name} is read, without its diagonal", 2.0,
            )  # fmt: skip
            if size == f.k:
                whole = f.case.a if side == 0 else f.case.b.T
                mirrored = np.where(kept, values, whole[:, line[:, 0]].T)
                yield _with_sides(
                    f, {side: mirrored}, f"the {half} triangle of {name} is read as that of a symmetric matrix", 2.0
                )


def _with_sides(f: Failure, changed: dict[int, np.ndarray], text: str, slack: float) -> Finding:
    """Return the sums with other rows of A, or columns of B."""
    sides = [changed.get(side, f.sides[side]) for side in (0, 1)]
    sums = np.einsum("ek,ek->e", *sides)
    # sums of one sign lose a share of themselves on units that truncate, unless the kernel adds outside
    made = [f.finding(factor * sums + f.added, text, slack, 2.0) for factor in (1 + f.share, 1.0)]
    return min(made)


def offsets(f: Failure) -> Iterator[Finding]:
    """Yield results with a number added to A or B: to all elements, to each line, or to each line and block of k with a scale.

    These numbers are zero points that are left out. They are fitted before scales; for integer operands to whole
    numbers.
    """
    block = None if f.case.scaling is None else f.case.scaling.block
    for side, name in enumerate("AB"):
        line = "row" if side == 0 else "column"
        yield from _offsets(f, side, f.k, False, f"{name} has one offset: {{}} is added to its elements")
        yield from _offsets(f, side, f.k, True, f"each {line} of {name} has an offset of its own (a zero point?): {{}}")
        if block is not None and block < f.k:
            text = f"each {line} and block of {block} k of {name} has an offset of its own (a zero point?): {{}}"
            yield from _offsets(f, side, block, True, text)


def _offsets(f: Failure, side: int, block: int, each: bool, text: str) -> Iterator[Finding]:
    count = -(-f.k // block)
    part = _some_lines(f, side, OF_OFFSET * count) if each else f
    if part is None or part.rows.size < OF_OFFSET * count:
        return
    lines = part.rows if side == 0 else part.columns
    known, index = np.unique(lines if each else np.zeros_like(lines), return_inverse=True)
    others = part.stored[1 - side] * part.unscaled[1]
    sums = np.add.reduceat(np.broadcast_to(others, part.stored[1 - side].shape), range(0, f.k, block), axis=1)
    found, changes = np.empty((known.size, count)), np.empty(lines.size)
    for at in range(known.size):
        mine = index == at
        weight = 1 / part.units[mine]
        columns, values = sums[mine] * weight[:, None], (part.got - part.true)[mine] * weight
        if not np.isfinite(columns).all() or not np.isfinite(values).all():
            return
        numbers = np.linalg.lstsq(columns, values, rcond=None)[0]
        rounded = np.rint(numbers)
        integers = side == 1 and f.case.dequantised is not None
        found[at] = rounded if integers and np.abs(numbers - rounded).max() < WHOLE else numbers
        changes[mine] = sums[mine] @ found[at]
    if not np.abs(found).max() > 0:
        return
    where = "row" if side == 0 else "column"
    shown = ", ".join(f"{x:.4g}" for x in found[0][:4]) + (" ..." if count > 4 else "")
    shown = shown if not each else f"{shown} at {where} {int(known[0])}"
    yield part.finding(part.true + changes, text.format(shown), 2.0, 2.0, found.size)


def _some_lines(f: Failure, side: int, of_line: int) -> Failure | None:
    """Return the failure for some elements of a few rows (columns), or None if lines are shorter."""
    wrong = f.wrong if side == 0 else f.wrong.T
    known = np.isfinite(f.out) & np.isfinite(f.exact)
    known = known if side == 0 else known.T
    hit = np.flatnonzero(wrong.any(1))
    if not hit.size or known.shape[1] < of_line:
        return None
    along, across = [], []
    for line in hit[evenly(hit.size, LINES)]:
        at = np.flatnonzero(known[line])
        if at.size < of_line:
            return None
        along.append(np.full(of_line, line))
        across.append(at[evenly(at.size, of_line)])
    first, second = np.concatenate(along), np.concatenate(across)
    return f.moved(first, second) if side == 0 else f.moved(second, first)
