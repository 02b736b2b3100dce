"""This module runs this CPU's matrix instructions one step at a time, or their emulations (cpu_units.h)."""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t, uint32_t

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "cpu_units.h" nogil:
    enum: MPG_UNITS, MPG_UNIT_READY

    ctypedef struct mpg_unit_shape:
        int m, n, k, size

    const mpg_unit_shape mpg_unit_shapes[]
    int mpg_unit_state(int unit)
    int mpg_unit_is_emulated(int unit)
    void mpg_units_row(int unit, int emulated, const char *a, const char *b, uint32_t *d, int64_t rows, int64_t columns,
                       int64_t depth, int64_t i)

#: Names of the instructions in the order of cpu_units.h.
NAMES = ("vdpbf16ps", "tdpbf16ps", "tdpfp16ps", "tdpbssd", "tdpbsud", "tdpbusd", "tdpbuud", "bfmmla")
#: Meaning of the results of :func:`state`.
STATES = (
    "ready", "this build has no code for it", "the CPU lacks it", "the operating system or hypervisor does not enable it",
    "the operating system refused the permission to use it",
)  # fmt: skip

# Number of multiply-adds between two checks for pending signals.
cdef double SLICE = 4e8


def state(int unit):
    """Return 0 if an instruction can be used, else the index in STATES of the reason; requests the tile registers."""
    _check(unit)
    return mpg_unit_state(unit)


def is_emulated(int unit):
    """Return whether an instruction has a plain-C emulation."""
    _check(unit)
    return bool(mpg_unit_is_emulated(unit))


def shape(int unit):
    """Return (m, n, k, bytes of an operand's element) of an instruction."""
    _check(unit)
    cdef mpg_unit_shape s = mpg_unit_shapes[unit]
    return s.m, s.n, s.k, s.size


def _check(unit):
    if not 0 <= unit < MPG_UNITS:
        raise ValueError(f"instruction index is {unit}, expected 0 to {MPG_UNITS - 1}")


def run(int unit, bint emulated, const uint8_t[::1] a, const uint8_t[::1] b, uint32_t[:, :, ::1] d, int64_t k, int threads):
    """Compute d = a b + d in place for a batch: d (batch, m, n), a and b bytes of (batch, m, k) and (batch, k, n), any sizes.

    k is chained in steps of the instruction; rows, columns and the last step are padded with zeros.

    Raises
    ------
    ValueError
        If sizes do not fit, or the instruction has no emulation.
    RuntimeError
        If this machine cannot run the instruction.
    """
    _check(unit)
    cdef int64_t batch = d.shape[0], m = d.shape[1], n = d.shape[2], size = mpg_unit_shapes[unit].size
    cdef int64_t high = mpg_unit_shapes[unit].m
    if a.shape[0] != batch * m * k * size or b.shape[0] != batch * k * n * size:
        raise ValueError(f"a and b have {a.shape[0]} and {b.shape[0]} bytes, expected the sizes of {batch} products of {m} x {k} x {n}")
    if emulated and not mpg_unit_is_emulated(unit):
        raise ValueError(f"{NAMES[unit]} has no emulation: run the instruction on a CPU that has it")
    if not emulated and mpg_unit_state(unit) != MPG_UNIT_READY:
        raise RuntimeError(f"{NAMES[unit]} cannot run: {STATES[mpg_unit_state(unit)]}")
    if batch == 0 or m == 0 or n == 0 or k == 0:
        return
    cdef int64_t strips = (m + high - 1) // high, tasks = batch * strips, first = 0, last, i
    cdef int64_t at_once = max(threads, <int64_t>(SLICE / max(1.0, <double>high * n * k)))
    cdef mpg_fp_state state
    while first < tasks:
        last = min(tasks, first + at_once)
        with nogil:
            for i in prange(first, last, num_threads=threads, schedule="static"):
                state = mpg_fp_enter()
                mpg_units_row(unit, emulated, <const char *>&a[i // strips * m * k * size],
                              <const char *>&b[i // strips * k * n * size], &d[i // strips, 0, 0], m, n, k, i % strips * high)
                mpg_fp_leave(state)
        first = last
        PyErr_CheckSignals()
