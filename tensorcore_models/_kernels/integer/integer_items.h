/* Many small products of integer.h: packed, multiplied and stored one after the other, in a memory that stays in the cache. */
#ifndef MPG_INTEGER_ITEMS_H
#define MPG_INTEGER_ITEMS_H

#include <stdlib.h>

#include "driver.h"
#include "integer_tiles.h"

typedef struct {
    mpg_batch batch;
    mpg_integer_task task;
    mpg_integer_source a, b;       /* of the first product; lanes run over the columns of b */
    int64_t rows, columns, length; /* of one product, k rounded up to an even number */
    int64_t a_item, b_item;        /* elements of one product */
    int64_t row_step, column_step; /* in d, where a product has rows * columns elements */
    int32_t *d;                    /* addends, then results */
    int level;
} mpg_integer_items;

/* Products first to last - 1. Returns 0 if there is no memory. */
static int mpg_integer_run_items(const mpg_batch *batch, int64_t first, int64_t last)
{
    const mpg_integer_items *job = (const mpg_integer_items *)batch;
    const int64_t rows = job->rows, length = job->length, size = 2 * length;
    const int64_t padded = mpg_panels_of(job->columns, MPG_INTEGER_LANES) * MPG_INTEGER_LANES;
    int32_t *c = malloc((size_t)((rows + MPG_INTEGER_LANES) * size + rows * padded * 4));
    if (!c)
        return 0;
    int16_t *av = (int16_t *)(c + rows * padded), *bv = av + rows * length;
    for (int64_t item = first; item < last; item++) {
        mpg_integer_source a = job->a, b = job->b;
        int32_t *d = job->d + item * rows * job->columns;
        a.data += item * job->a_item;
        b.data += item * job->b_item;
        for (int64_t r = 0; r < rows; r++) {
            mpg_integer_pack_a(&a, r, 0, length, av + r * length, job->level);
            for (int64_t j = 0; j < job->columns; j++)
                c[r * padded + j] = d[r * job->row_step + j * job->column_step];
        }
        for (int64_t p = 0; p < padded; p += MPG_INTEGER_LANES) {
            const int64_t rest = job->columns - p;
            const int count = (int)(rest < MPG_INTEGER_LANES ? rest : MPG_INTEGER_LANES);
            mpg_integer_pack_b(&b, p, count, 0, length, bv, job->level);
            mpg_integer_tile(&job->task, av, length, rows, bv, count, c + p, padded, job->level);
        }
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < job->columns; j++)
                d[r * job->row_step + j * job->column_step] = c[r * padded + j];
    }
    free(c);
    return 1;
}

static void mpg_integer_items_start(mpg_integer_items *job) { job->batch.items = mpg_integer_run_items; }

#endif
