"""Kernels of recovery methods: right ones pass in any order of additions, wrong words are named.

The kernels here split and multiply by themselves, in FP64 with FP32 sums, and not by the package's methods.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import mpgemm
from mpgemm.cli import main
from mpgemm.testing import assert_gemm_close
from mpgemm.testing.check import check_gemm

SCALE = 12
HIGH_LOW, LOW_HIGH = "the high word of A times the low word of B", "the low word of A times the high word of B"


def operands(seed=0, shape=(48, 512, 40), positive=False):
    rng = np.random.default_rng(seed)
    (m, k, n), draw = shape, (rng.random if positive else rng.standard_normal)
    return draw((m, k)).astype(np.float32), draw((k, n)).astype(np.float32)


def words(x, scale=SCALE):
    high = x.astype(np.float16).astype(np.float64)
    low = np.ldexp(x - high, scale).astype(np.float16).astype(np.float64)
    return high, np.ldexp(low, -scale)


def summed(pairs, step, lost=None):
    """FP32 sums of the products of some pairs, one after the other in every block of k."""
    total = np.zeros((pairs[0][0].shape[0], pairs[0][1].shape[1]), np.float32)
    for start in range(0, pairs[0][0].shape[1], step):
        for x, y in pairs:
            if start != lost:
                total = (total + x[:, start : start + step] @ y[start : start + step]).astype(np.float32)
    return total.astype(np.float64)


def kernel(a, b, fault="", step=64):
    """SGEMM-cube with a fault."""
    scale = 0 if fault == "unscaled" else SCALE
    (ah, al), (bh, bl) = words(a, scale), words(b, scale)
    high = summed([(ah, bh)], step, 128 if fault == "k of high" else None)
    low_b = summed([(ah, bl)], step, 64 if fault == "k of low" else None)
    low_a = summed([(al, bh)], step)
    if fault == "low words exchanged":
        low_b = summed([(al, bl)], step) * 2.0**SCALE
    factor = {"2^-11": 2.0, "not undone": 2.0**SCALE}.get(fault, 1.0)
    low_a = {"no low A": 0.0, "low A twice": 2.0, "low A subtracted": -1.0}.get(fault, 1.0) * low_a
    corrections = 0.0 if fault == "plain" else factor * (low_a + low_b)
    return (high + corrections).astype(np.float32)


FAULTS = {
    "no low A": f"a product of words: {LOW_HIGH} is left out",
    "low A twice": f"a product of words: {LOW_HIGH} is added twice",
    "low A subtracted": f"a product of words: {LOW_HIGH} is subtracted",
    "low words exchanged": f"a product of words: in place of {HIGH_LOW}, it is the low word of A times the low word of B",
    "plain": "products of words: all but that of the first words are left out (a plain product)",
    "2^-11": f"a factor of words: {HIGH_LOW} and {LOW_HIGH} are added with the factor 2^-11, not 2^-12",
    "not undone": f"a factor of words: {HIGH_LOW} and {LOW_HIGH} are added with the factor 2^0, not 2^-12",
    "k of low": f"lost terms: k 64:128 is missing, in {HIGH_LOW}",
    "k of high": "lost terms: k 128:192 is missing, in the high word of A times the high word of B",
    "unscaled": "the split: words are not scaled by 2^12 before they are rounded to fp16",
}


#: (m, k, n) and whether elements are positive, of each case.
CASES = [((48, 512, 40), False), ((48, 512, 40), True), ((1, 2048, 96), False), ((130, 1000, 70), False)]


def checked(fault, case, seed=0):
    """Return the check of a faulty kernel."""
    shape, positive = CASES[case]
    a, b = operands(seed, shape, positive)
    if fault == "unscaled":  # low words reach below the range of FP16
        a, b = a * np.float32(2**-10), b * np.float32(2**-10)
    return check_gemm(kernel(a, b, fault), a, b, method="sgemm_cube")


def named(fault, found):
    """Return whether the fault is named; without low words, A (or both operands) is rounded to FP16."""
    same = {"no low A": "A was rounded to fp16 first", "plain": "the operands were rounded to fp16 first"}.get(fault)
    return FAULTS[fault] in found.suspects or same in found.suspects


@pytest.mark.sweep(3)
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_words_is_named(fault, case):
    found = checked(fault, case)
    assert not found.passes
    assert named(fault, found)


@pytest.mark.sweep(2)
@pytest.mark.parametrize(
    "place", [(slice(47, 48), slice(None)), (slice(None), slice(5, 6)), (slice(16, 32), slice(16, 32))]
)
@pytest.mark.parametrize("fault", ["no low A", "plain", "k of low"])
def test_a_fault_of_the_words_in_a_row_column_or_tile_is_caught(fault, place):
    a, b = operands(11)
    out = kernel(a, b)
    out[place] = kernel(a, b, fault)[place]
    found = check_gemm(out, a, b, method="sgemm_cube")
    assert not found.passes
    assert FAULTS[fault] in found.suspects


@pytest.mark.full
def test_faults_of_one_word_are_named():
    a, b = operands(12)
    (ah, al), (bh, bl) = words(a), words(b)
    high, low_b = summed([(ah, bh)], 64), summed([(ah, bl)], 64)
    stale = al.copy()
    stale[:, 128:192] = stale[:, 64:128]
    moved = al.copy()
    moved[16:32] = al[:16]
    rolled = f"A is misread: each row is the row 16 before, or the result's rows are written so, in {LOW_HIGH}"
    for low_a, text in (
        (summed([(stale, bh)], 64), f"a stale block: at k 128:192 A still holds k 64:128, in {LOW_HIGH}"),
        (summed([(moved, bh)], 64), rolled),
        (2.0**-3 * summed([(al, bh)], 64), f"a factor of words: {LOW_HIGH} is added with the factor 2^-15, not 2^-12"),
    ):
        found = check_gemm((high + low_a + low_b).astype(np.float32), a, b, method="sgemm_cube")
        assert text in found.suspects, found


def test_another_rounding_of_one_word_is_named():
    a, b = operands(13)
    hf32 = mpgemm.recovered_gemm(a, b, method="hf32:rounding=rz")
    found = check_gemm(hf32, a, b, method="hf32")
    assert found.suspects == ("operands are rounded to hf32 by rz: give the method hf32:rounding=rz",)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("step", [1, 16, 64, 512])
@pytest.mark.parametrize("fused", [False, True])
def test_right_kernels_pass_in_every_order(step, fused, positive):
    a, b = operands(step, positive=positive)
    (ah, al), (bh, bl) = words(a), words(b)
    out = summed([(al, bh), (ah, bl), (ah, bh)], step).astype(np.float32) if fused else kernel(a, b, step=step)
    assert_gemm_close(out, a, b, method="sgemm_cube")


@pytest.mark.full
@pytest.mark.parametrize("name", ["ootomo", "tf32x3", "bf16x3", "markidis", "hf32", "ozaki2_int8"])
def test_other_methods_pass_and_miss_no_product(name):
    a, b = operands(3)
    c = np.ones((48, 40), np.float32)
    row = mpgemm.get_method(name)
    assert_gemm_close(mpgemm.recovered_gemm(a, b, c, row), a, b, c, method=name)
    for lost in row.products if row.words > 1 and row.kind == "words" else ():
        if sum(lost) < 2:
            rest = replace(row, products=tuple(pair for pair in row.products if pair != lost))
            with pytest.raises(AssertionError, match="a product of words: "):
                assert_gemm_close(mpgemm.recovered_gemm(a, b, c, rest), a, b, c, method=name)


def test_generic_faults_epilogue_and_rows():
    a, b = operands(7)
    right = kernel(a, b)
    lost = a.copy()
    lost[:, 256:288] = 0
    found = check_gemm(kernel(lost, b), a, b, method="sgemm_cube")
    assert any("k 256:288 is missing" in text for text in found.suspects)
    relu = np.maximum(right, 0).astype(np.float16)
    assert check_gemm(relu, a, b, method="sgemm_cube", epilogue="relu", rows=8).passes
    assert not check_gemm(right.astype(np.float16), a, b, method="sgemm_cube", epilogue="relu").passes
    for epilogue, end in (("relu", lambda x: np.maximum(x, 0)), ("swiglu", swiglu)):
        for fault, passes in (("", True), ("plain", False)):
            out = kernel(a, b)
            out[16:32, 4:12] = kernel(a, b, fault)[16:32, 4:12]
            assert check_gemm(end(out), a, b, method="sgemm_cube", epilogue=epilogue).passes == passes


def swiglu(x):
    gate, up = np.split(x.astype(np.float64), 2, axis=1)
    return (gate / (1 + np.exp(-gate)) * up).astype(np.float32)


def test_options_that_a_method_does_not_take_are_refused():
    a, b = operands()
    with pytest.raises(ValueError, match="got alpha, splits with the method 'sgemm_cube', which fixes the words"):
        check_gemm(kernel(a, b), a, b, method="sgemm_cube", splits=2, alpha=2.0)
    with pytest.raises(ValueError, match="got neither an engine nor a method"):
        check_gemm(kernel(a, b), a, b)
    with pytest.raises(ValueError, match="got method with out of type int32"):
        check_gemm(kernel(a, b).astype(np.int32), a, b, method="sgemm_cube")


def test_the_command_takes_a_method(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    a, b = operands(1)
    for name, x in (("a", a), ("b", b), ("right", kernel(a, b)), ("wrong", kernel(a, b, "no low A"))):
        np.save(f"{name}.npy", x)
    assert main(["check", "right.npy", "a.npy", "b.npy", "--method", "sgemm_cube"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "for sgemm_cube on ascend:cube.m16n16k16.f32.f16.f16.f32, SGEMM-cube: fp16 words" in said
    assert "faults that this test would miss on these operands: " in said
    assert main(["check", "wrong.npy", "a.npy", "b.npy", "--method", "sgemm_cube"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"looks like a product of words: {LOW_HIGH} is left out" in said
    assert "other faults do not explain the result: --json, or ruled_out and tried in Python" in said
    assert main(["check", "right.npy", "a.npy", "b.npy", "--method", "sgemm_cube", "--splits", "2"]) == 2
    np.save("turned.npy", b.T)
    assert main(["check", "right.npy", "a.npy", "turned.npy", "--method", "sgemm_cube@910A"]) == 2
    assert "if b is stored as n x k, give b.T (--transpose-b" in capsys.readouterr().err
    assert main(["check", "right.npy", "a.npy", "turned.npy", "--method", "sgemm_cube@910A", "--transpose-b"]) == 0
    assert main(["check", "right.npy", "a.npy", "b.npy", "--method", "sgemm_cube@910A", "--engine", "910B3"]) == 2


PLACES = {"a row": np.s_[-1:], "a column": np.s_[:, 5:6], "a tile": np.s_[-16:, 16:32]}


def passing_local_faults(fault):
    """Return how many results pass of which one row, column or tile has a fault, and how many were made."""
    passing = made = 0
    for shape, positive in CASES:
        for seed, place in itertools.product(range(5), PLACES.values()):
            a, b = operands(seed, shape, positive)
            out = kernel(a, b)
            out[place] = kernel(a, b, fault)[place]
            passing, made = passing + check_gemm(out, a, b, method="sgemm_cube").passes, made + 1
    return passing, made


def failing_right_kernels():
    """Return how many right results fail, and how many were made."""
    failing = made = 0
    for shape, positive in CASES:
        for seed, step, fused in itertools.product(range(5), (1, 16, 64, 512), (False, True)):
            a, b = operands(seed, shape, positive)
            (ah, al), (bh, bl) = words(a), words(b)
            out = summed([(al, bh), (ah, bl), (ah, bh)], step).astype(np.float32) if fused else kernel(a, b, step=step)
            failing, made = failing + (not check_gemm(out, a, b, method="sgemm_cube").passes), made + 1
    return failing, made


if __name__ == "__main__":  # the table of docs/kernel_faults.md
    for fault, text in FAULTS.items():
        found = [checked(fault, case, seed) for case in range(len(CASES)) for seed in range(5)]
        caught, right = sum(not x.passes for x in found), sum(named(fault, x) for x in found)
        print(f"| {text.partition(': ')[2]} | {len(found)} | {caught} | {right} |")
    for fault in ("no low A", "low A twice", "plain", "k of low"):
        passing, made = passing_local_faults(fault)
        print(f"{fault} in one row, column or tile: {passing} of {made} pass")
    failing, made = failing_right_kernels()
    print(f"right kernels: {failing} of {made} fail")
