"""Holds the number of words that was chosen for a product, and the reason; :mod:`mpgemm.recovery.counts` chooses it."""

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
