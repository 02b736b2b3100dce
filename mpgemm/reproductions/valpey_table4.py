"""Computes table 4 of Valpey et al.: the answers of SMT solvers to queries about four units, with their times."""

from typing import Unpack

from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.reporting.report import Table
from tensorcore_models.probing.formal.limits import LimitOptions
from tensorcore_models.probing.formal.published import QUERIES, UNITS, Query
from tensorcore_models.probing.formal.queries import FormalVerdict
from tensorcore_models.probing.formal.solvers import NoSolver


def run(context: Context, **limits: Unpack[LimitOptions]) -> Outcome:
    """Return the table.

    context: context whose progress function is called.
    **limits: limits of each query (:class:`~tensorcore_models.probing.formal.limits.LimitOptions`).
    Raises ValueError if no solver is installed.
    """
    rows, found = [], []
    for number, query in enumerate(QUERIES):
        verdicts: list[FormalVerdict | TimeoutError] = []
        for name in UNITS:
            if context.progress:
                context.progress(
                    number * len(UNITS) + len(verdicts), len(QUERIES) * len(UNITS), f"{query.name}, {name}"
                )
            verdicts.append(asked(query, name, limits))
        rows.append([query.name, *map(cell, verdicts)])
        found += [_facts(query, name, verdict) for name, verdict in zip(UNITS, verdicts, strict=True)]
    return Outcome("valpey-table4", [Table("Valpey et al., table 4", ["query", *UNITS], rows)], {"queries": found})


def asked(query: Query, name: str, limits: LimitOptions) -> FormalVerdict | TimeoutError:
    """Return the verdict of a query, or the TimeoutError of the first of its questions that runs out of time."""
    try:
        return query.ask(name, **limits)
    except TimeoutError as error:
        return error
    except NoSolver as error:
        raise ValueError(str(error)) from None


def cell(verdict: FormalVerdict | TimeoutError) -> str:
    """Return the table cell of a verdict."""
    if isinstance(verdict, TimeoutError):
        return f"timeout ({verdict})"
    backend = f" ({verdict.backend})" if verdict.backend else ""
    return f"{verdict.status}, {verdict.seconds:.2f} s{backend}"


def _facts(query: Query, name: str, verdict: FormalVerdict | TimeoutError) -> dict:
    facts: dict = {"query": query.name, "unit": name, "answer": cell(verdict)}
    if isinstance(verdict, FormalVerdict) and verdict.witness is not None:
        facts |= {"witness": str(verdict.witness), "results": list(map(hex, verdict.results))}
    return facts
