"""Where the manual has the elements of operands in shared memory, to read what generated kernels stage there."""

from tensorcore_models.hardware.cuda.layouts import CORE_BYTES, CORE_ROWS, LEADING_BYTES, STRIDE_BYTES


def core_matrix_offset(row: int, byte: int) -> int:
    """Byte offset in shared memory of byte `byte` along k of one row of A (column of B), K-major, no swizzle."""
    along, across = divmod(byte, CORE_BYTES), divmod(row, CORE_ROWS)
    return across[0] * STRIDE_BYTES + along[0] * LEADING_BYTES + across[1] * CORE_BYTES + along[1]
