/* NVIDIA's special-function unit, a block of inputs at a time; tensorcore_models/functions/datapath.py is the same text in integers.
 *
 * Each input is reduced to an entry of the unit's tables and 17 bits x; F = c0 + c1 x + c2 Q(x) is exact in double, because c0, c1 x
 * and c2 Q are integers below 2^42 (tables.txt), so the result does not depend on the order in which a compiler adds them. The result
 * is F times a power of two, truncated to the significand's bits: the bits of the double, shifted. Loops run over a block without branches.
 */
#ifndef MPG_UNIT_H
#define MPG_UNIT_H

#include <stdint.h>

#include "bits.h"

enum { MPG_BLOCK = 256, MPG_BINADES = 11 };
/* As datapath.KINDS. */
enum {
    MPG_UNIT_EX2,
    MPG_UNIT_LG2,
    MPG_UNIT_RCP,
    MPG_UNIT_RSQRT,
    MPG_UNIT_SQRT,
    MPG_UNIT_SIN,
    MPG_UNIT_COS,
    MPG_UNIT_TANH,
    MPG_UNIT_RCP_HIGH,
    MPG_UNIT_RSQRT_HIGH,
    MPG_UNITS
};

/* Of each table of a function (tanh has one for each binade, rsqrt and sqrt one for each parity of the exponent): its first entry,
 * how far a fraction of 23 bits is shifted to the right before it is taken apart, and the fraction bits of F. */
typedef struct {
    int32_t first[MPG_BINADES], shift[MPG_BINADES], fraction_bits[MPG_BINADES];
} mpg_unit;

typedef struct {
    const double *coefficients; /* c0, c1, c2 of each entry */
    int32_t entries;
    mpg_unit units[MPG_UNITS];
} mpg_tables;

/* A block of reduced inputs: the result is (F + whole 2^fraction_bits) 2^(scale - fraction_bits) with the sign, or `fixed`
 * where `is_fixed` is all ones. */
typedef struct {
    int32_t entry[MPG_BLOCK], x[MPG_BLOCK], scale[MPG_BLOCK], whole[MPG_BLOCK];
    uint32_t sign[MPG_BLOCK], fixed[MPG_BLOCK], is_fixed[MPG_BLOCK];
    double f[MPG_BLOCK];
} mpg_reduced;

#define MPG_NAN32 0x7FFFFFFFu
#define MPG_ONES(condition) (0u - (uint32_t)(condition))
#define MPG_PICK(mask, a, b) ((b) ^ (((a) ^ (b)) & (mask)))

/* What lies below the folded partial products of x^2, in units of 2^19. */
MPG_INLINE int32_t mpg_square(int32_t x)
{
    int32_t total = 0;
    for (int i = 10; i <= 16; i++)
        total += (((x & ((1 << i) - 1)) >> (18 - i)) + (1 << (2 * i - 19))) & -(x >> i & 1);
    return total;
}

/* ---- reductions ----------------------------------------------------------------------------------------------------- */
MPG_INLINE void mpg_reduce_ex2(uint32_t u, const mpg_unit *t, mpg_reduced *r, int i)
{
    const uint32_t negative = MPG_ONES(u >> 31), field = u >> 23 & 0xFF;
    const int32_t places = 134 - (int32_t)field, shift = places & ~(places >> 31);
    const uint64_t wide = (uint64_t)(0x800000u | (u & 0x7FFFFFu)) << 7;
    const uint64_t v = shift > 31 ? 0 : wide >> (shift & 31);
    uint32_t g = (uint32_t)v & 0x7FFFFFu;
    int32_t whole = (int32_t)(v >> 23);
    const uint32_t below = negative & MPG_ONES(g != 0);
    g ^= below & 0x7FFFFFu;
    whole = (int32_t)(((uint32_t)whole ^ negative) - (negative & ~below));
    const uint32_t large = MPG_ONES((int32_t)field > 134), one = MPG_ONES(field == 0);
    r->entry[i] = t->first[0] + (int32_t)(g >> 17);
    r->x[i] = (int32_t)(g & 0x1FFFF);
    r->scale[i] = whole;
    r->sign[i] = 0;
    r->fixed[i] = MPG_PICK(one, 0x3F800000u, MPG_PICK(negative, 0u, 0x7F800000u));
    r->is_fixed[i] = large | one;
}

MPG_INLINE void mpg_reduce_lg2(uint32_t u, const mpg_unit *t, mpg_reduced *r, int i)
{
    const uint32_t f = u & 0x7FFFFFu, field = u >> 23 & 0xFF, zero = MPG_ONES(field == 0);
    r->entry[i] = t->first[0] + (int32_t)(f >> 17);
    r->x[i] = (int32_t)(f & 0x1FFFF);
    r->scale[i] = 0;
    r->whole[i] = (int32_t)field - 127;
    r->sign[i] = 0;
    r->fixed[i] = MPG_PICK(zero, 0xFF800000u,
                           MPG_PICK(MPG_ONES(u >> 31), MPG_NAN32, MPG_PICK(MPG_ONES(u == 0x3F800000u), 0u, 0x7F800000u)));
    r->is_fixed[i] = zero | MPG_ONES(u >> 31) | MPG_ONES(field == 0xFF) | MPG_ONES(u == 0x3F800000u);
}

/* Formats with `bits` fraction bits: 23, or 20 of the high word of a double. */
MPG_INLINE void mpg_reduce_rcp(uint32_t u, int bits, const mpg_unit *t, mpg_reduced *r, int i)
{
    const uint32_t top = 0x7FFFFFFFu >> bits, field = u >> bits & top, f = (u & ((1u << bits) - 1)) << (23 - bits);
    const uint32_t sign = u & 0x80000000u;
    r->entry[i] = t->first[0] + (int32_t)(f >> 16);
    r->x[i] = (int32_t)(f & 0xFFFF) << 1;
    r->scale[i] = (int32_t)(top >> 1) - (int32_t)field;
    r->sign[i] = sign;
    r->fixed[i] = sign | (MPG_ONES(field == 0) & top << bits);
    r->is_fixed[i] = MPG_ONES(field == 0) | MPG_ONES(field == top);
}

MPG_INLINE void mpg_reduce_root(uint32_t u, int bits, int inverse, const mpg_unit *t, mpg_reduced *r, int i)
{
    const uint32_t top = 0x7FFFFFFFu >> bits, field = u >> bits & top, f = (u & ((1u << bits) - 1)) << (23 - bits);
    const int32_t exponent = (int32_t)field - (int32_t)(top >> 1), k = exponent >> 1, odd = exponent & 1;
    const uint32_t zero = MPG_ONES(field == 0), infinity = top << bits, sign = u & 0x80000000u;
    const uint32_t exact = inverse ? MPG_ONES(f == 0) & MPG_ONES(odd == 0) : 0;
    r->entry[i] = t->first[0] + odd * (t->first[1] - t->first[0]) + (int32_t)(f >> 17);
    r->x[i] = (int32_t)(f & 0x1FFFF);
    r->scale[i] = inverse ? -k : k;
    r->sign[i] = 0;
    const uint32_t power = (uint32_t)((int32_t)(top >> 1) - k) << bits;
    const uint32_t positive = MPG_PICK(MPG_ONES(field == top), inverse ? 0u : infinity, power);
    r->fixed[i] = MPG_PICK(zero, sign | (inverse ? infinity : 0u), MPG_PICK(MPG_ONES(u >> 31), MPG_NAN32, positive));
    r->is_fixed[i] = zero | MPG_ONES(u >> 31) | MPG_ONES(field == top) | exact;
}

MPG_INLINE void mpg_reduce_circle(uint32_t u, int cosine, const mpg_unit *t, mpg_reduced *r, int i)
{
    /* |t| = |x| / (2 pi), a product cut to 24 bits; 25 bits of its fraction are the angle. */
    const uint32_t field = u >> 23 & 0xFF;
    const uint64_t product = (uint64_t)(0x800000u | (u & 0x7FFFFFu)) * 0xA2F983u;
    const uint32_t carry = (uint32_t)(product >> 47);
    const uint64_t wide = (product >> 23 >> carry) << 25;
    const int32_t places = 153 - (int32_t)(field + carry), shift = places & ~(places >> 31);
    uint32_t angle = shift > 63 ? 0 : (uint32_t)(wide >> (shift & 63)) & 0x1FFFFFFu;
    angle = (angle & MPG_ONES(field != 0)) + (cosine ? 0x800000u : 0u);
    uint32_t g = angle & 0x7FFFFFu;
    g ^= MPG_ONES(angle >> 23 & 1) & 0x7FFFFFu;
    r->entry[i] = t->first[0] + (int32_t)(g >> 17);
    r->x[i] = (int32_t)(g & 0x1FFFF);
    r->scale[i] = 0;
    r->sign[i] = (cosine ? 0u : u & 0x80000000u) ^ (angle >> 24 & 1) << 31;
    r->fixed[i] = MPG_NAN32;
    r->is_fixed[i] = MPG_ONES(field == 0xFF);
}

MPG_INLINE void mpg_reduce_tanh(uint32_t u, const mpg_unit *t, mpg_reduced *r, int i)
{
    const int32_t field = (int32_t)(u >> 23 & 0xFF), inside = field >= 119 && field <= 129;
    const int32_t binade = inside ? field - 119 : 0;
    const uint32_t sign = u & 0x80000000u, f = (u & 0x7FFFFFu) >> t->shift[binade];
    r->entry[i] = t->first[binade] + (int32_t)(f >> 17);
    r->x[i] = (int32_t)(f & 0x1FFFF);
    r->scale[i] = t->fraction_bits[0] - t->fraction_bits[binade];
    r->sign[i] = sign;
    r->fixed[i] = field < 119 ? u : sign | 0x3F800000u;
    r->is_fixed[i] = MPG_ONES(!inside);
}

/* ---- a block -------------------------------------------------------------------------------------------------------- */
/* F + whole 2^fraction_bits of a logarithm, without its last two bits, as a distance from 0 that is one less below 0. */
MPG_INLINE void mpg_sum_logarithm(double *f, uint32_t *sign, int32_t whole, double one)
{
    const double cut = mpg_as_double(mpg_as_bits64(*f + 0x1p52) & ~UINT64_C(3)) - 0x1p52; /* 0 <= F < 2^52: exact */
    const double value = (double)whole * one + cut;
    const uint64_t below = UINT64_C(0) - (mpg_as_bits64(value) >> 63);
    *sign = (uint32_t)below & 0x80000000u;
    *f = mpg_as_double(mpg_as_bits64(value) & ~(UINT64_C(1) << 63)) - mpg_as_double(below & UINT64_C(0x4010000000000000));
}

MPG_INLINE void mpg_unit_block(int kind, const uint32_t *MPG_RESTRICT in, uint32_t *MPG_RESTRICT out, const mpg_tables *tables,
                               mpg_reduced *MPG_RESTRICT r)
{
    const mpg_unit *t = &tables->units[kind];
    const int bits = kind == MPG_UNIT_RCP_HIGH || kind == MPG_UNIT_RSQRT_HIGH ? 20 : 23;
    const int bias = bits == 20 ? 1023 : 127, fraction_bits = t->fraction_bits[0];
    const double *coefficients = tables->coefficients;
    for (int i = 0; i < MPG_BLOCK; i++)
        switch (kind) {
        case MPG_UNIT_EX2:
            mpg_reduce_ex2(in[i], t, r, i);
            break;
        case MPG_UNIT_LG2:
            mpg_reduce_lg2(in[i], t, r, i);
            break;
        case MPG_UNIT_RCP:
        case MPG_UNIT_RCP_HIGH:
            mpg_reduce_rcp(in[i], bits, t, r, i);
            break;
        case MPG_UNIT_RSQRT:
        case MPG_UNIT_SQRT:
        case MPG_UNIT_RSQRT_HIGH:
            mpg_reduce_root(in[i], bits, kind != MPG_UNIT_SQRT, t, r, i);
            break;
        case MPG_UNIT_TANH:
            mpg_reduce_tanh(in[i], t, r, i);
            break;
        default:
            mpg_reduce_circle(in[i], kind == MPG_UNIT_COS, t, r, i);
        }
    double square[MPG_BLOCK], x[MPG_BLOCK];
    for (int i = 0; i < MPG_BLOCK; i++) {
        square[i] = (double)mpg_square(r->x[i]);
        x[i] = (double)r->x[i];
    }
    for (int i = 0; i < MPG_BLOCK; i++) {
        const double *c = coefficients + 3 * (int64_t)r->entry[i];
        r->f[i] = c[0] + c[1] * x[i] + c[2] * square[i];
    }
    if (kind == MPG_UNIT_LG2) {
        const double one = mpg_as_double((uint64_t)(1023 + fraction_bits) << 52);
        for (int i = 0; i < MPG_BLOCK; i++)
            mpg_sum_logarithm(&r->f[i], &r->sign[i], r->whole[i], one);
    }
    for (int i = 0; i < MPG_BLOCK; i++) {
        const uint64_t f = mpg_as_bits64(r->f[i]);
        const int32_t field = (int32_t)(f >> 52) - 1023 + bias - fraction_bits + r->scale[i];
        const uint32_t fraction = (uint32_t)(f >> (52 - bits)) & ((1u << bits) - 1);
        uint32_t code = (uint32_t)field << bits | fraction;
        code = MPG_PICK(MPG_ONES(field > 2 * bias), (uint32_t)(2 * bias + 1) << bits, code);
        code = r->sign[i] | (code & MPG_ONES(field > 0));
        code = MPG_PICK(r->is_fixed[i], r->fixed[i], code);
        out[i] =
            MPG_PICK(MPG_ONES((int32_t)(in[i] & 0x7FFFFFFFu) > (int32_t)((uint32_t)(2 * bias + 1) << bits)), MPG_NAN32, code);
    }
}

#endif
