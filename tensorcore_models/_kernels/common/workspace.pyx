"""Memory for intermediate results, kept from call to call: fresh pages cost more than what is written to them.

The one pool of all kernels. A workspace takes its memory from the pool when it is made and gives it back when nobody refers to
it any more, views of it included, so that no two users ever share it.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.pythread cimport (
    PyThread_acquire_lock, PyThread_allocate_lock, PyThread_release_lock, PyThread_type_lock, WAIT_LOCK,
)
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

cdef enum:
    LINE = 64
    SPARE = 4               # blocks kept
    KEPT = 1 << 28          # bytes of a block that is kept, at most

cdef struct block:
    void *memory
    size_t size

cdef block[SPARE] spare
cdef int spares = 0
cdef PyThread_type_lock lock = PyThread_allocate_lock()


cdef block from_pool(size_t size) noexcept:
    """The smallest kept block of at least that size, or nothing."""
    global spares
    cdef int i, best = -1
    cdef block found
    found.memory, found.size = NULL, 0
    PyThread_acquire_lock(lock, WAIT_LOCK)
    for i in range(spares):
        if spare[i].size >= size and (best < 0 or spare[i].size < spare[best].size):
            best = i
    if best >= 0:
        found = spare[best]
        spares -= 1
        spare[best] = spare[spares]
    PyThread_release_lock(lock)
    return found


cdef void to_pool(block given) noexcept:
    """Keep a block; where there are enough, the smallest one is freed."""
    global spares
    cdef int i, least = 0
    cdef block dropped
    if given.size > KEPT:
        free(given.memory)
        return
    PyThread_acquire_lock(lock, WAIT_LOCK)
    if spares < SPARE:
        spare[spares] = given
        spares += 1
        given.memory = NULL
    else:
        for i in range(1, SPARE):
            if spare[i].size < spare[least].size:
                least = i
        if spare[least].size < given.size:
            dropped = spare[least]
            spare[least] = given
            given = dropped
    PyThread_release_lock(lock)
    free(given.memory)


cdef class Workspace:
    """Uninitialised memory of `size` bytes on a cache line's boundary.

    Parameters
    ----------
    size : int
        Bytes. Pieces that :meth:`take` hands out start on cache lines: leave 64 bytes for each.

    Raises
    ------
    MemoryError
        If there is not that much.
    """

    def __cinit__(self, size_t size):
        cdef block found = from_pool(size + LINE)
        if found.memory == NULL:
            found.size = size + LINE
            found.memory = malloc(found.size)
            if found.memory == NULL:
                raise MemoryError(f"a workspace of {size} bytes is more than there is")
        self.raw, self.raw_size = found.memory, found.size
        self.data = <char *>((<uintptr_t>self.raw + LINE - 1) // LINE * LINE)
        self.size = size
        self.used = 0
        self.length = <Py_ssize_t>size

    def __dealloc__(self):
        cdef block given
        if self.raw != NULL:
            given.memory, given.size = self.raw, self.raw_size
            to_pool(given)

    cdef void *take(self, size_t size) noexcept:
        """The next `size` bytes; the caller has reserved them."""
        cdef void *piece = self.data + self.used
        self.used += (size + LINE - 1) // LINE * LINE
        return piece

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.data, self.length, 0, flags)

    def __releasebuffer__(self, Py_buffer *buffer):
        pass

    def __len__(self):
        return self.length


def kept_bytes():
    """Bytes of each block in the pool."""
    PyThread_acquire_lock(lock, WAIT_LOCK)
    sizes = [spare[i].size for i in range(spares)]
    PyThread_release_lock(lock)
    return sizes


def clear():
    """Free all memory in the pool."""
    global spares
    PyThread_acquire_lock(lock, WAIT_LOCK)
    while spares:
        spares -= 1
        free(spare[spares].memory)
    PyThread_release_lock(lock)
