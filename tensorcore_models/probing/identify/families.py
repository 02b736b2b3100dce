"""The specifications that an identification can find: families of accumulators, their fields and the values that are tried.

Everything is a row: a family has starting points and fields; a field lists its values, the simplest first, for the formats
and the number of products of a box. Values that contradict each other are left out by the accumulators' own checks.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from ...accumulators import (
    Accumulator,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
)
from ..interface import Interface
from .fields import Family, Field, Values

C_POSITIONS: tuple[Literal["early", "late"], ...] = ("early", "late")
ROUNDINGS = ("rne", "rz", "rna", "ru", "rd", "ro")
#: Widths that the round-down classes and integer_bits may have.
MAX_WIDTH = 60
#: Widths of other sums: those that the kernels hold whatever the number of terms.
WIDEST = 108


# -- values --------------------------------------------------------------------------------------------------------------------
def one_of(*values: Any) -> Values:
    """The same values for every box."""
    return lambda interface, spec: values


def divisors(interface: Interface, spec: Any = None) -> list[int]:
    """Numbers of products that divide a call, largest first."""
    return [n for n in range(interface.k, 0, -1) if interface.k % n == 0]


def powers_of_two(interface: Interface, spec: Any = None) -> list[int]:
    return [n for n in divisors(interface) if n & (n - 1) == 0]


def lowest_product(interface: Interface) -> int:
    """The smallest exponent of a product of normal numbers, scales included."""
    a, b, _, _ = interface.formats
    scales = 0 if interface.scale_format is None else 2 * interface.scale_format.emin
    return a.emin + b.emin + scales


def lowest_bit(interface: Interface) -> int:
    """The exponent of the last place that any product or c can have."""
    a, b, c, d = interface.formats
    scale = interface.scale_format
    scales = 0 if scale is None else 2 * scale.quantum_exponent
    return min(a.quantum_exponent + b.quantum_exponent + scales, c.quantum_exponent, d.quantum_exponent)


def lowest_exponent(interface: Interface, spec: Any) -> int:
    """The smallest exponent with which an addend takes part in an alignment."""
    _, _, c, d = interface.formats
    if getattr(spec, "normalised_products", False) or getattr(spec, "subnormal_c", "raw") != "raw":
        return lowest_bit(interface)
    return min(lowest_product(interface), c.emin, d.emin, -126)


def _floors(interface: Interface, spec: Any) -> list[int | None]:
    return [None, *range(max(lowest_exponent(interface, spec), -400), 9)]


def _widths(interface: Interface, spec: Any) -> range:
    return range(1, WIDEST + 1)


def _integer_widths(interface: Interface, spec: Any) -> list[int | None]:
    """Widths that the largest sum of one operation overflows: significands of products are below 4, those of c below 2."""
    x, y, z = (2 - 2.0**-f.fraction_bits for f in interface.formats[:3])
    return [None, *range(2, math.ceil(math.log2(spec.terms * x * y + z)))]


def _kept(interface: Interface, spec: Any) -> list[int | None]:
    return [None, *range(interface.formats[3].fraction_bits - 1, -1, -1)]


def _overflows(interface: Interface, spec: Any) -> list[int | None]:
    a, b, _, _ = interface.formats
    return [None, *range(max(1, lowest_product(interface)), a.emax + b.emax + 2)]


def _group_orders(interface: Interface, spec: InterleavedDotAdd) -> list[tuple[int, ...]]:
    return list(itertools.permutations(range(spec.groups))) if spec.groups <= 4 else [tuple(range(spec.groups))]


def _has(*attributes: str) -> Callable[[Interface, Any], bool]:
    return lambda interface, spec: all(getattr(spec, name) for name in attributes)


def _padded(interface: Interface, spec: Any) -> bool:
    """Operands with ignored bits and infinities: a NaN's payload may lie in the ignored bits."""
    return any(f.padding_bits for f in interface.formats[:2])


def _scaled(interface: Interface, spec: Any) -> bool:
    return interface.scale_format is not None


def _nan_shows(interface: Interface, spec: Any) -> bool:
    """Whether the result's format has more than one NaN."""
    return interface.formats[3].has_inf


def _cut(interface: Interface, spec: Any) -> bool:
    return spec.fraction_bits is not None


# -- families ------------------------------------------------------------------------------------------------------------------
COMMON = (
    Field(("nan",), lambda i, s: list(type(s).edge_rules["nan"] or ()), _nan_shows),
    Field(("tf32_nan",), one_of("truncated", "kept"), _padded),
)
ALIGNMENT = (
    *COMMON,
    Field(("zero_operand",), one_of("skip", "minus126", "format_minimum")),
    Field(("zero_c",), one_of("skip", "minus126", "format_minimum")),
    Field(("subnormal_c",), one_of("raw", "normalised")),
    Field(("negative_underflow",), one_of("positive", "negative")),
    Field(("exponent_floor",), _floors),
)
CUTS = [("rz", False), ("rz", True), *((r, False) for r in ROUNDINGS if r != "rz")]
SUMS = (("global", False), ("global", True), ("pairwise", False), ("odd_even", False))

PARAMETRIC = (
    Field(("terms",), divisors),
    Field(("fraction_bits",), lambda i, s: [None, *_widths(i, s)]),
    Field(("output_rounding",), one_of(*ROUNDINGS)),
    Field(("alignment_rounding", "sticky"), lambda i, s: CUTS, _cut),
    Field(("c_position",), one_of("early", "late")),
    Field(("alignment", "normalise_each_add"), lambda i, s: SUMS, _cut),
    Field(("output_fraction_bits",), _kept),
    Field(("normalised_products",), one_of(False, True), _cut),
    Field(("integer_bits",), _integer_widths, _cut),
    Field(("late_rounding",), one_of(*ROUNDINGS), lambda i, s: s.c_position == "late"),
    Field(("flush_inputs",), one_of(False, True)),
    Field(("flush_outputs",), one_of(False, True)),
    Field(("product_overflow_exponent",), _overflows),
    *ALIGNMENT,
    Field(("scaled_zero",), one_of("skip", "keeps_scale"), _scaled),
)
#: Two families with the same fields, which differ in where they start.
FUSED, EXACT = "fused sums", "exact sums, rounded once"
PARAMETRIC_SHAPE = ("terms", "c_position", "alignment", "normalise_each_add")
ROUND_DOWN = (
    Field(("terms",), divisors),
    Field(("fraction_bits",), lambda i, s: range(1, MAX_WIDTH + 1)),
    Field(("dot_fraction_bits",), lambda i, s: range(1, MAX_WIDTH + 1)),
    Field(("c_fraction_bits",), lambda i, s: range(1, MAX_WIDTH + 1)),
    Field(("sum_fraction_bits",), lambda i, s: [None, *range(1, MAX_WIDTH + 1)]),
    Field(("add_rounding",), one_of(*ROUNDINGS)),
    Field(("output_rounding",), one_of(*ROUNDINGS)),
    Field(("product_overflow_exponent",), _overflows),
    Field(("c_inf_with_overflow",), one_of("nan", "c"), lambda i, s: s.product_overflow_exponent is not None),
    *ALIGNMENT,
)
FMA_FLAGS = (Field(("flush_inputs",), one_of(False, True)),)


def _inner(fields: Iterable[Field], path: str) -> tuple[Field, ...]:
    """Fields of a specification inside of another one."""

    def inside(field: Field) -> Field:
        return Field(
            tuple(f"{path}.{p}" for p in field.paths),
            lambda i, s: field.values(i, getattr(s, path)),
            lambda i, s: field.matters(i, getattr(s, path)),
        )

    return tuple(inside(field) for field in fields)


FUSED_NAMES = {field.name for field in dataclasses.fields(FusedDotAdd)}
INTERLEAVED = (
    Field(
        ("dot.terms", "run", "groups", "group_order"),
        lambda i, s: [(n, r, g, tuple(range(g))) for n, r, g in _interleavings(i)],
    ),
    Field(("group_order",), _group_orders),
    Field(("via_format",), lambda i, s: _carriers(i)),
    Field(("final_rounding",), one_of(*ROUNDINGS)),
    *_inner((f for f in PARAMETRIC if f.name in FUSED_NAMES and f.name not in ("terms", "scaled_zero")), "dot"),
    *COMMON,
)


def _carriers(interface: Interface) -> list[str]:
    """Formats in which products may be formed: the operands' own, and wider ones for operands of up to 8 bits."""
    own, other = interface.formats[:2]
    wider = ("fp16", "bf16", "fp32") if max(own.bits, other.bits) <= 8 else ()
    return [own.name, *wider]


def _interleavings(interface: Interface) -> list[tuple[int, int, int]]:
    """(terms, run, groups) that divide a call."""
    found = []
    for groups in (2, 4, 8):
        for run in (1, 2, 4, 8):
            for terms in divisors(interface):
                step = terms * groups
                if interface.k % step == 0 and step % (run * groups) == 0:
                    found.append((terms, run, groups))
    return found


def _parametric_starts(interface: Interface) -> Iterator[Accumulator]:
    digits = interface.formats[3].fraction_bits
    # Narrow results come from wide sums, too: with another width a floor cannot be told from the width.
    widths = sorted({digits, digits + 2, max(1, digits - 10), 23, 25})
    shapes = itertools.product(divisors(interface), C_POSITIONS, widths, ("rz", "rne"))
    for terms, c_position, bits, rounding in shapes:
        yield ParametricDotAdd(terms, bits, c_position=c_position, output_rounding=rounding)
    for terms, c_position, (alignment, each) in itertools.product(divisors(interface), C_POSITIONS, SUMS[1:]):
        yield ParametricDotAdd(terms, digits + 1, c_position=c_position, alignment=alignment, normalise_each_add=each)


def _exact_starts(interface: Interface) -> Iterator[Accumulator]:
    for terms, c_position, rounding in itertools.product(divisors(interface), C_POSITIONS, ("rz", "rne")):
        yield ParametricDotAdd(terms, None, c_position=c_position, output_rounding=rounding)


def _interleaved_starts(interface: Interface) -> Iterator[Accumulator]:
    if interface.scale_format is not None:
        return
    for (terms, run, groups), rounding in itertools.product(_interleavings(interface), ("rz", "rne")):
        for via in _carriers(interface)[:2]:
            yield InterleavedDotAdd(
                dot=FusedDotAdd(terms, 24, output_rounding=rounding), run=run, groups=groups,
                group_order=tuple(range(groups)), via_format=via,
            )  # fmt: skip


def _group_starts(interface: Interface) -> Iterator[GroupDotFusedSum]:
    if interface.scale_format is None or interface.block_size is None:
        return
    for terms in divisors(interface):
        for group in divisors(interface):
            if terms % group == 0 and interface.block_size % group == 0:
                yield GroupDotFusedSum(group, terms)


def _laned_starts(interface: Interface) -> Iterator[LanedFMA]:
    for terms in divisors(interface):
        for lanes in (n for n in (1, 2, 4, 8) if terms % n == 0):
            for flush in (False, True):
                yield LanedFMA(lanes, terms, flush)


def _pairwise_starts(interface: Interface) -> Iterator[Accumulator]:
    for group in powers_of_two(interface):
        for flush in ("none", "format"):
            yield GroupPairwiseSum(group, flush, flush_results=flush != "none", terms=interface.k)


def _unscaled(specs: Callable[[Interface], Iterable[Accumulator]]) -> Callable[[Interface], Iterable[Accumulator]]:
    return lambda interface: () if interface.scale_format is not None else specs(interface)


FAMILIES: tuple[Family, ...] = (
    Family(
        "chain of fused multiply-adds",
        (
            Field(("rounding",), one_of(*ROUNDINGS)),
            *FMA_FLAGS,
            Field(("flush_outputs",), one_of(False, True)),
            Field(("pair_order",), one_of("ascending", "odd_first"), lambda i, s: i.k > 1),
            Field(("saturate",), one_of(False, True)),
            *COMMON,
        ),
        _unscaled(
            lambda i: [SequentialFMA(r, pair_order=o) for r in ("rne", "rz") for o in ("ascending", "odd_first")]
        ),
        ("pair_order",),
    ),
    Family(
        "lanes of fused multiply-adds",
        (
            Field(("lanes", "terms"), lambda i, s: [(x.lanes, x.terms) for x in _laned_starts(i) if x.flush_inputs]),
            *FMA_FLAGS,
            *COMMON,
        ),
        _unscaled(_laned_starts),
        ("lanes", "terms"),
    ),
    Family(
        "pairwise sums of groups",
        (
            Field(("group",), powers_of_two),
            Field(("flush_input",), one_of("none", "format", "fp32")),
            Field(("flush_results",), one_of(False, True)),
            Field(("terms",), divisors, lambda i, s: s.flush_input != "none"),
            *COMMON,
        ),
        _unscaled(_pairwise_starts),
        ("group", "flush_input"),
    ),
    Family("pairs rounded to odd", COMMON, _unscaled(lambda i: [PairRoundOddSum()])),
    Family(FUSED, PARAMETRIC, _parametric_starts, PARAMETRIC_SHAPE),
    Family(EXACT, PARAMETRIC, _exact_starts, PARAMETRIC_SHAPE),
    Family("interleaved fused sums", INTERLEAVED, _interleaved_starts, ("dot.terms", "run", "groups")),
    Family(
        "exact sums of groups, then a fused sum",
        (
            Field(("group", "terms"), lambda i, s: [(x.group, x.terms) for x in _group_starts(i)]),
            Field(("fraction_bits",), _widths),
            Field(("output_rounding",), one_of(*ROUNDINGS)),
            *ALIGNMENT,
            Field(("scaled_zero",), one_of("skip_zero_products", "skip", "keeps_scale")),
        ),
        _group_starts,
        ("group", "terms"),
    ),
    Family(
        "fused sums rounded down",
        ROUND_DOWN,
        _unscaled(lambda i: [FusedDotRoundDownAdd(terms) for terms in divisors(i)]),
        ("terms",),
    ),
    Family(
        "even and odd fused sums rounded down",
        (*ROUND_DOWN, Field(("c_zero_below",), lambda i, s: range(0, 2 * MAX_WIDTH))),
        _unscaled(lambda i: [GroupFusedDotRoundDownAdd(terms) for terms in divisors(i) if terms % 2 == 0]),
        ("terms",),
    ),
)

INTEGERS = (
    Family(
        "exact integer sums",
        (Field(("saturate",), one_of(False, True)), Field(("terms",), divisors, _has("saturate"))),
        lambda i: [IntegerDotAdd(terms=i.k)],
    ),
)


def families_for(interface: Interface) -> tuple[Family, ...]:
    """The families whose specifications take the interface's formats."""
    return INTEGERS if interface.integer else FAMILIES


def name_of(family: Family, spec: Accumulator) -> str:
    """The name of the family that a specification belongs to: a search may leave the one that it started in."""
    if not isinstance(spec, ParametricDotAdd):
        return family.name
    return EXACT if spec.fraction_bits is None else FUSED


def simplest_form(spec: Accumulator) -> Accumulator:
    """A parametric unit that is an FDA as FusedDotAdd, anything else as it is."""
    if not isinstance(spec, ParametricDotAdd) or spec.fraction_bits is None:
        return spec
    fused = FusedDotAdd(**{name: getattr(spec, name) for name in FUSED_NAMES})
    defaults = ParametricDotAdd()
    beyond = (f.name for f in dataclasses.fields(spec) if f.name not in FUSED_NAMES)
    return fused if all(getattr(spec, name) == getattr(defaults, name) for name in beyond) else spec
