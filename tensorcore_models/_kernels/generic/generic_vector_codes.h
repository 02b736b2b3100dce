/* Encodings to numbers and back, a vector at a time; for one instruction set (generic_vector_isa.h). The vector twin
 * of generic_number.h, under the same names.
 */
typedef struct {
    V significand, exponent, align;
    V negative, special; /* masks */
} V_(number);

/* Infinities and NaNs are only marked: the scalar kernel takes what holds one. */
VFN V_(number) V_(number_of)(V bits, const mpg_format *f)
{
    V_(number) x;
    const uint64_t field_mask = (UINT64_C(1) << f->exponent_bits) - 1;
    const uint64_t fraction_mask = (UINT64_C(1) << f->fraction_bits) - 1;
    const V field = (bits >> (f->fraction_bits + f->padding_bits)) & field_mask;
    const V fraction = (bits >> f->padding_bits) & fraction_mask;
    const V none = {0}, field_zero = V_(equal)(field, none);
    const V top = V_(equal)(field, V_(all)((int64_t)field_mask));
    x.negative = ~V_(equal)(bits & f->sign_bit, none);
    x.special = none;
    if (f->specials == MPG_SPECIALS_IEEE)
        x.special = top;
    else if (f->specials == MPG_SPECIALS_FN || f->specials == MPG_SPECIALS_SCALE)
        x.special = top & V_(equal)(fraction, V_(all)((int64_t)fraction_mask));
    else if (f->specials == MPG_SPECIALS_FNUZ)
        x.special = x.negative & V_(equal)(field | fraction, none);
    const V subnormal = f->specials == MPG_SPECIALS_SCALE ? none : field_zero;
    x.significand = fraction | (~subnormal & (fraction_mask + 1));
    x.align = V_(pick)(subnormal, V_(all)(f->emin), field - (uint64_t)(int64_t)f->bias);
    x.exponent = x.align - (uint64_t)f->fraction_bits;
    V zero = V_(equal)(x.significand, none);
    if (f->normalise || f->flush) {
        const V leading = x.exponent + V_(leading)(x.significand);
        if (f->normalise)
            x.align = leading;
        if (f->flush)
            x.significand &= ~V_(less_signed)(leading, V_(all)(f->flush_below));
        if (f->flush == MPG_FLUSH_LIKE_ZERO)
            zero = V_(equal)(x.significand, none);
    }
    x.align = V_(pick)(zero, V_(all)(f->zero_align), x.align);
    return x;
}

/* Encode numbers of which `magnitude` holds the leading bit in place 62, with exponent `leading`, and what was cut off below
 * as its last bit; a magnitude of 0 is the encoding 0. Lanes with subnormal or overflowing results go the scalar way. */
VFN V V_(encode)(V negative, V magnitude, V leading, const mpg_vector_rule *v)
{
    const mpg_result *t = v->result;
    const V zero = V_(equal)(magnitude, (V){0});
    const V by_sign = V_(pick)(negative, V_(all)((int64_t)v->negative), V_(all)((int64_t)v->positive));
    const V nearest = magnitude + by_sign + ((magnitude >> v->drop) & v->odd);
    const V odd = magnitude | ((magnitude & v->mask) + v->mask);
    const V kept = (v->to_odd ? odd : nearest) >> v->drop;
    const V code = ((leading - (uint64_t)v->emin) << t->fraction_bits) + (kept << v->up);
    const V bad = V_(less_signed)(leading, V_(all)(v->emin)) | V_(less_signed)(V_(all)(t->emax), leading) |
                  V_(less_signed)(V_(all)((int64_t)t->max_code), code);
    V result = ((code << t->padding_bits) | (negative & t->sign_bit)) & ~zero;
    const unsigned scalar = V_(lanes)(bad & ~zero);
    if (scalar) {
        uint64_t codes[VLANES], magnitudes[VLANES], exponents[VLANES], signs[VLANES];
        V_(store)(codes, result);
        V_(store)(magnitudes, magnitude);
        V_(store)(exponents, leading);
        V_(store)(signs, negative);
        for (int l = 0; l < VLANES; l++)
            if (scalar >> l & 1)
                codes[l] = mpg_encode_number(signs[l] != 0, magnitudes[l] << 1, 0, (int64_t)exponents[l] - 63, t, v->rule);
        result = V_(load)(codes);
    }
    return result;
}

/* Exact sum of two finite numbers of at most 60 significand bits, rounded once: mpg_rounded_sum_64 of generic_ieee.h. */
VFN V V_(ieee_add)(const V_(number) * x, const V_(number) * y, const mpg_vector_rule *v)
{
    const V none = {0}, far = V_(all)(INT32_MIN), last = V_(all)(63);
    const V x_zero = V_(equal)(x->significand, none), y_zero = V_(equal)(y->significand, none);
    const V x_up = 61 - V_(leading)(x->significand), y_up = 61 - V_(leading)(y->significand);
    const V x_unit = V_(pick)(x_zero, far, x->exponent - x_up), y_unit = V_(pick)(y_zero, far, y->exponent - y_up);
    const V unit = V_(max_signed)(x_unit, y_unit);
    const V x_down = V_(min_signed)(unit - x_unit, last), y_down = V_(min_signed)(unit - y_unit, last);
    const V x_lifted = V_(shl)(x->significand, x_up), y_lifted = V_(shl)(y->significand, y_up);
    V x_kept = V_(shr)(x_lifted, x_down), y_kept = V_(shr)(y_lifted, y_down);
    x_kept |= ~V_(equal)(V_(shl)(x_kept, x_down), x_lifted) & 1;
    y_kept |= ~V_(equal)(V_(shl)(y_kept, y_down), y_lifted) & 1;
    const V sum = ((x_kept ^ x->negative) - x->negative) + ((y_kept ^ y->negative) - y->negative);
    const V magnitude = V_(magnitude)(sum), up = 62 - V_(leading)(magnitude);
    const V code = V_(encode)(V_(negative)(sum), V_(shl)(magnitude, up), unit + 62 - up, v);
    const V both = x_zero & y_zero;
    V minus = both & x->negative & y->negative;
    if (v->rule->rounding == MPG_RD)
        minus = V_(pick)(both, x->negative | y->negative, v->rule->positive_zero ? none : ~none);
    return V_(pick)(V_(equal)(sum, none), minus & v->result->zero_sign, code);
}
