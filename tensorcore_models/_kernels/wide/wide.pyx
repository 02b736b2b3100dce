"""This module computes fused sums in 64-bit lanes (arithmetic in wide.h, contract in docs/kernels.md)."""

from libc.stdint cimport int32_t, int64_t

from tensorcore_models._kernels.common.driver cimport drive_slices, mpg_drive, set_result
from tensorcore_models._kernels.common.lanes cimport mpg_operand, source_of

cdef extern from "wide_job.h":
    enum: MPG_WIDE_SLICE

    ctypedef struct mpg_wide_task:
        int terms, fraction_bits, floor, output, raw_exponent, positive_zero, round_down, dot_bits, c_bits
        int sum_bits, c_cutoff, overflow, late, mark_cut, nearest, promote

    ctypedef struct mpg_wide_job:
        mpg_drive drive
        mpg_wide_task task
        mpg_operand a_format, b_format
        int plain_order

    int64_t mpg_wide_bytes(int64_t m, int64_t n)
    void mpg_wide_start(mpg_drive *drive, char *workspace) noexcept


def wide(a, b, const int32_t[::1] order, bint plain_order, result, dict task, int level, int threads, int64_t length=0):
    """Update the result by all of k; mark elements, rows and columns that need the generic kernel.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        Sources of the operands, with or without ue8m0 block scales.
    order : memoryview of int32
        Position in k of each padded position, -1 for padding; `plain_order` says that it is 0, 1, 2, ...
    result : tensorcore_models.kernels.common.RunningResult
        Result, updated in place.
    task : dict
        Fields of tensorcore_models.kernels.wide.WideTask.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Number of positions of k that are packed at a time, a multiple of one operation or chain; with 0, as many as fit the
        caches.
    """
    cdef mpg_wide_job job
    if 0 in result.d.shape or order.shape[0] == 0:
        return
    set_result(&job.drive, result)
    job.task, job.a_format, job.b_format = task, a.format, b.format
    job.drive.a, job.drive.b, job.plain_order = source_of(a, order), source_of(b, order), plain_order
    job.drive.level, job.drive.total = level, order.shape[0]
    drive_slices(&job.drive, mpg_wide_start, job.task.promote or job.task.terms, MPG_WIDE_SLICE,
                 mpg_wide_bytes(job.drive.m, job.drive.n), length, threads)
