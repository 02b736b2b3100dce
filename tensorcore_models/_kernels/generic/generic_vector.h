/* Aligned sums of several output columns at a time, in vectors of 64-bit integers: the families FUSED, INTERLEAVED, ROUND_DOWN
 * and EXACT. Integer arithmetic as in generic_fused.h, step by step the same, without branches on the data.
 *
 * Exactness: beside what every generic kernel holds (sums below 2^61 or, wide, 2^125), tensorcore_models/aspects/plans.py sets
 * mpg_plan.vector only where products stay below 2^60 (2^124) and no significand of c or d has more than 60 bits. Values are two's complement; cutting `places` bits off after
 * adding 0 to 2^places - 1 is every rounding but the one to odd (W_(cut)), and |value| <= 2^(WBITS - 3) makes cuts beyond
 * WBITS - 2 places round as that one does. Results are rounded from a magnitude whose leading bit is in place 62 and whose last bit
 * holds all that is lost below: at least two more bits than any format keeps.
 *
 * Lanes with an infinity, a NaN, a product that may reach the overflow limit, or a tree with products that take no part, are
 * computed by the scalar kernel; so are subnormal and overflowing results, from the unrounded sum. EXACT sums are made like
 * FUSED ones with as many fraction bits as fit; lanes that lose a bit are computed by the long accumulator.
 *
 * Needs a compiler with vector types and shifts by a variable number of places (AVX2, Advanced SIMD); everything else
 * runs the scalar kernels.
 */
#ifndef MPG_GENERIC_VECTOR_H
#define MPG_GENERIC_VECTOR_H

#include "generic_pack.h"
#include "generic_pass.h"

#define MPG_LOSSLESS (MPG_SR + 1) /* beside the roundings of convert.h: nothing may be cut off */
#define MPG_MAX_LEVELS 16

static mpg_vector_rule mpg_vector_rule_of(const mpg_result *t, const mpg_rule *r)
{
    mpg_vector_rule v;
    memset(&v, 0, sizeof v);
    v.result = t;
    v.rule = r;
    v.emin = (int64_t)t->quantum_exponent + t->fraction_bits;
    v.drop = 62 - r->kept_bits;
    v.up = t->fraction_bits - r->kept_bits;
    v.mask = (UINT64_C(1) << v.drop) - 1;
    if (r->rounding == MPG_RNE) {
        v.odd = 1;
        v.positive = v.negative = v.mask >> 1;
    } else if (r->rounding == MPG_RNA) {
        v.positive = v.negative = (v.mask >> 1) + 1;
    } else if (r->rounding == MPG_RU) {
        v.positive = v.mask;
    } else if (r->rounding == MPG_RD) {
        v.negative = v.mask;
    }
    v.to_odd = r->rounding == MPG_RO;
    return v;
}

#if MPG_X86_VARIANTS
#include <immintrin.h>

#define VISA MPG_ISA_AVX2
#define VTARGET MPG_TARGET_AVX2
#define VBYTES 32
#define VSUFFIX avx2
#include "generic_vector_isa.h"

#define VISA MPG_ISA_AVX512
#define VTARGET MPG_TARGET_AVX512
#define VBYTES 64
#define VSUFFIX avx512
#include "generic_vector_isa.h"

#elif (defined(__GNUC__) || defined(__clang__)) && defined(__aarch64__)
#define MPG_VECTOR_BASELINE 1
#define VISA MPG_ISA_BASELINE
#define VTARGET
#define VBYTES 16
#define VSUFFIX base
#include "generic_vector_isa.h"
#endif

/* Whether there is a vector kernel at that level. */
static int mpg_has_vectors(int isa)
{
#if MPG_X86_VARIANTS
    return isa >= MPG_ISA_AVX2;
#elif defined(MPG_VECTOR_BASELINE)
    return 1;
#else
    return 0;
#endif
}

/* Whether a product of that many columns runs there; few columns would leave most lanes empty. */
static int mpg_runs_vectors(const mpg_plan *p, int isa, int64_t columns)
{
    const int known = p->rounding <= MPG_RO && p->rule.rounding <= MPG_RO && p->late.rounding <= MPG_RO;
    return known && p->vector && columns >= MPG_PANEL / 2 && mpg_has_vectors(isa);
}

/* Whether mpg_vector_columns takes B apart. */
static int mpg_packs_vectors(const mpg_job *job) { return job->vector && !job->plan->scaled; }

/* Columns [begin, end) of B, begin a multiple of MPG_PANEL. */
static void mpg_vector_columns(const mpg_job *job, const mpg_matrix *source, int64_t begin, int64_t end, const mpg_packed *out)
{
#if MPG_X86_VARIANTS
    if (job->isa == MPG_ISA_AVX512)
        mpg_v_pack_columns_avx512(job->plan, source, job->whole, job->tail, begin, end, out);
    else
        mpg_v_pack_columns_avx2(job->plan, source, job->whole, job->tail, begin, end, out);
#elif defined(MPG_VECTOR_BASELINE)
    mpg_v_pack_columns_base(job->plan, source, job->whole, job->tail, begin, end, out);
#endif
}

static void mpg_vector_row(const mpg_job *job, int64_t i, int64_t j0, int64_t j1, int64_t s0, int64_t s1, uint64_t *total)
{
    const int wide = job->plan->wide;
#if MPG_X86_VARIANTS
    if (job->isa == MPG_ISA_AVX512)
        (wide ? mpg_v_row_avx512_128 : mpg_v_row_avx512_64)(job, i, j0, j1, s0, s1, total);
    else
        (wide ? mpg_v_row_avx2_128 : mpg_v_row_avx2_64)(job, i, j0, j1, s0, s1, total);
#elif defined(MPG_VECTOR_BASELINE)
    (wide ? mpg_v_row_base_128 : mpg_v_row_base_64)(job, i, j0, j1, s0, s1, total);
#endif
}

#endif
