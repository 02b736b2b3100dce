// Sums go to the workspace tile by tile, in the order of iterateOrder; the vector core scales a tile as soon as it has arrived.
Scales scales;
scales.Init(pipe, c, rowScales, columnScales, GetUserWorkspace(workspace), tiling);
const uint64_t tilesM = partsOf(rows, tiling.baseM), tilesN = partsOf(columns, tiling.baseN);
for (uint64_t tile = 0; multiply.template Iterate<true>(); ++tile) {
    multiply.template GetTensorC<true>(scales.sums[m * tiling.N + n], 0, false);
    const uint64_t x = (tiling.iterateOrder == 0 ? tile % tilesM : tile / tilesN) * tiling.baseM;
    const uint64_t y = (tiling.iterateOrder == 0 ? tile / tilesM : tile % tilesN) * tiling.baseN;
    scales.Tile(m + x, n + y, lengthOf(x, rows, tiling.baseM), lengthOf(y, columns, tiling.baseN));
}
