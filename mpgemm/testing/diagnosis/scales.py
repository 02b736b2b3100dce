"""Was a scale, or the format of operands, taken wrongly? Predictions from the scales that the test was given."""

from collections.abc import Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import Failure, Finding
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.formats.rounding import decode

#: Rows (columns) that are listed.
LISTED = 6
#: Failing elements of a row (column) below which its own ratio says nothing.
FEWEST = 3
#: Formats of the same width that operands are mistaken for.
MISTAKEN = {
    "e4m3fn": ("e5m2", "e4m3fnuz", "e5m2fnuz"), "e5m2": ("e4m3fn", "e5m2fnuz", "e4m3fnuz"),
    "e4m3fnuz": ("e4m3fn", "e5m2", "e5m2fnuz"), "e5m2fnuz": ("e5m2", "e4m3fn", "e4m3fnuz"),
    "fp16": ("bf16",), "bf16": ("fp16",), "e2m3": ("e3m2",), "e3m2": ("e2m3",),
}  # fmt: skip


def scope(f: Failure) -> str:
    """Where elements fail, if that is in few rows or columns: " of row 12"."""
    m, n = f.wrong.shape
    for axis, size, name in ((1, m, "row"), (0, n, "column")):
        at = np.flatnonzero(f.wrong.any(axis))
        if 1 <= at.size <= max(1, size // 4) and size > 1:
            return f" of {name}{'s' if at.size > 1 else ''} {in_list(at)}"
    return ""


def in_list(at: np.ndarray) -> str:
    """Numbers in words: a range, or some of them."""
    if at.size > 2 and at[-1] - at[0] + 1 == at.size:
        return f"{at[0]}:{at[-1] + 1}"
    return ", ".join(map(str, at[:LISTED])) + (f" and {at.size - LISTED} more" if at.size > LISTED else "")


def given_scales(f: Failure) -> Iterator[Finding]:
    """A scale that was applied twice, left out, divided by, or taken from a neighbour: nothing is free."""
    scaling = f.tolerance.scaling
    if scaling is None:
        return
    parts, factors = _parts(f, scaling)
    where = scope(f)
    for side, name in enumerate(("scale_a", "scale_b")):
        own = factors[side]
        other = factors[1 - side]
        with np.errstate(all="ignore"):
            kinds = {
                "was applied twice": own,
                "was left out": 1 / own,
                "is inverted: the kernel divides by it": 1 / (own * own),
                f"was used in the place of scale_{'ba'[side]}": own / other,
            }
        for text, times in kinds.items():
            if not np.allclose(times, 1.0, rtol=2.0**-12):
                yield _scaled(f, parts, times, f"{name}{where} {text}")
        yield from _neighbours(f, scaling, side, parts, own, where)
    both = factors[0] * factors[1]
    with np.errstate(all="ignore"):
        for text, times in (
            ("were applied twice", both),
            ("were left out", 1 / both),
            ("are inverted", 1 / (both * both)),
        ):
            if not np.allclose(times, 1.0, rtol=2.0**-12):
                yield _scaled(f, parts, times, f"scale_a and scale_b{where} {text}")


def _parts(f: Failure, scaling: Scaling) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """(sums of the elements over each block of k with the same scales, these scales): (elements, blocks)."""
    k, block = scaling.sizes[1], scaling.block
    if block is None or k == 0:
        a, b = scaling.at(0)
        base = f.true - f.added
        return base[:, None], (a[f.rows].astype(np.float64), b[0, f.columns][:, None].astype(np.float64))
    parts = np.add.reduceat(f.products(), list(range(0, k, block)), axis=1) * (1 + f.share)
    a, b = _parts_scales(f, scaling)
    return parts, (a * scaling.whole_a, b * scaling.whole_b)


def _scaled(f: Failure, parts: np.ndarray, times: np.ndarray, text: str) -> Finding:
    """The finding of sums whose blocks are `times` as large."""
    with np.errstate(all="ignore"):
        change = (parts * (times - 1)).sum(1)
        slack = 1 + np.abs(times).max(1)
    return f.finding(f.true + change, text, slack)


def _neighbours(f: Failure, scaling: Scaling, side: int, parts, own, where: str) -> Iterator[Finding]:
    """The scale of the next or last row, column, or block of k."""
    name = f"scale_{'ab'[side]}{where}"
    rule = (scaling.rule_a, scaling.rule_b)[side]
    places, size = ((f.rows, scaling.sizes[0]), (f.columns, scaling.sizes[2]))[side]
    word = "row" if side == 0 else "column"
    with np.errstate(all="ignore"):
        for step, beside in ((1, "behind"), (-1, "before")):
            at = np.clip(places + step * (rule.together or size), 0, size - 1)
            if rule.together is not None and (at != places).any():
                moved = f.moved(rows=at) if side == 0 else f.moved(columns=at)
                times = _parts_scales(moved, scaling)[side] / own
                yield _scaled(f, parts, times, f"{name} is that of the {word} {beside}")
            if rule.along is not None and own.shape[1] > 1:
                shifted = own[:, np.clip(np.arange(own.shape[1]) + step, 0, own.shape[1] - 1)]
                yield _scaled(f, parts, shifted / own, f"{name} is that of the block of k {beside}")


def _parts_scales(f: Failure, scaling: Scaling) -> tuple[np.ndarray, np.ndarray]:
    """The scales of each block of k, without factors of the whole: (elements, blocks)."""
    starts = range(0, max(scaling.sizes[1], 1), scaling.block or max(scaling.sizes[1], 1))
    pairs = [scaling.at(start) for start in starts]
    a = np.stack([x[f.rows, 0] for x, _ in pairs], 1).astype(np.float64)
    b = np.stack([y[0, f.columns] for _, y in pairs], 1).astype(np.float64)
    return a, b


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
        yield f.finding(prediction, text, 1 + np.abs(ratios)[index])._replace(free=int(found.size))


def block_scales(f: Failure) -> Iterator[Finding]:
    """One block of k with a wrong factor."""
    scaling = f.tolerance.scaling
    if scaling is None or scaling.block is None:
        return
    parts, _ = _parts(f, scaling)
    if parts.shape[1] < 2:
        return
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
    yield f.finding(f.true + times[best] * parts[:, best] * f.usual, text, 1 + abs(ratio))._replace(free=2)


def _columns(f: Failure) -> str:
    """Rows or columns in which elements fail, where these are not all."""
    texts = []
    for axis, name in ((1, "rows"), (0, "columns")):
        at = np.flatnonzero(f.wrong.any(axis))
        if at[-1] - at[0] + 1 < f.wrong.shape[1 - axis]:
            texts.append(f"{name} {at[0]}:{at[-1] + 1}")
    return f" in {', '.join(texts)}" if texts else ""


def mistaken_formats(f: Failure) -> Iterator[Finding]:
    """Operands whose encodings were read as another format of the same width."""
    formats = f.tolerance.engine.formats[:2]
    scaling = f.tolerance.scaling
    for sides, words in (((0, 1), "A and B were"), ((0,), "A was"), ((1,), "B was")):
        first = formats[sides[0]]
        for name in MISTAKEN.get(first.name, ()):
            if len(sides) == 2 and formats[0] != formats[1]:
                continue
            operands = [f.tolerance.a[f.rows], f.tolerance.b[:, f.columns].T]
            for side in sides:
                operands[side] = _read_as(f, side, formats[side], name, scaling)
            with np.errstate(all="ignore"):
                prediction = np.einsum("ik,ik->i", *operands) + f.added
            yield f.finding(prediction, f"{words} read as {name} in the place of {first.name}", 4.0)


def _read_as(f: Failure, side: int, fmt: Format, name: str, scaling: Scaling | None) -> np.ndarray:
    """Rows of A, or columns of B, of the elements in another format, with their scales."""
    given = f.tolerance.operands[side]
    taken = given[f.rows] if side == 0 else given[:, f.columns].T
    values = decode(operand_bits(taken, fmt, None, "a"), get_float_format(name))
    if scaling is None:
        return values
    spread = scaling.spread_a()[f.rows] if side == 0 else scaling.spread_b()[:, f.columns].T
    return values * spread
