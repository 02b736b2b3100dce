"""Table 4 of Valpey et al.: queries to SMT solvers about four units, what each found, and how fast."""

from typing import Unpack

from mpgemm.experiments.outcome import Context, Outcome
from mpgemm.reporting.report import Table
from tensorcore_models.probing.formal.limits import LimitOptions
from tensorcore_models.probing.formal.published import QUERIES, UNITS, Query
from tensorcore_models.probing.formal.queries import FormalVerdict
from tensorcore_models.probing.formal.solvers import NoSolver


def run(context: Context, **limits: Unpack[LimitOptions]) -> Outcome:
    """Return the table.

    context: Its progress.
    **limits: Of each query: see :class:`~tensorcore_models.probing.formal.limits.LimitOptions`.
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
    """Ask a query for its verdict; a search of several questions ends at the first that runs out of time."""
    try:
        return query.ask(name, **limits)
    except TimeoutError as error:
        return error
    except NoSolver as error:
        raise ValueError(str(error)) from None


def cell(verdict: FormalVerdict | TimeoutError) -> str:
    """Return a verdict in the table."""
    if isinstance(verdict, TimeoutError):
        return f"timeout ({verdict})"
    backend = f" ({verdict.backend})" if verdict.backend else ""
    return f"{verdict.status}, {verdict.seconds:.2f} s{backend}"


def _facts(query: Query, name: str, verdict: FormalVerdict | TimeoutError) -> dict:
    facts: dict = {"query": query.name, "unit": name, "answer": cell(verdict)}
    if isinstance(verdict, FormalVerdict) and verdict.witness is not None:
        facts |= {"witness": str(verdict.witness), "results": list(map(hex, verdict.results))}
    return facts
