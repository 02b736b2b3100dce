"""States the sums of a method as data: the chain of each product, the chains that restart, and their joins.

The simulation (:func:`mpgemm.recovery.arithmetic.combine`) and the kernels (:mod:`mpgemm.kernels.forms`) read the same record.
"""

from dataclasses import dataclass
from itertools import groupby

from mpgemm.recovery.method import RecoveryMethod


@dataclass(frozen=True)
class ChainSums:
    """`ChainSums` describes an accumulation that computes whole chains and joins them outside.

    Attributes
    ----------
    chains : tuple of int
        Chain of each product, in the order of the row.
    restarts : tuple of bool
        Whether each chain restarts from zero, with its partial sums added outside.
    levels : tuple of tuple of int
        Chains that are added together, smallest level first.
    steps : tuple of int
        Step of each level: after the level is added, the sum is multiplied by 2^(-s step), with the row's scale exponent s.
    seeds : bool
        Whether the one chain (or the sum outside) starts from C; otherwise C is added last.
    """

    chains: tuple[int, ...]
    restarts: tuple[bool, ...]
    levels: tuple[tuple[int, ...], ...]
    steps: tuple[int, ...]
    seeds: bool


def sums_of(row: RecoveryMethod) -> ChainSums | None:
    """Return the sums of a row, None for the accumulations staged, nested, elementwise and bands."""
    if row.accumulation in ("core", "blocks"):
        return ChainSums((0,) * len(row.products), (row.accumulation == "blocks",), ((0,),), (0,), True)
    if row.accumulation not in ("outside", "k_step", "termwise"):
        return None
    weights, counts = zip(*((level, len(list(pairs))) for level, pairs in groupby(row.products, key=sum)), strict=True)
    if row.accumulation == "termwise":
        chains = tuple(range(len(row.products)))
    else:
        chains = tuple(number for number, count in enumerate(counts) for _ in range(count))
    starts = [sum(counts[:number]) for number in range(len(counts) + 1)]
    levels = tuple(tuple(dict.fromkeys(chains[first:last])) for first, last in zip(starts, starts[1:], strict=False))
    restarts = [False] * (chains[-1] + 1)
    restarts[-1] = row.accumulation == "k_step" and weights[-1] == 0
    steps = tuple(x - y for x, y in zip(weights, (*weights[1:], 0), strict=True))
    return ChainSums(chains, tuple(restarts), levels, steps, False)
