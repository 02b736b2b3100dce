"""Every accumulator over matrices of encodings, without regard to speed above 0.1 G multiply-adds a second and thread.

The arithmetic stands in the headers generic_*.h; tensorcore_models.lowering turns specifications into the fields of a
:class:`Plan`, tensorcore_models.kernels calls :meth:`Plan.run`.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

cdef extern from "generic_pack.h":
    int MPG_HAS_WIDE
    int MPG_LANES
    int MPG_MAX_TERMS, MPG_MAX_GROUP, MPG_MAX_LIMBS
    int MPG_ALIGN_NONE

    ctypedef struct mpg_format:
        int exponent_bits, fraction_bits, padding_bits, specials
        uint64_t sign_bit
        int32_t emin, bias
        int keep_padded_nan
        int32_t zero_align
        int normalise, flush
        int32_t flush_below

    ctypedef struct mpg_result:
        int fraction_bits, padding_bits
        int32_t quantum_exponent, emax
        uint64_t sign_bit, zero_sign, max_code, inf_code, inf_sign

    ctypedef struct mpg_rule:
        int rounding, kept_bits, to_inf, saturate, flush, positive_underflow
        uint64_t nan_code

    ctypedef struct mpg_plan:
        int family, wide, step
        mpg_format a, b, scale, c, chained, raw_c, raw_d
        int scaled, block, skip_scaled_zero
        mpg_result result
        mpg_rule rule, late
        int late_c
        int alignment, fraction_bits, rounding, sticky, normalised, product_fraction, product_integer
        int has_floor, has_limit, has_integer_bits, has_cutoff
        int32_t floor, limit, integer_bits, cutoff
        int dot_fraction_bits, c_fraction_bits, add_rounding, c_wins
        int32_t base
        int limbs
        double chained_flush, c_flush
        int positive_c_flush
        int a_bits, b_bits, c_bits, d_bits, a_signed, b_signed, c_signed, d_signed, clamp

    ctypedef struct mpg_layout:
        int count, segments
        const int32_t *order
        const int32_t *bounds
        const int32_t *tree

    ctypedef struct mpg_packed:
        int64_t rows, depth, steps, blocks
        void *significand
        int32_t *align
        uint8_t *special
        int32_t *scale
        int32_t *scale_align
        double *values

    ctypedef struct mpg_matrix:
        const char *data
        int64_t row_stride, column_stride
        int size

    ctypedef struct mpg_job:
        const mpg_plan *plan
        const mpg_packed *a
        const mpg_packed *b
        const mpg_layout *whole
        const mpg_layout *tail
        const mpg_matrix *c
        char *out
        int64_t columns
        int out_size, isa

    int mpg_is_lanes(const mpg_plan *p) nogil
    void mpg_pack_rows(const mpg_plan *p, int is_b, const mpg_matrix *source, const mpg_matrix *scale,
                       const mpg_layout *whole, const mpg_layout *tail, int64_t begin, int64_t end, mpg_packed *out) nogil
    void mpg_pack_values(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                         int64_t row, mpg_packed *out) nogil
    void mpg_pack_panel(const mpg_plan *p, const mpg_matrix *source, const mpg_layout *whole, const mpg_layout *tail,
                        int64_t panel, mpg_packed *out) nogil
    void mpg_tile(const mpg_job *job, int64_t i0, int64_t i1, int64_t j0, int64_t j1) nogil

HAS_WIDE = bool(MPG_HAS_WIDE)
MAX_TERMS = MPG_MAX_TERMS
MAX_GROUP = MPG_MAX_GROUP
MAX_LIMBS = MPG_MAX_LIMBS
ALIGN_NONE = MPG_ALIGN_NONE

# Multiply-adds below which starting threads costs more than it brings, and between two looks at pending signals.
cdef int64_t THREADS_PAY = 1 << 16
cdef int64_t SLICE = 1 << 24


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
    r.rounding = fields["rounding"]
    r.kept_bits = fields["kept_bits"]
    r.to_inf = fields["to_inf"]
    r.saturate = fields["saturate"]
    r.flush = fields["flush"]
    r.positive_underflow = fields["positive_underflow"]
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


cdef void _read(mpg_matrix *m, Py_buffer *view) noexcept:
    m.data = <const char *>view.buf
    m.row_stride = view.strides[0]
    m.column_stride = view.strides[1]
    m.size = <int>view.itemsize


cdef void _transposed(mpg_matrix *m) noexcept:
    cdef int64_t stride = m.row_stride
    m.row_stride = m.column_stride
    m.column_stride = stride


cdef bint _allocate(const mpg_plan *p, mpg_packed *x, bint is_b) noexcept nogil:
    """Memory of one packed operand; False if there is not enough."""
    cdef size_t rows = x.rows, depth = x.depth
    if mpg_is_lanes(p):
        if is_b:
            rows = (rows + MPG_LANES - 1) // MPG_LANES * MPG_LANES
        x.values = <double *>malloc((rows * depth + 1) * sizeof(double))
        return x.values != NULL
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
            self.plan.skip_scaled_zero = rest.pop("skip_scaled_zero", 0)
        self._set_sums(rest)
        self._set_others(rest)
        if rest:
            raise ValueError(f"unknown plan fields: {', '.join(rest)}")

    cdef _set_sums(self, rest):
        cdef mpg_plan *p = &self.plan
        p.late_c = rest.pop("late_c", 0)
        p.alignment = rest.pop("alignment", 0)
        p.fraction_bits = rest.pop("fraction_bits", 0)
        p.rounding = rest.pop("rounding", 0)
        p.sticky = rest.pop("sticky", 0)
        p.normalised = rest.pop("normalised", 0)
        p.product_fraction = rest.pop("product_fraction", 0)
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
        p.base = rest.pop("base", 0)
        p.limbs = rest.pop("limbs", 0)

    cdef _set_others(self, rest):
        cdef mpg_plan *p = &self.plan
        p.chained_flush = rest.pop("chained_flush", 0.0)
        p.c_flush = rest.pop("c_flush", 0.0)
        p.positive_c_flush = rest.pop("positive_c_flush", 0)
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
        cdef Py_buffer views[6]
        cdef int taken = 0, i
        arrays = (a, b, c, out, scale_a, scale_b) if self.plan.scaled else (a, b, c, out)
        try:
            for i, array in enumerate(arrays):
                PyObject_GetBuffer(array, &views[i], PyBUF_STRIDED_RO)
                taken += 1
                if views[i].ndim != 2:
                    raise ValueError(f"matrices have two dimensions, got {views[i].ndim}")
            self._check(views)
            self._run(views, tail, isa, threads)
        finally:
            for i in range(taken):
                PyBuffer_Release(&views[i])

    cdef _check(self, Py_buffer *v):
        cdef int64_t m = v[0].shape[0], k = v[0].shape[1], n = v[1].shape[1]
        cdef int64_t blocks = (k + self.plan.block - 1) // self.plan.block if self.plan.scaled else 0
        cdef bint right = (v[1].shape[0] == k and v[2].shape[0] == m and v[2].shape[1] == n and v[3].shape[0] == m
                           and v[3].shape[1] == n and k > 0)
        if self.plan.scaled:
            right = (right and v[4].shape[0] == m and v[4].shape[1] >= blocks and v[5].shape[0] >= blocks
                     and v[5].shape[1] == n)
        if not right:
            raise ValueError("shapes do not fit: expected a (m, k), b (k, n), c (m, n), scales (m, k/bs) and (k/bs, n)")

    cdef _run(self, Py_buffer *v, Layout tail, int isa, int threads):
        cdef mpg_matrix a, b, c, scale_a, scale_b
        cdef mpg_packed x, y
        cdef mpg_job job
        cdef const mpg_plan *p = &self.plan
        cdef bint enough
        _read(&a, &v[0])
        _read(&b, &v[1])
        _read(&c, &v[2])
        _transposed(&b)
        memset(&scale_a, 0, sizeof(mpg_matrix))
        memset(&scale_b, 0, sizeof(mpg_matrix))
        memset(&x, 0, sizeof(mpg_packed))
        memset(&y, 0, sizeof(mpg_packed))
        x.rows = v[0].shape[0]
        y.rows = v[1].shape[1]
        x.depth = y.depth = v[0].shape[1]
        x.steps = y.steps = (x.depth + p.step - 1) // p.step
        if p.scaled:
            _read(&scale_a, &v[4])
            _read(&scale_b, &v[5])
            _transposed(&scale_b)
            x.blocks = y.blocks = (x.depth + p.block - 1) // p.block
        job.plan = p
        job.a = &x
        job.b = &y
        job.whole = &self.whole.layout
        job.tail = &tail.layout
        job.c = &c
        job.out = <char *>v[3].buf
        job.columns = y.rows
        job.out_size = <int>v[3].itemsize
        job.isa = isa
        if x.rows * y.rows * x.depth < THREADS_PAY:
            threads = 1
        try:
            with nogil:
                enough = _allocate(p, &x, False) and _allocate(p, &y, True)
            if not enough:
                raise MemoryError(f"no memory to take operands of {x.rows} x {x.depth} x {y.rows} apart")
            self._pack(&job, &a, &scale_a, &x, False, threads)
            self._pack(&job, &b, &scale_b, &y, True, threads)
            self._multiply(&job, threads)
        finally:
            with nogil:
                _free(&x)
                _free(&y)

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


cdef void _pack_part(const mpg_job *job, const mpg_matrix *source, const mpg_matrix *scale, mpg_packed *out, bint is_b,
                     bint lanes, int64_t part) noexcept nogil:
    if not lanes:
        mpg_pack_rows(job.plan, is_b, source, scale, job.whole, job.tail, part * MPG_LANES,
                      min((part + 1) * MPG_LANES, out.rows), out)
    elif is_b:
        mpg_pack_panel(job.plan, source, job.whole, job.tail, part, out)
    else:
        mpg_pack_values(job.plan, source, job.whole, job.tail, part, out)


cdef void _tile(const mpg_job *job, int64_t tile, int64_t across, int64_t rows, int64_t columns) noexcept nogil:
    cdef int64_t i = tile // across * rows, j = tile % across * columns
    mpg_tile(job, i, min(i + rows, job.a.rows), j, min(j + columns, job.b.rows))
