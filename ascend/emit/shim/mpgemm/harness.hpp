// Runs kernels of the shim: reads matrices from files, runs every core, writes results, faults and moves.
#pragma once

#include <pto/pto-inst.hpp>

#include <cstdio>
#include <fstream>
#include <functional>

namespace mpgemm
{

// A pointer that converts to the type of a kernel's argument.
struct AnyPointer {
    void *pointer;
    template <typename T> operator T *() const { return static_cast<T *>(pointer); }
};

class Harness
{
  public:
    explicit Harness(std::string given) : folder(std::move(given)) { core().memories.reserve(64); }

    // Returns a matrix of `count` elements: from NAME.bin if the file exists, else bytes of -1, or of `filled`.
    template <typename T> T *matrix(const std::string &name, size_t count, bool written, int filled = 0xff)
    {
        auto &bytes = storage.emplace_back(count * sizeof(T), static_cast<uint8_t>(filled));
        std::ifstream file(folder + "/" + name + ".bin", std::ios::binary);
        if (file && !file.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(bytes.size()))) {
            std::fprintf(stderr, "%s.bin is shorter than %zu bytes\n", name.c_str(), bytes.size());
            std::exit(4);
        }
        core().memories.push_back({name, bytes.data(), bytes.size(), sizeof(T), written, std::vector<uint8_t>(count)});
        return reinterpret_cast<T *>(bytes.data());
    }

    void run(int blocks, const std::function<void()> &kernel)
    {
        for (int block = 0; block < blocks; ++block) {
            core().begin(block);
            kernel();
            core().end();
        }
    }

    // Another kernel may write a matrix again.
    void next_kernel()
    {
        for (auto &m : core().memories)
            std::fill(m.writes.begin(), m.writes.end(), 0);
    }

    int finish(const std::string &result)
    {
        for (const auto &m : core().memories)
            if (m.name == result)
                std::ofstream(folder + "/result.bin", std::ios::binary)
                    .write(reinterpret_cast<const char *>(m.base), static_cast<std::streamsize>(m.bytes));
        std::ofstream trace(folder + "/trace.jsonl");
        for (const auto &line : core().trace)
            trace << line << "\n";
        std::printf("{\"done\": true}\n");
        return 0;
    }

  private:
    std::string folder;
    std::vector<std::vector<uint8_t>> storage;
};

} // namespace mpgemm
