"""Changes torch's switches, its attention and the start of threads in the whole process while any block is open."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel


class OpenBlock(NamedTuple):
    """`OpenBlock` holds the effects of a block in a thread."""

    started: Callable[[], AbstractContextManager]  #: Context in which threads run that the block starts.
    sdpa: Callable[..., torch.Tensor]  #: Function that replaces `scaled_dot_product_attention`.


#: State of this thread: `stack` holds the open blocks, the innermost last.
_HERE = threading.local()


def _innermost() -> OpenBlock | None:
    stack = _HERE.__dict__.get("stack")
    return stack[-1] if stack else None


@contextmanager
def open_here(block: OpenBlock) -> Iterator[None]:
    """Open a block in this thread."""
    stack = _HERE.__dict__.setdefault("stack", [])
    stack.append(block)
    try:
        yield
    finally:
        stack.pop()


def _starting(start: Callable) -> Callable:
    """Wrap `Thread.start` so that a thread started in a block opens the block, because dispatch modes belong to one thread."""

    def started(thread):
        if block := _innermost():
            run = thread.run

            def inside():
                with block.started():
                    run()

            thread.run = inside
        return start(thread)

    return started


#: Torch's own function, which a program may have replaced.
SDPA = torch._C._nn.scaled_dot_product_attention


def _attending(sdpa: Callable) -> Callable:
    """Wrap `scaled_dot_product_attention` so that a block sees its calls, also those of torch's own layers.

    A function with which a program has replaced it is called unchanged, because the block sees the calls inside of it.
    """

    def scaled_dot_product_attention(*args, **kwargs):
        block = _innermost()
        return (block.sdpa if block and sdpa is SDPA else sdpa)(*args, **kwargs)

    return scaled_dot_product_attention


def _give_back(owner: object, name: str, own: Callable, ours: Callable) -> None:
    """Restore a function, unless a program has replaced our wrapper."""
    if getattr(owner, name) is ours:
        setattr(owner, name, own)


class _Process:
    """`_Process` holds the changes of the process; the first block of any thread makes them, the last one restores them.

    They select the math path of attention, whose products the mode sees, and turn off fused layers of oneDNN and
    nn.Transformer, whose products it does not see.
    """

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
