"""States how many words were chosen for a product, and why; :mod:`mpgemm.recovery.counts` chooses them."""

from dataclasses import asdict, dataclass

from tensorcore_models.results import Result


@dataclass(frozen=True, repr=False)
class Count(Result):
    """How many words were chosen for a product, and why."""

    method: str
    count: int | None  #: Slices or moduli; None: the native product.
    bits: float  #: Bits of |A||B| that they keep in every element, proved; infinite where the words hold everything.
    wanted: int  #: Bits that were asked for.
    span: int  #: Of the exponents, in bits.
    element: tuple[int, int]  #: The result that keeps the fewest bits.
    reason: str  #: In words.

    def to_rows(self) -> list[dict]:
        """Return one row."""
        return [{**asdict(self), "element": list(self.element)}]

    def __str__(self) -> str:
        return self.reason
