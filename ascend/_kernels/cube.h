/* The arithmetic of the Ascend cube: chains of FP16 products in FP32 (or FP16) accumulators.
 *
 * Contract. A product of two FP16 numbers has 22 significant bits and lies between 2^-48 and 2^32 (or is 0), so it is
 * exact in FP32 and a fused multiply-add gives the bits of a multiplication followed by an addition. Every element of
 * the result is a chain of its own; which rows, columns or slices of k are computed together, and how wide the vectors
 * are, changes no bit.
 *
 * Layout. A slice of k is cut into passes of at most CUBE_DEPTH. Both words of A are packed as FP32 in groups of R rows,
 * [pass][group][word][R][CUBE_DEPTH], both words of B in panels of W columns, [pass][panel][CUBE_DEPTH][word][W]. Sums are
 * FP32 micro-tiles, [panel][group][chain][R][W]. Everything that one run of the inner loop touches is contiguous. Rows are
 * padded to a multiple of R and columns to a multiple of W with zeros; R and W belong to the variant.
 */
#ifndef ASCEND_CUBE_H
#define ASCEND_CUBE_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "block_sizes.h"
#include "split.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>
#endif

enum { CUBE_SEQUENTIAL, CUBE_PAIRWISE, CUBE_EXACT }; /* order and rounding inside a cube step */
enum { CUBE_HH, CUBE_LH, CUBE_HL, CUBE_LL, CUBE_TERMS };
/*                       baseline, AVX2, AVX-512: see block_sizes.h */
#define CUBE_ROWS_SIZES 2, 4, 4
#define CUBE_WIDTH_SIZES 8, 8, 32

/* CUBE_DEPTH: k of one pass, so that a panel of B stays in L1 while the groups of A run over it. CUBE_BLOCK: the most rows,
 * columns and k of one packed block. */
enum { CUBE_MAX_STEP = 64, CUBE_MAX_WIDTH = 64, CUBE_DEPTH = 128, CUBE_BLOCK = 1024 };

typedef struct {
    const float *a, *b;
    float *sums;
    ptrdiff_t groups, panels; /* of the packed block */
    ptrdiff_t depth;          /* k of this slice */
    int fresh;                /* the sums start from 0 in this slice */
    int chains;               /* sums kept for each element */
    int elementwise;          /* all terms in one chain */
    int terms;                /* bit mask of the terms to run */
    int step_order;           /* CUBE_SEQUENTIAL, ... */
    int step;                 /* products of one cube step, or of one group in elementwise order */
    int clamp;                /* overflow gives the largest finite number */
    int half;                 /* accumulate in FP16 */
    double bin[CUBE_TERMS];   /* exact steps: 1.5 * 2^(52 + q), q the exponent where products are cut in two */
} cube_block;

/* ---- scalars ------------------------------------------------------------------------------------------------------ */
MPG_INLINE float cube_clamped(float x, float largest) { return x > largest ? largest : (x < -largest ? -largest : x); }

/* x + y with an odd last bit when inexact (Boldo and Melquiond 2008): a later rounding to fewer bits is then right. */
MPG_INLINE double cube_odd_sum(double x, double y)
{
    double sum = x + y;
    double back = sum - x;
    double error = (x - (sum - back)) + (y - back);
    int64_t bits;
    if (error == 0.0 || error != error) /* NaN: an operand was not finite */
        return sum;
    memcpy(&bits, &sum, sizeof bits);
    if (!(bits & 1))
        bits += (error > 0) == (sum > 0) ? 1 : -1;
    memcpy(&sum, &bits, sizeof sum);
    return sum;
}

/* Round to nearest even to FP16, its exponent range included; overflow to infinity. */
MPG_INLINE double cube_to_half(double x)
{
    uint64_t bits, magic_bits;
    int64_t field;
    double magic, rounded;
    memcpy(&bits, &x, sizeof bits);
    field = (int64_t)((bits >> 52) & 0x7ff);
    if (field == 0x7ff)
        return x;
    if (field < 1023 - 14) /* subnormal: the unit stays 2^-24 */
        field = 1023 - 14;
    magic_bits = ((uint64_t)(field + 42) << 52) | (UINT64_C(1) << 51); /* 1.5 * 2^(52 + exponent of the unit) */
    memcpy(&magic, &magic_bits, sizeof magic);
    rounded = (x + magic) - magic;
    if (fabs(rounded) > 65504.0)
        rounded = INFINITY;
    return copysign(fabs(rounded), x);
}

MPG_INLINE float cube_half_sum(double x, double y, int clamp)
{
    float rounded = (float)cube_to_half(cube_odd_sum(x, y));
    return clamp ? cube_clamped(rounded, 65504.0f) : rounded;
}

/* accumulator + high + low, rounded once to FP32 or FP16. `plain` is the sum in FP64: it is right when not finite. */
MPG_INLINE float cube_round_step(float accumulator, double high, double low, double plain, int half, int clamp)
{
    double total = (double)accumulator + plain;
    double upper, back, upper_error, sum, sum_error;
    float rounded;
    if (!(fabs(total) <= DBL_MAX))
        return (float)total;
    upper = high + low;
    back = upper - high;
    upper_error = (high - (upper - back)) + (low - back);
    sum = (double)accumulator + upper;
    back = sum - (double)accumulator;
    sum_error = ((double)accumulator - (sum - back)) + (upper - back);
    sum = cube_odd_sum(sum, cube_odd_sum(sum_error, upper_error));
    rounded = half ? (float)cube_to_half(sum) : (float)sum;
    return clamp ? cube_clamped(rounded, half ? 65504.0f : FLT_MAX) : rounded;
}

/* FP16 encoding to FP32, for compilers and CPUs without the instruction. */
MPG_INLINE float cube_from_half(uint16_t code)
{
    uint32_t bits = (uint32_t)(code & 0x7fff) << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    value *= 0x1p112f; /* exact: moves the exponent from bias 15 to bias 127, subnormals included */
    memcpy(&bits, &value, sizeof bits);
    bits |= (code & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    bits |= (uint32_t)(code & 0x8000) << 16;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- steps that are not a plain chain: one row, W columns ----------------------------------------------------------- */
MPG_INLINE void cube_exact_step(const float *MPG_RESTRICT a, const float *MPG_RESTRICT b, ptrdiff_t b_stride, int count,
                                double bin, int half, int clamp, float *MPG_RESTRICT sums, int width)
{
    double high[CUBE_MAX_WIDTH] = {0}, low[CUBE_MAX_WIDTH] = {0}, plain[CUBE_MAX_WIDTH] = {0};
    for (int k = 0; k < count; k++) {
        double factor = a[k];
        for (int c = 0; c < width; c++) {
            double product = factor * (double)b[k * b_stride + c];
            double cut = (product + bin) - bin;
            high[c] += cut;
            low[c] += product - cut;
            plain[c] += product;
        }
    }
    for (int c = 0; c < width; c++)
        sums[c] = cube_round_step(sums[c], high[c], low[c], plain[c], half, clamp);
}

MPG_INLINE void cube_pairwise_step(const float *MPG_RESTRICT a, const float *MPG_RESTRICT b, ptrdiff_t b_stride, int count,
                                   int clamp, float *MPG_RESTRICT sums, int width)
{
    float tree[CUBE_MAX_STEP][CUBE_MAX_WIDTH];
    for (int k = 0; k < count; k++)
        for (int c = 0; c < width; c++)
            tree[k][c] = a[k] * b[k * b_stride + c];
    for (int gap = 1; gap < count; gap *= 2)
        for (int k = 0; k + gap < count; k += 2 * gap)
            for (int c = 0; c < width; c++) {
                float sum = tree[k][c] + tree[k + gap][c];
                tree[k][c] = clamp ? cube_clamped(sum, FLT_MAX) : sum;
            }
    for (int c = 0; c < width; c++) {
        float sum = sums[c] + tree[0][c];
        sums[c] = clamp ? cube_clamped(sum, FLT_MAX) : sum;
    }
}

static void cube_half_step(const float *a, const float *b, ptrdiff_t b_stride, int count, int step_order, int clamp,
                           float *sums, int width)
{
    double tree[CUBE_MAX_STEP];
    for (int c = 0; c < width; c++) {
        for (int k = 0; k < count; k++)
            tree[k] = (double)a[k] * (double)b[k * b_stride + c];
        if (step_order == CUBE_SEQUENTIAL) {
            for (int k = 0; k < count; k++)
                sums[c] = cube_half_sum(sums[c], tree[k], clamp);
            continue;
        }
        for (int gap = 1; gap < count; gap *= 2)
            for (int k = 0; k + gap < count; k += 2 * gap)
                tree[k] = cube_half_sum(tree[k], tree[k + gap], clamp);
        sums[c] = cube_half_sum(sums[c], tree[0], clamp);
    }
}

/* ---- terms put together ----------------------------------------------------------------------------------------------- */
typedef struct {
    float low_scale, lh_scale, hl_scale, ll_scale; /* powers of two, see cube_reconstruct */
    int has_ll;
    int clamp;
} cube_scales;

MPG_INLINE float cube_limited(float x, int clamp) { return clamp ? cube_clamped(x, FLT_MAX) : x; }

/* RN(hh + RN(RN(lh' + hl') + ll') / s)): lh', hl', ll' brought to the common scale s of the low words first. */
MPG_INLINE float cube_reconstructed(float hh, float lh, float hl, float ll, const cube_scales *s)
{
    float low = cube_limited(lh * s->lh_scale, s->clamp) + cube_limited(hl * s->hl_scale, s->clamp);
    float sum;
    low = cube_limited(low, s->clamp);
    if (s->has_ll)
        low = cube_limited(low + cube_limited(ll * s->ll_scale, s->clamp), s->clamp);
    sum = cube_limited(hh + cube_limited(low * s->low_scale, s->clamp), s->clamp);
    return sum == sum ? sum : (float)NAN; /* one NaN for every CPU */
}

/* ---- the variants ---------------------------------------------------------------------------------------------------- */
#define VECTOR_SIZE 4

#define VECTOR_LEVEL MPG_ISA_BASELINE
#include "vector_set.h"
#include "cube_tile.h"
#undef VECTOR_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX2
#include "vector_set.h"
#if MPG_X86_VARIANTS
#define CUBE_FROM_CODES(p) _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(p)))
#endif
#include "cube_tile.h"
#undef VECTOR_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX512
#include "vector_set.h"
#if MPG_X86_VARIANTS
#define CUBE_FROM_CODES(p) _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(p)))
#endif
#include "cube_tile.h"
#undef VECTOR_LEVEL
#undef VECTOR_SIZE

/* ---- choosing one ----------------------------------------------------------------------------------------------------- */
static int cube_row_multiple(int level) { return MPG_SIZE(level, CUBE_ROWS_SIZES); }

static int cube_panel_width(int level) { return MPG_SIZE(level, CUBE_WIDTH_SIZES); }

/* Both words (one, if words is 1) of `depth` <= CUBE_BLOCK elements of row `row` of A into its group in every pass of
 * `pass` elements; NULL packs zeros. The low word is multiplied by low_factor, a power of two. */
static void cube_pack_a(const float *source, ptrdiff_t row, ptrdiff_t groups, int words, ptrdiff_t depth, ptrdiff_t pass,
                        const mpg_split *split, float low_factor, float *packed, int level)
{
    uint16_t codes[2][CUBE_BLOCK];
    if (source)
        mpg_split_range(source, codes[0], codes[1], 0, depth, split, level);
    else
        memset(codes, 0, sizeof codes);
    MPG_OF_LEVEL(cube_pack_a, level)(codes[0], codes[1], row, groups, words, depth, pass, low_factor, packed);
}

/* Row k of B, `columns` <= CUBE_BLOCK elements, into the panels; the last one is padded with zeros. */
static void cube_pack_b(const float *source, ptrdiff_t columns, ptrdiff_t k, int words, ptrdiff_t pass, const mpg_split *split,
                        float low_factor, float *packed, ptrdiff_t panels, int level)
{
    uint16_t codes[2][CUBE_BLOCK + CUBE_MAX_WIDTH];
    mpg_split_range(source, codes[0], codes[1], 0, columns, split, level);
    memset(codes[0] + columns, 0, CUBE_MAX_WIDTH * sizeof(uint16_t));
    memset(codes[1] + columns, 0, CUBE_MAX_WIDTH * sizeof(uint16_t));
    MPG_OF_LEVEL(cube_pack_b, level)(codes[0], codes[1], k, words, pass, low_factor, packed, panels);
}

/* Groups [group0, group1) and panels [panel0, panel1) of the block, over the whole slice of k. */
static void cube_tile(const cube_block *block, ptrdiff_t group0, ptrdiff_t group1, ptrdiff_t panel0, ptrdiff_t panel1,
                      int level)
{
    MPG_OF_LEVEL(cube_tile, level)(block, group0, group1, panel0, panel1);
}

/* ---- after a chain ------------------------------------------------------------------------------------------------------ */
static void cube_reconstruct(const float *hh, const float *lh, const float *hl, const float *ll, ptrdiff_t count,
                             const cube_scales *scales, float *out, int level)
{
    MPG_OF_LEVEL(cube_reconstruct, level)(hh, lh, hl, ll, count, scales, out);
}

/* c = RN(c + RN(sum * factor)), in FP32 or FP16. */
static void cube_accumulate(float *MPG_RESTRICT c, const float *MPG_RESTRICT sum, ptrdiff_t count, float factor, int half,
                            int clamp)
{
    if (half) {
        for (ptrdiff_t i = 0; i < count; i++)
            c[i] = cube_half_sum(c[i], sum[i], clamp);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++)
        c[i] = cube_limited(c[i] + cube_limited(sum[i] * factor, clamp), clamp);
}

static void cube_scale(const float *MPG_RESTRICT source, ptrdiff_t count, float factor, int clamp, float *MPG_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = cube_limited(source[i] * factor, clamp);
}

static void cube_store(const float *MPG_RESTRICT sum, ptrdiff_t count, float *MPG_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < count; i++)
        out[i] = sum[i] == sum[i] ? sum[i] : (float)NAN;
}

#endif
