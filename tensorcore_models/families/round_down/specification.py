"""Defines FusedDotRoundDownAdd and GroupFusedDotRoundDownAdd, which align a dot product with c and round both down."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...aspects import plans, search
from ...aspects.plans import LARGEST_EXPONENT, ROUNDINGS, growth_bits, width_fields
from ...aspects.search import Field, Search, divisors, one_of
from ...explanations import descriptions as names
from ...explanations.descriptions import Words
from ..aligned import ALIGNMENT_RULES, AlignedSum, aligned_fields, limit_products
from ..base import Arrangement, Form, NanRule, SumAlgorithm, ZeroExponent
from ..checks import MAX_EXPONENT, MAX_TERMS, check_deterministic, check_exponent, check_range, require

#: Value of a plan's `sum_fraction_bits` for a sum that is not truncated before its last rounding.
_NEVER_CUT = 127


@dataclass(frozen=True)
class FusedDotRoundDownAdd(AlignedSum):
    """`FusedDotRoundDownAdd` is FDRDA(N), the fused dot, round-down add of CDNA3's tf32, fp16, bf16 (xie-mma-sim, IV-F).

    1. Infinities and NaN of products and c are treated as in :class:`FusedDotAdd`.
    2. Products are exact and not normalised. A product of ``2**product_overflow_exponent`` or more is infinite;
       `c_inf_with_overflow` determines the result if c is infinite with the other sign.
    3. The products, without c, are aligned to their largest exponent, truncated to `fraction_bits` fraction bits and summed
       exactly.
    4. This dot product and c are aligned to the larger of their exponents. Both are rounded *down*, the dot product to
       `dot_fraction_bits` and c to `c_fraction_bits`.
    5. Their sum is normalised, rounded *down* to `sum_fraction_bits` fraction bits, and then rounded to nearest even.

    Parameters
    ----------
    terms : int
        N, number of products of one operation: 4 (tf32), 8 (fp16, bf16), 16 (fp8).
    fraction_bits, dot_fraction_bits, c_fraction_bits : int
        Fraction bits of products, of the dot product and of c; 24, 31 and 24 on CDNA3.
    product_overflow_exponent : int or None
        Exponent e such that products of magnitude 2^e and more are infinite; None for no such exponent.
    add_rounding : str
        Rounding of the dot product and c at their alignment: rd on CDNA3. With rz this is the hypothetical unit of figure 2 of
        xie-mma-sim.
    output_rounding : str
        Rounding to the result format; rne on CDNA3.
    c_inf_with_overflow : {"nan", "c"}
        Edge rule: result where c is infinite and a finite product overflows to the infinity of the other sign.
    sum_fraction_bits : int or None
        Edge rule: fraction bits to which the normalised sum is rounded down before the last rounding: 31 (mmasim 2.1.1). With
        None the sum is rounded once (xie-mma-sim).
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

    step_field: ClassVar = "terms"
    edge_rules: ClassVar = {**ALIGNMENT_RULES, "c_inf_with_overflow": ("nan", "c"), "sum_fraction_bits": None}

    @property
    def parity_groups(self) -> int:
        """Return the number of interleaved groups of products that are aligned and summed separately."""
        return 1

    @property
    def c_cutoff(self) -> int | None:
        """Return how far c's exponent may lie below the largest exponent for c to be rounded down.

        Farther below, c is rounded toward zero. None: c is always rounded down.
        """
        return None

    def _check(self):
        require(
            1 <= self.terms <= MAX_TERMS and self.terms % self.parity_groups == 0,
            self,
            f"terms {self.terms} must be 1 to {MAX_TERMS} and a multiple of {self.parity_groups}",
        )
        for name in ("fraction_bits", "dot_fraction_bits", "c_fraction_bits"):
            check_range(self, name, 1, 60)
        check_exponent(self, "product_overflow_exponent")
        check_range(self, "sum_fraction_bits", 1, 60, optional=True)
        for name in ("add_rounding", "output_rounding"):
            check_deterministic(self, name)

    def interchangeable(self, length):
        """Return the sets of products that are summed apart: all, or even and odd k if the class separates them.

        The products of a set may change places, because their truncated values are added exactly.
        """
        return tuple(
            places for i in range(self.parity_groups) if (places := tuple(range(i, length, self.parity_groups)))
        )

    def pass_bits(self, p):
        """Return the encoding of the result of one FDRDA or GFDRDA operation (xie-mma-sim, sections IV-F and IV-H)."""
        z, c, fmt = p.arithmetic, p.addend, p.formats[3]
        products = [z.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)]
        limited = [z.overflowed(product, self.product_overflow_exponent) for product in products]

        def finite():
            return self._finite(z, limited, c, fmt)

        if self.c_inf_with_overflow == "nan":
            return z.unless_special([*limited, c], finite, fmt, self)
        return z.unless_special([*products, c], lambda: z.unless_special(limited, finite, fmt, self), fmt, self)

    def _finite(self, z, products, c, fmt):
        """Return the code of the dot product plus c where no addend is infinite or NaN."""
        groups = [z.taking_part(products[i :: self.parity_groups]) for i in range(self.parity_groups)]
        sums = [z.cut_sum(group, self.fraction_bits, "rz") for group in groups if group]
        if len(sums) == 2:
            sums = [z.cut_sum(sums, self.fraction_bits, self.add_rounding)]
        dot, start = z.taking_part(sums), z.taking_part([c])
        if not [*dot, *start]:
            return 0
        largest = z.largest_exponent([*dot, *start], self.exponent_floor)
        bits = max(self.dot_fraction_bits, self.c_fraction_bits)
        totals = [
            z.cut(x, largest, self.dot_fraction_bits, self.add_rounding) << (bits - self.dot_fraction_bits) for x in dot
        ]
        for x in start:
            kept = z.cut(x, largest, self.c_fraction_bits, self.add_rounding)
            if self.c_cutoff is not None:
                to_zero = z.cut(x, largest, self.c_fraction_bits, "rz")
                kept = z.select(z.farther(x, largest, self.c_cutoff), to_zero, kept)
            totals.append(kept << (bits - self.c_fraction_bits))
        total, exponent = z.summed(totals, largest, bits)
        if self.sum_fraction_bits is not None:
            total, exponent = z.rounded_down(total, exponent, self.sum_fraction_bits)
        return z.finish(total, exponent, fmt, self, self.output_rounding)

    def shows_order(self, formats):
        """Return False, because c is rounded down like the dot product, so the search would take c for one of its products."""
        return False

    def words(self, d):
        grouped = self.parity_groups > 1
        f, f_dot, f_c = self.fraction_bits, self.dot_fraction_bits, self.c_fraction_bits
        steps = [
            f"{self.terms} products are formed exactly and not normalised. A product of "
            f"2^{self.product_overflow_exponent} or more is infinite.",
            f"The products, without c, are shifted to their largest exponent, truncated to {f} fraction bits, and added "
            "exactly.",
            f"This dot product and c are shifted to the larger of their exponents. The dot product is rounded "
            f"{names.ROUNDINGS[self.add_rounding]} to {f_dot} fraction bits, and c is rounded "
            f"{names.ROUNDINGS[self.add_rounding]} to {f_c}.",
            "Their sum is "
            + (
                f"first rounded down to {self.sum_fraction_bits} fraction bits and then "
                if self.sum_fraction_bits
                else ""
            )
            + f"{names.rounded(self.output_rounding, d)}.",
        ]
        if grouped:
            steps[1] = (
                "The products are added in two groups, even k and odd k. In each group they are shifted to the largest "
                f"exponent, truncated to {f} fraction bits, and added exactly. The two sums are aligned, rounded down, and "
                "added."
            )
            steps.append(
                f"If the exponent of c is more than {self.c_cutoff} below the largest, c is rounded toward zero, not down."
            )
        groups = " in two groups, even and odd k" if grouped else ""
        dot = (
            r"s_{\mathrm{even}} + s_{\mathrm{odd}}" if grouped else rf"\sum_{{i=1}}^{{{self.terms}}} T_{{{f}}}(a_i b_i)"
        )
        return Words(
            f"The unit adds {self.terms} products, then aligns their sum with c and rounds both down",
            tuple(steps),
            rf"s = {dot}, \quad d = \mathrm{{RNE}}\left(\mathrm{{RD}}_{{{f_dot}}}(s) + \mathrm{{RD}}_{{{f_c}}}(c)\right)",
            f"truncates {self.terms} products to {f} fraction bits, adds them{groups}, aligns their sum with the running sum, "
            "and rounds both down",
        )

    def plan_fields(self, formats, scale, block_size):
        a, b, c, d = formats
        fields = aligned_fields(self, formats, None, None)
        operands = (a.precision, b.precision)
        widest = max(self.fraction_bits, self.dot_fraction_bits, self.c_fraction_bits)
        total = widest + 2 + growth_bits(self.terms + 1) + 3
        fields.update(
            family=plans.ROUND_DOWN,
            **width_fields(operands, max(sum(operands), total), c, d),
            fraction_bits=self.fraction_bits,
            product_fraction=a.fraction_bits + b.fraction_bits,
            product_integer=2,
            dot_fraction_bits=self.dot_fraction_bits,
            c_fraction_bits=self.c_fraction_bits,
            add_rounding=ROUNDINGS[self.add_rounding],
            c_wins=self.c_inf_with_overflow == "c",
            sum_fraction_bits=_NEVER_CUT if self.sum_fraction_bits is None else self.sum_fraction_bits,
        )
        if self.c_cutoff is not None:
            plans.require(abs(self.c_cutoff) < LARGEST_EXPONENT, f"c_zero_below is beyond {LARGEST_EXPONENT}")
            fields["cutoff"] = self.c_cutoff
        limit_products(fields, self.product_overflow_exponent)
        return fields

    def arrangement(self, length):
        return Arrangement([list(range(length))[i :: self.parity_groups] for i in range(self.parity_groups)], [])

    def form(self):
        return Form(SumAlgorithm.ROUND_DOWN, self)

    def unrounded(self):
        return self

    @classmethod
    def searches(cls):
        fields = (
            Field(("terms",), divisors),
            Field(("fraction_bits",), lambda i, s: range(1, search.MAX_WIDTH + 1)),
            Field(("dot_fraction_bits",), lambda i, s: range(1, search.MAX_WIDTH + 1)),
            Field(("c_fraction_bits",), lambda i, s: range(1, search.MAX_WIDTH + 1)),
            Field(("sum_fraction_bits",), lambda i, s: [None, *range(1, search.MAX_WIDTH + 1)]),
            Field(("add_rounding",), one_of(*search.ROUNDINGS)),
            Field(("output_rounding",), one_of(*search.ROUNDINGS)),
            Field(("product_overflow_exponent",), search.overflows),
            Field(("c_inf_with_overflow",), one_of("nan", "c"), lambda i, s: s.product_overflow_exponent is not None),
            *search.ALIGNMENT,
        )
        starts = search.unscaled(lambda i: [cls(terms) for terms in divisors(i)])
        return (Search("fused sums rounded down", fields, starts, ("terms",), rank=90),)

    def probe(self, build):
        from .probes import probe

        probe(self, build)


@dataclass(frozen=True)
class GroupFusedDotRoundDownAdd(FusedDotRoundDownAdd):
    """`GroupFusedDotRoundDownAdd` is GFDRDA(N), the grouped FDRDA of CDNA3's fp8 (xie-mma-sim, section IV-H).

    It differs from :class:`FusedDotRoundDownAdd` in two ways:

    - Products of even k and of odd k are aligned, truncated and summed separately. The two sums are then aligned with each
      other, rounded *down* to `fraction_bits` fraction bits and added, before c is added.
    - c is rounded toward zero, not down, if its exponent is more than `c_zero_below` below the largest exponent.

    Parameters
    ----------
    c_zero_below : int
        Largest distance of the exponent of c below the largest exponent at which c is still rounded down; 25 on CDNA3.
    """

    terms: int = 16
    c_zero_below: int = 25

    def _check(self):
        super()._check()
        check_range(self, "c_zero_below", 0, MAX_EXPONENT)

    @property
    def parity_groups(self) -> int:
        return 2

    @property
    def c_cutoff(self) -> int | None:
        return self.c_zero_below

    @classmethod
    def searches(cls):
        (wider,) = super().searches()
        fields = (*wider.fields, Field(("c_zero_below",), lambda i, s: range(0, 2 * search.MAX_WIDTH)))
        starts = search.unscaled(lambda i: [cls(terms) for terms in divisors(i) if terms % 2 == 0])
        return (Search("even and odd fused sums rounded down", fields, starts, ("terms",), rank=95),)
