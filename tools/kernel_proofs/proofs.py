"""This module lists the lemmas that together prove a kernel's specification, for each accumulator (docs/proofs.md)."""

from collections.abc import Iterator
from dataclasses import dataclass

from tensorcore_models.formats import IntegerFormat, get_float_format, get_format

from . import down_lemmas as down
from . import group_lemmas as groups
from . import narrow_lemmas as narrow
from . import wide_lemmas as wide
from .lemmas import Lemma

#: Kernels: 32-bit lanes, those that round down as CDNA3 does, 64-bit lanes, exact group sums, integers.
KERNELS = ("narrow", "down", "wide", "groups", "integer")
_GROUP = 16  # products of a group sum


@dataclass(frozen=True)
class Case:
    """`Case` is a fused dot-add, a dot-round-down-add, a sum of group sums or an integer dot product with a proved kernel."""

    kernel: str  #: one of :data:`KERNELS`
    operands: str  #: format of a and b
    result: str  #: format of c and d
    #: terms, fraction_bits: N and F
    terms: int
    fraction_bits: int
    output_fraction_bits: int | None  #: as in :class:`FusedDotAdd`
    units: str  #: units with this arithmetic

    def lemmas(self) -> Iterator[Lemma]:
        """Return the lemmas that the proof of this case consists of."""
        yield from getattr(self, f"_{self.kernel}")()

    def _narrow(self) -> Iterator[Lemma]:
        fmt, f = get_float_format(self.operands), self.fraction_bits
        bound = narrow.sum_bound(fmt, fmt, self.terms, f) + (1 << (f + 1)) - 1
        yield narrow.product_is_exact(fmt, fmt)
        yield narrow.product_is_aligned(fmt, fmt, f)
        yield narrow.addend_is_aligned(f)
        yield narrow.sum_is_exact(fmt, fmt, self.terms, f)
        if bound >> 31:
            yield narrow.wrapped_sum_is_truncated(fmt, fmt, self.terms, f)
        if self.result == "fp32":
            yield narrow.result_is_truncated(bound, f, self.output_fraction_bits)
        else:
            yield narrow.result_is_nearest(bound, f, -68)
        yield narrow.exponent_bytes(fmt, fmt)
        yield narrow.powers_are_in_float32(fmt)
        yield narrow.powers_are_in_the_lanes(f)

    def _down(self) -> Iterator[Lemma]:
        fmt, f = get_float_format(self.operands), self.fraction_bits
        bound, guard = narrow.sum_bound(fmt, fmt, self.terms, f), 31 - f
        yield narrow.product_is_exact(fmt, fmt)
        yield narrow.product_is_aligned(fmt, fmt, f)
        yield narrow.sum_is_exact(fmt, fmt, self.terms, f)
        yield narrow.exponent_bytes(fmt, fmt)
        yield down.parts_are_floors(bound, guard)
        yield down.addend_is_floor(f)
        yield down.result_is_rounded_once(bound + (1 << (f + 1)) - 1, f, guard, 31)

    def _wide(self) -> Iterator[Lemma]:
        f = self.fraction_bits
        yield wide.adding_rounds_down(2 * get_float_format(self.operands).precision)
        yield wide.truncation_is_floor_and_count()
        yield wide.lowest_bit_of_product()
        yield wide.words_count_negative_fractions(f)
        yield wide.count_is_added()
        yield wide.addend_is_truncated(f)
        yield wide.result_is_truncated(f)
        yield wide.nearest_by_adding(2 * get_float_format(self.operands).precision)

    def _groups(self) -> Iterator[Lemma]:
        fmt = get_float_format(self.operands)
        yield groups.sums_stay_in_words(fmt, fmt, _GROUP)
        for scale in map(get_float_format, ("ue4m3", "ue8m0")):
            yield groups.scaled_sums_are_exact(fmt, fmt, scale, _GROUP)
            yield groups.words_say_what_takes_part(scale)
        yield groups.adding_truncates(24)
        yield groups.result_is_truncated(self.fraction_bits)

    def _integer(self) -> Iterator[Lemma]:
        fmt = get_format(self.operands)
        assert isinstance(fmt, IntegerFormat)
        yield groups.clamped_sum()
        yield groups.integer_sums_fit((fmt.minimum, fmt.maximum), (fmt.minimum, fmt.maximum), self.terms)


CASES: tuple[Case, ...] = (
    Case("narrow", "fp16", "fp32", 4, 23, None, "V100"),
    Case("narrow", "fp16", "fp32", 8, 24, None, "A100, Ada"),
    Case("narrow", "fp16", "fp32", 16, 25, None, "H100, B200"),
    Case("narrow", "fp16", "fp16", 8, 24, None, "A100, Ada"),
    Case("narrow", "fp16", "fp16", 16, 25, None, "H100, B200"),
    Case("narrow", "e4m3fn", "fp32", 16, 13, 13, "Ada, mma.sync"),
    Case("narrow", "e4m3fn", "fp32", 32, 13, 13, "H100, wgmma"),
    Case("narrow", "e5m2", "fp32", 32, 13, 13, "H100, wgmma"),
    Case("narrow", "e4m3fn", "fp16", 32, 13, None, "H100, wgmma"),
    Case("down", "fp16", "fp32", 8, 24, None, "MI300"),
    Case("wide", "bf16", "fp32", 8, 24, None, "A100, Ada"),
    Case("wide", "bf16", "fp32", 16, 25, None, "H100, B200"),
    Case("wide", "tf32", "fp32", 4, 24, None, "A100, Ada"),
    Case("wide", "tf32", "fp32", 8, 25, None, "H100, B200"),
    Case("groups", "e2m1", "fp32", 64, 35, None, "B200, nvfp4 and mxfp4"),
    Case("integer", "s8", "s32", 32, 0, None, "A100, H100"),
    Case("integer", "u8", "s32", 32, 0, None, "A100, H100"),
    Case("integer", "s4", "s32", 64, 0, None, "A100"),
)
