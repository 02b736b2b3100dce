"""Chains of multiply-adds in vectors: slices of any length, results and operands that are flushed."""

import numpy as np
import pytest
from fast_units import CHAINS, FLUSHING, path_named, run
from twins import Unit, operands

import tensorcore_models as tcm
from tensorcore_models import kernels, reference, set_num_threads
from tensorcore_models._kernels.chains import chains
from tensorcore_models.accumulators import SequentialFMA
from tensorcore_models.machine.instruction_sets import isa_level


@pytest.mark.parametrize("unit", (CHAINS[0], CHAINS[4]), ids=lambda u: str(u)[17:90])
def test_chains_in_slices_of_any_length(unit, isa):
    """Edges of passes, slices, groups of rows and panels; several tiles for each thread; sums outside inside of a slice."""
    if not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    low = kernels.lowered(unit)
    dtype = low.d_format.container.str.replace("u", "f")
    for m, n, k, every, length in (
        (7, 67, 300, 0, 1), (13, 129, 300, 0, 128), (300, 530, 130, 0, 129), (6, 64, 256, 0, 4096),
        (7, 65, 320, 16, 48), (260, 33, 384, 128, 256), (1, 1, 15, 5, 5),
    ):  # fmt: skip
        a, b, c, *_ = operands(np.random.default_rng(k), unit, m, k, n, "normal")
        expected = c.copy() if every else kernels.generic_bits(low, a, b, c)
        for start in range(0, k if every else 0, every or 1):
            ks = slice(start, start + every)
            part = kernels.generic_bits(
                low, np.ascontiguousarray(a[:, ks]), np.ascontiguousarray(b[ks]), np.zeros_like(c)
            )
            expected = (expected.view(dtype) + part.view(dtype)).view(c.dtype)
        for threads in (1, 3):
            d = c.copy()
            x, y = (np.ascontiguousarray(z).view(dtype) for z in (a, b))
            task = {"every": every, "lanes": 0, "pairs": False, "flush": False}
            chains.chains(x, y, d.view(dtype), task, low.d_format.nan_bits, isa_level(), threads, length)
            assert np.array_equal(d, expected), (m, n, k, every, length, threads)


@pytest.mark.parametrize("length", [32, 96, 4096])
def test_operations_of_lanes_in_slices_of_any_length(length, isa):
    if not chains.available(isa_level(), True):
        pytest.skip("no flushing multiply-add at this level")
    low = kernels.lowered(FLUSHING[5])
    task = path_named("chains of multiply-adds").of(low)
    for m, n, k in ((7, 67, 300), (300, 133, 130), (1, 1, 15)):
        a, b, c, *_ = operands(np.random.default_rng(k), FLUSHING[5], m, k, n, "clustered")
        expected = kernels.generic_bits(low, a, b, c)
        x, y = np.ascontiguousarray(a), np.ascontiguousarray(b).view(np.float32)
        for threads in (1, 3):
            d = c.copy()
            settings = {"every": 32, "lanes": 2, "pairs": False, "flush": True}
            special = chains.chains(x, y, d.view(np.float32), settings, task.nan, isa_level(), threads, length)
            assert special == (not np.isfinite(d.view(np.float32)).all())
            assert np.array_equal(d, expected), (m, n, k, threads)


@pytest.mark.parametrize("length", [2, 130, 4096])
def test_pairs_in_slices_of_any_length(length, isa):
    """An odd k too, whose last product has no partner."""
    unit = tcm.get_instruction("x86:vdpbf16ps.k2.f32.bf16.bf16.f32")
    if not chains.available(isa_level(), True):
        pytest.skip("no flushing multiply-add at this level")
    low = kernels.lowered(unit)
    task = path_named("chains of multiply-adds").of(low)
    for m, n, k in ((7, 67, 301), (13, 33, 260), (1, 1, 1)):
        a, b, c, *_ = operands(np.random.default_rng(k), unit, m, k, n, "clustered")
        expected = kernels.generic_bits(low, a, b, c)
        for threads in (1, 3):
            d = c.copy()
            settings = {"every": 0, "lanes": 0, "pairs": task.pairs, "flush": True}
            chains.chains(
                *map(np.ascontiguousarray, (a, b)), d.view(np.float32), settings, task.nan, isa_level(), threads, length
            )
            assert np.array_equal(d, expected), (m, n, k, threads)


def test_chains_refuse_what_does_not_fit():
    """Sizes that would read or write beyond the arrays."""
    if not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    a, b, d = np.ones((3, 8)), np.ones((8, 5)), np.ones((3, 5))
    for arrays, length, every, lanes, message in (
        ((a, b[:7], d), 8, 0, 0, "an operand has shape"), ((a, b, d[:, :4].copy()), 8, 0, 0, "an operand has shape"),
        ((a, b, d), -1, 0, 0, "slices of -1"), ((a, b, d), 8, 3, 0, "chains of 3"), ((a, b, d), 6, 4, 0, "slices of 6"),
        ((a, b, d), 200, 200, 0, "chains of 200"), ((a, b, d), 8, 0, 2, "got 2 lanes for operations of 0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            chains.chains(
                *arrays, {"every": every, "lanes": lanes, "pairs": False, "flush": False}, 0, isa_level(), 1, length
            )
    task = {"every": 0, "lanes": 0, "pairs": True, "flush": False}
    with pytest.raises(ValueError, match="got pairs with chains of 0 products and slices of 3"):
        chains.chains(a, b, d, task, 0, isa_level(), 1, 3)
    with pytest.raises(ValueError, match="chains in double got encodings of bf16"):
        chains.chains(np.ones((3, 8), np.uint16), b, d, task, 0, isa_level(), 1)


@pytest.mark.parametrize("unit", (CHAINS[0], CHAINS[4]), ids=lambda u: str(u)[17:90])
def test_chains_say_whether_a_result_is_special(unit, isa):
    """One infinity or NaN in any tile, and numbers next to infinity."""
    if not chains.available(isa_level()):
        pytest.skip("no fused multiply-add at this level")
    dtype = np.dtype(kernels.lowered(unit).d_format.container.str.replace("u", "f"))
    task, nan = {"every": 0, "lanes": 0, "pairs": False, "flush": False}, kernels.lowered(unit).d_format.nan_bits
    for m, n in ((1, 1), (300, 530)):
        zero = np.zeros((m, 1), dtype), np.zeros((1, n), dtype)
        for value, wanted in ((np.finfo(dtype).max, False), (-np.inf, True), (np.nan, True)):
            for place in ((0, 0), (m // 2, n // 2), (m - 1, n - 1)):
                d = np.zeros((m, n), dtype)
                d[place] = value
                assert chains.chains(*zero, d, task, nan, isa_level(), 1) is wanted, (m, n, value, place)


def tiny_operands(rng, unit, m: int, k: int, n: int) -> tuple:
    """c, or the first product, at the smallest normal number, the others far below: results on both sides of the flush."""
    a_format, b_format, c_format, _ = unit.formats
    middle = (c_format.emin - c_format.fraction_bits) // 2
    a = rng.integers(1, 16, (m, k)) * 2.0 ** rng.integers(middle - 6, middle - 2, (m, k))
    b = rng.integers(1, 16, (k, n)) * 2.0 ** rng.integers(middle - 6, middle - 2, (k, n))
    a[rng.random((m, k)) < 0.9] = 0
    a *= np.where(rng.random((m, k)) < 0.5, -1.0, 1.0)
    c = (np.uint64(1) << np.uint64(c_format.fraction_bits)) + rng.integers(0, 2, (m, n), np.uint64)
    c[m // 2 :] = 0
    a[m // 2 :, 1:2] = 0
    a[m // 2 :, :1] = b[:1] = 2.0 ** (c_format.emin // 2)
    signs = rng.integers(0, 2, (m, n)).astype(np.uint64) * np.uint64(c_format.sign_bit)
    return tcm.encode(a, a_format), tcm.encode(b, b_format), (c | signs).astype(c_format.container), None, None


@pytest.mark.sweep(4)
@pytest.mark.parametrize("unit", [FLUSHING[i] for i in (0, 1, 3, 4, 5)], ids=lambda u: str(u)[17:90])
def test_results_at_the_smallest_normal_number(unit, isa):
    """A result is flushed by its value rounded with an unbounded exponent: kernels, generic kernels and integers alike."""
    rng = np.random.default_rng(7)
    for k in (1, 2, 35):
        args = tiny_operands(rng, unit, 12, k, 23)
        expected = reference.mma_bits(unit, *args)
        smallest = 1 << unit.formats[3].fraction_bits
        magnitude = expected & unit.formats[3].magnitude_mask
        assert k < 3 or ((magnitude == 0).any() and (magnitude == smallest).any())
        assert np.array_equal(kernels.generic_bits(kernels.lowered(unit), *args), expected)
        assert np.array_equal(run("chains of multiply-adds", unit, args), expected)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("unit", [FLUSHING[i] for i in (0, 1, 3, 4, 5)], ids=lambda u: str(u)[17:90])
def test_subnormal_operands_are_zero(unit, isa):
    """Also where the product with a large number would be an ordinary one; c likewise."""
    rng = np.random.default_rng(10)
    a_format, b_format, c_format, _ = unit.formats
    a = rng.integers(1, 1 << a_format.fraction_bits, (9, 40)).astype(a_format.container)
    a[:4, ::3] = tcm.encode(2.0**-100, a_format)  # beside numbers as large as the lost products
    b = tcm.encode(rng.standard_normal((40, 17)) * 2.0**40, b_format)
    c = rng.integers(1, 1 << c_format.fraction_bits, (9, 17)).astype(c_format.container)
    for args in ((a, b, c, None, None), (a * 0, b, c, None, None)):
        expected = reference.mma_bits(unit, *args)
        assert np.array_equal(run("chains of multiply-adds", unit, args), expected)
        assert np.array_equal(kernels.generic_bits(kernels.lowered(unit), *args), expected)


def test_a_lane_without_products_is_positive_zero(isa):
    """An operation of one product: its lane is flushed to -0, the empty one is +0, and so is their sum, which c = -0 keeps."""
    a, b = (tcm.encode(np.full(shape, value), "bf16") for shape, value in (((1, 33), -(2.0**-70)), ((33, 2), 2.0**-70)))
    c = np.full((1, 2), 0x80000000, np.uint32)
    for k in (1, 33):
        args = (a[:, :k], b[:k], c, None, None)
        expected = reference.mma_bits(FLUSHING[4], *args)
        assert not expected.any()
        assert np.array_equal(run("chains of multiply-adds", FLUSHING[4], args), expected)


def test_flushing_leaves_the_mode_alone():
    """Subnormal numbers of the caller's threads survive a product that was computed under FTZ and DAZ."""
    args = operands(np.random.default_rng(8), FLUSHING[0], 64, 64, 64, "normal")
    for threads in (1, 3):
        set_num_threads(threads)
        run("chains of multiply-adds", FLUSHING[0], args)
        assert np.float32(1e-40) * np.float32(1) != 0
    set_num_threads(None)
    plain = Unit(SequentialFMA(), "fp32", "fp32")
    small = operands(np.random.default_rng(9), plain, 64, 64, 64, "subnormal")
    assert np.array_equal(
        run("chains of multiply-adds", plain, small), kernels.generic_bits(kernels.lowered(plain), *small)
    )
