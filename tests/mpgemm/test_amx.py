"""FP32 products on the matrix unit: the same bits as the methods on the unit's model, the guard, and every way to have no unit.

Without AMX they run on the emulation: the same source over tile registers in memory.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import mpgemm
from mpgemm._kernels import amx_sgemm as kernel
from mpgemm.amx import METHODS, RESTART, SMALLEST, unit_missing
from mpgemm.cli import main
from mpgemm.inputs.matrices import generate, load_shipped


@pytest.fixture(autouse=True, params=["emulated"] if unit_missing("bf16x6") else ["emulated", ""])
def unit(request, monkeypatch):
    """The emulation, and the real unit where there is one."""
    monkeypatch.setenv("MPGEMM_AMX", request.param)


def matrices(m, k, n, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    return tuple((scale * rng.standard_normal(shape)).astype(np.float32) for shape in ((m, k), (k, n), (m, n)))


def bits(x):
    return np.ascontiguousarray(x).view(np.uint32)


# Less than a tile, whole tiles, ragged edges, k over several blocks and slices, many panels for several threads.
SHAPES = ((1, 1, 1), (33, 70, 31), (32, 256, 32), (5, 300, 65), (40, 2 * 8 * RESTART + 77, 3), (300, 40, 290))


@pytest.mark.sweep(2)
@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize(("m", "k", "n"), SHAPES)
def test_bits_are_those_of_the_model(method, m, k, n):
    a, b, c = matrices(m, k, n)
    for addend in (None, c):
        expected = bits(mpgemm.recovered_gemm(a, b, addend, **METHODS[method]))
        for threads in (1, 3):
            got = mpgemm.sgemm_report(a, b, addend, method=method, threads=threads)
            assert got.path == method and got.unit and got.model == METHODS[method]
            assert np.array_equal(bits(got.d), expected), (addend is None, threads)


@pytest.mark.parametrize("name", ["uniform_symmetric", "log_uniform", "decades"])
@pytest.mark.parametrize("method", list(METHODS))
def test_bits_on_other_inputs(method, name):
    a, b = generate(name, 48, 520, 40)
    got = mpgemm.sgemm_report(a, b, method=method)
    expected = mpgemm.recovered_gemm(a, b, **got.model) if got.model else np.matmul(a, b)
    assert np.array_equal(bits(got.d), bits(expected)), got


@pytest.mark.full
@pytest.mark.parametrize("method", ["bf16x6", "bf16x9"])
def test_no_less_accurate_than_sgemm(method):
    """In both norms, on inputs that pass the guard: normal, positive, badly scaled columns, a matrix of a stencil."""
    rng = np.random.default_rng(5)
    a, b, _ = matrices(64, 1024, 64)
    scaled = a * np.exp2(rng.integers(-20, 21, (1, 1024))).astype(np.float32)
    shipped = [x[:128, :].copy() if i == 0 else x[:, :128].copy() for i, x in enumerate(load_shipped("diffusion"))]
    for x, y in ((a, b), (np.abs(a), np.abs(b)), (scaled, b), shipped):
        got = mpgemm.sgemm_report(x, y, method=method)
        ours, numpys = (mpgemm.errors(d, x, y) for d in (got.d, np.matmul(x, y)))
        assert ours.relative_frobenius <= numpys.relative_frobenius, got
        assert ours.componentwise <= numpys.componentwise, got


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (np.nan, "infinities or NaN"), (np.inf, "infinities or NaN"), (-np.inf, "infinities or NaN"),
        (np.float32(3.4e38), "beyond bf16's largest"), (np.float32(1e38), "may overflow"), (np.float32(-1e-31), "so small"),
        (np.float32(1e-40), "so small"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("of_a", [True, False])
def test_the_guard_leaves_it_to_numpy(value, reason, of_a):
    a, b, c = matrices(40, 2200, 36)
    if of_a:
        a[39, 2199] = value
    else:
        b[2199, 35] = value
    if value == np.float32(1e38):
        a[0], b[0] = a[0] * 1e3, b[0] * 1e3
    got = mpgemm.sgemm_report(a, b, c, method="bf16x6")
    assert got.path == "numpy" and reason in got.reason and not got.unit and not got.model
    with np.errstate(invalid="ignore", over="ignore"):
        assert np.array_equal(bits(got.d), bits(np.matmul(a, b) + c))
    if not np.isfinite(value):
        assert "infinities or NaN" in mpgemm.sgemm_report(a, b, method="int8").reason


@pytest.mark.parametrize("smallest", [2.0**-102, np.nextafter(np.float32(2.0**-102), np.float32(0))])
def test_the_guard_at_its_limit(smallest):
    """Numbers from 2^-102 on keep every bit of their words: the split is exact, and the result the model's."""
    a, b, _ = matrices(8, 64, 8)
    a[0, 0] = smallest
    b = np.sign(b) * (1 + np.abs(b))
    got = mpgemm.sgemm_report(a, b, method="bf16x6")
    assert got.path == ("bf16x6" if smallest == 2.0**-102 else "numpy")
    if got.model:
        assert np.array_equal(bits(got.d), bits(mpgemm.recovered_gemm(a, b, **got.model)))


def test_a_large_addend_is_left_to_numpy():
    a, b, c = matrices(8, 64, 8)
    c[0, 0] = 3e38
    assert "may overflow" in mpgemm.sgemm_report(a, b, c, method="bf16x6").reason
    c[0, 0] = np.inf
    assert mpgemm.sgemm(a, b, c, method="bf16x6")[0, 0] == np.inf


def test_slices_of_a_k_that_int32_does_not_hold():
    """Four products of a level, each up to 127^2, of 33,286 k stay below 2^31; of one more they may not."""
    for k, path in ((33_286, "int8"), (33_287, "numpy")):
        a, b, _ = matrices(1, k, 1)
        got = mpgemm.sgemm_report(a, b, method="int8")
        assert got.path == path
        assert got.model or "int32" in got.reason
        if got.model:
            assert np.array_equal(bits(got.d), bits(mpgemm.recovered_gemm(a, b, **got.model)))


def test_auto():
    a, b, _ = matrices(SMALLEST, SMALLEST, SMALLEST)
    assert mpgemm.sgemm_report(a, b).path == "bf16x6"
    small = mpgemm.sgemm_report(a[:-1], b)
    assert small.path == "numpy" and "at least 256" in small.reason
    assert np.array_equal(small.d, np.matmul(a[:-1], b))
    assert str(small).startswith("numpy: ")


def test_arguments_are_taken_as_they_come():
    a, b, c = matrices(20, 33, 18)
    expected = mpgemm.sgemm(a, b, c, method="bf16x6")
    given = [x.copy() for x in (a, b, c)]
    big = np.repeat(a, 2, axis=1)[:, ::2]
    for x, y, z in (
        (a.astype(np.float64), b, c),
        (np.asfortranarray(a), b[::-1][::-1], c.T.copy().T),
        (big, b, c),
        (a.tolist(), b.tolist(), c.tolist()),
    ):
        assert np.array_equal(mpgemm.sgemm(x, y, z, method="bf16x6"), expected)
    for x in (a, b, c):
        x.flags.writeable = False
    assert np.array_equal(mpgemm.sgemm(a, b, c, method="bf16x6"), expected)
    assert all(np.array_equal(x, y) for x, y in zip(given, (a, b, c), strict=True))
    half = a.astype(np.float16)
    assert np.array_equal(
        mpgemm.sgemm(half, b, method="bf16x6"), mpgemm.sgemm(half.astype(np.float32), b, method="bf16x6")
    )


@pytest.mark.parametrize(("m", "k", "n"), [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_empty(m, k, n):
    a, b, c = matrices(m, k, n)
    for method in ("auto", *METHODS):
        assert np.array_equal(mpgemm.sgemm(a, b, c, method=method), c if k == 0 else np.zeros((m, n)))


def test_bad_input():
    a, b, c = matrices(4, 5, 6)
    for bad, message in (((a, b.T), "columns of a"), ((a[0], b), "expected matrices"), ((a, b, c.T), "c is")):
        for call in (mpgemm.sgemm, mpgemm.recovered_gemm):
            with pytest.raises(ValueError, match=message):
                call(*bad)
    for call in (mpgemm.sgemm, mpgemm.recovered_gemm):
        with pytest.raises(TypeError):
            call(a.astype(complex), b)
        with pytest.raises(TypeError):
            call("a", b)
    with pytest.raises(ValueError, match=r"a: 15 of 20 values are not float32 numbers"):
        mpgemm.sgemm(a / np.float64(3), b)
    with pytest.raises(ValueError, match="method is 'bf16x7', expected 'auto' or one of bf16x6"):
        mpgemm.sgemm(a, b, method="bf16x7")
    for threads, error in ((0, ValueError), (5000, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="number of threads"):
            mpgemm.sgemm(a, b, threads=threads)


def test_a_unit_that_is_refused(monkeypatch):
    a, b, c = matrices(SMALLEST, SMALLEST, SMALLEST)
    monkeypatch.setenv("MPGEMM_AMX", "refused")
    for method in ("auto", *METHODS):
        got = mpgemm.sgemm_report(a, b, c, method=method)
        assert got.path == "numpy" and "no AMX unit" in got.reason and "refused" in got.reason
        assert np.array_equal(got.d, np.matmul(a, b) + c)
    monkeypatch.setenv("MPGEMM_AMX", "yes")
    with pytest.raises(ValueError, match="MPGEMM_AMX is 'yes'"):
        mpgemm.sgemm(a, b)


def test_many_callers_at_once():
    a, b, _ = matrices(70, 300, 70)
    expected = mpgemm.sgemm(a, b, method="bf16x6")
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: mpgemm.sgemm(a, b, method="bf16x6", threads=2), range(8)))
    assert all(np.array_equal(r, expected) for r in results)


PROCESS = """
import os, sys
import numpy as np
import mpgemm
rng = np.random.default_rng(0)
a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in range(2))
first = mpgemm.sgemm(a, b, method="bf16x6", threads=3)
if (child := os.fork()) == 0:
    os._exit(0 if np.array_equal(mpgemm.sgemm(a, b, method="bf16x6", threads=3), first) else 3)
exact = a.astype(float) @ b.astype(float)
sys.exit(os.waitpid(child, 0)[1] or not np.allclose(first, exact, rtol=0, atol=1e-4))
"""


@pytest.mark.sweep(2)
@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("setting", ["", "refused", "emulated"])
def test_processes_with_and_without_the_unit(setting, monkeypatch):
    monkeypatch.setenv("MPGEMM_AMX", setting)
    done = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_kernel_refuses_what_does_not_fit():
    a, b, d = matrices(8, 64, 8)
    space, pairs = np.empty(1 << 20, np.uint8), [(0, 0)]

    def words(**changed):
        given = {"a": a, "b": b, "d": d, "space": space, "pairs": pairs, "restart": 32, "depth": 64} | changed
        task = {"restart": given.pop("restart"), "depth": given.pop("depth"), "first": True, "emulated": True}
        kernel.multiply_words(*given.values(), task, lambda *_: None, 0, 1)

    words()
    for changed, message in (
        ({"b": b[:63]}, r"expected \(m, k\), \(k, n\) and \(m, n\)"),
        ({"d": d[:7]}, r"and \(7, 8\), expected \(m, k\), \(k, n\) and \(m, n\)"),
        ({"space": space[:1000]}, r"has 1000 bytes, expected .*workspace_bytes\(\)"),
        ({"pairs": [(0, 3)]}, r"got product \(0, 3\) of level 0, expected words from 0 to 2"),
        ({"pairs": []}, "got 0 products"), ({"pairs": [(0, 0)] * 17}, "got 17 products"),
        ({"restart": 48}, "restart is 48 and depth"), ({"depth": 48}, "and depth is 48, expected"),
        ({"depth": 0}, "and depth is 0, expected"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            words(**changed)
    x, y, sums = np.ones((2, 8, 64), np.int8), np.ones((2, 64, 8), np.int8), np.empty((2, 8, 8), np.int32)
    for given, message in (
        ((x, y[:, :63].copy(), sums, space, [(0, 0, 0), (0, 1, 1)]), r"expected \(words, m, k\), \(words, k, n\)"),
        ((x, y, sums, space, [(0, 0, 0)]), "expected .*level.* in order"),
        ((x, y, sums, space[:500], [(0, 0, 0), (0, 1, 1)]), r"has 500 bytes, expected at least workspace_bytes\(\)"),
    ):
        with pytest.raises(ValueError, match=message):
            kernel.multiply_slices(*given, True, 1)
    kernel.multiply_slices(x, y, sums, space, [(0, 0, 0), (0, 1, 1), (1, 0, 1)], True, 1)
    assert (sums[0] == 64).all() and (sums[1] == 128).all()


def evaluated(capsys, *arguments):
    shape = ["--distribution", "uniform_symmetric", "--shape", "20", "64", "20"]
    code = main(["evaluate", "--methods", *arguments, *shape])
    return code, *capsys.readouterr()


def test_evaluate_shows_the_unit_beside_its_model(capsys, monkeypatch):
    code, out, _ = evaluated(capsys, "fp32", "bf16x6", "amx")
    assert code == 0 and "seconds" in out and "bf16x6 on " in out
    rows = {line.split("  ")[0]: line.split()[-9:-1] for line in out.splitlines() if line.startswith("bf16x6")}
    assert len(rows) == 2 and len({tuple(values) for values in rows.values()}) == 1  # the same errors, as the bits are
    monkeypatch.setenv("MPGEMM_AMX", "refused")
    code, out, said = evaluated(capsys, "bf16x6", "amx")
    assert code == 0 and "amx is left out: no AMX unit" in said and "seconds here" not in out
