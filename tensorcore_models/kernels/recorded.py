"""Runs accumulators without a plan of the generic kernel as Programs: passes recorded, and compiled for the machine of lanes.

That is every family that writes its `pass_bits` in `p.arithmetic`, a user's own as well, if its numbers have at most 62 bits.
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

#: Products below which the reference is done before a pass is recorded.
WORTH_RECORDING = 1 << 13
#: Products of a pass up to which it is recorded: each takes a few operations.
MOST_TERMS = 256
#: Operations of the machine that take as long as one product of the fast kernels, for `threads_for`.
_OPERATIONS = 64
#: Bytes of a slice of operands taken apart, about.
_SLICE = 1 << 27


class RecordedKernel:
    """A RecordedKernel runs the Programs of one accumulator with its formats.

    Parameters
    ----------
    low : Lowered
        The accumulator with its formats. What it does not record raises Unrecordable, and what is too wide TooWide.
    """

    def __init__(self, low: Any):
        self.spec, self.step = low.accumulator, low.accumulator.terms_per_step
        self.formats = low.a_format, low.b_format, low.c_format, low.d_format
        self.scale: Format | None = low.scale_format
        self.block = low.block_size or 0 if self.scale is not None else 0
        if self.step > MOST_TERMS:
            raise Unrecordable(f"passes of {self.step} products, of which {MOST_TERMS} are recorded")
        self._programs: dict[tuple[bool, bool, int], PassProgram] = {}
        self._passes: dict[tuple[bool, bool, int], programs.Passes] = {}
        self._passes_of(True, True, self.step)

    @cached_property
    def _same_addend(self) -> bool:
        return self.formats[2] == self.formats[3]

    def program(self, regular: bool, first: bool, terms: int) -> PassProgram:
        """Return the Program of a pass of so many products; `first`: of one that takes the c given, not a result."""
        key = (regular, first and not self._same_addend, terms)
        if key not in self._programs:
            a, b, c, d = self.formats
            formats = (a, b, c if key[1] else d, d)
            self._programs[key] = program_of(self.spec, formats, terms, self.scale, regular=regular)
        return self._programs[key]

    def _passes_of(self, regular: bool, begins: bool, last: int) -> programs.Passes:
        """Return the Programs of a chain that begins with the c given or goes on with a result, and ends with `last`
        products."""
        key = (regular, begins, last)
        if key not in self._passes:
            chain = [
                self.program(regular, first and begins, terms) for terms in (self.step, last) for first in (False, True)
            ]
            self._passes[key] = passes(chain)
        return self._passes[key]

    def run(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C of encodings, shapes (m, k), (k, n) and (m, n), k positive, any strides."""
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
    """Give the kernel of Programs for a product of m n k = `size`; None, and why, where the reference runs it.

    Parameters
    ----------
    low : Lowered
        The accumulator with its formats; the kernel is kept with it.
    """
    if "recorded" not in low.fast_kernels:
        if size < WORTH_RECORDING:
            return None, f"fewer than {WORTH_RECORDING} products"
        try:
            low.fast_kernels["recorded"] = RecordedKernel(low), ""
        except (Unrecordable, TooWide) as error:
            low.fast_kernels["recorded"] = None, str(error)
    return low.fast_kernels["recorded"]
