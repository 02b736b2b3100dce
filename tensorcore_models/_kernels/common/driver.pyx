"""This module has the loop that runs every fast kernel (driver.h): slices of k, packing, tiles, threads, pending signals."""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange

from tensorcore_models._kernels.common.workspace cimport Workspace

# Number of multiply-adds between two checks for pending signals; number of shares of a batch.
cdef double SIGNALS = 4e9
cdef int64_t SHARES = 1024
# Wanted bytes of packed operands of a slice; slices are not shorter than needed, because each one reads and writes the result.
cdef int64_t WANTED = 1 << 21


cdef int64_t slice_length(int64_t total, int64_t group, int64_t least, int64_t bytes_per_position) noexcept:
    """Return the number of positions of k that are packed at a time, a multiple of `group`."""
    cdef int64_t positions = max(least, WANTED // max(bytes_per_position, 1))
    return min(total, max(<int64_t>1, positions // group) * group)


cdef int set_result(mpg_drive *d, result) except -1:
    """Set the result (a tensorcore_models.kernels.common.RunningResult without size 0), which the caller keeps alive."""
    cdef float[:, ::1] values = result.d
    cdef uint8_t[:, ::1] redo = result.redo
    cdef uint8_t[::1] rows = result.rows, columns = result.columns
    d.m, d.n, d.d, d.redo = values.shape[0], values.shape[1], &values[0, 0], &redo[0, 0]
    d.rows_marked, d.columns_marked = &rows[0], &columns[0]
    return 0


cdef int drive_slices(mpg_drive *d, starter start, int64_t group, int64_t least, int64_t bytes_each, int64_t length,
                      int threads) except -1:
    """Run all of k in slices of `length` positions, multiples of `group`; with 0, of `least` or as many as fit the caches.

    `start` is called with a workspace of `bytes_each` bytes for each position of a slice.
    """
    cdef Workspace workspace
    d.length = length or slice_length(d.total, group, least, bytes_each)
    workspace = Workspace(bytes_each * d.length)
    start(d, workspace.data)
    return drive(d, threads)


cdef int drive(mpg_drive *d, int threads) except -1:
    cdef int64_t i, begin, first, last, at_once, pieces = mpg_pieces(d), tiles = d.blocks * d.panels
    for begin in range(0, d.total, d.length):
        d.begin = begin
        d.part = min(d.length, d.total - begin)
        with nogil:
            for i in prange(pieces, num_threads=threads, schedule="dynamic"):
                mpg_drive_pack(d, i)
        at_once = max(<int64_t>threads, <int64_t>(SIGNALS / (d.work * d.part)))
        for first in range(0, tiles, at_once):
            last = min(first + at_once, tiles)
            with nogil:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    mpg_drive_tile(d, i)
            PyErr_CheckSignals()
    return 0


cdef int drive_products(const mpg_drive *job, size_t size, starter start, int64_t bytes_each, int64_t k, int64_t items,
                        bint turned, uint8_t *marks, int threads) except -1:
    """Run `items` small products of length k; `job`, of `size` bytes, is the first product (driver.h)."""
    cdef mpg_products products
    products.first, products.size, products.bytes, products.start = job, size, bytes_each * job.total, start
    products.turned, products.marks = turned, marks
    products.batch.items, products.batch.count = mpg_run_products, items
    products.batch.each = max(<int64_t>1, 1000000 // (job.m * job.n * k))
    drive_batch(&products.batch, threads)
    return 0


cdef int drive_batch(const mpg_batch *b, int threads) except -1:
    cdef int64_t i, first, last, failed = 0, shares = (b.count + b.each - 1) // b.each
    for first in range(0, shares, SHARES):
        last = min(first + SHARES, shares)
        with nogil:
            if threads == 1 or shares == 1:
                for i in range(first, last):
                    failed |= not mpg_batch_share(b, i)
            else:
                for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                    failed |= not mpg_batch_share(b, i)
        if failed:
            raise MemoryError("no memory for the packed operands of a small product")
        if last < shares:
            PyErr_CheckSignals()
    return 0
