"""Every accumulator over matrices of encodings, whatever its operands; docs/kernels.md says how.

The arithmetic is in the headers generic_*.h; tensorcore_models.kernels.lowering turns specifications into the fields of a
:class:`Plan`, tensorcore_models.kernels calls :meth:`Plan.run`.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

HAS_WIDE = bool(MPG_HAS_WIDE)
PANEL = MPG_PANEL
MAX_TERMS = MPG_MAX_TERMS
MAX_PARTS = MPG_MAX_PARTS
MAX_GROUP = MPG_MAX_GROUP
MAX_LIMBS = MPG_MAX_LIMBS
ALIGN_NONE = MPG_ALIGN_NONE

# Multiply-adds of a thread between two looks at pending signals.
cdef int64_t SLICE = 1 << 22


cdef class Layout:
    """How the k of one pass are arranged: `order`, `bounds` of the segments, `tree` of additions (lists of int)."""

    cdef mpg_layout layout
    cdef int32_t *memory

    def __cinit__(self, order, bounds, tree=()):
        cdef Py_ssize_t i, total = len(order) + len(bounds) + len(tree)
        self.memory = <int32_t *>malloc((total + 1) * sizeof(int32_t))
        if self.memory == NULL:
            raise MemoryError("no memory for the arrangement of a pass")
        for i, value in enumerate([*order, *bounds, *tree]):
            self.memory[i] = value
        self.layout.count = len(order)
        self.layout.segments = len(bounds) - 1
        self.layout.order = self.memory
        self.layout.bounds = self.memory + len(order)
        self.layout.tree = self.memory + len(order) + len(bounds)

    def __dealloc__(self):
        free(self.memory)


cdef mpg_format _format(fields):
    cdef mpg_format f
    f.exponent_bits = fields["exponent_bits"]
    f.fraction_bits = fields["fraction_bits"]
    f.padding_bits = fields["padding_bits"]
    f.specials = fields["specials"]
    f.sign_bit = fields["sign_bit"]
    f.emin = fields["emin"]
    f.bias = fields["bias"]
    f.keep_padded_nan = fields["keep_padded_nan"]
    f.zero_align = fields["zero_align"]
    f.normalise = fields["normalise"]
    f.flush = fields["flush"]
    f.flush_below = fields["flush_below"]
    return f


cdef mpg_rule _rule(fields):
    cdef mpg_rule r
    memset(&r, 0, sizeof(mpg_rule))  # what lies between its members shows in to_bytes
    r.rounding = fields["rounding"]
    r.kept_bits = fields["kept_bits"]
    r.to_inf = fields["to_inf"]
    r.saturate = fields["saturate"]
    r.flush = fields["flush"]
    r.nan_operand = fields["nan_operand"]
    r.positive_underflow = fields["positive_underflow"]
    r.positive_zero = fields["positive_zero"]
    r.nan_code = fields["nan_code"]
    return r


cdef mpg_result _result(fields):
    cdef mpg_result t
    t.fraction_bits = fields["fraction_bits"]
    t.padding_bits = fields["padding_bits"]
    t.quantum_exponent = fields["quantum_exponent"]
    t.emax = fields["emax"]
    t.sign_bit = fields["sign_bit"]
    t.zero_sign = fields["zero_sign"]
    t.max_code = fields["max_code"]
    t.inf_code = fields["inf_code"]
    t.inf_sign = fields["inf_sign"]
    return t


cdef struct Call:
    # One call's matrices; jump: bytes from one matrix of a batch to the next (a, b, c, out, scale_a, scale_b).
    mpg_job job
    mpg_matrix a, b, c, scale_a, scale_b
    char *out
    int64_t jump[6]


cdef struct Work:
    # What one thread needs to run matrices of a batch.
    Call call
    mpg_packed x, y


cdef void _read(mpg_matrix *m, int64_t *jump, Py_buffer *view) noexcept:
    cdef int first = view.ndim - 2
    m.data = <const char *>view.buf
    m.row_stride = view.strides[first]
    m.column_stride = view.strides[first + 1]
    m.size = <int>view.itemsize
    jump[0] = view.strides[0] if first else 0


cdef void _transposed(mpg_matrix *m) noexcept:
    cdef int64_t stride = m.row_stride
    m.row_stride = m.column_stride
    m.column_stride = stride


cdef bint _allocate(const mpg_plan *p, mpg_packed *x, bint is_b, bint vector) noexcept nogil:
    """Memory of one packed operand; False if there is not enough."""
    cdef size_t rows = x.rows, depth = x.depth
    if mpg_is_lanes(p):
        if is_b:
            rows = (rows + MPG_LANES - 1) // MPG_LANES * MPG_LANES
        x.values = <double *>malloc((rows * depth + 1) * sizeof(double))
        return x.values != NULL
    if vector:
        if is_b:
            rows = (rows + MPG_PANEL - 1) // MPG_PANEL * MPG_PANEL
        x.memory = calloc(rows * depth * 16 + 64, 1)  # lanes beyond the last column stay zero
        x.special = <uint8_t *>calloc(rows * x.steps + 1, 1)
        x.words = <int64_t *>(<size_t>x.memory + 63 & ~<size_t>63)
        return x.memory != NULL and x.special != NULL
    x.significand = malloc((rows * depth + 1) * (8 if p.wide else 4))
    x.align = <int32_t *>malloc((rows * depth + 1) * sizeof(int32_t))
    x.special = <uint8_t *>malloc(rows * x.steps + 1)
    x.scale = <int32_t *>malloc((rows * x.blocks + 1) * sizeof(int32_t))
    x.scale_align = <int32_t *>malloc((rows * x.blocks + 1) * sizeof(int32_t))
    if x.special != NULL:
        memset(x.special, 0, rows * x.steps + 1)
    return x.significand != NULL and x.align != NULL and x.special != NULL and x.scale != NULL and x.scale_align != NULL


cdef void _free(mpg_packed *x) noexcept nogil:
    free(x.significand)
    free(x.align)
    free(x.special)
    free(x.scale)
    free(x.scale_align)
    free(x.values)
    free(x.memory)


cdef class Plan:
    """One accumulator with its formats, ready to run.

    Parameters
    ----------
    fields : dict
        Members of ``mpg_plan`` (generic_plan.h) by name, formats and rules as dicts of their own. Members that are not
        named are zero.
    """

    cdef mpg_plan plan
    cdef Layout whole

    def __cinit__(self, fields, Layout whole):
        memset(&self.plan, 0, sizeof(mpg_plan))
        self.whole = whole
        rest = dict(fields)
        self.plan.family = rest.pop("family")
        self.plan.wide = rest.pop("wide")
        self.plan.step = rest.pop("step")
        self.plan.vector = rest.pop("vector", 0)
        self.plan.narrow = rest.pop("narrow", 0)
        if "a" in rest:
            self.plan.a = _format(rest.pop("a"))
            self.plan.b = _format(rest.pop("b"))
            self.plan.c = _format(rest.pop("c"))
            self.plan.chained = _format(rest.pop("chained"))
            self.plan.raw_c = _format(rest.pop("raw_c"))
            self.plan.raw_d = _format(rest.pop("raw_d"))
            self.plan.result = _result(rest.pop("result"))
            self.plan.rule = _rule(rest.pop("rule"))
            self.plan.late = _rule(rest.pop("late"))
        if "scale" in rest:
            self.plan.scale = _format(rest.pop("scale"))
            self.plan.scaled = 1
            self.plan.block = rest.pop("block")
        self._set_sums(rest)
        self._set_others(rest)
        if rest:
            raise ValueError(f"unknown plan fields: {', '.join(rest)}")

    def to_bytes(self):
        """The fields as ``mpg_plan`` lies in memory: it has neither pointers nor sizes that depend on the machine's word."""
        return (<const char *>&self.plan)[: sizeof(mpg_plan)]

    cdef _set_sums(self, rest):
        cdef mpg_plan *p = &self.plan
        cdef int i
        p.late_c = rest.pop("late_c", 0)
        p.zero_sign = rest.pop("zero_sign", 0)
        p.zero_count = rest.pop("zero_count", 0)
        p.parts = 1
        if "part_masks" in rest:
            p.parts = len(rest["part_masks"])
            if p.parts > MPG_MAX_PARTS:
                raise ValueError(f"{p.parts} products of parts, at most {MPG_MAX_PARTS}")
            for i, (left, right) in enumerate(rest.pop("part_masks")):
                p.a_masks[i] = left
                p.b_masks[i] = right
        p.alignment = rest.pop("alignment", 0)
        p.fraction_bits = rest.pop("fraction_bits", 0)
        p.rounding = rest.pop("rounding", 0)
        p.sticky = rest.pop("sticky", 0)
        p.normalised = rest.pop("normalised", 0)
        p.product_fraction = rest.pop("product_fraction", 0)
        p.product_lift = max(0, p.fraction_bits + (p.sticky != 0) - p.product_fraction)
        p.product_integer = rest.pop("product_integer", 0)
        p.has_floor = "floor" in rest
        p.floor = rest.pop("floor", 0)
        p.has_limit = "limit" in rest
        p.limit = rest.pop("limit", 0)
        p.has_integer_bits = "integer_bits" in rest
        p.integer_bits = rest.pop("integer_bits", 0)
        p.has_cutoff = "cutoff" in rest
        p.cutoff = rest.pop("cutoff", 0)
        p.dot_fraction_bits = rest.pop("dot_fraction_bits", 0)
        p.c_fraction_bits = rest.pop("c_fraction_bits", 0)
        p.add_rounding = rest.pop("add_rounding", 0)
        p.c_wins = rest.pop("c_wins", 0)
        p.sum_fraction_bits = rest.pop("sum_fraction_bits", 0)
        p.skip_scaled_zero = rest.pop("skip_scaled_zero", 0)
        p.base = rest.pop("base", 0)
        p.limbs = rest.pop("limbs", 0)

    cdef _set_others(self, rest):
        cdef mpg_plan *p = &self.plan
        p.chained_flush = rest.pop("chained_flush", 0.0)
        p.c_flush = rest.pop("c_flush", 0.0)
        p.c_flush_passes = rest.pop("c_flush_passes", 0)
        p.a_bits = rest.pop("a_bits", 0)
        p.b_bits = rest.pop("b_bits", 0)
        p.c_bits = rest.pop("c_bits", 0)
        p.d_bits = rest.pop("d_bits", 0)
        p.a_signed = rest.pop("a_signed", 0)
        p.b_signed = rest.pop("b_signed", 0)
        p.c_signed = rest.pop("c_signed", 0)
        p.d_signed = rest.pop("d_signed", 0)
        p.clamp = rest.pop("clamp", 0)

    def run(self, a, b, c, out, scale_a, scale_b, Layout tail, int isa, int threads):
        """out = a b + c, encodings; a (m, k), b (k, n), c (m, n) aligned and native, out (m, n) C-contiguous, k > 0.

        `tail` arranges the last pass where k is no multiple of the pass, else it is the arrangement of a whole one.
        """
        cdef Call call
        cdef Py_buffer views[6]
        cdef int i
        cdef mpg_packed x, y
        try:
            self._open(&call, views, (a, b, c, out, scale_a, scale_b), 2, tail, isa, &x, &y)
            with nogil:
                i = _allocate(&self.plan, &x, False, call.job.vector) and _allocate(&self.plan, &y, True, call.job.vector)
            if not i:
                raise MemoryError(f"no memory to take operands of {x.rows} x {x.depth} x {y.rows} apart")
            _assign(&call, 0, &x, &y)
            self._pack(&call.job, &call.a, &call.scale_a, &x, False, threads)
            self._pack(&call.job, &call.b, &call.scale_b, &y, True, threads)
            self._multiply(&call.job, threads)
        finally:
            _free(&x)
            _free(&y)
            for i in range(6):
                PyBuffer_Release(&views[i])

    def run_batch(self, a, b, c, out, scale_a, scale_b, Layout tail, int isa, int threads):
        """The same for a batch: every array has a leading dimension; for matrices that are too small to share out."""
        cdef Py_buffer views[6]
        cdef Call call
        cdef int i, enough = 1
        cdef int64_t count, part, slice_end, begin = 0, at_once
        cdef Work *work = NULL
        cdef mpg_packed x, y
        try:
            self._open(&call, views, (a, b, c, out, scale_a, scale_b), 3, tail, isa, &x, &y)
            count = views[0].shape[0]
            at_once = max(1, SLICE // max(1, x.rows * y.rows * x.depth)) * threads
            work = <Work *>calloc(threads, sizeof(Work))
            if work == NULL:
                raise MemoryError("no memory for the threads' workspaces")
            for i in range(threads):
                work[i].call = call
                work[i].x = x
                work[i].y = y
                enough = (enough and _allocate(&self.plan, &work[i].x, False, call.job.vector)
                          and _allocate(&self.plan, &work[i].y, True, call.job.vector))
            if not enough:
                raise MemoryError(f"no memory to take operands of {x.rows} x {x.depth} x {y.rows} apart")
            while begin < count:
                slice_end = min(count, begin + at_once)
                if threads == 1:
                    with nogil:
                        _batch_part(work, begin, slice_end)
                else:
                    with nogil:
                        for part in prange(threads, num_threads=threads, schedule="static", chunksize=1):
                            _batch_part(&work[part], begin + (slice_end - begin) * part // threads,
                                        begin + (slice_end - begin) * (part + 1) // threads)
                begin = slice_end
                if begin < count:
                    PyErr_CheckSignals()
        finally:
            if work != NULL:
                for i in range(threads):
                    _free(&work[i].x)
                    _free(&work[i].y)
                free(work)
            for i in range(6):
                PyBuffer_Release(&views[i])

    cdef int _open(self, Call *call, Py_buffer *views, arrays, int ndim, Layout tail, int isa, mpg_packed *x,
                   mpg_packed *y) except -1:
        """Take the arrays' buffers and check them; x and y get their sizes but no memory."""
        cdef int i
        cdef const mpg_plan *p = &self.plan
        memset(views, 0, 6 * sizeof(Py_buffer))
        memset(call, 0, sizeof(Call))
        memset(x, 0, sizeof(mpg_packed))
        memset(y, 0, sizeof(mpg_packed))
        for i in range(6 if p.scaled else 4):
            PyObject_GetBuffer(arrays[i], &views[i], PyBUF_STRIDED_RO)
            if views[i].ndim != ndim:
                raise ValueError(f"expected arrays of {ndim} dimensions, got {views[i].ndim}")
        self._check(views, ndim - 2)
        i = ndim - 2
        _read(&call.a, &call.jump[0], &views[0])
        _read(&call.b, &call.jump[1], &views[1])
        _read(&call.c, &call.jump[2], &views[2])
        _transposed(&call.b)
        if p.scaled:
            _read(&call.scale_a, &call.jump[4], &views[4])
            _read(&call.scale_b, &call.jump[5], &views[5])
            _transposed(&call.scale_b)
        x.rows = views[0].shape[i]
        y.rows = views[1].shape[i + 1]
        x.depth = y.depth = views[0].shape[i + 1] * p.parts
        x.steps = y.steps = (x.depth + p.step - 1) // p.step
        if p.scaled:
            x.blocks = y.blocks = (x.depth + p.block - 1) // p.block
        call.out = <char *>views[3].buf
        call.jump[3] = x.rows * y.rows * views[3].itemsize
        call.job.plan = p
        call.job.whole = &self.whole.layout
        call.job.tail = &tail.layout
        call.job.columns = y.rows
        call.job.out_size = <int>views[3].itemsize
        call.job.isa = isa
        call.job.vector = mpg_runs_vectors(p, isa, y.rows)
        if call.job.vector:
            call.job.rules.fused = mpg_vector_rule_of(&p.result, &p.rule)
            call.job.rules.late = mpg_vector_rule_of(&p.result, &p.late)
        return 0

    cdef _check(self, Py_buffer *v, int first):
        cdef int64_t m = v[0].shape[first], k = v[0].shape[first + 1], n = v[1].shape[first + 1]
        cdef int64_t blocks = (k + self.plan.block - 1) // self.plan.block if self.plan.scaled else 0
        cdef bint right = (v[1].shape[first] == k and v[2].shape[first] == m and v[2].shape[first + 1] == n
                           and v[3].shape[first] == m and v[3].shape[first + 1] == n and k > 0)
        cdef int i
        if self.plan.scaled:
            right = (right and v[4].shape[first] == m and v[4].shape[first + 1] >= blocks
                     and v[5].shape[first] >= blocks and v[5].shape[first + 1] == n)
        if first:
            for i in range(6 if self.plan.scaled else 4):
                right = right and v[i].shape[0] == v[0].shape[0]
        if not right:
            raise ValueError("shapes do not fit: expected a (m, k), b (k, n), c (m, n), scales (m, k/bs) and (k/bs, n)")

    cdef _pack(self, const mpg_job *job, const mpg_matrix *source, const mpg_matrix *scale, mpg_packed *out, bint is_b,
               int threads):
        cdef const mpg_plan *p = job.plan
        cdef bint lanes = mpg_is_lanes(p)
        cdef int64_t unit = MPG_LANES if not lanes or is_b else 1
        cdef int64_t parts = (out.rows + unit - 1) // unit, begin = 0, end, part
        cdef int64_t at_once = max(<int64_t>threads, SLICE // max(1, 8 * unit * out.depth))
        while begin < parts:
            end = min(parts, begin + at_once)
            if threads == 1:
                with nogil:
                    for part in range(begin, end):
                        _pack_part(job, source, scale, out, is_b, lanes, part)
            else:
                with nogil:
                    for part in prange(begin, end, num_threads=threads, schedule="dynamic"):
                        _pack_part(job, source, scale, out, is_b, lanes, part)
            begin = end
            if begin < parts:
                PyErr_CheckSignals()

    cdef _multiply(self, const mpg_job *job, int threads):
        cdef int64_t m = job.a.rows, n = job.b.rows, depth = job.a.depth
        cdef int64_t tile_rows = 8, tile_columns = 64
        while tile_rows > 1 and tile_rows * tile_columns * depth > SLICE // 4:
            tile_rows //= 2
        if tile_rows * tile_columns * depth > SLICE // 4:
            tile_columns = MPG_LANES
        cdef int64_t across = (n + tile_columns - 1) // tile_columns
        cdef int64_t tiles = across * ((m + tile_rows - 1) // tile_rows)
        cdef int64_t at_once = max(1, SLICE // (tile_rows * tile_columns * max(1, depth))) * threads
        cdef int64_t begin = 0, end, tile
        while begin < tiles:
            end = min(tiles, begin + at_once)
            if threads == 1:
                with nogil:
                    for tile in range(begin, end):
                        _tile(job, tile, across, tile_rows, tile_columns)
            else:
                with nogil:
                    for tile in prange(begin, end, num_threads=threads, schedule="dynamic"):
                        _tile(job, tile, across, tile_rows, tile_columns)
            begin = end
            if begin < tiles:
                PyErr_CheckSignals()


cdef void _assign(Call *call, int64_t item, mpg_packed *x, mpg_packed *y) noexcept nogil:
    """Point the call's job at matrix `item` of the batch."""
    call.job.a = x
    call.job.b = y
    call.job.a_source = &call.a
    call.job.b_source = &call.b
    call.job.c = &call.c
    call.job.out = call.out + item * call.jump[3]


cdef void _batch_part(Work *w, int64_t begin, int64_t end) noexcept nogil:
    cdef int64_t item, part, unit
    cdef bint lanes = mpg_is_lanes(w.call.job.plan)
    cdef Call call
    cdef mpg_fp_state state = mpg_fp_enter()
    for item in range(begin, end):
        call = w.call
        call.a.data += item * call.jump[0]
        call.b.data += item * call.jump[1]
        call.c.data += item * call.jump[2]
        call.scale_a.data += item * call.jump[4]
        call.scale_b.data += item * call.jump[5]
        _assign(&call, item, &w.x, &w.y)
        unit = 1 if lanes else MPG_LANES
        for part in range((w.x.rows + unit - 1) // unit):
            _pack_part(&call.job, &call.a, &call.scale_a, &w.x, False, lanes, part)
        for part in range((w.y.rows + MPG_LANES - 1) // MPG_LANES):
            _pack_part(&call.job, &call.b, &call.scale_b, &w.y, True, lanes, part)
        mpg_tile(&call.job, 0, w.x.rows, 0, w.y.rows)
    mpg_fp_leave(state)


cdef void _pack_part(const mpg_job *job, const mpg_matrix *source, const mpg_matrix *scale, mpg_packed *out, bint is_b,
                     bint lanes, int64_t part) noexcept nogil:
    cdef mpg_fp_state state = mpg_fp_enter()
    if is_b and mpg_packs_vectors(job):
        mpg_vector_columns(job, source, part * MPG_LANES, min((part + 1) * MPG_LANES, out.rows), out)
    elif not lanes:
        mpg_pack_rows(job.plan, is_b, source, scale, job.whole, job.tail, part * MPG_LANES,
                      min((part + 1) * MPG_LANES, out.rows), out)
    elif is_b:
        mpg_pack_panel(job.plan, source, job.whole, job.tail, part, out)
    else:
        mpg_pack_values(job.plan, source, job.whole, job.tail, part, out)
    mpg_fp_leave(state)


cdef void _tile(const mpg_job *job, int64_t tile, int64_t across, int64_t rows, int64_t columns) noexcept nogil:
    cdef int64_t i = tile // across * rows, j = tile % across * columns
    cdef mpg_fp_state state = mpg_fp_enter()
    mpg_tile(job, i, min(i + rows, job.a.rows), j, min(j + columns, job.b.rows))
    mpg_fp_leave(state)
