"""Multiplies tensors on a unit: packs operands on the device, launches tiles, computes flagged tiles again.

All code here works on torch tensors on one device and a launcher. If the launcher is the machine of compiled text, the tensors
lie on the CPU and the same code runs there.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..kernels import matrix_bits
from ..kernels.common import generic_promoted
from ..kernels.lowering import Lowered
from .aligned import run_aligned
from .chains import run_chain
from .conversions import converted
from .groups import run_groups
from .launches import TritonLaunch, view_of
from .modes import plan_of
from .phases import run_phases
from .plans import ModePlan, OperandForm
from .programs import run_programs
from .specials import SpecialRule, special_rule, taken_apart
from .targets import KernelTarget

#: Warps of a block, down and across; a warp has 4 x 8 threads, or 8 x 8.
WARPS = (2, 2)
#: Bytes of packed operands at a time; longer products are computed in slices of k.
PACKED_BYTES = 1 << 31
_BYTES_EACH = 12
#: Bytes of an operand's element while special values of tiles are separated: kinds, signs and zeros in FP32, and copies.
_BYTES_APART = 96
#: Names of the units that compute flagged tiles again.
APART, ON_CPU = "the device, special values apart", "the CPU's exact kernels"


#: Functions that lay operands out and launch a mode's kernel, for modes that do not use :meth:`DeviceUnit.chain`.
_RUNS = {
    "chains": run_chain, "phases": run_phases, "group_sums": run_groups,
    "aligned_sums": run_aligned, "program_passes": run_programs,
}  # fmt: skip


@dataclass(frozen=True)
class UnitRun:
    """`UnitRun` is the result of a product on a GPU, with the units that computed its tiles.

    Attributes
    ----------
    bits : Tensor
        Encodings of D, shape (batch, m, n).
    mode : str
        Name of the mode that ran all tiles first.
    tiles : int
        Number of tiles.
    again : tuple of (int, int, int)
        (batch, first row, first column) of each tile that was computed again.
    by : str
        Names of the units that computed them again; empty if no tile was.
    on_cpu : tuple of (int, int, int)
        Tiles of `again` that the CPU's exact kernels computed; the device computed the others, with special values separated.
    """

    bits: Any
    mode: str
    tiles: int
    again: tuple[tuple[int, int, int], ...]
    by: str
    on_cpu: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Packed:
    """`Packed` is an operand as a mode takes it."""

    values: Any
    words: Any
    special: Any
    tiles: int
    size: int  # number of elements / 16


#: Steps of a fused sum whose operands are in shared memory or on their way there.
STEPS_AHEAD = 3


def staged_steps(plan: ModePlan, target: KernelTarget, tile: tuple[int, int]) -> int:
    """Return the number of steps whose operands a block keeps in shared memory: three if two such blocks fit a multiprocessor,
    else two.

    Registers leave room for two blocks, and a second block hides more latency than a third step.

    Raises
    ------
    ValueError
        If two steps do not fit.
    """
    assert plan.a is not None and plan.b is not None
    value = 4 if plan.constants["WINDOW"] else 8
    size = sum(
        lines * plan.terms * (value + 2 + 2 * form.shape[0] // 8)
        for lines, form in zip(tile, (plan.a, plan.b), strict=True)
    )  # fmt: skip
    fit = target.shared // size
    if fit < 2:
        raise ValueError(
            f"two steps of a tile of {tile[0]} x {tile[1]} take {2 * size} bytes of shared memory, but {target.name} has "
            f"{target.shared}: use fewer warps, or fewer outputs for each thread"
        )
    return min(max(fit // 2, 2), STEPS_AHEAD)


@dataclass(frozen=True)
class DeviceUnit:
    """`DeviceUnit` is a unit on a device.

    Attributes
    ----------
    plan : ModePlan
    target : KernelTarget
    launch : callable
        Function that runs a TritonLaunch.
    warps, each : (int, int)
        Warps of a block and outputs of a thread, down and across.
    """

    plan: ModePlan
    target: KernelTarget
    launch: Callable[[TritonLaunch], None]
    warps: tuple[int, int] = WARPS
    each: tuple[int, int] = (4, 4)

    @property
    def tile(self) -> tuple[int, int]:
        """Return the rows and columns of a tile."""
        return self.target.warp // 8 * self.each[0] * self.warps[0], 8 * self.each[1] * self.warps[1]

    def pack(self, codes, scales, form: OperandForm, tile: int, padded: int, order) -> Packed:
        """Return an operand (encodings of shape (batch, rows, k) with any strides) packed on its device, with its block
        scales."""
        import torch

        batch, rows, k = codes.shape
        tiles, device = -(-rows // tile), codes.device
        size = batch * tiles * padded * tile
        made = Packed(
            torch.empty(size, dtype=torch.float32 if self.plan.constants["WINDOW"] else torch.float64, device=device),
            torch.empty(size // 2 + 2 * (size * form.shape[0] // 32), dtype=torch.int32, device=device),
            torch.zeros(batch * tiles * tile, dtype=torch.int32, device=device),
            tiles,
            size // 16,
        )
        strides = codes.stride()
        of_scales = (0, 0, 0) if scales is None else scales.stride()
        arguments = {
            "codes": view_of(codes), "values": view_of(made.values), "words": view_of(made.words),
            "special": view_of(made.special), "order": None if order is None else view_of(order), "rows": rows, "k": k,
            "code_batch": strides[0], "code_row": strides[1], "code_k": strides[2],
            "scales": None if scales is None else view_of(scales), "scale_batch": of_scales[0], "scale_row": of_scales[1],
            "scale_k": of_scales[2], "row_tiles": tiles, "padded_k": padded, "size": made.size,
        }  # fmt: skip
        constants = {**form.constants(), "TILE": tile}
        self.launch(TritonLaunch("pack", arguments, constants, batch * tiles * (padded // 4), 1))
        return made

    def chain(self, a, b, c, every: int | None = None, scales=(None, None)):
        """Return the encodings of D and the flags of tiles, for encodings (batch, m, k), (batch, n, k), (batch, m, n) or None.

        `every` is the number of products after which a chain is added outside and starts again. `scales` are those of both
        operands, (batch, m, blocks) and (batch, n, blocks).
        """
        import torch

        plan, (batch, m, k), n = self.plan, a.shape, b.shape[1]
        if (run := _RUNS.get(plan.mode.function)) is not None:
            return run(self, a, b, c, every, scales)
        order = plan.order(k)
        padded = -(-k // plan.terms) * plan.terms if order is None else order.size
        at = None if order is None else torch.from_numpy(order.copy()).to(a.device)
        (rows, columns), chain = self.tile, padded
        if plan.groups is not None:
            chain = len(plan.groups) * plan.terms
        elif every is not None:
            chain = every
        assert plan.a is not None and plan.b is not None
        x = self.pack(a, scales[0], plan.a, rows, padded, at)
        y = self.pack(b, scales[1], plan.b, columns, padded, at)
        kind = torch.int16 if plan.types[1] == "fp16" else torch.int32
        out = torch.empty((batch, m, n), dtype=kind, device=a.device)
        flags = torch.empty(batch * x.tiles * y.tiles, dtype=torch.int32, device=a.device)
        strides = (0, 0, 0) if c is None else c.stride()
        arguments = {
            "a_values": view_of(x.values), "a_words": view_of(x.words), "a_special": view_of(x.special),
            "b_values": view_of(y.values), "b_words": view_of(y.words), "b_special": view_of(y.special),
            "c": None if c is None else view_of(c, plan.types[0]), "out": view_of(out, plan.types[1]), "flags": view_of(flags),
            "m": m, "n": n, "steps": padded // plan.terms, "chain": chain // plan.terms, "row_tiles": x.tiles,
            "column_tiles": y.tiles, "padded_k": padded, "a_size": x.size, "b_size": y.size, "c_batch": strides[0],
            "c_row": strides[1], "c_column": strides[2],
        }  # fmt: skip
        constants = {
            **plan.constants, "PROMOTES": every is not None or plan.groups is not None, "PAIRS": self.pairs, "EACH": self.each,
            "WARPS": self.warps, "STAGES": staged_steps(plan, self.target, self.tile),
        }  # fmt: skip
        warps = math.prod(self.warps)
        self.launch(TritonLaunch(plan.mode.function, arguments, constants, batch * x.tiles * y.tiles, warps))
        return out, flags

    @property
    def pairs(self) -> str:
        """Return the packed type in which two largest exponents are found at once."""
        return "u16x2" if int(self.target.arch) >= 90 else "f16x2"

    def run(self, a, b, c=None, every: int | None = None, scales=(None, None)) -> UnitRun:
        """Return D = A B + C for encodings on the device.

        Parameters
        ----------
        a, b : Tensor
            Encodings as integers of the formats' sizes, shapes (batch, m, k), (batch, k, n), any strides; k positive.
        c : Tensor, optional
            Encodings, shape (batch, m, n).
        every : int, optional
            Number of products of a chain whose sum is added outside in FP32.
        scales : (Tensor, Tensor), optional
            Encodings of block scales, shapes (batch, m, blocks), (batch, blocks, n).

        Returns
        -------
        UnitRun
        """
        b = b.transpose(1, 2)
        if self.plan.given is not None:
            a, b = (converted(self.plan.given, codes, side) for side, codes in enumerate((a, b)))
        scales = scales[0], None if scales[1] is None else scales[1].transpose(1, 2)
        d, flags = self._sliced(a, b, c, every, scales)
        (rows, columns), down, across = self.tile, -(-a.shape[1] // self.tile[0]), -(-b.shape[1] // self.tile[1])
        again = tuple(
            (tile // (down * across), tile // across % down * rows, tile % across * columns)
            for tile in flags.nonzero().flatten().tolist()
        )
        on_cpu = self._again_here(d, again, (a, b, c, every, scales)) if again else ()
        for batch, row, column in on_cpu:
            here = slice(row, row + rows), slice(column, column + columns)
            parts = [None if s is None else s[batch, x] for s, x in zip(scales, here, strict=True)]
            addend = None if c is None else c[batch][here]
            d[batch][here] = self._exact(a[batch, here[0]], b[batch, here[1]], addend, every, parts)
        by = [APART] if len(on_cpu) < len(again) else []
        by += [ON_CPU] if on_cpu else []
        return UnitRun(d, self.plan.mode.name, a.shape[0] * down * across, again, "; ".join(by), on_cpu)

    def _sliced(self, a, b, c, every: int | None, scales):
        """Return the encodings of D and the flags of tiles as :meth:`chain` does, computed in slices of k that memory holds."""
        d, flags = c, None
        for start, stop in self._slices(a, b, every):
            size = self.plan.low.block_size or 1
            blocks = slice(start // size, -(-stop // size))
            parts = [None if s is None else s[:, :, blocks] for s in scales]
            d, found = self.chain(a[:, :, start:stop], b[:, :, start:stop], d, every, parts)
            flags = found if flags is None else flags | found
        return d, flags

    def _again_here(self, d, again, operands) -> tuple[tuple[int, int, int], ...]:
        """Write results of tiles that only special values had flagged into d; return the remaining tiles."""
        rule = special_rule(self.plan.low, operands[3])
        if rule is None:
            return again
        k, left = operands[0].shape[2], []
        most = max(1, PACKED_BYTES // (_BYTES_APART * k * sum(self.tile)))
        for start in range(0, len(again), most):
            tiles = again[start : start + most]
            left += [
                tile for tile, is_left in zip(tiles, self._apart(d, tiles, rule, operands), strict=True) if is_left
            ]
        return tuple(left)

    def _apart(self, d, tiles, rule: SpecialRule, operands) -> list[bool]:
        """Compute tiles as a batch of their own with special values separated; return which of them the CPU has to compute."""
        import torch

        a, b, c, every, scales = operands
        batch, row, column = (torch.tensor(x, device=a.device) for x in zip(*tiles, strict=True))
        # Tiles at the end repeat the last row and column.
        rows = (row[:, None] + torch.arange(self.tile[0], device=a.device)).clamp(max=a.shape[1] - 1)
        columns = (column[:, None] + torch.arange(self.tile[1], device=a.device)).clamp(max=b.shape[1] - 1)
        of_a, of_b = (batch[:, None], rows), (batch[:, None], columns)
        place = batch[:, None, None], rows[:, :, None], columns[:, None, :]
        parts = scales if scales[0] is None else (scales[0][of_a], scales[1][of_b])
        apart = taken_apart(rule, a[of_a], b[of_b], None if c is None else c[place], parts)
        found, flags = self._sliced(apart.a, apart.b, apart.c, every, apart.scales)
        left = (flags != 0) | ~apart.any | apart.undecided(found)
        d[place] = torch.where(left[:, None, None], d[place], apart.put_into(found))
        return left.tolist()

    def _slices(self, a, b, every: int | None) -> list[tuple[int, int]]:
        """Return slices of k whose packed operands take a bounded amount of memory; chains continue from one slice to the
        next."""
        (batch, m, k), n, low = a.shape, b.shape[1], self.plan.low
        if low.c_format != low.d_format:
            return [(0, k)]
        unit = math.lcm(low.cycle, self.plan.step, every or 1, low.block_size or 1)
        each = _BYTES_EACH * self.plan.constants.get("PARTS", 1)
        most = max(1, PACKED_BYTES // (each * batch * (m + n)) // unit) * unit
        return [(start, min(start + most, k)) for start in range(0, k, most)]

    def _exact(self, a, b, c, every: int | None, scales):
        """Return the encodings of D computed on the CPU, for encodings of a tile: (rows, k), (columns, k)."""
        import torch

        low = self.plan.low
        x, y = (_unsigned(t, fmt.container) for t, fmt in ((a, low.a_format), (b, low.b_format)))
        start = (
            np.zeros((len(x), len(y)), low.c_format.container) if c is None else _unsigned(c, low.c_format.container)
        )
        sa, sb = (None if s is None else _unsigned(s, np.dtype(np.uint8)) for s in scales)
        sb = None if sb is None else sb.T
        exact = (low, x, y.T, start, sa, sb)
        d = matrix_bits(*exact) if every is None else generic_promoted(*exact, every)
        return torch.from_numpy(d.view(np.dtype(f"i{d.itemsize}"))).to(a.device)


def _unsigned(tensor, container: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(tensor.cpu().numpy()).view(container)


def unit_on(
    low: Lowered, target: KernelTarget, launch: Callable[[TritonLaunch], None], label: str = "this unit", **how
) -> DeviceUnit:
    """Return a unit on a device.

    Parameters
    ----------
    low : Lowered
    target : KernelTarget
        Target of the device.
    launch : callable
        Function that runs a TritonLaunch on the device.
    label : str
        Name of the unit in messages.
    **how
        `warps` of a block, `each` outputs of a thread.

    Raises
    ------
    ValueError
        If no mode holds the unit.
    """
    plan = plan_of(low, target.name, label)
    return DeviceUnit(plan, target, launch, **{"each": plan.mode.each, **how})
