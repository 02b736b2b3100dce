"""A text of inline PTX, applied to words by a kernel that Triton compiles, on the machine of PTX."""

import numpy as np
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

from tensorcore_models import compiled

BLOCK = 128


@triton.jit
def _apply(x, y, TEXT: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.inline_asm_elementwise(TEXT, "=f,f", [tl.load(x + at)], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y + at, found)


def apply(text: str, words: np.ndarray) -> np.ndarray:
    """The results of a text with one operand, on a Hopper GPU that is none."""
    kinds = {"x": "*fp32", "y": "*fp32", "TEXT": "constexpr", "BLOCK": "constexpr"}
    source = triton.compiler.ASTSource(_apply, signature=kinds, constexprs={(2,): text, (3,): BLOCK})
    made = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"enable_fp_fusion": False})
    padded = np.zeros(-(-words.size // BLOCK) * BLOCK, np.uint32)
    padded[: words.size] = words
    out = np.zeros_like(padded)
    compiled.read(made.asm["ptx"]).run([padded, out], grid=(padded.size // BLOCK,))
    return out[: words.size]
