"""Describes the limits of a question to the solvers, once for all questions."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

from ...bitvectors.terms import Term
from .solvers import DEFAULT_MEMORY, DEFAULT_TIMEOUT, Answer, solve


class LimitOptions(TypedDict, total=False):
    """`LimitOptions` are keyword arguments of every question.

    A limit that is reached is an answer, which the verdict's status names.
    """

    timeout: float  # seconds of wall time of the whole call, including the building of terms; 60 by default
    memory: int  # MiB of address space for each solver; 8192 by default, 0: no limit
    backends: Sequence[str] | None  # solvers of :data:`~.solvers.BACKENDS`; None: all installed solvers


@dataclass(frozen=True)
class SolverLimits:
    """`SolverLimits` holds the limits of one question, from its start."""

    timeout: float = DEFAULT_TIMEOUT
    memory: int = DEFAULT_MEMORY
    backends: Sequence[str] | None = None
    start: float = field(default_factory=time.monotonic, init=False)

    def solve(self, assertions: Iterable[Term], wanted: Iterable[Term], share: float) -> Answer:
        """Return the solvers' answer, found within the given share of the time."""
        left = self.timeout - self.seconds
        if left <= 0:
            return Answer("timeout")
        allowed = min(left, max(share * self.timeout, 0.05))
        return solve(assertions, wanted, timeout=allowed, memory=self.memory, backends=self.backends)

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.start
