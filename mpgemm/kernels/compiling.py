"""Compiles launches of these kernels for a target, without a device."""

from tensorcore_models.gpu.compiling import TargetKernel, compile_function, triton_module
from tensorcore_models.gpu.launches import TritonLaunch
from tensorcore_models.gpu.targets import KernelTarget


def kernel_function(name: str):
    """Return the Triton function that a launch names."""
    triton_module()
    from mpgemm.kernels import source, source_residues, source_words

    return next(getattr(x, name) for x in (source, source_words, source_residues) if hasattr(x, name))


def compile_launch(launch: TritonLaunch, target: KernelTarget, *, aligned: bool = False) -> TargetKernel:
    """Compile the kernel that a launch names for a target, with :func:`tensorcore_models.gpu.compiling.compile_function`."""
    return compile_function(kernel_function(launch.function), launch, target, aligned=aligned)
