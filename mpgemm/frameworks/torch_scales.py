"""Operands and scales as torch's products with scales are given them, as this package has them.

FP4 comes as two values in a byte, the first in the low half, along k. Block scales of a unit (1 x 32, e8m0; 1 x 16, e4m3) lie
in tiles of 128 x 4, as GPUs read them. Shapes of `_scaled_mm_v2` (`torch.nn.functional.scaled_mm`) are those that PyTorch
2.13 checks (ScaledBlas.cpp): factors of 1 x 128 are (rows, blocks) of A and (columns, blocks) of B, factors of 128 x 128 are
(blocks of k, blocks across) with the blocks of k padded to a multiple of four.
"""

from collections.abc import Sequence
from typing import NamedTuple

import ml_dtypes
import numpy as np
import torch

from mpgemm.frameworks.torch_tensors import format_of, to_array
from tensorcore_models.engines.scaling import RULES, ScaleRule
from tensorcore_models.formats.interop import as_array

#: Two values of FP4 in a byte; None in a torch that lacks the type.
FP4_PAIRS = getattr(torch, "float4_e2m1fn_x2", None)
#: Rows and columns of one tile of block scales.
TILE = (128, 4)
#: Rows that lie beside each other in a tile.
BESIDE = 32
_RULES = {rule.name: rule for rule in RULES}
#: torch.nn.functional.ScalingType: the rule.
RECIPES = {
    0: _RULES["per tensor"],
    1: _RULES["per row and column"],
    2: _RULES["nvfp4, blocks of 16"],
    3: _RULES["mx, blocks of 32"],
    4: _RULES["blocks of 1 x 128"],
    5: _RULES["blocks of 128 x 128"],
}
#: The rule that a type of scales says, where no recipe does.
_BY_TYPE = {"float8_e8m0fnu": RECIPES[3], "float8_e4m3fn": RECIPES[2]}
#: Blocks of k of factors for 128 x 128 are padded to a multiple of this.
PADDED = 4


def operand(tensor: torch.Tensor, name: str) -> tuple[np.ndarray, str]:
    """Return values of operand "a" or "b" and their format; FP4, packed with half of k, is taken out of its bytes."""
    if tensor.dtype != FP4_PAIRS:
        return to_array(tensor, name), format_of(tensor.dtype, name)
    pairs = tensor.detach().view(torch.uint8).numpy()
    pairs = pairs if name == "a" else np.swapaxes(pairs, -1, -2)
    bits = np.stack([pairs & 15, pairs >> 4], -1).reshape(*pairs.shape[:-1], -1)
    values = bits.view(ml_dtypes.float4_e2m1fn)
    return values if name == "a" else np.swapaxes(values, -1, -2), "e2m1"


def unswizzled(scales: np.ndarray, across: int, along: int) -> np.ndarray:
    """Block scales (across, along), padded to whole tiles, out of the tiles of 128 x 4 in which GPUs read them
    (cuBLAS's documentation)."""
    rows, columns = -(-across // TILE[0]), -(-along // TILE[1])
    if scales.size != tiled_size(across, along):
        raise ValueError(
            f"{scales.size} block scales for {across} rows and {along} blocks of k: swizzled scales are padded to "
            f"tiles of 128 x 4, {tiled_size(across, along)} in all; torch.nn.functional.scaled_mm with "
            f"SwizzleType.NO_SWIZZLE takes scales that are not swizzled"
        )
    tiles = scales.reshape(rows, columns, BESIDE, TILE[0] // BESIDE, TILE[1])
    return tiles.transpose(0, 3, 2, 1, 4).reshape(rows * TILE[0], columns * TILE[1])[:across, :along]


def tiled_size(across: int, along: int) -> int:
    """Block scales of a matrix in whole tiles."""
    return -(-across // TILE[0]) * TILE[0] * (-(-along // TILE[1]) * TILE[1])


class TorchScale(NamedTuple):
    """Scales of one operand."""

    factors: np.ndarray
    rule: ScaleRule | None  #: None: by the shape.
    recipe: bool = False  #: Whether a recipe names the rule: shapes are then those of `_scaled_mm_v2`.
    tiled: bool = True  #: Whether a unit's block scales lie in tiles.
    whole: np.ndarray | None = None  #: One factor more for the operand (one for each group).

    @property
    def blocks(self) -> bool:
        """Whether a unit multiplies the scales."""
        return self.rule is not None and self.rule.applied == "product"

    def placed(self, side: str, size: int, k: int):
        """As `tensorcore_models.read_scales` takes them: (rows, blocks) of A, (blocks, columns) of B; with `whole` a pair."""
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
        raise ValueError(f"scale_{side}, {rule.name}: torch expects shape {shape}, got {factors.shape}")
    return factors


def scale_by_type(scale: torch.Tensor) -> TorchScale:
    """Return the scale given to `_scaled_mm` or `_scaled_grouped_mm`: its type and shape determine the rule."""
    factors = _factors(scale)
    return TorchScale(factors, _BY_TYPE.get(factors.dtype.name))


def scale_by_recipe(
    scales: Sequence[torch.Tensor], recipes: Sequence[int], swizzles: Sequence[int], side: str
) -> TorchScale:
    """Return the scale given to `_scaled_mm_v2` or `_scaled_grouped_mm_v2`; ValueError for recipes or swizzles torch lacks."""
    names = [RECIPES[int(x)].name if int(x) in RECIPES else f"ScalingType {int(x)}" for x in recipes]
    second = [int(x) for x in recipes[1:]]
    if len(scales) != len(recipes) or not recipes or int(recipes[0]) not in RECIPES or second not in ([], [0]):
        raise ValueError(
            f"scale_{side}: {len(scales)} scales with the recipes {', '.join(names) or 'none'}; known are "
            f"{', '.join(rule.name for rule in RECIPES.values())}, and a unit's block scales followed by one factor "
            f"of the whole tensor"
        )
    rule = RECIPES[int(recipes[0])]
    tiled = any(int(x) == 1 for x in swizzles)
    if any(int(x) not in (0, 1) for x in swizzles) or (tiled and rule.applied != "product"):
        raise ValueError(
            f"scale_{side}: swizzle {[int(x) for x in swizzles]} with {rule.name}; expected NO_SWIZZLE, or "
            "SWIZZLE_32_4_4 with the block scales of a unit"
        )
    whole = _factors(scales[1]) if second else None
    return TorchScale(_factors(scales[0]), rule, True, tiled, whole)


def _factors(scale: torch.Tensor) -> np.ndarray:
    factors = as_array(scale.contiguous(), "a scale")
    return factors if factors.dtype.name in _BY_TYPE else factors.astype(np.float32)
