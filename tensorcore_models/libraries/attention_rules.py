"""Attention kernels of torch on an H100 as rows of data: tiles of keys, exponents, sums of rows.

SHA-256 of the whole outputs of 28 recordings (FP16 and BF16, d 64 and 128, up to 1024 keys, torch 2.11, cuDNN 9.19) are
these rules'. Which kernel of FlashAttention 2 runs, and with how many parts, is its source's (set_params_splitkv,
num_splits_heuristic); tiles for other sizes of heads, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .recipe import Unknown

#: Multiprocessors of the GPUs for which rules are known.
MULTIPROCESSORS = {"h100": 132}


@dataclass(frozen=True)
class AttentionRule:
    """How one kernel goes over the keys.

    Parameters
    ----------
    name : str
        What is said of it.
    unit : str
        Instruction of both products, with the operands' format left open.
    tiles : tuple of (int, int)
        Largest size of a head and the keys of a tile, in ascending order.
    recorded : tuple of int
        Sizes of heads of the recording.
    last_first : bool
        Whether tiles come from the last to the first.
    exponent : {"fused", "products", "scaled"}
        With c = RN(log2(e) scale) and m the running maximum of a row: ex2(fma(s, c, -RN(m c))); ex2(RN(s c) - RN(m c)); or
        scores scaled first, t = RN(RN(s scale) log2(e)), and ex2(t - m) with m the maximum of t.
    rescale : {"products", "difference"}
        What shrinks earlier sums: ex2(RN(m' c) - RN(m c)), or ex2(RN(RN(m' - m) c)).
    row_sums : {"tiles", "running", "warps"}
        Threads add the weights of a tile, then fma(earlier sum, what shrinks it, that sum); or go on over tiles from
        fma(earlier sum, what shrinks it, first weight); or the quad joins the sums of each 32 columns.
    quad : tuple of int
        Distances at which the four threads of a row join their sums.
    inverse : str
        What gives 1 / (row sum): a function of the GPU.
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
        """Return keys of a tile for heads of size d; raises Unknown where nobody has looked."""
        for largest, keys in self.tiles:
            if d <= largest:
                return keys
        raise Unknown(f"{self.name}: heads of size {d}", field="d", known=[f"up to {self.tiles[-1][0]}"])


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
    """One kernel for one problem: its rule, keys of a tile, and parts over which the tiles are dealt."""

    rule: AttentionRule
    tile: int
    parts: int
    inferred: str  #: Why it is inferred; empty: recorded.


def plan(kernel: str, gpu: str, heads: int, queries: int, keys: int, d: int) -> AttentionPlan:
    """Return the kernel's plan for a problem; heads: of the whole batch. Raises Unknown for sizes that nobody knows."""
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
    """Return parts over which FlashAttention 2 deals the keys: the fewest that fill the GPU to 85 % of the best choice.

    blocks: blocks of 64 queries of all heads. tiles: tiles of keys. Two blocks fit on a multiprocessor.
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
