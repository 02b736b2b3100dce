/* The vectors of one element type and one instruction set, under names that a loop can use for all of them. A header includes this one
 * before each inclusion of its own loops, with
 *   VECTOR_LEVEL   an instruction set of cpu.h,   VECTOR_SIZE   bytes of an element: 4 (float) or 8 (double).
 * It defines VECTOR_NAME(x), the name of x's variant (MPG_OF_LEVEL picks one), VECTOR, VECTOR_ELEMENT, VECTOR_LANES, VECTOR_TARGET (the attribute of functions that use them), VECTOR_LOAD, VECTOR_STORE,
 * VECTOR_SET, VECTOR_ADD, VECTOR_MUL, VECTOR_PREFETCH and VECTOR_MADD(a, b, c) = a b + c, which rounds once where VECTOR_FUSED is 1 and
 * twice where it is 0. The baseline is plain C: GNU vectors of 16 bytes, one element where the compiler lacks them.
 */
#undef VECTOR_NAME
#undef VECTOR
#undef VECTOR_ELEMENT
#undef VECTOR_LANES
#undef VECTOR_TARGET
#undef VECTOR_LOAD
#undef VECTOR_STORE
#undef VECTOR_SET
#undef VECTOR_ADD
#undef VECTOR_MUL
#undef VECTOR_MADD
#undef VECTOR_FUSED
#undef VECTOR_PREFETCH

#if VECTOR_SIZE == 4
#define VECTOR_ELEMENT float
#else
#define VECTOR_ELEMENT double
#endif

#if MPG_X86_VARIANTS && VECTOR_LEVEL == MPG_ISA_AVX512 && VECTOR_SIZE == 4
#define VECTOR __m512
#define VECTOR_LOAD(p) _mm512_loadu_ps(p)
#define VECTOR_STORE(p, v) _mm512_storeu_ps(p, v)
#define VECTOR_SET(x) _mm512_set1_ps(x)
#define VECTOR_ADD(a, b) _mm512_add_ps(a, b)
#define VECTOR_MUL(a, b) _mm512_mul_ps(a, b)
#define VECTOR_MADD(a, b, c) _mm512_fmadd_ps(a, b, c)
#elif MPG_X86_VARIANTS && VECTOR_LEVEL == MPG_ISA_AVX512
#define VECTOR __m512d
#define VECTOR_LOAD(p) _mm512_loadu_pd(p)
#define VECTOR_STORE(p, v) _mm512_storeu_pd(p, v)
#define VECTOR_SET(x) _mm512_set1_pd(x)
#define VECTOR_ADD(a, b) _mm512_add_pd(a, b)
#define VECTOR_MUL(a, b) _mm512_mul_pd(a, b)
#define VECTOR_MADD(a, b, c) _mm512_fmadd_pd(a, b, c)
#elif MPG_X86_VARIANTS && VECTOR_LEVEL == MPG_ISA_AVX2 && VECTOR_SIZE == 4
#define VECTOR __m256
#define VECTOR_LOAD(p) _mm256_loadu_ps(p)
#define VECTOR_STORE(p, v) _mm256_storeu_ps(p, v)
#define VECTOR_SET(x) _mm256_set1_ps(x)
#define VECTOR_ADD(a, b) _mm256_add_ps(a, b)
#define VECTOR_MUL(a, b) _mm256_mul_ps(a, b)
#define VECTOR_MADD(a, b, c) _mm256_fmadd_ps(a, b, c)
#elif MPG_X86_VARIANTS && VECTOR_LEVEL == MPG_ISA_AVX2
#define VECTOR __m256d
#define VECTOR_LOAD(p) _mm256_loadu_pd(p)
#define VECTOR_STORE(p, v) _mm256_storeu_pd(p, v)
#define VECTOR_SET(x) _mm256_set1_pd(x)
#define VECTOR_ADD(a, b) _mm256_add_pd(a, b)
#define VECTOR_MUL(a, b) _mm256_mul_pd(a, b)
#define VECTOR_MADD(a, b, c) _mm256_fmadd_pd(a, b, c)
#elif (defined(__GNUC__) || defined(__clang__)) && VECTOR_SIZE == 4
#define VECTOR mpg_float4
#define VECTOR_LOAD(p) mpg_load_float4(p)
#define VECTOR_STORE(p, v) mpg_store_float4(p, v)
#define VECTOR_SET(x) ((mpg_float4){(x), (x), (x), (x)})
#elif defined(__GNUC__) || defined(__clang__)
#define VECTOR mpg_double2
#define VECTOR_LOAD(p) mpg_load_double2(p)
#define VECTOR_STORE(p, v) mpg_store_double2(p, v)
#define VECTOR_SET(x) ((mpg_double2){(x), (x)})
#else
#define VECTOR VECTOR_ELEMENT
#define VECTOR_LOAD(p) (*(p))
#define VECTOR_STORE(p, v) (*(p) = (v))
#define VECTOR_SET(x) (x)
#endif

#if MPG_X86_VARIANTS && VECTOR_LEVEL != MPG_ISA_BASELINE
#define VECTOR_FUSED 1
#else
#define VECTOR_ADD(a, b) ((a) + (b))
#define VECTOR_MUL(a, b) ((a) * (b))
#if defined(__aarch64__) && defined(__ARM_NEON) && (defined(__GNUC__) || defined(__clang__))
#define VECTOR_FUSED 1
#if VECTOR_SIZE == 4
#define VECTOR_MADD(a, b, c) vfmaq_f32(c, a, b)
#else
#define VECTOR_MADD(a, b, c) vfmaq_f64(c, a, b)
#endif
#else
#define VECTOR_FUSED 0
#define VECTOR_MADD(a, b, c) ((c) + (a) * (b))
#endif
#endif

#if defined(__GNUC__) || defined(__clang__)
#define VECTOR_PREFETCH(p) __builtin_prefetch(p)
#else
#define VECTOR_PREFETCH(p) ((void)(p))
#endif

#if VECTOR_LEVEL == MPG_ISA_AVX512
#define VECTOR_NAME(name) MPG_JOIN(name, _avx512)
#define VECTOR_TARGET MPG_TARGET_AVX512
#elif VECTOR_LEVEL == MPG_ISA_AVX2
#define VECTOR_NAME(name) MPG_JOIN(name, _avx2)
#define VECTOR_TARGET MPG_TARGET_AVX2
#else
#define VECTOR_NAME(name) MPG_JOIN(name, _baseline)
#define VECTOR_TARGET
#endif

#define VECTOR_LANES ((int)(sizeof(VECTOR) / sizeof(VECTOR_ELEMENT)))

#ifndef MPG_VECTOR_SET_H
#define MPG_VECTOR_SET_H

#include <string.h>

#if MPG_X86_VARIANTS
#include <immintrin.h>
#endif
#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__GNUC__) || defined(__clang__)
typedef float mpg_float4 __attribute__((vector_size(16)));
typedef double mpg_double2 __attribute__((vector_size(16)));

MPG_INLINE mpg_float4 mpg_load_float4(const float *p)
{
    mpg_float4 v;
    memcpy(&v, p, sizeof v);
    return v;
}

MPG_INLINE void mpg_store_float4(float *p, mpg_float4 v) { memcpy(p, &v, sizeof v); }

MPG_INLINE mpg_double2 mpg_load_double2(const double *p)
{
    mpg_double2 v;
    memcpy(&v, p, sizeof v);
    return v;
}

MPG_INLINE void mpg_store_double2(double *p, mpg_double2 v) { memcpy(p, &v, sizeof v); }
#endif
#endif
