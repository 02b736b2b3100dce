"""This module makes matrix engines of the CPU's instructions, with raw bits in and out."""

import dataclasses
import platform

import numpy as np

from .._kernels.cpu_units import cpu_units
from ..catalogue import get_instruction, list_instructions
from ..engines.instruction import Instruction
from ..engines.step_engine import StepEngine
from ..machine.threads import threads_for
from .qemu import UNITS, QemuEngine
from .units import number_of, status

_MACHINES = {"aarch64": "arm", "arm64": "arm"}


@dataclasses.dataclass(frozen=True)
class CpuEngine(StepEngine):
    """`CpuEngine` runs a matrix instruction on this CPU, or emulates it in plain C with the same bits.

    Parameters
    ----------
    row : Instruction
        Row of the catalogue, of architecture x86 or arm; its accumulator is not used.
    emulated : bool
        Whether to run the emulation, which works on any machine. TDPFP16PS and BFMMLA have no emulation.

    Raises
    ------
    ValueError
        If CPU engines do not run the row, or the row has no emulation.
    """

    row: Instruction
    emulated: bool = False

    def __post_init__(self):
        number = number_of(self.row)
        if self.emulated and not cpu_units.is_emulated(number):
            raise ValueError(f"{self.row} has no emulation: use its model, get_instruction({str(self.row)!r})")
        super().__post_init__()

    @property
    def label(self) -> str:
        return f"cpu{'-emulated' if self.emulated else ''}:{self.row.name}"

    def require(self) -> None:
        missing = "" if self.emulated else status(self.row)
        if missing:
            raise RuntimeError(f"{self.label} cannot run on this machine: {missing}; {self._instead()}")

    def _instead(self) -> str:
        if cpu_units.is_emulated(number_of(self.row)):
            return f"use cpu-emulated:{self.row.name}, which gives the same bits on any machine"
        return f"use its model, get_instruction({str(self.row)!r})"

    def _run(self, a, b, c, scale_a=None, scale_b=None):
        self.require()
        d = np.array(c, np.uint32, order="C")
        x, y = (np.ascontiguousarray(z).reshape(-1).view(np.uint8) for z in (a, b))
        cpu_units.run(number_of(self.row), self.emulated, x, y, d, a.shape[-1], threads_for(a.size * b.shape[-1]))
        return d


def cpu_engine(name: str, emulated: bool = False) -> CpuEngine | QemuEngine:
    """Return an engine that runs an instruction of this machine's CPU.

    Parameters
    ----------
    name : str
        Name such as ``"tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"``. The part before the first point (``"tdpbf16ps"``) is enough
        if only one instruction begins with it. The architecture may precede: ``"x86:tdpbf16ps"``.
    emulated : bool
        Whether to run the emulation, on any machine: in plain C for x86 (:class:`CpuEngine`), under QEMU for Arm
        (:class:`QemuEngine`). A name without architecture then means the Arm instruction if QEMU runs one of this name, else
        the x86 instruction.

    Raises
    ------
    ValueError
        If the instruction does not exist, or has no engine.
    """
    arch, separator, rest = name.partition(":")
    if not separator:
        rest = name
        stems = {unit.partition(".")[0] for unit in UNITS}
        here = _MACHINES.get(platform.machine().lower(), "x86")
        arch = ("arm" if rest.partition(".")[0] in stems else "x86") if emulated else here
    if "." not in rest:
        found = [row.name for row in list_instructions(arch) if row.name.partition(".")[0] == rest]
        plain = [row for row in found if not row.endswith(".ebf")]
        rest = plain[0] if len(plain) == 1 else rest
    row = get_instruction(arch, rest)
    return QemuEngine(row) if emulated and row.arch == "arm" else CpuEngine(row, emulated)
