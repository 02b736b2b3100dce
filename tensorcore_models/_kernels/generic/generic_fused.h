/* Aligned sums, for one width of integers. Included by generic_steps.h once for each width, with
 *   SIG   type of a packed significand,        ACC, UACC   signed and unsigned type of sums and products,
 *   BITS  width of ACC,                        NAME(x)     the name x of this width.
 *
 * No sum overflows: tensorcore_models/families/fused/lowering.py chooses a width at which (number of addends) * 2^(fraction bits + integer
 * bits of an addend + 2) fits, and leaves everything wider to the reference. The steps are those of
 * tensorcore_models/families/fused/steps.py and tensorcore_models/arithmetic/sums.py.
 */

/* The alignment that all published units use: cut off. Without branches, because signs and shifts are random: the value
 * goes `lift` places up first, so that `shift` + `lift` is at least 0 for every addend that is not zero. */
MPG_INLINE ACC NAME(truncated)(ACC value, int64_t shift, int lift)
{
    const ACC sign = -(ACC)(value < 0);
    const UACC magnitude = ((UACC)value ^ (UACC)sign) - (UACC)sign;
    int64_t down = shift + lift;
    down = down < 0 ? 0 : down;
    down = down > BITS - 1 ? BITS - 1 : down;
    const UACC kept = (magnitude << lift) >> down;
    return (ACC)((kept ^ (UACC)sign) - (UACC)sign);
}

/* -1, 0 or 1 as an operand of which these are the parts. */
MPG_INLINE int NAME(sign_of_parts)(const SIG *x, int parts)
{
    for (int i = 0; i < parts; i++)
        if (x[i] != 0)
            return x[i] < 0 ? -1 : 1;
    return 0;
}

/* Specials among the products of packed operands (see generic_pack.h): significands signed, +-1 for infinities. */
static int NAME(product_specials)(const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be, int count, int parts,
                                  int limited, int64_t limit, int fraction)
{
    int found = 0;
    for (int q = 0; q < count; q += parts) {
        const int a_special = ae[q] >= MPG_ALIGN_INF, b_special = be[q] >= MPG_ALIGN_INF;
        const int a_sign = NAME(sign_of_parts)(a + q, parts), b_sign = NAME(sign_of_parts)(b + q, parts);
        const int infinity = a_sign * b_sign < 0 ? MPG_HAS_NEGATIVE_INF : MPG_HAS_POSITIVE_INF;
        if (a_special || b_special) {
            const int nan = ae[q] == MPG_ALIGN_NAN || be[q] == MPG_ALIGN_NAN || a_sign == 0 || b_sign == 0;
            found |= nan ? MPG_HAS_NAN : infinity;
        } else if (limited && a[q] != 0 && b[q] != 0) {
            const UACC product = (UACC)(a[q] < 0 ? -a[q] : a[q]) * (UACC)(b[q] < 0 ? -b[q] : b[q]);
            if ((int64_t)ae[q] + be[q] - fraction + NAME(leading)(product) >= limit)
                found |= infinity;
        }
    }
    return found;
}

typedef struct {
    ACC value; /* in units of 2^exponent */
    int32_t exponent, align;
} NAME(addend);

MPG_INLINE NAME(addend) NAME(number_addend)(mpg_number x)
{
    NAME(addend) r;
    r.value = x.negative ? -(ACC)x.significand : (ACC)x.significand;
    r.exponent = x.exponent;
    r.align = x.align;
    return r;
}

/* ---- the parametric accumulator, of which FDA is a point ----------------------------------------------------------- */
/* Two's complement with `integer_bits` bits above the point at 2^largest, in units of 2^unit. */
MPG_INLINE ACC NAME(wrapped)(ACC total, int64_t unit, int64_t largest, const mpg_plan *p)
{
    if (!p->has_integer_bits)
        return total;
    const int64_t place = p->integer_bits + largest - unit;
    if (place >= BITS - 1) /* wider than any sum */
        return total;
    const UACC half = (UACC)1 << place, mask = (half << 1) - 1;
    return (ACC)(((UACC)total + half) & mask) - (ACC)half;
}

MPG_INLINE NAME(addend) NAME(sum_rounding)(const mpg_plan *p, const NAME(addend) * x, int count, int rounding)
{
    NAME(addend) r;
    r.align = x[0].align;
    for (int i = 1; i < count; i++)
        r.align = x[i].align > r.align ? x[i].align : r.align;
    if (p->has_floor && r.align < p->floor)
        r.align = p->floor;
    r.exponent = r.align - p->fraction_bits - (p->sticky != 0);
    r.value = 0;
    MPG_TRACE(MPG_TRACE_ALIGN, 0, r.exponent, 0, 0);
    for (int i = 0; i < count; i++) {
        const ACC kept = NAME(aligned)(x[i].value, (int64_t)r.exponent - x[i].exponent, rounding);
        MPG_TRACE(MPG_TRACE_ADDEND, i, x[i].exponent, x[i].value, kept);
        r.value += kept;
    }
    r.value = NAME(wrapped)(r.value, r.exponent, r.align, p);
    MPG_TRACE(MPG_TRACE_SUM, 0, r.exponent, r.value, 0);
    return r;
}

static NAME(addend) NAME(sum_aligned)(const mpg_plan *p, const NAME(addend) * x, int count)
{
    return NAME(sum_rounding)(p, x, count, MPG_PLAN_ROUNDING(p));
}

/* Addends one by one, each intermediate sum normalised. */
MPG_INLINE NAME(addend) NAME(sum_normalising)(const mpg_plan *p, const NAME(addend) * x, int count, int rounding)
{
    NAME(addend) pair[2];
    pair[0] = x[0];
    for (int i = 1; i < count; i++) {
        pair[1] = x[i];
        pair[0] = NAME(sum_rounding)(p, pair, 2, rounding);
        if (pair[0].value != 0) {
            const int32_t leading = pair[0].exponent + NAME(leading)(NAME(magnitude)(pair[0].value));
            int32_t unit = leading - p->fraction_bits;
            unit = unit < pair[0].exponent ? pair[0].exponent : unit;
            /* The sticky bit is for the alignment only (it comes with rounding toward zero). */
            pair[0].value = NAME(aligned)(pair[0].value, (int64_t)unit - pair[0].exponent, p->sticky ? MPG_RZ : rounding);
            pair[0].exponent = unit;
            pair[0].align = leading;
        }
    }
    return pair[0];
}

/* Binary tree of two-operand alignments over neighbours, the left part the larger one. */
static NAME(addend) NAME(sum_tree)(const mpg_plan *p, const NAME(addend) * x, int count, int rounding)
{
    if (count == 1)
        return x[0];
    const int middle = (count + 1) / 2;
    NAME(addend) pair[2];
    pair[0] = NAME(sum_tree)(p, x, middle, rounding);
    pair[1] = NAME(sum_tree)(p, x + middle, count - middle, rounding);
    return NAME(sum_aligned)(p, pair, 2);
}

/* The same, level by level where the count is a power of two; x is overwritten. */
MPG_INLINE NAME(addend) NAME(sum_pairwise)(const mpg_plan *p, NAME(addend) * x, int count, int rounding)
{
    if (count & (count - 1))
        return NAME(sum_tree)(p, x, count, rounding);
    for (; count > 1; count /= 2)
        for (int i = 0; i < count / 2; i++)
            x[i] = NAME(sum_rounding)(p, x + 2 * i, 2, rounding);
    return x[0];
}

/* Products that take part in an alignment. */
MPG_INLINE int NAME(gather)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be, int count,
                            NAME(addend) * out)
{
    int found = 0;
    for (int q = 0; q < count; q++) {
        const int32_t align = ae[q] + be[q];
        out[found].value = (ACC)a[q] * (ACC)b[q];
        out[found].exponent = align - p->product_fraction;
        out[found].align = align;
        if (p->normalised && out[found].value != 0)
            out[found].align = out[found].exponent + NAME(leading)(NAME(magnitude)(out[found].value));
        if (MPG_TAKES_PART(align))
            MPG_TRACE(MPG_TRACE_PRODUCT, q, out[found].exponent, out[found].value, 0);
        found += MPG_TAKES_PART(align);
    }
    return found;
}

/* Sum of products and c by the alignment of the plan; returns the number of addends that took part. */
MPG_INLINE int NAME(sum_by_alignment)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be,
                                      int count, const mpg_layout *layout, const mpg_number *c, NAME(addend) * total,
                                      int rounding)
{
    NAME(addend) x[MPG_MAX_TERMS + 2], *first = x + 1;
    const int start = c != 0 && MPG_TAKES_PART(c->align);
    int found = 0;
    if (p->alignment == MPG_ALIGNMENT_ODD_EVEN) {
        for (int g = 0; g < layout->segments; g++) {
            const int begin = layout->bounds[g], end = layout->bounds[g + 1];
            const int size = NAME(gather)(p, a + begin, ae + begin, b + begin, be + begin, end - begin, first + found);
            if (size) {
                first[found] = NAME(sum_rounding)(p, first + found, size, rounding);
                found++;
            }
        }
    } else {
        found = NAME(gather)(p, a, ae, b, be, count, first);
        if (p->alignment == MPG_ALIGNMENT_PAIRWISE && found > 1) {
            first[0] = NAME(sum_pairwise)(p, first, found, rounding);
            found = 1;
        }
    }
    if (start) {
        *--first = NAME(number_addend)(*c);
        MPG_TRACE(MPG_TRACE_ADDEND_C, 0, first->exponent, first->value, 0);
        found++;
    }
    if (found)
        *total = p->alignment == MPG_ALIGNMENT_NORMALISING ? NAME(sum_normalising)(p, first, found, rounding)
                                                           : NAME(sum_rounding)(p, first, found, rounding);
    return found;
}

/* The same, compiled for each rounding that units are known to have. */
static int NAME(sum_by_plan)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be, int count,
                             const mpg_layout *layout, const mpg_number *c, NAME(addend) * total)
{
    switch (MPG_PLAN_ROUNDING(p)) {
    case MPG_RNE:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, MPG_RNE);
    case MPG_RNA:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, MPG_RNA);
    case MPG_RU:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, MPG_RU);
    case MPG_RD:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, MPG_RD);
    case MPG_RO:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, MPG_RO);
    case MPG_RZ:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, MPG_RZ);
    default:
        return NAME(sum_by_alignment)(p, a, ae, b, be, count, layout, c, total, p->rounding);
    }
}

/* The sum of products [begin, end), each cut off at 2^unit. */
MPG_INLINE ACC NAME(truncated_products)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be,
                                        int begin, int end, int32_t unit)
{
    const int32_t place = unit + p->product_fraction;
    const int lift = p->product_lift;
    ACC sum = 0;
    for (int q = begin; q < end; q++) {
        const ACC product = (ACC)a[q] * (ACC)b[q], kept = NAME(truncated)(product, place - (ae[q] + be[q]), lift);
        MPG_TRACE(MPG_TRACE_PRODUCT, q, ae[q] + be[q] - p->product_fraction, product, 0);
        MPG_TRACE(MPG_TRACE_ADDEND, q, ae[q] + be[q] - p->product_fraction, product, kept);
        sum += kept;
    }
    return sum;
}

/* One alignment of everything, cut off: the loops that matter. Returns 0 if nothing takes part. */
MPG_INLINE int NAME(sum_truncated)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be,
                                   int count, const mpg_number *c, NAME(addend) * total)
{
    int32_t largest = mpg_largest_align(ae, be, count, c ? c->align : MPG_ALIGN_NONE);
    if (!MPG_TAKES_PART(largest))
        return 0;
    if (p->has_floor && largest < p->floor)
        largest = p->floor;
    const int32_t unit = largest - p->fraction_bits;
    ACC sum = 0;
    MPG_TRACE(MPG_TRACE_ALIGN, 0, unit, 0, 0);
    if (c) {
        const ACC value = NAME(number_addend)(*c).value;
        sum = NAME(aligned)(value, (int64_t)unit - c->exponent, MPG_RZ);
        MPG_TRACE(MPG_TRACE_ADDEND_C, 0, c->exponent, value, 0);
        MPG_TRACE(MPG_TRACE_ADDEND, 0, c->exponent, value, sum);
    }
    sum += NAME(truncated_products)(p, a, ae, b, be, 0, count, unit);
    MPG_TRACE(MPG_TRACE_SUM, 0, unit, sum, 0);
    total->value = sum;
    total->exponent = unit;
    total->align = largest;
    return 1;
}

/* A sum that is exactly zero; `c` is null where it is added to that. */
static uint64_t NAME(zero)(const mpg_plan *p, const SIG *a, const SIG *b, int count, const mpg_origin *from,
                           const mpg_number *c)
{
    const int down = p->rule.rounding == MPG_RD;
    int negative = 0, cancels = c && c->significand;
    if (p->zero_sign == MPG_ZERO_POSITIVE)
        return 0;
    for (int q = 0; q < count; q += p->parts) {
        cancels |= NAME(sign_of_parts)(a + q, p->parts) && NAME(sign_of_parts)(b + q, p->parts);
        negative += mpg_negative_product(from, q, p->a.sign_bit, p->b.sign_bit);
    }
    const int all = negative == p->zero_count && (!c || c->negative), any = negative || (c && c->negative);
    const int minus = cancels ? down : p->zero_sign == MPG_ZERO_MAJORITY ? 2 * negative > p->zero_count : all || (down && any);
    return minus ? p->result.zero_sign : 0;
}

/* The fused sum of one pass, rounded; `c` is null where it is added to that. */
static uint64_t NAME(fused)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be, int count,
                            const mpg_layout *layout, int special, const mpg_origin *from, const mpg_number *c)
{
    NAME(addend) total = {0, 0, 0};
    if (!special && p->has_limit) /* a product can reach the limit only from nearby */
        special = (int64_t)mpg_largest_align(ae, be, count, MPG_ALIGN_NONE) + p->product_integer >= p->limit;
    if (special || (c && c->kind != MPG_FINITE)) {
        int found = c ? mpg_specials_of(*c) : 0;
        if (special)
            found |= NAME(product_specials)(a, ae, b, be, count, p->parts, p->has_limit, p->limit, p->product_fraction);
        if (found)
            return mpg_special_code(found, &p->result, &p->rule);
    }
    const int plain =
        p->alignment == MPG_ALIGNMENT_GLOBAL && p->rounding == MPG_RZ && !p->sticky && !p->normalised && !p->has_integer_bits;
    const mpg_number *early = p->late_c == MPG_C_EXACT ? 0 : c;
    const int found = plain ? NAME(sum_truncated)(p, a, ae, b, be, count, early, &total)
                            : NAME(sum_by_plan)(p, a, ae, b, be, count, layout, early, &total);
    if (p->late_c == MPG_C_EXACT) {
        if (total.value == 0 && c->significand == 0)
            return NAME(zero)(p, a, b, count, from, c);
        return NAME(rounded_sum)(total.value < 0, NAME(magnitude)(total.value), total.exponent, c->negative, c->significand,
                                 c->exponent, &p->result, &p->rule);
    }
    if (!found || total.value == 0)
        return NAME(zero)(p, a, b, count, from, c);
    return NAME(finish)(total.value, total.exponent, &p->result, &p->rule);
}

/* ---- GDFS ---------------------------------------------------------------------------------------------------------- */
/* One pass: exact group sums of fixed-point operands, times their scales, aligned with c. `sa`, `sb` are the significands
 * of the block scales of the pass's rows, `ga`, `gb` their alignment exponents; `first` is the pass's first k. */
static uint64_t NAME(groups)(const mpg_plan *p, const SIG *a, const SIG *b, const mpg_layout *layout, int special,
                             const int32_t *sa, const int32_t *ga, const int32_t *sb, const int32_t *gb, int64_t first,
                             const mpg_number *c)
{
    NAME(addend) x[MPG_MAX_TERMS + 1];
    int used = 0;
    special |= mpg_specials_of(*c);
    if (special)
        return mpg_special_code(special, &p->result, &p->rule);
    if (MPG_TAKES_PART(c->align)) {
        x[used++] = NAME(number_addend)(*c);
        MPG_TRACE(MPG_TRACE_ADDEND_C, 0, x[0].exponent, x[0].value, 0);
    }
    for (int g = 0; g < layout->segments; g++) {
        ACC total = 0;
        int zeros = 1;
        for (int q = layout->bounds[g]; q < layout->bounds[g + 1]; q++) {
            total += (ACC)a[q] * (ACC)b[q];
            zeros &= a[q] == 0 || b[q] == 0;
        }
        if (p->skip_scaled_zero && (p->skip_scaled_zero == MPG_SKIP_ZEROS ? total == 0 : zeros))
            continue;
        x[used].exponent = p->base;
        x[used].align = 0;
        if (p->scaled) {
            const int64_t block = (first + layout->bounds[g]) / p->block;
            if (!MPG_TAKES_PART(ga[block]) || !MPG_TAKES_PART(gb[block]))
                continue;
            x[used].align = ga[block] + gb[block];
            x[used].exponent = p->base + x[used].align - 2 * p->scale.fraction_bits;
            total *= (ACC)sa[block] * (ACC)sb[block];
        }
        MPG_TRACE(MPG_TRACE_GROUP, g, x[used].exponent, total, 0);
        x[used++].value = total;
    }
    if (used == 0)
        return 0;
    const NAME(addend) sum = NAME(sum_aligned)(p, x, used);
    return NAME(finish)(sum.value, sum.exponent, &p->result, &p->rule);
}

/* ---- FDRDA and GFDRDA ---------------------------------------------------------------------------------------------- */
static uint64_t NAME(round_down)(const mpg_plan *p, const SIG *a, const int32_t *ae, const SIG *b, const int32_t *be, int count,
                                 const mpg_layout *layout, int special, const mpg_number *c)
{
    int32_t largest = mpg_largest_align(ae, be, count, MPG_ALIGN_NONE);
    special = special || (p->has_limit && (int64_t)largest + p->product_integer >= p->limit);
    if (special || c->kind != MPG_FINITE) {
        const int c_found = mpg_specials_of(*c);
        const int limited =
            special ? NAME(product_specials)(a, ae, b, be, count, 1, p->has_limit, p->limit, p->product_fraction) : 0;
        const int plain = special ? NAME(product_specials)(a, ae, b, be, count, 1, 0, 0, p->product_fraction) : 0;
        int found = limited | c_found;
        if (p->c_wins) /* overflowing products are looked at without c, and only where nothing else is special */
            found = plain | c_found ? plain | c_found : limited;
        if (found)
            return mpg_special_code(found, &p->result, &p->rule);
    }
    NAME(addend) sums[2], dot = {0, 0, MPG_ALIGN_NONE};
    int used = 0;
    for (int g = 0; g < layout->segments; g++) {
        const int begin = layout->bounds[g];
        NAME(addend) sum;
        sum.align = mpg_largest_align(ae + begin, be + begin, layout->bounds[g + 1] - begin, MPG_ALIGN_NONE);
        if (!MPG_TAKES_PART(sum.align))
            continue;
        sum.exponent = sum.align - p->fraction_bits;
        MPG_TRACE(MPG_TRACE_ALIGN, 0, sum.exponent, 0, 0);
        sum.value = NAME(truncated_products)(p, a, ae, b, be, begin, layout->bounds[g + 1], sum.exponent);
        MPG_TRACE(MPG_TRACE_SUM, 0, sum.exponent, sum.value, 0);
        sums[used++] = sum;
    }
    if (used == 1)
        dot = sums[0];
    if (used == 2) {
        dot.align = sums[0].align > sums[1].align ? sums[0].align : sums[1].align;
        dot.exponent = dot.align - p->fraction_bits;
        MPG_TRACE(MPG_TRACE_ALIGN, 0, dot.exponent, 0, 0);
        dot.value = 0;
        for (int g = 0; g < 2; g++) {
            const ACC kept = NAME(aligned)(sums[g].value, (int64_t)dot.exponent - sums[g].exponent, p->add_rounding);
            MPG_TRACE(MPG_TRACE_ADDEND, g, sums[g].exponent, sums[g].value, kept);
            dot.value += kept;
        }
        MPG_TRACE(MPG_TRACE_SUM, 0, dot.exponent, dot.value, 0);
    }
    largest = dot.align > c->align ? dot.align : c->align;
    if (!MPG_TAKES_PART(largest))
        return 0;
    if (p->has_floor && largest < p->floor)
        largest = p->floor;
    const int widest = p->dot_fraction_bits > p->c_fraction_bits ? p->dot_fraction_bits : p->c_fraction_bits;
    const int32_t unit = largest - widest;
    ACC total = 0;
    MPG_TRACE(MPG_TRACE_ALIGN, 0, unit, 0, 0);
    if (used) {
        total = NAME(aligned)(dot.value, (int64_t)largest - p->dot_fraction_bits - dot.exponent, p->add_rounding) *
                ((ACC)1 << (widest - p->dot_fraction_bits));
        MPG_TRACE(MPG_TRACE_ADDEND, 0, dot.exponent, dot.value, total);
    }
    if (MPG_TAKES_PART(c->align)) {
        const int far = p->has_cutoff && c->align < largest - p->cutoff;
        const ACC value = NAME(number_addend)(*c).value;
        const ACC kept =
            NAME(aligned)(value, (int64_t)largest - p->c_fraction_bits - c->exponent, far ? MPG_RZ : p->add_rounding) *
            ((ACC)1 << (widest - p->c_fraction_bits));
        MPG_TRACE(MPG_TRACE_ADDEND_C, 0, c->exponent, value, 0);
        MPG_TRACE(MPG_TRACE_ADDEND, 1, c->exponent, value, kept);
        total += kept;
    }
    MPG_TRACE(MPG_TRACE_SUM, 0, unit, total, 0);
    const int cut = total == 0 ? 0 : NAME(leading)(NAME(magnitude)(total)) - p->sum_fraction_bits;
    if (cut > 0)
        return NAME(finish)(NAME(aligned)(total, cut, MPG_RD), (int64_t)unit + cut, &p->result, &p->rule);
    return NAME(finish)(total, unit, &p->result, &p->rule);
}

#undef SIG
#undef ACC
#undef UACC
#undef BITS
#undef NAME
