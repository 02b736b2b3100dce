/* The operations of operations.h with AVX-512. They name their rounding themselves; products may be subnormal and are flushed to zero,
 * so A needs no scaling. */
#ifndef MPG_OPERATIONS_AVX512_H
#define MPG_OPERATIONS_AVX512_H

#include <immintrin.h>

#define MPG_AVX512 MPG_TARGET_AVX512 MPG_INLINE

typedef int32_t mpg_i32_avx512 __attribute__((vector_size(64)));
typedef uint32_t mpg_unsigned_avx512 __attribute__((vector_size(64)));
typedef float mpg_f32_avx512 __attribute__((vector_size(64)));
typedef mpg_f32_avx512 mpg_scale_avx512; /* a factor */
typedef __mmask16 mpg_mask_avx512;
typedef __m512i mpg_u8_avx512;
typedef __m128i mpg_u16_avx512;
enum { MPG_LANES_AVX512 = 16, MPG_BYTES_AVX512 = 64, MPG_PRESCALE_AVX512 = 0 };

MPG_AVX512 mpg_u8_avx512 mpg_most_raw_avx512(mpg_u8_avx512 top, mpg_u8_avx512 x, mpg_u8_avx512 y)
{
    return _mm512_max_epu8(top, _mm512_subs_epu8(x, y));
}
MPG_AVX512 mpg_u16_avx512 mpg_most16_raw_avx512(mpg_u16_avx512 top, mpg_u16_avx512 x, mpg_u16_avx512 y)
{
    return _mm_max_epu8(top, _mm_subs_epu8(x, y));
}
MPG_AVX512 mpg_u8_avx512 mpg_words_raw_avx512(uint32_t word) { return _mm512_set1_epi32((int)word); }
MPG_AVX512 mpg_u16_avx512 mpg_words16_raw_avx512(uint32_t word) { return _mm_set1_epi32((int)word); }

MPG_AVX512 mpg_i32_avx512 mpg_bits_raw_avx512(mpg_f32_avx512 x) { return (mpg_i32_avx512)x; }
MPG_AVX512 mpg_f32_avx512 mpg_value_raw_avx512(mpg_i32_avx512 x) { return (mpg_f32_avx512)x; }
MPG_AVX512 mpg_i32_avx512 mpg_all_raw_avx512(int32_t x) { return (mpg_i32_avx512)_mm512_set1_epi32(x); }
MPG_AVX512 mpg_f32_avx512 mpg_allf_raw_avx512(float x) { return _mm512_set1_ps(x); }
MPG_AVX512 mpg_i32_avx512 mpg_larger_raw_avx512(mpg_i32_avx512 x, mpg_i32_avx512 y)
{
    return (mpg_i32_avx512)_mm512_max_epi32((__m512i)x, (__m512i)y);
}
MPG_AVX512 mpg_i32_avx512 mpg_magnitude_raw_avx512(mpg_i32_avx512 x) { return (mpg_i32_avx512)_mm512_abs_epi32((__m512i)x); }
MPG_AVX512 mpg_i32_avx512 mpg_where_more_raw_avx512(mpg_i32_avx512 x, mpg_i32_avx512 a, mpg_i32_avx512 b)
{
    return (mpg_i32_avx512)_mm512_maskz_mov_epi32(_mm512_cmpgt_epi32_mask((__m512i)a, (__m512i)b), (__m512i)x);
}
MPG_AVX512 unsigned mpg_negative_raw_avx512(mpg_i32_avx512 x) { return _mm512_movepi32_mask((__m512i)x); }
MPG_AVX512 mpg_i32_avx512 mpg_fields_raw_avx512(const uint8_t *bytes)
{
    return (mpg_i32_avx512)_mm512_slli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes)), 23);
}
MPG_AVX512 mpg_i32_avx512 mpg_truncated_raw_avx512(mpg_f32_avx512 x) { return (mpg_i32_avx512)_mm512_cvttps_epi32(x); }
MPG_AVX512 mpg_f32_avx512 mpg_chopped_raw_avx512(mpg_i32_avx512 x)
{
    return _mm512_cvt_roundepi32_ps((__m512i)x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
MPG_AVX512 mpg_i32_avx512 mpg_floored_raw_avx512(mpg_f32_avx512 x)
{
    return (mpg_i32_avx512)_mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
MPG_AVX512 mpg_f32_avx512 mpg_add_chopped_raw_avx512(mpg_f32_avx512 x, mpg_f32_avx512 y)
{
    return _mm512_add_round_ps(x, y, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
MPG_AVX512 mpg_f32_avx512 mpg_odd_raw_avx512(mpg_f32_avx512 x, mpg_i32_avx512 total)
{
    const __mmask16 inexact = _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(x), (__m512i)total);
    return (mpg_f32_avx512)_mm512_mask_or_epi32((__m512i)x, inexact, (__m512i)x, _mm512_set1_epi32(1));
}
MPG_AVX512 mpg_i32_avx512 mpg_unlike_raw_avx512(mpg_f32_avx512 x, mpg_f32_avx512 y) { return (mpg_i32_avx512)(x != y); }
MPG_AVX512 mpg_scale_avx512 mpg_scale_of_raw_avx512(mpg_i32_avx512 top, int fraction_bits)
{
    const mpg_i32_avx512 to_scale = mpg_all_raw_avx512((int32_t)((uint32_t)(fraction_bits + 254) << 23));
    return (mpg_f32_avx512)((mpg_unsigned_avx512)to_scale - (mpg_unsigned_avx512)top);
}
MPG_AVX512 mpg_i32_avx512 mpg_in_units_raw_avx512(mpg_f32_avx512 a, mpg_f32_avx512 b, mpg_scale_avx512 scale)
{
    return (mpg_i32_avx512)_mm512_cvttps_epi32(a * b * scale);
}
MPG_AVX512 mpg_f32_avx512 mpg_fp16_raw_avx512(mpg_f32_avx512 x)
{
    return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)) + _mm512_setzero_ps();
}
MPG_AVX512 mpg_i32_avx512 mpg_right_raw_avx512(mpg_i32_avx512 x, mpg_i32_avx512 places)
{
    return (mpg_i32_avx512)_mm512_srav_epi32((__m512i)x, (__m512i)places);
}
MPG_AVX512 mpg_i32_avx512 mpg_right_logical_raw_avx512(mpg_i32_avx512 x, mpg_i32_avx512 places)
{
    return (mpg_i32_avx512)_mm512_srlv_epi32((__m512i)x, (__m512i)places);
}
MPG_AVX512 mpg_i32_avx512 mpg_left_raw_avx512(mpg_i32_avx512 x, mpg_i32_avx512 places)
{
    return (mpg_i32_avx512)_mm512_sllv_epi32((__m512i)x, (__m512i)places);
}
MPG_AVX512 mpg_f32_avx512 mpg_madd_raw_avx512(mpg_f32_avx512 a, mpg_f32_avx512 b, mpg_f32_avx512 c)
{
    return _mm512_fmadd_ps(a, b, c);
}
MPG_AVX512 mpg_mask_avx512 mpg_first_raw_avx512(int count)
{
    return (__mmask16)(count >= 16 ? 0xFFFF : count > 0 ? (1 << count) - 1 : 0);
}
MPG_AVX512 mpg_f32_avx512 mpg_some_raw_avx512(const float *from, mpg_mask_avx512 lanes)
{
    return _mm512_maskz_loadu_ps(lanes, from);
}
MPG_AVX512 void mpg_put_some_raw_avx512(float *to, mpg_f32_avx512 x, mpg_mask_avx512 lanes)
{
    _mm512_mask_storeu_ps(to, lanes, x);
}
MPG_AVX512 unsigned mpg_beyond_fp16_raw_avx512(mpg_f32_avx512 x) { return _mm512_fpclass_ps_mask(x, 0x18); }
MPG_AVX512 mpg_f32_avx512 mpg_without_raw_avx512(mpg_f32_avx512 x, unsigned lanes)
{
    return _mm512_maskz_mov_ps((__mmask16)~lanes, x);
}
MPG_AVX512 mpg_i32_avx512 mpg_fields_of_raw_avx512(__m128i bytes)
{
    return (mpg_i32_avx512)_mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes), 23);
}
MPG_AVX512 __m128i mpg_quarter_raw_avx512(__m512i x, int i)
{
    return i == 0   ? _mm512_castsi512_si128(x)
           : i == 1 ? _mm512_extracti32x4_epi32(x, 1)
           : i == 2 ? _mm512_extracti32x4_epi32(x, 2)
                    : _mm512_extracti32x4_epi32(x, 3);
}
MPG_AVX512 mpg_f32_avx512 mpg_factor_of_raw_avx512(mpg_scale_avx512 scale, mpg_i32_avx512 top, int fraction_bits)
{
    return scale;
}
MPG_AVX512 mpg_f32_avx512 mpg_unit_of_raw_avx512(mpg_scale_avx512 scale, mpg_i32_avx512 top, int fraction_bits)
{
    return (mpg_f32_avx512)(mpg_all_raw_avx512(254 << 23) - (mpg_i32_avx512)scale);
}
#endif
