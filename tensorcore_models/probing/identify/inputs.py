"""Makes pools of inputs on which specifications give different results; each kind of input targets one class of questions.

The questions are those of fasi, section 3, khattak-mikaitis, section IV, and xie-mma-sim, section III: in which order addends
meet, how many bits are kept, how they are rounded, how special values are treated. P1 to P16 number the properties there.
Positions, exponents and signs are drawn at random, so that the inputs fit any unit.
"""

from collections.abc import Callable

import numpy as np

from ..interface import DotBatch, Interface
from ..random_operands import KINDS as OPERAND_KINDS
from ..random_operands import edge_encodings, signed_zeros
from .box import random_dots
from .drafts import Draft

#: Largest distance between the exponents of two addends that is tried.
SPAN = 90


def products(interface: Interface) -> tuple[int, int]:
    """Return the smallest and the largest exponent of a product of normal numbers, including block scales."""
    draft = Draft(interface, 0, np.random.default_rng(0))
    return draft.low + draft.reach[0], draft.high + draft.reach[1]


def _spread(draft: Draft, small: int = 0) -> np.ndarray:
    """Return random distances between the exponents of a large addend and a small one; most are at most 36."""
    reach = min(SPAN, max(2, draft.high - draft.low + draft.interface.formats[2].fraction_bits))
    wide = draft.rng.integers(small, reach + 1, draft.size)
    common = draft.rng.integers(small, min(reach, 36) + 1, draft.size)
    return np.where(draft.rng.integers(0, 4, draft.size) == 0, wide, common)


def ladder(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return X, -X and up to three small addends, which show losses next to X, their rounding, and the order of addition (P3 to
    P5).
    """
    draft = Draft(interface, size, rng)
    count = min(interface.k + 1, 5)
    where = draft.positions(count)
    top, sign, style = draft.exponents(), draft.sign(), rng.choice([0, 0, 3], size)
    draft.place(where[:, 0], top, sign, style)
    if count > 1:
        draft.place(where[:, 1], top, ~sign, style)
    distance = _spread(draft)
    for i in range(2, count):
        here = where[:, i].copy()
        used = rng.integers(0, i, size) == 0
        here[~used] = where[~used, 0]  # position not used: write X once more at its place
        gap = distance + rng.integers(-1, 2, size)
        kind = rng.choice([0, 2, 1], size)
        draft.place(
            here, np.where(used, top - gap, top), np.where(used, draft.sign(), sign), np.where(used, kind, style)
        )
    return draft.done()


def masks(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return X, -X and small addends at all other positions, which show how many of these are lost (P3; FPRev)."""
    draft = Draft(interface, size, rng)
    top, sign, distance, tiny = draft.exponents(), draft.sign(), _spread(draft, 2), draft.sign()
    style = rng.choice([0, 0, 2], size)
    for k in range(interface.k + 1):
        draft.place(np.full(size, k), top - distance, tiny, style)
    where = draft.positions(min(2, interface.k + 1))
    draft.place(where[:, 0], top, sign)
    draft.place(where[:, 1], top, ~sign)
    return draft.done()


def carries(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return addends of one sign and similar size, some near the result's last place: normalisation, width, rounding (P7 to
    P11)."""
    draft = Draft(interface, size, rng)
    top, sign = draft.exponents(), draft.sign()
    digits = interface.formats[3].fraction_bits
    chosen = rng.choice([1, 2, 3, interface.k, interface.k + 1], size)
    order = np.argsort(rng.random((size, interface.k + 1)), axis=1)
    mixed = rng.integers(0, 4, size) == 0
    for rank in range(interface.k + 1):
        where = order[:, rank].copy()
        outside = rank >= chosen
        where[outside] = order[outside, 0]
        style = np.where(outside, 0, rng.choice([0, 1, 2], size))
        draft.place(where, top + np.where(outside, 0, rng.integers(-1, 1, size)), sign ^ (mixed & draft.sign()), style)
    for rank in range(1, min(3, interface.k + 1)):
        tail = rng.integers(-4, 5, size)
        draft.place(order[:, -rank], top - digits + tail, draft.sign(), rng.choice([0, 2, 3], size))
    return draft.done()


def _scattered(interface, size, rng, low: int | None, high: int | None) -> DotBatch:
    """Return addends at few or at all positions, with exponents from a random window between the bounds."""
    draft = Draft(interface, size, rng)
    centre = draft.exponents(low, high)
    width = rng.choice([2, 6, 14, 30, 60], size)
    density = rng.choice([0.15, 0.4, 1.0], size)
    style = rng.choice([0, 1, 2, 2], size)
    for k in range(interface.k + 1):
        used = rng.random(size) < (density if k < interface.k else density / 2)
        where = np.full(size, k)
        exponent = centre - rng.integers(0, width + 1)
        before = draft.a.copy(), draft.b.copy(), draft.c.copy()
        draft.place(where, exponent, draft.sign(), style)
        draft.a[~used], draft.b[~used], draft.c[~used] = before[0][~used], before[1][~used], before[2][~used]
    return draft.done()


def scattered(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return addends at few or at all positions, with exponents from a random window."""
    return _scattered(interface, size, rng, None, None)


def small(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return products near the smallest of their range and of the result's: floors of exponents, flushes, underflow (P1,
    P16)."""
    low, high = products(interface)
    bottom = max(low, interface.formats[3].quantum_exponent - 4)
    return _scattered(interface, size, rng, low, min(high, bottom + 16))


def underflow(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return addends near the smallest numbers of the result, also halfway between them."""
    low, high = products(interface)
    middle = min(max(interface.formats[3].quantum_exponent, low), high)
    return _scattered(interface, size, rng, max(low, middle - 3), min(high, middle + 28))


def large(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return products near the largest of their range or of the result's, and a c that may be infinite: overflow."""
    low, high = products(interface)
    c, d = interface.formats[2:]
    top = min(high, d.emax + 2)
    parts = [
        _scattered(interface, count, rng, max(low, start), end)
        for start, end, count in ((top - 3, top, size - size // 3), (top, high, size // 3))
    ]
    batch = DotBatch.joined(parts)
    table = edge_encodings(c)
    batch.c[:] = np.where(rng.integers(0, 4, size) == 0, table[rng.integers(0, len(table), size)], batch.c)
    return batch


def overflowing(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return c near the largest number of the result, and addends near its last place: overflow by rounding."""
    draft = Draft(interface, size, rng)
    d = interface.formats[3]
    sign, last = draft.sign(), d.emax - d.fraction_bits
    draft.aim(np.full(size, last))
    draft.place(np.full(size, interface.k), np.full(size, d.emax), sign, rng.choice([1, 1, 1, 2], size))
    for k in rng.permutation(interface.k)[: max(1, interface.k // 2)]:
        draft.place(np.full(size, k), last + rng.integers(-4, 4, size), sign ^ (rng.integers(0, 4, size) == 0), 0)
    return draft.done()


def zeros(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return zeros of both signs times numbers of any size, and few small addends, which show whether zeros count in the
    alignment (P16).
    """
    batch = small(interface, size, rng) if rng.integers(0, 2) else scattered(interface, size, rng)
    a, b, c, _ = interface.formats
    for values, fmt in ((batch.a, a), (batch.b, b)):
        chosen = rng.random(values.shape) < 0.5
        values[chosen] = signed_zeros(fmt, rng.integers(0, 2, values.shape) == 1)[chosen]
    co = batch.b if rng.integers(0, 2) else batch.a
    fmt = b if co is batch.b else a
    biggest = rng.random(co.shape) < 0.3
    co[biggest] = fmt.max_bits
    chosen = rng.random(size) < 0.5
    batch.c[chosen] = signed_zeros(c, rng.integers(0, 2, size) == 1)[chosen]
    _zeros_alone(batch, interface, rng)
    return batch


def _zeros_alone(batch: DotBatch, interface: Interface, rng: np.random.Generator) -> None:
    """Make a third of the dot products sums of zeros, with none, some or all of them negative, which show the sign of a zero
    sum."""
    a, _, c, _ = interface.formats
    k = interface.k
    rows = np.flatnonzero(rng.integers(0, 3, batch.size) == 0)
    negatives = rng.choice([0, 1, k // 2, k - 1, k - 1, k, k, k], (rows.size, 1))
    negative = np.argsort(rng.random((rows.size, k)), axis=1) < negatives
    batch.a[rows] = signed_zeros(a, negative)
    batch.b[rows] = 0
    batch.c[rows] = signed_zeros(c, rng.integers(0, 2, rows.size) == 1)


def edges(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return one or two operands at the edges of their formats (infinities and NaN among them), the others ordinary."""
    batch = scattered(interface, size, rng)
    rows = np.arange(size)
    for values, fmt in ((batch.a, interface.formats[0]), (batch.b, interface.formats[1])):
        table = edge_encodings(fmt)
        where = rng.integers(0, interface.k, size)
        values[rows, where] = np.where(
            rng.random(size) < 0.6, table[rng.integers(0, len(table), size)], values[rows, where]
        )
    table = edge_encodings(interface.formats[2])
    batch.c[:] = np.where(rng.random(size) < 0.4, table[rng.integers(0, len(table), size)], batch.c)
    return batch


def subnormal(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return subnormal operands times large ones, and a subnormal c, which show flushing and the exponents of subnormals
    (P1)."""
    batch = scattered(interface, size, rng)
    for values, other, fmt, partner in (
        (batch.a, batch.b, interface.formats[0], interface.formats[1]),
        (batch.b, batch.a, interface.formats[1], interface.formats[0]),
    ):
        if fmt.fraction_bits == 0:
            continue
        chosen = rng.random(values.shape) < 0.25
        fraction = rng.integers(1, 1 << fmt.fraction_bits, values.shape, dtype=np.uint64) << np.uint64(fmt.padding_bits)
        sign = np.where(rng.integers(0, 2, values.shape) == 1, np.uint64(fmt.sign_bit), np.uint64(0))
        values[chosen] = (fraction | sign).astype(values.dtype)[chosen]
        big = rng.integers(0, 2, (size, 1)) == 1
        field = rng.integers(max(1, partner.emax + partner.bias - 3), partner.emax + partner.bias, values.shape)
        lifted = (field << (partner.fraction_bits + partner.padding_bits)).astype(other.dtype)
        other[chosen & big] = lifted[chosen & big]
    c = interface.formats[2]
    chosen = rng.random(size) < 0.4
    fraction = rng.integers(1, 1 << c.fraction_bits, size) << c.padding_bits
    sign = np.where(rng.integers(0, 2, size) == 1, np.uint64(c.sign_bit), np.uint64(0))
    batch.c[chosen] = (fraction.astype(np.uint64) | sign).astype(batch.c.dtype)[chosen]
    return batch


def alone(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return one addend and zeros of either sign, which show what a unit does to a number to which nothing is added."""
    draft = Draft(interface, size, rng)
    c = interface.formats[2]
    for values, fmt in ((draft.a, interface.formats[0]), (draft.b, interface.formats[1])):
        values[:] = signed_zeros(fmt, rng.integers(0, 4, values.shape) == 0)
    table = edge_encodings(c)
    drawn = draft.number(c, rng.integers(c.emin, c.emax + 1, size), draft.sign(), rng.choice([0, 1, 2], size))
    low = drawn & c.container.type(c.sign_bit | ((1 << c.fraction_bits) - 1) << c.padding_bits)
    kind = rng.integers(0, 4, size)
    draft.c[:] = np.choose(kind, [table[rng.integers(0, len(table), size)], low, drawn, np.zeros_like(drawn)])
    only = np.where(kind == 3, rng.integers(0, interface.k, size), interface.k)
    kept = draft.c.copy()
    draft.place(only, draft.exponents(), draft.sign(), 2)
    draft.c[:] = np.where(kind == 3, 0, kept)
    return draft.done()


def ties(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return a sum that the result can hold, or a tie, and a tail far below it, which shows whether the tail counts.

    In half of the dot products the sum is near the smallest numbers of the result.
    """
    draft = Draft(interface, size, rng)
    a, b, c, d = interface.formats
    top = np.where(rng.integers(0, 2, size) == 1, d.quantum_exponent + rng.integers(0, 4, size), draft.exponents())
    draft.aim(top)
    last = np.maximum(top - d.fraction_bits, d.quantum_exponent) - rng.integers(0, 2, size)
    where, sign = draft.positions(min(3, interface.k + 1)), draft.sign()
    if where.shape[1] > 2:  # c is the large addend in half of the dot products
        first = (rng.integers(0, 2, size) == 1) & (where[:, 1] != interface.k)
        where[first, 0] = np.where(where[first, 0] == interface.k, where[first, 2], where[first, 0])
        where[first, 2] = interface.k
    draft.place(where[:, 0], last, sign)
    if where.shape[1] > 2:
        used = rng.integers(0, 4, size) > 0
        draft.place(np.where(used, where[:, 2], where[:, 0]), np.where(used, top, last), sign)
    lowest = np.where(
        where[:, 1] < interface.k, a.quantum_exponent + b.quantum_exponent + draft.reach[0], c.quantum_exponent
    )
    reach = rng.choice([12, 36, SPAN], size)
    gap = rng.integers(1, np.clip(last - lowest, 2, reach) + 1)
    draft.place(where[:, 1], last - gap, draft.sign())
    return draft.done()


def brinks(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return c within a few last places of a number with few digits, and tails near its last place or far below it.

    A result that keeps few digits changes at such a number, so that a tail that counts changes the result; c may be subnormal.
    """
    draft = Draft(interface, size, rng)
    c, d = interface.formats[2:]
    lowest = max(c.quantum_exponent, d.quantum_exponent - 2)
    anywhere = rng.integers(lowest, min(c.emax, d.emax) + 1, size)
    kind = rng.integers(0, 3, size)
    bottom = rng.integers(lowest, max(lowest, d.emin + 2) + 1, size)
    top = np.clip(np.choose(kind, [draft.exponents(), bottom, anywhere]), c.quantum_exponent, c.emax)
    draft.aim(top)
    unit = np.maximum(top - c.fraction_bits, c.quantum_exponent)
    digits = np.minimum(rng.integers(0, d.fraction_bits + 2, size), top - unit)
    lead = (1 << digits) + rng.integers(0, 1 << digits)
    places = (lead << (top - unit - digits)) + rng.integers(-2, 3, size)
    field = np.where(top < c.emin, 0, top + c.bias - 1)  # adding the leading bit makes the exponent field whole
    bits = ((field << c.fraction_bits) + np.maximum(places, 0)) << c.padding_bits
    sign = np.where(draft.sign(), np.uint64(c.sign_bit), np.uint64(0))
    draft.c[:] = (np.minimum(bits.astype(np.uint64), np.uint64(c.max_bits)) | sign).astype(c.container)
    where = np.argsort(rng.random((size, interface.k)), axis=1)
    for rank in range(min(2, interface.k)):
        used = (rng.integers(0, 2, size) == 1) | (rank == 0)
        exponent = np.where(rng.integers(0, 2, size) == 1, unit - rng.integers(-2, 5, size), top - _spread(draft, 1))
        exponent = np.where(used, exponent, unit)
        draft.place(np.where(used, where[:, rank], where[:, 0]), exponent, draft.sign(), rng.choice([0, 0, 2], size))
    return draft.done()


def carried(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return c near a power of two and an addend that lifts it to a number of the result or a tie, which show the tails that
    count.
    """
    draft = Draft(interface, size, rng)
    a, b, c, d = interface.formats
    digits = np.where(rng.integers(0, 2, size) == 1, c.fraction_bits, min(c.fraction_bits, d.fraction_bits))
    below = np.uint64(c.padding_bits) + (c.fraction_bits - digits).astype(np.uint64)
    whole, gap, sign = rng.integers(0, 2, size), rng.integers(1, 17, size), draft.sign()
    # Half of the tails are the smallest product: with narrow formats no other tail lies far below c.
    lowest = a.quantum_exponent + b.quantum_exponent + gap + digits + whole
    top = np.where(rng.integers(0, 2, size) == 1, draft.exponents(), lowest)
    top = np.clip(top, c.emin, c.emax)
    draft.aim(top)
    bits = draft.number(c, top, sign, np.where(whole == 1, 0, 1)).astype(np.uint64) >> below << below
    draft.c[:] = bits.astype(c.container)
    where = np.argsort(rng.random((size, interface.k)), axis=1)
    unit = top - digits - whole
    draft.place(where[:, 0], unit + rng.integers(0, 2, size), sign)
    if interface.k > 1:
        draft.place(where[:, 1], unit - gap, draft.sign())
    return draft.done()


def cancelling(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return two products of any size that cancel, half of the time with a tail: overflow before they cancel, sign of zero."""
    draft = Draft(interface, size, rng)
    a, _, c, d = interface.formats
    low, high = products(interface)
    top = np.where(rng.integers(0, 2, size) == 1, high - rng.integers(0, 4, size), rng.integers(low, high + 1, size))
    draft.aim(top)
    where, sign = draft.positions(min(3, interface.k + 1)), draft.sign()
    style = np.where((where[:, :2] == interface.k).any(axis=1), 0, rng.choice([0, 1, 2], size))
    draft.place(where[:, 0], top, sign, style)
    draft.place(where[:, 1], top, ~sign, style)
    both = (where[:, :2] < interface.k).all(axis=1)
    first, second, rows = where[both, 0], where[both, 1], draft.rows[both]
    draft.b[rows, second] = draft.b[rows, first]
    draft.a[rows, second] = draft.a[rows, first] ^ a.container.type(a.sign_bit)
    draft.c[both] = np.where(
        rng.integers(0, 2, int(both.sum())) == 1, c.container.type(c.sign_bit), c.container.type(0)
    )
    if where.shape[1] > 2:
        tail = np.where(
            rng.integers(0, 2, size) == 1, d.quantum_exponent + rng.integers(-2, 3, size), top - _spread(draft)
        )
        used = rng.integers(0, 2, size) == 1
        batch = draft.a.copy(), draft.b.copy(), draft.c.copy()
        draft.place(where[:, 2], tail, draft.sign())
        draft.a[~used], draft.b[~used], draft.c[~used] = (x[~used] for x in batch)
    return draft.done()


def fullest(interface: Interface, size: int, rng: np.random.Generator) -> DotBatch:
    """Return addends of one sign with the largest significands, which show whether the sum wraps around (P10)."""
    draft = Draft(interface, size, rng)
    top, sign, style = draft.exponents(), draft.sign(), rng.choice([1, 1, 2], size)
    odd = rng.integers(0, 3, size) == 0
    for k in range(interface.k + 1):
        # the significand of a product is below 4, that of c below 2: in a third of them c is one binade larger
        draft.place(np.full(size, k), top + (odd & (k == interface.k)), sign, style)
    return draft.done()


Recipe = Callable[[Interface, int, np.random.Generator], DotBatch]

#: Kinds of inputs, each with its share of a pool.
RECIPES: dict[str, tuple[Recipe, int]] = {
    "ladder": (ladder, 6),
    "masks": (masks, 3),
    "carries": (carries, 4),
    "scattered": (scattered, 3),
    "small": (small, 3),
    "underflow": (underflow, 2),
    "large": (large, 2),
    "overflowing": (overflowing, 1),
    "zeros": (zeros, 2),
    "edges": (edges, 2),
    "subnormal": (subnormal, 2),
    "alone": (alone, 2),
    "fullest": (fullest, 1),
    "ties": (ties, 4),
    "brinks": (brinks, 3),
    "carried": (carried, 4),
    "cancelling": (cancelling, 2),
}


def pool(interface: Interface, size: int, rng: np.random.Generator, recorded: DotBatch | None = None) -> DotBatch:
    """Return about `size` inputs of all kinds in random order; a sample of `recorded` if the box can answer only those."""
    if recorded is not None:
        chosen = rng.choice(recorded.size, min(size, recorded.size), replace=False)
        return recorded.rows(chosen)
    parts = []
    if interface.integer:
        parts = [random_dots(interface, kind, max(1, size // 3), rng) for kind in ("random_bits", "edges", "zeros")]
    else:
        shares = sum(share for _, share in RECIPES.values()) + len(OPERAND_KINDS)
        parts = [recipe(interface, max(1, size * share // shares), rng) for recipe, share in RECIPES.values()]
        parts += [random_dots(interface, kind, max(1, size // shares), rng) for kind in OPERAND_KINDS]
    batch = DotBatch.joined(parts)
    return batch.rows(rng.permutation(batch.size))
