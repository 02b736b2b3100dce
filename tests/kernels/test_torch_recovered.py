"""A model under recovery kernels: which products they run, with which bits, forward and backward."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")

from mpgemm import kernels  # noqa: E402
from mpgemm.torch import recovered  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:tensors on the CPU")


@pytest.fixture
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(24, 16), torch.nn.ReLU(), torch.nn.Linear(16, 5))


def test_forward_and_backward_are_the_method(model):
    x = torch.randn(7, 24)
    with recovered(model, method="bf16x6") as run:
        y = model(x)
        y.sum().backward()
    first, last = model[0], model[2]
    with torch.no_grad():
        hidden = kernels.matmul(x, first.weight.T, "bf16x6", c=first.bias).relu()
        assert torch.equal(y, kernels.matmul(hidden, last.weight.T, "bf16x6", c=last.bias))
        ones = torch.ones(7, 5)
        assert torch.equal(last.weight.grad, kernels.matmul(ones.T, hidden, "bf16x6"))
        into = kernels.matmul(ones, last.weight, "bf16x6") * (hidden > 0)
        assert torch.equal(first.weight.grad, kernels.matmul(into.T, x, "bf16x6"))
    assert run.calls == {"addmm": 2, "mm": 3}


def test_only_the_model_named_and_only_fp32(model):
    other, x = torch.nn.Linear(24, 3), torch.randn(2, 24)
    native = other(x)
    with recovered(model, "bf16x6") as run:
        assert torch.equal(other(x), native) and not run.calls
        torch.ones(3, 3, dtype=torch.float64) @ torch.ones(3, 3, dtype=torch.float64)
        assert not run.calls
        model(x)
    assert run.calls == {"addmm": 2}
    with recovered(method="bf16x6", scale="rows") as run:
        torch.einsum("bij,bjk->bik", torch.randn(2, 3, 4), torch.randn(2, 4, 5))
        torch.nn.functional.conv1d(torch.randn(1, 2, 9), torch.randn(3, 2, 4))
    assert run.calls == {"bmm": 1, "native convolution": 1}


def test_products_inside_custom_operations_are_taken_or_counted():
    def square(a: torch.Tensor) -> torch.Tensor:
        return a @ a

    seen = torch.library.custom_op("mpgemm_recovered::square", square, mutates_args=())
    of_one_device = torch.library.custom_op("mpgemm_recovered::of_the_cpu", square, mutates_args=(), device_types="cpu")
    library = torch.library.Library("mpgemm_recovered", "FRAGMENT")
    library.define("hidden(Tensor a) -> Tensor")
    library.impl("hidden", square, "CPU")
    x = torch.randn(6, 6)
    with recovered(method="bf16x3") as run:
        found = [f(x) for f in (seen, of_one_device, torch.ops.mpgemm_recovered.hidden)]
    right, native = kernels.matmul(x, x, "bf16x3"), x @ x
    assert torch.equal(found[0], right) and not torch.equal(right, native)
    assert all(torch.equal(each, native) for each in found[1:])
    unseen = {f"native unseen mpgemm_recovered::{name}": 1 for name in ("of_the_cpu", "hidden")}
    assert run.calls == {"mm": 1, **unseen}


def test_every_spelling_of_a_product_is_taken():
    a, b, c, v = torch.randn(3, 4), torch.randn(4, 5), torch.randn(3, 5), torch.randn(4)
    batch = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    own, out, empty = c.clone(), torch.zeros(3, 5), torch.empty(0)
    with recovered(method="bf16x6") as run:
        own.addmm_(a, b, beta=0.5, alpha=2.0)
        torch.addmm(c, a, b, out=out)
        torch.mm(a, b, out=empty)
        vectors = [torch.mv(a, v), torch.dot(v, v), torch.addmv(c[:, 0], a, v, beta=2.0)]
        summed = torch.addbmm(c, *batch, alpha=0.5)
    assert torch.equal(own, kernels.matmul(a, b, "bf16x6", c=c, alpha=2.0, beta=0.5))
    assert torch.equal(out, kernels.matmul(a, b, "bf16x6", c=c)) and torch.equal(empty, kernels.matmul(a, b, "bf16x6"))
    pairs = ((a, v, {}), (v, v, {}), (a, v, {"c": c[:, 0], "beta": 2.0}))
    assert all(torch.equal(x, kernels.matmul(y, z, "bf16x6", **k)) for x, (y, z, k) in zip(vectors, pairs, strict=True))
    wide = torch.cat([*batch[0]], 1), torch.cat([*batch[1]])
    assert torch.equal(summed, kernels.matmul(*wide, "bf16x6", c=c, alpha=0.5))
    assert run.calls == {"addmm_": 1, "addmm": 1, "mm": 1, "mv": 1, "dot": 1, "addmv": 1, "addbmm": 1}


def test_what_stays_native_is_counted():
    """Other types, sparse tensors, fused attention; the projections of attention are taken, also in evaluation."""
    x, linear = torch.randn(2, 5, 16), torch.nn.Linear(16, 4)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    before = torch.backends.mha.get_fastpath_enabled()
    with recovered(method="bf16x6") as run, torch.no_grad():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            linear(x)
        torch.ones(2, 2, dtype=torch.float64) @ torch.ones(2, 2, dtype=torch.float64)
        torch.mm(torch.randn(3, 4), torch.randn(4, 3).to_sparse())
        assert run.calls == {"native bfloat16 addmm": 1, "native float64 mm": 1, "native mm": 1}
        run.calls.clear()
        layer(x)
    assert torch.backends.mha.get_fastpath_enabled() == before
    attention = "native _scaled_dot_product_flash_attention_for_cpu"
    assert run.calls == {"mm": 1, "addmm": 3, attention: 1}


def test_a_compiled_model_is_the_method(model):
    x = torch.randn(3, 24)
    with recovered(model, "bf16x6") as run:
        wanted = model(x)
        found = torch.compile(model, backend="aot_eager")(x)
        found.sum().backward()
    assert torch.equal(found, wanted) and run.calls["addmm"] == 4 and run.calls["mm"] == 3


def test_training_under_a_method_follows_fp32(model):
    x, y = torch.randn(32, 24), torch.randn(32, 5)
    twin = torch.nn.Sequential(torch.nn.Linear(24, 16), torch.nn.ReLU(), torch.nn.Linear(16, 5))
    twin.load_state_dict(model.state_dict())
    losses = []
    for each, context in ((model, recovered(model, "bf16x9")), (twin, torch.enable_grad())):
        optimiser = torch.optim.SGD(each.parameters(), lr=0.05)
        with context:
            for _ in range(5):
                optimiser.zero_grad()
                loss = torch.nn.functional.mse_loss(each(x), y)
                loss.backward()
                optimiser.step()
        losses.append(loss.item())
    assert np.isclose(*losses, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"method": "bf16xfp32x3"}, ValueError, "take bf16x3"),
        ({"method": "quantensor"}, ValueError, "has no kernel"),
        ({"config": "fast"}, TypeError, "config is 'fast'"),
        ({"model": 3}, TypeError, "model is a int"),
        ({"method": "bf16x9", "terms": 3}, ValueError, "no option"),
        ({"unit": "x"}, ValueError, "unknown architecture 'x'"),
        ({"unit": "v100"}, ValueError, "needs words of bf16, v100 takes fp16"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        recovered(**arguments)
