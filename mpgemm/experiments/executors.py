"""Executors for sweeps: threads, or the workers of a dask cluster."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def open_executor(workers: int = 1, scheduler: str | None = None) -> Iterator[Executor | None]:
    """An executor for the time of a block; what has not begun when the block ends is dropped.

    Parameters
    ----------
    workers : int
        Threads; 1 gives None (run in the caller's thread).
    scheduler : str, optional
        Address of a dask scheduler ("tcp://host:port"); its workers need this package.

    Raises
    ------
    ValueError
        If `workers` is below 1, dask.distributed is missing, or the scheduler does not answer.
    """
    if workers < 1:
        raise ValueError(f"--workers must be at least 1, got {workers}")
    if scheduler is not None:
        client = _connect(scheduler)
        try:
            yield client.get_executor()
        finally:
            client.close()
        return
    if workers == 1:
        yield None
        return
    executor = ThreadPoolExecutor(workers)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _connect(scheduler: str):
    try:
        from distributed import Client
    except ImportError:
        raise ValueError("--scheduler needs dask.distributed: pip install 'mpgemm[cluster]'") from None
    # What happens to the cluster reaches the caller as an exception; the loggers would print it too, with tracebacks.
    for name in ("distributed", "tornado.application", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        return Client(scheduler, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(f"no dask scheduler answers at {scheduler!r}: {error}") from None
