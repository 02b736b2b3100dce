"""This module holds the rule for the number of words of a product, and the number that :mod:`mpgemm.recovery.counts` chose."""

from dataclasses import asdict, dataclass

from tensorcore_models.results import Result


@dataclass(frozen=True, repr=False)
class Count(Result):
    """`Count` holds the number of words that was chosen for a product, and the reason."""

    method: str
    count: int | None  #: Number of slices or moduli; None if the native product was taken.
    bits: float  #: Bits of |A||B| that are proved in every element; infinite if the words hold the operands exactly.
    wanted: int  #: Bits that were asked for.
    span: int  #: Span of the exponents, in bits.
    element: tuple[int, int]  #: Row and column of the result that keeps the fewest bits.
    reason: str  #: Reason for the number, in words.

    def to_rows(self) -> list[dict]:
        """Return the fields as a list of one row."""
        return [{**asdict(self), "element": list(self.element)}]

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class CountControl:
    """`CountControl` says how a call chooses its number of slices or moduli (:mod:`mpgemm.recovery.counts`)."""

    #: Wanted bits of |A||B| in every element, or, with `fixed`, of the words; None for the bits of the result's format.
    bits: int | None = None
    offset: int = 0  #: Number added to the wanted bits.
    #: Largest number of slices or moduli, above which the native product is taken; None for all that the method has.
    most: int | None = None
    fixed: bool = False  #: Whether the number depends only on the wanted bits and not on the matrices.
