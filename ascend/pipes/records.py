"""Records of a simulation: phases with their counts, stalls and, where asked for, every operation's time.

:class:`Run` is what pictures and traces are made from; :class:`ascend.pipes.simulate.Timeline` adds the questions that
people ask of it.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ascend.chips.chip import Chip
from ascend.kernels.base import Kernel
from ascend.pipes.arrays import FlatPhase
from ascend.programs.program import Program


class Stall(NamedTuple):
    """Cycles that a pipe was idle for one reason (averaged over the simulated cores)."""

    pipe: str
    reason: str
    cycles: float
    fraction: float  # of the whole time


class Records(NamedTuple):
    """Every operation of a phase in the order in which it left its pipe: arrays of equal length."""

    start: np.ndarray  # cycles from the start of the phase
    end: np.ndarray
    core: np.ndarray
    operation: np.ndarray  # index into the phase's tables
    iteration: np.ndarray  # of its loop


@dataclass(frozen=True)
class PhaseResult:
    """One phase: the time between two barriers of all cores."""

    name: str
    cycles: float
    cores: int  # simulated
    flat: FlatPhase = field(repr=False)
    op_count: np.ndarray = field(repr=False)
    op_busy: np.ndarray = field(repr=False)
    stalls: np.ndarray = field(repr=False)  # (pipes, flags)
    events: int = 0
    skipped: int = 0
    records: Records | None = field(default=None, repr=False)
    launch: float = 0.0  # cycles before it began

    @property
    def recorded(self) -> Records:
        """The records. Raises ValueError for a run without."""
        if self.records is None:
            raise ValueError(f"phase {self.name} was not recorded: simulate with record=True")
        return self.records

    def by_kind(self, values: np.ndarray) -> dict[str, float]:
        """Return the sum of one value of each operation over the operations of a kind."""
        sums: dict[str, float] = {}
        for kind, value in zip(self.flat.kinds, values.tolist(), strict=True):
            sums[kind] = sums.get(kind, 0) + value
        return sums


@dataclass(frozen=True)
class Run:
    """A schedule that was simulated."""

    schedule: Kernel
    program: Program = field(repr=False)
    phases: tuple[PhaseResult, ...]  #: In order: split (with more than one term), multiply, combine (behind FIXPIPE).

    @property
    def chip(self) -> Chip:
        """The chip that was simulated."""
        return self.schedule.placed_on

    @cached_property
    def cycles(self) -> float:
        """Cycles from the first operation to the last."""
        return sum(phase.launch + phase.cycles for phase in self.phases)

    @property
    def seconds(self) -> float:
        """Time at the chip's clock."""
        return self.cycles / self.chip.cycles_per_second

    @property
    def flops(self) -> float:
        """FP32-equivalent FLOP/s: 2 m n k / t."""
        s = self.schedule
        return 2.0 * s.m * s.n * s.k / self.seconds

    @property
    def tflops(self) -> float:
        """FP32-equivalent TFLOP/s."""
        return self.flops / 1e12

    @property
    def operations(self) -> int:
        """All operations of the simulated cores."""
        return int(sum(phase.op_count.sum() for phase in self.phases))
