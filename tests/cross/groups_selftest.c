/* Runs the plain-C lanes of group sums and of integers on the cases that make_group_cases.py wrote and compares bits.
 *
 * A case: int64 header[5] = {1 for group sums, m, n, k, products of one scale}; the task as int32; encodings a[m][k], b[k][n];
 * uint32 c[m][n], expected[m][n]. Group sums have behind the task, for a and then b: int8 numbers[256], double scales[256],
 * int16 exponents[256], uint8 special[256]; behind b: the scales of a and of b. Integers have the task {terms, clamp, keep and flip of
 * a and of b}. Memory of a case is not given back: the program ends soon.
 */
#include <stdio.h>

#include "groups_tiles.h"
#include "integer_tiles.h"

static void *read_part(FILE *file, size_t bytes)
{
    void *part = calloc(bytes + 64, 1);
    if (!part || (bytes && fread(part, 1, bytes, file) != bytes)) {
        fprintf(stderr, "the file of cases ends too early\n");
        exit(2);
    }
    return part;
}

typedef struct {
    mpg_source at[2]; /* of a and of b */
    mpg_group_source tables[2];
    mpg_integer_format formats[2];
    const int32_t *words; /* the task */
} test_case;

static test_case read_case(FILE *file, const int64_t *h)
{
    const int64_t m = h[1], n = h[2], k = h[3], blocks = (k + h[4] - 1) / h[4];
    test_case c = {{{NULL, k, 1}, {NULL, 1, n}}};
    const int32_t *words = c.words = read_part(file, h[0] ? sizeof(mpg_group_task) : 6 * 4);
    for (int i = 0; i < 2; i++) {
        if (h[0]) {
            const mpg_group_source tables = {
                NULL, k, words[0], 0, read_part(file, 256), read_part(file, 256 * 8), read_part(file, 256 * 2), NULL};
            c.tables[i] = tables;
            c.tables[i].scale_special = read_part(file, 256);
        } else {
            c.formats[i].keep = words[2 + 2 * i];
            c.formats[i].flip = words[3 + 2 * i];
        }
    }
    c.at[0].data = read_part(file, (size_t)(m * k));
    c.at[1].data = read_part(file, (size_t)(k * n));
    for (int i = 0; h[0] && i < 2; i++) {
        c.at[i].scales = read_part(file, (size_t)((i ? n : m) * blocks));
        c.at[i].scale_outer = i ? 1 : blocks;
        c.at[i].scale_inner = i ? n : 1;
        c.at[i].block_size = (int)h[4];
    }
    return c;
}

/* d += a b, lanes over the columns of B, or over the rows of A where `swapped`; 0 where it is not done. */
static int run_case(const int64_t *h, const test_case *c, int swapped, uint32_t *d)
{
    const int64_t m = h[1 + swapped], n = h[2 - swapped], k = h[3];
    uint8_t mark = 0;
    const mpg_drive drive = {.a = c->at[swapped], .b = c->at[!swapped], .m = m, .n = n, .d = d};
    mpg_group_job groups = {.drive = drive, .a = c->tables[swapped], .b = c->tables[!swapped]};
    mpg_integer_job integers = {.drive = drive,
                                .task = {c->words[0], c->words[1]},
                                .a_format = c->formats[swapped],
                                .b_format = c->formats[!swapped],
                                .k = k};
    mpg_products products = {.first = &integers.drive, .size = sizeof(integers), .turned = swapped, .start = mpg_integer_start};
    if (h[0]) {
        const int64_t each = (int64_t)c->words[0] * c->words[1];
        memcpy(&groups.task, c->words, sizeof(groups.task));
        groups.task.group += groups.task.group % 2;
        groups.drive.total = (k + each - 1) / each * c->words[1];
        products.first = &groups.drive;
        products.size = sizeof(groups);
        products.start = mpg_group_start;
        products.marks = &mark;
        products.bytes = (size_t)(mpg_group_bytes(m, n, groups.task.group) * groups.drive.total);
    } else {
        integers.drive.total = k + k % 2;
        products.bytes = (size_t)(mpg_integer_bytes(m, n) * integers.drive.total);
    }
    return mpg_run_products(&products.batch, 0, 1) && !mark;
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
        const test_case c = read_case(file, h);
        const uint32_t *addends = read_part(file, size), *expected = read_part(file, size);
        for (int swapped = 0; swapped < 2; swapped++) {
            uint32_t *d = malloc(size);
            memcpy(d, addends, size);
            if (run_case(h, &c, swapped, d)) {
                if (memcmp(d, expected, size) && wrong++ < 5)
                    printf("case %lld, swapped %d: wrong\n", (long long)cases, swapped);
            } else {
                left_out++;
            }
            free(d);
        }
        cases++;
    }
    printf("%lld cases of group sums and integers, %lld runs left out, %lld wrong\n", (long long)cases, (long long)left_out,
           (long long)wrong);
    return cases == 0 || wrong > 0 || left_out > cases;
}
