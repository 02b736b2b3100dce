/* The algorithm of groups.h in AVX-512 intrinsics: same bits, group sums by bytes.
 *
 * A's fixed-point numbers come with an offset that makes them positive, so that one instruction multiplies bytes and adds pairs;
 * the panel holds what the offset adds, negated. With M = 1.5 * 2^52 units of the sign of x, M + x rounded toward zero is M plus x
 * truncated to its unit: one fused multiply-add multiplies a group sum by its scales, aligns and truncates.
 */
#ifndef MPG_GROUPS_AVX512_H
#define MPG_GROUPS_AVX512_H

#include "groups.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#ifndef MPG_LANES512
#define MPG_LANES512 MPG_TARGET_AVX512 static inline __attribute__((always_inline))
#endif
#define MPG_GROUP_TOWARD_ZERO (_MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC)

/* ---- packing ------------------------------------------------------------------------------------------------------- */
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
    const uint8_t *source = s->data + first * s->outer;
    uint8_t codes[2 * MPG_GROUP_LANES] = {0};
    if (s->outer == 1) {
        const __mmask32 exists = (__mmask32)(count >= 32 ? 0xFFFFFFFFu : (1u << count) - 1);
        const __m256i low = _mm256_maskz_loadu_epi8(k < 0 ? 0 : exists, source + (k < 0 ? 0 : k) * s->inner);
        const __m256i high = _mm256_maskz_loadu_epi8(next < 0 ? 0 : exists, source + (next < 0 ? 0 : next) * s->inner);
        return _mm512_or_si512(_mm512_cvtepu8_epi16(low), _mm512_slli_epi16(_mm512_cvtepu8_epi16(high), 8));
    }
    if (s->inner == 1 && k >= 0 && next >= 0) {
        for (int j = 0; j < count; j++)
            memcpy(codes + 2 * j, source + j * s->outer + k, 2);
        return _mm512_loadu_si512(codes);
    }
    for (int j = 0; j < count; j++) {
        codes[2 * j] = k < 0 ? 0 : source[j * s->outer + k * s->inner];
        codes[2 * j + 1] = next < 0 ? 0 : source[j * s->outer + next * s->inner];
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
    const uint8_t *source = s->data + row * s->outer;
    const int64_t places = (end - begin) * t->group;
    for (int64_t at = 0; at < places; at += 64) {
        const int64_t rest = places - at < 64 ? places - at : 64, k = begin * s->given + at;
        uint8_t codes[64] = {0};
        if (s->given == t->group) {
            const int64_t left = s->k - k < rest ? s->k - k : rest;
            if (s->inner == 1)
                _mm512_storeu_si512(codes, _mm512_maskz_loadu_epi8(mpg_group_first512(left), source + k));
            for (int64_t i = 0; s->inner != 1 && i < left; i++)
                codes[i] = source[(k + i) * s->inner];
        } else {
            for (int64_t i = 0; i < rest; i++) {
                const int64_t position = mpg_group_position(s, begin + (at + i) / t->group, (at + i) % t->group);
                codes[i] = position < 0 ? 0 : source[position * s->inner];
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

/* ---- rows ---------------------------------------------------------------------------------------------------------- */
/* Group sum of 32 columns. */
MPG_LANES512 __m512i mpg_group_sum512(int group, const uint32_t *a, const int8_t *b, const int16_t *start)
{
    __m512i sum = _mm512_loadu_si512(start);
#pragma GCC unroll 8
    for (int q = 0; q < group / 2; q++) {
        const __m512i x = _mm512_set1_epi32((int)a[q]);
        sum = _mm512_add_epi16(sum, _mm512_maddubs_epi16(x, _mm512_loadu_si512(b + 2 * q * MPG_GROUP_LANES)));
    }
    return sum;
}

/* Eight words of each quarter of x, extended to 64 bits. */
#define MPG_GROUP_QUARTERS512(EXTEND, x, to)                                                                                   \
    to[0] = EXTEND(_mm512_castsi512_si128(x));                                                                                 \
    to[1] = EXTEND(_mm512_extracti32x4_epi32(x, 1));                                                                           \
    to[2] = EXTEND(_mm512_extracti32x4_epi32(x, 2));                                                                           \
    to[3] = EXTEND(_mm512_extracti32x4_epi32(x, 3));

/* magic with the sign of x */
MPG_LANES512 __m512d mpg_group_signed512(__m512d magic, __m512d x)
{
    const __m512i sign = _mm512_set1_epi64(INT64_MIN);
    return _mm512_castsi512_pd(
        _mm512_ternarylogic_epi64(_mm512_castpd_si512(magic), _mm512_castpd_si512(x), sign, 0xF8)); /* magic | (x & sign) */
}

/* One operation on 32 columns. */
MPG_LANES512 void mpg_group_step512(int group, int groups, const mpg_group_task *t, const mpg_group_operands *p, __m512d *c,
                                    __mmask8 *infinite)
{
    const uint32_t *a = p->a, *ea = p->ea;
    const int8_t *b = p->b;
    const __m512d least = _mm512_set1_pd(0x1p-126);
    const __m512d to_magic = _mm512_set1_pd(mpg_group_power(-t->fraction_bits) * 0x1.8p52);
    const __m512d zero_sign = _mm512_set1_pd(t->positive_zero ? 0.0 : -0.0);
    const __m512i powers = _mm512_set1_epi64(INT64_C(0x7FF0000000000000));
    __m512i sums[MPG_GROUPS_MAX], parts[4], words = _mm512_set1_epi16((short)(t->floor + MPG_GROUP_WORD_BIAS));
    __m512d magic[4], total[4];
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
        const int16_t *y = p->eb + g * MPG_GROUP_WORDS;
        const __m512i e = _mm512_add_epi16(_mm512_set1_epi32((int)ea[2 * g]), _mm512_loadu_si512(y));
        const __m512i filled = _mm512_loadu_si512(y + MPG_GROUP_LANES);
        const __mmask32 takes_part = _mm512_test_epi16_mask(_mm512_set1_epi32((int)ea[2 * g + 1]), filled);
        sums[g] = mpg_group_sum512(group, a + g * (group / 2), b + g * group * MPG_GROUP_LANES, p->start + g * MPG_GROUP_LANES);
        words = _mm512_mask_max_epi16(words, takes_part, words, e);
    }
    MPG_GROUP_QUARTERS512(_mm512_cvtepu16_epi64, words, parts)
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512d top = _mm512_castsi512_pd(_mm512_slli_epi64(parts[i], 52));
        const __m512i own = _mm512_and_si512(_mm512_castpd_si512(c[i]), powers);
        const __m512d raw = _mm512_maskz_max_pd(_mm512_test_epi64_mask(own, own), _mm512_castsi512_pd(own), least);
        magic[i] = _mm512_mul_pd(_mm512_max_pd(top, raw), to_magic);
        const __m512d signed_magic = mpg_group_signed512(magic[i], c[i]);
        total[i] = _mm512_sub_pd(_mm512_add_round_pd(c[i], signed_magic, MPG_GROUP_TOWARD_ZERO), signed_magic);
    }
#pragma GCC unroll 4
    for (int g = 0; g < groups; g++) {
        const __m512d scale = _mm512_set1_pd(p->sa[g]);
        MPG_GROUP_QUARTERS512(_mm512_cvtepi16_epi64, sums[g], parts)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            const __m512d sum = _mm512_cvtepi64_pd(parts[i]), signed_magic = mpg_group_signed512(magic[i], sum);
            const __m512d both = _mm512_mul_pd(scale, _mm512_loadu_pd(p->sb + g * MPG_GROUP_LANES + 8 * i));
            const __m512d aligned = _mm512_fmadd_round_pd(sum, both, signed_magic, MPG_GROUP_TOWARD_ZERO);
            total[i] = _mm512_add_pd(total[i], _mm512_sub_pd(aligned, signed_magic));
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        infinite[i] = _mm512_cmp_pd_mask(_mm512_abs_pd(total[i]), _mm512_set1_pd(0x1p128), _CMP_GE_OQ);
        c[i] = _mm512_add_pd(_mm512_cvtps_pd(_mm512_cvt_roundpd_ps(total[i], MPG_GROUP_TOWARD_ZERO)), zero_sign);
    }
}

/* The first row of a tile over several operations. */
MPG_LANES512 void mpg_group_row_body512(int group, int groups, const mpg_group_task *t, const mpg_group_operands *operands,
                                        const mpg_result_tile *tile, int64_t steps)
{
    mpg_group_operands p = *operands;
    const int count = tile->columns;
    float *d = tile->d;
    __mmask8 exists[4];
    __m512d c[4];
    for (int i = 0; i < 4; i++) {
        exists[i] = (__mmask8)(count >= 8 * (i + 1) ? 0xFF : count > 8 * i ? (1 << (count - 8 * i)) - 1 : 0);
        c[i] = _mm512_cvtps_pd(_mm256_maskz_loadu_ps(exists[i], d + 8 * i));
    }
    for (int64_t s = 0; s < steps; s++) {
        __mmask8 infinite[4];
        mpg_group_step512(group, groups, t, &p, c, infinite);
        if (__builtin_expect((infinite[0] | infinite[1] | infinite[2] | infinite[3]) != 0, 0))
            for (int i = 0; i < 4; i++) {
                c[i] = _mm512_maskz_mov_pd((__mmask8)~infinite[i], c[i]);
                for (int j = 0; j < 8; j++)
                    if ((infinite[i] & exists[i]) >> j & 1)
                        tile->redo[8 * i + j] = 1;
            }
        p = mpg_group_from(MPG_ISA_AVX512, &p, 0, groups, group);
    }
    for (int i = 0; i < 4; i++)
        _mm256_mask_storeu_ps(d + 8 * i, exists[i], _mm512_cvtpd_ps(c[i]));
}

MPG_TARGET_AVX512 static void mpg_group_row_avx512(const mpg_group_task *t, const mpg_group_operands *p,
                                                   const mpg_result_tile *tile, int64_t steps)
{
    if (t->group == 16 && t->groups == 4)
        mpg_group_row_body512(16, 4, t, p, tile, steps);
    else
        mpg_group_row_body512(t->group, t->groups, t, p, tile, steps);
}
#endif
#endif
