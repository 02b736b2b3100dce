/* The dot products of integer.h in AVX-512 intrinsics: pairs of 16-bit integers multiplied and added in one instruction. */
#ifndef MPG_INTEGER_AVX512_H
#define MPG_INTEGER_AVX512_H

#include "integer.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES512
#define MPG_LANES512 MPG_TARGET_AVX512 static inline __attribute__((always_inline))
#endif

/* c + sum modulo 2^32, or clamped. */
MPG_LANES512 __m512i mpg_integer_add512(int clamp, __m512i c, __m512i sum)
{
    const __m512i total = _mm512_add_epi32(c, sum);
    if (!clamp)
        return total;
    const __m512i over = _mm512_ternarylogic_epi32(c, sum, total, 0x42); /* (c ^ total) & (sum ^ total) */
    return _mm512_mask_xor_epi32(total, _mm512_movepi32_mask(over), _mm512_srai_epi32(c, 31), _mm512_set1_epi32(INT32_MAX));
}

/* `rows` rows of A (row stride lda) against one panel, `count` columns of which exist; d has row stride ldd. */
MPG_LANES512 void mpg_integer_rows512(int rows, int clamp, int terms, const int16_t *a, int64_t lda, const int16_t *b,
                                      int32_t *d, int64_t ldd, int count, int64_t length)
{
    const __mmask16 exists[2] = {(__mmask16)(count >= 16 ? 0xFFFF : (1 << count) - 1),
                                 (__mmask16)(count >= 32  ? 0xFFFF
                                             : count > 16 ? (1 << (count - 16)) - 1
                                                          : 0)};
    __m512i c[4][2];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        c[i][0] = _mm512_maskz_loadu_epi32(exists[0], d + i * ldd);
        c[i][1] = _mm512_maskz_loadu_epi32(exists[1], d + i * ldd + 16);
    }
    for (int64_t k = 0; k < length; k += terms) {
        const int64_t end = k + terms < length ? k + terms : length;
        __m512i sum[4][2];
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            sum[i][0] = sum[i][1] = _mm512_setzero_si512();
        for (int64_t q = k; q < end; q += 2) {
            const __m512i left = _mm512_loadu_si512(b + q * MPG_INTEGER_LANES);
            const __m512i right = _mm512_loadu_si512(b + q * MPG_INTEGER_LANES + 32);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                int32_t pair;
                memcpy(&pair, a + i * lda + q, sizeof(pair));
                const __m512i x = _mm512_set1_epi32(pair);
                sum[i][0] = _mm512_add_epi32(sum[i][0], _mm512_madd_epi16(x, left));
                sum[i][1] = _mm512_add_epi32(sum[i][1], _mm512_madd_epi16(x, right));
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++) {
            c[i][0] = mpg_integer_add512(clamp, c[i][0], sum[i][0]);
            c[i][1] = mpg_integer_add512(clamp, c[i][1], sum[i][1]);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        _mm512_mask_storeu_epi32(d + i * ldd, exists[0], c[i][0]);
        _mm512_mask_storeu_epi32(d + i * ldd + 16, exists[1], c[i][1]);
    }
}

#define MPG_INTEGER_ROWS512(NAME, ROWS, CLAMP)                                                                                 \
    MPG_TARGET_AVX512 static void NAME(int terms, const int16_t *a, int64_t lda, const int16_t *b, int32_t *d, int64_t ldd,    \
                                       int count, int64_t length)                                                              \
    {                                                                                                                          \
        mpg_integer_rows512(ROWS, CLAMP, terms, a, lda, b, d, ldd, count, length);                                             \
    }

MPG_INTEGER_ROWS512(mpg_integer_wrap1_512, 1, 0)
MPG_INTEGER_ROWS512(mpg_integer_wrap4_512, 4, 0)
MPG_INTEGER_ROWS512(mpg_integer_clamp1_512, 1, 1)
MPG_INTEGER_ROWS512(mpg_integer_clamp4_512, 4, 1)
#endif

/* `rows` packed rows of `length` products against one panel, d (row stride ldd) updated in place; `count` columns of it exist. */
static void mpg_integer_tile(const mpg_integer_task *t, const void *av, int64_t length, int64_t rows, const void *bv, int count,
                             int32_t *d, int64_t ldd, int level)
{
    const int64_t depth = MPG_SIZE(level, MPG_INTEGER_DEPTH_SIZES);
    const int64_t block = depth > t->terms ? depth / t->terms * t->terms : t->terms;
    for (int64_t k = 0; k < length; k += block) {
        const int64_t part = length - k < block ? length - k : block;
        for (int64_t i = 0; i < rows;) {
#if MPG_X86_VARIANTS
            if (level == MPG_ISA_AVX512) {
                const int64_t together = rows - i >= 4 ? 4 : 1;
                (together == 4 ? t->clamp ? mpg_integer_clamp4_512 : mpg_integer_wrap4_512
                 : t->clamp    ? mpg_integer_clamp1_512
                               : mpg_integer_wrap1_512)(t->terms, (const int16_t *)av + i * length + k, length,
                                                     (const int16_t *)bv + k * MPG_INTEGER_LANES, d + i * ldd, ldd, count,
                                                     part);
                i += together;
                continue;
            }
#endif
            int32_t c[MPG_INTEGER_LANES] = {0};
            memcpy(c, d + i * ldd, (size_t)count * sizeof(*c));
            (level == MPG_ISA_AVX2 ? mpg_integer_row_avx2 : mpg_integer_row_baseline)(
                t, (const float *)av + i * length + k, (const float *)bv + k * MPG_INTEGER_LANES, c, part);
            memcpy(d + i * ldd, c, (size_t)count * sizeof(*c));
            i++;
        }
    }
}

#endif
