"""Methods times engines on given matrices: which recovers how many bits, at how many passes."""

import csv
import io
import json
import math
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mpgemm.recovery.engines import UnsuitableEngine, resolve_engine
from mpgemm.exact.errors import ErrorMeter, ErrorReport
from mpgemm.recovery.methods import RecoveryMethod, get_method
from mpgemm.recovery.run import recovered_gemm_report
from mpgemm.bounds.tolerances import method_bound
from tensorcore_models.engines.engine import Engine

#: Metrics of the error report that a row of the table has.
METRICS = ("relative_frobenius", "relative_inf", "normwise", "componentwise", "max_ulp", "mean_ulp", "bits_equal")


@dataclass(frozen=True)
class ComparisonRecord:
    """One method on one engine on one input.

    Attributes
    ----------
    case, method, engine : str
    passes : int
        Engine products of the full size.
    errors : ErrorReport
        Against the exact product.
    overflow_a, overflow_b, underflow_a, underflow_b : int
        Elements that left the range of the words (:class:`mpgemm.recovery.run.RangeCounts`).
    bound : float or None
        Deterministic bound of the componentwise error, None where none was asked for or is known.
    seconds : float
        What the model took here; nothing about hardware.
    """

    case: str
    method: str
    engine: str
    passes: int
    errors: ErrorReport
    overflow_a: int
    overflow_b: int
    underflow_a: int
    underflow_b: int
    bound: float | None
    seconds: float

    @property
    def bits(self) -> float:
        """-log2 of the relative error in the Frobenius norm."""
        return self.errors.effective_bits()

    def row(self) -> dict:
        """A flat row for tables."""
        errors = self.errors
        return {
            "case": self.case,
            "method": self.method,
            "engine": self.engine,
            "m": errors.m,
            "n": errors.n,
            "k": errors.k,
            "passes": self.passes,
            "bits": self.bits,
            **{name: getattr(errors, name) for name in METRICS},
            "overflow_a": self.overflow_a,
            "overflow_b": self.overflow_b,
            "underflow_a": self.underflow_a,
            "underflow_b": self.underflow_b,
            "nonfinite": errors.nonfinite,
            "bound": self.bound,
            "seconds": self.seconds,
        }

    def to_json(self) -> str:
        """The row as JSON text; what is not finite is a string."""
        return json.dumps({key: _plain(value) for key, value in self.row().items()})

    def to_csv(self) -> str:
        """The row as CSV text with a header line."""
        return _csv([self])

    def __str__(self) -> str:
        return f"{self.case}: {self.method} on {self.engine}: {self.bits:.2f} bits, {self.passes} passes"


class Comparison(list):
    """A list of :class:`ComparisonRecord`, with the pairs that could not run.

    Attributes
    ----------
    skipped : tuple of (method, engine, reason)
    """

    def __init__(self, records: Iterable[ComparisonRecord] = (), skipped: Sequence[tuple[str, str, str]] = ()):
        super().__init__(records)
        self.skipped = tuple(skipped)

    def to_json(self) -> str:
        """All rows as JSON text."""
        rows = [{key: _plain(value) for key, value in record.row().items()} for record in self]
        skipped = [dict(zip(("method", "engine", "reason"), row, strict=True)) for row in self.skipped]
        return json.dumps({"records": rows, "skipped": skipped}, indent=1) + "\n"

    def to_csv(self) -> str:
        """All rows as CSV text."""
        return _csv(self)

    def __str__(self) -> str:
        from mpgemm.reporting.report import Table

        columns = (
            "method",
            "engine",
            "passes",
            "bits",
            "relative_frobenius",
            "relative_inf",
            "componentwise",
            "bound",
            "max_ulp",
            "bits_equal",
            "overflow",
            "underflow",
        )
        blocks = []
        for case in dict.fromkeys(record.case for record in self):
            rows = [_table_row(record) for record in self if record.case == case]
            blocks.append(str(Table(case, columns, rows)))
        blocks += [f"left out: {method} on {engine}: {reason}" for method, engine, reason in self.skipped]
        return "\n\n".join(blocks)


def _table_row(record: ComparisonRecord) -> list:
    errors = record.errors
    return [
        record.method,
        record.engine,
        record.passes,
        record.bits,
        errors.relative_frobenius,
        errors.relative_inf,
        errors.componentwise,
        "-" if record.bound is None else record.bound,
        errors.max_ulp,
        errors.bits_equal,
        f"{record.overflow_a}, {record.overflow_b}",
        f"{record.underflow_a}, {record.underflow_b}",
    ]


def _plain(value):
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _csv(records: Sequence[ComparisonRecord]) -> str:
    text = io.StringIO()
    rows = [record.row() for record in records]
    writer = csv.DictWriter(text, list(rows[0]) if rows else ["case"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def compare(
    methods: Sequence[str | RecoveryMethod],
    engines: Sequence[str | Engine | None],
    a,
    b,
    c=None,
    *,
    case: str = "",
    bounds: bool = False,
    strict: bool = False,
    overflow: str | None = None,
    executor: Executor | None = None,
) -> Comparison:
    """Run every method on every engine that takes its words, and measure against the exact product.

    Parameters
    ----------
    methods : sequence of str or RecoveryMethod
        Names, with options as in "multiword:words=3,format=bf16".
    engines : sequence of str, Engine or None
        As for :func:`mpgemm.recovered_gemm`; a device stands for its instruction of the method's word format.
    a, b, c : array_like
        The matrices.
    case : str
        What the records call this input.
    bounds : bool
        Compute deterministic bounds, too.
    strict, overflow
        As for :func:`mpgemm.recovered_gemm`.
    executor : concurrent.futures.Executor, optional
        Runs the pairs side by side.

    Returns
    -------
    Comparison
        Records in the order of methods, then engines. Pairs whose engine does not take the words are in `skipped`.

    Raises
    ------
    ValueError
        If a name is unknown, no pair fits, or shapes do not match.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.random.default_rng(0).uniform(-1, 1, (4, 32)).astype(np.float32)
    >>> found = compare(["fp16", "ootomo"], ["v100", "a100"], a, a.T)
    >>> [(r.method, r.passes) for r in found]
    [('fp16', 1), ('fp16', 1), ('ootomo', 3), ('ootomo', 3)]
    """
    pairs, skipped = resolve_pairs(methods, engines)
    a, b = np.asarray(a), np.asarray(b)
    case = case or f"{a.shape[0]} x {a.shape[-1]} times {b.shape[0]} x {b.shape[-1]}"
    meter = ErrorMeter(a, b, c)
    arguments = [(*pair, a, b, c, meter, case, bounds, strict, overflow) for pair in pairs]
    if executor is None:
        records = [measure_pair(*values) for values in arguments]
    else:
        futures = [executor.submit(measure_pair, *values) for values in arguments]
        records = [future.result() for future in futures]
    return Comparison(records, skipped)


class Pair(NamedTuple):
    """A method, under the name it was asked for by, and an engine that takes its words."""

    name: str
    row: RecoveryMethod
    engine: Engine


def resolve_pairs(methods, engines) -> tuple[list[Pair], list[tuple[str, str, str]]]:
    """Methods and engines that fit each other, and (method, engine, reason) of those that do not.

    Parameters
    ----------
    methods, engines : sequence
        As for :func:`compare`.

    Raises
    ------
    ValueError
        If no method is given, a method is unknown, or no pair fits.
    """
    pairs, skipped = [], []
    if not methods:
        raise ValueError("no methods to compare: name at least one of mpgemm.list_methods()")
    for method in methods:
        row = get_method(method)
        name = method if isinstance(method, str) else row.name
        for engine in engines or (None,):
            try:
                pairs.append(Pair(name, row, resolve_engine(engine, row)))
            except UnsuitableEngine as error:
                skipped.append((name, getattr(engine, "label", str(engine)), str(error)))
    if not pairs:
        raise ValueError("no engine takes the words of any method: " + "; ".join(reason for *_, reason in skipped[:3]))
    return pairs, skipped


def measure_pair(
    name, row, engine, a, b, c, meter, case, bounds=False, strict=False, overflow=None
) -> ComparisonRecord:
    """The record of one pair on one input.

    Parameters
    ----------
    name, row, engine
        A :class:`Pair`.
    a, b, c : array_like
        As for :func:`compare`.
    meter : ErrorMeter
        Of the same matrices.
    case, bounds, strict, overflow
        As for :func:`compare`.

    Raises
    ------
    ValueError
        As :func:`mpgemm.recovered_gemm`.
    """
    start = time.perf_counter()
    result = recovered_gemm_report(a, b, c, row, engine, strict=strict, overflow=overflow)
    seconds = time.perf_counter() - start
    bound = relative_bound(a, b, c, row, engine) if bounds else None
    return ComparisonRecord(
        case,
        name,
        engine.label,
        result.passes,
        meter.measure(result.d),
        result.a.overflow,
        result.b.overflow,
        result.a.underflow,
        result.b.underflow,
        bound,
        seconds,
    )


def relative_bound(a, b, c, row, engine) -> float | None:
    """The largest deterministic bound over S = |A||B| + |C|, None where none is known for the core.

    Parameters
    ----------
    a, b, c, row, engine
        As for :func:`mpgemm.method_bound`.
    """
    try:
        bound = method_bound(a, b, c, row, engine).total
    except ValueError:
        return None
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        size = np.abs(np.asarray(a, np.float64)) @ np.abs(np.asarray(b, np.float64))
        size = size + (0 if c is None else np.abs(np.asarray(c, np.float64)))
        ratio = np.where(size > 0, bound / size, np.where(bound > 0, np.inf, 0.0))
    return float(np.max(ratio, initial=0.0))
