// The tiling of gemm (gemm.cpp) on the host, for one plan of mpgemm. `buffer` holds at least sizeof(TCubeTiling) bytes;
// //@launched
#include "tiling/platform/platform_ascendc.h"
#include "tiling/tiling_api.h"

#include <cstdint>

bool FillTiling(const char *socVersion, uint8_t *buffer)
{
    using namespace matmul_tiling;
    optiling::TCubeTiling tiling;
    auto *platform = platform_ascendc::PlatformAscendCManager::GetInstance(socVersion);
    MultiCoreMatmulTiling tilingApi(*platform);
//@calls
    if (tilingApi.GetTiling(tiling) == -1)
        return false;
    // The plan's values in place of GetTiling's:
//@fields
    tiling.set_isBias(0);
    tiling.SaveToBuffer(buffer, tiling.GetDataSize());
    return true;
}
