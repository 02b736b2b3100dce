"""Plans for Ascend as Triton kernels: refusals, the record, the order of tiles, and the bits of the emitted file's host."""

import importlib.util
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import ascend
import mpgemm
from ascend.grid import Swizzle
from ascend.schedule import build_schedule
from mpgemm.cli import main
from mpgemm.kernels.forms import kernel_form, kernel_method
from mpgemm.kernels.planned import planned_method, triton_files
from mpgemm.kernels.planned_source import TRITON_ASCEND, kernel_text

PLAN = ["plan", "100", "300", "150", "--chip", "910B3", "--emit", "triton"]
SAID = {
    "kernel": "grid", "mode": "fused", "resident": "none", "balanced": False, "swizzle": Swizzle(2, 0, False),
}  # fmt: skip


def schedule(m=100, k=300, n=150, block=(64, 32, 32), chip="910B3", **options):
    return build_schedule(m, k, n, chip, ascend.Blocking(*block), **SAID | options)


def test_a_plan_is_written_with_its_blocks(tmp_path, capsys):
    assert main([*PLAN, str(tmp_path), "--json"]) == 0
    best = json.loads(capsys.readouterr().out)["plans"][0]
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["block"] == [best["bm"], best["bk"], best["bn"]] and best["mode"] == "fused"
    assert record["written_for"] == f"triton-ascend {TRITON_ASCEND}" and record["scale_exponent"] == 12
    assert record["workspace_bytes"] == {"a": 4 * 100 * 300, "b": 4 * 300 * 150} and record["launches"] == 3
    text = (tmp_path / "gemm.py").read_text()
    bm, bk, bn = record["block"]
    assert f"'BM': {bm}, 'BN': {bn}, 'BK': {bk}, 'BAND': {record['band']}" in text
    assert f"PROGRAMS = {-(-100 // bm) * -(-150 // bn)}\n" in text and "mpgemm." not in text.partition('"""\n')[2]
    compile(text, "gemm.py", "exec")


@pytest.mark.parametrize("chip", ["910B1", "910B3", "910C", "950"])
@pytest.mark.parametrize("size", [(1, 17, 1), (33, 700, 48), (512, 4096, 1000)])
def test_plans_for_triton_are_said(chip, size):
    best = ascend.plan(*size, chip, target="triton", top=1, simulated=3, error_of=lambda s: 0.0)[0].schedule
    assert all(x & (x - 1) == 0 for x in (best.blocking.bm, best.blocking.bk, best.blocking.bn))
    assert triton_files(best)["record.json"]["predicted_us"] == pytest.approx(1e6 * ascend.simulate(best).seconds)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--terms", "1"], "recover FP32 from words of fp16, got one term: plan with --terms 3"),
        (["--operand", "int8"], "recover FP32 from words of fp16"),
        (["--mode", "elementwise"], "must be one of fused, got elementwise"),
        (["--mode", "termwise"], "must be one of fused, got termwise"),
        (["--mode", "termwise", "--block", "64,32,64"], "must be one of fused, got termwise"),
        (["--split", "2", "--block", "64,32,64"], "do not split k"),
        (["--split", "2"], "do not split k, got 2 slices of k"),
        (["--block", "96,32,48"], "give --block with 64 or 128 for 96, 32 or 64 for 48, or leave"),
        (["--chip", "910A"], "takes one --chip"),
    ],
)
def test_what_triton_cannot_say_is_refused(arguments, why, tmp_path, capsys):
    assert main([*PLAN, str(tmp_path / "out"), *arguments]) == 2
    assert why in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"chip": "910A"}, "does not exist for 910A"),
        ({"mode": "elementwise"}, "mode elementwise"),
        ({"block": (64, 48, 32)}, "give --block with 32 or 64 for 48, or leave"),
        ({"terms": 1, "mode": "termwise"}, "1 product"),
        ({"resident": "a", "swizzle": None}, "expected whole tiles over all of k in bands of rows"),
        ({"split": 2}, "2 slice"),
        ({"swizzle": Swizzle(2, 0, True)}, "expected whole tiles over all of k in bands of rows"),
        ({"swizzle": Swizzle(2, 1, False)}, "expected whole tiles over all of k in bands of rows"),
        ({"balanced": True}, "expected whole tiles over all of k in bands of rows"),
        ({"n_fused": 2}, "5 group"),
    ],
)  # fmt: skip
def test_schedules_that_are_refused(options, why):
    with pytest.raises(ValueError, match=why):
        triton_files(schedule(**options))


def computed(path, text, s, a, b, monkeypatch):
    """What the emitted file's host gives, its functions compiled for sm_80."""
    import torch
    from ptx_device import PTXDevice

    path.write_text(text)
    spec = importlib.util.spec_from_file_location("emitted_gemm", path)
    emitted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(emitted)
    PTXDevice("sm_80").use(monkeypatch)
    x, y = torch.from_numpy(a.T.copy()).T, torch.from_numpy(b)
    with pytest.raises(ValueError, match="expected "):
        emitted.multiply(x[1:], y)
    return emitted.multiply(x, emitted.split(y) if s.presplit else y).numpy()


@pytest.mark.parametrize(
    "options",
    [
        {"m": 37, "k": 75, "n": 41, "block": (16, 32, 32)},
        {"m": 40, "k": 64, "n": 33, "block": (32, 16, 16), "terms": 4, "presplit": "b"},
    ],
)
@pytest.mark.sweep(1)
def test_the_emitted_file_gives_the_bits_of_its_row(options, tmp_path, monkeypatch):
    """The file's own host and functions, run here: recovered_gemm's bits; other constants give other bits."""
    pytest.importorskip("torch", reason="the emitted host has torch tensors: pip install 'mpgemm[kernels]'")
    pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")
    from mpgemm.kernels.gate import same_bits

    s = schedule(**options)
    rng = np.random.default_rng(7)
    a = np.ldexp(rng.uniform(-2, 2, (s.m, s.k)), rng.integers(-9, 6, (s.m, s.k))).astype(np.float32)
    b = rng.standard_normal((s.k, s.n)).astype(np.float32)
    expected = mpgemm.recovered_gemm(a, b, method=planned_method(s), engine="ampere")
    text = triton_files(s)["gemm.py"]
    found = computed(tmp_path / "gemm.py", text, s, a, b, monkeypatch)
    assert same_bits(found, expected).all() and np.isfinite(found).all()
    wrong = text.replace("value * 0.000244140625", "value * 0.00048828125")
    assert wrong != text
    assert not same_bits(computed(tmp_path / "wrong.py", wrong, s, a, b, monkeypatch), expected).all()


def test_the_text_of_other_methods_is_refused():
    for method in ("ootomo", "bf16x3"):
        with pytest.raises(ValueError, match="words of fp16 that are rounded to nearest, and chains over all of k"):
            kernel_text(kernel_form(kernel_method(method)))


@pytest.fixture(scope="module")
def triton_ascend():
    """A function that compiles a file: MPGEMM_TRITON_ASCEND is a Python that has triton-ascend 3.2.0 (and pybind11, numpy)."""
    python = os.environ.get("MPGEMM_TRITON_ASCEND")
    if not python:
        pytest.skip(
            "MPGEMM_TRITON_ASCEND is not set: a Python in whose environment pip installed triton-ascend and pybind11"
        )
    script = Path(__file__).parents[1] / "support" / "triton_ascend.py"
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def compiled(path):
        done = subprocess.run([python, script, path], capture_output=True, text=True, env=alone, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout.splitlines()[-1])

    return compiled


@pytest.mark.full
@pytest.mark.parametrize(
    "options", [{}, {"terms": 4, "m": 1, "n": 1, "k": 64}, {"presplit": "ab", "block": (64, 128, 64), "chip": "910B4"}]
)
def test_triton_ascend_compiles_what_is_written(options, tmp_path, triton_ascend):
    """The front end and the adapter to linalg of the release that the text names; each product is there."""
    s = schedule(**options)
    (tmp_path / "gemm.py").write_text(triton_files(s)["gemm.py"])
    found = triton_ascend(tmp_path / "gemm.py")
    assert found["version"] == TRITON_ASCEND
    assert found["gemm"] == {"tt.dot": s.terms, "linalg.matmul": s.terms}
    assert found["split_words"] == {"tt.dot": 0, "linalg.matmul": 0}
