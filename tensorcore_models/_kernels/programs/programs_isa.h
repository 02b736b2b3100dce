/* The machine of one instruction set. Included by programs.h once for each, with
 *   VSUFFIX    name of the instruction set, the end of every name here,   VTARGET   the attribute that compiles a function for it,
 *   VISA       its level (cpu.h),                                         VBYTES    bytes of a vector; not defined: plain C.
 */
#define MPG_JOINED(x, suffix) mpg_p_##x##_##suffix
#define MPG_NAMED(x, suffix) MPG_JOINED(x, suffix)
#define V_(x) MPG_NAMED(x, VSUFFIX)

#ifdef VBYTES
#include "generic_vector_ops.h"
#else
#include "programs_plain_ops.h"
#endif
#include "programs_operations.h"

#undef V
#undef VS
#undef VLANES
#undef VFN
#undef V_
#undef MPG_JOINED
#undef MPG_NAMED
#undef VSUFFIX
#undef VTARGET
#undef VBYTES
#undef VISA
#undef ONES
#undef CAPPED
#undef FROM
#undef LOAD
#undef ALL
#undef CASE
#undef BLOCK
#undef OF_A
#undef OF_B
#undef MPG_RUN_UNARY
#undef MPG_RUN_BINARY
#undef MPG_RUN_SHIFT
#undef MPG_RUN_SIGNED_SHIFT
#undef MPG_RUN_CUT
