/* Packing of fp16 operands for the 32-bit lanes in AVX-512 intrinsics: what mpg_narrow_value of narrow.h gives, 16 at a time.
 *
 * The CPU converts fp16 to float32 exactly, subnormal numbers to normal ones, so that the float32 exponent field is the
 * leading exponent.
 */
#ifndef MPG_NARROW_FP16_AVX512_H
#define MPG_NARROW_FP16_AVX512_H

#include "narrow.h"

#if MPG_X86_VARIANTS
#define MPG_LANES512 MPG_TARGET_AVX512 MPG_INLINE

MPG_INLINE int mpg_is_fp16(const mpg_operand *f)
{
    return f->size == 2 && f->fraction_bits == 10 && f->padding_bits == 0 && f->bias == 15 && f->sign_shift == 15 &&
           f->sign_mask == 1 && f->max_magnitude == 0x7BFF && f->magnitude_mask == 0x7FFF;
}

/* Values of up to 16 encodings, infinities and NaNs as zero, and the float32 fields of their alignment exponents; `regular`
 * marks finite numbers other than zero. */
MPG_LANES512 __m512 mpg_fp16_parts(const uint16_t *codes, __mmask16 exists, int emin, __m512i *field, __mmask16 *regular,
                                   __mmask16 *special)
{
    const __m256i x = _mm256_maskz_loadu_epi16(exists, codes);
    const __m512i magnitude = _mm512_cvtepu16_epi32(_mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)));
    const __m512 value = _mm512_cvtph_ps(x);
    const __m512i bits = _mm512_and_si512(_mm512_castps_si512(value), _mm512_set1_epi32(0x7FFFFFFF));
    const __mmask16 beyond = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7BFF));
    *special |= beyond;
    *regular = _mm512_test_epi32_mask(magnitude, magnitude) & (__mmask16)~beyond;
    *field = _mm512_max_epi32(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(emin + 127));
    return _mm512_maskz_mov_ps((__mmask16)~beyond, value);
}

#define MPG_FIRST_LANES(count) ((__mmask16)((count) >= 16 ? 0xFFFF : (1 << (count)) - 1))

/* `count` encodings in a row, as of a row of A. Whether one is an infinity or NaN. */
MPG_TARGET_AVX512 static int mpg_fp16_pack_a(const uint16_t *codes, int64_t count, const mpg_operand *f, float *values,
                                             uint32_t *exponents)
{
    const __m512i fourfold = _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0x00000000);
    __mmask16 special = 0;
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 exists = MPG_FIRST_LANES(count - i);
        __m512i field;
        __mmask16 regular;
        const __m512 value = mpg_fp16_parts(codes + i, exists, f->emin, &field, &regular, &special);
        const __m512i byte = _mm512_maskz_add_epi32(regular, field, _mm512_set1_epi32(143 - 127));
        _mm512_mask_storeu_ps(values + i, exists, value);
        _mm512_mask_storeu_epi32(exponents + i, exists, _mm512_shuffle_epi8(byte, fourfold));
    }
    return special != 0;
}

/* `count` encodings of B in a row; whether one is an infinity or NaN. */
MPG_LANES512 int mpg_fp16_lanes(const uint16_t *codes, int64_t count, const mpg_operand *f, float *values, uint8_t *exponents,
                                __mmask16 *marks)
{
    const __m512i zero = _mm512_set1_epi32(MPG_NO_BYTE_B);
    __mmask16 any = 0;
    for (int64_t i = 0; i < count; i += 16) {
        const __mmask16 exists = MPG_FIRST_LANES(count - i);
        __m512i field;
        __mmask16 regular, special = 0;
        const __m512 value = mpg_fp16_parts(codes + i, exists, f->emin, &field, &regular, &special);
        const __m512i byte = _mm512_mask_sub_epi32(zero, regular, _mm512_set1_epi32(16 + 127), field);
        _mm512_mask_storeu_ps(values + i, exists, value);
        _mm_mask_storeu_epi8(exponents + i, exists, _mm512_cvtepi32_epi8(byte));
        any |= special;
        if (marks)
            marks[i / 16] |= special;
    }
    return any != 0;
}

MPG_TARGET_AVX512 static int mpg_fp16_decode_b(const uint16_t *codes, int64_t count, const mpg_operand *f, float *values,
                                               uint8_t *exponents)
{
    return mpg_fp16_lanes(codes, count, f, values, exponents, NULL);
}

/* As mpg_narrow_pack_b_plain_body, for lanes that are neighbours in memory. */
MPG_TARGET_AVX512 static void mpg_fp16_pack_b(const mpg_source *s, const mpg_operand *f, const mpg_narrow_panel *panel,
                                              int64_t begin, int64_t end, uint8_t *special)
{
    const int64_t first = panel->first;
    const int count = panel->count, width = panel->width;
    float *values = panel->values;
    uint8_t *exponents = panel->exponents;
    __mmask16 marks[MPG_PANEL / 16] = {0};
    for (int64_t k = begin; k < end; k++, values += width, exponents += width) {
        const int64_t position = s->order[k];
        const int present = position < 0 ? 0 : count;
        mpg_fetch_position(s, f->size, first, count, k, end);
        if (present)
            mpg_fp16_lanes((const uint16_t *)s->data + first + position * s->inner, count, f, values, exponents, marks);
        for (int j = present; j < width; j++) {
            values[j] = 0;
            exponents[j] = MPG_NO_BYTE_B;
        }
    }
    for (int j = 0; j < count; j++)
        special[first + j] |= marks[j / 16] >> j % 16 & 1;
}
#endif
#endif
