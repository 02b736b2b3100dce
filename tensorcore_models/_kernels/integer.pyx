"""Fast integer dot products into int32 (integer.h has the arithmetic, docs/kernels.md the contract).

Operands are flat arrays of one-byte encodings with element strides; `d` is the running result and is updated in place.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t

cdef extern from "integer_items.h":
    enum: MPG_INTEGER_LANES

    ctypedef struct mpg_integer_task:
        int terms, clamp

    ctypedef struct mpg_integer_source:
        const uint8_t *data
        int64_t outer, inner, k
        int keep, flip

    void mpg_integer_pack_b(const mpg_integer_source *s, int64_t first, int count, int64_t begin, int64_t end, void *values,
                            int level) nogil
    void mpg_integer_pack_a(const mpg_integer_source *s, int64_t row, int64_t begin, int64_t end, void *values,
                            int level) nogil
    void mpg_integer_tile(const mpg_integer_task *t, const void *av, int64_t length, int64_t rows, const void *bv, int count,
                          int32_t *d, int64_t ldd, int level) nogil

    ctypedef struct mpg_integer_items:
        mpg_integer_task task
        mpg_integer_source a, b
        int64_t rows, columns, length, a_item, b_item, row_step, column_step
        int32_t *d
        int level

    int mpg_integer_run_items(const mpg_integer_items *job, int64_t first, int64_t last) nogil

# Rows of A that one task takes, multiply-adds between two looks at pending signals.
cdef int64_t ROWS = 64
cdef double SLICE = 4e9


def workspace_bytes(int64_t m, int64_t n, int64_t length):
    """Bytes of workspace that `integer` needs for a slice of `length` products of k."""
    return (m + (n + MPG_INTEGER_LANES - 1) // MPG_INTEGER_LANES * MPG_INTEGER_LANES) * 4 * length + 256


cdef mpg_integer_source _source(const uint8_t[::1] data, int64_t outer, int64_t inner, operand, int64_t k) except *:
    cdef mpg_integer_source s
    s.data = &data[0]
    s.outer = outer
    s.inner = inner
    s.k = k
    s.keep = operand.keep
    s.flip = operand.flip
    return s


def integer(const uint8_t[::1] a, int64_t a_outer, int64_t a_inner, a_format,
            const uint8_t[::1] b, int64_t b_outer, int64_t b_inner, b_format, int64_t k, int32_t[:, ::1] d,
            uint8_t[::1] workspace, int64_t length, int terms, bint clamp, int level, int threads):
    """Update d (m, n) by all of k, in operations of `terms` products.

    `length` products, a multiple of `terms` (which is even) or all of k rounded up to an even number, are packed at a time. Row i
    of A has its element k at a[i * a_outer + k * a_inner], B the same with columns.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], total = k + k % 2
    cdef mpg_integer_task t
    t.terms = terms
    t.clamp = clamp
    if m == 0 or n == 0 or k == 0:
        return
    if terms < 2 or terms % 2 or length < 2 or (length < total and length % terms):
        raise ValueError(f"operations of {terms} products and slices of {length} do not fit {k} products")
    if workspace.shape[0] < workspace_bytes(m, n, length):
        raise ValueError(f"the workspace has {workspace.shape[0]} bytes, {workspace_bytes(m, n, length)} are needed")
    cdef mpg_integer_source sa = _source(a, a_outer, a_inner, a_format, k), sb = _source(b, b_outer, b_inner, b_format, k)
    cdef int64_t panels = (n + MPG_INTEGER_LANES - 1) // MPG_INTEGER_LANES, blocks = (m + ROWS - 1) // ROWS
    cdef int64_t tasks = panels * blocks, size = 2 if level == 2 else 4
    cdef uint8_t *bv = <uint8_t *>((<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63)
    cdef uint8_t *av = bv + panels * MPG_INTEGER_LANES * length * size
    cdef int32_t *out = &d[0, 0]
    cdef int64_t begin, end, part, i, p, r, first, last, at_once
    for begin in range(0, total, length):
        end = min(begin + length, total)
        part = end - begin
        at_once = max(threads, <int64_t>(SLICE / (<double>ROWS * MPG_INTEGER_LANES * part)))
        with nogil:
            for i in prange(blocks + panels, num_threads=threads, schedule="dynamic"):
                if i < blocks:
                    for r in range(i * ROWS, min((i + 1) * ROWS, m)):
                        mpg_integer_pack_a(&sa, r, begin, end, av + r * part * size, level)
                else:
                    p = (i - blocks) * MPG_INTEGER_LANES
                    mpg_integer_pack_b(&sb, p, <int>min(<int64_t>MPG_INTEGER_LANES, n - p), begin, end, bv + p * part * size,
                                       level)
        for first in range(0, tasks, at_once):
            last = min(first + at_once, tasks)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    p = i // blocks * MPG_INTEGER_LANES
                    r = i % blocks * ROWS
                    mpg_integer_tile(&t, av + r * part * size, part, min(ROWS, m - r), bv + p * part * size,
                                     <int>min(<int64_t>MPG_INTEGER_LANES, n - p), out + r * n + p, n, level)
            PyErr_CheckSignals()


def integer_batch(const uint8_t[::1] a, int64_t a_outer, int64_t a_inner, a_format,
                  const uint8_t[::1] b, int64_t b_outer, int64_t b_inner, b_format, int64_t k, int32_t[:, :, ::1] d, bint swapped,
                  int terms, bint clamp, int level, int threads):
    """Update d (batch, m, n) by contiguous batches of operands.

    The strides are those of one product, as in `integer`; where `swapped`, a and b have changed places and lanes run over m.
    """
    cdef int64_t count = d.shape[0], i, first, last, failed = 0
    cdef mpg_integer_items job
    if d.shape[1] == 0 or d.shape[2] == 0 or k == 0 or count == 0:
        return
    if terms < 2 or terms % 2:
        raise ValueError(f"operations of {terms} products: their number must be even")
    job.task.terms = terms
    job.task.clamp = clamp
    job.a = _source(a, a_outer, a_inner, a_format, k)
    job.b = _source(b, b_outer, b_inner, b_format, k)
    job.rows = d.shape[2] if swapped else d.shape[1]
    job.columns = d.shape[1] if swapped else d.shape[2]
    job.length = k + k % 2
    job.a_item = job.rows * k
    job.b_item = job.columns * k
    job.row_step = 1 if swapped else d.shape[2]
    job.column_step = d.shape[2] if swapped else 1
    job.d = &d[0, 0, 0]
    job.level = level
    cdef int64_t each = max(<int64_t>1, <int64_t>(1000000 // (job.rows * job.columns * k))), tasks = (count + each - 1) // each
    for first in range(0, tasks, 1024):
        last = min(first + 1024, tasks)
        with nogil:
            for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                if not mpg_integer_run_items(&job, i * each, min((i + 1) * each, count)):
                    failed |= 1
        if failed:
            raise MemoryError("no memory for the operands of one small product")
        PyErr_CheckSignals()
