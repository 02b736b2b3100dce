/* Tiles of the fused dot-add kernels: packing by level, and rows of A against one panel of B over a slice of k. */
#ifndef MPG_NARROW_TILES_H
#define MPG_NARROW_TILES_H

#include <stdlib.h>

#include "block_sizes.h"
#include "narrow.h"
#include "narrow_avx2.h"
#include "narrow_avx512.h"
#include "narrow_fp16_avx512.h"

MPG_VARIANTS(mpg_narrow_pack_b_plain, (s, f, first, count, width, begin, end, values, exponents, special), const mpg_source *s,
             const mpg_operand *f, int64_t first, int count, int width, int64_t begin, int64_t end, float *values,
             uint8_t *exponents, uint8_t *special)
MPG_VARIANTS(mpg_narrow_pack_a_plain, (s, f, row, begin, end, plain_order, values, exponents, special), const mpg_source *s,
             const mpg_operand *f, int64_t row, int64_t begin, int64_t end, int plain_order, float *values, uint32_t *exponents,
             uint8_t *special)

static void mpg_narrow_pack_b(const mpg_source *s, const mpg_operand *f, int64_t first, int count, int width, int64_t begin,
                              int64_t end, float *values, uint8_t *exponents, uint8_t *special, int level)
{
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512 && s->outer == 1 && mpg_is_fp16(f)) {
        mpg_fp16_pack_b(s, f, first, count, width, begin, end, values, exponents, special);
        return;
    }
#endif
    mpg_narrow_pack_b_plain(s, f, first, count, width, begin, end, values, exponents, special, level);
}

static void mpg_narrow_pack_a(const mpg_source *s, const mpg_operand *f, int64_t row, int64_t begin, int64_t end,
                              int plain_order, float *values, uint32_t *exponents, uint8_t *special, int level)
{
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512 && plain_order && s->inner == 1 && mpg_is_fp16(f)) {
        special[row] |=
            (uint8_t)mpg_fp16_pack_a((const uint16_t *)s->data + row * s->outer + begin, end - begin, f, values, exponents);
        return;
    }
#endif
    mpg_narrow_pack_a_plain(s, f, row, begin, end, plain_order, values, exponents, special, level);
}

/* `rows` packed rows of A (each `length` positions) against one packed panel, d and redo (leading dimension ldd) updated
 * in place; `count` columns of the panel exist. */
static void mpg_narrow_tile(const mpg_narrow_task *t, const float *av, const uint32_t *ae, int64_t length, int64_t rows,
                            const float *bv, const uint8_t *be, int width, int count, float *d, uint8_t *redo, int64_t ldd,
                            int level)
{
    const int64_t group = t->terms * (t->chain ? t->chain : 1); /* c may be handed on between these only */
    const int64_t depth = MPG_SIZE(level, MPG_NARROW_DEPTH_SIZES), block = depth / group > 0 ? depth / group * group : group;
    float c[MPG_PANEL];
    uint8_t overflow[MPG_PANEL];
    const int terms_index = t->terms == 4 ? 0 : t->terms == 8 ? 1 : t->terms == 16 ? 2 : 3;
    mpg_narrow_row row = MPG_NARROW_ROWS_BASELINE[width != MPG_PANEL][t->output][terms_index];
#if MPG_X86_VARIANTS
    const unsigned mode = _mm_getcsr();
    if (level == MPG_ISA_AVX512)
        _mm_setcsr(mode | MPG_FLUSH_TO_ZERO);
    if (level == MPG_ISA_AVX2)
        row = MPG_NARROW_ROWS_AVX2[width != MPG_PANEL][t->output][terms_index];
#endif
    for (int64_t k = 0; k < length; k += block) {
        const int64_t taken = length - k < block ? length - k : block, steps = taken / t->terms;
        const float *b = bv + k * width;
        const uint8_t *eb = be + k * width;
        /* Each row asks for its share of what follows, also in the next panel. */
        const int64_t each = rows < MPG_FETCHING_ROWS ? 0 : taken * width / rows + 1;
        for (int64_t i = 0; i < rows;) {
            mpg_fetch(b + taken * width, i * each * (int64_t)sizeof(*b), each * (int64_t)sizeof(*b), 2);
            mpg_fetch(eb + taken * width, i * each, each, 2);
            if (each && i + 1 < rows)
                mpg_fetch(d, (i + 1) * ldd * (int64_t)sizeof(*d), count * (int64_t)sizeof(*d), 1);
            const float *a = av + i * length + k;
            const uint32_t *ea = ae + i * length + k;
#if MPG_X86_VARIANTS
            if (level == MPG_ISA_AVX512) {
                const int together = width != MPG_PANEL && rows - i >= 4 ? 4 : 1;
                mpg_narrow_kernel(t, width == MPG_PANEL ? 0
                                     : together == 4
                                         ? 1
                                         : 2)(t, a, ea, length, 0, NULL, b, eb, d + i * ldd, ldd, count, steps, redo + i * ldd);
                i += together;
                continue;
            }
#endif
            memcpy(c, d + i * ldd, (size_t)count * sizeof(float));
            memset(c + count, 0, (size_t)(MPG_PANEL - count) * sizeof(float));
            memset(overflow, 0, sizeof(overflow));
            row(t, a, ea, b, eb, c, steps, overflow);
            memcpy(d + i * ldd, c, (size_t)count * sizeof(float));
            if (t->output == MPG_OUT_FP16)
                for (int j = 0; j < count; j++)
                    redo[i * ldd + j] |= overflow[j];
            i++;
        }
    }
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512)
        _mm_setcsr(mode);
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

static int mpg_panel_count(int64_t n, int64_t panel)
{
    const int64_t rest = n - mpg_panel_start(n, panel);
    const int width = mpg_panel_width(n, panel);
    return (int)(rest < width ? rest : width);
}

/* Columns of all panels, the padding included. */
static int64_t mpg_padded_columns(int64_t n)
{
    const int64_t last = mpg_panels(n) - 1;
    return last < 0 ? 0 : mpg_panel_start(n, last) + mpg_panel_width(n, last);
}

#endif
