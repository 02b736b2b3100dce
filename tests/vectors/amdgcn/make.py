"""Write the AMDGCN files beside this one: ``python tests/vectors/amdgcn/make.py`` with Triton 3.9.0. No GPU is needed."""

import re
import sys
import warnings
from pathlib import Path

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "ptx"))
import kernels  # noqa: E402  # those of PTX
import recovered  # noqa: E402

GEMM = {"PRECISION": "ieee", "MASK": False, "OUTSIDE": "no", "IMPRECISE": None}
SMALL = (32, 32, 32)
#: File: (kernel, type of the operands, its constants, tile, options of the compiler).
FILES = {
    "fp16-masked": ("gemm", "fp16", {"MASK": True}, SMALL, {}),
    "fp16-kpack2": ("gemm", "fp16", {}, (64, 64, 32), {"kpack": 2}),
    "fp16-16x16": ("gemm", "fp16", {}, SMALL, {"matrix_instr_nonkdim": 16}),
    "fp16-128": ("gemm", "fp16", {}, (128, 128, 32), {}),
    "bf16-folded": ("gemm", "bf16", {"OUTSIDE": "folded"}, SMALL, {}),
    "bf16-kept": ("gemm", "bf16", {"OUTSIDE": "kept"}, SMALL, {}),
    "bf16x3": ("gemm", "fp32", {"PRECISION": "bf16x3"}, SMALL, {}),
    "bf16x6": ("gemm", "fp32", {"PRECISION": "bf16x6"}, SMALL, {}),
    "fp8": ("gemm", "fp8e4b8", {}, (32, 32, 64), {}),
    "fp8-kpack2": ("gemm", "fp8e4b8", {}, (64, 64, 64), {"kpack": 2}),
    "bf8": ("gemm", "fp8e5b16", {"MASK": True}, (32, 32, 64), {}),
    "xf32": ("gemm", "fp32", {"PRECISION": "tf32", "MASK": True}, SMALL, {}),
    "xf32-kpack2": ("gemm", "fp32", {"PRECISION": "tf32"}, (64, 64, 32), {"kpack": 2}),
    "fp32": ("gemm", "fp32", {"MASK": True}, SMALL, {}),
    "recovered": ("recovered", "fp32", {}, SMALL, {}),
    "split-k": ("split_k", "fp16", {"PARTS": 3}, SMALL, {}),
    "normalised": ("normalised", "bf16", {"BLOCK": 256}, (), {}),
}  # fmt: skip


def compiled(kernel: str, kind: str, constants: dict, tile: tuple, options: dict, target: str = "gfx942"):
    """What Triton makes of a kernel."""
    constants = {**(GEMM if kernel == "gemm" else {}), **constants, **dict(zip(("BM", "BN", "BK"), tile, strict=False))}
    pointers, sizes = {"a": f"*{kind}", "b": f"*{kind}", "c": "*fp32"}, dict.fromkeys("mnk", "i32")
    if kernel == "normalised":
        pointers, sizes = {"x": f"*{kind}", "out": "*bf16"}, {"n": "i32", "eps": "fp32"}
    signature = {**pointers, **sizes, **dict.fromkeys(constants, "constexpr")}
    aligned = len(pointers) + (3 if kernel != "normalised" else 0)
    hints = {(i,): [["tt.divisibility", 16]] for i in range(aligned)}
    function = getattr(recovered if kernel == "recovered" else kernels, kernel)
    source = ASTSource(function, signature, constants, hints)
    return triton.compile(
        source, target=GPUTarget("hip", target, 64), options={"num_warps": 4, "num_stages": 2, **options}
    )


def stripped(text: str) -> str:
    """The text without debug information and comments."""
    code, metadata = text.split(".amdgpu_metadata\n", 1)
    kept, inside = [], True
    for line in code.splitlines():
        line = re.sub(r"\s*;.*", "", line).rstrip()
        word = line.strip().split(None, 1)[0] if line.strip() else ""
        if word in (".section", ".text"):
            inside = ".debug" not in line
        if inside and word and not re.match(r"\.(loc|file|cfi_\w+|set|p2align|type|size|globl|Lfunc|Ltmp)\b", word):
            kept.append(line)
    kept += [".amdgpu_metadata", *metadata.split(".end_amdgpu_metadata")[0].splitlines(), ".end_amdgpu_metadata"]
    return "\n".join(kept) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, row in FILES.items():
        made = compiled(*row)
        (HERE / f"{name}.s").write_text(
            f"; Triton {triton.__version__}, make.py: {row}\n" + stripped(made.asm["amdgcn"])
        )
        print(name, made.metadata.shared)
