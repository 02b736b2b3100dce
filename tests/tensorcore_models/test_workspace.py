"""Memory that is kept from call to call: aligned, never shared by two users, never grown without bound."""

import threading

import numpy as np
import pytest

from tensorcore_models._kernels.common.workspace import Workspace, clear, kept_bytes
from tensorcore_models.machine.workspace import Scratch, workspace


@pytest.fixture(autouse=True)
def empty():
    clear()
    yield
    clear()


def address(x):
    return x.__array_interface__["data"][0]


def test_pieces_are_aligned_and_apart():
    memory = Scratch(3, 8 * 7, 5)
    pieces = [memory.take((3,), np.int8), memory.take((7, 1), np.float64), memory.take((5,), np.int8)]
    assert all(address(p) % 64 == 0 for p in pieces)
    for n, p in enumerate(pieces):
        p[...] = n + 1
    assert [set(p.ravel().tolist()) for p in pieces] == [{1}, {2}, {3}]


def test_more_than_was_asked_for():
    with pytest.raises(MemoryError, match="500 bytes of scratch memory are needed"):
        Scratch(100).take((500,), np.int8)
    with pytest.raises(MemoryError, match="no memory for a workspace"):
        Workspace(1 << 62)


def test_given_back_when_nobody_looks_at_it_any_more():
    one, two = workspace(1000), workspace(1000)
    assert not np.shares_memory(one, two) and kept_bytes() == []
    view, where = one[10:20], address(one)
    del one
    assert kept_bytes() == []  # the view still needs it
    del view
    assert len(kept_bytes()) == 1
    again = workspace(500)
    assert address(again) == where and kept_bytes() == []


def test_few_and_no_huge_blocks_are_kept():
    blocks = [workspace(1000 * (n + 1)) for n in range(9)]
    del blocks
    assert sorted(size // 1000 for size in kept_bytes()) == [6, 7, 8, 9]
    huge = workspace((1 << 28) + 1)
    del huge
    assert max(kept_bytes()) < 1 << 28


def test_threads_never_share():
    wrong = []

    def work(n):
        for _ in range(200):
            piece = Scratch(64).take((64,), np.int8)
            piece[...] = n
            if (piece != n).any():
                wrong.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
