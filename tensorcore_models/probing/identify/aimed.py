"""Searches for an input on which two given specifications return different results.

Pools of inputs are made without looking at any specification. If no pool separates two specifications, this search evaluates
both in a *wide view*, with results in binary64 that keep every fraction bit of the sums. Inputs whose two sums differ there are
changed at random. Changes that bring the sums closer to a rounding boundary are kept, until a boundary lies between the two
sums: then the rounded results differ, too.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ... import kernels
from ...accumulators import Accumulator
from ...aspects.search import value_of
from ...formats import Format, get_format
from ...formats.rounding import decode, encode
from ..interface import DotBatch, Interface
from .fields import engine_of, model_of, with_values
from .magnitudes import magnitudes, scaled_pool, signed
from .mutations import mutated

#: Number of inputs in each of the pools that a search starts from.
POOL = 3000
#: Number of inputs that are changed together (a herd), generation after generation.
HERD = 480
#: Most separating inputs that one search returns.
ANSWER = 24
#: Number of kinds of boundaries between two results: zero, the midpoints between neighbours, the neighbours themselves.
KINDS = 3
#: The kind "zero": a result that underflows has different signs on its two sides.
ZERO = 0
#: The kind "midpoints": rounding to nearest changes its result there.
MIDDLES = 1
#: Number of generations after which the worse half of the herd is replaced by copies of the better half.
CULLED = 12
#: Fields of the final rounding, each with the value that loses no bit, which make the wide view.
KEPT = {
    "output_fraction_bits": None, "flush_outputs": False, "negative_underflow": "positive",
    "dot.output_fraction_bits": None, "dot.negative_underflow": "positive",
}  # fmt: skip


@dataclass
class Aimed:
    """`Aimed` searches for inputs that separate two specifications (it is a :data:`.challenge.Source`).

    It is a genetic search: it changes a population of inputs (a herd) at random for many generations, and keeps changes that
    bring the two results closer to a difference.

    Parameters
    ----------
    pools : int
        Number of sets of random inputs from which each herd is chosen.
    generations : int
        Number of generations after which the search gives up a herd.
    herds : int
        Number of herds that one search tries, each chosen from its own sets of random inputs.
    total : int
        Largest number of generations of all searches of this object together. Later searches try only the random inputs.
    seed : int
        Seed of all random choices.
    """

    pools: int = 6
    generations: int = 250
    herds: int = 3
    total: int = 6000
    seed: int = 0
    _surveyed: dict[tuple[Interface, int], list[DotBatch]] = field(default_factory=dict, init=False, repr=False)
    _searched: dict[frozenset[Accumulator], str] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, interface: Interface, one: Accumulator, other: Accumulator) -> list[DotBatch]:
        """Return inputs on which the two specifications return different results; none if the limits end the search first."""
        if interface.integer or frozenset((one, other)) in self._searched:
            return []
        pair = _Pair(interface, one, other)
        for herd in range(self.herds):
            found = self._from_survey(pair, herd)
            if found is None:
                return []
            if found:
                return found
        self._searched[frozenset((one, other))] = (
            "the specifications differ only in the last step of a result that underflows, and a search found no such result"
            if pair.alike
            else "the sums differ, and a search found no result that shows the difference"
        )
        return []

    def statement(self, one: Accumulator, other: Accumulator) -> str:
        """Return the reason why a search found no input that separates two specifications.

        The string is empty if there was no search for these specifications.
        """
        return self._searched.get(frozenset((one, other)), "")

    def _from_survey(self, pair: "_Pair", number: int) -> list[DotBatch] | None:
        """Return separating inputs from herd `number`; None if the two sums never differ, or `total` is used up."""
        nearest: list[DotBatch] = []
        for batch in self._survey(pair.interface, number):
            apart = np.flatnonzero(pair.apart(batch))
            if apart.size:
                return [batch.rows(apart[:ANSWER])]
            nearest.append(_nearest(pair, batch))
        herd = _nearest(pair, DotBatch.joined(nearest))
        if self.total <= 0 or not np.isfinite(pair.distance(herd, _kinds(herd.size))).any():
            return None
        rng = np.random.default_rng([self.seed, number, 3])
        found, spent = _bred(pair, herd, min(self.generations, self.total), rng)
        self.total -= spent
        return found

    def _survey(self, interface: Interface, number: int) -> list[DotBatch]:
        key = interface, number
        if key not in self._surveyed:
            rng = np.random.default_rng([self.seed, number, 2])
            self._surveyed[key] = [scaled_pool(interface, POOL, rng) for _ in range(self.pools)]
        return self._surveyed[key]


class _Pair:
    """`_Pair` holds two specifications: models that return their results, and models that return their sums (the wide view)."""

    def __init__(self, interface: Interface, one: Accumulator, other: Accumulator):
        self.models = tuple(model_of(spec, interface) for spec in (one, other))
        self.interface = interface
        a, b, c, d = interface.formats
        self.result: Format = d
        self.digits = min(filled(one, d), filled(other, d))
        self.top = 2.0**d.emax * 2  # larger sums overflow in both
        self.flushes = all(getattr(spec, "flush_outputs", False) for spec in (one, other))
        wide = dataclasses.replace(interface, formats=(a, b, c, get_format("fp64")))
        self.wide = _wide_view(wide, one, other)

    @property
    def alike(self) -> bool:
        """Return whether both have the same sums, so that only the rounding of the result can differ."""
        return self.wide is not None and self.wide[0] is self.wide[1]

    def apart(self, batch: DotBatch) -> np.ndarray:
        """Return a mask of the dot products of a batch with different results."""
        one, other = (model(batch) for model in self.models)
        return one != other

    def distance(self, batch: DotBatch, kind: np.ndarray) -> np.ndarray:
        """Return the distance of the two sums of each dot product from a boundary, divided by the difference of the sums.

        It is infinite if the sums are equal. `kind` (size,) gives the boundary: zero (it decides the sign of a result that
        underflows), the numbers of the result's format (they decide directed roundings and rounding to odd), or the midpoints
        between them (they decide rounding to nearest). If both specifications always have the same sum, the distance is the
        size of the sum, because small sums underflow.
        """
        if self.wide is None:
            return np.full(batch.size, np.inf)
        if self.alike:
            size = np.abs(self.wide[0](batch).view(np.float64))
            return np.where(np.isfinite(size) & (size > 0), size, np.inf)
        one, other = (model(batch).view(np.float64) for model in self.wide)
        with np.errstate(all="ignore"):
            low, high = np.minimum(np.abs(one), np.abs(other)), np.maximum(np.abs(one), np.abs(other))
            useful = (low < self.top) & (one != other) & (np.signbit(one) == np.signbit(other))
            exponent = np.frexp(np.where(useful, high, 1.0))[1] - 1
            last = np.maximum(exponent, self.result.emin) - self.digits
            if self.flushes:  # the smallest normal number is the first result above zero
                last = np.where(exponent < self.result.emin, self.result.emin, last)
            # In these units the boundaries other than zero are 1, 2, 3 and so on.
            low, high = (np.ldexp(x, -last) + np.where(kind == MIDDLES, 0.5, 0.0) for x in (low, high))
            below = np.where(low < 1, np.inf, low - np.floor(low))
            far = np.where(kind == ZERO, low, np.minimum(np.ceil(high) - high, below)) / (high - low)
        return np.where(useful & np.isfinite(far), far, np.inf)


def _wide_view(interface: Interface, one: Accumulator, other: Accumulator) -> tuple[Callable, Callable] | None:
    """Return models that return the unrounded sums of two specifications; None if no kernel can compute them."""
    try:
        specs = _kept(one), _kept(other)
        if any(kernels.lowered(engine_of(spec, interface)).plan is None for spec in specs):
            return None
        return model_of(specs[0], interface), model_of(specs[1], interface)
    except (ValueError, TypeError):  # this family cannot return binary64
        return None


def filled(spec: Accumulator, result: Format) -> int:
    """Return the number of fraction bits of a specification's results."""
    kept = getattr(spec, "output_fraction_bits", None)
    return result.fraction_bits if kept is None else min(kept, result.fraction_bits)


def _kept(spec: Accumulator) -> Accumulator:
    """Return the specification with a final rounding that loses no bit."""
    changes = {}
    for path, value in KEPT.items():
        try:
            present = value_of(spec, path)
        except AttributeError:  # the family has no such field
            continue
        if present != value:  # a value that the family fixes is the wanted value already
            changes[path] = value
    return with_values(spec, changes)


# -- changing a herd -----------------------------------------------------------------------------------------------------------
def _kinds(count: int) -> np.ndarray:
    """Return the kind of boundary that each input of a herd is driven to: 0, 1, 2, 0, 1, 2, ..."""
    return np.arange(count) % KINDS


def _nearest(pair: _Pair, batch: DotBatch) -> DotBatch:
    """Return a herd: for each kind of boundary the inputs nearest to one, in the order of :func:`_kinds`."""
    far = (pair.distance(batch, np.full(batch.size, kind)) for kind in range(KINDS))
    orders = [np.argsort(one, kind="stable")[: HERD // KINDS] for one in far]
    return batch.rows(np.stack(orders, axis=1).reshape(-1))


def _culled(distance: np.ndarray) -> np.ndarray:
    """Return the indices of the inputs that stay: the better half of each kind, each of them twice."""
    kept = np.arange(len(distance))
    for kind in range(KINDS):
        order = kept[kind::KINDS][np.argsort(distance[kind::KINDS], kind="stable")]
        half = (len(order) + 1) // 2
        kept[kind::KINDS] = np.concatenate([order[:half], order[: len(order) - half]])
    return kept


def _bred(pair: _Pair, herd: DotBatch, generations: int, rng: np.random.Generator) -> tuple[list[DotBatch], int]:
    """Return separating inputs, and the number of generations.

    A changed input replaces the old one unless it is farther off.
    """
    kinds = _kinds(herd.size)
    distance = pair.distance(herd, kinds)
    for generation in range(generations):
        child = mutated(pair.interface, herd, rng)
        if generation % 4 == 0:
            child = _nudged(pair, child, kinds, rng)
        apart = np.flatnonzero(pair.apart(child))
        if apart.size:
            return [child.rows(apart[:ANSWER])], generation + 1
        found = pair.distance(child, kinds)
        better = found <= distance
        herd, distance = _chosen(herd, child, better), np.where(better, found, distance)
        if generation % CULLED == CULLED - 1:
            kept = _culled(distance)
            herd, distance = herd.rows(kept), distance[kept]
    return [], generations


def _chosen(one: DotBatch, other: DotBatch, second: np.ndarray) -> DotBatch:
    """Return the rows of `one`, replaced by those of `other` where `second` is true."""
    both = DotBatch.joined([one, other])
    return both.rows(np.arange(one.size) + np.where(second, one.size, 0))


def _nudged(pair: _Pair, batch: DotBatch, kinds: np.ndarray, rng: np.random.Generator) -> DotBatch:
    """Change c in a random half of the dot products, so that the sum lands on its boundary."""
    c = pair.interface.formats[2]
    if pair.wide is None:
        return batch
    with np.errstate(all="ignore"):
        total = pair.wide[int(rng.integers(0, 2))](batch).view(np.float64)
        known = np.isfinite(total) & (total != 0) & (rng.integers(0, 2, batch.size) == 1)
        exponent = np.frexp(np.where(known, total, 1.0))[1] - 1
        unit = np.ldexp(1.0, np.maximum(exponent, pair.result.emin) - pair.digits - 1)
        target = np.where(rng.integers(0, 2, batch.size) == 1, np.floor(total / unit), np.ceil(total / unit)) * unit
        target = np.where(kinds == ZERO, 0.0, target)
        moved = decode(batch.c, c) + np.where(known, target - total, 0.0)
        known &= np.isfinite(moved)
    nudged = batch.c.copy()
    nudged[known] = encode(moved[known], c, saturate=True).astype(c.container)
    near = known & (kinds == ZERO)  # a sum of exactly zero is zero in both: move a few last places away
    places = rng.integers(-2, 3, int(near.sum())) << c.padding_bits
    nudged[near] = signed(magnitudes(nudged[near], c) + places, nudged[near], c)
    return DotBatch(batch.a, batch.b, nudged, *(batch.scales or ()))
