/* Formats of more exponents than the lanes of 32 bits have (bf16, tf32): operands that use 32 of them are shifted into the range. */
#ifndef MPG_NARROW_WINDOW_H
#define MPG_NARROW_WINDOW_H

#include "lanes.h"

enum {
    MPG_WINDOW_LEAST = -16, /* alignment exponents in the lanes */
    MPG_WINDOW_MOST = 15,
    MPG_WINDOW_SHIFT = 32, /* of a product, at most: a sum that is shifted back is a normal number */
    MPG_WINDOW_ADDEND = 60 /* addends other than 0 lie between 2^-60 and 2^60 */
};

/* The smallest magnitude, less 1, of `count` encodings other than zeros, and the largest, infinities and NaNs left out; INT32_MAX and
 * 0 where there are no others. */
MPG_INLINE void mpg_window_magnitudes(const void *codes, int size, int64_t count, const mpg_operand *f, int32_t *least,
                                      int32_t *most)
{
    const uint32_t all = f->magnitude_mask;
    const int32_t beyond = (int32_t)f->max_magnitude + 1;
    const int padding = f->padding_bits;
    int32_t low = INT32_MAX, high = 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t magnitude = (int32_t)(mpg_code(codes, size, i) >> padding & all);
        const int32_t taken = magnitude & mpg_if_negative(magnitude - beyond), before = (taken - 1) & INT32_MAX;
        low = before < low ? before : low;
        high = taken > high ? taken : high;
    }
    *least = low;
    *most = high;
}

MPG_INLINE void mpg_window_of_body(int level, const void *codes, int64_t count, const mpg_operand *f, int32_t *least,
                                   int32_t *most)
{
    if (f->size == 2)
        mpg_window_magnitudes(codes, 2, count, f, least, most);
    else
        mpg_window_magnitudes(codes, 4, count, f, least, most);
}

MPG_VARIANTS(mpg_window_of, (codes, count, f, least, most), const void *codes, int64_t count, const mpg_operand *f,
             int32_t *least, int32_t *most)

/* The shift next to 0 with which exponents between those of such magnitudes lie in the lanes' range; INT32_MAX: there is none. */
static int mpg_window_shift(const mpg_operand *f, int32_t least, int32_t most)
{
    if (most == 0)
        return 0;
    const int low = (least + 1) >> f->fraction_bits, high = most >> f->fraction_bits;
    const int begin = (high > 1 ? high : 1) - f->bias - MPG_WINDOW_MOST, end = (low > 1 ? low : 1) - f->bias - MPG_WINDOW_LEAST;
    return begin > end ? INT32_MAX : begin > 0 ? begin : end < 0 ? end : 0;
}

/* Whether the products of operands that are shifted so are shifted not too far. */
static int mpg_window_fits(const int *shift)
{
    if (shift[0] == INT32_MAX || shift[1] == INT32_MAX)
        return 0;
    const int both = shift[0] + shift[1];
    return -MPG_WINDOW_SHIFT <= both && both <= MPG_WINDOW_SHIFT;
}

/* The format whose values are those of `f` times 2^-shift. */
static mpg_operand mpg_shifted(const mpg_operand *f, int shift)
{
    mpg_operand shifted = *f;
    shifted.bias += shift;
    shifted.emin -= shift;
    return shifted;
}

/* Shifts for the encodings of A and of B; 0 where there are none, or the products would be shifted too far. */
static int mpg_window(const mpg_operand *format, const void *const *codes, const int64_t *counts, int *shift, int level)
{
    for (int i = 0; i < 2; i++) {
        int32_t least, most;
        mpg_window_of(codes[i], counts[i], &format[i], &least, &most, level);
        shift[i] = mpg_window_shift(&format[i], least, most);
    }
    return mpg_window_fits(shift);
}

#endif
