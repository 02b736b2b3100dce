/* Single products and batches of products of the generic kernels, as the driver runs them. */
#ifndef MPG_GENERIC_JOB_H
#define MPG_GENERIC_JOB_H

#include <stddef.h>
#include <stdlib.h>

#include "driver.h"
#include "generic_members.h"
#include "generic_tiles.h"

/* A product takes so many multiply-adds of the fast kernels for each of its own; the most products of a tile, and of one share of a
 * batch. */
#define MPG_GENERIC_COST 1000.0
#define MPG_GENERIC_TILE (1 << 20)
#define MPG_GENERIC_SHARE (1 << 16)

typedef struct {
    mpg_drive drive;
    mpg_batch batch;
    mpg_job job;
    mpg_matrix a, b, c, scale_a, scale_b; /* of the first product of a batch */
    mpg_packed x, y;                      /* A and B taken apart */
    int64_t jump[6];                      /* bytes to the next product: a, b, c, out, scale_a, scale_b */
    int64_t tile_rows;
} mpg_call;

/* Memory of one packed operand whose sizes are set; 0 if there is not enough. */
static int mpg_make_room(const mpg_plan *p, mpg_packed *x, int is_b, int vector)
{
    const int64_t unit = !is_b ? 1 : mpg_is_lanes(p) ? MPG_LANES : vector ? MPG_PANEL : 1;
    const size_t rows = (size_t)((x->rows + unit - 1) / unit * unit), places = rows * (size_t)x->depth;
    const size_t steps = rows * (size_t)x->steps + 1, blocks = (size_t)(x->rows * x->blocks + 1) * sizeof(int32_t);
    if (mpg_is_lanes(p))
        return (x->values = malloc((places + 1) * sizeof(double))) != NULL;
    x->special = calloc(steps, 1);
    if (vector) {
        x->memory = calloc(places * 16 + MPG_LINE, 1); /* lanes beyond the last column stay zero */
        x->words = mpg_first_line(x->memory);
        return x->memory && x->special;
    }
    x->significand = malloc((places + 1) * (p->wide ? 8 : 4));
    x->align = malloc((places + 1) * sizeof(int32_t));
    x->scale = malloc(blocks);
    x->scale_align = malloc(blocks);
    return x->significand && x->align && x->special && x->scale && x->scale_align;
}

static int mpg_call_room(mpg_call *call)
{
    return mpg_make_room(call->job.plan, &call->x, 0, call->job.vector) &&
           mpg_make_room(call->job.plan, &call->y, 1, call->job.vector);
}

static void mpg_call_free(mpg_call *call)
{
    mpg_packed *const both[] = {&call->x, &call->y};
    for (int i = 0; i < 2; i++) {
        free(both[i]->significand);
        free(both[i]->align);
        free(both[i]->special);
        free(both[i]->scale);
        free(both[i]->scale_align);
        free(both[i]->values);
        free(both[i]->memory);
    }
}

/* Rows of A or columns of B that are packed together, and how many such parts there are. */
static int64_t mpg_part_rows(const mpg_call *call, int is_b) { return is_b || !mpg_is_lanes(call->job.plan) ? MPG_LANES : 1; }

static int64_t mpg_part_count(const mpg_call *call, int is_b)
{
    const int64_t unit = mpg_part_rows(call, is_b);
    return ((is_b ? call->y.rows : call->x.rows) + unit - 1) / unit;
}

static void mpg_pack_part(const mpg_call *call, int is_b, int64_t part)
{
    const mpg_job *job = &call->job;
    const mpg_matrix *source = is_b ? &call->b : &call->a, *scale = is_b ? &call->scale_b : &call->scale_a;
    const mpg_packed *out = is_b ? &call->y : &call->x;
    const int64_t begin = part * MPG_LANES, end = begin + MPG_LANES < out->rows ? begin + MPG_LANES : out->rows;
    if (is_b && mpg_packs_vectors(job))
        mpg_vector_columns(job, source, begin, end, out);
    else if (!mpg_is_lanes(job->plan))
        mpg_pack_rows(job->plan, is_b, source, scale, job->whole, job->tail, begin, end, out);
    else if (is_b)
        mpg_pack_panel(job->plan, source, job->whole, job->tail, part, out);
    else
        mpg_pack_values(job->plan, source, job->whole, job->tail, part, out);
}

static void mpg_generic_pack_row(const mpg_drive *drive, int64_t part) { mpg_pack_part((const mpg_call *)drive, 0, part); }

static void mpg_generic_pack_columns(const mpg_drive *drive, int64_t part) { mpg_pack_part((const mpg_call *)drive, 1, part); }

static void mpg_generic_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_call *call = (const mpg_call *)drive;
    const int64_t i = block * call->tile_rows, i_end = i + call->tile_rows, j = panel * drive->lanes, j_end = j + drive->lanes;
    mpg_tile(&call->job, i, i_end < drive->m ? i_end : drive->m, j, j_end < drive->n ? j_end : drive->n);
}

/* Points the job at product `item` of a batch. */
static void mpg_call_item(mpg_call *call, int64_t item)
{
    mpg_matrix *const matrices[] = {&call->a, &call->b, &call->c, NULL, &call->scale_a, &call->scale_b};
    for (int i = 0; i < 6; i++)
        if (matrices[i])
            matrices[i]->data += item * call->jump[i];
    call->job.a = &call->x;
    call->job.b = &call->y;
    call->job.a_source = &call->a;
    call->job.b_source = &call->b;
    call->job.c = &call->c;
    call->job.out += item * call->jump[3];
}

/* Products first to last - 1. Returns 0 if there is no memory. */
static int mpg_call_items(const mpg_batch *batch, int64_t first, int64_t last)
{
    const mpg_call *whole = (const mpg_call *)((const char *)batch - offsetof(mpg_call, batch));
    mpg_call own = *whole;
    const int room = mpg_call_room(&own);
    for (int64_t item = first; room && item < last; item++) {
        mpg_call call = own;
        mpg_call_item(&call, item);
        for (int is_b = 0; is_b < 2; is_b++)
            for (int64_t part = 0; part < mpg_part_count(&call, is_b); part++)
                mpg_pack_part(&call, is_b, part);
        mpg_tile(&call.job, 0, call.x.rows, 0, call.y.rows);
    }
    mpg_call_free(&own);
    return room;
}

/* Tells the driver what there is to do for one product, whose k is one slice; threads share tiles of at most MPG_GENERIC_TILE products. */
static void mpg_call_start(mpg_call *call, int threads)
{
    mpg_drive *drive = &call->drive;
    const int64_t depth = call->x.depth;
    mpg_call_item(call, 0);
    drive->m = call->x.rows;
    drive->n = call->y.rows;
    drive->total = drive->length = 1;
    drive->rows = mpg_part_count(call, 0);
    drive->together = 1;
    drive->column_pieces = mpg_part_count(call, 1);
    drive->lanes = MPG_TILE_COLUMNS;
    call->tile_rows = 8;
    while (call->tile_rows > 1 && call->tile_rows * MPG_TILE_COLUMNS * depth > MPG_GENERIC_TILE)
        call->tile_rows /= 2;
    if (call->tile_rows * MPG_TILE_COLUMNS * depth > MPG_GENERIC_TILE)
        drive->lanes = MPG_LANES;
    drive->blocks = (drive->m + call->tile_rows - 1) / call->tile_rows;
    drive->panels = mpg_panels_of(drive->n, drive->lanes);
    drive->panels_first = 1;
    drive->work = MPG_GENERIC_COST / threads * (double)(call->tile_rows * drive->lanes * depth + 1);
    drive->pack_row = mpg_generic_pack_row;
    drive->pack_columns = mpg_generic_pack_columns;
    drive->tile = mpg_generic_tile;
}

/* The same for a batch of `count` products that are too small to share out. */
static void mpg_call_start_batch(mpg_call *call, int64_t count)
{
    const int64_t each = MPG_GENERIC_SHARE / (call->x.rows * call->y.rows * call->x.depth + 1);
    call->batch.count = count;
    call->batch.each = each > 1 ? each : 1;
    call->batch.items = mpg_call_items;
}

#endif
