/* Each operation of operations.h against the sentence that is its contract, said again in integers, for every instruction set that this
 * CPU has. Argument: 1 for sweeps over all 2^32 encodings where an operation has one operand, 0 for edges and random ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chains.h"
#include "narrow.h"
#include "wide_tiles.h"

static int64_t compared = 0, wrong = 0;
static uint64_t state = 88172645463325252u;

static uint32_t random32(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

static void expect(const char *operation, double x, double y, double got, double wanted)
{
    compared++;
    if (got == wanted && signbit(got) == signbit(wanted))
        return;
    if (wrong++ < 20)
        fprintf(stderr, "%s(%.17g, %.17g) is %.17g, expected %.17g\n", operation, x, y, got, wanted);
}

/* The same of results that may be NaN, whose payload is anybody's. */
static void expect_number(const char *operation, double x, double y, double got, double wanted)
{
    const int both = isnan(got) && isnan(wanted);
    expect(operation, x, y, both ? 0 : got, both ? 0 : wanted);
}

/* ---- contracts in integers ---------------------------------------------------------------------------------------------- */
/* A finite float32 as significand * 2^exponent. */
static int64_t taken(float x, int *exponent)
{
    const uint32_t bits = mpg_as_bits(x);
    const int field = (int)(bits >> 23 & 255);
    const int64_t significand = field ? (bits & 0x7FFFFF) | 0x800000 : bits & 0x7FFFFF;
    *exponent = (field ? field : 1) - 150;
    return bits >> 31 ? -significand : significand;
}

/* n 2^e rounded to an integer: down, toward zero (0) or up (1), for |result| < 2^62. */
static int64_t whole(int64_t n, int e, int down)
{
    if (e >= 0)
        return n * ((int64_t)1 << e);
    const int places = -e > 62 ? 62 : -e;
    if (down || n >= 0)
        return n >> places;
    return -(-n >> places);
}

/* An integer with its bits beyond the first 24 cut off; `*cut`: whether there were any. */
static int64_t chopped(int64_t n, int *cut)
{
    int64_t magnitude = n < 0 ? -n : n, low = 0;
    for (int place = 0; magnitude >> place >= 1 << 24; place++)
        low = ((int64_t)2 << place) - 1;
    *cut = (magnitude & low) != 0;
    return n < 0 ? -(magnitude & ~low) : magnitude & ~low;
}

/* The nearest fp16 number, ties to even; 65536 and more beyond. In units of 2^-24, of which x is a whole number plus a rest. */
static double nearest_fp16(float x)
{
    int exponent;
    const int64_t n = taken(x, &exponent), magnitude = n < 0 ? -n : n;
    if (magnitude == 0)
        return 0;
    int leading = exponent;
    while (magnitude >> (leading - exponent) > 1)
        leading++;
    const int last = (leading < -14 ? -14 : leading) - 10, places = last - exponent;
    int64_t kept = places <= 0 ? magnitude << -places : places > 40 ? 0 : magnitude >> places;
    if (places > 0 && places <= 40) {
        const int64_t rest = magnitude - (kept << places), half = (int64_t)1 << (places - 1);
        kept += rest > half || (rest == half && kept & 1);
    }
    const double value = ldexp((double)kept, places <= 0 ? exponent + places : last);
    return kept == 0 ? 0 : n < 0 ? -value : value;
}

/* A finite double as significand * 2^exponent. */
static int64_t taken64(double x, int *exponent)
{
    const uint64_t bits = mpg_as_bits64(x);
    const int field = (int)(bits >> 52 & 2047);
    const int64_t fraction = (int64_t)(bits & UINT64_C(0xFFFFFFFFFFFFF)), significand = fraction | (int64_t)(field != 0) << 52;
    *exponent = (field ? field : 1) - 1075;
    return bits >> 63 ? -significand : significand;
}

/* n 2^e with at most `bits` bits, the last of them not below 2^least: toward zero, to the nearest with ties to even, or to odd. The sign
 * of a result that is zero is that of n. */
enum { TOWARD_ZERO, NEAREST, ODD };
static double fitted(__int128 n, int e, int bits, int least, int mode)
{
    const __int128 magnitude = n < 0 ? -n : n;
    int last = e;
    while (magnitude >> (last - e) >> bits)
        last++;
    if (last < least)
        last = least;
    const int places = last - e;
    __int128 kept = places > 126 ? 0 : magnitude >> places;
    const __int128 rest = places > 126 ? magnitude : magnitude - (kept << places),
                   half = places > 126 || !places ? 0 : (__int128)1 << (places - 1);
    if (mode == NEAREST && places && places <= 126)
        kept += rest > half || (rest == half && (kept & 1));
    if (mode == ODD && rest)
        kept |= 1;
    const double value = ldexp((double)kept, last);
    return n < 0 ? -value : value;
}

/* Integers and encodings at edges, then random ones of every size. */
static int32_t drawn(int64_t i)
{
    static const int32_t edges[] = {0,          1,          -1,         255,        256,        -256,
                                    0xFFFFFF,   1 << 24,    0x1000001,  -0x1000001, 0x1FFFFFF,  0x7FFFFF80,
                                    0x7FFFFFBF, 0x7FFFFFC0, 0x7FFFFFFE, 0x7FFFFFFF, -0x7FFFFFFF};
    if (i < (int64_t)(sizeof edges / sizeof *edges))
        return edges[i];
    return (int32_t)random32() >> random32() % 31;
}

/* Numbers of magnitudes from 2^low to 2^high, integers and halves among them, zeros of either sign first. */
static float number(int64_t i, int low, int high)
{
    const uint32_t sign = random32() << 31, field = (uint32_t)(low + 127) + random32() % (uint32_t)(high - low);
    const uint32_t fraction = random32() & 0x7FFFFF & ~((1u << random32() % 24) - 1);
    return i < 2 ? mpg_as_float((uint32_t)i << 31) : mpg_as_float(sign | field << 23 | fraction);
}

/* The same as a double of so many significant bits. */
static double wide_number(int64_t i, int low, int high, int bits)
{
    const uint64_t random = (uint64_t)random32() << 32 | random32(), sign = random << 63;
    const uint64_t field = (uint64_t)(low + 1023) + random32() % (uint32_t)(high - low);
    const uint64_t fraction = random >> 12 & ~((UINT64_C(1) << (53 - 1 - random32() % (uint32_t)bits)) - 1);
    return i < 2 ? mpg_as_double((uint64_t)i << 63) : mpg_as_double(sign | field << 52 | fraction);
}

/* ---- operations of one number ---- */
static void test_values(void)
{
    for (int field = 0; field <= 254; field++)
        expect("power32", field, 0, mpg_power32(field), field ? ldexp(1, field - 127) : 0);
    for (int x = -16; x <= 15; x++)
        for (int y = -16; y <= 15; y++)
            for (int zero = 0; zero < 4; zero++) {
                const int a = mpg_byte_of_a(x, -(zero & 1)), b = mpg_byte_of_b(y, -(zero >> 1));
                expect("bytes of a and b", x, y, a > b ? a - b : 0, zero == 3 ? 127 + x + y : 0);
            }
}

/* ---- every set ---------------------------------------------------------------------------------------------------------- */
#define LANES_LEVEL MPG_ISA_BASELINE
#include "operations_selftest_isa.h"
#undef LANES_LEVEL
#if MPG_X86_VARIANTS
#define LANES_LEVEL MPG_ISA_AVX2
#include "operations_selftest_isa.h"
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX512
#include "operations_selftest_isa.h"
#undef LANES_LEVEL
#endif

/* The vectors of the chains: floats, then doubles, of every set. */
#define VECTOR_SIZE 4
#define VECTOR_LEVEL MPG_ISA_BASELINE
#include "vector_set_selftest.h"
#undef VECTOR_LEVEL
#define VECTOR_LEVEL MPG_ISA_AVX2
#include "vector_set_selftest.h"
#undef VECTOR_LEVEL
#define VECTOR_LEVEL MPG_ISA_AVX512
#include "vector_set_selftest.h"
#undef VECTOR_SIZE
#define VECTOR_SIZE 8
#include "vector_set_selftest.h"
#undef VECTOR_LEVEL
#define VECTOR_LEVEL MPG_ISA_AVX2
#include "vector_set_selftest.h"
#undef VECTOR_LEVEL
#define VECTOR_LEVEL MPG_ISA_BASELINE
#include "vector_set_selftest.h"
#undef VECTOR_LEVEL
#undef VECTOR_SIZE

/* A function of the lanes' state: toward zero where operations do not name their rounding, flushing to zero where they do. */
static void in_state(void (*test)(int), void (*test64)(void), int named, int sweep)
{
#if MPG_X86_VARIANTS
    const mpg_rounding mode = named ? mpg_flush_to_zero(1) : mpg_round_toward_zero();
#else
    const mpg_rounding mode = mpg_round_toward_zero();
#endif
    test(sweep);
    if (named) /* doubles flush nothing */
        mpg_restore_rounding(mode);
    test64();
    mpg_restore_rounding(mode);
}

int main(int count, char **arguments)
{
    const int sweep = count > 1 && arguments[1][0] == '1', level = mpg_cpu_level();
    test_values();
    test_vectors_4_baseline();
    test_vectors_8_baseline();
    in_state(mpg_test_plain, mpg_test64_plain, 0, sweep);
#if MPG_X86_VARIANTS
    if (level >= MPG_ISA_AVX2) {
        test_vectors_4_avx2();
        test_vectors_8_avx2();
        in_state(mpg_test_avx2, mpg_test64_avx2, 0, sweep);
    }
    if (level >= MPG_ISA_AVX512) {
        test_vectors_4_avx512();
        test_vectors_8_avx512();
        in_state(mpg_test_avx512, mpg_test64_avx512, 1, sweep);
    }
#endif
    printf("operations of %d instruction sets: %lld results, %lld wrong\n", level + 1, (long long)compared, (long long)wrong);
    return wrong != 0;
}
