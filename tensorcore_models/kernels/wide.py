"""This module runs accumulators of fused sums in 64-bit lanes, for operands of any exponent (wide.h)."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._kernels.wide import wide
from ..families.base import SumAlgorithm
from ..formats import Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for_product
from .common import (
    Formats,
    KernelFormat,
    RunningResult,
    Source,
    addends,
    largest_significand,
    least_addend,
    redo_elements,
    step_order,
)
from .lowering import Lowered

_NEVER = 4000
_SIGNIFICAND = 52  # fraction bits of a double
_FARTHEST = 900
_LOWEST = -900  # alignment exponent below every product's
_PADDED_TERMS = (4, 8, 16, 32)
_ALGORITHMS = (SumAlgorithm.FUSED, SumAlgorithm.ROUND_DOWN, SumAlgorithm.LATE)
#: Largest number of products between two outside additions, whose operands are packed together.
_LONGEST_CHAIN = 1 << 12
#: Values in wide.h for the addition of a late c.
_EXACT, _ODD = 1, 2
_SMALLEST_NORMAL = 1 << 23  # FP32 bits


def _padded(terms: int) -> int:
    """Return the number of packed products of one operation, for which the lanes have a loop."""
    return next(n for n in _PADDED_TERMS if n >= terms)


@dataclass(frozen=True)
class WideTask:
    """`WideTask` holds the parameters of the lanes (mpg_wide_task of wide.h)."""

    terms: int
    fraction_bits: int
    floor: int
    output: int
    raw_exponent: int
    positive_zero: bool
    round_down: int
    dot_bits: int = 0
    c_bits: int = 0
    sum_bits: int = _SIGNIFICAND
    c_cutoff: int = 0
    overflow: int = _NEVER
    late: int = 0
    mark_cut: bool = False
    nearest: bool = False
    promote: int = 0


@dataclass(frozen=True)
class WideKernel:
    """`WideKernel` runs FusedDotAdd, FusedDotRoundDownAdd, GroupFusedDotRoundDownAdd and fused sums with a late c.

    It uses 64-bit lanes. FusedDotAdd truncates aligned addends or, with fp32 results, rounds them to nearest even.
    """

    task: WideTask
    a_operand: KernelFormat
    b_operand: KernelFormat
    pass_terms: int
    groups: tuple[tuple[int, ...], ...] | None

    @classmethod
    def of(cls, low: Lowered) -> "WideKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        read, groups = low.as_read, None
        if read is None:
            return None
        (algorithm, spec), formats, via = read
        if algorithm not in _ALGORITHMS or not all(map(_covered, formats[:2])):
            return None
        if low.scale_format is not None and not (
            algorithm is SumAlgorithm.FUSED and _scales_covered(formats, low.scale_format)
        ):
            return None
        if algorithm is SumAlgorithm.ROUND_DOWN:
            task = _round_down_task(spec, formats)
            if spec.parity_groups > 1:
                groups = (tuple(range(0, spec.terms, 2)), tuple(range(1, spec.terms, 2)))
        elif algorithm is SumAlgorithm.LATE:
            task = _late_task(spec, formats)
        else:
            task = _fused_task(spec, formats)
        if task is None:
            return None
        return cls(task, KernelFormat.of(formats[0], via), KernelFormat.of(formats[1], via), spec.terms, groups)

    def promotes(self, every: int) -> bool:
        """Return whether the lanes can also add chains of `every` products outside the unit."""
        whole = self.pass_terms == self.task.terms and every % self.pass_terms == 0
        return whole and not self.task.output and every <= _LONGEST_CHAIN

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None, every: int | None = None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits`, or `kernels.promoted_bits` with `every`."""
        task = self.task if every is None else replace(self.task, promote=every)
        threads = threads_for_product(a.size * b.shape[1])
        least, exact = least_addend(low.c_format.name, low.d_format.name), task.late == _EXACT
        tiny = _SMALLEST_NORMAL if exact and every is None else 1  # subnormal sums outside the unit are kept
        values, redo, found = addends(c, threads, least=least, tiny=tiny)
        if found & 2:  # subnormal addends count as zeros
            redo &= 1
        result = RunningResult.of(values, redo)
        parts = 1 if self.groups is None else len(self.groups)
        order = step_order(a.shape[1], self.pass_terms, self.task.terms // parts, self.groups)
        plain = self.groups is None and order.size == a.shape[1]
        x = Source.of_a(a, vars(self.a_operand), scale_a, low.block_size)
        y = Source.of_b(b, vars(self.b_operand), scale_b, low.block_size)
        wide.wide(x, y, order, plain, result, vars(task), isa_level(), threads)
        d = result.d.astype(np.float16).view(np.uint16) if self.task.output else result.d.view(np.uint32)
        if exact:  # the sign of a zero depends on the products' signs, which the lanes do not track
            zeros = result.d == 0
            if zeros.any():
                result.redo |= zeros
        if result.marked:
            redo_elements(low, d, result, a, b, c, scale_a, scale_b, every)
        return d


def _covered(fmt: Format) -> bool:
    """Return whether products of the format are exact in double, and their exponents fit in the lanes' words."""
    small = fmt.bits <= 32 and fmt.fraction_bits <= 23 and fmt.specials != "scale"
    return small and fmt.emin >= -127 and fmt.emax <= 128


def _scales_covered(formats: Formats, scale: Format) -> bool:
    small = formats[0].bits <= 8 and formats[1].bits <= 8
    return scale.name == "ue8m0" and small


def _fused_task(spec: Any, formats: Formats) -> WideTask | None:
    c, d = formats[2:]
    fp16 = d.name == "fp16"
    if c.name not in ("fp32", "fp16") or d.name not in ("fp32", "fp16") or (fp16 and c.name != "fp16"):
        return None
    fits = spec.terms <= _PADDED_TERMS[-1] and spec.fraction_bits <= 28
    rounding = "rne" if fp16 else "rz"
    if not fits or spec.normalised_products or spec.output_rounding != rounding:
        return None
    nearest = spec.alignment_rounding == "rne"
    if spec.alignment_rounding != "rz" and (not nearest or fp16):
        return None
    if spec.output_fraction_bits is not None or (spec.zero_operand, spec.zero_c) != ("skip", "skip"):
        return None
    if fp16 and spec.negative_underflow == "negative":
        return None
    if spec.exponent_floor is not None and spec.exponent_floor > _FARTHEST:
        return None
    return WideTask(
        terms=_padded(spec.terms),
        fraction_bits=spec.fraction_bits,
        floor=_LOWEST if spec.exponent_floor is None else max(_LOWEST, spec.exponent_floor),
        output=int(fp16),
        raw_exponent=d.emin if spec.subnormal_c == "raw" else -1022,
        positive_zero=spec.negative_underflow == "positive",
        round_down=0,
        nearest=nearest,
    )


def _late_task(spec, formats: Formats) -> WideTask | None:
    """Return the task of units that add c late: exactly with one rounding (Gaudi 2), or rounded to odd (RISC-V); else None."""
    a, b, c, d = formats
    if spec.fraction_bits is None or spec.terms > _PADDED_TERMS[-1] or (c.name, d.name) != ("fp32", "fp32"):
        return None
    exact = spec.c_position == "exact"
    rounding = "rne" if exact else "ro"
    alike = type(spec)(
        spec.terms,
        spec.fraction_bits,
        c_position=spec.c_position,
        alignment_rounding="rz" if exact else "ro",
        output_rounding=rounding,
        late_rounding=spec.late_rounding if exact else rounding,
        normalised_products=exact and spec.normalised_products,
        flush_c=exact,
        flush_outputs=exact,
        negative_underflow="negative" if exact else spec.negative_underflow,
        subnormal_c=spec.subnormal_c,
        zero_sign=spec.zero_sign if exact else "positive",
        padding=spec.padding if exact else 0,
        nan=spec.nan,
        tf32_nan=spec.tf32_nan,
    )
    largest = spec.terms * (largest_significand(a) * largest_significand(b) + 2.0**-spec.fraction_bits)
    if alike != spec or largest * 2.0**spec.fraction_bits >= 2.0**51 - 2.0**17:
        return None
    return WideTask(
        terms=_padded(spec.terms),
        fraction_bits=spec.fraction_bits,
        floor=_LOWEST,
        output=0,
        raw_exponent=-1022,
        positive_zero=False,
        round_down=0,
        late=_EXACT if exact else _ODD,
        mark_cut=spec.normalised_products,
    )


def _round_down_task(spec: Any, formats: Formats) -> WideTask | None:
    c, d = formats[2:]
    if (c.name, d.name) != ("fp32", "fp32"):
        return None
    fits = spec.terms <= _PADDED_TERMS[-1] and spec.fraction_bits <= 28
    fits = fits and spec.dot_fraction_bits <= 40 and spec.c_fraction_bits <= 40
    if not fits or spec.add_rounding != "rd" or spec.output_rounding != "rne" or spec.exponent_floor is not None:
        return None
    if (spec.zero_operand, spec.zero_c, spec.subnormal_c) != ("skip", "minus126", "raw"):
        return None
    if spec.c_cutoff is not None and not spec.c_fraction_bits <= spec.c_cutoff <= _FARTHEST:
        return None  # the lanes drop a far c, of which truncation leaves 0
    kept = _SIGNIFICAND if spec.sum_fraction_bits is None else min(spec.sum_fraction_bits, _SIGNIFICAND)
    limit = spec.product_overflow_exponent
    if limit is not None and not 100 <= limit <= 900:
        return None
    return WideTask(
        terms=_padded(spec.terms // spec.parity_groups) * spec.parity_groups,
        fraction_bits=spec.fraction_bits,
        floor=0,
        output=0,
        raw_exponent=-1022,
        positive_zero=spec.negative_underflow == "positive",
        round_down=spec.parity_groups,
        dot_bits=spec.dot_fraction_bits,
        c_bits=spec.c_fraction_bits,
        sum_bits=kept,
        c_cutoff=0 if spec.c_cutoff is None else spec.c_cutoff,
        overflow=_NEVER if limit is None else limit,
    )
