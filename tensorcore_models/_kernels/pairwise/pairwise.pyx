"""Pairwise sums of float32 operations in lanes (pairwise.h has the arithmetic, docs/kernels.md the contract)."""

from libc.stdint cimport int64_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive_slices, mpg_drive

cdef extern from "pairwise.h":
    enum: MPG_PAIRWISE_LANES

    ctypedef struct mpg_pairwise_job:
        mpg_drive drive
        int group
        int64_t terms, k
        const float *a
        const float *b

    int64_t mpg_panels_of(int64_t n, int lanes)
    void mpg_pairwise_start(mpg_drive *drive, char *workspace) noexcept


def pairwise(const float[:, ::1] a, const float[:, ::1] b, float[:, ::1] d, uint8_t[:, ::1] redo, int group, int64_t terms,
             int level, int threads, int64_t length=0):
    """Update d (m, n) by a (m, k) and b (k, n): pairwise sums over `group` of each `terms` products.

    With `redo` (m, n), else None: exact sums of `group` products and the addend; elements that they do not hold are marked.
    `length` products of k, a multiple of `terms`, are packed at a time; 0: what fits the caches.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1]
    cdef mpg_pairwise_job job
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n or group not in (2, 4) or k % group or terms % group:
        raise ValueError(f"shapes ({a.shape[0]}, {k}), ({b.shape[0]}, {b.shape[1]}), ({m}, {n}) do not fit groups of {group}")
    if redo is not None and (redo.shape[0] != m or redo.shape[1] != n):
        raise ValueError(f"marks of shape ({redo.shape[0]}, {redo.shape[1]}) do not fit ({m}, {n})")
    if m == 0 or n == 0 or k == 0:
        return
    job.group, job.terms, job.k, job.a, job.b = group, terms, k, &a[0, 0], &b[0, 0]
    job.drive.m, job.drive.n, job.drive.d, job.drive.redo = m, n, &d[0, 0], NULL
    if redo is not None:
        job.drive.redo = &redo[0, 0]
    job.drive.level, job.drive.total = level, k
    drive_slices(&job.drive, mpg_pairwise_start, terms, mpg_panels_of(n, MPG_PAIRWISE_LANES) * MPG_PAIRWISE_LANES * sizeof(float),
                 length, threads)
