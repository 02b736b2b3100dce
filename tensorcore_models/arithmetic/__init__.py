"""Every family states its pass once in this arithmetic, which works on plain integers and on bit-vectors for solvers.

`operations` holds the operations on integers of known range, for every type that stands for an integer. `numbers` decodes
encodings and encodes results. `sums` adds numbers with alignment, exactly or by the IEEE rules. This module exports the names
that families use.
"""

from .numbers import (
    Number,
    cut,
    decode,
    encoded,
    farther,
    finish,
    flushed,
    flushed_to_positive,
    flushed_to_zero,
    largest_exponent,
    left_out,
    multiply,
    normalised,
    overflowed,
    part_products,
    plain,
    positive_zero,
    scaled_product,
    taking_part,
    unless_special,
    without_subnormals,
)
from .operations import every, natural, no, same, select, some, total
from .sums import (
    KEEP,
    SUBNORMAL,
    TINY,
    add,
    converted,
    cut_sum,
    cut_total,
    exact_sum,
    fma,
    ieee_sum,
    normalising_add,
    product,
    rounded_down,
    rounded_sum,
    sum_aligned,
    summed,
    tree_sum,
    with_zero_sign,
)

__all__ = [
    "KEEP", "SUBNORMAL", "TINY", "Number", "add", "converted", "cut", "cut_sum", "cut_total", "decode", "encoded", "every",
    "exact_sum", "farther", "finish", "flushed", "flushed_to_positive", "flushed_to_zero", "fma", "ieee_sum",
    "largest_exponent", "left_out", "multiply", "natural", "no", "normalised", "normalising_add", "overflowed", "part_products",
    "plain", "positive_zero", "product", "rounded_down", "rounded_sum", "same", "scaled_product", "select", "some",
    "sum_aligned", "summed", "taking_part", "total", "tree_sum", "unless_special", "with_zero_sign", "without_subnormals",
]  # fmt: skip
