/* Sums of a few products, lanes over the columns: pairwise sums of float32 operations (GPS: xie-mma-sim, Algorithms 2 and 3), and
 * exact sums that are rounded once (CDNA1).
 *
 * The hardware's own float32 operations round as the algorithms do, specials included; products of fp16 and bf16 numbers are exact
 * in double and rounded once by float32 multiplication. Only the encoding of NaN differs; pairwise sums get one at the end. Operands
 * become float32 numbers when they are packed.
 *
 * On x86 pairwise sums run under FTZ, which flushes what is below 2^-126 after rounding with an unbounded exponent. That is every result
 * below 2^-126, as none is near enough to round up to it: sums of float32 numbers there are exact, products have at most 22 bits.
 * Elsewhere results are compared. Vector instructions for 16 products with AVX2: 2 multiplications and 2 additions.
 */
#ifndef MPG_PAIRWISE_H
#define MPG_PAIRWISE_H

#include <math.h>

#include "block_sizes.h"
#include "driver.h"
#include "lanes.h"

#define MPG_PAIRWISE_LANES 32
#define MPG_PAIRWISE_DEPTH                                                                                                     \
    128 /* products whose part of a panel stays in the first-level cache; at least those of an instruction */

typedef struct {
    const uint16_t *codes; /* C-contiguous */
    int half;              /* fp16, else bf16 */
    int flushed;           /* magnitudes of encodings below it count as +0 */
} mpg_pairwise_operand;

typedef struct {
    mpg_drive drive;           /* redo: exact sums mark what double does not hold; NULL: pairwise sums */
    int group;                 /* products of one pairwise sum: 2 or 4 */
    int64_t terms;             /* products of one instruction, a multiple of the group */
    int64_t k;                 /* zeros follow up to the driver's total */
    uint32_t nan;              /* encoding of NaN results of pairwise sums */
    mpg_pairwise_operand a, b; /* (m, k) and (k, n) */
    float *av, *bv;            /* a slice of A in rows and of B in panels */
} mpg_pairwise_job;

/* The CPU's state in which mpg_flushed has nothing to do; what depends on it is in functions that are not inlined. */
#if defined(__x86_64__) || defined(_M_X64)
#define MPG_FLUSHED_BY_CPU 1
static unsigned mpg_start_flushing(void)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | 0x8000u);
    return mode;
}
static void mpg_stop_flushing(unsigned mode) { _mm_setcsr(mode); }
#else
#define MPG_FLUSHED_BY_CPU 0
static unsigned mpg_start_flushing(void) { return 0; }
static void mpg_stop_flushing(unsigned mode) { (void)mode; }
#endif

/* Results below 2^-126 become zero of the same sign. */
MPG_INLINE float mpg_flushed(float x)
{
    const uint32_t bits = mpg_as_bits(x), magnitude = bits & 0x7FFFFFFFu;
    return MPG_FLUSHED_BY_CPU ? x : mpg_as_float(magnitude < 0x00800000u ? bits & 0x80000000u : bits);
}

/* One row of A against `count` columns of a panel, `length` products, a multiple of the group. After each `terms` products, but for the
 * last ones, the sum is the addend of another instruction, whose zeros become +0. */
MPG_INLINE void mpg_pairwise_row(int group, int64_t terms, const float *a, const float *b, float *d, int count, int64_t length,
                                 int last)
{
    const int64_t ldb = MPG_PAIRWISE_LANES;
    int64_t left = terms;
    float c[MPG_PAIRWISE_LANES];
    for (int j = 0; j < count; j++)
        c[j] = d[j];
    for (int64_t q = 0; q < length; q += group) {
        const float *MPG_RESTRICT x = a + q, *MPG_RESTRICT y = b + q * ldb;
        left -= group;
        const int handed_on = left == 0 && (q + group < length || !last);
        left = left == 0 ? terms : left;
        for (int j = 0; j < count; j++) {
            if (group == 4) {
                const float p = mpg_flushed(x[0] * y[j]), r = mpg_flushed(x[1] * y[ldb + j]);
                const float s = mpg_flushed(x[2] * y[2 * ldb + j]), t = mpg_flushed(x[3] * y[3 * ldb + j]);
                c[j] = mpg_flushed(c[j] + mpg_flushed(mpg_flushed(p + r) + mpg_flushed(s + t)));
            } else {
                const float p = mpg_flushed(x[0] * y[j]), r = mpg_flushed(x[1] * y[ldb + j]);
                c[j] = mpg_flushed(c[j] + mpg_flushed(p + r));
            }
        }
        if (handed_on)
            for (int j = 0; j < count; j++)
                c[j] += 0.0f; /* -0 becomes +0 */
    }
    for (int j = 0; j < count; j++)
        d[j] = c[j];
}

/* x + y to odd (Boldo and Melquiond 2008): an inexact sum with an even last bit moves one unit toward the exact one. What is
 * infinite may become NaN. Without comparisons, as compilers make jumps of them. */
MPG_INLINE double mpg_sum_to_odd(double x, double y)
{
    const double sum = x + y, part = sum - x, error = (x - (sum - part)) + (y - part);
    const uint64_t bits = mpg_as_bits64(sum), magnitude = mpg_as_bits64(error) << 1;
    const uint64_t inexact = (magnitude | (0 - magnitude)) >> 63 & ~bits & 1;
    const uint64_t toward = 1 - ((mpg_as_bits64(error) ^ bits) >> 63 << 1); /* 1 or -1 */
    return mpg_as_double(bits + (toward & (0 - inexact)));
}

/* The same with exact sums of `group` products and c. Products are exact in double; a sum of them that is not, or not finite, marks its
 * lane. The sum with c is rounded to odd in double and then to float32, which is as if it were rounded once. */
MPG_INLINE void mpg_exact_row(int group, const float *a, const float *b, float *d, uint8_t *redo, int count, int64_t length)
{
    const int64_t ldb = MPG_PAIRWISE_LANES;
    float c[MPG_PAIRWISE_LANES];
    uint64_t lost[MPG_PAIRWISE_LANES];
    for (int j = 0; j < count; j++) {
        c[j] = d[j];
        lost[j] = 0;
    }
    for (int64_t q = 0; q < length; q += group) {
        const float *MPG_RESTRICT x = a + q, *MPG_RESTRICT y = b + q * ldb;
        for (int j = 0; j < count; j++) {
            double sum = (double)x[0] * y[j];
            for (int i = 1; i < group; i++) {
                const double product = (double)x[i] * y[i * ldb + j], next = sum + product, part = next - sum;
                lost[j] |= mpg_as_bits64((sum - (next - part)) + (product - part)); /* 0 or -0 for an exact, finite sum */
                sum = next;
            }
            c[j] = (float)(mpg_sum_to_odd(sum, c[j]) + 0.0); /* the exact sum 0 is +0 */
        }
    }
    for (int j = 0; j < count; j++) {
        d[j] = c[j];
        redo[j] |= (uint8_t)(lost[j] << 1 != 0);
    }
}

/* Zeros for addends below 2^-126; one encoding for NaN. */
MPG_INLINE void mpg_pairwise_begin(float *d, int count)
{
    for (int j = 0; j < count; j++)
        d[j] = (mpg_as_bits(d[j]) & 0x7FFFFFFFu) < 0x00800000u ? 0.0f : d[j];
}

MPG_INLINE void mpg_pairwise_end(uint32_t nan, float *d, int count)
{
    for (int j = 0; j < count; j++) {
        const uint32_t bits = mpg_as_bits(d[j]);
        d[j] = mpg_as_float((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : bits);
    }
}

/* Exact sums that have become infinite or NaN. */
MPG_INLINE void mpg_exact_end(const float *d, uint8_t *redo, int count)
{
    for (int j = 0; j < count; j++)
        redo[j] |= (uint8_t)((mpg_as_bits(d[j]) & 0x7FFFFFFFu) >= 0x7F800000u);
}

/* One row of A; `first` and `last`: no products come before and after. With marks sums are exact, else GPS's. */
MPG_INLINE void mpg_pairwise_line(int exact, int group, const mpg_pairwise_job *job, const float *a, const float *b, float *d,
                                  uint8_t *marks, int count, int64_t length, int first, int last)
{
    if (exact) {
        mpg_exact_row(group, a, b, d, marks, count, length);
        if (last)
            mpg_exact_end(d, marks, count);
        return;
    }
    if (first)
        mpg_pairwise_begin(d, count);
    mpg_pairwise_row(group, job->terms, a, b, d, count, length, last);
    if (last)
        mpg_pairwise_end(job->nan, d, count);
}

/* Rows of packed A over `length` products against as much of a panel. */
MPG_INLINE void mpg_pairwise_rows_body(int level, const mpg_pairwise_job *job, const float *a, const float *b,
                                       const mpg_result_tile *tile, int64_t length, int first, int last)
{
    const int exact = tile->redo != NULL, group = job->group, count = tile->columns, lanes = MPG_PAIRWISE_LANES;
    for (int64_t i = 0; i < tile->rows; i++, a += job->drive.part) {
        float *d = tile->d + i * tile->ld;
        uint8_t *marks = exact ? tile->redo + i * tile->ld : NULL;
        if (exact && count == lanes && group == 4)
            mpg_pairwise_line(1, 4, job, a, b, d, marks, MPG_PAIRWISE_LANES, length, first, last);
        else if (exact && count == lanes)
            mpg_pairwise_line(1, 2, job, a, b, d, marks, MPG_PAIRWISE_LANES, length, first, last);
        else if (exact)
            mpg_pairwise_line(1, group, job, a, b, d, marks, count, length, first, last);
        else if (count == lanes && group == 4)
            mpg_pairwise_line(0, 4, job, a, b, d, marks, MPG_PAIRWISE_LANES, length, first, last);
        else if (count == lanes)
            mpg_pairwise_line(0, 2, job, a, b, d, marks, MPG_PAIRWISE_LANES, length, first, last);
        else
            mpg_pairwise_line(0, group, job, a, b, d, marks, count, length, first, last);
    }
}

MPG_VARIANTS(mpg_pairwise_rows, (job, a, b, tile, length, first, last), const mpg_pairwise_job *job, const float *a,
             const float *b, const mpg_result_tile *tile, int64_t length, int first, int last)

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* The number of an encoding. Arithmetic and masks: compilers make jumps of choices between floats. */
MPG_INLINE float mpg_pairwise_value(int half, int flushed, uint32_t code)
{
    const int32_t magnitude = (int32_t)(code & 0x7FFFu);
    const uint32_t kept = ~(uint32_t)mpg_if_negative(magnitude - flushed);
    if (!half)
        return mpg_as_float((code << 16) & kept);
    const uint32_t special = (uint32_t)mpg_if_negative(0x7BFF - magnitude), wide = (uint32_t)magnitude << 13;
    const uint32_t normal = wide + ((special & (112u << 23)) + (112u << 23));
    const uint32_t subnormal = mpg_as_bits(mpg_as_float(wide + (113u << 23)) - 0x1p-14f);
    const uint32_t small = (uint32_t)mpg_if_negative(magnitude - 0x0400);
    return mpg_as_float((((code & 0x8000u) << 16) | (subnormal & small) | (normal & ~small)) & kept);
}

/* `rows` times `count` numbers of an operand of (.., columns) elements from one on, as rows of `width`; what is beyond is zero. */
MPG_INLINE void mpg_pairwise_pack_body(int level, const mpg_pairwise_operand *x, int64_t from, int64_t columns, int64_t rows,
                                       int64_t count, int64_t width, float *MPG_RESTRICT to)
{
    const int half = x->half, flushed = x->flushed;
    for (int64_t r = 0; r < rows; r++, to += width) {
        const uint16_t *MPG_RESTRICT codes = x->codes + from + r * columns;
        if (half)
            for (int64_t j = 0; j < count; j++)
                to[j] = mpg_pairwise_value(1, flushed, codes[j]);
        else
            for (int64_t j = 0; j < count; j++)
                to[j] = mpg_pairwise_value(0, flushed, codes[j]);
        for (int64_t j = count; j < width; j++)
            to[j] = 0.0f;
    }
}

MPG_VARIANTS(mpg_pairwise_pack, (x, from, columns, rows, count, width, to), const mpg_pairwise_operand *x, int64_t from,
             int64_t columns, int64_t rows, int64_t count, int64_t width, float *MPG_RESTRICT to)

/* Positions of the slice that hold products; zeros follow. */
static int64_t mpg_pairwise_present(const mpg_pairwise_job *job)
{
    const int64_t left = job->k - job->drive.begin;
    return left < job->drive.part ? left : job->drive.part;
}

static void mpg_pairwise_pack_row(const mpg_drive *drive, int64_t row)
{
    const mpg_pairwise_job *job = (const mpg_pairwise_job *)drive;
    mpg_pairwise_pack(&job->a, row * job->k + drive->begin, job->k, 1, mpg_pairwise_present(job), drive->part,
                      job->av + row * drive->part, drive->level);
}

/* Columns of B as a panel of rows of MPG_PAIRWISE_LANES: rows a power of two apart would share few places of the first-level
 * cache. */
static void mpg_pairwise_pack_panel(const mpg_drive *drive, int64_t panel)
{
    const mpg_pairwise_job *job = (const mpg_pairwise_job *)drive;
    const int64_t first = panel * MPG_PAIRWISE_LANES, present = mpg_pairwise_present(job);
    float *to = job->bv + first * drive->part;
    mpg_pairwise_pack(&job->b, drive->begin * drive->n + first, drive->n, present, mpg_panel_columns(drive, first),
                      MPG_PAIRWISE_LANES, to, drive->level);
    memset(to + present * MPG_PAIRWISE_LANES, 0, (size_t)(drive->part - present) * MPG_PAIRWISE_LANES * sizeof(float));
}

static void mpg_pairwise_run_tile(const mpg_drive *drive, int64_t block, int64_t panel)
{
    const mpg_pairwise_job *job = (const mpg_pairwise_job *)drive;
    const int64_t first = panel * MPG_PAIRWISE_LANES, part = drive->part;
    const mpg_result_tile tile = mpg_tile_of(drive, block, first, mpg_panel_columns(drive, first));
    const unsigned mode = drive->redo ? 0 : mpg_start_flushing();
    const int64_t depth = MPG_PAIRWISE_DEPTH > job->terms ? MPG_PAIRWISE_DEPTH / job->terms * job->terms : job->terms;
    for (int64_t k = 0; k < part; k += depth) {
        const int64_t length = part - k < depth ? part - k : depth, place = drive->begin + k;
        mpg_pairwise_rows(job, job->av + block * MPG_TILE_ROWS * part + k, job->bv + first * part + k * MPG_PAIRWISE_LANES,
                          &tile, length, place == 0, place + length == drive->total, drive->level);
    }
    if (!drive->redo)
        mpg_stop_flushing(mode);
}

/* Bytes of packed operands for each position of k. */
static int64_t mpg_pairwise_bytes(int64_t m, int64_t n)
{
    return (m + mpg_panels_of(n, MPG_PAIRWISE_LANES) * MPG_PAIRWISE_LANES) * (int64_t)sizeof(float);
}

static void mpg_pairwise_start(mpg_drive *drive, char *workspace)
{
    mpg_pairwise_job *job = (mpg_pairwise_job *)drive;
    mpg_drive_in_blocks(drive, MPG_PAIRWISE_LANES);
    job->bv = (float *)workspace;
    job->av = job->bv + drive->panels * MPG_PAIRWISE_LANES * drive->length;
    drive->pack_row = mpg_pairwise_pack_row;
    drive->pack_columns = mpg_pairwise_pack_panel;
    drive->tile = mpg_pairwise_run_tile;
}

#endif
