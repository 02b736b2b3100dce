"""This module keeps memory for intermediate results from call to call, because fresh pages cost more than writing to them.

All kernels share one pool. A workspace takes its memory from the pool when it is made, and returns it when the workspace and all
views of it are deleted, so that no two users share memory.
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
    """Return the smallest kept block of at least that size, or an empty block."""
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
    """Keep a block; if the pool is full, free the smallest block."""
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
    """`Workspace` is uninitialised memory of `size` bytes that starts on a cache line.

    Parameters
    ----------
    size : int
        Number of bytes. Pieces that :meth:`take` returns start on cache lines, so add 64 bytes for each piece.

    Raises
    ------
    MemoryError
        If the system does not have that much memory.
    """

    def __cinit__(self, size_t size):
        cdef block found = from_pool(size + LINE)
        if found.memory == NULL:
            found.size = size + LINE
            found.memory = malloc(found.size)
            if found.memory == NULL:
                raise MemoryError(f"no memory for a workspace of {size} bytes")
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
        """Return the next `size` bytes, which the caller has reserved."""
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
    """Return the number of bytes of each block in the pool."""
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
