"""Sums of slices, Chinese remainders and sums of quantised words against plain integers, on every instruction set."""

import math
from fractions import Fraction

import integer_reference as truth
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isas import ISAS, default_isa_and_threads, every_isa  # noqa: F401 (a fixture of every test)

import tensorcore_models as tcm
from mpgemm.recovery.integer_joins import add_quantised, joined_slices, remainders
from mpgemm.recovery.method import MODULI

PRIMES = tuple(p for p in range(2, 256) if all(p % q for q in range(2, p)))
#: The most there can be, with the largest product: each prime below 256 to its highest power up to 256.
MOST = tuple(p ** int(math.log(256, p) + 1e-9) for p in PRIMES)
SETS = [MODULI[:n] for n in (2, 3, 5, 8, 10, 11, 14, 20)] + [(3, 5), (2, 3), PRIMES, MOST, (251, 16, 3)]


def joined(numbers, moduli, rows=0, columns=0, dtype=np.float64):
    """Numbers as one row through their residues, as an engine would give them."""
    theorem = remainders(moduli)
    planes = np.empty((len(moduli), 1, len(numbers)), np.int8)
    for i, p in enumerate(moduli):
        products = [truth.balanced_residue(n * theorem.factors[i], p) for n in numbers]
        theorem.reduce(i, np.array([products], np.int32), planes[i])
    ends = np.array([rows], np.int32), np.full(len(numbers), columns, np.int32)
    return theorem.joined(planes, *ends, dtype)[0].tolist()


def wanted(numbers, exponent=0):
    return [float(truth.rounded(Fraction(truth.rounded(n)) * Fraction(2) ** exponent)) for n in numbers]


def hard_numbers(product):
    """The ends of [-M/2, M/2), and numbers halfway between two doubles or next to that, of every size."""
    low, high = -(product // 2), (product - 1) // 2
    numbers = [0, 1, -1, 2, *range(low, low + 4), *range(high - 3, high + 1)]
    for top in range(53, product.bit_length() - 1):
        for last in (0, 1, (1 << 52) - 1):
            tie = (1 << top) + (last << (top - 52)) + (1 << (top - 53))
            numbers += [tie, tie - 1, tie + 1, tie - (1 << max(top - 93, 0)), tie + (1 << max(top - 93, 0))]
    numbers += [-n for n in numbers]
    return [n for n in numbers if low <= n <= high]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("moduli", SETS, ids=lambda m: f"{len(m)}-{m[0]}")
def test_chinese_remainders_of_hard_numbers(moduli):
    numbers = hard_numbers(math.prod(moduli))
    correct = wanted(numbers)
    for isa in every_isa():
        assert joined(numbers, moduli) == correct, isa
    for n in numbers[:8]:
        assert truth.chinese_remainder([n % p for p in moduli], moduli) == n


def test_the_most_moduli():
    assert len(MOST) == 54 and math.prod(MOST).bit_length() <= 432
    with pytest.raises(ValueError, match="expected 1 to 54"):
        remainders((2,) * 55)


@settings(max_examples=60, derandomize=True)
@given(st.integers(2, 54), st.data(), st.sampled_from(ISAS))
def test_chinese_remainders(count, data, isa):
    tcm.set_isa(isa)
    moduli = MODULI[:count] if count <= 20 else MOST[:count]
    product = math.prod(moduli)
    any_size = st.integers(0, product.bit_length()).map(lambda bits: product >> bits)
    numbers = data.draw(
        st.lists(
            st.one_of(
                st.integers(-(product // 2), (product - 1) // 2),
                st.tuples(any_size, st.integers(-3, 3)).map(lambda t: t[0] // 2 + t[1]),
            ),
            min_size=1,
            max_size=9,
        )
    )
    numbers = [truth.balanced_residue(n, product) for n in numbers]
    rows, columns = data.draw(st.tuples(st.integers(-1200, 700), st.integers(-1200, 700)))
    assert joined(numbers, moduli, rows, columns) == wanted(numbers, rows + columns)
    with np.errstate(over="ignore"):
        single = np.array(wanted(numbers, rows + columns)).astype(np.float32)
    assert joined(numbers, moduli, rows, columns, np.float32) == single.tolist()


@pytest.mark.parametrize("p", (2, 3, 4, 127, 128, 167, 211, 251, 252, 253, 254, 255, 256))
def test_reduction_of_any_int32(p):
    theorem = remainders((p,))
    edges = [0, 1, -1, 2**31 - 1, -(2**31), 2**31 - 2]
    numbers = np.array(
        edges + [n * p // 2 + off for n in (-(2**24), -7, -1, 1, 2, 3, 2**23 + 1) for off in (-1, 0, 1)], np.int64
    )
    numbers = np.concatenate([numbers, np.random.default_rng(p).integers(-(2**31), 2**31, 999)])
    product = numbers[np.abs(numbers + 0.5) <= 2**31].astype(np.int32)[None]
    out = np.empty(product.shape, np.int8)
    first = [truth.balanced_residue(int(n), p) for n in product[0]]
    second = [truth.balanced_residue(int(n) + y, p) for n, y in zip(product[0, ::-1], first, strict=True)]
    for isa in every_isa():
        theorem.reduce(0, product, out)
        assert out[0].tolist() == first, isa
        theorem.reduce(0, product[:, ::-1], out, accumulate=True)
        assert out[0].tolist() == second, isa


def test_edges_of_the_range_of_results():
    """Beyond 2^390 powers may not be exact: the value is rounded first, and once more where it leaves FP64's range."""
    moduli = MODULI[:8]
    numbers = [3, (1 << 53) + 1, (1 << 60) + 1, -(1 << 62) + 1]
    pairs = ((390, 390), (391, 100), (1000, 5), (1000, 1000), (-1074, 0), (-1100, -4), (-600, -500), (-2000, 3))
    for rows, columns in pairs:
        for isa in every_isa():
            assert joined(numbers, moduli, rows, columns) == wanted(numbers, rows + columns), isa


@settings(max_examples=60, derandomize=True)
@given(st.data(), st.booleans(), st.sampled_from((7, 8)), st.sampled_from(ISAS))
def test_slices_are_added_in_order(data, wide, bits, isa):
    tcm.set_isa(isa)
    limit = 1 << (40 if wide else 31)
    levels = sorted(data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=9)), reverse=True)
    exponents = [-bits * (level - levels[-1]) for level in levels]
    columns = data.draw(st.integers(1, 4))
    entries = st.lists(st.integers(-limit, limit - 1), min_size=columns, max_size=columns)
    products = [data.draw(entries) for _ in levels]
    e, f = data.draw(st.tuples(st.integers(-1100, 900), st.integers(-1100, 900)))
    arrays = [
        np.array([p], np.int64 if wide and i % 2 else np.int64 if wide else np.int32) for i, p in enumerate(products)
    ]
    ends = np.array([e], np.int32), np.full(columns, f, np.int32)
    with np.errstate(over="ignore"):
        for dtype in (np.float64, np.float32):
            found = joined_slices(arrays, exponents, *ends, dtype)[0]
            sums = [float(truth.joined_slices([p[i] for p in products], exponents, e + f)) for i in range(columns)]
            assert found.tolist() == np.array(sums).astype(dtype).tolist()


@pytest.mark.parametrize("isa", ISAS)
def test_quantised_sums(isa):
    tcm.set_isa(isa)
    rng = np.random.default_rng(3)
    kinds = {np.int32: 2**31, np.int64: 2**50, np.float32: 2**20}
    for shape in ((1, 1), (3, 700), (0, 3)):
        total = np.full(shape, np.nan, np.float32)
        steps = []
        for n, (kind, limit) in enumerate(kinds.items()):
            product, factor = rng.integers(-limit, limit, shape).astype(kind), np.float32(rng.normal())
            product.ravel()[:1] = limit - 1 if kind is not np.float32 else -0.0
            steps.append((product, factor))
            add_quantised(total, product, factor, accumulate=n > 0)
        places = list(np.ndindex(shape))[:: max(1, total.size // 300)]
        for place in places:
            numbers = [Fraction(float(p[place])) if p.dtype.kind == "f" else int(p[place]) for p, _ in steps]
            assert total[place] == float(truth.joined_quantised(numbers, [Fraction(float(f)) for _, f in steps]))


@pytest.mark.parametrize("isa", ISAS)
def test_zero_is_positive(isa):
    """0 + a product of -0 is +0."""
    tcm.set_isa(isa)
    total = np.empty((1, 3), np.float32)
    add_quantised(total, np.float32([[-0.0, 0.0, 1.0]]), np.float32(1), accumulate=False)
    assert not np.signbit(total).any()


def test_threads_change_nothing():
    """Several blocks, each shared among threads, and a last block that is not full."""
    rng = np.random.default_rng(4)
    m, n, moduli = 203, 331, MODULI[:14]
    products = [rng.integers(-(2**31), 2**31, (m, n)).astype(np.int32) for _ in range(5)]
    planes = rng.integers(-86, 87, (len(moduli), m, n)).astype(np.int8)
    rows, columns = rng.integers(-30, 30, m).astype(np.int32), rng.integers(-30, 30, n).astype(np.int32)

    def everything():
        total, residues = np.empty((m, n), np.float32), np.empty((m, n), np.int8)
        for i, p in enumerate(products):
            add_quantised(total, p, np.float32(0.3), accumulate=i > 0)
        remainders(moduli).reduce(3, products[0], residues)
        exponents = [-14, -14, -7, -7, 0]
        return (
            total,
            residues,
            joined_slices(products, exponents, rows, columns, np.float64),
            joined_slices(products, exponents, 40 * rows, columns, np.float32),
            remainders(moduli).joined(planes, rows, columns, np.float64),
        )

    tcm.set_isa("baseline")
    tcm.set_num_threads(1)
    single = everything()
    for isa in every_isa():
        for threads in (1, 2, 5):
            tcm.set_num_threads(threads)
            for one, other in zip(single, everything(), strict=True):
                assert one.tobytes() == other.tobytes(), (isa, threads)
    product = math.prod(moduli)
    for i, j in ((0, 0), (0, n - 1), (m - 1, 0), (m - 1, n - 1), (100, 57)):
        number = sum(int(y) * (product // p) for y, p in zip(planes[:, i, j], moduli, strict=True))
        wanted = float(truth.rounded(truth.balanced_residue(number, product)))
        assert single[4][i, j] == wanted * 2.0 ** int(rows[i] + columns[j])
