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


class Fp8Linear(torch.nn.Module):
    """A layer of nobody's class: factors of rows and columns, a bias behind the product, an activation."""

    def __init__(self, k, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n, k).to(torch.float8_e4m3fn), requires_grad=False)
        self.scale = torch.nn.Parameter(torch.rand(n, 1) + 0.5, requires_grad=False)

    def forward(self, x):
        scale = x.abs().amax(1, keepdim=True).float() / 448
        found = torch._scaled_mm(
            (x / scale).to(torch.float8_e4m3fn), self.weight.t(), scale, self.scale.t(), out_dtype=torch.bfloat16
        )
        return torch.relu(found + 1)


class Own(torch.nn.Linear):
    """A subclass with an activation: its output is not its product."""

    def forward(self, x):
        return torch.nn.functional.silu(super().forward(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.fp8 = torch.nn.Linear(32, 32), Fp8Linear(32, 32)
        self.own = Own(32, 16)
        self.projection = torch.nn.Parameter(torch.randn(16, 8))
        for part in (self.first, self.own):
            part.bfloat16()
        self.projection.data = self.projection.data.bfloat16()

    def forward(self, x):
        y = self.own(self.fp8(self.first(x))) @ self.projection
        return torch.bmm(y[None], y.t()[None])[0]


@pytest.mark.parametrize("emulated", ["outside", "inside", None])
@pytest.mark.parametrize("inference", [False, True])
def test_products_of_any_module_are_recorded(tmp_path, emulated, inference):
    from contextlib import ExitStack

    from mpgemm.torch import emulate

    torch.manual_seed(1)
    model, x = Model(), torch.randn(16, 32).bfloat16()
    with ExitStack() as stack:
        stack.enter_context(torch.inference_mode(inference))
        if emulated == "outside":
            stack.enter_context(emulate("h100"))
        trace = stack.enter_context(record(model, tmp_path / "run"))
        if emulated == "inside":
            stack.enter_context(emulate("h100"))
        model(x)
    assert trace.left_out == {"model: bmm": 1}
    found = read_trace(tmp_path / "run")
    assert [name for _, name in found.modules] == ["first", "fp8", "own", "model"]
    assert found.left_out == ("model: bmm",)
    kinds = {name: set(tensors) for (_, name), tensors in found.modules.items()}
    assert kinds["fp8"] == {"input", "weight", "input_scale", "weight_scale", "output"}
    assert kinds["own"] == kinds["first"] == {"input", "weight", "bias", "output"}
    product = found.tensor((0, "own"), "input") @ found.tensor((0, "own"), "weight").T
    out = found.tensor((0, "own"), "output").astype(float)
    assert abs(product + found.tensor((0, "own"), "bias") - out).max() <= 0.02 * abs(out).max()  # before the activation
    operands = [found.tensor((0, "model"), kind).astype("f4") for kind in ("input", "weight")]
    out = found.tensor((0, "model"), "output").astype("f4")
    assert abs(operands[0] @ operands[1].T - out).max() <= 0.01 * abs(out).max()
    comparison = compare_traces(found, found)
    assert comparison.sentences()[-1] == "not recorded: model: bmm"


def test_nothing_of_the_backward_pass_is_recorded_and_modules_that_raise_are_left(tmp_path):
    class Raises(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("on purpose")

    model = Model()
    model.add_module("raises", Raises())
    with record(model, tmp_path / "run") as trace:
        with pytest.raises(RuntimeError, match="on purpose"):
            model.raises(torch.ones(1))
        model.first(torch.ones(2, 32).bfloat16()).sum().backward()
        torch.ones(4, 4) @ torch.ones(4, 4)
    assert [name for _, name in read_trace(tmp_path / "run").modules] == ["first"] and not trace.left_out
