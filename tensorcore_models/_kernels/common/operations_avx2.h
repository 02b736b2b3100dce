/* The operations of operations.h with AVX2 and FMA. They round as the mode says that the caller sets. */
#ifndef MPG_OPERATIONS_AVX2_H
#define MPG_OPERATIONS_AVX2_H

#include <immintrin.h>

#define MPG_AVX2 MPG_TARGET_AVX2 MPG_INLINE

typedef int32_t mpg_i32_avx2 __attribute__((vector_size(32)));
typedef uint32_t mpg_unsigned_avx2 __attribute__((vector_size(32)));
typedef float mpg_f32_avx2 __attribute__((vector_size(32)));
typedef mpg_i32_avx2 mpg_scale_avx2; /* what is added to the bits of a product */
typedef __m256i mpg_u8_avx2;
typedef __m128i mpg_u16_avx2;
enum { MPG_LANES_AVX2 = 8, MPG_BYTES_AVX2 = 32, MPG_PRESCALE_AVX2 = 33 };

MPG_AVX2 mpg_u8_avx2 mpg_most_raw_avx2(mpg_u8_avx2 top, mpg_u8_avx2 x, mpg_u8_avx2 y)
{
    return _mm256_max_epu8(top, _mm256_subs_epu8(x, y));
}
MPG_AVX2 mpg_u16_avx2 mpg_most16_raw_avx2(mpg_u16_avx2 top, mpg_u16_avx2 x, mpg_u16_avx2 y)
{
    return _mm_max_epu8(top, _mm_subs_epu8(x, y));
}
MPG_AVX2 mpg_u8_avx2 mpg_words_raw_avx2(uint32_t word) { return _mm256_set1_epi32((int)word); }
MPG_AVX2 mpg_u16_avx2 mpg_words16_raw_avx2(uint32_t word) { return _mm_set1_epi32((int)word); }

MPG_AVX2 mpg_i32_avx2 mpg_bits_raw_avx2(mpg_f32_avx2 x) { return (mpg_i32_avx2)x; }
MPG_AVX2 mpg_f32_avx2 mpg_value_raw_avx2(mpg_i32_avx2 x) { return (mpg_f32_avx2)x; }
MPG_AVX2 mpg_i32_avx2 mpg_all_raw_avx2(int32_t x) { return (mpg_i32_avx2)_mm256_set1_epi32(x); }
MPG_AVX2 mpg_f32_avx2 mpg_allf_raw_avx2(float x) { return _mm256_set1_ps(x); }
MPG_AVX2 mpg_i32_avx2 mpg_larger_raw_avx2(mpg_i32_avx2 x, mpg_i32_avx2 y)
{
    return (mpg_i32_avx2)_mm256_max_epi32((__m256i)x, (__m256i)y);
}
MPG_AVX2 mpg_i32_avx2 mpg_magnitude_raw_avx2(mpg_i32_avx2 x) { return (mpg_i32_avx2)_mm256_abs_epi32((__m256i)x); }
MPG_AVX2 mpg_i32_avx2 mpg_where_more_raw_avx2(mpg_i32_avx2 x, mpg_i32_avx2 a, mpg_i32_avx2 b) { return x & (a > b); }
MPG_AVX2 unsigned mpg_negative_raw_avx2(mpg_i32_avx2 x) { return (unsigned)_mm256_movemask_ps((__m256)x); }
MPG_AVX2 mpg_i32_avx2 mpg_fields_raw_avx2(const uint8_t *bytes)
{
    return (mpg_i32_avx2)_mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes)), 23);
}
MPG_AVX2 mpg_i32_avx2 mpg_truncated_raw_avx2(mpg_f32_avx2 x) { return (mpg_i32_avx2)_mm256_cvttps_epi32(x); }
MPG_AVX2 mpg_f32_avx2 mpg_chopped_raw_avx2(mpg_i32_avx2 x) { return _mm256_cvtepi32_ps((__m256i)x); }
MPG_AVX2 mpg_i32_avx2 mpg_floored_raw_avx2(mpg_f32_avx2 x) { return (mpg_i32_avx2)_mm256_cvttps_epi32(_mm256_floor_ps(x)); }
MPG_AVX2 mpg_f32_avx2 mpg_add_chopped_raw_avx2(mpg_f32_avx2 x, mpg_f32_avx2 y) { return x + y; }
MPG_AVX2 mpg_f32_avx2 mpg_odd_raw_avx2(mpg_f32_avx2 x, mpg_i32_avx2 total)
{
    return (mpg_f32_avx2)((mpg_i32_avx2)x | ((mpg_truncated_raw_avx2(x) == total) + 1));
}
MPG_AVX2 mpg_i32_avx2 mpg_unlike_raw_avx2(mpg_f32_avx2 x, mpg_f32_avx2 y) { return (mpg_i32_avx2)(x != y); }
MPG_AVX2 mpg_scale_avx2 mpg_scale_of_raw_avx2(mpg_i32_avx2 top, int fraction_bits)
{
    return mpg_larger_raw_avx2(mpg_all_raw_avx2((fraction_bits + 127 + MPG_PRESCALE_AVX2) << 23) - top, mpg_all_raw_avx2(0));
}
MPG_AVX2 mpg_i32_avx2 mpg_in_units_raw_avx2(mpg_f32_avx2 a, mpg_f32_avx2 b, mpg_scale_avx2 scale)
{
    return mpg_truncated_raw_avx2((mpg_f32_avx2)((mpg_i32_avx2)(a * b) + scale));
}
MPG_AVX2 mpg_f32_avx2 mpg_fp16_raw_avx2(mpg_f32_avx2 x)
{
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)) + _mm256_setzero_ps();
}
MPG_AVX2 mpg_i32_avx2 mpg_right_raw_avx2(mpg_i32_avx2 x, mpg_i32_avx2 places)
{
    return (mpg_i32_avx2)_mm256_srav_epi32((__m256i)x, (__m256i)places);
}
MPG_AVX2 mpg_i32_avx2 mpg_right_logical_raw_avx2(mpg_i32_avx2 x, mpg_i32_avx2 places)
{
    return (mpg_i32_avx2)_mm256_srlv_epi32((__m256i)x, (__m256i)places);
}
MPG_AVX2 mpg_i32_avx2 mpg_left_raw_avx2(mpg_i32_avx2 x, mpg_i32_avx2 places)
{
    return (mpg_i32_avx2)_mm256_sllv_epi32((__m256i)x, (__m256i)places);
}
MPG_AVX2 mpg_f32_avx2 mpg_madd_raw_avx2(mpg_f32_avx2 a, mpg_f32_avx2 b, mpg_f32_avx2 c) { return _mm256_fmadd_ps(a, b, c); }
MPG_AVX2 unsigned mpg_beyond_fp16_raw_avx2(mpg_f32_avx2 x)
{
    return mpg_negative_raw_avx2(mpg_all_raw_avx2((143 << 23) - 1) - ((mpg_i32_avx2)x & 0x7FFFFFFF));
}
MPG_AVX2 mpg_f32_avx2 mpg_without_raw_avx2(mpg_f32_avx2 x, unsigned lanes)
{
    float lane[MPG_LANES_AVX2];
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_LANES_AVX2; l++)
        if (lanes >> l & 1)
            lane[l] = 0;
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_AVX2 mpg_f32_avx2 mpg_factor_of_raw_avx2(mpg_scale_avx2 scale, mpg_i32_avx2 top, int fraction_bits)
{
    const mpg_i32_avx2 to_factor = mpg_all_raw_avx2((int32_t)((uint32_t)(fraction_bits + 254) << 23));
    return mpg_value_raw_avx2((mpg_i32_avx2)((mpg_unsigned_avx2)to_factor - (mpg_unsigned_avx2)top));
}
MPG_AVX2 mpg_f32_avx2 mpg_unit_of_raw_avx2(mpg_scale_avx2 scale, mpg_i32_avx2 top, int fraction_bits)
{
    return mpg_value_raw_avx2(top - mpg_all_raw_avx2(fraction_bits << 23));
}
#endif
