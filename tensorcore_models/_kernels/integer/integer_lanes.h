/* Rows of A against a panel of integer.h for the instruction set LANES_LEVEL (operations.h): included once for each. Two products are
 * multiplied and added in one operation; four rows' sums of two vectors stay in registers.
 */
#include "operations.h"

/* `rows` rows of A (row stride lda) against two vectors of columns of a panel, `count` of which exist; d has row stride ldd. */
OP_FN void OP(integer_rows)(int rows, int clamp, int terms, const int16_t *a, int64_t lda, const int16_t *b, int32_t *d,
                            int64_t ldd, int count, int64_t length)
{
    VI c[MPG_INTEGER_ROWS][2];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++)
            c[i][j] = OP(some_integers)(d + i * ldd + j * VLANES, count - j * VLANES);
    for (int64_t k = 0; k < length; k += terms) {
        const int64_t end = k + terms < length ? k + terms : length;
        VI sum[MPG_INTEGER_ROWS][2];
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++)
                sum[i][j] = clamp ? OP(all)(0) : c[i][j]; /* modulo 2^32 nothing depends on where sums begin */
        for (int64_t q = k; q < end; q += 2) {
            const VI left = OP(load_integers)(b + q * MPG_INTEGER_LANES);
            const VI right = OP(load_integers)(b + q * MPG_INTEGER_LANES + 2 * VLANES);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                int32_t pair;
                memcpy(&pair, a + i * lda + q, sizeof pair);
                sum[i][0] = OP(add)(sum[i][0], OP(pair_products)(OP(all)(pair), left));
                sum[i][1] = OP(add)(sum[i][1], OP(pair_products)(OP(all)(pair), right));
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++)
                c[i][j] = clamp ? OP(add_clamped)(c[i][j], sum[i][j]) : sum[i][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < 2; j++)
            OP(put_some_integers)(d + i * ldd + j * VLANES, c[i][j], count - j * VLANES);
}

/* The same for any number of rows and all columns of the panel. */
OP_FN void OP(integer_block)(int clamp, int terms, const int16_t *a, int64_t lda, int64_t rows, const int16_t *b, int32_t *d,
                             int64_t ldd, int count, int64_t length)
{
    for (int j = 0; j < count; j += 2 * VLANES) {
        int64_t i = 0;
        for (; i + MPG_INTEGER_ROWS <= rows; i += MPG_INTEGER_ROWS)
            OP(integer_rows)(MPG_INTEGER_ROWS, clamp, terms, a + i * lda, lda, b + 2 * j, d + i * ldd + j, ldd, count - j,
                             length);
        for (; i < rows; i++)
            OP(integer_rows)(1, clamp, terms, a + i * lda, lda, b + 2 * j, d + i * ldd + j, ldd, count - j, length);
    }
}

OP_TARGET static void OP(integer_vectors)(const mpg_integer_task *t, const int16_t *a, int64_t lda, int64_t rows,
                                          const int16_t *b, int32_t *d, int64_t ldd, int count, int64_t length)
{
    if (t->clamp)
        OP(integer_block)(1, t->terms, a, lda, rows, b, d, ldd, count, length);
    else
        OP(integer_block)(0, t->terms, a, lda, rows, b, d, ldd, count, length);
}
