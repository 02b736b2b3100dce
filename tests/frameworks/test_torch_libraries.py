"""A whole model as an H100 with torch 2.11 computes it: the recorded Llama, other models' operations, what is refused."""

import json
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import tensorcore_models as tcm  # noqa: E402
from mpgemm.frameworks.model_products import product_rows, write_rows  # noqa: E402
from mpgemm.frameworks.torch_kernels import ProductList  # noqa: E402
from mpgemm.torch import Product, emulate, profiled_products, record_kernels  # noqa: E402
from tensorcore_models import libraries  # noqa: E402
from tensorcore_models.libraries import Unknown, row_operations  # noqa: E402

LIBRARIES = "torch-2.11"


def bits(x):
    carrier = {2: torch.int16, 4: torch.int32}[x.element_size()]
    return x.detach().contiguous().view(carrier).numpy()


def llama(recorded, attention):
    transformers = pytest.importorskip("transformers", reason="the recorded Llama is Hugging Face's")
    config = transformers.LlamaConfig(
        hidden_size=256, intermediate_size=512, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=512, max_position_embeddings=128, attn_implementation=attention,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).eval()
    state = {
        name: torch.from_numpy(recorded[f"llama/weights/{name}"]).view(torch.bfloat16) for name in model.state_dict()
    }
    model.load_state_dict(state)
    return model


@pytest.mark.full  # importing transformers takes ten seconds; test_recorded_llama.py has the same forward in NumPy
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_recorded_llama(shared, attention):
    """Every module's output and every logit."""
    with np.load(shared / "hardware_vectors" / "h100" / "libraries" / "products.npz") as arrays:
        recorded = {name: arrays[name] for name in arrays.files if name.startswith("llama/")}
    model, got = llama(recorded, attention), {}

    def keep(name):
        return lambda module, inputs, out: got.update({name: out[0] if isinstance(out, tuple) else out})

    for name, module in model.named_modules():
        module.register_forward_hook(keep(name))
    with torch.no_grad(), emulate("h100", libraries=LIBRARIES) as run:
        logits = model(torch.from_numpy(recorded["llama/tokens"])).logits
    names = [name for name in got if f"llama/{attention}/{name}" in recorded]
    assert len(names) == 30
    assert [name for name in names if (bits(got[name]) != recorded[f"llama/{attention}/{name}"]).any()] == []
    assert (bits(logits) == recorded[f"llama/{attention}/logits"]).all()
    report = run.report()
    assert report.bases.keys() == {"exact", "IEEE 754", "recorded", "inferred"} and not report.fallbacks
    chains = 15 if attention == "sdpa" else 19
    assert report.bases["inferred"] == chains
    assert f"{chains} inferred" in str(report) and "one chain over k is assumed" in str(report)


class Block(torch.nn.Module):
    """A block of a model of today: norms of queries and keys, grouped queries, rotary positions, SwiGLU, a tied head."""

    def __init__(self, d=128, heads=4, groups=2, vocabulary=64):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, d // heads
        self.embed = torch.nn.Embedding(vocabulary, d)
        self.norms = torch.nn.ParameterList([torch.ones(d), torch.ones(self.size), torch.ones(self.size)])
        self.q, self.o = torch.nn.Linear(d, d, bias=False), torch.nn.Linear(d, d, bias=False)
        self.k, self.v = (torch.nn.Linear(d, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up, self.down = (torch.nn.Linear(d, d, bias=False) for _ in range(3))

    def normal(self, x, which):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.norms[which] * wide.to(x.dtype)

    def forward(self, tokens):
        x = self.embed(tokens)
        n, s = tokens.shape
        h = self.normal(x, 0)
        q, k, v = (
            layer(h).view(n, s, count, self.size)
            for layer, count in ((self.q, self.heads), (self.k, self.groups), (self.v, self.groups))
        )
        q, k = (self.normal(y, i).transpose(1, 2) for y, i in ((q, 1), (k, 2)))
        angles = torch.arange(s)[:, None].float() / 10000 ** (torch.arange(0, self.size, 2).float() / self.size)
        cos, sin = (f(torch.cat([angles, angles], -1)).to(x.dtype) for f in (torch.cos, torch.sin))
        q, k = (y * cos + torch.cat([-y[..., self.size // 2 :], y[..., : self.size // 2]], -1) * sin for y in (q, k))
        y = F.scaled_dot_product_attention(q, k, v.transpose(1, 2), is_causal=True, enable_gqa=True)
        x = x + self.o(y.transpose(1, 2).reshape(n, s, -1))
        return F.linear(x + self.down(F.silu(self.gate(x)) * self.up(x)), self.embed.weight)


def test_a_model_of_today():
    torch.manual_seed(1)
    model, tokens = Block().to(torch.bfloat16), torch.arange(24)[None] % 64
    with torch.no_grad():
        # powers of tensors are not known: angles come from outside, as models keep them
        with pytest.raises(NotImplementedError, match="pow"), emulate("h100", libraries=LIBRARIES):
            model(tokens)
        with emulate("h100", libraries=LIBRARIES, strict=False) as run:
            found = model(tokens)
        exact = model.double()(tokens)
    assert float((found.double() - exact).norm() / exact.norm()) < 0.02
    report = run.report()
    native = [row for row in report.operations if row.basis.startswith("native")]
    assert [row.op for row in native] == ["pow"] and sum(report.fallbacks.values()) == 1
    assert "cudnn attention" in [row.op for row in report.operations]
    assert {row.op: row.basis for row in report.operations if row.op == "mean"} == {
        "mean": "inferred: rows of 32 by the kernel's source"
    }
    assert report.to_dict()["operations"][0].keys() == {"op", "basis", "calls", "elements"}


# -- single operations ---------------------------------------------------------------------------------------------------
def run_one(function, *args, **options):
    with torch.no_grad(), emulate("h100", libraries=LIBRARIES, **options) as run:
        found = function(*args)
    return found, {row.op: row.basis for row in run.report().operations}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.exp, "expf"), (torch.tanh, "tanhf"), (torch.sigmoid, "torch.sigmoid"), (F.silu, "torch.silu"),
        (F.gelu, "torch.gelu"), (lambda x: F.gelu(x, approximate="tanh"), "torch.gelu_tanh"), (torch.rsqrt, "rsqrtf"),
        (torch.erf, "erff"),
    ],
)  # fmt: skip
def test_functions(function, name, dtype):
    x = torch.linspace(-3, 3, 997).to(dtype)
    found, bases = run_one(function, x)
    wide = tcm.get_function("hopper", name).bits(x.float().numpy().view(np.uint32)).view(np.float32)
    assert (bits(found) == bits(torch.from_numpy(wide).to(dtype))).all()
    (basis,) = bases.values()
    assert basis.startswith("inferred" if dtype == torch.float16 else "recorded")


def test_arithmetic_of_reduced_types_is_that_of_fp32():
    x, y = (torch.randn(1000, generator=torch.Generator().manual_seed(i)).to(torch.bfloat16) for i in range(2))
    assert (bits(run_one(lambda: x * 0.1)[0]) == bits((x.float() * torch.tensor(0.1)).to(torch.bfloat16))).all()
    assert (bits(run_one(lambda: x / y)[0]) == bits((x.float() / y.float()).to(torch.bfloat16))).all()
    quotient, bases = run_one(lambda: x.float() / 3.0)
    assert (bits(quotient) == bits(x.float() * torch.tensor(1 / np.float32(3)))).all()
    assert (bits(quotient) != bits(x.float() / 3.0)).any() and "reciprocal" in bases["div"]
    fused, bases = run_one(lambda: torch.add(x.float(), y.float(), alpha=0.1))
    exact = (x.double() + float(np.float32(0.1)) * y.double()).float()
    assert (bits(fused) == bits(exact)).all() and "fused" in bases["add"]
    z, target = x.clone(), torch.empty(1000, dtype=torch.bfloat16)
    run_one(lambda: z.add_(y))
    run_one(lambda: torch.add(x, y, out=target))
    assert (bits(z) == bits(target)).all() and (bits(z) == bits(x + y)).all()


def test_whole_numbers_are_exact():
    x = torch.arange(24).reshape(4, 6)
    found, bases = run_one(lambda: torch.isin(x.cumsum(1) % 5, x[0]) & (x * 3 > 7))
    assert set(bases.values()) == {"exact"} and found.any() and not found.all()
    with pytest.raises(NotImplementedError, match="randint"):
        run_one(lambda: torch.randint(0, 9, (4,)))
    with pytest.raises(NotImplementedError, match="arange"):
        run_one(lambda: torch.arange(0, 1, 0.1))


def test_norms_and_softmax():
    x = torch.randn(6, 512, generator=torch.Generator().manual_seed(3))
    weight, bias = torch.randn(2, 512, generator=torch.Generator().manual_seed(4))
    for function, rows, basis in (
        (lambda: F.rms_norm(x, (512,)), row_operations.rms_norm(x.numpy()), "recorded"),
        (lambda: F.layer_norm(x, (512,)), row_operations.layer_norm(x.numpy()), "recorded"),
        (lambda: F.layer_norm(x, (512,), weight, bias), row_operations.layer_norm(x.numpy(), weight.numpy(), bias.numpy()),
         "inferred: weights by the kernel's source"),
        (lambda: torch.softmax(x, -1), row_operations.softmax(x.numpy()), "recorded"),
        (lambda: x.sum(-1), row_operations.sums(x.numpy()), "recorded"),
        (lambda: x.bfloat16().sum(-1).float(), row_operations.sums(x.bfloat16().float().numpy()), None),
        (lambda: x.mean(-1), row_operations.means(x.numpy()), "inferred: rows of 512 by the kernel's source"),
    ):  # fmt: skip
        found, bases = run_one(function)
        if basis is None:
            assert (bits(found) == bits(torch.from_numpy(rows).bfloat16().float())).all()
            assert bases["sum"] == "inferred: recorded in FP32"
            continue
        assert (bits(found) == rows.view(np.int32)).all()
        assert set(bases.values()) - {"exact"} == {basis}


@pytest.mark.parametrize("kernel", ["cudnn", "flash", "efficient"])
def test_attention_kernels_without_libraries(kernel):
    q, k, v = (torch.randn(2, 2, 40, 64, generator=torch.Generator().manual_seed(i)).half() for i in range(3))
    with torch.no_grad(), emulate("h100", sdpa=kernel) as run:
        found = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    words = [x.view(torch.int16).numpy().view(np.uint16) for x in (q, k, v)]
    right = libraries.attention(kernel, "fp16").product(*words, causal=True)
    assert (bits(found).view(np.uint16) == right).all()
    assert run.report().rows[0].site.orders == (f"{kernel} (recorded)",) and not run.report().operations


def test_products_by_recipe_are_recorded():
    a, b = torch.randn(16, 512).half(), torch.randn(512, 8).half()
    recipe = libraries.cutlass("hopper:mma.m16n8k16.f32.f16.f16.f32", k=512, split_k=2)
    found, bases = run_one(lambda: a @ b, recipe=lambda product: recipe if product.op == "mm" else None)
    assert bases == {"mm": "recorded"}
    assert "inferred" in run_one(lambda: a @ b)[1]["mm"]
    assert found.shape == (16, 8)


# -- refusals ------------------------------------------------------------------------------------------------------------
def test_refused_blocks():
    for target, version in (("h100", "torch-2.5"), ("a100", LIBRARIES), (["h100", "a100"], LIBRARIES)):
        with pytest.raises(ValueError, match="torch-2"), emulate(target, libraries=version):
            pass


def test_unknown_operations():
    x = torch.rand(8, 4)
    for function in (
        lambda: x.T.sum(-1), lambda: x.sum(), lambda: x.var(-1), lambda: torch.softmax(x, 0), lambda: torch.cumsum(x, 0),
        lambda: torch.rand(3), lambda: x.double().exp(), lambda: x**2.5,
    ):  # fmt: skip
        with pytest.raises((NotImplementedError, Unknown)), emulate("h100", libraries=LIBRARIES):
            function()
    with emulate("h100", libraries=LIBRARIES, strict=False) as run:
        assert (x.var(-1) == x.var(-1)).all()
    assert run.report().bases == {"native": 2, "exact": 3} and "NOT emulated" in str(run.report())


def test_gradients_of_a_fused_norm():
    x = torch.randn(4, 512, requires_grad=True)
    with pytest.raises(NotImplementedError, match="gradients of rms_norm"), emulate("h100", libraries=LIBRARIES):
        F.rms_norm(x, (512,))


def test_unknown_attention():
    q = torch.zeros(1, 2, 8, 64, dtype=torch.bfloat16)
    with emulate("h100", libraries=LIBRARIES):
        with pytest.raises(ValueError, match="a mask"):
            F.scaled_dot_product_attention(q, q, q, attn_mask=torch.ones(8, 8, dtype=torch.bool))
        with pytest.raises(Unknown, match="float32"):
            F.scaled_dot_product_attention(q.float(), q.float(), q.float())
        with pytest.raises(Unknown, match="gradients of cudnn"):
            F.scaled_dot_product_attention(q.clone().requires_grad_(), q, q)
    with pytest.raises(Unknown, match="a100"), emulate("a100", sdpa="cudnn"):
        F.scaled_dot_product_attention(q, q, q)
    assert math.isfinite(float(q.sum()))


# -- recordings of a model's own run -------------------------------------------------------------------------------------
@pytest.mark.full
def test_products_by_the_kernels_of_the_run(shared, tmp_path):
    """The recorded list of operations and the profiler's list of kernels give the recipes; nothing is assumed then."""
    folder = shared / "hardware_vectors" / "h100" / "libraries"
    kernels = next(
        row for row in json.loads((folder / "products.json").read_text())["rows"] if row["name"] == "llama/eager"
    )
    operations = json.loads((folder / "llama_operations.json").read_text())
    products = [
        {"m": a[0][-2], "n": b[0][-1], "k": a[0][-1], "layout": "nt", "dtype": a[1],
         "operands": {"torch.bfloat16": "bf16", "torch.float32": "fp32"}[a[1]]}
        for each in operations if each["op"].split(".")[1] in ("mm", "bmm") for a, b in [each["args"]]
    ]  # fmt: skip
    rows = product_rows(products, [name for name, _ in kernels["kernels"]])
    assert len(rows) == 20
    write_rows(rows, tmp_path / "kernels.json", gpu="NVIDIA H100 80GB HBM3", cuda="13.0")
    with np.load(folder / "products.npz") as arrays:
        recorded = {name: arrays[name] for name in arrays.files if name.startswith("llama/")}
    model = llama(recorded, "eager")
    recipe = profiled_products(tmp_path / "kernels.json")
    with torch.no_grad(), emulate("h100", libraries=LIBRARIES, recipe=recipe) as run:
        logits = model(torch.from_numpy(recorded["llama/tokens"])).logits
    assert (bits(logits) == recorded["llama/eager/logits"]).all()
    assert "inferred" not in run.report().bases
    with pytest.raises(ValueError, match="19 products and 20 kernels"):
        product_rows(products[1:], [name for name, _ in kernels["kernels"]])


def test_kernels_are_recorded_on_a_gpu_only(tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(ValueError, match="needs a GPU"), record_kernels(tmp_path / "kernels.json"):
        pass


def test_products_are_listed_in_order():
    with ProductList() as listed:
        torch.zeros(3, 4).half() @ torch.zeros(5, 4).half().T
        torch.baddbmm(torch.zeros(2, 3, 5), torch.zeros(2, 3, 4), torch.zeros(2, 4, 5))
    first, second = listed.products
    assert first == {"m": 3, "n": 5, "k": 4, "layout": "nt", "dtype": "torch.float16", "operands": "fp16"}
    assert (second["operands"], second["layout"], second["k"]) == ("fp32", "nn", 4)


def test_one_product_in_two_orders_is_refused():
    row = {"m": 64, "n": 64, "k": 16384, "operands": "fp16", "dtype": "torch.float16", "layout": "nn"}
    one = {**row, "kernels": ["nvjet_sm90_hsh_64x8_64x16_2x4_h_bz_NNT"]}
    split = {**row, "kernels": ["cutlass_80_wmma_tensorop_f16_s161616gemm_f16_32x32_128x2_nn_align8"]}
    assert profiled_products([one])(Product("mm", 64, 16384, 64, "fp16", "fp16", "fp16")) is not None
    assert profiled_products([one])(Product("mm", 64, 64, 64, "fp16", "fp16", "fp16")) is None
    with pytest.raises(ValueError, match="keep one of these rows"):
        profiled_products([one, split])
