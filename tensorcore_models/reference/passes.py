"""One pass of each accumulator, encodings in and encoding out: what :meth:`Accumulator.pass_bits` calls by name."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..accumulators import InterleavedDotAdd, as_parametric
from ..formats import Format, get_float_format, get_format
from ..formats.exact_rounding import round_to_bits
from . import fused, ieee
from .operands import Operand, decode


@dataclass(frozen=True, eq=False)
class Pass:
    """The input of one pass: the products and the addend of one result element.

    Parameters
    ----------
    spec : Accumulator
        The algorithm.
    a, b : list of int
        Encodings of up to `spec.terms_per_step` operands each.
    c : int
        Encoding of the addend: the result of the pass before, or the c of the chain.
    formats : tuple of Format or IntegerFormat
        Formats of a, b, this c and the result.
    scales : tuple of tuple of Operand
        Block scales of each product; empty tuples without scales.
    index : int
        Number of the pass in its chain.
    """

    spec: Any
    a: list[int]
    b: list[int]
    c: int
    formats: tuple[Any, ...]
    scales: tuple[tuple[Operand, ...], ...] = ()
    index: int = 0

    @cached_property
    def x(self) -> list[Operand]:
        """The operands of A taken apart, zeros as the edge rule `zero_operand` says."""
        return self._operands(self.a, 0)

    @cached_property
    def y(self) -> list[Operand]:
        """The operands of B."""
        return self._operands(self.b, 1)

    def _operands(self, codes: list[int], which: int) -> list[Operand]:
        rule = getattr(self.spec, "zero_operand", "format_minimum")
        return [decode(self.formats[which], bits, self.spec, zero_rule=rule) for bits in codes]

    @cached_property
    def addend(self) -> Operand:
        """The addend taken apart, with the alignment exponent that the edge rules `zero_c` and `subnormal_c` give it."""
        c = decode(self.formats[2], self.c, self.spec, zero_rule=self.spec.zero_c)
        if self.spec.subnormal_c == "normalised" and not c.is_zero and c.kind == "finite":
            return c._replace(align=c.leading)
        return c


def parametric(p: Pass) -> int:
    """FusedDotAdd and ParametricDotAdd."""
    return fused.parametric_step(as_parametric(p.spec), p.x, p.y, list(p.scales), p.addend, p.c, p.formats)


def group_dot(p: Pass) -> int:
    """GroupDotFusedSum."""
    return fused.group_dot_step(p.spec, p.x, p.y, list(p.scales), p.addend, p.formats[3])


def round_down(p: Pass) -> int:
    """FusedDotRoundDownAdd and GroupFusedDotRoundDownAdd."""
    return fused.round_down_step(p.spec, p.x, p.y, p.addend, p.formats[3])


def sequential_fma(p: Pass) -> int:
    """SequentialFMA."""
    return ieee.sequential_fma(p.spec, p.x, p.y, p.c, p.formats)


def laned_fma(p: Pass) -> int:
    """LanedFMA."""
    return ieee.laned_fma(p.spec, p.x, p.y, p.c, p.formats)


def group_pairwise_sum(p: Pass) -> int:
    """GroupPairwiseSum; the first group of an instruction flushes its addend."""
    c = p.c if p.index % p.spec.groups_per_instruction else ieee.flushed_addend(p.spec, p.c, p.formats[2])
    return ieee.group_pairwise_sum(p.spec, p.x, p.y, c, p.formats)


def pair_round_odd(p: Pass) -> int:
    """PairRoundOddSum."""
    return ieee.pair_round_odd(p.spec, p.x, p.y, p.c, p.formats)


def integer(p: Pass) -> int:
    """IntegerDotAdd: the exact dot product, wrapped or clamped to the range of the result."""
    a_format, b_format, c_format, d_format = p.formats
    total = c_format.decode_integer(p.c)
    total += sum(a_format.decode_integer(x) * b_format.decode_integer(y) for x, y in zip(p.a, p.b, strict=True))
    if p.spec.saturate:
        total = min(max(total, d_format.minimum), d_format.maximum)
    return total & ((1 << d_format.bits) - 1)


def interleaved(p: Pass) -> int:
    """InterleavedDotAdd: chained FDAs over interleaved groups of k from zero, c added last."""
    a_format, b_format, c_format, d_format = p.formats
    spec, via, total = p.spec, get_format(p.spec.via_format), 0
    a, b = [via_bits(a_format, x, spec) for x in p.a], [via_bits(b_format, y, spec) for y in p.b]
    formats = (via, via, d_format, d_format)
    for group in spec.group_order:
        members = [k for k in range(len(a)) if k // spec.run % spec.groups == group]
        for first in range(0, len(members), spec.dot.terms):
            ks = members[first : first + spec.dot.terms]
            total = spec.dot.pass_bits(
                Pass(spec.dot, [a[k] for k in ks], [b[k] for k in ks], total, formats, ((),) * len(ks))
            )
    return ieee.add(total, d_format, p.c, c_format, d_format, spec, spec.final_rounding)


def via_bits(fmt: Format, bits: int, spec: InterleavedDotAdd) -> int:
    """`bits` converted exactly to the format in which the unit multiplies."""
    target = get_float_format(spec.via_format)
    x = decode(fmt, bits, spec)
    if x.kind == "nan":
        return target.nan_encoding()
    if x.kind == "inf":
        return target.exponent_mask | (target.sign_bit if x.negative else 0)
    return round_to_bits(x.negative, x.significand, x.exponent, target)
