"""Run methods on inputs and measure their errors: computing only, no printing and no figures."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field
from functools import partial
from math import inf, isinf
from typing import Any

import numpy as np

import tensorcore_models as tcm
from ascend.numeric.arguments import DEFAULT_STEP_ORDER
from mpgemm.bounds.norms import Lines
from mpgemm.exact.conditioning import Conditioning
from mpgemm.exact.errors import GRADES, METRICS, ErrorMeter, ErrorReport
from mpgemm.exact.product import exact_gemm
from mpgemm.experiments.cases import Case, distinct_cases
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.journal import Journal, content_key
from mpgemm.experiments.spread import SeedSpread
from mpgemm.experiments.tasks import Task, results_of

Operands = tuple[np.ndarray, np.ndarray, np.ndarray | None]


@dataclass(frozen=True)
class Record:
    """The errors of one method on one input."""

    case: str
    group: str
    method: str
    label: str
    errors: ErrorReport
    seconds: float | None = (
        None  #: What the product took here, of methods that are `timed`; a model's time says nothing.
    )
    details: Mapping = field(default_factory=dict)
    step_order: str = ""
    condition: Conditioning | None = None  #: Of the product; None in records that were not measured.
    held: int = 0  #: Results with a finite certified bound, which they are within.

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        names = (
            "case",
            "group",
            "method",
            "label",
            "step_order",
            "held",
            *(["seconds"] if self.seconds is not None else []),
        )
        details = {"details": dict(self.details)} if self.details else {}
        return {name: getattr(self, name) for name in names} | {"errors": self.errors.to_dict()} | details


def evaluate(
    cases: Iterable[Case],
    methods: Sequence[GemmMethod],
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    executor: Executor | None = None,
) -> list[Record]:
    """Measure every method on every case.

    cases: The inputs. One is loaded, and its exact product formed, only if the journal lacks one of its results.
    methods: What to compare.
    journal: Finished results are taken from it and new ones added, so a run that is interrupted resumes.
    progress: ``progress(done, total, label)`` before each measurement and at the end.
    executor: Cases run on it side by side (threads, spawned processes, a cluster); without one they run one after
        another.
    Returns: In the order of cases, then methods.
    Raises ValueError if a case has a C that a method cannot add; OutsideBound if a product is outside of its certified
        bound: nothing is ranked then.
    """
    cases = distinct_cases(list(cases))
    lacking = [method.name for method in methods if not method.takes_addend]
    if lacking and any(case.addend is not None for case in cases):
        raise ValueError(f"these methods cannot add C to a product: {', '.join(lacking)}")
    tasks = [
        Task(
            f"{case.label}: {method.name}",
            {"case": dict(case.identity), "method": dict(method.settings)},
            partial(measure, case, method),
        )
        for case in cases
        for method in methods
    ]
    try:
        results = results_of(tasks, journal, progress, executor)
    finally:
        forget_inputs()
    measured = [(case, method) for case in cases for method in methods]
    return [_record(case, method, result) for (case, method), result in zip(measured, results, strict=True)]


def _record(case: Case, method: GemmMethod, result: Mapping) -> Record:
    errors = ErrorReport.from_dict(result["errors"])
    details = result.get("details", {})
    facts: dict[str, Any] = {name: inf if x == "inf" else x for name, x in result["condition"].items()}
    condition = Conditioning(**facts)
    return Record(
        case.label,
        case.group,
        method.name,
        method.label,
        errors,
        result.get("seconds"),
        details,
        method.step_order,
        condition,
        result["held"],
    )


def not_held(measured: Iterable[tuple[str, str, ErrorReport, int]]) -> list[str]:
    """Return which results no certified bound vouches for, in a sentence for each input; (group, label, errors, held)."""
    missing: dict[str, dict[str, tuple[int, int]]] = {}
    for group, label, errors, held in measured:
        size = errors.m * errors.n
        if held < size:
            lacking, results = missing.setdefault(group, {}).get(label, (0, 0))
            missing[group][label] = lacking + size - held, results + size
    return [
        f"{group}: nothing is certified of {', '.join(f'{n} of {size} results of {x}' for x, (n, size) in found.items())}: "
        "no bound is derived, operands are not finite, or sums may overflow."
        for group, found in missing.items()
    ]


def conditions_of(records: Iterable[Record]) -> dict[str, Conditioning]:
    """Return the condition number of each case's product."""
    return {record.case: record.condition for record in records if record.condition is not None}


#: Inputs of the cases that this process measured last, so that tasks of the same case form its exact product once.
_RECENT: dict[str, tuple[Operands, ErrorMeter, tuple[Lines, Lines]]] = {}
_RECENT_LOCK = threading.Lock()
_RECENT_CASES = 2


def _inputs(case: Case) -> tuple[Operands, ErrorMeter, tuple[Lines, Lines]]:
    key = content_key(case.identity)
    with _RECENT_LOCK:
        if key not in _RECENT:
            operands = case.operands()
            while len(_RECENT) >= _RECENT_CASES:
                _RECENT.pop(next(iter(_RECENT)))
            _RECENT[key] = (operands, ErrorMeter(*operands), (Lines(operands[0], 1), Lines(operands[1], 0)))
        return _RECENT[key]


def forget_inputs() -> None:
    """Free the inputs that this process keeps."""
    with _RECENT_LOCK:
        _RECENT.clear()


def measure(case: Case, method: GemmMethod) -> dict:
    """Return the result of one method on one case, JSON-compatible: the task that an executor runs."""
    (a, b, c), meter, lines = _inputs(case)
    given = (a, b) if c is None else (a, b, c)
    start = time.perf_counter()
    product = method.multiply(*given)
    seconds = time.perf_counter() - start
    difference = meter.differences(product)
    held = method.hold(product, difference, *lines, c)
    condition = {name: str(x) if isinf(x) else x for name, x in asdict(meter.conditioning()).items()}
    result: dict = {"errors": meter.report(product, difference).to_dict(), "condition": condition, "held": held}
    if method.timed:
        result["seconds"] = seconds
    return result if method.details is None else {**result, "details": method.details(*given)}


@dataclass(frozen=True)
class Summary:
    """Records of one group and method: means over the seeds, the maximum of `max_ulp`; no `step_order` without a cube."""

    group: str
    method: str
    label: str
    step_order: str
    format: str
    count: int
    relative_frobenius: float
    relative_inf: float
    normwise: float
    componentwise: float
    rowwise: float
    max_ulp: float
    mean_ulp: float
    bits_equal: float
    effective_bits: float
    #: median_bits, least_bits, most_bits: Effective bits over the seeds.
    median_bits: float
    least_bits: float
    most_bits: float
    nonfinite: int
    seconds: float | None  #: Of methods that are timed.
    grade: str

    @property
    def bits(self) -> SeedSpread:
        """Of the seeds."""
        return SeedSpread(self.median_bits, self.least_bits, self.most_bits, self.count)

    @property
    def full_label(self) -> str:
        """The label, with the step order where it is not the usual one."""
        return (
            f"{self.label}, {self.step_order} steps" if self.step_order not in ("", DEFAULT_STEP_ORDER) else self.label
        )


def summarise(records: Sequence[Record]) -> list[Summary]:
    """Return one :class:`Summary` for each group and method: errors averaged over the seeds (Xue et al., section 6.1), bits
    from the mean."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.group, record.method), []).append(record)
    summaries = []
    for (group, method), members in groups.items():
        mean = {
            name: float(np.mean([getattr(member.errors, name) for member in members]))
            for name in METRICS
            if name != "max_ulp"
        }
        error = mean["relative_frobenius"]
        bits = SeedSpread.of_bits([member.errors.effective_bits() for member in members])
        summaries.append(
            Summary(
                group=group,
                method=method,
                label=members[0].label,
                step_order=members[0].step_order,
                format=members[0].errors.format,
                count=len(members),
                max_ulp=max(member.errors.max_ulp for member in members),
                effective_bits=float(np.inf) if error == 0 else float(-np.log2(error)),
                median_bits=bits.median,
                least_bits=bits.low,
                most_bits=bits.high,
                nonfinite=sum(member.errors.nonfinite for member in members),
                seconds=_mean_time(members),
                grade=max((member.errors.grade for member in members), key=[*GRADES, "-"].index),
                **mean,
            )
        )
    return summaries


def _mean_time(members: Sequence[Record]) -> float | None:
    times = [member.seconds for member in members if member.seconds is not None]
    return float(np.mean(times)) if times else None


def verify_entries(case: Case, count: int) -> tuple[int, int]:
    """Of `count` sampled entries of the exact product: how many were compared, and how many round to the same FP64
    number in mpmath."""
    from mpgemm.exact.mp import mp_gemm_entries  # mpmath takes a while to load, and few ask for it
    from mpgemm.exact.mp_reference import round_mpf

    a, b, c = case.operands()
    values = np.asarray(exact_gemm(a, b, c).rounded("fp64"))
    places = np.random.default_rng(0).permutation(values.size)[:count]
    agreeing = 0
    indices = [divmod(int(place), values.shape[1]) for place in places]
    for (i, j), entry in zip(indices, mp_gemm_entries(a, b, c, indices), strict=True):
        independent = round_mpf(entry, tcm.FORMATS["fp64"])
        agreeing += bool(independent == values[i, j] or (np.isnan(independent) and np.isnan(values[i, j])))
    return len(places), agreeing
