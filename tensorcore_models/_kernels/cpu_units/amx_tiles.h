/* Tile operations by their intrinsics' names without the underscore, of the real unit (AMX_REAL 1) or of structs in memory (0). Included
 * by files that are themselves included once for each; tile numbers are literals. TILE_BEGIN is the first statement of a task. */
#undef AMX_NAME
#undef AMX_TARGET
#undef TILE_BEGIN
#undef TILE_END
#undef tile_zero
#undef tile_loadd
#undef tile_stored
#undef tile_dpbf16ps
#undef tile_dpbssd
#undef tile_dpbsud
#undef tile_dpbusd
#undef tile_dpbuud
#undef tile_prefetch

#if AMX_REAL
#define AMX_NAME(x) mpg_amx_unit_##x
#define AMX_TARGET MPG_TARGET_AMX
/* GCC does not tell that TILELOADD reads memory: what a task prepares for its tiles it writes before it begins. */
#define TILE_BEGIN()                                                                                                           \
    do {                                                                                                                       \
        __asm__ volatile("" ::: "memory");                                                                                     \
        _tile_loadconfig(&mpg_full_tiles);                                                                                     \
    } while (0)
#define TILE_END() _tile_release()
#define tile_zero(t) _tile_zero(t)
#define tile_loadd(t, from, stride) _tile_loadd(t, from, stride)
#define tile_stored(t, to, stride) _tile_stored(t, to, stride)
#define tile_dpbf16ps(d, a, b) _tile_dpbf16ps(d, a, b)
#define tile_dpbssd(d, a, b) _tile_dpbssd(d, a, b)
#define tile_dpbsud(d, a, b) _tile_dpbsud(d, a, b)
#define tile_dpbusd(d, a, b) _tile_dpbusd(d, a, b)
#define tile_dpbuud(d, a, b) _tile_dpbuud(d, a, b)
#define tile_prefetch(from) _mm_prefetch((const char *)(from), _MM_HINT_T0)
#else
#define AMX_NAME(x) mpg_amx_emulated_##x
#define AMX_TARGET
#define TILE_BEGIN() mpg_emulated_tiles tiles
#define TILE_END() ((void)0)
#define tile_zero(t) mpg_emulated_tile_zero(&tiles.tile[t])
#define tile_loadd(t, from, stride) mpg_emulated_tile_loadd(&tiles.tile[t], from, stride)
#define tile_stored(t, to, stride) mpg_emulated_tile_stored(&tiles.tile[t], to, stride)
#define tile_dpbf16ps(d, a, b) mpg_emulated_tile_dpbf16ps(&tiles.tile[d], &tiles.tile[a], &tiles.tile[b])
#define tile_dpbssd(d, a, b) mpg_emulated_tile_dpbssd(&tiles.tile[d], &tiles.tile[a], &tiles.tile[b])
#define tile_dpbsud(d, a, b) mpg_emulated_tile_dpbsud(&tiles.tile[d], &tiles.tile[a], &tiles.tile[b])
#define tile_dpbusd(d, a, b) mpg_emulated_tile_dpbusd(&tiles.tile[d], &tiles.tile[a], &tiles.tile[b])
#define tile_dpbuud(d, a, b) mpg_emulated_tile_dpbuud(&tiles.tile[d], &tiles.tile[a], &tiles.tile[b])
#define tile_prefetch(from) ((void)0)
#endif
