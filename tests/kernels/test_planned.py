"""Plans for Ascend as Triton kernels: refusals, the record, the order of tiles, and the bits of the emitted file's host."""

import importlib.util
import json
from dataclasses import dataclass

import numpy as np
import pytest

import ascend
import mpgemm
from ascend.grid import Swizzle
from ascend.schedule import build_schedule
from mpgemm.cli import main
from mpgemm.kernels.planned import planned_method, triton_files
from tensorcore_models.gpu.launches import TritonLaunch, View

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


@dataclass
class Launcher:
    """Stands for a Triton function of the emitted file: a launch runs on the machine of its compiled text."""

    function: object
    machine: object
    grid: int = 0

    def __getitem__(self, grid):
        return Launcher(self.function, self.machine, grid[0])

    def __call__(self, *positional, **constants):
        options = {"enable_fp_fusion": constants.pop("enable_fp_fusion")}
        names = self.function.arg_names
        given = dict(zip(names, positional, strict=False)) | constants
        assert sorted(given) == sorted(names)
        arguments = {
            name: x if not hasattr(x, "numpy") else View(*_array(x))
            for name, x in given.items()
            if name not in constants
        }
        self.machine(TritonLaunch(self.function.__name__, arguments, constants, self.grid, 4, 1, options))


def _array(x):
    data = (x if x.is_contiguous() else x.mT).numpy()  # the memory that the strides are of
    return (data.view(np.uint16), "fp16", x.stride()) if data.dtype == np.float16 else (data, "fp32", x.stride())


def computed(path, text, s, a, b, monkeypatch):
    """What the emitted file's host gives, its functions compiled for sm_80."""
    import torch

    from mpgemm.kernels import compiling
    from mpgemm.kernels.gate import text_machine
    from tensorcore_models.gpu.targets import get_target

    path.write_text(text)
    spec = importlib.util.spec_from_file_location("emitted_gemm", path)
    emitted = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(emitted)
    functions = {name: getattr(emitted, name) for name in ("gemm", "split_words")}
    monkeypatch.setattr(compiling, "kernel_function", functions.__getitem__)
    for name, function in functions.items():
        # A and B have their own sizes and strides: each launch is compiled for itself.
        monkeypatch.setattr(emitted, name, Launcher(function, lambda launch: text_machine(get_target("sm_80"))(launch)))
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
