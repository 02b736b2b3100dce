/* Integer words of matrices and what becomes of their products: what the integer recovery methods do around their engine passes.
 *
 * Contract. Matrices are C-contiguous; a task covers flat ranges of elements, which threads may take in any order. Operands are
 * float or double, of any finite value; what is not finite counts as 0. Every result is a function of its element (and of its
 * row's and column's powers of two) alone, given by tests/support/integer_reference.py in plain integers: all steps are exact in binary64 or
 * are the roundings that the method asks for, so bits depend neither on the variant nor on the threads.
 */
#ifndef MPGEMM_INTEGER_WORDS_H
#define MPGEMM_INTEGER_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "cpu.h"
#include "integer_words_join.h"
#include "integer_words_split.h"

enum {
    WORDS_TRUNCATED, /* operand -> `count` planes of `bits`-bit digits */
    WORDS_BALANCED,  /* operand -> `count` planes of 8-bit digits */
    WORDS_RESIDUES,  /* operand -> `count` planes of residues */
    WORDS_LOOKED_UP, /* operand -> `count` planes of what tables hold for its residues */
    WORDS_INTEGERS,  /* operand -> RZ(x) as int64 */
    WORDS_SCAN_ROWS, /* operand -> largest magnitude of each row */
    WORDS_SCAN_COLUMNS,
    WORDS_QUANTISE,    /* source -> one plane, what it leaves, its largest magnitude */
    WORDS_REDUCE,      /* int32 products -> residues */
    WORDS_REDUCE_SUMS, /* `count` products -> two planes of residues */
    WORDS_JOIN_SLICES, /* products -> result */
    WORDS_JOIN_RESIDUES,
    WORDS_ADD_QUANTISED /* result + product */
};

/* WORDS_BLOCK: elements that one thread takes at a time. */
enum { WORDS_BLOCK = 8192 };

typedef struct {
    int what, count, bits;
    words_operand operand;
    ptrdiff_t rows;
    /* operand -> words */
    int8_t *planes;
    ptrdiff_t plane;                         /* elements between planes */
    const float *moduli, *inverses, *powers; /* [modulus], [modulus], [piece][modulus] */
    const uint8_t *tables;
    int64_t *integers;
    double *largest; /* scans: of each row or column; quantised words: of each block */
    uint8_t *finite;
    /* quantised words; the factor of a product; 2^16 modulo the modulus of int32 products */
    double factor, limit;
    void *rest;
    /* int32 products -> residues */
    double modulus, inverse;
    int accumulate; /* also for sums of quantised words: add to what there is */
    /* products -> result */
    const void *const *products;
    const int *types;
    const double *steps; /* or factors of the products */
    words_remainders remainders;
    words_result result;
} words_task;

MPG_INLINE void words_split_range(const words_task *t, ptrdiff_t start, ptrdiff_t stop, int fused)
{
    for (ptrdiff_t i = start; i < stop; i += WORDS_CHUNK) {
        const ptrdiff_t size = stop - i < WORDS_CHUNK ? stop - i : WORDS_CHUNK;
        double values[WORDS_CHUNK];
        words_load(&t->operand, i, size, values);
        if (t->what == WORDS_TRUNCATED)
            words_truncated(values, size, t->count, t->bits, t->planes + i, t->plane);
        else if (t->what == WORDS_BALANCED)
            words_balanced(values, size, t->count, t->planes + i, t->plane);
        else if (t->what == WORDS_RESIDUES)
            words_residues(values, size, t->bits, t->count, t->moduli, t->inverses, t->powers, t->planes + i, t->plane, fused);
        else if (t->what == WORDS_LOOKED_UP)
            words_looked_up(values, size, t->bits, t->moduli, t->tables, t->count, t->planes + i, t->plane, fused);
        else
            for (ptrdiff_t j = 0; j < size; j++)
                t->integers[i + j] = (int64_t)values[j];
    }
}

MPG_INLINE void words_scan_range(const words_task *t, ptrdiff_t start, ptrdiff_t stop)
{
    const words_operand *x = &t->operand;
    if (t->what == WORDS_SCAN_ROWS)
        for (ptrdiff_t i = start; i < stop; i++)
            t->finite[i] = (uint8_t)(x->is_double ? words_scan_row_double(x->data, i * x->columns, x->columns, &t->largest[i])
                                                  : words_scan_row_float(x->data, i * x->columns, x->columns, &t->largest[i]));
    else if (x->is_double)
        words_scan_columns_double(x->data, t->rows, x->columns, start, stop - start, t->largest + start, t->finite + start);
    else
        words_scan_columns_float(x->data, t->rows, x->columns, start, stop - start, t->largest + start, t->finite + start);
}

MPG_INLINE void words_quantise_range(const words_task *t, ptrdiff_t start, ptrdiff_t stop)
{
    const ptrdiff_t size = stop - start;
    if (t->operand.is_double)
        t->largest[start / WORDS_BLOCK] =
            words_quantise_double((const double *)t->operand.data + start, size, t->factor, t->limit,
                                  t->rest ? (double *)t->rest + start : NULL, t->planes + start);
    else
        t->largest[start / WORDS_BLOCK] =
            words_quantise_float((const float *)t->operand.data + start, size, (float)t->factor, (float)t->limit,
                                 t->rest ? (float *)t->rest + start : NULL, t->planes + start);
}

MPG_INLINE void words_join_range(const words_task *t, ptrdiff_t start, ptrdiff_t stop, int fused)
{
    const ptrdiff_t step = t->what == WORDS_JOIN_RESIDUES ? WORDS_PART : WORDS_CHUNK;
    for (ptrdiff_t i = start; i < stop; i += step) {
        const ptrdiff_t size = stop - i < step ? stop - i : step;
        double values[WORDS_CHUNK];
        if (t->what == WORDS_JOIN_SLICES)
            words_join_slices(t->products, t->types, t->steps, t->count, i, size, values);
        else
            words_join_residues(&t->remainders, t->planes, t->plane, i, size, values, fused);
        words_store(&t->result, i, size, values);
    }
}

MPG_INLINE void words_reduce_range(const words_task *t, ptrdiff_t start, ptrdiff_t stop)
{
    for (ptrdiff_t i = start; i < stop; i += WORDS_CHUNK) {
        const ptrdiff_t size = stop - i < WORDS_CHUNK ? stop - i : WORDS_CHUNK;
        words_reduce_sums(t->products, t->types, t->steps, t->count, t->modulus, t->inverse, i, size, t->planes + i,
                          t->planes + t->plane + i);
    }
}

/* The range [start, stop) of a task, of at most WORDS_BLOCK elements; scans: of rows, or of at most WORDS_SCAN_BLOCK columns. */
MPG_INLINE void words_range(const words_task *t, ptrdiff_t start, ptrdiff_t stop, int fused)
{
    switch (t->what) {
    case WORDS_SCAN_ROWS:
    case WORDS_SCAN_COLUMNS:
        words_scan_range(t, start, stop);
        break;
    case WORDS_QUANTISE:
        words_quantise_range(t, start, stop);
        break;
    case WORDS_REDUCE:
        words_reduce((const int32_t *)t->products[0] + start, (float)t->factor, (float)t->modulus, (float)t->inverse,
                     stop - start, t->accumulate, t->planes + start, fused);
        break;
    case WORDS_REDUCE_SUMS:
        words_reduce_range(t, start, stop);
        break;
    case WORDS_ADD_QUANTISED:
        words_add_quantised(t->products[0], t->types[0], (float)t->factor, !t->accumulate, start, stop - start,
                            (float *)t->result.data + start);
        break;
    case WORDS_JOIN_SLICES:
    case WORDS_JOIN_RESIDUES:
        words_join_range(t, start, stop, fused);
        break;
    default:
        words_split_range(t, start, stop, fused);
    }
}

/* ---- the variants ---------------------------------------------------------------------------------------------------- */
/* Fused multiply-adds give the same bits; without instructions for them they would be calls. */
#if defined(__FMA__) || defined(__aarch64__)
#define WORDS_BASELINE_FUSED 1
#else
#define WORDS_BASELINE_FUSED 0
#endif

MPG_INLINE void words_run_body(int level, const words_task *t, ptrdiff_t start, ptrdiff_t stop)
{
    words_range(t, start, stop, WORDS_BASELINE_FUSED || (MPG_X86_VARIANTS && level != MPG_ISA_BASELINE));
}

MPG_VARIANTS(words_run, (t, start, stop), const words_task *t, ptrdiff_t start, ptrdiff_t stop)

#endif
