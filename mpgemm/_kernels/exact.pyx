"""Exact dot products of whole matrices; see exact.h for the contract and mpgemm.exact for the meaning.

Work goes in blocks of at most EXACT_BLOCK rows and columns and slices of as many k; between slices pending signals are
looked at. Threads share tiles and never change a bit.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.math cimport INFINITY, frexp, ldexp, sqrt
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memset

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "exact.h" nogil:
    int EXACT_CHAIN, EXACT_DEPTH, EXACT_BLOCK
    int EXACT_NEAREST, EXACT_ODD, EXACT_DIFFERENCE

    ctypedef struct exact_block:
        const double *a
        const double *b
        const uint64_t *a_integer
        const uint64_t *b_integer
        double *sums
        uint64_t *residues
        ptrdiff_t groups, panels, depth
        int fresh

    int exact_best_level(int level)
    int exact_row_multiple(int level)
    int exact_takes_integers(int level)
    int exact_panel_width(int level)
    double exact_lowest_bit(double x)
    void exact_tile(const exact_block *block, ptrdiff_t group0, ptrdiff_t group1, ptrdiff_t panel0, ptrdiff_t panel1,
                    int level)
    void exact_pack_a(const void *source, int is_double, ptrdiff_t row, ptrdiff_t groups, ptrdiff_t depth, double factor,
                      double *values, uint64_t *integers, int level)
    void exact_pack_b(const void *source, int is_double, ptrdiff_t columns, ptrdiff_t k, const double *factors,
                      double *values, uint64_t *integers, ptrdiff_t panels, int level)
    void exact_scan_columns(const void *source, int is_double, ptrdiff_t count, double *largest, double *smallest,
                            double *squares, int level)
    void exact_scan_vector(const void *source, int is_double, ptrdiff_t count, double *largest, double *smallest,
                           double *squares, int level)
    ptrdiff_t exact_certify(const double *sums, ptrdiff_t count, double row_bound, const double *column_bounds,
                            double row_unit, const double *column_units, const double *c, float *out, uint8_t *open,
                            int level)
    void exact_expand(const double *sums, const uint64_t *residues, ptrdiff_t count, double row_bound,
                      const double *column_bounds, double *high, double *low, uint8_t *open, int level)
    void exact_finish_row(const double *high, const double *low, ptrdiff_t count, double row_unit,
                          const double *column_units, const double *x, int what, double *out, int level)
    void exact_settle_row(const double *high, const double *low, ptrdiff_t count, double row_unit,
                          const double *column_units, const double *c, float *out, int level)
    double exact_finish(double high, double low, double row_unit, double column_unit, double c, int what, double x)
    double exact_dot(const void *a, int a_double, ptrdiff_t a_step, const void *b, int b_double, ptrdiff_t b_step,
                     ptrdiff_t k, double c, int what, double x)

cdef enum:
    TILE = 192            # rows and columns that one thread takes at a time
    LINE = 64             # bytes of a cache line
    PROBE = 32            # rows and columns of the sample that says whether certificates will do
    MANY = 64             # one element in so many left open: certificates will not do
    SLICE = 1 << 25       # products of the long accumulator between two looks at signals

cdef struct matrix:
    const char *data
    int is_double
    ptrdiff_t rows, columns


cdef struct extent:  # of a row or column
    double largest, smallest, squares


cdef struct scales:  # of the rows of A or the columns of B
    double *factors
    double *units   # their inverses
    double *bounds  # norms
    double *limits  # the bound where the elements are integers, else infinite


cdef struct job:
    matrix a, b
    int level, threads, high, width
    scales by_row, by_column
    ptrdiff_t row, column, rows, columns
    double *packed_a
    double *packed_b
    uint64_t *integer_a
    uint64_t *integer_b
    uint64_t *residues
    exact_block block


cdef const void *at(const matrix *x, ptrdiff_t row, ptrdiff_t column) noexcept nogil:
    return x.data + (row * x.columns + column) * (8 if x.is_double else 4)


cdef double element(const matrix *x, ptrdiff_t index) noexcept nogil:
    return (<const double *>x.data)[index] if x.is_double else <double>(<const float *>x.data)[index]


# ---------------------------------------------------------------- scales

cdef bint has_unit(double largest, double unit) noexcept nogil:
    """Whether multiples of `unit` up to `largest` are integers below 2^53 times a power of two."""
    cdef int exponent, lowest
    frexp(largest, &exponent)
    frexp(unit, &lowest)
    return exponent - lowest + 1 <= 53


cdef void choose_scale(const matrix *x, ptrdiff_t start, ptrdiff_t step, ptrdiff_t count, const extent *e, const scales *s,
                       ptrdiff_t at) noexcept nogil:
    """Scale of the row or column `at`: `count` elements from `start`, `step` apart.

    A power of two makes the elements integers below 2^53 or, where none does, brings the largest near 1. The bound is at
    least the norm of the scaled elements, infinite where nothing may be decided by them.
    """
    cdef int exponent, lowest
    cdef double unit, largest = e.largest
    cdef ptrdiff_t i
    s.factors[at] = s.units[at] = 1.0
    s.bounds[at] = s.limits[at] = 0.0
    if largest == 0.0 and e.squares == 0.0:
        return
    if not (ldexp(1.0, -400) < largest < ldexp(1.0, 400) and e.squares < INFINITY):
        s.factors[at] = 0.0
        s.bounds[at] = s.limits[at] = INFINITY
        return
    frexp(e.smallest, &lowest)
    unit = ldexp(1.0, max(lowest - 53, -1074) if x.is_double else max(lowest - 24, -149))
    if not has_unit(largest, unit):
        unit = INFINITY
        for i in range(count):
            unit = min(unit, exact_lowest_bit(element(x, start + i * step)))
    frexp(largest, &exponent)
    s.limits[at] = INFINITY
    if has_unit(largest, unit):
        frexp(unit, &exponent)
        exponent -= 1
        s.limits[at] = 0.0
    s.factors[at] = ldexp(1.0, -exponent)
    s.units[at] = ldexp(1.0, exponent)
    # every product and addition of the squares, and the root, may have rounded down
    s.bounds[at] = sqrt(e.squares * (1 + <double>(count + 4) * ldexp(1.0, -52))) * s.factors[at] * (1 + ldexp(1.0, -50))
    s.limits[at] += s.bounds[at]


cdef void row_scale(job *j, ptrdiff_t row) noexcept nogil:
    cdef extent e
    cdef double roundings = <double>(EXACT_CHAIN + j.a.columns // EXACT_CHAIN + 4) * ldexp(1.0, -53) * (1 + ldexp(1.0, -20))
    exact_scan_vector(at(&j.a, row, 0), j.a.is_double, j.a.columns, &e.largest, &e.smallest, &e.squares, j.level)
    choose_scale(&j.a, row * j.a.columns, 1, j.a.columns, &e, &j.by_row, row)
    j.by_row.bounds[row] *= roundings
    j.by_row.limits[row] *= roundings


cdef void column_scale(job *j, ptrdiff_t column, double largest, double smallest, double squares) noexcept nogil:
    cdef extent e
    e.largest, e.smallest, e.squares = largest, smallest, squares
    choose_scale(&j.b, column, j.b.columns, j.b.rows, &e, &j.by_column, column)


cdef void find_scales(job *j, double *largest, double *smallest, double *squares) noexcept nogil:
    """Factors, units and bounds of all rows of A and columns of B: |S - N| <= row bound * column bound."""
    cdef mpg_fp_state state
    cdef ptrdiff_t i, k = j.a.columns, n = j.b.columns
    for i in prange(j.a.rows, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        row_scale(j, i)
        mpg_fp_leave(state)
    for i in range(n):
        largest[i], smallest[i], squares[i] = 0.0, INFINITY, 0.0
    for i in range(k):
        exact_scan_columns(at(&j.b, i, 0), j.b.is_double, n, largest, smallest, squares, j.level)
    for i in prange(n, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        column_scale(j, i, largest[i], smallest[i], squares[i])
        mpg_fp_leave(state)


# ---------------------------------------------------------------- chains

cdef void pack(job *j, ptrdiff_t k0, ptrdiff_t depth) noexcept nogil:
    cdef mpg_fp_state state
    cdef ptrdiff_t i, row
    j.block.depth = depth
    for i in prange(j.block.groups * j.high, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        row = j.row + i
        if i < j.rows:
            exact_pack_a(at(&j.a, row, k0), j.a.is_double, i, j.block.groups, depth, j.by_row.factors[row], j.packed_a,
                         j.integer_a, j.level)
        else:
            exact_pack_a(NULL, 0, i, j.block.groups, depth, 0.0, j.packed_a, j.integer_a, j.level)
        mpg_fp_leave(state)
    for i in prange(depth, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        exact_pack_b(at(&j.b, k0 + i, j.column), j.b.is_double, j.columns, i, j.by_column.factors + j.column, j.packed_b,
                     j.integer_b, j.block.panels, j.level)
        mpg_fp_leave(state)


cdef int chains(job *j) except -1:
    """S (and L, if the block has room for it) of the block over all of k."""
    cdef mpg_fp_state state
    cdef ptrdiff_t k0 = 0, depth, k = j.a.columns
    cdef ptrdiff_t groups, panels, down, across, task, group, panel
    while k0 < k:
        depth = min(<ptrdiff_t>EXACT_BLOCK, k - k0)
        j.block.fresh = k0 == 0
        groups, panels = TILE // j.high, TILE // j.width
        while j.threads > 1 and groups > 4 and (
                ((j.block.groups + groups - 1) // groups) * ((j.block.panels + panels - 1) // panels) < 3 * j.threads):
            groups //= 2
        down = (j.block.groups + groups - 1) // groups
        across = (j.block.panels + panels - 1) // panels
        with nogil:
            pack(j, k0, depth)
            for task in prange(down * across, num_threads=j.threads, schedule="dynamic"):
                state = mpg_fp_enter()
                group = task // across * groups
                panel = task % across * panels
                exact_tile(&j.block, group, min(group + groups, j.block.groups), panel,
                           min(panel + panels, j.block.panels), j.level)
                mpg_fp_leave(state)
        k0 += depth
        PyErr_CheckSignals()
    return 0


cdef void place_block(job *j, ptrdiff_t row, ptrdiff_t column, ptrdiff_t rows, ptrdiff_t columns) noexcept nogil:
    j.row, j.column, j.rows, j.columns = row, column, rows, columns
    j.block.groups = (rows + j.high - 1) // j.high
    j.block.panels = (columns + j.width - 1) // j.width


cdef ptrdiff_t sum_offset(const job *j, ptrdiff_t i, ptrdiff_t panel) noexcept nogil:
    return (panel * j.block.groups + i // j.high) * j.high * j.width + i % j.high * j.width


cdef ptrdiff_t certify(job *j, const double *c, float *out, uint8_t *open) noexcept nogil:
    """FP32 results of the block that S settles; how many it leaves open."""
    cdef mpg_fp_state state
    cdef ptrdiff_t i, panel, left = 0, first, place
    for i in prange(j.rows, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        for panel in range(j.block.panels):
            first = j.column + panel * j.width
            place = (j.row + i) * j.b.columns + first
            left += exact_certify(j.block.sums + sum_offset(j, i, panel),
                                  min(<ptrdiff_t>j.width, j.columns - panel * j.width), j.by_row.bounds[j.row + i],
                                  j.by_column.bounds + first, j.by_row.units[j.row + i], j.by_column.units + first,
                                  c + place if c != NULL else NULL, out + place, open + place, j.level)
        mpg_fp_leave(state)
    return left


cdef void expand(job *j, double *high, double *low, uint8_t *open) noexcept nogil:
    """S and D of the block into the arrays of the whole product."""
    cdef mpg_fp_state state
    cdef ptrdiff_t i, panel, first, place
    for i in prange(j.rows, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        for panel in range(j.block.panels):
            first = j.column + panel * j.width
            place = (j.row + i) * j.b.columns + first
            exact_expand(j.block.sums + sum_offset(j, i, panel), j.residues + sum_offset(j, i, panel),
                         min(<ptrdiff_t>j.width, j.columns - panel * j.width), j.by_row.limits[j.row + i],
                         j.by_column.limits + first, high + place, low + place, open + place, j.level)
        mpg_fp_leave(state)


# ---------------------------------------------------------------- calls

cdef class Product:
    """One product of two matrices: its scales, and the memory that its blocks need.

    `a` and `b` are the bytes of C-contiguous float32 or float64 matrices (m, k) and (k, n), k at least 1. Once it is made a
    product does not change: each call has a job and a workspace of its own, so that threads can share it.
    """
    cdef job j
    cdef Workspace memory
    cdef object keep_a, keep_b

    def __cinit__(self, const unsigned char[::1] a, bint a_double, const unsigned char[::1] b, bint b_double,
                  ptrdiff_t m, ptrdiff_t k, ptrdiff_t n, int level, int threads):
        cdef double *largest
        cdef double *smallest
        cdef double *squares
        if min(m, k, n) < 1 or a.shape[0] != m * k * (8 if a_double else 4) or b.shape[0] != k * n * (8 if b_double else 4):
            raise ValueError("sizes must be at least 1 and fit the data")
        memset(&self.j, 0, sizeof(job))
        self.keep_a, self.keep_b = a.base if a.base is not None else a, b.base if b.base is not None else b
        self.j.a.data, self.j.a.is_double, self.j.a.rows, self.j.a.columns = <const char *>&a[0], a_double, m, k
        self.j.b.data, self.j.b.is_double, self.j.b.rows, self.j.b.columns = <const char *>&b[0], b_double, k, n
        self.j.level = exact_best_level(level)
        self.j.threads = threads
        self.j.high, self.j.width = exact_row_multiple(self.j.level), exact_panel_width(self.j.level)
        self.memory = Workspace((4 * m + 7 * n) * sizeof(double) + 11 * LINE)
        self.j.by_row, self.j.by_column = self.scales_of(m), self.scales_of(n)
        largest, smallest, squares = self.doubles(n), self.doubles(n), self.doubles(n)
        with nogil:
            find_scales(&self.j, largest, smallest, squares)
        PyErr_CheckSignals()

    cdef scales scales_of(self, ptrdiff_t count) noexcept:
        cdef scales s
        s.factors, s.units = self.doubles(count), self.doubles(count)
        s.bounds, s.limits = self.doubles(count), self.doubles(count)
        return s

    cdef double *doubles(self, ptrdiff_t count) noexcept:
        return <double *>self.memory.take(count * sizeof(double))

    cdef Workspace lend(self, job *j, bint residues, bint expansion):
        """A workspace for the largest block, which `j` points into."""
        cdef ptrdiff_t rows = round_up(min(j.a.rows, EXACT_BLOCK), j.high)
        cdef ptrdiff_t columns = round_up(min(j.b.columns, EXACT_BLOCK), j.width)
        cdef ptrdiff_t depth = round_up(min(j.a.columns, EXACT_BLOCK), EXACT_DEPTH)
        cdef bint integers = residues and exact_takes_integers(j.level)
        cdef size_t operands = (rows + columns) * depth * sizeof(double)
        cdef size_t sums = rows * columns * sizeof(double)
        cdef size_t parts = 2 * sums if expansion else 0
        cdef Workspace work = Workspace((1 + residues) * sums + (1 + integers) * operands + parts + 10 * LINE)
        j.packed_b = <double *>work.take(columns * depth * sizeof(double))
        j.packed_a = <double *>work.take(rows * depth * sizeof(double))
        j.block.sums = <double *>work.take(sums)
        j.integer_a = j.integer_b = j.residues = NULL
        if residues:
            if integers:
                j.integer_b = <uint64_t *>work.take(columns * depth * sizeof(uint64_t))
                j.integer_a = <uint64_t *>work.take(rows * depth * sizeof(uint64_t))
            j.residues = <uint64_t *>work.take(sums)
        j.block.a, j.block.b = j.packed_a, j.packed_b
        j.block.a_integer, j.block.b_integer = j.integer_a, j.integer_b
        j.block.residues = j.residues
        return work

    def units(self, double[::1] row_units, double[::1] column_units):
        """The powers of two that give S + D of each row and column their scale."""
        cdef ptrdiff_t i
        for i in range(self.j.a.rows):
            row_units[i] = self.j.by_row.units[i]
        for i in range(self.j.b.columns):
            column_units[i] = self.j.by_column.units[i]

    def expansion(self, double[:, ::1] high, double[:, ::1] low, uint8_t[:, ::1] open):
        """S and D of all elements; `open` is 1 where they are not exact."""
        cdef job j = self.j
        cdef ptrdiff_t row, column, n = j.b.columns
        cdef Workspace work = self.lend(&j, True, False)  # no-cython-lint: kept until the end
        for column in range(0, n, EXACT_BLOCK):
            for row in range(0, j.a.rows, EXACT_BLOCK):
                place_block(&j, row, column, min(<ptrdiff_t>EXACT_BLOCK, j.a.rows - row), min(<ptrdiff_t>EXACT_BLOCK, n - column))
                chains(&j)
                with nogil:
                    expand(&j, &high[0, 0], &low[0, 0], &open[0, 0])

    def rounded_fp32(self, const double[:, ::1] c, float[:, ::1] out, uint8_t[:, ::1] open):
        """Correctly rounded FP32 results; `open` is 1 where the long accumulator must decide."""
        cdef job j = self.j
        cdef ptrdiff_t row, column, rows, columns, m = j.a.rows, n = j.b.columns, left
        cdef const double *addend = NULL
        cdef Workspace work
        if c is not None:
            addend = &c[0, 0]
        for column in range(0, n, EXACT_BLOCK):
            for row in range(0, m, EXACT_BLOCK):
                rows, columns = min(<ptrdiff_t>EXACT_BLOCK, m - row), min(<ptrdiff_t>EXACT_BLOCK, n - column)
                work = None  # its memory is the next one's
                work = self.lend(&j, False, False)
                left = -1
                if rows * columns > MANY * PROBE * PROBE:
                    place_block(&j, row, column, PROBE, PROBE)
                    chains(&j)
                    with nogil:
                        left = certify(&j, addend, &out[0, 0], &open[0, 0])
                place_block(&j, row, column, rows, columns)
                if left * MANY <= PROBE * PROBE:
                    chains(&j)
                    with nogil:
                        left = certify(&j, addend, &out[0, 0], &open[0, 0])
                    if left * MANY <= rows * columns:
                        continue
                work = None
                self.settle(&j, addend, out, open)

    cdef int settle(self, job *j, const double *c, float[:, ::1] out, uint8_t[:, ::1] open) except -1:
        """The current block through S + D."""
        cdef Workspace work = self.lend(j, True, True)
        cdef size_t size = j.rows * j.columns * sizeof(double)
        cdef double *high = <double *>work.take(size)
        cdef double *low = <double *>work.take(size)
        chains(j)
        with nogil:
            settle_block(j, high, low, c, &out[0, 0], &open[0, 0])
        return 0


cdef ptrdiff_t round_up(ptrdiff_t x, ptrdiff_t multiple) noexcept nogil:
    return (x + multiple - 1) // multiple * multiple


cdef void settle_block(job *j, double *high, double *low, const double *c, float *out, uint8_t *open) noexcept nogil:
    cdef mpg_fp_state state
    cdef ptrdiff_t i
    for i in prange(j.rows, num_threads=j.threads, schedule="static"):
        state = mpg_fp_enter()
        settle_row(j, i, high + i * j.columns, low + i * j.columns, c, out, open)
        mpg_fp_leave(state)


cdef void settle_row(job *j, ptrdiff_t i, double *high, double *low, const double *c, float *out,
                     uint8_t *open) noexcept nogil:
    cdef ptrdiff_t panel, first, place = (j.row + i) * j.b.columns + j.column
    for panel in range(j.block.panels):
        first = panel * j.width
        exact_expand(j.block.sums + sum_offset(j, i, panel), j.residues + sum_offset(j, i, panel),
                     min(<ptrdiff_t>j.width, j.columns - first), j.by_row.limits[j.row + i],
                     j.by_column.limits + j.column + first, high + first, low + first, open + place + first, j.level)
    exact_settle_row(high, low, j.columns, j.by_row.units[j.row + i], j.by_column.units + j.column,
                     c + place if c != NULL else NULL, out + place, j.level)


def finish(const double[:, ::1] high, const double[:, ::1] low, const double[::1] row_units,
           const double[::1] column_units, const double[:, ::1] c, const double[:, ::1] x, int what,
           double[:, ::1] out, int level, int threads):
    """What is asked of (S + D) units + c, element by element; see exact_finish."""
    cdef mpg_fp_state state
    cdef ptrdiff_t i, col, m = high.shape[0], n = high.shape[1]
    cdef bint with_c = c is not None, with_x = x is not None
    if m == 0 or n == 0:
        return
    for i in prange(m, num_threads=threads, schedule="static", nogil=True):
        state = mpg_fp_enter()
        if with_c:
            for col in range(n):
                out[i, col] = exact_finish(high[i, col], low[i, col], row_units[i], column_units[col], c[i, col], what,
                                           x[i, col] if with_x else 0.0)
        else:
            exact_finish_row(&high[i, 0], &low[i, 0], n, row_units[i], &column_units[0], &x[i, 0] if with_x else NULL,
                             what, &out[i, 0], level)
        mpg_fp_leave(state)


def dots(tuple a, tuple b, tuple steps, const int64_t[::1] rows, const int64_t[::1] columns, const double[::1] c,
         const double[::1] x, int what, double[::1] out, int threads):
    """What is asked of single elements, by the long accumulator.

    `a` and `b` are the bytes of a matrix and whether it is double. With `steps` (k, s, t) row i of A, k elements, starts at element i k;
    element (p, j) of B lies at p s + j t. `c` and `x` hold one value an element, or are None.
    """
    cdef const unsigned char[::1] a_bytes = a[0], b_bytes = b[0]
    cdef bint a_double = a[1], b_double = b[1]
    cdef ptrdiff_t k = steps[0], b_row_step = steps[1], b_column_step = steps[2]
    cdef ptrdiff_t count = rows.shape[0], start = 0, end, i, per_slice = max(SLICE // max(k, 1), 1)
    cdef bint with_c = c is not None, with_x = x is not None
    cdef ptrdiff_t a_size = 8 if a_double else 4, b_size = 8 if b_double else 4
    cdef const unsigned char *first_a = &a_bytes[0] if a_bytes.shape[0] else NULL
    cdef const unsigned char *first_b = &b_bytes[0] if b_bytes.shape[0] else NULL
    cdef mpg_fp_state state
    while start < count:
        end = min(start + per_slice, count)
        for i in prange(start, end, num_threads=threads, schedule="dynamic", chunksize=16, nogil=True):
            state = mpg_fp_enter()
            out[i] = exact_dot(first_a + rows[i] * k * a_size, a_double, 1, first_b + columns[i] * b_column_step * b_size,
                               b_double, b_row_step, k, c[i] if with_c else 0.0, what, x[i] if with_x else 0.0)
            mpg_fp_leave(state)
        start = end
        PyErr_CheckSignals()


NEAREST, ODD, DIFFERENCE = EXACT_NEAREST, EXACT_ODD, EXACT_DIFFERENCE
BLOCK = EXACT_BLOCK
