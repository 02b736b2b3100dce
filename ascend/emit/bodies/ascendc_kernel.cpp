// A GEMM on AscendC's high-level Matmul, for one plan of mpgemm. The tiling comes from the host (tiling.cpp).
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;
using namespace matmul;

namespace
{
//@plan
using A = MatmulType<TPosition::GM, CubeFormat::kFormat, kElement, false>;
using B = MatmulType<TPosition::GM, CubeFormat::kFormat, kElement, kBTransposed>;
using C = MatmulType<TPosition::GM, CubeFormat::ND, kSum>;

__aicore__ inline uint64_t partsOf(uint64_t size, uint64_t part) { return (size + part - 1) / part; }
__aicore__ inline int32_t lengthOf(uint64_t start, uint64_t size, uint64_t part)
{
    return static_cast<int32_t>(size - start < part ? size - start : part);
}
} // namespace

extern "C" __global__ __aicore__ void gemm(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR workspace, GM_ADDR tilingData)
{
    TCubeTiling tiling;
    auto *to = reinterpret_cast<uint32_t *>(&tiling);
    auto *from = reinterpret_cast<__gm__ uint32_t *>(tilingData);
    for (uint32_t i = 0; i < sizeof(TCubeTiling) / sizeof(uint32_t); ++i)
        to[i] = from[i];
    TPipe pipe;
    Matmul<A, B, C, C> multiply;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), multiply, &tiling);
    const uint64_t core = GetBlockIdx(), alongM = partsOf(tiling.M, tiling.singleCoreM), alongN = partsOf(tiling.N, tiling.singleCoreN);
    if (core >= static_cast<uint64_t>(tiling.usedCoreNum))
        return;
    const uint64_t m = core % alongM * tiling.singleCoreM, n = core / alongM % alongN * tiling.singleCoreN;
    const uint64_t k = core / (alongM * alongN) * tiling.singleCoreK;
    GlobalTensor<kElement> wholeA, wholeB;
    GlobalTensor<kSum> wholeC;
    wholeA.SetGlobalBuffer(reinterpret_cast<__gm__ kElement *>(a), static_cast<uint64_t>(tiling.M) * tiling.Ka);
    wholeB.SetGlobalBuffer(reinterpret_cast<__gm__ kElement *>(b), static_cast<uint64_t>(tiling.Kb) * tiling.N);
    wholeC.SetGlobalBuffer(reinterpret_cast<__gm__ kSum *>(c), static_cast<uint64_t>(tiling.M) * tiling.N);
    multiply.SetTensorA(wholeA[m * tiling.Ka + k], false);
    multiply.SetTensorB(wholeB[kBTransposed ? n * tiling.Kb + k : k * tiling.N + n], kBTransposed);
    multiply.SetTail(lengthOf(m, tiling.M, tiling.singleCoreM), lengthOf(n, tiling.N, tiling.singleCoreN),
                     lengthOf(k, tiling.Ka, tiling.singleCoreK));
    multiply.IterateAll(wholeC[m * tiling.N + n], kAtomic);
    multiply.End();
}
