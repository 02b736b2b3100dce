"""SMT solvers as a source of inputs that tell two specifications apart, and of proofs that there is none (extra `smt`)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...accumulators import Accumulator
from ..formal.encoding import Unencodable
from ..formal.queries import FormalVerdict, distinguishing_input
from ..formal.solvers import DEFAULT_MEMORY, chosen_backends
from ..formal.witnesses import Witness
from ..interface import DotBatch, Interface
from .fields import engine_of

#: Seconds of one question, and of all questions of one identification.
EACH, TOTAL = 10.0, 120.0
#: How a statement begins that needs no further evidence.
PROVED = "proved equal"


@dataclass
class Solver:
    """Asks solvers for the input on which two specifications part, and remembers what they answered.

    Parameters
    ----------
    timeout : float
        Seconds of one question.
    total : float
        Seconds of all questions of this object; what is asked later gets no answer.
    memory : int
        MiB for each solver; 0: no limit.
    backends : sequence of str, optional
        Of :data:`tensorcore_models.probing.formal.BACKENDS`; all that are installed by default.

    Raises
    ------
    NoSolver
        If one that is asked for, or every one, is not installed.
    ValueError
        If a solver is not known, or a limit is not positive.
    """

    timeout: float = EACH
    total: float = TOTAL
    memory: int = DEFAULT_MEMORY
    backends: Sequence[str] | None = None
    _statements: dict[frozenset[Accumulator], str] = field(default_factory=dict, init=False, repr=False)
    _spent: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self):
        if self.timeout <= 0 or self.total <= 0:
            raise ValueError(f"timeout is {self.timeout}, total {self.total}: both are seconds above 0")
        chosen_backends(self.backends)

    def __call__(self, interface: Interface, one: Accumulator, other: Accumulator) -> list[DotBatch]:
        """An input on which they differ, if the solvers find one in time.

        Raises
        ------
        Contradiction
            If a kernel or the reference disagrees with the encoding.
        """
        pair = frozenset((one, other))
        left = min(self.timeout, self.total - self._spent)
        if pair in self._statements or left <= 0:
            return []
        started = time.monotonic()
        engines = [engine_of(spec, interface) for spec in (one, other)]
        try:
            verdict = distinguishing_input(*engines, timeout=left, memory=self.memory, backends=self.backends)
        except Unencodable as error:
            self._statements[pair] = f"no solver was asked: {error}"
            return []
        finally:
            self._spent += time.monotonic() - started
        if verdict.witness is not None:
            return [_as_batch(interface, verdict.witness)]
        self._statements[pair] = _statement(verdict)
        return []

    def statement(self, one: Accumulator, other: Accumulator) -> str:
        """What the solvers say about a pair that they found no input for; empty if nothing."""
        return self._statements.get(frozenset((one, other)), "")


def _statement(verdict: FormalVerdict) -> str:
    if verdict.status == "none":
        restricted = f" where {' and '.join(verdict.assumptions)}" if verdict.assumptions else ""
        return f"{PROVED}{restricted} ({verdict.backend})"
    ended = {"timeout": "came to no end in time", "memory": "ran out of memory"}.get(verdict.status, "gave up")
    return f"the solvers {ended}"


def _as_batch(interface: Interface, witness: Witness) -> DotBatch:
    a, b, c, _ = interface.formats
    scales: tuple[np.ndarray, ...] = ()
    if interface.scale_format is not None:
        container = interface.scale_format.container
        scales = tuple(np.array([codes], container) for codes in (witness.scale_a, witness.scale_b))
    return DotBatch(
        np.array([witness.a], a.container),
        np.array([witness.b], b.container),
        np.array([witness.c], c.container),
        *scales,
    )
