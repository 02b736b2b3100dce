/* One variant of the cube's loops; cube.h includes this file once for each instruction set, after vector_set.h and,
 * where there is an instruction for it, with CUBE_FROM_CODES: a vector of FP16 codes as FP32.
 */
#define CUBE_R MPG_SIZE(VECTOR_LEVEL, CUBE_ROWS_SIZES)
#define CUBE_W MPG_SIZE(VECTOR_LEVEL, CUBE_WIDTH_SIZES)
#define CUBE_V (CUBE_W / VECTOR_LANES)

/* Converts `count` FP16 codes to FP32, times a power of two. */
VECTOR_TARGET MPG_INLINE void VECTOR_NAME(cube_unpack)(const uint16_t *MPG_RESTRICT codes, ptrdiff_t count, float factor,
                                                       float *MPG_RESTRICT target)
{
    ptrdiff_t i = 0;
#ifdef CUBE_FROM_CODES
    for (; i + VECTOR_LANES <= count; i += VECTOR_LANES)
        VECTOR_STORE(target + i, VECTOR_MUL(CUBE_FROM_CODES(codes + i), VECTOR_SET(factor)));
#endif
    for (; i < count; i++)
        target[i] = cube_from_half(codes[i]) * factor;
}

/* Packs both words (or the only one) of a row of the block, or zeros below it. */
VECTOR_TARGET static void VECTOR_NAME(cube_pack_row)(const mpg_drive *drive, int64_t row)
{
    const cube_job *job = (const cube_job *)drive;
    uint16_t codes[2][CUBE_BLOCK];
    float *target = job->packed_a + (row / CUBE_R * CUBE_R * 2 + row % CUBE_R) * CUBE_DEPTH;
    if (row < drive->m)
        mpg_split_range(job->a + (job->row + row) * job->k + job->start + drive->begin, codes[0], codes[1], 0, drive->part,
                        &job->a_split, drive->level);
    else
        memset(codes, 0, sizeof codes);
    for (int64_t k = 0, pass = cube_pass(job); k < drive->part;
         k += pass, target += job->grid.groups * CUBE_R * CUBE_DEPTH * 2) {
        const ptrdiff_t count = drive->part - k < pass ? drive->part - k : pass;
        VECTOR_NAME(cube_unpack)(codes[0] + k, count, 1.0f, target);
        if (job->words == 2)
            VECTOR_NAME(cube_unpack)(codes[1] + k, count, job->a_low_factor, target + CUBE_R * CUBE_DEPTH);
    }
}

/* Packs a few positions of the slice of B; the last panel is padded with zeros. */
VECTOR_TARGET static void VECTOR_NAME(cube_pack_positions)(const mpg_drive *drive, int64_t piece)
{
    const cube_job *job = (const cube_job *)drive;
    const int64_t pass = cube_pass(job), panels = job->grid.panels;
    uint16_t high[CUBE_BLOCK + CUBE_W], low[CUBE_BLOCK + CUBE_W];
    memset(high + drive->n, 0, CUBE_W * sizeof *high);
    memset(low + drive->n, 0, CUBE_W * sizeof *low);
    for (int64_t k = piece * MPG_POSITIONS; k < (piece + 1) * MPG_POSITIONS && k < drive->part; k++) {
        float *target = job->packed_b + (k / pass * panels * CUBE_DEPTH + k % pass) * 2 * CUBE_W;
        mpg_split_range(job->b + (job->start + drive->begin + k) * job->n + job->column, high, low, 0, drive->n, &job->b_split,
                        drive->level);
        for (ptrdiff_t panel = 0; panel < panels; panel++, target += 2 * CUBE_W * CUBE_DEPTH) {
            VECTOR_NAME(cube_unpack)(high + panel * CUBE_W, CUBE_W, 1.0f, target);
            if (job->words == 2)
                VECTOR_NAME(cube_unpack)(low + panel * CUBE_W, CUBE_W, job->b_low_factor, target + CUBE_W);
        }
    }
}

/* Runs three terms at once: R x W sums of each, one after the other in `sums`. The next run reads `next`. */
VECTOR_TARGET static void VECTOR_NAME(cube_three_chains)(const float *a, const float *b, ptrdiff_t depth, float *sums,
                                                         const float *next)
{
    const float *a_low = a + CUBE_R * CUBE_DEPTH;
    VECTOR sum[3][CUBE_R][CUBE_V];
    for (int term = 0; term < 3; term++)
        for (int r = 0; r < CUBE_R; r++)
            for (int v = 0; v < CUBE_V; v++)
                sum[term][r][v] = VECTOR_LOAD(sums + (term * CUBE_R + r) * CUBE_W + v * VECTOR_LANES);
    for (ptrdiff_t k = 0; k < depth; k++) {
        VECTOR b_high[CUBE_V], b_low[CUBE_V];
        VECTOR_PREFETCH(next + k * 2 * CUBE_R);
        for (int v = 0; v < CUBE_V; v++) {
            b_high[v] = VECTOR_LOAD(b + v * VECTOR_LANES);
            b_low[v] = VECTOR_LOAD(b + CUBE_W + v * VECTOR_LANES);
        }
        b += 2 * CUBE_W;
        for (int r = 0; r < CUBE_R; r++) {
            const VECTOR high = VECTOR_SET(a[r * CUBE_DEPTH + k]), low = VECTOR_SET(a_low[r * CUBE_DEPTH + k]);
            for (int v = 0; v < CUBE_V; v++) {
                sum[CUBE_HH][r][v] = VECTOR_MADD(high, b_high[v], sum[CUBE_HH][r][v]);
                sum[CUBE_LH][r][v] = VECTOR_MADD(low, b_high[v], sum[CUBE_LH][r][v]);
                sum[CUBE_HL][r][v] = VECTOR_MADD(high, b_low[v], sum[CUBE_HL][r][v]);
            }
        }
    }
    for (int term = 0; term < 3; term++)
        for (int r = 0; r < CUBE_R; r++)
            for (int v = 0; v < CUBE_V; v++)
                VECTOR_STORE(sums + (term * CUBE_R + r) * CUBE_W + v * VECTOR_LANES, sum[term][r][v]);
}

/* Runs one chain in k order: R x W sums; a and b point to the words' first elements. */
VECTOR_TARGET static void VECTOR_NAME(cube_one_chain)(const float *a, const float *b, ptrdiff_t depth, float *sums)
{
    VECTOR sum[CUBE_R][CUBE_V];
    for (int r = 0; r < CUBE_R; r++)
        for (int v = 0; v < CUBE_V; v++)
            sum[r][v] = VECTOR_LOAD(sums + r * CUBE_W + v * VECTOR_LANES);
    for (ptrdiff_t k = 0; k < depth; k++, b += 2 * CUBE_W)
        for (int r = 0; r < CUBE_R; r++) {
            const VECTOR factor = VECTOR_SET(a[r * CUBE_DEPTH + k]);
            for (int v = 0; v < CUBE_V; v++)
                sum[r][v] = VECTOR_MADD(factor, VECTOR_LOAD(b + v * VECTOR_LANES), sum[r][v]);
        }
    for (int r = 0; r < CUBE_R; r++)
        for (int v = 0; v < CUBE_V; v++)
            VECTOR_STORE(sums + r * CUBE_W + v * VECTOR_LANES, sum[r][v]);
}

/* Adds `count` products of one step to R x W sums, in the block's step order. */
VECTOR_TARGET static void VECTOR_NAME(cube_step)(const cube_job *job, const float *a, const float *b, int count, double bin,
                                                 float *sums)
{
    if (job->task.step_order == CUBE_SEQUENTIAL && !job->task.clamp && !job->task.half) {
        VECTOR_NAME(cube_one_chain)(a, b, count, sums);
        return;
    }
    for (int r = 0; r < CUBE_R; r++) {
        const float *factors = a + r * CUBE_DEPTH;
        float *row = sums + r * CUBE_W;
        if (job->task.step_order == CUBE_EXACT) {
            cube_exact_step(factors, b, 2 * CUBE_W, count, bin, job->task.half, job->task.clamp, row, CUBE_W);
        } else if (job->task.half) {
            cube_half_step(factors, b, 2 * CUBE_W, count, job->task.step_order, job->task.clamp, row, CUBE_W);
        } else if (job->task.step_order == CUBE_PAIRWISE) {
            cube_pairwise_step(factors, b, 2 * CUBE_W, count, job->task.clamp, row, CUBE_W);
        } else {
            for (int k = 0; k < count; k++)
                for (int c = 0; c < CUBE_W; c++)
                    row[c] = cube_clamped(row[c] + factors[k] * b[k * 2 * CUBE_W + c], FLT_MAX);
        }
    }
}

/* Adds `depth` products of R x W elements, for all terms of the block. */
VECTOR_TARGET static void VECTOR_NAME(cube_micro_tile)(const cube_job *job, const float *a, const float *b, ptrdiff_t depth,
                                                       float *sums)
{
    const int three = 1 << CUBE_HH | 1 << CUBE_LH | 1 << CUBE_HL;
    const int plain = job->task.step_order == CUBE_SEQUENTIAL && !job->task.clamp && !job->task.half;
    const ptrdiff_t stride = job->task.elementwise ? job->task.step : depth;
    int terms = job->terms;
    if (plain && !job->task.elementwise && (terms & three) == three) {
        VECTOR_NAME(cube_three_chains)(a, b, depth, sums, a + 2 * CUBE_R * CUBE_DEPTH);
        terms &= ~three;
    }
    for (ptrdiff_t k0 = 0; k0 < depth; k0 += stride)
        for (int term = 0; term < CUBE_TERMS; term++) {
            const float *factors = a + (term & 1 ? CUBE_R * CUBE_DEPTH : 0);
            const float *panel = b + (term & 2 ? CUBE_W : 0);
            const ptrdiff_t end = depth - k0 < stride ? depth : k0 + stride;
            float *chain = sums + (job->chains > 1 ? term * CUBE_R * CUBE_W : 0);
            if (!(terms >> term & 1))
                continue;
            for (ptrdiff_t k = k0; k < end; k += job->task.step)
                VECTOR_NAME(cube_step)(job, factors + k, panel + k * 2 * CUBE_W,
                                       (int)(end - k < job->task.step ? end - k : job->task.step), job->bin[term], chain);
        }
}

/* ---- after a chain ------------------------------------------------------------------------------------------------------ */
VECTOR_TARGET static void VECTOR_NAME(cube_reconstruct)(const float *MPG_RESTRICT hh, const float *MPG_RESTRICT lh,
                                                        const float *MPG_RESTRICT hl, const float *MPG_RESTRICT ll,
                                                        ptrdiff_t count, const cube_scales *scales, float *MPG_RESTRICT out)
{
    const cube_scales s = *scales;
    if (s.has_ll || s.clamp) {
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] = cube_reconstructed(hh[i], lh[i], hl[i], s.has_ll ? ll[i] : 0.0f, &s);
        return;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        const float sum = hh[i] + (lh[i] * s.lh_scale + hl[i] * s.hl_scale) * s.low_scale;
        out[i] = sum == sum ? sum : (float)NAN;
    }
}

/* Writes the result of the groups and panels of a tile. */
VECTOR_TARGET static void VECTOR_NAME(cube_finish)(const cube_job *job, const mpg_grid_part *part)
{
    const ptrdiff_t chain = CUBE_R * CUBE_W;
    for (int64_t i = part->group * CUBE_R; i < part->group_end * CUBE_R && i < job->drive.m; i++)
        for (int64_t panel = part->panel; panel < part->panel_end; panel++) {
            const ptrdiff_t first = panel * CUBE_W, count = job->drive.n - first < CUBE_W ? job->drive.n - first : CUBE_W;
            const float *sums = job->sums + cube_place(job, i, panel);
            float *MPG_RESTRICT out = job->out + (job->row + i) * job->n + job->column + first;
            if (job->chains > 1)
                VECTOR_NAME(cube_reconstruct)(sums, sums + chain, sums + 2 * chain,
                                              job->scales.has_ll ? sums + 3 * chain : NULL, count, &job->scales, out);
            else
                for (ptrdiff_t j = 0; j < count; j++)
                    out[j] = sums[j] == sums[j] ? sums[j] : (float)NAN;
        }
}

VECTOR_TARGET static void VECTOR_NAME(cube_tile)(const mpg_drive *drive, int64_t block, int64_t tile_panel)
{
    const cube_job *job = (const cube_job *)drive;
    const mpg_grid *grid = &job->grid;
    const mpg_grid_part part = mpg_part_of(grid, block, tile_panel);
    const ptrdiff_t pass = cube_pass(job), size = job->chains * CUBE_R * CUBE_W;
    for (ptrdiff_t k = 0, p = 0; k < drive->part; k += pass, p++) {
        const ptrdiff_t depth = drive->part - k < pass ? drive->part - k : pass;
        for (ptrdiff_t panel = part.panel; panel < part.panel_end; panel++)
            for (ptrdiff_t group = part.group; group < part.group_end; group++) {
                float *sums = job->sums + (panel * grid->groups + group) * size;
                if (job->fresh && drive->begin == 0 && k == 0)
                    memset(sums, 0, (size_t)size * sizeof *sums);
                VECTOR_NAME(cube_micro_tile)(job, job->packed_a + (p * grid->groups + group) * 2 * CUBE_R * CUBE_DEPTH,
                                             job->packed_b + (p * grid->panels + panel) * 2 * CUBE_W * CUBE_DEPTH, depth, sums);
            }
    }
    if (job->last && drive->begin + drive->part == drive->total)
        VECTOR_NAME(cube_finish)(job, &part);
}

#undef CUBE_R
#undef CUBE_W
#undef CUBE_V
#undef CUBE_FROM_CODES
