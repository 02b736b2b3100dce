"""This module computes the error that a schedule's order of summation causes: measured on data, sampled or bounded.

Only the ranges of k, the order of the sums and the operands' format affect the bits (:attr:`TileSchedule.sums`), so the
error of a large product is measured on a few of its elements: a sample of 16 x 16 with all of k.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Literal, Protocol

import numpy as np

from ascend.numeric.fp16_products import CubeArithmetic
from ascend.tile_schedule import TileSchedule

Distribution = Literal["normal", "uniform", "positive"]
#: Distributions with their samplers: standard normal, uniform in [-1, 1], uniform in [0, 1].
DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape, np.float32),
    "uniform": lambda rng, shape: 2 * rng.random(shape, np.float32) - 1,
    "positive": lambda rng, shape: rng.random(shape, np.float32),
}
#: Largest numbers of rows and columns of a sample, and of products in it.
SAMPLE_SIDE = 16
SAMPLE_PRODUCTS = 2**20
#: Unit roundoff of each operand format: half a unit in the last place of 1.
UNIT_ROUNDOFF = {"fp16": 2.0**-11, "bf16": 2.0**-8, "hf32": 2.0**-12, "fp32": 2.0**-24, "int8": 0.0}


def relative_error(product: np.ndarray, exact: np.ndarray) -> float:
    """Return the relative Frobenius error (eq. 13 of SGEMM-cube), or the absolute one if the exact product is 0."""
    norm = float(np.linalg.norm(exact))
    difference = float(np.linalg.norm(np.asarray(product, float) - exact))
    return difference / norm if norm else difference


class ErrorOf(Protocol):
    """`ErrorOf` is a function that returns the error of a schedule; keywords are options of :func:`ascend.cube_gemm`."""

    def __call__(self, schedule: TileSchedule, **options: Any) -> float: ...


def data_error(a: Any, b: Any) -> ErrorOf:
    """Return a function for the error (eq. 13) of a schedule's product of `a` and `b` against FP64.

    The error is computed once for each arithmetic.
    """
    exact = np.asarray(a, float) @ np.asarray(b, float)
    return _once(lambda schedule: (schedule, a, b, exact))


def _once(taken: Callable[[TileSchedule], tuple[TileSchedule, Any, Any, np.ndarray]]) -> ErrorOf:
    """Return a function for the error of the (schedule, A, B, exact product) that `taken` gives.

    The error is computed once for each arithmetic.
    """
    known: dict[tuple, float] = {}

    def error(schedule: TileSchedule, **options: Any) -> float:
        key = (schedule.sums, *sorted(options.items()))
        if key not in known:
            computed, a, b, exact = taken(schedule)
            known[key] = relative_error(computed.product(a, b, arithmetic=CubeArithmetic(**options)), exact)
        return known[key]

    return error


def sampled_error(distribution: Distribution = "normal", seed: int = 0) -> ErrorOf:
    """Return a function for the error (eq. 13) of a schedule on a sample of a random product, computed once per arithmetic.

    int8 operands are integers from -127 to 127 in every distribution. Raises ValueError if the distribution is unknown.
    """
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"distribution must be one of {', '.join(DISTRIBUTIONS)}, got {distribution!r}")
    draw = cache(partial(_draw, distribution, seed))

    def taken(schedule: TileSchedule) -> tuple[TileSchedule, Any, Any, np.ndarray]:
        side = max(min(SAMPLE_SIDE, int((SAMPLE_PRODUCTS / max(schedule.k, 1)) ** 0.5)), 2)
        sample = schedule.sampled(side)
        return sample, *draw(sample.m, sample.k, sample.n, sample.operand == "int8")

    return _once(taken)


def _draw(
    distribution: Distribution, seed: int, m: int, k: int, n: int, whole: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A, B and their FP64 product."""
    rng = np.random.default_rng(seed)
    if whole:
        a, b = (rng.integers(-127, 128, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    else:
        a, b = (DISTRIBUTIONS[distribution](rng, shape) for shape in ((m, k), (k, n)))
    return a, b, a.astype(float) @ b.astype(float)


def error_bound(schedule: TileSchedule) -> float:
    """Return a bound on |computed - exact| of each element over (|A| |B|), for data in the formats' normal ranges.

    Rounding the operands adds 2 u + u^2 with one word, u being the unit roundoff of the operand (0 for int8 and FP32).
    With two FP16 words x = h + l / 2^s (1 + d), |d| <= 2^-22, it adds 2 * 2^-22, and 2^-22 for the term l l if that is
    left out (eq. 7). Summation in FP32 adds gamma_p = p u / (1 - p u), u = 2^-24, where p counts the roundings that one
    product can pass: the chain in L0C, the sums between k groups, the terms, the merge of slices (Higham, Accuracy and
    Stability, section 3.1).
    """
    s = schedule
    u = 2.0**-24
    if s.operand == "int8":
        return 0.0
    if s.terms == 1:
        unit = UNIT_ROUNDOFF[s.operand]
        rounding = 0.0 if s.operand == "fp32" else 2 * unit + unit * unit
    else:
        rounding = (2 + (s.terms == 3)) * 2.0**-22
    in_chain = s.chain * (s.terms if s.combination.together and not s.combination.accumulator_each else 1)
    roundings = in_chain + (s.groups - 1) * (s.terms if s.combination.in_place else 1) + 3 * (s.terms > 1)
    roundings += len(s.k_slices) - 1 + s.own_roundings
    return rounding + (1 + rounding) * roundings * u / (1 - roundings * u)
