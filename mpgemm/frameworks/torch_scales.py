"""Converts operands and scales of torch's scaled products to the forms of this package.

A byte holds two values of FP4 along k, the first in the low half. Block scales for a unit (1 x 32, e8m0; 1 x 16, e4m3) lie in
tiles of 128 x 4, as GPUs read them. The shapes of `_scaled_mm_v2` (`torch.nn.functional.scaled_mm`) are those that PyTorch 2.13
checks (ScaledBlas.cpp): factors of 1 x 128 have shapes (rows, blocks) for A and (columns, blocks) for B; factors of 128 x 128
have the shape (blocks of k, blocks across), with the blocks of k padded to a multiple of four.
"""

from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import format_of, to_array
from tensorcore_models.engines.scaling import RULES, ScaleRule
from tensorcore_models.formats.interop import as_array

#: Type of two FP4 values in a byte, or None if this torch lacks it.
FP4_PAIRS = getattr(torch, "float4_e2m1fn_x2", None)
#: Numbers of rows and columns of one tile of block scales.
TILE = (128, 4)
#: Number of rows that are interleaved in a tile.
BESIDE = 32
_RULES = {rule.name: rule for rule in RULES}
#: Rules by the number of torch.nn.functional.ScalingType.
RECIPES = {
    0: _RULES["per tensor"],
    1: _RULES["per row and column"],
    2: _RULES["nvfp4, blocks of 16"],
    3: _RULES["mx, blocks of 32"],
    4: _RULES["blocks of 1 x 128"],
    5: _RULES["blocks of 128 x 128"],
}
#: Rules by the type of the scales, if no recipe names the rule.
_BY_TYPE = {"float8_e8m0fnu": RECIPES[3], "float8_e4m3fn": RECIPES[2]}
#: Multiple to which the blocks of k of 128 x 128 factors are padded.
PADDED = 4


def operand(tensor: torch.Tensor, name: str) -> tuple[np.ndarray, str]:
    """Return the values of operand "a" or "b" and their format; packed FP4 is unpacked, which doubles its k."""
    if tensor.dtype != FP4_PAIRS:
        return to_array(tensor, name), format_of(tensor.dtype, name)
    pairs = tensor.detach().view(torch.uint8).numpy()
    pairs = pairs if name == "a" else np.swapaxes(pairs, -1, -2)
    bits = np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:-1], -1)
    values = bits.view(ml_dtypes.float4_e2m1fn)
    return values if name == "a" else np.swapaxes(values, -1, -2), "e2m1"


def unswizzled(scales: np.ndarray, across: int, along: int) -> np.ndarray:
    """Return block scales (across, along) from the padded tiles of 128 x 4 in which GPUs read them (cuBLAS's documentation)."""
    rows, columns = -(-across // TILE[0]), -(-along // TILE[1])
    if scales.size != tiled_size(across, along):
        raise ValueError(
            f"got {scales.size} block scales for {across} rows and {along} blocks of k, expected {tiled_size(across, along)}, "
            f"padded to tiles of 128 x 4: swizzle the scales, or call torch.nn.functional.scaled_mm with SwizzleType.NO_SWIZZLE"
        )
    tiles = scales.reshape(rows, columns, BESIDE, TILE[0] // BESIDE, TILE[1])
    return tiles.transpose(0, 3, 2, 1, 4).reshape(rows * TILE[0], columns * TILE[1])[:across, :along]


def tiled_size(across: int, along: int) -> int:
    """Return the number of block scales of a matrix, padded to whole tiles."""
    return -(-across // TILE[0]) * TILE[0] * (-(-along // TILE[1]) * TILE[1])


class TorchScale(NamedTuple):
    """`TorchScale` holds the scales of one operand."""

    factors: np.ndarray
    rule: ScaleRule | None  #: Rule of scaling; None if the shape determines it.
    recipe: bool = False  #: Whether a recipe names the rule, so that shapes are those of `_scaled_mm_v2`.
    tiled: bool = True  #: Whether block scales for a unit lie in tiles.
    whole: np.ndarray | None = None  #: Additional factor of the whole operand, or of each group.

    @property
    def blocks(self) -> bool:
        """Whether the scales are block scales, which the unit applies."""
        return self.rule is not None and self.rule.applied == "product"

    def placed(self, side: str, size: int, k: int):
        """Return scales for `tensorcore_models.read_scales`: (rows, blocks) of A, (blocks, columns) of B, or a pair."""
        factors, rule = self.factors, self.rule
        if rule is None or rule.along is None or not (self.recipe or self.blocks):
            return factors.reshape(1, -1) if side == "b" and self.recipe and factors.ndim == 2 else factors
        blocks = -(-k // rule.along)
        if self.blocks:
            found = unswizzled(factors, size, blocks) if self.tiled else _shaped(factors, (size, blocks), side, rule)
        elif rule.together == 1:
            found = _shaped(factors, (size, blocks), side, rule)
        else:
            rows = -(-blocks // PADDED) * PADDED
            found = _shaped(factors, (rows, -(-size // rule.along)), side, rule)[:blocks].T
        found = found if side == "a" else found.T
        return found if self.whole is None else (found, self.whole.reshape(()))


def _shaped(factors: np.ndarray, shape: tuple[int, int], side: str, rule: ScaleRule) -> np.ndarray:
    if factors.shape != shape:
        raise ValueError(f"scale_{side} has shape {factors.shape}, expected {shape} for the rule {rule.name}")
    return factors


def scale_by_type(scale: torch.Tensor) -> TorchScale:
    """Return the scale of `_scaled_mm` or `_scaled_grouped_mm`, whose type and shape determine the rule."""
    factors = _factors(scale)
    return TorchScale(factors, _BY_TYPE.get(factors.dtype.name))


def scale_by_recipe(
    scales: Sequence[torch.Tensor], recipes: Sequence[int], swizzles: Sequence[int], side: str
) -> TorchScale:
    """Return the scale of `_scaled_mm_v2` or `_scaled_grouped_mm_v2`. Raises ValueError for unknown recipes or swizzles."""
    names = [RECIPES[int(x)].name if int(x) in RECIPES else f"ScalingType {int(x)}" for x in recipes]
    second = [int(x) for x in recipes[1:]]
    if len(scales) != len(recipes) or not recipes or int(recipes[0]) not in RECIPES or second not in ([], [0]):
        raise ValueError(
            f"scale_{side}: got {len(scales)} scales with the recipes {', '.join(names) or 'none'}, expected one of "
            f"{', '.join(rule.name for rule in RECIPES.values())}, or block scales for a unit and one factor of the whole "
            "tensor"
        )
    rule = RECIPES[int(recipes[0])]
    tiled = any(int(x) == 1 for x in swizzles)
    if any(int(x) not in (0, 1) for x in swizzles) or (tiled and rule.applied != "product"):
        raise ValueError(
            f"scale_{side}: got swizzle {[int(x) for x in swizzles]} with scales {rule.name}, expected 0 (NO_SWIZZLE), or 1 "
            "(SWIZZLE_32_4_4) for block scales that the unit applies"
        )
    whole = _factors(scales[1]) if second else None
    return TorchScale(_factors(scales[0]), rule, True, tiled, whole)


def _factors(scale: torch.Tensor) -> np.ndarray:
    factors = as_array(scale.contiguous(), "a scale")
    return factors if factors.dtype.name in _BY_TYPE else factors.astype(np.float32)
