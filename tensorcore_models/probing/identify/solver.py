"""Asks SMT solvers for inputs that separate two specifications, or for a proof that none exist (extra `smt`)."""

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

#: Time limit in seconds of one solver call.
EACH = 10.0
#: Time limit in seconds of all solver calls of one identification.
TOTAL = 120.0
#: Beginning of the statement of a proof.
PROVED = "proved equal"


@dataclass
class Solver:
    """`Solver` searches with SMT solvers for inputs that separate two specifications (it is a :data:`.challenge.Source`).

    It keeps the answer for each pair of specifications.

    Parameters
    ----------
    timeout : float
        Time limit in seconds of one solver call.
    total : float
        Time limit in seconds of all solver calls of this object together; after that no solver is called.
    memory : int
        MiB of memory for each solver; 0: no limit.
    backends : sequence of str, optional
        Solvers to call, from :data:`tensorcore_models.probing.formal.BACKENDS`; by default all installed solvers.

    Raises
    ------
    NoSolver
        If a requested solver, or every solver, is not installed.
    ValueError
        If a solver is unknown or a limit is not positive.
    """

    timeout: float = EACH
    total: float = TOTAL
    memory: int = DEFAULT_MEMORY
    backends: Sequence[str] | None = None
    _statements: dict[frozenset[Accumulator], str] = field(default_factory=dict, init=False, repr=False)
    _spent: float = field(default=0.0, init=False, repr=False)

    def __post_init__(self):
        if self.timeout <= 0 or self.total <= 0:
            raise ValueError(f"timeout is {self.timeout} and total {self.total} seconds; both must be above 0")
        chosen_backends(self.backends)

    def __call__(self, interface: Interface, one: Accumulator, other: Accumulator) -> list[DotBatch]:
        """Return an input on which the two specifications differ, if the solvers find one in time.

        Raises
        ------
        Contradiction
            If a kernel or the reference does not give the results that the encoding predicts.
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
        """Return the solvers' answer on two specifications that they could not separate.

        The string is empty if no solver was called for these specifications.
        """
        return self._statements.get(frozenset((one, other)), "")


def _statement(verdict: FormalVerdict) -> str:
    if verdict.status == "none":
        restricted = f" where {' and '.join(verdict.assumptions)}" if verdict.assumptions else ""
        return f"{PROVED}{restricted} ({verdict.backend})"
    ended = {"timeout": "came to no end in time", "memory": "ran out of memory"}.get(verdict.status, "gave up")
    return f"the solvers {ended}"


def _as_batch(interface: Interface, witness: Witness) -> DotBatch:
    scales: tuple[np.ndarray, ...] = ()
    if interface.scale_format is not None:
        container = interface.scale_format.container
        scales = tuple(np.array([codes], container) for codes in (witness.scale_a, witness.scale_b))
    given = zip((witness.a, witness.b, witness.c), interface.formats, strict=False)
    return DotBatch(*(np.array([codes], fmt.container) for codes, fmt in given), *scales)
