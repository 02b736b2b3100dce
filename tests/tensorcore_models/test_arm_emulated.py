"""Arm's rows against QEMU's user-mode emulator, a restatement of the manual by others.

`make cross` compares many more inputs.
"""

import functools
import shutil

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models import hardware
from tensorcore_models.cpu_units import QemuEngine, qemu
from tensorcore_models.probing.random_operands import KINDS, operands

ROWS = [row for row in tcm.list_instructions("arm") if qemu.unit_of(row) is not None]
BFDOT = tcm.get_instruction("arm", "bfdot.k2.f32.bf16.bf16.f32")


def emulated(row: tcm.Instruction) -> QemuEngine:
    """The engine of a row, or the reason why the test is skipped."""
    if reason := qemu.status(row):
        pytest.skip(reason)
    return QemuEngine(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_bits(row):
    """NaN payloads included."""
    engine = emulated(row)
    for kind in KINDS:
        inputs = operands(row, kind, -(-1500 // (row.m * row.n)), np.random.default_rng(len(kind)))
        assert np.array_equal(engine.mma_bits(*inputs), row.mma_bits(*inputs)), kind


@pytest.mark.parametrize("row", [row for row in ROWS if not row.name.endswith(qemu.EXTENDED)], ids=lambda row: row.name)
def test_products_of_any_shape(row):
    engine = emulated(row)
    rng = np.random.default_rng(1)
    for m, n, k in ((1, 1, 1), (5, 7, 9), (4, 3, 8)):
        a, b, c = (
            tcm.encode(rng.standard_normal(s), f, "rne")
            for s, f in zip(((m, k), (k, n), (m, n)), row.formats, strict=False)
        )
        assert np.array_equal(engine.gemm_bits(a, b, c), row.gemm_bits(a, b, c))


def test_names():
    assert (
        hardware.engine("cpu-emulated:bfdot") == hardware.engine(f"cpu-emulated:arm:{BFDOT.name}") == QemuEngine(BFDOT)
    )
    assert (
        hardware.engine("cpu-emulated:arm:fmopa.m4n4k1.f32.f32.f32.f32").label
        == "cpu-emulated:arm:fmopa.m4n4k1.f32.f32.f32.f32"
    )
    with pytest.raises(ValueError, match=r"emulator does not run .*fdot.*, expected an Arm instruction of bfmmla"):
        hardware.engine("cpu-emulated:arm:fdot.k4.f32.e5m2.e5m2.f32")
    with pytest.raises(ValueError, match="emulator does not run"):
        QemuEngine(tcm.get_instruction("x86:tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"))


def test_what_is_missing_is_said(monkeypatch, tmp_path):
    """No compiler or emulator; a compiler that fails; an emulator that stops."""
    x = np.zeros((1, 2), np.uint16)
    c = np.zeros((1, 1), np.uint32)
    which = shutil.which
    for name in (qemu.COMPILER, qemu.EMULATOR):
        monkeypatch.setattr(shutil, "which", lambda wanted, name=name: None if wanted == name else which("true"))
        fresh(monkeypatch)
        with pytest.raises(
            RuntimeError, match=f"bfdot.* cannot run on this machine: {name} not found.*use its model, get_instruction"
        ):
            QemuEngine(BFDOT).mma_bits(x, x.T, c)
    monkeypatch.setattr(shutil, "which", lambda wanted: "found")
    monkeypatch.setattr(qemu, "COMPILER", "false")
    fresh(monkeypatch)
    assert "false did not compile arm_steps.c" in qemu.status(BFDOT)
    monkeypatch.setattr(qemu, "COMPILER", "true")
    for script, said in (("kill -ILL $$", "lacks it"), ("exit 10", "QEMU 9.1"), ("exit 77", "status 77")):
        emulator = tmp_path / "emulator"
        emulator.write_text(f"#!/bin/sh\n{script}\n")
        emulator.chmod(0o755)
        monkeypatch.setattr(qemu, "EMULATOR", str(emulator))
        fresh(monkeypatch)
        assert said in qemu.status(BFDOT)
    fresh(monkeypatch)
    monkeypatch.setattr(qemu, "status", lambda row: "")
    with pytest.raises(RuntimeError, match="with status 77 and 0 bytes, expected 0 and 16"):
        QemuEngine(BFDOT).mma_bits(x, x.T, c)


def fresh(monkeypatch) -> None:
    """Nothing is known of the machine, and what is found out is forgotten after the test."""
    for name in ("_program", "status"):
        plain = getattr(qemu, name).__wrapped__
        monkeypatch.setattr(qemu, name, functools.cache(plain))


def test_bad_operands():
    engine = QemuEngine(BFDOT)
    a = np.zeros((3, 1, 2), np.uint16)
    with pytest.raises(ValueError, match="b has shape"):
        engine.mma_bits(a, a, np.zeros((3, 1, 1), np.uint32))
    with pytest.raises(TypeError):
        engine.mma_bits(a.astype(float), a, np.zeros((3, 1, 1), np.uint32))
