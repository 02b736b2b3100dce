/* The operations of operations.h with AVX2 and FMA. They round as the mode says that the caller sets. */
#ifndef MPG_OPERATIONS_AVX2_H
#define MPG_OPERATIONS_AVX2_H

#include <immintrin.h>

#define MPG_AVX2 MPG_TARGET_AVX2 MPG_INLINE

typedef int32_t mpg_i32_avx2 __attribute__((vector_size(32)));
typedef uint32_t mpg_unsigned_avx2 __attribute__((vector_size(32)));
typedef float mpg_f32_avx2 __attribute__((vector_size(32)));
typedef double mpg_f64_avx2 __attribute__((vector_size(32)));
typedef int64_t mpg_i64_avx2 __attribute__((vector_size(32)));
typedef uint64_t mpg_unsigned64_avx2 __attribute__((vector_size(32)));
typedef __m256i mpg_i16_avx2;
typedef mpg_i32_avx2 mpg_scale_avx2; /* what is added to the bits of a product */
typedef __m256i mpg_u8_avx2;
typedef __m128i mpg_u16_avx2;
enum { MPG_LANES_AVX2 = 8, MPG_BYTES_AVX2 = 32, MPG_PRESCALE_AVX2 = 33, MPG_DOUBLES_AVX2 = 4 };

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
MPG_AVX2 mpg_i32_avx2 mpg_pair_products_raw_avx2(mpg_i32_avx2 x, mpg_i32_avx2 y)
{
    return (mpg_i32_avx2)_mm256_madd_epi16((__m256i)x, (__m256i)y);
}
MPG_AVX2 __m256i mpg_first_of_8_avx2(int count)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
MPG_AVX2 mpg_i32_avx2 mpg_some_integers_raw_avx2(const int32_t *from, int count)
{
    return (mpg_i32_avx2)_mm256_maskload_epi32(from, mpg_first_of_8_avx2(count));
}
MPG_AVX2 void mpg_put_some_integers_raw_avx2(int32_t *to, mpg_i32_avx2 x, int count)
{
    if (count >= 8) /* masked stores are slow */
        _mm256_storeu_si256((__m256i *)to, (__m256i)x);
    else
        _mm256_maskstore_epi32(to, mpg_first_of_8_avx2(count), (__m256i)x);
}
MPG_AVX2 unsigned mpg_beyond_fp16_raw_avx2(mpg_f32_avx2 x)
{
    const mpg_i32_avx2 field = mpg_all_raw_avx2(0x7F800000); /* what conversion makes of them: infinities */
    return mpg_negative_raw_avx2(((mpg_i32_avx2)x & field) == field);
}
MPG_AVX2 mpg_f32_avx2 mpg_without_raw_avx2(mpg_f32_avx2 x, unsigned lanes)
{
    const mpg_i32_avx2 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    return (mpg_f32_avx2)((mpg_i32_avx2)x & ((mpg_all_raw_avx2((int32_t)lanes) & bit) == 0));
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
/* ---- doubles and words ---- */
MPG_AVX2 mpg_i64_avx2 mpg_bits64_raw_avx2(mpg_f64_avx2 x) { return (mpg_i64_avx2)x; }
MPG_AVX2 mpg_f64_avx2 mpg_value64_raw_avx2(mpg_i64_avx2 x) { return (mpg_f64_avx2)x; }
MPG_AVX2 mpg_f64_avx2 mpg_all64_raw_avx2(double x) { return _mm256_set1_pd(x); }
MPG_AVX2 mpg_i64_avx2 mpg_all_bits_raw_avx2(int64_t x) { return (mpg_i64_avx2)_mm256_set1_epi64x(x); }
MPG_AVX2 __m256i mpg_all_words_raw_avx2(int32_t x) { return _mm256_set1_epi16((int16_t)x); }
MPG_AVX2 __m256i mpg_pairs_raw_avx2(uint32_t words) { return _mm256_set1_epi32((int)words); }
MPG_AVX2 __m128i mpg_first_of_4_avx2(int count) { return _mm_cmpgt_epi32(_mm_set1_epi32(count), _mm_setr_epi32(0, 1, 2, 3)); }
MPG_AVX2 mpg_f64_avx2 mpg_some64_raw_avx2(const float *from, int count)
{
    return _mm256_cvtps_pd(_mm_maskload_ps(from, mpg_first_of_4_avx2(count)));
}
MPG_AVX2 void mpg_put_some64_raw_avx2(float *to, mpg_f64_avx2 x, int count)
{
    if (count >= 4)
        _mm_storeu_ps(to, _mm256_cvtpd_ps(x));
    else
        _mm_maskstore_ps(to, mpg_first_of_4_avx2(count), _mm256_cvtpd_ps(x));
}
MPG_AVX2 __m256i mpg_add_words_raw_avx2(__m256i x, __m256i y) { return _mm256_add_epi16(x, y); }
MPG_AVX2 __m256i mpg_larger_words_raw_avx2(__m256i x, __m256i y) { return _mm256_max_epi16(x, y); }
MPG_AVX2 __m256i mpg_smaller_words_raw_avx2(__m256i x, __m256i y) { return _mm256_min_epi16(x, y); }
MPG_AVX2 __m256i mpg_sixteenths_raw_avx2(__m256i x) { return _mm256_srai_epi16(x, 4); }
MPG_AVX2 __m256i mpg_words_below_raw_avx2(__m256i x, __m256i y) { return _mm256_cmpgt_epi16(y, x); }
MPG_AVX2 __m256i mpg_count_below_raw_avx2(__m256i count, __m256i x, __m256i y)
{
    return _mm256_add_epi16(count, _mm256_cmpgt_epi16(y, x));
}
MPG_AVX2 __m256i mpg_mul_words_raw_avx2(__m256i x, __m256i y) { return _mm256_mullo_epi16(x, y); }
MPG_AVX2 __m256i mpg_larger_where_common_raw_avx2(__m256i x, __m256i y, __m256i a, __m256i b)
{
    const __m256i apart = _mm256_cmpeq_epi16(_mm256_and_si256(a, b), _mm256_setzero_si256());
    return _mm256_max_epi16(x, _mm256_andnot_si256(apart, y));
}
MPG_AVX2 mpg_f64_avx2 mpg_numbers_raw_avx2(const int16_t *from)
{
    return _mm256_cvtepi32_pd(_mm_cvtepi16_epi32(_mm_loadl_epi64((const __m128i *)from)));
}
MPG_AVX2 mpg_f64_avx2 mpg_powers_of_raw_avx2(const int16_t *from)
{
    return (mpg_f64_avx2)_mm256_slli_epi64(_mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)from)), 52);
}
MPG_AVX2 __m256i mpg_raised_words_raw_avx2(__m256i x, __m256i y)
{
    return _mm256_andnot_si256(_mm256_cmpeq_epi16(x, _mm256_setzero_si256()), _mm256_max_epi16(x, y));
}
MPG_AVX2 int mpg_any_words_raw_avx2(__m256i x) { return !_mm256_testz_si256(x, x); }
MPG_AVX2 int mpg_any_outside_raw_avx2(__m256i x, __m256i low, __m256i high)
{
    return _mm256_movemask_epi8(_mm256_or_si256(_mm256_cmpgt_epi16(low, x), _mm256_cmpgt_epi16(x, high)));
}
/* The bytes of a shuffle that are alike in both halves. */
MPG_AVX2 __m256i mpg_bytes_avx2(int d, int c, int b, int a) { return _mm256_setr_epi32(a, b, c, d, a, b, c, d); }
MPG_AVX2 void mpg_starts_raw_avx2(__m256i x, mpg_f64_avx2 *start)
{
    start[0] = (mpg_f64_avx2)_mm256_shuffle_epi8(x, mpg_bytes_avx2(0x09088080, (int)0x80800908, 0x01008080, (int)0x80800100));
    start[1] = (mpg_f64_avx2)_mm256_shuffle_epi8(x, mpg_bytes_avx2(0x0B0A8080, (int)0x80800B0A, 0x03028080, (int)0x80800302));
    start[2] = (mpg_f64_avx2)_mm256_shuffle_epi8(x, mpg_bytes_avx2(0x0D0C8080, (int)0x80800D0C, 0x05048080, (int)0x80800504));
    start[3] = (mpg_f64_avx2)_mm256_shuffle_epi8(x, mpg_bytes_avx2(0x0F0E8080, (int)0x80800F0E, 0x07068080, (int)0x80800706));
}
MPG_AVX2 void mpg_ends_raw_avx2(__m256i high, __m256i low, mpg_f64_avx2 *end)
{
    const __m256i even = mpg_bytes_avx2(0x09088080, (int)0x80800D0C, 0x01008080, (int)0x80800504);
    const __m256i odd = mpg_bytes_avx2(0x0B0A8080, (int)0x80800F0E, 0x03028080, (int)0x80800706);
    /* words 0 and 1, then 2 and 3, of `high` and of `low`, side by side in each 64-bit lane */
    const __m256i first = _mm256_blend_epi32(high, _mm256_slli_epi64(low, 32), 0xAA);
    const __m256i second = _mm256_blend_epi32(_mm256_srli_epi64(high, 32), low, 0xAA);
    end[0] = (mpg_f64_avx2)_mm256_shuffle_epi8(first, even);
    end[1] = (mpg_f64_avx2)_mm256_shuffle_epi8(first, odd);
    end[2] = (mpg_f64_avx2)_mm256_shuffle_epi8(second, even);
    end[3] = (mpg_f64_avx2)_mm256_shuffle_epi8(second, odd);
}
MPG_AVX2 void mpg_powers_raw_avx2(__m256i x, mpg_f64_avx2 *power)
{
    const mpg_i64_avx2 highest = mpg_all_bits_raw_avx2((int64_t)UINT64_C(0xFFFF000000000000)), words = (mpg_i64_avx2)x;
    power[0] = (mpg_f64_avx2)(words << 48);
    power[1] = (mpg_f64_avx2)(words << 32 & highest);
    power[2] = (mpg_f64_avx2)(words << 16 & highest);
    power[3] = (mpg_f64_avx2)(words & highest);
}
MPG_AVX2 __m256i mpg_exponent_words_raw_avx2(const mpg_f64_avx2 *x)
{
    const __m256i x1 = (__m256i)x[1], x2 = (__m256i)x[2];
    const __m256i low = _mm256_blend_epi16(_mm256_srli_epi64((__m256i)x[0], 48), _mm256_srli_epi64(x1, 32), 0x22);
    const __m256i high = _mm256_blend_epi16((__m256i)x[3], _mm256_srli_epi64(x2, 16), 0x44);
    return _mm256_and_si256(_mm256_blend_epi32(low, high, 0xAA), _mm256_set1_epi16(0x7FF0));
}
MPG_AVX2 mpg_f64_avx2 mpg_where_word_raw_avx2(__m256i words, int g, mpg_f64_avx2 x, mpg_f64_avx2 y)
{
    return _mm256_blendv_pd(y, x, (__m256d)_mm256_slli_epi64(words, 48 - 16 * g));
}
MPG_AVX2 mpg_f64_avx2 mpg_larger64_raw_avx2(mpg_f64_avx2 x, mpg_f64_avx2 y) { return _mm256_max_pd(x, y); }
MPG_AVX2 mpg_f64_avx2 mpg_smaller64_raw_avx2(mpg_f64_avx2 x, mpg_f64_avx2 y) { return _mm256_min_pd(x, y); }
MPG_AVX2 mpg_f64_avx2 mpg_below64_raw_avx2(mpg_f64_avx2 a, mpg_f64_avx2 b, mpg_f64_avx2 x, mpg_f64_avx2 y)
{
    return _mm256_blendv_pd(y, x, _mm256_cmp_pd(a, b, _CMP_LT_OQ));
}
MPG_AVX2 mpg_f64_avx2 mpg_where_more64_raw_avx2(mpg_f64_avx2 x, mpg_f64_avx2 a, mpg_f64_avx2 b)
{
    return _mm256_and_pd(x, _mm256_cmp_pd(a, b, _CMP_GT_OQ));
}
MPG_AVX2 mpg_i64_avx2 mpg_unlike64_raw_avx2(mpg_f64_avx2 x, mpg_f64_avx2 y) { return (mpg_i64_avx2)(x != y) & 1; }
MPG_AVX2 unsigned mpg_beyond64_raw_avx2(mpg_f64_avx2 x, double limit)
{
    const __m256d size = _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    return (unsigned)_mm256_movemask_pd(_mm256_cmp_pd(size, _mm256_set1_pd(limit), _CMP_GE_OQ));
}
MPG_AVX2 mpg_f64_avx2 mpg_without64_raw_avx2(mpg_f64_avx2 x, unsigned lanes)
{
    const mpg_i64_avx2 places = {1, 2, 4, 8};
    return (mpg_f64_avx2)((mpg_i64_avx2)x & ((mpg_all_bits_raw_avx2(lanes) & places) == 0));
}
MPG_AVX2 mpg_f64_avx2 mpg_madd64_raw_avx2(mpg_f64_avx2 a, mpg_f64_avx2 b, mpg_f64_avx2 c) { return _mm256_fmadd_pd(a, b, c); }
#define mpg_madd_down_raw_avx2 mpg_madd64_raw_avx2
#define mpg_madd_truncated_raw_avx2 mpg_madd64_raw_avx2
MPG_AVX2 mpg_f64_avx2 mpg_chopped32_raw_avx2(mpg_f64_avx2 x) { return _mm256_cvtps_pd(_mm256_cvtpd_ps(x)); }
MPG_AVX2 mpg_f64_avx2 mpg_add_down_raw_avx2(mpg_f64_avx2 magic, mpg_f64_avx2 x) { return magic + x; }
#endif
