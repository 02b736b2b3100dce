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

/* Exponent fields of the largest of `terms` products in the place that float32 has for them, for `rows` rows of 16 * groups lanes;
 * with `pair` lanes 8 to 15 belong to another product. */
MPG_LANES512 void mpg_narrow_fields_avx512(int rows, int groups, int terms, int pair, int floor, const mpg_narrow_operands *p,
                                           __m512i (*field)[4])
{
    const int64_t eight = INT64_C(0x0101010101010101); /* byte r of quads for lanes of row r, 8 of each product */
    const __m512i spread = _mm512_set_epi64(7 * eight, 6 * eight, 5 * eight, 4 * eight, 3 * eight, 2 * eight, eight, 0);
    __m512i tops = _mm512_set1_epi8((char)floor);
    if (pair && rows == 4) {
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++) {
            const __m512i x = _mm512_shuffle_epi8(_mm512_set1_epi64((int64_t)p->quads[q]), spread);
            const __m512i y = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(p->eb + q * 16)));
            tops = _mm512_max_epu8(tops, _mm512_subs_epu8(x, y));
        }
        field[0][0] = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(tops));
        field[1][0] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(tops, 1));
        field[2][0] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(tops, 2));
        field[3][0] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(tops, 3));
    }
    for (int r = 0; r < rows; r++) {
        const uint32_t *ea = p->ea + r * p->stride;
        if (groups == 4) {
            __m512i h = _mm512_set1_epi8((char)floor);
#pragma GCC unroll 32
            for (int q = 0; q < terms; q++) {
                const __m512i x = _mm512_set1_epi32((int)ea[q]);
                h = _mm512_max_epu8(h, _mm512_subs_epu8(x, _mm512_loadu_si512(p->eb + q * 64)));
            }
            field[r][0] = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(h));
            field[r][1] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(h, 1));
            field[r][2] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(h, 2));
            field[r][3] = _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(h, 3));
        } else if (!pair || rows != 4) {
            __m128i h = _mm_set1_epi8((char)floor);
#pragma GCC unroll 32
            for (int q = 0; q < terms; q++) {
                __m128i x = _mm_set1_epi32((int)ea[q]);
                if (pair)
                    x = _mm_unpacklo_epi64(x, _mm_set1_epi32((int)ea[p->other + q]));
                h = _mm_max_epu8(h, _mm_subs_epu8(x, _mm_loadu_si128((const __m128i *)(p->eb + q * 16))));
            }
            field[r][0] = _mm512_cvtepu8_epi32(h);
        }
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++)
            field[r][g] = _mm512_slli_epi32(field[r][g], 23);
    }
}

/* Adds `terms` products to `sum`, each scaled to its lane's unit and truncated. */
MPG_LANES512 void mpg_narrow_products_avx512(int rows, int groups, int terms, int pair, const mpg_narrow_operands *p,
                                             const __m512 (*scale)[4], __m512i (*sum)[4])
{
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++)
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const float *a = p->a + r * p->stride + q;
            __m512 x = _mm512_set1_ps(*a);
            if (pair)
                x = _mm512_mask_mov_ps(x, 0xFF00, _mm512_set1_ps(a[p->other]));
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                const __m512 product = _mm512_mul_ps(x, _mm512_loadu_ps(p->b + (q * groups + g) * 16));
                sum[r][g] = _mm512_add_epi32(sum[r][g], _mm512_cvttps_epi32(_mm512_mul_ps(product, scale[r][g])));
            }
        }
}

/* As mpg_down_parts and mpg_down_result of narrow.h. */
MPG_LANES512 __m512 mpg_down_avx512(int halves, const mpg_narrow_task *t, __m512i sum, __m512i field, __m512 c)
{
    const __m512i own = _mm512_and_si512(_mm512_castps_si512(c), _mm512_set1_epi32(0x7F800000)),
                  top = _mm512_max_epi32(field, own);
    const __m512i to_scale = _mm512_set1_epi32((int)((uint32_t)(t->fraction_bits + 254) << 23));
    const __m512 x = _mm512_mul_ps(c, _mm512_castsi512_ps(_mm512_sub_epi32(to_scale, top)));
    __m512i addend = _mm512_cvt_roundps_epi32(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    if (halves == 2) {
        const __m512i cutoff = _mm512_set1_epi32(t->cutoff << 23);
        addend = _mm512_maskz_mov_epi32(_mm512_cmpge_epi32_mask(own, _mm512_sub_epi32(top, cutoff)), addend);
    }
    const __m512i distance = _mm512_srli_epi32(_mm512_sub_epi32(top, field), 23);
    const __m512i near = _mm512_min_epi32(distance, _mm512_set1_epi32(25));
    const __m512i rest = _mm512_srav_epi32(sum, _mm512_sub_epi32(distance, near));
    const __m512i low = _mm512_srl_epi32(_mm512_sllv_epi32(rest, _mm512_sub_epi32(_mm512_set1_epi32(32), near)),
                                         _mm_cvtsi32_si128(32 - t->guard));
    const __m512i high = _mm512_add_epi32(_mm512_srav_epi32(rest, near), addend);
    const __m512i size = _mm512_xor_si512(high, _mm512_srai_epi32(high, 31));
    const __m512i lost = _mm512_srl_epi32(size, _mm_cvtsi32_si128(t->whole)), one = _mm512_set1_epi32(1);
    const __mmask16 inexact = _mm512_cmpgt_epi32_mask(_mm512_andnot_si512(lost, low), lost);
    const __mmask16 large = _mm512_cmpge_epi32_mask(size, _mm512_set1_epi32(1 << 24));
    const __m512i twice = _mm512_add_epi32(high, high);
    __m512i units = _mm512_or_si512(_mm512_sll_epi32(high, _mm_cvtsi32_si128(t->guard)), low);
    units = _mm512_mask_mov_epi32(units, large, twice);
    units = _mm512_mask_or_epi32(units, large & inexact, units, one);
    const __m512i finer = _mm512_set1_epi32((t->fraction_bits + t->guard) << 23);
    const __m512i shift = _mm512_mask_mov_epi32(finer, large, _mm512_set1_epi32((t->fraction_bits + 1) << 23));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(units), _mm512_castsi512_ps(_mm512_sub_epi32(top, shift)));
}

/* One operation of one group of products or two halves, rounded down, for `rows` rows of 16 * groups lanes. */
MPG_LANES512 void mpg_narrow_down_avx512(int rows, int groups, int terms, int halves, const mpg_narrow_task *t,
                                         const mpg_narrow_operands *p, __m512 (*d)[4])
{
    const __m512i to_scale = _mm512_set1_epi32((int)((uint32_t)(t->fraction_bits + 254) << 23));
    const int each = terms / halves;
    mpg_narrow_operands q = *p;
    __m512i field[2][4][4], sum[2][4][4];
#pragma GCC unroll 2
    for (int h = 0; h < halves; h++) {
        __m512 scale[4][4];
        mpg_narrow_fields_avx512(rows, groups, each, 0, t->floor, &q, field[h]);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                scale[r][g] = _mm512_castsi512_ps(_mm512_sub_epi32(to_scale, field[h][r][g]));
                sum[h][r][g] = _mm512_setzero_si512();
            }
        mpg_narrow_products_avx512(rows, groups, each, 0, &q, scale, sum[h]);
        q = mpg_narrow_after(&q, 1, each, 16 * groups);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            __m512i total = sum[0][r][g], largest = field[0][r][g];
            if (halves == 2) {
                largest = _mm512_max_epi32(largest, field[1][r][g]);
                const __m512i down = _mm512_srli_epi32(_mm512_sub_epi32(largest, field[0][r][g]), 23);
                const __m512i other_down = _mm512_srli_epi32(_mm512_sub_epi32(largest, field[1][r][g]), 23);
                total = _mm512_add_epi32(_mm512_srav_epi32(total, down), _mm512_srav_epi32(sum[1][r][g], other_down));
            }
            d[r][g] = mpg_down_avx512(halves, t, total, largest, d[r][g]);
        }
}

/* One fused dot-add for `rows` rows of 16 * groups lanes, up to its rounding: float32 results, truncated, or to odd for fp16. */
MPG_LANES512 void mpg_narrow_step_avx512(int rows, int groups, int terms, int output, int wide_sum, int pair,
                                         const mpg_narrow_task *t, const mpg_narrow_operands *p, __m512 (*d)[4])
{
    const __m512i to_scale = _mm512_set1_epi32((int)((uint32_t)(t->fraction_bits + 254) << 23));
    const __m512i to_unit = _mm512_set1_epi32(254 << 23), exponent_mask = _mm512_set1_epi32(0x7F800000);
    const __m512i keep = _mm512_set1_epi32((int)t->keep), raw = _mm512_set1_epi32(t->raw_exponent << 23);
    __m512i field[4][4], sum[4][4], c_part[4][4];
    __m512 scale[4][4];
    mpg_narrow_fields_avx512(rows, groups, terms, pair, t->floor, p, field);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            __m512i own = _mm512_and_si512(_mm512_castps_si512(d[r][g]), exponent_mask);
            if (output == MPG_OUT_FP16)
                own = _mm512_mask_max_epi32(own, _mm512_test_epi32_mask(own, own), own, raw);
            scale[r][g] = _mm512_castsi512_ps(_mm512_sub_epi32(to_scale, _mm512_max_epi32(field[r][g], own)));
            c_part[r][g] = _mm512_cvttps_epi32(_mm512_mul_ps(d[r][g], scale[r][g]));
            sum[r][g] = wide_sum ? _mm512_setzero_si512() : c_part[r][g];
        }
    mpg_narrow_products_avx512(rows, groups, terms, pair, p, scale, sum);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            const __m512 unit = _mm512_castsi512_ps(_mm512_sub_epi32(to_unit, _mm512_castps_si512(scale[r][g])));
            const __m512i c_in = wide_sum ? c_part[r][g] : _mm512_setzero_si512();
            __m512 x = mpg_float_of_sum(sum[r][g], c_in, wide_sum, output == MPG_OUT_FP16);
            if (output == MPG_OUT_FP32)
                x = _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), keep));
            d[r][g] = _mm512_mul_ps(x, unit);
        }
}

/* Results of the vector that starts at `redo` for an fp16 output: rounded, plus `added` where that is not NULL. Lanes that became
 * infinite are marked and zeroed. */
MPG_LANES512 __m512 mpg_narrow_fp16_avx512(__m512 x, const __m512 *added, uint8_t *redo)
{
    x = _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    x = _mm512_add_ps(x, _mm512_setzero_ps()); /* a negative sum that rounds to zero gives +0 */
    if (added) {                               /* float32 has more than twice the bits: the second rounding is harmless */
        x = _mm512_add_ps(x, *added);
        x = _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
    const __mmask16 infinite = _mm512_fpclass_ps_mask(x, 0x18);
    if (__builtin_expect(infinite != 0, 0)) {
        x = _mm512_mask_mov_ps(x, infinite, _mm512_setzero_ps());
        for (int j = 0; j < 16; j++)
            if (infinite >> j & 1)
                redo[j] = 1;
    }
    return x;
}

/* The first `rows` rows of a tile, whose columns are of a panel of 16 * groups; lanes whose fp16 result became infinite are
 * marked. With `pair` lanes 8 to 15 belong to another product. */
MPG_LANES512 void mpg_narrow_rows_avx512(int rows, int groups, int terms, int output, int wide_sum, int pair,
                                         const mpg_narrow_task *t, const mpg_narrow_operands *operands,
                                         const mpg_result_tile *tile, int64_t steps)
{
    const int64_t ldd = tile->ld;
    const int count = tile->columns, halves = output == MPG_NARROW_DOWN_GROUPS ? 2 : 1;
    mpg_narrow_operands p = *operands;
    float *c = tile->d;
    __m512 d[4][4], added[4][4];
    __mmask16 exists[4];

    for (int g = 0; g < groups; g++)
        exists[g] = (__mmask16)(count >= 16 * (g + 1) ? 0xFFFF : count > 16 * g ? (1 << (count - 16 * g)) - 1 : 0);
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < groups; g++)
            added[r][g] = d[r][g] = _mm512_maskz_loadu_ps(exists[g], c + r * ldd + 16 * g);
    for (int64_t s = 0; s < steps; s++) {
        const mpg_narrow_operands here = p;
        p = mpg_narrow_after(&p, 1, terms, 16 * groups);
        if (pair)
            p.quads += terms;
        const int place = t->chain ? (int)(s % t->chain) : -1, ends = place >= 0 && place == t->chain - 1;
        if (place == 0)
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < groups; g++) {
                    added[r][g] = d[r][g];
                    d[r][g] = _mm512_setzero_ps();
                }
        if (mpg_narrow_is_scaled(t, place))
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < groups; g++)
                    d[r][g] = _mm512_mul_ps(d[r][g], _mm512_set1_ps(t->scale));
        if (output >= MPG_NARROW_DOWN)
            mpg_narrow_down_avx512(rows, groups, terms, halves, t, &here, d);
        else
            mpg_narrow_step_avx512(rows, groups, terms, output, wide_sum, pair, t, &here, d);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++)
                if (output == MPG_OUT_FP16)
                    d[r][g] = mpg_narrow_fp16_avx512(d[r][g], ends ? &added[r][g] : NULL, tile->redo + r * ldd + 16 * g);
                else if (ends)
                    d[r][g] = _mm512_add_ps(d[r][g], added[r][g]);
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

#define MPG_NARROW_AVX512_DOWN(NAME, TERMS, OUTPUT)                                                                            \
    MPG_NARROW_AVX512(NAME##_1x64, 1, 4, TERMS, OUTPUT, 0, 0)                                                                  \
    MPG_NARROW_AVX512(NAME##_4x16, 4, 1, TERMS, OUTPUT, 0, 0)                                                                  \
    MPG_NARROW_AVX512(NAME##_1x16, 1, 1, TERMS, OUTPUT, 0, 0)
MPG_NARROW_AVX512_DOWN(mpg_down4, 4, MPG_NARROW_DOWN)
MPG_NARROW_AVX512_DOWN(mpg_down8, 8, MPG_NARROW_DOWN)
MPG_NARROW_AVX512_DOWN(mpg_halves16, 16, MPG_NARROW_DOWN_GROUPS)

typedef void (*mpg_narrow_rows)(const mpg_narrow_task *, const mpg_narrow_operands *, const mpg_result_tile *, int64_t steps);

#define MPG_NARROW_SHAPE(NAME, SHAPE) {NAME##_fp32##SHAPE, NAME##_fp16##SHAPE}
#define MPG_NARROW_SHAPES(NAME)                                                                                                \
    {MPG_NARROW_SHAPE(NAME, _1x64), MPG_NARROW_SHAPE(NAME, _4x16), MPG_NARROW_SHAPE(NAME, _1x16),                              \
     MPG_NARROW_SHAPE(NAME, _4x8x2), MPG_NARROW_SHAPE(NAME, _1x8x2)}

/* Kernels by [terms 4, 8, 16, 16 with wide sums, 32][1x64, 4x16, 1x16, 4 rows of two products, 1][fp32, fp16]. */
static const mpg_narrow_rows MPG_NARROW_KERNELS[5][5][2] = {MPG_NARROW_SHAPES(mpg_n4), MPG_NARROW_SHAPES(mpg_n8),
                                                            MPG_NARROW_SHAPES(mpg_n16), MPG_NARROW_SHAPES(mpg_n16_wide),
                                                            MPG_NARROW_SHAPES(mpg_n32)};

/* Kernels that round down by [terms 4, 8, 16 in two halves][the first three shapes]. */
#define MPG_NARROW_DOWN_SHAPES(NAME) {NAME##_1x64, NAME##_4x16, NAME##_1x16}
static const mpg_narrow_rows MPG_NARROW_DOWN_KERNELS[3][3] = {
    MPG_NARROW_DOWN_SHAPES(mpg_down4), MPG_NARROW_DOWN_SHAPES(mpg_down8), MPG_NARROW_DOWN_SHAPES(mpg_halves16)};

static mpg_narrow_rows mpg_narrow_kernel(const mpg_narrow_task *t, int shape)
{
    if (t->output >= MPG_NARROW_DOWN && shape < 3)
        return MPG_NARROW_DOWN_KERNELS[mpg_terms_index(t->terms)][shape];
    const int terms = t->terms == 4 ? 0 : t->terms == 8 ? 1 : t->terms == 16 ? 2 + (t->wide_sum != 0) : 4;
    return MPG_NARROW_KERNELS[terms][shape][t->output];
}
#endif
#endif
