"""Chains of fused multiply-adds in float32 or in double.

chains.h has the arithmetic and the layout, docs/kernels.md the contract.
"""

from libc.stdint cimport int64_t, uint64_t

from tensorcore_models._kernels.common.driver cimport drive, mpg_drive, slice_length
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "chains.h":
    enum: MPG_CHAIN_LONGEST

    ctypedef struct mpg_chain_job:
        mpg_drive drive
        const char *a_rows
        const char *b_rows
        int64_t k, every, lanes
        int size, flush
        uint64_t nan

    int mpg_has_chains(int level, int flush)
    void mpg_chain_measure(mpg_chain_job *job, int level)
    int64_t mpg_chain_bytes(const mpg_chain_job *job, int64_t length, int level)
    void mpg_chain_start(mpg_chain_job *job, char *workspace, int threads)

#: Products between two additions outside, at most.
LONGEST = MPG_CHAIN_LONGEST

ctypedef fused real:
    float
    double


def available(int level, bint flush=False):
    """Whether CPUs of that level have fused multiply-adds that this build uses; `flush`: with subnormals flushed as x86 does."""
    return bool(mpg_has_chains(level, flush))


def chains(const real[:, ::1] a, const real[:, ::1] b, real[:, ::1] d, dict task, uint64_t nan, int level, int threads,
           int64_t length=0):
    """Update d (m, n) by a (m, k) and b (k, n).

    Parameters
    ----------
    a, b, d : memoryview of float or double
        The operands, and the result that is updated in place.
    task : dict
        `every`: one chain for each element if 0, else chains of so many products from zero, added to d one after the other; k is
        then a multiple of it. `lanes`: with it operations of `every` products that lie lane after lane; the last one may have
        fewer. `flush`: as x86 does under FTZ and DAZ.
    nan : int
        The encoding that NaNs get.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Products that are packed at a time, a multiple of `every`; 0: what fits the caches.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1], every = task["every"]
    cdef mpg_chain_job job
    cdef Workspace workspace
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n:
        raise ValueError(f"shapes ({a.shape[0]}, {k}), ({b.shape[0]}, {b.shape[1]}) and ({m}, {n}) do not fit")
    job.every, job.lanes, job.flush = every, task["lanes"], task["flush"]
    if not mpg_has_chains(level, job.flush):
        raise ValueError(f"no kernel for chains at level {level}")
    if job.lanes < 0 or (job.lanes and not every):
        raise ValueError(f"{job.lanes} lanes of operations of {every} products")
    if every < 0 or every > MPG_CHAIN_LONGEST or length < 0 or (every and ((k % every and not job.lanes) or length % every)):
        raise ValueError(f"chains of {every} products and slices of {length} do not fit {k} products")
    if m == 0 or n == 0 or k == 0:
        return
    job.k, job.size, job.nan, job.a_rows, job.b_rows = k, sizeof(real), nan, <const char *>&a[0, 0], <const char *>&b[0, 0]
    job.drive.m, job.drive.n, job.drive.d = m, n, &d[0, 0]
    mpg_chain_measure(&job, level)
    job.drive.level, job.drive.total = level, k
    job.drive.length = min(length or _slice(k, every, (m + n) * sizeof(real)), k)
    workspace = Workspace(mpg_chain_bytes(&job, job.drive.length, level))
    mpg_chain_start(&job, workspace.data, threads)
    drive(&job.drive, threads)


cdef int64_t _slice(int64_t k, int64_t every, int64_t bytes_each) noexcept:
    cdef int64_t group = every or 1
    return slice_length((k + group - 1) // group * group, group, bytes_each)
