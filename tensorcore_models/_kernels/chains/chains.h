/* Chains of fused multiply-adds in float32 and in double: D = A B + C, k ascending, every element a chain of its own.
 *
 * The CPU's own fused multiply-add is the operation of the algorithm, rounding to nearest even, subnormals and specials included;
 * which elements are computed side by side changes no bit. Only the encoding of NaN differs between CPUs: mpg_chain_finish sets it.
 *
 * Layout. A slice of k is cut into passes. A is packed in groups of R rows, [pass][group][R][MPG_CHAIN_LONGEST], of which a pass uses
 * `pass` places, B in panels of W columns, [pass][panel][pass][W], padded with zeros; R and W belong to the variant. A panel of a
 * pass stays in the first-level cache (a panel of a pass longer than MPG_CHAIN_DEPTH_SIZES in the second) while the groups
 * of A run over it; the running result is in D. Sums outside every `every` products start each chain at zero and add it to
 * D. With `lanes` so many chains from zero share the `every` products of an operation, which lie lane after lane; their sum,
 * in order, is added to D.
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
 * MPG_CHAIN_ROWS: of a group, at every level. */
enum { MPG_CHAIN_LONGEST = 256, MPG_CHAIN_TILE = 256, MPG_CHAIN_ROWS = 6 };

typedef struct {
    mpg_drive drive;
    const char *a_rows, *b_rows; /* (m, k) and (k, n) */
    int64_t k;
    int size;           /* bytes of an element */
    int64_t high, wide; /* groups and panels of a tile */
    char *a, *b;        /* packed */
    int64_t groups, panels;
    int64_t pass;  /* products of a pass, a multiple of `every` */
    int64_t every; /* products between two additions outside, at most MPG_CHAIN_LONGEST; 0: one chain */
    int64_t lanes; /* chains among which `every` products are dealt out; 0: one */
    int flush;
    uint64_t nan; /* encoding of NaN results */
} mpg_chain_job;

#define VECTOR_SIZE 4
#define CHAIN_TYPE float
#include "chains_levels.h"
#define VECTOR_SIZE 8
#define CHAIN_TYPE double
#include "chains_levels.h"

/* There are chains where the vectors have a fused multiply-add; elsewhere the generic kernels run them. */
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

/* Row `row` of A, `depth` elements of `size` bytes (zeros if null), into its place in every pass of `pass` of them. */
static void mpg_chain_pack_a(const char *source, int64_t row, int64_t groups, int64_t depth, int64_t pass, int size,
                             char *packed)
{
    char *to = packed + row * MPG_CHAIN_LONGEST * size;
    for (int64_t k = 0; k < depth; k += pass, to += groups * MPG_CHAIN_ROWS * MPG_CHAIN_LONGEST * size) {
        const size_t bytes = (size_t)((depth - k < pass ? depth - k : pass) * size);
        if (source)
            memcpy(to, source + k * size, bytes);
        else
            memset(to, 0, bytes);
    }
}

/* Row k of B, `columns` elements, into the panels; the last one is padded with zeros. */
static void mpg_chain_pack_b(const char *source, int64_t columns, int64_t k, int64_t pass, int size, int64_t panels, int width,
                             char *packed)
{
    const int64_t bytes = (int64_t)width * size;
    char *to = packed + (k / pass * panels * pass + k % pass) * bytes;
    for (int64_t left = columns * size; left > 0; left -= bytes, source += bytes, to += pass * bytes) {
        const int64_t count = left < bytes ? left : bytes;
        memcpy(to, source, (size_t)count);
        memset(to + count, 0, (size_t)(bytes - count));
    }
}

/* Groups [group0, group1) and panels [panel0, panel1) over the whole slice. */
static void mpg_chain_tile(const mpg_chain_job *job, int64_t group0, int64_t group1, int64_t panel0, int64_t panel1, int size,
                           int level)
{
#if MPG_HAS_FLUSHING
    const unsigned mode = _mm_getcsr();
    if (job->flush)
        _mm_setcsr(MPG_CHAIN_FLUSHING);
#endif
    (size == 4 ? MPG_OF_LEVEL(mpg_chain_tile_float, level) : MPG_OF_LEVEL(mpg_chain_tile_double, level))(job, group0, group1,
                                                                                                         panel0, panel1);
#if MPG_HAS_FLUSHING
    if (job->flush)
        _mm_setcsr(mode);
#endif
}

/* One encoding of NaN. */
static void mpg_chain_finish(char *d, int64_t count, int size, uint64_t nan)
{
    if (size == 4) {
        for (int64_t i = 0; i < count; i++) {
            uint32_t bits;
            memcpy(&bits, d + 4 * i, 4);
            bits = (bits & 0x7FFFFFFFu) > 0x7F800000u ? (uint32_t)nan : bits;
            memcpy(d + 4 * i, &bits, 4);
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, d + 8 * i, 8);
        bits = (bits & ~(UINT64_C(1) << 63)) > UINT64_C(0x7FF0000000000000) ? nan : bits;
        memcpy(d + 8 * i, &bits, 8);
    }
}

/* ---- as the driver runs them --------------------------------------------------------------------------------------- */
static void mpg_chain_pack_row(const mpg_drive *drive, int64_t row)
{
    const mpg_chain_job *job = (const mpg_chain_job *)drive;
    const char *source = row < job->drive.m ? job->a_rows + (row * job->k + drive->begin) * job->size : NULL;
    mpg_chain_pack_a(source, row, job->groups, drive->part, job->pass, job->size, job->a);
}

static void mpg_chain_pack_position(const mpg_drive *drive, int64_t k)
{
    const mpg_chain_job *job = (const mpg_chain_job *)drive;
    if (k < drive->part) /* the last slice is shorter */
        mpg_chain_pack_b(job->b_rows + (drive->begin + k) * job->drive.n * job->size, job->drive.n, k, job->pass, job->size,
                         job->panels, mpg_chain_width(job->size, drive->level), job->b);
}

static void mpg_chain_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_chain_job *job = (const mpg_chain_job *)drive;
    const int64_t group = block * job->high, first = panel * job->wide;
    const int64_t group_end = group + job->high < job->groups ? group + job->high : job->groups;
    const int64_t end = first + job->wide < job->panels ? first + job->wide : job->panels;
    mpg_chain_tile(job, group, group_end, first, end, job->size, drive->level);
    if (drive->begin + drive->part < drive->total)
        return;
    const int64_t width = mpg_chain_width(job->size, drive->level), column = first * width;
    const int64_t columns = (end * width < job->drive.n ? end * width : job->drive.n) - column;
    for (int64_t r = group * MPG_CHAIN_ROWS; r < group_end * MPG_CHAIN_ROWS && r < job->drive.m; r++)
        mpg_chain_finish((char *)drive->d + (r * job->drive.n + column) * job->size, columns, job->size, job->nan);
}

/* Bytes of packed operands for slices of `length` products. */
static int64_t mpg_chain_bytes(const mpg_chain_job *job, int64_t length, int level)
{
    const int64_t width = mpg_chain_width(job->size, level), passes = (length + job->pass - 1) / job->pass;
    return (job->groups * MPG_CHAIN_ROWS * MPG_CHAIN_LONGEST + job->panels * width * job->pass) * passes * job->size;
}

/* Products of a pass for additions outside every `every` products. */
static int64_t mpg_chain_pass(int64_t every, int level)
{
    const int64_t depth = MPG_SIZE(level, MPG_CHAIN_DEPTH_SIZES);
    return every > depth ? every : every ? depth / every * every : depth;
}

/* Products of a pass, groups and panels: what follows from m, n, `size` and `every`. */
static void mpg_chain_measure(mpg_chain_job *job, int level)
{
    const int64_t width = mpg_chain_width(job->size, level);
    job->pass = mpg_chain_pass(job->every, level);
    job->groups = (job->drive.m + MPG_CHAIN_ROWS - 1) / MPG_CHAIN_ROWS;
    job->panels = (job->drive.n + width - 1) / width;
}

/* Lays the packed operands out in the workspace and tells the driver what there is to do. */
static void mpg_chain_start(mpg_chain_job *job, char *workspace, int threads)
{
    mpg_drive *drive = &job->drive;
    const int64_t width = mpg_chain_width(job->size, drive->level);
    const int64_t passes = (drive->length + job->pass - 1) / job->pass;
    job->b = workspace;
    job->a = job->b + passes * job->pass * job->panels * width * job->size;
    job->high = MPG_CHAIN_TILE / MPG_CHAIN_ROWS;
    job->wide = MPG_CHAIN_TILE / width > 1 ? MPG_CHAIN_TILE / width : 1;
    do {
        drive->blocks = (job->groups + job->high - 1) / job->high;
        drive->panels = (job->panels + job->wide - 1) / job->wide;
        if (threads == 1 || job->high <= 2 || drive->blocks * drive->panels >= 3 * threads)
            break;
        if (job->wide > 1)
            job->wide /= 2;
        else
            job->high /= 2;
    } while (1);
    drive->rows = job->groups * MPG_CHAIN_ROWS;
    drive->together = 1;
    drive->column_pieces = drive->length;
    drive->panels_first = 1;
    drive->work = (double)MPG_CHAIN_TILE * MPG_CHAIN_TILE;
    drive->pack_row = mpg_chain_pack_row;
    drive->pack_columns = mpg_chain_pack_position;
    drive->tile = mpg_chain_run_tile;
}

#endif
