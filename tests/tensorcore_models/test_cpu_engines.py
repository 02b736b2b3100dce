"""Engines of this CPU's matrix instructions: the emulation against recorded results, the real ones where they are."""

import json
import subprocess
import sys

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import hardware
from tensorcore_models._kernels.cpu_units import cpu_units
from tensorcore_models.cpu_units import CpuEngine, available, cpu_engine, status
from tensorcore_models.hardware.campaign.recording import recorded, replay
from tensorcore_models.hardware.campaign.run import main
from tensorcore_models.probing.random_operands import KINDS, operands

EMULATED = available(emulated=True)
REAL = available()
SETS = ("vdpbf16ps", "tdpbf16ps", "int8")
BF16 = tcm.get_instruction("x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32")


@pytest.mark.parametrize("name", SETS)
def test_recorded_results(hardware_vectors, name):
    """Of an Intel CPU: by the emulation, and by this CPU where it has the instruction."""
    folder = hardware_vectors / "amx" / name
    if not folder.is_dir():
        pytest.skip(f"no recorded x86 results: {folder} is missing")
    for row, kind, (a, b, c, *_), d in recorded(folder):
        for engine in [CpuEngine(row, emulated=True), *([CpuEngine(row)] if row in REAL else [])]:
            got = engine.mma_bits(a, b, c)
            assert np.array_equal(got, d), f"{engine.label}/{kind}: {np.count_nonzero(got != d)} of {d.size} differ"


@pytest.mark.parametrize("row", EMULATED, ids=lambda row: row.name)
@pytest.mark.parametrize("kind", list(KINDS))
def test_emulation_against_the_model(row, kind):
    rng = np.random.default_rng(len(kind))
    inputs = operands(row, kind, -(-4096 // (row.m * row.n)), rng)
    assert np.array_equal(CpuEngine(row, emulated=True).mma_bits(*inputs), row.mma_bits(*inputs))


@pytest.mark.parametrize("row", REAL, ids=lambda row: row.name)
@pytest.mark.parametrize("kind", list(KINDS))
def test_this_cpu_against_the_model(row, kind):
    """NaN payloads included; the campaign does the same on ten million dot products."""
    inputs = operands(row, kind, -(-50_000 // (row.m * row.n)), np.random.default_rng(len(kind)))
    assert np.array_equal(CpuEngine(row).mma_bits(*inputs), row.mma_bits(*inputs))


@pytest.mark.parametrize(
    "engine", [*(CpuEngine(row, True) for row in EMULATED), *map(CpuEngine, REAL)], ids=lambda e: e.label
)
def test_products_of_any_shape(engine):
    rng = np.random.default_rng(1)
    for m, n, k in ((1, 1, 1), (17, 33, 70), (3, 40, 31), (16, 16, 64)):
        a, b = (rng.integers(0, 256, s).astype(np.uint8) for s in ((m, k), (k, n)))
        if engine.a_format == "bf16":
            a, b = tcm.encode(a / 77.0, "bf16"), tcm.encode(b - 100.0, "bf16")
        c = rng.integers(0x3F800000, 0x40000000, (m, n)).astype(np.uint32)
        given = [x.copy() for x in (a, b, c)]
        expected = engine.row.gemm_bits(a, b, c)
        for threads in (1, 3):
            tcm.set_num_threads(threads)
            assert np.array_equal(engine.gemm_bits(a, b, c), expected)
        tcm.set_num_threads(None)
        assert np.array_equal(engine.gemm_bits(a[:, ::-1], b[::-1], c), engine.row.gemm_bits(a[:, ::-1], b[::-1], c))
        assert all(np.array_equal(x, y) for x, y in zip(given, (a, b, c), strict=True))
    assert np.array_equal(engine.gemm_bits(a[:, :0], b[:0], c), c)


def test_names():
    assert hardware.engine(f"cpu-emulated:{BF16.name}").row is BF16
    assert (
        hardware.engine("cpu-emulated:tdpbf16ps") == cpu_engine("x86:tdpbf16ps", emulated=True) == CpuEngine(BF16, True)
    )
    assert hardware.engine("cpu:x86:tdpbf16ps").label == f"cpu:{BF16.name}"
    assert hardware.engine("cpu:arm:bfmmla").row.arch == "arm"
    with pytest.raises(ValueError, match="did you mean|not on|unknown|no instruction"):
        hardware.engine("cpu-emulated:tdpbf17ps")
    with pytest.raises(ValueError, match="has no CPU engine"):
        cpu_engine("hopper:mma.m16n8k16.f32.f16.f16.f32")
    with pytest.raises(ValueError, match="x86:tdpfp16ps.* has no emulation"):
        hardware.engine("cpu-emulated:tdpfp16ps")
    with pytest.raises(ValueError, match="does not name a hardware engine"):
        hardware.engine("cpu:")


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.setenv("MPGEMM_AMX", "refused")
    assert "refused the permission" in status(BF16) and BF16 not in available()
    a = np.zeros((16, 32), np.uint16)
    with pytest.raises(
        RuntimeError,
        match=r"cannot run on this machine: .*refused.*cpu-emulated:tdpbf16ps.*, which gives the same bits",
    ):
        CpuEngine(BF16).mma_bits(a, a.T, np.zeros((16, 16), np.uint32))
    monkeypatch.setenv("MPGEMM_AMX", "perhaps")
    with pytest.raises(ValueError, match="MPGEMM_AMX is 'perhaps', expected one of refused, emulated"):
        status(BF16)
    monkeypatch.delenv("MPGEMM_AMX")
    for number, name in enumerate(cpu_units.NAMES):  # an instruction that is not there is refused, not run
        if cpu_units.state(number):
            m, n, k, size = cpu_units.shape(number)
            x, y = np.zeros(m * k * size, np.uint8), np.zeros(k * n * size, np.uint8)
            with pytest.raises(RuntimeError, match=name):
                cpu_units.run(number, False, x, y, np.zeros((1, m, n), np.uint32), k, 1)


def test_bad_operands():
    engine = CpuEngine(BF16, emulated=True)
    a, b, c = np.zeros((2, 16, 32), np.uint16), np.zeros((2, 32, 16), np.uint16), np.zeros((2, 16, 16), np.uint32)
    with pytest.raises(ValueError, match="b has shape"):
        engine.mma_bits(a, b[:1], c)
    with pytest.raises(ValueError, match="has no block scales"):
        engine.mma_bits(a, b, c, a, b)
    with pytest.raises(TypeError):
        engine.mma_bits(a.astype(float), b, c)
    with pytest.raises(ValueError, match="expected the sizes of 2 products of"):
        cpu_units.run(1, True, np.zeros(5, np.uint8), np.zeros(5, np.uint8), c, 32, 1)
    with pytest.raises(ValueError, match="instruction index is 99"):
        cpu_units.state(99)


FORK = """
import os, sys, threading
import numpy as np
import tensorcore_models as tcm
from tensorcore_models import hardware
tcm.set_num_threads(3)
engine = hardware.engine(sys.argv[1])
rng = np.random.default_rng(0)
values = rng.standard_normal((2, 64, 64))
a, b = (
    x.astype(np.float32).view(np.uint8)[:, :64].copy() if fmt in ("s8", "u8") else tcm.encode(x, fmt)
    for x, fmt in zip(values, (engine.row.a_format, engine.row.b_format))
)
expected = engine.row.gemm_bits(a, b)
good = lambda: np.array_equal(engine.gemm_bits(a, b), expected) and np.array_equal(engine.row.gemm_bits(a, b), expected)
found = [good()]
thread = threading.Thread(target=lambda: found.append(good()))
thread.start()
thread.join()
child = os.fork()
if child == 0:
    os._exit(0 if good() else 3)
found.append(os.waitpid(child, 0)[1] == 0)
sys.exit(0 if len(found) == 3 and all(found) else 1)
"""


@pytest.mark.skipif(not hasattr(sys, "getswitchinterval") or sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("engine", [CpuEngine(BF16, True), *map(CpuEngine, REAL)], ids=lambda e: e.label)
def test_new_threads_and_forks(engine):
    """A tile configuration belongs to a thread, and a fork has none of its parent's threads."""
    done = subprocess.run([sys.executable, "-c", FORK, engine.label], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_campaign(tmp_path, capsys):
    assert main(["--cpu", "--emulated", "--target", "2000", "--out", str(tmp_path)]) == 0
    index = json.loads((tmp_path / "vectors" / "index.json").read_text())
    assert index["cpu"].startswith("emulation on ") and len(index["vectors"]) == len(EMULATED) * len(KINDS)
    assert not any(replay(tmp_path / "vectors").values())
    assert "mismatches: none" in capsys.readouterr().out
    assert main(["--emulated", "--out", str(tmp_path)]) == 2
    assert "--emulated is given without --cpu" in capsys.readouterr().err


def test_campaign_without_any_instruction(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(cpu_units, "state", lambda unit: 2)
    assert main(["--cpu", "--out", str(tmp_path)]) == 2
    assert "tdpbf16ps" in (said := capsys.readouterr().err) and said.count("\n") == 1
