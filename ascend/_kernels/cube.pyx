"""This module computes products of the Ascend cube on a tile schedule; cube.h has the contract, ascend.cube the arithmetic.

The product is computed in blocks of at most CUBE_BLOCK rows and columns and slices of at most CUBE_BLOCK of k, as the driver runs
them. Threads share the tiles of a block and change no bit.
"""

from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t
from libc.string cimport memset

from tensorcore_models._kernels.common.driver cimport drive, mpg_drive
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "cube_job.h":
    int CUBE_TERMS, CUBE_MAX_STEP, CUBE_BLOCK

    ctypedef struct cube_scales:
        pass

    ctypedef struct cube_task:
        int terms, step_order, step, a_exponent, b_exponent, elementwise, in_place, reseed, saturate, clamp, half

    ctypedef struct cube_job:
        mpg_drive drive
        cube_task task
        const float *a
        const float *b
        float *out
        int64_t m, k, n
        int terms

    void cube_reconstruct(const float *hh, const float *lh, const float *hl, const float *ll, ptrdiff_t count,
                          const cube_scales *scales, float *out, int level) nogil
    cube_scales cube_scales_of(int a_exponent, int b_exponent, bint has_ll, bint clamp)
    int cube_scale_exponent(const cube_job *job, int term)
    void cube_open(cube_job *job, int level)
    void cube_place_block(cube_job *job, int64_t row, int64_t column)
    size_t cube_place_memory(cube_job *job, float *memory, bint keep_totals)
    void cube_start(cube_job *job, int64_t start, int64_t end, bint fresh, bint last, int threads)
    void cube_seed(cube_job *job, const float *c)
    void cube_accumulate(const cube_job *job, int exponent, bint half)
    void cube_move(const cube_job *job, int exponent, bint to_sums)
    void cube_exchange(cube_job *job)
    void cube_finish_totals(cube_job *job)

MAX_STEP = CUBE_MAX_STEP


cdef int run_group(cube_job *j, const int64_t[::1] group_ends, int64_t g, bint fresh, bint last, int threads) except -1:
    cube_start(j, group_ends[g - 1] if g else 0, group_ends[g], fresh, last, threads)
    return drive(&j.drive, threads)


cdef int run_together(cube_job *j, const int64_t[::1] group_ends, bint seeded, int threads) except -1:
    """Run all chains over all k groups."""
    cdef int64_t g, groups = group_ends.shape[0]
    cdef bint apart = groups > 1 and not j.task.reseed
    for g in range(groups):
        run_group(j, group_ends, g, not seeded if g == 0 else apart, g + 1 == groups and not apart, threads)
        if apart and g == 0:
            cube_exchange(j)
        elif apart:
            cube_accumulate(j, 0, j.task.half)
    if apart:
        cube_finish_totals(j)
    return 0


cdef int run_in_place(cube_job *j, const int64_t[::1] group_ends, bint seeded, int threads) except -1:
    """Run one term after the other into one C."""
    cdef int64_t g
    cdef int term, exponent
    cdef bint first = True, reseed = j.task.reseed
    for term in range(CUBE_TERMS):
        if not j.task.terms >> term & 1:
            continue
        j.terms = 1 << term
        exponent = cube_scale_exponent(j, term)
        for g in range(group_ends.shape[0]):
            if reseed and not first:
                cube_move(j, exponent, True)
            run_group(j, group_ends, g, not seeded if first else not reseed, False, threads)
            if first or reseed:
                cube_move(j, exponent, False)
            else:
                cube_accumulate(j, exponent, False)
            first = False
    cube_finish_totals(j)
    return 0


def run(const float[:, ::1] a, const float[:, ::1] b, const float[:, ::1] c, const int64_t[::1] group_ends,
        float[:, ::1] out, dict task, int level, int threads):
    """Split a and b and run the chains of the whole product into `out`; arguments are checked by ascend.cube.

    `group_ends` holds the end of each k group, the last one k. `c` seeds the first chain, or is None. `task` has the fields of
    ascend.numeric.fp16_products.CubeTask.
    """
    cdef cube_job j
    cdef Workspace workspace
    cdef int64_t row, column
    cdef bint keep_totals
    if out.shape[0] == 0 or out.shape[1] == 0 or a.shape[1] == 0:
        raise ValueError(f"got m = {out.shape[0]}, k = {a.shape[1]}, n = {out.shape[1]}, expected sizes of at least 1")
    memset(&j, 0, sizeof(j))
    j.task, j.a, j.b, j.out = task, &a[0, 0], &b[0, 0], &out[0, 0]
    j.m, j.k, j.n = a.shape[0], a.shape[1], b.shape[1]
    cube_open(&j, level)
    keep_totals = j.task.in_place or (group_ends.shape[0] > 1 and not j.task.reseed)
    workspace = Workspace(cube_place_memory(&j, NULL, keep_totals))
    cube_place_memory(&j, <float *>workspace.data, keep_totals)
    for column in range(0, j.n, CUBE_BLOCK):
        for row in range(0, j.m, CUBE_BLOCK):
            cube_place_block(&j, row, column)
            if c is not None:
                cube_seed(&j, &c[0, 0])
            if j.task.in_place:
                run_in_place(&j, group_ends, c is not None, threads)
            else:
                run_together(&j, group_ends, c is not None, threads)


def reconstruct(const float[::1] hh, const float[::1] lh, const float[::1] hl, const float[::1] ll, float[::1] out, *,
                int a_exponent, int b_exponent, bint clamp, int level):
    """Reconstruct the sum of terms from flat arrays of one length; `ll` is None or the fourth term."""
    cdef cube_scales scales = cube_scales_of(a_exponent, b_exponent, ll is not None, clamp)
    cdef ptrdiff_t count = hh.shape[0]
    if count:
        with nogil:
            cube_reconstruct(&hh[0], &lh[0], &hl[0], &ll[0] if ll is not None else NULL, count, &scales, &out[0], level)
