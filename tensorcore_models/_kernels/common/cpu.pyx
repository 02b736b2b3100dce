"""Reads the features of the CPU and the compiler for the kernels; tensorcore_models.machine is the public face."""

cdef extern from "cpu.h":
    int mpg_cpu_level() nogil
    int mpg_has_openmp() nogil


def cpu_level():
    """Highest instruction-set level of this CPU: 0 baseline, 1 avx2, 2 avx512 (the numbers of cpu.h)."""
    return mpg_cpu_level()


def has_openmp():
    """Whether the kernels were compiled with OpenMP."""
    return bool(mpg_has_openmp())
