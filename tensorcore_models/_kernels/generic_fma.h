/* Fused multiply-adds of doubles whose products are not exact in double, MPG_LANES output columns at a time: FP64 operands in any
 * rounding to FP64 and to narrower formats; result formats without an infinity.
 *
 * Exactness: r = fma(a, b, c) is the double nearest to a b + c, and ErrFma (Boldo and Muller, "Exact and approximated error
 * of the FMA", IEEE Trans. Computers 60(2), 2011) gives a b + c - r as the unevaluated sum of two doubles of which the larger
 * one has its sign, provided that nothing under- or overflows. The sign says to which side of r the exact sum lies, which
 * decides directed roundings and the one to odd; to nearest with ties away differs from r only where the error is exactly
 * half a unit outward. Formats of at most 50 bits are rounded from the sum rounded to odd (generic_lanes.h). Lanes with
 * products or results below 2^-960, numbers beyond 2^1022 or specials are computed one by one in 128-bit integers.
 */
#ifndef MPG_GENERIC_FMA_H
#define MPG_GENERIC_FMA_H

#include "generic_lanes.h"

#define MPG_FMA_SMALLEST 0x1p-960 /* the last bit of the product is then at least 2^-1066 */
#define MPG_FMA_LARGEST 0x1p1022

#if MPG_HAS_WIDE
static const mpg_format mpg_format_double = {
    .exponent_bits = 11, .fraction_bits = 52, .specials = MPG_SPECIALS_IEEE, .sign_bit = MPG_SIGN64, .emin = -1022, .bias = 1023};

/* a b + c, any case. A format without infinity has those doubles for NaNs with a sign: in `chained` addends they are NaN. */
static double mpg_slow_fma(double a, double b, double c, int chained, const mpg_plan *p)
{
    const mpg_number x = mpg_number_of(mpg_bits_of_double(a), &mpg_format_double);
    const mpg_number y = mpg_number_of(mpg_bits_of_double(b), &mpg_format_double);
    const mpg_number z = mpg_number_of(mpg_bits_of_double(c), &mpg_format_double);
    const mpg_number product = mpg_scaled(x, y, 0);
    const mpg_uint128 magnitude = (mpg_uint128)x.significand * y.significand;
    int special = mpg_specials_of(product) | mpg_specials_of(z);
    uint64_t code;
    if (chained && z.kind == MPG_INF && p->raw_d.specials != MPG_SPECIALS_IEEE)
        special = MPG_HAS_NAN;
    if (special && p->late.saturate)
        code = mpg_special_code(special, &p->result, &p->late);
    else if (special & MPG_HAS_NAN || (special & 3) == 3)
        return mpg_double_of_bits(UINT64_C(0x7FF8000000000000));
    else if (special)
        return special & MPG_HAS_NEGATIVE_INF ? mpg_double_of_bits(MPG_INF64 | MPG_SIGN64) : mpg_double_of_bits(MPG_INF64);
    else
        code = mpg_rounded_sum_128(product.negative, magnitude, product.exponent, z.negative, z.significand, z.exponent,
                                   &p->result, &p->late);
    const mpg_number result = mpg_number_of(code, &p->raw_d);
    if (result.kind == MPG_NAN) /* overflow in a format without infinity */
        return mpg_double_of_bits(MPG_INF64 | (result.negative ? MPG_SIGN64 : 0));
    return mpg_double_of_number(result);
}
#endif

/* total = round(total + a b) */
MPG_INLINE void mpg_lanes_fma_exact(double *total, double a, const double *b, int chained, const mpg_lane_rule *f,
                                    const mpg_plan *p)
{
    double start[MPG_LANES], sum[MPG_LANES], result[MPG_LANES];
    uint64_t redo = 0;
    const uint64_t outward[2] = {(uint64_t)f->outward[0], (uint64_t)f->outward[1]};
    const uint64_t inward[2] = {(uint64_t)-(int64_t)f->inward[0], (uint64_t)-(int64_t)f->inward[1]};
    const uint64_t even_only = (uint64_t)f->even_only, ties_only = (uint64_t)f->ties_only;
    const uint64_t down_zero = f->zero ? MPG_SIGN64 : 0;
    for (int l = 0; l < MPG_LANES; l++) {
        const uint64_t bits = mpg_bits_of_double(total[l]);
        start[l] = mpg_double_of_bits((bits & ~MPG_SIGN64) < f->flush_chained ? bits & MPG_SIGN64 : bits);
    }
    for (int l = 0; l < MPG_LANES; l++) {
        const double c = start[l], r = fma(a, b[l], c);
        const double high = a * b[l], low = fma(a, b[l], -high);
        const double x1 = c + low, xc = x1 - low, x2 = (c - xc) + (low - (x1 - xc));
        const double y1 = high + x1, yc = y1 - x1, y2 = (high - yc) + (x1 - (y1 - yc));
        const double rest = (y1 - r) + y2, error = rest + x2, last = x2 - (error - rest);
        const uint64_t bits = mpg_bits_of_double(r), sign = bits & MPG_SIGN64, error_bits = mpg_bits_of_double(error);
        const uint64_t same = (error_bits ^ bits) >> 63 ^ 1;
        const uint64_t exponent = bits & MPG_INF64;
        /* Half a unit of r in the last place; exact ties have no second part of the error. */
        const uint64_t tie = (uint64_t)((error_bits & ~MPG_SIGN64) + (UINT64_C(53) << 52) == exponent) & (uint64_t)(last == 0);
        const uint64_t step = same ? (sign ? outward[1] : outward[0]) : (sign ? inward[1] : inward[0]);
        const uint64_t wanted = (uint64_t)(error != 0) & (tie | ~ties_only) & (~bits | ~even_only) & 1;
        const uint64_t zero = (uint64_t)(r == 0);
        const uint64_t any_sign = (mpg_bits_of_double(c) | mpg_bits_of_double(high) | (c != 0 ? MPG_SIGN64 : 0)) & down_zero;
        const uint64_t moved = zero ? bits | any_sign : bits + (wanted ? step : 0);
        const double size = fabs(high), least = fabs(c), value = fabs(r);
        redo |= (uint64_t)!(size <= MPG_FMA_LARGEST) | (uint64_t)!(least <= MPG_FMA_LARGEST) | (uint64_t)!(value <= MPG_FMA_LARGEST);
        redo |= (uint64_t)(size < MPG_FMA_SMALLEST) & (uint64_t)(a != 0) & (uint64_t)(b[l] != 0);
        redo |= (uint64_t)(value < MPG_FMA_SMALLEST) & (zero ^ 1);
        sum[l] = mpg_double_of_bits(moved);
    }
    if (f->direct)
        memcpy(result, sum, sizeof result);
    else
        redo |= mpg_lanes_round(sum, result, f);
#if MPG_HAS_WIDE
    if (redo)
        for (int l = 0; l < MPG_LANES; l++)
            result[l] = mpg_slow_fma(a, b[l], start[l], chained, p);
#endif
    memcpy(total, result, sizeof result);
}

#endif
