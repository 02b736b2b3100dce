/* How the fast kernels cut a product: a row for each size, a column for each instruction set. Sizes change no bit.
 *
 * ROWS and BYTES (of columns) are the part of the result whose running sums stay in registers; DEPTH is the part of k whose panel
 * stays in the first-level cache while rows of A run over it. The kernels above this package have rows of their own (cube.h, exact.h).
 */
#ifndef MPG_BLOCK_SIZES_H
#define MPG_BLOCK_SIZES_H

#include "cpu.h"

/* Positions of k that are packed together, at least; more where they take little memory. */
#define MPG_CHAIN_SLICE 256
#define MPG_NARROW_SLICE 512
#define MPG_WIDE_SLICE 256
#define MPG_GROUP_SLICE 64 /* groups */
#define MPG_INTEGER_SLICE 1024
#define MPG_PAIRWISE_SLICE 256

/*                            baseline, AVX2, AVX-512 */
#define MPG_CHAIN_BYTES_SIZES 64, 64, 256
#define MPG_CHAIN_DEPTH_SIZES 128, 256, 128
#define MPG_NARROW_DEPTH_SIZES 128, 128, 128 /* 64 columns of 5 bytes */
#define MPG_WIDE_ROWS_SIZES 4, 4, 2
#define MPG_WIDE_DEPTH_SIZES 96, 96, 96 /* 32 columns of 12 bytes; at least all terms */
#define MPG_GROUP_DEPTH_SIZES 512, 512, 512
#define MPG_INTEGER_DEPTH_SIZES 256, 256, 256

/* A size at a level: MPG_SIZE(level, MPG_WIDE_ROWS_SIZES). */
#define MPG_SIZE(level, ...) MPG_SIZE_OF(level, __VA_ARGS__)
#define MPG_SIZE_OF(level, baseline, avx2, avx512)                                                                             \
    ((level) >= MPG_ISA_AVX512 ? (avx512) : (level) >= MPG_ISA_AVX2 ? (avx2) : (baseline))

#endif
