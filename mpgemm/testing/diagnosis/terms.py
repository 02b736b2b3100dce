"""Products along k that a kernel leaves out, adds twice, or takes from another block."""

from collections.abc import Iterator

import numpy as np

from mpgemm.testing.diagnosis.failure import SAMPLES, Failure, Finding

#: Blocks of k that kernels have.
BLOCKS = (2, 4, 8, 16, 32, 64, 128, 256)
#: Blocks that stay in a buffer of a pipeline.
STALE = (16, 32, 64, 128)
#: Single products along k that can be missing at once.
SCATTERED = 16
#: Products that are looked at for them, about.
LOOKED_AT = 1 << 19


def lost_terms(f: Failure) -> Iterator[Finding]:
    """Products along k that are missing, or there twice: one, a block, the end or the beginning."""
    products = f.products() * (1 + f.share)
    k = products.shape[1]
    if k < 2:
        return
    sums = np.concatenate([np.zeros((len(products), 1)), np.cumsum(products, 1)], 1)

    def nearest(candidates: np.ndarray, length: int, sign: int, text: str) -> Finding:
        best = _nearest(f, -sign * candidates)
        found = f.finding(f.true - sign * candidates[:, best], text.format(best, best + length))
        return found._replace(free=1)

    for sign, what in ((1, "is missing"), (-1, "is there twice")):
        yield nearest(products, 1, sign, f"a lost term: k = {{0}} {what}")
        for length in (t for t in BLOCKS if t < k):
            blocks = sums[:, length:] - sums[:, :-length]
            yield nearest(blocks, length, sign, f"lost terms: k {{0}}:{{1}} {what}")
    ends = f"lost terms: the sum ends at k = {{1}} of {k} (a tail that fills no tile)"
    yield nearest(sums[:, -1:] - sums[:, 1:-1], 1, 1, ends)
    yield nearest(sums[:, 1:-1], 1, 1, "lost terms: the sum begins at k = {1}")


def _nearest(f: Failure, changes: np.ndarray) -> int:
    """Which of the changes, shape (elements, candidates), explains the elements best."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = ((f.got - f.true)[:, None] - changes) / f.usual[:, None]
    return int(np.argmin(np.square(distance).sum(0)))


def stale_blocks(f: Failure) -> Iterator[Finding]:
    """A block of k that still holds the one before it (or two before, in a pipeline): of A, of B, or of both."""
    a, b = f.tolerance.a[f.rows], f.tolerance.b[:, f.columns].T
    k = a.shape[1]
    for length in (t for t in STALE if t < k):
        count = k // length
        x, y = (v[:, : count * length].reshape(len(a), count, length) for v in (a, b))
        own = np.einsum("ebt,ebt->eb", x, y)
        for back in (1, 2):
            if count <= back:
                continue
            kinds = {
                "A": np.einsum("ebt,ebt->eb", x[:, :-back], y[:, back:]),
                "B": np.einsum("ebt,ebt->eb", x[:, back:], y[:, :-back]),
                "A and B": own[:, :-back],
            }
            for operand, sums in kinds.items():
                changes = (sums - own[:, back:]) * (1 + f.share)
                best = _nearest(f, changes)
                start = (best + back) * length
                old = f"k {start - back * length}:{start - (back - 1) * length}"
                holds = "hold" if operand == "A and B" else "holds"
                text = f"a stale block: at k {start}:{start + length} {operand} still {holds} {old}"
                yield f.finding(f.true + changes[:, best], text, 2.0)._replace(free=1)


def scattered(f: Failure, good: float) -> Iterator[Finding]:
    """A few single products that are missing, anywhere along k: orthogonal matching pursuit in what is missing."""
    k = f.tolerance.a.shape[1]
    f = f.more(min(max(LOOKED_AT // max(k, 1), SAMPLES), 4 * SAMPLES))
    if f.rows.size < 4 * SCATTERED or k < 2:
        return
    products = f.products() / f.usual[:, None]
    true, lost = f.true / f.usual, (f.true - f.got) / f.usual
    norms = np.sqrt(np.maximum(np.square(products - true[:, None] / k).sum(0), 1e-300))
    tried: list[int] = []
    for _ in range(2 * SCATTERED):
        left, factors = _least_squares(np.column_stack([true, products[:, tried]]), lost)
        missing = [at for at, factor in zip(tried, factors[1:], strict=True) if factor > 0.5]
        if 1 < len(missing) <= SCATTERED:
            rest = lost - products[:, missing].sum(1)
            if np.sqrt(np.mean(np.square(rest))) <= good:
                text = _listed(missing, k)
                if text is not None:
                    yield f.finding(f.got + rest * f.usual, f"lost terms: {text}")
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
