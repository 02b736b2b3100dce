"""Wormhole and Blackhole: the bits of their vendor's functional model, phases, tiles, integers, and the erratum."""

import json
from fractions import Fraction

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.recovery.engines import plain_engine
from tensorcore_models import kernels, probing, reference
from tensorcore_models.accumulators import FidelityPhases, IntegerPhases
from tensorcore_models.atlas.witnesses import witness
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.passes import Formats, TermPass, Unencodable
from tensorcore_models.probing.identify.box import as_box
from tensorcore_models.probing.interface import Interface
from tensorcore_models.probing.random_operands import KINDS, operands

CHIPS = ("wormhole", "blackhole")
ROWS = [row for chip in CHIPS for row in tcm.list_instructions(chip)]
FIDELITIES = ("lofi", "hifi2", "hifi3", "hifi4")
#: 1.1111111 in binary and its parts: seven and one bits of A (SrcB), five and three of B (SrcA); of tf32 four more, five more.
ONES = {
    "bf16": (0x3FFF, (Fraction(127, 64), Fraction(1, 128)), (Fraction(31, 16), Fraction(7, 128))),
    "tf32": (0x3FFFE000, (Fraction(127, 64), Fraction(15, 1024)), (Fraction(31, 16), Fraction(31, 512))),
    "fp16": (0x3FFF, (Fraction(127, 64), Fraction(15, 1024)), (Fraction(31, 16), Fraction(31, 512))),
}


@pytest.fixture
def kernel():
    yield kernels.set_kernel
    kernels.set_kernel(None)


def name_of(fmt, d, path, tile=False):
    spelled = ".".join({"fp16": "f16", "fp32": "f32"}.get(x, x) for x in (d, fmt, fmt, d))
    return f"{'matmul.m32n32k32' if tile else 'mvmul.m8n16k16'}.{spelled}.{path}"


@pytest.fixture(scope="module", params=("bf16", "tf32", "fp16"))
def vectors(request, shared):
    path = shared / "model_vectors" / "tenstorrent" / f"{request.param}.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there: vectors of the vendor's functional model")
    with np.load(path) as data:
        assert json.loads(bytes(data["meta"]))["type"] == request.param
        return request.param, dict(data)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_vector_of_the_vendors_model(vectors, chip):
    """6,000 steps of each operand type: 0 differ. There a is SrcA and b is SrcB, which are B and A here."""
    fmt, data = vectors
    for d, wide in (("fp32", 1), ("fp16" if fmt == "fp16" else "bf16", 0)):
        container = tcm.get_format(d).container
        for phase in range(4):
            rows = (data["phase"] == phase) & (data["dst32"] == wide)
            a, b, c, expected = (data[name][rows] for name in ("b", "a", "c", chip))
            if not wide:
                c, expected = (_sixteen_bits(x, fmt).astype(container) for x in (c, expected))
            row = tcm.get_instruction(chip, name_of(fmt, d, f"phase{phase}"))
            found = kernels.batch_bits(row, a[:, None], b[:, :, None], c[:, None, None])[:, 0, 0]
            assert len(a) > 600 and np.array_equal(found, expected), (row.name, int((found != expected).sum()))
            few = slice(0, 40)
            plain = reference.mma_bits(row, a[few, None], b[few, :, None], c[few, None, None])[:, 0, 0]
            assert np.array_equal(plain, expected[few])


def _sixteen_bits(x, fmt):
    """The upper half, or sign, five bits of exponent at bit 23 and ten of fraction."""
    return x >> 16 if fmt != "fp16" else (x >> 31 << 15) | (x >> 13 & 0x7FFF)


@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize("fmt", ONES)
def test_the_bits_of_a_phase(fmt, phase):
    code, of_a, of_b = ONES[fmt]
    row = tcm.get_instruction("blackhole", name_of(fmt, "fp32", f"phase{phase}"))
    operand = row.formats[0]
    a, b = np.zeros((8, 16), operand.container), np.zeros((16, 16), operand.container)
    a[0, 3], b[3, 5] = code, code | operand.sign_bit
    d = row.gemm_bits(a, b).view(np.float32)
    assert Fraction(float(d[0, 5])) == -of_a[phase >> 1] * of_b[phase & 1]
    assert np.count_nonzero(d) == 1


@pytest.mark.sweep(20)
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_kernel_has_the_bits_of_the_integers(row, kernel):
    """Subnormal numbers, infinities and NaN among them, which are numbers here; a last pass over few products."""
    for kind in KINDS:
        a, b, c = (x[0] for x in operands(row, kind, 1, np.random.default_rng(len(kind)))[:3])
        a, b = np.concatenate([a, a[:, :5]], 1), np.concatenate([b, b[:5]])
        for m, n in ((2, 3), (8, 1)):  # of few columns kernels swap A and B where they may
            x, y, z = a[:m], b[:, :n], c[:m, :n]
            wanted = reference.mma_bits(row, x, y, z)
            for layer in ("auto", "generic"):
                kernel(layer)
                assert np.array_equal(kernels.matrix_bits(row, x, y, z), wanted), (kind, layer)


def test_zero_products_of_fp16_lift_the_exponent_of_an_fp32_accumulator(kernel):
    """They have the exponent 2^-30 of phase 0: what is below 2^-53 is rounded away, half away from zero."""
    row = tcm.get_instruction("blackhole", name_of("fp16", "fp32", "phase0"))
    zero = np.zeros((1, 16), np.uint16)
    for layer in ("auto", "reference"):
        kernel(layer)
        for c, expected in ((2.0**-54, 2.0**-53), (-(2.0**-54), -(2.0**-53)), (2.0**-55, 0.0)):
            found = row.gemm_bits(zero, zero.T, np.float32([[c]]).view(np.uint32))
            assert float(found.view(np.float32)[0, 0]) == expected


def test_a_tile_is_its_phases_one_after_the_other():
    """Phases outermost: k = 0 to 15, then 16 to 31, then the next phase; the next tile of k after all phases."""
    rng = np.random.default_rng(1)
    for fmt, d in (("bf16", "bf16"), ("tf32", "fp32"), ("fp16", "fp16")):
        a, b = (tcm.encode(rng.standard_normal(shape), fmt, "rne") for shape in ((3, 64), (64, 5)))
        total = np.zeros((3, 5), tcm.get_format(d).container)
        for tile in (0, 32):
            for phase in range(3):
                step = tcm.get_instruction("wormhole", name_of(fmt, d, f"phase{phase}"))
                for start in (tile, tile + 16):
                    total = step.gemm_bits(a[:, start : start + 16], b[start : start + 16], total)
        whole = tcm.get_instruction("wormhole", name_of(fmt, d, "hifi3", tile=True))
        assert np.array_equal(whole.gemm_bits(a, b), total)


def test_four_phases_are_the_whole_product_of_bf16():
    """Of integers from 128 to 255, which have eight bits and one exponent: nothing is shifted, every sum is exact."""
    rng = np.random.default_rng(1)
    a, b = (rng.integers(128, 256, shape) * rng.choice([-1.0, 1.0], shape) for shape in ((8, 32), (32, 16)))
    d = plain_engine("blackhole/hifi4", "bf16").gemm(a, b)
    assert np.array_equal(d, a @ b)


def test_names_of_the_library_are_engines():
    assert plain_engine("wormhole/lofi", "bf16").accumulator == FidelityPhases((0,), 32, erratum="minus_one")
    assert plain_engine("blackhole", "tf32").accumulator == FidelityPhases((0, 1, 2, 3), 32)
    assert plain_engine("p150a/hifi2", "fp16").accumulator == FidelityPhases((0, 1), 32)
    ones = np.ones((4, 64), np.float32)
    assert np.array_equal(mpgemm.recovered_gemm(ones, ones.T, method="bf16", engine="wormhole/hifi4"), ones @ ones.T)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_error_is_within_its_bound(row):
    rng = np.random.default_rng(4)
    shapes = ((4, 96), (96, 4))
    if row.a_format == "s8":
        x, y = (rng.integers(-127, 128, shape) for shape in shapes)
    else:
        x, y = (
            tcm.decode(tcm.encode(rng.standard_normal(s), row.a_format, "rne"), row.a_format).astype(float)
            for s in shapes
        )
    error = np.abs(row.gemm(x, y).astype(float) - x @ y)  # x @ y is exact to 2^-44 of it
    bound = bounds.gemm_bound(row, x, y)
    assert (error <= bound * (1 + 2.0**-40)).all()
    assert (
        error.max() > bound.max() / 3000 or row.path == "hifi4" or row.accumulator.phases[0] or row.arch == "wormhole"
    )


def test_the_bound_of_the_whole_products_does_not_grow_with_k():
    """What groups lose is a share of their own products: four thousand of them lose no larger a share than 32."""
    engine = plain_engine("blackhole/hifi4", "bf16")
    short, long = (bounds.chain_error(bounds.step_error(engine), k // 32)[0] for k in (32, 4096))
    assert 0.003 < short < long < 0.004


# -- what users reported -------------------------------------------------------------------------------------------------------
def product_of(engine, a, b, c=0.0):
    return float(engine.gemm(np.array([a]), np.array([b]).T, np.array([[c]]))[0, 0])


@pytest.mark.parametrize(
    ("path", "expected"), [("lofi", 10.4375), ("hifi2", 10.4375), ("hifi3", 10.5), ("hifi4", 10.5)]
)
def test_hifi4_is_further_off_than_hifi2(path, expected):
    """tt-metal 12923: 7.96875 x 1.3125 = 10.458984375 with a bf16 accumulator; with fp32 it is exact from HiFi3 on."""
    for chip in CHIPS:
        row = tcm.get_instruction(chip, name_of("bf16", "bf16", path, tile=True))
        assert product_of(row, [7.96875], [1.3125]) == expected
        wide = plain_engine(f"{chip}/{path}", "bf16")
        assert product_of(wide, [7.96875], [1.3125]) == (10.41796875 if path in ("lofi", "hifi2") else 10.458984375)


def test_the_erratum_of_wormhole():
    """tt-metal 38306: a sum of exactly -2.4e-7 comes out as -32; HiFi3 leaves out the phase that most often ends there."""
    for path in FIDELITIES:
        found = [product_of(plain_engine(f"{chip}/{path}", "bf16"), [2.0], [1.0], -2 - 2.0**-22) for chip in CHIPS]
        assert found == [-32.0, -(2.0**-22)]
    sixteen = [tcm.get_instruction(chip, name_of("bf16", "bf16", "hifi4", tile=True)).accumulator for chip in CHIPS]
    assert sixteen[0] == sixteen[1] and sixteen[0].erratum == "none"


def test_hifi3_is_right_where_hifi4_is_not():
    """A product of 1 x 128 and 128 x 1 with the reported result: -131 for HiFi4 on Wormhole, -3.000001 else.

    The products of 32768 cancel and those behind them leave -2^-20, of which phase 2 takes the bits; phase 3 meets the large
    exponents again, in whose units that is -1.
    """
    a = np.zeros(128)
    a[[0, 1, 16, 17, 32]] = 32768, -32768, -(1 + 2.0**-7) * 2.0**-13, 2.0**-13, -3
    found = {
        f"{chip}/{path}": product_of(plain_engine(f"{chip}/{path}", "bf16"), a, np.ones(128))
        for chip in CHIPS
        for path in FIDELITIES
    }
    assert found["wormhole/hifi4"] == -131
    right = float(np.float32(a.sum()))
    assert [found[name] for name in ("wormhole/hifi3", "blackhole/hifi3", "blackhole/hifi4")] == [right] * 3
    assert found["wormhole/hifi2"] == -3


def test_six_thousand_ones_in_a_bf16_accumulator():
    """tt-metal 8449 (ones, k = 6144): 16-bit accumulators."""
    ones = np.ones((1, 6144))
    row = tcm.get_instruction("wormhole", name_of("bf16", "bf16", "lofi", tile=True))
    assert product_of(plain_engine("wormhole/lofi", "bf16"), ones[0], ones[0]) == 6144
    assert product_of(row, ones[0], ones[0]) == 8192


def test_the_chips_are_told_apart_by_their_erratum():
    for path in ("phase0", "phase3"):
        rows = [tcm.get_instruction(chip, name_of("bf16", "fp32", path)) for chip in CHIPS]
        found = witness(*rows)
        assert np.count_nonzero(found.a) <= 1
        values = [float(np.uint32(code).view(np.float32)) for code in (found.here, found.there)]
        assert values[0] == values[1] * 2**27 < 0


def test_explain_shows_where_it_happens():
    steps = mpgemm.explain("bf16", [2.0], [1.0], -2 - 2.0**-22, engine="wormhole/hifi4").steps
    (told,) = [step.text for step in steps if "erratum" in step.text]
    assert told.startswith("phase 0: -2.000000238418579 + 2.0 + 0.0 = -32.0; without Wormhole's erratum")
    assert told.endswith("it would be -2.384185791015625e-07")
    assert not any(
        "erratum" in s.text for s in mpgemm.explain("bf16", [2.0], [1.0], -2.0, engine="wormhole/hifi4").steps
    )


# -- integers ------------------------------------------------------------------------------------------------------------------
def test_integers_are_whole_with_four_phases_and_saturate():
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-127, 128, shape).astype(np.int8) for shape in ((6, 64), (64, 7)))
    engine = plain_engine("wormhole/hifi4", "s8")
    assert engine.accumulator == IntegerPhases((0, 1, 2, 3), 32)
    assert np.array_equal(engine.gemm(a, b), a.astype(int) @ b.astype(int))
    top, many = 2**31 - 1, np.full((1, 16), 127, np.int8)
    for sign in (1, -1):
        c = np.array([[sign * top]], np.int32)
        assert int(engine.gemm(sign * many, many.T, c)[0, 0]) == sign * top
    parts = [
        int(plain_engine(f"wormhole/phase{p}", "s8").gemm(np.int8([[-93]]), np.int8([[77]]))[0, 0]) for p in range(4)
    ]
    assert parts == [-80 * 64, -80 * 13, -13 * 64, -13 * 13]


def test_what_it_does_not_take():
    with pytest.raises(ValueError, match=r"phases \(1, 0\) must be some of 0 to 3, in this order"):
        FidelityPhases((1, 0))
    with pytest.raises(ValueError, match="phases \\(\\) must be"):
        FidelityPhases(())
    with pytest.raises(ValueError, match="got e4m3fn x e4m3fn"):
        tcm.MatrixEngine(FidelityPhases(), a_format="e4m3fn")
    with pytest.raises(ValueError, match="got bf16 x bf16 \\+ fp32 to bf16"):
        tcm.MatrixEngine(FidelityPhases(), a_format="bf16", d_format="bf16")
    with pytest.raises(ValueError, match="of a, b, c and d, expected s8, s8, s32, s32"):
        tcm.MatrixEngine(IntegerPhases(), a_format="u8", c_format="s32", d_format="s32")


# -- identified from nothing ---------------------------------------------------------------------------------------------------
def blind(row):
    found = probing.identify(as_box(row), vectors=2000)
    assert found.engine is not None, (str(row), str(found))
    return found.engine.accumulator


# 3.5 s, of which the start of the search takes most; all rows with the mark full.
@pytest.mark.full
@pytest.mark.parametrize("name", ["wormhole:" + name_of("bf16", "fp32", "phase2")])
def test_it_is_identified_from_its_answers_alone(name):
    row = tcm.get_instruction(name)
    assert blind(row) == row.accumulator


@pytest.mark.full
@pytest.mark.parametrize("row", ROWS, ids=str)
def test_every_row_is_identified_from_its_answers_alone(row):
    spec = blind(row)
    if spec == row.accumulator:
        return
    rng = np.random.default_rng(5)
    other = tcm.MatrixEngine(spec, a_format=row.a_format, c_format=row.c_format, d_format=row.d_format)
    for kind in KINDS:
        a, b, c = operands(row, kind, 20, rng)[:3]
        for x, y, z in zip(a, b, c, strict=True):
            assert np.array_equal(row.gemm_bits(x, y, z), other.gemm_bits(x, y, z)), (str(spec), kind)


# -- terms for solvers ---------------------------------------------------------------------------------------------------
@pytest.mark.sweep(4)
@pytest.mark.parametrize("phase", range(4))
@pytest.mark.parametrize(("fmt", "d"), [("bf16", "fp32"), ("tf32", "bf16"), ("fp16", "fp32"), ("fp16", "fp16")])
def test_terms_have_the_bits_of_integers(fmt, d, phase):
    """One phase of both chips, operands of all kinds: the specification as bit-vectors."""
    k, rng = 16, np.random.default_rng(phase)
    for erratum in ("minus_one", "none") if d == "fp32" else ("none",):
        spec = FidelityPhases((phase,), k, erratum=erratum)
        unit = tcm.MatrixEngine(spec, a_format=fmt, c_format=d, d_format=d, k=k)
        a, b = (
            tuple(t.variable(f"{name}{i}", f.bits) for i in range(k))
            for name, f in zip("ab", unit.formats, strict=False)
        )
        c = t.variable("c", unit.formats[2].bits)
        term = spec.pass_term(TermPass(spec, a, b, c, Formats(*unit.formats), ((),) * k))
        for kind in KINDS:
            x, y, z, *_ = operands(Interface.of(unit, 1, 1), kind, 2, rng)
            wanted = reference.mma_bits(unit, x, y, z)
            for i in range(len(z)):
                values = {f"a{j}": int(v) for j, v in enumerate(x[i, 0])}
                values |= {f"b{j}": int(v) for j, v in enumerate(y[i, :, 0])} | {"c": int(z[i, 0, 0])}
                assert t.evaluate([term], values) == [int(wanted[i, 0, 0])], kind


def test_the_term_of_the_erratum():
    """1 - (1 + 2^-23) is a sum of -1 unit."""
    spec = FidelityPhases((0,), 1, erratum="minus_one")
    unit = tcm.MatrixEngine(spec, a_format="bf16", k=1)
    one, c = t.constant(0x3F80, 16), t.constant(0xBF800001, 32)
    term = spec.pass_term(TermPass(spec, (one,), (one,), c, Formats(*unit.formats), ((),)))
    assert t.evaluate([term], {}) == [0xC1800000]


def test_solvers_are_not_asked_about_phases_that_take_turns():
    spec = FidelityPhases((0, 1), 1)
    one = t.constant(0x3F80, 16)
    formats = Formats(*tcm.MatrixEngine(spec, a_format="bf16", k=1).formats)
    with pytest.raises(Unencodable, match="do not answer in time about several phases of one tile"):
        spec.pass_term(TermPass(spec, (one,), (one,), t.constant(0, 32), formats, ((),)))
