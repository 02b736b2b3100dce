/* Runs VDPBF16PS on operands read from standard input, writes the results: one dot product a line, hexadecimal encodings
 * a0 a1 b0 b1 c. Built with -mavx512bf16 -mavx512vl; run only on a CPU that has the instruction. */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    unsigned a0, a1, b0, b1, c;
    while (scanf("%x %x %x %x %x", &a0, &a1, &b0, &b1, &c) == 5) {
        uint32_t pair_a = (uint32_t)a0 | ((uint32_t)a1 << 16), pair_b = (uint32_t)b0 | ((uint32_t)b1 << 16), start = c, bits;
        __m128i va = _mm_set1_epi32((int)pair_a), vb = _mm_set1_epi32((int)pair_b);
        __m128 d = _mm_dpbf16_ps(_mm_castsi128_ps(_mm_set1_epi32((int)start)), (__m128bh)va, (__m128bh)vb);
        float first = _mm_cvtss_f32(d);
        memcpy(&bits, &first, sizeof bits);
        printf("%08x\n", bits);
    }
    return 0;
}
