"""Holds the lane and register of each matrix element of MFMA (CDNA3 ISA, "Matrix Arithmetic Instructions", register layouts).

A lane of A holds neighbouring values of k of one row. The lanes after the rows hold the next values of k, or the next block. D
lies in groups of four rows: a lane holds one column of a group, and the lanes after the columns hold the next group.
"""

from functools import cache
from typing import NamedTuple

from ...hardware.cuda.layouts import Axis, Fragment, doubling, exact_log2

WAVE = 64


class MatrixLayout(NamedTuple):
    """`MatrixLayout` holds the fragments of A, B and C of an MFMA; D has the layout of C."""

    a: Fragment
    b: Fragment
    c: Fragment


def _operand(size: int, k: int, blocks: int, bits: int, *, rows: bool) -> Fragment:
    """Return the layout of A (rows) or B: lanes along m (n), then along blocks and k.

    A lane holds the remaining values of k.
    """
    along: Axis = "row" if rows else "col"
    inner: Axis = "col" if rows else "row"
    groups = WAVE // size // blocks
    inside = k // groups
    threads = (*doubling(along, 1, exact_log2(size)), *doubling("block", 1, exact_log2(blocks)))
    threads += doubling(inner, inside, exact_log2(groups))
    shape = (blocks, size, k) if rows else (blocks, k, size)
    return Fragment(threads, doubling(inner, 1, exact_log2(inside)), bits, shape)


def _accumulator(m: int, n: int, blocks: int, bits: int) -> Fragment:
    """Return the layout of C and D: lanes along n, then groups of four rows; for f64, neighbouring lanes hold neighbouring
    rows."""
    groups = WAVE // n
    if bits == 64:
        apart = min(groups, m)
        threads = (
            *doubling("col", 1, exact_log2(n)),
            *doubling("block", 1, exact_log2(blocks)),
            *doubling("row", 1, exact_log2(4)),
        )
        return Fragment(threads, doubling("row", apart, exact_log2(m // 4)), bits, (blocks, m, n))
    if m == 4:  # each four lanes hold a block
        return Fragment((*doubling("col", 1, 2), *doubling("block", 1, 4)), doubling("row", 1, 2), bits, (blocks, m, n))
    threads = (*doubling("col", 1, exact_log2(n)), *doubling("row", 4, exact_log2(groups)))
    slots = (*doubling("row", 1, 2), *doubling("row", 4 * groups, exact_log2(m // (4 * groups))))
    return Fragment(threads, (*slots, *doubling("block", 1, exact_log2(blocks))), bits, (blocks, m, n))


@cache
def matrix_layout(m: int, n: int, k: int, blocks: int, a_bits: int, b_bits: int, c_bits: int) -> MatrixLayout:
    """Return the fragments of an MFMA with a given shape and given bits of an element."""
    return MatrixLayout(
        _operand(m, k, blocks, a_bits, rows=True),
        _operand(n, k, blocks, b_bits, rows=False),
        _accumulator(m, n, blocks, c_bits),
    )
