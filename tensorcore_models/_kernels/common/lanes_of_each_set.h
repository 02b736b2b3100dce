/* The loops of the header LANES_TEXT for each instruction set (operations.h), of which MPG_LANES_OF picks one. */
#define LANES_LEVEL MPG_ISA_BASELINE
#include LANES_TEXT
#if MPG_X86_VARIANTS
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX2
#include LANES_TEXT
#undef LANES_LEVEL
#define LANES_LEVEL MPG_ISA_AVX512
#include LANES_TEXT
#endif
#undef LANES_LEVEL
#undef LANES_TEXT

#undef MPG_LANES_OF
#if MPG_X86_VARIANTS
#define MPG_LANES_OF(NAME, level)                                                                                              \
    ((level) >= MPG_ISA_AVX512 ? NAME##_avx512 : (level) >= MPG_ISA_AVX2 ? NAME##_avx2 : NAME##_plain)
#else
#define MPG_LANES_OF(NAME, level) NAME##_plain
#endif
