/* Exact dot products: binary64 chains, their residues modulo 2^52, and a long accumulator.
 *
 * Contract. Rows of A and columns of B are scaled by powers of two. A row is *narrow* if all its elements are then integers
 * below 2^53. For a narrow row and a narrow column the exact sum N of the integer products is found from two chains:
 *
 *     S, the sum in binary64 arithmetic, an integer with |S - N| <= (EXACT_CHAIN + k / EXACT_CHAIN + 3) 2^-53 |a| |b|
 *     (|.| the Euclidean norm: a product meets at most that many roundings less one, in its own chain and when chains are
 *     added, and Cauchy-Schwarz bounds the sum of |a_i b_i|),
 *     L, the sum modulo 2^52 of the products modulo 2^52, exact in any order.
 *
 * Where the bound is below 2^51, N = S + D with D the one integer in [-2^51, 2^51) congruent to L - S. S + D is an exact sum
 * of two binary64 numbers. S alone with its bound certifies most correctly rounded FP32 results. Whatever these two cannot
 * settle is summed in a long accumulator (Kulisch), one element at a time. No result depends on the order of summation, so
 * none depends on the variant, the blocking or the threads.
 *
 * Layout as in BLIS: A in groups of R rows, [pass][group][R][EXACT_DEPTH]; B in panels of W columns,
 * [pass][panel][EXACT_DEPTH][W]; sums in micro-tiles, [panel][group][R][W]. Padding is zeros.
 */
#ifndef MPGEMM_EXACT_H
#define MPGEMM_EXACT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "block_sizes.h"
#include "driver.h"
#include "exact_long.h"
#include "sums.h"

#if MPG_X86_VARIANTS
#include <immintrin.h>
#endif

/*                        baseline, AVX2, AVX-512: see block_sizes.h */
#define EXACT_ROWS_SIZES 4, 4, 6
#define EXACT_WIDTH_SIZES 4, 8, 16

/* EXACT_DEPTH: k of one pass over a panel of B; EXACT_BLOCK: the most rows, columns and k of one packed block. */
enum { EXACT_CHAIN = 64, EXACT_DEPTH = 128, EXACT_BLOCK = 1024, EXACT_MAX_WIDTH = 16 };

/* The unit of sums whose rest is kept apart: EXACT_CHAIN halves of it are at most 2^51, and 2^51 of it are more than any sum whose
 * bound is below 2^50. */
#define EXACT_UNIT 0x1p46

/* A or B, C-contiguous, and the scales of its rows or columns. */
typedef struct {
    const char *data;
    int is_double; /* or float */
    int64_t rows, columns;
    double *factors; /* powers of two; 0 where nothing may be decided by the elements, which may be infinite */
    double *units;   /* their inverses */
    double *bounds;  /* at least the norms of the scaled elements */
    double *limits;  /* the bound where the scaled elements are integers, else infinite */
} exact_matrix;

/* Of a row or column, or of many: arrays. */
typedef struct {
    double *largest, *smallest, *squares;
} exact_extent;

typedef struct {
    mpg_drive drive; /* the chains of one block, of drive.m x drive.n elements */
    mpg_batch batch; /* rows of the block, or rows of A or columns of B */
    mpg_grid grid;
    exact_matrix a, b;
    exact_extent extent;             /* of the columns of B */
    int64_t row, column;             /* the block's first */
    double *packed_a, *packed_b;     /* scaled values */
    uint64_t *integer_a, *integer_b; /* the same modulo 2^64, for exact_takes_integers variants that find residues */
    double *sums;
    uint64_t *residues; /* NULL: binary64 chains only */
    const double *c;    /* of the whole product: addends or NULL, */
    double *high, *low; /* S and D, */
    float *out;         /* FP32 results, */
    uint8_t *open;      /* 1 where neither is known */
} exact_job;

/* What is asked of elements of which S and D are known; (m, n), c and x NULL or as large. */
typedef struct {
    mpg_batch batch;
    const double *high, *low, *row_units, *column_units, *c, *x;
    double *out;
    int64_t n;
    int what;
} exact_finishing;

static const char *exact_at(const exact_matrix *x, int64_t row, int64_t column)
{
    return x->data + (row * x->columns + column) * (x->is_double ? 8 : 4);
}

static const exact_job *exact_job_of(const mpg_batch *batch)
{
    return (const exact_job *)((const char *)batch - offsetof(exact_job, batch));
}

/* Where the sums of row i of the block and of the columns of a panel are; `rows` and `columns` of a micro-tile are constants. */
MPG_INLINE int64_t exact_place(const mpg_grid *g, int rows, int columns, int64_t i, int64_t panel)
{
    return ((panel * g->groups + i / rows) * rows + i % rows) * columns;
}

/* ---- scanning rows and columns -------------------------------------------------------------------------------------- */
/* Value of the lowest set bit of a normal number; its magnitude if it is a power of two, infinity if it is 0. */
MPG_INLINE double exact_lowest_bit(double x)
{
    const uint64_t bits = mpg_as_bits64(x) & UINT64_C(0x7FFFFFFFFFFFFFFF);
    const double magnitude = mpg_as_double(bits), rest = mpg_as_double(bits & (bits - 1));
    const double low = bits & UINT64_C(0x000FFFFFFFFFFFFF) ? magnitude - rest : magnitude;
    return bits ? low : INFINITY;
}

/* Largest and smallest nonzero magnitude and sum of squares, of every column, updated by one row. Squares become infinite
 * or NaN where an element is, or where binary64 cannot hold them: the caller then decides nothing by these elements. */
MPG_INLINE void exact_scan_row(const double *MPG_RESTRICT row, ptrdiff_t count, const exact_extent *extent)
{
    double *MPG_RESTRICT largest = extent->largest, *MPG_RESTRICT smallest = extent->smallest;
    double *MPG_RESTRICT squares = extent->squares;
    for (ptrdiff_t i = 0; i < count; i++) {
        const double magnitude = fabs(row[i]);
        const double nonzero = magnitude == 0.0 ? INFINITY : magnitude;
        largest[i] = largest[i] > magnitude ? largest[i] : magnitude;
        smallest[i] = smallest[i] < nonzero ? smallest[i] : nonzero;
        squares[i] += magnitude * magnitude;
    }
}

/* ---- the variants ---------------------------------------------------------------------------------------------------- */
#define VECTOR_SIZE 8

#define VECTOR_LEVEL MPG_ISA_BASELINE
#include "vector_set.h"
#include "exact_tile.h"
enum { EXACT_BASELINE_FUSED = VECTOR_FUSED };
#undef VECTOR_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX2
#include "vector_set.h"
#include "exact_tile.h"
#undef VECTOR_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX512
#include "vector_set.h"
#include "exact_tile.h"

#if MPG_X86_VARIANTS
/* With the 52-bit integer multiply-add both chains run side by side, one on each vector port. */
#include "vector_set.h"
#undef VECTOR_NAME
#undef VECTOR_TARGET
#define VECTOR_NAME(name) MPG_JOIN(name, _avx512ifma)
#define VECTOR_TARGET                                                                                                          \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512ifma,avx2,fma,bmi,bmi2" MPG_WIDE_VECTORS)))
#define EXACT_IFMA
#include "exact_tile.h"
#endif
#undef VECTOR_LEVEL
#undef VECTOR_SIZE

/* Levels of tensorcore_models.machine.instruction_sets, and one above them. */
enum { EXACT_LEVEL_IFMA = MPG_ISA_AVX512 + 1 };

static int exact_best_level(int level)
{
#if MPG_X86_VARIANTS
    if (level >= MPG_ISA_AVX512 && __builtin_cpu_supports("avx512ifma"))
        return EXACT_LEVEL_IFMA;
#endif
    return level;
}

/* Whether residues are found from integers; elsewhere from what multiply-adds round off. */
static int exact_takes_integers(int level)
{
    return level >= EXACT_LEVEL_IFMA || (level == MPG_ISA_BASELINE && !EXACT_BASELINE_FUSED);
}

/* The variant of a function for a level, the one above the instruction sets' included. */
#if MPG_X86_VARIANTS
#define EXACT_OF_LEVEL(name, level) ((level) >= EXACT_LEVEL_IFMA ? name##_avx512ifma : MPG_OF_LEVEL(name, level))
#else
#define EXACT_OF_LEVEL(name, level) MPG_OF_LEVEL(name, level)
#endif

#endif
