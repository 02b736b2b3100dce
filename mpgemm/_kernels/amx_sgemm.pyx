"""Computes FP32 products from words on AMX or on its emulation; amx_sgemm.h defines layout and order, mpgemm.sgemm checks operands."""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uintptr_t

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "amx_sgemm.h" nogil:
    enum: SGEMM_PANEL, SGEMM_STEP_BYTES, SGEMM_PAIRS, SGEMM_WORDS, SGEMM_DEPTH, SGEMM_DEPTH_INT8, SGEMM_PEAK_STEPS, MPG_UNIT_READY

    ctypedef struct sgemm_job:
        const char *a
        const char *b
        int64_t a_word, b_word, steps, block, m, n, plane
        char *d
        int first, is_int8, pairs
        int left[SGEMM_PAIRS]
        int right[SGEMM_PAIRS]
        int level[SGEMM_PAIRS]

    ctypedef struct sgemm_range:
        uint32_t largest, smallest

    void sgemm_pack(int is_b, const float *source, int64_t stride, int64_t panel, int64_t extent, int64_t depth, char *packed,
                    int64_t word, sgemm_range *range, int level)
    void sgemm_pack_int8(int is_b, const int8_t *source, int64_t stride, int64_t panel, int64_t extent, int64_t depth, char *packed)
    void sgemm_tiles(const sgemm_job *job, int emulated, int64_t i0, int64_t i1, int64_t j0, int64_t j1)
    void sgemm_peak(const char *words, int64_t rounds, int is_int8, int emulated)
    int sgemm_state(int is_int8)

#: Products of k in one step of the tiles, for bf16 and for int8 words.
STEP, STEP_INT8 = SGEMM_DEPTH, SGEMM_DEPTH_INT8
#: Panels of A and of B in a task, so that 256 k of both operands and the task's results stay in the second-level cache.
cdef int64_t TASK = 8


def state(bint is_int8):
    """Return why the unit cannot be used, an index of tensorcore_models._kernels.cpu_units.cpu_units.STATES; 0 if it can."""
    return sgemm_state(is_int8)


def peak(const uint8_t[::1] words, int64_t rounds, bint is_int8, bint emulated, int threads):
    """Run only products, `rounds` times on each thread, on the caller's random bytes, and return the number of multiply-adds.

    Raises
    ------
    ValueError, RuntimeError
        If there are fewer than 16384 bytes, or the unit cannot be used.
    """
    cdef int _thread
    if words.shape[0] < 2 * SGEMM_PEAK_STEPS * SGEMM_STEP_BYTES:
        raise ValueError(f"words has {words.shape[0]} bytes, expected at least {2 * SGEMM_PEAK_STEPS * SGEMM_STEP_BYTES}")
    if not emulated and sgemm_state(is_int8) != MPG_UNIT_READY:
        raise RuntimeError("the AMX unit cannot be used here")
    with nogil:
        for _thread in prange(threads, num_threads=threads, schedule="static", chunksize=1):
            sgemm_peak(<const char *>&words[0], rounds, is_int8, emulated)
    return threads * rounds * SGEMM_PEAK_STEPS * SGEMM_PANEL * SGEMM_PANEL * (SGEMM_DEPTH_INT8 if is_int8 else SGEMM_DEPTH)


cdef int64_t _up(int64_t x, int64_t unit) noexcept nogil:
    return (x + unit - 1) // unit


def workspace_bytes(int64_t m, int64_t n, int64_t depth, int words, bint is_int8):
    """Return the bytes of workspace for slices of `depth` products."""
    cdef int64_t steps = _up(depth, SGEMM_DEPTH_INT8 if is_int8 else SGEMM_DEPTH)
    cdef int64_t panels = _up(m, SGEMM_PANEL) + _up(n, SGEMM_PANEL)
    return words * panels * steps * SGEMM_STEP_BYTES + panels * <int64_t>sizeof(sgemm_range) + 128


cdef int _open(sgemm_job *job, pairs, int words, bint is_int8, bint emulated) except -1:
    """Check the list of products and store it in the job."""
    if not 0 < len(pairs) <= SGEMM_PAIRS:
        raise ValueError(f"got {len(pairs)} products, expected 1 to {SGEMM_PAIRS}")
    if not emulated and sgemm_state(is_int8) != MPG_UNIT_READY:
        raise RuntimeError("the AMX unit cannot be used here")
    job.pairs = len(pairs)
    job.is_int8 = is_int8
    for p, (i, j, level) in enumerate(pairs):
        if not (0 <= i < words and 0 <= j < words and level >= 0):
            raise ValueError(f"got product ({i}, {j}) of level {level}, expected words from 0 to {words - 1} and a level of at least 0")
        job.left[p], job.right[p], job.level[p] = i, j, level
    return 0


cdef int _multiply(const sgemm_job *job, bint emulated, int threads) except -1:
    """Compute all tiles of a slice."""
    cdef mpg_fp_state state
    cdef int64_t rows = _up(job.m, SGEMM_PANEL), columns = _up(job.n, SGEMM_PANEL), high = TASK, wide = TASK, across, i
    cdef int64_t first = 0, last, tasks, at_once
    while threads > 1 and high > 1 and _up(rows, high) * _up(columns, wide) < 3 * threads:
        if wide >= high:
            wide = wide // 2
        else:
            high = high // 2
    across = _up(columns, wide)
    tasks = _up(rows, high) * across
    # the emulation is some thousand times slower, so signals are checked after every task of it
    at_once = threads if emulated else max(<int64_t>threads, <int64_t>(1 << 22) // max(<int64_t>1, high * wide * job.steps * job.pairs))
    while first < tasks:
        last = min(tasks, first + at_once)
        with nogil:
            for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                state = mpg_fp_enter()
                sgemm_tiles(job, emulated, i // across * high, min((i // across + 1) * high, rows), i % across * wide,
                            min((i % across + 1) * wide, columns))
                mpg_fp_leave(state)
        first = last
        PyErr_CheckSignals()
    return 0


cdef struct words_task:
    int64_t restart, depth
    bint first, emulated


def multiply_words(const float[:, ::1] a, const float[:, ::1] b, float[:, ::1] d, uint8_t[::1] workspace, pairs, dict task,
                   object accept, int level, int threads):
    """Add a (m, k) b (k, n) to d (m, n), or store it there with `first`, computed from three bf16 words of each operand.

    Parameters
    ----------
    pairs : list of (int, int)
        Products of words, in order.
    task : dict
        `restart`: number of products of k, a multiple of STEP, after which the tiles are added to d and start from zero. `depth`: number
        of products of k that are packed at a time, a multiple of `restart`. `first`, `emulated`: bool.
    accept : callable
        accept(largest |a|, smallest nonzero |a|, largest |b|, smallest nonzero |b|) gets float32 encodings of the elements so far
        (0x100000000 if there is no nonzero element). If it does not return None, the product ends and returns that value, and d is
        not valid.
    """
    cdef int64_t m = d.shape[0], n = d.shape[1], k = a.shape[1], begin, i, length, rows = _up(m, SGEMM_PANEL)
    cdef words_task t = task
    cdef int64_t columns = _up(n, SGEMM_PANEL), restart = t.restart, depth = t.depth
    cdef sgemm_job job
    cdef sgemm_range left, right
    cdef sgemm_range *ranges
    cdef char *packed_a
    cdef char *packed_b
    cdef mpg_fp_state state
    if a.shape[0] != m or b.shape[0] != k or b.shape[1] != n:
        raise ValueError(
            f"got shapes ({a.shape[0]}, {k}), ({b.shape[0]}, {b.shape[1]}) and ({m}, {n}), expected (m, k), (k, n) and (m, n)")
    if restart < SGEMM_DEPTH or restart % SGEMM_DEPTH or depth < restart or depth % restart:
        raise ValueError(f"restart is {restart} and depth is {depth}, expected a multiple of {SGEMM_DEPTH} and a multiple of restart")
    if workspace.shape[0] < workspace_bytes(m, n, min(k, depth), SGEMM_WORDS, False):
        raise ValueError(f"the workspace has {workspace.shape[0]} bytes, "
                         f"expected at least workspace_bytes() for slices of k of length {depth}")
    _open(&job, [(x, y, 0) for x, y in pairs], SGEMM_WORDS, False, t.emulated)
    left.largest = right.largest = 0
    left.smallest = right.smallest = 0xFFFFFFFFu
    if m == 0 or n == 0 or k == 0:
        return None
    ranges = <sgemm_range *>((<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63)
    packed_a = <char *>((<uintptr_t>(ranges + rows + columns) + 63) & ~<uintptr_t>63)
    job.m, job.n, job.block, job.plane = m, n, restart // SGEMM_DEPTH, 0
    job.d = <char *>&d[0, 0]
    for begin in range(0, k, depth):
        length = min(depth, k - begin)
        job.steps = _up(length, SGEMM_DEPTH)
        job.a_word, job.b_word = rows * job.steps * SGEMM_STEP_BYTES, columns * job.steps * SGEMM_STEP_BYTES
        packed_b = packed_a + SGEMM_WORDS * job.a_word
        job.a, job.b, job.first = packed_a, packed_b, t.first and begin == 0
        with nogil:
            for i in prange(rows + columns, num_threads=threads, schedule="dynamic"):
                state = mpg_fp_enter()
                ranges[i].largest = 0
                ranges[i].smallest = 0xFFFFFFFFu
                if i < rows:
                    sgemm_pack(0, &a[0, begin], k, i, m, length, packed_a, job.a_word, &ranges[i], level)
                else:
                    sgemm_pack(1, &b[begin, 0], n, i - rows, n, length, packed_b, job.b_word, &ranges[i], level)
                mpg_fp_leave(state)
        for i in range(rows):
            left.largest, left.smallest = max(left.largest, ranges[i].largest), min(left.smallest, ranges[i].smallest)
        for i in range(rows, rows + columns):
            right.largest, right.smallest = max(right.largest, ranges[i].largest), min(right.smallest, ranges[i].smallest)
        refused = accept(left.largest, <int64_t>left.smallest + 1, right.largest, <int64_t>right.smallest + 1)
        if refused is not None:
            return refused
        _multiply(&job, t.emulated, threads)
    return None


def multiply_slices(const int8_t[:, :, ::1] a, const int8_t[:, :, ::1] b, int32_t[:, :, ::1] d, uint8_t[::1] workspace, pairs,
                    bint emulated, int threads):
    """Store in d (levels, m, n), int32, the sum of the products of words of each level, for a (words, m, k) and b (words, k, n).

    Parameters
    ----------
    pairs : list of (int, int, int)
        Word of a, word of b and level; pairs of a level are neighbours. Every level of d must be named.
    """
    cdef int64_t m = d.shape[1], n = d.shape[2], k = a.shape[2], i, rows = _up(m, SGEMM_PANEL), columns = _up(n, SGEMM_PANEL)
    cdef int words = a.shape[0]
    cdef sgemm_job job
    cdef char *packed_a
    cdef char *packed_b
    cdef mpg_fp_state state
    if a.shape[1] != m or b.shape[1] != k or b.shape[2] != n or b.shape[0] != words:
        raise ValueError(
            f"got shapes {(words, a.shape[1], k)}, {(b.shape[0], b.shape[1], b.shape[2])} and {(m, n)}, "
            "expected (words, m, k), (words, k, n) and (m, n)")
    if [level for level in range(d.shape[0])] != list(dict.fromkeys(level for _, _, level in pairs)):
        raise ValueError(f"got products {pairs} (i, j, level), expected every level from 0 to {d.shape[0] - 1}, in order")
    if workspace.shape[0] < workspace_bytes(m, n, k, words, True):
        raise ValueError(f"the workspace has {workspace.shape[0]} bytes, "
                         f"expected at least workspace_bytes() for {words} words of {m} x {k} x {n}")
    _open(&job, pairs, words, True, emulated)
    if m == 0 or n == 0 or k == 0:
        return
    packed_a = <char *>((<uintptr_t>&workspace[0] + 63) & ~<uintptr_t>63)
    job.m, job.n, job.plane, job.first = m, n, m * n * 4, True
    job.steps = job.block = _up(k, SGEMM_DEPTH_INT8)
    job.a_word, job.b_word = rows * job.steps * SGEMM_STEP_BYTES, columns * job.steps * SGEMM_STEP_BYTES
    packed_b = packed_a + words * job.a_word
    job.a, job.b, job.d = packed_a, packed_b, <char *>&d[0, 0, 0]
    with nogil:
        for i in prange(words * (rows + columns), num_threads=threads, schedule="dynamic"):
            state = mpg_fp_enter()
            if i < words * rows:
                sgemm_pack_int8(0, &a[i // rows, 0, 0], k, i % rows, m, k, packed_a + i // rows * job.a_word)
            else:
                sgemm_pack_int8(1, &b[(i - words * rows) // columns, 0, 0], n, (i - words * rows) % columns, n, k,
                                packed_b + (i - words * rows) // columns * job.b_word)
            mpg_fp_leave(state)
    _multiply(&job, emulated, threads)
