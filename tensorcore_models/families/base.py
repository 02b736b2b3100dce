"""What all accumulator specifications share: validation, and the edge rules for specials, zeros and underflow."""

import dataclasses
import types
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar, Literal, Union, get_args, get_origin

import numpy as np

from ..formats.exact_rounding import check_rounding
from ..integers import checked_integer

ZeroExponent = Literal["skip", "minus126", "format_minimum"]
NanRule = Literal["all_ones", "quiet", "x86"]
MAX_TERMS = 1024
MAX_FRACTION_BITS = 120
#: Exponents of parameters lie within this, beyond every product of two binary64 numbers: sums are integers of that many bits.
MAX_EXPONENT = 4096


def require(condition: bool, spec: object, message: str) -> None:
    if not condition:
        raise ValueError(f"{type(spec).__name__}: {message}")


def checked_value(value: Any, expected: Any, what: str) -> Any:
    """`value` as the plain type that the annotation `expected` says: NumPy's integers and booleans become Python's.

    Raises
    ------
    TypeError
        If it is of another type.
    ValueError
        If it is none of a Literal's values.
    """
    choices = get_args(expected)
    if get_origin(expected) is Literal:
        if value not in choices:
            raise ValueError(f"{what} is {value!r}, expected one of {', '.join(map(repr, choices))}")
        return value
    if get_origin(expected) in (types.UnionType, Union):
        if value is None and type(None) in choices:
            return None
        others = [choice for choice in choices if choice is not type(None)]
        return checked_value(value, others[0], what) if len(others) == 1 else value
    if expected is bool:
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{what} is {value!r}, expected True or False")
        return bool(value)
    if expected is int:
        return checked_integer(value, what)
    if get_origin(expected) is tuple and choices == (int, ...):
        if isinstance(value, str) or not hasattr(value, "__iter__"):
            raise TypeError(f"{what} is {value!r}, expected integers")
        return tuple(checked_value(item, int, what) for item in value)
    if isinstance(expected, type) and not isinstance(value, expected):
        raise TypeError(f"{what} is {value!r}, expected {expected.__name__}")
    return value


def check_exponent(spec: object, name: str) -> None:
    """A parameter that is an exponent, or None."""
    value = getattr(spec, name)
    require(
        value is None or -MAX_EXPONENT <= value <= MAX_EXPONENT,
        spec,
        f"{name} {value} must be {-MAX_EXPONENT} to {MAX_EXPONENT}, or None",
    )


def check_kept(spec: object, name: str = "output_fraction_bits") -> None:
    """A number of fraction bits that a result keeps, or None."""
    value = getattr(spec, name)
    require(
        value is None or 0 <= value <= MAX_FRACTION_BITS,
        spec,
        f"{name} {value} must be 0 to {MAX_FRACTION_BITS}, or None",
    )


def check_deterministic(spec: object, name: str) -> None:
    require(check_rounding(getattr(spec, name)) != "sr", spec, f"{name} cannot be stochastic")


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    """What all accumulator specifications share: the edge rules for specials.

    Parameters
    ----------
    nan : {"all_ones", "quiet", "x86"}
        Encoding of NaN results; "x86" for SequentialFMA and LanedFMA only.
    tf32_nan : {"truncated", "kept"}
        What a tf32 operand is whose NaN payload is in the ignored low bits only.
    """

    nan: NanRule = "all_ones"
    tf32_nan: Literal["truncated", "kept"] = "truncated"

    #: Whether an engine of this algorithm can have block scales.
    takes_scales: ClassVar[bool] = False
    #: Allowed values of the named edge rules; None where any value that the class validates will do.
    edge_rules: ClassVar[dict[str, tuple[str, ...] | None]] = {
        "nan": ("all_ones", "quiet"),
        "tf32_nan": ("truncated", "kept"),
    }

    def __post_init__(self):
        for field in dataclasses.fields(self):
            if not isinstance(field.type, str):
                value = checked_value(getattr(self, field.name), field.type, f"{type(self).__name__}: {field.name}")
                object.__setattr__(self, field.name, value)
        for rule, allowed in self.edge_rules.items():
            value = getattr(self, rule)
            if allowed is not None and value not in allowed:
                raise ValueError(
                    f"{type(self).__name__}: {rule} is {value!r}, expected one of {', '.join(map(repr, allowed))}"
                )
        self._check()

    def _check(self) -> None:
        """Hook for the checks of a class's own fields."""

    #: The function of :mod:`tensorcore_models.reference.passes` that states the algorithm in plain integers.
    reference: ClassVar[str] = ""

    @property
    def terms_per_step(self) -> int:
        """Products that one pass of the algorithm takes; K is cut into chained passes of this length."""
        return 1

    def pass_bits(self, p) -> int:
        """One pass of the algorithm in plain integers: the truth that kernels are tested against.

        A class of one's own overrides this and runs at once; it gets compiled kernels
        when :mod:`tensorcore_models.kernels.lowering` has a lowering for it.

        Parameters
        ----------
        p : tensorcore_models.reference.Pass
            Encodings of up to `terms_per_step` products and of the addend.

        Returns
        -------
        int
            Encoding of the result.

        Raises
        ------
        NotImplementedError
            If the class states no algorithm.
        """
        if not self.reference:
            raise NotImplementedError(f"{type(self).__name__} states no algorithm: override pass_bits")
        return getattr(import_module("tensorcore_models.reference.passes"), self.reference)(p)

    def with_rules(self, **rules):
        """A copy with other edge rules.

        Raises
        ------
        ValueError
            If a name is not an edge rule of this class (the message lists them) or a value is not allowed.
        """
        unknown = sorted(set(rules) - set(self.edge_rules))
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no edge rule {', '.join(map(repr, unknown))}; it has {', '.join(self.edge_rules)}"
            )
        return dataclasses.replace(self, **rules)


@dataclass(frozen=True)
class Unpublished(Accumulator):
    """The arithmetic of a unit that nobody has published: it can be listed, nothing can be computed with it."""

    takes_scales: ClassVar[bool] = True

    def pass_bits(self, p) -> int:
        raise ValueError("this arithmetic is not public, so there is nothing to compute with")


ALIGNMENT_RULES: dict[str, tuple[str, ...] | None] = {
    **Accumulator.edge_rules,
    "zero_operand": ("skip", "minus126", "format_minimum"),
    "zero_c": ("skip", "minus126", "format_minimum"),
    "subnormal_c": ("raw", "normalised"),
    "negative_underflow": ("positive", "negative"),
    "exponent_floor": None,
}


@dataclass(frozen=True, kw_only=True)
class AlignedSum(Accumulator):
    """Fields of every algorithm that aligns addends to a largest exponent."""

    zero_operand: ZeroExponent = "skip"
    zero_c: ZeroExponent = "skip"
    subnormal_c: Literal["raw", "normalised"] = "raw"
    negative_underflow: Literal["positive", "negative"] = "positive"
    #: The alignment exponent never goes below this, None for no floor.
    exponent_floor: int | None = None

    edge_rules: ClassVar = ALIGNMENT_RULES

    def __post_init__(self):
        super().__post_init__()
        check_exponent(self, "exponent_floor")
