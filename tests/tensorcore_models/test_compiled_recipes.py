"""What kernels compute, read out of their PTX: one expression for all outputs, and the recipe that predicts their bits."""

import numpy as np
import pytest
from ptx_cases import GEMM, rows_to_normalise, text

import tensorcore_models as tcm
from tensorcore_models import compiled, libraries


def recipe_of(name, m=None, n=None, k=None, changed=lambda x: x):
    """(recipe, A, B) of one of the GEMM files."""
    case = GEMM[name]
    m, n, k = (m, n, k) if m else (16, 32, 48) if case.masked else (*case.tile[:2], 2 * case.tile[2])
    a, b = case.operands(m, n, k)
    program = compiled.read(changed(text(name)))
    return program.recipe([a, b, np.zeros((m, n), np.float32), m, n, k], grid=case.grid(m, n)), a, b


@pytest.mark.parametrize("name", GEMM)
def test_every_gemm_has_one_expression(name):
    recipe, a, b = recipe_of(name)
    assert len(recipe.forms) == 1 and len(recipe.forms[0].outputs) == a.shape[0] * b.shape[1]
    case = GEMM[name]
    unit = "fma.rn.f32" if case.instruction == "fma" else f"{case.unit}:{case.instruction}"
    found = recipe.instructions[0].replace("n32k", "n8k").replace("n16k", "n8k").replace("m128", "m64")
    assert len(recipe.instructions) == 1 and found == (unit if "mma.m16" not in unit else unit.replace("n16k", "n8k"))


@pytest.mark.parametrize("name", [name for name, case in GEMM.items() if not case.words])
def test_plain_gemms_are_recipes_of_libraries_that_predict_their_bits(name):
    recipe, a, b = recipe_of(name)
    predicted = recipe.library().gemm_bits(a, b)
    assert np.array_equal(predicted, GEMM[name].predicted(a, b))


def test_promotion_is_seen_and_its_loss_too():
    kept, folded = (recipe_of(f"sm_80-bf16-{name}", 32, 32, 128)[0] for name in ("kept", "folded"))
    assert kept.library().order == libraries.Sum(
        tuple(libraries.Chain((range(x, x + 32),)) for x in range(0, 128, 32)), start="zero"
    )
    assert folded.library().order == libraries.Chain((range(128),))
    assert "k 0:32 + k 32:64" in str(kept) and "add.f32" not in str(folded)


@pytest.mark.parametrize(
    ("name", "words"), [("tf32x3", "10 01 00"), ("bf16x3", "10 01 00"), ("bf16x6", "11 20 02 10 01 00")]
)
def test_words_of_products_are_named_in_their_order(name, words):
    recipe, _, _ = recipe_of(f"sm_80-{name}", 32, 32, 16)
    lines = [line for line in recipe.outline() if " then " in line]

    def word(side):
        return side.count("sub.f32") and (2 if "sub.f32(sub.f32" in side or "sub.f32(cvt" in side else 1)

    sides = [line.strip().removeprefix("then ").split(", k ")[0].split(" x ") for line in lines]
    assert " ".join(f"{word(left)}{word(right)}" for left, right in sides) == words
    assert any("setp.num.f32 is true wherever it decides" in each for each in recipe.assumptions)
    assert "w1 = " in str(recipe) and "not a recipe of libraries: the factors of a chain" in str(recipe)
    with pytest.raises(libraries.Unknown, match="plain elements"):
        recipe.library()


def test_the_epilogue_and_tensor_maps():
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((64, 128)).astype(np.float16) for _ in "ab")
    c = np.zeros((64, 64), np.float16)
    maps = [x for each in (a, b, c) for x in (compiled.TensorMap(each, (64, 64), "128B"), 0, 0, 0, 0)]
    recipe = compiled.read(text("sm_90-described")).recipe([*maps, 64, 64, 128])
    assert not c.any()  # the caller's arrays stay as they are
    assert len(recipe.forms) == 1 and recipe.outline()[0].startswith("cvt.rn.f16.f32")
    library = recipe.library()
    bits = [np.ascontiguousarray(x).view(np.uint16) for x in (a, b.T)]
    wgmma = tcm.get_instruction("hopper:wgmma.m64n8k16.f32.f16.f16")
    want = wgmma.gemm(a, np.ascontiguousarray(b.T)).astype(np.float16)
    assert np.array_equal(library.gemm_bits(*bits, out_format="fp16"), want.view(np.uint16))
    with pytest.raises(libraries.Unknown, match="output format"):
        library.gemm_bits(*bits)


def test_split_k_is_atomic_additions_in_the_order_of_blocks():
    m, n, k = 16, 32, 144
    a, b = GEMM["sm_80-fp16-masked"].operands(m, n, k)
    recipe = compiled.read(text("sm_80-split-k")).recipe([a, b, np.zeros((m, n), np.float32), m, n, k], grid=(1, 1, 3))
    outline = recipe.outline()
    assert [line.strip() for line in outline if "atom" in line] == ["atom.add.f32"] * 3
    assert outline[3].strip() == "param_2[i, j]"  # what was there before
    assert "k 0:32, 96:128" in "\n".join(outline)
    assert "order of blocks and threads" in recipe.assumptions[0]


@pytest.mark.full  # 4 s: an expression for each of its additions
def test_a_reduction_s_tree():
    x = rows_to_normalise(2, 256)
    out = np.zeros(x.shape, np.uint16)
    recipe = compiled.read(text("sm_80-normalised")).recipe([x, out, 256, 1e-5], grid=2)
    assert recipe.outline()[0].startswith("cvt.rn.bf16.f32") and "div.rn.f32" in recipe.outline()[1]
    assert recipe.instructions == () or "fma.rn.f32" in str(recipe)


def test_a_mutant_has_another_expression():
    plain, _, _ = recipe_of("sm_80-bf16-kept")
    mutant, _, _ = recipe_of("sm_80-bf16-kept", changed=lambda x: x.replace("add.f32", "add.rz.f32"))
    assert plain.outline() != mutant.outline() and "add.rz.f32" in mutant.outline()[0]
    with pytest.raises(libraries.Unknown, match="where a chain or an addition is expected"):
        mutant.library()


def test_kernels_without_an_output():
    nothing = ".version 8.0\n.target sm_80\n.visible .entry none(.param .u64 x) .reqntid 32 { ret; }\n"
    with pytest.raises(ValueError, match="writes to no array"):
        compiled.read(nothing).recipe([np.zeros(4)])
