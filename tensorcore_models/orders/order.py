"""Defines the order of a sum over k as data: chains that an engine runs, and additions outside of the engine that join them.

A :class:`Chain` starts from +0 and takes pieces of k one after the other. A :class:`Sum` adds the results of its parts from
left to right. Nested chains and sums describe every order of a GEMM kernel, such as slices of a split k, restarts, and the
lanes of a vector product with the tree that joins them. :func:`evaluate` interprets an order; the engine's kernels run its
chains on whole matrices.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..formats import Format, IntegerFormat, get_format
from ..formats.operands import values_of_bits
from ..formats.rounding import encode
from ..formats.sums import add_all, add_rounded, scale_rounded

#: Name that stands for the kernel's output format in an order, until :func:`with_output` replaces it.
OUTPUT = "output"


@dataclass(frozen=True)
class Chain:
    """`Chain` is a sum in one accumulator of the engine, which starts from +0.

    Parameters
    ----------
    pieces : tuple of range
        Ranges of k in the order in which they are multiplied. Each is padded with zeros to a multiple of the engine's k step,
        unless `joined`. A range with a step s above 1 takes every s-th value of k. A chain without pieces is +0.
    joined : bool
        Whether the pieces follow each other without padding, so that one k step can take products of two pieces; only the end
        of the chain is padded. Kernels that interleave k to fill their instructions do this.

    Raises
    ------
    TypeError, ValueError
        If a piece is no range, is empty, or does not ascend from 0 or above.
    """

    pieces: tuple[range, ...]
    joined: bool = False

    def __post_init__(self):
        for piece in self.pieces:
            if not isinstance(piece, range):
                raise TypeError(f"got {piece!r} as a piece of a chain, expected a range of k")
            if not len(piece) or piece.start < 0 or piece.step < 1:
                raise ValueError(
                    f"got {piece!r} as a piece of a chain, expected a range that is not empty and ascends from 0 or above"
                )


@dataclass(frozen=True)
class Sum:
    """`Sum` adds the results of its parts from left to right, outside of the engine.

    Each addition is in the engine's result format and rounds to nearest even.

    Parameters
    ----------
    parts : tuple of Chain or Sum
        Parts of the sum, at least one.
    start : {"first", "zero"}
        Start of the running sum. "first": the first part. "zero": +0, to which the first part is added, so that -0 becomes +0.
    partials : str, optional
        Format to which each part is rounded before it is added.
    carry : str, optional
        Format to which the running sum is rounded after each addition. With `partials`, the first part is rounded first to
        `partials` and then to `carry`.

    Raises
    ------
    ValueError
        If there are no parts or `start` is unknown.
    """

    parts: tuple["Chain | Sum", ...]
    start: str = "first"
    partials: str | None = None
    carry: str | None = None

    def __post_init__(self):
        if not self.parts:
            raise ValueError("got a sum without parts, expected at least one Chain or Sum")
        if self.start not in ("first", "zero"):
            raise ValueError(f"start is {self.start!r}, expected 'first' or 'zero'")


Order = Chain | Sum
KOrder = str | Order | Sequence[tuple[int, int]]


def order_of(k: int, step: int, k_order: KOrder) -> Order | None:
    """Return the order in which a kernel sums over k; None for one chain over all k.

    `k_order` is one of these:

    - ``"sequential"``: one chain
    - ``"split_k:S"``: S contiguous parts with the same number of steps (the last may be shorter)
    - ``"sliced_k:S"``: S chains, of which chain s takes the steps s, s + S, ... (warps that share a tile)
    - a sequence of half-open ranges that cover 0 to k in order and start on steps (stream-k)
    - an Order

    Raises ValueError for anything else.
    """
    if isinstance(k_order, Chain | Sum):
        left_out = uncovered(k_order, k)
        if left_out.size:
            raise ValueError(
                f"the order leaves out {left_out.size} values of k, of which the first is {left_out[0]}: add these values to "
                "a chain"
            )
        return k_order
    if isinstance(k_order, str):
        name, _, count = k_order.partition(":")
        if name == "sequential" and not count:
            return None
        if name not in ("split_k", "sliced_k") or not count.isdigit() or int(count) < 1:
            raise ValueError(
                f"unknown k_order {k_order!r}, expected 'sequential', 'split_k:S', 'sliced_k:S' or a sequence of (start, stop)"
            )
        parts, steps = int(count), -(-k // step)
        if name == "split_k":
            per_part = -(-steps // parts) * step
            ranges = [(start, min(start + per_part, k)) for start in range(0, k, per_part)] if k else []
            chains = [Chain((range(*r),)) for r in ranges]
        else:
            held = min(parts, steps)  # further chains would have no step
            owned = ([range(j * step, min((j + 1) * step, k)) for j in range(s, steps, parts)] for s in range(held))
            chains = [Chain(tuple(pieces)) for pieces in owned]
        return Sum(tuple(chains)) if chains else Chain(())
    ranges = [(int(start), int(stop)) for start, stop in k_order]
    ends = [0, *(stop for _, stop in ranges)]
    if not ranges or [start for start, _ in ranges] != ends[:-1] or ends[-1] != k or any(a >= b for a, b in ranges):
        raise ValueError(f"k_order ranges {ranges} must follow each other from 0 to k = {k}")
    if any(start % step for start, _ in ranges):
        raise ValueError(f"k_order ranges {ranges} must start on multiples of the k step {step}")
    return Sum(tuple(Chain((range(start, stop),)) for start, stop in ranges))


def leaves(order: Order) -> Iterator[Chain]:
    """Yield the chains of an order, from left to right."""
    if isinstance(order, Chain):
        yield order
    else:
        for part in order.parts:
            yield from leaves(part)


def with_output(order: Order, fmt: str) -> Order:
    """Return the order with the format `fmt` in place of :data:`OUTPUT`."""
    if isinstance(order, Chain):
        return order
    named = {f: fmt if getattr(order, f) == OUTPUT else getattr(order, f) for f in ("partials", "carry")}
    return dataclasses.replace(order, parts=tuple(with_output(part, fmt) for part in order.parts), **named)


def uncovered(order: Order, k: int) -> np.ndarray:
    """Return the values of k that no chain takes, ascending; raises ValueError for values above k - 1 or taken twice."""
    pieces = [piece for chain in leaves(order) for piece in chain.pieces]
    beyond = [piece for piece in pieces if piece[-1] >= k]
    if beyond:
        raise ValueError(f"the order takes k up to {beyond[0][-1]}, expected k below {k}: make an order for this k")
    taken = np.zeros(k, np.int64)
    for piece in pieces:
        taken[piece.start : piece.stop : piece.step] += 1
    if (taken > 1).any():
        raise ValueError(
            f"the order adds k = {int(np.flatnonzero(taken > 1)[0])} more than once: let only one chain contain this k"
        )
    return np.flatnonzero(taken == 0)


def restart_length(parts: Sequence[Order], step: int) -> int | None:
    """Return the number of products of each part if all parts are chains of one length (the last may be shorter), else None."""
    lengths = []
    for index, part in enumerate(parts):
        if not isinstance(part, Chain) or not part.pieces or part.joined:
            return None
        if any(len(piece) % step for piece in part.pieces) and index < len(parts) - 1:
            return None
        lengths.append(sum(map(len, part.pieces)))
    equal = all(length == lengths[0] for length in lengths[:-1])
    return lengths[0] if equal and lengths[-1] <= lengths[0] and lengths[0] % step == 0 else None


def merged(pieces: Sequence[range]) -> list[range]:
    """Return the pieces, with adjacent pieces of step 1 joined."""
    found: list[range] = []
    for piece in pieces:
        if found and found[-1].step == piece.step == 1 and found[-1].stop == piece.start:
            found[-1] = range(found[-1].start, piece.stop)
        else:
            found.append(piece)
    return found


@dataclass(frozen=True)
class OrderUnit:
    """`OrderUnit` holds the parts of an engine that the interpreter uses.

    Parameters
    ----------
    result : Format or IntegerFormat
        Format of results and sums.
    step : int
        Number of products of a k step.
    chain : callable
        ``chain(pieces, joined)`` returns the encodings of a chain from +0.
    restarts : callable
        ``restarts(pieces, every, total)`` adds chains of `every` products to `total`, one after the other, and returns the
        encodings; None if the engine has no kernel for that.
    zeros : callable
        ``zeros()`` returns a new array with encodings of +0.
    """

    result: Format | IntegerFormat
    step: int
    chain: Callable[[Sequence[range], bool], np.ndarray]
    restarts: Callable[[Sequence[range], int, np.ndarray], np.ndarray | None]
    zeros: Callable[[], np.ndarray]


def evaluate(order: Order, unit: OrderUnit) -> np.ndarray:
    """Return the encodings of the sum in the unit's result format.

    Raises ValueError if the order rounds to :data:`OUTPUT`, which :func:`with_output` replaces.
    """
    if isinstance(order, Chain):
        return unit.chain(order.pieces, order.joined) if order.pieces else unit.zeros()
    parts = list(order.parts)
    total = unit.zeros() if order.start == "zero" else _rounded(evaluate(parts.pop(0), unit), order, unit)
    if order.partials or order.carry:
        for part in parts:
            value = evaluate(part, unit)
            if order.partials:
                value = _through(value, unit.result, order.partials)
            total = add_rounded(total, value, unit.result)
            if order.carry:
                total = _through(total, unit.result, order.carry)
        return total
    chains = [part for part in parts if isinstance(part, Chain)]
    every = restart_length(parts, unit.step) if len(parts) > 1 else None
    if every is not None:
        whole = chains if sum(map(len, chains[-1].pieces)) == every else chains[:-1]
        sums = unit.restarts([piece for chain in whole for piece in chain.pieces], every, total)
        if sums is not None:
            total, parts = sums, parts[len(whole) :]
    return add_all(total, (evaluate(part, unit) for part in parts), unit.result)


def _rounded(first: np.ndarray, order: Sum, unit: OrderUnit) -> np.ndarray:
    """Return the first part rounded to `partials` and then to `carry`."""
    for fmt in (order.partials, order.carry):
        first = _through(first, unit.result, fmt) if fmt else first
    return first


def _through(bits: np.ndarray, result: Format | IntegerFormat, name: str) -> np.ndarray:
    """Return encodings rounded to the format `name` and back, which is exact."""
    if name == OUTPUT:
        raise ValueError(
            "the order rounds to the output format, which is not known: replace the order by with_output(order, format), or "
            "call Recipe.gemm_bits with out_format"
        )
    narrow = get_format(name)
    if narrow == result:
        return bits
    if isinstance(result, Format) and result.name == "fp32" and isinstance(narrow, Format) and narrow.dtype is not None:
        small = values_of_bits(encode(values_of_bits(bits, result), narrow), narrow)
        return small.astype(np.float32).view(np.uint32)
    return scale_rounded(scale_rounded(bits, 1.0, result, narrow), 1.0, narrow, result)
