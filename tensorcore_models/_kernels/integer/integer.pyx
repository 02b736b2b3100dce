"""Integer dot products into int32 (integer.h has the arithmetic, docs/kernels.md the contract)."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive_batch, drive_slices, mpg_batch, mpg_drive

cdef extern from "integer_job.h":
    enum: MPG_INTEGER_SLICE

    ctypedef struct mpg_integer_task:
        int terms, clamp

    ctypedef struct mpg_integer_source:
        const uint8_t *data
        int64_t outer, inner, k
        int keep, flip

    ctypedef struct mpg_integer_job:
        mpg_drive drive
        mpg_integer_task task
        mpg_integer_source a, b

    ctypedef struct mpg_integer_items:
        mpg_batch batch
        mpg_integer_task task
        mpg_integer_source a, b
        int64_t rows, columns, length, a_item, b_item, row_step, column_step
        int32_t *d
        int level

    int64_t mpg_integer_bytes(int64_t m, int64_t n)
    void mpg_integer_start(mpg_drive *drive, char *workspace) noexcept
    void mpg_integer_items_start(mpg_integer_items *job)


cdef mpg_integer_source _source(operand, int64_t k) except *:
    """A Source whose format is an IntegerOperand as the kernels take it; the caller keeps it alive."""
    cdef const uint8_t[::1] data = operand.codes
    cdef mpg_integer_source s
    s.data, s.outer, s.inner, s.k = &data[0], operand.outer, operand.inner, k
    s.keep, s.flip = operand.format["keep"], operand.format["flip"]
    return s


def integer(a, b, int64_t k, int32_t[:, ::1] d, dict task, int level, int threads, int64_t length=0):
    """Update d (m, n) by all of k.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        The operands.
    k : int
        Products.
    d : memoryview of int32
        The result, updated in place.
    task : dict
        Fields of tensorcore_models.kernels.integer.IntegerTask.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Products that are packed at a time, a multiple of one operation or all of k rounded up to an even number; 0: what fits.
    """
    cdef mpg_integer_job job
    cdef int64_t total = k + k % 2
    if d.shape[0] == 0 or d.shape[1] == 0 or k == 0:
        return
    job.task, job.a, job.b = task, _source(a, k), _source(b, k)
    if job.task.terms < 2 or job.task.terms % 2 or length % 2 or (0 < length < total and length % job.task.terms):
        raise ValueError(f"operations of {job.task.terms} products and slices of {length} do not fit {k} products")
    job.drive.m, job.drive.n, job.drive.d, job.drive.redo = d.shape[0], d.shape[1], &d[0, 0], NULL
    job.drive.level, job.drive.total = level, total
    drive_slices(&job.drive, mpg_integer_start, job.task.terms, MPG_INTEGER_SLICE,
                 mpg_integer_bytes(d.shape[0], d.shape[1]), length, threads)


def integer_batch(a, b, int64_t k, int32_t[:, :, ::1] d, bint swapped, dict task, int level, int threads):
    """Update d (batch, m, n) by contiguous batches of operands.

    `a` and `b` belong to the first product, as in `integer`; `swapped`: they have changed places, and lanes run over m.
    """
    cdef int64_t count = d.shape[0]
    cdef mpg_integer_items job
    if d.shape[1] == 0 or d.shape[2] == 0 or k == 0 or count == 0:
        return
    job.task, job.a, job.b = task, _source(a, k), _source(b, k)
    if job.task.terms < 2 or job.task.terms % 2:
        raise ValueError(f"operations of {job.task.terms} products: their number must be even")
    job.rows = d.shape[2] if swapped else d.shape[1]
    job.columns = d.shape[1] if swapped else d.shape[2]
    job.length, job.a_item, job.b_item = k + k % 2, job.rows * k, job.columns * k
    job.row_step = 1 if swapped else d.shape[2]
    job.column_step = d.shape[2] if swapped else 1
    job.d, job.level = &d[0, 0, 0], level
    job.batch.count, job.batch.each = count, max(<int64_t>1, <int64_t>(1000000 // (job.rows * job.columns * k)))
    mpg_integer_items_start(&job)
    drive_batch(&job.batch, threads)
