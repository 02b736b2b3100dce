"""Defines FusedDotAdd, and ParametricDotAdd, which has FusedDotAdd as a special case."""

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
    """`FusedSum` holds the aspects of FusedDotAdd and ParametricDotAdd, stated once for the fields of ParametricDotAdd."""

    step_field: ClassVar = "terms"
    takes_scales: ClassVar[bool] = True

    @property
    def key(self) -> int | None:
        spec: Any = self  # the fields are those of both subclasses
        return spec.seed if spec.output_rounding == "sr" else None

    def pass_bits(self, p):
        return steps.step(self, p)

    def shows_order(self, formats):
        """Return False where addends are rounded to odd, which sets their last bit."""
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
        """Return all products as interchangeable; where even and odd k are summed separately, only within these two sets."""
        if self.normalise_each_add or self.alignment == "pairwise":
            return super().interchangeable(length)
        steps = 2 if self.alignment == "odd_even" else 1
        return tuple(places for start in range(steps) if (places := tuple(range(start, length, steps))))

    def idle(self, formats):
        """Return whether zeros take no part in the alignment, the aligned c keeps all bits of a result, and no result is -0."""
        c, d = formats[2:4]
        bits = d.precision - 1 if self.output_fraction_bits is None else min(d.precision - 1, self.output_fraction_bits)
        kept = self.fraction_bits is None or self.fraction_bits >= bits
        flushes = self.flush_inputs or self.flush_outputs or self.flush_c
        signless = self.zero_sign == "positive" and self.negative_underflow == "positive"
        zeros = self.zero_operand == "skip" and signless
        return c == d and kept and zeros and not flushes and self.c_position == "early" and self.integer_bits is None


@dataclass(frozen=True)
class FusedDotAdd(FusedSum):
    """`FusedDotAdd` is FDA(F, N), the fused dot-add of NVIDIA's tensor cores (xie-mma-sim, IV-C; khattak-mikaitis, IV).

    1. The result is NaN if an operand is NaN, a product is 0 * inf, or products and c contain infinities of both signs. If they
       contain infinities of one sign, the result is that infinity.
    2. Products are exact and not normalised: significands are multiplied, and exponents (with those of block scales) are added.
    3. All products and c are shifted to the largest exponent and rounded by `alignment_rounding` to `fraction_bits` fraction
       bits.
    4. The shifted numbers are summed exactly.
    5. The sum is normalised and rounded by `output_rounding` to the output format, or to `output_fraction_bits` fraction bits
       if these are fewer. Beyond the largest finite number the result is infinity in every rounding mode.

    Xie et al. call chains of this operation CoFDA.

    Parameters
    ----------
    terms : int
        N, number of products in one fused operation, without c.
    fraction_bits : int
        F, number of fraction bits kept below the largest exponent.
    output_rounding : str
        Rounding to the output format; on all published tensor cores rz for fp32 and rne for fp16.
    output_fraction_bits : int or None
        Number of fraction bits of the result if they are fewer than the format's: 13 for fp8 on Ada and Hopper.
    alignment_rounding : str
        Rounding at the alignment; rz on all published tensor cores.
    normalised_products : bool
        Whether products are aligned by the exponent of their leading bit; no published unit does so (khattak-mikaitis, IV-A1).
    scaled_zero : {"skip", "keeps_scale"}
        Edge rule: whether a zero product of a block-scaled instruction takes part in the alignment with the exponents of its
        scales. It matters only if the inherited edge rule `zero_operand` is not "skip", so that zeros have an exponent.
    seed : int
        Key of the stochastic output rounding "sr", in [0, 2**64). For pass p of element e of D, counted along the rows, the
        random integer is that of :func:`tensorcore_models.encode` with this seed for element p 2^32 + e. All products of a
        batch have the same key.
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
    left_out: ClassVar = {
        "search": "`identify` finds the unit as a ParametricDotAdd, which `simplest` turns into a FusedDotAdd"
    }

    # These fields of ParametricDotAdd are fixed here.
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

        if self.key is None:  # nobody can work out stochastic results by hand
            fused(self, build)

    def parametric(self):
        return ParametricDotAdd(**{name: getattr(self, name) for name in _SHARED})


#: Names of the fields of FusedDotAdd, which ParametricDotAdd has, too.
_SHARED = tuple(field.name for field in dataclasses.fields(FusedDotAdd))


@dataclass(frozen=True)
class ParametricDotAdd(FusedSum):
    """`ParametricDotAdd` is a fused sum with free parameters, which can also describe units that nobody has built.

    The steps are those of :class:`FusedDotAdd`, varied by the parameters. :func:`as_parametric` returns a FusedDotAdd as a
    ParametricDotAdd.

    Parameters
    ----------
    terms : int
        Number of products in one operation.
    fraction_bits : int or None
        Number of fraction bits kept below the largest exponent; None for exact accumulation, which truncates nothing (Kulisch).
        For n extra alignment bits beyond an output precision of P bits it is ``P - 1 + n``; n may be negative.
    alignment_rounding : str
        Rounding of each addend at its alignment.
    sticky : bool
        Whether one more bit is kept below the fraction bits, the logical OR of all truncated bits (only with rz).
    normalised_products : bool
        Whether products are aligned by the exponent of their leading bit.
    significand_parts : tuple of int
        Widths in bits of the parts into which both significands of a product are split, from the leading bit down; they sum to
        the precision of the operand formats. Each product of two parts is aligned by the exponent of the whole product and
        rounded separately. Empty: significands are not split.
    c_position : {"early", "late", "exact"}
        Where c is added. "early": in the fused sum. "late": to the rounded dot product, by an IEEE addition with
        `late_rounding` (rounding to odd overflows to infinity). "exact": exactly to the sum of the aligned products, before the
        one rounding by `output_rounding`.
    alignment : {"global", "pairwise", "odd_even"}
        Exponents to which addends are aligned. "global": one exponent for all addends. "pairwise": that of each pair in a
        binary tree of additions; c is added after the tree. "odd_even": one exponent for products of even k and one for
        products of odd k; then both sums and c are aligned to their largest exponent.
    integer_bits : int or None
        Width of the sum's integer part in two's complement, without the sign; 2 bits hold an unnormalised product. A larger sum
        wraps around. None: the width suffices for every sum. n integer bits are n - 1 carry bits (fasi, section 3.1.4).
    normalise_each_add : bool
        Whether addends are added one by one (an early c first) and each intermediate sum is normalised to `fraction_bits` bits.
    output_rounding, output_fraction_bits
        Rounding and fraction bits of the result, as in :class:`FusedDotAdd`.
    late_rounding : str
        Rounding of the addition of a late c.
    product_overflow_exponent : int or None
        Exponent e such that products of magnitude 2^e and more are infinite; None for no such exponent.
    flush_inputs, flush_outputs : bool
        Whether subnormal operands and c are taken as zeros of the same sign, and whether subnormal results become such zeros.
    flush_c : bool
        Whether a subnormal c is taken as zero, also without `flush_inputs`.
    flushed : {"aligned", "as_zero"}
        Edge rule: exponent of flushed numbers in the alignment. "aligned": the smallest normal exponent. "as_zero": the
        exponent of a zero, which the inherited edge rules `zero_operand` and `zero_c` set
        (:class:`~tensorcore_models.accumulators.AlignedSum`).
    zero_sign : {"positive", "ieee", "majority"}
        Edge rule: sign of a fused sum that is exactly zero. "positive": always +0. "ieee": -0 if all
        addends are -0, else +0; but with `output_rounding` "rd", -0 if nonzero addends cancel or any zero addend is -0.
        "majority": if all addends are zero, -0 if more than half of the products are -0; if addends cancel, as "ieee".
    padding : int
        Number of products +0 that the unit adds in every operation; they change only the sign of a zero sum.
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
        require(
            not self.sticky or self.alignment_rounding == "rz",
            self,
            f"sticky needs alignment_rounding 'rz', got {self.alignment_rounding!r}",
        )
        if self.fraction_bits is None:
            require(
                not self.sticky
                and self.integer_bits is None
                and not self.normalise_each_add
                and self.c_position != "exact",
                self,
                "fraction_bits None (exact accumulation) goes with sticky False, integer_bits None, normalise_each_add False, "
                "and c_position 'early' or 'late'",
            )
        sequential = not self.normalise_each_add or self.alignment == "global"
        require(
            sequential,
            self,
            f"normalise_each_add adds one after the other, so it needs alignment 'global', got {self.alignment!r}",
        )
        self._check_parts()
        shows = not self.padding or self.zero_sign != "positive"
        require(shows, self, "padding changes signs of zeros only, so it needs zero_sign 'ieee' or 'majority'")

    def _check_parts(self) -> None:
        parts = self.significand_parts
        require(all(1 <= bits <= 32 for bits in parts), self, f"significand_parts {parts} must be 1 to 32 bits each")
        plain = self.alignment == "global" and not self.normalise_each_add and not self.normalised_products
        require(
            not parts or (plain and self.fraction_bits is not None and self.terms * len(parts) ** 2 <= MAX_TERMS),
            self,
            f"significand_parts need alignment 'global', fraction_bits, products and sums that are not normalised, and at most "
            f"{MAX_TERMS} products of parts in an operation",
        )

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        parts = self.significand_parts
        for name, fmt in zip("ab", formats[:2], strict=True):
            if parts and sum(parts) != fmt.precision:
                raise ValueError(
                    f"significand_parts {parts} have {sum(parts)} bits in total, expected {fmt.precision}, the significand of "
                    f"{name}_format {fmt.name}"
                )
        if parts and block_size is not None:
            raise ValueError(f"significand_parts need operands without block scales, got block_size {block_size}")

    def words(self, d):
        return description.parametric(self, d)

    def form(self):
        """Return the algorithm by which fast kernels compute this specification: that of FusedDotAdd if its fields suffice.

        Fast kernels do not round stochastically.
        """
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
        """Add the probe vectors of exact sums or of FusedDotAdd; none for other specifications and for a late c."""
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


#: Fields that FusedDotAdd lacks, with the defaults at which a ParametricDotAdd is a FusedDotAdd.
BEYOND = {field.name: field.default for field in dataclasses.fields(ParametricDotAdd) if field.name not in _SHARED}


def as_parametric(spec: Accumulator) -> ParametricDotAdd:
    """Return the ParametricDotAdd that computes the same results as `spec`.

    Raises
    ------
    TypeError
        If no ParametricDotAdd computes the results of `spec`, for example for a GroupDotFusedSum.
    """
    found: Any = spec.parametric()
    if found is None:
        raise TypeError(
            f"no ParametricDotAdd computes the results of {type(spec).__name__}: give a FusedDotAdd or a ParametricDotAdd"
        )
    return found
