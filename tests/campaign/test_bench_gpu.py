"""bench/gpu.py on the stand-in: every product and unit is called and said, ratios beside torch's, failures in their row."""

import json

import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import campaign_stand_in  # noqa: E402
import gpu  # noqa: E402

from mpgemm.campaign import times  # noqa: E402


@pytest.fixture
def device(monkeypatch):
    found = campaign_stand_in.stand_in(monkeypatch)
    campaign_stand_in.small(monkeypatch)
    return found


@pytest.mark.full  # some 10 s: kernels are compiled
def test_everything_is_measured_beside_something(device, monkeypatch, capsys):
    monkeypatch.setattr(times, "methods_of", lambda target: ["ootomo_tf32", "ozaki2_int8:moduli=3"])
    monkeypatch.setattr(times, "FP64", "ozaki2_int8:moduli=3")
    found = gpu.measured(device, (17,), ("ootomo_tf32", "ozaki2_int8:moduli=3"))
    rows = {row["name"]: row for row in found["products"]}
    assert rows["ootomo_tf32"]["ratio"] == 1.0 and rows["ootomo_tf32"]["error"] < 1e-6
    assert rows["ozaki2_int8:moduli=3"]["beside"] == "torch FP64" and rows["torch FP64"]["error"] == 0
    assert [row["name"] for row in found["units"]] == [f"emulated {name}" for name in times.UNITS]
    assert "1.00 x torch FP64" in capsys.readouterr().out and json.dumps(found)


def test_what_fails_is_a_row(device, monkeypatch):
    def products(*ignored):
        def broken():
            raise RuntimeError("out of memory")

        return {"torch FP32": lambda: lambda: torch.zeros(4, 4), "ootomo": broken}

    monkeypatch.setattr(times, "products", products)
    rows = gpu.products(device, (4,), ("ootomo",))
    assert rows[1]["failed"] == "RuntimeError: out of memory" and rows[0]["ratio"] == 1.0


def test_without_a_gpu_it_says_what_to_run(monkeypatch):
    monkeypatch.setattr("sys.argv", ["gpu.py"])
    monkeypatch.setattr(gpu, "this_gpu", lambda: (_ for _ in ()).throw(OSError("no driver")))
    with pytest.raises(SystemExit, match="no driver; python bench/gpu.py --host"):
        gpu.main()
