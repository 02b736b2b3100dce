"""This module runs accumulators of few products in lanes (pairwise.h): pairwise sums of CDNA2 (GPS), exact sums of CDNA1."""

from dataclasses import dataclass

import numpy as np

from .._kernels.pairwise import pairwise
from ..families.base import SumAlgorithm
from ..formats import Format
from ..machine.instruction_sets import isa_level
from ..machine.threads import threads_for_product
from .common import RunningResult, redo_elements, running_sum
from .generic import generic_bits
from .lowering import Lowered

#: Number of lane operations that take as long as one product of these kernels, for `threads_for_product`.
_OPERATIONS = 4


@dataclass(frozen=True)
class PairwiseKernel:
    """`PairwiseKernel` runs GroupPairwiseSum of fp16 and bf16 with flushed operands, products, sums and c.

    Parameters
    ----------
    group, terms : int
        Number of products of one pairwise sum, and of one instruction.
    operands : tuple of (Format, int)
        Formats of a and b, each with the magnitude of the encodings below which operands become +0.
    nan : int
        Encoding of NaN results.
    """

    group: int
    terms: int
    operands: tuple[tuple[Format, int], tuple[Format, int]]
    nan: int

    @classmethod
    def of(cls, low: Lowered) -> "PairwiseKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        (algorithm, spec), formats = low.form, low.floating
        if algorithm is not SumAlgorithm.PAIRWISE or formats is None or low.scale_format is not None:
            return None
        a, b, c, d = formats
        if (c.name, d.name) != ("fp32", "fp32") or any(f.name not in ("fp16", "bf16") for f in (a, b)):
            return None
        if spec.group not in (2, 4) or not spec.flush_results or spec.flush_input == "none" or d.nan_bits is None:
            return None
        operands = ((a, _flushed_below(a, spec.flush_input)), (b, _flushed_below(b, spec.flush_input)))
        nan = d.magnitude_mask if spec.nan == "all_ones" else d.nan_bits
        return cls(spec.group, spec.group * spec.groups_per_instruction, operands, nan)

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits` does."""
        if a.shape[1] % self.group:
            return generic_bits(low, a, b, c)  # the last group has fewer products
        return _run(a, b, c, None, self.operands, {"group": self.group, "terms": self.terms, "nan": self.nan})


@dataclass(frozen=True)
class ExactSumKernel:
    """`ExactSumKernel` runs exact sums (ParametricDotAdd) of fp16 and bf16, rounded to nearest even into FP32.

    Parameters
    ----------
    terms : int
        Number of products that are summed with c: 2 or 4.
    operands : tuple of Format
        Formats of a and b.
    """

    terms: int
    operands: tuple[Format, Format]

    @classmethod
    def of(cls, low: Lowered) -> "ExactSumKernel | None":
        """Return the kernel for an accumulator with its formats, None if the lanes do not cover it."""
        (algorithm, spec), formats = low.form, low.floating
        if (
            algorithm is not SumAlgorithm.EXACT
            or formats is None
            or low.scale_format is not None
            or spec.terms not in (2, 4)
        ):
            return None
        names = tuple(f.name for f in formats)
        if names[2:] != ("fp32", "fp32") or not set(names[:2]) <= {"fp16", "bf16"}:
            return None
        plain = type(spec)(
            spec.terms, fraction_bits=None, output_rounding="rne", nan=spec.nan, negative_underflow="negative"
        )
        return cls(spec.terms, formats[:2]) if spec == plain else None

    def run(self, low: Lowered, a, b, c, scale_a=None, scale_b=None) -> np.ndarray:
        """Return D = A B + C for one pair of matrices as `kernels.matrix_bits` does."""
        redo = np.zeros(c.shape, np.uint8)
        operands = tuple((fmt, 0) for fmt in self.operands)
        d = _run(a, b, c, redo, operands, {"group": self.terms, "terms": self.terms, "nan": 0})
        if redo.any():
            redo_elements(low, d, RunningResult.of(d.view(np.float32), redo), a, b, c)
        return d


def _run(a, b, c, redo, operands, task: dict) -> np.ndarray:
    """Return encodings of A B + C; `operands` are formats with flush limits, `redo` and `task` arguments of the kernel."""
    rules = tuple((fmt.name == "fp16", below) for fmt, below in operands)
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    threads = threads_for_product(_OPERATIONS * c.size * a.shape[1])
    d = running_sum(c, threads)
    pairwise.pairwise(a, b, d.view(np.float32), redo, rules, task, isa_level(), threads)
    return d


def _flushed_below(fmt: Format, rule: str) -> int:
    """Return the smallest magnitude of an encoding that is not flushed."""
    return 1 if rule == "fp32" and fmt.name == "fp16" else 1 << fmt.fraction_bits
