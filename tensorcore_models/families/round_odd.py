"""Defines PairRoundOddSum, which adds pairs of products and rounds every operation to odd."""

import dataclasses
from dataclasses import dataclass

from .. import arithmetic as z
from ..aspects import plans, search
from ..aspects.plans import FLUSH_SIGNED, FLUSH_SUBNORMAL
from ..aspects.probes import ONE, single_rounding
from ..aspects.search import Search
from ..aspects.values import power
from ..explanations.descriptions import Words
from .base import Accumulator, Arrangement, Form, NanRule, SumAlgorithm
from .ieee import ieee_fields, require_lanes


@dataclass(frozen=True)
class PairRoundOddSum(Accumulator):
    """`PairRoundOddSum` is Arm's BFMMLA without the extended mode (Arm Architecture Reference Manual, BFMMLA).

    The two products of a pair are rounded and added to each other. Their sum is added to the accumulator. Every operation is in
    FP32 and rounds to odd. Subnormal operands and results are flushed to zero; overflow gives infinity.
    """

    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    @property
    def terms_per_step(self) -> int:
        return 2

    def interchangeable(self, length):
        """Return the two products of a pair as interchangeable, because they are added to each other first."""
        return ((0, 1), *((i,) for i in range(2, length))) if length > 1 else super().interchangeable(length)

    def pass_bits(self, p):
        """Return the encoding of the accumulator plus the sum of a pair of products (Arm ARM, BFMMLA)."""
        a_format, b_format, c_format, d_format = p.formats
        flush = z.SUBNORMAL
        products = [
            z.product(
                z.flushed(x, a_format.emin), z.flushed(y, b_format.emin), d_format, self, "ro", flush, to_inf=True
            )
            for x, y in zip(p.x, p.y, strict=True)
        ]
        pair = products[0]
        for product in products[1:]:
            pair = z.add(pair, d_format, product, d_format, d_format, self, "ro", flush=flush, to_inf=True)
        terms = [z.flushed(z.decode(c_format, p.c, self), c_format.emin), z.decode(d_format, pair, self)]
        return z.ieee_sum(terms, d_format, self, "ro", flush, to_inf=True)

    def words(self, d):
        return Words(
            "The unit adds pairs of products to c and rounds every operation to odd",
            (
                f"Three kinds of results are rounded to {d} (to odd): each product, the sum of each pair of products, and the "
                "sum of c and a pair.",
                "Subnormal operands and results become zero; overflow gives infinity.",
            ),
            r"d = \mathrm{RO}\left(c + \mathrm{RO}(\mathrm{RO}(a_1 b_1) + \mathrm{RO}(a_2 b_2))\right)",
            "rounds pairs of products and every sum to odd",
        )

    def shows_order(self, formats):
        """Return False, because rounding to odd keeps a trace of lost bits in the last bit, which hides the order."""
        return False

    def plan_fields(self, formats, scale, block_size):
        require_lanes(formats)
        fields = ieee_fields(self, formats, "ro", flush_inputs=FLUSH_SIGNED, to_inf=True, flush=FLUSH_SUBNORMAL)
        return fields | {"family": plans.PAIR_ODD, "c_flush": 2.0 ** formats[2].emin}

    def form(self):
        return Form(SumAlgorithm.PAIR_ODD, self)

    def arrangement(self, length):
        return Arrangement([list(range(length))], plans.binary_tree(length, 2))

    @classmethod
    def searches(cls):
        return (Search("pairs rounded to odd", search.COMMON, search.unscaled(lambda i: [cls()]), rank=40),)

    def probe(self, build):
        """Add vectors that show that products are added in pairs, and that every operation rounds to odd."""
        single_rounding(build, 0, "ro")
        half = power(-build.fraction_bits - 1)
        build.add("half a unit twice in a pair meets before c", {0: half, 1: half}, ONE, ONE + 2 * half)
        if build.row.k < 4:
            return
        # Each pair sticks to the odd neighbour: 1 + u/2 becomes 1 + u, and 1 + u + u/2 stays there.
        build.add("half a unit in each of two pairs", {0: half, 2: half}, ONE, ONE + 2 * half)
        build.add(
            "1 - 1 in two pairs and c tiny: c is lost, its stickiness not", {0: ONE, 2: -ONE}, half * half, 2 * half
        )
