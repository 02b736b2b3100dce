/* What clang and the kernels call beside themselves: no C library and no compiler runtime is linked. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXPORT(name) __attribute__((export_name(name)))

typedef unsigned char byte;

/* Written as loops over volatile-free bytes; -fno-builtin keeps clang from turning each into a call of itself. */
void *memcpy(void *to, const void *from, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((byte *)to)[i] = ((const byte *)from)[i];
    return to;
}

void *memset(void *to, int value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((byte *)to)[i] = (byte)value;
    return to;
}

/* Exact wherever the result is a double, which is all that the kernels ask for. */
double ldexp(double x, int exponent)
{
    const double up = 0x1p1000, down = 0x1p-1000;
    for (; exponent > 1000; exponent -= 1000)
        x *= up;
    for (; exponent < -1000; exponent += 1000)
        x *= down;
    for (; exponent > 0; exponent--)
        x *= 2;
    for (; exponent < 0; exponent++)
        x *= 0.5;
    return x;
}

/* ---- 128-bit integers: shifts and products by halves, as clang's own runtime has them ------------------------------- */
typedef union {
    __int128 whole;
    struct {
        uint64_t low, high;
    };
} halves;

__int128 __ashlti3(__int128 x, int places)
{
    halves r = {x};
    if (places >= 64) {
        r.high = r.low << (places - 64);
        r.low = 0;
    } else if (places) {
        r.high = r.high << places | r.low >> (64 - places);
        r.low <<= places;
    }
    return r.whole;
}

__int128 __lshrti3(__int128 x, int places)
{
    halves r = {x};
    if (places >= 64) {
        r.low = r.high >> (places - 64);
        r.high = 0;
    } else if (places) {
        r.low = r.low >> places | r.high << (64 - places);
        r.high >>= places;
    }
    return r.whole;
}

__int128 __ashrti3(__int128 x, int places)
{
    halves r = {x};
    const int64_t high = (int64_t)r.high;
    if (places >= 64) {
        r.low = (uint64_t)(high >> (places - 64));
        r.high = (uint64_t)(high >> 63);
    } else if (places) {
        r.low = r.low >> places | r.high << (64 - places);
        r.high = (uint64_t)(high >> places);
    }
    return r.whole;
}

__int128 __multi3(__int128 x, __int128 y)
{
    const halves a = {x}, b = {y};
    const uint64_t a0 = (uint32_t)a.low, a1 = a.low >> 32, b0 = (uint32_t)b.low, b1 = b.low >> 32;
    const uint64_t low = a0 * b0, left = a1 * b0, right = a0 * b1;
    const uint64_t middle = (low >> 32) + (uint32_t)left + (uint32_t)right;
    halves r;
    r.low = middle << 32 | (uint32_t)low;
    r.high = a1 * b1 + (left >> 32) + (right >> 32) + (middle >> 32) + a.high * b.low + a.low * b.high;
    return r.whole;
}

/* ---- memory for one call --------------------------------------------------------------------------------------------- */
extern byte __heap_base;
#define PAGE 65536

static size_t top;

/* `size` bytes, aligned to 16, until the next release; 0 where memory cannot grow. */
EXPORT("allocate") void *allocate(size_t size)
{
    if (!top)
        top = ((size_t)&__heap_base + 15) & ~(size_t)15;
    const size_t start = top, end = (start + size + 15) & ~(size_t)15;
    const size_t pages = (end + PAGE - 1) / PAGE, present = __builtin_wasm_memory_size(0);
    if (pages > present && __builtin_wasm_memory_grow(0, pages - present) == (size_t)-1)
        return 0;
    top = end;
    return (void *)start;
}

/* Everything that was allocated is free again. */
EXPORT("release") void release(void) { top = 0; }
