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
        }
    for (int i = 0; i < 256; i += VLANES) {
        uint8_t bytes[VLANES];
        EACH bytes[l] = (uint8_t)(i + l);
        const VI fields = OP(fields)(bytes);
        TAKE(n, fields);
        EACH expect("fields" OP_SET, bytes[l], 0, n[l], (double)(int32_t)((uint32_t)bytes[l] << 23));
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
#undef INTEGERS
#undef EACH
#undef PUT
#undef TAKE
