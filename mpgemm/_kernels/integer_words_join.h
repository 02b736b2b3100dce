/* Results of integer products joined to floating-point numbers: slices, Chinese remainders, quantised words. Part of
 * integer_words.h, which has the contract.
 */
#ifndef MPGEMM_INTEGER_WORDS_JOIN_H
#define MPGEMM_INTEGER_WORDS_JOIN_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "integer_words_split.h"
#include "sums.h"

/* Integers are kept in limbs of WORDS_LIMB bits. The product of 54 moduli is below 2^432: WORDS_LIMBS of them hold it. */
enum { WORDS_LIMB = 40, WORDS_LIMBS = 11, WORDS_PART = 128 };

/* A remainder of two bytes is 2^WORDS_HIGH times the first, plus the second. */
enum { WORDS_HIGH = 5 };

/* Types of the results of an engine. */
enum { WORDS_INT32, WORDS_INT64, WORDS_FLOAT };

/* What the joined numbers are multiplied by, and where they go. */
typedef struct {
    void *data;
    int is_double;
    ptrdiff_t columns;
    const double *rows_powers, *columns_powers; /* NULL: the powers may leave binary64's range, ldexp rounds */
    const int32_t *rows_exponents, *columns_exponents;
} words_result;

/* Numbers of [-M/2, M/2) from their residues: sum of y_i (M / p_i) - q M with y_i = residue_i ((M / p_i)^-1 modulo p_i). */
typedef struct {
    int moduli, limbs;
    const double *inverses; /* 1 / p_i */
    const double *weights;  /* [limb][modulus]: limbs of M / p_i */
    const double *product;  /* limbs of M */
} words_remainders;

MPG_INLINE void words_numbers(const void *plane, int type, ptrdiff_t start, ptrdiff_t count, double *MPG_RESTRICT values)
{
    if (type == WORDS_INT32)
        for (ptrdiff_t i = 0; i < count; i++)
            values[i] = (double)((const int32_t *)plane)[start + i];
    else if (type == WORDS_INT64)
        for (ptrdiff_t i = 0; i < count; i++)
            values[i] = (double)((const int64_t *)plane)[start + i];
    else
        for (ptrdiff_t i = 0; i < count; i++)
            values[i] = (double)((const float *)plane)[start + i] + 0.0; /* never -0 */
}

/* `count` numbers to the flat index `start`, times the powers of their rows and columns. */
MPG_INLINE void words_store(const words_result *result, ptrdiff_t start, ptrdiff_t count, double *MPG_RESTRICT values)
{
    ptrdiff_t row = start / result->columns, column = start % result->columns;
    for (ptrdiff_t done = 0, run; done < count; done += run, column = 0, row++) {
        double *MPG_RESTRICT part = values + done;
        run = count - done < result->columns - column ? count - done : result->columns - column;
        if (result->rows_powers) {
            const double power = result->rows_powers[row];
            const double *MPG_RESTRICT powers = result->columns_powers + column;
            for (ptrdiff_t i = 0; i < run; i++)
                part[i] = part[i] * power * powers[i];
        } else {
            const int32_t exponent = result->rows_exponents[row];
            for (ptrdiff_t i = 0; i < run; i++)
                part[i] = ldexp(part[i], exponent + result->columns_exponents[column + i]);
        }
    }
    if (result->is_double) {
        double *MPG_RESTRICT out = (double *)result->data + start;
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] = values[i];
    } else {
        float *MPG_RESTRICT out = (float *)result->data + start;
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] = (float)values[i];
    }
}

/* Sums in binary64, in the order of the planes; before a plane is added, the sum is multiplied by its power of two. */
MPG_INLINE void words_join_slices(const void *const *planes, const int *types, const double *steps, int count, ptrdiff_t start,
                                  ptrdiff_t size, double *MPG_RESTRICT sums)
{
    double values[WORDS_CHUNK];
    words_numbers(planes[0], types[0], start, size, sums);
    for (int j = 1; j < count; j++) {
        const double step = steps[j];
        words_numbers(planes[j], types[j], start, size, values);
        for (ptrdiff_t i = 0; i < size; i++)
            sums[i] = sums[i] * step + values[i];
    }
}

/* Element i of numbers of a type, a constant, rounded to binary32. */
MPG_INLINE float words_single(const void *numbers, int type, ptrdiff_t i)
{
    if (type == WORDS_INT32)
        return (float)((const int32_t *)numbers)[i];
    if (type == WORDS_INT64)
        return (float)((const int64_t *)numbers)[i];
    return ((const float *)numbers)[i];
}

/* sums (or 0, if fresh) + RN(RN(product) factor) in binary32. */
MPG_INLINE void words_add_type(const void *MPG_RESTRICT product, int type, float factor, int fresh, ptrdiff_t start,
                               ptrdiff_t size, float *MPG_RESTRICT sums)
{
    if (fresh)
        for (ptrdiff_t i = 0; i < size; i++)
            sums[i] = 0.0f + words_single(product, type, start + i) * factor; /* never -0 */
    else
        for (ptrdiff_t i = 0; i < size; i++)
            sums[i] += words_single(product, type, start + i) * factor;
}

MPG_INLINE void words_add_quantised(const void *product, int type, float factor, int fresh, ptrdiff_t start, ptrdiff_t size,
                                    float *MPG_RESTRICT sums)
{
    if (type == WORDS_INT32)
        words_add_type(product, WORDS_INT32, factor, fresh, start, size, sums);
    else if (type == WORDS_INT64)
        words_add_type(product, WORDS_INT64, factor, fresh, start, size, sums);
    else
        words_add_type(product, type, factor, fresh, start, size, sums);
}

/* Balanced residues of products modulo p <= 256, of what `residues` holds and them if `accumulate`; `power` is 2^16 modulo p.
 *
 * As words_residues with w = floor(x / 2^16) power + x mod 2^16: |power| is at most 125 (1, 4, 9 and 16 for the moduli 255 to 252), so
 * |w| <= 2^15 125 + 2^16 + 2^7 < 2^22. even (whether p may be), accumulate and fused are constants. */
MPG_INLINE void words_reduce_by(const int32_t *MPG_RESTRICT product, float power, float p, float inverse, ptrdiff_t count,
                                int even, int accumulate, int8_t *MPG_RESTRICT residues, int fused)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const int32_t low = (product[i] & 0xFFFF) + (accumulate ? residues[i] : 0);
        const float w = words_maddf((float)(product[i] >> 16), power, (float)low, fused);
        residues[i] = words_balanced_byte((int32_t)words_remainder(w, p, inverse, fused), even, (int32_t)p);
    }
}

MPG_INLINE void words_reduce(const int32_t *product, float power, float p, float inverse, ptrdiff_t count, int accumulate,
                             int8_t *residues, int fused)
{
    if (accumulate)
        words_reduce_by(product, power, p, inverse, count, 1, 1, residues, fused);
    else if ((int32_t)p % 2 == 0)
        words_reduce_by(product, power, p, inverse, count, 1, 0, residues, fused);
    else
        words_reduce_by(product, power, p, inverse, count, 0, 0, residues, fused);
}

/* Sums of product_j factor_j modulo an odd p, as two bytes: 2^WORDS_HIGH high + low. The sums are integers below 2^53, so exact; a
 * quotient beside the nearest leaves a remainder somewhat beyond p/2, which changes nothing but the two bytes. */
MPG_INLINE void words_reduce_sums(const void *const *products, const int *types, const double *factors, int count, double p,
                                  double inverse, ptrdiff_t start, ptrdiff_t size, int8_t *MPG_RESTRICT high,
                                  int8_t *MPG_RESTRICT low)
{
    double sums[WORDS_CHUNK], values[WORDS_CHUNK];
    for (ptrdiff_t i = 0; i < size; i++)
        sums[i] = 0.0;
    for (int j = 0; j < count; j++) {
        const double factor = factors[j];
        words_numbers(products[j], types[j], start, size, values);
        for (ptrdiff_t i = 0; i < size; i++)
            sums[i] += values[i] * factor;
    }
    for (ptrdiff_t i = 0; i < size; i++) {
        const double rest = sums[i] - words_nearest(sums[i] * inverse) * p;
        const double upper = words_nearest(rest * (1.0 / (1 << WORDS_HIGH)));
        high[i] = (int8_t)(int32_t)upper;
        low[i] = (int8_t)(int32_t)(rest - upper * (1 << WORDS_HIGH));
    }
}

/* Whether 2 T + sign M is negative, for T in limbs `step` apart, each below 2^53. */
MPG_INLINE int words_below(const double *limbs, ptrdiff_t step, const words_remainders *r, int64_t sign)
{
    int64_t carry = 0;
    for (int j = 0; j < r->limbs; j++) {
        const int64_t sum = 2 * (int64_t)limbs[j * step] + sign * (int64_t)r->product[j] + carry;
        const int64_t low = sum & ((INT64_C(1) << WORDS_LIMB) - 1);
        carry = (sum - low) / (INT64_C(1) << WORDS_LIMB);
    }
    return carry < 0; /* the limbs left behind are not negative */
}

/* The integer in limbs `step` apart brought into [-M/2, M/2) from within M of it. */
MPG_INLINE void words_centre(double *limbs, ptrdiff_t step, const words_remainders *r)
{
    const int above = !words_below(limbs, step, r, -1), below = words_below(limbs, step, r, 1);
    for (int j = 0; j < r->limbs; j++)
        limbs[j * step] += (double)(below - above) * r->product[j];
}

/* Integers in limbs rounded once to binary64, to nearest even.
 *
 * One or two limbs are below 2^53 each, so that one addition rounds. With more, carries leave |limb_j| <= 2^39 below the top. From
 * the top down, limbs are added as long as that is exact; the error of the first inexact addition starts the rest, to which lower
 * limbs are added with rounding to odd. When the rest starts it is a multiple of the unit of its limb and at most half a unit
 * in the last place of the sum; what lies below any limb is less than its unit. So the rest stays on its side of every number
 * of 53 bits more than it replaces, and the last addition rounds as if it were the only one (Boldo and Melquiond 2008). */
MPG_INLINE void words_round(double (*MPG_RESTRICT limbs)[WORDS_PART], int count, ptrdiff_t size, double *MPG_RESTRICT out)
{
    double rest[WORDS_PART];
    if (count <= 2) {
        for (ptrdiff_t i = 0; i < size; i++)
            out[i] = count == 1 ? limbs[0][i] : limbs[1][i] * 0x1p40 + limbs[0][i];
        return;
    }
    for (int j = 0; j + 1 < count; j++)
        for (ptrdiff_t i = 0; i < size; i++) {
            const double carry = words_nearest(limbs[j][i] * 0x1p-40);
            limbs[j][i] -= carry * 0x1p40;
            limbs[j + 1][i] += carry;
        }
    const double top = ldexp(1.0, WORDS_LIMB * (count - 1));
    for (ptrdiff_t i = 0; i < size; i++) {
        out[i] = limbs[count - 1][i] * top;
        rest[i] = 0.0;
    }
    for (int j = count - 2; j >= 0; j--) {
        const double unit = ldexp(1.0, WORDS_LIMB * j);
        for (ptrdiff_t i = 0; i < size; i++) {
            const double part = limbs[j][i] * unit;
            double error;
            const double sum = exact_two_sum(out[i], part, &error), odd = exact_odd_sum(rest[i], part);
            const int exact = rest[i] == 0.0;
            out[i] = exact ? sum : out[i];
            rest[i] = exact ? error : odd;
        }
    }
    for (ptrdiff_t i = 0; i < size; i++)
        out[i] += rest[i];
}

/* sums += sum of numbers_j weight_j, four at a time. */
MPG_INLINE void words_weighted(double (*MPG_RESTRICT numbers)[WORDS_PART], const double *MPG_RESTRICT weights, int count,
                               ptrdiff_t size, double *MPG_RESTRICT sums, int fused)
{
    int j = 0;
    for (; j + 4 <= count; j += 4) {
        const double w0 = weights[j], w1 = weights[j + 1], w2 = weights[j + 2], w3 = weights[j + 3];
        for (ptrdiff_t i = 0; i < size; i++)
            sums[i] = words_madd(
                numbers[j + 3][i], w3,
                words_madd(numbers[j + 2][i], w2,
                           words_madd(numbers[j + 1][i], w1, words_madd(numbers[j][i], w0, sums[i], fused), fused), fused),
                fused);
    }
    for (; j < count; j++) {
        const double w0 = weights[j];
        for (ptrdiff_t i = 0; i < size; i++)
            sums[i] = words_madd(numbers[j][i], w0, sums[i], fused);
    }
}

/* `size` <= WORDS_PART integers from the planes of y_i, rounded once.
 *
 * |y_i| <= 128, limbs of weights are below 2^40 and there are at most 54 moduli, so sums of y_i weight_i stay below 2^52.8; q is at
 * most 27, so q M adds less than 2^44.8 to a limb: all exact, in any order. The sum of y_i / p_i, at most 27, has an error below
 * 2^-43 (54 products and additions of at most 2^-53 and 2^-49), so the integer is within M 2^-43 of [-M/2, M/2); where it may lie
 * beyond, the limbs decide. */
MPG_INLINE void words_join_residues(const words_remainders *r, const int8_t *planes, ptrdiff_t plane, ptrdiff_t start,
                                    ptrdiff_t size, double *MPG_RESTRICT out, int fused)
{
    double numbers[WORDS_MODULI][WORDS_PART], limbs[WORDS_LIMBS][WORDS_PART], quotient[WORDS_PART], near[WORDS_PART];
    int any = 0;
    for (int j = 0; j < r->moduli; j++) {
        const int8_t *MPG_RESTRICT residues = planes + j * plane + start;
        for (ptrdiff_t i = 0; i < size; i++)
            numbers[j][i] = (double)(int32_t)residues[i];
    }
    for (ptrdiff_t i = 0; i < size; i++)
        quotient[i] = 0.0 * numbers[0][i]; /* a plain 0 would become a string instruction, slow for a part as short */
    words_weighted(numbers, r->inverses, r->moduli, size, quotient, fused);
    for (ptrdiff_t i = 0; i < size; i++) {
        const double whole = words_nearest(quotient[i]);
        near[i] = fabs(quotient[i] - whole);
        any |= near[i] > 0.5 - 0x1p-40;
        quotient[i] = whole;
    }
    for (int k = 0; k < r->limbs; k++) {
        const double product = r->product[k];
        for (ptrdiff_t i = 0; i < size; i++)
            limbs[k][i] = -quotient[i] * product;
        words_weighted(numbers, r->weights + k * r->moduli, r->moduli, size, limbs[k], fused);
    }
    if (any)
        for (ptrdiff_t i = 0; i < size; i++)
            if (near[i] > 0.5 - 0x1p-40)
                words_centre(&limbs[0][i], WORDS_PART, r);
    words_round(limbs, r->limbs, size, out);
}

#endif
