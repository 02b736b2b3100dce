"""This module defines the kernel of SGEMM-cube (arXiv:2507.23387v4), Algorithm 1 and section 5.1.

Row blocks of A are dealt to the cores; for each group of N_fused A blocks, which stay in L1, all of B is streamed column
block by column block::

    for each row block of A (in parallel over the cores, in waves)
      for each k group (N_fused blocks of bk)          A panel: GM -> L1, resident
        for each column block of B
          for each k block of the group                B: GM -> L1 -> L0B; A: L1 -> L0A; cube steps into L0C
          C block: L0C -> UB, added to C there, UB -> GM
"""

from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np

from ascend.closed_forms import paper_seconds
from ascend.grid import Grid
from ascend.kernels.base import CubeKernel
from ascend.kernels.options import BlockedProduct, blocks_in_group
from ascend.roofline import RooflinePoint, Traffic, roofline, traffic
from ascend.schedule_options import ScheduleOptions


class PaperKernel(CubeKernel):
    """`PaperKernel` deals row blocks to the cores, keeps A resident and reads B from L2.

    The paper's numbers are this kernel's.
    """

    kernel: ClassVar[str] = "paper"
    l2_model: ClassVar[Literal["reuse", "shared_b"]] = "shared_b"
    launches: ClassVar[bool] = False

    @classmethod
    def placed(cls, place: BlockedProduct, options: ScheduleOptions) -> Self:
        """Return a schedule of row blocks with A resident. Raises ValueError for other grids, or a panel that overflows L1."""
        own = Grid(m=place.chip.cores)
        asked = options.cores or Grid(k=options.split or 1, m=place.chip.cores)
        if options.resident not in (None, "a") or asked != own:
            raise ValueError(
                f"kernel='paper' keeps operand a resident and divides the rows of C among a grid of {own} cores, got resident "
                f"operand {options.resident or 'a'} and a grid of {asked}: use kernel='grid'"
            )
        bare = cls(
            **place.of_schedule(), **options.shared_options(), grid=own, n_fused=1, balanced=bool(options.balanced)
        )
        depth = options.depth or bare.stream_slots
        return replace(bare, depth=depth, n_fused=blocks_in_group(bare, options.n_fused, lambda blocks, most: most))

    def traffic(self) -> Traffic:
        """Return the traffic of eq. 9."""
        return traffic(self.blocking, self.m, self.k, self.n, self.placed_on)

    def roofline(self) -> RooflinePoint:
        """Return the roofline of eq. 11, which counts the traffic of eq. 9."""
        return roofline(self.blocking, self.m, self.k, self.n, self.placed_on, self.peak_flops())

    def placement(self) -> str:
        """Return a few words on the placement: A stays in L1."""
        return "A kept"

    def cores_text(self) -> str:
        """Return the number of cores with work, all along m."""
        return f"{self.used_cores}x1x1"

    def estimated_seconds(self) -> float:
        """Return the time by the closed forms (:func:`ascend.closed_forms.paper_seconds`)."""
        block = np.array([[self.blocking.bm, self.blocking.bk, self.blocking.bn]])
        return float(paper_seconds(block, self)[0])
