"""Lemmas: statements that a solver, or an enumeration, proves; docs/proofs.md says what follows from them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.terms import Term
from tensorcore_models.probing.formal.solvers import solve


@dataclass(frozen=True)
class Goal:
    """A statement over bit-vectors: where all premises hold, so does the conclusion."""

    premises: tuple[Term, ...]
    conclusion: Term


@dataclass(frozen=True)
class Lemma:
    """One lemma."""

    name: str
    statement: str  #: What it says, in words.
    goal: Callable[[], Goal] | None = None  #: () -> Goal, for a solver.
    check: Callable[[], bool] | None = None  #: () -> bool, an enumeration of all cases.


@dataclass(frozen=True)
class Proof:
    """The outcome of a lemma."""

    lemma: Lemma
    status: Literal["proved", "refuted", "timeout", "memory", "unknown"]
    counterexample: dict[str, int]  #: Values of the free variables where it is refuted.
    backend: str  #: The solver that answered, "enumeration" or "folding".
    seconds: float


def prove(lemma: Lemma, *, timeout: float = 600.0) -> Proof:
    """Try to prove a lemma; the limit as for :func:`tensorcore_models.probing.formal.solvers.solve`."""
    start = time.monotonic()
    if lemma.check is not None:
        status: Literal["proved", "refuted"] = "proved" if lemma.check() else "refuted"
        return Proof(lemma, status, {}, "enumeration", time.monotonic() - start)
    if lemma.goal is None:
        raise ValueError(f"lemma {lemma.name} has neither a goal nor a check")
    goal = lemma.goal()
    assertions = [*goal.premises, t.negation(goal.conclusion)]
    free = [x for x in t.in_order(assertions) if x.op == "var"]
    answer = solve(assertions, free, timeout=timeout)
    outcome = {"unsat": "proved", "sat": "refuted"}.get(answer.status, answer.status)
    return Proof(lemma, outcome, answer.model, answer.backend, time.monotonic() - start)  # type: ignore[arg-type]
