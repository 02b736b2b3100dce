/* Rounding binary floating-point numbers to any format of up to 64 bits, and back.
 *
 * mpg_encode_one is the general algorithm: any format, any mode, one rounding from the source. mpg_narrow_* is the same
 * result for float32 sources and the common modes without branches, so that compilers vectorise it; it needs the default
 * floating-point environment. Both are tested against tensorcore_models/formats/exact_rounding.py.
 */
#ifndef MPG_CONVERT_H
#define MPG_CONVERT_H

#include <stdint.h>
#include <string.h>

#include "bits.h"

enum { MPG_RNE, MPG_RNA, MPG_RZ, MPG_RU, MPG_RD, MPG_RO, MPG_SR, MPG_RA, MPG_RNU, MPG_RND, MPG_RNZ, MPG_RNO };
/* Conversion of NaN: an error, nan_code, nan_code with the source's sign, or with its sign and its payload's leading bits. */
enum { MPG_NAN_ERROR, MPG_NAN_CONSTANT, MPG_NAN_SIGNED, MPG_NAN_PAYLOAD };

typedef struct {
    int fraction_bits;
    int padding_bits;
    int is_signed;
    int is_scale;             /* no zero, no subnormals, no fraction (ue8m0) */
    int64_t quantum_exponent; /* exponent of the smallest positive number */
    int64_t emax;
    uint64_t sign_bit;
    uint64_t zero_sign; /* sign_bit where the format has -0, else 0 */
    uint64_t max_bits;  /* encoding of the largest finite number */
    uint64_t inf_code;  /* what an infinity or an overflow that rounds away from zero becomes */
    uint64_t inf_sign;  /* sign_bit if it carries a sign, else 0 */
    int inf_error;      /* ... or that it has no encoding */
    int saturate;
    uint64_t nan_code;
    int nan_rule;
    int rounding;
    int flush;     /* results below the smallest normal number become zero */
    int64_t scale; /* the source is multiplied by 2^scale, exactly, first */
    uint64_t seed; /* stochastic rounding: mpg_mix64 of the seed */
} mpg_target;

/* ---- bits ---------------------------------------------------------------------------------------------------------- */
MPG_INLINE int mpg_leading_bit(uint64_t x) /* x > 0 */
{
#if defined(__GNUC__) || defined(__clang__)
    return 63 - __builtin_clzll(x);
#else
    int n = 0;
    while (x >>= 1)
        n++;
    return n;
#endif
}

/* The finaliser of SplitMix64 (Steele, Lea, Flood 2014). */
MPG_INLINE uint64_t mpg_mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* The draw of element `index`: the upper half of output index + 1 of SplitMix64 started at seed. */
MPG_INLINE uint32_t mpg_draw(uint64_t seed, uint64_t index)
{
    return (uint32_t)(mpg_mix64(seed + (index + 1) * UINT64_C(0x9E3779B97F4A7C15)) >> 32);
}

/* ---- the general algorithm ----------------------------------------------------------------------------------------- */
MPG_INLINE int mpg_rounds_up(uint64_t kept, uint64_t rest, int64_t shift, int negative, int rounding, uint32_t draw)
{
    /* rest > 0 and shift > 0; `above` compares rest with half a unit: 1, 0, -1 */
    int above;
    if (shift > 64) {
        above = -1;
    } else {
        uint64_t half = UINT64_C(1) << (shift - 1);
        above = (rest > half) - (rest < half);
    }
    switch (rounding) {
    case MPG_RNE:
        return above > 0 || (above == 0 && (kept & 1));
    case MPG_RNA:
        return above >= 0;
    case MPG_RA:
        return 1;
    case MPG_RNU:
        return above > 0 || (above == 0 && !negative);
    case MPG_RND:
        return above > 0 || (above == 0 && negative);
    case MPG_RNZ:
        return above > 0;
    case MPG_RNO:
        return above > 0 || (above == 0 && !(kept & 1));
    case MPG_RU:
        return !negative;
    case MPG_RD:
        return negative;
    case MPG_RO:
        return !(kept & 1);
    case MPG_SR: {
        uint64_t leading; /* the first 32 bits of the discarded fraction */
        if (shift <= 32)
            leading = rest << (32 - shift);
        else
            leading = shift - 32 < 64 ? rest >> (shift - 32) : 0;
        return leading > draw;
    }
    default:
        return 0;
    }
}

/* Encode one double given by its bits. Returns 0, or 1 if the format has no encoding for it. */
MPG_INLINE int mpg_encode_one(uint64_t source, uint64_t index, const mpg_target *t, uint64_t *result)
{
    const int negative = (int)(source >> 63);
    const uint64_t sign = negative ? t->sign_bit : 0;
    int64_t field = (int64_t)((source >> 52) & 0x7FF);
    uint64_t significand = source & UINT64_C(0xFFFFFFFFFFFFF);

    if (field == 0x7FF) {
        if (significand) {
            if (t->nan_rule == MPG_NAN_ERROR)
                return 1;
            *result = t->nan_code | (t->nan_rule >= MPG_NAN_SIGNED ? sign : 0);
            if (t->nan_rule == MPG_NAN_PAYLOAD) {
                int shift = 52 - t->fraction_bits;
                *result |= (shift >= 0 ? significand >> shift : significand << -shift) << t->padding_bits;
            }
            return 0;
        }
        if (t->inf_error || (negative && !t->is_signed))
            return 1;
        *result = t->inf_code | (sign & t->inf_sign);
        return 0;
    }
    if (field == 0 && significand == 0) {
        *result = sign & t->zero_sign;
        return t->is_scale;
    }
    if (negative && !t->is_signed)
        return 1;
    if (field)
        significand |= UINT64_C(1) << 52;
    else
        field = 1;

    const int64_t exponent = field - 1075 + t->scale; /* of the significand's last bit */
    const int64_t leading = exponent + mpg_leading_bit(significand);
    int overflow = leading > t->emax;
    uint64_t code = 0;
    if (!overflow) {
        int64_t quantum = leading - t->fraction_bits;
        if (quantum < t->quantum_exponent)
            quantum = t->quantum_exponent;
        const int64_t shift = quantum - exponent;
        uint64_t rounded;
        if (shift <= 0) {
            rounded = significand << -shift; /* at most fraction_bits + 1 <= 64 bits */
        } else {
            uint64_t kept = shift < 64 ? significand >> shift : 0;
            uint64_t rest = shift < 64 ? significand - (kept << shift) : significand;
            uint32_t draw = t->rounding == MPG_SR && rest ? mpg_draw(t->seed, index) : 0;
            rounded = kept + (rest && mpg_rounds_up(kept, rest, shift, negative, t->rounding, draw));
        }
        /* The hidden bit of `rounded` adds 1 to the field below; so does a carry out of the fraction. */
        code = ((uint64_t)(quantum - t->quantum_exponent) << t->fraction_bits) + rounded;
        if (t->is_scale)
            code -= rounded != 0; /* field 0 is a number like the others */
        else if (t->flush && code < UINT64_C(1) << t->fraction_bits)
            code = 0;
        overflow = code > t->max_bits >> t->padding_bits;
    }
    if (overflow) {
        const int r = t->rounding;
        if (t->saturate || r == MPG_RZ || r == MPG_RO || (r == MPG_RU && negative) || (r == MPG_RD && !negative)) {
            *result = sign | t->max_bits;
            return 0;
        }
        *result = t->inf_code | (sign & t->inf_sign);
        return t->inf_error;
    }
    *result = (code << t->padding_bits) | (code == 0 ? sign & t->zero_sign : sign);
    return 0;
}

MPG_INLINE void mpg_store(void *out, int size, int64_t i, uint64_t code)
{
    switch (size) {
    case 1:
        ((uint8_t *)out)[i] = (uint8_t)code;
        break;
    case 2:
        ((uint16_t *)out)[i] = (uint16_t)code;
        break;
    case 4:
        ((uint32_t *)out)[i] = (uint32_t)code;
        break;
    default:
        ((uint64_t *)out)[i] = code;
        break;
    }
}

/* Elements [begin, end) of float (source_size 4) or double (8); `first_index` is the flat index of element 0.
 * Returns the first element that has no encoding, or -1. */
static int64_t mpg_encode_range(const void *source, int source_size, void *out, int out_size, int64_t begin, int64_t end,
                                uint64_t first_index, const mpg_target *t)
{
    for (int64_t i = begin; i < end; i++) {
        uint64_t code = 0;
        const double value = source_size == 4 ? (double)((const float *)source)[i] : ((const double *)source)[i];
        if (mpg_encode_one(mpg_as_bits64(value), first_index + (uint64_t)i, t, &code))
            return i;
        mpg_store(out, out_size, i, code);
    }
    return -1;
}

/* ---- float32 to a narrower format, branch-free --------------------------------------------------------------------- */
typedef struct {
    uint32_t below_half; /* added before the shift; with odd_mask that is round to nearest even */
    uint32_t odd_mask;
    int shift;
    uint32_t rebias;     /* subtracted after the shift */
    uint32_t min_normal; /* float bits below which the result is subnormal; 0 if both share the exponent range */
    float magic;         /* adding it rounds to the quantum of the subnormals */
    uint32_t magic_bits;
    uint32_t truncate; /* 1: subnormals that the addition rounded up go back by one quantum */
    uint32_t flush_below;
    uint32_t max_code, overflow_code, overflow_sign, inf_code, inf_sign, nan_code, nan_sign, payload_mask, negative_zero;
    int padding, sign_shift;
    uint32_t sign_bit;
} mpg_narrow;

/* Whether the branch-free form covers `t`; fills `n` if so. */
static int mpg_narrow_prepare(const mpg_target *t, int bits, mpg_narrow *n)
{
    const int64_t emin = t->quantum_exponent + t->fraction_bits;
    const int same_range = emin == -126;
    const int nearest_even = t->rounding == MPG_RNE;
    /* without fraction bits the last bit of an encoding is the exponent's: it does not say whether the number is even */
    if (t->is_scale || !t->is_signed || t->fraction_bits < 1 || t->fraction_bits > 23 || bits > 32 || t->scale != 0)
        return 0;
    if (t->nan_rule == MPG_NAN_ERROR || t->inf_error || emin < -126 || emin > 64 || t->emax > 127)
        return 0;
    if (!nearest_even && t->rounding != MPG_RZ && !(same_range && t->rounding == MPG_RNA))
        return 0;
    if (!same_range && t->quantum_exponent < -149)
        return 0;
    const uint32_t half = t->fraction_bits < 23 ? UINT32_C(1) << (22 - t->fraction_bits) : 0;
    n->shift = 23 - t->fraction_bits;
    n->below_half = t->rounding == MPG_RZ ? 0 : (t->rounding == MPG_RNA ? half : (half ? half - 1 : 0));
    n->odd_mask = nearest_even && half ? 1 : 0;
    n->rebias = (uint32_t)(emin + 126) << t->fraction_bits;
    n->min_normal = same_range ? 0 : (uint32_t)(emin + 127) << 23;
    n->magic_bits = same_range ? 0 : (uint32_t)(t->quantum_exponent + 23 + 127) << 23;
    n->magic = mpg_as_float(n->magic_bits);
    n->truncate = t->rounding == MPG_RZ ? 1 : 0;
    n->flush_below = t->flush ? UINT32_C(1) << t->fraction_bits : 0;
    n->max_code = (uint32_t)(t->max_bits >> t->padding_bits);
    n->inf_code = (uint32_t)t->inf_code;
    n->inf_sign = (uint32_t)t->inf_sign;
    if (t->saturate || t->rounding == MPG_RZ) {
        n->overflow_code = (uint32_t)t->max_bits;
        n->overflow_sign = (uint32_t)t->sign_bit;
    } else {
        n->overflow_code = n->inf_code;
        n->overflow_sign = n->inf_sign;
    }
    n->nan_code = (uint32_t)t->nan_code;
    n->nan_sign = t->nan_rule >= MPG_NAN_SIGNED ? (uint32_t)t->sign_bit : 0;
    n->payload_mask = t->nan_rule == MPG_NAN_PAYLOAD ? (UINT32_C(1) << t->fraction_bits) - 1 : 0;
    n->negative_zero = t->zero_sign ? 0xFFFFFFFFu : 0;
    n->padding = t->padding_bits;
    n->sign_shift = 32 - bits;
    n->sign_bit = (uint32_t)t->sign_bit;
    return 1;
}

MPG_INLINE uint32_t mpg_narrow_one(uint32_t source, const mpg_narrow *n)
{
    const uint32_t a = source & 0x7FFFFFFFu;
    const uint32_t sign = (source >> n->sign_shift) & n->sign_bit;
    const uint32_t normal = ((a + n->below_half + ((a >> n->shift) & n->odd_mask)) >> n->shift) - n->rebias;
    const float value = mpg_as_float(a), sum = value + n->magic;
    const uint32_t subnormal = mpg_as_bits(sum) - n->magic_bits - (n->truncate & (uint32_t)(sum - n->magic > value));
    /* Everything compared is below 2^31: signed comparisons, which every vector unit has. */
    uint32_t code = MPG_SELECT((int32_t)a < (int32_t)n->min_normal, subnormal, normal);
    code = MPG_SELECT((int32_t)code < (int32_t)n->flush_below, 0u, code);
    const uint32_t kept_sign = sign & (n->negative_zero | (0u - (uint32_t)(code != 0)));
    uint32_t result = (code << n->padding) | kept_sign;
    result = MPG_SELECT((int32_t)code > (int32_t)n->max_code, n->overflow_code | (sign & n->overflow_sign), result);
    result = MPG_SELECT(a == 0x7F800000u, n->inf_code | (sign & n->inf_sign), result);
    const uint32_t nan = n->nan_code | (sign & n->nan_sign) | (((a >> n->shift) & n->payload_mask) << n->padding);
    return MPG_SELECT((int32_t)a > 0x7F800000, nan, result);
}

/* Codes of `size` bytes, a constant. */
MPG_INLINE void mpg_narrow_codes(const uint32_t *MPG_RESTRICT source, void *MPG_RESTRICT out, int size, int64_t count,
                                 const mpg_narrow *parameters)
{
    const mpg_narrow n = *parameters;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t code = mpg_narrow_one(source[i], &n);
        if (size == 1)
            ((uint8_t *)out)[i] = (uint8_t)code;
        else if (size == 2)
            ((uint16_t *)out)[i] = (uint16_t)code;
        else
            ((uint32_t *)out)[i] = code;
    }
}

MPG_INLINE void mpg_narrow_range_body(int level, const void *source, void *out, int out_size, int64_t begin, int64_t end,
                                      const mpg_narrow *n)
{
    const uint32_t *from = (const uint32_t *)source + begin;
    char *to = (char *)out + begin * out_size;
    if (out_size == 1)
        mpg_narrow_codes(from, to, 1, end - begin, n);
    else if (out_size == 2)
        mpg_narrow_codes(from, to, 2, end - begin, n);
    else
        mpg_narrow_codes(from, to, 4, end - begin, n);
}

MPG_VARIANTS(mpg_narrow_range, (source, out, out_size, begin, end, n), const void *source, void *out, int out_size,
             int64_t begin, int64_t end, const mpg_narrow *n)

/* ---- decoding ------------------------------------------------------------------------------------------------------ */
typedef struct {
    int exponent_bits, fraction_bits, padding_bits, bits;
    int is_ieee, is_fn, is_fnuz, is_scale;
    int64_t quantum_exponent;
    uint64_t sign_bit;
} mpg_encoding;

/* The double of one encoding, by its bits. Returns 0; 1 if no double has that value; 2 if the encoding has stray bits. */
MPG_INLINE int mpg_decode_one(uint64_t bits, const mpg_encoding *f, uint64_t *result)
{
    const uint64_t all_ones = (UINT64_C(1) << (f->exponent_bits + f->fraction_bits)) - 1; /* at most 64 bits: see below */
    const uint64_t sign = bits & f->sign_bit ? UINT64_C(1) << 63 : 0;
    const uint64_t magnitude = (bits >> f->padding_bits) & all_ones;
    const uint64_t fraction = magnitude & ((UINT64_C(1) << f->fraction_bits) - 1);
    int64_t field = (int64_t)(magnitude >> f->fraction_bits);
    const int to_double = 52 - f->fraction_bits;

    if (f->bits < 64 && bits >> f->bits)
        return 2;
    if (f->is_ieee && field == (INT64_C(1) << f->exponent_bits) - 1) {
        *result = sign | UINT64_C(0x7FF0000000000000);
        if (fraction) { /* quiet, with the payload's leading bits */
            uint64_t payload = to_double >= 0 ? fraction << to_double : fraction >> -to_double;
            *result |= UINT64_C(0x0008000000000000) | payload;
        }
        return 0;
    }
    if (((f->is_fn || f->is_scale) && magnitude == all_ones) || (f->is_fnuz && sign && magnitude == 0)) {
        *result = (f->is_fnuz ? 0 : sign) | UINT64_C(0x7FF8000000000000);
        return 0;
    }
    uint64_t significand = fraction;
    if (f->is_scale)
        significand = 1;
    else if (field)
        significand |= UINT64_C(1) << f->fraction_bits, field--;
    if (significand == 0) {
        *result = sign;
        return 0;
    }
    /* value = significand * 2^(field + quantum_exponent); exact in double or refused */
    int64_t exponent = field + f->quantum_exponent;
    int length = mpg_leading_bit(significand);
    const int64_t leading = exponent + length;
    if (leading > 1023 || leading < -1074)
        return 1;
    const int64_t quantum = leading - 52 < -1074 ? -1074 : leading - 52;
    const int64_t shift = quantum - exponent; /* to the unit of the double */
    if (shift > 0) {
        if (shift > 63 || significand & ((UINT64_C(1) << shift) - 1))
            return 1;
        significand >>= shift;
    } else {
        significand <<= -shift;
    }
    *result = sign | (((uint64_t)(quantum + 1074) << 52) + significand);
    return 0;
}

MPG_INLINE uint64_t mpg_load(const void *source, int size, int64_t i)
{
    switch (size) {
    case 1:
        return ((const uint8_t *)source)[i];
    case 2:
        return ((const uint16_t *)source)[i];
    case 4:
        return ((const uint32_t *)source)[i];
    default:
        return ((const uint64_t *)source)[i];
    }
}

/* Elements [begin, end) to float (out_size 4) or double (8). Returns the first element that has no such value, or -1. */
static int64_t mpg_decode_range(const void *source, int source_size, void *out, int out_size, int64_t begin, int64_t end,
                                const mpg_encoding *f)
{
    for (int64_t i = begin; i < end; i++) {
        uint64_t bits = 0;
        if (mpg_decode_one(mpg_load(source, source_size, i), f, &bits))
            return i;
        const double value = mpg_as_double(bits);
        if (out_size == 8) {
            ((double *)out)[i] = value;
        } else {
            float narrow = (float)value;
            if ((double)narrow != value && value == value)
                return i;
            ((float *)out)[i] = narrow;
        }
    }
    return -1;
}

/* Elements [begin, end) through a table of all encodings (at most 16 bits). */
static void mpg_lookup_range(const void *source, int source_size, const void *table, void *out, int out_size, int64_t begin,
                             int64_t end)
{
    if (source_size == 1 && out_size == 4)
#pragma GCC unroll 4
        for (int64_t i = begin; i < end; i++)
            ((float *)out)[i] = ((const float *)table)[((const uint8_t *)source)[i]];
    else if (source_size == 1)
#pragma GCC unroll 4
        for (int64_t i = begin; i < end; i++)
            ((double *)out)[i] = ((const double *)table)[((const uint8_t *)source)[i]];
    else if (out_size == 4)
#pragma GCC unroll 4
        for (int64_t i = begin; i < end; i++)
            ((float *)out)[i] = ((const float *)table)[((const uint16_t *)source)[i]];
    else
#pragma GCC unroll 4
        for (int64_t i = begin; i < end; i++)
            ((double *)out)[i] = ((const double *)table)[((const uint16_t *)source)[i]];
}

#endif
