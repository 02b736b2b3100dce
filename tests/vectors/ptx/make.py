"""Write the PTX files beside this one: ``python tests/vectors/ptx/make.py [NAMES]`` with Triton 3.9.0. No GPU is needed."""

import re
import sys
import warnings
from pathlib import Path

import kernels
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

HERE = Path(__file__).parent
#: File: (kernel, target, type of the operands, its constants).
GEMM = {"PRECISION": "ieee", "MASK": False, "OUTSIDE": "no", "IMPRECISE": None}
FILES = {
    "sm_80-fp16-masked": ("gemm", 80, "fp16", {"MASK": True}, (32, 32, 32)),
    "sm_80-bf16-folded": ("gemm", 80, "bf16", {"OUTSIDE": "folded"}, (32, 32, 32)),
    "sm_80-bf16-kept": ("gemm", 80, "bf16", {"OUTSIDE": "kept"}, (32, 32, 32)),
    "sm_80-tf32": ("gemm", 80, "fp32", {"PRECISION": "tf32", "MASK": True}, (32, 32, 16)),
    "sm_80-tf32x3": ("gemm", 80, "fp32", {"PRECISION": "tf32x3"}, (32, 32, 16)),
    "sm_80-bf16x3": ("gemm", 80, "fp32", {"PRECISION": "bf16x3"}, (32, 32, 16)),
    "sm_80-bf16x6": ("gemm", 80, "fp32", {"PRECISION": "bf16x6"}, (32, 32, 16)),
    "sm_80-fp32": ("gemm", 80, "fp32", {"MASK": True}, (16, 16, 16)),
    "sm_80-split-k": ("split_k", 80, "fp16", {"PARTS": 3}, (32, 32, 32)),
    "sm_80-normalised": ("normalised", 80, "bf16", {"BLOCK": 256}, ()),
    "sm_80-finished": ("finished", 80, "fp16", {"M": 32, "N": 16, "K": 64, "STEP": 32}, ()),
    "sm_90-fp16-masked": ("gemm", 90, "fp16", {"MASK": True}, (64, 32, 32)),
    "sm_90-tf32": ("gemm", 90, "fp32", {"PRECISION": "tf32"}, (64, 16, 32)),
    "sm_90-fp8": ("gemm", 90, "fp8e4nv", {"MASK": True}, (64, 32, 64)),
    "sm_90-fp8-promoted": ("gemm", 90, "fp8e4nv", {"IMPRECISE": 32}, (64, 32, 64)),
    "sm_90-described": ("described", 90, "fp16", {}, (64, 64, 64)),
    "sm_90-attention": ("attention", 90, "fp16", {"COLUMNS": 16, "QUERIES": 16, "KEYS": 16}, ()),
    "sm_100-fp16-masked": ("gemm", 100, "fp16", {"MASK": True}, (64, 32, 32)),
    "sm_100-fp16-128": ("gemm", 100, "fp16", {}, (128, 32, 32)),
    "sm_100-tf32": ("gemm", 100, "fp32", {"PRECISION": "tf32"}, (64, 32, 32)),
    "sm_100-fp8": ("gemm", 100, "fp8e4nv", {"MASK": True}, (64, 32, 64)),
    **{f"sm_{arch}-{name}": ("scaled", arch, kind, constants, ()) for arch in (100, 120) for name, kind, constants in (
        ("mxfp8", "fp8e4nv", {"PACKED": 1, "KIND": "e4m3", "BLOCK": 32, "M": 128, "N": 16, "K": 128}),
        ("mxfp4", "u8", {"PACKED": 2, "KIND": "e2m1", "BLOCK": 32, "M": 128, "N": 16, "K": 128}),
        ("nvfp4", "u8", {"PACKED": 2, "KIND": "e2m1", "BLOCK": 16, "M": 128, "N": 16, "K": 128}))},
}  # fmt: skip


def compiled(kernel: str, capability: int, kind: str, constants: dict, tile: tuple, warps: int = 4, stages: int = 3):
    """What Triton makes of a kernel."""
    constants = {**(GEMM if kernel == "gemm" else {}), **constants, **dict(zip(("BM", "BN", "BK"), tile, strict=False))}
    if kernel == "described":
        boxes = dict(zip("abc", ((tile[0], tile[2]), (tile[1], tile[2]), tile[:2]), strict=True))
        pointers = {name: f"tensordesc<{kind}[{box[0]}, {box[1]}]>" for name, box in boxes.items()}
    else:
        pointers = {"a": f"*{kind}", "b": f"*{kind}", "c": "*fp32"}
    sizes = dict.fromkeys("mnk", "i32")
    if kernel == "normalised":
        pointers, sizes = {"x": f"*{kind}", "out": "*bf16"}, {"n": "i32", "eps": "fp32"}
    elif kernel == "attention":
        pointers, sizes = dict.fromkeys(("q", "k", "v", "out"), f"*{kind}"), {"size": "i32", "scale": "fp32"}
    elif kernel == "finished":
        pointers = {
            **dict.fromkeys("ab", f"*{kind}"),
            **dict.fromkeys(("c", "sa", "sb", "bias"), "*fp32"),
            "out": "*fp16",
        }
        sizes = {}
    elif kernel == "scaled":
        scale = "fp8e4nv" if constants["BLOCK"] == 16 else "u8"
        pointers, sizes = {"a": f"*{kind}", "b": f"*{kind}", "sa": f"*{scale}", "sb": f"*{scale}", "c": "*fp32"}, {}
    signature = {**pointers, **sizes, **dict.fromkeys(constants, "constexpr")}
    aligned = (
        0
        if kernel == "described"
        else len(pointers) + (3 if kernel not in ("normalised", "attention", "scaled", "finished") else 0)
    )
    hints = {(i,): [["tt.divisibility", 16]] for i in range(aligned)}
    source = ASTSource(getattr(kernels, kernel), signature, constants, hints)
    return triton.compile(
        source, target=GPUTarget("cuda", capability, 32), options={"num_warps": warps, "num_stages": stages}
    )


def stripped(ptx: str) -> str:
    """The text without debug information and comments."""
    ptx = ptx[: ptx.index("\t.section")] if "\t.section" in ptx else ptx
    ptx = re.sub(r"//[^\n]*|^\s*\.(?:loc|file)\b[^\n]*", "", ptx, flags=re.M)
    return "\n".join(line.rstrip() for line in ptx.splitlines() if line.strip()) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, row in FILES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        made = compiled(*row)
        (HERE / f"{name}.ptx").write_text(
            f"// Triton {triton.__version__}, make.py: {row}\n" + stripped(made.asm["ptx"])
        )
        print(name, made.metadata.shared)
