"""This module multiplies operands with scales: it applies the factors of a :class:`~.scaling.Scaling` to an engine's sums."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..formats import IntegerFormat
from ..formats.operands import values_of_bits
from ..formats.sums import sum_to_odd
from ..orders.order import Chain, KOrder, order_of
from .scaling import Scaling, read_scales


def scaled_sums(
    engine,
    a: np.ndarray,
    b: np.ndarray,
    scaling: Scaling,
    *,
    k_order: KOrder = "sequential",
    promote_every: int | None = None,
    promote_rounding: str = "rne",
    fused: bool = True,
) -> np.ndarray:
    """Return an engine's sums of shape (m, n) in FP32, with the factors of `scaling` applied.

    a (m, k) and b (k, n) are encodings; the engine has FP32 or integer results. The order and promotion are those of
    :meth:`tensorcore_models.Engine.gemm`. If factors are applied after each block of k, the chain ends after each block;
    `promote_every` may then divide the block, and each part of an order starts with a block. With `fused`, the product of the
    factors, times the block's sum, is added by one fused multiply-add; without it, the sum is multiplied by one factor, then by
    the other, and added.
    """
    result = engine.formats[3]
    if not isinstance(result, IntegerFormat) and result.name != "fp32":
        raise ValueError(
            f"results of {engine.label} are {result.name}, expected fp32 or integers, to which scales can be applied: use "
            "another engine"
        )
    options = {"k_order": k_order, "promote_every": promote_every, "promote_rounding": promote_rounding}
    if scaling.applied == "block":
        return _after_blocks(engine, a, b, scaling, k_order, promote_every, fused)
    bits = engine.gemm_bits(a, b, None, scaling.bits_a, scaling.bits_b, **options)
    return apply_at_end(_float32(bits, result), scaling.on(engine))


def scaled_outside(
    engine, a: np.ndarray, b: np.ndarray, scales: tuple[Any, Any], plain: bool, **order
) -> np.ndarray | None:
    """Return :func:`scaled_sums` for scales that are applied outside the unit; None if the unit itself takes the scales.

    Raises ValueError if scales are applied outside the unit and alpha or beta is not 1 (`plain` is False).
    """
    scaling = read_scales(*scales, a.shape[0], a.shape[1], b.shape[1], engine)
    if scaling is None or (scaling.applied == "product" and not scaling.roundings):
        return None
    if not plain:
        raise ValueError(
            "got alpha or beta other than 1, expected 1, because these scales are applied outside the unit: leave alpha and "
            "beta out"
        )
    return scaled_sums(engine, a, b, scaling, **order)


def apply_at_end(sums: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Return FP32 sums (m, n), multiplied by the factors that are applied at the end."""
    with np.errstate(all="ignore"):
        if scaling.applied == "product":
            return sums if not scaling.roundings else sums * (np.float32(scaling.whole_a) * np.float32(scaling.whole_b))
        a, b = scaling.a.astype(np.float32), scaling.b.astype(np.float32)
        if scaling.folded:
            return sums * (a * b)
        return (sums * b) * a if scaling.first == "b" else (sums * a) * b


def _float32(bits: np.ndarray, result) -> np.ndarray:
    """Return sums as FP32 values; integers are rounded to nearest."""
    return values_of_bits(bits, result).astype(np.float32)


def _after_blocks(engine, a, b, scaling: Scaling, k_order: KOrder, every: int | None, fused: bool) -> np.ndarray:
    """Return the sum of chains over blocks of k, each multiplied by its factors."""
    block, k = scaling.block, a.shape[1]
    assert block is not None  # the rule applies factors after blocks
    if block % engine.k:
        raise ValueError(
            f"{engine.label} adds {engine.k} products at a time, which must divide the {block} products that share a scale: "
            "use another engine"
        )
    every = block if every is None else every
    if isinstance(every, bool) or not hasattr(every, "__index__") or every < 1 or block % every or every % engine.k:
        raise ValueError(
            f"promote_every is {every!r}, expected a multiple of {engine.k} that divides the {block} products of a scale"
        )
    total = None
    for part in _parts(k_order, k, engine.k, block):
        found = np.zeros((a.shape[0], b.shape[1]), np.float32)
        for start in range(part.start, part.stop, every):
            piece = slice(start, min(start + every, part.stop))
            factor_a, factor_b = scaling.at(start)
            chain = _float32(engine.gemm_bits(a[:, piece], b[piece]), engine.formats[3])
            with np.errstate(all="ignore"):
                found = (
                    fused_multiply_add(factor_a * factor_b, chain, found)
                    if fused
                    else found + chain * factor_a * factor_b
                )
        total = found if total is None else total + found
    return np.zeros((a.shape[0], b.shape[1]), np.float32) if total is None else total


def _parts(k_order: KOrder, k: int, step: int, block: int) -> Iterator[range]:
    order = order_of(k, step, k_order)
    if order is None:
        yield range(k)
        return
    for part in (order,) if isinstance(order, Chain) else order.parts:
        pieces = part.pieces if isinstance(part, Chain) else ()
        if len(pieces) != 1 or pieces[0].step != 1 or pieces[0].start % block:
            raise ValueError(
                f"k_order is {k_order!r}, but each scale belongs to {block} consecutive k: give an order whose parts are "
                f"contiguous ranges of k that start at multiples of {block}"
            )
        yield pieces[0]


def fused_multiply_add(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return RN32(x y + z) of FP32 values, rounded once.

    The product is exact in FP64. The sum is rounded to odd in FP64, so that rounding it to FP32 gives the right result.
    """
    with np.errstate(all="ignore"):
        return sum_to_odd(np.multiply(x, y, dtype=np.float64), z.astype(np.float64)).astype(np.float32)
