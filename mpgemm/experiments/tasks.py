"""Tasks whose finished results a journal keeps: what a killed run finished is not computed again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass

from mpgemm.experiments.journal import Journal
from mpgemm.reporting.provenance import code_digest


@dataclass(frozen=True)
class Task:
    """One computation."""

    label: str  #: For progress lines.
    configuration: Mapping  #: JSON-compatible values that determine the result, beside the code.
    compute: Callable[[], dict]  #: Gives the result, JSON-compatible; it can be pickled.

    @property
    def key(self) -> dict:
        """The key by which a journal knows the result."""
        return {**self.configuration, "code": code_digest()}


def results_of(
    tasks: Sequence[Task],
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    executor: Executor | None = None,
) -> list[dict]:
    """Return the results of all tasks in their order, from the journal or added to it as soon as they are there; `executor`
    runs the rest."""
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
    """Yield (number of a task, None) before its result, (number, result) with it."""
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
