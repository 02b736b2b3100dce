"""This module prepares addends for the lanes, and marks those that the lanes cannot take (addends.h)."""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "addends.h":
    ctypedef struct mpg_addend_range:
        uint32_t least, beyond
        float scale
        uint32_t tiny

    void mpg_addends(const mpg_addend_range *range, float *values, uint8_t *marks, int64_t count, int *found, int level) nogil
    int mpg_any_marks(const uint8_t *marks, int64_t count) nogil

# Number of bytes that a thread copies at a time.
cdef int64_t COPIED = 1 << 16


cdef int _row(const mpg_addend_range *taken, float *values, uint8_t *marks, int64_t count, int level) noexcept nogil:
    cdef int found = 0
    cdef mpg_fp_state state = mpg_fp_enter()
    mpg_addends(taken, values, marks, count, &found, level)
    mpg_fp_leave(state)
    return found


def prepare(float[:, ::1] values, uint8_t[:, ::1] marks, uint32_t least, uint32_t beyond, float scale, uint32_t tiny, int level,
            int threads):
    """Scale FP32 addends (m, n) in place for the lanes, and mark those that the lanes cannot take, which become 0.

    Parameters
    ----------
    values, marks : memoryview
        Addends, and output for their marks, both (m, n): 1 if an addend is not taken, 2 if it is too small, else 0.
    least, beyond : int
        Range of the bits without sign of addends that are taken, from `least` to below `beyond`; zeros are always taken.
    scale : float
        Power of two by which addends are multiplied.
    tiny : int
        Bits without sign below which scaled addends other than zero are too small; with 1, no addend is too small.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.

    Returns
    -------
    int
        OR of all marks.
    """
    cdef int64_t i, rows = values.shape[0], columns = values.shape[1]
    cdef int found = 0
    cdef mpg_addend_range taken
    if marks.shape[0] != rows or marks.shape[1] != columns:
        raise ValueError(f"marks have shape {marks.shape[0], marks.shape[1]}, expected the shape {rows, columns} of the addends")
    if rows == 0 or columns == 0:
        return 0
    taken.least, taken.beyond, taken.scale, taken.tiny = least, beyond, scale, tiny
    with nogil:
        for i in prange(rows, num_threads=threads, schedule="static"):
            found |= _row(&taken, &values[i, 0], &marks[i, 0], columns, level)
    return found


def any_marks(const uint8_t[::1] rows, const uint8_t[::1] columns, const uint8_t[:, ::1] elements):
    """Return whether any row, column or element of a result (m, n) is marked."""
    cdef int64_t m = elements.shape[0], n = elements.shape[1]
    if m == 0 or n == 0:
        return False
    return bool(mpg_any_marks(&rows[0], rows.shape[0]) or mpg_any_marks(&columns[0], columns.shape[0])
                or mpg_any_marks(&elements[0, 0], m * n))


def copy(const uint8_t[::1] source, uint8_t[::1] to, int threads):
    """Copy all bytes of `source` to the beginning of `to`."""
    cdef int64_t i, size = source.shape[0], pieces = (size + COPIED - 1) // COPIED
    if to.shape[0] < size:
        raise ValueError(f"the target has {to.shape[0]} bytes, expected at least {size}")
    with nogil:
        for i in prange(pieces, num_threads=threads, schedule="static"):
            memcpy(&to[i * COPIED], &source[i * COPIED], <size_t>min(COPIED, size - i * COPIED))
