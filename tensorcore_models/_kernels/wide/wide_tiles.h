/* Tiles of the algorithms of wide.h: rows of A against one panel of B over a slice of k, by level. */
#ifndef MPG_WIDE_TILES_H
#define MPG_WIDE_TILES_H

#include "wide_avx2.h"
#include "wide_avx512.h"
#include "wide_nearest.h"

enum { MPG_WIDE_TOGETHER = 4 }; /* rows that are taken at a time, at most */

/* The rows of a tile, a few, over several operations, as float32 values in double. */
static void mpg_wide_rows_plain(const mpg_wide_task *t, const mpg_wide_operands *p, const mpg_result_tile *tile, int64_t steps,
                                int level)
{
    const int rows = (int)tile->rows, count = tile->columns, terms = t->round_down == 2 ? t->terms / 2 : t->terms;
    const int64_t ldd = tile->ld;
    float *d = tile->d; /* not read again for every element, as what is stored might be the tile */
    uint8_t *redo = tile->redo;
    double c[MPG_WIDE_TOGETHER][MPG_WIDE] = {{0}};
    uint8_t overflow[MPG_WIDE_TOGETHER][MPG_WIDE] = {{0}};
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < count; j++)
            c[r][j] = d[r * ldd + j];
    if (t->nearest)
        mpg_wide_nearest_rows(t, p, rows, c, steps, overflow, level);
#if MPG_X86_VARIANTS
    else if (level == MPG_ISA_AVX2)
        mpg_wide_any_rows256(terms, t, p, rows, c, steps, overflow);
#endif
    else
        mpg_wide_rows_baseline(terms, t, p, rows, c, steps, overflow);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < count; j++) {
            d[r * ldd + j] = (float)c[r][j];
            redo[r * ldd + j] |= overflow[r][j];
        }
}

/* The same by level. */
static void mpg_wide_few_rows(const mpg_wide_task *t, const mpg_wide_operands *p, const mpg_result_tile *tile, int64_t steps,
                              int level)
{
    if (t->nearest) {
        mpg_wide_rows_plain(t, p, tile, steps, level);
        return;
    }
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512) {
        mpg_wide_rows_avx512(t, p, tile, steps);
        return;
    }
#endif
    const mpg_rounding mode = mpg_round_toward_zero();
    mpg_wide_rows_plain(t, p, tile, steps, level);
    mpg_restore_rounding(mode);
}

/* The same from zero; the results are added to d outside, in float32. For kernels that do not do that themselves. */
static void mpg_wide_fresh_rows(const mpg_wide_task *t, const mpg_wide_operands *p, const mpg_result_tile *tile, int64_t steps,
                                int level)
{
    float fresh[MPG_WIDE_TOGETHER * MPG_WIDE] = {0};
    uint8_t marks[MPG_WIDE_TOGETHER * MPG_WIDE] = {0};
    const mpg_result_tile own = {fresh, marks, MPG_WIDE, tile->rows, tile->columns};
    const mpg_result_tile out = *tile;
    mpg_wide_few_rows(t, p, &own, steps, level);
    for (int64_t r = 0; r < out.rows; r++)
        for (int j = 0; j < out.columns; j++) {
            out.d[r * out.ld + j] += fresh[r * MPG_WIDE + j];
            out.redo[r * out.ld + j] |= marks[r * MPG_WIDE + j];
        }
}

/* Packed rows (each `length` positions, their stride) against one panel. */
static void mpg_wide_tile(const mpg_wide_task *t, const mpg_wide_operands *whole, const mpg_result_tile *tile, int level)
{
    const int64_t length = whole->stride, rows = tile->rows, ldd = tile->ld;
    const int fresh = t->promote && (level != MPG_ISA_AVX512 || t->nearest), count = tile->columns;
    const int64_t apart = t->promote ? t->promote : t->terms; /* what is not cut */
    const int64_t depth = MPG_SIZE(level, MPG_WIDE_DEPTH_SIZES);
    const int64_t block = fresh || apart > depth ? apart : depth / apart * apart;
    const int together = MPG_SIZE(level, MPG_WIDE_ROWS_SIZES);
    for (int64_t k = 0; k < length; k += block) {
        const int64_t taken = length - k < block ? length - k : block, steps = taken / t->terms;
        /* Each row asks for its share of what follows, also in the next panel. */
        const int64_t each = rows < MPG_FETCHING_ROWS ? 0 : taken * MPG_WIDE / rows + 1;
        const mpg_wide_operands next = mpg_wide_from(whole, 0, k + taken);
        for (int64_t i = 0; i < rows; i += together) {
            const int64_t present = rows - i < together ? rows - i : together;
            const mpg_wide_operands p = mpg_wide_from(whole, i, k);
            const mpg_result_tile part = {tile->d + i * ldd, tile->redo + i * ldd, ldd, present, count};
            mpg_fetch(next.b, i * each * (int64_t)sizeof(*p.b), present * each * (int64_t)sizeof(*p.b), 2);
            mpg_fetch(next.eb, i * each * (int64_t)sizeof(*p.eb), present * each * (int64_t)sizeof(*p.eb), 2);
            mpg_fetch(next.lb, i * each * (int64_t)sizeof(*p.lb), present * each * (int64_t)sizeof(*p.lb), 2);
            (fresh ? mpg_wide_fresh_rows : mpg_wide_few_rows)(t, &p, &part, steps, level);
        }
    }
}

#endif
