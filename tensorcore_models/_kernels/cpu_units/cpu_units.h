/* One matrix instruction of this CPU after another, on raw encodings: what tensorcore_models.hardware runs as an engine.
 *
 * A step is d = a b + d on the instruction's own shape: a (m, k), b (k, n), d (m, n), row-major and contiguous. Chains of steps, edges
 * and batches are the caller's loops (mpg_units_row). Made to be right, not fast: tiles go through memory at every step.
 */
#ifndef MPG_CPU_UNITS_H
#define MPG_CPU_UNITS_H

#include <stddef.h>

#include "amx.h"

enum { MPG_VDPBF16PS, MPG_TDPBF16PS, MPG_TDPFP16PS, MPG_TDPBSSD, MPG_TDPBSUD, MPG_TDPBUSD, MPG_TDPBUUD, MPG_BFMMLA, MPG_UNITS };

typedef struct {
    int m, n, k, size; /* size: bytes of an operand's element; d has 4 */
} mpg_unit_shape;

static const mpg_unit_shape mpg_unit_shapes[MPG_UNITS] = {
    {1, 16, 2, 2},   {16, 16, 32, 2}, {16, 16, 32, 2}, {16, 16, 64, 1},
    {16, 16, 64, 1}, {16, 16, 64, 1}, {16, 16, 64, 1}, {2, 2, 4, 2},
};
enum { MPG_UNIT_ELEMENTS = 16 * 64 }; /* the most that an operand has */

#if defined(__aarch64__) && defined(__linux__) && (defined(__clang__) || (defined(__GNUC__) && __GNUC__ >= 10))
#define MPG_HAS_BFMMLA 1
#include <arm_neon.h>
#include <sys/auxv.h>
#if defined(__clang__)
#define MPG_TARGET_BF16 __attribute__((target("bf16")))
#else
#define MPG_TARGET_BF16 __attribute__((target("arch=armv8.2-a+bf16")))
#endif
#define MPG_HWCAP2_BF16 (1ul << 14)

/* d (2, 2) += a (2, 4) b (4, 2) */
MPG_TARGET_BF16 static void mpg_unit_bfmmla(const uint16_t *a, const uint16_t *b, uint32_t *d)
{
    uint16_t columns[8]; /* the second operand holds rows of b transposed */
    for (int j = 0; j < 2; j++)
        for (int k = 0; k < 4; k++)
            columns[4 * j + k] = b[2 * k + j];
    const float32x4_t sum = vbfmmlaq_f32(vreinterpretq_f32_u32(vld1q_u32(d)), vreinterpretq_bf16_u16(vld1q_u16(a)),
                                         vreinterpretq_bf16_u16(vld1q_u16(columns)));
    vst1q_u32(d, vreinterpretq_u32_f32(sum));
}
#else
#define MPG_HAS_BFMMLA 0
#endif

#if MPG_HAS_AMX
#define MPG_HAS_VDPBF16PS 1
#define MPG_TARGET_AVX512_BF16 __attribute__((target("avx512bf16,avx512f,avx512bw,avx512dq,avx512vl")))

/* pairs: of b, (k, 2 k + 1) side by side for each column */
MPG_TARGET_AVX512_BF16 static void mpg_unit_vdpbf16ps(uint32_t a, const uint32_t *pairs, uint32_t *d)
{
    const __m512bh x = (__m512bh)_mm512_set1_epi32((int)a), y = (__m512bh)_mm512_loadu_si512(pairs);
    _mm512_storeu_ps((float *)d, _mm512_dpbf16_ps(_mm512_loadu_ps((const float *)d), x, y));
}
#else
#define MPG_HAS_VDPBF16PS 0
#endif

static int mpg_unit_state(int unit)
{
    switch (unit) {
    case MPG_BFMMLA:
#if MPG_HAS_BFMMLA
        return getauxval(AT_HWCAP2) & MPG_HWCAP2_BF16 ? MPG_UNIT_READY : MPG_UNIT_NO_CPU;
#else
        return MPG_UNIT_NOT_BUILT;
#endif
    case MPG_VDPBF16PS: {
#if MPG_HAS_VDPBF16PS
        unsigned edx0, eax1;
        mpg_leaf7(&edx0, &eax1);
        return eax1 & MPG_CPUID_AVX512_BF16 && mpg_cpu_level() == MPG_ISA_AVX512 ? MPG_UNIT_READY : MPG_UNIT_NO_CPU;
#else
        return MPG_UNIT_NOT_BUILT;
#endif
    }
    case MPG_TDPBF16PS:
        return mpg_amx_state(MPG_CPUID_AMX_BF16, 0);
    case MPG_TDPFP16PS:
        return mpg_amx_state(0, MPG_CPUID_AMX_FP16);
    default:
        return mpg_amx_state(MPG_CPUID_AMX_INT8, 0);
    }
}

/* Whether there is a plain-C unit that gives the same bits. */
static int mpg_unit_is_emulated(int unit) { return unit != MPG_TDPFP16PS && unit != MPG_BFMMLA; }

#if MPG_HAS_AMX
#define AMX_REAL 1
#include "cpu_units_steps.h"
#undef AMX_REAL
#endif
#define AMX_REAL 0
#include "cpu_units_steps.h"
#undef AMX_REAL

/* Rows [i, i + shape.m) of d (rows, columns), in place; a (rows, depth), b (depth, columns), contiguous. Zeros fill up what is
 * missing of a tile. */
static void mpg_units_row(int unit, int emulated, const char *a, const char *b, uint32_t *d, int64_t rows, int64_t columns,
                          int64_t depth, int64_t i)
{
    const mpg_unit_shape *s = &mpg_unit_shapes[unit];
    const int64_t high = rows - i < s->m ? rows - i : s->m, size = s->size;
    char x[MPG_UNIT_ELEMENTS] = {0}, y[MPG_UNIT_ELEMENTS] = {0};
    for (int64_t j = 0; j < columns; j += s->n) {
        const int64_t wide = columns - j < s->n ? columns - j : s->n;
        uint32_t sum[256] = {0};
        for (int64_t r = 0; r < high; r++)
            memcpy(sum + r * s->n, d + (i + r) * columns + j, (size_t)wide * 4);
        for (int64_t k = 0; k < depth; k += s->k) {
            const int64_t deep = depth - k < s->k ? depth - k : s->k;
            if (deep < s->k || wide < s->n || high < s->m) {
                memset(x, 0, sizeof x);
                memset(y, 0, sizeof y);
            }
            for (int64_t r = 0; r < high; r++)
                memcpy(x + r * s->k * size, a + ((i + r) * depth + k) * size, (size_t)(deep * size));
            for (int64_t r = 0; r < deep; r++)
                memcpy(y + r * s->n * size, b + ((k + r) * columns + j) * size, (size_t)(wide * size));
#if MPG_HAS_BFMMLA
            if (unit == MPG_BFMMLA)
                mpg_unit_bfmmla((const uint16_t *)(const void *)x, (const uint16_t *)(const void *)y, sum);
#endif
#if MPG_HAS_AMX
            if (!emulated && unit != MPG_BFMMLA)
                mpg_amx_unit_step(unit, x, y, sum);
#endif
            if (emulated)
                mpg_amx_emulated_step(unit, x, y, sum);
        }
        for (int64_t r = 0; r < high; r++)
            memcpy(d + (i + r) * columns + j, sum + r * s->n, (size_t)wide * 4);
    }
}

#endif
