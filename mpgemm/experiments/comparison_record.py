"""Holds the records of a comparison, each of one method on one engine on one input."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mpgemm.exact.errors import GRADES, METRICS, ErrorReport
from mpgemm.experiments.spread import SeedSpread
from mpgemm.experiments.verdict import spelled_bits
from mpgemm.reporting.report import Table, json_text
from tensorcore_models.results import Result

#: Columns of a record's row; the columns in :data:`_OF_ERRORS` come from the error report.
_COLUMNS = (
    "case", "group", "method", "engine", "requested", "operands", "m", "n", "k", "passes", "rate", "rate_source", "cost",
    "certainty", "effective_bits", *METRICS, "grade", "overflow_a", "overflow_b", "underflow_a", "underflow_b", "nonfinite",
    "results_not_finite", "bound", "held", "count", "sums",
)  # fmt: skip
_OF_ERRORS = {"m", "n", "k", *METRICS, "grade", "nonfinite"}


@dataclass(frozen=True, repr=False)
class ComparisonRecord(Result):
    """`ComparisonRecord` holds the result of one method on one engine on one input.

    Attributes
    ----------
    case, group, method, engine : str
        Names of the case, its group, the method and the engine; cases of one group differ only in their seed.
    requested : str
        Engine as the caller named it, such as "a100" for one of that device's engines.
    operands : str
        Format of the engine's operands.
    passes : int
        Number of engine products of the full size.
    rate : float or None
        Dense peak of the device for the engine's operands, TFLOP/s; None if no source states it.
    rate_source : str
        The data sheet that states the rate, or "given" if the caller gave the rate.
    cost : float or None
        Milliseconds of a product of 10^12 operations, from `passes` and `rate`; None if the rate is None.
    certainty : str
        Evidence for the method's formula: the field `certainty` of :class:`mpgemm.RecoveryMethod`.
    errors : ErrorReport
        Errors against the exact product.
    overflow_a, overflow_b, underflow_a, underflow_b : int
        Numbers of elements of A and of B that overflow or underflow the words (:class:`mpgemm.recovery.word_run.RangeCounts`).
    bound : float or None
        Deterministic bound of the componentwise error, None if it was not requested or is not known.
    held : int
        Number of results with a finite certified bound; all of them are within it.
    results_not_finite : int
        Number of results that are infinite or NaN in exact arithmetic, because operands are infinite or NaN.
    count : str
        Reason for the number of slices or moduli; empty if the number does not depend on the matrices.
    sums : str
        Sentence on how many products of words the engine sums exactly; empty if the method does not depend on this number.
    """

    case: str
    method: str
    engine: str
    requested: str
    operands: str
    passes: int
    rate: float | None
    rate_source: str
    cost: float | None
    certainty: str
    errors: ErrorReport
    overflow_a: int
    overflow_b: int
    underflow_a: int
    underflow_b: int
    bound: float | None
    results_not_finite: int = 0
    count: str = ""
    sums: str = ""
    group: str = ""
    held: int = 0

    @property
    def effective_bits(self) -> float:
        """Return -log2 of the relative error in the Frobenius norm; NaN if exact results are not finite."""
        return float("nan") if self.results_not_finite else self.errors.effective_bits()

    def row(self) -> dict:
        """Return the record as one flat row for tables, a dict of column names and values."""
        return {name: getattr(self.errors if name in _OF_ERRORS else self, name) for name in _COLUMNS}

    def to_rows(self) -> list[dict]:
        """Return a list with the flat row of the record."""
        return [self.row()]

    def to_json(self) -> str:
        """Return the row as JSON text; infinities and NaN are strings."""
        return json_text(self.row())

    def to_csv(self) -> str:
        """Return the row as CSV text with a header line."""
        return records_table([self]).to_csv()

    def __repr__(self) -> str:
        return f"<ComparisonRecord {self}>"

    def __str__(self) -> str:
        return f"{self.case}: {self.method} on {self.engine}: {spelled_bits(self.effective_bits)}, {self.passes} passes"


@dataclass(frozen=True)
class Runs:
    """`Runs` holds the records of one method on one engine over the seeds of an input."""

    records: tuple[ComparisonRecord, ...]

    def of_case(self, case: str) -> "Runs":
        """Return the runs of one case alone."""
        return Runs(tuple(record for record in self.records if record.case == case))

    @property
    def first(self) -> ComparisonRecord:
        """Return the first record, for the names, passes and cost that all seeds share."""
        return self.records[0]

    @property
    def bits(self) -> SeedSpread:
        """Return the spread of the effective bits, NaN if exact results are not finite."""
        found = [record.effective_bits for record in self.records]
        return (
            SeedSpread(math.nan, math.nan, math.nan, len(found))
            if any(map(math.isnan, found))
            else SeedSpread.of_bits(found)
        )

    def spread(self, metric: str) -> SeedSpread:
        """Return the spread of a metric of the error reports over the seeds."""
        return SeedSpread.of([getattr(record.errors, metric) for record in self.records])

    def row(self) -> dict:
        """Return the row of the first record, with medians of the errors, the largest counts and the worst grade."""
        rows = [record.row() for record in self.records]
        medians = {name: self.spread(name).median for name in METRICS}
        counts = {
            name: max(row[name] for row in rows) for name in rows[0] if name.startswith(("overflow", "underflow"))
        }
        grade = max((record.errors.grade for record in self.records), key=[*GRADES, "-"].index)
        return {**rows[0], **medians, **counts, "grade": grade, "effective_bits": self.bits.median}


def records_table(records: Sequence[ComparisonRecord]) -> Table:
    """Return a table of the rows of records."""
    return Table("", _COLUMNS, [list(record.row().values()) for record in records])
