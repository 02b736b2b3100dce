/* The algorithm of narrow.h in AVX2 intrinsics: same operands, same bits; one row of A, 16 columns at a time in two registers.
 *
 * Runs with rounding toward zero, as the plain C does. Differences: fp16 results are rounded by the CPU's conversion, which
 * names its own rounding, and whether the sum with c may leave the int32 range is asked before it is formed.
 */
#ifndef MPG_NARROW_AVX2_H
#define MPG_NARROW_AVX2_H

#include "narrow.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>

#define MPG_LANES256 MPG_TARGET_AVX2 static inline __attribute__((always_inline))

/* Exponent fields of the largest products of `terms`, as bytes. */
MPG_LANES256 void mpg_narrow_fields_avx2(int terms, int width, int floor, const uint32_t *ea, const uint8_t *eb, uint8_t *field)
{
    if (width == 16) {
        __m128i largest = _mm_set1_epi8((char)floor);
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++) {
            const __m128i y = _mm_loadu_si128((const __m128i *)(eb + q * 16));
            largest = _mm_max_epu8(largest, _mm_subs_epu8(_mm_set1_epi32((int)ea[q]), y));
        }
        _mm_storeu_si128((__m128i *)field, largest);
        return;
    }
    __m256i low = _mm256_set1_epi8((char)floor), high = low;
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        const __m256i x = _mm256_set1_epi32((int)ea[q]);
        low = _mm256_max_epu8(low, _mm256_subs_epu8(x, _mm256_loadu_si256((const __m256i *)(eb + q * width))));
        high = _mm256_max_epu8(high, _mm256_subs_epu8(x, _mm256_loadu_si256((const __m256i *)(eb + q * width + 32))));
    }
    _mm256_storeu_si256((__m256i *)field, low);
    _mm256_storeu_si256((__m256i *)(field + 32), high);
}

/* The exponent field that each of 8 bytes is, in the place that float32 has for it. */
MPG_LANES256 __m256i mpg_narrow_powers_avx2(const uint8_t *field)
{
    return _mm256_slli_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)field)), 23);
}

/* Adds `terms` products of 16 lanes to two vectors of sums, each product truncated; `up` scales it to its lane's unit. */
MPG_LANES256 void mpg_narrow_products_avx2(int terms, int width, const float *a, const float *b, const __m256i *up,
                                           __m256i *sum)
{
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        const __m256 factor = _mm256_broadcast_ss(a + q);
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) {
            const __m256 product = _mm256_mul_ps(factor, _mm256_loadu_ps(b + q * width + 8 * g));
            const __m256i scaled = _mm256_add_epi32(_mm256_castps_si256(product), up[g]);
            sum[g] = _mm256_add_epi32(sum[g], _mm256_cvttps_epi32(_mm256_castsi256_ps(scaled)));
        }
    }
}

/* The truncated sum of `products` and `own` where it may leave the int32 range: as high * 256 + low, both exact in float32.
 * `inexact`: 1 where something was cut off. */
MPG_LANES256 __m256 mpg_narrow_far_sum_avx2(__m256i products, __m256i own, __m256i *inexact)
{
    const __m256i byte = _mm256_set1_epi32(255);
    const __m256i above = _mm256_add_epi32(_mm256_srai_epi32(products, 8), _mm256_srai_epi32(own, 8));
    const __m256i below = _mm256_add_epi32(_mm256_and_si256(products, byte), _mm256_and_si256(own, byte));
    const __m256 high = _mm256_mul_ps(_mm256_cvtepi32_ps(above), _mm256_set1_ps(256.0f)), low = _mm256_cvtepi32_ps(below);
    const __m256 x = _mm256_add_ps(high, low);
    const __m256 cut = _mm256_cmp_ps(_mm256_sub_ps(x, high), low, _CMP_NEQ_OQ);
    *inexact = _mm256_srli_epi32(_mm256_castps_si256(cut), 31);
    return x;
}

/* d = c + the products of one fused operation for 16 lanes, `width` apart for each position; `field` holds their bytes. Returns a
 * mask of the lanes whose fp16 result is infinite. */
MPG_LANES256 unsigned mpg_narrow_step_avx2(int terms, int width, int output, const mpg_narrow_task *t, const float *a,
                                           const float *b, const uint8_t *field, float *c)
{
    const __m256i f = _mm256_set1_epi32(t->fraction_bits << 23), keep = _mm256_set1_epi32((int)t->keep);
    const __m256i to_scale = _mm256_set1_epi32((int)((uint32_t)(t->fraction_bits + 254) << 23));
    const __m256i to_shift = _mm256_set1_epi32((t->fraction_bits + 127 + MPG_NARROW_PRESCALE) << 23);
    const __m256i exponent_mask = _mm256_set1_epi32(0x7F800000), raw = _mm256_set1_epi32(t->raw_exponent << 23);
    const __m256i zero = _mm256_setzero_si256();
    __m256i top[2], up[2], sum[2], own[2];
    __m256 x[2];
    unsigned infinite = 0;

#pragma GCC unroll 2
    for (int g = 0; g < 2; g++) {
        const __m256 addend = _mm256_loadu_ps(c + 8 * g);
        __m256i exponent = _mm256_and_si256(_mm256_castps_si256(addend), exponent_mask);
        if (output == MPG_OUT_FP16) /* subnormal addends other than zero */
            exponent = _mm256_max_epi32(exponent, _mm256_andnot_si256(_mm256_cmpeq_epi32(exponent, zero), raw));
        top[g] = _mm256_max_epi32(mpg_narrow_powers_avx2(field + 8 * g), exponent);
        up[g] = _mm256_max_epi32(_mm256_sub_epi32(to_shift, top[g]), zero);
        const __m256 scale = _mm256_castsi256_ps(_mm256_sub_epi32(to_scale, top[g]));
        own[g] = _mm256_cvttps_epi32(_mm256_mul_ps(addend, scale));
        sum[g] = terms == 16 ? zero : own[g];
    }
    mpg_narrow_products_avx2(terms, width, a, b, up, sum);
    /* Only 16 products can come near 2^31; c is below 2^26 units then. */
    int far = 0;
    if (terms == 16) {
        const __m256i largest = _mm256_max_epu32(_mm256_abs_epi32(sum[0]), _mm256_abs_epi32(sum[1]));
        far = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_add_epi32(largest, _mm256_set1_epi32(1 << 26))));
    }
#pragma GCC unroll 2
    for (int g = 0; g < 2; g++) {
        const __m256i total = terms == 16 ? _mm256_add_epi32(sum[g], own[g]) : sum[g];
        __m256i inexact = zero;
        x[g] = _mm256_cvtepi32_ps(total);
        if (output == MPG_OUT_FP16)
            inexact = _mm256_add_epi32(_mm256_cmpeq_epi32(_mm256_cvttps_epi32(x[g]), total), _mm256_set1_epi32(1));
        if (terms == 16 && __builtin_expect(far, 0))
            x[g] = mpg_narrow_far_sum_avx2(sum[g], own[g], &inexact);
        const __m256 unit = _mm256_castsi256_ps(_mm256_sub_epi32(top[g], f));
        if (output == MPG_OUT_FP16) { /* 24 bits to odd first */
            x[g] = _mm256_castsi256_ps(_mm256_or_si256(_mm256_castps_si256(x[g]), inexact));
            x[g] = _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_mul_ps(x[g], unit), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
            x[g] = _mm256_add_ps(x[g], _mm256_setzero_ps()); /* a negative sum that rounds to zero gives +0 */
            const __m256i field_of = _mm256_and_si256(_mm256_castps_si256(x[g]), exponent_mask);
            const __m256i full = _mm256_cmpeq_epi32(field_of, exponent_mask);
            infinite |= (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(full)) << 8 * g;
        } else {
            x[g] = _mm256_mul_ps(_mm256_castsi256_ps(_mm256_and_si256(_mm256_castps_si256(x[g]), keep)), unit);
        }
        _mm256_storeu_ps(c + 8 * g, x[g]);
    }
    return infinite;
}

/* As mpg_narrow_down of narrow.h, for 16 lanes from `lane` on, where `field` holds the bytes of both halves. 36 vector instructions for 8 lanes, 8 more
 * with two halves. */
MPG_LANES256 void mpg_narrow_down_avx2(int terms, int width, int halves, const mpg_narrow_task *t, const float *a,
                                       const float *b, const uint8_t (*field)[MPG_PANEL], int lane, float *c)
{
    const __m256i to_scale = _mm256_set1_epi32((int)((uint32_t)(t->fraction_bits + 254) << 23));
    const __m256i to_shift = _mm256_set1_epi32((t->fraction_bits + 127 + MPG_NARROW_PRESCALE) << 23);
    const __m256i to_unit = _mm256_set1_epi32((t->fraction_bits + t->guard) << 23);
    const __m256i exponent_mask = _mm256_set1_epi32(0x7F800000), cutoff = _mm256_set1_epi32(t->cutoff << 23);
    const __m256i zero = _mm256_setzero_si256(), last = _mm256_set1_epi32(255);
    const __m256i near_most = _mm256_set1_epi32(25), all = _mm256_set1_epi32(32);
    const __m256i guard = _mm256_set1_epi32(t->guard), low_place = _mm256_set1_epi32(32 - t->guard);
    const __m256i whole = _mm256_set1_epi32(t->whole);
    const __m256 finer = _mm256_set1_ps((float)(1 << t->guard));
    const int each = terms / halves;
    __m256i top[2][2], sum[2][2];

#pragma GCC unroll 2
    for (int h = 0; h < halves; h++) {
        __m256i up[2];
#pragma GCC unroll 2
        for (int g = 0; g < 2; g++) {
            top[h][g] = mpg_narrow_powers_avx2(field[h] + lane + 8 * g);
            up[g] = _mm256_max_epi32(_mm256_sub_epi32(to_shift, top[h][g]), zero);
            sum[h][g] = zero;
        }
        mpg_narrow_products_avx2(each, width, a + h * each, b + h * each * width, up, sum[h]);
    }
#pragma GCC unroll 2
    for (int g = 0; g < 2; g++) {
        const __m256 given = _mm256_loadu_ps(c + 8 * g);
        const __m256i own = _mm256_and_si256(_mm256_castps_si256(given), exponent_mask);
        __m256i total = sum[0][g], reached = top[0][g];
        if (halves == 2) {
            reached = _mm256_max_epi32(reached, top[1][g]);
            const __m256i down = _mm256_srli_epi32(_mm256_sub_epi32(reached, top[0][g]), 23);
            const __m256i other_down = _mm256_srli_epi32(_mm256_sub_epi32(reached, top[1][g]), 23);
            total = _mm256_add_epi32(_mm256_srav_epi32(total, down), _mm256_srav_epi32(sum[1][g], other_down));
        }
        const __m256i highest = _mm256_max_epi32(reached, own);
        __m256 x = _mm256_mul_ps(given, _mm256_castsi256_ps(_mm256_sub_epi32(to_scale, highest)));
        if (halves == 2)
            x = _mm256_andnot_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_sub_epi32(highest, cutoff), own)), x);
        const __m256i addend = _mm256_cvttps_epi32(_mm256_floor_ps(x));
        /* the two parts of mpg_down_parts */
        const __m256i distance = _mm256_srli_epi32(_mm256_sub_epi32(highest, reached), 23);
        const __m256i near = _mm256_min_epi32(distance, near_most);
        const __m256i rest = _mm256_srav_epi32(total, _mm256_sub_epi32(distance, near));
        const __m256i low = _mm256_srlv_epi32(_mm256_sllv_epi32(rest, _mm256_sub_epi32(all, near)), low_place);
        const __m256i high = _mm256_add_epi32(_mm256_srav_epi32(rest, near), addend);
        /* mpg_down_result; the total is the sum of two numbers that float32 has, which is rounded once */
        const __m256i size = _mm256_xor_si256(high, _mm256_srai_epi32(high, 31)), lost = _mm256_srlv_epi32(size, whole);
        const __m256i kept = _mm256_and_si256(low, _mm256_cmpgt_epi32(_mm256_andnot_si256(lost, low), lost));
        const __m256i fine = _mm256_or_si256(_mm256_sllv_epi32(_mm256_and_si256(high, last), guard), kept);
        const __m256 coarse = _mm256_cvtepi32_ps(_mm256_andnot_si256(last, high));
        const __m256 units = _mm256_fmadd_ps(coarse, finer, _mm256_cvtepi32_ps(fine));
        _mm256_storeu_ps(c + 8 * g, _mm256_mul_ps(units, _mm256_castsi256_ps(_mm256_sub_epi32(highest, to_unit))));
    }
}

/* As mpg_narrow_steps_body of narrow.h. */
MPG_LANES256 void mpg_narrow_steps_avx2_body(int terms, int width, int output, const mpg_narrow_task *task,
                                             const mpg_narrow_operands *operands, float *c, int64_t steps, uint8_t *overflow)
{
    const mpg_narrow_task copy = *task, *t = &copy; /* nothing that is stored here can change it */
    const int halves = output == MPG_NARROW_DOWN_GROUPS ? 2 : 1, each = terms / halves;
    mpg_narrow_operands p = *operands;
    uint8_t fields[2][MPG_PANEL], *field = fields[0];
    for (int64_t s = 0; s < steps; s++, p = mpg_narrow_after(&p, 1, terms, width)) {
        if (mpg_narrow_is_scaled(t, s))
            for (int j = 0; j < width; j += 8)
                _mm256_storeu_ps(c + j, _mm256_mul_ps(_mm256_loadu_ps(c + j), _mm256_set1_ps(t->scale)));
        for (int h = 0; h < halves; h++)
            mpg_narrow_fields_avx2(each, width, t->floor, p.ea + h * each, p.eb + h * each * width, fields[h]);
        if (output >= MPG_NARROW_DOWN) {
#pragma GCC unroll 1
            for (int j = 0; j < width; j += 16)
                mpg_narrow_down_avx2(terms, width, halves, t, p.a, p.b + j, fields, j, c + j);
            continue;
        }
#pragma GCC unroll 1
        for (int j = 0; j < width; j += 16) {
            const unsigned infinite = mpg_narrow_step_avx2(terms, width, output, t, p.a, p.b + j, field + j, c + j);
            if (output == MPG_OUT_FP16 && __builtin_expect(infinite != 0, 0))
                for (int i = 0; i < 16; i++)
                    if (infinite >> i & 1) {
                        overflow[j + i] = 1;
                        c[j + i] = 0;
                    }
        }
    }
}

MPG_NARROW_SIZES(avx2, MPG_TARGET_AVX2, mpg_narrow_steps_avx2_body)

static const mpg_narrow_row MPG_NARROW_ROWS_AVX2[2][2][4] = MPG_NARROW_TABLE(avx2);
static const mpg_narrow_row MPG_NARROW_DOWN_AVX2[2][3] = MPG_NARROW_DOWN_TABLE(avx2);
#endif
#endif
