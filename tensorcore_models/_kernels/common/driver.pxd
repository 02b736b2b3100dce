from libc.stdint cimport int64_t, uint8_t

from tensorcore_models._kernels.common.lanes cimport mpg_source

cdef extern from "driver.h":
    ctypedef struct mpg_drive:
        mpg_source a, b
        int64_t m, n
        void *d
        uint8_t *redo
        uint8_t *rows_marked
        uint8_t *columns_marked
        int64_t total, length, begin, part, blocks, panels
        int level
        double work

    ctypedef struct mpg_batch:
        int64_t count, each
        int (*items)(const mpg_batch *batch, int64_t first, int64_t last) noexcept nogil

    ctypedef struct mpg_products:
        mpg_batch batch
        const mpg_drive *first
        size_t size, bytes
        int turned
        uint8_t *marks
        void (*start)(mpg_drive *d, char *workspace) noexcept

    int mpg_run_products(const mpg_batch *batch, int64_t first, int64_t last) noexcept nogil
    int64_t mpg_pieces(const mpg_drive *d) noexcept nogil
    void mpg_drive_pack(const mpg_drive *d, int64_t piece) noexcept nogil
    void mpg_drive_tile(const mpg_drive *d, int64_t tile) noexcept nogil
    int mpg_batch_share(const mpg_batch *b, int64_t share) noexcept nogil

# Lays packed operands out in a workspace and tells the driver what there is to do.
ctypedef void (*starter)(mpg_drive *d, char *workspace) noexcept

cdef int64_t slice_length(int64_t total, int64_t group, int64_t least, int64_t bytes_per_position) noexcept
cdef int set_result(mpg_drive *d, result) except -1
cdef int drive(mpg_drive *d, int threads) except -1
cdef int drive_slices(mpg_drive *d, starter start, int64_t group, int64_t least, int64_t bytes_each, int64_t length,
                      int threads) except -1
cdef int drive_products(const mpg_drive *job, size_t size, starter start, int64_t bytes_each, int64_t k, int64_t items,
                        bint turned, uint8_t *marks, int threads) except -1
cdef int drive_batch(const mpg_batch *b, int threads) except -1
