/* One pass of a family of fused sums, for one width of integers. Included by generic_pass.h once for each width, with SIG and NAME as
 * generic_fused.h has them.
 */
MPG_INLINE uint64_t NAME(family_pass)(const mpg_plan *p, const mpg_operands *o, int64_t step, const mpg_layout *layout,
                                      uint64_t c)
{
    const int64_t first = step * p->step;
    const int32_t *ae = o->ae, *be = o->be;
    const int count = layout->count, special = o->special;
    const mpg_number start = mpg_number_of(c, step ? &p->chained : &p->c);
    uint64_t dot = 0;
    const SIG *x = (const SIG *)o->a, *y = (const SIG *)o->b;
    switch (p->family) {
    case MPG_FAMILY_FUSED:
        dot = NAME(fused)(p, x, ae, y, be, count, layout, special, &o->from, p->late_c == MPG_C_LATE ? 0 : &start);
        if (p->late_c != MPG_C_LATE)
            return dot;
        break;
    case MPG_FAMILY_INTERLEAVED:
        for (int g = 0; g < layout->segments; g++) {
            const int at_g = layout->bounds[g];
            const mpg_number sum = mpg_number_of(dot, &p->chained);
            dot = NAME(fused)(p, x + at_g, ae + at_g, y + at_g, be + at_g, layout->bounds[g + 1] - at_g, layout, special,
                              &o->from, &sum);
        }
        break;
    case MPG_FAMILY_GROUPS:
        return NAME(groups)(p, x, y, layout, special, o->a_scale, o->a_scale_align, o->b_scale, o->b_scale_align, first,
                            &start);
    case MPG_FAMILY_ROUND_DOWN:
        return NAME(round_down)(p, x, ae, y, be, count, layout, special, &start);
    case MPG_FAMILY_SOFT_FMA:
        for (int q = 0; q < count; q++) {
            const mpg_number sum = mpg_number_of(c, step || q ? &p->chained : &p->c);
            c = NAME(soft_fma)(p, x[q], ae[q], y[q], be[q], &sum);
        }
        return c;
    default:
        return c;
    }
    return NAME(ieee_add)(mpg_number_of(dot, &p->raw_d), mpg_number_of(c, step ? &p->raw_d : &p->raw_c), &p->result, &p->late);
}

#undef SIG
#undef NAME
