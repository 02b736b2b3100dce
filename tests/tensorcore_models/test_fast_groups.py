"""Group sums with block scales and integer dot products in lanes, bit for bit as the generic kernel and the plain integers."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_encodings import STYLES
from twins import Unit, assert_same, operands

from tensorcore_models import kernels, list_instructions, reference, set_num_threads
from tensorcore_models._kernels.groups import groups
from tensorcore_models._kernels.integer import integer
from tensorcore_models.accumulators import GroupDotFusedSum, IntegerDotAdd
from tensorcore_models.kernels.groups import GroupsKernel
from tensorcore_models.kernels.integer import IntegerKernel

#: The compiled functions, before tests cut their slices.
ORIGINALS = {"groups": groups.groups, "integer": integer.integer}
S32 = {"c_format": "s32", "d_format": "s32"}
NVFP4 = Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue4m3", block_size=16)
MXFP4 = Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue8m0", block_size=32)
SCALE = {"scale_format": "ue4m3", "block_size": 16}
GROUPS = (
    Unit(GroupDotFusedSum(), "e2m1", "e2m1", **SCALE),
    Unit(GroupDotFusedSum(negative_underflow="negative"), "e2m1", "e2m1", **SCALE),
    Unit(GroupDotFusedSum(exponent_floor=-139), "e2m1", "e2m1", scale_format="ue8m0", block_size=16),
    Unit(GroupDotFusedSum(exponent_floor=3), "e2m1", "e2m1", **SCALE),
    Unit(GroupDotFusedSum(5, 15, 38, exponent_floor=-500), "e2m1", "e2m1", scale_format="ue8m0", block_size=4),
    Unit(GroupDotFusedSum(2, 32, 10), "e2m1", "e2m1", scale_format="ue4m3", block_size=8),
    Unit(GroupDotFusedSum(16, 32, 34), "e2m3", "e2m1", scale_format="ue4m3", block_size=32),
    Unit(GroupDotFusedSum(14, 14, 34), "e2m1", "e2m3", scale_format="ue8m0", block_size=7),
)
INTEGERS = (
    Unit(IntegerDotAdd(True, 6), "s8", "u8", **S32),
    Unit(IntegerDotAdd(True, 258), "u8", "u8", **S32),
    Unit(IntegerDotAdd(True, 1024), "s8", "s8", **S32),
    Unit(IntegerDotAdd(True, 2050), "s8", "s8", **S32),
    Unit(IntegerDotAdd(False, 3), "s4", "u8", **S32),
)
# One row, one column, more than a panel, more than the rows of a task, k not a multiple of a pass, k over several blocks.
SHAPES = ((1, 1, 33), (3, 70, 37), (20, 5, 64), (5, 17, 650), (9, 3, 7), (1, 66, 16), (70, 33, 128))


def catalogue() -> dict:
    """The distinct accumulators with formats of the catalogue's rows of these two families."""
    rows = {}
    for row in list_instructions():
        if type(row.accumulator) in (GroupDotFusedSum, IntegerDotAdd):
            formats = (row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format, row.block_size)
            rows.setdefault((row.accumulator, *formats), Unit(row.accumulator, *formats))
    return rows


CATALOGUE = tuple(catalogue().values())


def plan_of(unit):
    kind = IntegerKernel if type(unit.accumulator) is IntegerDotAdd else GroupsKernel
    return kind.of(kernels.lowered(unit))


def run(unit, args) -> np.ndarray:
    plan = plan_of(unit)
    assert plan is not None, f"no lanes for {unit}"
    return plan.run(kernels.lowered(unit), *args)


def integers_near_the_end(rng, args) -> tuple:
    """c that the products take beyond the range of int32, both ways."""
    a, b, c, *scales = args
    ends = rng.choice(np.array([0x7FFFFFFF, 0x80000000, 0x7FFFF000, 0x80001000], np.uint32), c.shape)
    return (a, b, np.where(rng.random(c.shape) < 0.7, ends, c).astype(np.uint32), *scales)


@pytest.fixture
def one_thread():
    set_num_threads(1)
    yield
    set_num_threads(None)


def test_the_catalogue_has_both_families():
    assert {type(unit.accumulator) for unit in CATALOGUE} == {GroupDotFusedSum, IntegerDotAdd}
    assert all(plan_of(unit) is not None for unit in CATALOGUE)


@pytest.mark.parametrize("unit", CATALOGUE, ids=lambda u: str(u)[17:110])
def test_catalogue_twins(unit, isa, one_thread):
    rng = np.random.default_rng(11)
    shapes = SHAPES if unit.scale_format else SHAPES[1:4]
    for m, n, k in shapes:
        style = str(rng.choice(STYLES))
        args = operands(rng, unit, m, k, n, style)
        if not unit.scale_format:
            args = integers_near_the_end(rng, args)
        assert_same(unit, run(unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args, style)


@pytest.mark.parametrize("unit", GROUPS + INTEGERS, ids=lambda u: str(u)[17:110])
def test_edge_rules_and_shapes(unit, isa, one_thread):
    rng = np.random.default_rng(12)
    for m, n, k in SHAPES:
        for style in rng.choice(STYLES, 2, replace=False):
            args = operands(rng, unit, m, k, n, str(style))
            if not unit.scale_format:
                args = integers_near_the_end(rng, args)
            assert_same(unit, run(unit, args), kernels.generic_bits(kernels.lowered(unit), *args), args, str(style))


@pytest.mark.parametrize("unit", (NVFP4, MXFP4, *GROUPS, *INTEGERS), ids=lambda u: str(u)[17:110])
def test_against_plain_integers(unit, isa):
    rng = np.random.default_rng(13)
    for style in ("cancelling", "bits"):
        args = operands(rng, unit, 3, 131, 4, style)
        assert_same(unit, run(unit, args), reference.mma_bits(unit, *args), args, style)


@pytest.mark.parametrize("unit", (NVFP4, MXFP4, GROUPS[0]), ids=("nvfp4", "mxfp4", "no floor"))
def test_extreme_scales_and_addends(unit, isa):
    """Every kind of scale against every kind of c: zero, subnormal, the smallest and largest, NaN; overflow of the result."""
    codes = np.array([0, 1, 7, 8, 0x38, 0x7E, 0x7F, 0x80, 0xB8, 0xFE, 0xFF], np.uint8)
    if unit.scale_format == "ue8m0":
        codes = np.array([0, 1, 3, 100, 127, 128, 160, 200, 253, 254, 255], np.uint8)
    cs = [
        0,
        0x80000000,
        1,
        0x807FFFFF,
        0x00800000,
        0x3F800001,
        0xBFFFFFFF,
        0x7F7FFFFF,
        0xFF7FFFFF,
        0x7F800000,
        0x7FC00001,
    ]
    rng = np.random.default_rng(14)
    blocks = 128 // unit.block_size
    m = n = len(codes)
    scale_a, scale_b = np.repeat(codes[:, None], blocks, 1), np.repeat(codes[None], blocks, 0)
    for c in np.array(cs, np.uint32):
        a, b = rng.integers(0, 16, (m, 128), np.uint8), rng.integers(0, 16, (128, n), np.uint8)
        a[:, :16], b[64:80] = 0, 8  # whole groups of zeros of either sign
        args = (a, b, np.full((m, n), c, np.uint32), scale_a, scale_b)
        mixed = (*args[:3], rng.permuted(scale_a, axis=0), rng.permuted(scale_b, axis=1))
        for one in (args, mixed):
            assert_same(unit, run(unit, one), kernels.generic_bits(kernels.lowered(unit), *one), one)


def test_group_sums_may_be_as_large_as_they_get(isa):
    """All products 36 and all -36, with and without cancellation between groups and with c."""
    a = np.full((2, 64), 7, np.uint8)  # 6.0
    b = np.full((64, 3), 7, np.uint8)
    a[1] = 15
    b[:, 1], b[32:, 2] = 15, 15
    c = np.array([[0x3F800000, 0, 0], [0xC9000000, 0x3F800000, 0x00000001]], np.uint32)
    for code in (0x7E, 0x38, 1):
        scales = np.full((2, 4), code, np.uint8), np.full((4, 3), code, np.uint8)
        args = (a, b, c, *scales)
        assert_same(NVFP4, run(NVFP4, args), reference.mma_bits(NVFP4, *args), args)
    one = run(
        NVFP4, (a, b, np.zeros((2, 3), np.uint32), np.full((2, 4), 0x38, np.uint8), np.full((4, 3), 0x38, np.uint8))
    )
    assert one.view(np.float32).tolist() == [[2304, -2304, 0], [-2304, 2304, 0]]


def test_truncation_is_toward_zero_at_35_bits(isa):
    """c = 2^40 with F = 35 cuts below 2^5: group sums of 31.5 vanish, with either sign; 32 stays (xie-mma-sim, IV-E)."""
    a, b = np.zeros((1, 64), np.uint8), np.zeros((64, 4), np.uint8)
    a[0, :16] = 2  # 1.0
    b[:16] = np.array([4, 12, 4, 12], np.uint8)  # 2, -2: group sums 32 and -32
    b[0, 2:] = np.array([3, 11], np.uint8)  # 1.5, -1.5: 31.5 and -31.5
    c = np.full((1, 4), np.float32(2.0**40).view(np.uint32))
    small = c - np.uint32(1)  # 2^40 - 2^16
    ones = np.full((1, 4), 0x38, np.uint8), np.full((4, 4), 0x38, np.uint8)
    # In fp32 the last bit of 2^40 is 2^17: only the sum below it shows what was cut, 2^40 - 32 rounds to 2^40 - 2^16.
    got = run(NVFP4, (a, b, c, *ones))
    assert got.tolist() == [[int(c[0, 0]), int(small[0, 0]), int(c[0, 0]), int(c[0, 0])]]


@pytest.mark.parametrize("floor", [None, -131, -130])
def test_small_addends_align_by_rule(floor, isa):
    """2^-140 and -2^-165: below 2^-161, the unit of a subnormal addend, the second one is cut off; it shows where c = 0."""
    unit = Unit(GroupDotFusedSum(exponent_floor=floor), "e2m1", "e2m1", scale_format="ue8m0", block_size=32)
    a, b = np.zeros((1, 64), np.uint8), np.full((64, 4), 2, np.uint8)
    a[0, 0], a[0, 32] = 2, 10  # 1, -1
    c = np.array([[0, 0x80000000, 1, 0x007FFFFF]], np.uint32)
    scale_a = np.array([[127 - 70, 127 - 83]], np.uint8)
    scale_b = np.repeat(np.array([[127 - 70], [127 - 82]], np.uint8), 4, 1)
    args = (a, b, c, scale_a, scale_b)
    got = run(unit, args)
    assert_same(unit, got, reference.mma_bits(unit, *args), args)
    assert got[0, :2].tolist() == [511 if floor != -129 else 512] * 2
    assert got[0, 2] == 513


def test_a_group_that_cancels_keeps_its_scales(isa):
    """Scales of 2^20 on 16 products; 1 - 1 among them cuts off 2^-16 elsewhere at F = 35, zeros do not (mmasim 2.1.1)."""
    a, b = np.zeros((3, 64), np.uint8), np.full((64, 2), 2, np.uint8)
    a[:, 16] = 2  # 1 in the second group
    a[1, :2] = 2, 10  # 1 - 1 in the first group
    a[2, :2], b[0, 1], b[1, 1] = (2, 2), 0, 0  # 1 times 0: zeros of B
    scale_a, scale_b = np.full((3, 4), 127 - 8, np.uint8), np.full((4, 2), 127 - 8, np.uint8)
    scale_a[:, 0] = scale_b[0] = 127 + 10
    unit = Unit(GroupDotFusedSum(), "e2m1", "e2m1", scale_format="ue8m0", block_size=16)
    args = (a, b, np.zeros((3, 2), np.uint32), scale_a, scale_b)
    got = run(unit, args)
    assert_same(unit, got, reference.mma_bits(unit, *args), args)
    assert got.view(np.float32).tolist() == [[2.0**-16] * 2, [0, 2.0**-16], [2.0**21, 2.0**-16]]


def test_specials_reach_the_generic_kernel(isa):
    """NaN scales, infinite and NaN addends and overflows anywhere; the operands are left alone."""
    rng = np.random.default_rng(15)
    a, b, c, sa, sb = operands(rng, MXFP4, 80, 256, 90, "normal")
    sa[7, 1], sb[3, 44], sa[20], sb[:, 60] = 255, 255, 254, 254
    c[2, 2], c[3, 3], c[79, 89] = 0x7F800000, 0xFF800000, 0x7F812345
    args = a, b, c, sa, sb
    before = [x.copy() for x in args]
    for x in args:
        x.flags.writeable = False
    got = kernels.matrix_bits(MXFP4, *args)
    assert_same(MXFP4, got, kernels.generic_bits(kernels.lowered(MXFP4), *args), args)
    assert (got & 0x7FFFFFFF >= 0x7F800000).sum() > 80 + 90
    assert all(np.array_equal(x, y) for x, y in zip(before, args, strict=True))


@pytest.mark.parametrize("unit", (NVFP4, MXFP4, *INTEGERS[:2]), ids=("nvfp4", "mxfp4", "clamped", "u8"))
def test_threads_slices_and_strides(unit, isa, monkeypatch):
    """The bits depend neither on threads, nor on how k is cut into slices of the workspace, nor on strides."""
    rng = np.random.default_rng(16)
    args = operands(rng, unit, 130, 700, 70, "clustered")
    results = []
    kernel, name = (integer, "integer") if unit in INTEGERS else (groups, "groups")
    for threads, length in ((1, 0), (2, 0), (2, 516)):
        set_num_threads(threads)
        monkeypatch.setattr(kernel, name, partial(ORIGINALS[name], length=length))
        results.append(run(unit, args))
    strided = tuple(None if x is None else np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3] for x in args)
    results.append(run(unit, strided))
    set_num_threads(None)
    assert all(np.array_equal(results[0], x) for x in results[1:])
    rows = slice(60, 70)
    a, b, c, sa, sb = args
    part = (a[rows], b, c[rows], None if sa is None else sa[rows], sb)
    assert_same(unit, results[0][rows], kernels.generic_bits(kernels.lowered(unit), *part), part)


# -- integers ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("terms", "expected"), [(4, (2**31 - 1 - 4 * 127, 2**31 - 1)), (8, (2**31 - 1, 2**31 - 1))])
def test_clamping_is_done_after_each_pass(terms, expected, isa):
    """c at the upper end, four products of +127, then four of -127: a pass of 4 clamps in between, a pass of 8 does not."""
    unit = Unit(IntegerDotAdd(True, terms), "s8", "s8", **S32)
    a = np.full((1, 8), 1, np.uint8)
    b = np.array([127] * 4 + [256 - 127] * 4, np.uint8)[:, None]
    c = np.array([[2**31 - 1]], np.uint32)
    forth, back = run(unit, (a, b, c, None, None)), run(unit, (a, b[::-1], c, None, None))
    assert (int(forth[0, 0]), int(back[0, 0])) == expected
    wrapping = Unit(IntegerDotAdd(False, terms), "s8", "s8", **S32)
    up = run(wrapping, (a[:, :4], b[:4], c, None, None))
    assert int(up.view(np.int32)[0, 0]) == -(2**31) + 4 * 127 - 1


@settings(max_examples=30)
@given(
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70), st.integers(1, 300)),
    names=st.tuples(*[st.sampled_from(["s8", "u8"])] * 2),
    seed=st.integers(0, 2**32),
)
def test_wrapping_is_numpy_modulo_2_to_32(shape, names, seed):
    m, n, k = shape
    rng = np.random.default_rng(seed)
    types = [np.int8 if name == "s8" else np.uint8 for name in names]
    a, b = rng.integers(0, 256, (m, k), np.uint8), rng.integers(0, 256, (k, n), np.uint8)
    c = rng.integers(0, 1 << 32, (m, n), np.uint32)
    exact = a.view(types[0]).astype(np.int64) @ b.view(types[1]).astype(np.int64) + c.view(np.int32)
    got = run(Unit(IntegerDotAdd(), *names, **S32), (a, b, c, None, None))
    assert np.array_equal(got, exact.astype(np.uint32))


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32), shift=st.integers(-40, 40))
def test_power_of_two_scales_shift_the_result(seed, shift):
    """Multiplying all scales and c by powers of two multiplies the result, as long as nothing under- or overflows."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 16, (5, 128), np.uint8), rng.integers(0, 16, (128, 6), np.uint8)
    c = rng.standard_normal((5, 6)).astype(np.float32)
    sa, sb = rng.integers(120, 134, (5, 4), np.uint8), rng.integers(120, 134, (4, 6), np.uint8)
    d = run(MXFP4, (a, b, c.view(np.uint32), sa, sb)).view(np.float32)
    shifted = np.ldexp(c, shift).astype(np.float32).view(np.uint32)
    other = run(MXFP4, (a, b, shifted, (sa.astype(int) + shift).astype(np.uint8), sb)).view(np.float32)
    assert np.array_equal(np.ldexp(d, shift), other)


# -- what the lanes leave to others ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "unit",
    [
        Unit(GroupDotFusedSum(fraction_bits=39), "e2m1", "e2m1", **SCALE),  # sums beyond 2^51 units
        Unit(GroupDotFusedSum(128, 128), "e2m1", "e2m1", **SCALE),  # group sums beyond 16 bits
        Unit(GroupDotFusedSum(16, 512, 20), "e2m1", "e2m1", **SCALE),  # more group sums than the lanes hold
        Unit(GroupDotFusedSum(17, 34), "e2m1", "e2m1", **SCALE),  # more products in a group than bits in a word
        Unit(GroupDotFusedSum(output_rounding="rne"), "e2m1", "e2m1", **SCALE),
        Unit(GroupDotFusedSum(zero_operand="minus126"), "e2m1", "e2m1", **SCALE),
        Unit(GroupDotFusedSum(zero_c="minus126"), "e2m1", "e2m1", **SCALE),
        Unit(GroupDotFusedSum(scaled_zero="skip"), "e2m1", "e2m1", **SCALE),
        Unit(GroupDotFusedSum(scaled_zero="keeps_scale"), "e2m1", "e2m1", **SCALE),
        Unit(GroupDotFusedSum(subnormal_c="normalised"), "e2m1", "e2m1", **SCALE),
        Unit(GroupDotFusedSum(), "e2m1", "e2m1"),
        Unit(GroupDotFusedSum(), "e4m3fn", "e4m3fn", **SCALE),
        Unit(GroupDotFusedSum(), "e2m1", "e2m1", "fp16", "fp32", **SCALE),
        Unit(IntegerDotAdd(True, 5), "s8", "s8", **S32),
        Unit(IntegerDotAdd(True, 33026), "u8", "u8", **S32),  # sums of an operation pass int32
        Unit(IntegerDotAdd(True), "u8", "u8", "s32", "s8"),
    ],
)
def test_left_to_the_generic_kernel(unit):
    assert plan_of(unit) is None
    rng = np.random.default_rng(17)
    args = operands(rng, unit, 20, 64, 30, "normal")
    assert_same(unit, kernels.matrix_bits(unit, *args), kernels.generic_bits(kernels.lowered(unit), *args), args)


def test_paths_are_chosen():
    assert kernels.kernel_name(NVFP4) == kernels.kernel_name(MXFP4) == "lanes of group sums"
    assert kernels.kernel_name(INTEGERS[0]) == "integer lanes"


# -- batches of tiles --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("unit", (NVFP4, MXFP4, GROUPS[4], *INTEGERS), ids=lambda u: str(u)[17:110])
def test_batches_of_tiles(unit, isa):
    rng = np.random.default_rng(18)
    for m, n, k, count in ((16, 8, 64, 9), (8, 40, 33, 5), (1, 1, 1, 3), (40, 3, 130, 4)):
        parts = [operands(rng, unit, m, k, n, str(style)) for style in rng.choice(STYLES, count)]
        args = [None if parts[0][i] is None else np.stack([part[i] for part in parts]) for i in range(5)]
        if not unit.scale_format:
            args[2] = integers_near_the_end(rng, tuple(args))[2]
        low = kernels.lowered(unit)
        got = plan_of(unit).run_batch(low, *args)
        assert np.array_equal(got, kernels.generic_batch_bits(low, *args))
        assert np.array_equal(got, kernels.batch_bits(unit, *args))
