"""Computes integer words of matrices and joins their products; integer_words.h has the contract, mpgemm.recovery.integer_words the checks.

Matrices are bytes of C-contiguous arrays. Threads share blocks of elements, and their number does not change the bits. Pending
signals are checked between slabs of some tens of millions of elements.
"""

from cpython.exc cimport PyErr_CheckSignals
from cython.parallel cimport prange
from libc.stddef cimport ptrdiff_t
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "integer_words.h" nogil:
    int WORDS_MODULI, WORDS_LIMB, WORDS_LIMBS, WORDS_PIECE, WORDS_PIECES, WORDS_HIGH, WORDS_MARGIN, WORDS_TABLE_MODULUS
    int WORDS_INT32, WORDS_INT64, WORDS_FLOAT
    int WORDS_TRUNCATED, WORDS_BALANCED, WORDS_RESIDUES, WORDS_LOOKED_UP, WORDS_INTEGERS, WORDS_SCAN_ROWS, WORDS_SCAN_COLUMNS
    int WORDS_QUANTISE, WORDS_REDUCE, WORDS_REDUCE_SUMS, WORDS_JOIN_SLICES, WORDS_JOIN_RESIDUES, WORDS_ADD_QUANTISED
    int WORDS_BLOCK, WORDS_SCAN_BLOCK

    ctypedef struct words_operand:
        const void *data
        int is_double, by_rows
        ptrdiff_t columns
        const double *first
        const double *second

    ctypedef struct words_remainders:
        int moduli, limbs
        const double *inverses
        const double *weights
        const double *product

    ctypedef struct words_result:
        void *data
        int is_double
        ptrdiff_t columns
        const double *rows_powers
        const double *columns_powers
        const int32_t *rows_exponents
        const int32_t *columns_exponents

    ctypedef struct words_task:
        int what, count, bits
        words_operand operand
        ptrdiff_t rows
        int8_t *planes
        ptrdiff_t plane
        const float *moduli
        const float *inverses
        const float *powers
        const uint8_t *tables
        int64_t *integers
        double *largest
        uint8_t *finite
        double factor, limit
        void *rest
        double modulus, inverse
        int accumulate
        const void *const *products
        const int *types
        const double *steps
        words_remainders remainders
        words_result result

    void words_run(const words_task *t, ptrdiff_t start, ptrdiff_t stop, int level)

cdef ptrdiff_t SLAB = 1 << 26  # elements of all planes together between two checks of signals

INT32, INT64, FLOAT = WORDS_INT32, WORDS_INT64, WORDS_FLOAT
MOST_MODULI, LIMB, BLOCK = WORDS_MODULI, WORDS_LIMB, WORDS_BLOCK
PIECE, PIECES = WORDS_PIECE, WORDS_PIECES
HIGH, MARGIN, TABLE_MODULUS = WORDS_HIGH, WORDS_MARGIN, WORDS_TABLE_MODULUS


cdef int run(words_task *t, ptrdiff_t size, ptrdiff_t block, ptrdiff_t cost, int level, int threads) except -1:
    """Run a task over `size` elements, each with the work of `cost` elements of a plane."""
    cdef mpg_fp_state state
    cdef ptrdiff_t first = 0, slab = max(<ptrdiff_t>1, SLAB // (max(cost, <ptrdiff_t>1) * block)) * block, last, i, blocks
    while first < size:
        last = min(first + slab, size)
        blocks = (last - first + block - 1) // block
        for i in prange(blocks, num_threads=threads if blocks > 1 else 1, schedule="static", nogil=True):
            state = mpg_fp_enter()
            words_run(t, first + i * block, min(first + (i + 1) * block, last), level)
            mpg_fp_leave(state)
        first = last
        PyErr_CheckSignals()
    return 0


cdef ptrdiff_t set_operand(words_task *t, tuple source) except -1:
    """Store the matrix `source` (see `Source` in the stub) in the task, and return its number of elements."""
    cdef const uint8_t[::1] x = source[0]
    cdef bint is_double = source[1], by_rows = source[4]
    cdef ptrdiff_t rows = source[2], columns = source[3]
    memset(t, 0, sizeof(words_task))
    if rows < 0 or columns < 0 or x.shape[0] != rows * columns * (8 if is_double else 4):
        raise ValueError(f"got {x.shape[0]} bytes for a matrix of {rows} x {columns}, expected 4 or 8 bytes for each element")
    t.rows = rows
    t.operand.columns, t.operand.is_double, t.operand.by_rows = columns, is_double, by_rows
    if rows * columns > 0:
        t.operand.data = &x[0]
    return rows * columns


cdef int set_powers(words_task *t, const double[:, ::1] powers) except -1:
    if powers.shape[0] != 2 or powers.shape[1] != (t.rows if t.operand.by_rows else t.operand.columns):
        raise ValueError(f"got powers of shape ({powers.shape[0]}, {powers.shape[1]}), "
                         f"expected (2, rows) or (2, columns), two powers for each row or column")
    t.operand.first, t.operand.second = &powers[0, 0], &powers[1, 0]
    return 0


cdef int set_moduli(words_task *t, int what, int bits, const float[:, ::1] moduli, ptrdiff_t count) except -1:
    """Store p, 1/p and powers of `count` moduli, for integers below 2^bits, in the task."""
    if moduli.shape[0] != 2 + WORDS_PIECES or moduli.shape[1] != count or not 1 <= bits <= 62:
        raise ValueError(f"got {moduli.shape[1]} moduli and {bits} bits, expected {count} moduli and 1 to 62 bits")
    t.what, t.bits = what, bits
    t.moduli, t.inverses, t.powers = &moduli[0, 0], &moduli[1, 0], &moduli[2, 0]
    return 0


cdef int set_planes(words_task *t, int8_t[:, ::1] planes, ptrdiff_t size) except -1:
    if planes.shape[1] != size:
        raise ValueError(f"got planes of {planes.shape[1]} elements, expected {size}, the elements of the matrix")
    t.count, t.plane = planes.shape[0], size
    if planes.shape[0] > 0 and size > 0:
        t.planes = &planes[0, 0]
    return 0


def scan(tuple source, double[::1] largest, uint8_t[::1] finite, int level, int threads):
    """Store the largest finite magnitude of each row (or column), and whether all its numbers are finite."""
    cdef words_task t
    cdef ptrdiff_t rows, columns, count, block = 1
    set_operand(&t, source)
    rows, columns = t.rows, t.operand.columns
    count = rows if t.operand.by_rows else columns
    if largest.shape[0] != count or finite.shape[0] != count:
        raise ValueError(f"got {largest.shape[0]} results, expected {count}, one for each row or column")
    if count == 0:
        return
    t.largest, t.finite = &largest[0], &finite[0]
    if t.operand.by_rows:
        t.what = WORDS_SCAN_ROWS
        block = max(<ptrdiff_t>1, WORDS_BLOCK // max(columns, <ptrdiff_t>1))
        run(&t, rows, block, columns, level, threads)
    else:
        t.what = WORDS_SCAN_COLUMNS
        run(&t, columns, WORDS_SCAN_BLOCK, rows, level, threads)


def slices(tuple source, const double[:, ::1] powers, bint balanced, int bits, int8_t[:, ::1] planes, int level, int threads):
    """Store the digits of x times its two powers: truncated digits of `bits` bits, or balanced bytes."""
    cdef words_task t
    cdef ptrdiff_t size = set_operand(&t, source)
    set_planes(&t, planes, size)
    if size == 0:
        return
    set_powers(&t, powers)
    t.what, t.bits = WORDS_BALANCED if balanced else WORDS_TRUNCATED, bits
    if not 1 <= bits <= (8 if balanced else 7) or (balanced and t.count > 8):
        raise ValueError(f"got {t.count} digits of {bits} bits, "
                         f"expected 1 to 7 bits, or up to 8 digits of at most 8 bits if they are balanced")
    run(&t, size, WORDS_BLOCK, t.count, level, threads)


def residues(tuple source, const double[:, ::1] powers, int bits, const float[:, ::1] moduli, int8_t[:, ::1] planes, int level,
             int threads):
    """Store balanced residues of a factor times RZ(x times its two powers), which is below 2^bits.

    moduli: rows of p, 1/p and factor 2^(PIECE i) modulo p for i below PIECES.
    """
    cdef words_task t
    cdef ptrdiff_t size = set_operand(&t, source)
    set_planes(&t, planes, size)
    if size == 0 or t.count == 0:
        return
    set_powers(&t, powers)
    set_moduli(&t, WORDS_RESIDUES, bits, moduli, t.count)
    run(&t, size, WORDS_BLOCK, t.count, level, threads)


def looked_up(tuple source, const double[:, ::1] powers, int bits, const float[:, ::1] modulus, const uint8_t[:, ::1] tables,
              int8_t[:, ::1] planes, int level, int threads):
    """Store the table entries of the residues of RZ(x times its two powers), which is below 2^bits; `modulus` is as in `residues`."""
    cdef words_task t
    cdef ptrdiff_t size = set_operand(&t, source)
    set_planes(&t, planes, size)
    if size == 0 or t.count == 0:
        return
    set_powers(&t, powers)
    set_moduli(&t, WORDS_LOOKED_UP, bits, modulus, 1)
    if modulus[0, 0] % 2 != 1 or not 3 <= modulus[0, 0] <= WORDS_TABLE_MODULUS:
        raise ValueError(f"modulus is {modulus[0, 0]:g}, expected an odd number from 3 to {WORDS_TABLE_MODULUS}")
    if tables.shape[0] != t.count or tables.shape[1] != <int>modulus[0, 0] + 2 * WORDS_MARGIN:
        raise ValueError(f"got {tables.shape[0]} tables of {tables.shape[1]} entries, expected {t.count} with an entry for each residue")
    t.tables = &tables[0, 0]
    run(&t, size, WORDS_BLOCK, t.count, level, threads)


def integers(tuple source, const double[:, ::1] powers, int64_t[::1] out, int level, int threads):
    """Store RZ(x times its two powers), which is below 2^62."""
    cdef words_task t
    cdef ptrdiff_t size = set_operand(&t, source)
    if out.shape[0] != size:
        raise ValueError(f"got {out.shape[0]} results, expected {size}, one for each element")
    if size == 0:
        return
    set_powers(&t, powers)
    t.what, t.integers = WORDS_INTEGERS, &out[0]
    run(&t, size, WORDS_BLOCK, 1, level, threads)


def quantise(const uint8_t[::1] x, bint is_double, double factor, double limit, int8_t[::1] word, uint8_t[::1] rest,
             double[::1] largest, int level, int threads):
    """Store the word clamp(RN(x / factor)) and, unless `rest` is None, the remainder of x and its largest magnitude in each BLOCK.

    `rest` may be x itself.
    """
    cdef words_task t
    cdef ptrdiff_t size = word.shape[0]
    set_operand(&t, (x, is_double, 1, size, True))
    if largest.shape[0] != (size + WORDS_BLOCK - 1) // WORDS_BLOCK or (rest is not None and rest.shape[0] != x.shape[0]):
        raise ValueError(f"got {largest.shape[0]} largest magnitudes, "
                         f"expected one for each block of {WORDS_BLOCK} elements, and a remainder of x's size")
    if not 1 <= limit <= 127:
        raise ValueError(f"limit is {limit:g}, expected 1 to 127, because words are int8")
    if size == 0:
        return
    t.what, t.factor, t.limit = WORDS_QUANTISE, factor, limit
    t.planes, t.largest = &word[0], &largest[0]
    if rest is not None:
        t.rest = &rest[0]
    run(&t, size, WORDS_BLOCK, 1, level, threads)


cdef const void *first_of(const uint8_t[::1] product, int kind, ptrdiff_t size) except NULL:
    """Return the bytes of one result of an engine, which has `size` elements."""
    if size < 1 or product.shape[0] != size * (8 if kind == WORDS_INT64 else 4):
        raise ValueError(f"got a product of {product.shape[0]} bytes, expected {size} elements of 4 or 8 bytes, and at least 1 element")
    return &product[0]


cdef class Products:
    """`Products` holds pointers to the results of an engine, one array of bytes for each product, and keeps them alive."""
    cdef list keep
    cdef const void **data
    cdef int *types
    cdef int count

    def __cinit__(self, list arrays, const int32_t[::1] types, ptrdiff_t size):
        cdef const uint8_t[::1] view
        cdef int i
        self.keep, self.count = arrays, len(arrays)
        if self.count != types.shape[0]:
            raise ValueError(f"got {types.shape[0]} types, expected {self.count}, one for each product")
        self.data = <const void **>malloc((self.count + 1) * sizeof(void *))
        self.types = <int *>malloc((self.count + 1) * sizeof(int))
        if self.data == NULL or self.types == NULL:
            raise MemoryError("no memory for the list of products")
        for i in range(self.count):
            view = arrays[i]
            self.data[i], self.types[i] = first_of(view, types[i], size), types[i]

    def __dealloc__(self):
        free(self.data)
        free(self.types)


cdef ptrdiff_t set_result(words_task *t, tuple scales, uint8_t[::1] out, bint is_double) except -1:
    """Store the result's place and its `scales` (see `Scales` in the stub) in the task, and return its number of elements."""
    cdef const int32_t[::1] row_exponents = scales[0], column_exponents = scales[1]
    cdef const double[::1] row_powers = scales[2], column_powers = scales[3]
    cdef ptrdiff_t rows = row_exponents.shape[0], columns = column_exponents.shape[0]
    memset(t, 0, sizeof(words_task))
    if rows < 1 or columns < 1 or out.shape[0] != rows * columns * (8 if is_double else 4):
        raise ValueError(f"got {out.shape[0]} bytes for a result of {rows} x {columns}, "
                         f"expected sizes of at least 1, and 4 or 8 bytes for each element")
    t.result.data, t.result.is_double, t.result.columns = &out[0], is_double, columns
    t.result.rows_exponents, t.result.columns_exponents = &row_exponents[0], &column_exponents[0]
    if row_powers is not None:
        if row_powers.shape[0] != rows or column_powers.shape[0] != columns:
            raise ValueError(f"got {row_powers.shape[0]} and {column_powers.shape[0]} powers, expected {rows} and {columns}")
        t.result.rows_powers, t.result.columns_powers = &row_powers[0], &column_powers[0]
    return rows * columns


def join_slices(list arrays, const int32_t[::1] types, const double[::1] steps, tuple scales, uint8_t[::1] out, bint is_double,
                int level, int threads):
    """Store FP64 sums of products times 2^(row + column exponent); the sum is multiplied by steps[j] before product j is added."""
    cdef words_task t
    cdef ptrdiff_t size = set_result(&t, scales, out, is_double)
    cdef Products products = Products(arrays, types, size)
    if products.count < 1 or steps.shape[0] != products.count:
        raise ValueError(f"got {steps.shape[0]} steps for {products.count} products, expected one for each, and at least one")
    t.what, t.count, t.products, t.types, t.steps = WORDS_JOIN_SLICES, products.count, products.data, products.types, &steps[0]
    run(&t, size, WORDS_BLOCK, products.count, level, threads)


def join_residues(const int8_t[:, ::1] planes, const double[::1] inverses, const double[:, ::1] weights,
                  const double[::1] product, tuple scales, uint8_t[::1] out, bint is_double, int level, int threads):
    """Store integers from planes of y_i (integer_words_join.h), rounded to FP64 once, times 2^(row + column exponent)."""
    cdef words_task t
    cdef ptrdiff_t size = set_result(&t, scales, out, is_double)
    if not 1 <= planes.shape[0] <= WORDS_MODULI or not 1 <= weights.shape[0] <= WORDS_LIMBS or planes.shape[1] != size or (
            inverses.shape[0] != planes.shape[0] or weights.shape[1] != planes.shape[0]
            or product.shape[0] != weights.shape[0]):
        raise ValueError(f"got {planes.shape[0]} planes, {weights.shape[0]} x {weights.shape[1]} weights and {inverses.shape[0]} moduli, "
                         "expected one plane and one column of weights for each modulus")
    t.what, t.planes, t.plane = WORDS_JOIN_RESIDUES, <int8_t *>&planes[0, 0], size
    t.remainders.moduli, t.remainders.limbs = planes.shape[0], weights.shape[0]
    t.remainders.inverses, t.remainders.weights, t.remainders.product = &inverses[0], &weights[0, 0], &product[0]
    run(&t, size, WORDS_BLOCK, planes.shape[0] * weights.shape[0], level, threads)


def reduce(const uint8_t[::1] product, int modulus, bint accumulate, int8_t[::1] out, int level, int threads):
    """Store balanced residues of int32 products in `out`, or of their sums with `out` if `accumulate`."""
    cdef words_task t
    cdef const void *data = first_of(product, WORDS_INT32, out.shape[0])
    memset(&t, 0, sizeof(t))
    if not 2 <= modulus <= 256:
        raise ValueError(f"modulus is {modulus}, expected 2 to 256")
    t.what, t.products, t.accumulate, t.planes = WORDS_REDUCE, &data, accumulate, &out[0]
    t.modulus, t.inverse, t.factor = modulus, 1.0 / modulus, (1 << 16) % modulus
    if 2 * t.factor >= modulus:
        t.factor -= modulus
    run(&t, out.shape[0], WORDS_BLOCK, 1, level, threads)


def reduce_sums(list arrays, const int32_t[::1] types, const double[::1] factors, double modulus, int8_t[:, ::1] out, int level,
                int threads):
    """Store residues of sums of product * factor, integers below 2^53, modulo an odd modulus.

    A residue is 2^HIGH times the first plane plus the second plane of `out`.
    """
    cdef words_task t
    cdef Products products = Products(arrays, types, out.shape[1])
    memset(&t, 0, sizeof(t))
    if out.shape[0] != 2 or products.count < 1 or factors.shape[0] != products.count:
        raise ValueError(f"got {out.shape[0]} planes and {factors.shape[0]} factors, expected 2 planes and a factor for each product")
    if modulus % 2 != 1 or not 3 <= modulus <= WORDS_TABLE_MODULUS:
        raise ValueError(f"modulus is {modulus:g}, expected an odd number from 3 to {WORDS_TABLE_MODULUS}")
    t.what, t.count, t.products, t.types, t.steps = WORDS_REDUCE_SUMS, products.count, products.data, products.types, &factors[0]
    t.modulus, t.inverse, t.planes, t.plane = modulus, 1 / modulus, &out[0, 0], out.shape[1]
    run(&t, out.shape[1], WORDS_BLOCK, products.count, level, threads)


def add_quantised(const uint8_t[::1] product, int kind, float factor, bint accumulate, float[::1] sums, int level, int threads):
    """Store sums + RN(RN(product) factor), in FP32, in `sums`; without `accumulate`, 0 replaces the old sums."""
    cdef words_task t
    cdef const void *data = first_of(product, kind, sums.shape[0])
    memset(&t, 0, sizeof(t))
    t.what, t.products, t.types, t.factor = WORDS_ADD_QUANTISED, &data, &kind, factor
    t.accumulate = accumulate
    t.result.data = &sums[0]
    run(&t, sums.shape[0], WORDS_BLOCK, 1, level, threads)
