"""A matrix unit put together from parameters, of which FDA is one point."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from .base import (
    ALIGNMENT_RULES,
    MAX_FRACTION_BITS,
    MAX_TERMS,
    Accumulator,
    AlignedSum,
    check_deterministic,
    check_exponent,
    check_kept,
    require,
)
from .fused import FusedDotAdd


@dataclass(frozen=True)
class ParametricDotAdd(AlignedSum):
    """A matrix unit put together from parameters, for units that do not exist (yet).

    Every published fused algorithm is a point of this space (:func:`as_parametric`); see :class:`FusedDotAdd` for the steps.

    Parameters
    ----------
    terms : int
        Products in one operation.
    fraction_bits : int or None
        Fraction bits kept below the largest exponent; None: nothing is cut off (exact accumulation, Kulisch). An output
        precision of P with n extra alignment bits is ``P - 1 + n``; n may be negative.
    alignment_rounding : str
        Rounding of each addend at its alignment.
    sticky : bool
        One more bit is kept below the fraction bits, the logical OR of all that was cut off (only with rz).
    normalised_products : bool
        Products are aligned by the exponent of their leading bit.
    significand_parts : tuple of int
        Bits of the parts into which the significands of both operands are cut, from the leading bit down; they make up the
        precision of the operand formats. Each product of two parts is aligned and rounded by itself, at the exponent of the
        whole product. None: the product is one piece.
    c_position : {"early", "late", "exact"}
        c takes part in the fused sum; is added to the rounded dot product by an IEEE addition (`late_rounding`; rounding to odd
        overflows to infinity); or is added exactly to the sum of the aligned products, and the total is rounded once by
        `output_rounding`, an exact zero with the sign that IEEE 754 gives the sum.
    alignment : {"global", "pairwise", "odd_even"}
        One alignment for all addends; a binary tree of two-operand alignments; or even and odd k apart and then with each
        other (c joins the last step).
    integer_bits : int or None
        Width of the sum's integer part, two's complement, sign apart (2 hold an unnormalised product); beyond it the sum wraps
        (fasi, section 3.1.4: carry bits are the integer bits after the first). None: wide enough.
    normalise_each_add : bool
        Addends are added one by one (c first if early), each intermediate sum normalised to `fraction_bits` bits.
    output_rounding, output_fraction_bits
        As in :class:`FusedDotAdd`.
    late_rounding : str
        Rounding of a late addition of c.
    product_overflow_exponent : int or None
        Products at or beyond 2 to this power are infinite.
    flush_inputs, flush_outputs : bool
        Subnormal operands and c are taken as zero; subnormal results become zero. The sign is kept. What was flushed takes part
        in the alignment with the smallest normal exponent; `zero_operand` and `zero_c` are about zeros that were given.
    flush_c : bool
        A subnormal c is taken as zero, whatever becomes of operands.
    zero_sign : {"ieee", "majority"}
        Edge rule, with an exact c: the sign of a result of zero products and a c that is zero: -0 where all of them are -0; or
        that of most of the products, whatever c's is.
    padding : int
        +0 products that every operation has beside its own; they show in signs of zeros only.
    """

    terms: int = 16
    fraction_bits: int | None = 25
    alignment_rounding: str = "rz"
    sticky: bool = False
    normalised_products: bool = False
    significand_parts: tuple[int, ...] = ()
    c_position: Literal["early", "late", "exact"] = "early"
    alignment: Literal["global", "pairwise", "odd_even"] = "global"
    integer_bits: int | None = None
    normalise_each_add: bool = False
    output_rounding: str = "rz"
    output_fraction_bits: int | None = None
    late_rounding: str = "rne"
    product_overflow_exponent: int | None = None
    flush_inputs: bool = False
    flush_outputs: bool = False
    scaled_zero: Literal["skip", "keeps_scale"] = "skip"
    flush_c: bool = False
    zero_sign: Literal["ieee", "majority"] = "ieee"
    padding: int = 0

    reference: ClassVar = "parametric"
    takes_scales: ClassVar[bool] = True
    edge_rules: ClassVar = {
        **ALIGNMENT_RULES,
        "scaled_zero": ("skip", "keeps_scale"),
        "normalised_products": (False, True),
        "zero_sign": ("ieee", "majority"),
    }

    def _check(self):
        check_kept(self)
        check_exponent(self, "product_overflow_exponent")
        require(1 <= self.terms <= MAX_TERMS, self, f"terms {self.terms} must be 1 to {MAX_TERMS}")
        for name in ("alignment_rounding", "output_rounding", "late_rounding"):
            check_deterministic(self, name)
        require(not self.sticky or self.alignment_rounding == "rz", self, "sticky needs alignment_rounding 'rz'")
        if self.fraction_bits is None:
            require(
                not self.sticky and self.integer_bits is None and not self.normalise_each_add,
                self,
                "exact accumulation (fraction_bits None) has neither sticky bit, integer_bits nor normalise_each_add",
            )
        else:
            require(
                1 <= self.fraction_bits <= MAX_FRACTION_BITS,
                self,
                f"fraction_bits {self.fraction_bits} must be 1 to {MAX_FRACTION_BITS} or None",
            )
        require(
            not (self.normalise_each_add and self.alignment != "global"), self, "normalise_each_add is a sequential sum"
        )
        parts = self.significand_parts
        require(all(1 <= bits <= 32 for bits in parts), self, f"significand_parts {parts} must be 1 to 32 bits each")
        plain = self.alignment == "global" and not self.normalise_each_add and not self.normalised_products
        require(not parts or (plain and self.terms * len(parts) ** 2 <= MAX_TERMS), self,
                f"significand_parts go with one alignment of at most {MAX_TERMS} products of parts, not normalised")
        require(0 <= self.padding <= MAX_TERMS, self, f"padding {self.padding} must be 0 to {MAX_TERMS}")
        exact = self.c_position == "exact"
        require(
            exact or (self.zero_sign == "ieee" and not self.padding),
            self,
            "zero_sign and padding are about sums with c_position 'exact'",
        )
        require(
            self.integer_bits is None or 2 <= self.integer_bits <= 60,
            self,
            f"integer_bits {self.integer_bits} must be 2 to 60, or None",
        )

    @property
    def terms_per_step(self) -> int:
        return self.terms


def as_parametric(spec: Accumulator) -> ParametricDotAdd:
    """The point of the parametric space that computes what `spec` does.

    Raises
    ------
    TypeError
        If `spec` is not a fused algorithm with one alignment (FusedDotAdd or ParametricDotAdd).
    """
    if isinstance(spec, ParametricDotAdd):
        return spec
    if not isinstance(spec, FusedDotAdd):
        raise TypeError(f"{type(spec).__name__} is not a point of the parametric space; FusedDotAdd is")
    shared = {field.name for field in dataclasses.fields(FusedDotAdd)}
    return ParametricDotAdd(**{name: getattr(spec, name) for name in shared})
