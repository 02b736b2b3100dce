/* Fused dot-add (xie-mma-sim, section IV-C) for operands of few exponents, in 32-bit lanes: fp16, fp8, fp6, fp4.
 *
 * All operand exponents lie within -16 to 15, significands have at most 11 bits, and N * 4 * 2^F stays within 2^31:
 *  - A product is exact in float32 (22 bits). With A scaled by 2^-33 it is a normal number or zero.
 *  - Exponents are bytes: a + 143 and 16 - b, saturating subtraction gives the float32 exponent field of the product's
 *    alignment exponent, and 0 for a product that is zero.
 *  - Scaled to the unit 2^(e_max - F) a product is below 2^27; conversion to int32 by truncation is the alignment; integer
 *    sums are exact.
 *  - Alignment exponents stay at 2^-68 or above. The caller replaces a smaller c by 0, which changes nothing once there is a
 *    nonzero product (then the unit is at least 2^-57), and has elements with such a c and the result 0 computed again.
 * Infinities and NaNs never come here: they are packed as zeros, and the caller computes those elements again.
 */
#ifndef MPG_NARROW_H
#define MPG_NARROW_H

#include "lanes.h"

#define MPG_PANEL 64           /* widest panel, in columns */
#define MPG_NARROW_PRESCALE 33 /* products below 2^32 stay below 1/2 when the scaling is cut off at 1 */
#define MPG_NARROW_FLOOR 59    /* float32 exponent field of 2^-68: with it F + 33 - e_max is at most 126 */
#define MPG_NO_BYTE_A 0        /* exponent bytes of what takes no part: their difference saturates to 0 */
#define MPG_NO_BYTE_B 255

typedef struct {
    int terms;         /* products of one fused operation as packed: 4, 8, 16 or 32 */
    int fraction_bits; /* F */
    int output;        /* MPG_OUT_FP32 truncates, MPG_OUT_FP16 rounds to nearest even */
    uint32_t keep;     /* result bits that survive (all but those beyond output_fraction_bits) */
    int wide_sum;      /* the sum of products and c may reach 2^31 */
    int chain;         /* > 0: c is added after every `chain` operations, which start from zero (InterleavedDotAdd) */
    int floor;         /* exponent field that alignment exponents have at least, MPG_NARROW_FLOOR or more */
    int raw_exponent;  /* fp16 output: exponent field of the smallest normal c (subnormal c align there), 0 for none */
} mpg_narrow_task;

/* Packed operands from some k on: rows of A, `stride` apart, and a panel of B. */
typedef struct {
    const float *a;
    const uint32_t *ea;
    int64_t stride;
    const float *b;
    const uint8_t *eb;
    int64_t other;         /* two products that share a vector: from a row of A of the first to that of the second */
    const uint64_t *quads; /* and for four rows their exponent bytes at each position: 2 r + h is row r of product h */
} mpg_narrow_operands;

/* Columns first to first + count - 1 of B, packed as a panel of `width` lanes. */
typedef struct {
    int64_t first;
    int count, width;
    float *values;
    uint8_t *exponents;
} mpg_narrow_panel;

/* The operands `steps` operations of `terms` products further on. */
MPG_INLINE mpg_narrow_operands mpg_narrow_after(const mpg_narrow_operands *p, int64_t steps, int terms, int width)
{
    mpg_narrow_operands next = *p;
    next.a += steps * terms;
    next.ea += steps * terms;
    next.b += steps * terms * width;
    next.eb += steps * terms * width;
    return next;
}

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* Value times 2^scale as float32 bits, its alignment exponent, and a mask of ones unless it is zero. Free of branches, so
 * that loops over it vectorise. */
MPG_INLINE uint32_t mpg_narrow_value(uint32_t code, const mpg_operand *f, int scale, int32_t *exponent, int32_t *nonzero,
                                     int32_t *special)
{
    const mpg_parts x = mpg_take_apart(code, f);
    const float power = mpg_as_float((uint32_t)(x.exponent + scale + 127) << 23);
    const uint32_t bits = mpg_as_bits((float)x.significand * power);
    const int32_t leading = (int32_t)(bits >> 23) - 127 - scale;
    *exponent = leading > f->emin ? leading : f->emin;
    *nonzero = mpg_if_negative(-x.significand);
    *special |= x.special;
    return bits | (uint32_t)x.negative << 31;
}

/* Lanes of one position of k; `size` and an `outer` of 1 are constants. */
MPG_INLINE void mpg_narrow_pack_lanes(const void *data, int size, int64_t base, int64_t outer, int count, const mpg_operand *f,
                                      float *MPG_RESTRICT v, uint8_t *MPG_RESTRICT x, int32_t *MPG_RESTRICT flags)
{
    for (int j = 0; j < count; j++) {
        int32_t exponent, nonzero, special = 0;
        v[j] = mpg_as_float(mpg_narrow_value(mpg_code(data, size, base + j * outer), f, 0, &exponent, &nonzero, &special));
        x[j] = (uint8_t)((16 - exponent) | ~nonzero); /* MPG_NO_BYTE_B has all bits */
        flags[j] |= special;
    }
}

/* Positions begin to end - 1 of the padded k of a panel of B. */
MPG_INLINE void mpg_narrow_pack_b_plain_body(int level, const mpg_source *s, const mpg_operand *format,
                                             const mpg_narrow_panel *panel, int64_t begin, int64_t end, uint8_t *special)
{
    const mpg_operand f = *format;
    const int64_t outer = s->outer, first = panel->first;
    const int count = panel->count, width = panel->width;
    int32_t flags[MPG_PANEL] = {0};
    for (int64_t k = begin; k < end; k++) {
        float *MPG_RESTRICT v = panel->values + (k - begin) * width;
        uint8_t *MPG_RESTRICT x = panel->exponents + (k - begin) * width;
        const int64_t position = s->order[k], base = first * outer + position * s->inner;
        mpg_fetch_position(s, f.size, first, count, k, end);
        for (int j = position < 0 ? 0 : count; j < width; j++) {
            v[j] = 0;
            x[j] = MPG_NO_BYTE_B;
        }
        if (position < 0)
            continue;
        if (f.size == 2 && outer == 1)
            mpg_narrow_pack_lanes(s->data, 2, base, 1, count, &f, v, x, flags);
        else if (f.size == 2)
            mpg_narrow_pack_lanes(s->data, 2, base, outer, count, &f, v, x, flags);
        else if (outer == 1)
            mpg_narrow_pack_lanes(s->data, 1, base, 1, count, &f, v, x, flags);
        else
            mpg_narrow_pack_lanes(s->data, 1, base, outer, count, &f, v, x, flags);
    }
    for (int j = 0; j < count; j++)
        special[first + j] |= (uint8_t)(flags[j] != 0);
}

/* `count` neighbours in k from index `first`; `size` is a constant. */
MPG_INLINE int32_t mpg_narrow_pack_run(const void *data, int size, int64_t first, int64_t count, const mpg_operand *f,
                                       int scale, float *MPG_RESTRICT values, uint32_t *MPG_RESTRICT exponents)
{
    int32_t flags = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t exponent, nonzero, flag = 0;
        values[i] = mpg_as_float(mpg_narrow_value(mpg_code(data, size, first + i), f, scale, &exponent, &nonzero, &flag));
        exponents[i] = 0x01010101u * (uint32_t)((exponent + 143) & nonzero);
        flags |= flag;
    }
    return flags;
}

/* Row `row` of A over the same positions; exponents four times over in one word. `plain_order`: position k is k. */
MPG_INLINE void mpg_narrow_pack_a_plain_body(int level, const mpg_source *s, const mpg_operand *format, int64_t row,
                                             int64_t begin, int64_t end, int plain_order, float *MPG_RESTRICT values,
                                             uint32_t *MPG_RESTRICT exponents, uint8_t *special)
{
    const mpg_operand f = *format;
    const int scale = level == MPG_ISA_AVX512 ? 0 : -MPG_NARROW_PRESCALE;
    int32_t flags = 0;
    if (plain_order && s->inner == 1) {
        const int64_t base = row * s->outer + begin;
        if (f.size == 2)
            flags = mpg_narrow_pack_run(s->data, 2, base, end - begin, &f, scale, values, exponents);
        else
            flags = mpg_narrow_pack_run(s->data, 1, base, end - begin, &f, scale, values, exponents);
    } else {
        for (int64_t k = begin; k < end; k++) {
            values[k - begin] = 0;
            exponents[k - begin] = MPG_NO_BYTE_A;
            if (s->order[k] < 0)
                continue;
            int32_t exponent, nonzero;
            const uint32_t code = mpg_code(s->data, f.size, row * s->outer + s->order[k] * s->inner);
            values[k - begin] = mpg_as_float(mpg_narrow_value(code, &f, scale, &exponent, &nonzero, &flags));
            exponents[k - begin] = 0x01010101u * (uint32_t)((exponent + 143) & nonzero);
        }
    }
    special[row] |= (uint8_t)(flags != 0);
}

/* ---- plain C: one row, `width` lanes ------------------------------------------------------------------------------- */
/* Operations run with rounding toward zero (mpg_round_toward_zero of lanes.h): conversion of an integer sum to float32 is then
 * the normalisation. Chained addends are added to nearest, outside. */

MPG_INLINE float mpg_larger_float(float x, float y) { return x > y ? x : y; }

/* 2^-14, not as a constant: compilers turn the choice between a number and a constant into jumps. */
MPG_INLINE float mpg_least_fp16(void)
{
    const volatile float least = 0x1p-14f;
    return least;
}

/* x to the nearest fp16 number, ties to even, as float32; beyond the largest it is 65536 or more. -0 becomes +0. For rounding to
 * nearest. */
MPG_INLINE float mpg_nearest_fp16(float x, float least)
{
    const float power = mpg_as_float(mpg_as_bits(x) & 0x7F800000u);
    const float magic = mpg_larger_float(power, least) * 0x1.8p13f; /* its last bit is fp16's for x */
    return (x + magic) - magic;
}

/* The same for rounding toward zero: the sum has the truncated magnitude, its last bit says which way ties go. */
MPG_INLINE float mpg_nearest_fp16_chopped(float x, float least)
{
    const uint32_t bits = mpg_as_bits(x);
    const float magnitude = mpg_as_float(bits & 0x7FFFFFFFu), power = mpg_as_float(bits & 0x7F800000u);
    const float last = mpg_larger_float(power, least) * 0x1p-10f;
    const float magic = last * 0x1.8p23f, sum = magnitude + magic, rest = magnitude - (sum - magic);
    const uint32_t up = (mpg_as_bits(last * 0.5f) - mpg_as_bits(rest) - (mpg_as_bits(sum) & 1)) >> 31;
    return mpg_as_float(mpg_as_bits(mpg_as_float(mpg_as_bits(sum) + up) - magic) | (bits & 0x80000000u)) + 0.0f;
}

/* Mark and zero the lanes whose fp16 result is infinite. */
MPG_INLINE void mpg_mark_overflow(float *MPG_RESTRICT c, int width, uint8_t *MPG_RESTRICT overflow)
{
    uint32_t any = 0; /* the highest bit of a difference is set where it is negative */
    for (int j = 0; j < width; j++)
        any |= 0x47800000u - 1 - (mpg_as_bits(c[j]) & 0x7FFFFFFFu); /* 65536 */
    if (any >> 31)
        for (int j = 0; j < width; j++)
            if (c[j] >= 65536.0f || c[j] <= -65536.0f) {
                overflow[j] = 1;
                c[j] = 0;
            }
}

/* Alignment: powers of two of the largest addends. */
MPG_INLINE void mpg_narrow_align(int terms, int width, int output, const mpg_narrow_task *t, const uint8_t *MPG_RESTRICT ea,
                                 const uint8_t *MPG_RESTRICT eb, const float *MPG_RESTRICT c, float *MPG_RESTRICT top)
{
    uint8_t field[MPG_PANEL];
    const int32_t raw = t->raw_exponent << 23;

    for (int j = 0; j < width; j++) {
        uint8_t largest = (uint8_t)t->floor;
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++) {
            const uint8_t x = ea[q], y = eb[q * width + j];
            const uint8_t e = (uint8_t)((x > y ? x : y) - y); /* saturating x - y */
            largest = largest > e ? largest : e;
        }
        field[j] = largest;
    }
    for (int j = 0; j < width; j++) {
        const int32_t bits = (int32_t)(mpg_as_bits(c[j]) & 0x7F800000u);
        float own = mpg_as_float((uint32_t)bits);
        if (output == MPG_OUT_FP16)
            own = mpg_larger_float(own, mpg_as_float((uint32_t)(raw & mpg_if_negative(-bits))));
        top[j] = mpg_larger_float(own, mpg_as_float((uint32_t)field[j] << 23));
    }
}

/* A truncated sum in units of 2^(e_max - F) as result; `inexact`: 1 where something was cut off. */
MPG_INLINE float mpg_narrow_result(float x, uint32_t inexact, float unit, int output, uint32_t keep, float least)
{
    if (output == MPG_OUT_FP16) /* 24 bits to odd first */
        return mpg_nearest_fp16_chopped(mpg_as_float(mpg_as_bits(x) | inexact) * unit, least);
    return mpg_as_float(mpg_as_bits(x) & keep) * unit;
}

/* d = c + the products of one fused operation, for `width` lanes. */
MPG_INLINE void mpg_narrow_step(int terms, int width, int output, const mpg_narrow_task *t, const float *MPG_RESTRICT a,
                                const uint32_t *MPG_RESTRICT ea, const float *MPG_RESTRICT b, const uint8_t *MPG_RESTRICT eb,
                                float least, float *MPG_RESTRICT c)
{
    uint8_t bytes[32];
    float top[MPG_PANEL];
    int32_t sum[MPG_PANEL], addend[MPG_PANEL], wrapped = 0;
    const uint32_t f = (uint32_t)t->fraction_bits << 23, keep = t->keep;
    const uint32_t to_scale = f + (254u << 23), to_shift = f + ((127u + MPG_NARROW_PRESCALE) << 23);

    for (int q = 0; q < terms; q++)
        bytes[q] = (uint8_t)ea[q];
    mpg_narrow_align(terms, width, output, t, bytes, eb, c, top);
    for (int j = 0; j < width; j++) {
        const float reached = top[j] < mpg_as_float(to_shift) ? top[j] : mpg_as_float(to_shift);
        const uint32_t up = to_shift - mpg_as_bits(reached);
        int32_t total = 0;
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++)
            total += (int32_t)mpg_as_float(mpg_as_bits(a[q] * b[q * width + j]) + up);
        sum[j] = total;
    }
    for (int j = 0; j < width; j++) {
        const int32_t own = (int32_t)(c[j] * mpg_as_float(to_scale - mpg_as_bits(top[j])));
        const int32_t total = (int32_t)((uint32_t)sum[j] + (uint32_t)own);
        const float x = (float)total;
        wrapped |= (total ^ sum[j]) & (total ^ own);
        addend[j] = own;
        c[j] = mpg_narrow_result(x, (int32_t)x != total, mpg_as_float(mpg_as_bits(top[j]) - f), output, keep, least);
    }
    if (wrapped < 0)
        for (int j = 0; j < width; j++) {
            /* as high * 256 + low, both exact in float32 */
            const float high = (float)((sum[j] >> 8) + (addend[j] >> 8)) * 256.0f;
            const float low = (float)((sum[j] & 255) + (addend[j] & 255)), x = high + low;
            const float unit = mpg_as_float(mpg_as_bits(top[j]) - f);
            c[j] = mpg_narrow_result(x, x - high != low, unit, output, keep, least);
        }
}

/* One row over several operations, by level. c holds `width` lanes; overflowed lanes are marked and zeroed. */
MPG_INLINE void mpg_narrow_steps_body(int terms, int width, int output, const mpg_narrow_task *task,
                                      const mpg_narrow_operands *p, float *c, int64_t steps, uint8_t *overflow)
{
    const mpg_narrow_task copy = *task, *t = &copy; /* nothing that is stored here can change it, */
    mpg_narrow_operands q = *p;                     /* nor this */
    const float least = mpg_least_fp16();
    for (int64_t s = 0; s < steps; s++, q = mpg_narrow_after(&q, 1, terms, width)) {
        mpg_narrow_step(terms, width, output, t, q.a, q.ea, q.b, q.eb, least, c);
        if (output == MPG_OUT_FP16)
            mpg_mark_overflow(c, width, overflow);
    }
}

/* c += added, to nearest: with its own rounding. */
MPG_NOINLINE static void mpg_narrow_add(int width, int output, const float *MPG_RESTRICT added, float *MPG_RESTRICT c,
                                        uint8_t *MPG_RESTRICT overflow)
{
    const float least = mpg_least_fp16();
    for (int j = 0; j < width; j++)
        c[j] += added[j];
    if (output == MPG_OUT_FP16) {
        for (int j = 0; j < width; j++)
            c[j] = mpg_nearest_fp16(c[j], least);
        mpg_mark_overflow(c, width, overflow);
    }
}

/* One row of A over several operations; c holds the lanes of a panel. */
typedef void (*mpg_narrow_row)(const mpg_narrow_task *, const mpg_narrow_operands *, float *c, int64_t steps,
                               uint8_t *overflow);

/* One row: runs of operations in their rounding, chained addends between them. */
MPG_INLINE void mpg_narrow_row_body(mpg_narrow_row run, int terms, int width, int output, const mpg_narrow_task *t,
                                    const mpg_narrow_operands *p, float *c, int64_t steps, uint8_t *overflow)
{
    const int64_t each = t->chain ? t->chain : steps;
    float added[MPG_PANEL];
    for (int64_t s = 0; s < steps; s += each) {
        if (t->chain) {
            memcpy(added, c, (size_t)width * sizeof(float));
            memset(c, 0, (size_t)width * sizeof(float));
        }
        const mpg_narrow_operands q = mpg_narrow_after(p, s, terms, width);
        const mpg_rounding mode = mpg_round_toward_zero();
        run(t, &q, c, steps - s < each ? steps - s : each, overflow);
        mpg_restore_rounding(mode);
        if (t->chain && steps - s >= each)
            mpg_narrow_add(width, output, added, c, overflow);
    }
}

#define MPG_NARROW_ROW(NAME, TARGET, STEPS, TERMS, WIDTH, OUTPUT)                                                              \
    MPG_NOINLINE TARGET static void NAME##_steps(const mpg_narrow_task *t, const mpg_narrow_operands *p, float *c,             \
                                                 int64_t steps, uint8_t *overflow)                                             \
    {                                                                                                                          \
        STEPS(TERMS, WIDTH, OUTPUT, t, p, c, steps, overflow);                                                                 \
    }                                                                                                                          \
    static void NAME(const mpg_narrow_task *t, const mpg_narrow_operands *p, float *c, int64_t steps, uint8_t *overflow)       \
    {                                                                                                                          \
        mpg_narrow_row_body(NAME##_steps, TERMS, WIDTH, OUTPUT, t, p, c, steps, overflow);                                     \
    }
#define MPG_NARROW_TERMS(NAME, TARGET, STEPS, WIDTH, OUTPUT)                                                                   \
    MPG_NARROW_ROW(mpg_n4_##NAME, TARGET, STEPS, 4, WIDTH, OUTPUT)                                                             \
    MPG_NARROW_ROW(mpg_n8_##NAME, TARGET, STEPS, 8, WIDTH, OUTPUT)                                                             \
    MPG_NARROW_ROW(mpg_n16_##NAME, TARGET, STEPS, 16, WIDTH, OUTPUT)                                                           \
    MPG_NARROW_ROW(mpg_n32_##NAME, TARGET, STEPS, 32, WIDTH, OUTPUT)
#define MPG_NARROW_SIZES(LEVEL, TARGET, STEPS)                                                                                 \
    MPG_NARROW_TERMS(fp32_64_##LEVEL, TARGET, STEPS, MPG_PANEL, MPG_OUT_FP32)                                                  \
    MPG_NARROW_TERMS(fp16_64_##LEVEL, TARGET, STEPS, MPG_PANEL, MPG_OUT_FP16)                                                  \
    MPG_NARROW_TERMS(fp32_16_##LEVEL, TARGET, STEPS, 16, MPG_OUT_FP32)                                                         \
    MPG_NARROW_TERMS(fp16_16_##LEVEL, TARGET, STEPS, 16, MPG_OUT_FP16)

/* Kernels of one level by [width 64, 16][fp32, fp16][terms 4, 8, 16, 32]. */
#define MPG_NARROW_TABLE_ROW(NAME) {mpg_n4_##NAME, mpg_n8_##NAME, mpg_n16_##NAME, mpg_n32_##NAME}
#define MPG_NARROW_TABLE(LEVEL)                                                                                                \
    {                                                                                                                          \
        {MPG_NARROW_TABLE_ROW(fp32_64_##LEVEL), MPG_NARROW_TABLE_ROW(fp16_64_##LEVEL)},                                        \
        {                                                                                                                      \
            MPG_NARROW_TABLE_ROW(fp32_16_##LEVEL), MPG_NARROW_TABLE_ROW(fp16_16_##LEVEL)                                       \
        }                                                                                                                      \
    }

MPG_NARROW_SIZES(baseline, , mpg_narrow_steps_body)

static const mpg_narrow_row MPG_NARROW_ROWS_BASELINE[2][2][4] = MPG_NARROW_TABLE(baseline);

#endif
