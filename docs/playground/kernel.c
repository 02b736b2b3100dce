/* The generic kernel for WebAssembly: the headers of the package, the calls that a page makes, and the record of their steps. */
#include <stdint.h>

/* One step as the page reads it: eight 64-bit integers. */
typedef struct {
    int64_t kind, index, exponent;
    uint64_t value[2], kept[2];
    int64_t unused;
} record;

void *allocate(uint32_t size);
static void trace(int kind, int64_t index, int64_t exponent, __int128 value, __int128 kept);
#define MPG_TRACE(kind, index, exponent, value, kept)                                                                          \
    trace(kind, (int64_t)(index), (int64_t)(exponent), (__int128)(value), (__int128)(kept))

#include "generic_tiles.h"

#define EXPORT(name) __attribute__((export_name(name)))
#define MOST_RECORDS 4096

static record records[MOST_RECORDS];
static int used, recording;

static void trace(int kind, int64_t index, int64_t exponent, __int128 value, __int128 kept)
{
    if (!recording || used == MOST_RECORDS)
        return;
    record *r = &records[used++];
    r->kind = kind;
    r->index = index;
    r->exponent = exponent;
    r->value[0] = (uint64_t)value;
    r->value[1] = (uint64_t)((unsigned __int128)value >> 64);
    r->kept[0] = (uint64_t)kept;
    r->kept[1] = (uint64_t)((unsigned __int128)kept >> 64);
}

EXPORT("records") record *first_record(void) { return records; }
EXPORT("record_count") int record_count(void) { return used; }
EXPORT("plan_size") int plan_size(void) { return (int)sizeof(mpg_plan); }

/* round(x y + z) to nearest even: no WebAssembly instruction does it. NaN results are the default one; which operand's NaN
 * x86 returns the callers find out themselves. */
double fma(double x, double y, double z)
{
    static const mpg_result result = {.fraction_bits = 52,
                                      .quantum_exponent = -1074,
                                      .emax = 1023,
                                      .sign_bit = MPG_SIGN64,
                                      .zero_sign = MPG_SIGN64,
                                      .max_code = MPG_INF64 - 1,
                                      .inf_code = MPG_INF64,
                                      .inf_sign = MPG_SIGN64};
    static mpg_plan plan;
    plan.result = result;
    plan.raw_d = mpg_format_double;
    plan.late.kept_bits = 52;
    plan.late.rounding = MPG_RNE;
    plan.late.nan_code = MPG_NAN64;
    const int was = recording;
    recording = 0;
    const double sum = mpg_slow_fma(x, y, z, 0, &plan);
    recording = was;
    return sum;
}

static mpg_layout layout_of(const int32_t *numbers)
{
    mpg_layout layout;
    layout.count = numbers[0];
    layout.segments = numbers[1];
    layout.order = numbers + 2;
    layout.bounds = layout.order + layout.count;
    layout.tree = layout.bounds + layout.segments + 1;
    return layout;
}

static mpg_matrix matrix_of(const void *data, int64_t row, int64_t column, int size)
{
    mpg_matrix x = {data, row * size, column * size, size};
    return x;
}

/* Memory of one packed operand; 0 if there is not enough. */
static int make_room(const mpg_plan *p, mpg_packed *x, int64_t rows, int64_t k)
{
    const int64_t padded = (rows + MPG_LANES - 1) / MPG_LANES * MPG_LANES;
    memset(x, 0, sizeof *x);
    x->rows = rows;
    x->depth = k * p->parts;
    x->steps = (x->depth + p->step - 1) / p->step;
    x->blocks = p->scaled ? (x->depth + p->block - 1) / p->block : 0;
    if (mpg_is_lanes(p)) {
        x->values = allocate((uint32_t)(padded * x->depth * 8));
        return x->values != 0;
    }
    x->significand = allocate((uint32_t)(rows * x->depth * 8));
    x->align = allocate((uint32_t)(rows * x->depth * 4));
    x->special = allocate((uint32_t)(rows * x->steps));
    x->scale = allocate((uint32_t)(rows * x->blocks * 4 + 4));
    x->scale_align = allocate((uint32_t)(rows * x->blocks * 4 + 4));
    return x->significand && x->align && x->special && x->scale && x->scale_align;
}

static void take_apart(const mpg_plan *p, int is_b, const mpg_matrix *source, const mpg_matrix *scale, const mpg_layout *layout,
                       mpg_packed *x)
{
    if (!mpg_is_lanes(p))
        mpg_pack_rows(p, is_b, source, scale, layout, layout, 0, x->rows, x);
    else if (is_b)
        for (int64_t panel = 0; panel * MPG_LANES < x->rows; panel++)
            mpg_pack_panel(p, source, layout, layout, panel, x);
    else
        for (int64_t row = 0; row < x->rows; row++)
            mpg_pack_values(p, source, layout, layout, row, x);
}

/* d = a b + c on encodings, all matrices with their rows one after the other: a (m, k), b (k, n), c and d (m, n), scale_a (m, blocks),
 * scale_b (blocks, n); k is a multiple of the plan's step. `sizes` are the bytes of one encoding of a, b, c, d and the scales. With
 * `record` the steps are recorded. Returns 0, or 1 where memory is short. */
EXPORT("product")
int product(const mpg_plan *p, const int32_t *arrangement, int m, int n, int k, const void *a, const void *b, const void *c,
            void *d, const void *scale_a, const void *scale_b, const int32_t *sizes, int record_steps)
{
    mpg_packed x, y;
    mpg_job job;
    const mpg_layout layout = layout_of(arrangement);
    const int64_t blocks = p->scaled ? (k + p->block - 1) / p->block : 0;
    const mpg_matrix from_a = matrix_of(a, k, 1, sizes[0]), from_b = matrix_of(b, 1, n, sizes[1]);
    const mpg_matrix from_c = matrix_of(c, n, 1, sizes[2]);
    const mpg_matrix from_scale_a = matrix_of(scale_a, blocks, 1, sizes[4]), from_scale_b = matrix_of(scale_b, 1, n, sizes[4]);
    used = 0;
    recording = 0;
    if (!make_room(p, &x, m, k) || !make_room(p, &y, n, k))
        return 1;
    take_apart(p, 0, &from_a, &from_scale_a, &layout, &x);
    take_apart(p, 1, &from_b, &from_scale_b, &layout, &y);
    memset(&job, 0, sizeof job);
    job.plan = p;
    job.a = &x;
    job.b = &y;
    job.whole = job.tail = &layout;
    job.a_source = &from_a;
    job.b_source = &from_b;
    job.c = &from_c;
    job.out = d;
    job.columns = n;
    job.out_size = sizes[3];
    recording = record_steps;
    mpg_tile(&job, 0, m, 0, n);
    recording = 0;
    return 0;
}
