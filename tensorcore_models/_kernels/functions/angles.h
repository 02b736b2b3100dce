/* Large angles as a multiple of pi/2 and a rest (Payne and Hanek 1983); tensorcore_models/functions/angles.py is the same in integers. */
#ifndef MPG_ANGLES_H
#define MPG_ANGLES_H

#include <stdint.h>

#include "bits.h"

#define MPG_LARGE_ANGLE 0x47CE4780u /* 105615 */

/* Whether an angle is finite and at least MPG_LARGE_ANGLE. */
MPG_INLINE int mpg_is_large_angle(uint32_t u) { return (u & 0x7FFFFFFFu) - MPG_LARGE_ANGLE < 0x7F800000u - MPG_LARGE_ANGLE; }

/* |x| 2 / pi as 2 bits before the point and 62 behind it, cut off on both sides, of a large angle. */
MPG_INLINE uint64_t mpg_quarters(uint32_t u)
{
    static const uint32_t two_over_pi[6] = {0x3C439041, 0xDB629599, 0xF534DDC0, 0xFC2757D1, 0x4E441529, 0xA2F9836E};
    const uint32_t significand = u << 8 | 0x80000000u, exponent = (u >> 23 & 0xFF) - 128; /* 15 to 126 */
    const uint32_t first = 4 - (exponent >> 5), shift = exponent & 31;
    uint32_t product[7];
    uint64_t sum = 0;
    for (int i = 0; i < 6; i++) {
        sum = (uint64_t)two_over_pi[i] * significand + (sum >> 32);
        product[i] = (uint32_t)sum;
    }
    product[6] = (uint32_t)(sum >> 32);
    const uint64_t upper = (uint64_t)product[first + 2] << 32 | product[first + 1];
    return upper << shift | (uint64_t)product[first] << shift >> 32;
}

/* The multiple, modulo 2^32; 0 of angles that are not large. */
MPG_INLINE uint32_t mpg_large_turns(uint32_t u)
{
    if (!mpg_is_large_angle(u))
        return 0;
    const uint64_t quarters = mpg_quarters(u);
    const uint32_t turns = (uint32_t)(quarters >> 62) + (uint32_t)(quarters >> 61 & 1);
    return u >> 31 ? 0u - turns : turns;
}

/* The rest as an FP32 number; +0 of angles that are not large. */
MPG_INLINE uint32_t mpg_large_rest(uint32_t u)
{
    if (!mpg_is_large_angle(u))
        return 0;
    const uint64_t rest = mpg_quarters(u) << 2, beyond = UINT64_C(0) - (rest >> 63);
    const float angle = (float)((double)(int64_t)(rest ^ beyond) * mpg_as_double(UINT64_C(0x3BF921FB54442D19)));
    return mpg_as_bits(angle) | ((u ^ (uint32_t)beyond) & 0x80000000u);
}

#endif
