"""A method's row of one's own as a kernel: its bits, its plan, what no kernel computes."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import mpgemm  # noqa: E402
from mpgemm import kernels  # noqa: E402
from mpgemm.kernels.gate import same_bits  # noqa: E402

#: Two words of bf16; the low-low product, too, and a chain for each level of products.
MINE = mpgemm.RecoveryMethod(
    name="mine",
    title="four products of bf16",
    formula="D = (h h) + (l h + h l) + l l",
    source="this test",
    formats=("bf16",),
    products=((1, 1), (0, 1), (1, 0), (0, 0)),
    accumulation="outside",
    order=32,
)


def operands():
    rng = np.random.default_rng(5)
    return [torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((19, 70), (70, 21), (19, 21))]


def test_a_row_of_ones_own_is_a_kernel(monkeypatch):
    from ptx_device import PTXDevice

    device = PTXDevice("sm_80").use(monkeypatch)
    a, b, c = operands()
    tile = kernels.Configuration(16, 32, 32, 2, 2)
    found = kernels.matmul(a, b, MINE, c=c, config=tile)
    wanted = mpgemm.recovered_gemm(a.numpy(), b.numpy(), c.numpy(), kernels.recipe(MINE), "ampere")
    assert same_bits(found.numpy(), wanted).all()
    assert [x.function for x in device.launches] == ["gemm", "repair"]
    assert device.launches[0].constants["LEVELS"] == ((0,), (1,), (2,))
    assert same_bits(kernels.plan(19, 21, 70, MINE, device="cpu", config=tile)(a, b, c=c).numpy(), wanted).all()
    assert same_bits(kernels.matmul(a, kernels.split(b, MINE), c=c, config=tile).numpy(), wanted).all()
    with pytest.raises(ValueError, match="was split with method mine#"):
        kernels.matmul(a, kernels.split(b, MINE), "bf16x3")


@pytest.mark.filterwarnings("ignore:tensors on the CPU")
def test_it_is_simulated_where_no_device_is():
    a, b, _ = operands()
    wanted = mpgemm.recovered_gemm(a.numpy(), b.numpy(), method=kernels.recipe(MINE), engine="h100")
    assert same_bits(kernels.matmul(a, b, MINE).numpy(), wanted).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accumulation": "nested"}, "accumulation 'nested', expected core, blocks, outside, k_step or termwise"),
        ({"order": "step"}, "give order the tile's length along k"),
        ({"order": 24}, "power of two"),
        ({"rounding": "rz"}, "rounding 'rz', expected rne"),
        ({"last_rounding": "rz"}, "has no kernel"),
        ({"formats": ("e4m3fn",)}, "has no kernel"),
    ],
)
def test_what_no_kernel_computes_is_refused(changes, message):
    a, b, _ = operands()
    with pytest.raises(ValueError, match=message):
        kernels.matmul(a, b, dataclasses.replace(MINE, **changes))
