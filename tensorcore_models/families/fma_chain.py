"""Defines SequentialFMA, a chain of fused multiply-adds."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..aspects import errors, plans, search
from ..aspects.plans import FLUSH_NONE, FLUSH_SIGNED, FLUSH_TINY, KEEP, format_fields, integer_width
from ..aspects.probes import ONE, single_rounding
from ..aspects.search import Field, Search, one_of
from ..aspects.values import power
from ..explanations.descriptions import Words, rounded
from ..formats import FORMATS
from .base import OPERAND_NAN, Accumulator, Arrangement, Form, NanRule, SumAlgorithm
from .checks import check_keyed, require
from .ieee import X86_RULES, double_holds, ieee_fields, lanes_hold

#: Number of chained FMAs in one pass of the kernel; the bits do not depend on it.
_FMA_PASS = 64


@dataclass(frozen=True)
class SequentialFMA(Accumulator):
    """`SequentialFMA` is a chain of IEEE fused multiply-adds in the output format, k ascending (xie-mma-sim, section IV-A).

    FP64 tensor cores and AMD's FP64 and FP32 matrix cores compute this chain. Intel's VDPBF16PS computes it with
    ``flush_inputs=True, flush_outputs=True, pair_order="odd_first", nan="x86"`` (Intel SDM; measured:
    :mod:`tensorcore_models.catalogue.other`).

    Parameters
    ----------
    rounding : str
        Rounding of each FMA. "sr" is stochastic, needs `pair_order` "ascending", and has the key `seed`.
    flush_inputs : bool
        Whether subnormal operands (a, b and c) are taken as zeros of the same sign.
    flush_outputs : bool
        Whether a result below the smallest normal number becomes a zero of the same sign. As on x86, the result is compared
        after rounding with an unbounded exponent (tininess after rounding).
    pair_order : {"ascending", "odd_first"}
        Order of the products; with "odd_first" the product with odd k is the first of each pair (VDPBF16PS).
    saturate : bool
        Whether overflow gives the largest finite number and a NaN result is zero (Ascend 910A).
    seed : int
        Key of stochastic rounding, used as in :class:`FusedDotAdd`.
    """

    rounding: str = "rne"
    flush_inputs: bool = False
    flush_outputs: bool = False
    pair_order: Literal["ascending", "odd_first"] = "ascending"
    saturate: bool = False
    seed: int = 0
    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    edge_rules: ClassVar = {**X86_RULES, "nan": ("all_ones", "quiet", *OPERAND_NAN)}
    left_out: ClassVar = {"symmetries": "the sum is rounded after every product, so the order of the products matters"}

    def _check(self):
        check_keyed(self, "rounding")
        ordered = self.rounding != "sr" or self.pair_order == "ascending"
        require(
            ordered,
            self,
            f"rounding 'sr' with pair_order {self.pair_order!r}: a pass has only one draw, so choose pair_order 'ascending'",
        )

    @property
    def key(self) -> int | None:
        return self.seed if self.rounding == "sr" else None

    @property
    def terms_per_step(self) -> int:
        return 2 if self.pair_order == "odd_first" else 1

    def _order(self, count: int) -> list[int]:
        """Return the places of `count` products in the order in which they are added."""
        if self.pair_order == "ascending":
            return list(range(count))
        return [k for pair in range(0, count, 2) for k in (pair + 1, pair) if k < count]

    def pass_bits(self, p):
        """Return the encoding of the result of a chain of FMAs in the output format (xie-mma-sim, Algorithm 1)."""
        z, (a_format, b_format, total_format, d_format), total = p.arithmetic, p.formats[:4], p.c
        flush = z.TINY if self.flush_outputs else z.KEEP
        for k in self._order(len(p.a)):
            x, y, addend = p.x[k], p.y[k], z.decode(total_format, total, self)
            if self.flush_inputs:
                x, y = z.flushed(x, a_format.emin), z.flushed(y, b_format.emin)
                addend = z.flushed(addend, total_format.emin)
            total = z.fma(x, y, addend, d_format, self, self.rounding, flush, self.saturate, p.draw)
            total_format = d_format
        return total

    def words(self, d):
        steps = [
            "Products are added one after the other by fused multiply-adds, which do not round a product before it is added. "
            f"Every sum is {rounded(self.rounding, d)}.",
        ]
        if self.pair_order == "odd_first":
            steps.append("In each pair of products, the product with odd k is added first.")
        if self.flush_inputs or self.flush_outputs:
            what = [text for on, text in ((self.flush_inputs, "operands"), (self.flush_outputs, "results")) if on]
            steps.append(f"Subnormal {' and '.join(what)} become zero and keep their sign.")
        if self.saturate:
            steps.append("Overflow gives the largest finite number, and a NaN result is zero.")
        return Words(
            "The unit adds one product after the other by fused multiply-adds", tuple(steps),
            rf"d_0 = c, \quad d_i = \mathrm{{{self.rounding.upper()}}}(a_i b_i + d_{{i-1}})",
            "rounds after every single product",
        )  # fmt: skip

    def shows_order(self, formats):
        """Return whether `rounding` is "rne"; under other roundings, sums do not show where large addends X and -X cancel."""
        return self.rounding == "rne"

    def plan_fields(self, formats, scale, block_size):
        """Return the plan of a kernel that computes in doubles if products are exact in double.

        Otherwise the kernel computes in integers, or in doubles with the exact rounding errors of the products.
        """
        a, b, c, d = formats
        plans.require_draws(self, d)
        flush = FLUSH_SIGNED if self.flush_inputs else KEEP
        results = FLUSH_TINY if self.flush_outputs else FLUSH_NONE
        fields = ieee_fields(self, formats, self.rounding, flush_inputs=flush, saturate=self.saturate, flush=results)
        fields["step"] = _FMA_PASS
        # The first addend is flushed by c's range, later ones by d's.
        one_flush = not self.flush_inputs or c.emin >= d.emin
        if self.flush_inputs:
            fields.update(c_flush=2.0 ** max(c.emin, -1074), chained_flush=2.0 ** max(d.emin, -1074))
        doubles = all(f.precision <= 53 and f.emin - f.fraction_bits >= -1074 and f.emax <= 1023 for f in (a, b, c))
        fp64 = FORMATS["fp64"]
        is_fp64 = (d.exponent_bits, d.fraction_bits, d.bias, d.specials) == (11, 52, fp64.bias, "ieee")
        if is_fp64 and doubles and one_flush and self.rounding == "rne" and not self.flush_outputs:
            return fields | {"family": plans.FMA64}
        if lanes_hold(formats) and one_flush and self.key is None:
            return fields | {"family": plans.FMA}
        known = self.key is None and (not is_fp64 or self.rounding in ("rne", "rna", "rz", "ru", "rd", "ro"))
        if plans.HAS_WIDE and doubles and one_flush and known and (is_fp64 or (d.precision <= 50 and double_holds(d))):
            return fields | {"family": plans.FMA_EXACT}
        plans.require(
            not fields["late"]["nan_operand"], "the payload of a NaN operand in a format that double does not hold"
        )
        signed = (a.precision + 1, b.precision + 1)  # packed with their sign
        fields.pop("c_flush", None), fields.pop("chained_flush", None)
        fields.update(
            family=plans.SOFT_FMA,
            step=_FMA_PASS if self.key is None else 1,
            wide=integer_width(signed, a.precision + b.precision + 2, max(c.precision, d.precision + 2)),
            product_fraction=a.fraction_bits + b.fraction_bits,
            c=format_fields(c, self, flush=flush),
            chained=format_fields(d, self, flush=flush),
        )
        return fields

    def arrangement(self, length):
        return Arrangement([self._order(length)], [])

    def form(self):
        return Form(SumAlgorithm.FMA_CHAIN if self.key is None else None, self)

    def step_error(self, unit, facts):
        if self.terms_per_step > 1 or self.flush_inputs or self.flush_outputs:
            return super().step_error(unit, facts)
        return errors.fma_error(unit, self.rounding)

    @classmethod
    def searches(cls):
        fields = (
            Field(("rounding",), one_of(*search.ROUNDINGS), lambda i, s: s.key is None),
            Field(("rounding", "seed"), search.keyed, lambda i, s: i.key is not None),
            Field(("flush_inputs",), one_of(False, True)),
            Field(("flush_outputs",), one_of(False, True)),
            Field(("pair_order",), one_of("ascending", "odd_first"), lambda i, s: i.k > 1),
            Field(("saturate",), one_of(False, True)),
            *search.COMMON,
        )
        starts = [cls(r, pair_order=o) for r in ("rne", "rz") for o in ("ascending", "odd_first")]
        return (
            Search("chain of fused multiply-adds", fields, search.unscaled(lambda i: starts), ("pair_order",), rank=10),
        )

    def probe(self, build):
        """Add vectors of chained fused multiply-adds (fasi, section 3.3; khattak-mikaitis, section IV-A2)."""
        if self.key is not None:  # nobody can work out stochastic results by hand
            return
        single_rounding(build, 0, self.rounding)
        half = power(-build.fraction_bits - 1)
        order = [1, 0] if self.pair_order == "odd_first" else list(range(build.row.k))
        if build.row.k > 1 and self.rounding in ("rne", "rz", "rd", "ru"):
            first, second = order[0], order[1]
            unit, tiny = 2 * half, half * half
            up = 2 * unit if self.rounding == "ru" else 0  # each half of a unit counts as one
            twice = f"c = 1, then half a unit twice (k = {first}, {second})"
            build.add(twice, {first: half, second: half}, ONE, ONE + up, unit)
            build.add(f"half a unit in c and at k = {first}, then 1", {first: half, second: ONE}, half, ONE + unit)
            around = f"half a unit in c, 1 at k = {first}, then half a unit"
            build.add(around, {first: ONE, second: half}, half, ONE + up, unit)
            if self.rounding != "rd":  # with "rd" the result is -0, whose value is that of +0
                kept = f"1 at k = {first}, -1 at k = {second}: c is {'a unit' if up else 'lost'}"
                build.add(kept, {first: ONE, second: -ONE}, tiny, up / 2, tiny)
        p = build.row.formats[0].precision
        if 2 * p - 1 > build.fraction_bits + 1:
            root = 1 + power(-(build.fraction_bits + 1) // 2)
            square = root * root
            low = square - 1 - 2 * (root - 1)
            build.add("the product is not rounded", {0: (root, root)}, low - square, low)
