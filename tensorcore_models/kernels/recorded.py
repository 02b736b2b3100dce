"""This module runs accumulators that the generic kernel lacks: it records their passes and compiles them for the lanes.

It covers every family that writes its `pass_bits` in `p.arithmetic`, including user-defined families, if its numbers have at
most 62 bits.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np

from .._kernels.programs import programs
from ..arithmetic.program import PassProgram, program_of
from ..arithmetic.recorder import Unrecordable
from ..formats import Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for
from .programs import TooWide, passes

#: Number of products below which the reference finishes before a pass is recorded.
WORTH_RECORDING = 1 << 13
#: Largest number of products of a recorded pass; each product takes a few operations.
MOST_TERMS = 256
#: Number of lane operations that take as long as one product of a program, for `threads_for`.
_OPERATIONS = 64
#: Approximate number of bytes of a slice of decoded operands.
_SLICE = 1 << 27


class RecordedKernel:
    """`RecordedKernel` runs the recorded programs of one accumulator with its formats.

    Parameters
    ----------
    low : Lowered
        Accumulator with its formats. Raises Unrecordable if it cannot be recorded, TooWide if its numbers are too wide.
    """

    def __init__(self, low: Any):
        self.spec, self.step = low.accumulator, low.accumulator.terms_per_step
        self.formats = low.a_format, low.b_format, low.c_format, low.d_format
        self.scale: Format | None = low.scale_format
        self.block = low.block_size or 0 if self.scale is not None else 0
        if self.step > MOST_TERMS:
            raise Unrecordable(f"passes have {self.step} products, expected at most {MOST_TERMS}")
        self._programs: dict[tuple[bool, bool, int], PassProgram] = {}
        self._passes: dict[tuple[bool, bool, int], programs.Passes] = {}
        self._passes_of(True, True, self.step)

    @cached_property
    def _same_addend(self) -> bool:
        return self.formats[2] == self.formats[3]

    def program(self, regular: bool, first: bool, terms: int) -> PassProgram:
        """Return the program of a pass of `terms` products; with `first`, its addend is the given c, not a result."""
        key = (regular, first and not self._same_addend, terms)
        if key not in self._programs:
            a, b, c, d = self.formats
            formats = (a, b, c if key[1] else d, d)
            self._programs[key] = program_of(self.spec, formats, terms, self.scale, regular=regular)
        return self._programs[key]

    def _passes_of(self, regular: bool, begins: bool, last: int) -> programs.Passes:
        """Return the programs of a chain that starts from the given c (`begins`) or a result, and ends with `last` products."""
        key = (regular, begins, last)
        if key not in self._passes:
            chain = [
                self.program(regular, first and begins, terms) for terms in (self.step, last) for first in (False, True)
            ]
            self._passes[key] = passes(chain)
        return self._passes[key]

    def run(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for encodings of shapes (m, k), (k, n) and (m, n) with positive k and any strides."""
        (m, k), n = a.shape, b.shape[1]
        unit = math.lcm(self.step, self.block or 1)
        length = max(_SLICE // (64 * max(m + n, 1) * unit), 1) * unit
        for start in range(0, k, length):
            part = slice(start, start + length)
            scales = (None, None)
            if self.block:
                blocks = slice(start // self.block, -(-(start + length) // self.block))
                scales = scale_a[:, blocks], scale_b[blocks]
            c = self._run(a[:, part], b[part], c, *scales, start == 0)
        return c

    def _run(self, a, b, c, scale_a, scale_b, begins: bool) -> np.ndarray:
        out = np.empty((a.shape[0], b.shape[1]), self.formats[3].container)
        last = a.shape[1] % self.step or self.step

        def all_passes() -> programs.Passes:
            return self._passes_of(False, begins, last)

        regular = self._passes_of(True, begins, last)
        threads = threads_for(_OPERATIONS * a.size * b.shape[1])
        programs.run(regular, all_passes, a, b, c, out, scale_a, scale_b, self.step, self.block, isa_level(), threads)
        return out


def recorded_kernel(low: Any, size: int) -> tuple[RecordedKernel | None, str]:
    """Return the recorded kernel for a product with m n k = `size`, or None and the reason why the reference runs it.

    Parameters
    ----------
    low : Lowered
        Accumulator with its formats, which caches the kernel.
    """
    if "recorded" not in low.fast_kernels:
        if size < WORTH_RECORDING:
            return None, f"fewer than {WORTH_RECORDING} products"
        try:
            low.fast_kernels["recorded"] = RecordedKernel(low), ""
        except (Unrecordable, TooWide) as error:
            low.fast_kernels["recorded"] = None, str(error)
    return low.fast_kernels["recorded"]
