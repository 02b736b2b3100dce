"""Accumulator algorithms: what a matrix unit does with the products of one output element.

Each class is a frozen, self-validating specification of one algorithm family; an instruction or a custom engine is such a
specification together with operand formats. They hold no code: :mod:`tensorcore_models.reference` states each algorithm in
exact integers, the compiled kernels repeat it fast.

Notation, as in the papers: one output element is ``d = c + sum_k a_k b_k``; *terms* (N) products are added in one fused
operation, addends are aligned to the largest exponent and kept to *fraction_bits* (F) bits below it. An operand's exponent
is the one of its encoding, so that a subnormal number has the exponent of the smallest normal one, and a product's
exponent is the sum of its operands' (it is not normalised).

A K longer than one fused operation is a chain: the rounded result of one operation is the c of the next (xie-mma-sim,
section IV-D). That holds within an instruction (CoFDA, CoFDRDA, CoGFDRDA) and from one instruction to the next.

Edge rules, where published models disagree (the names are fields; `Accumulator.edge_rules` lists a class's own):

zero_operand
    Exponent of a zero operand, which a product passes on to the alignment although it adds nothing. ``"minus126"``: -126
    whatever its format (MMA-Sim's published code); ``"format_minimum"``: the smallest normal exponent of its format (a
    literal reading of xie-mma-sim, section IV-C); ``"skip"``: products that are zero take no part in the alignment
    (MATLAB-tensor-core).
zero_c
    The same for c = 0: ``"minus126"``, ``"format_minimum"`` or ``"skip"``.
subnormal_c
    ``"raw"``: a subnormal c has its format's smallest normal exponent; ``"normalised"``: the exponent of its leading bit.
negative_underflow
    Sign of the result when a negative sum rounds to zero: ``"positive"`` (MMA-Sim's code, valpey-smt: -0 is never output)
    or ``"negative"`` (MATLAB-tensor-core).
nan
    NaN results: ``"all_ones"`` (0x7fffffff, 0x7fff: NVIDIA's canonical NaN) or ``"quiet"`` (most significant fraction bit).
tf32_nan
    tf32 operand whose payload stands in the 13 ignored bits only: ``"truncated"`` (it becomes infinity) or ``"kept"`` (NaN).
"""

import dataclasses
from dataclasses import dataclass
from typing import ClassVar, Literal

from .exact_rounding import check_rounding

ZeroExponent = Literal["minus126", "format_minimum", "skip"]
MAX_TERMS = 1024
MAX_FRACTION_BITS = 120


def _require(condition: bool, spec: object, message: str) -> None:
    if not condition:
        raise ValueError(f"{type(spec).__name__}: {message}")


def _check_deterministic(spec: object, name: str) -> None:
    _require(check_rounding(getattr(spec, name)) != "sr", spec, f"{name} cannot be stochastic")


@dataclass(frozen=True, kw_only=True)
class Accumulator:
    """What all accumulator specifications share: the edge rules for specials.

    Parameters
    ----------
    nan : {"all_ones", "quiet"}
        Encoding of NaN results.
    tf32_nan : {"truncated", "kept"}
        What a tf32 operand is whose NaN payload stands in the ignored low bits only.
    """

    nan: Literal["all_ones", "quiet"] = "all_ones"
    tf32_nan: Literal["truncated", "kept"] = "truncated"

    #: Allowed values of the named edge rules; None where any value that the class validates will do.
    edge_rules: ClassVar[dict[str, tuple[str, ...] | None]] = {
        "nan": ("all_ones", "quiet"),
        "tf32_nan": ("truncated", "kept"),
    }

    def __post_init__(self):
        for rule, allowed in self.edge_rules.items():
            value = getattr(self, rule)
            if allowed is not None and value not in allowed:
                raise ValueError(
                    f"{type(self).__name__}: {rule} is {value!r}, expected one of {', '.join(map(repr, allowed))}"
                )
        self._check()

    def _check(self) -> None:
        """Hook for the checks of a class's own fields."""

    @property
    def terms_per_step(self) -> int:
        """Products that one pass of the algorithm takes; K is cut into chained passes of this length."""
        return 1

    def with_rules(self, **rules):
        """A copy with other edge rules.

        Raises
        ------
        ValueError
            If a name is not an edge rule of this class (the message lists them) or a value is not allowed.
        """
        unknown = sorted(set(rules) - set(self.edge_rules))
        if unknown:
            raise ValueError(
                f"{type(self).__name__} has no edge rule {', '.join(map(repr, unknown))}; it has {', '.join(self.edge_rules)}"
            )
        return dataclasses.replace(self, **rules)


_ALIGNMENT_RULES: dict[str, tuple[str, ...] | None] = {
    **Accumulator.edge_rules,
    "zero_operand": ("minus126", "format_minimum", "skip"),
    "zero_c": ("minus126", "format_minimum", "skip"),
    "subnormal_c": ("raw", "normalised"),
    "negative_underflow": ("positive", "negative"),
    "exponent_floor": None,
}


@dataclass(frozen=True, kw_only=True)
class _AlignedSum(Accumulator):
    """Fields of every algorithm that aligns addends to a largest exponent."""

    zero_operand: ZeroExponent = "minus126"
    zero_c: ZeroExponent = "minus126"
    subnormal_c: Literal["raw", "normalised"] = "raw"
    negative_underflow: Literal["positive", "negative"] = "positive"
    #: The alignment exponent never goes below this, None for no floor (MATLAB-tensor-core: -133 for F = 25 and fp32 output).
    exponent_floor: int | None = None

    edge_rules: ClassVar = _ALIGNMENT_RULES


@dataclass(frozen=True)
class FusedDotAdd(_AlignedSum):
    """FDA(F, N): NVIDIA tensor cores (xie-mma-sim, section IV-C; khattak-mikaitis, section IV).

    1. NaN if any operand is NaN, a product is 0 * inf, or infinities of both signs meet among products and c; else the
       infinity there is.
    2. Products are exact and not normalised: significand product, exponent sum (plus the exponents of the block scales).
    3. All products and c are shifted to the largest exponent and kept to `fraction_bits` fraction bits, rounded by
       `alignment_rounding`.
    4. They are summed exactly.
    5. The sum is normalised and rounded by `output_rounding` to the output format (to `output_fraction_bits` fraction bits
       where these are fewer); beyond the largest finite number it is infinity in every rounding mode.

    Chains of it are xie's CoFDA.

    Parameters
    ----------
    terms : int
        N, products in one fused operation (c comes on top).
    fraction_bits : int
        F, fraction bits kept below the largest exponent.
    output_rounding : str
        Rounding to the output format: rz for fp32, rne for fp16 on all published tensor cores.
    output_fraction_bits : int or None
        Fraction bits of the result if fewer than the format's: 13 for fp8 on Ada and Hopper.
    alignment_rounding : str
        Rounding at the alignment; rz on all published tensor cores.
    normalised_products : bool
        Align products to the exponent of their leading bit instead. No published unit does (khattak-mikaitis, IV-A1).
    scaled_zero : {"keeps_scale", "skip"}
        Edge rule: whether a zero product of a block-scaled instruction keeps the exponents of its scales.
    """

    terms: int = 16
    fraction_bits: int = 25
    output_rounding: str = "rz"
    output_fraction_bits: int | None = None
    alignment_rounding: str = "rz"
    normalised_products: bool = False
    scaled_zero: Literal["keeps_scale", "skip"] = "keeps_scale"

    edge_rules: ClassVar = {**_ALIGNMENT_RULES, "scaled_zero": ("keeps_scale", "skip"), "terms": None}

    def _check(self):
        _require(1 <= self.terms <= MAX_TERMS, self, f"terms {self.terms} must be 1 to {MAX_TERMS}")
        _require(
            1 <= self.fraction_bits <= MAX_FRACTION_BITS,
            self,
            f"fraction_bits {self.fraction_bits} must be 1 to {MAX_FRACTION_BITS}",
        )
        for name in ("alignment_rounding", "output_rounding"):
            _check_deterministic(self, name)

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class InterleavedDotAdd(Accumulator):
    """fp8 `mma.sync` of Hopper and Blackwell: fp8 to fp16 conversion, chained FDAs over interleaved k, c added last.

    With groups G_j = {k : (k // run) mod groups = j} in the order given by `group_order`:
    ``s = FDA(0, G_0); s = FDA(s, G_1); ...; d = RNE(s + c)``, every step rounded to the output format
    (khattak-mikaitis, section IV; pinned for fp16 output by the published H100, H200 and B200 vectors).

    Parameters
    ----------
    dot : FusedDotAdd
        The fused operation of one group.
    run : int
        Consecutive k that belong to the same group.
    groups : int
        Number of groups in a step.
    group_order : tuple of int
        Order in which the groups are chained.
    via_format : str
        Format to which operands are converted (exactly) first; it fixes the exponents of subnormal operands.
    final_rounding : str
        Rounding of the last addition.
    """

    dot: FusedDotAdd = FusedDotAdd()
    run: int = 2
    groups: int = 2
    group_order: tuple[int, ...] = (0, 1)
    via_format: str = "fp16"
    final_rounding: str = "rne"

    edge_rules: ClassVar = {**Accumulator.edge_rules, "group_order": None}

    def _check(self):
        _require(self.run >= 1 and self.groups >= 1, self, f"run {self.run} and groups {self.groups} must be at least 1")
        _require(
            sorted(self.group_order) == list(range(self.groups)),
            self,
            f"group_order {self.group_order} must order the groups 0 to {self.groups - 1}",
        )
        _check_deterministic(self, "final_rounding")

    @property
    def terms_per_step(self) -> int:
        return self.dot.terms * self.groups


@dataclass(frozen=True)
class GroupDotFusedSum(_AlignedSum):
    """GDFS: mxfp4 and nvfp4 on Blackwell (xie-mma-sim, section IV-E).

    Products are summed exactly in groups of `group`; each group sum is multiplied by its two block scales (significand by
    significand, exponents added); the scaled sums and c are aligned to the largest exponent, kept to `fraction_bits` bits
    (RZ), summed and rounded. The exponent of a group is the sum of its scales' exponents only.

    Parameters
    ----------
    group : int
        Products in one exact group sum (16, whatever the block size).
    terms : int
        Products in one fused operation.
    fraction_bits, output_rounding
        As in :class:`FusedDotAdd`; 35 and rz.
    scaled_zero : {"keeps_scale", "skip"}
        Edge rule: whether a group whose sum is zero takes part in the alignment with its scales' exponents.
    """

    group: int = 16
    terms: int = 64
    fraction_bits: int = 35
    output_rounding: str = "rz"
    scaled_zero: Literal["keeps_scale", "skip"] = "keeps_scale"

    edge_rules: ClassVar = {**_ALIGNMENT_RULES, "scaled_zero": ("keeps_scale", "skip")}

    def _check(self):
        _require(
            self.group >= 1 and self.terms % self.group == 0,
            self,
            f"terms {self.terms} must be a multiple of group {self.group}",
        )
        _require(1 <= self.fraction_bits <= MAX_FRACTION_BITS, self, f"fraction_bits {self.fraction_bits} out of range")
        _check_deterministic(self, "output_rounding")

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class FusedDotRoundDownAdd(_AlignedSum):
    """FDRDA(N): tf32, fp16 and bf16 on CDNA3 (xie-mma-sim, section IV-F).

    1. Specials as in :class:`FusedDotAdd`, c included. 2. Products exact and not normalised; at or beyond
    ``2**product_overflow_exponent`` they become infinite, which is looked at again without c. 3. Products alone are aligned to
    their largest exponent (`fraction_bits`, RZ) and summed. 4. That dot product (to `dot_fraction_bits`) and c (to
    `c_fraction_bits`) are aligned to their common largest exponent, both rounded *down*. 5. The sum is rounded to nearest even.

    Parameters
    ----------
    terms : int
        N: 4 (tf32), 8 (fp16, bf16), 16 (fp8).
    fraction_bits, dot_fraction_bits, c_fraction_bits : int
        24, 31, 24 on CDNA3.
    product_overflow_exponent : int or None
        128: products at or beyond 2^128 are infinite.
    add_rounding : str
        Rounding of dot and c at their alignment: rd; rz is the hypothetical unit of xie's fig. 2.
    output_rounding : str
        rne.
    c_inf_with_overflow : {"c", "nan"}
        Edge rule: c is an infinity and a finite product overflows to the other one.
    """

    terms: int = 8
    fraction_bits: int = 24
    dot_fraction_bits: int = 31
    c_fraction_bits: int = 24
    product_overflow_exponent: int | None = 128
    add_rounding: str = "rd"
    output_rounding: str = "rne"
    nan: Literal["all_ones", "quiet"] = dataclasses.field(default="quiet", kw_only=True)
    negative_underflow: Literal["positive", "negative"] = dataclasses.field(default="negative", kw_only=True)
    c_inf_with_overflow: Literal["c", "nan"] = "c"

    edge_rules: ClassVar = {**_ALIGNMENT_RULES, "c_inf_with_overflow": ("c", "nan")}

    @property
    def parity_groups(self) -> int:
        """Interleaved groups of products that are aligned and summed apart."""
        return 1

    @property
    def c_cutoff(self) -> int | None:
        """c is rounded to zero, not down, when its exponent is more than this below the largest; None: never."""
        return None

    def _check(self):
        _require(
            1 <= self.terms <= MAX_TERMS and self.terms % self.parity_groups == 0,
            self,
            f"terms {self.terms} must be 1 to {MAX_TERMS} and a multiple of {self.parity_groups}",
        )
        for name in ("fraction_bits", "dot_fraction_bits", "c_fraction_bits"):
            _require(1 <= getattr(self, name) <= 60, self, f"{name} {getattr(self, name)} must be 1 to 60")
        for name in ("add_rounding", "output_rounding"):
            _check_deterministic(self, name)

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class GroupFusedDotRoundDownAdd(FusedDotRoundDownAdd):
    """GFDRDA(N): fp8 on CDNA3 (xie-mma-sim, section IV-H).

    As :class:`FusedDotRoundDownAdd`, but products of even and of odd k are aligned (RZ) and summed apart; the two sums are
    aligned with each other to `fraction_bits`, rounded *down*, before c joins; and c is rounded to zero instead of down when
    its exponent is more than `c_zero_below` under the largest.

    Parameters
    ----------
    c_zero_below : int
        25 on CDNA3.
    """

    terms: int = 16
    c_zero_below: int = 25

    @property
    def parity_groups(self) -> int:
        return 2

    @property
    def c_cutoff(self) -> int | None:
        return self.c_zero_below


@dataclass(frozen=True)
class SequentialFMA(Accumulator):
    """SFMA: a chain of IEEE fused multiply-adds in the output format, k ascending (xie-mma-sim, section IV-A).

    FP64 tensor cores, FP64 and FP32 matrix cores; with `flush_inputs` and `flush_outputs` x86 VDPBF16PS (Intel SDM).

    Parameters
    ----------
    rounding : str
        Rounding of each FMA.
    flush_inputs, flush_outputs : bool
        Subnormal operands (a, b and c) are taken as zero; subnormal results become zero. The sign is kept.
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
    nan: Literal["all_ones", "quiet"] = dataclasses.field(default="quiet", kw_only=True)

    def _check(self):
        _check_deterministic(self, "rounding")
        _require(self.pair_order in ("ascending", "odd_first"), self, f"pair_order {self.pair_order!r}")

    @property
    def terms_per_step(self) -> int:
        return 2 if self.pair_order == "odd_first" else 1


@dataclass(frozen=True)
class LanedFMA(Accumulator):
    """x86 AMX TDPBF16PS and TDPFP16PS: `lanes` interleaved FMA chains from zero, then their sum, then c (Intel SDM).

    Lane l takes k = l, l + lanes, ...; the lanes are added in order, the total is added to c last; every step is an FP32
    operation rounded to nearest even with subnormal results flushed.

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
    nan: Literal["all_ones", "quiet"] = dataclasses.field(default="quiet", kw_only=True)

    def _check(self):
        _require(
            self.lanes >= 1 and self.terms % self.lanes == 0,
            self,
            f"terms {self.terms} must be a multiple of lanes {self.lanes}",
        )

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class GroupPairwiseSum(Accumulator):
    """GPS(G): fp16 and bf16 on CDNA2, without flushing on CDNA1 (xie-mma-sim, section IV-B).

    Products are rounded to FP32; every `group` of them is summed as a binary tree of FP32 additions; the group sums are added
    to c one after the other. All FP32 operations round to nearest even.

    Parameters
    ----------
    group : int
        G, a power of two: 4, or 2 for the bf16 instructions without ``_1k``.
    flush_input : {"format", "fp32", "none"}
        Operands below the smallest normal number of their own format (the paper's text), below 2^-126 (its Algorithm 3), or
        none, become +0. c below 2^-126 becomes +0 unless "none".
    flush_results : bool
        FP32 products and sums below 2^-126 become zero, the sign kept.
    """

    group: int = 4
    flush_input: Literal["format", "fp32", "none"] = "format"
    flush_results: bool = True
    nan: Literal["all_ones", "quiet"] = dataclasses.field(default="quiet", kw_only=True)

    edge_rules: ClassVar = {**Accumulator.edge_rules, "flush_input": ("format", "fp32", "none"), "group": None}

    def _check(self):
        _require(
            self.group >= 1 and self.group & (self.group - 1) == 0, self, f"group {self.group} must be a power of two"
        )

    @property
    def terms_per_step(self) -> int:
        return self.group


@dataclass(frozen=True)
class PairRoundOddSum(Accumulator):
    """Arm BFMMLA without the extended mode (Arm Architecture Reference Manual, BFMMLA).

    Each pair of products is summed unfused and added to the accumulator; products, pair sum and accumulation are FP32, rounded
    to odd, subnormal operands and results flushed to zero; overflow gives infinity.
    """

    nan: Literal["all_ones", "quiet"] = dataclasses.field(default="quiet", kw_only=True)

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

    saturate: bool = False
    terms: int = 32

    def _check(self):
        _require(1 <= self.terms <= 1 << 16, self, f"terms {self.terms} must be 1 to 65536")

    @property
    def terms_per_step(self) -> int:
        return self.terms


@dataclass(frozen=True)
class ParametricDotAdd(_AlignedSum):
    """A matrix unit put together from parameters, for units that do not exist (yet).

    Every published fused algorithm is a point of this space (:func:`as_parametric`); see :class:`FusedDotAdd` for the steps.

    Parameters
    ----------
    terms : int
        Products in one operation.
    fraction_bits : int or None
        Fraction bits kept below the largest exponent; None: nothing is cut off (exact accumulation, Kulisch). An output
        precision of P with n extra alignment bits is ``P - 1 + n``; n may be negative.
    alignment_rounding : str
        Rounding of each addend at its alignment.
    sticky : bool
        One more bit is kept below the fraction bits, the logical OR of all that was cut off (only with rz).
    normalised_products : bool
        Products are aligned by the exponent of their leading bit.
    c_position : {"early", "late"}
        c takes part in the fused sum, or is added to the rounded dot product by an IEEE addition (`late_rounding`).
    alignment : {"global", "pairwise", "odd_even"}
        One alignment for all addends; a binary tree of two-operand alignments; or even and odd k apart and then with each
        other (c joins the last step).
    integer_bits : int or None
        Width of the sum's integer part, two's complement, sign apart (2 hold an unnormalised product); beyond it the sum wraps
        (fasi, section 3.1.4: carry bits are the integer bits after the first). None: wide enough.
    normalise_each_add : bool
        Addends are added one by one (c first if early), each intermediate sum normalised to `fraction_bits` bits.
    output_rounding, output_fraction_bits
        As in :class:`FusedDotAdd`.
    late_rounding : str
        Rounding of a late addition of c.
    product_overflow_exponent : int or None
        Products at or beyond 2 to this power are infinite.
    flush_inputs, flush_outputs : bool
        Subnormal operands and c are taken as zero; subnormal results become zero. The sign is kept.
    """

    terms: int = 16
    fraction_bits: int | None = 25
    alignment_rounding: str = "rz"
    sticky: bool = False
    normalised_products: bool = False
    c_position: Literal["early", "late"] = "early"
    alignment: Literal["global", "pairwise", "odd_even"] = "global"
    integer_bits: int | None = None
    normalise_each_add: bool = False
    output_rounding: str = "rz"
    output_fraction_bits: int | None = None
    late_rounding: str = "rne"
    product_overflow_exponent: int | None = None
    flush_inputs: bool = False
    flush_outputs: bool = False
    scaled_zero: Literal["keeps_scale", "skip"] = "keeps_scale"

    edge_rules: ClassVar = {**_ALIGNMENT_RULES, "scaled_zero": ("keeps_scale", "skip")}

    def _check(self):
        _require(1 <= self.terms <= MAX_TERMS, self, f"terms {self.terms} must be 1 to {MAX_TERMS}")
        for name in ("alignment_rounding", "output_rounding", "late_rounding"):
            _check_deterministic(self, name)
        _require(self.c_position in ("early", "late"), self, f"c_position {self.c_position!r} must be 'early' or 'late'")
        _require(
            self.alignment in ("global", "pairwise", "odd_even"),
            self,
            f"alignment {self.alignment!r} must be 'global', 'pairwise' or 'odd_even'",
        )
        _require(not self.sticky or self.alignment_rounding == "rz", self, "sticky needs alignment_rounding 'rz'")
        if self.fraction_bits is None:
            _require(
                not self.sticky and self.integer_bits is None and not self.normalise_each_add,
                self,
                "exact accumulation (fraction_bits None) has neither sticky bit, integer_bits nor normalise_each_add",
            )
        else:
            _require(
                1 <= self.fraction_bits <= MAX_FRACTION_BITS,
                self,
                f"fraction_bits {self.fraction_bits} must be 1 to {MAX_FRACTION_BITS} or None",
            )
        _require(
            not (self.normalise_each_add and self.alignment != "global"), self, "normalise_each_add is a sequential sum"
        )
        _require(
            self.integer_bits is None or 2 <= self.integer_bits <= 60,
            self,
            f"integer_bits {self.integer_bits} must be 2 to 60, or None",
        )

    @property
    def terms_per_step(self) -> int:
        return self.terms


def as_parametric(spec: Accumulator) -> ParametricDotAdd:
    """The point of the parametric space that computes what `spec` does.

    Raises
    ------
    TypeError
        If `spec` is not a fused algorithm with one alignment (FusedDotAdd or ParametricDotAdd).
    """
    if isinstance(spec, ParametricDotAdd):
        return spec
    if not isinstance(spec, FusedDotAdd):
        raise TypeError(f"{type(spec).__name__} is not a point of the parametric space; FusedDotAdd is")
    shared = {field.name for field in dataclasses.fields(FusedDotAdd)}
    return ParametricDotAdd(**{name: getattr(spec, name) for name in shared})
