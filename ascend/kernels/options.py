"""Defines the options that a caller may give of a kernel, and the rules that kernels share for those left open."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ascend.blocking import Blocking, Buffering, fractals, panel_capacity, slots
from ascend.chips.chip import Chip
from ascend.grid import Grid, Swizzle
from ascend.schedule_options import (
    LAYOUTS,
    MERGES,
    RESIDENTS,
    TEMPLATES,
    Dequantize,
    Layout,
    Merge,
    Resident,
    Template,
    check_options,
    check_presplit,
    what_dequantizes,
)  # fmt: skip
from ascend.terms import Mode
from ascend.tile_schedule import TileSchedule
from tensorcore_models.integers import integer_fields

#: Blocks of a streamed operand in L1 at most; more than the queue of MTE2 has no use.
DEEPEST_STREAM = 8


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of :func:`ascend.build_schedule`, which describes them; None: the kernel's own choice."""

    terms: int = 3
    buffering: Buffering = "double"
    mode: Mode = "termwise"
    split: int | None = None
    grid: Grid | tuple[int, int, int] | None = None
    resident: Resident | None = None
    swizzle: Swizzle | None = None
    merge: Merge = "reduce"
    reseed_l0c: bool = False
    operand: str = "fp16"
    n_fused: int | None = None
    depth: int | None = None
    layout: Layout = "nz"
    balanced: bool | None = None
    warm: bool = False
    unit_flag: bool = False
    presplit: str = ""
    template: Template = ""
    dequantize: Dequantize | bool = ""

    def __post_init__(self):
        integer_fields(self, "terms", *(x for x in ("split", "n_fused", "depth") if getattr(self, x) is not None))
        check_options(self.terms, self.mode, self.operand)
        check_presplit(self.presplit, self.terms)
        slots(self.buffering)
        for name, known in (
            ("resident", (None, *RESIDENTS)), ("merge", MERGES), ("layout", LAYOUTS), ("template", TEMPLATES),
        ):  # fmt: skip
            if getattr(self, name) not in known:
                names = ", ".join(x for x in known if x)
                raise ValueError(f"{name} is one of {names}, got {getattr(self, name)!r}")
        if self.grid is not None and not isinstance(self.grid, Grid):
            object.__setattr__(self, "grid", Grid(*self.grid))
        if self.n_fused is not None and self.n_fused < 1:
            raise ValueError(f"n_fused must be at least 1, got {self.n_fused}")
        if self.depth is not None and not 1 <= self.depth <= DEEPEST_STREAM:
            raise ValueError(f"depth must lie between 1 and {DEEPEST_STREAM}, got {self.depth}")
        object.__setattr__(self, "dequantize", what_dequantizes(self.dequantize))
        if self.dequantize and self.operand != "int8":
            raise ValueError(f"dequantize scales the sums of int8 operands, got {self.operand}")
        if self.template == "norm" and (self.depth not in (None, 1) or self.buffering != "double" or self.terms > 1):
            raise ValueError("template norm keeps one block in L1 and two in L0: depth 1, double buffering, one term")
        if self.merge == "atomic" and self.operand == "int8":
            raise ValueError("atomic merging adds FP32; int8 sums are int32: take merge='reduce'")
        if self.split is not None and self.grid is not None and self.grid.k != self.split:
            raise ValueError(f"split = {self.split} and a grid of {self.grid} contradict each other: give one of them")

    @property
    def cores(self) -> Grid | None:
        """The grid that was asked for."""
        return self.grid if self.grid is None or isinstance(self.grid, Grid) else Grid(*self.grid)

    def of_schedule(self) -> dict[str, Any]:
        """The options that are fields of every schedule."""
        names = ("terms", "buffering", "mode", "operand", "merge", "layout", "presplit", "template", "dequantize")
        flags = {name: bool(getattr(self, name)) for name in ("reseed_l0c", "warm", "unit_flag")}
        return {name: getattr(self, name) for name in names} | flags


@dataclass(frozen=True)
class BlockedProduct:
    """A product, a chip and a block: where a kernel puts its schedule."""

    m: int
    k: int
    n: int
    chip: Chip
    blocking: Blocking

    def of_schedule(self) -> dict[str, Any]:
        """The options as fields of a schedule."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def check_slices(self, slices: int) -> None:
        """Refuse more slices of k than it has blocks."""
        blocks = -(-self.k // self.blocking.bk)
        if slices > blocks:
            raise ValueError(
                f"{slices} slices of k = {self.k} are more than its blocks of {self.blocking.bk} ({blocks})"
            )


def blocks_in_group(s: TileSchedule, wanted: int | None, choose: Callable[[int, int], int]) -> int:
    """N_fused where a panel is resident: what was asked for, or `choose` of all k blocks and of how many fit."""
    b, chip = s.blocking, s.placed_on
    panel, streamed = (b.bm, b.bn) if s.resident == "a" else (b.bn, b.bm)
    each = s.words * s.format.stored(b.bk)
    most = panel_capacity(chip.l1_bytes, each, panel, s.stream_slots * streamed)
    if most < 1:
        needed = each * (panel + s.stream_slots * streamed)
        raise ValueError(f"block {b} overflows L1 of {chip.name}: {needed} bytes, limit {chip.l1_bytes}")
    start, stop = s.k_slices[0]
    return choose(fractals(stop - start, b.bk), most) if wanted is None else int(wanted)


def stream_depth(left: np.ndarray | float, block_bytes: np.ndarray | float, words: int, count: int) -> np.ndarray:
    """L1 buffers of a streamed operand: as many pairs as fit what is left of L1, at most :data:`DEEPEST_STREAM` words.

    Sizes are in bytes, `block_bytes` those of one k block of all streamed operands; with a `count` of 1 (single buffers) the
    depth is 1.
    """
    if count == 1:
        return np.ones_like(np.floor(left / block_bytes))
    return np.maximum(np.minimum(left // block_bytes, DEEPEST_STREAM // words) // 2 * 2, count)
