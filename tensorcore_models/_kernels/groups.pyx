"""Fast exact group sums with block scales (groups.h has the arithmetic, docs/kernels.md the contract).

Operands are flat arrays of one-byte encodings with element strides; `d` is the running result as float32 and is updated in place.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int16_t, int8_t, int64_t, uint8_t, uint32_t, uintptr_t

cdef extern from "groups_items.h":
    enum: MPG_GROUP_LANES
    enum: MPG_GROUPS_MAX
    enum: MPG_SKIP

    ctypedef struct mpg_group_task:
        int group, groups, fraction_bits, floor, subnormal_c, zero_c, skip_zero, positive_zero, offset

    ctypedef struct mpg_group_source:
        const uint8_t *data
        const uint8_t *scales
        int64_t outer, inner, scale_outer, scale_inner, k, given
        int block_size, nibbles
        const int8_t *values
        const double *scale_values
        const int16_t *scale_exponents
        const uint8_t *scale_special

    int mpg_group_special(const mpg_group_source *s, int64_t outer) nogil
    void mpg_group_pack_b(const mpg_group_task *t, const mpg_group_source *s, int64_t first, int count, int64_t begin,
                          int64_t end, void *values, int16_t *start, double *scales, int16_t *exponents, int level) nogil
    void mpg_group_pack_a(const mpg_group_task *t, const mpg_group_source *s, int64_t row, int64_t begin, int64_t end,
                          void *values, double *scales, uint32_t *exponents, int level) nogil
    void mpg_group_tile(const mpg_group_task *t, const uint8_t *av, const double *as_, const uint32_t *ae, int64_t length,
                        int64_t rows, const uint8_t *bv, const int16_t *start, const double *bs, const int16_t *be, int count,
                        float *d, uint8_t *redo, int64_t ldd, int level) nogil

    ctypedef struct mpg_group_items:
        mpg_group_task task
        mpg_group_source a, b
        int64_t rows, columns, groups, a_item, b_item, a_scales, b_scales, row_step, column_step
        float *d
        uint8_t *marks
        int level

    int mpg_group_run_items(const mpg_group_items *job, int64_t first, int64_t last) nogil

# Rows of A that one task takes, multiply-adds between two looks at pending signals.
cdef int64_t ROWS = 64
cdef double SLICE = 4e9

#: Group sums of one operation that the lanes hold; exponent of a scale that takes no part.
MAX_GROUPS = MPG_GROUPS_MAX
SKIP = MPG_SKIP


cdef mpg_group_task _task(task) except *:
    """GroupTask of tensorcore_models.kernels.groups as the kernels take it."""
    cdef mpg_group_task t
    t.group = task.group + task.group % 2
    t.groups = task.groups
    t.fraction_bits = task.fraction_bits
    t.floor = task.floor
    t.subnormal_c = task.subnormal_c
    t.zero_c = task.zero_c
    t.skip_zero = task.skip_zero
    t.positive_zero = task.positive_zero
    t.offset = task.offset
    if not 1 <= t.groups <= MPG_GROUPS_MAX:
        raise ValueError(f"{t.groups} group sums in one operation, expected 1 to {MPG_GROUPS_MAX}")
    return t


cdef mpg_group_source _source(tuple operand, int64_t k, int64_t group, int block_size) except *:
    """The operand of `groups` as the kernels take it; its arrays are kept alive by the caller's tuple."""
    cdef const uint8_t[::1] data = operand[0], scales = operand[3], scale_special = operand[9]
    cdef const int8_t[::1] values = operand[6]
    cdef const double[::1] scale_values = operand[7]
    cdef const int16_t[::1] scale_exponents = operand[8]
    cdef mpg_group_source s
    cdef int i
    if min(values.shape[0], scale_values.shape[0], scale_exponents.shape[0], scale_special.shape[0]) < 256:
        raise ValueError("a table of encodings has fewer than 256 entries")
    s.data = &data[0]
    s.outer = operand[1]
    s.inner = operand[2]
    s.scales = &scales[0]
    s.scale_outer = operand[4]
    s.scale_inner = operand[5]
    s.values = &values[0]
    s.scale_values = &scale_values[0]
    s.scale_exponents = &scale_exponents[0]
    s.scale_special = &scale_special[0]
    s.k = k
    s.given = group
    s.block_size = block_size
    s.nibbles = 1
    for i in range(256):
        s.nibbles &= values[i] == values[i & 15]
    return s


def workspace_bytes(int64_t m, int64_t n, int64_t length, int group):
    """Bytes of workspace that `groups` needs for a slice of `length` groups."""
    cdef int64_t even = group + group % 2, columns = (n + MPG_GROUP_LANES - 1) // MPG_GROUP_LANES * MPG_GROUP_LANES
    return (m * (2 * even + 12) + columns * (2 * even + 12)) * length + 256


def groups(tuple a, tuple b, int64_t k, int block_size, float[:, ::1] d, uint8_t[:, ::1] redo, uint8_t[::1] row_special,
           uint8_t[::1] column_special, uint8_t[::1] workspace, int64_t length, task, int level, int threads):
    """Update d (m, n) by all of k; mark elements, rows and columns that need the generic kernel.

    `a` and `b` are tuples (encodings, outer stride, inner stride, scales, outer stride, inner stride, table of fixed-point
    numbers, table of scales, of their exponents, of their NaNs); `length` groups, a multiple of one operation, are packed at a
    time. Row i of A has its element k at a[i * outer + k * inner], B the same with columns.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1]
    cdef mpg_group_task t = _task(task)
    if m == 0 or n == 0 or k == 0:
        return
    if workspace.shape[0] < workspace_bytes(m, n, length, t.group):
        raise ValueError(f"the workspace has {workspace.shape[0]} bytes, {workspace_bytes(m, n, length, t.group)} are needed")
    cdef mpg_group_source sa = _source(a, k, task.group, block_size), sb = _source(b, k, task.group, block_size)
    cdef int64_t panels = (n + MPG_GROUP_LANES - 1) // MPG_GROUP_LANES, blocks = (m + ROWS - 1) // ROWS
    cdef int64_t columns = panels * MPG_GROUP_LANES, tasks = panels * blocks, width = 2 * t.group
    cdef int64_t total = (k + t.groups * sa.given - 1) // (t.groups * sa.given) * t.groups
    cdef uintptr_t base = (<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63
    cdef double *bs = <double *>base
    cdef uint8_t *bv = <uint8_t *>(bs + columns * length)
    cdef int16_t *start = <int16_t *>(bv + columns * length * width)
    cdef int16_t *be = start + columns * length
    cdef double *as_ = <double *>(be + columns * length)
    cdef uint8_t *av = <uint8_t *>(as_ + m * length)
    cdef uint32_t *ae = <uint32_t *>(av + m * length * width)
    cdef float *out = &d[0, 0]
    cdef uint8_t *mark = &redo[0, 0]
    cdef int64_t begin, end, part, i, p, r, first, last, at_once
    for i in range(m):
        row_special[i] |= mpg_group_special(&sa, i)
    for i in range(n):
        column_special[i] |= mpg_group_special(&sb, i)
    for begin in range(0, total, length):
        end = min(begin + length, total)
        part = end - begin
        at_once = max(threads, <int64_t>(SLICE / (<double>ROWS * MPG_GROUP_LANES * part * t.group)))
        with nogil:
            for i in prange(blocks + panels, num_threads=threads, schedule="dynamic"):
                if i < blocks:
                    for r in range(i * ROWS, min((i + 1) * ROWS, m)):
                        mpg_group_pack_a(&t, &sa, r, begin, end, av + r * part * width, as_ + r * part, ae + r * part, level)
                else:
                    p = (i - blocks) * MPG_GROUP_LANES
                    mpg_group_pack_b(&t, &sb, p, <int>min(<int64_t>MPG_GROUP_LANES, n - p), begin, end, bv + p * part * width,
                                     start + p * part, bs + p * part, be + p * part, level)
        for first in range(0, tasks, at_once):
            last = min(first + at_once, tasks)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    p = i // blocks * MPG_GROUP_LANES
                    r = i % blocks * ROWS
                    mpg_group_tile(&t, av + r * part * width, as_ + r * part, ae + r * part, part, min(ROWS, m - r),
                                   bv + p * part * width, start + p * part, bs + p * part, be + p * part,
                                   <int>min(<int64_t>MPG_GROUP_LANES, n - p), out + r * n + p, mark + r * n + p, n, level)
            PyErr_CheckSignals()


def groups_batch(tuple a, tuple b, int64_t k, int block_size, float[:, :, ::1] d, uint8_t[::1] marks, bint swapped, task, int level,
                 int threads):
    """Update d (batch, m, n) by contiguous batches of operands; mark the products that need the generic kernel.

    `a` and `b` are those of the first product, as in `groups`; where `swapped` they have changed places, and lanes run over m.
    """
    cdef int64_t count = d.shape[0], i, first, last, failed = 0
    cdef int64_t block = (k + block_size - 1) // block_size
    cdef mpg_group_items job
    if d.shape[1] == 0 or d.shape[2] == 0 or k == 0 or count == 0:
        return
    job.task = _task(task)
    job.a = _source(a, k, task.group, block_size)
    job.b = _source(b, k, task.group, block_size)
    job.rows = d.shape[2] if swapped else d.shape[1]
    job.columns = d.shape[1] if swapped else d.shape[2]
    job.groups = (k + task.group * job.task.groups - 1) // (task.group * job.task.groups) * job.task.groups
    job.a_item = job.rows * k
    job.b_item = job.columns * k
    job.a_scales = job.rows * block
    job.b_scales = job.columns * block
    job.row_step = 1 if swapped else d.shape[2]
    job.column_step = d.shape[2] if swapped else 1
    job.d = &d[0, 0, 0]
    job.marks = &marks[0]
    job.level = level
    cdef int64_t each = max(<int64_t>1, <int64_t>(1000000 // (job.rows * job.columns * k))), tasks = (count + each - 1) // each
    for first in range(0, tasks, 1024):
        last = min(first + 1024, tasks)
        with nogil:
            for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                if not mpg_group_run_items(&job, i * each, min((i + 1) * each, count)):
                    failed |= 1
        if failed:
            raise MemoryError("no memory for the operands of one small product")
        PyErr_CheckSignals()
