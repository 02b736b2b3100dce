/* The bits of numbers. Unions, not memcpy: GCC does not vectorise loops that store through the latter. */
#ifndef MPG_BITS_H
#define MPG_BITS_H

#include <stdint.h>

#include "check.h"
#include "cpu.h"

typedef union {
    uint32_t bits;
    float value;
} mpg_float_bits;

typedef union {
    uint64_t bits;
    double value;
} mpg_double_bits;

MPG_INLINE float mpg_as_float(uint32_t bits) { return ((mpg_float_bits){.bits = bits}).value; }

/* 2^(field - 127); 0 of 0. */
MPG_INLINE float mpg_power32(int32_t field)
{
    MPG_DOMAIN("power32", int32_t, field, x >= 0 && x <= 254);
    return mpg_as_float((uint32_t)field << 23);
}

MPG_INLINE uint32_t mpg_as_bits(float value) { return ((mpg_float_bits){.value = value}).bits; }

MPG_INLINE double mpg_as_double(uint64_t bits) { return ((mpg_double_bits){.bits = bits}).value; }

MPG_INLINE uint64_t mpg_as_bits64(double value) { return ((mpg_double_bits){.value = value}).bits; }

#endif
