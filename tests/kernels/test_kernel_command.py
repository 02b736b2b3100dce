"""`mpgemm kernel`: what it writes, checks and refuses; the counted choice of tiles; forms of rows."""

import json

import pytest

from mpgemm.cli import main
from mpgemm.kernels.configurations import Configuration, choose, configurations, estimate, fits
from mpgemm.kernels.counts import instruction_counts
from mpgemm.kernels.forms import KERNELS, kernel_form, kernel_method
from mpgemm.kernels.recipes import recipe, spelled
from mpgemm.kernels.targets import MISSING
from mpgemm.kernels.word_launches import WordPlanes, split_operands_launch
from mpgemm.recovery.methods import get_method
from tensorcore_models.gpu.launches import View
from tensorcore_models.gpu.targets import TARGETS, get_target

TILE = ["--tile", "16", "32", "32", "2", "2"]


@pytest.fixture
def triton():
    return pytest.importorskip("triton", reason="kernels are compiled by Triton: pip install 'mpgemm[kernels]'")


def test_it_writes_text_binary_source_and_record(triton, tmp_path, capsys):
    arguments = [
        "kernel",
        "sgemm_cube:scale_exponent=11",
        "--target",
        "sm_80",
        "--out",
        str(tmp_path),
        *TILE,
        "--check",
    ]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "checked on special data: 0 of" in shown and "it has not run on hardware" in shown
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["recipe"]["scale_exponent"] == 11 and record["recipe"]["equilibrate"] == "rows"
    assert record["configuration"]["rows"] == 16 and record["versions"]["triton"] == triton.__version__
    assert {path.name for path in tmp_path.iterdir()} >= {"gemm.ptx", "repair.ptx", "source.py", "record.json"}
    counts = record["kernels"][0]["counts"]
    assert counts == instruction_counts((tmp_path / "gemm.ptx").read_text())
    assert (
        counts["matrix"] == 3 * 4 and counts["global"] > 0
    )  # 3 products, 2 k steps, 2 tiles of n for each of two warps


def test_amd_is_compiled_and_checked_where_a_machine_runs_it(triton, tmp_path, capsys):
    arguments = ["kernel", "bf16x3", "--out", str(tmp_path), "--tile", "32", "32", "64", "4", "1", "--target"]
    assert main([*arguments, "gfx942", "--check"]) == 0
    assert "checked on wide data: 0 of" in capsys.readouterr().out
    assert "v_mfma" in (tmp_path / "gemm.amdgcn").read_text()
    assert main([*arguments, "gfx950"]) == 0
    assert "no machine here runs it" in capsys.readouterr().out
    assert main([*arguments, "gfx950", "--check"]) == 2


def test_residues_are_three_texts_and_are_checked(triton, tmp_path, capsys):
    arguments = [
        "kernel",
        "ozaki2_int8:moduli=3",
        "--target",
        "sm_80",
        "--out",
        str(tmp_path),
        "--shape",
        "96",
        "33",
        "64",
    ]
    assert main([*arguments, "--tile", "16", "16", "32", "1", "1", "--check"]) == 0
    shown = capsys.readouterr().out
    assert "3 moduli, 8 bits of each operand" in shown and shown.count(": 0 of") == 4
    record = json.loads((tmp_path / "record.json").read_text())
    names = [kernel["function"] for kernel in record["kernels"]]
    assert names == ["residue_products", "residues", "join_residues"]
    assert {path.stem for path in tmp_path.glob("*.ptx")} == set(names)
    assert record["recipe"]["moduli"] == [256, 255, 253] and record["recipe"]["most_k"] == 1 << 16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ozaki2_int8", "--target", "sm_90", "--scale", "rows"], "always scales rows and columns"),
        (["ozaki2_int8:moduli=auto", "--target", "sm_90"], "give moduli= a number"),
        (
            ["ootomo_tf32", "--target", "gfx950"],
            "CDNA4 has no xf32 instructions. Take another method (gfx950 runs ootomo",
        ),
        (
            ["sgemm_cube", "--target", "sm_100", "--tile", "128", "64", "32", "4", "2"],
            "expected 1 for this method on sm_100, because",
        ),
        (["ootomo_tf32", "--target", "sm_70"], "unknown target 'sm_70', expected one of sm_80"),
        (["ozaki_int8", "--target", "sm_90"], "has no kernel, expected one of ootomo_tf32"),
        (
            ["ootomo:restart_every=48", "--target", "sm_90"],
            "tiles with 48 values of k (its order or restart_every), expected a power of two",
        ),
        (
            ["ootomo", "--target", "sm_90", "--tile", "64", "64", "16", "4", "1"],
            "expected 64, on which the method's bits depend",
        ),
        (["ootomo", "--target", "sm_90", "--shape", "0", "1", "1"], "--shape needs positive sizes"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(arguments, message, tmp_path, capsys):
    assert main(["kernel", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ").replace("  ", " ")
    assert not (tmp_path / "out").exists()


# -- forms -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("method", KERNELS)
def test_a_form_forms_every_product_once(method):
    row = kernel_method(method)
    form = kernel_form(row)
    assert form.products == row.products and len(form.chains) == len(row.products)
    assert sorted(c for level in form.levels for c in level) == list(range(len(form.restarts)))
    assert sum(form.shifts) in (0, form.scale * max(map(sum, row.products)))
    assert row.passes == get_method(method).passes


def test_a_row_asks_for_its_tile():
    assert kernel_form(kernel_method("ootomo:restart_every=64")).tile == 64
    assert kernel_form(kernel_method("bf16x9:restart_every=16")).tile == 16
    assert kernel_form(kernel_method("sgemm_cube")).tile is None
    with pytest.raises(ValueError, match="give restart_every"):
        kernel_form(get_method("ootomo", order=32))
    with pytest.raises(ValueError, match="give order the tile's length along k"):
        kernel_form(get_method("markidis"))
    with pytest.raises(ValueError, match="both are the length of a kernel's tile along k"):
        kernel_form(get_method("ootomo", order=32, restart_every=64))
    with pytest.raises(ValueError, match="order='term'"):
        kernel_form(get_method("bf16x3", restart_every=32))


def test_a_grid_that_no_device_has_is_refused():
    """A row is split by at least one program."""
    form, most = kernel_form(kernel_method("bf16x9")), (1 << 31) - 1
    x = View(None, "fp32", (0, 64, 1))

    def grid(k):
        return split_operands_launch(
            form, (1, 64, k), (None, x), (None, WordPlanes("bf16", 3, 1, 64, k, "lines")), (None, None)
        ).grid

    assert grid(64 * most) == most
    with pytest.raises(
        ValueError, match="split_operands has a grid of 2147483648 programs, expected at most 2147483647"
    ):
        grid(64 * most + 64)


def test_methods_are_spelled_with_their_options():
    assert spelled("ootomo", {"terms": 4, "restart_every": 64}) == "ootomo:restart_every=64,terms=4"
    assert recipe(spelled("ootomo:terms=4", {"restart_every": 64})).restart_every == 64
    assert recipe("ootomo").equilibrate == "rows" and recipe("bf16x9").equilibrate == "none"


# -- configurations ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", TARGETS)
def test_every_method_has_a_tile_that_fits(name):
    target = get_target(name)
    for method in KERNELS:
        form = kernel_form(kernel_method(method))
        if (name, form.format) in MISSING:
            continue
        for split in ((False, False), (False, True), (True, True)):
            for tile in configurations(form, target, split):
                assert fits(form, tile, target, split) and tile.depth == (form.tile or tile.depth)


def test_small_products_take_small_tiles_and_large_ones_large():
    form, target = kernel_form(kernel_method("bf16x9")), get_target("sm_80")
    small, large = choose(form, target, 16, 64, 1024), choose(form, target, 8192, 8192, 8192)
    assert small.rows * small.columns < large.rows * large.columns
    assert choose(form, target, 16, 64, 1024) == small  # nothing is timed
    before = estimate(form, large, target, 8192, 8192, 8192)
    after = estimate(form, large, target, 8192, 8192, 8192, split=(True, True))
    assert after.splitting == 0 < before.splitting and after.cost <= before.cost


def test_a_configuration_is_data():
    assert Configuration(16, 32, 64).constants() == {"BM": 16, "BN": 32, "BK": 64, "GROUP": 8}
