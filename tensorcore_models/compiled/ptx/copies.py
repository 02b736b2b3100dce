"""Builds cp.async (PTX ISA 9.1, 9.7.9.25): the copy is done at once, so that its waits change no values."""

import numpy as np

from ..errors import KernelFault
from ..memory import WORDS
from .barriers import build_copy_arrive
from .decode import Operation, groups_left, reader, unknown
from .movement import address_reader, load, store
from .syntax import Negated, PTXInstruction
from .tensor_maps import build_bulk


def build(ins: PTXInstruction) -> Operation:
    """Return cp.async, which copies 4, 8 or 16 bytes from global to shared memory and fills the rest with zeros."""
    words = set(ins.modifiers)
    if words & {"bulk"}:
        return build_bulk(ins)
    if "commit_group" in words or "wait_group" in words or "wait_all" in words:
        return _copy_group(ins)
    if "mbarrier" in words:
        return build_copy_arrive(ins)
    if not {"shared", "shared::cta"} & words or "global" not in words:
        raise unknown(ins)
    operands = list(ins.operands)
    if "L2::cache_hint" in words:
        operands.pop()
    size = operands[2].value
    target, source = (address_reader(operand, ins) for operand in operands[:2])
    used = reader(operands[3], "u32", ins) if len(operands) > 3 else None
    if size not in (4, 8, 16) or (len(operands) > 3 and isinstance(operands[3], Negated)):
        raise unknown(ins)
    width = min(size, 8)

    def run(machine, lanes):
        goal, origin = target(machine, lanes), source(machine, lanes)
        count = None if used is None else np.broadcast_to(used(machine, lanes), goal.shape)
        everyone = machine.threads.all_lanes if lanes is None else lanes
        if count is not None and (count > size).any():
            what = f"copies {int(count.max())} bytes of {size}, which PTX leaves undefined"
            raise KernelFault(what, index=int((count > size).argmax()), lanes=lanes)
        machine.checks.copied(lanes)
        if count is None or (count == size).all():
            data, ids = load(machine, "global", origin, width, size // width, lanes)
            store(machine, "shared", goal, data, lanes, ids, kind="async")
            return
        data, ids = np.zeros((len(goal), size // width), WORDS[width]), None
        if machine.trace is not None:
            ids = np.zeros((len(goal), size), np.int64)
        for length in np.unique(count):
            if length == 0:
                continue
            some = np.flatnonzero(count == length)
            step = int(length) & -int(length) if length < size else width
            step = min(step, 8)
            got, own = load(machine, "global", origin[some], step, int(length) // step, everyone[some])
            raw = data.view(np.uint8).reshape(len(goal), size)
            raw[some[:, None], np.arange(int(length))] = np.ascontiguousarray(got).view(np.uint8)
            if own is not None:
                ids[some, : int(length)] = own
        store(machine, "shared", goal, data, lanes, ids, kind="async")

    return run


def _copy_group(ins: PTXInstruction) -> Operation:
    """Return cp.async.commit_group or wait_group, of which only the checks are told."""
    if "commit_group" in ins.modifiers:
        return lambda machine, lanes: machine.checks.committed(lanes)
    left = groups_left(ins) if ins.operands else 0
    return lambda machine, lanes: machine.checks.waited(lanes, left)


BUILDERS = {"cp": build}
