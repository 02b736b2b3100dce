"""A-priori error bounds of any accumulator, from its specification.

Notation: an engine computes ``d ~ c + sum_k a_k b_k`` in T steps of N products; ``S = |c| + sum_k |a_k b_k|`` for each element;
P is the precision of the result, F the fraction bits kept at the alignment, ``E`` the alignment exponent of a step.

Derivation for a fused dot-add. One step adds at most N + 1 addends, each cut to a multiple of 2^(E-F): an error below N + 1
units (half as much where the alignment rounds to nearest). An addend's exponent is at most floor(log2) of its own size
(products are not normalised, which only lowers it), so 2^E <= S', the largest size that sum and addends can have; except that
subnormal operands carry their format's smallest normal exponent, zeros what their edge rule gives them: these give a floor
2^E0 that depends on the formats and the exponents of the data only (:mod:`mpgemm.bounds.operand_facts`). The result is
rounded once: below 2^(1-P) S' (2^-P S' to nearest), or below one unit of the subnormal range. So a step adds at most ``alpha
S' + beta`` with

    alpha = (addends) 2^-F + (roundings) u,     beta = (addends) 2^(E0-F) + (roundings) eta + what flushing takes,

and with S' <= S + (errors so far), T steps give ``(1 + alpha)^T - 1`` times ``S + beta / alpha``. Each accumulator family is
one row of :func:`step_error`. The bound is infinite where a sum could overflow. Everything is evaluated in FP64 with a relative
margin (:data:`MARGIN`) for its own rounding errors.

Block scales. The engine then computes ``c + sum_k (s_k a_k)(t_k b_k)``; S is the one of the scaled operands. A fused dot-add
multiplies the scales into each product exactly and adds their exponents, so the derivation above holds with "operand and its
scale" for "operand"; under the edge rule scaled_zero="keeps_scale" a zero below a large scale lifts the alignment. A
GroupDotFusedSum adds one addend for each exact group sum, N / group + 1 with c, and its exponent is that of the group's two
scales, whatever the sum: 2^E is at most `lift` times the group's part of S, with `lift` the inverse of the smallest sum of
|a b| in a group that is not zero (at most 4 for e2m1, where a product is at least 1/4); groups of zeros go into E0.
"""

import math
from dataclasses import dataclass

import numpy as np

from mpgemm.bounds.operand_facts import (
    OperandFacts,
    accumulator_of,
    apply_scales,
    block_scales,
    facts_of,
    facts_of_formats,
    groups_of_formats,
    scaled_values,
)
from tensorcore_models import accumulators as acc
from tensorcore_models.engines.engine import Engine
from tensorcore_models.formats import Format, IntegerFormat, get_float_format
from tensorcore_models.machine.fp_state import default_fp_state

#: Covers the rounding errors of FP64 sums of non-negative numbers (k up to 2^40) and of the formulas here.
MARGIN = 1 + 2.0**-10


@dataclass(frozen=True)
class StepError:
    """Error of one step of a core.

    Attributes
    ----------
    relative : float
        alpha: error over the largest size of the step's sum.
    absolute : float
        beta: what underflow, floors of the alignment and flushing add.
    terms : int
        Products that a step takes.
    derivation : tuple of str
        Where the two come from, for a reader.
    """

    relative: float
    absolute: float
    terms: int
    derivation: tuple[str, ...]


def _unit(rounding: str, nearest: float, directed: float) -> float:
    return nearest if rounding in ("rne", "rna") else directed


def _output(spec, fmt: Format, roundings: int = 1, rounding: str | None = None) -> tuple[float, float, str]:
    """(relative, absolute, text) of one or several roundings to the result format, one after the other."""
    rounding = str(rounding or getattr(spec, "output_rounding", "rne"))
    fraction = fmt.fraction_bits
    limited = getattr(spec, "output_fraction_bits", None)
    if limited is not None:
        fraction = min(fraction, limited)
    relative = math.expm1(roundings * math.log1p(_unit(rounding, 2.0 ** -(fraction + 1), 2.0**-fraction)))
    absolute = roundings * math.ldexp(1.0, fmt.emin - fraction)
    return (
        relative,
        absolute,
        f"{roundings} rounding(s) {rounding} to {fraction} fraction bits: {relative:.3g} of the sum",
    )


def _both(first: float, second: float) -> float:
    """Relative errors one after the other: (1 + x)(1 + y) - 1."""
    return first + second + first * second


def _floor_exponent(spec, engine: Engine, lifted: int | None) -> int:
    """E0: how high zeros and subnormals can lift the alignment exponent; `lifted`: those among the products."""
    exponents = [fmt.emin for fmt in engine.formats[2:]]  # a subnormal c or intermediate result
    if spec.zero_c == "minus126":
        exponents.append(-126)
    if spec.exponent_floor is not None:
        exponents.append(spec.exponent_floor)
    if lifted is not None:
        exponents.append(lifted)
    return max(exponents)


#: Algorithms that take block scales.
SCALED = acc.FusedDotAdd | acc.ParametricDotAdd | acc.GroupDotFusedSum


def step_error(engine: Engine, facts: OperandFacts | None = None) -> StepError:
    """Error of one step of an engine's core.

    Parameters
    ----------
    engine : Engine
        With an accumulator of a known family.
    facts : OperandFacts, optional
        Of the operands (:func:`mpgemm.bounds.operand_facts.facts_of`); by default whatever the formats hold.

    Returns
    -------
    StepError

    Raises
    ------
    ValueError
        If nothing is known of the core (a callable, arithmetic that is not public), or it takes block scales in a way that is
        not modelled.
    """
    spec = accumulator_of(engine)
    if spec is None:
        raise ValueError(f"{engine.label}: no bound without a known accumulator")
    if isinstance(spec, acc.IntegerDotAdd):
        return StepError(
            0.0, 0.0, spec.terms, ("integer products and sums are exact (the bound is infinite if int32 overflows)",)
        )
    if engine.scale_format is not None and not isinstance(spec, SCALED):
        raise ValueError(f"{engine.label}: no bound for a {type(spec).__name__} with block scales")
    facts = facts or facts_of_formats(engine)
    if isinstance(spec, acc.GroupDotFusedSum):
        return _grouped(spec, engine, facts)
    if isinstance(spec, acc.InterleavedDotAdd):
        via = get_float_format(spec.via_format)  # subnormal operands have the exponents of this format
        floor = max(_floor_exponent(spec.dot, engine, facts.floor), via.emin + max(facts.largest))
        relative, absolute, text = _fused(spec.dot, engine, floor)
        last, tiny, last_text = _output(spec, engine.formats[3], 1, spec.final_rounding)
        total = _both(math.expm1(spec.groups * math.log1p(relative)), last)
        texts = (f"{spec.groups} fused steps, each: {text}", f"addition of c: {last_text}")
        return StepError(total, spec.groups * absolute * (1 + relative) + tiny, spec.terms_per_step, texts)
    if isinstance(spec, acc.FusedDotAdd | acc.ParametricDotAdd | acc.FusedDotRoundDownAdd):
        floor = _floor_exponent(spec, engine, facts.floor)
        if isinstance(spec, acc.FusedDotRoundDownAdd):
            relative, absolute, text = _round_down(spec, engine, floor)
        else:
            relative, absolute, text = _fused(spec, engine, floor, facts.floor)
        return StepError(relative, absolute, spec.terms_per_step, (text, *_scales_text(engine)))
    return _ieee(spec, engine, facts.largest)


def _scales_text(engine: Engine) -> tuple[str, ...]:
    scales = block_scales(engine)
    if scales is None:
        return ()
    return (f"{scales.format.name} scales of {scales.size} products are multiplied exactly; |A| and |B| include them",)


def _grouped(spec: acc.GroupDotFusedSum, engine: Engine, facts: OperandFacts) -> StepError:
    """Exact group sums, each cut at its scales' exponents; one rounding.

    Raises
    ------
    ValueError
        If a group has more than one scale: the unit takes the first, so the result is none of the scaled product.
    """
    scales = block_scales(engine)
    if scales is not None and scales.size % spec.group:
        raise ValueError(f"{engine.label}: a scale for {scales.size} products cuts through groups of {spec.group}")
    groups = facts.groups or groups_of_formats(engine)
    count = spec.terms // spec.group
    cut = (count + 1) * 2.0**-spec.fraction_bits
    floor = _floor_exponent(spec, engine, groups.floor)
    relative, absolute, rounding_text = _output(spec, engine.formats[3])
    text = (
        f"{count} exact group sums + 1 addend cut at F = {spec.fraction_bits} below the exponents of their scales, at most "
        f"{groups.lift:.3g} times a group's |A||B|: {cut * groups.lift:.3g} of the largest; {rounding_text}"
    )
    total = _both(cut * groups.lift, relative)
    texts = (text, *_scales_text(engine))
    return StepError(total, cut * 2.0 ** min(floor, 1000) + absolute, spec.terms, texts)


def _fused(
    spec: acc.FusedDotAdd | acc.ParametricDotAdd, engine: Engine, floor: int, lifted: int | None = None
) -> tuple[float, float, str]:
    """alpha, beta and their text: addends cut at one alignment, one rounding. `lifted`: exponent of small products."""
    result = engine.formats[3]
    quantum = 0.0 if spec.fraction_bits is None else 2.0**-spec.fraction_bits
    cut = (spec.terms + 1) * _unit(spec.alignment_rounding, 0.5, 1.0) * quantum
    text = (
        f"{spec.terms} + 1 addends cut at F = {spec.fraction_bits}: {cut:.3g} of the largest"
        if quantum
        else "exact sum"
    )
    more, late, flushed = 0.0, (0.0, 0.0, ""), 0.0
    if isinstance(spec, acc.ParametricDotAdd):
        more, late, flushed, extra = _parametric(spec, engine, quantum, lifted)
        text += extra
    relative, absolute, rounding_text = _output(spec, result)
    total = _both(_both(cut + more, relative), late[0])
    return (
        total,
        (cut + more) * 2.0 ** min(floor, 1000) + absolute + late[1] + flushed,
        f"{text}; {rounding_text}{late[2]}",
    )


def _round_down(spec: acc.FusedDotRoundDownAdd, engine: Engine, floor: int) -> tuple[float, float, str]:
    """CDNA3: products cut, then dot and c rounded down on their common exponent, one rounding."""
    parity = spec.parity_groups > 1
    cut = (spec.terms + (2 if parity else 0)) * 2.0**-spec.fraction_bits
    cut += 2.0**-spec.dot_fraction_bits + 2.0**-spec.c_fraction_bits
    relative, absolute, text = _output(spec, engine.formats[3])
    if spec.sum_fraction_bits is not None:
        relative = _both(2.0**-spec.sum_fraction_bits, relative)
    joined = ", even and odd sums joined" if parity else ""
    kept = f"{spec.terms} products at F = {spec.fraction_bits}{joined}"
    kept += f"; dot at {spec.dot_fraction_bits}, c at {spec.c_fraction_bits}"
    return _both(cut, relative), cut * 2.0 ** min(floor, 1000) + absolute, f"{kept}: {cut:.3g} of the largest; {text}"


def _flushed_addend(engine: Engine) -> float:
    """What an addend or running result that is flushed is below: c may have a narrower range than the result."""
    return max(engine.formats[2].min_normal, engine.formats[3].min_normal)


def _parametric(spec: acc.ParametricDotAdd, engine: Engine, quantum: float, lifted: int | None):
    """What the parameters beyond those of a fused dot-add add: (cut, (late rounding), flushed, text)."""
    result = engine.formats[3]
    if spec.integer_bits is not None and (spec.terms + 1) * 4 > 2**spec.integer_bits:
        return math.inf, (0.0, 0.0, ""), math.inf, f"; {spec.integer_bits} integer bits can wrap: no bound"
    units, text, flushed, late = 0.0, "", 0.0, (0.0, 0.0, "")
    if spec.normalise_each_add:
        units, text = spec.terms + 1, "; each of the additions normalised and cut"
    elif spec.alignment == "pairwise":
        units, text = 2 * (spec.terms + 1), "; cut again at every node of the tree"
    elif spec.alignment == "odd_even":
        units, text = 3, "; even and odd sums and c cut again"
    if spec.c_position == "late":
        relative, absolute, late_text = _output(spec, result, 1, spec.late_rounding)
        late = relative, absolute, f"; c late, {late_text}"
    if spec.flush_inputs:
        factors = 2 if engine.scale_format is None else 4  # each below 2^(1 + its exponent)
        products = 0.0 if lifted is None else spec.terms * 2.0 ** min(lifted + factors, 1000)
        flushed += products + _flushed_addend(engine)
        text += "; subnormal operands flushed"
    if spec.flush_outputs:
        flushed += 2 * result.min_normal
        text += "; subnormal results flushed"
    return units * quantum, late, flushed, text


def _ieee(spec, engine: Engine, largest: tuple[int, int]) -> StepError:
    """Cores made of IEEE operations."""
    a, b, _, result = engine.formats
    operand_flush = math.ldexp(a.min_normal, largest[1] + 1) + math.ldexp(b.min_normal, largest[0] + 1)
    if isinstance(spec, acc.SequentialFMA):
        terms = spec.terms_per_step
        relative, absolute, text = _output(spec, result, terms, spec.rounding)
        flush = (
            terms * (operand_flush + _flushed_addend(engine)) * spec.flush_inputs
            + terms * result.min_normal * spec.flush_outputs
        )
        return StepError(relative, absolute + flush, terms, (f"fused multiply-adds, {text}",))
    if isinstance(spec, acc.LanedFMA):
        count = spec.terms + spec.lanes + 1
        relative, absolute, text = _output(spec, result, count, "rne")
        flush = spec.terms * operand_flush * spec.flush_inputs + count * result.min_normal + _flushed_addend(engine)
        return StepError(relative, absolute + flush, spec.terms, (f"{spec.lanes} lanes, {text}; flushed to zero",))
    if isinstance(spec, acc.GroupPairwiseSum):
        count = 2 + int(math.log2(spec.group))  # product, tree levels, addition to c: each a rounding of at most S'
        relative, absolute, text = _output(spec, result, count, "rne")
        flushed = 0.0
        if spec.flush_input != "none":
            lowest = (a.min_normal, b.min_normal) if spec.flush_input == "format" else (2.0**-126, 2.0**-126)
            flushed = (
                spec.group * sum(math.ldexp(x, e + 1) for x, e in zip(lowest, largest[::-1], strict=True)) + 2.0**-126
            )
        results = 2 * spec.group * result.min_normal if spec.flush_results else 2 * spec.group * result.min_subnormal
        return StepError(
            relative, absolute + flushed + results, spec.group, (f"products, tree and sum in FP32, {text}",)
        )
    if isinstance(spec, acc.PairRoundOddSum):
        relative, absolute, text = _output(spec, result, 3, "ro")
        return StepError(
            relative,
            absolute + 2 * operand_flush + 4 * result.min_normal + _flushed_addend(engine),
            2,
            (f"products, pair sum and sum, {text}; flushed",),
        )
    raise ValueError(f"{engine.label}: no bound is derived for {type(spec).__name__}")


# -- dot products --------------------------------------------------------------------------------------------------------
def steps_of(engine: Engine, k: int, terms: int) -> int:
    """Steps of a core that a chain over k products takes.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    k : int
        Length of the sum.
    terms : int
        Products of one step.
    """
    return -(-k // engine.k) * -(-engine.k // terms)


def overflow_from(engine: Engine) -> float:
    """The size of a sum, or of a product, from which a result may be infinite."""
    limit = engine.formats[3].max_finite
    overflow = getattr(accumulator_of(engine), "product_overflow_exponent", None)
    return limit if overflow is None else min(limit, 2.0**overflow * (1 - 2.0**-20))


def accumulation_bound(
    engine: Engine, sizes, steps: int, facts: OperandFacts | None = None, *, finite: bool = False
) -> np.ndarray:
    """Bound of |computed - exact| for a chain of `steps` core steps over operands that the formats hold exactly.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    sizes : array_like
        S for each element, or an upper bound of it.
    steps : int
        See :func:`steps_of`.
    facts : OperandFacts, optional
        See :func:`step_error`.
    finite : bool
        Whether the result is known to be finite, so that no sum overflowed.

    Returns
    -------
    ndarray of float64, shape of `sizes`
        Infinite where a sum may overflow, unless `finite`.

    Raises
    ------
    ValueError
        As :func:`step_error`.
    """
    error = step_error(engine, facts)
    sizes = np.asarray(sizes, np.float64) * MARGIN
    result = engine.formats[3]
    if isinstance(result, IntegerFormat):
        return np.where(sizes <= result.maximum, 0.0, np.inf)
    factor = growth(error.relative, steps)
    with np.errstate(over="ignore", invalid="ignore"):
        absolute = error.absolute * steps * (1 + factor) if steps else 0.0
        bound = np.where(sizes > 0, sizes * factor, 0.0) + absolute
        if not finite:
            bound = np.where((sizes + bound) * MARGIN < overflow_from(engine), bound, np.inf)
    return bound * MARGIN


def promoted_bound(
    engine: Engine, sizes, k: int, every: int, facts: OperandFacts | None = None, addend=0.0, *, finite: bool = False
) -> np.ndarray:
    """Bound of |computed - exact| where every `every` products the chain is added to an FP32 sum outside and starts anew.

    Each block is a chain from zero; as the blocks' sizes add up to S, so do their relative errors. Outside there is one
    rounding to nearest for each block.

    Parameters
    ----------
    engine : Engine
        With FP32 results.
    sizes : array_like
        |A||B| for each element, or an upper bound of it.
    k, every : int
    facts : OperandFacts, optional
        See :func:`step_error`.
    addend : array_like
        |C|, from which the sum outside starts.
    finite : bool
        Whether the result is known to be finite, so that no sum overflowed.

    Returns
    -------
    ndarray of float64, shape of `sizes`
        Infinite where a sum may overflow, unless `finite`.

    Raises
    ------
    ValueError
        As :func:`step_error`.
    """
    error = step_error(engine, facts)
    blocks, steps = -(-k // every), steps_of(engine, min(every, k), error.terms)
    inside = accumulation_bound(engine, sizes, steps, facts, finite=finite)
    factor = growth(error.relative, steps)
    with np.errstate(over="ignore", invalid="ignore"):
        inside = inside + max(blocks - 1, 0) * error.absolute * steps * (1 + factor) * MARGIN
        total = np.asarray(sizes, np.float64) * MARGIN + addend + inside
        bound = (inside + total * growth(2.0**-24, blocks) + blocks * 2.0**-149) * MARGIN
        return bound if finite else np.where((total + bound) * MARGIN < engine.formats[3].max_finite, bound, np.inf)


def growth(relative: float, steps: int) -> float:
    """(1 + alpha)^T - 1: what T steps with a relative error of alpha each come to.

    Parameters
    ----------
    relative : float
        alpha.
    steps : int
        T.
    """
    if not math.isfinite(relative):
        return math.inf if steps else 0.0
    exponent = steps * math.log1p(relative)
    return math.expm1(exponent) if exponent < 700 else math.inf


@default_fp_state
def gemm_bound(engine: Engine, a, b, c=None, *, scale_a=None, scale_b=None) -> np.ndarray:
    """Deterministic bound of ``|engine.gemm(a, b, c) - exact|`` for operands that the engine's formats hold.

    Parameters
    ----------
    engine : Engine
        The matrix engine.
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        Values.
    scale_a, scale_b : array_like, shapes (m, ceil(k/bs)) and (ceil(k/bs), n)
        For a block-scaled engine: scales as values, or as encodings where they are uint8. The exact product is then the one
        of the scaled operands.

    Returns
    -------
    ndarray of float64, shape (m, n)
        Infinite where a sum may overflow or an operand is not finite.

    Raises
    ------
    ValueError
        If no bound is known for the core, shapes do not fit, or scales are missing or not wanted.
    """
    a, b, scale_a, scale_b = scaled_values(engine, a, b, scale_a, scale_b)
    facts = facts_of(engine, a, b, scale_a, scale_b)
    steps = steps_of(engine, a.shape[1], step_error(engine, facts).terms)
    a, b = apply_scales(engine, a, b, scale_a, scale_b)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.abs(a) @ np.abs(b) + (0 if c is None else np.abs(np.asarray(c).astype(np.float64)))
    bound = accumulation_bound(engine, np.where(np.isfinite(sizes), sizes, 0.0), steps, facts)
    return np.where(np.isfinite(sizes), bound, np.inf)
