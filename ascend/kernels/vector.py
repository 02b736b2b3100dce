"""This module defines the kernel that multiplies few rows or columns on the vector units in FP32, without words and terms.

Cores along its long side and along k stream the larger operand through UB once, in tiles.

Every product is rounded to FP32 and then added, each step RN, because it is not published whether the units fuse the
two.

- B streamed (n >= m): each element of C is one chain over the slice's k in order; a row of B times one element of A at a
  time, lanes along n.
- A streamed (n < m): lanes along k: lane l adds the products of k = l, l + 64, ... in order, and the 64 sums are added
  by halves (lane l and l + 32, then l + 16, and so on).

Slices of k are merged as on the cube (:mod:`ascend.slices`); c is the start of the first slice's chain, or is added
to its sum of lanes.
"""

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, fractals, slots
from ascend.grid import Grid
from ascend.kernels.base import Kernel, Phases
from ascend.kernels.options import BlockedProduct
from ascend.memory import Misses, passes_bytes
from ascend.numeric.arguments import checked_matrices
from ascend.programs.passes import vector_phase
from ascend.programs.program import Phase
from ascend.schedule_options import ScheduleOptions
from ascend.slices import Sums, each_slice
from ascend.tile_schedule import TileSchedule

#: Formats of operands that the vector units multiply in FP32.
VECTOR_OPERANDS = ("fp32", "fp16")
#: FP32 lanes of a 2048-bit vector.
LANES = 64


class VectorKernel(Kernel):
    """`VectorKernel` streams the larger operand through UB once and keeps the other one there."""

    kernel: ClassVar[str] = "vector"
    on_cube: ClassVar[bool] = False
    #: One more rounding, because a product is rounded before it is added.
    own_roundings: ClassVar[int] = 1

    @classmethod
    def placed(cls, place: BlockedProduct, options: ScheduleOptions) -> Self:
        """Return a schedule. Raises ValueError for other operands, more terms, a resident panel or an impossible grid."""
        if options.terms != 1 or options.operand not in VECTOR_OPERANDS:
            raise ValueError(
                f"the vector kernel computes 1 term of {' or '.join(VECTOR_OPERANDS)} operands, got {options.terms} term(s) of "
                f"{options.operand}: give terms=1 and one of these formats"
            )
        if options.resident not in (None, "none"):
            raise ValueError(
                f"the vector kernel keeps no operand in L1, got resident operand {options.resident}: leave out resident"
            )
        bare = cls(
            **place.of_schedule(), **options.shared_options(), n_fused=1, grid=_grid(place, options), resident="none",
            balanced=bool(options.balanced), depth=slots(options.buffering),
        )  # fmt: skip
        start, stop = bare.k_slices[0]
        return replace(bare, n_fused=fractals(stop - start, bare.blocking.bk))

    @property
    def streamed(self) -> str:
        """Return the operand that is streamed, the larger one."""
        return "b" if self.n >= self.m else "a"

    @property
    def cube_step(self) -> tuple[int, int, int]:
        """Return the size of a fractal in its layout, because nothing runs on the cube."""
        return (ALIGNMENT, ALIGNMENT, ALIGNMENT)

    def cube_steps(self) -> int:
        """Return 0, because nothing runs on the cube."""
        return 0

    @property
    def used_cores(self) -> int:
        """Return the number of cores that have work."""
        return min(self.grid.m, self.m) * len(self.k_slices) * min(self.grid.n, self.n)

    @property
    def waves(self) -> int:
        """Return 1, because each core has one part."""
        return 1

    @property
    def converts(self) -> bool:
        """Return False, because the vector units read ND rows."""
        return False

    def buffer_use(self) -> dict[str, tuple[int, int]]:
        """Return the bytes in UB: two tiles of the streamed operand, the part of the other one, two tiles of the result."""
        b = self.blocking
        kept, width = (min(b.bm, self.m), b.bn) if self.streamed == "b" else (min(b.bn, self.n), b.bm)
        longest = self.k_slices[0][1] - self.k_slices[0][0]
        used = ACCUMULATOR_BYTES * (2 * b.bk * width + kept * longest + 2 * kept * width)
        return {"UB": (used, self.placed_on.ub_bytes)}

    def misses(self) -> Misses:
        """Return the misses: each operand is loaded once, and the kept one counts as an L2 hit."""
        return Misses(1.0, 0.0)

    def memory_bytes(self) -> float:
        """Return the bytes of A and B once, of C for each slice, and of the merge."""
        slices = len(self.k_slices)
        added = 2.0 if slices > 1 and self.merge == "atomic" else 1.0
        operands = self.operand_bytes * (float(self.m) * self.k + float(self.k) * self.n)
        return operands + slices * added * ACCUMULATOR_BYTES * float(self.m) * self.n + passes_bytes(self, slices)

    def peak_flops(self) -> float:
        """Return the peak of one multiply-add for each FP32 lane in two cycles."""
        chip = self.placed_on
        return chip.cores * chip.vector_rate / ACCUMULATOR_BYTES * chip.cycles_per_second

    def placement(self) -> str:
        """Return a few words on the placement: the streamed operand."""
        return f"vector, {self.streamed.upper()} streamed"

    def multiplication(self, phases: Phases) -> Phase:
        """Return the phase in which each core streams its part."""
        return vector_phase(self, phases.simulated)

    @property
    def sums(self) -> Sums:
        """Return the sums: one chain, or one sum of lanes, for each slice of k."""
        return replace(super().sums, lanes=self.streamed, reseeded=False)

    def slice_products(self, a: Any, b: Any, c: Any = None, arithmetic: Any = None) -> np.ndarray:
        """Compute :meth:`TileSchedule.slice_products` in float32; the schedule leaves no arithmetic open."""
        a, b, c = checked_matrices(a, b, c)
        if self.operand == "fp16":
            a, b = a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32)
        chain = _chains if self.streamed == "b" else _lanes
        with np.errstate(over="ignore", invalid="ignore"):
            return np.stack([chain(x, y, seed) for _, x, y, seed in each_slice(self.sums, a, b, c)])

    def sampled(self, side: int) -> TileSchedule:
        """Return the schedule of at most `side` rows and columns, with the same operand streamed."""
        rows, columns = min(self.m, side), min(self.n, side)
        return replace(self, m=rows, n=rows - 1 if self.streamed == "a" and rows <= columns else columns)


def _grid(place: BlockedProduct, options: ScheduleOptions) -> Grid:
    """Return the grid of cores along the long side and along k."""
    streams_b, b, chip = place.n >= place.m, place.blocking, place.chip
    side, grid, split = "n" if streams_b else "m", options.cores, options.split or 1
    if grid is None:
        tiles = -(-place.n // b.bn) if streams_b else -(-place.m // b.bm)
        across = max(min(chip.cores // split, tiles), 1)
        grid = Grid(1 if streams_b else across, split, across if streams_b else 1)
    if (grid.m if streams_b else grid.n) != 1 or grid.cores > chip.cores:
        raise ValueError(
            f"the vector kernel divides only {side} and k among the {chip.cores} cores of {chip.name}, got a grid of {grid} "
            f"(m, k, n): take 1 for {'m' if streams_b else 'n'} and at most {chip.cores} cores"
        )
    place.check_slices(grid.k)
    return grid


def _chains(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    total = np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c.copy()
    for position in range(a.shape[1]):
        total += a[:, position, None] * b[position]
    return total


def _lanes(a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> np.ndarray:
    sums = np.zeros((a.shape[0], b.shape[1], LANES), np.float32)
    for start in range(0, a.shape[1], LANES):
        x, y = a[:, start : start + LANES], b[start : start + LANES]
        sums[:, :, : x.shape[1]] += x[:, None, :] * y.T[None]
    half = LANES // 2
    while half:
        sums = sums[:, :, :half] + sums[:, :, half : 2 * half]
        half //= 2
    return sums[:, :, 0] if c is None else c + sums[:, :, 0]
