"""The condition number of a matrix product: how much of the digits of \\|A\\|\\|B\\| are digits of A B."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.exact.product import exact_gemm
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Bits of a decimal digit: with fewer not one digit of a result is right.
DIGIT = math.log2(10)


@dataclass(frozen=True, repr=False)
class Conditioning(Result):
    """``|A||B| (+ |C|)`` over ``|A B (+ C)|``, by which an error relative to the sizes grows relative to the result.

    Attributes
    ----------
    norm : float
        Of Frobenius norms; infinite where the product is 0 and its sizes are not.
    median, largest : float
        By element, of those whose sizes are not 0; 1 where there are none.
    zeros : int
        Elements that cancel to exactly 0, whose number is infinite.
    elements : int
    """

    norm: float
    median: float
    largest: float
    zeros: int
    elements: int

    @classmethod
    def of(cls, values: np.ndarray, sizes: np.ndarray) -> "Conditioning":
        """Of exact values, as float64, and their sizes; what is not finite is left out."""
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
        """Return the bits of the result that remain of so many bits of the sizes, in norm; at least 0."""
        return max(0.0, bits - math.log2(self.norm))

    def sentence(self, bits: float | None = None) -> str:
        """Return the numbers, and what they leave of so many bits."""
        zeros = f" ({self.zeros} of {self.elements} results cancel to 0)" if self.zeros else ""
        text = (
            f"Condition of the product, |A||B| / |AB|: {self.norm:.2g} in norm; by element {self.median:.2g} in the median, "
            f"{self.largest:.2g} at most{zeros}"
        )
        if bits is None:
            return f"{text}."
        left = self.bits_left(bits)
        none = "" if left >= DIGIT else ", not one digit"
        return f"{text}. Of {bits:.3g} bits of |A||B| it leaves {left:.1f} of the result{none}."

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [asdict(self)]

    def sentences(self) -> list[str]:
        """Return one sentence."""
        return [self.sentence()]


@default_fp_state
def condition_of_product(a, b, c=None) -> Conditioning:
    """Return the condition number of A B (+ C) from its exact product.

    Parameters
    ----------
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        Values of any of the types of :func:`mpgemm.exact_gemm`.

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
