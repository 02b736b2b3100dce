/* Rows of A against a panel of B for one instruction set: included by pairwise.h for each, with MPG_VARIANT its suffix and
 * MPG_VARIANT_TARGET its attribute. */
#define MPG_PAIRWISE_NAMED(name, variant) mpg_pairwise_##name##_##variant
#define MPG_PAIRWISE_NAME(name, variant) MPG_PAIRWISE_NAMED(name, variant)

/* `rows` rows of A (a, rows k apart) over `length` products against `count` columns; `last`: no products follow. With `redo` sums
 * are exact, else GPS's. */
MPG_VARIANT_TARGET MPG_NOINLINE static void MPG_PAIRWISE_NAME(rows, MPG_VARIANT)(const mpg_pairwise_job *job, const float *a,
                                                                                 const float *b, float *d, uint8_t *redo,
                                                                                 int64_t rows, int count, int64_t length,
                                                                                 int last)
{
    for (int64_t i = 0; i < rows; i++, a += job->k, d += job->n) {
        uint8_t *marks = redo ? redo + i * job->n : NULL;
        if (redo && count == MPG_PAIRWISE_LANES && job->group == 4)
            mpg_exact_row(4, a, b, d, marks, MPG_PAIRWISE_LANES, length);
        else if (redo && count == MPG_PAIRWISE_LANES)
            mpg_exact_row(2, a, b, d, marks, MPG_PAIRWISE_LANES, length);
        else if (redo)
            mpg_exact_row(job->group, a, b, d, marks, count, length);
        else if (count == MPG_PAIRWISE_LANES && job->group == 4)
            mpg_pairwise_row(4, job->terms, a, b, d, MPG_PAIRWISE_LANES, length, last);
        else if (count == MPG_PAIRWISE_LANES)
            mpg_pairwise_row(2, job->terms, a, b, d, MPG_PAIRWISE_LANES, length, last);
        else
            mpg_pairwise_row(job->group, job->terms, a, b, d, count, length, last);
    }
}

#undef MPG_PAIRWISE_NAME
#undef MPG_PAIRWISE_NAMED
#undef MPG_VARIANT
#undef MPG_VARIANT_TARGET
