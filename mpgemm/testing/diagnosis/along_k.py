"""This module predicts results with products along k left out, added twice, read from other blocks, or scaled wrongly."""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from mpgemm.bounds.populations import evenly
from mpgemm.testing.diagnosis.displaced import line_maps
from mpgemm.testing.diagnosis.failure import GOOD, SAMPLES, Failure, Finding, ranges
from tensorcore_models.engines.scaling import Scaling
from tensorcore_models.formats import get_float_format
from tensorcore_models.formats.rounding import round_to

#: Sizes of blocks of k that kernels use.
BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
#: Numbers of parts into which k is split, and approximate number of lengths that are tried.
PARTS, LENGTHS = (2, 3, 4, 5, 6, 8, 12, 16), 60
#: Number of blocks that stay in a pipeline's buffer.
STALE = (16, 32, 64, 128)
#: Largest number of single missing products: matching pursuit finds s of k from about 2 s log(k / s) elements (Tropp
#: and Gilbert, 2007), 200 for 16 of 8192; 256 to 1024 elements are used.
SCATTERED = 16
#: Approximate number of products that are used for this.
LOOKED_AT = 1 << 19


#: Candidates: sums of products that may be lost, shape (elements, candidates), in units of a right kernel's errors, and the
#: description of each, in which "{}" stands for the fault.
Candidates = Iterator[tuple[np.ndarray, Callable[[int], str]]]


def lost_terms(f: Failure) -> Iterator[Finding]:
    """Yield results with products along k missing or doubled: one k, a block, every so many, the end or the beginning."""
    if f.k > 1:
        yield from lost_of(f, f.products * (1 + f.share))
        yield from _uncleared(f)


def lost_of(f: Failure, products: np.ndarray) -> Iterator[Finding]:
    """Yield results with some of these products along k, shape (elements, k), missing or doubled."""
    k, products = f.k, products / f.units[:, None]
    sums = np.concatenate([np.zeros((len(products), 1)), np.cumsum(products, 1)], 1)
    for candidates, text in itertools.chain(_single_and_blocks(products, sums), _every(products, sums)):
        yield from _lost(f, candidates, text, {-1: "missing", 1: "there twice"})
    ends = f"lost terms: the sum ends at k = {{}} of {k} (a tail that fills no tile)"
    yield from _lost(f, sums[:, -1:] - sums[:, 1:-1], lambda at: ends.format(at + 1), {-1: ""})
    yield from _lost(f, sums[:, 1:-1], lambda at: f"lost terms: the sum begins at k = {at + 1}", {-1: ""})


def _lost(f: Failure, candidates: np.ndarray, text: Callable[[int], str], what: dict[int, str]) -> Iterator[Finding]:
    """Yield the candidate that explains the elements best, added with each sign that has a word."""
    tried = math.log(2 * LENGTHS * candidates.shape[1])
    for sign, best in zip(what, f.nearest(candidates, tuple(what)), strict=True):
        prediction = f.true + sign * candidates[:, best] * f.units
        yield f.finding(prediction, text(best).format(what[sign]), 1.0, tried, 1)


def _single_and_blocks(products: np.ndarray, sums: np.ndarray) -> Candidates:
    """Yield single values of k, and blocks of k from any start."""
    k = products.shape[1]
    yield products, lambda at: f"a lost term: k = {at} is {{}}"
    lengths = {t for t in BLOCKS if t < k} | {-(-k // parts) for parts in PARTS if k // parts > 1}
    for length in sorted(lengths - {1}):
        yield sums[:, length:] - sums[:, :-length], lambda at, n=length: f"lost terms: k {at}:{at + n} is {{}}"  # type: ignore[misc]


def _every(products: np.ndarray, sums: np.ndarray) -> Candidates:
    """Yield one value of k of every so many, or one block of every few."""
    k = products.shape[1]
    for period in (p for p in BLOCKS if 2 * p <= k):
        whole = k // period * period
        each = products[:, :whole].reshape(len(products), -1, period).sum(1)
        each[:, : k - whole] += products[:, whole:]
        yield each, lambda at, p=period: f"lost terms: every {p}th k, from k = {at} on, is {{}}"  # type: ignore[misc]
        if period < 8:
            continue
        ends = np.append(np.arange(0, k, period), k)
        blocks = sums[:, ends[1:]] - sums[:, ends[:-1]]
        for stride in (s for s in (2, 3, 4, 8) if s <= blocks.shape[1] // 2):
            found = np.stack([blocks[:, start::stride].sum(1) for start in range(stride)], 1)
            words = f"lost terms: one of every {stride} blocks of {period} values of k"
            yield found, lambda at, words=words, p=period: f"{words}, from k = {at * p} on, is {{}}"  # type: ignore[misc]


def _uncleared(f: Failure) -> Iterator[Finding]:
    """Yield results of a chain that continues after it was added outside, and is added again."""
    scaling, length = f.case.scaling, f.case.order.block or f.case.promote_every
    if length is None or length >= f.k or (scaling is not None and scaling.applied == "product"):
        return
    (x, y), factors = f.unscaled
    starts = np.arange(0, x.shape[1], length)
    outside = factors[:, starts] if isinstance(factors, np.ndarray) else factors
    chains = np.cumsum(np.add.reduceat(x * y, starts, 1), 1) * (1 + f.share)
    text = f"lost terms: the chain is not cleared every {length} values of k, so that its sums are added again"
    yield f.finding((chains * outside).sum(1) + f.added, text, float(len(starts)), math.log(4))


def stale_blocks(f: Failure) -> Iterator[Finding]:
    """Yield results with a block of k of A, of B, or of both, that holds an earlier, another or an exchanged block.

    In a pipeline the earlier block may be two blocks before. Block scales are those of the block that is read, or those
    of its place.
    """
    a, b = f.sides
    yield from _stale_of(f, a, b, None, "")
    if f.case.scaling is not None and f.case.scaling.block is not None:
        (x, y), factors = f.unscaled
        yield from _stale_of(f, x, y, np.broadcast_to(factors, x.shape), ", with the scales of its place")


def _stale_of(f: Failure, a: np.ndarray, b: np.ndarray, factors: np.ndarray | None, words: str) -> Iterator[Finding]:
    k = a.shape[1]
    for length in (t for t in STALE if t < k):
        count = k // length
        x, y = (v[:, : count * length].reshape(len(a), count, length) for v in (a, b))
        scale = None if factors is None else factors[:, : count * length].reshape(x.shape)

        def sums(of_a: slice, of_b: slice, at: slice, x=x, y=y, scale=scale) -> np.ndarray:
            if scale is None:
                return np.einsum("ebt,ebt->eb", x[:, of_a], y[:, of_b])
            return np.einsum("ebt,ebt->eb", x[:, of_a] * scale[:, at], y[:, of_b])

        own, of_a = sums(slice(None), slice(None), slice(None)), {}
        for step in (s for back in range(1, 5) for s in (-back, back) if back < count):
            at = slice(max(-step, 0), count - max(step, 0))
            source = slice(at.start + step, at.stop + step)
            of_a[step] = sums(source, at, at) - own[:, at]
            yield from _stale(f, of_a[step], length, step, "A", words)
            yield from _stale(f, sums(at, source, at) - own[:, at], length, step, "B", words)
            yield from _stale(f, sums(source, source, at) - own[:, at], length, step, "A and B", words)
            if step > 0:
                text = ranges(f"exchanged blocks: k {{}} and k {{}} of A (or of B){words}", length, 0, step)
                yield f.best_of(of_a[step] + of_a[-step], text, 2.0, math.log(30))
        if scale is None:
            yield from _repeated(f, own, length)


def _stale(f: Failure, changes: np.ndarray, length: int, step: int, operand: str, words: str) -> Iterator[Finding]:
    """Yield results with one block, or every block, that holds the block `step` blocks away."""
    changes, first = changes * (1 + f.share), max(-step, 0)
    holds = f"{operand} {'still' if step < 0 else 'already'} {'hold' if operand == 'A and B' else 'holds'}"
    text = ranges(f"a stale block: at k {{}} {holds} k {{}}{words}", length, first, first + step)
    yield f.best_of(changes, text, 2.0, math.log(200))
    if changes.shape[1] > 1:
        where = "the previous block" if step == -1 else f"the block {abs(step)} {'before' if step < 0 else 'after'} it"
        every = f"a stale block: at every k, in blocks of {length}, {holds} {where}{words}"
        yield f.finding(f.true + changes.sum(1), every, 2.0, math.log(200 * changes.shape[1]))


def _repeated(f: Failure, own: np.ndarray, length: int) -> Iterator[Finding]:
    """Yield results with a block of k that both A and B read from another place."""
    count = own.shape[1]
    if not 2 < count <= 64:
        return
    to, of = (x.ravel() for x in np.indices((count, count)))
    changes = own[:, of] - own[:, to]
    changes[:, to == of] = np.inf
    text = "a repeated block: at k {} A and B hold k {}"
    yield f.best_of(changes, lambda best: ranges(text, length, to[best], of[best])(0), 2.0, math.log(10), 2)


def scattered(f: Failure) -> Iterator[Finding]:
    """Yield results with a few scattered products missing, found by orthogonal matching pursuit in the differences."""
    k = f.k
    f = f.more(min(max(LOOKED_AT // max(k, 1), SAMPLES), 4 * SAMPLES))
    if f.rows.size < 4 * SCATTERED or k < 2:
        return
    products = f.products / f.usual[:, None]
    true, lost = f.true / f.usual, (f.true - f.got) / f.usual
    norms = np.sqrt(np.maximum(np.square(products - true[:, None] / k).sum(0), 1e-300))
    tried: list[int] = []
    for _ in range(2 * SCATTERED):
        left, factors = _least_squares(np.column_stack([true, products[:, tried]]), lost)
        missing = [at for at, factor in zip(tried, factors[1:], strict=True) if factor > 0.5]
        if 1 < len(missing) <= SCATTERED:
            rest = lost - products[:, missing].sum(1)
            if np.sqrt(np.mean(np.square(rest))) <= GOOD:
                text = _listed(missing, k)
                if text is not None:
                    chosen = len(missing) * math.log(k)
                    yield f.finding(f.got + rest * f.usual, f"lost terms: {text}", 1.0, chosen, len(missing))
                return
        score = np.abs(np.einsum("ek,e->k", products, left)) / norms
        score[tried] = -1.0
        tried.append(int(np.argmax(score)))


def _least_squares(columns: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (rest, factors) by normal equations, without BLAS, whose threads cost more than so few columns."""
    squares = np.einsum("ei,ej->ij", columns, columns)
    squares[np.diag_indices(len(squares))] *= 1 + 1e-12
    factors = np.linalg.lstsq(squares, np.einsum("ei,e->i", columns, values), rcond=None)[0]
    return values - np.einsum("ei,i->e", columns, factors), factors


def _listed(missing: list[int], k: int) -> str | None:
    """Return the missing values of k in words, or None if the sum starts late or ends early."""
    first, last = min(missing), max(missing)
    if last - first + 1 > len(missing):
        return f"k = {', '.join(map(str, sorted(missing)))} are missing"
    return None if first == 0 or last == k - 1 else f"k {first}:{last + 1} is missing"


#: Largest numbers of lines and blocks of k whose scale is tried for all others.
LINES_TRIED = 32
#: Largest number of rows (columns) that are listed.
LISTED = 6
#: Least number of failing elements of a row (column) whose own ratio counts.
RATIOS = 3


def in_list(at: np.ndarray) -> str:
    """Return numbers in words: a range, or some of them."""
    if at.size > 2 and at[-1] - at[0] + 1 == at.size:
        return f"{at[0]}:{at[-1] + 1}"
    return ", ".join(map(str, at[:LISTED])) + (f" and {at.size - LISTED} more" if at.size > LISTED else "")


def scope(f: Failure) -> str:
    """Return the few rows or columns of the wrong elements in words (" of row 12"), or ""."""
    m, n = f.wrong.shape
    for axis, size, name in ((1, m, "row"), (0, n, "column")):
        at = np.flatnonzero(f.wrong.any(axis))
        if 1 <= at.size <= max(1, size // 4) and size > 1:
            return f" of {name}{'s' if at.size > 1 else ''} {in_list(at)}"
    return ""


def given_scales(f: Failure) -> Iterator[Finding]:
    """Yield results with a scale applied twice, left out, inverted, taken from elsewhere, or rounded, without fitted
    numbers.
    """
    scaling = f.case.scaling
    if scaling is None:
        return
    tables = _tables(scaling)
    parts = _parts(f, scaling)
    own = [tables[0][f.rows], tables[1][f.columns]]
    where, tried = scope(f), math.log(100)
    known: set[bytes] = set()  # tables that are equal for these elements make one statement

    def found(times: np.ndarray, text: str, dearer: float = 0.0) -> Iterator[Finding]:
        if times.shape != own[0].shape or times.tobytes() in known:
            return
        known.add(times.tobytes())
        if not np.allclose(times, 1.0, rtol=2.0**-12, equal_nan=True):
            change, slack = (parts * (times - 1)).sum(1), 1 + np.abs(times).max(1)
            yield f.finding(f.true + change, text, slack, tried + dearer)

    def applied(factors: np.ndarray, what: str, inverted: str) -> Iterator[Finding]:
        yield from found(factors, f"{what} applied twice")
        yield from found(1 / factors, f"{what} left out")
        yield from found(1 / (factors * factors), inverted)

    with np.errstate(all="ignore"):
        others: list[dict[str, np.ndarray]] = [{}, {}]
        for side, name in enumerate(("scale_a" if f.case.ends is None else "alpha", "scale_b")):
            mine, other = own[side] * _whole(scaling, side), own[1 - side] * _whole(scaling, 1 - side)
            yield from applied(mine, f"{name}{where} was", f"{name}{where} is inverted: the kernel divides by it")
            yield from found(mine / other, f"{name}{where} was used in place of scale_{'ba'[side]}")
            lines = (f.rows, f.columns)
            for text, table in _others(scaling, tables[side], side):
                others[side][text] = table[lines[side]] / own[side]
                yield from found(others[side][text], f"{name}{where} {text}", 1.0)  # one of many candidates
            crossed = tables[side][np.minimum(lines[1 - side], len(tables[side]) - 1)]
            axis = "column" if side == 0 else "row"
            yield from found(crossed / own[side], f"{name}{where} is taken along the wrong axis: by the {axis}")
        both = own[0] * own[1] * _whole(scaling, 0) * _whole(scaling, 1)
        yield from applied(both, f"scale_a and scale_b{where} were", f"scale_a and scale_b{where} are inverted")
        for text in others[0].keys() & others[1].keys():
            if not any(np.allclose(x[text], 1.0, rtol=2.0**-12) for x in others):
                yield from found(others[0][text] * others[1][text], f"scale_a and scale_b{where}: each {text}", 1.0)
        if tables[0].shape == tables[1].shape and not scaling.folded:
            times = tables[1][f.rows] * tables[0][f.columns] / (own[0] * own[1])
            yield from found(times, f"scale_a and scale_b{where} are swapped")
        yield from _of_whole(f, scaling)


def _of_whole(f: Failure, scaling: Scaling) -> Iterator[Finding]:
    """Yield results with the factor of a whole tensor left out, of one operand or of both, beside block scales."""
    factors = [_whole(scaling, side) for side in (0, 1)]
    named = [
        (factors[0], "the factor of the whole A beside its block scales"),
        (factors[1], "the factor of the whole B beside its block scales"),
    ]
    if 1 not in factors:
        named.append((factors[0] * factors[1], "the factors of the whole A and B beside their block scales"))
    for factor, name in named:
        verb = "were" if "factors" in name else "was"
        for times, what in ((1 / factor, "left out"), (factor, "applied twice")) if factor != 1 else ():
            yield f.finding((f.true - f.added) * times + f.added, f"{name} {verb} {what}", 1 + times, 2.0)


def _whole(scaling: Scaling, side: int) -> float:
    return (scaling.whole_a, scaling.whole_b)[side]


def _others(scaling: Scaling, table: np.ndarray, side: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield other tables of scales (rows or columns, blocks of k) that a kernel may have read, each with a description."""
    rule = (scaling.rule_a, scaling.rule_b)[side]
    word = "row" if side == 0 else "column"
    together = rule.together or len(table)
    stored, lines = table[::together], np.arange(len(table)) // together
    if rule.along is not None and table.shape[1] > 1:
        for text, at in line_maps(table.shape[1]):
            yield f"is that of {text.format('block of k')}", table[:, at]
        for at in evenly(table.shape[1], LINES_TRIED):
            yield f"is that of block {at} of k everywhere", np.repeat(table[:, at : at + 1], table.shape[1], 1)
        tail = table.copy()
        tail[:, -1] = table[:, -2]
        yield "is that of the previous block at the last block of k", tail
    if len(stored) > 1:
        many = word if together == 1 else f"block of {together} {word}s"
        for text, at in line_maps(len(stored)):
            yield f"is that of {text.format(many)}", stored[at][lines]
        for at in evenly(len(stored), LINES_TRIED):
            yield f"is that of {many} {at} everywhere", np.broadcast_to(stored[at], table.shape)
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
    """Return the scales of A (rows, blocks of k) and of B (columns, blocks of k), without factors of the whole tensors."""
    pairs = [scaling.at(start) for start in _starts(scaling)]
    return (
        np.stack([x[:, 0] for x, _ in pairs], 1).astype(np.float64),
        np.stack([y[0] for _, y in pairs], 1).astype(np.float64),
    )


def _parts(f: Failure, scaling: Scaling) -> np.ndarray:
    """Return the elements' sums over each block of k with constant scales: (elements, blocks)."""
    if scaling.block is None or scaling.sizes[1] == 0:
        return (f.true - f.added)[:, None]
    return np.add.reduceat(f.products, list(_starts(scaling)), axis=1) * (1 + f.share)


def own_scales(f: Failure) -> Iterator[Finding]:
    """Yield a finding if the scales of a few rows or columns are wrong, so that each has its own ratio."""
    m, n = f.wrong.shape
    base = f.true - f.added
    for places, axis, size, name in ((f.rows, 1, m, "row"), (f.columns, 0, n, "column")):
        found = np.flatnonzero(f.wrong.any(axis))
        if not 1 <= found.size <= max(1, size // 4) or size < 2 or places.size < RATIOS * found.size:
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
    """Yield results with a wrong factor of one block of k."""
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
    if abs(ratio) < 0.05 or abs(ratio - 2) < 0.02:  # a missing or doubled block is a statement of the lost terms
        return
    start = best * scaling.block
    stop = min(start + scaling.block, scaling.sizes[1])
    text = f"the scale of k {start}:{stop}{_columns(f)} is wrong: its sums are {ratio:.6g} times the exact ones"
    tried = math.log(parts.shape[1])
    yield f.finding(f.true + times[best] * parts[:, best] * f.usual, text, 1 + abs(ratio), tried, 2)


def _columns(f: Failure) -> str:
    """Return the rows or columns with wrong elements in words, or "" if all have some."""
    texts = []
    for axis, name in ((1, "rows"), (0, "columns")):
        at = np.flatnonzero(f.wrong.any(axis))
        if at[-1] - at[0] + 1 < f.wrong.shape[1 - axis]:
            texts.append(f"{name} {at[0]}:{at[-1] + 1}")
    return f" in {', '.join(texts)}" if texts else ""
