"""Instructions of this machine's CPU as matrix engines: raw bits in, raw bits out."""

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
    """`CpuEngine` is a matrix instruction executed by this CPU, or by plain C that gives the same bits.

    Parameters
    ----------
    row : Instruction
        The catalogue's row, of the architectures x86 or arm; its accumulator is not used.
    emulated : bool
        Run the emulation, which is there on any machine (not for TDPFP16PS and BFMMLA).

    Raises
    ------
    ValueError
        If CPU engines do not run the row, or there is no emulation of it.
    """

    row: Instruction
    emulated: bool = False

    def __post_init__(self):
        number = number_of(self.row)
        if self.emulated and not cpu_units.is_emulated(number):
            raise ValueError(f"there is no emulation of {self.row}; its model is get_instruction({str(self.row)!r})")
        super().__post_init__()

    @property
    def label(self) -> str:
        return f"cpu{'-emulated' if self.emulated else ''}:{self.row.name}"

    def require(self) -> None:
        missing = "" if self.emulated else status(self.row)
        if missing:
            raise RuntimeError(f"{self.label} cannot run here: {missing}; {self._instead()}")

    def _instead(self) -> str:
        if cpu_units.is_emulated(number_of(self.row)):
            return f"cpu-emulated:{self.row.name} gives the same bits anywhere"
        return f"get_instruction({str(self.row)!r}) is its model"

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
        ``"tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"``, the part before the first point where only one instruction begins so
        (``"tdpbf16ps"``), or with the architecture ``"x86:tdpbf16ps..."``.
    emulated : bool
        See :class:`CpuEngine`; Arm's instructions run under QEMU (:class:`QemuEngine`). Without an architecture that is the
        one whose instruction begins so.

    Raises
    ------
    ValueError
        If there is no such instruction, or no engine for it.
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
