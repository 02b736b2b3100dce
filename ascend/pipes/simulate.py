"""This module times a tile schedule by simulating pipes, flags, buffers, shared memory bandwidth and waves.

:func:`simulate` runs the operations of :mod:`ascend.programs.program` on the compiled simulator. By default it runs one
core, which has a static share of the memory bandwidth, and skips repetitions in steady state. With `all_cores` it runs
every core event by event and shares the bandwidth among the transfers that coincide.

FLOP/s are FP32-equivalent, 2 m n k / t, as in the paper's section 6.1. Cycles are cycles of the chip's clock. The
cube's utilisation counts cycles of cube steps only, without heads or losses.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, cast

import numpy as np

from ascend._kernels.pipes import PipeEngine
from ascend.kernels.base import Kernel
from ascend.pipes.arrays import flatten, new_state
from ascend.pipes.build import QUEUED_BLOCKS, L2Model, build_program
from ascend.pipes.records import PhaseResult, Records, Run, Stall
from ascend.programs.program import CUBE, FLAGS, MTE2, PIPES, Phase, Program
from ascend.tile_schedule import TileSchedule
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

#: ``pipelined``: a pipe starts its next transfer during the latency of the last one; ``serial``: it waits.
LatencyMode = Literal["pipelined", "serial"]
#: Operations between two checks for a keyboard interrupt.
SLICE = 1_000_000
#: Limit on the number of records; a record is 40 bytes.
MOST_RECORDS = 20_000_000


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class Timeline(Result, Run):
    """`Timeline` is the simulated timing of a schedule: cycles, pipe utilisation, stalls, and the options of the run."""

    options: dict = field(repr=False, default_factory=dict)

    @cached_property
    def utilization(self) -> dict[str, float]:
        """Return the busy fraction of each pipe over the whole time, averaged over the simulated cores."""
        busy = dict.fromkeys(PIPES, 0.0)
        for phase in self.phases:
            for pipe, cycles in zip(phase.flat.op_pipe.tolist(), phase.op_busy.tolist(), strict=True):
                busy[PIPES[pipe]] += cycles / phase.cores
        return {pipe: cycles / self.cycles for pipe, cycles in busy.items()}

    @cached_property
    def counters(self) -> dict[str, float]:
        """Return the busy fraction of each pipe as msprof counts it.

        It is :attr:`utilization`, except that with the unit flag the FIXPIPE time includes the wait for the cube: no
        flag holds the FIXPIPE instruction of a tile back, so it occupies its pipe as soon as the scalar unit has issued
        it, :data:`ascend.pipes.build.QUEUED_BLOCKS` blocks before the cube is done. That aic_fixpipe_time includes this
        wait is published (asc-devkit 0da921b91, matmul_high_performance, case 8).
        """
        found = dict(self.utilization)
        if self.schedule.unit_flag:
            multiplied = sum(phase.cycles for phase in self.phases if phase.name == "multiply")
            waits = min(QUEUED_BLOCKS / self.schedule.n_fused, 1.0) * multiplied / self.cycles
            found["FIXP"] = min(found["FIXP"] + waits, 1.0)
        return found

    @cached_property
    def cube_efficiency(self) -> float:
        """Return the cycles of cube steps divided by all cycles of all the chip's cores: 1 at the peak."""
        return self.schedule.cube_steps() / (self.cycles * self.chip.cores)

    @cached_property
    def stalls(self) -> list[Stall]:
        """Return the idle cycles of every pipe by the flag that it waited for, longest first.

        The reason "the end of the phase" is the time after a pipe's last operation. The cycles of all reasons of a pipe
        and its busy cycles add up to the whole time.
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
                if phase.launch:
                    key = (PIPES[pipe], "the launch of the kernel")
                    totals[key] = totals.get(key, 0.0) + phase.launch
        rows = [Stall(pipe, reason, cycles, cycles / self.cycles) for (pipe, reason), cycles in totals.items()]
        return sorted(rows, key=lambda row: -row.cycles)

    @cached_property
    def bytes(self) -> dict[str, float]:
        """Return the bytes moved by each kind of operation, summed over the simulated cores."""
        sums: dict[str, float] = {}
        for phase in self.phases:
            for kind, value in phase.by_kind(phase.op_count * phase.flat.op_bytes).items():
                sums[kind] = sums.get(kind, 0) + value
        return sums

    @property
    def events(self) -> int:
        """Return the number of operations that were simulated one by one, without those skipped in steady state."""
        return sum(phase.events for phase in self.phases)

    def recorded(self) -> "Timeline":
        """Return the run with every operation of core 0 recorded: this run if it already has records, else a new one."""
        if all(phase.records is not None for phase in self.phases):
            return self
        return run_program(self.program, **{**self.options, "all_cores": False, "record": True})

    def occupancy(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return the used bytes of each buffer over time.

        Returns
        -------
        dict
            Two arrays, cycles and bytes, for each buffer ("L1 A", "L1 B", "L0A", "L0B", "L0C", "UB in", "UB out"): from cycle
            cycles[i] on, bytes[i] bytes are in use. A block counts with the whole space that is reserved for it.
        """
        from ascend.pipes.trace import occupancy

        return occupancy(self.recorded())

    def to_trace(self, path, most_operations: int = 100_000) -> None:
        """Write a Chrome/Perfetto trace (see :func:`ascend.pipes.trace.write_trace`).

        Parameters
        ----------
        path : path
            File that is written.
        most_operations : int
            Largest number of operations that the file may hold.
        """
        from ascend.pipes.trace import write_trace

        write_trace(self.recorded(), path, most_operations)

    def to_rows(self) -> list[dict]:
        """Return one row for each pipe: the fraction of the time that it is busy, and the cause of its longest wait."""
        rows = []
        for pipe, busy in self.utilization.items():
            stall = next((row for row in self.stalls if row.pipe == pipe), None)
            rows.append({"pipe": pipe, "busy": busy, "waits_for": stall.reason if stall else "",
                         "waiting": stall.fraction if stall else 0.0})  # fmt: skip
        return rows

    def sentences(self) -> list[str]:
        """Return a sentence on the time and the speed."""
        s = self.schedule
        return [f"{s.m} x {s.k} x {s.n} on {self.chip.name}: {self.cycles:.6g} cycles, {self.tflops:.4g} TFLOP/s"]

    def to_dict(self) -> dict:
        """Return the timing as a dict of plain data for JSON."""
        s = self.schedule
        return {
            "chip": self.chip.name,
            "m": s.m, "k": s.k, "n": s.n,
            "block": [s.blocking.bm, s.blocking.bk, s.blocking.bn],
            "kernel": s.kernel, "grid": [s.grid.m, s.grid.k, s.grid.n], "resident": s.resident, "used_cores": s.used_cores,
            "n_fused": s.n_fused, "k_groups": len(s.k_groups), "waves": s.waves,
            "terms": s.terms, "mode": s.mode, "buffering": s.buffering, "operand": s.operand, "template": s.template,
            "dequantize": s.dequantize,
            "cycles": self.cycles, "seconds": self.seconds, "tflops": self.tflops,
            "cube_efficiency": self.cube_efficiency,
            "phases": {phase.name: phase.cycles for phase in self.phases},
            "utilization": self.utilization,
            "stalls": [row._asdict() for row in self.stalls],
            "bytes": self.bytes, "operations": self.operations, "events": self.events,
        }  # fmt: skip


@default_fp_state
def simulate(
    schedule: TileSchedule,
    *,
    include_split: bool = True,
    l2: L2Model | None = None,
    all_cores: bool = False,
    record: bool = False,
    latency: LatencyMode = "pipelined",
    steady_state: bool = True,
    progress: Callable[[int], None] | None = None,
) -> Timeline:
    """Simulate a schedule on the chip that it was built for.

    Parameters
    ----------
    schedule : TileSchedule
        Result of :func:`ascend.build_schedule`.
    include_split : bool
        Count the time of the pass that splits A and B into FP16 words.
    l2 : {"reuse", "shared_b"}, optional
        Model of L2. With "reuse" a load hits L2 if few enough bytes were loaded since the same data's last use. With
        "shared_b" B comes from L2 and A from memory. The default depends on the kernel.
    all_cores : bool
        Simulate every core instead of one representative core.
    record : bool
        Keep every operation (for traces, occupancy, Gantt charts); no repetition is skipped.
    latency : {"pipelined", "serial"}
        Whether a pipe can start its next transfer during the latency of a memory transfer ("pipelined") or must wait
        ("serial").
    steady_state : bool
        If one core is simulated: skip repetitions of the schedule's loops once the state of the pipes repeats. Times change
        only by rounding.
    progress : callable, optional
        Function that is called with the number of simulated operations, about once in a million operations.

    Raises
    ------
    TypeError
        If `schedule` is no TileSchedule.
    ValueError
        If the schedule has no chip, or has too many operations to record.
    """
    if not isinstance(schedule, TileSchedule):
        raise TypeError(
            f"simulate needs a TileSchedule from build_schedule(m, k, n, chip, blocking), got {type(schedule).__name__}"
        )
    return run_program(
        build_program(cast(Kernel, schedule), include_split, l2=l2, one_core=not all_cores), all_cores=all_cores, record=record,
        latency=latency, steady_state=steady_state, progress=progress,
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
    """Simulate a given program as :func:`simulate` does."""
    if latency not in ("pipelined", "serial"):
        raise ValueError(f"latency must be 'pipelined' or 'serial', got {latency!r}")
    options = {"all_cores": all_cores, "latency": latency, "steady_state": steady_state}
    results: list[PhaseResult] = []

    def report(events: int) -> None:
        if progress:
            progress(sum(result.events for result in results) + events)

    for phase in program.phases:
        results.append(_run_phase(program, phase, all_cores, record, latency, steady_state, report))
    return Timeline(cast(Kernel, program.schedule), program, tuple(results), options)


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
        channel_rates=program.channel_rates, serial_latency=latency == "serial", steady_state=steady_state,
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
    floor = sum(phase.memory_bytes.values()) / chip.hbm_bytes_per_cycle
    kept = Records(*(array[: engine.records] for array in records)) if records else None
    return PhaseResult(
        phase.name, max(engine.end_time(), floor), len(flat.core_first_loop), flat, sums[0], sums[1],
        sums[2].reshape(len(PIPES), len(FLAGS)), engine.events, engine.skipped, kept, phase.launch,
    )  # fmt: skip


def _operation_count(phase: Phase, all_cores: bool) -> int:
    """Return the number of operations of the simulated cores."""
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
