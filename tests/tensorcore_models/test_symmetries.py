"""What families say of the order of products, and of passes over zeros, holds bit for bit."""

import itertools

import numpy as np
import pytest
from random_encodings import STYLES, encodings

import tensorcore_models as tcm
from tensorcore_models.formats import get_float_format


def _units():
    """One instruction of each accumulator and formats."""
    found = {}
    for row in tcm.list_instructions():
        if row.published:
            found.setdefault((repr(row.accumulator), tuple(map(str, row.formats)), row.block_size), row)
    return list(found.values())


UNITS = _units()
ROWS, COLUMNS = 12, 8


def drawn(row, rng, style, k):
    """Encodings of A, B and C, and scales."""
    a = encodings(rng, row.formats[0], (ROWS, k), style)
    b = np.ascontiguousarray(encodings(rng, row.formats[1], (COLUMNS, k), style).T)
    c = encodings(rng, row.formats[2], (ROWS, COLUMNS), style)
    if row.scale_format is None:
        return a, b, c, {}
    fmt = get_float_format(row.scale_format)
    middle, blocks = fmt.bias << fmt.fraction_bits, k // row.block_size
    scales = (rng.integers(middle - 4, middle + 4, shape) for shape in ((ROWS, blocks), (blocks, COLUMNS)))
    return a, b, c, dict(zip(("scale_a", "scale_b"), (s.astype(fmt.container) for s in scales), strict=True))


def shuffled(rng, sets, k, block):
    """An order of k that mixes each set, scales of blocks kept."""
    order = np.arange(k)
    parts = itertools.chain.from_iterable(
        [[k for k in each if k // (block or k or 1) == at] for at in range(k // block if block else 1)] for each in sets
    )
    for part in parts:
        order[part] = rng.permutation(part)
    return order


@pytest.mark.parametrize("row", UNITS, ids=str)
@pytest.mark.sweep(42)
def test_interchangeable_products_change_no_bit(row):
    rng, spec = np.random.default_rng(1), row.accumulator
    k = max(spec.terms_per_step, row.block_size or 1)
    step = spec.terms_per_step
    sets = [tuple(start + i for i in each) for start in range(0, k, step) for each in spec.interchangeable(step)]
    assert sorted(itertools.chain.from_iterable(sets)) == list(range(k))
    if all(len(each) == 1 for each in sets):
        assert "symmetries" in type(spec).left_out or step == 1
        return
    for style in STYLES:
        a, b, c, scales = drawn(row, rng, style, k)
        order = shuffled(rng, sets, k, row.block_size)
        expected = row.gemm_bits(a, b, c, **scales)
        found = row.gemm_bits(np.ascontiguousarray(a[:, order]), np.ascontiguousarray(b[order]), c, **scales)
        assert np.array_equal(expected, found), style


@pytest.mark.parametrize("row", [row for row in UNITS if row.accumulator.idle(row.formats)], ids=str)
@pytest.mark.sweep(21)
def test_a_pass_over_zeros_leaves_a_result(row):
    rng, k = np.random.default_rng(2), max(row.accumulator.terms_per_step, row.block_size or 1)
    for style in STYLES:
        a, b, c, scales = drawn(row, rng, style, k)
        result = row.gemm_bits(a, b, c, **scales)
        again = row.gemm_bits(np.zeros_like(a), np.zeros_like(b), result, **scales)
        assert np.array_equal(result, again), style


def test_what_is_not_said_does_not_hold():
    """Chains, parity groups and zeros that keep exponents: the sets are not larger than they may be."""
    rng = np.random.default_rng(3)
    fma = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32")
    odd_even = tcm.MatrixEngine(tcm.ParametricDotAdd(terms=8, fraction_bits=8, alignment="odd_even"), a_format="fp16")
    assert odd_even.accumulator.interchangeable(8) == ((0, 2, 4, 6), (1, 3, 5, 7))
    for engine, k in ((fma, 8), (odd_even, 8)):
        a, b = drawn(engine, rng, "clustered", k)[:2]
        order = [1, 0, *range(2, k)]
        swapped = engine.gemm_bits(np.ascontiguousarray(a[:, order]), np.ascontiguousarray(b[order]))
        assert not np.array_equal(engine.gemm_bits(a, b), swapped)
    narrow = tcm.FusedDotAdd(terms=4, fraction_bits=13)
    fp32 = tuple(get_float_format("fp32") for _ in range(4))
    assert not narrow.idle(fp32)
    assert tcm.FusedDotAdd(terms=4, fraction_bits=13, output_fraction_bits=13).idle(fp32)
    assert not tcm.FusedDotAdd(terms=4, fraction_bits=25, zero_operand="minus126").idle(fp32)
