"""Identifies the specification of a black box in four steps.

1. The box is examined: it must answer, the same each time and at each position of a matrix (:mod:`.box`).
2. The box answers a pool of inputs of all kinds (:mod:`.inputs`). For each family, a search sets the fields of specifications,
   from many starting points, so that they give as many of these answers as possible (:mod:`.search`). Where the best one still
   misses answers, the box is asked more inputs like those (:mod:`.mutations`), and the search goes on.
3. The specification that gives all answers is challenged. Each other value of each of its fields makes a rival. The box is
   asked inputs on which the rivals give other results, until no pool has such inputs; then a search aims at each rival that
   remains (:mod:`.challenge`, :mod:`.aimed`). A rival that still remains is an open question, unless a rule proves that it
   gives the same results (:mod:`.equalities`).
4. Random inputs, and changes of them, try to refute the specification. If one does, it is shrunk, it and similar inputs are
   asked, and step 2 starts again.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ...accumulators import Accumulator
from ...results import Interrupted
from ..interface import Dot, DotBatch, is_nan
from ..shrinking import shrink
from .aimed import Aimed
from .box import Box, Fault, as_box, examine, refuse_trivial
from .challenge import Alternative, Source, challenge, plainest, refute, unwrapped
from .evidence import Counterexample, Evidence, OpenQuestion, equal_values, evidence_of, open_questions
from .fields import Family, engine_of, families_for, name_of, spec_text
from .inputs import pool
from .limits import FEW, Limits, limits_of
from .mutations import mutated
from .outcome import Identification, Nearest
from .search import Log, descend, differ, evolve, fit, follow, results

#: Number of inputs in the first pool.
FIRST_POOL = 2600
#: Number of refuted specifications after which a box counts as outside of the families.
ROUNDS = 40
#: Number of inputs similar to missed ones that are asked at once.
LIKE = 80
#: Number of times in a row that such inputs are asked.
GENERATIONS = 5
#: Most such inputs in one identification.
LIKE_IN_ALL = 4000
#: Number of families whose best specification is improved until no field helps, before the nearest one is reported.
POLISHED = 3
#: Most rounds in which a counter-example is shrunk.
SHRINK_ROUNDS = 25


class _Run:
    """`_Run` holds the state of one identification."""

    def __init__(
        self,
        box: Box,
        seed: int,
        vectors: int,
        sources: tuple[Source, ...],
        families: tuple[type[Accumulator], ...],
        limits: Limits,
        progress: Callable[[str], None],
    ):
        self.box, self.vectors, self.limits, self.progress = box, vectors, limits, progress
        self.sources: tuple[Source, ...] = (Aimed(seed=seed), *sources)
        self.rng = np.random.default_rng([seed, 1])
        self.families = families_for(box.interface, families)
        first = pool(box.interface, FIRST_POOL, self.rng, box.recorded)
        self.log = Log(box.interface, first, box.ask(first))
        self.fits: list[tuple[int, Family, Accumulator]] = []
        self.before_random: int | None = None
        self.like_missed = 0
        self.first = first.size
        refuse_trivial(box, first, self.log.answers)

    def fitted(self, family: Family | None, spec: Accumulator | None) -> tuple[int, Family, Accumulator]:
        """Return (missed answers, family, specification) of the best fit to the log.

        The search starts from `spec` if it is given.
        """
        if family is not None and spec is not None:
            self.ask_like_missed(spec)
            found, wrong = descend(family, self.log, spec)
            wrong, family, found = evolve([(wrong, family, found)], self.log, self.rng, self.limits.refit)
            if not wrong:
                return 0, family, found
        self.progress("looking for a specification")
        self.fits = fit(self.families, self.log, self.progress)
        wrong, family, spec = self.fits[0]
        if wrong and not self.log.any_nan and self._odd_nan(spec):
            self.log.forgive_nan()
            self.fits = follow(self.fits, self.log, self.progress)
            wrong, family, spec = self.fits[0]
        for _ in range(self.limits.renewed):
            if not wrong or not self.ask_like_missed(spec):
                break
            self.fits = sorted(((self.log.wrong(s), f, s) for _, f, s in self.fits), key=lambda row: row[0])
            before = wrong
            wrong, family, spec = self.crossed(self.limits.refit)
            if wrong >= before and not self.limits.patient:
                break
        last = self.limits.nearly if wrong <= FEW else self.limits.crossing
        if wrong and last:
            self.crossed(last)
        return self.fits[0]

    def crossed(self, effort: int) -> tuple[int, Family, Accumulator]:
        """Cross the best specifications; the best result becomes the first of `fits`."""
        self.progress("crossing the best specifications")
        self.fits.insert(0, evolve(self.fits, self.log, self.rng, effort))
        self.progress(f"{self.fits[0][1].name}: {self.fits[0][0]} of {self.log.size} answers left")
        return self.fits[0]

    def ask_like_missed(self, spec: Accumulator) -> bool:
        """Ask inputs that resemble those whose answers a specification misses, for several generations; return whether any were
        asked.

        If few answers are missed, it may be that no single change of a field gives more of them; among similar inputs there are
        some for which a single change does.
        """
        if self.box.recorded is not None:
            return False
        missed = self.log.batch.rows(self.log.differs(spec))
        for generation in range(GENERATIONS):
            if self.like_missed >= LIKE_IN_ALL or not missed.size:
                return generation > 0
            batch = mutated(self.box.interface, missed.rows(self.rng.integers(0, missed.size, LIKE)), self.rng)
            self.like_missed += LIKE
            self.log.add(batch, self.box.ask(batch))
            missed = DotBatch.joined([missed, batch.rows(self.log.differs(spec, slice(LIKE)))])
        return True

    def _odd_nan(self, spec: Accumulator) -> bool:
        """Return whether box and specification both return NaN on some input, with different encodings."""
        apart = self.log.differs(spec)
        found = results(spec, self.log.interface, self.log.batch.rows(apart))
        fmt = self.log.interface.formats[3]
        return bool((is_nan(found, fmt) & is_nan(self.log.answers[apart], fmt)).any())

    def identify(self) -> tuple[Family, Accumulator, list[Alternative] | None]:
        """Return (family, specification, remaining rivals); rivals are None if the box is outside of the families."""
        family: Family | None = None
        spec: Accumulator | None = None
        for _ in range(ROUNDS):
            wrong, family, spec = self.fitted(family, spec)
            if wrong:
                return family, spec, None
            rivals = challenge(self.box, family, self.log, spec, self.rng, self.sources, self.progress)
            if rivals is None:
                continue
            inner = unwrapped(self.box, self.log, spec, self.rng)
            if inner != spec:
                family, spec = self.family_of(family, inner), inner
                rivals = challenge(self.box, family, self.log, spec, self.rng, self.sources, self.progress)
                if rivals is None:
                    continue
            plain = plainest(self.box, family, self.log, spec, rivals, self.rng)
            if plain != spec:
                spec = plain
                rivals = challenge(self.box, family, self.log, spec, self.rng, self.sources, self.progress)
                if rivals is None:
                    continue
            self.before_random = self.box.queries if self.before_random is None else self.before_random
            refuting = refute(self.box, self.log, spec, self.vectors, self.rng, self.progress)
            if refuting is None:
                return family, spec, rivals
            if self.log.effort.spent > self.limits.total:
                self.log.add(refuting, self.box.ask(refuting))
                return family, spec, None
            self.progress("a random vector refutes it; shrinking")
            small = DotBatch.of([self.shrunk(spec, refuting.dot(0))])
            batch = DotBatch.joined([refuting, small]) if self.box.recorded is None else refuting
            self.log.add(batch, self.box.ask(batch))
        assert family is not None and spec is not None  # ROUNDS is positive
        return family, spec, None

    def family_of(self, family: Family, spec: Accumulator) -> Family:
        """Return the family under which a specification is reported, if this run searches it; else `family`."""
        name = name_of(family, spec)
        return next((known for known in self.families if known.name == name), family)

    def statement(self, one: Accumulator, other: Accumulator) -> str:
        """Return the sources' statement about two specifications that they could not separate."""
        said = (source.statement(one, other) for source in self.sources if hasattr(source, "statement"))
        return "; ".join(filter(None, said))

    def shrunk(self, spec: Accumulator, dot: Dot) -> Dot:
        """Return the simplest dot product, shrunk from `dot`, for which box and specification still differ."""
        if self.box.recorded is not None:
            return dot

        def apart(batch: DotBatch) -> np.ndarray:
            return differ(results(spec, self.box.interface, batch), self.box.ask(batch), self.log)

        return shrink(self.box.interface, apart, dot, SHRINK_ROUNDS)

    def nearest(self, spec: Accumulator) -> Nearest:
        """Return a specification with the number of answers that it misses in the first pool."""
        missed = self.log.differs(spec, slice(self.log.size - self.first, None))
        return Nearest(spec.simplest(), int(np.count_nonzero(missed)), self.first)

    def ranked(self) -> list[tuple[int, Family, Accumulator]]:
        """Return for each family the tried specification that misses fewest answers of the first pool.

        The best ones are improved.
        """
        first = self.log.part(np.arange(self.log.size - self.first, self.log.size))
        best: dict[str, tuple[int, Family, Accumulator]] = {}
        for spec, family in ({s: f for _, f, s in self.fits} | self.log.tried).items():
            name = name_of(family, spec)
            wrong = first.wrong(spec, best[name][0] + 1 if name in best else None)
            if name not in best or (wrong, _length(spec)) < (best[name][0], _length(best[name][2])):
                best[name] = wrong, family, spec
        ranking = sorted(best.values(), key=lambda row: row[0])
        for place, (_, family, spec) in enumerate(ranking[:POLISHED]):
            spec, wrong = descend(family, first, spec, sparse=True)
            ranking[place] = wrong, family, spec
        return sorted(ranking, key=lambda row: row[0])

    def known(self) -> str:
        """Return the best specification so far and its missed answers, as the message of an interrupted search."""
        best: Accumulator | None = None
        fewest = self.log.size + 1
        for spec in list(self.log.tried):
            wrong = self.log.wrong(spec, fewest)
            if wrong < fewest:
                best, fewest = spec, wrong
        asked = f"{self.log.size} answers"
        if best is None:
            return f"no specification was tried on the {asked} so far"
        return (
            f"{spec_text(best.simplest())}: {fewest} of the {asked} so far are not its own; reached: {len(self.log.tried)} "
            f"specifications, {self.box.vectors} random vectors"
        )

    def counterexample(self, spec: Accumulator) -> Counterexample:
        """Return a simple input for which box and specification differ: the input with fewest products, shrunk."""
        apart = np.flatnonzero(self.log.differs(spec))
        batch = self.log.batch.rows(apart)
        fewest = int(batch.products.argmin())
        small = DotBatch.of([self.shrunk(spec, batch.dot(fewest))])
        got = self.log.answers[apart[fewest]] if self.box.recorded is not None else self.box.ask(small)[0]
        return Counterexample.of(
            self.box.interface, small.dot(0), int(got), int(results(spec, self.box.interface, small)[0])
        )


def identify(
    unit: Any,
    *,
    vectors: int = 1_000_000,
    seed: int = 0,
    sources: tuple[Source, ...] = (),
    families: tuple[type[Accumulator], ...] = (),
    effort: str = "normal",
    progress: Callable[[str], None] = lambda text: None,
    **interface: Any,
) -> Identification:
    """Return the specification of an unknown matrix unit, found from products that it returns.

    Parameters
    ----------
    unit : Engine, Box or callable
        Black box; :func:`tensorcore_models.probing.identify.box.as_box` describes callables and their interface.
    vectors : int
        Number of random dot products on which the result is tested.
    seed : int
        Seed of all random choices; the same seed leads to the same dot products.
    sources : tuple of callables
        Further functions source(interface, one, other) -> batches, which return inputs that separate two specifications. They
        are called if the built-in search finds no such input. A :class:`tensorcore_models.probing.Solver` is such a source; its
        proofs that two values are equal are reported with the open questions.
    families : tuple of type
        Your own accumulator classes to search for; their method `searches` defines the search.
    effort : {"normal", "quick", "thorough"}
        Limit on the search. If no specification is found within it, the box counts as outside of the families
        (:data:`.limits.EFFORTS` lists the limits).
    progress : callable
        Function that is called with one line of text at a time.
    **interface
        Interface of a callable: a_format, b_format, c_format, d_format, k, scale_format, block_size, raw.

    Returns
    -------
    Identification
        Result, whose `engine` runs the specification; `engine` is None if the box is faulty or outside of the families.

    Raises
    ------
    TypeError, ValueError
        If `unit` is neither an engine, a box nor a callable; if formats or k are missing; or if the effort is unknown.
    Interrupted
        If the user presses Ctrl-C; the message has the best specification so far.
    """
    started = time.monotonic()
    box = as_box(unit, **interface)
    if vectors < 0:
        raise ValueError(f"vectors is {vectors}, expected 0 or more")
    limits = limits_of(effort)
    run: _Run | None = None
    try:
        examine(box, np.random.default_rng([seed, 0]))
        run = _Run(box, seed, vectors, sources, families, limits, progress)
        family, spec, rivals = run.identify()
        return _outcome(run, family, spec, rivals, time.monotonic() - started)
    except Fault as fault:
        seen = None if fault.batch is None else Counterexample.of(box.interface, fault.batch.dot(0), None, None)
        return Identification(
            label=box.label, interface=box.interface, fault=f"{fault.kind}: {fault.message}", counterexample=seen,
            queries=box.queries, vectors=box.vectors, seconds=time.monotonic() - started,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise Interrupted("the box was being examined" if run is None else run.known()) from None


def _length(spec: Accumulator) -> int:
    """Return the length of a specification as text; of two that miss equally many answers, the shorter one is reported."""
    return len(spec_text(spec.simplest()))


def _outcome(
    run: _Run, family: Family, spec: Accumulator, rivals: list[Alternative] | None, seconds: float
) -> Identification:
    box = run.box
    evidence: tuple[Evidence, ...] = ()
    questions: tuple[OpenQuestion, ...] = ()
    same: tuple[OpenQuestion, ...] = ()
    counterexample: Counterexample | None = None
    if rivals is not None:
        evidence = evidence_of(family, run.log, spec)
        questions = open_questions(run.log, spec, rivals, run.statement)
        same = equal_values(spec, rivals)
        others = _others(run, name_of(family, spec))
    else:
        (_, family, spec), *ranking = run.ranked()
        others = tuple(run.nearest(other) for _, _, other in ranking)
        counterexample = run.counterexample(spec)
    return Identification(
        label=box.label, interface=box.interface, seconds=seconds, family=name_of(family, spec),
        engine=None if rivals is None else engine_of(spec.simplest(), box.interface),
        nearest=run.nearest(spec),
        others=others,
        evidence=evidence, open_questions=questions, equal_values=same, counterexample=counterexample, any_nan=run.log.any_nan,
        queries=box.queries, queries_before_random=box.queries if run.before_random is None else run.before_random,
        vectors=box.vectors,
    )  # fmt: skip


def _others(run: _Run, identified: str) -> tuple[Nearest, ...]:
    """Return for each other family that was searched the specification that misses fewest answers."""
    best: dict[str, Nearest] = {}
    for _, family, spec in run.fits:
        name, found = name_of(family, spec), run.nearest(spec)
        if name != identified and (name not in best or found.wrong < best[name].wrong):
            best[name] = found
    return tuple(sorted(best.values(), key=lambda nearest: nearest.wrong))
