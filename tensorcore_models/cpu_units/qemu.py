"""Arm's instructions under QEMU's user-mode emulation: an engine where no CPU at hand has them.

QEMU restates the architecture manual in code of its own: no hardware, and nothing of this package. A program for aarch64
(``arm_steps.c``, which needs no C library) is compiled by a cross compiler when it is first used.
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
#: The emulated CPU, with vectors of 128 bits in SME, as the catalogue's shapes are.
CPU = "max,sme-default-vector-length=16"
#: By the beginning of a row's name, in the order of the program's enumeration.
UNITS = ("bfmmla.m2n2k4.f32.bf16", "bfdot.k2.f32.bf16", "bfmopa.m4n4k2.f32.bf16", "fmopa.m4n4k2.f32.f16",
         "fmopa.m4n4k1.f32.f32", "fmopa.m2n2k1.f64.f64")  # fmt: skip
EXTENDED = ".ebf"
REGISTER = 16
#: What the program's exit statuses mean; -4 is the signal of an unknown instruction.
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
    """Return the compiled program, as long as the process lasts; RuntimeError if compiler or emulator is missing or refuses."""
    missing = [name for name in (COMPILER, EMULATOR) if shutil.which(name) is None]
    if missing:
        raise RuntimeError(f"{' and '.join(missing)} not found ({PACKAGES})")
    folder = tempfile.mkdtemp(prefix="mpgemm-arm-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    source, program = Path(__file__).with_name(f"{PROGRAM}.c"), Path(folder) / PROGRAM
    done = subprocess.run([COMPILER, *FLAGS, str(source), "-o", str(program)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{COMPILER} did not compile {source.name}:\n{done.stderr}")
    return program


def _run_program(row: Instruction, steps: int, rows: int, tiles: bytes) -> tuple[int, bytes]:
    """Exit status and output for tiles of `rows` registers and two operands for each step."""
    header = struct.pack("<4I", unit_of(row), rows, steps, row.name.endswith(EXTENDED))
    done = subprocess.run([EMULATOR, "-cpu", CPU, str(_program())], input=header + tiles, capture_output=True)
    return done.returncode, done.stdout


@functools.cache
def status(row: Instruction) -> str:
    """Return why the emulator cannot run an instruction of Arm's here, "" if it can."""
    if unit_of(row) is None:
        return "the program of the emulated instructions has no such step"
    try:
        found, _ = _run_program(row, 1, row.m, bytes(REGISTER * (row.m + 2)))
    except RuntimeError as problem:
        return str(problem)
    return STATES.get(found, f"{EMULATOR} ended with status {found}") if found else ""


def _registers(x: np.ndarray) -> np.ndarray:
    """Return rows of bytes, each padded with zeros to a register."""
    rows = np.ascontiguousarray(x).view(np.uint8)
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, REGISTER - rows.shape[-1])])


@dataclasses.dataclass(frozen=True)
class QemuEngine(StepEngine):
    """An instruction of Arm's executed by QEMU's user-mode emulator; rows whose name ends in ".ebf" run with FPCR.EBF set.

    Raises ValueError if the program has no such instruction.
    """

    row: Instruction

    def __post_init__(self):
        if unit_of(self.row) is None:
            raise ValueError(f"{self.row} is not run by the emulator; of arm's instructions it runs {', '.join(UNITS)}")
        super().__post_init__()

    @property
    def label(self) -> str:
        return f"cpu-emulated:{self.row}"

    def require(self) -> None:
        missing = status(self.row)
        if missing:
            raise RuntimeError(
                f"{self.label} cannot run here: {missing}; get_instruction({str(self.row)!r}) is its model"
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
        # One register of a and one of b for each step of a tile, one of c for each row of it; BFMMLA's d is one register.
        a = _registers(a.transpose(0, 1, 3, 2, 4).reshape(batch, high, 1, steps, -1))
        b = _registers(b.transpose(0, 3, 1, 4, 2).reshape(batch, 1, wide, steps, -1))
        rows = 1 if row.m * row.n * tiles.itemsize <= REGISTER else row.m
        start = _registers(tiles.reshape(batch, high, wide, rows, -1)).reshape(batch, high, wide, -1)
        shape = (batch, high, wide, steps, REGISTER)
        pairs = np.stack([np.broadcast_to(x, shape) for x in (a, b)], axis=-2).reshape(batch, high, wide, -1)
        found, out = _run_program(row, steps, rows, np.concatenate([start, pairs], axis=-1).tobytes())
        if found or len(out) != start.size:
            raise RuntimeError(
                f"{EMULATOR} ended with status {found} and {len(out)} of {start.size} bytes of {self.label}"
            )
        size = row.m * row.n * tiles.itemsize // rows
        d = np.frombuffer(out, np.uint8).reshape(batch, high, wide, rows, REGISTER)[..., :size]
        d = np.ascontiguousarray(d).view(tiles.dtype).reshape(batch, high, wide, row.m, row.n)
        return np.ascontiguousarray(d.transpose(0, 1, 3, 2, 4).reshape(batch, high * row.m, -1)[:, :m, :n])
