"""Fast kernels where sums are rounded, flushed or too long: ties, last bits, the ends of the formats, zeros."""

import numpy as np
import pytest
from fast_units import AMD, EXACT, HALF, NARROW, RNE, WIDE, pairwise_slices, run
from twins import Unit, assert_same, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupPairwiseSum,
    ParametricDotAdd,
)


@pytest.mark.sweep(8)
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


@pytest.mark.sweep(6)
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


@pytest.mark.parametrize(
    ("path", "unit", "large", "k"),
    [
        ("lanes of 32 bits", NARROW[6], 0x5800, 400),  # 2^7
        ("lanes of 64 bits", WIDE[1], 0x5F00, 300),  # 2^63
    ],
    ids=["fp16 results", "64-bit lanes"],
)
def test_overflows_of_tiles_in_several_passes(path, unit, large, k, isa):
    """Sums that overflow in the first pass over k or in the last one, beside sums that do not."""
    a, b, c, _, _ = args = operands(np.random.default_rng(21), unit, 66, k, 33, "normal")
    a[[0, 7, 65], :9] = a[[7, 30], -9:] = large
    b[:9, ::5] = b[-9:, 1::5] = large
    expected = kernels.generic_bits(kernels.lowered(unit), *args)
    assert_same(unit, run(path, unit, args), expected, args)
    infinity = 0x7C00 if unit.d_format == "fp16" else 0x7F800000
    assert (expected == infinity).sum() == 3 * 7 + 2 * 7
