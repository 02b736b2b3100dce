"""This module computes integer dot products into int32 (arithmetic in integer.h, contract in docs/kernels.md)."""

from libc.stdint cimport int32_t, int64_t

from tensorcore_models._kernels.common.driver cimport drive_products, drive_slices, mpg_drive
from tensorcore_models._kernels.common.lanes cimport source_of

cdef extern from "integer_tiles.h":
    enum: MPG_INTEGER_SLICE

    ctypedef struct mpg_integer_task:
        int terms, clamp

    ctypedef struct mpg_integer_format:
        int keep, flip

    ctypedef struct mpg_integer_job:
        mpg_drive drive
        mpg_integer_task task
        mpg_integer_format a_format, b_format
        int64_t k

    int64_t mpg_integer_bytes(int64_t m, int64_t n)
    void mpg_integer_start(mpg_drive *drive, char *workspace) noexcept


def integer(a, b, int64_t k, int32_t[:, ::1] d, dict task, int level, int threads, int64_t length=0, int64_t items=0,
            bint turned=False):
    """Update d (m, n) by all of k.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        Sources of the operands; their formats are fields of tensorcore_models.kernels.integer.IntegerOperand.
    k : int
        Number of products.
    d : memoryview of int32
        Result, updated in place.
    task : dict
        Fields of tensorcore_models.kernels.integer.IntegerTask.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Number of products that are packed at a time, a multiple of one operation or all of k rounded up to an even number; with
        0, as many as fit the caches.
    items : int
        Number of small products, which follow each other in the operands and in d (items * m, n); 0 for one product.
    turned : bool
        Whether results of small products are (n, m).
    """
    cdef mpg_integer_job job
    cdef int64_t total = k + k % 2, count = max(<int64_t>1, items), m = d.shape[0] // count, n = d.shape[1]
    if turned:
        m, n = n, m
    if m == 0 or n == 0 or k == 0:
        return
    job.task, job.a_format, job.b_format, job.k = task, a.format, b.format, k
    job.drive.a, job.drive.b = source_of(a, None, count), source_of(b, None, count)
    if job.task.terms < 2 or job.task.terms % 2 or length % 2 or (0 < length < total and length % job.task.terms):
        raise ValueError(
            f"got slices of {length} products and operations of {job.task.terms} products for k = {k}, expected even numbers, "
            "and slices that hold whole operations or all of k"
        )
    job.drive.m, job.drive.n, job.drive.d, job.drive.redo = m, n, &d[0, 0], NULL
    job.drive.level, job.drive.total = level, total
    if items:
        drive_products(&job.drive, sizeof(job), mpg_integer_start, mpg_integer_bytes(m, n), k, items, turned, NULL,
                       threads)
    else:
        drive_slices(&job.drive, mpg_integer_start, job.task.terms, MPG_INTEGER_SLICE, mpg_integer_bytes(m, n), length, threads)
