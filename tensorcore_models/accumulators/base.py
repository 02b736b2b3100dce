"""What all accumulator specifications share: validation, and the edge rules for specials, zeros and underflow."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..formats.exact_rounding import check_rounding

ZeroExponent = Literal["minus126", "format_minimum", "skip"]
MAX_TERMS = 1024
MAX_FRACTION_BITS = 120


def require(condition: bool, spec: object, message: str) -> None:
    if not condition:
        raise ValueError(f"{type(spec).__name__}: {message}")


def check_deterministic(spec: object, name: str) -> None:
    require(check_rounding(getattr(spec, name)) != "sr", spec, f"{name} cannot be stochastic")


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    """What all accumulator specifications share: the edge rules for specials.

    Parameters
    ----------
    nan : {"all_ones", "quiet"}
        Encoding of NaN results.
    tf32_nan : {"truncated", "kept"}
        What a tf32 operand is whose NaN payload stands in the ignored low bits only.
    """

    nan: Literal["all_ones", "quiet"] = "all_ones"
    tf32_nan: Literal["truncated", "kept"] = "truncated"

    #: Allowed values of the named edge rules; None where any value that the class validates will do.
    edge_rules: ClassVar[dict[str, tuple[str, ...] | None]] = {
        "nan": ("all_ones", "quiet"),
        "tf32_nan": ("truncated", "kept"),
    }

    def __post_init__(self):
        for rule, allowed in self.edge_rules.items():
            value = getattr(self, rule)
            if allowed is not None and value not in allowed:
                raise ValueError(
                    f"{type(self).__name__}: {rule} is {value!r}, expected one of {', '.join(map(repr, allowed))}"
                )
        self._check()

    def _check(self) -> None:
        """Hook for the checks of a class's own fields."""

    @property
    def terms_per_step(self) -> int:
        """Products that one pass of the algorithm takes; K is cut into chained passes of this length."""
        return 1

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


ALIGNMENT_RULES: dict[str, tuple[str, ...] | None] = {
    **Accumulator.edge_rules,
    "zero_operand": ("minus126", "format_minimum", "skip"),
    "zero_c": ("minus126", "format_minimum", "skip"),
    "subnormal_c": ("raw", "normalised"),
    "negative_underflow": ("positive", "negative"),
    "exponent_floor": None,
}


@dataclass(frozen=True, kw_only=True)
class AlignedSum(Accumulator):
    """Fields of every algorithm that aligns addends to a largest exponent."""

    zero_operand: ZeroExponent = "minus126"
    zero_c: ZeroExponent = "minus126"
    subnormal_c: Literal["raw", "normalised"] = "raw"
    negative_underflow: Literal["positive", "negative"] = "positive"
    #: The alignment exponent never goes below this, None for no floor (MATLAB-tensor-core: -133 for F = 25 and fp32 output).
    exponent_floor: int | None = None

    edge_rules: ClassVar = ALIGNMENT_RULES
