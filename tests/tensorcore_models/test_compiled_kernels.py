"""Compiled kernels run bit for bit: Triton's PTX against the package's instructions, and against a second reader."""

import ml_dtypes
import numpy as np
import pytest
from ptx_cases import FOLDER, GEMM, rows_to_normalise, split_k_sum, text
from scalar_ptx import ScalarProgram

import tensorcore_models as tcm
from tensorcore_models import compiled


def ran(name, m, n, k, **options):
    """(bits of C, bits that the recipe predicts) of one of the GEMM files."""
    case = GEMM[name]
    a, b = case.operands(m, n, k)
    c = np.full((m, n), np.nan, np.float32)
    compiled.read(text(name)).run([a, b, c, m, n, k], grid=case.grid(m, n), **options)
    return c.view(np.uint32), case.predicted(a, b)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", GEMM)
def test_a_gemm_is_what_its_recipe_predicts(name):
    m, n, k = (48, 80, 112) if GEMM[name].masked else (128, 64, 128)
    got, predicted = ran(name, m, n, k)
    assert np.array_equal(got, predicted)


@pytest.mark.sweep(6)
@pytest.mark.parametrize("name", GEMM)
def test_without_checks_the_bits_are_the_same(name):
    m, n, k = (16, 16, 48) if GEMM[name].masked else (128, 32, 64)
    got, predicted = ran(name, m, n, k, checks=False)
    assert np.array_equal(got, predicted)


def test_another_unit_gives_its_own_bits():
    case, (m, n, k) = GEMM["sm_80-fp16-masked"], (32, 32, 64)
    a, b = case.operands(m, n, k)
    c = np.zeros((m, n), np.float32)
    compiled.read(text("sm_80-fp16-masked")).run([a, b, c, m, n, k], unit="hopper")
    hopper = tcm.get_instruction("hopper", case.instruction).gemm_bits(a, b)
    assert np.array_equal(c.view(np.uint32), hopper) and not np.array_equal(hopper, case.predicted(a, b))


def test_split_k_adds_in_the_order_of_blocks_and_says_so():
    m, n, k = 48, 80, 208
    a, b = GEMM["sm_80-fp16-masked"].operands(m, n, k)
    c = np.zeros((m, n), np.float32)
    run = compiled.read(text("sm_80-split-k")).run([a, b, c, m, n, k], grid=(2, 3, 3))
    assert np.array_equal(c, split_k_sum(a, b))
    assert run.assumptions == ("atomic operations on one address run in the order of blocks and threads",)


def described(m, n, k):
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return a, b, np.zeros((m, n), np.float16)


def test_tensor_maps_are_the_caller_s():
    m, n, k = 100, 72, 152  # boxes that leave the tensors: zeros come in, nothing goes out
    a, b, c = described(m, n, k)
    maps = [compiled.TensorMap(x, (64, 64), "128B") for x in (a, b, c)]
    arguments = [*(x for each in maps for x in (each, 0, 0, 0, 0)), m, n, k]
    compiled.read(text("sm_90-described")).run(arguments, grid=(2, 2))
    wgmma = tcm.get_instruction("hopper:wgmma.m64n8k16.f32.f16.f16")
    assert np.array_equal(c, wgmma.gemm(a, np.ascontiguousarray(b.T)).astype(np.float16))


def test_a_million_products_take_seconds():
    import time

    m = n = 256
    start = time.perf_counter()
    got, predicted = ran("sm_80-fp16-masked", m, n, 256)
    assert np.array_equal(got, predicted)
    assert time.perf_counter() - start < 20  # 0.5 s measured; the bound only guards against another order of growth


# -- the twin ----------------------------------------------------------------------------------------------------------------
def twin(name, arguments, grid):
    ScalarProgram(text(name), GEMM[name].unit if name in GEMM else "ampere" if "80" in name else "hopper").run(
        arguments, grid
    )


@pytest.mark.parametrize("name", GEMM)
@pytest.mark.sweep(1)
def test_the_scalar_reader_agrees(name):
    """One or two thread blocks in plain Python: about a second each."""
    case = GEMM[name]
    m, n, k = (16, 32, 48) if case.masked else (case.tile[0], case.tile[1], 2 * case.tile[2])
    m, n, k = (16, 16, 32) if name == "sm_80-fp32" else (m, n, k)
    a, b = case.operands(m, n, k, seed=2)
    out = [np.zeros((m, n), np.float32) for _ in range(2)]
    compiled.read(text(name)).run([a, b, out[0], m, n, k], grid=case.grid(m, n))
    twin(name, [a, b, out[1], m, n, k], case.grid(m, n))
    assert np.array_equal(out[0].view(np.uint32), out[1].view(np.uint32))


@pytest.mark.full
def test_the_scalar_reader_agrees_on_split_k():
    m, n, k = 16, 32, 144
    a, b = GEMM["sm_80-fp16-masked"].operands(m, n, k)
    out = [np.zeros((m, n), np.float32) for _ in range(2)]
    compiled.read(text("sm_80-split-k")).run([a, b, out[0], m, n, k], grid=(1, 1, 3))
    twin("sm_80-split-k", [a, b, out[1], m, n, k], (1, 1, 3))
    assert np.array_equal(out[0], out[1])


def test_the_scalar_reader_agrees_on_reductions():
    x = rows_to_normalise()
    out = [np.zeros(x.shape, ml_dtypes.bfloat16) for _ in range(2)]
    arguments = [x.shape[1], 1e-5]
    compiled.read(text("sm_80-normalised")).run([x, out[0], *arguments], grid=len(x))
    twin("sm_80-normalised", [x, out[1], *arguments], (len(x),))
    assert np.array_equal(out[0].view(np.uint16), out[1].view(np.uint16))
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    assert np.abs(out[0].astype(np.float64) - exact).max() < 4 * 2.0**-9  # one rounding of numbers below 4 to bf16


@pytest.mark.full  # 4 s: one thread after the other in plain Python
def test_the_scalar_reader_agrees_on_tensor_maps():
    m, n, k = 64, 64, 128
    a, b, c = described(m, n, k)
    other = c.copy()
    compiled.read(text("sm_90-described")).run(
        [*(x for each in (a, b, c) for x in (compiled.TensorMap(each, (64, 64), "128B"), 0, 0, 0, 0)), m, n, k]
    )
    maps = [x for each in (a, b, other) for x in ((each, (64, 64), 128), 0, 0, 0, 0)]
    twin("sm_90-described", [*maps, m, n, k], (1,))
    assert c.any() and np.array_equal(c.view(np.uint16), other.view(np.uint16))


def test_every_file_is_tested_and_knows_its_opcodes():
    names = {path.stem for path in FOLDER.glob("*.ptx")}
    scaled = {f"sm_{arch}-{kind}" for arch in (100, 120) for kind in ("mxfp8", "mxfp4", "nvfp4")}
    assert names == {
        *GEMM,
        *scaled,
        "sm_80-split-k",
        "sm_80-normalised",
        "sm_90-described",
        "sm_90-attention",
        "sm_80-finished",
    }
    assert {name: compiled.read(text(name)).unknown for name in names} == dict.fromkeys(names, {})
