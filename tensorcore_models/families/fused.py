"""Algorithms that align products to a common exponent: FDA, the late-c chain, GDFS, FDRDA, GFDRDA."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from .base import (
    ALIGNMENT_RULES,
    MAX_EXPONENT,
    MAX_FRACTION_BITS,
    MAX_TERMS,
    Accumulator,
    AlignedSum,
    NanRule,
    ZeroExponent,
    check_deterministic,
    check_exponent,
    check_kept,
    require,
)


@dataclass(frozen=True)
class FusedDotAdd(AlignedSum):
    """FDA(F, N): NVIDIA tensor cores (xie-mma-sim, section IV-C; khattak-mikaitis, section IV).

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
    """

    terms: int = 16
    fraction_bits: int = 25
    output_rounding: str = "rz"
    output_fraction_bits: int | None = None
    alignment_rounding: str = "rz"
    normalised_products: bool = False
    scaled_zero: Literal["skip", "keeps_scale"] = "skip"

    reference: ClassVar = "parametric"
    takes_scales: ClassVar[bool] = True
    edge_rules: ClassVar = {**ALIGNMENT_RULES, "scaled_zero": ("skip", "keeps_scale"), "terms": None}

    def _check(self):
        check_kept(self)
        require(1 <= self.terms <= MAX_TERMS, self, f"terms {self.terms} must be 1 to {MAX_TERMS}")
        require(
            1 <= self.fraction_bits <= MAX_FRACTION_BITS,
            self,
            f"fraction_bits {self.fraction_bits} must be 1 to {MAX_FRACTION_BITS}",
        )
        for name in ("alignment_rounding", "output_rounding"):
            check_deterministic(self, name)

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class InterleavedDotAdd(Accumulator):
    """fp8 `mma.sync` of Hopper and Blackwell: fp8 to fp16 conversion, chained FDAs over interleaved k, c added last.

    With groups G_j = {k : (k // run) mod groups = j} in the order given by `group_order`:
    ``s = FDA(0, G_0); s = FDA(s, G_1); ...; d = RNE(s + c)``, every step rounded to the output format
    (khattak-mikaitis, section IV; pinned for fp16 output by the published H100, H200 and B200 vectors).

    Parameters
    ----------
    dot : FusedDotAdd
        The fused operation of one group.
    run : int
        Consecutive k that belong to the same group.
    groups : int
        Number of groups in a step.
    group_order : tuple of int
        Order in which the groups are chained.
    via_format : str
        Format to which operands are converted (exactly) first; it fixes the exponents of subnormal operands.
    final_rounding : str
        Rounding of the last addition.
    """

    dot: FusedDotAdd = FusedDotAdd()
    run: int = 2
    groups: int = 2
    group_order: tuple[int, ...] = (0, 1)
    via_format: str = "fp16"
    final_rounding: str = "rne"

    reference: ClassVar = "interleaved"
    edge_rules: ClassVar = {**Accumulator.edge_rules, "group_order": None}

    def _check(self):
        require(self.run >= 1 and self.groups >= 1, self, f"run {self.run} and groups {self.groups} must be at least 1")
        require(
            sorted(self.group_order) == list(range(self.groups)),
            self,
            f"group_order {self.group_order} must order the groups 0 to {self.groups - 1}",
        )
        check_deterministic(self, "final_rounding")

    @property
    def terms_per_step(self) -> int:
        return self.dot.terms * self.groups


@dataclass(frozen=True)
class GroupDotFusedSum(AlignedSum):
    """GDFS: mxfp4 and nvfp4 on Blackwell (xie-mma-sim, section IV-E).

    Products are summed exactly in groups of `group`; each group sum is multiplied by its two block scales (significand by
    significand, exponents added); the scaled sums and c are aligned to the largest exponent, kept to `fraction_bits` bits
    (RZ), summed and rounded. The exponent of a group is the sum of its scales' exponents only.

    Parameters
    ----------
    group : int
        Products in one exact group sum (16, whatever the block size).
    terms : int
        Products in one fused operation.
    fraction_bits, output_rounding
        As in :class:`FusedDotAdd`; 35 and rz.
    scaled_zero : {"skip_zero_products", "skip", "keeps_scale"}
        Edge rule: which groups take no part in the alignment although their scales have exponents: those whose products are all
        zero (a group that cancels keeps its scales' exponents; mmasim 2.1.1), those whose sum is zero, or none.
    """

    group: int = 16
    terms: int = 64
    fraction_bits: int = 35
    output_rounding: str = "rz"
    scaled_zero: Literal["skip_zero_products", "skip", "keeps_scale"] = "skip_zero_products"

    reference: ClassVar = "group_dot"
    takes_scales: ClassVar[bool] = True
    edge_rules: ClassVar = {**ALIGNMENT_RULES, "scaled_zero": ("skip_zero_products", "skip", "keeps_scale")}

    def _check(self):
        require(
            1 <= self.terms <= MAX_TERMS and self.group >= 1 and self.terms % self.group == 0,
            self,
            f"terms {self.terms} must be 1 to {MAX_TERMS} and a multiple of group {self.group}",
        )
        require(1 <= self.fraction_bits <= MAX_FRACTION_BITS, self, f"fraction_bits {self.fraction_bits} out of range")
        check_deterministic(self, "output_rounding")

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class FusedDotRoundDownAdd(AlignedSum):
    """FDRDA(N): tf32, fp16 and bf16 on CDNA3 (xie-mma-sim, section IV-F).

    1. Specials as in :class:`FusedDotAdd`, c included. 2. Products exact and not normalised; at or beyond
    ``2**product_overflow_exponent`` they become infinite, which is looked at again without c. 3. Products alone are aligned to
    their largest exponent (`fraction_bits`, RZ) and summed. 4. That dot product (to `dot_fraction_bits`) and c (to
    `c_fraction_bits`) are aligned to their common largest exponent, both rounded *down*. 5. The sum is normalised, rounded
    *down* to `sum_fraction_bits` and from there to nearest even.

    Parameters
    ----------
    terms : int
        N: 4 (tf32), 8 (fp16, bf16), 16 (fp8).
    fraction_bits, dot_fraction_bits, c_fraction_bits : int
        24, 31, 24 on CDNA3.
    product_overflow_exponent : int or None
        128: products at or beyond 2^128 are infinite.
    add_rounding : str
        Rounding of dot and c at their alignment: rd; rz is the hypothetical unit of xie's fig. 2.
    output_rounding : str
        rne.
    c_inf_with_overflow : {"nan", "c"}
        Edge rule: what results where c is an infinity and a finite product overflows to the other one.
    sum_fraction_bits : int or None
        Edge rule: fraction bits to which the normalised sum is rounded down before the last rounding: 31 (mmasim 2.1.1); None:
        it is rounded once (xie-mma-sim).
    """

    terms: int = 8
    fraction_bits: int = 24
    dot_fraction_bits: int = 31
    c_fraction_bits: int = 24
    product_overflow_exponent: int | None = 128
    add_rounding: str = "rd"
    output_rounding: str = "rne"
    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)
    negative_underflow: Literal["positive", "negative"] = dataclasses.field(default="negative", kw_only=True)
    zero_c: ZeroExponent = dataclasses.field(default="minus126", kw_only=True)
    c_inf_with_overflow: Literal["nan", "c"] = "nan"
    sum_fraction_bits: int | None = 31

    reference: ClassVar = "round_down"
    edge_rules: ClassVar = {**ALIGNMENT_RULES, "c_inf_with_overflow": ("nan", "c"), "sum_fraction_bits": None}

    @property
    def parity_groups(self) -> int:
        """Interleaved groups of products that are aligned and summed apart."""
        return 1

    @property
    def c_cutoff(self) -> int | None:
        """c is rounded to zero, not down, when its exponent is more than this below the largest; None: never."""
        return None

    def _check(self):
        require(
            1 <= self.terms <= MAX_TERMS and self.terms % self.parity_groups == 0,
            self,
            f"terms {self.terms} must be 1 to {MAX_TERMS} and a multiple of {self.parity_groups}",
        )
        for name in ("fraction_bits", "dot_fraction_bits", "c_fraction_bits"):
            require(1 <= getattr(self, name) <= 60, self, f"{name} {getattr(self, name)} must be 1 to 60")
        check_exponent(self, "product_overflow_exponent")
        kept = self.sum_fraction_bits
        require(kept is None or 1 <= kept <= 60, self, f"sum_fraction_bits {kept} must be 1 to 60 or None")
        for name in ("add_rounding", "output_rounding"):
            check_deterministic(self, name)

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class GroupFusedDotRoundDownAdd(FusedDotRoundDownAdd):
    """GFDRDA(N): fp8 on CDNA3 (xie-mma-sim, section IV-H).

    As :class:`FusedDotRoundDownAdd`, but products of even and of odd k are aligned (RZ) and summed apart; the two sums are
    aligned with each other to `fraction_bits`, rounded *down*, before c joins; and c is rounded to zero instead of down when
    its exponent is more than `c_zero_below` under the largest.

    Parameters
    ----------
    c_zero_below : int
        25 on CDNA3.
    """

    terms: int = 16
    c_zero_below: int = 25

    def _check(self):
        super()._check()
        require(
            0 <= self.c_zero_below <= MAX_EXPONENT,
            self,
            f"c_zero_below {self.c_zero_below} must be 0 to {MAX_EXPONENT}",
        )

    @property
    def parity_groups(self) -> int:
        return 2

    @property
    def c_cutoff(self) -> int | None:
        return self.c_zero_below
