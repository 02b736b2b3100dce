// A small model of the AscendC calls that an emitted kernel makes, for running its text on this machine: one core at a time, numbers
// computed where the call is made. Strides, lines of 32 bytes and the order of tiles are as the API reference has them; no time, no flags.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define __aicore__
#define __global__
#define __gm__
#define GM_ADDR uint8_t *
#define KERNEL_TASK_TYPE_DEFAULT(type) model::taskType = #type
#define REGIST_MATMUL_OBJ(pipe, workspace, object, tiling) (object).start(tiling)

namespace model
{
inline const char *taskType = "";
inline uint64_t block = 0;
inline void demand(bool kept, const char *what)
{
    if (!kept) {
        std::printf("%s\n", what);
        std::exit(1);
    }
}
} // namespace model

using half = float; // results are compared before they are rounded
struct TCubeTiling {
    uint32_t usedCoreNum, M, N, Ka, Kb, singleCoreM, singleCoreN, singleCoreK, baseM, baseN, baseK, depthA1, depthB1, stepM,
        stepN, stepKa, stepKb, dbL0A, dbL0B, dbL0C, iterateOrder;
};
inline uint64_t GetBlockIdx() { return model::block; }
inline uint8_t *GetSysWorkSpacePtr() { return nullptr; }
inline uint8_t *GetUserWorkspace(uint8_t *workspace) { return workspace; }

namespace AscendC
{
enum class TPosition { GM };
enum class CubeFormat { ND };
enum class QuePosition { VECIN, VECOUT, VECCALC };
enum class RoundMode { CAST_RINT };
enum pipe_t { PIPE_V };
template <pipe_t> void PipeBarrier() {}
struct MatmulConfig {
    bool mdl, intrinsicsCheck, enUnitFlag;
};
constexpr MatmulConfig CFG_MDL{true, false, false};

template <class T> struct GlobalTensor {
    T *at = nullptr;
    void SetGlobalBuffer(T *p, uint64_t) { at = p; }
    GlobalTensor operator[](uint64_t i) const { return {at + i}; }
    T GetValue(uint64_t i) const { return at[i]; }
};
template <class T> struct LocalTensor {
    T *at = nullptr;
    LocalTensor operator[](uint64_t i) const { return {at + i}; }
};
struct Room {
    std::vector<uint64_t> bytes;
    template <class T> LocalTensor<T> AllocTensor() { return {reinterpret_cast<T *>(bytes.data())}; }
    template <class T> LocalTensor<T> Get() { return AllocTensor<T>(); }
    template <class T> LocalTensor<T> DeQue() { return AllocTensor<T>(); }
    template <class T> void EnQue(LocalTensor<T>) {}
    template <class T> void FreeTensor(LocalTensor<T>) {}
};
template <QuePosition, int> struct TQue : Room {};
template <QuePosition> struct TBuf : Room {};
struct TPipe {
    uint64_t used = 0;
    void InitBuffer(Room &room, uint32_t size) { InitBuffer(room, 1, size); }
    void InitBuffer(Room &room, int count, uint32_t size)
    {
        model::demand(size % 32 == 0, "a buffer of UB is no multiple of 32 bytes");
        used += static_cast<uint64_t>(count) * size;
        model::demand(used <= 196608, "UB overflows");
        room.bytes.assign(size / 8, ~0ull);
    }
};

struct DataCopyExtParams {
    uint32_t count, length, from, to;
    DataCopyExtParams(uint16_t count, uint32_t length, uint32_t from, uint32_t to, uint32_t)
        : count(count), length(length), from(from), to(to)
    {
    }
};
template <class T> struct DataCopyPadExtParams {
    DataCopyPadExtParams(bool, uint8_t, uint8_t, T) {}
};
inline uint32_t lines(uint32_t bytes) { return (bytes + 31) / 32; }
template <class T> void DataCopyPad(LocalTensor<T> to, GlobalTensor<T> from, DataCopyExtParams p, DataCopyPadExtParams<T>)
{
    for (uint32_t i = 0; i < p.count; ++i)
        std::memcpy(reinterpret_cast<uint8_t *>(to.at) + i * 32 * (lines(p.length) + p.to),
                    reinterpret_cast<uint8_t *>(from.at) + i * static_cast<uint64_t>(p.length + p.from), p.length);
}
template <class T> void DataCopyPad(GlobalTensor<T> to, LocalTensor<T> from, DataCopyExtParams p)
{
    for (uint32_t i = 0; i < p.count; ++i)
        std::memcpy(reinterpret_cast<uint8_t *>(to.at) + i * static_cast<uint64_t>(p.length + p.to),
                    reinterpret_cast<uint8_t *>(from.at) + i * 32 * (lines(p.length) + p.from), p.length);
}
template <class T, class U> void Cast(LocalTensor<T> to, LocalTensor<U> from, RoundMode, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i)
        to.at[i] = static_cast<T>(from.at[i]);
}
inline void Muls(LocalTensor<float> to, LocalTensor<float> x, float factor, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i)
        to.at[i] = x.at[i] * factor;
}
inline void Mul(LocalTensor<float> to, LocalTensor<float> x, LocalTensor<float> y, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i)
        to.at[i] = x.at[i] * y.at[i];
}
} // namespace AscendC

namespace matmul
{
using namespace AscendC;
template <TPosition, CubeFormat, class T, bool transposed = false> struct MatmulType {
    using Element = T;
    static constexpr bool kTransposed = transposed;
};
// Tiles of baseM x baseN of a core's rows and columns, in the order of iterateOrder; each product over all of its k.
template <class A, class B, class C, class Bias, const MatmulConfig &config> class Matmul
{
  public:
    void start(const TCubeTiling *given) { tiling = *given; }
    void SetTensorA(GlobalTensor<typename A::Element> tensor, bool transposed)
    {
        a = tensor, model::demand(!transposed, "A is transposed");
    }
    void SetTensorB(GlobalTensor<typename B::Element> tensor, bool transposed)
    {
        b = tensor, model::demand(transposed == B::kTransposed, "B's type and SetTensorB differ");
    }
    void SetTail(uint32_t m, uint32_t n, uint32_t k) { rows = m, columns = n, depth = k, next = 0; }
    template <bool sync = true> bool Iterate()
    {
        const uint32_t alongM = (rows + tiling.baseM - 1) / tiling.baseM, alongN = (columns + tiling.baseN - 1) / tiling.baseN;
        if (next == alongM * alongN)
            return false;
        x = tiling.iterateOrder == 0 ? next % alongM : next / alongN,
        y = tiling.iterateOrder == 0 ? next / alongM : next % alongN;
        ++next;
        return true;
    }
    template <bool sync = true>
    void GetTensorC(GlobalTensor<typename C::Element> to, uint8_t atomic = 0, bool sequential = false)
    {
        model::demand(!sequential, "tiles one after the other are not modelled");
        for (uint32_t i = x * tiling.baseM; i < rows && i < (x + 1) * tiling.baseM; ++i)
            for (uint32_t j = y * tiling.baseN; j < columns && j < (y + 1) * tiling.baseN; ++j) {
                typename C::Element sum = 0;
                for (uint32_t k = 0; k < depth; ++k)
                    sum += static_cast<typename C::Element>(a.at[static_cast<uint64_t>(i) * tiling.Ka + k]) *
                           b.at[B::kTransposed ? static_cast<uint64_t>(j) * tiling.Kb + k
                                               : static_cast<uint64_t>(k) * tiling.N + j];
                auto &place = to.at[static_cast<uint64_t>(i) * tiling.N + j];
                place = atomic ? place + sum : sum;
            }
    }
    void IterateAll(GlobalTensor<typename C::Element> to, uint8_t atomic)
    {
        while (Iterate())
            GetTensorC(to, atomic);
    }
    void End() {}

  private:
    TCubeTiling tiling;
    GlobalTensor<typename A::Element> a;
    GlobalTensor<typename B::Element> b;
    uint32_t rows = 0, columns = 0, depth = 0, next = 0, x = 0, y = 0;
};
} // namespace matmul
