"""Thirty inputs that nobody prepared: what is recommended is true by integers, and what few results cannot tell is not told."""

import json

import numpy as np
import pytest
from judge_conclusions import Product, bits, reaches, worst_behind

import ascend
import mpgemm
from mpgemm.cli import main
from mpgemm.recovery.engines import ieee_engine

ENGINE, METHODS = "h100", ("fp16", "ootomo", "3xTF32", "bf16x3", "bf16x9:restart_every=16", "ozaki_int8")


def drawn(rng, kind):
    """A stack of A and one of B of a kind, with the arguments of the command behind them."""
    m, k, n = (int(x) for x in rng.integers(4, 12, 3) * (1, 6, 1))
    count = 1
    if kind == "one row":
        m, k, n = 1, int(rng.integers(20, 400)), 1
    elif kind == "one product":
        k = 1
    elif kind == "one element":
        m = k = n = 1
    elif kind == "a broken pair":
        (m, k, n), count = (6, 24, 6), 16
    elif kind in ("copies", "gaussian stack"):
        count = int(rng.integers(3, 7))
    a, b = rng.standard_normal((count, m, k)), rng.standard_normal((count, k, n))
    if kind == "log-uniform":
        a, b = (np.ldexp(x, rng.integers(-14, 14, x.shape)) for x in (a, b))
    elif kind == "cancelling":
        half = k // 2
        b[:, half : 2 * half] = -b[:, :half]
        a[:, :, half : 2 * half] = a[:, :, :half] * (1 + 2.0**-9 * rng.standard_normal((count, m, half)))
        a[:, :, 2 * half :] *= 2.0**-9
    elif kind == "a broken row":
        a[:, int(rng.integers(m))] *= 2.0 ** -int(rng.integers(18, 30))
    elif kind == "a broken pair":
        a[int(rng.integers(count))] *= 2.0 ** -int(rng.integers(18, 30))
    elif kind == "copies":
        a[:], b[:] = a[0], b[0]
    elif kind == "integers":
        a, b = np.rint(a * 40), np.rint(b * 40)
    return a.astype(np.float32), b.astype(np.float32)


KINDS = (
    "gaussian", "gaussian stack", "log-uniform", "cancelling", "a broken row", "a broken pair", "copies", "one row",
    "one product", "one element", "integers",
)  # fmt: skip
CASES = [(KINDS[seed % len(KINDS)], seed) for seed in range(26)]


def fp32(a, b):
    return ieee_engine("fp32").gemm(a, b, promote_every=256)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """What a command says of a stack, as JSON."""
    monkeypatch.chdir(tmp_path)

    def command(name, a, b, *arguments):
        np.save("a.npy", a[0] if len(a) == 1 else a)
        np.save("b.npy", b[0] if len(b) == 1 else b)
        assert main([name, "a.npy", "b.npy", *arguments, "--json"]) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return command


@pytest.mark.sweep(5)
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_what_compare_recommends_is_true_of_every_pair(kind, seed, run):
    a, b = drawn(np.random.default_rng(1000 + seed), kind)
    wanted = 18.0
    found = run("compare", a, b, "--engines", ENGINE, "--methods", *METHODS, "--bits", str(wanted))
    products = [Product(x, y) for x, y in zip(a, b, strict=True)]
    baselines = [fp32(x, y) for x, y in zip(a, b, strict=True)]
    computed = {m: [mpgemm.recovered_gemm(x, y, None, m, ENGINE) for x, y in zip(a, b, strict=True)] for m in METHODS}
    for row in found["recommendations"]:
        for method in row["reached"]:
            if row["wanted"] == "FP32":
                assert reaches(products, computed[method], baselines), (method, row)
                assert products[0].results > 1, f"one result decides for {method}"
            else:
                errors = [p.errors(c)[0] for p, c in zip(products, computed[method], strict=True)]
                assert all(bits(error, True) >= wanted - 1e-6 for error in errors), (method, row)
        for method in set(METHODS) - set(row["reached"]) - set(row["borderline"]) - set(row["undecided"]):
            if row["wanted"] == "FP32":
                norm, largest = worst_behind(products, computed[method], baselines)
                assert norm > 0.75 - 1e-6 or largest > 1.5 - 1e-6, (method, norm, largest)
    if products[0].results == 1:
        assert all(not row["reached"] for row in found["recommendations"] if row["wanted"] == "FP32")


@pytest.mark.sweep(9)
@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_the_headline_of_evaluate_is_true_of_every_pair(kind, seed, run):
    a, b = drawn(np.random.default_rng(2000 + seed), kind)
    found = run("evaluate", a, b, "--methods", "fp32", "sgemm_cube", "sgemm_cube_scaled", "--orders", "termwise")
    verdict = found["inputs"][0]["verdict"]
    use = verdict["recommended"]
    products = [Product(x, y) for x, y in zip(a, b, strict=True)]
    baselines = [fp32(x, y) for x, y in zip(a, b, strict=True)]

    def cube(x, y, scaled):
        if scaled:
            return ascend.cube_gemm(x, y, row_scaling=True)
        return ascend.cube_gemm(x, y, order=use["order"], scale_exponent=use["scale_exponent"])

    members = verdict.get("worst", [])
    needs_scaling = {member["group"] for member in members if member["recommended"]["row_scaling"]}
    scaled = [use["row_scaling"] or f"a.npy[{i}] x b.npy[{i}]" in needs_scaling for i in range(len(a))]
    computed = [cube(x, y, s) for x, y, s in zip(a, b, scaled, strict=True)]
    if verdict["status"] == "as accurate":
        assert products[0].results > 1, "one result decides"
        assert reaches(products, computed, baselines), worst_behind(products, computed, baselines)
    if verdict["status"] == "less accurate":
        norm, largest = worst_behind(products, computed, baselines)
        assert norm > 0.75 - 1e-6 or largest > 1.5 - 1e-6
    if products[0].results == 1:
        assert verdict["status"] in ("undecided", "less accurate", "lost")


@pytest.mark.parametrize(
    "given", [["--shape", "4", "16", "4"] * 3, ["--shape", "4", "16", "4"]], ids=["thrice", "once"]
)
def test_repeated_shapes_are_one_product(given, capsys):
    assert (
        main(["compare", "--distribution", "normal", *given, "--methods", "ootomo", "--engines", ENGINE, "--json"]) == 0
    )
    assert len(json.loads(capsys.readouterr().out)["records"]) == 1


@pytest.mark.parametrize(
    "a", [np.array([[2**60 + 1, -(2**60)]]), np.array([[1.0, 2.0**-70]], np.longdouble)], ids=["integers", "longdouble"]
)
def test_files_of_numbers_that_float64_lacks_have_no_verdict(a, tmp_path, capsys):
    """Rounded to float64 the integers' product with ones is 0, and it is 1."""
    if a.dtype == np.longdouble and np.longdouble(0).itemsize == 8:
        pytest.skip("long doubles are float64 here")
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", np.ones((2, 1)))
    for command in ("compare", "evaluate"):
        assert main([command, str(tmp_path / "a.npy"), str(tmp_path / "b.npy")]) == 2
        assert "float64" in capsys.readouterr().err


def test_the_judge_notices_a_pair_that_is_averaged_away():
    """Of two products, a broken one behind a good one."""
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((2, 6, 40)).astype(np.float32), rng.standard_normal((2, 40, 6)).astype(np.float32)
    products = [Product(x, y) for x, y in zip(a, b, strict=True)]
    good = [fp32(x, y) for x, y in zip(a, b, strict=True)]
    broken = [good[0], (a[1].astype(np.float16).astype(np.float32) @ b[1])]
    assert reaches(products, good, good) and not reaches(products, broken, good)
    assert bits(products[0].errors(products[0].exact)[1]) == 24
