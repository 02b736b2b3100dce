"""This module computes fused sums in 32-bit lanes, for whole matrices and batches of small products.

narrow.h has the arithmetic, docs/kernels.md the contract.
"""

from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memset

from tensorcore_models._kernels.common.driver cimport drive_batch, drive_slices, mpg_batch, mpg_drive, set_result
from tensorcore_models._kernels.common.lanes cimport mpg_operand, source_of

cdef extern from "narrow_job.h":
    enum: MPG_NARROW_FLOOR, MPG_NARROW_SLICE

    ctypedef struct mpg_narrow_task:
        int terms, fraction_bits, output
        uint32_t keep
        int wide_sum, chain, floor, raw_exponent, guard, whole, cutoff, windowed, scaled
        float scale, back
        int unusable_c

    ctypedef struct mpg_narrow_job:
        mpg_drive drive
        mpg_narrow_task task
        mpg_operand a_format, b_format
        int plain_order

    int64_t mpg_narrow_bytes(int64_t m, int64_t n)
    void mpg_narrow_start(mpg_drive *drive, char *workspace) noexcept

cdef extern from "narrow_window.h":
    enum: MPG_WINDOW_LEAST, MPG_WINDOW_MOST, MPG_WINDOW_SHIFT, MPG_WINDOW_ADDEND
    void mpg_window_of(const void *codes, int64_t count, const mpg_operand *f, int32_t *least, int32_t *most, int level) nogil
    int mpg_window_shift(const mpg_operand *f, int32_t least, int32_t most)
    int mpg_window_fits(const int *shift)

cdef extern from "narrow_items.h":
    ctypedef struct mpg_narrow_items:
        mpg_batch batch
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

    void mpg_narrow_items_start(mpg_narrow_items *job)

#: Least alignment exponent of the lanes, as a float32 exponent field.
FLOOR = MPG_NARROW_FLOOR
#: Alignment exponents of operands in the lanes.
LEAST, MOST = MPG_WINDOW_LEAST, MPG_WINDOW_MOST
#: Largest shift of the products of other operands.
SHIFT = MPG_WINDOW_SHIFT
#: Addends other than 0 that are shifted lie between 2^-ADDEND and 2^ADDEND.
ADDEND = MPG_WINDOW_ADDEND


def narrow(a, b, const int32_t[::1] order, bint plain_order, result, dict task, int level, int threads, int64_t length=0):
    """Update the result by all of k; mark elements, rows and columns that need the generic kernel.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        Sources of the operands.
    order : memoryview of int32
        Position in k of each padded position, -1 for padding; `plain_order` says that it is 0, 1, 2, ...
    result : tensorcore_models.kernels.common.RunningResult
        Result, updated in place.
    task : dict
        Fields of tensorcore_models.kernels.narrow.NarrowTask.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Number of positions of k that are packed at a time, a multiple of one chained group; with 0, as many as fit the caches.
    """
    cdef mpg_narrow_job job
    if 0 in result.d.shape or order.shape[0] == 0:
        return
    set_result(&job.drive, result)
    job.task, job.a_format, job.b_format = task, a.format, b.format
    job.drive.a, job.drive.b, job.plain_order = source_of(a, order), source_of(b, order), plain_order
    job.drive.level, job.drive.total = level, order.shape[0]
    drive_slices(&job.drive, mpg_narrow_start, job.task.terms * max(1, job.task.chain), MPG_NARROW_SLICE,
                 mpg_narrow_bytes(job.drive.m, job.drive.n), length, threads)


cdef enum:
    PIECES = 64  # of an operand that is looked at, at most


cdef int _shift(operand, int level, int threads) except *:
    """Return the shift of one operand."""
    cdef const uint8_t[::1] codes = operand.codes
    cdef mpg_operand f = operand.format
    cdef int64_t i, count = codes.shape[0] // f.size, pieces = max(<int64_t>1, min(<int64_t>PIECES, count >> 15))
    cdef int64_t each = (count + pieces - 1) // pieces
    cdef int32_t[PIECES] least, most
    with nogil:
        for i in prange(pieces, num_threads=threads, schedule="static"):
            mpg_window_of(&codes[0] + i * each * f.size, max(<int64_t>0, min(each, count - i * each)), &f, &least[i], &most[i],
                          level)
    for i in range(1, pieces):
        least[0], most[0] = min(least[0], least[i]), max(most[0], most[i])
    return mpg_window_shift(&f, least[0], most[0])


def shifts(a, b, int level, int threads):
    """Return the powers of two by which operands are divided so that their exponents fit in the lanes.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        Sources of the operands, with encodings of 2 or 4 bytes.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.

    Returns
    -------
    tuple of int or None
        Exponents for a and b; None if none exist.
    """
    cdef int[2] found = [_shift(a, level, threads), _shift(b, level, threads)]
    return (found[0], found[1]) if mpg_window_fits(found) else None


cdef class NarrowItems:
    """`NarrowItems` computes small products of one accumulator and one k, with all of k at once (narrow_items.h).

    Parameters
    ----------
    a_format, b_format : dict
        Fields of tensorcore_models.kernels.common.KernelFormat.
    order : memoryview of int32
        Position in k of each padded position, -1 for padding; `plain_order` says that it is 0, 1, 2, ...
    k : int
        Length of the sum.
    task : dict
        Fields of tensorcore_models.kernels.narrow.NarrowTask.
    c_size, d_size : int
        Bytes of an encoding of the addend and of the result: 2 (fp16) or 4 (fp32).
    """

    cdef mpg_narrow_items job
    cdef const int32_t[::1] order

    def __cinit__(self, dict a_format, dict b_format, const int32_t[::1] order, bint plain_order, int64_t k, dict task,
                  int c_size, int d_size):
        memset(&self.job, 0, sizeof(mpg_narrow_items))
        self.order = order
        self.job.task, self.job.a, self.job.b = task, a_format, b_format
        self.job.order, self.job.length, self.job.plain_order = &order[0], order.shape[0], plain_order
        self.job.k, self.job.c_size, self.job.d_size = k, c_size, d_size
        mpg_narrow_items_start(&self.job)

    def run(self, a, b, c, d, uint8_t[::1] marks, int64_t m, int64_t n, int level, int threads):
        """Compute d = a b + c on contiguous encodings (count, m, k), (count, k, n), (count, m, n), and fill `marks` (count,).

        Returns
        -------
        int
            Number of marked products, which need the generic kernel.
        """
        cdef int64_t i, marked = 0
        if m < 1 or n < 1 or marks.shape[0] < 1:
            return 0
        if not self._multiply((a, b, c, d), &marks[0], marks.shape[0], m, n, level, threads):
            raise ValueError("an array is not contiguous or not aligned: use numpy.require(x, requirements='CA')")
        for i in range(marks.shape[0]):
            marked += marks[i]
        return marked

    def one(self, a, b, c, d, int64_t m, int64_t n, int level):
        """Compute one product of nonempty arrays (m, k), (k, n), (m, n) in the calling thread.

        Returns
        -------
        int
            1 if the product is computed, 0 if it needs the generic kernel, -1 if an array is not contiguous or not aligned.
        """
        cdef uint8_t mark = 0
        if not self._multiply((a, b, c, d), &mark, 1, m, n, level, 1):
            return -1
        return mark == 0

    cdef int _multiply(self, tuple arrays, uint8_t *marks, int64_t count, int64_t m, int64_t n, int level, int threads) except -1:
        """Compute `count` products; return 0 without computing if an array is not contiguous or not aligned."""
        cdef Py_buffer views[4]
        cdef mpg_narrow_items job = self.job
        cdef int64_t[4] sizes = [m * job.k * job.a.size, job.k * n * job.b.size, m * n * job.c_size, m * n * job.d_size]
        cdef int i
        memset(views, 0, sizeof(views))
        try:
            for i in range(4):
                PyObject_GetBuffer(arrays[i], &views[i], PyBUF_STRIDES | (PyBUF_WRITABLE if i == 3 else 0))
                if not PyBuffer_IsContiguous(&views[i], b"C") or <uintptr_t>views[i].buf % <size_t>views[i].itemsize:
                    return 0
                if views[i].len != sizes[i] * count:
                    raise ValueError(f"array {i} of a, b, c and d (from 0) has {views[i].len} bytes, expected {sizes[i] * count}")
            job.m, job.n, job.level, job.marks = m, n, level, marks
            job.a_codes, job.b_codes, job.c_codes, job.d_codes = views[0].buf, views[1].buf, views[2].buf, views[3].buf
            job.batch.count, job.batch.each = count, 2 * max(<int64_t>1, 500000 // (m * n * job.length))
            drive_batch(&job.batch, threads)
            return 1
        finally:
            for i in range(4):
                PyBuffer_Release(&views[i])
