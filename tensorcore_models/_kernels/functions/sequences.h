/* Sequences of FP32 and integer instructions on words of 32 bits: registers are blocks of MPG_BLOCK words, a step is one loop over a
 * block. IEEE operations round once and give NVIDIA's NaN; tensorcore_models/functions/on_integers.py has the same operations in
 * integers, on_terms.py as terms. They need the default floating-point environment (fp_state.h).
 */
#ifndef MPG_SEQUENCES_H
#define MPG_SEQUENCES_H

#include <math.h>
#include <string.h>

#include "angles.h"
#include "unit.h"

/* As sequences.OPERATIONS, after the kinds of units. */
enum {
    MPG_SEQ_FMA = MPG_UNITS,
    MPG_SEQ_FMA_RD,
    MPG_SEQ_MUL,
    MPG_SEQ_ADD,
    MPG_SEQ_DIV,
    MPG_SEQ_SQRT,
    MPG_SEQ_NEG,
    MPG_SEQ_ABS,
    MPG_SEQ_SAT,
    MPG_SEQ_FLUSH,
    MPG_SEQ_FLOAT,
    MPG_SEQ_LARGE_TURNS,
    MPG_SEQ_LARGE_REST,
    MPG_SEQ_LESS,
    MPG_SEQ_SAME,
    MPG_SEQ_SELECT,
    MPG_SEQ_AND,
    MPG_SEQ_OR,
    MPG_SEQ_XOR,
    MPG_SEQ_SHL,
    MPG_SEQ_SHR,
    MPG_SEQ_IADD,
    MPG_SEQ_ISUB,
    MPG_SEQ_OPERATIONS
};

enum { MPG_REGISTERS = 64 };

typedef struct {
    int32_t operation, target, a, b, c;
} mpg_step;

typedef struct {
    const mpg_step *steps;
    int32_t count, operands, constants, result; /* registers: operands, constants, then what steps write */
    const uint32_t *values;                     /* of constants */
    mpg_tables tables;
} mpg_sequence;

typedef struct {
    uint32_t words[MPG_REGISTERS][MPG_BLOCK];
    mpg_reduced reduced;
} mpg_registers;

/* ---- one word ------------------------------------------------------------------------------------------------------- */
MPG_INLINE uint32_t mpg_quiet(float value)
{
    const uint32_t bits = mpg_as_bits(value);
    return MPG_PICK(MPG_ONES((int32_t)(bits & 0x7FFFFFFFu) > 0x7F800000), MPG_NAN32, bits);
}

/* a b + c, where the product is exact in double: the sum as the nearest double and what is left, of which only the sign counts. */
MPG_INLINE double mpg_exact_sum(float a, float b, float c, double *left)
{
    const double product = (double)a * (double)b, addend = c, sum = product + addend;
    const double of_addend = sum - product, of_product = sum - of_addend;
    *left = (product - of_product) + (addend - of_addend); /* Knuth's TwoSum: exact */
    return sum;
}

/* Rounded to odd to 53 bits first, which decides the rounding to 24 (Boldo and Melquiond 2008). */
MPG_INLINE float mpg_fma_plain(float a, float b, float c)
{
    double left;
    const double sum = mpg_exact_sum(a, b, c, &left);
    const uint64_t bits = mpg_as_bits64(sum), inexact = UINT64_C(0) - (uint64_t)((left < 0) | (left > 0));
    const uint64_t outward = UINT64_C(0) - (uint64_t)((left > 0) == (sum > 0));
    const uint64_t odd = bits & 1 ? bits : (outward & (bits | 1)) | (~outward & (bits - 1));
    return (float)mpg_as_double(MPG_PICK(inexact, odd, bits));
}

MPG_INLINE float mpg_fma_down(float a, float b, float c)
{
    double left;
    const double sum = mpg_exact_sum(a, b, c, &left);
    const float nearest = (float)sum;
    const uint32_t bits = mpg_as_bits(nearest), zero = MPG_ONES((bits & 0x7FFFFFFFu) == 0);
    const uint32_t above = MPG_ONES((double)nearest > sum) | (MPG_ONES((double)nearest == sum) & MPG_ONES(left < 0));
    const uint32_t below = MPG_PICK(zero, 0x80000001u, bits - 1 + 2 * (bits >> 31));
    const uint32_t signs = (uint32_t)(mpg_as_bits64((double)a * (double)b) >> 63) | mpg_as_bits(c) >> 31;
    const uint32_t minus_zero = MPG_ONES(sum == 0) & MPG_ONES(left == 0) & signs << 31;
    return mpg_as_float(MPG_PICK(above, below, bits | minus_zero));
}

/* ---- one step ------------------------------------------------------------------------------------------------------- */
#define MPG_EACH(EXPRESSION)                                                                                                   \
    for (int i = 0; i < MPG_BLOCK; i++)                                                                                        \
        out[i] = (EXPRESSION);                                                                                                 \
    break
#define MPG_A mpg_as_float(a[i])
#define MPG_B mpg_as_float(b[i])
#define MPG_C mpg_as_float(c[i])
#define MPG_UNIT_CASE(KIND)                                                                                                    \
    case KIND:                                                                                                                 \
        mpg_unit_block(KIND, a, out, tables, reduced);                                                                         \
        break

MPG_INLINE void mpg_step_block_body(int level, int operation, const uint32_t *MPG_RESTRICT a, const uint32_t *MPG_RESTRICT b,
                                    const uint32_t *MPG_RESTRICT c, uint32_t *MPG_RESTRICT out, const mpg_tables *tables,
                                    mpg_reduced *reduced)
{
    switch (operation) {
        MPG_UNIT_CASE(MPG_UNIT_EX2);
        MPG_UNIT_CASE(MPG_UNIT_LG2);
        MPG_UNIT_CASE(MPG_UNIT_RCP);
        MPG_UNIT_CASE(MPG_UNIT_RSQRT);
        MPG_UNIT_CASE(MPG_UNIT_SQRT);
        MPG_UNIT_CASE(MPG_UNIT_SIN);
        MPG_UNIT_CASE(MPG_UNIT_COS);
        MPG_UNIT_CASE(MPG_UNIT_TANH);
        MPG_UNIT_CASE(MPG_UNIT_RCP_HIGH);
        MPG_UNIT_CASE(MPG_UNIT_RSQRT_HIGH);
    case MPG_SEQ_FMA:
        if (level >= MPG_ISA_AVX2) {
            MPG_EACH(mpg_quiet(fmaf(MPG_A, MPG_B, MPG_C)));
        }
        MPG_EACH(mpg_quiet(mpg_fma_plain(MPG_A, MPG_B, MPG_C)));
    case MPG_SEQ_FMA_RD:
        MPG_EACH(mpg_quiet(mpg_fma_down(MPG_A, MPG_B, MPG_C)));
    case MPG_SEQ_MUL:
        MPG_EACH(mpg_quiet(MPG_A * MPG_B));
    case MPG_SEQ_ADD:
        MPG_EACH(mpg_quiet(MPG_A + MPG_B));
    case MPG_SEQ_DIV:
        MPG_EACH(mpg_quiet(MPG_A / MPG_B));
    case MPG_SEQ_SQRT:
        MPG_EACH(mpg_quiet(sqrtf(MPG_A)));
    case MPG_SEQ_NEG:
        MPG_EACH(a[i] ^ 0x80000000u);
    case MPG_SEQ_ABS:
        MPG_EACH(a[i] & 0x7FFFFFFFu);
    case MPG_SEQ_SAT: /* what is below 0 or NaN is +0 */
        MPG_EACH((int32_t)a[i] > 0x7F800000 ? 0u : (int32_t)a[i] < 0 ? 0u : (int32_t)a[i] > 0x3F800000 ? 0x3F800000u : a[i]);
    case MPG_SEQ_FLUSH:
        MPG_EACH((a[i] & 0x7F800000u) ? a[i] : a[i] & 0x80000000u);
    case MPG_SEQ_FLOAT:
        MPG_EACH(mpg_as_bits((float)(int32_t)a[i]));
    case MPG_SEQ_LARGE_TURNS:
        MPG_EACH(mpg_large_turns(a[i]));
    case MPG_SEQ_LARGE_REST:
        MPG_EACH(mpg_large_rest(a[i]));
    case MPG_SEQ_LESS:
        MPG_EACH(MPG_ONES(MPG_A < MPG_B));
    case MPG_SEQ_SAME:
        MPG_EACH(MPG_ONES(a[i] == b[i]));
    case MPG_SEQ_SELECT:
        MPG_EACH(MPG_PICK(a[i], b[i], c[i]));
    case MPG_SEQ_AND:
        MPG_EACH(a[i] & b[i]);
    case MPG_SEQ_OR:
        MPG_EACH(a[i] | b[i]);
    case MPG_SEQ_XOR:
        MPG_EACH(a[i] ^ b[i]);
    case MPG_SEQ_SHL:
        MPG_EACH(a[i] << (b[i] & 31));
    case MPG_SEQ_SHR:
        MPG_EACH(a[i] >> (b[i] & 31));
    case MPG_SEQ_IADD:
        MPG_EACH(a[i] + b[i]);
    default:
        MPG_EACH(a[i] - b[i]);
    }
}

MPG_VARIANTS(mpg_step_block, (operation, a, b, c, out, tables, reduced), int operation, const uint32_t *MPG_RESTRICT a,
             const uint32_t *MPG_RESTRICT b, const uint32_t *MPG_RESTRICT c, uint32_t *MPG_RESTRICT out,
             const mpg_tables *tables, mpg_reduced *reduced)

/* ---- arrays --------------------------------------------------------------------------------------------------------- */
static void mpg_sequence_start(const mpg_sequence *s, mpg_registers *r)
{
    memset(r->words, 0, sizeof(uint32_t) * MPG_BLOCK * (size_t)s->operands);
    for (int j = 0; j < s->constants; j++)
        for (int i = 0; i < MPG_BLOCK; i++)
            r->words[s->operands + j][i] = s->values[j];
}

/* Elements [begin, end), in registers that were started. */
static void mpg_sequence_range(const mpg_sequence *s, mpg_registers *r, const uint32_t *const *in, uint32_t *out, int64_t begin,
                               int64_t end, int level)
{
    for (int64_t first = begin; first < end; first += MPG_BLOCK) {
        const size_t count = (size_t)(end - first < MPG_BLOCK ? end - first : MPG_BLOCK);
        for (int j = 0; j < s->operands; j++)
            memcpy(r->words[j], in[j] + first, count * sizeof(uint32_t));
        for (int j = 0; j < s->count; j++) {
            const mpg_step *t = &s->steps[j];
            mpg_step_block(t->operation, r->words[t->a], r->words[t->b], r->words[t->c], r->words[t->target], &s->tables,
                           &r->reduced, level);
        }
        memcpy(out + first, r->words[s->result], count * sizeof(uint32_t));
    }
}

#endif
