/* Runs the chains of fused multiply-adds of this CPU's variant on small whole numbers, fractions and specials, against fma() of the C
 * library taken one by one, and compares bits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chains.h"

static uint64_t state = 1;

static double draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const int kind = (int)(state >> 60);
    const double x = (double)(int64_t)(state >> 11) / 9007199254740992.0 - 0.5;
    return kind == 0 ? 0.0 : kind == 1 ? -0.0 : kind == 2 && state >> 50 & 1 ? ldexp(x, -120) : x;
}

static double one_by_one(const char *a, const char *b, const char *d, int64_t k, int64_t n, int size, int64_t every)
{
    double total = size == 4 ? (double)*(const float *)d : *(const double *)d, sum = every ? 0.0 : total;
    for (int64_t q = 0; q < k; q++) {
        if (size == 4)
            sum = fmaf(((const float *)a)[q], ((const float *)b)[q * n], (float)sum);
        else
            sum = fma(((const double *)a)[q], ((const double *)b)[q * n], sum);
        if (every && q % every == every - 1) {
            total = size == 4 ? (float)total + (float)sum : total + sum;
            sum = 0.0;
        }
    }
    return every ? total : sum;
}

static void fill(char *x, int64_t count, int size)
{
    for (int64_t i = 0; i < count; i++) {
        if (size == 4)
            ((float *)x)[i] = (float)draw();
        else
            ((double *)x)[i] = draw();
    }
}

/* All of k as one slice, in one thread. */
static void run_job(mpg_chain_job *job)
{
    mpg_drive *drive = &job->drive;
    mpg_chain_measure(job, drive->level);
    drive->length = drive->part = drive->total;
    char *workspace = malloc((size_t)mpg_chain_bytes(job, drive->length, drive->level));
    if (!workspace)
        exit(2);
    mpg_chain_start(job, workspace, 1);
    for (int64_t piece = 0; piece < mpg_pieces(drive); piece++)
        mpg_drive_pack(drive, piece);
    for (int64_t tile = 0; tile < drive->blocks * drive->panels; tile++)
        mpg_drive_tile(drive, tile);
    free(workspace);
}

/* Elements that differ. */
static int64_t run_case(int64_t m, int64_t n, int64_t k, int size, int64_t every)
{
    char *a = malloc((size_t)(m * k * size)), *b = malloc((size_t)(k * n * size)), *d = malloc((size_t)(m * n * size));
    double *expected = malloc((size_t)(m * n) * sizeof *expected);
    int64_t wrong = 0;
    if (!a || !b || !d || !expected)
        exit(2);
    fill(a, m * k, size), fill(b, k * n, size), fill(d, m * n, size);
    for (int64_t i = 0; i < m * n; i++)
        expected[i] = one_by_one(a + i / n * k * size, b + i % n * size, d + i * size, k, n, size, every);
    mpg_chain_job job = {.drive = {.m = m, .n = n, .d = d, .total = k, .level = MPG_ISA_BASELINE},
                         .a_rows = {a, 0},
                         .b_rows = {b, 0},
                         .k = k,
                         .size = size,
                         .every = every};
    run_job(&job);
    for (int64_t i = 0; i < m * n; i++) {
        const float narrow = (float)expected[i];
        wrong += memcmp(d + i * size, size == 4 ? (const void *)&narrow : (const void *)&expected[i], (size_t)size) != 0;
    }
    free(a), free(b), free(d), free(expected);
    return wrong;
}

int main(void)
{
    static const int64_t cases[][4] = {{7, 19, 300, 0},  {6, 16, 128, 0},   {1, 1, 1, 0},
                                       {13, 33, 96, 16}, {20, 9, 384, 128}, {8, 17, 512, 256}};
    const int count = (int)(sizeof cases / sizeof *cases);
    int64_t wrong = 0;
    if (!mpg_has_chains(MPG_ISA_BASELINE, 0)) {
        printf("no kernel for chains in the baseline variant of this CPU\n");
        return 0;
    }
    for (int i = 0; i < count; i++)
        for (int size = 4; size <= 8; size += 4)
            wrong += run_case(cases[i][0], cases[i][1], cases[i][2], size, cases[i][3]);
    printf("%d cases of chains, %lld elements wrong\n", 2 * count, (long long)wrong);
    return wrong != 0;
}
