"""This module computes pairwise sums of float32 operations in lanes (arithmetic in pairwise.h, contract in docs/kernels.md)."""

from libc.stdint cimport int64_t, uint16_t, uint32_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive_slices, mpg_drive

cdef extern from "pairwise.h":
    enum: MPG_PAIRWISE_SLICE

    ctypedef struct mpg_pairwise_operand:
        const uint16_t *codes
        int half, flushed

    ctypedef struct mpg_pairwise_job:
        mpg_drive drive
        int group
        int64_t terms, k
        uint32_t nan
        mpg_pairwise_operand a, b

    int64_t mpg_pairwise_bytes(int64_t m, int64_t n)
    void mpg_pairwise_start(mpg_drive *drive, char *workspace) noexcept


def pairwise(const uint16_t[:, ::1] a, const uint16_t[:, ::1] b, float[:, ::1] d, uint8_t[:, ::1] redo, tuple rules, dict task,
             int level, int threads, int64_t length=0):
    """Update d (m, n) by pairwise or exact sums of a (m, k) and b (k, n).

    Parameters
    ----------
    a, b : memoryview of uint16
        Encodings of fp16 or bf16.
    d, redo : memoryview of float and of uint8
        Result, updated in place, and marks of elements that exact sums cannot compute; pairwise sums are computed if `redo` is
        None.
    rules : tuple of (bool, int)
        For a and for b: whether it is fp16, and the magnitude of encodings below which it counts as +0.
    task : dict
        `group` (2 or 4) products of one sum, `terms` products of one instruction, and `nan`, the encoding of NaN results of
        pairwise sums.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Number of products that are packed at a time, a multiple of `terms`; with 0, as many as fit the caches.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1]
    cdef mpg_pairwise_job job
    job.group, job.terms, job.nan, job.k = task["group"], task["terms"], task["nan"], k
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n or job.group not in (2, 4) or job.terms % job.group:
        raise ValueError(
            f"got a ({a.shape[0]}, {k}), b ({b.shape[0]}, {b.shape[1]}), d ({m}, {n}) and {job.terms} products in groups of "
            f"{job.group}, expected (m, k), (k, n), (m, n) and a multiple of groups of 2 or 4"
        )
    if redo is None and k % job.group:
        raise ValueError(f"k is {k}, expected a multiple of the {job.group} products of a pairwise sum")
    if redo is not None and (redo.shape[0] != m or redo.shape[1] != n):
        raise ValueError(f"marks have shape ({redo.shape[0]}, {redo.shape[1]}), expected ({m}, {n})")
    if m == 0 or n == 0 or k == 0:
        return
    job.a.codes, job.b.codes = &a[0, 0], &b[0, 0]
    (job.a.half, job.a.flushed), (job.b.half, job.b.flushed) = rules
    job.drive.m, job.drive.n, job.drive.d, job.drive.redo = m, n, &d[0, 0], NULL
    if redo is not None:
        job.drive.redo = &redo[0, 0]
    job.drive.level, job.drive.total = level, (k + job.group - 1) // job.group * job.group
    drive_slices(&job.drive, mpg_pairwise_start, job.terms, MPG_PAIRWISE_SLICE, mpg_pairwise_bytes(m, n), length, threads)
