/* Packing of groups.h in AVX-512 intrinsics, for group sums by bytes: A's fixed-point numbers come with an offset that makes them positive,
 * so that one instruction multiplies bytes and adds pairs; the panel holds what the offset adds, negated. */
#ifndef MPG_GROUPS_PACK_AVX512_H
#define MPG_GROUPS_PACK_AVX512_H

#include "groups.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES512
#define MPG_LANES512 MPG_TARGET_AVX512 static inline __attribute__((always_inline))
#endif

/* Fixed-point numbers of 64 encodings. */
MPG_LANES512 __m512i mpg_group_decode512(const mpg_group_source *s, __m512i codes)
{
    if (s->nibbles) {
        const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)s->values));
        return _mm512_shuffle_epi8(table, _mm512_and_si512(codes, _mm512_set1_epi8(15)));
    }
    uint8_t bytes[64];
    _mm512_storeu_si512(bytes, codes);
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)s->values[bytes[i]];
    return _mm512_loadu_si512(bytes);
}

/* Encodings of the columns at k and the place after it, side by side; 0 beyond the last one. */
MPG_LANES512 __m512i mpg_group_codes512(const mpg_group_source *s, int64_t first, int count, int64_t k, int64_t next)
{
    const uint8_t *source = (const uint8_t *)s->at->data + first * s->at->outer;
    uint8_t codes[2 * MPG_GROUP_LANES] = {0};
    if (s->at->outer == 1) {
        const __mmask32 exists = (__mmask32)(count >= 32 ? 0xFFFFFFFFu : (1u << count) - 1);
        const __m256i low = _mm256_maskz_loadu_epi8(k < 0 ? 0 : exists, source + (k < 0 ? 0 : k) * s->at->inner);
        const __m256i high = _mm256_maskz_loadu_epi8(next < 0 ? 0 : exists, source + (next < 0 ? 0 : next) * s->at->inner);
        return _mm512_or_si512(_mm512_cvtepu8_epi16(low), _mm512_slli_epi16(_mm512_cvtepu8_epi16(high), 8));
    }
    if (s->at->inner == 1 && k >= 0 && next >= 0) {
        for (int j = 0; j < count; j++)
            memcpy(codes + 2 * j, source + j * s->at->outer + k, 2);
        return _mm512_loadu_si512(codes);
    }
    for (int j = 0; j < count; j++) {
        codes[2 * j] = k < 0 ? 0 : source[j * s->at->outer + k * s->at->inner];
        codes[2 * j + 1] = next < 0 ? 0 : source[j * s->at->outer + next * s->at->inner];
    }
    return _mm512_loadu_si512(codes);
}

/* Columns of B as one panel: int8 [group][q / 2][lane][2]; in `start` what the offset of A adds to a group sum, negated; in `words`
 * which numbers are not zero. */
MPG_TARGET_AVX512 static void mpg_group_pack_b_avx512(const mpg_group_task *t, const mpg_group_source *s, int64_t first,
                                                      int count, int64_t begin, int64_t end, const mpg_group_panel *panel)
{
    int8_t *values = panel->values;
    int16_t *start = panel->start, *words = panel->words;
    const __m512i offset = _mm512_set1_epi8((char)t->offset), low = _mm512_set1_epi16(0x00FF);
    for (int64_t g = begin; g < end; g++, start += MPG_GROUP_LANES, words += MPG_GROUP_WORDS) {
        __m512i sum = _mm512_setzero_si512(), filled = sum;
        for (int q = 0; q < t->group; q += 2, values += 2 * MPG_GROUP_LANES) {
            const int64_t k = mpg_group_position(s, g, q), next = mpg_group_position(s, g, q + 1);
            const __m512i numbers = mpg_group_decode512(s, mpg_group_codes512(s, first, count, k, next));
            const __mmask32 even = _mm512_test_epi16_mask(numbers, low);
            const __mmask32 odd = _mm512_test_epi16_mask(numbers, _mm512_slli_epi16(low, 8));
            filled = _mm512_mask_add_epi16(filled, even, filled, _mm512_set1_epi16((short)(1 << q)));
            filled = _mm512_mask_add_epi16(filled, odd, filled, _mm512_set1_epi16((short)(2 << q)));
            _mm512_storeu_si512(values, numbers);
            sum = _mm512_sub_epi16(sum, _mm512_maddubs_epi16(offset, numbers));
        }
        _mm512_storeu_si512(start, sum);
        _mm512_storeu_si512(words + MPG_GROUP_LANES, filled);
    }
}

/* The first `count` of 64 lanes; none where it is negative. */
MPG_LANES512 uint64_t mpg_group_first512(int64_t count)
{
    return count >= 64 ? UINT64_MAX : count <= 0 ? 0 : (UINT64_C(1) << count) - 1;
}

/* A row of A: pairs of bytes with the offset, twice over in 32 bits; which numbers are not zero. */
MPG_TARGET_AVX512 static void mpg_group_pack_a_avx512(const mpg_group_task *t, const mpg_group_source *s, int64_t row,
                                                      int64_t begin, int64_t end, uint32_t *values, uint32_t *words)
{
    const __m512i offset = _mm512_set1_epi8((char)t->offset);
    const uint8_t *source = (const uint8_t *)s->at->data + row * s->at->outer;
    const int64_t places = (end - begin) * t->group;
    for (int64_t at = 0; at < places; at += 64) {
        const int64_t rest = places - at < 64 ? places - at : 64, k = begin * s->given + at;
        uint8_t codes[64] = {0};
        if (s->given == t->group) {
            const int64_t left = s->k - k < rest ? s->k - k : rest;
            if (s->at->inner == 1)
                _mm512_storeu_si512(codes, _mm512_maskz_loadu_epi8(mpg_group_first512(left), source + k));
            for (int64_t i = 0; s->at->inner != 1 && i < left; i++)
                codes[i] = source[(k + i) * s->at->inner];
        } else {
            for (int64_t i = 0; i < rest; i++) {
                const int64_t position = mpg_group_position(s, begin + (at + i) / t->group, (at + i) % t->group);
                codes[i] = position < 0 ? 0 : source[position * s->at->inner];
            }
        }
        const __m512i numbers = mpg_group_decode512(s, _mm512_loadu_si512(codes));
        const uint64_t filled = _mm512_test_epi8_mask(numbers, numbers);
        const __m512i pairs = _mm512_add_epi8(numbers, offset);
        const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(pairs));
        const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(pairs, 1));
        const uint64_t exist = mpg_group_first512(rest / 2);
        for (int64_t i = 0; t->group == 16 && i < rest / 16; i++)
            words[2 * (at / 16 + i) + 1] = 0x00010001u * (uint16_t)(filled >> 16 * i);
        _mm512_mask_storeu_epi32(values + at / 2, (__mmask16)exist, _mm512_or_si512(low, _mm512_slli_epi32(low, 16)));
        _mm512_mask_storeu_epi32(values + at / 2 + 16, (__mmask16)(exist >> 16),
                                 _mm512_or_si512(high, _mm512_slli_epi32(high, 16)));
    }
    for (int64_t g = begin; t->group != 16 && g < end; g++)
        words[2 * (g - begin) + 1] = mpg_group_filled(t, s, row, g);
}
#endif
#endif
