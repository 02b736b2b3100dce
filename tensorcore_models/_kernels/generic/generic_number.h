/* Numbers of the generic kernels: encodings are decoded, exact numbers are rounded to encodings.
 *
 * The C twin of tensorcore_models/arithmetic/numbers.py and exact_rounding.py, under the same names where possible.
 */
#ifndef MPG_GENERIC_NUMBER_H
#define MPG_GENERIC_NUMBER_H

#include <math.h>
#include <stdint.h>

#include "convert.h"

/* For scalar functions that loops over vectors call. Where GCC sees such a function inside out it calls it with the upper halves of
 * the vector registers in use, and takes them to be clear afterwards; every SSE instruction is then some twenty times slower, from
 * there to whatever next clears them. */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define MPG_FROM_VECTORS __attribute__((noipa))
#else
#define MPG_FROM_VECTORS
#endif

enum { MPG_SPECIALS_IEEE, MPG_SPECIALS_FN, MPG_SPECIALS_FNUZ, MPG_SPECIALS_FINITE, MPG_SPECIALS_SCALE };
enum { MPG_FINITE, MPG_INF, MPG_NAN };
enum { MPG_KEEP, MPG_FLUSH_SIGNED, MPG_FLUSH_POSITIVE, MPG_FLUSH_LIKE_ZERO };
/* Results that become zero: none; those encoded as subnormal numbers; those below the smallest normal number when they are rounded with
 * an unbounded exponent. */
enum { MPG_FLUSH_NONE, MPG_FLUSH_SUBNORMAL, MPG_FLUSH_TINY };

/* Trace of a sum, for a file that defines MPG_TRACE before it includes the kernels (docs/playground/kernel.c draws it). `value` and `kept`
 * have the type of the kernel's sums; in lanes, they and `index` and `exponent` are the bits of doubles.
 *   PRODUCT, GROUP, ADDEND_C  a number comes into being: position or group `index`, value 2^exponent
 *   ALIGN                     a sum in units of 2^exponent begins
 *   ADDEND                    value 2^exponent takes part in it as `kept` of these units
 *   SUM                       it ends with value 2^exponent
 *   ADD                       addend `index` (0, 1) of an IEEE addition is value 2^exponent
 *   ROUNDED                   value 2^exponent was rounded to the encoding `kept`
 *   LANE_ADD                  value + kept was rounded to `exponent`
 *   LANE_CUT                  value was rounded to `exponent`
 *   LANE_FMA                  value * kept + index was rounded to `exponent` */
enum {
    MPG_TRACE_PRODUCT,
    MPG_TRACE_GROUP,
    MPG_TRACE_ADDEND_C,
    MPG_TRACE_ALIGN,
    MPG_TRACE_ADDEND,
    MPG_TRACE_SUM,
    MPG_TRACE_ADD,
    MPG_TRACE_ROUNDED,
    MPG_TRACE_LANE_ADD,
    MPG_TRACE_LANE_CUT,
    MPG_TRACE_LANE_FMA
};
#ifndef MPG_TRACE
#define MPG_TRACE(kind, index, exponent, value, kept) ((void)0)
#endif

/* Special addends as bits, so that a sum's specials are the OR of its addends': both infinities or a NaN make a NaN. */
enum { MPG_HAS_POSITIVE_INF = 1, MPG_HAS_NEGATIVE_INF = 2, MPG_HAS_NAN = 4 };

/* Alignment exponents that are none. The lowering admits formats only whose exponents stay within 2^26, so that sums of
 * four of them, sentinels included, fit 32 bits and cannot be taken for one another. */
#define MPG_ALIGN_NONE (-(1 << 29)) /* a zero that takes no part */
#define MPG_ALIGN_INF (1 << 29)
#define MPG_ALIGN_NAN ((1 << 29) + 1)
#define MPG_TAKES_PART(align) ((align) > -(1 << 28))

/* Members of the structs that Python fills in (Plan of generic.pyx), each as MEMBER(type, name). Not formatted: the
 * formatter takes a list for an expression. */
#define MPG_MEMBER(type, name) type name;

/* clang-format off */
#define MPG_FORMAT_MEMBERS(MEMBER) \
    MEMBER(int, exponent_bits) MEMBER(int, fraction_bits) MEMBER(int, padding_bits) MEMBER(int, specials) \
    MEMBER(uint64_t, sign_bit) MEMBER(int, emin) MEMBER(int, bias) MEMBER(int, keep_padded_nan) /* edge rule tf32_nan "kept" */ \
    MEMBER(int, zero_align) /* alignment exponent of a zero, or MPG_ALIGN_NONE */ \
    MEMBER(int, normalise) /* edge rule subnormal_c "normalised" */ \
    MEMBER(int, flush) /* MPG_KEEP, or what numbers below 2^flush_below become */ \
    MEMBER(int, flush_below)
/* clang-format on */
typedef struct {
    MPG_FORMAT_MEMBERS(MPG_MEMBER)
} mpg_format;

typedef struct {
    uint64_t significand;
    int32_t exponent; /* of the significand's last bit */
    int32_t align;
    int negative, kind;
} mpg_number;

MPG_INLINE mpg_number mpg_number_of(uint64_t bits, const mpg_format *f)
{
    mpg_number x;
    const uint64_t field_mask = (UINT64_C(1) << f->exponent_bits) - 1;
    const uint64_t fraction_mask = (UINT64_C(1) << f->fraction_bits) - 1;
    const uint64_t field = (bits >> (f->fraction_bits + f->padding_bits)) & field_mask;
    const uint64_t fraction = (bits >> f->padding_bits) & fraction_mask;
    x.kind = MPG_FINITE;
    x.negative = (bits & f->sign_bit) != 0;
    if (field == field_mask) {
        if (f->specials == MPG_SPECIALS_IEEE) {
            x.kind = fraction ? MPG_NAN : MPG_INF;
            if (f->keep_padded_nan && bits & ((UINT64_C(1) << f->padding_bits) - 1))
                x.kind = MPG_NAN;
        } else if ((f->specials == MPG_SPECIALS_FN || f->specials == MPG_SPECIALS_SCALE) && fraction == fraction_mask) {
            x.kind = MPG_NAN;
        }
    }
    if (f->specials == MPG_SPECIALS_FNUZ && x.negative && field == 0 && fraction == 0)
        x.kind = MPG_NAN;
    if (field == 0 && f->specials != MPG_SPECIALS_SCALE) {
        x.significand = fraction;
        x.align = f->emin;
    } else {
        x.significand = fraction | (fraction_mask + 1);
        x.align = (int32_t)field - f->bias;
    }
    x.exponent = x.align - f->fraction_bits;
    if (x.significand == 0) {
        x.negative &= f->flush != MPG_FLUSH_POSITIVE;
        x.align = f->zero_align;
    } else if (f->normalise || f->flush) {
        const int32_t leading = x.exponent + mpg_leading_bit(x.significand);
        if (f->normalise)
            x.align = leading;
        if (f->flush && x.kind == MPG_FINITE && leading < f->flush_below) {
            x.significand = 0;
            if (f->flush == MPG_FLUSH_POSITIVE)
                x.negative = 0;
            else if (f->flush == MPG_FLUSH_LIKE_ZERO)
                x.align = f->zero_align;
        }
    }
    return x;
}

MPG_INLINE int mpg_specials_of(mpg_number x)
{
    if (x.kind == MPG_FINITE)
        return 0;
    return x.kind == MPG_NAN ? MPG_HAS_NAN : x.negative ? MPG_HAS_NEGATIVE_INF : MPG_HAS_POSITIVE_INF;
}

/* Product of an operand and its block scale: alignment exponents add up; with `skip_zero` a zero operand (not a zero scale)
 * takes no part. */
MPG_INLINE mpg_number mpg_scaled(mpg_number x, mpg_number scale, int skip_zero)
{
    mpg_number r;
    const int x_zero = x.kind == MPG_FINITE && x.significand == 0;
    const int scale_zero = scale.kind == MPG_FINITE && scale.significand == 0;
    r.negative = x.negative != scale.negative;
    r.significand = x.significand * scale.significand;
    r.exponent = x.exponent + scale.exponent;
    r.align = !MPG_TAKES_PART(x.align) || !MPG_TAKES_PART(scale.align) ? MPG_ALIGN_NONE : x.align + scale.align;
    r.kind = MPG_FINITE;
    if (x.kind == MPG_NAN || scale.kind == MPG_NAN || (x.kind == MPG_INF && scale_zero) || (scale.kind == MPG_INF && x_zero))
        r.kind = MPG_NAN;
    else if (x.kind == MPG_INF || scale.kind == MPG_INF)
        r.kind = MPG_INF;
    if (skip_zero && x_zero)
        r.align = MPG_ALIGN_NONE;
    return r;
}

/* ---- results ------------------------------------------------------------------------------------------------------- */
/* clang-format off */
#define MPG_RESULT_MEMBERS(MEMBER) \
    MEMBER(int, fraction_bits) MEMBER(int, padding_bits) MEMBER(int, quantum_exponent) MEMBER(int, emax) \
    MEMBER(uint64_t, sign_bit) MEMBER(uint64_t, zero_sign) /* sign_bit where the format has -0, else 0 */ \
    MEMBER(uint64_t, max_code) /* largest finite number without its padding */ \
    MEMBER(uint64_t, inf_code) /* infinity, or NaN in a format without it */ \
    MEMBER(uint64_t, inf_sign) /* sign_bit if that carries a sign, else 0 */
/* clang-format on */
typedef struct {
    MPG_RESULT_MEMBERS(MPG_MEMBER)
} mpg_result;

/* clang-format off */
#define MPG_RULE_MEMBERS(MEMBER) \
    MEMBER(int, rounding) MEMBER(int, kept_bits) /* fraction bits of the result, at most the format's */ \
    MEMBER(int, to_inf) /* overflow is infinity in every rounding mode */ \
    MEMBER(int, saturate) /* overflow and infinities become the largest finite number, NaN becomes zero */ \
    MEMBER(int, flush) /* MPG_FLUSH_...: which results become zero */ \
    MEMBER(int, nan_operand) /* a NaN result is a NaN operand, made quiet, the first one of (a, b, addend): 1, x86; of (b, */ \
                             /* addend, a): 2, MPG_NAN_DMMA; nan_code after an invalid operation */ \
    MEMBER(int, positive_underflow) /* nonzero sums that become zero are +0 */ \
    MEMBER(int, positive_zero) /* numbers that cancel are +0 where rounding down, too */ \
    MEMBER(uint64_t, nan_code) \
    MEMBER(uint64_t, seed) MEMBER(uint64_t, draw) /* stochastic rounding: its key, and the draw of this pass (mpg_keyed) */
/* clang-format on */
typedef struct {
    MPG_RULE_MEMBERS(MPG_MEMBER)
} mpg_rule;

MPG_INLINE uint64_t mpg_special_code(int specials, const mpg_result *t, const mpg_rule *r)
{
    const int nan = specials & MPG_HAS_NAN || (specials & 3) == 3;
    const int negative = (specials & MPG_HAS_NEGATIVE_INF) != 0;
    if (r->saturate)
        return nan ? 0 : t->max_code << t->padding_bits | (negative ? t->sign_bit : 0);
    if (nan)
        return r->nan_code;
    return t->inf_code | (negative ? t->inf_sign : 0);
}

/* Whether an inexact number goes away from zero: what is cut off is `rest` of a unit of 2 * `half`, `odd` the kept part's last
 * bit. Written without branches on the data. `rest` may have all bits where nothing is kept, and then `odd` is 0: only that is added. */
#define MPG_AWAY(rounding, rest, half, odd, negative)                                                                          \
    ((rounding) == MPG_RNE   ? (rest) + (odd) > (half)                                                                         \
     : (rounding) == MPG_RNA ? (rest) >= (half)                                                                                \
     : (rounding) == MPG_RU  ? (int)((rest) != 0) & !(negative)                                                                \
     : (rounding) == MPG_RD  ? (int)((rest) != 0) & (negative)                                                                 \
     : (rounding) == MPG_RO  ? (int)((rest) != 0) & !(odd)                                                                     \
     : (rounding) == MPG_RA  ? (rest) != 0                                                                                     \
     : (rounding) == MPG_RNU ? (rest) > (half) - !(negative)                                                                   \
     : (rounding) == MPG_RND ? (rest) > (half) - !!(negative)                                                                  \
     : (rounding) == MPG_RNZ ? (rest) > (half)                                                                                 \
     : (rounding) == MPG_RNO ? (rest) > (half) - !(odd)                                                                        \
                             : 0)

/* Whether the first 32 bits of what is cut off below `shift` exceed a draw. */
MPG_INLINE int mpg_exceeds_draw(uint64_t magnitude, int64_t shift, uint64_t draw)
{
    const uint64_t rest = shift < 64 ? magnitude & ((UINT64_C(1) << shift) - 1) : magnitude;
    return (shift <= 32 ? rest << (32 - shift) : shift - 32 < 64 ? rest >> (shift - 32) : 0) > draw;
}

/* Encode (-1)^negative * (magnitude + something in (0, 1) if sticky) * 2^exponent, magnitude > 0. With `sticky` the
 * magnitude's top bit must be set: as formats here have at most 62 significand bits, the last bit may then hold it. */
MPG_INLINE uint64_t mpg_encode_number(int negative, uint64_t magnitude, int sticky, int64_t exponent, const mpg_result *t,
                                      const mpg_rule *r)
{
    const int up = 63 - mpg_leading_bit(magnitude);
    const int64_t leading = exponent + 63 - up;
    uint64_t code = 0;
    int overflow = leading > t->emax;
    if (!overflow) {
        const int64_t emin = (int64_t)t->quantum_exponent + t->fraction_bits;
        const int unbounded = r->flush == MPG_FLUSH_TINY;
        const int64_t below = leading < emin && !unbounded ? emin - leading : 0; /* places that a subnormal result lacks */
        const int64_t shift = 63 - r->kept_bits + below;                         /* at least 2 */
        uint64_t kept, rest, half;
        magnitude = magnitude << up | (uint64_t)sticky;
        if (shift < 64) {
            kept = magnitude >> shift;
            rest = magnitude - (kept << shift);
            half = UINT64_C(1) << (shift - 1);
        } else {
            kept = 0;
            rest = shift == 64 ? magnitude : 1;
            half = UINT64_C(1) << 63;
        }
        kept += r->rounding == MPG_SR ? (uint64_t)mpg_exceeds_draw(magnitude, shift, r->draw)
                                      : (uint64_t)(MPG_AWAY(r->rounding, rest, half, kept & 1, negative));
        if (unbounded && leading + (int64_t)(kept >> (r->kept_bits + 1)) < emin)
            return negative && !r->positive_underflow ? t->zero_sign : 0;
        /* The hidden bit of the kept number adds 1 to the exponent field below; so does a carry out of the fraction. */
        code = ((uint64_t)(below ? 0 : leading - emin) << t->fraction_bits) + (kept << (t->fraction_bits - r->kept_bits));
        overflow = code > t->max_code;
    }
    if (overflow) {
        const int m = r->rounding;
        const int toward_zero = m == MPG_RZ || m == MPG_RO || (m == MPG_RU && negative) || (m == MPG_RD && !negative);
        if (r->saturate || (toward_zero && !r->to_inf))
            return t->max_code << t->padding_bits | (negative ? t->sign_bit : 0);
        return t->inf_code | (negative ? t->inf_sign : 0);
    }
    if (r->flush == MPG_FLUSH_SUBNORMAL && code < UINT64_C(1) << t->fraction_bits)
        code = 0;
    if (code == 0)
        return negative && !r->positive_underflow ? t->zero_sign : 0;
    return code << t->padding_bits | (negative ? t->sign_bit : 0);
}

#endif
