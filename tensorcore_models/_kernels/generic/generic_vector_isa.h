/* The vector kernels of one instruction set, at both widths. Included by generic_vector.h once for each, with
 *   VSUFFIX    name of the instruction set, the end of every name here,   VTARGET   the attribute that compiles a function for it,
 *   VBYTES     bytes of a vector,                                         VISA      its level (cpu.h).
 */
#define MPG_JOINED(x, suffix) mpg_v_##x##_##suffix
#define MPG_JOINED_WIDE(x, suffix, bits) mpg_v_##x##_##suffix##_##bits
#define MPG_NAMED(x, suffix) MPG_JOINED(x, suffix)
#define MPG_NAMED_WIDE(x, suffix, bits) MPG_JOINED_WIDE(x, suffix, bits)
#define V_(x) MPG_NAMED(x, VSUFFIX)
#define W_(x) MPG_NAMED_WIDE(x, VSUFFIX, WBITS)

#include "generic_vector_ops.h"
#include "generic_vector_codes.h"
#include "generic_vector_pack.h"

#define WBITS 64
#include "generic_vector_words.h"
#include "generic_vector_sums.h"
#undef WBITS

#define WBITS 128
#include "generic_vector_words.h"
#include "generic_vector_sums.h"
#undef WBITS

#undef V
#undef VS
#undef VLANES
#undef VFN
#undef V_
#undef W_
#undef MPG_JOINED
#undef MPG_JOINED_WIDE
#undef MPG_NAMED
#undef MPG_NAMED_WIDE
#undef VSUFFIX
#undef VTARGET
#undef VBYTES
#undef VISA
