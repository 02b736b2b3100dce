/* Integer dot products into int32 (IntegerDotAdd; PTX ISA, mma.s32), lanes over the columns.
 *
 *  - The products of one operation are summed exactly. Plain C does that in float32, which is exact below 2^24 (tensorcore_models/
 *    kernels/integer.py sees to it); AVX2 and AVX-512 multiply 16-bit integers and add neighbours (integer_rows.h).
 *  - Without clamping, c and the sums add up modulo 2^32, however the products are cut into operations.
 *  - With clamping, c plus the sum of an operation overflows only if both have the sign that the result modulo 2^32 has not; then
 *    the result is the largest number of that sign. The next operation starts from it.
 */
#ifndef MPG_INTEGER_H
#define MPG_INTEGER_H

#include "block_sizes.h"
#include "lanes.h"

#define MPG_INTEGER_LANES 32 /* columns of a panel */

typedef struct {
    int terms; /* products of one operation, even */
    int clamp;
} mpg_integer_task;

/* Encodings of one byte; with `keep` = the bits that count and `flip` = the sign bit or 0, a number is
 * ((code & keep) ^ flip) - flip. */
typedef struct {
    const uint8_t *data;
    int64_t outer, inner, k; /* element strides along lanes or rows, and along k; products */
    int keep, flip;
} mpg_integer_source;

MPG_INLINE int32_t mpg_integer_value(int code, int keep, int flip) { return ((code & keep) ^ flip) - flip; }

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* Places begin to end - 1 of k of `count` columns of B as one panel of float, [k][lane]. Places beyond k are zero. */
MPG_INLINE void mpg_integer_pack_b_floats(const mpg_integer_source *s, int64_t first, int count, int64_t begin, int64_t end,
                                          float *values)
{
    const int keep = s->keep, flip = s->flip;
    for (int64_t k = begin; k < end; k++, values += MPG_INTEGER_LANES) {
        uint8_t codes[MPG_INTEGER_LANES] = {0};
        const uint8_t *source = s->data + first * s->outer + k * s->inner;
        if (k < s->k && s->outer == 1)
            memcpy(codes, source, (size_t)count);
        else if (k < s->k)
            for (int j = 0; j < count; j++)
                codes[j] = source[j * s->outer];
        for (int j = 0; j < MPG_INTEGER_LANES; j++)
            values[j] = (float)mpg_integer_value(codes[j], keep, flip);
    }
}

/* The same as int16, [k / 2][lane][2]; begin is even. */
MPG_INLINE void mpg_integer_pack_b_pairs(const mpg_integer_source *s, int64_t first, int count, int64_t begin, int64_t end,
                                         int16_t *values)
{
    const int keep = s->keep, flip = s->flip;
    const int64_t outer = s->outer, inner = s->inner;
    for (int64_t k = begin; k < end; k += 2, values += 2 * MPG_INTEGER_LANES) {
        uint8_t codes[2 * MPG_INTEGER_LANES] = {0};
        const uint8_t *source = s->data + first * outer + k * inner;
        const int both = k + 1 < s->k;
        if (both && outer == 1 && count == MPG_INTEGER_LANES) { /* nearly always */
            uint32_t *MPG_RESTRICT pairs = (uint32_t *)values;
            for (int j = 0; j < MPG_INTEGER_LANES; j++)
                pairs[j] = (uint16_t)mpg_integer_value(source[j], keep, flip) |
                           (uint32_t)mpg_integer_value(source[inner + j], keep, flip) << 16;
            continue;
        }
        if (both && inner == 1)
            for (int j = 0; j < count; j++)
                memcpy(codes + 2 * j, source + j * outer, 2);
        else
            for (int j = 0; j < count; j++) {
                codes[2 * j] = source[j * outer];
                codes[2 * j + 1] = both ? source[j * outer + inner] : 0;
            }
        for (int j = 0; j < 2 * MPG_INTEGER_LANES; j++)
            values[j] = (int16_t)mpg_integer_value(codes[j], keep, flip);
    }
}

/* AVX2 and AVX-512 take pairs of int16, everything else float. */
MPG_INLINE int mpg_integer_in_pairs(int level) { return MPG_X86_VARIANTS && level != MPG_ISA_BASELINE; }

/* Bytes of a packed number. */
MPG_INLINE int64_t mpg_integer_size(int level) { return mpg_integer_in_pairs(level) ? 2 : 4; }

MPG_INLINE void mpg_integer_pack_b_body(int level, const mpg_integer_source *s, int64_t first, int count, int64_t begin,
                                        int64_t end, void *values)
{
    if (mpg_integer_in_pairs(level))
        mpg_integer_pack_b_pairs(s, first, count, begin, end, values);
    else
        mpg_integer_pack_b_floats(s, first, count, begin, end, values);
}

/* The same places of a row of A. */
MPG_INLINE void mpg_integer_pack_a_body(int level, const mpg_integer_source *s, int64_t row, int64_t begin, int64_t end,
                                        void *values)
{
    const int pairs = mpg_integer_in_pairs(level);
    const int keep = s->keep, flip = s->flip;
    const int64_t inner = s->inner, stop = end < s->k ? end : s->k;
    const uint8_t *MPG_RESTRICT source = s->data + row * s->outer;
    int16_t *MPG_RESTRICT words = values;
    float *MPG_RESTRICT floats = values;
    if (pairs && inner == 1)
        for (int64_t k = begin; k < stop; k++)
            words[k - begin] = (int16_t)mpg_integer_value(source[k], keep, flip);
    else if (pairs)
        for (int64_t k = begin; k < stop; k++)
            words[k - begin] = (int16_t)mpg_integer_value(source[k * inner], keep, flip);
    else
        for (int64_t k = begin; k < stop; k++)
            floats[k - begin] = (float)mpg_integer_value(source[k * inner], keep, flip);
    for (int64_t k = stop; k < end; k++)
        if (pairs)
            words[k - begin] = 0;
        else
            floats[k - begin] = 0;
}

/* ---- plain C ------------------------------------------------------------------------------------------------------- */
/* Adds `count` products, 2 or 8, to each lane. Written out, because compilers would rather vectorise along q. */
MPG_INLINE void mpg_integer_products(int count, const float *MPG_RESTRICT a, const float *MPG_RESTRICT b,
                                     float *MPG_RESTRICT sum)
{
    const int n = MPG_INTEGER_LANES;
    for (int j = 0; j < MPG_INTEGER_LANES; j++) {
        float even = sum[j] + a[0] * b[j], odd = a[1] * b[n + j];
        if (count == 8) {
            even += a[2] * b[2 * n + j];
            odd += a[3] * b[3 * n + j];
            even += a[4] * b[4 * n + j];
            odd += a[5] * b[5 * n + j];
            even += a[6] * b[6 * n + j];
            odd += a[7] * b[7 * n + j];
        }
        sum[j] = even + odd;
    }
}

/* Adds the sum of one operation to c. */
MPG_INLINE void mpg_integer_add(int clamp, const float *MPG_RESTRICT sum, int32_t *MPG_RESTRICT c)
{
    for (int j = 0; j < MPG_INTEGER_LANES; j++) {
        const int32_t addend = (int32_t)sum[j], total = (int32_t)((uint32_t)c[j] + (uint32_t)addend);
        if (clamp) {
            const int32_t limit = mpg_if_negative(c[j]) ^ INT32_MAX;
            const int32_t over = mpg_if_negative((c[j] ^ total) & (addend ^ total));
            c[j] = total ^ ((total ^ limit) & over);
        } else {
            c[j] = total;
        }
    }
}

/* One row of packed operands, `length` products, against one panel. Not inlined: its registers are its own. */
MPG_NOINLINE static void mpg_integer_row(const mpg_integer_task *t, const float *a, const float *b, int32_t *c, int64_t length)
{
    for (int64_t k = 0; k < length; k += t->terms) {
        const int64_t end = k + t->terms < length ? k + t->terms : length;
        float sum[MPG_INTEGER_LANES] = {0};
        int64_t q = k;
        for (; q + 8 <= end; q += 8)
            mpg_integer_products(8, a + q, b + q * MPG_INTEGER_LANES, sum);
        for (; q < end; q += 2)
            mpg_integer_products(2, a + q, b + q * MPG_INTEGER_LANES, sum);
        if (t->clamp)
            mpg_integer_add(1, sum, c);
        else
            mpg_integer_add(0, sum, c);
    }
}

MPG_VARIANTS(mpg_integer_pack_b, (s, first, count, begin, end, values), const mpg_integer_source *s, int64_t first, int count,
             int64_t begin, int64_t end, void *values)
MPG_VARIANTS(mpg_integer_pack_a, (s, row, begin, end, values), const mpg_integer_source *s, int64_t row, int64_t begin,
             int64_t end, void *values)

#endif
