/* Addends of a product as float32 for the lanes, with marks of addends that the lanes cannot take. */
#ifndef MPG_ADDENDS_H
#define MPG_ADDENDS_H

#include "bits.h"
#include "cpu.h"

typedef struct {
    uint32_t least, beyond; /* zeros and magnitudes (bits without the sign) from `least` on and below `beyond` are taken */
    float scale;            /* a power of two by which they are multiplied */
    uint32_t tiny;          /* smaller magnitudes then, zeros left out, are marked 2 */
} mpg_addend_range;

/* Scales `count` FP32 addends in place; addends that are not taken become 0 and are marked. `*found` is the OR of the marks. */
MPG_INLINE void mpg_addends_body(int level, const mpg_addend_range *range, float *MPG_RESTRICT values,
                                 uint8_t *MPG_RESTRICT marks, int64_t count, int *found)
{
    const uint32_t least = range->least, span = range->beyond - least, tiny = range->tiny - 1;
    const float scale = range->scale;
    uint32_t joined = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = mpg_as_bits(values[i]) & 0x7FFFFFFFu;
        const uint32_t outside = (uint32_t)(magnitude - least >= span) & (uint32_t)(magnitude != 0);
        const float value = mpg_as_float(mpg_as_bits(values[i]) & (outside - 1)) * scale;
        const uint32_t small = (uint32_t)((mpg_as_bits(value) & 0x7FFFFFFFu) - 1 < tiny), mark = outside | small << 1;
        values[i] = mpg_as_float(mpg_as_bits(value) & (small - 1));
        marks[i] = (uint8_t)mark;
        joined |= mark;
    }
    *found |= (int)joined;
}

MPG_VARIANTS(mpg_addends, (range, values, marks, count, found), const mpg_addend_range *range, float *MPG_RESTRICT values,
             uint8_t *MPG_RESTRICT marks, int64_t count, int *found)

enum { MPG_MARKS_TOGETHER = 1 << 12 }; /* that are looked at before it may end */

static int mpg_any_marks(const uint8_t *marks, int64_t count)
{
    uint8_t any = 0;
    for (int64_t i = 0; i < count && !any; i += MPG_MARKS_TOGETHER) {
        const int64_t left = count - i, end = i + (left < MPG_MARKS_TOGETHER ? left : MPG_MARKS_TOGETHER);
        for (int64_t j = i; j < end; j++)
            any |= marks[j];
    }
    return any;
}

#endif
