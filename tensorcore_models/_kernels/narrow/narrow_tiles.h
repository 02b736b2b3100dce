/* Tiles of the fused dot-add kernels: rows of A against one panel of B over a slice of k. */
#ifndef MPG_NARROW_TILES_H
#define MPG_NARROW_TILES_H

#include <stdlib.h>

#include "block_sizes.h"
#include "narrow.h"

/* Packed rows of A (each `length` positions, its stride) against one packed panel of `width` lanes. */
static void mpg_narrow_tile(const mpg_narrow_task *t, const mpg_narrow_operands *whole, int width, const mpg_result_tile *tile,
                            int level)
{
    const int64_t length = whole->stride, rows = tile->rows;
    const int64_t group = t->terms * (t->chain ? t->chain : 1); /* c may be handed on between these only */
    const int64_t depth = MPG_SIZE(level, MPG_NARROW_DEPTH_SIZES), block = depth / group > 0 ? depth / group * group : group;
    const mpg_narrow_kernel one = mpg_narrow_kernel_of(t, width == MPG_PANEL ? MPG_NARROW_1X64 : MPG_NARROW_1X16, level);
    const int four = MPG_X86_VARIANTS && level == MPG_ISA_AVX512 && width != MPG_PANEL;
    const mpg_narrow_kernel several = four ? mpg_narrow_kernel_of(t, MPG_NARROW_4X16, level) : one;
#if MPG_X86_VARIANTS
    const mpg_rounding mode = mpg_flush_to_zero(level == MPG_ISA_AVX512);
#endif
    for (int64_t k = 0; k < length; k += block) {
        const int64_t taken = length - k < block ? length - k : block, steps = taken / t->terms;
        /* Each row asks for its share of what follows, also in the next panel. */
        const int64_t each = rows < MPG_FETCHING_ROWS ? 0 : taken * width / rows + 1;
        for (int64_t i = 0; i < rows;) {
            const int together = four && rows - i >= 4;
            const int64_t place = i * length + k;
            const mpg_narrow_operands p = {
                whole->a + place, whole->ea + place, length, whole->b + k * width, whole->eb + k * width, 0, NULL};
            const mpg_result_tile part = {tile->d + i * tile->ld, tile->redo + i * tile->ld, tile->ld, rows - i, tile->columns};
            mpg_fetch(p.b + taken * width, i * each * (int64_t)sizeof(*p.b), each * (int64_t)sizeof(*p.b), 2);
            mpg_fetch(p.eb + taken * width, i * each, each, 2);
            (together ? several : one)(t, &p, &part, steps);
            i += together ? 4 : 1;
        }
    }
#if MPG_X86_VARIANTS
    mpg_restore_rounding(mode);
#endif
}

/* ---- panels -------------------------------------------------------------------------------------------------------- */
/* n columns are cut into panels of MPG_PANEL; the rest into panels of 16, unless it nearly fills a wide one. */
static int64_t mpg_wide_panels(int64_t n) { return (n + (n % MPG_PANEL > 48 ? MPG_PANEL - 1 : 0)) / MPG_PANEL; }

static int64_t mpg_panels(int64_t n)
{
    const int64_t wide = mpg_wide_panels(n), rest = n - wide * MPG_PANEL;
    return wide + (rest > 0 ? (rest + 15) / 16 : 0);
}

static int mpg_panel_width(int64_t n, int64_t panel) { return panel < mpg_wide_panels(n) ? MPG_PANEL : 16; }

static int64_t mpg_panel_start(int64_t n, int64_t panel)
{
    const int64_t wide = mpg_wide_panels(n);
    return panel < wide ? panel * MPG_PANEL : wide * MPG_PANEL + (panel - wide) * 16;
}

/* Where a panel lies among those of `length` positions of all columns. */
static mpg_narrow_panel mpg_panel_of(int64_t n, int64_t panel, float *values, uint8_t *exponents, int64_t length)
{
    const int64_t first = mpg_panel_start(n, panel);
    const int width = mpg_panel_width(n, panel), count = (int)(n - first < width ? n - first : width);
    const mpg_narrow_panel p = {first, count, width, values + first * length, exponents + first * length};
    return p;
}

/* Columns of all panels, the padding included. */
static int64_t mpg_padded_columns(int64_t n)
{
    const int64_t last = mpg_panels(n) - 1;
    return last < 0 ? 0 : mpg_panel_start(n, last) + mpg_panel_width(n, last);
}

#endif
