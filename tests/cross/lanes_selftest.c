/* Runs the plain-C lanes on the cases that make_cases.py wrote and compares bits; for machines that cannot run the test suite.
 *
 * A case: int64 header[8] = {kind, m, n, positions, k, size of an encoding, words of the task, 0}; mpg_operand a, b; the task;
 * int32 order[positions]; encodings a[m][k], b[k][n]; float c[m][n]; uint32 expected[m][n]; uint8 left_out[m][n].
 */
#include <stdio.h>
#include <stdlib.h>

#include "narrow_job.h"
#include "pairwise.h"
#include "wide_job.h"

static void *read_part(FILE *file, size_t bytes)
{
    void *part = calloc(bytes + 64, 1);
    if (!part || (bytes && fread(part, 1, bytes, file) != bytes)) {
        fprintf(stderr, "the file of cases ends too early\n");
        exit(2);
    }
    return part;
}

/* All of k as one slice, in one thread. */
static void run_job(mpg_drive *drive, void (*start)(mpg_drive *, char *), int64_t bytes_each)
{
    char *workspace = calloc((size_t)(bytes_each * drive->total + 64), 1);
    drive->length = drive->part = drive->total;
    start(drive, workspace);
    for (int64_t piece = 0; piece < mpg_pieces(drive); piece++)
        mpg_drive_pack(drive, piece);
    for (int64_t tile = 0; tile < drive->blocks * drive->panels; tile++)
        mpg_drive_tile(drive, tile);
    free(workspace);
}

static void run_case(const int64_t *h, const mpg_operand *f, const void *task, const mpg_source *a, const mpg_source *b,
                     float *d, uint8_t *redo)
{
    uint8_t *marks = calloc((size_t)(h[1] + h[2]), 1);
    const mpg_drive drive = {.m = h[1],
                             .n = h[2],
                             .total = h[3],
                             .d = d,
                             .redo = redo,
                             .rows_marked = marks,
                             .columns_marked = marks + h[1],
                             .level = MPG_ISA_BASELINE,
                             .a = *a,
                             .b = *b};
    if (h[0]) {
        mpg_wide_job job = {.drive = drive, .a_format = f[0], .b_format = f[1]};
        memcpy(&job.task, task, sizeof(job.task));
        run_job(&job.drive, mpg_wide_start, mpg_wide_bytes(h[1], h[2]));
    } else {
        mpg_narrow_job job = {.drive = drive, .a_format = f[0], .b_format = f[1]};
        memcpy(&job.task, task, sizeof(job.task));
        run_job(&job.drive, mpg_narrow_start, mpg_narrow_bytes(h[1], h[2]));
    }
    free(marks);
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
        run_case(h, f, task, &left, &right, d, redo);
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
