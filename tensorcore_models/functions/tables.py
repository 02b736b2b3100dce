"""This module reads the special-function unit's tables from tables.txt, and says how each function reduces its operand."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).with_name("tables.txt")
#: Number of bits of x, the variable of a segment's polynomial.
X_BITS = 17


class CoefficientTable(NamedTuple):
    """`CoefficientTable` holds a table's triples c0, c1, c2, and the fraction bits of F = c0 + c1 x + c2 Q(x)."""

    rows: tuple[tuple[int, int, int], ...]
    fraction_bits: int


class UnitFunction(NamedTuple):
    """`UnitFunction` is one function of the special-function unit.

    Parameters
    ----------
    reduction : str
        Name of the reduction in :mod:`tensorcore_models.functions.datapath`, which gives a table entry and x.
    tables : tuple of str
        Names of the tables: a single table, one for even and one for odd exponents, or one per binade from 2**-8 on (tanh).
    bits : int
        Fraction bits of operand and result: 23, or 20 in the upper word of an FP64 number.
    """

    reduction: str
    tables: tuple[str, ...]
    bits: int = 23

    @property
    def bias(self) -> int:
        """Return the exponent bias of operand and result."""
        return 127 if self.bits == 23 else 1023


_BINADES = tuple(f"tanh{e:+d}" for e in range(-8, 3))
_BY_PARITY = {name: (f"{name}_even", f"{name}_odd") for name in ("rsqrt", "sqrt")}
#: The functions of the special-function unit, in the order of unit.h.
UNITS = {
    "ex2": UnitFunction("ex2", ("ex2",)),
    "lg2": UnitFunction("lg2", ("lg2",)),
    "rcp": UnitFunction("rcp", ("rcp",)),
    "rsqrt": UnitFunction("rsqrt", _BY_PARITY["rsqrt"]),
    "sqrt": UnitFunction("sqrt", _BY_PARITY["sqrt"]),
    "sin": UnitFunction("sin", ("sin",)),
    "cos": UnitFunction("cos", ("sin",)),
    "tanh": UnitFunction("tanh", _BINADES),
    "rcp_high": UnitFunction("rcp", ("rcp",), bits=20),
    "rsqrt_high": UnitFunction("rsqrt", _BY_PARITY["rsqrt"], bits=20),
}


@cache
def tables() -> dict[str, CoefficientTable]:
    """Return all tables by name."""
    found: dict[str, CoefficientTable] = {}
    for line in FILE.read_text(encoding="ascii").splitlines():
        words = line.split()
        if line.startswith("#"):
            continue
        if len(words) == 2:
            name, found[words[0]] = words[0], CoefficientTable((), int(words[1]))
        else:
            c0, c1, c2 = (int(word, 16) for word in words)
            found[name] = found[name]._replace(rows=(*found[name].rows, (c0, c1, c2)))
    return found


@cache
def kernel_tables() -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficients of all tables as float64 (entries, 3), and the places of the tables as int32 (units, 3, binades).

    The three numbers of each function and table are its first entry, the right shift of 23 fraction bits, and the fraction bits
    of F.
    """
    first: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    for name, table in tables().items():
        first[name] = len(rows)
        rows += table.rows
    units = np.zeros((len(UNITS), 3, len(_BINADES)), np.int32)
    for number, unit in enumerate(UNITS.values()):
        for place, name in enumerate(unit.tables):
            table = tables()[name]
            shift = 23 - X_BITS - (len(table.rows).bit_length() - 1) if unit.reduction == "tanh" else 0
            units[number, :, place] = first[name], shift, table.fraction_bits
    return np.array(rows, np.float64), units
