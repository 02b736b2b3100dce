"""Defines an AMDGCN kernel that can be run: its operations, arguments, launches."""

from functools import cached_property

import numpy as np

from ...integers import checked_integer
from ..arguments import TensorMap, argument_arrays, argument_bytes, write_tables
from ..errors import KernelLimits, Refused
from ..memory import GlobalMemory
from ..program import KernelProgram, LaunchOptions, checked_launch, checked_size, extents
from ..scheduler import Scheduler
from . import (
    arithmetic,
    buffers,
    comparisons,
    control,
    conversions,
    division,
    global_memory,
    local_memory,
    mfma,
    scalar,
    scalar_memory,
    vector,
    waves,
)
from .machine import WAVE, AMDLaunch, AMDMachine, target_of
from .scalar_operands import Operation, unknown
from .syntax import AMDInstruction, AMDKernel, CodeObject, KernelArgument
from .trace import AMDTrace

BUILDERS = {
    **scalar.BUILDERS, **control.BUILDERS, **vector.BUILDERS, **comparisons.BUILDERS, **arithmetic.BUILDERS,
    **conversions.BUILDERS, **division.BUILDERS, **waves.BUILDERS, **scalar_memory.BUILDERS, **global_memory.BUILDERS,
    **buffers.BUILDERS, **local_memory.BUILDERS, **mfma.BUILDERS,
}  # fmt: skip


class AMDProgram(KernelProgram):
    """`AMDProgram` is one kernel of an AMDGCN text or code object.

    Attributes
    ----------
    name, target : str
        Name of the kernel, and its processor.
    text : str
        Assembly text (of a code object, its disassembly).
    """

    trace = AMDTrace
    warp = WAVE

    def __init__(self, text: str, found: CodeObject, kernel: AMDKernel, limits: KernelLimits):
        self.text, self.kernel, self.limits = text, kernel, limits
        self.name, self.target = kernel.name, found.target
        self.machine_target = target_of(found.target)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.kernel.code)} instructions for {self.target}>"

    @property
    def parameters(self) -> list[KernelArgument]:
        """Return the kernel's arguments that the caller must give."""
        return self.kernel.parameters

    @cached_property
    def operations(self) -> list[Operation]:
        """Return the instructions as functions, in order; that of an unknown instruction raises Refused when executed."""
        last = AMDInstruction("s_endpgm", "", (), {}, self.kernel.code[-1].line if self.kernel.code else 0)
        return [*map(_operation, self.kernel.code), control.build_end(last)]

    @property
    def unknown(self) -> dict[str, int]:
        """Return the opcodes that the emulator does not know, each with the line of its first use."""
        found: dict[str, int] = {}
        for ins in self.kernel.code:
            try:
                _build(ins)
            except Refused:
                found.setdefault(ins.opcode, ins.line)
        return found

    def _launch(self, arguments, options: LaunchOptions) -> AMDLaunch:
        grid, block, cluster, shared, unit, checks, unpublished, limits, trace = options
        assumptions: dict[str, None] = {}
        block = self._block(block, assumptions)
        grid, block = checked_launch(grid, block, unpublished, limits)
        if cluster is not None:
            raise ValueError(f"{self.target} has no clusters of blocks: leave out cluster, got {cluster!r}")
        most = self.machine_target.lds
        shared = most if shared is None else checked_integer(shared, "shared")
        static = self.kernel.facts.get("group_segment_fixed_size", 0)
        if not 0 <= shared <= most or static > most:
            raise ValueError(
                f"{self.target} has {most} bytes of local memory for a block, got shared={shared} and a kernel that declares "
                f"{static} bytes: pass shared from 0 to {most}, or compile for another GPU"
            )
        names = [argument.name for argument in self.parameters]
        arrays, called, _ = argument_arrays(arguments, names)
        checked_size(arrays, limits)
        size = max([self.kernel.facts.get("kernarg_size", 0), *(a.offset + a.size for a in self.kernel.arguments), 4])
        if size > limits.memory:
            raise ValueError(
                f"{self.name} takes {size} bytes of arguments, above the limit of {limits.memory}; "
                "set limits=KernelLimits(memory=...)"
            )
        segment = np.zeros(-(-size // 4) * 4 + 256, np.uint8)  # code may load beyond the end of the last argument
        memory = GlobalMemory([*arrays, segment], [*called, "the arguments"], traced=trace is not None, own=1)
        write_tables(arguments, memory)
        place = len(arrays)
        self._lay_out(segment, arguments, memory, grid, block)
        segment.flags.writeable = False
        start = memory.starts[place]
        memory.space.data[start : start + len(segment)] = segment
        return AMDLaunch(
            self.kernel, grid, block, memory, memory.address(place), segment.view(np.uint32),
            unit or self.machine_target.unit, max(shared, static), limits, checks, unpublished, trace, assumptions,
        )  # fmt: skip

    def _block(self, block, assumptions: dict[str, None]) -> tuple[int, int, int]:
        """Return the threads of a block, from the caller or from the metadata."""
        metadata = self.kernel.metadata
        required = metadata.get("reqd_workgroup_size")
        if isinstance(required, list) and required:
            needed = extents(required, "reqd_workgroup_size")
            if block is not None and extents(block, "block") != needed:
                raise ValueError(f"the kernel requires blocks of {needed} threads, got {block}")
            return needed
        if block is not None:
            return extents(block, "block")
        largest = metadata.get("max_flat_workgroup_size")
        if largest is None:
            raise ValueError(f"{self.name} does not state the number of threads of a block: pass block=(x, y, z)")
        assumptions[f"a block has {largest} threads, the most that the metadata allow"] = None
        return extents([int(str(largest))], "max_flat_workgroup_size")

    def _lay_out(self, segment, arguments, memory: GlobalMemory, grid, block) -> None:
        """Write the arguments, explicit and hidden, into the kernel's argument segment."""
        given = self.parameters
        if len(arguments) > len(given):
            raise ValueError(f"{self.name} has {len(given)} parameters, got {len(arguments)} arguments")
        for argument, place in zip(arguments, given, strict=False):
            if isinstance(argument, TensorMap):
                raise TypeError(f"{place.name} is a TensorMap, but {self.target} has no tensor maps: pass the array")
            data = argument_bytes(argument, place.size, place.name, memory.address_of)
            segment[place.offset : place.offset + place.size] = np.frombuffer(data, np.uint8)
        for place in self.kernel.arguments:
            value = hidden_argument(place.kind, grid, block)
            if value is not None:
                data = (value % (1 << 8 * place.size)).to_bytes(place.size, "little")
                segment[place.offset : place.offset + place.size] = np.frombuffer(data, np.uint8)

    def block_bytes(self, launch: AMDLaunch, per_block: int) -> int:
        """Return the approximate memory in bytes that the emulator needs for one block of threads."""
        facts = self.kernel.facts
        registers = 4 * per_block * min(512, facts.get("next_free_vgpr", 512)) + 4 * per_block // WAVE * 128
        scratch = facts.get("private_segment_fixed_size", 0) * per_block
        factor = 10 if launch.trace is not None else 2
        return factor * (registers + launch.lds + scratch) + 4096

    def _scheduler(self, launch: AMDLaunch, first: int, count: int) -> Scheduler:
        lines = [ins.line for ins in self.kernel.code]
        lines.append(lines[-1] if lines else 0)
        machine = AMDMachine(launch, first, count)
        return Scheduler(self.operations, lines, machine, launch.limits, machine.waves)


def hidden_argument(kind: str, grid, block) -> int | None:
    """Return the value that a launch fills in for a hidden argument (LLVM, AMDGPU backend, code objects); None if it fills in
    none.

    Grids consist of whole blocks here, so that the remainders are 0; pointers to data of the runtime are 0.
    """
    name, _, axis = kind.rpartition("_")
    table = {"hidden_block_count": grid, "hidden_group_size": block, "hidden_remainder": (0, 0, 0),
             "hidden_global_offset": (0, 0, 0)}  # fmt: skip
    if name in table and axis in ("x", "y", "z"):
        return int(table[name]["xyz".index(axis)])
    return 3 if kind == "hidden_grid_dims" else None


def _build(ins: AMDInstruction) -> Operation:
    if ins.name not in BUILDERS:
        raise unknown(ins)
    try:
        return BUILDERS[ins.name](ins)
    except (IndexError, KeyError, AttributeError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, Refused):
            raise
        raise unknown(ins, "has operands or modifiers that are not modelled") from None


def _operation(ins: AMDInstruction) -> Operation:
    """Return the operation of an instruction; if the instruction is unknown, the operation raises Refused when it is
    reached."""
    try:
        return _build(ins)
    except Refused as refused:
        reason = refused.what

        def refuse(machine, waves):
            raise Refused(reason, ins.line)

        return refuse


def program_of(text: str, found: CodeObject, entry: str | None, limits: KernelLimits) -> AMDProgram:
    """Return the program of one kernel of a text or code object."""
    if entry is None:
        if len(found.kernels) != 1:
            listed = ", ".join(found.kernels) or "none"
            raise ValueError(f"there are {len(found.kernels)} kernels: {listed}; name one with entry=")
        entry = next(iter(found.kernels))
    if entry not in found.kernels:
        raise ValueError(f"unknown kernel {entry!r}; the text has the kernels {', '.join(found.kernels) or 'none'}")
    return AMDProgram(text, found, found.kernels[entry], limits)
