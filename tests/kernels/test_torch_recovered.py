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
        ({"model": 3}, TypeError, "model is a int"),
        ({"method": "bf16x9", "terms": 3}, ValueError, "no option"),
    ],
)
def test_bad_input(arguments, error, message):
    with pytest.raises(error, match=message):
        recovered(**arguments)
