/* One way through a product for all fast kernels: k in slices; of each slice first A and B are packed, piece by piece, then tiles of
 * the result are brought up to date. Pieces and tiles are shared among threads (driver.pyx); no two touch the same memory. A family
 * puts mpg_drive in front of its own job and says how to pack and what a tile is. */
#ifndef MPG_DRIVER_H
#define MPG_DRIVER_H

#include <stdint.h>

#include "fp_state.h"

/* Rows of A that one tile takes: their packed part of a block of k stays in the second-level cache. */
#define MPG_TILE_ROWS 64

typedef struct mpg_drive mpg_drive;
struct mpg_drive {
    int64_t total, length;             /* positions of k; of a slice */
    int64_t begin, part;               /* first position and positions of the current slice */
    int64_t row_pieces, column_pieces; /* of packing */
    int64_t blocks, panels;            /* tiles of the result down and across */
    int panels_first;                  /* consecutive tiles share their rows, not their panel */
    int level;                         /* instruction set */
    double work;                       /* multiply-adds of a tile for one position of k */
    void (*pack_rows)(const mpg_drive *, int64_t piece);
    void (*pack_columns)(const mpg_drive *, int64_t piece);
    void (*tile)(const mpg_drive *, int64_t block, int64_t panel);
};

static int64_t mpg_pieces(const mpg_drive *d) { return d->row_pieces + d->column_pieces; }

static void mpg_drive_pack(const mpg_drive *d, int64_t piece)
{
    const mpg_fp_state state = mpg_fp_enter();
    if (piece < d->row_pieces)
        d->pack_rows(d, piece);
    else
        d->pack_columns(d, piece - d->row_pieces);
    mpg_fp_leave(state);
}

static void mpg_drive_tile(const mpg_drive *d, int64_t tile)
{
    const mpg_fp_state state = mpg_fp_enter();
    if (d->panels_first)
        d->tile(d, tile / d->panels, tile % d->panels);
    else
        d->tile(d, tile % d->blocks, tile / d->blocks);
    mpg_fp_leave(state);
}

/* Rows of a block. */
static int64_t mpg_block_rows(int64_t m, int64_t block)
{
    const int64_t rest = m - block * MPG_TILE_ROWS;
    return rest < MPG_TILE_ROWS ? rest : MPG_TILE_ROWS;
}

static int64_t mpg_blocks(int64_t m) { return (m + MPG_TILE_ROWS - 1) / MPG_TILE_ROWS; }

/* Many small products: `items` runs those from `first` to `last` - 1 and returns 0 if there is no memory for it. */
typedef struct mpg_batch mpg_batch;
struct mpg_batch {
    int64_t count, each; /* products; of one share of the work */
    int (*items)(const mpg_batch *, int64_t first, int64_t last);
};

static int mpg_batch_share(const mpg_batch *b, int64_t share)
{
    const mpg_fp_state state = mpg_fp_enter();
    const int64_t first = share * b->each, end = first + b->each;
    const int done = b->items(b, first, end < b->count ? end : b->count);
    mpg_fp_leave(state);
    return done;
}

#endif
