/* Aligned sums of vectors, one accumulator in each lane; for one instruction set and width (generic_vector_isa.h). The vector
 * twin of generic_fused.h, under the same names. Products of a pass are packed as (significand, alignment exponent): `a`
 * one after the other, `b` in rows of MPG_PANEL columns. `redo` marks lanes that the scalar kernel must compute.
 */
typedef struct {
    W value; /* in units of 2^exponent */
    V exponent, align;
} W_(addend);
#define ADDEND W_(addend)

/* value / 2^places as an integer, 0 <= places < WBITS - 1, |value| <= 2^(WBITS - 3). Two's complement: what is added before the cut
 * makes rounding down into the rounding wanted. */
VFN W W_(cut)(W x, V places, int rounding, V *redo)
{
    if (rounding == MPG_RD)
        return W_(shr)(x, places);
    const W ones = W_(ones)(places);
    if (rounding == MPG_RU)
        return W_(shr)(W_(add)(x, ones), places);
    if (rounding == MPG_RZ)
        return W_(shr)(W_(add)(x, W_ (and)(ones, W_(spread)(W_(negative)(x)))), places);
    if (rounding == MPG_RNE || rounding == MPG_RNA) {
        const V up = rounding == MPG_RNE ? W_(shr_low)(x, places) : ~W_(negative)(x);
        return W_(shr)(W_(increment)(W_(add)(x, W_(half)(ones)), up & ones.low & 1), places);
    }
    const V inexact = W_(nonzero)(W_ (and)(x, ones));
    W kept = W_(shr)(x, places);
    if (rounding == MPG_LOSSLESS)
        *redo |= inexact;
    else
        kept.low |= inexact & 1;
    return kept;
}

/* The same for any number of places; below 0 it is exact. */
VFN W W_(aligned)(W value, V places, int rounding, V *redo)
{
    const V none = {0}, up = V_(max_signed)(none - places, none);
    const V down = V_(min_signed)(V_(max_signed)(places, none), V_(all)(WBITS - 2));
    return W_(cut)(W_(shl)(value, up), down, rounding, redo);
}

/* Rounding that is not known when this is compiled. */
VTARGET static void W_(aligned_by)(W *value, const V *places, int rounding)
{
    V unused = {0};
    switch (rounding) {
    case MPG_RNE:
        *value = W_(aligned)(*value, *places, MPG_RNE, &unused);
        break;
    case MPG_RNA:
        *value = W_(aligned)(*value, *places, MPG_RNA, &unused);
        break;
    case MPG_RU:
        *value = W_(aligned)(*value, *places, MPG_RU, &unused);
        break;
    case MPG_RD:
        *value = W_(aligned)(*value, *places, MPG_RD, &unused);
        break;
    case MPG_RO:
        *value = W_(aligned)(*value, *places, MPG_RO, &unused);
        break;
    default:
        *value = W_(aligned)(*value, *places, MPG_RZ, &unused);
        break;
    }
}

VFN ADDEND W_(number_addend)(const V_(number) * x)
{
    return (ADDEND){W_(of)(x->significand, x->negative), x->exponent, x->align};
}

VFN V W_(align)(const int64_t *a, const int64_t *b, int q)
{
    return V_(load)(b + MPG_PANEL * (2 * q + 1)) + V_(all)(a[2 * q + 1]);
}

VFN W W_(product)(const int64_t *a, const int64_t *b, int q, int narrow)
{
    return W_(multiply)(V_(all)(a[2 * q]), V_(load)(b + MPG_PANEL * 2 * q), narrow);
}

VFN ADDEND W_(product_addend)(const mpg_plan *p, const int64_t *a, const int64_t *b, int q)
{
    ADDEND x;
    x.value = W_(product)(a, b, q, p->narrow);
    x.align = W_(align)(a, b, q);
    x.exponent = x.align - (uint64_t)p->product_fraction;
    if (p->normalised)
        x.align = V_(pick)(W_(nonzero)(x.value), x.exponent + W_(leading)(x.value), x.align);
    return x;
}

/* The groups of FDRDA have no floor, exact sums need none. */
VFN V W_(floored)(const mpg_plan *p, V align)
{
    const int fused = p->family == MPG_FAMILY_FUSED || p->family == MPG_FAMILY_INTERLEAVED;
    return p->has_floor && fused ? V_(max_signed)(align, V_(all)(p->floor)) : align;
}

/* Sums are in units of 2^(their alignment exponent - fraction bits - 1 if sticky), whatever that is. */
VFN W W_(wrapped)(const mpg_plan *p, W total)
{
    const int place = p->integer_bits + p->fraction_bits + (p->sticky != 0);
    if (!p->has_integer_bits || place >= WBITS - 1)
        return total;
    const V up = V_(all)(WBITS - 1 - place);
    return W_(shr)(W_(shl)(total, up), up);
}

VFN ADDEND W_(sum_rounding)(const mpg_plan *p, const ADDEND *x, int count, int rounding)
{
    ADDEND r = x[0];
    V unused = {0};
    for (int i = 1; i < count; i++)
        r.align = V_(max_signed)(r.align, x[i].align);
    r.align = W_(floored)(p, r.align);
    r.exponent = r.align - (uint64_t)(p->fraction_bits + (p->sticky != 0));
    r.value = W_(aligned)(x[0].value, r.exponent - x[0].exponent, rounding, &unused);
    for (int i = 1; i < count; i++)
        r.value = W_(add)(r.value, W_(aligned)(x[i].value, r.exponent - x[i].exponent, rounding, &unused));
    r.value = W_(wrapped)(p, r.value);
    return r;
}

/* ---- the alignments ------------------------------------------------------------------------------------------------ */
VFN V W_(largest)(const mpg_plan *p, const int64_t *a, const int64_t *b, int count)
{
    V largest = V_(all)(MPG_ALIGN_NONE);
    if (p->normalised)
        for (int q = 0; q < count; q++)
            largest = V_(max_signed)(largest, W_(product_addend)(p, a, b, q).align);
    else
        for (int q = 0; q < count; q++)
            largest = V_(max_signed)(largest, W_(align)(a, b, q));
    return largest;
}

VFN ADDEND W_(sum_global)(const mpg_plan *p, const int64_t *a, const int64_t *b, int count, const V_(number) * c, int rounding,
                          V *redo)
{
    const int narrow = p->narrow;
    const V lift = V_(all)(p->product_lift), last = V_(all)(WBITS - 2);
    ADDEND r;
    r.align = W_(largest)(p, a, b, count);
    if (c)
        r.align = V_(max_signed)(r.align, c->align);
    r.align = W_(floored)(p, r.align);
    r.exponent = r.align - (uint64_t)(p->fraction_bits + (p->sticky != 0));
    r.value = (W){{0}};
    if (c) {
        const ADDEND start = W_(number_addend)(c);
        r.value = W_(aligned)(start.value, r.exponent - start.exponent, rounding, redo);
    }
    const V place = r.exponent + (uint64_t)(p->product_fraction + p->product_lift);
    if (p->normalised)
        for (int q = 0; q < count; q++) {
            const ADDEND x = W_(product_addend)(p, a, b, q);
            r.value = W_(add)(r.value, W_(aligned)(x.value, r.exponent - x.exponent, rounding, redo));
        }
    else /* a product that is not zero goes `product_lift` places up and then down, never further up */
        for (int q = 0; q < count; q++) {
            const W x = W_(shl)(W_(product)(a, b, q, narrow), lift);
            const V down = V_(min_signed)(place - W_(align)(a, b, q), last);
            r.value = W_(add)(r.value, W_(cut)(x, down, rounding, redo));
        }
    r.value = W_(wrapped)(p, r.value);
    return r;
}

/* Each part of the pass by itself, then the parts and c. */
VFN ADDEND W_(sum_odd_even)(const mpg_plan *p, const int64_t *a, const int64_t *b, const mpg_layout *layout,
                            const V_(number) * c, int rounding, V *redo)
{
    ADDEND x[3];
    int found = 0;
    for (int g = 0; g < 2; g++) {
        const int begin = layout->bounds[g], size = layout->bounds[g + 1] - begin;
        if (size)
            x[found++] = W_(sum_global)(p, a + 2 * begin, b + 2 * MPG_PANEL * begin, size, 0, rounding, redo);
    }
    if (c)
        x[found++] = W_(number_addend)(c);
    return W_(sum_rounding)(p, x, found, rounding);
}

/* Binary tree: after product q the last layout->tree[q] pairs of sums are summed. The tree is one of the products that take
 * part: lanes in which one does not are redone. */
VFN ADDEND W_(sum_pairwise)(const mpg_plan *p, const int64_t *a, const int64_t *b, const mpg_layout *layout,
                            const V_(number) * c, int rounding, V *redo)
{
    ADDEND x[MPG_MAX_LEVELS] = {{{{0}}}};
    int top = 0;
    for (int q = 0; q < layout->count; q++) {
        x[top++] = W_(product_addend)(p, a, b, q);
        *redo |= V_(less_signed)(x[top - 1].align, V_(all)(MPG_ALIGN_NONE / 2));
        for (int sums = layout->tree[q]; sums > 0; sums--, top--)
            x[top - 2] = W_(sum_rounding)(p, x + top - 2, 2, rounding);
    }
    if (c)
        x[top++] = W_(number_addend)(c);
    return W_(sum_rounding)(p, x, top, rounding);
}

/* Addends one by one, each sum normalised. A sum of nothing yet has the alignment exponent of what takes no part. */
VFN ADDEND W_(sum_normalising)(const mpg_plan *p, const int64_t *a, const int64_t *b, int count, const V_(number) * c,
                               int rounding)
{
    const V taking = V_(all)(MPG_ALIGN_NONE / 2);
    ADDEND pair[2];
    V unused = {0};
    if (c)
        pair[0] = W_(number_addend)(c);
    else
        pair[0] = W_(product_addend)(p, a, b, 0);
    for (int q = c ? 0 : 1; q < count; q++) {
        pair[1] = W_(product_addend)(p, a, b, q);
        const ADDEND sum = W_(sum_rounding)(p, pair, 2, rounding);
        const V nonzero = W_(nonzero)(sum.value), leading = sum.exponent + W_(leading)(sum.value);
        const V cut = V_(max_signed)(leading - (uint64_t)p->fraction_bits - sum.exponent, (V){0}) & nonzero;
        const W kept = W_(cut)(sum.value, cut, p->sticky ? MPG_RZ : rounding, &unused);
        const V align = V_(pick)(nonzero, leading, sum.align);
        /* An addend that is the only one yet stays as it is. */
        const V first = V_(less_signed)(pair[0].align, taking), only = V_(less_signed)(pair[1].align, taking);
        const V both = ~(first | only);
        pair[0].value = W_(either)(both, kept, W_(either)(first, pair[1].value, pair[0].value));
        pair[0].exponent = V_(pick)(both, sum.exponent + cut, V_(pick)(first, pair[1].exponent, pair[0].exponent));
        pair[0].align = V_(pick)(both, align, V_(pick)(first, pair[1].align, pair[0].align));
    }
    return pair[0];
}

/* The sum of positions [begin, end) in the plan's alignment; the innermost loop rounds, so `rounding` is a constant. */
VFN void W_(sum_of)(const mpg_plan *p, const int64_t *a, const int64_t *b, const mpg_layout *layout, int begin, int end,
                    const V_(number) * c, ADDEND *total, V *redo, int rounding)
{
    a += 2 * begin;
    b += 2 * MPG_PANEL * begin;
    switch (p->alignment) {
    case MPG_ALIGNMENT_PAIRWISE:
        *total = W_(sum_pairwise)(p, a, b, layout, c, rounding, redo);
        break;
    case MPG_ALIGNMENT_ODD_EVEN:
        *total = W_(sum_odd_even)(p, a, b, layout, c, rounding, redo);
        break;
    case MPG_ALIGNMENT_NORMALISING:
        *total = W_(sum_normalising)(p, a, b, end - begin, c, rounding);
        break;
    default:
        *total = W_(sum_global)(p, a, b, end - begin, c, rounding, redo);
        break;
    }
}

#define MPG_SUM_FUNCTION(NAME, ROUNDING)                                                                                       \
    VTARGET static void W_(NAME)(const mpg_plan *p, const int64_t *a, const int64_t *b, const mpg_layout *layout, int begin,   \
                                 int end, const V_(number) * c, ADDEND * total, V * redo)                                      \
    {                                                                                                                          \
        W_(sum_of)(p, a, b, layout, begin, end, c, total, redo, ROUNDING);                                                     \
    }

MPG_SUM_FUNCTION(sum_rne, MPG_RNE)
MPG_SUM_FUNCTION(sum_rna, MPG_RNA)
MPG_SUM_FUNCTION(sum_rz, MPG_RZ)
MPG_SUM_FUNCTION(sum_ru, MPG_RU)
MPG_SUM_FUNCTION(sum_rd, MPG_RD)
MPG_SUM_FUNCTION(sum_ro, MPG_RO)
#undef MPG_SUM_FUNCTION

#if WBITS == 128
VTARGET static void W_(sum_exact)(const mpg_plan *p, const int64_t *a, const int64_t *b, const V_(number) * c, int count,
                                  ADDEND *total, V *redo)
{
    *total = W_(sum_global)(p, a, b, count, c, MPG_LOSSLESS, redo);
}
#endif

/* An exact c added to a sum, one rounding; lanes in which both are zero go the scalar way, which knows the signs of the products. */
VFN V W_(with_exact_c)(const ADDEND *total, const V_(number) * c, const mpg_vector_rule *v, V *redo)
{
    V_(number) sum = {0};
#if WBITS == 64
    sum.negative = W_(negative)(total->value);
    sum.significand = V_(magnitude)(total->value.low);
    sum.exponent = total->exponent;
#else
    (void)total; /* the lowering leaves sums of this width to the scalar kernel */
#endif
    *redo |= V_(equal)(sum.significand | c->significand, (V){0});
    return V_(ieee_add)(&sum, c, v);
}

VFN V W_(finish)(const ADDEND *total, const mpg_vector_rule *v)
{
    const V leading = W_(leading)(total->value);
    return V_(encode)(W_(negative)(total->value), W_(normalised)(total->value, leading), total->exponent + leading, v);
}

/* The fused sum of positions [begin, end) of a pass, rounded; `c` is null where it is added late. */
VTARGET static void W_(fused)(const mpg_plan *p, const int64_t *a, const int64_t *b, const mpg_layout *layout, int begin,
                              int end, const V_(number) * c, const mpg_vector_rule *v, V *code, V *redo)
{
    ADDEND total;
    const V_(number) *exact = p->late_c == MPG_C_EXACT ? c : 0;
    if (c)
        *redo |= c->special;
    if (exact)
        c = 0;
    if (p->has_limit) { /* a product can reach the limit only from nearby */
        const V largest = W_(largest)(p, a + 2 * begin, b + 2 * MPG_PANEL * begin, end - begin);
        *redo |= ~V_(less_signed)(largest + (uint64_t)p->product_integer, V_(all)(p->limit));
    }
#if WBITS == 128
    if (p->family == MPG_FAMILY_EXACT)
        W_(sum_exact)(p, a, b, c, end, &total, redo);
    else
#endif
        switch (MPG_PLAN_ROUNDING(p)) {
        case MPG_RNE:
            W_(sum_rne)(p, a, b, layout, begin, end, c, &total, redo);
            break;
        case MPG_RNA:
            W_(sum_rna)(p, a, b, layout, begin, end, c, &total, redo);
            break;
        case MPG_RU:
            W_(sum_ru)(p, a, b, layout, begin, end, c, &total, redo);
            break;
        case MPG_RD:
            W_(sum_rd)(p, a, b, layout, begin, end, c, &total, redo);
            break;
        case MPG_RO:
            W_(sum_ro)(p, a, b, layout, begin, end, c, &total, redo);
            break;
        default:
            W_(sum_rz)(p, a, b, layout, begin, end, c, &total, redo);
            break;
        }
    *code = exact ? W_(with_exact_c)(&total, exact, v, redo) : W_(finish)(&total, v);
    if (p->zero_sign && !exact)
        *redo |= ~W_(nonzero)(total.value);
}

/* ---- FDRDA and GFDRDA ---------------------------------------------------------------------------------------------- */
VTARGET static void W_(round_down)(const mpg_plan *p, const int64_t *a, const int64_t *b, const mpg_layout *layout,
                                   const V_(number) * c, const mpg_vector_rule *v, V *code, V *redo)
{
    const V none = V_(all)(MPG_ALIGN_NONE);
    const int widest = p->dot_fraction_bits > p->c_fraction_bits ? p->dot_fraction_bits : p->c_fraction_bits;
    ADDEND dot = {{{0}}, none, none};
    int used = 0;
    for (int g = 0; g < layout->segments; g++) {
        const int begin = layout->bounds[g], size = layout->bounds[g + 1] - begin;
        if (size == 0)
            continue;
        ADDEND sum = W_(sum_global)(p, a + 2 * begin, b + 2 * MPG_PANEL * begin, size, 0, MPG_RZ, redo);
        if (p->has_limit)
            *redo |= ~V_(less_signed)(sum.align + (uint64_t)p->product_integer, V_(all)(p->limit));
        if (used++) {
            const V align = V_(max_signed)(dot.align, sum.align), exponent = align - (uint64_t)p->fraction_bits;
            const V dot_down = exponent - dot.exponent, sum_down = exponent - sum.exponent;
            W_(aligned_by)(&dot.value, &dot_down, p->add_rounding);
            W_(aligned_by)(&sum.value, &sum_down, p->add_rounding);
            dot = (ADDEND){W_(add)(dot.value, sum.value), exponent, align};
        } else {
            dot = sum;
        }
    }
    *redo |= c->special;
    const V largest = p->has_floor ? V_(max_signed)(V_(max_signed)(dot.align, c->align), V_(all)(p->floor))
                                   : V_(max_signed)(dot.align, c->align);
    const V dot_down = largest - (uint64_t)p->dot_fraction_bits - dot.exponent;
    const V c_down = largest - (uint64_t)p->c_fraction_bits - c->exponent;
    W start = W_(of)(c->significand, c->negative), far = start;
    W_(aligned_by)(&dot.value, &dot_down, p->add_rounding);
    W_(aligned_by)(&start, &c_down, p->add_rounding);
    if (p->has_cutoff) {
        W_(aligned_by)(&far, &c_down, MPG_RZ);
        start = W_(either)(V_(less_signed)(c->align, largest - (uint64_t)(int64_t)p->cutoff), far, start);
    }
    dot.value = W_(add)(W_(shl)(dot.value, V_(all)(widest - p->dot_fraction_bits)),
                        W_(shl)(start, V_(all)(widest - p->c_fraction_bits)));
    const V excess = W_(leading)(dot.value) - (uint64_t)p->sum_fraction_bits;
    const V cut = V_(max_signed)(excess, (V){0}) & W_(nonzero)(dot.value);
    dot.value = W_(cut)(dot.value, cut, MPG_RD, redo);
    dot.exponent = largest - (uint64_t)widest + cut;
    *code = W_(finish)(&dot, v);
}

/* ---- one pass ------------------------------------------------------------------------------------------------------ */
VFN V W_(pass)(const mpg_plan *p, const mpg_vector_rules *rules, const mpg_layout *layout, int first, const int64_t *a,
               const int64_t *b, V c, V *redo)
{
    const V_(number) start = V_(number_of)(c, first ? &p->c : &p->chained);
    V code = {0};
    if (p->family == MPG_FAMILY_ROUND_DOWN) {
        W_(round_down)(p, a, b, layout, &start, &rules->fused, &code, redo);
        return code;
    }
    if (p->family == MPG_FAMILY_INTERLEAVED) {
        for (int g = 0; g < layout->segments; g++) {
            const V_(number) chained = V_(number_of)(code, &p->chained);
            W_(fused)(p, a, b, layout, layout->bounds[g], layout->bounds[g + 1], &chained, &rules->fused, &code, redo);
        }
    } else {
        const int late = p->late_c == MPG_C_LATE;
        W_(fused)(p, a, b, layout, 0, layout->count, late ? 0 : &start, &rules->fused, &code, redo);
        if (!late)
            return code;
    }
    const V_(number) dot = V_(number_of)(code, &p->raw_d), late = V_(number_of)(c, first ? &p->raw_c : &p->raw_d);
    *redo |= dot.special | late.special;
    return V_(ieee_add)(&dot, &late, &rules->late);
}

/* Passes [s0, s1) of row i and the panels from column j0 on, at most MPG_TILE_COLUMNS columns; `total` holds encodings. The
 * passes of one panel wait for each other, those of neighbours do not, so they take turns. */
VTARGET static void W_(row)(const mpg_job *job, int64_t i, int64_t j0, int64_t j1, int64_t s0, int64_t s1, uint64_t *total)
{
    const mpg_plan *p = job->plan;
    const mpg_packed *x = job->a, *y = job->b;
    const int64_t full = x->depth / p->step;
    const int stays = mpg_special_addends_stay(p);
    const V nan = V_(all)((int64_t)p->rule.nan_code);
    for (int64_t s = s0; s < s1; s++) {
        const mpg_layout *layout = mpg_layout_of(s, full, job->whole, job->tail);
        const int64_t *a = x->words + 2 * (i * x->depth + s * p->step);
        const int a_special = x->special[i * x->steps + s];
        for (int64_t j = j0; j < j1; j += MPG_PANEL) {
            const int64_t *b = y->words + 2 * (j * y->depth + MPG_PANEL * s * p->step);
            const uint8_t *special = y->special + j * y->steps + MPG_PANEL * s;
            uint64_t b_special; /* of the whole panel */
            memcpy(&b_special, special, MPG_PANEL);
            const int width = (int)(j1 - j < MPG_PANEL ? j1 - j : MPG_PANEL);
            for (int l = 0; l < width; l += VLANES) {
                uint64_t *here = total + (j - j0) + l;
                const V c = V_(load)(here);
                V redo = {0};
                V code = W_(pass)(p, &job->rules, layout, s == 0, a, b + l, c, &redo);
                if (stays && s && V_(lanes)(redo)) { /* lanes with special operands are computed again below */
                    const V special = V_(number_of)(c, &p->chained).special;
                    /* Without an infinity overflow is a NaN that may have a sign; the next pass makes it the one NaN. */
                    code = V_(pick)(special, p->chained.specials == MPG_SPECIALS_IEEE ? c : nan, code);
                    redo &= ~special;
                }
                V_(store)(here, code);
                if (a_special || b_special || V_(lanes)(redo))
                    for (int lane = 0; lane < VLANES && l + lane < width; lane++)
                        if (a_special || special[l + lane] || redo[lane])
                            here[lane] = mpg_pass_of_panel(job, s, layout, i, j + l + lane, c[lane]);
            }
        }
    }
}
#undef ADDEND
#undef W
