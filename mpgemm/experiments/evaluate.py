"""Run methods on inputs and measure their errors: computing only, no printing and no figures."""

import functools
import hashlib
import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

from mpgemm.errors import ErrorMeter, ErrorReport
from mpgemm.experiments.cases import Case
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.methods import GemmMethod


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

    def to_dict(self) -> dict:
        """JSON-compatible values."""
        return {
            "case": self.case,
            "group": self.group,
            "method": self.method,
            "label": self.label,
            "seconds": self.seconds,
            "errors": self.errors.to_dict(),
        }


def evaluate(
    cases: Iterable[Case],
    methods: Sequence[GemmMethod],
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
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

    Returns
    -------
    list of Record
        In the order of cases, then methods.
    """
    journal = journal if journal is not None else Journal()
    progress = progress or (lambda done, total, label: None)
    cases = list(cases)
    total, done, records = len(cases) * len(methods), 0, []
    for case in cases:
        a = b = meter = None
        for method in methods:
            progress(done, total, f"{case.label}: {method.name}")
            configuration = {
                "case": dict(case.identity),
                "method": dict(method.settings),
                "code": code_digest(),
            }
            result = journal.get(configuration)
            if result is None:
                if meter is None:
                    a, b = case.load()
                    meter = ErrorMeter(a, b)
                result = _measure(method, a, b, meter)
                journal.add(configuration, result)
            errors = ErrorReport.from_dict(result["errors"])
            records.append(Record(case.label, case.group, method.name, method.label, errors, result["seconds"]))
            done += 1
    progress(done, total, "")
    return records


def _measure(method: GemmMethod, a: np.ndarray, b: np.ndarray, meter: ErrorMeter) -> dict:
    start = time.perf_counter()
    product = method.multiply(a, b)
    seconds = time.perf_counter() - start
    return {"errors": meter.measure(product).to_dict(), "seconds": seconds}


@dataclass(frozen=True)
class Summary:
    """Records of one group and method taken together: means over the seeds, the maximum of `max_ulp`."""

    group: str
    method: str
    label: str
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
    from mpgemm.exact import exact_gemm
    from mpgemm.mp_reference import MpResult

    a, b = case.load()
    values = np.asarray(exact_gemm(a, b).rounded("fp64"))
    places = np.random.default_rng(seed).permutation(values.size)[:count]
    agreeing = 0
    for place in places:
        i, j = np.unravel_index(int(place), values.shape)
        independent = MpResult(a[i : i + 1], b[:, j : j + 1]).rounded("fp64")[0, 0]
        agreeing += bool(independent == values[i, j] or (np.isnan(independent) and np.isnan(values[i, j])))
    return len(places), agreeing
