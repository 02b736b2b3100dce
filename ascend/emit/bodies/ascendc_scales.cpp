
// C = half(float(sum) * scale of its row * scale of its column) on a vector core, in strips of kStripRows rows of a tile.
class Scales
{
  public:
    GlobalTensor<int32_t> sums;

    __aicore__ inline void Init(TPipe &pipe, GM_ADDR c, GM_ADDR rowScales, GM_ADDR columnScales, GM_ADDR workspace,
                                const TCubeTiling &tiling)
    {
        stride = tiling.N;
        const uint64_t elements = static_cast<uint64_t>(tiling.M) * tiling.N;
        sums.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t *>(workspace), elements);
        result.SetGlobalBuffer(reinterpret_cast<__gm__ half *>(c), elements);
        ofRows.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(rowScales), tiling.M);
        ofColumns.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(columnScales), tiling.N);
        pipe.InitBuffer(scaleQueue, 1, kBaseN * sizeof(float));
        pipe.InitBuffer(sumQueue, 2, kStripRows * kBaseN * sizeof(int32_t));
        pipe.InitBuffer(scaled, kStripRows * kBaseN * sizeof(float));
        pipe.InitBuffer(resultQueue, 2, kStripRows * kBaseN * sizeof(half));
    }

    __aicore__ inline void Tile(uint64_t row, uint64_t column, uint32_t rows, uint32_t columns)
    {
        LocalTensor<float> loaded = scaleQueue.AllocTensor<float>();
        DataCopyPad(loaded, ofColumns[column], DataCopyExtParams(1, columns * sizeof(float), 0, 0, 0),
                    DataCopyPadExtParams<float>(false, 0, 0, 0));
        scaleQueue.EnQue(loaded);
        LocalTensor<float> across = scaleQueue.DeQue<float>();
        for (uint32_t first = 0; first < rows; first += kStripRows)
            Strip(row + first, column, rows - first < kStripRows ? rows - first : kStripRows, columns, across);
        scaleQueue.FreeTensor(across);
    }

  private:
    // Number of lines of 32 bytes in UB between the end of a row and the next one, which begins kBaseN elements later.
    __aicore__ static inline uint32_t gap(uint32_t columns, uint32_t size)
    {
        return kBaseN * size / 32 - (columns * size + 31) / 32;
    }

    __aicore__ inline void Strip(uint64_t row, uint64_t column, uint32_t rows, uint32_t columns, LocalTensor<float> &across)
    {
        const uint64_t place = row * stride + column;
        const uint32_t between = static_cast<uint32_t>(stride) - columns;
        LocalTensor<int32_t> arriving = sumQueue.AllocTensor<int32_t>();
        DataCopyPad(
            arriving, sums[place],
            DataCopyExtParams(rows, columns * sizeof(int32_t), between * sizeof(int32_t), gap(columns, sizeof(int32_t)), 0),
            DataCopyPadExtParams<int32_t>(false, 0, 0, 0));
        sumQueue.EnQue(arriving);
        LocalTensor<int32_t> there = sumQueue.DeQue<int32_t>();
        LocalTensor<float> x = scaled.Get<float>();
        Cast(x, there, RoundMode::CAST_RINT, rows * kBaseN);
        PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < rows; ++i)
            Muls(x[i * kBaseN], x[i * kBaseN], ofRows.GetValue(row + i), kBaseN);
        PipeBarrier<PIPE_V>();
        for (uint32_t i = 0; i < rows; ++i)
            Mul(x[i * kBaseN], x[i * kBaseN], across, kBaseN);
        PipeBarrier<PIPE_V>();
        LocalTensor<half> leaving = resultQueue.AllocTensor<half>();
        Cast(leaving, x, RoundMode::CAST_RINT, rows * kBaseN);
        sumQueue.FreeTensor(there);
        resultQueue.EnQue(leaving);
        LocalTensor<half> done = resultQueue.DeQue<half>();
        DataCopyPad(result[place], done,
                    DataCopyExtParams(rows, columns * sizeof(half), gap(columns, sizeof(half)), between * sizeof(half), 0));
        resultQueue.FreeTensor(done);
    }

    uint64_t stride;
    GlobalTensor<half> result;
    GlobalTensor<float> ofRows, ofColumns;
    TQue<QuePosition::VECIN, 1> scaleQueue;
    TQue<QuePosition::VECIN, 2> sumQueue;
    TQue<QuePosition::VECOUT, 2> resultQueue;
    TBuf<QuePosition::VECCALC> scaled;
};
