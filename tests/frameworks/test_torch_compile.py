"""`torch.ops.mpgemm.gemm` under torch's own checks, autograd and torch.compile; compiled models under emulation."""

import numpy as np
import pytest

import tensorcore_models as tcm

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")

from mpgemm.torch import emulate, matmul  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")
H100 = "h100"


def normal(*shape, dtype=torch.float16, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def gemm(a, b):
    return torch.from_numpy(tcm.default_instruction(H100, "fp16").gemm(a.detach().numpy(), b.detach().numpy()))


def test_the_operation_has_the_bits_of_gemm():
    a, b = normal(5, 40), normal(40, 6, seed=1)
    assert torch.equal(matmul(a, b, H100), gemm(a, b).half())
    assert torch.equal(matmul(a, b, H100, out_dtype=torch.float32), gemm(a, b))
    assert torch.equal(matmul(a[None], b[None], H100)[0], gemm(a, b).half())
    split = tcm.default_instruction(H100, "fp16").gemm(a.numpy(), b.numpy(), k_order="split_k:2")
    assert np.array_equal(matmul(a, b, H100, k_order="split_k:2", out_dtype=torch.float32).numpy(), split)


def test_its_gradients_run_on_the_engine():
    a, b, grad = normal(5, 40).requires_grad_(), normal(40, 6, seed=1).requires_grad_(), normal(5, 6, seed=2)
    matmul(a, b, H100).backward(grad)
    assert torch.equal(a.grad, gemm(grad, b.t()).half()) and torch.equal(b.grad, gemm(a.t(), grad).half())


def test_torchs_own_checks_of_an_operation():
    a, b = normal(2, 5, 16).requires_grad_(), normal(2, 16, 6, seed=1).requires_grad_()
    torch.library.opcheck(torch.ops.mpgemm.gemm, (a, b, H100, "sequential", None, None, torch.float16))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_compiled_function_keeps_the_operation_in_one_graph(backend):
    torch._dynamo.reset()

    def layer(x, w):
        return torch.relu(matmul(x, w, H100)) * 2

    x, w = normal(5, 40), normal(40, 6, seed=1).requires_grad_()
    compiled = torch.compile(layer, backend=backend, fullgraph=True)
    found, expected = compiled(x, w), layer(x, w)
    assert torch.equal(found, expected)
    found.float().sum().backward()
    first, w.grad = w.grad, None
    expected.float().sum().backward()
    assert torch.equal(first, w.grad)


@pytest.mark.parametrize("compiled_before", [False, True])
def test_a_compiled_model_is_emulated(compiled_before):
    torch._dynamo.reset()
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(40, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).half()
    x, compiled = normal(5, 40), torch.compile(net, backend="aot_eager")
    if compiled_before:
        compiled(x)
    with emulate(H100) as run:
        found = compiled(x)
    with emulate(H100):
        assert torch.equal(found, net(x))
    assert [row.site.op for row in run.report().rows] == ["addmm", "addmm"]


@pytest.mark.parametrize("shapes", [((4, 8), (7, 3)), ((2, 4, 8), (3, 8, 5)), ((4, 8), (2, 8, 3)), ((8,), (8,))])
def test_shapes_that_do_not_fit(shapes):
    with pytest.raises(ValueError, match=r"expected \(m, k\) and \(k, n\)"):
        matmul(*(torch.ones(shape) for shape in shapes), H100)


def test_errors_of_the_engine_pass_through():
    with pytest.raises(ValueError, match="unknown architecture 'h1000'"):
        matmul(normal(2, 2), normal(2, 2), "h1000")
    with pytest.raises(ValueError, match="not representable in fp16"):
        x = normal(2, 2, dtype=torch.float32)
        matmul(x, x, "hopper:mma.m16n8k16.f32.f16.f16.f32")
