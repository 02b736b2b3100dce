"""Lists names that frameworks and libraries give their ways to multiply FP32 matrices, with method, source and order.

:func:`mpgemm.recovery.methods.get_method`, and so every function that takes a method, accepts these names. They do not say
which instructions a library chains for a call; :mod:`tensorcore_models.libraries` does.
"""

from typing import NamedTuple

#: Text for names without a published order of sums.
OURS = "this project chose the order, because none is published"
#: Names whose TF32 operands cuBLAS rounds, with a known rounding on some devices
#: (:mod:`tensorcore_models.formats.tf32_roundings`).
ROUNDED_BY_CUBLAS = ("allow_tf32", "high", "cublas_compute_32f_fast_tf32")


class FrameworkName(NamedTuple):
    """`FrameworkName` is a framework's name of a way to multiply, with the method that it stands for."""

    name: str  #: Name in the framework's spelling; case, "-" and "_" do not matter.
    method: str  #: Method with options, as :func:`mpgemm.get_method` takes it.
    source: str  #: Library and interface that define the name.
    order: str = OURS  #: Source of the order of sums, with its version.


#: BF16x9 is stated to be at least as accurate as FP32. One chain of all products in the core is some bits less accurate,
#: because its sums truncate; adding outside of the core after every 16 products reaches FP32 on the models of A100 and H100.
EMULATED_FP32 = "bf16x9:restart_every=16"
_TORCH = "PyTorch, torch.backends.cuda.matmul and torch.set_float32_matmul_precision"
_TORCH_FP32 = "PyTorch, fp32_precision"
#: CUTLASS publishes a kernel of this name for Blackwell; whether cuBLAS sums in the same order is not published.
_BF16X9 = "BF16x9 as CUTLASS publishes it (commit 0d2b201e); the order inside of cuBLAS is not public"
#: CUTLASS's multistage main loop, read at commit 56e011a3.
_STAGED = "staged accumulation as CUTLASS publishes it (commit 56e011a3), its main loop of 16 of k"
_CUBLAS = "cuBLAS, cublasComputeType_t"
_JAX = "JAX, jax.lax.DotAlgorithmPreset"
_MKL = "oneMKL, MKL_BLAS_COMPUTE_MODE"

FRAMEWORK_NAMES: dict[str, FrameworkName] = {
    row.name.lower().replace("-", "_"): row
    for row in (
        FrameworkName("allow_tf32", "tf32", _TORCH),
        FrameworkName("highest", "fp32", _TORCH),
        FrameworkName("high", "tf32", f"{_TORCH}: TF32 where the GPU has it"),
        FrameworkName("medium", "bf16", _TORCH),
        FrameworkName("CUBLAS_COMPUTE_32F", "fp32", _CUBLAS),
        FrameworkName("CUBLAS_COMPUTE_32F_FAST_16F", "fp16", _CUBLAS),
        FrameworkName("CUBLAS_COMPUTE_32F_FAST_16BF", "bf16", _CUBLAS),
        FrameworkName("CUBLAS_COMPUTE_32F_FAST_TF32", "tf32", _CUBLAS),
        FrameworkName("CUBLAS_COMPUTE_32F_EMULATED_16BFX9", "cutlass_bf16x9", _CUBLAS, _BF16X9),
        FrameworkName("ieee", "fp32", _TORCH_FP32),
        FrameworkName("bfx9", "cutlass_bf16x9", _TORCH_FP32, _BF16X9),
        FrameworkName("3xTF32", "cutlass_3xtf32", "CUTLASS, OpMultiplyAddFastF32", _STAGED),
        FrameworkName("F32_F32_F32", "fp32", _JAX),
        FrameworkName("BF16_BF16_F32", "bf16", _JAX),
        FrameworkName("BF16_BF16_F32_X3", "bf16x3", _JAX),
        FrameworkName("BF16_BF16_F32_X6", "bf16x6", _JAX),
        FrameworkName("BF16_BF16_F32_X9", EMULATED_FP32, _JAX),
        FrameworkName("TF32_TF32_F32", "tf32", _JAX),
        FrameworkName("TF32_TF32_F32_X3", "tf32x3", _JAX),
        FrameworkName("FLOAT_TO_BF16", "bf16", _MKL),
        FrameworkName("FLOAT_TO_BF16X2", "bf16x3", f"{_MKL}: two words"),
        FrameworkName("FLOAT_TO_BF16X3", "bf16x6", f"{_MKL}: three words"),
        FrameworkName("FLOAT_TO_TF32", "tf32", _MKL),
    )
}


def framework_name(name: str) -> FrameworkName | None:
    """Return the row of a framework's name, None for other names."""
    return FRAMEWORK_NAMES.get(name.lower().replace("-", "_"))
