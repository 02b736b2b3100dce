/* Integers of WBITS (64 or 128) bits in vectors, two's complement: the values of addends, for one
 * instruction set and width (generic_vector_isa.h); W_(x) is the name x of both.
 */
#if WBITS == 64
typedef struct {
    V low;
} W_(word);
#define W W_(word)

VFN W W_(of)(V magnitude, V negative) { return (W){(magnitude ^ negative) - negative}; }

VFN W W_(add)(W x, W y) { return (W){x.low + y.low}; }

VFN W W_ (and)(W x, W y) { return (W){x.low & y.low}; }

VFN W W_(shl)(W x, V places) { return (W){V_(shl)(x.low, places)}; }

VFN W W_(shr)(W x, V places) { return (W){V_(shr_signed)(x.low, places)}; }

VFN V W_(shr_low)(W x, V places) { return V_(shr_signed)(x.low, places); }

/* 2^places - 1, places below WBITS */
VFN W W_(ones)(V places) { return (W){~V_(shl)(~(V){0}, places)}; }

VFN W W_(half)(W ones) { return (W){ones.low >> 1}; }

VFN V W_(negative)(W x) { return V_(negative)(x.low); }

VFN V W_(nonzero)(W x) { return (V)(x.low != (V){0}); }

VFN W W_(spread)(V mask) { return (W){mask}; }

VFN W W_(either)(V mask, W x, W y) { return (W){V_(pick)(mask, x.low, y.low)}; }

/* Place of the leading bit of the magnitude. */
VFN V W_(leading)(W x) { return V_(leading)(V_(magnitude)(x.low)); }

/* The magnitude with its leading bit moved from place `leading` to place 62; the last bit says whether anything was lost. */
VFN V W_(normalised)(W x, V leading) { return V_(shl)(V_(magnitude)(x.low), 62 - leading); }

/* x + bit, bit 0 or 1 */
VFN W W_(increment)(W x, V bit) { return (W){x.low + bit}; }

/* Operands of 32 bits. */
VFN W W_(multiply)(V x, V y, int narrow)
{
    (void)narrow;
    return (W){V_(multiply_signed)(x, y)};
}

#else
typedef struct {
    V low, high;
} W_(word);
#define W W_(word)

VFN W W_(add)(W x, W y)
{
    const V low = x.low + y.low;
    return (W){low, x.high + y.high - V_(less)(low, x.low)};
}

VFN W W_(of)(V magnitude, V negative)
{
    const V low = (magnitude ^ negative) - negative;
    return (W){low, negative & (V)(magnitude != (V){0})};
}

VFN W W_ (and)(W x, W y) { return (W){x.low & y.low, x.high & y.high}; }

VFN W W_(shl)(W x, V places)
{
    return (W){V_(shl)(x.low, places), V_(shl)(x.high, places) | V_(shr)(x.low, 64 - places) | V_(shl)(x.low, places - 64)};
}

VFN V W_(shr_low)(W x, V places)
{
    const V beyond = places - 64;
    return V_(shr)(x.low, places) | V_(shl)(x.high, 64 - places) | (V_(shr_signed)(x.high, beyond) & ~V_(negative)(beyond));
}

VFN W W_(shr)(W x, V places) { return (W){W_(shr_low)(x, places), V_(shr_signed)(x.high, places)}; }

VFN W W_(ones)(V places) { return (W){~V_(shl)(~(V){0}, places), ~V_(shl)(~(V){0}, V_(max_signed)(places - 64, (V){0}))}; }

VFN W W_(half)(W ones) { return (W){ones.low >> 1 | ones.high << 63, ones.high >> 1}; }

VFN V W_(negative)(W x) { return V_(negative)(x.high); }

VFN V W_(nonzero)(W x) { return (V)((x.low | x.high) != (V){0}); }

VFN W W_(spread)(V mask) { return (W){mask, mask}; }

VFN W W_(either)(V mask, W x, W y) { return (W){V_(pick)(mask, x.low, y.low), V_(pick)(mask, x.high, y.high)}; }

VFN W W_(magnitude)(W x)
{
    const V sign = W_(negative)(x), low = (x.low ^ sign) - sign;
    return (W){low, (x.high ^ sign) + (sign & 1 & V_(equal)(low, (V){0}))};
}

VFN V W_(leading)(W x)
{
    const W magnitude = W_(magnitude)(x);
    const V in_high = (V)(magnitude.high != (V){0});
    return V_(leading)(V_(pick)(in_high, magnitude.high, magnitude.low)) + (in_high & 64);
}

VFN V W_(normalised)(W x, V leading)
{
    const W up = W_(shl)(W_(magnitude)(x), 126 - leading);
    return up.high | ((V)(up.low != (V){0}) & 1);
}

VFN W W_(increment)(W x, V bit)
{
    const V low = x.low + bit;
    return (W){low, x.high + (bit & V_(equal)(low, (V){0}))};
}

/* Operands of 63 bits, of 31 where `narrow`. */
VFN W W_(multiply)(V x, V y, int narrow)
{
    if (narrow) {
        const V product = V_(multiply_signed)(x, y);
        return (W){product, V_(negative)(product)};
    }
    const V sign = V_(negative)(x ^ y), a = V_(magnitude)(x), b = V_(magnitude)(y);
    const V low = V_(multiply)(a, b), a_high = a >> 32, b_high = b >> 32;
    const V left = V_(multiply)(a_high, b), right = V_(multiply)(a, b_high);
    const V middle = (low >> 32) + (left & UINT32_MAX) + (right & UINT32_MAX);
    const V bottom = (low & UINT32_MAX) | middle << 32;
    const V top = V_(multiply)(a_high, b_high) + (left >> 32) + (right >> 32) + (middle >> 32);
    const V negated = (bottom ^ sign) - sign;
    return (W){negated, (top ^ sign) + (sign & 1 & V_(equal)(negated, (V){0}))};
}
#endif
