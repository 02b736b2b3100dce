/* The generic kernels' description of one accumulator and its formats, which a family of tensorcore_models/families fills in (`plan_fields`). */
#ifndef MPG_GENERIC_PLAN_H
#define MPG_GENERIC_PLAN_H

#include "generic_number.h"

enum {
    MPG_FAMILY_FUSED,       /* FusedDotAdd, ParametricDotAdd */
    MPG_FAMILY_INTERLEAVED, /* InterleavedDotAdd */
    MPG_FAMILY_GROUPS,      /* GroupDotFusedSum */
    MPG_FAMILY_ROUND_DOWN,  /* FusedDotRoundDownAdd, GroupFusedDotRoundDownAdd */
    MPG_FAMILY_EXACT,       /* ParametricDotAdd without fraction bits */
    MPG_FAMILY_SOFT_FMA,    /* SequentialFMA in integers */
    MPG_FAMILY_INTEGER,     /* IntegerDotAdd */
    MPG_FAMILY_PHASES,      /* FidelityPhases */
    MPG_FAMILY_INTEGER_PHASES,
    MPG_FAMILY_FMA,       /* SequentialFMA, lanes of doubles */
    MPG_FAMILY_FMA64,     /* SequentialFMA in double itself */
    MPG_FAMILY_FMA_EXACT, /* SequentialFMA with products that are not exact in double, or rounded to FP64 another way */
    MPG_FAMILY_LANED,     /* LanedFMA */
    MPG_FAMILY_PAIRWISE,  /* GroupPairwiseSum */
    MPG_FAMILY_PAIR_ODD,  /* PairRoundOddSum */
    MPG_FAMILY_TWO_LANES  /* LanedFMA with pairs of products */
};
/* The sign of an exact zero: none; IEEE's; or, of zero products, that of most of them. */
enum { MPG_ZERO_POSITIVE, MPG_ZERO_IEEE, MPG_ZERO_MAJORITY };
/* Where c joins an aligned sum: in it, after it was rounded, or after it and before the one rounding. */
enum { MPG_C_EARLY, MPG_C_LATE, MPG_C_EXACT };
#define MPG_MAX_PARTS 64 /* products of parts of two significands */
enum { MPG_ALIGNMENT_GLOBAL, MPG_ALIGNMENT_PAIRWISE, MPG_ALIGNMENT_ODD_EVEN, MPG_ALIGNMENT_NORMALISING };

#define MPG_MAX_TERMS 1024
#define MPG_MAX_LIMBS 80
#define MPG_LANES 16
#define MPG_PANEL 8 /* columns of a panel of the vector kernel */

/* Which zeros below block scales take no part in an alignment: none; zero products and sums of groups; groups of zero products. */
enum { MPG_KEEP_ZEROS, MPG_SKIP_ZEROS, MPG_SKIP_ZERO_PRODUCTS };

/* How one alignment rounds: with a sticky bit to odd, one place further down. */
#define MPG_PLAN_ROUNDING(p) ((p)->sticky ? MPG_RO : (p)->rounding)

typedef uint64_t mpg_masks[MPG_MAX_PARTS];

/* clang-format off */
#define MPG_PLAN_MEMBERS(MEMBER) \
    MEMBER(int, family) \
    MEMBER(int, wide)   /* significands in 64 and sums in 128 bits instead of 32 and 64 */ \
    MEMBER(int, step)   /* positions of one pass: products, or products of parts */ \
    MEMBER(int, vector) /* generic_vector.h holds every intermediate */ \
    MEMBER(int, narrow) /* operands are integers of at most 31 bits */ \
    MEMBER(mpg_format, a) MEMBER(mpg_format, b) MEMBER(mpg_format, scale) \
    MEMBER(mpg_format, c) MEMBER(mpg_format, chained) /* the addend of the first step, and of later ones (the format of d) */ \
    MEMBER(mpg_format, raw_c) /* the addend of a late addition: no edge rule */ \
    MEMBER(mpg_format, raw_d) \
    MEMBER(int, scaled) MEMBER(int, block) MEMBER(int, skip_scaled_zero) /* MPG_KEEP_ZEROS, ... */ \
    MEMBER(mpg_result, result) \
    MEMBER(mpg_rule, rule) /* of the fused sum */ \
    MEMBER(mpg_rule, late) /* of the IEEE operations */ \
    MEMBER(int, late_c)    /* MPG_C_EARLY, ... */ \
    MEMBER(int, zero_sign) /* MPG_ZERO_POSITIVE, ... */ \
    MEMBER(int, zero_count) /* products that have a say, those beyond a pass being +0 */ \
    /* positions that share one product: position t of a pass holds the bits a_masks[t % parts] of one significand and */ \
    /* b_masks[t % parts] of the other */ \
    MEMBER(int, parts) MEMBER(mpg_masks, a_masks) MEMBER(mpg_masks, b_masks) \
    /* aligned sums */ \
    MEMBER(int, alignment) MEMBER(int, fraction_bits) MEMBER(int, rounding) MEMBER(int, sticky) MEMBER(int, normalised) \
    MEMBER(int, product_fraction) /* alignment exponent of a product minus the exponent of its last bit */ \
    MEMBER(int, product_lift)     /* fraction bits with sticky minus product_fraction, or 0 where that is negative */ \
    MEMBER(int, product_integer)  /* |product| < 2^(alignment exponent + this) */ \
    MEMBER(int, has_floor) MEMBER(int, has_limit) MEMBER(int, has_integer_bits) MEMBER(int, has_cutoff) \
    MEMBER(int, floor) MEMBER(int, limit) MEMBER(int, integer_bits) MEMBER(int, cutoff) \
    MEMBER(int, dot_fraction_bits) MEMBER(int, c_fraction_bits) MEMBER(int, add_rounding) MEMBER(int, c_wins) \
    MEMBER(int, sum_fraction_bits) /* FDRDA: to which the normalised sum is rounded down first */ \
    MEMBER(int, base) /* GROUPS: exponent of the last bit of a fixed-point product; EXACT: of the accumulator */ \
    MEMBER(int, limbs) \
    /* IEEE operations */ \
    MEMBER(double, chained_flush) MEMBER(double, c_flush) /* addends below these become zero */ \
    MEMBER(int, c_flush_passes) /* n > 0: addends of passes 0, n, 2 n, ..., zeros to +0; 0: only the first */ \
    /* integers */ \
    MEMBER(int, a_bits) MEMBER(int, b_bits) MEMBER(int, c_bits) MEMBER(int, d_bits) \
    MEMBER(int, a_signed) MEMBER(int, b_signed) MEMBER(int, c_signed) MEMBER(int, d_signed) MEMBER(int, clamp) \
    /* phases: bit p for phase p; a sum of -1 unit is normalised wrongly */ \
    MEMBER(int, phases) MEMBER(int, erratum)
/* clang-format on */
typedef struct {
    MPG_PLAN_MEMBERS(MPG_MEMBER)
} mpg_plan;

/* Products of k before a pass. */
#define MPG_FIRST_PRODUCT(p, pass) ((pass) * ((p)->step / (p)->parts))

/* How the k of one pass are arranged: the position t of the pass holds k = order[t]; segment g spans positions
 * bounds[g] to bounds[g + 1]. */
typedef struct {
    int count, segments;
    const int32_t *order;
    const int32_t *bounds;
    /* PAIRWISE, PAIR_ODD: count - 1 pairs (i, j), in order: position i takes the sum of i and j. FUSED with pairwise alignment:
     * sums of the last two parts that follow each position. */
    const int32_t *tree;
} mpg_layout;

/* One operand matrix taken apart. Rows are the rows of A or the columns of B; `depth` positions each, passes in a row. */
typedef struct {
    int64_t rows, depth, steps, blocks;
    void *significand; /* int32_t or int64_t by mpg_plan.wide, signed; fixed point for GROUPS */
    int32_t *align;
    uint8_t *special; /* for each row and pass: specials among its operands and scales */
    int32_t *scale;   /* GROUPS: significands and alignment exponents of the block scales */
    int32_t *scale_align;
    double *values; /* families of lanes */
    /* Where the vector kernel runs, instead of significand and align: (significand, alignment exponent) of each position; of
     * B in panels [panel][position], MPG_PANEL of each side by side, and so `special` [panel][pass]. */
    int64_t *words;
    void *memory; /* what holds them, to be freed */
} mpg_packed;

/* A matrix of encodings as the caller holds it. */
typedef struct {
    const char *data;
    int64_t row_stride, column_stride; /* bytes */
    int size;                          /* bytes of an element */
} mpg_matrix;

MPG_INLINE uint64_t mpg_element(const mpg_matrix *x, int64_t i, int64_t j)
{
    return mpg_load(x->data + i * x->row_stride + j * x->column_stride, x->size, 0);
}

/* `width` elements, `stride` bytes apart; `size` is a constant. */
MPG_INLINE void mpg_elements_of(const char *from, int64_t stride, int size, int width, uint64_t *bits)
{
    for (int l = 0; l < width; l++)
        bits[l] = mpg_load(from + l * stride, size, 0);
}

/* `width` elements (i + l, j), l = 0, 1, ..., of a matrix. */
MPG_INLINE void mpg_elements(const mpg_matrix *x, int64_t i, int64_t j, int width, uint64_t *bits)
{
    const char *from = x->data + i * x->row_stride + j * x->column_stride;
    if (x->size == 1)
        mpg_elements_of(from, x->row_stride, 1, width, bits);
    else if (x->size == 2)
        mpg_elements_of(from, x->row_stride, 2, width, bits);
    else if (x->size == 4)
        mpg_elements_of(from, x->row_stride, 4, width, bits);
    else
        mpg_elements_of(from, x->row_stride, 8, width, bits);
}

/* Where the operands of a pass came from: packed significands of 0 have no sign. */
typedef struct {
    const mpg_matrix *a, *b;
    int64_t row, column, k;
    const int32_t *order;
} mpg_origin;

/* Whether the product of position `q` of a pass is negative. */
MPG_INLINE int mpg_negative_product(const mpg_origin *from, int q, uint64_t a_sign, uint64_t b_sign)
{
    const int64_t k = from->k + from->order[q];
    const int a = (mpg_element(from->a, from->row, k) & a_sign) != 0;
    return a != ((mpg_element(from->b, from->column, k) & b_sign) != 0);
}

/* Rounding to the result format by operations on a magnitude with its leading bit in place 62, for normal results. */
typedef struct {
    const mpg_result *result;
    const mpg_rule *rule;
    int64_t emin;
    int drop, up;                     /* places below the last bit that is kept; zeros of the format below that */
    uint64_t mask;                    /* the places below */
    uint64_t odd, positive, negative; /* added before the cut: the last bit kept & odd, and a constant by sign */
    int to_odd;
} mpg_vector_rule;

typedef struct {
    mpg_vector_rule fused, late;
} mpg_vector_rules;

/* One call: c and the result are encodings. */
typedef struct {
    const mpg_plan *plan;
    const mpg_packed *a, *b;
    const mpg_layout *whole, *tail;
    const mpg_matrix *a_source, *b_source, *c;
    char *out;
    int64_t columns;
    int out_size, isa;
    int vector;             /* operands are packed for the vector kernel */
    mpg_vector_rules rules; /* of that */
} mpg_job;

MPG_INLINE int mpg_is_lanes(const mpg_plan *p) { return p->family >= MPG_FAMILY_FMA; }

MPG_INLINE const mpg_layout *mpg_layout_of(int64_t step, int64_t full, const mpg_layout *whole, const mpg_layout *tail)
{
    return step < full ? whole : tail;
}

#endif
