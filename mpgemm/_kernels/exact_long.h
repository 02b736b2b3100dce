/* A long accumulator (Kulisch): every product of two binary64 numbers, and any sum of 2^60 of them, exactly.
 *
 * Digits of 32 bits in signed 64-bit limbs, the lowest of weight 2^EXACT_LOWEST; carries wait until the end, or until 2^30
 * additions.
 */
#ifndef MPGEMM_EXACT_LONG_H
#define MPGEMM_EXACT_LONG_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "driver.h"
#include "sums.h"

enum {
    EXACT_LOWEST = -2176, /* below 2^-2148, the unit of the product of two subnormals; a multiple of 32 */
    EXACT_LIMBS = 140,    /* up to 2^2304 */
    EXACT_CARRY_AFTER = 1 << 29
};

__extension__ typedef unsigned __int128 exact_u128;

typedef struct {
    int64_t limb[EXACT_LIMBS];
    int64_t additions;
} exact_long;

static void exact_carry(exact_long *sum)
{
    int64_t carry = 0;
    for (int i = 0; i < EXACT_LIMBS; i++) {
        const int64_t digit = sum->limb[i] + carry;
        const int64_t low = digit & INT64_C(0xFFFFFFFF);
        carry = (digit - low) / (INT64_C(1) << 32);
        sum->limb[i] = low;
    }
    sum->limb[EXACT_LIMBS - 1] += carry * (INT64_C(1) << 32); /* the sign stays in the top limb */
    sum->additions = 0;
}

/* Adds (-1)^negative * magnitude * 2^exponent, magnitude below 2^106, exponent at least EXACT_LOWEST. */
MPG_INLINE void exact_add(exact_long *sum, int negative, exact_u128 magnitude, int exponent)
{
    const int position = exponent - EXACT_LOWEST, shift = position & 31;
    const int64_t sign = -(int64_t)negative;
    int64_t *limb = sum->limb + (position >> 5);
    const uint64_t upper = (uint64_t)(magnitude >> 64);
    const exact_u128 low = (exact_u128)(uint64_t)magnitude << shift;
    limb[0] += ((int64_t)(low & 0xFFFFFFFFu) ^ sign) - sign;
    limb[1] += ((int64_t)((low >> 32) & 0xFFFFFFFFu) ^ sign) - sign;
    limb[2] += ((int64_t)(low >> 64) ^ sign) - sign;
    if (upper) {
        const exact_u128 high = (exact_u128)upper << shift;
        limb[2] += ((int64_t)(high & 0xFFFFFFFFu) ^ sign) - sign;
        limb[3] += ((int64_t)((high >> 32) & 0xFFFFFFFFu) ^ sign) - sign;
        limb[4] += ((int64_t)(high >> 64) ^ sign) - sign;
    }
    if (++sum->additions >= EXACT_CARRY_AFTER)
        exact_carry(sum);
}

/* x = (-1)^sign * significand * 2^exponent for finite x. */
MPG_INLINE uint64_t exact_significand(uint64_t bits, int *exponent)
{
    const int field = (int)(bits >> 52) & 0x7FF;
    const uint64_t fraction = bits & UINT64_C(0x000FFFFFFFFFFFFF);
    *exponent = field ? field - 1075 : -1074;
    return field ? fraction | (UINT64_C(1) << 52) : fraction;
}

MPG_INLINE void exact_add_product(exact_long *sum, double x, double y)
{
    const uint64_t a = mpg_as_bits64(x), b = mpg_as_bits64(y);
    int i, j;
    const uint64_t m = exact_significand(a, &i), n = exact_significand(b, &j);
    if (m != 0 && n != 0)
        exact_add(sum, (int)((a ^ b) >> 63), (exact_u128)m * n, i + j);
}

/* x * 2^exponent, or its negative. */
MPG_INLINE void exact_add_number(exact_long *sum, double x, int exponent, int negated)
{
    const uint64_t bits = mpg_as_bits64(x);
    int own;
    const uint64_t m = exact_significand(bits, &own);
    if (m != 0)
        exact_add(sum, (int)(bits >> 63) ^ negated, m, own + exponent);
}

/* mantissa (below 2^54, an integer) * 2^exponent; overflow to infinity, exact otherwise. */
static double exact_scaled(uint64_t mantissa, int64_t exponent)
{
    return exponent > 2000 ? INFINITY : ldexp((double)mantissa, (int)exponent);
}

/* The accumulated value to nearest even (`what` EXACT_NEAREST, EXACT_DIFFERENCE) or with an odd last bit (EXACT_ODD). */
static double exact_round(exact_long *sum, int what)
{
    exact_u128 magnitude = 0;
    int negative, top = EXACT_LIMBS - 1, sticky = 0, length = 0;
    int64_t exponent, quantum, shift;
    uint64_t kept;
    double result;
    exact_carry(sum);
    negative = sum->limb[EXACT_LIMBS - 1] < 0;
    if (negative) {
        for (int i = 0; i < EXACT_LIMBS; i++)
            sum->limb[i] = -sum->limb[i];
        exact_carry(sum);
    }
    while (top >= 0 && sum->limb[top] == 0)
        top--;
    if (top < 0)
        return 0.0;
    for (int i = top; i > top - 4; i--)
        magnitude = magnitude << 32 | (uint64_t)(i >= 0 ? sum->limb[i] : 0);
    for (int i = top - 4; i >= 0; i--)
        sticky |= sum->limb[i] != 0;
    exponent = EXACT_LOWEST + 32 * (int64_t)(top - 3);
    for (exact_u128 rest = magnitude; rest; rest >>= 1)
        length++;
    quantum = exponent + length - 53;
    if (quantum < -1074)
        quantum = -1074;
    shift = quantum - exponent; /* magnitude has 97 bits or more: above 0 */
    if (shift > 127) {
        kept = 0;
        sticky = 1;
        magnitude = 0;
    } else {
        kept = (uint64_t)(magnitude >> shift);
        magnitude &= ((exact_u128)1 << shift) - 1;
    }
    if (what == EXACT_ODD) {
        kept |= magnitude != 0 || sticky;
        result = exact_scaled(kept, quantum);
        if (result > DBL_MAX)
            result = DBL_MAX;
    } else {
        const exact_u128 half = shift > 127 ? ~(exact_u128)0 : (exact_u128)1 << (shift - 1);
        if (magnitude > half || (magnitude == half && (sticky || (kept & 1))))
            kept++;
        if (kept == 0 && what == EXACT_DIFFERENCE)
            kept = 1;
        result = exact_scaled(kept, quantum);
    }
    return negative ? -result : result;
}

/* Exact value v that is not finite (IEEE arithmetic gives it), seen from x. */
static double exact_special(double v, int what, double x)
{
    if (what != EXACT_DIFFERENCE)
        return v;
    if (v != v)
        return v;
    return x == v ? 0.0 : x - v;
}

/* Single elements: c + the dot products of rows of A and columns of B. Row i of A, k elements, starts at element i k; element (p, j)
 * of B lies at p b_row_step + j b_column_step. */
typedef struct {
    mpg_batch batch;
    int64_t start; /* what the batch begins with */
    const char *a, *b;
    int a_double, b_double, what;
    int64_t k, b_row_step, b_column_step;
    const int64_t *rows, *columns;
    const double *c, *x; /* NULL: zeros */
    double *out;
} exact_dots;

static double exact_dot(const exact_dots *job, int64_t item)
{
    const char *a = job->a + job->rows[item] * job->k * (job->a_double ? 8 : 4);
    const char *b = job->b + job->columns[item] * job->b_column_step * (job->b_double ? 8 : 4);
    const double c = job->c ? job->c[item] : 0.0, x = job->x ? job->x[item] : 0.0;
    const int what = job->what;
    exact_long sum;
    double special = 0.0;
    int is_special = !(fabs(c) <= DBL_MAX);
    memset(&sum, 0, sizeof sum);
    for (int64_t i = 0, j = 0; i < job->k; i++, j += job->b_row_step) {
        const double u = job->a_double ? ((const double *)(const void *)a)[i] : (double)((const float *)(const void *)a)[i];
        const double v = job->b_double ? ((const double *)(const void *)b)[j] : (double)((const float *)(const void *)b)[j];
        if (!(fabs(u) <= DBL_MAX && fabs(v) <= DBL_MAX)) {
            is_special = 1;
            special += u * v;
        } else if (!is_special) {
            exact_add_product(&sum, u, v);
        }
    }
    if (is_special) {
        special += fabs(c) <= DBL_MAX ? 0.0 : c;
        return exact_special(special == special ? special : (double)NAN, what, x);
    }
    exact_add_number(&sum, c, 0, 0);
    if (what == EXACT_DIFFERENCE) {
        if (!(fabs(x) <= DBL_MAX))
            return x;
        for (int i = 0; i < EXACT_LIMBS; i++)
            sum.limb[i] = -sum.limb[i];
        exact_add_number(&sum, x, 0, 0);
    }
    return exact_round(&sum, what);
}

static int exact_dot_items(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_dots *job = (const exact_dots *)batch;
    for (int64_t item = job->start + first; item < job->start + last; item++)
        job->out[item] = exact_dot(job, item);
    return 1;
}

/* ---- one element after its chains ----------------------------------------------------------------------------------- */
MPG_INLINE int exact_in_range(double x) { return x == 0.0 || (fabs(x) > 0x1p-900 && fabs(x) < 0x1p900); }

/* What is asked of v = (high + low) * row_unit * column_unit + c, units powers of two. */
static double exact_finish(double high, double low, double row_unit, double column_unit, double c, int what, double x)
{
    const double unit = row_unit * column_unit;
    const double first = high * unit, second = low * unit, other = what == EXACT_DIFFERENCE ? x : c;
    const int sign = what == EXACT_DIFFERENCE;
    exact_long sum;
    int row_exponent, column_exponent;
    if (!(fabs(c) <= DBL_MAX))
        return exact_special(c == c ? c : (double)NAN, what, x);
    if (what == EXACT_DIFFERENCE && !(fabs(x) <= DBL_MAX))
        return x;
    if ((what != EXACT_DIFFERENCE || c == 0.0) && unit > 0x1p-900 && exact_in_range(first) && exact_in_range(second) &&
        exact_in_range(other))
        return sign ? exact_three_sum(x, -first, -second, what) : exact_three_sum(c, first, second, what);
    memset(&sum, 0, sizeof sum);
    frexp(row_unit, &row_exponent);
    frexp(column_unit, &column_exponent);
    exact_add_number(&sum, high, row_exponent + column_exponent - 2, sign);
    exact_add_number(&sum, low, row_exponent + column_exponent - 2, sign);
    exact_add_number(&sum, c, 0, sign);
    if (sign)
        exact_add_number(&sum, x, 0, 0);
    return exact_round(&sum, what);
}

#endif
