cdef class Workspace:
    cdef char *data      # on a cache line's boundary
    cdef size_t size, used
    cdef void *raw
    cdef size_t raw_size
    cdef Py_ssize_t length

    cdef void *take(self, size_t size) noexcept
