"""Fast kernels against the plain-integer reference, bit for bit: every path, every instruction set, shapes that do not fit."""

import dataclasses
import functools
from types import SimpleNamespace

import numpy as np
import pytest
from random_encodings import STYLES
from twins import Unit, assert_same, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference, set_isa, set_num_threads
from tensorcore_models._kernels.chains import chains
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    GroupPairwiseSum,
    InterleavedDotAdd,
    LanedFMA,
    ParametricDotAdd,
    SequentialFMA,
)
from tensorcore_models.machine.instruction_sets import available_isas, isa_level

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
    Unit(FusedDotAdd(16, 25, subnormal_c="normalised", exponent_floor=-21, **RNE), "fp16", "fp16", **HALF),
    Unit(FusedDotAdd(16, 13, output_fraction_bits=13), "e4m3fn", "e5m2"),
    Unit(FusedDotAdd(16, 13, **RNE), "e4m3fn", "e5m2", **HALF),
    Unit(FusedDotAdd(16, 25), "e4m3fn", "e4m3fn"),
    Unit(FusedDotAdd(16, 24, exponent_floor=-132), "fp16", "fp16"),
    Unit(FusedDotAdd(7, 6, exponent_floor=-3), "e2m1", "e4m3fnuz"),
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
    Unit(FusedDotAdd(8, 25, subnormal_c="normalised", negative_underflow="negative"), "bf16", "fp16"),
    Unit(FusedDotAdd(9, 28, exponent_floor=-100), "fp32", "bf16"),
    Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2"),
    Unit(FusedDotAdd(32, 25, **RNE), "e5m2", "e5m2", **HALF),
    Unit(FusedDotAdd(32, 25), "e4m3fn", "e5m2", scale_format="ue8m0", block_size=32),
    Unit(FusedDotAdd(32, 25, exponent_floor=-133), "e2m1", "e3m2", scale_format="ue8m0", block_size=16),
    Unit(FusedDotRoundDownAdd(8), "fp16", "fp16"),
    Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
    Unit(FusedDotRoundDownAdd(4, nan="all_ones"), "tf32", "tf32"),
    Unit(
        FusedDotRoundDownAdd(8, c_inf_with_overflow="c", negative_underflow="positive", sum_fraction_bits=None),
        "bf16",
        "bf16",
    ),
    Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
    Unit(GroupFusedDotRoundDownAdd(6, c_zero_below=24), "bf16", "bf16"),
    Unit(FusedDotAdd(16, 24, alignment_rounding="rne"), "fp16", "fp16"),
    Unit(FusedDotAdd(8, 9, alignment_rounding="rne"), "bf16", "bf16"),  # ties are frequent
    Unit(ParametricDotAdd(9, 28, alignment_rounding="rne", exponent_floor=-100), "fp32", "tf32", c_format="fp16"),
    Unit(
        FusedDotAdd(32, 12, alignment_rounding="rne", subnormal_c="normalised"),
        "e4m3fn",
        "e5m2",
        scale_format="ue8m0",
        block_size=32,
    ),
)
PAIRWISE = (
    Unit(GroupPairwiseSum(4), "fp16", "fp16"),
    Unit(GroupPairwiseSum(4), "bf16", "bf16"),
    Unit(GroupPairwiseSum(2), "bf16", "bf16"),
    Unit(GroupPairwiseSum(4, flush_input="fp32"), "fp16", "bf16"),
    Unit(GroupPairwiseSum(4, terms=16), "bf16", "bf16"),
    Unit(GroupPairwiseSum(2, nan="all_ones", terms=4), "bf16", "bf16"),
)
AMD = {"output_rounding": "rne", "nan": "quiet", "negative_underflow": "negative"}
EXACT = (
    Unit(ParametricDotAdd(4, fraction_bits=None, **AMD), "fp16", "fp16"),
    Unit(ParametricDotAdd(2, fraction_bits=None, **AMD), "bf16", "bf16"),
    Unit(ParametricDotAdd(4, fraction_bits=None, **AMD), "bf16", "fp16"),
)
CHAINS = (
    Unit(SequentialFMA(), "fp32", "fp32"),
    Unit(SequentialFMA(saturate=True), "fp16", "fp16"),
    Unit(SequentialFMA(saturate=True), "fp32", "bf16"),
    Unit(SequentialFMA(nan="all_ones"), "e4m3fn", "e5m2"),
    Unit(SequentialFMA(), "fp64", "fp64", "fp64", "fp64"),
    Unit(SequentialFMA(nan="all_ones"), "fp16", "fp32", "fp64", "fp64"),
    Unit(SequentialFMA(saturate=True), "fp64", "e5m2", "fp64", "fp64"),
    Unit(SequentialFMA(pair_order="odd_first"), "fp16", "bf16"),
)
FLUSHING = (
    Unit(SequentialFMA("rne", True, True, "odd_first", nan="x86"), "bf16", "bf16"),
    Unit(SequentialFMA("rne", True, True, nan="all_ones"), "fp32", "bf16"),
    Unit(SequentialFMA("rne", True, True, saturate=True), "bf16", "fp32"),
    Unit(SequentialFMA("rne", True, True, nan="x86"), "fp64", "fp64", "fp64", "fp64"),
    Unit(LanedFMA(), "bf16", "bf16"),
    Unit(LanedFMA(nan="quiet"), "bf16", "fp32"),
    Unit(LanedFMA(flush_inputs=False), "fp16", "fp16"),
    Unit(LanedFMA(3, 12), "bf16", "bf16"),
)
PATHS = [
    *(("pairwise sums", u) for u in PAIRWISE),
    *(("exact sums of few products", u) for u in EXACT),
    *(("chains of multiply-adds", u) for u in CHAINS + FLUSHING),
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
    kernel = path.kernel.of(low)
    assert kernel is not None, f"{name} does not cover {unit}"
    return kernel.run(low, *args)


@pytest.mark.parametrize(("name", "unit"), PATHS, ids=lambda x: x if isinstance(x, str) else str(x)[17:90])
def test_twins(name, unit, isa):
    rng = np.random.default_rng(1)
    for m, n, k in SHAPES:
        for style in rng.choice(STYLES, 2, replace=False):
            args = operands(rng, unit, m, k, n, str(style))
            assert_same(
                unit, run(name, unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args, str(style)
            )


@pytest.mark.parametrize("unit", NARROW, ids=lambda u: str(u)[17:90])
def test_batches_of_tiles(unit, isa):
    rng = np.random.default_rng(2)
    # Two tiles of at most 8 columns share a vector: odd counts, rows that are no multiple of 4, fewer columns.
    for m, n, k, count in ((16, 8, 16, 9), (3, 20, 37, 4), (1, 1, 1, 3), (7, 8, 32, 6), (6, 5, 20, 4), (16, 16, 16, 2)):
        parts = [operands(rng, unit, m, k, n, str(style)) for style in rng.choice(STYLES, count)]
        a, b, c = (np.stack([part[i] for part in parts]) for i in range(3))
        low, path = kernels.lowered(unit), path_named("lanes of 32 bits")
        got = path.kernel.of(low).run_batch(low, a, b, c, None, None)
        assert np.array_equal(got, kernels.generic_batch_bits(low, a, b, c))
        assert np.array_equal(kernels.matrix_bits(unit, a[0], b[0], c[0]), got[0])


def pairwise_slices(monkeypatch, length):
    """Has pairwise sums pack that many products at a time."""
    short = functools.partial(kernels.pairwise.pairwise.pairwise, length=length)
    monkeypatch.setattr(kernels.pairwise, "pairwise", SimpleNamespace(pairwise=short))


@pytest.mark.parametrize(
    ("name", "unit"),
    [(n, u) for n, u in PATHS if n in ("pairwise sums", "exact sums of few products", "chains of multiply-adds")],
    ids=lambda x: x if isinstance(x, str) else str(x)[17:90],
)
def test_values_of_operands_in_slices(name, unit, monkeypatch):
    """Slices of k as short as they can be."""
    monkeypatch.setattr(kernels.common, "_VALUES", 1)
    if name != "chains of multiply-adds":
        pairwise_slices(monkeypatch, path_named(name).kernel.of(kernels.lowered(unit)).terms)
    rng = np.random.default_rng(8)
    for style in STYLES:
        args = operands(rng, unit, 5, 37, 9, str(style))
        assert_same(unit, run(name, unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args)


OF_EACH_PATH = [
    ("pairwise sums", PAIRWISE[0]),
    ("exact sums of few products", EXACT[0]),
    ("chains of multiply-adds", CHAINS[0]),
    ("chains of multiply-adds", FLUSHING[0]),
    ("chains of multiply-adds", FLUSHING[4]),
    ("lanes of 32 bits", NARROW[2]),
    ("lanes of 64 bits", WIDE[12]),
    ("lanes of 64 bits", WIDE[16]),
]


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


@pytest.mark.parametrize("unit", [WIDE[1], WIDE[8], WIDE[11], WIDE[16]], ids=lambda u: str(u)[17:60])
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


@pytest.mark.sweep(11)
@pytest.mark.parametrize("fraction_bits", range(18, 29))
def test_last_bits_at_the_unit(fraction_bits, isa):
    """Products of both signs whose lowest bits lie on either side of the unit, c likewise."""
    unit = Unit(FusedDotAdd(8, fraction_bits), "tf32", "bf16")
    rng = np.random.default_rng(fraction_bits)
    m, k, n = 11, 24, 40
    # one product of 2^0 leads; the others have lowest bits between 2^-32 and 2^-14
    a = (127 - rng.integers(3, 10, (m, k))).astype(np.uint32) << 23 | rng.integers(0, 64, (m, k)).astype(
        np.uint32
    ) << 17
    b = (127 - rng.integers(4, 11, (k, n))).astype(np.uint16) << 7 | rng.integers(0, 128, (k, n)).astype(np.uint16)
    a[:, ::8], b[::8] = 0x3F800000, 0x3F80
    a |= rng.integers(0, 2, (m, k)).astype(np.uint32) << 31
    b |= (rng.integers(0, 2, (k, n)) << 15).astype(np.uint16)
    c = (
        rng.integers(0x33000000, 0x3F800000, (m, n)).astype(np.uint32)
        | rng.integers(0, 2, (m, n)).astype(np.uint32) << 31
    )
    args = (a, b, c, None, None)
    assert_same(unit, run("lanes of 64 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


def bf16_around(rng, exponent: int, shape) -> np.ndarray:
    """Encodings of bf16 with exponents within 3 of `exponent`, either sign."""
    fields = 127 + exponent + rng.integers(-3, 4, shape)
    return (fields << 7 | rng.integers(0, 128, shape) | rng.integers(0, 2, shape) << 15).astype(np.uint16)


@pytest.mark.sweep(15)
@pytest.mark.parametrize("exponent", [-68, -64, -60, 57, 60, 62])
@pytest.mark.parametrize(
    "unit", [WIDE[1], WIDE[4], WIDE[11], WIDE[13], WIDE[15], WIDE[17]], ids=lambda u: str(u)[17:60]
)
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


def of_others(unit, args):
    """The product by the generic kernel and by the reference."""
    return kernels.generic_bits(kernels.lowered(unit), *args), reference.mma_bits(unit, *args[:3])


@pytest.mark.parametrize("short", [True, False], ids=["slices of one instruction", "one slice"])
def test_zeros_of_cdna2(isa, short, monkeypatch):
    """Operands and each instruction's c are taken as +0, -0 too; what is flushed of a result keeps its sign (mmasim 2.1.1)."""
    a = np.array([[0x0014, 0x8014, 0x8000, 0x0000]], np.uint16)  # subnormal numbers and zeros of bf16: all +0
    b = np.full((4, 40), 0x8084, np.uint16)
    c = np.full((1, 40), 0x80000000, np.uint32)
    for terms in (2, 4):
        if short:
            pairwise_slices(monkeypatch, terms)
        unit = Unit(GroupPairwiseSum(2, terms=terms), "bf16", "bf16")
        args = (a, b, c, None, None)
        for d in (run("pairwise sums", unit, args), *of_others(unit, args)):
            assert (d == 0).all()  # +0 and products of -0
        # 2^-126 - 3 * 2^-127 is flushed to -0 after the first group; products of -0 keep it, unless c is taken anew
        y = np.repeat(np.array([[0x2000], [0x8084], [0x8084], [0x8084]], np.uint16), 40, axis=1)
        y[1] = 0
        for zero in (0, 0x8000):
            x = np.array([[0x2000, 0, zero, zero]], np.uint16)  # 2^-63
            args = (x, y, np.full((1, 40), 0x80C00000, np.uint32), None, None)
            for d in (run("pairwise sums", unit, args), *of_others(unit, args)):
                assert (d == (0x80000000 if terms == 4 else 0)).all()


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
@pytest.mark.parametrize("rule", ["format", "fp32", None])
def test_every_encoding_of_pairwise_and_exact_sums(fmt, rule, isa):
    """As rows of A and as columns of B, times 1."""
    unit = Unit(ParametricDotAdd(2, None, **AMD) if rule is None else GroupPairwiseSum(2, flush_input=rule), fmt, fmt)
    name = "exact sums of few products" if rule is None else "pairwise sums"
    codes = np.zeros((1 << 16, 2), np.uint16)
    codes[:, 0] = np.arange(1 << 16)
    one = np.full((2, 1), tcm.encode(1.0, fmt), np.uint16)
    for a, b in ((codes, one), (one.T.copy(), codes.T.copy())):
        args = (a, b, np.zeros((a.shape[0], b.shape[1]), np.uint32), None, None)
        assert_same(unit, run(name, unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args)


@pytest.mark.parametrize("unit", EXACT, ids=lambda u: str(u)[17:60])
def test_exact_sums_round_once(unit, isa):
    """Ties of float32 with something far below in c or in a product, beyond 53 bits too; sums that vanish or cancel."""
    rng = np.random.default_rng(10)
    m, k, n = 9, 4 * unit.accumulator.terms, 40
    a, b, _, *_ = operands(rng, unit, m, k, n, "cancelling")
    exponents = rng.choice([127 + 20, 127, 127 - 25, 127 - 60, 1, 0], (m, n))
    c = (exponents << 23 | rng.choice([0, 1, 0x400000, 0x7FFFFF], (m, n)) | rng.integers(0, 2, (m, n)) << 31).astype(
        np.uint32
    )
    one = {"fp16": 0x3C00, "bf16": 0x3F80}
    a[0], b[:, 0] = one[unit.a_format], one[unit.b_format]
    a[1, ::2], b[::2, 1] = 1, 1  # the smallest numbers
    args = (a, b, c, None, None)
    assert_same(unit, run("exact sums of few products", unit, args), reference.mma_bits(unit, a, b, c), args)


def test_sums_beyond_31_bits(isa):
    """Sixteen of the largest products and c: the only sums of the 32-bit lanes that may leave int32."""
    for unit in (NARROW[2], NARROW[6]):
        low = kernels.lowered(unit)
        a, b = np.full((3, 32), 0x3FFF, np.uint16), np.full((32, 70), 0x3FFF, np.uint16)
        a[1] |= 0x8000
        b[16:] &= 0x8000  # zeros: the second operation adds nothing
        encodings = (
            (0x3F80, 0xBF80, 0x3FFF, 0xBFFF) if low.c_format.name == "fp32" else (0x3C00, 0xBC00, 0x3FFF, 0xBFFF)
        )
        c = np.resize(np.array(encodings, low.c_format.container), (3, 70))
        c = c << np.uint32(16) if low.c_format.name == "fp32" else c
        args = (a, b, c, None, None)
        assert_same(unit, run("lanes of 32 bits", unit, args), reference.mma_bits(unit, a, b, c), args)


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
def test_sums_are_rounded_down_to_31_bits_first(isa, fmt):
    """CDNA3: 2 - 2^-23 and 2^-22 + 2^-31 are a tie and one bit, which is cut off; the tie goes to even."""
    unit = Unit(FusedDotRoundDownAdd(8), fmt, fmt)
    x, y = np.zeros((32, 8), np.float32), np.zeros((8, 32), np.float32)
    x[:, :2], y[:2] = (2.0**-11, 2.0**-16), [[2.0**-11], [2.0**-15]]
    a, b = tcm.encode(x, fmt), tcm.encode(y, fmt)
    args = (a, b, np.full((32, 32), 0x3FFFFFFF, np.uint32), None, None)
    assert (run("lanes of 64 bits", unit, args) == 0x40000000).all()
    once = Unit(FusedDotRoundDownAdd(8, sum_fraction_bits=None), fmt, fmt)
    assert (run("lanes of 64 bits", once, args) == 0x40000001).all()


def test_small_addends_without_products(isa):
    """c aligns at its own exponent where all products are zero: nothing of it is cut off, however small it is."""
    unit = NARROW[0]
    a, b = np.zeros((3, 8), np.uint16), np.full((8, 70), 0x3C00, np.uint16)
    a[1] = 0x8000
    a[2, 4:] = 0x0001  # the smallest number in the second operation
    c = (np.arange(0, 140, 2, dtype=np.uint32) << 23 | 0x7FFFFF) * np.ones((3, 1), np.uint32)
    args = (a, b, c, None, None)
    d = reference.mma_bits(unit, a, b, c)
    assert (d[:2] == c[:2]).all()
    assert_same(unit, run("lanes of 32 bits", unit, args), d, args)


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


def test_fp16_results_of_sums_beyond_31_bits_round_once(isa):
    """15 (2047/1024)^2 + (2006/1024)(2027/1024) + c = 64 + 2^-5 + 2^-20: half of fp16's last place, and far below 24 bits."""
    unit = NARROW[6]
    significands = np.full((2, 16), 2047)
    significands[:, 0] = 2006, 2027
    x, y = (0x3C00 + significands - 1024).astype(np.uint16)
    c = np.float16(0.2120361328125).view(np.uint16)
    a, b = np.stack([x, x | np.uint16(0x8000)]), np.repeat(y[:, None], 40, axis=1)
    args = (a, b, np.repeat(np.array([[c], [c | np.uint16(0x8000)]], np.uint16), 40, axis=1), None, None)
    d = reference.mma_bits(unit, *args[:3])
    assert set(d[0]) == {0x5401} and set(d[1]) == {0xD401}  # the neighbour beyond 64, not 64
    assert_same(unit, run("lanes of 32 bits", unit, args), d, args)


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


@pytest.mark.parametrize("unit", (CHAINS[0], CHAINS[4]), ids=lambda u: str(u)[17:90])
def test_chains_in_slices_of_any_length(unit, isa):
    """Edges of passes, slices, groups of rows and panels; several tiles for each thread; sums outside inside of a slice."""
    if not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    low = kernels.lowered(unit)
    dtype = low.d_format.container.str.replace("u", "f")
    for m, n, k, every, length in (
        (7, 67, 300, 0, 1), (13, 129, 300, 0, 128), (300, 530, 130, 0, 129), (6, 64, 256, 0, 4096),
        (7, 65, 320, 16, 48), (260, 33, 384, 128, 256), (1, 1, 15, 5, 5),
    ):  # fmt: skip
        a, b, c, *_ = operands(np.random.default_rng(k), unit, m, k, n, "normal")
        expected = c.copy() if every else kernels.generic_bits(low, a, b, c)
        for start in range(0, k if every else 0, every or 1):
            ks = slice(start, start + every)
            part = kernels.generic_bits(
                low, np.ascontiguousarray(a[:, ks]), np.ascontiguousarray(b[ks]), np.zeros_like(c)
            )
            expected = (expected.view(dtype) + part.view(dtype)).view(c.dtype)
        for threads in (1, 3):
            d = c.copy()
            x, y = (np.ascontiguousarray(z).view(dtype) for z in (a, b))
            task = {"every": every, "lanes": 0, "pairs": False, "flush": False}
            chains.chains(x, y, d.view(dtype), task, low.d_format.nan_bits, isa_level(), threads, length)
            assert np.array_equal(d, expected), (m, n, k, every, length, threads)


@pytest.mark.parametrize("length", [32, 96, 4096])
def test_operations_of_lanes_in_slices_of_any_length(length, isa):
    if not chains.available(isa_level(), True):
        pytest.skip("no flushing multiply-add at this level")
    low = kernels.lowered(FLUSHING[5])
    task = path_named("chains of multiply-adds").kernel.of(low)
    for m, n, k in ((7, 67, 300), (300, 133, 130), (1, 1, 15)):
        a, b, c, *_ = operands(np.random.default_rng(k), FLUSHING[5], m, k, n, "clustered")
        expected = kernels.generic_bits(low, a, b, c)
        x, y = np.ascontiguousarray(a), np.ascontiguousarray(b).view(np.float32)
        for threads in (1, 3):
            d = c.copy()
            settings = {"every": 32, "lanes": 2, "pairs": False, "flush": True}
            special = chains.chains(x, y, d.view(np.float32), settings, task.nan, isa_level(), threads, length)
            assert special == (not np.isfinite(d.view(np.float32)).all())
            assert np.array_equal(d, expected), (m, n, k, threads)


@pytest.mark.parametrize("length", [2, 130, 4096])
def test_pairs_in_slices_of_any_length(length, isa):
    """An odd k too, whose last product has no partner."""
    unit = tcm.get_instruction("x86:vdpbf16ps.k2.f32.bf16.bf16.f32")
    if not chains.available(isa_level(), True):
        pytest.skip("no flushing multiply-add at this level")
    low = kernels.lowered(unit)
    task = path_named("chains of multiply-adds").kernel.of(low)
    for m, n, k in ((7, 67, 301), (13, 33, 260), (1, 1, 1)):
        a, b, c, *_ = operands(np.random.default_rng(k), unit, m, k, n, "clustered")
        expected = kernels.generic_bits(low, a, b, c)
        for threads in (1, 3):
            d = c.copy()
            settings = {"every": 0, "lanes": 0, "pairs": task.pairs, "flush": True}
            chains.chains(
                *map(np.ascontiguousarray, (a, b)), d.view(np.float32), settings, task.nan, isa_level(), threads, length
            )
            assert np.array_equal(d, expected), (m, n, k, threads)


def test_chains_refuse_what_does_not_fit():
    """Sizes that would read or write beyond the arrays."""
    if not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    a, b, d = np.ones((3, 8)), np.ones((8, 5)), np.ones((3, 5))
    for arrays, length, every, lanes, message in (
        ((a, b[:7], d), 8, 0, 0, "do not fit"), ((a, b, d[:, :4].copy()), 8, 0, 0, "do not fit"),
        ((a, b, d), -1, 0, 0, "slices of -1"), ((a, b, d), 8, 3, 0, "chains of 3"), ((a, b, d), 6, 4, 0, "slices of 6"),
        ((a, b, d), 200, 200, 0, "chains of 200"), ((a, b, d), 8, 0, 2, "2 lanes of operations of 0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            chains.chains(
                *arrays, {"every": every, "lanes": lanes, "pairs": False, "flush": False}, 0, isa_level(), 1, length
            )
    task = {"every": 0, "lanes": 0, "pairs": True, "flush": False}
    with pytest.raises(ValueError, match="pairs of products do not fit chains of 0 products and slices of 3"):
        chains.chains(a, b, d, task, 0, isa_level(), 1, 3)
    with pytest.raises(ValueError, match="bf16 operands of chains in double"):
        chains.chains(np.ones((3, 8), np.uint16), b, d, task, 0, isa_level(), 1)


@pytest.mark.parametrize("unit", (CHAINS[0], CHAINS[4]), ids=lambda u: str(u)[17:90])
def test_chains_say_whether_a_result_is_special(unit, isa):
    """One infinity or NaN in any tile, and numbers next to infinity."""
    if not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    dtype = np.dtype(kernels.lowered(unit).d_format.container.str.replace("u", "f"))
    task, nan = {"every": 0, "lanes": 0, "pairs": False, "flush": False}, kernels.lowered(unit).d_format.nan_bits
    for m, n in ((1, 1), (300, 530)):
        zero = np.zeros((m, 1), dtype), np.zeros((1, n), dtype)
        for value, wanted in ((np.finfo(dtype).max, False), (-np.inf, True), (np.nan, True)):
            for place in ((0, 0), (m // 2, n // 2), (m - 1, n - 1)):
                d = np.zeros((m, n), dtype)
                d[place] = value
                assert chains.chains(*zero, d, task, nan, isa_level(), 1) is wanted, (m, n, value, place)


def test_paths_are_chosen():
    assert kernels.kernel_name(NARROW[0]) == "lanes of 32 bits"
    assert kernels.kernel_name(WIDE[6]) == "lanes of 64 bits"
    assert kernels.kernel_name(PAIRWISE[0]) == "pairwise sums"
    assert kernels.kernel_name(CHAINS[0]) == "chains of multiply-adds"
    for rules in (RNE, {"zero_operand": "minus126"}, {"zero_c": "minus126"}):
        accumulator = FusedDotAdd(4, 23, **rules)
        for unit in (NARROW[0], WIDE[0]):
            assert kernels.kernel_name(dataclasses.replace(unit, accumulator=accumulator)).startswith("generic")


def tiny_operands(rng, unit, m: int, k: int, n: int) -> tuple:
    """c, or the first product, at the smallest normal number, the others far below: results on both sides of the flush."""
    a_format, b_format, c_format, _ = unit.formats
    middle = (c_format.emin - c_format.fraction_bits) // 2
    a = rng.integers(1, 16, (m, k)) * 2.0 ** rng.integers(middle - 6, middle - 2, (m, k))
    b = rng.integers(1, 16, (k, n)) * 2.0 ** rng.integers(middle - 6, middle - 2, (k, n))
    a[rng.random((m, k)) < 0.9] = 0
    a *= np.where(rng.random((m, k)) < 0.5, -1.0, 1.0)
    c = (np.uint64(1) << np.uint64(c_format.fraction_bits)) + rng.integers(0, 2, (m, n), np.uint64)
    c[m // 2 :] = 0
    a[m // 2 :, 1:2] = 0
    a[m // 2 :, :1] = b[:1] = 2.0 ** (c_format.emin // 2)
    signs = rng.integers(0, 2, (m, n)).astype(np.uint64) * np.uint64(c_format.sign_bit)
    return tcm.encode(a, a_format), tcm.encode(b, b_format), (c | signs).astype(c_format.container), None, None


@pytest.mark.sweep(5)
@pytest.mark.parametrize("unit", [FLUSHING[i] for i in (0, 1, 3, 4, 5)], ids=lambda u: str(u)[17:90])
def test_results_at_the_smallest_normal_number(unit, isa):
    """A result is flushed by its value rounded with an unbounded exponent: kernels, generic kernels and integers alike."""
    rng = np.random.default_rng(7)
    for k in (1, 2, 35):
        args = tiny_operands(rng, unit, 12, k, 23)
        expected = reference.mma_bits(unit, *args)
        smallest = 1 << unit.formats[3].fraction_bits
        magnitude = expected & unit.formats[3].magnitude_mask
        assert k < 3 or ((magnitude == 0).any() and (magnitude == smallest).any())
        assert np.array_equal(kernels.generic_bits(kernels.lowered(unit), *args), expected)
        assert np.array_equal(run("chains of multiply-adds", unit, args), expected)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("unit", [FLUSHING[i] for i in (0, 1, 3, 4, 5)], ids=lambda u: str(u)[17:90])
def test_subnormal_operands_are_zero(unit, isa):
    """Also where the product with a large number would be an ordinary one; c likewise."""
    rng = np.random.default_rng(10)
    a_format, b_format, c_format, _ = unit.formats
    a = rng.integers(1, 1 << a_format.fraction_bits, (9, 40)).astype(a_format.container)
    a[:4, ::3] = tcm.encode(2.0**-100, a_format)  # beside numbers as large as the lost products
    b = tcm.encode(rng.standard_normal((40, 17)) * 2.0**40, b_format)
    c = rng.integers(1, 1 << c_format.fraction_bits, (9, 17)).astype(c_format.container)
    for args in ((a, b, c, None, None), (a * 0, b, c, None, None)):
        expected = reference.mma_bits(unit, *args)
        assert np.array_equal(run("chains of multiply-adds", unit, args), expected)
        assert np.array_equal(kernels.generic_bits(kernels.lowered(unit), *args), expected)


def test_a_lane_without_products_is_positive_zero(isa):
    """An operation of one product: its lane is flushed to -0, the empty one is +0, and so is their sum, which c = -0 keeps."""
    a, b = (tcm.encode(np.full(shape, value), "bf16") for shape, value in (((1, 33), -(2.0**-70)), ((33, 2), 2.0**-70)))
    c = np.full((1, 2), 0x80000000, np.uint32)
    for k in (1, 33):
        args = (a[:, :k], b[:k], c, None, None)
        expected = reference.mma_bits(FLUSHING[4], *args)
        assert not expected.any()
        assert np.array_equal(run("chains of multiply-adds", FLUSHING[4], args), expected)


def test_flushing_leaves_the_mode_alone():
    """Subnormal numbers of the caller's threads survive a product that was computed under FTZ and DAZ."""
    args = operands(np.random.default_rng(8), FLUSHING[0], 64, 64, 64, "normal")
    for threads in (1, 3):
        set_num_threads(threads)
        run("chains of multiply-adds", FLUSHING[0], args)
        assert np.float32(1e-40) * np.float32(1) != 0
    set_num_threads(None)
    plain = Unit(SequentialFMA(), "fp32", "fp32")
    small = operands(np.random.default_rng(9), plain, 64, 64, 64, "subnormal")
    assert np.array_equal(
        run("chains of multiply-adds", plain, small), kernels.generic_bits(kernels.lowered(plain), *small)
    )
