"""Schedules groups of lanes that stand at the same instruction.

All lanes start as one group. A branch on which lanes differ splits a group. The group at the smallest instruction runs first,
so that lanes which meet again go on together. Groups wait for barriers (:class:`Wait`) without running. A group that loops
while others could run gives way, so that the memory on which it spins can change. If no group can run and no waited-for event
can come, the threads wait for ever, which is a fault.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import KernelFault, KernelLimits, Refused

#: Number of backward jumps after which a group gives way to another one.
PATIENCE = 2000


@dataclass(slots=True)
class Jump:
    """`Jump` sends all lanes of the group to `target`."""

    target: int


@dataclass(slots=True)
class Split:
    """`Split` sends its lanes to `target`, and the group's other lanes to the next instruction; with `target` None, its lanes
    end."""

    lanes: np.ndarray
    target: int | None


@dataclass(slots=True)
class Wait:
    """`Wait` stops its lanes until `ready(lanes)` (a mask) holds; then they run the instruction again, or the next one.

    Parameters
    ----------
    lanes : ndarray
        Lanes of the group that wait; the others go on.
    ready : callable
        Function that gives a mask of the lanes that may go on.
    again : bool
        Whether they run the instruction again.
    give_up : callable, optional
        Function that is called on the lanes when nothing else can run, for an instruction that may time out. None: a fault.
    merge : bool
        Whether the lanes wait for others to reach this instruction.
    """

    lanes: np.ndarray
    ready: Callable[[np.ndarray], np.ndarray] | None
    again: bool
    give_up: Callable[[np.ndarray], None] | None = None
    merge: bool = False


@dataclass(slots=True)
class LaneGroup:
    """`LaneGroup` is a group of lanes (None: all) at instruction `pc`; `turn` is larger for groups that gave way."""

    pc: int
    lanes: np.ndarray | None
    turn: int = 0


@dataclass(slots=True)
class Sleeper(LaneGroup):
    """`Sleeper` is a group that waits."""

    wait: Wait = None  # type: ignore[assignment]  # always given


class Scheduler:
    """`Scheduler` runs a program's operations over all lanes.

    Parameters
    ----------
    code : sequence of callable
        ``operation(machine, lanes)`` gives None to go on, or a :class:`Jump`, :class:`Split` or :class:`Wait`.
    lines : sequence of int
        Line of each operation.
    machine : object
        Machine on which operations run; its `events` counts events that lanes may wait for, `threads` names lanes.
    limits : KernelLimits
        Limits of the run.
    threads : object, optional
        Threads to run, by default the machine's threads; waves on machines that branch by wave.
    """

    def __init__(
        self, code: Sequence[Callable], lines: Sequence[int], machine: Any, limits: KernelLimits, threads: Any = None
    ):
        self.code, self.lines, self.machine, self.limits = code, lines, machine, limits
        self.threads = threads or machine.threads
        self.groups: list[LaneGroup] = []
        self.sleeping: list[Sleeper] = []
        self.steps = 0
        self.seen = self.gave_up = -1

    def run(self) -> None:
        """Run until every lane is done."""
        self.groups = [LaneGroup(0, self.threads.live)]
        while self.groups or self.sleeping:
            if self.sleeping and (self.seen != self.machine.events or not self.groups):
                self._wake()
            if not self.groups:
                self._stuck()
                continue
            self._advance(self._next())

    def lanes_of(self, group: LaneGroup) -> np.ndarray:
        """Return the group's lanes as numbers."""
        return self.threads.all_lanes if group.lanes is None else group.lanes

    def _next(self) -> LaneGroup:
        """Return the group to run, merged with all groups at the same instruction."""
        chosen = min(self.groups, key=lambda group: (group.turn, group.pc))
        same = [group for group in self.groups if group.pc == chosen.pc]
        same += [group for group in self.sleeping if group.pc == chosen.pc and group.wait.merge]
        self.groups = [group for group in self.groups if group.pc != chosen.pc]
        if len(same) > 1:
            self.sleeping = [group for group in self.sleeping if not any(group is each for each in same)]
            lanes = np.sort(np.concatenate([self.lanes_of(group) for group in same]))
            whole = len(lanes) == self.threads.count
            chosen = LaneGroup(chosen.pc, None if whole else lanes, max(group.turn for group in same))
        return chosen

    def _advance(self, group: LaneGroup) -> None:
        """Run a group until it meets another group, splits, waits or ends."""
        machine, code, pc, lanes, back = self.machine, self.code, group.pc, group.lanes, 0
        stops = {other.pc for other in self.groups} | {other.pc for other in self.sleeping if other.wait.merge}
        steps, most = self.steps, self.limits.steps
        try:
            while True:
                control = code[pc](machine, lanes)
                steps += 1
                if control is None:
                    pc += 1
                elif type(control) is Jump:
                    back += control.target <= pc
                    pc = control.target
                    if back > PATIENCE and self.groups:
                        self.groups.append(LaneGroup(pc, lanes, max(g.turn for g in self.groups) + 1))
                        return
                else:
                    self._part(control, pc, lanes, group.turn)
                    return
                if steps > most:
                    raise KernelFault(
                        f"the program takes more than {most} steps: it loops, or needs limits=KernelLimits(steps=...)"
                    )
                if pc in stops:
                    self.groups.append(LaneGroup(pc, lanes, group.turn))
                    return
        except (Refused, KernelFault) as error:
            raise self._named(error, pc, lanes) from None
        finally:
            self.steps = steps

    def _named(self, error, pc: int, lanes: np.ndarray | None):
        """Return the error with its line and, if it has the index of an access, the thread's name."""
        if error.line is not None:
            return error
        what = error.what
        if isinstance(error, KernelFault) and error.index is not None:
            active = lanes if error.lanes is None else error.lanes
            lane = error.index if active is None else int(active[error.index])
            what = f"{self.threads.name(lane)} {what}"
        return type(error)(what, self.lines[pc])

    def _part(self, control: Split | Wait, pc: int, lanes: np.ndarray | None, turn: int) -> None:
        """Split the group into the lanes that the control names and the others, which go to the next instruction."""
        everyone = self.threads.all_lanes if lanes is None else lanes
        named: np.ndarray | None = control.lanes
        if len(control.lanes) < len(everyone):
            rest = everyone[~np.isin(everyone, control.lanes, assume_unique=True)]
            self.groups.append(LaneGroup(pc + 1, rest, turn))
        elif lanes is None:
            named = None
        if isinstance(control, Wait):
            self.sleeping.append(Sleeper(pc, named, turn, control))
        elif control.target is not None:
            self.groups.append(LaneGroup(control.target, named, turn))

    def _wake(self) -> None:
        """Wake the groups whose lanes may go on."""
        self.seen = self.machine.events
        asleep, self.sleeping = self.sleeping, []
        for group in asleep:
            if group.wait.ready is None:
                self.sleeping.append(group)
                continue
            lanes = self.lanes_of(group)
            ready = group.wait.ready(lanes)
            if ready.any():
                whole = group.lanes is None and ready.all()
                self.groups.append(
                    LaneGroup(group.pc + (not group.wait.again), None if whole else lanes[ready], group.turn)
                )
            if not ready.all():
                self.sleeping.append(Sleeper(group.pc, lanes[~ready], group.turn, group.wait))

    def _stuck(self) -> None:
        """Let waiting lanes time out, once after each event, if nothing can run; without such lanes raise KernelFault."""
        timed = [(group, group.wait.give_up) for group in self.sleeping if group.wait.give_up is not None]
        if timed and self.gave_up != self.machine.events:
            self.gave_up = self.machine.events
            for group, give_up in timed:
                give_up(self.lanes_of(group))
                self.groups.append(LaneGroup(group.pc + 1, group.lanes, group.turn))
            self.sleeping = [group for group in self.sleeping if group.wait.give_up is None]
            return
        waits = sorted({self.lines[group.pc] for group in self.sleeping})
        count = sum(len(self.lanes_of(group)) for group in self.sleeping)
        first = self.threads.name(int(self.lanes_of(self.sleeping[0])[0]))
        raise KernelFault(
            f"{count} threads wait for ever at line{'s' if len(waits) > 1 else ''} {', '.join(map(str, waits))}, "
            f"the first is {first}",
            waits[0],
        )
