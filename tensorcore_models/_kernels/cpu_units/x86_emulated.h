/* x86's VDPBF16PS, TDPBF16PS and AMX-INT8 in plain C, for CPUs that lack them: bit for bit what a CPU gives, NaN payloads included
 * (docs/amx.md has the rules, tests/tensorcore_models/test_cpu_engines.py compares with recorded results). Tile registers are
 * structs in memory, always of 16 rows of 64 bytes.
 *
 * Exactness. A product of two float32 numbers is exact in double. Its sum with a third is made odd where double rounds it (TwoSum;
 * Boldo and Melquiond 2008), so that rounding to float32 rounds once, and comparing with 2^-126 - 2^-151, from which on a result rounded with
 * an unbounded exponent reaches 2^-126, decides the flush of the exact sum.
 */
#ifndef MPG_X86_EMULATED_H
#define MPG_X86_EMULATED_H

#include <string.h>

#include "bits.h"

MPG_INLINE int mpg_emulated_is_nan(uint32_t bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u; }

MPG_INLINE uint32_t mpg_emulated_flushed(uint32_t bits) { return bits & 0x7F800000u ? bits : bits & 0x80000000u; }

/* x + y in float32, x an exact double. */
MPG_INLINE uint32_t mpg_emulated_sum(double x, double y)
{
    const double sum = x + y, part = sum - x;
    const double error = (x - (sum - part)) + (y - part);
    uint64_t bits = mpg_as_bits64(sum);
    if ((bits & UINT64_C(0x7FFFFFFFFFFFFFFF)) > UINT64_C(0x7FF0000000000000))
        return 0xFFC00000u;
    if (error == error && error != 0 && !(bits & 1))
        bits += (error < 0) == (sum < 0) ? UINT64_C(1) : ~UINT64_C(0);
    const double odd = mpg_as_double(bits);
    if (odd > -0x1p-126 && odd < 0x1p-126)
        return (uint32_t)(bits >> 32 & 0x80000000u) | (odd >= 0x1.ffffffp-127 || odd <= -0x1.ffffffp-127 ? 0x00800000u : 0);
    return mpg_as_bits((float)odd);
}

MPG_INLINE uint32_t mpg_emulated_fma(uint32_t a, uint32_t b, uint32_t c)
{
    if (mpg_emulated_is_nan(a) || mpg_emulated_is_nan(b) || mpg_emulated_is_nan(c))
        return (mpg_emulated_is_nan(a) ? a : mpg_emulated_is_nan(b) ? b : c) | 0x00400000u;
    return mpg_emulated_sum((double)mpg_as_float(mpg_emulated_flushed(a)) * (double)mpg_as_float(mpg_emulated_flushed(b)),
                            (double)mpg_as_float(mpg_emulated_flushed(c)));
}

MPG_INLINE uint32_t mpg_emulated_add(uint32_t x, uint32_t y)
{
    if (mpg_emulated_is_nan(x) || mpg_emulated_is_nan(y))
        return (mpg_emulated_is_nan(x) ? x : y) | 0x00400000u;
    return mpg_emulated_sum((double)mpg_as_float(mpg_emulated_flushed(x)), (double)mpg_as_float(mpg_emulated_flushed(y)));
}

/* c + a b for one pair of bf16 in each: the odd one in the high half. */
MPG_INLINE uint32_t mpg_emulated_vdpbf16ps(uint32_t a, uint32_t b, uint32_t c)
{
    return mpg_emulated_fma(a << 16, b << 16, mpg_emulated_fma(a & 0xFFFF0000u, b & 0xFFFF0000u, c));
}

/* ---- tiles --------------------------------------------------------------------------------------------------------- */
typedef struct {
    uint32_t row[16][16];
} mpg_emulated_tile;

typedef struct {
    mpg_emulated_tile tile[8];
} mpg_emulated_tiles;

static void mpg_emulated_tile_loadd(mpg_emulated_tile *t, const void *from, int64_t stride)
{
    for (int r = 0; r < 16; r++)
        memcpy(t->row[r], (const char *)from + r * stride, 64);
}

static void mpg_emulated_tile_stored(const mpg_emulated_tile *t, void *to, int64_t stride)
{
    for (int r = 0; r < 16; r++)
        memcpy((char *)to + r * stride, t->row[r], 64);
}

static void mpg_emulated_tile_zero(mpg_emulated_tile *t) { memset(t, 0, sizeof *t); }

static void mpg_emulated_tile_dpbf16ps(mpg_emulated_tile *d, const mpg_emulated_tile *a, const mpg_emulated_tile *b)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            uint32_t even = 0, odd = 0;
            for (int q = 0; q < 16; q++) {
                even = mpg_emulated_fma(a->row[i][q] << 16, b->row[q][j] << 16, even);
                odd = mpg_emulated_fma(a->row[i][q] & 0xFFFF0000u, b->row[q][j] & 0xFFFF0000u, odd);
            }
            d->row[i][j] = mpg_emulated_add(d->row[i][j], mpg_emulated_add(even, odd));
        }
}

MPG_INLINE int32_t mpg_emulated_byte(uint32_t word, int byte, int is_signed)
{
    const uint32_t value = word >> byte & 0xFFu;
    return is_signed ? (int32_t)(int8_t)(uint8_t)value : (int32_t)value;
}

MPG_INLINE void mpg_emulated_tile_int8(mpg_emulated_tile *d, const mpg_emulated_tile *a, const mpg_emulated_tile *b,
                                       int a_signed, int b_signed)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            int32_t sum = 0; /* 64 products below 2^16 */
            for (int q = 0; q < 16; q++)
                for (int byte = 0; byte < 32; byte += 8)
                    sum += mpg_emulated_byte(a->row[i][q], byte, a_signed) * mpg_emulated_byte(b->row[q][j], byte, b_signed);
            d->row[i][j] += (uint32_t)sum;
        }
}

#define MPG_EMULATED_INT8(NAME, A_SIGNED, B_SIGNED)                                                                            \
    static void mpg_emulated_tile_##NAME(mpg_emulated_tile *d, const mpg_emulated_tile *a, const mpg_emulated_tile *b)         \
    {                                                                                                                          \
        mpg_emulated_tile_int8(d, a, b, A_SIGNED, B_SIGNED);                                                                   \
    }
MPG_EMULATED_INT8(dpbssd, 1, 1)
MPG_EMULATED_INT8(dpbsud, 1, 0)
MPG_EMULATED_INT8(dpbusd, 0, 1)
MPG_EMULATED_INT8(dpbuud, 0, 0)

#endif
