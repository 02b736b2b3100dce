"""Lays operands out in memory for kernels of units."""


def tiled(x, tile: int):
    """Return a tensor (batch, rows, places) as [batch][tile of rows][place][row of the tile].

    The rows must fill whole tiles.
    """
    return x.reshape(x.shape[0], -1, tile, x.shape[2]).transpose(2, 3).contiguous()
