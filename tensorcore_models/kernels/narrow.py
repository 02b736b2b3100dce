"""This module runs accumulators of fused sums in 32-bit lanes, for operands with few exponents (narrow.h)."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._kernels.narrow import narrow
from ..families.base import SumAlgorithm
from ..formats import Format, get_float_format
from ..machine.instruction_sets import ISAS, isa_level
from ..machine.threads import threads_for, threads_for_product
from .common import (
    INFINITE,
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
from .generic import generic_batch_bits
from .lowering import Lowered
from .wide import WideKernel

_TINY = narrow.FLOOR << 23  # float32 bits of 2^-68: the lanes ignore smaller addends (narrow.h)
_PADDED_TERMS = (4, 8, 16, 32)
_FUSED = (SumAlgorithm.FUSED, SumAlgorithm.INTERLEAVED)
_HIGHEST_FLOOR = 60  # keeps units and sums within float32
#: Largest number of operations between two outside additions, whose operands are packed together.
_LONGEST_CHAIN = 1 << 10
#: Values of the task's `output` in narrow.h other than FP32.
_FP16, _DOWN, _DOWN_GROUPS = 1, 2, 3
#: Smallest addends for which the lanes do not round down, because results could become infinite.
_FARTHEST_C = 227 << 23  # float32 bits of 2^100
#: Float32 bits of the range of addends that are shifted with the operands: from the first, below the second.
_WINDOW_C = (127 - narrow.ADDEND << 23, 127 + narrow.ADDEND << 23)


@dataclass(frozen=True)
class NarrowTask:
    """`NarrowTask` holds the parameters of the lanes (mpg_narrow_task of narrow.h)."""

    terms: int
    fraction_bits: int
    output: int
    keep: int
    wide_sum: bool
    chain: int
    floor: int
    raw_exponent: int = 0
    guard: int = 0
    whole: int = 31
    cutoff: int = 0
    windowed: bool = False
    scaled: int = 0
    scale: float = 1.0
    back: float = 1.0
    unusable_c: int = INFINITE


@dataclass(frozen=True)
class NarrowKernel:
    """`NarrowKernel` runs FusedDotAdd, InterleavedDotAdd and FusedDotRoundDownAdd in 32-bit lanes.

    Operands are fp16, fp8, fp6 and fp4, or bf16 and tf32 with at most 32 exponents (narrow_window.h), which each call checks.
    """

    task: NarrowTask
    a_operand: KernelFormat
    b_operand: KernelFormat
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    pass_terms: int
    groups: tuple[tuple[int, ...], ...] | None
    #: Kernel that runs instead if operands do not fit in the lanes, or if it is faster on this CPU.
    wide: WideKernel | None = None
    items: dict[int, narrow.NarrowItems] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, low: Lowered) -> "NarrowKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        read = low.as_read
        if read is None or low.scale_format is not None:
            return None
        (algorithm, spec), formats, via = read
        groups, pass_terms, dot = None, spec.terms_per_step, spec
        if algorithm is SumAlgorithm.INTERLEAVED:
            if spec.final_rounding != "rne":
                return None
            via, dot = get_float_format(spec.via_format), spec.dot
            positions = np.arange(spec.terms_per_step) // spec.run % spec.groups
            groups = tuple(tuple(np.flatnonzero(positions == group).tolist()) for group in spec.group_order)
            if max(map(len, groups)) > dot.terms or dot.fraction_bits < _kept(dot, formats[3]):
                return None  # a short last pass would leave a group empty, whose operation would truncate the sum
        a, b, c, d = formats
        if algorithm is SumAlgorithm.ROUND_DOWN:
            if spec.parity_groups > 1:
                groups = (tuple(range(0, spec.terms, 2)), tuple(range(1, spec.terms, 2)))
            task = _round_down_task(spec, formats, via)
        else:
            task = _fused_task(dot, formats, via, groups) if algorithm in _FUSED else None
        wide = WideKernel.of(low) if task is not None and (task.windowed or task.output >= _DOWN) else None
        if task is None or (task.windowed and wide is None):
            return None
        return cls(
            task=task,
            a_operand=KernelFormat.of(a, via),
            b_operand=KernelFormat.of(b, via),
            a_format=a,
            b_format=b,
            c_format=c,
            d_format=d,
            pass_terms=pass_terms,
            groups=groups,
            wide=wide,
        )

    def promotes(self, every: int) -> bool:
        """Return whether the lanes can add chains of `every` products outside the unit, with c as a late addend of each."""
        chained = self.task.chain == 0 and self.task.output != _FP16 and every % self.task.terms == 0
        return chained and self.pass_terms == self.task.terms and every // self.task.terms <= _LONGEST_CHAIN

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None, every: int | None = None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits`, or `kernels.promoted_bits` with `every`."""
        if self.wide is not None and self.task.output >= _DOWN and isa_level() == ISAS.index("baseline"):
            return self.wide.run(low, a, b, c, every=every)  # baseline has no shift by a different amount in each lane
        operands = self._operands(a, b)
        if operands is None:
            assert self.wide is not None
            return self.wide.run(low, a, b, c, every=every)
        task = self.task if every is None else replace(self.task, chain=every // self.task.terms)
        result = self._lanes(task, *operands, c, a.shape[1])
        d = result.d.astype(np.float16).view(np.uint16) if self.task.output == _FP16 else result.d.view(np.uint32)
        if result.marked:
            redo_elements(low, d, result, a, b, c, every=every)
        return d

    def run_scaled(self, a, b, c, every: int, places: int, exponent: int) -> np.ndarray | None:
        """Compute `kernels.scaled_bits`; None if the lanes cannot compute the whole product."""
        operands, chain = self._operands(a, b), every // self.task.terms
        if operands is None or chain > 31:
            return None
        task = replace(self.task, chain=chain, scaled=places, scale=2.0**exponent)
        result = self._lanes(task, *operands, c, a.shape[1])
        return None if result.marked else result.d.view(np.uint32)

    def _operands(self, a, b) -> tuple[Source, Source, int] | None:
        """Return the sources of A and B and the exponent by which products are shifted, None if they do not fit the lanes."""
        x, y = Source.of_a(a, vars(self.a_operand)), Source.of_b(b, vars(self.b_operand))
        if not self.task.windowed:
            return x, y, 0
        shifts = narrow.shifts(x, y, isa_level(), threads_for_product(a.size * b.shape[1]))
        if shifts is None:
            return None
        of_a, of_b = self.a_operand.shifted(shifts[0]), self.b_operand.shifted(shifts[1])
        return replace(x, format=of_a), replace(y, format=of_b), sum(shifts)

    def _lanes(self, task: NarrowTask, x: Source, y: Source, shift: int, c, k: int) -> RunningResult:
        """Compute the whole product in the lanes, and mark the elements to compute again."""
        m, n = c.shape
        threads = threads_for_product(m * n * k)
        values, redo, tiny = self._addends(c, task.chain > 0 or task.output >= _DOWN, shift, threads)
        result = RunningResult.of(values, redo)
        swapped = n < 16 < 2 * m and m > n
        if swapped:  # lanes run over the rows instead
            x, y, result = y, x, result.transposed()
        task = replace(task, back=2.0**shift) if shift else task
        narrow.narrow(x, y, *self._order(k), result, vars(task), isa_level(), threads)
        if swapped:
            result = result.transposed()
        if tiny is not None:  # such a c adds nothing to a nonzero product
            result.redo |= tiny & (result.d == 0)
        return result

    def run_batch(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for many small products, shapes (batch, m, k), (batch, k, n), (batch, m, n)."""
        (count, m, k), n = a.shape, b.shape[2]
        d, marks = np.empty((count, m, n), low.d_format.container), np.empty(count, np.uint8)
        a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
        threads = threads_for(count * m * n * k)
        if self.items_of(k).run(a, b, c, d, marks, m, n, isa_level(), threads):
            marked = np.flatnonzero(marks)
            d[marked] = generic_batch_bits(low, a[marked], b[marked], c[marked])
        return d

    def items_of(self, k: int) -> narrow.NarrowItems:
        """Return the cached kernel for products of length k."""
        found = self.items.get(k)
        if found is None:
            if len(self.items) > 64:
                self.items.clear()
            sizes = (self.c_format.container.itemsize, self.d_format.container.itemsize)
            found = self.items[k] = narrow.NarrowItems(
                vars(self.a_operand), vars(self.b_operand), *self._order(k), k, vars(self.task), *sizes
            )
        return found

    def _order(self, k: int) -> tuple[np.ndarray, bool]:
        """Return the position in k of each packed place, and whether the order is the plain order of k."""
        parts = 1 if self.task.output != _DOWN_GROUPS else 2
        order = step_order(k, self.pass_terms, self.task.terms // parts, self.groups)
        return order, self.groups is None and order.size == k

    def _addends(self, c, late: bool, shift: int, threads: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Return c as float32 for the lanes, marks of elements they cannot compute, and marks of c too small for them.

        c is 0 in marked elements. With `late`, even a tiny c counts, because it is added outside or rounded down. The lanes
        hold 2^-shift c.
        """
        least, beyond = _WINDOW_C if shift else (least_addend(self.c_format.name, self.d_format.name), INFINITE)
        tiny = 1 if self.c_format.name == "fp16" else _TINY
        beyond = min(beyond, self.task.unusable_c)
        values, marks, found = addends(c, threads, least=least, beyond=beyond, scale=2.0**-shift, tiny=tiny)
        if not found & 2:
            return values, marks, None
        if late:
            return values, np.minimum(marks, 1, out=marks), None
        small = marks == 2
        marks &= 1
        return values, marks, small


def _fused_task(dot: Any, formats: Formats, via: Format | None, groups: tuple | None) -> NarrowTask | None:
    """Return the task of a fused dot-add, or of InterleavedDotAdd, whose `groups` are added outside; None if not covered."""
    a, b, c, d = formats
    if not (_plain_alignment(dot) and _narrow_ranges(dot, a, b, via) and _narrow_output(dot, c, d)):
        return None
    windowed = _windowed(a, b, via)
    if windowed and (c.name, d.name) != ("fp32", "fp32"):
        return None
    terms = next(n for n in _PADDED_TERMS if n >= dot.terms)
    fp16 = d.name == "fp16"
    return NarrowTask(
        terms=terms,
        fraction_bits=dot.fraction_bits,
        output=int(fp16),
        keep=0xFFFFFFFF & ~((1 << (23 - _kept(dot, d))) - 1),
        wide_sum=terms == 16 and _largest_sum(dot, a, b) + 2.0 ** (dot.fraction_bits + 1) >= 2.0**31,
        chain=0 if groups is None else len(groups),
        floor=narrow.FLOOR if dot.exponent_floor is None else max(narrow.FLOOR, dot.exponent_floor + 127),
        raw_exponent=113 if fp16 and dot.subnormal_c == "raw" else 0,
        windowed=windowed,
    )


def _kept(dot: Any, d: Format) -> int:
    """Return the fraction bits of a result in format `d`."""
    return d.fraction_bits if dot.output_fraction_bits is None else dot.output_fraction_bits


def _round_down_task(spec: Any, formats: Formats, via: Format | None) -> NarrowTask | None:
    """Return the task of CDNA3's dot product and c, both rounded down, or None (mpg_down_result of narrow.h has the limits)."""
    a, b, c, d = formats
    f, guard, halves = spec.fraction_bits, spec.dot_fraction_bits - spec.fraction_bits, spec.parity_groups
    kept = 60 if spec.sum_fraction_bits is None else spec.sum_fraction_bits
    rules = (spec.add_rounding, spec.output_rounding, spec.zero_operand, spec.zero_c, spec.subnormal_c)
    if rules != ("rd", "rne", "skip", "minus126", "raw") or spec.exponent_floor is not None:
        return None
    if (c.name, d.name) != ("fp32", "fp32") or spec.terms > (8 if halves == 1 else 16):
        return None
    if spec.c_fraction_bits != f or not 0 <= guard <= 7 or kept < max(29, 24 + guard):
        return None
    if not _narrow_ranges(spec, a, b, via) or _largest_sum(spec, a, b) + 2.0 ** (f + 1) >= 2.0**30:
        return None
    if halves == 2 and spec.c_cutoff < f:  # the lanes drop a far c, of which truncation leaves 0
        return None
    limit = spec.product_overflow_exponent
    if limit is not None and limit <= 2 * narrow.MOST + 1 + narrow.SHIFT:
        return None
    return NarrowTask(
        terms=16 if halves == 2 else 4 if spec.terms <= 4 else 8,
        fraction_bits=f,
        output=_DOWN if halves == 1 else _DOWN_GROUPS,
        keep=0,
        wide_sum=False,
        chain=0,
        floor=narrow.FLOOR,
        guard=guard,
        whole=min(31, kept - guard + 1),
        cutoff=spec.c_cutoff if halves == 2 else 0,
        windowed=_windowed(a, b, via),
        unusable_c=_FARTHEST_C,
    )


def _largest_sum(dot: Any, a: Format, b: Format) -> float:
    """Return a bound of every sum of products, in units."""
    return dot.terms * largest_significand(a) * largest_significand(b) * 2.0**dot.fraction_bits


def _plain_alignment(dot: Any) -> bool:
    """Return whether addends are truncated at one alignment exponent and zeros take no part in the alignment."""
    zeros_skip = (dot.zero_operand, dot.zero_c) == ("skip", "skip")
    low_floor = dot.exponent_floor is None or dot.exponent_floor <= _HIGHEST_FLOOR
    return zeros_skip and low_floor and dot.alignment_rounding == "rz" and not dot.normalised_products


def _windowed(a: Format, b: Format, via: Format | None) -> bool:
    """Return whether an operand format has more exponents than the lanes."""
    lowest = (fmt.emin if via is None else max(via.emin, fmt.quantum_exponent) for fmt in (a, b))
    return max(a.emax, b.emax) > narrow.MOST or min(lowest) < narrow.LEAST


def _narrow_ranges(dot: Any, a: Format, b: Format, via: Format | None) -> bool:
    """Return whether exponents fit in bytes, products in float32 and sums in 32 bits (head of narrow.h)."""
    if dot.terms > _PADDED_TERMS[-1] or dot.fraction_bits > 25:
        return False
    windowed = _windowed(a, b, via)
    for fmt in (a, b):
        if fmt.fraction_bits > 10 or fmt.specials == "scale" or (fmt.padding_bits and not windowed):
            return False
        if windowed and (via is not None or fmt.container.itemsize == 1):
            return False
    if windowed and dot.exponent_floor is not None and dot.exponent_floor > -128:
        return False
    bound = 2.0**31 if dot.terms <= 16 else 2.0**30  # the kernel for 32 products has no wide sums
    return _largest_sum(dot, a, b) < bound


def _narrow_output(dot: Any, c: Format, d: Format) -> bool:
    """Return whether the lanes support the output rounding, and the rules for an fp16 addend or result."""
    if c.name not in ("fp32", "fp16"):
        return False
    if d.name == "fp32":
        kept = dot.output_fraction_bits
        return dot.output_rounding == "rz" and (kept is None or kept <= 23)
    fp16 = d.name == "fp16" and c.name == "fp16" and dot.output_rounding == "rne"
    return fp16 and dot.output_fraction_bits is None and dot.negative_underflow == "positive"
