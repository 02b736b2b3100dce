/* Tests of the operations of the instruction set LANES_LEVEL. */
#include "operations.h"

#define EACH for (int l = 0; l < VLANES; l++)
#define PUT(vector, array) memcpy(&(vector), array, sizeof(vector))
#define TAKE(array, vector) memcpy(array, &(vector), sizeof(vector))

/* Operations of one float32, x[0] to x[VLANES - 1]; those whose domain is smaller are given zeros elsewhere. */
OP_FN void OP(test_floats)(const float *x)
{
    float f[VLANES], small[VLANES], got[VLANES];
    int32_t n[VLANES];
    VF v, w;
    VI i;
    EACH
    {
        f[l] = x[l] > -0x1p31f && x[l] < 0x1p31f ? x[l] : 0;
        small[l] = x[l] > -0x1p100f && x[l] < 0x1p100f ? x[l] : 0;
    }
    int exponent;
    PUT(v, f);
    i = OP(truncated)(v);
    TAKE(n, i);
    i = OP(bits)(v);
    TAKE(got, i);
    EACH expect("bits" OP_SET, f[l], 0, got[l], f[l]);
    w = OP(value)(i);
    TAKE(got, w);
    EACH expect("value" OP_SET, f[l], 0, got[l], f[l]);
    EACH
    {
        const int64_t m = taken(f[l], &exponent);
        expect("truncated" OP_SET, f[l], 0, n[l], (double)whole(m, exponent, 0));
    }
    i = OP(floored)(v);
    TAKE(n, i);
    EACH
    {
        const int64_t m = taken(f[l], &exponent);
        const int64_t down = whole(m, exponent, 1);
        if (down >= -INT64_C(0x7FFFFFFF))
            expect("floored" OP_SET, f[l], 0, n[l], (double)down);
    }
    PUT(w, small);
    w = OP(fp16)(w);
    TAKE(got, w);
    EACH
    {
        const double wanted = nearest_fp16(small[l]);
        if (fabs(wanted) < 65536)
            expect("fp16" OP_SET, small[l], 0, got[l], wanted);
        else
            expect("fp16, beyond" OP_SET, small[l], 0, fabs(got[l]) >= 65536 && (got[l] < 0) == (wanted < 0), 1);
    }
    const unsigned beyond = OP(beyond_fp16)(w);
    const VF rest = OP(without)(w, beyond);
    TAKE(f, rest);
    EACH
    {
        expect("beyond_fp16" OP_SET, got[l], 0, beyond >> l & 1, fabs(got[l]) >= 65536);
        expect("without" OP_SET, got[l], 0, f[l], fabs(got[l]) >= 65536 ? 0 : got[l]);
    }
}

/* Operations that move lanes, and compare them. */
OP_FN void OP(test_lanes)(const float *x, const float *y)
{
    float got[VLANES + 2];
    int32_t n[VLANES];
    VF v = OP(load)(x), w = OP(load)(y);
    VI i = OP(unlike)(v, w);
    TAKE(n, i);
    EACH expect("unlike" OP_SET, x[l], y[l], n[l], x[l] != y[l] ? -1 : 0);
    OP(store)(got, v);
    EACH expect("load, store" OP_SET, x[l], 0, got[l], x[l]);
    v = OP(allf)(x[1]);
    i = OP(all)((int32_t)x[1]);
    TAKE(got, v);
    TAKE(n, i);
    EACH expect("allf" OP_SET, x[1], 0, got[l], x[1]);
    EACH expect("all" OP_SET, x[1], 0, n[l], (double)(int32_t)x[1]);
#if VNAMED
    for (int count = -1; count <= VLANES + 1; count++) {
        v = OP(some)(x, OP(first)(count));
        TAKE(got, v);
        EACH expect("first, some" OP_SET, x[l], count, got[l], l < count ? x[l] : 0);
        EACH got[l] = 7;
        OP(put_some)(got, w, OP(first)(count));
        EACH expect("put_some" OP_SET, y[l], count, got[l], l < count ? y[l] : 7);
    }
#endif
}

/* Operations of integers. */
OP_FN void OP(test_integers)(const int32_t *x, const int32_t *y)
{
    int32_t n[VLANES], places[VLANES];
    float got[VLANES], odd[VLANES];
    VI a, b, c, p;
    PUT(a, x);
    PUT(b, y);
    EACH places[l] = (y[l] & 0x7FFFFFFF) % 40;
    PUT(p, places);
    VF v = OP(chopped)(a), w = OP(odd)(v, a);
    TAKE(got, v);
    TAKE(odd, w);
    EACH
    {
        int cut;
        const int64_t kept = chopped(x[l], &cut);
        expect("chopped" OP_SET, x[l], 0, got[l], (double)kept);
        const int64_t last = !cut ? 0 : kept < 0 ? -(kept & -kept) : kept & -kept;
        if (cut) { /* the last bit of 24 is set */
            const float away = mpg_as_float(mpg_as_bits(got[l]) | 1);
            expect("odd" OP_SET, x[l], 0, odd[l], away);
            expect("odd is odd" OP_SET, x[l], 0, mpg_as_bits(odd[l]) & 1, last != 0);
        } else {
            expect("odd" OP_SET, x[l], 0, odd[l], got[l]);
        }
    }
#define INTEGERS(NAME, CALL, WANTED)                                                                                           \
    c = CALL;                                                                                                                  \
    TAKE(n, c);                                                                                                                \
    EACH expect(NAME OP_SET, x[l], y[l], n[l], (double)(int32_t)(WANTED));
    INTEGERS("larger", OP(larger)(a, b), x[l] > y[l] ? x[l] : y[l])
    INTEGERS("magnitude", OP(magnitude)(a), x[l] < 0 ? -(uint32_t)x[l] : (uint32_t)x[l])
    INTEGERS("where_more", OP(where_more)(a, a, b), x[l] > y[l] ? x[l] : 0)
    INTEGERS("add", OP(add)(a, b), (uint32_t)x[l] + (uint32_t)y[l])
    INTEGERS("sub", OP(sub)(a, b), (uint32_t)x[l] - (uint32_t)y[l])
    INTEGERS("right", OP(right)(a, p), whole(x[l], -places[l], 1))
    INTEGERS("right_logical", OP(right_logical)(a, p), places[l] > 31 ? 0 : (uint32_t)x[l] >> places[l])
    INTEGERS("left", OP(left)(a, p), places[l] > 31 ? 0 : (uint32_t)x[l] << places[l])
    INTEGERS("load_integers", OP(load_integers)(x), x[l])
    INTEGERS("add_clamped", OP(add_clamped)(a, b),
             (int64_t)x[l] + y[l] > INT32_MAX   ? INT32_MAX
             : (int64_t)x[l] + y[l] < INT32_MIN ? INT32_MIN
                                                : x[l] + (int64_t)y[l])
    INTEGERS("pair_products", OP(pair_products)(a, b),
             (uint32_t)((int16_t)x[l] * (int16_t)y[l]) + (uint32_t)((x[l] >> 16) * (y[l] >> 16)))
    for (int count = -1; count <= VLANES + 1; count++) {
        INTEGERS("some_integers", OP(some_integers)(x, count), l < count ? x[l] : 0)
        EACH places[l] = 7;
        OP(put_some_integers)(places, c, count);
        EACH expect("put_some_integers" OP_SET, x[l], count, places[l], l < count ? x[l] : 7);
    }
    const unsigned negative = OP(negative)(a);
    EACH expect("negative" OP_SET, x[l], 0, negative >> l & 1, x[l] < 0);
    /* high * 256 + low, as the far sums of narrow_lanes.h add them, and coarse * finer + fine of sums that are rounded down */
    float high[VLANES], low[VLANES];
    EACH
    {
        high[l] = (float)((x[l] >> 8) + (y[l] >> 8)) * 256.0f;
        low[l] = (float)((x[l] & 255) + (y[l] & 255));
    }
    PUT(v, high);
    PUT(w, low);
    v = OP(add_chopped)(v, w);
    TAKE(got, v);
    EACH
    {
        int cut;
        expect("add_chopped" OP_SET, high[l], low[l], got[l], (double)chopped((int64_t)high[l] + (int64_t)low[l], &cut));
    }
    OP(test_lanes)(high, low);
    /* coarse * finer + fine of sums that are rounded down: their exact sum, rounded once */
    float coarse[VLANES], fine[VLANES];
    const int guard = (int)((uint32_t)x[0] % 8);
    EACH
    {
        coarse[l] = (float)(x[l] >> 1 & ~255);
        fine[l] = (float)((x[l] & 255) << guard | (y[l] & ((1 << guard) - 1)));
    }
    PUT(v, coarse);
    PUT(w, fine);
    v = OP(madd)(v, OP(allf)((float)(1 << guard)), w);
    TAKE(got, v);
    EACH
    {
        const int64_t sum = (int64_t)coarse[l] * (1 << guard) + (int64_t)fine[l];
        expect("madd" OP_SET, coarse[l], fine[l], got[l], fitted(sum, 0, 24, -149, VNAMED ? NEAREST : TOWARD_ZERO));
    }
}

/* All pairs of bytes as exponents. */
OP_FN void OP(test_bytes)(void)
{
    uint8_t x[VBYTES], y[VBYTES], top[VBYTES], got[VBYTES], got16[16];
    int32_t n[VLANES];
    for (int i = 0; i < 256; i++)
        for (int j = 0; j < 256; j++) {
            for (int l = 0; l < VBYTES; l++) {
                x[l] = (uint8_t)(l & 1 ? i : j);
                y[l] = (uint8_t)(l & 1 ? j : i);
                top[l] = (uint8_t)(random32() % 256);
            }
            VU8 a, b, t;
            VU16 c, d, s;
            PUT(a, x);
            PUT(b, y);
            PUT(t, top);
            PUT(c, x);
            PUT(d, y);
            PUT(s, top);
            t = OP(most)(t, a, b);
            s = OP(most16)(s, c, d);
            TAKE(got, t);
            TAKE(got16, s);
            for (int l = 0; l < VBYTES; l++) {
                const int rest = x[l] > y[l] ? x[l] - y[l] : 0, wanted = rest > top[l] ? rest : top[l];
                expect("most" OP_SET, x[l], y[l], got[l], wanted);
                if (l < 16)
                    expect("most16" OP_SET, x[l], y[l], got16[l], wanted);
            }
            const uint32_t word = (uint32_t)i << 24 | (uint32_t)j << 8 | 0x5A00A5u;
            a = OP(words)(word);
            TAKE(got, a);
            for (int l = 0; l < VBYTES; l++)
                expect("words" OP_SET, i, j, got[l], word >> 8 * (l & 3) & 255);
            c = OP(words16)(word);
            TAKE(got16, c);
            for (int l = 0; l < 16; l++)
                expect("words16" OP_SET, i, j, got16[l], word >> 8 * (l & 3) & 255);
#if VNAMED
            PUT(a, top);
            for (int part = 0; part < 4; part++) {
                c = OP(quarter)(a, part);
                TAKE(got16, c);
                for (int l = 0; l < 16; l++)
                    expect("quarter" OP_SET, top[16 * part + l], part, got16[l], top[16 * part + l]);
            }
#endif
        }
    for (int i = 0; i < 256; i += VLANES) {
        uint8_t bytes[VLANES];
        EACH bytes[l] = (uint8_t)(i + l);
        const VI fields = OP(fields)(bytes);
        TAKE(n, fields);
        EACH expect("fields" OP_SET, bytes[l], 0, n[l], (double)(int32_t)((uint32_t)bytes[l] << 23));
#if VNAMED
        VU16 packed;
        PUT(packed, bytes);
        const VI same = OP(fields_of)(packed);
        TAKE(n, same);
        EACH expect("fields_of" OP_SET, bytes[l], 0, n[l], (double)(int32_t)((uint32_t)bytes[l] << 23));
#endif
    }
}

/* Units of every field and F, and products of 11-bit significands in them; the powers that take a number into units and back. */
OP_FN void OP(test_units)(void)
{
    float a[VLANES], b[VLANES], factor[VLANES], unit[VLANES];
    int32_t field[VLANES], n[VLANES];
    for (int fraction_bits = 6; fraction_bits <= 25; fraction_bits++)
        for (int top = 59; top <= 254; top++)
            for (int round = 0; round < 8; round++) {
                EACH
                {
                    const int product = top < 160 ? top - 127 : 32; /* its exponent is at most this */
                    const int sum = product < -30 ? -30 : product - (int)(random32() % (uint32_t)(product + 31));
                    const int most = sum + 15 < 15 ? sum + 15 : 15, least = sum - 15 > -15 ? sum - 15 : -15;
                    const int e = least + (most > least ? (int)(random32() % (uint32_t)(most - least + 1)) : 0);
                    const int32_t s = (int32_t)(random32() % 2048), u = (int32_t)(random32() % 2048);
                    const int fits = product >= -30 && s && u;
                    a[l] = fits ? ldexpf((float)(random32() & 1 ? -s : s), e - 11 - VPRESCALE) : 0.0f;
                    b[l] = ldexpf((float)u, (sum - e < -15 ? -15 : sum - e > 15 ? 15 : sum - e) - 11);
                    field[l] = top << 23;
                }
                VF x, y;
                VI t;
                PUT(x, a);
                PUT(y, b);
                PUT(t, field);
                const VSCALE scale = OP(scale_of)(t, fraction_bits);
                const VI got = OP(in_units)(x, y, scale);
                TAKE(n, got);
                EACH
                {
                    int e, f;
                    const int64_t p = taken(a[l], &e), q = taken(b[l], &f);
                    expect("in_units" OP_SET, a[l], b[l], n[l],
                           (double)whole(p * q, e + f + VPRESCALE + fraction_bits + 127 - top, 0));
                }
                const VF to = OP(factor_of)(scale, t, fraction_bits), from = OP(unit_of)(scale, t, fraction_bits);
                const VF power = OP(power)(t);
                TAKE(factor, to);
                TAKE(unit, from);
                TAKE(a, power);
                EACH
                {
                    expect("factor_of" OP_SET, top, fraction_bits, factor[l], ldexp(1, fraction_bits + 127 - top));
                    expect("unit_of" OP_SET, top, fraction_bits, unit[l], ldexp(1, top - 127 - fraction_bits));
                    expect("power" OP_SET, top, 0, a[l], ldexp(1, top - 127));
                }
            }
}

OP_TARGET MPG_NOINLINE static void OP(test)(int sweep)
{
    float x[VLANES];
    int32_t n[VLANES], m[VLANES];
    for (int64_t i = 0; i < 40000; i += VLANES) {
        EACH
        {
            x[l] = number(i + l, -40, 36);
            n[l] = drawn(i + l);
            m[l] = drawn(i * 7 + l);
        }
        OP(test_floats)(x);
        OP(test_integers)(n, m);
    }
    for (int64_t i = 0; sweep && i < INT64_C(1) << 32; i += VLANES) {
        EACH
        {
            const uint32_t bits = (uint32_t)(i + l);
            x[l] = (bits & 0x7FFFFFFF) < 0x7F800000 ? mpg_as_float(bits) : 0;
            n[l] = bits == 0x80000000u ? 0 : (int32_t)bits;
            m[l] = (int32_t)(bits * 2654435761u) >> 1;
        }
        OP(test_floats)(x);
        OP(test_integers)(n, m);
    }
    OP(test_bytes)();
    OP(test_units)();
}
/* ---- words and doubles -------------------------------------------------------------------------------------------------- */
#define WORDS (4 * VDLANES)
#define EACH_WORD for (int l = 0; l < WORDS; l++)
#define EACH64 for (int l = 0; l < VDLANES; l++)

/* All words x with some y. */
OP_FN void OP(test_words)(void)
{
    int16_t x[WORDS], y[WORDS], z[WORDS], n[WORDS];
    double got[4][VDLANES];
    VW a, b, c, r;
    VD v[4];
    for (int64_t i = 0; i < 8 << 16; i += WORDS) {
        EACH_WORD
        {
            x[l] = (int16_t)(i + l);
            y[l] = (int16_t)(i >> 16 == 0 ? 0 : i >> 16 == 1 ? x[l] + (int)(random32() % 3) - 1 : (int)random32());
            z[l] = (int16_t)random32();
        }
        PUT(a, x);
        PUT(b, y);
        PUT(c, z);
#define RESULTS(NAME, CALL, WANTED)                                                                                            \
    r = CALL;                                                                                                                  \
    TAKE(n, r);                                                                                                                \
    EACH_WORD expect(NAME OP_SET, x[l], y[l], n[l], (int16_t)(WANTED));
        RESULTS("add_words", OP(add_words)(a, b), (uint16_t)x[l] + (uint16_t)y[l])
        RESULTS("larger_words", OP(larger_words)(a, b), x[l] > y[l] ? x[l] : y[l])
        RESULTS("smaller_words", OP(smaller_words)(a, b), x[l] < y[l] ? x[l] : y[l])
        RESULTS("sixteenths", OP(sixteenths)(a), whole(x[l], -4, 1))
        RESULTS("words_below", OP(words_below)(a, b), x[l] < y[l] ? -1 : 0)
        RESULTS("count_below", OP(count_below)(c, a, b), (uint16_t)z[l] - (x[l] < y[l]))
        RESULTS("raised_words", OP(raised_words)(a, b), x[l] == 0 ? 0 : x[l] > y[l] ? x[l] : y[l])
        RESULTS("mul_words", OP(mul_words)(a, b), (uint32_t)(uint16_t)x[l] * (uint16_t)y[l])
        RESULTS("larger_where_common", OP(larger_where_common)(OP(all_words)(y[0] & 0x7FFF), a, b, c),
                (y[l] & z[l]) && x[l] > (y[0] & 0x7FFF) ? x[l] : y[0] & 0x7FFF)
        OP(store_words)(n, a);
        EACH_WORD expect("store_words" OP_SET, x[l], 0, n[l], x[l]);
#if VNAMED
        int16_t factors[WORDS]; /* of which two bytes do not pass 16 bits */
        EACH_WORD factors[l] = (int16_t)(y[l] & 0x3F3F);
        PUT(r, factors);
        r = OP(byte_products)(a, r);
        TAKE(n, r);
        EACH_WORD expect("byte_products" OP_SET, x[l], y[l], n[l],
                         (x[l] & 255) * (factors[l] & 255) + (x[l] >> 8 & 255) * (factors[l] >> 8));
#endif
        v[0] = OP(numbers)(x);
        TAKE(got[0], v[0]);
        EACH64 expect("numbers" OP_SET, x[l], 0, got[0][l], x[l]);
        EACH64 y[l] = (int16_t)(1 + (x[l] & 2047) % 2046);
        v[0] = OP(powers_of)(y);
        TAKE(got[0], v[0]);
        EACH64 expect("powers_of" OP_SET, y[l], 0, got[0][l], mpg_power(y[l] - 1023));
        PUT(b, y);
        RESULTS("pairs", OP(pairs)((uint32_t)(uint16_t)x[0] | (uint32_t)(uint16_t)y[0] << 16), l & 1 ? y[0] : x[0])
        RESULTS("all_words", OP(all_words)(x[0]), x[0])
        RESULTS("load_words", OP(load_words)(x), x[l])
        int any = 0, outside = 0;
        const int16_t low = y[0] < z[0] ? y[0] : z[0], high = y[0] < z[0] ? z[0] : y[0];
        EACH_WORD any |= x[l] != 0;
        EACH_WORD outside |= x[l] < low || x[l] > high;
        expect("any_words" OP_SET, x[0], 0, OP(any_words)(a) != 0, any);
        expect("any_outside" OP_SET, low, high, OP(any_outside)(a, OP(all_words)(low), OP(all_words)(high)) != 0, outside);
        OP(ends)(a, b, v);
        TAKE(got, v);
        for (int g = 0; g < 4; g++)
            EACH64
            {
                const uint64_t wanted = (uint64_t)(uint16_t)x[4 * l + g] << 48 | (uint16_t)y[4 * l + g];
                expect("ends" OP_SET, x[4 * l + g], y[4 * l + g], mpg_as_bits64(got[g][l]) == wanted, 1);
            }
        OP(starts)(a, v);
        TAKE(got, v);
        for (int g = 0; g < 4; g++)
            EACH64 expect("starts" OP_SET, x[4 * l + g], 0,
                          mpg_as_bits64(got[g][l]) == (uint64_t)(uint16_t)x[4 * l + g] * ((UINT64_C(1) << 48) + 1), 1);
        OP(powers)(a, v);
        TAKE(got, v);
        for (int g = 0; g < 4; g++)
            EACH64
            {
                expect("powers" OP_SET, x[4 * l + g], 0, mpg_as_bits64(got[g][l]) == (uint64_t)(uint16_t)x[4 * l + g] << 48, 1);
                got[g][l] =
                    mpg_as_double((uint64_t)(uint16_t)x[4 * l + g] << 48 | (uint64_t)random32() << 16 | random32() >> 16);
            }
        PUT(v, got);
        RESULTS("exponent_words", OP(exponent_words)(v), x[l] & 0x7FF0)
#undef RESULTS
        for (int g = 0; g < 4; g++) {
            const VD chosen = OP(where_word)(a, g, OP(all64)(1), OP(all64)(2));
            TAKE(got[0], chosen);
            EACH64 expect("where_word" OP_SET, x[4 * l + g], g, got[0][l], x[4 * l + g] < 0 ? 1 : 2);
        }
    }
}

/* Doubles in general. */
OP_FN void OP(test_doubles)(int64_t i)
{
    double x[VDLANES], y[VDLANES], got[VDLANES];
    float from[VDLANES], to[VDLANES];
    VD a, b, r;
    const double limit = ldexp(1, (int)(random32() % 200) - 100);
    EACH64
    {
        x[l] = wide_number(i + l, -200, 200, 53);
        y[l] = random32() % 4 ? wide_number(i * 3 + l, -200, 200, 53) : x[l];
        from[l] = number(i + l, -100, 100);
    }
    if (i % 3 == 0)
        x[0] = limit;
    PUT(a, x);
    PUT(b, y);
#define RESULTS(NAME, CALL, WANTED)                                                                                            \
    r = CALL;                                                                                                                  \
    TAKE(got, r);                                                                                                              \
    EACH64 expect(NAME OP_SET, x[l], y[l], got[l], WANTED);
    RESULTS("magnitude64", OP(magnitude64)(a), fabs(x[l]))
    RESULTS("exponent64", OP(exponent64)(a), x[l] == 0 ? 0 : ldexp(1, ilogb(x[l])))
    RESULTS("signed64", OP(signed64)(a, b), copysign(x[l], y[l]))
    RESULTS("below64", OP(below64)(a, b, OP(all64)(1), OP(all64)(2)), x[l] < y[l] ? 1 : 2)
    RESULTS("where_more64", OP(where_more64)(OP(all64)(3), a, b), x[l] > y[l] ? 3 : 0)
    RESULTS("load64", OP(load64)(x), x[l])
    RESULTS("bits64, value64", OP(value64)(OP(bits64)(a)), x[l])
    RESULTS("all_bits", OP(value64)(OP(all_bits)((int64_t)mpg_as_bits64(x[0]))), x[0])
    r = OP(larger64)(a, b);
    TAKE(got, r);
    EACH64 expect("larger64" OP_SET, x[l], y[l], got[l] == (x[l] > y[l] ? x[l] : y[l]), 1); /* either of two zeros */
    r = OP(smaller64)(a, b);
    TAKE(got, r);
    EACH64 expect("smaller64" OP_SET, x[l], y[l], got[l] == (x[l] < y[l] ? x[l] : y[l]), 1);
    const VL unlike = OP(unlike64)(a, b);
    int64_t whole_lanes[VDLANES];
    TAKE(whole_lanes, unlike);
    EACH64 expect("unlike64" OP_SET, x[l], y[l], (double)whole_lanes[l], x[l] != y[l]);
    const unsigned beyond = OP(beyond64)(a, limit);
    EACH64 expect("beyond64" OP_SET, x[l], limit, beyond >> l & 1, fabs(x[l]) >= limit);
    RESULTS("without64", OP(without64)(a, beyond), beyond >> l & 1 ? 0 : x[l])
    for (int count = -1; count <= VDLANES + 1; count++) {
        RESULTS("some64", OP(some64)(from, count), l < count ? from[l] : 0)
        EACH64 to[l] = 7;
        PUT(b, got);
        OP(put_some64)(to, b, count);
        EACH64 expect("put_some64" OP_SET, from[l], count, to[l], l < count ? from[l] : 7);
    }
#undef RESULTS
}

/* Sums near 1.5 * 2^52 units, and roundings; `i` is of the first ones. */
OP_FN void OP(test_roundings)(int64_t i)
{
    double x[VDLANES], y[VDLANES], sum[VDLANES], got[VDLANES], product[VDLANES];
    int64_t units[VDLANES];
    const int unit = (int)(random32() % 1500) - 800, far = (int)(random32() % 60) - 70;
    VD a, b, c, r;
    int e, f;
    EACH64
    {
        x[l] = i + l < 4 ? ((i + l) & 1 ? 1 : -1) * ldexp(1, unit + far)
                         : ldexp(wide_number(i + l, 0, 1, 24), unit + 24 + far / 2);
        y[l] = ldexp(wide_number(i + l, 0, 1, 24), (int)(random32() % 24) - 24 + far / 4);
        units[l] = (int64_t)((uint64_t)random32() << 32 | random32()) >> (13 + random32() % 40);
        sum[l] = ldexp(0x1.8p52 + (double)units[l], unit);
        product[l] = x[l] * y[l];
    }
    PUT(a, x);
    PUT(b, y);
    PUT(c, sum);
#define RESULTS(NAME, CALL, WANTED)                                                                                            \
    r = CALL;                                                                                                                  \
    TAKE(got, r);                                                                                                              \
    EACH64                                                                                                                     \
    {                                                                                                                          \
        const int64_t n = taken64(x[l], &e), m = taken64(y[l], &f);                                                            \
        (void)n, (void)m;                                                                                                      \
        expect(NAME OP_SET, x[l], y[l], got[l], WANTED);                                                                       \
    }
    RESULTS("add_down", OP(add_down)(c, a), ldexp(0x1.8p52 + (double)(units[l] + whole(n, e - unit, 1)), unit))
    RESULTS("add_truncated", OP(add_truncated)(c, a), ldexp(0x1.8p52 + (double)(units[l] + whole(n, e - unit, 0)), unit))
    RESULTS("with_sign", OP(with_sign)(c, a), copysign(sum[l], x[l]))
    RESULTS("floored64", OP(floored64)(a, OP(all64)(ldexp(0x1.8p52, unit))), ldexp((double)whole(n, e - unit, 1), unit))
    EACH64 x[l] = fabs(x[l]) > ldexp(1, unit + 40) ? ldexp(1.0, unit) : x[l];
    PUT(a, x);
    EACH64 product[l] = x[l] * y[l];
    r = OP(madd_down)(a, b, c);
    TAKE(got, r);
    EACH64
    {
        const int64_t n = taken64(product[l], &e); /* exact: 24 bits each */
        expect("madd_down" OP_SET, x[l], y[l], got[l], ldexp(0x1.8p52 + (double)(units[l] + whole(n, e - unit, 1)), unit));
    }
    r = OP(madd_truncated)(a, b, OP(with_sign)(c, a * b));
    TAKE(got, r);
    EACH64
    {
        const int64_t n = taken64(fabs(product[l]), &e);
        const double wanted = ldexp(0x1.8p52 + (double)(units[l] + whole(n, e - unit, 0)), unit);
        expect("madd_truncated" OP_SET, x[l], y[l], got[l], copysign(wanted, product[l]));
    }
    r = OP(add_chopped64)(OP(with_sign)(c, a), a);
    TAKE(got, r);
    EACH64
    {
        const int64_t n = taken64(fabs(x[l]), &e);
        const double wanted = ldexp(0x1.8p52 + (double)(units[l] + whole(n, e - unit, 0)), unit);
        expect("add_chopped64" OP_SET, x[l], units[l], got[l], copysign(wanted, x[l]));
    }
    /* roundings to formats: around the ends of float32's range, and of its significand */
    const int low = i % 4 == 0 ? -160 : i % 4 == 1 ? -40 : 100, high = i % 4 == 0 ? -110 : i % 4 == 1 ? 30 : 127;
    EACH64
    {
        x[l] = wide_number(i + l, low, high, 53);
        if (random32() % 3 == 0) /* near a tie */
            x[l] =
                ldexp((double)(((int64_t)random32() >> 8 | 1 << 23) * 2 + 1) + (random32() % 3 - 1.0) * 0x1p-20, low + 5 - 24);
        if (random32() % 16 == 0)
            x[l] = copysign(random32() % 2 ? 0x1p128 : 0x1.ffffffp127, x[l]);
    }
    PUT(a, x);
    RESULTS("truncated32", OP(truncated32)(a),
            x[l] == 0               ? x[l]
            : fabs(x[l]) >= 0x1p128 ? copysign(fmax(fabs(got[l]), 0x1p128), x[l])
                                    : fitted(n, e, 24, -149, TOWARD_ZERO))
    RESULTS("nearest32", OP(nearest32)(a),
            fabs(x[l]) >= 0x1.ffffffp127 ? copysign(fmax(fabs(got[l]), 0x1p128), x[l])
            : x[l] == 0                  ? x[l]
                                         : fitted(n, e, 24, -149, NEAREST))
    EACH64 x[l] = fabs(x[l]) < 0x1p-126 || fabs(x[l]) > 0x1p127 ? (double)(float)ldexp(fmod(x[l], 1), -130) : x[l];
    PUT(a, x);
    RESULTS("normal32", OP(normal32)(a), x[l] == 0 ? x[l] : fitted(n, e, 24, -149, NEAREST))
    RESULTS("chopped32", OP(chopped32)(a), x[l] == 0 ? x[l] : fitted(n, e, 24, -149, TOWARD_ZERO))
    RESULTS("odd32", OP(odd32)(a), x[l] == 0 ? x[l] : fitted(n, e, 24, -149, ODD))
    EACH64 x[l] = wide_number(i + l, -40, 20, 53);
    PUT(a, x);
    RESULTS("nearest16", OP(nearest16)(a),
            fabs(x[l]) >= 65520 ? copysign(fmax(fabs(got[l]), 65536), x[l]) : fitted(n, e, 11, -24, NEAREST) + 0.0)
    EACH64
    {
        x[l] = wide_number(i + l, -30, 30, 53);
        y[l] = random32() % 8 == 0 ? -x[l] : wide_number(i + 2 * l, -30, 30, 53);
    }
    PUT(a, x);
    PUT(b, y);
    r = OP(odd_sum)(a, b);
    TAKE(got, r);
    EACH64
    {
        const int64_t n = taken64(x[l], &e), m = taken64(y[l], &f);
        const int least = e < f ? e : f;
        const __int128 total =
            n * ((__int128)1 << (e - least > 70 ? 70 : e - least)) + m * ((__int128)1 << (f - least > 70 ? 70 : f - least));
        if (n && m && total) /* signs of zeros are those of the CPU's rounding */
            expect("odd_sum" OP_SET, x[l], y[l], got[l], fitted(total, least, 53, -1074, ODD));
    }
    /* integers: exact in any rounding */
    EACH64
    {
        x[l] = (double)(random32() >> 8);
        y[l] = (double)(random32() >> 8);
        sum[l] = (double)random32();
    }
    PUT(a, x);
    PUT(b, y);
    PUT(c, sum);
    r = OP(madd64)(a, b, c);
    TAKE(got, r);
    EACH64 expect("madd64" OP_SET, x[l], y[l], got[l], (double)((int64_t)x[l] * (int64_t)y[l] + (int64_t)sum[l]));
#undef RESULTS
}

OP_TARGET MPG_NOINLINE static void OP(test64)(void)
{
    OP(test_words)();
    for (int64_t i = 0; i < 100000; i += VDLANES) {
        OP(test_doubles)(i);
        OP(test_roundings)(i);
    }
}
#undef WORDS
#undef EACH_WORD
#undef EACH64
#undef INTEGERS
#undef EACH
#undef PUT
#undef TAKE
