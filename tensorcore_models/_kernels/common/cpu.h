/* Instruction-set levels of this machine's CPU, and attributes that compile one function for levels above the baseline.
 *
 * A kernel with variants writes its loop once, as a body marked MPG_INLINE; MPG_VARIANTS compiles that for every level and picks one by
 * the level that tensorcore_models.machine.instruction_sets chose.
 * Where the compiler or the architecture lacks the attributes they expand to nothing and every level is the baseline
 * (mpg_cpu_level() then says 0). Every level must give the same bits.
 */
#ifndef MPG_CPU_H
#define MPG_CPU_H

#include <stdint.h>

/* Levels as tensorcore_models.machine.instruction_sets numbers them. */
#define MPG_ISA_BASELINE 0
#define MPG_ISA_AVX2 1
#define MPG_ISA_AVX512 2

#if (defined(__GNUC__) || defined(__clang__)) && defined(__x86_64__)
#define MPG_X86_VARIANTS 1
#include <cpuid.h>
#define MPG_TARGET_AVX2 __attribute__((target("avx2,fma,f16c,bmi,bmi2")))
/* Without the preferred width GCC stays at 256 bits when it vectorises for these features; clang knows none here, and then leaves
 * the whole attribute out. */
#ifdef __clang__
#define MPG_WIDE_VECTORS ""
#else
#define MPG_WIDE_VECTORS ",prefer-vector-width=512"
#endif
#define MPG_TARGET_AVX512                                                                                                      \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx2,fma,f16c,bmi,bmi2" MPG_WIDE_VECTORS)))
#else
#define MPG_X86_VARIANTS 0
#define MPG_TARGET_AVX2
#define MPG_TARGET_AVX512
#endif

#if defined(__GNUC__) || defined(__clang__)
#define MPG_INLINE static inline __attribute__((always_inline))
#define MPG_NOINLINE __attribute__((noinline))
#elif defined(_MSC_VER)
#define MPG_INLINE static __forceinline
#define MPG_NOINLINE __declspec(noinline)
#else
#define MPG_INLINE static inline
#define MPG_NOINLINE
#endif

/* Types for vectors at any address. */
#if defined(__GNUC__) || defined(__clang__)
#define MPG_ALIGNED __attribute__((aligned(64)))
#else
#define MPG_ALIGNED
#endif

/* A condition that seldom holds. */
#if defined(__GNUC__) || defined(__clang__)
#define MPG_SELDOM(condition) __builtin_expect(!!(condition), 0)
#else
#define MPG_SELDOM(condition) (condition)
#endif

#if defined(_MSC_VER)
#define MPG_RESTRICT __restrict
#else
#define MPG_RESTRICT restrict
#endif

/* a if c (0 or 1), else b, on uint32_t: masks, because compilers turn ?: chains into jumps that they cannot vectorise. */
#define MPG_SELECT(c, a, b) ((b) ^ (((a) ^ (b)) & (0u - (uint32_t)(c))))

#define MPG_LIST(...) __VA_ARGS__
#define MPG_JOIN(left, right) MPG_JOINED_AS_GIVEN(left, right)
#define MPG_JOINED_AS_GIVEN(left, right) left##right

/* The variant of a function for a level. */
#define MPG_OF_LEVEL(NAME, level)                                                                                              \
    ((level) >= MPG_ISA_AVX512 ? NAME##_avx512 : (level) >= MPG_ISA_AVX2 ? NAME##_avx2 : NAME##_baseline)

/* NAME_body, which has its level as a first and constant argument, compiled for the plain levels: functions NAME_baseline and
 * NAME_avx2 of the parameters at the end, of which ARGUMENTS is the list of names in parentheses. They are not inlined, because callers
 * change the rounding around them. */
#define MPG_PLAIN_VARIANTS(NAME, ARGUMENTS, ...)                                                                               \
    MPG_NOINLINE static void NAME##_baseline(__VA_ARGS__) { NAME##_body(MPG_ISA_BASELINE, MPG_LIST ARGUMENTS); }               \
    MPG_NOINLINE MPG_TARGET_AVX2 static void NAME##_avx2(__VA_ARGS__) { NAME##_body(MPG_ISA_AVX2, MPG_LIST ARGUMENTS); }

/* Variants for every level, and the function NAME, which takes the level as its last argument. */
#define MPG_VARIANTS(NAME, ARGUMENTS, ...)                                                                                     \
    MPG_PLAIN_VARIANTS(NAME, ARGUMENTS, __VA_ARGS__)                                                                           \
    MPG_NOINLINE MPG_TARGET_AVX512 static void NAME##_avx512(__VA_ARGS__) { NAME##_body(MPG_ISA_AVX512, MPG_LIST ARGUMENTS); } \
    static void NAME(__VA_ARGS__, int level) { MPG_OF_LEVEL(NAME, level) ARGUMENTS; }

/* The highest level that this CPU and its operating system run. */
static int mpg_cpu_level(void)
{
#if MPG_X86_VARIANTS
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    __builtin_cpu_init();
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 29))) /* f16c: not known to every cpu_supports */
        return MPG_ISA_BASELINE;
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("bmi2"))
        return MPG_ISA_BASELINE;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512cd"))
        return MPG_ISA_AVX2;
    return MPG_ISA_AVX512;
#else
    return MPG_ISA_BASELINE;
#endif
}

/* Whether this object was compiled with OpenMP (without it every loop is serial and gives the same bits). */
static int mpg_has_openmp(void)
{
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

#endif
