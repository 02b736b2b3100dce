"""Results are held against their certified bounds: right ones pass, and one wrong element stops every command that judges."""

import json
import pickle
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from ascend.tile_schedule import TileSchedule
from mpgemm.bounds import norms as norms_module
from mpgemm.bounds.norms import Lines
from mpgemm.bounds.watching import JudgedProduct, OutsideBound, hold, within
from mpgemm.cli import main
from mpgemm.exact.errors import ErrorMeter
from mpgemm.experiments import outside
from mpgemm.experiments.methods import CubeOptions, build_methods
from mpgemm.experiments.outside import rerun, write_outside
from mpgemm.experiments.recovery_methods import pair_method, resolve_pairs
from mpgemm.recovery.integer_run import IntegerRun
from mpgemm.testing.case import gemm_tolerance
from mpgemm.testing.sampled import statistics_of
from tensorcore_models.engines.matrix_engine import MatrixEngine

KINDS = {
    "normal": lambda x, rng: x,
    "wide": lambda x, rng: x * 2.0 ** rng.integers(-60, 60, x.shape),
    "subnormal": lambda x, rng: x * 2.0**-140,
    "beyond": lambda x, rng: x * 2.0**100,
    "positive": lambda x, rng: np.abs(x),
    "pruned": lambda x, rng: x * (rng.random(x.shape) < 0.3),
    "not finite": lambda x, rng: np.where(rng.random(x.shape) < 0.02, np.inf, x),
}


def every_method():
    """Recovery methods on engines of several families, the cube's in every order and rounding, native ones."""
    names = [row.name for row in mpgemm.list_methods() if row.kind != "own"]
    names += ["bf16x9:restart_every=16", "multiword:words=3,format=bf16", "ozaki_int8:slices=auto"]
    pairs = []
    for device in ("v100", "h100", "b200/tcgen05", "mi300x", "ieee", None):
        for name in names:
            try:
                pairs += resolve_pairs([name], [device])[0]
            except ValueError:
                continue
    cube = CubeOptions(
        ("elementwise", "termwise", "termwise_inplace"), (0, 12, "auto"), ("sequential", "exact", "pairwise")
    )
    own = ["fp16", "fp16_accumulate", "fp32", "fp32_chain", "fp64", "sgemm_cube", "sgemm_cube_scaled", "bf16x6"]
    return [*{m.name: m for m in map(pair_method, pairs)}.values(), *build_methods(own, cube)]


@pytest.mark.sweep(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_right_results_are_within_their_bounds(kind, dtype):
    """Each of 200 methods about once in the sweep, with and without C; each has a bound."""
    rng = np.random.default_rng([list(KINDS).index(kind), dtype().itemsize])
    methods = every_method()
    for part in np.array_split(rng.permutation(len(methods))[:56], 8):
        m, k, n = int(rng.integers(1, 12)), int(rng.choice([0, 1, 16, 33, 260])), int(rng.integers(1, 12))
        with np.errstate(all="ignore"):
            a, b = (KINDS[kind](rng.standard_normal(s), rng).astype(dtype) for s in ((m, k), (k, n)))
        c = rng.standard_normal((m, n)).astype(np.float32)
        for method in (methods[i] for i in part):
            operands = (a, b, c) if method.takes_addend and rng.random() < 0.5 else (a, b)
            try:
                with np.errstate(all="ignore"):
                    product = method.multiply(*operands)
            except ValueError:  # words of integers are refused where nothing is finite
                continue
            lines = Lines(a, 1), Lines(b, 0)
            method.hold(product, ErrorMeter(*operands).differences(product), *lines, *operands[2:])
            bound = method.bound(*lines, *operands[2:])
            assert bound is not None
            with np.errstate(all="ignore"):
                least = method.bound(*(x.least for x in lines), *operands[2:])
                assert not (least > bound * (1 + 1e-12)).any()


# -- one wrong element -------------------------------------------------------------------------------------------------------
@pytest.fixture
def faulty(monkeypatch):
    """The fault of a zero in a window of bf16 lanes: an element of a product of rows is 64 off."""
    right = MatrixEngine._chain_bits

    def wrong(self, *args):
        bits = right(self, *args)
        if self.formats[0].name == "bf16" and bits.shape[0] > 14:
            bits.view(np.float32)[14] -= np.float32(64)
        return bits

    monkeypatch.setattr(MatrixEngine, "_chain_bits", wrong)
    monkeypatch.setattr(MatrixEngine, "_small", lambda *_: None)  # which takes another way


@pytest.fixture
def ones(tmp_path, monkeypatch):
    """The operands of the fault that was: row 14 should be 15."""
    monkeypatch.chdir(tmp_path)
    a = np.ones((16, 16), np.float32)
    a[14, 13], a[10, 8] = 0, -1.5 * 2.0**-21
    np.save("A.npy", a)
    np.save("B.npy", np.ones((16, 16), np.float32))
    return a, np.ones((16, 16), np.float32)


COMMANDS = {
    "compare": ["compare", "A.npy", "B.npy", "--methods", "bf16", "--engines", "h100"],
    "compare with processes": ["compare", "A.npy", "B.npy", "--methods", "bf16", "--engines", "h100", "--workers", "1"],
    "evaluate": ["evaluate", "A.npy", "B.npy", "--methods", "fp32", "bf16@h100"],
    "evaluate an engine": ["evaluate", "A.npy", "B.npy", "--methods", "engine:hopper:mma.m16n8k16.f32.bf16.bf16.f32"],
    "curve": [
        "curve",
        "--over",
        "k",
        "16",
        "16",
        "--points",
        "1",
        "--methods",
        "bf16@h100",
        "--shape",
        "16",
        "16",
        "16",
    ],
    "advise-promotion": ["advise-promotion", "A.npy", "B.npy", "--engine", "hopper:mma.m16n8k16.f32.bf16.bf16.f32"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_result_is_not_ranked(name, faulty, ones, capsys):
    """One line, a status of its own, and a file that computes it again."""
    assert main(COMMANDS[name]) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.strip().splitlines()
    assert "a result of this package is wrong, so nothing is judged" in line and "C[14, " in line
    (path,) = (path.name for path in Path().glob("outside-*.npz"))
    assert f"mpgemm selftest --rerun {path}" in line
    assert main(["selftest", "--rerun", path, "--json"]) == 3
    found = json.loads(capsys.readouterr().out)
    assert all(row["outside"] and row["same_bits"] for row in found["again"])
    assert found["recorded"]["element"][0] == 14 and found["recorded"]["instruction_set"]


def test_a_mended_result_is_said_to_be_one(faulty, ones, capsys, monkeypatch):
    assert main([*COMMANDS["compare"], "--out", "out"]) == 3
    (path,) = Path("out").absolute().glob("outside-*.npz")
    assert not Path("out/comparison.json").exists()
    monkeypatch.undo()
    assert main(["selftest", "--rerun", str(path)]) == 0
    assert "other bits than recorded, within the certified bound" in capsys.readouterr().out


def test_what_was_right_before_is_kept(faulty, ones, capsys):
    """The journal has the results of before; the wrong one is in none."""
    command = ["compare", "A.npy", "B.npy", "--methods", "fp16", "bf16", "--engines", "h100", "--out", "out"]
    assert main(command) == 3
    journal = Path("out/journal.jsonl").read_text()
    assert "recovery:fp16@" in journal and "recovery:bf16@" not in journal


def test_a_wrong_product_of_the_cube_has_no_verdict(ones, monkeypatch, capsys):
    right = TileSchedule.product

    def wrong(self, *args):
        found = right(self, *args)
        found[3, 5] += np.float32(1)
        return found

    monkeypatch.setattr(TileSchedule, "product", wrong)
    assert main(["evaluate", "A.npy", "B.npy"]) == 3
    assert "C[3, 5]" in capsys.readouterr().err
    with pytest.raises(mpgemm.OutsideBound, match="SGEMM-cube"):
        mpgemm.verdict(*ones)
    (path,) = Path().glob("outside-*.npz")
    assert all(row.same_bits and "C[3, 5]" in row.outside for row in rerun(path)[1])


def test_slices_and_short_chains_are_held(ones, monkeypatch):
    """Integer slices; the product with short chains that a verdict measures where the chain's length is the cause."""
    right = IntegerRun.product
    monkeypatch.setattr(IntegerRun, "product", lambda run: right(run) + np.eye(16, dtype=run.dtype))
    with pytest.raises(OutsideBound) as caught:
        mpgemm.slice_advice(*ones, 20, ["ozaki_int8"])
    path = write_outside(caught.value, Path())
    assert all(row.same_bits and row.outside for row in rerun(path)[1])


def test_right_kernels_of_a_check_are_held(faulty, ones, tmp_path):
    """The statistical line rests on the model: a model outside of its bound makes none."""
    rng = np.random.default_rng(0)
    a, b = (rng.uniform(0, 1, (32, 32)).astype(ml_dtypes.bfloat16) for _ in range(2))
    engine = "hopper:mma.m16n8k16.f32.bf16.bf16.f32"
    allowed = gemm_tolerance(engine, a, b)
    with pytest.raises(OutsideBound) as caught:
        statistics_of(allowed)
    path = write_outside(caught.value, tmp_path)
    assert all(row.outside for row in rerun(path)[1])


@pytest.mark.parametrize("stage", ["scores", "values"])
def test_products_of_attention_are_held(stage, tmp_path, monkeypatch, capsys):
    """Q K^T, and P V, which starts from a sum."""
    rng = np.random.default_rng(0)
    for name, shape in (("Q", (16, 32)), ("K", (48, 32)), ("V", (48, 8))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float32))
    monkeypatch.chdir(tmp_path)
    command = ["evaluate", "--attention", "Q.npy", "K.npy", "V.npy", "--engine", "h100", "--kv-tile", "16"]
    assert main(command) == 0
    capsys.readouterr()
    right = MatrixEngine.gemm

    def wrong(self, a, b, c=None, **options):
        found = right(self, a, b, c, **options)
        if (c is not None) == (stage == "values"):
            found[3, 5] *= np.float32(1.01)
        return found

    monkeypatch.setattr(MatrixEngine, "gemm", wrong)
    assert main(command) == 3
    assert "C[3, 5]" in capsys.readouterr().err
    (path,) = Path().glob("outside-*.npz")
    assert all(row.same_bits and row.outside for row in rerun(path)[1])


def test_what_is_not_held_is_said(tmp_path, monkeypatch, capsys):
    """Sums that may overflow, and rows that are not finite; nothing where everything is held."""
    monkeypatch.chdir(tmp_path)
    a, b = (np.random.default_rng(i).standard_normal((8, 16)).astype(np.float32) for i in range(2))
    np.save("B.npy", b.T)
    a[2] *= np.float32(2.0**126)
    a[5, 1] = np.inf
    for name, x in (("whole", a[:1]), ("A", a)):
        np.save(f"{name}.npy", x)
    assert main(["compare", "whole.npy", "B.npy", "--methods", "bf16", "tf32", "--engines", "h100"]) == 0
    assert "nothing is certified" not in capsys.readouterr().out
    assert main(["compare", "A.npy", "B.npy", "--methods", "bf16", "--engines", "h100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["records"][0]["held"] < 64
    assert any("have no certified bound" in note and "of 64 results of bf16 on h100" in note for note in found["notes"])
    assert main(["evaluate", "A.npy", "B.npy", "--methods", "fp32", "fp64"]) == 0
    assert "16 of 64 results of FP32, chains of 256, 8 of 64 results of FP64" in " ".join(
        capsys.readouterr().out.split()
    )


def test_programs_ask_for_it(faulty, ones):
    with pytest.raises(OutsideBound, match="outside") as caught:
        mpgemm.recovered_gemm(*ones, method="bf16", engine="h100", verify=True)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.place[0] == 14
    assert all(row.same_bits and row.outside for row in rerun(write_outside(again, Path()))[1])
    with pytest.raises(OutsideBound):
        mpgemm.recovered_gemm_report(*ones, method="bf16x9", engine="h100", verify=True)
    right = mpgemm.recovered_gemm(*ones, method="ootomo", engine="h100", verify=True)
    assert (right == mpgemm.recovered_gemm(*ones, method="ootomo", engine="h100")).all()


def test_what_has_no_bound_is_not_verified():
    unit = tcm.as_engine(lambda a, b, c: a @ b + c, a_format="fp32", d_format="fp32", k=4)
    with pytest.raises(ValueError, match="got verify, but no bound is derived for .*; leave verify out"):
        mpgemm.recovered_gemm(np.ones((2, 4), np.float32), np.ones((4, 2), np.float32), None, "fp32", unit, verify=True)


def test_one_reading_of_errors_decides_where_all_are_small():
    """Whatever is not surely within goes on to the bound of each element."""
    errors = np.array([[0.5, -0.5]])
    assert within(errors, np.array([[0.5]])) and within(errors[:0], np.ones((1, 1)))
    assert not within(errors, None)
    for error, bound in (
        ([[0.5, -0.6]], 0.5),
        ([[0.5, np.nan]], 0.5),
        ([[np.inf, 0]], 1e300),
        ([[0.5, 0.5]], np.inf),
        ([[0.0]], np.nan),
    ):
        assert not within(np.array(error), np.array([[bound]]))


def test_lines_are_read_once(monkeypatch):
    """Whatever methods ask of the rows of A and the columns of B, sixty of them."""
    counted = []
    a, b = (np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32) for _ in range(2))
    monkeypatch.setattr(
        norms_module, "largest_of", lambda x, axis: counted.append(x) or np.abs(x).max(axis, keepdims=True) * 1.0
    )
    lines = Lines(a, 1), Lines(b, 0)
    for method in every_method()[:60]:
        if not method.name.startswith("recovery:ozaki"):
            method.bound(*(x.least for x in lines))
            method.bound(*lines)
    assert sum(x is a for x in counted) <= 2 and sum(x is b for x in counted) <= 2


@pytest.mark.parametrize("error", [np.nan, np.inf, 2.0])
def test_what_is_outside(error):
    product, zero = JudgedProduct("p", {}, np.eye(2), np.eye(2)), np.zeros((2, 2))
    errors, bound = zero.copy(), np.ones((2, 2))
    errors[1, 0] = error
    with pytest.raises(OutsideBound, match=r"C\[1, 0\]"):
        hold(product, zero, errors, bound)
    for nothing in (None, np.full((2, 2), np.inf), np.full((2, 2), np.nan)):
        hold(product, zero, errors, nothing)
    hold(product, zero, np.ones((2, 2)), bound)


def test_a_folder_that_cannot_be_written(faulty, ones, capsys, monkeypatch):
    monkeypatch.setattr(outside, "atomic_writer", lambda path: (Path("missing") / "file").open("wb"))
    assert main(COMMANDS["compare"]) == 3
    assert "the file that computes it again could not be written" in capsys.readouterr().err


def test_other_files_are_refused(tmp_path, capsys):
    np.savez(tmp_path / "x.npz", a=np.eye(2))
    np.savez(tmp_path / "y.npz", a=np.eye(2), b=np.eye(2), computed=np.eye(2), facts=np.zeros(3, np.uint8))
    facts = np.frombuffer(b'{"version": 99, "recipe": {}, "product": ""}', np.uint8)
    np.savez(tmp_path / "z.npz", a=np.eye(2), b=np.eye(2), computed=np.eye(2), facts=facts)
    for name, message in (
        ("x", "holds the arrays a, expected a, b, computed and facts"),
        ("y", "is damaged (JSONDecodeError: "),
        ("z", "version 99"),
        ("none", "No such"),
    ):
        assert main(["selftest", "--rerun", str(tmp_path / f"{name}.npz")]) == 2
        assert message in capsys.readouterr().err
