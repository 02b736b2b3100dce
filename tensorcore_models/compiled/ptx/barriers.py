"""Builds branches, barriers of blocks, warps and clusters, mbarriers and fences (PTX ISA 9.1, 9.7.12 and 9.7.13).

An mbarrier's 64 bits in shared memory hold, from the low end: expected arrivals (20 bits), pending arrivals (20), pending bytes
(23, with a sign), phase (1). PTX leaves the encoding open.
"""

import numpy as np

from ..errors import KernelFault
from ..scheduler import Jump, Split, Wait
from .decode import Operation, holding, reader, unknown
from .machine import BARRIERS
from .movement import address_reader, nothing
from .syntax import PTXInstruction, Register, Sink
from .warps import whole_warps


# -- branches and ends -----------------------------------------------------------------------------------------------------
def branch(ins: PTXInstruction, target: int) -> Operation:
    """Return bra: lanes whose predicate holds go to the label, the others go on."""
    if ins.guard is None:
        jump = Jump(target)
        return lambda machine, lanes: jump
    number, negated = ins.guard[0].number, ins.guard[1]

    def run(machine, lanes):
        taken = holding(machine, number, negated, lanes)
        if taken is lanes:
            return Jump(target)
        return Split(taken, target) if len(taken) else None

    return run


def leave(ins: PTXInstruction) -> Operation:
    """Return ret or exit, which ends the lanes."""

    def run(machine, lanes):
        active = lanes if ins.guard is None else holding(machine, ins.guard[0].number, ins.guard[1], lanes)
        active = machine.threads.all_lanes if active is None else active
        if not len(active):
            return None
        machine.alive -= np.bincount(machine.threads.row[active], minlength=machine.threads.blocks)
        for number in np.flatnonzero(machine.arrived.any(0)).tolist():
            release(machine, number)
        return Split(active, None)

    return run


def build_trap(ins: PTXInstruction) -> Operation:
    """Return trap, by which the kernel stops itself."""

    def run(machine, lanes):
        raise KernelFault("the kernel stops itself by trap")

    return run


# -- barriers of a block -----------------------------------------------------------------------------------------------------
def build_barrier(ins: PTXInstruction) -> Operation:
    """Return bar or barrier: sync and arrive of a block, a warp's barrier, a cluster's barrier."""
    words = ins.modifiers
    if words[0] == "warp":
        return whole_warps(lambda machine, lanes: machine.checks.warp_synchronised(lanes))
    if words[0] == "cluster":
        return _cluster_barrier(ins)
    if "red" in words or not {"sync", "arrive"} & set(words):
        raise unknown(ins)
    which = reader(ins.operands[0], "u32", ins) if ins.operands else None
    counted = reader(ins.operands[1], "u32", ins) if len(ins.operands) > 1 else None
    sync = "sync" in words

    def run(machine, lanes):
        number = 0 if which is None else np.asarray(which(machine, lanes))
        if np.ndim(number) and (number != number.flat[0]).any():
            raise KernelFault("the threads of a warp name different barriers")
        number = int(np.asarray(number).reshape(-1)[0])
        if number >= BARRIERS:
            raise KernelFault(f"names barrier {number}, but a block has barriers 0 to {BARRIERS - 1}")
        needed = None if counted is None else int(np.asarray(counted(machine, lanes)).reshape(-1)[0])
        return arrive(machine, lanes, number, needed, sync=sync)

    return run


def arrive(machine, lanes: np.ndarray | None, number: int, needed: int | None, *, sync: bool):
    """Count threads as arrived at a barrier of their block; with `sync`, they also wait for it."""
    threads = machine.threads
    if lanes is None and needed is None and not machine.arrived[:, number].any():
        machine.checks.synchronised(threads.all_lanes)
        return None
    everyone = threads.all_lanes if lanes is None else lanes
    rows = threads.row[everyone]
    machine.barrier_seen[everyone] = machine.phase[rows, number]
    machine.arrived[:, number] += np.bincount(rows, minlength=threads.blocks)
    machine.wanted[rows, number] = -1 if needed is None else needed
    machine.checks.arriving(everyone, number)
    release(machine, number)
    if not sync:
        return None

    def ready(some):
        return machine.phase[threads.row[some], number] != machine.barrier_seen[some]

    waiting = everyone[~ready(everyone)]
    return Wait(waiting, ready, again=False) if len(waiting) else None


def release(machine, number: int) -> None:
    """Complete the barrier for each block in which all threads (or as many as it counts) have arrived."""
    wanted = np.where(machine.wanted[:, number] < 0, machine.alive, machine.wanted[:, number])
    full = (machine.arrived[:, number] >= wanted) & (machine.arrived[:, number] > 0)
    if full.any():
        machine.arrived[full, number] = 0
        machine.phase[full, number] += 1
        machine.events += 1
        machine.checks.completed(np.flatnonzero(full), number)


def _cluster_barrier(ins: PTXInstruction) -> Operation:
    """Return barrier.cluster: arrive counts all threads of the cluster, wait waits for them."""
    arriving = "arrive" in ins.modifiers

    def run(machine, lanes):
        everyone = machine.threads.all_lanes if lanes is None else lanes
        size = machine.cluster_size
        groups = machine.threads.row[everyone] // size
        if arriving:
            machine.cluster_seen[everyone] = machine.cluster_phase[groups]
            machine.cluster_arrived += np.bincount(groups, minlength=len(machine.cluster_arrived))
            full = machine.cluster_arrived >= machine.alive.reshape(-1, size).sum(1)
            if full.any():
                machine.cluster_arrived[full] = 0
                machine.cluster_phase[full] += 1
                machine.events += 1
            return None

        def ready(some):
            return machine.cluster_phase[machine.threads.row[some] // size] != machine.cluster_seen[some]

        waiting = everyone[~ready(everyone)]
        if len(waiting):
            return Wait(waiting, ready, again=False)
        machine.checks.synchronised(everyone)
        return None

    return run


# -- mbarriers ---------------------------------------------------------------------------------------------------------------
_COUNT, _BYTES = 20, 23
_PENDING, _TX, _PHASE = _COUNT, 2 * _COUNT, 2 * _COUNT + _BYTES
_COUNT_MASK, _BYTES_MASK = (1 << _COUNT) - 1, (1 << _BYTES) - 1


def _fields(word: int) -> tuple[int, int, int, int]:
    """Return the fields of an mbarrier: expected arrivals, pending arrivals, pending bytes, phase."""
    tx = word >> _TX & _BYTES_MASK
    return word & _COUNT_MASK, word >> _PENDING & _COUNT_MASK, tx - ((tx >> (_BYTES - 1)) << _BYTES), word >> _PHASE & 1


def _word(expected: int, pending: int, tx: int, phase: int) -> int:
    return expected | pending << _PENDING | (tx & _BYTES_MASK) << _TX | phase << _PHASE


def update(machine, place: int, *, arrivals: int = 0, expect: int = 0, complete: int = 0) -> int:
    """Change the mbarrier at a flat place of shared memory; return its earlier state."""
    view = machine.shared.space.view(8, 1)
    before = int(view[place // 8, 0])
    expected, pending, tx, phase = _fields(before)
    if expected == 0:
        raise KernelFault("uses an mbarrier that is not initialised")
    pending, tx = pending - arrivals, tx + expect - complete
    if pending < 0 or abs(tx) >= 1 << (_BYTES - 1):
        raise KernelFault("brings more arrivals or bytes to an mbarrier than it expects")
    if pending == 0 and tx == 0:
        pending, phase = expected, phase ^ 1
        machine.events += 1
        machine.checks.phase_completed(place)
    view[place // 8, 0] = _word(expected, pending, tx, phase)
    return before


def places_of(machine, addresses: np.ndarray, lanes, *, space: str) -> np.ndarray:
    """Return the flat places of mbarriers."""
    return machine.located(space, addresses, 8, lanes, write=True)[1]


def _barrier_space(ins: PTXInstruction) -> str:
    words = ins.modifiers
    if "shared::cluster" in words:
        return "shared::cluster"
    return "shared" if {"shared", "shared::cta"} & set(words) else ""


def build_mbarrier(ins: PTXInstruction) -> Operation:
    """Return mbarrier.init, inval, arrive, arrive.expect_tx, expect_tx, complete_tx, test_wait or try_wait."""
    deed = ins.modifiers[0]
    if deed in ("test_wait", "try_wait"):
        return _waits(ins)
    if deed not in ("init", "inval", "arrive", "expect_tx", "complete_tx"):
        raise unknown(ins)
    space = _barrier_space(ins)
    operands = list(ins.operands)
    state = operands.pop(0) if deed == "arrive" and len(operands) > 1 and not _is_address(operands[0]) else None
    where = address_reader(operands[0], ins)
    number = reader(operands[1], "u32", ins) if len(operands) > 1 else None
    expecting = "expect_tx" in ins.modifiers[1:]

    def run(machine, lanes):
        everyone = machine.threads.all_lanes if lanes is None else lanes
        places = places_of(machine, where(machine, lanes), lanes, space=space)
        counts = np.broadcast_to(1 if number is None else np.asarray(number(machine, lanes)), places.shape).tolist()
        states = np.zeros(len(places), np.uint64)
        for turn, (place, count) in enumerate(zip(places.tolist(), counts, strict=True)):
            if deed in ("init", "inval"):
                if deed == "init" and not 0 < count < 1 << _COUNT:
                    raise KernelFault(
                        f"initialises an mbarrier for {count} arrivals, expected 1 to {(1 << _COUNT) - 1}"
                    )
                word = _word(count, count, 0, 0) if deed == "init" else 0
                machine.shared.space.store(np.array([place]), np.array([[word]], np.uint64))
                machine.events += 1
            elif deed == "arrive":
                machine.checks.arriving_at(int(everyone[turn]), place)
                states[turn] = update(
                    machine, place, arrivals=1 if expecting else count, expect=count if expecting else 0
                )
            else:
                update(machine, place, **{"expect" if deed == "expect_tx" else "complete": count})
        if state is not None and not isinstance(state, Sink):
            machine.registers.write(state.number, states, lanes)

    return run


def _is_address(operand) -> bool:
    return not isinstance(operand, Register | Sink)


def _waits(ins: PTXInstruction) -> Operation:
    """Return test_wait or try_wait, which say whether a phase is complete; try_wait waits for it."""
    space, parity = _barrier_space(ins), "parity" in ins.modifiers
    target, where = ins.operands[0], address_reader(ins.operands[1], ins)
    token = reader(ins.operands[2], "u32" if parity else "b64", ins)
    patient = ins.modifiers[0] == "try_wait"

    def holds(machine, lanes):
        places = places_of(machine, where(machine, lanes), lanes, space=space)
        words = machine.shared.space.view(8, 1)[places // 8, 0]
        if (words == 0).any():
            raise KernelFault("waits for an mbarrier that is not initialised")
        phase = words >> np.uint64(_PHASE) & np.uint64(1)
        wanted = np.broadcast_to(np.asarray(token(machine, lanes)).astype(np.uint64), phase.shape)
        return phase != (wanted if parity else wanted >> np.uint64(_PHASE)) & np.uint64(1), places

    def run(machine, lanes):
        done, places = holds(machine, lanes)
        everyone = machine.threads.all_lanes if lanes is None else lanes
        if done.all() or not patient:
            machine.checks.waited_for(everyone[done], places[done])
            if not isinstance(target, Sink):
                machine.registers.write(target.number, done, lanes)
            return None
        if done.any():
            machine.checks.waited_for(everyone[done], places[done])
            machine.registers.write(target.number, np.ones(int(done.sum()), bool), everyone[done])

        def give_up(some):
            machine.registers.write(target.number, np.zeros(len(some), bool), some)

        return Wait(everyone[~done], lambda some: holds(machine, some)[0], again=True, give_up=give_up)

    return run


def build_copy_arrive(ins: PTXInstruction) -> Operation:
    """Return cp.async.mbarrier.arrive: an arrival when the thread's copies are complete, which is at once here."""
    where, space = address_reader(ins.operands[0], ins), _barrier_space(ins)
    counted = "noinc" in ins.modifiers

    def run(machine, lanes):
        everyone = machine.threads.all_lanes if lanes is None else lanes
        for lane, place in zip(
            everyone.tolist(), places_of(machine, where(machine, lanes), lanes, space=space).tolist(), strict=True
        ):
            machine.checks.arriving_at(lane, place, copies=True)
            if counted:
                update(machine, place, arrivals=1)

    return run


def build_fence(ins: PTXInstruction) -> Operation:
    """Return fence or membar, which change no values; the checks watch the proxy fence."""
    if "proxy" in ins.modifiers:
        return lambda machine, lanes: machine.checks.fenced(lanes)
    if "cta" in ins.modifiers or "mbarrier_init" in ins.modifiers:
        return nothing(ins)
    return lambda machine, lanes: machine.checks.exchanged(lanes)


BUILDERS = {
    "ret": leave, "exit": leave, "trap": build_trap, "bar": build_barrier, "barrier": build_barrier,
    "mbarrier": build_mbarrier, "fence": build_fence, "membar": build_fence,
}  # fmt: skip
