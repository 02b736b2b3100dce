"""Methods times engines on given matrices: which recovers how many bits, at what cost, and which is enough.

Cost. One pass is an engine product of the full size. Its price in passes of fp16 is the width of its operands over 16 bits: on
NVIDIA's data sheets (A100, H100) TF32 runs at half the rate of FP16, INT8 and FP8 at twice; FP32 outside of the matrix units at
a sixteenth (A100: 19.5 of 312 TFLOP/s). Splits and sums outside are left out.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.exact.errors import ErrorReport
from mpgemm.experiments.cases import Case, given_case
from mpgemm.experiments.evaluate import Record, evaluate
from mpgemm.experiments.framework_names import framework_name
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.journal import Journal
from mpgemm.experiments.judging import LOST, bits_between, noise_bits
from mpgemm.experiments.methods import native_fp32
from mpgemm.experiments.recovery_methods import Pair, pair_method, resolve_pairs
from mpgemm.experiments.verdict import METRICS as JUDGED
from mpgemm.experiments.verdict import spelled_bits
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.reporting.report import Table, json_text
from tensorcore_models.engines.engine import Engine
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Columns of the table, those left out first at the end.
COLUMNS = (
    "method", "requested", "effective_bits", "passes", "cost", "relative_frobenius", "componentwise", "overflow",
    "underflow", "bound", "bits_equal", "relative_inf", "max_ulp", "engine",
)  # fmt: skip
#: Metrics of the error report that a row of the table has.
METRICS = ("relative_frobenius", "relative_inf", "normwise", "componentwise", "max_ulp", "mean_ulp", "bits_equal")


@dataclass(frozen=True, repr=False)
class ComparisonRecord(Result):
    """One method on one engine on one input.

    Attributes
    ----------
    case, method, engine : str
        Their names.
    requested : str
        The engine as it was asked for: a device has several.
    passes : int
        Engine products of the full size.
    cost : float
        The same in products of fp16; see the module.
    certainty : str
        How well the method is known (:class:`mpgemm.RecoveryMethod`).
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
    requested: str
    passes: int
    cost: float
    certainty: str
    errors: ErrorReport
    overflow_a: int
    overflow_b: int
    underflow_a: int
    underflow_b: int
    bound: float | None
    seconds: float

    @property
    def effective_bits(self) -> float:
        """-log2 of the relative error in the Frobenius norm."""
        return self.errors.effective_bits()

    def row(self) -> dict:
        """A flat row for tables."""
        errors = self.errors
        return {
            "case": self.case,
            "method": self.method,
            "engine": self.engine,
            "requested": self.requested,
            "m": errors.m,
            "n": errors.n,
            "k": errors.k,
            "passes": self.passes,
            "cost": self.cost,
            "certainty": self.certainty,
            "effective_bits": self.effective_bits,
            **{name: getattr(errors, name) for name in METRICS},
            "overflow_a": self.overflow_a,
            "overflow_b": self.overflow_b,
            "underflow_a": self.underflow_a,
            "underflow_b": self.underflow_b,
            "nonfinite": errors.nonfinite,
            "bound": self.bound,
            "seconds": self.seconds,
        }

    def to_rows(self) -> list[dict]:
        """One record."""
        return [self.row()]

    def to_json(self) -> str:
        """The row as JSON text; what is not finite is a string."""
        return json_text(self.row())

    def to_csv(self) -> str:
        """The row as CSV text with a header line."""
        return _csv([self])

    def __repr__(self) -> str:
        return f"<ComparisonRecord {self}>"

    def __str__(self) -> str:
        return f"{self.case}: {self.method} on {self.engine}: {self.effective_bits:.2f} bits, {self.passes} passes"


@dataclass(frozen=True)
class Recommendation:
    """The cheapest method that is good enough on one engine and input.

    Attributes
    ----------
    case, engine : str
        The engine as it was asked for.
    wanted : str
        What is enough: "FP32", or a number of bits.
    method : str or None
        None where no method compared reaches it.
    best : str
        The method with the smallest error there.
    """

    case: str
    engine: str
    wanted: str
    method: str | None
    best: str


class Comparison(list, Result):
    """A list of :class:`ComparisonRecord`, with the pairs that could not run.

    Attributes
    ----------
    skipped : tuple of (method, engine, reason)
        Pairs that were not run, and why.
    fp32 : dict of str to ErrorReport
        NumPy's FP32 product of each case.
    """

    def __init__(
        self,
        records: Iterable[ComparisonRecord] = (),
        skipped: Sequence[tuple[str, str, str]] = (),
        fp32: Mapping[str, ErrorReport] | None = None,
    ):
        super().__init__(records)
        self.skipped = tuple(skipped)
        self.fp32 = dict(fp32 or {})

    def ranked(self, case: str) -> list[ComparisonRecord]:
        """The records of one case, the smallest error first; of equal errors the cheaper."""
        return sorted((r for r in self if r.case == case), key=lambda r: (r.errors.relative_frobenius, r.cost))

    def recommendations(self, bits: float | None = None) -> list[Recommendation]:
        """For each case and engine the cheapest method that reaches FP32, and one for `bits` where they are given.

        FP32 is reached where neither the norm nor a single result is worse than NumPy's FP32 product by more than two FP32
        products of one input may differ (:mod:`mpgemm.experiments.judging`). Where FP32 itself loses the product,
        there is nothing to reach.
        """
        found = []
        for case in dict.fromkeys(record.case for record in self):
            ranked = self.ranked(case)
            for engine in dict.fromkeys(record.requested for record in ranked):
                here = [record for record in ranked if record.requested == engine]
                meaningful = case in self.fp32 and not self.fp32_lost(case)
                wanted = {"FP32": [r for r in here if self.reaches_fp32(r)]} if meaningful else {}
                if bits is not None:
                    wanted[f"{bits:g} bits"] = [r for r in here if r.effective_bits >= bits]
                for what, good in wanted.items():
                    cheapest = min(good, key=lambda r: r.cost).method if good else None
                    found.append(Recommendation(case, engine, what, cheapest, here[0].method))
        return sorted(found, key=lambda r: (r.case, r.engine))

    def fp32_lost(self, case: str) -> bool:
        """Whether NumPy's FP32 product of a case is lost: its operands or results leave FP32's range."""
        return self.fp32[case].normwise > LOST

    def reaches_fp32(self, record: ComparisonRecord) -> bool:
        """Whether a record is as accurate as NumPy's FP32 product of its case."""
        baseline, noise = self.fp32[record.case], noise_bits(record.errors.m * record.errors.n)
        return all(bits_between(getattr(record.errors, m), getattr(baseline, m)) >= -noise[m] for m in JUDGED)

    def to_json(self, bits: float | None = None) -> str:
        """All rows as JSON text."""
        return json_text(
            {
                "records": [record.row() for record in self],
                "fp32": {case: errors.to_dict() for case, errors in self.fp32.items()},
                "recommendations": [asdict(row) for row in self.recommendations(bits)],
                "skipped": [dict(zip(("method", "engine", "reason"), row, strict=True)) for row in self.skipped],
            }
        )

    def to_csv(self) -> str:
        """All rows as CSV text."""
        return _csv(self)

    def to_rows(self) -> list[dict]:
        """One for each record."""
        return [record.row() for record in self]

    def tables(self) -> list[Table]:
        """A table for each case, the smallest error first."""
        return [
            Table(
                case,
                ("rank", *COLUMNS),
                [
                    [rank, *(_cell(record, name) for name in COLUMNS)]
                    for rank, record in enumerate(self.ranked(case), 1)
                ],
            )
            for case in dict.fromkeys(record.case for record in self)
        ]

    def remarks(self, case: str, bits: float | None = None) -> list[str]:
        """What the table of a case says, in sentences."""
        lines = []
        if case in self.fp32:
            lines.append(f"FP32 here (NumPy): {spelled_bits(self.fp32[case].effective_bits())}.")
            if self.fp32_lost(case):
                lines.append("FP32 itself loses this product, which leaves its range: scale A or B first.")
        for row in self.recommendations(bits):
            if row.case != case:
                continue
            by_method = {r.method: r for r in self if (r.case, r.requested) == (case, row.engine)}
            if row.method is None:
                best = by_method[row.best]
                lines.append(
                    f"{row.engine}: none reaches {row.wanted}; the best is {row.best} "
                    f"({spelled_bits(best.effective_bits)})."
                )
                continue
            record = by_method[row.method]
            known = " (a reconstruction)" if record.certainty == "reconstruction" else ""
            passes = f"{record.passes} pass{'es' * (record.passes != 1)}"
            lines.append(
                f"{row.engine}: the cheapest that reaches {row.wanted} is {row.method}{known}: {passes}, "
                f"{spelled_bits(record.effective_bits)}."
            )
        return lines

    def notes(self) -> list[str]:
        """What names mean, which orders are ours, and what was left out."""
        lines = []
        for name in dict.fromkeys(record.method for record in self):
            if row := framework_name(name):
                lines.append(f"{name} is {row.method} ({row.source}).")
        if any(record.certainty == "library practice" and "restart_every" not in record.method for record in self):
            lines.append(
                "The order of bf16x3 to bf16x9 and tf32x3 is ours, one chain in the core; libraries publish none. "
                "Added outside every 16 products (bf16x9:restart_every=16) they reach FP32 on A100 and H100."
            )
        return [*lines, *(f"Left out: {method} on {engine}: {reason}" for method, engine, reason in self.skipped)]

    def __repr__(self) -> str:
        return f"<Comparison: {len(self)} records, {len(self.skipped)} left out>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None, bits: float | None = None) -> str:
        """Tables and what they say, at most `width` columns wide."""
        blocks = ["\n".join([table.text(width), *self.remarks(table.title, bits)]) for table in self.tables()]
        return "\n\n".join([*blocks, "\n".join(self.notes())]).strip()

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def _cell(record: ComparisonRecord, column: str):
    """A cell of the table: the field of the row, both operands' counts in one."""
    row = record.row()
    if column == "method" and record.certainty == "reconstruction":
        return f"{record.method} [reconstruction]"
    if column in ("overflow", "underflow"):
        return f"{row[f'{column}_a']}, {row[f'{column}_b']}"
    return "-" if row[column] is None else row[column]


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
        As for :func:`mpgemm.recovered_gemm`; a device means its instruction of the method's word format.
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
    methods_run = [_FP32, *(method for _, method in measured.values())]
    records = evaluate(cases, methods_run, journal, progress, executor)
    fp32 = {record.case: record.errors for record in records if record.method == _FP32.name}
    found = [_comparison_record(r, measured[r.method][0]) for r in records if r.method in measured]
    empty = [record.case for record in found if 0 in (record.errors.m, record.errors.n)]
    if empty:
        raise ValueError(f"{empty[0]}: the product is empty, so there is nothing to compare")
    return Comparison(found, skipped, fp32)


def _fp32_product(a, b, c=None):
    """NumPy's FP32 product, and C added to it in FP32."""
    product = native_fp32(*(np.asarray(x, np.float32) for x in (a, b)))
    with np.errstate(over="ignore", invalid="ignore"):
        return product if c is None else product + np.asarray(c, np.float32)


_FP32 = GemmMethod("fp32", "FP32 SGEMM (NumPy)", _fp32_product, takes_addend=True)


def _cost(pair: Pair) -> float:
    """Passes in products of fp16: the width of the operands in memory over 16 bits, 8 times that outside of matrix units."""
    width = np.dtype(pair.engine.formats[0].container).itemsize / 2
    return pair.row.passes * width * (8 if pair.engine.label.startswith("ieee:fp") else 1)


def _comparison_record(record: Record, pair: Pair) -> ComparisonRecord:
    facts = dict(record.details)
    bound = facts.pop("bound")
    return ComparisonRecord(
        case=record.case,
        method=pair.name,
        engine=pair.engine.label,
        requested=pair.requested,
        cost=_cost(pair),
        certainty=pair.row.certainty,
        errors=record.errors,
        seconds=record.seconds,
        bound=None if bound is None else float(bound),
        **facts,
    )
