/* Sums of a few products, lanes over the columns: pairwise sums of float32 operations (GPS: xie-mma-sim, Algorithms 2 and 3), and
 * exact sums that are rounded once (CDNA1).
 *
 * The hardware's own float32 operations round as the algorithms do, specials included; products of fp16 and bf16 numbers are exact
 * in double and rounded once by float32 multiplication. Only the encoding of NaN differs; the caller canonicalises it.
 */
#ifndef MPG_IEEE_LANES_H
#define MPG_IEEE_LANES_H

#include <math.h>

#include "lanes.h"

#define MPG_IEEE_LANES 32

#define MPG_SIGN32 0x80000000u

/* Results below 2^-126 become zero, of the same sign where `sign` is MPG_SIGN32, positive where it is 0. */
MPG_INLINE float mpg_flushed(float x, uint32_t sign)
{
    const uint32_t bits = mpg_as_bits(x), magnitude = bits & 0x7FFFFFFFu;
    return mpg_as_float(magnitude < 0x00800000u ? bits & sign : bits);
}

/* One row of A against `count` columns of B (row stride ldb); k is a multiple of the group, 2 or 4. After each `terms` products,
 * but for the last ones, the sum is the addend of another instruction, whose zeros become +0. */
MPG_INLINE void mpg_ieee_row(int group, int64_t terms, const float *a, const float *b, int64_t ldb, float *d, int count, int64_t k)
{
    const uint32_t kept = MPG_SIGN32;
    int64_t left = terms;
    float c[MPG_IEEE_LANES];
    for (int j = 0; j < count; j++)
        c[j] = d[j];
    for (int64_t q = 0; q < k; q += group) {
        const float *MPG_RESTRICT x = a + q, *MPG_RESTRICT y = b + q * ldb;
        left -= group;
        const uint32_t sign = left == 0 && q + group < k ? 0 : kept;
        left = left == 0 ? terms : left;
        for (int j = 0; j < count; j++) {
            if (group == 4) {
                const float p = mpg_flushed(x[0] * y[j], kept), r = mpg_flushed(x[1] * y[ldb + j], kept);
                const float s = mpg_flushed(x[2] * y[2 * ldb + j], kept), t = mpg_flushed(x[3] * y[3 * ldb + j], kept);
                const float sum = mpg_flushed(mpg_flushed(p + r, kept) + mpg_flushed(s + t, kept), kept);
                c[j] = mpg_flushed(c[j] + sum, sign);
            } else {
                const float p = mpg_flushed(x[0] * y[j], kept), r = mpg_flushed(x[1] * y[ldb + j], kept);
                c[j] = mpg_flushed(c[j] + mpg_flushed(p + r, kept), sign);
            }
        }
    }
    for (int j = 0; j < count; j++)
        d[j] = c[j];
}

/* x + y to odd (Boldo and Melquiond 2008): an inexact sum with an even last bit moves one unit toward the exact one. What is
 * infinite may become NaN. Without comparisons, as compilers make jumps of them. */
MPG_INLINE double mpg_sum_to_odd(double x, double y)
{
    const double sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
    const uint64_t bits = mpg_as_bits64(sum), magnitude = mpg_as_bits64(error) << 1;
    const uint64_t inexact = (magnitude | (0 - magnitude)) >> 63 & ~bits & 1;
    const uint64_t toward = 1 - ((mpg_as_bits64(error) ^ bits) >> 63 << 1); /* 1 or -1 */
    return mpg_as_double(bits + (toward & (0 - inexact)));
}

/* One row with exact sums of `group` products and c. Products are exact in double; a sum of them that is not, or not finite, marks
 * its lane. The sum with c is rounded to odd in double and then to float32, which is as if it were rounded once. */
MPG_INLINE void mpg_exact_row(int group, const float *a, const float *b, int64_t ldb, float *d, uint8_t *redo, int count, int64_t k)
{
    float c[MPG_IEEE_LANES];
    uint64_t lost[MPG_IEEE_LANES];
    for (int j = 0; j < count; j++) {
        c[j] = d[j];
        lost[j] = 0;
    }
    for (int64_t q = 0; q < k; q += group) {
        const float *MPG_RESTRICT x = a + q, *MPG_RESTRICT y = b + q * ldb;
        for (int j = 0; j < count; j++) {
            double sum = (double)x[0] * y[j];
            for (int i = 1; i < group; i++) {
                const double product = (double)x[i] * y[i * ldb + j], next = sum + product, part = next - sum;
                lost[j] |= mpg_as_bits64((sum - (next - part)) + (product - part)); /* 0 or -0 for an exact, finite sum */
                sum = next;
            }
            c[j] = (float)(mpg_sum_to_odd(sum, c[j]) + 0.0); /* the exact sum 0 is +0 */
        }
    }
    for (int j = 0; j < count; j++) {
        d[j] = c[j];
        redo[j] |= (uint8_t)(lost[j] << 1 != 0);
    }
}

#define MPG_IEEE_ROWS(SUFFIX, TARGET)                                                                                       \
    TARGET static void mpg_ieee_rows_##SUFFIX(int group, int64_t terms, const float *a, const float *b, int64_t ldb,        \
                                              float *d, uint8_t *redo, int64_t ldd, int64_t rows, int count, int64_t k)     \
    {                                                                                                                       \
        for (int64_t i = 0; i < rows; i++) {                                                                                \
            const float *x = a + i * k;                                                                                     \
            float *c = d + i * ldd;                                                                                         \
            if (redo && count == MPG_IEEE_LANES && group == 4)                                                              \
                mpg_exact_row(4, x, b, ldb, c, redo + i * ldd, MPG_IEEE_LANES, k);                                          \
            else if (redo && count == MPG_IEEE_LANES)                                                                       \
                mpg_exact_row(2, x, b, ldb, c, redo + i * ldd, MPG_IEEE_LANES, k);                                          \
            else if (redo)                                                                                                  \
                mpg_exact_row(group, x, b, ldb, c, redo + i * ldd, count, k);                                               \
            else if (count == MPG_IEEE_LANES && group == 4)                                                                      \
                mpg_ieee_row(4, terms, x, b, ldb, c, MPG_IEEE_LANES, k);                                                    \
            else if (count == MPG_IEEE_LANES)                                                                               \
                mpg_ieee_row(2, terms, x, b, ldb, c, MPG_IEEE_LANES, k);                                                    \
            else                                                                                                            \
                mpg_ieee_row(group, terms, x, b, ldb, c, count, k);                                                         \
        }                                                                                                                   \
    }

MPG_IEEE_ROWS(baseline, )
MPG_IEEE_ROWS(avx2, MPG_TARGET_AVX2)
MPG_IEEE_ROWS(avx512, MPG_TARGET_AVX512)

/* `count` columns of B (row stride n) as a panel of rows of MPG_IEEE_LANES: rows a power of two apart would share few places of
 * the first-level cache. */
static void mpg_ieee_pack(const float *b, int64_t n, int count, int64_t k, float *panel)
{
    for (int64_t q = 0; q < k; q++) {
        memcpy(panel + q * MPG_IEEE_LANES, b + q * n, (size_t)count * sizeof(float));
        memset(panel + q * MPG_IEEE_LANES + count, 0, (size_t)(MPG_IEEE_LANES - count) * sizeof(float));
    }
}

/* Rows of A (row stride k) against a panel of B, d (row stride ldd) updated in place. With `redo` (row stride ldd, too) sums are
 * exact, and elements are marked of which one is not; else they are those of GPS. */
static void mpg_ieee_rows(int group, int64_t terms, const float *a, const float *panel, float *d, uint8_t *redo, int64_t ldd,
                          int64_t rows, int count, int64_t k, int level)
{
    const int64_t ldb = MPG_IEEE_LANES;
    if (level == MPG_ISA_AVX512)
        mpg_ieee_rows_avx512(group, terms, a, panel, ldb, d, redo, ldd, rows, count, k);
    else if (level == MPG_ISA_AVX2)
        mpg_ieee_rows_avx2(group, terms, a, panel, ldb, d, redo, ldd, rows, count, k);
    else
        mpg_ieee_rows_baseline(group, terms, a, panel, ldb, d, redo, ldd, rows, count, k);
}

#endif
