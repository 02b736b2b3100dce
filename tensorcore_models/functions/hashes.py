"""This module hashes a function's results, to compare them with a recording over all 2^32 operands.

Each block of 2^16 operands with equal upper halves has one hash: the sum modulo 2^64 of SplitMix64's output function of
lower half * 2^32 + result, over the lower halves. The 65,536 hashes of a function take 512 kB.
"""

import numpy as np

#: Number of blocks of one function.
BLOCKS = 65536
_LOWER = np.arange(1 << 16, dtype=np.uint64) << np.uint64(32)


def _mixed(z: np.ndarray) -> np.ndarray:
    """Apply the output function of SplitMix64 (Steele, Lea, Flood 2014) to `z` in place, and return it."""
    z += np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def block_operands(block: int) -> np.ndarray:
    """Return the operands of a block, uint32 (65536,)."""
    return np.arange(block << 16, (block + 1) << 16, dtype=np.int64).astype(np.uint32)


def block_hash(results: np.ndarray) -> int:
    """Return the hash of a block from its results, unsigned integers (65536,) in ascending order of the operands."""
    return int(_mixed(_LOWER | results.astype(np.uint64)).sum(dtype=np.uint64))
