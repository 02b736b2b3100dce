"""Integer methods on FP8 words: products that each unit sums exactly, words of residues, and both schemes in plain loops."""

import math
from fractions import Fraction

import integer_reference as reference
import numpy as np
import pytest
from isas import default_isa_and_threads, every_isa  # noqa: F401 (a fixture of every test)

import tensorcore_models as tcm
from mpgemm import UnsuitableEngine, compare, exact_gemm, get_method, recovered_gemm, resolve_engine
from mpgemm.recovery.exact_sums import exact_bits, exact_products, padding
from mpgemm.recovery.integer_words import common_exponents, residue_bits, residue_entries
from mpgemm.recovery.method import SPLIT_MODULI, check_moduli
from mpgemm.recovery.split_residues import BASES, WORDS, factors_of, split_remainders, word_table

UNITS = [
    row
    for row in tcm.list_instructions()
    if row.a_format == row.b_format in ("e4m3fn", "e4m3fnuz", "e4m3")
    and row.d_format == "fp32" and row.scale_format is None and row.published
]  # fmt: skip
WGMMA, TCGEN05 = (
    tcm.get_instruction(f"{name}.m64n8k32.f32.e4m3.e4m3") for name in ("hopper:wgmma", "blackwell:tcgen05.mma")
)


def run(unit, a, b, c):
    """One chain of a unit over one row and one column of integers, from c."""
    codes = [tcm.encode(np.asarray(x, np.float32), unit.formats[0]) for x in (a, b)]
    start = None if c is None else np.float32([[c]])
    bits = unit.gemm_bits(codes[0][None], codes[1][:, None], None if start is None else start.view(np.uint32))
    return float(bits.view(np.float32)[0, 0])


# -- how many products stay exact -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_is_derived_of_a_unit_is_what_it_does(unit):
    """Sums just below 2^t are exact wherever their bits come from; twice as large ones are not."""
    t, rng = exact_bits(unit), np.random.default_rng(3)
    assert t == (14 if "hopper:wgmma" in str(unit) or unit.arch == "ada" else 24)
    for trial in range(12):
        a, b = rng.integers(-15, 16, unit.k), rng.integers(-15, 16, unit.k)
        if trial % 3 == 0:  # one product of 1, the rest as large as they can be
            a, b = np.full(unit.k, 15), np.full(unit.k, 15)
            a[trial % unit.k] = b[trial % unit.k] = 1
        total, size = int(a @ b), int(np.abs(a) @ np.abs(b))
        for c in (2**t - 1 - size, size + 1 - 2**t):
            assert size < 2**t and run(unit, a, b, c) == c + total
    a, b = np.zeros(unit.k), np.zeros(unit.k)
    a[0] = b[0] = 1
    assert run(unit, a, b, 2 ** (t + 1)) != 2 ** (t + 1) + 1


def test_products_that_stay_exact_on_hopper_and_blackwell():
    assert [exact_products(WGMMA, largest) for largest in (225, 256, 1024, 2**15)] == [64, 64, 16, 0]
    assert [exact_products(TCGEN05, largest) for largest in (256, 1024)] == [65536, 16384]
    row = get_method("ozaki2_fp8")
    assert padding(row, WGMMA) == 2 and padding(row, TCGEN05) == padding(get_method("ozaki_fp8"), WGMMA) == 1
    assert exact_bits(tcm.default_instruction("h100", "s8", "s32")) == 31


def test_the_largest_products_are_exact_on_hopper_and_one_more_is_not():
    """64 products of 16 x 16 give 2^14; with a 65th, 1, the chain loses it."""
    full = np.full(64, 16)
    assert run(WGMMA, full, full, None) == 2**14
    more = np.append(full, 1)
    assert run(WGMMA, more, more, None) == 2**14


def test_a_unit_that_sums_no_product_exactly_is_refused():
    narrow = tcm.MatrixEngine(tcm.FusedDotAdd(8, 7), a_format="e4m3fn")
    with pytest.raises(
        UnsuitableEngine, match="needs exact sums of products up to 1024, .* keeps 8 bits, fewer than one product has"
    ):
        resolve_engine(narrow, get_method("ozaki2_fp8"))


# -- words of residues -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fmt", ("e4m3fn", "e4m3fnuz", "e4m3"))
def test_words_are_exact_in_the_format(fmt):
    values = np.float32(WORDS)
    assert np.array_equal(tcm.decode(tcm.encode(values, fmt), fmt), values)


def test_every_residue_of_every_modulus_has_its_words():
    assert tuple(BASES) == SPLIT_MODULI and all(math.gcd(p, q) == 1 for p in BASES for q in BASES if q < p)
    for p, base in BASES.items():
        high, low, both = word_table(p).astype(int)
        assert np.array_equal((high * base + low) % p, np.arange(p)) and np.array_equal(high + low, both)
        assert set(word_table(p).ravel().tolist()) <= set(WORDS)
        x, y = np.random.default_rng(p).integers(0, p, (2, 50))
        words = zip(word_table(p)[:, x].astype(int), word_table(p)[:, y].astype(int), strict=True)
        products = [u * v for u, v in words]
        for scale in (1, 77):
            weighted = sum(f * part for f, part in zip(factors_of(p, scale), products, strict=True))
            assert np.array_equal(weighted % p, scale * x * y % p)
    with pytest.raises(ValueError, match="modulus is 256, expected one of 1283, "):
        word_table(256)
    with pytest.raises(ValueError, match="from 2 to 256"):
        check_moduli(SPLIT_MODULI)


@pytest.mark.sweep(3)
@pytest.mark.parametrize("p", SPLIT_MODULI)
def test_words_and_sums_of_numbers_whose_residues_are_the_hardest(p):
    """Residues around p/2, where quotients are nearest to a tie, of numbers of every size; sums up to the largest, too."""
    rng = np.random.default_rng(p)
    wide = [int(n) // p * p for bits in range(1, 62) for n in rng.integers(0, 1 << bits, 3)]
    numbers = [s * (n + half + off) for s in (1, -1) for n in wide for half in (0, p // 2) for off in range(-3, 4)]
    numbers = [n for n in numbers if abs(n) < 1 << 53]  # what float64 holds
    x = np.array([[*numbers, 2.0**61]])  # the last sets the exponent: bits of 62 leave the numbers as they are
    table = word_table(p)
    for isa in every_isa():
        found = residue_entries(x, 1, 62, p, table.view(np.uint8), np.int32([62])).view(np.int8)
        assert np.array_equal(found[:, 0, :-1], table[:, [n % p for n in numbers]]), isa
    sums = [rng.integers(-(2**41), 2**41, (1, 999)), rng.integers(-(2**31), 2**31, (1, 999)).astype(np.int32)]
    sums.append(rng.integers(-(2**24), 2**24, (1, 999)).astype(np.float32))
    theorem, planes = (
        split_remainders((SPLIT_MODULI[0] if p != SPLIT_MODULI[0] else 1279, p)),
        np.zeros((4, 1, 999), np.int8),
    )
    factors = factors_of(p, theorem.factors[1])
    wanted = [
        sum(f * int(v) for f, v in zip(factors, column, strict=True)) % p
        for column in zip(*(s[0] for s in sums), strict=True)
    ]
    for isa in every_isa():
        theorem.store(1, sums, planes)
        high, low = planes[2:, 0].astype(int)
        assert ((high * 32 + low) % p).tolist() == wanted and np.abs(high).max() <= 22 and np.abs(low).max() <= 16, isa


# -- both schemes in plain loops ----------------------------------------------------------------------------------------------
def step(unit, left, right, held):
    """One instruction on small operands, padded to its shape."""
    a, b, c = np.zeros((unit.m, unit.k)), np.zeros((unit.k, unit.n)), np.zeros((unit.m, unit.n), np.float32)
    a[: len(left), : left.shape[1]], b[: len(right), : right.shape[1]] = left, right
    c[: len(left), : right.shape[1]] = held
    codes = [tcm.encode(np.float32(x), unit.formats[0]) for x in (a, b)]
    return unit.mma_bits(*codes, c.view(np.uint32)).view(np.float32)[: len(left), : right.shape[1]]


def exact_loops(unit, left, right, largest):
    """An integer product: chains as long as the unit sums exactly, added outside in Python integers."""
    total, count = np.zeros((len(left), right.shape[1]), object), exact_products(unit, largest)
    for start in range(0, left.shape[1], count):
        held = np.zeros(total.shape, np.float32)
        for first in range(start, min(start + count, left.shape[1]), unit.k):
            ks = slice(first, min(first + unit.k, start + count))
            held = step(unit, left[:, ks], right[ks], held)
        total = total + np.vectorize(int, otypes=[object])(held)
    return total


def digits(x, exponents, make):
    """`make` of every element with the exponent of its row."""
    return np.array([[make(float(v), int(e)) for v in row] for row, e in zip(x, exponents, strict=True)], object)


@pytest.mark.parametrize("unit", (WGMMA, TCGEN05), ids=str)
def test_slices_are_the_loops(unit):
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((3, 70)), rng.standard_normal((70, 2))
    rows, columns = common_exponents(a, 1), common_exponents(b, 0)
    x = digits(a, rows, lambda v, e: tuple(reference.truncated_slices(v, e, 5, 4)))
    y = digits(b.T, columns, lambda v, e: tuple(reference.truncated_slices(v, e, 5, 4)))
    expected = np.zeros((3, 2))
    products = {
        (i, j): exact_loops(unit, x[:, :, i].astype(int), y[:, :, j].astype(int).T, 225)
        for i, j in get_method("ozaki_fp8", slices=5).products
    }
    for m in range(3):
        for n in range(2):
            values, exponents = zip(*((int(p[m, n]), -4 * (i + j)) for (i, j), p in products.items()), strict=True)
            expected[m, n] = reference.joined_slices(values, exponents, int(rows[m] + columns[n]) - 8)
    assert np.array_equal(recovered_gemm(a, b, None, "ozaki_fp8", unit, slices=5), expected)


@pytest.mark.parametrize("unit", (WGMMA, TCGEN05), ids=str)
def test_residues_are_the_loops(unit):
    rng = np.random.default_rng(6)
    a, b = rng.standard_normal((3, 50)), rng.standard_normal((50, 2))
    moduli, rows, columns = SPLIT_MODULI[:4], common_exponents(a, 1), common_exponents(b, 0)
    bits = residue_bits(moduli, 50)
    x = digits(a, rows, lambda v, e: reference.integer_below(v, e, bits))
    y = digits(b.T, columns, lambda v, e: reference.integer_below(v, e, bits)).T
    remainders = []
    for p in moduli:
        words = [word_table(p)[:, (m % p).astype(int)].astype(int) for m in (x, y)]
        sums = [exact_loops(unit, u, v, 1024) for u, v in zip(*words, strict=True)]
        whole = sum(f * part for f, part in zip(factors_of(p), sums, strict=True))
        remainders.append([[int(r) % p for r in row] for row in whole])
    expected = [
        [
            float(
                reference.joined_residues([r[m][n] for r in remainders], moduli, int(rows[m] + columns[n]) - 2 * bits)
            )
            for n in range(2)
        ]
        for m in range(3)
    ]
    found = recovered_gemm(a, b, None, "ozaki2_fp8", unit, moduli=4)
    assert np.array_equal(found, expected)
    whole = [[sum(Fraction(int(u)) * int(v) for u, v in zip(row, column, strict=True)) for column in y.T] for row in x]
    assert [[Fraction(float(v)) * Fraction(2) ** (2 * bits - int(rows[m] + columns[n])) for n, v in enumerate(row)]
            for m, row in enumerate(found)] == [[Fraction(reference.rounded(v)) for v in row] for row in whole]  # fmt: skip


def test_every_unit_gives_the_same_bits():
    rng = np.random.default_rng(7)
    a, b = rng.standard_normal((4, 80)), rng.standard_normal((80, 3))
    for method in ("ozaki_fp8", "ozaki2_fp8"):
        found = [recovered_gemm(a, b, None, method, unit) for unit in UNITS]
        assert all(np.array_equal(found[0], other) for other in found[1:])


def test_residues_reach_fp64_with_36_passes_where_slices_take_120():
    rng = np.random.default_rng(8)
    a, b = rng.standard_normal((9, 50)), rng.standard_normal((50, 8))
    pairs, slices = compare(["ozaki2_fp8:moduli=auto", "ozaki_fp8:slices=auto"], ["b300"], a, b)
    assert (pairs.passes, slices.passes) == (36, 120) and pairs.cost == pytest.approx(8) and pairs.errors.grade == "A"
    assert "16384 products of words of ozaki2_fp8, at most 1024 each, are exact" in pairs.sums
    (hopper,) = compare(["ozaki2_fp8:moduli=auto"], ["h100"], a, b)
    assert (
        hopper.cost == pytest.approx(2 * 36000 / 1978.9) and "16 of the 32 products of a step are zeros" in hopper.sums
    )
    exact = np.asarray(exact_gemm(a, b).rounded("fp64"))
    assert np.abs(recovered_gemm(a, b, None, "ozaki2_fp8:moduli=16") - exact).max() <= np.spacing(np.abs(exact)).max()
