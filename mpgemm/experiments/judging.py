"""Decides whether SGEMM-cube is accurate enough for an input, by its measured errors and those of FP32 on the same data.

Both errors are against the exact product. Two metrics are compared, in bits: the relative error in the Frobenius norm (eq. 13),
and the largest ``|dC_ij| / (|A||B|)_ij``, which shows errors of single elements and of rows that are smaller than others.

The floor of both metrics is 2^-24, the error that a correctly rounded FP32 result may have. Above it, two FP32 products of
the same data differ, too. Halving the length of the chains in which k is summed, which a BLAS is free to choose, changes the
error by sqrt(2), half a bit. Random orders of k through one BLAS spread the error in norm by 0.1 to 0.4 bits on uniform,
normal and digits' data and by 0.7 bits on the sparse diffusion pair, and that of the largest element by up to 1.0 bit
(measured). So a method is as accurate as FP32 if it is behind by at most three quarters of a bit in norm, and twice that in
the largest element (:data:`mpgemm.experiments.standing.NOISE_BITS`). If there are too few results or seeds to tell, the
status is *undecided* (:mod:`mpgemm.experiments.standing`). FP32 is :func:`mpgemm.experiments.methods.fp32_baseline`, whose
bits are the same on every machine.

A result is *lost* if its error exceeds 2^-10 |A||B|, twice fp16's unit roundoff, because a plain FP16 product of operands in
range is better. An element of an operand beyond fp16's range counts as lost if results are lost; up to twice that range, the
second word can hold the excess if s_b is small enough.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ascend.numeric.arguments import DEFAULT_STEP_ORDER
from mpgemm.bounds.norms import Lines
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.cases import Case, as_fp32, given_case
from mpgemm.experiments.error_sources import error_sources
from mpgemm.experiments.evaluate import Record, evaluate
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.methods import CubeOptions, build_methods, fp32_baseline, short_chains
from mpgemm.experiments.not_finite import not_finite
from mpgemm.experiments.spread import SeedSpread
from mpgemm.experiments.standing import (
    LOST,
    METRICS,
    NOISE_BITS,
    STATUSES,
    bits_between,
    differences_of,
    middle_of,
    sampling_bits,
    standing,
    worst_status,
)
from mpgemm.experiments.verdict import (
    BASELINES,
    SHORT_CHAIN,
    CubeSetting,
    Judgement,
    LostOperand,
    Verdict,
)
from tensorcore_models.formats.split_analysis import FP16_OVERFLOW, chosen_scale_exponent

#: Roundings of a cube step of 16 products: after every product (the default), and once.
BOTH_STEP_ORDERS = (DEFAULT_STEP_ORDER, "exact")
#: Bits within which settings of one method count as equal, so that the usual setting is taken; 0.1 bits are 7 % of the error.
SAME_BITS = {"relative_frobenius": 0.1, "componentwise": 0.5}


Errors = Sequence[Record]  #: Records of one method on the seeds of one input.
Measured = Mapping[CubeSetting, Mapping[str, tuple[GemmMethod, Errors]]]


def median_of(records: Errors, name: str) -> float:
    """Return the median of a field of the error reports."""
    return SeedSpread.of([getattr(record.errors, name) for record in records]).median


def bits_of(records: Errors) -> float:
    """Return the median of the effective bits."""
    return SeedSpread.of_bits([record.errors.effective_bits() for record in records]).median


def judge(case: Case, methods: Sequence[GemmMethod], records: Sequence[Record]) -> Verdict | None:
    """Return the verdict on the input of a case and of the other cases of its group.

    Returns None if FP32 or SGEMM-cube without scaled rows was not measured, or if the product has no elements.
    """
    mine: dict[str, list[Record]] = {}
    for record in _each_once(records):
        if record.group == case.group:
            mine.setdefault(record.method, []).append(record)
    measured = _settings(methods, mine)
    plain = {setting: found for setting, found in measured.items() if not setting.row_scaling}
    if "fp32" not in mine or not plain:
        return None
    look = _Look(case, mine["fp32"], mine.get("fp32_chain"))
    if not look.results:
        return None
    seeds = len(mine["fp32"])
    best, same = _choose(plain, mine["fp32"], look.results * seeds)
    judgements = look.judgements(best, plain[best])
    scaled = next((look.judgements(setting, found) for setting, found in measured.items() if setting.row_scaling), ())
    recommended = best
    if scaled and _gain(scaled, judgements) > max(NOISE_BITS["relative_frobenius"], sampling_bits(look.measured)):
        recommended, same = scaled[0].setting, ()
    final = judgements if recommended == best else scaled
    statuses = {judgement.step_order: judgement.status for judgement in final}
    status = statuses.get(DEFAULT_STEP_ORDER) or worst_status(statuses.values())
    return Verdict(
        case.group, status, len(set(statuses.values())) > 1, recommended, same, judgements, scaled,
        NOISE_BITS, look.lost_operands(), int(np.count_nonzero(look.fp32_lost)), look.a.shape[1], look.results,
        not_finite(case), not look.values.any(), seeds, "seed" in case.identity,
        {label: bits_of(mine[name]) for name, label in BASELINES.items() if name in mine},
        max((r.condition for r in mine["fp32"] if r.condition is not None), key=lambda c: c.norm, default=None),
    )  # fmt: skip


def _each_once(records: Sequence[Record]) -> list[Record]:
    """Return one record for each case and method, because a copy is not a second seed."""
    return list({(record.group, record.case, record.method): record for record in records}.values())


def setting_of(method: GemmMethod) -> CubeSetting | None:
    """Return the setting of SGEMM-cube that a method runs, None for other methods."""
    if not method.name.startswith("sgemm_cube"):
        return None
    facts = method.settings
    return CubeSetting(facts["order"], facts["scale_exponent"], facts.get("row_scaling", False))


def _settings(
    methods: Sequence[GemmMethod], mine: Mapping[str, Errors]
) -> dict[CubeSetting, dict[str, tuple[GemmMethod, Errors]]]:
    """Return the settings of SGEMM-cube that were measured, with their records by step order."""
    measured: dict[CubeSetting, dict[str, tuple[GemmMethod, Errors]]] = {}
    for method in methods:
        setting = setting_of(method)
        if setting is not None and method.name in mine:
            measured.setdefault(setting, {})[method.step_order] = (method, mine[method.name])
    return measured


def preferred_setting(
    methods: Sequence[GemmMethod], records: Sequence[Record]
) -> tuple[CubeSetting, tuple[CubeSetting, ...]] | None:
    """Return the setting without scaled rows to use for all these products, and the settings that are as good.

    Returns None if FP32 or SGEMM-cube was not measured.
    """
    mine: dict[str, list[Record]] = {}
    for record in _each_once(records):
        mine.setdefault(record.method, []).append(record)
    plain = {setting: found for setting, found in _settings(methods, mine).items() if not setting.row_scaling}
    results = sum(record.errors.m * record.errors.n for record in mine.get("fp32", ()))
    return _choose(plain, mine["fp32"], results) if plain and results else None


def verdict(a, b) -> Verdict:
    """Return the verdict, which `mpgemm evaluate A B` prints, on whether SGEMM-cube is accurate enough for these matrices.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
        The matrices. Errors are measured against the product of these numbers; FP32 and SGEMM-cube first round them to
        float32, to nearest.

    Returns
    -------
    Verdict
        The answer: ``print`` shows it as text, and the fields `status`, `recommended` and `judgements` hold it as data.

    Raises
    ------
    ValueError, TypeError
        If the operands are not matrices of real numbers, their shapes do not fit, or their product is empty.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.random.default_rng(0).standard_normal((64, 64))
    >>> found = verdict(a, a)
    >>> found.status, str(found.recommended)
    ('as accurate', 'termwise order, s_b = 12')
    """
    case = given_case(a, b)
    a, b, _ = case.operands()
    if 0 in (a.shape[0], b.shape[1]):
        raise ValueError(
            f"a is {a.shape} and b is {b.shape}, expected a product that is not empty, to measure its error"
        )
    options = CubeOptions(step_orders=BOTH_STEP_ORDERS)
    methods = build_methods(["fp32", *BASELINES, "sgemm_cube", "sgemm_cube_scaled"], options)
    found = judge(case, methods, evaluate([case], methods))
    if found is None:
        raise AssertionError("FP32 and SGEMM-cube were measured")
    return found


def _gain(scaled: Sequence[Judgement], plain: Sequence[Judgement]) -> float:
    """Return the largest gain in bits by scaling, -inf if results are lost with it or a status gets worse."""
    before, after = ({j.step_order: j for j in found} for found in (plain, scaled))
    steps = [step for step in before if step in after]
    if any(
        after[s].status == "lost" or STATUSES.index(after[s].status) > STATUSES.index(before[s].status) for s in steps
    ):
        return -math.inf
    if any(STATUSES.index(after[step].status) < STATUSES.index(before[step].status) for step in steps):
        return math.inf
    if all(before[step].status == "as accurate" for step in steps):
        return 0.0
    return max((after[s].differences[m] - before[s].differences[m] for s in steps for m in METRICS), default=-math.inf)


def _choose(plain: Measured, fp32: Errors, results: int) -> tuple[CubeSetting, tuple[CubeSetting, ...]]:
    """Return the preferred setting among those as good as the best in every step order, and the others among them.

    If no setting is, the setting is returned whose worst step order is least behind FP32.
    """
    tolerance = {metric: max(bits, sampling_bits(results)) for metric, bits in SAME_BITS.items()}
    errors = {
        setting: {(step, metric): median_of(found[step][1], metric) for step in found for metric in METRICS}
        for setting, found in plain.items()
    }
    best = {key: min(errors[setting][key] for setting in plain) for key in next(iter(errors.values()))}
    baseline = {metric: median_of(fp32, metric) for metric in METRICS}

    def excess(setting: CubeSetting) -> float:
        """Return the largest number of bits behind the best setting, less the tolerance."""
        return max(bits_between(best[key], errors[setting][key]) - tolerance[key[1]] for key in best)

    def behind(setting: CubeSetting) -> float:
        """Return the largest number of bits behind FP32, less the difference that two FP32 products may have."""
        return max(bits_between(baseline[key[1]], errors[setting][key]) - NOISE_BITS[key[1]] for key in best)

    order = sorted(plain, key=lambda setting: setting.preference)
    good = [setting for setting in order if excess(setting) <= 0]
    if not good:
        return min(order, key=behind), ()
    mine = errors[good[0]]
    same = [
        s for s in good[1:] if all(abs(bits_between(mine[key], errors[s][key])) <= SAME_BITS[key[1]] for key in best)
    ]
    return good[0], tuple(same)


def _lost_in_a_seed(records: Errors, fp32: Errors) -> bool:
    """Return whether any seed has a lost result in a case in which FP32 has none."""
    kept = {record.case for record in fp32 if record.errors.componentwise <= LOST}
    return any(record.case in kept and record.errors.componentwise > LOST for record in records)


# -- one input in detail -------------------------------------------------------------------------------------------------
class _Look:
    """`_Look` holds the exact product of one input and finds lost results and their causes."""

    def __init__(self, case: Case, fp32: Errors, chain: Errors | None):
        self.a, self.b, _ = case.operands()
        self.fp32, self.chain = fp32, chain
        self.lines = Lines(self.a, 1), Lines(self.b, 0)
        self.exact = exact_gemm(self.a, self.b)
        #: Operands rounded to FP32, which FP32 and SGEMM-cube multiply; causes of an error refer to their product.
        self.words_of = as_fp32(self.a), as_fp32(self.b)
        rounded = self.words_of[0] is not self.a or self.words_of[1] is not self.b
        self.exact_of_words = exact_gemm(*self.words_of) if rounded else self.exact
        self.values = np.asarray(self.exact.rounded("fp64"))
        self.results = self.values.size
        self.measured = self.results * len(fp32)  #: Number of results of all seeds.
        with np.errstate(invalid="ignore", over="ignore"):
            self.sizes = np.abs(self.a.astype(np.float64)) @ np.abs(self.b.astype(np.float64))
        self.fp32_lost = self._lost(fp32_baseline(self.a, self.b))[0]

    def _lost(self, product: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (mask of lost results, computed - exact)."""
        with np.errstate(invalid="ignore"):
            error = np.asarray(self.exact.error_of(product))
            same = (product == self.values) | (np.isnan(product) & np.isnan(self.values))
            far = ~(np.isfinite(error) & (np.abs(error) <= LOST * self.sizes))
        return far & ~same, error

    def judgements(self, setting: CubeSetting, found: Mapping[str, tuple[GemmMethod, Errors]]) -> tuple[Judgement, ...]:
        """Return the judgements of a setting, one for each step order.

        If the step orders differ by no more than two FP32 products may, but in status, no status is decided.
        """
        judged = tuple(self._judgement(setting, *pair) for pair in found.values())
        spread = {m: max(j.differences[m] for j in judged) - min(j.differences[m] for j in judged) for m in METRICS}
        statuses = {j.status for j in judged}
        if len(statuses) == 1 or "lost" in statuses or any(not spread[m] <= NOISE_BITS[m] for m in METRICS):
            return judged
        return tuple(replace(j, status="undecided" if "undecided" in statuses else "borderline") for j in judged)

    def _judgement(self, setting: CubeSetting, method: GemmMethod, records: Errors) -> Judgement:
        """Return the judgement of a setting against FP32."""
        product = method.multiply(self.a, self.b)
        lost, error = self._lost(product)
        method.hold(product, error, *self.lines)
        of_words = error if self.exact_of_words is self.exact else np.asarray(self.exact_of_words.error_of(product))
        middles = {m: middle_of(differences_of(records, self.fp32, m)) for m in METRICS}
        differences = {m: difference for m, (difference, _) in middles.items()}
        intervals = {m: interval for m, (_, interval) in middles.items() if interval is not None}
        exact = all(record.errors.componentwise == 0 for record in records)
        found = {m: standing(*middles[m], m, self.measured, exact=exact) for m in METRICS}
        behind = [metric for metric in METRICS if found[metric] != "as accurate"]
        status = "lost" if lost.any() or _lost_in_a_seed(records, self.fp32) else worst_status(found.values())
        sources = self._sources(setting, of_words, lost, by_element=bool(behind) and behind[0] == "componentwise")
        cause = max(sources, key=lambda source: sources[source]) if status != "as accurate" and sources else ""
        bits = bits_of(records)
        return Judgement(
            setting=setting,
            step_order=method.step_order,
            status=status,
            effective_bits=bits,
            fp32_bits=bits_of(self.fp32),
            chain_bits=math.nan if self.chain is None else bits_of(self.chain),
            differences=differences,
            intervals=intervals,
            cause=cause,
            sources=sources,
            lost_results=int(np.count_nonzero(lost)),
            worst=self._worst(lost, error),
            low_low_bits=self._bits_with(method, bits, error, {"low_low": True}) if cause == "dropped term" else None,
            short_chain_bits=self._short_chain_bits(method, bits, error) if cause == "accumulation" else None,
        )

    def _worst(self, lost: np.ndarray, error: np.ndarray) -> tuple[int, int] | None:
        """Return the row and column of the lost result with the largest error over |A||B|."""
        if not lost.any():
            return None
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            share = np.where(lost, np.nan_to_num(np.abs(error) / self.sizes, nan=np.inf), -1.0)
        i, j = np.unravel_index(int(np.argmax(share)), share.shape)
        return int(i), int(j)

    def _bits_with(
        self, method: GemmMethod, bits: float, error: np.ndarray, said: Mapping, options: Mapping | None = None
    ) -> float:
        """Return the bits of the same method with other options; `said` are the options in the recipe."""
        product = method.multiply(self.a, self.b, **(said if options is None else options))
        changed = np.asarray(self.exact.error_of(product))
        method.hold(product, changed, *self.lines, **said)
        return bits + bits_between(float(np.linalg.norm(changed)), float(np.linalg.norm(error)), 0.0)

    def _short_chain_bits(self, method: GemmMethod, bits: float, error: np.ndarray) -> float | None:
        """Return the bits of the same method with chains of :data:`SHORT_CHAIN` products, None if k is not longer."""
        (m, k), n = self.a.shape, self.b.shape[1]
        if k <= SHORT_CHAIN:
            return None
        chains = {"schedule": short_chains(method.settings["order"], (m, k, n), SHORT_CHAIN), "blocking": None}
        return self._bits_with(method, bits, error, {"chain": SHORT_CHAIN}, chains)

    def _sources(
        self, setting: CubeSetting, error: np.ndarray, lost: np.ndarray, by_element: bool
    ) -> Mapping[str, float]:
        """Return the norms of the parts of the error over the largest part.

        With `by_element`, or if results are lost, elements are weighted by 1 / |A||B|; if results are lost, only they count.
        """
        if setting.row_scaling or not error.size:
            return {}
        weights: np.ndarray | float = 1.0
        if by_element or lost.any():
            with np.errstate(divide="ignore"):
                weights = np.where((self.sizes > 0) & (lost | (not lost.any())), 1 / self.sizes, 0.0)
        auto = setting.scale_exponent == "auto"
        s_a, s_b = (chosen_scale_exponent(x) if auto else int(setting.scale_exponent) for x in self.words_of)
        parts = error_sources(*self.words_of, error, (s_a, s_b), weights)
        largest = max(parts.values())
        return {source: part / largest for source, part in parts.items()} if largest > 0 else {}

    def lost_operands(self) -> tuple[LostOperand, ...]:
        """Return the operands with elements that overflow or are not finite, each with its first such element."""
        found = []
        for name, x in (("A", self.a), ("B", self.b)):
            nonfinite = ~np.isfinite(x)
            overflow = ~nonfinite & (np.abs(x) >= FP16_OVERFLOW)
            if (nonfinite | overflow).any():
                i, j = (int(place) for place in np.argwhere(nonfinite | overflow)[0])
                counts = int(np.count_nonzero(overflow)), int(np.count_nonzero(nonfinite))
                found.append(LostOperand(name, *counts, i, j, float(x[i, j])))
        return tuple(found)
