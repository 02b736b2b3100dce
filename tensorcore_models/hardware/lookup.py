"""This module finds hardware engines by name, and imports an engine's module only when the engine is used."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..cpu_units import CpuEngine
    from ..cpu_units.qemu import QemuEngine
    from .cuda.device import Device
    from .cuda.engines import CudaEngine
    from .libraries.engines import CupyMatmulEngine, TorchMatmulEngine

#: Prefixes of the names of hardware engines.
PREFIXES = ("cuda", "torch", "cupy", "npu", "cpu", "cpu-emulated")
#: Forms of names, for messages.
NAMES = (
    "cuda:INSTRUCTION or cuda:ARCH:INSTRUCTION, torch:FORMAT[.RESULT][@DEVICE], cupy:FORMAT, npu:FORMAT "
    "(FORMAT: fp16, bf16, tf32, fp32, fp64, e4m3fn, e5m2), cpu:INSTRUCTION or cpu-emulated:INSTRUCTION"
)


def engine(
    name: str, device: "Device | None" = None
) -> "CudaEngine | TorchMatmulEngine | CupyMatmulEngine | CpuEngine | QemuEngine":
    """Return a hardware engine by its name.

    Parameters
    ----------
    name : str
        Name of the engine:

        - ``"cuda:mma.m16n8k16.f32.f16.f16.f32"``: an instruction of this machine's GPU
        - ``"torch:fp16"``: ``torch.matmul`` of float16 on the GPU; ``"torch:e4m3fn.fp32"`` also names the format of the
          result, ``"torch:fp16@cpu"`` also names the device
        - ``"cupy:fp16"``: cuBLAS through cupy
        - ``"npu:fp16"``: ``torch.matmul`` on an Ascend NPU through torch_npu
        - ``"cpu:vdpbf16ps"``, ``"cpu:tdpbf16ps"``, ``"cpu:bfmmla"``: an instruction of this CPU, by its short or full name
        - ``"cpu-emulated:tdpbf16ps"``: an emulation of the instruction with the same bits
    device : Device, optional
        GPU for the ``cuda:`` engines.

    Raises
    ------
    ValueError
        If the name has another form, or the instruction is unknown.
    OSError, RuntimeError
        If the GPU, CPU feature or package that the engine needs is missing.
    """
    kind, separator, rest = name.partition(":")
    if kind == "cuda" and rest:
        from .cuda.engines import cuda_engine

        return cuda_engine(rest, device)
    if kind in ("cpu", "cpu-emulated") and rest:
        from ..cpu_units import cpu_engine

        return cpu_engine(rest, kind == "cpu-emulated")
    formats, _, place = rest.partition("@")
    a_format, _, d_format = formats.partition(".")
    if separator and a_format and kind in ("torch", "npu"):
        from .libraries.engines import TorchMatmulEngine

        return TorchMatmulEngine(a_format, d_format or None, device=place or ("npu" if kind == "npu" else "cuda"))
    if separator and a_format and kind == "cupy" and not (d_format or place):
        from .libraries.engines import CupyMatmulEngine

        return CupyMatmulEngine(a_format)
    raise ValueError(f"{name!r} does not name a hardware engine, expected {NAMES}")
