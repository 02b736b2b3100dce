"""Computes exact dot products of whole matrices; exact.h has the contract, and mpgemm.exact describes the results.

The driver runs blocks of at most EXACT_BLOCK rows and columns, and slices of at most EXACT_BLOCK k. Threads share tiles, and their
number does not change the bits.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.stdint cimport int64_t, uint8_t

from tensorcore_models._kernels.common.driver cimport drive, drive_batch, mpg_batch, mpg_drive
from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "exact_job.h":
    int EXACT_BLOCK
    int EXACT_NEAREST, EXACT_ODD, EXACT_DIFFERENCE

    ctypedef struct exact_matrix:
        const char *data
        int is_double
        int64_t rows, columns
        const double *units

    ctypedef struct exact_job:
        mpg_drive drive
        mpg_batch batch
        exact_matrix a, b
        const double *c
        double *high
        double *low
        float *out
        uint8_t *open

    ctypedef struct exact_finishing:
        mpg_batch batch
        const double *high
        const double *low
        const double *row_units
        const double *column_units
        const double *c
        const double *x
        double *out
        int64_t n
        int what

    ctypedef struct exact_dots:
        mpg_batch batch
        const char *a
        const char *b
        int a_double, b_double, what
        int64_t k, b_row_step, b_column_step
        const int64_t *rows
        const int64_t *columns
        const double *c
        const double *x
        double *out

    size_t exact_scale_bytes(const exact_job *job)
    void exact_open(exact_job *job, char *memory, int level)
    void exact_scan(exact_job *job) nogil
    size_t exact_place_block(exact_job *job, char *memory, bint residues)
    void exact_start(exact_job *job, int64_t row, int64_t column, int64_t rows, int64_t columns, int threads)
    void exact_certify(exact_job *job)
    void exact_expand(exact_job *job)
    void exact_settle(exact_job *job)
    int64_t exact_left(const exact_job *job)
    void exact_finish_start(exact_finishing *job, int64_t m, int level)
    void exact_dots_start(exact_dots *job, int64_t start, int64_t end)

cdef enum:
    PROBE = 32            # rows and columns of the sample that decides whether certificates are tried
    MANY = 64             # certificates are not used if they leave more than one element in MANY open
    SLICE = 1 << 25       # products of the long accumulator between two checks of signals

NEAREST, ODD, DIFFERENCE = EXACT_NEAREST, EXACT_ODD, EXACT_DIFFERENCE
BLOCK = EXACT_BLOCK


cdef int set_matrix(exact_matrix *x, const unsigned char[::1] data, bint is_double, int64_t rows, int64_t columns) except -1:
    if rows < 1 or columns < 1 or data.shape[0] != rows * columns * (8 if is_double else 4):
        raise ValueError(f"got {data.shape[0]} bytes for {rows} x {columns}, expected sizes of at least 1 that fit the data")
    x.data, x.is_double, x.rows, x.columns = <const char *>&data[0], is_double, rows, columns
    return 0


cdef class Product:
    """`Product` holds one product of two matrices: its scales, and the layout of its blocks.

    `a` and `b` are the bytes of C-contiguous float32 or float64 matrices (m, k) and (k, n), with k at least 1. A product does not
    change after it is made: each call has its own job and workspace, so threads can share the product.
    """
    cdef exact_job job
    cdef int threads
    cdef Workspace memory
    cdef object keep_a, keep_b

    def __cinit__(self, const unsigned char[::1] a, bint a_double, const unsigned char[::1] b, bint b_double,
                  int64_t m, int64_t k, int64_t n, int level, int threads):
        set_matrix(&self.job.a, a, a_double, m, k)
        set_matrix(&self.job.b, b, b_double, k, n)
        self.keep_a, self.keep_b = a.base if a.base is not None else a, b.base if b.base is not None else b
        self.threads = threads
        self.memory = Workspace(exact_scale_bytes(&self.job))
        exact_open(&self.job, self.memory.data, level)
        drive_batch(&self.job.batch, threads)
        with nogil:
            exact_scan(&self.job)
        drive_batch(&self.job.batch, threads)
        PyErr_CheckSignals()

    def units(self, double[::1] row_units, double[::1] column_units):
        """Store the powers of two of each row and column by which S + D is multiplied."""
        cdef int64_t i
        for i in range(self.job.a.rows):
            row_units[i] = self.job.a.units[i]
        for i in range(self.job.b.columns):
            column_units[i] = self.job.b.units[i]

    def expansion(self, double[:, ::1] high, double[:, ::1] low, uint8_t[:, ::1] open):
        """Store S and D of all elements, and 1 in `open` where they are not exact."""
        cdef exact_job job = self.job
        cdef int64_t row, column
        cdef Workspace work = Workspace(exact_place_block(&job, NULL, True))
        exact_place_block(&job, work.data, True)
        job.high, job.low, job.open = &high[0, 0], &low[0, 0], &open[0, 0]
        for column in range(0, job.b.columns, EXACT_BLOCK):
            for row in range(0, job.a.rows, EXACT_BLOCK):
                exact_start(&job, row, column, EXACT_BLOCK, EXACT_BLOCK, self.threads)
                drive(&job.drive, self.threads)
                exact_expand(&job)
                drive_batch(&job.batch, self.threads)

    def rounded_fp32(self, const double[:, ::1] c, float[:, ::1] out, uint8_t[:, ::1] open):
        """Store correctly rounded FP32 results, and 1 in `open` where the long accumulator must compute them."""
        cdef exact_job job = self.job
        cdef int64_t row, column, left, size
        job.c = &c[0, 0] if c is not None else NULL
        job.out, job.open = &out[0, 0], &open[0, 0]
        for column in range(0, job.b.columns, EXACT_BLOCK):
            for row in range(0, job.a.rows, EXACT_BLOCK):
                size = min(<int64_t>EXACT_BLOCK, job.a.rows - row) * min(<int64_t>EXACT_BLOCK, job.b.columns - column)
                left = self.certify(&job, row, column, PROBE) if size > MANY * PROBE * PROBE else 0
                if left * MANY <= PROBE * PROBE:
                    left = self.certify(&job, row, column, EXACT_BLOCK)
                    if left * MANY <= size:
                        continue
                self.settle(&job, row, column)

    cdef int64_t certify(self, exact_job *job, int64_t row, int64_t column, int64_t size) except -1:
        """Round the elements of a block of `size` rows and columns from S alone, and return the number left open."""
        cdef Workspace work = Workspace(exact_place_block(job, NULL, False))
        exact_place_block(job, work.data, False)
        exact_start(job, row, column, size, size, self.threads)
        drive(&job.drive, self.threads)
        exact_certify(job)
        drive_batch(&job.batch, self.threads)
        return exact_left(job)

    cdef int settle(self, exact_job *job, int64_t row, int64_t column) except -1:
        """Round the elements of a block from S + D."""
        cdef Workspace work = Workspace(exact_place_block(job, NULL, True))
        exact_place_block(job, work.data, True)
        exact_start(job, row, column, EXACT_BLOCK, EXACT_BLOCK, self.threads)
        drive(&job.drive, self.threads)
        exact_settle(job)
        return drive_batch(&job.batch, self.threads)


def finish(const double[:, ::1] high, const double[:, ::1] low, const double[::1] row_units,
           const double[::1] column_units, const double[:, ::1] c, const double[:, ::1] x, int what,
           double[:, ::1] out, int level, int threads):
    """Store the quantity `what` of (S + D) units + c in `out`, element by element; see exact_finish."""
    cdef exact_finishing job
    if out.shape[0] == 0 or out.shape[1] == 0:
        return
    job.high, job.low, job.out, job.n, job.what = &high[0, 0], &low[0, 0], &out[0, 0], out.shape[1], what
    job.row_units, job.column_units = &row_units[0], &column_units[0]
    job.c = &c[0, 0] if c is not None else NULL
    job.x = &x[0, 0] if x is not None else NULL
    exact_finish_start(&job, out.shape[0], level)
    drive_batch(&job.batch, threads)


def dots(tuple a, tuple b, tuple steps, const int64_t[::1] rows, const int64_t[::1] columns, const double[::1] c,
         const double[::1] x, int what, double[::1] out, int threads):
    """Store the quantity `what` of single elements in `out`, computed by the long accumulator.

    `a` and `b` are (bytes of a matrix, whether it is double). With `steps` (k, s, t), row i of A has k elements and starts at element
    i k; element (p, j) of B is at p s + j t. `c` and `x` hold one value for each element, or are None.
    """
    cdef const unsigned char[::1] a_bytes = a[0], b_bytes = b[0]
    cdef exact_dots job
    cdef int64_t start, count = rows.shape[0], each
    if count == 0:
        return
    job.a = <const char *>&a_bytes[0] if a_bytes.shape[0] else NULL
    job.b = <const char *>&b_bytes[0] if b_bytes.shape[0] else NULL
    job.a_double, job.b_double, job.what = a[1], b[1], what
    job.k, job.b_row_step, job.b_column_step = steps
    job.rows, job.columns, job.out = &rows[0], &columns[0], &out[0]
    job.c = &c[0] if c is not None else NULL
    job.x = &x[0] if x is not None else NULL
    each = max(<int64_t>(SLICE // max(job.k, <int64_t>1)), <int64_t>1)
    for start in range(0, count, each):
        exact_dots_start(&job, start, min(start + each, count))
        drive_batch(&job.batch, threads)
        PyErr_CheckSignals()
