/* One variant of the cube's loops; cube.h includes this file once for each instruction set, after vector_set.h and,
 * where there is an instruction for it, with CUBE_FROM_CODES: a vector of FP16 codes as FP32.
 */
#define CUBE_R MPG_SIZE(VECTOR_LEVEL, CUBE_ROWS_SIZES)
#define CUBE_W MPG_SIZE(VECTOR_LEVEL, CUBE_WIDTH_SIZES)
#define CUBE_V (CUBE_W / VECTOR_LANES)

/* `count` FP16 codes as FP32, times a power of two. */
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

VECTOR_TARGET static void VECTOR_NAME(cube_pack_a)(const uint16_t *high, const uint16_t *low, ptrdiff_t row, ptrdiff_t groups,
                                                   int words, ptrdiff_t depth, ptrdiff_t pass, float low_factor, float *packed)
{
    const ptrdiff_t group = CUBE_R * CUBE_DEPTH * 2;
    float *target = packed + row / CUBE_R * group + row % CUBE_R * CUBE_DEPTH;
    for (ptrdiff_t k = 0; k < depth; k += pass, target += groups * group) {
        const ptrdiff_t count = depth - k < pass ? depth - k : pass;
        VECTOR_NAME(cube_unpack)(high + k, count, 1.0f, target);
        if (words == 2)
            VECTOR_NAME(cube_unpack)(low + k, count, low_factor, target + CUBE_R * CUBE_DEPTH);
    }
}

VECTOR_TARGET static void VECTOR_NAME(cube_pack_b)(const uint16_t *high, const uint16_t *low, ptrdiff_t k, int words,
                                                   ptrdiff_t pass, float low_factor, float *packed, ptrdiff_t panels)
{
    float *target = packed + ((k / pass) * panels * CUBE_DEPTH + k % pass) * 2 * CUBE_W;
    for (ptrdiff_t panel = 0; panel < panels; panel++, target += 2 * CUBE_W * CUBE_DEPTH) {
        VECTOR_NAME(cube_unpack)(high + panel * CUBE_W, CUBE_W, 1.0f, target);
        if (words == 2)
            VECTOR_NAME(cube_unpack)(low + panel * CUBE_W, CUBE_W, low_factor, target + CUBE_W);
    }
}

/* Three terms at once: R x W sums of each, one after the other in `sums`. `next` is what the next run will read. */
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

/* One chain in k order: R x W sums; a and b point to the words' first elements. */
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

/* `count` products of one step onto R x W sums, in the step order that the block asks for. */
VECTOR_TARGET static void VECTOR_NAME(cube_step)(const cube_block *block, const float *a, const float *b, int count, double bin,
                                                 float *sums)
{
    if (block->step_order == CUBE_SEQUENTIAL && !block->clamp && !block->half) {
        VECTOR_NAME(cube_one_chain)(a, b, count, sums);
        return;
    }
    for (int r = 0; r < CUBE_R; r++) {
        const float *factors = a + r * CUBE_DEPTH;
        float *row = sums + r * CUBE_W;
        if (block->step_order == CUBE_EXACT) {
            cube_exact_step(factors, b, 2 * CUBE_W, count, bin, block->half, block->clamp, row, CUBE_W);
        } else if (block->half) {
            cube_half_step(factors, b, 2 * CUBE_W, count, block->step_order, block->clamp, row, CUBE_W);
        } else if (block->step_order == CUBE_PAIRWISE) {
            cube_pairwise_step(factors, b, 2 * CUBE_W, count, block->clamp, row, CUBE_W);
        } else {
            for (int k = 0; k < count; k++)
                for (int c = 0; c < CUBE_W; c++)
                    row[c] = cube_clamped(row[c] + factors[k] * b[k * 2 * CUBE_W + c], FLT_MAX);
        }
    }
}

/* `depth` products of R x W elements, all terms that the block asks for. */
VECTOR_TARGET static void VECTOR_NAME(cube_micro_tile)(const cube_block *block, const float *a, const float *b, ptrdiff_t depth,
                                                       float *sums)
{
    const int three = 1 << CUBE_HH | 1 << CUBE_LH | 1 << CUBE_HL;
    const int plain = block->step_order == CUBE_SEQUENTIAL && !block->clamp && !block->half;
    const ptrdiff_t stride = block->elementwise ? block->step : depth;
    int terms = block->terms;
    if (plain && !block->elementwise && (terms & three) == three) {
        VECTOR_NAME(cube_three_chains)(a, b, depth, sums, a + 2 * CUBE_R * CUBE_DEPTH);
        terms &= ~three;
    }
    for (ptrdiff_t k0 = 0; k0 < depth; k0 += stride)
        for (int term = 0; term < CUBE_TERMS; term++) {
            const float *factors = a + (term & 1 ? CUBE_R * CUBE_DEPTH : 0);
            const float *panel = b + (term & 2 ? CUBE_W : 0);
            const ptrdiff_t end = depth - k0 < stride ? depth : k0 + stride;
            float *chain = sums + (block->chains > 1 ? term * CUBE_R * CUBE_W : 0);
            if (!(terms >> term & 1))
                continue;
            for (ptrdiff_t k = k0; k < end; k += block->step)
                VECTOR_NAME(cube_step)(block, factors + k, panel + k * 2 * CUBE_W,
                                       (int)(end - k < block->step ? end - k : block->step), block->bin[term], chain);
        }
}

VECTOR_TARGET static void VECTOR_NAME(cube_tile)(const cube_block *block, ptrdiff_t group0, ptrdiff_t group1, ptrdiff_t panel0,
                                                 ptrdiff_t panel1)
{
    const ptrdiff_t pass = CUBE_DEPTH / block->step * block->step;
    for (ptrdiff_t k = 0, p = 0; k < block->depth; k += pass, p++) {
        const ptrdiff_t depth = block->depth - k < pass ? block->depth - k : pass;
        for (ptrdiff_t panel = panel0; panel < panel1; panel++)
            for (ptrdiff_t group = group0; group < group1; group++) {
                const ptrdiff_t size = block->chains * CUBE_R * CUBE_W;
                float *sums = block->sums + (panel * block->groups + group) * size;
                if (block->fresh && k == 0)
                    memset(sums, 0, (size_t)size * sizeof *sums);
                VECTOR_NAME(cube_micro_tile)(block, block->a + (p * block->groups + group) * 2 * CUBE_R * CUBE_DEPTH,
                                             block->b + (p * block->panels + panel) * 2 * CUBE_W * CUBE_DEPTH, depth, sums);
            }
    }
}

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

#undef CUBE_R
#undef CUBE_W
#undef CUBE_V
#undef CUBE_FROM_CODES
