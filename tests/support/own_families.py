"""Families of one's own for tests: two that state a pass, from which all else follows, and one of which nothing follows."""

from dataclasses import dataclass
from typing import ClassVar

from tensorcore_models.accumulators import Accumulator, AlignedSum
from tensorcore_models.aspects import search
from tensorcore_models.aspects.search import Field, Search, divisors


@dataclass(frozen=True)
class EvenShift(AlignedSum):
    """Products and c are aligned to the largest exponent, rounded up to an even number, and cut to `fraction_bits` below it."""

    terms: int = 4
    fraction_bits: int = 20

    left_out: ClassVar = {"kernels": "made up for a test", "probe vectors": "made up for a test"}

    step_field: ClassVar = "terms"

    def pass_bits(self, p):
        z, fmt = p.arithmetic, p.formats[3]
        numbers = [*(z.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)), p.addend]

        def finite():
            addends = z.taking_part(numbers)
            if not addends:
                return 0
            largest = z.largest_exponent(addends)
            even, bits = largest + (largest & 1), self.fraction_bits
            return z.finish(z.cut_total(addends, even, bits, "rz"), even - bits, fmt, self, "rz")

        return z.unless_special(numbers, finite, fmt, self)

    @classmethod
    def searches(cls):
        fields = (Field(("terms",), divisors), Field(("fraction_bits",), lambda i, s: range(8, 25)), *search.COMMON)
        starts = search.unscaled(lambda i: [cls(terms, bits) for terms in divisors(i) for bits in (12, 20)])
        return (Search("sums at even exponents", fields, starts, ("terms",), rank=1),)


@dataclass(frozen=True)
class GuardedOdd(AlignedSum):
    """Products are aligned and cut to one bit more than a result has; their sum and c last are rounded to odd."""

    terms: int = 4

    step_field: ClassVar = "terms"

    def pass_bits(self, p):
        z, (_, _, c_format, d_format) = p.arithmetic, p.formats[:4]
        products = [z.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)]

        def finite():
            largest, bits = z.largest_exponent(products), d_format.fraction_bits + 1
            return z.finish(z.cut_total(products, largest, bits, "rz"), largest - bits, d_format, self, "ro")

        dot = z.unless_special(products, finite, d_format, self)
        return z.add(dot, d_format, p.c, c_format, d_format, self, "ro")


@dataclass(frozen=True)
class Nothing(Accumulator):
    """States nothing but its integers."""

    terms: int = 4

    @property
    def terms_per_step(self) -> int:
        return self.terms

    def pass_bits(self, p):
        return 0
