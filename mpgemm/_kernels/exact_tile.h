/* One variant of the loops of exact.h, which includes this file once for each instruction set, after vector_set.h, with
 * EXACT_IFMA where it has the 52-bit integer multiply-add.
 */
#define EXACT_R MPG_SIZE(VECTOR_LEVEL, EXACT_ROWS_SIZES)
#define EXACT_W MPG_SIZE(VECTOR_LEVEL, EXACT_WIDTH_SIZES)
#define EXACT_V (EXACT_W / VECTOR_LANES)

/* ---- packing --------------------------------------------------------------------------------------------------------- */
/* `count` elements as doubles, times a factor. */
VECTOR_TARGET MPG_INLINE void VECTOR_NAME(exact_read)(const char *source, int is_double, ptrdiff_t count, double factor,
                                                      double *MPG_RESTRICT out)
{
    if (is_double)
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] = ((const double *)(const void *)source)[i] * factor;
    else
        for (ptrdiff_t i = 0; i < count; i++)
            out[i] = ((const float *)(const void *)source)[i] * factor;
}

VECTOR_TARGET MPG_INLINE void VECTOR_NAME(exact_integers)(const double *MPG_RESTRICT values, ptrdiff_t count,
                                                          uint64_t *MPG_RESTRICT integers)
{
    for (ptrdiff_t i = 0; i < count; i++)
        integers[i] = (uint64_t)(int64_t)values[i];
}

/* Row `row` of the block, or zeros below it. */
VECTOR_TARGET static void VECTOR_NAME(exact_pack_row)(const mpg_drive *drive, int64_t row)
{
    const exact_job *job = (const exact_job *)drive;
    const double factor = row < drive->m ? job->a.factors[job->row + row] : 0.0;
    ptrdiff_t place = row / EXACT_R * EXACT_R * EXACT_DEPTH + row % EXACT_R * EXACT_DEPTH;
    for (ptrdiff_t k = 0; k < drive->part; k += EXACT_DEPTH, place += job->grid.groups * EXACT_R * EXACT_DEPTH) {
        const ptrdiff_t count = drive->part - k < EXACT_DEPTH ? drive->part - k : EXACT_DEPTH;
        double *MPG_RESTRICT target = job->packed_a + place;
        if (factor == 0.0)
            memset(target, 0, (size_t)count * sizeof *target);
        else
            VECTOR_NAME(exact_read)(exact_at(&job->a, job->row + row, drive->begin + k), job->a.is_double, count, factor,
                                    target);
        if (job->integer_a)
            VECTOR_NAME(exact_integers)(target, count, job->integer_a + place);
    }
}

/* A few positions of the slice of B. */
VECTOR_TARGET static void VECTOR_NAME(exact_pack_positions)(const mpg_drive *drive, int64_t piece)
{
    const exact_job *job = (const exact_job *)drive;
    const double *MPG_RESTRICT factors = job->b.factors + job->column;
    double row[EXACT_BLOCK + EXACT_MAX_WIDTH];
    for (int64_t k = piece * MPG_POSITIONS; k < (piece + 1) * MPG_POSITIONS && k < drive->part; k++) {
        ptrdiff_t place = (k / EXACT_DEPTH * job->grid.panels * EXACT_DEPTH + k % EXACT_DEPTH) * EXACT_W;
        VECTOR_NAME(exact_read)(exact_at(&job->b, drive->begin + k, job->column), job->b.is_double, drive->n, 1.0, row);
        for (ptrdiff_t i = 0; i < drive->n; i++)
            row[i] = factors[i] == 0.0 ? 0.0 : row[i] * factors[i];
        memset(row + drive->n, 0, EXACT_MAX_WIDTH * sizeof(double));
        for (ptrdiff_t panel = 0; panel < job->grid.panels; panel++, place += EXACT_DEPTH * EXACT_W) {
            memcpy(job->packed_b + place, row + panel * EXACT_W, EXACT_W * sizeof(double));
            if (job->integer_b)
                VECTOR_NAME(exact_integers)(row + panel * EXACT_W, EXACT_W, job->integer_b + place);
        }
    }
}

/* The extent of every column of B. */
VECTOR_TARGET static void VECTOR_NAME(exact_scan_columns)(const exact_job *job)
{
    double part[EXACT_DEPTH];
    for (int64_t k = 0; k < job->b.rows; k++)
        for (int64_t first = 0; first < job->b.columns; first += EXACT_DEPTH) {
            const ptrdiff_t count = job->b.columns - first < EXACT_DEPTH ? job->b.columns - first : EXACT_DEPTH;
            const exact_extent extent = {job->extent.largest + first, job->extent.smallest + first,
                                         job->extent.squares + first};
            VECTOR_NAME(exact_read)(exact_at(&job->b, k, first), job->b.is_double, count, 1.0, part);
            exact_scan_row(part, count, &extent);
        }
}

/* The extent of one row of A. */
VECTOR_TARGET static void VECTOR_NAME(exact_scan_vector)(const exact_matrix *x, int64_t row, const exact_extent *extent)
{
    enum { LANES = 32 };
    double most[LANES], least[LANES], sums[LANES], part[LANES];
    const exact_extent lanes = {most, least, sums};
    for (int i = 0; i < LANES; i++) {
        most[i] = sums[i] = 0.0;
        least[i] = INFINITY;
    }
    for (int64_t k = 0; k < x->columns; k += LANES) {
        const ptrdiff_t count = x->columns - k < LANES ? x->columns - k : LANES;
        if (count < LANES)
            memset(part, 0, sizeof part);
        VECTOR_NAME(exact_read)(exact_at(x, row, k), x->is_double, count, 1.0, part);
        exact_scan_row(part, LANES, &lanes);
    }
    *extent->largest = *extent->squares = 0.0;
    *extent->smallest = INFINITY;
    for (int i = 0; i < LANES; i++) {
        *extent->largest = *extent->largest > most[i] ? *extent->largest : most[i];
        *extent->smallest = *extent->smallest < least[i] ? *extent->smallest : least[i];
        *extent->squares += sums[i];
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
                            (mpg_as_bits64(high[i]) - mpg_as_bits64(0x1.8p52 * EXACT_UNIT)) * (uint64_t)EXACT_UNIT +
                            (mpg_as_bits64(low[i]) - mpg_as_bits64(0x1.8p52));
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

/* Groups of rows and panels of a tile over the whole slice of k. */
VECTOR_TARGET static void VECTOR_NAME(exact_tile)(const mpg_drive *drive, int64_t block, int64_t panel_of_tiles)
{
    const exact_job *job = (const exact_job *)drive;
    const mpg_grid_part part = mpg_part_of(&job->grid, block, panel_of_tiles);
    for (ptrdiff_t k = 0, p = 0; k < drive->part; k += EXACT_DEPTH, p++) {
        const ptrdiff_t depth = drive->part - k < EXACT_DEPTH ? drive->part - k : EXACT_DEPTH;
        for (ptrdiff_t panel = part.panel; panel < part.panel_end; panel++)
            for (ptrdiff_t group = part.group; group < part.group_end; group++) {
                const ptrdiff_t at_a = (p * job->grid.groups + group) * EXACT_R * EXACT_DEPTH;
                const ptrdiff_t at_b = (p * job->grid.panels + panel) * EXACT_W * EXACT_DEPTH;
                const ptrdiff_t place = exact_place(&job->grid, EXACT_R, EXACT_W, group * EXACT_R, panel);
                const double *a = job->packed_a + at_a, *b = job->packed_b + at_b;
                double *sums = job->sums + place;
                uint64_t *residues = job->residues ? job->residues + place : NULL;
                if (drive->begin == 0 && k == 0) {
                    memset(sums, 0, EXACT_R * EXACT_W * sizeof *sums);
                    if (residues)
                        memset(residues, 0, EXACT_R * EXACT_W * sizeof *residues);
                }
#ifdef EXACT_IFMA
                if (residues) {
                    VECTOR_NAME(exact_both_chains)(a, b, job->integer_a + at_a, job->integer_b + at_b, depth, sums, residues);
                    continue;
                }
#elif VECTOR_FUSED
                if (residues) {
                    VECTOR_NAME(exact_both_chains)(a, b, depth, sums, residues);
                    continue;
                }
#else
                if (residues)
                    VECTOR_NAME(exact_residues)(job->integer_a + at_a, job->integer_b + at_b, depth, residues);
#endif
                VECTOR_NAME(exact_chains)(a, b, depth, sums, a + EXACT_R * EXACT_DEPTH);
            }
    }
}

/* ---- after the chains -------------------------------------------------------------------------------------------------- */
/* FP32 results of rows of the block where S and its bound settle them; open = 1 where they do not. Units give values their scale
 * back; sums of a magnitude that could leave binary64's exponents stay open. */
VECTOR_TARGET static int VECTOR_NAME(exact_certify)(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_job *job = exact_job_of(batch);
    for (int64_t row = first; row < last; row++)
        for (int64_t panel = 0; panel < job->grid.panels; panel++) {
            const int64_t column = job->column + panel * EXACT_W, place = (job->row + row) * job->b.columns + column;
            const ptrdiff_t count = job->drive.n - panel * EXACT_W < EXACT_W ? job->drive.n - panel * EXACT_W : EXACT_W;
            const double *MPG_RESTRICT sums = job->sums + exact_place(&job->grid, EXACT_R, EXACT_W, row, panel);
            const double *MPG_RESTRICT bounds = job->b.bounds + column, *MPG_RESTRICT units = job->b.units + column;
            const double *MPG_RESTRICT c = job->c ? job->c + place : NULL;
            const double row_bound = job->a.bounds[job->row + row], row_unit = job->a.units[job->row + row];
            float *MPG_RESTRICT out = job->out + place;
            uint8_t *MPG_RESTRICT open = job->open + place;
            double settled[EXACT_W];
            for (ptrdiff_t i = 0; i < count; i++) {
                const double unit = row_unit * units[i], spread = row_bound * bounds[i];
                const double sum = sums[i] * unit, value = c ? sum + c[i] : sum;
                const double margin = (spread * unit) * (1.0 + 0x1p-20) + fabs(value) * 0x1p-51;
                const float low = (float)(value - margin), high = (float)(value + margin);
                const double size = fabs(value);
                /* low == high rejects NaN; the range keeps the units exact; a sum of zeros is 0 */
                const int sure = ((low == high) & (size > 0x1p-900) & (size < 0x1p900)) | ((size == 0.0) & (spread == 0.0));
                settled[i] = sure ? 1.0 : 0.0;
                out[i] = high;
            }
            for (ptrdiff_t i = 0; i < count; i++)
                open[i] = settled[i] == 0.0;
        }
    return 1;
}

/* S and D of one row of the block; open = 1 where the bound is too large for them. */
VECTOR_TARGET MPG_INLINE void VECTOR_NAME(exact_expand_row)(const exact_job *job, int64_t row, double *row_high,
                                                            double *row_low)
{
    const double row_bound = job->a.limits[job->row + row];
    for (int64_t panel = 0; panel < job->grid.panels; panel++) {
        const int64_t first = panel * EXACT_W, place = exact_place(&job->grid, EXACT_R, EXACT_W, row, panel);
        const ptrdiff_t count = job->drive.n - first < EXACT_W ? job->drive.n - first : EXACT_W;
        const double *MPG_RESTRICT sums = job->sums + place, *MPG_RESTRICT bounds = job->b.limits + job->column + first;
        const uint64_t *MPG_RESTRICT residues = job->residues + place;
        double *MPG_RESTRICT high = row_high + first, *MPG_RESTRICT low = row_low + first;
        uint8_t *MPG_RESTRICT open = job->open + (job->row + row) * job->b.columns + job->column + first;
        for (ptrdiff_t i = 0; i < count; i++) {
            const double sum = row_bound * bounds[i] < 0x1p50 ? sums[i] : 0.0;
            /* S is below 2^105 here (its bound is), so the quotient rounds to an integer by adding 1.5 * 2^52 */
            const double quotient = (sum * 0x1p-52 + 0x1.8p52) - 0x1.8p52;
            const double rest = sum - quotient * 0x1p52; /* exact: at most 2^51 in magnitude */
            const uint64_t difference = residues[i] - (uint64_t)(int64_t)rest + (UINT64_C(1) << 51);
            high[i] = sum;
            low[i] = (double)((int64_t)(difference & ((UINT64_C(1) << 52) - 1)) - (INT64_C(1) << 51));
        }
        for (ptrdiff_t i = 0; i < count; i++)
            open[i] = !(row_bound * bounds[i] < 0x1p50);
    }
}

VECTOR_TARGET static int VECTOR_NAME(exact_expand)(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_job *job = exact_job_of(batch);
    for (int64_t row = first; row < last; row++) {
        const int64_t place = (job->row + row) * job->b.columns + job->column;
        VECTOR_NAME(exact_expand_row)(job, row, job->high + place, job->low + place);
    }
    return 1;
}

/* What is asked of (high + low) * units for `count` elements of one row without an addend. exact_choose_scale keeps units within
 * 2^453 of 1, so that nothing here leaves binary64's range; x that is not finite is its own difference. */
VECTOR_TARGET MPG_INLINE void VECTOR_NAME(exact_finish_row)(const double *MPG_RESTRICT high, const double *MPG_RESTRICT low,
                                                            ptrdiff_t count, double row_unit,
                                                            const double *MPG_RESTRICT column_units,
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

/* FP32 results of rows of the block from S and D. */
VECTOR_TARGET static int VECTOR_NAME(exact_settle)(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_job *job = exact_job_of(batch);
    const ptrdiff_t count = job->drive.n;
    const double *units = job->b.units + job->column;
    double high[EXACT_BLOCK], low[EXACT_BLOCK],
        odd[EXACT_BLOCK]; /* an odd last bit: rounding it once more is rounding the value */
    for (int64_t row = first; row < last; row++) {
        const int64_t place = (job->row + row) * job->b.columns + job->column;
        const double unit = job->a.units[job->row + row];
        VECTOR_NAME(exact_expand_row)(job, row, high, low);
        if (job->c)
            for (ptrdiff_t i = 0; i < count; i++)
                odd[i] = exact_finish(high[i], low[i], unit, units[i], job->c[place + i], EXACT_ODD, 0.0);
        else
            VECTOR_NAME(exact_finish_row)(high, low, count, unit, units, NULL, EXACT_ODD, odd);
        for (ptrdiff_t i = 0; i < count; i++)
            job->out[place + i] = (float)odd[i];
    }
    return 1;
}

VECTOR_TARGET static int VECTOR_NAME(exact_finish_rows)(const mpg_batch *batch, int64_t first, int64_t last)
{
    const exact_finishing *job = (const exact_finishing *)batch;
    for (int64_t row = first, n = job->n; row < last; row++) {
        const double *high = job->high + row * n, *low = job->low + row * n, *x = job->x ? job->x + row * n : NULL;
        double *out = job->out + row * n;
        if (job->c)
            for (int64_t i = 0; i < n; i++)
                out[i] = exact_finish(high[i], low[i], job->row_units[row], job->column_units[i], job->c[row * n + i],
                                      job->what, x ? x[i] : 0.0);
        else
            VECTOR_NAME(exact_finish_row)(high, low, n, job->row_units[row], job->column_units, x, job->what, out);
    }
    return 1;
}

#undef EXACT_R
#undef EXACT_W
#undef EXACT_V
#undef EXACT_IFMA
