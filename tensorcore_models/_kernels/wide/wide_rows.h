/* The algorithms of wide.h in plain C, rows of A against 32 columns at a time; compilers vectorise the loops over lanes.
 *
 * They run with rounding toward zero (mpg_round_toward_zero of lanes.h, set by the caller): sums near 1.5 * 2^52 units are
 * positive, so that each addition rounds down. Products and all else are exact. No function here is inlined where the
 * rounding changes, and no result depends on whether a product and a sum are fused.
 */
#ifndef MPG_WIDE_ROWS_H
#define MPG_WIDE_ROWS_H

#include <math.h>

#include "wide.h"

#define MPG_MAGIC 0x1.8p52

MPG_INLINE double mpg_magnitude(double x) { return mpg_as_double(mpg_as_bits64(x) & ~(UINT64_C(1) << 63)); }
MPG_INLINE double mpg_with_sign(double magnitude, double x)
{
    return mpg_as_double(mpg_as_bits64(magnitude) | (mpg_as_bits64(x) & UINT64_C(1) << 63));
}
/* All ones where 0 <= x < y, else 0. Without comparisons, as compilers make jumps of some. */
MPG_INLINE uint64_t mpg_if_below(double x, double y) { return 0 - ((mpg_as_bits64(x) - mpg_as_bits64(y)) >> 63); }
MPG_INLINE double mpg_select(uint64_t mask, double x, double y)
{
    return mpg_as_double((mpg_as_bits64(x) & mask) | (mpg_as_bits64(y) & ~mask));
}
/* The smallest normal result, not as a constant: compilers turn the choice between a number and a constant into jumps. */
MPG_INLINE double mpg_least_normal(const mpg_wide_task *t)
{
    const volatile double least = mpg_power(t->output == MPG_OUT_FP16 ? -14 : -126);
    return least;
}
MPG_INLINE double mpg_larger(double x, double y) { return x > y ? x : y; }
MPG_INLINE double mpg_exponent_of(double x) { return mpg_as_double(mpg_as_bits64(x) & UINT64_C(0x7FF0000000000000)); }

/* Largest multiple of a unit not above x, |x| below 2^51 units; `magic`: 1.5 * 2^52 units. */
MPG_INLINE double mpg_floored(double x, double magic) { return (x + magic) - magic; }

/* x to the nearest number of a format whose last place is 2^-fraction_bits of the leading power of two, not below `least`;
 * ties to even. The parity is the last bit of the sum, and what was cut off is exact. */
MPG_INLINE double mpg_nearest(double x, int fraction_bits, double least)
{
    const double magnitude = mpg_magnitude(x), power = mpg_exponent_of(x);
    const double last = mpg_larger(power, least) * mpg_power(-fraction_bits);
    const double magic = last * MPG_MAGIC, sum = magnitude + magic;
    const double rest = magnitude - (sum - magic), half = last * 0.5;
    const uint64_t bits = mpg_as_bits64(sum), odd = bits & 1;
    const uint64_t up = (mpg_as_bits64(half) - mpg_as_bits64(rest) - odd) >> 63;
    return mpg_with_sign(mpg_as_double(bits + up) - magic, x);
}

/* x toward zero to float32 (infinity left to the caller). */
MPG_INLINE double mpg_truncated_fp32(double x)
{
    const uint64_t subnormal = mpg_if_below(mpg_magnitude(x), 0x1p-126);
    const double last =
        mpg_with_sign(mpg_floored(mpg_as_double(mpg_as_bits64(mpg_magnitude(x)) & subnormal), 0x1p-149 * MPG_MAGIC), x);
    return mpg_select(subnormal, last, mpg_as_double(mpg_as_bits64(x) & ~UINT64_C(0x1FFFFFFF)));
}

/* Words of the largest alignment exponent of `terms` products, at least the word `lowest`. */
MPG_INLINE void mpg_wide_tops(int terms, int32_t lowest, const mpg_wide_operands *p, int16_t *MPG_RESTRICT words)
{
    const int16_t *MPG_RESTRICT eb = p->eb;
    int16_t a[32];
    for (int q = 0; q < terms; q++)
        a[q] = (int16_t)(uint16_t)p->ea[q];
    for (int j = 0; j < MPG_WIDE; j++) {
        int16_t largest = (int16_t)lowest;
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++) {
            const int16_t e = (int16_t)(a[q] + eb[q * MPG_WIDE + j]);
            largest = largest > e ? largest : e;
        }
        words[j] = largest;
    }
}

/* Products that are no multiples of their lane's unit 2^(top - F): the negative ones where words have `signs`, else all. */
MPG_INLINE void mpg_wide_counts(int terms, int fraction_bits, int signs, const mpg_wide_operands *p,
                                const int16_t *MPG_RESTRICT tops, int16_t *MPG_RESTRICT counts)
{
    const int16_t to_limit = (int16_t)(2 * MPG_LOWEST_BIAS - MPG_WORD_BIAS - fraction_bits - (signs << 15));
    const int16_t *MPG_RESTRICT lb = p->lb;
    int16_t a[32];
    for (int q = 0; q < terms; q++)
        a[q] = (int16_t)(uint16_t)p->la[q];
    for (int j = 0; j < MPG_WIDE; j++) {
        const int16_t limit = (int16_t)((tops[j] >> 4) + to_limit);
        int16_t count = 0;
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++) {
            const int16_t x = (int16_t)(a[q] + lb[q * MPG_WIDE + j]);
            count = (int16_t)(count + (x < limit));
        }
        counts[j] = count;
    }
}

/* The doubles that have the 32 lanes' words, plus `more`, as their highest words (wide.h has their order). */
MPG_INLINE void mpg_wide_powers(const int16_t *MPG_RESTRICT words, int32_t more, double *MPG_RESTRICT powers)
{
    int16_t sums[MPG_WIDE];
    uint64_t quads[MPG_WIDE / 4];
    for (int j = 0; j < MPG_WIDE; j++)
        sums[j] = (int16_t)(words[j] + more);
    memcpy(quads, sums, sizeof(quads));
    for (int g = 0; g < 4; g++)
#pragma GCC unroll 1
        for (int i = 0; i < MPG_WIDE / 4; i++)
            powers[8 * g + i] = mpg_as_double((quads[i] << (48 - 16 * g)) & UINT64_C(0xFFFF000000000000));
}

/* Adds `terms` products to `sum`, near 1.5 * 2^52 units, each truncated to its unit. */
MPG_INLINE void mpg_wide_sums(int terms, int fused, int fraction_bits, const mpg_wide_operands *p,
                              const int16_t *MPG_RESTRICT tops, double *MPG_RESTRICT sum)
{
    const double *MPG_RESTRICT a = p->a, *MPG_RESTRICT b = p->b;
    int16_t counts[MPG_WIDE];
    uint64_t quads[MPG_WIDE / 4];
    mpg_wide_counts(terms, fraction_bits, 1, p, tops, counts);
    memcpy(quads, counts, sizeof(quads));
    for (int j = 0; j < MPG_WIDE; j++) {
        double total = sum[j];
#pragma GCC unroll 32
        for (int q = 0; q < terms; q++)
            total = fused ? fma(a[q], b[q * MPG_WIDE + j], total) : total + a[q] * b[q * MPG_WIDE + j];
        sum[j] = total;
    }
    for (int g = 0; g < 4; g++)
#pragma GCC unroll 1
        for (int i = 0; i < MPG_WIDE / 4; i++) /* one more in the last place is one unit */
            sum[8 * g + i] = mpg_as_double(mpg_as_bits64(sum[8 * g + i]) + (quads[i] >> 16 * g & 0xFFFF));
}

/* Words of c's exponents; addends other than 0 have at least the word `least`. */
MPG_INLINE void mpg_exponent_words(const double *c, int16_t least, int16_t *words)
{
    uint64_t quads[MPG_WIDE / 4] = {0};
    for (int g = 0; g < 4; g++)
#pragma GCC unroll 1
        for (int i = 0; i < MPG_WIDE / 4; i++)
            quads[i] |= (mpg_as_bits64(c[8 * g + i]) >> 48 & 0x7FF0) << 16 * g;
    memcpy(words, quads, sizeof(quads));
    for (int j = 0; j < MPG_WIDE; j++)
        words[j] = words[j] != 0 && words[j] < least ? least : words[j];
}

/* One fused dot-add; c are float32 or fp16 values. Returns whether there may be infinite results: 2 to the power of the format's
 * bound or more. */
MPG_INLINE int mpg_wide_fda(int terms, int fused, int output, const mpg_wide_task *t, const mpg_wide_operands *p,
                            double *MPG_RESTRICT c)
{
    int16_t tops[MPG_WIDE], own[MPG_WIDE];
    double magic[MPG_WIDE], sum[MPG_WIDE];
    /* A sum is a multiple of 2^-149, and below 2^128, for exponents from F - 149 to 120. */
    const int16_t least = (int16_t)((t->fraction_bits - 149 + MPG_WORD_BIAS) << 4);
    const int16_t most = (int16_t)((120 + MPG_WORD_BIAS) << 4);
    const double zero = t->positive_zero ? 0.0 : -0.0, least_normal = mpg_least_normal(t);
    int16_t odd = 0;

    mpg_wide_tops(terms, (t->floor + MPG_WORD_BIAS) << 4, p, tops);
    mpg_exponent_words(c, (int16_t)((t->raw_exponent + MPG_WORD_BIAS) << 4), own);
    for (int j = 0; j < MPG_WIDE; j++) {
        tops[j] = tops[j] > own[j] ? tops[j] : own[j];
        odd |= (int16_t)((tops[j] - least) | (most - tops[j])); /* negative beyond them */
    }
    mpg_wide_powers(tops, mpg_word_to_magic(t->fraction_bits), magic);
    for (int j = 0; j < MPG_WIDE; j++)
        sum[j] = mpg_with_sign((mpg_magnitude(c[j]) + magic[j]) - magic[j], c[j]) + magic[j];
    mpg_wide_sums(terms, fused, t->fraction_bits, p, tops, sum);
    if (output == MPG_OUT_FP16)
        for (int j = 0; j < MPG_WIDE; j++)
            c[j] = mpg_nearest(sum[j] - magic[j], 10, least_normal) + 0.0;
    else if (odd < 0)
        for (int j = 0; j < MPG_WIDE; j++)
            c[j] = mpg_truncated_fp32(sum[j] - magic[j]) + zero;
    else
        for (int j = 0; j < MPG_WIDE; j++)
            c[j] = mpg_as_double(mpg_as_bits64(sum[j] - magic[j]) & ~UINT64_C(0x1FFFFFFF));
    return output == MPG_OUT_FP16 || odd < 0;
}

/* x rounded down to what is left of its significand without the bits of `cut`. */
MPG_INLINE double mpg_cut_down(double x, uint64_t cut)
{
    const uint64_t bits = mpg_as_bits64(x);
    return mpg_as_double((bits + (cut & (0 - (bits >> 63)))) & ~cut);
}

/* x to float32, nearest even, where it is a normal number. */
MPG_INLINE double mpg_nearest_normal_fp32(double x)
{
    const uint64_t bits = mpg_as_bits64(x);
    return mpg_as_double((bits + 0x0FFFFFFF + (bits >> 29 & 1)) & ~UINT64_C(0x1FFFFFFF));
}

/* The rest of a dot-round-down-add, from the largest exponents `top` (as powers of two) and the sums `dot` of its groups. Returns
 * whether there may be infinite results; lanes whose products overflow get one. */
MPG_INLINE int mpg_wide_down_end(int groups, const mpg_wide_task *t, double (*MPG_RESTRICT top)[MPG_WIDE],
                                 double (*MPG_RESTRICT dot)[MPG_WIDE], double *MPG_RESTRICT c)
{
    const double to_magic = mpg_power(-t->fraction_bits) * MPG_MAGIC;
    const double limit = mpg_power(t->overflow < 1000 ? t->overflow - 1 : 1023);
    const double dot_magic = mpg_power(-t->dot_bits) * MPG_MAGIC, c_magic = mpg_power(-t->c_bits) * MPG_MAGIC;
    const double cutoff = mpg_power(-t->c_cutoff), least_normal = mpg_least_normal(t);
    const uint64_t cut = (UINT64_C(1) << (52 - t->sum_bits)) - 1;
    const double zero = t->positive_zero ? 0.0 : -0.0;
    /* A sum is a multiple of 2^-149 where the largest exponent is at least this; up to 2^98 nothing overflows. */
    const double least = mpg_power((t->dot_bits > t->c_bits ? t->dot_bits : t->c_bits) - 149);
    uint64_t odd = 0;
    for (int j = 0; j < MPG_WIDE; j++) {
        if (groups == 2) {
            const double largest = mpg_larger(top[0][j], top[1][j]);
            dot[0][j] = mpg_floored(dot[0][j], largest * to_magic) + mpg_floored(dot[1][j], largest * to_magic);
            top[0][j] = largest;
        }
        const double raw = mpg_larger(mpg_exponent_of(c[j]), least_normal), all = mpg_larger(top[0][j], raw);
        double addend = mpg_floored(c[j], all * c_magic);
        if (groups == 2)
            addend = mpg_select(mpg_if_below(raw, all * cutoff), 0.0, addend);
        dot[0][j] = mpg_cut_down(mpg_floored(dot[0][j], all * dot_magic) + addend, cut);
        c[j] = mpg_nearest_normal_fp32(dot[0][j]);
        odd |= (mpg_as_bits64(all) - mpg_as_bits64(least)) | (mpg_as_bits64(0x1p98) - mpg_as_bits64(all));
    }
    if (odd >> 63)
        for (int j = 0; j < MPG_WIDE; j++)
            c[j] = mpg_select(mpg_if_below(top[0][j], limit), mpg_nearest(dot[0][j], 23, least_normal) + zero, 0x1p1000);
    return (int)(odd >> 63);
}

/* One fused dot-round-down-add over 1 or 2 groups of `terms` products. Returns what mpg_wide_down_end does. */
MPG_INLINE int mpg_wide_round_down(int terms, int fused, int groups, const mpg_wide_task *t, const mpg_wide_operands *p,
                                   double *MPG_RESTRICT c)
{
    double top[2][MPG_WIDE], dot[2][MPG_WIDE];
    const double to_magic = mpg_power(-t->fraction_bits) * MPG_MAGIC;
    for (int n = 0; n < groups; n++) {
        const mpg_wide_operands part = mpg_wide_from(p, 0, n * terms);
        int16_t words[MPG_WIDE];
        mpg_wide_tops(terms, (MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4, &part, words);
        mpg_wide_powers(words, 0, top[n]);
        mpg_wide_powers(words, mpg_word_to_magic(t->fraction_bits), dot[n]);
        mpg_wide_sums(terms, fused, t->fraction_bits, &part, words, dot[n]);
        for (int j = 0; j < MPG_WIDE; j++)
            dot[n][j] -= top[n][j] * to_magic;
    }
    return mpg_wide_down_end(groups, t, top, dot, c);
}
/* Place of a lane among the words (wide.h has their order). */
MPG_INLINE int mpg_word_of_lane(int lane) { return 4 * (lane % 8) + lane / 8; }

/* x + y in double, rounded to odd; by rounding toward zero, and a last bit where the larger of them does not give the other back. */
MPG_INLINE double mpg_odd_sum(double x, double y)
{
    const double sum = x + y, less_x = sum - x, less_y = sum - y;
    return mpg_as_double(mpg_as_bits64(sum) | (uint64_t)((less_x != y) | (less_y != x)));
}

/* x to float32, rounded to odd, where that is a normal number or x is a multiple of 2^-149. */
MPG_INLINE double mpg_odd_fp32(double x)
{
    const uint64_t bits = mpg_as_bits64(x), rest = UINT64_C(0x1FFFFFFF);
    return mpg_as_double((bits & ~rest) | (((bits & rest) + rest) & (rest + 1)));
}

/* The sum of the products of one lane, each rounded to odd at 2^52 / 1.5 of `magic`. */
MPG_INLINE double mpg_wide_odd_dot(int terms, const double *a, const double *b, double magic)
{
    double total = 0;
    for (int q = 0; q < terms; q++) {
        const double product = a[q] * b[q * MPG_WIDE], moved = product + magic;
        const uint64_t cut = (moved - magic) != product;
        total += mpg_as_double(mpg_as_bits64(moved) | cut) - magic;
    }
    return total;
}

/* One operation with a late c. Returns whether there may be infinite results; lanes for the generic kernel get one. */
MPG_INLINE int mpg_wide_late(int terms, int fused, int late, const mpg_wide_task *t, const mpg_wide_operands *p,
                             double *MPG_RESTRICT c)
{
    int16_t tops[MPG_WIDE], counts[MPG_WIDE];
    double magic[MPG_WIDE], sum[MPG_WIDE];
    const double least = mpg_least_normal(t), nearly = least - 0x1p-150, infinite = 0x1p1000;
    uint64_t odd = 0;
    mpg_wide_tops(terms, (MPG_WIDE_LOWEST + MPG_WORD_BIAS) << 4, p, tops);
    mpg_wide_powers(tops, mpg_word_to_magic(t->fraction_bits), magic);
    if (!MPG_WIDE_TRUNCATES(t))
        mpg_wide_counts(terms, t->fraction_bits - t->mark_cut, 0, p, tops, counts);
    memcpy(sum, magic, sizeof(sum));
    mpg_wide_sums(terms, fused, t->fraction_bits, p, tops, sum);
    for (int j = 0; j < MPG_WIDE; j++)
        sum[j] -= magic[j];
    if (late == MPG_LATE_ODD) {
        for (int j = 0; j < MPG_WIDE; j++)
            if (counts[mpg_word_of_lane(j)])
                sum[j] = mpg_wide_odd_dot(terms, p->a, p->b + j, magic[j]);
        for (int j = 0; j < MPG_WIDE; j++) {
            const double magnitude = mpg_magnitude(sum[j]);
            const uint64_t bad = mpg_if_below(magnitude, least) & mpg_if_below(0.0, magnitude);
            const double total = mpg_odd_sum(mpg_odd_fp32(sum[j]), c[j]);
            const double beyond = mpg_select(mpg_if_below(magnitude, 0x1p128), 0.0, infinite);
            c[j] = mpg_select(bad, infinite, mpg_odd_fp32(total)) + beyond;
        }
        odd = 1;
    } else {
        for (int j = 0; j < MPG_WIDE; j++) {
            const double total = mpg_odd_sum(sum[j], c[j]), magnitude = mpg_magnitude(total);
            const uint64_t below = mpg_if_below(magnitude, least), none = mpg_if_below(magnitude, nearly);
            const double small = mpg_with_sign(mpg_select(none, 0.0, least), total);
            c[j] = mpg_select(below, small, mpg_nearest_normal_fp32(total));
            odd |= mpg_as_bits64(0x1p127) - mpg_as_bits64(magnitude);
        }
        if (t->mark_cut)
            for (int j = 0; j < MPG_WIDE; j++) {
                const uint64_t cut = 0 - (uint64_t)(counts[mpg_word_of_lane(j)] != 0);
                c[j] = mpg_select(cut, infinite, c[j]);
                odd |= cut;
            }
        odd >>= 63;
    }
    return (int)odd;
}

/* Rows over several operations, turn by turn: an operation waits for the one before it in its row. `terms`, of one group, and
 * `fused` are constants. */
MPG_INLINE void mpg_wide_rows_of(int terms, int fused, const mpg_wide_task *task, const mpg_wide_operands *p, int rows,
                                 double (*c)[MPG_WIDE], int64_t steps, uint8_t (*overflow)[MPG_WIDE])
{
    const mpg_wide_task copy = *task, *t = &copy; /* nothing that is stored here can change it */
    const double limit = t->output == MPG_OUT_FP16 ? 0x1p16 : 0x1p128;
    const int taken = t->round_down == 2 ? 2 * terms : terms;
    for (int64_t s = 0; s < steps; s++)
        for (int r = 0; r < rows; r++) {
            const mpg_wide_operands q = mpg_wide_from(p, r, s * taken);
            int infinite;
            if (t->late == MPG_LATE_EXACT)
                infinite = mpg_wide_late(terms, fused, MPG_LATE_EXACT, t, &q, c[r]);
            else if (t->late)
                infinite = mpg_wide_late(terms, fused, MPG_LATE_ODD, t, &q, c[r]);
            else if (t->round_down == 2)
                infinite = mpg_wide_round_down(terms, fused, 2, t, &q, c[r]);
            else if (t->round_down == 1)
                infinite = mpg_wide_round_down(terms, fused, 1, t, &q, c[r]);
            else if (t->output == MPG_OUT_FP16)
                infinite = mpg_wide_fda(terms, fused, MPG_OUT_FP16, t, &q, c[r]);
            else
                infinite = mpg_wide_fda(terms, fused, MPG_OUT_FP32, t, &q, c[r]);
            if (infinite)
                mpg_mark_beyond(c[r], MPG_WIDE, limit, overflow[r]);
        }
}

#if defined(__aarch64__) || defined(_M_ARM64)
#define MPG_BASELINE_FUSED 1
#else
#define MPG_BASELINE_FUSED 0
#endif

MPG_INLINE void mpg_wide_rows_body(int level, int terms, const mpg_wide_task *t, const mpg_wide_operands *p, int rows,
                                   double (*c)[MPG_WIDE], int64_t steps, uint8_t (*overflow)[MPG_WIDE])
{
    const int fused = MPG_BASELINE_FUSED || (MPG_X86_VARIANTS && level != MPG_ISA_BASELINE);
    if (terms == 4)
        mpg_wide_rows_of(4, fused, t, p, rows, c, steps, overflow);
    else if (terms == 8)
        mpg_wide_rows_of(8, fused, t, p, rows, c, steps, overflow);
    else if (terms == 16)
        mpg_wide_rows_of(16, fused, t, p, rows, c, steps, overflow);
    else
        mpg_wide_rows_of(32, fused, t, p, rows, c, steps, overflow);
}

MPG_PLAIN_VARIANTS(mpg_wide_rows, (terms, t, p, rows, c, steps, overflow), int terms, const mpg_wide_task *t,
                   const mpg_wide_operands *p, int rows, double (*c)[MPG_WIDE], int64_t steps, uint8_t (*overflow)[MPG_WIDE])

#endif
