"""This module defines `Instruction`: a matrix engine with an architecture, a name, a shape, a source and an evidence level."""

import dataclasses
import re
from dataclasses import dataclass

import numpy as np

from .. import kernels
from ..families.base import Accumulator
from ..formats.operands import check_bits, operand_bits, scale_bits, values_of_bits
from ..integers import integer_arguments
from ..machine.fp_state import default_fp_state
from .homes import home_of
from .matrix_engine import MatrixEngine
from .rollup import RULES, Rollup

#: Evidence levels, strongest first.
EVIDENCE = (
    "hardware: own run",
    "hardware: published vectors",
    "vendor document",
    "published model",
    "inferred",
    "reconstruction",
    "arithmetic not public",
)


@dataclass(frozen=True, kw_only=True)
class Instruction(MatrixEngine):
    """`Instruction` is a catalogued matrix multiply-accumulate instruction, D = A B + C.

    Attributes
    ----------
    arch, name : str
        Architecture and name in the tables of :mod:`tensorcore_models.catalogue`.
    m, n, k : int
        Shape: a is m by k, b is k by n, c and d are m by n.
    blocks : int
        Number of independent multiplications in one instruction.
    a_format, b_format, c_format, d_format, scale_format, block_size, largest_input_scale, accumulator
        Fields of :class:`~tensorcore_models.MatrixEngine`. An instruction must state `a_format`, `b_format` and `k`; formats
        are names. `accumulator` is :class:`~tensorcore_models.accumulators.Unpublished` if the arithmetic is not public.
    legal_shapes : tuple of (m, tuple of n)
        Legal shapes of an instruction whose m or n is a free parameter that leaves the arithmetic unchanged; else empty.
    path : str
        Programming interface that issues the instruction: mma, wmma, wgmma, tcgen05, mfma, ...
    usual : bool
        Whether this path is the default where instructions of several paths give different results.
    source : str
        Publication of the arithmetic.
    evidence : str
        Evidence level, one of :data:`EVIDENCE`.
    note : str
        Further facts about the row.
    rollup : Rollup or None
        Rule that combines several accumulators of the unit in a GEMM; with None a GEMM is one chain.

    Raises
    ------
    ValueError
        If the evidence level is unknown or does not fit the accumulator, the source is missing, or the accumulator's step does
        not divide k.
    """

    # Fields that a row of the catalogue must state, formats by name.
    accumulator: Accumulator = dataclasses.field(kw_only=False)
    a_format: str
    b_format: str
    c_format: str = "fp32"
    d_format: str = "fp32"
    k: int
    scale_format: str | None = None
    arch: str
    name: str
    m: int
    n: int
    blocks: int = 1
    legal_shapes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    path: str = "mma"
    usual: bool = False
    source: str = ""
    evidence: str = "published model"
    note: str = ""
    rollup: Rollup | None = None

    def __post_init__(self):
        # An own run names its GPU, driver and date behind the level.
        if self.evidence not in EVIDENCE and not self.evidence.startswith(f"{EVIDENCE[0]} ("):
            raise ValueError(f"{self}: evidence is {self.evidence!r}, expected one of {EVIDENCE}")
        if not self.source:
            raise ValueError(f"{self}: source is empty, expected the publication of the arithmetic")
        if self.published == (self.evidence == "arithmetic not public"):
            raise ValueError(
                f"{self}: evidence is {self.evidence!r} and accumulator a {type(self.accumulator).__name__}, expected evidence "
                "'arithmetic not public' if the accumulator is Unpublished, and only then"
            )
        super().__post_init__()
        if min(self.m, self.n, self.blocks) < 1:
            raise ValueError(
                f"{self}: m, n and blocks are {self.m}, {self.n} and {self.blocks}, expected positive numbers"
            )
        step = self.accumulator.terms_per_step
        if self.k % step:
            raise ValueError(f"{self}: k is {self.k}, expected a multiple of the {step} products of one step")

    def __str__(self) -> str:
        return f"{self.arch}:{self.name}"

    @property
    def label(self) -> str:
        return str(self)

    @property
    def published(self) -> bool:
        """Return whether the arithmetic is public, so that the instruction can be computed."""
        return self.accumulator.published

    @property
    def scale_blocks(self) -> int:
        """Return the number of block scales of one row of A (or column of B) in one instruction; 0 without block scales."""
        return 0 if self.block_size is None else self.k // self.block_size

    @property
    def shape_text(self) -> str:
        """Return the shape as text, with free parameters as ranges."""
        if not self.legal_shapes:
            return f"{self.m} x {self.n} x {self.k}"
        return "; ".join(f"{m} x ({_spell(widths)}) x {self.k}" for m, widths in self.legal_shapes)

    @integer_arguments("m", "n")
    def with_shape(self, m: int, n: int) -> "Instruction":
        """Return the instruction with another legal m and n, which also appear in its name.

        Raises
        ------
        ValueError
            If the shape is not legal.
        """
        legal = dict(self.legal_shapes) or {self.m: (self.n,)}
        if n not in legal.get(m, ()):
            spelled = "; ".join(f"m {height}, n {_spell(widths)}" for height, widths in legal.items())
            raise ValueError(f"{self} has no shape with m {m}, n {n}: expected {spelled}")
        name = re.sub(r"m\d+n\d+k", f"m{m}n{n}k", self.name, count=1)
        return dataclasses.replace(self, name=name, m=m, n=n)

    def mma_bits(self, a, b, c, scale_a=None, scale_b=None, *, input_scale: int = 0) -> np.ndarray:
        """Return D = A B + C of one execution of the instruction on raw encodings.

        Parameters
        ----------
        a, b, c : array of unsigned integers
            Encodings in the formats' container types (uint8, 16, 32, 64), one array element each, of shapes (..., m, k),
            (..., k, n), (..., m, n). The high bits of fp4 and fp6 bytes must be 0; the low 13 bits of tf32 are ignored, as by
            the hardware.
        scale_a, scale_b : array of uint8
            Encodings of the block scales of shapes (..., m, k/bs) and (..., k/bs, n) for block size bs; only for block-scaled
            instructions.
        input_scale : int
            Number s in D = A B + C 2^-s; other than 0 only for instructions that scale C (:meth:`scaled_input`).

        Returns
        -------
        ndarray
            Encodings of d, shape (..., m, n).

        Raises
        ------
        TypeError, ValueError
            If types or shapes are wrong, scales are missing or given to an instruction without scales, or the arithmetic is not
            public.
        """
        if scale_a is None and scale_b is None and type(input_scale) is int and input_scale == 0:
            d = None if c is None or (tile := kernels.tile_product(self)) is None else tile.bits(a, b, c)
            if d is not None:
                return d
        return self._mma_bits(a, b, c, scale_a, scale_b, input_scale)

    @default_fp_state
    def _mma_bits(self, a, b, c, scale_a, scale_b, input_scale) -> np.ndarray:
        """Compute :meth:`mma_bits` for operands of all shapes and types, including tensors on a GPU."""
        self._require_public()
        if (home := home_of(a)) is not None:
            return home.mma_bits(self, a, b, c, scale_a, scale_b, input_scale)
        a_format, b_format, c_format, _ = self.formats
        a, b, c = check_bits(a, a_format, "a"), check_bits(b, b_format, "b"), check_bits(c, c_format, "c")
        m, n, k = self.m, self.n, self.k
        lead = c.shape[:-2]
        if a.shape != (*lead, m, k) or b.shape != (*lead, k, n) or c.shape != (*lead, m, n):
            raise ValueError(
                f"{self}: a, b and c have shapes {a.shape}, {b.shape} and {c.shape}, expected (..., {m}, {k}), (..., {k}, {n}) "
                f"and (..., {m}, {n}) with the leading dimensions {lead} of c"
            )
        scale_a, scale_b = self.check_scales(a.shape, b.shape, scale_a, scale_b)
        c = self.scaled_input(c, input_scale)
        if not lead:
            return kernels.matrix_bits(self, a, b, c, scale_a, scale_b)
        batch = [None if x is None else x.reshape(-1, *x.shape[-2:]) for x in (a, b, c, scale_a, scale_b)]
        return kernels.batch_bits(self, *batch).reshape(c.shape)

    def mma(self, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C of one execution of the instruction on values.

        Shapes are those of :meth:`mma_bits`; values are given as in :meth:`gemm`.

        Raises
        ------
        ValueError
            If values are not representable in the operand formats (the message gives their number and the first).
        """
        if scale_a is None and scale_b is None:
            d = None if c is None or (tile := kernels.tile_product(self)) is None else tile.values(a, b, c)
            if d is not None:
                return d
        return self._mma(a, b, c, scale_a, scale_b)

    @default_fp_state
    def _mma(self, a, b, c, scale_a, scale_b) -> np.ndarray:
        """Compute :meth:`mma` for operands of all shapes and types, including tensors on a GPU."""
        self._require_public()
        if (home := home_of(a)) is not None:
            return home.mma(self, a, b, c, scale_a, scale_b)
        formats = self.formats
        bits = [operand_bits(x, f, None, n) for x, f, n in zip((a, b, c), formats, "abc", strict=False)]
        scales = [scale_bits(s, self.scale_format, n) for s, n in ((scale_a, "scale_a"), (scale_b, "scale_b"))]
        return values_of_bits(self.mma_bits(*bits, *scales), formats[3])

    def with_rules(self, **edge_rules):
        """Return a copy with other edge rules of the accumulator or of the rollup (:mod:`tensorcore_models.accumulators`)."""
        own = {name: edge_rules.pop(name) for name in RULES if self.rollup is not None and name in edge_rules}
        changed = super().with_rules(**edge_rules)
        return dataclasses.replace(changed, rollup=dataclasses.replace(self.rollup, **own)) if own else changed

    def _small_product(self, a_shape, b_shape):
        alone = self.rollup is None and self.published
        return super()._small_product(a_shape, b_shape) if alone else None

    def _padded(self, a, b, c, scale_a, scale_b, pieces):
        if self.rollup is None:
            return super()._padded(a, b, c, scale_a, scale_b, pieces)
        chain = super()._padded
        return self.rollup.run(lambda c, part: chain(a, b, c, None, None, part), c, pieces, self.formats[3])

    def _promoted_bits(self, *args):
        return None if self.rollup is not None else super()._promoted_bits(*args)

    def _gemm_checked(self, *args):
        self._require_public()
        return super()._gemm_checked(*args)

    def _require_public(self) -> None:
        """Raise ValueError if the arithmetic is not public."""
        if not self.published:
            raise ValueError(
                f"{self} cannot be computed, because its arithmetic is not public ({self.source}): choose another instruction"
            )


def _spell(values: tuple[int, ...]) -> str:
    """Return values as text, and evenly spaced values as a range."""
    if len(values) > 3 and len({y - x for x, y in zip(values, values[1:], strict=False)}) == 1:
        return f"{values[0]} to {values[-1]} in steps of {values[1] - values[0]}"
    return ", ".join(map(str, values))
