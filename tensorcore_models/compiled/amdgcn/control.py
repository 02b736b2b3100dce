"""Builds control flow and waits of waves: branches, s_barrier, s_waitcnt, s_endpgm (CDNA3 ISA, "Program Flow Control")."""

from collections.abc import Callable

import numpy as np

from ..errors import KernelFault, Refused
from ..scheduler import Jump, Split, Wait
from .scalar_operands import Operation, ScalarSource, ScalarTarget, unknown
from .syntax import EXEC, SCC, VCC, AMDInstruction, Call, Literal


def _pair_is_zero(first: int) -> Callable:
    def held(machine, waves):
        return (machine.read_scalar(first, waves) | machine.read_scalar(first + 1, waves)) == 0

    return held


def _scc(machine, waves):
    held = machine.read_scalar(SCC, waves)
    if machine.trace is not None:
        machine.trace.decided(machine.scalars.read_ids(SCC, waves), held, False)
    return held


#: Conditions of branches: (tested register, value for which the branch is taken).
_CONDITIONS: dict[str, tuple[Callable, bool]] = {
    "s_cbranch_scc0": (_scc, False), "s_cbranch_scc1": (_scc, True),
    "s_cbranch_vccz": (_pair_is_zero(VCC), True), "s_cbranch_vccnz": (_pair_is_zero(VCC), False),
    "s_cbranch_execz": (_pair_is_zero(EXEC), True), "s_cbranch_execnz": (_pair_is_zero(EXEC), False),
}  # fmt: skip


def build_branch(ins: AMDInstruction) -> Operation:
    """Return a branch, with or without a condition."""
    target = ins.target
    if target is None:
        raise unknown(ins, "has no label of this kernel as its target")
    jump = Jump(target)
    if ins.name == "s_branch":
        return lambda machine, waves: jump
    asked, wanted = _CONDITIONS[ins.name]

    def run(machine, waves):
        taken = asked(machine, waves) == wanted
        if taken.all():
            return jump
        if not taken.any():
            return None
        return Split(np.flatnonzero(taken) if waves is None else waves[taken], target)

    return run


def build_place(ins: AMDInstruction) -> Operation:
    """Return the operation of s_getpc_b64, which gives the address of the next instruction in the code object."""
    target, behind = ScalarTarget(ins.operands[0], "b64", ins), ins.behind
    if behind is None:
        raise unknown(
            ins,
            "needs the addresses of a code object, but the kernel was read from assembly text: pass the code object",
        )
    place = np.uint64(behind)
    return lambda machine, waves: target.write(machine, place, waves)


def build_far_branch(ins: AMDInstruction) -> Operation:
    """Return the operation of s_setpc_b64, a jump to an address that a 16-bit branch cannot reach."""
    source = ScalarSource(ins.operands[0], "b64", ins)

    def run(machine, waves):
        found = np.unique(source.read(machine, waves))
        if len(found) > 1:
            raise Refused(f"{ins.opcode} to addresses that differ between waves is not modelled", ins.line)
        place = machine.launch.kernel.places.get(int(found[0]))
        if place is None:
            raise KernelFault(f"jumps to the address {int(found[0]):#x}, where the kernel has no instruction", ins.line)
        return Jump(place)

    return run


def build_end(ins: AMDInstruction) -> Operation:
    """Return the operation of s_endpgm, which ends waves."""

    def run(machine, waves):
        done = machine.waves.all_lanes if waves is None else waves
        machine.alive -= np.bincount(machine.waves.row[done], minlength=len(machine.alive))
        _release(machine)
        return Split(done, None)

    return run


def _release(machine) -> None:
    """Release the blocks all of whose waves have come to the barrier."""
    complete = (machine.arrived > 0) & (machine.arrived >= machine.alive)
    if complete.any():
        machine.arrived[complete] = 0
        machine.phase[complete] += 1
        machine.events += 1
        if machine.launch.checks:
            machine.checks.synchronised(np.flatnonzero(complete[machine.threads.row]))


def build_barrier(ins: AMDInstruction) -> Operation:
    """Return the operation of s_barrier, at which the running waves of a block wait for each other."""

    def ready(machine):
        return lambda waves: machine.phase[machine.waves.row[waves]] > machine.seen_phase[waves]

    def run(machine, waves):
        here = machine.waves.all_lanes if waves is None else waves
        machine.seen_phase[here] = machine.phase[machine.waves.row[here]]
        machine.arrived += np.bincount(machine.waves.row[here], minlength=len(machine.arrived))
        _release(machine)
        held = ready(machine)
        done = held(here)
        return None if done.all() else Wait(here[~done], held, again=False)

    return run


#: The counter vmcnt has six bits, the other counters have fewer.
_LARGEST_COUNT = 63


def build_wait(ins: AMDInstruction) -> Operation:
    """Return the operation of s_waitcnt, which waits until at most the stated number of accesses are outstanding."""
    counts: dict[str, int] = {}
    for operand in ins.operands:
        if isinstance(operand, Literal) and isinstance(operand.value, int):  # bits as they are encoded
            word = operand.value
            counts = {"vmcnt": word & 15 | word >> 10 & 48, "expcnt": word >> 4 & 7, "lgkmcnt": word >> 8 & 15}
        elif isinstance(operand, Call) and operand.name in ("vmcnt", "lgkmcnt", "expcnt"):
            counts[operand.name] = int(operand.arguments[0], 0)
            if not 0 <= counts[operand.name] <= _LARGEST_COUNT:
                raise unknown(
                    ins, f"waits for {operand.arguments[0]} accesses, but counters hold 0 to {_LARGEST_COUNT}"
                )
        else:
            raise unknown(ins, "waits for a counter other than vmcnt, lgkmcnt and expcnt")
    vector_memory, others = counts.get("vmcnt"), counts.get("lgkmcnt")
    # Waiting for the largest number that a counter holds means no wait.
    vector_memory, others = None if vector_memory == 63 else vector_memory, None if others == 15 else others
    return lambda machine, waves: machine.counters.waited(waves, vector_memory, others)


def build_trap(ins: AMDInstruction) -> Operation:
    """Return the operation of s_trap, by which the kernel stops itself."""

    def run(machine, waves):
        raise KernelFault("the kernel stops itself by s_trap")

    return run


def build_cache(ins: AMDInstruction) -> Operation:
    """Return the operation of buffer_wbl2 or buffer_inv, which releases and acquires use on caches: it orders accesses of
    global memory."""

    def run(machine, waves):
        lanes = machine.lanes(waves)
        if lanes is None or len(lanes):
            machine.checks.exchanged(lanes)

    return run


def nothing(ins: AMDInstruction) -> Operation:
    """Return the operation of an instruction that changes no values."""
    return lambda machine, waves: None


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    "s_branch": build_branch, "s_getpc_b64": build_place, "s_setpc_b64": build_far_branch,
    **dict.fromkeys(_CONDITIONS, build_branch), "s_endpgm": build_end, "s_barrier": build_barrier,
    "s_waitcnt": build_wait, "s_trap": build_trap,
    **dict.fromkeys(("buffer_wbl2", "buffer_inv", "buffer_wbinvl1", "buffer_wbinvl1_vol"), build_cache),
    **dict.fromkeys(
        ("s_nop", "s_setprio", "s_sleep", "s_sethalt", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_clause",
         "s_code_end", "s_ttracedata", "s_inst_prefetch", "s_waitcnt_depctr", "s_waitcnt_vscnt"), nothing
    ),
}  # fmt: skip
