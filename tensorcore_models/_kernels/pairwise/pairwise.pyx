"""Pairwise sums of float32 operations in lanes (pairwise.h has the arithmetic, docs/kernels.md the contract)."""

from libc.stdint cimport int64_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive, mpg_drive, slice_length
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "pairwise.h":
    enum: MPG_PAIRWISE_LANES

    ctypedef struct mpg_pairwise_job:
        mpg_drive drive
        int group
        int64_t terms, m, n, k
        const float *a
        const float *b
        float *d
        uint8_t *redo

    int64_t mpg_pairwise_count(int64_t n)
    void mpg_pairwise_start(mpg_pairwise_job *job, char *workspace)


def pairwise(const float[:, ::1] a, const float[:, ::1] b, float[:, ::1] d, uint8_t[:, ::1] redo, int group, int64_t terms,
             int level, int threads, int64_t length=0):
    """Update d (m, n) by a (m, k) and b (k, n): pairwise sums over `group` of each `terms` products.

    With `redo` (m, n), else None: exact sums of `group` products and the addend; elements that they do not hold are marked.
    `length` products of k, a multiple of `terms`, are packed at a time; 0: what fits the caches.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1], bytes_each
    cdef mpg_pairwise_job job
    cdef Workspace workspace
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n or group not in (2, 4) or k % group or terms % group:
        raise ValueError(f"shapes ({a.shape[0]}, {k}), ({b.shape[0]}, {b.shape[1]}), ({m}, {n}) do not fit groups of {group}")
    if redo is not None and (redo.shape[0] != m or redo.shape[1] != n):
        raise ValueError(f"marks of shape ({redo.shape[0]}, {redo.shape[1]}) do not fit ({m}, {n})")
    if m == 0 or n == 0 or k == 0:
        return
    job.redo = NULL
    if redo is not None:
        job.redo = &redo[0, 0]
    job.group, job.terms, job.m, job.n, job.k = group, terms, m, n, k
    job.a, job.b, job.d = &a[0, 0], &b[0, 0], &d[0, 0]
    bytes_each = mpg_pairwise_count(n) * MPG_PAIRWISE_LANES * sizeof(float)
    job.drive.level, job.drive.total = level, k
    job.drive.length = length or slice_length(k, terms, bytes_each)
    workspace = Workspace(bytes_each * job.drive.length)
    mpg_pairwise_start(&job, workspace.data)
    drive(&job.drive, threads)
