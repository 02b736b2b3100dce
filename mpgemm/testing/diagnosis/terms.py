"""Products along k that a kernel leaves out, adds twice, or takes from another block."""

import math
from collections.abc import Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import GOOD, SAMPLES, Failure, Finding
from mpgemm.testing.diagnosis.operands import unscaled

#: Blocks of k that kernels have.
BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
#: Parts into which k is split, and lengths that are tried, about.
PARTS, LENGTHS = (2, 3, 4, 5, 6, 8, 12, 16), 60
#: Blocks that stay in a buffer of a pipeline.
STALE = (16, 32, 64, 128)
#: Single products along k that can be missing at once.
SCATTERED = 16
#: Products that are looked at for them, about.
LOOKED_AT = 1 << 19


def lost_terms(f: Failure) -> Iterator[Finding]:
    """Products along k that are missing, or there twice: one, a block, every so many, the end or the beginning."""
    products = f.products * (1 + f.share)
    k = products.shape[1]
    if k < 2:
        return
    sums = np.concatenate([np.zeros((len(products), 1)), np.cumsum(products, 1)], 1)

    def nearest(candidates: np.ndarray, sign: int, text) -> Finding:
        best = f.nearest(-sign * candidates)
        tried = math.log(2 * LENGTHS * candidates.shape[1])
        return f.finding(f.true - sign * candidates[:, best], text(best), 1.0, tried, 1)

    lengths = {t for t in BLOCKS if t < k} | {-(-k // parts) for parts in PARTS if k // parts > 1}
    for sign, what in ((1, "is missing"), (-1, "is there twice")):
        yield nearest(products, sign, lambda at, what=what: f"a lost term: k = {at} {what}")
        for length in sorted(lengths - {1}):
            blocks = sums[:, length:] - sums[:, :-length]
            yield nearest(blocks, sign, lambda at, n=length, what=what: f"lost terms: k {at}:{at + n} {what}")
        yield from _every(f, products, sums, nearest, sign, what)
    yield from _uncleared(f)
    tail = f"of {k} (a tail that fills no tile)"
    yield nearest(sums[:, -1:] - sums[:, 1:-1], 1, lambda at: f"lost terms: the sum ends at k = {at + 1} {tail}")
    yield nearest(sums[:, 1:-1], 1, lambda at: f"lost terms: the sum begins at k = {at + 1}")


def _every(f: Failure, products, sums, nearest, sign: int, what: str) -> Iterator[Finding]:
    """One value of k of every so many, or one block of every few."""
    k = products.shape[1]
    for period in (p for p in BLOCKS if 2 * p <= k):
        whole = k // period * period
        each = products[:, :whole].reshape(len(products), -1, period).sum(1)
        each[:, : k - whole] += products[:, whole:]
        yield nearest(each, sign, lambda at, p=period: f"lost terms: every {p}th k, from k = {at} on, {what}")
        if period < 8:
            continue
        ends = np.append(np.arange(0, k, period), k)
        blocks = sums[:, ends[1:]] - sums[:, ends[:-1]]
        for stride in (s for s in (2, 3, 4, 8) if s <= blocks.shape[1] // 2):
            found = np.stack([blocks[:, start::stride].sum(1) for start in range(stride)], 1)
            yield nearest(
                found, sign,
                lambda at, p=period, s=stride: (
                    f"lost terms: one of every {s} blocks of {p} values of k, from k = {at * p} on, {what}"
                ),
            )  # fmt: skip


def _uncleared(f: Failure) -> Iterator[Finding]:
    """A chain goes on where it was added outside, and is added again."""
    scaling, length = f.case.scaling, f.case.order.block or f.case.promote_every
    if length is None or length >= f.case.a.shape[1] or (scaling is not None and scaling.applied == "product"):
        return
    (x, y), factors = unscaled(f)
    starts = np.arange(0, x.shape[1], length)
    outside = factors[:, starts] if isinstance(factors, np.ndarray) else factors
    chains = np.cumsum(np.add.reduceat(x * y, starts, 1), 1) * (1 + f.share)
    text = f"lost terms: the chain is not cleared every {length} values of k, so that what it holds is added again"
    yield f.finding((chains * outside).sum(1) + f.added, text, float(len(starts)), math.log(4))


def stale_blocks(f: Failure) -> Iterator[Finding]:
    """A block of k that still holds the one before it (or two before, in a pipeline), of A, of B, or of both; or another one,
    or blocks of one operand that are exchanged. Scales of blocks are those of what is read, or those of its place."""
    yield from _stale_of(f, f.case.a[f.rows], f.case.b[:, f.columns].T, None, "")
    if f.case.scaling is not None and f.case.scaling.block is not None:
        (x, y), factors = unscaled(f)
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

        everywhere = slice(None)
        own = sums(everywhere, everywhere, everywhere)
        for back in (1, 2, 3, 4):
            if count <= back:
                continue
            old, new = slice(None, -back), slice(back, None)
            late = {"A": sums(old, new, new), "B": sums(new, old, new), "A and B": sums(old, old, new)}
            early = {"A": sums(new, old, old), "B": sums(old, new, old), "A and B": sums(new, new, old)}
            for still, kinds, place in ((True, late, new), (False, early, old)):
                for operand, found in kinds.items():
                    holds = f"{'still' if still else 'already'} {'hold' if operand == 'A and B' else 'holds'}"
                    yield from _stale(f, found - own[:, place], (length, back), f"{operand} {holds}", still, words)
            both = late["A"] + early["A"] - own[:, new] - own[:, old]
            best = f.nearest(both)
            first, second = (f"k {at * length}:{(at + 1) * length}" for at in (best, best + back))
            text = f"exchanged blocks: {first} and {second} of A (or of B){words}"
            yield f.finding(f.true + both[:, best], text, 2.0, math.log(30 * both.shape[1]), 1)
        if scale is None:
            yield from _repeated(f, own, length)


def _stale(
    f: Failure, changes: np.ndarray, lengths: tuple[int, int], what: str, still: bool, words: str
) -> Iterator[Finding]:
    """One block that holds another one, and all of them; lengths: of a block, and how many blocks lie between."""
    length, back = lengths
    changes = changes * (1 + f.share)
    tried = math.log(200 * changes.shape[1])
    best = f.nearest(changes)
    start, old = (best + back, best) if still else (best, best + back)
    where = f"k {old * length}:{(old + 1) * length}"
    text = f"a stale block: at k {start * length}:{(start + 1) * length} {what} {where}{words}"
    yield f.finding(f.true + changes[:, best], text, 2.0, tried, 1)
    if changes.shape[1] > 1:
        when = "the one before" if still and back == 1 else f"the one {back} {'before' if still else 'behind'}"
        text = f"a stale block: at every k, in blocks of {length}, {what} {when}{words}"
        yield f.finding(f.true + changes.sum(1), text, 2.0, tried)


def _repeated(f: Failure, own: np.ndarray, length: int) -> Iterator[Finding]:
    """A block of k that is read from anywhere else, A and B alike."""
    count = own.shape[1]
    if not 2 < count <= 64:
        return
    to, of = (x.ravel() for x in np.indices((count, count)))
    changes = own[:, of] - own[:, to]
    changes[:, to == of] = np.inf
    best = f.nearest(changes)
    where = f"k {of[best] * length}:{(of[best] + 1) * length}"
    text = f"a repeated block: at k {to[best] * length}:{(to[best] + 1) * length} A and B hold {where}"
    yield f.finding(f.true + changes[:, best], text, 2.0, math.log(10 * changes.shape[1]), 2)


def scattered(f: Failure) -> Iterator[Finding]:
    """A few single products that are missing, anywhere along k: orthogonal matching pursuit in what is missing."""
    k = f.case.a.shape[1]
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
    """(what is left, factors), by normal equations and without BLAS, whose threads cost more than these few columns."""
    squares = np.einsum("ei,ej->ij", columns, columns)
    squares[np.diag_indices(len(squares))] *= 1 + 1e-12
    factors = np.linalg.lstsq(squares, np.einsum("ei,e->i", columns, values), rcond=None)[0]
    return values - np.einsum("ei,i->e", columns, factors), factors


def _listed(missing: list[int], k: int) -> str | None:
    """Missing k in words; None where the sum begins late or ends early."""
    first, last = min(missing), max(missing)
    if last - first + 1 > len(missing):
        return f"k = {', '.join(map(str, sorted(missing)))} are missing"
    return None if first == 0 or last == k - 1 else f"k {first}:{last + 1} is missing"
