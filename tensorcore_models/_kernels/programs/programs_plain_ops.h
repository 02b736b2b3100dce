/* The operations of generic_vector_ops.h on vectors of one 64-bit integer, in plain C: what every compiler and processor has. */
typedef uint64_t V_(vector);
#define V V_(vector)
#define VLANES 1
#define VFN MPG_INLINE

VFN V V_(all)(int64_t x) { return (V)x; }

VFN V V_(load)(const int64_t *from) { return (V)*from; }

VFN void V_(store)(int64_t *to, V x) { *to = (int64_t)x; }

VFN V V_(less_signed)(V x, V y) { return (V)0 - (V)((int64_t)x < (int64_t)y); }

VFN V V_(equal)(V x, V y) { return (V)0 - (V)(x == y); }

VFN V V_(pick)(V mask, V x, V y) { return (mask & x) | (~mask & y); }

VFN unsigned V_(lanes)(V mask) { return (unsigned)(mask & 1); }

VFN V V_(shl)(V x, V places) { return places < 64 ? x << places : 0; }

VFN V V_(shr)(V x, V places) { return places < 64 ? x >> places : 0; }

VFN V V_(max_signed)(V x, V y) { return (int64_t)x < (int64_t)y ? y : x; }

VFN V V_(min_signed)(V x, V y) { return (int64_t)x < (int64_t)y ? x : y; }

VFN V V_(magnitude)(V x) { return (int64_t)x < 0 ? 0 - x : x; }

VFN V V_(multiply)(V x, V y) { return (x & UINT32_MAX) * (y & UINT32_MAX); }

VFN V V_(leading)(V x) { return x ? (V)mpg_leading_bit(x) : (V)-1; }
