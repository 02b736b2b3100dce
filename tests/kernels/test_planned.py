"""Plans for Ascend as Triton kernels: refusals, the record, the order of tiles, and the bits of the emitted file's host."""

import importlib.util
import json

import numpy as np
import pytest

import ascend
import mpgemm
from ascend.grid import Swizzle
from ascend.schedule import build_schedule
from mpgemm.cli import main
from mpgemm.kernels.planned import planned_method, triton_files

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
    assert record["compiled_by_triton_ascend"] is False and record["scale_exponent"] == 12
    assert record["workspace_bytes"] == {"a": 4 * 100 * 300, "b": 4 * 300 * 150} and record["launches"] == 3
    text = (tmp_path / "gemm.py").read_text()
    bm, bk, bn = record["block"]
    assert f"'BM': {bm}, 'BN': {bn}, 'BK': {bk}, 'GROUP': {record['band']}" in text
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
        (["--terms", "1"], "recovers FP32 from words of fp16: plan with --terms 3"),
        (["--operand", "int8"], "recovers FP32 from words of fp16"),
        (["--mode", "elementwise"], "combines terms by mode fused, got elementwise"),
        (["--mode", "termwise"], "combines terms by mode fused, got termwise"),
        (["--mode", "termwise", "--block", "64,32,64"], "combines terms by mode fused, got termwise"),
        (["--split", "2", "--block", "64,32,64"], "walks all of k in one program"),
        (["--split", "2"], "walks all of k in one program: --split 1 (split=1), got 2"),
        (["--block", "96,32,48"], "next to 96: 64 or 128 and 48: 32 or 64"),
        (["--chip", "910A"], "one --chip at a time"),
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
        ({"block": (64, 48, 32)}, "next to 48: 32 or 64"),
        ({"terms": 1, "mode": "termwise"}, "1 term"),
        ({"resident": "a", "swizzle": None}, "one by one in bands of rows"),
        ({"split": 2}, "2 slice"),
        ({"swizzle": Swizzle(2, 0, True)}, "one by one in bands of rows"),
        ({"swizzle": Swizzle(2, 1, False)}, "one by one in bands of rows"),
        ({"balanced": True}, "one by one in bands of rows"),
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
    with pytest.raises(ValueError, match="the plan's is"):
        emitted.multiply(x[1:], y)
    return emitted.multiply(x, emitted.split(y, 1) if s.presplit else y).numpy()


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
    wrong = text.replace("'SHIFTS': (12, ", "'SHIFTS': (11, ").replace("'PRODUCTS': ((1, 1), ", "'PRODUCTS': ((1, 0), ")
    assert wrong != text
    assert not same_bits(computed(tmp_path / "wrong.py", wrong, s, a, b, monkeypatch), expected).all()
