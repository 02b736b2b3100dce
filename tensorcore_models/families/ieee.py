"""Algorithms made of IEEE operations (SFMA, AMX lanes, GPS, BFMMLA), and integer units."""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from .base import MAX_TERMS, Accumulator, NanRule, check_deterministic, require

#: Edge rules of the classes that x86 instructions are rows of.
X86_RULES: dict[str, tuple[str, ...] | None] = {**Accumulator.edge_rules, "nan": ("all_ones", "quiet", "x86")}


@dataclass(frozen=True)
class SequentialFMA(Accumulator):
    """SFMA: a chain of IEEE fused multiply-adds in the output format, k ascending (xie-mma-sim, section IV-A).

    FP64 tensor cores, FP64 and FP32 matrix cores; with `flush_inputs`, `flush_outputs`, "odd_first" and the rule nan "x86"
    VDPBF16PS (Intel SDM; measured: :mod:`tensorcore_models.catalogue.other`).

    Parameters
    ----------
    rounding : str
        Rounding of each FMA.
    flush_inputs, flush_outputs : bool
        Subnormal operands (a, b and c) are taken as zero. Results become zero that, rounded with an unbounded exponent, are
        below the smallest normal number (x86: tininess is detected after rounding). The sign is kept.
    pair_order : {"ascending", "odd_first"}
        "odd_first": of each pair of products the one with odd k comes first (VDPBF16PS).
    saturate : bool
        Overflow gives the largest finite number, and NaN results are zero (Ascend 910A).
    """

    rounding: str = "rne"
    flush_inputs: bool = False
    flush_outputs: bool = False
    pair_order: Literal["ascending", "odd_first"] = "ascending"
    saturate: bool = False
    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    reference: ClassVar = "sequential_fma"
    edge_rules: ClassVar = X86_RULES

    def _check(self):
        check_deterministic(self, "rounding")

    @property
    def terms_per_step(self) -> int:
        return 2 if self.pair_order == "odd_first" else 1


@dataclass(frozen=True)
class LanedFMA(Accumulator):
    """x86 AMX TDPBF16PS and TDPFP16PS: `lanes` interleaved FMA chains from zero, then their sum, then c (Intel SDM).

    Lane l takes k = l, l + lanes, ...; the lanes are added in order, the total is added to c last; every step is an FP32
    operation rounded to nearest even, its result flushed as by SequentialFMA's `flush_outputs`; a subnormal c is zero.

    Parameters
    ----------
    lanes : int
        2.
    terms : int
        Products in one instruction.
    flush_inputs : bool
        Subnormal operands are taken as zero (bf16); fp16 operands are widened exactly.
    """

    lanes: int = 2
    terms: int = 32
    flush_inputs: bool = True
    nan: NanRule = dataclasses.field(default="x86", kw_only=True)

    reference: ClassVar = "laned_fma"
    edge_rules: ClassVar = X86_RULES

    def _check(self):
        require(
            1 <= self.lanes <= self.terms <= MAX_TERMS and self.terms % self.lanes == 0,
            self,
            f"terms {self.terms} must be at most {MAX_TERMS} and a multiple of lanes {self.lanes}",
        )

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class GroupPairwiseSum(Accumulator):
    """GPS(G): fp16 and bf16 on CDNA2 (xie-mma-sim, section IV-B; zeros: mmasim 2.1.1).

    Products are rounded to FP32; every `group` of them is summed as a binary tree of FP32 additions; the group sums are added
    to c one after the other. All FP32 operations round to nearest even.

    Parameters
    ----------
    group : int
        G, a power of two: 4, or 2 for the bf16 instructions without ``_1k``.
    flush_input : {"format", "fp32", "none"}
        Operands below the smallest normal number of their own format (the paper's text), below 2^-126 (its Algorithm 3), or
        none, become +0, zeros of either sign too. c below 2^-126 becomes +0 unless "none".
    flush_results : bool
        FP32 products and sums below 2^-126 become zero, the sign kept.
    terms : int or None
        Products of one instruction, whose c is flushed; None: `group`.
    """

    group: int = 4
    flush_input: Literal["format", "fp32", "none"] = "format"
    flush_results: bool = True
    terms: int | None = None
    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    reference: ClassVar = "group_pairwise_sum"
    edge_rules: ClassVar = {**Accumulator.edge_rules, "flush_input": ("format", "fp32", "none"), "group": None}

    def _check(self):
        require(
            1 <= self.group <= MAX_TERMS and self.group & (self.group - 1) == 0,
            self,
            f"group {self.group} must be a power of two up to {MAX_TERMS}",
        )
        require(
            self.terms is None or (self.terms >= 1 and self.terms % self.group == 0),
            self,
            f"terms {self.terms} must be a multiple of group {self.group}",
        )

    @property
    def groups_per_instruction(self) -> int:
        """Groups between two flushes of c."""
        return 1 if self.terms is None else self.terms // self.group

    @property
    def terms_per_step(self) -> int:
        return self.group


@dataclass(frozen=True)
class PairRoundOddSum(Accumulator):
    """Arm BFMMLA without the extended mode (Arm Architecture Reference Manual, BFMMLA).

    Each pair of products is summed unfused and added to the accumulator; products, pair sum and accumulation are FP32, rounded
    to odd, subnormal operands and results flushed to zero; overflow gives infinity.
    """

    reference: ClassVar = "pair_round_odd"

    nan: NanRule = dataclasses.field(default="quiet", kw_only=True)

    @property
    def terms_per_step(self) -> int:
        return 2


@dataclass(frozen=True)
class IntegerDotAdd(Accumulator):
    """Exact integer dot product into int32 (PTX ISA, mma.s32; AMD CDNA ISA, V_MFMA_I32; Ascend cube 16x32x16).

    Parameters
    ----------
    saturate : bool
        Clamp the result of each instruction to the int32 range (`.satfinite`) instead of wrapping.
    terms : int
        Products between two clamps.
    """

    reference: ClassVar = "integer"

    saturate: bool = False
    terms: int = 32

    def _check(self):
        require(1 <= self.terms <= 1 << 16, self, f"terms {self.terms} must be 1 to 65536")

    @property
    def terms_per_step(self) -> int:
        return self.terms
