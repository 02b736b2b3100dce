"""A product for processes that start anew: they import this module by its name, which they cannot do with one of tests."""

import numpy as np

import tensorcore_models as tcm

ENGINE = "hopper:mma.m16n8k16.f32.f16.f16.f32"


def product(seed: int) -> tuple[int, bytes]:
    """Threads that the kernels use, and the bits of a product large enough for several."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((96, 64)).astype(np.float16), rng.standard_normal((64, 96)).astype(np.float16)
    return tcm.get_num_threads(), tcm.get_instruction(ENGINE).gemm(a, b).tobytes()
