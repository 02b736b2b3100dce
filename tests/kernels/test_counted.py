"""bench/counted.py: the rule of parts beside the best number of parts, and what is predicted beside what was recorded."""

import dataclasses

import counted
import pytest

from mpgemm.kernels.forms import KERNELS, kernel_method
from mpgemm.recovery import parts


def test_parts_are_near_the_best_that_many_rows_allow():
    """Within a tenth of the least time that is counted, for linear layers of common models and 1 to 64 rows."""
    for model, n, k, within, best in counted.distances(rows=(1, 64)):
        assert 1 <= within <= 1.1, (model, n, k)
        assert within <= best


def test_parts_cost_a_product_of_many_rows_a_tenth():
    for method in KERNELS:
        for layers in counted.LAYERS.values():
            for n, k in layers:
                assert counted.allowed(method, k, parts.parts_of(n, k, kernel_method(method)))


def test_another_rule_is_seen(monkeypatch):
    monkeypatch.setattr(counted, "parts_of", lambda n, k, row: 1)
    assert max(within for *_, within, _ in counted.distances(("bf16x9",), (1,))) > 1.5
    monkeypatch.setattr(counted, "parts_of", lambda n, k, row: 64)
    assert max(within for *_, within, _ in counted.distances(("ootomo",), (64,))) > 1.3


@pytest.mark.full  # some 10 s: five methods are compiled
def test_speeds_rest_on_the_time_of_the_prototype(capsys):
    """The prototype's own method has its own time; twice the products take less than twice the time."""
    pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")
    rows = {(row.method, row.side): row for row in counted.speeds()}
    assert rows[counted.PROTOTYPE[:2]].product == pytest.approx(counted.PROTOTYPE[2])
    assert 1 < rows["bf16x6", 4096].product / rows["bf16x3", 4096].product < 2
    assert rows["tf32x3", 8192].product == pytest.approx(8 * rows["tf32x3", 4096].product, rel=0.02)
    slower = dataclasses.replace(rows["ootomo", 4096], words=0.81)
    assert slower.rates[0] == pytest.approx(2 * slower.rates[1])
