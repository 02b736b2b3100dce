"""The timing interpreter of a tile schedule: pipes, flags, buffers, shared memory bandwidth, waves.

:func:`simulate` runs the operations of :mod:`ascend.pipes.program` on the compiled simulator. By default it runs one core,
which has a static share of the memory bandwidth, and skips what repeats itself; `all_cores` runs every core event by
event with the bandwidth shared as the transfers really coincide.

What the numbers mean: FLOP/s are FP32-equivalent, 2 m n k / t, as in the paper's section 6.1; cycles are of the chip's
clock; the cube's utilisation counts only cycles of cube steps, not heads or losses.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np

from ascend._kernels.pipes import PipeEngine
from ascend.blocking import Blocking, Buffering
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.pipes.arrays import FlatPhase, flatten, new_state
from ascend.pipes.program import CUBE, FLAGS, MTE2, PIPES, Phase, Program
from ascend.pipes.build import build_program
from ascend.schedule import Mode, TileSchedule, build_schedule

#: ``pipelined``: a pipe starts its next transfer while the last one's latency passes; ``serial``: it waits.
LatencyMode = Literal["pipelined", "serial"]
#: Operations between two looks at the keyboard.
SLICE = 1_000_000
#: Records kept at most: one is 40 bytes.
MOST_RECORDS = 20_000_000


class Stall(NamedTuple):
    """Cycles that a pipe stood still for one reason (averaged over the simulated cores)."""

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

    @property
    def recorded(self) -> Records:
        """The records.

        Raises
        ------
        ValueError
            For a run without.
        """
        if self.records is None:
            raise ValueError(f"phase {self.name} was not recorded: simulate with record=True")
        return self.records

    def by_kind(self, values: np.ndarray) -> dict[str, float]:
        """Sum of one value of each operation over the operations of a kind."""
        sums: dict[str, float] = {}
        for kind, value in zip(self.flat.kinds, values.tolist(), strict=True):
            sums[kind] = sums.get(kind, 0) + value
        return sums


@dataclass(frozen=True)
class Timeline:
    """What a schedule does in time.

    Attributes
    ----------
    schedule, program
        What was run.
    phases : tuple of PhaseResult
        In order: split (with more than one term), multiply, combine (behind FIXPIPE).
    """

    schedule: TileSchedule
    program: Program = field(repr=False)
    phases: tuple[PhaseResult, ...]
    options: dict = field(repr=False, default_factory=dict)

    @property
    def chip(self) -> Chip:
        """The chip that was simulated."""
        return self.schedule.placed_on

    @cached_property
    def cycles(self) -> float:
        """Cycles from the first operation to the last."""
        return sum(phase.cycles for phase in self.phases)

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

    @cached_property
    def utilization(self) -> dict[str, float]:
        """Busy fraction of each pipe over the whole time, averaged over the simulated cores."""
        busy = dict.fromkeys(PIPES, 0.0)
        for phase in self.phases:
            for pipe, cycles in zip(phase.flat.op_pipe.tolist(), phase.op_busy.tolist(), strict=True):
                busy[PIPES[pipe]] += cycles / phase.cores
        return {pipe: cycles / self.cycles for pipe, cycles in busy.items()}

    @cached_property
    def cube_efficiency(self) -> float:
        """Cycles of cube steps divided by all cycles of all the chip's cores: 1 at the peak."""
        return self.schedule.cube_steps() / (self.cycles * self.chip.cores)

    @cached_property
    def stalls(self) -> list[Stall]:
        """Every pipe's idle cycles by what it waited for, longest first.

        "the end of the phase" is the time after a pipe's last operation; the sum over a pipe's reasons and its busy
        cycles is the whole time.
        """
        totals: dict[tuple[str, str], float] = {}
        reasons = list(FLAGS.values())
        for phase in self.phases:
            busy = np.bincount(phase.flat.op_pipe, phase.op_busy, len(PIPES)) / phase.cores
            waits = phase.stalls / phase.cores
            for pipe, flag in zip(*np.nonzero(waits), strict=True):
                key = (PIPES[pipe], reasons[flag])
                totals[key] = totals.get(key, 0.0) + float(waits[pipe, flag])
            for pipe in range(len(PIPES)):
                rest = phase.cycles - busy[pipe] - waits[pipe].sum()
                used = busy[pipe] > 0
                key = (PIPES[pipe], "the end of the phase" if used else f"nothing to do ({phase.name})")
                if rest > 1e-6 * phase.cycles:
                    totals[key] = totals.get(key, 0.0) + float(rest)
        rows = [Stall(pipe, reason, cycles, cycles / self.cycles) for (pipe, reason), cycles in totals.items()]
        return sorted(rows, key=lambda row: -row.cycles)

    @cached_property
    def bytes(self) -> dict[str, float]:
        """Bytes moved by each kind of operation as simulated, over all simulated cores."""
        sums: dict[str, float] = {}
        for phase in self.phases:
            for kind, value in phase.by_kind(phase.op_count * phase.flat.op_bytes).items():
                sums[kind] = sums.get(kind, 0) + value
        return sums

    @property
    def events(self) -> int:
        """Operations placed in time one by one (those skipped in steady state not among them)."""
        return sum(phase.events for phase in self.phases)

    @property
    def operations(self) -> int:
        """All operations of the simulated cores."""
        return int(sum(phase.op_count.sum() for phase in self.phases))

    def recorded(self) -> "Timeline":
        """The same run with every operation of core 0 recorded; itself if it already is."""
        if all(phase.records is not None for phase in self.phases):
            return self
        return run_program(self.program, **{**self.options, "all_cores": False, "record": True})

    def occupancy(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Bytes in use of each buffer over time.

        Returns
        -------
        dict
            Buffer name ("L1 A", "L1 B", "L0A", "L0B", "L0C", "UB in", "UB out") to (cycles, bytes): from each cycle on
            that many bytes are in use, in whole slots.
        """
        from ascend.pipes.trace import occupancy

        return occupancy(self.recorded())

    def to_trace(self, path, most_operations: int = 100_000) -> None:
        """Write a Chrome/Perfetto trace (see :func:`ascend.pipes.trace.write_trace`).

        Parameters
        ----------
        path : path
        most_operations : int
            Operations in the file at most.
        """
        from ascend.pipes.trace import write_trace

        write_trace(self.recorded(), path, most_operations)

    def to_dict(self) -> dict:
        """Plain data for JSON."""
        s = self.schedule
        return {
            "chip": self.chip.name,
            "m": s.m, "k": s.k, "n": s.n,
            "block": [s.blocking.bm, s.blocking.bk, s.blocking.bn],
            "n_fused": s.n_fused, "k_groups": len(s.k_groups), "waves": s.waves,
            "terms": s.terms, "mode": s.mode, "buffering": s.buffering, "operand": s.operand,
            "cycles": self.cycles, "seconds": self.seconds, "tflops": self.tflops,
            "cube_efficiency": self.cube_efficiency,
            "phases": {phase.name: phase.cycles for phase in self.phases},
            "utilization": self.utilization,
            "stalls": [row._asdict() for row in self.stalls],
            "bytes": self.bytes, "operations": self.operations, "events": self.events,
        }  # fmt: skip


def simulate(
    b: Blocking,
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    terms: int = 3,
    buffering: Buffering = "double",
    mode: Mode = "termwise",
    *,
    operand: str = "fp16",
    reseed_l0c: bool = False,
    n_fused: int | None = None,
    include_split: bool = True,
    all_cores: bool = False,
    record: bool = False,
    latency: LatencyMode = "pipelined",
    steady_state: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Timeline:
    """Simulate the schedule of C = A B (A m x k, B k x n) in blocks `b` on a chip.

    Parameters
    ----------
    b, m, k, n, chip, terms, buffering, mode, operand, reseed_l0c, n_fused
        The schedule, see :func:`ascend.schedule.build_schedule`.
    include_split : bool
        Count the pass that splits A and B into FP16 words.
    all_cores : bool
        Every core event by event instead of one representative core.
    record : bool
        Keep every operation (for traces, occupancy, Gantt charts); nothing is skipped then.
    latency : {"pipelined", "serial"}
        Whether a pipe goes on while the latency of a memory transfer passes.
    steady_state : bool
        Skip whole repetitions once the state repeats (one core only; exact up to rounding).
    progress : callable, optional
        Called with the number of operations simulated so far, about once in a million.

    Returns
    -------
    Timeline

    Raises
    ------
    ValueError
        For a schedule that cannot be built, or too many operations to record.
    """
    schedule = build_schedule(m, n, k, b, get_chip(chip), terms, buffering, mode, reseed_l0c, operand, n_fused)
    return run_program(
        build_program(schedule, include_split), all_cores=all_cores, record=record, latency=latency,
        steady_state=steady_state, progress=progress,
    )  # fmt: skip


def run_program(
    program: Program,
    *,
    all_cores: bool = False,
    record: bool = False,
    latency: LatencyMode = "pipelined",
    steady_state: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Timeline:
    """As :func:`simulate`, for a program that is there already.

    Parameters
    ----------
    program : Program
    all_cores, record, latency, steady_state, progress
        As for :func:`simulate`.

    Raises
    ------
    ValueError
        If `latency` is unknown, the schedule has no chip, or there are too many operations to record.
    """
    if latency not in ("pipelined", "serial"):
        raise ValueError(f"latency is 'pipelined' or 'serial', got {latency!r}")
    options = {"all_cores": all_cores, "latency": latency, "steady_state": steady_state}
    results: list[PhaseResult] = []

    def report(events: int) -> None:
        if progress:
            progress(sum(result.events for result in results) + events)

    for phase in program.phases:
        results.append(_run_phase(program, phase, all_cores, record, latency, steady_state, report))
    return Timeline(program.schedule, program, tuple(results), options)


def channel_rates(chip: Chip) -> tuple[float, float, float]:
    """Bytes a cycle that one core's own path to memory carries: reads, writes, FIXPIPE."""
    return (chip.l2_read_rate, chip.ub_to_ddr_rate, chip.fixpipe_rate)


def _run_phase(
    program: Program, phase: Phase, all_cores: bool, record: bool, latency: str, steady_state: bool,
    report: Callable[[int], None],
) -> PhaseResult:  # fmt: skip
    chip = program.schedule.placed_on
    flat = flatten(phase, all_cores)
    operations = len(flat.kinds)
    sums = (np.zeros(operations), np.zeros(operations), np.zeros(len(PIPES) * len(FLAGS)))
    records = _record_arrays(_operation_count(phase, all_cores)) if record else None
    engine = PipeEngine(
        flat, sums, new_state(flat, program.initial_flags), records, capacity=chip.hbm_bytes_per_cycle,
        channel_rates=channel_rates(chip), serial_latency=latency == "serial", steady_state=steady_state,
        reference_pipe=CUBE if CUBE in flat.op_pipe else MTE2,
    )  # fmt: skip
    engine.begin()
    while engine.run(SLICE):
        report(engine.events)
    stuck = engine.unfinished()
    if stuck:
        core, pipe = stuck[0]
        flag = engine.blocked_on(core, pipe)
        raise RuntimeError(f"deadlock: core {core}, {PIPES[pipe]} waits for {list(FLAGS.values())[flag]}")
    kept = Records(*(array[: engine.records] for array in records)) if records else None
    return PhaseResult(
        phase.name, engine.end_time(), len(flat.core_first_loop), flat, sums[0], sums[1],
        sums[2].reshape(len(PIPES), len(FLAGS)), engine.events, engine.skipped, kept,
    )  # fmt: skip


def _operation_count(phase: Phase, all_cores: bool) -> int:
    """Operations of the simulated cores."""
    counts = [
        sum(loop.iterations * sum(len(s.template) * s.repeats for s in loop.segments) for loop in program)
        for program in phase.programs
    ]
    cores = phase.program_of_core if all_cores else phase.program_of_core[:1]
    return sum(counts[number] for number in cores)


def _record_arrays(count: int) -> tuple[np.ndarray, ...]:
    if count > MOST_RECORDS:
        raise ValueError(
            f"{count} operations are too many to record (at most {MOST_RECORDS}): take a smaller size or a larger block"
        )
    return (
        np.zeros(count), np.zeros(count), np.zeros(count, np.int32), np.zeros(count, np.int32), np.zeros(count, np.int64)
    )  # fmt: skip
