/* A tile of integer dot products: the rows of integer.h, on x86 those of integer_rows.h in AVX2 and AVX-512. */
#ifndef MPG_INTEGER_X86_H
#define MPG_INTEGER_X86_H

#include "integer.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#define MPG_INTEGER_ROWS 4 /* whose sums stay in registers, two vectors each */

/* The first `count` lanes of a vector, which may be negative or too many. */
MPG_TARGET_AVX2 static inline __m256i mpg_integer_first256(int count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

MPG_TARGET_AVX512 static inline __mmask16 mpg_integer_first512(int count)
{
    return (__mmask16)(count >= 16 ? 0xFFFF : count > 0 ? (1 << count) - 1 : 0);
}

/* c + sum, clamped: (c ^ total) & (sum ^ total) is negative where the sum has overflowed. */
MPG_TARGET_AVX2 static inline __m256i mpg_integer_clamped256(__m256i c, __m256i sum)
{
    const __m256i total = _mm256_add_epi32(c, sum);
    const __m256i over = _mm256_and_si256(_mm256_xor_si256(c, total), _mm256_xor_si256(sum, total));
    const __m256i limit = _mm256_xor_si256(_mm256_srai_epi32(c, 31), _mm256_set1_epi32(INT32_MAX));
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(total), _mm256_castsi256_ps(limit), _mm256_castsi256_ps(over)));
}

MPG_TARGET_AVX512 static inline __m512i mpg_integer_clamped512(__m512i c, __m512i sum)
{
    const __m512i total = _mm512_add_epi32(c, sum);
    const __m512i over = _mm512_ternarylogic_epi32(c, sum, total, 0x42); /* (c ^ total) & (sum ^ total) */
    return _mm512_mask_xor_epi32(total, _mm512_movepi32_mask(over), _mm512_srai_epi32(c, 31), _mm512_set1_epi32(INT32_MAX));
}

#define ROWS_NAME(x) x##_avx2
#define ROWS_TARGET MPG_TARGET_AVX2
#define ROWS_VECTOR __m256i
#define ROWS_MASK __m256i
#define ROWS_LANES 8
#define ROWS_SET(x) _mm256_set1_epi32(x)
#define ROWS_LOAD(p) _mm256_loadu_si256((const __m256i *)(p))
#define ROWS_ADD(x, y) _mm256_add_epi32(x, y)
#define ROWS_PAIRS(x, y) _mm256_madd_epi16(x, y)
#define ROWS_EXISTING(count) mpg_integer_first256(count)
#define ROWS_LOAD_EXISTING(p, mask) _mm256_maskload_epi32(p, mask)
#define ROWS_STORE_EXISTING(p, mask, x) _mm256_maskstore_epi32(p, mask, x)
#define ROWS_CLAMPED(c, sum) mpg_integer_clamped256(c, sum)
#include "integer_rows.h"

#define ROWS_NAME(x) x##_avx512
#define ROWS_TARGET MPG_TARGET_AVX512
#define ROWS_VECTOR __m512i
#define ROWS_MASK __mmask16
#define ROWS_LANES 16
#define ROWS_SET(x) _mm512_set1_epi32(x)
#define ROWS_LOAD(p) _mm512_loadu_si512(p)
#define ROWS_ADD(x, y) _mm512_add_epi32(x, y)
#define ROWS_PAIRS(x, y) _mm512_madd_epi16(x, y)
#define ROWS_EXISTING(count) mpg_integer_first512(count)
#define ROWS_LOAD_EXISTING(p, mask) _mm512_maskz_loadu_epi32(mask, p)
#define ROWS_STORE_EXISTING(p, mask, x) _mm512_mask_storeu_epi32(p, mask, x)
#define ROWS_CLAMPED(c, sum) mpg_integer_clamped512(c, sum)
#include "integer_rows.h"

/* `rows` packed rows (lda apart) of `length` products against one panel, in vectors. */
static void mpg_integer_vectors(const mpg_integer_task *t, const int16_t *a, int64_t lda, int64_t rows, const int16_t *b,
                                int32_t *d, int64_t ldd, int count, int64_t length, int level)
{
    if (level == MPG_ISA_AVX512)
        (t->clamp ? mpg_integer_clamped_avx512 : mpg_integer_wrapped_avx512)(t->terms, a, lda, rows, b, d, ldd, count, length);
    else
        (t->clamp ? mpg_integer_clamped_avx2 : mpg_integer_wrapped_avx2)(t->terms, a, lda, rows, b, d, ldd, count, length);
}
#endif

/* `rows` packed rows of `length` products against one panel, d (row stride ldd) updated in place; `count` columns of it exist. */
static void mpg_integer_tile(const mpg_integer_task *t, const void *av, int64_t length, int64_t rows, const void *bv, int count,
                             int32_t *d, int64_t ldd, int level)
{
    const int64_t depth = MPG_SIZE(level, MPG_INTEGER_DEPTH_SIZES);
    const int64_t block = depth > t->terms ? depth / t->terms * t->terms : t->terms;
    for (int64_t k = 0; k < length; k += block) {
        const int64_t part = length - k < block ? length - k : block;
#if MPG_X86_VARIANTS
        if (mpg_integer_in_pairs(level)) {
            mpg_integer_vectors(t, (const int16_t *)av + k, length, rows, (const int16_t *)bv + k * MPG_INTEGER_LANES, d, ldd,
                                count, part, level);
            continue;
        }
#endif
        for (int64_t i = 0; i < rows; i++) {
            int32_t c[MPG_INTEGER_LANES] = {0};
            memcpy(c, d + i * ldd, (size_t)count * sizeof(*c));
            mpg_integer_row(t, (const float *)av + i * length + k, (const float *)bv + k * MPG_INTEGER_LANES, c, part);
            memcpy(d + i * ldd, c, (size_t)count * sizeof(*c));
        }
    }
}

#endif
