/* The loops of groups.h for the instruction set LANES_LEVEL, which says what an operation is (operations.h): included once for each.
 *
 * With M = 1.5 * 2^52 units of the sign of x, M + x rounded toward zero is M plus x truncated to its unit: one multiply-add multiplies a
 * group sum by its scales, aligns and truncates. Where the set does not name its rounding (VNAMED) the CPU rounds toward zero meanwhile.
 */
#include "operations.h"

#define GROUP_VECTORS (MPG_GROUP_LANES / VDLANES)

/* Group sum of the columns of one vector of words, from column j on. */
OP_FN VW OP(group_sum)(int group, const mpg_group_operands *p, int g, int j)
{
#if VNAMED
    const uint32_t *a = (const uint32_t *)p->a + g * (group / 2);
    const int16_t *b = (const int16_t *)p->b + g * (group / 2) * MPG_GROUP_LANES + j; /* pairs of bytes */
    VW sum = OP(load_words)(p->start + g * MPG_GROUP_LANES + j);
#pragma GCC unroll 8
    for (int q = 0; q < group / 2; q++)
        sum = OP(add_words)(sum, OP(byte_products)(OP(pairs)(a[q]), OP(load_words)(b + q * MPG_GROUP_LANES)));
#else
    const int16_t *a = (const int16_t *)p->a + g * group, *b = (const int16_t *)p->b + g * group * MPG_GROUP_LANES + j;
    VW sum = OP(all_words)(0);
#pragma GCC unroll 16
    for (int q = 0; q < group; q++)
        sum = OP(add_words)(sum, OP(mul_words)(OP(all_words)(a[q]), OP(load_words)(b + q * MPG_GROUP_LANES)));
#endif
    return sum;
}

/* Group sums of one operation, and the words of the largest exponents of those that take part: [group][lane], [lane]. */
OP_FN void OP(group_integers)(int group, int groups, const mpg_group_task *t, const mpg_group_operands *p,
                              int16_t (*sums)[MPG_GROUP_LANES], int16_t *words)
{
#pragma GCC unroll 2
    for (int j = 0; j < MPG_GROUP_LANES; j += 4 * VDLANES) {
        VW most = OP(all_words)(t->floor + MPG_GROUP_WORD_BIAS);
#if VNAMED
#pragma GCC unroll 4
#else /* with 16 registers compilers would keep A's numbers of all groups in memory */
#pragma GCC unroll 1
#endif
        for (int g = 0; g < groups; g++) {
            const int16_t *y = p->eb + g * MPG_GROUP_WORDS + j;
            const VW e = OP(add_words)(OP(pairs)(p->ea[2 * g]), OP(load_words)(y));
            most = OP(larger_where_common)(most, e, OP(pairs)(p->ea[2 * g + 1]), OP(load_words)(y + MPG_GROUP_LANES));
            OP(store_words)(sums[g] + j, OP(group_sum)(group, p, g, j));
        }
        OP(store_words)(words + j, most);
    }
}

/* One operation: c, float32 values in double, becomes the rounded sum. Returns whether results may be too large. Vector instructions for 16
 * products with AVX2: 2.31 above, 2 in the loop over groups (8 for 4 lanes and 16 products), 4.5 for each operation. */
OP_FN unsigned OP(group_step)(int group, int groups, const mpg_group_task *t, const mpg_group_operands *p, VD *c)
{
    const VD to_magic = OP(all64)(mpg_group_power(-t->fraction_bits) * 0x1.8p52), zero = OP(all64)(0.0);
    const VD zero_sign = OP(all64)(t->positive_zero ? 0.0 : -0.0), least = OP(all64)(0x1p-126);
    int16_t sums[MPG_GROUPS_MAX][MPG_GROUP_LANES], words[MPG_GROUP_LANES];
    VD largest = zero;
    OP(group_integers)(group, groups, t, p, sums, words);
#if VNAMED
#pragma GCC unroll 2
#else /* with 16 registers two at a time are slower */
#pragma GCC unroll 1
#endif
    for (int i = 0; i < GROUP_VECTORS; i++) {
        const VD own = OP(exponent64)(c[i]), raw = OP(where_more64)(OP(larger64)(own, least), own, zero);
        const VD magic = OP(larger64)(OP(powers_of)(words + VDLANES * i), raw) * to_magic,
                 signed_c = OP(with_sign)(magic, c[i]);
        VD total = OP(add_chopped64)(signed_c, c[i]) - signed_c;
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            const VD both = OP(all64)(p->sa[g]) * OP(load64)(p->sb + g * MPG_GROUP_LANES + VDLANES * i);
            const VD sum = OP(numbers)(sums[g] + VDLANES * i), signed_magic = OP(with_sign)(magic, sum);
            total += OP(madd_truncated)(sum, both, signed_magic) - signed_magic;
        }
        c[i] = OP(chopped32)(total) + zero_sign;
        largest = OP(larger64)(largest, OP(magnitude64)(c[i]));
    }
    return OP(beyond64)(largest, FLT_MAX);
}

/* The first row of a tile over several operations; what is too large, or the largest number, to which it is truncated, is marked and
 * zeroed. */
OP_FN void OP(group_row_of)(int group, int groups, const mpg_group_task *t, const mpg_group_operands *operands,
                            const mpg_result_tile *tile, int64_t steps)
{
    mpg_group_operands p = *operands;
    const mpg_result_tile d = *tile;
    VD c[GROUP_VECTORS];
    for (int i = 0; i < GROUP_VECTORS; i++)
        c[i] = OP(some64)(d.d + VDLANES * i, d.columns - VDLANES * i);
    for (int64_t s = 0; s < steps; s++, p = mpg_group_from(LANES_LEVEL, &p, 0, groups, group))
        if (MPG_SELDOM(OP(group_step)(group, groups, t, &p, c)))
            for (int i = 0; i < GROUP_VECTORS; i++) {
                const unsigned beyond = OP(beyond64)(c[i], FLT_MAX);
                c[i] = OP(without64)(c[i], beyond);
                for (int l = 0; l < VDLANES && VDLANES * i + l < d.columns; l++)
                    d.redo[VDLANES * i + l] |= beyond >> l & 1;
            }
    for (int i = 0; i < GROUP_VECTORS; i++)
        OP(put_some64)(d.d + VDLANES * i, c[i], d.columns - VDLANES * i);
}

OP_TARGET MPG_NOINLINE static void OP(group_row)(const mpg_group_task *t, const mpg_group_operands *p,
                                                 const mpg_result_tile *tile, int64_t steps)
{
    if (t->group == 16 && t->groups == 4)
        OP(group_row_of)(16, 4, t, p, tile, steps);
    else
        OP(group_row_of)(t->group, t->groups, t, p, tile, steps);
}

#undef GROUP_VECTORS
