"""FP64 from int8 units: residues, products and the join, run as PTX against the simulation and plain integers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="kernels take torch tensors: pip install 'mpgemm[kernels]'")
pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")

import mpgemm  # noqa: E402
from mpgemm import kernels  # noqa: E402
from mpgemm.kernels.compiling import compile_launch  # noqa: E402
from mpgemm.kernels.gate import ResidueCase, same_bits  # noqa: E402
from mpgemm.kernels.residues import ResiduePlanes, residue_constants, residue_launches, residue_tile  # noqa: E402
from mpgemm.kernels.whole_gate import cases  # noqa: E402
from mpgemm.recovery.methods import get_method  # noqa: E402
from tensorcore_models.gpu.counting import loop_count, register_count  # noqa: E402
from tensorcore_models.gpu.launches import View  # noqa: E402
from tensorcore_models.gpu.targets import TARGETS, get_target  # noqa: E402

SMALL = kernels.Configuration(16, 32, 32, 2, 2)


@pytest.fixture
def device(monkeypatch):
    """An A100 that is none."""
    from ptx_device import PTXDevice

    return PTXDevice("sm_80").use(monkeypatch)


def doubles(m, n, k, spread=0, seed=0):
    rng = np.random.default_rng(seed)
    return [
        torch.from_numpy(np.ldexp(rng.standard_normal(shape), rng.integers(-spread, spread + 1, shape)))
        for shape in ((m, k), (k, n), (m, n))
    ]


def expected(a, b, count, c=None):
    found = mpgemm.recovered_gemm(a.numpy(), b.numpy(), None, "ozaki2_int8", "ampere", moduli=count)
    return found if c is None else found + c.numpy()


@pytest.mark.parametrize("count", [5, 3, 10, 15, 20])
@pytest.mark.sweep(1)
def test_a_product_is_the_method(device, count):
    """One to four limbs of 40 bits."""
    for spread in (0, 30):
        a, b, c = doubles(19, 37, 75, spread, seed=count)
        a[3], b[:, 2] = a[3] * 2.0**-500, b[:, 2] * 2.0**300
        found = kernels.matmul(a, b, f"ozaki2_int8:moduli={count}", c=c, config=SMALL)
        assert same_bits(found.numpy(), expected(a, b, count, c)).all()
    assert [x.function for x in device.launches] == ["residues", "residue_products", "join_residues"] * 2


@pytest.mark.parametrize("count", [10, pytest.param(20, marks=pytest.mark.full)])
def test_exact_integers_stay_exact(device, count):
    """Products whose sums take every part of the rounding: few bits, 54 bits, and more, of both signs."""
    rng = np.random.default_rng(3)
    a = torch.from_numpy(rng.integers(-(2**31), 2**31, (25, 13)).astype(np.float64))
    b = torch.from_numpy(rng.integers(-(2**31), 2**31, (13, 41)).astype(np.float64))
    for j in range(41):
        b[:, j] = torch.trunc(b[:, j] / 2.0 ** (j % 31))
        b[2 + j % 9 :, j] = 0
    b[0] = 2.0**31  # one exponent for each column: small columns have small sums beside it
    a[:12, 0] = 0
    a[:, 12] = 2.0**31
    found = kernels.matmul(a, b, f"ozaki2_int8:moduli={count}", config=SMALL).numpy()
    exact = np.array(
        [[float(sum(int(x) * int(y) for x, y in zip(r, s, strict=True))) for s in b.numpy().T] for r in a.numpy()]
    )
    assert same_bits(found, exact).all()


def test_rows_that_are_not_finite_are_nan_and_batches_run(device):
    a, b, _ = doubles(5, 7, 41)
    a[1, 2], b[3, 4] = np.inf, np.nan
    found = kernels.matmul(a[None].expand(2, 5, 41), b.T.contiguous().T[None], "ozaki2_int8:moduli=5", config=SMALL)
    for each in found:
        assert same_bits(each.numpy(), expected(a, b, 5)).all()
    assert torch.isnan(found[0, 1]).all() and torch.isnan(found[0, :, 4]).all() and torch.isfinite(found[0, 0, 0])


def test_alpha_beta_out_and_verify(device):
    a, b, c = doubles(5, 7, 41)
    out = torch.empty(5, 7, dtype=torch.float64)
    kernels.matmul(a, b, "ozaki2_int8:moduli=5", out=out, c=c, alpha=0.5, beta=-3.0, config=SMALL)
    assert same_bits(out.numpy(), expected(a, b, 5) * 0.5 + c.numpy() * -3.0).all()
    kernels.matmul(a, b, "ozaki2_int8:moduli=5", c=c, verify=True, config=SMALL)
    assert torch.equal(kernels.matmul(a[:, :0], b[:0], "ozaki2_int8"), torch.zeros(5, 7, dtype=torch.float64))


@pytest.mark.parametrize(
    ("target", "count"),
    [
        ("sm_80", 5),
        ("sm_90", 5),
        *(pytest.param(t, 15, marks=pytest.mark.full) for t in ("sm_100", "sm_120", "gfx942")),
    ],  # 6 s each
)
def test_the_gate_runs_it(target, count):
    """Results of wide data are subnormal or 0, too; text for sm_120 packs halves that nobody writes."""
    tile = kernels.Configuration(64, 32, 128, 4, 2) if target == "sm_90" else SMALL
    case = ResidueCase(get_method("ozaki2_int8", moduli=count), get_target(target), tile, target == "sm_90")
    for result in case.check(shapes=[(19, 37, 75)]):
        assert result.differ == 0, result
        assert result.finite == 19 * 37 or result.data == "special", result


def test_counted_loops_hold_products_alone():
    """Counted in SASS: the products of 128 of k come by TMA, and nothing spills."""
    planes, target = (
        ResiduePlanes(get_method("ozaki2_int8:moduli=15").moduli, (1, 4096, 4096, 4096)),
        get_target("sm_90"),
    )
    x = View(None, "fp64", (4096**2, 4096, 1))
    launches = residue_launches(planes, x, x, x, dict.fromkeys(planes.workspace()), residue_tile(target), True)
    split, product, join = (compile_launch(launch, target, aligned=True).binary for launch in launches)
    count = loop_count(product, 1)
    assert count.opcodes["IGMMA"] == 4 and count.opcodes["UTMALDG"] == 2 and count.instructions <= 86
    assert not {"LDG", "LDS", "STS", "PRMT", "LDGSTS"} & count.opcodes.keys()
    assert [register_count(x) <= most for x, most in ((split, 72), (product, 90), (join, 136))] == [True] * 3
    assert count.spills == loop_count(split, 1).spills == 0 and loop_count(split, 1).instructions <= 15 * 8 * 14.5


def test_a_tile_that_does_not_divide_what_k_is_padded_to_is_refused(device):
    a, b, _ = doubles(3, 4, 5)
    with pytest.raises(ValueError, match="the tile has depth 256, .* take the depth 32, 64 or 128"):
        kernels.matmul(a, b, "ozaki2_int8:moduli=5", config=kernels.Configuration(16, 32, 256, 2, 2))


def test_the_gate_has_every_number_of_limbs_where_it_is_allowed():
    found = list(cases(methods=["ozaki2_int8"]))
    assert {case.target.name for case in found} == {t.name for t in TARGETS.values() if t.gated}
    counts = [residue_constants(case.row.moduli)["LIMBS"] for case in found if case.target.name == "sm_80"]
    assert counts == [1, 2, 3, 4]


def test_targets_that_did_not_pass_the_gate_are_refused(monkeypatch):
    from ptx_device import PTXDevice

    PTXDevice("gfx950").use(monkeypatch)
    a, b, _ = doubles(3, 4, 5)
    with pytest.raises(
        ValueError, match=r"its products have not passed the gate.*ozaki2_int8 runs on sm_80, .*, gfx942\)$"
    ):
        kernels.matmul(a, b, "ozaki2_int8")


@pytest.mark.filterwarnings("ignore:tensors on the CPU")
def test_on_the_cpu_it_is_simulated():
    a, b, _ = doubles(6, 7, 40)
    assert same_bits(kernels.matmul(a, b, "ozaki2_int8:moduli=15").numpy(), expected(a, b, 15)).all()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"a": torch.zeros(3, 4)}, TypeError, "a is torch.float32, but method ozaki2_int8"),
        ({"method": "ozaki2_int8:moduli=auto"}, ValueError, "give moduli= a number"),
        ({"scale": "rows"}, ValueError, "needs no repair: leave scale and repair out"),
        ({"config": "tune"}, ValueError, "is not timed"),
        ({"a": torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)}, ValueError, "has no gradient"),
        ({"c": torch.zeros(3, 5)}, TypeError, "c is torch.float32, expected torch.float64"),
    ],
)
def test_bad_input(changes, error, message):
    a, b = torch.zeros(3, 4, dtype=torch.float64), torch.zeros(4, 5, dtype=torch.float64)
    with pytest.raises(error, match=message):
        kernels.matmul(**{"a": a, "b": b, "method": "ozaki2_int8", **changes})
