"""This module runs the tasks of a part one after the other; a failure becomes a row, and finished rows are never lost."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mpgemm.campaign.folder import Rows

#: A row's key, and the function that computes the rest of the row.
Task = tuple[Mapping[str, Any], Callable[[], Mapping[str, Any]]]


def carry_out(
    tasks: Iterable[Task], rows: Rows, deadline: float, clock: Callable[[], float] = time.monotonic
) -> tuple[int, int]:
    """Run the tasks without a row; return (rows that failed, tasks that had no time before the deadline of the clock)."""
    failed = left = 0
    for facts, task in tasks:
        if rows.has(facts):
            continue
        if clock() >= deadline:
            left += 1
            continue
        start = clock()
        try:
            row = {**facts, **task()}
        except Exception as error:  # any exception of compiler or device; the other rows are not lost for it
            row, failed = {**facts, "failed": f"{type(error).__name__}: {error}"[:1000]}, failed + 1
        rows.add({**row, "took": round(clock() - start, 3)})
    rows.write(left)
    return failed, left
