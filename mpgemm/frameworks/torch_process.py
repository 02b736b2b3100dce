"""Changes the whole process while any block is open: torch's switches, its attention, how threads start."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


class OpenBlock(NamedTuple):
    """A block's effects in a thread."""

    started: Callable[[], AbstractContextManager]  #: What threads run inside of that are started there.
    sdpa: Callable[..., torch.Tensor]  #: `scaled_dot_product_attention` there.


#: `stack`: the blocks of this thread, the innermost last.
_HERE = threading.local()


def _innermost() -> OpenBlock | None:
    stack = _HERE.__dict__.get("stack")
    return stack[-1] if stack else None


@contextmanager
def open_here(block: OpenBlock) -> Iterator[None]:
    """In this thread a block is in force."""
    stack = _HERE.__dict__.setdefault("stack", [])
    stack.append(block)
    try:
        yield
    finally:
        stack.pop()


def _starting(start: Callable) -> Callable:
    """Return `Thread.start` for threads that may be started inside of a block; a dispatch mode is of one thread."""

    def started(thread):
        if block := _innermost():
            run = thread.run

            def inside():
                with block.started():
                    run()

            thread.run = inside
        return start(thread)

    return started


#: Torch's own function, whatever a program has put in its place.
SDPA = torch._C._nn.scaled_dot_product_attention


def _attending(sdpa: Callable) -> Callable:
    """Return `scaled_dot_product_attention` that may be called inside of a block, by torch's own layers, too.

    A function that a program has put in its place is called as it is: what it asks of torch is seen in there.
    """

    def scaled_dot_product_attention(*args, **kwargs):
        block = _innermost()
        return (block.sdpa if block and sdpa is SDPA else sdpa)(*args, **kwargs)

    return scaled_dot_product_attention


def _give_back(owner: object, name: str, own: Callable, ours: Callable) -> None:
    """Put a function back, unless a program has put another one in the place of ours."""
    if getattr(owner, name) is ours:
        setattr(owner, name, own)


class _Process:
    """Set by the first block, given back by the last, whatever thread they are in. The math path of attention is made of
    products that the mode sees; fused layers of oneDNN and of nn.Transformer are not."""

    def __init__(self):
        self._lock, self._blocks, self._stack = threading.Lock(), 0, ExitStack()

    def __enter__(self):
        with self._lock:
            self._blocks += 1
            if self._blocks == 1:
                self._stack = ExitStack()
                self._stack.enter_context(sdpa_kernel(SDPBackend.MATH))
                self._stack.callback(setattr, torch.backends.mkldnn, "enabled", torch.backends.mkldnn.enabled)
                torch.backends.mkldnn.enabled = False
                fast = torch.backends.mha.get_fastpath_enabled()
                self._stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
                torch.backends.mha.set_fastpath_enabled(False)
                for owner, name, replaced in (
                    (threading.Thread, "start", _starting), (F, "scaled_dot_product_attention", _attending),
                ):  # fmt: skip
                    own = getattr(owner, name)
                    ours = replaced(own)
                    self._stack.callback(_give_back, owner, name, own, ours)
                    setattr(owner, name, ours)

    def __exit__(self, *error):
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._stack.close()


PROCESS = _Process()
