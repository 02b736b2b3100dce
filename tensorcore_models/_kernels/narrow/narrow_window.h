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

/* The smallest magnitude of `count` encodings other than zeros, and the largest, infinities and NaNs left out; with nothing else in
 * them the smallest is the larger one. */
MPG_INLINE void mpg_window_magnitudes(const void *codes, int size, int64_t count, const mpg_operand *f, uint32_t *least,
                                      uint32_t *most)
{
    const uint32_t all = f->magnitude_mask, finite = f->max_magnitude;
    const int padding = f->padding_bits;
    uint32_t low = UINT32_MAX, high = 0;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t magnitude = mpg_code(codes, size, i) >> padding & all;
        const uint32_t taken = magnitude <= finite ? magnitude : 0, before = taken - 1; /* 0 becomes the largest number */
        low = before < low ? before : low;
        high = taken > high ? taken : high;
    }
    *least = low;
    *most = high;
}

MPG_INLINE void mpg_window_of_body(int level, const void *codes, int64_t count, const mpg_operand *f, int *shift)
{
    uint32_t least, most;
    *shift = 0;
    if (f->size == 2)
        mpg_window_magnitudes(codes, 2, count, f, &least, &most);
    else
        mpg_window_magnitudes(codes, 4, count, f, &least, &most);
    if (most == 0)
        return;
    const int low = (int)((least + 1) >> f->fraction_bits), high = (int)(most >> f->fraction_bits);
    const int begin = (high > 1 ? high : 1) - f->bias - MPG_WINDOW_MOST, end = (low > 1 ? low : 1) - f->bias - MPG_WINDOW_LEAST;
    *shift = begin > end ? INT32_MAX : begin > 0 ? begin : end < 0 ? end : 0;
}

/* The shift next to 0 with which the exponents of `count` encodings lie in the lanes' range; INT32_MAX: there is none. */
MPG_VARIANTS(mpg_window_of, (codes, count, f, shift), const void *codes, int64_t count, const mpg_operand *f, int *shift)

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
        mpg_window_of(codes[i], counts[i], &format[i], &shift[i], level);
        if (shift[i] == INT32_MAX)
            return 0;
    }
    const int both = shift[0] + shift[1];
    return -MPG_WINDOW_SHIFT <= both && both <= MPG_WINDOW_SHIFT;
}

#endif
