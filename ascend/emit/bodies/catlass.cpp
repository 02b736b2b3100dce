// A GEMM on CATLASS's basic kernel, instantiated for one plan of mpgemm, with its host.
//
//     ./gemm a.bin b.bin c.bin [device]      A and B as record.json says
//
// Compiled beside CATLASS (github.com/hicann/catlass) as its examples are: add this folder to its examples/CMakeLists.txt.
#include "catlass/gemm/kernel/basic_matmul.hpp"

#include "catlass/arch/arch.hpp"
#include "catlass/catlass.hpp"
#include "catlass/gemm/block/block_mmad.hpp"
#include "catlass/gemm/block/block_swizzle.hpp"
#include "catlass/gemm/device/device_gemm.hpp"
#include "catlass/gemm/dispatch_policy.hpp"
#include "catlass/gemm/gemm_type.hpp"
#include "catlass/layout/layout.hpp"

#include <acl/acl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

using namespace Catlass;

namespace
{
//@plan
using BlockMmad = Gemm::Block::BlockMmad<DispatchPolicy, L1TileShape, L0TileShape, Gemm::GemmType<Element, LayoutA>,
                                         Gemm::GemmType<Element, LayoutB>, Gemm::GemmType<Sum, layout::RowMajor>>;
using Multiply = Gemm::Device::DeviceGemm<Gemm::Kernel::BasicMatmul<BlockMmad, void, BlockScheduler>>;

void check(aclError status, const char *what)
{
    if (status != ACL_SUCCESS) {
        std::fprintf(stderr, "%s: ACL error %d\n", what, status);
        std::exit(1);
    }
}

uint8_t *allocated(size_t bytes)
{
    void *memory = nullptr;
    check(aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    return static_cast<uint8_t *>(memory);
}

uint8_t *read(const char *path, size_t bytes)
{
    std::vector<char> content(bytes);
    std::ifstream file(path, std::ios::binary);
    if (!file.read(content.data(), static_cast<std::streamsize>(bytes))) {
        std::fprintf(stderr, "%s: expected %zu bytes\n", path, bytes);
        std::exit(1);
    }
    uint8_t *memory = allocated(bytes);
    check(aclrtMemcpy(memory, bytes, content.data(), bytes, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
    return memory;
}
} // namespace

int main(int count, char **arguments)
{
    if (count < 4) {
        std::fprintf(stderr, "expected: %s a.bin b.bin c.bin [device]\n", arguments[0]);
        return 2;
    }
    const int device = count > 4 ? std::atoi(arguments[4]) : 0;
    aclrtStream stream = nullptr;
    check(aclInit(nullptr), "aclInit");
    check(aclrtSetDevice(device), "aclrtSetDevice");
    check(aclrtCreateStream(&stream), "aclrtCreateStream");
    const size_t bytes = static_cast<size_t>(kM) * kN * sizeof(Sum);
    uint8_t *c = allocated(bytes);
    Multiply multiply;
    Multiply::Arguments given{GemmCoord{kM, kN, kK}, read(arguments[1], static_cast<size_t>(kM) * kK * sizeof(Element)),
                              read(arguments[2], static_cast<size_t>(kK) * kN * sizeof(Element)), c};
    if (multiply.CanImplement(given) != Status::kSuccess) {
        std::fprintf(stderr, "CATLASS does not implement this instantiation\n");
        return 1;
    }
    const size_t needed = multiply.GetWorkspaceSize(given);
    multiply.Initialize(given, needed ? allocated(needed) : nullptr);
    multiply(stream, kCores);
    check(aclrtSynchronizeStream(stream), "aclrtSynchronizeStream");
    std::vector<char> result(bytes);
    check(aclrtMemcpy(result.data(), bytes, c, bytes, ACL_MEMCPY_DEVICE_TO_HOST), "aclrtMemcpy");
    std::ofstream(arguments[3], std::ios::binary).write(result.data(), static_cast<std::streamsize>(bytes));
    check(aclrtResetDevice(device), "aclrtResetDevice");
    return aclFinalize() == ACL_SUCCESS ? 0 : 1;
}
