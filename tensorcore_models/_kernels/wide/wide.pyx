"""Fused algorithms in 64-bit lanes (wide.h has the arithmetic, docs/kernels.md the contract)."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive, mpg_drive, slice_length
from tensorcore_models._kernels.common.lanes cimport mpg_operand, mpg_source, source_of
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "wide_job.h":
    ctypedef struct mpg_wide_task:
        int terms, fraction_bits, floor, output, raw_exponent, positive_zero, round_down, dot_bits, c_bits
        int sum_bits, c_cutoff, overflow, late, mark_cut, nearest, promote

    ctypedef struct mpg_wide_job:
        mpg_drive drive
        mpg_wide_task task
        mpg_source a, b
        mpg_operand a_format, b_format
        int plain_order
        int64_t m, n
        float *d
        uint8_t *redo
        uint8_t *rows_marked
        uint8_t *columns_marked

    int64_t mpg_wide_bytes(int64_t m, int64_t n)
    void mpg_wide_start(mpg_wide_job *job, char *workspace)


def wide(a, b, const int32_t[::1] order, bint plain_order, result, dict task, int level, int threads, int64_t length=0):
    """Update the result by all of k; mark elements, rows and columns that need the generic kernel.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        With or without ue8m0 block scales.
    order : memoryview of int32
        Position in k of each padded position, -1 for padding; `plain_order` where that is 0, 1, 2, ...
    result : tensorcore_models.kernels.common.Result
        Where the results go.
    task : dict
        Fields of tensorcore_models.kernels.wide.WideTask.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Positions of k that are packed at a time, a multiple of one operation or chain; 0: what fits the caches.
    """
    cdef float[:, ::1] d = result.d
    cdef uint8_t[:, ::1] redo = result.redo
    cdef uint8_t[::1] rows = result.rows, columns = result.columns
    cdef mpg_wide_job job
    cdef Workspace workspace
    cdef int64_t bytes_each
    if d.shape[0] == 0 or d.shape[1] == 0 or order.shape[0] == 0:
        return
    job.task, job.a_format, job.b_format = task, a.format, b.format
    job.a, job.b, job.plain_order = source_of(a, order), source_of(b, order), plain_order
    job.m, job.n, job.d, job.redo = d.shape[0], d.shape[1], &d[0, 0], &redo[0, 0]
    job.rows_marked, job.columns_marked = &rows[0], &columns[0]
    bytes_each = mpg_wide_bytes(job.m, job.n)
    job.drive.level, job.drive.total = level, order.shape[0]
    job.drive.length = length or slice_length(order.shape[0], job.task.promote or job.task.terms, bytes_each)
    workspace = Workspace(bytes_each * job.drive.length)
    mpg_wide_start(&job, workspace.data)
    drive(&job.drive, threads)
