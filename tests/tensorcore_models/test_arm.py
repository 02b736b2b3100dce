"""Arm's rows by hand, from the manual's pseudocode: what FPCR.EBF changes, FP8 with LSCALE and OSM, SME's outer products.

Those that QEMU has are compared with it, too: test_arm_emulated.py.
"""

from fractions import Fraction

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.formats.exact_rounding import round_to_bits

ARM = tcm.list_instructions("arm")
FP8 = [row for row in ARM if row.a_format in ("e4m3fn", "e5m2")]


def one(row: tcm.Instruction, products: list[tuple[float, float]], c: float) -> float:
    """One result with these products first in k, in every element alike."""
    x = np.zeros((row.m, row.k))
    y = np.zeros((row.k, row.n))
    for i, (a, b) in enumerate(products):
        x[:, i], y[i] = a, b
    codes = (tcm.encode(v, f) for v, f in zip((x, y, np.full((row.m, row.n), c)), row.formats, strict=False))
    d = tcm.decode(row.mma_bits(*codes), row.d_format)
    assert (d == d[0, 0]).all() or np.isnan(d).all()
    return float(d[0, 0])


@pytest.mark.parametrize("stem", ["bfmmla.m2n2k4", "bfdot.k2", "bfmopa.m4n4k2"])
@pytest.mark.parametrize(
    ("products", "c", "without", "extended"),
    [
        ([(1, 1), (2**-12, 2**-12)], 0, 1 + 2**-23, 1),  # the pair rounded to odd, or to nearest even
        ([(1, 1), (2**-12, 2**-11)], 0, 1 + 2**-23, 1 + 2**-23),
        ([(1 + 2**-7, 1), (2**-13, 2**-13)], -1, 2**-7 + 2**-23, 2**-7),  # rounded before c is added
        ([(2**-64, 2**-64), (0, 0)], 0, 0, 2**-128),  # subnormal results are flushed, or kept
        ([(2**64, 2**64), (0, 0)], 0, np.inf, np.inf),
    ],
)
def test_extended_bfloat16(stem, products, c, without, extended):
    name = f"{stem}.f32.bf16.bf16.f32"
    assert one(tcm.get_instruction("arm", name), products, c) == without
    assert one(tcm.get_instruction("arm", f"{name}.ebf"), products, c) == extended


@pytest.mark.parametrize("row", FP8, ids=lambda row: row.name)
@pytest.mark.parametrize("scale", [0, 1, 9])
def test_fp8_is_one_exact_sum(row, scale):
    """FP8DotAddFP: products and c exact, the products times 2^-LSCALE, one rounding to nearest even."""
    rng = np.random.default_rng(scale)
    spec = row.with_rules(scale=scale)
    limit = 0x7C if row.a_format == "e5m2" else 0x7F
    a, b = (
        rng.integers(0, min(limit, 0x7C), (row.m, row.k) if i == 0 else (row.k, row.n)).astype(np.uint8) for i in (0, 1)
    )
    a, b = (
        a | (rng.integers(0, 2, a.shape) << 7).astype(np.uint8),
        b | (rng.integers(0, 2, b.shape) << 7).astype(np.uint8),
    )
    fmt = row.formats[3]
    c = tcm.encode(rng.standard_normal((row.m, row.n)), row.d_format, "rne")
    x, y, z = (tcm.decode(codes, f) for codes, f in zip((a, b, c), row.formats, strict=False))
    d = spec.mma_bits(a, b, c)
    for i in range(row.m):
        for j in range(row.n):
            exact = sum(Fraction(float(x[i, k])) * Fraction(float(y[k, j])) for k in range(row.k)) / 2**scale
            exact += Fraction(float(z[i, j]))
            units = abs(exact) * 2**200
            assert units.denominator == 1
            assert int(d[i, j]) == round_to_bits(exact < 0, int(units), -200, fmt), (i, j)


@pytest.mark.parametrize("types", ["e4m3.e4m3", "e5m2.e5m2"])
def test_fp8_that_overflows(types):
    row = tcm.get_instruction("arm", f"fdot.k2.f16.{types}.f16")
    assert one(row, [(256, 256)], 0) == np.inf and one(row, [(-256, 256)], 0) == -np.inf
    held = row.with_rules(saturate=True)
    assert one(held, [(256, 256)], 0) == 65504 and one(held, [(-256, 256)], 0) == -65504
    assert one(row.with_rules(scale=1), [(256, 256)], 0) == 32768
    with pytest.raises(ValueError, match="scale is 16, expected 0 to 15 with results in fp16"):
        row.with_rules(scale=16)


def test_outer_products():
    half = tcm.get_instruction("arm", "fmopa.m4n4k2.f32.f16.f16.f32")
    assert one(half, [(1, 1), (2**-12, 2**-12)], 2**-24) == 1  # the pair is rounded before c is added
    assert one(half, [(2**-12, 2**-12), (2**-12, 2**-12)], 1) == 1 + 2**-23  # and is one addend
    single = tcm.get_instruction("arm", "fmopa.m4n4k1.f32.f32.f32.f32")
    assert one(single, [(1 + 2**-12, 1 + 2**-12)], -(1 + 2**-11)) == 2**-24  # fused
    double = tcm.get_instruction("arm", "fmopa.m2n2k1.f64.f64.f64.f64")
    assert one(double, [(1 + 2**-30, 1 + 2**-30)], -(1 + 2**-29)) == 2**-60
    for name in ("fmopa.m8n8k1.f16.f16.f16.f16", "bfmopa.m8n8k1.bf16.bf16.bf16.bf16"):
        assert one(tcm.get_instruction("arm", name), [(1 + 2**-7, 1 + 2**-7)], -(1 + 2**-6)) == 2**-14
