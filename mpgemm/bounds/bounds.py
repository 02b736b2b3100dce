"""Derives a-priori error bounds of any accumulator from its specification.

Notation: an engine computes ``d ~ c + sum_k a_k b_k`` in T steps of N products; ``S = |c| + sum_k |a_k b_k|`` for each element;
P is the precision of the result, F the fraction bits kept at the alignment, ``E`` the alignment exponent of a step. S is called
the *size* of an element in these modules.

Derivation for a fused dot-add. One step adds at most N + 1 addends, each truncated to a multiple of 2^(E-F), so the error is
below N + 1 such units, or half as much where the alignment rounds to nearest. An addend's exponent is at most floor(log2) of
its magnitude, because products are not normalised, which only lowers it. So 2^E <= S', the largest magnitude that the sum and
its addends can have. There are two exceptions: subnormal operands carry their format's smallest normal exponent, and zeros
carry the exponent of their edge rule. They give a floor 2^E0 for 2^E, which depends only on the formats and the exponents of
the data (:mod:`mpgemm.bounds.operand_facts`). The result is rounded once, with an error below 2^(1-P) S' (2^-P S' to nearest),
or below one unit of the subnormal range. So a step adds an error of at most ``alpha S' + beta`` with

    alpha = (addends) 2^-F + (roundings) u,     beta = (addends) 2^(E0-F) + (roundings) eta + (loss by flushing),

and with S' <= S + (errors so far), T steps give ``(1 + alpha)^T - 1`` times ``S + beta / alpha``. For any other accumulator,
alpha and beta are derived from its pass (:mod:`tensorcore_models.aspects.derived_errors`) or stated by its family
(`step_error`). The bound is infinite where a sum could overflow. All formulas are evaluated in FP64 with a relative margin
(:data:`MARGIN`) for their own rounding errors.

Units that truncate every addend and result have a smaller bound. No sum is ever larger than the magnitudes that were added,
so errors do not compound; and the truncated parts of products are missing from the sums whose magnitude sets the alignment.
Let M be the largest power of two that an addend or a sum reaches, and let truncation take at most p M from products and q M
from sums in all T steps. The loss L of products is at most ``p M``, and ``M <= S - L``, because a power of two that an addend
reaches is at most the sum of all that was kept. Hence ``L <= p S / (1 + p)`` and

    error <= (p + q) / (1 + p) S + T beta      (q <= 1),

which is 0.35 S instead of 0.70 S for 4,096 FP8 products on Hopper, whose adder keeps 13 bits.

Block scales. The engine then computes ``c + sum_k (s_k a_k)(t_k b_k)``, and S is that of the scaled operands. A fused dot-add
multiplies the scales into each product exactly and adds their exponents, so the derivation above holds with "operand times
its scale" for "operand"; under the edge rule scaled_zero="keeps_scale", a zero with a large scale raises the alignment
exponent. A GroupDotFusedSum adds one addend for each exact group sum, N / group + 1 with c. The exponent of an addend is that
of the group's two scales, whatever the sum is, so 2^E is at most `lift` times the group's part of S. `lift` is the inverse of
the smallest nonzero sum of |a b| in a group (at most 4 for e2m1, where a product is at least 1/4); groups of zeros go into E0.
"""

import math

import numpy as np

from mpgemm.bounds.operand_facts import accumulator_of, apply_scales, facts_of, facts_of_formats, scaled_values
from tensorcore_models.aspects.errors import OperandFacts, StepError, compounded
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import IntegerFormat
from tensorcore_models.machine.fp_state import default_fp_state

#: Factor that covers the rounding errors of FP64 sums of non-negative numbers (k up to 2^40) and of the formulas here.
MARGIN = 1 + 2.0**-10


def step_error(engine: Engine, facts: OperandFacts | None = None) -> StepError:
    """Return the error of one step of an engine for operands with these facts, by default for all values of its formats.

    Raises ValueError if no bound is known.
    """
    spec = accumulator_of(engine)
    if spec is None:
        raise ValueError(
            f"{engine.label} has no known accumulator, so no bound is known; take an engine with a modelled accumulator"
        )
    if engine.scale_format is not None and not spec.takes_scales:
        raise ValueError(
            f"{engine.label}: no bound is known for a {type(spec).__name__} with block scales; leave the scales out"
        )
    if facts is None and not spec.takes_integers:
        facts = facts_of_formats(engine)
    return spec.step_error(engine, facts)


# -- dot products --------------------------------------------------------------------------------------------------------
def steps_of(engine: Engine, k: int, terms: int) -> int:
    """Return the number of steps, of `terms` products each, that a chain over k products takes."""
    return -(-k // engine.k) * -(-engine.k // terms)


def overflow_from(engine: Engine) -> float:
    """Return the magnitude of a sum or product from which a result may be infinite."""
    result = engine.formats[3]
    if isinstance(result, IntegerFormat):
        return float(result.maximum) + 1
    limit = result.max_finite
    overflow = getattr(accumulator_of(engine), "product_overflow_exponent", None)
    return limit if overflow is None else min(limit, 2.0**overflow * (1 - 2.0**-20))


def accumulation_bound(engine: Engine, sizes, steps: int, facts: OperandFacts | None = None) -> np.ndarray:
    """Return the bound of |computed - exact| of a chain of an engine's steps, infinite where a sum may overflow.

    sizes: S, or upper bounds of it, for operands that the formats hold.
    """
    error = step_error(engine, facts)
    sizes = np.asarray(sizes, np.float64) * MARGIN
    result = engine.formats[3]
    if isinstance(result, IntegerFormat):
        return np.where(sizes <= result.maximum, sizes * error.products, np.inf)
    factor, absolute = chain_error(error, steps)
    with np.errstate(over="ignore", invalid="ignore"):
        bound = sizes * factor + absolute if math.isfinite(factor) else np.where(sizes > 0, np.inf, absolute)
        # If the largest size cannot overflow, no element can; otherwise each element is tested.
        limit = overflow_from(engine)
        if (float(np.max(sizes, initial=0.0)) * (1 + factor) + absolute) * MARGIN**2 < limit:
            return bound * MARGIN
        return np.where((sizes + bound) * MARGIN < limit, bound, np.inf) * MARGIN


def chain_error(error: StepError, steps: int) -> tuple[float, float]:
    """Return the error of a chain of `steps` steps as (factor of S, absolute term)."""
    if not steps:
        return 0.0, 0.0
    factor = grown(error, steps)
    absolute = error.absolute * steps * (1 + factor)
    parts = error.alignment
    if parts is None or not parts.towards_zero:
        return factor, absolute
    products, sums = parts.products * steps, (parts.sums + parts.rounding) * steps
    kept = (products + sums) / (1 + products) if sums <= 1 else math.inf
    return (kept, error.absolute * steps) if kept < factor else (factor, absolute)


def grown(error: StepError, steps: int) -> float:
    """Return the relative error of `steps` steps; errors of sums compound, errors of a step's own products do not."""
    return compounded(growth(error.relative, steps), error.products)


def growth(relative: float, steps: int) -> float:
    """Return (1 + alpha)^T - 1, the compounded error of T = `steps` steps with the `relative` error alpha."""
    if not math.isfinite(relative):
        return math.inf if steps else 0.0
    exponent = steps * math.log1p(relative)
    return math.expm1(exponent) if exponent < 700 else math.inf


@default_fp_state
def gemm_bound(engine: Engine, a, b, c=None, *, scale_a=None, scale_b=None) -> np.ndarray:
    """Return the deterministic bound of ``|engine.gemm(a, b, c) - exact|`` for operands that the engine's formats hold.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        Values of the operands.
    scale_a, scale_b : array_like, shapes (m, ceil(k/s)) and (ceil(k/s), n)
        Scales of a block-scaled engine, as values or as uint8 encodings; s is the number of elements that share a scale. The
        exact product is then that of the scaled operands.

    Returns
    -------
    ndarray of float64, shape (m, n)
        The bound, infinite where a sum may overflow or an operand is not finite.

    Raises
    ------
    ValueError
        If no bound is known for the engine, shapes do not fit, scales are missing, or the engine has no block scales but
        scales were given.
    """
    a, b, scale_a, scale_b = scaled_values(engine, a, b, scale_a, scale_b)
    facts = facts_of(engine, a, b, scale_a, scale_b)
    steps = steps_of(engine, a.shape[1], step_error(engine, facts).terms)
    a, b = apply_scales(engine, a, b, scale_a, scale_b)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(a) @ np.abs(b) + (0 if c is None else np.abs(np.asarray(c).astype(np.float64)))
    bound = accumulation_bound(engine, np.where(np.isfinite(sizes), sizes, 0.0), steps, facts)
    return np.where(np.isfinite(sizes), bound, np.inf)
