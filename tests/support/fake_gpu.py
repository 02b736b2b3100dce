"""A software model in the place of a GPU: runs launches exactly as the generated kernels address memory."""

from collections.abc import Callable

import numpy as np

from tensorcore_models.engines.instruction import Instruction
from tensorcore_models.hardware.cuda.device import Launch


class FakeGpu:
    """A device whose tensor cores are a model.

    Parameters
    ----------
    arch : str
        Architecture.
    model_of : callable
        Gives the model that an instruction runs, itself by default.
    """

    name = "model in place of a GPU"
    driver = "none"

    def __init__(self, arch: str = "hopper", model_of: Callable[[Instruction], Instruction] = lambda row: row):
        self.arch, self.model_of, self.launches = arch, model_of, 0

    def run(self, launch: Launch) -> np.ndarray:
        self.launches += 1
        row, g = launch.row, launch.geometry
        model = self.model_of(row)
        tiles = np.arange(g["tiles"])
        tm, tn = tiles // g["tiles_n"], tiles % g["tiles_n"]

        def gather(x, start, rows, row_stride, cols):
            index = start[:, None, None] + np.arange(rows)[:, None] * row_stride + np.arange(cols)
            return x.ravel()[index]

        c_index = tm * g["c_tile_m"] + tn * g["c_tile_n"]
        total = gather(launch.c, c_index, row.m, g["ldc"], row.n)
        for step in range(g["steps"]):
            a = gather(launch.a, tm * g["a_tile"] + step * row.k, row.m, g["lda"], row.k)
            b_start = tm * g["b_tile_m"] + tn * g["b_tile_n"] + step * row.k * g["ldb"]
            b = gather(launch.b, b_start, row.k, g["ldb"], row.n)
            scales = []
            if launch.scale_a is not None:
                blocks = row.k // row.block_size
                scales.append(gather(launch.scale_a, tm * g["sa_tile"] + step * blocks, row.m, g["lds_a"], blocks))
                start = tm * g["sb_tile_m"] + tn * g["sb_tile_n"] + step * blocks * g["lds_b"]
                scales.append(gather(launch.scale_b, start, blocks, g["lds_b"], row.n))
            total = model.mma_bits(a, b, total, *scales)
        d = np.zeros(launch.d_shape, row.formats[3].container)
        index = c_index[:, None, None] + np.arange(row.m)[:, None] * g["ldc"] + np.arange(row.n)
        d.ravel()[index] = total
        return d
