"""This module breaks a time down from the peak to the simulated speed, cause by cause, and computes sensitivities.

The waterfall begins with a kernel in which everything but the cube steps is free, and brings the causes in one after
the other. A cause's share depends on the causes before it, so the order is part of the result. Fitted causes come last
and are marked.
"""

from dataclasses import replace
from typing import NamedTuple, cast

from ascend.chips.chip import PARAMETERS, Chip
from ascend.kernels.base import Kernel
from ascend.pipes.build import build_program
from ascend.pipes.simulate import LatencyMode, run_program, simulate
from ascend.programs.program import Loop, Phase, PipeOperation, Program, Segment
from tensorcore_models.machine.fp_state import default_fp_state


class Cause(NamedTuple):
    """`Cause` is a reason for lost time: operations that are free, or chip parameters that are 0, before it comes in."""

    name: str
    kinds: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    split: bool = False
    fitted: bool = False


CAUSES = (
    Cause("head of each cube instruction", parameters=("mmad_head", "norm_mmad_head")),
    Cause("instructions that the scalar unit issues for each block", kinds=("issue",)),
    Cause("moves from L1 to L0A and L0B", kinds=("A move", "B move")),
    Cause("B from memory and L2 to L1", kinds=("B load", "B miss", "B widened")),
    Cause("A from memory and L2 to L1", kinds=("A load", "A miss")),
    Cause("streaming through the vector units", kinds=("kept load", "stream load", "multiply and add")),
    Cause("C read, added and written", kinds=("C read", "C add", "C move", "C write", "C seed")),
    Cause("splitting A and B into FP16 words", split=True),
    Cause("ND operands turned into NZ", kinds=("convert read", "convert", "convert write")),
    Cause("combining the terms behind FIXPIPE", kinds=("combine read", "combine", "combine write")),
    Cause("merging slices of k", kinds=("merge read", "merge", "merge write", "zero", "zero write")),
    Cause(
        "int32 sums scaled by vector units",
        kinds=("dequantize read", "dequantize", "dequantize write"),
        parameters=("vector_launch_us",),
    ),
    Cause("launch", parameters=("launch_us", "launch_core_us", "cold_launch_us")),
    Cause("synchronisation of each block", parameters=("sync_cycles_per_block",), fitted=True),
    Cause("memory time that does not overlap", parameters=("non_overlapped_fraction",), fitted=True),
)


class WaterfallStep(NamedTuple):
    """`WaterfallStep` is one step of the waterfall."""

    cause: str
    tflops: float  # speed with this cause and all before it
    lost: float  # TFLOP/s that the cause takes
    cycles: float  # time that the cause adds
    fitted: bool


@default_fp_state
def waterfall(schedule: Kernel, latency: LatencyMode = "pipelined") -> list[WaterfallStep]:
    """Return the steps from the FP32-equivalent peak (first) down to the simulated speed of a schedule (last).

    Parameters
    ----------
    schedule : Kernel
        Schedule on a chip. Fitted parameters of the chip that are not 0 are steps, too.
    latency : {"pipelined", "serial"}
        Whether a pipe can start its next transfer during the latency of a memory transfer ("pipelined") or must wait
        ("serial").
    """
    s, chip = schedule, schedule.placed_on
    flop = 2.0 * s.m * s.n * s.k
    peak = s.peak_flops()
    peak_cycles = flop / peak * chip.cycles_per_second
    steps = [
        WaterfallStep("peak: a third of the cubes" if s.terms == 3 else "peak", peak / 1e12, 0.0, peak_cycles, False)
    ]

    def add(name: str, cycles: float, fitted: bool) -> None:
        tflops = flop / (cycles / chip.cycles_per_second) / 1e12
        added, lost = cycles - sum(step.cycles for step in steps), steps[-1].tflops - tflops
        nothing = abs(added) < 1e-9 * peak_cycles  # rounding
        steps.append(WaterfallStep(name, tflops, 0.0 if nothing else lost, 0.0 if nothing else added, fitted))

    for present in range(len(CAUSES) + 1):
        name = CAUSES[present - 1].name if present else "edges and idle cores of the last wave"
        if present and not _matters(CAUSES[present - 1], s):
            continue
        cycles = run_program(_with_causes(schedule, present), latency=latency).cycles
        add(name, cycles, bool(present) and CAUSES[present - 1].fitted)
    return steps


def _matters(cause: Cause, schedule: Kernel) -> bool:
    """Return whether the cause can cost time for this schedule."""
    chip = schedule.placed_on
    if cause.split:
        return schedule.terms > 1
    if "combine" in cause.kinds:
        return bool(chip.fixpipe) and schedule.terms > 1
    if "convert" in cause.kinds:
        return schedule.converts
    if "merge" in cause.kinds:
        return len(schedule.k_slices) > 1
    if "issue" in cause.kinds:
        return bool(schedule.scalar_cycles)
    if "dequantize" in cause.kinds:
        return schedule.dequantize == "vector"
    if "launch_us" in cause.parameters:
        return schedule.launches
    if "stream load" in cause.kinds or "B load" in cause.kinds or "A load" in cause.kinds:
        return schedule.on_cube != ("stream load" in cause.kinds)
    return bool(cause.kinds) or any(getattr(chip, name) for name in cause.parameters)


def _with_causes(schedule: Kernel, present: int) -> Program:
    """Return the program with the first `present` causes in force and the others free."""
    absent = CAUSES[present:]
    chip = schedule.placed_on.replace(**{name: 0.0 for cause in absent for name in cause.parameters})
    program = build_program(
        cast(Kernel, schedule.timed_by(chip)), include_split=not any(cause.split for cause in absent)
    )
    return free_of_charge(program, {kind for cause in absent for kind in cause.kinds})


def free_of_charge(program: Program, kinds: set[str]) -> Program:
    """Return the program in which operations of some kinds take no time, nor their bytes in the memory of all cores.

    The flags between the pipes stay.
    """
    if not kinds:
        return program

    def free(operation: PipeOperation) -> PipeOperation:
        return operation._replace(cycles=0.0, bytes=0.0, latency=0.0) if operation.kind in kinds else operation

    def loop_without(loop: Loop) -> Loop:
        segments = (Segment(tuple(map(free, segment.template)), segment.repeats) for segment in loop.segments)
        return loop._replace(segments=tuple(segments))

    def phase_without(phase: Phase) -> Phase:
        carried = {kind: size for kind, size in phase.memory_bytes.items() if kind not in kinds}
        programs = tuple(tuple(map(loop_without, loops)) for loops in phase.programs)
        return replace(phase, programs=programs, memory_bytes=carried)

    return replace(program, phases=tuple(map(phase_without, program.phases)))


class Sensitivity(NamedTuple):
    """`Sensitivity` is the response of the speed to one number of the chip."""

    parameter: str
    value: float
    unit: str
    kind: str
    lower: float  # TFLOP/s with the number 20 % lower
    higher: float  # TFLOP/s with the number 20 % higher
    elasticity: float  # relative change of the speed for a relative change of the number


#: Numbers that affect time only, not the fit of buffers or the amount of work.
TIMING_PARAMETERS = tuple(
    name for name, row in PARAMETERS.items() if row.unit in ("B/cycle", "B/s", "MHz", "1") or (row.unit == "cycles")
)
STEP = 0.2


@default_fp_state
def sensitivities(schedule: Kernel, kinds: tuple[str, ...] | None = None) -> list[Sensitivity]:
    """Return a schedule's speed with each timing parameter 20 % lower and 20 % higher, largest effect first.

    Parameters
    ----------
    schedule : Kernel
        The result of :func:`ascend.build_schedule`.
    kinds : tuple of str, optional
        Kinds of provenance, e.g. ("assumed", "calibrated"); only parameters of these kinds are varied.
    """
    chip, rows = schedule.placed_on, []
    for name in TIMING_PARAMETERS:
        value, kind = getattr(chip, name), chip.provenance[name].kind
        if not value or (kinds and kind not in kinds):
            continue
        lower, higher = (_speed(schedule, chip.replace(**{name: value * factor})) for factor in (1 - STEP, 1 + STEP))
        middle = (lower + higher) / 2
        elasticity = (higher - lower) / (2 * STEP * middle)
        rows.append(Sensitivity(name, value, PARAMETERS[name].unit, kind, lower, higher, elasticity))
    return sorted(rows, key=lambda row: -abs(row.elasticity))


@default_fp_state
def sweep(schedule: Kernel, parameter: str, values: list[float]) -> list[tuple[float, float]]:
    """Return (value, TFLOP/s) of a what-if sweep over one chip parameter."""
    return [(value, _speed(schedule, schedule.placed_on.replace(**{parameter: value}))) for value in values]


def _speed(schedule: Kernel, chip: Chip) -> float:
    return simulate(schedule.timed_by(chip)).tflops
