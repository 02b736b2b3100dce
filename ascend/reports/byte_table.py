"""This module compares a schedule's byte counts with eq. 9, and gives the factors between them.

Eq. 9 counts one term in elements of 4 bytes, lets the cores share B perfectly (it divides by their number), and assumes
that C is read and written in every k group. The schedule counts the bytes that each core's pipes move. The product of a
row's factors is exactly the ratio of the two counts.
"""

import math
from typing import NamedTuple

from ascend.kernels.paper import PaperKernel
from ascend.roofline import ELEMENT_BYTES, traffic
from ascend.tile_schedule import SPLIT_IN_BYTES, SPLIT_OUT_BYTES, TileSchedule
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state


class Factor(NamedTuple):
    """`Factor` is one reason for the difference of the schedule's count from eq. 9."""

    reason: str
    value: float


@members_in_default_fp_state
class ByteRow(NamedTuple):
    """`ByteRow` holds one operand's bytes by eq. 9, the schedule's bytes over all cores, and the factors between them."""

    operand: str
    eq9_bytes: float
    schedule_bytes: float
    factors: tuple[Factor, ...]

    @property
    def ratio(self) -> float:
        """Return the schedule's bytes divided by those of eq. 9; infinite for a row that eq. 9 leaves out."""
        return self.schedule_bytes / self.eq9_bytes if self.eq9_bytes else math.inf


@default_fp_state
def byte_table(schedule: TileSchedule) -> list[ByteRow]:
    """Return the bytes that a schedule moves for each of A, B and C, beside the bytes that eq. 9 of Xue et al. counts.

    Each matrix has a row. If there is more than one term, a further row counts the bytes of the pass that splits A and B.

    Parameters
    ----------
    schedule : TileSchedule
        Schedule on a chip.

    Raises
    ------
    ValueError
        If the schedule's kernel is not "paper".
    """
    if not isinstance(schedule, PaperKernel):
        raise ValueError(
            f"eq. 9 of Xue et al. counts the bytes of kernel='paper' only, got kernel={schedule.kernel!r}: build the schedule "
            "with kernel='paper'"
        )
    s, b = schedule, schedule.blocking
    passes, groups, rows = len(s.passes), len(s.k_groups), len(s.row_blocks)
    eq9 = traffic(b, s.m, s.k, s.n, s.placed_on)
    narrow = Factor(f"{s.operand} operands, not {ELEMENT_BYTES} bytes", s.operand_bytes / ELEMENT_BYTES)
    repeats = Factor("each word is read in each pass (terms)", passes * s.words)
    a = s.operand_bytes * passes * s.words * s.m * s.k
    streamed = s.operand_bytes * passes * s.words * rows * s.k * s.n
    reads = 0 if s.placed_on.fixpipe else sum(s.c_reads(p, g) for p in range(passes) for g in range(groups))
    reads += passes * (groups - 1) * s.accumulators if s.reseed_l0c else 0
    writes = passes * sum(s.accumulators if s.placed_on.fixpipe else s.c_writes(g) for g in range(groups))
    c = 4 * s.m * s.n * (reads + writes)
    real_groups = eq9.c_read_write / (2 * s.m * s.n)
    table = [
        ByteRow("A", eq9.a_read * ELEMENT_BYTES, a, (narrow, repeats)),
        ByteRow(
            "B", eq9.b_read * ELEMENT_BYTES, streamed,
            (
                narrow, repeats,
                Factor("every core loads all of B through its own MTE2; eq. 9 divides by the cores", s.cores),
                Factor("whole row blocks (the last one is not full)", rows * b.bm / s.m),
            ),
        ),
        ByteRow(
            "C", eq9.c_read_write * ELEMENT_BYTES, c,
            (
                Factor("whole k groups (eq. 9 has k / (N_fused bk) of them)", groups / real_groups),
                Factor("write-backs of each C block in a group (terms, accumulators)", writes / groups),
                Factor("(reads + writes) / (2 writes); the first write needs no read", (reads + writes) / (2 * writes)),
            ),
        ),
    ]  # fmt: skip
    if s.split_elements:
        split = (SPLIT_IN_BYTES + SPLIT_OUT_BYTES) * s.split_elements
        table.append(
            ByteRow("split", 0.0, split, (Factor("not in eq. 9: 8 bytes for each element of A and B", split),))
        )
    return table
