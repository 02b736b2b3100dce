"""Scales are read by shape and type, refused where they fit no rule, and applied where the rule says, bit for bit."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.engines.scaled import fused_multiply_add
from tensorcore_models.engines.scaling import RULES

E4M3, E8M0 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu
ADA = tcm.get_instruction("ada:mma.m16n8k32.f32.e4m3.e4m3.f32")
HOPPER = tcm.get_instruction("hopper:wgmma.m64n8k32.f32.e4m3.e4m3")
MX = tcm.get_instruction("rtx_blackwell:mma.m16n8k32.block32.f32.e4m3.e4m3.f32.ue8m0")
NV = tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue4m3")
M, K, N = 130, 300, 140


def operands(dtype=E4M3, m=M, k=K, n=N):
    rng = np.random.default_rng(0)
    return rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)


def factors(*shape, seed=1):
    return np.random.default_rng([seed, *shape]).uniform(0.1, 2, shape).astype(np.float32)


@pytest.mark.parametrize(
    ("shape_a", "shape_b", "names", "applied"),
    [
        ((), (), ("per tensor", "per tensor"), "end"),
        ((1,), (1, 1), ("per tensor", "per tensor"), "end"),
        ((M, 1), (1, N), ("per row and column", "per row and column"), "end"),
        ((M,), (N,), ("per row and column", "per row and column"), "end"),
        ((), (1, N), ("per tensor", "per row and column"), "end"),
        ((M, 3), (3, 2), ("blocks of 1 x 128", "blocks of 128 x 128"), "block"),
        ((2, 3), (3, N), ("blocks of 128 x 128", "blocks of 1 x 128"), "block"),
        ((M, 10), (10, N), ("mx, blocks of 32", "mx, blocks of 32"), "product"),
        ((M, 19), (19, N), ("nvfp4, blocks of 16", "nvfp4, blocks of 16"), "product"),
    ],
)
def test_rules_by_shape(shape_a, shape_b, names, applied):
    found = tcm.read_scales(np.ones(shape_a), np.ones(shape_b), M, K, N)
    assert (found.rule_a.name, found.rule_b.name) == names
    assert found.applied == applied
    assert found.spread_a().shape == (M, K)
    assert found.spread_b().shape == (K, N)


def test_rules_by_type():
    ones = np.ones((8, 2)), np.ones((2, 8))
    for dtype, name in ((E8M0, "mx, blocks of 32"), (E4M3, "nvfp4, blocks of 16")):
        k = 64 if dtype == E8M0 else 32
        assert tcm.read_scales(*(x.astype(dtype) for x in ones), 8, k, 8).rule_a.name == name
    assert tcm.read_scales(
        np.full((8, 1), 127, np.uint8), np.full((1, 8), 127, np.uint8), 8, 32, 8
    ).rule_a.name.startswith("mx")
    pair = (np.ones((8, 4), E4M3), 0.5)
    assert tcm.read_scales(pair, (np.ones((4, 8), E4M3), 2), 8, 64, 8).whole_a == 0.5


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (
            np.ones((3, 4)),
            1.0,
            r"shape \(3, 4\), which fits no rule for A of 130 x 300: per tensor: \(1, 1\) fp32.*nvfp4",
        ),
        (np.ones((3, M)), 1.0, r"Its transpose fits: pass scale_a.T"),
        (1.0, np.ones((N, 3)), r"Its transpose fits: pass scale_b.T"),
        (np.ones((M, 3)), 1.0, r"blocks of 1 x 128, scale_b is per tensor, which .* different places.*Expected shapes"),
        (np.nan, 1.0, "NaN or infinite"),
        (np.full((M, 1), np.inf), 1.0, "130 factors that are NaN or infinite"),
        (1.0, None, "only one of scale_a and scale_b is given"),
        ((np.ones((M, 3)), 2.0), np.ones((3, 2)), "expected block scales of a unit"),
    ],
)
def test_what_fits_no_rule_is_refused_with_the_rules(a, b, message):
    with pytest.raises(ValueError, match=message):
        tcm.read_scales(a, b, M, K, N)


def test_encodings_of_two_formats_are_ambiguous():
    with pytest.raises(ValueError, match="could be encodings of ue4m3 or ue8m0"):
        tcm.read_scales(np.ones((4, 1), np.uint8), np.ones((1, 4), np.uint8), 4, 16, 4)
    with pytest.raises(TypeError, match="real numbers"):
        tcm.read_scales(np.array(["x"]), 1.0, 4, 16, 4)


def test_at_the_end():
    a, b = operands()
    sums = HOPPER.gemm(a, b)
    s, t = np.float32(0.37), np.float32(1.9)
    assert (HOPPER.gemm(a, b, scale_a=s, scale_b=t) == sums * (s * t)).all()
    row, column = factors(M, 1), factors(1, N)
    assert (HOPPER.gemm(a, b, scale_a=row, scale_b=column) == (sums * column) * row).all()
    assert (ADA.gemm(a, b, scale_a=row, scale_b=column) == (ADA.gemm(a, b) * row) * column).all()
    c = factors(M, N)
    assert (HOPPER.gemm(a, b, c, scale_a=row, scale_b=t, promote_every=128)
            == (HOPPER.gemm(a, b, promote_every=128) * t) * row + c).all()  # fmt: skip
    with pytest.raises(ValueError, match="alpha and beta"):
        HOPPER.gemm(a, b, scale_a=s, scale_b=t, alpha=2.0)


def exact_fma(x, y, z):
    """RN32 of the rational x y + z, by halving an interval of neighbours."""
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    near = np.float32(float(exact))
    best = [np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf))]
    return min(best, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))


def test_fused_multiply_adds_are_rounded_once():
    rng = np.random.default_rng(2)
    x, y, z = (np.ldexp(rng.standard_normal(2000), rng.integers(-20, 20, 2000)).astype(np.float32) for _ in range(3))
    z[::3] = -(x * y)[::3]
    ties = np.float32(1) + np.float32(2.0**-23) * rng.integers(0, 99, 2000).astype(np.float32)
    z[1::3], y[1::3], x[1::3] = ties[1::3], np.float32(2.0**-24), 1 + np.float32(2.0**-23) * rng.integers(-1, 2, 667)
    found = fused_multiply_add(x, y, z)
    assert all(f == exact_fma(*v) for f, *v in zip(found, x, y, z, strict=True))


@pytest.mark.parametrize("shapes", [((M, 3), (3, 2)), ((2, 3), (3, N)), ((M, 3), (3, N))])
def test_after_blocks(shapes):
    a, b = operands()
    sa, sb = (factors(*shape, seed=i) for i, shape in enumerate(shapes))
    found = HOPPER.gemm(a, b, scale_a=sa, scale_b=sb)
    for i, j in ((0, 0), (129, 139), (17, 128)):
        total = np.float32(0)
        for block in range(3):
            k = slice(block * 128, min(block * 128 + 128, K))
            chain = HOPPER.gemm(a[i : i + 1, k], b[k, j : j + 1])[0, 0]
            factor = sa[i if len(sa) == M else i // 128, block] * sb[block, j if sb.shape[1] == N else j // 128]
            total = exact_fma(factor, chain, total)
        assert found[i, j] == total
    split = HOPPER.gemm(a, b, scale_a=sa, scale_b=sb, k_order=[(0, 256), (256, K)])
    ends = []
    for kept in (slice(0, 256), slice(256, K)):
        part = np.zeros_like(a)
        part[:, kept] = a[:, kept]
        ends.append(HOPPER.gemm(part, b, scale_a=sa, scale_b=sb))
    assert (split == ends[0] + ends[1]).all()
    for options, message in (
        ({"promote_every": 96}, "divides the 128 products of a scale"),
        ({"k_order": "sliced_k:2"}, "start at multiples of "),
    ):
        with pytest.raises(ValueError, match=message):
            HOPPER.gemm(a, b, scale_a=sa, scale_b=sb, **options)


def test_inside_of_the_unit_with_a_global_scale():
    x = np.random.default_rng(5).standard_normal((16, 128))
    a, b = tcm.quantize_blocks(x, "nvfp4", axis=1), tcm.quantize_blocks(x.T, "nvfp4", axis=0)
    plain = NV.gemm(a.elements, b.elements, scale_a=a.scales, scale_b=b.scales)
    whole = NV.gemm(a.elements, b.elements, scale_a=(a.scales, 0.3), scale_b=(b.scales, 7.0))
    assert (whole == plain * (np.float32(0.3) * np.float32(7.0))).all()
    with pytest.raises(ValueError, match="fits no rule for A of 16 x 128: nvfp4"):
        NV.gemm(a.elements, b.elements, scale_a=1.0, scale_b=1.0)
    with pytest.raises(ValueError, match="use a unit that takes them"):
        HOPPER.gemm(*operands(), scale_a=np.ones((M, 10)), scale_b=np.ones((10, N)))


def test_integer_sums_become_fp32():
    rng = np.random.default_rng(6)
    a, b = rng.integers(-128, 128, (8, 64)).astype(np.int8), rng.integers(-128, 128, (64, 8)).astype(np.int8)
    unit = tcm.default_instruction("a100", "s8", "s32")
    expected = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.float32) * (np.float32(0.1) * np.float32(0.2))
    assert (unit.gemm(a, b, scale_a=0.1, scale_b=0.2) == expected).all()


def test_parts_of_scales_are_those_of_their_rows_and_columns():
    rows, columns = np.array([3, 129]), np.array([0, 128, 5])
    for sa, sb in (((M, 3), (3, 2)), ((2, 3), (3, N)), ((M, 1), (1, N)), ((), ())):
        whole = tcm.read_scales(factors(*sa), factors(*sb), M, K, N)
        part = whole.part(rows, columns)
        assert (part.spread_a() == whole.spread_a()[rows]).all()
        assert (part.spread_b() == whole.spread_b()[:, columns]).all()


def test_every_rule_is_read_back():
    for rule in RULES:
        shapes = rule.shape("a", M, K), rule.shape("b", N, K)
        found = tcm.read_scales(np.ones(shapes[0]), np.ones(shapes[1]), M, K, N)
        assert (found.rule_a, found.rule_b) == (rule, rule)
        assert rule.name in found.in_words()
