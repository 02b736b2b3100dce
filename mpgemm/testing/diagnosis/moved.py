"""Elements that belong elsewhere: transposed, exchanged, shifted and repeated rows, columns and tiles."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import GOOD, Failure, Finding
from mpgemm.testing.diagnosis.maps import leading_dimensions
from mpgemm.testing.diagnosis.places import TILES

#: Rows (columns) that are matched at most, and elements of each.
MATCHED, ELEMENTS = 256, 64
#: Tiles that are matched at most, and elements of each.
TILES_MATCHED, CORNER = 24, 8


def transposed(f: Failure) -> Iterator[Finding]:
    """The result, or each tile of it, is written transposed."""
    m, n = f.exact.shape
    whole = max(m, n)
    tried, found = math.log(len(TILES)), []
    for tile in (*(t for t in TILES if t < whole), whole):
        top, left = f.rows // tile * tile, f.columns // tile * tile
        i, j = top + f.columns - left, left + f.rows - top
        if (i < m).all() and (j < n).all():
            text = f"blocks of {tile} x {tile} are transposed" if tile < whole else "the result is transposed"
            found.append(f.finding(f.exact[i, j] * (1 + f.share), text, _slack(f, i, j), tried))
    if found:
        yield min(found, key=lambda x: x.fit)  # the smallest tile of those that say the same


def _slack(f: Failure, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """How much larger errors are at the places where values come from."""
    with np.errstate(all="ignore"):
        return np.maximum(np.nan_to_num(f.typical[i, j] / f.usual, nan=1.0), 1.0)


def strided(f: Failure) -> Iterator[Finding]:
    """The result is written with another leading dimension than it is read with; what lies between its rows is not known."""
    m, n = f.exact.shape
    for stride in leading_dimensions(n):
        i, j = np.divmod(f.rows * n + f.columns, stride)
        known = (i < m) & (j < n)
        part, i, j = f.moved(f.rows[known], f.columns[known]), i[known], j[known]
        if part.wrong[part.rows, part.columns].any():
            text = f"the result is written with the leading dimension {stride}, not {n}"
            yield part.finding(f.exact[i, j] * (1 + f.share), text, _slack(part, i, j), math.log(20), 1)


def lines_moved(f: Failure) -> Iterator[Finding]:
    """Rows (columns) that hold other rows."""
    for axis in (0, 1):
        found = _matched(f, axis)
        if found is not None:
            yield found


def _matched(f: Failure, axis: int) -> Finding | None:
    """The finding of a map of rows to rows, None where there is none."""
    out, exact, typical = (x if axis == 0 else x.T for x in (f.out, f.exact * (1 + f.share), f.typical))
    size = out.shape[0]
    places = f.rows if axis == 0 else f.columns
    across = np.unique(f.columns if axis == 0 else f.rows)
    across = across[np.linspace(0, across.size - 1, min(across.size, ELEMENTS)).astype(int)]
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
    return f.finding(f.exact[i, j] * (1 + f.share), text, _slack(f, i, j), tried)


def _map_in_words(own: np.ndarray, source: np.ndarray, size: int, name: str) -> tuple[str, int]:
    """(what a map of rows is, how many numbers it takes to say it)."""
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
    if (pair := _exchanged(own, source)) is not None:
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


def _exchanged(own: np.ndarray, source: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Two runs of rows of which each holds the other."""
    if own.size % 2:
        return None
    first, second = np.split(own, 2)
    if not np.array_equal(source, np.append(second, first)) or any((np.diff(x) != 1).any() for x in (first, second)):
        return None
    return first, second


def tiles_moved(f: Failure) -> Iterator[Finding]:
    """Tiles that hold another tile, or to whose sums those of another tile are added."""
    true = f.exact * (1 + f.share)
    c = 0.0 if f.case.c is None or f.of_results else f.case.c
    for text, out, sums in (("hold", f.out, true), ("added", f.out - true, true - c)):
        found = []
        for down in (t for t in TILES if t <= max(f.out.shape[0] - 1, 8)):
            for across in dict.fromkeys((down, f.out.shape[1])):
                found.append(_tile_map(f, out, sums, down, across, text))
        if any(found):
            yield min(x for x in found if x is not None)


def _tile_map(f: Failure, out, true, down: int, across: int, what: str) -> Finding | None:
    m, n = out.shape
    if m // down < 1 or n // across < 1 or (m // down) * (n // across) < 2:
        return None
    tile_i, tile_j = f.rows // down, f.columns // across
    rows, columns = m // down, n // across
    key = tile_i * (columns + 1) + tile_j
    own = np.unique(key)
    if own.size > TILES_MATCHED or rows * columns > 4096:
        return None
    rng = np.random.default_rng(0)
    inner = rng.integers(0, down, CORNER * CORNER), rng.integers(0, across, CORNER * CORNER)
    all_i, all_j = (x.ravel() for x in np.indices((rows, columns)))
    corners = true[all_i[:, None] * down + inner[0], all_j[:, None] * across + inner[1]]
    source_i, source_j = tile_i.copy(), tile_j.copy()
    moved = []
    for tile in own:
        i, j = divmod(int(tile), columns + 1)
        at = np.minimum(i * down + inner[0], m - 1), np.minimum(j * across + inner[1], n - 1)
        inside = (i * down + inner[0] < m) & (j * across + inner[1] < n)
        with np.errstate(all="ignore"):
            distance = np.square((out[at] - corners) / f.typical[at])[:, inside].sum(1)
        if i < rows and j < columns and what == "added":
            distance[i * columns + j] = np.inf  # twice itself is another statement
        best = int(np.argmin(np.where(np.isfinite(distance), distance, np.inf)))
        stays = np.square((out[at] - (true[at] if what == "hold" else 0)) / f.typical[at])[inside].sum()
        if distance[best] + GOOD**2 * inside.sum() < stays:
            chosen = key == tile
            source_i[chosen], source_j[chosen] = all_i[best], all_j[best]
            moved.append((i, j, int(all_i[best]), int(all_j[best])))
        elif what == "added":
            source_i[key == tile] = -1
    if not moved:
        return None
    i, j = source_i * down + f.rows % down, source_j * across + f.columns % across
    i, j = np.clip(i, 0, m - 1), np.clip(j, 0, n - 1)
    base = true[i, j]
    prediction = base if what == "hold" else np.where(source_i < 0, f.true, f.true + base)
    return f.finding(
        prediction, _tiles_in_words(moved, down, across, what), 1 + _slack(f, i, j) * (what == "added"),
        math.log(rows * columns) * len(moved),
    )  # fmt: skip


def _tiles_in_words(moved, down: int, across: int, what: str) -> str:
    def name(i: int, j: int) -> str:
        return f"rows {i * down} to {(i + 1) * down - 1}, columns {j * across} to {(j + 1) * across - 1}"

    steps = {(k - i, x - j) for i, j, k, x in moved}
    i, j, k, x = moved[0]
    first = f"tile {name(i, j)}"
    if what == "added":
        return f"a stale accumulator: to the {first} the sums of {name(k, x)} are added"
    if len(moved) == 2 and moved[1] == (k, x, i, j):
        return f"tiles are exchanged: {name(i, j)} and {name(k, x)}"
    where = "another tile" if len(steps) > 1 else f"the tile {steps.pop()} tiles (down, across) away"
    return f"tiles of {down} x {across} hold {where}: the {first} holds {name(k, x)}"
