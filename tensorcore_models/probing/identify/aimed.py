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
from ...aspects.search import value_of
from ...formats import Format, get_format
from ...formats.rounding import decode, encode
from ..interface import DotBatch, Interface
from .fields import engine_of, model_of, with_values
from .magnitudes import magnitudes, scaled_pool, signed
from .mutations import mutated

#: Inputs of one pool of the survey, of the herd that is bred, and of one answer.
POOL, HERD, ANSWER = 3000, 480, 24
#: Kinds of boundaries between two results; the third one is any other result.
KINDS, ZERO, MIDDLES = 3, 0, 1
#: Every so many generations the worse half of the herd is replaced by copies of the better one.
CULLED = 12
#: Fields of the final rounding, and the values with which it keeps all it can.
KEPT = {
    "output_fraction_bits": None, "flush_outputs": False, "negative_underflow": "positive",
    "dot.output_fraction_bits": None, "dot.negative_underflow": "positive",
}  # fmt: skip


@dataclass
class Aimed:
    """A source of inputs that tell two specifications apart.

    Parameters
    ----------
    pools : int
        Pools of inputs at all magnitudes from which a search starts.
    generations, herds : int
        Generations of one herd, and herds of one search, each from pools of its own.
    total : int
        Generations of all searches of this object; what is asked later gets the pools only.
    seed : int
        Of all random choices.
    """

    pools: int = 6
    generations: int = 250
    herds: int = 3
    total: int = 6000
    seed: int = 0
    _surveyed: dict[tuple[Interface, int], list[DotBatch]] = field(default_factory=dict, init=False, repr=False)
    _searched: dict[frozenset[Accumulator], str] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, interface: Interface, one: Accumulator, other: Accumulator) -> list[DotBatch]:
        """Inputs on which two specifications part, if any are found within the limits."""
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
            "only the last step of a result that underflows differs, and a search for one found none"
            if pair.alike
            else "the sums differ where no result shows it, and a search for a result that does found none"
        )
        return []

    def statement(self, one: Accumulator, other: Accumulator) -> str:
        """What is known about a pair that was searched in vain; empty if nothing."""
        return self._searched.get(frozenset((one, other)), "")

    def _from_survey(self, pair: "_Pair", number: int) -> list[DotBatch] | None:
        """Inputs of a survey on which a pair parts, or bred from it; None where the sums never differ or no search is left."""
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
    """Two specifications, as their results are and in the wide view."""

    def __init__(self, interface: Interface, one: Accumulator, other: Accumulator):
        self.models = tuple(model_of(spec, interface) for spec in (one, other))
        self.interface = interface
        a, b, c, d = interface.formats
        self.result: Format = d
        self.digits = min(filled(one, d), filled(other, d))
        self.top = 2.0**d.emax * 2  # beyond it all results are alike
        self.flushes = all(getattr(spec, "flush_outputs", False) for spec in (one, other))
        wide = dataclasses.replace(interface, formats=(a, b, c, get_format("fp64")))
        self.wide = _wide_view(wide, one, other)

    @property
    def alike(self) -> bool:
        """Whether the sums are the same by construction: only the last step can differ."""
        return self.wide is not None and self.wide[0] is self.wide[1]

    def apart(self, batch: DotBatch) -> np.ndarray:
        """Where the results differ."""
        one, other = (model(batch) for model in self.models)
        return one != other

    def distance(self, batch: DotBatch, kind: np.ndarray) -> np.ndarray:
        """How far the sums are from a boundary between two results, in units of their difference; infinite where they agree.

        `kind` (size,) says which boundaries count for each: zero (the sign of a result that underflows), the other results
        (directed roundings, to odd), or the middles between them (to nearest). Where the sums are alike it is their size.
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
            if self.flushes:  # the smallest normal result is the first one
                last = np.where(exponent < self.result.emin, self.result.emin, last)
            # In these units the boundaries other than zero are 1, 2, 3 and so on.
            low, high = (np.ldexp(x, -last) + np.where(kind == MIDDLES, 0.5, 0.0) for x in (low, high))
            below = np.where(low < 1, np.inf, low - np.floor(low))
            far = np.where(kind == ZERO, low, np.minimum(np.ceil(high) - high, below)) / (high - low)
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
            present = value_of(spec, path)
        except AttributeError:  # the class has no such field
            continue
        if present != value:  # what a class fixes has the value already
            changes[path] = value
    return with_values(spec, changes)


# -- breeding ------------------------------------------------------------------------------------------------------------------
def _kinds(count: int) -> np.ndarray:
    """The boundaries towards which the inputs of a herd are bred: each kind in turn."""
    return np.arange(count) % KINDS


def _nearest(pair: _Pair, batch: DotBatch) -> DotBatch:
    """The inputs that are nearest to a boundary of each kind, the kinds in turn."""
    far = (pair.distance(batch, np.full(batch.size, kind)) for kind in range(KINDS))
    orders = [np.argsort(one, kind="stable")[: HERD // KINDS] for one in far]
    return batch.rows(np.stack(orders, axis=1).reshape(-1))


def _culled(distance: np.ndarray) -> np.ndarray:
    """Which inputs go on: of each kind the better half, twice."""
    kept = np.arange(len(distance))
    for kind in range(KINDS):
        order = kept[kind::KINDS][np.argsort(distance[kind::KINDS], kind="stable")]
        half = (len(order) + 1) // 2
        kept[kind::KINDS] = np.concatenate([order[:half], order[: len(order) - half]])
    return kept


def _bred(pair: _Pair, herd: DotBatch, generations: int, rng: np.random.Generator) -> tuple[list[DotBatch], int]:
    """Inputs on which a pair parts, and the generations it took; each child replaces its parent unless it is farther off."""
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
    """Of two batches the rows of the second one where told."""
    both = DotBatch.joined([one, other])
    return both.rows(np.arange(one.size) + np.where(second, one.size, 0))


def _nudged(pair: _Pair, batch: DotBatch, kinds: np.ndarray, rng: np.random.Generator) -> DotBatch:
    """Half of the dot products with c moved by as much as their sum lacks to zero, or to the next other boundary."""
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
    near = known & (kinds == ZERO)  # a sum of zero is the same in both: go a few places beyond
    places = rng.integers(-2, 3, int(near.sum())) << c.padding_bits
    nudged[near] = signed(magnitudes(nudged[near], c) + places, nudged[near], c)
    return DotBatch(batch.a, batch.b, nudged, *(batch.scales or ()))
