/* Sums of two and of three binary64 numbers, with their error or rounded to odd. */
#ifndef MPGEMM_SUMS_H
#define MPGEMM_SUMS_H

#include "bits.h"

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
    const uint64_t bits = mpg_as_bits64(sum), even = ~bits & 1;
    /* one unit up or down in magnitude, if inexact and even; without a branch */
    const uint64_t step = (error > 0) == (sum > 0) ? even : (uint64_t)0 - even;
    return mpg_as_double(error != 0.0 ? bits + step : bits);
}

/* What is asked of an exact value v, with x a given number. */
enum { EXACT_NEAREST, EXACT_ODD, EXACT_DIFFERENCE /* x - v to nearest, never to 0 unless it is 0 */ };

/* x + y + z, correctly rounded (Boldo and Melquiond 2008, algorithm 5), or odd. */
MPG_INLINE double exact_three_sum(double x, double y, double z, int what)
{
    double lower, low, upper = exact_two_sum(y, z, &lower), high = exact_two_sum(x, upper, &low);
    const double rest = exact_odd_sum(low, lower);
    return what == EXACT_ODD ? exact_odd_sum(high, rest) : high + rest;
}

#endif
