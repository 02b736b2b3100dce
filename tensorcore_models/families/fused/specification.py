"""FusedDotAdd, and the matrix unit put together from parameters of which it is one point."""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ...aspects import errors
from ..aligned import ALIGNMENT_RULES, AlignedSum
from ..base import Accumulator, Form, SumAlgorithm
from ..checks import (
    MAX_FRACTION_BITS,
    MAX_TERMS,
    check_deterministic,
    check_exponent,
    check_keyed,
    check_range,
    require,
)
from . import description, lowering, steps


@dataclass(frozen=True, kw_only=True)
class FusedSum(AlignedSum):
    """The aspects of FusedDotAdd and ParametricDotAdd, which are stated once for the fields of the latter."""

    step_field: ClassVar = "terms"
    takes_scales: ClassVar[bool] = True

    @property
    def key(self) -> int | None:
        spec: Any = self  # whose fields are those of both subclasses
        return spec.seed if spec.output_rounding == "sr" else None

    def pass_bits(self, p):
        return steps.step(self, p)

    def shows_order(self, formats):
        """Return False where addends are cut to odd, which leaves their last bit set."""
        return self.alignment_rounding != "ro"

    def plan_fields(self, formats, scale, block_size):
        return lowering.plan_fields(self, formats, scale, block_size)

    def arrangement(self, length):
        return lowering.arrangement(self, length)

    def unrounded(self):
        return dataclasses.replace(self, output_rounding="rne", output_fraction_bits=None, seed=0)

    def pass_term(self, p):
        return self.pass_bits(p)

    def interchangeable(self, length):
        """Return one set of all products where one exact sum has them; two sets where even and odd k are summed apart."""
        if self.normalise_each_add or self.alignment == "pairwise":
            return super().interchangeable(length)
        steps = 2 if self.alignment == "odd_even" else 1
        return tuple(places for start in range(steps) if (places := tuple(range(start, length, steps))))

    def idle(self, formats):
        """Zeros take no part in the alignment, and c keeps all bits that a result has; no result is -0."""
        c, d = formats[2:4]
        bits = d.precision - 1 if self.output_fraction_bits is None else min(d.precision - 1, self.output_fraction_bits)
        kept = self.fraction_bits is None or self.fraction_bits >= bits
        flushes = self.flush_inputs or self.flush_outputs or self.flush_c
        signless = self.zero_sign == "positive" and self.negative_underflow == "positive"
        zeros = self.zero_operand == "skip" and signless
        return c == d and kept and zeros and not flushes and self.c_position == "early" and self.integer_bits is None


@dataclass(frozen=True)
class FusedDotAdd(FusedSum):
    """FDA(F, N) is the sum of NVIDIA's tensor cores (xie-mma-sim, section IV-C; khattak-mikaitis, section IV).

    1. NaN if any operand is NaN, a product is 0 * inf, or infinities of both signs meet among products and c; else the
       infinity there is.
    2. Products are exact and not normalised: significand product, exponent sum (plus the exponents of the block scales).
    3. All products and c are shifted to the largest exponent and kept to `fraction_bits` fraction bits, rounded by
       `alignment_rounding`.
    4. They are summed exactly.
    5. The sum is normalised and rounded by `output_rounding` to the output format (to `output_fraction_bits` fraction bits
       where these are fewer); beyond the largest finite number it is infinity in every rounding mode.

    Chains of it are xie's CoFDA.

    Parameters
    ----------
    terms : int
        N, products in one fused operation (c comes on top).
    fraction_bits : int
        F, fraction bits kept below the largest exponent.
    output_rounding : str
        Rounding to the output format: rz for fp32, rne for fp16 on all published tensor cores.
    output_fraction_bits : int or None
        Fraction bits of the result if fewer than the format's: 13 for fp8 on Ada and Hopper.
    alignment_rounding : str
        Rounding at the alignment; rz on all published tensor cores.
    normalised_products : bool
        Align products to the exponent of their leading bit instead. No published unit does (khattak-mikaitis, IV-A1).
    scaled_zero : {"skip", "keeps_scale"}
        Edge rule: whether a zero product of a block-scaled instruction keeps the exponents of its scales (where `zero_operand`
        gives zeros an exponent at all).
    seed : int
        Key of the output rounding "sr", in [0, 2**64): the draw of pass p of element e of D, counted along the rows, is that of
        :func:`tensorcore_models.encode` with this seed for the element p 2^32 + e. All products of a batch are keyed alike.
    """

    terms: int = 16
    fraction_bits: int = 25
    output_rounding: str = "rz"
    output_fraction_bits: int | None = None
    alignment_rounding: str = "rz"
    normalised_products: bool = False
    scaled_zero: Literal["skip", "keeps_scale"] = "skip"
    seed: int = 0

    edge_rules: ClassVar = {**ALIGNMENT_RULES, "scaled_zero": ("skip", "keeps_scale"), "terms": None}
    left_out: ClassVar = {"search": "it is found as a ParametricDotAdd, of which `simplest` makes it"}

    # Fields of ParametricDotAdd that are fixed here.
    sticky: ClassVar = False
    c_position: ClassVar = "early"
    alignment: ClassVar = "global"
    integer_bits: ClassVar = None
    normalise_each_add: ClassVar = False
    late_rounding: ClassVar = "rne"
    product_overflow_exponent: ClassVar = None
    flush_inputs: ClassVar = False
    flush_outputs: ClassVar = False
    flushed: ClassVar = "aligned"
    significand_parts: ClassVar = ()
    flush_c: ClassVar = False
    zero_sign: ClassVar = "positive"
    padding: ClassVar = 0

    def _check(self):
        check_range(self, "output_fraction_bits", 0, MAX_FRACTION_BITS, optional=True)
        check_range(self, "terms", 1, MAX_TERMS)
        check_range(self, "fraction_bits", 1, MAX_FRACTION_BITS)
        check_deterministic(self, "alignment_rounding")
        check_keyed(self, "output_rounding")

    def words(self, d):
        return description.fused(self, d)

    def step_error(self, unit, facts):
        return errors.aligned_error(self, unit, facts)

    def form(self):
        return Form(SumAlgorithm.FUSED if self.key is None else None, self)

    def probe(self, build):
        from .probes import fused

        if self.key is None:  # whose results follow from no hand's count
            fused(self, build)

    def parametric(self):
        return ParametricDotAdd(**{name: getattr(self, name) for name in _SHARED})


#: Fields of FusedDotAdd, which ParametricDotAdd has too.
_SHARED = tuple(field.name for field in dataclasses.fields(FusedDotAdd))


@dataclass(frozen=True)
class ParametricDotAdd(FusedSum):
    """`ParametricDotAdd` is a matrix unit put together from parameters, for units that do not exist (yet).

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
        whole product. None given: the product is one piece.
    c_position : {"early", "late", "exact"}
        c takes part in the fused sum; is added to the rounded dot product by an IEEE addition (`late_rounding`; rounding to odd
        overflows to infinity); or is added exactly to the sum of the aligned products, and the total is rounded once by
        `output_rounding`.
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
        Subnormal operands and c are taken as zero; subnormal results become zero. The sign is kept.
    flush_c : bool
        A subnormal c is taken as zero, whatever becomes of operands.
    flushed : {"aligned", "as_zero"}
        What was flushed takes part in the alignment with the smallest normal exponent, or as `zero_operand` and `zero_c` say of
        zeros that were given: with "skip" it is left out.
    zero_sign : {"positive", "ieee", "majority"}
        Edge rule: the sign of a fused sum that is exactly zero: always +0; IEEE 754's (-0 where all products are -0, and c
        where it takes part; where something cancels, -0 when rounding down); or, where all addends are zero, that of most of
        the products.
    padding : int
        +0 products that every operation has beside its own; they show in signs of zeros only.
    """

    terms: int = 16
    fraction_bits: int | None = 25
    alignment_rounding: str = "rz"
    sticky: bool = False
    normalised_products: bool = False
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
    flushed: Literal["aligned", "as_zero"] = "aligned"
    scaled_zero: Literal["skip", "keeps_scale"] = "skip"
    significand_parts: tuple[int, ...] = ()
    flush_c: bool = False
    zero_sign: Literal["positive", "ieee", "majority"] = "positive"
    padding: int = 0
    seed: int = 0

    edge_rules: ClassVar = {
        **ALIGNMENT_RULES,
        "scaled_zero": ("skip", "keeps_scale"),
        "flushed": ("aligned", "as_zero"),
        "normalised_products": None,
        "zero_sign": ("positive", "ieee", "majority"),
    }

    def _check(self):
        check_range(self, "output_fraction_bits", 0, MAX_FRACTION_BITS, optional=True)
        check_exponent(self, "product_overflow_exponent")
        check_range(self, "terms", 1, MAX_TERMS)
        check_range(self, "fraction_bits", 1, MAX_FRACTION_BITS, optional=True)
        check_range(self, "integer_bits", 2, 60, optional=True)
        check_range(self, "padding", 0, MAX_TERMS)
        for name in ("alignment_rounding", "late_rounding"):
            check_deterministic(self, name)
        check_keyed(self, "output_rounding")
        require(not self.sticky or self.alignment_rounding == "rz", self, "sticky needs alignment_rounding 'rz'")
        if self.fraction_bits is None:
            require(
                not self.sticky
                and self.integer_bits is None
                and not self.normalise_each_add
                and self.c_position != "exact",
                self,
                "exact accumulation (fraction_bits None) has neither sticky bit, integer_bits nor normalise_each_add, and an "
                "exact c is an early one",
            )
        sequential = not self.normalise_each_add or self.alignment == "global"
        require(sequential, self, "normalise_each_add is a sequential sum")
        self._check_parts()
        shows = not self.padding or self.zero_sign != "positive"
        require(shows, self, "padding shows in signs of zeros, which are all positive")

    def _check_parts(self) -> None:
        parts = self.significand_parts
        require(all(1 <= bits <= 32 for bits in parts), self, f"significand_parts {parts} must be 1 to 32 bits each")
        plain = self.alignment == "global" and not self.normalise_each_add and not self.normalised_products
        require(
            not parts or (plain and self.fraction_bits is not None and self.terms * len(parts) ** 2 <= MAX_TERMS),
            self,
            f"significand_parts go with one alignment that cuts, of at most {MAX_TERMS} products of parts, not normalised",
        )

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        parts = self.significand_parts
        for name, fmt in zip("ab", formats[:2], strict=True):
            if parts and sum(parts) != fmt.precision:
                raise ValueError(
                    f"significand_parts {parts} make up {sum(parts)} bits, {name}_format {fmt.name} has {fmt.precision}"
                )
        if parts and block_size is not None:
            raise ValueError("significand_parts are of operands without block scales")

    def words(self, d):
        return description.parametric(self, d)

    def form(self):
        """Return the form of an exact sum, of a c that is added last, of a FusedDotAdd, or of other rules."""
        if self.key is not None:
            return Form(None, self)
        if self.c_position != "early" and self.fraction_bits is not None:
            return Form(SumAlgorithm.LATE, self)
        if self.fraction_bits is None:
            return Form(SumAlgorithm.EXACT, self)
        if any(getattr(self, name) != default for name, default in BEYOND.items()):
            return Form(SumAlgorithm.PARAMETRIC, self)
        return Form(SumAlgorithm.FUSED, FusedDotAdd(**{name: getattr(self, name) for name in _SHARED}))

    def probe(self, build):
        """Add vectors of exact sums, or those of FusedDotAdd where it is one; none where c is added to the rounded sum."""
        from . import probes

        algorithm, spec = self.form()
        known = {SumAlgorithm.EXACT: probes.exact, SumAlgorithm.FUSED: probes.fused}
        if algorithm in known and self.c_position == "early":
            known[algorithm](spec, build)

    def parametric(self):
        return self

    def simplest(self):
        if any(getattr(self, name) != default for name, default in BEYOND.items()) or self.fraction_bits is None:
            return self
        return FusedDotAdd(**{name: getattr(self, name) for name in _SHARED})

    @classmethod
    def searches(cls):
        from .search import searches

        return searches(cls)


#: FusedDotAdd is the point of the space at which each of these fields has its default.
BEYOND = {field.name: field.default for field in dataclasses.fields(ParametricDotAdd) if field.name not in _SHARED}


def as_parametric(spec: Accumulator) -> ParametricDotAdd:
    """Return the point of the parametric space that computes what `spec` does.

    Raises
    ------
    TypeError
        If `spec` is not a fused algorithm with one alignment (FusedDotAdd or ParametricDotAdd).
    """
    found: Any = spec.parametric()
    if found is None:
        raise TypeError(f"{type(spec).__name__} is not a point of the parametric space; FusedDotAdd is")
    return found
