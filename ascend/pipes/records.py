"""This module defines the records of a simulation: phases with counts, stalls and optionally every operation's time.

Pictures and traces are made from :class:`Run`; :class:`ascend.pipes.simulate.Timeline` adds the methods for users.
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
    """`Stall` holds the cycles in which a pipe was idle for one reason, averaged over the simulated cores."""

    pipe: str
    reason: str
    cycles: float
    fraction: float  # share of the whole time


class Records(NamedTuple):
    """`Records` holds every operation of a phase in the order in which it left its pipe, as arrays of equal length."""

    start: np.ndarray  # cycles from the start of the phase
    end: np.ndarray
    core: np.ndarray
    operation: np.ndarray  # index into the phase's tables
    iteration: np.ndarray  # iteration of its loop


@dataclass(frozen=True)
class PhaseResult:
    """`PhaseResult` is the result of one phase, the time between two barriers of all cores."""

    name: str
    cycles: float
    cores: int  # number of simulated cores
    flat: FlatPhase = field(repr=False)
    op_count: np.ndarray = field(repr=False)
    op_busy: np.ndarray = field(repr=False)
    stalls: np.ndarray = field(repr=False)  # (pipes, flags)
    events: int = 0
    skipped: int = 0
    records: Records | None = field(default=None, repr=False)
    launch: float = 0.0  # cycles of the launch before the phase began

    @property
    def recorded(self) -> Records:
        """Return the records. Raises ValueError if the run has no records."""
        if self.records is None:
            raise ValueError(f"phase {self.name} was not recorded: simulate with record=True")
        return self.records

    def by_kind(self, values: np.ndarray) -> dict[str, float]:
        """Return the sum of a value over the operations of each kind."""
        sums: dict[str, float] = {}
        for kind, value in zip(self.flat.kinds, values.tolist(), strict=True):
            sums[kind] = sums.get(kind, 0) + value
        return sums


@dataclass(frozen=True)
class Run:
    """`Run` is a schedule that was simulated."""

    schedule: Kernel
    program: Program = field(repr=False)
    #: Phases in order: split (with more than one term), multiply, combine (with FIXPIPE).
    phases: tuple[PhaseResult, ...]

    @property
    def chip(self) -> Chip:
        """Return the chip that was simulated."""
        return self.schedule.placed_on

    @cached_property
    def cycles(self) -> float:
        """Return the cycles from the first operation to the last."""
        return sum(phase.launch + phase.cycles for phase in self.phases)

    @property
    def seconds(self) -> float:
        """Return the time in seconds at the chip's clock."""
        return self.cycles / self.chip.cycles_per_second

    @property
    def flops(self) -> float:
        """Return the FP32-equivalent FLOP/s: 2 m n k / t."""
        s = self.schedule
        return 2.0 * s.m * s.n * s.k / self.seconds

    @property
    def tflops(self) -> float:
        """Return the FP32-equivalent TFLOP/s."""
        return self.flops / 1e12

    @property
    def operations(self) -> int:
        """Return the number of operations of the simulated cores."""
        return int(sum(phase.op_count.sum() for phase in self.phases))
