/* Numbers of one width of integers: rounded at a place or to an encoding, IEEE additions, fused multiply-adds of two. Included by
 * generic_steps.h once for each width, as generic_fused.h is, which says what is defined.
 */

/* Exponent of the leading bit, magnitude > 0. */
MPG_INLINE int NAME(leading)(UACC magnitude)
{
#if BITS > 64
    const uint64_t high = (uint64_t)(magnitude >> 64);
    return high ? 64 + mpg_leading_bit(high) : mpg_leading_bit((uint64_t)magnitude);
#else
    return mpg_leading_bit(magnitude);
#endif
}

MPG_INLINE UACC NAME(magnitude)(ACC value) { return value < 0 ? (UACC)0 - (UACC)value : (UACC)value; }

/* value / 2^shift as an integer, rounded; a shift below 0 is exact. Signs and shifts are random, so no branch is on them;
 * magnitudes stay below 2^(BITS - 2), so that shifts beyond BITS - 1 round as BITS - 1. */
MPG_INLINE ACC NAME(aligned)(ACC value, int64_t shift, int rounding)
{
    const ACC sign = -(ACC)(value < 0);
    const UACC magnitude = ((UACC)value ^ (UACC)sign) - (UACC)sign;
    int64_t down = shift < 0 ? 0 : shift, up = shift < 0 ? -shift : 0;
    down = down > BITS - 1 ? BITS - 1 : down;
    up = up > BITS - 1 ? BITS - 1 : up; /* only zeros go so far up */
    const UACC lifted = magnitude << up;
    const UACC rest = lifted & (((UACC)1 << down) - 1), half = ((UACC)1 << down) >> 1;
    UACC kept = lifted >> down;
    if (rounding != MPG_RZ)
        kept += (UACC)(MPG_AWAY(rounding, rest, half, kept & 1, value < 0) & (rest != 0));
    return (ACC)((kept ^ (UACC)sign) - (UACC)sign);
}

/* Round value * 2^exponent to the result format; the exact sum 0 is +0. */
static uint64_t NAME(finish)(ACC value, int64_t exponent, const mpg_result *t, const mpg_rule *r)
{
    if (value == 0)
        return 0;
    UACC magnitude = NAME(magnitude)(value);
    int sticky = 0;
#if BITS > 64
    const int excess = NAME(leading)(magnitude) - 63;
    if (excess > 0) {
        const UACC kept = magnitude >> excess;
        sticky = (kept << excess) != magnitude;
        magnitude = kept;
        exponent += excess;
    }
#endif
    const uint64_t code = mpg_encode_number(value < 0, (uint64_t)magnitude, sticky, exponent, t, r);
    MPG_TRACE(MPG_TRACE_ROUNDED, 0, exponent, value, code);
    return code;
}

/* ---- IEEE additions ------------------------------------------------------------------------------------------------ */
/* magnitude / 2^shift with what is cut off as a last bit */
MPG_INLINE UACC NAME(jammed)(UACC magnitude, int64_t shift)
{
    const int64_t down = shift > BITS - 1 ? BITS - 1 : shift;
    const UACC kept = magnitude >> down;
    return kept | (UACC)((kept << down) != magnitude);
}

/* Exact sum of two finite numbers, rounded once; signed zeros by IEEE 754-2019, 6.3. Both magnitudes are below
 * 2^(BITS - 3), so that a number of which bits are lost below is at most a quarter of the other. */
static uint64_t NAME(rounded_sum)(int x_negative, UACC x, int64_t x_exponent, int y_negative, UACC y, int64_t y_exponent,
                                  const mpg_result *t, const mpg_rule *r)
{
    MPG_TRACE(MPG_TRACE_ADD, 0, x_exponent, x_negative ? -(ACC)x : (ACC)x, 0);
    MPG_TRACE(MPG_TRACE_ADD, 1, y_exponent, y_negative ? -(ACC)y : (ACC)y, 0);
    if (x == 0 && y == 0) {
        const int negative = (x_negative && y_negative) || (r->rounding == MPG_RD && (x_negative || y_negative));
        return negative ? t->zero_sign : 0;
    }
    if (x == 0)
        return NAME(finish)(y_negative ? -(ACC)y : (ACC)y, y_exponent, t, r);
    if (y == 0)
        return NAME(finish)(x_negative ? -(ACC)x : (ACC)x, x_exponent, t, r);
    /* Leading bits of both go to one place, the smaller number then down; its last bit says whether it lost anything. */
    const int x_up = BITS - 3 - NAME(leading)(x), y_up = BITS - 3 - NAME(leading)(y);
    const int64_t x_unit = x_exponent - x_up, y_unit = y_exponent - y_up;
    const int64_t unit = x_unit > y_unit ? x_unit : y_unit;
    x = NAME(jammed)(x << x_up, unit - x_unit);
    y = NAME(jammed)(y << y_up, unit - y_unit);
    const UACC x_sign = (UACC)0 - (UACC)(x_negative != 0), y_sign = (UACC)0 - (UACC)(y_negative != 0);
    const ACC sum = (ACC)((x ^ x_sign) - x_sign) + (ACC)((y ^ y_sign) - y_sign);
    if (sum == 0)
        return r->rounding == MPG_RD && !r->positive_zero ? t->zero_sign : 0;
    return NAME(finish)(sum, unit, t, r);
}

/* IEEE sum of two numbers. */
static uint64_t NAME(ieee_add)(mpg_number x, mpg_number y, const mpg_result *t, const mpg_rule *r)
{
    const int special = mpg_specials_of(x) | mpg_specials_of(y);
    if (special)
        return mpg_special_code(special, t, r);
    return NAME(rounded_sum)(x.negative, x.significand, x.exponent, y.negative, y.significand, y.exponent, t, r);
}

/* ---- SequentialFMA in integers ------------------------------------------------------------------------------------- */
/* Packed significands carry their sign in the last bit, because the sign of a zero counts here. */
static uint64_t NAME(soft_fma)(const mpg_plan *p, SIG a, int32_t ae, SIG b, int32_t be, const mpg_number *c)
{
    const UACC x = (UACC)a >> 1, y = (UACC)b >> 1;
    const int negative = (int)((a ^ b) & 1);
    int found = mpg_specials_of(*c);
    if (ae >= MPG_ALIGN_INF || be >= MPG_ALIGN_INF) {
        const int nan = ae == MPG_ALIGN_NAN || be == MPG_ALIGN_NAN || x == 0 || y == 0;
        found |= nan ? MPG_HAS_NAN : negative ? MPG_HAS_NEGATIVE_INF : MPG_HAS_POSITIVE_INF;
    }
    if (found)
        return mpg_special_code(found, &p->result, &p->late);
    return NAME(rounded_sum)(negative, x * y, (int64_t)ae + be - p->product_fraction, c->negative, c->significand, c->exponent,
                             &p->result, &p->late);
}
