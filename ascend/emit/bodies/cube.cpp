// The matrix products of a GEMM on the cubes. Written by mpgemm for one plan; sizes and order are in namespace plan.
//
// Each core walks its tiles of C. Loads bring kStep blocks of A and B to L1, TEXTRACT moves one block to L0A and L0B, TMATMUL
// adds to L0C, TSTORE writes a tile. Buffers are rings: the pipe that read a buffer raises a flag before the buffer is filled again.
#include <cstdint>

#include <pto/pto-inst.hpp>

using namespace pto;

//@plan
namespace
{
using namespace plan;

// Events between two pipes, one for each place of a ring; B's events follow A's.
constexpr uint32_t kEventA = 0, kEventB = 2;

template <pipe_t from, pipe_t to> AICORE inline void raise(uint32_t event) { set_flag(from, to, static_cast<event_t>(event)); }
template <pipe_t from, pipe_t to> AICORE inline void await(uint32_t event) { wait_flag(from, to, static_cast<event_t>(event)); }

struct Range {
    uint32_t start, stop;
};
AICORE inline uint32_t length(Range range) { return range.stop - range.start; }
AICORE inline uint32_t least(uint32_t x, uint32_t y) { return x < y ? x : y; }

// Returns part `index` of `parts` nearly equal ranges of whole units, the longer ones first.
AICORE inline Range balanced(uint32_t index, uint32_t size, uint32_t parts, uint32_t unit)
{
    const uint32_t units = (size + unit - 1) / unit, each = units / parts, longer = units % parts;
    const uint32_t first = index * each + least(index, longer), next = first + each + (index < longer ? 1 : 0);
    return {first * unit, index + 1 == parts ? size : next * unit};
}
AICORE inline Range step(uint32_t index, uint32_t size, uint32_t unit)
{
    return {index * unit, least((index + 1) * unit, size)};
}
AICORE inline Range rowsOf(uint32_t block)
{
    return kBalanced ? balanced(block, kM, kRowBlocks, 16) : step(block, kM, kBlockM);
}
AICORE inline Range columnsOf(uint32_t block)
{
    return kBalanced ? balanced(block, kN, kColumnBlocks, 16) : step(block, kN, kBlockN);
}
AICORE inline Range sliceOf(uint32_t slice)
{
    return kSlices == 1 ? Range{0, kK} : balanced(slice, kK, kSlices, kBlockK);
}
AICORE inline Range shareOf(uint32_t group, uint32_t blocks, uint32_t groups)
{
    return kBalanced ? balanced(group, blocks, groups, 1) : step(group, blocks, (blocks + groups - 1) / groups);
}

// A tile of C, with the slice of k that is summed for it.
struct Work {
    Range rows, columns, depth;
    uint32_t slice;
};

// The core owns a rectangle of neighbouring tiles and walks it row by row, or column by column (kDirection 1).
AICORE inline bool inRectangle(uint32_t core, uint32_t turn, Work &work)
{
    const uint32_t slice = core / (kGroupsM * kGroupsN), place = core % (kGroupsM * kGroupsN);
    const Range rows = shareOf(place / kGroupsN, kRowBlocks, kGroupsM), columns = shareOf(place % kGroupsN, kColumnBlocks, kGroupsN);
    if (slice >= kSlices || turn >= length(rows) * length(columns))
        return false;
    const uint32_t x = kDirection == 0 ? turn / length(columns) : turn % length(rows);
    const uint32_t y = kDirection == 0 ? turn % length(columns) : turn / length(rows);
    work = {rowsOf(rows.start + x), columnsOf(columns.start + y), sliceOf(slice), slice};
    return true;
}

// Tiles are dealt one by one in bands of kOffset tile rows (or columns), walked back and forth.
AICORE inline bool inOrder(uint32_t core, uint32_t turn, Work &work)
{
    const uint32_t tile = (core + kFirst) % kUsedCores + turn * kCores, tiles = kRowBlocks * kColumnBlocks;
    if (core >= kUsedCores || tile >= tiles * kSlices)
        return false;
    const uint32_t across = kDirection == 0 ? kRowBlocks : kColumnBlocks, along = kDirection == 0 ? kColumnBlocks : kRowBlocks;
    const uint32_t band = tile % tiles / (kOffset * along), place = tile % tiles % (kOffset * along);
    const uint32_t width = least(kOffset, across - band * kOffset), forth = place / width;
    const uint32_t x = band * kOffset + place % width, y = kTurns && band % 2 ? along - 1 - forth : forth;
    work = {rowsOf(kDirection == 0 ? x : y), columnsOf(kDirection == 0 ? y : x), sliceOf(tile / tiles), tile / tiles};
    return true;
}

struct Words {
    __gm__ Word *a[2], *b[2]; // high and low words; with one term only the first is used
};

using L1A = Tile<TileType::Mat, Word, kBlockM, kLoadK, BLayout::ColMajor, DYNAMIC, DYNAMIC, SLayout::RowMajor>;
using L1B = Tile<TileType::Mat, Word, kLoadK, kBlockN, kBTransposed ? BLayout::RowMajor : BLayout::ColMajor, DYNAMIC, DYNAMIC,
                 kBTransposed ? SLayout::ColMajor : SLayout::RowMajor>;
using LeftTile = TileLeft<Word, kBlockM, kBlockK, DYNAMIC, DYNAMIC>;
using RightTile = TileRight<Word, kBlockK, kBlockN, DYNAMIC, DYNAMIC>;
using AccTile = TileAcc<Sum, kBlockM, kBlockN, DYNAMIC, DYNAMIC>;
constexpr Layout kLayoutA = kInFractals ? Layout::NZ : Layout::ND;
constexpr Layout kLayoutB = kInFractals ? Layout::NZ : kBTransposed ? Layout::DN : Layout::ND;

// In NZ, fractals of 16 x kC0 elements lie in columns of fractals, padded with zeros; ND rows have their own length.
constexpr uint32_t kC0 = 32 / sizeof(Word);
AICORE inline uint32_t whole(Range range, uint32_t unit)
{
    return kInFractals ? (length(range) + unit - 1) / unit * unit : length(range);
}
AICORE inline uint64_t placeOf(uint64_t row, uint64_t column, uint64_t rows, uint64_t columns)
{
    return kInFractals ? column * rows + row * kC0 : row * columns + column;
}

AICORE inline void loadA(__gm__ Word *a, uint32_t word, uint32_t slot, Range rows, Range depth)
{
    using Part = TileShape2D<Word, DYNAMIC, DYNAMIC, kLayoutA>;
    const uint32_t height = whole(rows, 16), width = whole(depth, kC0);
    GlobalTensor<Word, Part, BaseShape2D<Word, kRowsA, kColumnsA, kLayoutA>, kLayoutA> from(
        a + placeOf(rows.start, depth.start, kRowsA, kColumnsA), Part(height, width));
    L1A tile(height, width);
    TASSIGN(tile, kL1A + (word * kSlots + slot) * kL1ABytes);
    TLOAD(tile, from);
}

AICORE inline void loadB(__gm__ Word *b, uint32_t word, uint32_t slot, Range columns, Range depth)
{
    using Part = TileShape2D<Word, DYNAMIC, DYNAMIC, kLayoutB>;
    const uint32_t height = whole(depth, 16), width = whole(columns, kC0);
    const uint64_t offset = kBTransposed ? static_cast<uint64_t>(columns.start) * kK + depth.start
                                         : placeOf(depth.start, columns.start, kRowsB, kColumnsB);
    GlobalTensor<Word, Part, BaseShape2D<Word, kRowsB, kColumnsB, kLayoutB>, kLayoutB> from(b + offset, Part(height, width));
    L1B tile(height, width);
    TASSIGN(tile, kL1B + (word * kSlots + slot) * kL1BBytes);
    TLOAD(tile, from);
}

// One block of k: its place in L1 and L0, its sizes, and its position in its sum.
struct Block {
    uint32_t l1Slot, inLoad, l0Slot, l0cSlot, rows, depth, columns;
    bool starts, ends;
};

AICORE inline void moveA(const Block &at, uint32_t word, uint32_t slot)
{
    L1A from(at.rows, kLoadK);
    TASSIGN(from, kL1A + (word * kSlots + at.l1Slot) * kL1ABytes);
    LeftTile to(at.rows, at.depth);
    TASSIGN(to, slot * kL0ABytes);
    await<PIPE_M, PIPE_MTE1>(kEventA + slot);
    TEXTRACT(to, from, 0, at.inLoad * kBlockK);
    raise<PIPE_MTE1, PIPE_M>(kEventA + slot);
}

AICORE inline void moveB(const Block &at, uint32_t word, uint32_t slot)
{
    L1B from(kLoadK, at.columns);
    TASSIGN(from, kL1B + (word * kSlots + at.l1Slot) * kL1BBytes);
    RightTile to(at.depth, at.columns);
    TASSIGN(to, slot * kL0BBytes);
    await<PIPE_M, PIPE_MTE1>(kEventB + slot);
    TEXTRACT(to, from, at.inLoad * kBlockK, 0);
    raise<PIPE_MTE1, PIPE_M>(kEventB + slot);
}

AICORE inline void product(const Block &at, uint32_t accumulator, uint32_t slotA, uint32_t slotB)
{
    LeftTile left(at.rows, at.depth);
    RightTile right(at.depth, at.columns);
    AccTile sum(at.rows, at.columns);
    TASSIGN(left, slotA * kL0ABytes);
    TASSIGN(right, slotB * kL0BBytes);
    TASSIGN(sum, (at.l0cSlot * kAccumulators + accumulator) * kL0CBytes);
    if (!at.starts && ((at.rows + 15) / 16) * ((at.columns + 15) / 16) < 10)
        pipe_barrier(PIPE_M); // with few fractals the sum of the previous product is not ready yet
    if constexpr (kUnitFlag) {
        if (at.starts && at.ends)
            TMATMUL<AccPhase::Final>(sum, left, right);
        else if (at.starts)
            TMATMUL<AccPhase::Partial>(sum, left, right);
        else if (at.ends)
            TMATMUL_ACC<AccPhase::Final>(sum, left, right);
        else
            TMATMUL_ACC<AccPhase::Partial>(sum, left, right);
    } else {
        if (at.starts)
            TMATMUL(sum, left, right);
        else
            TMATMUL_ACC(sum, sum, left, right);
    }
}

//@blocks
// Stores the sums of a tile: the first k group is written, later groups and slices that share C are added in memory.
AICORE inline void storeTile(const Work &work, uint32_t pass, uint32_t l0cSlot, bool adds, __gm__ Sum *out)
{
    using Part = TileShape2D<Sum, DYNAMIC, DYNAMIC, Layout::ND>;
    using Global = GlobalTensor<Sum, Part, BaseShape2D<Sum, kM, kN, Layout::ND>, Layout::ND>;
    if (!kUnitFlag)
        await<PIPE_M, PIPE_FIX>(l0cSlot);
    for (uint32_t accumulator = 0; accumulator < kAccumulators; ++accumulator) {
        AccTile sum(length(work.rows), length(work.columns));
        TASSIGN(sum, (l0cSlot * kAccumulators + accumulator) * kL0CBytes);
        const uint32_t copy = (kSlicesApart ? work.slice * kTerms : 0) + kTermOfPass[pass] + accumulator;
        Global to(out + (static_cast<uint64_t>(copy) * kM + work.rows.start) * kN + work.columns.start,
                  Part(length(work.rows), length(work.columns)));
        if constexpr (kUnitFlag) {
            if (adds)
                TSTORE<STPhase::Final, AccTile, Global, AtomicType::AtomicAdd>(to, sum);
            else
                TSTORE<STPhase::Final, AccTile, Global, AtomicType::AtomicNone>(to, sum);
        } else {
            if (adds)
                TSTORE<AccTile, Global, AtomicType::AtomicAdd>(to, sum);
            else
                TSTORE<AccTile, Global, AtomicType::AtomicNone>(to, sum);
        }
    }
    if (!kUnitFlag)
        raise<PIPE_FIX, PIPE_M>(l0cSlot);
}

// Positions of the rings.
struct Rings {
    uint32_t loads, blocks, tiles;
};

AICORE inline void multiplyTile(const Work &work, uint32_t pass, const Words &words, __gm__ Sum *out, Rings &rings)
{
    for (uint32_t group = work.depth.start; group < work.depth.stop; group += kChain) {
        const uint32_t groupStop = least(group + kChain, work.depth.stop), l0cSlot = rings.tiles++ % kL0CSlots;
        if (!kUnitFlag)
            await<PIPE_FIX, PIPE_M>(l0cSlot);
        for (uint32_t load = group; load < groupStop; load += kLoadK) {
            const Range depth = {load, least(load + kLoadK, groupStop)};
            const uint32_t l1Slot = rings.loads++ % kSlots;
            await<PIPE_MTE1, PIPE_MTE2>(l1Slot);
            for (uint32_t word = 0; word < kWords; ++word) {
                loadA(words.a[kWords == 1 ? kWordA[pass] : word], word, l1Slot, work.rows, depth);
                loadB(words.b[kWords == 1 ? kWordB[pass] : word], word, l1Slot, work.columns, depth);
            }
            raise<PIPE_MTE2, PIPE_MTE1>(l1Slot);
            await<PIPE_MTE2, PIPE_MTE1>(l1Slot);
            for (uint32_t k = depth.start; k < depth.stop; k += kBlockK) {
                const uint32_t stop = least(k + kBlockK, depth.stop);
                multiplyBlock({l1Slot, (k - depth.start) / kBlockK, rings.blocks++ % kL0Slots, l0cSlot, length(work.rows), stop - k,
                               length(work.columns), k == group, stop == groupStop});
            }
            raise<PIPE_MTE1, PIPE_MTE2>(l1Slot);
        }
        if (!kUnitFlag)
            raise<PIPE_M, PIPE_FIX>(l0cSlot);
        storeTile(work, pass, l0cSlot, kAddsSlices || group > work.depth.start, out);
    }
}

// All places are free at the start; at the end every flag is taken back.
AICORE inline void openRings()
{
    for (uint32_t slot = 0; slot < kSlots; ++slot)
        raise<PIPE_MTE1, PIPE_MTE2>(slot);
    for (uint32_t slot = 0; slot < kL0Slots; ++slot) {
        raise<PIPE_M, PIPE_MTE1>(kEventA + slot);
        raise<PIPE_M, PIPE_MTE1>(kEventB + slot);
    }
    for (uint32_t slot = 0; slot < kL0CSlots && !kUnitFlag; ++slot)
        raise<PIPE_FIX, PIPE_M>(slot);
}
AICORE inline void closeRings()
{
    for (uint32_t slot = 0; slot < kSlots; ++slot)
        await<PIPE_MTE1, PIPE_MTE2>(slot);
    for (uint32_t slot = 0; slot < kL0Slots; ++slot) {
        await<PIPE_M, PIPE_MTE1>(kEventA + slot);
        await<PIPE_M, PIPE_MTE1>(kEventB + slot);
    }
    for (uint32_t slot = 0; slot < kL0CSlots && !kUnitFlag; ++slot)
        await<PIPE_FIX, PIPE_M>(slot);
}
} // namespace

// out: C, or the copies of C that a later pass adds, kM x kN each.
__global__ AICORE void gemm_cube(__gm__ uint8_t *highA, __gm__ uint8_t *lowA, __gm__ uint8_t *highB, __gm__ uint8_t *lowB,
                                 __gm__ uint8_t *out)
{
    const Words words = {{reinterpret_cast<__gm__ Word *>(highA), reinterpret_cast<__gm__ Word *>(lowA)},
                         {reinterpret_cast<__gm__ Word *>(highB), reinterpret_cast<__gm__ Word *>(lowB)}};
    const uint32_t core = static_cast<uint32_t>(get_block_idx());
    Rings rings = {0, 0, 0};
    Work work = {};
    openRings();
    for (uint32_t pass = 0; pass < kPasses; ++pass)
        for (uint32_t turn = 0; kRectangles ? inRectangle(core, turn, work) : inOrder(core, turn, work); ++turn)
            multiplyTile(work, pass, words, reinterpret_cast<__gm__ Sum *>(out), rings);
    closeRings();
}

#ifndef __CPU_SIM
extern "C" void launch_cube(void *stream, uint8_t *highA, uint8_t *lowA, uint8_t *highB, uint8_t *lowB, uint8_t *out)
{
    gemm_cube<<<plan::kUsedCores, nullptr, stream>>>(highA, lowA, highB, lowB, out);
}
#endif
