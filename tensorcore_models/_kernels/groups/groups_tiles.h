/* Packing and tiles of the algorithm of groups.h, by level. */
#ifndef MPG_GROUPS_TILES_H
#define MPG_GROUPS_TILES_H

#include "groups_pack_avx512.h"

#define LANES_LEVEL MPG_ISA_BASELINE
#include "groups_lanes.h"
#if MPG_X86_VARIANTS
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX2
#include "groups_lanes.h"
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX512
#include "groups_lanes.h"
#endif
#undef LANES_LEVEL

/* Groups begin to end - 1 of `count` columns of B as one panel in the layout of the level. */
static void mpg_group_pack_b(const mpg_group_task *t, const mpg_group_source *s, int64_t first, int count, int64_t begin,
                             int64_t end, const mpg_group_panel *panel, int level)
{
    mpg_group_pack_b_scales(s, first, count, begin, end, panel);
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512) {
        mpg_group_pack_b_avx512(t, s, first, count, begin, end, panel);
        return;
    }
#endif
    mpg_group_pack_b_plain(t, s, first, count, begin, end, panel);
}

/* The same of a row of A. */
static void mpg_group_pack_a(const mpg_group_task *t, const mpg_group_source *s, int64_t row, int64_t begin, int64_t end,
                             const mpg_group_row *packed, int level)
{
    mpg_group_pack_a_scales(s, row, begin, end, packed->scales, packed->words);
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512) {
        mpg_group_pack_a_avx512(t, s, row, begin, end, packed->values, packed->words);
        return;
    }
#endif
    mpg_group_pack_a_plain(t, s, row, begin, end, packed->values, packed->words);
}

typedef void (*mpg_group_kernel)(const mpg_group_task *, const mpg_group_operands *, const mpg_result_tile *, int64_t steps);

static mpg_group_kernel mpg_group_kernel_of(int level)
{
#if MPG_X86_VARIANTS
    if (level != MPG_ISA_BASELINE)
        return level == MPG_ISA_AVX2 ? mpg_group_row_avx2 : mpg_group_row_avx512;
#endif
    return mpg_group_row_plain;
}

/* Packed rows (each `length` groups, their stride) against one panel. */
static void mpg_group_tile(const mpg_group_task *t, const mpg_group_operands *whole, const mpg_result_tile *tile, int level)
{
    const int64_t products = (int64_t)t->groups * t->group, length = whole->stride;
    const int64_t wanted = (MPG_SIZE(level, MPG_GROUP_DEPTH_SIZES) + products - 1) / products * t->groups;
    const mpg_group_kernel run = mpg_group_kernel_of(level);
    const mpg_rounding mode = mpg_round_toward_zero();
    for (int64_t g = 0; g < length; g += wanted) {
        const int64_t steps = (length - g < wanted ? length - g : wanted) / t->groups;
        for (int64_t i = 0; i < tile->rows; i++) {
            const mpg_group_operands p = mpg_group_from(level, whole, i, g, t->group);
            const mpg_result_tile row = {tile->d + i * tile->ld, tile->redo + i * tile->ld, tile->ld, 1, tile->columns};
            run(t, &p, &row, steps);
        }
    }
    mpg_restore_rounding(mode);
}

#endif
