"""NVIDIA's edge rules of IEEE operations: NaN results have all bits but the sign set."""

from typing import NamedTuple


class _Rules(NamedTuple):
    """The rules that :class:`~tensorcore_models.arithmetic.numbers.SpecialRules` asks for."""

    nan: str = "all_ones"
    tf32_nan: str = "ignored"
    key: int | None = None
    negative_underflow: str = "negative"


RULES = _Rules()
