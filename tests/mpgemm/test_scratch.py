"""Memory that is kept from call to call: aligned, never shared by two users, never grown without bound."""

import threading

import numpy as np
import pytest

from mpgemm.recovery import scratch as module
from mpgemm.recovery.scratch import scratch


@pytest.fixture(autouse=True)
def empty(monkeypatch):
    monkeypatch.setattr(module, "_spare", [])


def address(x):
    return x.__array_interface__["data"][0]


def test_pieces_are_aligned_and_apart():
    with scratch(3, 8 * 7, 5) as memory:
        pieces = [memory.take((3,), np.int8), memory.take((7, 1), np.float64), memory.take((5,), np.int8)]
        assert all(address(p) % 64 == 0 for p in pieces)
        for n, p in enumerate(pieces):
            p[...] = n + 1
        assert [set(p.ravel().tolist()) for p in pieces] == [{1}, {2}, {3}]


def test_more_than_was_asked_for():
    with scratch(100) as memory, pytest.raises(MemoryError, match="500 bytes of scratch memory are wanted"):
        memory.take((500,), np.int8)


def test_reused_when_given_back_and_only_then():
    with scratch(1000) as one, scratch(1000) as two:
        first, second = one.take((1000,), np.int8), two.take((1000,), np.int8)
        assert not np.shares_memory(first, second)
    with scratch(500) as again:
        piece = again.take((500,), np.int8)
        assert np.shares_memory(piece, first) or np.shares_memory(piece, second)
    with scratch(500, keep=False) as own:
        piece = own.take((500,), np.int8)
        assert not np.shares_memory(piece, first) and not np.shares_memory(piece, second)


def test_given_back_after_an_error():
    with pytest.raises(KeyError), scratch(10):
        raise KeyError
    assert len(module._spare) == 1


def test_large_and_many_buffers_are_not_kept(monkeypatch):
    monkeypatch.setattr(module, "KEPT_BYTES", 4096)
    with scratch(5000):
        pass
    assert module._spare == []
    with scratch(10), scratch(10), scratch(10):
        pass
    assert len(module._spare) == module.KEPT_BUFFERS


def test_threads_never_share():
    wrong = []

    def work(n):
        for _ in range(200):
            with scratch(64) as memory:
                piece = memory.take((64,), np.int8)
                piece[...] = n
                if (piece != n).any():
                    wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
