/* Operands as integer words: slices, balanced residues, quantised words. Part of integer_words.h, which has the contract.
 *
 * Numbers are loaded a chunk at a time as binary64, scaled by the power of two of their row or column. What is not finite counts
 * as 0.
 */
#ifndef MPGEMM_INTEGER_WORDS_SPLIT_H
#define MPGEMM_INTEGER_WORDS_SPLIT_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "cpu.h"

/* WORDS_CHUNK: elements at a time, WORDS_SCAN_BLOCK: columns scanned at a time,
 * WORDS_MODULI: the most moduli there can be (each pair is coprime and none is above 256, so each has a prime of its own among the 54
 * below 256). */
enum { WORDS_CHUNK = 512, WORDS_MODULI = 54, WORDS_SCAN_BLOCK = 256 };

/* Bits of the pieces of which residues are taken, of the highest piece, and how many pieces there are at most. */
enum { WORDS_PIECE = 12, WORDS_TOP_PIECE = 14, WORDS_PIECES = 5 };

/* Tables of residues have so many entries more at each end, and are for moduli up to WORDS_TABLE_MODULUS. */
enum { WORDS_MARGIN = 2, WORDS_TABLE_MODULUS = 1300 };

typedef struct {
    const void *data; /* C-contiguous */
    int is_double, by_rows;
    ptrdiff_t columns;
    const double *first,
        *second; /* powers of two; a number is scaled by the first and then by the second of its row or column */
} words_operand;

/* Adding and subtracting 1.5 * 2^52 rounds to the nearest integer, ties to even; |x| at most 2^51. */
MPG_INLINE double words_nearest(double x) { return (x + 0x1.8p52) - 0x1.8p52; }

/* x y + z in binary64 and binary32, where x y is exact or the sum is not asked to be rounded in a particular way. `fused` is a constant. */
MPG_INLINE double words_madd(double x, double y, double z, int fused) { return fused ? fma(x, y, z) : x * y + z; }

MPG_INLINE float words_maddf(float x, float y, float z, int fused) { return fused ? fmaf(x, y, z) : x * y + z; }

MPG_INLINE double words_finite(double x) { return fabs(x) <= DBL_MAX ? x : 0.0; }

/* `count` <= WORDS_CHUNK numbers from the flat index `start`. */
MPG_INLINE void words_load(const words_operand *x, ptrdiff_t start, ptrdiff_t count, double *MPG_RESTRICT values)
{
    ptrdiff_t row = start / x->columns, column = start % x->columns;
    if (x->is_double)
        for (ptrdiff_t i = 0; i < count; i++)
            values[i] = words_finite(((const double *)x->data)[start + i]);
    else
        for (ptrdiff_t i = 0; i < count; i++)
            values[i] = words_finite((double)((const float *)x->data)[start + i]);
    for (ptrdiff_t done = 0, run; done < count; done += run, column = 0, row++) {
        double *MPG_RESTRICT part = values + done;
        run = count - done < x->columns - column ? count - done : x->columns - column;
        if (x->by_rows) {
            const double first = x->first[row], second = x->second[row];
            for (ptrdiff_t i = 0; i < run; i++)
                part[i] = part[i] * first * second;
        } else {
            const double *MPG_RESTRICT first = x->first + column, *MPG_RESTRICT second = x->second + column;
            for (ptrdiff_t i = 0; i < run; i++)
                part[i] = part[i] * first[i] * second[i];
        }
    }
}

/* Digits of `bits` <= 7 bits of numbers below 1, by truncation: each has the sign of its number. */
MPG_INLINE void words_truncated(double *MPG_RESTRICT values, ptrdiff_t count, int slices, int bits, int8_t *planes,
                                ptrdiff_t plane)
{
    const double unit = (double)(1 << bits);
    for (int j = 0; j < slices; j++) {
        int8_t *MPG_RESTRICT slice = planes + j * plane;
        for (ptrdiff_t i = 0; i < count; i++) {
            const double scaled = values[i] * unit;
            const int32_t digit = (int32_t)scaled;
            values[i] = scaled - (double)digit; /* exact */
            slice[i] = (int8_t)digit;
        }
    }
}

/* Digits in [-128, 127] of numbers rounded to integers, |x| at most 2^(8 slices - 2). With 128 added in every place the digits
 * are the bytes, less 128. */
MPG_INLINE void words_balanced(double *MPG_RESTRICT values, ptrdiff_t count, int slices, int8_t *planes, ptrdiff_t plane)
{
    uint64_t whole[WORDS_CHUNK];
    for (ptrdiff_t i = 0; i < count; i++)
        whole[i] = (uint64_t)(int64_t)rint(values[i]) + UINT64_C(0x8080808080808080);
    for (int j = 0; j < slices; j++) {
        int8_t *MPG_RESTRICT slice = planes + j * plane;
        const int shift = 8 * (slices - 1 - j);
        for (ptrdiff_t i = 0; i < count; i++)
            slice[i] = (int8_t)(uint8_t)(whole[i] >> shift ^ 0x80);
    }
}

/* w less the nearest multiple of p, or one next to that; see words_residues. fused is a constant. */
MPG_INLINE float words_remainder(float w, float p, float inverse, int fused)
{
    return words_maddf(-p, words_maddf(w, inverse, 0x1.8p23f, fused) - 0x1.8p23f, w, fused);
}

/* The sum of n pieces times powers, less the nearest multiple of p; see words_residues. n and fused are constants. */
MPG_INLINE float words_residue(float (*MPG_RESTRICT pieces)[WORDS_CHUNK], int n, ptrdiff_t i, float p, float inverse,
                               const float *power, int fused)
{
    float sum = pieces[0][i] * power[0];
    if (n > 1)
        sum = words_maddf(pieces[1][i], power[1], sum, fused);
    if (n > 2)
        sum = words_maddf(pieces[2][i], power[2], sum, fused);
    if (n > 3)
        sum = words_maddf(pieces[3][i], power[3], sum, fused);
    if (n > 4)
        sum = words_maddf(pieces[4][i], power[4], sum, fused);
    return words_remainder(sum, p, inverse, fused);
}

/* The byte of a residue in [-p/2, p/2], of which p/2 becomes -p/2. even, a constant: whether p may be. Integers are compared, because
 * compilers have no vectors for such a choice between floats. */
MPG_INLINE int8_t words_balanced_byte(int32_t residue, int even, int32_t p)
{
    return (int8_t)(even && residue >= (p + 1) / 2 ? residue - p : residue);
}

/* Balanced residues of sums of `n` pieces times powers. n, even (whether p is) and fused are constants. */
MPG_INLINE void words_residues_of(float (*MPG_RESTRICT pieces)[WORDS_CHUNK], int n, int even, ptrdiff_t count, float p,
                                  float inverse, const float *powers, int step, int8_t *MPG_RESTRICT word, int fused)
{
    float power[WORDS_PIECES];
    for (int k = 0; k < n; k++)
        power[k] = powers[k * step];
    for (ptrdiff_t i = 0; i < count; i++)
        word[i] = words_balanced_byte((int32_t)words_residue(pieces, n, i, p, inverse, power, fused), even, (int32_t)p);
}

/* RZ(x) of numbers below 2^bits, bits at most 62. Compilers have no vector operation for trunc() that keeps its exceptions. */
MPG_INLINE void words_trunc(double *MPG_RESTRICT values, ptrdiff_t count, int bits)
{
    if (bits <= 51)
        for (ptrdiff_t i = 0; i < count; i++) {
            const double x = values[i], nearest = words_nearest(x);
            values[i] = nearest - copysign(fabs(nearest) > fabs(x) ? 1.0 : 0.0, x);
        }
    else
        for (ptrdiff_t i = 0; i < count; i++)
            values[i] = (double)(int64_t)values[i];
}

/* The pieces of numbers that int32 holds: as words_cut. */
MPG_INLINE int words_cut_short(const double *MPG_RESTRICT values, ptrdiff_t count, int bits,
                               float (*MPG_RESTRICT pieces)[WORDS_CHUNK])
{
    int32_t whole[WORDS_CHUNK];
    int n = 0;
    for (ptrdiff_t i = 0; i < count; i++)
        whole[i] = (int32_t)values[i];
    for (int left = bits; left > WORDS_TOP_PIECE; left -= WORDS_PIECE, n++)
        for (ptrdiff_t i = 0; i < count; i++) {
            const int32_t high = (whole[i] + (1 << (WORDS_PIECE - 1))) >> WORDS_PIECE;
            pieces[n][i] = (float)(whole[i] - high * (1 << WORDS_PIECE));
            whole[i] = high;
        }
    for (ptrdiff_t i = 0; i < count; i++)
        pieces[n][i] = (float)whole[i];
    return n;
}

/* RZ(x), |x| < 2^bits, cut into pieces of WORDS_PIECE bits from below, to nearest (so at most 2^11 in magnitude), until at most
 * WORDS_TOP_PIECE bits are left: x = sum of piece_i 2^(12 i). The last piece's index is returned. */
MPG_INLINE int words_cut(double *MPG_RESTRICT values, ptrdiff_t count, int bits, float (*MPG_RESTRICT pieces)[WORDS_CHUNK])
{
    int n = 0;
    if (bits <= 30)
        return words_cut_short(values, count, bits, pieces);
    words_trunc(values, count, bits);
    for (int left = bits; left > WORDS_TOP_PIECE; left -= WORDS_PIECE, n++)
        for (ptrdiff_t i = 0; i < count; i++) {
            const double high = words_nearest(values[i] * (1.0 / (1 << WORDS_PIECE)));
            pieces[n][i] = (float)(values[i] - high * (1 << WORDS_PIECE));
            values[i] = high;
        }
    for (ptrdiff_t i = 0; i < count; i++)
        pieces[n][i] = (float)values[i];
    return n;
}

MPG_INLINE void words_no_more(float (*pieces)[WORDS_CHUNK], int n)
{
    for (int k = n + 1; k < WORDS_PIECES; k++)
        memset(pieces[k], 0, sizeof pieces[k]);
}

/* Balanced residues, in [-p/2, p/2), of a multiple of RZ(x), |x| < 2^bits, bits at most 62, modulo each modulus p.
 *
 * x is a sum of piece_i 2^(12 i), five pieces at most (words_cut). With powers[i], at most p/2 <= 2^7 in magnitude, congruent to 2^(12 i)
 * times a factor, w = sum of piece_i powers_i is congruent to the multiple and |w| <= 2^14 2^7 + 4 2^11 2^7 < 2^22: exact in binary32, as are its partial sums.
 * w (1/p) has a relative error below 2^-23 (1 + 2^-25), so an absolute one below 1/(2p), and w/p is a multiple of 1/p. It therefore
 * rounds to the nearest integer q, or to one of the two nearest where both are equally near, which needs an even p. w - q p is
 * exact; where it is +p/2 it becomes -p/2. */
MPG_INLINE void words_residues(double *MPG_RESTRICT values, ptrdiff_t count, int bits, int moduli,
                               const float *MPG_RESTRICT modulus, const float *MPG_RESTRICT inverse,
                               const float *MPG_RESTRICT powers, int8_t *planes, ptrdiff_t plane, int fused)
{
    float pieces[WORDS_PIECES][WORDS_CHUNK];
    const int n = words_cut(values, count, bits, pieces);
    for (int j = 0; j < moduli; j++) {
        const int even = (int32_t)modulus[j] % 2 == 0;
        int8_t *word = planes + j * plane;
#define WORDS_RESIDUES_OF(pieces_used)                                                                                         \
    if (even)                                                                                                                  \
        words_residues_of(pieces, pieces_used, 1, count, modulus[j], inverse[j], powers + j, moduli, word, fused);             \
    else                                                                                                                       \
        words_residues_of(pieces, pieces_used, 0, count, modulus[j], inverse[j], powers + j, moduli, word, fused);             \
    break
        switch (n) { /* what does not depend on the element is decided outside the loop */
        case 0:
            WORDS_RESIDUES_OF(1);
        case 1:
            WORDS_RESIDUES_OF(2);
        case 2:
            WORDS_RESIDUES_OF(3);
        case 3:
            WORDS_RESIDUES_OF(4);
        default:
            WORDS_RESIDUES_OF(5);
        }
#undef WORDS_RESIDUES_OF
    }
}

/* What `number` tables of bytes hold for the residue of RZ(x), |x| < 2^bits, modulo an odd p <= WORDS_TABLE_MODULUS. A table has
 * an entry for each residue from -(p - 1) / 2 - WORDS_MARGIN on. `facts`: p, 1/p and the powers.
 *
 * As words_residues; powers are at most 650 in magnitude, so |w| <= (2^14 + 3 2^11) 650 + 2^11 < 2^24 is exact, and so are its
 * partial sums. w (1/p) has a relative error below 2^-23 (1 + 2^-25), so an absolute one below 2/p: the quotient is one of the two
 * nearest, and not the nearest only where the residue is within 2 of p/2 or -p/2. */
MPG_INLINE void words_looked_up(double *MPG_RESTRICT values, ptrdiff_t count, int bits, const float *facts,
                                const uint8_t *MPG_RESTRICT tables, int number, int8_t *planes, ptrdiff_t plane, int fused)
{
    const float p = facts[0], inverse = facts[1], *powers = facts + 2;
    float pieces[WORDS_PIECES][WORDS_CHUNK];
    int16_t index[WORDS_CHUNK];
    const int width = (int)p + 2 * WORDS_MARGIN;
    const int16_t zero = (int16_t)(((int)p - 1) / 2 + WORDS_MARGIN);
    words_no_more(pieces, words_cut(values, count, bits, pieces));
    for (ptrdiff_t i = 0; i < count; i++)
        index[i] = (int16_t)((int32_t)words_residue(pieces, WORDS_PIECES, i, p, inverse, powers, fused) + zero);
    for (int j = 0; j < number; j++)
        for (ptrdiff_t i = 0; i < count; i++)
            planes[j * plane + i] = (int8_t)tables[j * width + index[i]];
}

/* Scans and quantised words of one type of number. */
#define NUMBER float
#define INTEGER int32_t
#define MAGNITUDE INT32_C(0x7FFFFFFF)
#define INFINITY_CODE INT32_C(0x7F800000)
#define ROUNDER 0x1.8p23f
#define NAME(x) words_##x##_float
#include "integer_words_number.h"

#define NUMBER double
#define INTEGER int64_t
#define MAGNITUDE INT64_C(0x7FFFFFFFFFFFFFFF)
#define INFINITY_CODE INT64_C(0x7FF0000000000000)
#define ROUNDER 0x1.8p52
#define NAME(x) words_##x##_double
#include "integer_words_number.h"

#endif
