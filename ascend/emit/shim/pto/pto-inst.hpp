// mpgemm's shim of the PTO calls that GEMM kernels use: a kernel that includes <pto/pto-inst.hpp> compiles with any C++17
// compiler and runs on the CPU, one core after the other, with the cube's rounding as mpgemm models it (products added one by
// one in FP32, to nearest even) and with every access to a buffer checked against the flags (mpgemm/core.hpp).
//
// Names and meaning: docs/isa of pto-isa (github.com/hw-native-sys/pto-isa, 3186c381); nothing of it is contained here. A
// tile's elements lie by rows in its bytes, whatever its fractals are, so tiles of two shapes over the same bytes cannot read
// each other.
#pragma once

#include <mpgemm/core.hpp>
#include <mpgemm/numbers.hpp>

#include <type_traits>

#define AICORE
#define __gm__
#define __global__
#define __aicore__
#define __CPU_SIM 1

namespace pto
{

enum class TileType { Vec, Mat, Left, Right, Acc };
enum class BLayout { RowMajor, ColMajor };
enum class SLayout { NoneBox, RowMajor, ColMajor };
enum class Layout { ND, DN, NZ };
enum class PadValue { Null, Zero, Max, Min };
enum class CompactMode { Null, Normal, RowPlusOne };
enum class AtomicType { AtomicNone, AtomicAdd };
enum class RoundMode { CAST_NONE, CAST_RINT, CAST_ROUND, CAST_FLOOR, CAST_CEIL, CAST_TRUNC, CAST_ODD };
enum class AccPhase { Unspecified, Partial, Final };
enum class STPhase { Unspecified, Partial, Final };

constexpr int DYNAMIC = -1;
struct TileConfig {
    static constexpr int alignedSize = 32, fractalABSize = 512, fractalCSize = 1024;
};
struct RecordEvent {};

// -- global memory

template <int64_t... Sizes> struct Sizes5 {
    int64_t values[5] = {Sizes...};
    Sizes5() = default;
    template <typename... Ints> explicit Sizes5(Ints... given)
    {
        const int64_t all[] = {static_cast<int64_t>(given)...};
        constexpr int count = sizeof...(Ints), open = ((Sizes == DYNAMIC) + ...);
        static_assert(count == 5 || count == open, "all five sizes, or the open ones");
        for (int i = 0, next = 0; i < 5; ++i)
            if (count == 5 || values[i] == DYNAMIC)
                values[i] = all[count == 5 ? i : next++];
    }
};
template <int64_t A = DYNAMIC, int64_t B = DYNAMIC, int64_t C = DYNAMIC, int64_t D = DYNAMIC, int64_t E = DYNAMIC>
struct Shape : Sizes5<A, B, C, D, E> {
    using Sizes5<A, B, C, D, E>::Sizes5;
};
template <int64_t A = DYNAMIC, int64_t B = DYNAMIC, int64_t C = DYNAMIC, int64_t D = DYNAMIC, int64_t E = DYNAMIC>
struct Stride : Sizes5<A, B, C, D, E> {
    using Sizes5<A, B, C, D, E>::Sizes5;
};

// Number of elements in a fractal's row of 32 bytes; a fractal has 16 rows.
template <typename T> constexpr int64_t c0_of = 32 / static_cast<int64_t>(sizeof(T));
constexpr int64_t divided(int64_t size, int64_t unit) { return size == DYNAMIC ? size : size / unit; }

template <typename T, int64_t Rows, int64_t Cols, Layout L> struct TileShape2D : Shape<1, 1, 1, Rows, Cols> {
    TileShape2D() = default;
    TileShape2D(int64_t rows, int64_t cols) : Shape<1, 1, 1, Rows, Cols>(1, 1, 1, rows, cols) {}
};
template <typename T, int64_t Rows, int64_t Cols>
struct TileShape2D<T, Rows, Cols, Layout::NZ> : Shape<1, divided(Cols, c0_of<T>), divided(Rows, 16), 16, c0_of<T>> {
    TileShape2D() = default;
    TileShape2D(int64_t rows, int64_t cols)
        : Shape<1, divided(Cols, c0_of<T>), divided(Rows, 16), 16, c0_of<T>>(1, cols / c0_of<T>, rows / 16, 16, c0_of<T>)
    {
    }
};
template <typename T, int64_t Rows, int64_t Cols, Layout L>
struct BaseShape2D : Stride<Rows * Cols, Rows * Cols, Rows * Cols, L == Layout::DN ? 1 : Cols, L == Layout::DN ? Rows : 1> {
};
template <typename T, int64_t Rows, int64_t Cols>
struct BaseShape2D<T, Rows, Cols, Layout::NZ> : Stride<Rows * Cols, Rows * c0_of<T>, 16 * c0_of<T>, c0_of<T>, 1> {
    static_assert(Rows % 16 == 0 && Cols % c0_of<T> == 0, "NZ: whole fractals");
};

template <typename T, typename Shape_, typename Stride_, Layout L = Layout::ND> struct GlobalTensor {
    using DType = T;
    T *data;
    Shape_ shape;
    Stride_ stride;
    GlobalTensor(T *pointer) : data(pointer) {}
    GlobalTensor(T *pointer, const Shape_ &given) : data(pointer), shape(given) {}
    GlobalTensor(T *pointer, const Shape_ &given, const Stride_ &strides) : data(pointer), shape(given), stride(strides) {}
    T *at(int64_t row, int64_t column) const
    {
        if (L != Layout::NZ)
            return data + row * stride.values[3] + column * stride.values[4];
        const auto *by = stride.values;
        return data + column / c0_of<T> * by[1] + row / 16 * by[2] + row % 16 * by[3] + column % c0_of<T> * by[4];
    }
    // Returns whether a tile's valid part equals the tensor's shape, as the vendor's TLOAD requires for NZ.
    bool has(int64_t rows, int64_t columns) const
    {
        return L != Layout::NZ || (rows == shape.values[2] * 16 && columns == shape.values[1] * c0_of<T>);
    }
};

// -- tiles

template <TileType Loc_, typename T, int Rows_, int Cols_, BLayout B_ = BLayout::RowMajor, int RowValid_ = Rows_,
          int ColValid_ = Cols_, SLayout S_ = SLayout::NoneBox, int Fractal_ = TileConfig::fractalABSize,
          PadValue Pad_ = PadValue::Null, CompactMode Compact_ = CompactMode::Null>
struct Tile {
    using DType = T;
    static constexpr TileType Loc = Loc_;
    static constexpr int Rows = Rows_, Cols = Cols_;
    static constexpr BLayout BFractal = B_;
    static constexpr SLayout SFractal = S_;
    static constexpr mpgemm::Buffer buffer = Loc_ == TileType::Vec     ? mpgemm::UB
                                             : Loc_ == TileType::Mat   ? mpgemm::L1
                                             : Loc_ == TileType::Left  ? mpgemm::L0A
                                             : Loc_ == TileType::Right ? mpgemm::L0B
                                                                       : mpgemm::L0C;
    static constexpr size_t size = static_cast<size_t>(Rows_) * Cols_ * sizeof(T);
    static_assert(Rows_ > 0 && Cols_ > 0 && RowValid_ <= Rows_ && ColValid_ <= Cols_, "a tile's valid part is within it");
    static constexpr int c0 = Loc_ == TileType::Acc ? 16 : TileConfig::alignedSize / static_cast<int>(sizeof(T));
    static_assert(S_ == SLayout::NoneBox || Rows_ % (S_ == SLayout::RowMajor ? 16 : c0) == 0, "rows in whole fractals");
    static_assert(S_ == SLayout::NoneBox || Cols_ % (S_ == SLayout::RowMajor ? c0 : 16) == 0, "columns in whole fractals");
    static_assert(S_ != SLayout::NoneBox || Cols_ * sizeof(T) % TileConfig::alignedSize == 0, "rows of 32 bytes");

    Tile() = default;
    Tile(int rows, int cols) : rows_(rows), cols_(cols) { check(); }
    explicit Tile(int open) : rows_(RowValid_ == DYNAMIC ? open : RowValid_), cols_(ColValid_ == DYNAMIC ? open : ColValid_)
    {
        check();
    }
    int GetValidRow() const { return rows_; }
    int GetValidCol() const { return cols_; }

    size_t address = 0;
    T *data(const char *what) { return reinterpret_cast<T *>(mpgemm::core().at(buffer, address, size, what)); }

  private:
    int rows_ = RowValid_, cols_ = ColValid_;
    void check()
    {
        if (rows_ < 1 || rows_ > Rows_ || cols_ < 1 || cols_ > Cols_) {
            mpgemm::core().fault("valid part outside of the tile", std::to_string(rows_) + " x " + std::to_string(cols_));
            std::exit(3);
        }
    }
};

template <typename T, int R, int C, int VR = R, int VC = C>
using TileLeft = Tile<TileType::Left, T, R, C, BLayout::RowMajor, VR, VC, SLayout::RowMajor>;
template <typename T, int R, int C, int VR = R, int VC = C>
using TileRight = Tile<TileType::Right, T, R, C, BLayout::RowMajor, VR, VC, SLayout::ColMajor>;
template <typename T, int R, int C, int VR = R, int VC = C>
using TileAcc = Tile<TileType::Acc, T, R, C, BLayout::ColMajor, VR, VC, SLayout::RowMajor, TileConfig::fractalCSize>;

template <typename TileData> void TASSIGN(TileData &tile, uint64_t address)
{
    tile.address = address;
    tile.data("TASSIGN");
    if (address % 32)
        mpgemm::core().fault("address not in whole 32 bytes", std::to_string(address));
}

// -- data movement

template <typename Global> void log_transfer(const char *what, const Global &g, int rows, int cols)
{
    auto &m = mpgemm::core().memory_of(g.data);
    const auto offset = (reinterpret_cast<uint8_t *>(g.data) - m.base) / m.element;
    mpgemm::core().trace.push_back(std::string("{\"op\": \"") + what + "\", \"core\": " + std::to_string(mpgemm::core().block) +
                                   ", \"matrix\": \"" + m.name + "\", \"offset\": " + std::to_string(offset) +
                                   ", \"rows\": " + std::to_string(rows) + ", \"columns\": " + std::to_string(cols) + "}");
}

template <typename TileData, typename Global, typename... Events> RecordEvent TLOAD(TileData &dst, Global &src, Events &...)
{
    static_assert(TileData::Loc == TileType::Vec || TileData::Loc == TileType::Mat, "TLOAD fills UB and L1");
    static_assert(sizeof(typename TileData::DType) == sizeof(typename Global::DType), "TLOAD keeps the element's width");
    auto &core = mpgemm::core();
    core.operate(PIPE_MTE2);
    auto *to = dst.data("TLOAD");
    core.access(TileData::buffer, dst.address, TileData::size, PIPE_MTE2, true);
    if (!src.has(dst.GetValidRow(), dst.GetValidCol()))
        core.fault("not in whole fractals", std::to_string(dst.GetValidRow()) + " x " + std::to_string(dst.GetValidCol()));
    auto &m = core.memory_of(src.data);
    for (int r = 0; r < dst.GetValidRow(); ++r)
        for (int c = 0; c < dst.GetValidCol(); ++c) {
            const auto *from = src.at(r, c);
            core.check_inside(m, reinterpret_cast<const uint8_t *>(from), "TLOAD from");
            std::memcpy(to + r * TileData::Cols + c, from, sizeof *from);
        }
    if (TileData::Loc == TileType::Mat)
        log_transfer("load", src, dst.GetValidRow(), dst.GetValidCol());
    return {};
}

template <typename TileData, typename Global> void store(Global &dst, TileData &src, bool adds, bool unit)
{
    using T = typename Global::DType;
    constexpr bool fixpipe = TileData::Loc == TileType::Acc;
    constexpr int pipe = fixpipe ? PIPE_FIX : PIPE_MTE3;
    static_assert(TileData::Loc == TileType::Vec || fixpipe, "TSTORE empties UB and L0C");
    auto &core = mpgemm::core();
    core.operate(pipe);
    if (unit) {
        auto &u = core.unit(src.address);
        if (!u.full)
            core.fault("unit flag", "TSTORE of an accumulator that no final product filled");
        core.known_to(pipe, u.filled);
        u.full = false;
    }
    auto *from = src.data("TSTORE");
    core.access(TileData::buffer, src.address, TileData::size, pipe, false);
    if (unit)
        core.unit(src.address).drained = core.clock(pipe);
    auto &m = core.memory_of(dst.data);
    for (int r = 0; r < src.GetValidRow(); ++r)
        for (int c = 0; c < src.GetValidCol(); ++c) {
            T *to = dst.at(r, c);
            core.check_inside(m, reinterpret_cast<uint8_t *>(to), "TSTORE to");
            const T value = static_cast<T>(from[r * TileData::Cols + c]);
            *to = adds ? static_cast<T>(*to + value) : value;
            auto &count = m.writes[(reinterpret_cast<uint8_t *>(to) - m.base) / m.element];
            if (!adds && m.written && count)
                core.fault("written twice", m.name);
            count = 1;
        }
    if (fixpipe)
        log_transfer("store", dst, src.GetValidRow(), src.GetValidCol());
}

template <typename TileData, typename Global, AtomicType atomic = AtomicType::AtomicNone, typename... Events>
RecordEvent TSTORE(Global &dst, TileData &src, Events &...)
{
    store(dst, src, atomic == AtomicType::AtomicAdd, false);
    return {};
}
template <STPhase phase, typename TileData, typename Global, AtomicType atomic = AtomicType::AtomicNone, typename... Events>
RecordEvent TSTORE(Global &dst, TileData &src, Events &...)
{
    store(dst, src, atomic == AtomicType::AtomicAdd, phase == STPhase::Final);
    return {};
}
template <typename TileData, typename Global> RecordEvent TSTORE(Global &dst, TileData &src)
{
    store(dst, src, false, false);
    return {};
}

template <typename Dst, typename Src, typename... Events>
RecordEvent TEXTRACT(Dst &dst, Src &src, uint16_t row = 0, uint16_t column = 0, Events &...)
{
    static_assert(Src::Loc == TileType::Mat && (Dst::Loc == TileType::Left || Dst::Loc == TileType::Right), "L1 to L0");
    static_assert(std::is_same<typename Dst::DType, typename Src::DType>::value, "TEXTRACT keeps the type");
    auto &core = mpgemm::core();
    core.operate(PIPE_MTE1);
    auto *to = dst.data("TEXTRACT"), *from = src.data("TEXTRACT");
    core.access(Src::buffer, src.address, Src::size, PIPE_MTE1, false);
    core.access(Dst::buffer, dst.address, Dst::size, PIPE_MTE1, true);
    if (row + dst.GetValidRow() > Src::Rows || column + dst.GetValidCol() > Src::Cols) {
        core.fault("beyond the tile", "TEXTRACT at " + std::to_string(row) + ", " + std::to_string(column));
        std::exit(3);
    }
    for (int r = 0; r < dst.GetValidRow(); ++r)
        std::memcpy(to + r * Dst::Cols, from + (row + r) * Src::Cols + column, dst.GetValidCol() * sizeof *to);
    return {};
}

// -- the cube

// With few fractals (AscendC, Mmad: below 10), an accumulating product needs a barrier after the previous one.
constexpr int FRACTALS_WITHOUT_BARRIER = 10;

inline float multiplied(float sum, float a, float b, std::true_type) { return sum + a * b; } // exact: 22 bits
inline float multiplied(float sum, float a, float b, std::false_type) { return std::fmaf(a, b, sum); }

template <typename Acc, typename Left, typename Right> void multiply(Acc &c, Left &a, Right &b, bool adds, AccPhase phase)
{
    static_assert(Acc::Loc == TileType::Acc && Left::Loc == TileType::Left && Right::Loc == TileType::Right, "L0A, L0B, L0C");
    static_assert(Left::Rows == Acc::Rows && Left::Cols == Right::Rows && Right::Cols == Acc::Cols, "shapes of a product");
    using T = typename Acc::DType;
    auto &core = mpgemm::core();
    const int m = a.GetValidRow(), k = a.GetValidCol(), n = b.GetValidCol();
    if (b.GetValidRow() != k)
        core.fault("inner sizes differ", std::to_string(k) + " of A, " + std::to_string(b.GetValidRow()) + " of B");
    auto &unit = core.unit(c.address);
    if (phase != AccPhase::Unspecified && !adds) {
        if (unit.full)
            core.fault("unit flag", "a product into an accumulator that has not been stored");
        core.known_to(PIPE_M, unit.drained);
    }
    core.operate(PIPE_M);
    auto *sum = c.data("TMATMUL"), *end = sum;
    const auto *left = a.data("TMATMUL");
    const auto *right = b.data("TMATMUL");
    (void)end;
    core.access(Left::buffer, a.address, Left::size, PIPE_M, false);
    core.access(Right::buffer, b.address, Right::size, PIPE_M, false);
    core.access(Acc::buffer, c.address, Acc::size, PIPE_M, true);
    const int fractals = ((m + 15) / 16) * ((n + 15) / 16);
    if (adds && fractals < FRACTALS_WITHOUT_BARRIER && core.since_barrier(PIPE_M, unit.product))
        core.fault("no barrier",
                   "accumulating TMATMUL on " + std::to_string(fractals) + " fractals without pipe_barrier(PIPE_M)");
    unit.product = core.now(PIPE_M);
    std::vector<T> row(n), line(n);
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j)
            row[j] = adds ? sum[i * Acc::Cols + j] : T(0);
        for (int p = 0; p < k; ++p) {
            const T x = static_cast<T>(left[i * Left::Cols + p]);
            for (int j = 0; j < n; ++j) {
                const T y = static_cast<T>(right[p * Right::Cols + j]);
                if constexpr (std::is_same<T, float>::value)
                    row[j] = multiplied(row[j], x, y, std::is_same<typename Left::DType, half>());
                else
                    row[j] = static_cast<T>(static_cast<uint32_t>(row[j]) + static_cast<uint32_t>(x * y));
            }
        }
        std::memcpy(sum + i * Acc::Cols, row.data(), n * sizeof(T));
    }
    if (phase == AccPhase::Final) {
        unit.full = true;
        unit.filled = core.clock(PIPE_M);
    }
}

template <typename Acc, typename Left, typename Right> RecordEvent TMATMUL(Acc &c, Left &a, Right &b)
{
    multiply(c, a, b, false, AccPhase::Unspecified);
    return {};
}
template <AccPhase phase, typename Acc, typename Left, typename Right> RecordEvent TMATMUL(Acc &c, Left &a, Right &b)
{
    multiply(c, a, b, false, phase);
    return {};
}
template <typename Acc, typename Left, typename Right> RecordEvent TMATMUL_ACC(Acc &out, Acc &in, Left &a, Right &b)
{
    if (out.address != in.address)
        mpgemm::core().fault("two accumulators", "TMATMUL_ACC adds in place here");
    multiply(out, a, b, true, AccPhase::Unspecified);
    return {};
}
template <AccPhase phase = AccPhase::Unspecified, typename Acc, typename Left, typename Right>
RecordEvent TMATMUL_ACC(Acc &c, Left &a, Right &b)
{
    multiply(c, a, b, true, phase);
    return {};
}

// -- the vector unit

template <typename Dst, typename F, typename... Src> void elementwise(F f, Dst &dst, Src &...src)
{
    auto &core = mpgemm::core();
    core.operate(PIPE_V);
    auto *to = dst.data("vector");
    (core.access(Src::buffer, src.address, Src::size, PIPE_V, false), ...);
    core.access(Dst::buffer, dst.address, Dst::size, PIPE_V, true);
    for (int r = 0; r < dst.GetValidRow(); ++r)
        for (int c = 0; c < dst.GetValidCol(); ++c)
            to[r * Dst::Cols + c] = static_cast<typename Dst::DType>(f(src.data("vector")[r * Src::Cols + c]...));
}

// Moves whole tiles from L1 to L0A or L0B, or within UB. Other moves (from L0C, to bias and scales) are not implemented.
template <typename Dst, typename Src, typename... Events> RecordEvent TMOV(Dst &dst, Src &src, Events &...)
{
    static_assert(Src::Loc == TileType::Mat || (Src::Loc == TileType::Vec && Dst::Loc == TileType::Vec), "L1 to L0, or in UB");
    if constexpr (Src::Loc == TileType::Mat)
        return TEXTRACT(dst, src);
    else
        elementwise([](auto x) { return x; }, dst, src);
    return {};
}

template <typename Dst, typename Src> RecordEvent TCVT(Dst &dst, Src &src, RoundMode mode)
{
    if (mode != RoundMode::CAST_RINT && mode != RoundMode::CAST_NONE)
        mpgemm::core().fault("rounding", "the shim converts to nearest even");
    elementwise([](auto x) { return static_cast<float>(x); }, dst, src);
    return {};
}
template <typename Dst, typename A, typename B> RecordEvent TADD(Dst &dst, A &a, B &b)
{
    elementwise([](auto x, auto y) { return x + y; }, dst, a, b);
    return {};
}
template <typename Dst, typename A, typename B> RecordEvent TSUB(Dst &dst, A &a, B &b)
{
    elementwise([](auto x, auto y) { return x - y; }, dst, a, b);
    return {};
}
template <typename Dst, typename A> RecordEvent TMULS(Dst &dst, A &a, typename A::DType factor)
{
    elementwise([factor](auto x) { return x * factor; }, dst, a);
    return {};
}

} // namespace pto
