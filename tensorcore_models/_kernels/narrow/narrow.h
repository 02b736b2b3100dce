/* Fused dot-add (xie-mma-sim, section IV-C) and dot-round-down-add (IV-F, IV-H) for operands of few exponents, in 32-bit lanes.
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

/* What else `output` may be: products alone are summed, in one group or in two halves; dot product and c are rounded down. */
enum { MPG_NARROW_DOWN = MPG_OUT_FP16 + 1, MPG_NARROW_DOWN_GROUPS };

typedef struct {
    int terms;         /* products of one fused operation as packed: 4, 8, 16 or 32 */
    int fraction_bits; /* F, of the products and of c */
    int output;        /* MPG_OUT_FP32 truncates, MPG_OUT_FP16 rounds to nearest even; MPG_NARROW_DOWN... */
    uint32_t keep;     /* result bits that survive (all but those beyond output_fraction_bits) */
    int wide_sum;      /* the sum of products and c may reach 2^31 */
    int chain;         /* > 0: c is added after every `chain` operations, which start from zero (InterleavedDotAdd) */
    int floor;         /* exponent field that alignment exponents have at least, MPG_NARROW_FLOOR or more */
    int raw_exponent;  /* fp16 output: exponent field of the smallest normal c (subnormal c align there), 0 for none */
    int guard;         /* round down: bits that the dot product has at its alignment with c beyond F, 0 to 7 */
    int whole;         /* round down: bits of the total's integer part, in units of F, that leave all guard bits; 31 for any */
    int cutoff;        /* round down in halves: c further below the largest exponent than this is dropped */
    int windowed;      /* operands have more exponents than the lanes and are shifted into their range (narrow_window.h) */
    int scaled; /* chain of at most 31: bit i multiplies the sums by `scale`, a power of two, before operation i of each */
    float scale;
    float back; /* results are multiplied by this at the end, a power of two: 1, or what undoes the shifts of the operands */
    int unusable_c; /* float32 bits from which on an addend's magnitude is left to the generic kernel: at most infinity's */
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

/* Whether sums are scaled before operation `place` of a chain. */
MPG_INLINE int mpg_narrow_is_scaled(const mpg_narrow_task *t, int64_t place) { return t->scaled && t->scaled >> place & 1; }

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
    *nonzero = mpg_if_negative(-x.significand);
    /* The shift of a window may take the exponent of a zero out of float32's range: its power is 0, too. */
    const float power = mpg_as_float((uint32_t)((x.exponent + scale + 127) & *nonzero) << 23);
    const uint32_t bits = mpg_as_bits((float)x.significand * power);
    const int32_t leading = (int32_t)(bits >> 23) - 127 - scale;
    *exponent = leading > f->emin ? leading : f->emin;
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
        else if (f.size == 4)
            mpg_narrow_pack_lanes(s->data, 4, base, outer, count, &f, v, x, flags);
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
        else if (f.size == 4)
            flags = mpg_narrow_pack_run(s->data, 4, base, end - begin, &f, scale, values, exponents);
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

/* Exponent fields of the largest of `terms` products, at least the floor, as int32 in the place that float32 has for them. */
MPG_INLINE void mpg_narrow_fields(int terms, int width, const mpg_narrow_task *t, const uint32_t *MPG_RESTRICT ea,
                                  const uint8_t *MPG_RESTRICT eb, int32_t *MPG_RESTRICT fields)
{
    uint8_t bytes[32], field[MPG_PANEL];
    for (int q = 0; q < terms; q++)
        bytes[q] = (uint8_t)ea[q];
    for (int j = 0; j < width; j++) {
        uint8_t largest = (uint8_t)t->floor;
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++) {
            const uint8_t x = bytes[q], y = eb[q * width + j];
            const uint8_t e = (uint8_t)((x > y ? x : y) - y); /* saturating x - y */
            largest = largest > e ? largest : e;
        }
        field[j] = largest;
    }
    for (int j = 0; j < width; j++)
        fields[j] = field[j] << 23;
}

/* Sums of `terms` products, each truncated to its lane's unit 2^(top - F); `top`: powers of two. */
MPG_INLINE void mpg_narrow_products(int terms, int width, int fraction_bits, const float *MPG_RESTRICT a,
                                    const float *MPG_RESTRICT b, const float *MPG_RESTRICT top, int32_t *MPG_RESTRICT sum)
{
    const uint32_t to_shift = (uint32_t)(fraction_bits + 127 + MPG_NARROW_PRESCALE) << 23;
    for (int j = 0; j < width; j++) {
        const float reached = top[j] < mpg_as_float(to_shift) ? top[j] : mpg_as_float(to_shift);
        const uint32_t up = to_shift - mpg_as_bits(reached);
        int32_t total = 0;
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++)
            total += (int32_t)mpg_as_float(mpg_as_bits(a[q] * b[q * width + j]) + up);
        sum[j] = total;
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
    float top[MPG_PANEL];
    int32_t fields[MPG_PANEL], sum[MPG_PANEL], addend[MPG_PANEL], wrapped = 0;
    const uint32_t f = (uint32_t)t->fraction_bits << 23, keep = t->keep, to_scale = f + (254u << 23);
    const int32_t raw = t->raw_exponent << 23;

    mpg_narrow_fields(terms, width, t, ea, eb, fields);
    for (int j = 0; j < width; j++) {
        const int32_t bits = (int32_t)(mpg_as_bits(c[j]) & 0x7F800000u);
        float own = mpg_as_float((uint32_t)bits);
        if (output == MPG_OUT_FP16)
            own = mpg_larger_float(own, mpg_as_float((uint32_t)(raw & mpg_if_negative(-bits))));
        top[j] = mpg_larger_float(own, mpg_as_float((uint32_t)fields[j]));
    }
    mpg_narrow_products(terms, width, t->fraction_bits, a, b, top, sum);
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

/* Units of the total of a dot product and c, both rounded down, and its parts: `high` in units of 2^(top - F), and below it `low`
 * in 2^-guard of them. The dot product has `sum` units of 2^(field - F); `top` is at least `field`. */
MPG_INLINE int32_t mpg_down_parts(const mpg_narrow_task *t, int32_t sum, int32_t field, int32_t top, float c, int32_t *low)
{
    const float x = c * mpg_as_float(((uint32_t)(t->fraction_bits + 254) << 23) - (uint32_t)top);
    const int32_t cut = (int32_t)x, addend = cut - ((float)cut > x), distance = (top - field) >> 23;
    const int32_t far = distance > 25 ? distance - 25 : 0, near = distance - far; /* what `far` takes is below all guard bits */
    const int32_t rest = sum >> (far < 31 ? far : 31);
    *low = (int32_t)((uint32_t)rest << (31 - near) << 1 >> (31 - t->guard) >> 1);
    return (rest >> near) + addend;
}

/* The float32 next to high + low * 2^-guard, ties to even, in units of 2^(top - F); the sum is rounded down to t->whole + guard bits
 * first. |high| < 2^30. */
MPG_INLINE float mpg_down_result(const mpg_narrow_task *t, int32_t high, int32_t low, int32_t top)
{
    const int32_t size = high ^ (high >> 31), lost = size >> t->whole;
    const int32_t inexact = (low & ~lost) > lost; /* a bit of `low` above the highest of `lost` */
    const int large = size >= 1 << 24;            /* then `low` only says whether the sum is inexact */
    const int32_t units = large ? 2 * high + inexact : (int32_t)((uint32_t)high << t->guard) | low;
    const int shift = t->fraction_bits + (large ? 1 : t->guard);
    return (float)units * mpg_as_float((uint32_t)(top - (shift << 23)));
}

/* d = dot product + c, both rounded down, for `width` lanes: one fused operation of one group of products or two halves. */
MPG_INLINE void mpg_narrow_down(int terms, int width, int output, const mpg_narrow_task *t, const float *MPG_RESTRICT a,
                                const uint32_t *MPG_RESTRICT ea, const float *MPG_RESTRICT b, const uint8_t *MPG_RESTRICT eb,
                                float *MPG_RESTRICT c)
{
    const int halves = output == MPG_NARROW_DOWN_GROUPS ? 2 : 1, each = terms / halves;
    int32_t fields[2][MPG_PANEL], sums[2][MPG_PANEL];
    float powers[MPG_PANEL];
    for (int h = 0; h < halves; h++) {
        const int first = h * each;
        mpg_narrow_fields(each, width, t, ea + first, eb + first * width, fields[h]);
        for (int j = 0; j < width; j++)
            powers[j] = mpg_as_float((uint32_t)fields[h][j]);
        mpg_narrow_products(each, width, t->fraction_bits, a + first, b + first * width, powers, sums[h]);
    }
    for (int j = 0; j < width; j++) {
        const int32_t own = (int32_t)(mpg_as_bits(c[j]) & 0x7F800000u);
        int32_t field = fields[0][j], sum = sums[0][j], low;
        if (halves == 2) {
            const int32_t other = fields[1][j], larger = field > other ? field : other;
            const int32_t down = (larger - field) >> 23, other_down = (larger - other) >> 23;
            sum = (sum >> (down < 31 ? down : 31)) + (sums[1][j] >> (other_down < 31 ? other_down : 31));
            field = larger;
        }
        const int32_t top = field > own ? field : own;
        const float addend = halves == 2 && own < top - (t->cutoff << 23) ? 0.0f : c[j];
        const int32_t high = mpg_down_parts(t, sum, field, top, addend, &low);
        c[j] = mpg_down_result(t, high, low, top);
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
        if (mpg_narrow_is_scaled(t, s))
            for (int j = 0; j < width; j++)
                c[j] *= t->scale;
        if (output >= MPG_NARROW_DOWN)
            mpg_narrow_down(terms, width, output, t, q.a, q.ea, q.b, q.eb, c);
        else
            mpg_narrow_step(terms, width, output, t, q.a, q.ea, q.b, q.eb, least, c);
        if (output == MPG_OUT_FP16)
            mpg_mark_overflow(c, width, overflow);
    }
}

/* c += the results of `count` chains one after the other, to nearest: with its own rounding. */
MPG_NOINLINE static void mpg_narrow_add(int width, int output, const float *MPG_RESTRICT chains, int64_t count,
                                        float *MPG_RESTRICT c, uint8_t *MPG_RESTRICT overflow)
{
    const float least = mpg_least_fp16();
    for (int64_t i = 0; i < count; i++, chains += width) {
        for (int j = 0; j < width; j++)
            c[j] += chains[j];
        if (output == MPG_OUT_FP16) {
            for (int j = 0; j < width; j++)
                c[j] = mpg_nearest_fp16(c[j], least);
            mpg_mark_overflow(c, width, overflow);
        }
    }
}

/* One row of A over several operations; c holds the lanes of a panel. */
typedef void (*mpg_narrow_row)(const mpg_narrow_task *, const mpg_narrow_operands *, float *c, int64_t steps,
                               uint8_t *overflow);

/* One row: operations in their rounding (toward zero; to nearest where they round down). Chains start from zero: several are run
 * before their results are added, so that the rounding changes seldom. */
MPG_INLINE void mpg_narrow_row_body(mpg_narrow_row run, int terms, int width, int output, const mpg_narrow_task *t,
                                    const mpg_narrow_operands *p, float *c, int64_t steps, uint8_t *overflow)
{
    enum { TOGETHER = 8 };
    float chains[TOGETHER * MPG_PANEL];
    const int64_t each = t->chain ? t->chain : steps, most = t->chain ? TOGETHER * each : each;
    for (int64_t s = 0; s < steps; s += most) {
        const int64_t count = steps - s < most ? (steps - s) / each : most / each;
        float *to = c;
        if (t->chain) {
            memset(chains, 0, (size_t)(count * width) * sizeof(float));
            to = chains;
        }
        const mpg_rounding mode = output < MPG_NARROW_DOWN ? mpg_round_toward_zero() : 0;
        for (int64_t i = 0; i < count; i++, to += width) {
            const mpg_narrow_operands q = mpg_narrow_after(p, s + i * each, terms, width);
            run(t, &q, to, each, overflow);
        }
        if (output < MPG_NARROW_DOWN)
            mpg_restore_rounding(mode);
        if (t->chain)
            mpg_narrow_add(width, output, chains, count, c, overflow);
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
#define MPG_NARROW_DOWN_TERMS(NAME, TARGET, STEPS, WIDTH)                                                                      \
    MPG_NARROW_ROW(mpg_down4_##NAME, TARGET, STEPS, 4, WIDTH, MPG_NARROW_DOWN)                                                 \
    MPG_NARROW_ROW(mpg_down8_##NAME, TARGET, STEPS, 8, WIDTH, MPG_NARROW_DOWN)                                                 \
    MPG_NARROW_ROW(mpg_halves16_##NAME, TARGET, STEPS, 16, WIDTH, MPG_NARROW_DOWN_GROUPS)
#define MPG_NARROW_SIZES(LEVEL, TARGET, STEPS)                                                                                 \
    MPG_NARROW_TERMS(fp32_64_##LEVEL, TARGET, STEPS, MPG_PANEL, MPG_OUT_FP32)                                                  \
    MPG_NARROW_TERMS(fp16_64_##LEVEL, TARGET, STEPS, MPG_PANEL, MPG_OUT_FP16)                                                  \
    MPG_NARROW_TERMS(fp32_16_##LEVEL, TARGET, STEPS, 16, MPG_OUT_FP32)                                                         \
    MPG_NARROW_TERMS(fp16_16_##LEVEL, TARGET, STEPS, 16, MPG_OUT_FP16)                                                         \
    MPG_NARROW_DOWN_TERMS(64_##LEVEL, TARGET, STEPS, MPG_PANEL)                                                                \
    MPG_NARROW_DOWN_TERMS(16_##LEVEL, TARGET, STEPS, 16)

/* Kernels of one level by [width 64, 16][fp32, fp16][terms 4, 8, 16, 32]. */
#define MPG_NARROW_TABLE_ROW(NAME) {mpg_n4_##NAME, mpg_n8_##NAME, mpg_n16_##NAME, mpg_n32_##NAME}
#define MPG_NARROW_TABLE(LEVEL)                                                                                                \
    {                                                                                                                          \
        {MPG_NARROW_TABLE_ROW(fp32_64_##LEVEL), MPG_NARROW_TABLE_ROW(fp16_64_##LEVEL)},                                        \
        {                                                                                                                      \
            MPG_NARROW_TABLE_ROW(fp32_16_##LEVEL), MPG_NARROW_TABLE_ROW(fp16_16_##LEVEL)                                       \
        }                                                                                                                      \
    }

/* Kernels that round down by [width 64, 16][terms 4, 8, 16 in two halves]. */
#define MPG_NARROW_DOWN_ROW(NAME) {mpg_down4_##NAME, mpg_down8_##NAME, mpg_halves16_##NAME}
#define MPG_NARROW_DOWN_TABLE(LEVEL) {MPG_NARROW_DOWN_ROW(64_##LEVEL), MPG_NARROW_DOWN_ROW(16_##LEVEL)}

MPG_NARROW_SIZES(baseline, , mpg_narrow_steps_body)

static const mpg_narrow_row MPG_NARROW_ROWS_BASELINE[2][2][4] = MPG_NARROW_TABLE(baseline);
static const mpg_narrow_row MPG_NARROW_DOWN_BASELINE[2][3] = MPG_NARROW_DOWN_TABLE(baseline);

/* The kernel of a task in a panel of that width, from two tables of one level. */
static mpg_narrow_row mpg_narrow_row_of(const mpg_narrow_task *t, int width, const mpg_narrow_row (*rows)[2][4],
                                        const mpg_narrow_row (*down)[3])
{
    const int narrow = width != MPG_PANEL, terms = mpg_terms_index(t->terms);
    return t->output >= MPG_NARROW_DOWN ? down[narrow][terms] : rows[narrow][t->output][terms];
}

#endif
