"""FP32 arithmetic of a GPU's threads on arrays: functions, chains of additions, and how the lanes of a warp join their sums."""

from collections.abc import Iterable
from functools import cache

import numpy as np

from ..functions import Function, get_function
from ..functions.rows import LIBRARY, Row

#: Lanes of a warp.
WARP = 32

_TRIGONOMETRIC = """
p = x * 0x3F22F983
q = p + 12582912.0
i = word_add(word_sub(q, 0x4B400000), {quadrants})
q = q - 12582912.0
t = fma(q, 0xBFC90FDA, x)
t = fma(q, 0xB3A22168, t)
t = fma(q, 0xA7C234C5, t)
u = t * t
c = 1.0 if (i & 1) == 1 else t
z = fma(0x37CBAC00, u, 0xBAB607ED) if (i & 1) == 1 else 0xB94D4153
z = fma(z, u, 0x3D2AAABB if (i & 1) == 1 else 0x3C0885E4)
z = fma(z, u, 0xBEFFFFFF if (i & 1) == 1 else 0xBE2AAAA8)
r = fma(z, fma(u, c, 0.0), c)
fma(r, -1.0, 0.0) if (i & 2) == 2 else r
"""
#: The largest operand for which CUDA's sinf and cosf subtract multiples of pi/2 in three steps; beyond it they go by a table.
LARGEST_ANGLE = 105615.0
_RECORDED = "all bf16 operands up to 105615 and 65,536 FP32 ones"
#: Functions whose programs hold for a part of their operands only.
_PARTS = {
    name: Row(program=_TRIGONOMETRIC.format(quadrants=quadrants), kind=LIBRARY, recorded=_RECORDED)
    for name, quadrants in (("sinf", 0), ("cosf", 1))
}


@cache
def _function(name: str) -> Function:
    if name in _PARTS:
        return Function("hopper", name, _PARTS[name], _PARTS[name].recorded)
    return get_function("hopper", name)


def apply(name: str, *operands: np.ndarray) -> np.ndarray:
    """A function of FP32 values as the GPU computes it, named as :func:`tensorcore_models.get_function` does."""
    bits = [np.ascontiguousarray(x, np.float32).view(np.uint32) for x in operands]
    return _function(name).bits(*bits).view(np.float32)


def chain(x: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """The sum along the last axis, from the left, rounded each time, from +0 or from `start`."""
    first = np.zeros(x.shape[:-1], np.float32) if start is None else start
    return np.add.accumulate(np.concatenate([first[..., None], x], axis=-1), axis=-1, dtype=np.float32)[..., -1]


def butterfly(x: np.ndarray, distances: Iterable[int]) -> np.ndarray:
    """The sum that lanes (last axis) have after adding their partner's, at each distance."""
    lanes = np.arange(x.shape[-1])
    for distance in distances:
        x = x + x[..., lanes ^ distance]
    return x[..., 0]


def halves(width: int) -> list[int]:
    """Distances from half of a power of two down to 1."""
    return [width >> i for i in range(1, width.bit_length())]
