"""This module computes exact group sums with block scales (arithmetic in groups.h, contract in docs/kernels.md)."""

from libc.stdint cimport int16_t, int8_t, int64_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive_products, drive_slices, mpg_drive, set_result
from tensorcore_models._kernels.common.lanes cimport source_of

cdef extern from "groups_tiles.h":
    enum: MPG_GROUPS_MAX, MPG_GROUP_LONGEST, MPG_GROUP_SKIP, MPG_GROUP_SLICE

    ctypedef struct mpg_group_task:
        int group, groups, fraction_bits, floor, positive_zero, offset

    ctypedef struct mpg_group_source:
        int64_t k, given
        int nibbles
        const int8_t *values
        const double *scale_values
        const int16_t *scale_exponents
        const uint8_t *scale_special

    ctypedef struct mpg_group_job:
        mpg_drive drive
        mpg_group_task task
        mpg_group_source a, b

    int64_t mpg_group_bytes(int64_t m, int64_t n, int group)
    void mpg_group_start(mpg_drive *drive, char *workspace) noexcept

#: Largest number of group sums of one operation and of products of a group; exponent of a scale that takes no part.
MAX_GROUPS = MPG_GROUPS_MAX
LONGEST = MPG_GROUP_LONGEST
SKIP = MPG_GROUP_SKIP


cdef mpg_group_task _task(dict task) except *:
    """Return the fields of tensorcore_models.kernels.groups.GroupTask, with groups padded to an even number of products."""
    cdef mpg_group_task t = task
    if not 1 <= t.groups <= MPG_GROUPS_MAX:
        raise ValueError(f"an operation has {t.groups} group sums, expected 1 to {MPG_GROUPS_MAX}")
    if not 1 <= t.group <= MPG_GROUP_LONGEST:
        raise ValueError(f"a group has {t.group} products, expected 1 to {MPG_GROUP_LONGEST}")
    t.group += t.group % 2
    return t


cdef mpg_group_source _meaning(tables, int64_t k, int64_t given) except *:
    """Return an operand's GroupTables as the struct that the kernels take; the caller keeps them alive."""
    cdef const uint8_t[::1] scale_special = tables.scale_special
    cdef const int8_t[::1] values = tables.values
    cdef const double[::1] scale_values = tables.scale_values
    cdef const int16_t[::1] scale_exponents = tables.scale_exponents
    cdef mpg_group_source s
    cdef int i
    if min(values.shape[0], scale_values.shape[0], scale_exponents.shape[0], scale_special.shape[0]) < 256:
        raise ValueError(
            f"tables have {values.shape[0]}, {scale_values.shape[0]}, {scale_exponents.shape[0]} and {scale_special.shape[0]} "
            "entries, expected at least 256"
        )
    s.values, s.scale_values, s.scale_exponents = &values[0], &scale_values[0], &scale_exponents[0]
    s.scale_special, s.k, s.given, s.nibbles = &scale_special[0], k, given, 1
    for i in range(256):
        s.nibbles &= values[i] == values[i & 15]
    return s


cdef mpg_group_job _job(a, b, tuple tables, int64_t k, dict task, int level, int64_t items) except *:
    """Return a job without its results."""
    cdef mpg_group_job job
    cdef int64_t products
    job.task = _task(task)
    job.drive.a, job.drive.b = source_of(a, None, items), source_of(b, None, items)
    job.a, job.b = _meaning(tables[0], k, task["group"]), _meaning(tables[1], k, task["group"])
    products = job.task.groups * job.a.given
    job.drive.level, job.drive.total = level, (k + products - 1) // products * job.task.groups
    return job


def groups(a, b, tuple tables, int64_t k, result, dict task, int level, int threads, int64_t length=0):
    """Update the result by all of k; mark elements, rows and columns that need the generic kernel.

    Parameters
    ----------
    a, b : tensorcore_models.kernels.common.Source
        Sources of the operands.
    tables : tuple of tensorcore_models.kernels.groups.GroupTables
        Tables of the bytes of a and its scales, and of b and its scales.
    k : int
        Number of products.
    result : tensorcore_models.kernels.common.RunningResult
        Result, updated in place.
    task : dict
        Fields of tensorcore_models.kernels.groups.GroupTask.
    level, threads : int
        Instruction set (:mod:`tensorcore_models.machine.instruction_sets`) and number of threads.
    length : int
        Number of groups that are packed at a time, a multiple of one operation; with 0, as many as fit the caches.
    """
    cdef mpg_group_job job
    if 0 in result.d.shape or k == 0:
        return
    job = _job(a, b, tables, k, task, level, 1)
    set_result(&job.drive, result)
    drive_slices(&job.drive, mpg_group_start, job.task.groups, MPG_GROUP_SLICE,
                 mpg_group_bytes(job.drive.m, job.drive.n, job.task.group), length, threads)


def groups_batch(a, b, tuple tables, int64_t k, float[:, :, ::1] d, uint8_t[::1] marks, bint turned, dict task, int level,
                 int threads):
    """Update d (batch, m, n) by contiguous batches of operands as in `groups`; mark the products that need the generic kernel.

    With `turned`, a and b are exchanged, and lanes run over m.
    """
    cdef mpg_group_job job
    if d.shape[1] == 0 or d.shape[2] == 0 or k == 0 or d.shape[0] == 0:
        return
    job = _job(a, b, tables, k, task, level, d.shape[0])
    job.drive.m, job.drive.n, job.drive.d = d.shape[2 if turned else 1], d.shape[1 if turned else 2], &d[0, 0, 0]
    drive_products(&job.drive, sizeof(job), mpg_group_start, mpg_group_bytes(job.drive.m, job.drive.n, job.task.group), k,
                   d.shape[0], turned, &marks[0], threads)
