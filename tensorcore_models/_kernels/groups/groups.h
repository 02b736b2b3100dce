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

#include <float.h>

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

/* One operand: what each of its bytes means. */
typedef struct {
    const mpg_source *at;
    int64_t k, given;               /* products; of one group before padding */
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
    return k >= s->k ? -1 : s->at->block_size == s->given ? g : k / s->at->block_size;
}

/* Scale of lane or row `outer` in a block; one beyond k takes no part. */
MPG_INLINE void mpg_group_scale(const mpg_group_source *s, int64_t outer, int64_t block, double *value, int *exponent)
{
    *value = 0;
    *exponent = MPG_GROUP_SKIP;
    if (block >= 0) {
        const uint8_t code = s->at->scales[outer * s->at->scale_outer + block * s->at->scale_inner];
        *value = s->scale_values[code];
        *exponent = s->scale_exponents[code];
    }
}

/* Any of the scales of lane or row `outer` is NaN. */
static int mpg_group_special(const mpg_group_source *s, int64_t outer)
{
    const int64_t blocks = (s->k + s->at->block_size - 1) / s->at->block_size;
    int special = 0;
    for (int64_t block = 0; block < blocks; block++)
        special |= s->scale_special[s->at->scales[outer * s->at->scale_outer + block * s->at->scale_inner]];
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

/* Number of lane or row `outer` there, `at` being s->at; 0 for padding. */
MPG_INLINE int8_t mpg_group_number(const mpg_group_source *s, const mpg_source *at, int64_t outer, int64_t k)
{
    return k < 0 ? 0 : s->values[((const uint8_t *)at->data)[outer * at->outer + k * at->inner]];
}

/* Fixed-point numbers of those columns as one panel: int16 [group][q][lane]; in `words` which are not zero. */
static void mpg_group_pack_b_plain(const mpg_group_task *t, const mpg_group_source *s, int64_t first, int count, int64_t begin,
                                   int64_t end, const mpg_group_panel *panel)
{
    const mpg_group_source own = *s, *const source = &own; /* nothing that is stored here can change it */
    const mpg_source at = *s->at;
    int16_t *values = panel->values, *words = panel->words;
    for (int64_t g = begin; g < end; g++, words += MPG_GROUP_WORDS) {
        uint16_t filled[MPG_GROUP_LANES] = {0};
        for (int q = 0; q < t->group; q++, values += MPG_GROUP_LANES) {
            const int64_t k = mpg_group_position(source, g, q);
            for (int j = 0; j < MPG_GROUP_LANES; j++) {
                values[j] = j >= count ? 0 : mpg_group_number(source, &at, first + j, k);
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
    for (int q = 0; q < t->group; q++)
        filled |= (uint32_t)(mpg_group_number(s, s->at, row, mpg_group_position(s, g, q)) != 0) << q;
    return 0x00010001u * filled;
}

/* The same of a row of A. */
static void mpg_group_pack_a_plain(const mpg_group_task *t, const mpg_group_source *s, int64_t row, int64_t begin, int64_t end,
                                   int16_t *values, uint32_t *words)
{
    for (int64_t g = begin; g < end; g++) {
        for (int q = 0; q < t->group; q++)
            *values++ = mpg_group_number(s, s->at, row, mpg_group_position(s, g, q));
        words[2 * (g - begin) + 1] = mpg_group_filled(t, s, row, g);
    }
}

#endif
