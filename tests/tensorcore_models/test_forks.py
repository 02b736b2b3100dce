"""Processes made in every way multiply, after the parent has run two threads; pools of threads give the same bits."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tensorcore_models as tcm

ENGINE = "hopper:mma.m16n8k16.f32.f16.f16.f32"


def product(seed: int) -> tuple[int, bytes]:
    """Threads that the kernels use, and the bits of a product large enough for several."""
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((96, 64)).astype(np.float16), rng.standard_normal((64, 96)).astype(np.float16)
    return tcm.get_num_threads(), tcm.get_instruction(ENGINE).gemm(a, b).tobytes()


@pytest.fixture(autouse=True)
def two_threads():
    tcm.set_num_threads(2)
    yield
    tcm.set_num_threads(None)


@pytest.mark.sweep(2)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python's own warning about forks of threaded processes
@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_child_processes_multiply(how):
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system has no {how}")
    _, expected = product(1)  # the parent's OpenMP threads are there now
    with multiprocessing.get_context(how).Pool(1) as pool:
        threads, found = pool.apply_async(product, (1,)).get(timeout=120)
    assert found == expected
    assert threads == 1 if how == "fork" else threads >= 1


def test_thread_pool_gives_the_same_bits():
    expected = [product(seed)[1] for seed in range(4)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(product, [seed % 4 for seed in range(32)]))
    assert [bits for _, bits in found] == [expected[seed % 4] for seed in range(32)]
