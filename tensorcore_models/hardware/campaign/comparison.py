"""This module compares an instruction on hardware with its model, and shrinks mismatches to minimal examples."""

import dataclasses
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...engines.instruction import Instruction
from ...formats import Format, get_format
from ...probing.interface import Dot, DotBatch, along_diagonals, is_nan
from ...probing.random_operands import DrawnOperands
from ...probing.shrinking import shrink


class Multiplies(Protocol):
    """`Multiplies` is a model or a hardware engine with an instruction's `mma_bits`."""

    def mma_bits(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return d for batches of encodings."""
        ...


@dataclass(frozen=True)
class Mismatch:
    """`Mismatch` is a dot product on which hardware and model differ, in hexadecimal; a and b are keyed by k, +0 elsewhere."""

    instruction: str
    kind: str
    a: dict[int, str]
    b: dict[int, str]
    c: str
    hardware: str
    model: str
    scale_a: list[str] = dataclasses.field(default_factory=list)
    scale_b: list[str] = dataclasses.field(default_factory=list)


def differences(hardware: np.ndarray, model: np.ndarray, fmt) -> np.ndarray:
    """Return where two results differ; two fp64 NaN count as equal, because their payloads are not published."""
    different = hardware != model
    if isinstance(fmt, Format) and fmt.name == "fp64":
        different &= ~(is_nan(hardware, fmt) & is_nan(model, fmt))
    return different


def run_dots(row: Instruction, unit: Multiplies, batch: DotBatch) -> np.ndarray:
    """Return the results of dot products, which are run along the diagonals of matrices of the instruction's shape."""
    d = unit.mma_bits(*along_diagonals(row, batch))
    return np.diagonal(d, axis1=1, axis2=2).reshape(-1)[: batch.size]


def _described(row: Instruction, kind: str, dot: Dot, hardware: int, model: int) -> Mismatch:
    digits = [2 * f.container.itemsize for f in row.formats]

    def text(value, width: int) -> str:
        return f"{int(value):#0{width + 2}x}"

    live = [int(i) for i in dot.live]
    scales = [[] if s is None else [text(x, 2) for x in s] for s in (dot.scale_a, dot.scale_b)]
    return Mismatch(
        row.name, kind, {i: text(dot.a[i], digits[0]) for i in live}, {i: text(dot.b[i], digits[1]) for i in live},
        text(dot.c[()], digits[2]), text(hardware, digits[3]), text(model, digits[3]), *scales,
    )  # fmt: skip


def compare(
    row: Instruction, hardware: Multiplies, model: Multiplies, inputs: DrawnOperands, kind: str = "", examples: int = 3
) -> tuple[np.ndarray, int, list[Mismatch]]:
    """Return the hardware's results of a batch, the number of dot products that differ from the model, and shrunk examples."""
    d = hardware.mma_bits(*inputs)
    apart = differences(d, model.mma_bits(*inputs), get_format(row.d_format))
    places = np.argwhere(apart)
    found = []
    for i, r, col in places[:: max(1, len(places) // max(1, examples))][:examples]:
        scale_a = None if inputs.scale_a is None else inputs.scale_a[i, r].copy()
        scale_b = None if inputs.scale_b is None else inputs.scale_b[i, :, col].copy()
        dot = Dot(inputs.a[i, r].copy(), inputs.b[i, :, col].copy(), np.array(inputs.c[i, r, col]), scale_a, scale_b)
        dot = shrink(
            row,
            lambda batch: differences(run_dots(row, hardware, batch), run_dots(row, model, batch), row.formats[3]),
            dot,
        )
        results = [int(run_dots(row, unit, DotBatch.of([dot]))[0]) for unit in (hardware, model)]
        found.append(_described(row, kind, dot, *results))
    return d, len(places), found
