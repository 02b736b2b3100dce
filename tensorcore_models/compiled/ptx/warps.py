"""Builds instructions that the threads of a warp run together: shfl, vote, match, redux, elect (PTX ISA 9.1, 9.7.9, 9.7.13)."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..errors import KernelFault
from ..isa.floating import NAN, arithmetic
from ..isa.meaning import Meaning
from ..scheduler import Wait
from .decode import Operation, reader, registers_of, unknown
from .machine import WARP
from .syntax import Pair, PTXInstruction, Register, Sink


def warp_lanes(machine, lanes: np.ndarray | None, ins: PTXInstruction) -> np.ndarray:
    """Return the lanes of the warps that run an instruction, one warp a row; raise KernelFault if a part of a warp is
    missing."""
    if lanes is None:
        return machine.threads.all_lanes.reshape(-1, WARP)
    if len(lanes) % WARP == 0:
        rows = lanes.reshape(-1, WARP)
        if (rows[:, 0] % WARP == 0).all() and (rows[:, -1] - rows[:, 0] == WARP - 1).all():
            return rows
    raise KernelFault(f"{ins.opcode} is run by a part of a warp only; all its threads must run it")


def whole_warps(operation: Operation) -> Operation:
    """Return the operation, at which lanes wait until all threads of their warp have arrived."""

    def run(machine, lanes):
        if lanes is None:
            return operation(machine, lanes)
        warps = lanes // WARP
        count = np.bincount(warps, minlength=machine.threads.count // WARP)
        here = count[warps] == machine.threads_in_warps[warps]
        if here.all():
            return operation(machine, lanes)
        waiting = lanes[~here]
        if here.any():
            control = operation(machine, lanes[here])
            if control is not None:
                raise KernelFault("an instruction of whole warps branches")
        return Wait(waiting, None, again=True, merge=True)

    return run


def _spread(machine, values, lanes) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of every lane, one warp a row, and a mask of the lanes that run."""
    threads = machine.threads
    values = np.asarray(values)
    if lanes is None:
        return np.broadcast_to(values, (threads.count,)).reshape(-1, WARP), np.ones((threads.count // WARP, WARP), bool)
    whole, active = np.zeros(threads.count, values.dtype), np.zeros(threads.count, bool)
    whole[lanes], active[lanes] = values, True
    return whole.reshape(-1, WARP), active.reshape(-1, WARP)


def _gathered(values: np.ndarray, lanes) -> np.ndarray:
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat if lanes is None else flat[lanes]


def _shuffle_source(mode: str, step: np.ndarray, packed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane that each lane reads, and whether it is inside of the segment, one warp a row (PTX ISA 9.7.9.6)."""
    step = (step & np.uint32(31)).astype(np.int64)
    bound, segment = ((packed >> np.uint32(by) & np.uint32(31)).astype(np.int64) for by in (0, 8))
    lane = np.arange(WARP)[None, :]
    last, first = (lane & segment) | (bound & ~segment), lane & segment
    source = {"up": lane - step, "down": lane + step, "bfly": lane ^ step, "idx": first | (step & ~segment)}[mode]
    inside = source >= last if mode == "up" else source <= last
    return np.where(inside, source, lane), inside


def build_shuffle(ins: PTXInstruction) -> Operation:
    """Return shfl.sync, which reads values of other lanes of the warp.

    Reading an unwritten value makes the result unwritten.
    """
    mode = next((w for w in ins.modifiers if w in ("up", "down", "bfly", "idx")), None)
    if mode is None or "sync" not in ins.modifiers or ins.modifiers[-1] != "b32":
        raise unknown(ins)
    target: Any = ins.operands[0]
    flag: Any = None
    if isinstance(target, Pair):
        target, flag = target.first, target.second
    value, by, clamp = (reader(operand, "b32", ins) for operand in ins.operands[1:4])
    sources = registers_of(ins.operands[1:2])

    def run(machine, lanes):
        registers = machine.registers
        absent = registers.unwritten(sources[0], lanes) if sources else None
        with registers.unchecked() if absent is not None else nullcontext():
            values, active = _spread(machine, value(machine, lanes), lanes)
        source, inside = _shuffle_source(
            mode, _spread(machine, by(machine, lanes), lanes)[0], _spread(machine, clamp(machine, lanes), lanes)[0]
        )
        if (active & ~np.take_along_axis(active, source, 1)).any():
            raise KernelFault(f"{ins.opcode} reads a lane that does not run the instruction")
        if not isinstance(target, Sink):
            found = np.take_along_axis(values, source, 1)
            registers.write(
                target.number, _gathered(found, lanes), lanes, _shuffled_ids(machine, sources, source, lanes)
            )
            if absent is not None:
                whole = _spread(machine, absent, lanes)[0]
                registers.forget(target.number, lanes, _gathered(np.take_along_axis(whole, source, 1), lanes))
        if flag is not None and not isinstance(flag, Sink):
            registers.write(flag.number, _gathered(inside, lanes), lanes)

    return whole_warps(run)


def _shuffled_ids(machine, sources: tuple[int, ...], source: np.ndarray, lanes) -> np.ndarray | None:
    """Return the expressions of the lanes' bytes after a shuffle."""
    own = machine.registers.read_ids(sources[0], None) if machine.trace is not None and sources else None
    if own is None:
        return None
    flat = (source + WARP * np.arange(len(source))[:, None]).reshape(-1)
    return own[flat] if lanes is None else own[flat][lanes]


def _members(machine, mask, lanes) -> np.ndarray:
    """Return a mask of the running lanes that a membership mask names, one warp a row."""
    masks, active = _spread(machine, np.asarray(mask).astype(np.uint32), lanes)
    return active & (masks >> np.arange(WARP, dtype=np.uint32) & np.uint32(1) != 0)


def build_vote(ins: PTXInstruction) -> Operation:
    """Return vote.sync: all, any, uni or ballot."""
    words = ins.modifiers
    if "sync" not in words:
        raise unknown(ins)
    mode = next((w for w in words if w in ("all", "any", "uni", "ballot")), None)
    target = ins.operands[0]
    value, mask = reader(ins.operands[1], "pred", ins), reader(ins.operands[2], "u32", ins)

    def run(machine, lanes):
        held, _ = _spread(machine, value(machine, lanes), lanes)
        if machine.trace is not None and isinstance(ins.operands[1], Register):
            machine.trace.decided(machine.registers.read_ids(ins.operands[1].number, lanes), held, False)
        members = _members(machine, mask(machine, lanes), lanes)
        yes = (held & members).sum(1)
        total = members.sum(1)
        if mode == "ballot":
            out = ((held & members).astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(1).astype(np.uint32)
        else:
            out = {"all": yes == total, "any": yes > 0, "uni": (yes == total) | (yes == 0)}[mode]
        machine.registers.write(target.number, _gathered(np.repeat(out[:, None], WARP, 1), lanes), lanes)

    return whole_warps(run)


def _groups(machine, mask, lanes, ins: PTXInstruction) -> Iterator[np.ndarray]:
    """Yield each membership mask that lanes give, with the lanes of each warp that give it, one warp a row.

    A lane that its own mask does not name, or that gives another mask than a lane that names it, raises KernelFault: PTX leaves
    both undefined.
    """
    masks, active = _spread(machine, np.asarray(mask).astype(np.uint32), lanes)
    for each in np.unique(masks[active]):
        named = each >> np.arange(WARP, dtype=np.uint32) & np.uint32(1) != 0
        members = active & (masks == each)
        if (members & ~named).any():
            raise KernelFault(f"{ins.opcode} is run by a lane that its mask {each:#x} does not name")
        if (members.any(1)[:, None] & active & named & ~members).any():
            raise KernelFault(f"{ins.opcode}: a lane that the mask {each:#x} names gives another mask")
        yield members


#: Reductions of integers and bits: function of two numbers, and its neutral element by type.
_REDUCTIONS: dict[str, tuple[np.ufunc, Callable[[np.dtype], int]]] = {
    "add": (np.add, lambda dtype: 0), "or": (np.bitwise_or, lambda dtype: 0), "xor": (np.bitwise_xor, lambda dtype: 0),
    "and": (np.bitwise_and, lambda dtype: np.iinfo(dtype).max), "min": (np.minimum, lambda dtype: np.iinfo(dtype).max),
    "max": (np.maximum, lambda dtype: np.iinfo(dtype).min),
}  # fmt: skip
#: Modifiers of redux.sync by the type of its numbers (PTX ISA 9.0, "redux.sync").
_REDUCED = {**dict.fromkeys(("u32", "s32"), ("add", "min", "max")), "b32": ("and", "or", "xor"), "f32": ("min", "max")}
_INFINITY, _SIGN = np.uint32(0x7F800000), np.uint32(0x80000000)


def _reduced_numbers(name: str, words: tuple[str, ...]) -> Callable:
    """Return the largest or smallest of the members' f32 encodings.

    -0 is below +0, a NaN counts only with .NaN or if all are NaN.
    """
    nan_wins = "NaN" in words
    chosen = arithmetic(Meaning(name, "f32", ("f32", "f32"), options=("NaN",) if nan_wins else ()))
    least = _INFINITY if name == "min" else _INFINITY | _SIGN
    neutral = least if nan_wins else np.uint32(NAN["fp32"])

    def reduced(values, members):
        left = np.where(members, values & ~_SIGN if "abs" in words else values, neutral)
        while left.shape[1] > 1:
            left = chosen(*np.split(left, 2, axis=1))
        return left

    return reduced


def _reduced_integers(name: str) -> Callable:
    function, neutral = _REDUCTIONS[name]

    def reduced(values, members):
        left = np.where(members, values, values.dtype.type(neutral(values.dtype)))
        return function.reduce(left, axis=1, keepdims=True).astype(values.dtype)

    return reduced


def build_reduce(ins: PTXInstruction) -> Operation:
    """Return redux.sync over the lanes of a mask: sum, minimum, maximum, and, or, xor; of f32 minimum and maximum."""
    words, kind = ins.modifiers, ins.modifiers[-1]
    name = words[1] if len(words) > 2 else ""
    between = words[2:-1]
    known = ((), ("abs",), ("NaN",), ("abs", "NaN")) if kind == "f32" else ((),)
    if words[0] != "sync" or name not in _REDUCED.get(kind, ()) or between not in known:
        raise unknown(ins)
    value, mask = reader(ins.operands[1], kind, ins), reader(ins.operands[2], "u32", ins)
    reduced = _reduced_numbers(name, between) if kind == "f32" else _reduced_integers(name)
    target = ins.operands[0]

    def run(machine, lanes):
        values, _ = _spread(machine, value(machine, lanes), lanes)
        out = np.zeros_like(values)
        for members in _groups(machine, mask(machine, lanes), lanes, ins):
            out = np.where(members, reduced(values, members), out)
        machine.registers.write(target.number, _gathered(out, lanes), lanes)

    return whole_warps(run)


def build_match(ins: PTXInstruction) -> Operation:
    """Return match.any.sync: the lanes of the mask that hold the same value."""
    kind = ins.modifiers[-1]
    if "any" not in ins.modifiers:
        raise unknown(ins)
    value, mask = reader(ins.operands[1], kind, ins), reader(ins.operands[2], "u32", ins)
    target = ins.operands[0]

    def run(machine, lanes):
        values, _ = _spread(machine, value(machine, lanes), lanes)
        members = _members(machine, mask(machine, lanes), lanes)
        same = (values[:, :, None] == values[:, None, :]) & members[:, None, :]
        out = (same.astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(2).astype(np.uint32)
        machine.registers.write(target.number, _gathered(out, lanes), lanes)

    return whole_warps(run)


def build_elect(ins: PTXInstruction) -> Operation:
    """Return elect.sync, which elects one lane of the mask; PTX leaves the choice open, here it is the lowest lane."""
    target, mask = ins.operands[0], reader(ins.operands[1], "u32", ins)
    if not isinstance(target, Pair):
        raise unknown(ins)

    def run(machine, lanes):
        members = _members(machine, mask(machine, lanes), lanes)
        leader = members.argmax(1)
        chosen = np.arange(WARP) == leader[:, None]
        if not isinstance(target.first, Sink):
            leaders = np.repeat(leader.astype(np.uint32)[:, None], WARP, 1)
            machine.registers.write(target.first.number, _gathered(leaders, lanes), lanes)
        machine.registers.write(target.second.number, _gathered(chosen & members, lanes), lanes)

    return whole_warps(run)


def build_activemask(ins: PTXInstruction) -> Operation:
    """Return activemask, the lanes that run it now; the result depends on how the hardware groups diverged lanes."""

    def run(machine, lanes):
        _, active = _spread(machine, np.uint32(0) if lanes is None else np.zeros(len(lanes), np.uint32), lanes)
        if not active.reshape(-1)[machine.threads.all_lanes].all():
            machine.assume("activemask names the threads that stand at the same instruction")
        out = (active.astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(1).astype(np.uint32)
        machine.registers.write(ins.operands[0].number, _gathered(np.repeat(out[:, None], WARP, 1), lanes), lanes)

    return run


BUILDERS = {
    "shfl": build_shuffle, "vote": build_vote, "redux": build_reduce, "match": build_match, "elect": build_elect,
    "activemask": build_activemask,
}  # fmt: skip
