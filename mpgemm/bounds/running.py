"""Certified errors of a chain whose order is known, from the sums that its operands really have.

The bounds of :mod:`mpgemm.bounds.bounds` know the sizes |A||B| alone. In a known order the running sum is known up to the error
that was made so far: at each step ``reach = |exact sum so far| + error so far`` replaces S, which on data of both signs is
smaller by about the square root of k. One step of a unit with alpha, beta adds at most ``alpha (reach + sizes of its
products) + beta``; one that aligns its addends at most

    (products + sums) 2^E + rounding 2^floor(log2 reach behind) + beta,     2^E <= max(2^floor(log2 reach), largest product).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mpgemm.bounds.bounds import MARGIN, chain_error, growth, step_error, steps_of
from mpgemm.bounds.sizes import multiply
from tensorcore_models.aspects.errors import OperandFacts, StepError
from tensorcore_models.engines.engine import Engine

#: Groups of steps at most that are looked at one by one; the steps of a group are taken together.
GROUPS = 192


#: The bits of a float64 that hold its exponent: alone they are the largest power of two that is not above its size.
_EXPONENT = np.int64(0x7FF << 52)


class ChainSum(NamedTuple):
    """One chain: its exact sum up to FP64's errors, which `error` includes, a bound of its error, and the sum of its products'
    sizes; shape (m, n)."""

    sums: np.ndarray
    error: np.ndarray
    sizes: np.ndarray


def chain_sum(
    engine: Engine,
    a: np.ndarray,
    b: np.ndarray,
    pieces: Sequence[range],
    facts: OperandFacts | None,
    addend=0.0,
    groups: int = GROUPS,
) -> ChainSum:
    """Return a chain over pieces of k, in their order, on finite values as the engine takes them; `addend`: |C| where c may be
    in the chain."""
    step = step_error(engine, facts)
    shape = (a.shape[0], b.shape[1])
    sums, error, slack, total = (np.zeros(shape) for _ in range(4))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for taken in _groups(pieces, engine.k, groups):
            x, y = a[:, taken], b[taken]
            steps = steps_of(engine, x.shape[1], step.terms)
            sizes = multiply(np.abs(x), np.abs(y))
            total += sizes
            slack += (a.shape[1] + 2) * 2.0**-51 * sizes
            reach = np.abs(sums) + addend + error + slack
            sums = sums + multiply(x, y)
            error = (error + _lost(step, steps, reach, sizes, np.abs(sums) + addend + error + slack, (x, y))) * (
                1 + 2.0**-45
            )
    return ChainSum(sums, (error + slack) * MARGIN, total)


def _groups(pieces: Sequence[range], step: int, most: int) -> Iterator[slice]:
    """Yield slices of k of whole steps."""
    count = sum(-(-len(piece) // step) for piece in pieces)
    length = step * max(1, -(-count // most))
    for piece in pieces:
        for start in range(0, len(piece), length):
            part = piece[start : start + length]
            yield slice(part.start, part.stop, part.step)


def _lost(step: StepError, steps: int, reach, sizes, behind, operands) -> np.ndarray:
    """Return the bound the loss of a group of steps; `behind`: the reach after it but for the loss of its own."""
    if step.alignment is None or steps > 1:
        factor, absolute = growth(step.relative, steps), chain_error(step, steps)[1]
        return factor * (reach + sizes) + step.products * (1 + factor) * sizes + absolute
    parts = step.alignment
    x, y = (np.abs(v).max(axis, keepdims=True) for v, axis in zip(operands, (1, 0), strict=True))
    largest = np.maximum(_power_below(reach), _power_below(x) * _power_below(y))
    lost = (parts.products + parts.sums) * largest + step.absolute
    return lost + parts.rounding * _power_below((behind + lost) * (1 + 2.0**-45))


def _power_below(x: np.ndarray) -> np.ndarray:
    """Return the largest power of two that is not above; 0 for 0."""
    powers = (x.view(np.int64) & _EXPONENT).view(np.float64)
    below = powers == 0  # 0, or subnormal numbers of FP64
    if below.any() and x[below].any():
        fraction, exponent = np.frexp(x)
        return np.where(np.isfinite(x), np.ldexp(np.where(fraction > 0, 0.5, 0.0), exponent), x)
    return powers
