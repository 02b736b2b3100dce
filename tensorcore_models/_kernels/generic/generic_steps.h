/* One pass of every accumulator that works on packed integers: encodings of c in, encodings of d out. */
#ifndef MPG_GENERIC_STEPS_H
#define MPG_GENERIC_STEPS_H

#include "generic_plan.h"

/* Sums wider than 63 bits, the long accumulator and FP64 in other than hardware arithmetic need 128-bit integers; where
 * the compiler has none (MSVC) the lowering leaves these cases to the reference. */
#if defined(__SIZEOF_INT128__)
#define MPG_HAS_WIDE 1
__extension__ typedef __int128 mpg_int128;
__extension__ typedef unsigned __int128 mpg_uint128;
#else
#define MPG_HAS_WIDE 0
#endif

/* Largest alignment exponent of products, at least `least`. */
MPG_INLINE int32_t mpg_largest_align(const int32_t *ae, const int32_t *be, int count, int32_t least)
{
    for (int q = 0; q < count; q++)
        least = ae[q] + be[q] > least ? ae[q] + be[q] : least;
    return least;
}

#define SIG int32_t
#define ACC int64_t
#define UACC uint64_t
#define BITS 64
#define NAME(x) mpg_##x##_64
#include "generic_ieee.h"
#include "generic_fused.h"

#if MPG_HAS_WIDE
#define SIG int64_t
#define ACC mpg_int128
#define UACC mpg_uint128
#define BITS 128
#define NAME(x) mpg_##x##_128
#include "generic_ieee.h"
#include "generic_fused.h"

/* ---- exact accumulation (Kulisch) ---------------------------------------------------------------------------------- */
/* limbs += (-1)^negative * magnitude * 2^place, two's complement */
MPG_INLINE void mpg_long_add(uint64_t *limbs, int count, int negative, mpg_uint128 magnitude, int64_t place)
{
    const int offset = (int)(place % 64);
    int i = (int)(place / 64);
    const uint64_t low = (uint64_t)magnitude, high = (uint64_t)(magnitude >> 64);
    uint64_t word[3] = {low << offset, high << offset, 0}, carry = 0;
    if (offset) {
        word[1] |= low >> (64 - offset);
        word[2] = high >> (64 - offset);
    }
    for (int w = 0; i < count && (w < 3 || carry); i++, w++) {
        const uint64_t x = w < 3 ? word[w] : 0, old = limbs[i];
        if (negative) {
            const uint64_t part = old - x;
            limbs[i] = part - carry;
            carry = (uint64_t)(old < x) | (uint64_t)(part < carry);
        } else {
            const uint64_t part = old + x;
            limbs[i] = part + carry;
            carry = (uint64_t)(part < x) | (uint64_t)(limbs[i] < carry);
        }
    }
}

static uint64_t mpg_long_finish(uint64_t *limbs, int count, int32_t base, const mpg_result *t, const mpg_rule *r)
{
    const int negative = (int)(limbs[count - 1] >> 63);
    int top = count - 1, sticky = 0;
    if (negative) {
        uint64_t carry = 1;
        for (int i = 0; i < count; i++) {
            limbs[i] = ~limbs[i] + carry;
            carry = carry && limbs[i] == 0;
        }
    }
    while (top >= 0 && limbs[top] == 0)
        top--;
    if (top < 0)
        return 0;
    const int up = 63 - mpg_leading_bit(limbs[top]);
    uint64_t magnitude = limbs[top] << up;
    if (top > 0 && up) {
        magnitude |= limbs[top - 1] >> (64 - up);
        sticky = (limbs[top - 1] << up) != 0;
    } else if (top > 0) {
        sticky = limbs[top - 1] != 0;
    }
    for (int i = 0; i < top - 1; i++)
        sticky |= limbs[i] != 0;
    const uint64_t code = mpg_encode_number(negative, magnitude, sticky, (int64_t)base + 64 * top - up, t, r);
    MPG_TRACE(MPG_TRACE_ROUNDED, 0, 0, 0, code);
    return code;
}

/* Bits above the last one of any addend that an accumulator needs: 127 of the addend itself, carries of MPG_MAX_TERMS of
 * them, the sign. */
#define MPG_LONG_HEADROOM 140

static uint64_t mpg_exact(const mpg_plan *p, const int64_t *a, const int32_t *ae, const int64_t *b, const int32_t *be,
                          int count, int special, const mpg_origin *from, const mpg_number *c)
{
    uint64_t limbs[MPG_MAX_LIMBS];
    if (special || p->has_limit || (c && c->kind != MPG_FINITE)) {
        int found = c ? mpg_specials_of(*c) : 0;
        if (special || p->has_limit)
            found |= mpg_product_specials_128(a, ae, b, be, count, 1, p->has_limit, p->limit, p->product_fraction);
        if (found)
            return mpg_special_code(found, &p->result, &p->rule);
    }
    /* Only the limbs from the lowest to the highest addend are there. */
    const int start = c && c->significand;
    const int64_t c_place = start ? (int64_t)c->exponent - p->base : 0;
    int64_t low = start ? c_place : INT64_MAX, high = start ? c_place : -1;
    for (int q = 0; q < count; q++)
        if (a[q] != 0 && b[q] != 0) {
            const int64_t place = (int64_t)ae[q] + be[q] - p->product_fraction - p->base;
            low = place < low ? place : low;
            high = place > high ? place : high;
        }
    if (high < 0)
        return mpg_zero_128(p, a, b, count, from, c);
    const int first = (int)(low / 64), needed = (int)((high + MPG_LONG_HEADROOM) / 64) + 1;
    const int used = (needed < p->limbs ? needed : p->limbs) - first;
    const int64_t bottom = 64 * (int64_t)first;
    memset(limbs, 0, (size_t)used * sizeof *limbs);
    MPG_TRACE(MPG_TRACE_ALIGN, 0, low + p->base, 0, 0);
    if (start) {
        mpg_long_add(limbs, used, c->negative, c->significand, c_place - bottom);
        MPG_TRACE(MPG_TRACE_ADDEND_C, 0, c->exponent, c->negative ? -(mpg_int128)c->significand : c->significand, 0);
    }
    for (int q = 0; q < count; q++) {
        const mpg_int128 product = (mpg_int128)a[q] * b[q];
        MPG_TRACE(MPG_TRACE_PRODUCT, q, ae[q] + be[q] - p->product_fraction, product, 0);
        if (product != 0)
            mpg_long_add(limbs, used, product < 0, mpg_magnitude_128(product),
                         (int64_t)ae[q] + be[q] - p->product_fraction - p->base - bottom);
    }
    int nothing = 1;
    for (int i = 0; i < used; i++)
        nothing &= limbs[i] == 0;
    return nothing ? mpg_zero_128(p, a, b, count, from, c)
                   : mpg_long_finish(limbs, used, p->base + (int32_t)bottom, &p->result, &p->rule);
}

#endif /* MPG_HAS_WIDE */

/* ---- integers ------------------------------------------------------------------------------------------------------ */
MPG_INLINE int64_t mpg_integer_of(uint64_t bits, int width, int is_signed)
{
    const uint64_t top = UINT64_C(1) << (width - 1);
    bits &= (top << 1) - 1;
    return is_signed ? (int64_t)((bits ^ top) - top) : (int64_t)bits;
}

/* Products of at most 16-bit operands, at most 2^16 of them, and a 32-bit addend: far from 2^63. */
static uint64_t mpg_integer_dot(const mpg_plan *p, const int32_t *a, const int32_t *b, int count, uint64_t c_bits, int first)
{
    int64_t total = first ? mpg_integer_of(c_bits, p->c_bits, p->c_signed) : mpg_integer_of(c_bits, p->d_bits, p->d_signed);
    MPG_TRACE(MPG_TRACE_ADDEND_C, 0, 0, total, 0);
    for (int q = 0; q < count; q++) {
        MPG_TRACE(MPG_TRACE_PRODUCT, q, 0, (int64_t)a[q] * b[q], 0);
        total += (int64_t)a[q] * b[q];
    }
    MPG_TRACE(MPG_TRACE_SUM, 0, 0, total, 0);
    if (p->clamp) {
        const int64_t lowest = p->d_signed ? -(INT64_C(1) << (p->d_bits - 1)) : 0;
        const int64_t highest = (INT64_C(1) << (p->d_bits - p->d_signed)) - 1;
        total = total < lowest ? lowest : total > highest ? highest : total;
    }
    return (uint64_t)total & ((UINT64_C(1) << p->d_bits) - 1);
}

#endif
