"""Launches of this room's kernels compiled for a target, without a device."""

from tensorcore_models.gpu.compiling import TargetKernel, compile_function, triton_module
from tensorcore_models.gpu.launches import TritonLaunch
from tensorcore_models.gpu.targets import KernelTarget


def kernel_function(name: str):
    """Return the Triton function of a launch."""
    triton_module()
    from mpgemm.kernels import source, source_residues, source_words

    return next(getattr(x, name) for x in (source, source_words, source_residues) if hasattr(x, name))


def compile_launch(launch: TritonLaunch, target: KernelTarget, *, aligned: bool = False) -> TargetKernel:
    """Return a launch compiled for a target: as :func:`tensorcore_models.gpu.compiling.compile_function`, its kernel found by
    name."""
    return compile_function(kernel_function(launch.function), launch, target, aligned=aligned)
