"""Whether an input suits splitting into fp16 words: range, bits kept, and the s_b to use.

Definitions. The exponent of x is floor(log2 |x|). x *overflows* if |x| >= 65520, which rounds beyond the largest fp16
number; it is *lost* if |x| <= 2^-25, which rounds to 0 in fp16; its high word is *subnormal* in between up to 2^-14.
Bits kept and the recommended s_b are those of :mod:`tensorcore_models.formats.split_analysis`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from tensorcore_models.formats.split_analysis import FULL_BITS, ScaleChoice, automatic_scale_exponent, scale_report

#: |x| up to which rounding to nearest even gives 0 in fp16.
FP16_LOST = 2.0**-25
#: Smallest normal fp16 number.
FP16_NORMAL = 2.0**-14


@dataclass(frozen=True)
class MatrixRange:
    """What matters about one operand.

    Attributes
    ----------
    name : str
        "A" or "B".
    shape : tuple of int
        Rows and columns.
    zeros, nonfinite, overflow, lost, subnormal : int
        Numbers of elements; the last three as the module defines them.
    smallest_exponent, largest_exponent : int or None
        Of the nonzero finite elements; None where there are none.
    histogram : dict
        Exponent -> number of elements.
    choices : tuple of ScaleChoice
        What each s_b that was asked for, and the recommended one, keeps.
    recommended : int
        s_b for this operand.
    """

    name: str
    shape: tuple[int, int]
    zeros: int
    nonfinite: int
    overflow: int
    lost: int
    subnormal: int
    smallest_exponent: int | None
    largest_exponent: int | None
    histogram: dict[int, int]
    choices: tuple[ScaleChoice, ...]
    recommended: int

    @property
    def best(self) -> ScaleChoice:
        """The choice of the recommended s_b."""
        return next(choice for choice in self.choices if choice.scale_exponent == self.recommended)


@dataclass(frozen=True)
class Suitability:
    """Both operands of a product, and what follows."""

    a: MatrixRange
    b: MatrixRange
    suits: bool
    verdict: str

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return asdict(self)


def examine(a: np.ndarray, b: np.ndarray, scale_exponents: Sequence[int] = (0, 6, 12)) -> Suitability:
    """Look at the operands of a product.

    Parameters
    ----------
    a, b : numpy.ndarray
        float32 matrices.
    scale_exponents : sequence of int
        Values of s_b to report on; the recommended ones are added.
    """
    first, second = _range_of("A", a, scale_exponents), _range_of("B", b, scale_exponents)
    complaints = [text for matrix in (first, second) for text in _complaints(matrix)]
    advice = f"s_b = {first.recommended} for A and {second.recommended} for B"
    if first.nonfinite or second.nonfinite:  # no s_b and no scaling helps against these
        verdict = f"does not suit SGEMM-cube: {'; '.join(complaints)}. The finite elements: {advice}."
        return Suitability(first, second, False, verdict)
    if complaints:
        verdict = f"does not suit SGEMM-cube as it is: {'; '.join(complaints)}. Best: rows and columns scaled "
        verdict += "into range (method sgemm_cube_scaled); without, "
        return Suitability(first, second, False, f"{verdict}{advice}.")
    return Suitability(first, second, True, f"suits SGEMM-cube: every element keeps {FULL_BITS} bits with {advice}.")


def _complaints(matrix: MatrixRange) -> list[str]:
    found = []
    if matrix.nonfinite:
        found.append(f"{matrix.nonfinite} elements of {matrix.name} are infinite or NaN")
    if matrix.overflow:
        found.append(
            f"{matrix.overflow} elements of {matrix.name} exceed 65504, fp16's largest number, and are lost "
            "whatever s_b is"
        )
    best = matrix.best
    if best.losing and best.worst_bits is not None:
        found.append(
            f"{best.losing / best.elements:.1%} of the nonzero elements of {matrix.name} keep fewer than "
            f"{FULL_BITS} bits (the worst {best.worst_bits:.1f}) even with s_b = {matrix.recommended}"
        )
    return found


def _range_of(name: str, x: np.ndarray, scale_exponents: Sequence[int]) -> MatrixRange:
    magnitudes = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
    values, counts = np.unique(np.frexp(magnitudes)[1] - 1, return_counts=True)
    best = automatic_scale_exponent(x)
    others = [scale_report(x, s) for s in sorted(set(scale_exponents) - {best.scale_exponent})]
    return MatrixRange(
        name=name,
        shape=(int(x.shape[0]), int(x.shape[1])),
        zeros=int(np.count_nonzero(x == 0)),
        nonfinite=int(np.count_nonzero(~np.isfinite(x))),
        overflow=best.overflowing,
        lost=int(np.count_nonzero(magnitudes <= FP16_LOST)),
        subnormal=int(np.count_nonzero((magnitudes > FP16_LOST) & (magnitudes < FP16_NORMAL))),
        smallest_exponent=int(values[0]) if values.size else None,
        largest_exponent=int(values[-1]) if values.size else None,
        histogram={int(value): int(count) for value, count in zip(values, counts, strict=True)},
        choices=tuple(sorted([best, *others], key=lambda choice: choice.scale_exponent)),
        recommended=best.scale_exponent,
    )
