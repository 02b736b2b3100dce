"""This module lists the block sizes (bm, bk, bn) that a chip admits, and says why it rejects others.

Source: SGEMM-cube (arXiv:2507.23387v4), eq. 8 (N_fused, f) and eq. 12 (the feasible space).
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from ascend.chips.chip import Chip
from ascend.operand_formats import ALIGNMENT, FORMATS
from tensorcore_models.integers import integer_arguments, integer_fields
from tensorcore_models.machine.fp_state import default_fp_state

#: Number of operand buffers: B in L1, A and B in L0 (the paper's section 5.1.2; A stays resident in L1).
Buffering = Literal["single", "double"]
#: Format of SGEMM-cube's words.
SPLIT_OPERANDS = ("fp16",)
#: UB bytes for each element of a C block: eq. 12 prints 6.
UB_BYTES_PER_ELEMENT = 6
#: L0C holds FP32.
ACCUMULATOR_BYTES = 4


def fractals(length: int, step: int = ALIGNMENT) -> int:
    """Return the number of cube steps that cover `length`."""
    return -(-length // step)


def slots(buffering: str) -> int:
    """Return the number of buffers for one stream, 1 or 2. Raises ValueError if the name is unknown."""
    if buffering == "single":
        return 1
    if buffering == "double":
        return 2
    raise ValueError(f"buffering must be 'single' or 'double', got {buffering!r}")


class Rejection(NamedTuple):
    """`Rejection` is a constraint that a block violates.

    If the constraint is a buffer's capacity, `needed` and `limit` are bytes. If it is an alignment, `needed` is the size that
    was given, and `limit` is the number of which the size must be a multiple.
    """

    constraint: str
    needed: int
    limit: int

    def __str__(self) -> str:
        if self.constraint.endswith("alignment"):
            return f"{self.constraint}: {self.needed} must be a positive multiple of {self.limit}"
        return f"{self.constraint}: {self.needed} bytes needed, {self.limit} available"


def panel_capacity(l1: Any, each: Any, panel: Any, streamed: Any) -> Any:
    """Return the number of blocks of a resident panel that fit L1 beside the stream's buffers (N_fused of eq. 8).

    A result of 0 or less means that no block fits. `each` is the number of bytes of one row or column of a block, in the unit
    of `l1`; `panel` and `streamed` are rows or columns.
    """
    return (l1 - each * streamed) // (each * panel)


@dataclass(frozen=True, order=True)
class Blocking:
    """`Blocking` holds the sizes of the blocks that one core multiplies at a time: (bm x bk) of A by (bk x bn) of B.

    Parameters
    ----------
    bm, bk, bn : int
        Sizes in elements; positive multiples of 16.

    Raises
    ------
    ValueError
        If a size is not a positive multiple of 16.
    """

    bm: int
    bk: int
    bn: int

    def __post_init__(self):
        integer_fields(self, "bm", "bk", "bn")
        for name in ("bm", "bk", "bn"):
            size = getattr(self, name)
            if size < 1 or size % ALIGNMENT:
                below, above = (max(size // ALIGNMENT + more, more) * ALIGNMENT for more in (0, 1))
                near = f"{above}" if below < ALIGNMENT else f"{below} or {above}"
                raise ValueError(
                    f"{name} must be a positive multiple of {ALIGNMENT} (16x16 fractals), got {size}: give {near}"
                )

    def __str__(self) -> str:
        return f"({self.bm}, {self.bk}, {self.bn})"

    @integer_arguments("words")
    def n_fused(self, chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16") -> int:
        """Return N_fused (eq. 8 of Xue et al.), the number of A blocks that fit in L1 together with the B buffers.

        A result of 0 or less means that not even one A block fits.

        Parameters
        ----------
        chip : Chip
            The chip whose parameters are used.
        buffering : {"double", "single"}
            Number of B buffers: two if "double", one if "single".
        words : int
            Number of FP16 words of each element that are in L1 at a time: 2 if the kernel computes all terms together (modes
            fused and elementwise), else 1.
        operand : str
            Format of the elements, a name of :data:`ascend.operand_formats.FORMATS`. Bytes of block scales are counted, too.
        """
        each = words * FORMATS[operand].stored(self.bk)
        return panel_capacity(chip.l1_bytes, each, self.bm, slots(buffering) * self.bn)

    @default_fp_state
    @integer_arguments("words")
    def fusion_efficiency(
        self, chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
    ) -> float:
        """Return f of eq. 8 of Xue et al., the fraction of L1 that N_fused blocks of A fill.

        :meth:`n_fused` explains the arguments.
        """
        resident = self.n_fused(chip, buffering, words, operand) * words * self.bm
        return resident * FORMATS[operand].stored(self.bk) / chip.l1_bytes

    @integer_arguments("words")
    def rejections(
        self, chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
    ) -> list[Rejection]:
        """Return the constraints of eq. 12 of Xue et al. (arXiv:2507.23387v4) that the block breaks on `chip`.

        The list is empty if the block is feasible. A block may fill at most half of L0A or of L0B, even with single buffers,
        because the paper states the limit as 64 x 256 elements. L0C and UB are two constraints, because on some chips L0C is
        smaller. :meth:`n_fused` explains the arguments.
        """
        form = FORMATS[operand]
        if self.bk % form.whole_k:
            return [Rejection("bk alignment", self.bk, form.whole_k)]
        needs = (
            ("L0A capacity (half, for ping-pong)", self.bm * self.bk * form.bits // 8, chip.l0a_bytes // 2),
            ("L0B capacity (half, for ping-pong)", self.bk * self.bn * form.bits // 8, chip.l0b_bytes // 2),
            ("L0C capacity", self.bm * self.bn * ACCUMULATOR_BYTES, chip.l0c_bytes),
            ("UB capacity (6 bytes for each element of C)", self.bm * self.bn * UB_BYTES_PER_ELEMENT, chip.ub_bytes),
            (
                "L1 capacity (one A block and the B buffers)",
                words * form.stored(self.bk) * (self.bm + slots(buffering) * self.bn),
                chip.l1_bytes,
            ),
        )
        return [Rejection(*need) for need in needs if need[1] > need[2]]

    def is_feasible(self, chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16") -> bool:
        """Return whether the block satisfies all constraints of eq. 12 of Xue et al.; for the arguments see :meth:`n_fused`."""
        return not self.rejections(chip, buffering, words, operand)


@integer_arguments("bm", "bk", "bn", "words")
def candidate_rejections(
    bm: int, bk: int, bn: int, chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
) -> list[Rejection]:
    """Return the constraints of eq. 12 of Xue et al. (arXiv:2507.23387v4) that the block sizes bm, bk and bn violate.

    Unlike in :meth:`Blocking.rejections`, the sizes need not be multiples of 16.

    Parameters
    ----------
    bm, bk, bn : int
        Sizes in elements.
    chip, buffering, words, operand
        See :meth:`Blocking.n_fused`.
    """
    unaligned = [
        Rejection(f"{name} alignment", size, ALIGNMENT)
        for name, size in (("bm", bm), ("bk", bk), ("bn", bn))
        if size < 1 or size % ALIGNMENT
    ]
    return unaligned or Blocking(bm, bk, bn).rejections(chip, buffering, words, operand)


@integer_arguments("words")
def feasible_sizes(
    chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16", whole_in_ub: bool = True
) -> np.ndarray:
    """Return the feasible space of eq. 12 as an int64 array of rows (bm, bk, bn), in lexicographic order.

    Set `whole_in_ub` to False for kernels that bring a block of C to UB in strips: eq. 12 asks that UB hold the
    whole block. :meth:`Blocking.n_fused` explains the other arguments.
    """
    form, unit = FORMATS[operand], FORMATS[operand].whole_k
    c_elements = chip.l0c_bytes // ACCUMULATOR_BYTES
    if whole_in_ub:
        c_elements = min(chip.ub_bytes // UB_BYTES_PER_ELEMENT, c_elements)
    a_elements, b_elements = chip.l0a_bytes * 4 // form.bits, chip.l0b_bytes * 4 // form.bits
    most_m = min(a_elements, c_elements) // ALIGNMENT**2
    most_k = min(a_elements, b_elements) // (ALIGNMENT * unit)
    most_n = min(b_elements, c_elements) // ALIGNMENT**2
    sides = ((most_m, ALIGNMENT), (most_k, unit), (most_n, ALIGNMENT))
    m, k, n = (step * np.arange(1, most + 1, dtype=np.int64) for most, step in sides)
    # Two planes are made first because the whole cube of candidates would be a thousand times the feasible space.
    im, ik = np.nonzero(m[:, None] * k[None, :] <= a_elements)
    of_b, of_c = k[ik][:, None] * n, m[im][:, None] * n
    in_l1 = words * form.stored(k[ik])[:, None] * (m[im][:, None] + slots(buffering) * n) <= chip.l1_bytes
    row, column = np.nonzero((of_b <= b_elements) & (of_c <= c_elements) & in_l1)
    return np.stack([m[im[row]], k[ik[row]], n[column]], axis=1)


def feasible_blocks(
    chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
) -> list[Blocking]:
    """Return all blocks that eq. 12 of Xue et al. (arXiv:2507.23387v4) admits on `chip`, 2329 on 910A, in lexicographic order.

    Parameters
    ----------
    chip, buffering, words, operand
        See :meth:`Blocking.n_fused`.
    """
    return [Blocking(*sizes) for sizes in feasible_sizes(chip, buffering, words, operand).tolist()]


@default_fp_state
def optimal_bm(chip: Chip, fusion_efficiency: float) -> float:
    """Return the real-valued bm that minimises the traffic of eq. 9 of Xue et al.: sqrt(f L1 / (2 N_core)), L1 in elements.

    Parameters
    ----------
    chip : Chip
        The chip whose parameters are used.
    fusion_efficiency : float
        f of eq. 8 of Xue et al., the fraction of L1 that the resident panel fills, from 0 to 1.
    """
    return math.sqrt(fusion_efficiency * (chip.l1_bytes // 2) / (2 * chip.cores))


class RejectedBlock(NamedTuple):
    """`RejectedBlock` is a block that does not fit, with the constraints that it breaks."""

    bm: int
    bk: int
    bn: int
    reasons: tuple[Rejection, ...]


def rejections(
    chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
) -> list[RejectedBlock]:
    """Return the blocks just outside the feasible space: eq. 12 of Xue et al. admits them if one size shrinks by 16.

    Blocks that are larger than a returned block break the same constraints.

    Parameters
    ----------
    chip, buffering, words, operand
        See :meth:`ascend.Blocking.n_fused`.
    """
    feasible = feasible_sizes(chip, buffering, words, operand)
    known = set(map(tuple, feasible.tolist()))
    frontier = {
        neighbour
        for bm, bk, bn in known
        for neighbour in ((bm + ALIGNMENT, bk, bn), (bm, bk + ALIGNMENT, bn), (bm, bk, bn + ALIGNMENT))
        if neighbour not in known
    }
    return [
        RejectedBlock(*block, tuple(candidate_rejections(*block, chip, buffering, words, operand)))
        for block in sorted(frontier)
    ]
