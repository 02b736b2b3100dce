"""This module makes matrix engines of a real GPU's instructions, with raw bits in and out."""

import dataclasses
from functools import cached_property

import numpy as np

from ...catalogue import get_instruction, list_instructions
from ...engines.instruction import Instruction
from ...engines.step_engine import StepEngine
from .device import Device, Launch, default_device
from .targets import TARGETS

#: Largest number of tiles of a launch, so that a long batch does not fill the memory of the GPU or of the host.
TILES_PER_LAUNCH = 1 << 18


def _padded(x: np.ndarray, rows: int, cols: int) -> np.ndarray:
    """Return `x` in C order, padded with zeros to multiples of `rows` and `cols`."""
    extra = (-x.shape[0] % rows, -x.shape[1] % cols)
    return np.pad(x, ((0, extra[0]), (0, extra[1]))) if any(extra) else np.ascontiguousarray(x)


@dataclasses.dataclass(frozen=True)
class CudaEngine(StepEngine):
    """`CudaEngine` runs a matrix instruction on a GPU.

    Parameters
    ----------
    row : Instruction
        Row of the catalogue; its accumulator is not used.
    on : Device, optional
        GPU to run on; by default the machine's first GPU, which is not opened before the first run.

    Notes
    -----
    `gemm` and `gemm_bits` have the arguments of every :class:`tensorcore_models.Engine`. `mma_bits` accepts batches, as
    :meth:`tensorcore_models.Instruction.mma_bits` does.
    """

    row: Instruction
    on: Device | None = None

    def __post_init__(self):
        if self.row.arch not in TARGETS:
            raise ValueError(f"{self.row} is not an NVIDIA instruction, expected one of {', '.join(TARGETS)}")
        super().__post_init__()

    @cached_property
    def device(self) -> Device:
        """Return the GPU; raises OSError or RuntimeError, which says what is missing, if there is no GPU."""
        return self.on or default_device()

    def require(self) -> None:
        if self.device.arch != self.row.arch:
            raise RuntimeError(
                f"{self.row} needs GPU architecture {self.row.arch}, {self.device.name} is {self.device.arch}"
            )

    @property
    def label(self) -> str:
        return f"cuda:{self.row.name}"

    def _run(self, a, b, c, scale_a=None, scale_b=None):
        d = np.empty(c.shape, self.formats[3].container)
        for start in range(0, len(d), TILES_PER_LAUNCH):
            part = slice(start, start + TILES_PER_LAUNCH)
            d[part] = self._run_batch(*(None if x is None else x[part] for x in (a, b, c, scale_a, scale_b)))
        return d

    def _run_batch(self, a, b, c, scale_a, scale_b) -> np.ndarray:
        row = self.row
        blocks = row.scale_blocks
        geometry = {
            "tiles": len(c), "tiles_n": 1, "steps": 1, "lda": row.k, "ldb": row.n, "ldc": row.n, "lds_a": blocks,
            "lds_b": row.n, "a_tile": row.m * row.k, "b_tile_m": row.k * row.n, "b_tile_n": 0, "c_tile_m": row.m * row.n,
            "c_tile_n": 0, "sa_tile": row.m * blocks, "sb_tile_m": blocks * row.n, "sb_tile_n": 0,
        }  # fmt: skip
        return self.device.run(Launch(row, a, b, c, scale_a, scale_b, c.shape, geometry))

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        row, k = self.row, a.shape[1]
        if row.c_format != row.d_format and k > row.k:
            # Later steps take c in the format of d, which needs another instruction.
            first = self._product(a[:, : row.k], b[: row.k], c, None, None)
            return CudaEngine(_continuing(row), self.on)._chain_bits(a[:, row.k :], b[row.k :], first, None, None)
        return self._product(a, b, c, scale_a, scale_b)

    def _product(self, a, b, c, scale_a, scale_b) -> np.ndarray:
        row = self.row
        m, n = c.shape
        a, b, c = _padded(a, row.m, row.k), _padded(b, row.k, row.n), _padded(c, row.m, row.n)
        k, blocks = a.shape[1], 0
        if scale_a is not None:
            blocks = k // row.block_size
            scale_a, scale_b = _padded(scale_a, row.m, blocks), _padded(scale_b, blocks, row.n)
        width = c.shape[1]
        geometry = {
            "tiles": c.size // (row.m * row.n), "tiles_n": width // row.n, "steps": k // row.k, "lda": k, "ldb": width,
            "ldc": width, "lds_a": blocks, "lds_b": width, "a_tile": row.m * k, "b_tile_m": 0, "b_tile_n": row.n,
            "c_tile_m": row.m * width, "c_tile_n": row.n, "sa_tile": row.m * blocks, "sb_tile_m": 0, "sb_tile_n": row.n,
        }  # fmt: skip
        return np.ascontiguousarray(self.device.run(Launch(row, a, b, c, scale_a, scale_b, c.shape, geometry))[:m, :n])


def _continuing(row: Instruction) -> Instruction:
    """Return the instruction that continues from a result of `row`: same shape and operands, c in the format of d."""
    for other in list_instructions(row.arch):
        same = (other.path, other.m, other.n, other.k, other.a_format, other.b_format, other.d_format) == (
            row.path, row.m, row.n, row.k, row.a_format, row.b_format, row.d_format,
        )  # fmt: skip
        if same and other.c_format == row.d_format:
            return other
    raise ValueError(
        f"{row}: no instruction of {row.arch} accumulates on its {row.d_format} result: use k of at most {row.k}"
    )


def cuda_engine(name: str, device: Device | None = None) -> CudaEngine:
    """Return an engine that runs an instruction of this machine's GPU.

    Parameters
    ----------
    name : str
        Name such as ``"mma.m16n8k16.f32.f16.f16.f32"``, or with its architecture
        ``"hopper:mma.m16n8k16.f32.f16.f16.f32"``.
    device : Device, optional
        GPU to run on; by default the machine's first GPU. Without a GPU the architecture must be named.

    Raises
    ------
    ValueError
        If the architecture has no such instruction.
    OSError, RuntimeError
        If no architecture is named and the machine has no GPU.
    """
    arch, separator, rest = name.partition(":")
    if not separator:
        arch, rest = (device or default_device()).arch, name
    return CudaEngine(get_instruction(arch, rest), device)
