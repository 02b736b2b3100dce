"""Defines GroupDotFusedSum, a fused sum of scaled groups whose products are added exactly."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ..aspects import errors, plans, search
from ..aspects.plans import ROUNDINGS, growth_bits, integer_width
from ..aspects.probes import ONE, alignment_rounding, kept_bits, output_rounding, terms_by_rounding
from ..aspects.search import Field, Search, divisors, one_of
from ..aspects.values import power
from ..explanations import descriptions as names
from ..explanations.descriptions import Words
from ..formats import get_float_format
from .aligned import ALIGNMENT_RULES, AlignedSum, aligned_fields
from .base import Arrangement, Form, SumAlgorithm
from .checks import MAX_FRACTION_BITS, MAX_TERMS, check_deterministic, check_range, require


@dataclass(frozen=True)
class GroupDotFusedSum(AlignedSum):
    """`GroupDotFusedSum` is GDFS (group dot, fused sum) of Blackwell's mxfp4 and nvfp4 products (xie-mma-sim, section IV-E).

    Products are summed exactly in groups of `group`. Each group sum is multiplied by its two block scales: significands are
    multiplied, exponents are added. The scaled sums and c are aligned to the largest exponent, truncated to `fraction_bits`
    bits, summed and rounded. The alignment exponent of a group is the sum of its scales' exponents only.

    Parameters
    ----------
    group : int
        Number of products in one exact group sum (16 for every block size).
    terms : int
        Number of products in one fused operation.
    fraction_bits, output_rounding
        Fraction bits and rounding as in :class:`FusedDotAdd`; 35 and rz on Blackwell.
    scaled_zero : {"skip_zero_products", "skip", "keeps_scale"}
        Edge rule: which groups do not count for the largest exponent. Even a group whose sum is zero has an alignment exponent,
        that of its scales. "skip_zero_products": groups whose products are all zero do not count, but groups whose products
        cancel do (mmasim 2.1.1). "skip": groups whose sum is zero do not count. "keeps_scale": all groups count.
    """

    group: int = 16
    terms: int = 64
    fraction_bits: int = 35
    output_rounding: str = "rz"
    scaled_zero: Literal["skip_zero_products", "skip", "keeps_scale"] = "skip_zero_products"

    step_field: ClassVar = "terms"
    scales_products: ClassVar[bool] = False
    takes_scales: ClassVar[bool] = True
    edge_rules: ClassVar = {**ALIGNMENT_RULES, "scaled_zero": ("skip_zero_products", "skip", "keeps_scale")}

    def _check(self):
        require(
            1 <= self.terms <= MAX_TERMS and self.group >= 1 and self.terms % self.group == 0,
            self,
            f"terms {self.terms} must be 1 to {MAX_TERMS} and a multiple of group {self.group}",
        )
        check_range(self, "fraction_bits", 1, MAX_FRACTION_BITS)
        check_deterministic(self, "output_rounding")

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        if block_size and block_size % self.group:
            raise ValueError(
                f"block_size is {block_size}, expected a multiple of the {self.group} products of a group, so that a group has "
                "one scale"
            )

    def interchangeable(self, length):
        """Return the products of each group as interchangeable, because their sum is exact."""
        return tuple(tuple(range(i, min(i + self.group, length))) for i in range(0, length, self.group))

    def pass_bits(self, p):
        """Return the encoding of the result of one GDFS operation (xie-mma-sim, section IV-E)."""
        z, fmt = p.arithmetic, p.formats[3]
        everything = [*p.x, *p.y, *(scale for pair in p.scales for scale in pair), p.addend]
        return z.unless_special(everything, lambda: self._finite(p, z, fmt), fmt, self)

    def _finite(self, p, z, fmt):
        """Return the code of the sum where no operand, scale or c is infinite or NaN."""
        terms = [p.addend]
        for start in range(0, len(p.x), self.group):
            part = slice(start, start + self.group)
            products = [z.multiply(x, y) for x, y in zip(p.x[part], p.y[part], strict=True)]
            group = z.exact_sum(products)
            if self.scaled_zero == "skip_zero_products":
                group = z.left_out(group, z.every(x.is_zero for x in products))
            elif self.scaled_zero == "skip":
                group = z.left_out(group, group.is_zero)
            for scale in p.scales[start]:
                group = z.multiply(group, scale)
            terms.append(group)
        addends = z.taking_part(terms)
        if not addends:
            return 0
        largest, bits = z.largest_exponent(addends, self.exponent_floor), self.fraction_bits
        total = z.cut_total(addends, largest, bits, "rz")
        return z.finish(total, largest - bits, fmt, self, self.output_rounding)

    def words(self, d):
        floor, in_formula = names.floor_words(self.exponent_floor)
        f = self.fraction_bits
        return Words(
            f"The unit adds groups of {self.group} products exactly, scales the sums, and adds them with {f} fraction bits",
            (
                f"Products are added exactly in groups of {self.group}.",
                "The sum of each group is multiplied by its two block scales: significands are multiplied, exponents are "
                "added.",
                "The scaled sums and c are shifted to the largest exponent; the exponent of a group is that of its "
                f"scales.{floor} Each shifted number is truncated to {f} fraction bits.",
                f"The truncated numbers are added exactly, and the sum is {names.rounded(self.output_rounding, d)}.",
            ),
            rf"g_j = \alpha_j \beta_j \sum_{{i \in G_j}} a_i b_i, \quad e = \max({in_formula}e_c,\; e_{{\alpha_j}} "
            rf"+ e_{{\beta_j}}), \quad "
            rf"d = \mathrm{{{self.output_rounding.upper()}}}\left(T_{{e-{f}}}(c) + \sum_j T_{{e-{f}}}(g_j)\right)",
            f"adds groups of {self.group} products exactly and aligns the sums by the exponents of their scales",
        )

    def plan_fields(self, formats, scale, block_size):
        a, b, c, d = formats
        fields = aligned_fields(self, formats, scale, block_size)
        operands = tuple(f.precision + f.emax - f.emin for f in (a, b))  # as fixed-point numbers
        scale_bits = 2 * scale.precision if scale else 0
        plans.require(scale is None or scale.precision <= 31, "block scales of more than 31 bits")
        integer = max(a.emax + b.emax + 2 + growth_bits(self.group) + (2 if scale else 0), 1)
        total = self.fraction_bits + integer + growth_bits(self.terms // self.group + 1) + 2
        products = sum(operands) + growth_bits(self.group) + scale_bits
        wide = integer_width(operands, max(products, total), max(c.precision, d.precision))
        return fields | {
            "family": plans.GROUPS,
            "wide": wide,
            "fraction_bits": self.fraction_bits,
            "rounding": ROUNDINGS["rz"],
            "base": a.emin - a.fraction_bits + b.emin - b.fraction_bits,
        }

    def arrangement(self, length):
        ks = list(range(length))
        return Arrangement([ks[i : i + self.group] for i in range(0, length, self.group)], [])

    def form(self):
        return Form(SumAlgorithm.GROUP_SUM, self)

    def step_error(self, unit, facts):
        """Return a bound on the error of one step, in which group sums are exact.

        Two errors remain: scaled group sums and c are truncated at the alignment, and the total is rounded once.

        Raises
        ------
        ValueError
            If the block size is not a multiple of the group, so that a group has several scales.
        """
        scales = errors.block_scales(unit)
        if scales is not None and scales.size % self.group:
            raise ValueError(
                f"{unit.label}: block_size is {scales.size}, expected a multiple of the {self.group} products of a group, so "
                "that a group has one scale"
            )
        groups = facts.groups or self.group_facts_of_formats(unit)
        count = self.terms // self.group
        cut = (count + 1) * 2.0**-self.fraction_bits
        floor = errors.alignment_floor(self, unit, groups.floor)
        relative, absolute, rounding_text = errors.output_error(self, unit.formats[3])
        text = (
            f"{count} exact group sums + 1 addend are truncated at F = {self.fraction_bits} below the exponents of their "
            f"scales, at most {groups.lift:.3g} times a group's |A||B|: {cut * groups.lift:.3g} of the largest; {rounding_text}"
        )
        total = errors.compounded(cut * groups.lift, relative)
        texts = (text, *errors.scales_text(unit))
        return errors.StepError(total, cut * 2.0 ** min(floor, 1000) + absolute, self.terms, texts)

    def group_facts_of_formats(self, unit):
        """Return bounds on how far a group's alignment exponent exceeds that of its sum, for all operands of the formats."""
        a, b = (get_float_format(f) for f in unit.formats[:2])
        scales = errors.block_scales(unit)
        smallest = a.min_subnormal * b.min_subnormal
        if scales is None:
            return errors.GroupFacts(max(1.0, 1 / smallest), 0)
        subnormal = 2 * scales.format.fraction_bits if scales.format.has_subnormals else 0
        zeros_skip = self.scaled_zero != "keeps_scale" and self.zero_operand == "skip"
        return errors.GroupFacts(max(1.0, 2.0**subnormal / smallest), None if zeros_skip else 2 * scales.format.emax)

    def group_facts(self, unit, a, b, scale_a, scale_b):
        """Return bounds on how far a group's alignment exponent exceeds that of its sum, for these operands."""
        scales, rule = errors.block_scales(unit), self.zero_operand
        lift: float = 1.0
        floor: int | None = None
        for start in range(0, a.shape[1], self.group):
            sums = np.abs(a[:, start : start + self.group]) @ np.abs(b[start : start + self.group])
            zero, top = sums == 0, np.zeros(sums.shape, np.int64)
            part = np.ones(sums.shape, bool) if self.scaled_zero == "keeps_scale" else ~zero
            ratio = np.ones(sums.shape)
            if scales is not None:
                block = start // scales.size
                row, column = scale_a[:, block, None], scale_b[None, block]
                left, right = (errors.aligned_operand(x, scales.format, rule) for x in (row, column))
                top = left.exponents + right.exponents
                part = part & left.part & right.part
                size = row * column
                zero = zero | (size == 0)
                ratio = np.where(zero | ~np.isfinite(size), 1.0, size) / np.ldexp(1.0, top)
            lifted = part & ~zero & np.isfinite(sums)
            if lifted.any():
                lift = max(lift, float((1 / (sums * ratio)[lifted]).max()))
            found = errors.top_exponent(top, part & zero)
            floor = found if floor is None or (found is not None and found > floor) else floor
        return errors.GroupFacts(lift, floor)

    @classmethod
    def searches(cls):
        fields = (
            Field(("group", "terms"), lambda i, s: [(x.group, x.terms) for x in cls._starts(i)]),
            Field(("fraction_bits",), search.widths),
            Field(("output_rounding",), one_of(*search.ROUNDINGS)),
            *search.ALIGNMENT,
            Field(("scaled_zero",), one_of("skip_zero_products", "skip", "keeps_scale")),
        )
        name = "exact sums of groups, then a fused sum"
        return (Search(name, fields, cls._starts, ("group", "terms"), rank=80),)

    @classmethod
    def _starts(cls, interface):
        if interface.scale_format is None or interface.block_size is None:
            return
        for terms in divisors(interface):
            for group in divisors(interface):
                if terms % group == 0 and interface.block_size % group == 0:
                    yield cls(group, terms)

    def probe(self, build):
        """Add vectors that show that group sums are exact, and how group sums and c are aligned."""
        group, bits = self.group, self.fraction_bits
        kept_bits(build, (0, group), bits, None)
        alignment_rounding(build, (0, group), "rz", bits, None)
        output_rounding(build, (0, group, 2 * group, 1), self.output_rounding)
        terms_by_rounding(build, self.terms, self.output_rounding)
        # c = -2^(F+1) has the quantum 2, so two group sums of 1 are each truncated to 0, and one group sum of 2 is kept.
        c = -power(bits + 1)
        nearer = c + power(bits - build.fraction_bits)
        build.add(f"1 in each of two groups of {group} is cut off below c", {0: ONE, group: ONE}, c, c)
        build.add("1 twice in one group is kept and truncates c", {0: ONE, group - 1: ONE}, c, nearer)
