// One Ascend core in the shim: buffers, pipes, flags, and the detection of accesses without an order.
//
// Each pipe counts its operations. A vector clock for each pipe counts the operations of every pipe that are known to be
// finished when its next one starts. set_flag carries the clock of its source, wait_flag joins it to that of its destination.
// Two accesses to the same bytes, one of them a write, by pipes of which neither waits for the other are a race. Operations of
// one pipe are in order; on the vector unit, results are ready only after a barrier.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

enum pipe_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };
enum event_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

#ifndef MPGEMM_L1_BYTES
#define MPGEMM_L1_BYTES 524288
#endif
#ifndef MPGEMM_L0A_BYTES
#define MPGEMM_L0A_BYTES 65536
#endif
#ifndef MPGEMM_L0B_BYTES
#define MPGEMM_L0B_BYTES 65536
#endif
#ifndef MPGEMM_L0C_BYTES
#define MPGEMM_L0C_BYTES 131072
#endif
#ifndef MPGEMM_UB_BYTES
#define MPGEMM_UB_BYTES 196608
#endif

namespace mpgemm
{

constexpr int PIPES = PIPE_ALL;
constexpr int EVENTS = 8;
using Clock = std::array<uint64_t, PIPES>;
inline const char *const PIPE_NAMES[] = {"S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL"};

enum Buffer { UB, L1, L0A, L0B, L0C, BUFFERS };
inline const char *const BUFFER_NAMES[] = {"UB", "L1", "L0A", "L0B", "L0C"};
inline const size_t BUFFER_BYTES[] = {MPGEMM_UB_BYTES, MPGEMM_L1_BYTES, MPGEMM_L0A_BYTES, MPGEMM_L0B_BYTES, MPGEMM_L0C_BYTES};

// A named matrix in global memory.
struct Memory {
    std::string name;
    uint8_t *base;
    size_t bytes, element;
    bool written; // by kernels: bytes that several cores write without adding are counted
    std::vector<uint8_t> writes;
};

struct Access {
    size_t start, stop;
    int pipe;
    bool write;
    uint64_t time;
};

// State of the unit flag between FIXPIPE and the cube, for one accumulator.
struct Unit {
    bool full = false;
    uint64_t product = 0; // the last product into this accumulator
    Clock filled{}, drained{};
};

class Core
{
  public:
    int block = 0;
    std::vector<Memory> memories;
    std::vector<std::string> trace;
    bool failed = false;

    void begin(int number)
    {
        block = number;
        for (auto &clock : clocks)
            clock.fill(0);
        barriers.fill(0);
        flags.clear();
        units.clear();
        for (int b = 0; b < BUFFERS; ++b) {
            bytes[b].assign(BUFFER_BYTES[b], 0xff); // NaN or -1, so that unwritten bytes show
            history[b].clear();
        }
    }

    // Flags that are up when a core ends would still be up when the next kernel begins.
    void end()
    {
        for (const auto &[key, clock] : flags)
            fault("flag left up", flag_name(key));
    }

    void fault(const std::string &kind, const std::string &what)
    {
        failed = true;
        if (faults.insert(kind + what).second && faults.size() <= 64)
            std::printf("{\"fault\": \"%s\", \"core\": %d, \"what\": \"%s\"}\n", kind.c_str(), block, what.c_str());
    }

    // -- pipes and flags

    void operate(int pipe) { ++clocks[pipe][pipe]; }

    void set(int from, int to, int event)
    {
        const Key key{from, to, event};
        if (event < 0 || event >= EVENTS)
            fault("no such event", flag_name(key));
        if (!flags.emplace(key, clocks[from]).second)
            fault("flag raised twice", flag_name(key));
    }

    void wait(int from, int to, int event)
    {
        const Key key{from, to, event};
        const auto found = flags.find(key);
        if (found == flags.end())
            return fault("wait for a flag that is not up", flag_name(key));
        join(clocks[to], found->second);
        flags.erase(found);
    }

    void barrier(int pipe)
    {
        if (pipe != PIPE_ALL) {
            barriers[pipe] = clocks[pipe][pipe];
            return;
        }
        for (auto &clock : clocks)
            for (const auto &other : clocks)
                join(clock, other);
        for (int p = 0; p < PIPES; ++p)
            barriers[p] = clocks[p][p];
    }

    uint64_t since_barrier(int pipe, uint64_t time) const { return time > barriers[pipe]; }
    uint64_t now(int pipe) const { return clocks[pipe][pipe]; }

    // -- buffers

    uint8_t *at(Buffer buffer, size_t address, size_t size, const char *what)
    {
        if (address + size > BUFFER_BYTES[buffer]) {
            fault("beyond the buffer", std::string(BUFFER_NAMES[buffer]) + ": " + what + " at " + std::to_string(address) +
                                           ", " + std::to_string(size) + " bytes");
            std::exit(3);
        }
        return bytes[buffer].data() + address;
    }

    // Records one operation's access to [start, start + size), after operate() was called for the operation.
    void access(Buffer buffer, size_t start, size_t size, int pipe, bool write)
    {
        const size_t stop = start + size;
        auto &known = history[buffer];
        for (const Access &old : known)
            if ((write || old.write) && old.start < stop && start < old.stop && !is_over(old, pipe))
                fault("race", std::string(BUFFER_NAMES[buffer]) + ": " + (write ? "write" : "read") + " by " +
                                  PIPE_NAMES[pipe] + " while " + PIPE_NAMES[old.pipe] + (old.write ? " writes" : " reads"));
        known.erase(std::remove_if(known.begin(), known.end(),
                                   [&](const Access &old) {
                                       const bool covered = start <= old.start && old.stop <= stop;
                                       return covered && (write || (!old.write && old.pipe == pipe));
                                   }),
                    known.end());
        known.push_back({start, stop, pipe, write, clocks[pipe][pipe]});
    }

    // -- the unit flag

    Unit &unit(size_t address) { return units[address]; }
    void known_to(int pipe, const Clock &clock) { join(clocks[pipe], clock); }
    const Clock &clock(int pipe) const { return clocks[pipe]; }

    // -- global memory

    Memory &memory_of(const void *pointer)
    {
        const auto *p = static_cast<const uint8_t *>(pointer);
        for (auto &m : memories)
            if (p >= m.base && p < m.base + m.bytes)
                return m;
        fault("outside of every matrix", "a global address");
        std::exit(3);
    }

    void check_inside(const Memory &m, const uint8_t *element, const char *what)
    {
        if (element < m.base || element + m.element > m.base + m.bytes) {
            fault("beyond the matrix", std::string(what) + " " + m.name);
            std::exit(3);
        }
    }

  private:
    using Key = std::tuple<int, int, int>;
    std::array<Clock, PIPES> clocks{};
    Clock barriers{};
    std::map<Key, Clock> flags;
    std::map<size_t, Unit> units;
    std::array<std::vector<uint8_t>, BUFFERS> bytes;
    std::array<std::vector<Access>, BUFFERS> history;
    std::set<std::string> faults;

    static std::string flag_name(const Key &key)
    {
        return std::string(PIPE_NAMES[std::get<0>(key)]) + " to " + PIPE_NAMES[std::get<1>(key)] + ", event " +
               std::to_string(std::get<2>(key));
    }

    static void join(Clock &clock, const Clock &other)
    {
        for (int p = 0; p < PIPES; ++p)
            clock[p] = std::max(clock[p], other[p]);
    }

    bool is_over(const Access &old, int pipe) const
    {
        if (old.pipe != pipe)
            return old.time <= clocks[pipe][old.pipe];
        return pipe != PIPE_V || old.time == clocks[pipe][pipe] || old.time <= barriers[pipe];
    }
};

inline Core &core()
{
    static Core one;
    return one;
}

} // namespace mpgemm

inline void set_flag(pipe_t from, pipe_t to, event_t event) { mpgemm::core().set(from, to, event); }
inline void wait_flag(pipe_t from, pipe_t to, event_t event) { mpgemm::core().wait(from, to, event); }
inline void pipe_barrier(pipe_t pipe) { mpgemm::core().barrier(pipe); }
inline int64_t get_block_idx() { return mpgemm::core().block; }
