/* Operand matrices are decoded once, before all passes. */
#ifndef MPG_GENERIC_PACK_H
#define MPG_GENERIC_PACK_H

#include "generic_lanes.h"

/* Significand and alignment exponent of position `at` of a row; `panels`: B is packed in panels. */
MPG_INLINE void mpg_put(const mpg_plan *p, const mpg_packed *out, int panels, int64_t row, int64_t at, int64_t significand,
                        int32_t align)
{
    const int64_t place = row * out->depth + at;
    if (out->words) {
        const int64_t lanes = panels ? MPG_PANEL : 1, lane = row % lanes;
        int64_t *to = out->words + 2 * ((row - lane) * out->depth + at * lanes) + lane;
        to[0] = significand;
        to[lanes] = align;
    } else if (p->wide) {
        ((int64_t *)out->significand)[place] = significand;
    } else {
        ((int32_t *)out->significand)[place] = (int32_t)significand;
    }
    if (out->align)
        out->align[place] = align;
}

/* One operand with its block scale folded in (all families but GROUPS); returns its specials. */
MPG_INLINE int mpg_pack_operand(const mpg_plan *p, const mpg_format *f, const mpg_packed *out, int panels, int64_t row,
                                int64_t at, uint64_t bits, const mpg_number *scale)
{
    mpg_number x = mpg_number_of(bits, f);
    int64_t significand;
    if (p->parts > 1 && x.kind == MPG_FINITE)
        x.significand &= (f == &p->b ? p->b_masks : p->a_masks)[at % p->parts];
    if (scale)
        x = mpg_scaled(x, *scale, p->skip_scaled_zero);
    const int special = mpg_specials_of(x);
    if (x.kind != MPG_FINITE) {
        x.significand = 1;
        x.align = x.kind == MPG_INF ? MPG_ALIGN_INF : MPG_ALIGN_NAN;
    }
    if (p->family == MPG_FAMILY_GROUPS) { /* fixed point, in units of the format's smallest number */
        significand = (int64_t)(x.significand << (special ? 0 : x.exponent - f->emin + f->fraction_bits));
        significand = x.negative ? -significand : significand;
    } else if (p->family == MPG_FAMILY_SOFT_FMA) {
        significand = (int64_t)(x.significand << 1 | (uint64_t)x.negative);
        if (x.kind == MPG_FINITE)
            x.align = x.exponent + f->fraction_bits; /* no alignment takes place: zeros need no rule */
    } else {
        significand = x.negative ? -(int64_t)x.significand : (int64_t)x.significand;
    }
    mpg_put(p, out, panels, row, at, significand, x.align);
    return special;
}

/* The infinity or NaN at one position of a panel of B, for loops over vectors. */
MPG_FROM_VECTORS static int mpg_pack_special(const mpg_plan *p, const mpg_packed *out, int64_t column, int64_t at,
                                             uint64_t bits)
{
    return mpg_pack_operand(p, &p->b, out, 1, column, at, bits, 0);
}

/* Specials of the scales of one pass (GROUPS only, where scales are not folded into the operands). */
static int mpg_scale_specials(const mpg_plan *p, const mpg_matrix *scale, int64_t row, int64_t first, int64_t count)
{
    int special = 0;
    for (int64_t block = first / p->block; block <= (first + count - 1) / p->block; block++)
        special |= mpg_specials_of(mpg_number_of(mpg_element(scale, row, block), &p->scale));
    return special;
}

static void mpg_pack_pass(const mpg_plan *p, int is_b, const mpg_matrix *source, const mpg_matrix *scale,
                          const mpg_layout *layout, int64_t row, int64_t step, const mpg_packed *out)
{
    const mpg_format *f = is_b ? &p->b : &p->a;
    const int64_t first = step * p->step, lane = row % MPG_PANEL;
    const int64_t product = MPG_FIRST_PRODUCT(p, step);
    const int folded = p->scaled && p->family != MPG_FAMILY_GROUPS;
    int special = 0;
    for (int t = 0; t < layout->count; t++) {
        const int64_t k = product + layout->order[t];
        mpg_number s = {1, 0, 0, 0, MPG_FINITE};
        if (folded)
            s = mpg_number_of(mpg_element(scale, row, k / p->block), &p->scale);
        special |= mpg_pack_operand(p, f, out, is_b, row, first + t, mpg_element(source, row, k), folded ? &s : 0);
    }
    if (p->scaled && !folded)
        special |= mpg_scale_specials(p, scale, row, first, layout->count);
    if (out->words && is_b)
        out->special[(row - lane) * out->steps + step * MPG_PANEL + lane] = (uint8_t)special;
    else
        out->special[row * out->steps + step] = (uint8_t)special;
}

static void mpg_pack_scales(const mpg_plan *p, const mpg_matrix *scale, int64_t row, const mpg_packed *out)
{
    for (int64_t block = 0; block < out->blocks; block++) {
        const mpg_number s = mpg_number_of(mpg_element(scale, row, block), &p->scale);
        out->scale[row * out->blocks + block] = (int32_t)(s.negative ? -(int64_t)s.significand : (int64_t)s.significand);
        out->scale_align[row * out->blocks + block] = s.align;
    }
}

static void mpg_pack_integers(int bits, int is_signed, const mpg_matrix *source, const mpg_layout *layout, int64_t row,
                              int64_t first, const mpg_packed *out)
{
    int32_t *to = (int32_t *)out->significand + row * out->depth + first;
    for (int t = 0; t < layout->count; t++)
        to[t] = (int32_t)mpg_integer_of(mpg_element(source, row, first + layout->order[t]), bits, is_signed);
}

/* Rows [begin, end) of one operand; pass by pass, so that a transposed source is read a few lines at a time. */
static void mpg_pack_rows(const mpg_plan *p, int is_b, const mpg_matrix *source, const mpg_matrix *scale,
                          const mpg_layout *whole, const mpg_layout *tail, int64_t begin, int64_t end, const mpg_packed *out)
{
    const int64_t full = out->depth / p->step;
    for (int64_t s = 0; s < out->steps; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, whole, tail);
        for (int64_t row = begin; row < end; row++) {
            if (p->family == MPG_FAMILY_INTEGER || p->family == MPG_FAMILY_INTEGER_PHASES)
                mpg_pack_integers(is_b ? p->b_bits : p->a_bits, is_b ? p->b_signed : p->a_signed, source, layout, row,
                                  s * p->step, out);
            else
                mpg_pack_pass(p, is_b, source, scale, layout, row, s, out);
        }
    }
    if (out->scale)
        for (int64_t row = begin; row < end; row++)
            mpg_pack_scales(p, scale, row, out);
}

/* Rows of A as doubles: rows of `depth` values. */
static void mpg_pack_values(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                            int64_t row, const mpg_packed *out)
{
    const int64_t full = out->depth / p->step;
    for (int64_t s = 0; s < out->steps; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, whole, tail);
        for (int t = 0; t < layout->count; t++)
            out->values[row * out->depth + s * p->step + t] =
                mpg_double_of_number(mpg_number_of(mpg_element(source, row, s * p->step + layout->order[t]), &p->a));
    }
}

/* Columns of B as doubles: panels of `depth` rows of MPG_LANES values, zero beyond the last column. */
static void mpg_pack_panel(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                           int64_t panel, const mpg_packed *out)
{
    const int64_t full = out->depth / p->step, first = panel * MPG_LANES;
    const int width = (int)(out->rows - first < MPG_LANES ? out->rows - first : MPG_LANES);
    double *to = out->values + first * out->depth;
    for (int64_t s = 0; s < out->steps; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, whole, tail);
        for (int t = 0; t < layout->count; t++, to += MPG_LANES) {
            const int64_t k = s * p->step + layout->order[t];
            for (int l = 0; l < width; l++)
                to[l] = mpg_double_of_number(mpg_number_of(mpg_element(source, first + l, k), &p->b));
            for (int l = width; l < MPG_LANES; l++)
                to[l] = 0;
        }
    }
}

#endif
