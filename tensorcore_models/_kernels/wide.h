/* Fused algorithms for operands of any exponent in 64-bit lanes: bf16, tf32, fp32, block-scaled formats, long dot products.
 *
 *  - A product of two operands of at most 24 bits, block scales included, is exact in double.
 *  - Alignment exponents are 16-bit words: the operands' exponents (with scales) add up, one maximum over the operation.
 *  - Plain C scales a product to the unit 2^(e_max - F) and truncates it: below 2^(F + 2), exact. AVX-512 (wide_avx512.h) adds
 *    products into 1.5 * 2^52 units with a fused multiply-add that rounds toward zero.
 *  - Sums stay below 2^51 units, so that all further steps are exact in double and rounded once.
 * Fused dot-add: xie-mma-sim, section IV-C; round-down-add: sections IV-F and IV-H.
 */
#ifndef MPG_WIDE_H
#define MPG_WIDE_H

#include "lanes.h"
#include "narrow.h"

#define MPG_WIDE 32 /* lanes of a panel */
#define MPG_WORD_BIAS 1023
#define MPG_WIDE_LOWEST (-900) /* below every product; the inverse of its unit is still a number */

typedef struct {
    int terms;         /* products of one operation as packed: 4, 8, 16 or 32 for each group */
    int fraction_bits; /* F of the products */
    int floor;         /* alignment exponent that is never undercut: -126, or the rule exponent_floor */
    int output;        /* MPG_OUT_FP32 truncates, MPG_OUT_FP16 rounds to nearest even */
    int raw_exponent;  /* fp16 addends below 2^raw_exponent align there; -1022 for none */
    int positive_zero; /* a negative sum that rounds to zero gives +0 */
    int round_down;    /* FDRDA: 1, GFDRDA: 2 groups; 0: FDA */
    int dot_bits, c_bits; /* FDRDA: fraction bits of the dot product and of c at their alignment */
    int c_cutoff;      /* FDRDA: c further below the largest exponent than this is dropped; 4000 for never */
    int overflow;      /* FDRDA: products at or beyond 2 to this power go to the generic kernel; 4000 for none */
} mpg_wide_task;

MPG_INLINE double mpg_power(int exponent) { return mpg_as_double((uint64_t)(exponent + 1023) << 52); }

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* Value with its block scale, and alignment exponent with that of the scale. */
MPG_INLINE double mpg_wide_value(uint32_t code, int32_t scale, const mpg_operand *f, int32_t *exponent, int32_t *special)
{
    const mpg_parts x = mpg_take_apart(code, f);
    const int32_t nonzero = mpg_if_negative(-x.significand);
    const int32_t raw = x.exponent + f->fraction_bits;
    const double magnitude = (double)x.significand * mpg_power(x.exponent + scale);
    *exponent = ((raw & nonzero) | (f->zero_exponent & ~nonzero)) + scale;
    *special |= x.special;
    return mpg_as_double(mpg_as_bits64(magnitude) | (uint64_t)x.negative << 63);
}

/* Exponent of the block scale of lane or row `outer` at position k, 0 without scales. */
MPG_INLINE int32_t mpg_scale(const mpg_source *s, int64_t outer, int64_t k, int32_t *special)
{
    if (!s->scales)
        return 0;
    const int32_t byte = s->scales[outer * s->scale_outer + k / s->block_size * s->scale_inner];
    *special |= byte == 255;
    return byte == 255 ? 0 : byte - 127;
}

#define MPG_PACK_WIDE(TYPE, OUTER)                                                                    \
    {                                                                                                 \
        const TYPE *MPG_RESTRICT source = (const TYPE *)s->data + base;                               \
        for (int j = 0; j < count; j++) {                                                             \
            int32_t exponent, flag = 0;                                                               \
            value[j] = mpg_wide_value(source[j * (OUTER)], scales[j], &f, &exponent, &flag);          \
            x[j] = (int16_t)(exponent + MPG_WORD_BIAS);                                               \
            flags[j] |= flag;                                                                         \
        }                                                                                             \
    }

/* Columns of B as one panel: [k][lane], or [k][sign][lane] of magnitudes where `split`. */
MPG_INLINE void mpg_wide_pack_b_body(const mpg_source *s, const mpg_operand *format, int64_t first, int count, int64_t begin,
                                     int64_t end, int split, double *values, int16_t *exponents, uint8_t *special)
{
    const mpg_operand f = *format;
    const int lanes = split ? 2 * MPG_WIDE : MPG_WIDE;
    const int64_t outer = s->outer;
    int32_t flags[MPG_WIDE] = {0}, scales[MPG_WIDE] = {0};
    double value[MPG_WIDE] = {0};
    for (int64_t k = begin; k < end; k++) {
        double *MPG_RESTRICT v = values + (k - begin) * lanes;
        int16_t *MPG_RESTRICT x = exponents + (k - begin) * MPG_WIDE;
        const int64_t position = s->order[k], base = first * outer + position * s->inner;
        for (int j = position < 0 ? 0 : count; j < MPG_WIDE; j++) {
            value[j] = 0;
            x[j] = MPG_SKIP;
        }
        if (position >= 0) {
            if (s->scales)
                for (int j = 0; j < count; j++)
                    scales[j] = mpg_scale(s, first + j, position, &flags[j]);
            if (f.size == 2 && outer == 1)
                MPG_PACK_WIDE(uint16_t, 1)
            else if (f.size == 1 && outer == 1)
                MPG_PACK_WIDE(uint8_t, 1)
            else if (f.size == 4 && outer == 1)
                MPG_PACK_WIDE(uint32_t, 1)
            else if (f.size == 2)
                MPG_PACK_WIDE(uint16_t, outer)
            else if (f.size == 1)
                MPG_PACK_WIDE(uint8_t, outer)
            else
                MPG_PACK_WIDE(uint32_t, outer)
        }
        if (split)
            for (int j = 0; j < MPG_WIDE; j++) {
                v[j] = value[j] > 0 ? value[j] : 0;
                v[MPG_WIDE + j] = value[j] < 0 ? -value[j] : 0;
            }
        else
            memcpy(v, value, sizeof(value));
    }
    for (int j = 0; j < count; j++)
        special[first + j] |= (uint8_t)(flags[j] != 0);
}

#define MPG_PACK_WIDE_ROW(TYPE)                                                                           \
    {                                                                                                     \
        const TYPE *MPG_RESTRICT source = (const TYPE *)s->data + row * s->outer;                         \
        for (int64_t k = begin; k < end; k++) {                                                           \
            int32_t exponent, flag = 0;                                                                   \
            const double value = mpg_wide_value(source[k], 0, &f, &exponent, &flag);                      \
            const uint64_t negative = mpg_as_bits64(value) >> 63 & (uint64_t)split;                       \
            values[k - begin] = mpg_as_double(mpg_as_bits64(value) ^ negative << 63);                     \
            offsets[k - begin] = (int64_t)negative * MPG_WIDE;                                            \
            exponents[k - begin] = 0x00010001u * ((uint32_t)exponent & 0xFFFFu);                          \
            flags |= flag;                                                                                \
        }                                                                                                 \
    }

/* A row of A: values, or magnitudes and the offsets of the panel half with the same sign where `split`; exponents twice over. */
MPG_INLINE void mpg_wide_pack_a_body(const mpg_source *s, const mpg_operand *format, int64_t row, int64_t begin, int64_t end,
                                     int plain_order, int split, double *MPG_RESTRICT values, int64_t *MPG_RESTRICT offsets,
                                     uint32_t *MPG_RESTRICT exponents, uint8_t *special)
{
    const mpg_operand f = *format;
    int32_t flags = 0;
    if (plain_order && s->inner == 1 && !s->scales) {
        if (f.size == 2)
            MPG_PACK_WIDE_ROW(uint16_t)
        else if (f.size == 1)
            MPG_PACK_WIDE_ROW(uint8_t)
        else
            MPG_PACK_WIDE_ROW(uint32_t)
    } else {
        for (int64_t k = begin; k < end; k++) {
            const int64_t position = s->order[k];
            int32_t exponent = MPG_SKIP;
            double value = 0;
            if (position >= 0) {
                const uint32_t code = mpg_code(s->data, f.size, row * s->outer + position * s->inner);
                value = mpg_wide_value(code, mpg_scale(s, row, position, &flags), &f, &exponent, &flags);
            }
            const int negative = split && value < 0;
            values[k - begin] = negative ? -value : value;
            offsets[k - begin] = negative ? MPG_WIDE : 0;
            exponents[k - begin] = 0x00010001u * (uint16_t)(int16_t)exponent;
        }
    }
    special[row] |= (uint8_t)(flags != 0);
}

#define MPG_WIDE_PACK(SUFFIX, TARGET)                                                                                     \
    TARGET static void mpg_wide_pack_b_##SUFFIX(const mpg_source *s, const mpg_operand *f, int64_t first, int count,      \
                                                int64_t begin, int64_t end, int split, double *values,                    \
                                                int16_t *exponents, uint8_t *special)                                     \
    {                                                                                                                     \
        mpg_wide_pack_b_body(s, f, first, count, begin, end, split, values, exponents, special);                          \
    }                                                                                                                     \
    TARGET static void mpg_wide_pack_a_##SUFFIX(const mpg_source *s, const mpg_operand *f, int64_t row, int64_t begin,    \
                                                int64_t end, int plain_order, int split, double *values, int64_t *offsets, \
                                                uint32_t *exponents, uint8_t *special)                                    \
    {                                                                                                                     \
        mpg_wide_pack_a_body(s, f, row, begin, end, plain_order, split, values, offsets, exponents, special);             \
    }

MPG_WIDE_PACK(baseline, )
MPG_WIDE_PACK(avx2, MPG_TARGET_AVX2)
MPG_WIDE_PACK(avx512, MPG_TARGET_AVX512)

static void mpg_wide_pack_b(const mpg_source *s, const mpg_operand *f, int64_t first, int count, int64_t begin, int64_t end,
                            double *values, int16_t *exponents, uint8_t *special, int level)
{
    if (level == MPG_ISA_AVX512)
        mpg_wide_pack_b_avx512(s, f, first, count, begin, end, 1, values, exponents, special);
    else if (level == MPG_ISA_AVX2)
        mpg_wide_pack_b_avx2(s, f, first, count, begin, end, 0, values, exponents, special);
    else
        mpg_wide_pack_b_baseline(s, f, first, count, begin, end, 0, values, exponents, special);
}

static void mpg_wide_pack_a(const mpg_source *s, const mpg_operand *f, int64_t row, int64_t begin, int64_t end, int plain_order,
                            double *values, int64_t *offsets, uint32_t *exponents, uint8_t *special, int level)
{
    if (level == MPG_ISA_AVX512)
        mpg_wide_pack_a_avx512(s, f, row, begin, end, plain_order, 1, values, offsets, exponents, special);
    else if (level == MPG_ISA_AVX2)
        mpg_wide_pack_a_avx2(s, f, row, begin, end, plain_order, 0, values, offsets, exponents, special);
    else
        mpg_wide_pack_a_baseline(s, f, row, begin, end, plain_order, 0, values, offsets, exponents, special);
}

/* ---- plain C: one row ---------------------------------------------------------------------------------------------- */
/* Largest multiple of `unit` not above x; x below 2^51 units. */
MPG_INLINE double mpg_floored(double x, double unit)
{
    const double magic = unit * 0x1.8p52;
    const double r = (x + magic) - magic;
    return r - (r > x ? unit : 0.0);
}

/* Largest power of two of the lanes' products over `terms`, not below the floor. */
MPG_INLINE void mpg_wide_tops(int terms, int floor, const uint32_t *MPG_RESTRICT ea, const int16_t *MPG_RESTRICT eb,
                              double *MPG_RESTRICT top)
{
    int16_t words[MPG_WIDE];
    for (int j = 0; j < MPG_WIDE; j++)
        words[j] = (int16_t)(floor + MPG_WORD_BIAS);
    for (int q = 0; q < terms; q++) {
        const int16_t x = (int16_t)(uint16_t)ea[q];
        for (int j = 0; j < MPG_WIDE; j++) {
            const int16_t e = (int16_t)(x + eb[q * MPG_WIDE + j]);
            words[j] = words[j] > e ? words[j] : e;
        }
    }
    for (int j = 0; j < MPG_WIDE; j++)
        top[j] = mpg_as_double((uint64_t)words[j] << 52);
}

/* Sum of products, each truncated to its lane's unit. The units are powers of two and `scale` their inverses. */
MPG_INLINE void mpg_wide_sums(int terms, const double *MPG_RESTRICT a, const double *MPG_RESTRICT b, int fraction_bits,
                              const double *MPG_RESTRICT top, double *MPG_RESTRICT sum)
{
    const uint64_t to_scale = (uint64_t)(2046 + fraction_bits) << 52;
    for (int j = 0; j < MPG_WIDE; j++) {
        const double scale = mpg_as_double(to_scale - mpg_as_bits64(top[j]));
        double total = 0;
        for (int q = 0; q < terms; q++)
            total += (double)(int32_t)(a[q] * b[q * MPG_WIDE + j] * scale);
        sum[j] = total;
    }
}

MPG_INLINE double mpg_exponent_of(double x) { return mpg_as_double(mpg_as_bits64(x) & UINT64_C(0x7FF0000000000000)); }

/* x toward zero to float32 (infinity left to the caller). */
MPG_INLINE double mpg_truncated_fp32(double x)
{
    const double magnitude = x < 0 ? -x : x;
    const double small = magnitude < 0x1p-126 ? x : 0;
    const double subnormal = (double)(int32_t)(small * 0x1p149) * 0x1p-149;
    const double normal = mpg_as_double(mpg_as_bits64(x) & ~UINT64_C(0x1FFFFFFF));
    return magnitude < 0x1p-126 ? subnormal : normal;
}

MPG_INLINE double mpg_nearest_fp16_of_double(double x)
{
    const double power = mpg_exponent_of(x);
    const double magic = (power > 0x1p-14 ? power : 0x1p-14) * 0x1.8p42;
    return (x + magic) - magic;
}

/* One fused dot-add; c are float32 or fp16 values. */
MPG_INLINE void mpg_wide_fda(int terms, int output, const mpg_wide_task *t, const double *a, const uint32_t *ea, const double *b,
                             const int16_t *eb, double *MPG_RESTRICT c)
{
    double top[MPG_WIDE], sum[MPG_WIDE];
    const double least = mpg_power(t->raw_exponent);
    const double to_unit = mpg_power(-t->fraction_bits);
    const uint64_t to_scale = (uint64_t)(2046 + t->fraction_bits) << 52;
    mpg_wide_tops(terms, t->floor, ea, eb, top);
    for (int j = 0; j < MPG_WIDE; j++) {
        const double own = mpg_exponent_of(c[j]);
        const double raw = own > 0 && own < least ? least : own;
        top[j] = raw > top[j] ? raw : top[j];
    }
    mpg_wide_sums(terms, a, b, t->fraction_bits, top, sum);
    for (int j = 0; j < MPG_WIDE; j++) {
        const double scale = mpg_as_double(to_scale - mpg_as_bits64(top[j]));
        const double total = (sum[j] + (double)(int32_t)(c[j] * scale)) * (top[j] * to_unit);
        if (output == MPG_OUT_FP16)
            c[j] = mpg_nearest_fp16_of_double(total);
        else
            c[j] = mpg_truncated_fp32(total) + (t->positive_zero ? 0.0 : -0.0);
    }
}

/* One fused dot-round-down-add over 1 or 2 groups of products. Lanes whose products overflow get an infinity in c. */
MPG_INLINE void mpg_wide_round_down(int terms, int groups, const mpg_wide_task *t, const double *a, const uint32_t *ea,
                                    const double *b, const int16_t *eb, double *MPG_RESTRICT c)
{
    double top[2][MPG_WIDE], sum[2][MPG_WIDE];
    const int each = terms / groups;
    const double to_unit = mpg_power(-t->fraction_bits), limit = mpg_power(t->overflow < 1000 ? t->overflow - 1 : 1023);
    const double dot_unit = mpg_power(-t->dot_bits), c_unit = mpg_power(-t->c_bits);
    const double cutoff = t->c_cutoff < 1000 ? mpg_power(-t->c_cutoff) : 0;
    for (int g = 0; g < groups; g++) {
        mpg_wide_tops(each, MPG_WIDE_LOWEST, ea + g * each, eb + g * each * MPG_WIDE, top[g]);
        mpg_wide_sums(each, a + g * each, b + g * each * MPG_WIDE, t->fraction_bits, top[g], sum[g]);
    }
    for (int j = 0; j < MPG_WIDE; j++) {
        double largest = top[0][j], dot = sum[0][j] * (top[0][j] * to_unit);
        if (groups == 2) {
            const double other = top[1][j];
            largest = largest > other ? largest : other;
            dot = mpg_floored(dot, largest * to_unit) + mpg_floored(sum[1][j] * (other * to_unit), largest * to_unit);
        }
        const double own = mpg_exponent_of(c[j]), raw = own > 0x1p-126 ? own : 0x1p-126;
        const double all = largest > raw ? largest : raw;
        const double addend = mpg_floored(c[j], all * c_unit);
        const double total = mpg_floored(dot, all * dot_unit) + (raw < all * cutoff ? 0.0 : addend);
        const double rounded = (double)(float)total + (t->positive_zero ? 0.0 : -0.0);
        c[j] = largest >= limit ? 0x1p1000 : rounded;
    }
}

/* Mark and zero lanes that overflowed. */
MPG_INLINE void mpg_wide_mark(double *MPG_RESTRICT c, double limit, uint8_t *MPG_RESTRICT overflow)
{
    int any = 0;
    for (int j = 0; j < MPG_WIDE; j++)
        any |= (c[j] < 0 ? -c[j] : c[j]) >= limit;
    if (any)
        for (int j = 0; j < MPG_WIDE; j++)
            if (c[j] >= limit || c[j] <= -limit) {
                overflow[j] = 1;
                c[j] = 0;
            }
}

MPG_INLINE void mpg_wide_row_body(int terms, const mpg_wide_task *t, const double *a, const uint32_t *ea, const double *b,
                                  const int16_t *eb, double *c, int64_t steps, uint8_t *overflow)
{
    const double limit = t->output == MPG_OUT_FP16 ? 0x1p16 : 0x1p128;
    const int taken = t->round_down == 2 ? 2 * terms : terms;
    for (int64_t s = 0; s < steps; s++) {
        if (t->round_down == 2)
            mpg_wide_round_down(2 * terms, 2, t, a, ea, b, eb, c);
        else if (t->round_down == 1)
            mpg_wide_round_down(terms, 1, t, a, ea, b, eb, c);
        else if (t->output == MPG_OUT_FP16)
            mpg_wide_fda(terms, MPG_OUT_FP16, t, a, ea, b, eb, c);
        else
            mpg_wide_fda(terms, MPG_OUT_FP32, t, a, ea, b, eb, c);
        mpg_wide_mark(c, limit, overflow);
        a += taken;
        ea += taken;
        b += taken * MPG_WIDE;
        eb += taken * MPG_WIDE;
    }
}

/* `terms` is that of one group. */
#define MPG_WIDE_ROW(SUFFIX, TARGET)                                                                                       \
    TARGET static void mpg_wide_row_##SUFFIX(int terms, const mpg_wide_task *t, const double *a, const uint32_t *ea,       \
                                             const double *b, const int16_t *eb, double *c, int64_t steps,                 \
                                             uint8_t *overflow)                                                            \
    {                                                                                                                      \
        if (terms == 4)                                                                                                    \
            mpg_wide_row_body(4, t, a, ea, b, eb, c, steps, overflow);                                                     \
        else if (terms == 8)                                                                                               \
            mpg_wide_row_body(8, t, a, ea, b, eb, c, steps, overflow);                                                     \
        else if (terms == 16)                                                                                              \
            mpg_wide_row_body(16, t, a, ea, b, eb, c, steps, overflow);                                                    \
        else                                                                                                               \
            mpg_wide_row_body(32, t, a, ea, b, eb, c, steps, overflow);                                                    \
    }

MPG_WIDE_ROW(baseline, )
MPG_WIDE_ROW(avx2, MPG_TARGET_AVX2)

#endif
