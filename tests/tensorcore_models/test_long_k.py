"""Long k: computed in slices with the bits of one chain, and with memory that does not grow with k."""

import ml_dtypes
import numpy as np
import pytest
from rule_fuzz import FIELDS, changed, random_unit
from twins import STYLES, Unit, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import FusedDotAdd, GroupPairwiseSum, IntegerDotAdd, InterleavedDotAdd
from tensorcore_models.kernels import dispatch

#: Bytes for each value of k of a slice: its place in the packed order while that is found (three int64, one int32, one bool),
#: and both operands of at most 8 bytes twice (side by side, padded).
SLICE_BYTES = 3 * 8 + 4 + 1 + 4 * 8


@pytest.fixture
def short_slices(monkeypatch):
    monkeypatch.setattr(dispatch, "LONGEST_SLICE", 40)


def assert_slices_change_nothing(unit, rng, style, steps):
    k = unit.accumulator.terms_per_step * steps
    if unit.block_size:
        k = -(-k // unit.block_size) * unit.block_size
    args = operands(rng, unit, 3, k, 5, style)
    assert np.array_equal(kernels.matrix_bits(unit, *args), reference.mma_bits(unit, *args)), (style, k, changed(unit))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("cls", FIELDS, ids=lambda cls: cls.__name__)
def test_slices_of_k_change_no_bit(cls, short_slices):
    rng = np.random.default_rng(41)
    for i in range(16):
        unit = random_unit(rng, cls)
        if unit is not None:
            assert_slices_change_nothing(unit, rng, STYLES[i % len(STYLES)], int(rng.integers(1, 48)))


@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "unit",
    [
        Unit(FusedDotAdd(8, 24), "fp16", "fp16", "fp16", "fp32"),
        Unit(FusedDotAdd(8, 24), "bf16", "bf16", "fp32", "fp16"),
        Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2", scale_format="ue8m0", block_size=32),
        Unit(InterleavedDotAdd(), "e4m3fn", "e5m2"),
        Unit(GroupPairwiseSum(2), "fp16", "fp16"),
        Unit(GroupPairwiseSum(4, flush_results=False, terms=16), "bf16", "bf16"),
        Unit(IntegerDotAdd(saturate=True), "s8", "s8", "s32", "s32"),
    ],
    ids=["wider result", "narrower result", "scales", "interleaved", "gps", "gps of 16", "integers"],
)
def test_slices_of_k_change_no_bit_of_other_units(unit, short_slices):
    rng = np.random.default_rng(42)
    for style in STYLES:
        assert_slices_change_nothing(unit, rng, style, 20)


@pytest.mark.parametrize("every", [16, 48])
def test_slices_of_k_change_no_outside_sum(every, monkeypatch):
    engine = tcm.MatrixEngine(FusedDotAdd(8, 24), a_format="fp16")
    rng = np.random.default_rng(43)
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((32, 1000), (1000, 32)))
    whole = engine.gemm(a, b, promote_every=every)
    monkeypatch.setattr(dispatch, "LONGEST_SLICE", 100)
    assert np.array_equal(engine.gemm(a, b, promote_every=every), whole)


@pytest.mark.parametrize(
    ("accumulator", "fmt", "dtype"),
    [
        (FusedDotAdd(8, 24), "fp16", np.float16),
        (FusedDotAdd(8, 24), "bf16", ml_dtypes.bfloat16),
        (tcm.SequentialFMA(), "fp32", np.float32),
    ],
    ids=["narrow", "wide", "chain"],
)
def test_memory_of_a_product_does_not_grow_with_k(accumulator, fmt, dtype, peak):
    engine = tcm.MatrixEngine(accumulator, a_format=fmt)
    a = np.ones((1, 1 << 21), dtype)
    assert peak(lambda: engine.gemm(a, a.T)) < SLICE_BYTES * (1 << 17) + (1 << 20)


def test_memory_of_values_is_that_of_their_encodings(peak):
    """float32 values into fp16 encodings, checked 2^20 at a time with two float64 copies and four masks."""
    engine = tcm.MatrixEngine(FusedDotAdd(8, 24), a_format="fp16")
    a = np.ones((1, 1 << 22), np.float32)
    encodings = 2 * 2 * a.size
    assert peak(lambda: engine.gemm(a, a.T)) < encodings + (2 * 8 + 4 + 4) * (1 << 20)


def test_refused_values_are_counted_over_all_slices():
    x = np.zeros((3, 1 << 20), np.float32)
    x[1, 5], x[2, 7] = 0.1, np.float32(2.0**-30)
    with pytest.raises(ValueError, match=r"2 of 3145728 .*0\.1\d* at \(1, 5\)"):
        tcm.MatrixEngine(FusedDotAdd(8, 24), a_format="fp16").gemm(x, np.zeros((1 << 20, 1), np.float16))
