"""Lists the orders in which BLAS kernels, vector loops and summing functions of CPUs add the products of k.

The lengths of blocks and the joins of lanes have three sources:

* OpenBLAS 0.3 (``interface`` and ``kernel/x86_64``: GEMM_Q of ``param.h``, the balanced last blocks of ``driver/level3``),
  found by masks in NumPy's results for the kernels of Prescott, Nehalem, Sandy Bridge, Haswell, Zen and Skylake-X;
* the plain blocks of BLIS;
* NumPy's pairwise sum.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tensorcore_models.libraries.recipe import butterfly, contiguous, joined
from tensorcore_models.orders.order import Chain, Order, Sum

#: Lengths of blocks of k: GEMM_Q of OpenBLAS's kernels, and other sizes of blocked kernels.
BLOCKS = (64, 96, 128, 192, 240, 256, 320, 336, 352, 384, 448, 512, 640, 768, 1024)
#: Numbers of interleaved chains, in one vector register and in several.
LANES = (2, 4, 8, 16, 32, 64)
#: Numbers of products between two additions to the running sum of a matrix-vector kernel.
RESTARTS = (4, 8)
#: Terms that NumPy's pairwise sum adds in eight lanes before it halves.
PAIRWISE_BLOCK = 128


@dataclass(frozen=True)
class CpuOrder:
    """`CpuOrder` is one order, or several orders of which each tile of the result has one."""

    how: str  #: Description in words.
    orders: tuple[Order, ...]  #: Orders that the tiles of a result may have.


def cpu_orders(k: int) -> Iterator[CpuOrder]:
    """Yield every order for k products once; orders with several kinds of tiles come last."""
    seen = set()
    for how, order in _single(k):
        if order not in seen:
            seen.add(order)
            yield CpuOrder(how, (order,))
    for length, blocks in _blocked(k).items():
        pairs = joined(_lanes(piece, 2, _in_order) for piece in blocks)
        text = f"tiles of one chain or two (even and odd k){length}"
        yield CpuOrder(text, (joined(Chain((piece,)) for piece in blocks), pairs))
    whole = range(k)
    if k > 16:
        vectors = tuple(_lanes(whole, 16, join) for join in (_neighbours, butterfly))
        yield CpuOrder("tiles of one chain or of 16 lanes", (Chain((whole,)), *vectors))


def _single(k: int) -> Iterator[tuple[str, Order]]:
    """Yield (description, order) of chains, blocks, lanes, restarts and the pairwise sum."""
    whole = range(k)
    yield "one chain over k", Chain((whole,))
    for length, blocks in _blocked(k).items():
        if len(blocks) > 1:
            yield f"one chain{length}", joined(Chain((piece,)) for piece in blocks)
            yield f"even and odd k in chains of their own{length}", joined(_lanes(p, 2, _in_order) for p in blocks)
    for lanes in LANES:
        if lanes < k:
            for join in JOINS:
                yield f"{lanes} interleaved chains, joined {join}", _lanes(whole, lanes, JOINS[join])
    for every in RESTARTS:
        if every < k:
            yield f"chains of {every} products added up", joined(Chain((p,)) for p in contiguous(0, k, every))
    yield f"pairwise, blocks of up to {PAIRWISE_BLOCK} in 8 lanes", _pairwise(0, k)


def _blocked(k: int) -> dict[str, list[range]]:
    """Return divisions of k by their names: undivided, into blocks of a length, and with the last two blocks of equal
    length."""
    found: dict[str, list[range]] = {"": [range(k)]}
    for length in BLOCKS:
        if length >= k:
            continue
        for text, blocks in (
            (f", k in blocks of {length}", list(contiguous(0, k, length))),
            (f", k in blocks of {length}, the last two equal", _balanced(k, length, 1)),
            (f", k in blocks of {length}, the last two equal up to multiples of 8", _balanced(k, length, 8)),
            (f", k in blocks of {length}, the last two equal up to multiples of 16", _balanced(k, length, 16)),
        ):
            if blocks not in found.values():
                found[text] = blocks
    return found


def _balanced(k: int, length: int, unit: int) -> list[range]:
    """Return OpenBLAS's blocks: whole blocks while two are left, then the rest in halves, rounded up to a multiple of
    `unit`."""
    blocks, start = [], 0
    while start < k:
        left = k - start
        half = ((left + 1) // 2 + unit - 1) // unit * unit
        size = length if left >= 2 * length else half if left > length else left
        blocks.append(range(start, start + size))
        start += size
    return blocks


def _lanes(piece: range, lanes: int, join: Callable[[list[Order]], Order]) -> Order:
    """Return the join of interleaved chains over a piece of k."""
    lanes = min(lanes, len(piece))
    return join([Chain((range(piece.start + lane, piece.stop, lanes),)) for lane in range(lanes)])


def _in_order(parts: list[Order]) -> Order:
    return joined(parts)


def _neighbours(parts: list[Order]) -> Order:
    """Return a balanced tree that adds neighbours first."""
    while len(parts) > 1:
        parts = [joined(parts[i : i + 2]) for i in range(0, len(parts), 2)]
    return parts[0]


def _folded(parts: list[Order]) -> Order:
    """Return the sum of a vector whose halves are added first, then neighbours."""
    half = len(parts) // 2
    return _neighbours([Sum((parts[i], parts[i + half])) for i in range(half)])


def _registers(parts: list[Order], width: int, folded: int) -> Order:
    """Return the sum of vectors of `width` lanes: each vector is folded, they are added in order, then joined by `_folded`."""
    rows = [parts[i : i + width] for i in range(0, len(parts), width)]
    if folded:
        half = width // 2
        rows = [[Sum((row[i], row[i + half])) for i in range(half)] for row in rows]
    lanes = [(joined if folded != 2 else _neighbours)([row[i] for row in rows]) for i in range(len(rows[0]))]
    return _folded(lanes) if len(lanes) > 2 else _in_order(lanes)


def _by_registers(width: int, folded: int) -> Callable[[list[Order]], Order]:
    return lambda parts: _registers(parts, width, folded) if len(parts) > width else _folded(parts)


#: Joins of the sums of interleaved chains, by name.
JOINS: dict[str, Callable[[list[Order]], Order]] = {
    "in order": _in_order,
    "neighbours first": _neighbours,
    "halves first": butterfly,
    "halves, then neighbours": _folded,
    "as vectors of 4": _by_registers(4, 0),
    "as vectors of 8": _by_registers(8, 0),
    "as vectors of 8, each folded": _by_registers(8, 2),
    "as vectors of 16": _by_registers(16, 0),
    "as vectors of 16, each folded": _by_registers(16, 1),
}


def _pairwise(start: int, stop: int) -> Order:
    """Return the order of NumPy's pairwise sum: eight lanes for short sums, otherwise the sum of both halves' sums."""
    size = stop - start
    if size < 8:
        return Chain((range(start, stop),))
    if size <= PAIRWISE_BLOCK:
        whole = size // 8 * 8
        lanes = [Chain((range(start + lane, start + whole, 8),)) for lane in range(8)]
        rest = [Chain((range(x, x + 1),)) for x in range(start + whole, stop)]
        return joined([_neighbours(list(lanes)), *rest])
    half = size // 2 // 8 * 8
    return Sum((_pairwise(start, start + half), _pairwise(start + half, stop)))
