"""All edge rules times floors, instruction sets and kernels against the integer reference; the long run is a campaign."""

import zlib
from collections import Counter

import numpy as np
import pytest
from isas import default_isa_and_threads, every_isa  # noqa: F401
from rule_fuzz import FIELDS, check
from twins import Unit

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import FusedDotAdd, GroupDotFusedSum, GroupPairwiseSum
from tensorcore_models.formats.sums import add_rounded


def run(cls, seed: int, rounds: int) -> None:
    counts: Counter = Counter()
    wrong = check(np.random.default_rng([seed, zlib.crc32(cls.__name__.encode())]), cls, rounds, counts)
    print(f"{cls.__name__}: {counts.total()} results compared")
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.sweep(2)
@pytest.mark.parametrize("cls", FIELDS, ids=lambda cls: cls.__name__)
def test_rules_slice(cls):
    run(cls, 1, 25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 104))
@pytest.mark.parametrize("cls", FIELDS, ids=lambda cls: cls.__name__)
def test_rules_campaign(cls, seed):
    run(cls, seed, 200)


def test_a_negative_c_cut_to_nothing_leaves_no_sign():
    """GDFS under the rule "negative" with a floor: the sum of nothing is +0 on every instruction set."""
    spec = GroupDotFusedSum(negative_underflow="negative", exponent_floor=3)
    unit = Unit(spec, "e2m1", "e2m1", "fp32", "fp32", "ue4m3", 16)
    a, b = np.zeros((16, 64), np.uint8), np.zeros((64, 32), np.uint8)
    c = np.full((16, 32), 0x80800000, np.uint32)
    scales = np.full((16, 4), 0x38, np.uint8), np.full((4, 32), 0x38, np.uint8)
    wanted = reference.mma_bits(unit, a[:1], b[:, :1], c[:1, :1], scales[0][:1], scales[1][:, :1])
    assert wanted.tolist() == [[0]]
    for _ in every_isa():
        assert not kernels.matrix_bits(unit, a, b, c, *scales).any()


@pytest.mark.parametrize("flushed", ["aligned", "as_zero"])
@pytest.mark.parametrize("zero_sign", ["ieee", "majority"])
@pytest.mark.parametrize("fraction_bits", [None, 24])
def test_products_of_flushed_operands_keep_their_signs(fraction_bits, zero_sign, flushed):
    """Flushed numbers are zeros of their sign, which the sign of a sum of zeros counts."""
    rules = {"zero_sign": zero_sign, "flush_inputs": True, "flushed": flushed}
    unit = Unit(tcm.ParametricDotAdd(4, fraction_bits, **rules), "fp16", "fp16")
    rng = np.random.default_rng(3)
    a, b = (rng.choice(np.uint16([0, 0x8000, 0x0001, 0x8001, 0x83FF]), shape) for shape in ((8, 8), (8, 16)))
    a[:4] |= 0x8000
    b &= 0x7FFF
    c = np.full((8, 16), 0x80000000, np.uint32)
    wanted = reference.mma_bits(unit, a, b, c)
    assert {0, 0x80000000} == set(wanted.ravel().tolist())
    for _ in every_isa():
        for layer in ("auto", "generic"):
            kernels.set_kernel(layer)
            assert np.array_equal(kernels.matrix_bits(unit, a, b, c), wanted)
    kernels.set_kernel(None)


def test_pairwise_sums_keep_subnormal_sums_where_nothing_is_flushed():
    unit = Unit(GroupPairwiseSum(flush_results=False, flush_input="none"), "bf16", "bf16")
    rng = np.random.default_rng(5)
    a, b = (
        tcm.encode(rng.standard_normal(shape) * 2.0**-71, "bf16") for shape in ((4, 8), (8, 16))
    )  # products near 2^-142
    c = rng.integers(0, 0x00800000, (4, 16)).astype(np.uint32)
    wanted = reference.mma_bits(unit, a, b, c)
    for _ in every_isa():
        assert np.array_equal(kernels.matrix_bits(unit, a, b, c), wanted)


@pytest.mark.parametrize("rounding", ["rne", "rz", "rd", "ru", "ro", "rna", "ra", "rnu", "rnd", "rnz", "rno"])
def test_nan_of_a_sum_outside_is_the_formats_quiet_one(rounding):
    nans = np.uint32([0x7FFFFFFF, 0xFFC12345, 0x7F800001, 0x7FC00000])
    one = np.full(4, 0x3F800000, np.uint32)
    fp32 = tcm.get_format("fp32")
    for x, y in ((nans, one), (one, nans), (nans, nans[::-1])):
        assert add_rounded(x, y, fp32, rounding).tolist() == [fp32.nan_encoding()] * 4


@pytest.mark.parametrize(
    "accumulator", [FusedDotAdd(terms=8, fraction_bits=24), tcm.SequentialFMA(nan="all_ones")], ids=["fda", "fma"]
)
def test_nan_of_promotion_is_the_same_by_every_kernel(accumulator):
    engine = tcm.MatrixEngine(accumulator, a_format="fp16")
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 0x3C00, (32, 64)).astype(np.uint16), rng.integers(0, 0x3C00, (64, 32)).astype(np.uint16)
    a[3, 5], b[9, 7] = 0x7E01, 0x7C00
    found = []
    for _ in every_isa():
        for layer in ("auto", "generic"):
            kernels.set_kernel(layer)
            found += [engine.gemm_bits(a, b, promote_every=16, promote_rounding=r)[3].tolist() for r in ("rne", "rz")]
    kernels.set_kernel(None)
    assert all(set(row) == {0x7FC00000} for row in found)


@pytest.mark.parametrize(
    "accumulator",
    [tcm.LanedFMA(lanes=2, terms=32, flush_inputs=False), tcm.SequentialFMA(nan="x86")],
    ids=["lanes", "fma"],
)
def test_of_two_nans_x86_takes_that_of_a(accumulator):
    """In products of few columns, too, where A and B would change places."""
    unit = Unit(accumulator, "fp16", "fp16")
    a, b = np.full((8, 17), 0x3C00, np.uint16), np.full((17, 2), 0x3C00, np.uint16)
    a[:, 9], b[9] = 0x7C01, 0xFE00
    c = np.zeros((8, 2), np.uint32)
    wanted = reference.mma_bits(unit, a, b, c)
    assert set(wanted.ravel().tolist()) == {0x7FC02000}
    for _ in every_isa():
        assert np.array_equal(kernels.matrix_bits(unit, a, b, c), wanted)
