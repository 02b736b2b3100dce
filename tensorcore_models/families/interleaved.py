"""Defines InterleavedDotAdd, which converts operands, chains fused sums over interleaved k, and adds c last."""

import dataclasses
import itertools
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import ClassVar, Literal

import numpy as np

from ..arithmetic import converted
from ..aspects import plans, search
from ..aspects.outcomes import OUTCOMES, TAILS
from ..aspects.plans import format_fields, rule_fields
from ..aspects.probes import ONE, Builder, alignment_rounding, kept_bits, output_rounding, products_as_they_are
from ..aspects.search import Field, Interface, Search, divisors, inside, one_of
from ..aspects.values import power
from ..explanations.descriptions import Words, rounded
from ..formats import Format, get_float_format, get_format
from .base import Accumulator, Arrangement, Form, SumAlgorithm
from .checks import check_deterministic, holds, require
from .fused import FusedDotAdd
from .fused.search import FIELDS as PARAMETRIC


@dataclass(frozen=True)
class InterleavedDotAdd(Accumulator):
    """`InterleavedDotAdd` chains fused dot-adds (FDA) over interleaved groups of k.

    Hopper's and Blackwell's fp8 `mma.sync` computes this sum.

    The groups are G_j = {k : (k // run) mod groups = j}, in the order of `group_order`. The sum is
    ``s = FDA(0, G_0); s = FDA(s, G_1); ...; d = RNE(s + c)``. Every step is rounded to the output format. Source:
    khattak-mikaitis, section IV; for fp16 results, published vectors of H100, H200 and B200 confirm it.

    Parameters
    ----------
    dot : FusedDotAdd
        Fused operation of one group.
    run : int
        Number of consecutive k that belong to the same group.
    groups : int
        Number of groups in a step.
    group_order : tuple of int
        Order in which the groups are chained.
    via_format : str
        Format to which operands are converted exactly (fp16 on these GPUs). An operand is aligned by its exponent in this
        format.
    final_rounding : str
        Rounding of the last addition.
    """

    dot: FusedDotAdd = FusedDotAdd()
    run: int = 2
    groups: int = 2
    group_order: tuple[int, ...] = (0, 1)
    via_format: str = "fp16"
    final_rounding: str = "rne"

    edge_rules: ClassVar = {**Accumulator.edge_rules, "group_order": None}

    def _check(self):
        require(self.run >= 1 and self.groups >= 1, self, f"run {self.run} and groups {self.groups} must be at least 1")
        require(
            sorted(self.group_order) == list(range(self.groups)),
            self,
            f"group_order {self.group_order} must order the groups 0 to {self.groups - 1}",
        )
        check_deterministic(self, "final_rounding")
        require(
            self.dot.key is None,
            self,
            "dot is rounded stochastically, but a pass of several sums has only one draw: choose another output_rounding of "
            "dot",
        )

    @property
    def terms_per_step(self) -> int:
        return self.dot.terms * self.groups

    @property
    def inner(self) -> FusedDotAdd:
        return self.dot

    def check_formats(self, formats, block_size):
        super().check_formats(formats, block_size)
        via = get_float_format(self.via_format)
        for name, fmt in zip("ab", formats[:2], strict=True):
            if not holds(via, fmt):
                raise ValueError(
                    f"InterleavedDotAdd converts its operands to {via.name} first, which lacks numbers of "
                    f"{name}_format {fmt.name}; choose a wider via_format"
                )

    def _parts(self, length: int) -> list[list[int]]:
        """Return the products of each fused operation, in the order in which these are chained."""
        members = [[k for k in range(length) if k // self.run % self.groups == group] for group in self.group_order]
        return [g[i : i + self.dot.terms] for g in members for i in range(0, len(g), self.dot.terms)]

    def interchangeable(self, length):
        """Return the products of each fused operation as interchangeable."""
        return tuple(tuple(part) for part in self._parts(length))

    def pass_bits(self, p):
        """Return the encoding of c plus the result of a chain of fused dot-adds from zero, over interleaved groups of k."""
        z, (a_format, b_format, c_format, d_format) = p.arithmetic, p.formats[:4]
        via, total = get_float_format(self.via_format), 0
        a = [z.converted(a_format, code, via, self) for code in p.a]
        b = [z.converted(b_format, code, via, self) for code in p.b]
        for ks in self._parts(len(a)):
            x, y = ([codes[k] for k in ks] for codes in (a, b))
            inner = (via, via, d_format, d_format)
            total = p.inner(self.dot, a=x, b=y, c=total, formats=inner, scales=((),) * len(ks))
        return z.add(total, d_format, p.c, c_format, d_format, self, self.final_rounding)

    def words(self, d):
        f, n = self.dot.fraction_bits, self.dot.terms
        return Words(
            f"The unit adds {self.groups} groups of {n} products by chained fused dot products, and then c",
            (
                f"Operands are converted exactly to {self.via_format}.",
                f"Runs of {self.run} neighbouring k are dealt in turn to {self.groups} groups of {n} products.",
                "The groups are added one after the other, starting from zero. Each group is added by a fused dot product with "
                f"{f} fraction bits, whose result is {rounded(self.dot.output_rounding, d)}.",
                f"c is added last, and the result is {rounded(self.final_rounding, d)}.",
            ),
            rf"s_1 = \mathrm{{FDA}}_{{{f}}}(0, G_1), \quad s_2 = \mathrm{{FDA}}_{{{f}}}(s_1, G_2), \quad d = "
            rf"\mathrm{{{self.final_rounding.upper()}}}(s_2 + c)",
            f"adds {self.groups} groups of interleaved products one after the other, starting from zero, and the running sum "
            "last",
        )

    def plan_fields(self, formats, scale, block_size):
        via = get_format(self.via_format)
        d = formats[3]
        fields = self.dot.plan_fields((via, via, d, d), None, None)
        plans.require(self.terms_per_step <= plans.MAX_TERMS, f"more than {plans.MAX_TERMS} products in a pass")
        if not fields["wide"]:
            plans.require(formats[2].precision <= 60, f"an addend of {formats[2].precision} bits")
        fields.update(
            family=plans.INTERLEAVED,
            step=self.terms_per_step,
            raw_c=format_fields(formats[2], self),
            raw_d=format_fields(d, self),
            late=rule_fields(d, self, self.final_rounding),
        )
        return fields

    def operand_tables(self, formats):
        return self._via_table(formats[0]), self._via_table(formats[1])

    def _via_table(self, fmt) -> np.ndarray | None:
        via = get_float_format(self.via_format)
        if fmt == via:
            return None
        plans.require(isinstance(fmt, Format), f"conversion of {fmt.name} to {via.name}")
        plans.require(
            fmt.container.itemsize <= 2,
            f"conversion of {fmt.name} to {via.name} takes a table of 2^{fmt.bits} entries",
        )
        return _conversion_table(fmt, via, self.tf32_nan)

    def arrangement(self, length):
        return Arrangement(self._parts(length), [])

    def form(self):
        return Form(SumAlgorithm.INTERLEAVED, self)

    def unrounded(self):
        return dataclasses.replace(self, dot=self.dot.unrounded())

    @classmethod
    def searches(cls):
        names = {field.name for field in dataclasses.fields(FusedDotAdd)} - {"terms", "scaled_zero"}
        fields = (
            Field(
                ("dot.terms", "run", "groups", "group_order"),
                lambda i, s: [(n, r, g, tuple(range(g))) for n, r, g in _interleavings(i)],
            ),
            Field(
                ("group_order",),
                lambda i, s: [*itertools.permutations(range(s.groups))] if s.groups <= 4 else [tuple(range(s.groups))],
            ),
            Field(("via_format",), lambda i, s: _carriers(i)),
            Field(("final_rounding",), one_of(*search.ROUNDINGS)),
            *(inside(f, "dot") for f in PARAMETRIC if f.name in names),
            *search.COMMON,
        )
        shape = ("dot.terms", "run", "groups")
        return (Search("interleaved fused sums", fields, cls._starts, shape, rank=70),)

    @classmethod
    def _starts(cls, interface):
        if interface.scale_format is not None:
            return
        for (terms, run, groups), rounding in itertools.product(_interleavings(interface), ("rz", "rne")):
            for via in _carriers(interface)[:2]:
                yield cls(
                    dot=FusedDotAdd(terms, 24, output_rounding=rounding), run=run, groups=groups,
                    group_order=tuple(range(groups)), via_format=via,
                )  # fmt: skip

    def probe(self, build):
        """Add vectors that show which k form a group, and how the groups are chained (khattak-mikaitis, IV-A5)."""
        bits, run, groups = self.dot.fraction_bits, self.run, self.groups
        first = [k for k in range(build.row.k) if k // run % groups == self.group_order[0]]
        other = [k for k in range(build.row.k) if k // run % groups == self.group_order[1]]
        kept_bits(build, (first[0], first[1]), bits, first[2])
        small = power(-bits - 1)
        products = {first[0]: ONE, first[1]: -ONE, first[2]: small, first[3]: small}
        build.add("1 - 1 and half a quantum twice in the first group: both lost", products, 0, 0, 2 * small)
        alignment_rounding(build, (first[0], first[1]), self.dot.alignment_rounding, bits, first[2])
        output_rounding(build, tuple(first[:5]), self.dot.output_rounding, use_c=False)
        products_as_they_are(build, tuple(first[:3]), bits, use_c=False)
        single_rounding_of_late_c(build, first[0], self.final_rounding)
        self._probe_groups(build, first, other)

    def _probe_groups(self, build, first: list[int], other: list[int]) -> None:
        """Add vectors that show which products meet before c: `first` and `other` are places of the two groups."""
        small = power(-self.dot.fraction_bits - build.row.k.bit_length() - 2)
        alone = {first[0]: ONE, first[1]: -ONE}
        rows = (
            ("1 and -1 in the first group, tiny in the second: kept", {**alone, other[0]: small}, small),
            ("1 in the first group, tiny and -1 in the second: lost", {first[0]: ONE, other[0]: -ONE, other[1]: small}, 0),
            ("1 and tiny in the first group, -1 in the second: lost", {first[0]: ONE, first[1]: small, other[0]: -ONE}, 0),
            ("1 and -1 in the second group, tiny in the first: lost", {other[0]: ONE, other[1]: -ONE, first[0]: small}, 0),
        )  # fmt: skip
        for text, products, result in rows:
            build.add(text, products, 0, result, *(() if result else (small,)))
        build.add("1 - 1 and c tiny: c is added last", alone, small, small)
        half = power(-build.fraction_bits - 1)
        lost = {first[0]: ONE, first[1]: half, other[0]: half}
        build.add("1 + half a unit in each group: lost twice", lost, 0, ONE, 2 * half)
        build.add(
            f"1, half a unit twice in the first group (at {first[1]}, {first[-1]}): a whole unit",
            {first[0]: ONE, first[1]: half, first[-1]: half}, 0, ONE + 2 * half,
        )  # fmt: skip


@cache
def _conversion_table(fmt: Format, via: Format, tf32_nan: Literal["truncated", "kept"]) -> np.ndarray:
    """Return the encoding in `via` of each encoding of `fmt`; specifications that differ in other fields share the table."""
    spec = InterleavedDotAdd(via_format=via.name, tf32_nan=tf32_nan)
    table = np.array(
        [converted(fmt, bits, via, spec) for bits in range(1 << 8 * fmt.container.itemsize)], via.container
    )
    table.setflags(write=False)
    return table


def _carriers(interface: Interface) -> list[str]:
    """Return formats in which products may be formed: the operands' formats, and wider ones for operands of up to 8 bits."""
    own, other = interface.formats[:2]
    wider = ("fp16", "bf16", "fp32") if max(own.bits, other.bits) <= 8 else ()
    return [name for name in (own.name, *wider) if all(holds(get_float_format(name), fmt) for fmt in (own, other))]


def _interleavings(interface: Interface) -> list[tuple[int, int, int]]:
    """Return the triples (terms, run, groups) whose step divides the products of a call."""
    return [
        (terms, run, groups)
        for groups, run, terms in itertools.product((2, 4, 8), (1, 2, 4, 8), divisors(interface))
        if interface.k % (terms * groups) == 0 and terms % run == 0
    ]


def single_rounding_of_late_c(build: Builder, place: int, rounding: str) -> None:
    """Add the sums of a dot product 1 and c = t u, where u is the unit in the last place of 1."""
    u = power(-build.fraction_bits)
    for t in TAILS:
        sign = -1 if t < 0 else 1
        expected = sign + OUTCOMES[rounding][t] * u
        build.add(f"{sign} + c = {t} u in the last addition", {place: Fraction(sign)}, t * u, expected, smallest=u)
