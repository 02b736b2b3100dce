/* One step of x86's instructions, on the real unit or the emulated one: cpu_units.h includes this file once for each. */
#include "amx_tiles.h"

/* b (k, n) as the instructions take it: the elements of 32 bits along k side by side for each column. */
static void AMX_NAME(interleave)(const mpg_unit_shape *s, const char *b, uint32_t *words)
{
    const int group = 4 / s->size;
    for (int k = 0; k < s->k; k++)
        for (int j = 0; j < s->n; j++)
            memcpy((char *)(words + k / group * s->n + j) + k % group * s->size, b + (k * s->n + j) * s->size, (size_t)s->size);
}

AMX_TARGET static void AMX_NAME(step)(int unit, const char *a, const char *b, uint32_t *d)
{
    const mpg_unit_shape *s = &mpg_unit_shapes[unit];
    uint32_t words[256];
    AMX_NAME(interleave)(s, b, words);
    if (unit == MPG_VDPBF16PS) {
        uint32_t pair;
        memcpy(&pair, a, 4);
#if AMX_REAL
        mpg_unit_vdpbf16ps(pair, words, d);
#else
        for (int j = 0; j < 16; j++)
            d[j] = mpg_emulated_vdpbf16ps(pair, words[j], d[j]);
#endif
        return;
    }
    TILE_BEGIN();
    tile_loadd(0, d, 64);
    tile_loadd(1, a, 64);
    tile_loadd(2, words, 64);
    switch (unit) {
    case MPG_TDPBF16PS:
        tile_dpbf16ps(0, 1, 2);
        break;
    case MPG_TDPBSSD:
        tile_dpbssd(0, 1, 2);
        break;
    case MPG_TDPBSUD:
        tile_dpbsud(0, 1, 2);
        break;
    case MPG_TDPBUSD:
        tile_dpbusd(0, 1, 2);
        break;
    case MPG_TDPBUUD:
        tile_dpbuud(0, 1, 2);
        break;
#if AMX_REAL
    case MPG_TDPFP16PS:
        __asm__ volatile(".byte 0xC4, 0xE2, 0x6B, 0x5C, 0xC1");
        break; /* tdpfp16ps tmm0, tmm1, tmm2 */
#endif
    default:
        break;
    }
    tile_stored(0, d, 64);
    TILE_END();
}
