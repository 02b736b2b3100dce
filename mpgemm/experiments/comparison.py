"""Methods times engines on given matrices: which recovers how many bits, at how many passes."""

import csv
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

from mpgemm.exact.errors import ErrorReport
from mpgemm.experiments.cases import Case, given_case
from mpgemm.experiments.evaluate import Record, evaluate
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.recovery_methods import Pair, pair_method, resolve_pairs
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.reporting.report import Table
from tensorcore_models.engines.engine import Engine
from tensorcore_models.machine.fp_state import default_fp_state

#: Metrics of the error report that a row of the table has.
METRICS = ("relative_frobenius", "relative_inf", "normwise", "componentwise", "max_ulp", "mean_ulp", "bits_equal")


@dataclass(frozen=True)
class ComparisonRecord:
    """One method on one engine on one input.

    Attributes
    ----------
    case, method, engine : str
        Their names.
    passes : int
        Engine products of the full size.
    errors : ErrorReport
        Against the exact product.
    overflow_a, overflow_b, underflow_a, underflow_b : int
        Elements that left the range of the words (:class:`mpgemm.recovery.word_run.RangeCounts`).
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
        Pairs that were not run, and why.
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


@default_fp_state
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
    given = given_case(a, b, c, case)
    return compare_cases([given], methods, engines, bounds=bounds, strict=strict, overflow=overflow, executor=executor)


def compare_cases(
    cases: Sequence[Case],
    methods: Sequence[str | RecoveryMethod],
    engines: Sequence[str | Engine | None],
    *,
    bounds: bool = False,
    strict: bool = False,
    overflow: str | None = None,
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    executor: Executor | None = None,
) -> Comparison:
    """As :func:`compare` on several inputs, with a journal of finished results.

    Parameters
    ----------
    cases : sequence of Case
        The inputs.
    methods, engines, bounds, strict, overflow
        As for :func:`compare`.
    journal, progress, executor
        As for :func:`mpgemm.experiments.evaluate.evaluate`.

    Raises
    ------
    ValueError
        As :func:`compare`.
    """
    pairs, skipped = resolve_pairs(methods, engines)
    measured = {}
    for pair in pairs:
        method = pair_method(pair, bounds=bounds, strict=strict, overflow=overflow)
        measured[method.name] = (pair, method)
    records = evaluate(cases, [method for _, method in measured.values()], journal, progress, executor)
    return Comparison((_comparison_record(record, measured[record.method][0]) for record in records), skipped)


def _comparison_record(record: Record, pair: Pair) -> ComparisonRecord:
    facts = dict(record.details)
    bound = facts.pop("bound")
    return ComparisonRecord(
        case=record.case,
        method=pair.name,
        engine=pair.engine.label,
        errors=record.errors,
        seconds=record.seconds,
        bound=None if bound is None else float(bound),
        **facts,
    )
