"""Plans fidelity phases, and lays out the parts of their operands on the device."""

import math
from typing import Any

from ..families.base import SumAlgorithm
from ..families.fidelity.parts import DIGITS, STEP, TAKEN
from ..families.fidelity.specification import INTEGER_BITS
from ..formats import Format, IntegerFormat
from ..kernels.lowering import Lowered
from .launches import TritonLaunch, view_of
from .plans import ModePlan

#: Amount by which exponent fields of numbers lie above 0, that of zeros: a product with a zero is below every other one.
_LIFT = 288


def phase_plan(low: Lowered, mode: Any) -> ModePlan | None:
    """Return a plan of the kernel of fidelity phases; None for other units."""
    algorithm, spec = low.form
    if algorithm is not SumAlgorithm.PHASES or low.scale_format is not None:
        return None
    constants: dict[str, Any] = {
        "TERMS": STEP, "PHASES": (len(spec.phases), sum(phase << 2 * turn for turn, phase in enumerate(spec.phases))),
        "TILE": -(-spec.tile // STEP), "RESULT": None, "ALIGN": 0, "LEAST": 0, "ERRATUM": False,
    }  # fmt: skip
    if low.floating is not None:
        a, b, _, d = low.floating
        least = d.bias - a.bias - b.bias
        constants |= {
            "RESULT": (d.exponent_bits, d.fraction_bits), "ALIGN": least - 2 * _LIFT, "LEAST": least,
            "ERRATUM": spec.erratum == "minus_one" and d.name == "fp32",
        }  # fmt: skip
    return ModePlan(mode, low, constants, spec.tile, None, None, (low.c_format.name, low.d_format.name), spec.tile)


def run_phases(unit: Any, a, b, c, every: int | None, scales):
    """Return the encodings of D and the flags of tiles, as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` does."""
    import torch

    plan, (batch, m, k), n = unit.plan, a.shape, b.shape[1]
    each = plan.constants["TILE"]
    steps = k // plan.step * each + -(-(k % plan.step) // STEP)
    if plan.step % STEP:
        a, b = (_whole_steps(x, plan.step)[:, :, : steps * STEP] for x in (a, b))
    sides = [_planes(codes, plan.low, side, unit.tile[side], STEP * steps) for side, codes in enumerate((a, b))]
    (x, down), (y, across) = sides
    out = torch.empty(
        (batch, m, n), dtype=getattr(torch, f"int{8 * plan.low.d_format.container.itemsize}"), device=a.device
    )
    flags = torch.zeros(batch * down * across, dtype=torch.int32, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    promotes = every is not None
    arguments = {
        "a": view_of(x), "b": view_of(y), "c": None if c is None else view_of(c), "out": view_of(out),
        "flags": view_of(flags) if promotes else None, "m": m, "n": n, "steps": steps,
        "chain": (every or plan.step) // plan.step * each, "row_tiles": down, "column_tiles": across, "a_size": x[0].numel(),
        "b_size": y[0].numel(), "c_batch": strides[0], "c_row": strides[1], "c_column": strides[2],
    }  # fmt: skip
    constants = {
        **plan.constants, "PROMOTES": promotes, "EACH": unit.each, "THREADS": (unit.target.warp // 8, 8), "WARPS": unit.warps,
    }  # fmt: skip
    unit.launch(TritonLaunch("phases", arguments, constants, batch * down * across, math.prod(unit.warps)))
    return out, flags


def _whole_steps(codes, tile: int):
    """Return operands whose tiles are padded with zeros to whole steps."""
    import torch

    batch, rows, k = codes.shape
    codes = torch.nn.functional.pad(codes, (0, -k % tile)).reshape(batch, rows, -1, tile)
    return torch.nn.functional.pad(codes, (0, -tile % STEP)).reshape(batch, rows, -1)


def _planes(codes, low: Lowered, side: int, tile: int, padded: int):
    """Return leading parts, following parts and exponents of an operand, [batch][tile][k][row of the tile], and the number of
    tiles.
    """
    import torch

    batch, rows, k = codes.shape
    fmt = (low.a_format, low.b_format)[side]
    made = _integer_parts(codes, fmt, side) if isinstance(fmt, IntegerFormat) else _parts(codes, fmt, side)
    planes = torch.nn.functional.pad(torch.stack(made), (0, padded - k, 0, -rows % tile))
    planes = planes.reshape(len(made), batch, -1, tile, padded).transpose(3, 4).contiguous()
    return planes, planes.shape[2]


def _parts(codes, fmt: Format, side: int) -> list:
    """Return signed leading and following parts, and exponents, of floating-point encodings; every exponent field is a finite
    number's.
    """
    import torch

    bits = codes.to(torch.int32)
    field = (bits >> (fmt.fraction_bits + fmt.padding_bits)) & ((1 << fmt.exponent_bits) - 1)
    fraction = (bits >> fmt.padding_bits) & ((1 << fmt.fraction_bits) - 1)
    live, taken = field > 0, TAKEN[side]
    significand = torch.where(live, fraction | 1 << fmt.fraction_bits, 0) << (DIGITS - 1 - fmt.fraction_bits)
    significand *= 1 if side else 2  # kernels round twice the product
    following = (significand << taken) & ((1 << (DIGITS + 1 - side)) - 1)
    sign = torch.where((bits >> (fmt.bits - 1)) & 1 == 1, -1, 1).to(torch.int32)
    parts = [
        sign * (x >> (DIGITS - taken) & -2 if side == 0 else x >> (DIGITS - taken)) for x in (significand, following)
    ]
    return [*parts, torch.where(live, field + _LIFT, 0)]


def _integer_parts(codes, fmt: IntegerFormat, side: int) -> list:
    """Return the leading and following bits of magnitudes, with their signs."""
    import torch

    values = codes.to(torch.int32)
    sign = torch.where(values < 0, -1, 1).to(torch.int32)
    return [sign * (values.abs() & mask) for mask in INTEGER_BITS[side]]
