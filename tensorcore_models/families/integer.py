"""Defines IntegerDotAdd, the exact sum of integer products."""

from dataclasses import dataclass
from typing import ClassVar

from ..aspects import errors, plans
from ..aspects.search import Field, Search, divisors, has, one_of
from ..explanations.descriptions import Words
from .base import Accumulator, Form, SumAlgorithm
from .checks import check_range


@dataclass(frozen=True)
class IntegerDotAdd(Accumulator):
    """`IntegerDotAdd` is the exact dot product into int32 (PTX ISA, mma.s32; AMD CDNA ISA, V_MFMA_I32; Ascend cube 16x32x16).

    Parameters
    ----------
    saturate : bool
        Whether the result of each instruction is clamped to the int32 range (`.satfinite`); else it wraps around.
    terms : int
        Number of products between two clamps.
    """

    saturate: bool = False
    terms: int = 32

    step_field: ClassVar = "terms"
    takes_integers: ClassVar[bool] = True
    left_out: ClassVar = {
        "terms": "solvers are asked about floating-point formats only",
        "probe vectors": "an integer sum has no alignment and no rounding that a vector could show",
    }

    def _check(self):
        check_range(self, "terms", 1, 1 << 16)

    def interchangeable(self, length):
        """Return all products as interchangeable, because the sum is exact."""
        return (tuple(range(length)),)

    def idle(self, formats):
        return formats[2] == formats[3]

    def pass_bits(self, p):
        """Return the encoding of c plus the exact dot product, wrapped or clamped to the range of the result."""
        a_format, b_format, c_format, d_format = p.formats
        total = c_format.decode_integer(p.c)
        total += sum(a_format.decode_integer(x) * b_format.decode_integer(y) for x, y in zip(p.a, p.b, strict=True))
        if self.saturate:
            total = min(max(total, d_format.minimum), d_format.maximum)
        return total & ((1 << d_format.bits) - 1)

    def words(self, d):
        end = "clamped to the int32 range" if self.saturate else "taken modulo 2^32"
        formula = r"c + \sum_i a_i b_i"
        clamped = rf"\min\left(2^{{31}}-1,\; \max\left(-2^{{31}},\; {formula}\right)\right)"
        return Words(
            "The unit adds integer products and c exactly and "
            + ("clamps the sum" if self.saturate else "wraps the sum around"),
            (f"Products and c are added exactly, and the sum is {end}.",),
            f"d = {clamped}" if self.saturate else rf"d \equiv {formula} \pmod{{2^{{32}}}}",
            "adds integers exactly and " + ("clamps the sum" if self.saturate else "wraps the sum around"),
        )

    def add_step(self, ks, c, to):
        end = "clamped to int32" if self.saturate else "wrapped to int32"
        return to.add([c, *ks], "exact", f"the integer sum is exact and then {end}", exact=True)

    def plan_fields(self, formats, scale, block_size):
        a, b, c, d = formats
        small = max(a.bits, b.bits) <= 16 and max(c.bits, d.bits) <= 32
        plans.require(small, "operands over 16 bits or results over 32")
        fields = {"family": plans.INTEGER, "wide": 0, "step": self.terms_per_step, "clamp": self.saturate}
        for name, fmt in zip("abcd", formats, strict=True):
            fields |= {f"{name}_bits": fmt.bits, f"{name}_signed": fmt.signed}
        return fields

    def form(self):
        return Form(SumAlgorithm.INTEGER, self)

    def step_error(self, unit, facts):
        text = "integer products and sums are exact (the bound is infinite if int32 overflows)"
        return errors.StepError(0.0, 0.0, self.terms, (text,))

    @classmethod
    def searches(cls):
        fields = (Field(("saturate",), one_of(False, True)), Field(("terms",), divisors, has("saturate")))
        return (Search("exact integer sums", fields, lambda i: [cls(terms=i.k)], rank=100),)
