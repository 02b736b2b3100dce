"""Tolerances for tests of kernels, and checks that could not fail."""

import json

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm import check_tolerance, method_bound, tolerance
from mpgemm.bounds.bounded_product import Data, EngineProduct, MethodProduct, upwards
from mpgemm.bounds.bounds import gemm_bound
from mpgemm.bounds.populations import in_random_order
from mpgemm.bounds.published_bounds import multiword_bound
from mpgemm.cli import main
from mpgemm.inputs.matrices import generate
from mpgemm.recovery.engines import plain_engine, resolve_engine
from mpgemm.recovery.methods import get_method
from mpgemm.recovery.word_run import scaling_target
from mpgemm.testing import Draws, gemm_tolerance, kernel_of
from mpgemm.testing.sampled import largest_ratio

A100 = tcm.default_instruction("a100", "fp16")


def data(k=64, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.5, 1, (4, k)).astype(np.float16), rng.uniform(0.5, 1, (k, 4)).astype(np.float16)


def test_tolerance_holds_and_shows_its_derivation():
    a, b = data()
    found = tolerance(A100, 64, (a, b))
    error = np.abs(np.asarray(A100.gemm(a, b)).astype(np.float64) - a.astype(np.float64) @ b)
    assert (error <= found.bound).all()
    np.testing.assert_array_equal(found.bound, gemm_bound(A100, a, b))
    # 8 steps of 8 products and c: nine addends below 2^-24 each, RZ to 23 fraction bits.
    assert found.relative == pytest.approx(8 * (9 * 2.0**-24 + 2.0**-23), rel=0.01)
    text = str(found)
    for part in (
        "8 steps of 8 products",
        "the alignment of 8 + 1 addends at F = 24",
        "published, block FMA, deterministic",
        "can fail",
    ):
        assert part in text


def test_tolerance_without_data_holds_for_any():
    found = tolerance(A100, 64)
    rng = np.random.default_rng(1)
    for scale in (1.0, 2.0**-14, 2.0**12):
        a, b = (x * np.float16(scale) for x in data(seed=int(rng.integers(99))))
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        error = np.abs(np.asarray(A100.gemm(a, b)).astype(np.float64) - a.astype(np.float64) @ b)
        assert (error <= found.relative * size + found.absolute).all()


def test_thirteen_bits_and_long_sums_are_vacuous():
    engine = tcm.default_instruction("h100", "e5m2", path="wgmma")
    assert "VACUOUS" in str(tolerance(engine, 10**6))
    assert "VACUOUS" not in str(tolerance(engine, 32))


def test_vacuous_checks_are_found():
    a, b = data(4)
    tight, loose, useless = (check_tolerance(a, b, rtol=rtol) for rtol in (1e-6, 0.5, 1.0))
    assert not tight.vacuous and tight.lost_product_passes == 0
    assert not loose.vacuous and loose.lost_product_passes == loose.elements == 16
    assert useless.vacuous and "VACUOUS" in str(useless)
    cancelling = np.array([[1.0, -1.0]]), np.array([[1.0], [1.0]])
    assert check_tolerance(*cancelling, atol=1e-9).vacuous  # the exact result is 0: writing 0 is right
    assert check_tolerance(a, b, np.ones((4, 4)), bound=np.full((4, 4), 1e3)).zero_passes == 16


def test_wrong_arguments():
    a, b = data()
    with pytest.raises(ValueError, match="the data have k = 64"):
        tolerance(A100, 32, (a, b))
    with pytest.raises(ValueError, match="at least 0"):
        tolerance(A100, -1)
    with pytest.raises(ValueError, match="fits no rule"):
        tolerance(A100, 64, (a, b), scale_a=np.ones((4, 2)), scale_b=np.ones((2, 4)))


def test_parts_of_a_method_bound():
    a, b = (x.astype(np.float32) + np.float32(1e-4) for x in data())
    one, three, four = (
        method_bound(a, b, None, "ootomo", A100, terms=t) if t else method_bound(a, b, None, "fp16", A100)
        for t in (0, 3, 4)
    )
    size = np.abs(a) @ np.abs(b)
    assert (one.split > 100 * three.split).all() and not one.dropped.any()
    assert (three.dropped > 0).all() and not four.dropped.any()
    assert (three.dropped <= 2.0**-22 * size).all()  # u^2 |A||B|, u = 2^-11
    assert "block FMA, deterministic" in three.published


def test_multiword_bound_is_the_published_formula():
    """Values of the published data file for fp16, one word (its bound at n = 10 and n = 1000000)."""
    fp16, fp32 = tcm.get_format("fp16"), tcm.get_format("fp32")
    for n, published in ((10, 9.775313e-04), (1_000_000, 3.727171e03)):
        assert multiword_bound(n, 1, fp16, fp32, scaling_target(fp16, fp32, n)) == pytest.approx(published, rel=1e-6)


def test_an_engine_by_name_and_a_bad_k():
    name = "hopper:mma.m16n8k16.f32.f16.f16.f32"
    assert tolerance(name, 64).relative == tolerance(tcm.get_instruction(name), 64).relative
    with pytest.raises(TypeError, match="must be an integer, the length of the dot products, got float"):
        tolerance(name, 64.0)
    with pytest.raises(TypeError, match="must be an integer, the length of the dot products, got ndarray"):
        tolerance(name, np.zeros((2, 2), int))


# -- operands that are rounded, lines and samples ------------------------------------------------------------------------
ENGINES = (
    ("h100", "fp16"), ("h100", "fp8"), ("v100", "fp16"), ("a100", "tf32"), ("rtx4060", "e5m2"), ("mi100", "bf16"),
    ("mi250", "fp16"), ("mi300x", "fp16"), ("mi300x", "fp8"), ("x86/amx", "bf16"), ("arm", "bf16"), ("910b3", "bf16"),
    ("ieee", "fp16"), ("b200/mma", "fp8"),
)  # fmt: skip


def excess(product, data) -> float:
    """Largest error over its bound."""
    measured = product.measure(data)
    return largest_ratio(measured.error, measured.bound)


def moved(rng, data):
    """One element, row or matrix scaled, negated, replaced or moved by an ulp, within the range of every operand format."""
    pair = [data.a.copy(), data.b.copy()]
    x = pair[int(rng.integers(2))]
    places = [
        (slice(None), slice(None)),
        (int(rng.integers(x.shape[0])),),
        tuple(int(rng.integers(n)) for n in x.shape),
    ]
    where, kind = places[int(rng.integers(3))], int(rng.integers(4))
    if kind == 0:
        x[where] = x[where] * np.float32(2.0 ** rng.integers(-12, 13))
    elif kind == 1:
        x[where] = -x[where]
    elif kind == 2:
        x[where] = np.float32(rng.choice([0.0, 1.0, 2.0**-24, 2.0**-14, 2.0**-149, 192.0, 1.0009765]))
    else:
        x[where] = np.nextafter(x[where], np.float32(rng.choice([-np.inf, np.inf])))
    limit = np.float32(200)
    return Data(*(np.clip(x, -limit, limit) for x in pair))


def search(product, seed: int, steps: int) -> float:
    """Hill climbing: the largest excess found."""
    rng = np.random.default_rng(seed)
    shapes = ((2, 96), (96, 2))
    data = Data(*(np.float32(rng.uniform(1, 1.5, s) * 2.0 ** rng.integers(-9, 8, s)) for s in shapes))
    best = excess(product, data)
    for _ in range(steps):
        tried = moved(rng, data)
        value = excess(product, tried)
        if value >= best:
            data, best = tried, value
    return best


@pytest.mark.sweep(10)
@pytest.mark.parametrize("reference", ["given", "rounded"])
@pytest.mark.parametrize("device, fmt", ENGINES)
def test_certified_is_never_violated(device, fmt, reference):
    product = EngineProduct(plain_engine(device, fmt), reference=reference)
    found = search(product, 5, 40)
    assert 0 < found <= 1


@pytest.mark.slow
@pytest.mark.parametrize("device, fmt", ENGINES)
def test_certified_is_never_violated_long(device, fmt):
    for seed in range(10):
        assert search(EngineProduct(plain_engine(device, fmt)), seed, 400) <= 1, seed


@pytest.mark.parametrize("every", [32, 64, 1024])
@pytest.mark.parametrize("device, fmt", [("h100", "fp8"), ("v100", "fp16"), ("mi300x", "fp8")])
def test_certified_with_sums_outside(device, fmt, every):
    product = EngineProduct(plain_engine(device, fmt), promote_every=every, reference="rounded")
    assert 0 < search(product, 6, 40) <= 1


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
def test_certified_with_a_narrow_result(fmt):
    product = EngineProduct(plain_engine("h100"), out_format=tcm.get_format(fmt))
    assert 0.01 < search(product, 7, 40) <= 1


@pytest.mark.parametrize("method", ["fp16", "markidis", "ootomo", "sgemm_cube", "bf16x9", "multiword", "ozaki_int8"])
def test_certified_of_methods(method):
    row = get_method(method)
    assert search(MethodProduct(row, resolve_engine(None, row)), 8, 20) <= 1


def test_fp32_operands_count():
    """What a bound of the fp16 sums alone leaves out: three elements of four violated it."""
    a, b = generate("normal", 16, 256, 16)
    found = tolerance("h100", 256, (a, b), quantile=0.5)
    exact = np.asarray(mpgemm.exact_gemm(a, b).rounded("fp64"))
    d = tcm.default_instruction("h100", "fp16").gemm(a, b, input_rounding="rne")
    error = np.abs(d - exact)
    size = np.abs(a.astype(float)) @ np.abs(b.astype(float))
    assert (error <= found.bound).all() and (error <= found.relative * size + found.absolute).all()
    alone = tolerance(kernel_of("h100", reference="rounded"), 256, (a, b), quantile=0.5)
    assert np.mean(error > alone.bound) > 0.5
    assert "rounded to fp16" in found.derivation and "100% of the operands" in found.notes[-1]


def test_the_line_is_above_every_bound_and_touches_it():
    a, b = data(96)
    found = tolerance(A100, 96, (a, b), quantile=0.5)
    exact = np.abs(np.asarray(mpgemm.exact_gemm(a, b).rounded("fp64")))
    ratio = found.bound / (found.certified.atol + found.certified.rtol * exact)
    assert 0.98 < ratio.max() <= 1


def test_a_share_is_between_0_and_1():
    for wrong in ((0, 0.5), (1, 0.5), (0.5, float("nan"))):
        with pytest.raises(ValueError, match="between 0 and 1"):
            tolerance("h100", 64, draws="normal", quantile=wrong[0], confidence=wrong[1])


def test_random_orders_keep_products_together():
    rng = np.random.default_rng(0)
    data = Data(rng.random((2, 10)), rng.random((10, 2)))
    for seed in range(4):
        other = in_random_order(data, 4, np.random.default_rng(seed))
        np.testing.assert_allclose(other.a @ other.b, data.a @ data.b)
        np.testing.assert_array_equal(other.a[:, 8:], data.a[:, 8:])
        assert {tuple(x) for x in other.a[0, :8].reshape(2, 4)} == {tuple(x) for x in data.a[0, :8].reshape(2, 4)}


def test_faults_that_a_tolerance_does_not_see():
    a, b = np.ones((2, 64)), np.ones((64, 2))
    a[:, 32:40] = 1e-3
    found = [check_tolerance(a, b, atol=atol, block=8) for atol in (1e-4, 2e-3, 0.1, 8, 100)]
    assert [x.unseen_terms for x in found] == [0, 8, 8, 64, 64]
    assert [x.unseen_blocks for x in found] == [0, 0, 1, 8, 8]
    assert [x.vacuous for x in found] == [False, False, False, False, True]
    assert [x.verdict.split(":")[0].split(",")[0] for x in found] == ["can fail", "can fail", "WEAK", "WEAK", "VACUOUS"]
    with pytest.raises(ValueError, match="rtol must be a number of at least 0, got nan"):
        check_tolerance(a, b, rtol=float("nan"))


def test_the_snippet_runs_and_passes():
    a32, b32 = generate("normal", 8, 128, 8)
    found = tolerance("h100", 128, (a32, b32), quantile=0.5)
    d = tcm.default_instruction("h100", "fp16").gemm(a32, b32, input_rounding="rne")
    exec(found.snippet, {"a": a32.astype(np.float64), "b": b32.astype(np.float64), "d": d})
    with pytest.raises(AssertionError):
        exec(found.snippet, {"a": a32.astype(np.float64), "b": b32.astype(np.float64), "d": d + 1})


def test_operands_that_overflow_certify_nothing():
    a = np.full((2, 8), 1e6, np.float32)
    found = tolerance("h100", data=(a, a.T), quantile=0.5)
    assert found.certified is None and found.relative is None and found.absolute is None and np.isinf(found.bound).all()
    assert found.statistical is None and "results overflow" in found.notes[-1]  # an infinite line passes anything
    assert "overflow" in found.notes[0] and "assert" not in found.snippet and "inf" not in str(found)
    with pytest.raises(ValueError, match="b holds infinities or NaN"):
        tolerance("h100", data=(a, np.full((8, 2), np.nan)))


@pytest.mark.parametrize("fmt", ["fp8", "fp16"])
def test_sums_outside_have_lines_of_their_own(fmt):
    """By size and element by element they hold for operands that take turns in size, and are tighter than one chain's."""
    one, every = (tolerance(kernel_of("h100", fmt=fmt, promote_every=every), 1024) for every in (None, 128))
    assert every.relative < one.relative / 3
    product = EngineProduct(plain_engine("h100", fmt), 128, "rounded")
    for seed in range(4):
        a, b = generate("log_uniform", 4, 1024, 4, seed, low=-6, high=4)
        found = product.measure(Data(a, b))
        assert (found.error <= every.relative * found.sizes + every.absolute).all()
        assert (found.bound <= (every.relative * found.sizes + every.absolute) * 1.01).all()
    kernel = kernel_of("h100", fmt=fmt, promote_every=128, reference="rounded")
    drawn = tolerance(kernel, 256, draws=Draws("normal", (8, 8)))
    assert drawn.statistical.of_bound < 1 and drawn.faults["statistical"]["zeros"] > 0.99
    assert "no sums outside of the unit" in drawn.faults["statistical"]


@pytest.mark.parametrize(("k", "reached"), [(64, 1.09), (1024, 1.12), (4096, 1.12)])
def test_the_textbook_bound_is_exceeded_and_ours_is_not(k, reached):
    """gamma_k = k u / (1 - k u), u = 2^-24: of 8 products about 2^-24 seven are cut off, one is cut and rounded away."""
    a, b = np.full((1, k), 2.0**-12 * (1 - 2.0**-11)), np.full((k, 1), 2.0**-12)
    b[::8], a[0, 0], b[0, 0] = 2.0**-11, 1, 1
    a, b = a.astype(np.float16), b.astype(np.float16)
    exact = float((a.astype(np.float64) @ b.astype(np.float64))[0, 0])
    error = abs(float(A100.gemm(a, b)[0, 0]) - exact) / exact
    u = 2.0**-24
    assert error > reached * k * u / (1 - k * u)
    found = tolerance(A100, k)
    assert error <= found.relative + found.absolute


def test_upwards():
    for x in (1.0, 1.0001, 0.3333333, 9.999e-12, 123456.0, 5e-324, 0.0, float("inf")):
        assert x <= upwards(x) <= x * 1.0101 + 5e-324
        assert float(f"{upwards(x):.3g}") == upwards(x)


def test_wrong_kinds_of_arguments():
    a, b = data()
    for kernel, arguments, message in (
        ({}, {}, "got neither an engine nor a method"),
        ({"engine": A100}, {}, "got neither k nor data"),
        ({"engine": A100}, {"k": 4, "data": (a, b), "draws": "normal"}, "expected one of them"),
        ({"method": "ootomo"}, {"k": 4}, "got neither data nor a distribution"),
        ({"engine": "h100", "reference": "mine"}, {"k": 4}, "reference is 'mine'"),
        ({"engine": "h100", "fmt": "fp17"}, {"k": 4}, "unknown format"),
        ({"engine": "a100", "fmt": "fp8"}, {"k": 4}, "no matrix unit for fp8"),
        ({"method": "ootomo", "fmt": "fp16"}, {"k": 4}, "leave fmt out"),
        ({"method": "ootomo", "promote_every": 16}, {"k": 4}, "leave promote_every"),
        ({"engine": "h100", "promote_every": 24}, {"k": 64}, "multiple of 16"),
    ):
        with pytest.raises(ValueError, match=message):
            tolerance(kernel_of(**kernel), **arguments)


def test_a_case_brings_its_data():
    a, b = (x.astype(np.float16) for x in generate("normal", 8, 128, 8))
    case = gemm_tolerance(A100, a, b, k_order="sequential", out_format="bf16")
    kernel = kernel_of(A100, reference="rounded", out_format="bf16")
    found, same = (tolerance(*x, quantile=0.5) for x in ((case,), (kernel, 128, (a, b))))
    assert found.to_dict() == same.to_dict() and (found.bound == same.bound).all()
    with pytest.raises(ValueError, match="a case contains its data"):
        tolerance(case, data=(a, b))


# -- the command ---------------------------------------------------------------------------------------------------------
QUICK = ["--quantile", "0.5", "--confidence", "0.6"]


def test_the_command(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "70")
    assert main(["tolerance", "--k", "64", "--check-rtol", "1", "--check-atol", "0.1", *QUICK]) == 0
    text = capsys.readouterr().out
    assert "add --reference rounded" in " ".join(text.split("statistical")[0].split())
    assert "VACUOUS" in text and "np.testing.assert_allclose" in text and "operands are rounded to fp16" in text
    prose = text.split("import numpy")[0]
    assert max(map(len, prose.splitlines())) <= 70
    assert main(["tolerance", "--k", "64", "--check-atol", "1e-9", "--reference", "rounded", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "TOO TIGHT" in out and "--reference rounded" not in out
    a, b = generate("normal", 1, 300, 4)  # a GEMV
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    files = [str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]
    assert (
        main(["tolerance", *files, "--engine", "H100", "--operands", "FP8", "--out-format", "bf16", "--json", *QUICK])
        == 0
    )
    found = json.loads(capsys.readouterr().out)
    assert found["k"] == 300 and found["statistical"]["shape"] == [1, 300, 4] and found["certified"]["line"]["atol"] > 0
    assert main(["tolerance", "--method", "ootomo", "--shipped", "digits", *QUICK]) == 0
    assert "ootomo on hopper" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--k", "-5"], "--k is -5"),
        (["--k", "0"], "--k is 0"),
        (["--engine", "h1000"], "unknown architecture"),
        (["--operands", "fp9"], "unknown format"),
        (["--check-rtol", "nan"], "rtol must be a number of at least 0, got nan"),
        (["--check-atol", "-1"], "atol must be a number of at least 0, got -1"),
        (["--quantile", "2"], "quantile must be a number between 0 and 1, such as 0.99, got 2"),
        (["--shape", "4", "4", "4", "--k", "5"], "--k is 5, but --shape has k = 4"),
        (["--shape", "0", "4", "4"], "at least 1"),
        (["missing.npy", "missing.npy"], "missing.npy"),
        (["--shipped", "digits", "--distribution", "normal"], "one kind of input"),
        (["--param", "a=1"], "goes with --distribution"),
    ],
)
def test_bad_input_is_one_line(arguments, message, capsys):
    assert main(["tolerance", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1
