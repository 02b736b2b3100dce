"""Which parameters of a blocking change the bits of SGEMM-cube, and by how much.

The cube adds the products of a k group (bk * N_fused long) in L0C; between groups the vector unit adds L0C to C. So of a
blocking only the length of that chain can change a bit, and with it the order inside a cube step, whether L0C is seeded again,
and where the small terms are added. Both are shown by running `ascend.cube_gemm` over the feasible space.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import ascend
from mpgemm.exact.errors import ErrorMeter
from mpgemm.inputs.matrices import generate

#: (label, options of `ascend.cube_gemm`): one thing changed at a time.
VARIANTS: tuple[tuple[str, dict], ...] = (
    ("termwise, sequential", {}),
    ("pairwise steps", {"step_order": "pairwise"}),
    ("exact steps", {"step_order": "exact"}),
    ("re-seeded L0C", {"reseed_l0c": True}),
    ("termwise in place", {"order": "termwise_inplace"}),
    ("elementwise", {"order": "elementwise"}),
)


@dataclass(frozen=True)
class BlockingBits:
    """The findings of the experiment."""

    shape: tuple[int, int, int]  #: (m, k, n) of the product.
    blocks: int  #: Feasible blocks that were run.
    chains: dict[int, int]  #: Length of a k group (at most k) and how many blocks have it.
    results: int  #: Different results, by their bits.
    mixed: int  #: Chain lengths at which blocks of that length differ; 0 says that nothing else of a blocking matters.
    #: Relative Frobenius error (eq. 13) by chain length and variant; one block for each length.
    errors: dict[int, dict[str, float]]


def chain_length(block: ascend.Blocking, chip: ascend.Chip, k: int) -> int:
    """Return products that one chain in L0C adds: bk * N_fused, at most k."""
    return min(block.bk * block.n_fused(chip), k)


def blocking_bits(
    chip: ascend.Chip,
    m: int = 16,
    k: int = 16384,
    n: int = 16,
    seed: int = 0,
    lengths: int = 8,
    progress: Callable[[int, int], None] | None = None,
) -> BlockingBits:
    """Run every feasible block on one pair, uniform in [-1, 1]; the variants' errors at so many of the chain lengths
    that occur."""
    a, b = generate("uniform_symmetric", m, k, n, seed)
    by_length: dict[int, list[ascend.Blocking]] = defaultdict(list)
    for block in ascend.feasible_blocks(chip):
        by_length[chain_length(block, chip, k)].append(block)
    total, done, seen = sum(map(len, by_length.values())), 0, defaultdict(set)
    for length, blocks in by_length.items():
        for block in blocks:
            bits = ascend.cube_gemm(a, b, blocking=block, chip=chip).tobytes()
            seen[length].add(hashlib.sha256(bits).digest())
            done += 1
            if progress:
                progress(done, total)
    ordered = sorted(by_length)
    chosen = sorted({ordered[round(i * (len(ordered) - 1) / max(lengths - 1, 1))] for i in range(lengths)})
    meter = ErrorMeter(a, b)
    errors = {
        length: {
            label: meter.measure(
                ascend.cube_gemm(a, b, blocking=by_length[length][0], chip=chip, **options)
            ).relative_frobenius
            for label, options in VARIANTS
        }
        for length in chosen
    }
    return BlockingBits(
        shape=(m, k, n),
        blocks=total,
        chains={length: len(by_length[length]) for length in ordered},
        results=len(set().union(*seen.values())),
        mixed=sum(len(found) > 1 for found in seen.values()),
        errors=errors,
    )
