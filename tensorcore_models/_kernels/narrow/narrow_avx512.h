/* The algorithm of narrow.h in AVX-512 intrinsics: same operands (A not prescaled), same bits.
 *
 * Differences: the scaling to the unit is a multiplication, under flush-to-zero because subnormal products are slow;
 * conversion from int32 rounds toward zero by itself.
 */
#ifndef MPG_NARROW_AVX512_H
#define MPG_NARROW_AVX512_H

#include "narrow.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#define MPG_FLUSH_TO_ZERO 0x8000u

#define MPG_LANES512 MPG_TARGET_AVX512 static inline __attribute__((always_inline))

/* int32 sums of products and c to float32, truncated, or to odd (the last bit set where anything was cut off); where the
 * sum left the int32 range its true magnitude is unsigned. */
MPG_LANES512 __m512 mpg_float_of_sum(__m512i products, __m512i c, int wide_sum, int to_odd)
{
    const __m512i total = _mm512_add_epi32(products, c);
    __m512 d = _mm512_cvt_roundepi32_ps(total, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    __mmask16 inexact = to_odd ? _mm512_cmpneq_epi32_mask(_mm512_cvttps_epi32(d), total) : 0;
    if (wide_sum) {
        /* both addends have the sign that the total lacks */
        const __m512i wrapped = _mm512_ternarylogic_epi32(products, c, total, 0x42);
        const __mmask16 bad = _mm512_movepi32_mask(wrapped);
        if (__builtin_expect(bad != 0, 0)) {
            const __mmask16 negative = _mm512_movepi32_mask(products);
            const __m512i magnitude = _mm512_mask_sub_epi32(total, negative, _mm512_setzero_si512(), total);
            __m512 u = _mm512_cvt_roundepu32_ps(magnitude, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
            u = _mm512_mask_sub_ps(u, negative, _mm512_setzero_ps(), u);
            d = _mm512_mask_mov_ps(d, bad, u);
            const __mmask16 tail = _mm512_test_epi32_mask(total, _mm512_set1_epi32(255));
            inexact = (__mmask16)((inexact & ~bad) | (tail & bad));
        }
    }
    if (to_odd) {
        const __m512i bits = _mm512_castps_si512(d);
        d = _mm512_castsi512_ps(_mm512_mask_or_epi32(bits, inexact, bits, _mm512_set1_epi32(1)));
    }
    return d;
}

/* The first `rows` rows of a tile, whose columns are of a panel of 16 * groups; lanes whose fp16 result became infinite are
 * marked. With `pair` lanes 8 to 15 belong to another product. */
MPG_LANES512 void mpg_narrow_rows_avx512(int rows, int groups, int terms, int output, int wide_sum, int pair,
                                         const mpg_narrow_task *t, const mpg_narrow_operands *p, const mpg_result_tile *tile,
                                         int64_t steps)
{
    const float *a = p->a, *b = p->b;
    const uint32_t *ea = p->ea;
    const uint8_t *eb = p->eb;
    const uint64_t *quads = p->quads;
    const int64_t a_stride = p->stride, other = p->other, ldd = tile->ld;
    const int count = tile->columns;
    float *c = tile->d;
    const __m512i exponent_mask = _mm512_set1_epi32(0x7F800000);
    const __m512i to_scale = _mm512_set1_epi32((int)((uint32_t)(t->fraction_bits + 254) << 23));
    const __m512i to_unit = _mm512_set1_epi32(254 << 23);
    const __m512i keep = _mm512_set1_epi32((int)t->keep);
    const __m512i raw = _mm512_set1_epi32(t->raw_exponent << 23);
    const int width = 16 * groups;
    const int64_t eight = INT64_C(0x0101010101010101); /* byte r of quads for lanes of row r, 8 of each product */
    const __m512i spread = _mm512_set_epi64(7 * eight, 6 * eight, 5 * eight, 4 * eight, 3 * eight, 2 * eight, eight, 0);
    __m512 d[4][4], added[4][4];
    __mmask16 exists[4];

    for (int g = 0; g < groups; g++)
        exists[g] = (__mmask16)(count >= 16 * (g + 1) ? 0xFFFF : count > 16 * g ? (1 << (count - 16 * g)) - 1 : 0);
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < groups; g++)
            added[r][g] = d[r][g] = _mm512_maskz_loadu_ps(exists[g], c + r * ldd + 16 * g);
    for (int64_t s = 0; s < steps; s++) {
        const int place = t->chain ? (int)(s % t->chain) : -1;
        if (place == 0)
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < groups; g++) {
                    added[r][g] = d[r][g];
                    d[r][g] = _mm512_setzero_ps();
                }
        __m512i sum[4][4], c_part[4][4];
        __m512 scale[4][4];
        __m512i tops = _mm512_set1_epi8((char)t->floor);
        if (pair && rows == 4) {
#pragma GCC unroll 32
            for (int q = 0; q < terms; q++) {
                const __m512i x = _mm512_shuffle_epi8(_mm512_set1_epi64((int64_t)quads[q]), spread);
                const __m512i y = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(eb + q * 16)));
                tops = _mm512_max_epu8(tops, _mm512_subs_epu8(x, y));
            }
            quads += terms;
        }
        for (int r = 0; r < rows; r++) {
            __m512i field[4];
            if (pair && rows == 4) {
                field[0] = _mm512_cvtepu8_epi32(r == 0   ? _mm512_castsi512_si128(tops)
                                                : r == 1 ? _mm512_extracti32x4_epi32(tops, 1)
                                                : r == 2 ? _mm512_extracti32x4_epi32(tops, 2)
                                                         : _mm512_extracti32x4_epi32(tops, 3));
            } else if (groups == 4) {
                __m512i h = _mm512_set1_epi8((char)t->floor);
#pragma GCC unroll 32
                for (int q = 0; q < terms; q++) {
                    const __m512i x = _mm512_set1_epi32((int)ea[r * a_stride + q]);
                    h = _mm512_max_epu8(h, _mm512_subs_epu8(x, _mm512_loadu_si512(eb + q * 64)));
                }
                field[0] = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(h));
                field[1] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(h, 1));
                field[2] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(h, 2));
                field[3] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(h, 3));
            } else {
                __m128i h = _mm_set1_epi8((char)t->floor);
#pragma GCC unroll 32
                for (int q = 0; q < terms; q++) {
                    __m128i x = _mm_set1_epi32((int)ea[r * a_stride + q]);
                    if (pair)
                        x = _mm_unpacklo_epi64(x, _mm_set1_epi32((int)ea[r * a_stride + other + q]));
                    h = _mm_max_epu8(h, _mm_subs_epu8(x, _mm_loadu_si128((const __m128i *)(eb + q * 16))));
                }
                field[0] = _mm512_cvtepu8_epi32(h);
            }
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                __m512i own = _mm512_and_si512(_mm512_castps_si512(d[r][g]), exponent_mask);
                if (output == MPG_OUT_FP16)
                    own = _mm512_mask_max_epi32(own, _mm512_test_epi32_mask(own, own), own, raw);
                const __m512i top = _mm512_max_epi32(_mm512_slli_epi32(field[g], 23), own);
                scale[r][g] = _mm512_castsi512_ps(_mm512_sub_epi32(to_scale, top));
                c_part[r][g] = _mm512_cvttps_epi32(_mm512_mul_ps(d[r][g], scale[r][g]));
                sum[r][g] = wide_sum ? _mm512_setzero_si512() : c_part[r][g];
            }
        }
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++)
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++) {
                __m512 x = _mm512_set1_ps(a[r * a_stride + q]);
                if (pair)
                    x = _mm512_mask_mov_ps(x, 0xFF00, _mm512_set1_ps(a[r * a_stride + other + q]));
#pragma GCC unroll 4
                for (int g = 0; g < groups; g++) {
                    const __m512 product = _mm512_mul_ps(x, _mm512_loadu_ps(b + q * width + 16 * g));
                    sum[r][g] = _mm512_add_epi32(sum[r][g], _mm512_cvttps_epi32(_mm512_mul_ps(product, scale[r][g])));
                }
            }
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                const __m512 unit = _mm512_castsi512_ps(_mm512_sub_epi32(to_unit, _mm512_castps_si512(scale[r][g])));
                const __m512i c_in = wide_sum ? c_part[r][g] : _mm512_setzero_si512();
                __m512 x = mpg_float_of_sum(sum[r][g], c_in, wide_sum, output == MPG_OUT_FP16);
                if (output == MPG_OUT_FP16) {
                    x = _mm512_mul_ps(x, unit);
                    x = _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
                    x = _mm512_add_ps(x, _mm512_setzero_ps()); /* a negative sum that rounds to zero gives +0 */
                } else {
                    x = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), keep));
                    x = _mm512_mul_ps(x, unit);
                }
                if (place >= 0 && place == t->chain - 1) {
                    x = _mm512_add_ps(x, added[r][g]);
                    if (output == MPG_OUT_FP16) /* float32 has more than twice the bits: the second rounding is harmless */
                        x = _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
                }
                if (output == MPG_OUT_FP16) {
                    const __mmask16 infinite = _mm512_fpclass_ps_mask(x, 0x18);
                    if (__builtin_expect(infinite != 0, 0)) {
                        x = _mm512_mask_mov_ps(x, infinite, _mm512_setzero_ps());
                        for (int j = 0; j < 16; j++)
                            if (infinite >> j & 1)
                                tile->redo[r * ldd + 16 * g + j] = 1;
                    }
                }
                d[r][g] = x;
            }
        a += terms;
        ea += terms;
        b += terms * width;
        eb += terms * width;
    }
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < groups; g++)
            _mm512_mask_storeu_ps(c + r * ldd + 16 * g, exists[g], d[r][g]);
}

#define MPG_NARROW_AVX512(NAME, ROWS, GROUPS, TERMS, OUTPUT, WIDE, PAIR)                                                       \
    MPG_TARGET_AVX512 static void NAME(const mpg_narrow_task *t, const mpg_narrow_operands *p, const mpg_result_tile *tile,    \
                                       int64_t steps)                                                                          \
    {                                                                                                                          \
        mpg_narrow_rows_avx512(ROWS, GROUPS, TERMS, OUTPUT, WIDE, PAIR, t, p, tile, steps);                                    \
    }
#define MPG_NARROW_AVX512_SIZES(PREFIX, TERMS, OUTPUT, WIDE)                                                                   \
    MPG_NARROW_AVX512(PREFIX##_1x64, 1, 4, TERMS, OUTPUT, WIDE, 0)                                                             \
    MPG_NARROW_AVX512(PREFIX##_4x16, 4, 1, TERMS, OUTPUT, WIDE, 0)                                                             \
    MPG_NARROW_AVX512(PREFIX##_1x16, 1, 1, TERMS, OUTPUT, WIDE, 0)                                                             \
    MPG_NARROW_AVX512(PREFIX##_4x8x2, 4, 1, TERMS, OUTPUT, WIDE, 1)                                                            \
    MPG_NARROW_AVX512(PREFIX##_1x8x2, 1, 1, TERMS, OUTPUT, WIDE, 1)

#define MPG_NARROW_AVX512_OUTPUTS(NAME, TERMS, WIDE)                                                                           \
    MPG_NARROW_AVX512_SIZES(NAME##_fp32, TERMS, MPG_OUT_FP32, WIDE)                                                            \
    MPG_NARROW_AVX512_SIZES(NAME##_fp16, TERMS, MPG_OUT_FP16, WIDE)

MPG_NARROW_AVX512_OUTPUTS(mpg_n4, 4, 0)
MPG_NARROW_AVX512_OUTPUTS(mpg_n8, 8, 0)
MPG_NARROW_AVX512_OUTPUTS(mpg_n16, 16, 0)
MPG_NARROW_AVX512_OUTPUTS(mpg_n16_wide, 16, 1)
MPG_NARROW_AVX512_OUTPUTS(mpg_n32, 32, 0)

typedef void (*mpg_narrow_rows)(const mpg_narrow_task *, const mpg_narrow_operands *, const mpg_result_tile *, int64_t steps);

#define MPG_NARROW_SHAPE(NAME, SHAPE) {NAME##_fp32##SHAPE, NAME##_fp16##SHAPE}
#define MPG_NARROW_SHAPES(NAME)                                                                                                \
    {MPG_NARROW_SHAPE(NAME, _1x64), MPG_NARROW_SHAPE(NAME, _4x16), MPG_NARROW_SHAPE(NAME, _1x16),                              \
     MPG_NARROW_SHAPE(NAME, _4x8x2), MPG_NARROW_SHAPE(NAME, _1x8x2)}

/* Kernels by [terms 4, 8, 16, 16 with wide sums, 32][1x64, 4x16, 1x16, 4 rows of two products, 1][fp32, fp16]. */
static const mpg_narrow_rows MPG_NARROW_KERNELS[5][5][2] = {MPG_NARROW_SHAPES(mpg_n4), MPG_NARROW_SHAPES(mpg_n8),
                                                            MPG_NARROW_SHAPES(mpg_n16), MPG_NARROW_SHAPES(mpg_n16_wide),
                                                            MPG_NARROW_SHAPES(mpg_n32)};

static mpg_narrow_rows mpg_narrow_kernel(const mpg_narrow_task *t, int shape)
{
    const int terms = t->terms == 4 ? 0 : t->terms == 8 ? 1 : t->terms == 16 ? 2 + (t->wide_sum != 0) : 4;
    return MPG_NARROW_KERNELS[terms][shape][t->output];
}
#endif
#endif
