// A GEMM on AscendC's high-level Matmul, for one plan of mpgemm. The tiling comes from the host (tiling.cpp),
// which also states the number of launched blocks.
//@mode
#include "kernel_operator.h"
#include "lib/matmul_intf.h"

using namespace AscendC;
using namespace matmul;

namespace
{
//@plan
constexpr MatmulConfig ofPlan()
{
    MatmulConfig config = CFG_MDL;
    config.intrinsicsCheck = kIntrinsicsCheck;
    config.enUnitFlag = kUnitFlag;
    return config;
}
constexpr MatmulConfig kConfig = ofPlan();
using A = MatmulType<TPosition::GM, CubeFormat::ND, kElement, false>;
using B = MatmulType<TPosition::GM, CubeFormat::ND, kElement, kBTransposed>;
using C = MatmulType<TPosition::GM, CubeFormat::ND, kSum>;

__aicore__ inline uint64_t partsOf(uint64_t size, uint64_t part) { return (size + part - 1) / part; }
__aicore__ inline uint64_t lengthOf(uint64_t start, uint64_t size, uint64_t part)
{
    return size - start < part ? size - start : part;
}
//@class
} // namespace

extern "C" __global__ __aicore__ void gemm(GM_ADDR a, GM_ADDR b, GM_ADDR c, //@arguments GM_ADDR workspace, GM_ADDR tilingData)
{
    //@task
    TCubeTiling tiling;
    auto *to = reinterpret_cast<uint32_t *>(&tiling);
    auto *from = reinterpret_cast<__gm__ uint32_t *>(tilingData);
    for (uint32_t i = 0; i < sizeof(TCubeTiling) / sizeof(uint32_t); ++i)
        to[i] = from[i];
    TPipe pipe;
    Matmul<A, B, C, C, kConfig> multiply;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), multiply, &tiling);
    // A cube's rectangle of C has kAlongM x kAlongN parts, one for each counted core.
    constexpr uint64_t kCounted = kAlongM * kAlongN;
    const uint64_t core = GetBlockIdx(), cube = core / kCounted, part = core % kCounted;
    const uint64_t alongM = partsOf(tiling.M, kAlongM * tiling.singleCoreM),
                   alongN = partsOf(tiling.N, kAlongN * tiling.singleCoreN);
    const uint64_t m = (cube % alongM * kAlongM + part % kAlongM) * tiling.singleCoreM;
    const uint64_t n = (cube / alongM % alongN * kAlongN + part / kAlongM) * tiling.singleCoreN;
    const uint64_t k = cube / (alongM * alongN) * tiling.singleCoreK;
    if (m >= tiling.M || n >= tiling.N || k >= tiling.Ka)
        return;
    const uint64_t rows = lengthOf(m, tiling.M, tiling.singleCoreM), columns = lengthOf(n, tiling.N, tiling.singleCoreN);
    GlobalTensor<kElement> wholeA, wholeB;
    wholeA.SetGlobalBuffer(reinterpret_cast<__gm__ kElement *>(a), static_cast<uint64_t>(tiling.M) * tiling.Ka);
    wholeB.SetGlobalBuffer(reinterpret_cast<__gm__ kElement *>(b), static_cast<uint64_t>(tiling.Kb) * tiling.N);
    multiply.SetTensorA(wholeA[m * tiling.Ka + k], false);
    multiply.SetTensorB(wholeB[kBTransposed ? n * tiling.Kb + k : k * tiling.N + n], kBTransposed);
    multiply.SetTail(rows, columns, lengthOf(k, tiling.Ka, tiling.singleCoreK));
//@iterate
    multiply.End();
}
