"""Runs tasks whose finished results a journal keeps, so that a killed run does not compute them again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass

from mpgemm.experiments.journal import Journal
from mpgemm.reporting.provenance import code_digest


@dataclass(frozen=True)
class Task:
    """`Task` is one computation of an experiment."""

    label: str  #: Label in progress lines.
    configuration: Mapping  #: JSON-compatible values that determine the result together with the code.
    compute: Callable[[], dict]  #: Function that returns the JSON-compatible result; it can be pickled.

    @property
    def key(self) -> dict:
        """Return the key of the result in a journal."""
        return {**self.configuration, "code": code_digest()}


def results_of(
    tasks: Sequence[Task],
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    executor: Executor | None = None,
) -> list[dict]:
    """Return the results of all tasks in order, from the journal or computed on `executor` and then added to the journal."""
    progress = progress or (lambda done, total, label: None)
    results = [None if journal is None else journal.get(task.key) for task in tasks]
    missing = [number for number, result in enumerate(results) if result is None]
    done = len(tasks) - len(missing)
    for number, result in _computed(tasks, missing, executor):
        if result is None:
            progress(done, len(tasks), tasks[number].label)
            continue
        results[number] = result
        if journal is not None:
            journal.add(tasks[number].key, result)
        done += 1
    progress(len(tasks), len(tasks), "")
    return [result for result in results if result is not None]


def _computed(
    tasks: Sequence[Task], missing: Sequence[int], executor: Executor | None
) -> Iterator[tuple[int, dict | None]]:
    """Yield (index of a task, None) when a task starts and (index, result) when it is finished."""
    if executor is None:
        for number in missing:
            yield number, None
            yield number, tasks[number].compute()
        return
    futures = {executor.submit(tasks[number].compute): number for number in missing}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
            yield futures[future], None
    finally:
        for future in futures:
            future.cancel()
