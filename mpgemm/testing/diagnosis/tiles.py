"""This module predicts tiles of the result that hold other tiles, or whose sums include those of another tile."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.diagnosis.displaced import slack_of
from mpgemm.testing.diagnosis.failure import GOOD, Failure, Finding
from mpgemm.testing.diagnosis.places import TILES

#: Largest number of matched tiles, square root of the elements used of each, largest number of tiles compared with, and
#: tile height below which more wrong tiles are not compared.
TILES_MATCHED, CORNER, SOURCES, SMALL_TILE = 24, 8, 1 << 14, 16


def tiles_moved(f: Failure) -> Iterator[Finding]:
    """Yield results with tiles that hold another tile, or whose sums include those of another tile."""
    true = f.exact * (1 + f.share)
    c = 0.0 if f.case.c is None or f.of_results else f.case.c
    for text, out, sums in (("hold", f.out, true), ("added", f.out - true, true - c)):
        found = []
        for down in (t for t in TILES if t <= max(f.out.shape[0] - 1, 8)):
            for across in dict.fromkeys((down, f.out.shape[1])):
                found.append(_tile_map(f, out, sums, down, across, text))
        known = [x for x in found if x is not None]  # start with the smallest tile
        good = [x for x in known if x.good]
        if good:
            best = min(x.fit for x in good)
            yield [x for x in good if x.fit <= 1.1 * max(best, 0.05)][-1]
        elif known:
            yield min(known)


def _tile_map(f: Failure, out, true, down: int, across: int, what: str) -> Finding | None:
    """Return the map of some wrong tiles of one size to other tiles; full tiles are the sources."""
    m, n = out.shape
    rows, columns = m // down, n // across
    if not 2 <= rows * columns <= SOURCES:
        return None
    tiles = np.argwhere(_tiles_with(f.wrong, down, across))
    few = len(tiles) <= TILES_MATCHED
    if not few and down < SMALL_TILE:
        return None  # with many small tiles, larger ones are tried, too
    tiles = tiles[evenly(len(tiles), TILES_MATCHED)]
    rng = np.random.default_rng(0)
    inner = rng.integers(0, down, CORNER * CORNER), rng.integers(0, across, CORNER * CORNER)
    all_i, all_j = (x.ravel() for x in np.indices((rows, columns)))
    corners = true[all_i[:, None] * down + inner[0], all_j[:, None] * across + inner[1]]
    moved, parts = [], []
    for i, j in tiles.tolist():
        inside = (i * down + inner[0] < m) & (j * across + inner[1] < n)
        at = i * down + inner[0][inside], j * across + inner[1][inside]
        got, weight = out[at], 1 / np.square(f.typical[at])
        taken = corners[:, inside]
        with np.errstate(all="ignore"):
            distance = (weight * got * got).sum() - 2 * taken @ (weight * got) + np.square(taken) @ weight
            stays = float((weight * np.square(got - (true[at] if what == "hold" else 0))).sum())
        if i < rows and j < columns and what == "added":
            distance[i * columns + j] = np.inf  # twice itself has its own statement
        best = int(np.argmin(np.where(np.isfinite(distance), distance, np.inf)))
        goes = distance[best] + GOOD**2 * inside.sum() < stays
        if goes:
            moved.append((i, j, int(all_i[best]), int(all_j[best])))
        parts.append((*at, all_i[best] if goes else i, all_j[best] if goes else j, goes))
    if not moved:
        return None
    places = dict(zip(map(tuple, tiles.tolist()), ((p[2], p[3], p[4]) for p in parts), strict=True))
    # with few tiles, use the elements of other statements; with many, those that were matched
    i, j = (f.rows, f.columns) if few else (np.concatenate([part[axis] for part in parts]) for axis in (0, 1))
    known = np.isfinite(out[i, j]) & np.isfinite(f.exact[i, j])
    i, j = i[known], j[known]
    source = np.array(
        [places.get(at, (*at, False)) for at in zip((i // down).tolist(), (j // across).tolist(), strict=True)]
    )
    k, x = np.clip(source[:, 0] * down + i % down, 0, m - 1), np.clip(source[:, 1] * across + j % across, 0, n - 1)
    goes = source[:, 2].astype(bool)
    part = f.moved(i, j)
    if not part.wrong[i, j].any():
        return None
    base = true[k, x]
    prediction = base if what == "hold" else np.where(goes, part.true + base, part.true)
    chosen = 1 if _tile_rule(moved) else len(moved)
    return part.finding(
        prediction, _tiles_in_words(moved, down, across, what), 1 + slack_of(part, k, x) * (what == "added"),
        math.log(rows * columns) * chosen,
    )  # fmt: skip


def _tiles_with(wrong: np.ndarray, down: int, across: int) -> np.ndarray:
    """Return a bool for each tile: whether it holds wrong elements."""
    m, n = wrong.shape
    sums = np.add.reduceat(wrong, np.arange(0, m, down), 0, dtype=int)
    return np.add.reduceat(sums, np.arange(0, n, across), 1) > 0


def _tile_rule(moved: list[tuple[int, int, int, int]]) -> str:
    """Return the map of all tiles in words, or "" if it follows no known rule."""
    if len({(k - i, x - j) for i, j, k, x in moved}) == 1:
        step = moved[0][2] - moved[0][0], moved[0][3] - moved[0][1]
        return f"the tile {step} tiles (down, across) away"
    if all((k, x) == (j, i) for i, j, k, x in moved):
        return "the tile with the indices (down, across) exchanged"
    flips = {(k ^ i, x ^ j) for i, j, k, x in moved}
    if len(flips) == 1 and len(moved) > 2:
        return f"the tile whose indices (down, across) are their own exclusive or {flips.pop()}"
    return ""


def _tiles_in_words(moved, down: int, across: int, what: str) -> str:
    def name(i: int, j: int) -> str:
        return f"rows {i * down} to {(i + 1) * down - 1}, columns {j * across} to {(j + 1) * across - 1}"

    i, j, k, x = moved[0]
    first = f"tile {name(i, j)}"
    if what == "added":
        return f"a stale accumulator: to the {first} the sums of {name(k, x)} are added"
    if len(moved) == 2 and moved[1] == (k, x, i, j):
        return f"tiles are exchanged: {name(i, j)} and {name(k, x)}"
    where = _tile_rule(moved) or "another tile"
    return f"tiles of {down} x {across} hold {where}: the {first} holds {name(k, x)}"
