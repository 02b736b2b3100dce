"""Eqs. 9 to 11: exact values and the published ones."""

from fractions import Fraction

import numpy as np
import pytest

import ascend
from ascend.blocking import feasible_sizes
from ascend.roofline import fp32_equivalent_peak, traffic_of_sizes

A = ascend.get_chip("910A")
M, K, N = 5632, 2816, 5632
PAPER_PEAK = 256e12 / 3


@pytest.mark.parametrize(("b", "expected"), [(16, 228), (64, 547), (96, 568.5), (128, 540), (176, 469), (192, 446)])
def test_operational_intensity_table(b, expected):
    oi = ascend.operational_intensity(ascend.Blocking(b, 64, b), M, K, N, A)
    assert round(oi, 1 if expected == 568.5 else 0) == expected


@pytest.mark.parametrize("b", [16, 96, 176, 192])
def test_traffic_is_eq_9(b):
    block = ascend.Blocking(b, 64, b)
    f = Fraction(block.n_fused(A) * b * 64, 2**19)
    moved = ascend.traffic(block, M, K, N, A)
    # Each double below is the correctly rounded quotient or one rounding away from it: 1e-15 relative.
    assert moved.a_read == M * K
    assert moved.b_read == pytest.approx(float(Fraction(M * K * N, 32 * b)), rel=1e-15)
    assert moved.c_read_write == pytest.approx(float(2 * M * K * N * b / (f * 2**19)), rel=1e-15)


def test_roofline_of_the_paper():
    point = ascend.roofline(ascend.Blocking(176, 64, 176), M, K, N, A, peak=PAPER_PEAK)
    assert round(point.knee, 1) == 71.1
    assert point.flops == PAPER_PEAK and point.bound == "compute"


def test_the_roofline_alone_ranks_nothing():
    """Every feasible block lies above the knee."""
    blocks = ascend.feasible_blocks(A)
    points = [ascend.roofline(b, M, K, N, A, peak=PAPER_PEAK) for b in blocks]
    assert {p.flops for p in points} == {PAPER_PEAK}
    assert min(p.operational_intensity for p in points) > 71.1


def test_memory_bound_side():
    slow = A.replace(hbm_bytes_per_second=1e11)
    point = ascend.roofline(ascend.Blocking(96, 64, 96), M, K, N, slow)
    assert point.bound == "memory" and point.flops == 1e11 * point.operational_intensity < point.peak


def test_peak_is_a_third_unless_given():
    assert fp32_equivalent_peak(A) == pytest.approx(87.38e12, rel=1e-4)
    assert ascend.roofline(ascend.Blocking(96, 64, 96), M, K, N, A).peak == 262.144e12 / 3


def test_arrays_and_scalars_agree():
    sizes = feasible_sizes(A)[::97]
    arrays = traffic_of_sizes(sizes, 1000, 3000, 700, A)
    scalars = [ascend.traffic(ascend.Blocking(*row), 1000, 3000, 700, A).elements for row in sizes.tolist()]
    np.testing.assert_allclose(arrays, scalars, rtol=1e-14)  # the same few operations in another order


def test_bad_sizes():
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        ascend.traffic(ascend.Blocking(96, 64, 96), 16, 0, 16, A)
    with pytest.raises(ValueError, match="overflows L1"):
        ascend.traffic(ascend.Blocking(1024, 1024, 1024), 16, 16, 16, A)
