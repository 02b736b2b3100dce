"""Defines the search space of identify: fields of an accumulator, their values, and specifications to start from.

For the interface of a black box (its formats and its number of products) a field lists its values, the simplest first. The
checks of the accumulators reject combinations of values that contradict each other.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

#: Type of a black box's interface, with `formats` of a, b, c and d, the number `k` of products of a call, `scale_format` and
#: `block_size` (:class:`tensorcore_models.probing.interface.Interface`).
Interface = Any

ROUNDINGS = ("rne", "rz", "rna", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
#: Largest width in the round-down classes and of integer_bits.
MAX_WIDTH = 60
#: Largest width of other sums, which the kernels hold for every number of terms.
WIDEST = 108

Values = Callable[[Interface, Any], Iterable[Any]]


def value_of(spec: Any, path: str) -> Any:
    """Return the value of a field of a specification; the path ``dot.terms`` names a field of the field `dot`."""
    for name in path.split("."):
        spec = getattr(spec, name)
    return spec


@dataclass(frozen=True)
class Field:
    """`Field` is one or several fields of a specification that a search changes together."""

    paths: tuple[str, ...]  # names of the fields that change together
    values: Values  # values of the fields, simplest first, for an interface and the present specification
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
    """`Search` is one way to search a family.

    Parameters
    ----------
    name : str
        Name of the search.
    fields : tuple of Field
        Fields that the search changes.
    starts : callable
        Function that returns the specifications from which the search starts, for an interface.
    shape : tuple of str
        Fields of the sum's structure. Among starts that agree in these fields, only the nearest is followed.
    rank : int
        Place in the order of searches. If two searches find the same specification, that with the lower rank is named.
    holds : callable
        Function that returns whether a specification belongs to this search.
    """

    name: str
    fields: tuple[Field, ...]
    starts: Callable[[Interface], Iterable[Any]]
    shape: tuple[str, ...] = ()
    rank: int = 100
    holds: Callable[[Any], bool] = lambda spec: True


def one_of(*values: Any) -> Values:
    """Return a function that lists these values for every interface."""
    return lambda interface, spec: values


def keyed(interface: Interface, spec: Any = None) -> list[tuple[str, int]]:
    """Return pairs of roundings and keys; stochastic rounding has the key of the black box."""
    return [*((rounding, 0) for rounding in ROUNDINGS), ("sr", interface.key)]


def divisors(interface: Interface, spec: Any = None) -> list[int]:
    """Return the divisors of the number of products of a call, largest first."""
    return [n for n in range(interface.k, 0, -1) if interface.k % n == 0]


def powers_of_two(interface: Interface, spec: Any = None) -> list[int]:
    return [n for n in divisors(interface) if n & (n - 1) == 0]


def lowest_product(interface: Interface) -> int:
    """Return the smallest exponent of a product of normal numbers, scales included."""
    a, b, _, _ = interface.formats
    scales = 0 if interface.scale_format is None else 2 * interface.scale_format.emin
    return a.emin + b.emin + scales


def lowest_bit(interface: Interface) -> int:
    """Return the smallest exponent of a last place among all products and c."""
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
    """Return whether an operand format has ignored bits, which may hold the payload of a NaN."""
    return any(f.padding_bits for f in interface.formats[:2])


def scaled(interface: Interface, spec: Any) -> bool:
    return interface.scale_format is not None


def unscaled(specs: Callable[[Interface], Iterable[Any]]) -> Callable[[Interface], Iterable[Any]]:
    return lambda interface: () if interface.scale_format is not None else specs(interface)


COMMON = (
    # Only formats with infinities have more than one NaN.
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
    """Return the field of the inner specification `path` as a field of the outer specification."""
    return Field(
        tuple(f"{path}.{p}" for p in field.paths),
        lambda i, s: field.values(i, getattr(s, path)),
        lambda i, s: field.matters(i, getattr(s, path)),
    )
