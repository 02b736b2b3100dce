/* Runs the plain-C lanes of group sums and of integers on the cases that make_group_cases.py wrote and compares bits.
 *
 * A case: int64 header[5] = {1 for group sums, m, n, k, products of one scale}; the task as int32; encodings a[m][k], b[k][n];
 * uint32 c[m][n], expected[m][n]. Group sums have behind the task, for a and then b: int8 numbers[256], double scales[256],
 * int16 exponents[256], uint8 special[256]; behind b: the scales of a and of b. Integers have the task {terms, clamp, keep and flip of
 * a and of b}.
 */
#include <stdio.h>

#include "groups_items.h"
#include "integer_items.h"

static void *read_part(FILE *file, size_t bytes)
{
    void *part = calloc(bytes + 64, 1);
    if (!part || (bytes && fread(part, 1, bytes, file) != bytes)) {
        fprintf(stderr, "the file of cases ends too early\n");
        exit(2);
    }
    return part;
}

/* Both ways round: lanes over the columns of B, and over the rows of A. Memory is not given back: the program ends soon. */
static int run_groups(FILE *file, const int64_t *h, int swapped, const int32_t *words, mpg_group_source *tables, void **d)
{
    const int64_t m = h[1], n = h[2], k = h[3], blocks = (k + h[4] - 1) / h[4];
    if (file) {
        for (int i = 0; i < 2; i++) {
            tables[i].values = read_part(file, 256);
            tables[i].scale_values = read_part(file, 256 * 8);
            tables[i].scale_exponents = read_part(file, 256 * 2);
            tables[i].scale_special = read_part(file, 256);
            tables[i].k = k;
            tables[i].given = words[0];
            tables[i].block_size = (int)h[4];
        }
        tables[0].data = read_part(file, (size_t)(m * k));
        tables[1].data = read_part(file, (size_t)(k * n));
        tables[0].scales = read_part(file, (size_t)(m * blocks));
        tables[1].scales = read_part(file, (size_t)(blocks * n));
        tables[0].outer = k, tables[0].inner = 1, tables[0].scale_outer = blocks, tables[0].scale_inner = 1;
        tables[1].outer = 1, tables[1].inner = n, tables[1].scale_outer = 1, tables[1].scale_inner = n;
        *d = read_part(file, (size_t)(m * n * 4));
        return 0;
    }
    uint8_t mark = 0;
    mpg_group_items job = {.a = tables[swapped],
                           .b = tables[!swapped],
                           .rows = swapped ? n : m,
                           .columns = swapped ? m : n,
                           .row_step = swapped ? 1 : n,
                           .column_step = swapped ? n : 1,
                           .d = *d,
                           .marks = &mark};
    memcpy(&job.task, words, sizeof(job.task));
    job.task.group += job.task.group % 2;
    job.groups = (k + (int64_t)words[0] * words[1] - 1) / ((int64_t)words[0] * words[1]) * words[1];
    return mpg_group_run_items(&job.batch, 0, 1) && !mark;
}

static int run_integers(const int64_t *h, int swapped, const int32_t *words, const void *a, const void *b, void *d)
{
    const int64_t m = h[1], n = h[2], k = h[3];
    const mpg_integer_source x = {a, k, 1, k, words[2], words[3]}, y = {b, 1, n, k, words[4], words[5]};
    const mpg_integer_items job = {.task = {words[0], words[1]},
                                   .a = swapped ? y : x,
                                   .b = swapped ? x : y,
                                   .rows = swapped ? n : m,
                                   .columns = swapped ? m : n,
                                   .length = k + k % 2,
                                   .row_step = swapped ? 1 : n,
                                   .column_step = swapped ? n : 1,
                                   .d = d};
    return mpg_integer_run_items(&job.batch, 0, 1);
}

int main(int count, char **arguments)
{
    FILE *file = count == 2 ? fopen(arguments[1], "rb") : NULL;
    if (!file) {
        fprintf(stderr, "usage: %s FILE_OF_CASES\n", arguments[0]);
        return 2;
    }
    int64_t h[5], cases = 0, left_out = 0, wrong = 0;
    while (fread(h, sizeof(h), 1, file) == 1) {
        const size_t size = (size_t)(h[1] * h[2] * 4);
        mpg_group_source tables[2] = {{0}, {0}};
        const int32_t *words = read_part(file, h[0] ? sizeof(mpg_group_task) : 6 * 4);
        void *a = NULL, *b = NULL, *c = NULL;
        if (h[0]) {
            run_groups(file, h, 0, words, tables, &c);
        } else {
            a = read_part(file, (size_t)(h[1] * h[3])), b = read_part(file, (size_t)(h[3] * h[2]));
            c = read_part(file, size);
        }
        const uint32_t *expected = read_part(file, size);
        for (int swapped = 0; swapped < 2; swapped++) {
            void *d = malloc(size);
            memcpy(d, c, size);
            if (h[0] ? run_groups(NULL, h, swapped, words, tables, &d) : run_integers(h, swapped, words, a, b, d)) {
                if (memcmp(d, expected, size) && wrong++ < 5)
                    printf("case %lld, swapped %d: wrong\n", (long long)cases, swapped);
            } else {
                left_out++;
            }
        }
        cases++;
    }
    printf("%lld cases of group sums and integers, %lld runs left out, %lld wrong\n", (long long)cases, (long long)left_out,
           (long long)wrong);
    return cases == 0 || wrong > 0 || left_out > cases;
}
