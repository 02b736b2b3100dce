"""Bounds the error of a chain whose order is known, from the running sums of its operands.

The bounds of :mod:`mpgemm.bounds.bounds` use only the sizes |A||B|. In a known order the running sum is known up to the error
so far, so ``reach = |exact sum so far| + error so far`` replaces S in each step; for data of both signs it is smaller by a
factor of about the square root of k. One step of a unit with alpha and beta adds an error of at most ``alpha (reach + sizes
of its products) + beta``; a step that aligns its addends adds at most

    (products + sums) 2^E + rounding 2^floor(log2 reach behind) + beta,     2^E <= max(2^floor(log2 reach), largest product).
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from mpgemm.bounds.bounds import MARGIN, chain_error, growth, step_error, steps_of
from mpgemm.bounds.sizes import multiply
from tensorcore_models.aspects.errors import OperandFacts, StepError
from tensorcore_models.engines.engine import Engine

#: Largest number of groups of steps; the steps of a group are bounded together.
GROUPS = 192


#: Exponent bits of a float64; alone they encode the largest power of two that is not above the number's magnitude.
_EXPONENT = np.int64(0x7FF << 52)


class ChainSum(NamedTuple):
    """`ChainSum` holds a chain's sum, a bound of its error, and the sum of |a b|, each of shape (m, n).

    The sum is computed in FP64; `error` includes its rounding errors.
    """

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
    """Return the sum and error of a chain over pieces of k, in their order, on finite values that the engine's formats hold.

    addend: |C| where c may be in the chain.
    """
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
    """Yield slices of k that consist of whole steps."""
    count = sum(-(-len(piece) // step) for piece in pieces)
    length = step * max(1, -(-count // most))
    for piece in pieces:
        for start in range(0, len(piece), length):
            part = piece[start : start + length]
            yield slice(part.start, part.stop, part.step)


def _lost(step: StepError, steps: int, reach, sizes, behind, operands) -> np.ndarray:
    """Return a bound of the error of a group of steps; `behind` is the reach after the group without its own error."""
    if step.alignment is None or steps > 1:
        factor, absolute = growth(step.relative, steps), chain_error(step, steps)[1]
        return factor * (reach + sizes) + step.products * (1 + factor) * sizes + absolute
    parts = step.alignment
    x, y = (np.abs(v).max(axis, keepdims=True) for v, axis in zip(operands, (1, 0), strict=True))
    largest = np.maximum(_power_below(reach), _power_below(x) * _power_below(y))
    lost = (parts.products + parts.sums) * largest + step.absolute
    return lost + parts.rounding * _power_below((behind + lost) * (1 + 2.0**-45))


def _power_below(x: np.ndarray) -> np.ndarray:
    """Return the largest power of two that is not above x, and 0 for 0."""
    powers = (x.view(np.int64) & _EXPONENT).view(np.float64)
    below = powers == 0  # 0, or subnormal numbers of FP64
    if below.any() and x[below].any():
        fraction, exponent = np.frexp(x)
        return np.where(np.isfinite(x), np.ldexp(np.where(fraction > 0, 0.5, 0.0), exponent), x)
    return powers
