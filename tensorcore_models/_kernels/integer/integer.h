/* Integer dot products into int32 (IntegerDotAdd; PTX ISA, mma.s32), lanes over the columns.
 *
 *  - Numbers are int16, two consecutive k side by side: pairs of products are summed in int32, exactly.
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
    int keep, flip;
} mpg_integer_format;

MPG_INLINE int32_t mpg_integer_value(int code, int keep, int flip) { return ((code & keep) ^ flip) - flip; }

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* Places begin to end - 1 of `length` of `count` columns of B as one panel, [k / 2][lane][2]; begin is even. Places beyond are zero. */
MPG_INLINE void mpg_integer_pack_b_body(int level, const mpg_source *s, const mpg_integer_format *f, int64_t length,
                                        int64_t first, int count, int64_t begin, int64_t end, int16_t *values)
{
    const int keep = f->keep, flip = f->flip;
    const int64_t outer = s->outer, inner = s->inner;
    for (int64_t k = begin; k < end; k += 2, values += 2 * MPG_INTEGER_LANES) {
        uint8_t codes[2 * MPG_INTEGER_LANES] = {0};
        const uint8_t *source = (const uint8_t *)s->data + first * outer + k * inner;
        const int both = k + 1 < length;
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

/* The same places of a row of A. */
MPG_INLINE void mpg_integer_pack_a_body(int level, const mpg_source *s, const mpg_integer_format *f, int64_t length,
                                        int64_t row, int64_t begin, int64_t end, int16_t *values)
{
    const int keep = f->keep, flip = f->flip;
    const int64_t inner = s->inner, stop = end < length ? end : length;
    const uint8_t *MPG_RESTRICT source = (const uint8_t *)s->data + row * s->outer;
    int16_t *MPG_RESTRICT words = values;
    if (inner == 1)
        for (int64_t k = begin; k < stop; k++)
            words[k - begin] = (int16_t)mpg_integer_value(source[k], keep, flip);
    else
        for (int64_t k = begin; k < stop; k++)
            words[k - begin] = (int16_t)mpg_integer_value(source[k * inner], keep, flip);
    for (int64_t k = stop > begin ? stop : begin; k < end; k++)
        words[k - begin] = 0;
}

MPG_VARIANTS(mpg_integer_pack_b, (s, f, length, first, count, begin, end, values), const mpg_source *s,
             const mpg_integer_format *f, int64_t length, int64_t first, int count, int64_t begin, int64_t end, int16_t *values)
MPG_VARIANTS(mpg_integer_pack_a, (s, f, length, row, begin, end, values), const mpg_source *s, const mpg_integer_format *f,
             int64_t length, int64_t row, int64_t begin, int64_t end, int16_t *values)

#endif
