/* One way through a product for all fast kernels: k in slices; of each slice first A and B are packed, piece by piece, then tiles of
 * the result are brought up to date. Pieces and tiles are shared among threads (driver.pyx); no two touch the same memory. A family
 * puts mpg_drive in front of its own job and says how to pack and what a tile is. */
#ifndef MPG_DRIVER_H
#define MPG_DRIVER_H

#include <stdint.h>
#include <stdlib.h>

#include "fp_state.h"
#include "lanes.h"

/* Rows of A that one tile takes: their packed part of a block of k stays in the second-level cache. */
#define MPG_TILE_ROWS 64
/* Columns of its panel, at most. */
#define MPG_TILE_COLUMNS 64

typedef struct mpg_drive mpg_drive;
struct mpg_drive {
    mpg_source a, b;                       /* of the families that take encodings */
    int64_t m, n;                          /* of the result */
    void *d;                               /* (m, n): the running result */
    uint8_t *redo;                         /* (m, n): elements that need the generic kernel, */
    uint8_t *rows_marked, *columns_marked; /* whole rows and columns that do; NULL where a family has none */
    int64_t total, length;                 /* positions of k; of a slice */
    int64_t begin, part;                   /* first position and positions of the current slice */
    int64_t rows, together;                /* rows of A to pack; of one piece */
    int64_t column_pieces;                 /* pieces of B to pack */
    int64_t blocks, panels;                /* tiles of the result down and across */
    int lanes;                             /* columns of a panel */
    int panels_first;                      /* consecutive tiles share their rows, not their panel */
    int level;                             /* instruction set */
    double work;                           /* multiply-adds of a tile for one position of k */
    void (*pack_row)(const mpg_drive *, int64_t row);
    void (*pack_columns)(const mpg_drive *, int64_t piece);
    void (*tile)(const mpg_drive *, int64_t block, int64_t panel);
};

static int64_t mpg_row_pieces(const mpg_drive *d) { return (d->rows + d->together - 1) / d->together; }

static int64_t mpg_pieces(const mpg_drive *d) { return mpg_row_pieces(d) + d->column_pieces; }

static void mpg_pack_piece(const mpg_drive *d, int64_t piece)
{
    const int64_t row_pieces = mpg_row_pieces(d), first = piece * d->together, end = first + d->together;
    for (int64_t row = first; row < end && row < d->rows; row++)
        d->pack_row(d, row);
    if (piece >= row_pieces)
        d->pack_columns(d, piece - row_pieces);
}

static void mpg_run_tile(const mpg_drive *d, int64_t tile)
{
    if (d->panels_first)
        d->tile(d, tile / d->panels, tile % d->panels);
    else
        d->tile(d, tile % d->blocks, tile / d->blocks);
}

static void mpg_drive_pack(const mpg_drive *d, int64_t piece)
{
    const mpg_fp_state state = mpg_fp_enter();
    mpg_pack_piece(d, piece);
    mpg_fp_leave(state);
}

static void mpg_drive_tile(const mpg_drive *d, int64_t tile)
{
    const mpg_fp_state state = mpg_fp_enter();
    mpg_run_tile(d, tile);
    mpg_fp_leave(state);
}

static int64_t mpg_panels_of(int64_t n, int lanes) { return (n + lanes - 1) / lanes; }

/* Columns of the panel that starts at column `first`. */
static int mpg_panel_columns(const mpg_drive *d, int64_t first)
{
    return (int)(d->n - first < d->lanes ? d->n - first : d->lanes);
}

/* Blocks of MPG_TILE_ROWS rows against panels of `lanes` columns, which are packed as the tiles take them. */
static void mpg_drive_in_blocks(mpg_drive *d, int lanes)
{
    d->rows = d->m;
    d->together = MPG_TILE_ROWS;
    d->blocks = (d->m + MPG_TILE_ROWS - 1) / MPG_TILE_ROWS;
    d->panels = d->column_pieces = mpg_panels_of(d->n, lanes);
    d->lanes = lanes;
    d->panels_first = 0;
    d->work = (double)MPG_TILE_ROWS * lanes;
}

/* Rows of a block. */
static int64_t mpg_block_rows(const mpg_drive *d, int64_t block)
{
    const int64_t rest = d->m - block * MPG_TILE_ROWS;
    return rest < MPG_TILE_ROWS ? rest : MPG_TILE_ROWS;
}

/* Rows of a block and `columns` columns from `first` on; `redo` is NULL where the family marks nothing. */
static mpg_result_tile mpg_tile_of(const mpg_drive *d, int64_t block, int64_t first, int columns)
{
    const int64_t place = block * MPG_TILE_ROWS * d->n + first;
    const mpg_result_tile tile = {(float *)d->d + place, d->redo ? d->redo + place : NULL, d->n, mpg_block_rows(d, block),
                                  columns};
    return tile;
}

/* A tile in memory of its own, with marks that start at zero, for a tile that is read and written in several passes, because rows of the
 * result may be a power of two apart and then share few places of the caches. */
typedef struct {
    mpg_result_tile tile, result; /* where the kernel works, and where the tile belongs */
    float d[MPG_TILE_ROWS * MPG_TILE_COLUMNS];
    uint8_t redo[MPG_TILE_ROWS * MPG_TILE_COLUMNS];
} mpg_own_tile;

/* Takes a tile that the kernel passes over `depth` positions of k at a time. */
static void mpg_take_tile(const mpg_drive *d, int64_t block, int64_t first, int columns, int64_t depth, mpg_own_tile *own)
{
    own->tile = own->result = mpg_tile_of(d, block, first, columns);
    if (d->part <= depth)
        return;
    own->tile.d = own->d;
    own->tile.ld = d->lanes;
    for (int64_t i = 0; i < own->tile.rows; i++)
        memcpy(own->d + i * d->lanes, own->result.d + i * d->n, (size_t)columns * sizeof(*own->d));
    if (d->redo) {
        own->tile.redo = own->redo;
        memset(own->redo, 0, (size_t)(own->tile.rows * d->lanes));
    }
}

/* Puts it back. */
static void mpg_give_tile(const mpg_own_tile *own)
{
    const mpg_result_tile *from = &own->tile, *to = &own->result;
    uint8_t any = 0;
    if (from->d == to->d)
        return;
    for (int64_t i = 0; i < from->rows; i++)
        memcpy(to->d + i * to->ld, from->d + i * from->ld, (size_t)from->columns * sizeof(*from->d));
    for (int64_t i = 0; to->redo && i < from->rows * from->ld; i++)
        any |= own->redo[i];
    for (int64_t i = 0; any && i < from->rows; i++)
        for (int64_t j = 0; j < from->columns; j++)
            to->redo[i * to->ld + j] |= from->redo[i * from->ld + j];
}

/* Positions of k of B that are packed together where they lie row by row. */
#define MPG_POSITIONS 8

/* Packed operands in groups of rows and panels of columns, of which a tile takes several. */
typedef struct {
    int64_t groups, panels; /* of the slice */
    int64_t high, wide;     /* of a tile */
    int rows, columns;      /* of a group, of a panel */
} mpg_grid;

/* Groups and panels of one tile. */
typedef struct {
    int64_t group, group_end, panel, panel_end;
} mpg_grid_part;

/* Tiles of at most `side` rows and columns, smaller ones where each thread would not get three; A is packed row by row, with rows
 * below the last one that fill its group, B by MPG_POSITIONS positions of k. */
static void mpg_drive_in_grid(mpg_drive *d, mpg_grid *g, int side, int threads)
{
    g->groups = mpg_panels_of(d->m, g->rows);
    g->panels = mpg_panels_of(d->n, g->columns);
    g->high = side / g->rows;
    g->wide = side / g->columns;
    do {
        d->blocks = (g->groups + g->high - 1) / g->high;
        d->panels = (g->panels + g->wide - 1) / g->wide;
        if (threads == 1 || g->high * g->rows <= side / 8 || d->blocks * d->panels >= 3 * threads)
            break;
        if (g->high * g->rows >= g->wide * g->columns || g->wide == 1)
            g->high /= 2;
        else
            g->wide /= 2;
    } while (1);
    d->rows = g->groups * g->rows;
    d->together = 1;
    d->column_pieces = (d->length + MPG_POSITIONS - 1) / MPG_POSITIONS;
    d->panels_first = 1;
    d->work = (double)side * side;
}

static mpg_grid_part mpg_part_of(const mpg_grid *g, int64_t block, int64_t panel)
{
    const int64_t group = block * g->high, group_end = group + g->high, first = panel * g->wide, end = first + g->wide;
    const mpg_grid_part part = {group, group_end < g->groups ? group_end : g->groups, first, end < g->panels ? end : g->panels};
    return part;
}

#define MPG_LINE 64 /* bytes of a cache line: vectors that cross one are slow */

/* `bytes` up to whole lines. */
static size_t mpg_lines(size_t bytes) { return (bytes + MPG_LINE - 1) / MPG_LINE * MPG_LINE; }

/* The first line of a memory that has MPG_LINE bytes more than it needs. */
static void *mpg_first_line(void *memory) { return (char *)memory + (MPG_LINE - (uintptr_t)memory % MPG_LINE); }

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

/* Small products of one job, `first` of them: operands and results of the others follow its own. Each has all of k as one slice,
 * in a memory that stays in the cache. */
typedef struct {
    mpg_batch batch;
    const mpg_drive *first; /* a job of `size` bytes */
    size_t size, bytes;     /* `bytes` of packed operands */
    int turned;             /* results are (n, m) */
    uint8_t *marks;         /* of each product, set where it needs the generic kernel; NULL where a family has none */
    void (*start)(mpg_drive *, char *workspace);
} mpg_products;

static uint8_t mpg_any_flag(const uint8_t *marks, int64_t count)
{
    uint8_t any = 0;
    for (int64_t i = 0; i < count; i++)
        any |= marks[i];
    return any != 0;
}

/* `to` (columns, rows) becomes `from` (rows, columns), turned. */
static void mpg_turn(const uint32_t *from, uint32_t *to, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            to[j * rows + i] = from[i * columns + j];
}

static int mpg_run_products(const mpg_batch *batch, int64_t first, int64_t last)
{
    const mpg_products *products = (const mpg_products *)batch;
    const mpg_drive *one = products->first;
    const int64_t m = one->m, n = one->n, elements = m * n, flags = elements + m + n;
    const size_t place = mpg_lines(products->size), end = place + mpg_lines(products->bytes);
    void *memory = malloc(MPG_LINE + end + (size_t)elements * sizeof(uint32_t) + (size_t)flags);
    if (!memory)
        return 0;
    mpg_drive *d = mpg_first_line(memory);
    memcpy(d, one, products->size);
    uint32_t *own = (uint32_t *)((char *)d + end);
    if (products->marks) {
        d->redo = (uint8_t *)(own + elements);
        d->rows_marked = d->redo + elements;
        d->columns_marked = d->rows_marked + m;
    }
    d->length = d->part = d->total;
    d->begin = 0;
    products->start(d, (char *)d + place);
    for (int64_t item = first; item < last; item++) {
        d->a = mpg_source_item(&one->a, item);
        d->b = mpg_source_item(&one->b, item);
        uint32_t *result = (uint32_t *)one->d + item * elements;
        int special = 0;
        for (int64_t i = 0; d->redo && i < elements; i++)
            special |= (result[i] & 0x7F800000u) == 0x7F800000u;
        if (special) {
            products->marks[item] = 1;
            continue;
        }
        d->d = products->turned ? own : result;
        if (products->turned)
            mpg_turn(result, own, n, m);
        if (d->redo)
            memset(d->redo, 0, (size_t)flags);
        for (int64_t piece = 0; piece < mpg_pieces(d); piece++)
            mpg_pack_piece(d, piece);
        for (int64_t tile = 0; tile < d->blocks * d->panels; tile++)
            mpg_run_tile(d, tile);
        if (products->turned)
            mpg_turn(own, result, m, n);
        if (d->redo)
            products->marks[item] = mpg_any_flag(d->redo, flags);
    }
    free(memory);
    return 1;
}

#endif
