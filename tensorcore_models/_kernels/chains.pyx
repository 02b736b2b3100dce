"""Chains of fused multiply-adds in float32 or in double (chains.h has the arithmetic and the layout, docs/kernels.md the contract).

`d` is the running result and is updated in place.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t

cdef extern from "chains.h":
    enum: MPG_CHAIN_DEPTH, MPG_CHAIN_TILE, MPG_CHAIN_R

    ctypedef struct mpg_chain_job:
        const char *a
        const char *b
        char *d
        int64_t m, n, groups, panels, depth, every, lanes
        int flush
        int64_t pass_ "pass"

    int mpg_has_chains(int level, int flush)
    int mpg_chain_width(int size, int level) nogil
    void mpg_chain_pack_a(const char *source, int64_t row, int64_t groups, int64_t depth, int64_t pass_, int size,
                          char *packed) nogil
    void mpg_chain_pack_b(const char *source, int64_t columns, int64_t k, int64_t pass_, int size, int64_t panels, int width,
                          char *packed) nogil
    void mpg_chain_tile(const mpg_chain_job *job, int64_t group0, int64_t group1, int64_t panel0, int64_t panel1, int size,
                        int level) nogil
    void mpg_chain_finish(char *d, int64_t count, int size, uint64_t nan) nogil

#: Products between two additions outside, at most.
LONGEST = MPG_CHAIN_DEPTH

# Multiply-adds between two looks at pending signals.
cdef double SLICE = 4e9

ctypedef fused real:
    float
    double


def available(int level, bint flush=False):
    """Whether the CPUs of that level have fused multiply-adds that this build uses, with subnormals flushed as x86 does if asked."""
    return bool(mpg_has_chains(level, flush))


def workspace_bytes(int64_t m, int64_t n, int64_t length, int size, int every, int level):
    """Bytes of workspace that `chains` needs for a slice of `length` products of k, elements of `size` bytes."""
    cdef int64_t width = mpg_chain_width(size, level), passes = (length + _pass(every) - 1) // _pass(every)
    cdef int64_t rows = (m + MPG_CHAIN_R - 1) // MPG_CHAIN_R * MPG_CHAIN_R, columns = (n + width - 1) // width * width
    return (rows + columns) * passes * MPG_CHAIN_DEPTH * size + 64


cdef int64_t _pass(int every) noexcept nogil:
    """Products of a pass: as many whole chains as fit."""
    return MPG_CHAIN_DEPTH // every * every if every else MPG_CHAIN_DEPTH


def chains(const real[:, ::1] a, const real[:, ::1] b, real[:, ::1] d, uint8_t[::1] workspace, int64_t length, int every,
           int lanes, bint flush, uint64_t nan, int level, int threads):
    """Update d (m, n) by a (m, k) and b (k, n), `length` products of k at a time.

    One chain for each element, or, with `every`, chains of so many products from zero, added to d one after the other; `length` and k
    are then multiples of it. With `lanes` too, operations of `every` products that lie lane after lane; the last one may have fewer.
    `flush`: as x86 does under FTZ and DAZ. NaNs get the encoding `nan`.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1]
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n:
        raise ValueError(f"shapes ({a.shape[0]}, {k}), ({b.shape[0]}, {b.shape[1]}) and ({m}, {n}) do not fit")
    if not mpg_has_chains(level, flush):
        raise ValueError(f"no kernel for chains at level {level}")
    if lanes < 0 or (lanes and not every):
        raise ValueError(f"{lanes} lanes of operations of {every} products")
    if every < 0 or every > MPG_CHAIN_DEPTH or length < 1 or (every and ((k % every and not lanes) or length % every)):
        raise ValueError(f"chains of {every} products and slices of {length} do not fit {k} products")
    if workspace.shape[0] < workspace_bytes(m, n, min(k, length), sizeof(real), every, level):
        raise ValueError(f"the workspace has {workspace.shape[0]} bytes, too few for slices of {length}")
    if m == 0 or n == 0 or k == 0:
        return
    cdef int size = sizeof(real), width = mpg_chain_width(sizeof(real), level)
    cdef mpg_chain_job job
    cdef int64_t begin, i, first, last, at_once, down, across, high = MPG_CHAIN_TILE // MPG_CHAIN_R
    cdef int64_t wide = max(MPG_CHAIN_TILE // width, 1), tasks
    cdef char *packed_b = <char *>((<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63)
    cdef char *packed_a
    job.m, job.n, job.every, job.pass_, job.lanes, job.flush = m, n, every, _pass(every), lanes, flush
    job.groups = (m + MPG_CHAIN_R - 1) // MPG_CHAIN_R
    job.panels = (n + width - 1) // width
    job.d = <char *>&d[0, 0]
    while threads > 1 and high > 2 and _tasks(&job, high, wide) < 3 * threads:
        if wide > 1:
            wide = wide // 2
        else:
            high = high // 2
    across = (job.panels + wide - 1) // wide
    tasks = _tasks(&job, high, wide)
    for begin in range(0, k, length):
        job.depth = min(length, k - begin)
        packed_a = packed_b + (job.depth + job.pass_ - 1) // job.pass_ * MPG_CHAIN_DEPTH * job.panels * width * size
        job.a, job.b = packed_a, packed_b
        with nogil:
            for i in prange(job.groups * MPG_CHAIN_R, num_threads=threads, schedule="static"):
                mpg_chain_pack_a(<const char *>&a[i, begin] if i < m else NULL, i, job.groups, job.depth, job.pass_, size, packed_a)
            for i in prange(job.depth, num_threads=threads, schedule="static"):
                mpg_chain_pack_b(<const char *>&b[begin + i, 0], n, i, job.pass_, size, job.panels, width, packed_b)
        at_once = max(threads, <int64_t>(SLICE / (<double>MPG_CHAIN_TILE * MPG_CHAIN_TILE * job.depth)))
        for first in range(0, tasks, at_once):
            last = min(first + at_once, tasks)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    mpg_chain_tile(&job, i // across * high, min((i // across + 1) * high, job.groups), i % across * wide,
                                   min((i % across + 1) * wide, job.panels), size, level)
            PyErr_CheckSignals()
    with nogil:
        for i in prange(m, num_threads=threads, schedule="static"):
            mpg_chain_finish(<char *>&d[i, 0], n, size, nan)


cdef int64_t _tasks(const mpg_chain_job *job, int64_t high, int64_t wide) noexcept nogil:
    return (job.groups + high - 1) // high * ((job.panels + wide - 1) // wide)
