"""This module runs accumulators of exact group sums with block scales (groups.h)."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from .._kernels.groups import groups
from ..families.base import SumAlgorithm
from ..formats import Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for, threads_for_product
from .common import RunningResult, Source, addends, lanes_over_rows, redo_elements
from .generic import generic_batch_bits
from .lowering import Lowered

_LOWEST = -400  # below every alignment exponent of one-byte formats and fp32 addends


@dataclass(frozen=True)
class GroupTask:
    """`GroupTask` holds the parameters of the lanes (mpg_group_task of groups.h)."""

    group: int
    groups: int
    fraction_bits: int
    floor: int
    positive_zero: bool
    offset: int


@dataclass(frozen=True, eq=False)
class GroupTables:
    """`GroupTables` holds the value of each byte of an operand and of its scales (mpg_group_source of groups.h)."""

    values: np.ndarray
    scale_values: np.ndarray
    scale_exponents: np.ndarray
    scale_special: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, unit: int, scale: Format) -> "GroupTables":
        """Return the tables of an operand with fixed-point numbers `values` in units of 2**unit, and of scales in `scale`."""
        decoded = [scale.decode_exact(code) for code in range(256)]
        special = np.array([x.kind != "finite" for x in decoded])
        significands = np.where(special, 0, [x.significand for x in decoded])
        exponents = np.where(special, 0, [x.exponent for x in decoded])
        align = np.where(significands == 0, groups.SKIP, exponents + scale.fraction_bits)
        return cls(
            values=values.astype(np.int8),
            scale_values=np.ldexp(significands.astype(np.float64), exponents + unit),
            scale_exponents=np.where(special, 0, align).astype(np.int16),
            scale_special=special.astype(np.uint8),
        )


@dataclass(frozen=True, eq=False)
class GroupsKernel:
    """`GroupsKernel` runs GroupDotFusedSum of fp4 and other formats as small, with ue4m3 or ue8m0 scales."""

    task: GroupTask
    swapped_task: GroupTask
    a: GroupTables
    b: GroupTables

    @classmethod
    def of(cls, low: Lowered) -> "GroupsKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        (algorithm, spec), scale, formats = low.form, low.scale_format, low.floating
        if (
            algorithm is not SumAlgorithm.GROUP_SUM
            or scale is None
            or formats is None
            or not _covered(spec, formats, scale)
        ):
            return None
        a, b = map(fixed_point, formats[:2])
        if a is None or b is None:
            return None
        largest_a, largest_b = (int(np.abs(x).max()) for x in (a, b))
        units = [f.emin - f.fraction_bits for f in formats[:2]]
        if not _exact(spec, largest_a, largest_b, sum(units)):
            return None
        task = GroupTask(
            group=spec.group,
            groups=spec.terms // spec.group,
            fraction_bits=spec.fraction_bits,
            floor=_LOWEST if spec.exponent_floor is None else max(_LOWEST, spec.exponent_floor),
            positive_zero=spec.negative_underflow == "positive",
            offset=largest_a,
        )
        tables = [GroupTables.of(x, unit, scale) for x, unit in zip((a, b), units, strict=True)]
        return cls(task, replace(task, offset=largest_b), *tables)

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits` does."""
        (m, k), n = a.shape, b.shape[1]
        threads = threads_for_product(m * n * k)
        values, redo, _ = addends(c, threads)
        result, swapped = RunningResult.of(values, redo), lanes_over_rows(m, n)
        if swapped:
            result = result.transposed()
        operands, tables, task = self._arranged(a, b, scale_a, scale_b, low.block_size, swapped)
        groups.groups(*operands, tables, k, result, vars(task), isa_level(), threads)
        if swapped:
            result = result.transposed()
        d = result.d.view(np.uint32)
        if result.marked:
            redo_elements(low, d, result, a, b, c, scale_a, scale_b)
        return d

    def run_batch(self, low: Lowered, a, b, c, scale_a, scale_b) -> np.ndarray:
        """Return D = A B + C for many small products, shapes (batch, m, k), (batch, k, n), (batch, m, n)."""
        (count, m, k), n = a.shape, b.shape[2]
        swapped = lanes_over_rows(m, n)
        operands, tables, task = self._arranged(a, b, scale_a, scale_b, low.block_size, swapped)
        bits, marks = np.array(c, np.uint32, order="C"), np.empty(count, np.uint8)
        threads = threads_for(count * m * n * k)
        groups.groups_batch(
            *operands, tables, k, bits.view(np.float32), marks, swapped, vars(task), isa_level(), threads
        )
        marked = np.flatnonzero(marks)
        if marked.size:
            bits[marked] = generic_batch_bits(low, a[marked], b[marked], c[marked], scale_a[marked], scale_b[marked])
        return bits

    def _arranged(
        self, a, b, scale_a, scale_b, block_size, swapped: bool
    ) -> tuple[tuple[Source, Source], tuple["GroupTables", "GroupTables"], GroupTask]:
        """Return the kernel's sources, tables and task for A and B, or for B and A if `swapped`."""
        x, y = Source.of_a(a, {}, scale_a, block_size), Source.of_b(b, {}, scale_b, block_size)
        if swapped:
            return (y, x), (self.b, self.a), self.swapped_task
        return (x, y), (self.a, self.b), self.task


def fixed_point(fmt: Format) -> np.ndarray | None:
    """Return the numbers of a one-byte format in units of its smallest number; None if it has specials or wider numbers."""
    if fmt.container.itemsize != 1 or fmt.specials != "finite" or fmt.precision + fmt.emax - fmt.emin > 7:
        return None
    decoded = [fmt.decode_exact(code) for code in range(256)]
    lowest = fmt.emin - fmt.fraction_bits
    return np.array([(-1) ** x.negative * (x.significand << max(0, x.exponent - lowest)) for x in decoded])


def _covered(spec: Any, formats: tuple[Format, ...], scale: Format) -> bool:
    """Return whether the lanes support the formats and edge rules."""
    if any(f.name != "fp32" for f in formats[2:]) or spec.output_rounding != "rz":
        return False
    if scale.signed or scale.container.itemsize != 1 or scale.emin < -127 or scale.emax > 128:
        return False
    rules = (spec.zero_operand, spec.zero_c, spec.subnormal_c, spec.scaled_zero)
    if rules != ("skip", "skip", "raw", "skip_zero_products") or spec.group > groups.LONGEST:
        return False
    floor = spec.exponent_floor
    return spec.terms // spec.group <= groups.MAX_GROUPS and (floor is None or floor <= 900)


def _exact(spec: Any, largest_a: int, largest_b: int, unit: int) -> bool:
    """Return whether group sums with A's offset fit in 16 bits, and aligned numbers and sums stay below 2^51 units."""
    largest = spec.group * largest_a * largest_b
    scaled = 4 * largest * Fraction(2) ** unit  # two scales below 2 in units of their alignment exponents
    addends = scaled * (spec.terms // spec.group) + 2
    return 2 * largest < 1 << 15 and addends * 2**spec.fraction_bits < 1 << 51
