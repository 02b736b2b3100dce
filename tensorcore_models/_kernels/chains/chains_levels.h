/* The chains of one element type at every level. Included by chains.h once for each type, with VECTOR_SIZE
 * (vector_set.h), CHAIN_TYPE, its name, CHAIN_BITS, the integer of its size, and CHAIN_INFINITY, the encoding of infinity.
 */
#define CHAIN_NAME(name) VECTOR_NAME(MPG_JOIN(mpg_chain_##name##_, CHAIN_TYPE))

#define VECTOR_LEVEL MPG_ISA_BASELINE
#include "vector_set.h"
#include "chains_tile.h"
#undef VECTOR_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX2
#include "vector_set.h"
#include "chains_tile.h"
#undef VECTOR_LEVEL

#define VECTOR_LEVEL MPG_ISA_AVX512
#include "vector_set.h"
#include "chains_tile.h"
#undef VECTOR_LEVEL

#undef CHAIN_NAME
#undef CHAIN_TYPE
#undef CHAIN_BITS
#undef CHAIN_INFINITY
#undef VECTOR_SIZE
