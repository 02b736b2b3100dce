/* A product in 32-bit lanes as the driver runs it. */
#ifndef MPG_NARROW_JOB_H
#define MPG_NARROW_JOB_H

#include "driver.h"
#include "narrow_tiles.h"

typedef struct {
    mpg_drive drive;
    mpg_narrow_task task;
    mpg_operand a_format, b_format;
    int plain_order;
    float *av, *bv; /* packed operands of a slice */
    uint32_t *ae;
    uint8_t *be;
} mpg_narrow_job;

/* Bytes of packed operands for each position of k. */
static int64_t mpg_narrow_bytes(int64_t m, int64_t n) { return m * 8 + mpg_padded_columns(n) * 5; }

static void mpg_narrow_pack_row(const mpg_drive *drive, int64_t r)
{
    const mpg_narrow_job *job = (const mpg_narrow_job *)drive;
    const int64_t begin = drive->begin, part = drive->part;
    mpg_narrow_pack_a(&drive->a, &job->a_format, r, begin, begin + part, job->plain_order, job->av + r * part,
                      job->ae + r * part, drive->rows_marked, drive->level);
}

static void mpg_narrow_pack_panel(const mpg_drive *drive, int64_t panel)
{
    const mpg_narrow_job *job = (const mpg_narrow_job *)drive;
    const mpg_narrow_panel p = mpg_panel_of(drive->n, panel, job->bv, job->be, drive->part);
    mpg_narrow_pack_b(&drive->b, &job->b_format, &p, drive->begin, drive->begin + drive->part, drive->columns_marked,
                      drive->level);
}

static void mpg_narrow_shift_back(const mpg_result_tile *tile, float back)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int j = 0; j < tile->columns; j++)
            tile->d[i * tile->ld + j] *= back;
}

static void mpg_narrow_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_narrow_job *job = (const mpg_narrow_job *)drive;
    const int64_t part = drive->part, place = block * MPG_TILE_ROWS * part;
    const mpg_narrow_panel p = mpg_panel_of(drive->n, panel, job->bv, job->be, part);
    const mpg_narrow_operands operands = {job->av + place, job->ae + place, part, p.values, p.exponents, 0, NULL};
    mpg_own_tile own;
    mpg_take_tile(drive, block, p.first, p.count, MPG_SIZE(drive->level, MPG_NARROW_DEPTH_SIZES), &own);
    mpg_narrow_tile(&job->task, &operands, p.width, &own.tile, drive->level);
    if (job->task.back != 1.0f && drive->begin + part == drive->total)
        mpg_narrow_shift_back(&own.tile, job->task.back);
    mpg_give_tile(&own);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_narrow_start(mpg_drive *drive, char *workspace)
{
    mpg_narrow_job *job = (mpg_narrow_job *)drive;
    const int64_t length = drive->length;
    job->bv = (float *)workspace;
    job->av = job->bv + mpg_padded_columns(drive->n) * length;
    job->ae = (uint32_t *)(job->av + drive->m * length);
    job->be = (uint8_t *)(job->ae + drive->m * length);
    mpg_drive_in_blocks(drive, MPG_PANEL);
    drive->panels = drive->column_pieces = mpg_panels(drive->n);
    drive->panels_first = 1;
    drive->pack_row = mpg_narrow_pack_row;
    drive->pack_columns = mpg_narrow_pack_panel;
    drive->tile = mpg_narrow_run_tile;
}

#endif
