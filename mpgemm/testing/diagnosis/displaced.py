"""This module predicts displaced elements: rows, columns and tiles of the result, values of k, places in memory of an
operand.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.diagnosis.failure import GOOD, Failure, Finding, ranges
from mpgemm.testing.diagnosis.places import TILES

#: Largest number of rows (columns) that are matched, and elements of each.
MATCHED, ELEMENTS = 256, 64


def transposed(f: Failure) -> Iterator[Finding]:
    """Yield results that are written transposed, as a whole or tile by tile."""
    m, n = f.exact.shape
    whole = max(m, n)
    tried, found = math.log(len(TILES)), []
    for tile in (*(t for t in TILES if t < whole), whole):
        top, left = f.rows // tile * tile, f.columns // tile * tile
        i, j = top + f.columns - left, left + f.rows - top
        if (i < m).all() and (j < n).all():
            text = f"blocks of {tile} x {tile} are transposed" if tile < whole else "the result is transposed"
            found.append(f.finding(f.exact[i, j] * (1 + f.share), text, slack_of(f, i, j), tried))
    if found:
        yield min(found, key=lambda x: x.fit)  # the smallest tile among equal statements


def slack_of(f: Failure, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Return the factor by which errors are larger at the source places than at the elements."""
    with np.errstate(all="ignore"):
        return np.maximum(np.nan_to_num(f.typical[i, j] / f.usual, nan=1.0), 1.0)


def strided(f: Failure) -> Iterator[Finding]:
    """Yield results that are written with another leading dimension than they are read with.

    The content between their rows is unknown.
    """
    m, n = f.exact.shape
    for stride in leading_dimensions(n):
        i, j = np.divmod(f.rows * n + f.columns, stride)
        known = (i < m) & (j < n)
        part, i, j = f.moved(f.rows[known], f.columns[known]), i[known], j[known]
        if part.wrong[part.rows, part.columns].any():
            text = f"the result is written with the leading dimension {stride}, not {n}"
            yield part.finding(f.exact[i, j] * (1 + f.share), text, slack_of(part, i, j), math.log(20), 1)


def lines_moved(f: Failure) -> Iterator[Finding]:
    """Yield results whose rows (columns) hold other rows."""
    for axis in (0, 1):
        found = _matched(f, axis)
        if found is not None:
            yield found


def _matched(f: Failure, axis: int) -> Finding | None:
    """Return the finding of a map of rows to rows, or None."""
    out, exact, typical = (x if axis == 0 else x.T for x in (f.out, f.exact * (1 + f.share), f.typical))
    size = out.shape[0]
    places = f.rows if axis == 0 else f.columns
    across = np.unique(f.columns if axis == 0 else f.rows)
    across = across[evenly(across.size, ELEMENTS)]
    own = np.unique(places)
    if own.size > MATCHED or size < 2 or across.size < 2:
        return None
    with np.errstate(all="ignore"):
        weight = 1 / np.square(typical[np.ix_(own, across)])
        got, all_rows = out[np.ix_(own, across)], exact[:, across]
        if not np.isfinite(got).all() or not np.isfinite(all_rows).all() or not np.isfinite(weight).all():
            return None
        distance = (
            (weight * got * got).sum(1)[:, None] - 2 * (weight * got) @ all_rows.T + weight @ np.square(all_rows).T
        )
    source = np.argmin(distance, 1)
    stay = distance[np.arange(own.size), own] <= distance[np.arange(own.size), source] + GOOD**2 * across.size
    source = np.where(stay, own, source)
    if (source == own).all():
        return None
    at = source[np.searchsorted(own, places)]
    i, j = (at, f.columns) if axis == 0 else (f.rows, at)
    text, free = _map_in_words(own, source, size, "row" if axis == 0 else "column")
    tried = math.log(size) * free
    return f.finding(f.exact[i, j] * (1 + f.share), text, slack_of(f, i, j), tried)


def _map_in_words(own: np.ndarray, source: np.ndarray, size: int, name: str) -> tuple[str, int]:
    """Return (description of a map of rows, number of fitted numbers)."""
    moved = own != source
    own, source = own[moved], source[moved]
    if np.unique(source).size == 1 and own.size > 1:
        return f"these {name}s are repeated: all of them hold {name} {source[0]}", 1
    steps = np.unique(source - own)
    if steps.size == 1:
        direction = "on" if steps[0] > 0 else "back"
        return f"{name}s are shifted: {name} {own[0]} holds {name} {source[0]}, {abs(int(steps[0]))} {direction}", 1
    if np.unique((source - own) % size).size == 1:
        return f"{name}s are shifted around the end: {name} {own[0]} holds {name} {source[0]}", 1
    flips = np.unique(source ^ own)
    if flips.size == 1 and (int(flips[0]) & (int(flips[0]) - 1)) == 0:
        return f"neighbouring blocks of {int(flips[0])} {name}s are exchanged", 1
    if np.unique(source + own).size == 1:
        return f"{name}s are reversed: {name} {own[0]} holds {name} {source[0]}", 1
    if (pair := _two_runs(own, source)) is not None:
        ends = [f"{x[0]} to {x[-1]}" if x.size > 1 else f"{x[0]}" for x in pair]
        return f"{name}s {ends[0]} and {ends[1]} are exchanged", 2
    for tile in (t for t in TILES if t <= 64):
        if np.array_equal(source // tile, own // tile):
            inside = dict(zip(own % tile, source % tile, strict=True))
            if all(inside[a % tile] == b % tile for a, b in zip(own, source, strict=True)):
                some = ", ".join(f"{a} holds {b}" for a, b in list(inside.items())[:4])
                return f"{name}s are permuted inside of blocks of {tile}: {some}", len(inside)
    some = ", ".join(f"{a} holds {b}" for a, b in list(zip(own, source, strict=True))[:4])
    more = f" and {own.size - 4} more" if own.size > 4 else ""
    return f"{name}s hold other {name}s: {some}{more}", int(own.size)


def _two_runs(own: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return two runs of rows each of which holds the other, or None."""
    if own.size % 2:
        return None
    first, second = np.split(own, 2)
    if not np.array_equal(source, np.append(second, first)) or any((np.diff(x) != 1).any() for x in (first, second)):
        return None
    return first, second


#: Largest distances in lines at which a kernel may read.
COARSER = (2, 4, 8, 16, 32, 64, 128, 256)
#: Rows and columns in which scale factors of 128 rows are interleaved in memory (published: PTX ISA, tcgen05.mma).
LAYOUT = (32, 4)
#: Errors of a leading dimension in elements, and multiples to which it is padded.
STRIDES, PADDED = (1, 2, 4, 8, 16), (8, 16, 32, 64, 128)


def line_maps(size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (description, source line of each line); all maps differ, and "{}" stands for the word for a line."""
    at = np.arange(size)
    known = {at.tobytes()}
    for text, source in _line_maps(at, size):
        if source.tobytes() not in known:
            known.add(source.tobytes())
            yield text, source


def _line_maps(at: np.ndarray, size: int) -> Iterator[tuple[str, np.ndarray]]:
    for step, beside in ((1, "behind"), (-1, "before")):
        yield f"the {{}} {beside}", np.clip(at + step, 0, size - 1)
        yield f"the {{}} {beside}, around the end", (at + step) % size
    yield "the first {} everywhere", np.zeros_like(at)
    yield "the last {} everywhere", np.full_like(at, size - 1)
    yield "the {} at the same distance from the other end", at[::-1]
    for group in (g for g in COARSER if g < size):
        yield f"the first {{}} of every {group}", at // group * group
    for tile in (t for t in TILES if t < size):
        yield f"the {{}} at the same place of the first {tile}", at % tile
        yield f"the {{}} {tile} before", np.where(at >= tile, at - tile, at)
        yield f"the {{}} {tile} after it", np.where(at + tile < size, at + tile, at)
    rows, columns = LAYOUT
    whole = size // (rows * columns) * (rows * columns)
    start, inside = at // (rows * columns) * (rows * columns), at % (rows * columns)
    for text, moved in (
        (f"the {{}} in the units' layout of {rows} x {columns}", inside % columns * rows + inside // columns),
        (
            f"the {{}} converted back from the units' layout of {rows} x {columns}",
            inside % rows * columns + inside // rows,
        ),
    ):
        yield text, np.where(at < whole, start + moved, at)


#: Function that returns the source line and source k of the elements of an operand, as arrays (elements, k) or arrays that
#: broadcast to it, from their own lines. A value read after the operand's end has line -1 if it is unknown, and a k outside
#: of the operand if it is 0.
ElementMap = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def element_maps(shape: tuple[int, int], stored: str) -> Iterator[tuple[str, ElementMap]]:
    """Yield (description, map) of an operand of shape (lines, k).

    With `stored` "rows" neighbouring values of k lie side by side in memory, with "columns" neighbouring lines.
    """
    size, k = shape
    for tile in (t for t in TILES if t <= min(size, k)):
        yield f"blocks of {tile} x {tile} are transposed", partial(_transposed, tile, shape)
        if 2 * tile <= min(size, k):
            text = f"in blocks of {2 * tile} x {2 * tile} the {tile} x {tile} beside the diagonal are exchanged"
            yield text, partial(_exchanged, tile, shape)
    across = k if stored == "rows" else size
    for stride in leading_dimensions(across):
        yield (
            f"its leading dimension is taken as {stride}, not {across}",
            partial(_strided, stride, stored == "rows", shape),
        )


def leading_dimensions(across: int) -> Iterator[int]:
    """Yield the numbers that a kernel may take for a leading dimension."""
    padded = (-(-across // p) * p for p in PADDED)
    for stride in dict.fromkeys((*(across + s for t in STRIDES for s in (t, -t)), *padded)):
        if stride > 0 and stride != across:
            yield stride


def _transposed(tile: int, shape: tuple[int, int], lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = lines[:, None], np.arange(shape[1])[None]
    x, y = i // tile * tile + j % tile, j // tile * tile + i % tile
    return _inside(x, y, i, j, shape)


def _exchanged(tile: int, shape: tuple[int, int], lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, j = lines[:, None], np.arange(shape[1])[None]
    return _inside((i & ~tile) | (j & tile), (j & ~tile) | (i & tile), i, j, shape)


def _inside(x, y, i, j, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Return a map in which elements that would come from outside of the operand stay at their place."""
    inside = (x < shape[0]) & (y < shape[1])
    return np.where(inside, x, i), np.where(inside, y, j)


def _strided(stride: int, by_rows: bool, shape: tuple[int, int], lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    size, k = shape
    i, j = lines[:, None], np.arange(k)[None]
    first, second = np.divmod(i * stride + j, k) if by_rows else np.divmod(j * stride + i, size)
    line, at = (first, second) if by_rows else (second, first)
    inside = (line < size) & (at < k)
    return np.where(inside, line, -1), np.where(inside, at, 0)


#: Sizes of the groups of k in which values are permuted, in elements.
GROUPS = (8, 16, 32, 64, 128)
#: Largest and least number of elements on which permutations are first tried, approximate number of their products, and
#: number of permutations that are then tried further.
SCREENED, BUDGET, KEPT = (32, 16), 1 << 17, 3


def operand_transposed(f: Failure) -> Iterator[Finding]:
    """Yield results with A or B read transposed, for square operands."""
    (a, b), (of_a, of_b) = f.case.operands, f.sides
    if b.shape[0] == b.shape[1]:
        yield f.finding(np.einsum("ik,ik->i", of_a, f.case.b[f.columns]) + f.added, "B is read transposed", 2.0)
    if a.shape[0] == a.shape[1]:
        yield f.finding(np.einsum("ki,ik->i", f.case.a[:, f.rows], of_b) + f.added, "A is read transposed", 2.0)


# -- permutations along k ------------------------------------------------------------------------------------------------
def _along_k(source: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the map of elements for a permutation of k."""
    return lines[:, None], source[lines % len(source)] if source.ndim > 1 else source[None]


def _permutations(k: int, size: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (description, source of each value of k), shape (k,) or, if rows differ, (period of rows, k).

    A source beyond k is 0.
    """
    at = np.arange(k)
    step = 1
    while step < k:
        yield from _whole(f"neighbouring groups of {step} values of k are exchanged", at ^ step, k)
        for moved, where in ((at + step, "ahead"), (at - step, "behind")):
            yield f"k is read {step} {where}", moved
            yield f"k is read {step} {where}, around the end", moved % k
        step *= 2
    for group in (g for g in GROUPS if g <= k):
        start, inside = at // group * group, at % group
        yield f"each {group} values of k are reversed", start + group - 1 - inside
        part = 2
        while part < group:
            yield (
                f"inside of each {group} values of k, {part} groups of {group // part} are interleaved",
                start + inside % part * (group // part) + inside // part,
            )
            for unit in (u for u in (2, 4) if part * u < group):
                order = np.arange(group).reshape(part, -1, unit).transpose(1, 0, 2).ravel()
                text = f"inside of each {group} values of k, {part} groups are interleaved by {unit}"
                yield text, np.where(at // group < k // group, start + order[inside], at)
            for turn in (part, -part):
                yield f"each {group} values of k are turned by {turn}", start + (inside + turn) % group
            part *= 2
    for width in (8, 16, 32):  # bytes
        chunk = max(width // size, 1)
        for mask in (1, 3, 7):
            for shift in (0, 1, 2):
                if (mask + 1) * chunk <= k:
                    turned = (np.arange((mask + 1) << shift) >> shift)[:, None] * chunk
                    rows = "the row" if shift == 0 else f"row // {1 << shift}"
                    text = f"chunks of {width} bytes are swizzled by {rows} mod {mask + 1}, but not swizzled back"
                    yield from _whole(text, at[None] ^ turned, k)


def _whole(text: str, source: np.ndarray, k: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield a permutation that reads zeros after the end of k, and one that leaves the last values, which fill no 128, in
    place.
    """
    yield text, source
    if k % GROUPS[-1] and k > GROUPS[-1]:
        at = np.arange(k)
        yield f"{text}, but for the last {k % GROUPS[-1]}", np.where(at >= k // GROUPS[-1] * GROUPS[-1], at, source)


def _few(f: Failure) -> Failure:
    """Return a failure with a few of the wrong elements."""
    taken = np.flatnonzero(f.wrong[f.rows, f.columns])
    most, least = SCREENED
    taken = taken[evenly(taken.size, min(max(BUDGET // max(f.k, 1), least), most))]
    return f.moved(f.rows[taken], f.columns[taken])


def permuted(f: Failure) -> Iterator[Finding]:
    """Yield results with the values of k of one operand in another order than those of the other."""
    k = f.k
    if k < 2:
        return
    size = max(f.case.operands[0].dtype.itemsize, 1)
    for side, name in enumerate("AB"):
        maps = ((text, partial(_along_k, source)) for text, source in _permutations(k, size))
        yield from _read_elsewhere(f, side, maps, f"{name} is permuted", 1.5)
        yield from _permuted_block(f, name, side)


def _permuted_block(f: Failure, name: str, side: int) -> Iterator[Finding]:
    """Yield results with groups of values of k exchanged in one block of k only."""
    values, factors = f.unscaled
    mine, other = values[side], values[1 - side] * factors
    k = mine.shape[1]
    for step in (1, 2, 4, 8, 16, 32, 64):
        pairs = k // (2 * step)
        (x, y), (u, v) = (
            np.moveaxis(each[:, : pairs * 2 * step].reshape(len(each), pairs, 2, step), 2, 0) for each in (mine, other)
        )
        exchanged = np.einsum("ept,ept->ep", y - x, u - v)
        for length in (t for t in (16, 32, 64, 128) if step < t < k):
            per = length // (2 * step)
            changes = exchanged[:, : k // length * per].reshape(len(mine), -1, per).sum(2)
            text = ranges(
                f"{name} is permuted: at k {{}} neighbouring groups of {step} values are exchanged", length, 0
            )
            yield f.best_of(changes, text, 1.5, math.log(20))


# -- other places in memory ----------------------------------------------------------------------------------------------
def rearranged(f: Failure) -> Iterator[Finding]:
    """Yield results with one operand's lines, blocks or leading dimension misread; its scales are read correctly."""
    for side, name in enumerate("AB"):
        x, y = f.case.operands
        shape = x.shape if side == 0 else y.shape[::-1]
        if shape[1]:
            alike = f.case.c is None and f.case.scaling is None  # the result's lines would be the same
            yield from _read_elsewhere(f, side, _elsewhere(shape, side, alike), f"{name} is misread", 2.0)


def _read_elsewhere(
    f: Failure, side: int, maps: Iterable[tuple[str, ElementMap]], what: str, slack: float
) -> Iterator[Finding]:
    """Yield the best maps of one operand; all are tried on a few elements first."""
    few, named, rated = _few(f), dict(maps), []
    for text, where in named.items():
        known, prediction = _read_from(few, side, where)
        if known.any():
            rated.append((float(np.mean(np.square(((few.got - prediction) / few.usual)[known]))), text))
    for _, text in sorted(rated)[:KEPT]:
        known, prediction = _read_from(f, side, named[text])
        part = f.moved(f.rows[known], f.columns[known])
        if part.wrong[part.rows, part.columns].any():
            yield part.finding(prediction[known], f"{what}: {text}", slack, math.log(len(rated)), 1)


def _elsewhere(shape: tuple[int, int], side: int, alike: bool) -> Iterator[tuple[str, ElementMap]]:
    """Yield (description, map) of an operand of shape (lines, k).

    `alike` says whether a line read elsewhere gives the same result as a line written elsewhere.
    """
    word, along = "row" if side == 0 else "column", np.arange(shape[1])[None]

    def of_lines(source: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return source[lines][:, None], along

    for text, source in line_maps(shape[0]):
        same = f", or the result's {word}s are written so" if alike else ""
        yield f"each {word} is {text.format(word)}{same}", partial(of_lines, source)
    for stored in ("rows",) if side == 0 else ("rows", "columns"):
        yield from element_maps(shape, stored)


def _read_from(f: Failure, side: int, where: ElementMap) -> tuple[np.ndarray, np.ndarray]:
    """Return (whether all sources of the elements are known, the sums) if one operand is read elsewhere."""
    values, factors = f.unscaled
    lines = f.rows if side == 0 else f.columns
    line, at = where(lines)
    if line.shape[1] == 1 and np.array_equal(line[:, 0], lines):
        read = _read(values[side], np.arange(len(lines))[:, None], at)  # neighbouring lines lie side by side in memory
    else:
        read = _read(f.case.operands[0] if side == 0 else f.case.operands[1].T, line, at)
    sums = np.einsum("ek,ek->e", read * factors, values[1 - side])
    return np.all(line >= 0, axis=1), (1 + f.share) * sums + f.added


def _read(stored: np.ndarray, line: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return elements of an operand; lines are read whole if all k of an element have the same line."""
    inside = (at >= 0) & (at < stored.shape[1])
    at = np.where(inside, at, 0)
    if line.shape[1] > 1:
        read = stored[line, at]
    else:
        read = stored[line[:, 0]]
        read = np.take(read, at[0], 1) if len(at) == 1 else np.take_along_axis(read, at, 1)
    read = read.astype(np.float64, copy=False)
    return read if inside.all() else np.where(inside, read, 0.0)
