"""Fast fused dot-add: whole matrices and batches of small ones (narrow.h has the arithmetic, docs/kernels.md the contract).

Operands are flat arrays of encodings with element strides, so that transposed problems need no copies; `d` is the running
result as float32 and is updated in place.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "narrow_items.h":
    enum: MPG_SKIP
    ctypedef struct mpg_operand:
        int size, fraction_bits, padding_bits, bias, sign_shift, sign_mask, fnuz, emin, zero_exponent
        uint32_t magnitude_mask, max_magnitude

    ctypedef struct mpg_source:
        const void *data
        int64_t outer, inner
        const int32_t *order
        const uint8_t *scales
        int64_t scale_outer, scale_inner
        int block_size

    ctypedef struct mpg_narrow_task:
        int terms, fraction_bits, output
        uint32_t keep
        int wide_sum, chain, raw_exponent

    void mpg_narrow_pack_b(const mpg_source *s, const mpg_operand *f, int64_t first, int count, int width, int64_t begin,
                           int64_t end, float *values, uint8_t *exponents, uint8_t *special, int level) nogil
    void mpg_narrow_pack_a(const mpg_source *s, const mpg_operand *f, int64_t row, int64_t begin, int64_t end,
                           int plain_order, float *values, uint32_t *exponents, uint8_t *special, int level) nogil
    void mpg_narrow_tile(const mpg_narrow_task *t, const float *av, const uint32_t *ae, int64_t length, int64_t rows,
                         const float *bv, const uint8_t *be, int width, int count, float *d, uint8_t *redo, int64_t ldd,
                         int level) nogil
    ctypedef struct mpg_narrow_items:
        mpg_narrow_task task
        mpg_operand a, b
        const int32_t *order
        int64_t length
        int plain_order
        int64_t m, n, k
        const void *a_codes
        const void *b_codes
        const void *c_codes
        void *d_codes
        int c_size, d_size
        uint8_t *marks
        int level
    int mpg_narrow_run_items(const mpg_narrow_items *job, int64_t first, int64_t last) nogil
    int64_t mpg_panels(int64_t n) nogil
    int mpg_panel_width(int64_t n, int64_t panel) nogil
    int mpg_panel_count(int64_t n, int64_t panel) nogil
    int64_t mpg_panel_start(int64_t n, int64_t panel) nogil
    int64_t mpg_padded_columns(int64_t n) nogil

cdef extern from "wide_avx512.h":
    enum: MPG_WIDE

    ctypedef struct mpg_wide_task:
        int terms, fraction_bits, floor, output, raw_exponent, positive_zero, round_down, dot_bits, c_bits, c_cutoff, overflow, promote

    void mpg_wide_pack_b(const mpg_source *s, const mpg_operand *f, int64_t first, int count, int64_t begin, int64_t end,
                         double *values, int16_t *exponents, int16_t *lowest, uint8_t *special, int level) nogil
    void mpg_wide_pack_a(const mpg_source *s, const mpg_operand *f, int64_t row, int64_t begin, int64_t end,
                         int plain_order, double *values, uint32_t *exponents, uint32_t *lowest, uint8_t *special,
                         int level) nogil
    void mpg_wide_tile(const mpg_wide_task *t, const double *av, const uint32_t *ae, const uint32_t *al, int64_t length,
                       int64_t rows, const double *bv, const int16_t *be, const int16_t *bl, int count, float *d,
                       uint8_t *redo, int64_t ldd, int level) nogil

# Rows of A that one task takes: their packed part of one block of k stays in the second-level cache.
cdef int64_t ROWS = 64
# Multiply-adds between two looks at pending signals.
cdef double SLICE = 4e9

SKIP = MPG_SKIP


cdef mpg_operand _operand(fmt):
    """Row of tensorcore_models.kernels.Operand as the kernels take it."""
    cdef mpg_operand f
    f.size = fmt.size
    f.fraction_bits = fmt.fraction_bits
    f.padding_bits = fmt.padding_bits
    f.bias = fmt.bias
    f.sign_shift = fmt.sign_shift
    f.sign_mask = fmt.sign_mask
    f.fnuz = fmt.fnuz
    f.emin = fmt.emin
    f.zero_exponent = fmt.zero_exponent
    f.magnitude_mask = fmt.magnitude_mask
    f.max_magnitude = fmt.max_magnitude
    return f


cdef mpg_narrow_task _narrow_task(task):
    """Row of tensorcore_models.kernels.narrow.NarrowTask as the kernels take it."""
    cdef mpg_narrow_task t
    t.terms = task.terms
    t.fraction_bits = task.fraction_bits
    t.output = task.output
    t.keep = task.keep
    t.wide_sum = task.wide_sum
    t.chain = task.chain
    t.raw_exponent = task.raw_exponent
    return t


cdef void _check(Py_ssize_t have, int64_t need, what) except *:
    if have < need:
        raise ValueError(f"{what} has {have} bytes, {need} are needed")


def narrow_workspace_bytes(int64_t m, int64_t n, int64_t length):
    """Bytes of workspace that `narrow` needs for a slice of `length` positions of k."""
    return (m * 8 + mpg_padded_columns(n) * 5) * length + 256


def narrow(const uint8_t[::1] a, int64_t a_outer, int64_t a_inner, a_format,
           const uint8_t[::1] b, int64_t b_outer, int64_t b_inner, b_format,
           const int32_t[::1] order, bint plain_order, float[:, ::1] d, uint8_t[:, ::1] redo,
           uint8_t[::1] row_special, uint8_t[::1] column_special, uint8_t[::1] workspace, int64_t length,
           task, int level, int threads):
    """Update d (m, n) by all of k; mark elements, rows and columns that need the generic kernel.

    `order` gives the position in k of each padded position; `length` of them, a multiple of one chained group, are packed at
    a time. Row i of A has its element k at a[i * a_outer + k * a_inner], B the same with columns.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], total = order.shape[0]
    cdef mpg_operand fa = _operand(a_format), fb = _operand(b_format)
    cdef mpg_narrow_task t = _narrow_task(task)
    if m == 0 or n == 0 or total == 0:
        return
    _check(workspace.shape[0], narrow_workspace_bytes(m, n, length), "the workspace")
    cdef mpg_source sa, sb
    sa.data = &a[0]
    sa.outer = a_outer
    sa.inner = a_inner
    sa.order = &order[0]
    sa.scales = NULL
    sb.scales = NULL
    sb.data = &b[0]
    sb.outer = b_outer
    sb.inner = b_inner
    sb.order = &order[0]
    cdef int64_t padded = mpg_padded_columns(n)
    cdef uintptr_t start = (<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63
    cdef float *bv = <float *>start
    cdef float *av = bv + padded * length
    cdef uint32_t *ae = <uint32_t *>(av + m * length)
    cdef uint8_t *be = <uint8_t *>(ae + m * length)
    cdef float *out = &d[0, 0]
    cdef uint8_t *mark = &redo[0, 0]
    cdef uint8_t *rows_marked = &row_special[0]
    cdef uint8_t *columns_marked = &column_special[0]
    cdef int64_t panels = mpg_panels(n), blocks = (m + ROWS - 1) // ROWS, tasks = panels * blocks
    cdef int64_t begin, end, part, i, p, r, first, last, at_once
    cdef int64_t pack_tasks = blocks + panels
    for begin in range(0, total, length):
        end = min(begin + length, total)
        part = end - begin
        at_once = max(threads, <int64_t>(SLICE / (<double>ROWS * 64 * part)))
        with nogil:
            for i in prange(pack_tasks, num_threads=threads, schedule="dynamic"):
                if i < blocks:
                    for r in range(i * ROWS, min((i + 1) * ROWS, m)):
                        mpg_narrow_pack_a(&sa, &fa, r, begin, end, plain_order, av + r * part, ae + r * part, rows_marked,
                                          level)
                else:
                    p = i - blocks
                    mpg_narrow_pack_b(&sb, &fb, mpg_panel_start(n, p), mpg_panel_count(n, p), mpg_panel_width(n, p), begin,
                                      end, bv + mpg_panel_start(n, p) * part, be + mpg_panel_start(n, p) * part,
                                      columns_marked, level)
        for first in range(0, tasks, at_once):
            last = min(first + at_once, tasks)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    p = i % panels
                    r = i // panels * ROWS
                    mpg_narrow_tile(&t, av + r * part, ae + r * part, part, min(ROWS, m - r),
                                    bv + mpg_panel_start(n, p) * part, be + mpg_panel_start(n, p) * part,
                                    mpg_panel_width(n, p), mpg_panel_count(n, p), out + r * n + mpg_panel_start(n, p),
                                    mark + r * n + mpg_panel_start(n, p), n, level)
            PyErr_CheckSignals()


def wide_workspace_bytes(int64_t m, int64_t n, int64_t length):
    """Bytes of workspace that `wide` needs for a slice of `length` positions of k."""
    return (m * 16 + (n + MPG_WIDE - 1) // MPG_WIDE * MPG_WIDE * 12) * length + 256


def wide(const uint8_t[::1] a, int64_t a_outer, int64_t a_inner, a_format,
         const uint8_t[::1] b, int64_t b_outer, int64_t b_inner, b_format,
         const int32_t[::1] order, bint plain_order, float[:, ::1] d, uint8_t[:, ::1] redo,
         uint8_t[::1] row_special, uint8_t[::1] column_special, uint8_t[::1] workspace, int64_t length,
         task, int level, int threads, const uint8_t[::1] a_scales=None, int64_t a_scale_outer=0, int64_t a_scale_inner=0,
         const uint8_t[::1] b_scales=None, int64_t b_scale_outer=0, int64_t b_scale_inner=0, int block_size=1):
    """As `narrow`, for operands of any exponent with or without ue8m0 block scales (wide.h)."""
    cdef int64_t m = d.shape[0], n = d.shape[1], total = order.shape[0]
    cdef mpg_operand fa = _operand(a_format), fb = _operand(b_format)
    cdef mpg_wide_task t
    t.terms = task.terms
    t.fraction_bits = task.fraction_bits
    t.floor = task.floor
    t.output = task.output
    t.raw_exponent = task.raw_exponent
    t.positive_zero = task.positive_zero
    t.round_down = task.round_down
    t.dot_bits = task.dot_bits
    t.c_bits = task.c_bits
    t.c_cutoff = task.c_cutoff
    t.overflow = task.overflow
    t.promote = task.promote
    if m == 0 or n == 0 or total == 0:
        return
    _check(workspace.shape[0], wide_workspace_bytes(m, n, length), "the workspace")
    cdef mpg_source sa, sb
    sa.data = &a[0]
    sa.outer = a_outer
    sa.inner = a_inner
    sa.order = &order[0]
    sa.scales = NULL
    if a_scales is not None:
        sa.scales = &a_scales[0]
    sa.scale_outer = a_scale_outer
    sa.scale_inner = a_scale_inner
    sa.block_size = block_size
    sb.data = &b[0]
    sb.outer = b_outer
    sb.inner = b_inner
    sb.order = &order[0]
    sb.scales = NULL
    if b_scales is not None:
        sb.scales = &b_scales[0]
    sb.scale_outer = b_scale_outer
    sb.scale_inner = b_scale_inner
    sb.block_size = block_size
    cdef int64_t panels = (n + MPG_WIDE - 1) // MPG_WIDE, blocks = (m + ROWS - 1) // ROWS, tasks = panels * blocks
    cdef uintptr_t start = (<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63
    cdef double *bv = <double *>start
    cdef int16_t *be = <int16_t *>(bv + panels * MPG_WIDE * length)
    cdef int16_t *bl = be + panels * MPG_WIDE * length
    cdef double *av = <double *>(bl + panels * MPG_WIDE * length)
    cdef uint32_t *ae = <uint32_t *>(av + m * length)
    cdef uint32_t *al = ae + m * length
    cdef float *out = &d[0, 0]
    cdef uint8_t *mark = &redo[0, 0]
    cdef uint8_t *rows_marked = &row_special[0]
    cdef uint8_t *columns_marked = &column_special[0]
    cdef int64_t begin, end, part, i, p, r, first, last, at_once, pack_tasks = blocks + panels
    for begin in range(0, total, length):
        end = min(begin + length, total)
        part = end - begin
        at_once = max(threads, <int64_t>(SLICE / (<double>ROWS * MPG_WIDE * part)))
        with nogil:
            for i in prange(pack_tasks, num_threads=threads, schedule="dynamic"):
                if i < blocks:
                    for r in range(i * ROWS, min((i + 1) * ROWS, m)):
                        mpg_wide_pack_a(&sa, &fa, r, begin, end, plain_order, av + r * part, ae + r * part, al + r * part,
                                        rows_marked, level)
                else:
                    p = i - blocks
                    mpg_wide_pack_b(&sb, &fb, p * MPG_WIDE, <int>min(<int64_t>MPG_WIDE, n - p * MPG_WIDE), begin, end,
                                    bv + p * MPG_WIDE * part, be + p * MPG_WIDE * part, bl + p * MPG_WIDE * part,
                                    columns_marked, level)
        for first in range(0, tasks, at_once):
            last = min(first + at_once, tasks)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    p = i % panels
                    r = i // panels * ROWS
                    mpg_wide_tile(&t, av + r * part, ae + r * part, al + r * part, part, min(ROWS, m - r),
                                  bv + p * MPG_WIDE * part, be + p * MPG_WIDE * part, bl + p * MPG_WIDE * part,
                                  <int>min(<int64_t>MPG_WIDE, n - p * MPG_WIDE), out + r * n + p * MPG_WIDE,
                                  mark + r * n + p * MPG_WIDE, n, level)
            PyErr_CheckSignals()


cdef class NarrowItems:
    """Many small products of one accumulator and one k, all of k at once (narrow_items.h).

    Parameters
    ----------
    a_format, b_format : tensorcore_models.kernels.common.Operand
    order : ndarray of int32
        Position in k of each padded position, -1 for padding; `plain_order` where that is 0, 1, 2, ...
    k : int
    task : tensorcore_models.kernels.narrow.NarrowTask
    c_size, d_size : int
        Bytes of an encoding of the addend and of the result: 2 (fp16) or 4 (fp32).
    """

    cdef mpg_narrow_items job
    cdef const int32_t[::1] order

    def __cinit__(self, a_format, b_format, const int32_t[::1] order, bint plain_order, int64_t k, task, int c_size, int d_size):
        memset(&self.job, 0, sizeof(mpg_narrow_items))
        self.order = order
        self.job.task = _narrow_task(task)
        self.job.a = _operand(a_format)
        self.job.b = _operand(b_format)
        self.job.order = &order[0]
        self.job.length = order.shape[0]
        self.job.plain_order = plain_order
        self.job.k = k
        self.job.c_size = c_size
        self.job.d_size = d_size

    def run(self, a, b, c, d, marks, int64_t m, int64_t n, int level, int threads):
        """d = a b + c on contiguous encodings (count, m, k), (count, k, n), (count, m, n); marks: uint8 (count,).

        Returns
        -------
        int
            How many products are marked: they need the generic kernel.
        """
        cdef Py_buffer views[5]
        cdef mpg_narrow_items job = self.job
        cdef int64_t count = len(marks), each, tasks, i, first, last, failed = 0, marked = 0
        cdef int64_t sizes[5]
        sizes[:] = [m * job.k * job.a.size, job.k * n * job.b.size, m * n * job.c_size, m * n * job.d_size, 1]
        if m < 1 or n < 1 or count < 1:
            return 0
        memset(views, 0, sizeof(views))
        try:
            for i, array in enumerate((a, b, c, d, marks)):
                PyObject_GetBuffer(array, &views[i], PyBUF_C_CONTIGUOUS | (PyBUF_WRITABLE if i > 2 else 0))
                if views[i].len != sizes[i] * count:
                    raise ValueError(f"array {i} has {views[i].len} bytes, expected {sizes[i] * count}")
            job.m = m
            job.n = n
            job.a_codes = views[0].buf
            job.b_codes = views[1].buf
            job.c_codes = views[2].buf
            job.d_codes = views[3].buf
            job.marks = <uint8_t *>views[4].buf
            job.level = level
            each = 2 * max(<int64_t>1, 500000 // (m * n * job.length))
            tasks = (count + each - 1) // each
            for first in range(0, tasks, 1024):
                last = min(first + 1024, tasks)
                with nogil:
                    if threads == 1 or tasks == 1:
                        for i in range(first, last):
                            failed |= not mpg_narrow_run_items(&job, i * each, min((i + 1) * each, count))
                    else:
                        for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                            failed |= not mpg_narrow_run_items(&job, i * each, min((i + 1) * each, count))
                if failed:
                    raise MemoryError("no memory for the operands of one small product")
                if last < tasks:
                    PyErr_CheckSignals()
            for i in range(count):
                marked += job.marks[i]
            return marked
        finally:
            for i in range(5):
                PyBuffer_Release(&views[i])


cdef extern from "ieee_lanes.h":
    enum: MPG_IEEE_LANES
    void mpg_ieee_pack(const float *b, int64_t n, int count, int64_t k, float *panel) nogil
    void mpg_ieee_rows(int group, int flush, const float *a, const float *panel, float *d, int64_t ldd, int64_t rows, int count,
                       int64_t k, int level) nogil


def ieee(const float[:, ::1] a, const float[:, ::1] b, float[:, ::1] d, int group, bint flush, int level, int threads):
    """Update d (m, n) by a (m, k) and b (k, n): pairwise sums over `group` products (ieee_lanes.h)."""
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1]
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n or group not in (2, 4) or k % group:
        raise ValueError(f"shapes ({a.shape[0]}, {k}), ({b.shape[0]}, {b.shape[1]}), ({m}, {n}) do not fit groups of {group}")
    if m == 0 or n == 0 or k == 0:
        return
    cdef int64_t panels = (n + MPG_IEEE_LANES - 1) // MPG_IEEE_LANES, blocks = (m + ROWS - 1) // ROWS
    cdef int64_t tasks = panels * blocks, i, p, r, first, last
    cdef int64_t at_once = max(threads, <int64_t>(SLICE / (<double>ROWS * MPG_IEEE_LANES * k)))
    cdef float *packed = <float *>malloc(panels * MPG_IEEE_LANES * k * sizeof(float))
    if packed == NULL:
        raise MemoryError(f"no memory to pack {k} x {n} numbers")
    try:
        with nogil:
            for p in prange(panels, num_threads=threads, schedule="static"):
                mpg_ieee_pack(&b[0, p * MPG_IEEE_LANES], n, <int>min(<int64_t>MPG_IEEE_LANES, n - p * MPG_IEEE_LANES), k,
                              packed + p * MPG_IEEE_LANES * k)
        for first in range(0, tasks, at_once):
            last = min(first + at_once, tasks)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    p = i // blocks * MPG_IEEE_LANES
                    r = i % blocks * ROWS
                    mpg_ieee_rows(group, flush, &a[r, 0], packed + p * k, &d[r, p], n, min(ROWS, m - r),
                                  <int>min(<int64_t>MPG_IEEE_LANES, n - p), k, level)
            PyErr_CheckSignals()
    finally:
        free(packed)
