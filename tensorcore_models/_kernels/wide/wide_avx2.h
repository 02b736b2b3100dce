/* The algorithms of wide.h in AVX2 intrinsics, one row of A against 32 columns: the fused sums that truncate, and round-down-add.
 *
 * As in wide_avx512.h sums start from 1.5 * 2^52 units plus as many units as its highest word says as a number. Here all runs with
 * rounding toward zero, which the caller sets: near that start it is rounding down. Vector h of two holds lanes 8 g + 4 h to
 * 8 g + 4 h + 3 for each g, as 16-bit words in one register and as doubles in four.
 *
 * Vector instructions for 32 products (loads that feed one are not counted): 8 fused multiply-adds, 4 for exponent words, 6 for words
 * of lowest bits; once for each operation 117 (FDA): 48 of them truncate c at its unit, which takes AVX-512 16.
 */
#ifndef MPG_WIDE_AVX2_H
#define MPG_WIDE_AVX2_H

#include "wide.h"
#include "wide_rows.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES256
#define MPG_LANES256 MPG_TARGET_AVX2 static inline __attribute__((always_inline))
#endif

MPG_LANES256 __m256i mpg_word256(int32_t x) { return _mm256_set1_epi16((short)x); }

/* The bytes of a shuffle that are alike in both halves. */
MPG_LANES256 __m256i mpg_bytes256(int d, int c, int b, int a) { return _mm256_setr_epi32(a, b, c, d, a, b, c, d); }

/* Word g of each 64-bit lane in the highest and in the lowest place, all else zero. */
MPG_LANES256 void mpg_starts256(__m256i x, __m256d *start)
{
    start[0] =
        _mm256_castsi256_pd(_mm256_shuffle_epi8(x, mpg_bytes256(0x09088080, (int)0x80800908, 0x01008080, (int)0x80800100)));
    start[1] =
        _mm256_castsi256_pd(_mm256_shuffle_epi8(x, mpg_bytes256(0x0B0A8080, (int)0x80800B0A, 0x03028080, (int)0x80800302)));
    start[2] =
        _mm256_castsi256_pd(_mm256_shuffle_epi8(x, mpg_bytes256(0x0D0C8080, (int)0x80800D0C, 0x05048080, (int)0x80800504)));
    start[3] =
        _mm256_castsi256_pd(_mm256_shuffle_epi8(x, mpg_bytes256(0x0F0E8080, (int)0x80800F0E, 0x07068080, (int)0x80800706)));
}

/* The same with word g of `high` in the highest place and word g of `low` in the lowest. */
MPG_LANES256 void mpg_ends256(__m256i high, __m256i low, __m256d *end)
{
    const __m256i even = mpg_bytes256(0x09088080, (int)0x80800D0C, 0x01008080, (int)0x80800504);
    const __m256i odd = mpg_bytes256(0x0B0A8080, (int)0x80800F0E, 0x03028080, (int)0x80800706);
    /* words 0 and 1, then 2 and 3, of `high` and of `low`, side by side in each 64-bit lane */
    const __m256i first = _mm256_blend_epi32(high, _mm256_slli_epi64(low, 32), 0xAA);
    const __m256i second = _mm256_blend_epi32(_mm256_srli_epi64(high, 32), low, 0xAA);
    end[0] = _mm256_castsi256_pd(_mm256_shuffle_epi8(first, even));
    end[1] = _mm256_castsi256_pd(_mm256_shuffle_epi8(first, odd));
    end[2] = _mm256_castsi256_pd(_mm256_shuffle_epi8(second, even));
    end[3] = _mm256_castsi256_pd(_mm256_shuffle_epi8(second, odd));
}

/* Words of the exponents of 16 numbers. */
MPG_LANES256 __m256i mpg_exponent_words256(const __m256d *x)
{
    const __m256i x0 = _mm256_castpd_si256(x[0]), x1 = _mm256_castpd_si256(x[1]);
    const __m256i x2 = _mm256_castpd_si256(x[2]), x3 = _mm256_castpd_si256(x[3]);
    const __m256i low = _mm256_blend_epi16(_mm256_srli_epi64(x0, 48), _mm256_srli_epi64(x1, 32), 0x22);
    const __m256i high = _mm256_blend_epi16(x3, _mm256_srli_epi64(x2, 16), 0x44);
    return _mm256_and_si256(_mm256_blend_epi32(low, high, 0xAA), mpg_word256(0x7FF0));
}

/* Words of the largest alignment exponent of `terms` products, or `lowest` where that is larger. */
MPG_LANES256 void mpg_wide_tops256(int terms, int32_t lowest, const mpg_wide_operands *p, __m256i *tops)
{
    tops[0] = tops[1] = mpg_word256(lowest);
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        const __m256i a = _mm256_set1_epi32((int)p->ea[q]);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const __m256i b = _mm256_loadu_si256((const __m256i *)(p->eb + q * MPG_WIDE + 16 * h));
            tops[h] = _mm256_max_epi16(tops[h], _mm256_add_epi16(a, b));
        }
    }
}

/* Adds `terms` products to `sum`, each rounded down to its unit; `end` as in mpg_wide_sums512, given that `sum` was
 * mpg_starts256 of `words` before. */
MPG_LANES256 void mpg_wide_sums256(int terms, int fraction_bits, const mpg_wide_operands *p, const __m256i *tops,
                                   const __m256i *words, __m256d (*sum)[4], __m256d (*end)[4])
{
    const __m256i to_limit = mpg_word256(2 * MPG_LOWEST_BIAS - MPG_WORD_BIAS - fraction_bits - 32768);
    __m256i limit[2], low[2];
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        limit[h] = _mm256_add_epi16(_mm256_srli_epi16(tops[h], 4), to_limit);
        low[h] = words[h];
    }
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        const __m256i a = _mm256_set1_epi32((int)p->la[q]);
        const __m256d x = _mm256_broadcast_sd(p->a + q);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            const __m256i b = _mm256_loadu_si256((const __m256i *)(p->lb + q * MPG_WIDE + 16 * h));
            low[h] =
                _mm256_add_epi16(low[h], _mm256_cmpgt_epi16(limit[h], _mm256_add_epi16(a, b))); /* one unit more for each */
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++)
                sum[h][g] = _mm256_fmadd_pd(x, _mm256_loadu_pd(p->b + q * MPG_WIDE + 8 * g + 4 * h), sum[h][g]);
        }
    }
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++)
        mpg_ends256(words[h], low[h], end[h]);
}

/* One fused dot-add with float32 results. Returns whether c was left as it was, as the operation needs care: results may be
 * subnormal or infinite, or a subnormal c aligns at the smallest normal number. */
MPG_LANES256 int mpg_wide_fda256(int terms, const mpg_wide_task *t, const mpg_wide_operands *p, double *c)
{
    const __m256i to_magic = mpg_word256(mpg_word_to_magic(t->fraction_bits));
    const __m256d sign = _mm256_set1_pd(-0.0), kept = _mm256_castsi256_pd(_mm256_set1_epi64x(~INT64_C(0x1FFFFFFF)));
    const int smallest = t->fraction_bits - 149 > t->raw_exponent ? t->fraction_bits - 149 : t->raw_exponent;
    const __m256i least = mpg_word256((smallest + MPG_WORD_BIAS) << 4), most = mpg_word256((120 + MPG_WORD_BIAS) << 4);
    __m256i tops[2], words[2], beyond = _mm256_setzero_si256();
    __m256d sum[2][4], end[2][4];
    mpg_wide_tops256(terms, (t->floor + MPG_WORD_BIAS) << 4, p, tops);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
        __m256d own[4];
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            own[g] = _mm256_loadu_pd(c + 8 * g + 4 * h);
        tops[h] = _mm256_max_epi16(tops[h], mpg_exponent_words256(own));
        beyond =
            _mm256_or_si256(beyond, _mm256_or_si256(_mm256_cmpgt_epi16(least, tops[h]), _mm256_cmpgt_epi16(tops[h], most)));
        words[h] = _mm256_add_epi16(tops[h], to_magic);
        mpg_starts256(words[h], sum[h]);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) { /* c truncated at its unit */
            const __m256d moved = _mm256_add_pd(_mm256_andnot_pd(sign, own[g]), sum[h][g]);
            const __m256d cut = _mm256_or_pd(_mm256_sub_pd(moved, sum[h][g]), _mm256_and_pd(sign, own[g]));
            sum[h][g] = _mm256_add_pd(sum[h][g], cut);
        }
    }
    if (__builtin_expect(_mm256_movemask_epi8(beyond) != 0, 0))
        return 1;
    mpg_wide_sums256(terms, t->fraction_bits, p, tops, words, sum, end);
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            _mm256_storeu_pd(c + 8 * g + 4 * h, _mm256_and_pd(_mm256_sub_pd(sum[h][g], end[h][g]), kept));
    return 0;
}

/* One fused dot-round-down-add over 1 or 2 groups of `terms` products. Returns whether there may be infinite results. */
MPG_LANES256 int mpg_wide_down256(int terms, int groups, const mpg_wide_task *t, const mpg_wide_operands *p, double *c)
{
    const __m256i to_magic = mpg_word256(mpg_word_to_magic(t->fraction_bits));
    const __m256i highest = _mm256_set1_epi64x((int64_t)UINT64_C(0xFFFF000000000000));
    double top[2][MPG_WIDE], dot[2][MPG_WIDE];
#pragma GCC unroll 2
    for (int n = 0; n < groups; n++) {
        const mpg_wide_operands q = mpg_wide_from(p, 0, n * terms);
        __m256i tops[2], words[2];
        __m256d sum[2][4], end[2][4];
        mpg_wide_tops256(terms, (MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4, &q, tops);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            words[h] = _mm256_add_epi16(tops[h], to_magic);
            mpg_starts256(words[h], sum[h]);
        }
        mpg_wide_sums256(terms, t->fraction_bits, &q, tops, words, sum, end);
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++)
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++) {
                const __m256i power = _mm256_and_si256(_mm256_slli_epi64(tops[h], 48 - 16 * g), highest);
                _mm256_storeu_pd(top[n] + 8 * g + 4 * h, _mm256_castsi256_pd(power));
                _mm256_storeu_pd(dot[n] + 8 * g + 4 * h, _mm256_sub_pd(sum[h][g], end[h][g]));
            }
    }
    return mpg_wide_down_end(groups, t, top, dot, c);
}

/* Rows over several operations, as mpg_wide_rows_of; `terms` and `groups` (0: fused dot-add) are constants. */
MPG_LANES256 void mpg_wide_rows256_of(int terms, int groups, const mpg_wide_task *task, const mpg_wide_operands *p, int rows,
                                      double (*c)[MPG_WIDE], int64_t steps, uint8_t (*overflow)[MPG_WIDE])
{
    const mpg_wide_task copy = *task, *t = &copy; /* nothing that is stored here can change it */
    const int taken = groups == 2 ? 2 * terms : terms;
    for (int64_t s = 0; s < steps; s++)
        for (int r = 0; r < rows; r++) {
            const mpg_wide_operands q = mpg_wide_from(p, r, s * taken);
            if (groups == 0) {
                if (mpg_wide_fda256(terms, t, &q, c[r]))
                    mpg_wide_rows_avx2(terms, t, &q, 1, c + r, 1, overflow + r);
            } else if (mpg_wide_down256(terms, groups, t, &q, c[r])) {
                mpg_mark_beyond(c[r], MPG_WIDE, 0x1p128, overflow[r]);
            }
        }
}

#define MPG_WIDE_ROWS256(TERMS, GROUPS)                                                                                        \
    MPG_TARGET_AVX2 MPG_NOINLINE static void mpg_wide_rows256_##TERMS##_##GROUPS(                                              \
        const mpg_wide_task *t, const mpg_wide_operands *p, int rows, double (*c)[MPG_WIDE], int64_t steps,                    \
        uint8_t (*overflow)[MPG_WIDE])                                                                                         \
    {                                                                                                                          \
        mpg_wide_rows256_of(TERMS, GROUPS, t, p, rows, c, steps, overflow);                                                    \
    }
#define MPG_WIDE_ALL256(GROUPS)                                                                                                \
    MPG_WIDE_ROWS256(4, GROUPS)                                                                                                \
    MPG_WIDE_ROWS256(8, GROUPS)                                                                                                \
    MPG_WIDE_ROWS256(16, GROUPS)                                                                                               \
    MPG_WIDE_ROWS256(32, GROUPS)
MPG_WIDE_ALL256(0)
MPG_WIDE_ALL256(1)
MPG_WIDE_ALL256(2)

typedef void (*mpg_wide_rows256)(const mpg_wide_task *, const mpg_wide_operands *, int, double (*)[MPG_WIDE], int64_t,
                                 uint8_t (*)[MPG_WIDE]);
#define MPG_WIDE_TABLE256(GROUPS)                                                                                              \
    {mpg_wide_rows256_4_##GROUPS, mpg_wide_rows256_8_##GROUPS, mpg_wide_rows256_16_##GROUPS, mpg_wide_rows256_32_##GROUPS}
static const mpg_wide_rows256 MPG_WIDE_KERNELS256[3][4] = {MPG_WIDE_TABLE256(0), MPG_WIDE_TABLE256(1), MPG_WIDE_TABLE256(2)};

/* As mpg_wide_rows_avx2. */
static void mpg_wide_any_rows256(int terms, const mpg_wide_task *t, const mpg_wide_operands *p, int rows, double (*c)[MPG_WIDE],
                                 int64_t steps, uint8_t (*overflow)[MPG_WIDE])
{
    if (t->late || t->output == MPG_OUT_FP16)
        mpg_wide_rows_avx2(terms, t, p, rows, c, steps, overflow);
    else
        MPG_WIDE_KERNELS256[t->round_down][mpg_terms_index(terms)](t, p, rows, c, steps, overflow);
}
#endif
#endif
