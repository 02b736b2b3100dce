// FP16 and BF16 conversions of an Ascend core's units, to nearest even, in plain integers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace mpgemm
{

inline float float_of(uint32_t bits)
{
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t bits_of(float value)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// Subnormals are kept; values beyond the largest finite number become infinity.
inline uint16_t half_bits(float value)
{
    const uint32_t bits = bits_of(value), magnitude = bits & 0x7fffffffu;
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u)
        return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) // 65520 rounds to infinity
        return sign | 0x7c00u;
    if (magnitude < 0x38800000u) // below 2^-14: in units of 2^-24
        return sign | static_cast<uint16_t>(std::nearbyintf(std::fabs(value) * 16777216.0f));
    const uint32_t rounded = magnitude + 0x0fffu + (magnitude >> 13 & 1u);
    return sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13);
}

inline float half_value(uint16_t bits)
{
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
    if (magnitude >= 0x7c00u)
        return float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    if (magnitude < 0x0400u)
        return (sign ? -1.0f : 1.0f) * static_cast<float>(magnitude) / 16777216.0f;
    return float_of(sign | ((magnitude << 13) + 0x38000000u));
}

} // namespace mpgemm

struct half {
    uint16_t bits;
    half() = default;
    explicit half(float value) : bits(mpgemm::half_bits(value)) {}
    operator float() const { return mpgemm::half_value(bits); }
};

struct bfloat16_t {
    uint16_t bits;
    bfloat16_t() = default;
    explicit bfloat16_t(float value)
    {
        const uint32_t all = mpgemm::bits_of(value);
        const bool nan = (all & 0x7fffffffu) > 0x7f800000u;
        bits = static_cast<uint16_t>(nan ? (all >> 16 | 0x40u) : (all + 0x7fffu + (all >> 16 & 1u)) >> 16);
    }
    operator float() const { return mpgemm::float_of(static_cast<uint32_t>(bits) << 16); }
};
