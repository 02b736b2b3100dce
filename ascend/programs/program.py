"""This module defines the operations of a tile schedule as one core's pipes execute them.

A :class:`Program`, which the simulator runs, has operations in templates and templates in loops. Every pipe takes its
own operations in program order. Only counting flags (:data:`FLAGS`) order operations of different pipes, as set_flag
and wait_flag provide them: an operation starts when all the flags that it takes are up, and raises others when its
result is ready. A pool of buffer slots is a pair of flags, FREE (raised in advance once for each slot) and FULL.
:func:`ascend.pipes.build.build_program` makes programs from schedules.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ascend.tile_schedule import TileSchedule

PIPES = ("SCALAR", "VECTOR", "CUBE", "MTE1", "MTE2", "MTE3", "FIXP")
SCALAR, VECTOR, CUBE, MTE1, MTE2, MTE3, FIXP = range(len(PIPES))

#: Flags, each with the thing that a pipe waits for if the flag is down.
FLAGS = {
    "B_L1_FREE": "a free B buffer in L1",
    "B_L1_FULL": "the B block in L1",
    "A_L1_FREE": "the A panel in L1 to be used up",
    "A_L1_FULL": "the A panel in L1",
    "L0A_FREE": "a free L0A buffer",
    "L0A_FULL": "the A block in L0A",
    "L0B_FREE": "a free L0B buffer",
    "L0B_FULL": "the B block in L0B",
    "L0C_FREE": "a free L0C buffer",
    "L0C_FULL": "the last cube operation of the C block",
    "SEED_FULL": "C in L0C",
    "OLD_FREE": "a free UB buffer for input",
    "OLD_FULL": "the input in UB",
    "UB_FREE": "a free buffer for the vector unit's output",
    "UB_FULL": "the vector unit's output",
    "CUBE_DONE": "the previous cube operation",
    "GO": "the synchronisation of the block",
    "QUEUE_FREE": "a place in the queues of the pipes",
    "ISSUED": "the scalar unit to issue the block",
}
FLAG_NUMBER = {name: number for number, name in enumerate(FLAGS)}

#: Shared memory channels, whose transfers compete for the memory bandwidth of the chip; -1 is a private path.
PRIVATE, MEMORY_READ, MEMORY_WRITE, FIXPIPE_WRITE = -1, 0, 1, 2
CHANNELS = 3


class PipeOperation(NamedTuple):
    """`PipeOperation` is one instruction of one pipe.

    It occupies the pipe for `cycles` plus, for a transfer on a shared channel, the time of its bytes. Its result is
    ready `latency` cycles later.
    """

    pipe: int
    kind: str
    cycles: float = 0.0
    bytes: float = 0.0
    channel: int = PRIVATE
    latency: float = 0.0
    takes: tuple[str, ...] = ()
    raises: tuple[str, ...] = ()
    cube_steps: int = 0


Template = tuple[PipeOperation, ...]


class Segment(NamedTuple):
    """`Segment` is a template with its number of repeats."""

    template: Template
    repeats: int = 1


class Loop(NamedTuple):
    """`Loop` is a sequence of segments that is repeated as a whole; `active` cores run it at a time."""

    segments: tuple[Segment, ...]
    iterations: int
    active: int


def shared_programs(
    parts: Iterable[Hashable], loops: Callable[[Any], Iterable[Loop]]
) -> tuple[tuple[tuple[Loop, ...], ...], tuple[int, ...]]:
    """Return the programs of the different parts, and the number of each core's program."""
    of_core = list(parts)
    numbers = {part: number for number, part in enumerate(dict.fromkeys(of_core))}
    return tuple(tuple(loops(part)) for part in numbers), tuple(numbers[part] for part in of_core)


@dataclass(frozen=True)
class Phase:
    """`Phase` is the part of a program between two barriers of all cores; equal cores share their loops."""

    name: str
    programs: tuple[tuple[Loop, ...], ...]
    program_of_core: tuple[int, ...]
    slot_bytes: dict[str, int]  # bytes of one slot of each pool, by its FREE flag
    launch: float = 0.0  # cycles of the launch before the phase begins
    #: Bytes of all cores that the memory has to carry, at its own rate, during the phase, by the kind of operation.
    memory_bytes: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Program:
    """`Program` holds the operations that all cores execute for a schedule."""

    schedule: TileSchedule
    phases: tuple[Phase, ...]  #: The phases in the order in which they run.
    initial_flags: dict[str, int]  #: Flags that are up at the start, for the free slots.
    #: Bytes per cycle that one core's own path carries on each shared channel: reads, writes, FIXPIPE.
    channel_rates: tuple[float, float, float]

    def operations(self, core: int = 0) -> Iterator[PipeOperation]:
        """Yield every operation of a core in program order; large sizes have very many."""
        for phase in self.phases:
            for loop in phase.programs[phase.program_of_core[core]]:
                for _ in range(loop.iterations):
                    for segment in loop.segments:
                        for _ in range(segment.repeats):
                            yield from segment.template

    @cached_property
    def totals(self) -> dict[str, tuple[int, float, int]]:
        """Return (count, bytes, cube steps) of each kind of operation over all cores, exactly, from the loop counts."""
        totals: dict[str, list] = {}
        for phase in self.phases:
            cores = np.bincount(phase.program_of_core, minlength=len(phase.programs))
            for program, count in zip(phase.programs, cores.tolist(), strict=True):
                for loop in program:
                    for segment in loop.segments:
                        times = count * loop.iterations * segment.repeats
                        for operation in segment.template:
                            row = totals.setdefault(operation.kind, [0, 0.0, 0])
                            row[0] += times
                            row[1] += times * operation.bytes
                            row[2] += times * operation.cube_steps
        return {kind: tuple(row) for kind, row in totals.items()}
