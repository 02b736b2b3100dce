"""Finds which parameters of a blocking change the bits of SGEMM-cube, and by how much.

The cube adds the products of a k group, bk * N_fused products long, in L0C; between groups the vector unit adds L0C to C. So
the length of that chain is the only parameter of a blocking that can change a bit. Options of the algorithm can, too: the order
inside a cube step, seeding L0C again, and where the small terms are added. Runs of `ascend.cube_gemm` over the feasible blocks
show both.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import ascend
from mpgemm.exact.errors import ErrorMeter
from mpgemm.inputs.matrices import generate

#: Labels and options of `ascend.cube_gemm`; each variant changes one option.
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
    """`BlockingBits` holds the findings of the experiment."""

    shape: tuple[int, int, int]  #: Shape (m, k, n) of the product.
    blocks: int  #: Number of feasible blocks that were run.
    chains: dict[int, int]  #: Number of blocks by length of their k group (at most k).
    results: int  #: Number of results with different bits.
    mixed: int  #: Number of chain lengths whose blocks give different bits; 0 says that no other parameter matters.
    #: Relative Frobenius error (eq. 13) by chain length and variant, with one block for each length.
    errors: dict[int, dict[str, float]]


def chain_length(block: ascend.Blocking, chip: ascend.Chip, k: int) -> int:
    """Return the number of products that one chain in L0C adds, min(bk * N_fused, k)."""
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
    """Run every feasible block on one pair, uniform in [-1, 1], and the variants at `lengths` of the chain lengths."""
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
