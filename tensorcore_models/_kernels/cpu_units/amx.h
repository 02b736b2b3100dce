/* AMX: whether this CPU and its operating system run it, and the tile operations under one set of names for the real unit and for the
 * emulated one (amx_tiles.h).
 *
 * Code that uses tiles is in a file of its own that is included twice, with AMX_REAL 1 (only where MPG_HAS_AMX) and 0. Functions
 * with AMX instructions carry MPG_TARGET_AMX and names that begin with mpg_amx_unit_; nothing else in a build contains such
 * instructions (tests/test_packaging.py disassembles it).
 *
 * A tile configuration belongs to a thread: a task loads it when it begins and releases it when it ends, and keeps nothing in tiles
 * in between, so that new threads and forks are no special case. All tiles have 16 rows of 64 bytes.
 */
#ifndef MPG_AMX_H
#define MPG_AMX_H

#include "cpu.h"
#include "x86_emulated.h"

#if MPG_X86_VARIANTS && defined(__linux__) &&                                                                                  \
    ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
#define MPG_HAS_AMX 1
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define MPG_TARGET_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8,avx512f,avx512bw,avx512dq,avx512vl" MPG_WIDE_VECTORS)))
#else
#define MPG_HAS_AMX 0
#define MPG_TARGET_AMX
#endif

/* Why a unit cannot be used; MPG_UNIT_READY: it can. */
enum { MPG_UNIT_READY, MPG_UNIT_NOT_BUILT, MPG_UNIT_NO_CPU, MPG_UNIT_NOT_ENABLED, MPG_UNIT_REFUSED };

/* CPUID leaf 7: sub-leaf 0, EDX; sub-leaf 1, EAX (Intel SDM, volume 2, CPUID). */
#define MPG_CPUID_AMX_BF16 (1u << 22)
#define MPG_CPUID_AMX_TILE (1u << 24)
#define MPG_CPUID_AMX_INT8 (1u << 25)
#define MPG_CPUID_AVX512_BF16 (1u << 5)
#define MPG_CPUID_AMX_FP16 (1u << 21)

#if MPG_X86_VARIANTS
/* Feature bits of leaf 7: EDX of sub-leaf 0 and EAX of sub-leaf 1. */
static void mpg_leaf7(unsigned *edx0, unsigned *eax1)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0, most = 0;
    *edx0 = *eax1 = 0;
    if (__get_cpuid_count(7, 0, &most, &ebx, &ecx, edx0) && most >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx))
        *eax1 = eax;
}

/* Registers that the operating system saves (XCR0), 0 where it says nothing. */
static uint64_t mpg_xcr0(void)
{
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & (1u << 27)))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
    return (uint64_t)edx << 32 | eax;
}
#endif

/* Whether AMX with these features (sub-leaf 0, sub-leaf 1) can be used; asks Linux for the tile registers (ARCH_REQ_XCOMP_PERM). */
static int mpg_amx_state(unsigned edx0, unsigned eax1)
{
#if MPG_HAS_AMX
    unsigned have0, have1;
    mpg_leaf7(&have0, &have1);
    edx0 |= MPG_CPUID_AMX_TILE;
    if ((have0 & edx0) != edx0 || (have1 & eax1) != eax1 || mpg_cpu_level() != MPG_ISA_AVX512)
        return MPG_UNIT_NO_CPU;
    if ((mpg_xcr0() >> 17 & 3) != 3)
        return MPG_UNIT_NOT_ENABLED;
    return syscall(SYS_arch_prctl, 0x1023, 18) ? MPG_UNIT_REFUSED : MPG_UNIT_READY;
#else
    (void)edx0, (void)eax1;
    return MPG_UNIT_NOT_BUILT;
#endif
}

/* Operand of LDTILECFG: palette 1, eight tiles of 16 rows of 64 bytes (Intel SDM, volume 2, LDTILECFG). */
typedef struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} mpg_tile_config;

static const mpg_tile_config mpg_full_tiles = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};

#endif
