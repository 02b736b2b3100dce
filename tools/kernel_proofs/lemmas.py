"""This module defines lemmas: statements that a solver or an enumeration proves; docs/proofs.md says what follows from them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.terms import Term
from tensorcore_models.probing.formal.solvers import solve


@dataclass(frozen=True)
class Goal:
    """`Goal` is a statement over bit-vectors: if all premises hold, so does the conclusion."""

    premises: tuple[Term, ...]
    conclusion: Term


@dataclass(frozen=True)
class Lemma:
    """`Lemma` is a statement with its goal or its check."""

    name: str
    statement: str  #: statement in words
    goal: Callable[[], Goal] | None = None  #: function that returns the Goal for a solver
    check: Callable[[], bool] | None = None  #: function that enumerates all cases and returns a bool


@dataclass(frozen=True)
class Proof:
    """`Proof` is the outcome of a lemma."""

    lemma: Lemma
    status: Literal["proved", "refuted", "timeout", "memory", "unknown"]
    counterexample: dict[str, int]  #: values of the free variables if the lemma is refuted
    backend: str  #: solver that answered, "enumeration" or "folding"
    seconds: float


def prove(lemma: Lemma, *, timeout: float = 600.0) -> Proof:
    """Try to prove a lemma, with the limit of :func:`tensorcore_models.probing.formal.solvers.solve`."""
    start = time.monotonic()
    if lemma.check is not None:
        status: Literal["proved", "refuted"] = "proved" if lemma.check() else "refuted"
        return Proof(lemma, status, {}, "enumeration", time.monotonic() - start)
    if lemma.goal is None:
        raise ValueError(f"lemma {lemma.name} has neither a goal nor a check: give one of them")
    goal = lemma.goal()
    assertions = [*goal.premises, t.negation(goal.conclusion)]
    free = [x for x in t.in_order(assertions) if x.op == "var"]
    answer = solve(assertions, free, timeout=timeout)
    outcome = {"unsat": "proved", "sat": "refuted"}.get(answer.status, answer.status)
    return Proof(lemma, outcome, answer.model, answer.backend, time.monotonic() - start)  # type: ignore[arg-type]
