"""This module finds the simplest pattern of rows, columns or tiles that holds the wrong elements and few others.

Patterns are compared by description length: the cost of the pattern, plus that of naming the wrong ones of its elements
and those outside one by one. A pattern that a few wrong elements fit by chance costs more than listing them.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

#: Sizes of tiles that kernels use, and periods that are tried for rows and columns.
TILES = (8, 16, 32, 64, 128, 256)
#: Largest number of ranges and single places of one line that are listed.
LISTED = 6
#: Cost of an element outside of a pattern, in addition to its place.
OUTSIDE = 3.0
#: Numbers of rows and columns of the picture.
PICTURE = (12, 48)


@dataclass(frozen=True)
class LinePattern:
    """`LinePattern` is a set of rows, or of columns, with its description."""

    text: str  #: description; "{}" stands for "row" or "column"
    cost: float
    members: np.ndarray  #: mask, bool, one for each row (column)
    kind: str = "other"  #: kind: "all", "range" or "other"


@dataclass(frozen=True)
class Place:
    """`Place` says where a result is wrong.

    Attributes
    ----------
    text : str
        Place in words, to be read after "in", or "everywhere".
    mask : ndarray of bool, shape (m, n)
        Mask of the elements in the pattern.
    structured : bool
        Whether the pattern is rows, columns or tiles, and not the whole result, single elements or elements of some size.
    """

    text: str
    mask: np.ndarray
    structured: bool

    def to_dict(self) -> dict:
        """Return JSON-compatible values: the words, and the smallest rectangle around the elements."""
        rows, columns = (np.flatnonzero(self.mask.any(axis)) for axis in (1, 0))
        ends = [[int(x[0]), int(x[-1]) + 1] if x.size else [0, 0] for x in (rows, columns)]
        return {"text": self.text, "rows": ends[0], "columns": ends[1]}


def place_of(
    wrong: np.ndarray, values: np.ndarray, lines: np.ndarray | None = None, silent: np.ndarray | None = None
) -> Place:
    """Return the place of the wrong elements, of which there must be one.

    `wrong` is a mask, bool, shape (m, n). `values` are the exact results, for places that depend on size or sign. `lines` are
    the numbers of the rows if only some are checked; periods of rows are then not tried. `silent` marks right elements that
    would be right with a fault, too, as those of a row of zeros.
    """
    m, n = wrong.shape
    hits = int(wrong.sum())
    found = [_rated(place, cost, wrong, hits, silent) for place, cost in _candidates(wrong, values, lines)]
    listed = hits * (math.log(m * n) + 1)
    cost, best = min(found, key=lambda x: x[0])
    whole = not best.structured and best.mask.all()
    if hits <= LISTED and (listed <= cost or whole) and hits < wrong.size:
        at = np.argwhere(wrong)
        text = ", ".join(f"({_number(int(i), lines)}, {int(j)})" for i, j in at)
        return Place(f"the element{'s' if hits > 1 else ''} {text}", wrong.copy(), False)
    return best


def _rated(place: Place, cost: float, wrong: np.ndarray, hits: int, silent: np.ndarray | None) -> tuple[float, Place]:
    size = int(np.count_nonzero(place.mask if silent is None else place.mask & (wrong | ~silent)))
    inside = int(np.count_nonzero(wrong & place.mask))
    outside = (hits - inside) * (math.log(wrong.size) + OUTSIDE)
    return cost + outside + size * _entropy(inside / size) if size else math.inf, place


def _entropy(share: float) -> float:
    return 0.0 if share in (0.0, 1.0) else -share * math.log(share) - (1 - share) * math.log(1 - share)


# -- patterns ------------------------------------------------------------------------------------------------------------
def _candidates(wrong, values, lines) -> Iterator[tuple[Place, float]]:
    m, n = wrong.shape
    rows = list(_lines(wrong.any(1), wrong.sum(1), lines))
    columns = list(_lines(wrong.any(0), wrong.sum(0), None))
    for row in rows:
        for column in columns:
            mask = np.logical_and.outer(row.members, column.members)
            whole = row.kind == column.kind == "all"
            yield Place(_product(row, column, wrong), mask, not whole), row.cost + column.cost
    if lines is None:
        yield from _tiles(wrong)
        i, j = np.ogrid[:m, :n]
        if min(m, n) > 2:
            for text, mask in (("above", j > i), ("below", j < i), ("on", j == i)):
                yield Place(f"the elements {text} the diagonal", mask, True), 4.0
    finite = np.where(np.isfinite(values), values, 0.0)
    if wrong.any() and not wrong.all():
        threshold = float(np.min(np.abs(finite[wrong])))
        if threshold > 0:
            text = f"the elements of at least {threshold:.4g} in size"
            yield Place(text, np.abs(finite) >= threshold, False), math.log(wrong.size) + 4
        for text, mask in (("negative", finite < 0), ("positive", finite > 0)):
            yield Place(f"the elements whose exact result is {text}", mask, False), 4.0


def _lines(hit: np.ndarray, counts: np.ndarray, numbers: np.ndarray | None) -> Iterator[LinePattern]:
    """Yield descriptions of the rows (columns) that have wrong elements."""
    size, at = hit.size, np.flatnonzero(hit)
    each = math.log(max(size, 2))
    yield LinePattern("all {}s", 0.0, np.ones(size, bool), "all")
    if at.size == 0 or size < 2:
        return
    # a few stray elements beside many: take the rows that hold nearly all of them
    heavy = np.flatnonzero(counts > 0.1 * counts.max())
    for found in (at, heavy) if heavy.size < at.size else (at,):
        yield from _ranges(found, size, each, numbers)
        if numbers is None:
            yield from _periods(found, size, each)


def _ranges(at: np.ndarray, size: int, each: float, numbers) -> Iterator[LinePattern]:
    first, last = int(at[0]), int(at[-1])
    members = np.zeros(size, bool)
    members[first : last + 1] = True
    if first == last:
        yield LinePattern(f"{{}} {_number(first, numbers)}", each, members)
    else:
        text = f"{{}}s {_number(first, numbers)} to {_number(last, numbers)}"
        yield LinePattern(text, _range_cost(first, last, size), members, "range")
    parts = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
    if 1 < len(parts) <= LISTED:
        members = np.zeros(size, bool)
        members[at] = True
        ends = [(int(x[0]), int(x[-1])) for x in parts]
        texts = [_number(x, numbers) if x == y else f"{_number(x, numbers)} to {_number(y, numbers)}" for x, y in ends]
        cost = sum(each if x == y else _range_cost(x, y, size) for x, y in ends) + 1
        yield LinePattern(f"{{}}s {', '.join(texts[:-1])} and {texts[-1]}", cost, members)


def _range_cost(first: int, last: int, size: int) -> float:
    """Return the cost of a range of places, which is lower if it consists of whole tiles."""
    aligned = max((t for t in (1, *TILES) if first % t == 0 and ((last + 1) % t == 0 or last + 1 == size)), default=1)
    return 2 * math.log(max(size / aligned, 1.5)) + 1


def _number(index: int, numbers) -> str:
    return str(index if numbers is None else int(numbers[index]))


def _periods(at: np.ndarray, size: int, each: float) -> Iterator[LinePattern]:
    index = np.arange(size)
    for period in range(2, min(size // 2, 256) + 1):
        residues = np.unique(at % period)
        odd = 0.0 if period & (period - 1) == 0 else 3.0  # a power of two is likelier
        if residues.size == 1:
            start = int(residues[0])
            text = f"every {_ordinal(period)} {{}}, from {{}} {start} on"
            yield LinePattern(text, 2 * math.log(period) + 1 + odd, index % period == start)
        elif residues.size < period and period in TILES and size >= 2 * period:
            first, last = int(residues[0]), int(residues[-1])
            members = (index % period >= first) & (index % period <= last)
            if last - first + 1 < period:
                text = f"{{}}s {first} to {last} of every {period}"
                yield LinePattern(text, _range_cost(first, last, period) + math.log(len(TILES)), members)
            if residues.size <= LISTED and residues.size < last - first + 1:
                listed = ", ".join(map(str, residues))
                cost = (residues.size + 1) * math.log(period) + 2
                yield LinePattern(f"{{}}s {listed} of every {period}", cost, np.isin(index % period, residues))


def _ordinal(x: int) -> str:
    return (
        "second"
        if x == 2
        else f"{x}{'th' if x % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(x % 10, 'th')}"
    )


def _product(row: LinePattern, column: LinePattern, wrong: np.ndarray) -> str:
    if row.kind == column.kind == "all":
        share = wrong.mean()
        return "everywhere" if share > 0.25 else f"all over the result, {int(wrong.sum())} of {wrong.size} elements"
    rows, columns = row.text.format("row", "row"), column.text.format("column", "column")
    if column.kind == "all" or row.kind == "all":
        return f"{rows}, {columns}" if column.kind == "all" else f"{columns}, {rows}"
    tile = "the tile " if row.kind == column.kind == "range" else ""
    return f"{tile}{rows}, {columns}{_lane(row, column, wrong.shape)}"


def _lane(row: LinePattern, column: LinePattern, shape: tuple[int, int]) -> str:
    """Return the lane of a warp that holds these elements of an mma's sums, in words, or "".

    A lane holds rows g and g + 8, columns 2t and 2t + 1 of a tile of 16 x 8.
    """
    m, n = shape
    for g in range(8):
        for t in range(4):
            if (
                np.array_equal(row.members, np.arange(m) % 8 == g)
                and np.array_equal(column.members, np.arange(n) % 8 // 2 == t)
                and m > 8 < n
            ):
                return f" (the elements that lane {4 * g + t} of each warp holds of an mma's sums)"
    return ""


def _tiles(wrong: np.ndarray) -> Iterator[tuple[Place, float]]:
    """Yield patterns of tiles: single ones, every so many in the order of rows or columns, the diagonal, a checkerboard."""
    m, n = wrong.shape
    for down in (t for t in TILES if t < m):
        for across in (t for t in TILES if t < n):
            hit = np.add.reduceat(
                np.add.reduceat(wrong, np.arange(0, m, down), 0, dtype=int), np.arange(0, n, across), 1
            )
            if hit.size < 4 or hit.size > 1 << 14:
                continue
            tiles, name = hit > 0, f"of {down} x {across}"

            def place(chosen: np.ndarray, text: str, down=down, across=across) -> Place:
                spread = np.repeat(np.repeat(chosen, down, 0)[:m], across, 1)[:, :n]
                return Place(text, spread, True)

            yield from _some_tiles(tiles, down, across, place, math.log(hit.size))
            for by_rows, text in ((True, "rows"), (False, "columns")):
                flat = (tiles if by_rows else tiles.T).ravel()
                for line in _periods(np.flatnonzero(flat), flat.size, math.log(flat.size)):
                    if "every" in line.text and "of every" not in line.text:
                        chosen = line.members.reshape(tiles.shape) if by_rows else line.members.reshape(tiles.T.shape).T
                        words = line.text.format(f"tile {name}", "tile")
                        yield place(chosen, f"{words} in the order of {text}"), line.cost + 5
            i, j = np.indices(tiles.shape)
            for chosen, text in ((i == j, "on the diagonal"), ((i + j) % 2 == 1, "of odd places on a checkerboard"),
                                 ((i + j) % 2 == 0, "of even places on a checkerboard")):  # fmt: skip
                yield place(chosen, f"the tiles {name} {text}"), 8.0


def _some_tiles(tiles: np.ndarray, down: int, across: int, place, each: float):
    at = np.argwhere(tiles)
    if 2 <= len(at) <= LISTED:
        texts = [
            f"rows {i * down} to {(i + 1) * down - 1}, columns {j * across} to {(j + 1) * across - 1}" for i, j in at
        ]
        yield place(tiles, f"the tiles {'; '.join(texts)}"), len(at) * each + 4


# -- picture -------------------------------------------------------------------------------------------------------------
def picture(wrong: np.ndarray, place: Place) -> tuple[str, ...]:
    """Return the result as a few lines of text, a character for a block of elements: "." right, "+" some wrong, "#" most.

    There are no lines if all elements are wrong.
    """
    if place.text == "everywhere":
        return ()
    m, n = wrong.shape
    down, across = (-(-size // most) for size, most in zip((m, n), PICTURE, strict=True))
    sums = np.add.reduceat(np.add.reduceat(wrong, np.arange(0, m, down), 0, dtype=int), np.arange(0, n, across), 1)
    sizes = np.outer(*(np.diff(np.append(np.arange(0, x, y), x)) for x, y in ((m, down), (n, across))))
    text = np.where(sums == 0, ".", np.where(2 * sums < sizes, "+", "#"))
    head = f"{m} x {n}, a character for {down} x {across} elements (. right, + some wrong, # most):"
    return (head, *("".join(row) for row in text))
