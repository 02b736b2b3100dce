"""The AMDGCN files of tests/vectors/amdgcn with arguments: what each is given, what the package's instructions predict."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from ptx_cases import words_of

import tensorcore_models as tcm
from tensorcore_models.libraries import Chain

FOLDER = Path(__file__).resolve().parents[1] / "vectors" / "amdgcn"


@dataclass(frozen=True)
class AMDCase:
    """A kernel of C = A B: operands' format, matrix instruction, tile (m, n, k).

    `interleaved` is how many neighbouring values of k a lane takes at a time, where kpack spreads them over two instructions.
    """

    format: str
    instruction: str
    tile: tuple[int, int, int] = (32, 32, 32)
    words: tuple[tuple[int, int], ...] = ()
    promote_every: int | None = None
    masked: bool = False
    interleaved: int = 0

    @property
    def engine(self):
        return tcm.get_instruction("cdna3", self.instruction)

    def operands(self, m, n, k, seed=0):
        """Encodings of A and B."""
        rng = np.random.default_rng(seed)
        fmt = "fp32" if self.words else self.format
        drawn = (rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 3, shape) for shape in ((m, k), (k, n)))
        return tuple(tcm.encode(x, fmt, "rz") for x in drawn)

    def grid(self, m, n):
        return -(-m // self.tile[0]), -(-n // self.tile[1])

    def order(self, k):
        """The values of k in the order in which a chain of the instruction takes them."""
        if not self.interleaved:
            return np.arange(k)
        part, step = self.interleaved, self.engine.k
        groups = step // part  # groups of lanes; each holds 2 parts of every 2 steps
        return np.arange(k).reshape(-1, groups, 2, part).swapaxes(1, 2).reshape(-1)

    def predicted(self, a, b):
        """Encodings of C by the package's instruction."""
        if self.words:
            return self._of_words(a.view(np.float32), b.view(np.float32)).view(np.uint32)
        order = self.order(a.shape[1])
        a, b = np.ascontiguousarray(a[:, order]), np.ascontiguousarray(b[order])
        return self.engine.gemm_bits(a, b, promote_every=self.promote_every)

    def _of_words(self, a, b):
        """Triton 3.9's products of words: each tile of k from zero, the sum of a tile added outside."""
        count = 1 + max(map(max, self.words))
        left, right = words_of(a, self.format, count), words_of(b, self.format, count)
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for start in range(0, a.shape[1], self.tile[2]):
            part, c = slice(start, start + self.tile[2]), np.zeros(total.shape, np.float32)
            for i, j in self.words:
                c = self.engine.gemm(left[i][:, part], right[j][part], c)
            total = total + c
        return total


_X3, _X6 = ((1, 0), (0, 1), (0, 0)), ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))
_FP16, _BF16 = "v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x8_bf16"
_FP8, _XF32 = "v_mfma_f32_32x32x16_fp8_fp8", "v_mfma_f32_32x32x4_xf32"
GEMM = {
    "fp16-masked": AMDCase("fp16", _FP16, masked=True),
    "fp16-kpack2": AMDCase("fp16", _FP16, (64, 64, 32), interleaved=4),
    "fp16-16x16": AMDCase("fp16", "v_mfma_f32_16x16x16_f16"),
    "fp16-128": AMDCase("fp16", _FP16, (128, 128, 32)),
    "bf16-folded": AMDCase("bf16", _BF16),
    "bf16-kept": AMDCase("bf16", _BF16, promote_every=32),
    "bf16x3": AMDCase("bf16", _BF16, words=_X3),
    "bf16x6": AMDCase("bf16", _BF16, words=_X6),
    "fp8": AMDCase("e4m3fnuz", _FP8, (32, 32, 64)),
    "fp8-kpack2": AMDCase("e4m3fnuz", _FP8, (64, 64, 64), interleaved=8),
    "bf8": AMDCase("e5m2fnuz", "v_mfma_f32_32x32x16_bf8_bf8", (32, 32, 64), masked=True),
    "xf32": AMDCase("tf32", _XF32, masked=True),
    "xf32-kpack2": AMDCase("tf32", _XF32, (64, 64, 32), interleaved=2),
    "fp32": AMDCase("fp32", "v_mfma_f32_32x32x2_f32", masked=True),
}


def text(name):
    """The AMDGCN of a file."""
    return (FOLDER / f"{name}.s").read_text()


def recovered_product(a, b):
    """C of the kernel of two FP16 words: three chains of the matrix instruction, joined in FP32."""
    engine = tcm.get_instruction("cdna3", _FP16)
    words = []
    for x in (a, b):
        high = x.astype(np.float16)
        words.append((high, ((x - high.astype(np.float32)) * np.float32(4096)).astype(np.float16)))
    (x0, x1), (y0, y1) = words
    left, right, high = engine.gemm(x1, y0), engine.gemm(x0, y1), engine.gemm(x0, y0)
    return (left + right, high)


def split_k_sum(a, b, parts=3, depth=32):
    """C of the split-k kernel: parts of k in turns of `depth`, added in the order of parts in FP32."""
    engine, total = tcm.get_instruction("cdna3", _FP16), np.zeros((len(a), b.shape[1]), np.float32)
    for part in range(parts):
        pieces = tuple(range(s, min(s + depth, a.shape[1])) for s in range(part * depth, a.shape[1], depth * parts))
        total = total + engine.sum_bits(a, b, Chain(pieces)).view(np.float32)
    return total
