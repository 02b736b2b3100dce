"""What an experiment hands to the command line: tables, figure panels and data."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from mpgemm.experiments.journal import Journal
from mpgemm.reporting.plots import Panel
from mpgemm.reporting.report import Table


@dataclass(frozen=True)
class Outcome:
    """The result of one experiment.

    Parameters
    ----------
    name : str
        Stem of its files.
    tables : sequence of Table
        The tables of the result.
    data : mapping
        JSON-compatible values.
    panels : sequence of Panel
        The figure; empty for none.
    columns : int
        Panels beside each other.
    remarks : sequence of str
        What the numbers say, computed from them.
    draw : callable, optional
        Writes the picture to a path, where panels of curves do not show it.
    """

    name: str
    tables: Sequence[Table]
    data: Mapping
    panels: Sequence[Panel] = ()
    columns: int = 3
    remarks: Sequence[str] = ()
    draw: Callable[[Path], object] | None = None


@dataclass(frozen=True)
class Context:
    """How an experiment runs: which seeds, fewer points or all, where finished results are, on what."""

    seeds: Sequence[int] = (0,)
    quick: bool = False
    journal: Journal = field(default_factory=Journal)
    progress: Callable[[int, int, str], None] | None = None
    executor: Executor | None = None
