"""Defines the search space of identify: the fields of an accumulator, their values, and specifications to start from.

A field lists its values, the simplest first, for the formats and the number of products of a black box (its interface).
Values that contradict each other are left out by the accumulators' own checks.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

#: Of a box: `formats` of a, b, c and d, `k` products of a call, `scale_format` and `block_size`
#: (:class:`tensorcore_models.probing.interface.Interface`).
Interface = Any

ROUNDINGS = ("rne", "rz", "rna", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
#: Widths that the round-down classes and integer_bits may have.
MAX_WIDTH = 60
#: Widths of other sums: those that the kernels hold whatever the number of terms.
WIDEST = 108

Values = Callable[[Interface, Any], Iterable[Any]]


def value_of(spec: Any, path: str) -> Any:
    """Return a field of a specification; ``dot.terms`` is a field of a field."""
    for name in path.split("."):
        spec = getattr(spec, name)
    return spec


@dataclass(frozen=True)
class Field:
    """One thing that a specification leaves open."""

    paths: tuple[str, ...]  # the fields that change together
    values: Values  # their values (a tuple for each), simplest first, for an interface and the present specification
    matters: Callable[[Interface, Any], bool] = lambda interface, spec: True

    @property
    def name(self) -> str:
        """Return the name of the field for reports."""
        return " and ".join(self.paths)

    def get(self, spec: Any) -> tuple:
        """Return the present values."""
        return tuple(value_of(spec, path) for path in self.paths)

    def of(self, spec: Any) -> dict[str, Any]:
        """Return the present values by path."""
        return dict(zip(self.paths, self.get(spec), strict=True))


@dataclass(frozen=True)
class Search:
    """One way to search a family: where to start, and what to change."""

    name: str
    fields: tuple[Field, ...]
    starts: Callable[[Interface], Iterable[Any]]  # specifications to start from, for an interface
    shape: tuple[
        str, ...
    ] = ()  # fields that say what meets what: of starting points alike in them the nearest is followed
    rank: int = 100  # of two searches that find the same, the lower one is told; also the order in which they are made
    holds: Callable[[Any], bool] = lambda spec: True  # whether a specification is named after this search


def one_of(*values: Any) -> Values:
    """Offer these values for every box."""
    return lambda interface, spec: values


def keyed(interface: Interface, spec: Any = None) -> list[tuple[str, int]]:
    """Return roundings with their keys: the stochastic one with that of the box."""
    return [*((rounding, 0) for rounding in ROUNDINGS), ("sr", interface.key)]


def divisors(interface: Interface, spec: Any = None) -> list[int]:
    """Return numbers of products that divide a call, largest first."""
    return [n for n in range(interface.k, 0, -1) if interface.k % n == 0]


def powers_of_two(interface: Interface, spec: Any = None) -> list[int]:
    return [n for n in divisors(interface) if n & (n - 1) == 0]


def lowest_product(interface: Interface) -> int:
    """Return the smallest exponent of a product of normal numbers, scales included."""
    a, b, _, _ = interface.formats
    scales = 0 if interface.scale_format is None else 2 * interface.scale_format.emin
    return a.emin + b.emin + scales


def lowest_bit(interface: Interface) -> int:
    """Return the exponent of the last place that any product or c can have."""
    a, b, c, d = interface.formats
    scale = interface.scale_format
    scales = 0 if scale is None else 2 * scale.quantum_exponent
    return min(a.quantum_exponent + b.quantum_exponent + scales, c.quantum_exponent, d.quantum_exponent)


def lowest_exponent(interface: Interface, spec: Any) -> int:
    """Return the smallest exponent with which an addend takes part in an alignment."""
    _, _, c, d = interface.formats
    if getattr(spec, "normalised_products", False) or getattr(spec, "subnormal_c", "raw") != "raw":
        return lowest_bit(interface)
    return min(lowest_product(interface), c.emin, d.emin, -126)


def floors(interface: Interface, spec: Any) -> list[int | None]:
    return [None, *range(max(lowest_exponent(interface, spec), -400), 9)]


def widths(interface: Interface, spec: Any) -> range:
    return range(1, WIDEST + 1)


def kept(interface: Interface, spec: Any) -> list[int | None]:
    return [None, *range(interface.formats[3].fraction_bits - 1, -1, -1)]


def overflows(interface: Interface, spec: Any) -> list[int | None]:
    a, b, _, _ = interface.formats
    return [None, *range(max(1, lowest_product(interface)), a.emax + b.emax + 2)]


def has(*attributes: str) -> Callable[[Interface, Any], bool]:
    return lambda interface, spec: all(getattr(spec, name) for name in attributes)


def padded(interface: Interface, spec: Any) -> bool:
    """Return operands with ignored bits and infinities: a NaN's payload may lie in the ignored bits."""
    return any(f.padding_bits for f in interface.formats[:2])


def scaled(interface: Interface, spec: Any) -> bool:
    return interface.scale_format is not None


def unscaled(specs: Callable[[Interface], Iterable[Any]]) -> Callable[[Interface], Iterable[Any]]:
    return lambda interface: () if interface.scale_format is not None else specs(interface)


COMMON = (
    # only formats with infinities have more than one NaN
    Field(("nan",), lambda i, s: list(type(s).edge_rules["nan"] or ()), lambda i, s: i.formats[3].has_inf),
    Field(("tf32_nan",), one_of("truncated", "kept"), padded),
)
ALIGNMENT = (
    *COMMON,
    Field(("zero_operand",), one_of("skip", "minus126", "format_minimum")),
    Field(("zero_c",), one_of("skip", "minus126", "format_minimum")),
    Field(("subnormal_c",), one_of("raw", "normalised")),
    Field(("negative_underflow",), one_of("positive", "negative")),
    Field(("exponent_floor",), floors),
)


def inside(field: Field, path: str) -> Field:
    """Return a field of a specification inside of another one."""
    return Field(
        tuple(f"{path}.{p}" for p in field.paths),
        lambda i, s: field.values(i, getattr(s, path)),
        lambda i, s: field.matters(i, getattr(s, path)),
    )
