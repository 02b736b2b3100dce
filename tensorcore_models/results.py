"""This module holds the base class of every public result, which shows results in notebooks and data frames."""

import html
import math
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

#: Greatest length of the headline in a result's repr.
MOST_CHARACTERS = 100


class Interrupted(KeyboardInterrupt):
    """`Interrupted` is raised on Ctrl-C during a search; `known` is a sentence on the findings so far, or a partial result."""

    def __init__(self, known: Any):
        super().__init__(known)
        self.known = known


class Result(ABC):
    """`Result` holds a function's findings as the rows of a table, and as sentences beside the table.

    Its text, mapping, data frame and notebook view are made of these two. A subclass defines `sentences` or `__str__`.
    """

    @abstractmethod
    def to_rows(self) -> list[dict]:
        """Return the rows of the table, all with the same keys; a result that is one record has one row."""

    def sentences(self) -> Sequence[str]:
        """Return the meaning of the table in sentences for people; the first one is the headline."""
        return (str(self).partition("\n")[0],)

    def to_dict(self) -> dict[str, Any]:
        """Return the rows and sentences as a mapping for JSON."""
        return {"rows": self.to_rows(), "sentences": list(self.sentences())}

    def to_dataframe(self):
        """Return the rows as a pandas data frame, numbers in full; ImportError if pandas is missing."""
        return data_frame(self.to_rows())

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {textwrap.shorten(self.sentences()[0], MOST_CHARACTERS, placeholder=' ...')}>"

    def _repr_html_(self) -> str:
        """Return the table under the headline as HTML for notebooks; a single record is shown with one line for each field."""
        headline, *others = self.sentences()
        rows = self.to_rows()
        if len(rows) == 1:
            table = html_table(headline, ("", ""), list(rows[0].items()))
        else:
            table = html_table(headline, list(rows[0]) if rows else (), [list(row.values()) for row in rows])
        return table + "".join(f"<p>{html.escape(text.strip())}</p>" for text in others)


def format_cell(cell: object) -> str:
    """Return a number as text of three to five digits, any other value as its `str`."""
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    if isinstance(cell, int) or cell == 0 or not math.isfinite(cell):
        return f"{cell:g}" if isinstance(cell, float) else str(cell)
    if 0.1 <= abs(cell) < 1e4:
        return f"{cell:.{2 if abs(cell) < 100 else 1 if abs(cell) < 1000 else 0}f}"
    return f"{cell:.2e}"


def number_columns(rows: Sequence[Sequence[object]], count: int) -> list[bool]:
    """Return which of `count` columns hold numbers only."""
    return [bool(rows) and all(isinstance(row[i], int | float) for row in rows) for i in range(count)]


def html_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in HTML under a caption; columns of numbers are aligned right, and empty headings are left out."""
    right = number_columns(rows, len(headings))

    def line(tag: str, cells: Sequence[str]) -> str:
        styles = (" style='text-align: right'" if r else "" for r in right)
        body = (f"<{tag}{s}>{html.escape(cell)}</{tag}>" for cell, s in zip(cells, styles, strict=True))
        return f"<tr>{''.join(body)}</tr>"

    body = "".join(line("td", [format_cell(cell) for cell in row]) for row in rows)
    head = line("th", list(headings)) if any(headings) else ""
    return f"<table><caption>{html.escape(caption)}</caption><thead>{head}</thead><tbody>{body}</tbody></table>"


def data_frame(rows: Sequence[Mapping]):
    """Return rows as a pandas data frame; ImportError if pandas is missing."""
    try:
        import pandas
    except ImportError:
        raise ImportError("data frames need pandas: pip install 'mpgemm[dataframe]'") from None
    return pandas.DataFrame(list(rows))
