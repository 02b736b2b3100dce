"""This module is the machine that runs programs of tensorcore_models.kernels.programs on matrices of encodings (programs.h)."""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from tensorcore_models._kernels.common.workspace cimport Workspace

cdef extern from "programs.h" nogil:
    int MPG_PROGRAM_LANES, MPG_PROGRAM_ROWS, MPG_INSTRUCTION, MPG_OPERATION_COUNT, MPG_PACK_ROOM, MPG_FIRST, MPG_LAST
    int MPG_REGISTERS, MPG_CONSTANTS, MPG_OF_A, MPG_OF_B, MPG_CODES, MPG_SCALES

    ctypedef struct mpg_operation:
        const char *name
        int sources

    const mpg_operation *mpg_operations

    ctypedef struct mpg_code:
        const int32_t *instructions
        int count
        int64_t a_stride, b_stride

    ctypedef struct mpg_codes:
        const char *data
        int64_t row_stride, column_stride
        int size

    ctypedef struct mpg_operand:
        mpg_codes codes, scales
        int64_t rows, depth, step, steps, block
        mpg_code code
        int64_t *constants
        int outputs, marks, registers, is_b
        int64_t *numbers
        uint8_t *marked

    ctypedef struct mpg_passes:
        const mpg_operand *a
        const mpg_operand *b
        mpg_code code[4]
        int64_t *constants[4]

    ctypedef struct mpg_product:
        mpg_passes regular, all
        const char *c
        int64_t c_row, c_column
        int c_size, d_size, isa
        char *d
        int64_t m, n
        int registers

    int64_t mpg_operand_pieces(const mpg_operand *x)
    void mpg_pack_operand(const mpg_operand *x, int64_t piece, int isa, int64_t *memory)
    bint mpg_any_marked(const mpg_operand *x)
    int64_t mpg_product_blocks(const mpg_product *p)
    int mpg_product_tile(const mpg_product *p, int64_t tile, int64_t *memory)

LANES = MPG_PROGRAM_LANES
INSTRUCTION = MPG_INSTRUCTION
OPERATIONS = {mpg_operations[i].name.decode(): (i, mpg_operations[i].sources) for i in range(MPG_OPERATION_COUNT)}
MEMORIES = {"register": MPG_REGISTERS, "constant": MPG_CONSTANTS, "a": MPG_OF_A, "b": MPG_OF_B, "code": MPG_CODES,
            "scale": MPG_SCALES}

# Number of tiles between two checks for pending signals.
cdef int64_t TILES = 4096


cdef class Code:
    """`Code` holds instructions, their constants and the number of registers that they use.

    Parameters
    ----------
    instructions : ndarray of int32, shape (count, INSTRUCTION)
        Operation, destination and sources; a place is the number of its memory plus 8 times its index in the memory.
    constants : ndarray of int64
        Numbers that are the same in all lanes.
    registers : int
        Number of registers, which are rows of lanes.
    a_stride, b_stride : int
        Distances in an operand's memory from the values of a product to those of the next product.
    """

    cdef object kept
    cdef mpg_code code
    cdef int64_t *constants
    cdef readonly int registers

    def __cinit__(self, instructions, constants, int registers, int64_t a_stride, int64_t b_stride):
        cdef const int32_t[:, ::1] lines = instructions
        cdef int64_t[::1] numbers = constants
        self.kept = (instructions, constants)
        self.code.instructions = &lines[0, 0] if lines.shape[0] else NULL
        self.code.count = <int>lines.shape[0]
        self.constants = &numbers[0]
        self.registers = registers
        self.code.a_stride, self.code.b_stride = a_stride, b_stride


cdef class Packing:
    """`Packing` is the code that runs on each element of one operand, its number of outputs, and whether a mark follows."""

    cdef Code code
    cdef readonly int outputs
    cdef readonly bint marks

    def __cinit__(self, Code code, int outputs, bint marks):
        self.code, self.outputs, self.marks = code, outputs, marks


cdef class Passes:
    """`Passes` holds the programs of a chain: packings of A and B, and codes of passes indexed by MPG_FIRST + MPG_LAST."""

    cdef readonly Packing a, b
    cdef readonly int registers
    cdef tuple codes

    def __cinit__(self, Packing a, Packing b, codes):
        self.a, self.b, self.codes = a, b, tuple(codes)
        self.registers = max(code.registers for code in codes)


cdef void _describe(mpg_operand *x, Packing packing, bint is_b, int64_t rows, int64_t depth, int64_t step, int64_t block):
    x.rows, x.depth, x.step, x.block = rows, depth, step, block
    x.steps = (depth + step - 1) // step
    x.code, x.constants = packing.code.code, packing.code.constants
    x.outputs, x.marks, x.registers, x.is_b = packing.outputs, packing.marks, packing.code.registers, is_b


cdef void _read(mpg_codes *x, Py_buffer *view, bint columns) noexcept:
    x.data = <const char *>view.buf
    x.row_stride, x.column_stride = view.strides[columns], view.strides[not columns]
    x.size = <int>view.itemsize


cdef Workspace _pack(mpg_operand *x, int isa, int threads):
    """Decode an operand, and return the memory, which the caller keeps."""
    cdef int64_t i, pieces = mpg_operand_pieces(x), rows = pieces * MPG_PROGRAM_LANES
    cdef int64_t room = (x.registers + x.outputs + x.marks + MPG_PACK_ROOM) * MPG_PROGRAM_LANES * sizeof(int64_t)
    cdef int64_t numbers = rows * x.depth * x.outputs * sizeof(int64_t), marks = rows * x.steps
    cdef Workspace memory = Workspace(numbers + marks + room * threads + 192)
    x.numbers, x.marked = <int64_t *>memory.take(numbers), <uint8_t *>memory.take(marks)
    memset(x.marked, 0, marks)
    cdef char *own = <char *>memory.take(room * threads)
    with nogil:
        for i in prange(pieces, num_threads=threads, schedule="dynamic"):
            mpg_pack_operand(x, i, isa, <int64_t *>(own + threadid() * room))
    return memory


cdef _set(mpg_passes *passes, Passes given, mpg_operand *a, mpg_operand *b):
    cdef int i
    cdef Code code
    passes.a, passes.b = a, b
    for i in range(4):
        code = given.codes[i]
        passes.code[i], passes.constants[i] = code.code, code.constants


cdef bint _tiles(mpg_product *p, uint8_t *done, int64_t tiles, int threads) except -1:
    """Run the tiles that are not done, and return whether all are done."""
    cdef int64_t i, first, last, left = 0, room = (p.registers + MPG_PROGRAM_ROWS) * MPG_PROGRAM_LANES * sizeof(int64_t)
    cdef Workspace memory = Workspace(room * threads)
    for first in range(0, tiles, TILES):
        last = min(first + TILES, tiles)
        with nogil:
            for i in prange(first, last, num_threads=threads, schedule="dynamic"):
                if not done[i]:
                    done[i] = mpg_product_tile(p, i, <int64_t *>(memory.data + threadid() * room))
        PyErr_CheckSignals()
    for i in range(tiles):
        left += not done[i]
    return left == 0


def run(Passes regular, all_passes, a, b, c, out, scale_a, scale_b, int64_t step, int64_t block, int isa, int threads):
    """Compute out = a b + c on encodings: a (m, k), b (k, n), c (m, n) aligned and native, out (m, n) C-contiguous, k > 0.

    Parameters
    ----------
    regular : Passes
        Programs for operands that are neither infinite nor NaN.
    all_passes : callable
        Function that returns the Passes for all operands; it is called if an operand is infinite or NaN.
    step, block : int
        Number of products of a pass, and of a block scale (0 without scales).
    """
    cdef Py_buffer views[6]
    cdef mpg_operand operands[4]
    cdef mpg_product p
    cdef Passes both
    cdef int i
    cdef int64_t tiles
    cdef Workspace marks
    cdef list kept = []
    arrays = (a, b, c, out, scale_a, scale_b) if block else (a, b, c, out)
    memset(views, 0, sizeof(views))
    memset(operands, 0, sizeof(operands))
    memset(&p, 0, sizeof(mpg_product))
    try:
        for i in range(len(arrays)):
            PyObject_GetBuffer(arrays[i], &views[i], PyBUF_STRIDED_RO)
        _check(views, block)
        _describe(&operands[0], regular.a, False, views[0].shape[0], views[0].shape[1], step, block)
        _describe(&operands[1], regular.b, True, views[1].shape[1], views[1].shape[0], step, block)
        for i in range(2):
            _read(&operands[i].codes, &views[i], i)
            if block:
                _read(&operands[i].scales, &views[4 + i], i)
            kept.append(_pack(&operands[i], isa, threads))
        _set(&p.regular, regular, &operands[0], &operands[1])
        p.c, p.c_row, p.c_column = <const char *>views[2].buf, views[2].strides[0], views[2].strides[1]
        p.c_size, p.d_size, p.d = <int>views[2].itemsize, <int>views[3].itemsize, <char *>views[3].buf
        p.m, p.n, p.isa, p.registers = views[3].shape[0], views[3].shape[1], isa, regular.registers
        tiles = mpg_product_blocks(&p) * mpg_operand_pieces(&operands[1])
        marks = Workspace(tiles)
        memset(marks.data, 0, tiles)
        regularly = not mpg_any_marked(&operands[0]) and not mpg_any_marked(&operands[1])
        if not regularly or not _tiles(&p, <uint8_t *>marks.data, tiles, threads):
            both = all_passes()
            for i in range(2):
                operands[2 + i].codes, operands[2 + i].scales = operands[i].codes, operands[i].scales
                _describe(&operands[2 + i], both.b if i else both.a, i, operands[i].rows, operands[i].depth, step, block)
                kept.append(_pack(&operands[2 + i], isa, threads))
            _set(&p.all, both, &operands[2], &operands[3])
            p.registers = max(p.registers, both.registers)
            _tiles(&p, <uint8_t *>marks.data, tiles, threads)
    finally:
        for i in range(6):
            PyBuffer_Release(&views[i])


cdef _check(Py_buffer *v, int64_t block):
    cdef int64_t m, k, n, blocks
    cdef int i
    for i in range(6 if block else 4):
        if v[i].ndim != 2:
            raise ValueError(f"expected arrays of 2 dimensions, got {v[i].ndim}")
    m, k, n = v[0].shape[0], v[0].shape[1], v[1].shape[1]
    right = (v[1].shape[0] == k and v[2].shape[0] == m and v[2].shape[1] == n and v[3].shape[0] == m and v[3].shape[1] == n
             and k > 0)
    if block:
        blocks = (k + block - 1) // block
        right = (right and v[4].shape[0] == m and v[4].shape[1] >= blocks and v[5].shape[0] >= blocks and v[5].shape[1] == n)
    if not right:
        raise ValueError(
            f"shapes do not fit: got a ({m}, {k}), b ({v[1].shape[0]}, {n}), c ({v[2].shape[0]}, {v[2].shape[1]}) and a block "
            f"size of {block}, expected a (m, k), b (k, n), c and the result (m, n), with k at least 1; with a block size "
            "above 0 also scales of a (m, k / block size) and of b (k / block size, n), rounded up"
        )
