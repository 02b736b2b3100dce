"""Comparing an instruction on hardware with its model: mismatches, shrunk to minimal examples."""

import dataclasses
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ...engines.instruction import Instruction
from ...formats import Format, get_format
from .patterns import Operands

SHRINK_ROUNDS = 200


class Multiplies(Protocol):
    """A model or a hardware engine: anything with an instruction's `mma_bits`."""

    def mma_bits(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """d for batches of encodings."""
        ...


@dataclass(frozen=True)
class Mismatch:
    """One dot product on which hardware and model differ; only the products that matter are left.

    Attributes
    ----------
    instruction, kind : str
        Instruction and kind of operands.
    a, b : dict of int to str
        Encodings (hexadecimal) at positions along k; the rest is +0.
    c, hardware, model : str
        Encodings of c and of both results.
    scale_a, scale_b : list of str
        Block scales, empty for an instruction without them.
    """

    instruction: str
    kind: str
    a: dict[int, str]
    b: dict[int, str]
    c: str
    hardware: str
    model: str
    scale_a: list[str] = dataclasses.field(default_factory=list)
    scale_b: list[str] = dataclasses.field(default_factory=list)


def is_nan(bits: np.ndarray, fmt: Format) -> np.ndarray:
    """Which encodings of an IEEE-like format are NaN."""
    top = fmt.container.type(fmt.inf_bits)
    return (bits & fmt.container.type(fmt.magnitude_mask)) > top


def differences(hardware: np.ndarray, model: np.ndarray, fmt) -> np.ndarray:
    """Where two results differ; fp64 NaN payloads are unpublished, so any two NaN of fp64 are the same."""
    different = hardware != model
    if isinstance(fmt, Format) and fmt.name == "fp64":
        different &= ~(is_nan(hardware, fmt) & is_nan(model, fmt))
    return different


@dataclass
class _Dot:
    """One dot product: a (k), b (k), c, scales along k."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    scale_a: np.ndarray | None
    scale_b: np.ndarray | None

    def copy(self) -> "_Dot":
        scales = (None if x is None else x.copy() for x in (self.scale_a, self.scale_b))
        return _Dot(self.a.copy(), self.b.copy(), self.c.copy(), *scales)


def _batch(row: Instruction, dots: list[_Dot]) -> Operands:
    """The dots along the diagonals of a batch of matrices; what else the matrices hold follows and does not matter."""
    formats = row.formats
    width = min(row.m, row.n)
    count = -(-len(dots) // width)
    a = np.zeros((count, row.m, row.k), formats[0].container)
    b = np.zeros((count, row.k, row.n), formats[1].container)
    c = np.zeros((count, row.m, row.n), formats[2].container)
    scale_a = scale_b = None
    if row.scale_format is not None:
        blocks, container = row.scale_blocks, get_format(row.scale_format).container
        scale_a, scale_b = np.zeros((count, row.m, blocks), container), np.zeros((count, blocks, row.n), container)
    for number, dot in enumerate(dots):
        i, j = divmod(number, width)
        a[i, j], b[i, :, j], c[i, j, j] = dot.a, dot.b, dot.c[()]
        if scale_a is not None and scale_b is not None:
            scale_a[i, j], scale_b[i, :, j] = dot.scale_a, dot.scale_b
    return Operands(a, b, c, scale_a, scale_b)


def run_dots(row: Instruction, unit: Multiplies, dots: list[_Dot]) -> np.ndarray:
    """Results of dot products."""
    d = unit.mma_bits(*_batch(row, dots))
    return np.diagonal(d, axis1=1, axis2=2).reshape(-1)[: len(dots)]


def _simpler(row: Instruction, dot: _Dot):
    """Simplifications of a dot product, the boldest first: halves and single products away, c away, simpler numbers."""
    live = np.flatnonzero(dot.a | dot.b)
    size = len(live)
    while size > 1:
        size //= 2
        for start in range(0, len(live), max(size, 1)):
            smaller = dot.copy()
            gone = live[start : start + max(size, 1)]
            smaller.a[gone] = 0
            smaller.b[gone] = 0
            yield smaller
    if len(live) == 1:
        smaller = dot.copy()
        smaller.a[live] = smaller.b[live] = 0
        yield smaller
    if dot.c[()]:
        smaller = dot.copy()
        smaller.c[()] = 0
        yield smaller
    for name, fmt in (("a", row.formats[0]), ("b", row.formats[1]), ("c", row.formats[2])):
        below = fmt.fraction_bits + fmt.padding_bits if isinstance(fmt, Format) else fmt.bits // 2
        masks = [~((1 << below) - 1), ~((1 << (below + 1) // 2) - 1)]
        if isinstance(fmt, Format):
            masks += [~((1 << i) - 1) for i in range(1, below)] + [~fmt.sign_bit]
        for place in live if name != "c" else [()]:
            for mask in masks:
                value = int(getattr(dot, name)[place])
                simpler = value & mask & ((1 << 8 * fmt.container.itemsize) - 1)
                if simpler != value:
                    smaller = dot.copy()
                    getattr(smaller, name)[place] = simpler
                    yield smaller


def shrink(row: Instruction, hardware: Multiplies, model: Multiplies, dot: _Dot) -> _Dot:
    """The simplest dot product found on which the two still differ; all candidates of a round run as one batch."""
    for _ in range(SHRINK_ROUNDS):
        candidates = list(_simpler(row, dot))
        if not candidates:
            return dot
        apart = differences(run_dots(row, hardware, candidates), run_dots(row, model, candidates), row.formats[3])
        found = np.flatnonzero(apart)
        if not found.size:
            return dot
        dot = candidates[int(found[0])]
    return dot


def _described(row: Instruction, kind: str, dot: _Dot, hardware: int, model: int) -> Mismatch:
    digits = [2 * f.container.itemsize for f in row.formats]

    def text(value, width: int) -> str:
        return f"{int(value):#0{width + 2}x}"

    live = [int(i) for i in np.flatnonzero(dot.a | dot.b)]
    scales = [[] if s is None else [text(x, 2) for x in s] for s in (dot.scale_a, dot.scale_b)]
    return Mismatch(
        row.name, kind, {i: text(dot.a[i], digits[0]) for i in live}, {i: text(dot.b[i], digits[1]) for i in live},
        text(dot.c[()], digits[2]), text(hardware, digits[3]), text(model, digits[3]), *scales,
    )  # fmt: skip


def compare(
    row: Instruction, hardware: Multiplies, model: Multiplies, inputs: Operands, kind: str = "", examples: int = 3
) -> tuple[np.ndarray, int, list[Mismatch]]:
    """Run a batch on both and compare.

    Parameters
    ----------
    row : Instruction
        Shapes and formats.
    hardware, model : Multiplies
        What is compared.
    inputs : Operands
        A batch.
    kind : str
        For the report.
    examples : int
        How many mismatches are shrunk.

    Returns
    -------
    (ndarray, int, list of Mismatch)
        The hardware's results, the number of dot products that differ, and minimal examples.
    """
    d = hardware.mma_bits(*inputs)
    apart = differences(d, model.mma_bits(*inputs), get_format(row.d_format))
    places = np.argwhere(apart)
    found = []
    for i, r, col in places[:: max(1, len(places) // max(1, examples))][:examples]:
        scale_a = None if inputs.scale_a is None else inputs.scale_a[i, r].copy()
        scale_b = None if inputs.scale_b is None else inputs.scale_b[i, :, col].copy()
        dot = _Dot(inputs.a[i, r].copy(), inputs.b[i, :, col].copy(), np.array(inputs.c[i, r, col]), scale_a, scale_b)
        dot = shrink(row, hardware, model, dot)
        results = [int(run_dots(row, unit, [dot])[0]) for unit in (hardware, model)]
        found.append(_described(row, kind, dot, *results))
    return d, len(places), found
