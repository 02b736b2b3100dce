"""Plans: bits of products by TMA on the machine of PTX, launches and workspace, what the compiled loops hold, refusals."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import mpgemm  # noqa: E402
from mpgemm import kernels  # noqa: E402
from mpgemm.kernels.configurations import shared_bytes  # noqa: E402
from mpgemm.kernels.forms import KERNELS, kernel_form, kernel_method, narrowed  # noqa: E402
from mpgemm.kernels.gate import operands, same_bits  # noqa: E402
from mpgemm.kernels.plans import ProductPlan  # noqa: E402
from tensorcore_models.gpu.counting import loop_count, register_count  # noqa: E402

TILE_64, TILE_32 = kernels.Configuration(64, 64, 64, 4, 3), kernels.Configuration(64, 64, 32, 4, 3)
#: Method, layout, data, whether C is added, types of A and B.
CASES = [
    ("ootomo", "nn", "special", True, "fp32", "fp32"),
    ("tf32x3", "tn", "special", False, "fp32", "fp32"),
    pytest.param("bf16x9", "nt", "wide", True, "fp32", "fp32", marks=pytest.mark.full),
    pytest.param("bf16x6", "nn", "special", False, "bf16", "fp32", marks=pytest.mark.full),
    pytest.param("sgemm_cube", "tt", "wide", True, "fp32", "fp32", marks=pytest.mark.full),
    pytest.param("ootomo_tf32", "nn", "normal", True, "fp16", "fp16", marks=pytest.mark.full),
]
_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@pytest.fixture
def hopper(monkeypatch):
    """An H100 that is none, where words are split before whatever the size."""
    from ptx_device import PTXDevice

    from mpgemm.kernels import plans

    monkeypatch.setattr(plans, "split_before", lambda *_: True)
    return PTXDevice("sm_90").use(monkeypatch)


def stored(x, layout):
    """A matrix as a tensor in rows ("n") or columns ("t")."""
    x = torch.from_numpy(x)
    return x if layout == "n" else x.T.contiguous().T


@pytest.mark.parametrize(("method", "layout", "kind", "add", "a_type", "b_type"), CASES)
def test_a_planned_product_is_the_method(hopper, method, layout, kind, add, a_type, b_type):
    m, n, k = 69, 61, 137
    fmt = kernel_form(kernel_method(method)).format
    a, b, c = operands(kind, m, n, k, fmt)
    left, right = stored(a, layout[0]).to(_DTYPES[a_type]), stored(b, layout[1]).to(_DTYPES[b_type])
    plan = kernels.plan(
        m, n, k, method, left.dtype, right.dtype, layout, "cpu", config=TILE_32 if fmt == "tf32" else TILE_64
    )
    found = plan(left, right, c=torch.from_numpy(c) if add else None)
    assert [launch.function for launch in hopper.launches] == ["split_operands", "word_product", "repair"]
    wanted = mpgemm.recovered_gemm(
        left.float().numpy(), right.float().numpy(), c if add else None, kernels.recipe(method), "h100"
    )
    assert same_bits(found.numpy(), wanted).all()


@pytest.mark.full
def test_matmul_takes_the_same_way_with_batches_and_words_split_before(hopper):
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((2, 40, 80), (2, 80, 24)))
    rows = kernels.recipe("ootomo")
    wanted = [
        mpgemm.recovered_gemm(a[i].numpy(), b[j].numpy(), method=rows, engine="h100")
        for i, j in ((0, 0), (1, 1), (1, 0))
    ]
    for _ in range(2):  # the second call is one that was seen
        found = kernels.matmul(a, b, "ootomo", config=TILE_64)
        assert same_bits(found[0].numpy(), wanted[0]).all() and same_bits(found[1].numpy(), wanted[1]).all()
    shared = kernels.matmul(a, kernels.split(b[0], "ootomo"), config=TILE_64)
    assert same_bits(shared[1].numpy(), wanted[2]).all()
    assert {x.function for x in hopper.launches} == {"split_operands", "word_product", "repair"}


def test_a_plan_keeps_its_workspace_and_follows_its_operands(monkeypatch):
    from ptx_device import PTXDevice

    device = PTXDevice("sm_80").use(monkeypatch)
    made = []
    rooms = ProductPlan.rooms
    monkeypatch.setattr(ProductPlan, "rooms", lambda *x: made.append(rooms(*x)) or made[-1])
    plan = kernels.plan(19, 21, 70, "ootomo", device="cpu", config=kernels.Configuration(16, 32, 64, 2, 2))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        a, b = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((19, 70), (70, 21)))
        a[0, 0] = np.inf if seed else 1.0  # flags are set anew by each product
        out = torch.empty(19, 21)
        assert plan(a, b, out) is out
        wanted = mpgemm.recovered_gemm(a.numpy(), b.numpy(), method=kernels.recipe("ootomo"), engine="a100")
        assert same_bits(out.numpy(), wanted).all()
        assert made[0]["flags"].tolist() == [seed, 0]
    assert len(made) == 1 and len(device.launches) == 6


def test_the_loop_of_the_product_holds_no_splitting():
    """Counted in SASS: the loop that took 0.81 ms for 4096^3 on an H100 had 226 instructions, and 207 registers."""
    plan = kernels.plan(4096, 4096, 4096, "ootomo", device="sm_90", scale="none")
    product = next(kernel for kernel in plan.kernels if kernel.launch.function == "word_product")
    count = loop_count(product.binary, 1)
    assert plan.tile == kernels.Configuration(128, 128, 64, 8, 3)
    assert count.opcodes["HGMMA"] == 12 and count.instructions <= 226 and count.spills == 0
    assert not {"FMUL", "F2FP", "F2F", "STS", "LDG", "LDGSTS", "HADD2"} & count.opcodes.keys()
    assert register_count(product.binary) <= 224
    assert count.opcodes["FADD"] == 64  # one addition an element and restart, not folded into the product
    assert others_for_each_product(count) <= 13


def others_for_each_product(count):
    """Instructions of a loop for each of the unit's, the outside additions apart: the prototype had 12.5."""
    return (count.instructions - count.opcodes["HGMMA"] - count.opcodes["FADD"]) / count.opcodes["HGMMA"]


@pytest.mark.full
@pytest.mark.parametrize("method", KERNELS)
def test_no_product_of_words_spills(method):
    kind = torch.bfloat16 if "xfp32" in method else torch.float32
    plan = kernels.plan(4096, 4096, 4096, method, kind, device="sm_90")
    product = next(kernel for kernel in plan.kernels if kernel.launch.function == "word_product")
    count = loop_count(product.binary, 1)
    # three chains of sgemm_cube keep 192 sums in a thread; 256 threads may have 255 registers each
    assert count.spills == 0 and register_count(product.binary) <= (240 if method == "sgemm_cube" else 224)
    assert not {"FMUL", "F2FP", "F2F", "STS", "LDG", "LDGSTS", "HADD2"} & count.opcodes.keys()
    if method in ("ootomo", "bf16x3", "bf16x6", "bf16x9", "tf32x3"):
        form = kernel_form(kernel_method(method))
        assert others_for_each_product(count) <= 13 and count.opcodes["FADD"] == 64
        assert count.opcodes["HGMMA"] == 4 * len(form.products)  # 16 of k each (8 of tf32), of 64 (32)


@pytest.mark.parametrize(
    ("method", "target"),
    [("bf16x9", "gfx942"), pytest.param("tf32x3", "sm_86", marks=pytest.mark.full)]
    + [pytest.param("bf16x6", x, marks=pytest.mark.full) for x in ("gfx942", "sm_80", "sm_120")],
)
def test_words_in_memory_take_the_shared_memory_that_is_estimated(method, target):
    """Triton's own count of the tile that the plan chooses: stages of elements fit where stages of three words do not."""
    plan = kernels.plan(4096, 4096, 4096, method, device=target, scale="none")
    product = next(kernel for kernel in plan.kernels if kernel.launch.function == "gemm")
    form = kernel_form(kernel_method(method))
    assert product.launch.constants["SPLIT"] == (True, True)
    assert product.shared == shared_bytes(form, plan.tile, product.target, (True, True)) <= product.target.shared


def test_words_that_are_zero_are_not_multiplied():
    form = kernel_form(kernel_method("bf16x9"))
    assert narrowed(form, (1, 3)).products == ((0, 2), (0, 1), (0, 0)) and narrowed(form, (1, 3)).words == (1, 3)
    plan = kernels.plan(512, 512, 512, "bf16x9", torch.bfloat16, torch.bfloat16, device="sm_80")
    assert plan.launches[-2].constants["PRODUCTS"] == ((0, 0),)
    # without the repair an infinity would show what was left out
    plan = kernels.plan(512, 512, 512, "bf16x9", torch.bfloat16, torch.bfloat16, device="sm_80", repair=False)
    assert len(plan.launches[-1].constants["PRODUCTS"]) == 9


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "cpu"}, "call kernels.matmul, which simulates"),
        ({"device": "sm_70"}, "unknown target"),
        ({"layout": "nm"}, "expected one of nn, nt, tn, tt"),
        ({"m": 0}, "m is 0"),
        ({"method": "ozaki2_int8:moduli=5"}, "expected a method with FP32 results"),
        ({"a_dtype": torch.float64}, "a_dtype is torch.float64"),
        ({"method": "bf16xfp32x3"}, "expects torch.bfloat16"),
        ({"config": kernels.Configuration(64, 64, 32)}, "expected 64, on which the method's bits depend"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        kernels.plan(**{"m": 64, "n": 64, "k": 64, "method": "ootomo", "device": "sm_90", **changes})


def test_operands_that_were_not_planned_are_refused(monkeypatch):
    from ptx_device import PTXDevice

    with pytest.raises(ValueError, match="without a device"):
        kernels.plan(16, 16, 64, "bf16x3", device="sm_80")(torch.zeros(16, 64), torch.zeros(64, 16))
    PTXDevice("sm_80").use(monkeypatch)
    plan = kernels.plan(16, 16, 64, "bf16x3", device="cpu", config=kernels.Configuration(16, 16, 64, 1, 1))
    a, b = torch.zeros(16, 64), torch.zeros(64, 16)
    for left, right, more in (
        (a.T.contiguous().T, b, {}), (a[:8], b, {}), (a, b.half(), {}), (a, b, {"out": torch.zeros(16, 8)}),
        (a, b, {"out": a.view(-1)[:256].view(16, 16)}), (a.clone().requires_grad_(), b, {}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"kernels.matmul|out has shape"):
            plan(left, right, **more)
    with pytest.raises(TypeError, match="float32"):
        plan(a, b, out=torch.zeros(16, 16, dtype=torch.float64))
