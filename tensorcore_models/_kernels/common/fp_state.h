/* The floating-point state that the kernels need: to nearest even, subnormal numbers kept, nothing trapped, whatever libraries built
 * with -ffast-math or the caller left behind. Each thread sets it before its share of the work and restores it afterwards. */
#ifndef MPG_FP_STATE_H
#define MPG_FP_STATE_H

#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
typedef unsigned mpg_fp_state;
static mpg_fp_state mpg_fp_enter(void)
{
    const unsigned state = _mm_getcsr();
    if ((state & 0xFFC0u) != 0x1F80u)
        _mm_setcsr(0x1F80u);
    return state;
}
static void mpg_fp_leave(mpg_fp_state state)
{
    if ((state & 0xFFC0u) != 0x1F80u)
        _mm_setcsr(state);
}
#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
typedef uint64_t mpg_fp_state;
static mpg_fp_state mpg_fp_enter(void)
{
    uint64_t state;
    __asm__ volatile("mrs %0, fpcr" : "=r"(state) : : "memory");
    if (state)
        __asm__ volatile("msr fpcr, %0" : : "r"(UINT64_C(0)) : "memory");
    return state;
}
static void mpg_fp_leave(mpg_fp_state state)
{
    if (state)
        __asm__ volatile("msr fpcr, %0" : : "r"(state) : "memory");
}
#else
#include <fenv.h>
typedef int mpg_fp_state;
static mpg_fp_state mpg_fp_enter(void)
{
    const int state = fegetround();
    if (state != FE_TONEAREST)
        fesetround(FE_TONEAREST);
    return state;
}
static void mpg_fp_leave(mpg_fp_state state)
{
    if (state != FE_TONEAREST)
        fesetround(state);
}
#endif

#endif
