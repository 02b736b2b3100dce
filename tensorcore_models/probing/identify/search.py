"""Finds the specification of a family that gives the answers of a log: descent over fields, then over pairs of fields."""

from dataclasses import dataclass, field

import numpy as np

from ...accumulators import Accumulator
from ..interface import DotBatch, Interface
from .box import model_answer
from .families import Family, engine_of

#: Answers that are compared in one go; a specification is given up as soon as it is worse than the best one.
CHUNKS = (96, 400, 1600)
#: Answers of the first, coarse descent.
COARSE = 500
#: Starting points of a family that are followed; results that are followed to their end.
FOLLOWED_STARTS, FOLLOWED, DETOURED = 6, 4, 3
#: A family whose first start ends this many times farther off than the best one is left.
FAR = 3
#: Detours: wrong answers that are looked at, fields changed, specifications kept, and how much worse these may be.
MISSED, DETOUR_LENGTH, BEAM, SLACK = 200, 3, 8, 120
REMEMBERED = 40_000


@dataclass
class Log:
    """What has been asked and what the box answered.

    Parameters
    ----------
    interface : Interface
    batch : DotBatch
    answers : ndarray
    any_nan : bool
        Any two NaN count as equal.
    """

    interface: Interface
    batch: DotBatch
    answers: np.ndarray
    any_nan: bool = False
    _counts: dict = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """Dot products asked."""
        return self.batch.size

    def add(self, batch: DotBatch, answers: np.ndarray) -> None:
        """Remember answers, the newest first: they are what the specifications at hand got wrong."""
        self.batch = DotBatch.joined([batch, self.batch])
        self.answers = np.concatenate([answers, self.answers])
        self._counts.clear()

    def differs(self, spec: Accumulator, part: slice | np.ndarray = slice(None)) -> np.ndarray:
        """Which of the answers a specification does not give."""
        return differ(results(spec, self.interface, self.batch.rows(part)), self.answers[part], self)

    def forgive_nan(self) -> None:
        """From now on any two NaN count as equal."""
        self.any_nan = True
        self._counts.clear()

    def part(self, rows: np.ndarray) -> "Log":
        """Some of the answers."""
        return Log(self.interface, self.batch.rows(rows), self.answers[rows], self.any_nan)

    def wrong(self, spec: Accumulator, limit: int | None = None, size: int | None = None) -> int:
        """Answers among the first `size` that a specification does not give; counting ends at `limit`."""
        size = self.size if size is None else min(size, self.size)
        key = spec, size
        known = self._counts.get(key)
        if known is not None:
            return known
        total = start = 0
        ends = [end for end in CHUNKS if end < size] + [size]
        for end in ends:
            total += int(np.count_nonzero(self.differs(spec, slice(start, end))))
            start = end
            if limit is not None and total >= limit:
                return total
        if len(self._counts) > REMEMBERED:
            self._counts.clear()
        self._counts[key] = total
        return total


def results(spec: Accumulator, interface: Interface, batch: DotBatch) -> np.ndarray:
    """What a specification gives for dot products."""
    return model_answer(engine_of(spec, interface))(batch)


def is_nan(bits: np.ndarray, interface: Interface) -> np.ndarray:
    """Which encodings of the result's format are NaN."""
    fmt = interface.formats[3]
    if not fmt.has_inf:
        return np.zeros(bits.shape, bool)
    return (bits & fmt.container.type(fmt.magnitude_mask)) > fmt.container.type(fmt.inf_bits)


def differ(found: np.ndarray, wanted: np.ndarray, log: Log) -> np.ndarray:
    """Where results differ; NaN as the log says."""
    apart = found != wanted
    if log.any_nan and apart.any():
        apart &= ~(is_nan(found, log.interface) & is_nan(wanted, log.interface))
    return apart


def _sweep(family: Family, log: Log, spec: Accumulator, wrong: int, size: int | None) -> tuple[Accumulator, int]:
    """Each field set to its best value, one after the other."""
    for one in family.fields:
        if not wrong:
            break
        if not one.matters(log.interface, spec):
            continue
        for _, other in one.variants(log.interface, spec):
            found = log.wrong(other, wrong, size)
            if found < wrong:
                spec, wrong = other, found
    return spec, wrong


def _detours(family: Family, log: Log, spec: Accumulator, wrong: int) -> tuple[Accumulator, int]:
    """A better specification behind worse ones: several fields changed, the most promising changes followed."""
    missed = np.flatnonzero(log.differs(spec))[:MISSED]
    spread = np.linspace(0, log.size - 1, min(COARSE, log.size)).astype(int)
    few, hard = log.part(np.unique(np.concatenate([missed, spread]))), log.part(missed)
    best = few.wrong(spec)
    frontier, seen = [spec], {spec}
    for _ in range(DETOUR_LENGTH):
        found: list[tuple[int, int, int, Accumulator]] = []
        for present in frontier:
            for _, _, other in family.variants(log.interface, present):
                if other not in seen:
                    seen.add(other)
                    found.append((few.wrong(other, best + SLACK), len(found), hard.wrong(other), other))
        found.sort(key=lambda row: row[:2])
        # What mends the missed answers may break others, which the next change mends; what changes little may lead on, too.
        mending = sorted(found, key=lambda row: (row[2], row[0], row[1]))
        frontier = [row[3] for row in dict.fromkeys([*found[:BEAM], *mending[:BEAM]])]
        for left, _, _, other in found[:BEAM]:
            if left < best:
                better, total = _sweep(family, log, other, log.wrong(other), None)
                if total < wrong:
                    return better, total
    return spec, wrong


def descend(
    family: Family, log: Log, spec: Accumulator, size: int | None = None, *, detours: bool = False
) -> tuple[Accumulator, int]:
    """The specification to which single changes of fields lead, and how many answers it does not give.

    Parameters
    ----------
    family : Family
    log : Log
    spec : Accumulator
        Where to start.
    size : int, optional
        Answers that are looked at; all by default.
    detours : bool
        Where no single change helps, look behind changes that do not help by themselves.
    """
    wrong = log.wrong(spec, None, size)
    while wrong:
        before = wrong
        spec, wrong = _sweep(family, log, spec, wrong, size)
        if wrong == before and detours:
            spec, wrong = _detours(family, log, spec, wrong)
        if wrong == before:
            break
    return spec, wrong


def fit(families: tuple[Family, ...], log: Log, progress=lambda text: None) -> list[tuple[int, Family, Accumulator]]:
    """The best specifications that the families have for the answers of a log, best first.

    Returns
    -------
    list of (wrong answers, family, specification)
    """
    begun = []
    for family in families:
        starts = [(log.wrong(spec, None, COARSE), i, spec) for i, spec in enumerate(family.first(log.interface))]
        starts.sort(key=lambda row: row[:2])
        begun += [(rank, wrong, family, spec) for rank, (wrong, _, spec) in enumerate(starts[:FOLLOWED_STARTS])]
    begun.sort(key=lambda row: row[:2])  # each family's best start first
    swept: list[tuple[int, Family, Accumulator]] = []
    for _, wrong, family, spec in begun:
        reached = [left for left, other, _ in swept if other is family]
        if reached and min(reached) > FAR * swept[0][0]:
            continue
        found, left = _sweep(family, log, spec, wrong, COARSE)
        swept.append((left, family, found))
        swept.sort(key=lambda row: row[0])
        progress(f"{family.name}: {left} of {min(COARSE, log.size)} answers left")
        if left == 0:
            found, wrong = descend(family, log, found)
            if wrong == 0:
                return [(0, family, found), *((log.wrong(s), f, s) for _, f, s in swept if f is not family)]
    done: list[tuple[int, Family, Accumulator]] = []
    for _, family, spec in swept[:FOLLOWED]:
        coarse, _ = descend(family, log, spec, COARSE)
        found, wrong = descend(family, log, coarse)
        done.append((wrong, family, found))
        progress(f"{family.name}: {wrong} of {log.size} answers left")
        if not wrong:
            break
    done.sort(key=lambda row: row[0])
    for wrong, family, spec in done[:DETOURED]:
        if done[0][0] == 0 or wrong > FAR * done[0][0]:
            break
        found, left = descend(family, log, spec, detours=True)
        done = sorted([(left, family, found), *done], key=lambda row: row[0])
        progress(f"{family.name}, by detours: {left} of {log.size} answers left")
    return done
