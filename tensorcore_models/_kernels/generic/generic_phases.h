/* FidelityPhases and IntegerPhases: multipliers take parts of significands, phase after phase (families/fidelity.py says which). */
#ifndef MPG_GENERIC_PHASES_H
#define MPG_GENERIC_PHASES_H

#include "generic_steps.h"

/* Products of an exact group, groups of one step, bits of a significand, bits that a multiplier takes of a and of b. */
enum { MPG_PHASE_GROUP = 8, MPG_PHASE_GROUPS = 2, MPG_PHASE_DIGITS = 11, MPG_PHASE_A = 7, MPG_PHASE_B = 5 };
#define MPG_PHASE_TERMS (MPG_PHASE_GROUP * MPG_PHASE_GROUPS)
#define MPG_PHASES 4

/* A group's sum, in units of 2^(exponent - 10) of its largest product, 2^(exponent - 23) after the shift by 13. */
typedef struct {
    int32_t sum, exponent;
} mpg_phase_sum;

/* The leading `bits` of a magnitude of 11 bits, or those that follow. */
MPG_INLINE int32_t mpg_phase_part(int32_t magnitude, int bits, int later)
{
    const int shift = 2 * bits - MPG_PHASE_DIGITS;
    if (!later)
        return magnitude >> (MPG_PHASE_DIGITS - bits);
    return (shift < 0 ? magnitude >> -shift : magnitude << shift) & ((1 << bits) - 1);
}

/* `lift` is what products' exponents are raised by to be exponent fields of the result, `least` that of a zero product. */
MPG_INLINE mpg_phase_sum mpg_phase_group(const mpg_plan *p, const int32_t *x, const int32_t *ae, const int32_t *y,
                                         const int32_t *be, int count, int phase, int32_t lift, int32_t least)
{
    const int a_up = MPG_PHASE_DIGITS - 1 - p->a.fraction_bits, b_up = MPG_PHASE_DIGITS - 1 - p->b.fraction_bits;
    mpg_phase_sum group = {0, mpg_largest_align(ae, be, count, least - lift) + lift};
    if (group.exponent <= 0) {
        group.exponent = 0;
        return group;
    }
    for (int q = 0; q < count; q++) {
        const int32_t down = group.exponent - lift - ae[q] - be[q];
        if (down > MPG_PHASE_A + MPG_PHASE_B + 1)
            continue; /* less than half a unit, or a zero */
        const int32_t a = mpg_phase_part((x[q] < 0 ? -x[q] : x[q]) << a_up, MPG_PHASE_A, phase >> 1 & 1);
        const int32_t b = mpg_phase_part((y[q] < 0 ? -y[q] : y[q]) << b_up, MPG_PHASE_B, phase & 1);
        const int32_t kept = (2 * a * b + (1 << down)) >> (down + 1);
        group.sum += (x[q] ^ y[q]) < 0 ? -kept : kept;
    }
    group.sum *= 1 << 13;
    return group;
}

/* x / 2^down to nearest, ties toward +infinity. */
MPG_INLINE int32_t mpg_phase_shifted(int32_t x, int32_t down)
{
    return down <= 0 ? x : down >= 31 ? 0 : (int32_t)(((int64_t)x + ((int64_t)1 << (down - 1))) >> down);
}

MPG_INLINE int32_t mpg_phase_of_magnitude(int32_t x, int32_t down)
{
    return x < 0 ? -mpg_phase_shifted(-x, down) : mpg_phase_shifted(x, down);
}

/* Both sums and the accumulator, aligned, added, and rounded to the accumulator's format. */
static uint64_t mpg_phase_add(const mpg_plan *p, const mpg_phase_sum *sums, uint64_t c)
{
    const mpg_format *f = &p->c;
    const int up = 23 - f->fraction_bits, five = f->exponent_bits == 5;
    const int32_t largest = (1 << f->exponent_bits) - 1, field = (int32_t)(c >> f->fraction_bits) & largest;
    const int32_t fraction = (int32_t)(c & ((UINT64_C(1) << f->fraction_bits) - 1));
    const int32_t magnitude = field ? (fraction << up) | 1 << 23 : 0;
    int32_t exponent = field, total = 0;
    for (int g = 0; g < MPG_PHASE_GROUPS; g++)
        exponent = sums[g].exponent > exponent ? sums[g].exponent : exponent;
    if (exponent <= 0)
        return 0;
    MPG_TRACE(MPG_TRACE_ALIGN, 0, exponent - f->bias - 23, 0, 0);
    for (int g = 0; g <= MPG_PHASE_GROUPS; g++) {
        const int is_c = g == MPG_PHASE_GROUPS;
        const int32_t value = !is_c ? sums[g].sum : c & f->sign_bit ? -magnitude : magnitude;
        const int32_t own = is_c ? field : sums[g].exponent;
        int32_t kept = is_c ? mpg_phase_of_magnitude(value, exponent - own) : mpg_phase_shifted(value, exponent - own);
        if (up)
            kept = (is_c ? mpg_phase_of_magnitude(kept, 13) : mpg_phase_shifted(kept, 13)) * (1 << 13);
        MPG_TRACE(MPG_TRACE_ADDEND, 0, own - f->bias - 23, value, kept);
        total += kept;
    }
    MPG_TRACE(MPG_TRACE_SUM, 0, exponent - f->bias - 23, total, 0);
    if (total == 0)
        return 0;
    const uint64_t sign = total < 0 ? f->sign_bit : 0;
    int64_t kept = total < 0 ? -(int64_t)total : total;
    int shift = 23 - mpg_leading_bit((uint64_t)kept);
    if (p->erratum && total == -1)
        shift -= 27;
    exponent -= shift;
    shift -= up;
    kept = (shift < 0 ? (kept + (INT64_C(1) << (-shift - 1))) >> -shift : kept << shift) << up;
    exponent += (int32_t)(kept >> 24 & 1);
    uint64_t code = 0;
    if (exponent >= largest + five)
        code = sign | (uint64_t)largest << f->fraction_bits | (five ? (UINT64_C(1) << f->fraction_bits) - 1 : 0);
    else if (exponent > 0)
        code = sign | (uint64_t)exponent << f->fraction_bits | (uint64_t)(kept & 0x7FFFFF) >> up;
    MPG_TRACE(MPG_TRACE_ROUNDED, 0, 0, 0, code);
    return code;
}

/* One pass: the phases in turn, each over all products, MPG_PHASE_TERMS at a time. */
static uint64_t mpg_phases(const mpg_plan *p, const int32_t *x, const int32_t *ae, const int32_t *y, const int32_t *be,
                           int count, uint64_t c)
{
    for (int phase = 0; phase < MPG_PHASES; phase++) {
        if (!(p->phases >> phase & 1))
            continue;
        const int32_t lift = p->c.bias - (phase & 1 ? MPG_PHASE_B : 0) - (phase & 2 ? MPG_PHASE_A : 0);
        const int32_t zero = lift - p->a.bias - p->b.bias, least = zero > 0 ? zero : 0;
        for (int q = 0; q < count; q += MPG_PHASE_TERMS) {
            mpg_phase_sum sums[MPG_PHASE_GROUPS];
            for (int g = 0; g < MPG_PHASE_GROUPS; g++) {
                const int at = q + g * MPG_PHASE_GROUP, left = count - at;
                const int members = left < 0 ? 0 : left < MPG_PHASE_GROUP ? left : MPG_PHASE_GROUP;
                sums[g] = mpg_phase_group(p, x + at, ae + at, y + at, be + at, members, phase, lift, least);
            }
            c = mpg_phase_add(p, sums, c);
        }
    }
    return c;
}

/* The part of an integer that a multiplier takes: the bits of its magnitude in `mask`. */
MPG_INLINE int64_t mpg_integer_part(int32_t x, int32_t mask) { return x < 0 ? -(-x & mask) : x & mask; }

/* The same for integers, whose parts keep their places; sums stop at +-(2^31 - 1). */
static uint64_t mpg_integer_phases(const mpg_plan *p, const int32_t *x, const int32_t *y, int count, uint64_t c)
{
    int64_t total = mpg_integer_of(c, p->c_bits, p->c_signed);
    for (int phase = 0; phase < MPG_PHASES; phase++)
        for (int q = 0; p->phases >> phase & 1 && q < count; q += MPG_PHASE_TERMS) {
            MPG_TRACE(MPG_TRACE_ADDEND_C, 0, 0, total, 0);
            for (int t = q; t < count && t < q + MPG_PHASE_TERMS; t++) {
                const int64_t left = mpg_integer_part(x[t], phase & 2 ? 0xF : 0x3F0);
                const int64_t right = mpg_integer_part(y[t], phase & 1 ? 0x1F : 0xE0);
                MPG_TRACE(MPG_TRACE_PRODUCT, t, 0, left * right, 0);
                total += left * right;
            }
            MPG_TRACE(MPG_TRACE_SUM, 0, 0, total, 0);
            total = total < -INT32_MAX ? -INT32_MAX : total > INT32_MAX ? INT32_MAX : total;
            MPG_TRACE(MPG_TRACE_ROUNDED, 0, 0, 0, total & UINT32_MAX);
        }
    return (uint64_t)total & UINT32_MAX;
}

#endif
