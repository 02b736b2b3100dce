/* Sums of two binary64 numbers with their error, and rounding to odd. */
#ifndef MPGEMM_SUMS_H
#define MPGEMM_SUMS_H

#include <stdint.h>
#include <string.h>

#include "cpu.h"

MPG_INLINE uint64_t exact_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MPG_INLINE double exact_value(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* x + y and its error (Knuth's TwoSum): exact unless something overflows. */
MPG_INLINE double exact_two_sum(double x, double y, double *error)
{
    const double sum = x + y, back = sum - x;
    *error = (x - (sum - back)) + (y - back);
    return sum;
}

/* x + y rounded to odd (Boldo and Melquiond 2008). */
MPG_INLINE double exact_odd_sum(double x, double y)
{
    double error;
    const double sum = exact_two_sum(x, y, &error);
    const uint64_t bits = exact_bits(sum), even = ~bits & 1;
    /* one unit up or down in magnitude, if inexact and even; without a branch */
    const uint64_t step = (error > 0) == (sum > 0) ? even : (uint64_t)0 - even;
    return exact_value(error != 0.0 ? bits + step : bits);
}

#endif
