// A GEMM with a kernel of CATLASS, instantiated for one plan of mpgemm, with its host code.
//
//     ./gemm a.bin b.bin c.bin [device]      record.json describes A and B
//
// Compile it like CATLASS's examples (github.com/hicann/catlass): add this folder to its examples/CMakeLists.txt.
#include "catlass/gemm/kernel/@header"

#include "catlass/arch/arch.hpp"
#include "catlass/catlass.hpp"
#include "catlass/gemm/block/block_mmad.hpp"
#include "catlass/gemm/block/block_swizzle.hpp"
#include "catlass/gemm/device/device_gemm.hpp"
#include "catlass/gemm/dispatch_policy.hpp"
#include "catlass/gemm/gemm_type.hpp"
#include "catlass/layout/layout.hpp"
//@tla

#include <acl/acl.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <vector>

using namespace Catlass;
//@namespaces

namespace
{
//@plan

//@acl
} // namespace

int main(int count, char **arguments)
{
    const Device device = opened(count, arguments);
    uint8_t *a = read(arguments[1], kElementsOfA * sizeof(Element)), *b = read(arguments[2], kElementsOfB * sizeof(Element));
    const size_t bytes = kElementsOfC * sizeof(Sum);
    uint8_t *c = allocated(bytes);
    //@groups
    MatmulAdapter multiply;
    MatmulKernel::Arguments given{@arguments};
    if (multiply.CanImplement(given) != Status::kSuccess) {
        std::fprintf(stderr, "CATLASS does not implement this instantiation\n");
        return 1;
    }
    const size_t needed = multiply.GetWorkspaceSize(given);
    multiply.Initialize(given, needed ? allocated(needed) : nullptr);
    multiply(device.stream, kCores);
    return finished(device, c, bytes, arguments[3]);
}
