// The vector units' passes over whole matrices of a GEMM: they split A and B into words, and combine terms and slices of C.
// Written by mpgemm for one plan. Matrices are read as rows of kChunk elements, whatever their shape.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

//@plan
namespace
{
using namespace plan;

template <pipe_t from, pipe_t to> AICORE inline void raise(uint32_t event) { set_flag(from, to, static_cast<event_t>(event)); }
template <pipe_t from, pipe_t to> AICORE inline void await(uint32_t event) { wait_flag(from, to, static_cast<event_t>(event)); }

constexpr uint32_t kBuffers = 2;
// Places in UB: each buffer holds one input, the sum or residual, and two results.
constexpr uint32_t kWide = kChunk * sizeof(float), kPlace = 4 * kWide;

template <typename T> using Line = Tile<TileType::Vec, T, 1, kChunk, BLayout::RowMajor, 1, DYNAMIC>;
template <typename T> using Lines = GlobalTensor<T, Shape<1, 1, 1, 1, DYNAMIC>, Stride<1, 1, 1, 1, 1>, Layout::ND>;

template <typename T> AICORE inline Line<T> line(uint32_t buffer, uint32_t place, uint32_t count)
{
    Line<T> tile(count);
    TASSIGN(tile, buffer * kPlace + place * kWide);
    return tile;
}
template <typename T> AICORE inline void load(Line<T> &to, __gm__ T *from, uint64_t start)
{
    Lines<T> part(from + start, Shape<1, 1, 1, 1, DYNAMIC>(static_cast<int64_t>(to.GetValidCol())));
    TLOAD(to, part);
}
template <typename T> AICORE inline void store(Line<T> &from, __gm__ T *to, uint64_t start)
{
    Lines<T> part(to + start, Shape<1, 1, 1, 1, DYNAMIC>(static_cast<int64_t>(from.GetValidCol())));
    TSTORE(part, from);
}

AICORE inline void openRings()
{
    for (uint32_t buffer = 0; buffer < kBuffers; ++buffer) {
        raise<PIPE_V, PIPE_MTE2>(buffer);
        raise<PIPE_MTE3, PIPE_V>(buffer);
    }
}
AICORE inline void closeRings()
{
    for (uint32_t buffer = 0; buffer < kBuffers; ++buffer) {
        await<PIPE_V, PIPE_MTE2>(buffer);
        await<PIPE_MTE3, PIPE_V>(buffer);
    }
}

// high = x in FP16, low = (x - high) * 2^s in FP16, each to nearest even.
AICORE inline void splitChunk(uint32_t buffer, uint32_t count, __gm__ float *from, __gm__ half *high, __gm__ half *low,
                              uint64_t start, float scale)
{
    Line<float> x = line<float>(buffer, 0, count), rest = line<float>(buffer, 1, count);
    Line<half> first = line<half>(buffer, 2, count), second = line<half>(buffer, 3, count);
    await<PIPE_V, PIPE_MTE2>(buffer);
    load(x, from, start);
    raise<PIPE_MTE2, PIPE_V>(buffer);
    await<PIPE_MTE2, PIPE_V>(buffer);
    await<PIPE_MTE3, PIPE_V>(buffer);
    TCVT(first, x, RoundMode::CAST_RINT);
    pipe_barrier(PIPE_V);
    TCVT(rest, first, RoundMode::CAST_NONE);
    pipe_barrier(PIPE_V);
    TSUB(rest, x, rest);
    pipe_barrier(PIPE_V);
    TMULS(rest, rest, scale);
    pipe_barrier(PIPE_V);
    TCVT(second, rest, RoundMode::CAST_RINT);
    raise<PIPE_V, PIPE_MTE3>(buffer);
    raise<PIPE_V, PIPE_MTE2>(buffer);
    await<PIPE_V, PIPE_MTE3>(buffer);
    store(first, high, start);
    store(second, low, start);
    raise<PIPE_MTE3, PIPE_V>(buffer);
    pipe_barrier(PIPE_V);
}

// Reads one input into place 0 of a buffer, adds it to a sum, and frees the buffer.
AICORE inline void fetch(Line<Sum> &x, uint32_t buffer, __gm__ Sum *from, uint64_t start)
{
    await<PIPE_V, PIPE_MTE2>(buffer);
    load(x, from, start);
    raise<PIPE_MTE2, PIPE_V>(buffer);
    await<PIPE_MTE2, PIPE_V>(buffer);
}
AICORE inline void used(uint32_t buffer)
{
    pipe_barrier(PIPE_V);
    raise<PIPE_V, PIPE_MTE2>(buffer);
}

// C = the sum of the slices in order, each hh + ((lh + hl) [+ ll 2^-s]) 2^-s.
AICORE inline void combineChunk(uint32_t buffer, uint32_t count, __gm__ Sum *copies, __gm__ Sum *out, uint64_t start)
{
    Line<Sum> x = line<Sum>(buffer, 0, count), slice = line<Sum>(buffer, 1, count), sum = line<Sum>(buffer, 2, count);
    const uint64_t all = static_cast<uint64_t>(kM) * kN;
    await<PIPE_MTE3, PIPE_V>(buffer);
    for (uint32_t number = 0; number < kCopies / kTerms; ++number) {
        __gm__ Sum *own = copies + number * kTerms * all;
        Line<Sum> &into = number == 0 ? sum : slice;
        if constexpr (kTerms > 1) {
            fetch(x, buffer, own + all, start);
            TMULS(into, x, Sum(1));
            used(buffer);
            fetch(x, buffer, own + 2 * all, start);
            TADD(into, into, x);
            used(buffer);
            if constexpr (kTerms > 3) {
                fetch(x, buffer, own + 3 * all, start);
                TMULS(x, x, Sum(kUnscale));
                pipe_barrier(PIPE_V);
                TADD(into, into, x);
                used(buffer);
            }
            TMULS(into, into, Sum(kUnscale));
            pipe_barrier(PIPE_V);
            fetch(x, buffer, own, start);
            TADD(into, x, into);
            used(buffer);
        } else {
            fetch(x, buffer, own, start);
            TMULS(into, x, Sum(1));
            used(buffer);
        }
        if (number > 0) {
            TADD(sum, sum, slice);
            pipe_barrier(PIPE_V);
        }
    }
    raise<PIPE_V, PIPE_MTE3>(buffer);
    await<PIPE_V, PIPE_MTE3>(buffer);
    store(sum, out, start);
    raise<PIPE_MTE3, PIPE_V>(buffer);
}

AICORE inline uint32_t chunkSize(uint64_t start, uint64_t count)
{
    return static_cast<uint32_t>(count - start < kChunk ? count - start : kChunk);
}
} // namespace

__global__ AICORE void gemm_split(__gm__ uint8_t *from, __gm__ uint8_t *high, __gm__ uint8_t *low, uint64_t count)
{
    uint32_t turn = 0;
    openRings();
    for (uint64_t start = static_cast<uint64_t>(get_block_idx()) * kChunk; start < count; start += kVectorCores * kChunk)
        splitChunk(turn++ % kBuffers, chunkSize(start, count), reinterpret_cast<__gm__ float *>(from),
                   reinterpret_cast<__gm__ half *>(high), reinterpret_cast<__gm__ half *>(low), start, kScale);
    closeRings();
}

__global__ AICORE void gemm_combine(__gm__ uint8_t *copies, __gm__ uint8_t *out)
{
    const uint64_t count = static_cast<uint64_t>(kM) * kN;
    uint32_t turn = 0;
    openRings();
    for (uint64_t start = static_cast<uint64_t>(get_block_idx()) * kChunk; start < count; start += kVectorCores * kChunk)
        combineChunk(turn++ % kBuffers, chunkSize(start, count), reinterpret_cast<__gm__ Sum *>(copies),
                     reinterpret_cast<__gm__ Sum *>(out), start);
    closeRings();
}

#ifndef __CPU_SIM
extern "C" void launch_split(void *stream, uint8_t *from, uint8_t *high, uint8_t *low, uint64_t count)
{
    gemm_split<<<plan::kVectorCores, nullptr, stream>>>(from, high, low, count);
}
extern "C" void launch_combine(void *stream, uint8_t *copies, uint8_t *out)
{
    gemm_combine<<<plan::kVectorCores, nullptr, stream>>>(copies, out);
}
#endif
