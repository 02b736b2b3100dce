"""Operands that were read wrongly: permuted or shifted along k, transposed, rounded, clipped, or as another format."""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from mpgemm.testing.diagnosis.failure import Failure, Finding
from mpgemm.testing.diagnosis.maps import ElementMap, element_maps, line_maps
from tensorcore_models.formats import Format, get_float_format
from tensorcore_models.formats.operands import operand_bits
from tensorcore_models.formats.rounding import decode, round_to

#: Groups of k inside of which values are permuted, in elements.
GROUPS = (8, 16, 32, 64, 128)
#: Elements on which permutations are tried first, at most and at least, their products about, and how many permutations are
#: then looked at.
SCREENED, BUDGET, KEPT = (32, 16), 1 << 17, 3
#: Where conversions to 8 bits and to FP16 saturate.
LIMITS = (6.0, 240.0, 448.0, 57344.0, 65504.0)
#: Formats of the same width that operands are mistaken for.
MISTAKEN = {
    "e4m3fn": ("e5m2", "e4m3fnuz", "e5m2fnuz"), "e5m2": ("e4m3fn", "e5m2fnuz", "e4m3fnuz"),
    "e4m3fnuz": ("e4m3fn", "e5m2", "e5m2fnuz"), "e5m2fnuz": ("e5m2", "e4m3fn", "e4m3fnuz"),
    "fp16": ("bf16",), "bf16": ("fp16",), "e2m3": ("e3m2",), "e3m2": ("e2m3",),
}  # fmt: skip


def _sides(f: Failure) -> list[np.ndarray]:
    """Rows of A and columns of B of the elements, scales multiplied in: (elements, k) each."""
    return [f.case.a[f.rows], f.case.b[:, f.columns].T]


def unscaled(f: Failure) -> tuple[list[np.ndarray], np.ndarray | float]:
    """(rows of A and columns of B as they are stored, the factors of their products)."""
    return list(f.stored), f.factors[0] * f.factors[1]


def operand_transposed(f: Failure) -> Iterator[Finding]:
    """A or B is read transposed: they must be square."""
    a, b = f.case.a, f.case.b
    if b.shape[0] == b.shape[1]:
        yield f.finding(np.einsum("ik,ik->i", a[f.rows], b[f.columns]) + f.added, "B is read transposed", 2.0)
    if a.shape[0] == a.shape[1]:
        yield f.finding(np.einsum("ki,ki->i", a[:, f.rows], b[:, f.columns]) + f.added, "A is read transposed", 2.0)


# -- permutations along k ------------------------------------------------------------------------------------------------
def _permutations(k: int, size: int) -> Iterator[tuple[str, np.ndarray]]:
    """(words, where each value of k is taken from), shape (k,) or, where rows differ, (period of rows, k); -1: nothing."""
    at = np.arange(k)
    step = 1
    while step < k:
        yield from _whole(f"neighbouring groups of {step} values of k are exchanged", at ^ step, k)
        for sign in (1, -1):
            moved = at + sign * step
            yield (
                f"k is read {step} {'ahead' if sign > 0 else 'behind'}",
                np.where((moved >= 0) & (moved < k), moved, -1),
            )
            yield f"k is read {step} {'ahead' if sign > 0 else 'behind'}, around the end", moved % k
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
                    text = f"chunks of {width} bytes are swizzled by {rows} mod {mask + 1}, and not back"
                    yield from _whole(text, at[None] ^ turned, k)


def _whole(text: str, source: np.ndarray, k: int) -> Iterator[tuple[str, np.ndarray]]:
    """A permutation with zeros behind the end of k, and one that leaves the last values, which fill no 128, at their place."""
    yield text, source
    if k % GROUPS[-1] and k > GROUPS[-1]:
        at = np.arange(k)
        yield f"{text}, but for the last {k % GROUPS[-1]}", np.where(at >= k // GROUPS[-1] * GROUPS[-1], at, source)


def _few(f: Failure) -> Failure:
    """A few of the wrong elements."""
    taken = np.flatnonzero(f.wrong[f.rows, f.columns])
    most, least = SCREENED
    most = min(max(BUDGET // max(f.case.a.shape[1], 1), least), most, taken.size)
    taken = taken[np.linspace(0, taken.size - 1, most).astype(int)]
    return f.moved(f.rows[taken], f.columns[taken])


def permuted(f: Failure) -> Iterator[Finding]:
    """One operand's values of k are in another order than the other's."""
    k = f.case.a.shape[1]
    if k < 2:
        return
    few = _few(f)
    sources = dict(_permutations(k, max(f.case.operands[0].dtype.itemsize, 1)))
    for side, name, lines in ((0, "A", few.rows), (1, "B", few.columns)):
        (values, factors), other = unscaled(few), 1 - side
        values[other] = values[other] * factors
        rated = []
        left = (few.got - few.true) / few.usual
        for text, source in sources.items():
            change = _change(values[side], values[other], source, lines) / few.usual
            rated.append((float(np.square(left - change).sum()), text))
        (every, scales) = unscaled(f)
        every[other] = every[other] * scales
        for _, text in sorted(rated)[:KEPT]:
            prediction = f.true + _change(every[side], every[other], sources[text], f.rows if side == 0 else f.columns)
            yield f.finding(prediction, f"{name} is permuted: {text}", 1.5, math.log(len(sources)), 1)
        yield from _permuted_block(f, name, every, side)


def _change(values: np.ndarray, other: np.ndarray, source: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """What another order of one operand, of these lines, changes of the sums."""
    k = values.shape[1]
    source = source if source.ndim == 1 else source[lines % len(source)]
    inside = (source >= 0) & (source < k)
    safe = np.where(inside, source, 0)
    moved = values[:, safe] if source.ndim == 1 else np.take_along_axis(values, safe, 1)
    return np.einsum("ek,ek->e", np.where(inside, moved, 0.0) - values, other)


def _permuted_block(f: Failure, name: str, values: list[np.ndarray], side: int) -> Iterator[Finding]:
    """Groups of values of k are exchanged in one block of k only."""
    mine, other = values[side], values[1 - side]
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
            best = f.nearest(changes)
            where = f"{best * length}:{(best + 1) * length}"
            text = f"{name} is permuted: at k {where} neighbouring groups of {step} values are exchanged"
            yield f.finding(f.true + changes[:, best], text, 1.5, math.log(20 * changes.shape[1]), 1)


# -- other places in memory ----------------------------------------------------------------------------------------------
def rearranged(f: Failure) -> Iterator[Finding]:
    """One operand's lines are others, its blocks are transposed or exchanged, or its leading dimension is wrong; scales that
    belong to it are not."""
    few = _few(f)
    for side, name in enumerate("AB"):
        stored = f.case.stored[side] if side == 0 else f.case.stored[side].T
        tables = [(each, unscaled(each)) for each in (few, f)]
        maps = dict(_elsewhere(stored.shape, side))
        rated = []
        for text, where in maps.items():
            known, prediction = _read_from(*tables[0], side, stored, where)
            if known.any():
                left = ((few.got - prediction) / few.usual)[known]
                rated.append((float(np.mean(np.square(left))), text))
        for _, text in sorted(rated)[:KEPT]:
            known, prediction = _read_from(*tables[1], side, stored, maps[text])
            part = f.moved(f.rows[known], f.columns[known])
            if part.wrong[part.rows, part.columns].any():
                yield part.finding(prediction[known], f"{name} is misread: {text}", 2.0, math.log(len(rated)), 1)


def _elsewhere(shape: tuple[int, int], side: int) -> Iterator[tuple[str, ElementMap]]:
    """(words, map) of an operand of that shape (lines, k)."""
    word, along = "row" if side == 0 else "column", np.arange(shape[1])[None]

    def of_lines(source: np.ndarray, lines: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return source[lines][:, None], along

    for text, source in line_maps(shape[0]):
        yield f"each {word} is {text.format(word)}", partial(of_lines, source)
    for stored in ("rows",) if side == 0 else ("rows", "columns"):
        yield from element_maps(shape, stored)


def _read_from(f: Failure, table, side: int, stored: np.ndarray, where: ElementMap) -> tuple[np.ndarray, np.ndarray]:
    """(whether all is known that the elements would be of, the sums) where one operand is read elsewhere."""
    values, factors = table
    line, at = where(f.rows if side == 0 else f.columns)
    sums = np.einsum("ek,ek->e", stored[line, at] * factors, values[1 - side])
    return np.all(line >= 0, axis=1), (1 + f.share) * sums + f.added


# -- values --------------------------------------------------------------------------------------------------------------
def operands_rounded(f: Failure) -> Iterator[Finding]:
    """The product of operands in a narrower format."""
    fmt = f.case.engine.formats[0]
    if not isinstance(fmt, Format):
        return
    least = fmt.min_normal
    yield from _with_operands(f, lambda x: np.where(np.abs(x) < least, 0.0, x), "{} taken with 0 for subnormal numbers")
    for name in ("tf32", "bf16", "fp16", "e4m3fn", "e5m2"):
        narrow = get_float_format(name)
        for rounding, how in (("rne", "rounded"), ("rz", "cut")):
            if narrow.fraction_bits < fmt.fraction_bits:
                yield from _with_operands(
                    f, lambda x, narrow=narrow, rounding=rounding: round_to(x, narrow, rounding, saturate=True),
                    f"{{}} {how} to {name} first",
                )  # fmt: skip


def operands_clipped(f: Failure) -> Iterator[Finding]:
    """A quantizer that saturates: operands are at most so large."""
    for limit in LIMITS:
        yield from _with_operands(f, lambda x, limit=limit: np.clip(x, -limit, limit), f"{{}} clipped at {limit:g}")


def _with_operands(f: Failure, change, text: str) -> Iterator[Finding]:
    if f.case.engine.scale_format is not None:
        return
    given, factors = f.case.given, f.factors
    stored = [given[0][f.rows], given[1][:, f.columns].T]
    for sides, words in (((0, 1), "the operands were"), ((0,), "A was"), ((1,), "B was")):
        used = [change(x) if side in sides else x for side, x in enumerate(stored)]
        if any(np.array_equal(used[side], stored[side]) for side in sides):
            continue
        prediction = np.einsum("ik,ik->i", used[0] * factors[0], used[1] * factors[1]) + f.added
        yield f.finding(prediction, text.format(words), 1 + 2.0**-6, 3.0)


def mistaken_formats(f: Failure) -> Iterator[Finding]:
    """Operands whose encodings were read as another format of the same width."""
    for prediction, text in misreadings(f):
        yield f.finding(prediction, text, 4.0, 2.0)


def misreadings(f: Failure) -> Iterator[tuple[np.ndarray, str]]:
    """(the sums, in words) of operands whose encodings are read as another format."""
    formats = f.case.engine.formats[:2]
    for sides, words in (((0, 1), "A and B were"), ((0,), "A was"), ((1,), "B was")):
        first = formats[sides[0]]
        for name in MISTAKEN.get(first.name, ()):
            if len(sides) == 2 and formats[0] != formats[1]:
                continue
            operands = _sides(f)
            for side in sides:
                operands[side] = _read_as(f, side, formats[side], name)
            with np.errstate(all="ignore"):
                sums = np.einsum("ik,ik->i", *operands) + f.added
            yield sums, f"{words} read as {name} in the place of {first.name}"


def _read_as(f: Failure, side: int, fmt: Format, name: str) -> np.ndarray:
    """Rows of A, or columns of B, of the elements in another format, with their scales."""
    given = f.case.operands[side]
    taken = given[f.rows] if side == 0 else given[:, f.columns].T
    return decode(operand_bits(taken, fmt, None, "a"), get_float_format(name)) * f.factors[side]
