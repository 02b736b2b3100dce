"""This module computes traffic, operational intensity and roofline of a block, exactly as the paper defines them.

Source: SGEMM-cube (arXiv:2507.23387v4), eqs. 9, 10 and 11. They count one term of the three, let the cores share B
perfectly, and assume that C is read and written in every k group. :func:`ascend.reports.byte_table.byte_table` compares
them with a schedule's own count.
"""

from dataclasses import asdict, dataclass
from typing import Self

import numpy as np

from ascend.blocking import Blocking, panel_capacity
from ascend.chips.chip import Chip
from tensorcore_models.integers import integer_arguments
from tensorcore_models.machine.fp_state import default_fp_state, members_in_default_fp_state
from tensorcore_models.results import Result

#: Bytes s_A = s_B = s_C of an element in eq. 10 (the paper counts FP32 elements).
ELEMENT_BYTES = 4
#: Bytes of an FP16 element; eqs. 8 and 9 count L1 in FP16 elements.
L1_ELEMENT_BYTES = 2


@members_in_default_fp_state
@dataclass(frozen=True, repr=False)
class Traffic(Result):
    """`Traffic` holds the numbers of elements moved between memory and L1 (eq. 9 of Xue et al., arXiv:2507.23387v4)."""

    a_read: float
    b_read: float
    c_read_write: float

    @property
    def elements(self) -> float:
        """Return the total number of elements, data_rw of eq. 9 of Xue et al."""
        return self.a_read + self.b_read + self.c_read_write

    @integer_arguments("element_bytes")
    def bytes(self, element_bytes: int = ELEMENT_BYTES) -> float:
        """Return the bytes moved, if every element has `element_bytes` bytes."""
        return element_bytes * self.elements

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [{**asdict(self), "elements": self.elements}]

    def sentences(self) -> list[str]:
        """Return a sentence on the total number of elements."""
        return [f"{self.elements:.6g} elements between memory and L1"]


@dataclass(frozen=True, repr=False)
class RooflinePoint(Result):
    """`RooflinePoint` is the position of a block or schedule in the roofline model (eq. 11 of Xue et al.).

    Its FLOP/s are FP32-equivalent.
    """

    operational_intensity: float  # FLOP/B
    peak: float  # FLOP/s
    bandwidth: float  # B/s
    bandwidth_roof: float  # FLOP/s: bandwidth * operational intensity
    flops: float  # FLOP/s: the lower of the two
    bound: str  # "compute" or "memory"
    knee: float  # FLOP/B where the two roofs meet

    @classmethod
    def of(cls, intensity: float, peak: float, bandwidth: float) -> Self:
        """Return the roofline point of an intensity, for a peak rate and a bandwidth."""
        roof = bandwidth * intensity
        bound = "compute" if peak <= roof else "memory"
        return cls(intensity, peak, bandwidth, roof, min(peak, roof), bound, peak / bandwidth)

    def to_rows(self) -> list[dict]:
        """Return a list of one row (a dict of column names and values), as for a table."""
        return [asdict(self)]

    def sentences(self) -> list[str]:
        """Return a sentence on the bound (compute or memory) and the speed."""
        return [f"{self.bound}-bound: {self.flops:.4g} FLOP/s at {self.operational_intensity:.4g} FLOP/B"]


def check_sizes(m: int, k: int, n: int) -> None:
    """Raise ValueError unless all sizes are positive."""
    for name, size in (("m", m), ("k", k), ("n", n)):
        if size < 1:
            raise ValueError(f"{name} must be at least 1, got {size}")


@default_fp_state
@integer_arguments("m", "k", "n")
def traffic(b: Blocking, m: int, k: int, n: int, chip: Chip) -> Traffic:
    """Return the number of elements moved between memory and L1 for one term (eq. 9 of Xue et al., arXiv:2507.23387v4).

    Parameters
    ----------
    b : Blocking
        Sizes of the blocks.
    m, k, n : int
        A is m x k, B is k x n.
    chip : Chip
        The chip whose parameters are used.

    Raises
    ------
    ValueError
        If a size is not positive, or the block overflows L1.
    """
    check_sizes(m, k, n)
    f = b.fusion_efficiency(chip)
    if f <= 0:
        raise ValueError(
            f"block {b} overflows L1 of {chip.name} (N_fused is {b.n_fused(chip)}, expected at least 1): take a smaller block"
        )
    return Traffic(
        a_read=m * k,
        b_read=m * k * n / (chip.cores * b.bm),
        c_read_write=2 * m * k * n * b.bm / (f * (chip.l1_bytes // L1_ELEMENT_BYTES)),
    )


@default_fp_state
@integer_arguments("m", "k", "n", "element_bytes")
def operational_intensity(b: Blocking, m: int, k: int, n: int, chip: Chip, element_bytes: int = ELEMENT_BYTES) -> float:
    """Return the FLOP for each byte moved between memory and L1 (eq. 10 of Xue et al., arXiv:2507.23387v4).

    Parameters
    ----------
    b : Blocking
        Sizes of the blocks.
    m, k, n : int
        A is m x k, B is k x n.
    chip : Chip
        The chip whose parameters are used.
    element_bytes : int
        Number of bytes of each element.

    Raises
    ------
    ValueError
        See :func:`traffic`.
    """
    return 2 * m * n * k / traffic(b, m, k, n, chip).bytes(element_bytes)


def fp32_equivalent_peak(chip: Chip) -> float:
    """Return the cubes' FLOP/s divided by the three products that one FP32 product costs.

    The paper prints 85.3e12 for 910A.
    """
    return chip.peak_flops("fp16") / 3


@default_fp_state
@integer_arguments("m", "k", "n", "element_bytes")
def roofline(
    b: Blocking,
    m: int,
    k: int,
    n: int,
    chip: Chip,
    peak: float | None = None,
    element_bytes: int = ELEMENT_BYTES,
) -> RooflinePoint:
    """Return the roofline bound of a block (eq. 11 of Xue et al., arXiv:2507.23387v4).

    Parameters
    ----------
    b, m, k, n, chip
        See :func:`operational_intensity`.
    peak : float, optional
        Peak in FP32-equivalent FLOP/s; a third of the chip's FP16 peak if None. Xue et al. use 256e12 / 3.
    element_bytes : int
        Number of bytes of each element.
    """
    oi = operational_intensity(b, m, k, n, chip, element_bytes)
    peak = fp32_equivalent_peak(chip) if peak is None else peak
    return RooflinePoint.of(oi, peak, chip.hbm_bytes_per_second)


def traffic_of_sizes(sizes: np.ndarray, m: int, k: int, n: int, chip: Chip) -> np.ndarray:
    """Return the elements of eq. 9 for each (bm, bk, bn) row of an array, as float64."""
    check_sizes(m, k, n)
    bm, bk, bn = sizes.T
    elements = chip.l1_bytes // L1_ELEMENT_BYTES
    n_fused = panel_capacity(elements, bk, bm, 2 * bn)
    f = n_fused * bm * bk / elements
    return m * k + m * k * n / (chip.cores * bm) + 2.0 * m * k * n * bm / (f * elements)
