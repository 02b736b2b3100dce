"""Computes the condition number \\|A\\|\\|B\\| / \\|A B\\| of a matrix product."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.exact.product import exact_gemm
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Bits of a decimal digit; with fewer correct bits, not one digit of a result is right.
DIGIT = math.log2(10)


@dataclass(frozen=True, repr=False)
class Conditioning(Result):
    """`Conditioning` holds the condition number of a product, S / |A B (+ C)| with S = |A||B| (+ |C|).

    An error relative to S is larger by this factor relative to the result.

    Attributes
    ----------
    norm : float
        Ratio of the Frobenius norms, infinite if the product is 0 and S is not.
    median, largest : float
        Median and largest ratio of the elements where S is not 0; 1 if there are none.
    zeros : int
        Number of elements that cancel to exactly 0, whose ratio is infinite.
    elements : int
        Number of elements that are finite and whose S is not 0.
    """

    norm: float
    median: float
    largest: float
    zeros: int
    elements: int

    @classmethod
    def of(cls, values: np.ndarray, sizes: np.ndarray) -> "Conditioning":
        """Return the condition number for exact values in float64 and their S (`sizes`), without elements that are not
        finite."""
        counted = np.isfinite(values) & np.isfinite(sizes) & (sizes > 0)
        values, sizes = np.abs(values[counted]), sizes[counted]
        if not values.size:
            return cls(1.0, 1.0, 1.0, 0, 0)
        with np.errstate(divide="ignore", over="ignore"):
            each = np.maximum(sizes / values, 1.0)
            shift = -math.frexp(float(sizes.max()))[1]
            norms = [float(np.linalg.norm(np.ldexp(x, shift))) for x in (sizes, values)]
        norm = max(norms[0] / norms[1], 1.0) if norms[1] else math.inf
        zeros = int(np.count_nonzero(values == 0))
        return cls(norm, float(np.median(each)), float(each.max()), zeros, values.size)

    def bits_left(self, bits: float) -> float:
        """Return the correct bits of the result, in norm, if S has `bits` correct bits; at least 0."""
        return max(0.0, bits - math.log2(self.norm))

    def sentence(self, bits: float | None = None) -> str:
        """Return a sentence with the condition numbers and, for `bits` correct bits of S, the correct bits of the result."""
        zeros = f" ({self.zeros} of {self.elements} results cancel to 0)" if self.zeros else ""
        text = (
            f"Condition of the product, |A||B| / |AB|: {self.norm:.2g} in norm; by element {self.median:.2g} in the median, "
            f"{self.largest:.2g} at most{zeros}"
        )
        if bits is None:
            return f"{text}."
        left = self.bits_left(bits)
        none = "" if left >= DIGIT else ", which is not one digit"
        return (
            f"{text}. A product with {bits:.3g} correct bits of |A||B| has {left:.1f} correct bits of the result{none}."
        )

    def to_rows(self) -> list[dict]:
        """Return the fields as a list of one row, a dict of column names and values."""
        return [asdict(self)]

    def sentences(self) -> list[str]:
        """Return a list of one sentence with the condition numbers."""
        return [self.sentence()]


@default_fp_state
def condition_of_product(a, b, c=None) -> Conditioning:
    """Return the condition number of A B (+ C) from its exact product.

    Parameters
    ----------
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        Operands of any type that :func:`mpgemm.exact_gemm` takes.

    Raises
    ------
    ValueError, TypeError
        See :func:`mpgemm.exact_gemm`.

    Examples
    --------
    >>> a, b = np.float64([[1, 1]]), np.float64([[1], [-0.875]])
    >>> condition_of_product(a, b).norm
    15.0
    """
    exact = exact_gemm(a, b, c)
    return Conditioning.of(np.asarray(exact.rounded("fp64")), np.asarray(exact.magnitudes().rounded("fp64")))
