"""Building tile schedules: what fits a chip, and the defaults of what a caller leaves open.

Every schedule that is placed on a chip is built and checked here (:func:`build_schedule`), also one that differs from
another in a few fields (:func:`variant`). What a schedule is says :mod:`ascend.tile_schedule`.
"""

from dataclasses import fields, replace

from ascend.blocking import Blocking, Buffering, slots
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.grid import Grid, Swizzle
from ascend.tile_schedule import (
    KERNELS,
    LARGEST_SIZE,
    LAYOUTS,
    MERGES,
    RESIDENTS,
    Kernel,
    Layout,
    Merge,
    Mode,
    Resident,
    TileSchedule,
    check_options,
    fractals,
)
from tensorcore_models.integers import integer_arguments

#: Ranges of row or column blocks beyond this are a mistake: half a million elements a core in blocks of 16.
MOST_BLOCKS = 2**20
#: Blocks of a streamed operand in L1 at most; more than the queue of MTE2 has no use.
DEEPEST_STREAM = 8
#: Operands of a vector kernel.
VECTOR_OPERANDS = ("fp32", "fp16")


@integer_arguments("m", "k", "n", "terms", "cores", "split", "n_fused", "depth")
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
    cores: int | None = None,
    split: int | None = None,
    kernel: Kernel = "paper",
    grid: Grid | tuple[int, int, int] | None = None,
    resident: Resident | None = None,
    swizzle: Swizzle | None = None,
    merge: Merge = "reduce",
    reseed_l0c: bool = False,
    operand: str = "fp16",
    n_fused: int | None = None,
    depth: int | None = None,
    layout: Layout = "nz",
    balanced: bool | None = None,
) -> TileSchedule:
    """The schedule of C = A B (A m x k, B k x n) in blocks on a chip.

    Parameters
    ----------
    m, k, n : int
        Sizes, at least 1.
    chip : Chip or str
        A chip or its name.
    blocking : Blocking
        Sizes of the blocks.
    terms, buffering, mode, reseed_l0c, operand, merge, layout
        As in :class:`TileSchedule`.
    cores : int, optional
        Use only this many cores of the chip.
    split : int, optional
        Slices of k: short for a grid (1, split, 1) where nothing is resident.
    kernel : {"paper", "grid", "vector"}
        A grid, a swizzle, a split or another resident operand than A need "grid".
    grid : Grid or (int, int, int), optional
        Cores along m, k, n. Where nothing is resident only its k counts. Default: as many cores as there are panels, the
        rest along the streamed side.
    resident : {"a", "b", "none"}, optional
        "a" in the paper's kernel; "none" in a grid kernel without a grid, else "a".
    swizzle : Swizzle, optional
        <3, 0> for m >= n and <3, 1> for m < n, as CATLASS advises.
    n_fused : int, optional
        Blocks of bk in a k group. Default: as many as fit L1 (paper's kernel), as few as the number of groups allows (grid).
    depth : int, optional
        L1 buffers of a streamed operand. Default: 1 or 2 by the buffering (paper's kernel), as many as fit up to 8 (grid).
    balanced : bool, optional
        Nearly equal tiles; the default in a grid kernel.

    Raises
    ------
    ValueError
        If a size is not positive, an option is impossible or a buffer would overflow: which one, its bytes and its limit.
    TypeError
        If `blocking` is no Blocking or `chip` no chip.
    """
    if not isinstance(blocking, Blocking) or not isinstance(chip, Chip | str):
        raise TypeError(
            "build_schedule(m, k, n, chip, blocking): expected a Chip or its name and a Blocking, got "
            f"{type(chip).__name__} and {type(blocking).__name__}"
        )
    chip = get_chip(chip)
    if cores is not None:
        if not 1 <= cores <= chip.cores:
            raise ValueError(f"cores must lie between 1 and the {chip.cores} of {chip.name}, got {cores}")
        chip = chip.replace(cores=cores, hbm_bytes_per_second=chip.hbm_bytes_per_second)
    for name, size in (("m", m), ("k", k), ("n", n)):
        if not 1 <= size <= LARGEST_SIZE:
            raise ValueError(f"{name} must lie between 1 and {LARGEST_SIZE}, got {size}")
    for name, size, step in (("m", m, blocking.bm), ("k", k, blocking.bk), ("n", n, blocking.bn)):
        if -(-size // step) > MOST_BLOCKS:
            raise ValueError(f"{name} = {size} makes {-(-size // step)} blocks of {step}, more than {MOST_BLOCKS}")
    check_options(terms, mode, operand)
    if kernel == "vector":
        if terms != 1 or operand not in VECTOR_OPERANDS:
            raise ValueError(
                f"the vector kernel multiplies {' or '.join(VECTOR_OPERANDS)} in FP32: terms must be 1, got {terms} terms of "
                f"{operand}"
            )
    else:
        chip.cube_step_k(operand)
    if reseed_l0c and chip.fixpipe:
        raise ValueError(f"reseed_l0c: {chip.name} writes L0C through FIXPIPE and has no path from UB into L0C")
    slots(buffering)
    placed, kept = _grid(m, k, n, chip, blocking, kernel, grid, split, resident)
    schedule = TileSchedule(
        m=int(m), k=int(k), n=int(n), chip=chip, blocking=blocking, terms=terms, buffering=buffering, mode=mode,
        reseed_l0c=bool(reseed_l0c), operand=operand, n_fused=1, kernel=kernel, grid=placed, resident=kept,
        swizzle=swizzle or Swizzle(3, 0 if m >= n else 1), merge=merge, depth=slots(buffering),
        layout=layout,
        balanced=kernel == "grid" if balanced is None else bool(balanced),
    )  # fmt: skip
    if layout not in LAYOUTS:
        raise ValueError(f"layout is one of {', '.join(LAYOUTS)}, got {layout!r}")
    _check_merge(schedule)
    if kernel == "vector":
        return _checked_buffers(replace(schedule, n_fused=fractals(schedule.k_slices[0][1], blocking.bk)))
    schedule = replace(schedule, n_fused=_n_fused(schedule, n_fused))
    return _checked_buffers(replace(schedule, depth=_depth(schedule, depth)))


def _checked_buffers(s: TileSchedule) -> TileSchedule:
    for buffer, (used, there) in s.buffer_use().items():
        if used > there:
            raise ValueError(
                f"block {s.blocking} ({s.mode}, {s.buffering} buffers) overflows {buffer} of {s.placed_on.name}: "
                f"{used} bytes, limit {there}"
            )
    return s


def _grid(
    m: int, k: int, n: int, chip: Chip, blocking: Blocking, kernel: Kernel, grid: Grid | tuple[int, int, int] | None,
    split: int | None, resident: Resident | None,
) -> tuple[Grid, Resident]:  # fmt: skip
    """The grid of cores and the resident operand that the options mean."""
    if kernel not in KERNELS:
        raise ValueError(f"kernel is one of {', '.join(KERNELS)}, got {kernel!r}")
    if resident is not None and resident not in RESIDENTS:
        raise ValueError(f"resident is one of {', '.join(RESIDENTS)}, got {resident!r}")
    if grid is not None and not isinstance(grid, Grid):
        grid = Grid(*grid)
    if split is not None and grid is not None and grid.k != split:
        raise ValueError(f"split = {split} and a grid of {grid} contradict each other: give one of them")
    if kernel == "paper":
        asked = grid or Grid(k=split or 1, m=chip.cores)
        if resident not in (None, "a") or asked != Grid(m=chip.cores):
            raise ValueError("the paper's kernel keeps A and deals row blocks only: other grids need kernel='grid'")
        return Grid(m=chip.cores), "a"
    if kernel == "vector":
        if resident not in (None, "none"):
            raise ValueError("the vector kernel keeps no panel in L1: resident must be left out")
        streams_b = n >= m
        if grid is None:
            across = max(
                min(chip.cores // (split or 1), -(-n // blocking.bn) if streams_b else -(-m // blocking.bm)), 1
            )
            grid = Grid(1 if streams_b else across, split or 1, across if streams_b else 1)
        if (grid.m if streams_b else grid.n) != 1 or grid.cores > chip.cores:
            side = "n" if streams_b else "m"
            raise ValueError(
                f"the vector kernel deals {side} and k to at most {chip.cores} cores here, got a grid of {grid}"
            )
        _check_slices(grid.k, k, blocking)
        return grid, "none"
    if resident is None:
        resident = "none" if grid is None else "a"
    slices = grid.k if grid else split or 1
    _check_slices(slices, k, blocking)
    if resident == "none":
        if slices > chip.cores:
            raise ValueError(f"{slices} slices of k are more than the {chip.cores} cores of {chip.name}")
        return Grid(k=slices), resident
    if grid is None:
        sizes = ((m, blocking.bm), (n, blocking.bn))
        panels, streamed = (-(-size // step) for size, step in (sizes if resident == "a" else sizes[::-1]))
        along = max(min(chip.cores // slices, panels), 1)
        across = max(min(chip.cores // (slices * along), streamed), 1)
        grid = Grid(along, slices, across) if resident == "a" else Grid(across, slices, along)
    if grid.cores > chip.cores:
        raise ValueError(f"a grid of {grid} has {grid.cores} cores, {chip.name} {chip.cores}")
    return grid, resident


def _check_slices(slices: int, k: int, blocking: Blocking) -> None:
    if slices > -(-k // blocking.bk):
        raise ValueError(
            f"{slices} slices of k = {k} are more than its blocks of {blocking.bk} ({-(-k // blocking.bk)})"
        )


def _check_merge(s: TileSchedule) -> None:
    if s.merge not in MERGES:
        raise ValueError(f"merge is one of {', '.join(MERGES)}, got {s.merge!r}")
    if s.merge == "atomic" and len(s.k_slices) > 1 and s.placed_on.fixpipe and len(s.passes) * s.accumulators > 1:
        raise ValueError(
            f"atomic merging on {s.placed_on.name}: FIXPIPE adds what is in L0C, the {s.terms} terms are combined later; "
            "take merge='reduce', or mode='elementwise'"
        )
    if s.merge == "atomic" and s.operand == "int8":
        raise ValueError("atomic merging adds FP32; int8 sums are int32: take merge='reduce'")


def _n_fused(s: TileSchedule, wanted: int | None) -> int:
    """Blocks in a k group: what was asked for, or what fits beside the streams."""
    if wanted is not None and wanted < 1:
        raise ValueError(f"n_fused must be at least 1, got {wanted}")
    b, chip, longest = s.blocking, s.placed_on, s.k_slices[0][1] - s.k_slices[0][0]
    blocks = fractals(longest, b.bk)
    if s.resident == "none":
        return blocks if wanted is None else int(wanted)
    panel, streamed = (b.bm, b.bn) if s.resident == "a" else (b.bn, b.bm)
    each = s.words * s.operand_bytes * b.bk
    most = (chip.l1_bytes - each * s.stream_slots * streamed) // (each * panel)
    if most < 1:
        needed = each * (panel + s.stream_slots * streamed)
        raise ValueError(f"block {b} overflows L1 of {chip.name}: {needed} bytes, limit {chip.l1_bytes}")
    if wanted is not None:
        return int(wanted)
    return most if s.kernel == "paper" else -(-blocks // -(-blocks // most))


def _depth(s: TileSchedule, wanted: int | None) -> int:
    """L1 buffers of a streamed operand: what was asked for, or what fits."""
    if wanted is not None:
        if not 1 <= wanted <= DEEPEST_STREAM:
            raise ValueError(f"depth must lie between 1 and {DEEPEST_STREAM}, got {wanted}")
        return int(wanted)
    if s.kernel == "paper" or s.stream_slots == 1:
        return s.stream_slots
    b, each = s.blocking, s.words * s.operand_bytes * s.blocking.bk
    streamed = b.bm * (s.resident != "a") + b.bn * (s.resident != "b")
    left = s.placed_on.l1_bytes - each * s.panel_blocks * (b.bm if s.resident == "a" else b.bn)
    most = DEEPEST_STREAM // s.words
    return max(min(left // (each * streamed), most) // 2 * 2, s.stream_slots)


def variant(schedule: TileSchedule, **changes) -> TileSchedule:
    """The schedule with other fields, checked again; another block, mode or grid brings its own N_fused.

    Parameters
    ----------
    schedule : TileSchedule
        As :func:`ascend.build_schedule` builds it.
    **changes
        Fields of the schedule.

    Raises
    ------
    ValueError
        As :func:`build_schedule`.
    """
    values = {f.name: getattr(schedule, f.name) for f in fields(schedule)} | changes
    if changes.keys() & {"blocking", "mode", "buffering", "operand", "terms", "grid", "resident", "kernel"}:
        values |= {"n_fused": None, "depth": None}
    if changes.get("kernel", schedule.kernel) != schedule.kernel:
        values |= {"grid": None, "resident": None, "swizzle": None, "balanced": None}
    values |= changes
    return build_schedule(**values)
