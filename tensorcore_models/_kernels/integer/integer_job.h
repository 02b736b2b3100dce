/* A product of integers as the driver runs it. */
#ifndef MPG_INTEGER_JOB_H
#define MPG_INTEGER_JOB_H

#include "driver.h"
#include "integer_items.h"

typedef struct {
    mpg_drive drive;
    mpg_integer_task task;
    mpg_integer_source a, b;
    int16_t *av, *bv; /* packed operands of a slice */
} mpg_integer_job;

/* Bytes of packed operands for each position of k. */
static int64_t mpg_integer_bytes(int64_t m, int64_t n)
{
    return (m + mpg_panels_of(n, MPG_INTEGER_LANES) * MPG_INTEGER_LANES) * 2;
}

static void mpg_integer_pack_row(const mpg_drive *drive, int64_t r)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    mpg_integer_pack_a(&job->a, r, drive->begin, drive->begin + drive->part, job->av + r * drive->part, drive->level);
}

static void mpg_integer_pack_columns(const mpg_drive *drive, int64_t panel)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    const int64_t first = panel * MPG_INTEGER_LANES;
    mpg_integer_pack_b(&job->b, first, mpg_panel_columns(drive, first), drive->begin, drive->begin + drive->part,
                       job->bv + first * drive->part, drive->level);
}

static void mpg_integer_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    const int64_t first = panel * MPG_INTEGER_LANES;
    mpg_own_tile own; /* int32 as bits */
    mpg_take_tile(drive, block, first, mpg_panel_columns(drive, first), MPG_SIZE(drive->level, MPG_INTEGER_DEPTH_SIZES), &own);
    mpg_integer_tile(&job->task, job->av + block * MPG_TILE_ROWS * drive->part, drive->part, own.tile.rows,
                     job->bv + first * drive->part, own.tile.columns, (int32_t *)own.tile.d, own.tile.ld, drive->level);
    mpg_give_tile(&own);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_integer_start(mpg_drive *drive, char *workspace)
{
    mpg_integer_job *job = (mpg_integer_job *)drive;
    mpg_drive_in_blocks(drive, MPG_INTEGER_LANES);
    job->bv = (int16_t *)workspace;
    job->av = job->bv + drive->panels * MPG_INTEGER_LANES * drive->length;
    drive->pack_row = mpg_integer_pack_row;
    drive->pack_columns = mpg_integer_pack_columns;
    drive->tile = mpg_integer_run_tile;
}

#endif
