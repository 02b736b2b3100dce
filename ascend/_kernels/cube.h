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
#include "driver.h"
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

/* A product: the fields of CubeTask in ascend.numeric.fp16_products. */
typedef struct {
    int terms;                  /* bit mask of the terms to run */
    int step_order;             /* CUBE_SEQUENTIAL, ... */
    int step;                   /* products of one cube step, or of one group in elementwise order */
    int a_exponent, b_exponent; /* of the scales of low words */
    int elementwise;            /* all terms in one chain */
    int in_place, reseed, saturate;
    int clamp; /* overflow gives the largest finite number */
    int half;  /* accumulate in FP16 */
} cube_task;

typedef struct {
    float low_scale, lh_scale, hl_scale, ll_scale; /* powers of two, see cube_reconstruct */
    int has_ll;
    int clamp;
} cube_scales;

typedef struct {
    mpg_drive drive; /* the chains of one block over one k group */
    mpg_grid grid;
    cube_task task;
    const float *a, *b; /* (m, k) and (k, n) */
    float *out;         /* (m, n) */
    int64_t m, k, n;
    mpg_split a_split, b_split;
    float a_low_factor, b_low_factor;
    int words, chains;   /* packed words, sums kept for each element */
    int64_t row, column; /* first row and column of the block */
    int64_t start;       /* start of the k group */
    int terms;           /* terms of the task that run now */
    int fresh, last;     /* the sums start from 0 in this group; its results are written */
    float *packed_a, *packed_b, *sums;
    float *totals;          /* C, if it is not kept in the sums */
    double bin[CUBE_TERMS]; /* exact steps: 1.5 * 2^(52 + q), q the exponent where products are cut in two */
    cube_scales scales;
} cube_job;

/* Number of products of one pass. */
MPG_INLINE int64_t cube_pass(const cube_job *job) { return CUBE_DEPTH / job->task.step * job->task.step; }

/* Returns the place of the first chains of row i of the block and of the columns of a panel. */
MPG_INLINE int64_t cube_place(const cube_job *job, int64_t i, int64_t panel)
{
    const mpg_grid *g = &job->grid;
    return ((panel * g->groups + i / g->rows) * job->chains * g->rows + i % g->rows) * g->columns;
}

/* ---- scalars ------------------------------------------------------------------------------------------------------ */
MPG_INLINE float cube_clamped(float x, float largest) { return x > largest ? largest : (x < -largest ? -largest : x); }

/* Returns x + y, with an odd last bit if inexact (Boldo and Melquiond 2008), so that a later rounding to fewer bits is right. */
MPG_INLINE double cube_odd_sum(double x, double y)
{
    const double sum = x + y, back = sum - x, error = (x - (sum - back)) + (y - back);
    const uint64_t bits = mpg_as_bits64(sum);
    if (error == 0.0 || error != error) /* NaN: an operand was not finite */
        return sum;
    return bits & 1 ? sum : mpg_as_double((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

/* Rounds to nearest even to FP16, including its exponent range; overflow gives infinity. */
MPG_INLINE double cube_to_half(double x)
{
    int64_t field = (int64_t)(mpg_as_bits64(x) >> 52 & 0x7ff);
    double magic, rounded;
    if (field == 0x7ff)
        return x;
    if (field < 1023 - 14) /* subnormal: the unit stays 2^-24 */
        field = 1023 - 14;
    magic = mpg_as_double((uint64_t)(field + 42) << 52 | UINT64_C(1) << 51); /* 1.5 * 2^(52 + exponent of the unit) */
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

/* Converts an FP16 encoding to FP32, for compilers and CPUs without the instruction. */
MPG_INLINE float cube_from_half(uint16_t code)
{
    /* exact: moves the exponent from bias 15 to bias 127, subnormals included */
    const float magnitude = mpg_as_float((uint32_t)(code & 0x7fff) << 13) * 0x1p112f;
    const uint32_t special = (code & 0x7c00) == 0x7c00 ? 0x7f800000u : 0u;
    return mpg_as_float(mpg_as_bits(magnitude) | special | (uint32_t)(code & 0x8000) << 16);
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

#endif
