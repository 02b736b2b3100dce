"""This module holds attention kernels of torch on an H100 as rows of data: tiles of keys, exponents, row sums.

The rules reproduce the SHA-256 of the whole outputs of 28 recordings (FP16 and BF16, d 64 and 128, up to 1024 keys, torch 2.11,
cuDNN 9.19). The choice of FlashAttention 2's kernel, its number of parts, and its tiles for other head sizes follow its source
(set_params_splitkv, num_splits_heuristic).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .recipe import Unknown

#: Number of multiprocessors of each GPU with known rules.
MULTIPROCESSORS = {"h100": 132}


@dataclass(frozen=True)
class AttentionRule:
    """`AttentionRule` says how one attention kernel processes the keys.

    Parameters
    ----------
    name : str
        Name of the kernel in messages.
    unit : str
        Instruction of both products, with a placeholder for the operands' format.
    tiles : tuple of (int, int)
        Pairs of a largest head size and the number of keys in a tile, in ascending order.
    recorded : tuple of int
        Head sizes in the recordings.
    last_first : bool
        Whether tiles are processed from the last to the first.
    exponent : {"fused", "products", "scaled"}
        Weight of a score s, with c = RN(log2(e) scale) and the running maximum m of a row: ex2(fma(s, c, -RN(m c))) for
        "fused", ex2(RN(s c) - RN(m c)) for "products". For "scaled", scores are scaled first, t = RN(RN(s scale) log2(e)), and
        the weight is ex2(t - m) with the maximum m of t.
    rescale : {"products", "difference"}
        Factor of earlier sums, whose maximum is m': ex2(RN(m' c) - RN(m c)), or ex2(RN(RN(m' - m) c)).
    row_sums : {"tiles", "running", "warps"}
        Addition of the weights of a row. "tiles": each thread adds the weights of a tile, then fma(earlier sum, factor, sum of
        the tile). "running": each thread continues its sum over tiles from fma(earlier sum, factor, first weight). "warps": the
        four threads join their sums after each 32 columns.
    quad : tuple of int
        Distances at which the four threads of a row join their sums.
    inverse : str
        Function of the GPU that computes 1 / (row sum).
    """

    name: str
    unit: str
    tiles: tuple[tuple[int, int], ...]
    recorded: tuple[int, ...] = (64, 128)
    last_first: bool = False
    exponent: str = "fused"
    rescale: str = "products"
    row_sums: str = "tiles"
    quad: tuple[int, int] = (1, 2)
    inverse: str = "rcp.rn.f32"

    def tile(self, d: int) -> int:
        """Return the number of keys in a tile for heads of size d; raises Unknown if it was not measured."""
        for largest, keys in self.tiles:
            if d <= largest:
                return keys
        raise Unknown(
            f"{self.name} with heads of size {d} is not known", field="d", known=[f"up to {self.tiles[-1][0]}"]
        )


_WGMMA, _MMA, _MMA8 = "wgmma.m64n8k16.f32.{0}.{0}", "mma.m16n8k16.f32.{0}.{0}.f32", "mma.m16n8k8.f32.{0}.{0}.f32"
_FLASH_STEPS: dict[str, Any] = {
    "last_first": True, "exponent": "products", "rescale": "difference", "row_sums": "running", "quad": (2, 1)
}  # fmt: skip
_FLASH = AttentionRule("FlashAttention 2", _MMA, ((64, 128), (128, 64), (256, 64)), (64,), **_FLASH_STEPS)
_FLASH_SPLIT = AttentionRule(
    "FlashAttention 2, split over keys", _MMA, ((64, 256), (128, 128), (256, 64)), **_FLASH_STEPS
)
_CUDNN = AttentionRule("cuDNN", _WGMMA, ((128, 128),), exponent="products", inverse="rcp.approx.ftz.f32")
_EFFICIENT = AttentionRule(
    "memory-efficient attention (CUTLASS)", _MMA8, ((64, 64), (128, 128)), exponent="scaled", row_sums="warps"
)


@dataclass(frozen=True)
class AttentionPlan:
    """`AttentionPlan` is a kernel for one problem: its rule, the keys of a tile, and the parts that share the tiles."""

    rule: AttentionRule
    tile: int
    parts: int
    inferred: str  #: Reason why the plan is inferred; empty if it was recorded.


def plan(kernel: str, gpu: str, heads: int, queries: int, keys: int, d: int) -> AttentionPlan:
    """Return the kernel's plan for a problem with `heads` heads in the whole batch; raises Unknown for unmeasured sizes."""
    rule, parts = {"cudnn": _CUDNN, "efficient": _EFFICIENT, "flash": _FLASH}[kernel], 1
    if kernel == "flash":
        parts = flash_parts(heads * -(-queries // 64), MULTIPROCESSORS[gpu], -(-keys // _FLASH_SPLIT.tile(d)))
        rule = _FLASH if parts == 1 else _FLASH_SPLIT
    why = [
        f"heads of size {d}, recorded {' and '.join(map(str, rule.recorded))}" * (d not in rule.recorded),
        f"{queries} queries of {keys} keys, recorded as many" * (queries != keys),
    ]
    return AttentionPlan(rule, rule.tile(d), parts, "; ".join(filter(None, why)))


def flash_parts(blocks: int, multiprocessors: int, tiles: int) -> int:
    """Return the number of parts into which FlashAttention 2 splits the keys: the fewest with 85 % of the best occupancy.

    `blocks` counts blocks of 64 queries over all heads, `tiles` the tiles of keys. Two blocks fit on a multiprocessor.
    """
    places = 2 * multiprocessors
    if blocks >= 0.8 * places:
        return 1
    choices: Sequence[int] = [
        n for n in range(1, min(128, places, tiles) + 1) if n == 1 or -(-tiles // n) != -(-tiles // (n - 1))
    ]
    waves = {n: blocks * n / places for n in choices}
    filled = {n: wave / -(-blocks * n // places) for n, wave in waves.items()}
    return next(n for n in choices if filled[n] >= 0.85 * max(filled.values()))
