"""Compares methods on engines on given matrices: how many bits each recovers, and at which cost."""

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict
from functools import partial
from statistics import median

from mpgemm.exact.conditioning import Conditioning
from mpgemm.exact.errors import METRICS, ErrorReport
from mpgemm.experiments import recommending
from mpgemm.experiments.cases import Case, distinct_cases, given_case, stacks_of
from mpgemm.experiments.comparison_record import ComparisonRecord, Runs, records_table
from mpgemm.experiments.costs import check_rates, rate_of
from mpgemm.experiments.cube_bounds import sgemm_bound
from mpgemm.experiments.evaluate import Record, conditions_of, evaluate, not_held
from mpgemm.experiments.gemm_method import GemmMethod
from mpgemm.experiments.methods import FP32_CHAIN, fp32_baseline, native_fp32, with_addend
from mpgemm.experiments.not_finite import NotFinite, not_finite
from mpgemm.experiments.outcome import Context
from mpgemm.experiments.recommending import OneInput, Recommendation
from mpgemm.experiments.recovery_methods import MethodOnEngine, pair_method, resolve_pairs
from mpgemm.recovery.framework_names import framework_name
from mpgemm.recovery.methods import RecoveryMethod
from mpgemm.recovery.rows import TF32_NOTE
from mpgemm.reporting.report import Table, json_text
from tensorcore_models.engines.engine import Engine
from tensorcore_models.machine.fp_state import default_fp_state
from tensorcore_models.results import Result

#: Columns of the table; where it is too wide, the last columns are left out first.
COLUMNS = (
    "method", "requested", "effective_bits", "passes", "rate", "cost", "relative_frobenius", "componentwise", "grade",
    "overflow", "underflow", "bound", "bits_equal", "relative_inf", "rowwise", "max_ulp", "engine",
)  # fmt: skip
COST = (
    "rate: dense peak of the device for the operands, TFLOP/s or TOP/s; cost: passes over rate, in ms for a product of 10^12 "
    "operations (2 m k n). Splits, sums outside and memory are left out."
)


class Comparison(list, Result):
    """`Comparison` is a list of :class:`ComparisonRecord`, with the pairs of method and engine that could not run.

    Cases that differ only in their seed form a group.

    Attributes
    ----------
    skipped : tuple of (method, engine, reason)
        Pairs of method and engine that could not run, with the reason.
    fp32, fp32_numpy : dict of str to ErrorReport
        For each case, errors of the FP32 baseline (:func:`mpgemm.experiments.methods.fp32_baseline`) and of NumPy's FP32
        product on this machine.
    not_finite : dict of str to NotFinite
        Numbers of infinite and NaN elements of the operands, by case; cases with finite operands are left out.
    conditions : dict of str to Conditioning
        Condition number of the product, by case.
    inputs : dict of str to str
        Note on the input, by group.
    stacks : set of str
        Groups that are stacks of matrices instead of seeds: each pair of matrices (A, B) of the stack is a case. Each pair is
        judged by itself, and the worst pair decides.
    """

    def __init__(
        self,
        records: Iterable[ComparisonRecord] = (),
        skipped: Sequence[tuple[str, str, str]] = (),
        fp32: Mapping[str, ErrorReport] | None = None,
        not_finite: Mapping[str, NotFinite] | None = None,
        inputs: Mapping[str, str] | None = None,
        fp32_numpy: Mapping[str, ErrorReport] | None = None,
        conditions: Mapping[str, Conditioning] | None = None,
        stacks: Iterable[str] = (),
    ):
        super().__init__(records)
        self.skipped = tuple(skipped)
        self.fp32 = dict(fp32 or {})
        self.fp32_numpy = dict(fp32_numpy or {})
        self.conditions = dict(conditions or {})
        self.not_finite = dict(not_finite or {})
        self.inputs = dict(inputs or {})
        self.stacks = frozenset(stacks)

    def ranked(self, case: str) -> list[ComparisonRecord]:
        """Return the records of a case by ascending error; equal errors are ordered by cost, with unknown costs last."""
        mine = (record for record in self if record.case == case)
        return sorted(mine, key=lambda r: (r.errors.relative_frobenius, float("inf") if r.cost is None else r.cost))

    def runs(self, group: str) -> list[Runs]:
        """Return the records of one input, grouped by method and engine, by ascending median error over the seeds.

        If the input is a stack of matrices, the error of its worst pair (A, B) replaces the median.
        """
        found: dict[tuple, list[ComparisonRecord]] = {}
        for record in self:
            if record.group == group:
                found.setdefault((record.method, record.engine, record.requested), []).append(record)
        together = [Runs(tuple(members)) for members in found.values()]

        def order(runs: Runs) -> tuple[float, float]:
            error, cost = runs.spread("relative_frobenius"), runs.first.cost
            return error.high if group in self.stacks else error.median, math.inf if cost is None else cost

        return sorted(together, key=order)

    def recommendations(self, bits: float | None = None) -> list[Recommendation]:
        """Return the cheapest method that is as accurate as FP32, for each input and engine.

        If `bits` is given, the cheapest method with at least that many bits is returned, too.

        A method is as accurate as FP32 if it is behind the FP32 baseline by at most 0.75 bits in norm and 1.5 bits in the
        largest element. The errors of two FP32 products of one input differ by as much (:mod:`mpgemm.experiments.judging`).
        With three or more seeds, the 95 % confidence interval of the mean difference decides.

        No method is recommended if operands are not finite, or if FP32's accuracy is no sensible goal, for example because
        the results cancel (:attr:`mpgemm.experiments.recommending.OneInput.why_no_fp32`).
        """
        found = [row for group in self.groups for row in recommending.recommendations(self._input(group), bits)]
        return sorted(found, key=lambda row: (row.case, row.engine))

    def fp32_error(self, group: str, metric: str) -> float:
        """Return the FP32 baseline's error `metric` on one input, the median over the seeds; NaN if it is not known."""
        cases = {record.case for record in self if record.group == group}
        errors = [getattr(report, metric) for case, report in self.fp32.items() if case in cases]
        return median(errors) if errors else math.nan

    def _input(self, group: str) -> OneInput:
        cases = list(dict.fromkeys(record.case for record in self if record.group == group))
        beyond = next((self.not_finite[case] for case in cases if case in self.not_finite), None)
        fp32, numpy = ({case: of[case] for case in cases if case in of} for of in (self.fp32, self.fp32_numpy))
        known = [self.conditions[case] for case in cases if case in self.conditions]
        worst = max(known, key=lambda condition: condition.norm, default=None)
        return OneInput(group, self.runs(group), fp32, beyond, numpy, worst, group in self.stacks)

    @property
    def cases(self) -> list[str]:
        """Return the names of the cases, in order."""
        return list(dict.fromkeys(record.case for record in self))

    @property
    def groups(self) -> list[str]:
        """Return the names of the inputs, in order; cases that differ only in their seed are one input."""
        return list(dict.fromkeys(record.group for record in self))

    def to_dict(self, bits: float | None = None) -> dict:
        """Return the records, baselines, recommendations and notes as a dict of JSON-compatible values."""
        return {
            "records": self.to_rows(),
            "fp32": {case: errors.to_dict() for case, errors in self.fp32.items()},
            "fp32_numpy": {case: errors.to_dict() for case, errors in self.fp32_numpy.items()},
            "conditions": {case: asdict(condition) for case, condition in self.conditions.items()},
            "recommendations": [asdict(row) for row in self.recommendations(bits)],
            "remarks": {group: self.remarks(group, bits) for group in self.groups},
            "notes": self.notes(),
            "skipped": [dict(zip(("method", "engine", "reason"), row, strict=True)) for row in self.skipped],
        }

    def to_json(self, bits: float | None = None) -> str:
        """Return the result of :meth:`to_dict` as JSON text."""
        return json_text(self.to_dict(bits))

    def table(self) -> Table:
        """Return one table with a row for each record."""
        return records_table(self)

    def to_csv(self) -> str:
        """Return the table of all records as CSV text."""
        return self.table().to_csv()

    def to_rows(self) -> list[dict]:
        """Return one row for each record."""
        return [record.row() for record in self]

    def tables(self) -> list[Table]:
        """Return a table for each input, with its rows by ascending error.

        Engines with the same arithmetic and rate share a row.
        """
        tables = []
        for group in self.groups:
            alike = _alike(self.runs(group))
            rows = [
                [rank, *(_cell(members[0], name, [runs.first.requested for runs in members]) for name in COLUMNS)]
                for rank, members in enumerate(alike, 1)
            ]
            seeds = len(alike[0][0].records)
            several = "pairs" if group in self.stacks else "seeds"
            title = f"{group}, {seeds} {several}: medians (bits: smallest to largest)" if seeds > 1 else group
            tables.append(Table(title, ("rank", *COLUMNS), rows))
        return tables

    def remarks(self, group: str, bits: float | None = None) -> list[str]:
        """Return sentences that sum up the table of an input, with the recommendation first."""
        return recommending.remarks(self._input(group), bits)

    def notes(self) -> list[str]:
        """Return notes on names, costs, the orders of summation that this package chose, and the pairs that were left out."""
        lines = [COST, *self._sources()]
        for name in dict.fromkeys(record.method for record in self):
            if row := framework_name(name.partition(":")[0]):
                lines.append(f"{name} is {row.method} ({row.source}): {row.order}.")
        if any(record.certainty == "library practice" and "restart_every" not in record.method for record in self):
            lines.append(
                "This package chose the order of bf16x3 to bf16x9 and tf32x3: one chain in the core. CUTLASS publishes an "
                "order for BF16x9 on units that scale their accumulator (cutlass_bf16x9, b200/tcgen05), and one for 3xTF32 "
                "(cutlass_3xtf32). If sums are added outside every 16 products (bf16x9:restart_every=16), these methods reach "
                "FP32 on A100 and H100 on uniform and normal data (docs/answers.md)."
            )
        if any(self._rounds_to_tf32(record) for record in self):
            lines.append(f"{TF32_NOTE}.")
        if any(record.engine.startswith("ascend") for record in self):
            lines.append(
                "The model of the Ascend cube rounds after every product, as PTO-ISA's ADR-0047 states. Figure 9 of the "
                "SGEMM-cube paper fits one rounding per step, which mpgemm evaluate measures, too (docs/results.md)."
            )
        chosen = {record.count: None for record in self if record.count}
        lines += [f"{reason}." for reason in chosen]
        lines += [f"{text}." for text in dict.fromkeys(record.sums for record in self) if text]
        lines += not_held((r.group, f"{r.method} on {r.requested}", r.errors, r.held) for r in self)
        lines += [f"Left out: {method} on {engine}: {reason}" for method, engine, reason in self.skipped]
        return [*lines, *(f"{group}: {note}" for group, note in self.inputs.items())]

    @staticmethod
    def _rounds_to_tf32(record: ComparisonRecord) -> bool:
        return record.operands == "tf32" and record.passes == 1

    def _sources(self) -> list[str]:
        """Return sentences on the sources of the rates, and on engines without a rate."""
        stated: dict[str, list[str]] = {}
        for record in self:
            what = record.rate_source or f"no data sheet states it for {record.operands}, so no cost is given"
            stated.setdefault(what, []).append(record.requested)
        return [f"Rate of {', '.join(dict.fromkeys(names))}: {what}." for what, names in stated.items()]

    def __repr__(self) -> str:
        return f"<Comparison: {len(self)} records, {len(self.skipped)} left out>"

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int | None = None, bits: float | None = None) -> str:
        """Return text with the recommendation for each input and its tables, at most `width` columns wide."""
        said = {group: self.remarks(group, bits) for group in self.groups}
        verdicts = [
            "\n".join([f"Verdict, {group}:", *(f"  {x}" for x in lines)]) for group, lines in said.items() if lines
        ]
        tables = [table.text(width) for table in self.tables()]
        return "\n\n".join([*verdicts, *tables, "\n".join(self.notes())]).strip()

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


def _alike(found: Sequence[Runs]) -> list[list[Runs]]:
    """Return the runs in groups of one method, arithmetic and rate."""
    groups: dict[tuple, list[Runs]] = {}
    for runs in found:
        groups.setdefault((runs.first.method, runs.first.engine, runs.first.rate), []).append(runs)
    return list(groups.values())


def _cell(runs: Runs, column: str, requested: Sequence[str]):
    """Return a cell of the table; the counts of both operands share a cell."""
    row, record = runs.row(), runs.first
    if column == "method" and record.certainty == "reconstruction":
        return f"{record.method} [reconstruction]"
    if column == "requested":
        return ", ".join(requested)
    if column in ("overflow", "underflow"):
        return f"{row[f'{column}_a']}, {row[f'{column}_b']}"
    if record.results_not_finite and column in ("effective_bits", *METRICS):
        return "-"
    if column == "effective_bits" and len(runs.records) > 1:
        return runs.bits.text()
    return "-" if row[column] is None else row[column]


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
    rates: Mapping[str, float] | None = None,
    executor: Executor | None = None,
) -> Comparison:
    """Run every method on every engine that accepts its words, and measure the errors against the exact product.

    Parameters
    ----------
    methods : sequence of str or RecoveryMethod
        Methods by name, with options such as "multiword:words=3,format=bf16", or as objects.
    engines : sequence of str, Engine or None
        Engines as in :func:`mpgemm.recovered_gemm`; a device stands for its instruction of the method's word format.
    a, b, c : array_like, shapes (m, k), (k, n), (m, n)
        The operands.
    case : str
        Name of this input in the records.
    bounds : bool
        Whether to compute deterministic bounds, too.
    strict, overflow
        See :func:`mpgemm.recovered_gemm`.
    rates : mapping of str to float, optional
        TFLOP/s of engines, by the name in `engines` or by the engine's label; they replace the data sheet's rates. An engine
        without a rate gets no cost.
    executor : concurrent.futures.Executor, optional
        Executor that runs the pairs in parallel.

    Returns
    -------
    Comparison
        Records in the order of methods, then engines. A method and an engine that does not accept its words
        have no record; the field `skipped` lists these pairs.

    Raises
    ------
    ValueError
        If a name is unknown, no engine fits a method, shapes do not match, the product is empty, or a rate is given for an
        engine that is not compared.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.random.default_rng(0).uniform(-1, 1, (4, 32)).astype(np.float32)
    >>> found = compare(["fp16", "ootomo"], ["v100", "a100"], a, a.T)
    >>> [(r.method, r.passes) for r in found]
    [('fp16', 1), ('fp16', 1), ('ootomo', 3), ('ootomo', 3)]
    """
    given = given_case(a, b, c, case)
    return compare_cases(
        [given], methods, engines, bounds=bounds, strict=strict, overflow=overflow, rates=rates,
        context=Context(executor=executor),
    )  # fmt: skip


def compare_cases(
    cases: Sequence[Case],
    methods: Sequence[str | RecoveryMethod],
    engines: Sequence[str | Engine | None],
    *,
    bounds: bool = False,
    strict: bool = False,
    overflow: str | None = None,
    rates: Mapping[str, float] | None = None,
    context: Context | None = None,
) -> Comparison:
    """Return the result of :func:`compare` on several inputs, with the journal, progress and executor of a context."""
    context = context or Context()
    cases = distinct_cases(cases)
    pairs, skipped = resolve_pairs(methods, engines)
    rates = dict(rates or {})
    check_rates(rates, pairs)
    beyond = {case.label: not_finite(case) for case in cases}
    measured: dict[str, tuple[GemmMethod, list[MethodOnEngine]]] = {}
    for pair in pairs:
        method = pair_method(pair, bounds=bounds, strict=strict, overflow=overflow)
        of_method = measured.setdefault(method.name, (method, []))[1]
        if pair.requested not in [other.requested for other in of_method]:
            of_method.append(pair)
    methods_run = [_FP32, _FP32_NUMPY, *(method for method, _ in measured.values())]
    records = evaluate(cases, methods_run, context.journal, context.progress, context.executor)
    fp32, native = (
        {record.case: record.errors for record in records if record.method == method.name}
        for method in (_FP32, _FP32_NUMPY)
    )
    found = [
        _comparison_record(record, pair, rates, beyond[record.case])
        for record in records
        if record.method in measured
        for pair in measured[record.method][1]
    ]
    notes = {case.group: case.note for case in cases if case.note}
    return Comparison(
        found,
        skipped,
        fp32,
        {case: facts for case, facts in beyond.items() if facts.results},
        notes,
        native,
        conditions_of(records),
        stacks_of(cases),
    )


_FP32, _FP32_NUMPY = (
    GemmMethod(name, label, partial(with_addend, multiply), takes_addend=True, bound=partial(sgemm_bound, "fp32"))
    for name, label, multiply in (
        ("fp32", f"FP32, chains of {FP32_CHAIN}", fp32_baseline),
        ("fp32_numpy", "FP32 SGEMM (NumPy)", native_fp32),
    )
)


def _comparison_record(
    record: Record, pair: MethodOnEngine, rates: Mapping[str, float], beyond: NotFinite
) -> ComparisonRecord:
    facts = dict(record.details)
    padding = facts.pop("padding")
    bound, rate = facts.pop("bound"), rate_of(pair, rates, facts["operands"])
    return ComparisonRecord(
        case=record.case,
        group=record.group,
        method=pair.name,
        engine=pair.engine.label,
        requested=pair.requested,
        rate=None if rate is None else rate.tflops,
        rate_source="" if rate is None else rate.source,
        cost=None if rate is None else rate.milliseconds(facts["passes"] * padding),
        certainty=pair.row.certainty,
        errors=record.errors,
        bound=None if bound is None else float(bound),
        results_not_finite=beyond.results,
        held=record.held,
        **facts,
    )
