"""Defines the meaning of an elementwise instruction, stated once for the spellings of PTX and AMDGCN."""

from dataclasses import dataclass, replace

from .types import COMPUTED, FORMATS, bits_of, one

#: Operations that round their exact result to the result's format.
ROUNDED = ("add", "sub", "mul", "fma", "div", "sqrt", "rcp", "convert")
#: Operations that pass numbers on as bits.
CARRIED = ("move", "select", "pack")


@dataclass(frozen=True)
class Meaning:
    """`Meaning` says what an instruction computes from its operands.

    Parameters
    ----------
    operation : str
        Name of a row of :data:`.operations.OPERATIONS`.
    result : str
        Type of the result (:mod:`.types`).
    sources : tuple of str
        Types of the operands.
    rounding : str
        Rounding of an inexact result, by the package's names.
    flush : tuple of two bool
        Whether subnormal operands, and results, become zeros.
    saturate : bool
        Whether the result is clamped: to [0, 1], or to the range of an integer type.
    options : tuple
        Other facts on which the operation depends: a comparison, a truth table, relu, ...
    turned : bool
        Whether the operands come in reverse order.
    nan : {"all_ones", "quiet", "any"}
        Encoding of a NaN result of an operation on numbers: all bits below the sign (NVIDIA), the quiet NaN (AMD), or an
        unknown NaN.
    """

    operation: str
    result: str
    sources: tuple[str, ...]
    rounding: str = "rne"
    flush: tuple[bool, bool] = (False, False)
    saturate: bool = False
    options: tuple = ()
    turned: bool = False
    nan: str = "all_ones"

    @property
    def floating(self) -> bool:
        """Return whether the operation takes or gives floating-point numbers."""
        kinds = {one(kind) for kind in (self.result, *self.sources)}
        return self.operation not in CARRIED and not kinds.isdisjoint(FORMATS)

    @property
    def commutes(self) -> bool:
        """Return whether swapping the first two operands changes no bit of the result: NaN results have one encoding."""
        if "atomic" in self.options:
            return False
        if one(self.result) not in COMPUTED:
            return self.operation in ("add", "mul", "and", "or", "xor", "min", "max")
        return self.operation in ("add", "mul", "fma") or self.operation in ("min", "max") and self.nan != "quiet"

    @property
    def packed(self) -> bool:
        """Return whether it is one operation on each of two packed numbers that consist of whole bytes."""
        pairs = [kind for kind in (self.result, *self.sources) if kind != one(kind)]
        joins = self.operation == "convert" and len(self.sources) == 2
        return min(map(bits_of, pairs), default=0) >= 16 and (joins or len(pairs) == 1 + len(self.sources))

    def half(self) -> "Meaning":
        """Return the operation that a packed operation applies to each of its numbers."""
        sources = tuple(map(one, self.sources))
        return replace(self, result=one(self.result), sources=sources[:1] if self.operation == "convert" else sources)

    def plain(self, operation: str, kind: str = "f32") -> bool:
        """Return whether it is the named operation on a type, rounded to nearest, without flushing or clamping."""
        return self == Meaning(operation, kind, (kind,) * len(self.sources), nan=self.nan)
