"""matmul on tensors: every launch it makes, run on the machine of PTX in the place of a GPU, against the simulation."""

import dataclasses
import warnings
from fractions import Fraction

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import mpgemm  # noqa: E402
from mpgemm import kernels  # noqa: E402
from mpgemm.kernels import devices, products  # noqa: E402
from mpgemm.kernels.forms import KERNELS, kernel_method  # noqa: E402
from mpgemm.kernels.gate import same_bits  # noqa: E402
from mpgemm.kernels.verification import ended_error  # noqa: E402

SMALL = kernels.Configuration(16, 32, 32, 2, 2)
SMALL_64 = kernels.Configuration(16, 32, 64, 2, 2)
#: Sizes are odd where nothing else is asked: Triton compiles such launches to one text, which tests share.
pytestmark = pytest.mark.filterwarnings("ignore:Dynamo detected")


@pytest.fixture
def device(monkeypatch):
    """An A100 that is none."""
    from ptx_device import PTXDevice

    return PTXDevice("sm_80").use(monkeypatch)


def tensors(m, n, k, seed=0, batch=()):
    rng = np.random.default_rng(seed)
    shapes = (*batch, m, k), (*batch, k, n), (*batch, m, n)
    return [torch.from_numpy(rng.standard_normal(shape).astype(np.float32)) for shape in shapes]


def small(method):
    """A small tile with the k that a method asks for."""
    return SMALL if kernel_method(method).formats[0] == "tf32" else SMALL_64


def expected(a, b, c=None, method="ootomo_tf32", **asked):
    row = kernels.recipe(method, **asked)
    return mpgemm.recovered_gemm(a.float().numpy(), b.float().numpy(), None if c is None else c.numpy(), row, "ampere")


def assert_same(found, wanted):
    assert found.dtype == torch.float32
    assert same_bits(found.contiguous().numpy(), np.ascontiguousarray(wanted)).all()


@pytest.mark.parametrize("method", KERNELS)
@pytest.mark.sweep(2)
def test_a_product_is_the_method(device, method):
    a, b, c = tensors(19, 37, 71)
    a = a.bfloat16() if "bf16xfp32" in method else a
    assert_same(kernels.matmul(a, b, method, c=c, config=small(method)), expected(a, b, c, method))
    assert [launch.function for launch in device.launches] == ["gemm", "repair"]


def test_transposed_and_strided_operands_are_not_copied(device):
    a, b, _ = tensors(64, 96, 96)
    left, right = a.T[2:40:2, 3:60], b.T[3:60, 1:50:3]
    wanted = expected(left.contiguous(), right.contiguous())
    assert_same(kernels.matmul(left, right, config=SMALL), wanted)
    launch = device.launches[0]
    assert launch.arguments["a"].data.data_ptr() == left.data_ptr()
    assert launch.arguments["b"].data.data_ptr() == right.data_ptr()


def test_batches_are_broadcast(device):
    a, b, c = tensors(5, 9, 41, batch=(2, 3))
    shared = b[0, 0]
    found = kernels.matmul(a, shared, c=c[0], config=SMALL)
    for i in range(2):
        for j in range(3):
            assert_same(found[i, j], expected(a[i, j], shared, c[0, j]))
    assert device.launches[0].arguments["m"] == 30  # one tall matrix
    found = kernels.matmul(a[:, :1], b, config=SMALL)
    for i in range(2):
        for j in range(3):
            assert_same(found[i, j], expected(a[i, 0], b[i, j]))
    assert_same(kernels.matmul(a[0, 0, 0], shared, config=SMALL), expected(a[0, 0, :1], shared)[0])


def test_alpha_beta_and_out(device):
    a, b, c = tensors(17, 33, 45)
    plain = expected(a, b)
    with np.errstate(all="ignore"):
        wanted = np.float32(0.3) * plain + np.float32(-1.7) * c.numpy()
    assert_same(kernels.matmul(a, b, c=c, alpha=0.3, beta=-1.7, config=SMALL), wanted)
    assert_same(kernels.matmul(a, b, c=c * np.nan, beta=0, config=SMALL), plain)
    out = c.clone()
    assert kernels.matmul(a, b, out=out, c=out, config=SMALL) is out
    assert_same(out, expected(a, b, c))
    sparse = torch.zeros(17, 66)[:, ::2]
    assert kernels.matmul(a, b, out=sparse, config=SMALL) is sparse
    assert_same(sparse, plain)


def test_special_values_are_those_of_fp32(device):
    a, b, c = tensors(19, 25, 51)
    a[1, 3], a[2, 4], a[5, 6], b[7, 2] = np.inf, np.nan, 3e38, -np.inf
    for method in ("ootomo_tf32", "sgemm_cube", "bf16x6"):
        found = kernels.matmul(a, b, method, out=c.clone(), c=c, config=small(method))
        assert_same(found, expected(a, b, c, method))
        chain = mpgemm.recovered_gemm(a.numpy(), b.numpy(), method="fp32") + c.numpy()
        assert all(np.array_equal(test(found.numpy()), test(chain)) for test in (np.isnan, np.isinf))


def test_numbers_beyond_the_words_keep_their_accuracy(device):
    a, b, _ = tensors(17, 17, 65)
    a, b = a * 2.0**40, b * 2.0**-60
    exact = a.double() @ b.double()
    size = a.double().abs() @ b.double().abs()
    error = ((kernels.matmul(a, b, "ootomo", config=SMALL_64) - exact).abs() / size).max()
    unscaled = (
        (kernels.matmul(a, b, "ootomo", scale="none", repair=False, config=SMALL_64) - exact).abs() / size
    ).nan_to_num(9)
    assert error < 2.0**-22 < unscaled.max()
    assert_same(kernels.matmul(a, b, "ootomo", config=SMALL_64), expected(a, b, method="ootomo"))


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0)])
def test_zero_sizes(device, shape):
    m, n, k = shape
    a, b, c = tensors(m, n, k)
    assert_same(kernels.matmul(a, b), np.zeros((m, n), np.float32))
    assert_same(kernels.matmul(a, b, c=c, alpha=2.0, beta=0.5), 0.5 * c.numpy())
    assert not device.launches


@pytest.mark.parametrize("method", ["sgemm_cube", "ootomo_tf32", "bf16xfp32x3"])
@pytest.mark.sweep(1)
def test_weights_are_split_once(device, method):
    a, b, _ = tensors(19, 41, 71, batch=(2,))
    a = a.bfloat16() if "bf16xfp32" in method else a
    ready = kernels.split(b[0], method)
    found = kernels.matmul(a, ready, config=small(method))
    for i in range(2):
        assert_same(found[i], expected(a[i], b[0], method=method))
    both = kernels.split(a[0], method, side="a")
    assert_same(kernels.matmul(both, ready, config=small(method)), expected(a[0], b[0], method=method))
    batch = kernels.split(b, method)
    assert_same(kernels.matmul(a[0], batch, config=small(method))[1], expected(a[0], b[1], method=method))
    assert {launch.function for launch in device.launches} == {"gemm", "repair", "split_operands"}
    with pytest.raises(ValueError, match="was split with method"):
        kernels.matmul(a[0], ready, "bf16x9" if method != "bf16xfp32x3" else "bf16xfp32x2")
    with pytest.raises(ValueError, match="split for side 'b'"):
        kernels.matmul(ready, b[0].T)


def test_words_of_batches_are_repeated_or_stacked(device):
    """What was split has fewer batches than the product, or becomes one tall matrix; rows are scaled."""
    a, b, _ = tensors(5, 7, 41, batch=(3, 2))
    found = kernels.matmul(a, kernels.split(b[0], "ootomo"), config=SMALL_64)
    left = kernels.matmul(kernels.split(a[0], "ootomo", side="a"), b, config=SMALL_64)
    for i in range(3):
        for j in range(2):
            assert_same(found[i, j], expected(a[i, j], b[0, j], method="ootomo"))
            assert_same(left[i, j], expected(a[0, j], b[i, j], method="ootomo"))
    tall = kernels.matmul(
        kernels.split(a[0] * torch.tensor([[[1.0]], [[64.0]]]), "ootomo", side="a"), b[0, 0], config=SMALL_64
    )
    for j, factor in enumerate((1.0, 64.0)):
        assert_same(tall[j], expected(a[0, j] * factor, b[0, 0], method="ootomo"))


def test_c_follows_the_shape_of_vectors(device):
    a, b, _ = tensors(5, 1, 41, batch=(3,))
    c = torch.arange(5.0)
    found = kernels.matmul(a, b[0, :, 0], c=c, config=SMALL)
    assert found.shape == (3, 5)
    for i in range(3):
        assert_same(found[i], expected(a[i], b[0], c[:, None])[:, 0])


def test_what_shares_memory_with_the_result_is_read_before(device):
    """The repair reads C once more: a[0, 0] is beyond TF32, its products are not."""
    a, b, c = tensors(13, 13, 41)
    a[0, 0], b[0] = 3.4028e38, b[0] * 2.0**-126
    out = c.clone()
    assert kernels.matmul(a, b, out=out, c=out.T, config=SMALL) is out
    assert_same(out, expected(a, b, c.T))
    square = tensors(13, 13, 13)[0]
    wanted = expected(square, square.T)
    assert_same(kernels.matmul(square, square.T, out=square, config=SMALL), wanted)
    out = c.clone()
    kernels.matmul(a, b, out=out, c=out, verify=True, config=SMALL)
    assert_same(out, expected(a, b, c))


@pytest.mark.parametrize("method", ["ootomo_tf32", "sgemm_cube"])
@pytest.mark.sweep(1)
def test_a_row_has_the_same_bits_in_any_batch(device, method):
    """Row 0 alone, among 99 rows and, with the counted choice of tiles, among 4096."""
    a, b, _ = tensors(99, 47, 81)
    alone = kernels.matmul(a[:1], b, method)
    for rows, config in ((99, None), (37, small(method))):
        assert_same(kernels.matmul(a[:rows], b, method, config=config)[:1], alone.numpy())


@pytest.mark.full  # some 10 s: 4096 rows on the machine
def test_row_0_of_4096(device):
    a, b, _ = tensors(4096, 16, 64)
    found = kernels.matmul(a, b)
    assert_same(found[:1], kernels.matmul(a[:1], b).numpy())
    assert len({(x.constants["BM"], x.constants["BN"]) for x in device.launches if x.function == "gemm"}) == 2


def test_parts_of_k_are_added_in_order(device):
    a, b, _ = tensors(3, 40, 512)
    found = kernels.matmul(a, b, deterministic=False)
    assert [x.function for x in device.launches] == ["gemm", "add_parts", "repair"]
    length, parts, total = device.launches[0].arguments["part_k"], device.launches[0].constants["PARTS"], None
    assert parts > 1 and length * parts == 512
    for i in range(parts):
        part = expected(a[:, i * length : (i + 1) * length], b[i * length : (i + 1) * length])
        total = part if total is None else total + part
    assert_same(found, total)
    assert not np.array_equal(found.numpy(), expected(a, b))


def test_gradients_are_products_of_the_method(device):
    a, b, c = (x.requires_grad_() for x in tensors(9, 13, 41))
    d = kernels.matmul(a, b, "bf16x6", c=c)
    weights = torch.from_numpy(np.random.default_rng(4).standard_normal((9, 13)).astype(np.float32))
    (d * weights).sum().backward()
    assert_same(a.grad, expected(weights, b.detach().T, method="bf16x6"))
    assert_same(b.grad, expected(a.detach().T, weights, method="bf16x6"))
    assert torch.equal(c.grad, weights)


def test_verify_holds_a_sample_against_its_bound(device, monkeypatch):
    a, b, c = tensors(19, 25, 51)
    kernels.matmul(a, b, c=c, verify=True, config=SMALL)
    run = devices.PlannedLaunch.__call__

    def wrong(launch, arguments, *rest):
        run(launch, arguments, *rest)
        launch.with_arguments(arguments).arguments["out"].data.add_(1e-3)

    monkeypatch.setattr(devices.PlannedLaunch, "__call__", wrong)
    with pytest.raises(mpgemm.bounds.watching.OutsideBound):
        kernels.matmul(a, b, c=c, verify=True, config=SMALL)


def test_verify_takes_alpha_and_beta(device, monkeypatch):
    """The bound grows by alpha and the last roundings: what passes with one alpha fails with the next but few numbers."""
    a, b, c = tensors(17, 33, 45)
    for ends in ({"alpha": 0.3, "beta": -1.7}, {"alpha": 1e-42}, {"beta": 0.0}, {"alpha": 0.0, "beta": 2.0}):
        kernels.matmul(a, b, c=c, **ends, verify=True, config=SMALL)
    run = devices.PlannedLaunch.__call__

    def wrong(launch, arguments, *rest):
        run(launch, [0.3001 if isinstance(x, float) and x == 0.3 else x for x in arguments], *rest)

    monkeypatch.setattr(devices.PlannedLaunch, "__call__", wrong)
    with pytest.raises(mpgemm.bounds.watching.OutsideBound):
        kernels.matmul(a, b, c=c, alpha=0.3, beta=-1.7, verify=True, config=SMALL)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"method": "quantensor"}, ValueError, "has no kernel, expected one of ootomo_tf32"),
        ({"method": "ootomo:restart_every=24"}, ValueError, "power of two"),
        ({"method": "bf16xfp32x3"}, TypeError, "a is torch.float32, but method bf16xfp32x3 expects bfloat16"),
        ({"b": torch.zeros(3, 4)}, ValueError, "expected equal k"),
        ({"a": torch.zeros(5, 50, dtype=torch.float64)}, TypeError, "float64"),
        ({"a": np.zeros((5, 50))}, TypeError, "ndarray"),
        ({"c": torch.zeros(3, 3)}, ValueError, "can be broadcast"),
        ({"c": torch.zeros(20, 24).double()}, TypeError, "c is torch.float64"),
        ({"out": torch.zeros(3, 3)}, ValueError, "out has shape"),
        (
            {"config": kernels.Configuration(16, 32, 64)},
            ValueError,
            "has depth 64, expected 32, on which the method's bits depend",
        ),
        ({"scale": "columns"}, ValueError, "scale is 'columns'"),
        (
            {"config": (16, 32, 32)},
            TypeError,
            "config is .16, 32, 32., expected a mpgemm.kernels.Configuration or 'tune'",
        ),
        ({"c": [1.0]}, TypeError, "c is a list, expected a dense tensor"),
        ({"a": torch.zeros(20, 50).to_sparse()}, TypeError, "a.to_dense"),
        ({"out": torch.zeros(20, 24, device="meta")}, ValueError, "expected one device"),
        ({"out": torch.zeros(20, 24, requires_grad=True)}, ValueError, "got out in a call with gradients"),
    ],
)
def test_bad_input(device, changes, error, message):
    a, b, _ = tensors(20, 24, 50)
    with pytest.raises(error, match=message):
        kernels.matmul(**{"a": a, "b": b, **changes})


def test_words_that_a_target_lacks_are_refused(monkeypatch):
    from ptx_device import PTXDevice

    PTXDevice("gfx950").use(monkeypatch)
    a, b, _ = tensors(4, 4, 32)
    with pytest.raises(ValueError, match=r"tf32 words, which gfx950 cannot.*gfx950 runs ootomo, .*runs on sm_80"):
        kernels.matmul(a, b)


def test_the_error_of_a_finished_product_is_exact():
    """P = 1 + 2^-60 has more bits than FP64; results and operands that are not finite say nothing."""
    product = mpgemm.exact_gemm([[1.0, 2.0**-60]], [[1.0, 1.0, np.inf], [1.0, 0.0, 1.0]])
    c = np.array([[3.0, np.nan, 1.0]])
    found = np.array([[0.1 + 0.2 * 3.0] * 3])
    exact = Fraction(0.1) * (1 + Fraction(1, 2**60)) + Fraction(0.2) * 3
    error = ended_error(found, product, c, 0.1, 0.2)
    assert error[0, 0] == float(Fraction(found[0, 0]) - exact) and np.isnan(error[0, 1:]).all()
    assert np.isnan(ended_error(found, product, None, float("inf"), 1.0)).all()


# -- without a device --------------------------------------------------------------------------------------------------------
def test_on_the_cpu_the_simulation_runs_and_says_so_once():
    products.say_simulated.cache_clear()
    a, b, _ = tensors(6, 7, 40)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = [kernels.matmul(a, b, "bf16x6", unit="h100") for _ in range(2)]
    assert [str(w.message)[:20] for w in said] == ["tensors on the CPU: "]
    wanted = mpgemm.recovered_gemm(a.numpy(), b.numpy(), method=kernels.recipe("bf16x6"), engine="h100")
    for x in found:
        assert_same(x, wanted)


@pytest.mark.filterwarnings("ignore:tensors on the CPU")
def test_compiled_programs_call_it():
    a, b, _ = tensors(6, 7, 40)
    program = torch.compile(lambda x, y: kernels.matmul(x, y, "bf16x6") + 1, backend="aot_eager", fullgraph=True)
    assert torch.equal(program(a, b), kernels.matmul(a, b, "bf16x6") + 1)
    ready, out = kernels.split(b, "bf16x6"), torch.zeros(6, 7)
    program = torch.compile(lambda x, y: kernels.matmul(x, ready, out=y), backend="aot_eager", fullgraph=True)
    assert torch.equal(program(a, out), kernels.matmul(a, b, "bf16x6")) and torch.equal(out, program(a, out))


@pytest.mark.filterwarnings("ignore:tensors on the CPU")
def test_the_operation_keeps_what_torch_asks_of_one():
    a, b, _ = tensors(6, 7, 40)
    arguments = (
        a[None],
        b[None].requires_grad_(),
        None,
        None,
        None,
        None,
        None,
        None,
        [1.0, 1.0],
        "bf16x6",
        "auto",
        True,
        1,
        "h100",
        [],
        ",,fp32",
    )
    torch.library.opcheck(torch.ops.mpgemm.recovered_product, arguments)


@pytest.mark.filterwarnings("ignore:tensors on the CPU")
def test_weights_that_were_split_get_gradients():
    a, b, _ = tensors(6, 7, 40)
    weights = b.clone().requires_grad_()
    kernels.matmul(a, kernels.split(weights, "bf16x6")).sum().backward()
    assert torch.equal(weights.grad, kernels.matmul(a.T, torch.ones(6, 7), "bf16x6"))


def test_the_tested_version_of_triton_is_stated(monkeypatch):
    import triton

    from mpgemm.kernels import compiling

    compiling.triton_module.cache_clear()
    monkeypatch.setattr(triton, "__version__", "3.0.0")
    with pytest.warns(UserWarning, match="Triton is 3.0.0, but the bits of kernels were checked with 3.9.0"):
        compiling.triton_module()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiling.triton_module()
    compiling.triton_module.cache_clear()


def test_a_recipe_is_a_row():
    row = kernels.recipe("ootomo:restart_every=64")
    assert (row.restart_every, row.order, row.repair, row.equilibrate) == (64, 64, "fp32", "rows")
    assert dataclasses.replace(kernels.recipe(), repair="none") == kernels.recipe(repair=False)
