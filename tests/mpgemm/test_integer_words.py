"""Slices, residues and quantised words against plain integers, on every instruction set and with several threads."""

import dataclasses

import integer_reference as truth
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isas import ISAS, default_isa_and_threads, every_isa  # noqa: F401 (a fixture of every test)

import tensorcore_models as tcm
from mpgemm.recovery.integer_words import (
    balanced,
    common_exponents,
    integers_below,
    magnitudes,
    quantise,
    residue_words,
    slice_operand,
)
from mpgemm.recovery.method import MODULI
from mpgemm.recovery.methods import get_method

SHAPES = [(1, 1), (1, 520), (260, 1), (3, 259), (0, 4), (4, 0)]
ANY_MODULI = tuple(range(2, 257))


def spread(shape, dtype, seed=0):
    """Exponents all over the type's range, subnormal and extreme numbers, zeros, and what is not finite."""
    rng = np.random.default_rng(seed)
    low, high = (-149, 127) if dtype == "f4" else (-1074, 1023)
    x = np.ldexp(rng.uniform(-2, 2, shape), rng.integers(low, high, shape)).astype(dtype)
    facts = np.finfo(dtype)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan, facts.max, -facts.max, facts.smallest_subnormal, facts.tiny, 1.0):
        x[rng.random(shape) < 0.02] = value
    return x


def near(shape, dtype, seed=0):
    """Numbers of a few binades, as most data."""
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 1, shape)).astype(dtype)


def lines(x, axis):
    """Rows or columns as lists of Python numbers, 0 for what is not finite."""
    return [[float(v) if np.isfinite(v) else 0.0 for v in line] for line in (x if axis == 1 else x.T)]


def expected(x, axis, one, count):
    """`count` words of every element by one(number, exponent of its line), shape (count, *x.shape)."""
    exponents = [truth.common_exponent(line) for line in lines(x, axis)]
    found = [[one(v, e) for v in line] for line, e in zip(lines(x, axis), exponents, strict=True)]
    array = np.array(found, object).reshape(*(x.shape if axis == 1 else x.shape[::-1]), count)
    return np.moveaxis(array if axis == 1 else array.swapaxes(0, 1), 2, 0)


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_magnitudes(dtype, axis):
    for shape in SHAPES:
        x = spread(shape, dtype)
        kept = np.where(np.isfinite(x), np.abs(x.astype("f8")), 0)
        exponents = [truth.common_exponent(line) for line in lines(x, axis)]
        for isa in every_isa():
            found = magnitudes(x, axis)
            assert (found.largest == kept.max(axis=axis, initial=0.0)).all(), isa
            assert (found.finite == np.isfinite(x).all(axis=axis)).all(), isa
            assert found.exponents.tolist() == exponents, isa


def test_exponents_at_powers_of_two():
    x = np.array([[1.0, -2.0], [0.5, 0.0], [0.0, -0.0], [1 - 2.0**-53, 2.0**-1074], [2.0**-1074, 0], [np.inf, 3.0]])
    assert common_exponents(x, 1).tolist() == [2, 0, 0, 0, -1073, 2]


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize("data", (spread, near))
@pytest.mark.parametrize("method", ("ozaki_int8:slices=9", "mixpert"))
def test_slices(method, data, dtype, axis):
    row = get_method(method)

    def one(v, e):
        if row.slice_bits == 8:
            return truth.balanced_slices(v, e, row.words)
        return truth.truncated_slices(v, e, row.words, row.slice_bits)

    for shape in SHAPES:
        x = data(shape, dtype, shape[0])
        wanted = expected(x, axis, one, row.words)
        for isa in every_isa():
            slices, _ = slice_operand(x, axis, row)
            assert all(s.dtype == np.int8 and s.shape == x.shape for s in slices) and len(slices) == row.words
            assert (np.stack(slices) == wanted).all(), isa


def test_all_balanced_digits():
    """Ties, every carry from digit to digit, and the ends of the range, for every number of slices."""
    row = get_method("mixpert")
    for words in range(1, 9):
        products = tuple((i, j) for i, j in row.products if max(i, j) < words) or ((0, 0),)
        some = dataclasses.replace(row, words=words, products=products)
        top = 8 * words - 2
        whole = [127, 128, 129, -127, -128, -129, 0x7F7F, 0x8080, -0x8080, 0x7FFF, 1 << top, 1, 0.5, 1.5, -0.5, -2.5]
        x = np.array([w * 2.0**-top for w in whole if abs(w) <= 1 << top])[None]
        x = np.concatenate([x, np.nextafter(x, 0), np.nextafter(x, 2)], axis=1)
        x = x[abs(x) < 1][None]
        wanted = [truth.balanced_slices(float(v), 0, words) for v in x[0]]
        for isa in every_isa():
            slices, _ = slice_operand(x, 1, some, np.zeros(1, np.int32))
            assert [list(map(int, d)) for d in zip(*(s[0] for s in slices), strict=True)] == wanted, isa


def test_slices_that_do_not_fit():
    with pytest.raises(ValueError, match="9 slices of 8 bits"):
        slice_operand(np.ones((1, 1)), 1, dataclasses.replace(get_method("mixpert"), words=9))
    with pytest.raises(TypeError, match="float32 or float64"):
        slice_operand(np.ones((1, 1), int), 1, get_method("mixpert"))


@pytest.mark.sweep(10)
@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize("data", (spread, near))
@pytest.mark.parametrize("bits", (1, 14, 15, 26, 27, 30, 31, 51, 52, 62))
def test_residues_and_integers(data, dtype, axis, bits):
    moduli = (*MODULI, 2, 3, 16)
    for shape in SHAPES:
        x = data(shape, dtype, bits)
        wanted = expected(x, axis, lambda v, e: [truth.integer_below(v, e, bits)], 1)[0].astype(np.int64)
        below = [truth.common_exponent(line) - bits for line in lines(x, axis)]
        for isa in every_isa():
            whole, exponents = integers_below(x, axis, bits)
            words, same = residue_words(x, axis, bits, moduli)
            assert (whole == wanted).all() and exponents.tolist() == same.tolist() == below, isa
            for word, p in zip(words, moduli, strict=True):
                assert word.dtype == np.int8
                assert ((word - whole) % p == 0).all() and (2 * word >= -p).all() and (2 * word.astype(int) < p).all()


@pytest.mark.parametrize(
    "bits", (14, 26, 30, 31, 41, 51, 52, 62)
)  # 30 and 31, 51 and 52: other ways to cut fractions off; 26 and 62: the highest piece is as large as it may be
def test_residues_near_every_tie(bits):
    """All moduli, integers around multiples of p/2 of every size, and multiples of those: the quotient rounds as it must."""
    limit = (1 << bits) - 1
    bases = [0, *(int(v) for v in np.random.default_rng(bits).integers(0, limit, 14)), limit]
    for p in ANY_MODULI:
        whole = [b // p * p + p * n // 2 + off for b in bases for n in (-1, 0, 1, 2) for off in (-1, 0, 1)]
        x = np.array([w for w in whole if abs(w) <= limit], np.float64)
        x = x[np.abs(x) <= limit][None]  # what binary64 made of them
        factors = (1, balanced(p // 2, p))
        wanted = [[truth.balanced_residue(int(v) * factor, p) for v in x[0]] for factor in factors]
        for isa in every_isa():
            words, _ = residue_words(x, 1, bits, (p, p), np.array([bits], np.int32), factors=factors)
            assert [word[0].tolist() for word in words] == wanted, (isa, p)


@pytest.mark.parametrize("bits", (16, 40))  # two and four pieces
def test_residues_of_every_small_integer(bits):
    x = np.arange(-20_000, 20_001, dtype=np.float64)[None]
    for isa in every_isa():
        words, _ = residue_words(x, 1, bits, ANY_MODULI, np.array([bits], np.int32))
        for word, p in zip(words, ANY_MODULI, strict=True):
            wanted = (x[0].astype(np.int32) + p // 2) % p - p // 2
            assert (word[0] == wanted).all(), (isa, p)


def test_balanced_residues_fit_int8():
    for p in ANY_MODULI:
        r = [balanced(n, p) for n in range(-300, 300)]
        assert r == [truth.balanced_residue(n, p) for n in range(-300, 300)]
        assert min(r) == -(p // 2) and max(r) == (p - 1) // 2 and min(r) >= -128 and max(r) <= 127


def check_quantised(x, words, limit, fmt):
    numbers = [v for line in lines(x, 1) for v in line]
    wanted = truth.quantised_words(numbers, words, limit, "fp32" if x.dtype == "f4" else "fp64")
    for isa in every_isa():
        found = quantise(x, words, tcm.get_format(fmt))
        for (word, scale), (integers, factor) in zip(found, wanted, strict=True):
            assert scale == factor and word.dtype == np.int8 and word.ravel().tolist() == integers, isa


@pytest.mark.sweep(1)
@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize(("fmt", "limit"), [("s8", 127), ("s4", 7)])
def test_quantised_words(fmt, limit, dtype):
    for shape in SHAPES:
        check_quantised(near(shape, dtype), 3, limit, fmt)
    x = spread((5, 300), dtype)
    x[np.abs(x) > 1e30] = np.nan  # scales beyond FP32 are infinite: all is NaN then
    check_quantised(x, 4, limit, fmt)


@pytest.mark.parametrize("dtype", ("f4", "f8"))
def test_quantised_ties_and_tiny_scales(dtype):
    """max = q_max makes the scale 1: halves tie. Below FP32's normal numbers the scale is coarse, and words are clamped."""
    x = np.array([[127, 0.5, 1.5, 2.5, -0.5, -1.5, -125.5, 126.5, -127]], dtype)
    check_quantised(x, 2, 127, "s8")
    for largest in (2.0**-149, 3 * 2.0**-149, 100 * 2.0**-149, 190 * 2.0**-149, 200 * 2.0**-149, 1e-41):
        check_quantised(np.linspace(-largest, largest, 37).astype(dtype)[None], 3, 127, "s8")


def test_threads_and_the_layout_change_nothing():
    """Blocks go to threads; strides, byte order and write protection do not matter; the last row is as good as the first."""
    big = near((301, 431), "f4", 5)
    big[300, 430] = 9.0
    big.flags.writeable = False
    row, s8 = get_method("mixpert"), tcm.get_format("s8")

    def everything(x):
        return [
            *slice_operand(x, 1, row)[0],
            *slice_operand(x, 0, get_method("ozaki_int8"))[0],
            *residue_words(x, 0, 40, MODULI)[0],
            integers_below(x, 1, 40)[0],
            *(w for w, _ in quantise(x, 2, s8)),
        ]

    last = truth.balanced_slices(9.0, truth.common_exponent(lines(big[300:], 1)[0]), 4)
    tcm.set_isa("baseline")
    tcm.set_num_threads(1)
    single = everything(big)
    assert [int(s[300, 430]) for s in single[:4]] == last
    for isa in every_isa():
        for threads in (1, 2, 3):
            tcm.set_num_threads(threads)
            for x in (big, np.asfortranarray(big), np.repeat(big, 2, axis=1)[:, ::2], big.astype(">f4")):
                for one, other in zip(single, everything(x), strict=True):
                    assert one.tobytes() == np.ascontiguousarray(other).tobytes(), (isa, threads)


@settings(max_examples=150, derandomize=True)
@given(st.floats(-1e6, 1e6), st.integers(1, 62), st.integers(2, 256), st.sampled_from(ISAS))
def test_any_number(x, bits, p, isa):
    tcm.set_isa(isa)
    number = np.array([[x]])
    e = truth.common_exponent([x])
    (word,), exponents = residue_words(number, 1, bits, (p,))
    assert exponents[0] == e - bits
    assert int(word[0, 0]) == truth.balanced_residue(truth.integer_below(x, e, bits), p)


def test_bits_that_do_not_fit():
    for bits in (0, 63):
        with pytest.raises(ValueError, match="expected 1 to 62"):
            integers_below(np.ones((1, 1)), 1, bits)
