"""Defines the base of engines of single instructions: a row of the catalogue, and the checks of its operands."""

import abc
from typing import Any

import numpy as np

from ..formats.operands import check_bits
from .engine import Engine
from .instruction import Instruction


class StepEngine(Engine):
    """A matrix instruction of the catalogue, `row`, that something else than its model computes; its accumulator is not used.

    ``gemm`` and ``gemm_bits`` work as every engine's; `mma_bits` takes batches as an instruction's does.
    """

    row: Instruction

    def __post_init__(self):
        for field in ("a_format", "b_format", "c_format", "d_format", "k", "scale_format", "block_size"):
            object.__setattr__(self, field, getattr(self.row, field))

    @abc.abstractmethod
    def require(self) -> None:
        """Raise OSError or RuntimeError now if what the engine needs is missing."""

    @abc.abstractmethod
    def _run(
        self,
        a: np.ndarray,
        b: np.ndarray,
        c: np.ndarray,
        scale_a: np.ndarray | None = None,
        scale_b: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return encodings of d; c is a batch, the others are batches or single matrices."""

    def mma_bits(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return the instruction on raw encodings; arguments and errors as :meth:`tensorcore_models.Instruction.mma_bits`.

        Raises OSError or RuntimeError if this machine does not run the instruction.
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
