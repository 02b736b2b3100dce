"""This module computes products on FP16 words with the compiled cube, for every kernel with FP16 operands.

:mod:`ascend.cube` defines the arithmetic; :class:`ascend.slices.Sums` holds the facts of a schedule that it needs.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from ascend._kernels import cube as cube_kernel
from ascend.chips.chip import Chip
from ascend.numeric.arguments import (
    DEFAULT_STEP_ORDER,
    OVERFLOWS,
    STEP_ORDERS,
    ScaleExponent,
    StepOrder,
    check_choice,
    checked_group,
    scale_exponents,
)
from ascend.slices import Overflow, Sums, each_slice, merge_slices
from tensorcore_models.formats.rounding import round_to
from tensorcore_models.machine.instruction_sets import isa_level
from tensorcore_models.machine.threads import threads_for

_FP32_MAX = np.finfo(np.float32).max
#: Row scaling brings the largest element of a row to this binade, in which no FP16 word overflows for s_b up to 12.
ROW_SCALING_EXPONENT = 14
_TERM_MASKS = {1: 0b0001, 3: 0b0111, 4: 0b1111}


@dataclass(frozen=True, kw_only=True)
class CubeArithmetic:
    """`CubeArithmetic` holds the arithmetic that a schedule leaves open, with the parameters of `cube_gemm` and `cube_hgemm`.

    An `overflow` of None stands for the chip's rule (:meth:`on`), or without a chip for that of the 910A.
    """

    scale_exponent: ScaleExponent = 12
    step_order: StepOrder = DEFAULT_STEP_ORDER
    overflow: Overflow | None = None
    group: int = 16
    row_scaling: bool = False
    accumulate: Literal["fp32", "fp16"] = "fp32"

    def __post_init__(self):
        check_choice("accumulate", self.accumulate, ("fp32", "fp16"))
        check_choice("step_order", self.step_order, STEP_ORDERS)
        if self.overflow is not None:
            check_choice("overflow", self.overflow, OVERFLOWS)

    def on(self, chip: Chip | None) -> "CubeArithmetic":
        """Return the arithmetic with the chip's overflow rule if none was given."""
        if self.overflow is not None:
            return self
        return replace(self, overflow="saturate" if chip is None else chip.overflow)

    @property
    def saturates(self) -> bool:
        """Return whether overflow gives the largest finite number."""
        return self.merging == "saturate"

    @property
    def merging(self) -> Overflow:
        """Return the overflow rule of the sums."""
        return self.overflow or "saturate"


def words_product(
    sums: Sums, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, arithmetic: CubeArithmetic
) -> np.ndarray:
    """Return A B (+ C) on FP16 words, the slices of k merged in order: float32, or float16 with FP16 accumulation.

    Operands of one term are rounded to FP16. Raises ValueError for scale exponents that are out of range.
    """
    half = arithmetic.accumulate == "fp16"
    if half and len(sums.slices) > 1:
        raise ValueError(
            "got accumulate='fp16' with a schedule that splits k, but slices of k are merged in FP32: take a schedule without "
            "split-k"
        )
    group = checked_group(arithmetic.group, sums.step)
    if half and c is not None:
        nan = 0.0 if arithmetic.saturates else None
        c = round_to(c, "fp16", saturate=arithmetic.saturates, nan=nan).astype(np.float32)
    if a.shape[1] == 0:  # no instruction runs
        out = np.zeros((a.shape[0], b.shape[1]), np.float32) if c is None else c.copy()
        return out.astype(np.float16) if half else out
    added_last, shifts = None, None
    if arithmetic.row_scaling:
        (a, row_shifts), (b, column_shifts) = _scaled(a, axis=1), _scaled(b, axis=0)
        added_last, c, shifts = c, None, row_shifts + column_shifts
    exponents = scale_exponents(arithmetic.scale_exponent, a, b, sums.order) if sums.terms > 1 else (0, 0)
    task = _task(sums, arithmetic, group, exponents, a.shape[1], c)
    partial = _slices(sums, task, a, b, _seed(c, arithmetic))
    out = partial[0] if len(partial) == 1 else merge_slices(np.stack(partial), arithmetic.merging)
    if shifts is not None:
        return _unscaled(out, shifts, _seed(added_last, arithmetic), arithmetic.merging)
    return out.astype(np.float16) if half else out


def words_slices(
    sums: Sums, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, arithmetic: CubeArithmetic
) -> np.ndarray:
    """Return the product of each slice of k before they are merged, shape (slices, m, n)."""
    parts = each_slice(sums, a, b, c)
    return np.stack([words_product(replace(sums, slices=(own,)), x, y, z, arithmetic) for own, x, y, z in parts])


def _seed(c: np.ndarray | None, arithmetic: CubeArithmetic) -> np.ndarray | None:
    if c is None or not arithmetic.saturates or np.isfinite(c).all():
        return c
    return np.nan_to_num(c, nan=0.0, posinf=float(_FP32_MAX), neginf=-float(_FP32_MAX))


def _may_overflow(largest_c: float, k: int, exponents: tuple[int, int]) -> bool:
    """Return whether an FP32 intermediate could exceed the largest finite number: k products below 2^32, scaled."""
    growth = max(abs(s) for s in (*exponents, sum(exponents), exponents[0] - exponents[1]))
    return not (largest_c + 4.0 * k * 2.0**32) * 2.0**growth < 2.0**126


@dataclass(frozen=True)
class CubeTask:
    """`CubeTask` holds the kernel's parameters of a product, which all its slices of k share."""

    #: One bit for each term: 1 hh, 2 lh, 4 hl, 8 ll.
    terms: int
    step_order: int
    step: int
    a_exponent: int
    b_exponent: int
    elementwise: bool
    in_place: bool
    #: Overflow rule of the split, and that of the sums.
    saturate: bool
    clamp: bool
    half: bool
    reseed: bool


def _task(sums: Sums, arithmetic: CubeArithmetic, group: int, exponents: tuple[int, int], k: int, c) -> CubeTask:
    half = arithmetic.accumulate == "fp16"
    largest = 0.0 if c is None else float(np.max(np.abs(c), initial=0.0))
    return CubeTask(
        terms=_TERM_MASKS[sums.terms],
        step_order=STEP_ORDERS.index(arithmetic.step_order),
        step=group if sums.order == "elementwise" else sums.step,
        a_exponent=exponents[0],
        b_exponent=exponents[1],
        elementwise=sums.order == "elementwise",
        in_place=sums.order == "termwise_inplace",
        saturate=arithmetic.saturates,
        clamp=arithmetic.saturates and (half or _may_overflow(largest, k, exponents)),
        half=half,
        reseed=sums.reseeded,
    )


def _slices(sums: Sums, task: CubeTask, a: np.ndarray, b: np.ndarray, c: np.ndarray | None) -> list[np.ndarray]:
    """Return the product of each slice of k; the first one starts from c."""
    found = []
    for groups, x, y, seed in each_slice(sums, a, b, c):
        out = np.empty((a.shape[0], b.shape[1]), np.float32)
        if out.size:
            cube_kernel.run(
                np.ascontiguousarray(x), np.ascontiguousarray(y), seed, np.array([last for _, last in groups], np.int64),
                out, vars(task), isa_level(), threads_for(len(y) * out.size),
            )  # fmt: skip
        found.append(out)
    return found


# -- row scaling: powers of two bring all of FP32 into the range of FP16 words -----------------------------------------------
def _scaled(x: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x with scaled rows (axis 1) or columns (axis 0), and the shifts as a matrix of one column or row.

    Elements more than 2^126 below the largest of their row may be rounded to FP32 subnormals; their two FP16 words are
    0 anyway for s_b up to 88.
    """
    finite = np.where(np.isfinite(x), np.abs(x), np.float32(0))
    largest = finite.max(axis=axis, keepdims=True, initial=0.0)
    shifts = np.where(largest > 0, ROW_SCALING_EXPONENT + 1 - np.frexp(largest)[1], 0).astype(np.int32)
    return np.ldexp(x, shifts), shifts


def _unscaled(out: np.ndarray, shifts: np.ndarray, c: np.ndarray | None, overflow: str) -> np.ndarray:
    """Return the product of scaled matrices with the shifts undone, and c, if given, added by RN."""
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        out = np.ldexp(out, -shifts)
        if overflow == "saturate":
            out = np.clip(out, -_FP32_MAX, _FP32_MAX)
        if c is not None:
            out = out + c
    if overflow == "saturate":
        return np.clip(out, -_FP32_MAX, _FP32_MAX)
    out[np.isnan(out)] = np.nan
    return out
