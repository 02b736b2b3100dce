"""Run methods on inputs and measure their errors: computing only, no printing and no figures."""

import functools
import hashlib
import importlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import tensorcore_models as tcm
from mpgemm.exact.errors import ErrorMeter, ErrorReport
from mpgemm.experiments.cases import Case
from mpgemm.experiments.journal import Journal, content_key
from mpgemm.experiments.methods import GemmMethod

Operands = tuple[np.ndarray, np.ndarray, np.ndarray | None]


def package_version() -> str:
    """Version of the installed distribution, "source" where it is run from a checkout that is not installed."""
    try:
        return version("mpgemm")
    except PackageNotFoundError:
        return "source"


@functools.cache
def code_digest() -> str:
    """Hash of the three packages' Python and compiled files: results of other code are not taken from a journal."""
    digest = hashlib.sha256()
    for package in ("tensorcore_models", "ascend", "mpgemm"):
        for root in importlib.import_module(package).__path__:
            for path in sorted(Path(root).rglob("*")):
                if path.suffix in (".py", ".so", ".pyd", ".toml"):
                    digest.update(f"{package}/{path.relative_to(root).as_posix()}\n".encode())
                    digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Record:
    """The errors of one method on one input.

    `seconds` is the time this computation took on this machine (for the modelled methods: of the model, not of the
    hardware).
    """

    case: str
    group: str
    method: str
    label: str
    errors: ErrorReport
    seconds: float
    details: Mapping = field(default_factory=dict)

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {
            "case": self.case,
            "group": self.group,
            "method": self.method,
            "label": self.label,
            "seconds": self.seconds,
            "errors": self.errors.to_dict(),
            **({"details": dict(self.details)} if self.details else {}),
        }


def evaluate(
    cases: Iterable[Case],
    methods: Sequence[GemmMethod],
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    executor: Executor | None = None,
) -> list[Record]:
    """Measure every method on every case.

    Parameters
    ----------
    cases : iterable of Case
        The inputs. One is loaded, and its exact product formed, only if the journal lacks one of its results.
    methods : sequence of GemmMethod
        What to compare.
    journal : Journal, optional
        Finished results are taken from it and new ones added, so a run that is interrupted resumes.
    progress : callable, optional
        ``progress(done, total, label)`` before each measurement and at the end.
    executor : concurrent.futures.Executor, optional
        Cases run on it side by side (threads, spawned processes, a cluster); without one they run one after another.

    Returns
    -------
    list of Record
        In the order of cases, then methods.

    Raises
    ------
    ValueError
        If a case has a C that a method cannot add.
    """
    journal = journal if journal is not None else Journal()
    progress = progress or (lambda done, total, label: None)
    cases = list(cases)
    lacking = [method.name for method in methods if not method.takes_addend]
    if lacking and any(case.addend is not None for case in cases):
        raise ValueError(f"these methods add no C to a product: {', '.join(lacking)}")
    configurations = [[_configuration(case, method) for method in methods] for case in cases]
    missing = [
        [method for method, key in zip(methods, keys, strict=True) if journal.get(key) is None]
        for keys in configurations
    ]
    total = len(cases) * len(methods)
    done = total - sum(map(len, missing))
    for case, method, result in _measure_all(cases, missing, executor):
        if result is None:
            progress(done, total, f"{case.label}: {method.name}")
        else:
            journal.add(_configuration(case, method), result)
            done += 1
    progress(total, total, "")
    return [
        _record(case, method, result)
        for case, keys in zip(cases, configurations, strict=True)
        for method, key in zip(methods, keys, strict=True)
        if (result := journal.get(key)) is not None
    ]


def _configuration(case: Case, method: GemmMethod) -> dict:
    """Everything that determines a result."""
    return {"case": dict(case.identity), "method": dict(method.settings), "code": code_digest()}


def _record(case: Case, method: GemmMethod, result: Mapping) -> Record:
    errors = ErrorReport.from_dict(result["errors"])
    return Record(case.label, case.group, method.name, method.label, errors, result["seconds"], result.get("details", {}))


def _measure_all(
    cases: Sequence[Case], missing: Sequence[Sequence[GemmMethod]], executor: Executor | None
) -> Iterator[tuple[Case, GemmMethod, dict | None]]:
    """(case, method, None) before a measurement and (case, method, result) after it."""
    work = [(case, methods) for case, methods in zip(cases, missing, strict=True) if methods]
    if executor is None:
        for case, methods in work:
            operands = case.operands()
            meter = ErrorMeter(*operands)
            for method in methods:
                yield case, method, None
                yield case, method, _measure(method, operands, meter)
        return
    futures = {
        executor.submit(measure_case, case, [method]): (case, method) for case, methods in work for method in methods
    }
    try:
        for future in as_completed(futures):
            case, method = futures[future]
            (result,) = future.result()
            yield case, method, result
            yield case, method, None
    finally:
        for future in futures:
            future.cancel()


def measure_case(case: Case, methods: Sequence[GemmMethod]) -> list[dict]:
    """The results of several methods on one case: the task that an executor runs."""
    operands, meter = _inputs(case)
    return [_measure(method, operands, meter) for method in methods]


#: The inputs of the last cases that this process measured, so that tasks of the same case form its exact product once.
_RECENT: dict[str, tuple[Operands, ErrorMeter]] = {}
_RECENT_LOCK = threading.Lock()
_RECENT_CASES = 2


def _inputs(case: Case) -> tuple[Operands, ErrorMeter]:
    key = content_key(case.identity)
    with _RECENT_LOCK:
        if key not in _RECENT:
            operands = case.operands()
            while len(_RECENT) >= _RECENT_CASES:
                _RECENT.pop(next(iter(_RECENT)))
            _RECENT[key] = (operands, ErrorMeter(*operands))
        return _RECENT[key]


def _measure(method: GemmMethod, operands: Operands, meter: ErrorMeter) -> dict:
    a, b, c = operands
    given = (a, b) if c is None else operands
    start = time.perf_counter()
    product = method.multiply(*given)
    seconds = time.perf_counter() - start
    result = {"errors": meter.measure(product).to_dict(), "seconds": seconds}
    return result if method.details is None else {**result, "details": method.details(*given)}


@dataclass(frozen=True)
class Summary:
    """Records of one group and method taken together: means over the seeds, the maximum of `max_ulp`."""

    group: str
    method: str
    label: str
    format: str
    count: int
    relative_frobenius: float
    relative_inf: float
    normwise: float
    componentwise: float
    max_ulp: float
    mean_ulp: float
    bits_equal: float
    effective_bits: float
    nonfinite: int
    seconds: float


def summarise(records: Sequence[Record]) -> list[Summary]:
    """One :class:`Summary` for each group and method, in the order of their first records.

    Errors are averaged over the seeds as in section 6.1 of Xue et al.; `effective_bits` is -log2 of the mean
    `relative_frobenius`.
    """
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.group, record.method), []).append(record)
    summaries = []
    for (group, method), members in groups.items():
        mean = {
            name: float(np.mean([getattr(member.errors, name) for member in members]))
            for name in ("relative_frobenius", "relative_inf", "normwise", "componentwise", "mean_ulp", "bits_equal")
        }
        error = mean["relative_frobenius"]
        summaries.append(
            Summary(
                group=group,
                method=method,
                label=members[0].label,
                format=members[0].errors.format,
                count=len(members),
                max_ulp=max(member.errors.max_ulp for member in members),
                effective_bits=float(np.inf) if error == 0 else float(-np.log2(error)),
                nonfinite=sum(member.errors.nonfinite for member in members),
                seconds=float(np.mean([member.seconds for member in members])),
                **mean,
            )
        )
    return summaries


def verify_entries(case: Case, count: int, seed: int = 0) -> tuple[int, int]:
    """Check `count` sampled entries of the exact product against mpmath.

    Returns
    -------
    checked, agreeing : int
        How many distinct entries were compared, and how many gave the same correctly rounded binary64 number.
    """
    from mpgemm.exact.product import exact_gemm
    from mpgemm.exact.mp import mp_gemm_entries
    from mpgemm.exact.mp_reference import round_mpf

    a, b, c = case.operands()
    values = np.asarray(exact_gemm(a, b, c).rounded("fp64"))
    places = np.random.default_rng(seed).permutation(values.size)[:count]
    agreeing = 0
    indices = [divmod(int(place), values.shape[1]) for place in places]
    for (i, j), entry in zip(indices, mp_gemm_entries(a, b, c, indices), strict=True):
        independent = round_mpf(entry, tcm.FORMATS["fp64"])
        agreeing += bool(independent == values[i, j] or (np.isnan(independent) and np.isnan(values[i, j])))
    return len(places), agreeing
