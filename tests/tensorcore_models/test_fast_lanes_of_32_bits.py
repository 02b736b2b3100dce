"""32-bit lanes against the reference, bit for bit: sums that are rounded down (CDNA3), bf16 and tf32 shifted into range."""

import dataclasses

import numpy as np
import pytest
from random_encodings import STYLES
from twins import Unit, assert_same, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models._kernels.narrow import narrow
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    InterleavedDotAdd,
    ParametricDotAdd,
)
from tensorcore_models.kernels.common import KernelFormat, Source
from tensorcore_models.kernels.narrow import NarrowKernel
from tensorcore_models.machine.instruction_sets import isa_level

DOWN = (
    Unit(FusedDotRoundDownAdd(8), "fp16", "fp16"),
    Unit(FusedDotRoundDownAdd(3), "e5m2fnuz", "fp16"),
    Unit(FusedDotRoundDownAdd(8, sum_fraction_bits=None, negative_underflow="positive"), "fp16", "e4m3fn"),
    Unit(FusedDotRoundDownAdd(8, 22, 26, 22, c_inf_with_overflow="c", sum_fraction_bits=29), "fp16", "fp16"),
    Unit(FusedDotRoundDownAdd(4, 24, 24, 24), "fp16", "fp16"),
    Unit(GroupFusedDotRoundDownAdd(16), "e4m3fnuz", "e5m2fnuz"),
    Unit(GroupFusedDotRoundDownAdd(6, c_zero_below=24), "fp16", "e5m2"),
)
SHIFTED = (
    Unit(FusedDotAdd(16, 25), "bf16", "bf16"),
    Unit(FusedDotAdd(8, 24, exponent_floor=-133), "bf16", "fp16"),
    Unit(FusedDotAdd(4, 24, negative_underflow="negative"), "tf32", "tf32"),
    Unit(FusedDotAdd(8, 25, subnormal_c="normalised"), "tf32", "bf16"),
    Unit(ParametricDotAdd(terms=8, fraction_bits=24), "bf16", "bf16"),
    Unit(FusedDotRoundDownAdd(8), "bf16", "bf16"),
    Unit(FusedDotRoundDownAdd(4, nan="all_ones"), "tf32", "tf32"),
)
# One row, less than a group of lanes, lanes over rows, more than a panel, k over several blocks.
SHAPES = ((1, 1, 33), (3, 70, 37), (20, 5, 32), (5, 17, 130))


def of_unit(unit):
    return str(unit)[17:90]


def lanes(unit) -> NarrowKernel:
    """The kernel; without the one that the baseline takes in the place of lanes that round down."""
    kernel = NarrowKernel.of(kernels.lowered(unit))
    assert kernel is not None and kernel.task.windowed == (unit.a_format in ("bf16", "tf32"))
    return kernel if kernel.task.windowed else dataclasses.replace(kernel, wide=None)


def run(unit, args, every=None):
    return lanes(unit).run(kernels.lowered(unit), *args, every=every)


def within(rng, fmt, shape, low, high):
    """Encodings of numbers of either sign and of 2^low to 2^high; some are 0."""
    fmt = tcm.get_format(fmt)
    fields = rng.integers(low + fmt.bias, high + fmt.bias + 1, shape)
    bits = fields << fmt.fraction_bits | rng.integers(0, 1 << fmt.fraction_bits, shape)
    bits = (bits | rng.integers(0, 2, shape) << (fmt.bits - 1 - fmt.padding_bits)) << fmt.padding_bits
    return np.where(rng.random(shape) < 0.1, 0, bits).astype(fmt.container)


@pytest.mark.parametrize("unit", DOWN + SHIFTED, ids=of_unit)
def test_twins(unit, isa):
    rng = np.random.default_rng(1)
    for m, n, k in SHAPES:
        for style in rng.choice(STYLES, 3, replace=False):
            args = operands(rng, unit, m, k, n, str(style))
            assert_same(unit, run(unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args, str(style))


@pytest.mark.parametrize("unit", DOWN + SHIFTED, ids=of_unit)
def test_batches(unit, isa):
    rng = np.random.default_rng(2)
    low = kernels.lowered(unit)
    for m, n, k, count in ((16, 8, 16, 9), (3, 20, 37, 4), (7, 8, 32, 6), (1, 1, 1, 3)):
        parts = [operands(rng, unit, m, k, n, str(style)) for style in rng.choice(STYLES, count)]
        a, b, c = (np.stack([part[i] for part in parts]) for i in range(3))
        got = lanes(unit).run_batch(low, a, b, c)
        assert np.array_equal(got, kernels.generic_batch_bits(low, a, b, c))
        assert np.array_equal(kernels.matrix_bits(unit, a[0], b[0], c[0]), got[0])


@pytest.mark.parametrize("unit", [DOWN[0], DOWN[3], DOWN[5]], ids=of_unit)
def test_small_addends_of_round_down(unit, isa):
    """c of either sign far below the products: rounded down to one unit or to none, or dropped."""
    rng = np.random.default_rng(8)
    a, b, _, *_ = operands(rng, unit, 7, 48, 33, "normal")
    c = (rng.integers(127 - 80, 127 - 15, (7, 33)) << 23 | rng.integers(0, 2, (7, 33)) << 31).astype(np.uint32)
    args = (a, b, c, None, None)
    assert_same(unit, run(unit, args), reference.mma_bits(unit, a, b, c), args)


@pytest.mark.parametrize("unit", [DOWN[0], DOWN[2], DOWN[5], SHIFTED[5]], ids=of_unit)
def test_large_addends_of_round_down(unit, isa):
    """c above the products by every distance at which bits of their sum are left, and by more; c that could overflow."""
    rng = np.random.default_rng(9)
    a, b = within(rng, unit.a_format, (6, 32), -4, 0), within(rng, unit.b_format, (32, 50), -4, 0)
    c = (
        rng.integers(127 - 2, 127 + 48, (6, 50)) << 23
        | rng.integers(0, 1 << 23, (6, 50))
        | rng.integers(0, 2, (6, 50)) << 31
    )
    c[0, ::7], c[1, ::5] = 0x7F7FFFFF, 0x71800000
    args = (a, b, c.astype(np.uint32), None, None)
    assert_same(unit, run(unit, args), reference.mma_bits(unit, *args[:3]), args)


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
def test_sums_are_rounded_down_to_31_bits_first(isa, fmt):
    """CDNA3: 2 - 2^-23 and 2^-22 + 2^-31 are a tie and one bit, which is cut off; the tie goes to even."""
    x, y = np.zeros((32, 8), np.float32), np.zeros((8, 32), np.float32)
    x[:, :2], y[:2] = (2.0**-11, 2.0**-16), [[2.0**-11], [2.0**-15]]
    args = (tcm.encode(x, fmt), tcm.encode(y, fmt), np.full((32, 32), 0x3FFFFFFF, np.uint32), None, None)
    assert (run(Unit(FusedDotRoundDownAdd(8), fmt, fmt), args) == 0x40000000).all()
    assert (run(Unit(FusedDotRoundDownAdd(8, sum_fraction_bits=None), fmt, fmt), args) == 0x40000001).all()


@pytest.mark.parametrize("unit", [DOWN[0], DOWN[5], *SHIFTED[:3], SHIFTED[5]], ids=of_unit)
def test_sums_outside(unit, isa):
    """Chains of every length from zero, added up outside in FP32."""
    rng = np.random.default_rng(3)
    step = unit.accumulator.terms
    for every in (step, 3 * step):
        a, b, c, *_ = operands(rng, unit, 5, 12 * step, 40, "normal")
        c = np.where(rng.random(c.shape) < 0.5, c, c & 0x80FFFFFF)  # small ones
        args = (a, b, c, None, None)
        expected = kernels.common.generic_promoted(kernels.lowered(unit), *args, every)
        assert_same(unit, run(unit, args, every), expected, args)


# Shifts of the operands: none, both ways, as far as they go together, too far.
RANGES = {
    (0, 0): ((-16, 15), (-10, 3)),
    (-4, 0): ((-20, 2), (-16, 15)),
    (16, 16): ((0, 31), (20, 31)),
    (-16, -16): ((-32, -1), (-32, -20)),
    (30, -60): ((40, 45), (-76, -50)),
    None: ((-17, 15), (0, 0)),
    (17, 16): ((1, 32), (0, 31)),
}


@pytest.mark.parametrize("unit", [SHIFTED[0], SHIFTED[2], SHIFTED[5]], ids=of_unit)
@pytest.mark.parametrize("shifts", RANGES, ids=str)
def test_windows(unit, shifts, isa):
    """Operands that use all exponents of the window, c of all sizes; what does not fit runs in 64-bit lanes."""
    rng = np.random.default_rng(4)
    (low_a, high_a), (low_b, high_b) = RANGES[shifts]
    a, b = within(rng, unit.a_format, (6, 40), low_a, high_a), within(rng, unit.b_format, (40, 33), low_b, high_b)
    one = tcm.get_format(unit.a_format)
    a[0, :2] = [(e + one.bias) << (one.fraction_bits + one.padding_bits) for e in (low_a, high_a)]
    b[:2, 0] = [(e + one.bias) << (one.fraction_bits + one.padding_bits) for e in (low_b, high_b)]
    sources = Source.of_a(a, vars(KernelFormat.of(one))), Source.of_b(b, vars(KernelFormat.of(one)))
    too_far = shifts is None or abs(sum(shifts)) > 32
    assert narrow.shifts(*sources, isa_level(), 1) == (None if too_far else shifts)
    c = rng.integers(67, 187, (6, 33)) << 23 | rng.integers(0, 1 << 23, (6, 33)) | rng.integers(0, 2, (6, 33)) << 31
    c[::2] = 0
    c[0, :6] = [1, 0x7FFFFF, 66 << 23, 67 << 23, 187 << 23, 0x7F7FFFFF]  # few: with many all is computed again
    args = (a, b, c.astype(np.uint32), None, None)
    low = kernels.lowered(unit)
    expected = kernels.generic_bits(low, *args)
    assert_same(unit, run(unit, args), expected, args)
    # as tiles: the first goes to the generic kernel because of its c
    tiles = [np.stack([x, x]) for x in args[:3]]
    tiles[2][1, 0] = 0
    expected = np.stack([expected, kernels.generic_bits(low, a, b, tiles[2][1])])
    assert np.array_equal(lanes(unit).run_batch(low, *tiles), expected)


def test_a_zero_in_a_window_is_zero(isa):
    """Ones, one zero and -1.5 * 2^-21: the shift by -5 once made the power of two of the zero infinite, and -49 of 15."""
    unit = tcm.get_instruction("hopper", "mma.m16n8k16.f32.bf16.bf16.f32")
    a, b = np.ones((16, 16), np.float32), np.ones((16, 16), np.float32)
    a[14, 13], a[10, 8] = 0, -1.5 * 2.0**-21
    expected = a.sum(1, keepdims=True) @ np.ones((1, 16), np.float32)
    assert np.array_equal(unit.gemm(a, b)[14], expected[14])
    a[14, 13], a[10, 8] = 0, 2.0**17  # a shift by 2, where the field of a zero that is not masked is that of infinities
    assert np.array_equal(unit.gemm(a, b), a.sum(1, keepdims=True) @ np.ones((1, 16), np.float32))


@pytest.mark.parametrize("unit", [SHIFTED[0], SHIFTED[2], SHIFTED[5]], ids=of_unit)
@pytest.mark.sweep(6)
@pytest.mark.parametrize("shift", range(-110, 111))
def test_zeros_at_every_window(unit, shift, isa):
    """Zeros of either sign, and rows and columns of specials, beside operands that are shifted by each number of exponents."""
    rng = np.random.default_rng(shift + 200)
    other = -shift if abs(shift) > 16 else shift
    ends = [((s, s + 15) if s > 0 else (s - 16, s - 1) if s < 0 else (-16, 15)) for s in (shift, other)]
    a, b = within(rng, unit.a_format, (12, 40), *ends[0]), within(rng, unit.b_format, (40, 70), *ends[1])
    for x, bounds in ((a, ends[0]), (b, ends[1])):
        sign = x.dtype.type(1 << (8 * x.itemsize - 1))
        x[rng.random(x.shape) < 0.3] = 0
        x[rng.random(x.shape) < 0.1] = sign
        x[1, :2] = [tcm.encode(np.float32(2.0**e), unit.a_format) for e in bounds]
        x[2, 3] = tcm.encode(np.float32(np.inf), unit.a_format)
    sources = tuple(
        make(x, vars(KernelFormat.of(tcm.get_format(f))))
        for make, x, f in ((Source.of_a, a, unit.a_format), (Source.of_b, b, unit.b_format))
    )
    assert narrow.shifts(*sources, isa_level(), 1) == (shift, other)
    args = (a, b, np.zeros((12, 70), np.uint32), None, None)
    assert_same(unit, run(unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args)


def test_small_far_and_special_addends_of_shifted_operands():
    rng, unit = np.random.default_rng(8), SHIFTED[0]
    a, b = within(rng, "bf16", (9, 32), -30, -10), within(rng, "bf16", (32, 40), -30, -10)
    a[3] = 0
    c = within(rng, "fp32", (9, 40), -40, 20)
    c[:, 0], c[3, 1:4], c[8, 5] = 1, [0x10000000, 0x7F800000, 0x30000000], 0x7FC00000
    args = (a, b, c, None, None)
    assert_same(unit, run(unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args)


def test_shifts_leave_out_specials_and_zeros(isa):
    codes = np.array([[0x7F80, 0xFFFF, 0x8000, 0, 0x4180, 0x3080]], np.uint16)  # inf, nan, -0, 0, 16, 2^-30
    fmt = vars(KernelFormat.of(tcm.get_format("bf16")))
    zeros = Source.of_b(np.zeros((6, 1), np.uint16), fmt)
    assert narrow.shifts(Source.of_a(codes[:, :5], fmt), zeros, isa_level(), 1) == (0, 0)
    assert narrow.shifts(Source.of_a(codes[:, :4], fmt), zeros, isa_level(), 1) == (0, 0)
    assert narrow.shifts(Source.of_a(codes, fmt), zeros, isa_level(), 1) is None
    codes[0, 4] = 0x3F80
    assert narrow.shifts(Source.of_a(codes, fmt), zeros, isa_level(), 1) == (-14, 0)


@pytest.mark.parametrize("unit", [DOWN[0], DOWN[5], SHIFTED[5]], ids=of_unit)
def test_round_down_of_every_instruction_set(unit, isa):
    """Whole calls, for which the baseline takes the 64-bit lanes."""
    rng = np.random.default_rng(6)
    a, b, c, *_ = operands(rng, unit, 30, 64, 40, "normal")
    assert np.array_equal(kernels.matrix_bits(unit, a, b, c), kernels.generic_bits(kernels.lowered(unit), a, b, c))


def test_numbers_below_the_window_run_in_wide_lanes():
    """A matrix of bf16 with one subnormal number, in the whole and as a tile."""
    unit = SHIFTED[0]
    rng = np.random.default_rng(5)
    for m, k, n in ((16, 16, 8), (40, 64, 48)):
        a, b = within(rng, "bf16", (m, k), -8, 2), within(rng, "bf16", (k, n), -8, 2)
        a[3, 1] = 1
        c = np.zeros((m, n), np.uint32)
        assert np.array_equal(kernels.matrix_bits(unit, a, b, c), kernels.generic_bits(kernels.lowered(unit), a, b, c))


@pytest.mark.parametrize("unit", [SHIFTED[0], SHIFTED[2], Unit(FusedDotAdd(8, 24), "fp16", "fp16")], ids=of_unit)
def test_sums_that_are_scaled_within_a_chain(unit, isa):
    """As bands of BF16x9: 2^-8 before some steps of each chain, FP32 additions outside."""
    rng, step, low = np.random.default_rng(7), unit.accumulator.terms, kernels.lowered(unit)
    m, n, chain, steps = 5, 70, 9, (1, 3, 6, 8)
    a, b = (
        within(rng, fmt, shape, -12, 1)
        for fmt, shape in ((unit.a_format, (m, 27 * step)), (unit.b_format, (27 * step, n)))
    )
    a[1, : 4 * step] = 0  # sums that wait for their first product
    c = within(rng, "fp32", (m, n), -20, 5)
    total = c.view(np.float32).copy()
    for start in range(0, 27, chain):
        d = np.zeros((m, n), np.uint32)
        for i in range(chain):
            ks = slice((start + i) * step, (start + i + 1) * step)
            if i in steps:
                d = (d.view(np.float32) * np.float32(2.0**-8)).view(np.uint32)
            d = kernels.generic_bits(low, a[:, ks], b[ks], d)
        total += d.view(np.float32)
    found = kernels.scaled_bits(unit, a, b, c, chain * step, steps, -8)
    assert found is not None and np.array_equal(found, total.view(np.uint32))


def test_what_is_not_scaled_within_a_chain():
    """Operands with an infinity, too many exponents or steps, results other than FP32, the generic kernel alone."""
    unit = SHIFTED[0]
    a, b = np.full((4, 9 * 16), 0x3F80, np.uint16), np.full((9 * 16, 80), 0x3F80, np.uint16)
    c = np.zeros((4, 80), np.uint32)
    infinite, wide = a.copy(), a.copy()
    infinite[0, 0], wide[0, 0] = 0x7F80, 0x0080
    assert kernels.scaled_bits(unit, a, b, c, 144, (1,), -8) is not None
    for x, every, steps, exponent in (
        (infinite, 144, (1,), -8),
        (wide, 144, (1,), -8),
        (a, 144, (31,), -8),
        (a, 144, (1, 2, 3, 4, 5), -8),
    ):
        assert kernels.scaled_bits(unit, x, b, c, every, steps, exponent) is None
    half = Unit(FusedDotAdd(16, 25, output_rounding="rne"), "fp16", "fp16", "fp16", "fp16")
    assert kernels.scaled_bits(half, a, b, c.astype(np.uint16), 144, (1,), -8) is None
    kernels.set_kernel("generic")
    try:
        assert kernels.scaled_bits(unit, a, b, c, 144, (1,), -8) is None
    finally:
        kernels.set_kernel(None)


@pytest.mark.parametrize("fraction_bits", [22, 23])
def test_a_group_without_products_cuts_no_sum(fraction_bits, isa):
    """The last pass has products of its first group only: 2.25 + 2^-22, which has a bit below the units of 2.25 with F = 22."""
    unit = Unit(InterleavedDotAdd(FusedDotAdd(4, fraction_bits)), "e5m2", "e5m2")
    a, b = (tcm.encode(np.tile([1.5, 2.0**-11], (64, 1)), "e5m2") for _ in range(2))
    c = np.zeros((64, 64), np.uint32)
    assert set(kernels.matrix_bits(unit, a, b.T, c).flat) == {int(tcm.encode([2.25 + 2.0**-22], "fp32")[0])}
    assert (NarrowKernel.of(kernels.lowered(unit)) is not None) == (fraction_bits == 23)
