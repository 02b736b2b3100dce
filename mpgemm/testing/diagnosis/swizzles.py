"""This module predicts results whose chunks lie at other places of their row or column, as after a swizzled store."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.diagnosis.failure import Failure, Finding

#: Elements of a chunk; rows that change its place (mask); rows that share it (shift); elements tried first; predictions kept.
CHUNKS, MASKS, SHIFTS = (1, 2, 4, 8, 16, 32, 64), (1, 3, 7, 15, 31), (0, 1, 2, 3)
SCREENED, KEPT = 64, 3


def swizzled(f: Failure) -> Iterator[Finding]:
    """Yield the best of all swizzles and rotations: an element holds that of another chunk of its row (column)."""
    wrong = f.wrong[f.rows, f.columns]
    at = np.flatnonzero(wrong)
    few = at[evenly(at.size, SCREENED)]
    true = (1 + f.share) * f.exact
    rated: list[tuple[float, int, str, int, tuple[str, int, int, int]]] = []
    for text, axis, source in _sources(f.exact.shape):
        rows, columns = f.rows[few], f.columns[few]
        i, j = _elsewhere(axis, source, rows, columns, f.exact.shape)
        with np.errstate(all="ignore"):
            far = np.square((f.out[rows, columns] - true[i, j]) / f.typical[rows, columns])
        rated.append((float(np.median(far)), len(rated), text, axis, source))
    for _, _, text, axis, source in sorted(rated, key=lambda x: x[:2])[:KEPT]:
        i, j = _elsewhere(axis, source, f.rows, f.columns, f.exact.shape)
        with np.errstate(all="ignore"):
            slack = np.maximum(np.nan_to_num(f.typical[i, j] / f.usual, nan=1.0), 1.0)
        yield f.finding(true[i, j], text, slack, math.log(len(rated)), 1)


def _sources(shape: tuple[int, int]) -> Iterator[tuple[str, int, tuple[str, int, int, int]]]:
    """Yield (description, axis of the chunks, (kind, elements of a chunk, mask, shift))."""
    for axis, line, across in ((1, "row", "columns"), (0, "column", "rows")):
        for chunk in CHUNKS:
            for mask in MASKS:
                if (mask + 1) * chunk > shape[axis]:
                    continue
                for shift in SHIFTS:
                    by = line if shift == 0 else f"({line} // {1 << shift})"
                    text = f"the result is {{}} in chunks of {chunk} {across}, by {by} mod {mask + 1}"
                    yield text.format("swizzled (exclusive or)"), axis, ("xor", chunk, mask, shift)
                    yield text.format("turned"), axis, ("turn", chunk, mask, shift)
                    yield text.format("turned back"), axis, ("back", chunk, mask, shift)


def _elsewhere(axis: int, source, rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]):
    """Return the source places of elements; elements with a source outside of the result stay."""
    how, chunk, mask, shift = source
    place, line = (columns, rows) if axis == 1 else (rows, columns)
    number, by = place // chunk, (line >> shift) & mask
    inside = number & mask
    moved = {"xor": inside ^ by, "turn": (inside + by) & mask, "back": (inside - by) & mask}[how]
    found = (number - inside + moved) * chunk + place % chunk
    found = np.where(found < shape[axis], found, place)
    return (rows, found) if axis == 1 else (found, columns)
