/* Runs BFMMLA on operands read from standard input, writes the results: one 2-way dot product a line, hexadecimal encodings
 * a0 a1 a2 a3 b0 b1 b2 b3 c. Built for armv8.2-a+bf16; runs on such a CPU or under qemu-aarch64 -cpu max. */
#include <arm_neon.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    unsigned x[9];
    while (scanf("%x %x %x %x %x %x %x %x %x", x, x + 1, x + 2, x + 3, x + 4, x + 5, x + 6, x + 7, x + 8) == 9) {
        uint16_t a[8] = {0}, b[8] = {0};
        for (int k = 0; k < 4; k++) {
            a[k] = (uint16_t)x[k];
            b[k] = (uint16_t)x[4 + k];
        }
        float32x4_t c = vreinterpretq_f32_u32(vdupq_n_u32(x[8]));
        float32x4_t d = vbfmmlaq_f32(c, vreinterpretq_bf16_u16(vld1q_u16(a)), vreinterpretq_bf16_u16(vld1q_u16(b)));
        printf("%08x\n", vgetq_lane_u32(vreinterpretq_u32_f32(d), 0));
    }
    return 0;
}
