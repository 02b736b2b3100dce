"""A PTO kernel as somebody may write it: one tile of C, two blocks of k, one buffer in L1 and L0."""

OWN = """
#include <pto/pto-inst.hpp>
using namespace pto;
template <typename T> __global__ AICORE void gemm(__gm__ float *c, __gm__ T *a, __gm__ T *b)
{
    using Left = TileLeft<T, 32, 16>;
    using Right = TileRight<T, 16, 32>;
    using Acc = TileAcc<float, 32, 32>;
    Tile<TileType::Mat, T, 32, 16, BLayout::ColMajor, 32, 16, SLayout::RowMajor> a1;
    Tile<TileType::Mat, T, 16, 32, BLayout::ColMajor, 16, 32, SLayout::RowMajor> b1;
    Left a0;
    Right b0;
    Acc c0;
    TASSIGN(a1, 0); TASSIGN(b1, 4096); TASSIGN(a0, 0); TASSIGN(b0, 0); TASSIGN(c0, 0);
    for (int k = 0; k < 2; ++k) {
        GlobalTensor<T, TileShape2D<T, 32, 16, Layout::ND>, BaseShape2D<T, 32, 32, Layout::ND>> ga(a + 16 * k);
        GlobalTensor<T, TileShape2D<T, 16, 32, Layout::ND>, BaseShape2D<T, 32, 32, Layout::ND>> gb(b + 16 * 32 * k);
        TLOAD(a1, ga);
        TLOAD(b1, gb);
        set_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        wait_flag(PIPE_MTE2, PIPE_MTE1, EVENT_ID0);
        TEXTRACT(a0, a1, 0, 0);
        TEXTRACT(b0, b1, 0, 0);
        set_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        wait_flag(PIPE_MTE1, PIPE_M, EVENT_ID0);
        if (k) {
            pipe_barrier(PIPE_M);
            TMATMUL_ACC(c0, c0, a0, b0);
        } else
            TMATMUL(c0, a0, b0);
        pipe_barrier(PIPE_ALL);
    }
    GlobalTensor<float, TileShape2D<float, 32, 32, Layout::ND>, BaseShape2D<float, 32, 32, Layout::ND>> gc(c);
    TSTORE(gc, c0);
    pipe_barrier(PIPE_ALL);
}
void launch(__gm__ float *c, __gm__ half *a, __gm__ half *b, void *stream) { gemm<half><<<1, nullptr, stream>>>(c, a, b); }
"""
#: Without the barrier that frees the buffers: the numbers are right, and there is a race.
RACING = OWN.replace("        pipe_barrier(PIPE_ALL);\n    }", "    }", 1)
