"""Defines a PTX entry that can be run: its operations, arguments, launches."""

from functools import cached_property

import numpy as np

from ...integers import checked_integer
from ..arguments import argument_arrays, argument_bytes, write_tables
from ..errors import KernelLimits, Refused
from ..expressions import ExpressionTrace, some
from ..memory import BlockMemory, GlobalMemory
from ..program import KernelProgram, LaunchOptions, checked_launch, checked_size, extents
from ..scheduler import Scheduler
from . import (
    approximations,
    atomics,
    barriers,
    copies,
    elementwise,
    mma,
    movement,
    tcgen05,
    tensor_maps,
    warps,
    wgmma,
)
from .assembled import Several, assembled
from .decode import Operation, guarded, unknown
from .machine import WARP, KernelLaunch, PTXMachine, target_of
from .movement import items
from .parse import parse
from .syntax import Address, Entry, Immediate, Module, Pair, PTXInstruction, Register, Sink, Variable

BUILDERS = {
    **elementwise.BUILDERS, **approximations.BUILDERS, **movement.BUILDERS, **copies.BUILDERS,
    **warps.BUILDERS, **barriers.BUILDERS, **atomics.BUILDERS, **mma.BUILDERS, **wgmma.BUILDERS,
    **tcgen05.BUILDERS, **tensor_maps.BUILDERS,
}  # fmt: skip


#: Instructions whose first operand may be a number: of a barrier, of groups, of registers, of nanoseconds.
_COUNTED = {"bar", "barrier", "cp", "wgmma", "nanosleep", "setmaxnreg"}
#: Most bytes of an entry's parameters (PTX ISA 9.1, 5.1.6.2).
LARGEST_PARAMETERS = 32764


class PTXProgram(KernelProgram):
    """`PTXProgram` is one entry of a PTX text.

    Attributes
    ----------
    name, target : str
        Name of the entry, and .target of the text.
    text : str
        Text of the module.
    entry : Entry
        Code with the multiply-adds that ptxas makes of products and additions (:mod:`.assembled`).
    written : Entry
        Code as it stands in the text.
    contracted : tuple of int
        Lines of the additions that became multiply-adds.
    """

    trace = ExpressionTrace
    warp = WARP

    def __init__(self, text: str, module: Module, entry: Entry, limits: KernelLimits, fmad: bool = True):
        self.text, self.module, self.written, self.limits = text, module, entry, limits
        self.entry, self.contracted = assembled(entry, fmad=fmad)
        self.name, self.target = entry.name, module.target
        self.machine_target = target_of(module.target)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.entry.code)} instructions for {self.target}>"

    @cached_property
    def operations(self) -> list[Operation]:
        """Return the instructions as functions, in order; that of an unknown instruction raises Refused when executed."""
        found = [_operation(ins, self.entry.labels.get(i)) for i, ins in enumerate(self.entry.code)]
        last = PTXInstruction("ret", (), (), None, self.entry.code[-1].line if self.entry.code else 0)
        return [*found, barriers.leave(last)]

    @property
    def unknown(self) -> dict[str, int]:
        """Return the opcodes that the emulator does not know, each with the line of its first use."""
        found: dict[str, int] = {}
        for i, ins in enumerate(self.entry.code):
            try:
                _build(ins, self.entry.labels.get(i))
            except Refused:
                found.setdefault(ins.opcode, ins.line)
        return found

    def _launch(self, arguments, options: LaunchOptions) -> KernelLaunch:
        grid, block, cluster, shared, unit, checks, unpublished, limits, trace = options
        directives = self.entry.directives
        block = extents(block, "block") if block is not None else None
        required = directives.get("reqntid")
        if required is not None:
            required = extents(required, "reqntid")
            if block not in (None, required):
                raise ValueError(f"the entry requires blocks of {required} threads, got block={block}")
            block = required
        if block is None:
            raise ValueError(f"{self.name} does not state the number of threads of a block: pass block=(x, y, z)")
        grid, block = checked_launch(grid, block, unpublished, limits)
        cluster = extents(cluster or directives.get("reqnctapercluster") or (1,), "cluster")
        if any(g % c for g, c in zip(grid, cluster, strict=True)):
            raise ValueError(f"each extent of the grid must be a multiple of the cluster's {cluster}, got {grid}")
        if cluster[0] != cluster[0] * cluster[1] * cluster[2]:
            raise Refused(f"only clusters along x are modelled, got {cluster}")
        most = self.machine_target.shared
        shared = most if shared is None else checked_integer(shared, "shared")
        if not 0 <= shared <= most:
            raise ValueError(f"shared must lie between 0 and the {most} bytes that {self.target} has, got {shared}")
        dynamic = any(v.space == "shared" and not v.size for v in (*self.module.variables, *self.entry.variables))
        static = sum(v.size for v in (*self.module.variables, *self.entry.variables) if v.space == "shared")
        if static > most:
            raise ValueError(f"{self.name} declares {static} bytes of shared memory, but {self.target} has {most}")
        arrays, names, _ = argument_arrays(arguments, [p.name for p in self.entry.parameters])
        variables = [v for v in self.module.variables if v.space in ("global", "const") and v.size]
        stored = [np.frombuffer(bytearray(v.initial or bytes(v.size)), np.uint8) for v in variables]
        checked_size([*arrays, *stored], limits)
        memory = GlobalMemory([*arrays, *stored], [*names, *(v.name for v in variables)], traced=trace is not None)
        write_tables(arguments, memory)
        given = [*arguments, *[None] * (len(self.entry.parameters) - len(arguments))]
        memory.left_out = tuple(
            p.name for p, x in zip(self.entry.parameters, given, strict=False) if x is None and p.size == 8
        )
        parameters, places = self._parameters(arguments, memory, traced=trace is not None)
        assumed: dict[str, None] = {}
        if self.contracted:
            assumed[
                f"ptxas makes multiply-adds of {len(self.contracted)} additions (line"
                f"{'s' * (len(self.contracted) > 1)} {some(self.contracted)}), its default; read(..., fmad=False) keeps them"
            ] = None
        return KernelLaunch(
            self.module, self.entry, grid, block, cluster, memory, parameters, places,
            {v.name: memory.address(len(arrays) + i) for i, v in enumerate(variables)},
            unit or self.machine_target.unit, shared if dynamic else 0, limits, checks, unpublished, trace,
            assumptions=assumed,
        )  # fmt: skip

    def _parameters(self, arguments, memory: GlobalMemory, *, traced: bool) -> tuple[BlockMemory, dict[str, int]]:
        """Return parameter memory with the arguments in it, and the place of each parameter."""
        places, at = {}, 0
        for variable in self.entry.parameters:
            at = -(-at // variable.alignment) * variable.alignment
            places[variable.name] = at
            at += variable.size
        if at > LARGEST_PARAMETERS:
            raise ValueError(
                f"{self.name} declares {at} bytes of parameters, but PTX allows at most {LARGEST_PARAMETERS}"
            )
        if len(arguments) > len(places):
            raise ValueError(f"{self.name} has {len(places)} parameters, got {len(arguments)} arguments")
        space = BlockMemory("parameter", 1, at, 0, checks=False, traced=traced)
        for argument, variable in zip(arguments, self.entry.parameters, strict=False):
            data = argument_bytes(
                argument, variable.size, variable.name.removeprefix(f"{self.name}_"), memory.address_of
            )
            start = places[variable.name]
            space.space.data[start : start + len(data)] = np.frombuffer(data, np.uint8)
        return space, places

    @property
    def parameters(self) -> list[Variable]:
        """Return the entry's parameters."""
        return self.entry.parameters

    def _scheduler(self, launch: KernelLaunch, first: int, count: int) -> Scheduler:
        lines = [ins.line for ins in self.entry.code]
        lines.append(lines[-1] if lines else 0)
        return Scheduler(self.operations, lines, PTXMachine(launch, first, count), launch.limits)

    def _together(self, launch: KernelLaunch) -> int:
        return launch.cluster[0]

    def block_bytes(self, launch: KernelLaunch, per_block: int) -> int:
        """Return the approximate memory in bytes that the emulator needs for one block of threads."""
        registers = sum(max(1, r.bits // 8) for r in self.entry.registers) * per_block
        static = sum(v.size for v in (*self.module.variables, *self.entry.variables) if v.space == "shared")
        local = sum(v.size for v in self.entry.variables if v.space == "local") * per_block
        tensor = 128 * 512 * 4 if any(ins.name == "tcgen05" for ins in self.entry.code) else 0
        factor = 10 if launch.trace is not None else 2
        return factor * (registers + static + launch.shared + local + tensor) + 4096


def _build(ins: PTXInstruction, target: int | None) -> Operation:
    if target is not None:
        return barriers.branch(ins, target)
    if isinstance(ins, Several):
        return _build_several(ins)
    if ins.name not in BUILDERS:
        raise unknown(ins)
    if not _writes_registers(ins):
        raise unknown(ins, "writes to an operand that is no register")
    try:
        operation = BUILDERS[ins.name](ins)
    except (IndexError, KeyError, AttributeError, TypeError, StopIteration, ValueError) as error:
        if isinstance(error, Refused):
            raise
        raise unknown(ins, "has operands or modifiers that are not modelled") from None
    return operation if ins.guard is None or ins.name in ("ret", "exit") else guarded(operation, ins.guard)


def _build_several(ins: Several) -> Operation:
    """Return the operation of all parts, run one after the other."""
    operations = [_build(part, None) for part in ins.parts]

    def run(machine, lanes):
        for operation in operations:
            operation(machine, lanes)

    return run if ins.guard is None else guarded(run, ins.guard)


def _writes_registers(ins: PTXInstruction) -> bool:
    """Return whether the first operand, which most instructions write, consists of registers, or is of a kind that is not
    written."""
    first = ins.operands[0] if ins.operands else None
    if first is None or isinstance(first, Address) or isinstance(first, Immediate) and ins.name in _COUNTED:
        return True
    written = (first.first, first.second) if isinstance(first, Pair) else items(first)
    return all(isinstance(each, Register | Sink) for each in written)


def _operation(ins: PTXInstruction, target: int | None) -> Operation:
    """Return the operation of an instruction; if the instruction is unknown, the operation raises Refused when it is
    reached."""
    try:
        return _build(ins, target)
    except Refused as refused:
        reason = refused.what

        def refuse(machine, lanes):
            raise Refused(reason, ins.line)

        return refuse if ins.guard is None else guarded(refuse, ins.guard)


def read_text(text: str, entry: str | None, limits: KernelLimits, *, fmad: bool = True) -> PTXProgram:
    """Return the program of one entry of a text; see :func:`tensorcore_models.compiled.read`."""
    module = parse(text)
    if entry is None:
        if len(module.entries) != 1:
            listed = ", ".join(module.entries) or "none"
            raise ValueError(f"the text has {len(module.entries)} entries: {listed}; name one with entry=")
        entry = next(iter(module.entries))
    if entry not in module.entries:
        raise ValueError(f"unknown entry {entry!r}; the text has the entries {', '.join(module.entries) or 'none'}")
    return PTXProgram(text, module, module.entries[entry], limits, fmad)
