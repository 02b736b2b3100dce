"""The report of torch under emulation: sites, calls, layers that differ between two GPUs, errors."""

import numpy as np
import pytest

import mpgemm

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")

from mpgemm.frameworks.multiplier import Multiplier  # noqa: E402
from mpgemm.frameworks.torch_tensors import to_array  # noqa: E402
from mpgemm.torch import emulate  # noqa: E402


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def engine_of(fmt, device="h100"):
    return Multiplier(device).engine_for(fmt, fmt)


def product(a, b, fmt, out=None):
    """The engine's product of two tensors, rounded to a's type."""
    found = engine_of(fmt).gemm(to_array(a, "a"), to_array(b, "b"))
    return torch.from_numpy(found).to(out or a.dtype)


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).half()


def test_sites_are_module_paths_and_calls_are_counted():
    net, x = model(), normal(6, 64, dtype=torch.float16)
    with emulate("h100") as run:
        for _ in range(3):
            net(x)
        x @ x.t()
    rows = run.report().rows
    assert [(row.site.site, row.site.op, row.calls) for row in rows] == [
        ("Sequential.0", "addmm", 3), ("Sequential.2", "addmm", 3), ("(outside of modules)", "mm", 1),
    ]  # fmt: skip


def test_a_gradient_belongs_to_the_layer_of_its_product():
    """Dropout of nothing gives its input back, and a layer may run twice."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.Dropout(0.0), torch.nn.Linear(6, 6)).half()
    net.append(net[2])
    with emulate("h100") as run:
        net(normal(3, 8, dtype=torch.float16).requires_grad_()).sum().backward()
    counts: dict = {}
    for row in run.report().rows:
        key = row.site.phase, row.site.site
        counts[key] = counts.get(key, 0) + row.calls
    assert counts["backward", "Sequential.0"] == 2 and set(counts.values()) == {1, 2, 4}
    assert sum(n for (phase, _), n in counts.items() if phase == "backward") == 6 and len(counts) == 4


def test_layers_that_differ_between_two_gpus():
    """Products of 2^-25 beside 1: Hopper keeps that bit at the alignment, Ampere drops it."""
    a = torch.full((1, 16), 2.0**-12, dtype=torch.float16)
    b = torch.full((16, 3), 2.0**-13, dtype=torch.float16)
    a[0, 0] = b[0] = 1
    b[1:, 2] = 0
    with emulate(["a100", "h100"]) as run:
        torch.mm(a, b, out_dtype=torch.float32)
        torch.mm(b[:, 2:].t(), b[:, 2:])
    found = [engine_of("fp16", device).gemm(a.numpy(), b.numpy()) for device in ("a100", "h100")]
    count = int((found[0] != found[1]).sum())
    report = run.report()
    assert [row.differing for row in report.rows] == [(count,), (0,)] and count == 2
    assert report.differing == (report.rows[0],)
    assert "differs on h100" in str(report) and "2 of 3" in str(report)


def test_errors_are_those_of_errors():
    a, b = normal(20, 64, dtype=torch.bfloat16), normal(64, 10, dtype=torch.bfloat16, seed=1)
    with emulate("h100", errors=True) as run:
        c = a @ b
    (row,) = run.report().rows
    arrays = to_array(a, "a"), to_array(b, "b")
    expected = mpgemm.errors(to_array(c, "c"), *arrays)
    assert row.error_fp64 == pytest.approx(expected.relative_frobenius, rel=1e-12)
    fp32 = arrays[0].astype(np.float32) @ arrays[1].astype(np.float32)
    assert row.fp32_error == pytest.approx(mpgemm.errors(fp32, *arrays).relative_frobenius, rel=1e-12)
    values = to_array(c, "c").astype(np.float64)
    assert row.error_fp32 == pytest.approx(
        np.linalg.norm(values - fp32) / np.linalg.norm(fp32.astype(float)), rel=1e-12
    )
    assert '"error_fp64"' in run.report().to_json()


def test_errors_pool_over_calls_and_leave_the_bias_out():
    net, x = model(), normal(6, 64, dtype=torch.float16)
    with emulate("h100", errors=True) as run:
        net(x)
    plain = product(x, net[0].weight.t(), "fp16")
    expected = mpgemm.errors(to_array(plain, "c"), to_array(x, "x"), to_array(net[0].weight.t(), "w"))
    assert run.report().rows[0].error_fp64 == pytest.approx(expected.relative_frobenius, rel=1e-12)
