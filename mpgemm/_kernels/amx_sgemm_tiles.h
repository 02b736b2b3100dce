/* Tiles of the result on the real unit or the emulated one: amx_sgemm.h includes this file once for each.
 *
 * Four tile registers hold 32 x 32 results, two a step of A, two a step of B: four products for four loads.
 */
#include "amx_tiles.h"

#define SGEMM_STEPS(dot)                                                                                                       \
    for (int64_t s = 0; s < count; s++) {                                                                                      \
        tile_loadd(4, x, 64);                                                                                                  \
        tile_loadd(6, y, 64);                                                                                                  \
        dot(0, 4, 6);                                                                                                          \
        tile_loadd(7, y + SGEMM_STEP_BYTES / 2, 64);                                                                           \
        dot(1, 4, 7);                                                                                                          \
        tile_loadd(5, x + SGEMM_STEP_BYTES / 2, 64);                                                                           \
        dot(2, 5, 6);                                                                                                          \
        dot(3, 5, 7);                                                                                                          \
        x += SGEMM_STEP_BYTES;                                                                                                 \
        y += SGEMM_STEP_BYTES;                                                                                                 \
        for (int line = 0; line < SGEMM_STEP_BYTES; line += 64)                                                                \
            tile_prefetch(x + line);                                                                                           \
    }

AMX_TARGET static void AMX_NAME(sgemm)(const sgemm_job *job, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
{
    float sum[SGEMM_PANEL * SGEMM_PANEL];
    TILE_BEGIN();
    for (int64_t begin = 0; begin < job->steps; begin += job->block) {
        const int64_t count = job->steps - begin < job->block ? job->steps - begin : job->block;
        for (int64_t j = j0; j < j1; j++)
            for (int64_t i = i0; i < i1; i++)
                for (int p = 0; p < job->pairs; p++) {
                    const char *x = job->a + job->left[p] * job->a_word + (i * job->steps + begin) * SGEMM_STEP_BYTES;
                    const char *y = job->b + job->right[p] * job->b_word + (j * job->steps + begin) * SGEMM_STEP_BYTES;
                    if (p == 0 || job->level[p] != job->level[p - 1]) {
                        tile_zero(0);
                        tile_zero(1);
                        tile_zero(2);
                        tile_zero(3);
                    }
                    if (job->is_int8) {
                        SGEMM_STEPS(tile_dpbssd)
                    } else {
                        SGEMM_STEPS(tile_dpbf16ps)
                    }
                    if (p + 1 < job->pairs && job->level[p + 1] == job->level[p])
                        continue;
                    tile_stored(0, sum, 4 * SGEMM_PANEL);
                    tile_stored(1, sum + 16, 4 * SGEMM_PANEL);
                    tile_stored(2, sum + 16 * SGEMM_PANEL, 4 * SGEMM_PANEL);
                    tile_stored(3, sum + 16 * SGEMM_PANEL + 16, 4 * SGEMM_PANEL);
                    sgemm_update(job, sum, i * SGEMM_PANEL, j * SGEMM_PANEL, job->level[p], job->first && begin == 0);
                }
    }
    TILE_END();
}

/* Products alone, `rounds` times the same four steps, which stay in the first-level cache: the most that the unit does. */
AMX_TARGET static void AMX_NAME(peak)(const char *words, int64_t rounds, int is_int8)
{
    const int64_t count = SGEMM_PEAK_STEPS;
    TILE_BEGIN();
    tile_zero(0);
    tile_zero(1);
    tile_zero(2);
    tile_zero(3);
    for (int64_t round = 0; round < rounds; round++) {
        const char *x = words, *y = words + SGEMM_PEAK_STEPS * SGEMM_STEP_BYTES;
        if (is_int8) {
            SGEMM_STEPS(tile_dpbssd)
        } else {
            SGEMM_STEPS(tile_dpbf16ps)
        }
    }
    TILE_END();
}
#undef SGEMM_STEPS
