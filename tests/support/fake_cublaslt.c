/* A stand-in for libcublasLt and libcudart: checks what the recorder passes and answers with numbers made of it. */
#include <stdint.h>
#include <string.h>

typedef struct {
    int type;
    uint64_t rows, columns;
    int64_t lead;
    int order;
} layout;
typedef struct {
    int transpose_a, transpose_b;
    void *scale_a, *scale_b;
} operation;
typedef struct {
    uint64_t algo[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} heuristic;

static layout layouts[64];
static operation operations[64];
static int made, described, alive;
static uint64_t allowed;

size_t cublasLtGetVersion(void) { return 130101; }
int cudaMalloc(void **p, size_t size)
{
    *p = (void *)0x1000;
    return size != 4;
}
int cublasLtCreate(void **h)
{
    *h = (void *)1;
    return 0;
}
int cublasLtMatmulPreferenceCreate(void **p)
{
    *p = (void *)2;
    return 0;
}
int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value, size_t size)
{
    if (p != (void *)2 || attribute != 1 || size != 8)
        return 7;
    memcpy(&allowed, value, 8);
    return 0;
}
int cublasLtMatmulDescCreate(void **d, int compute, int scale)
{
    operations[described % 64] = (operation){-1, -1, 0, 0};
    *d = &operations[described++ % 64];
    alive++;
    return compute != 68 || scale != 0;
}
int cublasLtMatmulDescDestroy(void *d)
{
    (void)d;
    alive--;
    return 0;
}
int cublasLtMatmulDescSetAttribute(void *d, int attribute, const void *value, size_t size)
{
    operation *o = d;
    if (attribute == 3 && size == 4)
        memcpy(&o->transpose_a, value, 4);
    else if (attribute == 4 && size == 4)
        memcpy(&o->transpose_b, value, 4);
    else if (attribute == 17 && size == 8)
        memcpy(&o->scale_a, value, 8);
    else if (attribute == 18 && size == 8)
        memcpy(&o->scale_b, value, 8);
    else
        return 7;
    return 0;
}
int cublasLtMatrixLayoutCreate(void **l, int type, uint64_t rows, uint64_t columns, int64_t lead)
{
    layouts[made % 64] = (layout){type, rows, columns, lead, 0};
    *l = &layouts[made++ % 64];
    alive++;
    return 0;
}
int cublasLtMatrixLayoutSetAttribute(void *l, int attribute, const void *value, size_t size)
{
    if (attribute != 1 || size != 4)
        return 7;
    memcpy(&((layout *)l)->order, value, 4);
    return 0;
}
int cublasLtMatrixLayoutDestroy(void *l)
{
    (void)l;
    alive--;
    return 0;
}
int cublasLtMatmulAlgoGetHeuristic(void *h, void *d, layout *a, layout *b, layout *c, layout *e, void *p, int wanted,
                                   heuristic *result, int *count)
{
    operation *o = d;
    int narrow = a->type == 28;
    int fine = h == (void *)1 && p == (void *)2 && wanted == 1 && alive == 5 && o->transpose_b == 0 &&
               o->transpose_a == narrow && c->type == e->type && c->order == 1 && c->lead == (int64_t)c->columns;
    fine = fine && (narrow ? a->order == 0 && b->order == 0 && o->scale_a == (void *)0x1000 && o->scale_b == (void *)0x1000
                           : a->order == 1 && b->order == 1 && a->lead == (int64_t)a->columns);
    if (!fine)
        return 7;
    if (b->columns == 13)
        return 15;
    memset(result, 0, sizeof *result);
    result->algo[0] = narrow ? 36 : 35;
    result->algo[1] = allowed >> 20;
    *count = 1;
    return 0;
}
int cublasLtMatmulAlgoConfigGetAttribute(const uint64_t *algo, int field, void *value, size_t size, size_t *written)
{
    int number[9] = {66, 7, (int)algo[1], 2, 0, 0, (int)algo[0], 0, 5};
    if (size != (field >= 7 ? 2u : 4u) || field == 1)
        return 7;
    memcpy(value, &number[field], size);
    *written = size;
    return 0;
}
