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
static const mpg_format mpg_format_double = {.exponent_bits = 11,
                                             .fraction_bits = 52,
                                             .specials = MPG_SPECIALS_IEEE,
                                             .sign_bit = MPG_SIGN64,
                                             .emin = -1022,
                                             .bias = 1023};

/* a b + c, any case. A format without infinity has those doubles for NaNs with a sign: in `chained` addends they are NaN. */
MPG_FROM_VECTORS static double mpg_slow_fma(double a, double b, double c, int chained, const mpg_plan *p)
{
    const mpg_number x = mpg_number_of(mpg_as_bits64(a), &mpg_format_double);
    const mpg_number y = mpg_number_of(mpg_as_bits64(b), &mpg_format_double);
    const mpg_number z = mpg_number_of(mpg_as_bits64(c), &mpg_format_double);
    const mpg_number product = mpg_scaled(x, y, 0);
    const mpg_uint128 magnitude = (mpg_uint128)x.significand * y.significand;
    int special = mpg_specials_of(product) | mpg_specials_of(z);
    uint64_t code;
    if (chained && z.kind == MPG_INF && p->raw_d.specials != MPG_SPECIALS_IEEE)
        special = MPG_HAS_NAN;
    if (special && p->late.saturate)
        code = mpg_special_code(special, &p->result, &p->late);
    else if (special & MPG_HAS_NAN || (special & 3) == 3)
        return mpg_as_double(UINT64_C(0x7FF8000000000000));
    else if (special)
        return special & MPG_HAS_NEGATIVE_INF ? mpg_as_double(MPG_INF64 | MPG_SIGN64) : mpg_as_double(MPG_INF64);
    else
        code = mpg_rounded_sum_128(product.negative, magnitude, product.exponent, z.negative, z.significand, z.exponent,
                                   &p->result, &p->late);
    const mpg_number result = mpg_number_of(code, &p->raw_d);
    if (result.kind == MPG_NAN) /* overflow in a format without infinity */
        return mpg_as_double(MPG_INF64 | (result.negative ? MPG_SIGN64 : 0));
    return mpg_double_of_number(result);
}
#endif

/* Truth values of numbers below 2^63, 0 or 1, without comparisons: compilers make those jumps, which they cannot vectorise. */
#define MPG_NONZERO(x) ((UINT64_C(0) - (x)) >> 63)
#define MPG_LESS(x, y) (((x) - (y)) >> 63)
#define MPG_EITHER(mask, x, y) ((y) ^ (((x) ^ (y)) & (mask))) /* mask of ones or zeros */

/* total = round(total + a b) */
MPG_INLINE void mpg_lanes_fma_exact(double *total, double a, const double *b, int chained, const mpg_lane_rule *f,
                                    const mpg_plan *p)
{
    double start[MPG_LANES], sum[MPG_LANES], result[MPG_LANES];
    uint64_t redo = 0;
    const uint64_t outward[2] = {(uint64_t)f->outward[0], (uint64_t)f->outward[1]};
    const uint64_t inward[2] = {(uint64_t)-(int64_t)f->inward[0], (uint64_t)-(int64_t)f->inward[1]};
    const uint64_t odd_too = !f->even_only, others_too = !f->ties_only, flush = f->flush_chained;
    const uint64_t down_zero = f->zero ? MPG_SIGN64 : 0, a_nonzero = a != 0;
    const uint64_t smallest = mpg_as_bits64(MPG_FMA_SMALLEST), largest = mpg_as_bits64(MPG_FMA_LARGEST);
    for (int l = 0; l < MPG_LANES; l++) {
        const uint64_t bits = mpg_as_bits64(total[l]);
        const uint64_t flushed = UINT64_C(0) - MPG_LESS(bits & ~MPG_SIGN64, flush);
        start[l] = mpg_as_double(bits & (~flushed | MPG_SIGN64));
    }
    for (int l = 0; l < MPG_LANES; l++) {
        const double c = start[l], r = fma(a, b[l], c);
        const double high = a * b[l], low = fma(a, b[l], -high);
        const double x1 = c + low, xc = x1 - low, x2 = (c - xc) + (low - (x1 - xc));
        const double y1 = high + x1, yc = y1 - x1, y2 = (high - yc) + (x1 - (y1 - yc));
        const double rest = (y1 - r) + y2, error = rest + x2, last = x2 - (error - rest);
        const uint64_t r_bits = mpg_as_bits64(r), error_bits = mpg_as_bits64(error);
        const uint64_t c_bits = mpg_as_bits64(c), high_bits = mpg_as_bits64(high);
        const uint64_t r_size = r_bits & ~MPG_SIGN64, error_size = error_bits & ~MPG_SIGN64;
        const uint64_t c_size = c_bits & ~MPG_SIGN64, size = high_bits & ~MPG_SIGN64;
        const uint64_t negative = UINT64_C(0) - (r_bits >> 63);
        const uint64_t outside = ((error_bits ^ r_bits) >> 63) - 1; /* a mask */
        /* Half a unit of r in the last place; exact ties have no second part of the error. */
        const uint64_t off = error_size + (UINT64_C(53) << 52) - (r_bits & MPG_INF64);
        const uint64_t not_tie = (off | (UINT64_C(0) - off)) >> 63 | MPG_NONZERO(mpg_as_bits64(last) & ~MPG_SIGN64);
        const uint64_t step =
            MPG_EITHER(outside, MPG_EITHER(negative, outward[1], outward[0]), MPG_EITHER(negative, inward[1], inward[0]));
        const uint64_t wanted = MPG_NONZERO(error_size) & ((not_tie ^ 1) | others_too) & (~r_bits | odd_too) & 1;
        /* A sum that is zero: rounding down makes it negative unless both addends are +0. */
        const uint64_t r_zero = MPG_NONZERO(r_size) ^ 1;
        const uint64_t minus = (c_bits | high_bits | MPG_NONZERO(c_size) << 63) & down_zero & (r_zero << 63);
        sum[l] = mpg_as_double((r_bits + (step & (UINT64_C(0) - wanted))) | minus);
        redo |= MPG_LESS(largest, size) | MPG_LESS(largest, c_size) | MPG_LESS(largest, r_size);
        redo |= MPG_LESS(size, smallest) & a_nonzero & MPG_NONZERO(mpg_as_bits64(b[l]) & ~MPG_SIGN64);
        redo |= MPG_LESS(r_size, smallest) & (r_zero ^ 1);
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
    MPG_TRACE(MPG_TRACE_LANE_FMA, mpg_as_bits64(start[0]), mpg_as_bits64(result[0]), mpg_as_bits64(a), mpg_as_bits64(b[0]));
    memcpy(total, result, sizeof result);
}

#endif
