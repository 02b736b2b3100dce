"""The worked examples of the papers, by section. Expected values are the papers' own, never computed."""

import itertools

import numpy as np
import pytest
from dots import dot, dot_bits

import tensorcore_models as tcm

pytestmark = pytest.mark.smoke

V100 = tcm.get_instruction("v100", "mma.m8n8k4.f32.f16.f16.f32")
V100_HALF = tcm.get_instruction("v100", "mma.m8n8k4.f16.f16.f16.f16")
T4 = tcm.get_instruction("t4", "wmma.m16n16k16.f32.f16.f16.f32")
A100 = tcm.get_instruction("a100", "mma.m16n8k16.f32.f16.f16.f32")
A100_BF16 = tcm.get_instruction("a100", "mma.m16n8k8.f32.bf16.bf16.f32")
A100_TF32 = tcm.get_instruction("a100", "mma.m16n8k4.f32.tf32.tf32.f32")
H100 = tcm.get_instruction("h100", "mma.m16n8k16.f32.f16.f16.f32")
L40S_FP8 = tcm.get_instruction("l40s", "mma.m16n8k32.f32.e5m2.e5m2.f32")
H100_WGMMA_FP8 = tcm.get_instruction("h100", "wgmma.m64n8k32.f32.e5m2.e5m2")
H100_SYNC_FP8 = tcm.get_instruction("h100", "mma.m16n8k32.f32.e5m2.e5m2.f32")
CDNA3 = tcm.get_instruction("mi300x", "v_mfma_f32_32x32x8_f16")
ONES = [1.0, 1.0, 1.0, 1.0]


class TestFasiSection31OnV100:
    """fasi-numerical-behavior, section 3.1."""

    @pytest.mark.parametrize("ins", [V100, V100_HALF], ids=str)
    def test_311_subnormal_operand(self, ins):
        assert dot(ins, [2.0**-24], [4.0]) == 2.0**-22

    def test_311_binary32_subnormal_c_passes_through(self):
        assert dot(V100, [0.0], [0.0], 2.0**-149) == 2.0**-149

    @pytest.mark.parametrize("ins", [V100, V100_HALF], ids=str)
    def test_311_subnormal_results(self, ins):
        assert dot(ins, [2.0**-14], [0.5]) == 2.0**-15
        assert dot(ins, [2.0**-14], [1.0], -(2.0**-15)) == 2.0**-15

    def test_311_subnormals_are_native(self):
        assert dot(V100, [1.0, 1.0], [2.0**-23 + 2.0**-24, 2.0]) == 2.0

    def test_312_products_are_exact(self):
        x = 1 - 2.0**-11
        assert dot(V100, [x] * 4, [x] * 4) == 4 * (1 - 2.0**-10 + 2.0**-22)

    def test_312_binary16_mode_keeps_exact_products(self):
        x = 1 - 2.0**-11
        assert dot(V100_HALF, [x, x], [x, 2.0**-11]) == 1 - 2.0**-10 + 2.0**-11

    def test_312_addition_starts_from_the_largest(self):
        tiny = 2.0**-24
        for place in range(5):
            addends = [tiny] * 5
            addends[place] = 1.0
            assert dot(V100, ONES, addends[:4], addends[4]) == 1.0

    @pytest.mark.parametrize("sign", [1, -1])
    def test_313_truncation(self, sign):
        assert dot(V100, [1.0, 1.0], [sign * 2.0, sign * (2.0**-23 + 2.0**-24)]) == sign * 2.0

    def test_313_binary16_output_rounds_to_nearest(self):
        assert dot(V100_HALF, [2.0**-24, 2.0**-24], [0.5, 0.25]) == 2.0**-24

    def test_314_no_guard_bit(self):
        assert dot(V100, [1.0], [1.0], -1 + 2.0**-24) == 2.0**-23

    def test_314_normalised_only_at_the_end(self):
        assert dot(V100, ONES, [2.0**-24] * 4, 1 - 2.0**-24) == 1 + 2.0**-23

    def test_314_no_normalisation_in_subtraction(self):
        assert dot(V100, [1.0, 1.0], [1.0, -(2.0**-24)], -1 + 2.0**-24) == 2.0**-23

    def test_314_two_carry_bits(self):
        for order in set(itertools.permutations([1.0, 1.0, 1.0, 2.0**-23])):
            assert dot(V100, ONES, list(order), 1 + 2.0**-22 + 2.0**-23) == 4 + 2.0**-21

    def test_314_third_carry_bit(self):
        assert dot(V100, ONES, [1.0, 1.5, 1.75, 1.875], 1.875) == 8.0

    def test_314_a_unit_with_two_carry_bits_would_overflow(self):
        """The same sum in an accumulator of 1 + 2 integer bits wraps: 8 = 2^3 is lost, as the paper says."""
        narrow = tcm.MatrixEngine(tcm.ParametricDotAdd(4, 23, integer_bits=3))
        a, b = np.ones((1, 4), np.float16), np.array([[1.0], [1.5], [1.75], [1.875]], np.float16)
        assert narrow.gemm(a, b, np.full((1, 1), 1.875, np.float32))[0, 0] in (0.0, -8.0)
        wide = tcm.MatrixEngine(tcm.ParametricDotAdd(4, 23, integer_bits=4))
        assert wide.gemm(a, b, np.full((1, 1), 1.875, np.float32))[0, 0] == 8.0

    def test_314_not_monotonic(self):
        assert dot(V100, ONES, [2.0**-24] * 4, 1 - 2.0**-24) == 1 + 2.0**-23
        assert dot(V100, ONES, [2.0**-24] * 4, 1.0) == 1.0


class TestFasiSections32And33:
    """fasi-numerical-behavior, sections 3.2 (T4) and 3.3 (A100): one extra bit."""

    @pytest.mark.parametrize("ins", [T4, A100], ids=str)
    def test_extra_bit(self, ins):
        assert dot(ins, [1.0, 1.0], [2.0**-24, 2.0**-24], 1.0) == 1 + 2.0**-23
        assert dot(V100, [1.0, 1.0], [2.0**-24, 2.0**-24], 1.0) == 1.0
        for place in range(5):  # section 3.1.2 with the next bit, 2^-25 = 2^-12 * 2^-13
            a, b, c = [2.0**-12] * 4, [2.0**-13] * 4, 2.0**-25
            if place == 4:
                c = 1.0
            else:
                a[place] = b[place] = 1.0
            assert dot(ins, a, b, c) == 1.0

    def test_33_bfloat16_subnormal_result(self):
        assert dot(A100_BF16, [2.0**-126], [0.5]) == 2.0**-127

    def test_33_tf32_like_t4(self):
        assert dot(A100_TF32, [1.0, 1.0], [2.0**-24, 2.0**-24], 1.0) == 1 + 2.0**-23

    def test_33_binary64_rounds_to_nearest_in_order(self):
        ins = tcm.get_instruction("a100", "mma.m8n8k4.f64.f64.f64.f64")
        tiny = 2.0**-53
        for c, p1, p2 in set(itertools.permutations([1.0, tiny, tiny])):
            expected = 1 + 2.0**-52 if (c, p1) == (tiny, tiny) else 1.0
            assert dot(ins, [1.0, 1.0], [p1, p2], c) == expected  # also khattak-mikaitis, section IV-A2


class TestKhattakSection4:
    """khattak-mikaitis, section IV."""

    @pytest.mark.parametrize(
        ("ins", "tails"),
        [
            (V100, [2.0**-23, 2.0**-23]),
            (A100, [2.0**-23, 2.0**-24, 2.0**-24]),
            (H100, [2.0**-23 + 2.0**-24 + 2.0**-25, 2.0**-25]),
        ],
        ids=["IV-A1 V100", "IV-A2 A100", "IV-A5 H100"],
    )
    def test_products_are_not_normalised(self, ins, tails):
        small = [t * 2.0**12 for t in tails]
        shrink = [2.0**-12] * len(tails)
        assert dot(ins, [1.5, *shrink], [1.5, *small]) == 2.25 + 2.0**-22
        assert dot(ins, [1.0, *shrink], [2.25, *small]) == 2.25
        assert dot(ins, [0.0, *shrink], [0.0, *small], 2.25) == 2.25

    def test_iv_a4_thirteen_fraction_bits(self):
        half = 2.0**-7
        assert dot(L40S_FP8, [1.0, half, half], [1.0, 2.0**-6, 2.0**-6]) == 1 + 2.0**-12
        assert dot(L40S_FP8, [1.0, half, half], [1.0, half, half]) == 1.0

    def test_iv_a4_c_is_added_early(self):
        half = 2.0**-7
        assert dot(L40S_FP8, [half, half], [half, half], 1.0) == 1.0

    def test_iv_a5_interleaved_pairs(self):
        """p_1 = 1, p_2 = 2^-24, then 2^-24 at p_3 .. p_32: 1 + 2^-23 in the first group, 1 in the second."""
        tiny = 2.0**-12
        for place in range(2, 32):
            a, b = [0.0] * 32, [0.0] * 32
            a[0] = b[0] = 1.0
            a[1] = b[1] = a[place] = b[place] = tiny
            first_group = place // 2 % 2 == 0
            assert dot(H100_SYNC_FP8, a, b) == (1 + 2.0**-23 if first_group else 1.0)

    def test_iv_a5_wgmma_has_thirteen_bits_and_32_terms(self):
        half = 2.0**-7
        a, b = [0.0] * 32, [0.0] * 32
        a[0] = b[0] = 1.0
        a[31], b[31], a[15], b[15] = half, 2.0**-6, half, 2.0**-6
        assert dot(H100_WGMMA_FP8, a, b) == 1 + 2.0**-12


class TestValpey:
    """valpey-smt-formalization; values as corrected in the facts (section 4 of the probing sheet)."""

    def test_table1_products_are_exact(self):
        a, b = 0.2587890625 * 2.0**-14, 1.3681640625 * 2.0**-1
        for ins in (V100, T4, A100):
            assert dot(ins, [a], [b]) == 1.4162635803222656 * 2.0**-17

    def test_table3_truncation_without_sticky_bit(self):
        for ins in (V100, T4, A100):
            assert dot(ins, [2.0], [1.0], -(2.0**-40)) == 2.0
        jammed = tcm.MatrixEngine(tcm.ParametricDotAdd(4, 24, sticky=True))
        one = np.ones((1, 1), np.float16)
        assert jammed.gemm(2 * one, one, np.full((1, 1), -(2.0**-40), np.float32))[0, 0] == 2 - 2.0**-23

    def test_table5_correction_inside_and_outside(self):
        a = [1.0009765625 * 2.0**-8, 1.326171875 * 2.0**-14, 2.0**-12, 2.0**-12]
        b = [1.998046875 * 2.0**7, 1.4443359375 * 2.0**-7, 2.0**-12, 2.0**-12]
        for ins in (V100, A100, H100):
            assert dot(ins, a, b, 2.0**-24) == 1 + 2.0**-23
            assert dot(ins, a, b) == 1.0

    def test_31_ampere_m8n8k4_is_a_chain_of_fused_multiply_adds(self):
        ins = tcm.get_instruction("a100", "mma.m8n8k4.f32.f16.f16.f32")
        assert dot(ins, [1.0, 1.0, 2.0**-12], [1.0, 2.0**-24, -(2.0**-12)], 0.0) == 1 - 2.0**-24
        assert dot(ins, [2.0**-12, 1.0], [2.0**-12, 1.0], 2.0**-24) == 1 + 2.0**-23
        assert dot(ins, [1.0, 2.0**-12, 2.0**-12], [1.0, 2.0**-12, 2.0**-12], 0.0) == 1.0


class TestXieSection6:
    """xie-mma-sim, section VI."""

    def test_a_fp8_through_fp16_keeps_what_qgmma_drops(self):
        """Section VI-A, software insight: fp8 operands on the FP16 unit have 25 fraction bits instead of 13."""
        a, b = [1.0, 2.0**-10], [1.0, 2.0**-8]
        assert dot(H100_WGMMA_FP8, a, b) == 1.0
        half = tcm.get_instruction("h100", "wgmma.m64n8k16.f32.f16.f16")
        assert dot(half, a, b) == 1 + 2.0**-18

    @pytest.mark.parametrize(("fmt", "name"), [("fp16", "f16"), ("bf16", "bf16_1k")])
    def test_b_cdna2_flushes_subnormal_operands(self, fmt, name):
        ins = tcm.get_instruction("mi250x", f"v_mfma_f32_32x32x8{name}")
        tiny = tcm.get_format(fmt).min_normal
        assert dot(ins, [tiny / 2], [1.0]) == 0.0
        assert dot(ins, [tiny], [1.0]) == tiny
        cdna3 = tcm.get_instruction("mi300x", f"v_mfma_f32_32x32x8_{name.removesuffix('_1k')}")
        assert dot(cdna3, [tiny / 2], [1.0]) == tiny / 2

    def test_b_cdna2_flushes_products_keeping_the_sign(self):
        ins = tcm.get_instruction("mi250x", "v_mfma_f32_32x32x8bf16_1k")
        assert dot_bits(ins, [2.0**-64], [-(2.0**-64)], -0.0) == 0x00000000  # the other zero products are +0
        # A difference of normal numbers below 2^-126 is flushed as well.
        assert dot(ins, [2.0**-126, 2.0**-126], [1.5, -1.0]) == 0.0

    def test_b_products_overflow_on_cdna3_only(self):
        cdna3 = tcm.get_instruction("mi300x", "v_mfma_f32_32x32x8_bf16")
        hopper = tcm.get_instruction("h100", "mma.m16n8k16.f32.bf16.bf16.f32")
        a, b = [2.0**64, 2.0**64], [2.0**64, -(2.0**64)]
        assert np.isnan(dot(cdna3, a, b))
        assert dot(hopper, a, b) == 0.0
        assert dot(cdna3, a[:1], b[:1]) == np.inf
        assert dot(cdna3, [2.0**63], [2.0**64]) == 2.0**127

    def test_c_minus_a_quarter(self):
        """Section VI-C(a): 2048 * 2048 - 2048 * 2048 - 0.000001 = -0.25 on CDNA3, 0 elsewhere."""
        c = float(np.float32(-0.000001))
        assert dot(CDNA3, [2048.0, 2048.0], [2048.0, -2048.0], c) == -0.25
        assert dot(H100, [2048.0, 2048.0], [2048.0, -2048.0], c) == 0.0
        rounded_to_zero = tcm.MatrixEngine(tcm.FusedDotRoundDownAdd(8, add_rounding="rz"))
        a, b = np.array([[2048, 2048]], np.float16), np.array([[2048], [-2048]], np.float16)
        assert rounded_to_zero.gemm(a, b, np.array([[c]], np.float32))[0, 0] == 0.0

    def test_c_fp8_is_patched(self):
        ins = tcm.get_instruction("mi300x", "v_mfma_f32_32x32x16_fp8_fp8")
        assert dot(ins, [16.0, 16.0, 16.0, 16.0], [128.0, -128.0, 128.0, -128.0], -(2.0**-20)) == 0.0

    def test_c_bias_histogram(self):
        """Section VI-C(b), fig. 2: with RD the deviations are biased below zero, with RZ they are not.

        A is 1000 N(0,1), so dot products are near 10^6.5 and c is rounded at a unit of 2^-1 .. 2^0. Rounding a uniform tail
        down by the unit u loses u/2 on average, with a spread of u/sqrt(12) an element: over n elements the mean of RD is
        -u/2 within a few u/sqrt(12 n); the mean of RZ is 0 within the same spread.
        """
        rng = np.random.default_rng(1)
        size = 64
        a = (1000 * rng.standard_normal((size, 8))).astype(np.float16)
        b = (1000 * rng.standard_normal((8, size))).astype(np.float16)
        c = rng.standard_normal((size, size)).astype(np.float32)
        exact = a.astype(np.float64) @ b.astype(np.float64) + c
        down = tcm.MatrixEngine(tcm.FusedDotRoundDownAdd(8)).gemm(a, b, c) - exact
        zero = tcm.MatrixEngine(tcm.FusedDotRoundDownAdd(8, add_rounding="rz")).gemm(a, b, c) - exact
        spread = zero.std() / size
        assert down.mean() < -6 * spread
        assert abs(zero.mean()) < 6 * spread
