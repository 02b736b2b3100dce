"""Defines GroupPairwiseSum, which adds groups of products as trees of additions."""

import dataclasses
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Literal

from .. import arithmetic as z
from ..aspects import plans, search
from ..aspects.plans import FLUSH_NONE, FLUSH_POSITIVE, FLUSH_SUBNORMAL, KEEP
from ..aspects.probes import ONE, single_rounding
from ..aspects.search import Field, Search, divisors, one_of, powers_of_two
from ..aspects.values import power
from ..explanations.descriptions import Words
from ..formats import FORMATS
from .base import Accumulator, Arrangement, Form, NanRule, SumAlgorithm
from .checks import MAX_TERMS, require
from .ieee import ieee_fields, require_lanes

FP32 = FORMATS["fp32"]


@dataclass(frozen=True)
class GroupPairwiseSum(Accumulator):
    """`GroupPairwiseSum` is GPS(G), the group pairwise sum of CDNA2's fp16 and bf16 (xie-mma-sim, IV-B; zeros: mmasim 2.1.1).

    Products are rounded to FP32. Each group of `group` products is summed as a binary tree of FP32 additions, and the group
    sums are added to c one after the other. All FP32 operations round to nearest even.

    Parameters
    ----------
    group : int
        G, a power of two: 4, or 2 for the bf16 instructions without ``_1k``.
    flush_input : {"format", "fp32", "none"}
        Edge rule: operands that become +0. Zeros of either sign always do. "format": also operands below the smallest normal
        number of their format (text of xie-mma-sim). "fp32": also operands below 2^-126 (Algorithm 3 of xie-mma-sim). "none":
        only zeros. With "format" and "fp32", a c below 2^-126 also becomes +0.
    flush_results : bool
        Whether FP32 products and sums below 2^-126 become zeros of the same sign.
    terms : int or None
        Number of products of one instruction, before which c is flushed by `flush_input`. None means `group`.
    """

    group: int = 4
    flush_input: Literal["format", "fp32", "none"] = "format"
    flush_results: bool = True
    terms: int | None = None
    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    step_field: ClassVar = "group"
    edge_rules: ClassVar = {**Accumulator.edge_rules, "flush_input": ("format", "fp32", "none"), "group": None}

    def _check(self):
        require(
            1 <= self.group <= MAX_TERMS and self.group & (self.group - 1) == 0,
            self,
            f"group {self.group} must be a power of two up to {MAX_TERMS}",
        )
        require(
            self.terms is None or (self.terms >= 1 and self.terms % self.group == 0),
            self,
            f"terms {self.terms} must be a multiple of group {self.group}",
        )

    @property
    def groups_per_instruction(self) -> int:
        """Return the number of groups between two flushes of c."""
        return 1 if self.terms is None else self.terms // self.group

    def interchangeable(self, length):
        """Return the two products of each pair that is added first as interchangeable."""
        return tuple(tuple(range(i, min(i + min(self.group, 2), length))) for i in range(0, length, min(self.group, 2)))

    def pass_bits(self, p):
        """Return the encoding of c plus the sum of one group by a tree of FP32 additions (xie-mma-sim, Algorithms 2 and 3)."""
        a_format, b_format, c_format, d_format = p.formats
        x, y, c = p.x, p.y, p.c
        if self.flush_input != "none":
            floors = (a_format.emin, b_format.emin) if self.flush_input == "format" else (FP32.emin, FP32.emin)
            x, y = (
                [z.positive_zero(z.flushed(x, floor)) for x in side] for side, floor in zip((x, y), floors, strict=True)
            )
            groups = self.groups_per_instruction
            if groups == 1 or p.index % groups == 0:  # the first group of an instruction, which flushes its c
                c = z.flushed_to_positive(c, c_format, self, FP32.emin)
        flush = z.SUBNORMAL if self.flush_results else z.KEEP
        products = [z.product(u, v, d_format, self, "rne", flush) for u, v in zip(x, y, strict=True)]
        total = self._tree(products, self.group, d_format, flush)
        return z.add(c, c_format, total, d_format, d_format, self, flush=flush)

    def _tree(self, terms, places: int, fmt, flush: int) -> int:
        """Return the code of a binary tree over `places` neighbours, of which `terms` has the first."""
        if len(terms) == 1:
            return terms[0]
        middle = places // 2
        left = self._tree(terms[:middle], middle, fmt, flush)
        if len(terms) <= middle:
            return left
        right = self._tree(terms[middle:], places - middle, fmt, flush)
        return z.add(left, fmt, right, fmt, fmt, self, flush=flush)

    def words(self, d):
        flush = {
            "format": "Operands below the smallest normal number of their format become +0.",
            "fp32": "Operands below 2^-126 become +0.",
            "none": "",
        }[self.flush_input]
        tree = (
            f"Groups of {self.group} products are added as a binary tree. Every addition is rounded in the same way.",
            "The sum of each group is added to c, one group after the other.",
        )
        if self.group == 1:
            tree = ("The products are added to c one after the other. Every addition is rounded in the same way.",)
        steps = (
            f"Each product is rounded to {d} (to nearest, ties to even).",
            *tree,
            flush,
            "Products and sums below 2^-126 become zero and keep their sign." if self.flush_results else "",
        )
        few = {
            1: "p_1",
            2: r"\mathrm{RNE}(p_1 + p_2)",
            4: r"\mathrm{RNE}(\mathrm{RNE}(p_1 + p_2) + \mathrm{RNE}(p_3 + p_4))",
        }
        pairs = few.get(self.group, r"\mathrm{RNE}(\mathrm{tree}(p))")
        group, alone = f"groups of {self.group} products as a tree", self.group == 1
        return Words(
            f"The unit rounds each product to {d} and adds " + ("the products one after the other" if alone else group),
            tuple(filter(None, steps)),
            rf"p_i = \mathrm{{RNE}}(a_i b_i), \quad d = \mathrm{{RNE}}\left(c + {pairs}\right)",
            f"rounds every product and every sum, and adds {'one product at a time' if alone else group}",
        )

    def plan_fields(self, formats, scale, block_size):
        require_lanes(formats)
        plans.require(self.group <= plans.MAX_GROUP, f"groups of more than {plans.MAX_GROUP} products")
        flush = KEEP if self.flush_input == "none" else FLUSH_POSITIVE
        results = FLUSH_SUBNORMAL if self.flush_results else FLUSH_NONE
        fields = ieee_fields(self, formats, "rne", flush_inputs=flush, flush=results)
        if self.flush_input == "fp32":
            fields["a"]["flush_below"] = fields["b"]["flush_below"] = FP32.emin
        if flush:
            fields.update(c_flush=2.0**FP32.emin, c_flush_passes=self.groups_per_instruction)
        return fields | {"family": plans.PAIRWISE}

    def arrangement(self, length):
        return Arrangement([list(range(length))], plans.binary_tree(length, self.group))

    def form(self):
        return Form(SumAlgorithm.PAIRWISE, self)

    @classmethod
    def searches(cls):
        def starts(interface):
            for group in powers_of_two(interface):
                for flush in ("none", "format"):
                    yield cls(group, flush, flush_results=flush != "none", terms=interface.k)

        fields = (
            Field(("group",), powers_of_two),
            Field(("flush_input",), one_of("none", "format", "fp32")),
            Field(("flush_results",), one_of(False, True)),
            Field(("terms",), divisors, lambda i, s: s.flush_input != "none"),
            *search.COMMON,
        )
        shape = ("group", "flush_input")
        return (Search("pairwise sums of groups", fields, search.unscaled(starts), shape, rank=30),)

    def probe(self, build):
        """Add vectors that show that products are rounded to FP32, and in which order products, group sums and c are added."""
        single_rounding(build, 0, "rne")
        half, group, k = power(-build.fraction_bits - 1), self.group, build.row.k
        for distance in (1, group // 2, group - 1):
            if 0 < distance < group:
                name = f"half a unit at 0 and {distance} meet before c"
                build.add(name, {0: half, distance: half}, ONE, ONE + 2 * half, 2 * half)
        if group < k:
            name = f"half a unit at 0 and {group}: each is lost to c"
            build.add(name, {0: half, group: half}, ONE, ONE, 2 * half)
        if group == 4:
            name = "1 + half a unit, then a half again: a tree, not one fused sum"
            build.add(name, {0: ONE, 1: half, 2: half}, 0, ONE, 2 * half)
            build.add("halves of a unit in the second pair of the tree", {0: ONE, 2: half, 3: half}, 0, ONE + 2 * half)
        fmt = build.row.formats[0]
        subnormal = power(fmt.emin - 1)
        seen = subnormal if self.flush_input == "none" else Fraction(0)
        build.add("a subnormal operand", {0: (subnormal, ONE)}, 0, seen, scales=(0,))
        if fmt.emin == -126 and k > 1:
            below = power(-127)
            expected = Fraction(0) if self.flush_results else below
            build.add("a difference below 2^-126", {0: 3 * below, 1: -2 * below}, 0, expected, scales=(0,))
