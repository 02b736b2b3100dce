"""Families of one's own for tests: one that states everything in one class, one that states nothing but its integers.

The made-up unit aligns its addends to even exponents only, as a shifter would that moves by two places at a time.
"""

from dataclasses import dataclass
from typing import ClassVar

from tensorcore_models.accumulators import Accumulator, AlignedSum
from tensorcore_models.aspects import errors, search
from tensorcore_models.aspects.search import Field, Search, divisors
from tensorcore_models.explanations.descriptions import Words


@dataclass(frozen=True)
class EvenShift(AlignedSum):
    """Products and c are aligned to the largest exponent, rounded up to an even number, and cut to `fraction_bits` below it."""

    terms: int = 4
    fraction_bits: int = 20

    left_out: ClassVar = {"kernels": "made up for a test", "probe vectors": "made up for a test"}

    @property
    def terms_per_step(self) -> int:
        return self.terms

    def pass_bits(self, p):
        z, fmt = p.arithmetic, p.formats[3]
        numbers = [*(z.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)), p.addend]

        def finite():
            addends = z.taking_part(numbers)
            if not addends:
                return 0
            largest = z.largest_exponent(addends)
            even = largest + (largest & 1)
            cut = [z.cut(x, even, self.fraction_bits, "rz") for x in addends]
            return z.finish(*z.summed(cut, even, self.fraction_bits), fmt, self, "rz")

        return z.unless_special(numbers, finite, fmt, self)

    def words(self, d):
        step = (
            f"{self.terms} products and c are aligned to an even exponent, cut to {self.fraction_bits} bits and added."
        )
        return Words(
            f"Sum of {self.terms} products at even exponents", (step,), r"d = \sum_i T(a_i b_i)", "aligns evenly"
        )

    def add_step(self, ks, c, to):
        return to.add([c, *ks], f"F={self.fraction_bits}", "aligned to an even exponent")

    def step_error(self, unit, facts):
        cut = 2 * (self.terms + 1) * 2.0**-self.fraction_bits  # an even exponent is at most one above the largest
        relative, absolute, text = errors.output_error(self, unit.formats[3], 1, "rz")
        floor = errors.alignment_floor(self, unit, facts.floor)
        return errors.StepError(
            errors.compounded(cut, relative), cut * 2.0**floor + absolute, self.terms, (f"cut: {cut:.3g}", text)
        )

    @classmethod
    def searches(cls):
        fields = (Field(("terms",), divisors), Field(("fraction_bits",), lambda i, s: range(8, 25)), *search.COMMON)
        starts = search.unscaled(lambda i: [cls(terms, bits) for terms in divisors(i) for bits in (12, 20)])
        return (Search("sums at even exponents", fields, starts, ("terms",), rank=1),)

    def pass_term(self, p):
        return self.pass_bits(p)


@dataclass(frozen=True)
class Nothing(Accumulator):
    """States nothing but its integers."""

    terms: int = 4

    @property
    def terms_per_step(self) -> int:
        return self.terms

    def pass_bits(self, p):
        return 0
