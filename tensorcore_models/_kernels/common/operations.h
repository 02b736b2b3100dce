/* Operations of vector lanes for one instruction set, each with its contract: what it may be given (in a build with MPG_CHECK it looks)
 * and what it gives, in integers. A header of lanes includes this file and then its own text once for each instruction set, with
 *   LANES_LEVEL   an instruction set of cpu.h.
 * OP(x) is the name x of that set, VF its vector of float32, VI of int32, VSCALE what in_units takes, VLANES their length; VU8 and VU16
 * are VBYTES and 16 bytes. VD is its vector of VDLANES doubles, VL of int64, VW of 4 VDLANES int16. + - * & | ^ ~, << and >> by a constant,
 * and == on VI and VL are the language's, on lanes; nothing may overflow.
 * operations_plain.h, operations_avx2.h and operations_avx512.h have the instructions (RAW(x)).
 *
 * A field is the exponent field of a float32 in its place: an integer times 2^23, from 0 to 254. Where VNAMED is 0, operations named
 * `chopped` and `fp16` ask that the CPU rounds toward zero; where it is 1 they name their rounding. VIN_TURN(x) after each addition to x
 * keeps the order of a long sum: compilers add in trees, for which AVX2 has too few registers. With AVX-512's it gains less than it costs.
 */
#undef OP
#undef RAW
#undef OP_FN
#undef OP_TARGET
#undef OP_SET
#undef VNAMED
#undef VIN_TURN
#undef VLANES
#undef VBYTES
#undef VPRESCALE
#undef VDLANES
#undef OP_FIRST

#if MPG_X86_VARIANTS && LANES_LEVEL == MPG_ISA_AVX512
#define OP(name) MPG_JOIN(mpg_##name, _avx512)
#define RAW(name) MPG_JOIN(mpg_##name, _raw_avx512)
#define OP_TARGET MPG_TARGET_AVX512
#define OP_SET " (AVX-512)"
#define VNAMED 1
#define VIN_TURN(x) (void)0
#define VLANES MPG_LANES_AVX512
#define VBYTES MPG_BYTES_AVX512
#define VPRESCALE MPG_PRESCALE_AVX512
#define VDLANES MPG_DOUBLES_AVX512
#include "operations_avx512.h"
#ifndef MPG_OPERATIONS_OF_AVX512
#define MPG_OPERATIONS_OF_AVX512
#define OP_FIRST
#endif
#elif MPG_X86_VARIANTS && LANES_LEVEL == MPG_ISA_AVX2
#define OP(name) MPG_JOIN(mpg_##name, _avx2)
#define RAW(name) MPG_JOIN(mpg_##name, _raw_avx2)
#define OP_TARGET MPG_TARGET_AVX2
#define OP_SET " (AVX2)"
#define VNAMED 0
#define VIN_TURN(x) __asm__("" : "+x"(x))
#define VLANES MPG_LANES_AVX2
#define VBYTES MPG_BYTES_AVX2
#define VPRESCALE MPG_PRESCALE_AVX2
#define VDLANES MPG_DOUBLES_AVX2
#include "operations_avx2.h"
#ifndef MPG_OPERATIONS_OF_AVX2
#define MPG_OPERATIONS_OF_AVX2
#define OP_FIRST
#endif
#else
#define OP(name) MPG_JOIN(mpg_##name, _plain)
#define RAW(name) MPG_JOIN(mpg_##name, _raw_plain)
#define OP_TARGET
#define OP_SET " (plain C)"
#define VNAMED 0
#define VIN_TURN(x) (void)0
#define VLANES MPG_LANES_PLAIN
#define VBYTES MPG_BYTES_PLAIN
#define VPRESCALE MPG_PRESCALE_PLAIN
#define VDLANES MPG_DOUBLES_PLAIN
#include "operations_plain.h"
#ifndef MPG_OPERATIONS_OF_PLAIN
#define MPG_OPERATIONS_OF_PLAIN
#define OP_FIRST
#endif
#endif

#undef VF
#undef VI
#undef VU8
#undef VU16
#undef VSCALE
#undef VD
#undef VL
#undef VW
#define VD OP(f64)
#define VL OP(i64)
#define VW OP(i16)
#define VF OP(f32)
#define VI OP(i32)
#define VU8 OP(u8)
#define VU16 OP(u16)
#define VSCALE OP(scale)
#define OP_FN OP_TARGET MPG_INLINE

#ifdef OP_FIRST
/* ---- any lanes ------------------------------------------------------------------------------------------------------ */
#if VNAMED
/* The first `count` lanes; numbers of some lanes from memory, zeros in the others; some lanes to memory. */
OP_FN OP(mask) OP(first)(int count) { return RAW(first)(count); }
OP_FN VF OP(some)(const float *from, OP(mask) lanes) { return RAW(some)(from, lanes); }
OP_FN void OP(put_some)(float *to, VF x, OP(mask) lanes) { RAW(put_some)(to, x, lanes); }
#endif
OP_FN VF OP(load)(const float *from)
{
    VF x;
    memcpy(&x, from, sizeof x);
    return x;
}
OP_FN void OP(store)(float *to, VF x) { memcpy(to, &x, sizeof x); }
/* The same number in every lane. */
OP_FN VI OP(all)(int32_t x) { return RAW(all)(x); }
OP_FN VF OP(allf)(float x) { return RAW(allf)(x); }
/* The encodings of numbers. */
OP_FN VI OP(bits)(VF x) { return RAW(bits)(x); }
/* The larger of two; the magnitude, of INT_MIN itself; x where a > b, else 0; bit l for each lane l that is negative. */
OP_FN VI OP(larger)(VI x, VI y) { return RAW(larger)(x, y); }
OP_FN VI OP(magnitude)(VI x) { return RAW(magnitude)(x); }
OP_FN VI OP(where_more)(VI x, VI a, VI b) { return RAW(where_more)(x, a, b); }
OP_FN unsigned OP(negative)(VI x) { return RAW(negative)(x); }
/* -1 where x and y differ, else 0. */
OP_FN VI OP(unlike)(VF x, VF y) { return RAW(unlike)(x, y); }
/* Sums and differences modulo 2^32. */
OP_FN VI OP(add)(VI x, VI y) { return (VI)((OP(unsigned))x + (OP(unsigned))y); }
OP_FN VI OP(sub)(VI x, VI y) { return (VI)((OP(unsigned))x - (OP(unsigned))y); }
/* c + x, and where that is beyond int32 the largest number of its sign. */
OP_FN VI OP(add_clamped)(VI c, VI x)
{
    const VI total = OP(add)(c, x), over = ((c ^ total) & (x ^ total)) >> 31; /* the sum has the sign of neither */
    return total ^ ((total ^ (c >> 31) ^ OP(all)(INT32_MAX)) & over);
}
/* Sums modulo 2^32 of the products of two neighbouring words of int16. */
OP_FN VI OP(pair_products)(VI x, VI y) { return RAW(pair_products)(x, y); }
/* int32 from memory; the first `count` of VLANES, zeros in the other lanes (count may be negative or too large); those to memory. */
OP_FN VI OP(load_integers)(const void *from)
{
    VI x;
    memcpy(&x, from, sizeof x);
    return x;
}
OP_FN VI OP(some_integers)(const int32_t *from, int count) { return RAW(some_integers)(from, count); }
OP_FN void OP(put_some_integers)(int32_t *to, VI x, int count) { RAW(put_some_integers)(to, x, count); }
/* Bytes: a 32-bit word again and again, from its lowest byte on; the larger of `top` and x - y, or of `top` and 0. */
OP_FN VU8 OP(words)(uint32_t word) { return RAW(words)(word); }
OP_FN VU16 OP(words16)(uint32_t word) { return RAW(words16)(word); }
OP_FN VU8 OP(most)(VU8 top, VU8 x, VU8 y) { return RAW(most)(top, x, y); }
OP_FN VU16 OP(most16)(VU16 top, VU16 x, VU16 y) { return RAW(most16)(top, x, y); }
/* VLANES bytes as fields; with 16 lanes, also those of a vector, and a quarter of 64 bytes. */
OP_FN VI OP(fields)(const uint8_t *bytes) { return RAW(fields)(bytes); }
#if VNAMED
OP_FN VI OP(fields_of)(VU16 bytes) { return RAW(fields_of)(bytes); }
OP_FN VU16 OP(quarter)(VU8 x, int i) { return RAW(quarter)(x, i); }
#endif

/* ---- lanes of a domain ---------------------------------------------------------------------------------------------- */
/* 2^(x / 2^23 - 127) of a field x that is not 0; 0 of 0. */
OP_FN VF OP(power)(VI x)
{
    MPG_LANES_DOMAIN("power" OP_SET, int32_t, x, x >= 0 && x <= 254 << 23 && (x & 0x7FFFFF) == 0);
    return RAW(value)(x);
}
/* The number whose encoding is x, a number. */
OP_FN VF OP(value)(VI x)
{
    MPG_LANES_DOMAIN("value" OP_SET, int32_t, x, (x & 0x7FFFFFFF) < 0x7F800000);
    return RAW(value)(x);
}
/* x, a whole number of at most 31 bits after truncation, truncated. */
OP_FN VI OP(truncated)(VF x)
{
    MPG_LANES_DOMAIN("truncated" OP_SET, float, x, x > -0x1p31f && x < 0x1p31f);
    return RAW(truncated)(x);
}
/* The largest integer that is not above x. */
OP_FN VI OP(floored)(VF x)
{
    MPG_LANES_DOMAIN("floored" OP_SET, float, x, x > -0x1p31f && x < 0x1p31f);
    return RAW(floored)(x);
}
/* An integer truncated to 24 bits; a sum of numbers truncated to 24 bits. */
OP_FN VF OP(chopped)(VI x) { return RAW(chopped)(x); }
OP_FN VF OP(add_chopped)(VF x, VF y)
{
    MPG_LANES_DOMAIN2("add_chopped" OP_SET, float, x, y, x + y > -0x1p127f && x + y < 0x1p127f);
    return RAW(add_chopped)(x, y);
}
/* x, which is y truncated to 24 bits, with its last bit set where it is not y: y to 24 bits, rounded to odd. */
OP_FN VF OP(odd)(VF x, VI y)
{
    MPG_LANES_DOMAIN("odd" OP_SET, float, x, x > -0x1p31f && x < 0x1p31f);
    return RAW(odd)(x, y);
}
/* The scale of units of 2^(top - F), top a field above that of 0, F = fraction_bits. */
OP_FN VSCALE OP(scale_of)(VI top, int fraction_bits)
{
    MPG_DOMAIN("scale_of, fraction_bits" OP_SET, int, fraction_bits, x >= 0 && x <= 25);
    MPG_LANES_DOMAIN("scale_of" OP_SET, int32_t, top, x > fraction_bits << 23 && x <= 254 << 23 && (x & 0x7FFFFF) == 0);
    return RAW(scale_of)(top, fraction_bits);
}
/* Of a scale and the `top` and `fraction_bits` that it was made of: 2^(F - top), which makes units of numbers; the unit 2^(top - F). */
OP_FN VF OP(factor_of)(VSCALE scale, VI top, int fraction_bits) { return RAW(factor_of)(scale, top, fraction_bits); }
OP_FN VF OP(unit_of)(VSCALE scale, VI top, int fraction_bits) { return RAW(unit_of)(scale, top, fraction_bits); }
/* a b truncated to its unit, in units; a is a factor times 2^-VPRESCALE. A product of factors is 0 or has a field of at most `top` and at
 * most 22 bits, and is from 2^-67 to below 2^33. */
OP_FN VI OP(in_units)(VF a, VF b, VSCALE scale)
{
#ifdef MPG_CHECK
    const VF product = a * b;
    MPG_LANES_DOMAIN("in_units" OP_SET, float, product,
                     (x == 0 || x >= 0x1p-100f || x <= -0x1p-100f) && x < 0x1p33f && x > -0x1p33f);
#endif
    return RAW(in_units)(a, b, scale);
}
/* x to the nearest fp16 number, ties to even, as a number; of 2^16 or more where fp16 has none. -0 becomes +0. x has at most 24 bits. */
OP_FN VF OP(fp16)(VF x)
{
    MPG_LANES_DOMAIN("fp16" OP_SET, float, x, x > -0x1p100f && x < 0x1p100f);
    return RAW(fp16)(x);
}
/* Bit l for each lane l of 2^16 or more in magnitude; zeros in the lanes of such bits. */
OP_FN unsigned OP(beyond_fp16)(VF x) { return RAW(beyond_fp16)(x); }
OP_FN VF OP(without)(VF x, unsigned lanes) { return RAW(without)(x, lanes); }
/* x / 2^n rounded down; x as unsigned / 2^n rounded down; x 2^n modulo 2^32. */
OP_FN VI OP(right)(VI x, VI n)
{
    MPG_LANES_DOMAIN("right" OP_SET, int32_t, n, x >= 0);
    return RAW(right)(x, n);
}
OP_FN VI OP(right_logical)(VI x, VI n)
{
    MPG_LANES_DOMAIN("right_logical" OP_SET, int32_t, n, x >= 0);
    return RAW(right_logical)(x, n);
}
OP_FN VI OP(left)(VI x, VI n)
{
    MPG_LANES_DOMAIN("left" OP_SET, int32_t, n, x >= 0);
    return RAW(left)(x, n);
}
/* a b + c, integers below 2^53 all three, rounded once as the CPU is told to. */
OP_FN VF OP(madd)(VF a, VF b, VF c) { return RAW(madd)(a, b, c); }

/* ---- doubles, and their words of 16 bits ------------------------------------------------------------------------------ */
/* Word g of each 64-bit lane of a VW is of that lane's number in vector g of four. */
OP_FN VD OP(load64)(const double *from)
{
    VD x;
    memcpy(&x, from, sizeof x);
    return x;
}
OP_FN VW OP(load_words)(const int16_t *from)
{
    VW x;
    memcpy(&x, from, sizeof x);
    return x;
}
/* The first `count` of VDLANES float32 numbers, zeros in the other lanes (count may be negative or too large); those to memory. */
OP_FN VD OP(some64)(const float *from, int count) { return RAW(some64)(from, count); }
OP_FN void OP(put_some64)(float *to, VD x, int count) { RAW(put_some64)(to, x, count); }
/* The same number, encoding, word or pair of words in every lane. */
OP_FN VD OP(all64)(double x) { return RAW(all64)(x); }
OP_FN VL OP(all_bits)(int64_t x) { return RAW(all_bits)(x); }
OP_FN VW OP(all_words)(int32_t x) { return RAW(all_words)(x); }
OP_FN VW OP(pairs)(uint32_t words) { return RAW(pairs)(words); }
/* Words: sums modulo 2^16; the larger and the smaller of two; x / 16 rounded down; -1 where x < y, else 0; `count` less 1 where x < y. */
OP_FN VW OP(add_words)(VW x, VW y) { return RAW(add_words)(x, y); }
OP_FN VW OP(larger_words)(VW x, VW y) { return RAW(larger_words)(x, y); }
OP_FN VW OP(smaller_words)(VW x, VW y) { return RAW(smaller_words)(x, y); }
OP_FN VW OP(sixteenths)(VW x) { return RAW(sixteenths)(x); }
OP_FN VW OP(words_below)(VW x, VW y) { return RAW(words_below)(x, y); }
OP_FN VW OP(count_below)(VW count, VW x, VW y) { return RAW(count_below)(count, x, y); }
/* Products modulo 2^16; the larger of x >= 0 and y where a and b have a bit in common, else x. */
OP_FN VW OP(mul_words)(VW x, VW y) { return RAW(mul_words)(x, y); }
OP_FN VW OP(larger_where_common)(VW x, VW y, VW a, VW b)
{
    MPG_LANES_DOMAIN("larger_where_common" OP_SET, int16_t, x, x >= 0);
    return RAW(larger_where_common)(x, y, a, b);
}
#if VNAMED
/* Of unsigned bytes x and signed ones y: sums of the products of two neighbours, of which none is beyond 16 bits. */
OP_FN VW OP(byte_products)(VW x, VW y)
{
#ifdef MPG_CHECK
    const VW wrapped = RAW(byte_products_modulo)(x, y), sums = RAW(byte_products)(x, y);
    MPG_LANES_DOMAIN2("byte_products" OP_SET, int16_t, wrapped, sums, x == y);
#endif
    return RAW(byte_products)(x, y);
}
#endif
/* VDLANES words as numbers; as the exponents of powers of two, 2^(x - 1023), x from 1 to 2046. Words to memory. */
OP_FN VD OP(numbers)(const int16_t *from) { return RAW(numbers)(from); }
OP_FN VD OP(powers_of)(const int16_t *from) { return RAW(powers_of)(from); }
OP_FN void OP(store_words)(int16_t *to, VW x) { memcpy(to, &x, sizeof x); }
/* The larger of x and y where x is not 0, else 0; whether a word is not 0, or not in low to high. */
OP_FN VW OP(raised_words)(VW x, VW y) { return RAW(raised_words)(x, y); }
OP_FN int OP(any_words)(VW x) { return RAW(any_words)(x); }
OP_FN int OP(any_outside)(VW x, VW low, VW high) { return RAW(any_outside)(x, low, high); }
/* Four vectors of 64-bit lanes with word g of `high` in the highest place and word g of `low` in the lowest, all else 0; the same word
 * in both places; in the highest. The words of four vectors' exponent fields, in their place. */
OP_FN void OP(ends)(VW high, VW low, VD *end) { RAW(ends)(high, low, end); }
OP_FN void OP(starts)(VW x, VD *start) { RAW(starts)(x, start); }
OP_FN void OP(powers)(VW x, VD *power) { RAW(powers)(x, power); }
OP_FN VW OP(exponent_words)(const VD *x) { return RAW(exponent_words)(x); }
/* x where word g of the lane is negative, else y. */
OP_FN VD OP(where_word)(VW words, int g, VD x, VD y) { return RAW(where_word)(words, g, x, y); }
OP_FN VL OP(bits64)(VD x) { return RAW(bits64)(x); }
OP_FN VD OP(value64)(VL x) { return RAW(value64)(x); }
/* |x|; its exponent field alone, a power of two or 0; |x| with the sign of y; the larger and the smaller of two; x where a < b, else y. */
OP_FN VD OP(magnitude64)(VD x) { return OP(value64)(OP(bits64)(x) & OP(all_bits)(INT64_MAX)); }
OP_FN VD OP(exponent64)(VD x) { return OP(value64)(OP(bits64)(x) & OP(all_bits)(INT64_C(0x7FF0000000000000))); }
OP_FN VD OP(signed64)(VD x, VD y)
{
    return OP(value64)((OP(bits64)(x) & OP(all_bits)(INT64_MAX)) | (OP(bits64)(y) & OP(all_bits)(INT64_MIN)));
}
OP_FN VD OP(with_sign)(VD x, VD y) /* x >= 0 with the sign of y */
{
    MPG_LANES_DOMAIN("with_sign" OP_SET, double, x, x >= 0);
    return OP(value64)(OP(bits64)(x) | (OP(bits64)(y) & OP(all_bits)(INT64_MIN)));
}
OP_FN VD OP(larger64)(VD x, VD y) { return RAW(larger64)(x, y); }
OP_FN VD OP(smaller64)(VD x, VD y) { return RAW(smaller64)(x, y); }
OP_FN VD OP(below64)(VD a, VD b, VD x, VD y) { return RAW(below64)(a, b, x, y); }
/* x where a > b, else 0. */
OP_FN VD OP(where_more64)(VD x, VD a, VD b) { return RAW(where_more64)(x, a, b); }
/* 1 where x and y differ, else 0. */
OP_FN VL OP(unlike64)(VD x, VD y) { return RAW(unlike64)(x, y); }
/* Bit l for each lane l of `limit` or more in magnitude; zeros in the lanes of such bits. */
OP_FN unsigned OP(beyond64)(VD x, double limit) { return RAW(beyond64)(x, limit); }
OP_FN VD OP(without64)(VD x, unsigned lanes) { return RAW(without64)(x, lanes); }
/* a b + c of an exact product, rounded as the CPU is told to. */
OP_FN VD OP(madd64)(VD a, VD b, VD c) { return RAW(madd64)(a, b, c); }
/* Units are the last places of a `magic` from 2^52 to 2^53 units; what follows stays there. magic + a b, an exact product, rounded down;
 * magic + x rounded down, and toward magic; x rounded down to a multiple of the unit. */
#define MPG_STAYS(NAME, FROM, TO)                                                                                              \
    MPG_LANES_DOMAIN2(NAME OP_SET, double, FROM, TO, x > 0 && mpg_as_bits64(x) >> 52 == mpg_as_bits64(y) >> 52)
OP_FN VD OP(madd_down)(VD a, VD b, VD magic)
{
    const VD sum = RAW(madd_down)(a, b, magic);
    MPG_STAYS("madd_down", magic, sum);
    return sum;
}
OP_FN VD OP(add_down)(VD magic, VD x)
{
    const VD sum = RAW(add_down)(magic, x);
    MPG_STAYS("add_down", magic, sum);
    return sum;
}
/* The same for a magic of the sign of a b, or of x: rounded toward zero, and so what is added is truncated. */
OP_FN VD OP(madd_truncated)(VD a, VD b, VD magic)
{
    const VD sum = RAW(madd_truncated)(a, b, magic);
    MPG_LANES_DOMAIN2("madd_truncated" OP_SET, double, magic, sum, mpg_as_bits64(x) >> 52 == mpg_as_bits64(y) >> 52);
    return sum;
}
OP_FN VD OP(add_chopped64)(VD magic, VD x)
{
#if VNAMED
    const VD sum = RAW(add_chopped64)(magic, x);
#else
    const VD sum = magic + x;
#endif
    MPG_LANES_DOMAIN2("add_chopped64" OP_SET, double, magic, sum, mpg_as_bits64(x) >> 52 == mpg_as_bits64(y) >> 52);
    return sum;
}
OP_FN VD OP(floored64)(VD x, VD magic) { return OP(add_down)(magic, x) - magic; }
OP_FN VD OP(add_truncated)(VD magic, VD x)
{
#if VNAMED
    const VD sum = RAW(add_truncated)(magic, x);
#else
    const VD sum = magic + OP(signed64)((OP(magnitude64)(x) + magic) - magic, x);
#endif
    MPG_STAYS("add_truncated", magic, sum);
    return sum;
}
/* x to float32, rounded to odd: where a bit beyond 24 is set the 24th is 1. x is a multiple of 2^-149 below 2^128, or normal there. */
OP_FN VD OP(odd32)(VD x)
{
    const VL rest = OP(all_bits)(0x1FFFFFFF), bits = OP(bits64)(x);
    MPG_LANES_DOMAIN("odd32" OP_SET, double, x, !(x < 0x1p-126 && x > -0x1p-126) || (double)(float)x == x);
    return OP(value64)((bits & ~rest) | (((bits & rest) + rest) & OP(all_bits)(0x20000000)));
}
/* x to float32, truncated: `chopped32` of what is below 2^128. */
OP_FN VD OP(chopped32)(VD x) { return RAW(chopped32)(x); }
OP_FN VD OP(truncated32)(VD x) { return OP(below64)(OP(magnitude64)(x), OP(all64)(0x1p128), RAW(chopped32)(x), x); }
/* x + y rounded to odd. The nearest float32, ties to even; the nearest fp16, -0 becoming +0. What is beyond the format's numbers stays
 * beyond them. `normal32` is nearest32 of multiples of 2^-149. */
#if VNAMED
OP_FN VD OP(odd_sum)(VD x, VD y) { return RAW(odd_sum)(x, y); }
OP_FN VD OP(nearest32)(VD x) { return RAW(nearest32)(x); }
OP_FN VD OP(normal32)(VD x) { return RAW(nearest32)(x); }
OP_FN VD OP(nearest16)(VD x) { return RAW(nearest16)(x); }
#else
OP_FN VD OP(odd_sum)(VD x, VD y)
{
    const VD sum = x + y; /* exact if each of them is what is left without the other */
    return OP(value64)(OP(bits64)(sum) | OP(unlike64)(sum - x, y) | OP(unlike64)(sum - y, x));
}
/* The nearest multiple of 2^-places of x's power of two, which counts as `least` where it is below. */
OP_FN VD OP(nearest_of)(VD x, double last_place, double least)
{
    const VD size = OP(magnitude64)(x), last = OP(larger64)(OP(exponent64)(x), OP(all64)(least)) * OP(all64)(last_place);
    const VD magic = last * OP(all64)(0x1.8p52), sum = size + magic, rest = size - (sum - magic);
    const VL bits = OP(bits64)(sum);
    const VL up = OP(bits64)(last * OP(all64)(0.5)) - OP(bits64)(rest) - (bits & OP(all_bits)(1));
    return OP(signed64)(OP(value64)(bits + (VL)((OP(unsigned64))up >> 63)) - magic, x);
}
OP_FN VD OP(nearest32)(VD x) { return OP(nearest_of)(x, 0x1p-23, 0x1p-126); }
OP_FN VD OP(nearest16)(VD x) { return OP(nearest_of)(x, 0x1p-10, 0x1p-14) + OP(all64)(0.0); }
OP_FN VD OP(normal32)(VD x)
{
    const VL bits = OP(bits64)(x), odd = (bits >> 29) & OP(all_bits)(1);
    MPG_LANES_DOMAIN("normal32" OP_SET, double, x, !(x < 0x1p-126 && x > -0x1p-126) || (double)(float)x == x);
    return OP(value64)((bits + OP(all_bits)(0x0FFFFFFF) + odd) & OP(all_bits)(~INT64_C(0x1FFFFFFF)));
}
#endif
#undef MPG_STAYS
#undef OP_FIRST
#endif
