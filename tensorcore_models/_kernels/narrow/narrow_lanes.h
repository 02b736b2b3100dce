/* The loops of narrow.h for the instruction set LANES_LEVEL, which says what an operation is (operations.h): included once for each.
 *
 * A kernel has `rows` rows of A against `width` columns, VLANES in a vector. Where the set names its rounding (VNAMED) all lanes stay in
 * registers over the whole of k, two products of 8 columns may share vectors (`pair`: the second one's lanes are the upper half), and
 * the CPU flushes to zero; elsewhere it rounds toward zero while operations run, and 16 columns are taken at a time.
 */
#include "operations.h"

#define NARROW_TOGETHER (VNAMED ? 4 : 16 / VLANES) /* vectors that are taken at a time, at most */
#define NARROW_VECTORS (MPG_PANEL / VLANES)

/* The larger of `floor` and the exponent fields of `terms` products in each lane, as bytes: the next VBYTES and 16 columns. */
OP_FN VU8 OP(narrow_top)(int terms, int floor, const uint32_t *ea, const uint8_t *eb)
{
    VU8 top = OP(words)(0x01010101u * (uint32_t)floor), y;
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        memcpy(&y, eb + q * MPG_PANEL, sizeof y);
        top = OP(most)(top, OP(words)(ea[q]), y);
    }
    return top;
}

/* With `pair` the last 8 columns are of a second product, whose row is `other` further on. */
OP_FN VU16 OP(narrow_top16)(int terms, int floor, int pair, int64_t other, const uint32_t *ea, const uint8_t *eb)
{
    VU16 top = OP(words16)(0x01010101u * (uint32_t)floor), y;
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        VU16 x = OP(words16)(ea[q]);
#if VNAMED
        if (pair)
            x = _mm_unpacklo_epi64(x, OP(words16)(ea[other + q]));
#endif
        memcpy(&y, eb + q * 16, sizeof y);
        top = OP(most16)(top, x, y);
    }
    return top;
}

#if VNAMED
/* Four rows of two products each, 16 bytes after the other. */
OP_FN VU8 OP(narrow_tops_of_pairs)(int terms, int floor, const mpg_narrow_operands *p)
{
    const int64_t eight = INT64_C(0x0101010101010101); /* byte r of quads for lanes of row r, 8 of each product */
    const __m512i spread = _mm512_set_epi64(7 * eight, 6 * eight, 5 * eight, 4 * eight, 3 * eight, 2 * eight, eight, 0);
    VU8 tops = OP(words)(0x01010101u * (uint32_t)floor);
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++) {
        const __m512i x = _mm512_shuffle_epi8(_mm512_set1_epi64((int64_t)p->quads[q]), spread);
        tops = OP(most)(tops, x, _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(p->eb + q * 16))));
    }
    return tops;
}

/* Fields of all rows and columns. */
OP_FN void OP(narrow_fields)(int rows, int width, int terms, int pair, int floor, const mpg_narrow_operands *p, VI (*field)[4])
{
    VU8 tops;
    if (pair && rows == 4) {
        tops = OP(narrow_tops_of_pairs)(terms, floor, p);
#pragma GCC unroll 4
        for (int r = 0; r < 4; r++)
            field[r][0] = OP(fields_of)(OP(quarter)(tops, r));
        return;
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        const uint32_t *ea = p->ea + r * p->stride;
        if (width == 16) {
            field[r][0] = OP(fields_of)(OP(narrow_top16)(terms, floor, pair, p->other, ea, p->eb));
            continue;
        }
        tops = OP(narrow_top)(terms, floor, ea, p->eb);
#pragma GCC unroll 4
        for (int g = 0; g < 4; g++)
            field[r][g] = OP(fields_of)(OP(quarter)(tops, g));
    }
}
#else
/* Bytes of all columns. */
OP_FN void OP(narrow_bytes)(int width, int terms, int floor, const mpg_narrow_operands *p, uint8_t *bytes)
{
    if (width == 16) {
        const VU16 top = OP(narrow_top16)(terms, floor, 0, 0, p->ea, p->eb);
        memcpy(bytes, &top, sizeof top);
        return;
    }
#pragma GCC unroll 4
    for (int i = 0; i < MPG_PANEL; i += VBYTES) {
        const VU8 top = OP(narrow_top)(terms, floor, p->ea, p->eb + i);
        memcpy(bytes + i, &top, sizeof top);
    }
}
#endif

/* Adds `terms` products to `sum`, each truncated to its lane's unit. */
OP_FN void OP(narrow_products)(int rows, int groups, int width, int terms, int pair, const mpg_narrow_operands *p,
                               VSCALE (*scale)[4], VI (*sum)[4])
{
#pragma GCC unroll 32
    for (int q = 0; q < terms; q++)
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            const float *a = p->a + r * p->stride + q;
            VF x = OP(allf)(*a);
#if VNAMED
            if (pair)
                x = _mm512_mask_mov_ps(x, 0xFF00, OP(allf)(a[p->other]));
#endif
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                sum[r][g] += OP(in_units)(x, OP(load)(p->b + q * width + VLANES * g), scale[r][g]);
                VIN_TURN(sum[r][g]);
            }
        }
}

/* One fused dot-add for `groups` vectors of each row, up to its rounding: float32 results, truncated, or to odd for fp16. */
OP_FN void OP(narrow_step)(int rows, int groups, int width, int terms, int output, int wide_sum, int pair,
                           const mpg_narrow_task *t, const mpg_narrow_operands *p, const VI (*field)[4], VF (*d)[4])
{
    const VI zero = OP(all)(0);
    const VI raw = OP(all)(t->raw_exponent << 23), keep = OP(all)((int32_t)t->keep);
    VI top[4][4], own[4][4], sum[4][4], largest = zero;
    VSCALE scale[4][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            VI exponent = OP(bits)(d[r][g]) & 0x7F800000;
            if (output == MPG_OUT_FP16) /* subnormal addends other than zero */
                exponent = OP(larger)(exponent, OP(where_more)(raw, exponent, zero));
            top[r][g] = OP(larger)(field[r][g], exponent);
            scale[r][g] = OP(scale_of)(top[r][g], t->fraction_bits);
            own[r][g] = OP(truncated)(d[r][g] * OP(factor_of)(scale[r][g], top[r][g], t->fraction_bits));
            sum[r][g] = wide_sum ? zero : own[r][g];
        }
    OP(narrow_products)(rows, groups, width, terms, pair, p, scale, sum);
    if (wide_sum) /* only 16 products can come near 2^31; c is below 2^26 units then */
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++)
                largest = OP(larger)(largest, OP(magnitude)(sum[r][g]));
    const int far = wide_sum && OP(negative)(OP(add)(largest, OP(all)(1 << 26)));
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            const VI total = wide_sum ? OP(add)(sum[r][g], own[r][g]) : sum[r][g];
            VF x = OP(chopped)(total);
            if (output == MPG_OUT_FP16)
                x = OP(odd)(x, total);
            if (MPG_SELDOM(far)) { /* as high * 256 + low, both exact in float32 */
                const VF high = OP(chopped)((sum[r][g] >> 8) + (own[r][g] >> 8)) * 256.0f;
                const VF low = OP(chopped)((sum[r][g] & 255) + (own[r][g] & 255));
                x = OP(add_chopped)(high, low);
                if (output == MPG_OUT_FP16)
                    x = OP(value)(OP(bits)(x) | (OP(unlike)(x - high, low) & 1));
            }
            if (output == MPG_OUT_FP32)
                x = OP(value)(OP(bits)(x) & keep);
            d[r][g] = x * OP(unit_of)(scale[r][g], top[r][g], t->fraction_bits);
        }
}

/* One operation of products in one group or in two halves, and c, both rounded down; `top`: fields of each half. 35 vector instructions for a vector without its products, 8 more with two halves. */
OP_FN void OP(narrow_down)(int rows, int groups, int width, int terms, int halves, const mpg_narrow_task *t,
                           const mpg_narrow_operands *p, const VI (*top)[4][4], VF (*d)[4])
{
    const VI to_unit = OP(all)((t->fraction_bits + t->guard) << 23), guard = OP(all)(t->guard), last = OP(all)(255);
    const VI low_place = OP(all)(32 - t->guard), whole = OP(all)(t->whole), most = OP(all)(25), all = OP(all)(32);
    const VI cutoff = OP(all)((t->cutoff << 23) + 1), fraction = OP(all)(255 << t->guard);
    const VF finer = OP(allf)((float)(1 << t->guard));
    const int each = terms / halves;
    mpg_narrow_operands q = *p;
    VI sum[2][4][4];
#pragma GCC unroll 2
    for (int h = 0; h < halves; h++) {
        VSCALE scale[4][4];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                scale[r][g] = OP(scale_of)(top[h][r][g], t->fraction_bits);
                sum[h][r][g] = OP(all)(0);
            }
        OP(narrow_products)(rows, groups, width, each, 0, &q, scale, sum[h]);
        q = mpg_narrow_after(&q, 1, each, width);
    }
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            const VI own = OP(bits)(d[r][g]) & 0x7F800000;
            VI total = sum[0][r][g], field = top[0][r][g];
            if (halves == 2) {
                field = OP(larger)(field, top[1][r][g]);
                total = OP(right)(total, (field - top[0][r][g]) >> 23) + OP(right)(sum[1][r][g], (field - top[1][r][g]) >> 23);
            }
            const VI highest = OP(larger)(field, own);
            VI addend =
                OP(floored)(d[r][g] * OP(factor_of)(OP(scale_of)(highest, t->fraction_bits), highest, t->fraction_bits));
            if (halves == 2)
                addend = OP(where_more)(addend, own, highest - cutoff);
            /* Parts of the total in units of 2^(highest - F): `high`, and below it `low` in 2^-guard of them. What falls off beyond 25
             * places is below all guard bits. */
            const VI distance = (highest - field) >> 23, far = OP(larger)(distance - most, OP(all)(0)), near = distance - far;
            const VI rest = OP(right)(total, far);
            const VI low = OP(right_logical)(OP(left)(rest, all - near), low_place), high = OP(right)(total, distance) + addend;
            /* The total rounded down to t->whole + guard bits: a bit of `low` stays above the highest of those lost. It is the sum of
             * two numbers that float32 has, which is rounded once. |high| < 2^30. */
            const VI size = high ^ (high >> 31), lost = OP(right_logical)(size, whole);
            const VI kept = OP(where_more)(low, low & ~lost, lost);
            const VF coarse = OP(chopped)(high & ~last), fine = OP(chopped)((OP(left)(high, guard) & fraction) | kept);
            d[r][g] = OP(madd)(coarse, finer, fine) * OP(power)(highest - to_unit);
        }
}

/* fp16 results of `groups` vectors of each row: rounded; those that became infinite are marked in `redo`, rows `ld` apart, and zeroed. */
OP_FN void OP(narrow_fp16)(int rows, int groups, VF (*x)[4], uint8_t *redo, int64_t ld)
{
    unsigned infinite[4][4], any = 0;
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int g = 0; g < groups; g++) {
            x[r][g] = OP(fp16)(x[r][g]);
            infinite[r][g] = OP(beyond_fp16)(x[r][g]);
            any |= infinite[r][g];
        }
    if (MPG_SELDOM(any))
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (int g = 0; g < groups; g++) {
                x[r][g] = OP(without)(x[r][g], infinite[r][g]);
#pragma GCC unroll 1
                for (int l = 0; l < VLANES; l++)
                    if (infinite[r][g] >> l & 1) /* lanes beyond the tile are 0, and their marks another tile's or nobody's */
                        redo[r * ld + g * VLANES + l] = 1;
            }
}

/* `steps` operations of one chain; d holds all columns of each row, `redo` the marks of rows `ld` apart. */
OP_FN void OP(narrow_steps)(int rows, int width, int terms, int output, int wide_sum, int pair, const mpg_narrow_task *t,
                            mpg_narrow_operands p, VF (*d)[NARROW_VECTORS], uint8_t *redo, int64_t ld, int64_t steps)
{
    enum { MOST = NARROW_TOGETHER };
    const int halves = output == MPG_NARROW_DOWN_GROUPS ? 2 : 1, each = terms / halves, vectors = width / VLANES;
    const int groups = vectors < MOST ? vectors : MOST;
#if !VNAMED
    uint8_t bytes[2][MPG_PANEL];
#endif
    for (int64_t s = 0; s < steps; s++, p = mpg_narrow_after(&p, 1, terms, width), p.quads += pair ? terms : 0) {
        VI field[2][4][4];
        mpg_narrow_operands q = p;
        if (mpg_narrow_is_scaled(t, s))
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < vectors; v++)
                    d[r][v] *= OP(allf)(t->scale);
#pragma GCC unroll 2
        for (int h = 0; h < halves; h++, q = mpg_narrow_after(&q, 1, each, width))
#if VNAMED
            OP(narrow_fields)(rows, width, each, pair, t->floor, &q, field[h]);
#else
            OP(narrow_bytes)(width, each, t->floor, &q, bytes[h]);
#endif
        q = p;
#pragma GCC unroll 1
        for (int v = 0; v < vectors; v += groups, q.b += groups * VLANES) {
            VF part[4][4];
#if !VNAMED
#pragma GCC unroll 2
            for (int h = 0; h < halves; h++)
#pragma GCC unroll 4
                for (int g = 0; g < groups; g++)
                    field[h][0][g] = OP(fields)(bytes[h] + (v + g) * VLANES);
#endif
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int g = 0; g < groups; g++)
                    part[r][g] = d[r][v + g];
            if (output >= MPG_NARROW_DOWN)
                OP(narrow_down)(rows, groups, width, terms, halves, t, &q, field, part);
            else
                OP(narrow_step)(rows, groups, width, terms, output, wide_sum, pair, t, &q, field[0], part);
            if (output == MPG_OUT_FP16)
                OP(narrow_fp16)(rows, groups, part, redo + VLANES * v, ld);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
                for (int g = 0; g < groups; g++)
                    d[r][v + g] = part[r][g];
        }
    }
}

/* The first `rows` rows of a tile, whose columns are of a panel of `width`; lanes whose fp16 result became infinite are marked. */
#if VNAMED
OP_FN void OP(narrow_rows)(int rows, int width, int terms, int output, int wide_sum, int pair, const mpg_narrow_task *t,
                           const mpg_narrow_operands *operands, const mpg_result_tile *tile, int64_t steps)
{
    const int64_t ld = tile->ld, each = t->chain ? t->chain : steps;
    const int vectors = width / VLANES, chained = t->chain != 0;
    mpg_narrow_operands p = *operands;
    VF d[4][NARROW_VECTORS], added[4][NARROW_VECTORS];
    OP(mask) exists[NARROW_VECTORS];
    for (int g = 0; g < vectors; g++)
        exists[g] = OP(first)(tile->columns - VLANES * g);
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < vectors; g++)
            d[r][g] = OP(some)(tile->d + r * ld + VLANES * g, exists[g]);
    for (int64_t s = 0; s < steps; s += each) {
        if (chained)
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < vectors; g++) {
                    added[r][g] = d[r][g];
                    d[r][g] = OP(allf)(0.0f);
                }
        OP(narrow_steps)(rows, width, terms, output, wide_sum, pair, t, p, d, tile->redo, ld, each);
        p = mpg_narrow_after(&p, each, terms, width);
        p.quads += pair ? each * terms : 0;
        if (chained) {
            for (int r = 0; r < rows; r++)
                for (int g = 0; g < vectors; g++)
                    d[r][g] += added[r][g];
            if (output == MPG_OUT_FP16) /* float32 has more than twice the bits: the second rounding is harmless */
                OP(narrow_fp16)(rows, vectors, d, tile->redo, ld);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int g = 0; g < vectors; g++)
            OP(put_some)(tile->d + r * ld + VLANES * g, d[r][g], exists[g]);
}

#define NARROW_KERNEL(NAME, ROWS, WIDTH, TERMS, OUTPUT, WIDE, PAIR)                                                            \
    OP_TARGET static void OP(NAME)(const mpg_narrow_task *t, const mpg_narrow_operands *p, const mpg_result_tile *tile,        \
                                   int64_t steps)                                                                              \
    {                                                                                                                          \
        OP(narrow_rows)(ROWS, WIDTH, TERMS, OUTPUT, WIDE, PAIR, t, p, tile, steps);                                            \
    }
#else
/* One row over one chain, in the rounding that its operations want. */
OP_FN void OP(narrow_chain)(int width, int terms, int output, const mpg_narrow_task *task, const mpg_narrow_operands *p,
                            float *c, int64_t steps, uint8_t *redo)
{
    const mpg_narrow_task copy = *task, *t = &copy; /* nothing that is stored here can change it */
    OP(narrow_steps)(1, width, terms, output, terms == 16, 0, t, *p, (VF(*)[NARROW_VECTORS])c, redo, 0, steps);
}

#define NARROW_KERNEL(NAME, ROWS, WIDTH, TERMS, OUTPUT, WIDE, PAIR)                                                            \
    MPG_NOINLINE OP_TARGET static void OP(NAME##_chain)(const mpg_narrow_task *t, const mpg_narrow_operands *p, float *c,      \
                                                        int64_t steps, uint8_t *redo)                                          \
    {                                                                                                                          \
        OP(narrow_chain)(WIDTH, TERMS, OUTPUT, t, p, c, steps, redo);                                                          \
    }                                                                                                                          \
    static void OP(NAME)(const mpg_narrow_task *t, const mpg_narrow_operands *p, const mpg_result_tile *tile, int64_t steps)   \
    {                                                                                                                          \
        mpg_narrow_row(OP(NAME##_chain), TERMS, WIDTH, OUTPUT, t, p, tile, steps);                                             \
    }
#endif

/* Kernels by shape (MPG_NARROW_SHAPES), output and terms; tables of them by [shape][output][4, 8, 16, 16 with wide sums, 32], and by
 * [shape][4, 8, 16 in two halves] of those that round down. */
#define NARROW_TERMS(SHAPE, ROWS, WIDTH, OUT, OUTPUT, PAIR)                                                                    \
    NARROW_KERNEL(n4_##OUT##SHAPE, ROWS, WIDTH, 4, OUTPUT, 0, PAIR)                                                            \
    NARROW_KERNEL(n8_##OUT##SHAPE, ROWS, WIDTH, 8, OUTPUT, 0, PAIR)                                                            \
    NARROW_KERNEL(n16_##OUT##SHAPE, ROWS, WIDTH, 16, OUTPUT, 0, PAIR)                                                          \
    NARROW_KERNEL(n32_##OUT##SHAPE, ROWS, WIDTH, 32, OUTPUT, 0, PAIR)
#if VNAMED
#define NARROW_WIDE_SUMS(SHAPE, ROWS, WIDTH, OUT, OUTPUT, PAIR)                                                                \
    NARROW_KERNEL(wide_##OUT##SHAPE, ROWS, WIDTH, 16, OUTPUT, 1, PAIR)
#define NARROW_TABLE(SHAPE, OUT)                                                                                               \
    {OP(n4_##OUT##SHAPE), OP(n8_##OUT##SHAPE), OP(n16_##OUT##SHAPE), OP(wide_##OUT##SHAPE), OP(n32_##OUT##SHAPE)}
#else
#define NARROW_WIDE_SUMS(SHAPE, ROWS, WIDTH, OUT, OUTPUT, PAIR)
#define NARROW_TABLE(SHAPE, OUT)                                                                                               \
    {OP(n4_##OUT##SHAPE), OP(n8_##OUT##SHAPE), OP(n16_##OUT##SHAPE), OP(n16_##OUT##SHAPE), OP(n32_##OUT##SHAPE)}
#endif
#define NARROW_SHAPE(SHAPE, ROWS, WIDTH, PAIR)                                                                                 \
    NARROW_TERMS(SHAPE, ROWS, WIDTH, fp32, MPG_OUT_FP32, PAIR)                                                                 \
    NARROW_TERMS(SHAPE, ROWS, WIDTH, fp16, MPG_OUT_FP16, PAIR)                                                                 \
    NARROW_WIDE_SUMS(SHAPE, ROWS, WIDTH, fp32, MPG_OUT_FP32, PAIR)                                                             \
    NARROW_WIDE_SUMS(SHAPE, ROWS, WIDTH, fp16, MPG_OUT_FP16, PAIR)
#define NARROW_DOWN_SHAPE(SHAPE, ROWS, WIDTH)                                                                                  \
    NARROW_KERNEL(down4##SHAPE, ROWS, WIDTH, 4, MPG_NARROW_DOWN, 0, 0)                                                         \
    NARROW_KERNEL(down8##SHAPE, ROWS, WIDTH, 8, MPG_NARROW_DOWN, 0, 0)                                                         \
    NARROW_KERNEL(halves16##SHAPE, ROWS, WIDTH, 16, MPG_NARROW_DOWN_GROUPS, 0, 0)
#define NARROW_DOWN_TABLE(SHAPE) {OP(down4##SHAPE), OP(down8##SHAPE), OP(halves16##SHAPE)}
#define NARROW_TABLES(SHAPE) {NARROW_TABLE(SHAPE, fp32), NARROW_TABLE(SHAPE, fp16)}

NARROW_SHAPE(_1x64, 1, 64, 0)
NARROW_SHAPE(_1x16, 1, 16, 0)
NARROW_DOWN_SHAPE(_1x64, 1, 64)
NARROW_DOWN_SHAPE(_1x16, 1, 16)
#if VNAMED
NARROW_SHAPE(_4x16, 4, 16, 0)
NARROW_SHAPE(_4x8x2, 4, 16, 1)
NARROW_SHAPE(_1x8x2, 1, 16, 1)
NARROW_DOWN_SHAPE(_4x16, 4, 16)
static const mpg_narrow_kernel OP(NARROW_KERNELS)[][2][5] = {NARROW_TABLES(_1x64), NARROW_TABLES(_1x16), NARROW_TABLES(_4x16),
                                                             NARROW_TABLES(_4x8x2), NARROW_TABLES(_1x8x2)};
static const mpg_narrow_kernel OP(NARROW_DOWN)[][3] = {NARROW_DOWN_TABLE(_1x64), NARROW_DOWN_TABLE(_1x16),
                                                       NARROW_DOWN_TABLE(_4x16)};
#else
static const mpg_narrow_kernel OP(NARROW_KERNELS)[][2][5] = {NARROW_TABLES(_1x64), NARROW_TABLES(_1x16)};
static const mpg_narrow_kernel OP(NARROW_DOWN)[][3] = {NARROW_DOWN_TABLE(_1x64), NARROW_DOWN_TABLE(_1x16)};
#endif

#undef NARROW_TOGETHER
#undef NARROW_VECTORS
#undef NARROW_KERNEL
#undef NARROW_TERMS
#undef NARROW_WIDE_SUMS
#undef NARROW_TABLE
#undef NARROW_SHAPE
#undef NARROW_DOWN_SHAPE
#undef NARROW_DOWN_TABLE
#undef NARROW_TABLES
