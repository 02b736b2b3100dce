/* The operations of operations.h with AVX-512. They name their rounding themselves; products may be subnormal and are flushed to zero,
 * so A needs no scaling. */
#ifndef MPG_OPERATIONS_AVX512_H
#define MPG_OPERATIONS_AVX512_H

#include <immintrin.h>

#define MPG_AVX512 MPG_TARGET_AVX512 MPG_INLINE

typedef int32_t mpg_i32_avx512 __attribute__((vector_size(64)));
typedef uint32_t mpg_unsigned_avx512 __attribute__((vector_size(64)));
typedef float mpg_f32_avx512 __attribute__((vector_size(64)));
typedef double mpg_f64_avx512 __attribute__((vector_size(64)));
typedef int64_t mpg_i64_avx512 __attribute__((vector_size(64)));
typedef __m512i mpg_i16_avx512;
typedef mpg_f32_avx512 mpg_scale_avx512; /* a factor */
typedef __mmask16 mpg_mask_avx512;
typedef __m512i mpg_u8_avx512;
typedef __m128i mpg_u16_avx512;
enum { MPG_LANES_AVX512 = 16, MPG_BYTES_AVX512 = 64, MPG_PRESCALE_AVX512 = 0, MPG_DOUBLES_AVX512 = 8 };

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
MPG_AVX512 mpg_i32_avx512 mpg_pair_products_raw_avx512(mpg_i32_avx512 x, mpg_i32_avx512 y)
{
    return (mpg_i32_avx512)_mm512_madd_epi16((__m512i)x, (__m512i)y);
}
MPG_AVX512 mpg_i32_avx512 mpg_some_integers_raw_avx512(const int32_t *from, int count)
{
    return (mpg_i32_avx512)_mm512_maskz_loadu_epi32(mpg_first_raw_avx512(count), from);
}
MPG_AVX512 void mpg_put_some_integers_raw_avx512(int32_t *to, mpg_i32_avx512 x, int count)
{
    _mm512_mask_storeu_epi32(to, mpg_first_raw_avx512(count), (__m512i)x);
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
/* ---- doubles and words ---- */
#define MPG_DOWN (_MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)
#define MPG_UP (_MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC)
MPG_AVX512 mpg_i64_avx512 mpg_bits64_raw_avx512(mpg_f64_avx512 x) { return (mpg_i64_avx512)x; }
MPG_AVX512 mpg_f64_avx512 mpg_value64_raw_avx512(mpg_i64_avx512 x) { return (mpg_f64_avx512)x; }
MPG_AVX512 mpg_f64_avx512 mpg_all64_raw_avx512(double x) { return _mm512_set1_pd(x); }
MPG_AVX512 mpg_i64_avx512 mpg_all_bits_raw_avx512(int64_t x) { return (mpg_i64_avx512)_mm512_set1_epi64(x); }
MPG_AVX512 __m512i mpg_all_words_raw_avx512(int32_t x) { return _mm512_set1_epi16((int16_t)x); }
MPG_AVX512 __m512i mpg_pairs_raw_avx512(uint32_t words) { return _mm512_set1_epi32((int)words); }
MPG_AVX512 __mmask8 mpg_first_of_8_avx512(int count)
{
    return (__mmask8)(count >= 8 ? 0xFF : count > 0 ? (1 << count) - 1 : 0);
}
MPG_AVX512 mpg_f64_avx512 mpg_some64_raw_avx512(const float *from, int count)
{
    return _mm512_cvtps_pd(_mm256_maskz_loadu_ps(mpg_first_of_8_avx512(count), from));
}
MPG_AVX512 void mpg_put_some64_raw_avx512(float *to, mpg_f64_avx512 x, int count)
{
    if (count >= 8)
        _mm256_storeu_ps(to, _mm512_cvtpd_ps(x));
    else
        _mm256_mask_storeu_ps(to, mpg_first_of_8_avx512(count), _mm512_cvtpd_ps(x));
}
MPG_AVX512 __m512i mpg_add_words_raw_avx512(__m512i x, __m512i y) { return _mm512_add_epi16(x, y); }
MPG_AVX512 __m512i mpg_larger_words_raw_avx512(__m512i x, __m512i y) { return _mm512_max_epi16(x, y); }
MPG_AVX512 __m512i mpg_smaller_words_raw_avx512(__m512i x, __m512i y) { return _mm512_min_epi16(x, y); }
MPG_AVX512 __m512i mpg_sixteenths_raw_avx512(__m512i x) { return _mm512_srai_epi16(x, 4); }
MPG_AVX512 __m512i mpg_words_below_raw_avx512(__m512i x, __m512i y) { return _mm512_movm_epi16(_mm512_cmplt_epi16_mask(x, y)); }
MPG_AVX512 __m512i mpg_count_below_raw_avx512(__m512i count, __m512i x, __m512i y)
{
    return _mm512_mask_sub_epi16(count, _mm512_cmplt_epi16_mask(x, y), count, _mm512_set1_epi16(1));
}
MPG_AVX512 __m512i mpg_mul_words_raw_avx512(__m512i x, __m512i y) { return _mm512_mullo_epi16(x, y); }
MPG_AVX512 __m512i mpg_larger_where_common_raw_avx512(__m512i x, __m512i y, __m512i a, __m512i b)
{
    return _mm512_mask_max_epi16(x, _mm512_test_epi16_mask(a, b), x, y);
}
MPG_AVX512 __m512i mpg_byte_products_raw_avx512(__m512i x, __m512i y) { return _mm512_maddubs_epi16(x, y); }
MPG_AVX512 __m512i mpg_byte_products_modulo_raw_avx512(__m512i x, __m512i y)
{
    const __m512i even =
        _mm512_mullo_epi16(_mm512_and_si512(x, _mm512_set1_epi16(255)), _mm512_srai_epi16(_mm512_slli_epi16(y, 8), 8));
    return _mm512_add_epi16(even, _mm512_mullo_epi16(_mm512_srli_epi16(x, 8), _mm512_srai_epi16(y, 8)));
}
MPG_AVX512 mpg_f64_avx512 mpg_numbers_raw_avx512(const int16_t *from)
{
    return _mm512_cvtepi64_pd(_mm512_cvtepi16_epi64(_mm_loadu_si128((const __m128i *)from)));
}
MPG_AVX512 mpg_f64_avx512 mpg_powers_of_raw_avx512(const int16_t *from)
{
    return (mpg_f64_avx512)_mm512_slli_epi64(_mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)from)), 52);
}
MPG_AVX512 __m512i mpg_raised_words_raw_avx512(__m512i x, __m512i y)
{
    return _mm512_mask_max_epi16(x, _mm512_test_epi16_mask(x, x), x, y);
}
MPG_AVX512 int mpg_any_words_raw_avx512(__m512i x) { return _mm512_test_epi32_mask(x, x) != 0; }
MPG_AVX512 int mpg_any_outside_raw_avx512(__m512i x, __m512i low, __m512i high)
{
    return _mm512_cmpgt_epu16_mask(_mm512_sub_epi16(x, low), _mm512_sub_epi16(high, low)) != 0;
}
MPG_AVX512 __m512i mpg_bytes_avx512(int d, int c, int b, int a) { return _mm512_set4_epi32(d, c, b, a); }
MPG_AVX512 void mpg_powers_raw_avx512(__m512i x, mpg_f64_avx512 *power)
{
    const __m512i one = mpg_bytes_avx512(0x0B0A8080, (int)0x80808080, 0x03028080, (int)0x80808080);
    const __m512i two = mpg_bytes_avx512(0x0D0C8080, (int)0x80808080, 0x05048080, (int)0x80808080);
    power[0] = (mpg_f64_avx512)_mm512_slli_epi64(x, 48);
    power[1] = (mpg_f64_avx512)_mm512_shuffle_epi8(x, one);
    power[2] = (mpg_f64_avx512)_mm512_shuffle_epi8(x, two);
    power[3] = (mpg_f64_avx512)_mm512_and_si512(x, _mm512_set1_epi64((int64_t)UINT64_C(0xFFFF000000000000)));
}
MPG_AVX512 void mpg_starts_raw_avx512(__m512i x, mpg_f64_avx512 *start)
{
    start[0] =
        (mpg_f64_avx512)_mm512_shuffle_epi8(x, mpg_bytes_avx512(0x09088080, (int)0x80800908, 0x01008080, (int)0x80800100));
    start[1] =
        (mpg_f64_avx512)_mm512_shuffle_epi8(x, mpg_bytes_avx512(0x0B0A8080, (int)0x80800B0A, 0x03028080, (int)0x80800302));
    start[2] =
        (mpg_f64_avx512)_mm512_shuffle_epi8(x, mpg_bytes_avx512(0x0D0C8080, (int)0x80800D0C, 0x05048080, (int)0x80800504));
    start[3] =
        (mpg_f64_avx512)_mm512_shuffle_epi8(x, mpg_bytes_avx512(0x0F0E8080, (int)0x80800F0E, 0x07068080, (int)0x80800706));
}
MPG_AVX512 void mpg_ends_raw_avx512(__m512i high, __m512i low, mpg_f64_avx512 *end)
{
    const __m512i even = mpg_bytes_avx512(0x09088080, (int)0x80800D0C, 0x01008080, (int)0x80800504);
    const __m512i odd = mpg_bytes_avx512(0x0B0A8080, (int)0x80800F0E, 0x03028080, (int)0x80800706);
    /* words 0 and 1, then 2 and 3, of `high` and of `low`, side by side in each 64-bit lane */
    const __m512i first = _mm512_mask_shuffle_epi32(high, 0xAAAA, low, _MM_PERM_CCAA);
    const __m512i second = _mm512_mask_shuffle_epi32(low, 0x5555, high, _MM_PERM_DDBB);
    end[0] = (mpg_f64_avx512)_mm512_shuffle_epi8(first, even);
    end[1] = (mpg_f64_avx512)_mm512_shuffle_epi8(first, odd);
    end[2] = (mpg_f64_avx512)_mm512_shuffle_epi8(second, even);
    end[3] = (mpg_f64_avx512)_mm512_shuffle_epi8(second, odd);
}
MPG_AVX512 __m512i mpg_exponent_words_raw_avx512(const mpg_f64_avx512 *x)
{
    /* the higher halves of two vectors side by side, and words of both pairs */
    const __m512i even = _mm512_mask_shuffle_epi32((__m512i)x[2], 0x5555, (__m512i)x[0], _MM_PERM_DDBB);
    const __m512i odd = _mm512_mask_shuffle_epi32((__m512i)x[3], 0x5555, (__m512i)x[1], _MM_PERM_DDBB);
    const __m512i words = _mm512_ternarylogic_epi32(_mm512_set1_epi32(0xFFFF), _mm512_srli_epi32(even, 16), odd, 0xCA);
    return _mm512_and_si512(words, _mm512_set1_epi16(0x7FF0));
}
MPG_AVX512 mpg_f64_avx512 mpg_where_word_raw_avx512(__m512i words, int g, mpg_f64_avx512 x, mpg_f64_avx512 y)
{
    return _mm512_mask_mov_pd(y, _mm512_test_epi64_mask(words, _mm512_set1_epi64((int64_t)(UINT64_C(0x8000) << 16 * g))), x);
}
MPG_AVX512 mpg_f64_avx512 mpg_larger64_raw_avx512(mpg_f64_avx512 x, mpg_f64_avx512 y) { return _mm512_max_pd(x, y); }
MPG_AVX512 mpg_f64_avx512 mpg_smaller64_raw_avx512(mpg_f64_avx512 x, mpg_f64_avx512 y) { return _mm512_min_pd(x, y); }
MPG_AVX512 mpg_f64_avx512 mpg_below64_raw_avx512(mpg_f64_avx512 a, mpg_f64_avx512 b, mpg_f64_avx512 x, mpg_f64_avx512 y)
{
    return _mm512_mask_mov_pd(y, _mm512_cmp_pd_mask(a, b, _CMP_LT_OQ), x);
}
MPG_AVX512 mpg_f64_avx512 mpg_where_more64_raw_avx512(mpg_f64_avx512 x, mpg_f64_avx512 a, mpg_f64_avx512 b)
{
    return _mm512_maskz_mov_pd(_mm512_cmp_pd_mask(a, b, _CMP_GT_OQ), x);
}
MPG_AVX512 mpg_i64_avx512 mpg_unlike64_raw_avx512(mpg_f64_avx512 x, mpg_f64_avx512 y)
{
    return (mpg_i64_avx512)_mm512_maskz_set1_epi64(_mm512_cmp_pd_mask(x, y, _CMP_NEQ_UQ), 1);
}
MPG_AVX512 unsigned mpg_beyond64_raw_avx512(mpg_f64_avx512 x, double limit)
{
    return _mm512_cmp_pd_mask(_mm512_abs_pd(x), _mm512_set1_pd(limit), _CMP_GE_OQ);
}
MPG_AVX512 mpg_f64_avx512 mpg_without64_raw_avx512(mpg_f64_avx512 x, unsigned lanes)
{
    return _mm512_maskz_mov_pd((__mmask8)~lanes, x);
}
MPG_AVX512 mpg_f64_avx512 mpg_madd64_raw_avx512(mpg_f64_avx512 a, mpg_f64_avx512 b, mpg_f64_avx512 c)
{
    return _mm512_fmadd_pd(a, b, c);
}
MPG_AVX512 mpg_f64_avx512 mpg_madd_down_raw_avx512(mpg_f64_avx512 a, mpg_f64_avx512 b, mpg_f64_avx512 magic)
{
    return _mm512_fmadd_round_pd(a, b, magic, MPG_DOWN);
}
MPG_AVX512 mpg_f64_avx512 mpg_madd_truncated_raw_avx512(mpg_f64_avx512 a, mpg_f64_avx512 b, mpg_f64_avx512 magic)
{
    return _mm512_fmadd_round_pd(a, b, magic, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
MPG_AVX512 mpg_f64_avx512 mpg_add_down_raw_avx512(mpg_f64_avx512 magic, mpg_f64_avx512 x)
{
    return _mm512_add_round_pd(magic, x, MPG_DOWN);
}
MPG_AVX512 mpg_f64_avx512 mpg_add_chopped64_raw_avx512(mpg_f64_avx512 magic, mpg_f64_avx512 x)
{
    /* units that multiply have less to do than those that add */
    return _mm512_fmadd_round_pd(x, _mm512_set1_pd(1.0), magic, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
}
MPG_AVX512 mpg_f64_avx512 mpg_add_truncated_raw_avx512(mpg_f64_avx512 magic, mpg_f64_avx512 x)
{
    const __mmask8 negative = _mm512_movepi64_mask((__m512i)x);
    return _mm512_mask_add_round_pd(_mm512_add_round_pd(magic, x, MPG_DOWN), negative, magic, x, MPG_UP);
}
MPG_AVX512 mpg_f64_avx512 mpg_odd_sum_raw_avx512(mpg_f64_avx512 x, mpg_f64_avx512 y)
{
    /* of the neighbours above and below the one with an odd last bit */
    const __m512d below = _mm512_add_round_pd(x, y, MPG_DOWN), above = _mm512_add_round_pd(x, y, MPG_UP);
    return _mm512_mask_mov_pd(above, _mm512_test_epi64_mask((__m512i)below, _mm512_set1_epi64(1)), below);
}
MPG_AVX512 mpg_f64_avx512 mpg_chopped32_raw_avx512(mpg_f64_avx512 x)
{
    return _mm512_cvtps_pd(_mm512_cvt_roundpd_ps(x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC));
}
MPG_AVX512 mpg_f64_avx512 mpg_nearest32_raw_avx512(mpg_f64_avx512 x) { return _mm512_cvtps_pd(_mm512_cvtpd_ps(x)); }
MPG_AVX512 mpg_f64_avx512 mpg_nearest16_raw_avx512(mpg_f64_avx512 x)
{
    const mpg_f64_avx512 power = (mpg_f64_avx512)((mpg_i64_avx512)x & INT64_C(0x7FF0000000000000));
    const mpg_f64_avx512 magic = _mm512_max_pd(power, _mm512_set1_pd(0x1p-14)) * _mm512_set1_pd(0x1.8p42);
    return (x + magic) - magic;
}
#undef MPG_DOWN
#undef MPG_UP
#endif
