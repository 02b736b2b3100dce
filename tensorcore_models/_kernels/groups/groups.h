/* Exact group sums times block scales, aligned with c and summed (GDFS; xie-mma-sim, section IV-E), lanes over the columns.
 *
 *  - Operands are small fixed-point numbers looked up by encoding: group sums are exact in 16-bit integers.
 *  - A group sum times its two scales is exact in double, and so is its multiple of the unit 2^(e_max - F): tensorcore_models/
 *    kernels/groups.py admits only what stays below 2^51 units. The conversion is the truncation.
 *  - Sums of such multiples are exact; they are rounded once.
 *  - A word of 16 bits for each group of a row or column says which of its numbers are not zero: a group takes part in the
 *    alignment if two such words have a bit in common. Its sum may be zero all the same.
 */
#ifndef MPG_GROUPS_H
#define MPG_GROUPS_H

#include "block_sizes.h"
#include "lanes.h"

#define MPG_GROUP_LANES 32     /* lanes of a panel */
#define MPG_GROUPS_MAX 16      /* group sums of one operation */
#define MPG_GROUP_LONGEST 16   /* products of one group: a bit each */
#define MPG_GROUP_SKIP (-8000) /* alignment exponent of scales that take no part */

typedef struct {
    int group;         /* products of one exact sum, rounded up to an even number */
    int groups;        /* group sums of one operation, at most MPG_GROUPS_MAX */
    int fraction_bits; /* F */
    int floor;         /* lowest alignment exponent, -400 to 900 */
    int positive_zero; /* a negative sum that is rounded to zero gives +0 */
    int offset;        /* makes a's fixed-point numbers positive (AVX-512) */
} mpg_group_task;

/* Where the encodings and scales of one operand lie, and what each byte means. */
typedef struct {
    const uint8_t *data, *scales;
    int64_t outer, inner, scale_outer, scale_inner; /* element strides along lanes or rows, and along k */
    int64_t k, given;                               /* products; of one group before padding */
    int block_size;
    int nibbles;                    /* only the low 4 bits of an encoding count */
    const int8_t *values;           /* [256]: fixed-point number of each encoding */
    const double *scale_values;     /* [256]: scale times the operand's fixed-point unit, 0 for NaN */
    const int16_t *scale_exponents; /* [256]: alignment exponents, MPG_GROUP_SKIP for zeros */
    const uint8_t *scale_special;   /* [256]: NaN */
} mpg_group_source;

/* Packed operands from some group on, in the layout of the level: rows of A, `stride` groups apart, and a panel of B. */
typedef struct {
    const void *a; /* fixed-point numbers, two bytes each */
    const double *sa;
    const uint32_t *ea; /* two words of each group */
    int64_t stride;
    const void *b;
    const int16_t *start; /* where group sums start (AVX-512) */
    const double *sb;
    const int16_t *eb;
} mpg_group_operands;

/* Where a row of A and a panel of B are packed. */
typedef struct {
    void *values;
    double *scales;
    uint32_t *words;
} mpg_group_row;

typedef struct {
    void *values;
    int16_t *start;
    double *scales;
    int16_t *words;
} mpg_group_panel;

/* Words of a panel's groups: alignment exponents of 32 lanes, then the numbers of each lane that are not zero, a bit each. */
#define MPG_GROUP_WORDS (2 * MPG_GROUP_LANES)

/* Bytes of a number of B. */
#define MPG_GROUP_B_BYTES(level) ((level) == MPG_ISA_AVX512 ? 1 : 2)

/* The operands from row `row` and `g` groups further on. */
MPG_INLINE mpg_group_operands mpg_group_from(int level, const mpg_group_operands *p, int64_t row, int64_t g, int group)
{
    const int64_t place = row * p->stride + g;
    mpg_group_operands next = *p;
    next.a = (const int16_t *)p->a + place * group;
    next.sa += place;
    next.ea += 2 * place;
    next.b = (const int8_t *)p->b + g * group * MPG_GROUP_LANES * MPG_GROUP_B_BYTES(level);
    next.start += g * MPG_GROUP_LANES;
    next.sb += g * MPG_GROUP_LANES;
    next.eb += g * MPG_GROUP_WORDS;
    return next;
}

#define MPG_GROUP_WORD_BIAS 1023 /* of alignment exponents in panels: that of double */

MPG_INLINE double mpg_group_power(int exponent) { return mpg_as_double((uint64_t)(exponent + 1023) << 52); }

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* Block of scales that holds group `g`, -1 for a group beyond k. */
MPG_INLINE int64_t mpg_group_block(const mpg_group_source *s, int64_t g)
{
    const int64_t k = g * s->given;
    return k >= s->k ? -1 : s->block_size == s->given ? g : k / s->block_size;
}

/* Scale of lane or row `outer` in a block; one beyond k takes no part. */
MPG_INLINE void mpg_group_scale(const mpg_group_source *s, int64_t outer, int64_t block, double *value, int *exponent)
{
    *value = 0;
    *exponent = MPG_GROUP_SKIP;
    if (block >= 0) {
        const uint8_t code = s->scales[outer * s->scale_outer + block * s->scale_inner];
        *value = s->scale_values[code];
        *exponent = s->scale_exponents[code];
    }
}

/* Any of the scales of lane or row `outer` is NaN. */
static int mpg_group_special(const mpg_group_source *s, int64_t outer)
{
    const int64_t blocks = (s->k + s->block_size - 1) / s->block_size;
    int special = 0;
    for (int64_t block = 0; block < blocks; block++)
        special |= s->scale_special[s->scales[outer * s->scale_outer + block * s->scale_inner]];
    return special;
}

/* Scales and alignment exponents of groups begin to end - 1 of `count` columns of B. */
static void mpg_group_pack_b_scales(const mpg_group_source *s, int64_t first, int count, int64_t begin, int64_t end,
                                    const mpg_group_panel *panel)
{
    int16_t *words = panel->words;
    for (int64_t g = begin; g < end; g++, words += MPG_GROUP_WORDS) {
        const int64_t block = mpg_group_block(s, g), at = (g - begin) * MPG_GROUP_LANES;
        for (int j = 0; j < MPG_GROUP_LANES; j++) {
            double value = 0;
            int exponent = MPG_GROUP_SKIP;
            if (j < count)
                mpg_group_scale(s, first + j, block, &value, &exponent);
            panel->scales[at + j] = value;
            words[j] = (int16_t)(exponent + MPG_GROUP_WORD_BIAS);
        }
    }
}

/* The same of a row of A; the two words of a group, each twice over in 32 bits. */
static void mpg_group_pack_a_scales(const mpg_group_source *s, int64_t row, int64_t begin, int64_t end, double *scales,
                                    uint32_t *words)
{
    for (int64_t g = begin; g < end; g++) {
        int exponent;
        mpg_group_scale(s, row, mpg_group_block(s, g), scales + (g - begin), &exponent);
        words[2 * (g - begin)] = 0x00010001u * (uint16_t)(int16_t)exponent;
    }
}

/* Position in k of product q of group g, -1 for padding. */
MPG_INLINE int64_t mpg_group_position(const mpg_group_source *s, int64_t g, int64_t q)
{
    const int64_t k = g * s->given + q;
    return q < s->given && k < s->k ? k : -1;
}

/* Fixed-point numbers of those columns as one panel: int16 [group][q][lane]; in `words` which are not zero. */
static void mpg_group_pack_b_plain(const mpg_group_task *t, const mpg_group_source *s, int64_t first, int count, int64_t begin,
                                   int64_t end, const mpg_group_panel *panel)
{
    const int64_t outer = s->outer;
    int16_t *values = panel->values, *words = panel->words;
    for (int64_t g = begin; g < end; g++, words += MPG_GROUP_WORDS) {
        uint16_t filled[MPG_GROUP_LANES] = {0};
        for (int q = 0; q < t->group; q++, values += MPG_GROUP_LANES) {
            const int64_t k = mpg_group_position(s, g, q);
            const uint8_t *source = s->data + first * outer + (k < 0 ? 0 : k) * s->inner;
            for (int j = 0; j < MPG_GROUP_LANES; j++) {
                values[j] = k < 0 || j >= count ? 0 : s->values[source[j * outer]];
                filled[j] = (uint16_t)(filled[j] | (values[j] != 0) << q);
            }
        }
        memcpy(words + MPG_GROUP_LANES, filled, sizeof(filled));
    }
}

/* Which numbers of group g of a row of A are not zero, twice over. */
static uint32_t mpg_group_filled(const mpg_group_task *t, const mpg_group_source *s, int64_t row, int64_t g)
{
    uint32_t filled = 0;
    for (int q = 0; q < t->group; q++) {
        const int64_t k = mpg_group_position(s, g, q);
        filled |= (uint32_t)(k >= 0 && s->values[s->data[row * s->outer + k * s->inner]] != 0) << q;
    }
    return 0x00010001u * filled;
}

/* The same of a row of A. */
static void mpg_group_pack_a_plain(const mpg_group_task *t, const mpg_group_source *s, int64_t row, int64_t begin, int64_t end,
                                   int16_t *values, uint32_t *words)
{
    for (int64_t g = begin; g < end; g++) {
        for (int q = 0; q < t->group; q++) {
            const int64_t k = mpg_group_position(s, g, q);
            *values++ = k < 0 ? 0 : s->values[s->data[row * s->outer + k * s->inner]];
        }
        words[2 * (g - begin) + 1] = mpg_group_filled(t, s, row, g);
    }
}

/* ---- plain C ------------------------------------------------------------------------------------------------------- */
/* x where `condition` (0 or 1), else 0. Conditions come from sign bits: compilers turn comparisons into jumps, or have no vectors
 * for them. */
MPG_INLINE double mpg_group_where(uint64_t condition, double x)
{
    return mpg_as_double(mpg_as_bits64(x) & (UINT64_C(0) - condition));
}

MPG_INLINE double mpg_group_exponent_of(double x) { return mpg_as_double(mpg_as_bits64(x) & UINT64_C(0x7FF0000000000000)); }

MPG_INLINE double mpg_group_larger(double x, double y) { return x > y ? x : y; }

/* Toward zero to an integer; |x| below 2^51. */
MPG_INLINE double mpg_group_whole(double x)
{
    const uint64_t sign = mpg_as_bits64(x) & UINT64_C(0x8000000000000000);
    const double magnitude = mpg_as_double(mpg_as_bits64(x) ^ sign);
    const double nearest = (magnitude + 0x1p52) - 0x1p52;
    const double below = nearest - mpg_group_where(mpg_as_bits64(magnitude - nearest) >> 63, 1.0);
    return mpg_as_double(mpg_as_bits64(below) | sign);
}

MPG_INLINE double mpg_group_inverse(double power) { return mpg_as_double((UINT64_C(2046) << 52) - mpg_as_bits64(power)); }

/* Toward zero to a float32 number (infinity left to the caller). */
MPG_INLINE double mpg_group_to_fp32(double x)
{
    const double last = mpg_group_larger(mpg_group_exponent_of(x) * 0x1p-23, 0x1p-149);
    return mpg_group_whole(x * mpg_group_inverse(last)) * last;
}

/* Adds `count` products, 2 or 8, to each lane. Written out, because compilers would rather vectorise along q. */
MPG_INLINE void mpg_group_products(int count, const int16_t *MPG_RESTRICT a, const int16_t *MPG_RESTRICT b,
                                   int16_t *MPG_RESTRICT sum)
{
    const int n = MPG_GROUP_LANES;
    for (int j = 0; j < MPG_GROUP_LANES; j++)
        if (count == 8)
            sum[j] = (int16_t)(sum[j] + a[0] * b[j] + a[1] * b[n + j] + a[2] * b[2 * n + j] + a[3] * b[3 * n + j] +
                               a[4] * b[4 * n + j] + a[5] * b[5 * n + j] + a[6] * b[6 * n + j] + a[7] * b[7 * n + j]);
        else
            sum[j] = (int16_t)(sum[j] + a[0] * b[j] + a[1] * b[n + j]);
}

MPG_INLINE void mpg_group_sums(int group, const int16_t *a, const int16_t *b, int16_t *sum)
{
    int q = 0;
    memset(sum, 0, MPG_GROUP_LANES * sizeof(*sum));
    for (; q + 8 <= group; q += 8)
        mpg_group_products(8, a + q, b + q * MPG_GROUP_LANES, sum);
    for (; q < group; q += 2)
        mpg_group_products(2, a + q, b + q * MPG_GROUP_LANES, sum);
}

/* One operation: c, float32 values in double, becomes the rounded sum. */
MPG_INLINE void mpg_group_step(const mpg_group_task *t, const mpg_group_operands *p, double *MPG_RESTRICT c)
{
    const int16_t *MPG_RESTRICT a = p->a, *MPG_RESTRICT b = p->b, *MPG_RESTRICT eb = p->eb;
    const double *MPG_RESTRICT sa = p->sa, *MPG_RESTRICT sb = p->sb;
    const uint32_t *ea = p->ea;
    int16_t sums[MPG_GROUPS_MAX][MPG_GROUP_LANES], words[MPG_GROUP_LANES];
    double unit[MPG_GROUP_LANES], scale[MPG_GROUP_LANES], total[MPG_GROUP_LANES];
    const int group = t->group, groups = t->groups;
    const double to_unit = mpg_group_power(-t->fraction_bits);
    const double zero_sign = t->positive_zero ? 0.0 : -0.0;
    for (int j = 0; j < MPG_GROUP_LANES; j++)
        words[j] = (int16_t)(t->floor + MPG_GROUP_WORD_BIAS);
    for (int g = 0; g < groups; g++) {
        const int16_t x = (int16_t)(uint16_t)ea[2 * g], filled = (int16_t)(uint16_t)ea[2 * g + 1];
        const int16_t *MPG_RESTRICT y = eb + g * MPG_GROUP_WORDS;
        mpg_group_sums(group, a + g * group, b + g * group * MPG_GROUP_LANES, sums[g]);
        for (int j = 0; j < MPG_GROUP_LANES; j++) {
            const int32_t common = filled & y[MPG_GROUP_LANES + j];
            const int16_t takes_part = (int16_t)((common | -common) >> 31); /* a mask of ones */
            const int16_t taken = (int16_t)((x + y[j]) & takes_part);
            words[j] = words[j] > taken ? words[j] : taken;
        }
    }
    for (int j = 0; j < MPG_GROUP_LANES; j++) {
        const double top = mpg_as_double((uint64_t)words[j] << 52), own = mpg_group_exponent_of(c[j]);
        const uint64_t nonzero = (UINT64_C(0) - mpg_as_bits64(own)) >> 63;
        const double least = mpg_group_where(nonzero, 0x1p-126);
        unit[j] = mpg_group_larger(mpg_group_larger(own, least), top) * to_unit;
        scale[j] = mpg_group_inverse(unit[j]);
        total[j] = mpg_group_whole(c[j] * scale[j]) + 0.0; /* a negative c that is cut to nothing leaves no sign */
    }
    for (int g = 0; g < groups; g++) {
        const double *MPG_RESTRICT y = sb + g * MPG_GROUP_LANES, x = sa[g];
        for (int j = 0; j < MPG_GROUP_LANES; j++)
            total[j] += mpg_group_whole((double)sums[g][j] * (x * y[j] * scale[j]));
    }
    for (int j = 0; j < MPG_GROUP_LANES; j++)
        c[j] = mpg_group_to_fp32(total[j] * unit[j]) + zero_sign;
}

/* One row of a tile over several operations. */
static void mpg_group_row_baseline(const mpg_group_task *t, const mpg_group_operands *operands, double *c, int64_t steps,
                                   uint8_t *overflow)
{
    mpg_group_operands p = *operands;
    for (int64_t s = 0; s < steps; s++) {
        mpg_group_step(t, &p, c);
        mpg_mark_beyond(c, MPG_GROUP_LANES, 0x1p128, overflow);
        p = mpg_group_from(MPG_ISA_BASELINE, &p, 0, t->groups, t->group);
    }
}

#endif
