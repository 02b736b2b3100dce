/* Fused dot-add whose addends are rounded to nearest even at their alignment, in 64-bit lanes (wide.h), float32 results by truncation.
 *
 * Runs with rounding to nearest. x + 1.5 * 2^52 units is x rounded to a multiple of the unit, ties to even, as 1.5 * 2^52 is even:
 * each product is rounded so by itself (one fused multiply-add, exact otherwise), and multiples of the unit add up exactly. Words of
 * lowest bits are not needed. Lanes whose largest exponent is not in F - 149 to 120 go to the generic kernel.
 *
 * Vector instructions for 16 products: 3 for each vector of doubles (6 with AVX-512, 12 with AVX2), and 2 vectors of words (1, 2).
 */
#ifndef MPG_WIDE_NEAREST_H
#define MPG_WIDE_NEAREST_H

#include "wide.h"
#include "wide_rows.h"

#if defined(__GNUC__) || defined(__clang__)
#define MPG_PRAGMA(text) _Pragma(#text)
#define MPG_UNROLLED(n) MPG_PRAGMA(GCC unroll n)
#else
#define MPG_UNROLLED(n)
#endif

#define VECTOR_LEVEL MPG_ISA_BASELINE
#include "wide_nearest_isa.h"
#undef VECTOR_LEVEL
#define VECTOR_LEVEL MPG_ISA_AVX2
#include "wide_nearest_isa.h"
#undef VECTOR_LEVEL
#define VECTOR_LEVEL MPG_ISA_AVX512
#include "wide_nearest_isa.h"
#undef VECTOR_LEVEL

/* As mpg_wide_rows_of. */
static void mpg_wide_nearest_rows(const mpg_wide_task *t, const mpg_wide_operands *p, int rows, double (*c)[MPG_WIDE],
                                  int64_t steps, uint8_t (*overflow)[MPG_WIDE], int level)
{
    for (int64_t k = 0; k < steps * t->terms; k += t->terms)
        for (int r = 0; r < rows; r++) {
            const mpg_wide_operands q = mpg_wide_from(p, r, k);
            if (MPG_OF_LEVEL(mpg_nearest_step, level)(t, &q, c[r]))
                mpg_mark_beyond(c[r], MPG_WIDE, 0x1p128, overflow[r]);
        }
}

#endif
