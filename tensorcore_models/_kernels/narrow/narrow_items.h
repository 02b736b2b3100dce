/* Many small products in 32-bit lanes: each is decoded, multiplied and encoded while it is in the first-level cache.
 *
 * Products of at most 8 columns share the 16 lanes of an AVX-512 vector two by two (mma.sync tiles have 8 columns).
 */
#ifndef MPG_NARROW_ITEMS_H
#define MPG_NARROW_ITEMS_H

#include "driver.h"
#include "narrow_tiles.h"
#include "narrow_window.h"

typedef struct {
    mpg_batch batch;
    mpg_narrow_task task;
    mpg_operand a, b;
    const int32_t *order; /* as mpg_source.order, `length` entries */
    int64_t length;
    int plain_order;
    int64_t m, n, k;
    const void *a_codes, *b_codes, *c_codes; /* (count, m, k), (count, k, n), (count, m, n), contiguous */
    void *d_codes;
    int c_size, d_size; /* bytes of an encoding: 2 for fp16, 4 for fp32 */
    uint8_t *marks;     /* set for each product that needs the generic kernel */
    int level;
    float down, up; /* powers of two: of an addend as it enters the lanes, and of a result as it leaves them */
    int32_t least;  /* float32 bits below which an addend other than 0 is left to the generic kernel */
} mpg_narrow_items;

#define MPG_HALF_PANEL 8

/* ---- addends and results ------------------------------------------------------------------------------------------- */
/* An fp16 number as float32 (never infinite or NaN here). */
MPG_INLINE float mpg_fp16_value(uint32_t code)
{
    const uint32_t magnitude = code & 0x7FFFu;
    /* The exponent field grows from 5 to 8 bits in place; 2^112 mends the bias, subnormal numbers included. */
    return mpg_as_float(mpg_as_bits(mpg_as_float(magnitude << 13) * 0x1p112f) | (code & 0x8000u) << 16);
}

/* Encoding of a float32 that is an fp16 number. */
MPG_INLINE uint16_t mpg_fp16_code(float value)
{
    const uint32_t bits = mpg_as_bits(value), magnitude = bits & 0x7FFFFFFFu;
    return (uint16_t)((mpg_as_bits(mpg_as_float(magnitude) * 0x1p-112f) >> 13) | (bits >> 16 & 0x8000u));
}

/* With n as a parameter of its own: the calls with n = 8, what mma.sync tiles have, become straight vector code. */
MPG_INLINE int mpg_load_columns(const mpg_narrow_items *job, int64_t item, int64_t n, float *MPG_RESTRICT c, int64_t ld)
{
    const int64_t m = job->m;
    const int32_t most = job->task.unusable_c - 1, smallest = job->least;
    const float down = job->down;
    int32_t unusable = 0;
    if (job->c_size == 4) {
        const uint32_t *codes = (const uint32_t *)job->c_codes + item * m * n;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                const int32_t magnitude = (int32_t)(codes[i * n + j] & 0x7FFFFFFFu);
                const int32_t tiny = mpg_if_negative(magnitude - smallest) & -magnitude;
                unusable |= mpg_if_negative(most - magnitude) | tiny;
                c[i * ld + j] = mpg_as_float(codes[i * n + j]) * down;
            }
        return unusable != 0;
    }
    const uint16_t *codes = (const uint16_t *)job->c_codes + item * m * n;
    const int32_t least = job->d_size == 2 ? 0 : 0x0400; /* the lanes align c as a number of the result format */
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            const int32_t magnitude = codes[i * n + j] & 0x7FFF;
            unusable |= mpg_if_negative(0x7BFF - magnitude) | (mpg_if_negative(magnitude - least) & -magnitude);
            c[i * ld + j] = mpg_fp16_value(codes[i * n + j]);
        }
    return unusable != 0;
}

MPG_INLINE void mpg_store_columns(const mpg_narrow_items *job, int64_t item, int64_t n, const float *MPG_RESTRICT c, int64_t ld)
{
    const int64_t m = job->m;
    if (job->d_size == 4) {
        float *MPG_RESTRICT d = (float *)job->d_codes + item * m * n;
        const float up = job->up;
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                d[i * n + j] = c[i * ld + j] * up;
        return;
    }
    uint16_t *codes = (uint16_t *)job->d_codes + item * m * n;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            codes[i * n + j] = mpg_fp16_code(c[i * ld + j]);
}

/* A decoded B (k, n) into lanes `lane` and on of a panel of 16; padding stays as the panel was set up. */
MPG_INLINE void mpg_spread_columns(const mpg_narrow_items *job, int64_t n, const float *MPG_RESTRICT values,
                                   const uint8_t *MPG_RESTRICT bytes, float *MPG_RESTRICT panel,
                                   uint8_t *MPG_RESTRICT exponents)
{
    for (int64_t t = 0; t < job->length; t++) {
        const int64_t k = job->order[t];
        if (k < 0)
            continue;
        for (int64_t j = 0; j < n; j++)
            panel[t * 16 + j] = values[k * n + j];
        for (int64_t j = 0; j < n; j++)
            exponents[t * 16 + j] = bytes[k * n + j];
    }
}

MPG_INLINE void mpg_load_addends_body(int level, const mpg_narrow_items *job, int64_t item, float *c, int64_t ld, int *unusable)
{
    *unusable = job->n == 8 ? mpg_load_columns(job, item, 8, c, ld) : mpg_load_columns(job, item, job->n, c, ld);
}

MPG_INLINE void mpg_store_results_body(int level, const mpg_narrow_items *job, int64_t item, const float *c, int64_t ld)
{
    if (job->n == 8)
        mpg_store_columns(job, item, 8, c, ld);
    else
        mpg_store_columns(job, item, job->n, c, ld);
}

MPG_INLINE void mpg_spread_body(int level, const mpg_narrow_items *job, const float *values, const uint8_t *bytes, float *panel,
                                uint8_t *exponents)
{
    if (job->n == 8)
        mpg_spread_columns(job, 8, values, bytes, panel, exponents);
    else
        mpg_spread_columns(job, job->n, values, bytes, panel, exponents);
}

/* The addends of one product into rows of `ld` lanes; `unusable`: whether the lanes cannot take one of them. */
MPG_VARIANTS(mpg_load_addends, (job, item, c, ld, unusable), const mpg_narrow_items *job, int64_t item, float *c, int64_t ld,
             int *unusable)
MPG_VARIANTS(mpg_store_results, (job, item, c, ld), const mpg_narrow_items *job, int64_t item, const float *c, int64_t ld)
MPG_VARIANTS(mpg_spread, (job, values, bytes, panel, exponents), const mpg_narrow_items *job, const float *values,
             const uint8_t *bytes, float *panel, uint8_t *exponents)

/* ---- one or two products ------------------------------------------------------------------------------------------- */
typedef struct {
    float *av, *bv, *c, *loose; /* A; panels of B; addends, then results; a decoded B before it is spread over lanes */
    uint32_t *ae;
    uint8_t *be, *loose_e, *overflow, *special;
    int32_t *rows; /* 0, 1, 2, ... */
    uint64_t *quads;
} mpg_items_memory;

/* A of one product: [row][k]. Whether it holds an infinity or NaN. */
static int mpg_items_pack_a(const mpg_narrow_items *job, int64_t item, const mpg_items_memory *w, int64_t offset)
{
    const int64_t m = job->m, k = job->k, length = job->length;
    const mpg_source s = {(const uint8_t *)job->a_codes + item * m * k * job->a.size, k, 1, job->order, NULL, 0, 0, 0};
    memset(w->special, 0, (size_t)m);
    if (job->plain_order) { /* as one long row */
        mpg_narrow_pack_a(&s, &job->a, 0, 0, m * length, 1, w->av + offset, w->ae + offset, w->special, job->level);
        return w->special[0];
    }
    int special = 0;
    for (int64_t i = 0; i < m; i++) {
        mpg_narrow_pack_a(&s, &job->a, i, 0, length, 0, w->av + offset + i * length, w->ae + offset + i * length, w->special,
                          job->level);
        special |= w->special[i];
    }
    return special;
}

/* The B of one product decoded in the order of memory, into `loose`. */
static int mpg_items_decode_b(const mpg_narrow_items *job, int64_t item, const mpg_items_memory *w)
{
    const int64_t n = job->n, total = job->k * n, full = total / MPG_PANEL;
    const int rest = (int)(total % MPG_PANEL);
    /* All encodings in a row, MPG_PANEL at a time: as if the panel were that wide. */
    const mpg_source s = {(const uint8_t *)job->b_codes + item * total * job->b.size, 1, MPG_PANEL, w->rows, NULL, 0, 0, 0};
    if (MPG_HAS_FP16(job->level) && mpg_is_fp16(&job->b))
        return mpg_fp16_pack_lanes(s.data, total, job->b.emin, w->loose, w->loose_e, NULL);
    memset(w->special, 0, MPG_PANEL);
    const mpg_narrow_panel most = {0, MPG_PANEL, MPG_PANEL, w->loose, w->loose_e};
    const mpg_narrow_panel last = {0, rest, MPG_PANEL, w->loose + full * MPG_PANEL, w->loose_e + full * MPG_PANEL};
    mpg_narrow_pack_b(&s, &job->b, &most, 0, full, w->special, job->level);
    if (rest)
        mpg_narrow_pack_b(&s, &job->b, &last, full, full + 1, w->special, job->level);
    return mpg_any_flag(w->special, MPG_PANEL);
}

/* B of one product of fewer columns than a panel has lanes, into lanes `lane` and on of a panel of 16. */
static int mpg_items_pack_few(const mpg_narrow_items *job, int64_t item, const mpg_items_memory *w, int lane)
{
    const int special = mpg_items_decode_b(job, item, w);
    mpg_spread(job, w->loose, w->loose_e, w->bv + lane, w->be + lane, job->level);
    return special;
}

static int mpg_items_pack_b(const mpg_narrow_items *job, int64_t item, const mpg_items_memory *w)
{
    const int64_t n = job->n, length = job->length;
    const mpg_source s = {(const uint8_t *)job->b_codes + item * job->k * n * job->b.size, 1, n, job->order, NULL, 0, 0, 0};
    memset(w->special, 0, (size_t)n);
    for (int64_t p = 0; p < mpg_panels(n); p++) {
        const mpg_narrow_panel panel = mpg_panel_of(n, p, w->bv, w->be, length);
        mpg_narrow_pack_b(&s, &job->b, &panel, 0, length, w->special, job->level);
    }
    return mpg_any_flag(w->special, n);
}

/* The job with formats and addends shifted into the lanes' exponents, for one product; 0 where they do not fit. */
static int mpg_items_window(const mpg_narrow_items *job, int64_t item, mpg_narrow_items *own)
{
    const int64_t counts[2] = {job->m * job->k, job->k * job->n};
    const mpg_operand formats[2] = {job->a, job->b};
    const void *codes[2] = {(const uint8_t *)job->a_codes + item * counts[0] * job->a.size,
                            (const uint8_t *)job->b_codes + item * counts[1] * job->b.size};
    int shift[2];
    *own = *job;
    if (!mpg_window(formats, codes, counts, shift, job->level))
        return 0;
    const int both = shift[0] + shift[1];
    own->a = mpg_shifted(&job->a, shift[0]);
    own->b = mpg_shifted(&job->b, shift[1]);
    if (both) {
        const int lowest = MPG_NARROW_FLOOR + both, most = 127 + MPG_WINDOW_ADDEND, least = 127 - MPG_WINDOW_ADDEND;
        own->down = mpg_as_float((uint32_t)(127 - both) << 23);
        own->up = mpg_as_float((uint32_t)(127 + both) << 23);
        own->least = (lowest > least ? lowest : least) << 23;
        own->task.unusable_c = most << 23;
    }
    return 1;
}

static void mpg_items_one(const mpg_narrow_items *given, int64_t item, const mpg_items_memory *w)
{
    const int64_t m = given->m, n = given->n, length = given->length;
    mpg_narrow_items own;
    const mpg_narrow_items *job = given;
    if (given->task.windowed) {
        if (!mpg_items_window(given, item, &own)) {
            given->marks[item] = 1;
            return;
        }
        job = &own;
    }
    int unusable, mark = mpg_items_pack_a(job, item, w, 0);
    mark |= n < 16 ? mpg_items_pack_few(job, item, w, 0) : mpg_items_pack_b(job, item, w);
    mpg_load_addends(job, item, w->c, n, &unusable, job->level);
    mark |= unusable;
    if (!mark) {
        if (job->task.output == MPG_OUT_FP16)
            memset(w->overflow, 0, (size_t)(m * n));
        for (int64_t p = 0; p < mpg_panels(n); p++) {
            const mpg_narrow_panel panel = mpg_panel_of(n, p, w->bv, w->be, length);
            const mpg_narrow_operands operands = {w->av, w->ae, length, panel.values, panel.exponents, 0, NULL};
            const mpg_result_tile tile = {w->c + panel.first, w->overflow + panel.first, n, m, panel.count};
            mpg_narrow_tile(&job->task, &operands, panel.width, &tile, job->level);
        }
        mark = job->task.output == MPG_OUT_FP16 && mpg_any_flag(w->overflow, m * n);
        mpg_store_results(job, item, w->c, n, job->level);
    }
    job->marks[item] = mark != 0;
}

#if MPG_X86_VARIANTS
/* Exponent bytes of 4 rows of two products (`quads` of narrow.h). */
MPG_TARGET_AVX512 static void mpg_items_quads(const uint32_t *MPG_RESTRICT ea, int64_t length, int64_t other,
                                              uint64_t *MPG_RESTRICT quads)
{
    for (int64_t k = 0; k < length; k++) {
        const uint32_t low =
            (ea[k] & 0xFFu) | (ea[other + k] & 0xFF00u) | (ea[length + k] & 0xFF0000u) | (ea[other + length + k] & 0xFF000000u);
        const uint32_t high = (ea[2 * length + k] & 0xFFu) | (ea[other + 2 * length + k] & 0xFF00u) |
                              (ea[3 * length + k] & 0xFF0000u) | (ea[other + 3 * length + k] & 0xFF000000u);
        quads[k] = low | (uint64_t)high << 32;
    }
}

/* Products `item` and `item` + 1, at most 8 columns each, in the two halves of one panel. */
static void mpg_items_two(const mpg_narrow_items *job, int64_t item, const mpg_items_memory *w)
{
    const int64_t m = job->m, length = job->length, steps = length / job->task.terms;
    mpg_narrow_items own[2];
    const mpg_narrow_items *shifted[2] = {job, job};
    int mark[2], unusable;
    for (int h = 0; h < 2; h++) {
        mark[h] = 0;
        if (job->task.windowed) {
            mark[h] = !mpg_items_window(job, item + h, &own[h]);
            shifted[h] = &own[h];
        }
        if (mark[h]) { /* neither A nor B has a place in the lanes; zeros times what lies in B's change nothing */
            memset(w->av + h * m * length, 0, (size_t)(m * length) * sizeof(float));
            memset(w->ae + h * m * length, MPG_NO_BYTE_A, (size_t)(m * length) * sizeof(uint32_t));
        } else {
            mark[h] |= mpg_items_pack_a(shifted[h], item + h, w, h * m * length);
            mark[h] |= mpg_items_pack_few(shifted[h], item + h, w, h * MPG_HALF_PANEL);
        }
        mpg_load_addends(shifted[h], item + h, w->c + h * MPG_HALF_PANEL, 16, &unusable, job->level);
        mark[h] |= unusable;
        if (mark[h]) /* what the lanes do not take must not enter them */
            for (int64_t i = 0; i < m; i++)
                memset(w->c + i * 16 + h * MPG_HALF_PANEL, 0, (size_t)job->n * sizeof(float));
    }
    if (job->task.output == MPG_OUT_FP16)
        memset(w->overflow, 0, (size_t)(m * 16));
    const mpg_rounding mode = mpg_flush_to_zero(1);
    for (int64_t i = 0; i < m;) {
        const int together = m - i >= 4 ? 4 : 1;
        if (together == 4)
            mpg_items_quads(w->ae + i * length, length, m * length, w->quads);
        const mpg_narrow_operands p = {w->av + i * length, w->ae + i * length, length, w->bv, w->be, m * length, w->quads};
        const mpg_result_tile tile = {w->c + i * 16, w->overflow + i * 16, 16, together, 16};
        mpg_narrow_kernel_of(&job->task, together == 4 ? MPG_NARROW_4X8X2 : MPG_NARROW_1X8X2, MPG_ISA_AVX512)(&job->task, &p,
                                                                                                              &tile, steps);
        i += together;
    }
    mpg_restore_rounding(mode);
    for (int h = 0; h < 2; h++) {
        if (job->task.output == MPG_OUT_FP16)
            for (int64_t i = 0; i < m; i++)
                mark[h] |= mpg_any_flag(w->overflow + i * 16 + h * MPG_HALF_PANEL, job->n);
        mpg_store_results(shifted[h], item + h, w->c + h * MPG_HALF_PANEL, 16, job->level);
        job->marks[item + h] = (uint8_t)(mark[h] != 0);
    }
}
#endif

/* Products first to last - 1. Returns 0 if there is no memory. */
static int mpg_narrow_run_items(const mpg_batch *batch, int64_t first, int64_t last)
{
    const mpg_narrow_items *job = (const mpg_narrow_items *)batch;
    const int64_t m = job->m, n = job->n, k = job->k, length = job->length, padded = mpg_padded_columns(n);
    const int64_t lanes = padded > 16 ? padded : 16, loose = k * n + MPG_PANEL, most = m > n ? m : n;
    const int64_t floats = 2 * m * length + lanes * length + m * lanes + loose;
    const int64_t words = 2 * m * length + (int64_t)mpg_lines((size_t)loose / MPG_PANEL + 1);
    const int64_t bytes = lanes * length + loose + m * lanes + most + MPG_PANEL;
    uint8_t *memory = malloc((size_t)(MPG_LINE + length * 8 + floats * 4 + words * 4 + bytes));
    if (!memory)
        return 0;
    mpg_items_memory w;
    w.quads = mpg_first_line(memory);
    w.av = (float *)(w.quads + length);
    w.bv = w.av + 2 * m * length;
    w.c = w.bv + lanes * length;
    w.loose = w.c + m * lanes;
    w.ae = (uint32_t *)(w.loose + loose);
    w.rows = (int32_t *)(w.ae + 2 * m * length);
    w.be = (uint8_t *)(w.ae + words);
    w.loose_e = w.be + lanes * length;
    w.overflow = w.loose_e + loose;
    w.special = w.overflow + m * lanes;
    for (int64_t i = 0; n < 16 && i <= loose / MPG_PANEL; i++)
        w.rows[i] = (int32_t)i;
    if (n < 16) { /* lanes that no column fills */
        memset(w.bv, 0, (size_t)(lanes * length) * sizeof(float));
        memset(w.be, MPG_NO_BYTE_B, (size_t)(lanes * length));
        memset(w.c, 0, (size_t)(m * lanes) * sizeof(float));
    }
#if MPG_X86_VARIANTS
    if (job->level == MPG_ISA_AVX512 && n <= MPG_HALF_PANEL && job->task.output < MPG_NARROW_DOWN)
        for (; first + 1 < last; first += 2)
            mpg_items_two(job, first, &w);
#endif
    for (; first < last; first++)
        mpg_items_one(job, first, &w);
    free(memory);
    return 1;
}

static void mpg_narrow_items_start(mpg_narrow_items *job)
{
    job->batch.items = mpg_narrow_run_items;
    job->down = job->up = 1;
    job->least = MPG_NARROW_FLOOR << 23;
}

#endif
