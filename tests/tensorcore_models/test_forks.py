"""Processes made in every way multiply, after the parent has run two threads; pools of threads give the same bits."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pytest
from child_product import product

import tensorcore_models as tcm


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
