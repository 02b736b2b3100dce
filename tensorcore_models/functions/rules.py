"""This module holds NVIDIA's edge rules of IEEE operations: NaN results have all bits set except the sign."""

from typing import NamedTuple


class _Rules(NamedTuple):
    """`_Rules` holds the rules of :class:`~tensorcore_models.arithmetic.numbers.SpecialRules`."""

    nan: str = "all_ones"
    tf32_nan: str = "ignored"
    key: int | None = None
    negative_underflow: str = "negative"


RULES = _Rules()
