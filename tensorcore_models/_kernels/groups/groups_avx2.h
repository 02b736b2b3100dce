/* The algorithm of groups.h in AVX2 intrinsics: same bits. The CPU rounds toward zero meanwhile: with M = 1.5 * 2^52 units of the sign
 * of x, M + x is M plus x truncated to its unit, so that one fused multiply-add multiplies a group sum by its scales, aligns and
 * truncates, as in groups_avx512.h. */
#ifndef MPG_GROUPS_AVX2_H
#define MPG_GROUPS_AVX2_H

#include "groups.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES256
#define MPG_LANES256 MPG_TARGET_AVX2 static inline __attribute__((always_inline))
#endif

/* Group sums of 16 columns from b on. */
MPG_LANES256 __m256i mpg_group_sum256(int group, const int16_t *a, const int16_t *b)
{
    __m256i sum = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int q = 0; q < group; q++) {
        const __m256i y = _mm256_loadu_si256((const __m256i *)(b + q * MPG_GROUP_LANES));
        sum = _mm256_add_epi16(sum, _mm256_mullo_epi16(_mm256_set1_epi16(a[q]), y));
    }
    return sum;
}

/* magic with the sign of x */
MPG_LANES256 __m256d mpg_group_signed256(__m256d magic, __m256d x)
{
    return _mm256_or_pd(magic, _mm256_and_pd(x, _mm256_set1_pd(-0.0)));
}

/* Group sums of one operation, and the words of the largest exponents of those that take part: [group][lane], [lane]. */
MPG_LANES256 void mpg_group_integers256(int group, int groups, const mpg_group_task *t, const mpg_group_operands *p,
                                        int16_t (*sums)[MPG_GROUP_LANES], int16_t *words)
{
    const int16_t *a = p->a, *b = p->b;
#pragma GCC unroll 2
    for (int j = 0; j < MPG_GROUP_LANES; j += 16) {
        __m256i most = _mm256_set1_epi16((short)(t->floor + MPG_GROUP_WORD_BIAS));
        for (int g = 0; g < groups; g++) {
            const int16_t *y = p->eb + g * MPG_GROUP_WORDS + j;
            const __m256i e = _mm256_add_epi16(_mm256_set1_epi32((int)p->ea[2 * g]), _mm256_loadu_si256((const __m256i *)y));
            const __m256i filled = _mm256_loadu_si256((const __m256i *)(y + MPG_GROUP_LANES));
            const __m256i common = _mm256_and_si256(_mm256_set1_epi32((int)p->ea[2 * g + 1]), filled);
            const __m256i apart = _mm256_cmpeq_epi16(common, _mm256_setzero_si256());
            most = _mm256_max_epi16(most, _mm256_andnot_si256(apart, e));
            _mm256_storeu_si256((__m256i *)(sums[g] + j),
                                mpg_group_sum256(group, a + g * group, b + g * group * MPG_GROUP_LANES + j));
        }
        _mm256_storeu_si256((__m256i *)(words + j), most);
    }
}

/* One operation: c, float32 values in double, becomes the rounded sum; lanes whose results are too large are marked and 0. Vector
 * instructions for 16 products: 2.31 above, 2 in the loop over groups (8 for 4 lanes and 16 products), 4.5 for each operation. */
MPG_LANES256 void mpg_group_step256(int group, int groups, const mpg_group_task *t, const mpg_group_operands *p, double *c,
                                    uint8_t *overflow)
{
    const __m256d to_magic = _mm256_set1_pd(mpg_group_power(-t->fraction_bits) * 0x1.8p52);
    const __m256d zero_sign = _mm256_set1_pd(t->positive_zero ? 0.0 : -0.0), least = _mm256_set1_pd(0x1p-126);
    const __m256d powers = _mm256_castsi256_pd(_mm256_set1_epi64x(INT64_C(0x7FF0000000000000)));
    const __m256d limit = _mm256_set1_pd(0x1p128), sign = _mm256_set1_pd(-0.0), zero = _mm256_setzero_pd();
    int16_t sums[MPG_GROUPS_MAX][MPG_GROUP_LANES], words[MPG_GROUP_LANES];
    mpg_group_integers256(group, groups, t, p, sums, words);
#pragma GCC unroll 2
    for (int j = 0; j < MPG_GROUP_LANES; j += 4) {
        const __m256d given = _mm256_loadu_pd(c + j), own = _mm256_and_pd(given, powers);
        const __m256i word = _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(words + j)));
        const __m256d top = _mm256_castsi256_pd(_mm256_slli_epi64(word, 52));
        const __m256d raw = _mm256_andnot_pd(_mm256_cmp_pd(own, zero, _CMP_EQ_OQ), _mm256_max_pd(own, least));
        const __m256d magic = _mm256_mul_pd(_mm256_max_pd(top, raw), to_magic), signed_c = mpg_group_signed256(magic, given);
        __m256d total = _mm256_sub_pd(_mm256_add_pd(given, signed_c), signed_c);
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            const __m256d both = _mm256_mul_pd(_mm256_set1_pd(p->sa[g]), _mm256_loadu_pd(p->sb + g * MPG_GROUP_LANES + j));
            const __m128i integers = _mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)(sums[g] + j)));
            const __m256d sum = _mm256_cvtepi32_pd(integers), signed_magic = mpg_group_signed256(magic, sum);
            total = _mm256_add_pd(total, _mm256_sub_pd(_mm256_fmadd_pd(sum, both, signed_magic), signed_magic));
        }
        const int infinite = _mm256_movemask_pd(_mm256_cmp_pd(_mm256_andnot_pd(sign, total), limit, _CMP_GE_OQ));
        _mm256_storeu_pd(c + j, _mm256_add_pd(_mm256_cvtps_pd(_mm256_cvtpd_ps(total)), zero_sign));
        if (__builtin_expect(infinite != 0, 0))
            for (int i = 0; i < 4; i++)
                if (infinite >> i & 1) {
                    overflow[j + i] = 1;
                    c[j + i] = 0;
                }
    }
}

MPG_LANES256 void mpg_group_row_body256(int group, int groups, const mpg_group_task *t, const mpg_group_operands *operands,
                                        double *c, int64_t steps, uint8_t *overflow)
{
    mpg_group_operands p = *operands;
    for (int64_t s = 0; s < steps; s++, p = mpg_group_from(MPG_ISA_AVX2, &p, 0, groups, group))
        mpg_group_step256(group, groups, t, &p, c, overflow);
}

/* As mpg_group_row_baseline of groups.h, while the CPU rounds toward zero. */
MPG_NOINLINE MPG_TARGET_AVX2 static void mpg_group_row_avx2(const mpg_group_task *t, const mpg_group_operands *p, double *c,
                                                            int64_t steps, uint8_t *overflow)
{
    if (t->group == 16 && t->groups == 4)
        mpg_group_row_body256(16, 4, t, p, c, steps, overflow);
    else
        mpg_group_row_body256(t->group, t->groups, t, p, c, steps, overflow);
}
#endif
#endif
