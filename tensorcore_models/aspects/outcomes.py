"""Tabulates the result of each rounding for tails of a quarter, a half and three quarters of a unit.

A sum of an even number of units and a tail of t units is rounded to the even number plus ``OUTCOMES[rounding][t]`` units
(IEEE 754-2019, 4.3; rounding to odd: Boldo and Melquiond 2008). Negative tails belong to negative sums. Probe vectors use the
table to predict results, and :func:`rounding_of` uses it to find the rounding of observed results.
"""

from collections.abc import Mapping
from fractions import Fraction

#: Tails in units; those of :data:`TIES` lie halfway between two units.
QUARTERS = (Fraction(3, 4), Fraction(1, 4), Fraction(-3, 4), Fraction(-1, 4))
TIES = (Fraction(1, 2), Fraction(3, 2), Fraction(-1, 2), Fraction(-3, 2))
TAILS = QUARTERS + TIES


def _row(*values: int) -> dict[Fraction, int]:
    return dict(zip(TAILS, values, strict=True))


OUTCOMES: dict[str, dict[Fraction, int]] = {
    "rz": _row(0, 0, 0, 0, 0, 1, 0, -1),
    "ru": _row(1, 1, 0, 0, 1, 2, 0, -1),
    "rd": _row(0, 0, -1, -1, 0, 1, -1, -2),
    "rne": _row(1, 0, -1, 0, 0, 2, 0, -2),
    "rna": _row(1, 0, -1, 0, 1, 2, -1, -2),
    "ro": _row(1, 1, -1, -1, 1, 1, -1, -1),
    "ra": _row(1, 1, -1, -1, 1, 2, -1, -2),
    "rnu": _row(1, 0, -1, 0, 1, 2, 0, -1),
    "rnd": _row(1, 0, -1, 0, 0, 1, -1, -2),
    "rnz": _row(1, 0, -1, 0, 0, 1, 0, -1),
    "rno": _row(1, 0, -1, 0, 1, 1, -1, -1),
}


def rounding_of(observed: Mapping[Fraction, Fraction | int | None]) -> str | None:
    """Return the rounding that explains all observations; None if no rounding or several roundings do."""
    fitting = [name for name, row in OUTCOMES.items() if all(row[tail] == value for tail, value in observed.items())]
    return fitting[0] if len(fitting) == 1 else None
