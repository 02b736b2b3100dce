"""This module runs Arm's instructions under QEMU's user-mode emulation, for machines whose CPU lacks them.

QEMU is independent of this package, but it is not hardware: it restates the architecture manual. A program for aarch64
(``arm_steps.c``, which needs no C library) is compiled by a cross compiler when an instruction first runs.
"""

import atexit
import dataclasses
import functools
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from ..engines.instruction import Instruction
from ..engines.step_engine import StepEngine

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
PROGRAM = "arm_steps"
FLAGS = (
    "-O1",
    "-march=armv8.6-a+sve",
    "-mgeneral-regs-only",
    "-ffreestanding",
    "-fno-stack-protector",
    "-nostdlib",
    "-static",
)
PACKAGES = "Debian: apt-get install gcc-aarch64-linux-gnu qemu-user"
#: The emulated CPU, with SME vectors of 128 bits, which the catalogue's shapes assume.
CPU = "max,sme-default-vector-length=16"
#: Beginnings of the names of rows, in the order of the program's enumeration.
UNITS = ("bfmmla.m2n2k4.f32.bf16", "bfdot.k2.f32.bf16", "bfmopa.m4n4k2.f32.bf16", "fmopa.m4n4k2.f32.f16",
         "fmopa.m4n4k1.f32.f32", "fmopa.m2n2k1.f64.f64")  # fmt: skip
EXTENDED = ".ebf"
REGISTER = 16
#: Meaning of the program's exit statuses; -4 is the signal of an unknown instruction.
STATES = {
    -4: "the emulated CPU lacks it",
    10: "the emulator has no FPCR.EBF (QEMU 9.1 and newer have it)",
    11: "the emulated CPU has no SME vectors of 128 bits",
}


def unit_of(row: Instruction) -> int | None:
    """Return the program's number of an instruction, None if it has none."""
    if row.arch != "arm":
        return None
    return next((i for i, name in enumerate(UNITS) if row.name.startswith(name)), None)


@functools.cache
def _program() -> Path:
    """Return the path of the compiled program, which is removed when the process ends.

    Raises RuntimeError if the compiler or the emulator is missing, or if compilation fails.
    """
    missing = [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]
    if missing:
        raise RuntimeError(f"{' and '.join(missing)} not found: install the packages ({PACKAGES})")
    folder = tempfile.mkdtemp(prefix="mpgemm-arm-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, program = Path(__file__).with_name(f"{PROGRAM}.c"), Path(folder) / PROGRAM
    done = subprocess.run([COMPILER, *FLAGS, str(source), "-o", str(program)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{COMPILER} did not compile {source.name}:\n{done.stderr}")
    return program


def _run_program(row: Instruction, steps: int, rows: int, tiles: bytes) -> tuple[int, bytes]:
    """Return the exit status and the output for tiles of `rows` registers and two operands for each step."""
    header = struct.pack("<4I", unit_of(row), rows, steps, row.name.endswith(EXTENDED))
    done = subprocess.run([EMULATOR, "-cpu", CPU, str(_program())], input=header + tiles, capture_output=True)
    return done.returncode, done.stdout


@functools.cache
def status(row: Instruction) -> str:
    """Return the reason why the emulator cannot run an Arm instruction on this machine, "" if it can."""
    if unit_of(row) is None:
        return "the emulated program does not contain this instruction"
    try:
        found, _ = _run_program(row, 1, row.m, bytes(REGISTER * (row.m + 2)))
    except RuntimeError as problem:
        return str(problem)
    return STATES.get(found, f"{EMULATOR} ended with status {found}") if found else ""


def _registers(x: np.ndarray) -> np.ndarray:
    """Return rows as bytes, each padded with zeros to a register."""
    rows = np.ascontiguousarray(x).view(np.uint8)
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, REGISTER - rows.shape[-1])])


@dataclasses.dataclass(frozen=True)
class QemuEngine(StepEngine):
    """`QemuEngine` runs an Arm instruction under QEMU; rows whose name ends in ".ebf" run with FPCR.EBF set.

    Raises ValueError if the emulated program does not contain the instruction.
    """

    row: Instruction

    def __post_init__(self):
        if unit_of(self.row) is None:
            raise ValueError(f"the emulator does not run {self.row}, expected an Arm instruction of {', '.join(UNITS)}")
        super().__post_init__()

    @property
    def label(self) -> str:
        return f"cpu-emulated:{self.row}"

    def require(self) -> None:
        missing = status(self.row)
        if missing:
            raise RuntimeError(
                f"{self.label} cannot run on this machine: {missing}; use its model, get_instruction({str(self.row)!r})"
            )

    def _run(self, a, b, c, scale_a=None, scale_b=None):
        self.require()
        row, (batch, m, n) = self.row, c.shape
        a, b = a.reshape(-1, m, a.shape[-1]), b.reshape(-1, b.shape[-2], n)
        high, wide, steps = -(-m // row.m), -(-n // row.n), a.shape[-1] // row.k
        a = np.pad(a, ((0, 0), (0, high * row.m - m), (0, 0))).reshape(batch, high, row.m, steps, row.k)
        b = np.pad(b, ((0, 0), (0, 0), (0, wide * row.n - n))).reshape(batch, steps, row.k, wide, row.n)
        tiles = np.pad(c, ((0, 0), (0, high * row.m - m), (0, wide * row.n - n)))
        tiles = tiles.reshape(batch, high, row.m, wide, row.n).transpose(0, 1, 3, 2, 4)
        # Each step of a tile has one register of a and one of b, each row has one of c; BFMMLA's d is one register.
        a = _registers(a.transpose(0, 1, 3, 2, 4).reshape(batch, high, 1, steps, -1))
        b = _registers(b.transpose(0, 3, 1, 4, 2).reshape(batch, 1, wide, steps, -1))
        rows = 1 if row.m * row.n * tiles.itemsize <= REGISTER else row.m
        start = _registers(tiles.reshape(batch, high, wide, rows, -1)).reshape(batch, high, wide, -1)
        shape = (batch, high, wide, steps, REGISTER)
        pairs = np.stack([np.broadcast_to(x, shape) for x in (a, b)], axis=-2).reshape(batch, high, wide, -1)
        found, out = _run_program(row, steps, rows, np.concatenate([start, pairs], axis=-1).tobytes())
        if found or len(out) != start.size:
            raise RuntimeError(
                f"{EMULATOR} ended {self.label} with status {found} and {len(out)} bytes, expected 0 and {start.size}"
            )
        size = row.m * row.n * tiles.itemsize // rows
        d = np.frombuffer(out, np.uint8).reshape(batch, high, wide, rows, REGISTER)[..., :size]
        d = np.ascontiguousarray(d).view(tiles.dtype).reshape(batch, high, wide, row.m, row.n)
        return np.ascontiguousarray(d.transpose(0, 1, 3, 2, 4).reshape(batch, high * row.m, -1)[:, :m, :n])
