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
        pair = torch.stack([y, y])
        return torch.bmm(pair, pair.mT)[0]


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


class Einsum(torch.nn.Module):
    """Products that einsum forms: of matrices, and of one matrix for each head."""

    def __init__(self):
        super().__init__()
        self.joined, self.heads = (torch.nn.Parameter(torch.randn(2, k, 4)) for k in (8, 4))

    def forward(self, x):
        y = torch.einsum("nk,hkd->nhd", x, self.joined).flatten(1)
        return torch.einsum("nhk,hkd->nhd", y.view(len(y), 2, 4), self.heads).flatten(1)


class Fused(torch.nn.Module):
    """Two operations of nobody's library, in Python and where no code can be seen, and a third with a function of the CPU."""

    def forward(self, x):
        for name in ("fused", "of_the_cpu", "hidden"):
            x = getattr(torch.ops.mpgemm_recorder, name)(x)
        return x


def _relu_of_square(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x @ x)


@pytest.mark.parametrize("inference", [False, True])
def test_what_custom_operations_and_einsum_multiply_is_recorded_or_named(tmp_path, inference):
    with torch.library._scoped_library("mpgemm_recorder", "FRAGMENT") as library, torch.inference_mode(inference):
        torch.library.custom_op("mpgemm_recorder::fused", _relu_of_square, mutates_args=())
        torch.library.custom_op("mpgemm_recorder::of_the_cpu", _relu_of_square, mutates_args=(), device_types="cpu")
        library.define("hidden(Tensor x) -> Tensor")
        library.impl("hidden", _relu_of_square, "CPU")
        model = torch.nn.Sequential(Einsum(), Fused())
        x = torch.randn(8, 8)
        right = model(x)
        with record(model, tmp_path / "run") as trace:
            assert torch.equal(model(x), right)
    unseen = "mpgemm_recorder::{}, whose code cannot be seen"
    assert trace.left_out == {
        "0: bmm": 1, f"1: {unseen.format('of_the_cpu')}": 1, f"1: {unseen.format('hidden')}": 1,
    }  # fmt: skip
    found = read_trace(tmp_path / "run")
    assert list(found.modules) == [(0, "0"), (0, "1")]
    for key in found.modules:
        left, weight, out = (found.tensor(key, kind) for kind in ("input", "weight", "output"))
        assert abs(left.astype(float) @ weight.T - out).max() <= 1e-4 * abs(out).max()


def test_scales_belong_to_what_a_module_is_given(tmp_path):
    torch.manual_seed(2)
    model, x = Fp8Linear(32, 32), torch.randn(16, 32)
    for name, values in (("one", x), ("other", 1.001 * x)):
        with record(model, tmp_path / name):
            model(values)
    one, other = (read_trace(tmp_path / name) for name in ("one", "other"))
    assert (one.tensor((0, "model"), "input").view("u1") == other.tensor((0, "model"), "input").view("u1")).all()
    first = compare_traces(one, other, explain=False).first
    assert first.inputs is False and first.weights is True
