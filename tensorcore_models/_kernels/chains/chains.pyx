"""This module runs chains of fused multiply-adds in float32 or in double.

chains.h has the arithmetic and the layout, docs/kernels.md the contract.
"""

from libc.stdint cimport int64_t, uint16_t, uint64_t

from tensorcore_models._kernels.common.driver cimport drive, mpg_drive, slice_length
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "chains.h":
    enum: MPG_CHAIN_LONGEST, MPG_CHAIN_SLICE

    ctypedef struct mpg_chain_operand:
        const char *data
        int halved

    ctypedef struct mpg_chain_job:
        mpg_drive drive
        mpg_chain_operand a_rows, b_rows
        int64_t k, every, lanes
        int size, flush, pairs
        uint64_t nan

    int mpg_has_chains(int level, int flush)
    void mpg_chain_measure(mpg_chain_job *job, int level)
    int64_t mpg_chain_bytes(const mpg_chain_job *job, int64_t length, int level)
    void mpg_chain_start(mpg_chain_job *job, char *workspace, int threads)
    int mpg_chain_special(const mpg_chain_job *job)

#: Largest number of products between two additions outside the unit.
LONGEST = MPG_CHAIN_LONGEST

ctypedef fused real:
    float
    double


def available(int level, bint flush=False):
    """Return whether this build uses fused multiply-adds at that level; with `flush`, whether it can flush subnormals as x86."""
    return bool(mpg_has_chains(level, flush))


cdef mpg_chain_operand _operand(x, real *kind, int64_t rows, int64_t columns) except *:
    """Return a matrix of that shape, of numbers or of encodings of bf16, as an operand; the caller keeps it alive."""
    cdef mpg_chain_operand operand
    cdef const uint16_t[:, ::1] codes
    cdef const real[:, ::1] values
    if x.shape != (rows, columns):
        raise ValueError(f"an operand has shape {x.shape}, expected ({rows}, {columns})")
    operand.data, operand.halved = NULL, x.itemsize == 2
    if operand.halved and sizeof(real) != 4:
        raise ValueError("chains in double got encodings of bf16, expected numbers in double")
    if rows == 0 or columns == 0:
        return operand
    if operand.halved:
        codes = x
        operand.data = <const char *>&codes[0, 0]
    else:
        values = x
        operand.data = <const char *>&values[0, 0]
    return operand


def chains(a, b, real[:, ::1] d, dict task, uint64_t nan, int level, int threads, int64_t length=0):
    """Update d (m, n) by a (m, k) and b (k, n), and return whether a result is infinite or NaN.

    Parameters
    ----------
    a, b : ndarray
        Operands, C-contiguous, of d's type, or encodings of bf16 as uint16 if d is float.
    d : memoryview of float or double
        Result, updated in place.
    task : dict
        `every` is 0 for one chain per element, else the number of products of chains from zero that are added to d one after
        another (k is a multiple of it). With `lanes`, operations of `every` products are dealt out to that many chains, and the
        last operation may have fewer products. With `pairs`, the odd product of each pair comes first. With `flush`, subnormals
        are flushed as on x86 under FTZ and DAZ.
    nan : int
        Encoding of NaN results.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Number of products that are packed at a time, a multiple of `every`; with 0, as many as fit the caches.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1], every = task["every"]
    cdef mpg_chain_job job
    cdef Workspace workspace
    job.a_rows, job.b_rows = _operand(a, <real *>NULL, m, k), _operand(b, <real *>NULL, k, n)
    job.every, job.lanes, job.pairs, job.flush = every, task["lanes"], task["pairs"], task["flush"]
    if not mpg_has_chains(level, job.flush):
        raise ValueError(f"chains have no kernel at instruction-set level {level}, expected a level with available(level)")
    if job.lanes < 0 or (job.lanes and not every):
        raise ValueError(f"got {job.lanes} lanes for operations of {every} products, expected 0 lanes, or operations of at least 1 product")
    if job.pairs and (every or (length % 2 and length < k)):
        raise ValueError(
            f"got pairs with chains of {every} products and slices of {length}, expected chains of 0 products, and slices of "
            f"an even length or of all {k} products"
        )
    if every < 0 or every > MPG_CHAIN_LONGEST or length < 0 or (every and ((k % every and not job.lanes) or length % every)):
        raise ValueError(f"got chains of {every} products and slices of {length} for k = {k}, expected chains that divide both")
    if m == 0 or n == 0 or k == 0:
        return False
    job.k, job.size, job.nan = k, sizeof(real), nan
    job.drive.m, job.drive.n, job.drive.d = m, n, &d[0, 0]
    mpg_chain_measure(&job, level)
    job.drive.level, job.drive.total = level, k
    job.drive.length = min(length or _slice(k, every or 1 + job.pairs, (m + n) * sizeof(real)), k)
    workspace = Workspace(mpg_chain_bytes(&job, job.drive.length, level))
    mpg_chain_start(&job, workspace.data, threads)
    drive(&job.drive, threads)
    return bool(mpg_chain_special(&job))


cdef int64_t _slice(int64_t k, int64_t group, int64_t bytes_each) noexcept:
    return slice_length((k + group - 1) // group * group, group, MPG_CHAIN_SLICE, bytes_each)
