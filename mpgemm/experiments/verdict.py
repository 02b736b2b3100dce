"""States the verdict on SGEMM-cube for one input as data and as sentences: the decision, the reasons, and methods to use.

:mod:`mpgemm.experiments.judging` finds the facts.
"""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ascend.numeric.arguments import DEFAULT_STEP_ORDER
from ascend.numeric.fp16_products import ROW_SCALING_EXPONENT
from mpgemm.exact.conditioning import Conditioning
from mpgemm.experiments.not_finite import NotFinite
from mpgemm.experiments.spread import FEWEST, METHOD, MOST, MeanInterval
from mpgemm.experiments.standing import METRICS, NOISE_BITS, STATUSES, results_for_all, sampling_bits
from tensorcore_models.formats.split_analysis import DEFAULT_SCALE_EXPONENT
from tensorcore_models.results import Result

#: Number of products of a short chain.
SHORT_CHAIN = 256
#: Labels of other FP32 products that are shown besides the baseline, by method.
BASELINES = {"fp32_numpy": "FP32 of NumPy here", "fp32_chain": "FP32 on the cube (910B)", "hf32": "HF32 there"}


@dataclass(frozen=True)
class CubeSetting:
    """`CubeSetting` holds the options of SGEMM-cube that a user chooses."""

    order: str
    scale_exponent: int | str
    row_scaling: bool = False

    def __str__(self) -> str:
        scaled = ", rows and columns scaled" if self.row_scaling else ""
        return f"{self.order} order, s_b = {self.scale_exponent}{scaled}"

    @property
    def preference(self) -> tuple:
        """Return a sort key of settings that puts the paper's setting first."""
        fixed = isinstance(self.scale_exponent, int)
        distance = abs(self.scale_exponent - DEFAULT_SCALE_EXPONENT) if isinstance(self.scale_exponent, int) else 0
        return self.row_scaling, self.order != "termwise", self.order, not fixed, distance


@dataclass(frozen=True)
class Judgement:
    """`Judgement` compares SGEMM-cube in one setting with FP32, for one rounding inside a cube step."""

    setting: CubeSetting
    step_order: str  #: "sequential" rounds after every product, "exact" once per step of 16, "pairwise" in a tree.
    status: str  #: Status of the setting, one of :data:`STATUSES`.
    #: effective_bits, fp32_bits, chain_bits: medians over the seeds of -log2 of `relative_frobenius` of the method, of the FP32
    #: baseline, and of an FP32 product with all of k in one chain (NaN if that was not measured).
    effective_bits: float
    fp32_bits: float
    chain_bits: float
    #: Mean over the seeds of the bits more than FP32 (negative for fewer), for each of :data:`METRICS`.
    differences: Mapping[str, float]
    intervals: Mapping[str, MeanInterval]  #: Intervals of these means; empty if there are too few seeds.
    cause: str  #: Largest cause of the error, one of :data:`mpgemm.bounds.error_parts.CAUSES`.
    sources: Mapping[str, float]  #: Frobenius norms of the causes' parts over that of the largest part.
    lost_results: int  #: Number of results that are lost.
    worst: tuple[int, int] | None  #: Row and column of the worst lost result.
    #: `effective_bits` with the low-low product, measured if its absence is the cause.
    low_low_bits: float | None
    #: `effective_bits` in chains of :data:`SHORT_CHAIN` products, measured if accumulation in longer chains is the cause.
    short_chain_bits: float | None


@dataclass(frozen=True)
class LostOperand:
    """`LostOperand` counts the elements of an operand that no fp16 word can hold, and names the first of them."""

    name: str
    overflow: int
    nonfinite: int
    row: int
    column: int
    value: float


@dataclass(frozen=True, repr=False)
class Verdict(Result):
    """`Verdict` says whether SGEMM-cube is accurate enough for one input, and which setting to use.

    Attributes
    ----------
    group : str
        Name of the input; if there are several seeds, details are given for the first.
    status : str
        "as accurate", "borderline", "undecided", "less accurate" or "lost": the recommended setting compared with FP32, if the
        cube rounds as :func:`ascend.cube_gemm` does by default. If only other roundings were measured, the worst status.
    depends_on_step_order : bool
        Whether the status depends on the step order, which is the rounding of the cube inside a step of 16 products.
    recommended : CubeSetting
        Setting to use.
    same : tuple of CubeSetting
        Other settings that are as good.
    judgements : tuple of Judgement
        Judgements of the best setting without scaling of rows and columns, one for each step order.
    scaled : tuple of Judgement
        Judgements of the setting with rows and columns scaled, one for each step order; empty if it was not measured.
    noise : dict of str to float
        Number of bits by which SGEMM-cube may be behind FP32 and still be as accurate, by metric: the errors of two FP32
        products of one input differ by as much.
    lost_operands : tuple of LostOperand
        Operands with elements that no fp16 word can hold.
    fp32_lost : int
        Number of results that FP32 itself loses, with an error above ``2^-10 |A||B|`` (after an overflow, for example).
    k, results : int
        Length of the sums, and number of elements of one product.
    not_finite : NotFinite
        Numbers of elements of the operands, and therefore of the result, that are not finite.
    zero : bool
        Whether the exact product is 0, so that it has no leading bits to compare.
    seeds : int
        Number of products that were measured.
    drawn : bool
        Whether more products can be drawn, because the matrices come from a distribution.
    beside : dict of str to float
        Accuracy in bits of other products, by label: FP32 of NumPy on this machine, FP32 and HF32 on the cube of an Ascend
        910B.
    condition : Conditioning or None
        Largest condition number of the measured products; None if it was not measured.
    """

    group: str
    status: str
    depends_on_step_order: bool
    recommended: CubeSetting
    same: tuple[CubeSetting, ...]
    judgements: tuple[Judgement, ...]
    scaled: tuple[Judgement, ...]
    noise: Mapping[str, float]
    lost_operands: tuple[LostOperand, ...]
    fp32_lost: int
    k: int
    results: int
    not_finite: NotFinite
    zero: bool
    seeds: int
    drawn: bool
    beside: Mapping[str, float]
    condition: Conditioning | None = None

    @property
    def judged(self) -> tuple[Judgement, ...]:
        """Return the judgements of the recommended setting."""
        return self.scaled if self.recommended.row_scaling else self.judgements

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {**asdict(self), "text": sentences(self)}

    def __repr__(self) -> str:
        return f"<Verdict: {self.status}; {self.recommended}>"

    def to_rows(self) -> list[dict]:
        """Return one row for each judgement."""
        judged = (*self.judgements, *self.scaled)
        return [{**asdict(judgement), "setting": str(judgement.setting)} for judgement in judged]

    def sentences(self) -> list[str]:
        """Return the decision, then one sentence for each fact that qualifies it."""
        return sentences(self)

    def _repr_html_(self) -> str:
        """Return the sentences as HTML; the data frame has the numbers."""
        first, *rest = sentences(self)
        items = "".join(f"<li>{html.escape(line.strip())}</li>" for line in rest)
        return f"<p><b>{html.escape(first)}</b></p><ul>{items}</ul>"


# -- sentences -----------------------------------------------------------------------------------------------------------
STEPS = {
    "sequential": "rounding after every product",
    "exact": "rounding once a step",
    "pairwise": "rounding in a tree inside a step",
}
#: Evidence for each rounding inside a cube step (docs/results.md); nobody has published bits of a cube.
EVIDENCE = {
    "sequential": "as PTO-ISA's ADR-0047 states and cube_gemm computes by default",
    "exact": "which the SGEMM-cube paper's figure 9 fits",
}
HEADLINES = {
    "as accurate": "as accurate as FP32",
    "undecided": "undecided, as there are too few results to tell",
    "borderline": "borderline, about as far behind FP32 as two FP32 products may differ",
    "less accurate": "less accurate than FP32",
    "lost": "results are lost",
}
#: Meaning of each cause of the error, and the help against it.
CAUSE_MEANINGS = {
    "overflow": "elements beyond fp16's largest number, 65504. No s_b helps",
    "range": "elements so small that their fp16 words are subnormal or zero",
    "split": "two fp16 words hold 22 bits of FP32's 24; no s_b changes that, a third word does (multiword:words=3)",
    "dropped term": "the low-low product that is left out; with it {low_low}",
    "accumulation": "the sums over k = {k}, not the split",
}


#: Correct bits of FP32 below which its error is no goal, because not even the leading bit is right.
FEWEST_BITS = 1.0
#: Sentence on a product that is exactly zero.
ZERO_PRODUCT = (
    "The exact product is 0, so there are no leading bits to compare, only errors over |A||B| (componentwise)."
)
#: Range of the largest elements of scaled rows and columns.
SCALED_TO = f"2^{ROW_SCALING_EXPONENT} up to 2^{ROW_SCALING_EXPONENT + 1}"
#: Gain by scaling, in bits, from which it is mentioned if it does not change the decision.
SCALING_BITS = 0.5
#: Condition number of a product, in norm, from which it is mentioned; seven leading bits of |A||B| then cancel in the result.
ILL_CONDITIONED = 100.0


def sentences(verdict: Verdict) -> list[str]:
    """Return the sentences of a verdict, with the decision first."""
    judged = verdict.judged
    lines = [_headline(verdict, judged), *_nothing_to_compare(verdict)]
    lines += [step_sentence(judgement, verdict) for judgement in judged]
    lines += [*_spread(verdict, judged), *_undecided(verdict, judged), *_beside(verdict), *_condition(verdict)]
    lines += [*_causes(verdict), *_lost(verdict), _scaling(verdict)]
    if verdict.fp32_lost:
        lines.append(f"FP32 itself loses {verdict.fp32_lost} of {verdict.results} results.")
    lines.append(_advice(verdict))
    return [lines[0], *(f"  {line}" for line in lines[1:] if line)]


def _headline(verdict: Verdict, judged: Sequence[Judgement]) -> str:
    how = ", with rows and columns scaled" if verdict.recommended.row_scaling else ""
    if verdict.depends_on_step_order:
        default_first = sorted(judged, key=lambda j: j.step_order != DEFAULT_STEP_ORDER)
        parts = [f"{HEADLINES[j.status]} if {STEPS[j.step_order]}" for j in default_first]
        parts = [
            f"{part}, {EVIDENCE[j.step_order]}" if j.step_order in EVIDENCE else part
            for part, j in zip(parts, default_first, strict=True)
        ]
        return f"Verdict: {'; '.join(parts)}{how}."
    if verdict.status == "lost" and verdict.fp32_lost and verdict.fp32_lost >= max(j.lost_results for j in judged):
        return "Verdict: results are lost, in FP32 too, because they or their products leave FP32's range."
    always = ", however the cube rounds inside a step" if len(judged) > 1 else ""
    chain = ""
    if verdict.status in ("borderline", "less accurate") and any(j.short_chain_bits is not None for j in judged):
        enough = all(j.status == "as accurate" or _short_chains_suffice(j, verdict) for j in judged)
        chain = f" in one chain of k = {verdict.k}; {'' if enough else 'not '}as accurate in chains of {SHORT_CHAIN}"
    return f"Verdict: {HEADLINES[verdict.status]}{how}{always}{chain}."


def spelled_bits(bits: float) -> str:
    """Return a number of correct bits in words: "21.8 bits", "every bit", "no bits"."""
    if bits == math.inf:
        return "every bit"
    return f"{bits:.1f} bits" if bits >= 0.05 else "no bits"


def _fp32_bits(bits: float) -> str:
    """Return correct bits of FP32 in words (:func:`spelled_bits`), "24 bits or more" for a correctly rounded result."""
    return "24 bits or more" if 24 <= bits < math.inf else spelled_bits(bits)


def _nothing_to_compare(verdict: Verdict) -> list[str]:
    """Return a sentence if no bits of the product can be given, or if FP32 has few, too."""
    if verdict.not_finite.results:
        return [f"{verdict.not_finite} Bits are not given."]
    if verdict.zero:
        return [ZERO_PRODUCT]
    if verdict.judgements[0].fp32_bits < FEWEST_BITS and not verdict.fp32_lost:
        return ["The results cancel, so FP32 itself has not one correct bit of the product. Use FP64 where it matters."]
    return []


def step_sentence(judgement: Judgement, verdict: Verdict) -> str:
    """Return a sentence that compares SGEMM-cube with FP32, for one rounding inside a step."""
    how = STEPS[judgement.step_order]
    if verdict.not_finite.results:
        return f"{how}: {judgement.lost_results} of {verdict.results} results are lost"
    if verdict.zero:
        exact = [
            "exact" if bits == math.inf else "not exact" for bits in (judgement.effective_bits, judgement.fp32_bits)
        ]
        return f"{how}: {exact[0]}, FP32 {exact[1]}"
    norm, element = (judgement.differences[metric] for metric in METRICS)
    if math.isinf(norm):
        found = "nothing is left" if norm < 0 else "FP32 leaves its range"
    else:
        found = f"{abs(norm):.1f} bits {'more' if norm > 0 else 'less'}"
        if max(judgement.effective_bits, judgement.fp32_bits) < FEWEST_BITS:
            found = f"an error {2 ** abs(norm):.1f} times {'smaller' if norm > 0 else 'larger'}"
        found = _weighed(found, judgement)
    if element < -verdict.noise["componentwise"] and norm >= -verdict.noise["relative_frobenius"]:
        found += f", but single results are {abs(element):.1f} bits worse (componentwise)"
    if judgement.status == "borderline":
        found += f"; {_margin(judgement, verdict)}"
    bits = f"{_fp32_bits(judgement.effective_bits)}, FP32 {_fp32_bits(judgement.fp32_bits)}"
    return f"{how}: {bits}: {found}"


def _weighed(found: str, judgement: Judgement) -> str:
    """Return the difference in the norm with its weight in words; only an interval can show that there is no difference."""
    difference, interval = judgement.differences[METRICS[0]], judgement.intervals.get(METRICS[0])
    noise = NOISE_BITS[METRICS[0]]
    if interval is None:
        return (
            f"{found} (within {noise:.2f})" if abs(difference) <= noise and judgement.status != "undecided" else found
        )
    if interval.beside(0.0):
        small = "a small, certain difference: " if abs(difference) <= noise else ""
        return f"{small}{found} ({interval})"
    within = -noise <= interval.low and interval.high <= noise
    return f"{'no difference' if within else 'undecided'} ({interval})"


def _margin(judgement: Judgement, verdict: Verdict) -> str:
    """Return the distance of a borderline difference from the threshold, in words."""
    metric = min(METRICS, key=lambda m: judgement.differences[m] + verdict.noise[m])
    margin, noise = judgement.differences[metric] + verdict.noise[metric], verdict.noise[metric]
    what = " of the largest result" if metric == "componentwise" else ""
    return f"{abs(margin):.2f} bits {'within' if margin >= 0 else 'beyond'} the threshold of {noise:.2f}{what}"


def _spread(verdict: Verdict, judged: Sequence[Judgement]) -> list[str]:
    """Return sentences on the spread of the seeds, and on the number of seeds that would decide."""
    intervals = [j.intervals for j in judged if j.intervals]
    if not intervals:
        few = verdict.drawn and any(j.status == "borderline" for j in judged)
        seeds = "1 seed gives" if verdict.seeds == 1 else f"{verdict.seeds} seeds give"
        return [f"{seeds} no interval; --repeats {FEWEST} or more show how certain the verdict is."] if few else []
    lines = [f"In brackets: {METHOD} ({verdict.seeds}), of the paired differences in bits; negative: less than FP32."]
    needed = [
        found[m].seeds_to_decide(-verdict.noise[m]) for found in intervals for m in METRICS if m in found
        if not found[m].beside(-verdict.noise[m])
    ]  # fmt: skip
    if needed:
        most = None if None in needed else max(n for n in needed if n is not None)
        lines.append(
            f"The interval contains the threshold; more than {MOST} seeds would be needed to decide."
            if most is None
            else f"The interval contains the threshold; about {most} seeds would decide (--repeats {most})."
        )
    return lines


def _undecided(verdict: Verdict, judged: Sequence[Judgement]) -> list[str]:
    """Return a sentence on the number of results that would decide, if there are too few."""
    open_ones = [j for j in judged if j.status == "undecided"]
    if not open_ones:
        return []
    found = [results_for_all(j.differences) for j in open_ones]
    measured = verdict.results * verdict.seeds
    counted = f"{measured} result{'s' * (measured != 1)}"
    chance = f"With {counted}, differences of up to {sampling_bits(measured):.1f} bits may be chance"
    more = "larger m or n, or --repeats" if verdict.drawn else "more rows of A or columns of B"
    known = None if None in found else max(n for n in found if n is not None)
    if known is None or measured >= known:
        return [f"{chance}; many more results would decide ({more})."]
    return [f"{chance}; about {known} results would decide ({more})."]


def _condition(verdict: Verdict) -> list[str]:
    """Return a sentence on the condition of an ill-conditioned product, and on the bits that FP32 itself reaches."""
    condition = verdict.condition
    if condition is None or verdict.zero or verdict.not_finite.results or not condition.norm >= ILL_CONDITIONED:
        return []
    return [f"{condition.sentence()} FP32 itself reaches {_fp32_bits(verdict.judgements[0].fp32_bits)} of it."]


def _beside(verdict: Verdict) -> list[str]:
    """Return a sentence with the bits of other FP32 products."""
    if verdict.not_finite.results or verdict.zero or not verdict.beside:
        return []
    return [f"Beside it: {', '.join(f'{label} {_fp32_bits(bits)}' for label, bits in verdict.beside.items())}."]


def _causes(verdict: Verdict) -> list[str]:
    """Return sentences on the causes of the error without scaling, and on FP32 in one chain if the chain's length
    explains it."""
    lines = []
    for cause in dict.fromkeys(j.cause for j in verdict.judgements if j.cause):
        steps = [j for j in verdict.judgements if j.cause == cause]
        where = "" if len(steps) == len(verdict.judgements) else f" ({STEPS[steps[0].step_order]})"
        why = f"Without scaling ({verdict.judgements[0].setting})" if verdict.recommended.row_scaling else "Why"
        bits = f" {_fp32_bits(steps[0].effective_bits)};" if verdict.recommended.row_scaling else ""
        low_low = "" if steps[0].low_low_bits is None else _fp32_bits(steps[0].low_low_bits)
        lines.append(f"{why}{where}:{bits} {cause}: {CAUSE_MEANINGS[cause].format(k=verdict.k, low_low=low_low)}.")
        short = steps[0].short_chain_bits
        if short is not None:
            lines.append(
                f"Chains of {SHORT_CHAIN} products (bk * N_fused = {SHORT_CHAIN}; mpgemm plan --pareto) have "
                f"{_fp32_bits(short)}."
            )
        chain = steps[0].chain_bits
        if cause == "accumulation" and abs(chain - steps[0].effective_bits) <= verdict.noise["relative_frobenius"]:
            lines.append(
                f"FP32 with all of k in one chain has {_fp32_bits(chain)}, too: FP32 here is in chains of {SHORT_CHAIN}."
            )
    return lines


def _lost(verdict: Verdict) -> list[str]:
    lines = []
    worst = max(verdict.judgements, key=lambda judgement: judgement.lost_results)
    for operand in verdict.lost_operands:
        counts = ((operand.overflow, "beyond 65504"), (operand.nonfinite, "infinite or NaN"))
        what = " and ".join(f"{count} {text}" for count, text in counts if count)
        first = f"{operand.name}[{operand.row}, {operand.column}] = {operand.value:g}"
        kind = (
            f"Lost elements of {operand.name}" if worst.worst else f"Elements of {operand.name} beyond their first word"
        )
        lines.append(f"{kind}: {what}, the first {first}.")
    if worst.worst is not None:
        i, j = worst.worst
        unscaled = " without scaling" if verdict.recommended.row_scaling else ""
        lines.append(f"Lost results{unscaled}: {worst.lost_results} of {verdict.results}, the worst C[{i}, {j}].")
    return lines


def _scaling(verdict: Verdict) -> str:
    if not verdict.scaled or verdict.recommended.row_scaling:
        return ""
    if verdict.status == "lost" and any(operand.nonfinite for operand in verdict.lost_operands):
        return "Scaling rows and columns does not help, because the 910A's conversion turns infinities and NaNs into numbers."
    name = "Scaling rows and columns by powers of two (sgemm_cube_scaled)"
    before = {judgement.step_order: judgement for judgement in verdict.judgements}
    gains = [
        after for after in verdict.scaled if after.step_order in before and _gains(before[after.step_order], after)
    ]
    if not gains or all(judgement.status == "as accurate" for judgement in verdict.judgements):
        return f"{name} gains nothing."
    if len(verdict.scaled) == 1:
        return f"{name} is not enough: {_fp32_bits(verdict.scaled[0].effective_bits)}."
    bits = "; ".join(
        f"{_fp32_bits(j.effective_bits)} with {STEPS[j.step_order]} ({HEADLINES[j.status].partition(',')[0]})"
        for j in verdict.scaled
    )
    return f"{name} is not enough: {bits}."


def _gains(before: Judgement, after: Judgement) -> bool:
    """Return whether scaling gains enough bits to be mentioned, or a better status."""
    better = STATUSES.index(after.status) < STATUSES.index(before.status)
    return better or after.effective_bits - before.effective_bits > SCALING_BITS


def _advice(verdict: Verdict) -> str:
    if verdict.status == "lost" and not verdict.depends_on_step_order:
        if verdict.not_finite.results:
            return "Replace infinities and NaNs first; FP32 keeps them."
        return "Scale A or B first, or use FP64." if verdict.fp32_lost else "Use FP32 here."
    same = _same(verdict.recommended, verdict.same)
    name = " (method sgemm_cube_scaled)" if verdict.recommended.row_scaling else ""
    use = f"Use {verdict.recommended}{name}{f'; {same} the same' if same else ''}"
    if verdict.recommended.row_scaling:
        use += f". Scaled: each row of A and column of B by the power of two that brings its largest element to {SCALED_TO}"
    if all(
        j.status == "as accurate" for j in (verdict.scaled if verdict.recommended.row_scaling else verdict.judgements)
    ):
        return f"{use}."
    enough = all(j.status == "as accurate" or _short_chains_suffice(j, verdict) for j in verdict.judgements)
    other = f"Chains of {SHORT_CHAIN} products" if enough and not verdict.recommended.row_scaling else "FP32"
    return f"{use}. {other} where those bits matter."


def _short_chains_suffice(judgement: Judgement, verdict: Verdict) -> bool:
    """Return whether a less accurate method reaches FP32's relative error in short chains."""
    short = judgement.short_chain_bits
    return short is not None and short >= judgement.fp32_bits - verdict.noise["relative_frobenius"]


def _same(setting: CubeSetting, others: Sequence[CubeSetting]) -> str:
    """Return the other settings with the same result in words: s_b in the same order, or other orders."""
    scales = sorted((str(o.scale_exponent) for o in others if o.order == setting.order), key=lambda s: (len(s), s))
    names = [f"s_b = {', '.join(scales)}"] if scales else []
    names += [f"{order} order" for order in dict.fromkeys(o.order for o in others if o.order != setting.order)]
    plural = len(scales) + len(names) - bool(scales) != 1
    return f"{' and '.join(names)} give{'s' * (not plural)}" if names else ""
