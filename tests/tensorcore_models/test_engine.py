"""Engines: shapes, padding, alpha and beta, k orders, promotion, and what they refuse."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models.engines import homes
from tensorcore_models.formats.exact_rounding import round_to_bits

HOPPER = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
HOPPER_HALF = tcm.get_instruction("hopper", "mma.m16n8k16.f16.f16.f16.f16")
IEEE32 = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32")


def operands(seed, m, k, n, dtype=np.float16):
    rng = np.random.default_rng(seed)
    return (
        rng.standard_normal((m, k)).astype(dtype),
        rng.standard_normal((k, n)).astype(dtype),
        rng.standard_normal((m, n)).astype(np.float32),
    )


def chained(ins, a, b, c):
    """gemm by hand: one instruction after the other, k padded with zeros."""
    k = -(-a.shape[1] // ins.k) * ins.k
    a, b = np.pad(a, ((0, 16), (0, k - a.shape[1]))), np.pad(b, ((0, k - b.shape[0]), (0, 8)))
    d = np.zeros((16, 8), c.dtype)
    d[: c.shape[0], : c.shape[1]] = c
    for start in range(0, k, ins.k):
        d = ins.mma(a[:16, start : start + ins.k], b[start : start + ins.k, :8], d)
    return d[: c.shape[0], : c.shape[1]]


@given(st.integers(1, 16), st.integers(1, 50), st.integers(1, 8), st.integers(0, 99))
@settings(max_examples=20)
def test_gemm_is_a_chain_of_instructions(m, k, n, seed):
    a, b, c = operands(seed, m, k, n)
    assert HOPPER.gemm(a, b, c).tobytes() == chained(HOPPER, a, b, c).tobytes()


def test_batches_are_independent_products():
    rng = np.random.default_rng(5)
    a = rng.standard_normal((2, 3, 16, 16)).astype(np.float16)
    b = rng.standard_normal((2, 3, 16, 8)).astype(np.float16)
    c = rng.standard_normal((2, 3, 16, 8)).astype(np.float32)
    d = HOPPER.mma(a, b, c)
    for i, j in np.ndindex(2, 3):
        assert d[i, j].tobytes() == HOPPER.mma(a[i, j], b[i, j], c[i, j]).tobytes()


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.5), (2.0**-20, 0.0), (1 / 3, 1.0), (-0.1, 3e-5), (0.0, 1.0)])
@pytest.mark.parametrize("ins", [HOPPER, HOPPER_HALF], ids=str)
def test_alpha_and_beta_in_the_output_format(ins, alpha, beta):
    """RN(RN(alpha acc) + RN(beta c)), checked in rational arithmetic."""
    a, b, c = operands(1, 3, 20, 4)
    fmt = ins.formats[3]
    c = c.astype(fmt.dtype)
    acc = ins.gemm(a, b)
    d = ins.gemm(a, b, c, alpha=alpha, beta=beta)

    def rounded(x: Fraction) -> Fraction:
        bits = round_to_bits(x < 0, abs(x).numerator << 400, -400, fmt) if x.denominator == 1 else None
        if bits is None:
            scale = x.denominator.bit_length() + 400
            whole, rest = divmod(abs(x).numerator << scale, x.denominator)
            bits = round_to_bits(x < 0, whole * 2 + (rest != 0), -scale - 1, fmt)
        return Fraction(float(tcm.decode(np.array(bits, fmt.container), fmt)))

    for i, j in np.ndindex(d.shape):
        expected = rounded(Fraction(alpha) * Fraction(float(acc[i, j])))
        if beta:
            expected = rounded(expected + rounded(Fraction(beta) * Fraction(float(c[i, j]))))
        assert Fraction(float(d[i, j])) == expected


def test_alpha_is_applied_after_the_operands_are_rounded():
    """alpha = 2^-20 with a = 2^-10 must not vanish in an fp16 operand."""
    one = np.full((1, 1), 2.0**-10, np.float16)
    assert HOPPER.gemm(one, np.ones((1, 1), np.float16), alpha=2.0**-20)[0, 0] == 2.0**-30


def test_alpha_and_beta_are_not_swapped():
    a, b, c = operands(2, 2, 3, 2)
    assert (HOPPER.gemm(a, b, c, alpha=0.0, beta=2.0) == 2 * c).all()


def test_beta_zero_ignores_c():
    a, b, c = operands(3, 2, 5, 2)
    c[:] = np.nan
    assert HOPPER.gemm(a, b, c, beta=0).tobytes() == HOPPER.gemm(a, b).tobytes()


def test_nothing_runs_for_k_zero():
    c = np.array([[1.5, -0.0]], np.float32)
    a, b = np.zeros((1, 0), np.float16), np.zeros((0, 2), np.float16)
    assert HOPPER.gemm(a, b, c).tobytes() == c.tobytes()
    assert HOPPER.gemm(a, b).tolist() == [[0.0, 0.0]]
    assert HOPPER.gemm(a, b, c, beta=0.5).tolist() == [[0.75, 0.0]]
    assert HOPPER.gemm(np.zeros((0, 3), np.float16), np.zeros((3, 2), np.float16)).shape == (0, 2)


@pytest.mark.parametrize(("m", "k", "n"), [(3, 40, 0), (0, 40, 3), (0, 0, 0), (3, 0, 4)])
def test_promoted_products_without_elements(m, k, n):
    """Of any interval: shorter than k, which runs in the lanes, and longer."""
    a, b = np.ones((m, k), np.float16), np.ones((k, n), np.float16)
    for every, rounding in itertools.product((16, 32, 64), ("rne", "rz")):
        d = HOPPER.gemm(a, b, promote_every=every, promote_rounding=rounding)
        assert d.shape == (m, n) and d.dtype == np.float32 and (d == 0).all()


def test_split_k_adds_parts_in_order():
    a, b, c = operands(4, 3, 64, 3)
    parts = [HOPPER.gemm(a[:, s], b[s]) for s in (slice(0, 32), slice(32, 64))]
    expected = (parts[0] + parts[1]) + c
    assert HOPPER.gemm(a, b, c, k_order="split_k:2").tobytes() == expected.tobytes()
    assert HOPPER.gemm(a, b, c, k_order=[(0, 32), (32, 64)]).tobytes() == expected.tobytes()


def test_sliced_k_takes_every_other_step():
    a, b, c = operands(4, 3, 64, 3)
    even = np.r_[0:16, 32:48]
    parts = [HOPPER.gemm(a[:, i], b[i]) for i in (even, even + 16)]
    assert HOPPER.gemm(a, b, c, k_order="sliced_k:2").tobytes() == ((parts[0] + parts[1]) + c).tobytes()


def test_promotion_adds_outside_in_fp32():
    a, b, c = operands(6, 3, 70, 3)
    total = c
    for start in range(0, 70, 32):
        total = total + HOPPER.gemm(a[:, start : start + 32], b[start : start + 32])
    assert HOPPER.gemm(a, b, c, promote_every=32).tobytes() == total.tobytes()
    assert HOPPER.gemm(a, b, c, promote_every=96).tobytes() == (c + HOPPER.gemm(a, b)).tobytes()


def test_promotion_rounding():
    a, b = np.ones((1, 32), np.float16), np.zeros((32, 1), np.float16)
    b[0], a[0, 16], b[16] = 1.0, 0.5, 3 * 2.0**-24  # 1, then 3/4 of its unit in the last place
    assert HOPPER.gemm(a, b, promote_every=16)[0, 0] == 1 + 2.0**-23
    assert HOPPER.gemm(a, b, promote_every=16, promote_rounding="rz")[0, 0] == 1.0


def test_wrapped_callable_equals_the_engine_inside():
    def step(a, b, c):
        return HOPPER.gemm(a, b, c)

    engine = tcm.as_engine(step, a_format="fp16", d_format="fp32", k=16)
    a, b, c = operands(7, 4, 50, 3)
    assert engine.gemm(a, b, c).tobytes() == HOPPER.gemm(a, b, c).tobytes()
    assert engine.label == "step"
    bad = tcm.as_engine(lambda a, b, c: c[:1], a_format="fp16", d_format="fp32", k=16)
    with pytest.raises(ValueError, match="returned shape"):
        bad.gemm(a, b, c)
    with pytest.raises(TypeError, match="wraps a function"):
        tcm.as_engine(3, a_format="fp16", d_format="fp32", k=16)


def test_integer_engine():
    rng = np.random.default_rng(8)
    a = rng.integers(-128, 128, (5, 70), dtype=np.int8)
    b = rng.integers(-128, 128, (70, 3), dtype=np.int8)
    c = rng.integers(-(2**31), 2**31, (5, 3)).astype(np.int32)
    wrapped = tcm.get_instruction("a100", "mma.m16n8k32.s32.s8.s8.s32")
    exact = a.astype(np.int64) @ b.astype(np.int64) + c
    assert (wrapped.gemm(a, b, c) == exact.astype(np.int32)).all()
    top = np.full((5, 3), 2**31 - 1, np.int32)
    clamped = tcm.get_instruction("a100", "mma.m16n8k32.s32.s8.s8.s32.satfinite")
    assert (clamped.gemm(np.full((5, 32), 127, np.int8), np.full((32, 3), 127, np.int8), top) == top).all()
    with pytest.raises(ValueError, match="outside the range of s8, -128 to 127"):
        wrapped.gemm(np.full((1, 1), 200), b[:1])
    with pytest.raises(TypeError, match="expected integers for s8"):
        wrapped.gemm(a.astype(np.float32), b)


def test_natural_types_come_back():
    a, b, _ = operands(9, 2, 16, 2)
    assert HOPPER.gemm(a, b).dtype == np.float32
    assert HOPPER_HALF.gemm(a, b).dtype == np.float16
    bf16 = tcm.get_instruction("hopper", "mma.m16n8k16.f32.bf16.bf16.f32")
    assert bf16.gemm(a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)).dtype == np.float32


def test_values_the_operand_format_lacks_raise():
    a = np.array([[1.0, 0.1], [1e6, 0.5]])
    with pytest.raises(
        ValueError, match=r"a: 2 of 4 values are not representable in fp16, the first is .*0\.1.* at \(0, 1\)"
    ):
        HOPPER.gemm(a, np.ones((2, 2), np.float16))
    assert HOPPER.gemm(a, np.ones((2, 2), np.float16), input_rounding="rz")[1, 0] == 65504.5
    with pytest.raises(ValueError, match="unknown rounding"):
        HOPPER.gemm(a, np.ones((2, 2), np.float16), input_rounding="nearest")


def test_views_of_any_kind_give_the_same_bits():
    a, b, c = operands(10, 6, 40, 6)
    expected = HOPPER.gemm(a, b, c).tobytes()
    wide = np.zeros((12, 80), np.float16)
    wide[::2, ::2] = a
    before = wide.copy()
    swapped = b.astype(b.dtype.newbyteorder(">"))
    fortran = np.asfortranarray(c)
    for x in (wide, swapped, fortran):
        x.flags.writeable = False
    assert HOPPER.gemm(wide[::2, ::2], swapped, fortran).tobytes() == expected
    assert wide.tobytes() == before.tobytes()
    row = np.broadcast_to(a[:1], (6, 40))
    assert HOPPER.gemm(row, b).tobytes() == HOPPER.gemm(row.copy(), b).tobytes()
    assert HOPPER.gemm(a[::-1], b).tobytes() == HOPPER.gemm(a[::-1].copy(), b).tobytes()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda a, b, c: HOPPER.gemm(a[0], b), ValueError, "expected 2 dimensions"),
        (lambda a, b, c: HOPPER.gemm(a, b[:-1]), ValueError, "as many columns of a as rows of b"),
        (lambda a, b, c: HOPPER.gemm(a, b, c[:1]), ValueError, "c has shape"),
        (lambda a, b, c: HOPPER.gemm(a.astype(object), b), TypeError, "object"),
        (lambda a, b, c: HOPPER.gemm(a.astype(complex), b), TypeError, "complex"),
        (lambda a, b, c: HOPPER.gemm(a, b, scale_a=c), ValueError, "only one of scale_a and scale_b is given"),
        (lambda a, b, c: HOPPER.gemm(a, b, k_order="backwards"), ValueError, "unknown k_order"),
        (lambda a, b, c: HOPPER.gemm(a, b, k_order=[(0, 10), (10, 20)]), ValueError, "multiples of the k step"),
        (lambda a, b, c: HOPPER.gemm(a, b, k_order=[(0, 16)]), ValueError, "from 0 to k"),
        (lambda a, b, c: HOPPER.gemm(a, b, promote_every=8), ValueError, "multiple of the k step 16"),
        (lambda a, b, c: HOPPER.gemm_bits(a, b), TypeError, "encodings of fp16 are uint16"),
        (lambda a, b, c: HOPPER.mma(a, b, c), ValueError, "expected \\(..., 16, 16\\)"),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call(*operands(11, 3, 20, 3))


def test_high_bits_of_small_formats_must_be_zero():
    ins = tcm.get_instruction("rtx_blackwell", "mma.m16n8k32.f32.e2m1.e2m1.f32")
    a, b, c = np.zeros((16, 32), np.uint8), np.zeros((32, 8), np.uint8), np.zeros((16, 8), np.uint32)
    a[0, 0] = 0x10
    with pytest.raises(ValueError, match="4-bit encodings of e2m1"):
        ins.mma_bits(a, b, c)


def test_custom_engines_check_themselves():
    with pytest.raises(TypeError, match="must be an Accumulator"):
        tcm.MatrixEngine("fda")
    with pytest.raises(ValueError, match="give both, or neither"):
        tcm.MatrixEngine(tcm.FusedDotAdd(), scale_format="ue8m0")
    with pytest.raises(ValueError, match="terms 0"):
        tcm.FusedDotAdd(0)
    with pytest.raises(ValueError, match="unknown rounding 'up'"):
        tcm.ParametricDotAdd(late_rounding="up")
    assert IEEE32.k == 1


def test_a_wide_c_is_scaled_with_one_rounding():
    """beta * c of a binary64 c into FP32: the product has 106 bits and is rounded once."""
    engine = tcm.MatrixEngine(tcm.FusedDotAdd(), c_format="fp64")
    c = np.array([[1 + 2.0**-24 + 2.0**-52, -np.inf, 0.0, 3.0]])
    a, b = np.zeros((1, 0), np.float16), np.zeros((0, 4), np.float16)
    beta = 1 - 2.0**-53  # beta * c is just above the tie, the binary64 product lies on it
    d = engine.gemm(a, b, c, beta=beta)
    exact = Fraction(float(c[0, 0])) * Fraction(beta)
    assert exact > 1 + Fraction(1, 2**24)
    assert d.tolist() == [[1 + 2.0**-23, -np.inf, 0.0, 3.0]]


def test_sums_outside_have_one_nan():
    engine = tcm.MatrixEngine(tcm.SequentialFMA(), a_format="fp32")
    a, b = np.array([[np.inf, -np.inf]], np.float32), np.ones((2, 1), np.float32)
    assert engine.gemm(a, b, promote_every=1).view(np.uint32)[0, 0] == 0x7FC00000


def test_an_unknown_promote_rounding_is_refused_even_where_it_is_not_used():
    engine = tcm.get_instruction("hopper:mma.m16n8k16.f32.f16.f16.f32")
    with pytest.raises(ValueError, match="unknown rounding 'zz'"):
        engine.gemm(np.ones((3, 5), np.float16), np.ones((5, 2), np.float16), promote_rounding="zz")


def test_operands_that_live_elsewhere_are_multiplied_at_their_home(monkeypatch):
    class Away(np.ndarray):
        """An array of another library, made for a test."""

    given = []
    home = SimpleNamespace(
        on_gpu=lambda x: x.size > 1,
        gemm=lambda *given_there: given.append(given_there[4]) or "there",
        gemm_bits=lambda *given_there: given.append(given_there[6]) or "there",
    )
    monkeypatch.setattr(homes, "_HOMES", {__name__.partition(".")[0]: lambda: home})
    engine = tcm.get_instruction("hopper", "mma.m16n8k16.f32.f16.f16.f32")
    a = np.ones((2, 2), np.float16)
    assert engine.gemm(a.view(Away), a, alpha=2.0) == "there" and given[0]["alpha"] == 2
    bits = a.view(np.uint16)
    assert (
        engine.gemm_bits(bits.view(Away), bits, k_order="split_k:2") == "there" and given[1]["k_order"] == "split_k:2"
    )
    one = a[:1, :1]
    assert engine.gemm(one.view(Away), one).tolist() == engine.gemm(one, one).tolist() == [[1.0]] and len(given) == 2
