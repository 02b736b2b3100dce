"""A name of somebody else's is that algorithm, in that version's order, wherever a method is named."""

import numpy as np
import pytest

import mpgemm
import tensorcore_models as tcm
from mpgemm.cli import main
from mpgemm.recovery.framework_names import FRAMEWORK_NAMES
from tensorcore_models.formats.operands import values_of_bits

UNIT = tcm.default_instruction("a100", a_format="tf32", d_format="fp32")
DRAWN = ["--distribution", "normal", "--shape", "8", "32", "8"]
RNG = np.random.default_rng(4)


def tf32_words(x, big, small):
    """(encodings of the big word, of the rest), the rest exact in FP32 before it is rounded."""
    first = tcm.round_to(x, "tf32", big).astype(np.float32)
    return [tcm.encode(first, "tf32"), tcm.encode(x - first, "tf32", small)]


def mma(acc, x, y):
    """One k step of the unit on encodings; acc: FP32 values."""
    bits = UNIT.gemm_bits(x, y, acc.view(np.uint32))
    return values_of_bits(bits, tcm.get_format("fp32")).astype(np.float32)


def as_cutlass(a, b, tile=16):
    """The multistage main loop, warp step by warp step: what is in the temporary accumulator is added to the other one after
    the first step of each tile, and once more at the end."""
    (a0, a1), (b0, b1) = tf32_words(a, "rz", "rna"), tf32_words(b, "rz", "rna")
    accumulator = temporary = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], UNIT.k):
        ks = slice(start, start + UNIT.k)
        for x, y in ((a1, b0), (a0, b1), (a0, b0)):
            temporary = mma(temporary, np.ascontiguousarray(x[:, ks]), np.ascontiguousarray(y[ks]))
        if start % tile == 0:
            accumulator, temporary = accumulator + temporary, np.zeros_like(temporary)
    return accumulator + temporary


def as_triton(a, b, tile=32):
    """Each tile from zero, a product of words over all of it before the next; the tile's sum is added outside."""
    (a0, a1), (b0, b1) = tf32_words(a, "rna", "rz"), tf32_words(b, "rna", "rz")
    accumulator = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for start in range(0, a.shape[1], tile):
        total = np.zeros_like(accumulator)
        for x, y in ((a1, b0), (a0, b1), (a0, b0)):
            for at in range(start, start + tile, UNIT.k):
                ks = slice(at, at + UNIT.k)
                total = mma(total, np.ascontiguousarray(x[:, ks]), np.ascontiguousarray(y[ks]))
        accumulator = accumulator + total
    return accumulator


@pytest.mark.parametrize(("method", "twin"), [("3xTF32", as_cutlass), ("triton_tf32x3", as_triton)])
@pytest.mark.parametrize("k", [32, 96, 256])
def test_the_algorithm_is_the_published_one(method, twin, k):
    a, b = RNG.standard_normal((5, k)).astype(np.float32), RNG.standard_normal((k, 6)).astype(np.float32)
    c = RNG.standard_normal((5, 6)).astype(np.float32)
    assert np.array_equal(mpgemm.recovered_gemm(a, b, method=method, engine="a100"), twin(a, b))
    with_c = mpgemm.recovered_gemm(a, b, c, method, "a100")
    assert method != "3xTF32" or np.array_equal(with_c, twin(a, b) + c)
    assert not np.array_equal(mpgemm.recovered_gemm(a, b, method="tf32x3", engine="a100"), twin(a, b))


def test_another_tile_restarts_elsewhere():
    a, b = RNG.standard_normal((5, 128)).astype(np.float32), RNG.standard_normal((128, 6)).astype(np.float32)
    found = mpgemm.recovered_gemm(a, b, method="3xTF32:restart_every=32", engine="a100")
    assert np.array_equal(found, as_cutlass(a, b, 32)) and not np.array_equal(found, as_cutlass(a, b))


def test_staged_accumulation_is_what_makes_it_accurate():
    """Normal numbers, k = 2048: a mean square error below FP32's in one chain, and a thousandth of one chain's in the core."""
    a, b = (np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in ((32, 2048), (2048, 32)))
    exact = np.asarray(mpgemm.exact_gemm(a, b).rounded("fp64"))
    engines = {"3xTF32": "a100", "tf32x3": "a100", "fp32": None}
    error = {m: np.mean((mpgemm.recovered_gemm(a, b, method=m, engine=e) - exact) ** 2) for m, e in engines.items()}
    assert 1e-10 < error["3xTF32"] < 5e-10 < error["fp32"] < 3e-9 and 5e-7 < error["tf32x3"] < 1e-6


def test_the_bound_holds_and_words_are_truncated():
    a, b = RNG.uniform(1, 2, (20, 64)).astype(np.float32), RNG.uniform(1, 2, (64, 20)).astype(np.float32)
    bound = mpgemm.method_bound(a, b, None, "3xTF32", "a100").total
    error = np.abs(mpgemm.exact_gemm(a, b).error_of(mpgemm.recovered_gemm(a, b, method="3xTF32", engine="a100")))
    assert (error <= bound).all() and (error > 0).any()
    row = mpgemm.get_method("3xTF32")
    assert (row.rounding, row.last_rounding, row.certainty) == ("rz", "rna", "published formula")


@pytest.mark.parametrize("name", [row.name for row in FRAMEWORK_NAMES.values()])
def test_one_list_of_names_for_everything_that_takes_a_method(name):
    """recovered_gemm, tolerance and compare take the name; the kernels know it, with a kernel or without."""
    from mpgemm.kernels.forms import kernel_method

    row, known = mpgemm.get_method(name), FRAMEWORK_NAMES[name.lower().replace("-", "_")]
    assert row == mpgemm.get_method(known.method) and known.source and known.order
    try:
        assert kernel_method(name).formats == row.formats
    except ValueError as error:
        assert "unknown method" not in str(error)
    if row.default_engine != "b200/tcgen05":
        one = np.ones((2, 16), np.float32)
        assert np.array_equal(mpgemm.recovered_gemm(one, one.T, method=name), np.full((2, 2), 16.0))


def test_commands_take_the_names(capsys):
    for command in (
        ["tolerance", "--method", "3xTF32", "--engine", "a100", "--shape", "16", "64", "16"],
        [
            "compare",
            "--methods",
            "3xTF32",
            "allow_tf32",
            "--engines",
            "a100",
            "--distribution",
            "normal",
            "--shape",
            "8",
            "32",
            "8",
        ],
        [
            "evaluate",
            "--methods",
            "fp32",
            "CUBLAS_COMPUTE_32F_FAST_TF32@a100",
            "--distribution",
            "normal",
            "--shape",
            "4",
            "16",
            "4",
        ],
    ):
        assert main(command) == 0, capsys.readouterr().err
        shown = " ".join(capsys.readouterr().out.split())
        if command[0] == "compare":
            assert "3xTF32 is cutlass_3xtf32 (CUTLASS, OpMultiplyAddFastF32): staged accumulation as CUTLASS" in shown
            assert "allow_tf32 is tf32 (" in shown and "none is published" in shown
