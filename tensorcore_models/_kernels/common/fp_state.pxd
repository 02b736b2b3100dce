from libc.stdint cimport uint64_t

cdef extern from "fp_state.h" nogil:
    ctypedef uint64_t mpg_fp_state
    mpg_fp_state mpg_fp_enter() noexcept
    void mpg_fp_leave(mpg_fp_state state) noexcept
