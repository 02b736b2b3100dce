/* Runs the emulated x86 instructions and the emulated AMX product of words on numbers made here and prints one hash of all results: built
 * for two architectures it must print the same. */
#include <stdio.h>

#include "amx_sgemm.h"
#include "cpu_units.h"

enum { ROWS = 40, DEPTH = 300, COLUMNS = 50, STEPS = 10, WORD = 2 * STEPS * SGEMM_STEP_BYTES };

static uint64_t state = 1, hash = UINT64_C(1469598103934665603);

static uint32_t draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 32);
}

static void add(uint32_t bits) { hash = (hash ^ bits) * UINT64_C(1099511628211); }

/* Random bits, numbers around 1, products around the smallest normal number; every third time c is the smallest normal number. */
static void instructions(void)
{
    for (int turn = 0; turn < 400; turn++) {
        uint32_t a[256], b[256], c[256];
        for (int i = 0; i < 256; i++) {
            a[i] = draw();
            b[i] = draw();
            c[i] = draw();
            if (turn & 1) {
                a[i] = (a[i] & 0x807F807Fu) | 0x3F003F00u;
                b[i] = (b[i] & 0x80FF80FFu) | (turn % 5 ? 0x3F003F00u : 0x1F801F80u);
            }
            if (turn % 3 == 0)
                c[i] = (c[i] & 0x80000003u) | 0x00800000u;
        }
        for (int unit = 0; unit < MPG_UNITS; unit++) {
            uint32_t d[256];
            if (!mpg_unit_is_emulated(unit))
                continue;
            memcpy(d, c, sizeof d);
            mpg_amx_emulated_step(unit, (const char *)a, (const char *)b, d);
            for (int i = 0; i < mpg_unit_shapes[unit].m * mpg_unit_shapes[unit].n; i++)
                add(d[i]);
        }
    }
}

static void product(void)
{
    static float a[ROWS * DEPTH], b[DEPTH * COLUMNS], d[ROWS * COLUMNS];
    static char packed_a[SGEMM_WORDS * WORD], packed_b[SGEMM_WORDS * WORD];
    const int left[] = {0, 1, 2, 0, 1, 0}, right[] = {2, 1, 0, 1, 0, 0};
    sgemm_range range = {0, 0xFFFFFFFFu};
    sgemm_job job = {0};
    for (int i = 0; i < ROWS * DEPTH; i++)
        a[i] = (float)(int32_t)draw() * 0x1p-31f;
    for (int i = 0; i < DEPTH * COLUMNS; i++)
        b[i] = (float)(int32_t)draw() * 0x1p-31f;
    for (int panel = 0; panel < 2; panel++) {
        sgemm_pack(0, a, DEPTH, panel, ROWS, DEPTH, packed_a, WORD, &range, MPG_ISA_BASELINE);
        sgemm_pack(1, b, COLUMNS, panel, COLUMNS, DEPTH, packed_b, WORD, &range, MPG_ISA_BASELINE);
    }
    job.a = packed_a, job.b = packed_b, job.a_word = job.b_word = WORD;
    job.steps = STEPS, job.block = 8, job.m = ROWS, job.n = COLUMNS, job.d = (char *)d, job.first = 1, job.pairs = 6;
    memcpy(job.left, left, sizeof left);
    memcpy(job.right, right, sizeof right);
    sgemm_tiles(&job, 1, 0, 2, 0, 2);
    add(range.largest);
    add(range.smallest);
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        uint32_t bits;
        memcpy(&bits, d + i, 4);
        add(bits);
    }
}

int main(void)
{
    instructions();
    product();
    printf("%016llx\n", (unsigned long long)hash);
    return 0;
}
