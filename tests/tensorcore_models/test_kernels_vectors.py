"""What vector kernels could get wrong and random operands do not reach: ties, limits of widths, mixed lanes."""

import numpy as np
import pytest
from random_encodings import STYLES, encodings
from twins import Unit, assert_same, on_isa, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference
from tensorcore_models.accumulators import (
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupFusedDotRoundDownAdd,
    InterleavedDotAdd,
    ParametricDotAdd,
    SequentialFMA,
)
from tensorcore_models.formats import Format
from tensorcore_models.machine import instruction_sets as isa

ROUNDINGS = ("rne", "rna", "rz", "ru", "rd", "ro", "ra", "rnu", "rnd", "rnz", "rno")
pytestmark = pytest.mark.usefixtures("generic_kernels")
FP64 = dict.fromkeys(("a_format", "b_format", "c_format", "d_format"), "fp64")


def assert_all_isas(unit: Unit, *args) -> None:
    args = (*args, None, None)[:5]
    expected = reference.mma_bits(unit, *args)
    for level in isa.available_isas():
        assert_same(unit, on_isa(level, unit, args), expected, args, level)


# -- every rounding of every alignment, at both widths -----------------------------------------------------------------------
@pytest.mark.sweep(63)
@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("fraction_bits", [9, 25, 47, 80])
@pytest.mark.parametrize(
    "alignment",
    [
        {},
        {"alignment": "pairwise"},
        {"alignment": "odd_even"},
        {"normalise_each_add": True},
        {"normalised_products": True},
    ],
    ids=lambda x: next(iter(x.values()), "global") if x else "global",
)
def test_roundings_and_alignments(rounding, fraction_bits, alignment):
    """Chains of two passes, the last one shorter, of operands near each other and of any bits."""
    spec = ParametricDotAdd(
        7,
        fraction_bits,
        alignment_rounding=rounding,
        output_rounding=ROUNDINGS[fraction_bits % len(ROUNDINGS)],
        **alignment,
    )
    rng = np.random.default_rng(fraction_bits)
    for style in ("clustered", str(rng.choice(STYLES))):
        unit = Unit(spec, "fp16", "fp16")
        assert_all_isas(unit, *operands(rng, unit, 2, 12, 13, style))


@pytest.mark.parametrize("terms", [1, 2, 3, 5, 31, 32, 33, 257, 1024])
def test_trees_of_any_size(terms):
    unit = Unit(ParametricDotAdd(terms, 20, alignment="pairwise", alignment_rounding="rna"), "bf16", "bf16")
    rng = np.random.default_rng(terms)
    for k in {terms, max(1, terms - 1)}:
        assert_all_isas(unit, *operands(rng, unit, 1, k, 9, "clustered"))


def test_trees_with_products_that_take_no_part():
    """Lanes that leave such a product out build another tree than their neighbours."""
    spec = ParametricDotAdd(8, 20, alignment="pairwise", alignment_rounding="rne", zero_operand="skip", zero_c="skip")
    unit = Unit(spec, "fp16", "fp16")
    rng = np.random.default_rng(0)
    a, b, c, *_ = operands(rng, unit, 3, 16, 20, "clustered")
    b = np.where(rng.random(b.shape) < 0.05, 0, b).astype(np.uint16)
    assert_all_isas(unit, a, b, c)


# -- limits of the widths ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fraction", [28, 29, 30, 31, 40, 60, 61])
def test_the_longest_significands_of_each_width(fraction):
    """Products of 58 to 124 bits: at the limit of the narrow vectors, beyond it, at that of the wide ones."""
    exponent_bits = min(6, 63 - fraction)
    long = Format("long", exponent_bits, fraction, (1 << (exponent_bits - 1)) - 1)
    for rounding in ("rne", "ru", "ro"):
        unit = Unit(
            ParametricDotAdd(3, min(2 * fraction, 112), alignment_rounding=rounding), long, long, "fp64", "fp64"
        )
        assert kernels.kernel_name(unit).startswith("generic")
        rng = np.random.default_rng(fraction)
        for style in ("clustered", "bits"):
            assert_all_isas(unit, *operands(rng, unit, 2, 5, 9, style))


@pytest.mark.parametrize("names", [("fp64", "fp64"), ("fp32", "fp32"), ("bf16", "tf32"), ("e5m2", "e4m3fn")])
def test_exact_sums_that_no_vector_holds_beside_ones_that_it_does(names):
    """Columns whose exponents are far apart are summed in the long accumulator, the others in vectors."""
    unit = Unit(ParametricDotAdd(6, None, output_rounding="rne"), *names, "fp64", "fp64")
    rng = np.random.default_rng(1)
    a = encodings(rng, unit.formats[0], (3, 12), "normal")
    near = encodings(rng, unit.formats[1], (12, 12), "normal")
    far = encodings(rng, unit.formats[1], (12, 12), "sparse")
    c = encodings(rng, unit.formats[2], (3, 12), "clustered")
    assert_all_isas(unit, a, np.where(np.arange(12) % 3 == 1, far, near), c)


@pytest.mark.parametrize("name", ["fp64", "fp32", "bf16"])
def test_exact_sums_that_cancel_to_a_bit_below_the_vectors(name):
    """x + 2^-e - x with x = 2^e in some columns, without the 2^-e in their neighbours, whose vectors lose nothing."""
    unit = Unit(ParametricDotAdd(6, None, output_rounding="rne"), name, name, "fp64", "fp64")
    large = 2.0 ** (unit.formats[0].emax - 2)
    b = np.zeros((6, 12))
    b[0], b[1, ::2], b[3] = large, 1 / large, -large
    b[5] = np.where(np.arange(12) % 3 == 0, large, 0)
    a, b = (tcm.encode(x, name) for x in (np.ones((2, 6)), b))
    assert_all_isas(unit, a, b, tcm.encode(np.zeros((2, 12)), "fp64"))


# -- all kinds of lanes side by side -----------------------------------------------------------------------------------------
@pytest.mark.sweep(3)
@pytest.mark.parametrize(
    "unit",
    [
        Unit(ParametricDotAdd(4, 24, alignment_rounding="rne", product_overflow_exponent=20), "fp16", "fp16"),
        Unit(ParametricDotAdd(4, 24, c_position="late", late_rounding="rd"), "fp16", "fp16", "fp16", "fp16"),
        Unit(ParametricDotAdd(4, 24, flush_inputs=True, flush_outputs=True, subnormal_c="normalised"), *["e5m2"] * 4),
        Unit(FusedDotAdd(4, 24, output_rounding="ro"), "e4m3fn", "e5m2", "e4m3fn", "e4m3fn"),
        Unit(FusedDotAdd(4, 24, output_rounding="rna"), "e4m3fnuz", "e5m2", "e5m2fnuz", "e4m3fnuz"),
        Unit(InterleavedDotAdd(FusedDotAdd(4, 24)), "e5m2", "e5m2"),
        Unit(FusedDotRoundDownAdd(4, c_inf_with_overflow="nan", exponent_floor=-20), "bf16", "bf16"),
        Unit(GroupFusedDotRoundDownAdd(6, c_zero_below=3), "e5m2", "e5m2", "fp16", "fp16"),
        Unit(ParametricDotAdd(4, None, output_rounding="rd"), "fp16", "fp16", "fp16", "fp16"),
    ],
    ids=lambda u: str(u)[17:60],
)
def test_columns_of_different_styles(unit):
    """Infinities, NaNs, overflow, subnormal results and zeros in one vector with ordinary numbers."""
    rng = np.random.default_rng(3)
    parts = [operands(rng, unit, 4, 11, 4, style) for style in STYLES]
    b, c = (np.concatenate([part[i] for part in parts], axis=1) for i in (1, 2))
    shuffled = rng.permutation(b.shape[1])
    a = np.concatenate([parts[i][0] for i in (1, 3, 7)])
    b, c = b[:, shuffled], np.concatenate([c] * 3)[:, shuffled]
    assert_all_isas(unit, a, b, c)
    for count in (1, 4):  # few columns: A and B change places where their formats are one
        for first in range(0, b.shape[1], count):
            assert_all_isas(unit, a, b[:, first : first + count], c[:, first : first + count])


@pytest.mark.parametrize("late", [False, True], ids=["fused", "late"])
@pytest.mark.parametrize("limit", [None, 3])
@pytest.mark.parametrize("d", ["fp32", "fp16"])
def test_an_addend_decides_the_rest_of_a_chain(late, limit, d):
    """Infinities and NaNs of the first pass meet later ones: ordinary, with infinities of their own, with overflow.

    2^8 times 2^8 overflows in FP16 only, where a late c is added.
    """
    position = {"c_position": "late", "late_rounding": "rne"} if late else {}
    unit = Unit(ParametricDotAdd(2, 24, product_overflow_exponent=limit, **position), "fp16", "fp16", d, d)
    ordinary, two, large, infinity, nan = (np.float16(x).view(np.uint16) for x in (1, 4, 256, np.inf, np.nan))
    later = [(ordinary, ordinary), (infinity, ordinary), (two, two), (large, large)]
    starts = [(sign << 15 | start, ordinary) for sign in (0, 1) for start in (infinity, nan)]
    a = np.array([[*start, x, ordinary] for start in starts for x, _ in later], np.uint16)
    b = np.array([[ordinary, ordinary, y | sign << 15, ordinary] for sign in (0, 1) for _, y in later], np.uint16).T
    c = np.zeros((a.shape[0], 3 * b.shape[1]), unit.formats[2].container)
    assert_all_isas(unit, a, np.tile(b, 3), c)


# -- fused multiply-adds of doubles ------------------------------------------------------------------------------------------
def _doubles(values) -> np.ndarray:
    return np.ascontiguousarray(values, np.float64).view(np.uint64)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("d_format", ["fp64", "fp32"])
def test_fused_multiply_adds_near_ties(rounding, d_format):
    """c plus or minus half a unit in its last place, exactly and next to it, c at and around powers of two."""
    unit = Unit(SequentialFMA(rounding), "fp64", "fp64", "fp64", d_format)
    fraction = 52 if d_format == "fp64" else 23
    ulp = 2.0**-fraction
    starts = np.array([1.0, 1.0 + ulp, 2.0 - ulp, 1.5, 1.5 + ulp, 4.0])
    starts = np.concatenate([starts, -starts])
    halves = np.array([0.5, 0.25, 0.5 * (1 + 2.0**-52), 0.5 * (1 - 2.0**-53), 1.0, 1.5, 2.0**-40]) * ulp
    halves = np.concatenate([halves, -halves, [0.0, -0.0]])
    for scale in (1.0, 2.0**-60, 2.0**100) if d_format == "fp32" else (1.0, 2.0**-900, 2.0**-1000, 2.0**1010):
        c = np.repeat(starts[:, None], halves.size, 1) * scale
        b = _doubles(halves[None] * 8 * scale)
        assert_all_isas(unit, _doubles(np.full((starts.size, 1), 2.0**-3)), b, _doubles(c))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_fused_multiply_adds_whose_sum_is_zero(rounding):
    unit = Unit(SequentialFMA(rounding), **FP64)
    values = np.array([0.0, -0.0, 1.0, -1.0, 3.0, -3.0])
    a, b = _doubles(values[:, None]), _doubles(values[None])
    for c in (0.0, -0.0, 1.0, -1.0, 3.0, -9.0, 9.0):
        assert_all_isas(unit, a, b, _doubles(np.full((6, 6), c)))


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_fused_multiply_adds_at_the_ends_of_the_range(rounding):
    """Products that are subnormal, that overflow, that cancel what overflows; errors that no double holds."""
    unit = Unit(SequentialFMA(rounding), **FP64)
    rng = np.random.default_rng(5)
    a = np.ldexp(1 + rng.random((12, 3)), rng.integers(-540, 512, (12, 3)))
    b = np.ldexp(1 + rng.random((3, 20)), rng.choice([-534, -480, -430, 0, 500, 511], (3, 20)))
    c = np.ldexp(1 + rng.random((12, 20)), rng.choice([-1070, -1022, -965, 0, 1021, 1023], (12, 20)))
    signs = rng.choice([-1.0, 1.0], (12, 20))
    assert_all_isas(unit, _doubles(a), _doubles(b), _doubles(c * signs))


@pytest.mark.parametrize("names", [("e4m3fn",) * 4, ("e5m2", "e5m2", "fp16", "e4m3fn"), ("e5m2fnuz",) * 4])
def test_chains_in_formats_without_infinity(names):
    """Overflow makes a NaN with a sign, which only the last operation shows."""
    for rounding in ("rne", "rd"):
        for saturate in (False, True):
            unit = Unit(SequentialFMA(rounding, saturate=saturate), *names)
            assert kernels.kernel_name(unit) == "generic fma_exact-64"
            rng = np.random.default_rng(6)
            for style in ("overflow", "specials", "sparse", "clustered"):
                for k in (1, 2, 5):
                    assert_all_isas(unit, *operands(rng, unit, 3, k, 20, style)[:3])
