"""Names that frameworks and libraries give their ways to multiply FP32 matrices: name, method here, source, whose order.

:func:`mpgemm.recovery.methods.get_method` knows them all, and with it whatever takes a method. Which instructions a library
chains for a call is another question (:mod:`tensorcore_models.libraries`).
"""

from typing import NamedTuple

#: The order of the sums where none is published for the name.
OURS = "the order is this project's, none is published"
#: Names whose TF32 operands cuBLAS rounds: by device where that is known (:mod:`tensorcore_models.formats.tf32_roundings`).
ROUNDED_BY_CUBLAS = ("allow_tf32", "high", "cublas_compute_32f_fast_tf32")


class FrameworkName(NamedTuple):
    """One name."""

    name: str  #: As the framework spells it; case, "-" and "_" do not matter.
    method: str  #: As :func:`mpgemm.get_method` takes it.
    source: str  #: Where the name is defined.
    order: str = OURS  #: Whose order of the sums the method has, with the version.


#: BF16x9 is stated to have the accuracy of FP32 or better. One chain of all products in the core misses it by bits (its sums
#: truncate); adding outside of the core after every 16 products reaches it on the models of A100 and H100.
EMULATED_FP32 = "bf16x9:restart_every=16"
_TORCH = "PyTorch, torch.backends.cuda.matmul and torch.set_float32_matmul_precision"
_TORCH_FP32 = "PyTorch, fp32_precision"
#: CUTLASS publishes a kernel of this name for Blackwell; whether cuBLAS runs the same order inside is not published.
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
    """Return the row of a framework's name, None where it is none."""
    return FRAMEWORK_NAMES.get(name.lower().replace("-", "_"))
