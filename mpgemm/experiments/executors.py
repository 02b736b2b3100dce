"""Opens executors for sweeps: threads, or the workers of a dask cluster that runs already or is started on this machine."""

import logging
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from mpgemm.reporting.provenance import code_digest

#: Prefix of the name of a cluster on this machine, before the number of its processes.
LOCAL = "local:"
#: Seconds within which a scheduler and its first worker must answer.
PATIENCE = 30


@contextmanager
def open_executor(workers: int = 1, cluster: str | None = None) -> Iterator[Executor | None]:
    """Yield an executor for the time of a with block; tasks that have not begun when the block ends are dropped.

    workers: number of threads; 1 gives None, which means the caller's thread.
    cluster: address of a dask scheduler ("tcp://host:port"), whose workers need this package in this version; or "local:N" for
        N processes on this machine, which are stopped at the end. If a worker dies, another one takes over its task.
    Raises ValueError if `cluster` is no address, dask.distributed is missing, the scheduler or its workers do not answer, or
        the workers' code differs from this process's.
    """
    if cluster is not None:
        with _client(cluster) as client:
            _check_code(client)
            yield client.get_executor()
        return
    if workers == 1:
        yield None
        return
    executor = ThreadPoolExecutor(workers)
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _client(cluster: str) -> Iterator[Any]:
    """Yield a client of the cluster; a cluster on this machine is stopped at the end of the block."""
    try:
        from distributed import Client
    except ImportError:
        raise ValueError(
            "--cluster needs dask.distributed, which is not installed: pip install 'mpgemm[cluster]'"
        ) from None
    # Errors of the cluster reach the caller as exceptions; without this the loggers would print them too, with tracebacks.
    for name in ("distributed", "tornado.application", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    if not cluster.startswith(LOCAL):
        try:
            client = Client(cluster, timeout=PATIENCE, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ValueError(
                f"no dask scheduler answers at {cluster!r} ({error}); start one, or give local:N for N processes here"
            ) from None
        with client:
            yield client
        return
    with _local_cluster(_processes(cluster)) as local, Client(local, set_as_default=False) as client:
        yield client


def _processes(cluster: str) -> int:
    count = cluster.removeprefix(LOCAL)
    if not count.isdecimal() or int(count) < 1:
        raise ValueError(
            f"--cluster is {cluster!r}, expected local:N with a number of processes, or a scheduler's address"
        )
    return int(count)


def _local_cluster(processes: int):
    """Return a cluster of processes with one thread each, because more threads would compete for the same cores."""
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=processes, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL,
        env={"MPGEMM_NUM_THREADS": "1"},
    )  # fmt: skip


def _check_code(client: Any) -> None:
    """Raise ValueError if workers do not answer or run other code than this process."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        found = client.run(code_digest, on_error="return")
    except (OSError, TimeoutError) as error:
        raise ValueError(f"no worker of the cluster answers within {PATIENCE} s ({error}); start its workers") from None
    here = code_digest()
    for address, digest in found.items():
        if isinstance(digest, BaseException):
            raise ValueError(
                f"worker {address} cannot run mpgemm ({type(digest).__name__}: {digest}); install mpgemm on the worker"
            )
        if digest != here:
            raise ValueError(
                f"worker {address} has another version of mpgemm than this process, expected the same code; install this "
                "version on the worker"
            )
