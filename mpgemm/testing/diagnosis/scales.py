"""Was a scale taken wrongly? Predictions from the scales that the test was given."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import Failure, Finding
from mpgemm.testing.diagnosis.maps import line_maps
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import get_float_format
from tensorcore_models.formats.rounding import round_to

#: Rows (columns) that are listed.
LISTED = 6
#: Failing elements of a row (column) below which its own ratio says nothing.
FEWEST = 3


def in_list(at: np.ndarray) -> str:
    """Numbers in words: a range, or some of them."""
    if at.size > 2 and at[-1] - at[0] + 1 == at.size:
        return f"{at[0]}:{at[-1] + 1}"
    return ", ".join(map(str, at[:LISTED])) + (f" and {at.size - LISTED} more" if at.size > LISTED else "")


def scope(f: Failure) -> str:
    """Where elements are wrong, if that is in few rows or columns: " of row 12"."""
    m, n = f.wrong.shape
    for axis, size, name in ((1, m, "row"), (0, n, "column")):
        at = np.flatnonzero(f.wrong.any(axis))
        if 1 <= at.size <= max(1, size // 4) and size > 1:
            return f" of {name}{'s' if at.size > 1 else ''} {in_list(at)}"
    return ""


def given_scales(f: Failure) -> Iterator[Finding]:
    """A scale that was applied twice, left out, divided by, taken from elsewhere, or rounded: nothing is free."""
    scaling = f.case.scaling
    if scaling is None:
        return
    tables = _tables(scaling)
    parts = _parts(f, scaling)
    own = [tables[0][f.rows], tables[1][f.columns]]
    where, tried = scope(f), math.log(100)
    known: set[bytes] = set()  # tables that are alike for these elements are one statement

    def found(times: np.ndarray, text: str, dearer: float = 0.0) -> Iterator[Finding]:
        if times.shape != own[0].shape or times.tobytes() in known:
            return
        known.add(times.tobytes())
        if not np.allclose(times, 1.0, rtol=2.0**-12, equal_nan=True):
            change, slack = (parts * (times - 1)).sum(1), 1 + np.abs(times).max(1)
            yield f.finding(f.true + change, text, slack, tried + dearer)

    with np.errstate(all="ignore"):
        others: list[dict[str, np.ndarray]] = [{}, {}]
        for side, name in enumerate(("scale_a", "scale_b")):
            mine, other = own[side] * _whole(scaling, side), own[1 - side] * _whole(scaling, 1 - side)
            yield from found(mine, f"{name}{where} was applied twice")
            yield from found(1 / mine, f"{name}{where} was left out")
            yield from found(1 / (mine * mine), f"{name}{where} is inverted: the kernel divides by it")
            yield from found(mine / other, f"{name}{where} was used in the place of scale_{'ba'[side]}")
            lines = (f.rows, f.columns)
            others[side] = {
                text: table[lines[side]] / own[side] for text, table in _others(scaling, tables[side], side)
            }
            for text, times in others[side].items():
                yield from found(times, f"{name}{where} {text}", 1.0)  # one of many
            crossed = tables[side][np.minimum(lines[1 - side], len(tables[side]) - 1)]
            axis = "column" if side == 0 else "row"
            yield from found(crossed / own[side], f"{name}{where} is taken along the wrong axis: by the {axis}")
        both = own[0] * own[1] * _whole(scaling, 0) * _whole(scaling, 1)
        for times, what in (
            (both, "were applied twice"),
            (1 / both, "were left out"),
            (1 / (both * both), "are inverted"),
        ):
            yield from found(times, f"scale_a and scale_b{where} {what}")
        for text in others[0].keys() & others[1].keys():
            if not any(np.allclose(x[text], 1.0, rtol=2.0**-12) for x in others):
                yield from found(others[0][text] * others[1][text], f"scale_a and scale_b{where}: each {text}", 1.0)
        if tables[0].shape == tables[1].shape and not scaling.folded:
            times = tables[1][f.rows] * tables[0][f.columns] / (own[0] * own[1])
            yield from found(times, f"scale_a and scale_b{where} are swapped")
        yield from _of_whole(f, scaling)


def _of_whole(f: Failure, scaling: Scaling) -> Iterator[Finding]:
    """The factor of a whole tensor beside block scales."""
    for side, name in enumerate("ab"):
        factor = _whole(scaling, side)
        if factor != 1:
            base = f.true - f.added
            for times, text in ((1 / factor, "was left out"), (factor, "was applied twice")):
                yield f.finding(
                    base * times + f.added,
                    f"the factor of the whole {name.upper()} beside its blocks {text}",
                    1 + times,
                    2.0,
                )


def _whole(scaling: Scaling, side: int) -> float:
    return (scaling.whole_a, scaling.whole_b)[side]


def _others(scaling: Scaling, table: np.ndarray, side: int) -> Iterator[tuple[str, np.ndarray]]:
    """Other tables of scales that a kernel may have read, each with what it is; (rows or columns, blocks of k)."""
    rule = (scaling.rule_a, scaling.rule_b)[side]
    word = "row" if side == 0 else "column"
    together = rule.together or len(table)
    stored, lines = table[::together], np.arange(len(table)) // together
    if rule.along is not None and table.shape[1] > 1:
        for text, at in line_maps(table.shape[1]):
            yield f"is that of {text.format('block of k')}", table[:, at]
        tail = table.copy()
        tail[:, -1] = table[:, -2]
        yield "is that of the block before at the last block of k", tail
    if len(stored) > 1:
        many = word if together == 1 else f"block of {together} {word}s"
        for text, at in line_maps(len(stored)):
            yield f"is that of {text.format(many)}", stored[at][lines]
        for size in (together // 2, together * 2) if together > 1 else ():
            taken = np.minimum(np.arange(len(table)) // size, len(stored) - 1)
            yield f"is taken for every {size} {word}s, not for {together}", stored[taken]
    if min(stored.shape) > 1 and stored.shape[0] == stored.shape[1]:
        yield "is read transposed", stored.T[lines]
    elif min(stored.shape) > 1:
        by_rows, by_columns = (
            stored.ravel(order="F").reshape(stored.shape),
            stored.ravel().reshape(stored.shape, order="F"),
        )
        yield "is read by rows of a table that is stored by columns", by_rows[lines]
        yield "is read by columns of a table that is stored by rows", by_columns[lines]
    for name in ("bf16", "fp16", "ue8m0"):
        fmt = get_float_format(name)
        if (table > 0).all() and rule.format != name:
            for rounding, how in (("rne", "rounded"), ("ru", "rounded up"), ("rz", "cut")):
                yield f"is {how} to {name}", np.asarray(round_to(table, fmt, rounding, saturate=True), np.float64)


def _starts(scaling: Scaling) -> range:
    k = max(scaling.sizes[1], 1)
    return range(0, k, scaling.block or k)


def _tables(scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """The scales of A (rows, blocks of k) and of B (columns, blocks of k), without factors of the whole."""
    pairs = [scaling.at(start) for start in _starts(scaling)]
    return (
        np.stack([x[:, 0] for x, _ in pairs], 1).astype(np.float64),
        np.stack([y[0] for _, y in pairs], 1).astype(np.float64),
    )


def _parts(f: Failure, scaling: Scaling) -> np.ndarray:
    """Sums of the elements over each block of k with the same scales: (elements, blocks)."""
    if scaling.block is None or scaling.sizes[1] == 0:
        return (f.true - f.added)[:, None]
    return np.add.reduceat(f.products, list(_starts(scaling)), axis=1) * (1 + f.share)


def own_scales(f: Failure) -> Iterator[Finding]:
    """Each failing row, or column, has a ratio of its own: the scales of a few are wrong."""
    m, n = f.wrong.shape
    base = f.true - f.added
    for places, axis, size, name in ((f.rows, 1, m, "row"), (f.columns, 0, n, "column")):
        found = np.flatnonzero(f.wrong.any(axis))
        if not 1 <= found.size <= max(1, size // 4) or size < 2 or places.size < FEWEST * found.size:
            continue
        index = np.searchsorted(found, places)
        squares = np.bincount(index, base * base, found.size)
        with np.errstate(all="ignore"):
            ratios = 1 + np.bincount(index, base * (f.got - f.true), found.size) / squares
        if not np.isfinite(ratios).all():
            continue
        text = f"the scale of {name} {found[0]} is wrong: its results are {ratios[0]:.6g} times the exact ones"
        if found.size > 1:
            text = f"the scales of {name}s {in_list(found)} are wrong: results of {name} {found[0]} are "
            text += f"{ratios[0]:.6g} times the exact ones"
        prediction = f.true + (ratios - 1)[index] * base
        yield f.finding(prediction, text, 1 + np.abs(ratios)[index], math.log(size), int(found.size))


def block_scales(f: Failure) -> Iterator[Finding]:
    """One block of k with a wrong factor."""
    scaling = f.case.scaling
    if scaling is None or scaling.block is None:
        return
    parts = _parts(f, scaling)
    if parts.shape[1] < 2:
        return
    with np.errstate(all="ignore"):
        difference = (f.got - f.true) / f.usual
        parts = parts / f.usual[:, None]
    squares = np.square(parts).sum(0)
    with np.errstate(all="ignore"):
        times = np.einsum("eb,e->b", parts, difference) / squares
        left = np.square(difference[:, None] - parts * times).sum(0)
    left = np.where(np.isfinite(left), left, np.inf)
    best = int(np.argmin(left))
    ratio = 1 + times[best]
    if abs(ratio) < 0.05 or abs(ratio - 2) < 0.02:  # missing or there twice: see the lost terms
        return
    start = best * scaling.block
    stop = min(start + scaling.block, scaling.sizes[1])
    text = f"the scale of k {start}:{stop}{_columns(f)} is wrong: its sums are {ratio:.6g} times the exact ones"
    tried = math.log(parts.shape[1])
    yield f.finding(f.true + times[best] * parts[:, best] * f.usual, text, 1 + abs(ratio), tried, 2)


def _columns(f: Failure) -> str:
    """Rows or columns in which elements fail, where these are not all."""
    texts = []
    for axis, name in ((1, "rows"), (0, "columns")):
        at = np.flatnonzero(f.wrong.any(axis))
        if at[-1] - at[0] + 1 < f.wrong.shape[1 - axis]:
            texts.append(f"{name} {at[0]}:{at[-1] + 1}")
    return f" in {', '.join(texts)}" if texts else ""
