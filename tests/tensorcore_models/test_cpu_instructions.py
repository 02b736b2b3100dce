"""The model of BFMMLA against a CPU that has it, or an emulator of one; skipped where there is neither.

x86's instructions have engines everywhere, real or emulated: test_cpu_engines.py.
"""

import platform
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tensorcore_models as tcm

SOURCES = Path(__file__).resolve().parents[1] / "cpu"
KERNELS = Path(tcm.__file__).resolve().parent / "_kernels"


def bf16_operands(rng: np.random.Generator, count: int, pairs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Encodings: random bits, clustered exponents with cancellation, subnormals and overflow edges, in equal parts."""
    bits = rng.integers(0, 1 << 16, (2, count, pairs), dtype=np.uint16)
    c = rng.integers(0, 1 << 32, count, dtype=np.uint32)
    kind = np.arange(count) % 4
    near = rng.integers(120, 132, (2, count, pairs)).astype(np.uint16)
    low = rng.integers(0, 130, (2, count, pairs)).astype(np.uint16)
    for which, exponent in ((1, near), (2, low), (3, near + np.uint16(60))):
        chosen = kind == which
        bits[:, chosen] = (bits[:, chosen] & np.uint16(0x807F)) | (exponent[:, chosen] << np.uint16(7))
    near_c = (c & np.uint32(0x807FFFFF)) | (rng.integers(110, 135, count).astype(np.uint32) << np.uint32(23))
    return bits[0], bits[1], np.where(kind == 1, near_c, c)


def run(command: list[str], rows: np.ndarray) -> np.ndarray:
    text = "\n".join(" ".join(f"{int(x):x}" for x in row) for row in rows)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return np.array([int(line, 16) for line in done.stdout.split()], np.uint32)


def assert_same(model: np.ndarray, cpu: np.ndarray) -> None:
    """Equal bits; NaN payloads are not part of the models."""
    nan = np.isnan(model.view(np.float32)) & np.isnan(cpu.view(np.float32))
    wrong = np.flatnonzero((model != cpu) & ~nan)
    assert wrong.size == 0, (
        f"{wrong.size} of {len(model)} differ, first: model {model[wrong[0]]:08x}, cpu {cpu[wrong[0]]:08x}"
    )


def build(tmp_path: Path, compiler: str, source: str, flags: list[str]) -> str:
    program = tmp_path / "program"
    includes = [f"-I{folder}" for folder in KERNELS.iterdir() if folder.is_dir()]
    command = [compiler, "-O1", *flags, *includes, str(SOURCES / source), "-o", str(program)]
    built = subprocess.run(command, capture_output=True, text=True)
    assert not built.returncode, built.stderr
    return str(program)


def test_bfmmla_against_the_cpu_or_an_emulator(tmp_path):
    """The engine's own step. qemu-aarch64 -cpu max follows the Arm manual's pseudocode: not hardware, but not our code."""
    if platform.machine() == "aarch64":
        compiler, prefix = "cc", []
        if "bf16" not in Path("/proc/cpuinfo").read_text() or not shutil.which("cc"):
            pytest.skip("this CPU has no BFMMLA (bf16), or there is no C compiler")
    else:
        compiler, prefix = "aarch64-linux-gnu-gcc", ["qemu-aarch64", "-cpu", "max"]
        if not shutil.which(compiler) or not shutil.which("qemu-aarch64"):
            pytest.skip("needs aarch64-linux-gnu-gcc and qemu-aarch64 (Debian: gcc-aarch64-linux-gnu, qemu-user)")
        if subprocess.run([compiler, "-E", "-"], input="#include <stdio.h>", capture_output=True, text=True).returncode:
            pytest.skip("the cross compiler has no C library (Debian: libc6-dev-arm64-cross)")
    program = build(tmp_path, compiler, "bfmmla.c", ["-static", "-Wno-unused-function"])
    a, b, c = bf16_operands(np.random.default_rng(1), 16_000, 8)
    a, b, c = a[:4000].reshape(-1, 2, 4), b[:4000].reshape(-1, 4, 2), c.reshape(-1, 2, 2)
    cpu = run([*prefix, program], np.column_stack([x.reshape(len(c), -1) for x in (a, b, c)]))
    assert_same(tcm.get_instruction("arm", "bfmmla.m2n2k4.f32.bf16.bf16.f32").mma_bits(a, b, c).ravel(), cpu)
