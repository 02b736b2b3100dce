"""Fused sums in integers on a GPU: plans, and operands packed on the device."""

import dataclasses
import math
from typing import Any

from .launches import TritonLaunch, view_of
from .plans import ModePlan, OperandForm


def integer_plan(floating: ModePlan | None, mode: Any, fractions: tuple[int, int]) -> ModePlan | None:
    """Return the plan of a fused sum in FP64 for the integer kernel; None for sums that it does not hold.

    floating: What the FP64 kernel is told. fractions: Fraction bits of the operands.
    """
    if floating is None or (floating.low.scale_format is not None and floating.low.scale_format.fraction_bits > 0):
        return None
    told = floating.constants
    if told["DOWN"] is not None and told["DOWN"][0] < told["DOWN"][1]:
        return None
    shift = told["FRACTION"] - sum(fractions)
    if shift > 0 and told["FRACTION"] + 2 > 30:
        return None
    constants = {name: told[name] for name in ("TERMS", "FRACTION", "ALIGN", "KEEP", "NARROWED", "TYPES", "DOWN")}
    # A product is below 4 2^F units: so many of them fit into 32 bits with their sign.
    constants["CHUNK"] = min(told["TERMS"], max(1, 1 << (28 - told["FRACTION"])))
    # Without a floor zeros' exponents are the lowest that can come, and powers of two stay in FP64.
    constants |= {"FLOOR": max(told["FLOOR"], -600) if told["WIDE"] else told["FLOOR"], "EXTRA": max(-shift, 0)}
    return dataclasses.replace(floating, mode=mode, constants=constants)


def run_integers(unit: Any, a, b, c, every: int | None, scales):
    """Return (encodings of D, flags of tiles) as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` gives them."""
    import torch

    plan, (batch, m, k), n, lanes = unit.plan, a.shape, b.shape[1], unit.target.warp
    order = plan.order(k)
    padded = -(-k // plan.terms) * plan.terms if order is None else order.size
    at = None if order is None else torch.from_numpy(order.copy()).to(a.device)
    chain = len(plan.groups) * plan.terms if plan.groups is not None else every or padded
    threads = (lanes // 8, 8)
    (rows, columns), sides = (unit.each[i] * threads[i] * unit.warps[i] for i in (0, 1)), []
    shift = max(plan.constants["FRACTION"] - plan.a.format[1] - plan.b.format[1], 0)
    for codes, of, form, tile, up in ((a, scales[0], plan.a, rows, shift), (b, scales[1], plan.b, columns, 0)):
        sides.append(_packed(unit, codes, of, form, tile, padded, at, up))
    (x, x_special, down), (y, y_special, across) = sides
    kind = torch.int16 if plan.types[1] == "fp16" else torch.int32
    out = torch.empty((batch, m, n), dtype=kind, device=a.device)
    flags = torch.empty(batch * down * across, dtype=torch.int32, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    arguments = {
        "a_words": view_of(x), "a_special": view_of(x_special), "b_words": view_of(y), "b_special": view_of(y_special),
        "c": None if c is None else view_of(c, plan.types[0]), "out": view_of(out, plan.types[1]),
        "flags": view_of(flags), "m": m, "n": n,
        "steps": padded // plan.terms, "chain": chain // plan.terms, "row_tiles": down, "column_tiles": across,
        "padded_k": padded, "a_size": x.numel() // 2, "b_size": y.numel() // 2, "c_batch": strides[0], "c_row": strides[1],
        "c_column": strides[2],
    }  # fmt: skip
    constants = {
        **plan.constants, "PROMOTES": plan.groups is not None or every is not None, "EACH": unit.each, "THREADS": threads,
        "WARPS": unit.warps,
    }  # fmt: skip
    unit.launch(TritonLaunch("fused_integers", arguments, constants, batch * down * across, math.prod(unit.warps)))
    return out, flags


def _packed(unit: Any, codes, scales, form: OperandForm, tile: int, padded: int, order, shift: int):
    """Return (significands and exponents, which rows have NaN or infinities, tiles) of an operand."""
    import torch

    batch, rows, k = codes.shape
    tiles, strides = -(-rows // tile), codes.stride()
    of_scales = (0, 0, 0) if scales is None else scales.stride()
    size = batch * tiles * padded * tile
    words = torch.empty(2 * size, dtype=torch.int32, device=codes.device)
    special = torch.zeros(batch * tiles * tile, dtype=torch.int32, device=codes.device)
    arguments = {
        "codes": view_of(codes), "words": view_of(words), "special": view_of(special),
        "order": None if order is None else view_of(order), "rows": rows, "k": k, "code_batch": strides[0],
        "code_row": strides[1], "code_k": strides[2], "scales": None if scales is None else view_of(scales),
        "scale_batch": of_scales[0], "scale_row": of_scales[1], "scale_k": of_scales[2], "row_tiles": tiles, "padded_k": padded,
        "size": size,
    }  # fmt: skip
    constants = {
        "FORMAT": form.format, "LIFT": form.shape[1], "SHIFT": shift, "NORMALISE": form.normalise, "SCALE": form.scale,
        "TILE": tile, "LANES": unit.target.warp,
    }  # fmt: skip
    unit.launch(TritonLaunch("pack_integers", arguments, constants, batch * tiles * padded, 1))
    return words, special, tiles
