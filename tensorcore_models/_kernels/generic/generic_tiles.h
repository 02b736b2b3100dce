/* Tiles of the result: the kernels over rows and columns. */
#ifndef MPG_GENERIC_TILES_H
#define MPG_GENERIC_TILES_H

#include "generic_lane_passes.h"
#include "generic_pack.h"
#include "generic_vector.h"

/* Depth that stays in cache while a tile's rows and columns meet. */
#define MPG_DEPTH_BLOCK 1024
#define MPG_VECTOR_DEPTH_BLOCK 256
#define MPG_TILE_COLUMNS 64

/* Passes [s0, s1) of one row and at most MPG_TILE_COLUMNS columns. The passes of one element wait for each other; those of
 * neighbours do not, so they take turns. */
static void mpg_row_of_passes(const mpg_job *job, int64_t i, int64_t j0, int64_t j1, int64_t s0, int64_t s1)
{
    const int64_t full = job->a->depth / job->plan->step, at = i * job->columns;
    uint64_t total[MPG_TILE_COLUMNS];
    for (int64_t j = j0; j < j1; j++)
        total[j - j0] = s0 ? mpg_load(job->out, job->out_size, at + j) : mpg_element(job->c, i, j);
    if (job->vector) {
        for (int64_t l = j1 - j0; l < MPG_TILE_COLUMNS; l++)
            total[l] = 0;
        mpg_vector_row(job, i, j0, j1, s0, s1, total);
    } else {
        for (int64_t s = s0; s < s1; s++) {
            const mpg_layout *layout = mpg_layout_of(s, full, job->whole, job->tail);
            for (int64_t j = j0; j < j1; j++)
                total[j - j0] = mpg_one_pass(job, s, layout, i, j, total[j - j0]);
        }
    }
    for (int64_t j = j0; j < j1; j++)
        mpg_store(job->out, job->out_size, at + j, total[j - j0]);
}

/* Rows [i0, i1), columns [j0, j1); between blocks of k the output holds the running results. */
static void mpg_tile(const mpg_job *job, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    const mpg_plan *p = job->plan;
    const int64_t steps = job->a->steps;
    const int64_t depth = job->vector ? MPG_VECTOR_DEPTH_BLOCK : MPG_DEPTH_BLOCK;
    const int64_t block = depth / p->step > 0 ? depth / p->step : 1;
    if (mpg_is_lanes(p)) {
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j += MPG_LANES) {
                const int width = (int)(j1 - j < MPG_LANES ? j1 - j : MPG_LANES);
                mpg_lanes(job, i, j, width, job->isa);
            }
        return;
    }
    for (int64_t s0 = 0; s0 < steps; s0 += block) {
        const int64_t s1 = s0 + block < steps ? s0 + block : steps;
        for (int64_t i = i0; i < i1; i++)
            for (int64_t j = j0; j < j1; j += MPG_TILE_COLUMNS)
                mpg_row_of_passes(job, i, j, j1 - j < MPG_TILE_COLUMNS ? j1 : j + MPG_TILE_COLUMNS, s0, s1);
    }
}

#endif
