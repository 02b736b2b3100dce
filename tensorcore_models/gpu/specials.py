"""Decides infinities and NaN of a product on the device, by the kinds of its operands.

A sum with a special operand is NaN if an operand or a block scale is NaN, if a product is an infinity times zero, or if
infinities of both signs meet among products and c; else it is the infinity
(:func:`tensorcore_models.arithmetic.numbers.special_sum`). This does not depend on the finite numbers. So a kernel without
special values runs on operands with zeros in their place, and this module then writes the results that special values decide.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ..arithmetic.numbers import special_bits
from ..families.base import SumAlgorithm
from ..formats import FORMATS, Format
from ..formats.exact_rounding import overflow_bits
from ..formats.rounding import decode
from ..kernels.lowering import Lowered

#: Algorithms whose special sums follow this rule alone; others keep payloads, saturate or flush.
_HELD = (
    SumAlgorithm.FUSED, SumAlgorithm.INTERLEAVED, SumAlgorithm.ROUND_DOWN, SumAlgorithm.GROUP_SUM, SumAlgorithm.LATE,
    SumAlgorithm.PARAMETRIC, SumAlgorithm.EXACT,
)  # fmt: skip
#: Number up to which counts of special products are exact in FP32.
_MOST_COUNTED = 1 << 23


@dataclass(frozen=True)
class SpecialRule:
    """`SpecialRule` says how a unit's special values are read and written.

    Attributes
    ----------
    low : Lowered
    padding : bool
        Whether the padding of an operand belongs to its NaN payload.
    nan, infinity : int
        Encodings of NaN and of positive infinity in the result.
    """

    low: Lowered
    padding: bool
    nan: int
    infinity: int


def special_rule(low: Lowered, every: int | None) -> SpecialRule | None:
    """Return the rule of a unit's special values; None for units that follow another rule.

    Parameters
    ----------
    low : Lowered
    every : int or None
        Number of products of a chain whose sum is added outside in FP32, where a NaN is the quiet NaN.
    """
    read = low.as_read
    if read is None:
        return None
    (algorithm, spec), formats, _ = read
    if algorithm not in _HELD or spec.nan == "x86" or not all(_readable(fmt) for fmt in formats):
        return None
    if getattr(spec, "flush_inputs", False):  # an infinity times a subnormal number
        return None
    d, scale = formats[3], low.scale_format
    if d.specials != "ieee" or (scale is not None and scale.fraction_bits and any(f.has_inf for f in formats[:2])):
        return None  # an infinity times a scale of zero
    nan = special_bits("nan", d, spec) if every is None else FORMATS["fp32"].nan_encoding()
    return SpecialRule(low, spec.tf32_nan == "kept", nan, overflow_bits(False, d))


def _readable(fmt: Format) -> bool:
    return fmt.bits <= 16 or (fmt.bits == 32 and fmt.exponent_bits == 8)


@lru_cache(maxsize=64)
def _table(fmt: Format) -> np.ndarray:
    """Return, for all encodings of a format of up to 16 bits, the sign (0 of zeros), infinity or NaN, in FP32."""
    values = decode(np.arange(1 << fmt.bits, dtype=fmt.container), fmt, np.dtype(np.float64))
    return np.where(np.isfinite(values), np.sign(values), values).astype(np.float32)


def kinds(fmt: Format, codes: Any, padding: bool = False) -> Any:
    """Return 1, -1 or 0 for each encoding by its sign, or an infinity or NaN, in FP32.

    Parameters
    ----------
    fmt : Format
    codes : Tensor
        Encodings as integers.
    padding : bool
        Whether set bits in the padding turn an infinity into a NaN.
    """
    import torch

    if fmt.bits <= 16:
        table = torch.from_numpy(_table(fmt)).to(codes.device)
        return table[codes.to(torch.int64) & ((1 << fmt.bits) - 1)]
    kept = codes if padding else codes & -(1 << fmt.padding_bits)
    values = kept.view(torch.float32)
    return torch.where(values.isfinite(), (values > 0).float() - (values < 0).float(), values)


def without_specials(codes: Any, kind: Any) -> Any:
    """Return encodings with +0 in the place of infinities and NaN."""
    import torch

    return torch.where(kind.isfinite(), codes, torch.zeros_like(codes))


@dataclass(frozen=True)
class SpecialTiles:
    """`SpecialTiles` holds operands of tiles with special values separated: (tiles, rows, k), (tiles, columns, k), (tiles,
    rows, columns).

    Attributes
    ----------
    a, b, c : Tensor
        Encodings, in which special values are replaced by zeros; c may be None.
    scales : tuple
        Block scales of a and b, in which NaN is replaced by the smallest scale; or None.
    any : Tensor
        Mask of the tiles that have special values.
    special, nan : Tensor
        Masks of the elements of the result that special values decide, and of those that are NaN.
    codes : Tensor
        Encodings of those elements.
    result : Format
        Format of the result.
    """

    a: Any
    b: Any
    c: Any
    scales: tuple[Any, Any]
    any: Any
    special: Any
    nan: Any
    codes: Any
    result: Format

    def undecided(self, d: Any) -> Any:
        """Return a mask of the tiles where the results `d` without special values overflow and special values make an infinity.

        There, the order of overflow and infinity decides whether two infinities of different signs meet.
        """
        return (self.special & ~self.nan & ~kinds(self.result, d).isfinite()).flatten(1).any(1)

    def put_into(self, d: Any) -> Any:
        """Return the results `d` with the elements replaced that special values decide."""
        import torch

        return torch.where(self.special, self.codes.to(d.dtype), d)


def taken_apart(rule: SpecialRule, a: Any, b: Any, c: Any, scales: tuple[Any, Any]) -> SpecialTiles:
    """Return the special values of tiles, separated, and the results that they decide."""
    import torch

    low = rule.low
    assert low.floating is not None
    formats = low.floating
    x, y = (kinds(fmt, codes, rule.padding) for fmt, codes in zip(formats, (a, b), strict=False))
    z = None if c is None else kinds(formats[2], c)
    nan_rows, nan_columns = x.isnan().any(2), y.isnan().any(2)
    kept = list(scales)
    if low.scale_format is not None:
        of_scales = [kinds(low.scale_format, codes).isnan() for codes in scales]
        nan_rows, nan_columns = nan_rows | of_scales[0].any(2), nan_columns | of_scales[1].any(2)
        kept = [torch.where(nan, torch.zeros_like(codes), codes) for nan, codes in zip(of_scales, scales, strict=True)]
    nan = nan_rows[:, :, None] | nan_columns[:, None, :]
    positive, negative, undefined = _infinite_products(x, y)
    nan = nan | undefined
    if z is not None:
        nan, positive, negative = nan | z.isnan(), positive | z.isposinf(), negative | z.isneginf()
    nan = nan | (positive & negative)
    codes = torch.where(negative, rule.infinity | formats[3].sign_bit, rule.infinity)
    codes = torch.where(nan, rule.nan, codes)
    addend = None if c is None else without_specials(c, z)
    special = nan | positive | negative
    return SpecialTiles(
        without_specials(a, x),
        without_specials(b, y),
        addend,
        (kept[0], kept[1]),
        special.flatten(1).any(1),
        special,
        nan,
        codes,
        formats[3],
    )


def _infinite_products(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Return masks of +inf, -inf and infinity times zero among the products of kinds (tiles, rows, k) and (tiles, columns,
    k)."""
    import torch

    kind = torch.float32 if x.shape[2] < _MOST_COUNTED else torch.float64
    y = y.transpose(1, 2)
    infinite = [torch.where(side.isinf(), side.sign(), 0.0).to(kind) for side in (x, y)]
    signs = [torch.where(side.isnan(), 0.0, side.sign()).to(kind) for side in (x, y)]
    zeros = [(side == 0).to(kind) for side in (x, y)]
    undefined = infinite[0].abs() @ zeros[1] + zeros[0] @ infinite[1].abs()
    total = infinite[0].abs() @ signs[1].abs() + signs[0].abs() @ infinite[1].abs()
    signed = infinite[0] @ signs[1] + signs[0] @ infinite[1]
    return total + signed > 0, total - signed > 0, undefined > 0
