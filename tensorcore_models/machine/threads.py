"""This module sets the number of threads of the kernels, which never changes a bit of a result."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from .._kernels.common.cpu import has_openmp
from ..integers import checked_integer
from .fp_state import default_fp_state

_chosen: int | None = None
_shared_work = False  # whether threads may have been started
_single: ContextVar[bool] = ContextVar("one_thread", default=False)
_forked = False  # whether this process is a fork of a process that may have started threads

#: Largest number of threads, because OpenMP's library ends the process if the system refuses it a thread.
MOST_THREADS = 1024


def _checked(n: int, what: str) -> int:
    if n < 1:
        raise ValueError(f"{what} must be at least 1, got {n}")
    if n > MOST_THREADS:
        raise ValueError(f"{what} must be at most {MOST_THREADS}, got {n}")
    return n


def _default() -> int:
    text = os.environ.get("MPGEMM_NUM_THREADS")
    if text:
        try:
            n = int(text)
        except ValueError:
            raise ValueError(
                f"environment variable MPGEMM_NUM_THREADS is {text!r}, expected 1 to {MOST_THREADS}: set such a number, or "
                "unset the variable"
            ) from None
        return _checked(n, "environment variable MPGEMM_NUM_THREADS")
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_num_threads(n: int | None) -> None:
    """Set the number of threads of every kernel in this process.

    Parameters
    ----------
    n : int or None
        Number of threads, 1 to 1024; None resets it to ``MPGEMM_NUM_THREADS`` or the number of CPUs that the process may use.

    Raises
    ------
    ValueError, TypeError
        If `n` is outside that range or not an integer.
    """
    global _chosen
    _chosen = None if n is None else checked_threads(n)


def checked_threads(n) -> int:
    """Return `n` as a number of threads; raises ValueError or TypeError if it is not an integer from 1 to 1024."""
    return _checked(checked_integer(n, "the number of threads"), "the number of threads")


def get_num_threads() -> int:
    """Return the number of threads that every kernel uses.

    The number is 1 if the kernels were built without OpenMP, and in a child process that was forked after its parent's kernels
    used several threads, because these threads do not exist in the child. Children that are spawned, or made by a fork server,
    can use several threads.

    Raises
    ------
    ValueError
        If ``MPGEMM_NUM_THREADS`` is set and is not a number from 1 to 1024.
    """
    return threads_here(_default() if _chosen is None else _chosen)


def threads_here(wanted: int) -> int:
    """Return `wanted`, or 1 if this process or build cannot start threads (see :func:`get_num_threads`)."""
    global _shared_work
    if not has_openmp() or _forked or _single.get():
        return 1
    _shared_work |= wanted > 1
    return wanted


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let kernels inside the `with` block use one thread, for long series of products that are too small for threads."""
    token = _single.set(True)
    try:
        yield
    finally:
        _single.reset(token)


def _after_fork() -> None:
    """Note in a forked child that OpenMP's threads do not exist, because waiting for them would never end."""
    global _forked
    _forked = _forked or _shared_work


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


#: Number of lane operations, about 0.3 ms, below which one thread is used. On a busy machine a second thread that gets no core
#: makes the first thread wait for milliseconds, a hundred times the time that it could save.
WORTH_THREADS = 1 << 22


def threads_for(operations: int) -> int:
    """Return the threads for a kernel call of that many operations: one if starting more threads costs more than it saves."""
    return get_num_threads() if operations >= WORTH_THREADS else 1


def threads_for_product(operations: int) -> int:
    """Return the threads for one product: those of :func:`set_num_threads` if set, else those of :func:`threads_for`."""
    return threads_for(operations) if _chosen is None else get_num_threads()


def run_shared(function: Callable[[range], None], count: int, threads: int) -> None:
    """Call `function` on ranges that cover 0 to `count` - 1, in several threads whose kernels use one thread each."""
    if threads == 1 or count < 2:
        function(range(count))
        return

    from concurrent.futures import ThreadPoolExecutor  # imported here because only batches need it

    @default_fp_state
    def share(items: range) -> None:
        with one_thread():
            function(items)

    each = -(-count // threads)
    with ThreadPoolExecutor(threads) as pool:
        parts = [range(start, min(start + each, count)) for start in range(0, count, each)]
        for done in [pool.submit(share, part) for part in parts]:
            done.result()
