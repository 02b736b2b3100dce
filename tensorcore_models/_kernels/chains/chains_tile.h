/* One variant of the loops of chains.h, which includes this file once for each element type and instruction set with the macros set:
 * CHAIN_VARIANT, CHAIN_TARGET, CHAIN_R rows, CHAIN_V vectors of CHAIN_T elements, CHAIN_VECTOR and its operations.
 */
#define CHAIN_LANES ((int64_t)(sizeof(CHAIN_VECTOR) / sizeof(CHAIN_T)))
#define CHAIN_W (CHAIN_V * CHAIN_LANES)

/* sum = chains from `sum` over `count` products, of which `row` and `column` are the first. */
CHAIN_TARGET MPG_INLINE void MPG_CHAIN_NAME(multiply, CHAIN_VARIANT)(CHAIN_VECTOR sum[CHAIN_R][CHAIN_V], const CHAIN_T *row,
                                                                     const CHAIN_T *column, int64_t count)
{
    for (int64_t k = 0; k < count; k++, column += CHAIN_W) {
        CHAIN_VECTOR b[CHAIN_V];
        for (int v = 0; v < CHAIN_V; v++)
            b[v] = CHAIN_LOAD(column + v * CHAIN_LANES);
        for (int r = 0; r < CHAIN_R; r++) {
            const CHAIN_VECTOR factor = CHAIN_SET(row[r * MPG_CHAIN_DEPTH + k]);
            for (int v = 0; v < CHAIN_V; v++)
                sum[r][v] = CHAIN_FMA(factor, b[v], sum[r][v]);
        }
    }
}

/* `depth` products onto R x W elements of d: one chain, or one for every `every` products. */
CHAIN_TARGET static void MPG_CHAIN_NAME(run, CHAIN_VARIANT)(const CHAIN_T *a, const CHAIN_T *b, int64_t depth, int64_t every,
                                                            CHAIN_T *d, int64_t ldd)
{
    const int64_t length = every ? every : depth;
    for (int64_t start = 0; start < depth; start += length) {
        const int64_t end = depth - start < length ? depth : start + length;
        CHAIN_VECTOR sum[CHAIN_R][CHAIN_V];
        for (int r = 0; r < CHAIN_R; r++)
            for (int v = 0; v < CHAIN_V; v++)
                sum[r][v] = every ? CHAIN_SET(0) : CHAIN_LOAD(d + r * ldd + v * CHAIN_LANES);
        MPG_CHAIN_NAME(multiply, CHAIN_VARIANT)(sum, a + start, b + start * CHAIN_W, end - start);
        for (int r = 0; r < CHAIN_R; r++)
            for (int v = 0; v < CHAIN_V; v++) {
                CHAIN_T *place = d + r * ldd + v * CHAIN_LANES;
                CHAIN_STORE(place, every ? CHAIN_ADD(CHAIN_LOAD(place), sum[r][v]) : sum[r][v]);
            }
    }
}

/* The same in operations of `every` products in `lanes` chains; the last one may have fewer. */
CHAIN_TARGET static void MPG_CHAIN_NAME(run_lanes, CHAIN_VARIANT)(const CHAIN_T *a, const CHAIN_T *b, int64_t depth,
                                                                  int64_t every, int64_t lanes, CHAIN_T *d, int64_t ldd)
{
    for (int64_t start = 0; start < depth; start += every) {
        const int64_t count = depth - start < every ? depth - start : every;
        CHAIN_VECTOR dot[CHAIN_R][CHAIN_V];
        for (int r = 0; r < CHAIN_R; r++)
            for (int v = 0; v < CHAIN_V; v++)
                dot[r][v] = CHAIN_SET(0);
        for (int64_t lane = 0, k = start; lane < lanes; lane++) {
            const int64_t own = (count - lane + lanes - 1) / lanes;
            CHAIN_VECTOR sum[CHAIN_R][CHAIN_V];
            for (int r = 0; r < CHAIN_R; r++)
                for (int v = 0; v < CHAIN_V; v++)
                    sum[r][v] = CHAIN_SET(0);
            MPG_CHAIN_NAME(multiply, CHAIN_VARIANT)(sum, a + k, b + k * CHAIN_W, own);
            for (int r = 0; r < CHAIN_R; r++)
                for (int v = 0; v < CHAIN_V; v++)
                    dot[r][v] = lane ? CHAIN_ADD(dot[r][v], sum[r][v]) : sum[r][v];
            k += own;
        }
        for (int r = 0; r < CHAIN_R; r++)
            for (int v = 0; v < CHAIN_V; v++) {
                CHAIN_T *place = d + r * ldd + v * CHAIN_LANES;
                CHAIN_STORE(place, CHAIN_ADD(CHAIN_LOAD(place), dot[r][v]));
            }
    }
}

CHAIN_TARGET static void MPG_CHAIN_NAME(whole, CHAIN_VARIANT)(const mpg_chain_job *job, const CHAIN_T *a, const CHAIN_T *b,
                                                              int64_t depth, CHAIN_T *d, int64_t ldd)
{
    if (job->lanes)
        MPG_CHAIN_NAME(run_lanes, CHAIN_VARIANT)(a, b, depth, job->every, job->lanes, d, ldd);
    else
        MPG_CHAIN_NAME(run, CHAIN_VARIANT)(a, b, depth, job->every, d, ldd);
}

/* The same at an edge of d, which has only `rows` rows and `columns` columns of the tile. */
CHAIN_TARGET static void MPG_CHAIN_NAME(edge, CHAIN_VARIANT)(const mpg_chain_job *job, const CHAIN_T *a, const CHAIN_T *b,
                                                             int64_t depth, CHAIN_T *d, int64_t ldd, int64_t rows,
                                                             int64_t columns)
{
    CHAIN_T whole[CHAIN_R * CHAIN_W] = {0};
    for (int64_t r = 0; r < rows; r++)
        memcpy(whole + r * CHAIN_W, d + r * ldd, (size_t)columns * sizeof *d);
    MPG_CHAIN_NAME(whole, CHAIN_VARIANT)(job, a, b, depth, whole, CHAIN_W);
    for (int64_t r = 0; r < rows; r++)
        memcpy(d + r * ldd, whole + r * CHAIN_W, (size_t)columns * sizeof *d);
}

CHAIN_TARGET static void MPG_CHAIN_NAME(tile, CHAIN_VARIANT)(const mpg_chain_job *job, int64_t group0, int64_t group1,
                                                             int64_t panel0, int64_t panel1)
{
    const CHAIN_T *a = (const CHAIN_T *)job->a, *b = (const CHAIN_T *)job->b;
    for (int64_t k = 0, p = 0; k < job->drive.part; k += job->pass, p++) {
        const int64_t depth = job->drive.part - k < job->pass ? job->drive.part - k : job->pass;
        for (int64_t panel = panel0; panel < panel1; panel++) {
            const CHAIN_T *column = b + (p * job->panels + panel) * MPG_CHAIN_DEPTH * CHAIN_W;
            const int64_t j = panel * CHAIN_W, columns = job->n - j < CHAIN_W ? job->n - j : CHAIN_W;
            for (int64_t group = group0; group < group1; group++) {
                const CHAIN_T *row = a + (p * job->groups + group) * CHAIN_R * MPG_CHAIN_DEPTH;
                const int64_t i = group * CHAIN_R, rows = job->m - i < CHAIN_R ? job->m - i : CHAIN_R;
                CHAIN_T *d = (CHAIN_T *)job->d + i * job->n + j;
                if (rows == CHAIN_R && columns == CHAIN_W)
                    MPG_CHAIN_NAME(whole, CHAIN_VARIANT)(job, row, column, depth, d, job->n);
                else
                    MPG_CHAIN_NAME(edge, CHAIN_VARIANT)(job, row, column, depth, d, job->n, rows, columns);
            }
        }
    }
}

#undef CHAIN_LANES
#undef CHAIN_W
#undef CHAIN_VARIANT
#undef CHAIN_TARGET
#undef CHAIN_R
#undef CHAIN_V
#undef CHAIN_T
#undef CHAIN_VECTOR
#undef CHAIN_LOAD
#undef CHAIN_STORE
#undef CHAIN_SET
#undef CHAIN_ADD
#undef CHAIN_FMA
