"""This module defines the base class of engines that run one catalogued instruction, and checks their operands."""

import abc
from typing import Any

import numpy as np

from ..formats.operands import check_bits
from .engine import Engine
from .instruction import Instruction


class StepEngine(Engine):
    """`StepEngine` computes an instruction of the catalogue, `row`, by other means than its accumulator model.

    `gemm` and `gemm_bits` have the arguments of every :class:`tensorcore_models.Engine`. `mma_bits` accepts batches, as that of
    an instruction does.
    """

    row: Instruction

    def __post_init__(self):
        for field in ("a_format", "b_format", "c_format", "d_format", "k", "scale_format", "block_size"):
            object.__setattr__(self, field, getattr(self.row, field))

    @abc.abstractmethod
    def require(self) -> None:
        """Raise OSError or RuntimeError if the hardware or software that the engine needs is missing."""

    @abc.abstractmethod
    def _run(
        self,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        scale_a: np.ndarray | None = None,
        scale_b: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return encodings of d; c is a batch, a and b and their scales are batches or single matrices."""

    def mma_bits(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Run the instruction on raw encodings; arguments are those of :meth:`tensorcore_models.Instruction.mma_bits`.

        Raises TypeError or ValueError as that method does; OSError or RuntimeError if this machine cannot run the instruction.
        """
        row = self.row
        a, b, c = (check_bits(x, f, n) for x, f, n in zip((a, b, c), self.formats, "abc", strict=False))
        lead = c.shape[:-2]
        for x, tail, name in ((a, (row.m, row.k), "a"), (b, (row.k, row.n), "b"), (c, (row.m, row.n), "c")):
            if x.shape != (*lead, *tail):
                raise ValueError(
                    f"{row}: {name} has shape {x.shape}, expected (..., {tail[0]}, {tail[1]}) with leading "
                    f"dimensions {lead}"
                )
        scales = self.check_scales(a.shape, b.shape, scale_a, scale_b)
        given = (None if x is None else x.reshape(-1, *x.shape[-2:]) for x in (a, b, c, *scales))
        batch: list[Any] = [None if x is None else np.ascontiguousarray(x) for x in given]
        return self._run(*batch).reshape(c.shape)

    def _chain_bits(self, a, b, c, scale_a, scale_b):
        return self._run(a, b, c[None])[0]
