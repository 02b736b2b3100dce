"""Tasks whose finished results a journal keeps: what a killed run finished is not computed again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass

from mpgemm.experiments.evaluate import code_digest
from mpgemm.experiments.journal import Journal


@dataclass(frozen=True)
class Task:
    """One computation.

    Parameters
    ----------
    label : str
        For progress lines.
    configuration : mapping
        JSON-compatible values that determine the result, beside the code.
    compute : callable
        Gives the result, JSON-compatible; it can be pickled.
    """

    label: str
    configuration: Mapping
    compute: Callable[[], dict]

    @property
    def key(self) -> dict:
        """What the journal knows the result by."""
        return {**self.configuration, "code": code_digest()}


def results_of(
    tasks: Sequence[Task],
    journal: Journal | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    executor: Executor | None = None,
) -> list[dict]:
    """The results of all tasks, in their order.

    Parameters
    ----------
    tasks : sequence of Task
    journal : Journal, optional
        Finished results are taken from it, and each new one is added as soon as it is there.
    progress : callable, optional
        ``progress(done, total, label)``.
    executor : concurrent.futures.Executor, optional
        Runs what is missing side by side.
    """
    journal = journal if journal is not None else Journal()
    progress = progress or (lambda done, total, label: None)
    missing = [task for task in tasks if journal.get(task.key) is None]
    done = len(tasks) - len(missing)
    for task, result in _computed(missing, executor):
        if result is None:
            progress(done, len(tasks), task.label)
        else:
            journal.add(task.key, result)
            done += 1
    progress(len(tasks), len(tasks), "")
    return [result for task in tasks if (result := journal.get(task.key)) is not None]


def _computed(tasks: Sequence[Task], executor: Executor | None) -> Iterator[tuple[Task, dict | None]]:
    """(task, None) before a result, (task, result) with it."""
    if executor is None:
        for task in tasks:
            yield task, None
            yield task, task.compute()
        return
    futures = {executor.submit(task.compute): task for task in tasks}
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
            yield futures[future], None
    finally:
        for future in futures:
            future.cancel()
