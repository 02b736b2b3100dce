/* The algorithms of wide.h in AVX-512 intrinsics: same bits, B split into magnitudes by sign.
 *
 * With M = 1.5 * 2^52 units, M + |a b| rounded toward zero is M + the truncated product: one fused multiply-add multiplies, aligns
 * and adds. Positive and negative products go to two such sums, whose difference is exact.
 */
#ifndef MPG_WIDE_AVX512_H
#define MPG_WIDE_AVX512_H

#include "wide.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES512
#define MPG_LANES512 MPG_TARGET_AVX512 static inline __attribute__((always_inline))
#endif
#define MPG_TOWARD_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MPG_DOWN (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)

MPG_LANES512 __m512d mpg_exponents512(__m512d x)
{
    return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_C(0x7FF0000000000000))));
}

/* Powers of two of the largest product exponents of 32 lanes. */
MPG_LANES512 void mpg_wide_tops512(int terms, int floor, const uint32_t *ea, const int16_t *eb, __m512d *top)
{
    __m512i words = _mm512_set1_epi16((short)(floor + MPG_WORD_BIAS));
    for (int q = 0; q < terms; q++) {
        const __m512i e = _mm512_add_epi16(_mm512_set1_epi32((int)ea[q]), _mm512_loadu_si512(eb + q * MPG_WIDE));
        words = _mm512_max_epi16(words, e);
    }
    top[0] = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepu16_epi64(_mm512_castsi512_si128(words)), 52));
    top[1] = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32(words, 1)), 52));
    top[2] = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32(words, 2)), 52));
    top[3] = _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_cvtepu16_epi64(_mm512_extracti32x4_epi32(words, 3)), 52));
}

/* Adds products to the two sums of each lane. */
MPG_LANES512 void mpg_wide_sums512(int terms, const double *a, const int64_t *ao, const double *b, __m512d *plus, __m512d *minus)
{
#pragma GCC unroll 4
    for (int q = 0; q < terms; q++) {
        const __m512d x = _mm512_set1_pd(a[q]);
        const double *same = b + q * 2 * MPG_WIDE + ao[q], *other = b + q * 2 * MPG_WIDE + (ao[q] ^ MPG_WIDE);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            plus[g] = _mm512_fmadd_round_pd(x, _mm512_loadu_pd(same + 8 * g), plus[g], MPG_TOWARD_ZERO);
            minus[g] = _mm512_fmadd_round_pd(x, _mm512_loadu_pd(other + 8 * g), minus[g], MPG_TOWARD_ZERO);
        }
    }
}

/* Multiple of `unit` not above x, |x| below 2^51 units. */
MPG_LANES512 __m512d mpg_floored512(__m512d x, __m512d unit)
{
    const __m512d magic = _mm512_mul_pd(unit, _mm512_set1_pd(0x1.8p52));
    return _mm512_sub_pd(_mm512_add_round_pd(x, magic, MPG_DOWN), magic);
}

MPG_LANES512 void mpg_wide_fda512(int terms, int output, const mpg_wide_task *t, const double *a, const int64_t *ao,
                                  const uint32_t *ea, const double *b, const int16_t *eb, __m512d *c, __mmask8 *infinite)
{
    const __m512d zero = _mm512_setzero_pd();
    const __m512d to_magic = _mm512_set1_pd(mpg_power(-t->fraction_bits) * 0x1.8p52);
    const __m512d least = _mm512_set1_pd(mpg_power(t->raw_exponent));
    const __m512d zero_sign = _mm512_set1_pd(t->positive_zero ? 0.0 : -0.0);
    __m512d plus[4], minus[4], top[4];
    mpg_wide_tops512(terms, t->floor, ea, eb, top);
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        __m512d own = mpg_exponents512(c[g]);
        if (output == MPG_OUT_FP16)
            own = _mm512_mask_max_pd(own, _mm512_cmp_pd_mask(own, zero, _CMP_NEQ_OQ), own, least);
        const __m512d magic = _mm512_mul_pd(_mm512_max_pd(top[g], own), to_magic);
        plus[g] = _mm512_add_round_pd(magic, _mm512_max_pd(c[g], zero), MPG_TOWARD_ZERO);
        minus[g] = _mm512_sub_round_pd(magic, _mm512_min_pd(c[g], zero), MPG_TOWARD_ZERO);
    }
    mpg_wide_sums512(terms, a, ao, b, plus, minus);
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const __m512d total = _mm512_sub_pd(plus[g], minus[g]);
        if (output == MPG_OUT_FP16) {
            const __m512d power = _mm512_max_pd(mpg_exponents512(total), _mm512_set1_pd(0x1p-14));
            const __m512d magic = _mm512_mul_pd(power, _mm512_set1_pd(0x1.8p42));
            c[g] = _mm512_sub_pd(_mm512_add_pd(total, magic), magic);
            infinite[g] = _mm512_cmp_pd_mask(_mm512_abs_pd(c[g]), _mm512_set1_pd(0x1p16), _CMP_GE_OQ);
        } else {
            infinite[g] = _mm512_cmp_pd_mask(_mm512_abs_pd(total), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
            c[g] = _mm512_add_pd(_mm512_cvtps_pd(_mm512_cvt_roundpd_ps(total, MPG_TOWARD_ZERO)), zero_sign);
        }
    }
}

MPG_LANES512 void mpg_wide_round_down512(int terms, int groups, const mpg_wide_task *t, const double *a, const int64_t *ao,
                                         const uint32_t *ea, const double *b, const int16_t *eb, __m512d *c,
                                         __mmask8 *infinite)
{
    const int each = terms / groups;
    const __m512d to_unit = _mm512_set1_pd(mpg_power(-t->fraction_bits)), magic = _mm512_set1_pd(0x1.8p52);
    const __m512d dot_unit = _mm512_set1_pd(mpg_power(-t->dot_bits)), c_unit = _mm512_set1_pd(mpg_power(-t->c_bits));
    const __m512d cutoff = _mm512_set1_pd(t->c_cutoff < 1000 ? mpg_power(-t->c_cutoff) : 0);
    const __m512d limit = _mm512_set1_pd(mpg_power(t->overflow < 1000 ? t->overflow - 1 : 1023));
    const __m512d zero_sign = _mm512_set1_pd(t->positive_zero ? 0.0 : -0.0), least = _mm512_set1_pd(0x1p-126);
    __m512d top[2][4], dot[2][4];
    for (int n = 0; n < groups; n++) {
        __m512d plus[4], minus[4];
        mpg_wide_tops512(each, MPG_WIDE_LOWEST, ea + n * each, eb + n * each * MPG_WIDE, top[n]);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            plus[g] = minus[g] = _mm512_mul_pd(_mm512_mul_pd(top[n][g], to_unit), magic);
        mpg_wide_sums512(each, a + n * each, ao + n * each, b + n * each * 2 * MPG_WIDE, plus, minus);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            dot[n][g] = _mm512_sub_pd(plus[g], minus[g]);
    }
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        __m512d largest = top[0][g], sum = dot[0][g];
        if (groups == 2) {
            largest = _mm512_max_pd(largest, top[1][g]);
            const __m512d unit = _mm512_mul_pd(largest, to_unit);
            sum = _mm512_add_pd(mpg_floored512(sum, unit), mpg_floored512(dot[1][g], unit));
        }
        const __m512d raw = _mm512_max_pd(mpg_exponents512(c[g]), least), all = _mm512_max_pd(largest, raw);
        const __mmask8 near = _mm512_cmp_pd_mask(raw, _mm512_mul_pd(all, cutoff), _CMP_GE_OQ);
        const __m512d addend = _mm512_maskz_mov_pd(near, mpg_floored512(c[g], _mm512_mul_pd(all, c_unit)));
        const __m512d total = _mm512_add_pd(mpg_floored512(sum, _mm512_mul_pd(all, dot_unit)), addend);
        c[g] = _mm512_add_pd(_mm512_cvtps_pd(_mm512_cvtpd_ps(total)), zero_sign);
        infinite[g] = _mm512_cmp_pd_mask(largest, limit, _CMP_GE_OQ)
                      | _mm512_cmp_pd_mask(_mm512_abs_pd(c[g]), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
    }
}

MPG_LANES512 void mpg_wide_row_body512(int terms, int groups, int output, const mpg_wide_task *t, const double *a,
                                       const int64_t *ao, const uint32_t *ea, const double *b, const int16_t *eb, float *d,
                                       int count, int64_t steps, uint8_t *overflow)
{
    __mmask8 exists[4];
    __m512d c[4];
    for (int g = 0; g < 4; g++) {
        exists[g] = (__mmask8)(count >= 8 * (g + 1) ? 0xFF : count > 8 * g ? (1 << (count - 8 * g)) - 1 : 0);
        c[g] = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(exists[g], d + 8 * g));
    }
    for (int64_t s = 0; s < steps; s++) {
        __mmask8 infinite[4];
        if (groups)
            mpg_wide_round_down512(terms, groups, t, a, ao, ea, b, eb, c, infinite);
        else
            mpg_wide_fda512(terms, output, t, a, ao, ea, b, eb, c, infinite);
        if (__builtin_expect((infinite[0] | infinite[1] | infinite[2] | infinite[3]) != 0, 0))
            for (int g = 0; g < 4; g++) {
                c[g] = _mm512_maskz_mov_pd((__mmask8)~infinite[g], c[g]);
                for (int j = 0; j < 8; j++)
                    if ((infinite[g] & exists[g]) >> j & 1)
                        overflow[8 * g + j] = 1;
            }
        a += terms;
        ao += terms;
        ea += terms;
        b += terms * 2 * MPG_WIDE;
        eb += terms * MPG_WIDE;
    }
    for (int g = 0; g < 4; g++)
        _mm256_mask_storeu_ps(d + 8 * g, exists[g], _mm512_cvtpd_ps(c[g]));
}

#define MPG_WIDE_ROW512(NAME, TERMS, GROUPS, OUTPUT)                                                                         \
    MPG_TARGET_AVX512 static void NAME(const mpg_wide_task *t, const double *a, const int64_t *ao, const uint32_t *ea,       \
                                       const double *b, const int16_t *eb, float *d, int count, int64_t steps,               \
                                       uint8_t *overflow)                                                                    \
    {                                                                                                                        \
        mpg_wide_row_body512(TERMS, GROUPS, OUTPUT, t, a, ao, ea, b, eb, d, count, steps, overflow);                         \
    }

MPG_WIDE_ROW512(mpg_wide_fda4_512, 4, 0, MPG_OUT_FP32)
MPG_WIDE_ROW512(mpg_wide_fda8_512, 8, 0, MPG_OUT_FP32)
MPG_WIDE_ROW512(mpg_wide_fda16_512, 16, 0, MPG_OUT_FP32)
MPG_WIDE_ROW512(mpg_wide_fda32_512, 32, 0, MPG_OUT_FP32)
MPG_WIDE_ROW512(mpg_wide_fda_fp16_512, t->terms, 0, MPG_OUT_FP16)
MPG_WIDE_ROW512(mpg_wide_down_512, t->terms, 1, MPG_OUT_FP32)
MPG_WIDE_ROW512(mpg_wide_down8_512, 8, 1, MPG_OUT_FP32)
MPG_WIDE_ROW512(mpg_wide_down_groups_512, t->terms, 2, MPG_OUT_FP32)

MPG_TARGET_AVX512 static void mpg_wide_row_avx512(const mpg_wide_task *t, const double *a, const int64_t *ao, const uint32_t *ea,
                                                  const double *b, const int16_t *eb, float *d, int count, int64_t steps,
                                                  uint8_t *overflow)
{
    if (t->round_down == 2)
        mpg_wide_down_groups_512(t, a, ao, ea, b, eb, d, count, steps, overflow);
    else if (t->round_down)
        (t->terms == 8 ? mpg_wide_down8_512 : mpg_wide_down_512)(t, a, ao, ea, b, eb, d, count, steps, overflow);
    else if (t->output == MPG_OUT_FP16)
        mpg_wide_fda_fp16_512(t, a, ao, ea, b, eb, d, count, steps, overflow);
    else if (t->terms == 4)
        mpg_wide_fda4_512(t, a, ao, ea, b, eb, d, count, steps, overflow);
    else if (t->terms == 8)
        mpg_wide_fda8_512(t, a, ao, ea, b, eb, d, count, steps, overflow);
    else if (t->terms == 16)
        mpg_wide_fda16_512(t, a, ao, ea, b, eb, d, count, steps, overflow);
    else
        mpg_wide_fda32_512(t, a, ao, ea, b, eb, d, count, steps, overflow);
}
#endif

/* `rows` packed rows against one panel, d and redo updated in place. */
static void mpg_wide_tile(const mpg_wide_task *t, const double *av, const int64_t *ao, const uint32_t *ae, int64_t length,
                          int64_t rows, const double *bv, const int16_t *be, int count, float *d, uint8_t *redo, int64_t ldd,
                          int level)
{
    const int64_t wanted = level == MPG_ISA_AVX512 ? 64 : 128;
    const int64_t block = wanted / t->terms > 0 ? wanted / t->terms * t->terms : t->terms;
    const int lanes = level == MPG_ISA_AVX512 ? 2 * MPG_WIDE : MPG_WIDE;
    for (int64_t k = 0; k < length; k += block) {
        const int64_t steps = (length - k < block ? length - k : block) / t->terms;
        for (int64_t i = 0; i < rows; i++) {
            const double *a = av + i * length + k, *b = bv + k * lanes;
            const uint32_t *ea = ae + i * length + k;
            const int16_t *eb = be + k * MPG_WIDE;
#if MPG_X86_VARIANTS
            if (level == MPG_ISA_AVX512) {
                mpg_wide_row_avx512(t, a, ao + i * length + k, ea, b, eb, d + i * ldd, count, steps, redo + i * ldd);
                continue;
            }
#endif
            double c[MPG_WIDE] = {0};
            uint8_t overflow[MPG_WIDE] = {0};
            for (int j = 0; j < count; j++)
                c[j] = d[i * ldd + j];
            (level == MPG_ISA_AVX2 ? mpg_wide_row_avx2 : mpg_wide_row_baseline)(
                t->round_down == 2 ? t->terms / 2 : t->terms, t, a, ea, b, eb, c, steps, overflow);
            for (int j = 0; j < count; j++) {
                d[i * ldd + j] = (float)c[j];
                redo[i * ldd + j] |= overflow[j];
            }
        }
    }
}

#endif
