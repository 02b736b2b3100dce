/* Vectors of 64-bit integers, for one instruction set (generic_vector_isa.h); V_(x) is the name x of that.
 *
 * Vectors are those of GCC and clang, so that + - & | ^ ~ and comparisons are the language's; what is here either has no
 * operator or has other edge cases: a shift by 64 or more places (or by a negative number, which counts as such) leaves
 * nothing. Everything is unsigned and wraps; the functions whose names say `signed` take the bits as two's complement.
 * Masks are ones or zeros; bit l of `lanes` is set if lane l of the mask is. `shr_signed` shifts the sign in; `multiply` takes the low
 * halves, `multiply_signed` numbers that fit in 32 bits; `leading` is the place of the leading bit, -1 for zero.
 */
typedef uint64_t V_(vector) __attribute__((vector_size(VBYTES)));
typedef int64_t V_(signed_vector) __attribute__((vector_size(VBYTES)));
#define V V_(vector)
#define VS V_(signed_vector)
#define VLANES (VBYTES / 8)
#define VFN VTARGET MPG_INLINE

VFN V V_(all)(int64_t x) { return (V){0} + (uint64_t)x; }

VFN V V_(load)(const void *from)
{
    V x;
    memcpy(&x, from, VBYTES);
    return x;
}

VFN void V_(store)(void *to, V x) { memcpy(to, &x, VBYTES); }

VFN V V_(less_signed)(V x, V y) { return (V)((VS)x < (VS)y); }

VFN V V_(less)(V x, V y) { return (V)(x < y); }

VFN V V_(equal)(V x, V y) { return (V)(x == y); }

VFN V V_(pick)(V mask, V x, V y) { return (mask & x) | (~mask & y); }

#if VISA == MPG_ISA_AVX512
VFN unsigned V_(lanes)(V mask) { return (unsigned)_mm512_movepi64_mask((__m512i)mask); }

VFN V V_(negative)(V x) { return (V)((VS)x >> 63); }

VFN V V_(shl)(V x, V places) { return (V)_mm512_sllv_epi64((__m512i)x, (__m512i)places); }

VFN V V_(shr)(V x, V places) { return (V)_mm512_srlv_epi64((__m512i)x, (__m512i)places); }

VFN V V_(shr_signed)(V x, V places) { return (V)_mm512_srav_epi64((__m512i)x, (__m512i)places); }

VFN V V_(max_signed)(V x, V y) { return (V)_mm512_max_epi64((__m512i)x, (__m512i)y); }

VFN V V_(min_signed)(V x, V y) { return (V)_mm512_min_epi64((__m512i)x, (__m512i)y); }

VFN V V_(magnitude)(V x) { return (V)_mm512_abs_epi64((__m512i)x); }

VFN V V_(multiply)(V x, V y) { return (V)_mm512_mul_epu32((__m512i)x, (__m512i)y); }

VFN V V_(multiply_signed)(V x, V y) { return (V)_mm512_mul_epi32((__m512i)x, (__m512i)y); }

VFN V V_(leading)(V x) { return 63 - (V)_mm512_lzcnt_epi64((__m512i)x); }
#else
#if VISA == MPG_ISA_AVX2
VFN unsigned V_(lanes)(V mask) { return (unsigned)_mm256_movemask_pd((__m256d)mask); }

VFN V V_(shl)(V x, V places) { return (V)_mm256_sllv_epi64((__m256i)x, (__m256i)places); }

VFN V V_(shr)(V x, V places) { return (V)_mm256_srlv_epi64((__m256i)x, (__m256i)places); }

VFN V V_(multiply)(V x, V y) { return (V)_mm256_mul_epu32((__m256i)x, (__m256i)y); }

VFN V V_(multiply_signed)(V x, V y) { return (V)_mm256_mul_epi32((__m256i)x, (__m256i)y); }
#else
VFN unsigned V_(lanes)(V mask)
{
    unsigned lanes = 0;
    for (int l = 0; l < VLANES; l++)
        lanes |= (unsigned)(mask[l] & 1) << l;
    return lanes;
}

VFN V V_(shl)(V x, V places) { return (x << (places & 63)) & V_(less)(places, V_(all)(64)); }

VFN V V_(shr)(V x, V places) { return (x >> (places & 63)) & V_(less)(places, V_(all)(64)); }

VFN V V_(multiply)(V x, V y) { return (x & (uint64_t)UINT32_MAX) * (y & (uint64_t)UINT32_MAX); }

VFN V V_(multiply_signed)(V x, V y) { return x * y; }
#endif

VFN V V_(negative)(V x) { return (V)((VS)x < (VS){0}); }

VFN V V_(magnitude)(V x) { return (x ^ V_(negative)(x)) - V_(negative)(x); }

VFN V V_(shr_signed)(V x, V places) { return V_(shr)(x ^ V_(negative)(x), places) ^ V_(negative)(x); }

VFN V V_(max_signed)(V x, V y) { return V_(pick)(V_(less_signed)(x, y), y, x); }

VFN V V_(min_signed)(V x, V y) { return V_(pick)(V_(less_signed)(x, y), x, y); }

/* Each half as the fraction of a double at 2^52: the exponent of what remains without 2^52 says where it begins. */
VFN V V_(leading)(V x)
{
    typedef double V_(doubles) __attribute__((vector_size(VBYTES)));
    const V_(doubles) two52 = (V_(doubles)){0} + 0x1p52;
    const V high = x >> 32, in_high = (V)(high != (V){0});
    const V half = V_(pick)(in_high, high, x & UINT32_MAX);
    const V place = ((V)((V_(doubles))(half | (V)two52) - two52) >> 52) - 1023 + (in_high & 32);
    return place | (V)(x == (V){0});
}
#endif
