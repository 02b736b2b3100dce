"""Tries to refute a specification: asks inputs on which alternatives give other results, then random inputs."""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ... import kernels
from ...accumulators import Accumulator
from ...aspects.search import Field
from ..interface import DotBatch, Interface
from ..random_operands import KINDS, operands
from .box import Box, Fault
from .equalities import equal_because
from .fields import Family, engine_of, with_values
from .inputs import pool
from .magnitudes import scaled_pool
from .mutations import mutated
from .search import Log, differ, results

#: Function of an interface and two specifications that returns inputs which separate them, if it finds any: a search or a
#: solver.
Source = Callable[[Interface, Accumulator, Accumulator], Iterable[DotBatch]]

#: Number of inputs in one pool.
POOL = 3000
#: Number of pools in a row that separate nothing, after which the remaining alternatives count as not separated.
QUIET = 8
#: Most inputs that the box is asked at once.
ASKED = 24
#: Rows and columns of the random products of matrices.
SIDE = 32
#: Number of dot products in one pool of the random phase.
RANDOM_POOL = 4000
#: Number of times that each pool of the random phase is changed and asked again; a change costs a tenth of a new pool.
CHANGED = 3


@dataclass(frozen=True)
class Alternative:
    """`Alternative` is a specification that differs in one or two fields and also gives all answers of the log.

    `equal` is the reason why it gives the same result on every input, empty if no reason is known.
    """

    fields: tuple[Field, ...]
    spec: Accumulator
    equal: str = ""

    @property
    def name(self) -> str:
        """Return the names of the fields that differ."""
        return " and ".join(field.name for field in self.fields)

    @property
    def values(self) -> tuple:
        """Return the values of the fields in which specifications differ."""
        return tuple(value for field in self.fields for value in field.get(self.spec))


def alternatives(family: Family, log: Log, spec: Accumulator) -> list[Alternative]:
    """Return all specifications that differ in one field from `spec` and give all answers of the log."""
    return [
        Alternative((field,), other, equal_because(log.interface, spec, other))
        for field, _, other in family.variants(log.interface, spec)
        if log.wrong(other, 1) == 0 and not (log.any_nan and field.name.endswith("nan"))
    ]


def _most_divisive(parts: np.ndarray) -> list[int]:
    """Return few inputs, chosen greedily, that separate every alternative that any input separates.

    `parts`, shape (alternatives, inputs), says which input separates which alternative.
    """
    chosen: list[int] = []
    left = parts.any(axis=1)
    while left.any() and len(chosen) < ASKED:
        votes = parts[left].sum(axis=0)
        best = int(votes.argmax())
        chosen.append(best)
        left &= ~parts[:, best]
    return chosen


def _ask_sources(
    box: Box, log: Log, spec: Accumulator, rivals: list[Alternative], sources: Iterable[Source]
) -> list[Alternative]:
    """Return the rivals that still give all answers after the box was asked the inputs that the sources found for each."""

    def separated(rival: Alternative) -> bool:
        for source in sources:
            if log.wrong(rival.spec, 1):  # an input for another rival excluded it
                break
            for batch in source(log.interface, spec, rival.spec):
                log.add(batch, box.ask(batch))
        return log.wrong(rival.spec, 1) > 0

    for row in _rows(rivals):
        for end in (
            row,
            row[::-1],
        ):  # numbers from both ends, until one is not separated: the remaining numbers are closer still
            for rival in end:
                if not separated(rival):
                    break
    return [rival for rival in rivals if log.wrong(rival.spec, 1) == 0]


def _rows(rivals: list[Alternative]) -> list[list[Alternative]]:
    """Return groups of rivals: rivals that change one field to a number together, sorted by it; every other rival alone."""
    rows: list[list[Alternative]] = []
    for _, group in itertools.groupby(rivals, key=lambda rival: rival.name):
        members = list(group)
        numbers = [rival for rival in members if [type(value) for value in rival.values] == [int]]
        rows += [sorted(numbers, key=lambda rival: rival.values)] if numbers else []
        rows += [[rival] for rival in members if rival not in numbers]
    return rows


def _pool(box: Box, turn: int, rng: np.random.Generator) -> DotBatch:
    """Return a pool of inputs of all kinds; in odd turns they are moved to random magnitudes."""
    if turn % 2 == 0 or box.recorded is not None:
        return pool(box.interface, POOL, rng, box.recorded)
    return scaled_pool(box.interface, POOL, rng)


def challenge(
    box: Box,
    family: Family,
    log: Log,
    spec: Accumulator,
    rng: np.random.Generator,
    sources: tuple[Source, ...] = (),
    progress: Callable[[str], None] = lambda text: None,
) -> list[Alternative] | None:
    """Ask the box inputs that separate a specification from its alternatives, until no more are found.

    Return the alternatives that no input separated; None if an answer refuted the specification itself (the log has it).
    """
    known = alternatives(family, log, spec)
    equal = [rival for rival in known if rival.equal]
    rivals = [rival for rival in known if not rival.equal]
    quiet = 0
    while rivals and quiet < QUIET:
        batch = _pool(box, quiet, rng)
        wanted = results(spec, log.interface, batch)
        found = (results(rival.spec, log.interface, batch) for rival in rivals)
        chosen = _most_divisive(np.stack([differ(one, wanted, log) for one in found]))
        if not chosen:
            quiet += 1
            continue
        quiet = 0
        inputs = batch.rows(np.array(chosen, int))
        log.add(inputs, box.ask(inputs))
        rivals = [rival for rival in rivals if log.wrong(rival.spec, 1) == 0]
        progress(f"{len(rivals)} alternatives left after {box.queries} queries")
        if log.wrong(spec, 1):
            return None
    if sources and box.recorded is None:
        rivals = _ask_sources(box, log, spec, rivals, sources)
        progress(f"{len(rivals)} alternatives left after further sources, {box.queries} queries")
    return None if log.wrong(spec, 1) else rivals + equal


def plainest(
    box: Box, family: Family, log: Log, spec: Accumulator, rivals: list[Alternative], rng: np.random.Generator
) -> Accumulator:
    """Return the simplest specification that no input separated: each field has the first value of its list that fits."""
    pools = DotBatch.joined([_pool(box, turn, rng) for turn in range(QUIET)])
    wanted = results(spec, log.interface, pools)
    for field in family.fields:
        present = field.get(spec)
        known = {rival.values for rival in rivals if rival.fields == (field,)}
        idle = not field.matters(log.interface, spec)
        for value in field.values(log.interface, spec):
            values = value if len(field.paths) > 1 else (value,)
            if values == present:
                break
            if values not in known and not idle:
                continue
            try:
                other = with_values(spec, dict(zip(field.paths, values, strict=True)))
            except (ValueError, TypeError):  # this value contradicts another field
                continue
            if log.wrong(other, 1) == 0 and not differ(results(other, log.interface, pools), wanted, log).any():
                spec = other
                break
    return spec


def unwrapped(box: Box, log: Log, spec: Accumulator, rng: np.random.Generator) -> Accumulator:
    """Return the inner operation of a specification, if no input shows the outer one (a conversion that changes no operand)."""
    inner = spec.inner.parametric() or spec.inner
    if inner == spec:
        return spec
    pools = DotBatch.joined([_pool(box, turn, rng) for turn in range(QUIET)])
    try:
        same = log.wrong(inner, 1) == 0 and not differ(
            results(inner, log.interface, pools), results(spec, log.interface, pools), log
        ).any()  # fmt: skip
    except (ValueError, TypeError):  # the inner operation does not take the formats
        return spec
    return inner if same else spec


def _random_matrices(box: Box, spec: Accumulator, log: Log, kind: str, rng: np.random.Generator) -> DotBatch | None:
    """Ask one random product of matrices; return the dot products that differ from the specification, None if all agree."""
    tile = log.interface.tile(SIDE, SIDE)
    a, b, c, scale_a, scale_b = (None if x is None else x[0] for x in operands(tile, kind, 1, rng))
    scales = () if scale_a is None else (scale_a, scale_b)
    wanted = kernels.matrix_bits(engine_of(spec, log.interface), a, b, c, *scales)
    places = np.argwhere(differ(wanted, box.ask_matrices(a, b, c, *scales), log))
    if not len(places):
        return None
    rows, columns = places[:ASKED].T
    scales = () if scale_a is None or scale_b is None else (scale_a[rows], scale_b[:, columns].T)
    return DotBatch(a[rows], b[:, columns].T, c[rows, columns], *scales)  # type: ignore[index]


def _refuse_other_matrices(box: Box, spec: Accumulator, log: Log, batch: DotBatch) -> None:
    """Refuse, by a Fault, a box that gives other results in a product of matrices than alone.

    `batch` holds the differing dot products.
    """
    if not differ(results(spec, log.interface, batch), box.ask(batch, chosen=False), log).any():
        raise Fault(
            "other results in matrices",
            "dot products in a product of matrices differ from the same dot products alone",
            batch.rows([0]),
        )


def _random_inputs(box: Box, rng: np.random.Generator) -> Iterator[tuple[DotBatch, bool]]:
    """Yield (batch, whether it is new) for the random phase: new pools and changes of them; recorded inputs once each."""
    if box.recorded is not None:
        for start in range(0, box.recorded.size, RANDOM_POOL):
            yield box.recorded.rows(slice(start, start + RANDOM_POOL)), False
        return
    for made in itertools.cycle((pool, scaled_pool)):
        batch = made(box.interface, RANDOM_POOL, rng)
        yield batch, True
        for _ in range(0 if box.interface.integer else CHANGED):
            batch = mutated(box.interface, batch, rng)
            yield batch, False


def refute(
    box: Box,
    log: Log,
    spec: Accumulator,
    vectors: int,
    rng: np.random.Generator,
    progress: Callable[[str], None] = lambda text: None,
) -> DotBatch | None:
    """Ask random inputs of every kind; return the inputs that refute the specification, or None after `vectors` of them."""
    goal = box.vectors + vectors
    kinds = ("random_bits", "edges", "zeros") if log.interface.integer else tuple(KINDS)
    for batch, new in _random_inputs(box, rng):
        apart = np.flatnonzero(differ(results(spec, log.interface, batch), box.ask(batch, chosen=False), log))
        if apart.size:
            return batch.rows(apart[:ASKED])
        for kind in kinds if new and box.matrix is not None else ():
            if box.vectors >= goal:
                break
            found = _random_matrices(box, spec, log, kind, rng)
            if found is not None:
                _refuse_other_matrices(box, spec, log, found)
                return found
        if new:
            progress(f"{box.vectors} random vectors, none refutes")
        if box.vectors >= goal:
            break
    return None
