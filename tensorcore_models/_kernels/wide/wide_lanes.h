/* The loops of wide.h for the instruction set LANES_LEVEL, which says what an operation is (operations.h): included once for each.
 *
 * A row's 32 columns are WIDE_HALVES vectors of words and, for each, four of doubles: vector g of part h has columns 8 g + VDLANES h and on.
 * A turn has one or two parts: two rows where the set names its rounding (VNAMED), else the next WIDE_TOGETHER vectors of words of a row.
 * Where it does not, the CPU rounds toward zero meanwhile, to nearest for sums that are rounded so at their alignment: sums near
 * 1.5 * 2^52 units are positive, so that toward zero is down. Sums start from 1.5 * 2^52 units plus as many units as the highest word of
 * that number says, so that the start and the end are shuffles of words.
 */
#include "operations.h"

#define WIDE_HALVES (8 / VDLANES)
#define WIDE_TOGETHER (VNAMED ? 1 : 2)
#define WIDE_TURNS (VNAMED ? 1 : WIDE_HALVES / WIDE_TOGETHER) /* of a row */
/* Row and vector of words of part i. */
#if VNAMED
#define WIDE_ROW(i) (i)
#define WIDE_HALF(i) 0
#else
#define WIDE_ROW(i) 0
#define WIDE_HALF(i) (i)
#endif

/* Words and doubles of B for part i of product q. */
OP_FN VW OP(wide_words)(const int16_t *words, int q, int i)
{
    return OP(load_words)(words + q * MPG_WIDE + 4 * VDLANES * WIDE_HALF(i));
}
OP_FN VD OP(wide_column)(const mpg_wide_operands *p, int q, int i, int g)
{
    return OP(load64)(p->b + q * MPG_WIDE + 8 * g + VDLANES * WIDE_HALF(i));
}

/* Words of the largest alignment exponent of `terms` products, or of `lowest` where that is larger. */
OP_FN void OP(wide_tops)(int parts, int terms, int lowest, const mpg_wide_operands *p, VW *tops)
{
    for (int i = 0; i < parts; i++)
        tops[i] = OP(all_words)((lowest + MPG_WORD_BIAS) << 4);
#pragma GCC unroll 16
    for (int q = 0; q < terms; q++)
#pragma GCC unroll 2
        for (int i = 0; i < parts; i++) {
            const VW a = OP(pairs)(p->ea[WIDE_ROW(i) * p->stride + q]);
            tops[i] = OP(larger_words)(tops[i], OP(add_words)(a, OP(wide_words)(p->eb, q, i)));
        }
}

/* Adds `terms` products to `sum`, near 1.5 * 2^52 units of 2^(top - F), each rounded down to its unit. With `signs` words of lowest bits
 * have them: `end` is what represents zero in the sum of products truncated to their units, given that `sum` was OP(starts) of `words`
 * before. Without, it is that of products rounded down, and `cut` says where one is no multiple of 2^(top - cut_bits). */
OP_FN void OP(wide_sums)(int parts, int terms, int signs, int cut_bits, const mpg_wide_operands *p, const VW *tops,
                         const VW *words, VD (*sum)[4], VD (*end)[4], VW *cut)
{
    const VW to_limit = OP(all_words)(2 * MPG_LOWEST_BIAS - MPG_WORD_BIAS - cut_bits - (signs << 15));
    VW limit[2], low[2];
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++) {
        limit[i] = OP(add_words)(OP(sixteenths)(tops[i]), to_limit);
        low[i] = signs ? words[i] : OP(all_words)(0x7FFF);
    }
#pragma GCC unroll 16
    for (int q = 0; q < terms; q++) {
        VD x[2];
#pragma GCC unroll 2
        for (int i = 0; i < parts; i++) {
            const VW lowest = OP(add_words)(OP(pairs)(p->la[WIDE_ROW(i) * p->stride + q]), OP(wide_words)(p->lb, q, i));
            /* one unit more for each negative product that is cut */
            low[i] = signs ? OP(count_below)(low[i], lowest, limit[i]) : OP(smaller_words)(low[i], lowest);
            x[i] = OP(all64)(p->a[WIDE_ROW(i) * p->stride + q]);
        }
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
#pragma GCC unroll 2
            for (int i = 0; i < parts; i++)
                sum[i][g] = OP(madd_down)(x[i], OP(wide_column)(p, q, i, g), sum[i][g]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++) {
        OP(ends)(words[i], signs ? low[i] : words[i], end[i]);
        if (!signs)
            cut[i] = OP(words_below)(low[i], limit[i]);
    }
}

/* One fused dot-add of each part; c are float32 or fp16 values. Without `careful` MPG_REPEAT where float32 results may be subnormal or
 * infinite, or a subnormal c aligns at the smallest normal number: c is as it was. */
OP_FN int OP(wide_fda)(int parts, int terms, int algorithm, int careful, const mpg_wide_task *t, const mpg_wide_operands *p,
                       VD (*c)[4])
{
    /* From here to 2^120 a sum is a multiple of 2^-149, and below 2^128, and a subnormal c is not the largest addend. */
    const int smallest = t->fraction_bits - 149 > t->raw_exponent ? t->fraction_bits - 149 : t->raw_exponent;
    const VW to_magic = OP(all_words)(mpg_word_to_magic(t->fraction_bits));
    const VW low = OP(all_words)((smallest + MPG_WORD_BIAS) << 4), high = OP(all_words)((120 + MPG_WORD_BIAS) << 4);
    const VL kept = OP(all_bits)(~INT64_C(0x1FFFFFFF));
    const VD zero = OP(all64)(t->positive_zero ? 0.0 : -0.0);
    VW tops[2], words[2];
    VD sum[2][4], end[2][4];
    int outside = 0;
    OP(wide_tops)(parts, terms, t->floor, p, tops);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++) {
        VW own = OP(exponent_words)(c[i]);
        if (careful)
            own = OP(raised_words)(own, OP(all_words)((t->raw_exponent + MPG_WORD_BIAS) << 4));
        tops[i] = OP(larger_words)(tops[i], own);
        outside |= !careful && OP(any_outside)(tops[i], low, high);
        words[i] = OP(add_words)(tops[i], to_magic);
        OP(starts)(words[i], sum[i]);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            sum[i][g] = OP(add_truncated)(sum[i][g], c[i][g]);
    }
    if (MPG_SELDOM(outside))
        return MPG_REPEAT;
    OP(wide_sums)(parts, terms, 1, t->fraction_bits, p, tops, words, sum, end, NULL);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            const VD total = sum[i][g] - end[i][g];
            c[i][g] = !careful                         ? OP(value64)(OP(bits64)(total) & kept)
                      : algorithm == MPG_WIDE_FDA_FP16 ? OP(nearest16)(total)
                                                       : OP(truncated32)(total) + zero;
        }
    return careful ? MPG_INFINITE : 0;
}

/* The same with addends rounded to nearest even at their alignment: x + 1.5 * 2^52 units is x rounded so, as 1.5 * 2^52 is even, and
 * multiples of the unit add up exactly. Lanes whose largest exponent is not in F - 149 to 120 become infinite. */
OP_FN int OP(wide_nearest)(int parts, int terms, const mpg_wide_task *t, const mpg_wide_operands *p, VD (*c)[4])
{
    const VW to_magic = OP(all_words)(mpg_word_to_magic(t->fraction_bits));
    const VW low = OP(all_words)((t->fraction_bits - 149 + MPG_WORD_BIAS) << 4);
    const VW high = OP(all_words)((120 + MPG_WORD_BIAS) << 4), none = OP(all_words)((MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4);
    const VL kept = OP(all_bits)(~INT64_C(0x1FFFFFFF));
    VW tops[2], apart[2];
    OP(wide_tops)(parts, terms, MPG_WIDE_LOWEST, p, tops);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++) {
        VD magic[4], total[4];
        const VW own = OP(raised_words)(OP(exponent_words)(c[i]), OP(all_words)((t->raw_exponent + MPG_WORD_BIAS) << 4));
        const VW top = OP(larger_words)(tops[i], own); /* a sum of zeros is 0 in any unit */
        const VW raised = OP(larger_words)(top, OP(all_words)((t->floor + MPG_WORD_BIAS) << 4));
        apart[i] = OP(smaller_words)(OP(words_below)(raised, low), OP(words_below)(high, raised));
        apart[i] = OP(larger_words)(apart[i], OP(words_below)(none, top));
        OP(powers)(OP(add_words)(raised, to_magic), magic);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            total[g] = (c[i][g] + magic[g]) - magic[g];
#pragma GCC unroll 2
        for (int q = 0; q < terms; q++) {
            const VD x = OP(all64)(p->a[WIDE_ROW(i) * p->stride + q]);
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++)
                total[g] += OP(madd64)(x, OP(wide_column)(p, q, i, g), magic[g]) - magic[g];
        }
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            c[i][g] = OP(value64)(OP(bits64)(total[g]) & kept);
    }
    const int any = OP(any_words)(apart[0]) | (parts == 2 && OP(any_words)(apart[1]));
    if (MPG_SELDOM(any))
        for (int i = 0; i < parts; i++)
            for (int g = 0; g < 4; g++)
                c[i][g] = OP(where_word)(apart[i], g, OP(all64)(INFINITY), c[i][g]);
    return any ? MPG_INFINITE : 0;
}

/* The largest exponents of each group and part, as powers of two, and the sums of its `each` products, truncated. */
OP_FN void OP(wide_dots)(int parts, int each, int groups, const mpg_wide_task *t, const mpg_wide_operands *p, VD (*top)[2][4],
                         VD (*dot)[2][4])
{
    const VW to_magic = OP(all_words)(mpg_word_to_magic(t->fraction_bits));
    for (int n = 0; n < groups; n++) {
        const mpg_wide_operands part = mpg_wide_from(p, 0, n * each);
        VW tops[2], words[2];
        VD end[2][4];
        OP(wide_tops)(parts, each, MPG_WIDE_LOWEST, &part, tops);
#pragma GCC unroll 2
        for (int i = 0; i < parts; i++) {
            words[i] = OP(add_words)(tops[i], to_magic);
            OP(powers)(tops[i], top[n][i]);
            OP(starts)(words[i], dot[n][i]);
        }
        OP(wide_sums)(parts, each, 1, t->fraction_bits, &part, tops, words, dot[n], end, NULL);
#pragma GCC unroll 2
        for (int i = 0; i < parts; i++)
#pragma GCC unroll 4
            for (int g = 0; g < 4; g++)
                dot[n][i][g] -= end[i][g];
    }
}

/* One dot-round-down-add of each part, of one group or two; lanes whose products overflow become infinite. */
OP_FN int OP(wide_down)(int parts, int terms, int groups, const mpg_wide_task *t, const mpg_wide_operands *p, VD (*c)[4])
{
    const int each = terms / groups, finer = t->dot_bits > t->c_bits ? t->dot_bits : t->c_bits;
    const VD group_magic = OP(all64)(mpg_power(-t->fraction_bits) * 0x1.8p52);
    const VD dot_magic = OP(all64)(mpg_power(-t->dot_bits) * 0x1.8p52), c_magic = OP(all64)(mpg_power(-t->c_bits) * 0x1.8p52);
    const VD cutoff = OP(all64)(mpg_power(-t->c_cutoff)), nothing = OP(all64)(0.0), least = OP(all64)(0x1p-126);
    const VL cut = OP(all_bits)((INT64_C(1) << (52 - t->sum_bits)) - 1);
    const double limit = mpg_power(t->overflow < 1000 ? t->overflow - 1 : 1023);
    VD top[2][2][4], dot[2][2][4], lowest = OP(all64)(0x1p1023), highest = nothing;
    OP(wide_dots)(parts, each, groups, t, p, top, dot);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++) {
            VD largest = top[0][i][g], sum = dot[0][i][g];
            if (groups == 2) {
                largest = OP(larger64)(largest, top[1][i][g]);
                sum = OP(floored64)(sum, largest * group_magic) + OP(floored64)(dot[1][i][g], largest * group_magic);
            }
            const VD raw = OP(larger64)(OP(exponent64)(c[i][g]), least), all = OP(larger64)(largest, raw);
            VD addend = OP(floored64)(c[i][g], all * c_magic);
            if (groups == 2)
                addend = OP(below64)(raw, all * cutoff, nothing, addend);
            const VL total = OP(bits64)(OP(floored64)(sum, all * dot_magic) + addend);
            dot[0][i][g] = OP(value64)((total + (cut & (total >> 63))) & ~cut); /* rounded down */
            top[0][i][g] = largest;
            highest = OP(larger64)(highest, all);
            lowest = OP(smaller64)(lowest, all);
        }
    /* From there to 2^98 a sum is a multiple of 2^-149, and nothing overflows. */
    const unsigned every = (1u << VDLANES) - 1;
    const int odd =
        OP(beyond64)(highest, limit < 0x1p98 ? limit : 0x1p98) || OP(beyond64)(lowest, mpg_power(finer - 149)) != every;
    const VD zero = OP(all64)(t->positive_zero ? 0.0 : -0.0);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            c[i][g] = MPG_SELDOM(odd)
                          ? OP(below64)(top[0][i][g], OP(all64)(limit), OP(nearest32)(dot[0][i][g]) + zero, OP(all64)(INFINITY))
                          : OP(normal32)(dot[0][i][g]);
    return odd ? MPG_INFINITE : 0;
}

/* `dot` of a part in which a product is cut: products rounded to odd, one by one. */
OP_FN void OP(wide_odd_dot)(int terms, const double *a, const mpg_wide_operands *p, int i, const VD *magic, VD *dot)
{
    for (int g = 0; g < 4; g++)
        dot[g] = OP(all64)(0.0);
    for (int q = 0; q < terms; q++)
        for (int g = 0; g < 4; g++) {
            const VD product = OP(all64)(a[q]) * OP(wide_column)(p, q, i, g), moved = OP(add_down)(magic[g], product);
            const VL last = OP(unlike64)(moved - magic[g], product);
            dot[g] += OP(value64)(OP(bits64)(moved) | last) - magic[g];
        }
}

/* A late c added to a dot product, vector g of its part, exactly or with both rounded to odd; lanes for the generic kernel become
 * infinite. */
OP_FN VD OP(wide_late_sum)(int algorithm, int careful, VD dot, VD c, VW cut, int g)
{
    const VD least = OP(all64)(0x1p-126), most = OP(all64)(0x1p128), infinity = OP(all64)(INFINITY), zero = OP(all64)(0.0);
    if (algorithm == MPG_WIDE_ODD && !careful)
        return OP(odd32)(OP(odd_sum)(OP(odd32)(dot), c));
    if (algorithm == MPG_WIDE_ODD) { /* infinite where the dot product is not 0 and below 2^-126, or from 2^128 on */
        const VD size = OP(magnitude64)(dot);
        const VD bad = OP(below64)(zero, size, OP(below64)(size, least, infinity, zero), zero);
        const VD total = OP(below64)(size, most, OP(below64)(bad, infinity, dot, zero), zero);
        const VD result = OP(odd32)(OP(odd_sum)(OP(odd32)(total), c));
        return OP(below64)(bad, infinity, OP(below64)(size, most, result, infinity), infinity);
    }
    const VD total = OP(nearest32)(OP(odd_sum)(dot, c)); /* what is subnormal then is flushed */
    const VD flushed = OP(below64)(OP(magnitude64)(total), least, OP(signed64)(zero, total), total);
    return algorithm == MPG_WIDE_EXACT_MARKED ? OP(where_word)(cut, g, infinity, flushed) : flushed;
}

/* One operation of each part with a late c, added exactly or rounded to odd. Lanes for the generic kernel become infinite. Odd ones
 * without `careful` return MPG_REPEAT, as MPG_WIDE_FDA does. */
OP_FN int OP(wide_late)(int parts, int terms, int algorithm, int careful, const mpg_wide_task *t, const mpg_wide_operands *p,
                        VD (*c)[4])
{
    const int odd = algorithm == MPG_WIDE_ODD, marked = algorithm == MPG_WIDE_EXACT_MARKED;
    /* From F - 149 to 120 a sum is a multiple of 2^-149, and neither it nor the sum with a c of that size reaches 2^128; with any c it
     * does not up to 90. */
    const int smallest = odd ? t->fraction_bits - 149 : MPG_WIDE_LOWEST;
    const VW to_magic = OP(all_words)(mpg_word_to_magic(t->fraction_bits)), nothing = OP(all_words)(0);
    const VW low = OP(all_words)((smallest + MPG_WORD_BIAS) << 4);
    const VW high = OP(all_words)(((odd ? 120 : 90) + MPG_WORD_BIAS) << 4);
    VW tops[2], words[2], cut[2] = {nothing, nothing};
    VD sum[2][4], end[2][4];
    int outside = 0;
    OP(wide_tops)(parts, terms, MPG_WIDE_LOWEST, p, tops);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++) {
        words[i] = OP(add_words)(tops[i], to_magic);
        OP(starts)(words[i], sum[i]);
        outside |= !(odd && careful) && OP(any_outside)(tops[i], low, high);
        if (odd && !careful)
            outside |= OP(any_outside)(OP(exponent_words)(c[i]), nothing, high);
    }
    if (odd && MPG_SELDOM(outside))
        return MPG_REPEAT;
    OP(wide_sums)(parts, terms, !(odd || marked), t->fraction_bits - marked, p, tops, words, sum, end, cut);
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            sum[i][g] -= end[i][g];
    for (int i = 0; odd && i < parts; i++)
        if (OP(any_words)(cut[i])) {
            VD magic[4], dot[4]; /* copies, so that the sums stay in registers elsewhere */
            memcpy(magic, end[i], sizeof magic);
            OP(wide_odd_dot)(terms, p->a + WIDE_ROW(i) * p->stride, p, i, magic, dot);
            memcpy(sum[i], dot, sizeof dot);
        }
#pragma GCC unroll 2
    for (int i = 0; i < parts; i++)
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            c[i][g] = OP(wide_late_sum)(algorithm, careful, sum[i][g], c[i][g], cut[i], g);
    const int inexact = marked && (OP(any_words)(cut[0]) | (parts == 2 && OP(any_words)(cut[1])));
    return outside || inexact || (odd && careful) ? MPG_INFINITE : 0;
}

/* One operation of a turn. Not inlined for the careful ones, which are seldom: they take copies of c. */
OP_FN int OP(wide_operation)(int parts, int terms, int algorithm, int careful, const mpg_wide_task *t,
                             const mpg_wide_operands *p, VD (*c)[4])
{
    if (algorithm == MPG_WIDE_NEAREST)
        return OP(wide_nearest)(parts, terms, t, p, c);
    if (algorithm == MPG_WIDE_DOWN || algorithm == MPG_WIDE_DOWN_GROUPS)
        return OP(wide_down)(parts, terms, algorithm == MPG_WIDE_DOWN ? 1 : 2, t, p, c);
    if (algorithm >= MPG_WIDE_EXACT)
        return OP(wide_late)(parts, terms, algorithm, careful, t, p, c);
    return OP(wide_fda)(parts, terms, algorithm, careful || algorithm == MPG_WIDE_FDA_FP16, t, p, c);
}
OP_TARGET MPG_NOINLINE static void OP(wide_careful)(int parts, int algorithm, const mpg_wide_task *t,
                                                    const mpg_wide_operands *p, VD (*c)[4])
{
    if (algorithm == MPG_WIDE_ODD)
        OP(wide_late)(parts, t->terms, MPG_WIDE_ODD, 1, t, p, c);
    else
        OP(wide_fda)(parts, t->terms, MPG_WIDE_FDA, 1, t, p, c);
}

/* The operands of a turn, and the first column of vector g of its part i. */
OP_FN mpg_wide_operands OP(wide_turn)(const mpg_wide_operands *p, int turn)
{
    mpg_wide_operands q = mpg_wide_from(p, turn / WIDE_TURNS, 0);
    const int first = turn % WIDE_TURNS * WIDE_TOGETHER * VDLANES;
    q.b += first;
    q.eb += 4 * first;
    q.lb += 4 * first;
    return q;
}
OP_FN int OP(wide_place)(int turn, int i, int g)
{
    return 8 * g + VDLANES * (turn % WIDE_TURNS * WIDE_TOGETHER + WIDE_HALF(i));
}

/* Marks and zeroes the lanes of a turn that are too large for the format. */
OP_FN void OP(wide_mark)(int parts, int turn, double limit, const mpg_result_tile *tile, VD (*c)[4])
{
    for (int i = 0; i < parts; i++)
        for (int g = 0; g < 4; g++) {
            const unsigned beyond = OP(beyond64)(c[i][g], limit);
            const int place = OP(wide_place)(turn, i, g);
            c[i][g] = OP(without64)(c[i][g], beyond);
            for (int l = 0; l < VDLANES && place + l < tile->columns; l++)
                tile->redo[(turn / WIDE_TURNS + WIDE_ROW(i)) * tile->ld + place + l] |= beyond >> l & 1;
        }
}

/* The rows of a tile over several operations, turn by turn: an operation waits for the one before it in its row. Lanes that overflow
 * are marked and zeroed. `rows` is a constant where the set names its rounding: all lanes stay in registers, and with t->promote sums
 * start from zero and are added outside, to nearest. */
OP_FN void OP(wide_rows)(int rows, int terms, int algorithm, const mpg_wide_task *task, const mpg_wide_operands *operands,
                         const mpg_result_tile *tile, int64_t steps)
{
    const mpg_wide_task copy = *task, *t = &copy; /* nothing that is stored here can change it */
    mpg_wide_operands p = *operands;
    const mpg_result_tile d = *tile;
    const int turns = VNAMED ? 1 : rows * WIDE_TURNS, parts = VNAMED ? rows : WIDE_TOGETHER;
    const double limit = algorithm == MPG_WIDE_FDA_FP16 ? 0x1p16 : 0x1p128;
    VD c[VNAMED ? 1 : MPG_WIDE_TOGETHER * WIDE_TURNS][2][4];
#if VNAMED
    VD outside[2][4];
    const int64_t apart = t->promote / t->terms;
    int64_t left = apart;
#endif
    for (int u = 0; u < turns; u++)
        for (int i = 0; i < parts; i++)
            for (int g = 0; g < 4; g++) {
                const int place = OP(wide_place)(u, i, g);
                const float *from = d.d + (u / WIDE_TURNS + WIDE_ROW(i)) * d.ld + place;
                c[u][i][g] = OP(some64)(from, d.columns - place);
#if VNAMED
                outside[i][g] = c[u][i][g];
                if (apart)
                    c[u][i][g] = OP(all64)(0.0);
#endif
            }
    for (int64_t s = 0; s < steps; s++, p = mpg_wide_from(&p, 0, terms))
        for (int u = 0; u < turns; u++) {
            const mpg_wide_operands q = OP(wide_turn)(&p, u);
            const int found = OP(wide_operation)(parts, terms, algorithm, 0, t, &q, c[u]);
            if (MPG_SELDOM(found)) {
                VD seldom[2][4]; /* copies, so that sums and pointers stay in registers elsewhere */
                const mpg_wide_operands again = q;
                memcpy(seldom, c[u], sizeof seldom);
                if (found == MPG_REPEAT)
                    OP(wide_careful)(parts, algorithm, t, &again, seldom);
                OP(wide_mark)(parts, u, limit, &d, seldom);
                memcpy(c[u], seldom, sizeof seldom);
            }
#if VNAMED
            if (apart && --left == 0) {
                left = apart;
                for (int i = 0; i < parts; i++)
                    for (int g = 0; g < 4; g++) { /* a double has more than twice the bits: the second rounding is harmless */
                        outside[i][g] = OP(nearest32)(outside[i][g] + c[0][i][g]);
                        c[0][i][g] = OP(all64)(0.0);
                    }
            }
#endif
        }
    for (int u = 0; u < turns; u++)
        for (int i = 0; i < parts; i++)
            for (int g = 0; g < 4; g++) {
                const int place = OP(wide_place)(u, i, g);
                float *to = d.d + (u / WIDE_TURNS + WIDE_ROW(i)) * d.ld + place;
#if VNAMED
                if (apart)
                    c[u][i][g] = outside[i][g];
#endif
                OP(put_some64)(to, c[u][i][g], d.columns - place);
            }
}

#define WIDE_KERNEL(NAME, ROWS, TERMS, ALGORITHM)                                                                              \
    OP_TARGET MPG_NOINLINE static void OP(NAME##_##ROWS)(const mpg_wide_task *t, const mpg_wide_operands *p,                   \
                                                         const mpg_result_tile *tile, int64_t steps)                           \
    {                                                                                                                          \
        OP(wide_rows)(VNAMED ? ROWS : (int)tile->rows, TERMS, ALGORITHM, t, p, tile, steps);                                   \
    }
/* Kernels of one row and of two; elsewhere of any number. */
#if VNAMED
#define WIDE_BOTH(NAME, TERMS, ALGORITHM) WIDE_KERNEL(NAME, 1, TERMS, ALGORITHM) WIDE_KERNEL(NAME, 2, TERMS, ALGORITHM)
#define WIDE_NAMED(NAME) {OP(NAME##_1), OP(NAME##_2)}
#else
#define WIDE_BOTH(NAME, TERMS, ALGORITHM) WIDE_KERNEL(NAME, 1, TERMS, ALGORITHM)
#define WIDE_NAMED(NAME) {OP(NAME##_1), OP(NAME##_1)}
#endif

WIDE_BOTH(wide_fda4, 4, MPG_WIDE_FDA)
WIDE_BOTH(wide_fda8, 8, MPG_WIDE_FDA)
WIDE_BOTH(wide_fda16, 16, MPG_WIDE_FDA)
WIDE_BOTH(wide_fda32, 32, MPG_WIDE_FDA)
WIDE_BOTH(wide_fp16, t->terms, MPG_WIDE_FDA_FP16)
WIDE_BOTH(wide_nearest, t->terms, MPG_WIDE_NEAREST)
WIDE_BOTH(wide_nearest16, 16, MPG_WIDE_NEAREST)
WIDE_BOTH(wide_down, t->terms, MPG_WIDE_DOWN)
WIDE_BOTH(wide_down8, 8, MPG_WIDE_DOWN)
WIDE_BOTH(wide_halves, t->terms, MPG_WIDE_DOWN_GROUPS)
WIDE_BOTH(wide_exact, t->terms, MPG_WIDE_EXACT)
WIDE_BOTH(wide_exact8, 8, MPG_WIDE_EXACT)
WIDE_BOTH(wide_marked, t->terms, MPG_WIDE_EXACT_MARKED)
WIDE_BOTH(wide_odd, t->terms, MPG_WIDE_ODD)

/* Kernels by [algorithm][terms 4, 8, 16, 32][one row, two]. */
#define WIDE_BY_TERMS(FOUR, EIGHT, SIXTEEN, MANY) {WIDE_NAMED(FOUR), WIDE_NAMED(EIGHT), WIDE_NAMED(SIXTEEN), WIDE_NAMED(MANY)}
static const mpg_wide_kernel OP(WIDE_KERNELS)[][4][2] = {
    [MPG_WIDE_FDA] = WIDE_BY_TERMS(wide_fda4, wide_fda8, wide_fda16, wide_fda32),
    [MPG_WIDE_FDA_FP16] = WIDE_BY_TERMS(wide_fp16, wide_fp16, wide_fp16, wide_fp16),
    [MPG_WIDE_NEAREST] = WIDE_BY_TERMS(wide_nearest, wide_nearest, wide_nearest16, wide_nearest),
    [MPG_WIDE_DOWN] = WIDE_BY_TERMS(wide_down, wide_down8, wide_down, wide_down),
    [MPG_WIDE_DOWN_GROUPS] = WIDE_BY_TERMS(wide_halves, wide_halves, wide_halves, wide_halves),
    [MPG_WIDE_EXACT] = WIDE_BY_TERMS(wide_exact, wide_exact8, wide_exact, wide_exact),
    [MPG_WIDE_EXACT_MARKED] = WIDE_BY_TERMS(wide_marked, wide_marked, wide_marked, wide_marked),
    [MPG_WIDE_ODD] = WIDE_BY_TERMS(wide_odd, wide_odd, wide_odd, wide_odd),
};

#undef WIDE_HALVES
#undef WIDE_TOGETHER
#undef WIDE_TURNS
#undef WIDE_ROW
#undef WIDE_HALF
#undef WIDE_KERNEL
#undef WIDE_BOTH
#undef WIDE_NAMED
#undef WIDE_BY_TERMS
