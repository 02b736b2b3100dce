"""This module holds a phase of a program as flat arrays, and the state arrays of the simulator."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ascend._kernels.pipes import LAYOUT
from ascend.programs.program import FLAG_NUMBER, FLAGS, PIPES, Loop, Phase, PipeOperation, Template

#: Number of flags that one operation can take or raise.
FLAG_WIDTH = 8


@dataclass(frozen=True)
class FlatPhase:
    """`FlatPhase` holds operations, templates and loops as arrays; `kinds` names the kind of each operation."""

    kinds: tuple[str, ...]
    op_cube_steps: np.ndarray
    op_pipe: np.ndarray
    op_channel: np.ndarray
    op_cycles: np.ndarray
    op_bytes: np.ndarray
    op_latency: np.ndarray
    op_takes: np.ndarray
    op_take_count: np.ndarray
    op_raises: np.ndarray
    op_raise_count: np.ndarray
    pipe_op_start: np.ndarray
    pipe_op_count: np.ndarray
    pipe_ops: np.ndarray
    segment_template: np.ndarray
    segment_repeats: np.ndarray
    loop_first: np.ndarray
    loop_end: np.ndarray
    loop_iterations: np.ndarray
    loop_active: np.ndarray
    loop_has_pipe: np.ndarray
    core_first_loop: np.ndarray
    core_end_loop: np.ndarray


def flatten(phase: Phase, all_cores: bool) -> FlatPhase:
    """Return the arrays for every core, or for core 0 alone, which has the most work."""
    programs = range(len(phase.programs)) if all_cores else [phase.program_of_core[0]]
    of_core = phase.program_of_core if all_cores else phase.program_of_core[:1]
    templates: dict[Template, int] = {}
    loops: list[Loop] = []
    first: dict[int, int] = {}
    for number in programs:
        first[number] = len(loops)
        loops.extend(phase.programs[number])
    places, segment_template, segment_repeats = _segments(loops, templates)
    ranges = [places[id(loop)] for loop in loops]
    operations = [operation for template in templates for operation in template]
    pipe_op_start, counts, pipe_ops = _by_pipe(templates)
    has = {
        (start, end): counts[segment_template[start:end]].any(axis=0) if end > start else np.zeros(len(PIPES), bool)
        for start, end in places.values()
    }
    int32, int64 = np.int32, np.int64
    return FlatPhase(
        **_of_operations(operations),
        pipe_op_start=np.array(pipe_op_start, int32),
        pipe_op_count=counts.ravel(),
        pipe_ops=np.array(pipe_ops, int32),
        segment_template=np.array(segment_template, int32),
        segment_repeats=np.array(segment_repeats, int64),
        loop_first=np.array([start for start, _ in ranges], int32),
        loop_end=np.array([end for _, end in ranges], int32),
        loop_iterations=np.array([loop.iterations for loop in loops], int64),
        loop_active=np.array([loop.active for loop in loops], float),
        loop_has_pipe=np.array([has[place] for place in ranges], int32).ravel(),
        core_first_loop=np.array([first[number] for number in of_core], int32),
        core_end_loop=np.array([first[number] + len(phase.programs[number]) for number in of_core], int32),
    )


def _segments(
    loops: list[Loop], templates: dict[Template, int]
) -> tuple[dict[int, tuple[int, int]], list[int], list[int]]:
    """Return the place of each loop's segments (by its identity), and template and repeats of each; number the templates."""
    places: dict[int, tuple[int, int]] = {}
    segment_template: list[int] = []
    segment_repeats: list[int] = []
    for loop in loops:
        if id(loop) in places:
            continue
        start = len(segment_template)
        for segment in loop.segments:
            if segment.template:
                segment_template.append(templates.setdefault(segment.template, len(templates)))
                segment_repeats.append(segment.repeats)
        places[id(loop)] = start, len(segment_template)
    return places, segment_template, segment_repeats


def _by_pipe(templates: Iterable[Template]) -> tuple[list[int], np.ndarray, list[int]]:
    """Return the start of each template's operations by pipe, their count (templates, pipes), and their numbers."""
    starts: list[int] = []
    counts: list[int] = []
    numbers: list[int] = []
    base = 0
    for template in templates:
        for pipe in range(len(PIPES)):
            own = [base + i for i, operation in enumerate(template) if operation.pipe == pipe]
            starts.append(len(numbers))
            counts.append(len(own))
            numbers.extend(own)
        base += len(template)
    return starts, np.array(counts, np.int32).reshape(-1, len(PIPES)), numbers


def _of_operations(operations: list[PipeOperation]) -> dict[str, Any]:
    """Return the fields with one entry for each operation."""
    columns = {
        "cube_steps": np.int64,
        "pipe": np.int32,
        "channel": np.int32,
        "cycles": float,
        "bytes": float,
        "latency": float,
    }
    found: dict[str, Any] = {
        f"op_{name}": np.array([getattr(operation, name) for operation in operations], kind)
        for name, kind in columns.items()
    }
    for name in ("take", "raise"):
        flags = [getattr(operation, f"{name}s") for operation in operations]
        found |= {f"op_{name}s": _flag_table(flags), f"op_{name}_count": np.array([*map(len, flags)], np.int32)}
    return found | {"kinds": tuple(operation.kind for operation in operations)}


def _flag_table(lists: list[tuple[str, ...]]) -> np.ndarray:
    numbers = {names: [FLAG_NUMBER[name] for name in names] + [0] * (FLAG_WIDTH - len(names)) for names in set(lists)}
    return np.array([numbers[names] for names in lists], np.int32).ravel()


def new_state(phase: FlatPhase, initial_flags: dict[str, int]) -> tuple[np.ndarray, ...]:
    """Return the state arrays of the kernel, with the initial flags up at cycle 0."""
    cores = len(phase.core_first_loop)
    places, flags = cores * len(PIPES), cores * len(FLAGS)
    flag_count = np.zeros((cores, len(FLAGS)), np.int32)
    for name, count in initial_flags.items():
        flag_count[:, FLAG_NUMBER[name]] = count
    sums = 2 * len(phase.kinds) + len(PIPES) * len(FLAGS)
    return (
        *(np.zeros(places, np.int32) for _ in range(4)),  # loop, segment, operation, status
        *(np.zeros(places, np.int64) for _ in range(2)),  # iteration, repeat
        *(np.zeros(places) for _ in range(3)),  # free, start, end of flow
        np.zeros(flags * LAYOUT["ring"]),
        np.zeros(flags, np.int32),  # head
        flag_count.ravel(),
        np.full(flags, -1, np.int32),  # waiter
        np.zeros(cores, np.int32),  # pipes of each core that can still be run, as bits
        np.full(cores, -1, np.int32),  # reason for which the synchronisation waited
        np.zeros(cores),  # cycles that it waited after the cube was free
        np.zeros(LAYOUT["history"] * LAYOUT["state"]),
        np.zeros(LAYOUT["history"] * sums),
    )
