/* Fused dot-add (xie-mma-sim, section IV-C) and dot-round-down-add (IV-F, IV-H) for operands of few exponents, in 32-bit lanes.
 *
 * All operand exponents lie within -16 to 15, significands have at most 11 bits, and N * 4 * 2^F stays within 2^31:
 *  - A product is exact in float32 (22 bits). With A scaled by 2^-33 it is a normal number or zero.
 *  - Exponents are bytes: a + 143 and 16 - b, saturating subtraction gives the float32 exponent field of the product's
 *    alignment exponent, and 0 for a product that is zero.
 *  - Scaled to the unit 2^(e_max - F) a product is below 2^27; conversion to int32 by truncation is the alignment; integer
 *    sums are exact.
 *  - Alignment exponents stay at 2^-68 or above. The caller replaces a smaller c by 0, which changes nothing once there is a
 *    nonzero product (then the unit is at least 2^-57), and has elements with such a c and the result 0 computed again.
 * Infinities and NaNs are packed as zeros, and the caller computes the elements with such operands again.
 */
#ifndef MPG_NARROW_H
#define MPG_NARROW_H

#include "lanes.h"
#if MPG_X86_VARIANTS
#include <immintrin.h>
#endif

#define MPG_PANEL 64           /* widest panel, in columns */
#define MPG_NARROW_PRESCALE 33 /* products below 2^32 stay below 1/2 when the scaling is cut off at 1 */
#define MPG_NARROW_FLOOR 59    /* float32 exponent field of 2^-68: with it F + 33 - e_max is at most 126 */
#define MPG_NO_BYTE_A 0        /* exponent bytes of what takes no part: their difference saturates to 0 */
#define MPG_NO_BYTE_B 255

/* What else `output` may be: products alone are summed, in one group or in two halves; dot product and c are rounded down. */
enum { MPG_NARROW_DOWN = MPG_OUT_FP16 + 1, MPG_NARROW_DOWN_GROUPS };

typedef struct {
    int terms;         /* products of one fused operation as packed: 4, 8, 16 or 32 */
    int fraction_bits; /* F, of the products and of c */
    int output;        /* MPG_OUT_FP32 truncates, MPG_OUT_FP16 rounds to nearest even; MPG_NARROW_DOWN... */
    uint32_t keep;     /* result bits that survive (all but those beyond output_fraction_bits) */
    int wide_sum;      /* the sum of products and c may reach 2^31 */
    int chain;         /* > 0: c is added after every `chain` operations, which start from zero (InterleavedDotAdd) */
    int floor;         /* exponent field that alignment exponents have at least, MPG_NARROW_FLOOR or more */
    int raw_exponent;  /* fp16 output: exponent field of the smallest normal c (subnormal c align there), 0 for none */
    int guard;         /* round down: bits that the dot product has at its alignment with c beyond F, 0 to 7 */
    int whole;         /* round down: bits of the total's integer part, in units of F, that leave all guard bits; 31 for any */
    int cutoff;        /* round down in halves: c further below the largest exponent than this is dropped */
    int windowed;      /* operands have more exponents than the lanes and are shifted into their range (narrow_window.h) */
    int scaled; /* chain of at most 31: bit i multiplies the sums by `scale`, a power of two, before operation i of each */
    float scale;
    float back; /* results are multiplied by this at the end, a power of two: 1, or what undoes the shifts of the operands */
    int unusable_c; /* float32 bits from which on an addend's magnitude is left to the generic kernel: at most infinity's */
} mpg_narrow_task;

/* Packed operands from some k on: rows of A, `stride` apart, and a panel of B. */
typedef struct {
    const float *a;
    const uint32_t *ea;
    int64_t stride;
    const float *b;
    const uint8_t *eb;
    int64_t other;         /* two products that share a vector: from a row of A of the first to that of the second */
    const uint64_t *quads; /* and for four rows their exponent bytes at each position: 2 r + h is row r of product h */
} mpg_narrow_operands;

/* Columns first to first + count - 1 of B, packed as a panel of `width` lanes. */
typedef struct {
    int64_t first;
    int count, width;
    float *values;
    uint8_t *exponents;
} mpg_narrow_panel;

/* Whether sums are scaled before operation `place` of a chain. */
MPG_INLINE int mpg_narrow_is_scaled(const mpg_narrow_task *t, int64_t place) { return t->scaled && t->scaled >> place & 1; }

/* The operands `steps` operations of `terms` products further on. */
MPG_INLINE mpg_narrow_operands mpg_narrow_after(const mpg_narrow_operands *p, int64_t steps, int terms, int width)
{
    mpg_narrow_operands next = *p;
    next.a += steps * terms;
    next.ea += steps * terms;
    next.b += steps * terms * width;
    next.eb += steps * terms * width;
    return next;
}

/* ---- packing ------------------------------------------------------------------------------------------------------- */
/* Value times 2^scale as float32 bits, its alignment exponent, and a mask of ones unless it is zero; infinities and NaNs are zeros.
 * Free of branches, so that loops over it vectorise, and of subnormal numbers, which are slow: theirs get the bit before the point,
 * which is subtracted again. */
MPG_INLINE uint32_t mpg_narrow_value(uint32_t code, const mpg_operand *f, int scale, int32_t *exponent, int32_t *nonzero,
                                     int32_t *special)
{
    const mpg_signed_magnitude x = mpg_sign_and_magnitude(code, f);
    const int32_t subnormal = mpg_if_negative(x.magnitude - (1 << f->fraction_bits));
    *nonzero = mpg_if_negative(-x.magnitude) & ~x.special;
    /* The shift of a window may take the exponent of a zero out of float32's range: it has none. */
    const int32_t field = (127 - f->bias + scale - subnormal) & *nonzero;
    const uint32_t whole = (uint32_t)x.magnitude << (23 - f->fraction_bits) & (uint32_t)*nonzero;
    const uint32_t bits = mpg_as_bits(mpg_as_float(whole + ((uint32_t)field << 23)) - mpg_power32(field & subnormal));
    const int32_t leading = (int32_t)(bits >> 23) - 127 - scale;
    *exponent = leading > f->emin ? leading : f->emin;
    *special |= x.special;
    return bits | (uint32_t)x.negative << 31;
}

/* Exponent bytes of alignment exponents within -16 to 15, and of what takes no part (`nonzero` is 0). */
MPG_INLINE uint8_t mpg_byte_of_a(int32_t exponent, int32_t nonzero)
{
    MPG_DOMAIN2("byte_of_a", int32_t, exponent, nonzero, !y || (x >= -16 && x <= 15));
    return (uint8_t)((exponent + 143) & nonzero);
}

MPG_INLINE uint8_t mpg_byte_of_b(int32_t exponent, int32_t nonzero)
{
    MPG_DOMAIN2("byte_of_b", int32_t, exponent, nonzero, !y || (x >= -16 && x <= 15));
    return (uint8_t)((16 - exponent) | ~nonzero); /* MPG_NO_BYTE_B has all bits */
}

/* fp16, the commonest format: compilers make fewer instructions of a format that is a constant. Its emin may be another's. */
MPG_INLINE int mpg_is_fp16(const mpg_operand *f)
{
    return f->size == 2 && f->fraction_bits == 10 && f->padding_bits == 0 && f->bias == 15 && f->sign_mask == 1 &&
           f->max_magnitude == 0x7BFF;
}
MPG_INLINE mpg_operand mpg_fp16_of(const mpg_operand *f)
{
    const mpg_operand fp16 = {2, 10, 0, 15, 15, 1, 0, f->emin, 0x7FFF, 0x7BFF};
    return fp16;
}

#if MPG_X86_VARIANTS
/* What mpg_narrow_value gives of fp16 by the CPU's own conversion, which is exact and makes subnormal numbers normal: values and alignment
 * exponents, as fields, of up to 16 encodings, of which `regular` are finite and not 0. */
MPG_TARGET_AVX512 MPG_INLINE __m512 mpg_fp16_parts(const uint16_t *codes, __mmask16 exists, int emin, __m512i *field,
                                                   __mmask16 *regular, __mmask16 *special)
{
    const __m256i x = _mm256_maskz_loadu_epi16(exists, codes), size = _mm256_and_si256(x, _mm256_set1_epi16(0x7FFF));
    const __m512i bits = _mm512_and_si512((__m512i)_mm512_cvtph_ps(x), _mm512_set1_epi32(0x7FFFFFFF));
    *special = _mm256_cmpgt_epi16_mask(size, _mm256_set1_epi16(0x7BFF));
    *regular = _mm256_test_epi16_mask(size, size) & (__mmask16) ~*special;
    *field = _mm512_max_epi32(_mm512_srli_epi32(bits, 23), _mm512_set1_epi32(emin + 127));
    return _mm512_maskz_mov_ps((__mmask16) ~*special, _mm512_cvtph_ps(x));
}
#define MPG_FIRST_LANES(count) ((__mmask16)((count) >= 16 ? 0xFFFF : (1 << (count)) - 1))

/* As mpg_narrow_pack_run. */
MPG_TARGET_AVX512 static int mpg_fp16_pack_run(const uint16_t *codes, int64_t count, int emin, float *values,
                                               uint32_t *exponents)
{
    const __m512i fourfold = _mm512_set4_epi32(0x0C0C0C0C, 0x08080808, 0x04040404, 0x00000000);
    __mmask16 any = 0, regular, special;
    for (int64_t i = 0; i < count; i += 16, any |= special) {
        const __mmask16 exists = MPG_FIRST_LANES(count - i);
        __m512i field;
        _mm512_mask_storeu_ps(values + i, exists, mpg_fp16_parts(codes + i, exists, emin, &field, &regular, &special));
        field = _mm512_maskz_add_epi32(regular, field, _mm512_set1_epi32(143 - 127));
        _mm512_mask_storeu_epi32(exponents + i, exists, _mm512_shuffle_epi8(field, fourfold));
    }
    return any != 0;
}

/* As mpg_narrow_pack_lanes, of any number of lanes where `flags` is NULL. Whether one is an infinity or NaN. */
MPG_TARGET_AVX512 static int mpg_fp16_pack_lanes(const uint16_t *codes, int64_t count, int emin, float *values,
                                                 uint8_t *exponents, int32_t *flags)
{
    __mmask16 any = 0, regular, special;
    for (int64_t i = 0; i < count; i += 16, any |= special) {
        const __mmask16 exists = MPG_FIRST_LANES(count - i);
        __m512i field;
        _mm512_mask_storeu_ps(values + i, exists, mpg_fp16_parts(codes + i, exists, emin, &field, &regular, &special));
        field = _mm512_mask_sub_epi32(_mm512_set1_epi32(MPG_NO_BYTE_B), regular, _mm512_set1_epi32(16 + 127), field);
        _mm_mask_storeu_epi8(exponents + i, exists, _mm512_cvtepi32_epi8(field));
        if (flags && MPG_SELDOM(special))
            _mm512_mask_storeu_epi32(flags + i, special, _mm512_set1_epi32(-1));
    }
    return any != 0;
}
#define MPG_HAS_FP16(level) ((level) == MPG_ISA_AVX512)
#else
#define MPG_HAS_FP16(level) 0
#define mpg_fp16_pack_run(...) 0
#define mpg_fp16_pack_lanes(...) 0
#endif

/* Lanes of one position of k; `size`, an `outer` of 1 and what is of fp16 are constants. */
MPG_INLINE void mpg_narrow_pack_lanes(const void *data, int size, int64_t base, int64_t outer, int count, const mpg_operand *f,
                                      float *MPG_RESTRICT v, uint8_t *MPG_RESTRICT x, int32_t *MPG_RESTRICT flags)
{
    for (int j = 0; j < count; j++) {
        int32_t exponent, nonzero, special = 0;
        v[j] = mpg_as_float(mpg_narrow_value(mpg_code(data, size, base + j * outer), f, 0, &exponent, &nonzero, &special));
        x[j] = mpg_byte_of_b(exponent, nonzero);
        flags[j] |= special;
    }
}

/* Positions begin to end - 1 of the padded k of a panel of B. */
MPG_INLINE void mpg_narrow_pack_b_body(int level, const mpg_source *s, const mpg_operand *format, const mpg_narrow_panel *panel,
                                       int64_t begin, int64_t end, uint8_t *special)
{
    const mpg_operand f = *format, fp16 = mpg_fp16_of(format);
    const int64_t outer = s->outer, first = panel->first;
    const int count = panel->count, width = panel->width, is_fp16 = mpg_is_fp16(format);
    int32_t flags[MPG_PANEL] = {0};
    for (int64_t k = begin; k < end; k++) {
        float *MPG_RESTRICT v = panel->values + (k - begin) * width;
        uint8_t *MPG_RESTRICT x = panel->exponents + (k - begin) * width;
        const int64_t position = s->order[k], base = first * outer + position * s->inner;
        mpg_fetch_position(s, f.size, first, count, k, end);
        for (int j = position < 0 ? 0 : count; j < width; j++) {
            v[j] = 0;
            x[j] = MPG_NO_BYTE_B;
        }
        if (position < 0)
            continue;
        if (MPG_HAS_FP16(level) && is_fp16 && outer == 1)
            mpg_fp16_pack_lanes((const uint16_t *)s->data + base, count, f.emin, v, x, flags);
        else if (is_fp16 && outer == 1)
            mpg_narrow_pack_lanes(s->data, 2, base, 1, count, &fp16, v, x, flags);
        else if (f.size == 2)
            mpg_narrow_pack_lanes(s->data, 2, base, outer, count, &f, v, x, flags);
        else if (f.size == 4)
            mpg_narrow_pack_lanes(s->data, 4, base, outer, count, &f, v, x, flags);
        else if (outer == 1)
            mpg_narrow_pack_lanes(s->data, 1, base, 1, count, &f, v, x, flags);
        else
            mpg_narrow_pack_lanes(s->data, 1, base, outer, count, &f, v, x, flags);
    }
    for (int j = 0; j < count; j++)
        special[first + j] |= (uint8_t)(flags[j] != 0);
}

/* `count` neighbours in k from index `first`; `size` is a constant. */
MPG_INLINE int32_t mpg_narrow_pack_run(const void *data, int size, int64_t first, int64_t count, const mpg_operand *f,
                                       int scale, float *MPG_RESTRICT values, uint32_t *MPG_RESTRICT exponents)
{
    int32_t flags = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t exponent, nonzero, flag = 0;
        values[i] = mpg_as_float(mpg_narrow_value(mpg_code(data, size, first + i), f, scale, &exponent, &nonzero, &flag));
        exponents[i] = 0x01010101u * mpg_byte_of_a(exponent, nonzero);
        flags |= flag;
    }
    return flags;
}

/* Row `row` of A over the same positions; exponents four times over in one word. `plain_order`: position k is k. */
MPG_INLINE void mpg_narrow_pack_a_body(int level, const mpg_source *s, const mpg_operand *format, int64_t row, int64_t begin,
                                       int64_t end, int plain_order, float *MPG_RESTRICT values,
                                       uint32_t *MPG_RESTRICT exponents, uint8_t *special)
{
    const mpg_operand f = *format, fp16 = mpg_fp16_of(format);
    const int scale = level == MPG_ISA_AVX512 ? 0 : -MPG_NARROW_PRESCALE;
    int32_t flags = 0;
    if (plain_order && s->inner == 1) {
        const int64_t base = row * s->outer + begin;
        if (MPG_HAS_FP16(level) && mpg_is_fp16(format))
            flags = mpg_fp16_pack_run((const uint16_t *)s->data + base, end - begin, f.emin, values, exponents);
        else if (mpg_is_fp16(format))
            flags = mpg_narrow_pack_run(s->data, 2, base, end - begin, &fp16, scale, values, exponents);
        else if (f.size == 2)
            flags = mpg_narrow_pack_run(s->data, 2, base, end - begin, &f, scale, values, exponents);
        else if (f.size == 4)
            flags = mpg_narrow_pack_run(s->data, 4, base, end - begin, &f, scale, values, exponents);
        else
            flags = mpg_narrow_pack_run(s->data, 1, base, end - begin, &f, scale, values, exponents);
    } else {
        for (int64_t k = begin; k < end; k += MPG_PANEL) {
            const int64_t count = end - k < MPG_PANEL ? end - k : MPG_PANEL;
            uint32_t codes[MPG_PANEL];
            for (int64_t i = 0; i < count; i++) { /* padding is packed as a zero is */
                const int64_t position = s->order[k + i];
                codes[i] = position < 0 ? 0 : mpg_code(s->data, f.size, row * s->outer + position * s->inner);
            }
            flags |= mpg_narrow_pack_run(codes, 4, 0, count, &f, scale, values + (k - begin), exponents + (k - begin));
        }
    }
    special[row] |= (uint8_t)(flags != 0);
}

MPG_VARIANTS(mpg_narrow_pack_b, (s, f, panel, begin, end, special), const mpg_source *s, const mpg_operand *f,
             const mpg_narrow_panel *panel, int64_t begin, int64_t end, uint8_t *special)
MPG_VARIANTS(mpg_narrow_pack_a, (s, f, row, begin, end, plain_order, values, exponents, special), const mpg_source *s,
             const mpg_operand *f, int64_t row, int64_t begin, int64_t end, int plain_order, float *values, uint32_t *exponents,
             uint8_t *special)

/* ---- kernels ------------------------------------------------------------------------------------------------------- */
MPG_INLINE float mpg_larger_float(float x, float y) { return x > y ? x : y; }

/* 2^-14, not as a constant: compilers turn the choice between a number and a constant into jumps. */
MPG_INLINE float mpg_least_fp16(void)
{
    const volatile float least = 0x1p-14f;
    return least;
}

/* x to the nearest fp16 number, ties to even, as float32; beyond the largest it is 65536 or more. -0 becomes +0. For rounding to
 * nearest. */
MPG_INLINE float mpg_nearest_fp16(float x, float least)
{
    const float power = mpg_as_float(mpg_as_bits(x) & 0x7F800000u);
    const float magic = mpg_larger_float(power, least) * 0x1.8p13f; /* its last bit is fp16's for x */
    return (x + magic) - magic;
}

/* c += the results of `count` chains one after the other, to nearest: with its own rounding. Lanes that become infinite as fp16 are
 * marked and zeroed. */
MPG_NOINLINE static void mpg_narrow_add(int width, int output, const float *MPG_RESTRICT chains, int64_t count,
                                        float *MPG_RESTRICT c, uint8_t *MPG_RESTRICT redo)
{
    const float least = mpg_least_fp16();
    for (int64_t i = 0; i < count; i++, chains += width) {
        for (int j = 0; j < width; j++)
            c[j] += chains[j];
        if (output != MPG_OUT_FP16)
            continue;
        uint32_t any = 0; /* the highest bit of a difference is set where it is negative */
        for (int j = 0; j < width; j++) {
            c[j] = mpg_nearest_fp16(c[j], least);
            any |= 0x47800000u - 1 - (mpg_as_bits(c[j]) & 0x7FFFFFFFu); /* 65536 */
        }
        for (int j = 0; any >> 31 && j < width; j++)
            if (c[j] >= 65536.0f || c[j] <= -65536.0f) {
                redo[j] = 1;
                c[j] = 0;
            }
    }
}

/* The first rows of a tile over several operations: as many as the kernel has. */
typedef void (*mpg_narrow_kernel)(const mpg_narrow_task *, const mpg_narrow_operands *, const mpg_result_tile *, int64_t steps);

/* One row over one chain; c holds the lanes of a panel, as vectors lie. */
typedef void (*mpg_narrow_chain)(const mpg_narrow_task *, const mpg_narrow_operands *, float *c, int64_t steps, uint8_t *redo);

/* One row: operations in their rounding (toward zero; to nearest where they round down). Chains start from zero: several are run
 * before their results are added, so that the rounding changes seldom. */
MPG_INLINE void mpg_narrow_row(mpg_narrow_chain run, int terms, int width, int output, const mpg_narrow_task *t,
                               const mpg_narrow_operands *p, const mpg_result_tile *tile, int64_t steps)
{
    enum { TOGETHER = 8 };
    MPG_ALIGNED float c[MPG_PANEL], chains[TOGETHER * MPG_PANEL];
    float *d = tile->d; /* the struct's address is known elsewhere */
    uint8_t redo[MPG_PANEL], *marks = tile->redo;
    const int count = tile->columns;
    const int64_t each = t->chain ? t->chain : steps, most = t->chain ? TOGETHER * each : each;
    memset(c, 0, (size_t)width * sizeof(float)); /* sizes are constants: a row of a small tile has no time for more calls */
    if (output == MPG_OUT_FP16)
        memset(redo, 0, (size_t)width);
    memcpy(c, d, (size_t)count * sizeof(float));
    for (int64_t s = 0; s < steps; s += most) {
        const int64_t together = steps - s < most ? (steps - s) / each : most / each;
        float *to = c;
        if (t->chain) {
            memset(chains, 0, (size_t)(together * width) * sizeof(float));
            to = chains;
        }
        const mpg_rounding mode = output < MPG_NARROW_DOWN ? mpg_round_toward_zero() : 0;
        for (int64_t i = 0; i < together; i++, to += width) {
            const mpg_narrow_operands q = mpg_narrow_after(p, s + i * each, terms, width);
            run(t, &q, to, each, redo);
        }
        if (output < MPG_NARROW_DOWN)
            mpg_restore_rounding(mode);
        if (t->chain)
            mpg_narrow_add(width, output, chains, together, c, redo);
    }
    memcpy(d, c, (size_t)count * sizeof(float));
    for (int j = 0; output == MPG_OUT_FP16 && j < count; j++)
        marks[j] |= redo[j];
}

/* Rows and columns of a kernel; with x2 of two products that share vectors. Only AVX-512 has those after the first two. */
enum { MPG_NARROW_1X64, MPG_NARROW_1X16, MPG_NARROW_4X16, MPG_NARROW_4X8X2, MPG_NARROW_1X8X2 };

#define LANES_TEXT "narrow_lanes.h"
#include "lanes_of_each_set.h"

/* The kernel of a task. */
static mpg_narrow_kernel mpg_narrow_kernel_of(const mpg_narrow_task *t, int shape, int level)
{
    if (t->output >= MPG_NARROW_DOWN && shape <= MPG_NARROW_4X16) /* pairs never round down */
        return MPG_LANES_OF(mpg_NARROW_DOWN, level)[shape][mpg_terms_index(t->terms)];
    return MPG_LANES_OF(
        mpg_NARROW_KERNELS,
        level)[shape][t->output][t->terms == 32 ? 4 : mpg_terms_index(t->terms) + (t->terms == 16 && t->wide_sum)];
}

#endif
