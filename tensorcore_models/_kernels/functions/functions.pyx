"""This module runs sequences of instructions on arrays of 32-bit words (arithmetic in sequences.h and unit.h)."""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport free, malloc

from tensorcore_models._kernels.common.fp_state cimport mpg_fp_enter, mpg_fp_leave, mpg_fp_state

cdef extern from "sequences.h":
    enum: MPG_REGISTERS
    enum: MPG_BINADES
    enum: MPG_UNITS
    enum: MPG_SEQ_OPERATIONS

    ctypedef struct mpg_unit:
        int32_t first[11]
        int32_t shift[11]
        int32_t fraction_bits[11]

    ctypedef struct mpg_tables:
        const double *coefficients
        int32_t entries
        mpg_unit units[10]

    ctypedef struct mpg_step:
        int32_t operation, target, a, b, c

    ctypedef struct mpg_sequence:
        const mpg_step *steps
        int32_t count, operands, constants, result
        const uint32_t *values
        mpg_tables tables

    ctypedef struct mpg_registers:
        pass

    void mpg_sequence_start(const mpg_sequence *s, mpg_registers *r) noexcept nogil
    void mpg_sequence_range(const mpg_sequence *s, mpg_registers *r, const uint32_t *const *operands, uint32_t *out,
                            int64_t begin, int64_t end, int level) noexcept nogil

# Number of elements that a thread takes at a time.
cdef int64_t CHUNK = 1 << 14


cdef class Sequence:
    """`Sequence` holds steps, constants and tables for the kernel.

    Parameters
    ----------
    steps : int32 array (count, 5)
        Operation, target register and three source registers of each step. Registers hold operands, then constants, then
        results. A step must not write a register that it reads.
    values : uint32 array
        Constants.
    operands, result : int
        Number of operands, and register of the result.
    coefficients : float64 array (entries, 3)
        Coefficients of all tables.
    units : int32 array (units, 3, binades)
        First entry, shift and fraction bits of each table of each unit function.
    """

    cdef mpg_sequence sequence
    cdef object kept

    def __init__(self, const int32_t[:, ::1] steps, const uint32_t[::1] values, int operands, int result,
                 const double[:, ::1] coefficients, const int32_t[:, :, ::1] units):
        cdef Py_ssize_t unit, table, at
        if units.shape[0] != MPG_UNITS or units.shape[1] != 3 or units.shape[2] != MPG_BINADES or coefficients.shape[1] != 3:
            raise ValueError(
                f"coefficients have {coefficients.shape[1]} columns and units shape ({units.shape[0]}, {units.shape[1]}, "
                f"{units.shape[2]}), expected 3 columns and ({MPG_UNITS}, 3, {MPG_BINADES})"
            )
        if steps.shape[0] == 0 or steps.shape[1] != 5 or not 0 <= result < MPG_REGISTERS or not 1 <= operands <= 2:
            raise ValueError(
                f"got steps of shape ({steps.shape[0]}, {steps.shape[1]}), result register {result} and {operands} operands, "
                f"expected (count, 5) with a count above 0, a register below {MPG_REGISTERS}, and 1 or 2 operands"
            )
        if operands + values.shape[0] > MPG_REGISTERS:
            raise ValueError(f"the sequence has {operands + values.shape[0]} operands and constants, expected at most {MPG_REGISTERS}")
        for at in range(steps.shape[0]):
            if not 0 <= steps[at, 0] < MPG_SEQ_OPERATIONS:
                raise ValueError(f"step {at} has operation {steps[at, 0]}, expected 0 to {MPG_SEQ_OPERATIONS - 1}")
            for table in range(1, 5):
                if not 0 <= steps[at, table] < MPG_REGISTERS:
                    raise ValueError(f"step {at} names a register beyond the {MPG_REGISTERS} registers of the kernel")
                if table > 1 and steps[at, table] == steps[at, 1]:
                    raise ValueError(f"step {at} writes a register that it reads: use another target")
        self.kept = (steps, values, coefficients)
        self.sequence.steps, self.sequence.count = <const mpg_step *>&steps[0, 0], <int32_t>steps.shape[0]
        self.sequence.operands, self.sequence.constants = operands, <int32_t>values.shape[0]
        self.sequence.result = result
        self.sequence.values = &values[0] if values.shape[0] else NULL
        self.sequence.tables.coefficients = &coefficients[0, 0]
        self.sequence.tables.entries = <int32_t>coefficients.shape[0]
        for unit in range(MPG_UNITS):
            for table in range(MPG_BINADES):
                self.sequence.tables.units[unit].first[table] = units[unit, 0, table]
                self.sequence.tables.units[unit].shift[table] = units[unit, 1, table]
                self.sequence.tables.units[unit].fraction_bits[table] = units[unit, 2, table]

    def run(self, const uint32_t[::1] x, const uint32_t[::1] y, uint32_t[::1] out, int level, int threads):
        """Write the results for all elements of x and y to `out`; y is None if there is one operand."""
        cdef const uint32_t *operands[2]
        cdef int64_t chunk, count = x.shape[0], chunks = (count + CHUNK - 1) // CHUNK
        cdef int failed = 0
        cdef mpg_sequence *sequence = &self.sequence
        if out.shape[0] != count or (self.sequence.operands == 2) != (y is not None) or (y is not None and y.shape[0] != count):
            raise ValueError(
                f"got {1 if y is None else 2} operands, x of size {count} and results of size {out.shape[0]}, expected "
                f"{self.sequence.operands} operands and equal sizes of operands and results"
            )
        if count == 0:
            return
        operands[0] = &x[0]
        operands[1] = &y[0] if y is not None else NULL
        with nogil:
            for chunk in prange(chunks, num_threads=threads if chunks > 1 else 1, schedule="dynamic"):
                failed |= run_chunk(sequence, operands, &out[0], chunk * CHUNK, min((chunk + 1) * CHUNK, count), level)
        if failed:
            raise MemoryError


cdef int run_chunk(const mpg_sequence *s, const uint32_t *const *operands, uint32_t *out, int64_t begin, int64_t end,
                   int level) noexcept nogil:
    """Compute elements [begin, end) in registers of their own; return 1 if there is no memory for the registers."""
    cdef mpg_registers *registers = <mpg_registers *>malloc(sizeof(mpg_registers))
    cdef mpg_fp_state state
    if registers == NULL:
        return 1
    state = mpg_fp_enter()
    mpg_sequence_start(s, registers)
    mpg_sequence_range(s, registers, operands, out, begin, end, level)
    mpg_fp_leave(state)
    free(registers)
    return 0
