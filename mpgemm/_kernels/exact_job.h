/* Exact products as the driver runs them: the scales of rows and columns, the chains of a block, and what follows from its sums. */
#ifndef MPGEMM_EXACT_JOB_H
#define MPGEMM_EXACT_JOB_H

#include "exact.h"

/* Rows and columns that one thread takes at a time; elements that it takes after the chains. */
enum { EXACT_TILE = 192, EXACT_SHARE = 1 << 14 };

/* Tells the driver to run `items` over `count` rows or columns of `size` elements each. */
static void exact_batch(mpg_batch *batch, int (*items)(const mpg_batch *, int64_t, int64_t), int64_t count, int64_t size)
{
    batch->items = items;
    batch->count = count;
    batch->each = size < EXACT_SHARE ? EXACT_SHARE / size : 1;
}

/* ---- scales --------------------------------------------------------------------------------------------------------- */
/* Whether multiples of `unit` up to `largest` are integers below 2^53 times a power of two. */
static int exact_has_unit(double largest, double unit)
{
    int exponent, lowest;
    frexp(largest, &exponent);
    frexp(unit, &lowest);
    return exponent - lowest + 1 <= 53;
}

/* The smallest lowest set bit of `count` elements from `start`, `step` apart. */
static double exact_unit(const exact_matrix *x, int64_t start, int64_t step, int64_t count)
{
    double unit = INFINITY;
    for (int64_t i = 0; i < count; i++) {
        const char *place = exact_at(x, 0, start + i * step);
        const double low =
            exact_lowest_bit(x->is_double ? *(const double *)(const void *)place : *(const float *)(const void *)place);
        unit = low < unit ? low : unit;
    }
    return unit;
}

/* Scale of the row or column `at`: `count` elements from `start`, `step` apart. A power of two makes the elements integers below
 * 2^53 or, where none does, brings the largest near 1. */
static void exact_choose_scale(const exact_matrix *x, int64_t start, int64_t step, int64_t count, double largest,
                               double smallest, double squares, int64_t at)
{
    const int bits = x->is_double ? 53 : 24, least = x->is_double ? -1074 : -149;
    int exponent, lowest;
    double unit;
    x->factors[at] = x->units[at] = 1.0;
    x->bounds[at] = x->limits[at] = 0.0;
    if (largest == 0.0 && squares == 0.0)
        return;
    if (!(0x1p-400 < largest && largest < 0x1p400 && squares < INFINITY)) {
        x->factors[at] = 0.0;
        x->bounds[at] = x->limits[at] = INFINITY;
        return;
    }
    frexp(smallest, &lowest);
    unit = ldexp(1.0, lowest - bits > least ? lowest - bits : least);
    if (!exact_has_unit(largest, unit))
        unit = exact_unit(x, start, step, count);
    frexp(largest, &exponent);
    x->limits[at] = INFINITY;
    if (exact_has_unit(largest, unit)) {
        frexp(unit, &exponent);
        exponent--;
        x->limits[at] = 0.0;
    }
    x->factors[at] = ldexp(1.0, -exponent);
    x->units[at] = ldexp(1.0, exponent);
    /* every product and addition of the squares, and the root, may have rounded down */
    x->bounds[at] = sqrt(squares * (1 + (double)(count + 4) * 0x1p-52)) * x->factors[at] * (1 + 0x1p-50);
    x->limits[at] += x->bounds[at];
}

/* |S - N| <= bound of the row * bound of the column. */
static int exact_row_scales(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_job *job = exact_job_of(batch);
    const int64_t k = job->a.columns;
    const double roundings = (double)(EXACT_CHAIN + k / EXACT_CHAIN + 4) * 0x1p-53 * (1 + 0x1p-20);
    for (int64_t row = first; row < last; row++) {
        double largest, smallest, squares;
        const exact_extent extent = {&largest, &smallest, &squares};
        EXACT_OF_LEVEL(exact_scan_vector, job->drive.level)(&job->a, row, &extent);
        exact_choose_scale(&job->a, row * k, 1, k, largest, smallest, squares, row);
        job->a.bounds[row] *= roundings;
        job->a.limits[row] *= roundings;
    }
    return 1;
}

static int exact_column_scales(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_job *job = exact_job_of(batch);
    const exact_extent *of = &job->extent;
    for (int64_t column = first; column < last; column++)
        exact_choose_scale(&job->b, column, job->b.columns, job->b.rows, of->largest[column], of->smallest[column],
                           of->squares[column], column);
    return 1;
}

/* Bytes for the scales of all rows and columns, and where they lie. */
static size_t exact_scale_bytes(const exact_job *job)
{
    return (size_t)(4 * job->a.rows + 7 * job->b.columns) * sizeof(double);
}

static double *exact_place_scales(exact_matrix *x, double *at, int64_t count)
{
    x->factors = at;
    x->units = at + count;
    x->bounds = at + 2 * count;
    x->limits = at + 3 * count;
    return at + 4 * count;
}

/* Level and layout of a product, the place of its scales, and the batch of the rows' scales. */
static void exact_open(exact_job *job, char *memory, int level)
{
    double *free = exact_place_scales(&job->a, (double *)(void *)memory, job->a.rows);
    job->extent.largest = exact_place_scales(&job->b, free, job->b.columns);
    job->extent.smallest = job->extent.largest + job->b.columns;
    job->extent.squares = job->extent.smallest + job->b.columns;
    job->drive.level = exact_best_level(level);
    job->grid.rows = MPG_SIZE(job->drive.level, EXACT_ROWS_SIZES);
    job->grid.columns = MPG_SIZE(job->drive.level, EXACT_WIDTH_SIZES);
    exact_batch(&job->batch, exact_row_scales, job->a.rows, job->a.columns);
}

/* The batch of the columns' scales. */
static void exact_scan(exact_job *job)
{
    for (int64_t i = 0; i < job->b.columns; i++) {
        job->extent.largest[i] = job->extent.squares[i] = 0.0;
        job->extent.smallest[i] = INFINITY;
    }
    EXACT_OF_LEVEL(exact_scan_columns, job->drive.level)(job);
    exact_batch(&job->batch, exact_column_scales, job->b.columns, job->b.rows);
}

/* ---- one block ------------------------------------------------------------------------------------------------------- */
static int64_t exact_most(int64_t size, int64_t multiple)
{
    return ((size < EXACT_BLOCK ? size : EXACT_BLOCK) + multiple - 1) / multiple * multiple;
}

/* Places the packed operands and sums of the largest block in memory, NULL for none yet. Returns how many bytes they take. */
static size_t exact_place_block(exact_job *job, char *memory, int residues)
{
    const size_t rows = (size_t)exact_most(job->a.rows, job->grid.rows),
                 depth = (size_t)exact_most(job->a.columns, EXACT_DEPTH);
    const size_t columns = (size_t)exact_most(job->b.columns, job->grid.columns), sums = rows * columns;
    const size_t integers = residues && exact_takes_integers(job->drive.level) ? depth : 0;
    if (memory) {
        job->packed_b = (double *)(void *)memory;
        job->packed_a = job->packed_b + columns * depth;
        job->sums = job->packed_a + rows * depth;
        job->residues = residues ? (uint64_t *)(job->sums + sums) : NULL;
        job->integer_b = integers ? job->residues + sums : NULL;
        job->integer_a = integers ? job->integer_b + columns * depth : NULL;
    }
    return ((rows + columns) * (depth + integers) + (residues ? 2 : 1) * sums) * sizeof(double);
}

/* Tells the driver to run the chains of the block of `rows` x `columns` elements from (row, column) on, over all of k. */
static void exact_start(exact_job *job, int64_t row, int64_t column, int64_t rows, int64_t columns, int threads)
{
    mpg_drive *drive = &job->drive;
    job->row = row;
    job->column = column;
    drive->m = rows < job->a.rows - row ? rows : job->a.rows - row;
    drive->n = columns < job->b.columns - column ? columns : job->b.columns - column;
    drive->total = job->a.columns;
    drive->length = drive->total < EXACT_BLOCK ? drive->total : EXACT_BLOCK;
    mpg_drive_in_grid(drive, &job->grid, EXACT_TILE, threads);
    drive->pack_row = EXACT_OF_LEVEL(exact_pack_row, drive->level);
    drive->pack_columns = EXACT_OF_LEVEL(exact_pack_positions, drive->level);
    drive->tile = EXACT_OF_LEVEL(exact_tile, drive->level);
}

/* The batches of a block's rows after its chains: FP32 results by S alone, S and D, FP32 results by both. */
static void exact_certify(exact_job *job)
{
    exact_batch(&job->batch, EXACT_OF_LEVEL(exact_certify, job->drive.level), job->drive.m, job->drive.n);
}

static void exact_expand(exact_job *job)
{
    exact_batch(&job->batch, EXACT_OF_LEVEL(exact_expand, job->drive.level), job->drive.m, job->drive.n);
}

static void exact_settle(exact_job *job)
{
    exact_batch(&job->batch, EXACT_OF_LEVEL(exact_settle, job->drive.level), job->drive.m, job->drive.n);
}

/* Elements of the block that are open. */
static int64_t exact_left(const exact_job *job)
{
    int64_t left = 0;
    for (int64_t i = 0; i < job->drive.m; i++) {
        const uint8_t *open = job->open + (job->row + i) * job->b.columns + job->column;
        for (int64_t j = 0; j < job->drive.n; j++)
            left += open[j];
    }
    return left;
}

/* ---- single elements ------------------------------------------------------------------------------------------------- */
static void exact_finish_start(exact_finishing *job, int64_t m, int level)
{
    exact_batch(&job->batch, EXACT_OF_LEVEL(exact_finish_rows, exact_best_level(level)), m, job->n);
}

/* Tells the driver to compute elements [start, end). */
static void exact_dots_start(exact_dots *job, int64_t start, int64_t end)
{
    job->start = start;
    exact_batch(&job->batch, exact_dot_items, end - start, EXACT_SHARE / 16);
}

#endif
