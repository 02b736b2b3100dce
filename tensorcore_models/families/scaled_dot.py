"""Defines ScaledDotAdd, Arm's FP8 sum: exact products, scaled by a power of two, and c, rounded once."""

import dataclasses
from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

from ..explanations.descriptions import Words, rounded
from ..formats import Format
from .base import Accumulator, Conversion, Form, NanRule, SumAlgorithm
from .checks import MAX_TERMS, check_range, require
from .fused import ParametricDotAdd

#: LSCALE has seven bits.
MAX_SCALE = 127


@dataclass(frozen=True)
class ScaledDotAdd(Accumulator):
    """`ScaledDotAdd` is Arm's FP8 sum, c + 2^-scale (sum of products), rounded once to nearest even (Arm, FP8DotAddFP).

    Subnormal numbers are kept, a NaN result is the default NaN, and a sum of zeros is -0 if c and all products are -0.

    Parameters
    ----------
    terms : int
        Number of products of one sum.
    scale : int
        Edge rule: exponent by which the sum of products is scaled down, FPMR.LSCALE.
    saturate : bool
        Edge rule: whether a finite sum that overflows gives the largest finite number, FPMR.OSM.
    """

    terms: int = 4
    scale: int = 0
    saturate: bool = False
    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    step_field: ClassVar = "terms"
    edge_rules: ClassVar = {**Accumulator.edge_rules, "scale": None, "saturate": None}
    left_out: ClassVar = {
        "search": "without a scale the algorithm is an exact ParametricDotAdd, which `identify` finds",
        "probe vectors": "the vectors of exact sums have fixed numbers, which LSCALE scales",
    }

    def _check(self):
        check_range(self, "terms", 1, MAX_TERMS)
        require(0 <= self.scale <= MAX_SCALE, self, f"scale {self.scale} must be 0 to {MAX_SCALE}, which LSCALE holds")

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        most = 15 if formats[3].name == "fp16" else MAX_SCALE
        if self.scale > most:
            raise ValueError(f"scale is {self.scale}, expected 0 to {most} with results in {formats[3].name}")

    @property
    def exact(self) -> ParametricDotAdd:
        """Return the specification of the same sum without the scale."""
        return ParametricDotAdd(
            self.terms, None, output_rounding="rne", zero_sign="ieee", negative_underflow="negative", nan=self.nan
        )

    def _scaled(self, fmt: Format) -> Format:
        """Return the format of a with the scale included in its bias."""
        return dataclasses.replace(fmt, bias=fmt.bias + self.scale) if self.scale else fmt

    def interchangeable(self, length):
        """Return all products as interchangeable, because their sum is exact."""
        return self.exact.interchangeable(length)

    def pass_bits(self, p):
        z, fmt = p.arithmetic, p.formats[3]
        inner = dataclasses.replace(p, spec=self.exact, formats=(self._scaled(p.formats[0]), *p.formats[1:]))
        code = self.exact.pass_bits(inner)
        if not self.saturate or not fmt.has_inf:
            return code
        finite = z.every(z.no(x.nan | x.inf) for x in (*inner.x, *inner.y, inner.addend))
        overflow = finite & z.same(z.natural(code) & fmt.magnitude_mask, fmt.exponent_mask)
        return z.select(overflow, (z.natural(code) & fmt.sign_bit) + fmt.max_bits, code, fmt.bits)

    def conversion(self, formats):
        """Return a conversion that keeps all encodings but reads a in a format whose exponent bias includes the scale."""
        if self.saturate:
            return None
        return Conversion(self.exact, (self._scaled(formats[0]), *formats[1:]), lambda codes, side: codes)

    def plan_fields(self, formats, scale, block_size):
        from ..aspects import plans

        plans.require(not self.saturate, "sums that saturate")
        return self.exact.plan_fields((self._scaled(formats[0]), *formats[1:]), scale, block_size)

    def arrangement(self, length):
        return self.exact.arrangement(length)

    def form(self):
        return Form(SumAlgorithm.SCALED, self)

    def words(self, d):
        n, s = self.terms, self.scale
        steps = (
            f"{n} products are added exactly, their sum is multiplied by 2^-{s}, and c is added exactly."
            if s
            else f"{n} products and c are added exactly.",
            f"The total is {rounded('rne', d)} once. Subnormal numbers are kept.",
            *(("Overflow gives the largest finite number.",) if self.saturate else ()),
        )
        scale = rf"2^{{-{s}}} \, " if s else ""
        return Words(
            f"The unit adds {n} products and c exactly and rounds once", steps,
            rf"d = \mathrm{{RNE}}\left(c + {scale}\sum_{{i=1}}^{{{n}}} a_i b_i\right)",
            f"adds {n} products and the running sum exactly and rounds once",
        )  # fmt: skip

    def unrounded(self):
        return self.exact.unrounded()

    def step_error(self, unit, facts):
        inner = SimpleNamespace(formats=unit.formats, scale_format=None, block_size=None, label=unit.label)
        return self.exact.step_error(inner, facts)

    def simplest(self):
        return self.exact if not self.scale and not self.saturate else self
