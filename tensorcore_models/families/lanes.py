"""Defines LanedFMA, interleaved chains of fused multiply-adds."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from .. import arithmetic as z
from ..aspects import plans, search
from ..aspects.plans import FLUSH_SIGNED, FLUSH_TINY, KEEP
from ..aspects.probes import ONE, single_rounding
from ..aspects.search import Field, Search, divisors, one_of
from ..aspects.values import power
from ..explanations.descriptions import Words, rounded
from ..formats import get_float_format
from .base import Accumulator, Arrangement, Form, NanRule, SumAlgorithm
from .checks import MAX_TERMS, require
from .ieee import X86_RULES, ieee_fields, require_lanes


@dataclass(frozen=True)
class LanedFMA(Accumulator):
    """`LanedFMA` is the sum of AMX's TDPBF16PS and TDPFP16PS: interleaved chains of FMAs (Intel SDM).

    Chain l, called a lane, starts from zero and takes k = l, l + lanes, ... The results of the lanes are added in order, and
    their total is added to c last. Every operation is in FP32 and rounds to nearest even. A result below the smallest normal
    number (after rounding with an unbounded exponent) becomes a zero of the same sign. A subnormal c is taken as zero.

    Parameters
    ----------
    lanes : int
        Number of lanes; 2 in TDPBF16PS.
    terms : int
        Number of products in one instruction.
    flush_inputs : bool
        Whether subnormal operands of A and B are taken as zeros: True for bf16 operands, False for fp16 operands.
    pairs : {"none", "two_lanes"}
        Edge rule of AMX-FP8: order in which the four products of a dword are added, which Intel's text leaves open.
        "none": one after the other, in one chain. "two_lanes": products 0 and 1 are added to each other and then to one lane;
        products 2 and 3 are added to each other and then to another lane. Every operation is rounded, and operands below 2^-14
        (subnormal in fp16) are zeros (Bochs 783b58fd6, amx.cc).
    """

    lanes: int = 2
    terms: int = 32
    flush_inputs: bool = True
    pairs: Literal["none", "two_lanes"] = "none"
    nan: NanRule = dataclasses.field(default="x86", kw_only=True)

    step_field: ClassVar = "terms"
    edge_rules: ClassVar = {**X86_RULES, "pairs": ("none", "two_lanes")}
    left_out: ClassVar = {
        "symmetries": "a NaN result has the payload of the first NaN, so the order of the products matters",
    }

    def _check(self):
        require(
            1 <= self.lanes <= self.terms <= MAX_TERMS and self.terms % self.lanes == 0,
            self,
            f"terms {self.terms} must be at most {MAX_TERMS} and a multiple of lanes {self.lanes}",
        )
        dwords = self.pairs == "none" or (self.terms % 4 == 0 and self.lanes == 1)
        require(
            dwords,
            self,
            f"pairs 'two_lanes' with lanes {self.lanes} and terms {self.terms}: choose lanes 1 and a multiple of 4 terms",
        )

    def pass_bits(self, p):
        """Return the encoding of c plus the sum of interleaved FMA chains that start from zero (Intel SDM, TDPBF16PS)."""
        a_format, b_format, c_format, d_format = p.formats
        if self.pairs == "two_lanes":
            return self._joined(self._lanes_of_pairs(p), p)
        lanes = []
        for lane in range(self.lanes):
            total = 0
            for x, y in zip(p.x[lane :: self.lanes], p.y[lane :: self.lanes], strict=True):
                if self.flush_inputs:
                    x, y = z.flushed(x, a_format.emin), z.flushed(y, b_format.emin)
                total = z.fma(x, y, z.decode(d_format, total, self), d_format, self, "rne", flush=z.TINY)
            lanes.append(total)
        return self._joined(lanes, p)

    def _lanes_of_pairs(self, p) -> list[int]:
        """Return the codes of two lanes, to which pairs of products are added in turn."""
        d, lanes = p.formats[3], [0, 0]
        x, y = ([z.flushed(v, get_float_format("fp16").emin) for v in operands] for operands in (p.x, p.y))
        for start in range(0, len(x), 2):
            both = [z.product(x[k], y[k], d, self, "rne", z.TINY) for k in range(start, min(start + 2, len(x)))]
            pair = both[0] if len(both) == 1 else z.add(both[0], d, both[1], d, d, self, flush=z.TINY)
            lanes[start // 2 % 2] = z.add(lanes[start // 2 % 2], d, pair, d, d, self, flush=z.TINY)
        return lanes

    def _joined(self, lanes: list[int], p) -> int:
        """Return the code of the lanes added in order, with c added last."""
        _, _, c_format, d_format = p.formats
        total = lanes[0]
        for lane in lanes[1:]:
            total = z.add(total, d_format, lane, d_format, d_format, self, flush=z.TINY)
        terms = [z.flushed(z.decode(c_format, p.c, self), c_format.emin), z.decode(d_format, total, self)]
        return z.ieee_sum(terms, d_format, self, "rne", z.TINY)

    def words(self, d):
        if self.pairs == "two_lanes":
            return self._words_of_pairs(d)
        if self.lanes == 1:
            return self._one_chain(d)
        steps = (
            f"Product k goes to lane k mod {self.lanes}. Each lane starts from zero and adds its products by fused "
            f"multiply-adds. Every multiply-add is {rounded('rne', d)}.",
            "The lanes are added in order, and their total is added to c last.",
            self._flushes,
        )
        total = " + ".join(f"l_{j}" for j in range(self.lanes))
        lanes = rf"l_j = \mathrm{{FMA\ chain\ of}}\ a_k b_k,\ k \bmod {self.lanes} = j"
        return Words(
            f"The unit adds {self.lanes} interleaved chains of fused multiply-adds, and then c",
            steps,
            rf"{lanes}, \quad d = \mathrm{{RNE}}(c + \mathrm{{RNE}}({total}))",
            f"adds {self.lanes} interleaved chains that start from zero, rounds after every product, and adds the running sum "
            "last",
        )

    @property
    def _flushes(self) -> str:
        operands = ", subnormal operands," if self.flush_inputs else ""
        return f"Subnormal results{operands} and a subnormal c become zero."

    def _one_chain(self, d: str) -> Words:
        steps = (
            "Products are added by fused multiply-adds in 1 chain, which starts from zero. "
            f"Every multiply-add is {rounded('rne', d)}.",
            "The total is added to c last.",
            self._flushes,
        )
        return Words(
            "The unit adds a chain of fused multiply-adds, and then c", steps,
            r"l = \mathrm{FMA\ chain\ of}\ a_k b_k, \quad d = \mathrm{RNE}(c + l)",
            "adds a chain that starts from zero, rounds after every product, and adds the running sum last",
        )  # fmt: skip

    def _words_of_pairs(self, d: str) -> Words:
        steps = (
            "Each dword has four products. The sum of the first two is added to one lane, the sum of the last two to another "
            f"lane. The lanes start from zero. Products and sums are {rounded('rne', d)}.",
            "The lanes are added, and their total is added to c last.",
            "Subnormal results, operands below 2^-14, and a subnormal c become zero.",
        )
        formula = r"d = \mathrm{RNE}(c + \mathrm{RNE}(l_0 + l_1))"
        return Words(
            "The unit adds pairs of products to two lanes, and then c",
            steps,
            formula,
            "adds pairs of products to two lanes and the running sum last",
        )

    def plan_fields(self, formats, scale, block_size):
        require_lanes(formats)
        two = self.pairs == "two_lanes"
        flush = FLUSH_SIGNED if self.flush_inputs or two else KEEP
        fields = ieee_fields(self, formats, "rne", flush_inputs=flush, flush=FLUSH_TINY)
        if two:
            fields["a"]["flush_below"] = fields["b"]["flush_below"] = get_float_format("fp16").emin
        return fields | {"family": plans.TWO_LANES if two else plans.LANED, "c_flush": 2.0 ** formats[2].emin}

    def arrangement(self, length):
        return Arrangement([list(range(length))[lane :: self.lanes] for lane in range(self.lanes)], [])

    def form(self):
        return Form(SumAlgorithm.LANES if self.pairs == "none" else None, self)

    @classmethod
    def searches(cls):
        fields = (
            Field(("lanes", "terms"), lambda i, s: [(x.lanes, x.terms) for x in cls._starts(i) if x.flush_inputs]),
            Field(("flush_inputs",), one_of(False, True), lambda i, s: s.pairs == "none"),
            Field(("pairs",), one_of("none", "two_lanes"), lambda i, s: s.lanes == 1 and s.terms % 4 == 0),
            *search.COMMON,
        )
        shape = ("lanes", "terms", "pairs")
        return (Search("lanes of fused multiply-adds", fields, search.unscaled(cls._starts), shape, rank=20),)

    @classmethod
    def _starts(cls, interface):
        for terms in divisors(interface):
            for lanes in (n for n in (1, 2, 4, 8) if terms % n == 0):
                for flush in (False, True):
                    yield cls(lanes, terms, flush)
            if terms % 4 == 0:
                yield cls(1, terms, False, "two_lanes")

    def simplest(self):
        """Return a copy with `flush_inputs` False if `pairs` is "two_lanes", which takes subnormal operands as zeros anyway."""
        return dataclasses.replace(self, flush_inputs=False) if self.pairs != "none" else self

    def probe(self, build):
        """Add vectors that show which products share a lane, that lanes start from zero, and that c is added last."""
        single_rounding(build, 0, "rne")
        half = power(-build.fraction_bits - 1)
        build.add("half a unit twice in one lane meets before c", {0: half, 2: half}, ONE, ONE + 2 * half)
        last = build.row.k - 2
        build.add(f"half a unit at 0 and {last}: one chain for all k", {0: half, last: half}, ONE, ONE + 2 * half)
        build.add("half a unit in both lanes meets before c", {0: half, 1: half}, ONE, ONE + 2 * half)
        build.add("1 and two halves of a unit in one lane: each is lost", {0: ONE, 2: half, 6: half}, 0, ONE, 2 * half)
        both = {0: ONE, 1: half, 3: half}
        if self.lanes > 1:
            build.add("1 in one lane, two halves of a unit in the other: a whole unit", both, 0, ONE + 2 * half)
        else:
            build.add("1 and two halves of a unit at odd k: each is lost", both, 0, ONE, 2 * half)
        build.add("half a unit twice, then 1 in the same lane", {0: half, 2: half, 4: ONE}, 0, ONE + 2 * half)
