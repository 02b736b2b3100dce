"""This module splits float32 arrays into two float16 words (arithmetic in split.h)."""

from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint32_t

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "split.h":
    ctypedef struct mpg_split:
        pass

    mpg_split mpg_split_parameters(int s, int saturate, uint32_t nan_code, int keep_nan) nogil
    void mpg_split_range(const void *x, void *high, void *low, int64_t begin, int64_t end, const mpg_split *p,
                         int isa) nogil

cdef int64_t CHUNK = 1 << 15


def split_fp16(const unsigned char[::1] x, unsigned char[::1] high, unsigned char[::1] low, int scale_exponent,
               bint saturate, int nan_code, bint keep_nan, int isa, int threads):
    """Write the encodings of two float16 words of float32 `x` to `high` and `low`; all arguments are byte views.

    A NaN becomes `nan_code`, with its sign and payload if `keep_nan`.
    """
    cdef int64_t count = x.shape[0] // 4
    if count == 0:
        return
    if high.shape[0] < 2 * count or low.shape[0] < 2 * count:
        raise ValueError(f"the outputs have {high.shape[0]} and {low.shape[0]} bytes, expected at least {2 * count}")
    cdef mpg_split p = mpg_split_parameters(scale_exponent, saturate, <uint32_t>nan_code, keep_nan)
    cdef const void *source = &x[0]
    cdef void *h = &high[0]
    cdef void *w = &low[0]
    cdef int64_t chunk
    cdef int64_t chunks = (count + CHUNK - 1) // CHUNK
    cdef mpg_fp_state state
    with nogil:
        for chunk in prange(chunks, num_threads=threads if chunks > 1 else 1, schedule="static"):
            state = mpg_fp_enter()
            mpg_split_range(source, h, w, chunk * CHUNK, min((chunk + 1) * CHUNK, count), &p, isa)
            mpg_fp_leave(state)
