/* The algorithms of wide.h in AVX-512 intrinsics, two rows of A against 32 columns at a time. */
#ifndef MPG_WIDE_AVX512_H
#define MPG_WIDE_AVX512_H

#include "wide_sums_avx512.h"

#if MPG_X86_VARIANTS
/* What an operation returns: 0, MPG_INFINITE if there may be infinite results (2 to the power of the format's bound or more), or
 * MPG_REPEAT if float32 results must be computed again, carefully: they may be subnormal or infinite, or a subnormal c aligns at the
 * smallest normal number. */
enum { MPG_INFINITE = 1, MPG_REPEAT = 2 };

/* What an operation does: a fused dot-add into float32 or fp16, a dot-round-down-add of one group or two, or one with a late c, which is added exactly (and
 * lanes with a product that is cut are marked), or rounded to odd. */
enum {
    MPG_WIDE_FDA,
    MPG_WIDE_FDA_FP16,
    MPG_WIDE_DOWN,
    MPG_WIDE_DOWN_GROUPS,
    MPG_WIDE_EXACT,
    MPG_WIDE_EXACT_MARKED,
    MPG_WIDE_ODD
};

/* Lanes 8 g to 8 g + 7 of those of 32 words, which are in the order of wide.h. */
MPG_LANES512 __mmask8 mpg_lanes_of_words512(__mmask32 words, int g)
{
    return (__mmask8)_pext_u32(words, UINT32_C(0x11111111) << g);
}

/* x + y rounded to odd: of the neighbours above and below the one with an odd last bit. */
MPG_LANES512 __m512d mpg_odd_sum512(__m512d x, __m512d y)
{
    const __m512d below = _mm512_add_round_pd(x, y, MPG_DOWN), above = _mm512_add_round_pd(x, y, MPG_UP);
    const __mmask8 odd = _mm512_test_epi64_mask(_mm512_castpd_si512(below), _mm512_set1_epi64(1));
    return _mm512_mask_mov_pd(above, odd, below);
}

/* As mpg_odd_fp32. */
MPG_LANES512 __m512d mpg_odd_fp32_512(__m512d x)
{
    const __m512i bits = _mm512_castpd_si512(x), rest = _mm512_set1_epi64(0x1FFFFFFF), last = _mm512_set1_epi64(0x20000000);
    const __m512i kept = _mm512_andnot_si512(rest, bits);
    return _mm512_castsi512_pd(_mm512_mask_or_epi64(kept, _mm512_test_epi64_mask(bits, rest), kept, last));
}

/* As mpg_wide_odd_dot, for the sums of one row in which a product is cut. Seldom called, so not inlined. */
MPG_TARGET_AVX512 MPG_NOINLINE static void mpg_wide_odd_dots512(int terms, const double *a, const double *b, __mmask32 cut,
                                                                const __m512d *magic, __m512d *dot)
{
    for (int g = 0; g < 4; g++) {
        if (!mpg_lanes_of_words512(cut, g))
            continue;
        __m512d total = _mm512_setzero_pd();
        for (int q = 0; q < terms; q++) {
            const __m512d product = _mm512_mul_pd(_mm512_set1_pd(a[q]), _mm512_loadu_pd(b + q * MPG_WIDE + 8 * g));
            const __m512d moved = _mm512_add_round_pd(product, magic[g], MPG_DOWN);
            const __mmask8 lost = _mm512_cmp_pd_mask(product, _mm512_sub_pd(moved, magic[g]), _CMP_NEQ_UQ);
            const __m512i bits = _mm512_castpd_si512(moved);
            const __m512i odd = _mm512_mask_or_epi64(bits, lost, bits, _mm512_set1_epi64(1));
            total = _mm512_add_pd(total, _mm512_sub_pd(_mm512_castsi512_pd(odd), magic[g]));
        }
        dot[g] = total;
    }
}

/* One operation with a late c for each row, as mpg_wide_late. */
MPG_LANES512 int mpg_wide_late512(int rows, int terms, int algorithm, int careful, const mpg_wide_task *t,
                                  const mpg_wide_operands *p, __m512d (*c)[4])
{
    const int odd = algorithm == MPG_WIDE_ODD, mark_cut = algorithm == MPG_WIDE_EXACT_MARKED;
    const __m512i to_magic = mpg_word512(mpg_word_to_magic(t->fraction_bits));
    const __m512d least = _mm512_set1_pd(0x1p-126), most = _mm512_set1_pd(0x1p128), infinity = _mm512_set1_pd(INFINITY);
    /* From here to 2^120 a sum is a multiple of 2^-149, and neither it nor the sum with a c of that size reaches 2^128. */
    const int smallest = t->fraction_bits - 149;
    const __m512i ordinary = mpg_word512((smallest + MPG_WORD_BIAS) << 4), range = mpg_word512((120 - smallest) << 4);
    const __m512i largest = mpg_word512((120 + MPG_WORD_BIAS) << 4);
    __m512i tops[2], words[2];
    __m512d sum[2][4], end[2][4];
    __mmask32 cut[2] = {0, 0}, beyond = 0;
    __mmask8 infinite = 0;
    mpg_wide_tops512(rows, terms, p, mpg_word512((MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4), tops);
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
        words[r] = _mm512_add_epi16(tops[r], to_magic);
        mpg_starts512(words[r], sum[r]);
        if (odd && !careful) {
            beyond |= _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(tops[r], ordinary), range);
            beyond |= _mm512_cmpgt_epi16_mask(mpg_exponent_words512(c[r]), largest);
        }
    }
    if (odd || mark_cut) {
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            mpg_starts512(words[r], end[r]);
        mpg_wide_floors512(rows, terms, t->fraction_bits - mark_cut, p, tops, sum, cut);
    } else {
        mpg_wide_sums512(rows, terms, t->fraction_bits, p, tops, words, sum, end);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            sum[r][g] = _mm512_sub_pd(sum[r][g], end[r][g]);
    if (odd && __builtin_expect(cut[0] | cut[1], 0))
        for (int r = 0; r < rows; r++) {
            __m512d magic[4], dot[4]; /* copies, so that the sums stay in registers elsewhere */
            for (int g = 0; g < 4; g++) {
                magic[g] = end[r][g];
                dot[g] = sum[r][g];
            }
            mpg_wide_odd_dots512(terms, p->a + r * p->stride, p->b, cut[r], magic, dot);
            for (int g = 0; g < 4; g++)
                sum[r][g] = dot[g];
        }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const __mmask8 inexact = mpg_lanes_of_words512(cut[r], g);
            const __m512d dot = sum[r][g];
            if (odd) {
                const __m512d magnitude = _mm512_abs_pd(dot);
                c[r][g] = mpg_odd_fp32_512(mpg_odd_sum512(mpg_odd_fp32_512(dot), c[r][g]));
                if (careful) {
                    __mmask8 bad = _mm512_cmp_pd_mask(magnitude, most, _CMP_GE_OQ);
                    bad |= _mm512_cmp_pd_mask(magnitude, least, _CMP_LT_OQ) &
                           _mm512_cmp_pd_mask(magnitude, _mm512_setzero_pd(), _CMP_NEQ_OQ);
                    c[r][g] = _mm512_mask_mov_pd(c[r][g], bad, infinity);
                    infinite |= _mm512_cmp_pd_mask(_mm512_abs_pd(c[r][g]), most, _CMP_GE_OQ);
                }
            } else {
                const __m256 total = _mm512_cvtpd_ps(mpg_odd_sum512(dot, c[r][g]));
                const __mmask8 small = _mm256_fpclass_ps_mask(total, 0x20); /* subnormal */
                c[r][g] = _mm512_cvtps_pd(_mm256_mask_and_ps(total, small, total, _mm256_set1_ps(-0.0F)));
                c[r][g] = _mm512_mask_mov_pd(c[r][g], inexact, infinity);
            }
        }
    if (!odd)
        infinite = (cut[0] | cut[1]) != 0; /* an overflow stays the infinity that it is */
    return infinite != 0 ? MPG_INFINITE : beyond != 0 ? MPG_REPEAT : 0;
}

/* The multiple of a unit that is not above x, |x| below 2^51 units; `magic`: 1.5 * 2^52 units. */
MPG_LANES512 __m512d mpg_floored512(__m512d x, __m512d magic)
{
    return _mm512_sub_pd(_mm512_add_round_pd(x, magic, MPG_DOWN), magic);
}

/* x to fp16, nearest even; 2^16 or more in magnitude where the result is infinite. */
MPG_LANES512 __m512d mpg_wide_to_fp16_512(__m512d x)
{
    const __m512d power = _mm512_max_pd(mpg_exponents512(x), _mm512_set1_pd(0x1p-14));
    const __m512d magic = _mm512_mul_pd(power, _mm512_set1_pd(0x1.8p42));
    return _mm512_sub_pd(_mm512_add_pd(x, magic), magic);
}

/* x of any exponent to float32, truncated; 2^128 or more in magnitude where the result is infinite. */
MPG_LANES512 __m512d mpg_wide_to_fp32_512(__m512d x, int positive_zero)
{
    const __mmask8 infinite = _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
    const __m512d d = _mm512_cvtps_pd(_mm512_cvt_roundpd_ps(x, MPG_TOWARD_ZERO));
    return _mm512_mask_mov_pd(_mm512_add_pd(d, _mm512_set1_pd(positive_zero ? 0.0 : -0.0)), infinite, x);
}

/* One fused dot-add for each row. */
MPG_LANES512 int mpg_wide_fda512(int rows, int terms, int output, int careful, const mpg_wide_task *t,
                                 const mpg_wide_operands *p, __m512d (*c)[4])
{
    const __m512i to_magic = mpg_word512(mpg_word_to_magic(t->fraction_bits));
    const __m512i least = mpg_word512((t->raw_exponent + MPG_WORD_BIAS) << 4);
    /* From here to 2^120 a sum is a multiple of 2^-149, and below 2^128, and a subnormal c is not the largest addend. */
    const int smallest = t->fraction_bits - 149 > t->raw_exponent ? t->fraction_bits - 149 : t->raw_exponent;
    const __m512i ordinary = mpg_word512((smallest + MPG_WORD_BIAS) << 4), range = mpg_word512((120 - smallest) << 4);
    __m512i tops[2], words[2];
    __m512d sum[2][4], end[2][4];
    mpg_wide_tops512(rows, terms, p, mpg_word512((t->floor + MPG_WORD_BIAS) << 4), tops);
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
        __m512i own = mpg_exponent_words512(c[r]);
        if (careful)
            own = _mm512_mask_max_epi16(own, _mm512_test_epi16_mask(own, own), own, least);
        tops[r] = _mm512_max_epi16(tops[r], own);
        words[r] = _mm512_add_epi16(tops[r], to_magic);
        __m512d start[4];
        mpg_starts512(words[r], start);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const __mmask8 negative = _mm512_movepi64_mask(_mm512_castpd_si512(c[r][g]));
            sum[r][g] = _mm512_add_round_pd(start[g], c[r][g], MPG_DOWN);
            sum[r][g] = _mm512_mask_add_round_pd(sum[r][g], negative, start[g], c[r][g], MPG_UP);
        }
    }
    mpg_wide_sums512(rows, terms, t->fraction_bits, p, tops, words, sum, end);
    if (careful) {
        const __m512d limit = _mm512_set1_pd(output == MPG_OUT_FP16 ? 0x1p16 : 0x1p128);
        __mmask8 infinite = 0;
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++) {
                const __m512d total = _mm512_sub_pd(sum[r][g], end[r][g]);
                c[r][g] = output == MPG_OUT_FP16 ? mpg_wide_to_fp16_512(total) : mpg_wide_to_fp32_512(total, t->positive_zero);
                infinite |= _mm512_cmp_pd_mask(_mm512_abs_pd(c[r][g]), limit, _CMP_GE_OQ);
            }
        return infinite != 0 ? MPG_INFINITE : 0;
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const __m512i total = _mm512_castpd_si512(_mm512_sub_pd(sum[r][g], end[r][g]));
            c[r][g] = _mm512_castsi512_pd(_mm512_and_si512(total, _mm512_set1_epi64(-INT64_C(0x20000000))));
        }
    __m512i above = _mm512_sub_epi16(tops[0], ordinary);
    if (rows == 2)
        above = _mm512_max_epu16(above, _mm512_sub_epi16(tops[1], ordinary));
    return _mm512_cmpgt_epu16_mask(above, range) == 0 ? 0 : MPG_REPEAT;
}

/* One fused dot-round-down-add for each row. Returns whether there may be infinite results; lanes whose products overflow get
 * one. */
MPG_LANES512 int mpg_wide_round_down512(int rows, int terms, int groups, const mpg_wide_task *t, const mpg_wide_operands *p,
                                        __m512d (*c)[4])
{
    const int each = terms / groups;
    const __m512i to_magic = mpg_word512(mpg_word_to_magic(t->fraction_bits));
    const __m512d group_magic = _mm512_set1_pd(mpg_power(-t->fraction_bits) * MPG_MAGIC);
    const __m512d dot_magic = _mm512_set1_pd(mpg_power(-t->dot_bits) * MPG_MAGIC);
    const __m512d c_magic = _mm512_set1_pd(mpg_power(-t->c_bits) * MPG_MAGIC);
    const __m512d cutoff = _mm512_set1_pd(mpg_power(-t->c_cutoff));
    const __m512i cut = _mm512_set1_epi64((INT64_C(1) << (52 - t->sum_bits)) - 1);
    const __m512d limit = _mm512_set1_pd(mpg_power(t->overflow < 1000 ? t->overflow - 1 : 1023));
    const __m512d zero_sign = _mm512_set1_pd(t->positive_zero ? 0.0 : -0.0), least = _mm512_set1_pd(0x1p-126);
    __m512d top[2][2][4], dot[2][2][4];
    __mmask8 infinite = 0;
    for (int n = 0; n < groups; n++) {
        const mpg_wide_operands part = mpg_wide_from(p, 0, n * each);
        __m512i words[2], magic[2], high[4];
        __m512d end[2][4];
        mpg_wide_tops512(rows, each, &part, mpg_word512((MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4), words);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) {
            mpg_highest_words512(words[r], high);
            magic[r] = _mm512_add_epi16(words[r], to_magic);
            mpg_starts512(magic[r], dot[n][r]);
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++)
                top[n][r][g] = _mm512_castsi512_pd(high[g]);
        }
        mpg_wide_sums512(rows, each, t->fraction_bits, &part, words, magic, dot[n], end);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++)
                dot[n][r][g] = _mm512_sub_pd(dot[n][r][g], end[r][g]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            __m512d largest = top[0][r][g], sum = dot[0][r][g];
            if (groups == 2) {
                largest = _mm512_max_pd(largest, top[1][r][g]);
                const __m512d both = _mm512_mul_pd(largest, group_magic);
                sum = _mm512_add_pd(mpg_floored512(sum, both), mpg_floored512(dot[1][r][g], both));
            }
            const __m512d raw = _mm512_max_pd(mpg_exponents512(c[r][g]), least), all = _mm512_max_pd(largest, raw);
            __m512d addend = mpg_floored512(c[r][g], _mm512_mul_pd(all, c_magic));
            if (groups == 2)
                addend = _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(raw, _mm512_mul_pd(all, cutoff), _CMP_GE_OQ), addend);
            __m512i total = _mm512_castpd_si512(_mm512_add_pd(mpg_floored512(sum, _mm512_mul_pd(all, dot_magic)), addend));
            total = _mm512_andnot_si512(cut, _mm512_mask_add_epi64(total, _mm512_movepi64_mask(total), total, cut));
            const __mmask8 ordinary = _mm512_cmp_pd_mask(largest, limit, _CMP_LT_OQ);
            const __m512d rounded = _mm512_cvtps_pd(_mm512_cvtpd_ps(_mm512_castsi512_pd(total)));
            c[r][g] = _mm512_mask_add_pd(_mm512_set1_pd(INFINITY), ordinary, rounded, zero_sign);
            infinite |= _mm512_fpclass_pd_mask(c[r][g], 0x18); /* infinities of either sign */
        }
    return infinite != 0 ? MPG_INFINITE : 0;
}

/* The first `rows` rows of a tile over several operations. Lanes that overflow are marked and zeroed. With `promote` the
 * operations between two outside sums start from zero. Returns 0, with d as it was, if all must be computed again carefully. */
MPG_LANES512 int mpg_wide_rows_body512(int rows, int terms, int algorithm, int careful, const mpg_wide_task *task,
                                       const mpg_wide_operands *operands, const mpg_result_tile *tile, int64_t steps)
{
    const int64_t ldd = tile->ld;
    const int count = tile->columns;
    float *d = tile->d;
    const mpg_wide_task copy = *task, *t = &copy; /* nothing that is stored here can change it */
    mpg_wide_operands p = *operands;
    const int64_t apart = t->promote / t->terms;
    const int output = algorithm == MPG_WIDE_FDA_FP16 ? MPG_OUT_FP16 : MPG_OUT_FP32;
    const __m512d limit = _mm512_set1_pd(output == MPG_OUT_FP16 ? 0x1p16 : 0x1p128);
    int64_t left = apart;
    __mmask8 exists[4];
    __m256 outside[2][4];
    __m512d c[2][4];
    for (int g = 0; g < 4; g++) {
        exists[g] = (__mmask8)(count >= 8 * (g + 1) ? 0xFF : count > 8 * g ? (1 << (count - 8 * g)) - 1 : 0);
        for (int r = 0; r < rows; r++) {
            outside[r][g] = _mm256_maskz_loadu_ps(exists[g], d + r * ldd + 8 * g);
            c[r][g] = apart ? _mm512_setzero_pd() : _mm512_cvtps_pd(outside[r][g]);
        }
    }
    for (int64_t s = 0; s < steps; s++) {
        const int found = algorithm <= MPG_WIDE_FDA_FP16 ? mpg_wide_fda512(rows, terms, output, careful, t, &p, c)
                          : algorithm <= MPG_WIDE_DOWN_GROUPS
                              ? mpg_wide_round_down512(rows, terms, algorithm - MPG_WIDE_FDA_FP16, t, &p, c)
                              : mpg_wide_late512(rows, terms, algorithm, careful, t, &p, c);
        if (__builtin_expect(found == MPG_REPEAT, 0))
            return 0;
        if (__builtin_expect(found == MPG_INFINITE, 0))
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < 4; g++) {
                    const __mmask8 beyond = _mm512_cmp_pd_mask(_mm512_abs_pd(c[r][g]), limit, _CMP_GE_OQ);
                    c[r][g] = _mm512_maskz_mov_pd((__mmask8)~beyond, c[r][g]);
                    for (int j = 0; j < 8; j++)
                        if ((beyond & exists[g]) >> j & 1)
                            tile->redo[r * ldd + 8 * g + j] = 1;
                }
        if (apart && --left == 0) {
            left = apart;
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < 4; g++) {
                    outside[r][g] = _mm256_add_ps(outside[r][g], _mm512_cvtpd_ps(c[r][g]));
                    c[r][g] = _mm512_setzero_pd();
                }
        }
        p = mpg_wide_from(&p, 0, terms);
    }
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < 4; g++)
            _mm256_mask_storeu_ps(d + r * ldd + 8 * g, exists[g], apart ? outside[r][g] : _mm512_cvtpd_ps(c[r][g]));
    return 1;
}

typedef int (*mpg_wide_rows512)(const mpg_wide_task *, const mpg_wide_operands *, const mpg_result_tile *, int64_t steps);

/* Functions of one and of two rows. */
#define MPG_WIDE_ROWS512(NAME, ROWS, TERMS, ALGORITHM, CAREFUL)                                                                \
    MPG_TARGET_AVX512 static int mpg_wide_##NAME##_512_##ROWS(const mpg_wide_task *t, const mpg_wide_operands *p,              \
                                                              const mpg_result_tile *tile, int64_t steps)                      \
    {                                                                                                                          \
        return mpg_wide_rows_body512(ROWS, TERMS, ALGORITHM, CAREFUL, t, p, tile, steps);                                      \
    }
#define MPG_WIDE_BOTH512(NAME, TERMS, ALGORITHM, CAREFUL)                                                                      \
    MPG_WIDE_ROWS512(NAME, 1, TERMS, ALGORITHM, CAREFUL)                                                                       \
    MPG_WIDE_ROWS512(NAME, 2, TERMS, ALGORITHM, CAREFUL)

MPG_WIDE_BOTH512(fda_careful, t->terms, MPG_WIDE_FDA, 1)
MPG_WIDE_BOTH512(fda4, 4, MPG_WIDE_FDA, 0)
MPG_WIDE_BOTH512(fda8, 8, MPG_WIDE_FDA, 0)
MPG_WIDE_BOTH512(fda16, 16, MPG_WIDE_FDA, 0)
MPG_WIDE_BOTH512(fda32, 32, MPG_WIDE_FDA, 0)
MPG_WIDE_BOTH512(fda_fp16, t->terms, MPG_WIDE_FDA_FP16, 1)
MPG_WIDE_BOTH512(down, t->terms, MPG_WIDE_DOWN, 1)
MPG_WIDE_BOTH512(down8, 8, MPG_WIDE_DOWN, 1)
MPG_WIDE_BOTH512(down_groups, t->terms, MPG_WIDE_DOWN_GROUPS, 1)
MPG_WIDE_BOTH512(exact, t->terms, MPG_WIDE_EXACT, 1)
MPG_WIDE_BOTH512(exact8, 8, MPG_WIDE_EXACT, 1)
MPG_WIDE_BOTH512(exact16, 16, MPG_WIDE_EXACT, 1)
MPG_WIDE_BOTH512(marked, t->terms, MPG_WIDE_EXACT_MARKED, 1)
MPG_WIDE_BOTH512(marked8, 8, MPG_WIDE_EXACT_MARKED, 1)
MPG_WIDE_BOTH512(odd_careful, t->terms, MPG_WIDE_ODD, 1)
MPG_WIDE_BOTH512(odd, t->terms, MPG_WIDE_ODD, 0)
MPG_WIDE_BOTH512(odd8, 8, MPG_WIDE_ODD, 0)
MPG_WIDE_BOTH512(odd16, 16, MPG_WIDE_ODD, 0)
MPG_WIDE_BOTH512(odd32, 32, MPG_WIDE_ODD, 0)

/* Kernels by [algorithm][terms 4, 8, 16, 32][one row, two]; and those that compute a block again. */
#define MPG_WIDE_NAMED512(NAME) {mpg_wide_##NAME##_512_1, mpg_wide_##NAME##_512_2}
#define MPG_WIDE_BY_TERMS512(FOUR, EIGHT, SIXTEEN, MANY)                                                                       \
    {MPG_WIDE_NAMED512(FOUR), MPG_WIDE_NAMED512(EIGHT), MPG_WIDE_NAMED512(SIXTEEN), MPG_WIDE_NAMED512(MANY)}
static const mpg_wide_rows512 MPG_WIDE_KERNELS512[][4][2] = {
    [MPG_WIDE_FDA] = MPG_WIDE_BY_TERMS512(fda4, fda8, fda16, fda32),
    [MPG_WIDE_FDA_FP16] = MPG_WIDE_BY_TERMS512(fda_fp16, fda_fp16, fda_fp16, fda_fp16),
    [MPG_WIDE_DOWN] = MPG_WIDE_BY_TERMS512(down, down8, down, down),
    [MPG_WIDE_DOWN_GROUPS] = MPG_WIDE_BY_TERMS512(down_groups, down_groups, down_groups, down_groups),
    [MPG_WIDE_EXACT] = MPG_WIDE_BY_TERMS512(exact, exact8, exact16, exact),
    [MPG_WIDE_EXACT_MARKED] = MPG_WIDE_BY_TERMS512(marked, marked8, marked, marked),
    [MPG_WIDE_ODD] = MPG_WIDE_BY_TERMS512(odd, odd8, odd16, odd32),
};
static const mpg_wide_rows512 MPG_WIDE_FDA_CAREFUL512[2] = MPG_WIDE_NAMED512(fda_careful);
static const mpg_wide_rows512 MPG_WIDE_ODD_CAREFUL512[2] = MPG_WIDE_NAMED512(odd_careful);

/* One row or two over several operations. */
static void mpg_wide_rows_avx512(const mpg_wide_task *t, const mpg_wide_operands *p, const mpg_result_tile *tile, int64_t steps)
{
    const int algorithm = t->late == MPG_LATE_ODD     ? MPG_WIDE_ODD
                          : t->late                   ? (t->mark_cut ? MPG_WIDE_EXACT_MARKED : MPG_WIDE_EXACT)
                          : t->round_down             ? MPG_WIDE_FDA_FP16 + t->round_down
                          : t->output == MPG_OUT_FP16 ? MPG_WIDE_FDA_FP16
                                                      : MPG_WIDE_FDA;
    const int two = tile->rows == 2;
    if (!MPG_WIDE_KERNELS512[algorithm][mpg_terms_index(t->terms)][two](t, p, tile, steps))
        (t->late ? MPG_WIDE_ODD_CAREFUL512 : MPG_WIDE_FDA_CAREFUL512)[two](t, p, tile, steps);
}
#endif

#endif
