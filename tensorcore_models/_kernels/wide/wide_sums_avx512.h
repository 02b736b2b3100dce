/* Words of 32 lanes and sums of products for wide_avx512.h, for one or two rows of A. */
#ifndef MPG_WIDE_SUMS_AVX512_H
#define MPG_WIDE_SUMS_AVX512_H

#include "wide_rows.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES512
#define MPG_LANES512 MPG_TARGET_AVX512 static inline __attribute__((always_inline))
#endif
#define MPG_TOWARD_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)
#define MPG_DOWN (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define MPG_UP (_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)

MPG_LANES512 __m512i mpg_word512(int32_t x) { return _mm512_set1_epi16((short)x); }

MPG_LANES512 __m512d mpg_exponents512(__m512d x)
{
    return _mm512_castsi512_pd(_mm512_and_si512(_mm512_castpd_si512(x), _mm512_set1_epi64(INT64_C(0x7FF0000000000000))));
}

/* Word g of each 64-bit lane in the highest place, all else zero. */
MPG_LANES512 void mpg_highest_words512(__m512i x, __m512i *high)
{
    const __m512i one = _mm512_set4_epi32(0x0B0A8080, (int)0x80808080, 0x03028080, (int)0x80808080);
    const __m512i two = _mm512_set4_epi32(0x0D0C8080, (int)0x80808080, 0x05048080, (int)0x80808080);
    high[0] = _mm512_slli_epi64(x, 48);
    high[1] = _mm512_shuffle_epi8(x, one);
    high[2] = _mm512_shuffle_epi8(x, two);
    high[3] = _mm512_and_si512(x, _mm512_set1_epi64((int64_t)UINT64_C(0xFFFF000000000000)));
}

/* Word g of each 64-bit lane in the highest and in the lowest place, all else zero: 1.5 * 2^52 units, of which the word is the
 * highest part, plus as many units as the word says. */
MPG_LANES512 void mpg_starts512(__m512i x, __m512d *start)
{
    const __m512i zero = _mm512_set4_epi32(0x09088080, (int)0x80800908, 0x01008080, (int)0x80800100);
    const __m512i one = _mm512_set4_epi32(0x0B0A8080, (int)0x80800B0A, 0x03028080, (int)0x80800302);
    const __m512i two = _mm512_set4_epi32(0x0D0C8080, (int)0x80800D0C, 0x05048080, (int)0x80800504);
    const __m512i three = _mm512_set4_epi32(0x0F0E8080, (int)0x80800F0E, 0x07068080, (int)0x80800706);
    start[0] = _mm512_castsi512_pd(_mm512_shuffle_epi8(x, zero));
    start[1] = _mm512_castsi512_pd(_mm512_shuffle_epi8(x, one));
    start[2] = _mm512_castsi512_pd(_mm512_shuffle_epi8(x, two));
    start[3] = _mm512_castsi512_pd(_mm512_shuffle_epi8(x, three));
}

/* The same with word g of `high` in the highest place and word g of `low` in the lowest. */
MPG_LANES512 void mpg_ends512(__m512i high, __m512i low, __m512d *end)
{
    const __m512i even = _mm512_set4_epi32(0x09088080, (int)0x80800D0C, 0x01008080, (int)0x80800504);
    const __m512i odd = _mm512_set4_epi32(0x0B0A8080, (int)0x80800F0E, 0x03028080, (int)0x80800706);
    /* words 0 and 1, then 2 and 3, of `high` and of `low`, side by side in each 64-bit lane */
    const __m512i first = _mm512_mask_shuffle_epi32(high, 0xAAAA, low, _MM_PERM_CCAA);
    const __m512i second = _mm512_mask_shuffle_epi32(low, 0x5555, high, _MM_PERM_DDBB);
    end[0] = _mm512_castsi512_pd(_mm512_shuffle_epi8(first, even));
    end[1] = _mm512_castsi512_pd(_mm512_shuffle_epi8(first, odd));
    end[2] = _mm512_castsi512_pd(_mm512_shuffle_epi8(second, even));
    end[3] = _mm512_castsi512_pd(_mm512_shuffle_epi8(second, odd));
}

/* Words of the exponents of 32 numbers. */
MPG_LANES512 __m512i mpg_exponent_words512(const __m512d *x)
{
    const __m512i x0 = _mm512_castpd_si512(x[0]), x1 = _mm512_castpd_si512(x[1]);
    const __m512i x2 = _mm512_castpd_si512(x[2]), x3 = _mm512_castpd_si512(x[3]);
    const __m512i even = _mm512_mask_shuffle_epi32(x2, 0x5555, x0, _MM_PERM_DDBB); /* the higher halves of x0 and x2 */
    const __m512i odd = _mm512_mask_shuffle_epi32(x3, 0x5555, x1, _MM_PERM_DDBB);
    const __m512i words = _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xFFFF), _mm512_srli_epi32(even, 16), odd, 0xCA);
    return _mm512_and_si512(words, mpg_word512(0x7FF0));
}

/* Words of the largest alignment exponent of `terms` products, or of `lowest` where that is larger. */
MPG_LANES512 void mpg_wide_tops512(int rows, int terms, const mpg_wide_operands *p, __m512i lowest, __m512i *words)
{
    for (int r = 0; r < rows; r++)
        words[r] = lowest;
#pragma GCC unroll 16
    for (int q = 0; q < terms; q++) {
        const __m512i b = _mm512_loadu_si512(p->eb + q * MPG_WIDE);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) {
            const __m512i a = _mm512_set1_epi32((int)p->ea[r * p->stride + q]);
            words[r] = _mm512_max_epi16(words[r], _mm512_add_epi16(a, b));
        }
    }
}

/* Adds a product of each row's x, rounded down to its unit. */
MPG_LANES512 void mpg_wide_product512(int rows, const __m512d *x, const double *b, __m512d (*sum)[4])
{
#pragma GCC unroll 4
    for (int g = 0; g < 4; g++) {
        const __m512d y = _mm512_loadu_pd(b + 8 * g);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            sum[r][g] = _mm512_fmadd_round_pd(x[r], y, sum[r][g], MPG_DOWN);
    }
}

/* Adds `terms` products to `sum`, near 1.5 * 2^52 units of 2^(top - F), each rounded down to its unit. `end`: what represents
 * zero in the sum of the products truncated to their units, given that it was mpg_starts512 of `words` before. */
MPG_LANES512 void mpg_wide_sums512(int rows, int terms, int fraction_bits, const mpg_wide_operands *p, const __m512i *tops,
                                   const __m512i *words, __m512d (*sum)[4], __m512d (*end)[4])
{
    const __m512i one = mpg_word512(1);
    const __m512i to_limit = mpg_word512(2 * MPG_LOWEST_BIAS - MPG_WORD_BIAS - fraction_bits - 32768);
    __m512i limit[2], low[2];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
        limit[r] = _mm512_add_epi16(_mm512_srli_epi16(tops[r], 4), to_limit);
        low[r] = words[r];
    }
#pragma GCC unroll 16
    for (int q = 0; q < terms; q++) {
        const __m512i b = _mm512_loadu_si512(p->lb + q * MPG_WIDE);
        __m512d x[2];
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) {
            const __m512i a = _mm512_set1_epi32((int)p->la[r * p->stride + q]);
            const __mmask32 inexact = _mm512_cmplt_epi16_mask(_mm512_add_epi16(a, b), limit[r]);
            low[r] = _mm512_mask_sub_epi16(low[r], inexact, low[r], one); /* one unit more for each */
            x[r] = _mm512_set1_pd(p->a[r * p->stride + q]);
        }
        mpg_wide_product512(rows, x, p->b + q * MPG_WIDE, sum);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
        mpg_ends512(words[r], low[r], end[r]);
}

/* The same for words without signs, each product rounded down; `cut`: lanes in which one is no multiple of 2^(top - cut_bits). */
MPG_LANES512 void mpg_wide_floors512(int rows, int terms, int cut_bits, const mpg_wide_operands *p, const __m512i *tops,
                                     __m512d (*sum)[4], __mmask32 *cut)
{
    const __m512i to_limit = mpg_word512(2 * MPG_LOWEST_BIAS - MPG_WORD_BIAS - cut_bits);
    __m512i lowest[2];
    for (int r = 0; r < rows; r++)
        lowest[r] = mpg_word512(0x7FFF);
#pragma GCC unroll 16
    for (int q = 0; q < terms; q++) {
        const __m512i b = _mm512_loadu_si512(p->lb + q * MPG_WIDE);
        __m512d x[2];
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++) {
            const __m512i a = _mm512_set1_epi32((int)p->la[r * p->stride + q]);
            lowest[r] = _mm512_min_epi16(lowest[r], _mm512_add_epi16(a, b));
            x[r] = _mm512_set1_pd(p->a[r * p->stride + q]);
        }
        mpg_wide_product512(rows, x, p->b + q * MPG_WIDE, sum);
    }
    for (int r = 0; r < rows; r++)
        cut[r] = _mm512_cmplt_epi16_mask(lowest[r], _mm512_add_epi16(_mm512_srai_epi16(tops[r], 4), to_limit));
}

#endif

#endif
