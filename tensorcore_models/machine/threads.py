"""How many threads the kernels use. The number never changes a bit of a result."""

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
_forked = False  # whether this process is a fork of one that had started some

#: No more than this: OpenMP's library ends the whole process when the system refuses it a thread.
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
            raise ValueError(f"environment variable MPGEMM_NUM_THREADS must be a number, got {text!r}") from None
        return _checked(n, "environment variable MPGEMM_NUM_THREADS")
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_num_threads(n: int | None) -> None:
    """Set the number of threads of every kernel in this process.

    Parameters
    ----------
    n : int or None
        From 1 to 1024; None goes back to ``MPGEMM_NUM_THREADS`` or the number of CPUs that the process may use.

    Raises
    ------
    ValueError, TypeError
        If `n` is outside that range or not an integer.
    """
    global _chosen
    _chosen = None if n is None else checked_threads(n)


def checked_threads(n) -> int:
    """Return a number of threads that somebody gave; raises ValueError or TypeError if it is not an integer from 1 to 1024."""
    return _checked(checked_integer(n, "the number of threads"), "the number of threads")


def get_num_threads() -> int:
    """Return the number of threads that every kernel uses.

    It is 1 where the kernels were built without OpenMP, and in a child that a process forked after its kernels used several
    threads: they do not exist in the child. Children that are spawned, or made by a fork server, have threads of
    their own.

    Raises
    ------
    ValueError
        If ``MPGEMM_NUM_THREADS`` is set and is not a number from 1 to 1024.
    """
    return threads_here(_default() if _chosen is None else _chosen)


def threads_here(wanted: int) -> int:
    """Return `wanted` threads, or 1 where this process or build cannot start any (see :func:`get_num_threads`)."""
    global _shared_work
    if not has_openmp() or _forked or _single.get():
        return 1
    _shared_work |= wanted > 1
    return wanted


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Kernels called inside use one thread: for long series of products so small that threads wait more than they work."""
    token = _single.set(True)
    try:
        yield
    finally:
        _single.reset(token)


def _after_fork() -> None:
    """OpenMP's threads do not exist in a forked child, and waiting for them would never end."""
    global _forked
    _forked = _forked or _shared_work


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


#: Operations of vector lanes below which one thread does them: about 0.3 ms. On a machine with other work a second thread that
#: gets no core makes the first one wait for milliseconds, a hundred times what it could save.
WORTH_THREADS = 1 << 22


def threads_for(operations: int) -> int:
    """Return threads for a kernel call of that many operations: one where starting more costs more than it brings."""
    return get_num_threads() if operations >= WORTH_THREADS else 1


def threads_for_product(operations: int) -> int:
    """Return threads for one product of that many operations: those of :func:`set_num_threads`, else as :func:`threads_for`."""
    return threads_for(operations) if _chosen is None else get_num_threads()


def run_shared(function: Callable[[range], None], count: int, threads: int) -> None:
    """Call `function` on ranges that make up 0 to `count` - 1: in several threads, whose kernels use no others, or here."""
    if threads == 1 or count < 2:
        function(range(count))
        return

    from concurrent.futures import ThreadPoolExecutor  # for batches only: every process pays for what is imported above

    @default_fp_state
    def share(items: range) -> None:
        with one_thread():
            function(items)

    each = -(-count // threads)
    with ThreadPoolExecutor(threads) as pool:
        parts = [range(start, min(start + each, count)) for start in range(0, count, each)]
        for done in [pool.submit(share, part) for part in parts]:
            done.result()
