/* A product of exact group sums as the driver runs it. */
#ifndef MPG_GROUPS_JOB_H
#define MPG_GROUPS_JOB_H

#include "driver.h"
#include "groups_items.h"

typedef struct {
    mpg_drive drive; /* positions are groups */
    mpg_group_task task;
    mpg_group_source a, b;
    int64_t m, n;
    float *d;      /* (m, n): the running result */
    uint8_t *redo; /* (m, n), and one for each row and column: what needs the generic kernel */
    uint8_t *rows_marked, *columns_marked;
    double *as, *bs; /* packed operands of a slice: scales, numbers, where sums start, words */
    uint8_t *av, *bv;
    int16_t *start, *be;
    uint32_t *ae;
} mpg_group_job;

static int64_t mpg_group_count(int64_t n) { return (n + MPG_GROUP_LANES - 1) / MPG_GROUP_LANES; }

/* Bytes of packed operands for each group. */
static int64_t mpg_group_bytes(int64_t m, int64_t n, int group)
{
    return m * (2 * group + 16) + mpg_group_count(n) * MPG_GROUP_LANES * (2 * group + 14);
}

static int mpg_group_columns(const mpg_group_job *job, int64_t first)
{
    return (int)(job->n - first < MPG_GROUP_LANES ? job->n - first : MPG_GROUP_LANES);
}

static void mpg_group_pack_rows(const mpg_drive *drive, int64_t block)
{
    const mpg_group_job *job = (const mpg_group_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = block * MPG_TILE_ROWS, width = 2 * job->task.group;
    for (int64_t r = first; r < first + mpg_block_rows(job->m, block); r++) {
        if (begin == 0)
            job->rows_marked[r] |= (uint8_t)mpg_group_special(&job->a, r);
        mpg_group_pack_a(&job->task, &job->a, r, begin, begin + part, job->av + r * part * width, job->as + r * part,
                         job->ae + 2 * r * part, drive->level);
    }
}

static void mpg_group_pack_panel(const mpg_drive *drive, int64_t panel)
{
    const mpg_group_job *job = (const mpg_group_job *)drive;
    const int64_t begin = drive->begin, part = drive->part, first = panel * MPG_GROUP_LANES, width = 2 * job->task.group;
    const int count = mpg_group_columns(job, first);
    for (int64_t j = first; begin == 0 && j < first + count; j++)
        job->columns_marked[j] |= (uint8_t)mpg_group_special(&job->b, j);
    mpg_group_pack_b(&job->task, &job->b, first, count, begin, begin + part, job->bv + first * part * width,
                     job->start + first * part, job->bs + first * part, job->be + 2 * first * part, drive->level);
}

static void mpg_group_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_group_job *job = (const mpg_group_job *)drive;
    const int64_t part = drive->part, r = block * MPG_TILE_ROWS, first = panel * MPG_GROUP_LANES, n = job->n;
    const int64_t width = 2 * job->task.group;
    mpg_group_tile(&job->task, job->av + r * part * width, job->as + r * part, job->ae + 2 * r * part, part,
                   mpg_block_rows(job->m, block), job->bv + first * part * width, job->start + first * part,
                   job->bs + first * part, job->be + 2 * first * part, mpg_group_columns(job, first), job->d + r * n + first,
                   job->redo + r * n + first, n, drive->level);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_group_start(mpg_group_job *job, char *workspace)
{
    mpg_drive *drive = &job->drive;
    const int64_t length = drive->length, columns = mpg_group_count(job->n) * MPG_GROUP_LANES, width = 2 * job->task.group;
    job->bs = (double *)workspace;
    job->as = job->bs + columns * length;
    job->ae = (uint32_t *)(job->as + job->m * length);
    job->bv = (uint8_t *)(job->ae + 2 * job->m * length);
    job->av = job->bv + columns * length * width;
    job->start = (int16_t *)(job->av + job->m * length * width);
    job->be = job->start + columns * length;
    drive->blocks = drive->row_pieces = mpg_blocks(job->m);
    drive->panels = drive->column_pieces = mpg_group_count(job->n);
    drive->panels_first = 0;
    drive->work = (double)MPG_TILE_ROWS * MPG_GROUP_LANES * job->task.group;
    drive->pack_rows = mpg_group_pack_rows;
    drive->pack_columns = mpg_group_pack_panel;
    drive->tile = mpg_group_run_tile;
}

#endif
