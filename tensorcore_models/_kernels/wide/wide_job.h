/* A product in 64-bit lanes as the driver runs it. */
#ifndef MPG_WIDE_JOB_H
#define MPG_WIDE_JOB_H

#include "driver.h"
#include "wide_avx512.h"

typedef struct {
    mpg_drive drive;
    mpg_wide_task task;
    mpg_source a, b;
    mpg_operand a_format, b_format;
    int plain_order;
    int64_t m, n;
    float *d;      /* (m, n): the running result */
    uint8_t *redo; /* (m, n), and one for each row and column: what needs the generic kernel */
    uint8_t *rows_marked, *columns_marked;
    double *av, *bv; /* packed operands of a slice */
    uint32_t *ae, *al;
    int16_t *be, *bl;
} mpg_wide_job;

static int64_t mpg_wide_count(int64_t n) { return (n + MPG_WIDE - 1) / MPG_WIDE; }

/* Bytes of packed operands for each position of k. */
static int64_t mpg_wide_bytes(int64_t m, int64_t n) { return m * 16 + mpg_wide_count(n) * MPG_WIDE * 12; }

static int mpg_wide_columns(const mpg_wide_job *job, int64_t first)
{
    return (int)(job->n - first < MPG_WIDE ? job->n - first : MPG_WIDE);
}

static void mpg_wide_pack_rows(const mpg_drive *drive, int64_t block)
{
    const mpg_wide_job *job = (const mpg_wide_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = block * MPG_TILE_ROWS;
    for (int64_t r = first; r < first + mpg_block_rows(job->m, block); r++)
        mpg_wide_pack_a(&job->a, &job->a_format, r, begin, begin + part, job->plain_order, MPG_WIDE_TRUNCATES(&job->task),
                        job->av + r * part, job->ae + r * part, job->al + r * part, job->rows_marked, drive->level);
}

static void mpg_wide_pack_panel(const mpg_drive *drive, int64_t panel)
{
    const mpg_wide_job *job = (const mpg_wide_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = panel * MPG_WIDE;
    mpg_wide_pack_b(&job->b, &job->b_format, first, mpg_wide_columns(job, first), begin, begin + part,
                    MPG_WIDE_TRUNCATES(&job->task), job->bv + first * part, job->be + first * part, job->bl + first * part,
                    job->columns_marked, drive->level);
}

static void mpg_wide_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_wide_job *job = (const mpg_wide_job *)drive;
    const int64_t part = drive->part, r = block * MPG_TILE_ROWS, first = panel * MPG_WIDE, n = job->n;
    mpg_wide_tile(&job->task, job->av + r * part, job->ae + r * part, job->al + r * part, part, mpg_block_rows(job->m, block),
                  job->bv + first * part, job->be + first * part, job->bl + first * part, mpg_wide_columns(job, first),
                  job->d + r * n + first, job->redo + r * n + first, n, drive->level);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_wide_start(mpg_wide_job *job, char *workspace)
{
    mpg_drive *drive = &job->drive;
    const int64_t length = drive->length, columns = mpg_wide_count(job->n) * MPG_WIDE;
    job->bv = (double *)workspace;
    job->be = (int16_t *)(job->bv + columns * length);
    job->bl = job->be + columns * length;
    job->av = (double *)(job->bl + columns * length);
    job->ae = (uint32_t *)(job->av + job->m * length);
    job->al = job->ae + job->m * length;
    drive->blocks = drive->row_pieces = mpg_blocks(job->m);
    drive->panels = drive->column_pieces = mpg_wide_count(job->n);
    drive->panels_first = 1;
    drive->work = (double)MPG_TILE_ROWS * MPG_WIDE;
    drive->pack_rows = mpg_wide_pack_rows;
    drive->pack_columns = mpg_wide_pack_panel;
    drive->tile = mpg_wide_run_tile;
}

#endif
