"""Hashes by which a function is compared with a recording over its whole domain of 2^32 operands.

There is one for each block of 2^16 operands with equal upper halves: the sum modulo 2^64, over the lower halves, of what
SplitMix64's output function gives for lower half * 2^32 + result. The 65,536 hashes of a function take 512 kB.
"""

import numpy as np

#: Blocks of one function.
BLOCKS = 65536
_LOWER = np.arange(1 << 16, dtype=np.uint64) << np.uint64(32)


def _mixed(z: np.ndarray) -> np.ndarray:
    """Return the output function of SplitMix64 (Steele, Lea, Flood 2014), in place."""
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
    """Return the hash of the results of a block's operands in ascending order, unsigned integers (65536,)."""
    return int(_mixed(_LOWER | results.astype(np.uint64)).sum(dtype=np.uint64))
