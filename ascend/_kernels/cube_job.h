/* Products on the cube: the driver runs one block of the result over one k group at a time. */
#ifndef ASCEND_CUBE_JOB_H
#define ASCEND_CUBE_JOB_H

#include "cube.h"

/* Numbers of rows and columns that one thread takes at a time. */
enum { CUBE_TILE = 256, CUBE_HALF_NAN = 0x7E00 };

static void cube_reconstruct(const float *hh, const float *lh, const float *hl, const float *ll, ptrdiff_t count,
                             const cube_scales *scales, float *out, int level)
{
    MPG_OF_LEVEL(cube_reconstruct, level)(hh, lh, hl, ll, count, scales, out);
}

/* Low words have scales 2^a_exponent and 2^b_exponent. */
static cube_scales cube_scales_of(int a_exponent, int b_exponent, int has_ll, int clamp)
{
    const int common = a_exponent > b_exponent ? a_exponent : b_exponent;
    const cube_scales scales = {ldexpf(1.0f, -common),
                                ldexpf(1.0f, common - a_exponent),
                                ldexpf(1.0f, common - b_exponent),
                                ldexpf(1.0f, common - a_exponent - b_exponent),
                                has_ll,
                                clamp};
    return scales;
}

/* Returns the exponent by which the words of a term are too large. */
static int cube_scale_exponent(const cube_job *job, int term)
{
    return (term & 1 ? job->task.a_exponent : 0) + (term & 2 ? job->task.b_exponent : 0);
}

/* Opens the job: sets the numbers that follow from the task. */
static void cube_open(cube_job *job, int level)
{
    const cube_task *t = &job->task;
    const uint32_t nan_code = t->saturate ? 0 : CUBE_HALF_NAN;
    job->drive.level = level;
    job->grid.rows = MPG_SIZE(level, CUBE_ROWS_SIZES);
    job->grid.columns = MPG_SIZE(level, CUBE_WIDTH_SIZES);
    job->words = t->terms == 1 ? 1 : 2;
    job->terms = t->terms;
    job->chains = t->elementwise || t->in_place || t->terms == 1 ? 1 : t->terms >> CUBE_LL & 1 ? 4 : 3;
    job->a_split = mpg_split_parameters(t->a_exponent, t->saturate, nan_code, !t->saturate);
    job->b_split = mpg_split_parameters(t->b_exponent, t->saturate, nan_code, !t->saturate);
    job->a_low_factor = t->elementwise ? ldexpf(1.0f, -t->a_exponent) : 1.0f;
    job->b_low_factor = t->elementwise ? ldexpf(1.0f, -t->b_exponent) : 1.0f;
    for (int term = 0; term < CUBE_TERMS;
         term++) /* products are multiples of 2^-48 below 2^32: both parts of 2^-6 sum exactly */
        job->bin[term] = ldexp(1.5, 52 - 6 - (t->elementwise ? cube_scale_exponent(job, term) : 0));
    job->scales = cube_scales_of(t->a_exponent, t->b_exponent, job->chains == 4, t->clamp);
}

/* Number of sums of a block. */
static int64_t cube_sums(const cube_job *job)
{
    return mpg_panels_of(job->drive.m, job->grid.rows) * job->grid.rows * mpg_panels_of(job->drive.n, job->grid.columns) *
           job->grid.columns * job->chains;
}

/* Moves to the block that begins at (row, column). */
static void cube_place_block(cube_job *job, int64_t row, int64_t column)
{
    job->row = row;
    job->column = column;
    job->drive.m = job->m - row < CUBE_BLOCK ? job->m - row : CUBE_BLOCK;
    job->drive.n = job->n - column < CUBE_BLOCK ? job->n - column : CUBE_BLOCK;
}

/* Places sums, C (where it is apart from them) and packed operands of the largest block in memory, NULL for none yet. Returns how many
 * bytes they take. */
static size_t cube_place_memory(cube_job *job, float *memory, int keep_totals)
{
    cube_place_block(job, 0, 0);
    const int64_t passes = (job->k < CUBE_BLOCK ? job->k : CUBE_BLOCK) / cube_pass(job) + 1, words = passes * 2 * CUBE_DEPTH;
    const int64_t rows = mpg_panels_of(job->drive.m, job->grid.rows) * job->grid.rows;
    const int64_t columns = mpg_panels_of(job->drive.n, job->grid.columns) * job->grid.columns,
                  size = (cube_sums(job) + 63) / 64 * 64;
    if (memory) {
        job->sums = memory;
        job->totals = keep_totals ? job->sums + size : job->sums;
        job->packed_b = job->totals + size;
        job->packed_a = job->packed_b + words * columns;
    }
    return (size_t)((keep_totals ? 2 : 1) * size + words * (rows + columns)) * sizeof(float);
}

/* Tells the driver to run the chains of the k group [start, end), from 0 if `fresh` and else from L0C; results go out if it is the last. */
static void cube_start(cube_job *job, int64_t start, int64_t end, int fresh, int last, int threads)
{
    mpg_drive *drive = &job->drive;
    const int64_t longest = CUBE_BLOCK / job->task.step * job->task.step;
    job->start = start;
    job->fresh = fresh;
    job->last = last;
    drive->total = end - start;
    drive->length = drive->total < longest ? drive->total : longest;
    mpg_drive_in_grid(drive, &job->grid, CUBE_TILE, threads);
    drive->pack_row = MPG_OF_LEVEL(cube_pack_row, drive->level);
    drive->pack_columns = MPG_OF_LEVEL(cube_pack_positions, drive->level);
    drive->tile = MPG_OF_LEVEL(cube_tile, drive->level);
}

/* ---- L0C and C of the block ------------------------------------------------------------------------------------------- */
/* Copies C of the caller, (m, n), into the first chain of L0C. */
static void cube_seed(cube_job *job, const float *c)
{
    const int64_t width = job->grid.columns;
    job->grid.groups = mpg_panels_of(job->drive.m, job->grid.rows);
    memset(job->sums, 0, (size_t)cube_sums(job) * sizeof(float));
    for (int64_t i = 0; i < job->drive.m; i++)
        for (int64_t first = 0; first < job->drive.n; first += width)
            memcpy(job->sums + cube_place(job, i, first / width), c + (job->row + i) * job->n + job->column + first,
                   (size_t)(job->drive.n - first < width ? job->drive.n - first : width) * sizeof(float));
}

/* C = RN(C + RN(L0C * 2^-exponent)), in FP32 or FP16. */
static void cube_accumulate(const cube_job *job, int exponent, int half)
{
    const float *MPG_RESTRICT sums = job->sums, factor = ldexpf(1.0f, -exponent);
    float *MPG_RESTRICT totals = job->totals;
    const int64_t count = cube_sums(job);
    const int clamp = job->task.clamp;
    if (half)
        for (int64_t i = 0; i < count; i++)
            totals[i] = cube_half_sum(totals[i], sums[i], clamp);
    else
        for (int64_t i = 0; i < count; i++)
            totals[i] = cube_limited(totals[i] + cube_limited(sums[i] * factor, clamp), clamp);
}

/* C = RN(L0C * 2^-exponent), or L0C = RN(C * 2^exponent). */
static void cube_move(const cube_job *job, int exponent, int to_sums)
{
    const float *MPG_RESTRICT source = to_sums ? job->totals : job->sums, factor = ldexpf(1.0f, to_sums ? exponent : -exponent);
    float *MPG_RESTRICT target = to_sums ? job->sums : job->totals;
    const int64_t count = cube_sums(job);
    const int clamp = job->task.clamp;
    for (int64_t i = 0; i < count; i++)
        target[i] = cube_limited(source[i] * factor, clamp);
}

/* Exchanges C and L0C. */
static void cube_exchange(cube_job *job)
{
    float *sums = job->sums;
    job->sums = job->totals;
    job->totals = sums;
}

/* Writes the result of the whole block from C, which is then L0C. */
static void cube_finish_totals(cube_job *job)
{
    const mpg_grid_part all = {0, job->grid.groups, 0, job->grid.panels};
    cube_exchange(job);
    MPG_OF_LEVEL(cube_finish, job->drive.level)(job, &all);
}

#endif
