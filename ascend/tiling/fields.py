"""This module derives the TCubeTiling of a schedule, and the kernel that a target's fields describe.

Source of the modes of cores: AscendC API reference, SetDim (07_0693) and Matmul (pure cube and MIX mode); asc-devkit
(github.com/cannmirror/asc-devkit, 0da921b91), Matmul.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from ascend.blocking import fractals
from ascend.chips.chip import Chip
from ascend.grid import Grid, Swizzle
from ascend.kernels.base import Kernel
from ascend.schedule import variant
from ascend.schedule_options import Layout
from ascend.tiling.rules import ITERATE_M_FIRST, ITERATE_N_FIRST, Tiling, broken, whole_k
from tensorcore_models.machine.fp_state import default_fp_state


def aligned(size: int, unit: int = 16) -> int:
    """Return the size rounded up to whole units."""
    return fractals(size, unit) * unit


def layout_of(schedule: Kernel) -> Layout:
    """Return the layout of the multiplication's operands: NZ if a pass writes words or converts rows before it."""
    return "nz" if schedule.terms > 1 or schedule.converts else schedule.layout


def core_rectangle(schedule: Kernel) -> tuple[int, int]:
    """Return the rows and columns of C that one core computes if AscendC deals rectangles.

    It is a grid's own cut, or the row blocks of the paper's kernel. If tiles are dealt one by one, it is the rectangle
    of whole tiles that leaves the busiest core the fewest tiles.
    """
    s, b = schedule, schedule.blocking
    rows, columns = len(s.row_blocks), len(s.column_blocks)
    if not s.deals_one_by_one:
        return min(fractals(rows, s.grid.m) * b.bm, s.m), min(fractals(columns, s.grid.n) * b.bn, s.n)
    cores = max(s.cores // len(s.k_slices), 1)
    along_m = min(
        range(1, min(cores, rows) + 1),
        key=lambda at: (fractals(rows, at) * fractals(columns, min(cores // at, columns)), abs(at - cores / at)),
    )
    return min(fractals(rows, along_m) * b.bm, s.m), min(fractals(columns, min(cores // along_m, columns)) * b.bn, s.n)


class CoreMode(NamedTuple):
    """`CoreMode` says which cores run a Matmul, and so which cores SetDim and usedCoreNum count.

    "cube only" (ASCENDC_CUBE_ONLY) starts and counts the cubes alone. In "mix" vector cores are started beside the
    cubes, send them their products, and are counted. In "coupled" a core has both a cube and a vector unit (310P).
    """

    name: str
    along_m: int = 1  #: Parts along m of a cube's rectangle that its vector cores drive.
    along_n: int = 1  #: Parts along n of a cube's rectangle that its vector cores drive.

    @property
    def counted(self) -> int:
        """Return the number of counted cores for each cube."""
        return self.along_m * self.along_n


def core_mode(schedule: Kernel) -> CoreMode:
    """Return the core mode of a schedule's Matmul: MIX if vector work is fused.

    In MIX mode both vector cores of a cube drive it if its rectangle has an even number of tiles along n or along m; otherwise
    one vector core is started beside each cube.
    """
    s = schedule
    if not s.placed_on.fixpipe:
        return CoreMode("coupled")
    if s.widens:  # a kernel of its own, which is no plain Matmul
        return CoreMode("widening")
    if s.dequantize != "vector":
        return CoreMode("cube only")
    height, width = core_rectangle(s)
    if fractals(width, s.blocking.bn) % 2 == 0:
        return CoreMode("mix", along_n=2)
    return CoreMode("mix", along_m=2 - fractals(height, s.blocking.bm) % 2)


@default_fp_state
def tiling_fields(schedule: Kernel) -> dict[str, int]:
    """Return the fields of AscendC's TCubeTiling for a schedule; empty for a vector kernel, which has no Matmul.

    :func:`cube_fields` lists the fields. In MIX mode, in which vector cores drive the cubes, usedCoreNum counts the vector
    cores, and singleCoreM and singleCoreN are the sizes of the part of C that one vector core drives.
    """
    s, fields = schedule, cube_fields(schedule)
    if not fields or (mode := core_mode(s)).counted == 1:
        return fields
    core, block = ("singleCoreM", s.blocking.bm) if mode.along_m > 1 else ("singleCoreN", s.blocking.bn)
    fields[core] = fractals(fields[core], block) // 2 * block
    parts = fractals(fields["M"], fields["singleCoreM"]) * fractals(fields["N"], fields["singleCoreN"])
    fields["usedCoreNum"] = parts * fractals(fields["Ka"], fields["singleCoreK"])
    return fields


def cube_fields(schedule: Kernel) -> dict[str, int]:
    """Return the tiling fields that count cubes, whatever the mode; empty for a vector kernel.

    If A and B lie in NZ (also as words, which a pass splits), sizes are padded to whole fractals, as the published
    rules require.

    Returns
    -------
    dict of str to int
        usedCoreNum, M, N, Ka, Kb; singleCoreM/N/K (what one core computes); baseM/N/K (the block in L0); depthA1, depthB1
        (base blocks in L1); stepM, stepN, stepKa, stepKb (base blocks loaded together); dbL0A, dbL0B, dbL0C (2:
        ping-pong); iterateOrder. A fused kernel runs them for each word.
    """
    s, b = schedule, schedule.blocking
    if not s.on_cube:
        return {}
    in_nz, unit_k = layout_of(s) == "nz", whole_k(s.operand)
    m, k, n = (aligned(size, unit) if in_nz else size for size, unit in ((s.m, 16), (s.k, unit_k), (s.n, 16)))
    core_m, core_n = (aligned(size) if in_nz else size for size in core_rectangle(s))
    core_k = k if len(s.k_slices) == 1 else s.k_slices[0][1] - s.k_slices[0][0]
    steps, depths = _in_l1(s, fractals(core_k, b.bk))
    return {
        "usedCoreNum": fractals(m, core_m) * fractals(n, core_n) * fractals(k, core_k),
        "M": m, "N": n, "Ka": k, "Kb": k,
        "singleCoreM": core_m, "singleCoreN": core_n, "singleCoreK": core_k,
        "baseM": min(b.bm, aligned(core_m)), "baseN": min(b.bn, aligned(core_n)), "baseK": min(b.bk, aligned(core_k, unit_k)),
        "depthA1": depths[0], "depthB1": depths[1],
        "stepM": 1, "stepN": 1, "stepKa": steps[0], "stepKb": steps[1],
        "dbL0A": s.stream_slots, "dbL0B": s.stream_slots, "dbL0C": min(s.l0c_slots, 2),
        "iterateOrder": ITERATE_M_FIRST if s.resident == "b" or by_columns(s) else ITERATE_N_FIRST,
    }  # fmt: skip


def by_columns(s: Kernel) -> bool:
    """Return whether each core owns a rectangle and walks it along m first."""
    return s.owns_rectangles and s.swizzle.direction == 1


def _in_l1(s: Kernel, blocks: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return stepKa, stepKb, depthA1 and depthB1 of a core that walks so many k blocks.

    A stream's depth is in whole steps, because no field describes an odd buffer. As much of a panel and a stream is
    kept as lets the number of loads of one divide that of the other, as the MDL template requires.
    """
    stream = max(s.depth // s.stream_slots, 1)
    if s.resident == "none":
        return (stream, stream), (stream * s.stream_slots,) * 2
    panel, stream = next(_dividing(s.panel_blocks, stream, blocks))
    steps, depths = (panel, stream), (panel, stream * s.stream_slots)
    return (steps, depths) if s.resident == "a" else (steps[::-1], depths[::-1])


def _dividing(panel: int, stream: int, blocks: int) -> Iterator[tuple[int, int]]:
    """Yield steps of a panel and of a stream, largest first, with loads of one a multiple of those of the other."""
    for p in range(panel, 0, -1):
        for q in range(stream, 0, -1):
            more, fewer = sorted((fractals(blocks, p), fractals(blocks, q)), reverse=True)
            if more % fewer == 0:
                yield p, q


def broken_rules(
    fields: dict[str, int],
    chip: Chip,
    operand: str = "fp16",
    split_k: bool = False,
    layout: Layout = "nd",
    intrinsics_check: bool = True,
    counted: int = 1,
) -> list[str]:
    """Return the published rules of TCubeTiling that a set of fields breaks; empty for fields that a kernel takes.

    Parameters
    ----------
    fields : dict of str to int
        The result of :func:`tiling_fields`.
    chip : Chip
        Chip whose cores and buffers the fields use.
    operand : str
        Format of A and B.
    split_k : bool
        Whether EnableMultiCoreSplitK(true) is called; without the call, singleCoreK must be K.
    layout : {"nz", "nd", "nt"}
        Layout of A and B in memory.
    intrinsics_check : bool
        Whether MatmulConfig has intrinsicsCheck; without it ND rows have at most 65535 elements.
    counted : int
        Number of cores that usedCoreNum counts for each cube: 2 in MIX mode if both vector cores drive it.
    """
    return broken(Tiling(fields, chip, operand, layout, split_k, intrinsics_check, counted))


def broken_rules_of(schedule: Kernel) -> list[str]:
    """Return the published rules that the fields of a schedule on the cube break."""
    s = schedule
    return broken_rules(
        tiling_fields(s), s.placed_on, s.operand, len(s.k_slices) > 1, layout_of(s), counted=core_mode(s).counted
    )


def described(schedule: Kernel, target: str = "ascendc") -> Kernel | None:
    """Return the kernel that a target's fields describe, or None if it is the schedule itself.

    AscendC's fields deal one rectangle of whole tiles to each core, CATLASS's fields tiles one by one. A PTO kernel can
    do either (:mod:`ascend.emit`). Triton's programs take tiles one by one, with all terms in one walk over k.
    """
    s = schedule
    if s.swizzle.adaptive:  # no dialect's kernel cuts the last tiles
        plain = variant(s, swizzle=replace(s.swizzle, adaptive=False))
        return described(plain, target) or plain
    if not s.on_cube or (target == "pto" and s.resident == "none" and s.groups == 1 and s.kernel == "grid"):
        return None
    if target == "triton":
        return _in_one_walk(s)
    slices = fractals(s.k, s.k_slices[0][1] - s.k_slices[0][0])
    if target == "catlass":
        grid = Grid(k=slices)
    else:
        rows, columns = core_rectangle(s)
        grid = Grid(fractals(s.m, rows), slices, fractals(s.n, columns))
    if s.resident == "none" and s.groups == 1 and s.grid == grid and s.kernel == "grid":
        return None
    merge = {"merge": "atomic"} if slices > 1 and s.terms == 1 and s.operand != "int8" else {}
    walk = {"swizzle": Swizzle(1, int(s.resident == "b" or by_columns(s)), False)} if target != "catlass" else {}
    return variant(s, kernel="grid", grid=grid, resident="none", balanced=False, **merge, **walk)


def _in_one_walk(s: Kernel) -> Kernel | None:
    """Return the result of :func:`described` for Triton, whose bands are of rows and are not walked back."""
    swizzle = Swizzle(s.swizzle.offset if s.swizzle.direction == 0 else 1, 0, False)
    said = {
        "kernel": "grid", "grid": Grid(), "resident": "none", "balanced": False, "swizzle": swizzle, "mode": "fused",
    }  # fmt: skip
    if s.groups == 1 and all(getattr(s, name) == value for name, value in said.items()):
        return None
    return variant(s, **said)


def check_multiplied(title: str, s: Kernel, operands: Collection[str]) -> None:
    """Raise ValueError unless a kernel multiplies one of `operands` once on the cube; the message names an alternative."""
    if not s.on_cube or s.terms > 1:
        left = "use --terms 1, or --emit pto"
    elif s.operand not in operands:
        left = "use --tiling, which prints blocks and buffers"
    else:
        return
    units = "" if s.on_cube else " on the vector units"
    raise ValueError(
        f"{title} computes one term of {', '.join(operands)} on the cube, got {s.terms} term(s) of {s.operand}{units}: {left}"
    )


def is_said_by(schedule: Kernel, target: str) -> bool:
    """Return whether a target's fields describe this schedule and obey the published rules."""
    return described(schedule, target) is None and (target != "ascendc" or not broken_rules_of(schedule))
