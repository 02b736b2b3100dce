/* One variant of the loops of exact.h, which includes this file once for each instruction set, after vector_set.h, with
 * EXACT_IFMA where it has the 52-bit integer multiply-add.
 */
#define EXACT_R MPG_SIZE(VECTOR_LEVEL, EXACT_ROWS_SIZES)
#define EXACT_W MPG_SIZE(VECTOR_LEVEL, EXACT_WIDTH_SIZES)
#define EXACT_V (EXACT_W / VECTOR_LANES)

/* ---- packing --------------------------------------------------------------------------------------------------------- */
VECTOR_TARGET static void VECTOR_NAME(exact_pack_a)(const void *source, int is_double, ptrdiff_t row, ptrdiff_t groups,
                                                    ptrdiff_t depth, double factor, double *values, uint64_t *integers)
{
    const ptrdiff_t group = EXACT_R * EXACT_DEPTH;
    ptrdiff_t offset = row / EXACT_R * group + row % EXACT_R * EXACT_DEPTH;
    for (ptrdiff_t k = 0; k < depth; k += EXACT_DEPTH, offset += groups * group) {
        const ptrdiff_t count = depth - k < EXACT_DEPTH ? depth - k : EXACT_DEPTH;
        double *MPG_RESTRICT target = values + offset;
        if (!source || factor == 0.0) /* 0: nothing may be decided by this row, which may hold infinities */
            memset(target, 0, (size_t)count * sizeof *target);
        else if (is_double)
            for (ptrdiff_t i = 0; i < count; i++)
                target[i] = ((const double *)source)[k + i] * factor;
        else
            for (ptrdiff_t i = 0; i < count; i++)
                target[i] = (double)((const float *)source)[k + i] * factor;
        if (integers) {
            uint64_t *MPG_RESTRICT integer = integers + offset;
            for (ptrdiff_t i = 0; i < count; i++)
                integer[i] = (uint64_t)(int64_t)target[i];
        }
    }
}

VECTOR_TARGET static void VECTOR_NAME(exact_pack_b)(const void *source, int is_double, ptrdiff_t columns, ptrdiff_t k,
                                                    const double *MPG_RESTRICT factors, double *values, uint64_t *integers,
                                                    ptrdiff_t panels)
{
    double row[EXACT_BLOCK + EXACT_MAX_WIDTH];
    const ptrdiff_t first = (k / EXACT_DEPTH * panels * EXACT_DEPTH + k % EXACT_DEPTH) * EXACT_W;
    if (is_double)
        for (ptrdiff_t i = 0; i < columns; i++)
            row[i] = factors[i] == 0.0 ? 0.0 : ((const double *)source)[i] * factors[i];
    else
        for (ptrdiff_t i = 0; i < columns; i++)
            row[i] = factors[i] == 0.0 ? 0.0 : (double)((const float *)source)[i] * factors[i];
    memset(row + columns, 0, EXACT_MAX_WIDTH * sizeof(double));
    for (ptrdiff_t panel = 0; panel < panels; panel++) {
        double *MPG_RESTRICT target = values + first + panel * EXACT_DEPTH * EXACT_W;
        for (int v = 0; v < EXACT_V; v++)
            VECTOR_STORE(target + v * VECTOR_LANES, VECTOR_LOAD(row + panel * EXACT_W + v * VECTOR_LANES));
        if (integers) {
            uint64_t *MPG_RESTRICT integer = integers + first + panel * EXACT_DEPTH * EXACT_W;
            for (int i = 0; i < EXACT_W; i++)
                integer[i] = (uint64_t)(int64_t)row[panel * EXACT_W + i];
        }
    }
}

VECTOR_TARGET static void VECTOR_NAME(exact_scan_columns)(const void *source, int is_double, ptrdiff_t count, double *largest,
                                                          double *smallest, double *squares)
{
    double part[EXACT_DEPTH];
    for (ptrdiff_t k = 0; k < count; k += EXACT_DEPTH) {
        const ptrdiff_t size = count - k < EXACT_DEPTH ? count - k : EXACT_DEPTH;
        if (is_double)
            memcpy(part, (const double *)source + k, (size_t)size * sizeof(double));
        else
            for (ptrdiff_t i = 0; i < size; i++)
                part[i] = ((const float *)source)[k + i];
        exact_scan_row(part, size, largest + k, smallest + k, squares + k);
    }
}

/* The same over one contiguous vector. */
VECTOR_TARGET static void VECTOR_NAME(exact_scan_vector)(const void *source, int is_double, ptrdiff_t count, double *largest,
                                                         double *smallest, double *squares)
{
    enum { LANES = 32 };
    double most[LANES], least[LANES], sums[LANES], part[LANES];
    for (int i = 0; i < LANES; i++) {
        most[i] = sums[i] = 0.0;
        least[i] = INFINITY;
    }
    for (ptrdiff_t k = 0; k < count; k += LANES) {
        const ptrdiff_t size = count - k < LANES ? count - k : LANES;
        if (size < LANES)
            memset(part, 0, sizeof part);
        if (is_double)
            memcpy(part, (const double *)source + k, (size_t)size * sizeof(double));
        else if (size == LANES)
            for (int i = 0; i < LANES; i++)
                part[i] = ((const float *)source)[k + i];
        else
            for (ptrdiff_t i = 0; i < size; i++)
                part[i] = ((const float *)source)[k + i];
        exact_scan_row(part, LANES, most, least, sums);
    }
    *largest = *squares = 0.0;
    *smallest = INFINITY;
    for (int i = 0; i < LANES; i++) {
        *largest = *largest > most[i] ? *largest : most[i];
        *smallest = *smallest < least[i] ? *smallest : least[i];
        *squares += sums[i];
    }
}

/* ---- chains ------------------------------------------------------------------------------------------------------------ */
/* S: chains of EXACT_CHAIN products, each added to the sum so far, so that a product meets few roundings. */
VECTOR_TARGET static void VECTOR_NAME(exact_chains)(const double *a, const double *b, ptrdiff_t depth, double *sums,
                                                    const double *next)
{
    for (ptrdiff_t start = 0; start < depth; start += EXACT_CHAIN) {
        const ptrdiff_t end = depth - start < EXACT_CHAIN ? depth : start + EXACT_CHAIN;
        VECTOR sum[EXACT_R][EXACT_V];
        for (int r = 0; r < EXACT_R; r++)
            for (int v = 0; v < EXACT_V; v++)
                sum[r][v] = VECTOR_SET(0.0);
        for (ptrdiff_t k = start; k < end; k++, b += EXACT_W) {
            VECTOR column[EXACT_V];
            VECTOR_PREFETCH(next + k * EXACT_R);
            for (int v = 0; v < EXACT_V; v++)
                column[v] = VECTOR_LOAD(b + v * VECTOR_LANES);
            for (int r = 0; r < EXACT_R; r++) {
                const VECTOR factor = VECTOR_SET(a[r * EXACT_DEPTH + k]);
                for (int v = 0; v < EXACT_V; v++)
                    sum[r][v] = VECTOR_MADD(factor, column[v], sum[r][v]);
            }
        }
        for (int r = 0; r < EXACT_R; r++)
            for (int v = 0; v < EXACT_V; v++) {
                double *place = sums + r * EXACT_W + v * VECTOR_LANES;
                VECTOR_STORE(place, VECTOR_ADD(VECTOR_LOAD(place), sum[r][v]));
            }
    }
    (void)next;
}

#ifdef EXACT_IFMA
/* The same, and L beside it. */
VECTOR_TARGET static void VECTOR_NAME(exact_both_chains)(const double *a, const double *b, const uint64_t *a_integer,
                                                         const uint64_t *b_integer, ptrdiff_t depth, double *sums,
                                                         uint64_t *residues)
{
    for (ptrdiff_t start = 0; start < depth; start += EXACT_CHAIN) {
        const ptrdiff_t end = depth - start < EXACT_CHAIN ? depth : start + EXACT_CHAIN;
        __m512d sum[EXACT_R][EXACT_V];
        __m512i residue[EXACT_R][EXACT_V];
        for (int r = 0; r < EXACT_R; r++)
            for (int v = 0; v < EXACT_V; v++) {
                sum[r][v] = _mm512_setzero_pd();
                residue[r][v] = _mm512_setzero_si512();
            }
        for (ptrdiff_t k = start; k < end; k++, b += EXACT_W, b_integer += EXACT_W) {
            __m512d column[EXACT_V];
            __m512i integer[EXACT_V];
            for (int v = 0; v < EXACT_V; v++) {
                column[v] = _mm512_loadu_pd(b + v * VECTOR_LANES);
                integer[v] = _mm512_loadu_si512(b_integer + v * VECTOR_LANES);
            }
            for (int r = 0; r < EXACT_R; r++) {
                const __m512d factor = _mm512_set1_pd(a[r * EXACT_DEPTH + k]);
                const __m512i other = _mm512_set1_epi64((long long)a_integer[r * EXACT_DEPTH + k]);
                for (int v = 0; v < EXACT_V; v++) {
                    sum[r][v] = _mm512_fmadd_pd(factor, column[v], sum[r][v]);
                    residue[r][v] = _mm512_madd52lo_epu64(residue[r][v], other, integer[v]);
                }
            }
        }
        for (int r = 0; r < EXACT_R; r++)
            for (int v = 0; v < EXACT_V; v++) {
                double *place = sums + r * EXACT_W + v * VECTOR_LANES;
                uint64_t *rest = residues + r * EXACT_W + v * VECTOR_LANES;
                _mm512_storeu_pd(place, _mm512_add_pd(_mm512_loadu_pd(place), sum[r][v]));
                _mm512_storeu_si512(rest, _mm512_add_epi64(_mm512_loadu_si512(rest), residue[r][v]));
            }
    }
}
#elif VECTOR_FUSED
/* The same without that instruction. A chain runs at 1.5 * 2^52 units of EXACT_UNIT, so that each multiply-add rounds the sum to a
 * multiple of the unit, and what it leaves of the product, at most half a unit, is exact and adds up exactly: 4 instructions a product.
 * This holds for partial sums below 2^51 units; where those of an element may be larger its bound says so, and L is not used. Of
 * operands that are no integers, all of them far below a unit, the second chain is S. */
VECTOR_TARGET static void VECTOR_NAME(exact_both_chains)(const double *a, const double *b, ptrdiff_t depth, double *sums,
                                                         uint64_t *residues)
{
    const VECTOR origin = VECTOR_SET(0x1.8p52 * EXACT_UNIT);
    double high[VECTOR_LANES], low[VECTOR_LANES];
    for (ptrdiff_t start = 0; start < depth; start += EXACT_CHAIN) {
        const ptrdiff_t end = depth - start < EXACT_CHAIN ? depth : start + EXACT_CHAIN;
        for (int first = 0; first < EXACT_R; first += 2) {
            VECTOR sum[2][EXACT_V], rest[2][EXACT_V];
            for (int r = 0; r < 2; r++)
                for (int v = 0; v < EXACT_V; v++) {
                    sum[r][v] = origin;
                    rest[r][v] = VECTOR_SET(0.0);
                }
            for (ptrdiff_t k = start; k < end; k++)
                for (int r = 0; r < 2; r++) {
                    const VECTOR factor = VECTOR_SET(a[(first + r) * EXACT_DEPTH + k]);
                    for (int v = 0; v < EXACT_V; v++) {
                        const VECTOR other = VECTOR_LOAD(b + k * EXACT_W + v * VECTOR_LANES);
                        const VECTOR next = VECTOR_MADD(factor, other, sum[r][v]);
                        rest[r][v] = VECTOR_ADD(rest[r][v], VECTOR_MADD(factor, other, sum[r][v] - next));
                        sum[r][v] = next;
                    }
                }
            for (int r = 0; r < 2; r++)
                for (int v = 0; v < EXACT_V; v++) {
                    const ptrdiff_t place = (first + r) * EXACT_W + v * VECTOR_LANES;
                    VECTOR_STORE(sums + place,
                                 VECTOR_ADD(VECTOR_LOAD(sums + place), VECTOR_ADD(sum[r][v] - origin, rest[r][v])));
                    VECTOR_STORE(high, sum[r][v]);
                    VECTOR_STORE(low, VECTOR_ADD(rest[r][v], VECTOR_SET(0x1.8p52)));
                    for (int i = 0; i < VECTOR_LANES; i++)
                        residues[place + i] +=
                            (exact_bits(high[i]) - exact_bits(0x1.8p52 * EXACT_UNIT)) * (uint64_t)EXACT_UNIT +
                            (exact_bits(low[i]) - exact_bits(0x1.8p52));
                }
        }
    }
}
#else
VECTOR_TARGET static void VECTOR_NAME(exact_residues)(const uint64_t *a, const uint64_t *b, ptrdiff_t depth, uint64_t *residues)
{
    for (int r = 0; r < EXACT_R; r++) {
        uint64_t sum[EXACT_W];
        memcpy(sum, residues + r * EXACT_W, sizeof sum);
        for (ptrdiff_t k = 0; k < depth; k++) {
            const uint64_t factor = a[r * EXACT_DEPTH + k];
            const uint64_t *MPG_RESTRICT row = b + k * EXACT_W;
            for (int c = 0; c < EXACT_W; c++)
                sum[c] += factor * row[c];
        }
        memcpy(residues + r * EXACT_W, sum, sizeof sum);
    }
}
#endif

/* Groups [group0, group1) and panels [panel0, panel1) over the whole slice of k. */
VECTOR_TARGET static void VECTOR_NAME(exact_tile)(const exact_block *block, ptrdiff_t group0, ptrdiff_t group1,
                                                  ptrdiff_t panel0, ptrdiff_t panel1)
{
    const ptrdiff_t size = EXACT_R * EXACT_W;
    for (ptrdiff_t k = 0, p = 0; k < block->depth; k += EXACT_DEPTH, p++) {
        const ptrdiff_t depth = block->depth - k < EXACT_DEPTH ? block->depth - k : EXACT_DEPTH;
        for (ptrdiff_t panel = panel0; panel < panel1; panel++)
            for (ptrdiff_t group = group0; group < group1; group++) {
                const ptrdiff_t a = (p * block->groups + group) * EXACT_R * EXACT_DEPTH;
                const ptrdiff_t b = (p * block->panels + panel) * EXACT_W * EXACT_DEPTH;
                const ptrdiff_t s = (panel * block->groups + group) * size;
                if (block->fresh && k == 0) {
                    memset(block->sums + s, 0, (size_t)size * sizeof(double));
                    if (block->residues)
                        memset(block->residues + s, 0, (size_t)size * sizeof(uint64_t));
                }
#ifdef EXACT_IFMA
                if (block->residues) {
                    VECTOR_NAME(exact_both_chains)(block->a + a, block->b + b, block->a_integer + a, block->b_integer + b,
                                                   depth, block->sums + s, block->residues + s);
                    continue;
                }
#elif VECTOR_FUSED
                if (block->residues) {
                    VECTOR_NAME(exact_both_chains)(block->a + a, block->b + b, depth, block->sums + s, block->residues + s);
                    continue;
                }
#else
                if (block->residues)
                    VECTOR_NAME(exact_residues)(block->a_integer + a, block->b_integer + b, depth, block->residues + s);
#endif
                VECTOR_NAME(exact_chains)(block->a + a, block->b + b, depth, block->sums + s,
                                          block->a + a + EXACT_R * EXACT_DEPTH);
            }
    }
}

/* ---- after the chains -------------------------------------------------------------------------------------------------- */
/* FP32 results of `count` <= W sums of one row where S and its bound settle them; open[i] = 1 where they do not. Units give
 * values their scale back; sums of a magnitude that could leave binary64's exponents stay open. Returns how many are open. */
VECTOR_TARGET static ptrdiff_t VECTOR_NAME(exact_certify)(const double *MPG_RESTRICT sums, ptrdiff_t count, double row_bound,
                                                          const double *MPG_RESTRICT column_bounds, double row_unit,
                                                          const double *MPG_RESTRICT column_units, const double *MPG_RESTRICT c,
                                                          float *MPG_RESTRICT out, uint8_t *MPG_RESTRICT open)
{
    ptrdiff_t left = 0;
    double settled[EXACT_W];
    for (ptrdiff_t i = 0; i < count; i++) {
        const double unit = row_unit * column_units[i], spread = row_bound * column_bounds[i];
        const double sum = sums[i] * unit, value = c ? sum + c[i] : sum;
        const double margin = (spread * unit) * (1.0 + 0x1p-20) + fabs(value) * 0x1p-51;
        const float low = (float)(value - margin), high = (float)(value + margin);
        const double size = fabs(value);
        /* low == high rejects NaN; the range keeps the units exact; a sum of zeros is 0 */
        const int sure = ((low == high) & (size > 0x1p-900) & (size < 0x1p900)) | ((size == 0.0) & (spread == 0.0));
        settled[i] = sure ? 1.0 : 0.0;
        out[i] = high;
    }
    for (ptrdiff_t i = 0; i < count; i++) {
        open[i] = settled[i] == 0.0;
        left += open[i];
    }
    return left;
}

/* S and D of `count` <= W sums of one row; open[i] = 1 where the bound is too large for them. */
VECTOR_TARGET static void VECTOR_NAME(exact_expand)(const double *MPG_RESTRICT sums, const uint64_t *MPG_RESTRICT residues,
                                                    ptrdiff_t count, double row_bound, const double *MPG_RESTRICT column_bounds,
                                                    double *MPG_RESTRICT high, double *MPG_RESTRICT low,
                                                    uint8_t *MPG_RESTRICT open)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        const double sum = row_bound * column_bounds[i] < 0x1p50 ? sums[i] : 0.0;
        /* S is below 2^105 here (its bound is), so the quotient rounds to an integer by adding 1.5 * 2^52 */
        const double quotient = (sum * 0x1p-52 + 0x1.8p52) - 0x1.8p52;
        const double rest = sum - quotient * 0x1p52; /* exact: at most 2^51 in magnitude */
        const uint64_t difference = residues[i] - (uint64_t)(int64_t)rest;
        const int64_t centred = (int64_t)((difference + (UINT64_C(1) << 51)) & ((UINT64_C(1) << 52) - 1)) - (INT64_C(1) << 51);
        high[i] = sum;
        low[i] = (double)centred;
    }
    for (ptrdiff_t i = 0; i < count; i++)
        open[i] = !(row_bound * column_bounds[i] < 0x1p50);
}

/* What is asked of (high + low) * units for `count` elements of one row without an addend. choose_scale keeps units within
 * 2^453 of 1, so that nothing here leaves binary64's range; x that is not finite is its own difference. */
VECTOR_TARGET static void VECTOR_NAME(exact_finish)(const double *MPG_RESTRICT high, const double *MPG_RESTRICT low,
                                                    ptrdiff_t count, double row_unit, const double *MPG_RESTRICT column_units,
                                                    const double *MPG_RESTRICT x, int what, double *MPG_RESTRICT out)
{
    if (what == EXACT_DIFFERENCE) {
        for (ptrdiff_t i = 0; i < count; i++) {
            const double unit = row_unit * column_units[i];
            const double difference = exact_three_sum(x[i], -(high[i] * unit), -(low[i] * unit), EXACT_NEAREST);
            out[i] = fabs(x[i]) <= DBL_MAX ? difference : x[i];
        }
    } else if (what == EXACT_ODD) {
        for (ptrdiff_t i = 0; i < count; i++) {
            const double unit = row_unit * column_units[i];
            out[i] = exact_odd_sum(high[i] * unit, low[i] * unit);
        }
    } else {
        for (ptrdiff_t i = 0; i < count; i++) {
            const double unit = row_unit * column_units[i];
            out[i] = high[i] * unit + low[i] * unit;
        }
    }
}

#undef EXACT_R
#undef EXACT_W
#undef EXACT_V
#undef EXACT_IFMA
