"""This module defines the tile schedule of a GEMM on an Ascend chip, which is run for its product and for its time.

A :class:`TileSchedule` fixes the order in which the blocks of C = A B are computed, the core of each, and their places
in the buffers. The numeric interpreter (:mod:`ascend.cube`) walks its ranges of k; the timing interpreter
(:mod:`ascend.pipes.simulate`) runs the operations that :mod:`ascend.pipes.build` derives from it. Sizes are given in
the order m, k, n everywhere.

:class:`TileSchedule` holds the properties that all kernels share, and by itself the order of a product without a chip.
A kernel is a class of :mod:`ascend.kernels` that adds its deal of tiles, the content of its buffers, its time, the work
of its pipes and its arithmetic; no other code asks for its kind.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, SPLIT_OPERANDS, Blocking, fractals, slots
from ascend.chips.chip import Chip
from ascend.grid import Grid, Range, Swizzle, Visit, balanced_parts, balanced_ranges, split_range
from ascend.numeric.arguments import checked_matrices
from ascend.numeric.fp16_products import CubeArithmetic, words_product, words_slices
from ascend.operands import operand_slices
from ascend.schedule_options import DEEPEST_STREAM, Resident, WithOptions
from ascend.slices import Sums, merge_slices
from ascend.term_modes import Mode
from tensorcore_models.integers import integer_arguments, integer_fields

#: Bytes of a strip of C: smaller transfers lose bandwidth (measured on 910B), larger ones stop the B stream for longer.
STRIP_BYTES = 16384
#: Bytes of splitting an element: FP32 in, two FP16 words out.
SPLIT_IN_BYTES = 4
SPLIT_OUT_BYTES = 4
#: Largest size; a larger one is taken for a mistake: 2^31 elements along one side.
LARGEST_SIZE = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class TileSchedule(WithOptions):
    """`TileSchedule` holds the order in which blocks are computed, the core of each, and the sizes of their buffers.

    :func:`build_schedule` makes a schedule and checks it against a chip; :meth:`unblocked` makes one without a chip.

    Parameters
    ----------
    m, k, n : int
        A is m x k, B is k x n, C is m x n.
    chip : Chip or None
        Chip whose limits apply; None stands for one core without limits.
    blocking : Blocking
        Sizes of the blocks.
    n_fused : int
        Number of k blocks in a k group. A k block is bk products long; L0C adds up the products of a k group before the sum is
        written back.
    grid : Grid
        Cores along m, k and n.
    resident : {"a", "b", "none"}
        The operand whose panel stays in L1.
    swizzle : Swizzle
        Order of the tiles if no operand is resident. If each core owns a rectangle of tiles, only the swizzle's direction
        matters: 0 walks the rectangle row by row, 1 column by column.
    depth : int
        Number of L1 buffers of a streamed operand.
    balanced : bool
        Whether tiles have nearly equal sizes; otherwise all tiles but those of the last row and column have bm rows and bn
        columns.
    **options
        Options of :class:`ascend.schedule_options.SharedOptions`: terms, mode, operand, layout, ...
    """

    m: int
    k: int
    n: int
    chip: Chip | None
    blocking: Blocking
    n_fused: int
    grid: Grid = Grid()
    resident: Resident = "a"
    swizzle: Swizzle = Swizzle()
    depth: int = 2
    balanced: bool = False

    #: Name of the kernel in options and tables.
    kernel: ClassVar[str] = "one block"
    #: Roundings that a product passes in addition to those of the sums.
    own_roundings: ClassVar[int] = 0

    def __post_init__(self):
        super().__post_init__()
        integer_fields(self, "m", "k", "n", "n_fused", "depth")

    # -------------------------------------------------------- geometry, for both interpreters

    @cached_property
    def row_blocks(self) -> tuple[Range, ...]:
        """Return the half-open ranges of rows of A and C, at most bm long."""
        if self.balanced:
            return balanced_ranges(self.m, self.blocking.bm, ALIGNMENT)
        return split_range(0, self.m, self.blocking.bm)

    @cached_property
    def column_blocks(self) -> tuple[Range, ...]:
        """Return the half-open ranges of columns of B and C, at most bn long."""
        if self.balanced:
            return balanced_ranges(self.n, self.blocking.bn, ALIGNMENT)
        return split_range(0, self.n, self.blocking.bn)

    @cached_property
    def column_pieces(self) -> tuple[int, int]:
        """Return (columns of the widest tile, the largest number of which all tiles begin at multiples)."""
        starts = [start for start, _ in self.column_blocks if start]
        return self.blocking.bn if not self.balanced else self.column_blocks[0][1], math.gcd(*starts) or self.n

    @cached_property
    def k_slices(self) -> tuple[Range, ...]:
        """Return the half-open ranges of k that different cores sum, in whole k blocks; one without split-k."""
        if self.grid.k == 1:
            return ((0, self.k),) if self.k else ()
        return balanced_parts(self.k, self.grid.k, self.blocking.bk)

    def groups_of(self, k_slice: Range) -> tuple[Range, ...]:
        """Return the k groups of a slice of k as half-open ranges of bk * N_fused products; the last one may be shorter.

        L0C adds up the products of a k group before the sum is written back.
        """
        return split_range(*k_slice, self.blocking.bk * self.n_fused)

    @cached_property
    def k_groups(self) -> tuple[Range, ...]:
        """Return all k groups: L0C accumulates within a group, and the vector unit adds the groups of a slice."""
        return tuple(group for k_slice in self.k_slices for group in self.groups_of(k_slice))

    @cached_property
    def groups(self) -> int:
        """Return the number of k groups of the longest slice."""
        return len(self.groups_of(self.k_slices[0])) if self.k_slices else 0

    def k_blocks(self, group: Range) -> tuple[Range, ...]:
        """Return the k blocks of a k group as half-open ranges of bk products; the last one may be shorter.

        A k group is a range that :meth:`groups_of` returns.
        """
        return split_range(*group, self.blocking.bk)

    @cached_property
    def cube_step(self) -> tuple[int, int, int]:
        """Return (m, k, n) of one cube step."""
        if self.chip is None:
            return (ALIGNMENT, ALIGNMENT, ALIGNMENT)
        return (self.chip.cube_m, self.chip.cube_step_k(self.operand), self.chip.cube_n)

    # -------------------------------------------------------- cores and waves

    @property
    def deals_one_by_one(self) -> bool:
        """Return whether tiles are assigned to the cores one by one, in the order of the swizzle."""
        return False

    @property
    def owns_rectangles(self) -> bool:
        """Return whether no operand is resident and each core owns one rectangle of tiles."""
        return False

    @property
    def cores(self) -> int:
        """Return the number of cores of the chip; 1 without a chip."""
        return 1 if self.chip is None else self.chip.cores

    @cached_property
    def tiles(self) -> int:
        """Return the number of tiles of C times slices of k, the work that is dealt."""
        return len(self.row_blocks) * len(self.column_blocks) * len(self.k_slices)

    @cached_property
    def used_cores(self) -> int:
        """Return the number of cores that have work."""
        rows, columns = len(self.row_blocks), len(self.column_blocks)
        return min(self.grid.m, rows) * len(self.k_slices) * min(self.grid.n, columns)

    @cached_property
    def waves(self) -> int:
        """Return the stays of the busiest core: row blocks of the paper's kernel, panels, or tiles if nothing is resident."""
        return len(self.visits(0))

    def active_cores(self, wave: int) -> int:
        """Return the number of cores that have work in a wave.

        Wave w is the time in which each core works with its resident panel number w, counted from 0.
        """
        panels, along = (self.row_blocks, self.grid.m) if self.resident == "a" else (self.column_blocks, self.grid.n)
        streamed, across = (self.column_blocks, self.grid.n) if self.resident == "a" else (self.row_blocks, self.grid.m)
        return min(along, len(panels) - wave * along) * min(across, len(streamed)) * len(self.k_slices)

    def visits(self, core: int) -> tuple[Visit, ...]:
        """Return the blocks that one core computes, in order; core 0 has the most work."""
        rows, columns, slices = self.row_blocks, self.column_blocks, len(self.k_slices)
        if core >= self.grid.cores:
            return ()
        at_m, rest = core % self.grid.m, core // self.grid.m
        at_n, k_slice = rest % self.grid.n, rest // self.grid.n
        if k_slice >= slices:
            return ()
        own_rows, own_columns = rows[at_m :: self.grid.m], columns[at_n :: self.grid.n]
        if self.resident == "a":
            stays = [(row, [(row, column) for column in own_columns]) for row in own_rows]
        else:
            stays = [(column, [(row, column) for row in own_rows]) for column in own_columns]
        return tuple(
            Visit(panel, tuple(tiles), k_slice, self.active_cores(wave))
            for wave, (panel, tiles) in enumerate(stays)
            if tiles
        )

    def timed_by(self, chip: Chip) -> "TileSchedule":
        """Return the schedule on a chip with other timing numbers, for what-if studies."""
        return replace(self, chip=chip)

    # -------------------------------------------------------- words, terms, buffers

    @property
    def order(self) -> str:
        """Return the order of the sums (see :mod:`ascend.cube`); the mode fused has the order and the bits of "termwise"."""
        return self.combination.order

    @property
    def chain(self) -> int:
        """Return the number of products that a sum in L0C adds before it is written back.

        The number is bk * N_fused, or the length of the longest slice of k if this is smaller.
        """
        longest = self.k_slices[0][1] - self.k_slices[0][0] if self.k_slices else 0
        return min(longest, self.blocking.bk * self.n_fused)

    @cached_property
    def sums(self) -> Sums:
        """Return the sums, which determine the bits of the product for given data."""
        return Sums(
            tuple(self.groups_of(k_slice) for k_slice in self.k_slices) or ((),), self.order, self.terms, self.operand,
            self.reseed_l0c, self.cube_step[1],
            hf32_rounding=self.chip.hf32_rounding if self.chip and self.operand == "hf32" else "",
        )  # fmt: skip

    @property
    def load_k(self) -> int:
        """Return the number of products along k that one load of a streamed operand serves.

        A load fills half of the operand's L1 buffers, or all of them with single buffering.
        """
        return self.blocking.bk * max(self.depth // self.stream_slots, 1)

    @property
    def stream_slots(self) -> int:
        """Return the number of buffers for each operand stream: 1 or 2."""
        return slots(self.buffering)

    @cached_property
    def l0c_slots(self) -> int:
        """Return the number of C blocks in L0C: 2 if they fit, also with single buffers, which concern L1 and L0."""
        block = self.accumulators * self.blocking.bm * self.blocking.bn * ACCUMULATOR_BYTES
        return 2 if self.chip is None else min(2, self.chip.l0c_bytes // block)

    @property
    def l0c_turns(self) -> int:
        """Return the number of C blocks that cube and FIXPIPE work on at a time.

        With the option `unit_flag` the number is 2, because the cube fills the next block while FIXPIPE drains the current one.
        """
        return 2 if self.unit_flag else self.l0c_slots

    @cached_property
    def ub_slots(self) -> int:
        """Return the number of strips of C in UB at a time: 2 if two of the least height fit, with either buffering."""
        if self.chip is None:
            return 2
        least = ALIGNMENT * self.ub_copies * self.blocking.bn * ACCUMULATOR_BYTES
        return max(min(2, self.chip.ub_bytes // least), 1)

    @property
    def widening_slots(self) -> tuple[int, int]:
        """Return two numbers of B blocks that fit the UB of a cube's two vector units: of unconverted and of converted blocks.

        The vector units convert int8 or 4-bit weights to the format that the cube multiplies. Each kind of block takes half of
        the UB; there are at most 8 blocks of a kind.
        """
        b, there = self.blocking, self.placed_on.ub_bytes
        sizes = (b.bk * b.bn * self.weight_bytes, b.bk * b.bn * self.operand_bytes)
        return tuple(int(min(max(there // size, 1), DEEPEST_STREAM)) for size in sizes)  # type: ignore[return-value]

    @cached_property
    def strip_rows(self) -> int:
        """Return the rows of a C block that pass UB at a time: 16 KiB of FP32 or more if they fit."""
        if self.chip is None:
            return self.blocking.bm
        row = self.blocking.bn * ACCUMULATOR_BYTES
        fitting = max(self.chip.ub_bytes // (self.ub_slots * self.ub_copies * row) // ALIGNMENT, 1)
        wanted = -(-STRIP_BYTES // (ALIGNMENT * row))
        return min(wanted, fitting, fractals(self.blocking.bm)) * ALIGNMENT

    @cached_property
    def ub_copies(self) -> int:
        """Return the FP32 copies of a C strip in UB: a new one from each accumulator, and the largest number read back."""
        places = [(p, g) for p in range(len(self.passes)) for g in (0, self.groups - 1) if g >= 0]
        seeds = 1 if self.reseed_l0c and self.groups > 1 else 0
        return self.accumulators + max([seeds, *(self.c_reads(p, g) for p, g in places)])

    # -------------------------------------------------------- C between L0C and memory

    def c_reads(self, walk: int, group: int) -> int:
        """Return the number of FP32 partial sums of a C block that are read from memory before a k group's sum is written.

        `walk` and `group` are the numbers of the pass and of the k group, counted from 0. Every k group after the first reads
        the block's own partial sums (none with the option `reseed_l0c`). In the mode ``termwise_inplace`` the first k group of
        a later pass reads them, too. In the mode ``termwise`` the last k group of a later pass also reads the sum of the
        earlier terms.
        """
        if self.reseed_l0c and group > 0:
            own = 0
        elif self.combination.in_place:
            own = 1 if walk > 0 or group > 0 else 0
        else:
            own = self.accumulators if group > 0 else 0
        completes = self.combination.combined_last and walk > 0 and group == self.groups - 1
        return own + completes

    def c_writes(self, group: int) -> int:
        """Return the number of FP32 partial sums of a C block that are written to memory after a k group.

        In the mode ``fused`` L0C holds one sum for each term, and each is written separately. After the last k group the sums
        are combined first, so that only one is written.
        """
        return 1 if group == self.groups - 1 else self.accumulators

    def buffer_use(self) -> dict[str, tuple[int, int]]:
        """Return the used and the available bytes of each buffer of a core; empty for a schedule without a chip."""
        if self.chip is None:
            return {}
        b = self.blocking
        strip = self.strip_rows * b.bn * ACCUMULATOR_BYTES
        l1 = self.words * self.format.stored(b.bk) * (self.l1_blocks("a") * b.bm + self.l1_blocks("b") * b.bn)
        l0c = max(self.l0c_slots, 1) * self.accumulators * b.bm * b.bn * ACCUMULATOR_BYTES
        use = {
            "L1": (l1, self.chip.l1_bytes),
            "L0A": (self.l0_slots * b.bm * b.bk * self.format.bits // 8, self.chip.l0a_bytes),
            "L0B": (self.l0_slots * b.bk * b.bn * self.format.bits // 8, self.chip.l0b_bytes),
            "L0C": (l0c, self.chip.l0c_bytes),
        }
        if not self.chip.fixpipe:
            use["UB"] = (self.ub_slots * self.ub_copies * strip, self.chip.ub_bytes)
        return use

    @property
    def panel_blocks(self) -> int:
        """Return the number of k blocks in the longest resident panel; 0 if no operand is resident."""
        return 0 if self.resident == "none" else fractals(self.chain, self.blocking.bk)

    def l1_blocks(self, operand: str) -> int:
        """Return the number of blocks of an operand ("a" or "b") that L1 holds for each word.

        These are the blocks of the panel if the operand is resident, and else the buffers through which it is streamed.
        """
        return self.panel_blocks if operand == self.resident else self.depth

    @property
    def l0_slots(self) -> int:
        """Return the number of blocks that L0A holds, which is also the number in L0B.

        Modes that compute all terms together (fused, elementwise) keep both words there, even with single buffers.
        """
        return max(self.stream_slots, self.words)

    # -------------------------------------------------------- exact counts

    def cube_steps(self) -> int:
        """Return the number of cube steps of the schedule; a partial step at an edge counts as one.

        Without start-up times it is the number of cycles that the cubes of all cores compute.
        """
        step_m, step_k, step_n = self.cube_step
        rows = sum(fractals(stop - start, step_m) for start, stop in self.row_blocks)
        columns = sum(fractals(stop - start, step_n) for start, stop in self.column_blocks)
        depth = sum(
            sum(fractals(stop - start, step_k) for start, stop in self.k_blocks(group)) for group in self.k_groups
        )
        return self.terms * rows * columns * depth

    @classmethod
    @integer_arguments("m", "k", "n", "terms")
    def unblocked(
        cls, *, m: int, k: int, n: int, terms: int = 3, mode: Mode = "termwise", reseed_l0c: bool = False
    ) -> "TileSchedule":
        """Return a schedule of one block that holds the whole product, without a chip's limits, for small numeric runs.

        Sizes may be 0.

        Raises
        ------
        ValueError
            If a size is negative or too large, or an option unknown.
        """
        for name, size in (("m", m), ("k", k), ("n", n)):
            if size < 0 or size > LARGEST_SIZE:
                raise ValueError(f"{name} must lie between 0 and {LARGEST_SIZE}, got {size}")
        blocking = Blocking(*(max(fractals(size), 1) * ALIGNMENT for size in (m, k, n)))
        whole = cls(
            m=m, k=k, n=n, chip=None, blocking=blocking, terms=terms, mode=mode, reseed_l0c=reseed_l0c, n_fused=1
        )
        whole.check_options()
        return whole

    # -------------------------------------------------------- product of a kernel, and methods that differ by kernel

    def product(self, a: Any, b: Any, c: Any = None, arithmetic: CubeArithmetic | None = None) -> np.ndarray:
        """Return A B (+ C) as the kernel computes it, bit for bit.

        `a` (m, k), `b` (k, n) and `c` (m, n) or None hold FP32 values. The result is float32 (int32 for int8 operands,
        float16 with FP16 accumulation). `arithmetic` holds the options of the arithmetic that the schedule does not
        determine. It has an effect only if the operands are FP16 or words of FP16.
        """
        if self.sums.lanes or self.operand not in SPLIT_OPERANDS:
            return merge_slices(self.slice_products(a, b, c))
        return words_product(self.sums, *checked_matrices(a, b, c), self._settled(arithmetic))

    def slice_products(self, a: Any, b: Any, c: Any = None, arithmetic: CubeArithmetic | None = None) -> np.ndarray:
        """Return the sums of the slices of k before they are merged, shape (slices, m, n); the first slice starts from c.

        :meth:`product` explains the arguments.
        """
        a, b, c = checked_matrices(a, b, c)
        if self.operand not in SPLIT_OPERANDS:
            return operand_slices(self.sums, a, b, c)
        return words_slices(self.sums, a, b, c, self._settled(arithmetic))

    def _settled(self, arithmetic: CubeArithmetic | None) -> CubeArithmetic:
        return (arithmetic or CubeArithmetic()).on(self.chip)

    def sampled(self, side: int) -> "TileSchedule":
        """Return the schedule of a product with at most `side` rows and columns, whose sums are added as in this schedule."""
        return replace(self, m=min(self.m, side), n=min(self.n, side))
