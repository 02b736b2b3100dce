/* FP32 products from products of words on AMX tiles: packing, the range that decides whether words will do, tiles of the result.
 *
 * Layout. An operand is cut into panels of 32 rows of A (columns of B) and slices of k, a slice into steps: 32 products of bf16, 64 of
 * int8. Each word has a plane [panel][step][half][16][64 bytes], zeros where the matrix ends; rows of A as they are, of B the
 * elements of 32 bits along k side by side for each column (the instructions' own layout). The result is updated in place.
 *
 * Order. For `block` steps at a time the tiles start from zero, take the products of words in the order of the list, each over the
 * whole block, and are added to the result: FP32 to nearest even, int32 modulo 2^32 in a plane for each level. The order does not
 * depend on threads or on how the work is cut.
 */
#ifndef MPG_AMX_SGEMM_H
#define MPG_AMX_SGEMM_H

#include <stddef.h>

#include "amx.h"

enum {
    SGEMM_PANEL = 32,
    SGEMM_STEP_BYTES = 2048,
    SGEMM_PAIRS = 16,
    SGEMM_WORDS = 3,
    SGEMM_DEPTH = 32,
    SGEMM_DEPTH_INT8 = 64,
    SGEMM_PEAK_STEPS = 4
};

typedef struct {
    const char *a, *b;      /* packed slices */
    int64_t a_word, b_word; /* bytes from one word's plane to the next */
    int64_t steps, block;   /* of the slice, and between restarts */
    int64_t m, n;
    char *d;       /* (m, n), 4 bytes each; a plane for each level */
    int64_t plane; /* bytes from one level to the next */
    int first;     /* d holds no result yet */
    int is_int8;
    int pairs;
    int left[SGEMM_PAIRS], right[SGEMM_PAIRS], level[SGEMM_PAIRS];
} sgemm_job;

/* Magnitudes of an operand as bits: the largest, and the smallest nonzero one minus 1. */
typedef struct {
    uint32_t largest, smallest;
} sgemm_range;

/* x to bf16, to nearest even. */
MPG_INLINE uint32_t sgemm_rounded(uint32_t bits) { return (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u; }

/* Words of 32 numbers: each the bf16 nearest to what the words before leave, which is exact in float32. */
MPG_INLINE void sgemm_words(const float *x, uint16_t words[SGEMM_WORDS][SGEMM_PANEL], sgemm_range *range)
{
    uint32_t largest = range->largest, smallest = range->smallest;
    for (int t = 0; t < SGEMM_PANEL; t++) {
        float rest = x[t];
        const uint32_t magnitude = mpg_as_bits(rest) & 0x7FFFFFFFu, before = magnitude - 1; /* of zero: the largest there is */
        largest = magnitude > largest ? magnitude : largest;
        smallest = before < smallest ? before : smallest;
        for (int w = 0; w < SGEMM_WORDS; w++) {
            const uint32_t rounded = sgemm_rounded(mpg_as_bits(rest));
            words[w][t] = (uint16_t)(rounded >> 16);
            rest -= mpg_as_float(rounded);
        }
    }
    range->largest = largest;
    range->smallest = smallest;
}

/* One panel of a slice: `rows` rows of A (row stride lda), `depth` of k. */
MPG_INLINE void sgemm_pack_a_body(int level, const float *a, int64_t lda, int64_t rows, int64_t depth, char *to, int64_t word,
                                  sgemm_range *range)
{
    for (int64_t k = 0; k < depth; k += SGEMM_DEPTH, to += SGEMM_STEP_BYTES)
        for (int64_t r = 0; r < SGEMM_PANEL; r++) {
            const int64_t count = r >= rows ? 0 : depth - k < SGEMM_DEPTH ? depth - k : SGEMM_DEPTH;
            uint16_t words[SGEMM_WORDS][SGEMM_PANEL];
            float x[SGEMM_PANEL] = {0};
            if (count)
                memcpy(x, a + r * lda + k, (size_t)count * sizeof *x);
            sgemm_words(x, words, range);
            for (int w = 0; w < SGEMM_WORDS; w++)
                memcpy(to + w * word + r * 64, words[w], 64);
        }
}

/* The same of B: `columns` columns (row stride ldb). */
MPG_INLINE void sgemm_pack_b_body(int level, const float *b, int64_t ldb, int64_t columns, int64_t depth, char *to,
                                  int64_t word, sgemm_range *range)
{
    for (int64_t k = 0; k < depth; k += 2) {
        uint16_t even[SGEMM_WORDS][SGEMM_PANEL], odd[SGEMM_WORDS][SGEMM_PANEL];
        float x[SGEMM_PANEL] = {0}, y[SGEMM_PANEL] = {0};
        char *row = to + k / SGEMM_DEPTH * SGEMM_STEP_BYTES + k % SGEMM_DEPTH / 2 * 64;
        memcpy(x, b + k * ldb, (size_t)columns * sizeof *x);
        if (k + 1 < depth)
            memcpy(y, b + (k + 1) * ldb, (size_t)columns * sizeof *y);
        sgemm_words(x, even, range);
        sgemm_words(y, odd, range);
        for (int w = 0; w < SGEMM_WORDS; w++) {
            uint32_t both[SGEMM_PANEL];
            for (int t = 0; t < SGEMM_PANEL; t++)
                both[t] = (uint32_t)even[w][t] | (uint32_t)odd[w][t] << 16;
            memcpy(row + w * word, both, 64);
            memcpy(row + w * word + SGEMM_STEP_BYTES / 2, both + 16, 64);
        }
    }
    for (int64_t k = (depth + 1) / 2 * 2; k % SGEMM_DEPTH; k += 2)
        for (int w = 0; w < SGEMM_WORDS; w++) {
            char *row = to + w * word + k / SGEMM_DEPTH * SGEMM_STEP_BYTES + k % SGEMM_DEPTH / 2 * 64;
            memset(row, 0, 64);
            memset(row + SGEMM_STEP_BYTES / 2, 0, 64);
        }
}

MPG_VARIANTS(sgemm_pack_a, (a, lda, rows, depth, to, word, range), const float *a, int64_t lda, int64_t rows, int64_t depth,
             char *to, int64_t word, sgemm_range *range)
MPG_VARIANTS(sgemm_pack_b, (b, ldb, columns, depth, to, word, range), const float *b, int64_t ldb, int64_t columns,
             int64_t depth, char *to, int64_t word, sgemm_range *range)

/* Panel `panel` of a slice of k of either operand (rows, columns in all; row stride `stride`), at `source`'s first element of the slice. */
static void sgemm_pack(int is_b, const float *source, int64_t stride, int64_t panel, int64_t extent, int64_t depth,
                       char *packed, int64_t word, sgemm_range *range, int level)
{
    const int64_t first = panel * SGEMM_PANEL, count = extent - first < SGEMM_PANEL ? extent - first : SGEMM_PANEL;
    char *to = packed + panel * ((depth + SGEMM_DEPTH - 1) / SGEMM_DEPTH) * SGEMM_STEP_BYTES;
    if (is_b)
        sgemm_pack_b(source + first, stride, count, depth, to, word, range, level);
    else
        sgemm_pack_a(source + first * stride, stride, count, depth, to, word, range, level);
}

/* The same of one plane of int8 words. */
static void sgemm_pack_int8(int is_b, const int8_t *source, int64_t stride, int64_t panel, int64_t extent, int64_t depth,
                            char *packed)
{
    const int64_t first = panel * SGEMM_PANEL, count = extent - first < SGEMM_PANEL ? extent - first : SGEMM_PANEL;
    const int64_t steps = (depth + SGEMM_DEPTH_INT8 - 1) / SGEMM_DEPTH_INT8;
    char *to = packed + panel * steps * SGEMM_STEP_BYTES;
    memset(to, 0, (size_t)(steps * SGEMM_STEP_BYTES));
    if (!is_b) {
        for (int64_t k = 0; k < depth; k += SGEMM_DEPTH_INT8, to += SGEMM_STEP_BYTES)
            for (int64_t r = 0; r < count; r++)
                memcpy(to + r * 64, source + (first + r) * stride + k,
                       (size_t)(depth - k < SGEMM_DEPTH_INT8 ? depth - k : SGEMM_DEPTH_INT8));
        return;
    }
    for (int64_t k = 0; k < depth; k++) {
        const int8_t *from = source + k * stride + first;
        char *row = to + k / SGEMM_DEPTH_INT8 * SGEMM_STEP_BYTES + k % SGEMM_DEPTH_INT8 / 4 * 64 + k % 4;
        for (int64_t j = 0; j < count; j++)
            row[j / 16 * (SGEMM_STEP_BYTES / 2) + j % 16 * 4] = (char)from[j];
    }
}

/* d += sum (= for the first slice) for a tile of 32 x 32, cut to the matrix. */
MPG_INLINE void sgemm_update(const sgemm_job *job, const float *sum, int64_t i, int64_t j, int level, int fresh)
{
    const int64_t rows = job->m - i < SGEMM_PANEL ? job->m - i : SGEMM_PANEL;
    const int64_t columns = job->n - j < SGEMM_PANEL ? job->n - j : SGEMM_PANEL;
    for (int64_t r = 0; r < rows; r++) {
        char *place = job->d + level * job->plane + ((i + r) * job->n + j) * 4;
        const float *from = sum + r * SGEMM_PANEL;
        if (fresh) {
            memcpy(place, from, (size_t)columns * 4);
        } else if (job->is_int8) {
            uint32_t *to = (uint32_t *)(void *)place, words[SGEMM_PANEL];
            memcpy(words, from, sizeof words);
            for (int64_t t = 0; t < columns; t++)
                to[t] += words[t];
        } else {
            float *to = (float *)(void *)place;
            for (int64_t t = 0; t < columns; t++)
                to[t] += from[t];
        }
    }
}

#if MPG_HAS_AMX
#define AMX_REAL 1
#include "amx_sgemm_tiles.h"
#undef AMX_REAL
#endif
#define AMX_REAL 0
#include "amx_sgemm_tiles.h"
#undef AMX_REAL

/* Panels [i0, i1) of A by panels [j0, j1) of B over the whole slice. */
static void sgemm_tiles(const sgemm_job *job, int emulated, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
#if MPG_HAS_AMX
    if (!emulated) {
        mpg_amx_unit_sgemm(job, i0, i1, j0, j1);
        return;
    }
#endif
    if (emulated)
        mpg_amx_emulated_sgemm(job, i0, i1, j0, j1);
}

static void sgemm_peak(const char *words, int64_t rounds, int is_int8, int emulated)
{
#if MPG_HAS_AMX
    if (!emulated)
        mpg_amx_unit_peak(words, rounds, is_int8);
#endif
    if (emulated)
        mpg_amx_emulated_peak(words, rounds, is_int8);
}

static int sgemm_state(int is_int8) { return mpg_amx_state(is_int8 ? MPG_CPUID_AMX_INT8 : MPG_CPUID_AMX_BF16, 0); }

#endif
