"""Fast kernels against the plain-integer reference, bit for bit: every path, every instruction set, shapes that do not fit."""

import dataclasses

import numpy as np
import pytest
from random_encodings import STYLES
from twins import Unit, assert_same, operands

from tensorcore_models import fast, kernels, reference, set_isa, set_num_threads
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    InterleavedDotAdd,
    ParametricDotAdd,
    SequentialFMA,
)
from tensorcore_models.isa import available_isas

HALF = {"c_format": "fp16", "d_format": "fp16"}
RNE = {"output_rounding": "rne"}
NARROW = (
    Unit(FusedDotAdd(4, 23), "fp16", "fp16"),
    Unit(FusedDotAdd(8, 24), "fp16", "fp16"),
    Unit(FusedDotAdd(16, 25), "fp16", "fp16"),
    Unit(FusedDotAdd(16, 25), "fp16", "fp16", c_format="fp16"),
    Unit(FusedDotAdd(4, 23, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(8, 24, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 25, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 25, subnormal_c="normalised", zero_c="skip", **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 13, output_fraction_bits=13), "e4m3fn", "e5m2"),
    Unit(FusedDotAdd(16, 13, **RNE), "e4m3fn", "e5m2", **HALF),
    Unit(FusedDotAdd(16, 25), "e4m3fn", "e4m3fn"),
    Unit(FusedDotAdd(16, 24, zero_operand="skip", zero_c="skip", exponent_floor=-132), "fp16", "fp16"),
    Unit(FusedDotAdd(7, 20, zero_operand="format_minimum"), "e2m1", "e4m3fnuz"),
    Unit(FusedDotAdd(5, 25, nan="quiet"), "e5m2fnuz", "e3m2"),
    Unit(ParametricDotAdd(terms=8, fraction_bits=24), "fp16", "fp16"),
    Unit(FusedDotAdd(32, 13, output_fraction_bits=13), "e5m2", "e4m3fn"),
    Unit(FusedDotAdd(32, 13, **RNE), "e4m3fn", "e4m3fn", **HALF),
    Unit(InterleavedDotAdd(), "e4m3fn", "e5m2"),
    Unit(InterleavedDotAdd(FusedDotAdd(**RNE)), "e4m3fn", "e5m2", **HALF),
    Unit(InterleavedDotAdd(FusedDotAdd(8, 25), group_order=(1, 0)), "e5m2", "e4m3fn"),
)
WIDE = (
    Unit(FusedDotAdd(8, 24), "bf16", "bf16"),
    Unit(FusedDotAdd(16, 25), "bf16", "bf16"),
    Unit(FusedDotAdd(4, 24), "tf32", "tf32"),
    Unit(FusedDotAdd(8, 25), "tf32", "tf32"),
    Unit(FusedDotAdd(8, 25, zero_operand="skip", negative_underflow="negative"), "bf16", "fp16"),
    Unit(FusedDotAdd(9, 28, zero_operand="format_minimum", exponent_floor=-100), "fp32", "bf16"),
    Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2"),
    Unit(FusedDotAdd(32, 25, **RNE), "e5m2", "e5m2", **HALF),
    Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2", scale_format="ue8m0", block_size=32),
    Unit(FusedDotAdd(32, 25, scaled_zero="skip"), "e2m1", "e3m2", scale_format="ue8m0", block_size=16),
    Unit(FusedDotRoundDownAdd(8), "fp16", "fp16"),
    Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
    Unit(FusedDotRoundDownAdd(4, nan="all_ones"), "tf32", "tf32"),
    Unit(FusedDotRoundDownAdd(8, c_inf_with_overflow="nan", negative_underflow="positive"), "bf16", "bf16"),
    Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
    Unit(GroupFusedDotRoundDownAdd(6, c_zero_below=24), "bf16", "bf16"),
)
IEEE = (
    Unit(GroupPairwiseSum(4), "fp16", "fp16"),
    Unit(GroupPairwiseSum(4), "bf16", "bf16"),
    Unit(GroupPairwiseSum(2), "bf16", "bf16"),
    Unit(GroupPairwiseSum(4, flush_input="fp32"), "fp16", "bf16"),
    Unit(GroupPairwiseSum(4, flush_input="none", flush_results=False), "fp16", "fp16"),
    Unit(GroupPairwiseSum(2, flush_input="none", flush_results=False, nan="all_ones"), "bf16", "bf16"),
    Unit(SequentialFMA(), "fp32", "fp32"),
    Unit(SequentialFMA(saturate=True), "fp16", "fp16"),
    Unit(SequentialFMA(saturate=True), "fp32", "bf16"),
    Unit(SequentialFMA(nan="all_ones"), "e4m3fn", "e5m2"),
)
PATHS = [
    *(("float32 lanes", u) for u in IEEE),
    *(("lanes of 32 bits", u) for u in NARROW),
    *(("lanes of 64 bits", u) for u in WIDE),
]
# One row, one column, less than a lane group, more than a panel, k not a multiple of a step, k over several blocks.
SHAPES = ((1, 1, 33), (3, 70, 37), (20, 5, 32), (5, 17, 130), (9, 3, 7))


@pytest.fixture(params=available_isas())
def isa(request):
    set_isa(request.param)
    yield request.param
    set_isa(None)


def path_named(name):
    return next(path for path in kernels.FAST_PATHS if path.name == name)


def run(name, unit, args):
    low, path = kernels.lowered(unit), path_named(name)
    task = path.prepare(low)
    assert task is not None, f"{name} does not cover {unit}"
    return path.run(task, low, *args)


@pytest.mark.parametrize(("name", "unit"), PATHS, ids=lambda x: x if isinstance(x, str) else str(x)[17:90])
def test_twins(name, unit, isa):
    rng = np.random.default_rng(1)
    for m, n, k in SHAPES:
        for style in rng.choice(STYLES, 2, replace=False):
            args = operands(rng, unit, m, k, n, str(style))
            assert_same(unit, run(name, unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args, str(style))


@pytest.mark.parametrize("unit", NARROW, ids=lambda u: str(u)[17:90])
def test_batches_of_tiles(unit, isa):
    rng = np.random.default_rng(2)
    # Two tiles of at most 8 columns share a vector: odd counts, rows that are no multiple of 4, fewer columns.
    for m, n, k, count in ((16, 8, 16, 9), (3, 20, 37, 4), (1, 1, 1, 3), (7, 8, 32, 6), (6, 5, 20, 4), (16, 16, 16, 2)):
        parts = [operands(rng, unit, m, k, n, str(style)) for style in rng.choice(STYLES, count)]
        a, b, c = (np.stack([part[i] for part in parts]) for i in range(3))
        low, path = kernels.lowered(unit), path_named("lanes of 32 bits")
        got = path.run_batch(path.prepare(low), low, a, b, c, None, None)
        assert np.array_equal(got, kernels.generic_batch_bits(low, a, b, c))
        assert np.array_equal(kernels.matrix_bits(unit, a[0], b[0], c[0]), got[0])


OF_EACH_PATH = [("float32 lanes", IEEE[0]), ("lanes of 32 bits", NARROW[2]), ("lanes of 64 bits", WIDE[-4])]


@pytest.mark.parametrize(("name", "unit"), OF_EACH_PATH, ids=lambda x: str(x)[:20])
def test_reference_and_threads(name, unit):
    """Against the plain-integer truth itself, with one and with three threads, strided and read-only operands."""
    rng = np.random.default_rng(3)
    a, b, c, *scales = operands(rng, unit, 70, 40, 66, "normal")
    for x in (a, b, c):
        x.flags.writeable = False
    results = []
    for threads in (1, 3):
        set_num_threads(threads)
        results.append(run(name, unit, (a, b, c, *scales)))
    set_num_threads(None)
    assert np.array_equal(*results)
    strided = np.repeat(a, 2, axis=1)[:, ::2]
    assert np.array_equal(run(name, unit, (strided, b, c, *scales)), results[0])
    part = slice(3, 6)
    assert np.array_equal(results[0][part], reference.mma_bits(unit, a[part], b, c[part], *scales))


def test_scattered_specials(isa):
    """Infinities and NaNs reach the generic kernel, everything else stays in the lanes; the operands are left alone."""
    unit = Unit(FusedDotAdd(8, 24), "fp16", "fp16")
    a, b, c, *_ = operands(np.random.default_rng(4), unit, 80, 48, 90, "normal")
    b = b.copy()
    a[7, 5], a[70, 40], b[9, 3], b[47, 89], c[2, 2], c[3, 3] = 0x7C00, 0xFE01, 0xFC00, 0x7C01, 0x7F800000, 1
    before = [x.copy() for x in (a, b, c)]
    got = kernels.matrix_bits(unit, a, b, c)
    assert np.array_equal(got, kernels.generic_bits(kernels.lowered(unit), a, b, c))
    assert all(np.array_equal(x, y) for x, y in zip(before, (a, b, c), strict=True))


@pytest.mark.parametrize("unit", [WIDE[1], WIDE[8], WIDE[11]], ids=lambda u: str(u)[17:60])
def test_unlike_rows_and_columns(unit, isa):
    """Rows and columns of subnormals, zeros, infinities and extreme scales among ordinary ones, in one product."""
    rng = np.random.default_rng(6)
    a, b, c, *scales = operands(rng, unit, 23, 64, 70, "normal")
    b = b.copy()
    for place, style in enumerate(("subnormal", "sparse", "specials", "overflow", "bits")):
        x, y, z, *others = operands(rng, unit, 23, 64, 70, style)
        a[3 * place], b[:, 9 * place], c[4 * place] = x[3 * place], y[:, 9 * place], z[4 * place]
        if unit.scale_format is not None:
            scales[0][3 * place], scales[1][:, 9 * place] = others[0][3 * place], others[1][:, 9 * place]
    got = run("lanes of 64 bits", unit, (a, b, c, *scales))
    assert_same(unit, got, kernels.generic_bits(kernels.lowered(unit), a, b, c, *scales), (a, b, c, *scales))


@pytest.mark.parametrize("fraction_bits", range(18, 29))
def test_last_bits_at_the_unit(fraction_bits, isa):
    """Products of both signs whose lowest bits lie on either side of the unit, c likewise."""
    unit = Unit(FusedDotAdd(8, fraction_bits), "tf32", "bf16")
    rng = np.random.default_rng(fraction_bits)
    m, k, n = 11, 24, 40
    # one product of 2^0 leads; the others have lowest bits between 2^-32 and 2^-14
    a = (127 - rng.integers(3, 10, (m, k))).astype(np.uint32) << 23 | rng.integers(0, 64, (m, k)).astype(np.uint32) << 17
    b = (127 - rng.integers(4, 11, (k, n))).astype(np.uint16) << 7 | rng.integers(0, 128, (k, n)).astype(np.uint16)
    a[:, ::8], b[::8] = 0x3F800000, 0x3F80
    a |= rng.integers(0, 2, (m, k)).astype(np.uint32) << 31
    b |= (rng.integers(0, 2, (k, n)) << 15).astype(np.uint16)
    c = rng.integers(0x33000000, 0x3F800000, (m, n)).astype(np.uint32) | rng.integers(0, 2, (m, n)).astype(np.uint32) << 31
    args = (a, b, c, None, None)
    assert_same(unit, run("lanes of 64 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


def bf16_around(rng, exponent: int, shape) -> np.ndarray:
    """Encodings of bf16 with exponents within 3 of `exponent`, either sign."""
    fields = 127 + exponent + rng.integers(-3, 4, shape)
    return (fields << 7 | rng.integers(0, 128, shape) | rng.integers(0, 2, shape) << 15).astype(np.uint16)


@pytest.mark.parametrize("exponent", [-68, -64, -60, 57, 60, 62])
@pytest.mark.parametrize("unit", [WIDE[1], WIDE[4], WIDE[11], WIDE[13], WIDE[15]], ids=lambda u: str(u)[17:60])
def test_results_that_underflow_or_overflow(unit, exponent, isa):
    """Sums around 2^-126 and 2^127, where float32 has fewer bits or none; negative ones may vanish."""
    rng = np.random.default_rng(exponent + 100)
    m, k, n = 9, 40, 40
    if unit.b_format == "fp16":
        a, b = bf16_around(rng, 2 * exponent, (m, k)), (rng.integers(0x3000, 0x4000, (k, n))).astype(np.uint16)
    else:
        a, b = bf16_around(rng, exponent, (m, k)), bf16_around(rng, exponent, (k, n))
    c = bf16_around(rng, 2 * exponent if exponent > 0 else -120, (m, n)).astype(np.uint32) << 16
    c[::2] = rng.integers(0, 1 << 12, c[::2].shape)
    args = (a, b, c, None, None)
    assert_same(unit, run("lanes of 64 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


@pytest.mark.parametrize("unit", [WIDE[10], WIDE[15]], ids=lambda u: str(u)[17:60])
def test_small_addends_of_round_down(unit, isa):
    """c of either sign far below the products: rounded down to one unit or to none, or dropped."""
    rng = np.random.default_rng(8)
    a, b, _, *_ = operands(rng, unit, 7, 48, 33, "normal")
    c = (rng.integers(127 - 40, 127 - 15, (7, 33)) << 23 | rng.integers(0, 2, (7, 33)) << 31).astype(np.uint32)
    args = (a, b, c, None, None)
    assert_same(unit, run("lanes of 64 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


def test_sums_beyond_31_bits(isa):
    """Sixteen of the largest products and c: the only sums of the 32-bit lanes that may leave int32."""
    for unit in (NARROW[2], NARROW[6]):
        low = kernels.lowered(unit)
        a, b = np.full((3, 32), 0x3FFF, np.uint16), np.full((32, 70), 0x3FFF, np.uint16)
        a[1] |= 0x8000
        b[16:] &= 0x8000  # zeros: the second operation adds nothing
        encodings = (0x3F80, 0xBF80, 0x3FFF, 0xBFFF) if low.c_format.name == "fp32" else (0x3C00, 0xBC00, 0x3FFF, 0xBFFF)
        c = np.resize(np.array(encodings, low.c_format.container), (3, 70))
        c = c << np.uint32(16) if low.c_format.name == "fp32" else c
        args = (a, b, c, None, None)
        assert_same(unit, run("lanes of 32 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


def test_fp16_results_round_once(isa):
    """Ties of fp16 with something far below: more than float32 holds."""
    unit = NARROW[6]
    half_ulp, far = 0x1000, (0x0C00, 0x0800)  # 2^-11; 2^-12 times 2^-13
    a, b = np.zeros((4, 16), np.uint16), np.zeros((16, 40), np.uint16)
    a[:, 0], b[0], a[:, 1], b[1] = half_ulp, 0x3C00, far[0], far[1]
    a[1::2, 1] |= 0x8000
    a[2:, 0] |= 0x8000
    c = np.resize(np.array([0x3C00, 0x3C01, 0xBC00, 0xBC01], np.uint16), (4, 40))
    args = (a, b, c, None, None)
    assert_same(unit, run("lanes of 32 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


@pytest.mark.parametrize("name", ["lanes of 32 bits", "lanes of 64 bits"])
def test_subnormal_fp16_addends_align_at_the_smallest_normal(name, isa):
    unit = Unit(FusedDotAdd(8, 12, **RNE), "fp16", "fp16", **HALF)
    rng = np.random.default_rng(9)
    a, b = (rng.integers(0x0400, 0x1C00, shape).astype(np.uint16) for shape in ((9, 16), (16, 40)))
    a |= (rng.integers(0, 2, a.shape) << 15).astype(np.uint16)
    c = (rng.integers(0, 0x400, (9, 40)) | rng.integers(0, 2, (9, 40)) << 15).astype(np.uint16)
    args = (a, b, c, None, None)
    assert_same(unit, run(name, unit, args), reference.mma_bits(unit, a, b, c), args)


@pytest.mark.parametrize(("name", "unit"), OF_EACH_PATH, ids=lambda x: str(x)[:20])
def test_rounding_of_the_caller_is_left_alone(name, unit, isa):
    one, half_more = np.ones(4), np.full(4, 1.5 * 2.0**-53)
    run(name, unit, operands(np.random.default_rng(7), unit, 5, 37, 33, "normal"))
    assert (one + half_more == 1 + 2.0**-52).all() and (-one - half_more == -1 - 2.0**-52).all()
    assert (np.full(4, 2.0**-1070) * np.full(4, 0.5) == 2.0**-1071).all()  # subnormal numbers are kept


def test_paths_are_chosen():
    assert kernels.kernel_name(NARROW[0]) == "lanes of 32 bits"
    assert kernels.kernel_name(WIDE[0]) == "lanes of 64 bits"
    assert kernels.kernel_name(IEEE[0]) == "float32 lanes"
    assert kernels.kernel_name(dataclasses.replace(NARROW[0], accumulator=FusedDotAdd(4, 23, **RNE))).startswith("generic")
    assert set(fast.PATHS) <= {path.name for path in kernels.FAST_PATHS}
