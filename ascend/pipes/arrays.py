"""A phase of a program as flat arrays, and the state arrays that the simulator works on."""

from dataclasses import dataclass

import numpy as np

from ascend._kernels.pipes import LAYOUT
from ascend.pipes.program import FLAG_NUMBER, FLAGS, PIPES, Loop, Phase, Template

#: Flags that one operation can take or raise.
FLAG_WIDTH = 8


@dataclass(frozen=True)
class FlatPhase:
    """Operations, templates, loops as arrays. `kinds` names the kind of each operation."""

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
    """Arrays for every core, or for core 0 alone (which has the most work)."""
    programs = range(len(phase.programs)) if all_cores else [phase.program_of_core[0]]
    of_core = phase.program_of_core if all_cores else phase.program_of_core[:1]
    templates: dict[Template, int] = {}
    loops: list[Loop] = []
    first: dict[int, int] = {}
    for number in programs:
        first[number] = len(loops)
        loops.extend(phase.programs[number])
    loop_first: list[int] = []
    loop_end: list[int] = []
    segment_template: list[int] = []
    segment_repeats: list[int] = []
    places: dict[int, tuple[int, int]] = {}  # of the segments of each loop, by its identity
    for loop in loops:
        if id(loop) not in places:
            start = len(segment_template)
            for segment in loop.segments:
                if segment.template:
                    segment_template.append(templates.setdefault(segment.template, len(templates)))
                    segment_repeats.append(segment.repeats)
            places[id(loop)] = start, len(segment_template)
        start, end = places[id(loop)]
        loop_first.append(start)
        loop_end.append(end)
    operations = [operation for template in templates for operation in template]
    pipe_op_start: list[int] = []
    pipe_op_count: list[int] = []
    pipe_ops: list[int] = []
    base = 0
    for template in templates:
        for pipe in range(len(PIPES)):
            own = [base + i for i, operation in enumerate(template) if operation.pipe == pipe]
            pipe_op_start.append(len(pipe_ops))
            pipe_op_count.append(len(own))
            pipe_ops.extend(own)
        base += len(template)
    counts = np.array(pipe_op_count, dtype=np.int32).reshape(-1, len(PIPES))
    has = {
        (start, end): counts[segment_template[start:end]].any(axis=0) if end > start else np.zeros(len(PIPES), bool)
        for start, end in places.values()
    }
    int32, int64 = np.int32, np.int64
    return FlatPhase(
        kinds=tuple(operation.kind for operation in operations),
        op_cube_steps=np.array([operation.cube_steps for operation in operations], int64),
        op_pipe=np.array([operation.pipe for operation in operations], int32),
        op_channel=np.array([operation.channel for operation in operations], int32),
        op_cycles=np.array([operation.cycles for operation in operations], float),
        op_bytes=np.array([operation.bytes for operation in operations], float),
        op_latency=np.array([operation.latency for operation in operations], float),
        op_takes=_flag_table([operation.takes for operation in operations]),
        op_take_count=np.array([len(operation.takes) for operation in operations], int32),
        op_raises=_flag_table([operation.raises for operation in operations]),
        op_raise_count=np.array([len(operation.raises) for operation in operations], int32),
        pipe_op_start=np.array(pipe_op_start, int32),
        pipe_op_count=counts.ravel(),
        pipe_ops=np.array(pipe_ops, int32),
        segment_template=np.array(segment_template, int32),
        segment_repeats=np.array(segment_repeats, int64),
        loop_first=np.array(loop_first, int32),
        loop_end=np.array(loop_end, int32),
        loop_iterations=np.array([loop.iterations for loop in loops], int64),
        loop_active=np.array([loop.active for loop in loops], float),
        loop_has_pipe=np.array([has[place] for place in zip(loop_first, loop_end, strict=True)], int32).ravel(),
        core_first_loop=np.array([first[number] for number in of_core], int32),
        core_end_loop=np.array([first[number] + len(phase.programs[number]) for number in of_core], int32),
    )


def _flag_table(lists: list[tuple[str, ...]]) -> np.ndarray:
    numbers = {names: [FLAG_NUMBER[name] for name in names] + [0] * (FLAG_WIDTH - len(names)) for names in set(lists)}
    return np.array([numbers[names] for names in lists], np.int32).ravel()


def new_state(phase: FlatPhase, initial_flags: dict[str, int]) -> tuple[np.ndarray, ...]:
    """State arrays of the kernel, the initial flags up at cycle 0."""
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
        np.zeros(cores, np.int32),  # to do
        np.full(cores, -1, np.int32),  # why the synchronisation waited
        np.zeros(cores),  # how long after the cube was free
        np.zeros(LAYOUT["history"] * LAYOUT["state"]),
        np.zeros(LAYOUT["history"] * sums),
    )
