/* The machine that runs PassPrograms (tensorcore_models/arithmetic/program.py) over panels of columns. It runs one instruction after
 * another, each over all lanes of a panel. Numbers are 64-bit integers whose ranges are known, so that none overflows. */
#ifndef MPG_PROGRAMS_H
#define MPG_PROGRAMS_H

#include <stdint.h>
#include <string.h>

#include "bits.h"
#include "convert.h"
#include "cpu.h"

/* Columns of a panel; rows that go through a step of k together. */
#define MPG_PROGRAM_LANES 64
#define MPG_PROGRAM_ROWS 8
/* Sources of an operation, at most, and numbers of an instruction: operation, destination, sources (and for operations over many
 * products how many and how far apart). */
#define MPG_SOURCES 10
#define MPG_INSTRUCTION (2 + MPG_SOURCES)

/* Where a source or destination is: one of these memories, and the place in it. */
enum { MPG_REGISTERS, MPG_CONSTANTS, MPG_OF_A, MPG_OF_B, MPG_CODES, MPG_SCALES, MPG_BASES };
#define MPG_PLACE(bases, x) ((bases)[(x) & 7] + ((x) >> 3))

/* clang-format off */
#define MPG_OPERATIONS(UNARY, BINARY, SHIFT, SIGNED_SHIFT, CUT)                                                                \
    UNARY(copy, V_(copy))                                                                                                      \
    UNARY(magnitude, V_(magnitude))                                                                                            \
    UNARY(no, V_(no))                                                                                                          \
    BINARY(add, V_(add))                                                                                                       \
    BINARY(subtract, V_(subtract))                                                                                             \
    BINARY(multiply, V_(multiply))                                                                                             \
    BINARY(multiply_any, V_(multiply_any))                                                                                     \
    BINARY(shl, V_(shl))                                                                                                       \
    BINARY(mask, V_(mask))                                                                                                     \
    BINARY(either, V_(either))                                                                                                 \
    BINARY(differ, V_(differ))                                                                                                 \
    BINARY(larger, V_(max_signed))                                                                                             \
    BINARY(less, V_(less_signed))                                                                                              \
    BINARY(same, V_(equal))                                                                                                    \
    BINARY(sign, V_(with_sign))                                                                                                \
    SHIFT(RZ) SHIFT(RNE) SHIFT(RNA) SHIFT(RNZ) SHIFT(RNO) SHIFT(RA) SHIFT(RO)                                                  \
    SIGNED_SHIFT(RU) SIGNED_SHIFT(RD) SIGNED_SHIFT(RNU) SIGNED_SHIFT(RND)                                                      \
    CUT(RZ) CUT(RNE) CUT(RNA) CUT(RNZ) CUT(RNO) CUT(RA) CUT(RO) CUT(RU) CUT(RD) CUT(RNU) CUT(RND)
#define MPG_OTHER_OPERATIONS(ROW)                                                                                              \
    ROW(leave_v, 1) ROW(copy_s, 1) ROW(choose_vvv, 3) ROW(choose_vvs, 3) ROW(choose_vsv, 3) ROW(choose_vss, 3)                 \
    ROW(places_vs, 2) ROW(larger_sums, 5)
/* clang-format on */

#define MPG_OP(NAME) MPG_OP_##NAME
#define MPG_NUMBER(NAME, SOURCES) MPG_OP(NAME),
#define MPG_ROW(NAME, SOURCES) {#NAME, SOURCES},
#define MPG_EACH(ROW)                                                                                                          \
    MPG_OPERATIONS(ROW##_UNARY, ROW##_BINARY, ROW##_SHIFT, ROW##_SIGNED_SHIFT, ROW##_CUT) MPG_OTHER_OPERATIONS(ROW)
#define MPG_NUMBER_UNARY(NAME, OF) MPG_NUMBER(NAME##_v, 1)
#define MPG_NUMBER_BINARY(NAME, OF) MPG_NUMBER(NAME##_vv, 2) MPG_NUMBER(NAME##_vs, 2) MPG_NUMBER(NAME##_sv, 2)
#define MPG_NUMBER_SHIFT(ROUNDING) MPG_NUMBER(shr_##ROUNDING##_vv, 2) MPG_NUMBER(shr_##ROUNDING##_vs, 2)
#define MPG_NUMBER_SIGNED_SHIFT(ROUNDING) MPG_NUMBER(shr_##ROUNDING##_vvv, 3) MPG_NUMBER(shr_##ROUNDING##_vsv, 3)
#define MPG_NUMBER_CUT(ROUNDING) MPG_NUMBER(cuts_##ROUNDING, 10)
#define MPG_ROW_UNARY(NAME, OF) MPG_ROW(NAME##_v, 1)
#define MPG_ROW_BINARY(NAME, OF) MPG_ROW(NAME##_vv, 2) MPG_ROW(NAME##_vs, 2) MPG_ROW(NAME##_sv, 2)
#define MPG_ROW_SHIFT(ROUNDING) MPG_ROW(shr_##ROUNDING##_vv, 2) MPG_ROW(shr_##ROUNDING##_vs, 2)
#define MPG_ROW_SIGNED_SHIFT(ROUNDING) MPG_ROW(shr_##ROUNDING##_vvv, 3) MPG_ROW(shr_##ROUNDING##_vsv, 3)
#define MPG_ROW_CUT(ROUNDING) MPG_ROW(cuts_##ROUNDING, 10)

enum { MPG_EACH(MPG_NUMBER) MPG_OPERATION_COUNT };

typedef struct {
    const char *name;
    int sources;
} mpg_operation;

static const mpg_operation mpg_operations[] = {MPG_EACH(MPG_ROW)};

typedef struct {
    const int32_t *instructions; /* MPG_INSTRUCTION numbers each */
    int count;
    int64_t a_stride, b_stride; /* from what a product takes of an operand to what the next one does */
} mpg_code;

#if MPG_X86_VARIANTS
#include <immintrin.h>

#define VISA MPG_ISA_AVX512
#define VTARGET MPG_TARGET_AVX512
#define VBYTES 64
#define VSUFFIX avx512
#include "programs_isa.h"

#define VISA MPG_ISA_AVX2
#define VTARGET MPG_TARGET_AVX2
#define VBYTES 32
#define VSUFFIX avx2
#include "programs_isa.h"
#endif

#define VISA MPG_ISA_BASELINE
#define VTARGET
#define VSUFFIX base
#include "programs_isa.h"

/* Returns 0 where a condition that seldom holds does in a lane: nothing is computed then. */
static int mpg_run_code(const mpg_code *code, int64_t *const *bases, int lanes, int isa)
{
#if MPG_X86_VARIANTS
    if (isa >= MPG_ISA_AVX512)
        return mpg_p_run_program_avx512(code, bases, lanes);
    if (isa >= MPG_ISA_AVX2)
        return mpg_p_run_program_avx2(code, bases, lanes);
#else
    (void)isa;
#endif
    return mpg_p_run_program_base(code, bases, lanes);
}

/* ---- operands ------------------------------------------------------------------------------------------------------ */
typedef struct {
    const char *data;
    int64_t row_stride, column_stride; /* along rows of A or columns of B, and along k */
    int size;
} mpg_codes;

/* The codes of `count` rows from `row` on at one place of k; lanes beyond them get 0. */
static void mpg_take_codes(const mpg_codes *x, int64_t row, int64_t k, int count, int64_t *to)
{
    const char *from = x->data + row * x->row_stride + k * x->column_stride;
    for (int l = 0; l < count; l++, from += x->row_stride) {
        if (x->size == 1) {
            to[l] = *(const uint8_t *)from;
        } else if (x->size == 2) {
            uint16_t code;
            memcpy(&code, from, sizeof code);
            to[l] = code;
        } else if (x->size == 4) {
            uint32_t code;
            memcpy(&code, from, sizeof code);
            to[l] = code;
        } else {
            memcpy(to + l, from, sizeof *to);
        }
    }
    memset(to + count, 0, sizeof *to * (size_t)(MPG_PROGRAM_LANES - count));
}

/* One operand, taken apart: `outputs` numbers of each element, those of a row of A together, those of a panel of B lane by lane. */
typedef struct {
    mpg_codes codes, scales;
    int64_t rows, depth, step, steps; /* rows of A or columns of B; products, of one pass, and passes */
    int64_t block;                    /* products that share a block scale; 0 without */
    mpg_code code;
    int64_t *constants;
    int outputs, marks, registers; /* whether the number after the outputs marks what a regular Program leaves out */
    int is_b;
    int64_t *numbers;
    uint8_t *marked; /* of each row of A or panel of B, of each pass */
} mpg_operand;

static int64_t mpg_operand_pieces(const mpg_operand *x) { return (x->rows + MPG_PROGRAM_LANES - 1) / MPG_PROGRAM_LANES; }

/* Takes MPG_PROGRAM_LANES rows of A or columns of B apart; `memory` holds the registers and MPG_PACK_ROOM lanes more. */
#define MPG_PACK_ROOM 2
static void mpg_pack_operand(const mpg_operand *x, int64_t piece, int isa, int64_t *memory)
{
    const int64_t first = piece * MPG_PROGRAM_LANES, left = x->rows - first;
    const int count = (int)(left < MPG_PROGRAM_LANES ? left : MPG_PROGRAM_LANES), produced = x->outputs + x->marks;
    int64_t *const codes = memory, *const scales = memory + MPG_PROGRAM_LANES,
                   *const registers = memory + 2 * MPG_PROGRAM_LANES;
    int64_t *const found = registers + (int64_t)x->registers * MPG_PROGRAM_LANES;
    int64_t *bases[MPG_BASES] = {registers, x->constants, found, found, codes, scales};
    for (int64_t k = 0; k < x->depth; k++) {
        mpg_take_codes(&x->codes, first, k, count, codes);
        if (x->block)
            mpg_take_codes(&x->scales, first, k / x->block, count, scales);
        int64_t *const to = x->numbers + (first * x->depth + k * MPG_PROGRAM_LANES) * x->outputs;
        mpg_run_code(&x->code, bases, MPG_PROGRAM_LANES, isa);
        if (x->is_b)
            memcpy(to, found, sizeof *to * (size_t)x->outputs * MPG_PROGRAM_LANES);
        else
            for (int l = 0; l < count; l++)
                for (int j = 0; j < x->outputs; j++)
                    x->numbers[((first + l) * x->depth + k) * x->outputs + j] = found[j * MPG_PROGRAM_LANES + l];
        for (int l = 0; produced > x->outputs && l < count; l++)
            if (found[(int64_t)x->outputs * MPG_PROGRAM_LANES + l])
                x->marked[(x->is_b ? piece : first + l) * x->steps + k / x->step] = 1;
    }
}

static int mpg_any_marked(const mpg_operand *x)
{
    const int64_t rows = x->is_b ? mpg_operand_pieces(x) : x->rows;
    uint8_t any = 0;
    for (int64_t i = 0; i < rows * x->steps; i++)
        any |= x->marked[i];
    return any;
}

/* ---- products ------------------------------------------------------------------------------------------------------ */
/* The Programs of a chain: of its first pass and of the others, of passes with all products and of the last one. */
enum { MPG_FIRST = 1, MPG_LAST = 2 };
typedef struct {
    const mpg_operand *a, *b;
    mpg_code code[4];
    int64_t *constants[4];
} mpg_passes;

typedef struct {
    mpg_passes regular, all; /* `all`: where an operand is infinite or NaN */
    const char *c;
    int64_t c_row, c_column;
    int c_size, d_size, isa;
    char *d;
    int64_t m, n;
    int registers;
} mpg_product;

static int64_t mpg_product_blocks(const mpg_product *p) { return (p->m + MPG_PROGRAM_ROWS - 1) / MPG_PROGRAM_ROWS; }

/* One pass of all lanes of a row; 0 where it is not regular. */
MPG_INLINE int mpg_pass(const mpg_product *p, const mpg_passes *passes, int which, int64_t a_row, int64_t b_row,
                        int64_t *registers, int64_t *codes, int lanes)
{
    int64_t *const bases[MPG_BASES] = {registers,
                                       passes->constants[which],
                                       passes->a->numbers + a_row * passes->a->outputs,
                                       passes->b->numbers + b_row * passes->b->outputs,
                                       codes,
                                       NULL};
    return mpg_run_code(&passes->code[which], bases, lanes, p->isa);
}

/* One tile; `memory` holds the registers and MPG_PROGRAM_ROWS rows of codes. Returns 0 where Programs for all operands are needed
 * and not there: nothing is written then. */
static int mpg_product_tile(const mpg_product *p, int64_t tile, int64_t *memory)
{
    const mpg_operand *b = p->regular.b;
    const int64_t blocks = mpg_product_blocks(p), panel = tile / blocks, i0 = tile % blocks * MPG_PROGRAM_ROWS;
    const int64_t j0 = panel * MPG_PROGRAM_LANES, steps = b->steps;
    const int rows = (int)(p->m - i0 < MPG_PROGRAM_ROWS ? p->m - i0 : MPG_PROGRAM_ROWS);
    const int columns = (int)(p->n - j0 < MPG_PROGRAM_LANES ? p->n - j0 : MPG_PROGRAM_LANES), lanes = (columns + 7) / 8 * 8;
    int64_t *const codes = memory, *const registers = memory + MPG_PROGRAM_ROWS * MPG_PROGRAM_LANES;
    const mpg_codes c = {p->c, p->c_column, p->c_row, p->c_size};
    for (int r = 0; r < rows; r++)
        mpg_take_codes(&c, j0, i0 + r, columns, codes + r * MPG_PROGRAM_LANES);
    for (int64_t s = 0; s < steps; s++) {
        const int which = (s == 0 ? MPG_FIRST : 0) | (s == steps - 1 ? MPG_LAST : 0);
        const int b_marked = b->marked[panel * steps + s];
        for (int r = 0; r < rows; r++) {
            const int64_t k = s * b->step, a_row = (i0 + r) * b->depth + k, b_row = j0 * b->depth + k * MPG_PROGRAM_LANES;
            const int marked = b_marked || p->regular.a->marked[(i0 + r) * steps + s];
            int64_t *const own = codes + r * MPG_PROGRAM_LANES;
            if (!marked && mpg_pass(p, &p->regular, which, a_row, b_row, registers, own, lanes))
                continue;
            if (!p->all.a)
                return 0;
            mpg_pass(p, &p->all, which, a_row, b_row, registers, own, lanes);
        }
    }
    for (int r = 0; r < rows; r++) {
        char *to = p->d + ((i0 + r) * p->n + j0) * p->d_size;
        for (int l = 0; l < columns; l++, to += p->d_size) {
            const int64_t code = codes[r * MPG_PROGRAM_LANES + l];
            const uint8_t one = (uint8_t)code;
            const uint16_t two = (uint16_t)code;
            const uint32_t four = (uint32_t)code;
            memcpy(to,
                   p->d_size == 1   ? (const void *)&one
                   : p->d_size == 2 ? (const void *)&two
                   : p->d_size == 4 ? (const void *)&four
                                    : &code,
                   (size_t)p->d_size);
        }
    }
    return 1;
}

#endif
