/* Many small products of groups.h: packed, multiplied and stored one after the other, in a memory that stays in the cache. */
#ifndef MPG_GROUPS_ITEMS_H
#define MPG_GROUPS_ITEMS_H

#include <stdlib.h>

#include "driver.h"
#include "groups_tiles.h"

typedef struct {
    mpg_batch batch;
    mpg_group_task task;
    mpg_group_source a, b;                      /* of the first product; lanes run over the columns of b */
    int64_t rows, columns, groups;              /* of one product, groups padded to whole operations */
    int64_t a_item, b_item, a_scales, b_scales; /* elements and scales of one product */
    int64_t row_step, column_step;              /* in d, where a product has rows * columns elements */
    float *d;                                   /* addends, then results */
    uint8_t *marks;                             /* products that the generic kernel must do */
    int level;
} mpg_group_items;

static mpg_group_source mpg_group_item(const mpg_group_source *first, int64_t elements, int64_t scales)
{
    mpg_group_source s = *first;
    s.data += elements;
    s.scales += scales;
    return s;
}

/* Products first to last - 1. Returns 0 if there is no memory. */
static int mpg_group_run_items(const mpg_batch *batch, int64_t first, int64_t last)
{
    const mpg_group_items *job = (const mpg_group_items *)batch;
    const int64_t rows = job->rows, length = job->groups, width = 2 * job->task.group;
    const int64_t panels = mpg_panels_of(job->columns, MPG_GROUP_LANES), padded = panels * MPG_GROUP_LANES;
    const int64_t words = MPG_GROUP_WORDS / MPG_GROUP_LANES; /* of each lane */
    double *scales = malloc((size_t)((rows * (16 + width) + padded * (10 + 2 * words + width)) * length + rows * padded * 5));
    if (!scales)
        return 0;
    double *as = scales + padded * length;
    float *c = (float *)(as + rows * length);
    uint32_t *ae = (uint32_t *)(c + rows * padded);
    int16_t *start = (int16_t *)(ae + 2 * rows * length), *be = start + padded * length;
    uint8_t *bv = (uint8_t *)(be + words * padded * length), *av = bv + padded * length * width,
            *redo = av + rows * length * width;
    const mpg_group_panel panel = {bv, start, scales, be};
    const mpg_group_operands operands = {av, as, ae, length, bv, start, scales, be};
    for (int64_t item = first; item < last; item++) {
        const mpg_group_source a = mpg_group_item(&job->a, item * job->a_item, item * job->a_scales);
        const mpg_group_source b = mpg_group_item(&job->b, item * job->b_item, item * job->b_scales);
        float *d = job->d + item * rows * job->columns;
        int special = 0;
        for (int64_t r = 0; r < rows; r++) {
            const mpg_group_row packed = {av + r * length * width, as + r * length, ae + 2 * r * length};
            special |= mpg_group_special(&a, r);
            mpg_group_pack_a(&job->task, &a, r, 0, length, &packed, job->level);
            for (int64_t j = 0; j < job->columns; j++) {
                c[r * padded + j] = d[r * job->row_step + j * job->column_step];
                special |= (mpg_as_bits(c[r * padded + j]) & 0x7FFFFFFFu) >= 0x7F800000u;
            }
        }
        for (int64_t j = 0; j < job->columns; j++)
            special |= mpg_group_special(&b, j);
        if (!special) {
            memset(redo, 0, (size_t)(rows * padded));
            for (int64_t p = 0; p < padded; p += MPG_GROUP_LANES) {
                const int64_t rest = job->columns - p;
                const int count = (int)(rest < MPG_GROUP_LANES ? rest : MPG_GROUP_LANES);
                const mpg_result_tile tile = {c + p, redo + p, padded, rows, count};
                mpg_group_pack_b(&job->task, &b, p, count, 0, length, &panel, job->level);
                mpg_group_tile(&job->task, &operands, &tile, job->level);
            }
            for (int64_t i = 0; i < rows * padded; i++)
                special |= redo[i];
            for (int64_t r = 0; r < rows; r++)
                for (int64_t j = 0; j < job->columns; j++)
                    d[r * job->row_step + j * job->column_step] = c[r * padded + j];
        }
        job->marks[item] = (uint8_t)(special != 0);
    }
    free(scales);
    return 1;
}

static void mpg_group_items_start(mpg_group_items *job) { job->batch.items = mpg_group_run_items; }

#endif
