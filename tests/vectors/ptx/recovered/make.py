"""Write the PTX files beside this one: ``python tests/vectors/ptx/recovered/make.py`` with Triton 3.9.0. No GPU is needed.

Each is one kernel of mpgemm.kernels, compiled as Triton's own launches specialise it for a device: addresses are multiples of
16 bytes, and so are sizes and strides where "sizes" in its first line are. tests/kernels run them without Triton.
"""

import json
import sys
from pathlib import Path

import numpy as np
import triton

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[3]), str(HERE.parent)]
from make import stripped  # noqa: E402

from mpgemm.kernels.compiling import compile_launch  # noqa: E402
from mpgemm.kernels.configurations import Configuration  # noqa: E402
from mpgemm.kernels.forms import kernel_method  # noqa: E402
from mpgemm.kernels.gate import GateCase, near_tile  # noqa: E402
from tensorcore_models.gpu.targets import get_target  # noqa: E402

#: Small tiles by target: wgmma takes 64 rows, tcgen05 128.
_MMA = Configuration(16, 32, 32, 2, 2)
TILES = {
    **dict.fromkeys(("sm_80", "sm_89", "sm_120"), _MMA),
    "sm_90": Configuration(64, 16, 32, 4, 2),
    "sm_100": Configuration(128, 16, 32, 4, 1),
}

#: Methods, targets and sizes: every accumulation and every target, both specialisations, within 300 KB.
RAGGED, EVEN = (1021, 1021, 1021), (1024, 1024, 1024)
FILES = [
    ("ootomo_tf32", "sm_80", RAGGED), ("ootomo", "sm_80", RAGGED), ("ootomo", "sm_90", EVEN), ("sgemm_cube", "sm_89", RAGGED),
    ("markidis", "sm_120", EVEN), ("bf16x3", "sm_80", EVEN), ("bf16xfp32x2", "sm_90", RAGGED), ("bf16xfp32x3", "sm_100", EVEN),
]  # fmt: skip

if __name__ == "__main__":
    for method, name, sizes in FILES:
        row, target = kernel_method(method), get_target(name)
        row = row.with_options(repair="fp32") if (method, name) == ("ootomo", "sm_80") else row
        tile = TILES[name]
        m, n, k = near_tile(tile, sizes)
        zeros = np.zeros((m, k), np.float32), np.zeros((k, n), np.float32), np.zeros((m, n), np.float32)
        for launch in GateCase(row, target, tile, add=True).launches(*zeros)[0]:
            made = compile_launch(launch, target, aligned=True)
            facts = {
                "triton": triton.__version__, "method": method, "target": name, "function": launch.function,
                "configuration": tile.to_dict(), "parameters": made.parameters, "sizes": sizes,
            }  # fmt: skip
            path = HERE / f"{name}-{method}{'' if launch.function == 'gemm' else '-' + launch.function}.ptx"
            path.write_text(f"// {json.dumps(facts)}\n{stripped(made.assembly)}")
            print(path.name, path.stat().st_size)
