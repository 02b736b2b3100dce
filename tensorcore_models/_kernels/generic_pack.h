/* Taking operand matrices apart, once, and running passes over tiles of the result. */
#ifndef MPG_GENERIC_PACK_H
#define MPG_GENERIC_PACK_H

#include "generic_lanes.h"
#include "generic_steps.h"

MPG_INLINE void mpg_put(const mpg_plan *p, mpg_packed *out, int64_t at, int64_t significand, int32_t align)
{
    if (p->wide)
        ((int64_t *)out->significand)[at] = significand;
    else
        ((int32_t *)out->significand)[at] = (int32_t)significand;
    if (out->align)
        out->align[at] = align;
}

/* One operand with its block scale folded in (all families but GROUPS); returns its specials. */
MPG_INLINE int mpg_pack_operand(const mpg_plan *p, const mpg_format *f, mpg_packed *out, int64_t at, uint64_t bits,
                                const mpg_number *scale)
{
    mpg_number x = mpg_number_of(bits, f);
    int64_t significand;
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
    mpg_put(p, out, at, significand, x.align);
    return special;
}

/* Specials of the scales of one pass (GROUPS only, where scales are not folded into the operands). */
static int mpg_scale_specials(const mpg_plan *p, const mpg_matrix *scale, int64_t row, int64_t first, int64_t count)
{
    int special = 0;
    for (int64_t block = first / p->block; block <= (first + count - 1) / p->block; block++)
        special |= mpg_specials_of(mpg_number_of(mpg_element(scale, row, block), &p->scale));
    return special;
}

static void mpg_pack_pass(const mpg_plan *p, const mpg_format *f, const mpg_matrix *source, const mpg_matrix *scale,
                          const mpg_layout *layout, int64_t row, int64_t step, mpg_packed *out)
{
    const int64_t first = step * p->step, at = row * out->depth + first;
    const int folded = p->scaled && p->family != MPG_FAMILY_GROUPS;
    int special = 0;
    for (int t = 0; t < layout->count; t++) {
        const int64_t k = first + layout->order[t];
        mpg_number s = {1, 0, 0, 0, MPG_FINITE};
        if (folded)
            s = mpg_number_of(mpg_element(scale, row, k / p->block), &p->scale);
        special |= mpg_pack_operand(p, f, out, at + t, mpg_element(source, row, k), folded ? &s : 0);
    }
    if (p->scaled && !folded)
        special |= mpg_scale_specials(p, scale, row, first, layout->count);
    out->special[row * out->steps + step] = (uint8_t)special;
}

static void mpg_pack_scales(const mpg_plan *p, const mpg_matrix *scale, int64_t row, mpg_packed *out)
{
    for (int64_t block = 0; block < out->blocks; block++) {
        const mpg_number s = mpg_number_of(mpg_element(scale, row, block), &p->scale);
        out->scale[row * out->blocks + block] = (int32_t)(s.negative ? -(int64_t)s.significand : (int64_t)s.significand);
        out->scale_align[row * out->blocks + block] = s.align;
    }
}

static void mpg_pack_integers(int bits, int is_signed, const mpg_matrix *source, const mpg_layout *layout, int64_t row,
                              int64_t first, mpg_packed *out)
{
    int32_t *to = (int32_t *)out->significand + row * out->depth + first;
    for (int t = 0; t < layout->count; t++)
        to[t] = (int32_t)mpg_integer_of(mpg_element(source, row, first + layout->order[t]), bits, is_signed);
}

/* Rows [begin, end) of one operand; pass by pass, so that a transposed source is read a few lines at a time. */
static void mpg_pack_rows(const mpg_plan *p, int is_b, const mpg_matrix *source, const mpg_matrix *scale,
                          const mpg_layout *whole, const mpg_layout *tail, int64_t begin, int64_t end, mpg_packed *out)
{
    const mpg_format *f = is_b ? &p->b : &p->a;
    const int64_t full = out->depth / p->step;
    for (int64_t s = 0; s < out->steps; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, whole, tail);
        for (int64_t row = begin; row < end; row++) {
            if (p->family == MPG_FAMILY_INTEGER)
                mpg_pack_integers(is_b ? p->b_bits : p->a_bits, is_b ? p->b_signed : p->a_signed, source, layout, row,
                                  s * p->step, out);
            else
                mpg_pack_pass(p, f, source, scale, layout, row, s, out);
        }
    }
    if (out->scale)
        for (int64_t row = begin; row < end; row++)
            mpg_pack_scales(p, scale, row, out);
}

/* Rows of A as doubles: rows of `depth` values. */
static void mpg_pack_values(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                            int64_t row, mpg_packed *out)
{
    const int64_t full = out->depth / p->step;
    for (int64_t s = 0; s < out->steps; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, whole, tail);
        for (int t = 0; t < layout->count; t++)
            out->values[row * out->depth + s * p->step + t] = mpg_double_of_number(
                mpg_number_of(mpg_element(source, row, s * p->step + layout->order[t]), &p->a));
    }
}

/* Columns of B as doubles: panels of `depth` rows of MPG_LANES values, zero beyond the last column. */
static void mpg_pack_panel(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                           int64_t panel, mpg_packed *out)
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

/* ---- tiles --------------------------------------------------------------------------------------------------------- */
typedef struct {
    const mpg_plan *plan;
    const mpg_packed *a, *b;
    const mpg_layout *whole, *tail;
    const mpg_matrix *c;
    char *out;
    int64_t columns;
    int out_size, isa;
} mpg_job;

/* One pass of row i and column j: the encoding of the addend in, that of the result out. */
MPG_INLINE uint64_t mpg_one_pass(const mpg_job *job, int64_t step, const mpg_layout *layout, int64_t i, int64_t j, uint64_t c)
{
    const mpg_plan *p = job->plan;
    const mpg_packed *a = job->a, *b = job->b;
    const int64_t first = step * p->step, at = i * a->depth + first, bt = j * b->depth + first;
    const int32_t *ae = a->align + (a->align ? at : 0), *be = b->align + (b->align ? bt : 0);
    const int count = layout->count;
    const int special = a->special[i * a->steps + step] | b->special[j * b->steps + step];
    const mpg_format *chained = step ? &p->chained : &p->c;

#define MPG_FAMILIES(SIG, W)                                                                                           \
    const SIG *x = (const SIG *)a->significand + at, *y = (const SIG *)b->significand + bt;                            \
    switch (p->family) {                                                                                               \
    case MPG_FAMILY_FUSED: {                                                                                           \
        const mpg_number start = mpg_number_of(c, chained);                                                            \
        const uint64_t dot = mpg_fused_##W(p, x, ae, y, be, count, layout, special, p->late_c ? 0 : &start);           \
        if (!p->late_c)                                                                                                \
            return dot;                                                                                                \
        return mpg_ieee_add_##W(mpg_number_of(dot, &p->raw_d), mpg_number_of(c, step ? &p->raw_d : &p->raw_c),         \
                                &p->result, &p->late);                                                                 \
    }                                                                                                                  \
    case MPG_FAMILY_INTERLEAVED: {                                                                                     \
        uint64_t dot = 0;                                                                                              \
        for (int g = 0; g < layout->segments; g++) {                                                                   \
            const int at_g = layout->bounds[g];                                                                        \
            const mpg_number start = mpg_number_of(dot, &p->chained);                                                  \
            dot = mpg_fused_##W(p, x + at_g, ae + at_g, y + at_g, be + at_g, layout->bounds[g + 1] - at_g, layout,     \
                                special, &start);                                                                      \
        }                                                                                                              \
        return mpg_ieee_add_##W(mpg_number_of(dot, &p->raw_d), mpg_number_of(c, step ? &p->raw_d : &p->raw_c),         \
                                &p->result, &p->late);                                                                 \
    }                                                                                                                  \
    case MPG_FAMILY_GROUPS: {                                                                                          \
        const mpg_number start = mpg_number_of(c, chained);                                                            \
        return mpg_groups_##W(p, x, y, layout, special, a->scale + i * a->blocks, a->scale_align + i * a->blocks,      \
                              b->scale + j * b->blocks, b->scale_align + j * b->blocks, first, &start);                \
    }                                                                                                                  \
    case MPG_FAMILY_ROUND_DOWN: {                                                                                      \
        const mpg_number start = mpg_number_of(c, chained);                                                            \
        return mpg_round_down_##W(p, x, ae, y, be, count, layout, special, &start);                                    \
    }                                                                                                                  \
    case MPG_FAMILY_SOFT_FMA:                                                                                          \
        for (int q = 0; q < count; q++) {                                                                              \
            const mpg_number start = mpg_number_of(c, step || q ? &p->chained : &p->c);                                \
            c = mpg_soft_fma_##W(p, x[q], ae[q], y[q], be[q], &start);                                                 \
        }                                                                                                              \
        return c;                                                                                                      \
    default: break;                                                                                                    \
    }

    if (!p->wide) {
        if (p->family == MPG_FAMILY_INTEGER)
            return mpg_integer_dot(p, (const int32_t *)a->significand + at, (const int32_t *)b->significand + bt, count, c,
                                   step == 0);
        MPG_FAMILIES(int32_t, 64)
    }
#if MPG_HAS_WIDE
    else {
        MPG_FAMILIES(int64_t, 128)
        if (p->family == MPG_FAMILY_EXACT) {
            const mpg_number start = mpg_number_of(c, chained);
            const uint64_t dot = mpg_exact(p, x, ae, y, be, count, special, p->late_c ? 0 : &start);
            if (!p->late_c)
                return dot;
            return mpg_ieee_add_128(mpg_number_of(dot, &p->raw_d), mpg_number_of(c, step ? &p->raw_d : &p->raw_c),
                                    &p->result, &p->late);
        }
    }
#endif
#undef MPG_FAMILIES
    return c;
}

/* Depth that stays in cache while a tile's rows and columns meet. */
#define MPG_DEPTH_BLOCK 1024
#define MPG_TILE_COLUMNS 64

/* Passes [s0, s1) of one row and at most MPG_TILE_COLUMNS columns. The passes of one element wait for each other; those of
 * neighbours do not, so they take turns. */
static void mpg_row_of_passes(const mpg_job *job, int64_t i, int64_t j0, int64_t j1, int64_t s0, int64_t s1)
{
    const int64_t full = job->a->depth / job->plan->step, at = i * job->columns;
    uint64_t total[MPG_TILE_COLUMNS];
    for (int64_t j = j0; j < j1; j++)
        total[j - j0] = s0 ? mpg_load(job->out, job->out_size, at + j) : mpg_element(job->c, i, j);
    for (int64_t s = s0; s < s1; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, job->whole, job->tail);
        for (int64_t j = j0; j < j1; j++)
            total[j - j0] = mpg_one_pass(job, s, layout, i, j, total[j - j0]);
    }
    for (int64_t j = j0; j < j1; j++)
        mpg_store(job->out, job->out_size, at + j, total[j - j0]);
}

/* Rows [i0, i1), columns [j0, j1); between blocks of k the running results stand in the output. */
static void mpg_tile(const mpg_job *job, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const mpg_plan *p = job->plan;
    const int64_t steps = job->a->steps;
    const int64_t block = MPG_DEPTH_BLOCK / p->step > 0 ? MPG_DEPTH_BLOCK / p->step : 1;
    if (mpg_is_lanes(p)) {
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j += MPG_LANES) {
                const int width = (int)(j1 - j < MPG_LANES ? j1 - j : MPG_LANES);
                if (job->isa == MPG_ISA_AVX512)
                    mpg_lanes_avx512(p, job->a, job->b, job->whole, job->tail, job->c, job->out, job->columns,
                                     job->out_size, i, j, width);
                else if (job->isa == MPG_ISA_AVX2)
                    mpg_lanes_avx2(p, job->a, job->b, job->whole, job->tail, job->c, job->out, job->columns, job->out_size,
                                   i, j, width);
                else
                    mpg_lanes_base(p, job->a, job->b, job->whole, job->tail, job->c, job->out, job->columns, job->out_size,
                                   i, j, width);
            }
        return;
    }
    for (int64_t s0 = 0; s0 < steps; s0 += block) {
        const int64_t s1 = s0 + block < steps ? s0 + block : steps;
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j += MPG_TILE_COLUMNS)
                mpg_row_of_passes(job, i, j, j1 - j < MPG_TILE_COLUMNS ? j1 : j + MPG_TILE_COLUMNS, s0, s1);
    }
}

#endif
