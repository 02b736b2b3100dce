/* Rows of A against a panel of integer.h in vectors of 16-bit pairs: two products are multiplied and added in one instruction.
 * integer_x86.h includes this text once for each instruction set, with
 *   ROWS_NAME(x)  the variant's name of x,       ROWS_TARGET  the attribute of its functions,
 *   ROWS_VECTOR, ROWS_MASK                       vectors of int32, and which of their lanes exist,
 *   ROWS_LANES                                   lanes of a vector,
 * and the operations ROWS_SET (of an int32), ROWS_LOAD, ROWS_ADD, ROWS_PAIRS (multiply and add pairs), ROWS_EXISTING (the mask of the
 * first `count` lanes), ROWS_LOAD_EXISTING, ROWS_STORE_EXISTING and ROWS_CLAMPED (c + sum, clamped).
 */
#define ROWS_INLINE ROWS_TARGET static inline __attribute__((always_inline))

/* `rows` rows of A (row stride lda) against two vectors of columns of a panel, `count` of which exist; d has row stride ldd. */
ROWS_INLINE void ROWS_NAME(mpg_integer_rows)(int rows, int clamp, int terms, const int16_t *a, int64_t lda, const int16_t *b,
                                             int32_t *d, int64_t ldd, int count, int64_t length)
{
    const ROWS_MASK left_exists = ROWS_EXISTING(count), right_exists = ROWS_EXISTING(count - ROWS_LANES);
    ROWS_VECTOR c[MPG_INTEGER_ROWS][2];
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        c[i][0] = ROWS_LOAD_EXISTING(d + i * ldd, left_exists);
        c[i][1] = ROWS_LOAD_EXISTING(d + i * ldd + ROWS_LANES, right_exists);
    }
    for (int64_t k = 0; k < length; k += terms) {
        const int64_t end = k + terms < length ? k + terms : length;
        ROWS_VECTOR sum[MPG_INTEGER_ROWS][2];
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++)
                sum[i][j] = clamp ? ROWS_SET(0) : c[i][j]; /* modulo 2^32 nothing depends on where sums begin */
        for (int64_t q = k; q < end; q += 2) {
            const ROWS_VECTOR left = ROWS_LOAD(b + q * MPG_INTEGER_LANES);
            const ROWS_VECTOR right = ROWS_LOAD(b + q * MPG_INTEGER_LANES + 2 * ROWS_LANES);
#pragma GCC unroll 4
            for (int i = 0; i < rows; i++) {
                int32_t pair;
                memcpy(&pair, a + i * lda + q, sizeof(pair));
                const ROWS_VECTOR x = ROWS_SET(pair);
                sum[i][0] = ROWS_ADD(sum[i][0], ROWS_PAIRS(x, left));
                sum[i][1] = ROWS_ADD(sum[i][1], ROWS_PAIRS(x, right));
            }
        }
#pragma GCC unroll 4
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 2; j++)
                c[i][j] = clamp ? ROWS_CLAMPED(c[i][j], sum[i][j]) : sum[i][j];
    }
#pragma GCC unroll 4
    for (int i = 0; i < rows; i++) {
        ROWS_STORE_EXISTING(d + i * ldd, left_exists, c[i][0]);
        ROWS_STORE_EXISTING(d + i * ldd + ROWS_LANES, right_exists, c[i][1]);
    }
}

/* The same for any number of rows and all columns of the panel. */
ROWS_INLINE void ROWS_NAME(mpg_integer_block)(int clamp, int terms, const int16_t *a, int64_t lda, int64_t rows,
                                              const int16_t *b, int32_t *d, int64_t ldd, int count, int64_t length)
{
    for (int j = 0; j < count; j += 2 * ROWS_LANES) {
        int64_t i = 0;
        for (; i + MPG_INTEGER_ROWS <= rows; i += MPG_INTEGER_ROWS)
            ROWS_NAME(mpg_integer_rows)(MPG_INTEGER_ROWS, clamp, terms, a + i * lda, lda, b + 2 * j, d + i * ldd + j, ldd,
                                        count - j, length);
        for (; i < rows; i++)
            ROWS_NAME(mpg_integer_rows)(1, clamp, terms, a + i * lda, lda, b + 2 * j, d + i * ldd + j, ldd, count - j, length);
    }
}

ROWS_TARGET static void ROWS_NAME(mpg_integer_wrapped)(int terms, const int16_t *a, int64_t lda, int64_t rows, const int16_t *b,
                                                       int32_t *d, int64_t ldd, int count, int64_t length)
{
    ROWS_NAME(mpg_integer_block)(0, terms, a, lda, rows, b, d, ldd, count, length);
}

ROWS_TARGET static void ROWS_NAME(mpg_integer_clamped)(int terms, const int16_t *a, int64_t lda, int64_t rows, const int16_t *b,
                                                       int32_t *d, int64_t ldd, int count, int64_t length)
{
    ROWS_NAME(mpg_integer_block)(1, terms, a, lda, rows, b, d, ldd, count, length);
}

#undef ROWS_INLINE
#undef ROWS_NAME
#undef ROWS_TARGET
#undef ROWS_VECTOR
#undef ROWS_MASK
#undef ROWS_LANES
#undef ROWS_SET
#undef ROWS_LOAD
#undef ROWS_ADD
#undef ROWS_PAIRS
#undef ROWS_EXISTING
#undef ROWS_LOAD_EXISTING
#undef ROWS_STORE_EXISTING
#undef ROWS_CLAMPED
