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

//@acl
} // namespace

int main(int count, char **arguments)
{
    const Device device = opened(count, arguments);
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
    multiply(device.stream, kCores);
    return finished(device, c, bytes, arguments[3]);
}
