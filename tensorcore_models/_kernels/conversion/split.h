/* One float32 into two float16 words: high = RN(x), low = RN((x - high) * 2^s), branch-free.
 *
 * The subtraction is one float32 operation (exact unless the high word overflowed) and so is the scaling (exact wherever the
 * float16 result is not 0 or an overflow). Needs the default floating-point environment. tensorcore_models.formats.words.split is
 * the general form that this one is tested against.
 */
#ifndef MPG_SPLIT_H
#define MPG_SPLIT_H

#include <math.h>
#include <stdint.h>

#include "bits.h"

typedef struct {
    float scale1, scale2;        /* their product is 2^s; two factors reach what one float32 cannot */
    uint32_t overflow_code;      /* 0x7C00, or 0x7BFF when saturating */
    uint32_t overflow_value;     /* the same as float32 bits */
    uint32_t nan_code, nan_keep; /* a NaN becomes nan_code, or'ed with sign and payload where nan_keep is all ones */
} mpg_split;

/* Parameters of eq. 7 with s_b = s. A NaN becomes nan_code, with its sign and payload if keep_nan. */
static mpg_split mpg_split_parameters(int s, int saturate, uint32_t nan_code, int keep_nan)
{
    mpg_split p;
    /* A float32 has less than 280 binades: beyond 2^250 every scale overflows or flushes every residual. */
    s = s < -250 ? -250 : s > 250 ? 250 : s;
    p.scale1 = ldexpf(1.0f, s / 2);
    p.scale2 = ldexpf(1.0f, s - s / 2);
    p.overflow_code = saturate ? 0x7BFF : 0x7C00;
    p.overflow_value = saturate ? 0x477FE000 : 0x7F800000;
    p.nan_code = nan_code;
    p.nan_keep = keep_nan ? 0xFFFFFFFF : 0;
    return p;
}

/* RN of a magnitude (float32 bits, not NaN) to float16: its code, and its value as float32 bits. */
MPG_INLINE uint32_t mpg_half_code(uint32_t a, const mpg_split *p, uint32_t *value)
{
    const uint32_t normal = (a + 0xFFFu + ((a >> 13) & 1u)) & ~UINT32_C(0x1FFF);
    const float sum = mpg_as_float(a) + 0.5f; /* the unit of 0.5 is 2^-24, the quantum of float16 */
    const uint32_t is_subnormal = (int32_t)a < (INT32_C(113) << 23);
    const uint32_t code =
        MPG_SELECT(is_subnormal, mpg_as_bits(sum) - UINT32_C(0x3F000000), (normal >> 13) - (UINT32_C(112) << 10));
    const uint32_t overflow = (int32_t)code > 0x7BFF;
    *value = MPG_SELECT(is_subnormal, mpg_as_bits(sum - 0.5f), normal);
    *value = MPG_SELECT(overflow, p->overflow_value, *value);
    return MPG_SELECT(overflow, p->overflow_code, code);
}

MPG_INLINE void mpg_split_one(uint32_t x, uint32_t *high, uint32_t *low, const mpg_split *p)
{
    const uint32_t a = x & 0x7FFFFFFFu, sign = x & 0x80000000u;
    uint32_t value, unused;
    uint32_t h = mpg_half_code(a, p, &value) | sign >> 16;
    const float residual = mpg_as_float(x) - mpg_as_float(value | sign);
    const uint32_t r = mpg_as_bits(residual * p->scale1 * p->scale2);
    uint32_t l = mpg_half_code(r & 0x7FFFFFFFu, p, &unused) | (r & 0x80000000u) >> 16;
    const uint32_t nan = p->nan_code | (p->nan_keep & (sign >> 16 | ((a >> 13) & 0x3FFu)));
    /* inf - inf: the sign of that NaN differs between CPUs, so it is fixed here */
    l = MPG_SELECT((int32_t)(r & 0x7FFFFFFFu) > 0x7F800000, p->nan_code, l);
    *low = MPG_SELECT((int32_t)a > 0x7F800000, nan, l);
    *high = MPG_SELECT((int32_t)a > 0x7F800000, nan, h);
}

MPG_INLINE void mpg_split_rest(const uint32_t *MPG_RESTRICT x, uint16_t *MPG_RESTRICT high, uint16_t *MPG_RESTRICT low,
                               int64_t begin, int64_t count, const mpg_split *parameters)
{
    const mpg_split p = *parameters;
    for (int64_t i = begin; i < count; i++) {
        uint32_t h, l;
        mpg_split_one(x[i], &h, &l, &p);
        high[i] = (uint16_t)h;
        low[i] = (uint16_t)l;
    }
}

static void mpg_split_base(const uint32_t *x, uint16_t *high, uint16_t *low, int64_t count, const mpg_split *p)
{
    mpg_split_rest(x, high, low, 0, count, p);
}

#if MPG_X86_VARIANTS
#include <immintrin.h>

/* The conversion instructions round to nearest even, subnormals included, whatever the floating-point environment. A block
 * with a NaN, or one that cannot be finite, goes the general way. */
MPG_TARGET_AVX2 static void mpg_split_avx2(const uint32_t *x, uint16_t *high, uint16_t *low, int64_t count, const mpg_split *p)
{
    const __m256 scale1 = _mm256_set1_ps(p->scale1), scale2 = _mm256_set1_ps(p->scale2);
    const __m256 limit = _mm256_set1_ps(65504.0f), magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const __m256 value = _mm256_loadu_ps((const float *)(x + i));
        const __m128i h = _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
        const __m256 rest = _mm256_mul_ps(_mm256_mul_ps(_mm256_sub_ps(value, _mm256_cvtph_ps(h)), scale1), scale2);
        if (_mm256_movemask_ps(_mm256_cmp_ps(_mm256_and_ps(value, magnitude), limit, _CMP_NLE_UQ)) |
            _mm256_movemask_ps(_mm256_cmp_ps(_mm256_and_ps(rest, magnitude), limit, _CMP_NLE_UQ))) {
            mpg_split_rest(x, high, low, i, i + 8, p);
            continue;
        }
        _mm_storeu_si128((__m128i *)(high + i), h);
        _mm_storeu_si128((__m128i *)(low + i), _mm256_cvtps_ph(rest, _MM_FROUND_TO_NEAREST_INT));
    }
    mpg_split_rest(x, high, low, i, count, p);
}

MPG_TARGET_AVX512 static void mpg_split_avx512(const uint32_t *x, uint16_t *high, uint16_t *low, int64_t count,
                                               const mpg_split *p)
{
    const __m512 scale1 = _mm512_set1_ps(p->scale1), scale2 = _mm512_set1_ps(p->scale2);
    const __m512 limit = _mm512_set1_ps(65504.0f);
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m512 value = _mm512_loadu_ps((const float *)(x + i));
        const __m256i h = _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
        const __m512 rest = _mm512_mul_ps(_mm512_mul_ps(_mm512_sub_ps(value, _mm512_cvtph_ps(h)), scale1), scale2);
        if (_mm512_cmp_ps_mask(_mm512_abs_ps(value), limit, _CMP_NLE_UQ) |
            _mm512_cmp_ps_mask(_mm512_abs_ps(rest), limit, _CMP_NLE_UQ)) {
            mpg_split_rest(x, high, low, i, i + 16, p);
            continue;
        }
        _mm256_storeu_si256((__m256i *)(high + i), h);
        _mm256_storeu_si256((__m256i *)(low + i), _mm512_cvtps_ph(rest, _MM_FROUND_TO_NEAREST_INT));
    }
    mpg_split_rest(x, high, low, i, count, p);
}
#endif

static void mpg_split_range(const void *x, void *high, void *low, int64_t begin, int64_t end, const mpg_split *p, int isa)
{
    const uint32_t *source = (const uint32_t *)x + begin;
    uint16_t *h = (uint16_t *)high + begin, *l = (uint16_t *)low + begin;
#if MPG_X86_VARIANTS
    if (isa >= MPG_ISA_AVX512) {
        mpg_split_avx512(source, h, l, end - begin, p);
        return;
    }
    if (isa >= MPG_ISA_AVX2) {
        mpg_split_avx2(source, h, l, end - begin, p);
        return;
    }
#endif
    mpg_split_base(source, h, l, end - begin, p);
}

#endif
