"""What to type into a kernel: the fields of AscendC's TCubeTiling and the tile shapes in L1 and L0.

The names are AscendC's; the values follow from the schedule. Where AscendC's own iteration differs from the schedule
(its high-level Matmul has no resident A panel across column blocks other than by depthA1), the field that expresses
the same residency is given.
"""

from ascend.schedule import TileSchedule, fractals

#: AscendC's iterateOrder: 0 steps along M first, 1 along N first. The schedule keeps A and walks along N.
ITERATE_N_FIRST = 1


def tiling_fields(schedule: TileSchedule) -> dict[str, int]:
    """AscendC tiling fields of a schedule.

    Returns
    -------
    dict of str to int
        usedCoreNum, M, N, Ka, Kb; singleCoreM/N/K (what one core computes in one wave); baseM/N/K (the block in L0);
        depthA1, depthB1 (blocks in L1); stepM, stepN, stepKa, stepKb (blocks loaded together); dbL0A, dbL0B, dbL0C
        (2: ping-pong); iterateOrder.
    """
    s, b = schedule, schedule.blocking
    resident = min(s.n_fused, fractals(s.k, b.bk))
    return {
        "usedCoreNum": min(s.cores, len(s.row_blocks)),
        "M": s.m, "N": s.n, "Ka": s.k, "Kb": s.k,
        "singleCoreM": min(b.bm, s.m), "singleCoreN": s.n, "singleCoreK": min(s.k, b.bk * s.n_fused),
        "baseM": b.bm, "baseN": b.bn, "baseK": b.bk,
        "depthA1": resident * s.words, "depthB1": s.stream_slots * s.words,
        "stepM": 1, "stepN": 1, "stepKa": resident, "stepKb": 1,
        "dbL0A": s.l0_slots, "dbL0B": s.l0_slots, "dbL0C": s.l0c_slots,
        "iterateOrder": ITERATE_N_FIRST,
    }  # fmt: skip


def tile_shapes(schedule: TileSchedule) -> list[tuple[str, str, str, int, int]]:
    """(buffer, content, layout, bytes used, bytes there) of each buffer of a core."""
    s, b = schedule, schedule.blocking
    use = schedule.buffer_use()
    resident = min(s.n_fused, fractals(s.k, b.bk))
    contents = {
        "L1": (
            f"A {resident} x ({b.bm} x {b.bk}), B {s.stream_slots} x ({b.bk} x {b.bn}), {s.words} word(s) each",
            "NZ",
        ),
        "L0A": (f"{s.l0_slots} x ({b.bm} x {b.bk})", "ZZ"),
        "L0B": (f"{s.l0_slots} x ({b.bk} x {b.bn})", "ZN"),
        "L0C": (f"{s.l0c_slots} x {s.accumulators} x ({b.bm} x {b.bn}) FP32", "NZ"),
        "UB": (f"{s.ub_slots} x {s.ub_copies} x ({s.strip_rows} x {b.bn}) FP32", "ND"),
    }
    return [(buffer, *contents[buffer], *use[buffer]) for buffer in use]
