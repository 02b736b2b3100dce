"""Holds the suite of this package: probes that find the sum that an engine forms, its width and its rounding.

The probes and their order are those of the published suites (fasi-numerical-behavior, section 3; khattak-mikaitis, section IV;
xie-mma-sim, section III; the tree probe is FPRev's), changed where those misread some units. The probes cancel large addends
instead of counting extra bits one by one, divide the exponent of a product between both operands, and probe each alignment with
both signs. They observe one output element, ``d = c + sum a_k b_k``.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from ...aspects.outcomes import TAILS, rounding_of
from ...aspects.values import ONE, SCALES, Unreachable, leading_exponent, power
from ...engines.engine import Engine
from ...formats import IntegerFormat
from ...machine.fp_state import default_fp_state
from ...results import Result
from ..dots import Dots
from .special_values import Specials, probe_specials
from .sum_order import SumOrder, sum_order

MAX_BITS = 130


@dataclass(frozen=True, repr=False)
class Characterisation(Result):
    """`Characterisation` holds the properties of an engine that probes found.

    A property is None if probes in the engine's formats cannot show it.

    Attributes
    ----------
    label : str
        Name of the engine.
    tree : SumOrder
        Order of the sum, number of terms of a fused operation, and position of c.
    exact_products : bool or None
        Whether products are formed exactly.
    fraction_bits : int or None
        F, the number of bits that an aligned sum keeps of a small product. Also None if the engine does not align its
        addends, but rounds after each addition.
    c_fraction_bits : int or None
        F for a small c.
    alignment_rounding, c_alignment_rounding : str or None
        Rounding of products and of c at the alignment.
    normalised_products : bool or None
        Whether products are aligned by their leading bit.
    one_alignment : bool or None
        Whether all addends are aligned at once; False if neighbours are added first, as in a tree of alignments.
    normalises_once : bool or None
        Whether the sum is normalised only at its end.
    output_fraction_bits : int or None
        Fraction bits of the result; the fraction bits of its format if no sum is wide enough to show fewer.
    output_rounding : str or None
        Rounding of the result; None if no sum is wide enough to be rounded.
    sticky : bool or None
        Whether bits below F still affect the final rounding; False if the alignment only truncates them.
    wide_enough : bool or None
        Whether one operation can hold its largest possible sum without losing a carry.
    rounds_between_steps : bool or None
        Whether a chain rounds to the output format between its steps.
    double_rounding : bool or None
        Whether fp16 results are rounded to fp32 first; None for other formats.
    specials : Specials
        Treatment of subnormals, zeros, infinities and NaN.
    """

    label: str
    tree: SumOrder
    exact_products: bool | None
    fraction_bits: int | None
    c_fraction_bits: int | None
    alignment_rounding: str | None
    c_alignment_rounding: str | None
    normalised_products: bool | None
    one_alignment: bool | None
    normalises_once: bool | None
    output_fraction_bits: int | None
    output_rounding: str | None
    sticky: bool | None
    wide_enough: bool | None
    rounds_between_steps: bool | None
    double_rounding: bool | None
    specials: Specials

    @property
    def terms(self) -> int | None:
        """Return N, the number of products in one fused operation."""
        return self.tree.terms

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name not in ("specials", "tree")}
        return [{**facts, "sum": str(self.tree), **dataclasses.asdict(self.specials)}]

    def to_dict(self) -> dict:
        """Return the properties as a dict of plain data for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        (row,) = self.to_rows()
        rows = {"sum": row["sum"], **{name: value for name, value in row.items() if name != "label"}}
        width = max(map(len, rows))
        lines = [f"  {name.replace('_', ' '):{width}}  {'unknown' if v is None else v}" for name, v in rows.items()]
        return "\n".join([self.label, *lines])


def _reachable(probe: Callable, *args):
    """Return the probe's result, None if the engine's formats cannot express it."""
    try:
        return probe(*args)
    except Unreachable:
        return None


@dataclass(frozen=True)
class _Unit:
    """`_Unit` runs the numeric probes inside one fused operation; `places` are positions of its products."""

    dots: Dots
    tree: SumOrder

    @property
    def places(self) -> tuple[int, ...]:
        return self.tree.mates

    @property
    def c_joins(self) -> bool:
        """Return whether c is an addend of the same operation."""
        return self.tree.c_position == "early"

    def value(self, products, c=0, smallest=None) -> Fraction | None:
        scale, operands = self.dots.operands_at_any_scale(products, Fraction(c), smallest)
        return self.dots.value(self.dots.run_bits(*operands), scale)

    # -- P2, P4 ----------------------------------------------------------------------------------------------------------
    def exact_products(self, fraction_bits: int | None, output_bits: int) -> bool | None:
        """Return whether (2 - u)^2 = 4 - 4u + u^2 is exact: alone if the result is wide enough, else with 4 - 4u subtracted."""
        u = power(1 - self.dots.formats[0].precision)
        needed = 2 * self.dots.formats[0].precision - 1
        if fraction_bits is not None and fraction_bits < needed:
            return None
        p, x = self.places, 2 - u
        if needed <= output_bits:
            return self.value({p[0]: (x, x)}) == x * x
        if len(p) < 3:
            return self.value({p[0]: (x, x)}, 4 * u - 4) == u * u
        return self.value({p[0]: (x, x), p[1]: (-Fraction(2), Fraction(2)), p[2]: 4 * u}) == u * u

    def kept(self, tiny: Fraction, *, in_c: bool) -> Fraction | None:
        """Return the result of 1 - 1 + tiny inside one operation."""
        p = self.places
        if in_c:
            return self.value({p[0]: ONE, p[1]: -ONE}, tiny, abs(tiny))
        return self.value({p[0]: ONE, p[1]: -ONE, p[2]: tiny}, 0, abs(tiny))

    def fraction_bits(self, *, in_c: bool) -> int | None:
        """Return the largest t for which 1 - 1 + 2^-t is 2^-t; None if the formats end first."""
        for t in range(1, MAX_BITS):
            try:
                exact = self.kept(power(-t), in_c=in_c) == power(-t) and self.kept(-power(-t), in_c=in_c) == -power(-t)
            except Unreachable:
                return None
            if not exact:
                return t - 1
        return None

    # -- P5 --------------------------------------------------------------------------------------------------------------
    def alignment_rounding(self, fraction_bits: int, *, in_c: bool) -> str | None:
        q = power(-fraction_bits)
        seen = {}
        for t in TAILS:
            d = self.kept(t * q, in_c=in_c)
            seen[t] = None if d is None else d / q
        return rounding_of(seen)

    # -- P6, P9 ----------------------------------------------------------------------------------------------------------
    def normalised_products(self, fraction_bits: int) -> bool:
        q, p = power(-fraction_bits), self.places
        root = Fraction(3, 2)
        pair = {p[0]: (root, root), p[1]: (-root, root)}
        if len(p) > 2:
            return self.value({**pair, p[2]: q}, 0, q) != q
        return self.value(pair, q, q) != q

    def one_alignment(self, fraction_bits: int) -> bool | None:
        """Return whether 1 - 1 plus two halves of a quantum is 0: the halves are lost one by one, unless they meet first."""
        if len(self.places) < 4:
            return None
        p, half = self.places, power(-fraction_bits - 1)
        return self.value({p[0]: ONE, p[1]: -ONE, p[2]: half, p[3]: half}, 0, 2 * half) == 0

    def normalises_once(self, fraction_bits: int) -> bool | None:
        """Return whether 3/4 + 1/4 - 1/2 - 1/2 + q/2 is q/2 in every order.

        A normalising adder with quantum q/2 loses it in some.
        """
        if len(self.places) < 5:
            return None
        half_q = power(-fraction_bits - 1)
        addends = (Fraction(3, 4), Fraction(1, 4), -Fraction(1, 2), -Fraction(1, 2))
        p = self.places
        for shift in range(5):
            order = [p[(i + shift) % 5] for i in range(5)]
            for small_at in range(5):
                rest = order[:small_at] + order[small_at + 1 :]
                products = dict(zip(rest, addends, strict=True)) | {order[small_at]: half_q}
                if self.value(products, 0, half_q) != half_q:
                    return False
        return True

    # -- P7, P8, P12 -----------------------------------------------------------------------------------------------------
    def output_bits(self, fraction_bits: int | None) -> int:
        """Return R from 1 + 1 + 2^-r (1 + 2^-r next to c if there are few products); the format's R if no bits are cut."""
        limit = self.dots.formats[3].fraction_bits
        p = self.places
        found = 0
        for r in range(1, limit + 2):
            if fraction_bits is not None and r > fraction_bits:
                return limit  # sums have no more bits than that, so the format cuts none
            if len(p) >= 3:
                exact = self.value({p[0]: ONE, p[1]: ONE, p[2]: power(-r)}, 0, power(-r)) == 2 + power(-r)
                found = r + 1 if exact else found
            else:
                exact = self.value({p[0]: power(-r)}, ONE, power(-r)) == 1 + power(-r)
                found = r if exact else found
            if not exact:
                return found
        return min(found, limit)

    def output_rounding(self, bits: int) -> str | None:
        seen = {}
        p = self.places
        for t in TAILS:
            sign = -1 if t < 0 else 1
            if len(p) >= 4:
                u = power(2 - bits)
                products = {place: Fraction(sign) for place in p[:3]}
                d = self._with_tail(products, sign, t * u, p, u)
                base = 4 * sign
            elif len(p) == 1:
                u = power(-bits)
                d, base = self.value({p[0]: t * u}, Fraction(sign), u), sign
            else:
                return None
            seen[t] = None if d is None else (d - base) / u
        return rounding_of(seen)

    def _with_tail(self, products, sign: int, tail: Fraction, p, u) -> Fraction | None:
        """Return the sum of `products` and sign + tail: in c if its format and place allow, else in two further products."""
        if self.c_joins:
            try:
                return self.value(products, sign + tail, u)
            except Unreachable:
                return self.value({**products, p[3]: tail}, Fraction(sign), u)
        if len(p) < 5:
            raise Unreachable("the probe needs five products in one operation")
        return self.value({**products, p[3]: Fraction(sign), p[4]: tail}, 0, u)

    def sticky(self, bits: int, fraction_bits: int, rounding: str) -> bool | None:
        """Return whether a lost addend still counts: it makes 2 smaller (rz, rd), rounds it up (ru, ro) or decides a tie (rne,
        rna).
        """
        p = self.places
        if len(p) < 4:
            return None
        lost = power(-fraction_bits - 4)
        u = power(1 - bits)
        two = {p[0]: ONE, p[1]: ONE}
        if rounding in ("rz", "rd"):
            return self.value({**two, p[2]: -lost}, 0, u) != 2
        if rounding in ("ru", "ro"):
            return self.value({**two, p[2]: lost}, 0, u) != 2
        if fraction_bits < bits:
            return None
        if rounding == "rna":
            return self.value({**two, p[2]: u / 2, p[3]: -lost}, 0, u) != 2 + u
        return self.value({**two, p[2]: u / 2, p[3]: lost}, 0, u) != 2

    # -- P10, P11 --------------------------------------------------------------------------------------------------------
    def wide_enough(self, fraction_bits: int | None) -> bool:
        """Return whether N products (2 - ulp)^2 and the largest c of their binade give about 4 N + 2, not wrapped or
        clamped."""
        formats = self.dots.formats
        x, y = (2 - power(1 - f.precision) for f in formats[:2])
        top = 2 - power(1 - formats[2].precision) if self.c_joins else Fraction(0)
        exact = len(self.places) * x * y + top
        for scale in SCALES:
            try:
                d = self.dots.run(dict.fromkeys(self.places, (x, y)), top, scale)
            except Unreachable:
                continue
            if d is not None:
                slack = power(leading_exponent(exact) - 3)
                return abs(d - exact) < slack
        raise Unreachable("the formats cannot hold the largest sum")

    def rounds_between(self, bits: int, fraction_bits: int) -> bool | None:
        """Return whether a unit below the last place of 1 + 1 is lost when the next step subtracts 2, because the chain
        rounds."""
        outside = [k for k in self.tree.following if k not in self.places]
        if not outside or len(self.places) < 3 or fraction_bits < bits:
            return None
        p, tiny = self.places, power(-bits)
        if self.value({p[0]: ONE, p[1]: ONE, p[2]: tiny}, 0) is None:
            return None
        return self.value({p[0]: ONE, p[1]: ONE, p[2]: tiny, outside[0]: (-Fraction(2), ONE)}, 0) != tiny

    def double_rounding(self, fraction_bits: int) -> bool | None:
        """Return whether 1 + 1 + 2^-10 + 2^-23, which is above a tie of fp16, is rounded as that tie, because fp32 drops its
        last bit.
        """
        p = self.places
        if self.dots.formats[3].name != "fp16" or len(p) < 4 or fraction_bits < 23:
            return None
        d = self.value({p[0]: ONE, p[1]: ONE, p[2]: power(-10), p[3]: power(-23)}, 0, power(-9))
        return None if d not in (2, 2 + power(-9)) else d == 2


@default_fp_state
def characterise(engine: Engine) -> Characterisation:
    """Return the properties of a matrix engine, found by probes; ``str()`` of the result gives a table.

    Parameters
    ----------
    engine : Engine
        Any engine: a model, a user's callable, a GPU. The probes are dot products that are about two of its k steps long.

    Raises
    ------
    ValueError
        If the engine has integer operands, or formats so narrow that the order of the sum cannot be seen.
    """
    if any(isinstance(f, IntegerFormat) for f in engine.formats):
        raise ValueError(f"{engine.label} multiplies integers, but the probes are for floating-point engines")
    dots = Dots(engine, max(8, 2 * engine.k) if engine.k > 1 else 8)
    tree = sum_order(engine, dots.length)
    unit = _Unit(dots, tree)
    # Later steps of a chain would cut the result again if F is less than the result's fraction bits.
    last = unit
    if tree.order == "fused" and tree.terms == engine.k:
        last = _Unit(Dots(engine, engine.k), tree)
    elif tree.order == "fused" and tree.following:
        ahead = dots.length - len(tree.mates)
        end = dataclasses.replace(tree, mates=tuple(range(ahead, dots.length)), c_position=None)
        last = _Unit(dots, end) if len(end.mates) >= 5 else unit
    fused = tree.order in ("fused", "interleaved") and len(tree.mates) >= 3
    bits_f = unit.fraction_bits(in_c=False) if fused else None
    c_bits = unit.fraction_bits(in_c=True) if fused and unit.c_joins else None
    known = bits_f if bits_f is not None else c_bits
    aligned = None if bits_f is None else _reachable(partial(unit.alignment_rounding, bits_f, in_c=False))
    aligned_c = None if c_bits is None else _reachable(partial(unit.alignment_rounding, c_bits, in_c=True))
    jammed = "ro" in (aligned, aligned_c)
    if jammed:  # a sticky bit looks like one more fraction bit that is rounded to odd
        bits_f, c_bits, known = (None if n is None else n - 1 for n in (bits_f, c_bits, known))
        aligned, aligned_c = ("rz" if r == "ro" else r for r in (aligned, aligned_c))
    out = _reachable(last.output_bits, known)
    rounding = _reachable(last.output_rounding, out) if out is not None else None

    def when(condition, probe, *args):
        return _reachable(probe, *args) if condition else None

    return Characterisation(
        label=engine.label,
        tree=tree,
        exact_products=when(out is not None, unit.exact_products, known, out),
        fraction_bits=bits_f,
        c_fraction_bits=c_bits,
        alignment_rounding=aligned,
        c_alignment_rounding=aligned_c,
        normalised_products=when(known is not None, unit.normalised_products, known),
        one_alignment=when(known is not None and aligned == "rz", unit.one_alignment, known),
        normalises_once=when(known is not None, unit.normalises_once, known),
        output_fraction_bits=out,
        output_rounding=rounding,
        sticky=True if jammed else when(rounding is not None and aligned == "rz", unit.sticky, out, known, rounding),
        wide_enough=_reachable(unit.wide_enough, known),
        rounds_between_steps=when(known is not None and out is not None, unit.rounds_between, out, known),
        double_rounding=when(known is not None, unit.double_rounding, known),
        specials=probe_specials(dots),
    )
