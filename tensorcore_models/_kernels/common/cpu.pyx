"""This module reads the features of the CPU and the compiler for the kernels; tensorcore_models.machine is its public API."""

cdef extern from "cpu.h":
    int mpg_cpu_level() nogil
    int mpg_has_openmp() nogil


def cpu_level():
    """Return the highest instruction-set level of this CPU: 0 baseline, 1 avx2, 2 avx512 (as in cpu.h)."""
    return mpg_cpu_level()


def has_openmp():
    """Return whether the kernels were compiled with OpenMP."""
    return bool(mpg_has_openmp())
