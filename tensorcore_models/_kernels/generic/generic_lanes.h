/* Accumulators made of IEEE operations, MPG_LANES output columns at a time, in doubles.
 *
 * Exactness: operands are such that every product is exact in double (tensorcore_models/families/ieee.py checks significands and
 * exponents) and the result format has at most 50 significand bits. A sum x + y is formed in double together with its exact
 * error (Knuth's TwoSum); if inexact, it is made odd (Boldo and Melquiond 2008), after which rounding it to the result format
 * in any mode gives the rounding of the exact sum, because 53 >= 50 + 2. That rounding is integer arithmetic on the bits of
 * the double. Lanes with a subnormal, overflowing or special result are redone one by one by mpg_encode_number.
 */
#ifndef MPG_GENERIC_LANES_H
#define MPG_GENERIC_LANES_H

#include "bits.h"
#include "generic_steps.h"

#define MPG_SIGN64 UINT64_C(0x8000000000000000)
#define MPG_INF64 UINT64_C(0x7FF0000000000000)
#define MPG_NAN64 UINT64_C(0x7FF8000000000000)
#define MPG_FRACTION64 UINT64_C(0xFFFFFFFFFFFFF)

MPG_FROM_VECTORS static double mpg_double_of_number(mpg_number x)
{
    double value;
    if (x.kind == MPG_NAN) { /* the payload in the leading bits of the fraction */
        const uint64_t payload = x.significand ? x.significand << (52 - mpg_leading_bit(x.significand)) & MPG_FRACTION64 : 0;
        return mpg_as_double((x.negative ? MPG_SIGN64 : 0) | MPG_NAN64 | payload);
    }
    value = x.kind == MPG_INF ? mpg_as_double(MPG_INF64) : ldexp((double)x.significand, x.exponent);
    return x.negative ? -value : value;
}

/* Encode a double, rounded once. */
MPG_FROM_VECTORS static uint64_t mpg_encode_double(double value, const mpg_result *t, const mpg_rule *r)
{
    const uint64_t bits = mpg_as_bits64(value);
    const int negative = (int)(bits >> 63);
    const uint64_t fraction = bits & MPG_FRACTION64;
    const int field = (int)(bits >> 52 & 0x7FF);
    if (field == 0x7FF && fraction && r->nan_operand)
        return t->inf_code | (negative ? t->sign_bit : 0) | fraction >> (52 - t->fraction_bits) << t->padding_bits;
    if (field == 0x7FF)
        return mpg_special_code(fraction ? MPG_HAS_NAN : negative ? MPG_HAS_NEGATIVE_INF : MPG_HAS_POSITIVE_INF, t, r);
    if (field == 0 && fraction == 0)
        return negative ? t->zero_sign : 0;
    return mpg_encode_number(negative, field ? fraction | UINT64_C(1) << 52 : fraction, 0, (field ? field : 1) - 1075, t, r);
}

/* Rounding to the result format by integer operations on a double's bits, for results that are normal numbers. */
typedef struct {
    uint64_t mask; /* bits of the double below the format's last one */
    uint64_t odd, positive,
        negative; /* added before the cut: the last bit (of `even` the other one) & odd, a constant by sign */
    uint64_t even;
    uint64_t to_odd;            /* all ones for round to odd */
    uint64_t smallest, largest; /* magnitudes of normal numbers, as bits */
    uint64_t zero;              /* 1 if zero sums need their sign looked at (rounding down) */
    int drop;
    uint64_t flush_chained; /* addends below this magnitude are zero */
    /* FMA_EXACT: whether the nearest double moves a unit away from or toward zero where the exact sum lies there (by sign),
     * if only from even significands, if only from ties; whether that is the result itself. */
    int outward[2], inward[2], even_only, ties_only, direct;
} mpg_lane_rule;

MPG_FROM_VECTORS static mpg_lane_rule mpg_lane_rule_of(const mpg_plan *p)
{
    mpg_lane_rule f;
    const mpg_result *t = &p->result;
    const int m = p->late.rounding;
    memset(&f, 0, sizeof f);
    f.drop = 52 - t->fraction_bits;
    f.mask = (UINT64_C(1) << f.drop) - 1;
    if (m == MPG_RNE) {
        f.odd = 1;
        f.positive = f.negative = f.mask >> 1;
    } else if (m == MPG_RNA) {
        f.positive = f.negative = (f.mask >> 1) + 1;
    } else if (m == MPG_RA) {
        f.positive = f.negative = f.mask;
    } else if (m == MPG_RNU || m == MPG_RND || m == MPG_RNZ) {
        f.positive = (f.mask >> 1) + (m == MPG_RNU);
        f.negative = (f.mask >> 1) + (m == MPG_RND);
    } else if (m == MPG_RNO) {
        f.odd = f.even = 1;
        f.positive = f.negative = f.mask >> 1;
    } else if (m == MPG_RU) {
        f.positive = f.mask;
    } else if (m == MPG_RD) {
        f.negative = f.mask;
    } else if (m == MPG_RO) {
        f.to_odd = ~UINT64_C(0);
    }
    f.smallest = mpg_as_bits64(ldexp(1.0, t->quantum_exponent + t->fraction_bits));
    const uint64_t hidden = UINT64_C(1) << t->fraction_bits;
    const double top = (double)((t->max_code & (hidden - 1)) | hidden);
    f.largest = mpg_as_bits64(ldexp(top, (int)(t->max_code >> t->fraction_bits) - 1 + t->quantum_exponent));
    f.zero = m == MPG_RD;
    f.flush_chained = mpg_as_bits64(p->chained_flush);
    f.direct = p->family == MPG_FAMILY_FMA_EXACT && t->fraction_bits == 52;
    const int error = f.direct ? m : MPG_RO; /* what the error of the nearest double decides */
    f.even_only = error == MPG_RO;
    f.ties_only = error == MPG_RNA;
    f.outward[0] = error == MPG_RO || error == MPG_RNA || error == MPG_RU;
    f.outward[1] = error == MPG_RO || error == MPG_RNA || error == MPG_RD;
    f.inward[0] = error == MPG_RO || error == MPG_RZ || error == MPG_RD;
    f.inward[1] = error == MPG_RO || error == MPG_RZ || error == MPG_RU;
    return f;
}

/* One sum, any case: the double of the encoding of x + y (of x alone if y is null). */
MPG_FROM_VECTORS static double mpg_slow_sum(double x, const double *y, double sum, const mpg_plan *p)
{
    if (sum == 0 && y && p->late.rounding == MPG_RD && p->result.zero_sign)
        return (mpg_as_bits64(x) | mpg_as_bits64(*y)) & MPG_SIGN64 ? -0.0 : 0.0;
    return mpg_double_of_number(mpg_number_of(mpg_encode_double(sum, &p->result, &p->late), &p->raw_d));
}

/* sum[l] = x[l] + y[l] rounded to odd in double, result[l] = that rounded to the format; whether a lane must be redone. */
MPG_INLINE uint64_t mpg_lanes_round(const double *sum, double *result, const mpg_lane_rule *f)
{
    uint64_t redo = 0;
    for (int l = 0; l < MPG_LANES; l++) {
        const uint64_t bits = mpg_as_bits64(sum[l]);
        const uint64_t sign = bits & MPG_SIGN64, magnitude = bits ^ sign;
        const uint64_t by_sign = sign ? f->negative : f->positive;
        const uint64_t nearest = magnitude + by_sign + (((magnitude >> f->drop) ^ f->even) & f->odd);
        const uint64_t odd = magnitude | ((magnitude & f->mask) + f->mask);
        const uint64_t rounded = (f->to_odd ? odd : nearest) & ~f->mask;
        const uint64_t subnormal = (uint64_t)(magnitude < f->smallest) & ((uint64_t)(magnitude != 0) | f->zero);
        redo |= subnormal | (uint64_t)(rounded > f->largest);
        result[l] = mpg_as_double(sign | rounded);
    }
    return redo;
}

/* total = round(total + x), MPG_LANES at a time */
MPG_INLINE void mpg_lanes_add(double *total, const double *x, const mpg_lane_rule *f, const mpg_plan *p)
{
    double start[MPG_LANES], sum[MPG_LANES], result[MPG_LANES];
    for (int l = 0; l < MPG_LANES; l++) {
        const uint64_t bits = mpg_as_bits64(total[l]);
        const uint64_t magnitude = bits & ~MPG_SIGN64;
        start[l] = mpg_as_double(magnitude < f->flush_chained ? bits & MPG_SIGN64 : bits);
    }
    for (int l = 0; l < MPG_LANES; l++) {
        const double s = start[l] + x[l];
        const double y = s - start[l];
        const double error = (start[l] - (s - y)) + (x[l] - y);
        const uint64_t bits = mpg_as_bits64(s);
        /* An inexact sum with an even last bit moves one unit toward the exact one: to odd. Errors of specials are NaN. */
        const uint64_t toward = (mpg_as_bits64(error) ^ bits) >> 63 ? ~UINT64_C(0) : UINT64_C(1);
        const uint64_t inexact = (uint64_t)(error != 0) & (uint64_t)(error == error) & ~bits & 1;
        sum[l] = mpg_as_double(bits + (inexact ? toward : 0));
    }
    if (mpg_lanes_round(sum, result, f))
        for (int l = 0; l < MPG_LANES; l++)
            result[l] = mpg_slow_sum(start[l], &x[l], sum[l], p);
    MPG_TRACE(MPG_TRACE_LANE_ADD, 0, mpg_as_bits64(result[0]), mpg_as_bits64(start[0]), mpg_as_bits64(x[0]));
    memcpy(total, result, sizeof result);
}

/* ---- which NaN x86 returns ------------------------------------------------------------------------------------------ */
MPG_INLINE int mpg_is_nan64(uint64_t bits) { return (bits & ~MPG_SIGN64) > MPG_INF64; }

MPG_INLINE int mpg_lanes_any_nan(const double *x)
{
    int any = 0;
    for (int l = 0; l < MPG_LANES; l++)
        any |= mpg_is_nan64(mpg_as_bits64(x[l]));
    return any;
}

/* The first NaN of two, else the default NaN. */
MPG_INLINE double mpg_first_nan(double x, double y)
{
    const uint64_t first = mpg_as_bits64(x), second = mpg_as_bits64(y);
    return mpg_as_double(mpg_is_nan64(first)    ? first | MPG_NAN64
                         : mpg_is_nan64(second) ? second | MPG_NAN64
                                                : MPG_NAN64 | MPG_SIGN64);
}

/* nan_operand of Hopper's FP64 instructions. */
#define MPG_NAN_DMMA 2

/* NaNs at the end of multiply-adds that look for a NaN in b, then in the addend, then in a: the last NaN of b decides. Without one
 * it is the first to come: of the addend `before`, of an invalid operation, which `ahead`, the sums of the `first` products
 * before one with a NaN in a, shows, or that one. */
MPG_FROM_VECTORS static void mpg_lanes_nan_of_dmma(double *total, const double *before, const double *ahead, const double *a,
                                                   const double *b, int64_t first, int64_t count)
{
    for (int l = 0; l < MPG_LANES; l++) {
        int64_t q = count - 1;
        if (!mpg_is_nan64(mpg_as_bits64(total[l])))
            continue;
        while (q >= 0 && !mpg_is_nan64(mpg_as_bits64(b[q * MPG_LANES + l])))
            q--;
        const int invalid = first == count || mpg_is_nan64(mpg_as_bits64(ahead[l]));
        total[l] = q >= 0 ? mpg_first_nan(b[q * MPG_LANES + l], 0) : mpg_first_nan(before[l], invalid ? 0 : a[first]);
    }
}

/* NaNs among sums of x and y. */
MPG_FROM_VECTORS static void mpg_lanes_nan_of_sum(double *sum, const double *x, const double *y)
{
    for (int l = 0; l < MPG_LANES; l++)
        if (mpg_is_nan64(mpg_as_bits64(sum[l])))
            sum[l] = mpg_first_nan(x[l], y[l]);
}

/* NaNs at the end of `count` multiply-adds that began with `before`: the last product with a NaN decides, as its operands come
 * before the addend. */
MPG_FROM_VECTORS static void mpg_lanes_nan_of_chain(double *total, const double *before, const double *a, const double *b,
                                                    int64_t count)
{
    for (int l = 0; l < MPG_LANES; l++) {
        int64_t q = count - 1;
        if (!mpg_is_nan64(mpg_as_bits64(total[l])))
            continue;
        while (q >= 0 && !mpg_is_nan64(mpg_as_bits64(a[q])) && !mpg_is_nan64(mpg_as_bits64(b[q * MPG_LANES + l])))
            q--;
        total[l] = q < 0 ? mpg_first_nan(before[l], 0) : mpg_first_nan(a[q], b[q * MPG_LANES + l]);
    }
}

/* x = round(x) for exact products */
MPG_INLINE void mpg_lanes_cut(double *x, const mpg_lane_rule *f, const mpg_plan *p)
{
    double result[MPG_LANES];
    if (mpg_lanes_round(x, result, f))
        for (int l = 0; l < MPG_LANES; l++)
            result[l] = mpg_slow_sum(x[l], 0, x[l], p);
    MPG_TRACE(MPG_TRACE_LANE_CUT, 0, mpg_as_bits64(result[0]), mpg_as_bits64(x[0]), 0);
    memcpy(x, result, sizeof result);
}

MPG_INLINE void mpg_lanes_multiply(double *product, double a, const double *b)
{
    for (int l = 0; l < MPG_LANES; l++)
        product[l] = a * b[l];
}

#endif
