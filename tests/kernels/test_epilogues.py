"""Ends of products in the kernel: bias, activation, type of the result, repair behind them; parts of k."""

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import mpgemm  # noqa: E402
import tensorcore_models as tcm  # noqa: E402
from mpgemm import kernels  # noqa: E402
from mpgemm.bounds.method_bounds import method_bound  # noqa: E402
from mpgemm.kernels import plans, products  # noqa: E402
from mpgemm.kernels.epilogues import ACTIVATIONS, FusedEpilogue  # noqa: E402
from mpgemm.kernels.forms import KERNELS, kernel_method  # noqa: E402
from mpgemm.kernels.gate import same_bits  # noqa: E402
from mpgemm.recovery import parts  # noqa: E402
from tensorcore_models.functions import get_function  # noqa: E402
from tensorcore_models.functions.ptx_text import ptx_text  # noqa: E402
from tensorcore_models.functions.sequences import parse  # noqa: E402

SMALL = kernels.Configuration(16, 32, 64, 2, 2)
pytestmark = pytest.mark.filterwarnings("ignore:Dynamo detected")
TYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@pytest.fixture
def device(monkeypatch):
    """An A100 that is none."""
    from ptx_device import PTXDevice

    return PTXDevice("sm_80").use(monkeypatch)


@pytest.fixture
def short(monkeypatch):
    """Parts of k from 80 on, of multiples of 64."""
    monkeypatch.setattr(parts, "LEAST_PRODUCTS", 240)
    monkeypatch.setattr(parts, "PART_UNIT", 64)
    monkeypatch.setattr(parts, "LAUNCH_PS", 0)
    products._plan_of.cache_clear()


def operands(m, n, k, seed=0):
    rng = np.random.default_rng(seed)
    return [torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((m, k), (k, n), (m, n), (n,), (m, 1))]


def ended(value, activation, result, bias=None):
    """The end of a product in NumPy and the functions, apart from the package's own statement of it."""
    with np.errstate(all="ignore"):
        value = value if bias is None else value + bias.float().numpy()
        if activation == "relu":
            value = np.where(np.isnan(value) | (value > 0), value, np.float32(0))
        elif activation:
            value = tcm.get_function("ampere", f"torch.{activation}").values(value)
        return np.asarray(tcm.round_to(value, result), np.float32)


def special(a):
    """Infinities, NaN and numbers beyond FP16: elements that the words lose and the repair finds."""
    a[1, 3], a[2, 4], a[5, 6], a[7] = np.inf, np.nan, 3e38, -3e38
    return a


@pytest.mark.parametrize(
    ("activation", "result", "side"),
    [
        ("gelu", "fp16", "column"),
        pytest.param("silu", "fp32", "row", marks=pytest.mark.full),
        pytest.param("relu", "bf16", "column", marks=pytest.mark.full),
        pytest.param("gelu_tanh", "bf16", "row", marks=pytest.mark.full),
        pytest.param(None, "fp16", None, marks=pytest.mark.full),
    ],
)
def test_a_product_ends_in_its_kernel(device, activation, result, side):
    a, b, c, column, row = operands(19, 37, 71)
    a, bias = special(a), {"column": column, "row": row, None: None}[side]
    found = kernels.matmul(
        a, b, "bf16x3", c=c, bias=bias, activation=activation, out_dtype=TYPES[result], config=SMALL, beta=0.5
    )
    value = mpgemm.recovered_gemm(a.numpy(), b.numpy(), None, kernels.recipe("bf16x3"), "ampere")
    with np.errstate(all="ignore"):
        value = value + np.float32(0.5) * c.numpy()
    assert found.dtype == TYPES[result]
    assert same_bits(found.float().numpy(), ended(value, activation, result, bias)).all()
    assert [x.function for x in device.launches] == ["gemm", "repair"]
    again = kernels.matmul(
        a, b, "bf16x3", c=c, bias=bias, activation=activation, out_dtype=TYPES[result], config=SMALL, beta=0.5
    )
    assert same_bits(again.float().numpy(), found.float().numpy()).all()


def test_finite_numbers_that_the_result_cannot_hold_are_not_repaired(device):
    """65520 is an infinity of FP16. In FP32, one product after the other, the same sum is 65520 - 2^-8, of which FP16 makes
    65504: the core cuts off what lies so far below 2^20."""
    a, b, *_ = operands(19, 37, 71)
    a[0], b[:4, 0] = 0, 1
    a[0, :4] = torch.tensor([2.0**20, -(2.0**20), 65520, -(2.0**-8)])
    a[1, 0] = np.inf  # the tile is flagged
    found = kernels.matmul(a, b, "bf16x3", out_dtype=torch.float16, config=SMALL).float().numpy()
    value = mpgemm.recovered_gemm(a.numpy(), b.numpy(), None, kernels.recipe("bf16x3"), "ampere")
    assert same_bits(found, ended(value, None, "fp16")).all()
    assert value[0, 0] == 65520 and np.isinf(found[0, 0])
    assert mpgemm.recovered_gemm(a.numpy(), b.numpy(), method="fp32")[0, 0] == np.float32(65520 - 2.0**-8)


def test_a_plan_takes_a_bias(device):
    a, b, c, column, _ = operands(19, 37, 71)
    plan = kernels.plan(
        19, 37, 71, "bf16x3", device="cpu", config=SMALL, bias="column", activation="relu", out_dtype=torch.bfloat16
    )
    found = plan(a, b, c=c, bias=column)
    value = mpgemm.recovered_gemm(a.numpy(), b.numpy(), c.numpy(), kernels.recipe("bf16x3"), "ampere")
    assert same_bits(found.float().numpy(), ended(value, "relu", "bf16", column)).all()
    with pytest.raises(ValueError, match="plan adds one number for each column"):
        plan(a, b)
    with pytest.raises(ValueError, match=r"expected \(37,\)"):
        plan(a, b, bias=column[:5])
    with pytest.raises(TypeError, match="expected a dense tensor of torch.bfloat16"):
        plan(a, b, bias=column, out=torch.zeros(19, 37))
    plain = kernels.plan(19, 37, 71, "bf16x3", device="cpu", config=SMALL)
    with pytest.raises(ValueError, match=r"kernels.plan\(..., bias='column'\)"):
        plain(a, b, bias=column)


@pytest.mark.filterwarnings("ignore:tensors on the CPU")
def test_on_the_cpu_and_in_programs_the_end_is_simulated():
    a, b, c, column, row = operands(6, 7, 40)
    batch = torch.stack([a, 2 * a])
    for bias in (column, row):
        found = kernels.matmul(batch, b, "bf16x6", bias=bias, activation="gelu", out_dtype=torch.float16, unit="ampere")
        for x, each in zip(batch, found, strict=True):
            value = mpgemm.recovered_gemm(x.numpy(), b.numpy(), method=kernels.recipe("bf16x6"), engine="ampere")
            assert same_bits(each.float().numpy(), ended(value, "gelu", "fp16", bias)).all()
    program = torch.compile(
        lambda x, y: kernels.matmul(x, y, "bf16x6", bias=column, activation="silu"), backend="aot_eager", fullgraph=True
    )
    assert torch.equal(program(a, b), kernels.matmul(a, b, "bf16x6", bias=column, activation="silu"))
    empty = kernels.matmul(a[:, :0], b[:0], "bf16x6", bias=row, activation="relu")
    assert torch.equal(empty, row.relu().expand(6, 7))


@pytest.mark.parametrize("activation", [x for x, name in ACTIVATIONS.items() if name])
def test_activations_are_the_functions_at_every_exponent(activation):
    """The printed sequence on the machine of PTX, on numbers of every exponent, both signs, infinities and NaN."""
    from triton_functions import apply

    rng = np.random.default_rng(1)
    words = (np.arange(512, dtype=np.uint32) << 23 | rng.integers(0, 1 << 23, 512, dtype=np.uint32)).astype(np.uint32)
    near = rng.uniform(-12, 12, 1024).astype(np.float32).view(np.uint32)
    words = np.concatenate([words, near, np.array([0, 1 << 31, 0x7F800000, 0xFF800000], np.uint32)])
    function = get_function("hopper", f"torch.{activation}")
    found = apply(ptx_text(parse(function.row.program)), words)
    assert same_bits(found.view(np.float32), function.bits(words).view(np.float32)).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"bias": torch.zeros(5)}, ValueError, r"bias is \(5,\), expected one number for each column, shape \(24,\)"),
        ({"bias": torch.zeros(24).double()}, TypeError, "bias is torch.float64"),
        ({"activation": "swish"}, ValueError, "expected one of relu, silu, gelu, gelu_tanh"),
        ({"out_dtype": torch.float64}, TypeError, "out_dtype is torch.float64"),
        (
            {"out_dtype": torch.float16, "out": torch.zeros(20, 24)},
            TypeError,
            "out is torch.float32, expected torch.float16",
        ),
        ({"activation": "relu", "verify": True}, ValueError, "for which no bound is derived"),
        ({"bias": torch.zeros(24, requires_grad=True)}, ValueError, "has no gradient: call matmul under torch.no_grad"),
        ({"residual": torch.zeros(20, 24)}, TypeError, "no option residual: pass c=residual"),
        (
            {
                "a": torch.zeros(20, 50).double(),
                "b": torch.zeros(50, 24).double(),
                "method": "ozaki2_int8",
                "activation": "relu",
            },
            ValueError,
            "method ozaki2_int8 returns FP64 without an epilogue",
        ),
    ],
)
def test_bad_input(device, changes, error, message):
    a, b, *_ = operands(20, 24, 50)
    with pytest.raises(error, match=message):
        kernels.matmul(**{"a": a, "b": b, **changes})


def test_what_a_target_has_no_instructions_for_is_refused():
    with pytest.raises(ValueError, match="which gfx942 lacks: take 'relu'"):
        kernels.plan(64, 64, 64, "bf16x3", device="gfx942", activation="gelu")
    with pytest.raises(ValueError, match="bias is 'both'"):
        FusedEpilogue("both")


# -- parts of k --------------------------------------------------------------------------------------------------------------
def test_parts_of_k_depend_on_n_k_and_the_method_alone():
    ootomo, nine, tf32 = (kernels.recipe(x) for x in ("ootomo", "bf16x9", "tf32x3"))
    assert [parts.parts_of(n, 4096, ootomo) for n in (16, 1024, 2048, 4096, 8192)] == [2, 2, 2, 1, 1]
    assert [parts.parts_of(n, 4096, nine) for n in (16, 1024, 2048, 4096, 8192)] == [4, 4, 4, 2, 1]
    assert [parts.parts_of(n, 4096, tf32) for n in (16, 1024, 2048, 4096, 8192)] == [4, 4, 2, 1, 1]
    assert parts.parts_of(128, 1 << 20, ootomo) == 32 and parts.parts_of(128, 4095, ootomo) == 1


@pytest.mark.parametrize("name", [pytest.param(x, marks=() if x == "ootomo" else pytest.mark.full) for x in KERNELS])
def test_a_row_of_a_long_product_has_the_same_bits_in_any_batch(device, short, name):
    """m = 1 beside others, k cut into two parts: launches of the product with twice the programs, and one that adds."""
    rng = np.random.default_rng(2)
    a, b = (torch.from_numpy(rng.standard_normal(s).astype(np.float32)) for s in ((64, 4105), (4105, 9)))
    a = a.bfloat16() if "bf16xfp32" in name else a
    alone = kernels.matmul(a[:1], b, name)
    assert "add_parts" in {x.function for x in device.launches}
    wanted = mpgemm.recovered_gemm(a[:1].float().numpy(), b.numpy(), method=kernels.recipe(name), engine="ampere")
    assert same_bits(alone.numpy(), wanted).all()
    whole = dataclasses.replace(kernels.recipe(name), parts=1)
    assert not same_bits(
        alone.numpy(), mpgemm.recovered_gemm(a[:1].float().numpy(), b.numpy(), None, whole, "ampere")
    ).all()
    for rows in (64,):
        assert same_bits(kernels.matmul(a[:rows], b, name).numpy()[:1], alone.numpy()).all()


def test_parts_end_as_whole_products_do(device, short):
    """C, alpha, beta, bias, activation and repair come after the parts; weights that were split keep their words."""
    a, b, c, column, _ = operands(3, 9, 170)
    a[0, 0] = np.inf
    ready = kernels.split(b, "ootomo")
    found = kernels.matmul(a, ready, "ootomo", c=c, alpha=0.5, bias=column, activation="silu", out_dtype=torch.bfloat16)
    value = mpgemm.recovered_gemm(a.numpy(), b.numpy(), method=kernels.recipe("ootomo"), engine="ampere")
    with np.errstate(all="ignore"):
        value = np.float32(0.5) * value + c.numpy()
    assert same_bits(found.float().numpy(), ended(value, "silu", "bf16", column)).all()


@pytest.mark.parametrize(
    ("target", "unit", "scale", "tile"),
    [
        ("sm_90", "h100", "rows", (64, 64, 64, 4, 3)),
        pytest.param("sm_100", "blackwell", "rows", (128, 64, 64, 4, 3), marks=pytest.mark.full),
        pytest.param("gfx942", "cdna3", "rows", (32, 64, 64, 4, 1), marks=pytest.mark.full),
    ],
)
def test_words_that_were_written_before_are_cut_too(monkeypatch, short, target, unit, scale, tile):
    """By TMA on sm_90 and sm_100; the result ends by relu in FP16."""
    from ptx_device import PTXDevice

    device = PTXDevice(target).use(monkeypatch)
    monkeypatch.setattr(plans, "split_before", lambda *_: True)
    a, b, _, column, _ = operands(3, 9, 170)
    ends = {"bias": column, "activation": "relu", "out_dtype": torch.float16}
    found = kernels.matmul(a, b, "ootomo", config=kernels.Configuration(*tile), scale=scale, **ends)
    product = "gemm" if target == "gfx942" else "word_product"
    assert [x.function for x in device.launches] == ["split_operands", product, "add_parts", "repair"]
    row = kernels.recipe("ootomo", scale=scale)
    value = mpgemm.recovered_gemm(a.numpy(), b.numpy(), method=row, engine=unit)
    assert same_bits(found.float().numpy(), ended(value, "relu", "fp16", column)).all()


def test_a_bound_holds_of_parts():
    a, b, *_ = operands(3, 9, 4105)
    row = kernel_method("ootomo")
    total = mpgemm.recovered_gemm(a.numpy(), b.numpy(), None, dataclasses.replace(row, parts=2), "h100")
    one, other = (
        mpgemm.recovered_gemm(a.numpy()[:, ks], b.numpy()[ks], None, row, "h100")
        for ks in (slice(2304), slice(2304, None))
    )
    assert same_bits(total, one + other).all()
    row = dataclasses.replace(row, parts=2)
    found = method_bound(a.numpy(), b.numpy(), None, row, "h100").total
    assert (np.abs(mpgemm.exact_gemm(a.numpy(), b.numpy()).error_of(total)) <= found).all()
    with pytest.raises(ValueError, match="parts is 0"):
        dataclasses.replace(row, parts=0)
    with pytest.raises(ValueError, match="only methods of the kind 'words' have parts, not 'residues'"):
        dataclasses.replace(mpgemm.get_method("ozaki2_int8"), parts=2)
