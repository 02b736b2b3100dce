"""Defines the base of compiled kernels of any machine: runs, recipes, launches in parts that fit."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..integers import checked_integer
from ..machine.fp_state import default_fp_state
from .arguments import argument_arrays, copied_argument
from .common_forms import forms
from .errors import KernelLimits
from .expressions import ExpressionTrace
from .kernel_recipe import KernelRecipe, owners_of
from .results import KernelRun
from .scheduler import Scheduler

#: Most lanes that run at a time; further blocks run afterwards.
LANES = 1 << 15


class LaunchOptions(NamedTuple):
    """`LaunchOptions` holds the options of a launch, as :meth:`KernelProgram.run` takes them; `trace` carries expressions."""

    grid: Sequence[int]
    block: Sequence[int] | None
    cluster: Sequence[int] | None
    shared: int | None
    unit: str | None
    checks: bool
    unpublished: str
    limits: KernelLimits
    trace: ExpressionTrace | None = None


class KernelProgram(ABC):
    """`KernelProgram` is one kernel of a compiled program.

    Attributes
    ----------
    name, target : str
        Name of the kernel, and name of the GPU for which the program was compiled.
    text : str
        Text of the program.
    limits : KernelLimits
        Limits of the runs.
    """

    name: str
    target: str
    text: str
    limits: KernelLimits
    trace: type[ExpressionTrace]
    warp: int

    @property
    @abstractmethod
    def operations(self) -> list[Callable]:
        """Return the instructions as functions, in order; that of an unknown instruction raises Refused when executed."""

    @property
    @abstractmethod
    def unknown(self) -> dict[str, int]:
        """Return the opcodes that the emulator does not know, each with the line of its first use."""

    @property
    @abstractmethod
    def parameters(self) -> list:
        """Return the kernel's parameters, each with a name and a size in bytes."""

    @abstractmethod
    def _launch(self, arguments, options: LaunchOptions) -> Any:
        """Return the launch, with arguments checked and laid out."""

    @abstractmethod
    def block_bytes(self, launch, per_block: int) -> int:
        """Return the approximate memory in bytes that the emulator needs for one block of threads."""

    @abstractmethod
    def _scheduler(self, launch, first: int, count: int) -> Scheduler:
        """Return the scheduler that runs consecutive blocks."""

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
            One argument for each parameter; missing trailing arguments are 0. A contiguous array becomes global memory, and
            the kernel gets its address. An integer or a float is passed in the parameter's size. Other kinds of arguments are
            :class:`~tensorcore_models.compiled.TensorMap`, :class:`~tensorcore_models.compiled.Structure` (a structure with
            addresses in it) and :class:`~tensorcore_models.compiled.PointerTable` (the address of a table of addresses).
        grid : sequence of int
            Blocks along x, y, z; missing extents are 1.
        block, cluster : sequence of int, optional
            Threads of a block and blocks of a cluster; by default from the entry's directives.
        shared : int, optional
            Bytes of dynamic shared memory; by default all that the target allows.
        unit : str, optional
            Architecture whose matrix instructions are computed; by default the target's.
        checks : bool
            Whether reads of unwritten memory, and races between threads, are errors.
        unpublished : {"refuse", "nearest"}
            Rule for instructions whose bits are not published (ex2.approx, ...): refuse them, or return the nearest
            number and record this as an assumption.
        limits : KernelLimits, optional
            Limits of the run.

        Returns
        -------
        KernelRun
            Number of steps, and the assumptions on which the result rests.

        Raises
        ------
        Refused
            If an instruction, or its result, is not modelled.
        KernelFault
            If the kernel has a fault; the message gives its line.
        ValueError, TypeError
            If an argument or an option is wrong.
        """
        options = LaunchOptions(grid, block, cluster, shared, unit, checks, unpublished, limits or self.limits)
        launch = self._launch(arguments, options)
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
        rows: Sequence[int] | None = None,
        block: Sequence[int] | None = None,
        cluster: Sequence[int] | None = None,
        shared: int | None = None,
        unit: str | None = None,
        unpublished: str = "nearest",
        limits: KernelLimits | None = None,
    ) -> KernelRecipe:
        """Return the expressions that the kernel computes for its output.

        The kernel runs once, and each value is recorded together with the expression that gives it.

        Parameters
        ----------
        arguments, grid, block, cluster, shared, unit, unpublished, limits
            See :meth:`run`, but the arrays are not changed, because the kernel runs on copies. Pass matrices as
            two-dimensional arrays: the expressions then name elements by row and column.
        output : int, optional
            Index of the output argument; by default the last array that the kernel writes.
        rows : sequence of int, optional
            Rows of the output whose expressions are returned; by default all. In a batch of matrices the numbers of rows run
            on from one matrix to the next. A few rows save time if each row has its own expression, as in causal attention.

        Returns
        -------
        KernelRecipe
            Expressions of the output's elements, as text, as a tree and, if possible, as a recipe of `libraries`.

        Raises
        ------
        Refused, KernelFault, ValueError, TypeError
            See :meth:`run`; ValueError also if the kernel writes no array, or its outputs have too many expressions.
        """
        copies: dict[int, np.ndarray] = {}
        given = [copied_argument(argument, copies) for argument in arguments]
        trace = self.trace()
        options = LaunchOptions(grid, block, cluster, shared, unit, True, unpublished, limits or self.limits, trace)
        launch = self._launch(given, options)
        memory = launch.memory
        for number, (array, name) in enumerate(zip(memory.arrays, memory.names, strict=True)):
            if number >= memory.given:
                break
            plain = name.partition("(")[2].rstrip(")").removeprefix(f"{self.name}_") or name
            ids = trace.add_input(number, plain, array.shape, array.itemsize, array.size)
            owners_of(memory, number)[:] = ids
        self._execute(launch)
        places = [i for i, stored in enumerate(memory.stored[: memory.given]) if stored]
        owners = argument_arrays(given, [])[2]
        if output is not None:
            if not 0 <= output < len(owners):
                raise ValueError(f"output is {output}, expected the index of an argument, 0 to {len(owners) - 1}")
            places = list(owners[output])
        if not places:
            raise ValueError(
                f"{self.name} writes to no array, so it has no output: pass its output as an array"
                if output is None
                else f"argument {output} is no array: pass output= with the index of an array that the kernel writes"
            )
        array = memory.arrays[places[-1]]
        chosen = None if rows is None else _elements_of(rows, array)
        found = forms(trace, owners_of(memory, places[-1]), places[-1], array.shape, array.itemsize, chosen)
        if not found:
            raise ValueError(
                f"the values that {self.name} writes to {memory.names[places[-1]]} depend on no input, so they have no "
                "expression: pass output= with the index of another argument"
            )
        assumed = (*launch.assumptions, *trace.assumptions())
        number = next(i for i, own in enumerate(owners) if places[-1] in own)
        return KernelRecipe(self.name, memory.names[places[-1]], tuple(found), assumed, number)

    def _execute(self, launch) -> int:
        """Run all blocks, as many at a time as lanes and memory allow; return the number of steps."""
        blocks = launch.grid[0] * launch.grid[1] * launch.grid[2]
        per_block = -(-launch.block[0] * launch.block[1] * launch.block[2] // self.warp) * self.warp
        size = self._together(launch)
        bytes_each = self.block_bytes(launch, per_block)
        together = max(1, min(LANES // per_block, launch.limits.memory // 2 // bytes_each))
        together = max(size, together // size * size)
        if bytes_each * size > launch.limits.memory:
            raise ValueError(
                f"a block needs about {bytes_each} bytes, above the limit of {launch.limits.memory}; "
                "set limits=KernelLimits(memory=...)"
            )
        steps = 0
        for first in range(0, blocks, together):
            scheduler = self._scheduler(launch, first, min(together, blocks - first))
            scheduler.steps = steps
            with np.errstate(all="ignore"):
                scheduler.run()
            steps = scheduler.steps
        return steps

    def _together(self, launch) -> int:
        """Return the number of blocks that have to run at the same time."""
        return 1


def _elements_of(rows: Sequence[int], array: np.ndarray) -> np.ndarray:
    """Return the flat places of the elements of rows of an array; raise ValueError if there is no such row."""
    columns = array.shape[-1] if array.ndim else 1
    numbers = np.array([checked_integer(row, "a row") for row in rows], np.int64)
    count = array.size // max(columns, 1)
    if not len(numbers) or numbers.min() < 0 or numbers.max() >= count:
        raise ValueError(f"rows must be from 0 to {count - 1}, got {list(rows)[:5]}")
    return (np.unique(numbers)[:, None] * columns + np.arange(columns)).reshape(-1)


def extents(values, name: str) -> tuple[int, int, int]:
    """Return one to three positive extents as three."""
    given = [checked_integer(v, name) for v in ([values] if np.ndim(values) == 0 else values)]
    if not 1 <= len(given) <= 3 or min(given) < 1:
        raise ValueError(f"{name} must have one to three positive extents, got {values!r}")
    x, y, z, *_ = *given, 1, 1
    return x, y, z


def checked_launch(
    grid, block, unpublished: str, limits: KernelLimits
) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Return the grid and block of a launch as three extents each.

    Raises
    ------
    ValueError
        If they are malformed or too large, or `unpublished` is neither "refuse" nor "nearest".
    """
    if unpublished not in ("refuse", "nearest"):
        raise ValueError(f"unpublished must be 'refuse' or 'nearest', got {unpublished!r}")
    grid, block = extents(grid, "grid"), extents(block, "block")
    threads = int(np.prod([*grid, *block], dtype=object))
    if block[0] * block[1] * block[2] > 1024:
        raise ValueError(f"a block has at most 1024 threads, got {block}")
    if threads > limits.threads:
        raise ValueError(
            f"the grid has {threads} threads, above the limit of {limits.threads}; set limits=KernelLimits(threads=...)"
        )
    return grid, block


def checked_size(arrays, limits: KernelLimits) -> None:
    """Raise ValueError if the arrays are larger than the limit."""
    if sum(a.nbytes for a in arrays) > limits.memory:
        raise ValueError(
            f"the arrays have {sum(a.nbytes for a in arrays)} bytes, above the limit of {limits.memory}; set "
            "limits=KernelLimits(memory=...)"
        )
