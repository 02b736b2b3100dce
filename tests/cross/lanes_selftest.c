/* Runs the plain-C lanes on the cases that make_cases.py wrote and compares bits; for machines that cannot run the test suite.
 *
 * A case: int64 header[8] = {kind, m, n, positions, k, size of an encoding, words of the task, 0}; mpg_operand a, b; the task;
 * int32 order[positions]; encodings a[m][k], b[k][n]; float c[m][n]; uint32 expected[m][n]; uint8 left_out[m][n].
 */
#include <stdio.h>
#include <stdlib.h>

#include "narrow_tiles.h"
#include "pairwise.h"
#include "wide_avx512.h"

static void *read_part(FILE *file, size_t bytes)
{
    void *part = calloc(bytes + 64, 1);
    if (!part || (bytes && fread(part, 1, bytes, file) != bytes)) {
        fprintf(stderr, "the file of cases ends too early\n");
        exit(2);
    }
    return part;
}

static void run_narrow(const int64_t *h, const mpg_operand *f, const void *task, const mpg_source *a, const mpg_source *b,
                       float *d, uint8_t *redo)
{
    const int64_t m = h[1], n = h[2], length = h[3], padded = mpg_padded_columns(n);
    float *av = calloc((size_t)(m * length), 4), *bv = calloc((size_t)(padded * length), 4);
    uint32_t *ae = calloc((size_t)(m * length), 4);
    uint8_t *be = calloc((size_t)(padded * length), 1), *rows = calloc((size_t)m, 1), *columns = calloc((size_t)n, 1);
    for (int64_t i = 0; i < m; i++)
        mpg_narrow_pack_a(a, f, i, 0, length, 0, av + i * length, ae + i * length, rows, MPG_ISA_BASELINE);
    for (int64_t p = 0; p < mpg_panels(n); p++) {
        const int64_t first = mpg_panel_start(n, p);
        const int count = mpg_panel_count(n, p), width = mpg_panel_width(n, p);
        mpg_narrow_pack_b(b, f + 1, first, count, width, 0, length, bv + first * length, be + first * length, columns,
                          MPG_ISA_BASELINE);
        mpg_narrow_tile(task, av, ae, length, m, bv + first * length, be + first * length, width, count, d + first,
                        redo + first, n, MPG_ISA_BASELINE);
    }
    free(av), free(bv), free(ae), free(be), free(rows), free(columns);
}

static void run_wide(const int64_t *h, const mpg_operand *f, const void *task, const mpg_source *a, const mpg_source *b,
                     float *d, uint8_t *redo)
{
    const int64_t m = h[1], n = h[2], length = h[3], panels = (n + MPG_WIDE - 1) / MPG_WIDE;
    double *av = calloc((size_t)(m * length), 8), *bv = calloc((size_t)(panels * MPG_WIDE * length), 8);
    uint32_t *ae = calloc((size_t)(m * length), 4), *al = calloc((size_t)(m * length), 4);
    int16_t *be = calloc((size_t)(panels * MPG_WIDE * length), 2), *bl = calloc((size_t)(panels * MPG_WIDE * length), 2);
    uint8_t *rows = calloc((size_t)m, 1), *columns = calloc((size_t)n, 1);
    const int signs = MPG_WIDE_TRUNCATES((const mpg_wide_task *)task);
    for (int64_t i = 0; i < m; i++)
        mpg_wide_pack_a(a, f, i, 0, length, 0, signs, av + i * length, ae + i * length, al + i * length, rows,
                        MPG_ISA_BASELINE);
    for (int64_t p = 0; p < panels; p++) {
        const int64_t first = p * MPG_WIDE;
        const int count = (int)(n - first < MPG_WIDE ? n - first : MPG_WIDE);
        mpg_wide_pack_b(b, f + 1, first, count, 0, length, signs, bv + first * length, be + first * length, bl + first * length,
                        columns, MPG_ISA_BASELINE);
        mpg_wide_tile(task, av, ae, al, length, m, bv + first * length, be + first * length, bl + first * length, count,
                      d + first, redo + first, n, MPG_ISA_BASELINE);
    }
    free(av), free(bv), free(ae), free(al), free(be), free(bl), free(rows), free(columns);
}

int main(int count, char **arguments)
{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: %s FILE_OF_CASES\n", arguments[0]);
        return 2;
    }
    int64_t h[8], cases = 0, compared = 0, handed_on = 0, wrong = 0;
    while (fread(h, sizeof(h), 1, file) == 1) {
        const int64_t elements = h[1] * h[2];
        mpg_operand *f = read_part(file, 2 * sizeof(mpg_operand));
        void *task = read_part(file, (size_t)h[6] * 4);
        int32_t *order = read_part(file, (size_t)h[3] * 4);
        void *a = read_part(file, (size_t)(h[1] * h[4] * h[5])), *b = read_part(file, (size_t)(h[4] * h[2] * h[5]));
        float *d = read_part(file, (size_t)elements * 4);
        uint32_t *expected = read_part(file, (size_t)elements * 4);
        uint8_t *left_out = read_part(file, (size_t)elements), *redo = calloc((size_t)elements + 64, 1);
        const mpg_source left = {a, h[4], 1, order, NULL, 0, 0, 1}, right = {b, 1, h[2], order, NULL, 0, 0, 1};
        (h[0] ? run_wide : run_narrow)(h, f, task, &left, &right, d, redo);
        for (int64_t i = 0; i < elements; i++)
            if (redo[i]) {
                handed_on++; /* to the generic kernel */
            } else if (!left_out[i]) {
                compared++;
                if (mpg_as_bits(d[i]) != expected[i] && wrong++ < 5)
                    printf("case %lld element %lld: %08x, expected %08x\n", (long long)cases, (long long)i, mpg_as_bits(d[i]),
                           expected[i]);
            }
        cases++;
        free(f), free(task), free(order), free(a), free(b), free(d), free(expected), free(left_out), free(redo);
    }
    printf("%lld cases, %lld elements, %lld handed on, %lld wrong\n", (long long)cases, (long long)compared,
           (long long)handed_on, (long long)wrong);
    return cases == 0 || wrong > 0;
}
