"""Faults that kernels have, as data: how each is made in the campaign, and by what the diagnosis tells it from others.

The campaign (`tests/testing/test_fault_table.py`) makes each fault on several kernels and formats and holds what
:func:`mpgemm.testing.assert_gemm_close` says against `says`; docs/kernel_faults.md is written from both.
"""

from typing import NamedTuple


class KernelFault(NamedTuple):
    """One fault."""

    name: str
    made: str  #: How a kernel gets it.
    recognised: str  #: The prediction that the result must agree with.
    says: str  #: Regular expression that the first statement of a right diagnosis contains.


#: The faults in the order of the docs.
KERNEL_FAULTS = (
    KernelFault(
        "dropped block", "a block of k is not added", "the exact sum without these products",
        r"k \d+:\d+ is missing|the sum (begins|ends)",
    ),
    KernelFault(
        "doubled block", "a block of k is added twice", "the exact sum with these products twice",
        r"k \d+:\d+ is there twice",
    ),
    KernelFault(
        "stale block", "A and B of a block of k are those of the block before",
        "the exact sum with the block before in its place", r"a stale block",
    ),
    KernelFault(
        "stale block of A", "A of a block of k is that of the block before",
        "the exact sum with A of the block before in its place",
        r"a stale block",
    ),
    KernelFault(
        "missing tail", "values of k that fill no tile are not added", "the exact sum up to the last whole tile",
        r"the sum ends at|k \d+:\d+ is missing",
    ),
    KernelFault(
        "wrong scale of a row", "one row of A has another factor", "one ratio for the elements of the row",
        r"scale of row \d+ is wrong|scale_a of row \d+",
    ),
    KernelFault(
        "wrong scale of a column", "one column of B has another factor", "one ratio for the elements of the column",
        r"scale of column \d+ is wrong|scale_b of column \d+",
    ),
    KernelFault(
        "wrong scale of a block", "one block of k of one operand has another factor",
        "the exact sum with a multiple of the block's part", r"the scale of k \d+:\d+|of (the|each) block",
    ),
    KernelFault(
        "scale of the next block", "the factor of each block of k is that of the block behind",
        "the exact sum with these factors", r"scale_a is that of the block of k",
    ),
    KernelFault(
        "scale applied twice", "the factors of A are squared", "the exact sum with squared factors",
        r"scale_a( of .*)? was applied twice",
    ),
    KernelFault(
        "scale of one row applied twice", "the factor of one row is squared",
        "the exact sum with a squared factor in the row's elements",
        r"scale_a of row \d+ was applied twice",
    ),
    KernelFault(
        "scale inverted", "the kernel divides by the factors of A", "the exact sum with inverted factors",
        r"scale_a( of .*)? is inverted",
    ),
    KernelFault(
        "scale left out", "the factors of B are not applied", "the exact sum without these factors",
        r"scale_b( of .*)? was left out",
    ),
    KernelFault(
        "FP16 accumulation", "sums are rounded to FP16 after every 16 products",
        "sums that are rounded so, or errors of that size", r"fp16 accumulation",
    ),
    KernelFault(
        "BF16 accumulation", "sums are rounded to BF16 after every 16 products",
        "sums that are rounded so, or errors of that size", r"bf16 accumulation",
    ),
    KernelFault(
        "missing promotion", "one chain of the unit replaces the sums in FP32 outside it", "the unit's own chain",
        r"no promotion to FP32",
    ),
    KernelFault(
        "operand format mistaken", "encodings of A and B are read as another format of the same width",
        "the exact product of the numbers that are read", r"read as",
    ),
    KernelFault(
        "FNUZ mistaken", "e4m3fn (e5m2) is read as e4m3fnuz (e5m2fnuz)", "the exact product of the numbers that are read",
        r"read as \w+fnuz|wrong scale",
    ),
    KernelFault(
        "operands rounded", "operands lose fraction bits before they are multiplied",
        "the exact product of rounded operands", r"the operands were (rounded|cut) to",
    ),
    KernelFault(
        "transposed tile", "a tile of 16 x 16 is written transposed", "the element that belongs there", r"transposed",
    ),
    KernelFault(
        "permuted tile", "two neighbouring tiles of 16 rows are exchanged", "the element that belongs there",
        r"exchanged",
    ),
    KernelFault(
        "stale accumulator", "a tile starts from the sums of the tile before", "the exact sum with the other tile's",
        r"stale accumulator",
    ),
    KernelFault("stale C", "the result is added to the result of a run before", "twice the exact result", r"a stale C"),
    KernelFault("bias added twice", "C is added twice", "the exact result with C once more", r"C is added twice"),
    KernelFault("bias left out", "C is not added", "the exact result without C", r"C is left out"),
    KernelFault("tile never written", "a tile of 16 rows holds zeros", "0 in all failing elements", r"0 in all wrong elements"),
    KernelFault(
        "saturated instead of NaN", "NaN becomes the largest number of the output", "finite results where NaN is right",
        r"saturated",
    ),
)  # fmt: skip


def get_fault(name: str) -> KernelFault:
    """The row of a name. Raises KeyError if there is none."""
    return {fault.name: fault for fault in KERNEL_FAULTS}[name]
