/* A product in 32-bit lanes as the driver runs it. */
#ifndef MPG_NARROW_JOB_H
#define MPG_NARROW_JOB_H

#include "driver.h"
#include "narrow_tiles.h"

typedef struct {
    mpg_drive drive;
    mpg_narrow_task task;
    mpg_source a, b;
    mpg_operand a_format, b_format;
    int plain_order;
    int64_t m, n;
    float *d;      /* (m, n): the running result */
    uint8_t *redo; /* (m, n), and one for each row and column: what needs the generic kernel */
    uint8_t *rows_marked, *columns_marked;
    float *av, *bv; /* packed operands of a slice */
    uint32_t *ae;
    uint8_t *be;
} mpg_narrow_job;

/* Bytes of packed operands for each position of k. */
static int64_t mpg_narrow_bytes(int64_t m, int64_t n) { return m * 8 + mpg_padded_columns(n) * 5; }

static void mpg_narrow_pack_rows(const mpg_drive *drive, int64_t block)
{
    const mpg_narrow_job *job = (const mpg_narrow_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = block * MPG_TILE_ROWS;
    for (int64_t r = first; r < first + mpg_block_rows(job->m, block); r++)
        mpg_narrow_pack_a(&job->a, &job->a_format, r, begin, begin + part, job->plain_order, job->av + r * part,
                          job->ae + r * part, job->rows_marked, drive->level);
}

static void mpg_narrow_pack_panel(const mpg_drive *drive, int64_t panel)
{
    const mpg_narrow_job *job = (const mpg_narrow_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, start = mpg_panel_start(job->n, panel);
    mpg_narrow_pack_b(&job->b, &job->b_format, start, mpg_panel_count(job->n, panel), mpg_panel_width(job->n, panel), begin,
                      begin + part, job->bv + start * part, job->be + start * part, job->columns_marked, drive->level);
}

static void mpg_narrow_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_narrow_job *job = (const mpg_narrow_job *)drive;
    const int64_t part = drive->part, r = block * MPG_TILE_ROWS, start = mpg_panel_start(job->n, panel), n = job->n;
    mpg_narrow_tile(&job->task, job->av + r * part, job->ae + r * part, part, mpg_block_rows(job->m, block),
                    job->bv + start * part, job->be + start * part, mpg_panel_width(n, panel), mpg_panel_count(n, panel),
                    job->d + r * n + start, job->redo + r * n + start, n, drive->level);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_narrow_start(mpg_narrow_job *job, char *workspace)
{
    mpg_drive *drive = &job->drive;
    const int64_t length = drive->length;
    job->bv = (float *)workspace;
    job->av = job->bv + mpg_padded_columns(job->n) * length;
    job->ae = (uint32_t *)(job->av + job->m * length);
    job->be = (uint8_t *)(job->ae + job->m * length);
    drive->blocks = drive->row_pieces = mpg_blocks(job->m);
    drive->panels = drive->column_pieces = mpg_panels(job->n);
    drive->panels_first = 1;
    drive->work = (double)MPG_TILE_ROWS * MPG_PANEL;
    drive->pack_rows = mpg_narrow_pack_rows;
    drive->pack_columns = mpg_narrow_pack_panel;
    drive->tile = mpg_narrow_run_tile;
}

#endif
