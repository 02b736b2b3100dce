/* A tile of integer dot products, by level. */
#ifndef MPG_INTEGER_TILES_H
#define MPG_INTEGER_TILES_H

#include "integer.h"

#define MPG_INTEGER_ROWS 4 /* whose sums stay in registers, two vectors each */

#define LANES_LEVEL MPG_ISA_BASELINE
#include "integer_lanes.h"
#if MPG_X86_VARIANTS
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX2
#include "integer_lanes.h"
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX512
#include "integer_lanes.h"
#endif
#undef LANES_LEVEL

/* `rows` packed rows of `length` products against one panel, d (row stride ldd) updated in place; `count` columns of it exist. */
static void mpg_integer_tile(const mpg_integer_task *t, const int16_t *a, int64_t length, int64_t rows, const int16_t *b,
                             int count, int32_t *d, int64_t ldd, int level)
{
    const int64_t depth = MPG_SIZE(level, MPG_INTEGER_DEPTH_SIZES);
    const int64_t block = depth > t->terms ? depth / t->terms * t->terms : t->terms;
    for (int64_t k = 0; k < length; k += block, a += block, b += block * MPG_INTEGER_LANES) {
        const int64_t part = length - k < block ? length - k : block;
#if MPG_X86_VARIANTS
        if (level != MPG_ISA_BASELINE) {
            (level == MPG_ISA_AVX2 ? mpg_integer_vectors_avx2 : mpg_integer_vectors_avx512)(t, a, length, rows, b, d, ldd,
                                                                                            count, part);
            continue;
        }
#endif
        mpg_integer_vectors_plain(t, a, length, rows, b, d, ldd, count, part);
    }
}

#endif
