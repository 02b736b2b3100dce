/* The sums of wide_nearest.h for the instruction set VECTOR_LEVEL. */
#define VECTOR_SIZE 8
#include "vector_set.h"

/* sum = c and `terms` products, each rounded to a multiple of its lane's unit, `magic` being 1.5 * 2^52 units. */
VECTOR_TARGET MPG_INLINE void VECTOR_NAME(mpg_nearest_sums)(int terms, const double *a, const double *b, const double *magic,
                                                            const double *c, double *sum)
{
    enum { TOGETHER = MPG_WIDE / VECTOR_LANES < 4 ? MPG_WIDE / VECTOR_LANES : 4 };
    for (int j = 0; j < MPG_WIDE; j += TOGETHER * VECTOR_LANES) {
        VECTOR unit[TOGETHER], total[TOGETHER];
        MPG_UNROLLED(4)
        for (int i = 0; i < TOGETHER; i++) {
            unit[i] = VECTOR_LOAD(magic + j + i * VECTOR_LANES);
            total[i] = VECTOR_ADD(VECTOR_LOAD(c + j + i * VECTOR_LANES), unit[i]) - unit[i];
        }
        for (int q = 0; q < terms; q++) {
            const VECTOR x = VECTOR_SET(a[q]);
            MPG_UNROLLED(4)
            for (int i = 0; i < TOGETHER; i++) {
                const VECTOR y = VECTOR_LOAD(b + q * MPG_WIDE + j + i * VECTOR_LANES);
                total[i] = VECTOR_ADD(total[i], VECTOR_MADD(x, y, unit[i]) - unit[i]);
            }
        }
        MPG_UNROLLED(4)
        for (int i = 0; i < TOGETHER; i++)
            VECTOR_STORE(sum + j + i * VECTOR_LANES, total[i]);
    }
}

/* One fused dot-add; `terms` is a constant. Returns whether lanes have 2^1000 instead of their result, for the generic kernel. */
VECTOR_TARGET MPG_INLINE int VECTOR_NAME(mpg_nearest_step_of)(int terms, const mpg_wide_task *t, const mpg_wide_operands *p,
                                                              double *c)
{
    const int16_t lowest = (MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4, floor = (int16_t)((t->floor + MPG_WORD_BIAS) << 4);
    const int16_t least = (int16_t)((t->fraction_bits - 149 + MPG_WORD_BIAS) << 4), most = (120 + MPG_WORD_BIAS) << 4;
    int16_t tops[MPG_WIDE], own[MPG_WIDE], apart[MPG_WIDE];
    double magic[MPG_WIDE], sum[MPG_WIDE];
    int16_t odd = 0;
    mpg_wide_tops(terms, lowest, p, tops);
    mpg_exponent_words(c, (int16_t)((t->raw_exponent + MPG_WORD_BIAS) << 4), own);
    for (int j = 0; j < MPG_WIDE; j++) {
        const int16_t zero = (int16_t)((tops[j] == lowest) & (own[j] == 0)); /* its sum is 0 in any unit */
        const int16_t top = tops[j] > own[j] ? tops[j] : own[j], raised = top > floor ? top : floor;
        apart[j] = (int16_t)(((raised < least) | (raised > most)) & !zero);
        tops[j] = raised;
        odd |= apart[j];
    }
    mpg_wide_powers(tops, mpg_word_to_magic(t->fraction_bits), magic);
    VECTOR_NAME(mpg_nearest_sums)(terms, p->a, p->b, magic, c, sum);
    for (int j = 0; j < MPG_WIDE; j++)
        c[j] = mpg_as_double(mpg_as_bits64(sum[j]) & ~UINT64_C(0x1FFFFFFF));
    if (odd)
        for (int j = 0; j < MPG_WIDE; j++)
            c[j] = apart[mpg_word_of_lane(j)] ? 0x1p1000 : c[j];
    return odd;
}

VECTOR_TARGET static int VECTOR_NAME(mpg_nearest_step)(const mpg_wide_task *t, const mpg_wide_operands *p, double *c)
{
    if (t->terms == 4)
        return VECTOR_NAME(mpg_nearest_step_of)(4, t, p, c);
    if (t->terms == 8)
        return VECTOR_NAME(mpg_nearest_step_of)(8, t, p, c);
    if (t->terms == 16)
        return VECTOR_NAME(mpg_nearest_step_of)(16, t, p, c);
    return VECTOR_NAME(mpg_nearest_step_of)(32, t, p, c);
}

#undef VECTOR_SIZE
