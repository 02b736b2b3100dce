"""Searches for the specification that gives all answers of a log.

A *descent* starts from one specification and changes one field after the other to the value that misses fewest answers, until
no change helps. Descents start from many points of each family. If all of them end at specifications that miss answers, the
best ones are crossed and changed at random, and descend again (a memetic search).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...accumulators import Accumulator
from ...aspects.search import Field, value_of
from ..interface import DotBatch, Interface, is_nan
from .fields import Family, changed, field_variants, model_of

#: Numbers of answers that are compared in turn; counting stops as soon as a specification is worse than the best one.
CHUNKS = (96, 400, 1600)
#: Number of answers that a coarse descent looks at.
COARSE = 500
#: Number of shapes of each family that are swept before all others.
FIRST = 4
#: Number of the best specifications that descend on all answers.
FOLLOWED = 4
#: Number of specifications of a family that are crossed with each other.
POPULATION = 8
#: Number of families that take part in crossing.
CROSSED = 3
#: Number of missed answers that crossing looks at.
MISSED = 100
#: Cost of one comparison beside its products, in products.
COMPARISON = 800
#: Number of counts that a log remembers; a count has the missed answers and the number of answers compared so far.
REMEMBERED = 40_000


@dataclass
class Effort:
    """`Effort` is the cost so far: products evaluated to compare specifications with answers."""

    spent: int = 0


@dataclass
class Log:
    """`Log` holds the dot products that the box was asked, with its answers.

    With `any_nan`, any two NaN count as equal. The parts of a log share `effort`, the cost of all comparisons, and `tried`,
    every specification at which a search ended, with the family that it searched.
    """

    interface: Interface
    batch: DotBatch
    answers: np.ndarray
    any_nan: bool = False
    effort: Effort = field(default_factory=Effort, repr=False)
    tried: dict[Accumulator, Family] = field(default_factory=dict, repr=False)
    _counts: dict[tuple[Accumulator, int], tuple[int, int]] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Return the number of dot products that were asked."""
        return self.batch.size

    def add(self, batch: DotBatch, answers: np.ndarray) -> None:
        """Add answers, the newest first, because comparisons start with them and they are the answers that specifications
        missed."""
        # one statement sets both, so that an interruption cannot leave one without the other
        self.batch, self.answers = DotBatch.joined([batch, self.batch]), np.concatenate([answers, self.answers])
        self._counts.clear()

    def differs(self, spec: Accumulator, part: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Return a mask of the answers that a specification misses."""
        answers = self.answers[part]
        self.effort.spent += len(answers) * (self.interface.k + 4) + COMPARISON
        return differ(results(spec, self.interface, self.batch.rows(part)), answers, self)

    def forgive_nan(self) -> None:
        """Count any two NaN as equal from now on."""
        self.any_nan = True
        self._counts.clear()

    def part(self, rows: np.ndarray) -> "Log":
        """Return a log of some of the answers."""
        return Log(self.interface, self.batch.rows(rows), self.answers[rows], self.any_nan, self.effort, self.tried)

    def wrong(self, spec: Accumulator, limit: int | None = None, size: int | None = None) -> int:
        """Return the number of the first `size` answers that a specification misses; counting stops at `limit`."""
        size = self.size if size is None else min(size, self.size)
        key = spec, size
        total, start = self._counts.get(key, (0, 0))
        for end in [end for end in CHUNKS if start < end < size] + [size]:
            if start == size or (limit is not None and total >= limit):
                return total
            total += int(np.count_nonzero(self.differs(spec, slice(start, end))))
            start = end
            if len(self._counts) > REMEMBERED:
                self._counts.clear()
            self._counts[key] = total, start
        return total


def results(spec: Accumulator, interface: Interface, batch: DotBatch) -> np.ndarray:
    """Return the results of a specification for a batch of dot products."""
    return model_of(spec, interface)(batch)


def differ(found: np.ndarray, wanted: np.ndarray, log: Log) -> np.ndarray:
    """Return a mask of the results that differ; with `any_nan`, two NaN do not differ."""
    apart = found != wanted
    if log.any_nan and apart.any():
        apart &= ~(is_nan(found, log.interface.formats[3]) & is_nan(wanted, log.interface.formats[3]))
    return apart


def _sweep(
    family: Family, log: Log, spec: Accumulator, wrong: int, size: int | None, *, sparse: bool = False,
    fields: Iterable[Field] = (),
) -> tuple[Accumulator, int]:  # fmt: skip
    """Set each field in turn to the value that misses fewest answers; in the order of `fields` if they are given."""
    for one in fields or family.fields:
        if not wrong:
            break
        if not one.matters(log.interface, spec):
            continue
        for _, other in field_variants(one, log.interface, spec, sparse=sparse):
            found = log.wrong(other, wrong, size)
            if found < wrong:
                spec, wrong = other, found
    log.tried[spec] = family
    return spec, wrong


def descend(
    family: Family, log: Log, spec: Accumulator, size: int | None = None, *, sparse: bool = False
) -> tuple[Accumulator, int]:
    """Change fields one by one until none helps; return the specification, and the number of the first `size` answers that it
    misses.

    With `sparse`, only some values of long lists are tried.
    """
    wrong = log.wrong(spec, None, size)
    while wrong:
        before = wrong
        spec, wrong = _sweep(family, log, spec, wrong, size, sparse=sparse)
        if wrong == before:
            spec, wrong = _slide(family, log, spec, wrong, size)
        if wrong == before:
            break
    return spec, wrong


def _slide(family: Family, log: Log, spec: Accumulator, wrong: int, size: int | None) -> tuple[Accumulator, int]:
    """Change two numbers by small steps together; return the best specification."""
    start = spec
    for _, _, other in family.slides(log.interface, start):
        found = log.wrong(other, wrong, size)
        if found < wrong:
            spec, wrong = other, found
    log.tried[spec] = family
    return spec, wrong


def _crossed(family: Family, interface: Interface, one: Accumulator, other: Accumulator, rng) -> Accumulator:
    """Return `one` with some fields taken from `other`, and up to three fields changed at random."""
    taken = [f.of(other) for f in family.fields if rng.random() < 0.3]
    spec = changed(interface, one, {path: value for values in taken for path, value in values.items()}) or one
    for _ in range(rng.integers(0, 4)):
        mattering = [f for f in family.fields if f.matters(interface, spec)]
        field = mattering[rng.integers(len(mattering))]
        variants = list(field_variants(field, interface, spec, sparse=True))
        if variants:
            spec = variants[rng.integers(len(variants))][1]
    return spec


def evolve(
    fits: list[tuple[int, Family, Accumulator]], log: Log, rng: np.random.Generator, effort: int
) -> tuple[int, Family, Accumulator]:
    """Cross specifications, the best first, change them at random and let them descend; return the best one for `effort`
    products."""
    limit = log.effort.spent + effort
    best = fits[0]
    while best[0] and log.effort.spent < limit:
        few = _telling(log, best[2])
        herds = _herds([(few.wrong(spec), family, spec) for _, family, spec in fits])
        fits = [row for herd in _bred(herds, few, rng, limit) for row in herd]
        found = []
        for _, family, spec in fits[:FOLLOWED]:
            spec, wrong = descend(family, log, spec, sparse=True)
            found.append((wrong, family, spec))
        best = min([best, *found], key=lambda row: row[0])
        fits = [best, *found, *fits[FOLLOWED:]]
    return best


def _herds(fits: list[tuple[int, Family, Accumulator]]) -> list[list[tuple[int, Family, Accumulator]]]:
    """Return the populations: the best specifications of each of the best families, the best family first."""
    herds: dict[str, list[tuple[int, Family, Accumulator]]] = {}
    for row in sorted(fits, key=lambda row: row[0]):
        herd = herds.setdefault(row[1].name, [])
        if len(herd) < POPULATION and row[2] not in (spec for _, _, spec in herd):
            herd.append(row)
    return list(herds.values())[:CROSSED]


def _bred(herds: list[list], log: Log, rng: np.random.Generator, limit: int) -> list[list]:
    """Cross specifications within their families until one is better than all before, or the cost reaches `limit`."""
    fewest = herds[0][0][0]
    while herds[0][0][0] >= fewest and log.effort.spent < limit:
        herd = herds[int(len(herds) * rng.random() ** 2)]
        family = herd[0][1]
        one, other = (herd[int(len(herd) * rng.random() ** 2)][2] for _ in range(2))
        child = _crossed(family, log.interface, one, other, rng)
        child, left = _sweep(
            family, log, child, log.wrong(child), None, sparse=True, fields=list(rng.permutation(family.fields))
        )
        if (len(herd) < POPULATION or left <= herd[-1][0]) and child not in (spec for _, _, spec in herd):
            herd.append((left, family, child))
            herd.sort(key=lambda row: row[0])
            del herd[POPULATION:]
            herds.sort(key=lambda herd: herd[0][0])
    return herds


def _telling(log: Log, spec: Accumulator) -> Log:
    """Return the most informative answers: those that a specification misses, and some of all others."""
    missed = np.flatnonzero(log.differs(spec))[:MISSED]
    spread = np.linspace(0, log.size - 1, min(COARSE, log.size)).astype(int)
    return log.part(np.unique(np.concatenate([missed, spread])))


def _nearest(family: Family, log: Log) -> list[tuple[int, Accumulator]]:
    """Return for each shape of a family the starting point that misses fewest answers, the best first."""
    nearest: dict[tuple, tuple[int, Accumulator]] = {}
    for start in family.first(log.interface):
        wrong, shape = log.wrong(start, None, COARSE), tuple(value_of(start, path) for path in family.shape)
        if shape not in nearest or wrong < nearest[shape][0]:
            nearest[shape] = wrong, start
    return sorted(nearest.values(), key=lambda row: row[0])


def _informed(family: Family, log: Log, starts: list[Accumulator]) -> list[tuple[int, Accumulator]]:
    """Return the starting points, each also with fields fitted to dot products of at most one nonzero addend; the best first.

    A single addend shows how the result is rounded, what is flushed and what overflows; order and alignment have no effect on
    it.
    """
    alone = log.part(np.flatnonzero(log.batch.addends <= 1))
    found = list(starts)
    for spec in starts:
        for _ in range(2):
            spec, _ = _sweep(family, alone, spec, alone.wrong(spec), None, sparse=True)
        found.append(spec)
    return sorted(((log.wrong(spec, None, COARSE), spec) for spec in dict.fromkeys(found)), key=lambda row: row[0])


def _swept(log: Log, begun: list[tuple[int, int, Family, Accumulator]]) -> tuple[list, bool]:
    """Sweep each specification once, until one gives all answers; return the results, and whether the first of them gives
    all."""
    swept: list[tuple[int, Family, Accumulator]] = []
    for _, wrong, family, spec in sorted(begun, key=lambda row: row[:2]):
        found, left = _sweep(family, log, spec, wrong, COARSE, sparse=True)
        swept.append((left, family, found))
        if left == 0:
            found, wrong = descend(family, log, found)
            if wrong == 0:
                return [(0, family, found), *((log.wrong(s), f, s) for _, f, s in swept if f is not family)], True
    return swept, False


def fit(families: tuple[Family, ...], log: Log, progress=lambda text: None) -> list[tuple[int, Family, Accumulator]]:
    """Descend from the starting points of all families; return (wrong answers, family, specification), the best first.

    After the first :data:`FOLLOWED` entries, the counts cover only some answers.
    """
    nearest = {family.name: _nearest(family, log) for family in families}
    first = [(i, wrong, f, s) for f in families for i, (wrong, s) in enumerate(nearest[f.name][:FIRST])]
    swept, complete = _swept(log, first)
    if complete:
        return swept
    begun = []
    for family in families:
        starts = [spec for _, spec in nearest[family.name]]
        begun += [(i, wrong, family, spec) for i, (wrong, spec) in enumerate(_informed(family, log, starts))]
    more, complete = _swept(log, begun)
    if complete:
        return more
    return follow(swept + more, log, progress)


def follow(
    starts: list[tuple[int, Family, Accumulator]], log: Log, progress=lambda text: None
) -> list[tuple[int, Family, Accumulator]]:
    """Continue :func:`fit` from specifications that were swept."""
    swept = sorted(
        ((log.wrong(spec, None, COARSE), family, spec) for _, family, spec in starts), key=lambda row: row[0]
    )
    progress(
        f"{swept[0][1].name}: {swept[0][0]} of {min(COARSE, log.size)} answers left, the best of {len(swept)} starts"
    )
    done: list[tuple[int, Family, Accumulator]] = []
    for _, family, spec in swept[:FOLLOWED]:
        coarse, _ = descend(family, log, spec, COARSE, sparse=True)
        found, wrong = descend(family, log, coarse, sparse=True)
        done.append((wrong, family, found))
        if not wrong:
            break
    done.sort(key=lambda row: row[0])
    progress(f"{done[0][1].name}: {done[0][0]} of {log.size} answers left")
    return done + swept[FOLLOWED:]
