/* Operands of the fast kernels: encodings are decoded and laid out for vector lanes.
 *
 * Every kernel computes d = c + a b for one row of A against a panel of `width` columns of B, lanes running over the
 * columns. Operands are decoded once: B into panels [panel][k][lane], A into rows [row][k], over a slice of k that is
 * padded to whole fused operations. docs/kernels.md states the contract.
 */
#ifndef MPG_LANES_H
#define MPG_LANES_H

#include <stdint.h>
#include <string.h>

#include "bits.h"

typedef struct {
    int size;          /* bytes of one encoding: 1, 2, 4 or 8 */
    int fraction_bits; /* stored fraction */
    int padding_bits;  /* ignored bits below it (tf32) */
    int bias;
    int sign_shift; /* position of the sign bit above the padding */
    int sign_mask;  /* 1, 0 without a sign */
    int fnuz;       /* -1 where the encoding of -0 is NaN, else 0 */
    int emin;       /* raw exponent of subnormal operands; not the format's own where it is converted to another first */
    uint32_t magnitude_mask;
    uint32_t max_magnitude; /* larger magnitudes are infinity or NaN */
} mpg_operand;

enum { MPG_OUT_FP32, MPG_OUT_FP16 }; /* results of a task */

/* Place of the encodings of one operand, with element strides along its lanes or rows (`outer`) and along k. */
typedef struct {
    const void *data;
    int64_t outer, inner;
    const int32_t *order;  /* position in k of each padded position, -1 where it is padding */
    const uint8_t *scales; /* exponents of block scales as bytes with bias 127 (ue8m0), NULL for none */
    int64_t scale_outer, scale_inner;
    int block_size;
    int64_t each, scales_each; /* bytes of one product's encodings and scales where many small ones follow each other */
} mpg_source;

/* The operand of product `item`. */
static mpg_source mpg_source_item(const mpg_source *first, int64_t item)
{
    mpg_source s = *first;
    s.data = (const char *)s.data + item * s.each;
    s.scales = s.scales ? s.scales + item * s.scales_each : NULL;
    return s;
}

/* A part of the running result, rows `ld` apart, and 1 for each element that the generic kernel must compute again. */
typedef struct {
    float *d;
    uint8_t *redo;
    int64_t ld, rows;
    int columns;
} mpg_result_tile;

/* Operations are packed to 4, 8, 16 or 32 products: which of them, for tables of kernels. */
static int mpg_terms_index(int terms) { return terms <= 4 ? 0 : terms <= 8 ? 1 : terms <= 16 ? 2 : 3; }

MPG_INLINE uint32_t mpg_code(const void *data, int size, int64_t index)
{
    if (size == 1)
        return ((const uint8_t *)data)[index];
    if (size == 2)
        return ((const uint16_t *)data)[index];
    return ((const uint32_t *)data)[index];
}

/* `count` encodings from index `base`, `step` apart; sizes and steps that are constants make loops that compilers vectorise. */
MPG_INLINE void mpg_gather_of(const void *data, int size, int64_t base, int64_t step, int count, uint32_t *MPG_RESTRICT codes)
{
    for (int j = 0; j < count; j++)
        codes[j] = mpg_code(data, size, base + j * step);
}

MPG_INLINE void mpg_gather(const void *data, int size, int64_t base, int64_t step, int count, uint32_t *MPG_RESTRICT codes)
{
    if (size == 1 && step == 1)
        mpg_gather_of(data, 1, base, 1, count, codes);
    else if (size == 2 && step == 1)
        mpg_gather_of(data, 2, base, 1, count, codes);
    else if (size == 1)
        mpg_gather_of(data, 1, base, step, count, codes);
    else if (size == 2)
        mpg_gather_of(data, 2, base, step, count, codes);
    else
        mpg_gather_of(data, 4, base, step, count, codes);
}

#if defined(__GNUC__) || defined(__clang__)
#define MPG_PREFETCH(address, cache)                                                                                           \
    ((cache) == 1 ? __builtin_prefetch((const void *)(address), 0, 3) : __builtin_prefetch((const void *)(address), 0, 2))
#else
#define MPG_PREFETCH(address, cache) (void)(address)
#endif
#define MPG_FETCHED_POSITIONS 16 /* between the one that is packed and the one that is fetched */
#define MPG_FETCHING_ROWS 16     /* tiles of fewer rows leave it to the CPU: what follows is too much for them to ask for */

/* Asks for the cache lines of `bytes` bytes from `base` + `offset` on, into the first- or second-level cache. Nothing happens
 * where there is no such address. */
MPG_INLINE void mpg_fetch(const void *base, int64_t offset, int64_t bytes, const int cache)
{
    const uintptr_t start = (uintptr_t)base + (uintptr_t)offset, end = start + (uintptr_t)bytes;
    for (uintptr_t x = start; x < end; x += 64)
        MPG_PREFETCH(x, cache);
}

/* Asks for `count` encodings of a position of k that is packed soon after `k`: rows of B are too far apart for the CPU to guess. */
MPG_INLINE void mpg_fetch_position(const mpg_source *s, int size, int64_t first, int count, int64_t k, int64_t end)
{
    const int64_t position = k + MPG_FETCHED_POSITIONS < end ? s->order[k + MPG_FETCHED_POSITIONS] : -1;
    if (position >= 0 && s->outer == 1)
        mpg_fetch(s->data, (first + position * s->inner) * size, (int64_t)count * size, 1);
}

/* Mark and zero lanes at or beyond `limit`. */
MPG_INLINE void mpg_mark_beyond(double *MPG_RESTRICT c, int lanes, double limit, uint8_t *MPG_RESTRICT overflow)
{
    const uint64_t magnitude = UINT64_C(0x7FFFFFFFFFFFFFFF), most = mpg_as_bits64(limit);
    uint64_t any = 0; /* the highest bit of a difference is set where it is negative */
    for (int j = 0; j < lanes; j++)
        any |= most - 1 - (mpg_as_bits64(c[j]) & magnitude);
    if (any >> 63)
        for (int j = 0; j < lanes; j++)
            if ((mpg_as_bits64(c[j]) & magnitude) >= most) {
                overflow[j] = 1;
                c[j] = 0;
            }
}

/* Rounding toward zero, subnormal numbers kept, until mpg_restore_rounding. What depends on it is in functions that are
 * marked MPG_NOINLINE and called in between: compilers move arithmetic past changes of the rounding. */
#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
typedef unsigned mpg_rounding;
static mpg_rounding mpg_round_toward_zero(void)
{
    const unsigned mode = _mm_getcsr();
    _mm_setcsr((mode & ~0x8040u) | 0x6000u);
    return mode;
}
static void mpg_restore_rounding(mpg_rounding mode) { _mm_setcsr(mode); }

/* Subnormal results become zeros if `wanted`, until the state before it is restored. */
static mpg_rounding mpg_flush_to_zero(int wanted)
{
    const unsigned mode = _mm_getcsr();
    if (wanted)
        _mm_setcsr(mode | 0x8000u);
    return mode;
}
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
typedef uint64_t mpg_rounding;
static void mpg_restore_rounding(mpg_rounding mode) { __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory"); }
static mpg_rounding mpg_round_toward_zero(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode) : : "memory");
    mpg_restore_rounding((mode & ~(UINT64_C(1) << 24)) | UINT64_C(3) << 22);
    return mode;
}
#else
#include <fenv.h>
typedef int mpg_rounding;
static mpg_rounding mpg_round_toward_zero(void)
{
    const int mode = fegetround();
    fesetround(FE_TOWARDZERO);
    return mode;
}
static void mpg_restore_rounding(mpg_rounding mode) { fesetround(mode); }
#endif

/* One encoding: its magnitude, 0 or 1 for its sign, and a mask of ones where it is infinity or NaN, else 0. Truth values are masks made by
 * arithmetic right shifts: compilers do not vectorise mixtures of comparisons. */
typedef struct {
    int32_t magnitude, negative, special;
} mpg_signed_magnitude;

/* One operand: magnitude as significand * 2^exponent. */
typedef struct {
    int32_t significand, exponent, negative, special;
} mpg_parts;

MPG_INLINE int32_t mpg_if_negative(int32_t x) { return x >> 31; }

MPG_INLINE mpg_signed_magnitude mpg_sign_and_magnitude(uint32_t code, const mpg_operand *f)
{
    mpg_signed_magnitude x;
    code >>= f->padding_bits;
    x.magnitude = (int32_t)(code & f->magnitude_mask);
    x.negative = (int32_t)(code >> f->sign_shift) & f->sign_mask;
    x.special =
        mpg_if_negative((int32_t)f->max_magnitude - x.magnitude) | (mpg_if_negative(x.magnitude - 1) & f->fnuz & -x.negative);
    return x;
}

MPG_INLINE mpg_parts mpg_take_apart(uint32_t code, const mpg_operand *f)
{
    const mpg_signed_magnitude e = mpg_sign_and_magnitude(code, f);
    const int32_t field = e.magnitude >> f->fraction_bits, fraction = e.magnitude & ((1 << f->fraction_bits) - 1);
    const int32_t subnormal = mpg_if_negative(field - 1);
    mpg_parts x = {fraction | ((1 + subnormal) << f->fraction_bits), field - subnormal - f->bias - f->fraction_bits, e.negative,
                   e.special};
    x.significand &= ~x.special; /* no conversion ever sees an infinity or a NaN */
    return x;
}

#endif
