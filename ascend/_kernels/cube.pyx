"""The numeric side of the Ascend cube on a tile schedule; see cube.h for the contract and ascend.cube for the meaning.

The product is computed in blocks of at most CUBE_BLOCK rows and columns and slices of at most CUBE_BLOCK of k, packed once each;
between slices pending signals are looked at. Threads share the tiles of a block. Neither changes a bit.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport ldexp
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy, memset

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "split.h" nogil:
    ctypedef struct mpg_split:
        pass

    mpg_split mpg_split_parameters(int s, int saturate, uint32_t nan_code, int keep_nan)

cdef extern from "cube.h" nogil:
    int CUBE_TERMS, CUBE_MAX_STEP, CUBE_DEPTH, CUBE_BLOCK, CUBE_LL

    ctypedef struct cube_block:
        const float *a
        const float *b
        float *sums
        ptrdiff_t groups, panels, depth
        int fresh, chains, elementwise, terms, step_order, step, clamp, half
        double bin[4]

    ctypedef struct cube_scales:
        float low_scale, lh_scale, hl_scale, ll_scale
        int has_ll, clamp

    int cube_row_multiple(int level)
    int cube_panel_width(int level)
    void cube_tile(const cube_block *block, ptrdiff_t group0, ptrdiff_t group1, ptrdiff_t panel0, ptrdiff_t panel1,
                   int level)
    void cube_pack_a(const float *source, ptrdiff_t row, ptrdiff_t groups, int words, ptrdiff_t depth,
                     ptrdiff_t pass_, const mpg_split *split, float low_factor, float *packed, int level)
    void cube_pack_b(const float *source, ptrdiff_t columns, ptrdiff_t k, int words, ptrdiff_t pass_,
                     const mpg_split *split, float low_factor, float *packed, ptrdiff_t panels, int level)
    void cube_reconstruct(const float *hh, const float *lh, const float *hl, const float *ll, ptrdiff_t count,
                          const cube_scales *scales, float *out, int level)
    void cube_accumulate(float *c, const float *sum, ptrdiff_t count, float factor, int half, int clamp)
    void cube_scale(const float *source, ptrdiff_t count, float factor, int clamp, float *out)
    void cube_store(const float *sum, ptrdiff_t count, float *out)

MAX_STEP = CUBE_MAX_STEP

cdef enum:
    TILE = 256     # rows and columns that one thread takes at a time
    LINE = 64      # bytes of a cache line
    HALF_NAN = 0x7E00


cdef struct cube_task:
    # a product as asked for: fields of CubeTask of ascend.cube_words
    int terms, step_order, step, a_exponent, b_exponent
    bint elementwise, in_place, saturate, clamp, half, reseed


cdef struct job:
    # what all steps of one call share
    cube_task task
    const float *a
    const float *b
    ptrdiff_t a_stride, b_stride
    mpg_split a_split, b_split
    float a_low_factor, b_low_factor
    int words, level, threads, high, width
    # the current block: its place in the result, its packed words, L0C in block.sums, C in totals
    ptrdiff_t row, column, rows, columns
    float *packed_a
    float *packed_b
    float *totals
    float *out
    cube_scales scales
    cube_block block


cdef ptrdiff_t round_up(ptrdiff_t x, ptrdiff_t multiple) noexcept nogil:
    return (x + multiple - 1) // multiple * multiple


cdef ptrdiff_t sums_size(job *j) noexcept nogil:
    return j.block.groups * j.block.panels * j.block.chains * j.high * j.width


cdef void pack(job *j, ptrdiff_t k0, ptrdiff_t depth) noexcept nogil:
    cdef mpg_fp_state state
    cdef ptrdiff_t i, pass_depth = CUBE_DEPTH // j.block.step * j.block.step
    j.block.depth = depth
    for i in prange(j.block.groups * j.high, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        cube_pack_a(j.a + (j.row + i) * j.a_stride + k0 if i < j.rows else NULL, i, j.block.groups, j.words, depth,
                    pass_depth, &j.a_split, j.a_low_factor, j.packed_a, j.level)
        mpg_fp_leave(state)
    for i in prange(depth, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        cube_pack_b(j.b + (k0 + i) * j.b_stride + j.column, j.columns, i, j.words, pass_depth, &j.b_split,
                    j.b_low_factor, j.packed_b, j.block.panels, j.level)
        mpg_fp_leave(state)


cdef void finish(job *j, ptrdiff_t group, ptrdiff_t group_end, ptrdiff_t panel, ptrdiff_t panel_end) noexcept nogil:
    """The result of the groups and panels of one tile."""
    cdef ptrdiff_t i, p, count, chain = j.high * j.width
    cdef const float *source
    cdef float *target
    for i in range(group * j.high, min(group_end * j.high, j.rows)):
        for p in range(panel, panel_end):
            count = min(<ptrdiff_t>j.width, j.columns - p * j.width)
            source = j.block.sums + (p * j.block.groups + i // j.high) * j.block.chains * chain + i % j.high * j.width
            target = j.out + (j.row + i) * j.b_stride + j.column + p * j.width
            if j.block.chains == 1:
                cube_store(source, count, target)
            else:
                cube_reconstruct(source, source + chain, source + 2 * chain,
                                 source + 3 * chain if j.scales.has_ll else NULL, count, &j.scales, target, j.level)


cdef void multiply(job *j, bint last) noexcept nogil:
    cdef ptrdiff_t groups = TILE // j.high, panels = max(TILE // j.width, 1)
    cdef ptrdiff_t down, across, task, group, panel, group_end, panel_end
    down = (j.block.groups + groups - 1) // groups
    across = (j.block.panels + panels - 1) // panels
    cdef mpg_fp_state state
    while j.threads > 1 and down * across < 3 * j.threads and groups * j.high > 32:
        if groups * j.high >= panels * j.width or panels == 1:
            groups //= 2
        else:
            panels //= 2
        down = (j.block.groups + groups - 1) // groups
        across = (j.block.panels + panels - 1) // panels
    for task in prange(down * across, num_threads=j.threads, schedule="dynamic"):
        state = mpg_fp_enter()
        group = task // across * groups
        panel = task % across * panels
        group_end = min(group + groups, j.block.groups)
        panel_end = min(panel + panels, j.block.panels)
        cube_tile(&j.block, group, group_end, panel, panel_end, j.level)
        if last:
            finish(j, group, group_end, panel, panel_end)
        mpg_fp_leave(state)


cdef void seed(job *j, const float *c, ptrdiff_t n) noexcept nogil:
    """C of the caller into the first chain of L0C."""
    cdef ptrdiff_t i, panel, tile = j.block.chains * j.high * j.width
    for i in range(j.rows):
        for panel in range(j.block.panels):
            memcpy(j.block.sums + (panel * j.block.groups + i // j.high) * tile + i % j.high * j.width,
                   c + (j.row + i) * n + j.column + panel * j.width,
                   min(<ptrdiff_t>j.width, j.columns - panel * j.width) * sizeof(float))


cdef int run_group(job *j, ptrdiff_t start, ptrdiff_t end, bint fresh, bint last) except -1:
    """The chains of one k group, from 0 if `fresh` and else from L0C; the result goes out if it is the last."""
    cdef ptrdiff_t longest = CUBE_BLOCK // j.block.step * j.block.step, depth
    while start < end:
        depth = min(longest, end - start)
        with nogil:
            j.block.fresh = fresh
            pack(j, start, depth)
            multiply(j, last and start + depth == end)
        start += depth
        fresh = False
        PyErr_CheckSignals()
    return 0


cdef int run_together(job *j, const int64_t[::1] group_ends, bint seeded) except -1:
    """All chains over all k groups."""
    cdef ptrdiff_t g, start = 0, size = sums_size(j), groups = group_ends.shape[0]
    if j.task.reseed or groups == 1:
        for g in range(groups):
            run_group(j, start, group_ends[g], g == 0 and not seeded, g + 1 == groups)
            start = group_ends[g]
        return 0
    for g in range(groups):
        run_group(j, start, group_ends[g], g > 0 or not seeded, False)
        start = group_ends[g]
        if g == 0:
            memcpy(j.totals, j.block.sums, size * sizeof(float))
        else:
            cube_accumulate(j.totals, j.block.sums, size, 1.0, j.block.half, j.block.clamp)
    finish_totals(j)
    return 0


cdef int scale_exponent(const job *j, int term) noexcept nogil:
    """The exponent by which the words of a term are too large."""
    return (j.task.a_exponent if term & 1 else 0) + (j.task.b_exponent if term & 2 else 0)


cdef int run_in_place(job *j, const int64_t[::1] group_ends, bint seeded) except -1:
    """One term after the other into one C."""
    cdef ptrdiff_t g, start, size = sums_size(j)
    cdef int term, terms = j.block.terms, exponent
    cdef bint first = True, reseed = j.task.reseed
    for term in range(CUBE_TERMS):
        if not terms >> term & 1:
            continue
        j.block.terms = 1 << term
        exponent = scale_exponent(j, term)
        start = 0
        for g in range(group_ends.shape[0]):
            if reseed and not first:
                cube_scale(j.totals, size, <float>ldexp(1.0, exponent), j.block.clamp, j.block.sums)
            run_group(j, start, group_ends[g], not seeded if first else not reseed, False)
            start = group_ends[g]
            if first or reseed:
                cube_scale(j.block.sums, size, <float>ldexp(1.0, -exponent), j.block.clamp, j.totals)
            else:
                cube_accumulate(j.totals, j.block.sums, size, <float>ldexp(1.0, -exponent), 0, j.block.clamp)
            first = False
    j.block.terms = terms
    finish_totals(j)
    return 0


cdef void finish_totals(job *j) noexcept:
    """The result of the whole block from C instead of L0C."""
    memcpy(j.block.sums, j.totals, sums_size(j) * sizeof(float))
    finish(j, 0, j.block.groups, 0, j.block.panels)


cdef void make_scales(cube_scales *scales, int a_exponent, int b_exponent, bint has_ll, bint clamp) noexcept:
    cdef int common = max(a_exponent, b_exponent)
    scales.low_scale = <float>ldexp(1.0, -common)
    scales.lh_scale = <float>ldexp(1.0, common - a_exponent)
    scales.hl_scale = <float>ldexp(1.0, common - b_exponent)
    scales.ll_scale = <float>ldexp(1.0, common - a_exponent - b_exponent)
    scales.has_ll = has_ll
    scales.clamp = clamp


cdef void describe(job *j) noexcept:
    cdef int term
    cdef bint elementwise = j.task.elementwise
    j.words = 1 if j.task.terms == 1 else 2
    j.high, j.width = cube_row_multiple(j.level), cube_panel_width(j.level)
    j.a_split = mpg_split_parameters(j.task.a_exponent, j.task.saturate, 0 if j.task.saturate else HALF_NAN, not j.task.saturate)
    j.b_split = mpg_split_parameters(j.task.b_exponent, j.task.saturate, 0 if j.task.saturate else HALF_NAN, not j.task.saturate)
    j.a_low_factor = <float>ldexp(1.0, -j.task.a_exponent) if elementwise else 1.0
    j.b_low_factor = <float>ldexp(1.0, -j.task.b_exponent) if elementwise else 1.0
    j.block.terms, j.block.elementwise, j.block.step_order = j.task.terms, elementwise, j.task.step_order
    j.block.step, j.block.clamp, j.block.half = j.task.step, j.task.clamp, j.task.half
    if elementwise or j.task.in_place or j.task.terms == 1:
        j.block.chains = 1
    else:
        j.block.chains = 4 if j.task.terms >> CUBE_LL & 1 else 3
    for term in range(CUBE_TERMS):  # products are multiples of 2^-48 below 2^32: both parts of 2^-6 sum exactly
        j.block.bin[term] = ldexp(1.5, 52 - 6 - (scale_exponent(j, term) if elementwise else 0))
    make_scales(&j.scales, j.task.a_exponent, j.task.b_exponent, j.block.chains == 4, j.task.clamp)


def run(const float[:, ::1] a, const float[:, ::1] b, const float[:, ::1] c, const int64_t[::1] group_ends,
        float[:, ::1] out, dict task, int level, int threads):
    """Split a and b and run the chains of the whole product into `out`; arguments are checked by ascend.cube.

    `group_ends` holds the end of each k group, the last one k. `c` seeds the first chain, or is None. `task` has the fields of
    ascend.cube_words.CubeTask.
    """
    cdef job j
    cdef Workspace workspace
    cdef ptrdiff_t m = a.shape[0], k = a.shape[1], n = b.shape[1], passes, size
    cdef bint keep_totals
    if m == 0 or n == 0 or k == 0:
        raise ValueError("the kernel needs at least one product for each element")
    memset(&j, 0, sizeof(job))
    j.task, j.level, j.threads = task, level, threads
    describe(&j)
    j.a, j.b, j.out = &a[0, 0], &b[0, 0], &out[0, 0]
    j.a_stride, j.b_stride = k, n

    keep_totals = j.task.in_place or (group_ends.shape[0] > 1 and not j.task.reseed)
    j.block.groups = round_up(min(m, CUBE_BLOCK), j.high) // j.high
    j.block.panels = round_up(min(n, CUBE_BLOCK), j.width) // j.width
    passes = min(k, CUBE_BLOCK) // (CUBE_DEPTH // j.block.step * j.block.step) + 1
    size = round_up(sums_size(&j), LINE)
    workspace = Workspace(((2 if keep_totals else 1) * size
                           + passes * 2 * CUBE_DEPTH * (j.block.groups * j.high + j.block.panels * j.width) + LINE) * sizeof(float))
    j.block.sums = <float *>workspace.data
    j.totals = j.block.sums + size if keep_totals else j.block.sums
    j.packed_b = j.totals + size
    j.packed_a = j.packed_b + passes * 2 * CUBE_DEPTH * j.block.panels * j.width
    j.block.a, j.block.b = j.packed_a, j.packed_b
    for j.column in range(0, n, CUBE_BLOCK):
        j.columns = min(CUBE_BLOCK, n - j.column)
        j.block.panels = round_up(j.columns, j.width) // j.width
        for j.row in range(0, m, CUBE_BLOCK):
            j.rows = min(CUBE_BLOCK, m - j.row)
            j.block.groups = round_up(j.rows, j.high) // j.high
            if c is not None:
                memset(j.block.sums, 0, sums_size(&j) * sizeof(float))
                seed(&j, &c[0, 0], n)
            if j.task.in_place:
                run_in_place(&j, group_ends, c is not None)
            else:
                run_together(&j, group_ends, c is not None)


def reconstruct(const float[::1] hh, const float[::1] lh, const float[::1] hl, const float[::1] ll, float[::1] out, *,
                int a_exponent, int b_exponent, bint clamp, int level):
    """Termwise reconstruction of flat arrays of one length; `ll` is None or the fourth term."""
    cdef cube_scales scales
    cdef ptrdiff_t count = hh.shape[0]
    if count == 0:
        return
    make_scales(&scales, a_exponent, b_exponent, ll is not None, clamp)
    with nogil:
        cube_reconstruct(&hh[0], &lh[0], &hl[0], &ll[0] if scales.has_ll else NULL, count, &scales, &out[0],
                         level)
