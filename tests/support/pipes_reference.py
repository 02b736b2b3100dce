"""The timing model in plain Python: the slow truth beside ascend/_kernels/pipes.pyx.

Written for reading, and by another algorithm: it walks the operations of every core one by one and moves time forward
from event to event (an operation starts, leaves its pipe, or its result arrives); nothing is placed ahead of time and
nothing is skipped. Both must give the same start and end for every operation.
"""

from collections import deque
from dataclasses import dataclass, field

from ascend.programs.program import CHANNELS, PIPES, PRIVATE, Loop, Phase, PipeOperation, Program

#: Times closer than this are the same event.
SAME = 1e-9


@dataclass
class _Pipe:
    """One pipe of one core: what it still has to do and what it does now."""

    queue: deque[tuple[PipeOperation, int, int]]  # operation, number of its loop, cores active in it
    free_at: float = 0.0
    running: PipeOperation | None = None
    channel: int = PRIVATE
    loop: int = 0
    active: int = 1
    start: float = 0.0
    end: float | None = None  # known for private operations only
    bytes_left: float = 0.0
    flows_from: float = 0.0  # shared transfers only: when their cycles have passed

    def flows(self, now: float) -> bool:
        """Whether a transfer on a shared channel is on its way."""
        return self.running is not None and self.end is None and self.flows_from <= now + SAME


@dataclass
class _Core:
    pipes: list[_Pipe]
    flags: dict[str, int]
    arriving: list[tuple[float, str]] = field(default_factory=list)  # flags raised when a latency has passed


def run_phase(program: Program, phase: Phase, all_cores: bool, serial: bool = False) -> list[tuple]:
    """Every operation of a phase, of all cores or of core 0, in the order of its end; cycles from the start of the phase.

    `serial`: a pipe waits for the latency of a memory transfer. Raises RuntimeError if the program deadlocks.
    """
    numbers = phase.program_of_core if all_cores else phase.program_of_core[:1]
    cores = [_Core(_queues(phase.programs[number]), dict(program.initial_flags)) for number in numbers]
    done: list[tuple] = []
    now = 0.0
    while True:
        while _start_operations(cores, now):
            pass
        rates = _rates(cores, program, now)
        times = [_next_time(core, rates, now) for core in cores]
        step = min((time for time in times if time is not None), default=None)
        if step is None:
            break
        for core in cores:
            for pipe in core.pipes:
                if pipe.flows(now):
                    pipe.bytes_left -= rates[pipe.running.channel] * (step - now)
        now = step
        for number, core in enumerate(cores):
            _end_operations(number, core, now, serial, done)
    stuck = [pipe for core in cores for pipe in core.pipes if pipe.queue]
    if stuck:
        raise RuntimeError(f"deadlock before {stuck[0].queue[0][0].kind}")
    return done


def _queues(loops: tuple[Loop, ...]) -> list[_Pipe]:
    pipes = [_Pipe(deque()) for _ in PIPES]
    for number, loop in enumerate(loops):
        for _ in range(loop.iterations):
            for segment in loop.segments:
                for _ in range(segment.repeats):
                    for operation in segment.template:
                        pipes[operation.pipe].queue.append((operation, number, loop.active))
    return pipes


def _start_operations(cores: list[_Core], now: float) -> bool:
    """Start whatever can start now; whether anything did."""
    any_started = False
    for core in cores:
        arrived = [flag for time, flag in core.arriving if time <= now + SAME]
        core.arriving = [(time, flag) for time, flag in core.arriving if time > now + SAME]
        for flag in arrived:
            core.flags[flag] = core.flags.get(flag, 0) + 1
        for pipe in core.pipes:
            if pipe.running or not pipe.queue or pipe.free_at > now + SAME:
                continue
            operation, loop, active = pipe.queue[0]
            if any(core.flags.get(flag, 0) < 1 for flag in operation.takes):
                continue
            pipe.queue.popleft()
            for flag in operation.takes:
                core.flags[flag] -= 1
            pipe.running, pipe.loop, pipe.active, pipe.start = operation, loop, active, now
            shared = operation.channel >= 0 and operation.bytes > 0
            pipe.end = None if shared else now + operation.cycles
            pipe.bytes_left, pipe.channel = operation.bytes, operation.channel
            pipe.flows_from = now + operation.cycles
            any_started = True
    return any_started


def _rates(cores: list[_Core], program: Program, now: float) -> list[float]:
    """Bytes a cycle of each transfer on each shared channel."""
    flowing = [pipe for core in cores for pipe in core.pipes if pipe.flows(now)]
    counts = [sum(pipe.channel == channel for pipe in flowing) for channel in range(CHANNELS)]
    capacity = program.schedule.placed_on.hbm_bytes_per_cycle
    if len(cores) == 1 and flowing:
        # One core has a static share; the transfer furthest in the program says how many cores share.
        capacity /= max(flowing, key=lambda pipe: pipe.loop).active
    limits = program.channel_rates
    rates = [0.0] * CHANNELS
    waiting = {channel for channel in range(CHANNELS) if counts[channel]}
    while waiting:
        level = capacity / sum(counts[channel] for channel in waiting)
        limited = {channel for channel in waiting if limits[channel] <= level}
        for channel in limited or waiting:
            rates[channel] = limits[channel] if limited else level
            capacity -= rates[channel] * counts[channel]
        waiting -= limited or waiting
    return rates


def _next_time(core: _Core, rates: list[float], now: float) -> float | None:
    """When something next happens in a core."""
    times = [time for time, _ in core.arriving]
    for pipe in core.pipes:
        if pipe.flows(now):
            times.append(now + max(pipe.bytes_left, 0.0) / rates[pipe.channel])
        elif pipe.running:
            times.append(pipe.flows_from if pipe.end is None else pipe.end)
        elif pipe.queue and pipe.free_at > now + SAME:
            times.append(pipe.free_at)
    return max(min(times), now) if times else None


def _end_operations(number: int, core: _Core, now: float, serial: bool, done: list[tuple]) -> None:
    for index, pipe in enumerate(core.pipes):
        operation = pipe.running
        if operation is None:
            continue
        over = pipe.bytes_left <= SAME * operation.bytes if pipe.end is None else pipe.end <= now + SAME
        if over:
            done.append((number, index, operation.kind, pipe.start, now))
            ready = now + operation.latency
            pipe.free_at = ready if serial else now
            pipe.running = None
            core.arriving.extend((ready, flag) for flag in operation.raises)
