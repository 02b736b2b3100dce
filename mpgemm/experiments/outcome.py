"""Defines the result of an experiment for the command line: tables, figure panels and data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mpgemm.experiments.journal import Journal

if TYPE_CHECKING:
    from pathlib import Path

    from mpgemm.reporting.plots import Panel
    from mpgemm.reporting.report import Table


@dataclass(frozen=True)
class Outcome:
    """`Outcome` holds the result of one experiment."""

    name: str  #: Stem of the names of its files.
    tables: Sequence[Table]  #: Tables of the result.
    data: Mapping  #: The result as JSON-compatible values.
    panels: Sequence[Panel] = ()  #: Panels of the figure; empty for no figure.
    columns: int = 3  #: Number of panels in a row of the figure.
    remarks: Sequence[str] = ()  #: Sentences on the result, made from its numbers.
    #: Function that writes the figure to a path, for figures that are not made of curves.
    draw: Callable[[Path], object] | None = None


@dataclass(frozen=True)
class Context:
    """`Context` says how an experiment runs: seeds, fewer points (`quick`), journal, progress and executor."""

    seeds: Sequence[int] = (0,)
    quick: bool = False
    journal: Journal = field(default_factory=Journal)
    progress: Callable[[int, int, str], None] | None = None
    executor: Executor | None = None
