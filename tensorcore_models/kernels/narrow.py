"""Fused dot-add of fp16, fp8, fp6 and fp4 operands in 32-bit lanes (narrow.h): which accumulators, and how they are run."""

import dataclasses
from dataclasses import dataclass

import numpy as np

from .._kernels import fda
from ..accumulators import FusedDotAdd, InterleavedDotAdd, ParametricDotAdd
from ..formats import Format, get_float_format
from ..machine.instruction_sets import isa_level
from ..machine.threads import get_num_threads, threads_for
from ..machine.workspace import workspace
from .common import Operand, flat, is_zero, meets_product, redo_elements, slice_length, step_order
from .generic import generic_batch_bits
from .lowering import Lowered

_TINY = 59 << 23  # float32 bits of 2^-68: smaller addends do not take part in the lanes (narrow.h)
_PADDED_TERMS = (4, 8, 16, 32)
#: Operations between two outside additions, at most: their operands are packed together.
_LONGEST_CHAIN = 1 << 10


@dataclass(frozen=True)
class NarrowTask:
    """What the lanes compute (mpg_narrow_task of narrow.h)."""

    terms: int
    fraction_bits: int
    output: int
    keep: int
    wide_sum: bool
    chain: int
    raw_exponent: int


def as_fused(spec) -> FusedDotAdd | None:
    """`spec` as a FusedDotAdd if it is one, or a parametric accumulator that computes the same."""
    if type(spec) is FusedDotAdd:
        return spec
    if type(spec) is not ParametricDotAdd or spec.fraction_bits is None:
        return None
    shared = {field.name: getattr(spec, field.name) for field in dataclasses.fields(FusedDotAdd)}
    return FusedDotAdd(**shared) if ParametricDotAdd(**shared) == spec else None


def largest_significand(fmt: Format) -> float:
    return 2.0 - 2.0**-fmt.fraction_bits


@dataclass(frozen=True)
class NarrowPlan:
    """FusedDotAdd or InterleavedDotAdd of fp16, fp8, fp6 and fp4 operands in 32-bit lanes."""

    task: NarrowTask
    a_operand: Operand
    b_operand: Operand
    a_format: Format
    b_format: Format
    c_format: Format
    d_format: Format
    pass_terms: int
    groups: tuple[tuple[int, ...], ...] | None
    zeros_align: bool
    items: dict[int, fda.NarrowItems] = dataclasses.field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, low: Lowered) -> "NarrowPlan | None":
        """The plan for an accumulator with its formats, None if the lanes do not cover it."""
        spec, formats, groups = low.accumulator, low.floating, None
        via: Format | None = None
        if formats is None:
            return None
        if type(spec) is InterleavedDotAdd:
            if spec.final_rounding != "rne":
                return None
            via = get_float_format(spec.via_format)
            positions = np.arange(spec.terms_per_step) // spec.run % spec.groups
            groups = tuple(tuple(np.flatnonzero(positions == group).tolist()) for group in spec.group_order)
            pass_terms, dot = spec.terms_per_step, spec.dot
            if max(map(len, groups)) > dot.terms:
                return None
        else:
            fused = as_fused(spec)
            if fused is None:
                return None
            pass_terms, dot = fused.terms, fused
        a, b, c, d = formats
        if low.scale_format is not None or not plain_alignment(dot):
            return None
        if not _narrow_ranges(dot, a, b, via) or not _narrow_output(dot, c, d):
            return None
        terms = next(n for n in _PADDED_TERMS if n >= dot.terms)
        largest = dot.terms * largest_significand(a) * largest_significand(b) * 2.0**dot.fraction_bits
        fp16 = d.name == "fp16"
        kept = 23 if dot.output_fraction_bits is None else dot.output_fraction_bits
        return cls(
            task=NarrowTask(
                terms=terms,
                fraction_bits=dot.fraction_bits,
                output=int(fp16),
                keep=0xFFFFFFFF & ~((1 << (23 - kept)) - 1),
                wide_sum=terms == 16 and largest + 2.0 ** (dot.fraction_bits + 1) >= 2.0**31,
                chain=0 if groups is None else len(groups),
                raw_exponent=113 if fp16 and dot.subnormal_c == "raw" else 0,
            ),
            a_operand=_narrow_operand(a, dot, via),
            b_operand=_narrow_operand(b, dot, via),
            a_format=a,
            b_format=b,
            c_format=c,
            d_format=d,
            pass_terms=pass_terms,
            groups=groups,
            zeros_align=dot.zero_operand == "format_minimum",
        )

    def promotes(self, every: int) -> bool:
        """Whether chains of `every` products can be added up outside in the lanes: c is then a late addend of each."""
        chained = self.groups is None and not self.task.output and every % self.task.terms == 0
        return chained and self.pass_terms == self.task.terms and every // self.task.terms <= _LONGEST_CHAIN

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None, every: int | None = None) -> np.ndarray:
        """D = A B + C for one pair of matrices, as `kernels.matrix_bits`; with `every` as `kernels.promoted_bits`."""
        (m, k), n = a.shape, b.shape[1]
        task = self.task if every is None else dataclasses.replace(self.task, chain=every // self.task.terms)
        d, redo = self._addends(a, b, c, late=task.chain > 0)
        rows, columns = np.zeros(m, np.uint8), np.zeros(n, np.uint8)
        order, plain = self._order(k)
        group = task.terms * max(1, task.chain)
        level, threads = isa_level(), get_num_threads()
        x = (flat(a), k, 1, self.a_operand)
        y = (flat(b), 1, n, self.b_operand)
        swapped = n < 16 < 2 * m and m > n
        if swapped:  # lanes run over the rows instead
            x, y = (y[0], 1, n, self.b_operand), (x[0], k, 1, self.a_operand)
            d, redo = np.ascontiguousarray(d.T), np.ascontiguousarray(redo.T)
            rows, columns = columns, rows
        down, across = d.shape
        length = slice_length(order.size, group, fda.narrow_workspace_bytes(down, across, 1))
        buffer = workspace(fda.narrow_workspace_bytes(down, across, length))
        fda.narrow(*x, *y, order, plain, d, redo, rows, columns, buffer, length, task, level, threads)
        if swapped:
            d, redo, rows, columns = np.ascontiguousarray(d.T), redo.T.copy(), columns, rows
        d = d.astype(np.float16).view(np.uint16) if self.task.output else d.view(np.uint32)
        if rows.any() or columns.any() or redo.any():
            redo_elements(low, d, redo, rows, columns, a, b, c, every=every)
        return d

    def run_batch(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """D = A B + C for many small products, shapes (batch, m, k), (batch, k, n), (batch, m, n)."""
        (count, m, k), n = a.shape, b.shape[2]
        d, marks = np.empty((count, m, n), low.d_format.container), np.empty(count, np.uint8)
        a, b, c = (np.ascontiguousarray(x) for x in (a, b, c))
        threads = threads_for(count * m * n * k)
        if self._items(k).run(a, b, c, d, marks, m, n, isa_level(), threads):
            marked = np.flatnonzero(marks)
            d[marked] = generic_batch_bits(low, a[marked], b[marked], c[marked])
        return d

    def _items(self, k: int) -> fda.NarrowItems:
        """The kernel for products of that length."""
        found = self.items.get(k)
        if found is None:
            if len(self.items) > 64:
                self.items.clear()
            sizes = (self.c_format.container.itemsize, self.d_format.container.itemsize)
            found = self.items[k] = fda.NarrowItems(self.a_operand, self.b_operand, *self._order(k), k, self.task, *sizes)
        return found

    def _order(self, k: int) -> tuple[np.ndarray, bool]:
        """Position in k of each packed place, and whether that is the plain order."""
        groups = None if self.groups is None else tuple(np.array(g) for g in self.groups)
        order = step_order(k, self.pass_terms, self.task.terms, groups)
        return order, groups is None and order.size == k

    def _addends(self, a, b, c, late: bool) -> tuple[np.ndarray, np.ndarray]:
        """c as float32 for the lanes, and the elements that they cannot compute (there c is 0); `late`: c is added outside."""
        redo = np.zeros(c.shape, np.uint8)
        if is_zero(c):  # a product without addend; the rest would read and write C several times
            return np.zeros(c.shape, np.float32), redo
        if self.c_format.name == "fp16":
            values = np.ascontiguousarray(c).view(np.float16).astype(np.float32)
            magnitude = c & 0x7FFF
            unusable = magnitude >= 0x7C00
            if self.d_format.name != "fp16":  # the lanes align c as a number of the output format
                unusable |= (magnitude != 0) & (magnitude < 0x0400)
        else:
            values = np.array(c, np.uint32, order="C").view(np.float32)
            magnitude = c & 0x7FFFFFFF
            unusable = magnitude >= 0x7F800000
            tiny = (magnitude - np.uint32(1)) < _TINY - 1
            if tiny.any():
                values[tiny] = 0
                if not self.zeros_align or late:
                    unusable |= tiny
                    if not late:  # a nonzero product makes a tiny c vanish
                        unusable &= ~self._vanishing(a, b, tiny)
        if unusable.any():
            values[unusable] = 0
            redo |= unusable
        return values, redo

    def _vanishing(self, a, b, lanes) -> np.ndarray:
        masks = [f.magnitude_mask for f in (self.a_format, self.b_format)]
        return meets_product(a, b, lanes, *masks)


def plain_alignment(dot: FusedDotAdd) -> bool:
    """Whether addends are truncated at one alignment exponent, without a floor that the lanes would meet."""
    floor = dot.exponent_floor
    return dot.alignment_rounding == "rz" and not dot.normalised_products and (floor is None or floor <= -102)


def _narrow_ranges(dot: FusedDotAdd, a: Format, b: Format, via: Format | None) -> bool:
    """Whether exponents fit in bytes, products in float32 and sums in 32 bits (head of narrow.h)."""
    if dot.terms > _PADDED_TERMS[-1] or dot.fraction_bits > 25:
        return False
    for fmt in (a, b) if via is None else (a, b, via):
        if fmt.emax > 15 or fmt.emin < -15 or fmt.fraction_bits > 10 or fmt.specials == "scale" or fmt.padding_bits:
            return False
    largest = dot.terms * largest_significand(a) * largest_significand(b) * 2.0**dot.fraction_bits
    bound = 2.0**31 if dot.terms <= 16 else 2.0**30  # the kernel for 32 products has no wide sums
    return largest < bound


def _narrow_output(dot: FusedDotAdd, c: Format, d: Format) -> bool:
    """Whether the lanes have the output rounding, and the rules that an fp16 addend or result brings into play."""
    if c.name not in ("fp32", "fp16") or (c.name == "fp16" and dot.zero_c == "format_minimum"):
        return False
    if d.name == "fp32":
        kept = dot.output_fraction_bits
        return dot.output_rounding == "rz" and (kept is None or kept <= 23)
    fp16 = d.name == "fp16" and c.name == "fp16" and dot.output_rounding == "rne"
    return fp16 and dot.output_fraction_bits is None and dot.negative_underflow == "positive"


def _narrow_operand(fmt: Format, dot: FusedDotAdd, via: Format | None) -> Operand:
    # A zero product's exponent never reaches the lanes' floor unless zeros have the format's smallest exponent.
    rule = dot.zero_operand if dot.zero_operand == "format_minimum" else "skip"
    return Operand.of(fmt, rule, via)
