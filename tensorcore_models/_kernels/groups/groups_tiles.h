/* Packing and tiles of the algorithm of groups.h, by level, and a product as the driver runs it. */
#ifndef MPG_GROUPS_TILES_H
#define MPG_GROUPS_TILES_H

#include "driver.h"
#include "groups_pack_avx512.h"

#define LANES_TEXT "groups_lanes.h"
#include "lanes_of_each_set.h"

/* Groups begin to end - 1 of `count` columns of B as one panel in the layout of the level. */
static void mpg_group_pack_b(const mpg_group_task *t, const mpg_group_source *s, int64_t first, int count, int64_t begin,
                             int64_t end, const mpg_group_panel *panel, int level)
{
    mpg_group_pack_b_scales(s, first, count, begin, end, panel);
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512) {
        mpg_group_pack_b_avx512(t, s, first, count, begin, end, panel);
        return;
    }
#endif
    mpg_group_pack_b_plain(t, s, first, count, begin, end, panel);
}

/* The same of a row of A. */
static void mpg_group_pack_a(const mpg_group_task *t, const mpg_group_source *s, int64_t row, int64_t begin, int64_t end,
                             const mpg_group_row *packed, int level)
{
    mpg_group_pack_a_scales(s, row, begin, end, packed->scales, packed->words);
#if MPG_X86_VARIANTS
    if (level == MPG_ISA_AVX512) {
        mpg_group_pack_a_avx512(t, s, row, begin, end, packed->values, packed->words);
        return;
    }
#endif
    mpg_group_pack_a_plain(t, s, row, begin, end, packed->values, packed->words);
}

/* Packed rows (each `length` groups, their stride) against one panel. */
static void mpg_group_tile(const mpg_group_task *t, const mpg_group_operands *whole, const mpg_result_tile *tile, int level)
{
    const int64_t products = (int64_t)t->groups * t->group, length = whole->stride;
    const int64_t wanted = (MPG_SIZE(level, MPG_GROUP_DEPTH_SIZES) + products - 1) / products * t->groups;
    const mpg_rounding mode = mpg_round_toward_zero();
    for (int64_t g = 0; g < length; g += wanted) {
        const int64_t steps = (length - g < wanted ? length - g : wanted) / t->groups;
        for (int64_t i = 0; i < tile->rows; i++) {
            const mpg_group_operands p = mpg_group_from(level, whole, i, g, t->group);
            const mpg_result_tile row = {tile->d + i * tile->ld, tile->redo + i * tile->ld, tile->ld, 1, tile->columns};
            MPG_LANES_OF(mpg_group_row, level)(t, &p, &row, steps);
        }
    }
    mpg_restore_rounding(mode);
}

typedef struct {
    mpg_drive drive; /* positions are groups */
    mpg_group_task task;
    mpg_group_source a, b;
    mpg_group_row packed_a; /* packed operands of a slice */
    mpg_group_panel packed_b;
} mpg_group_job;

/* Bytes of packed operands for each group. */
static int64_t mpg_group_bytes(int64_t m, int64_t n, int group)
{
    return m * (2 * group + 16) + mpg_panels_of(n, MPG_GROUP_LANES) * MPG_GROUP_LANES * (2 * group + 14);
}

static mpg_group_row mpg_group_row_of(const mpg_group_job *job, int64_t r)
{
    const int64_t place = r * job->drive.part;
    const mpg_group_row row = {(int16_t *)job->packed_a.values + place * job->task.group, job->packed_a.scales + place,
                               job->packed_a.words + 2 * place};
    return row;
}

static mpg_group_panel mpg_group_panel_of(const mpg_group_job *job, int64_t first)
{
    const int64_t place = first * job->drive.part;
    const mpg_group_panel panel = {(int16_t *)job->packed_b.values + place * job->task.group, job->packed_b.start + place,
                                   job->packed_b.scales + place, job->packed_b.words + 2 * place};
    return panel;
}

static void mpg_group_pack_row(const mpg_drive *drive, int64_t r)
{
    const mpg_group_job *job = (const mpg_group_job *)drive;
    const mpg_group_row packed = mpg_group_row_of(job, r);
    if (drive->begin == 0)
        drive->rows_marked[r] |= (uint8_t)mpg_group_special(&job->a, r);
    mpg_group_pack_a(&job->task, &job->a, r, drive->begin, drive->begin + drive->part, &packed, drive->level);
}

static void mpg_group_pack_columns(const mpg_drive *drive, int64_t panel)
{
    const mpg_group_job *job = (const mpg_group_job *)drive;
    const int64_t begin = drive->begin, first = panel * MPG_GROUP_LANES;
    const int count = mpg_panel_columns(drive, first);
    const mpg_group_panel packed = mpg_group_panel_of(job, first);
    for (int64_t j = first; begin == 0 && j < first + count; j++)
        drive->columns_marked[j] |= (uint8_t)mpg_group_special(&job->b, j);
    mpg_group_pack_b(&job->task, &job->b, first, count, begin, begin + drive->part, &packed, drive->level);
}

static void mpg_group_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_group_job *job = (const mpg_group_job *)drive;
    const int64_t first = panel * MPG_GROUP_LANES;
    const mpg_group_row a = mpg_group_row_of(job, block * MPG_TILE_ROWS);
    const mpg_group_panel b = mpg_group_panel_of(job, first);
    const mpg_group_operands operands = {a.values, a.scales, a.words, drive->part, b.values, b.start, b.scales, b.words};
    mpg_own_tile own;
    mpg_take_tile(drive, block, first, mpg_panel_columns(drive, first),
                  MPG_SIZE(drive->level, MPG_GROUP_DEPTH_SIZES) / job->task.group, &own);
    mpg_group_tile(&job->task, &operands, &own.tile, drive->level);
    mpg_give_tile(&own);
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_group_start(mpg_drive *drive, char *workspace)
{
    mpg_group_job *job = (mpg_group_job *)drive;
    job->a.at = &drive->a;
    job->b.at = &drive->b;
    mpg_drive_in_blocks(drive, MPG_GROUP_LANES);
    const int64_t rows = drive->m * drive->length, columns = drive->panels * MPG_GROUP_LANES * drive->length;
    job->packed_b.scales = (double *)workspace;
    job->packed_a.scales = job->packed_b.scales + columns;
    job->packed_a.words = (uint32_t *)(job->packed_a.scales + rows);
    job->packed_b.values = job->packed_a.words + 2 * rows;
    job->packed_a.values = (int16_t *)job->packed_b.values + columns * job->task.group;
    job->packed_b.start = (int16_t *)job->packed_a.values + rows * job->task.group;
    job->packed_b.words = job->packed_b.start + columns;
    drive->work *= job->task.group;
    drive->pack_row = mpg_group_pack_row;
    drive->pack_columns = mpg_group_pack_columns;
    drive->tile = mpg_group_run_tile;
}

#endif
