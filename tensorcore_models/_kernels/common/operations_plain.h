/* The operations of operations.h in plain C: GNU vectors of 16 bytes, one number where the compiler has none. They round as the mode
 * says that the caller sets; SSE2 and Advanced SIMD are what compilers make of it. */
#ifndef MPG_OPERATIONS_PLAIN_H
#define MPG_OPERATIONS_PLAIN_H

#include <math.h>

#if defined(__GNUC__) || defined(__clang__)
typedef int32_t mpg_i32_plain __attribute__((vector_size(16)));
typedef uint32_t mpg_unsigned_plain __attribute__((vector_size(16)));
typedef float mpg_f32_plain __attribute__((vector_size(16)));
typedef double mpg_f64_plain __attribute__((vector_size(16)));
typedef float mpg_half_plain __attribute__((vector_size(8)));
typedef int64_t mpg_i64_plain __attribute__((vector_size(16)));
typedef uint64_t mpg_unsigned64_plain __attribute__((vector_size(16)));
#define MPG_MASK64_PLAIN(comparison) ((mpg_i64_plain)(comparison))
MPG_INLINE mpg_i64_plain mpg_bits64_raw_plain(mpg_f64_plain x) { return (mpg_i64_plain)x; }
MPG_INLINE mpg_f64_plain mpg_value64_raw_plain(mpg_i64_plain x) { return (mpg_f64_plain)x; }
#define MPG_MASK_PLAIN(comparison) ((mpg_i32_plain)(comparison))
#define MPG_CONVERT_PLAIN(x, type) __builtin_convertvector(x, type)
MPG_INLINE mpg_i32_plain mpg_bits_raw_plain(mpg_f32_plain x) { return (mpg_i32_plain)x; }
MPG_INLINE mpg_f32_plain mpg_value_raw_plain(mpg_i32_plain x) { return (mpg_f32_plain)x; }
#else
typedef int32_t mpg_i32_plain;
typedef uint32_t mpg_unsigned_plain;
typedef float mpg_f32_plain;
typedef double mpg_f64_plain;
typedef float mpg_half_plain;
typedef int64_t mpg_i64_plain;
typedef uint64_t mpg_unsigned64_plain;
#define MPG_MASK64_PLAIN(comparison) (-(int64_t)(comparison))
MPG_INLINE mpg_i64_plain mpg_bits64_raw_plain(mpg_f64_plain x) { return (int64_t)mpg_as_bits64(x); }
MPG_INLINE mpg_f64_plain mpg_value64_raw_plain(mpg_i64_plain x) { return mpg_as_double((uint64_t)x); }
#define MPG_MASK_PLAIN(comparison) (-(comparison))
#define MPG_CONVERT_PLAIN(x, type) ((type)(x))
MPG_INLINE mpg_i32_plain mpg_bits_raw_plain(mpg_f32_plain x) { return (int32_t)mpg_as_bits(x); }
MPG_INLINE mpg_f32_plain mpg_value_raw_plain(mpg_i32_plain x) { return mpg_as_float((uint32_t)x); }
#endif
typedef mpg_i32_plain mpg_scale_plain; /* what is added to the bits of a product */
enum {
    MPG_LANES_PLAIN = sizeof(mpg_i32_plain) / 4,
    MPG_BYTES_PLAIN = 16,
    MPG_PRESCALE_PLAIN = 33,
    MPG_DOUBLES_PLAIN = sizeof(mpg_f64_plain) / 8
};

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
typedef __m128i mpg_u8_plain;
MPG_INLINE mpg_u8_plain mpg_most_raw_plain(mpg_u8_plain top, mpg_u8_plain x, mpg_u8_plain y)
{
    return _mm_max_epu8(top, _mm_subs_epu8(x, y));
}
#else
typedef struct {
    uint8_t lane[16];
} mpg_u8_plain;
MPG_INLINE mpg_u8_plain mpg_most_raw_plain(mpg_u8_plain top, mpg_u8_plain x, mpg_u8_plain y)
{
    for (int l = 0; l < 16; l++) {
        const uint8_t e = (uint8_t)((x.lane[l] > y.lane[l] ? x.lane[l] : y.lane[l]) - y.lane[l]);
        top.lane[l] = top.lane[l] > e ? top.lane[l] : e;
    }
    return top;
}
#endif
typedef mpg_u8_plain mpg_u16_plain;
#define mpg_most16_raw_plain mpg_most_raw_plain
MPG_INLINE mpg_u8_plain mpg_words_raw_plain(uint32_t word)
{
    const uint32_t words[4] = {word, word, word, word};
    mpg_u8_plain x;
    memcpy(&x, words, sizeof x);
    return x;
}
#define mpg_words16_raw_plain mpg_words_raw_plain

MPG_INLINE mpg_i32_plain mpg_all_raw_plain(int32_t x) { return (mpg_i32_plain){0} + x; }
MPG_INLINE mpg_f32_plain mpg_allf_raw_plain(float x) { return mpg_value_raw_plain(mpg_all_raw_plain((int32_t)mpg_as_bits(x))); }
MPG_INLINE mpg_i32_plain mpg_larger_raw_plain(mpg_i32_plain x, mpg_i32_plain y)
{
    const mpg_i32_plain more = MPG_MASK_PLAIN(x > y);
    return (x & more) | (y & ~more);
}
MPG_INLINE mpg_i32_plain mpg_magnitude_raw_plain(mpg_i32_plain x) { return (x ^ (x >> 31)) - (x >> 31); }
MPG_INLINE mpg_i32_plain mpg_where_more_raw_plain(mpg_i32_plain x, mpg_i32_plain a, mpg_i32_plain b)
{
    return x & MPG_MASK_PLAIN(a > b);
}
MPG_INLINE unsigned mpg_negative_raw_plain(mpg_i32_plain x)
{
    int32_t lane[MPG_LANES_PLAIN];
    unsigned set = 0;
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        set |= (uint32_t)lane[l] >> 31 << l;
    return set;
}
MPG_INLINE mpg_i32_plain mpg_fields_raw_plain(const uint8_t *bytes)
{
    int32_t lane[MPG_LANES_PLAIN];
    mpg_i32_plain x;
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        lane[l] = bytes[l] << 23;
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_INLINE mpg_i32_plain mpg_truncated_raw_plain(mpg_f32_plain x) { return MPG_CONVERT_PLAIN(x, mpg_i32_plain); }
MPG_INLINE mpg_f32_plain mpg_chopped_raw_plain(mpg_i32_plain x) { return MPG_CONVERT_PLAIN(x, mpg_f32_plain); }
MPG_INLINE mpg_i32_plain mpg_floored_raw_plain(mpg_f32_plain x)
{
    const mpg_i32_plain cut = MPG_CONVERT_PLAIN(x, mpg_i32_plain);
    return cut + MPG_MASK_PLAIN(MPG_CONVERT_PLAIN(cut, mpg_f32_plain) > x);
}
MPG_INLINE mpg_f32_plain mpg_add_chopped_raw_plain(mpg_f32_plain x, mpg_f32_plain y) { return x + y; }
MPG_INLINE mpg_f32_plain mpg_odd_raw_plain(mpg_f32_plain x, mpg_i32_plain total)
{
    const mpg_i32_plain same = MPG_MASK_PLAIN(mpg_truncated_raw_plain(x) == total);
    return mpg_value_raw_plain(mpg_bits_raw_plain(x) | (same + 1));
}
MPG_INLINE mpg_i32_plain mpg_unlike_raw_plain(mpg_f32_plain x, mpg_f32_plain y) { return MPG_MASK_PLAIN(x != y); }
MPG_INLINE mpg_scale_plain mpg_scale_of_raw_plain(mpg_i32_plain top, int fraction_bits)
{
    return mpg_larger_raw_plain(mpg_all_raw_plain((fraction_bits + 127 + MPG_PRESCALE_PLAIN) << 23) - top,
                                mpg_all_raw_plain(0));
}
MPG_INLINE mpg_i32_plain mpg_in_units_raw_plain(mpg_f32_plain a, mpg_f32_plain b, mpg_scale_plain scale)
{
    return mpg_truncated_raw_plain(mpg_value_raw_plain(mpg_bits_raw_plain(a * b) + scale));
}
/* Under rounding toward zero: the sum has the truncated magnitude, its last bit says which way ties go. */
MPG_INLINE mpg_f32_plain mpg_fp16_raw_plain(mpg_f32_plain x)
{
    const mpg_i32_plain bits = mpg_bits_raw_plain(x), least = mpg_all_raw_plain(113 << 23); /* 2^-14 */
    const mpg_f32_plain magnitude = mpg_value_raw_plain(bits & 0x7FFFFFFF);
    const mpg_f32_plain last = mpg_value_raw_plain(mpg_larger_raw_plain(bits & 0x7F800000, least)) * 0x1p-10f;
    const mpg_f32_plain magic = last * 0x1.8p23f, sum = magnitude + magic, rest = magnitude - (sum - magic);
    const mpg_i32_plain whole = mpg_bits_raw_plain(sum);
    const mpg_i32_plain up = mpg_bits_raw_plain(last * 0.5f) - mpg_bits_raw_plain(rest) - (whole & 1);
    const mpg_f32_plain nearest = mpg_value_raw_plain(whole - (up >> 31)) - magic;
    return mpg_value_raw_plain(mpg_bits_raw_plain(nearest) | (bits & ~0x7FFFFFFF)) + mpg_allf_raw_plain(0.0f);
}
/* Each lane by itself: SSE2 has no shift by another number of places in each lane. */
#define MPG_SHIFT_PLAIN(NAME, SHIFTED)                                                                                         \
    MPG_INLINE mpg_i32_plain NAME(mpg_i32_plain x, mpg_i32_plain places)                                                       \
    {                                                                                                                          \
        int32_t lane[MPG_LANES_PLAIN], n[MPG_LANES_PLAIN];                                                                     \
        memcpy(lane, &x, sizeof lane);                                                                                         \
        memcpy(n, &places, sizeof n);                                                                                          \
        for (int l = 0; l < MPG_LANES_PLAIN; l++)                                                                              \
            lane[l] = (int32_t)(SHIFTED);                                                                                      \
        memcpy(&x, lane, sizeof lane);                                                                                         \
        return x;                                                                                                              \
    }
MPG_SHIFT_PLAIN(mpg_right_raw_plain, lane[l] >> (n[l] < 31 ? n[l] : 31))
MPG_SHIFT_PLAIN(mpg_right_logical_raw_plain, n[l] < 32 ? (uint32_t)lane[l] >> n[l] : 0)
MPG_SHIFT_PLAIN(mpg_left_raw_plain, n[l] < 32 ? (uint32_t)lane[l] << n[l] : 0)
/* Exact in double, so that it rounds once. */
MPG_INLINE mpg_f32_plain mpg_madd_raw_plain(mpg_f32_plain a, mpg_f32_plain b, mpg_f32_plain c)
{
    float x[MPG_LANES_PLAIN], y[MPG_LANES_PLAIN], z[MPG_LANES_PLAIN];
    memcpy(x, &a, sizeof x);
    memcpy(y, &b, sizeof y);
    memcpy(z, &c, sizeof z);
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        z[l] = (float)((double)x[l] * y[l] + z[l]);
    memcpy(&c, z, sizeof c);
    return c;
}
MPG_INLINE mpg_i32_plain mpg_pair_products_raw_plain(mpg_i32_plain x, mpg_i32_plain y)
{
#if defined(__SSE2__) && (defined(__GNUC__) || defined(__clang__))
    return (mpg_i32_plain)_mm_madd_epi16((__m128i)x, (__m128i)y);
#else
    int16_t a[2 * MPG_LANES_PLAIN], b[2 * MPG_LANES_PLAIN];
    int32_t lane[MPG_LANES_PLAIN];
    memcpy(a, &x, sizeof a);
    memcpy(b, &y, sizeof b);
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        lane[l] = (int32_t)((uint32_t)(a[2 * l] * b[2 * l]) + (uint32_t)(a[2 * l + 1] * b[2 * l + 1]));
    memcpy(&x, lane, sizeof x);
    return x;
#endif
}
MPG_INLINE mpg_i32_plain mpg_some_integers_raw_plain(const int32_t *from, int count)
{
    int32_t lane[MPG_LANES_PLAIN] = {0};
    mpg_i32_plain x;
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        if (l < count)
            lane[l] = from[l];
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_INLINE void mpg_put_some_integers_raw_plain(int32_t *to, mpg_i32_plain x, int count)
{
    int32_t lane[MPG_LANES_PLAIN];
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        if (l < count)
            to[l] = lane[l];
}
MPG_INLINE unsigned mpg_beyond_fp16_raw_plain(mpg_f32_plain x)
{
    return mpg_negative_raw_plain(mpg_all_raw_plain((143 << 23) - 1) - (mpg_bits_raw_plain(x) & 0x7FFFFFFF));
}
MPG_INLINE mpg_f32_plain mpg_without_raw_plain(mpg_f32_plain x, unsigned lanes)
{
    float lane[MPG_LANES_PLAIN];
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_LANES_PLAIN; l++)
        if (lanes >> l & 1)
            lane[l] = 0;
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_INLINE mpg_f32_plain mpg_factor_of_raw_plain(mpg_scale_plain scale, mpg_i32_plain top, int fraction_bits)
{
    const mpg_i32_plain to_factor = mpg_all_raw_plain((int32_t)((uint32_t)(fraction_bits + 254) << 23));
    return mpg_value_raw_plain((mpg_i32_plain)((mpg_unsigned_plain)to_factor - (mpg_unsigned_plain)top));
}
MPG_INLINE mpg_f32_plain mpg_unit_of_raw_plain(mpg_scale_plain scale, mpg_i32_plain top, int fraction_bits)
{
    return mpg_value_raw_plain(top - mpg_all_raw_plain(fraction_bits << 23));
}
/* ---- doubles and words: whole vectors, or word by word where the compiler has none ---- */
#if defined(__GNUC__) || defined(__clang__)
typedef int16_t mpg_i16_plain __attribute__((vector_size(16)));
typedef uint16_t mpg_unsigned16_plain __attribute__((vector_size(16)));
typedef mpg_i16_plain mpg_word_plain;
#define MPG_EACH_WORD_PLAIN
#define MPG_WORD_PLAIN(x) x
#define MPG_MASK16_PLAIN(comparison) ((mpg_i16_plain)(comparison))
#else
typedef struct {
    int16_t lane[4 * MPG_DOUBLES_PLAIN];
} mpg_i16_plain;
typedef uint16_t mpg_unsigned16_plain;
typedef int16_t mpg_word_plain;
#define MPG_EACH_WORD_PLAIN for (int l = 0; l < 4 * MPG_DOUBLES_PLAIN; l++)
#define MPG_WORD_PLAIN(x) x.lane[l]
#define MPG_MASK16_PLAIN(comparison) (-(comparison))
#endif

MPG_INLINE mpg_i64_plain mpg_lanes_of_words_plain(mpg_i16_plain words)
{
    mpg_i64_plain x;
    memcpy(&x, &words, sizeof x);
    return x;
}
MPG_INLINE mpg_i16_plain mpg_words_of_lanes_plain(mpg_i64_plain x)
{
    mpg_i16_plain words;
    memcpy(&words, &x, sizeof words);
    return words;
}
MPG_INLINE mpg_i64_plain mpg_all_bits_raw_plain(int64_t x) { return (mpg_i64_plain){0} + x; }
MPG_INLINE mpg_f64_plain mpg_all64_raw_plain(double x)
{
    return mpg_value64_raw_plain(mpg_all_bits_raw_plain((int64_t)mpg_as_bits64(x)));
}
MPG_INLINE mpg_i16_plain mpg_pairs_raw_plain(uint32_t words)
{
    return mpg_words_of_lanes_plain(mpg_all_bits_raw_plain((int64_t)((uint64_t)words << 32 | words)));
}
MPG_INLINE mpg_i16_plain mpg_all_words_raw_plain(int32_t x) { return mpg_pairs_raw_plain(0x00010001u * (uint16_t)x); }
MPG_INLINE mpg_f64_plain mpg_some64_raw_plain(const float *from, int count)
{
    double lane[MPG_DOUBLES_PLAIN] = {0};
    mpg_f64_plain x;
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        if (l < count)
            lane[l] = from[l];
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_INLINE void mpg_put_some64_raw_plain(float *to, mpg_f64_plain x, int count)
{
    double lane[MPG_DOUBLES_PLAIN];
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        if (l < count)
            to[l] = (float)lane[l];
}
#define MPG_WORDS_PLAIN(NAME, RESULT)                                                                                          \
    MPG_INLINE mpg_i16_plain NAME(mpg_i16_plain xs, mpg_i16_plain ys)                                                          \
    {                                                                                                                          \
        MPG_EACH_WORD_PLAIN                                                                                                    \
        {                                                                                                                      \
            const mpg_word_plain x = MPG_WORD_PLAIN(xs), y = MPG_WORD_PLAIN(ys), more = MPG_MASK16_PLAIN(x > y);               \
            (void)more;                                                                                                        \
            MPG_WORD_PLAIN(xs) = (mpg_word_plain)(RESULT);                                                                     \
        }                                                                                                                      \
        return xs;                                                                                                             \
    }
MPG_WORDS_PLAIN(mpg_add_words_raw_plain, (mpg_unsigned16_plain)x + (mpg_unsigned16_plain)y)
MPG_WORDS_PLAIN(mpg_smaller_words_raw_plain, (y & more) | (x & ~more))
MPG_WORDS_PLAIN(mpg_words_below_raw_plain, MPG_MASK16_PLAIN(x < y))
MPG_WORDS_PLAIN(mpg_sixteenths_of_plain, x >> 4)
#if defined(__SSE2__) || defined(_M_X64)
MPG_INLINE mpg_i16_plain mpg_larger_words_raw_plain(mpg_i16_plain x, mpg_i16_plain y)
{
    __m128i a = _mm_setzero_si128(), b = a;
    memcpy(&a, &x, sizeof x);
    memcpy(&b, &y, sizeof y);
    a = _mm_max_epi16(a, b);
    memcpy(&x, &a, sizeof x);
    return x;
}
#else
MPG_WORDS_PLAIN(mpg_larger_words_raw_plain, (x & more) | (y & ~more))
#endif
MPG_WORDS_PLAIN(mpg_raised_words_raw_plain, ((x & more) | (y & ~more)) & ~MPG_MASK16_PLAIN(x == 0))
MPG_WORDS_PLAIN(mpg_mul_words_raw_plain, (mpg_unsigned16_plain)x *(mpg_unsigned16_plain)y)
MPG_WORDS_PLAIN(mpg_kept_words_plain, x & ~MPG_MASK16_PLAIN(y == 0))
MPG_WORDS_PLAIN(mpg_common_words_plain, x &y)
MPG_INLINE mpg_i16_plain mpg_larger_where_common_raw_plain(mpg_i16_plain x, mpg_i16_plain y, mpg_i16_plain a, mpg_i16_plain b)
{
    return mpg_larger_words_raw_plain(x, mpg_kept_words_plain(y, mpg_common_words_plain(a, b)));
}
MPG_INLINE mpg_f64_plain mpg_numbers_raw_plain(const int16_t *from)
{
    double lane[MPG_DOUBLES_PLAIN];
    mpg_f64_plain x;
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        lane[l] = from[l];
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_INLINE mpg_f64_plain mpg_powers_of_raw_plain(const int16_t *from)
{
    uint64_t lane[MPG_DOUBLES_PLAIN];
    mpg_f64_plain x;
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        lane[l] = (uint64_t)(uint16_t)from[l] << 52;
    memcpy(&x, lane, sizeof x);
    return x;
}
MPG_INLINE mpg_i16_plain mpg_sixteenths_raw_plain(mpg_i16_plain x) { return mpg_sixteenths_of_plain(x, x); }
MPG_INLINE mpg_i16_plain mpg_count_below_raw_plain(mpg_i16_plain count, mpg_i16_plain x, mpg_i16_plain y)
{
    return mpg_add_words_raw_plain(count, mpg_words_below_raw_plain(x, y));
}
MPG_INLINE int mpg_any_words_raw_plain(mpg_i16_plain x)
{
    uint64_t lane[MPG_DOUBLES_PLAIN], any = 0;
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        any |= lane[l];
    return any != 0;
}
MPG_INLINE int mpg_any_outside_raw_plain(mpg_i16_plain x, mpg_i16_plain low, mpg_i16_plain high)
{
    return mpg_any_words_raw_plain(
        mpg_smaller_words_raw_plain(mpg_words_below_raw_plain(x, low), mpg_words_below_raw_plain(high, x)));
}
MPG_INLINE void mpg_ends_raw_plain(mpg_i16_plain high, mpg_i16_plain low, mpg_f64_plain *end)
{
    const mpg_unsigned64_plain h = (mpg_unsigned64_plain)mpg_lanes_of_words_plain(high);
    const mpg_unsigned64_plain l = (mpg_unsigned64_plain)mpg_lanes_of_words_plain(low);
    for (int g = 0; g < 4; g++)
        end[g] = mpg_value64_raw_plain((mpg_i64_plain)(h >> 16 * g << 48 | (l >> 16 * g & 0xFFFF)));
}
MPG_INLINE void mpg_starts_raw_plain(mpg_i16_plain x, mpg_f64_plain *start) { mpg_ends_raw_plain(x, x, start); }
MPG_INLINE void mpg_powers_raw_plain(mpg_i16_plain x, mpg_f64_plain *power)
{
    mpg_ends_raw_plain(x, mpg_pairs_raw_plain(0), power);
}
MPG_INLINE mpg_i16_plain mpg_exponent_words_raw_plain(const mpg_f64_plain *x)
{
    mpg_i64_plain words = mpg_all_bits_raw_plain(0);
    for (int g = 0; g < 4; g++)
        words |= (mpg_i64_plain)((mpg_unsigned64_plain)(mpg_bits64_raw_plain(x[g]) >> 48 & 0x7FF0) << 16 * g);
    return mpg_words_of_lanes_plain(words);
}
MPG_INLINE mpg_f64_plain mpg_chosen_plain(mpg_i64_plain mask, mpg_f64_plain x, mpg_f64_plain y)
{
    return mpg_value64_raw_plain((mpg_bits64_raw_plain(x) & mask) | (mpg_bits64_raw_plain(y) & ~mask));
}
MPG_INLINE mpg_f64_plain mpg_where_word_raw_plain(mpg_i16_plain words, int g, mpg_f64_plain x, mpg_f64_plain y)
{
    const mpg_unsigned64_plain highest = (mpg_unsigned64_plain)mpg_lanes_of_words_plain(words) << (48 - 16 * g);
    return mpg_chosen_plain((mpg_i64_plain)highest >> 63, x, y);
}
MPG_INLINE mpg_f64_plain mpg_below64_raw_plain(mpg_f64_plain a, mpg_f64_plain b, mpg_f64_plain x, mpg_f64_plain y)
{
    return mpg_chosen_plain(MPG_MASK64_PLAIN(a < b), x, y);
}
#if (defined(__GNUC__) || defined(__clang__)) && defined(__SSE2__)
MPG_INLINE mpg_f64_plain mpg_larger64_raw_plain(mpg_f64_plain x, mpg_f64_plain y) { return _mm_max_pd(x, y); }
MPG_INLINE mpg_f64_plain mpg_smaller64_raw_plain(mpg_f64_plain x, mpg_f64_plain y) { return _mm_min_pd(x, y); }
#else
MPG_INLINE mpg_f64_plain mpg_larger64_raw_plain(mpg_f64_plain x, mpg_f64_plain y) { return mpg_below64_raw_plain(x, y, y, x); }
MPG_INLINE mpg_f64_plain mpg_smaller64_raw_plain(mpg_f64_plain x, mpg_f64_plain y) { return mpg_below64_raw_plain(x, y, x, y); }
#endif
MPG_INLINE mpg_f64_plain mpg_where_more64_raw_plain(mpg_f64_plain x, mpg_f64_plain a, mpg_f64_plain b)
{
    return mpg_value64_raw_plain(mpg_bits64_raw_plain(x) & MPG_MASK64_PLAIN(a > b));
}
MPG_INLINE mpg_i64_plain mpg_unlike64_raw_plain(mpg_f64_plain x, mpg_f64_plain y) { return MPG_MASK64_PLAIN(x != y) & 1; }
MPG_INLINE unsigned mpg_beyond64_raw_plain(mpg_f64_plain x, double limit)
{
    double lane[MPG_DOUBLES_PLAIN];
    unsigned set = 0;
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        set |= (unsigned)(lane[l] >= limit || lane[l] <= -limit) << l;
    return set;
}
MPG_INLINE mpg_f64_plain mpg_without64_raw_plain(mpg_f64_plain x, unsigned lanes)
{
    double lane[MPG_DOUBLES_PLAIN];
    memcpy(lane, &x, sizeof lane);
    for (int l = 0; l < MPG_DOUBLES_PLAIN; l++)
        if (lanes >> l & 1)
            lane[l] = 0;
    memcpy(&x, lane, sizeof x);
    return x;
}
#if defined(__aarch64__) && defined(__ARM_NEON) && (defined(__GNUC__) || defined(__clang__))
#include <arm_neon.h>
MPG_INLINE mpg_f64_plain mpg_madd64_raw_plain(mpg_f64_plain a, mpg_f64_plain b, mpg_f64_plain c) { return vfmaq_f64(c, a, b); }
#else
MPG_INLINE mpg_f64_plain mpg_madd64_raw_plain(mpg_f64_plain a, mpg_f64_plain b, mpg_f64_plain c) { return c + a * b; }
#endif
#define mpg_madd_down_raw_plain mpg_madd64_raw_plain
#define mpg_madd_truncated_raw_plain mpg_madd64_raw_plain
MPG_INLINE mpg_f64_plain mpg_chopped32_raw_plain(mpg_f64_plain x)
{
    return MPG_CONVERT_PLAIN(MPG_CONVERT_PLAIN(x, mpg_half_plain), mpg_f64_plain); /* GCC 12 leaves loops of both out */
}
MPG_INLINE mpg_f64_plain mpg_add_down_raw_plain(mpg_f64_plain magic, mpg_f64_plain x) { return magic + x; }
#endif
