"""The recorder of torch's hooks writes what layers multiplied."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")

from mpgemm.frameworks.torch_recorder import record  # noqa: E402
from mpgemm.traces.comparing import compare_traces  # noqa: E402
from mpgemm.traces.reading import read_trace  # noqa: E402


def test_two_devices_under_emulation(tmp_path):
    from mpgemm.torch import emulate

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 16)).bfloat16()
    x = torch.randn(8, 64).bfloat16()
    for device in ("h100", "v100"):
        with (
            record(model.float() if device == "v100" else model, tmp_path / device) as trace,
            emulate("h100" if device == "h100" else "ieee"),
        ):
            for _ in range(2):
                model(x.to(next(model.parameters()).dtype))
        assert trace.step == 2
    found = read_trace(tmp_path / "h100")
    assert list(found.modules) == [(0, "0"), (0, "2"), (1, "0"), (1, "2")]
    assert set(found.modules[0, "0"]) == {"input", "weight", "bias", "output"}
    comparison = compare_traces(found, read_trace(tmp_path / "v100"), explain=False)
    assert (comparison.first.step, comparison.first.module, comparison.first.inputs) == (0, "0", False)
