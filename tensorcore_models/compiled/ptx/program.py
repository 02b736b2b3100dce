"""A PTX entry that can be run: its operations, arguments, launches."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...integers import checked_integer
from ...machine.fp_state import default_fp_state
from ..arguments import argument_arrays, argument_bytes, copied_argument
from ..errors import KernelLimits, Refused
from ..memory import BlockMemory, GlobalMemory
from ..recipe import KernelRecipe, owners_of
from ..results import KernelRun
from ..scheduler import Scheduler
from ..template import forms
from . import (
    arithmetic,
    atomics,
    barriers,
    conversions,
    copies,
    integers,
    mma,
    movement,
    tcgen05,
    tensor_maps,
    warps,
    wgmma,
)
from .decode import Operation, guarded, unknown
from .machine import KernelLaunch, PTXMachine, target_of
from .parse import parse
from .syntax import Entry, Module, PTXInstruction
from .trace import PTXTrace

BUILDERS = {
    **integers.BUILDERS, **arithmetic.BUILDERS, **conversions.BUILDERS, **movement.BUILDERS, **copies.BUILDERS,
    **warps.BUILDERS, **barriers.BUILDERS, **atomics.BUILDERS, **mma.BUILDERS, **wgmma.BUILDERS,
    **tcgen05.BUILDERS, **tensor_maps.BUILDERS,
}  # fmt: skip
#: Lanes that run at a time, at most: blocks beyond them follow.
LANES = 1 << 15


class PTXProgram:
    """One entry of a PTX text.

    Attributes
    ----------
    name, target : str
        The entry's name and the text's .target.
    text : str
        The text.
    """

    def __init__(self, text: str, module: Module, entry: Entry, limits: KernelLimits):
        self.text, self.module, self.entry, self.limits = text, module, entry, limits
        self.name, self.target = entry.name, module.target
        self.machine_target = target_of(module.target)

    def __repr__(self) -> str:
        return f"<Program {self.name}: {len(self.entry.code)} instructions for {self.target}>"

    @cached_property
    def operations(self) -> list[Operation]:
        """The code; an instruction that is not known refuses when it is reached."""
        found = [_operation(ins, self.entry.labels.get(i)) for i, ins in enumerate(self.entry.code)]
        last = PTXInstruction("ret", (), (), None, self.entry.code[-1].line if self.entry.code else 0)
        return [*found, barriers.leave(last)]

    @property
    def unknown(self) -> dict[str, int]:
        """Opcodes that are not known here, with the line of the first."""
        found: dict[str, int] = {}
        for i, ins in enumerate(self.entry.code):
            try:
                _build(ins, self.entry.labels.get(i))
            except Refused:
                found.setdefault(ins.opcode, ins.line)
        return found

    @default_fp_state
    def run(
        self,
        arguments: Sequence,
        grid: Sequence[int] = (1, 1, 1),
        *,
        block: Sequence[int] | None = None,
        cluster: Sequence[int] | None = None,
        shared: int | None = None,
        unit: str | None = None,
        checks: bool = True,
        unpublished: str = "refuse",
        limits: KernelLimits | None = None,
    ) -> KernelRun:
        """Run the kernel; arrays that it writes are changed in place.

        Parameters
        ----------
        arguments : sequence
            One for each parameter: contiguous arrays are global memory (their address is passed), integers and floats are
            numbers of the parameter's size, a :class:`~tensorcore_models.compiled.TensorMap` is a tensor map. Missing
            trailing parameters are 0.
        grid : sequence of int
            Blocks along x, y, z; missing ones are 1.
        block, cluster : sequence of int, optional
            Threads of a block and blocks of a cluster; from the entry's directives where it has them.
        shared : int, optional
            Bytes of dynamic shared memory; by default all that the target allows.
        unit : str, optional
            Architecture of the matrix instructions, instead of the target's.
        checks : bool
            Whether reads of what was never written, and races, are looked for.
        unpublished : {"refuse", "nearest"}
            What instructions do whose bits are not published (ex2.approx, ...): refuse, or give the nearest number, which is
            recorded as an assumption.
        limits : KernelLimits, optional
            How far it may go.

        Returns
        -------
        KernelRun
            Steps taken, and the assumptions that the result rests on.

        Raises
        ------
        Refused
            For an instruction, or a result of one, that is not known.
        KernelFault
            For what the kernel does wrong, with its line.
        ValueError, TypeError
            For wrong arguments.
        """
        launch = self._launch(arguments, grid, block, cluster, shared, unit, checks, unpublished, limits or self.limits)
        steps = self._execute(launch)
        launch.memory.copy_back()
        return KernelRun(self.name, launch.unit, steps, tuple(launch.assumptions))

    @default_fp_state
    def recipe(
        self,
        arguments: Sequence,
        grid: Sequence[int] = (1, 1, 1),
        *,
        output: int | None = None,
        block: Sequence[int] | None = None,
        cluster: Sequence[int] | None = None,
        shared: int | None = None,
        unit: str | None = None,
        unpublished: str = "nearest",
        limits: KernelLimits | None = None,
    ) -> KernelRecipe:
        """What the kernel computes for its output, found by running it once with expressions beside the values.

        Parameters
        ----------
        arguments, grid, block, cluster, shared, unit, unpublished, limits
            As for :meth:`run`, but the arrays stay as they are: the kernel runs on copies. Two-dimensional arrays give
            indices that are read easily.
        output : int, optional
            Which argument is the output; by default the last array that the kernel writes.

        Returns
        -------
        KernelRecipe
            Common expressions of all elements, as text, tree, and recipe of `libraries` where it is one.

        Raises
        ------
        Refused, KernelFault, ValueError, TypeError
            As :meth:`run`; ValueError also if the kernel writes no array, or its outputs have too many expressions.
        """
        copies: dict[int, np.ndarray] = {}
        given = [copied_argument(argument, copies) for argument in arguments]
        trace = PTXTrace()
        limits = limits or self.limits
        launch = self._launch(given, grid, block, cluster, shared, unit, True, unpublished, limits, trace)
        memory = launch.memory
        for number, (array, name) in enumerate(zip(memory.arrays, memory.names, strict=True)):
            plain = name.partition("(")[2].rstrip(")").removeprefix(f"{self.name}_") or name
            ids = trace.add_input(number, plain, array.shape, array.itemsize, array.size)
            owners_of(memory, number)[:] = ids
        self._execute(launch)
        places = [i for i, stored in enumerate(memory.stored) if stored]
        if output is not None:
            owner = argument_arrays(given, [])[2][output]
            places = [] if owner is None else [owner]
        if not places:
            raise ValueError(f"{self.name} writes to no array, or the output named is none")
        array = memory.arrays[places[-1]]
        found = forms(trace, owners_of(memory, places[-1]), places[-1], array.shape, array.itemsize)
        if not found:
            raise ValueError(f"{self.name} writes nothing that rests on an input to {memory.names[places[-1]]}")
        assumed = (*launch.assumptions, *trace.assumptions())
        number = argument_arrays(given, [])[2].index(places[-1])
        return KernelRecipe(self.name, memory.names[places[-1]], tuple(found), assumed, number)

    def _launch(
        self, arguments, grid, block, cluster, shared, unit, checks, unpublished, limits, trace=None
    ) -> KernelLaunch:
        """Arguments checked and laid out."""
        if unpublished not in ("refuse", "nearest"):
            raise ValueError(f"unpublished is 'refuse' or 'nearest', got {unpublished!r}")
        directives = self.entry.directives
        grid = _extents(grid, "grid")
        block = _extents(block, "block") if block is not None else None
        required = directives.get("reqntid")
        if required is not None:
            required = _extents(required, "reqntid")
            if block not in (None, required):
                raise ValueError(f"the entry requires blocks of {required} threads, got {block}")
            block = required
        if block is None:
            raise ValueError(f"{self.name} does not say how many threads a block has: pass block=")
        cluster = _extents(cluster or directives.get("reqnctapercluster") or (1,), "cluster")
        if any(g % c for g, c in zip(grid, cluster, strict=True)):
            raise ValueError(f"the grid {grid} is not a multiple of the cluster {cluster}")
        if cluster[0] != cluster[0] * cluster[1] * cluster[2]:
            raise Refused(f"clusters along x only are known here, got {cluster}")
        threads = int(np.prod([*grid, *block], dtype=object))
        if block[0] * block[1] * block[2] > 1024:
            raise ValueError(f"a block has at most 1024 threads, got {block}")
        if threads > limits.threads:
            raise ValueError(
                f"{threads} threads, above the limit of {limits.threads}; set limits=KernelLimits(threads=...)"
            )
        most = self.machine_target.shared
        shared = most if shared is None else checked_integer(shared, "shared")
        if not 0 <= shared <= most:
            raise ValueError(f"{self.target} has up to {most} bytes of shared memory for a block, got {shared}")
        dynamic = any(v.space == "shared" and not v.size for v in (*self.module.variables, *self.entry.variables))
        static = sum(v.size for v in (*self.module.variables, *self.entry.variables) if v.space == "shared")
        if static > most:
            raise ValueError(f"{self.name} declares {static} bytes of shared memory, {self.target} has {most}")
        arrays, names, owners = argument_arrays(arguments, [p.name for p in self.entry.parameters])
        variables = [v for v in self.module.variables if v.space in ("global", "const") and v.size]
        stored = [np.frombuffer(bytearray(v.initial or bytes(v.size)), np.uint8) for v in variables]
        if sum(a.nbytes for a in (*arrays, *stored)) > limits.memory:
            raise ValueError(
                f"the arrays are larger than the limit of {limits.memory} bytes; set limits=KernelLimits(memory=...)"
            )
        memory = GlobalMemory([*arrays, *stored], [*names, *(v.name for v in variables)], traced=trace is not None)
        parameters, places = self._parameters(arguments, owners, memory, traced=trace is not None)
        return KernelLaunch(
            self.module, self.entry, grid, block, cluster, memory, parameters, places,
            {v.name: memory.address(len(arrays) + i) for i, v in enumerate(variables)},
            unit or self.machine_target.unit, shared if dynamic else 0, limits, checks, unpublished, trace,
        )  # fmt: skip

    def _parameters(
        self, arguments, owners, memory: GlobalMemory, *, traced: bool
    ) -> tuple[BlockMemory, dict[str, int]]:
        """Parameter memory with the arguments in it, and where each parameter lies."""
        places, at = {}, 0
        for variable in self.entry.parameters:
            at = -(-at // variable.alignment) * variable.alignment
            places[variable.name] = at
            at += variable.size
        if len(arguments) > len(places):
            raise ValueError(f"{self.name} has {len(places)} parameters, got {len(arguments)} arguments")
        space = BlockMemory("parameter", 1, at, 0, checks=False, traced=traced)
        for number, (argument, variable) in enumerate(zip(arguments, self.entry.parameters, strict=False)):
            owner = owners[number]
            data = argument_bytes(
                argument, variable.size, variable.name, None if owner is None else memory.address(owner)
            )
            start = places[variable.name]
            space.space.data[start : start + len(data)] = np.frombuffer(data, np.uint8)
        return space, places

    def _execute(self, launch: KernelLaunch) -> int:
        """Run all blocks, as many at a time as lanes and memory allow; steps taken."""
        blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
        per_block = -(-launch.block[0] * launch.block[1] * launch.block[2] // 32) * 32
        size = launch.cluster[0]
        bytes_each = self.block_bytes(launch, per_block)
        together = max(1, min(LANES // per_block, launch.limits.memory // 2 // bytes_each))
        together = max(size, together // size * size)
        if bytes_each * size > launch.limits.memory:
            raise ValueError(
                f"a block needs about {bytes_each} bytes, above the limit; set limits=KernelLimits(memory=...)"
            )
        lines = [ins.line for ins in self.entry.code]
        lines.append(lines[-1] if lines else 0)
        steps = 0
        for first in range(0, blocks, together):
            machine = PTXMachine(launch, first, min(together, blocks - first))
            scheduler = Scheduler(self.operations, lines, machine, launch.limits)
            scheduler.steps = steps
            with np.errstate(all="ignore"):
                scheduler.run()
            steps = scheduler.steps
        return steps

    def block_bytes(self, launch: KernelLaunch, per_block: int) -> int:
        """Bytes of state of one block, about."""
        registers = sum(max(1, r.bits // 8) for r in self.entry.registers) * per_block
        static = sum(v.size for v in (*self.module.variables, *self.entry.variables) if v.space == "shared")
        local = sum(v.size for v in self.entry.variables if v.space == "local") * per_block
        tensor = 128 * 512 * 4 if any(ins.name == "tcgen05" for ins in self.entry.code) else 0
        factor = 10 if launch.trace is not None else 2
        return factor * (registers + static + launch.shared + local + tensor) + 4096


def _extents(values, name: str) -> tuple[int, int, int]:
    given = [checked_integer(v, name) for v in ([values] if np.ndim(values) == 0 else values)]
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise ValueError(f"{name} has one to three positive extents, got {values!r}")
    x, y, z, *_ = *given, 1, 1
    return x, y, z


def _build(ins: PTXInstruction, target: int | None) -> Operation:
    if target is not None:
        return barriers.branch(ins, target)
    if ins.name not in BUILDERS:
        raise unknown(ins)
    try:
        operation = BUILDERS[ins.name](ins)
    except (IndexError, KeyError, AttributeError, TypeError, StopIteration):
        raise unknown(ins, "has operands or modifiers that are not known here") from None
    return operation if ins.guard is None or ins.name in ("ret", "exit") else guarded(operation, ins.guard)


def _operation(ins: PTXInstruction, target: int | None) -> Operation:
    """The operation, which refuses when it is reached if the instruction is not known."""
    try:
        return _build(ins, target)
    except Refused as refused:
        reason = refused.what

        def refuse(machine, lanes):
            raise Refused(reason, ins.line)

        return refuse if ins.guard is None else guarded(refuse, ins.guard)


def read_text(text: str, entry: str | None, limits: KernelLimits) -> PTXProgram:
    """The program of one entry of a text; see :func:`tensorcore_models.compiled.read`."""
    module = parse(text)
    if entry is None:
        if len(module.entries) != 1:
            listed = ", ".join(module.entries) or "none"
            raise ValueError(f"the text has {len(module.entries)} entries: {listed}; name one with entry=")
        entry = next(iter(module.entries))
    if entry not in module.entries:
        raise ValueError(f"there is no entry {entry!r}; the text has {', '.join(module.entries) or 'none'}")
    return PTXProgram(text, module, module.entries[entry], limits)
