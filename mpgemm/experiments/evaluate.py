"""Runs methods on inputs and measures their errors, without printing or drawing them."""

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
    """`Record` holds the errors of one method on one input."""

    case: str
    group: str
    method: str
    label: str
    errors: ErrorReport
    #: Time of the product on this machine; None for methods that are not `timed`, because a model's time says nothing.
    seconds: float | None = None
    details: Mapping = field(default_factory=dict)
    step_order: str = ""
    condition: Conditioning | None = None  #: Condition number of the product; None in records that were not measured.
    held: int = 0  #: Number of results with a finite certified bound; all of them are within it.

    def to_dict(self) -> dict:
        """Return the fields as a dict of JSON-compatible values."""
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
    """Return the records of every method on every case, in the order of cases, then methods.

    cases: inputs; a case is loaded, and its exact product computed, only if the journal lacks one of its results.
    methods: methods to compare.
    journal: journal of finished results, from which an interrupted run resumes; new results are added to it.
    progress: function called as ``progress(done, total, label)`` before each measurement and at the end.
    executor: executor that runs the cases in parallel (threads, spawned processes, a cluster); without one they run one after
        another.
    Raises ValueError if a case has a C that a method cannot add, and OutsideBound, before any ranking, if a product is outside
        of its certified bound.
    """
    cases = distinct_cases(list(cases))
    lacking = [method.name for method in methods if not method.takes_addend]
    if lacking and any(case.addend is not None for case in cases):
        raise ValueError(
            f"got a C, which these methods cannot add to a product: {', '.join(lacking)}; leave C or these methods out"
        )
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
    """Return a sentence for each input on the results without a certified bound; `measured` has (group, label, errors,
    held)."""
    missing: dict[str, dict[str, tuple[int, int]]] = {}
    for group, label, errors, held in measured:
        size = errors.m * errors.n
        if held < size:
            lacking, results = missing.setdefault(group, {}).get(label, (0, 0))
            missing[group][label] = lacking + size - held, results + size
    return [
        f"{group}: {', '.join(f'{n} of {size} results of {x}' for x, (n, size) in found.items())} have no certified bound, "
        "because no bound is derived, operands are not finite, or sums may overflow."
        for group, found in missing.items()
    ]


def conditions_of(records: Iterable[Record]) -> dict[str, Conditioning]:
    """Return the condition number of each case's product, by case."""
    return {record.case: record.condition for record in records if record.condition is not None}


#: Inputs of the cases that this process measured last, so that tasks of one case compute its exact product only once.
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
    """Free the inputs that this process keeps in memory."""
    with _RECENT_LOCK:
        _RECENT.clear()


def measure(case: Case, method: GemmMethod) -> dict:
    """Return the JSON-compatible result of one method on one case, the task that an executor runs."""
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
    """`Summary` holds means over the seeds of one group and method, and the maximum of `max_ulp`.

    `step_order` is empty for methods that do not run on the Ascend cube.
    """

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
    #: median_bits, least_bits, most_bits: median, smallest and largest effective bits over the seeds.
    median_bits: float
    least_bits: float
    most_bits: float
    nonfinite: int
    seconds: float | None  #: Mean time of methods that are timed.
    grade: str

    @property
    def bits(self) -> SeedSpread:
        """Return the spread of the effective bits over the seeds."""
        return SeedSpread(self.median_bits, self.least_bits, self.most_bits, self.count)

    @property
    def full_label(self) -> str:
        """Return the label, with the step order if it is not the default."""
        return (
            f"{self.label}, {self.step_order} steps" if self.step_order not in ("", DEFAULT_STEP_ORDER) else self.label
        )


def summarise(records: Sequence[Record]) -> list[Summary]:
    """Return one :class:`Summary` for each group and method.

    Errors are averaged over the seeds (Xue et al., section 6.1), and `effective_bits` are those of the mean error.
    """
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
    """Compare up to `count` sampled entries of the exact product with mpmath.

    Returns the number of entries compared, and the number that round to the same FP64 number.
    """
    from mpgemm.exact.mp import mp_gemm_entries  # imported here because mpmath loads slowly
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
