/* One variant of the loops of chains.h; chains_levels.h includes this file once for each element type and instruction set, after
 * vector_set.h. CHAIN_NAME(x) is the name x of the variant.
 */
#define CHAIN_V (MPG_SIZE(VECTOR_LEVEL, MPG_CHAIN_BYTES_SIZES) / (int)sizeof(VECTOR))
#define CHAIN_W (CHAIN_V * VECTOR_LANES)

/* sum = chains from `sum`, one product longer. */
VECTOR_TARGET MPG_INLINE void CHAIN_NAME(step)(VECTOR sum[MPG_CHAIN_ROWS][CHAIN_V], const VECTOR_ELEMENT *row,
                                               const VECTOR_ELEMENT *column)
{
    VECTOR b[CHAIN_V];
    for (int v = 0; v < CHAIN_V; v++)
        b[v] = VECTOR_LOAD(column + v * VECTOR_LANES);
    for (int r = 0; r < MPG_CHAIN_ROWS; r++) {
        const VECTOR factor = VECTOR_SET(row[r * MPG_CHAIN_LONGEST]);
        for (int v = 0; v < CHAIN_V; v++)
            sum[r][v] = VECTOR_MADD(factor, b[v], sum[r][v]);
    }
}

/* sum = chains longer by `count` products, every `stride`th from `row` and `column` on; with `pairs`, a constant, the odd one first. */
VECTOR_TARGET MPG_INLINE void CHAIN_NAME(multiply)(VECTOR sum[MPG_CHAIN_ROWS][CHAIN_V], const VECTOR_ELEMENT *row,
                                                   const VECTOR_ELEMENT *column, int64_t count, int64_t stride, int pairs)
{
    int64_t k = 0;
    for (; pairs && k + 1 < count; k += 2, row += 2, column += 2 * CHAIN_W) {
        CHAIN_NAME(step)(sum, row + 1, column + CHAIN_W);
        CHAIN_NAME(step)(sum, row, column);
    }
    for (; k < count; k++, row += stride, column += stride * CHAIN_W)
        CHAIN_NAME(step)(sum, row, column);
}

/* `depth` products onto R x W elements of d: one chain, or one for every `every` products. pairs is a constant. */
VECTOR_TARGET MPG_INLINE void CHAIN_NAME(run)(const VECTOR_ELEMENT *a, const VECTOR_ELEMENT *b, int64_t depth, int64_t every,
                                              int pairs, VECTOR_ELEMENT *d, int64_t ldd)
{
    const int64_t length = every ? every : depth;
    for (int64_t start = 0; start < depth; start += length) {
        const int64_t end = depth - start < length ? depth : start + length;
        VECTOR sum[MPG_CHAIN_ROWS][CHAIN_V];
        for (int r = 0; r < MPG_CHAIN_ROWS; r++)
            for (int v = 0; v < CHAIN_V; v++)
                sum[r][v] = every ? VECTOR_SET(0) : VECTOR_LOAD(d + r * ldd + v * VECTOR_LANES);
        CHAIN_NAME(multiply)(sum, a + start, b + start * CHAIN_W, end - start, 1, pairs);
        for (int r = 0; r < MPG_CHAIN_ROWS; r++)
            for (int v = 0; v < CHAIN_V; v++) {
                VECTOR_ELEMENT *place = d + r * ldd + v * VECTOR_LANES;
                VECTOR_STORE(place, every ? VECTOR_ADD(VECTOR_LOAD(place), sum[r][v]) : sum[r][v]);
            }
    }
}

/* The elements of d by operations of `every` products in `lanes` chains; the last operation may have fewer products. */
VECTOR_TARGET static void CHAIN_NAME(run_lanes)(const VECTOR_ELEMENT *a, const VECTOR_ELEMENT *b, int64_t depth, int64_t every,
                                                int64_t lanes, VECTOR_ELEMENT *d, int64_t ldd)
{
    for (int64_t start = 0; start < depth; start += every) {
        const int64_t count = depth - start < every ? depth - start : every;
        VECTOR dot[MPG_CHAIN_ROWS][CHAIN_V];
        for (int r = 0; r < MPG_CHAIN_ROWS; r++)
            for (int v = 0; v < CHAIN_V; v++)
                dot[r][v] = VECTOR_SET(0);
        for (int64_t lane = 0; lane < lanes; lane++) {
            const int64_t own = (count - lane + lanes - 1) / lanes;
            VECTOR sum[MPG_CHAIN_ROWS][CHAIN_V];
            for (int r = 0; r < MPG_CHAIN_ROWS; r++)
                for (int v = 0; v < CHAIN_V; v++)
                    sum[r][v] = VECTOR_SET(0);
            CHAIN_NAME(multiply)(sum, a + start + lane, b + (start + lane) * CHAIN_W, own, lanes, 0);
            for (int r = 0; r < MPG_CHAIN_ROWS; r++)
                for (int v = 0; v < CHAIN_V; v++)
                    dot[r][v] = lane ? VECTOR_ADD(dot[r][v], sum[r][v]) : sum[r][v];
        }
        for (int r = 0; r < MPG_CHAIN_ROWS; r++)
            for (int v = 0; v < CHAIN_V; v++) {
                VECTOR_ELEMENT *place = d + r * ldd + v * VECTOR_LANES;
                VECTOR_STORE(place, VECTOR_ADD(VECTOR_LOAD(place), dot[r][v]));
            }
    }
}

VECTOR_TARGET static void CHAIN_NAME(whole)(const mpg_chain_job *job, const VECTOR_ELEMENT *a, const VECTOR_ELEMENT *b,
                                            int64_t depth, VECTOR_ELEMENT *d, int64_t ldd)
{
    if (job->lanes)
        CHAIN_NAME(run_lanes)(a, b, depth, job->every, job->lanes, d, ldd);
    else if (job->pairs)
        CHAIN_NAME(run)(a, b, depth, job->every, 1, d, ldd);
    else
        CHAIN_NAME(run)(a, b, depth, job->every, 0, d, ldd);
}

/* The elements at an edge of d, which has only `rows` rows and `columns` columns of the tile. */
VECTOR_TARGET static void CHAIN_NAME(edge)(const mpg_chain_job *job, const VECTOR_ELEMENT *a, const VECTOR_ELEMENT *b,
                                           int64_t depth, VECTOR_ELEMENT *d, int64_t ldd, int64_t rows, int64_t columns)
{
    VECTOR_ELEMENT whole[MPG_CHAIN_ROWS * CHAIN_W] = {0};
    for (int64_t r = 0; r < rows; r++)
        memcpy(whole + r * CHAIN_W, d + r * ldd, (size_t)columns * sizeof *d);
    CHAIN_NAME(whole)(job, a, b, depth, whole, CHAIN_W);
    for (int64_t r = 0; r < rows; r++)
        memcpy(d + r * ldd, whole + r * CHAIN_W, (size_t)columns * sizeof *d);
}

/* Sets one encoding of NaN in `rows` rows of `columns` results; returns whether a result is infinite or NaN. */
VECTOR_TARGET MPG_INLINE int CHAIN_NAME(finish)(CHAIN_BITS nan, CHAIN_BITS *d, int64_t ldd, int64_t rows, int64_t columns)
{
    const CHAIN_BITS infinity = CHAIN_INFINITY, magnitudes = (CHAIN_BITS)-1 >> 1;
    CHAIN_BITS special = 0; /* its highest bit counts */
    for (int64_t r = 0; r < rows; r++, d += ldd)
        for (int64_t j = 0; j < columns; j++) {
            const CHAIN_BITS bits = d[j], magnitude = bits & magnitudes;
            const CHAIN_BITS is_nan = (CHAIN_BITS)0 - ((infinity - magnitude) >> (8 * sizeof(CHAIN_BITS) - 1));
            special |= infinity - 1 - magnitude;
            d[j] = (nan & is_nan) | (bits & ~is_nan);
        }
    return special >> (8 * sizeof(CHAIN_BITS) - 1) != 0;
}

VECTOR_TARGET static int CHAIN_NAME(tile)(const mpg_chain_job *job, int64_t group0, int64_t group1, int64_t panel0,
                                          int64_t panel1)
{
    int special = 0;
    const VECTOR_ELEMENT *a = (const VECTOR_ELEMENT *)job->a, *b = (const VECTOR_ELEMENT *)job->b;
    for (int64_t k = 0, p = 0; k < job->drive.part; k += job->pass, p++) {
        const int64_t depth = job->drive.part - k < job->pass ? job->drive.part - k : job->pass;
        const int last = job->drive.begin + k + depth == job->drive.total;
        for (int64_t panel = panel0; panel < panel1; panel++) {
            const VECTOR_ELEMENT *column = b + (p * job->panels + panel) * job->pass * CHAIN_W;
            const int64_t j = panel * CHAIN_W, columns = job->drive.n - j < CHAIN_W ? job->drive.n - j : CHAIN_W;
            for (int64_t group = group0; group < group1; group++) {
                const VECTOR_ELEMENT *row = a + (p * job->groups + group) * MPG_CHAIN_ROWS * MPG_CHAIN_LONGEST;
                const int64_t i = group * MPG_CHAIN_ROWS,
                              rows = job->drive.m - i < MPG_CHAIN_ROWS ? job->drive.m - i : MPG_CHAIN_ROWS;
                VECTOR_ELEMENT *d = (VECTOR_ELEMENT *)job->drive.d + i * job->drive.n + j;
                const int whole = rows == MPG_CHAIN_ROWS && columns == CHAIN_W;
                if (whole)
                    CHAIN_NAME(whole)(job, row, column, depth, d, job->drive.n);
                else
                    CHAIN_NAME(edge)(job, row, column, depth, d, job->drive.n, rows, columns);
                if (last && whole)
                    special |= CHAIN_NAME(finish)((CHAIN_BITS)job->nan, (CHAIN_BITS *)d, job->drive.n, MPG_CHAIN_ROWS, CHAIN_W);
                else if (last)
                    special |= CHAIN_NAME(finish)((CHAIN_BITS)job->nan, (CHAIN_BITS *)d, job->drive.n, rows, columns);
            }
        }
    }
    return special;
}

#undef CHAIN_V
#undef CHAIN_W
