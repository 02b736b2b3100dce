"""Zeros that pad a ragged k change nothing, on every engine of the catalogue, whatever the block scales above them.

They could lift an alignment exponent, most of all below large block scales: under the default rules zero products take no part.
Units that have results of -0 (IEEE additions, AMD's sums) turn them into +0 where +0 is added, as IEEE 754 has it.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_encodings import STYLES
from twins import operands

import tensorcore_models as tcm
from tensorcore_models import kernels
from tensorcore_models.accumulators import ScaledDotAdd, WidenedDotAdd
from tensorcore_models.formats import get_format

IEEE_ADDITIONS = (tcm.SequentialFMA, tcm.GroupPairwiseSum, tcm.LanedFMA, tcm.PairRoundOddSum)
ROWS = list(
    {
        (row.accumulator, row.k, row.formats, row.scale_format, row.block_size): row
        for row in tcm.list_instructions()
        if row.published and (row.rollup is None or row.rollup.accumulators == 1)  # padding moves what takes turns
    }.values()
)


def has_negative_zeros(spec) -> bool:
    if isinstance(spec, WidenedDotAdd):
        return True  # a small negative result that is rounded to d is -0
    spec = getattr(spec, "dot", spec)
    signed = getattr(spec, "zero_sign", "positive") != "positive" or isinstance(spec, (*IEEE_ADDITIONS, ScaledDotAdd))
    return signed or getattr(spec, "negative_underflow", "positive") == "negative"


def without_negative_zeros(bits: np.ndarray, fmt) -> np.ndarray:
    return np.where(bits == fmt.sign_bit, bits.dtype.type(0), bits)


def padded(row, rng, k: int, zeros: int, args) -> tuple:
    """The operands with `zeros` zero products behind their k, below any block scales but NaN."""
    a, b, c, *scales = args
    a, b = np.pad(a, ((0, 0), (0, zeros))), np.pad(b, ((0, zeros), (0, 0)))
    if row.scale_format is None:
        return a, b, c, None, None
    fmt, size = get_format(row.scale_format), row.block_size
    more = -(-(k + zeros) // size) - scales[0].shape[1]
    extra = rng.integers(0, fmt.max_bits + 1, (len(a) + b.shape[1], more)).astype(np.uint8)
    return a, b, c, np.hstack([scales[0], extra[: len(a)]]), np.vstack([scales[1], extra[len(a) :].T])


@pytest.mark.sweep(21)
@pytest.mark.parametrize("row", ROWS, ids=str)
@settings(max_examples=8)
@given(data=st.data(), seed=st.integers(0, 2**32), style=st.sampled_from(STYLES))
def test_padding_changes_nothing(row, data, seed, style):
    k = data.draw(st.integers(1, min(2 * row.k, 96)), label="k")
    zeros = data.draw(st.integers(1, 2 * row.k), label="zeros")
    rng = np.random.default_rng(seed)
    args = operands(rng, row, 2, k, 9, style)
    ragged = kernels.matrix_bits(row, *args)
    longer = kernels.matrix_bits(row, *padded(row, rng, k, zeros, args))
    whole = row.gemm_bits(*args[:3], **dict(zip(("scale_a", "scale_b"), args[3:], strict=True)))
    d_format = row.formats[3]
    if has_negative_zeros(row.accumulator):
        ragged, longer, whole = (without_negative_zeros(x, d_format) for x in (ragged, longer, whole))
    assert np.array_equal(ragged, longer)
    assert np.array_equal(ragged, whole)


def test_padding_shows_under_the_rules_that_give_zeros_an_exponent():
    """What the test above would find: 1 and scales of 2^40 above padding that keeps them; 2^127 times 0."""
    grouped = tcm.get_instruction("rtx_blackwell:mma.m16n8k64.block16.f32.e2m1.e2m1.f32.ue8m0")
    a, b, c = np.full((1, 16), 2, np.uint8), np.full((16, 1), 2, np.uint8), np.zeros((1, 1), np.uint32)
    scales = np.full((1, 1), 127, np.uint8), np.full((1, 1), 127, np.uint8)
    high = np.array([[127, 167]], np.uint8), np.array([[127], [167]], np.uint8)
    longer = np.pad(a, ((0, 0), (0, 16))), np.pad(b, ((0, 16), (0, 0))), c
    for rule, same in (("skip_zero_products", True), ("skip", True), ("keeps_scale", False)):
        unit = grouped.with_rules(scaled_zero=rule)
        equal = kernels.matrix_bits(unit, a, b, c, *scales) == kernels.matrix_bits(unit, *longer, *high)
        assert bool(equal[0, 0]) is same
