/* Chains of fused multiply-adds in float32 and in double: D = A B + C, k ascending, every element a chain of its own.
 *
 * The CPU's own fused multiply-add is the operation of the algorithm, with rounding to nearest even, subnormals and specials included.
 * Computing several elements at a time changes no bit. Only the encoding of NaN differs between CPUs, so it is set at the end.
 *
 * Layout. A slice of k is cut into passes. A is packed in groups of R rows, [pass][group][R][MPG_CHAIN_LONGEST], of which a pass uses
 * `pass` places, B in panels of W columns, [pass][panel][pass][W], padded with zeros; R and W belong to the variant. Packing turns
 * encodings of bf16 into float32 numbers. A panel of a
 * pass stays in the first-level cache (a panel of a pass longer than MPG_CHAIN_DEPTH_SIZES in the second) while the groups
 * of A run over it; the running result is in D. Sums outside every `every` products start each chain at zero and add it to
 * D. With `lanes` so many chains from zero share the `every` products of an operation in turn; their sum, in order, is added to D.
 *
 * With `flush` the CPU runs under FTZ and DAZ: subnormal operands are zero, and so are results that are below the smallest normal
 * number when rounded with an unbounded exponent (Intel SDM, volume 1, 4.9.1.5 and 10.2.3). Arm's flushing looks at results
 * before they are rounded: there is no such kernel on aarch64.
 */
#ifndef MPG_CHAINS_H
#define MPG_CHAINS_H

#include <stddef.h>
#include <string.h>

#include "block_sizes.h"
#include "driver.h"

/* MPG_CHAIN_LONGEST: products between two additions outside, at most; MPG_CHAIN_TILE: rows and columns of a tile;
 * MPG_CHAIN_ROWS: of a group, at every level; MPG_CHAIN_POSITIONS: of k that are packed together. */
enum { MPG_CHAIN_LONGEST = 256, MPG_CHAIN_TILE = 256, MPG_CHAIN_ROWS = 6, MPG_CHAIN_POSITIONS = 8 };

typedef struct {
    const char *data; /* C-contiguous */
    int halved;       /* bf16 encodings, else numbers of the chains' type */
} mpg_chain_operand;

typedef struct {
    mpg_drive drive;
    mpg_chain_operand a_rows, b_rows; /* (m, k) and (k, n) */
    int64_t k;
    int size;           /* bytes of an element of the chains' type */
    int64_t high, wide; /* groups and panels of a tile */
    char *a, *b;        /* packed */
    uint8_t *special;   /* of each tile: whether a result is infinite or NaN */
    int64_t groups, panels;
    int64_t pass;  /* products of a pass, a multiple of `every` */
    int64_t every; /* products between two additions outside, at most MPG_CHAIN_LONGEST; 0: one chain */
    int64_t lanes; /* chains among which `every` products are dealt out; 0: one */
    int pairs;     /* the odd product of each pair comes first */
    int flush;
    uint64_t nan; /* encoding of NaN results */
} mpg_chain_job;

#define VECTOR_SIZE 4
#define CHAIN_TYPE float
#define CHAIN_BITS uint32_t
#define CHAIN_INFINITY 0x7F800000
#include "chains_levels.h"
#define VECTOR_SIZE 8
#define CHAIN_TYPE double
#define CHAIN_BITS uint64_t
#define CHAIN_INFINITY INT64_C(0x7FF0000000000000)
#include "chains_levels.h"

/* Chains need vectors with a fused multiply-add; on other CPUs the generic kernels run them. */
#if MPG_X86_VARIANTS
#define MPG_HAS_CHAINS(level) ((level) >= MPG_ISA_AVX2)
#define MPG_HAS_FLUSHING 1
#define MPG_CHAIN_FLUSHING 0x9FC0u /* MXCSR: nothing traps, to nearest even, FTZ and DAZ */
#else
#define MPG_HAS_CHAINS(level) (VECTOR_FUSED)
#define MPG_HAS_FLUSHING 0
#endif

static int mpg_has_chains(int level, int flush)
{
    (void)level;
    return MPG_HAS_CHAINS(level) && (!flush || MPG_HAS_FLUSHING);
}

/* Columns of a panel, for elements of `size` bytes. */
static int mpg_chain_width(int size, int level) { return MPG_SIZE(level, MPG_CHAIN_BYTES_SIZES) / size; }

/* `count` consecutive elements; `size` is the number of bytes of an element in the chains' type. */
MPG_INLINE void mpg_chain_copy(const mpg_chain_operand *x, int64_t first, int64_t count, int size, char *to)
{
    if (!x->halved) {
        memcpy(to, x->data + first * size, (size_t)(count * size));
        return;
    }
    const uint16_t *MPG_RESTRICT codes = (const uint16_t *)x->data + first;
    uint32_t *MPG_RESTRICT bits = (uint32_t *)to;
    for (int64_t i = 0; i < count; i++)
        bits[i] = (uint32_t)codes[i] << 16;
}

/* Row `row` of A, a slice of it (zeros beyond the last row), into its place in every pass. */
static void mpg_chain_pack_a(const mpg_chain_job *job, int64_t row)
{
    const int64_t depth = job->drive.part, begin = job->drive.begin, start = row * job->k;
    char *to = job->a + row * MPG_CHAIN_LONGEST * job->size;
    for (int64_t k = 0; k < depth; k += job->pass, to += job->groups * MPG_CHAIN_ROWS * MPG_CHAIN_LONGEST * job->size) {
        const int64_t count = depth - k < job->pass ? depth - k : job->pass;
        if (row >= job->drive.m)
            memset(to, 0, (size_t)(count * job->size));
        else
            mpg_chain_copy(&job->a_rows, start + begin + k, count, job->size, to);
    }
}

/* Position k of a slice of B into the panels of `width` columns; the last one is padded with zeros. */
MPG_INLINE void mpg_chain_pack_b(const mpg_chain_job *job, int64_t k, int width, int size)
{
    const int64_t first = (job->drive.begin + k) * job->drive.n;
    char *to = job->b + (k / job->pass * job->panels * job->pass + k % job->pass) * width * size;
    for (int64_t column = 0; column < job->drive.n; column += width, to += job->pass * width * size) {
        const int64_t left = job->drive.n - column;
        if (left >= width) { /* a constant */
            mpg_chain_copy(&job->b_rows, first + column, width, size, to);
            continue;
        }
        mpg_chain_copy(&job->b_rows, first + column, left, size, to);
        memset(to + left * size, 0, (size_t)((width - left) * size));
    }
}

/* Groups [group0, group1) and panels [panel0, panel1) over the whole slice; whether a result is infinite or NaN. */
static int mpg_chain_tile(const mpg_chain_job *job, int64_t group0, int64_t group1, int64_t panel0, int64_t panel1, int size,
                          int level)
{
#if MPG_HAS_FLUSHING
    const unsigned mode = _mm_getcsr();
    if (job->flush)
        _mm_setcsr(MPG_CHAIN_FLUSHING);
#endif
    const int special = (size == 4 ? MPG_OF_LEVEL(mpg_chain_tile_float, level)
                                   : MPG_OF_LEVEL(mpg_chain_tile_double, level))(job, group0, group1, panel0, panel1);
#if MPG_HAS_FLUSHING
    if (job->flush)
        _mm_setcsr(mode);
#endif
    return special;
}

/* ---- as the driver runs them --------------------------------------------------------------------------------------- */
static void mpg_chain_pack_row(const mpg_drive *drive, int64_t row) { mpg_chain_pack_a((const mpg_chain_job *)drive, row); }

static void mpg_chain_pack_positions(const mpg_drive *drive, int64_t piece)
{
    const mpg_chain_job *job = (const mpg_chain_job *)drive;
    const int64_t first = piece * MPG_CHAIN_POSITIONS, end = first + MPG_CHAIN_POSITIONS;
    const int width = mpg_chain_width(job->size, drive->level);
    for (int64_t k = first; k < end && k < drive->part; k++) /* the last slice is shorter */
        if (width * job->size == 64 && job->size == 4)
            mpg_chain_pack_b(job, k, 16, 4);
        else if (width * job->size == 64)
            mpg_chain_pack_b(job, k, 8, 8);
        else if (job->size == 4)
            mpg_chain_pack_b(job, k, 64, 4);
        else
            mpg_chain_pack_b(job, k, 32, 8);
}

static void mpg_chain_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_chain_job *job = (const mpg_chain_job *)drive;
    const int64_t group = block * job->high, first = panel * job->wide;
    const int64_t group_end = group + job->high < job->groups ? group + job->high : job->groups;
    const int64_t end = first + job->wide < job->panels ? first + job->wide : job->panels;
    job->special[block * drive->panels + panel] =
        (uint8_t)mpg_chain_tile(job, group, group_end, first, end, job->size, drive->level);
}

/* Bytes of packed operands for slices of `length` products, and a byte for each tile, at most one per group and panel. */
static int64_t mpg_chain_bytes(const mpg_chain_job *job, int64_t length, int level)
{
    const int64_t width = mpg_chain_width(job->size, level), passes = (length + job->pass - 1) / job->pass;
    return (job->groups * MPG_CHAIN_ROWS * MPG_CHAIN_LONGEST + job->panels * width * job->pass) * passes * job->size +
           job->groups * job->panels;
}

/* Products of a pass for additions outside every `every` products. */
static int64_t mpg_chain_pass(int64_t every, int level)
{
    const int64_t depth = MPG_SIZE(level, MPG_CHAIN_DEPTH_SIZES);
    return every > depth ? every : every ? depth / every * every : depth;
}

/* Products of a pass, groups and panels, computed from m, n, `size` and `every`. */
static void mpg_chain_measure(mpg_chain_job *job, int level)
{
    const int64_t width = mpg_chain_width(job->size, level);
    job->pass = mpg_chain_pass(job->every, level);
    job->groups = (job->drive.m + MPG_CHAIN_ROWS - 1) / MPG_CHAIN_ROWS;
    job->panels = (job->drive.n + width - 1) / width;
}

/* Lays the packed operands out in the workspace and sets the driver's sizes. */
static void mpg_chain_start(mpg_chain_job *job, char *workspace, int threads)
{
    mpg_drive *drive = &job->drive;
    const int64_t width = mpg_chain_width(job->size, drive->level);
    const int64_t passes = (drive->length + job->pass - 1) / job->pass;
    job->b = workspace;
    job->a = job->b + passes * job->pass * job->panels * width * job->size;
    job->special = (uint8_t *)job->a + passes * job->groups * MPG_CHAIN_ROWS * MPG_CHAIN_LONGEST * job->size;
    job->high = MPG_CHAIN_TILE / MPG_CHAIN_ROWS;
    job->wide = MPG_CHAIN_TILE / width > 1 ? MPG_CHAIN_TILE / width : 1;
    do {
        drive->blocks = (job->groups + job->high - 1) / job->high;
        drive->panels = (job->panels + job->wide - 1) / job->wide;
        if (threads == 1 || job->high <= 2 || drive->blocks * drive->panels >= 12 * threads)
            break;
        if (job->wide > 1)
            job->wide /= 2;
        else
            job->high /= 2;
    } while (1);
    drive->rows = job->groups * MPG_CHAIN_ROWS;
    drive->together = MPG_CHAIN_ROWS;
    drive->column_pieces = (drive->length + MPG_CHAIN_POSITIONS - 1) / MPG_CHAIN_POSITIONS;
    drive->panels_first = 1;
    drive->work = (double)MPG_CHAIN_TILE * MPG_CHAIN_TILE;
    drive->pack_row = mpg_chain_pack_row;
    drive->pack_columns = mpg_chain_pack_positions;
    drive->tile = mpg_chain_run_tile;
}

/* Returns whether a result is infinite or NaN. */
static int mpg_chain_special(const mpg_chain_job *job)
{
    int special = 0;
    for (int64_t tile = 0; tile < job->drive.blocks * job->drive.panels; tile++)
        special |= job->special[tile];
    return special;
}

#endif
