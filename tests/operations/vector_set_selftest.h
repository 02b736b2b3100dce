/* Tests of the vectors of vector_set.h, in rounding to nearest: included once for each instruction set and element type. */
#include "vector_set.h"

#if VECTOR_SIZE == 4
#define FUSED(a, b, c) fmaf(a, b, c)
#define DRAWN(i) (random32() % 2 ? number(i, -12, 12) : mpg_as_float(random32()))
#else
#define FUSED(a, b, c) fma(a, b, c)
#define DRAWN(i) (random32() % 2 ? wide_number(i, -20, 20, 53) : mpg_as_double((uint64_t)random32() << 32 | random32()))
#endif
#define TEST_OF(name) MPG_JOIN(name, VECTOR_SIZE)

/* What each operation gives of one lane, said by C: from[0] + from[1], from[0] from[1], from[0] from[1] + from[2]. */
static void VECTOR_NAME(TEST_OF(expected_of_))(const VECTOR_ELEMENT *from, VECTOR_ELEMENT *to)
{
    volatile VECTOR_ELEMENT product = from[0] * from[1], sum = from[0] + from[1];
    to[0] = sum;
    to[1] = product;
    to[2] = VECTOR_FUSED ? FUSED(from[0], from[1], from[2]) : product + from[2];
}

VECTOR_TARGET static void VECTOR_NAME(TEST_OF(results_of_))(const VECTOR_ELEMENT *from, VECTOR_ELEMENT *to)
{
    const VECTOR a = VECTOR_LOAD(from), b = VECTOR_LOAD(from + VECTOR_LANES), c = VECTOR_LOAD(from + 2 * VECTOR_LANES);
    VECTOR_STORE(to, VECTOR_ADD(a, b));
    VECTOR_STORE(to + VECTOR_LANES, VECTOR_MUL(a, b));
    VECTOR_STORE(to + 2 * VECTOR_LANES, VECTOR_MADD(a, b, c));
    VECTOR_STORE(to + 3 * VECTOR_LANES, VECTOR_SET(from[1]));
}

static void VECTOR_NAME(TEST_OF(test_vectors_))(void)
{
    static const char *const names[] = {"vector_add", "vector_mul", "vector_madd"};
    VECTOR_ELEMENT from[3 * VECTOR_LANES], got[4 * VECTOR_LANES], wanted[3];
    for (int i = 0; i < 200000; i++) {
        for (int l = 0; l < 3 * VECTOR_LANES; l++)
            from[l] = DRAWN(l + 2 * (i > 0));
        VECTOR_NAME(TEST_OF(results_of_))(from, got);
        for (int l = 0; l < VECTOR_LANES; l++) {
            const VECTOR_ELEMENT lane[3] = {from[l], from[VECTOR_LANES + l], from[2 * VECTOR_LANES + l]};
            VECTOR_NAME(TEST_OF(expected_of_))(lane, wanted);
            for (int j = 0; j < 3; j++)
                expect_number(names[j], lane[0], lane[1], got[j * VECTOR_LANES + l], wanted[j]);
            expect_number("vector_set", from[1], 0, got[3 * VECTOR_LANES + l], from[1]);
        }
    }
}
#undef FUSED
#undef DRAWN
#undef TEST_OF
