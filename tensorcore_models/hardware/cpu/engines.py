"""Instructions of this machine's CPU as matrix engines: raw bits in, raw bits out."""

import dataclasses
import platform

import numpy as np

from ..._kernels.cpu_units import cpu_units
from ...catalogue import get_instruction, list_instructions
from ...engines.engine import Engine
from ...engines.instruction import Instruction
from ...formats.operands import check_bits
from ...machine.threads import threads_for
from .units import number_of, status

_MACHINES = {"aarch64": "arm", "arm64": "arm"}


@dataclasses.dataclass(frozen=True)
class CpuEngine(Engine):
    """A matrix instruction executed by this CPU, or by plain C that gives the same bits.

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

    Notes
    -----
    ``gemm`` and ``gemm_bits`` work as every engine's; `mma_bits` takes batches as an instruction's does.
    """

    row: Instruction
    emulated: bool = False

    def __post_init__(self):
        number = number_of(self.row)
        if self.emulated and not cpu_units.is_emulated(number):
            raise ValueError(f"there is no emulation of {self.row}; its model is get_instruction({str(self.row)!r})")
        for field in ("a_format", "b_format", "c_format", "d_format", "k", "scale_format", "block_size"):
            object.__setattr__(self, field, getattr(self.row, field))

    @property
    def label(self) -> str:
        return f"cpu{'-emulated' if self.emulated else ''}:{self.row.name}"

    def require(self) -> None:
        """Raise RuntimeError now if what the engine needs is missing."""
        missing = "" if self.emulated else status(self.row)
        if missing:
            raise RuntimeError(f"{self.label} cannot run here: {missing}; {self._instead()}")

    def _instead(self) -> str:
        if cpu_units.is_emulated(number_of(self.row)):
            return f"cpu-emulated:{self.row.name} gives the same bits anywhere"
        return f"get_instruction({str(self.row)!r}) is its model"

    def mma_bits(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """The instruction on raw encodings; arguments as :meth:`tensorcore_models.Instruction.mma_bits`.

        Raises
        ------
        TypeError, ValueError
            On wrong types or shapes, or scales.
        RuntimeError
            If this machine does not run the instruction (the message says what is missing).
        """
        row = self.row
        a, b, c = (check_bits(x, f, n) for x, f, n in zip((a, b, c), self.formats, "abc", strict=False))
        lead = c.shape[:-2]
        for x, tail, name in ((a, (row.m, row.k), "a"), (b, (row.k, row.n), "b"), (c, (row.m, row.n), "c")):
            if x.shape != (*lead, *tail):
                raise ValueError(
                    f"{row}: {name} has shape {x.shape}, expected (..., {tail[0]}, {tail[1]}) with lead {lead}"
                )
        self.check_scales(a.shape, b.shape, scale_a, scale_b)
        return self._run(a, b, c.reshape(-1, row.m, row.n)).reshape(c.shape)

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        return self._run(a, b, c[None])[0]

    def _run(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """a, b: one matrix or a batch; c: a batch."""
        self.require()
        d = np.array(c, np.uint32, order="C")
        x, y = (np.ascontiguousarray(z).reshape(-1).view(np.uint8) for z in (a, b))
        cpu_units.run(number_of(self.row), self.emulated, x, y, d, a.shape[-1], threads_for(a.size * b.shape[-1]))
        return d


def cpu_engine(name: str, emulated: bool = False) -> CpuEngine:
    """The engine of an instruction of this machine's CPU.

    Parameters
    ----------
    name : str
        ``"tdpbf16ps.m16n16k32.f32.bf16.bf16.f32"``, the part before the first point where only one instruction begins so
        (``"tdpbf16ps"``), or with the architecture ``"x86:tdpbf16ps..."``.
    emulated : bool
        As :class:`CpuEngine`; without an architecture x86's instructions are meant, as only those are emulated.

    Raises
    ------
    ValueError
        If there is no such instruction, or no engine for it.
    """
    arch, separator, rest = name.partition(":")
    if not separator:
        arch, rest = "x86" if emulated else _MACHINES.get(platform.machine().lower(), "x86"), name
    if "." not in rest:
        found = [row.name for row in list_instructions(arch) if row.name.partition(".")[0] == rest]
        rest = found[0] if len(found) == 1 else rest
    return CpuEngine(get_instruction(arch, rest), emulated)
