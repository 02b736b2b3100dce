/* A product of integers as the driver runs it. */
#ifndef MPG_INTEGER_JOB_H
#define MPG_INTEGER_JOB_H

#include "driver.h"
#include "integer_items.h"

typedef struct {
    mpg_drive drive;
    mpg_integer_task task;
    mpg_integer_source a, b;
    int64_t m, n;
    int32_t *d;       /* (m, n): the running result */
    uint8_t *av, *bv; /* packed operands of a slice */
} mpg_integer_job;

static int64_t mpg_integer_count(int64_t n) { return (n + MPG_INTEGER_LANES - 1) / MPG_INTEGER_LANES; }

/* Bytes of a packed number, and of packed operands for each position of k. */
static int64_t mpg_integer_size(int level) { return level == MPG_ISA_AVX512 ? 2 : 4; }
static int64_t mpg_integer_bytes(int64_t m, int64_t n) { return (m + mpg_integer_count(n) * MPG_INTEGER_LANES) * 4; }

static int mpg_integer_columns(const mpg_integer_job *job, int64_t first)
{
    return (int)(job->n - first < MPG_INTEGER_LANES ? job->n - first : MPG_INTEGER_LANES);
}

static void mpg_integer_pack_rows(const mpg_drive *drive, int64_t block)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = block * MPG_TILE_ROWS,
                  size = mpg_integer_size(drive->level);
    for (int64_t r = first; r < first + mpg_block_rows(job->m, block); r++)
        mpg_integer_pack_a(&job->a, r, begin, begin + part, job->av + r * part * size, drive->level);
}

static void mpg_integer_pack_panel(const mpg_drive *drive, int64_t panel)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = panel * MPG_INTEGER_LANES;
    mpg_integer_pack_b(&job->b, first, mpg_integer_columns(job, first), begin, begin + part,
                       job->bv + first * part * mpg_integer_size(drive->level), drive->level);
}

static void mpg_integer_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    const int64_t part = drive->part, r = block * MPG_TILE_ROWS, first = panel * MPG_INTEGER_LANES, n = job->n;
    const int64_t size = mpg_integer_size(drive->level);
    mpg_integer_tile(&job->task, job->av + r * part * size, part, mpg_block_rows(job->m, block), job->bv + first * part * size,
                     mpg_integer_columns(job, first), job->d + r * n + first, n, drive->level);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_integer_start(mpg_integer_job *job, char *workspace)
{
    mpg_drive *drive = &job->drive;
    job->bv = (uint8_t *)workspace;
    job->av = job->bv + mpg_integer_count(job->n) * MPG_INTEGER_LANES * drive->length * mpg_integer_size(drive->level);
    drive->blocks = drive->row_pieces = mpg_blocks(job->m);
    drive->panels = drive->column_pieces = mpg_integer_count(job->n);
    drive->panels_first = 0;
    drive->work = (double)MPG_TILE_ROWS * MPG_INTEGER_LANES;
    drive->pack_rows = mpg_integer_pack_rows;
    drive->pack_columns = mpg_integer_pack_panel;
    drive->tile = mpg_integer_run_tile;
}

#endif
