/* The chains of one element type at every level, and the tile that picks one. Included by chains.h once for each type, with VECTOR_SIZE
 * (vector_set.h) and CHAIN_TYPE, its name.
 */
#define CHAIN_JOINED(name, type, level) mpg_chain_##name##_##type##level
#define CHAIN_NAMED(name, type, level) CHAIN_JOINED(name, type, level)
#define CHAIN_NAME(name) CHAIN_NAMED(name, CHAIN_TYPE, CHAIN_LEVEL)

#define VECTOR_LEVEL MPG_ISA_BASELINE
#define CHAIN_LEVEL _baseline
#include "vector_set.h"
#include "chains_tile.h"
#undef VECTOR_LEVEL
#undef CHAIN_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX2
#define CHAIN_LEVEL _avx2
#include "vector_set.h"
#include "chains_tile.h"
#undef VECTOR_LEVEL
#undef CHAIN_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX512
#define CHAIN_LEVEL _avx512
#include "vector_set.h"
#include "chains_tile.h"
#undef VECTOR_LEVEL
#undef CHAIN_LEVEL

static void CHAIN_NAMED(tile, CHAIN_TYPE, )(const mpg_chain_job *job, int64_t group0, int64_t group1, int64_t panel0,
                                            int64_t panel1, int level)
{
    (level >= MPG_ISA_AVX512 ? CHAIN_NAMED(tile, CHAIN_TYPE, _avx512)
     : level == MPG_ISA_AVX2 ? CHAIN_NAMED(tile, CHAIN_TYPE, _avx2)
                             : CHAIN_NAMED(tile, CHAIN_TYPE, _baseline))(job, group0, group1, panel0, panel1);
}

#undef CHAIN_JOINED
#undef CHAIN_NAMED
#undef CHAIN_NAME
#undef CHAIN_TYPE
#undef VECTOR_SIZE
