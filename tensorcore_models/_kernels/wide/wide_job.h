/* A product in 64-bit lanes as the driver runs it. */
#ifndef MPG_WIDE_JOB_H
#define MPG_WIDE_JOB_H

#include "driver.h"
#include "wide_tiles.h"

typedef struct {
    mpg_drive drive;
    mpg_wide_task task;
    mpg_operand a_format, b_format;
    int plain_order;
    mpg_wide_row packed_a; /* packed operands of a slice */
    mpg_wide_panel packed_b;
} mpg_wide_job;

/* Bytes of packed operands for each position of k. */
static int64_t mpg_wide_bytes(int64_t m, int64_t n) { return m * 16 + mpg_panels_of(n, MPG_WIDE) * MPG_WIDE * 12; }

static void mpg_wide_pack_row(const mpg_drive *drive, int64_t r)
{
    const mpg_wide_job *job = (const mpg_wide_job *)drive;
    const int64_t begin = drive->begin, place = r * drive->part;
    const mpg_wide_row packed = {job->packed_a.values + place, job->packed_a.exponents + place, job->packed_a.lowest + place};
    mpg_wide_pack_a(&drive->a, &job->a_format, r, begin, begin + drive->part, job->plain_order, MPG_WIDE_TRUNCATES(&job->task),
                    &packed, drive->rows_marked, drive->level);
}

static mpg_wide_panel mpg_wide_panel_of(const mpg_wide_job *job, int64_t first)
{
    const int64_t place = first * job->drive.part;
    const mpg_wide_panel panel = {job->packed_b.values + place, job->packed_b.exponents + place, job->packed_b.lowest + place};
    return panel;
}

static void mpg_wide_pack_columns(const mpg_drive *drive, int64_t panel)
{
    const mpg_wide_job *job = (const mpg_wide_job *)drive;
    const int64_t begin = drive->begin, first = panel * MPG_WIDE;
    const mpg_wide_panel packed = mpg_wide_panel_of(job, first);
    mpg_wide_pack_b(&drive->b, &job->b_format, first, mpg_panel_columns(drive, first), begin, begin + drive->part,
                    MPG_WIDE_TRUNCATES(&job->task), &packed, drive->columns_marked, drive->level);
}

static void mpg_wide_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_wide_job *job = (const mpg_wide_job *)drive;
    const int64_t first = panel * MPG_WIDE, place = block * MPG_TILE_ROWS * drive->part;
    const mpg_wide_panel b = mpg_wide_panel_of(job, first);
    const mpg_wide_operands operands = {job->packed_a.values + place,
                                        job->packed_a.exponents + place,
                                        job->packed_a.lowest + place,
                                        drive->part,
                                        b.values,
                                        b.exponents,
                                        b.lowest};
    mpg_own_tile own;
    mpg_take_tile(drive, block, first, mpg_panel_columns(drive, first), MPG_SIZE(drive->level, MPG_WIDE_DEPTH_SIZES), &own);
    mpg_wide_tile(&job->task, &operands, &own.tile, drive->level);
    mpg_give_tile(&own);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_wide_start(mpg_drive *drive, char *workspace)
{
    mpg_wide_job *job = (mpg_wide_job *)drive;
    mpg_drive_in_blocks(drive, MPG_WIDE);
    const int64_t a = drive->m * drive->length, b = drive->panels * MPG_WIDE * drive->length;
    job->packed_b.values = (double *)workspace;
    job->packed_b.exponents = (int16_t *)(job->packed_b.values + b);
    job->packed_b.lowest = job->packed_b.exponents + b;
    job->packed_a.values = (double *)(job->packed_b.lowest + b);
    job->packed_a.exponents = (uint32_t *)(job->packed_a.values + a);
    job->packed_a.lowest = job->packed_a.exponents + a;
    drive->panels_first = 1;
    drive->pack_row = mpg_wide_pack_row;
    drive->pack_columns = mpg_wide_pack_columns;
    drive->tile = mpg_wide_run_tile;
}

#endif
