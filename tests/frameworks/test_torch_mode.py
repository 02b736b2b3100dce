"""Torch under emulation gives the engine's bits: forward and backward, and never a native product unless asked."""

import dataclasses
import subprocess
import sys
import threading

import numpy as np
import pytest
from amd_cases import GEMM, text
from hypothesis import given, settings
from hypothesis import strategies as st

import tensorcore_models as tcm
from tensorcore_models import compiled, libraries
from tensorcore_models.libraries.recorded import Problem, Recording

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'mpgemm[torch]'")

from mpgemm.frameworks.multiplier import Multiplier  # noqa: E402
from mpgemm.frameworks.torch_tensors import to_array  # noqa: E402
from mpgemm.torch import emulate  # noqa: E402

F = torch.nn.functional
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}


def normal(*shape, dtype=torch.float32, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def engine_of(fmt, device="h100"):
    return Multiplier(device).engine_for(fmt, fmt)


def product(a, b, fmt, out=None):
    """The engine's product of two tensors, rounded to a's type."""
    found = engine_of(fmt).gemm(to_array(a, "a"), to_array(b, "b"))
    return torch.from_numpy(found).to(out or a.dtype)


def bits(x):
    return x.detach().contiguous().view(torch.uint8)


def equal(x, y):
    return x.dtype == y.dtype and x.shape == y.shape and torch.equal(bits(x), bits(y))


# -- bits -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("fmt", TYPES)
def test_mm_has_the_bits_of_gemm(fmt):
    a, b = normal(33, 70, dtype=TYPES[fmt]), normal(19, 70, dtype=TYPES[fmt], seed=1).t()
    with emulate("h100") as run:
        c = a @ b
    assert equal(c, product(a, b, fmt))
    (row,) = run.report().rows
    assert (row.site.m, row.site.k, row.site.n, row.site.engines[0]) == (33, 70, 19, engine_of(fmt).label)


def test_the_emulated_bits_are_not_torchs():
    a, b = normal(32, 256, dtype=torch.float16), normal(256, 32, dtype=torch.float16, seed=1)
    with emulate("h100"):
        c = torch.mm(a, b, out_dtype=torch.float32)
    assert c.dtype == torch.float32 and not torch.equal(c, a.float() @ b.float())


def test_one_rounding_to_the_output_type():
    """1 + 2^-11 + 2^-23 rounds up in FP16; rounded to 1 + 2^-11 first it would be a tie and round down."""
    a = torch.tensor([[1, 2**-11, 2**-12]], dtype=torch.float16)
    b = torch.tensor([[1], [1], [2**-11]], dtype=torch.float16)
    with emulate("h100"):
        assert float(a @ b) == 1 + 2**-10


@pytest.mark.parametrize(("alpha", "beta"), [(1, 1), (1, 0), (0.3, 1), (2, -0.7)])
def test_addmm_ends_as_gemm_does(alpha, beta):
    a, b = normal(9, 40, dtype=torch.bfloat16), normal(40, 5, dtype=torch.bfloat16, seed=1)
    c = normal(5, dtype=torch.bfloat16, seed=2)
    with emulate("h100"):
        found = torch.addmm(c, a, b, alpha=alpha, beta=beta)
        placed = c.expand(9, 5).clone().addmm_(a, b, alpha=alpha, beta=beta)
        batched = torch.baddbmm(c.expand(1, 9, 5), a[None], b[None], alpha=alpha, beta=beta)[0]
    sums = torch.from_numpy(engine_of("bf16").gemm(to_array(a, "a"), to_array(b, "b")))
    c32 = (np.float64(beta) * c.double().numpy()).astype(np.float32)
    expected = (np.float64(alpha) * sums.double().numpy()).astype(np.float32) + (c32 if beta else 0)
    assert equal(found, torch.from_numpy(expected).bfloat16())
    assert equal(found, placed) and equal(found, batched)


def test_bmm_and_out():
    a, b = normal(3, 7, 24, dtype=torch.float16), normal(3, 24, 5, dtype=torch.float16, seed=1)
    out = torch.empty(0, dtype=torch.float16)
    with emulate("h100"):
        found = torch.bmm(a, b)
        torch.bmm(a, b, out=out)
    assert equal(found, torch.stack([product(x, y, "fp16") for x, y in zip(a, b, strict=True)]))
    assert equal(out, found)


@pytest.mark.parametrize("context", [torch.enable_grad, torch.no_grad, torch.inference_mode])
def test_linear_matmul_and_einsum(context):
    x, w, bias = (normal(*s, dtype=torch.bfloat16, seed=i) for i, s in enumerate([(2, 3, 32), (8, 32), (8,)]))
    with emulate("h100"), context():
        linear, einsum = F.linear(x, w, bias), torch.einsum("bik,nk->bin", x, w)
    plain = torch.from_numpy(engine_of("bf16").gemm(to_array(x.view(6, 32), "a"), to_array(w.t(), "b")))
    assert equal(linear, (plain + bias.float()).bfloat16().view(2, 3, 8))
    assert equal(einsum, plain.bfloat16().view(2, 3, 8))


def test_backward_runs_on_the_engine():
    x, w = normal(6, 32, dtype=torch.bfloat16), normal(8, 32, dtype=torch.bfloat16, seed=1)
    x.requires_grad_(), w.requires_grad_()
    grad = normal(6, 8, dtype=torch.bfloat16, seed=2)
    with emulate("h100") as run:
        F.linear(x, w).backward(grad)
    assert equal(x.grad, product(grad, w, "bf16"))
    assert equal(w.grad, product(grad.t(), x, "bf16"))
    assert [row.site.phase for row in run.report().rows] == ["forward", "backward", "backward"]


def test_empty_products():
    with emulate("h100"):
        assert torch.equal(torch.empty(2, 0).half() @ torch.empty(0, 3).half(), torch.zeros(2, 3).half())
        assert (torch.empty(0, 4).half() @ torch.empty(4, 3).half()).shape == (0, 3)
        assert torch.bmm(torch.empty(0, 2, 4).half(), torch.empty(0, 4, 3).half()).shape == (0, 2, 3)


# -- convolutions ----------------------------------------------------------------------------------------------------------
def integers(shape, seed):
    return torch.randint(-3, 4, shape, generator=torch.Generator().manual_seed(seed)).float()


@settings(max_examples=40, deadline=None)
@given(
    spatial=st.integers(1, 3), groups=st.sampled_from([1, 2]), stride=st.integers(1, 3), padding=st.integers(0, 3),
    dilation=st.integers(1, 2), kernel=st.integers(1, 3), transposed=st.booleans(), extra=st.integers(0, 1),
)  # fmt: skip
def test_convolutions_of_integers_are_exact(spatial, groups, stride, padding, dilation, kernel, transposed, extra):
    """Sums of small integers are exact everywhere: output and gradients must be torch's own."""
    size = (9, 8, 7)[:spatial]
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if transposed:
        options |= {"output_padding": extra if max(stride, dilation) > extra else 0}
        if any((n - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1 < 1 for n in size):
            return
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{spatial}d")
    x = integers((2, 4, *size), 0)
    weight = integers((4, 3 if transposed else 4 // groups, *[kernel] * spatial), 1)
    bias = integers((3 * groups if transposed else 4,), 2)
    leaves = [t.requires_grad_() for t in (x, weight, bias)]
    expected = function(x, weight, bias, **options)
    grad = integers(expected.shape, 3)
    expected_grads = torch.autograd.grad(expected, leaves, grad)
    with emulate("ieee", input_rounding="rna"):
        found = function(x, weight, bias, **options)
        grads = torch.autograd.grad(found, leaves, grad)
    assert torch.equal(found, expected)
    for one, other in zip(grads, expected_grads, strict=True):
        assert torch.equal(one, other)


def test_a_convolution_is_the_product_of_its_unfolding():
    x, w = normal(2, 6, 10, 9, dtype=torch.float16), normal(5, 6, 3, 2, dtype=torch.float16, seed=1)
    bias = normal(5, dtype=torch.float16, seed=2)
    with emulate("h100"):
        found = F.conv2d(x, w, bias, stride=2, padding=1)
    windows = F.unfold(x, (3, 2), stride=2, padding=1).transpose(1, 2).reshape(-1, 36)
    plain = product(windows, w.reshape(5, -1).t(), "fp16")
    expected = (plain + bias).reshape(2, -1, 5).transpose(1, 2).reshape(found.shape)
    assert equal(found, expected)


# -- attention -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("in_half", [False, True])
def test_attention_takes_the_math_path_with_torchs_flag(in_half, monkeypatch):
    q, k, v = (normal(1, 2, 5, 16, dtype=torch.float16, seed=i) for i in range(3))
    before = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(in_half)
    try:
        with emulate("h100") as run:
            out = F.scaled_dot_product_attention(q, k, v)
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(before)
    fmt, dtype = ("fp16", torch.float16) if in_half else ("fp32", torch.float32)
    assert {row.site.formats for row in run.report().rows} == {f"{fmt} x {fmt} to {fmt}"}
    scale = 16**-0.25
    expected = []
    for i in range(2):
        x, y, z = (t[0, i].to(dtype) for t in (q, k, v))
        p = torch.softmax(product(x * scale, (y * scale).t(), fmt), -1)
        expected.append(product(p, z, fmt).half())
    assert equal(out[0], torch.stack(expected))


def test_layers_with_fused_kernels_are_taken_apart():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).bfloat16().eval()
    x = normal(2, 3, 16, dtype=torch.bfloat16)
    with torch.no_grad(), emulate("h100") as run:
        layer(x)
        torch.nn.LSTM(16, 8).bfloat16()(x)
    sites = {row.site.site for row in run.report().rows}
    assert {"TransformerEncoderLayer.linear1", "TransformerEncoderLayer.linear2", "LSTM"} <= sites


# -- FP8 -------------------------------------------------------------------------------------------------------------------
def fp8(*shape, seed, dtype=torch.float8_e4m3fn):
    return normal(*shape, seed=seed).to(dtype)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("out", ["bf16", "fp32"])
def test_scaled_mm_is_the_measured_recipe(fast, out):
    a, b = fp8(16, 272, seed=0), fp8(32, 272, seed=1).t()
    scales = torch.tensor(0.37), torch.tensor(1.9)
    with emulate("rtx4060"):
        found = torch._scaled_mm(a, b, *scales, out_dtype=TYPES[out], use_fast_accum=fast)
    expected = libraries.scaled_mm(
        to_array(a, "a").view(np.uint8), to_array(b, "b").view(np.uint8), *scales, device="rtx4060",
        out_format=out, fast_accumulation=fast,
    )  # fmt: skip
    assert np.array_equal(found.view(torch.uint8).numpy(), expected.view(np.uint8))


def test_scaled_mm_of_an_unmeasured_device_is_predicted_and_unfitting_scales_raise():
    a, b, one = fp8(16, 32, seed=0), fp8(16, 32, seed=1).t(), torch.tensor(0.5)
    with emulate("b200") as run:
        found = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)
    site = run.report().rows[0].site
    assert "predicted" in site.orders[0] and site.engines[0].startswith("blackwell:")
    engine = tcm.get_instruction(site.engines[0])
    sums = engine.gemm(to_array(a, "a"), to_array(b, "b"))
    assert equal(found, torch.from_numpy(sums * np.float32(0.25)))
    with emulate("h100"), pytest.raises(ValueError, match="fits no rule"):
        torch._scaled_mm(a, b, torch.ones(16, 3), torch.ones(1, 16), out_dtype=torch.bfloat16)


HIDDEN = {
    "cdist": lambda x: torch.cdist(x, x), "matrix_exp": torch.matrix_exp, "pinv": torch.linalg.pinv,
    "hspmm": lambda x: torch.hspmm(x.to_sparse(), x), "smm": lambda x: torch.smm(x.to_sparse(), x),
    "sspaddmm": lambda x: torch.sspaddmm(x.to_sparse(), x.to_sparse(), x), "csr": lambda x: x.to_sparse_csr() @ x,
    "affine_grid": lambda x: torch.nn.functional.affine_grid(x[:6].reshape(-1, 2, 3), (12, 1, 4, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_products_that_other_operations_hide_are_refused(name):
    x = normal(36, 12, dtype=torch.float32) if name == "affine_grid" else normal(12, 12, dtype=torch.float32)
    if name == "cdist":
        x = normal(40, 12, dtype=torch.float32)
    with (
        emulate("h100"),
        torch.no_grad(),
        pytest.raises((NotImplementedError, ValueError), match="not emulated|expected a dense tensor"),
    ):
        HIDDEN[name](x)


def test_custom_operations_threads_and_modules_that_raise():
    x = normal(8, 8, dtype=torch.float16)

    @torch.library.custom_op("mpgemm_tests::hidden", mutates_args=())
    def hidden(a: torch.Tensor) -> torch.Tensor:
        return a @ a

    class Raises(torch.nn.Module):
        def forward(self, a):
            raise RuntimeError("on purpose")

    found = []
    with emulate("h100") as run:
        found.append(hidden(x))
        thread = threading.Thread(target=lambda: found.append(x @ x))
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="on purpose"):
            Raises()(x)
        found.append(x @ x)
    assert all(equal(y, product(x, x, "fp16")) for y in found)
    assert [(row.site.site, row.calls) for row in run.report().rows] == [("(outside of modules)", 3)]
    assert threading.Thread.start.__qualname__ == "Thread.start"


def test_outer_products_are_said_to_run_natively():
    x = normal(8, 8, dtype=torch.float16)
    with emulate("h100") as run:
        assert equal(torch.addr(x, x[0], x[1]), x.clone().addr_(x[0], x[1]))
    report = run.report()
    assert not report.rows and report.notes == (
        "addr ran natively: torch forms outer products element by element, without a matrix unit",
    )


def test_blocks_of_two_threads_give_the_switches_back():
    before, entered, leave = torch.backends.mkldnn.enabled, threading.Event(), threading.Event()

    def other():
        with emulate("h100"):
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with emulate("a100"):
        thread.start()
        entered.wait(10)
    leave.set()
    thread.join()
    assert torch.backends.mkldnn.enabled == before


def test_alpha_is_fp32_as_torch_has_it():
    a, b, c = (normal(16, 16, dtype=torch.float16) for _ in range(3))
    with emulate("h100"):
        found = torch.addmm(c, a, b, alpha=0.3, beta=0.7)
    sums = torch.from_numpy(tcm.default_instruction("h100", "fp16").gemm(to_array(a, "a"), to_array(b, "b")))
    assert equal(found, (sums * np.float32(0.3) + c.float() * np.float32(0.7)).half())


def test_the_backward_pass_of_a_convolution_of_no_images():
    x, w = torch.zeros(0, 3, 8, 8, dtype=torch.bfloat16), normal(4, 3, 3, 3, dtype=torch.bfloat16).requires_grad_()
    with emulate("h100"):
        torch.nn.functional.conv2d(x, w).sum().backward()
    assert w.grad.shape == w.shape and not w.grad.any()


def test_scaled_mm_on_a_named_engine_is_one_chain():
    a, b, one = fp8(16, 64, seed=0), fp8(16, 64, seed=1).t(), torch.tensor(1.0)
    engine = tcm.get_instruction("b200", "tcgen05.mma.m64n8k32.f32.e4m3.e4m3")
    with emulate(engine):
        found = torch._scaled_mm(a, b, one, one, out_dtype=torch.float32)
    assert equal(found, torch.from_numpy(engine.gemm(to_array(a, "a"), to_array(b, "b"))))


# -- torch's flags -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def restored_precision():
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


def test_tf32_follows_torchs_flag(restored_precision):
    a, b = normal(5, 40), normal(40, 6, seed=1)
    with emulate("h100", input_rounding="rna") as run:
        assert equal(a @ b, product(a, b, "fp32"))
        torch.set_float32_matmul_precision("high")
        found = a @ b
    engine = tcm.default_instruction("h100", "tf32")
    assert equal(found, torch.from_numpy(engine.gemm(a.numpy(), b.numpy(), input_rounding="rna")))
    assert [row.site.engines[0] for row in run.report().rows] == ["ieee:fp32 to fp32", engine.label]


def test_tf32_needs_a_rounding(restored_precision):
    torch.set_float32_matmul_precision("high")
    with emulate("a100"), pytest.raises(ValueError, match=r"not representable in tf32.*input_rounding='rne'.*'rna'"):
        normal(5, 40) @ normal(40, 6, seed=1)


def test_convolutions_have_a_flag_of_their_own():
    """torch lets cuDNN use TF32 unless told otherwise."""
    assert torch.backends.cudnn.allow_tf32
    with emulate("h100", input_rounding="rz") as run:
        F.conv2d(normal(1, 2, 5, 5), normal(3, 2, 3, 3, seed=1))
    assert run.report().rows[0].site.formats == "tf32 x tf32 to fp32"


def test_fp16_accumulation_follows_torchs_flag():
    a, b = normal(5, 40, dtype=torch.float16), normal(40, 6, dtype=torch.float16, seed=1)
    torch.backends.cuda.matmul.allow_fp16_accumulation = True
    try:
        with emulate("h100"):
            found = a @ b
    finally:
        torch.backends.cuda.matmul.allow_fp16_accumulation = False
    engine = tcm.default_instruction("h100", "fp16", "fp16")
    assert equal(found, torch.from_numpy(engine.gemm(a.numpy(), b.numpy())))


def test_torchs_own_switches_come_back():
    before = torch.backends.mkldnn.enabled, torch.backends.mha.get_fastpath_enabled()
    with pytest.raises(KeyError), emulate("h100"):
        raise KeyError
    assert before == (torch.backends.mkldnn.enabled, torch.backends.mha.get_fastpath_enabled())


# -- engines, orders, recipes ------------------------------------------------------------------------------------------------
def test_orders_and_named_engines():
    a, b = normal(5, 128, dtype=torch.float16), normal(128, 6, dtype=torch.float16, seed=1)
    engine = tcm.get_instruction("ampere:mma.m16n8k16.f32.f16.f16.f32")
    for options in ({"k_order": "split_k:4"}, {"promote_every": 32}):
        with emulate(engine, **options):
            found = torch.mm(a, b, out_dtype=torch.float32)
        assert equal(found, torch.from_numpy(engine.gemm(a.numpy(), b.numpy(), **options)))


def test_a_named_engine_refuses_what_it_lacks_and_rounds_on_request():
    a, b = normal(5, 40), normal(40, 6, seed=1)
    name = "hopper:mma.m16n8k16.f32.f16.f16.f32"
    with emulate(name), pytest.raises(ValueError, match="not representable in fp16.*pass input_rounding"):
        a @ b
    with emulate(name, input_rounding="rne"):
        assert equal(a @ b, product(a.half(), b.half(), "fp16", torch.float32))


def test_recipes():
    a, b = normal(5, 128, dtype=torch.float16), normal(128, 6, dtype=torch.float16, seed=1)
    seen = []

    def recipe(problem):
        seen.append(problem)
        return libraries.cutlass("a100", k=problem.k, split_k=2)

    with emulate("a100", recipe=recipe) as run:
        found = a @ b
        with pytest.raises(libraries.Unknown, match="way to add a bias"):
            torch.addmm(normal(6, dtype=torch.float16), a, b)
    expected = libraries.cutlass("a100", k=128, split_k=2).gemm_bits(
        a.numpy().view("u2"), b.numpy().view("u2"), out_format="fp16"
    )
    assert np.array_equal(found.numpy().view("u2"), expected)
    assert (seen[0].m, seen[0].k, seen[0].n, seen[0].out_format) == (5, 128, 6, "fp16")
    assert "split_k 2" in run.report().rows[0].site.orders[0]
    with pytest.raises(ValueError, match="states the order of k"), emulate("a100", recipe=recipe, k_order="split_k:2"):
        pass


def test_a_recipe_read_from_a_compiled_kernel():
    """Triton's kpack=2 interleaves k; the products of a model in that order, rounded to fp16 at the end."""
    case, k = GEMM["fp16-kpack2"], 128
    a, b = case.operands(64, 64, k)
    kernel = compiled.read(text("fp16-kpack2"))
    read = kernel.recipe([a, b, np.zeros((64, 64), np.float32), 64, 64, k], grid=case.grid(64, 64)).library()
    recipe = dataclasses.replace(read, epilogue=libraries.Epilogue())
    x, y = (torch.from_numpy(each.view(np.float16)) for each in (a, b))
    with emulate("mi300x", recipe=lambda product: recipe if product.k == k else None) as run:
        found = x @ y
        other = x[:, :64] @ y[:64]
    want = case.predicted(a, b).view(np.float32)
    assert np.array_equal(found.numpy(), want.astype(np.float16))
    chain = case.engine.gemm(x[:, :64].numpy(), y[:64].numpy())
    assert np.array_equal(other.numpy(), chain.astype(np.float16))
    assert (want != case.engine.gemm_bits(a, b).view(np.float32)).mean() > 0.2
    assert run.report().rows[0].site.orders == ("gemm",)
    with emulate("mi300x", recipe=lambda product: read), pytest.raises(libraries.Unknown, match="fp16 is not known"):
        x @ y


def test_a_recording_of_what_the_library_chose():
    a, b = normal(64, 4096, dtype=torch.float16), normal(4096, 64, dtype=torch.float16, seed=1)
    config = {"ALGO_ID": 66, "STAGES_ID": 35, "SPLITK_NUM": 4, "REDUCTION_SCHEME": 2, "CUSTOM_OPTION": 0}
    recording = Recording("h100", "13.1", 0, {Problem("fp16", "fp16", 4096, 64, 64): config})
    with emulate("h100", recipe=recording) as run:
        found = a @ b
        with pytest.raises(libraries.Unknown, match="the recording has no m 32"):
            a[:32] @ b
    recipe = libraries.cublaslt("h100", "13.1", m=64, k=4096, n=64, format="fp16", config=config)
    expected = recipe.gemm_bits(a.numpy().view("u2"), b.numpy().view("u2"), out_format="fp16")
    assert np.array_equal(found.numpy().view("u2"), expected)
    assert run.report().rows[0].site.orders == (recipe.name,)
    with pytest.raises(TypeError, match="recipe is a str"), emulate("h100", recipe="cublaslt"):
        pass


@pytest.mark.parametrize("engine", ["h1000", "h100/mfma", "hopper:nothing", [], ["h100", "h100"]])
def test_unknown_engines(engine):
    with pytest.raises(ValueError), emulate(engine):
        pass
    with (
        pytest.raises(TypeError, match="engine is a float, expected a device, 'arch:name' or an Engine"),
        emulate([1.0]),
    ):
        pass


def test_a_device_without_the_type():
    with emulate("v100"), pytest.raises(ValueError, match="v100 has no instruction for bf16 x bf16"):
        normal(4, 4, dtype=torch.bfloat16) @ normal(4, 4, dtype=torch.bfloat16)


# -- never silently ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.mv(normal(4, 4), normal(4)),
        lambda: torch.dot(normal(4), normal(4)),
        lambda: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(*[normal(1, 1, 4, 8)] * 3),
        lambda: torch.addbmm(normal(2, 2), normal(3, 2, 2), normal(3, 2, 2)),
    ],
)
def test_products_that_are_not_emulated(call):
    with emulate("h100"), pytest.raises(NotImplementedError, match="not emulated"):
        call()
    with emulate("h100", strict=False) as run:
        found = call()
    first = found[0] if isinstance(found, tuple) else found
    expected = call()
    assert torch.equal(first, expected[0] if isinstance(expected, tuple) else expected)
    assert list(run.report().fallbacks.values()) == [1] and "NOT emulated, 1 call(s)" in str(run.report())


def test_types_without_a_unit():
    whole = torch.ones(2, 2, dtype=torch.int64)
    with emulate("h100"), pytest.raises(ValueError, match=r"a is torch.int64, expected one of"):
        whole @ whole
    with emulate("h100", strict=False) as run:
        assert torch.equal(whole @ whole, torch.full((2, 2), 2))
    assert sum(run.report().fallbacks.values()) == 1


def test_sparse_tensors_and_subclasses():
    class Own(torch.Tensor):
        pass

    x = normal(4, 4, dtype=torch.float16)
    with emulate("h100") as run:
        with pytest.raises(ValueError, match="expected a dense tensor"):
            torch.mm(x.to_sparse(), x)
        assert equal((x.as_subclass(Own) @ x).as_subclass(torch.Tensor), product(x, x, "fp16"))
    assert len(run.report().rows) == 1


def test_every_product_of_aten_is_emulated_or_refused():
    """Names of torch's products as of this version; a new one that slips through the words is for this test to find."""
    from mpgemm.frameworks.torch_dispatch import forms_a_product
    from mpgemm.frameworks.torch_handlers import HANDLERS

    for name in (
        "mv", "addmv_", "dot", "vdot", "addbmm", "_sparse_mm", "_cdist_forward",
        "_trilinear", "_weight_int8pack_mm", "mkldnn_rnn_layer", "mkldnn_linear", "_transformer_encoder_layer_fwd",
        "_native_multi_head_attention", "_scaled_dot_product_flash_attention_for_cpu", "slow_conv3d", "_addmm_activation",
    ):  # fmt: skip
        packet = getattr(torch.ops.aten, name, None)
        assert packet is None or (packet not in HANDLERS and forms_a_product(packet)), name
    for name in (
        "relu",
        "softmax",
        "digamma",
        "_thnn_fused_lstm_cell",
        "upsample_linear1d",
        "_fused_sdp_choice",
        "sum",
    ):
        assert not forms_a_product(getattr(torch.ops.aten, name)), name


def test_operands_are_not_copied(monkeypatch):
    a, b = normal(8, 32, dtype=torch.bfloat16), normal(5, 32, dtype=torch.bfloat16, seed=1).t()
    seen = []
    inner = type(engine_of("bf16"))._chain_bits

    def chain(self, x, y, *rest):
        seen.append((x, y))
        return inner(self, x, y, *rest)

    monkeypatch.setattr(type(engine_of("bf16")), "_chain_bits", chain)
    with emulate("h100"):
        a @ b
    ((x, y),) = seen
    assert x.ctypes.data == a.data_ptr() and y.ctypes.data == b.data_ptr()
    assert y.strides == tuple(2 * s for s in b.stride())


def test_meta_tensors_and_subclasses_pass():
    with emulate("h100") as run:
        assert (torch.empty(2, 3, device="meta") @ torch.empty(3, 4, device="meta")).shape == (2, 4)
        with torch._subclasses.FakeTensorMode():
            assert (torch.empty(2, 3) @ torch.empty(3, 4)).shape == (2, 4)
    assert not run.report().rows and not run.report().fallbacks


# -- the package -------------------------------------------------------------------------------------------------------------
def test_importing_the_package_does_not_import_torch():
    code = "import sys, mpgemm; assert 'torch' not in sys.modules; mpgemm.torch.emulate; assert 'torch' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
