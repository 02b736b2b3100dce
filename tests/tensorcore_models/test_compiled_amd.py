"""AMDGCN kernels run bit for bit: Triton's for gfx942 against the package's matrix instructions, and what is read from them."""

import re

import ml_dtypes
import numpy as np
import pytest
from amd_cases import FOLDER, GEMM, recovered_product, split_k_sum, text
from amd_text import LOAD, kernel
from ptx_cases import rows_to_normalise

import tensorcore_models as tcm
from tensorcore_models import compiled, libraries


def ran(name, m, n, k, **options):
    """(bits of C, bits that the instruction predicts) of one of the GEMM files."""
    case = GEMM[name]
    a, b = case.operands(m, n, k)
    c = np.full((m, n), np.nan, np.float32)
    compiled.read(text(name)).run([a, b, c, m, n, k], grid=case.grid(m, n), **options)
    return c.view(np.uint32), case.predicted(a, b)


@pytest.mark.sweep(5)
@pytest.mark.parametrize("name", GEMM)
def test_a_gemm_is_what_its_instruction_predicts(name):
    m, n, k = (48, 80, 112) if GEMM[name].masked else (128, 128, 128)
    got, predicted = ran(name, m, n, k)
    assert np.array_equal(got, predicted)


@pytest.mark.parametrize("name", GEMM)
@pytest.mark.sweep(4)
def test_without_checks_the_bits_are_the_same(name):
    m, n, k = (16, 16, 48) if GEMM[name].masked else (128, 128, 64)
    got, predicted = ran(name, m, n, k, checks=False)
    assert np.array_equal(got, predicted)


@pytest.mark.parametrize("name", [name for name, case in GEMM.items() if case.interleaved])
def test_kpack_interleaves_k(name):
    case = GEMM[name]
    a, b = case.operands(64, 64, 128)
    plain = case.engine.gemm_bits(a, b)
    differ = (plain != case.predicted(a, b)).mean()
    assert differ > (0.001 if "fp8" in name else 0.2)  # e4m3 has few bits: most sums of 16 are exact


def test_a_recovered_product_joined_in_fp32():
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((64, 64)).astype(np.float32) for _ in "ab")
    c = np.zeros((64, 64), np.float32)
    compiled.read(text("recovered")).run([a, b, c, 64, 64, 64], grid=(2, 2))
    small, high = recovered_product(a, b)
    joined = small.astype(np.float64) * 2.0**-12 + high  # a multiply-add, the sum of which float64 holds
    assert np.array_equal(c, joined.astype(np.float32))
    assert np.abs(c - a.astype(np.float64) @ b).max() < 2e-5


def test_split_k_adds_in_the_order_of_blocks_and_says_so():
    m, n, k = 48, 80, 192
    a, b = GEMM["fp16-masked"].operands(m, n, k)
    c = np.zeros((m, n), np.float32)
    run = compiled.read(text("split-k")).run([a, b, c, m, n, k], grid=(2, 3, 3))
    assert np.array_equal(c, split_k_sum(a, b))
    assert any(each.startswith("atomic operations on one address run in the order") for each in run.assumptions)


def test_reductions_need_an_approximation_that_is_not_published():
    x = rows_to_normalise()
    out = np.zeros(x.shape, ml_dtypes.bfloat16)
    program = compiled.read(text("normalised"))
    with pytest.raises(compiled.Refused, match="v_rcp_f32_e32: the bits of its results are not published"):
        program.run([x, out, x.shape[1], 1e-5], grid=len(x))
    run = program.run([x, out, x.shape[1], 1e-5], grid=len(x), unpublished="nearest")
    exact = x.astype(np.float64)
    exact = (exact - exact.mean(1, keepdims=True)) / np.sqrt(exact.var(1, keepdims=True) + 1e-5)
    assert np.abs(out.astype(np.float64) - exact).max() < 4 * 2.0**-9  # one rounding of numbers below 4 to bf16
    assert any("v_rcp_f32 gives the nearest" in each for each in run.assumptions)


def test_every_file_is_tested_and_knows_its_opcodes():
    names = {path.stem for path in FOLDER.glob("*.s")}
    assert names == {*GEMM, "recovered", "split-k", "normalised"}
    programs = [compiled.read(text(name)) for name in names]
    assert {each.target for each in programs} == {"gfx942"} and not any(each.unknown for each in programs)


# -- what they compute -----------------------------------------------------------------------------------------------------
def recipe_of(name, m=None, n=None, k=64):
    case = GEMM[name]
    m, n = m or case.tile[0], n or case.tile[1]
    a, b = case.operands(m, n, k)
    c = np.zeros((m, n), np.float32)
    return compiled.read(text(name)).recipe([a, b, c, m, n, k], grid=case.grid(m, n)), a, b


@pytest.mark.parametrize("name", [name for name, case in GEMM.items() if not case.words and name != "fp16-128"])
def test_plain_gemms_are_recipes_of_libraries_that_predict_their_bits(name):
    recipe, a, b = recipe_of(name)
    assert recipe.instructions == (f"cdna3:{GEMM[name].instruction}",)
    assert np.array_equal(recipe.library().gemm_bits(a, b), GEMM[name].predicted(a, b))


def test_a_transposed_product_of_two_formats_is_no_recipe_of_libraries():
    """Triton gives the second matrix to the instruction first: its format is then that of a recipe's first."""
    case = GEMM["fp8"]
    a, b = case.operands(32, 32, 64)
    changed = text("fp8").replace("16_fp8_fp8", "16_bf8_fp8")
    c = np.zeros((32, 32), np.float32)
    recipe = compiled.read(changed).recipe([a, b, c, 32, 32, 64])
    assert recipe.instructions == ("cdna3:v_mfma_f32_32x32x16_bf8_fp8",)
    with pytest.raises(libraries.Unknown, match="takes the output's columns as its first matrix"):
        recipe.library()


def test_the_order_of_k_is_read():
    pieces = recipe_of("fp16-kpack2", 64, 64, 32)[0].library().order
    assert pieces == libraries.Chain(
        tuple(range(*x) for x in ((0, 4), (8, 12), (4, 8), (12, 20), (24, 28), (20, 24), (28, 32))), joined=True
    )
    kept, folded = (recipe_of(f"bf16-{name}", 32, 32, 128)[0].library().order for name in ("kept", "folded"))
    assert kept == libraries.Sum(tuple(libraries.Chain((range(x, x + 32),)) for x in range(0, 128, 32)), start="zero")
    assert folded == libraries.Chain((range(128),))


@pytest.mark.parametrize(("name", "words"), [("bf16x3", "10 01 00"), ("bf16x6", "11 20 02 10 01 00")])
@pytest.mark.sweep(1)
def test_words_of_products_are_named_in_their_order(name, words):
    recipe, _, _ = recipe_of(name, 32, 32, 32)
    lines = [line.strip().removeprefix("then ").split(", k 0")[0] for line in recipe.outline() if " then " in line]

    def word(side):
        return side.count("v_add_f32") and (2 if "v_add_f32(v_add_f32" in side else 1)

    sides = [line.split(" x ") for line in lines]
    assert (
        " ".join(f"{word(left)}{word(right)}" for right, left in sides) == words
    )  # the instruction's A is the kernel's B
    assert all(side.startswith("bf16.rne(") for pair in sides for side in pair)
    assert any("v_cmp_o_f32 is true wherever it decides" in each for each in recipe.assumptions)
    with pytest.raises(libraries.Unknown, match="plain elements"):
        recipe.library()


@pytest.mark.parametrize(("rounding", "steps"), [
    ("rne", "  v_bfe_u32 v7, v1, 16, 1\n  v_add3_u32 v1, v1, v7, v6"), ("rna", "  v_add3_u32 v1, v1, v6, 1"),
])  # fmt: skip
def test_integers_that_round_to_bf16_are_named(rounding, steps):
    body = f"""{LOAD}  v_mov_b32_e32 v6, 0x7fff
{steps}
  s_load_dwordx2 s[6:7], s[0:1], 0x8
  v_lshlrev_b32_e32 v8, 1, v0
  s_waitcnt lgkmcnt(0)
  global_store_short_d16_hi v8, v1, s[6:7]"""
    x, out = np.random.default_rng(0).standard_normal(64).astype(np.float32), np.zeros(64, np.uint16)
    x[:4] = np.array([0x3F808000, 0x3F818000, 0xBF808000, 0x7F800000], np.uint32).view(np.float32)  # three ties
    program = compiled.read(kernel(body, 2))
    program.run([x, out])
    finite = np.isfinite(x)
    assert np.array_equal(out[finite], tcm.encode(x[finite], "bf16", rounding))
    assert program.recipe([x, out]).outline() == [f"bf16.{rounding}: argument_0[i]"]


def test_kernels_are_compared():
    a, b = GEMM["bf16-kept"].operands(32, 32, 96)
    kept, folded = (compiled.read(text(f"bf16-{name}")) for name in ("kept", "folded"))
    arguments, grids = (
        [a.view(ml_dtypes.bfloat16), b.view(ml_dtypes.bfloat16), np.zeros((32, 32), np.float32), 32, 32, 96],
        (1, 1),
    )
    assert compiled.compare(kept, folded, arguments=arguments, grids=grids).verdict == "different"
    assert compiled.compare(folded, folded, arguments=arguments, grids=grids).verdict == "equal"


def test_shapes_of_one_accumulator_are_not_one_when_the_group_differs():
    """v_mfma 32x32x8 and 16x16x16 of f16 both add 8 products at a time: the same chain."""
    a, b = GEMM["fp16-masked"].operands(32, 32, 64)
    programs = [compiled.read(text(name)) for name in ("fp16-masked", "fp16-16x16")]
    arguments = [a, b, np.zeros((32, 32), np.float32), 32, 32, 64]
    found = compiled.compare(*programs, arguments=arguments, grids=(1, 1))
    same = (
        tcm.get_instruction("cdna3", GEMM["fp16-masked"].instruction).accumulator
        == GEMM["fp16-16x16"].engine.accumulator
    )
    assert (found.verdict == "equal") == same


@pytest.mark.sweep(1)
@pytest.mark.parametrize(("old", "new"), [
    (".amdhsa_float_round_mode_32 0", ".amdhsa_float_round_mode_32 3"),
    (".amdhsa_float_denorm_mode_32 3", ".amdhsa_float_denorm_mode_32 0"), (r"(v_pk_add_f32 .*)", r"\1 clamp"),
])  # fmt: skip
def test_kernels_that_round_flush_or_clamp_otherwise_are_not_equal(old, new):
    case, (m, n, k) = GEMM["bf16-kept"], (64, 64, 128)
    first, (second, count) = text("bf16-kept"), re.subn(old, new, text("bf16-kept"))
    arguments = [*case.operands(m, n, k), np.zeros((m, n), np.float32), m, n, k]
    programs = compiled.read(first), compiled.read(second)
    found = compiled.compare(*programs, arguments=arguments, grids=(case.grid(m, n),) * 2, seconds=0)
    assert count and found.verdict == "different"


@pytest.mark.parametrize("mode", [3, 0])
def test_a_factor_of_one_at_the_end_is_none(mode):
    """As Tensile multiplies by alpha; where the MODE register flushes, a product is more than its operand."""
    case, source = GEMM["bf16-kept"], text("bf16-kept").replace("denorm_mode_32 3", f"denorm_mode_32 {mode}")
    scaled = "".join(f"\tv_mul_f32_e32 v{i}, 1.0, v{i}\n" for i in range(16))
    program = compiled.read(source.replace("\tglobal_store_dwordx4", scaled + "\tglobal_store_dwordx4", 1))
    m, n, k = 64, 64, 128
    a, b = case.operands(m, n, k)
    c = np.zeros((m, n), np.float32)
    recipe = program.recipe([a, b, c, m, n, k], grid=case.grid(m, n))
    assert "v_mul_f32" in str(recipe)
    if mode == 0:  # and so do the additions that join the chains
        with pytest.raises(libraries.Unknown, match=r"v_add_f32\.flush_in_fp32\.flush_out_fp32"):
            recipe.library()
        return
    program.run([a, b, c, m, n, k], grid=case.grid(m, n))
    predicted = recipe.library().gemm_bits(a.view(np.uint16), b.view(np.uint16))
    assert np.array_equal(c.view(np.uint32), predicted)
