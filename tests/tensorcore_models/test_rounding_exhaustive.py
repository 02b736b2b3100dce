"""Every encoding, every midpoint and its neighbours of all formats up to 16 bits, in every mode and kernel variant.

The expectation is built from the sorted list of representable values (exact integers decode them), not from the
rounding code.
"""

import functools

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.formats.exact_rounding import ROUNDINGS

SMALL = [fmt for fmt in tcm.FORMATS.values() if fmt.bits <= 16 and fmt.has_fields]
DETERMINISTIC = [mode for mode in ROUNDINGS if mode != "sr"]


@functools.cache
def exact_table(fmt):
    """kind, value, parity of the significand of every encoding, from exact integers."""
    kinds, values, odd = [], [], []
    for code in range(1 << fmt.bits):
        kind, negative, significand, exponent = fmt.decode_exact(code)
        kinds.append(kind)
        magnitude = {"inf": np.inf, "nan": np.nan}.get(kind)
        if magnitude is None:
            magnitude = float(significand) * 2.0**exponent  # both exact: formats of up to 16 bits
        values.append(-magnitude if negative else magnitude)
        odd.append(significand & 1)
    return np.array(kinds), np.array(values), np.array(odd, bool)


@functools.cache
def positive_numbers(fmt):
    """Codes, values, parities of the nonnegative finite numbers in ascending order, and the value one step beyond."""
    kinds, values, odd = exact_table(fmt)
    codes = np.nonzero((kinds == "finite") & ~np.signbit(values))[0]
    codes = codes[np.argsort(values[codes], kind="stable")]
    assert (np.diff(values[codes]) > 0).all()
    beyond = values[codes[-1]] + 2.0 ** (fmt.emax - fmt.fraction_bits)
    return codes, values[codes], odd[codes], beyond


def overflow_code(fmt, away, negative):
    if not away:
        return fmt.max_bits | (fmt.sign_bit if negative else 0)
    if fmt.has_inf:
        return fmt.inf_bits | (fmt.sign_bit if negative else 0)
    if fmt.has_nan:
        return fmt.nan_bits | (fmt.sign_bit if negative and fmt.specials == "fn" else 0)
    return None


def probes(fmt, dtype):
    """Points between neighbouring numbers: (index of the lower one, x, -1 below the midpoint, 0 on it, +1 above)."""
    _, values, _, beyond = positive_numbers(fmt)
    upper = np.append(values[1:], beyond)
    middle = (values + upper) / 2
    with np.errstate(over="ignore"):  # one step beyond the largest bf16 number is an infinite float32
        low, mid, high = (a.astype(dtype) for a in (values, middle, upper))
    assert (mid == middle).all() and (high == upper)[:-1].all()
    points = [
        (np.nextafter(low, high), -1),
        (np.nextafter(mid, low), -1),
        (mid, 0),
        (np.nextafter(mid, high), 1),
        (np.nextafter(high, low), 1),
    ]
    index = np.tile(np.arange(values.size), len(points))
    side = np.concatenate([np.full(values.size, s) for _, s in points])
    x = np.concatenate([p for p, _ in points])
    # of a format as fine as the source the neighbours are the numbers themselves: no such point lies between
    between = (x > low[index]) & (x < high[index])
    return index[between], x[between], side[between]


def rounds_away(mode, side, lower_odd, negative):
    if mode == "rne":
        return (side > 0) | ((side == 0) & lower_odd)
    if mode == "rna":
        return side >= 0
    if mode == "ro":
        return ~lower_odd
    if mode in ("rnu", "rnd", "rnz", "rno"):
        tie = {"rnu": not negative, "rnd": negative, "rnz": False, "rno": ~lower_odd}[mode]
        return (side > 0) | ((side == 0) & tie)
    away = {"rz": False, "ra": True, "ru": not negative, "rd": negative}[mode]
    return np.full(side.shape, away)


@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_every_encoding_decodes(fmt):
    kinds, values, _ = exact_table(fmt)
    codes = np.arange(1 << fmt.bits, dtype=fmt.container)
    for dtype in (np.float64, np.float32):
        got = tcm.decode(codes, fmt, dtype)
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, values.astype(dtype))
        finite = kinds == "finite"
        np.testing.assert_array_equal(np.signbit(got[finite]), np.signbit(values[finite]))


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_every_encoding_encodes_back(fmt, mode):
    kinds, _, _ = exact_table(fmt)
    codes = np.arange(1 << fmt.bits, dtype=fmt.container)
    expected = codes.copy()
    nan = kinds == "nan"
    if fmt.specials == "ieee":
        expected[nan] |= fmt.container.type(1 << (fmt.fraction_bits - 1))  # quiet, payload and sign kept
    for dtype in (np.float64, np.float32):
        np.testing.assert_array_equal(tcm.encode(tcm.decode(codes, fmt, dtype), fmt, mode), expected)


@pytest.mark.sweep(14)
@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["from_float64", "from_float32"])
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_midpoints_and_neighbours_in_every_mode(fmt, dtype, isa):
    codes, _, odd, _ = positive_numbers(fmt)
    index, x, side = probes(fmt, dtype)
    for mode in DETERMINISTIC:
        for negative in (False, True) if fmt.signed else (False,):
            away = rounds_away(mode, side, odd[index], negative)
            stays = index < codes.size - 1
            beyond = overflow_code(fmt, True, negative)
            for saturate in (False, True):
                target = np.minimum(index + away, codes.size - 1)
                expected = codes[target].astype(np.int64)
                if negative:
                    expected |= np.where((expected == 0) & (not fmt.has_negative_zero), 0, fmt.sign_bit)
                over = away & ~stays & (mode != "ro")  # rounding to odd never goes beyond the largest number
                keep = np.ones(x.size, bool)
                if not saturate and beyond is None:
                    keep = ~over
                    if over.any():
                        with pytest.raises(ValueError, match="neither infinity nor NaN"):
                            tcm.encode(-x[over][:1] if negative else x[over][:1], fmt, mode, False)
                elif not saturate:
                    expected[over] = beyond
                got = tcm.encode(-x[keep] if negative else x[keep], fmt, mode, saturate)
                np.testing.assert_array_equal(got, expected[keep], err_msg=f"{mode} {negative} {saturate}")
                if saturate is (beyond is None):  # what formats do by default: clamp where there is nothing else
                    np.testing.assert_array_equal(tcm.encode(-x if negative else x, fmt, mode), expected)


@pytest.mark.parametrize("fmt", [f for f in SMALL if f.has_subnormals], ids=lambda f: f.name)
def test_flushing_takes_exactly_the_subnormal_results(fmt, isa):
    for dtype in (np.float64, np.float32):
        _, x, _ = probes(fmt, dtype)
        for mode in ("rne", "rz", "ru", "ro"):
            for sign in (1, -1) if fmt.signed else (1,):
                kept = tcm.encode(sign * x, fmt, mode, saturate=True)
                flushed = tcm.encode(sign * x, fmt, mode, saturate=True, subnormals="flush")
                tiny = np.abs(tcm.decode(kept, fmt)) < fmt.min_normal
                zero = fmt.sign_bit if sign < 0 and fmt.has_negative_zero else 0
                np.testing.assert_array_equal(flushed, np.where(tiny, zero, kept))
