/* Passes of the accumulators made of IEEE operations, and rows of them: which of generic_lanes.h and generic_fma.h in what order. */
#ifndef MPG_GENERIC_LANE_PASSES_H
#define MPG_GENERIC_LANE_PASSES_H

#include "generic_fma.h"

/* ---- the families -------------------------------------------------------------------------------------------------- */
/* In double itself (FP64): fma() is correctly rounded to nearest even; saturation looks at its result. */
MPG_INLINE void mpg_lanes_fma64(double *total, double a, const double *b, const mpg_plan *p)
{
    const int saturate = p->late.saturate;
    const double below = p->chained_flush, largest = 1.7976931348623157e308;
    for (int l = 0; l < MPG_LANES; l++) {
        double z = total[l];
        z = fabs(z) < below ? copysign(0.0, z) : z;
        const double start = z;
        (void)start; /* only a trace reads it */
        z = fma(a, b[l], z);
        if (saturate) {
            z = fabs(z) > largest ? copysign(largest, z) : z;
            z = z == z ? z : 0.0;
        }
        total[l] = z;
        if (l == 0)
            MPG_TRACE(MPG_TRACE_LANE_FMA, mpg_as_bits64(start), mpg_as_bits64(z), mpg_as_bits64(a), mpg_as_bits64(b[l]));
    }
}

MPG_INLINE void mpg_lanes_chain(double *total, const double *a, const double *b, int64_t count, const mpg_lane_rule *f,
                                const mpg_plan *p)
{
    double product[MPG_LANES];
    for (int64_t q = 0; q < count; q++) {
        mpg_lanes_multiply(product, a[q], b + q * MPG_LANES);
        mpg_lanes_add(total, product, f, p);
    }
}

/* total = round(total + x); of two NaNs x86 returns the first. */
MPG_INLINE void mpg_lanes_add_ordered(double *total, const double *x, const mpg_lane_rule *f, const mpg_plan *p)
{
    double before[MPG_LANES];
    memcpy(before, total, sizeof before);
    mpg_lanes_add(total, x, f, p);
    if (p->late.nan_operand && mpg_lanes_any_nan(total))
        mpg_lanes_nan_of_sum(total, before, x);
}

/* Interleaved chains from zero, summed in order; c joins last. */
MPG_INLINE void mpg_lanes_laned(double *total, const double *a, const double *b, const mpg_layout *layout,
                                const mpg_lane_rule *f, const mpg_plan *p)
{
    double dot[MPG_LANES], lane[MPG_LANES];
    const double zero[MPG_LANES] = {0};
    for (int g = 0; g < layout->segments; g++) {
        const int begin = layout->bounds[g];
        memset(lane, 0, sizeof lane);
        const int count = layout->bounds[g + 1] - begin;
        mpg_lanes_chain(lane, a + begin, b + (int64_t)begin * MPG_LANES, count, f, p);
        if (p->late.nan_operand && mpg_lanes_any_nan(lane))
            mpg_lanes_nan_of_chain(lane, zero, a + begin, b + (int64_t)begin * MPG_LANES, count);
        if (g == 0)
            memcpy(dot, lane, sizeof dot);
        else
            mpg_lanes_add_ordered(dot, lane, f, p);
    }
    mpg_lanes_add_ordered(total, dot, f, p);
}

/* Rounded products q and q + 1 added, and their sums to two lanes in turn, which are added; c joins last. */
MPG_INLINE void mpg_lanes_two(double *total, const double *a, const double *b, const mpg_layout *layout, const mpg_lane_rule *f,
                              const mpg_plan *p)
{
    double lane[2][MPG_LANES] = {{0}}, product[2][MPG_LANES];
    for (int q = 0; q < layout->count; q++) {
        double *x = product[q % 2];
        mpg_lanes_multiply(x, a[q], b + q * MPG_LANES);
        mpg_lanes_cut(x, f, p);
        if (p->late.nan_operand && mpg_lanes_any_nan(x))
            for (int l = 0; l < MPG_LANES; l++)
                x[l] = x[l] == x[l] ? x[l] : mpg_first_nan(a[q], b[q * MPG_LANES + l]);
        if (q % 2)
            mpg_lanes_add_ordered(product[0], x, f, p);
        if (q % 2 || q + 1 == layout->count)
            mpg_lanes_add_ordered(lane[q / 2 % 2], product[0], f, p);
    }
    mpg_lanes_add_ordered(lane[0], lane[1], f, p);
    mpg_lanes_add_ordered(total, lane[0], f, p);
}

#define MPG_MAX_GROUP 64

/* Rounded products, summed by the layout's tree; c joins last. */
MPG_INLINE void mpg_lanes_pairwise(double *total, const double *a, const double *b, const mpg_layout *layout,
                                   const mpg_lane_rule *f, const mpg_plan *p)
{
    double x[MPG_MAX_GROUP][MPG_LANES];
    for (int q = 0; q < layout->count; q++) {
        mpg_lanes_multiply(x[q], a[q], b + q * MPG_LANES);
        mpg_lanes_cut(x[q], f, p);
    }
    for (int q = 0; q + 1 < layout->count; q++)
        mpg_lanes_add(x[layout->tree[2 * q]], x[layout->tree[2 * q + 1]], f, p);
    mpg_lanes_add(total, x[0], f, p);
}

MPG_INLINE void mpg_lanes_one_pass(double *total, const double *a, const double *b, const mpg_layout *layout, int first,
                                   const mpg_lane_rule *f, const mpg_plan *p)
{
    switch (p->family) {
    case MPG_FAMILY_FMA:
        mpg_lanes_chain(total, a, b, layout->count, f, p);
        break;
    case MPG_FAMILY_FMA_EXACT:
        for (int q = 0; q < layout->count; q++)
            mpg_lanes_fma_exact(total, a[q], b + q * MPG_LANES, !first || q, f, p);
        break;
    case MPG_FAMILY_FMA64:
        for (int q = 0; q < layout->count; q++)
            mpg_lanes_fma64(total, a[q], b + q * MPG_LANES, p);
        break;
    case MPG_FAMILY_LANED:
        mpg_lanes_laned(total, a, b, layout, f, p);
        break;
    case MPG_FAMILY_TWO_LANES:
        mpg_lanes_two(total, a, b, layout, f, p);
        break;
    default:
        mpg_lanes_pairwise(total, a, b, layout, f, p);
        break;
    }
}

MPG_INLINE void mpg_lanes_pass(double *total, const double *a, const double *b, const mpg_layout *layout, int first,
                               const mpg_lane_rule *f, const mpg_plan *p)
{
    double before[MPG_LANES];
    memcpy(before, total, sizeof before);
    mpg_lanes_one_pass(total, a, b, layout, first, f, p);
    const int ordered = p->family == MPG_FAMILY_LANED || p->family == MPG_FAMILY_TWO_LANES; /* each addition said which NaN */
    if (!p->late.nan_operand || ordered || !mpg_lanes_any_nan(total))
        return;
    if (p->late.nan_operand == MPG_NAN_DMMA) {
        mpg_layout start = *layout;
        double ahead[MPG_LANES];
        memcpy(ahead, before, sizeof ahead);
        for (start.count = 0; start.count < layout->count && !mpg_is_nan64(mpg_as_bits64(a[start.count]));)
            start.count++;
        mpg_lanes_one_pass(ahead, a, b, &start, first, f, p);
        mpg_lanes_nan_of_dmma(total, before, ahead, a, b, start.count, layout->count);
        return;
    }
    mpg_lanes_nan_of_chain(total, before, a, b, layout->count);
}

/* Flushing of an instruction's addend: below c_flush it becomes zero, of which sign the plan says. */
MPG_INLINE double mpg_first_addend(double c, const mpg_plan *p)
{
    if (fabs(c) < p->c_flush)
        return p->c_flush_passes ? 0.0 : copysign(0.0, c);
    return c;
}

/* Row i, columns [j, j + MPG_LANES) cut to `width`. */
MPG_INLINE void mpg_lanes_body(int level, const mpg_job *job, int64_t i, int64_t j, int width)
{
    const mpg_plan *p = job->plan;
    const mpg_packed *a = job->a, *b = job->b;
    const mpg_layout *whole = job->whole, *tail = job->tail;
    const mpg_lane_rule f = mpg_lane_rule_of(p);
    const double *x = a->values + i * a->depth, *y = b->values + j * b->depth; /* a panel holds depth * MPG_LANES */
    const int64_t full = whole->count ? a->depth / whole->count : 0;
    double total[MPG_LANES] = {0};
    for (int l = 0; l < width; l++)
        total[l] = mpg_first_addend(mpg_double_of_number(mpg_number_of(mpg_element(job->c, i, j + l), &p->raw_c)), p);
    for (int64_t s = 0; s < a->steps; s++) {
        const int64_t first = s * p->step;
        if (p->c_flush_passes && s % p->c_flush_passes == 0)
            for (int l = 0; l < MPG_LANES; l++)
                total[l] = mpg_first_addend(total[l], p);
        mpg_lanes_pass(total, x + first, y + first * MPG_LANES, mpg_layout_of(s, full, whole, tail), s == 0, &f, p);
    }
    for (int l = 0; l < width; l++)
        mpg_store(job->out, job->out_size, i * job->columns + j + l, mpg_encode_double(total[l], &p->result, &p->late));
}

MPG_VARIANTS(mpg_lanes, (job, i, j, width), const mpg_job *job, int64_t i, int64_t j, int width)

#endif
