/* One pass of one row and column by the scalar kernels, whatever the family. */
#ifndef MPG_GENERIC_PASS_H
#define MPG_GENERIC_PASS_H

#include "generic_phases.h"

/* The operands of one pass of one row and column, as its family and width have them. */
typedef struct {
    const void *a, *b;
    const int32_t *ae, *be;
    const int32_t *a_scale, *a_scale_align, *b_scale, *b_scale_align; /* GROUPS */
    int special;
    mpg_origin from;
} mpg_operands;

#define SIG int32_t
#define NAME(x) mpg_##x##_64
#include "generic_families.h"

#if MPG_HAS_WIDE
#define SIG int64_t
#define NAME(x) mpg_##x##_128
#include "generic_families.h"

static uint64_t mpg_exact_pass(const mpg_plan *p, const mpg_operands *o, int count, int step, uint64_t c)
{
    const mpg_number start = mpg_number_of(c, step ? &p->chained : &p->c);
    const uint64_t dot = mpg_exact(p, (const int64_t *)o->a, o->ae, (const int64_t *)o->b, o->be, count, o->special, &o->from,
                                   p->late_c ? 0 : &start);
    if (!p->late_c)
        return dot;
    return mpg_ieee_add_128(mpg_number_of(dot, &p->raw_d), mpg_number_of(c, step ? &p->raw_d : &p->raw_c), &p->result,
                            &p->late);
}
#endif

/* One pass: takes the encoding of the addend, returns the encoding of the result. */
MPG_INLINE uint64_t mpg_pass(const mpg_plan *p, const mpg_operands *o, int64_t step, const mpg_layout *layout, uint64_t c)
{
    if (p->family == MPG_FAMILY_INTEGER)
        return mpg_integer_dot(p, (const int32_t *)o->a, (const int32_t *)o->b, layout->count, c, step == 0);
    if (p->family == MPG_FAMILY_INTEGER_PHASES)
        return mpg_integer_phases(p, (const int32_t *)o->a, (const int32_t *)o->b, layout->count, c);
    if (p->family == MPG_FAMILY_PHASES)
        return mpg_phases(p, (const int32_t *)o->a, o->ae, (const int32_t *)o->b, o->be, layout->count, c);
    if (!p->wide)
        return mpg_family_pass_64(p, o, step, layout, c);
#if MPG_HAS_WIDE
    if (p->family == MPG_FAMILY_EXACT)
        return mpg_exact_pass(p, o, layout->count, step != 0, c);
    return mpg_family_pass_128(p, o, step, layout, c);
#else
    return c; /* not reached: the lowering leaves wide sums to the reference */
#endif
}

MPG_INLINE mpg_origin mpg_origin_of(const mpg_job *job, int64_t step, const mpg_layout *layout, int64_t i, int64_t j)
{
    const mpg_origin from = {job->a_source, job->b_source, i, j, MPG_FIRST_PRODUCT(job->plan, step), layout->order};
    return from;
}

/* A plan with the draws of a pass of one element, whose place in the matrix is `element` (arithmetic/passes.py: Pass.draw). */
static void mpg_keyed(mpg_plan *keyed, const mpg_plan *p, int64_t step, int64_t element)
{
    *keyed = *p;
    keyed->rule.draw = keyed->late.draw = mpg_draw(mpg_mix64(p->rule.seed), (uint64_t)step << 32 | (uint64_t)element);
}

/* The same for row i and column j of packed matrices. */
MPG_INLINE uint64_t mpg_one_pass(const mpg_job *job, int64_t step, const mpg_layout *layout, int64_t i, int64_t j, uint64_t c)
{
    const mpg_plan *p = job->plan;
    const mpg_packed *a = job->a, *b = job->b;
    const int64_t at = i * a->depth + step * p->step, bt = j * b->depth + step * p->step;
    const int size = p->wide ? 8 : 4;
    mpg_operands o;
    o.a = (const char *)a->significand + at * size;
    o.b = (const char *)b->significand + bt * size;
    o.ae = a->align + at;
    o.be = b->align + bt;
    o.a_scale = a->scale + i * a->blocks;
    o.a_scale_align = a->scale_align + i * a->blocks;
    o.b_scale = b->scale + j * b->blocks;
    o.b_scale_align = b->scale_align + j * b->blocks;
    o.special = a->special[i * a->steps + step] | b->special[j * b->steps + step];
    o.from = mpg_origin_of(job, step, layout, i, j);
    if (p->rule.rounding == MPG_SR) {
        mpg_plan keyed;
        mpg_keyed(&keyed, p, step, i * job->columns + j);
        return mpg_pass(&keyed, &o, step, layout, c);
    }
    return mpg_pass(p, &o, step, layout, c);
}

MPG_INLINE int mpg_adds_late(const mpg_plan *p) { return p->late_c == MPG_C_LATE || p->family == MPG_FAMILY_INTERLEAVED; }

/* Whether finite operands leave an infinite or NaN result of an earlier pass as it is: neither products, nor the dot product before a
 * late addition, may become infinite too. */
MPG_INLINE int mpg_special_addends_stay(const mpg_plan *p) { return !mpg_adds_late(p) && !p->has_limit; }

/* Specials of the addend where they decide the pass whatever the finite operands are. A row with one NaN would else take all its
 * later passes apart. */
MPG_INLINE int mpg_deciding_addend(const mpg_plan *p, int64_t step, int special, uint64_t c)
{
    const mpg_format *f = mpg_adds_late(p) ? (step ? &p->raw_d : &p->raw_c) : (step ? &p->chained : &p->c);
    const int found = mpg_specials_of(mpg_number_of(c, f));
    return found & MPG_HAS_NAN || (mpg_special_addends_stay(p) && !special) ? found : 0;
}

/* The same for matrices that are packed for the vector kernel: elements for which that does not vouch. */
MPG_FROM_VECTORS static uint64_t mpg_pass_of_panel(const mpg_job *job, int64_t step, const mpg_layout *layout, int64_t i,
                                                   int64_t j, uint64_t c)
{
    const mpg_plan *p = job->plan;
    const mpg_packed *a = job->a, *b = job->b;
    const int64_t first = step * p->step, lane = j % MPG_PANEL;
    const int64_t *x = a->words + 2 * (i * a->depth + first);
    const int64_t *y = b->words + 2 * ((j - lane) * b->depth + MPG_PANEL * first) + lane;
    int64_t significands[2][MPG_MAX_TERMS];
    int32_t narrow[2][MPG_MAX_TERMS], aligns[2][MPG_MAX_TERMS];
    mpg_operands o = {0};
    o.special = a->special[i * a->steps + step] | b->special[(j - lane) * b->steps + step * MPG_PANEL + lane];
    const int decided = mpg_deciding_addend(p, step, o.special, c);
    if (decided)
        return mpg_special_code(decided, &p->result, mpg_adds_late(p) ? &p->late : &p->rule);
    for (int q = 0; q < layout->count; q++) {
        significands[0][q] = x[2 * q];
        significands[1][q] = y[2 * MPG_PANEL * q];
        narrow[0][q] = (int32_t)significands[0][q];
        narrow[1][q] = (int32_t)significands[1][q];
        aligns[0][q] = (int32_t)x[2 * q + 1];
        aligns[1][q] = (int32_t)y[MPG_PANEL * (2 * q + 1)];
    }
    o.a = p->wide ? (const void *)significands[0] : narrow[0];
    o.b = p->wide ? (const void *)significands[1] : narrow[1];
    o.ae = aligns[0];
    o.be = aligns[1];
    o.from = mpg_origin_of(job, step, layout, i, j);
    return mpg_pass(p, &o, step, layout, c);
}

#endif
