"""This module runs every accumulator on matrices of encodings for all operands (docs/kernels.md).

The arithmetic is in the headers generic_*.h. tensorcore_models.kernels.lowering turns specifications into the fields of a
:class:`Plan`, and tensorcore_models.kernels calls :meth:`Plan.run`.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from tensorcore_models._kernels.common.driver cimport drive, drive_batch

HAS_WIDE = bool(MPG_HAS_WIDE)
PANEL = MPG_PANEL
MAX_TERMS = MPG_MAX_TERMS
MAX_PARTS = MPG_MAX_PARTS
MAX_GROUP = MPG_MAX_GROUP
MAX_LIMBS = MPG_MAX_LIMBS
ALIGN_NONE = MPG_ALIGN_NONE


cdef class Layout:
    """`Layout` arranges the k of one pass by lists of int: `order`, `bounds` of the segments, `tree` of additions."""

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


cdef int _fill(char *memory, const mpg_member *member, values) except -1:
    """Set the members of a struct that a dict names; other members are not changed."""
    cdef char *place
    cdef Py_ssize_t i
    left = dict(values)
    while member.name != NULL:
        value = left.pop(member.name.decode(), None)
        if value is not None:
            place = memory + member.offset
            if member.kind == MPG_KIND_int:
                (<int *>place)[0] = value
            elif member.kind == MPG_KIND_uint64_t:
                (<uint64_t *>place)[0] = value
            elif member.kind == MPG_KIND_double:
                (<double *>place)[0] = value
            elif member.kind == MPG_KIND_mpg_masks:
                for i, mask in enumerate(value):
                    (<uint64_t *>place)[i] = mask
            else:
                _fill(place, mpg_members_of(member.kind), value)
        member += 1
    if left:
        raise ValueError(f"unknown plan fields {', '.join(left)}, expected members of mpg_plan in generic_plan.h")
    return 0


cdef void _release(Py_buffer *views) noexcept:
    cdef int i
    for i in range(6):
        PyBuffer_Release(&views[i])


cdef class Plan:
    """`Plan` is an accumulator with its formats, ready to run.

    Parameters
    ----------
    fields : dict
        Members of ``mpg_plan`` (generic_plan.h) by name; formats and rules are dicts of their own. Members that are not named
        are zero.
    """

    cdef mpg_plan plan
    cdef Layout whole

    def __cinit__(self, fields, Layout whole):
        memset(&self.plan, 0, sizeof(mpg_plan))
        self.whole = whole
        values = dict(fields)
        masks = values.pop("part_masks", ())
        if len(masks) > MPG_MAX_PARTS:
            raise ValueError(f"the plan has {len(masks)} products of parts, expected at most {MPG_MAX_PARTS}")
        values["parts"] = len(masks) or 1
        values["a_masks"], values["b_masks"] = [left for left, _ in masks], [right for _, right in masks]
        values["scaled"] = "scale" in values
        for name in ("floor", "limit", "integer_bits", "cutoff"):
            values["has_" + name] = name in values
        bits = values.get("fraction_bits", 0) + (values.get("sticky", 0) != 0)
        values["product_lift"] = max(0, bits - values.get("product_fraction", 0))
        _fill(<char *>&self.plan, MPG_MEMBERS_OF_PLAN, values)

    def to_bytes(self):
        """Return the memory of ``mpg_plan``, which has neither pointers nor sizes that depend on the machine's word."""
        return (<const char *>&self.plan)[: sizeof(mpg_plan)]

    def run(self, a, b, c, out, scale_a, scale_b, Layout tail, int isa, int threads):
        """Compute out = a b + c on encodings: a (m, k), b (k, n), c (m, n) aligned and native, out (m, n) C-contiguous, k > 0.

        `tail` arranges the last pass, which is shorter if k is not a multiple of the pass.
        """
        cdef mpg_call call
        cdef Py_buffer views[6]
        try:
            self._open(&call, views, (a, b, c, out, scale_a, scale_b), 2, tail, isa)
            if not mpg_call_room(&call):
                raise MemoryError(f"no memory to decode the operands of {call.x.rows} x {call.x.depth} x {call.y.rows}")
            mpg_call_start(&call, threads)
            drive(&call.drive, threads)
        finally:
            mpg_call_free(&call)
            _release(views)

    def run_batch(self, a, b, c, out, scale_a, scale_b, Layout tail, int isa, int threads):
        """Compute a batch of small products; arguments are those of :meth:`run` with a leading dimension."""
        cdef mpg_call call
        cdef Py_buffer views[6]
        try:
            self._open(&call, views, (a, b, c, out, scale_a, scale_b), 3, tail, isa)
            mpg_call_start_batch(&call, views[0].shape[0])
            drive_batch(&call.batch, threads)
        finally:
            _release(views)

    cdef int _open(self, mpg_call *call, Py_buffer *views, arrays, int ndim, Layout tail, int isa) except -1:
        """Take and check the arrays' buffers, and set the sizes of packed operands without allocating them."""
        cdef int i
        cdef const mpg_plan *p = &self.plan
        cdef mpg_packed *x = &call.x
        cdef mpg_packed *y = &call.y
        memset(views, 0, 6 * sizeof(Py_buffer))
        memset(call, 0, sizeof(mpg_call))
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
        call.job.out = <char *>views[3].buf
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
            raise ValueError(
                f"shapes do not fit: got a ({m}, {k}), b ({v[1].shape[first]}, {n}), c ({v[2].shape[first]}, "
                f"{v[2].shape[first + 1]}) and {blocks} blocks of scales, expected a (m, k), b (k, n), c and the result "
                "(m, n), with k at least 1, scales of a (m, blocks) and of b (blocks, n), and one batch size for all arrays"
            )
