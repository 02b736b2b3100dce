"""The PTX files of tests/vectors/ptx with arguments: what each is given, what its recipe predicts."""

from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

import tensorcore_models as tcm

FOLDER = Path(__file__).resolve().parents[1] / "vectors" / "ptx"
FMA = tcm.MatrixEngine(
    tcm.accumulators.SequentialFMA(), a_format="fp32", b_format="fp32", c_format="fp32", d_format="fp32", k=1
)


@dataclass(frozen=True)
class GemmCase:
    """A kernel of C = A B: operands' format, matrix instruction, tile (m, n, k)."""

    format: str
    unit: str
    instruction: str
    tile: tuple[int, int, int]
    words: tuple[tuple[int, int], ...] = ()
    promote_every: int | None = None
    masked: bool = False

    @property
    def engine(self):
        return FMA if self.instruction == "fma" else tcm.get_instruction(self.unit, self.instruction)

    def operands(self, m, n, k, seed=0):
        """Encodings of A and B."""
        rng = np.random.default_rng(seed)
        fmt = "fp32" if self.words else self.format
        drawn = (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape) for shape in ((m, k), (k, n)))
        return tuple(tcm.encode(x, fmt, "rz") for x in drawn)

    def grid(self, m, n):
        return -(-m // self.tile[0]), -(-n // self.tile[1])

    def predicted(self, a, b):
        """Encodings of C by the package's instruction."""
        if not self.words:
            return self.engine.gemm_bits(a, b, promote_every=self.promote_every)
        return recovered(a.view(np.float32), b.view(np.float32), self).view(np.uint32)


def words_of(x, fmt, count):
    """The values as sums of words: tf32's first rounded half away, what is left as it is; bf16's to nearest."""
    found = []
    for _ in range(count - 1):
        found.append(tcm.round_to(x, fmt, "rna" if fmt == "tf32" else "rne").astype(np.float32))
        x = x - found[-1]
    return [*found, x if fmt == "tf32" else tcm.round_to(x, fmt).astype(np.float32)]


def recovered(a, b, case):
    """Triton 3.9's products of words: each tile of k from zero, NaN before the last product made 0, the sum added outside."""
    count = 1 + max(map(max, case.words))
    left, right = words_of(a, case.format, count), words_of(b, case.format, count)
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for start in range(0, a.shape[1], case.tile[2]):
        part = slice(start, start + case.tile[2])
        c = np.zeros(total.shape, np.float32)
        for i, j in case.words:
            if (i, j) == (0, 0):
                c = np.where(np.isnan(c), np.float32(0), c)
            c = case.engine.gemm(left[i][:, part], right[j][part], c, input_rounding="rz")
        total = total + c
    return total


_X3, _X6 = ((1, 0), (0, 1), (0, 0)), ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))
_AMPERE = {
    "fp16": "mma.m16n8k16.f32.f16.f16.f32",
    "bf16": "mma.m16n8k16.f32.bf16.bf16.f32",
    "tf32": "mma.m16n8k8.f32.tf32.tf32.f32",
}
_HOPPER = {
    "fp16": "wgmma.m64n8k16.f32.f16.f16",
    "tf32": "wgmma.m64n8k8.f32.tf32.tf32",
    "e4m3fn": "wgmma.m64n8k32.f32.e4m3.e4m3",
}
_BLACKWELL = {f: "tcgen05.mma" + name[5:] for f, name in _HOPPER.items()}
GEMM = {
    "sm_80-fp16-masked": GemmCase("fp16", "ampere", _AMPERE["fp16"], (32, 32, 32), masked=True),
    "sm_80-bf16-folded": GemmCase("bf16", "ampere", _AMPERE["bf16"], (32, 32, 32)),
    "sm_80-bf16-kept": GemmCase("bf16", "ampere", _AMPERE["bf16"], (32, 32, 32), promote_every=32),
    "sm_80-tf32": GemmCase("tf32", "ampere", _AMPERE["tf32"], (32, 32, 16), masked=True),
    "sm_80-tf32x3": GemmCase("tf32", "ampere", _AMPERE["tf32"], (32, 32, 16), words=_X3),
    "sm_80-bf16x3": GemmCase("bf16", "ampere", _AMPERE["bf16"], (32, 32, 16), words=_X3),
    "sm_80-bf16x6": GemmCase("bf16", "ampere", _AMPERE["bf16"], (32, 32, 16), words=_X6),
    "sm_80-fp32": GemmCase("fp32", "ampere", "fma", (16, 16, 16), masked=True),
    "sm_90-fp16-masked": GemmCase("fp16", "hopper", _HOPPER["fp16"], (64, 32, 32), masked=True),
    "sm_90-tf32": GemmCase("tf32", "hopper", _HOPPER["tf32"], (64, 16, 32)),
    "sm_90-fp8": GemmCase("e4m3fn", "hopper", _HOPPER["e4m3fn"], (64, 32, 64), masked=True),
    "sm_90-fp8-promoted": GemmCase("e4m3fn", "hopper", _HOPPER["e4m3fn"], (64, 32, 64), promote_every=32),
    "sm_100-fp16-masked": GemmCase("fp16", "blackwell", _BLACKWELL["fp16"], (64, 32, 32), masked=True),
    "sm_100-fp16-128": GemmCase("fp16", "blackwell", _BLACKWELL["fp16"], (128, 32, 32)),
    "sm_100-tf32": GemmCase("tf32", "blackwell", _BLACKWELL["tf32"], (64, 32, 32)),
    "sm_100-fp8": GemmCase("e4m3fn", "blackwell", _BLACKWELL["e4m3fn"], (64, 32, 64), masked=True),
}


def text(name):
    """The PTX of a file."""
    return (FOLDER / f"{name}.ptx").read_text()


def split_k_sum(a, b, parts=3, depth=32):
    """C of the split-k kernel: parts of k in turns of `depth`, added in the order of parts in FP32."""
    engine, total = tcm.get_instruction("ampere", _AMPERE["fp16"]), np.zeros((len(a), b.shape[1]), np.float32)
    for part in range(parts):
        at = [
            j
            for start in range(part * depth, a.shape[1], depth * parts)
            for j in range(start, min(start + depth, a.shape[1]))
        ]
        total = total + engine.gemm_bits(np.ascontiguousarray(a[:, at]), np.ascontiguousarray(b[at])).view(np.float32)
    return total


def rows_to_normalise(rows=2, n=200):
    """bf16 rows for the normalising kernel."""
    return np.random.default_rng(3).standard_normal((rows, n)).astype(ml_dtypes.bfloat16)
