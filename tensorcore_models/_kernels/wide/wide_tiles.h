/* Tiles of the algorithms of wide.h: rows of A against one panel of B over a slice of k, by level. */
#ifndef MPG_WIDE_TILES_H
#define MPG_WIDE_TILES_H

#include <math.h>

#include "wide.h"

enum { MPG_WIDE_TOGETHER = 4 }; /* rows that are taken at a time, at most */

/* What an operation returns: 0, MPG_INFINITE if there may be infinite results (2 to the power of the format's bound or more), or
 * MPG_REPEAT if it must be computed again, carefully. */
enum { MPG_INFINITE = 1, MPG_REPEAT = 2 };

/* What an operation does: a fused dot-add into float32 or fp16, or of addends rounded to nearest, a dot-round-down-add of one group or
 * two, or one with a late c, which is added exactly (and lanes with a product that is cut are marked), or rounded to odd. */
enum {
    MPG_WIDE_FDA,
    MPG_WIDE_FDA_FP16,
    MPG_WIDE_NEAREST,
    MPG_WIDE_DOWN,
    MPG_WIDE_DOWN_GROUPS,
    MPG_WIDE_EXACT,
    MPG_WIDE_EXACT_MARKED,
    MPG_WIDE_ODD
};

/* The rows of a tile, a few, over several operations. */
typedef void (*mpg_wide_kernel)(const mpg_wide_task *, const mpg_wide_operands *, const mpg_result_tile *, int64_t steps);

#define LANES_TEXT "wide_lanes.h"
#include "lanes_of_each_set.h"

static mpg_wide_kernel mpg_wide_kernel_of(const mpg_wide_task *t, int rows, int level)
{
    const int algorithm = t->late == MPG_LATE_ODD     ? MPG_WIDE_ODD
                          : t->late                   ? (t->mark_cut ? MPG_WIDE_EXACT_MARKED : MPG_WIDE_EXACT)
                          : t->nearest                ? MPG_WIDE_NEAREST
                          : t->round_down             ? MPG_WIDE_DOWN - 1 + t->round_down
                          : t->output == MPG_OUT_FP16 ? MPG_WIDE_FDA_FP16
                                                      : MPG_WIDE_FDA;
    return MPG_LANES_OF(mpg_WIDE_KERNELS, level)[algorithm][mpg_terms_index(t->terms)][rows == 2];
}

/* A few rows over several operations, in the rounding that they want. */
static void mpg_wide_few_rows(const mpg_wide_task *t, const mpg_wide_operands *p, const mpg_result_tile *tile, int64_t steps,
                              int level)
{
    const mpg_wide_kernel kernel = mpg_wide_kernel_of(t, (int)tile->rows, level);
    if (t->nearest || (MPG_X86_VARIANTS && level == MPG_ISA_AVX512)) {
        kernel(t, p, tile, steps);
        return;
    }
    const mpg_rounding mode = mpg_round_toward_zero();
    kernel(t, p, tile, steps);
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
    const int fresh = t->promote && (!MPG_X86_VARIANTS || level != MPG_ISA_AVX512), count = tile->columns;
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
