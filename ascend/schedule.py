"""The tile schedule of a GEMM on an Ascend chip: one object that is run for the product and for the time.

A :class:`TileSchedule` fixes in which order the blocks of C = A B are computed and where they lie meanwhile.
The numeric interpreter (:mod:`ascend.cube`) walks its ranges; the timing one (:mod:`ascend.pipes.simulate`) runs
the operations that :mod:`ascend.pipes.build` derives from it. Sizes are given in the order m, k, n everywhere.

Source: SGEMM-cube (arXiv:2507.23387v4), Algorithm 1 and section 5.1. One core computes a row block; for each
group of N_fused A blocks, which stay in L1, B is streamed column block by column block:

    for each row block of A (in parallel over the cores, in waves)
      for each k group (N_fused blocks of bk)          A panel: GM -> L1, resident
        for each column block of B
          for each k block of the group                B: GM -> L1 -> L0B; A: L1 -> L0A; cube steps into L0C
          C block: L0C -> UB, added to C there, UB -> GM
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Literal

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, OPERAND_BYTES, Blocking, Buffering, slots
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip

#: ``termwise``: one pass over the schedule for each term, an FP32 C for each, combined in the last write-back
#: (section 4.4). ``termwise_inplace``: Algorithm 1 run for each term into one C. ``fused``: both words of A
#: and B in L1, one pass, an accumulator in L0C for each term. ``elementwise``: as fused, with one accumulator
#: for all terms.
Mode = Literal["termwise", "termwise_inplace", "fused", "elementwise"]
MODES = ("termwise", "termwise_inplace", "fused", "elementwise")
#: (word of A, word of B) of each term, h high and l low, in the paper's order (eq. 7); the fourth is the one
#: it omits.
TERMS = ("hh", "lh", "hl", "ll")
#: Transfers below 16 KiB lose bandwidth (measured on 910B), longer ones stop the B stream for longer.
STRIP_BYTES = 16384
#: Ranges of row or column blocks beyond this are a mistake: half a million elements a core in blocks of 16.
MOST_BLOCKS = 2**20
#: Sizes beyond this are a mistake: 2^31 elements along one side.
LARGEST_SIZE = 2**31 - 1

Range = tuple[int, int]


def split_range(start: int, stop: int, step: int) -> tuple[Range, ...]:
    """Half-open ranges of `step` that cover [start, stop); the last may be shorter."""
    return tuple((first, min(first + step, stop)) for first in range(start, stop, step))


def fractals(length: int, step: int = ALIGNMENT) -> int:
    """Cube steps that cover `length`."""
    return -(-length // step)


@dataclass(frozen=True, kw_only=True)
class TileSchedule:
    """Which block is computed when, by which core, and how large the buffers for it are.

    Build it by :func:`build_schedule` (checked against a chip) or :meth:`unblocked` (no chip).

    Parameters
    ----------
    m, k, n : int
        A is m x k, B is k x n, C is m x n.
    chip : Chip or None
        None: no chip limits (one core).
    blocking : Blocking
    terms : int
        1 (plain FP16 GEMM), 3 (high-high, low-high, high-low) or 4 (low-low, too).
    buffering : {"double", "single"}
    mode : {"termwise", "termwise_inplace", "fused", "elementwise"}
    reseed_l0c : bool
        L0C starts each k group after the first from C instead of 0.
    operand : {"fp16", "fp32"}
        Format of the operands in L1.
    n_fused : int
        A blocks of bk columns in a k group.
    """

    m: int
    k: int
    n: int
    chip: Chip | None
    blocking: Blocking
    terms: int = 3
    buffering: Buffering = "double"
    mode: Mode = "termwise"
    reseed_l0c: bool = False
    operand: str = "fp16"
    n_fused: int

    # -------------------------------------------------------- geometry, for both interpreters

    @cached_property
    def row_blocks(self) -> tuple[Range, ...]:
        """Half-open ranges of rows of A and C, bm long."""
        return split_range(0, self.m, self.blocking.bm)

    @cached_property
    def column_blocks(self) -> tuple[Range, ...]:
        """Half-open ranges of columns of B and C, bn long."""
        return split_range(0, self.n, self.blocking.bn)

    @cached_property
    def k_groups(self) -> tuple[Range, ...]:
        """Half-open ranges of k, bk * N_fused long: L0C accumulates within one, UB adds between them."""
        return split_range(0, self.k, self.blocking.bk * self.n_fused)

    def k_blocks(self, group: Range) -> tuple[Range, ...]:
        """Half-open ranges of k, bk long, within a k group."""
        return split_range(*group, self.blocking.bk)

    @cached_property
    def cube_step(self) -> tuple[int, int, int]:
        """(m, k, n) of one cube step."""
        if self.chip is None:
            return (ALIGNMENT, ALIGNMENT, ALIGNMENT)
        return (self.chip.cube_m, self.chip.cube_step_k(self.operand), self.chip.cube_n)

    # -------------------------------------------------------- cores and waves

    @property
    def placed_on(self) -> Chip:
        """The chip.

        Raises
        ------
        ValueError
            For an unblocked schedule, which has none.
        """
        if self.chip is None:
            raise ValueError("an unblocked schedule has no chip, so no time: build it with build_schedule")
        return self.chip

    @property
    def cores(self) -> int:
        """Cores that share the row blocks."""
        return 1 if self.chip is None else self.chip.cores

    @cached_property
    def waves(self) -> int:
        """Times that the cores take a row block: ceil(row blocks / cores)."""
        return -(-len(self.row_blocks) // self.cores)

    def active_cores(self, wave: int) -> int:
        """Cores that have a row block in a wave."""
        return min(self.cores, len(self.row_blocks) - wave * self.cores)

    def row_blocks_of_core(self, core: int) -> tuple[Range, ...]:
        """The row blocks that one core computes, one for each wave."""
        return self.row_blocks[core :: self.cores]

    def variant(self, **changes) -> "TileSchedule":
        """This schedule with other fields, checked again; another block, chip or mode brings its own N_fused.

        Parameters
        ----------
        **changes
            Fields of the schedule.

        Raises
        ------
        ValueError
            As :func:`build_schedule`.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self)} | changes
        if "n_fused" not in changes and changes.keys() & {"blocking", "mode", "buffering", "operand", "terms"}:
            values["n_fused"] = None
        return build_schedule(**values)

    def timed_by(self, chip: Chip) -> "TileSchedule":
        """The same schedule on a chip with other timing numbers, for what-if studies."""
        return replace(self, chip=chip)

    # -------------------------------------------------------- words, terms, buffers

    @property
    def term_names(self) -> tuple[str, ...]:
        """Names of the terms in the order in which they run: the small ones first if combined last."""
        names = TERMS[: self.terms]
        return names if self.mode != "termwise" else names[1:] + names[:1]

    @cached_property
    def passes(self) -> tuple[tuple[str, ...], ...]:
        """Terms computed together: one tuple for each time that the schedule is walked."""
        if self.mode in ("fused", "elementwise"):
            return (TERMS[: self.terms],)
        return tuple((name,) for name in self.term_names)

    @cached_property
    def words(self) -> int:
        """FP16 words of each element in L1 at a time: 2 for a kernel that fuses the terms."""
        return 2 if self.mode in ("fused", "elementwise") and self.terms > 1 else 1

    @cached_property
    def accumulators(self) -> int:
        """L0C tiles of one C block."""
        return self.terms if self.mode == "fused" else 1

    @property
    def order(self) -> str:
        """Order of the sums (see :mod:`ascend.cube`): a fused kernel gives the bits of termwise order."""
        return "termwise" if self.mode == "fused" else self.mode

    @property
    def chain(self) -> int:
        """Products that one sum in L0C adds before it leaves: bk * N_fused, at most k."""
        return min(self.k, self.blocking.bk * self.n_fused)

    @property
    def operand_bytes(self) -> int:
        """Bytes of one operand element."""
        return OPERAND_BYTES[self.operand]

    @property
    def stream_slots(self) -> int:
        """Buffers for each operand stream: 1 or 2."""
        return slots(self.buffering)

    @cached_property
    def l0c_slots(self) -> int:
        """C blocks in L0C at a time: 2 where they fit, for either buffering (the paper's concerns L1 and L0)."""
        block = self.accumulators * self.blocking.bm * self.blocking.bn * ACCUMULATOR_BYTES
        return 2 if self.chip is None else min(2, self.chip.l0c_bytes // block)

    @cached_property
    def ub_slots(self) -> int:
        """Strips of C in UB at a time: 2 where two of the least height fit, for either buffering."""
        if self.chip is None:
            return 2
        least = ALIGNMENT * self.ub_copies * self.blocking.bn * ACCUMULATOR_BYTES
        return max(min(2, self.chip.ub_bytes // least), 1)

    @cached_property
    def strip_rows(self) -> int:
        """Rows of a C block that go through UB at a time: 16 KiB of FP32 or more where they fit."""
        if self.chip is None:
            return self.blocking.bm
        row = self.blocking.bn * ACCUMULATOR_BYTES
        fitting = max(self.chip.ub_bytes // (self.ub_slots * self.ub_copies * row) // ALIGNMENT, 1)
        wanted = -(-STRIP_BYTES // (ALIGNMENT * row))
        return min(wanted, fitting, fractals(self.blocking.bm)) * ALIGNMENT

    @cached_property
    def ub_copies(self) -> int:
        """FP32 copies of a C strip in UB: one fresh from each accumulator, and those read back at the worst place."""
        places = [(p, g) for p in range(len(self.passes)) for g in (0, len(self.k_groups) - 1) if g >= 0]
        seeds = 1 if self.reseed_l0c and len(self.k_groups) > 1 else 0
        return self.accumulators + max([seeds, *(self.c_reads(p, g) for p, g in places)])

    # -------------------------------------------------------- C between L0C and memory

    def c_reads(self, walk: int, group: int) -> int:
        """FP32 copies of a C block read back from memory for its write-back in a pass and k group.

        Its own partial sum after the first k group (or, in place, after the first write); for ``termwise`` the sum of
        the terms before it, too, when its last k group completes it.
        """
        if self.reseed_l0c and group > 0:
            own = 0
        elif self.mode == "termwise_inplace":
            own = 1 if walk > 0 or group > 0 else 0
        else:
            own = self.accumulators if group > 0 else 0
        completes = self.mode == "termwise" and walk > 0 and group == len(self.k_groups) - 1
        return own + completes

    def c_writes(self, group: int) -> int:
        """FP32 copies of a C block written in a k group: a fused kernel combines its accumulators in the last one."""
        return 1 if group == len(self.k_groups) - 1 else self.accumulators

    def buffer_use(self) -> dict[str, tuple[int, int]]:
        """Bytes used and there, for each buffer of a core.

        Returns
        -------
        dict of str to (int, int)
            Empty for a schedule without a chip.
        """
        if self.chip is None:
            return {}
        b, size, count = self.blocking, self.operand_bytes, self.stream_slots
        resident = min(self.n_fused, fractals(self.k, b.bk)) if self.k else 0
        strip = self.strip_rows * b.bn * ACCUMULATOR_BYTES
        use = {
            "L1": (self.words * size * (resident * b.bm * b.bk + count * b.bk * b.bn), self.chip.l1_bytes),
            "L0A": (self.l0_slots * b.bm * b.bk * size, self.chip.l0a_bytes),
            "L0B": (self.l0_slots * b.bk * b.bn * size, self.chip.l0b_bytes),
            "L0C": (
                max(self.l0c_slots, 1) * self.accumulators * b.bm * b.bn * ACCUMULATOR_BYTES,
                self.chip.l0c_bytes,
            ),
        }
        if not self.chip.fixpipe:
            use["UB"] = (self.ub_slots * self.ub_copies * strip, self.chip.ub_bytes)
        return use

    @property
    def l0_slots(self) -> int:
        """Blocks in L0A (and in L0B): a fused kernel keeps both words there even with single buffers."""
        return max(self.stream_slots, self.words)

    # -------------------------------------------------------- exact counts

    def cube_steps(self) -> int:
        """Cube steps of the whole schedule, edges rounded up: the cube's cycles without heads."""
        step_m, step_k, step_n = self.cube_step
        rows = sum(fractals(stop - start, step_m) for start, stop in self.row_blocks)
        columns = sum(fractals(stop - start, step_n) for start, stop in self.column_blocks)
        depth = sum(fractals(stop - start, step_k) for group in self.k_groups for start, stop in self.k_blocks(group))
        return self.terms * rows * columns * depth

    @classmethod
    def unblocked(
        cls, *, m: int, k: int, n: int, terms: int = 3, mode: Mode = "termwise", reseed_l0c: bool = False
    ) -> "TileSchedule":
        """The whole matrix as one block without chip limits, for small numeric runs. Sizes may be 0.

        Raises
        ------
        ValueError
            If a size is negative or too large, or an option unknown.
        """
        for name, size in (("m", m), ("k", k), ("n", n)):
            if size < 0 or size > LARGEST_SIZE:
                raise ValueError(f"{name} must lie between 0 and {LARGEST_SIZE}, got {size}")
        blocking = Blocking(*(max(fractals(size), 1) * ALIGNMENT for size in (m, k, n)))
        _check_options(terms, mode, "fp16")
        return cls(
            m=m, k=k, n=n, chip=None, blocking=blocking, terms=terms, mode=mode, reseed_l0c=reseed_l0c, n_fused=1
        )


def build_schedule(
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    blocking: Blocking,
    *,
    terms: int = 3,
    buffering: Buffering = "double",
    mode: Mode = "termwise",
    reseed_l0c: bool = False,
    operand: str = "fp16",
    n_fused: int | None = None,
) -> TileSchedule:
    """The schedule of C = A B (A m x k, B k x n) in blocks on a chip.

    Parameters
    ----------
    m, k, n : int
        Sizes, at least 1.
    chip : Chip or str
    blocking : Blocking
    terms, buffering, mode, reseed_l0c, operand
        As in :class:`TileSchedule`.
    n_fused : int, optional
        A blocks in a k group; the most that fit L1 if None.

    Raises
    ------
    ValueError
        If a size is not positive or a buffer would overflow: which one, its bytes and its limit.
    TypeError
        If `blocking` is no Blocking or `chip` no chip.
    """
    if not isinstance(blocking, Blocking) or not isinstance(chip, Chip | str):
        raise TypeError(
            "build_schedule(m, k, n, chip, blocking): expected a Chip or its name and a Blocking, got "
            f"{type(chip).__name__} and {type(blocking).__name__}"
        )
    chip = get_chip(chip)
    for name, size in (("m", m), ("k", k), ("n", n)):
        if not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"{name} must lie between 1 and {LARGEST_SIZE}, got {size}")
    for name, size, step in (("m", m, blocking.bm), ("k", k, blocking.bk), ("n", n, blocking.bn)):
        if -(-size // step) > MOST_BLOCKS:
            raise ValueError(f"{name} = {size} makes {-(-size // step)} blocks of {step}, more than {MOST_BLOCKS}")
    _check_options(terms, mode, operand)
    chip.cube_step_k(operand)
    if reseed_l0c and chip.fixpipe:
        raise ValueError(f"reseed_l0c: {chip.name} writes L0C through FIXPIPE and has no path from UB into L0C")
    words = 2 if mode in ("fused", "elementwise") and terms > 1 else 1
    most = blocking.n_fused(chip, buffering, words, operand)
    if most < 1:
        needed = words * OPERAND_BYTES[operand] * blocking.bk * (blocking.bm + slots(buffering) * blocking.bn)
        raise ValueError(f"block {blocking} overflows L1 of {chip.name}: {needed} bytes, limit {chip.l1_bytes}")
    if n_fused is not None and n_fused < 1:
        raise ValueError(f"n_fused must be at least 1, got {n_fused}")
    schedule = TileSchedule(
        m=int(m), k=int(k), n=int(n), chip=chip, blocking=blocking, terms=terms, buffering=buffering, mode=mode,
        reseed_l0c=bool(reseed_l0c), operand=operand, n_fused=most if n_fused is None else int(n_fused),
    )  # fmt: skip
    for buffer, (used, there) in schedule.buffer_use().items():
        if used > there:
            raise ValueError(
                f"block {blocking} ({mode}, {buffering} buffers) overflows {buffer} of {chip.name}: "
                f"{used} bytes, limit {there}"
            )
    return schedule


def _check_options(terms: int, mode: str, operand: str) -> None:
    if terms not in (1, 3, 4):
        raise ValueError(f"terms is 1 (plain), 3 (eq. 7) or 4 (low-low too), got {terms!r}")
    if mode not in MODES:
        raise ValueError(f"mode is one of {', '.join(MODES)}, got {mode!r}")
    if operand not in OPERAND_BYTES:
        raise ValueError(f"operand is 'fp16' or 'fp32', got {operand!r}")
    if operand == "fp32" and terms != 1:
        raise ValueError("fp32 operands are not split: terms must be 1")
