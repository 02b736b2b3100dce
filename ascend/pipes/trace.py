"""This module turns a recorded simulation into a Chrome/Perfetto trace, rows for a Gantt chart, and buffer occupancy.

Format: Chrome trace events (``{"traceEvents": [...]}``; complete events X, metadata M, flow arrows s and f, counters
C), time in microseconds; chrome://tracing and ui.perfetto.dev read it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ascend.pipes.arrays import FLAG_WIDTH
from ascend.pipes.records import PhaseResult, Run
from ascend.programs.program import FLAG_NUMBER, FLAGS, PIPES
from tensorcore_models.files import write_text

#: Pools of buffer slots: the flag of a free slot, and the buffer's name in pictures.
POOLS = {
    "A_L1_FREE": "L1 A",
    "B_L1_FREE": "L1 B",
    "L0A_FREE": "L0A",
    "L0B_FREE": "L0B",
    "L0C_FREE": "L0C",
    "OLD_FREE": "UB in",
    "UB_FREE": "UB out",
}


class Bar(NamedTuple):
    """`Bar` is one operation on one pipe, in cycles from the start of the whole run."""

    pipe: int
    kind: str
    start: float
    end: float
    phase: str
    bytes: float


def _phases(run: Run) -> Iterator[tuple[PhaseResult, float]]:
    """Yield recorded phases with the cycle at which each starts."""
    start = 0.0
    for phase in run.phases:
        yield phase, start + phase.launch
        start += phase.launch + phase.cycles


def bars(run: Run, first: float = 0.0, last: float = float("inf")) -> list[Bar]:
    """Return operations of core 0 that overlap the cycles [first, last]."""
    found = []
    for phase, offset in _phases(run):
        flat, r = phase.flat, phase.recorded
        inside = np.flatnonzero((r.end + offset >= first) & (r.start + offset <= last) & (r.core == 0))
        for i in inside.tolist():
            op, start, end = r.operation[i], float(r.start[i]) + offset, float(r.end[i]) + offset
            found.append(Bar(int(flat.op_pipe[op]), flat.kinds[op], start, end, phase.name, float(flat.op_bytes[op])))
    return found


def occupancy(run: Run) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the used bytes of each buffer of core 0 from each of the given cycles on, in whole slots."""
    slot_bytes = {phase.name: phase.slot_bytes for phase in run.program.phases}
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in POOLS.values()}
    for phase, offset in _phases(run):
        for flag, name in POOLS.items():
            taken, raised = _flag_times(phase, FLAG_NUMBER[flag])
            if len(taken):
                times = np.concatenate([taken, raised]) + offset
                change = np.concatenate([np.ones(len(taken)), -np.ones(len(raised))])
                # A slot handed on at one instant is not two slots, so releases come first.
                order = np.lexsort((change, times))
                parts[name].append((times[order], change[order] * slot_bytes[phase.name][flag]))
    return {
        name: (np.concatenate([t for t, _ in rows]), np.cumsum(np.concatenate([c for _, c in rows])))
        for name, rows in parts.items()
        if rows
    }


def _flag_times(phase: PhaseResult, flag: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the cycles at which operations of core 0 take a flag, and those at which they raise it."""
    flat, r = phase.flat, phase.recorded
    takes = flat.op_takes.reshape(-1, FLAG_WIDTH), flat.op_take_count
    raises = flat.op_raises.reshape(-1, FLAG_WIDTH), flat.op_raise_count
    counts = [
        np.array([(row[:count] == flag).sum() for row, count in zip(*side, strict=True)]) for side in (takes, raises)
    ]
    own = r.core == 0
    start, end, operation = r.start[own], r.end[own] + flat.op_latency[r.operation[own]], r.operation[own]
    return np.repeat(start, counts[0][operation]), np.repeat(end, counts[1][operation])


def trace_events(run: Run, most_operations: int = 100_000) -> list[dict]:
    """Return the Chrome trace events of core 0: lanes, operations, flag arrows, buffer counters.

    The number of operations is limited, because no viewer opens a trace of millions.
    """
    per_cycle = 1e6 / run.chip.cycles_per_second
    events: list[dict] = [{"ph": "M", "pid": 0, "name": "process_name", "args": {"name": f"{run.chip.name} core 0"}}]
    for lane, pipe in enumerate(PIPES):
        events.append({"ph": "M", "pid": 0, "tid": lane, "name": "thread_name", "args": {"name": pipe}})
        events.append({"ph": "M", "pid": 0, "tid": lane, "name": "thread_sort_index", "args": {"sort_index": lane}})
    left, horizon, arrow = most_operations, 0.0, 0
    for phase, offset in _phases(run):
        if left <= 0:
            break
        flat, r = phase.flat, phase.recorded
        order = np.argsort(r.start, kind="stable")[:left]
        left -= len(order)
        horizon = offset + float(r.end[order].max(initial=0.0))
        for i in order.tolist():
            events.append(_operation_event(phase, i, offset, per_cycle))
        kept = np.zeros(len(r.start), np.bool_)
        kept[order] = True
        for source, target in _arrows(phase, run.program.initial_flags):
            if not (kept[source] and kept[target]):
                continue
            arrow += 1
            ends = (("s", source, float(r.end[source])), ("f", target, float(r.start[target])))
            for ph, i, cycle in ends:
                event = {
                    "ph": ph, "pid": 0, "tid": int(flat.op_pipe[r.operation[i]]), "id": arrow, "name": "flag",
                    "cat": "flag", "ts": (cycle + offset) * per_cycle,
                }  # fmt: skip
                events.append(event | ({"bp": "e"} if ph == "f" else {}))
    for name, (times, used) in occupancy(run).items():
        inside = times <= horizon
        for cycle, value in zip(times[inside].tolist(), used[inside].tolist(), strict=True):
            events.append({"ph": "C", "pid": 0, "name": name, "ts": cycle * per_cycle, "args": {"bytes": value}})
    return events


def _operation_event(phase: PhaseResult, record: int, offset: float, per_cycle: float) -> dict:
    """Return the event of one record, for a phase that begins at a given cycle."""
    flat, r = phase.flat, phase.recorded
    op, start, cycles = int(r.operation[record]), float(r.start[record]), float(r.end[record] - r.start[record])
    return {
        "ph": "X", "pid": 0, "tid": int(flat.op_pipe[op]), "name": flat.kinds[op], "cat": phase.name,
        "ts": (start + offset) * per_cycle, "dur": cycles * per_cycle,
        "args": {
            "start cycle": start + offset, "cycles": cycles, "bytes": float(flat.op_bytes[op]),
            "cube steps": int(flat.op_cube_steps[op]), "iteration": int(r.iteration[record]),
            "waited for": [list(FLAGS)[f] for f in _flags_of(flat.op_takes, flat.op_take_count, op)],
        },
    }  # fmt: skip


def _flags_of(table: np.ndarray, counts: np.ndarray, operation: int) -> list[int]:
    """Return the numbers of the flags in one operation's row of a flag table."""
    return table[operation * FLAG_WIDTH :][: counts[operation]].tolist()


def _arrows(phase: PhaseResult, initial: dict[str, int]) -> Iterator[tuple[int, int]]:
    """Yield (raising record, taking record) of each FULL flag: the n-th taking belongs to the n-th raising."""
    flat, r = phase.flat, phase.recorded
    for name, number in FLAG_NUMBER.items():
        if name in initial:  # arrows back to free slots would only clutter
            continue
        raised, taken = [], []
        for i, op in enumerate(r.operation.tolist()):
            raised += [i] * _flags_of(flat.op_raises, flat.op_raise_count, op).count(number)
            taken += [i] * _flags_of(flat.op_takes, flat.op_take_count, op).count(number)
        raised.sort(key=lambda i: r.end[i] + flat.op_latency[r.operation[i]])
        taken.sort(key=lambda i: r.start[i])
        yield from zip(raised, taken, strict=False)


def write_trace(run: Run, path: str | Path, most_operations: int = 100_000) -> None:
    """Write the trace of a recorded run as JSON, completely or not at all.

    Raises FileNotFoundError if the folder does not exist.
    """
    path, s = Path(path), run.schedule
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: No such file or directory: make the folder {path.parent} first")
    document = {
        "traceEvents": trace_events(run, most_operations),
        "displayTimeUnit": "ns",
        "otherData": {
            "chip": run.chip.name, "m": s.m, "k": s.k, "n": s.n, "block": str(s.blocking), "mode": s.mode,
            "buffering": s.buffering, "TFLOP/s": run.tflops, "operations": run.operations,
            "operations at most in this file": most_operations,
        },
    }  # fmt: skip
    write_text(path, json.dumps(document, separators=(",", ":")) + "\n")
