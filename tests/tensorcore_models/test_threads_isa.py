"""Choosing threads and kernel variants: by call, by environment, and the messages when it cannot be done."""

import numpy as np
import pytest

import tensorcore_models as tcm
from tensorcore_models.machine import instruction_sets as isa
from tensorcore_models.machine import threads


@pytest.fixture(autouse=True)
def restored():
    yield
    tcm.set_num_threads(None)
    tcm.set_isa(None)


def test_threads_by_call_and_environment(monkeypatch):
    monkeypatch.setattr(threads, "has_openmp", lambda: True)
    monkeypatch.setenv("MPGEMM_NUM_THREADS", "3")
    assert tcm.get_num_threads() == 3
    tcm.set_num_threads(np.int64(5))
    assert tcm.get_num_threads() == 5
    tcm.set_num_threads(None)
    monkeypatch.delenv("MPGEMM_NUM_THREADS")
    assert tcm.get_num_threads() >= 1
    monkeypatch.setattr(threads, "has_openmp", lambda: False)
    assert tcm.get_num_threads() == 1


@pytest.mark.parametrize("text", ["0", "-2", "many", "1.5", "1025", "99999999999"])
def test_bad_thread_numbers_in_the_environment(monkeypatch, text):
    monkeypatch.setenv("MPGEMM_NUM_THREADS", text)
    with pytest.raises(ValueError, match="environment variable MPGEMM_NUM_THREADS (must be|is .*, expected 1 to 1024)"):
        tcm.get_num_threads()


def test_bad_thread_numbers():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        tcm.set_num_threads(0)
    with pytest.raises(ValueError, match="at most 1024, got 100000"):
        tcm.set_num_threads(100_000)
    for n in (2.0, "2", True):
        with pytest.raises(TypeError, match="the number of threads must be an integer"):
            tcm.set_num_threads(n)


def test_variants_by_call_and_environment(monkeypatch):
    monkeypatch.delenv("MPGEMM_ISA", raising=False)
    tcm.set_isa(None)
    assert tcm.available_isas()[0] == "baseline"
    assert tcm.active_isa() == tcm.available_isas()[-1]
    monkeypatch.setenv("MPGEMM_ISA", "baseline")
    assert tcm.active_isa() == tcm.available_isas()[-1]  # read once
    tcm.set_isa(None)
    assert tcm.active_isa() == "baseline" and isa.isa_level() == 0
    tcm.set_isa(tcm.available_isas()[-1])
    assert tcm.active_isa() == tcm.available_isas()[-1]


def test_a_variant_that_the_cpu_lacks(monkeypatch):
    monkeypatch.setattr(isa, "available_isas", lambda: isa.ISAS[:1])
    tcm.set_isa(None)
    monkeypatch.setenv("MPGEMM_ISA", "avx2")
    with pytest.raises(ValueError, match="MPGEMM_ISA: this CPU cannot run 'avx2' kernels, expected one of baseline"):
        tcm.active_isa()
    with pytest.raises(ValueError, match="cannot run 'avx512'"):
        tcm.set_isa("avx512")
    monkeypatch.setenv("MPGEMM_ISA", "sse9")
    with pytest.raises(ValueError, match="unknown instruction set 'sse9', expected one of baseline, avx2, avx512"):
        tcm.encode([1.0], "fp16")
