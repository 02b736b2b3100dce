"""This module finds the instruction and order of k that reproduce a library's product."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...catalogue import list_instructions
from ...engines.instruction import Instruction
from ...formats import get_format
from ...formats.rounding import encode
from ...formats.sums import scale_rounded
from .engines import CupyMatmulEngine, TorchMatmulEngine

#: Orders of k that kernels use: one chain, split-k, and interleaved chains.
K_ORDERS = ("sequential", "split_k:2", "split_k:4", "split_k:8", "sliced_k:2", "sliced_k:4")
#: Shapes (m, n, k) to compare.
SHAPES = ((64, 64, 64), (128, 128, 512), (256, 256, 2048), (64, 128, 4096), (16, 64, 8192), (1, 128, 4096))


def candidates(arch: str, fmt: str) -> list[Instruction]:
    """Return the instructions that a library may chain for a format: one for each arithmetic with equal c and d formats."""
    found: dict[Any, Instruction] = {}
    for row in list_instructions(arch):
        same = row.a_format == row.b_format == fmt and row.c_format == row.d_format and row.scale_format is None
        if same and row.path != "wmma":
            found.setdefault((row.accumulator, row.d_format), row)
    return list(found.values())


def reproduce(
    library: TorchMatmulEngine | CupyMatmulEngine,
    models: Iterable[Instruction],
    shape: tuple[int, int, int],
    seed: int = 0,
    deadline: float = float("inf"),
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """Run one product of standard normal operands on the library, and on the models in every order of k.

    Wider results of a model are rounded to the library's format at the end. No candidate is tried after the time `deadline` of
    `clock`. In the result, ``reproduced`` lists candidates with every bit equal, ``agreement`` holds the share of equal
    elements of each candidate, and ``complete`` says whether all candidates were tried.
    """
    m, n, k = shape
    rng = np.random.default_rng(seed)
    a, b = (encode(rng.standard_normal(s), library.a_format, "rne", saturate=True) for s in ((m, k), (k, n)))
    d = library.gemm_bits(a, b)
    agreement: dict[str, float] = {}
    complete = True
    for model in models:
        for order in K_ORDERS:
            if clock() > deadline:
                complete = False
                break
            wide = model.gemm_bits(a, b, k_order=order)
            result = scale_rounded(wide, 1.0, get_format(model.d_format), get_format(library.d_format))
            agreement[f"{model.name}, {order}"] = float((result == d).mean())
    return {
        "shape": list(shape),
        "reproduced": [name for name, part in agreement.items() if part == 1],
        "agreement": agreement,
        "complete": complete,
    }
