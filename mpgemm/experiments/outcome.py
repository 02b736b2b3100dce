"""Defines an experiment's result for the command line: tables, figure panels and data."""

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
    """The result of one experiment."""

    name: str  #: Stem of its files.
    tables: Sequence[Table]  #: The tables of the result.
    data: Mapping  #: JSON-compatible values.
    panels: Sequence[Panel] = ()  #: The figure; empty for none.
    columns: int = 3  #: Panels beside each other.
    remarks: Sequence[str] = ()  #: What the numbers say, computed from them.
    #: Writes the picture to a path, where panels of curves do not show it.
    draw: Callable[[Path], object] | None = None


@dataclass(frozen=True)
class Context:
    """How an experiment runs: which seeds, fewer points or all, where finished results are, on what."""

    seeds: Sequence[int] = (0,)
    quick: bool = False
    journal: Journal = field(default_factory=Journal)
    progress: Callable[[int, int, str], None] | None = None
    executor: Executor | None = None
