"""Inputs aimed at two specifications: searched for where both are known, so that their results part.

Pools know nothing of a rival. Where none separates it, both specifications are looked at in a *wide view*: results in binary64,
with all fraction bits. Inputs on which the sums part there are bred, by changes of encodings, until a boundary between two
results lies between the two sums.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ... import kernels
from ...accumulators import Accumulator
from ...formats import Format, get_format
from ...formats.rounding import decode, encode
from ..interface import DotBatch, Interface
from .fields import engine_of, model_of, value_of, with_values
from .magnitudes import exponents, magnitudes, scaled, scaled_pool, signed

#: Inputs of one pool of the survey, of the herd that is bred, and of one answer.
POOL, HERD, ANSWER = 3000, 320, 24
#: Every so many generations the worse half of the herd is replaced by copies of the better one.
CULLED = 12
#: Fields of the final rounding, and the values with which it keeps all it can.
KEPT = {"output_fraction_bits": None, "flush_outputs": False, "dot.output_fraction_bits": None}


@dataclass
class Aimed:
    """A source of inputs that tell two specifications apart.

    Parameters
    ----------
    pools : int
        Pools of inputs at all magnitudes from which a search starts.
    generations : int
        Generations of one search.
    total : int
        Generations of all searches of this object; what is asked later gets the pools only.
    seed : int
        Of all random choices.
    """

    pools: int = 6
    generations: int = 250
    total: int = 4000
    seed: int = 0
    _surveyed: dict[Interface, list[DotBatch]] = field(default_factory=dict, init=False, repr=False)
    _searched: set[frozenset[Accumulator]] = field(default_factory=set, init=False, repr=False)

    def __call__(self, interface: Interface, one: Accumulator, other: Accumulator) -> list[DotBatch]:
        """Inputs on which two specifications part, if any are found within the limits."""
        if interface.integer or frozenset((one, other)) in self._searched:
            return []
        pair = _Pair(interface, one, other)
        herd: list[DotBatch] = []
        for batch in self._survey(interface):
            apart = np.flatnonzero(pair.apart(batch))
            if apart.size:
                return [batch.rows(apart[:ANSWER])]
            herd.append(_nearest(pair, batch))
        best = _nearest(pair, DotBatch.joined(herd))
        if self.total <= 0 or not np.isfinite(pair.distance(best)).any():
            return []
        found, spent = _bred(pair, best, min(self.generations, self.total), np.random.default_rng([self.seed, 3]))
        self.total -= spent
        if not found:
            self._searched.add(frozenset((one, other)))
        return found

    def statement(self, one: Accumulator, other: Accumulator) -> str:
        """What is known about a pair that was searched in vain; empty if nothing."""
        if frozenset((one, other)) not in self._searched:
            return ""
        return "the sums differ where no result shows it, and a search for a result that does found none"

    def _survey(self, interface: Interface) -> list[DotBatch]:
        if interface not in self._surveyed:
            rng = np.random.default_rng([self.seed, 2])
            self._surveyed[interface] = [scaled_pool(interface, POOL, rng) for _ in range(self.pools)]
        return self._surveyed[interface]


class _Pair:
    """Two specifications, as their results are and in the wide view."""

    def __init__(self, interface: Interface, one: Accumulator, other: Accumulator):
        self.models = tuple(model_of(spec, interface) for spec in (one, other))
        self.interface = interface
        a, b, c, d = interface.formats
        self.result: Format = d
        self.digits = min(filled(one, d), filled(other, d))
        wide = dataclasses.replace(interface, formats=(a, b, c, get_format("fp64")))
        self.wide = _wide_view(wide, one, other)

    def apart(self, batch: DotBatch) -> np.ndarray:
        """Where the results differ."""
        one, other = (model(batch) for model in self.models)
        return one != other

    def distance(self, batch: DotBatch) -> np.ndarray:
        """How far the sums are from a boundary between two results, in units of their difference; infinite where they agree."""
        if self.wide is None:
            return np.full(batch.size, np.inf)
        one, other = (model(batch).view(np.float64) for model in self.wide)
        with np.errstate(all="ignore"):
            low, high = np.minimum(np.abs(one), np.abs(other)), np.maximum(np.abs(one), np.abs(other))
            useful = np.isfinite(high) & (one != other) & (np.signbit(one) == np.signbit(other))
            exponent = np.frexp(np.where(useful, high, 1.0))[1] - 1
            last = np.maximum(exponent, self.result.emin) - self.digits - 1
            low, high = np.ldexp(low, -last), np.ldexp(high, -last)  # boundaries are whole numbers
            far = np.minimum(np.ceil(high) - high, low - np.floor(low)) / (high - low)
        return np.where(useful & np.isfinite(far), far, np.inf)


def _wide_view(interface: Interface, one: Accumulator, other: Accumulator) -> tuple[Callable, Callable] | None:
    """Models of two specifications whose results keep all their bits; None where no kernel computes such results."""
    try:
        specs = _kept(one), _kept(other)
        if any(kernels.lowered(engine_of(spec, interface)).plan is None for spec in specs):
            return None
        return model_of(specs[0], interface), model_of(specs[1], interface)
    except (ValueError, TypeError):  # the algorithm has no such result
        return None


def filled(spec: Accumulator, result: Format) -> int:
    """Fraction bits that a specification's results keep."""
    kept = getattr(spec, "output_fraction_bits", None)
    return result.fraction_bits if kept is None else min(kept, result.fraction_bits)


def _kept(spec: Accumulator) -> Accumulator:
    """A specification whose results keep all their bits."""
    changes = {}
    for path, value in KEPT.items():
        try:
            value_of(spec, path)
        except AttributeError:  # the class has no such field
            continue
        changes[path] = value
    return with_values(spec, changes)


# -- breeding ------------------------------------------------------------------------------------------------------------------
def _nearest(pair: _Pair, batch: DotBatch) -> DotBatch:
    """The inputs that are nearest to a boundary between two results."""
    return batch.rows(np.argsort(pair.distance(batch), kind="stable")[:HERD])


def _bred(pair: _Pair, herd: DotBatch, generations: int, rng: np.random.Generator) -> tuple[list[DotBatch], int]:
    """Inputs on which a pair parts, and the generations it took; each child replaces its parent unless it is farther off."""
    distance = pair.distance(herd)
    for generation in range(generations):
        child = _mutated(pair.interface, herd, rng)
        if generation % 4 == 0:
            child = _nudged(pair, child, rng)
        apart = np.flatnonzero(pair.apart(child))
        if apart.size:
            return [child.rows(apart[:ANSWER])], generation + 1
        found = pair.distance(child)
        better = found <= distance
        herd, distance = _chosen(herd, child, better), np.where(better, found, distance)
        if generation % CULLED == CULLED - 1:
            order = np.argsort(distance, kind="stable")
            kept = np.concatenate([order[: HERD // 2], order[: HERD - HERD // 2]])[: len(order)]
            herd, distance = herd.rows(kept), distance[kept]
    return [], generations


def _chosen(one: DotBatch, other: DotBatch, second: np.ndarray) -> DotBatch:
    """Of two batches the rows of the second one where told."""
    both = DotBatch.joined([one, other])
    return both.rows(np.arange(one.size) + np.where(second, one.size, 0))


def _mutated(interface: Interface, batch: DotBatch, rng: np.random.Generator) -> DotBatch:
    """Each dot product with one to three random changes."""
    a, b, c = batch.a.copy(), batch.b.copy(), batch.c.copy()
    scales = [s.copy() for s in batch.scales or ()]
    rows = np.arange(batch.size)
    for _ in range(int(rng.integers(1, 4))):
        where, other = rng.integers(0, interface.k, batch.size), rng.integers(0, interface.k, batch.size)
        mate = rng.permutation(batch.size)
        move = rng.integers(0, 8, batch.size)
        for values, fmt, kind in ((a, interface.formats[0], 0), (b, interface.formats[1], 1)):
            at = move == kind
            values[rows[at], where[at]] = _changed(values[rows[at], where[at]], fmt, rng)
        c[move == 2] = _changed(c[move == 2], interface.formats[2], rng)
        at = move == 3  # a product of the same dot product again
        a[rows[at], where[at]], b[rows[at], where[at]] = a[rows[at], other[at]], b[rows[at], other[at]]
        at = move == 4  # a product of another one
        a[rows[at], where[at]], b[rows[at], where[at]] = a[mate[at], other[at]], b[mate[at], other[at]]
        at = move == 5
        a[rows[at], where[at]] = 0
        at = move == 6
        c[at] = np.where(rng.integers(0, 2, int(at.sum())) == 0, c[mate[at]], 0).astype(c.dtype)
        at = move == 7
        for values in scales:
            block = rng.integers(0, values.shape[1], batch.size)
            values[rows[at], block[at]] = values[mate[at], block[at]]
    changed = DotBatch(a, b, c, *scales)
    shift = np.where(rng.integers(0, 8, batch.size) == 0, rng.integers(-3, 4, batch.size), 0)
    return scaled(interface, changed, shift) if shift.any() else changed


def _changed(values: np.ndarray, fmt: Format, rng: np.random.Generator) -> np.ndarray:
    """Encodings with one bit, the sign, the exponent or the last places changed."""
    size, step = values.size, fmt.fraction_bits + fmt.padding_bits
    magnitude = magnitudes(values, fmt)
    flipped = magnitude ^ (1 << rng.integers(fmt.padding_bits, max(step, fmt.padding_bits + 1), size))
    exponent = magnitude + (rng.integers(-4, 5, size) << step)
    last = magnitude + (rng.integers(-2, 3, size) << fmt.padding_bits)
    power = (np.clip(exponents(values, fmt) + rng.integers(-1, 2, size), fmt.emin, fmt.emax) + fmt.bias) << step
    chosen = np.choose(rng.integers(0, 4, size), [flipped, exponent, last, power])
    opposite = fmt.container.type(fmt.sign_bit if fmt.has_negative_zero else 0)
    sign = np.where(rng.integers(0, 5, size) == 0, values ^ opposite, values)
    return signed(chosen, sign, fmt)


def _nudged(pair: _Pair, batch: DotBatch, rng: np.random.Generator) -> DotBatch:
    """Half of the dot products with c moved by as much as their sum lacks to the next boundary between two results."""
    c = pair.interface.formats[2]
    if pair.wide is None:
        return batch
    with np.errstate(all="ignore"):
        total = pair.wide[int(rng.integers(0, 2))](batch).view(np.float64)
        known = np.isfinite(total) & (total != 0) & (rng.integers(0, 2, batch.size) == 1)
        exponent = np.frexp(np.where(known, total, 1.0))[1] - 1
        unit = np.ldexp(1.0, np.maximum(exponent, pair.result.emin) - pair.digits - 1)
        target = np.where(rng.integers(0, 2, batch.size) == 1, np.floor(total / unit), np.ceil(total / unit)) * unit
        moved = decode(batch.c, c) + np.where(known, target - total, 0.0)
        known &= np.isfinite(moved)
    nudged = batch.c.copy()
    nudged[known] = encode(moved[known], c, saturate=True).astype(c.container)
    return DotBatch(batch.a, batch.b, nudged, *(batch.scales or ()))
