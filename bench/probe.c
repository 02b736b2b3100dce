/* How many vector instructions a core starts: chains of independent multiplications and integer additions, half of each.
 * Returns the number of instructions; the caller times the call. Built by bench/run.py; x86-64 with GNU-style assembly only. */
#include <stdint.h>

#define BLOCK(R)                                                                                                               \
    "1:\n"                                                                                                                     \
    "vmulps %%" R "8, %%" R "0, %%" R "0\n vpaddd %%" R "8, %%" R "1, %%" R "1\n"                                              \
    "vmulps %%" R "8, %%" R "2, %%" R "2\n vpaddd %%" R "8, %%" R "3, %%" R "3\n"                                              \
    "vmulps %%" R "8, %%" R "4, %%" R "4\n vpaddd %%" R "8, %%" R "5, %%" R "5\n"                                              \
    "vmulps %%" R "8, %%" R "6, %%" R "6\n vpaddd %%" R "8, %%" R "7, %%" R "7\n"                                              \
    "vmulps %%" R "8, %%" R "9, %%" R "9\n vpaddd %%" R "8, %%" R "10, %%" R "10\n"                                            \
    "vmulps %%" R "8, %%" R "11, %%" R "11\n vpaddd %%" R "8, %%" R "12, %%" R "12\n"                                          \
    "dec %0\n jnz 1b\n"
#define CLOBBERS "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "cc"
#define CLEAR                                                                                                                  \
    "vpxor %%xmm0,%%xmm0,%%xmm0\n vpxor %%xmm1,%%xmm1,%%xmm1\n vpxor %%xmm2,%%xmm2,%%xmm2\n vpxor %%xmm3,%%xmm3,%%xmm3\n"      \
    "vpxor %%xmm4,%%xmm4,%%xmm4\n vpxor %%xmm5,%%xmm5,%%xmm5\n vpxor %%xmm6,%%xmm6,%%xmm6\n vpxor %%xmm7,%%xmm7,%%xmm7\n"      \
    "vpxor %%xmm8,%%xmm8,%%xmm8\n vpxor %%xmm9,%%xmm9,%%xmm9\n vpxor %%xmm10,%%xmm10,%%xmm10\n"                                \
    "vpxor %%xmm11,%%xmm11,%%xmm11\n vpxor %%xmm12,%%xmm12,%%xmm12\n"

int64_t probe(int level, int64_t rounds)
{
    int64_t left = rounds;
    if (level == 2)
        __asm__ volatile(CLEAR BLOCK("zmm") : "+r"(left) : : CLOBBERS);
    else if (level == 1)
        __asm__ volatile(CLEAR BLOCK("ymm") : "+r"(left) : : CLOBBERS);
    else
        __asm__ volatile(CLEAR BLOCK("xmm") : "+r"(left) : : CLOBBERS);
    return rounds * 12;
}
