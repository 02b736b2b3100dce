/* A tile of integer dot products by level, and a product as the driver runs it. */
#ifndef MPG_INTEGER_TILES_H
#define MPG_INTEGER_TILES_H

#include "driver.h"
#include "integer.h"

#define MPG_INTEGER_ROWS 4 /* whose sums stay in registers, two vectors each */

#define LANES_TEXT "integer_lanes.h"
#include "lanes_of_each_set.h"

/* `rows` packed rows of `length` products against one panel, d (row stride ldd) updated in place; `count` columns of it exist. */
static void mpg_integer_tile(const mpg_integer_task *t, const int16_t *a, int64_t length, int64_t rows, const int16_t *b,
                             int count, int32_t *d, int64_t ldd, int level)
{
    const int64_t depth = MPG_SIZE(level, MPG_INTEGER_DEPTH_SIZES);
    const int64_t block = depth > t->terms ? depth / t->terms * t->terms : t->terms;
    for (int64_t k = 0; k < length; k += block, a += block, b += block * MPG_INTEGER_LANES)
        MPG_LANES_OF(mpg_integer_vectors, level)(t, a, length, rows, b, d, ldd, count, length - k < block ? length - k : block);
}

typedef struct {
    mpg_drive drive;
    mpg_integer_task task;
    mpg_integer_format a_format, b_format;
    int64_t k;
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
    mpg_integer_pack_a(&drive->a, &job->a_format, job->k, r, drive->begin, drive->begin + drive->part,
                       job->av + r * drive->part, drive->level);
}

static void mpg_integer_pack_columns(const mpg_drive *drive, int64_t panel)
{
    const mpg_integer_job *job = (const mpg_integer_job *)drive;
    const int64_t first = panel * MPG_INTEGER_LANES;
    mpg_integer_pack_b(&drive->b, &job->b_format, job->k, first, mpg_panel_columns(drive, first), drive->begin,
                       drive->begin + drive->part, job->bv + first * drive->part, drive->level);
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
