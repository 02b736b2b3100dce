"""Reports emulated calls for each call site: sizes, engines, errors, and elements on which two engines differ."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from mpgemm.exact.product import exact_gemm
from mpgemm.reporting.report import Table, json_text


@dataclass(frozen=True)
class Site:
    """`Site` identifies calls that share one row of a report.

    Attributes
    ----------
    site : str
        Place of the call: path of the module, or name of the kernel.
    phase : str
        Pass in which it ran: "forward" or "backward".
    op : str
        Operation of the library.
    batch, m, k, n : int
        Number of products of one call, and their sizes.
    formats : str
        Formats of operands and result, as text.
    engines, orders : tuple of str
        Engine and order of k for each emulated device.
    """

    site: str
    phase: str
    op: str
    batch: int
    m: int
    k: int
    n: int
    formats: str
    engines: tuple[str, ...]
    orders: tuple[str, ...]


@dataclass(frozen=True)
class CallRow:
    """`CallRow` is one row of a report.

    Attributes
    ----------
    site : Site
        Call site, operation, sizes, formats and engines.
    calls, elements : int
        Number of calls, and of elements of all their results.
    error_fp64 : float or None
        Error ||D - C||_F / ||C||_F over all calls, where D are the first engine's products as the library gets them, and C the
        exact products. Differences are exact and rounded once to FP64. None if not measured.
    error_fp32 : float or None
        Difference ||D - F||_F / ||F||_F from the products F that NumPy forms in FP32 on this machine.
    fp32_error : float or None
        Error ||F - C||_F / ||C||_F of FP32 itself on these operands.
    differing : tuple of int
        For each further engine, number of elements whose bits differ from the first engine's.
    """

    site: Site
    calls: int
    elements: int
    error_fp64: float | None
    error_fp32: float | None
    fp32_error: float | None
    differing: tuple[int, ...]

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {**asdict(self.site), **{k: v for k, v in asdict(self).items() if k != "site"}}


@dataclass(frozen=True)
class OperationRow:
    """`OperationRow` counts calls of one operation whose bits have the same basis.

    Attributes
    ----------
    op, basis : str
        Operation, and basis of its bits: "exact", "IEEE 754", "recorded", "inferred: REASON" or "native: REASON".
    calls, elements : int
        Number of calls, and of elements of all their results.
    """

    op: str
    basis: str
    calls: int
    elements: int


@dataclass(frozen=True)
class Report:
    """`Report` lists emulated calls, and counts calls that ran natively.

    Attributes
    ----------
    engines : tuple of str
        Emulated devices or engines; the program got the results of the first.
    rows : tuple of CallRow
        Rows in the order in which their sites first ran.
    fallbacks : dict of str to int
        Number of calls that ran natively because `strict` was off, by operation and reason.
    notes : tuple of str
        Remarks, such as the path that attention took.
    operations : tuple of OperationRow
        All operations that ran, with products, if `libraries` was named; else empty.
    """

    engines: tuple[str, ...]
    rows: tuple[CallRow, ...]
    fallbacks: dict[str, int]
    notes: tuple[str, ...] = ()
    operations: tuple[OperationRow, ...] = ()

    @property
    def bases(self) -> dict[str, int]:
        """Number of calls for each basis: exact, IEEE 754, recorded, inferred, native."""
        counts: dict[str, int] = {}
        for row in self.operations:
            kind = row.basis.partition(":")[0]
            counts[kind] = counts.get(kind, 0) + row.calls
        return counts

    @property
    def differing(self) -> tuple[CallRow, ...]:
        """Rows in which the bits of a further engine differ from the first engine's."""
        return tuple(row for row in self.rows if any(row.differing))

    def to_dict(self) -> dict:
        """Return the content as a dict of JSON-compatible values."""
        return {
            "engines": list(self.engines),
            "rows": [row.to_dict() for row in self.rows],
            "fallbacks": dict(self.fallbacks),
            "notes": list(self.notes),
            "operations": [asdict(row) for row in self.operations],
        }

    def to_json(self) -> str:
        """Return the result of :meth:`to_dict` as JSON text."""
        return json_text(self.to_dict())

    def table(self) -> Table:
        """Return the rows as a table to print."""
        measured = any(row.error_fp64 is not None for row in self.rows)
        headings = ["call site", "phase", "operation", "calls", "m x k x n", "formats", "engine", "order of k"]
        headings += ["error", "vs FP32", "FP32's own error"] if measured else []
        headings += [f"differs on {name}" for name in self.engines[1:]]
        rows = []
        for row in self.rows:
            s = row.site
            shape = f"{s.m} x {s.k} x {s.n}"
            shape = shape if s.batch == 1 else f"{s.batch} x ({shape})"
            cells: list = [s.site, s.phase, s.op, row.calls, shape, s.formats, s.engines[0], s.orders[0]]
            if measured:
                cells += [_cell(row.error_fp64), _cell(row.error_fp32), _cell(row.fp32_error)]
            cells += [f"{count} of {row.elements}" if count else "-" for count in row.differing]
            rows.append(cells)
        return Table(f"emulated on {' and '.join(self.engines)}", headings, rows)

    def __str__(self) -> str:
        lines = [str(self.table())]
        if len(self.engines) > 1:
            sites = list(dict.fromkeys(row.site.site for row in self.differing))
            lines.append(f"results differ in {len(sites)} call site(s){': ' + ', '.join(sites) if sites else ''}")
        for reason, count in self.fallbacks.items():
            lines.append(f"NOT emulated, {count} call(s): {reason}")
        if self.operations:
            lines += ["", str(self.operation_table())]
            lines.append("calls: " + ", ".join(f"{count} {kind}" for kind, count in self.bases.items()))
        lines += self.notes
        return "\n".join(lines)

    def operation_table(self) -> Table:
        """Return the table of operations, each with the basis of its bits."""
        rows: list[list[object]] = [[row.op, row.calls, row.elements, row.basis] for row in self.operations]
        return Table("operations", ["operation", "calls", "elements", "basis"], rows)


def _cell(value: float | None) -> object:
    return "-" if value is None else value


@dataclass
class _Tally:
    calls: int = 0
    elements: int = 0
    exact: float = 0.0
    fp32: float = 0.0
    to_exact: float = 0.0
    to_fp32: float = 0.0
    fp32_to_exact: float = 0.0
    measured: bool = False
    differing: tuple[int, ...] = ()


class CallLog:
    """`CallLog` collects calls on emulated devices; :meth:`report` returns the calls so far."""

    def __init__(self, engines: Sequence[str]):
        self.engines = tuple(engines)
        self._rows: dict[Site, _Tally] = {}
        self._fallbacks: dict[str, int] = {}
        self._notes: dict[str, None] = {}  # an ordered set
        self._operations: dict[tuple[str, str], list[int]] = {}

    def add(self, site: Site, elements: int, differing: tuple[int, ...] = ()) -> None:
        """Count one call, the elements of its result, and the elements that differ on further engines."""
        tally = self._rows.setdefault(site, _Tally(differing=(0,) * (len(self.engines) - 1)))
        tally.calls += 1
        tally.elements += elements
        tally.differing = tuple(x + y for x, y in zip(tally.differing, differing, strict=True))

    def measure(self, site: Site, a: np.ndarray, b: np.ndarray, d: np.ndarray) -> None:
        """Add the errors of the product d = a b that the library gets to the row of a call that :meth:`add` counted."""
        tally = self._rows[site]
        tally.measured = True
        exact = exact_gemm(a, b)
        with np.errstate(all="ignore"):
            fp32 = a.astype(np.float32) @ b.astype(np.float32)
            values = np.asarray(d).astype(np.float64)
            tally.exact += _squares(exact.rounded("fp64"))
            tally.fp32 += _squares(fp32)
            tally.to_exact += _squares(exact.error_of(d))
            tally.to_fp32 += _squares(values - fp32)
            tally.fp32_to_exact += _squares(exact.error_of(fp32))

    def fall_back(self, reason: str) -> None:
        """Count a product that ran natively."""
        self._fallbacks[reason] = self._fallbacks.get(reason, 0) + 1

    def operate(self, op: str, basis: str, elements: int) -> None:
        """Count a call of an operation and the elements of its result."""
        counts = self._operations.setdefault((op, basis), [0, 0])
        counts[0] += 1
        counts[1] += elements

    def note(self, text: str) -> None:
        """Add a remark to the report; equal remarks appear once."""
        self._notes[text] = None

    def report(self) -> Report:
        """Return the report of the calls so far."""
        rows = []
        for site, t in self._rows.items():
            pairs = (t.to_exact, t.exact), (t.to_fp32, t.fp32), (t.fp32_to_exact, t.exact)
            errors = [_ratio(*pair) if t.measured else None for pair in pairs]
            rows.append(CallRow(site, t.calls, t.elements, errors[0], errors[1], errors[2], t.differing))
        operations = tuple(OperationRow(*key, *counts) for key, counts in self._operations.items())
        return Report(self.engines, tuple(rows), dict(self._fallbacks), tuple(self._notes), operations)


def _squares(x: np.ndarray) -> float:
    """Return the sum of squares, or infinity if an element is not finite."""
    total = float(np.sum(np.square(np.asarray(x, np.float64))))
    return math.inf if math.isnan(total) else total


def _ratio(error: float, size: float) -> float:
    """Return sqrt(error / size), or 0 if error is 0."""
    if error == 0:
        return 0.0
    return math.inf if size == 0 or math.isinf(error) else math.sqrt(error / size)
