"""Epilogues: slopes and bounds hold, right kernels pass, misplaced ones are named; biases broadcast; rows are sampled."""

import warnings

import ml_dtypes
import numpy as np
import pytest

import tensorcore_models as tcm
from mpgemm.testing import assert_bits, assert_gemm_close, check_gemm, faults_of, gemm_tolerance
from mpgemm.testing.epilogues import EPILOGUES, epilogue_of

BF16 = ml_dtypes.bfloat16
H100 = tcm.default_instruction("h100", "fp16")


def operands(seed=0, m=48, k=192, n=40):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, k)).astype(np.float16), rng.standard_normal((k, n)).astype(np.float16)


def in_fp32(name, x):
    """The function with numpy in FP32."""
    x, one = x.astype(np.float32), np.float32(1)
    with np.errstate(over="ignore"):
        if name == "silu":
            return x / (one + np.exp(-x))
        if name == "gelu_tanh":
            return (
                np.float32(0.5) * x * (one + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))
            )
        if name == "softcap:30":
            return np.float32(30) * np.tanh(x / np.float32(30))
        if name == "leaky_relu:0.1":
            return np.where(x > 0, x, np.float32(0.1) * x)
        if name == "swiglu":
            gate, up = np.split(x, 2, axis=1)
            return in_fp32("silu", gate) * up
    return np.maximum(x, 0)


NAMES = ("relu", "silu", "gelu_tanh", "softcap:30", "leaky_relu:0.1", "swiglu")


@pytest.mark.parametrize("name", [n for n in EPILOGUES if n not in ("relu", "leaky_relu")])
def test_slopes_and_bends_are_bounds(name):
    row, number = EPILOGUES[name], 2.0
    x = np.linspace(-12, 12, 200_001)
    slopes = np.diff(row.apply(x, number)) / np.diff(x)
    assert 0.9 * row.steepest(number) < np.abs(slopes).max() <= row.steepest(number)
    bends = np.abs(np.diff(slopes)).max() / (x[1] - x[0])
    assert 0.8 * row.bend(number) < bends <= row.bend(number) * (1 + 1e-4)


@pytest.mark.sweep(4)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("out", [np.float32, BF16])
def test_right_kernels_pass_and_a_lost_block_fails(name, out):
    a, b = operands()
    bias = np.random.default_rng(1).standard_normal(b.shape[1]).astype(np.float32)
    d = in_fp32(name, H100.gemm(a, b) + bias).astype(out)
    assert_gemm_close(d, a, b, bias, engine="h100", epilogue=name)
    a[:, 64:96] = 0
    lost = in_fp32(name, H100.gemm(a, b) + bias).astype(out)
    a, b = operands()
    with pytest.raises(AssertionError, match="epilogue: " + name) as caught:
        assert_gemm_close(lost, a, b, bias, engine="h100", epilogue=name)
    assert name == "swiglu" or "k 64:96 is missing" in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold_on_random_sums(name):
    """The bound of sums that are off by as much as they may be."""
    rng = np.random.default_rng(3)
    x = np.ldexp(rng.uniform(-2, 2, (40, 40)), rng.integers(-12, 6, (40, 40)))
    done = epilogue_of(name, None, 40, 40)
    for size in (1e-7, 1e-3, 0.3):
        error = size * np.abs(x)
        for sign in (-1, 1):
            off = np.abs(in_fp32(name, x + sign * error).astype(np.float64) - done.apply(x))
            assert (off <= done.bound(x, error + 2.0**-23 * np.abs(x))).all()  # x is rounded to FP32


def test_residuals_and_functions_of_the_caller():
    a, b = operands()
    residual = np.random.default_rng(2).standard_normal((48, 40)).astype(np.float32)
    sums = H100.gemm(a, b)
    d = (in_fp32("silu", sums) + residual).astype(BF16)
    assert_gemm_close(d, a, b, engine="h100", epilogue="silu+residual", residual=residual)
    with pytest.raises(AssertionError, match="the residual is left out"):
        assert_gemm_close(
            in_fp32("silu", sums).astype(BF16), a, b, engine="h100", epilogue="silu+residual", residual=residual
        )
    with pytest.raises(AssertionError, match="the residual is added before silu"):
        assert_gemm_close(
            in_fp32("silu", sums + residual), a, b, engine="h100", epilogue="silu+residual", residual=residual
        )
    assert_gemm_close(np.sin(sums), a, b, engine="h100", epilogue=(np.sin, 1.0))

    class Cubed:
        def __call__(self, x):
            return x**3

        def interval(self, low, high):
            return low**3, high**3

    assert_gemm_close(sums**3, a, b, engine="h100", epilogue=Cubed())
    with pytest.raises(AssertionError, match="outside"):
        assert_gemm_close(sums**3 * np.float32(1.01), a, b, engine="h100", epilogue=Cubed())


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda s, c: s + c, "the epilogue silu is left out"),
        (lambda s, c: in_fp32("silu", in_fp32("silu", s + c)), "the epilogue silu is applied twice"),
        (lambda s, c: in_fp32("silu", s) + c, "C is added after silu"),
        (lambda s, c: in_fp32("gelu_tanh", s + c), "the epilogue is gelu_(tanh|erf), not silu"),
    ],
)
def test_misplaced_epilogues_are_named(wrong, text):
    a, b = operands()
    c = (3 * np.random.default_rng(1).standard_normal(b.shape[1])).astype(np.float32)
    with pytest.raises(AssertionError, match=f"looks like {text}"):
        assert_gemm_close(wrong(H100.gemm(a, b), c).astype(BF16), a, b, c, engine="h100", epilogue="silu")


@pytest.mark.parametrize(("wrong", "text"), [
    (lambda gate, up: gate * up, "the gates are not passed through silu"),
    (lambda gate, up: np.maximum(gate, 0) * up, "the gates are passed through relu, not silu"),
    (lambda gate, up: EPILOGUES["silu"].apply(gate, 0), "the result is silu of the gates, not multiplied"),
    (lambda gate, up: EPILOGUES["silu"].apply(up, 0) * gate, "gates and the values that they multiply are exchanged"),
])  # fmt: skip
def test_wrong_pairs_are_named(wrong, text):
    a, b = operands()
    out = wrong(*np.split(H100.gemm(a, b).astype(np.float64), 2, axis=1))
    with pytest.raises(AssertionError) as caught:
        assert_gemm_close(out.astype(BF16), a, b, engine="h100", epilogue="swiglu")
    said = [line for line in str(caught.value).splitlines() if "looks like" in line]
    assert len(said) == 1 and text in said[0]


@pytest.mark.parametrize("epilogue", NAMES)
def test_faults_are_tried_behind_an_epilogue(epilogue):
    a, b = operands()
    found = faults_of(gemm_tolerance("h100", a, b, out_format="fp16", epilogue=epilogue))
    assert found["zeros"] == found["the least block of 32 k dropped"] == 1.0
    flat = faults_of(gemm_tolerance("h100", a, b, np.float32(-1000), out_format="fp16", epilogue="relu"))  # all are 0
    assert flat["FP16 accumulation"] < 0.01 and flat["the least block of 32 k dropped"] < 0.01


@pytest.mark.parametrize("shape", [(48, 40), (40,), (1, 40), (48, 1), ()])
def test_biases_broadcast_as_numpy_does(shape):
    a, b = operands()
    c = np.asarray(np.random.default_rng(5).standard_normal(shape), np.float32)
    assert_gemm_close(H100.gemm(a, b) + c, a, b, c, engine="h100")
    assert_bits(np.maximum(H100.gemm(a, b), 0), a, b, recipe="h100", epilogue="relu")


def test_bad_input():
    a, b = operands()
    d = H100.gemm(a, b)
    for options, text in (
        ({"c": np.zeros(48)}, r"c has shape \(48,\), expected \(48, 40\), \(40,\)"),
        ({"epilogue": "mish"}, "expected names from relu"), ({"epilogue": "softcap"}, "softcap:C, a number above 0"),
        ({"epilogue": "relu:2"}, "expected relu"), ({"epilogue": "residual"}, "expected residual= if and only if"),
        ({"residual": d}, "without an epilogue"), ({"epilogue": (np.sin, -1)}, "Lipschitz"),
        ({"epilogue": "relu+residual", "residual": d[:3]}, "residual has shape"), ({"rows": 0}, "at least 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            assert_gemm_close(d, a, b, engine="h100", **options)
    with pytest.raises(TypeError, match="does not state how errors grow"):
        assert_gemm_close(d, a, b, engine="h100", epilogue=np.sin)
    with pytest.raises(TypeError, match="unknown option split: use one of splits"):
        assert_gemm_close(d, a, b, engine="h100", split=2)
    with pytest.raises(ValueError, match="pairs of columns"):
        assert_gemm_close(d, a, b[:, :39], engine="h100", epilogue="swiglu")


def test_a_few_rows():
    a, b = operands(m=300)
    d = H100.gemm(a, b)
    assert check_gemm(d, a, b, engine="h100", rows=16).case.result.shape == (16, 40)
    d[299, 7] += 1
    with pytest.raises(AssertionError, match=r"(?s)16 rows were checked.*out\[299, 7\]") as caught:
        assert_gemm_close(d, a, b, engine="h100", rows=16)
    assert "where: row 299, column 7" in str(caught.value)


@pytest.mark.full
def test_relu_data_leak_no_warnings():
    """Rows and columns of zeros, and single ones: any warning is an error here."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(6):
            a, b = operands(seed)
            a = np.maximum(a, 0)
            a[seed], a[:, ::5], b[:, 3] = 0, 0, 0
            d = H100.gemm(a, b)
            assert_gemm_close(d, a, b, engine="h100")
            wrong = (d * 1.5, np.where(np.arange(40) < 8, 0, d), d[np.arange(48) ^ 8], d + 1)[seed % 4]
            with pytest.raises(AssertionError, match="where"):
                assert_gemm_close(wrong.astype(np.float32), a, b, engine="h100")


def test_nvfp4_with_factors_of_the_whole():
    rng = np.random.default_rng(0)
    x, y = (
        tcm.quantize_blocks(rng.standard_normal(s), "nvfp4", axis=axis) for s, axis in (((32, 128), 1), ((128, 24), 0))
    )
    unit = next(r for r in tcm.list_instructions("b200") if r.scale_format == "ue4m3" and r.block_size == 16)
    scales = {"scale_a": (x.scales, 0.37), "scale_b": (y.scales, 1.9)}
    d = unit.gemm(x.elements, y.elements, **scales)
    assert_gemm_close(d, x.elements, y.elements, engine="b200", **scales)
    lost = unit.gemm(x.elements, y.elements, scale_a=x.scales, scale_b=(y.scales, 1.9))
    with pytest.raises(
        AssertionError, match="factor of the whole A beside its block scales was left out|every result is"
    ):
        assert_gemm_close(lost, x.elements, y.elements, engine="b200", **scales)
    assert gemm_tolerance("b200", x.elements, y.elements, **scales).scaling.whole_b == np.float32(1.9)
    assert_bits(d, x.elements, y.elements, recipe=unit, **scales)
