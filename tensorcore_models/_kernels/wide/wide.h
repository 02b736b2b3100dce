/* Fused algorithms for operands of any exponent in 64-bit lanes: bf16, tf32, fp32, block-scaled formats, long dot products.
 *
 *  - A product of two operands of at most 24 bits, block scales included, is exact in double.
 *  - Alignment exponents are 16-bit words: the operands' exponents (with scales) add up, one maximum over the operation.
 *  - With a unit of 2^(e_max - F), adding a product to 1.5 * 2^52 units and rounding down adds the product rounded down to its
 *    unit. Truncation differs for negative products that are not multiples of the unit, by one unit each. The lowest set bit of
 *    a product is the product of the lowest set bits: 16-bit words count those products, and the count is added at the end.
 *  - Sums stay below 2^51 units, so that all further steps are exact in double and rounded once.
 * Fused dot-add: xie-mma-sim, section IV-C; round-down-add: sections IV-F and IV-H. wide_rows.h and wide_avx512.h have the loops.
 */
#ifndef MPG_WIDE_H
#define MPG_WIDE_H

#include "block_sizes.h"
#include "lanes.h"

enum { MPG_WIDE = 32 }; /* lanes of a panel */

/* Addition of a late c: none; exactly to the aligned sum, with the total rounded to nearest even and subnormal results flushed; or to the
 * dot product rounded to odd, rounded to odd again, with products that are rounded to odd at their alignment. */
enum { MPG_LATE_NONE, MPG_LATE_EXACT, MPG_LATE_ODD };

/* Whether products are truncated, so that the lanes count the negative ones that are; else any product that is cut counts. */
#define MPG_WIDE_TRUNCATES(t) ((t)->late != MPG_LATE_ODD && !(t)->mark_cut)

/* Words of 16 bits: alignment exponents of a product plus this bias, times 16, so that a shift puts them in the exponent field
 * of a double; exponents of lowest bits, with the sign of the product in the highest bit. */
#define MPG_WORD_BIAS 1023
#define MPG_WORD_BIAS_A 400
#define MPG_WORD_BIAS_B (MPG_WORD_BIAS - MPG_WORD_BIAS_A)
#define MPG_NO_WORD 0xC000      /* -16384: the alignment exponent of zeros, which take no part */
#define MPG_LOWEST_BIAS 1024    /* for each operand */
#define MPG_LOWEST_OF_ZERO 4096 /* for zero, which is a multiple of every unit: above the exponent of any lowest bit */
#define MPG_WIDE_LOWEST (-900)  /* below every product; the inverse of its unit is still a number */

typedef struct {
    int terms;            /* products of one operation as packed: 4, 8, 16 or 32 for each group */
    int fraction_bits;    /* F of the products */
    int floor;            /* lowest alignment exponent, MPG_WIDE_LOWEST or more */
    int output;           /* MPG_OUT_FP32 truncates, MPG_OUT_FP16 rounds to nearest even */
    int raw_exponent;     /* addends below 2^raw_exponent other than 0 align there; -1022 for none */
    int positive_zero;    /* a negative sum that rounds to zero gives +0 */
    int round_down;       /* FDRDA: 1, GFDRDA: 2 groups; 0: FDA */
    int dot_bits, c_bits; /* FDRDA: fraction bits of the dot product and of c at their alignment */
    int sum_bits;         /* FDRDA: to which the normalised sum is rounded down; 52 for all */
    int c_cutoff;         /* GFDRDA: c further below the largest exponent than this is dropped */
    int overflow;         /* FDRDA: products at or beyond 2 to this power go to the generic kernel; 4000 for none */
    int late;             /* MPG_LATE_...: c is added after the products */
    int mark_cut; /* exact late c: lanes with a product that is no multiple of twice its unit go to the generic kernel */
    int nearest;  /* FDA: addends are rounded to nearest even at their alignment, not truncated (wide_nearest.h) */
    int promote;  /* > 0: after that many positions of k the sums are added to d outside, and start from zero */
} mpg_wide_task;

/* Packed operands from some k on; rows of A are `stride` apart. */
typedef struct {
    const double *a;
    const uint32_t *ea, *la;
    int64_t stride;
    const double *b;
    const int16_t *eb, *lb;
} mpg_wide_operands;

/* The operands from row `row` and `k` positions further on. */
MPG_INLINE mpg_wide_operands mpg_wide_from(const mpg_wide_operands *p, int64_t row, int64_t k)
{
    const int64_t place = row * p->stride + k;
    const mpg_wide_operands next = {p->a + place,        p->ea + place,        p->la + place,       p->stride,
                                    p->b + k * MPG_WIDE, p->eb + k * MPG_WIDE, p->lb + k * MPG_WIDE};
    return next;
}

/* Where a row of A and a panel of B are packed. */
typedef struct {
    double *values;
    uint32_t *exponents, *lowest;
} mpg_wide_row;

typedef struct {
    double *values;
    int16_t *exponents, *lowest;
} mpg_wide_panel;

/* From the word of 2^e to the word of 1.5 * 2^52 units of 2^(e - F): the rest of that double is zero. */
MPG_INLINE int32_t mpg_word_to_magic(int fraction_bits) { return ((52 - fraction_bits) << 4) + 8; }

MPG_INLINE double mpg_power(int exponent) { return mpg_as_double((uint64_t)(exponent + 1023) << 52); }

/* ---- packing ------------------------------------------------------------------------------------------------------- */
typedef struct {
    double value;
    int32_t exponent, lowest; /* alignment exponent; word of the lowest set bit and, if `signs` (1), the sign */
    int32_t nonzero;          /* a mask of ones, or 0 */
} mpg_wide_number;

/* An operand with its block scale. Free of branches, so that loops over it vectorise. */
MPG_INLINE mpg_wide_number mpg_wide_decode(uint32_t code, int32_t scale, int signs, const mpg_operand *f, int32_t *special)
{
    const mpg_parts x = mpg_take_apart(code, f);
    const int32_t nonzero = mpg_if_negative(-x.significand);
    const int32_t power = x.exponent + scale;
    const int32_t leading = (int32_t)(mpg_as_bits((float)x.significand) >> 23) - 127 + x.exponent;
    const int32_t trailing = (int32_t)(mpg_as_bits((float)(x.significand & -x.significand)) >> 23) - 127;
    const double magnitude = (double)x.significand * mpg_power(power);
    mpg_wide_number number;
    number.value = mpg_as_double(mpg_as_bits64(magnitude) | (uint64_t)x.negative << 63);
    number.exponent = (leading > f->emin ? leading : f->emin) + scale;
    number.nonzero = nonzero;
    number.lowest = (((power + trailing) & nonzero) | (MPG_LOWEST_OF_ZERO & ~nonzero)) + MPG_LOWEST_BIAS;
    number.lowest |= (x.negative & signs) << 15;
    *special |= x.special;
    return number;
}

/* The word of a number's alignment exponent; the word of a zero stays below all others whatever is added to it. */
MPG_INLINE int32_t mpg_exponent_word(const mpg_wide_number *number, int bias)
{
    const int32_t x = number->exponent + bias;
    return ((x & ~mpg_if_negative(x)) << 4 & number->nonzero) | (MPG_NO_WORD & ~number->nonzero);
}

/* Exponent of the block scale of lane or row `outer` in block `block`. */
MPG_INLINE int32_t mpg_scale(const mpg_source *s, int64_t outer, int64_t block, int32_t *special)
{
    const int32_t byte = s->scales[outer * s->scale_outer + block * s->scale_inner];
    *special |= byte == 255;
    return byte == 255 ? 0 : byte - 127;
}

/* Columns of B as one panel: values [k][lane]; words [k][8][4], lane 8 g + i at [i][g], so that shifts of 64-bit lanes take
 * them apart. */
MPG_INLINE void mpg_wide_pack_b_body(int level, const mpg_source *s, const mpg_operand *format, int64_t first, int count,
                                     int64_t begin, int64_t end, int signs, const mpg_wide_panel *panel, uint8_t *special)
{
    const mpg_operand f = *format;
    int32_t flags[MPG_WIDE] = {0}, scales[MPG_WIDE] = {0};
    uint32_t codes[MPG_WIDE] = {0};
    int64_t block = -1;
    for (int64_t k = begin; k < end; k++) {
        double *MPG_RESTRICT v = panel->values + (k - begin) * MPG_WIDE;
        int32_t x[MPG_WIDE], l[MPG_WIDE];
        uint64_t *MPG_RESTRICT exponents = (uint64_t *)(panel->exponents + (k - begin) * MPG_WIDE);
        uint64_t *MPG_RESTRICT lowest = (uint64_t *)(panel->lowest + (k - begin) * MPG_WIDE);
        const int64_t position = s->order[k];
        mpg_fetch_position(s, f.size, first, count, k, end);
        if (position >= 0) {
            mpg_gather(s->data, f.size, first * s->outer + position * s->inner, s->outer, count, codes);
            if (s->scales && position / s->block_size != block) {
                block = position / s->block_size;
                for (int j = 0; j < count; j++)
                    scales[j] = mpg_scale(s, first + j, block, &flags[j]);
            }
        } else {
            memset(codes, 0, sizeof(codes));
        }
        for (int j = 0; j < MPG_WIDE; j++) {
            int32_t flag = 0;
            const mpg_wide_number number = mpg_wide_decode(codes[j], scales[j], signs, &f, &flag);
            v[j] = number.value;
            x[j] = mpg_exponent_word(&number, MPG_WORD_BIAS_B);
            l[j] = number.lowest;
            flags[j] |= flag;
        }
        for (int i = 0; i < MPG_WIDE / 4; i++) {
            exponents[i] = (uint64_t)x[i] | (uint64_t)x[8 + i] << 16 | (uint64_t)x[16 + i] << 32 | (uint64_t)x[24 + i] << 48;
            lowest[i] = (uint64_t)l[i] | (uint64_t)l[8 + i] << 16 | (uint64_t)l[16 + i] << 32 | (uint64_t)l[24 + i] << 48;
        }
    }
    for (int j = 0; j < count; j++)
        special[first + j] |= (uint8_t)(flags[j] != 0);
}

#define MPG_WIDE_CHUNK 64
/* A row of A: values, and words twice over. */
MPG_INLINE void mpg_wide_pack_a_body(int level, const mpg_source *s, const mpg_operand *format, int64_t row, int64_t begin,
                                     int64_t end, int plain_order, int signs, const mpg_wide_row *packed, uint8_t *special)
{
    double *MPG_RESTRICT values = packed->values;
    uint32_t *MPG_RESTRICT exponents = packed->exponents, *MPG_RESTRICT lowest = packed->lowest;
    const mpg_operand f = *format;
    int32_t flags = 0, scale = 0;
    for (int64_t k = begin; k < end; k += MPG_WIDE_CHUNK) {
        const int count = (int)(end - k < MPG_WIDE_CHUNK ? end - k : MPG_WIDE_CHUNK);
        uint32_t codes[MPG_WIDE_CHUNK];
        int32_t scales[MPG_WIDE_CHUNK] = {0};
        if (plain_order) {
            mpg_gather(s->data, f.size, row * s->outer + k * s->inner, s->inner, count, codes);
        } else {
            for (int i = 0; i < count; i++) {
                const int64_t position = s->order[k + i];
                codes[i] = position < 0 ? 0 : mpg_code(s->data, f.size, row * s->outer + position * s->inner);
            }
        }
        for (int i = 0; s->scales && i < count;) {
            const int64_t position = s->order[k + i];
            int64_t same = 1; /* positions of one scale: all of a block where they are in order */
            if (position >= 0) {
                const int64_t block = position / s->block_size;
                scale = mpg_scale(s, row, block, &flags);
                same = plain_order ? (block + 1) * s->block_size - position : 1;
            }
            for (const int end = (int)(same < count - i ? i + same : count); i < end; i++)
                scales[i] = scale;
        }
        for (int i = 0; i < count; i++) {
            const mpg_wide_number number = mpg_wide_decode(codes[i], scales[i], signs, &f, &flags);
            values[k - begin + i] = number.value;
            exponents[k - begin + i] = 0x00010001u * (uint32_t)mpg_exponent_word(&number, MPG_WORD_BIAS_A);
            lowest[k - begin + i] = 0x00010001u * (uint32_t)number.lowest;
        }
    }
    special[row] |= (uint8_t)(flags != 0);
}

MPG_VARIANTS(mpg_wide_pack_b, (s, f, first, count, begin, end, signs, panel, special), const mpg_source *s,
             const mpg_operand *f, int64_t first, int count, int64_t begin, int64_t end, int signs, const mpg_wide_panel *panel,
             uint8_t *special)
MPG_VARIANTS(mpg_wide_pack_a, (s, f, row, begin, end, plain_order, signs, packed, special), const mpg_source *s,
             const mpg_operand *f, int64_t row, int64_t begin, int64_t end, int plain_order, int signs,
             const mpg_wide_row *packed, uint8_t *special)

#endif
